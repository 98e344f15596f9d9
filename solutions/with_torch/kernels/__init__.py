"""The place of the fused CUDA kernels, one file per chapter, named like the chapter.

Tables, rotation and cast each read and write all of q and k once when they are separate torch
operations; a fused kernel does so once for the three. A module of `solutions.with_torch` calls
its kernel for CUDA inputs and keeps the torch operations for every other device: they are what
the kernel is tested against.
"""

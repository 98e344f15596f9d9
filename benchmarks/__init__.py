"""Measurements of the torch room's kernels, each beside the code that others use.

Why: a claim of speed is a ratio, taken in one run. What was measured lies in `results/`.
"""

"""Kernels of our own, for where a chain of torch's operations moves the same bytes several times.

Why: a rotation does three operations for each number that it moves, so its time is the time of its
bytes. `kernel_for` tells which kernel a pair of tensors gets; None means torch's own operations,
which every kernel is tested against.
"""

import functools
import importlib
import importlib.util
import os
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode

# Below this many numbers the operations of torch stay in the cache, and compiling takes longer.
WORTH_COMPILING = 1 << 20

_forked = False


def _note_the_fork() -> None:
    """GNU's OpenMP ends a forked process that uses it after its parent did."""
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_the_fork)


def kernel_for(q: Tensor, k: Tensor) -> Callable[..., tuple[Tensor, Tensor]] | None:
    """The `rotate(q, k, cos, sin, layout=…)` that is faster than torch's operations, or None.

    On CUDA the Triton kernel, on a CPU the Numba kernel for large float32 and float64 tensors.
    None while torch traces, compiles, exports or counts operations, which would not see what a
    kernel writes (and a compiler fuses the plain operations itself); None for subclasses of Tensor.
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined]
        return None
    plain = all(
        type(x) in (Tensor, torch.nn.Parameter) and x.ndim == 4 and not x.is_neg() for x in (q, k)
    )
    watched = _get_current_dispatch_mode() is not None  # make_fx, FakeTensorMode and the like
    if not plain or watched or q.dtype != k.dtype or q.device != k.device:
        return None
    if q.device.type == "cuda" and q.is_floating_point():
        return _rotate_of("rope", "triton")
    wide = q.dtype in (torch.float32, torch.float64)
    large = q.numel() + k.numel() >= WORTH_COMPILING
    if q.device.type == "cpu" and wide and large and not _forked:
        return _rotate_of("rope_cpu", "numba")
    return None


@functools.cache
def _rotate_of(module: str, needs: str) -> Callable[..., tuple[Tensor, Tensor]] | None:
    """The function of a kernel's module, or None where the package below it is not installed."""
    if importlib.util.find_spec(needs) is None:
        return None
    rotate: Callable[..., tuple[Tensor, Tensor]]
    rotate = importlib.import_module(f"{__name__}.{module}").rotate
    return rotate

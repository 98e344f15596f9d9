"""A device that computes on the CPU and yet is another: what CUDA refuses to mix, it refuses too.

Why: how checks fare on a GPU can be tried where there is none. Its tensors are on `lazy`, a type of
device that PyTorch knows and nothing here uses; each wraps one on the CPU, where the operation is
done. Values are the CPU's and autocast casts nothing there, so it says nothing of a GPU's own
rounding or kernels: it shows which tensors meet, and where results lie.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

DEVICE = "lazy"
MIXED = (
    "Expected all tensors to be on the same device, but found at least two devices, "
    f"{DEVICE}:0 and cpu!"
)
TO_PYTHON = ("_local_scalar_dense", "equal", "is_same_size")
MOVES = ("_to_copy", "copy_")
TAKES_INDICES = ("index", "index_put", "index_put_")  # CUDA moves such by itself


class There(torch.Tensor):
    """A tensor on the stand-in device; `here` is where its numbers are."""

    here: torch.Tensor

    @staticmethod
    def __new__(cls, here: torch.Tensor) -> There:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            here.size(),
            strides=here.stride(),
            storage_offset=here.storage_offset(),
            dtype=here.dtype,
            device=DEVICE,
        )
        made.here = here
        return made

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        """Tells PyTorch that this wraps another: a cast of a module then swaps it whole."""
        return ["here"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, torch.Tensor], *_: Any) -> There:
        return There(inner["here"])

    def tolist(self) -> Any:
        return self.here.tolist()

    def __deepcopy__(self, memo: Any) -> There:
        return There(self.here.detach().clone())

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


class Present(TorchDispatchMode):
    """While this mode is on there is such a device, and tensors can be made on it."""

    def __enter__(self) -> Present:
        self._autocast = torch.autocast
        torch.autocast = lambda device_type, *args, **kwargs: (  # type: ignore[misc, assignment]
            contextlib.nullcontext()
            if device_type == DEVICE
            else self._autocast(device_type, *args, **kwargs)
        )
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch.autocast = self._autocast  # type: ignore[misc]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        there = any(isinstance(value, There) for value in tree_leaves((args, kwargs)))
        if there or _is_there(kwargs.get("device")):
            return _computed(func, args, kwargs)
        return func(*args, **kwargs)


def _is_there(device: Any) -> bool:
    return device is not None and torch.device(device).type == DEVICE


def _computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """One operation of PyTorch's, done on the CPU; its result lies where CUDA would leave it."""
    name = func.overloadpacket.__name__
    given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
    there = any(isinstance(value, There) for value in given)
    if there and name not in MOVES:
        for other in given:
            moves = name in TAKES_INDICES and not other.is_floating_point()
            if not isinstance(other, There) and other.dim() and not moves:
                raise RuntimeError(MIXED)
    wanted = kwargs.get("device")
    if wanted is not None:
        kwargs, there = {**kwargs, "device": "cpu"}, _is_there(wanted)
    plain = tree_map_only(There, lambda value: value.here, (args, kwargs))
    result = func(*plain[0], **plain[1])
    if name in TO_PYTHON:
        return result
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    return tree_map_only(torch.Tensor, There, result) if there else result

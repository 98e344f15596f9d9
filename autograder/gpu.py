"""The GPU of this machine: whether PyTorch can compute on it, and what to say where it cannot.

Apart from both who ask, the checks and the doctor: a driver fails in many ways, each told alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

NO_CUDA = "PyTorch is a build without CUDA here"
NO_MEMORY = "the GPU has no memory left: another program or notebook may hold it"
STOPS = (
    "On CUDA an index outside its table raises nothing that an answer could catch: it stops the GPU"
)


@dataclass(frozen=True)
class Place:
    """Where an answer is asked again, or `why_not`. `broken`: a GPU that answers with an error."""

    device: str = "cuda"  # as PyTorch calls its kind
    name: str = ""  # as its maker calls it
    why_not: str = ""
    broken: bool = False


def find() -> Place:
    """The GPU of this machine, after a first sum on it; or why there is none to use."""
    try:
        import torch
    except Exception as error:  # there is none, or it finds a library of its own no more
        return Place(why_not=f"PyTorch does not start ({_first_line(error)})")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what PyTorch says of a driver is told below
        try:
            if not torch.cuda.is_available():
                return Place(why_not=_absent(torch))
            _first_sum()
            return Place(name=torch.cuda.get_device_name())
        except Exception as error:  # a driver raises anything
            types = tuple(kind.__name__ for kind in type(error).__mro__)
            why = trouble(types, str(error)) or f"the GPU does not answer ({_first_line(error)})"
            return Place(why_not=why, broken=why != NO_MEMORY)


def _absent(torch: Any) -> str:
    if torch.version.cuda is None:
        return NO_CUDA
    try:
        torch.cuda.init()
    except Exception as error:
        return f"PyTorch sees no GPU here ({_first_line(error).split('. ')[0].rstrip('.')})"
    return "PyTorch sees no GPU here"


def _first_sum() -> None:
    """Raises where a GPU is there and of no use: too old, full, or stopped by what ran before."""
    import torch

    torch.ones(2, device="cuda").sum().item()


def trouble(types: Sequence[str], message: str) -> str:
    """What to say of an error that is the device's, whoever caused it; nothing of any other."""
    if "OutOfMemoryError" in types:
        return NO_MEMORY
    if "AcceleratorError" not in types and "CUDA error" not in message:
        return ""
    stopped = f"the GPU stopped ({_first_line(message)})"
    return f"{stopped}. {STOPS}" if "device-side assert" in message else stopped


def _first_line(error: object) -> str:
    return (str(error).strip().splitlines() or [""])[0][:160]

"""What came, in a few words: kinds of values, places and numbers, as a person would write them.

They stand in the messages of checks, which an answer of any kind at all must not break.
"""

from __future__ import annotations

from typing import Any

from .answers import Instance
from .replies import Handle


def index(place: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, place)) + ")" if len(place) > 1 else str(place[0])


def numbers(first: complex, second: complex) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to tell them apart."""
    for digits in (6, 9, 12, 17):
        a, b = (
            f"{v.real:.{digits}g}" if v.imag == 0 else f"{v:.{digits}g}" for v in (first, second)
        )
        if a != b:
            break
    return a, b


def kind(value: Any) -> str:
    """What a reply is, in a few words."""
    if value is None:
        return "None"
    shape = getattr(value, "shape", None)
    if shape is not None and not isinstance(value, Instance):
        return f"an array of shape {tuple(shape)}"
    handle = value.handle if isinstance(value, Instance) else value
    name = handle.type_name if isinstance(handle, Handle) else type(value).__name__
    return f"an {name}" if name[:1].lower() in tuple("aeiou") else f"a {name}"

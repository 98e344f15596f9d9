"""Names the mistake: compares what an answer returned with what known wrong answers return.

A check stops at its first failure, so a student with a known misconception leaves the same trail of
outcomes up to there as the misconception itself. Equal trails, wherever the misconception fails,
name it; nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .answers import Handle, Outcome
from .assertions import CheckFailed, as_array
from .exercise import Exercise

LOOSE = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 1e-4}


@dataclass(frozen=True)
class Tried:
    """A check that was run: the outcomes of the answer, and whether the check failed."""

    check: Any
    trace: list[Outcome]
    failed: bool


def recognise(exercise: Exercise, tried: list[Tried], standard: Any) -> dict[str, str] | None:
    """The known mistake that explains an answer's failures; None when there is none.

    Wherever the mistake fails a check, the answer must fail it too and with the same outputs. The
    answer may fail further checks (a second mistake). Among several, the one that explains most.
    """
    first = next((t for t in tried if t.failed and _ends_in_data(t.trace)), None)
    if first is None:
        return None
    fitting = {
        about["id"]: ({**about, "check": first.check.name}, 1)
        for about, trace in standard.wrong_answers(exercise, first.check)
        if _ends_in_data(trace) and _same_trace(first.trace, trace)
    }
    for other in tried:
        if other is first or not fitting:
            continue
        for about, trace in standard.wrong_answers(exercise, other.check, only=set(fitting)):
            if other.failed and _same_trace(other.trace, trace):
                known, explained = fitting[about["id"]]
                fitting[about["id"]] = known, explained + 1
            else:
                del fitting[about["id"]]
    return max(fitting.values(), key=lambda entry: entry[1])[0] if fitting else None


def _ends_in_data(trace: list[Outcome]) -> bool:
    return bool(trace) and trace[-1].error is None


def _same_trace(mine: list[Outcome], known: list[Outcome]) -> bool:
    """Equal outcomes all the way to the failure."""
    return len(mine) == len(known) and all(_same(a, b) for a, b in zip(mine, known, strict=True))


def _same(a: Outcome, b: Outcome) -> bool:
    if (a.error is None) != (b.error is None):
        return False
    if a.error is not None and b.error is not None:
        return a.error.types[0] == b.error.types[0]
    return same_value(a.value, b.value)


def same_value(a: Any, b: Any) -> bool:
    """Equal up to rounding. Objects that stayed where they live (handles) count as equal."""
    if isinstance(a, Handle) or isinstance(b, Handle):
        return isinstance(a, Handle) and isinstance(b, Handle)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_value(a[k], b[k]) for k in a)
    if a is None or b is None or isinstance(a, str | set | frozenset):
        return type(a) is type(b) and a == b
    try:
        x, y = as_array(a, ""), as_array(b, "")
    except CheckFailed:
        return False
    if x.shape != y.shape or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return False
    names = [str(getattr(v, "dtype", "float64")).removeprefix("torch.") for v in (a, b)]
    rtol = max(LOOSE.get(name, 1e-8) for name in names)
    return bool(np.all(np.abs(x - y) <= rtol * (1 + np.abs(y)))) and names[0] == names[1]

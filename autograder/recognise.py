"""Names the mistake: compares what an answer returned with what known wrong answers return.

A check stops at its first failure, so a student with a known misconception leaves the same trail of
outcomes up to there as the misconception itself. Equal trails name it: the first one always, and
most of the others, since an answer may have a second mistake beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .answers import Handle, Outcome
from .assertions import CheckFailed, as_array
from .exercise import Exercise

# How far two programs with one mistake may lie apart: the angles of a torch answer may be float32,
# and at positions in the thousands that moves a cosine by some thousandths.
LOOSE = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 5e-3}


@dataclass(frozen=True)
class Tried:
    """A check that was run: the outcomes of the answer, and whether the check failed."""

    check: Any
    trace: list[Outcome]
    failed: bool


def recognise(exercise: Exercise, tried: list[Tried], standard: Any) -> dict[str, str] | None:
    """The known mistake that explains an answer's failures; None when there is none.

    The answer must fail wherever the mistake fails: the first time with exactly its outputs, and
    with its outputs in most of the other checks. So an answer may have a second mistake beside it,
    such as a layout that is not written yet. Among several, the one that explains most.
    """
    first = next((t for t in tried if t.failed and _ends_in_data(t.trace)), None)
    if first is None:
        return None
    fitting = {
        about["id"]: _Candidate({**about, "check": first.check.name})
        for about, trace in standard.wrong_answers(exercise, first.check)
        if len(trace) == len(first.trace) and _agree(first.trace, trace)
    }
    for other in tried:
        if other is first or not fitting:
            continue
        for about, trace in standard.wrong_answers(exercise, other.check, only=set(fitting)):
            candidate = fitting[about["id"]]
            if not other.failed:
                del fitting[about["id"]]
            elif not _agree(other.trace, trace):
                candidate.contradicted += 1
            elif _ends_in_data(other.trace) or all(map(_same, other.trace, trace)):
                candidate.explained += 1
    convincing = [c for c in fitting.values() if c.explained > c.contradicted]
    return max(convincing, key=lambda c: c.explained).about if convincing else None


@dataclass
class _Candidate:
    about: dict[str, str]
    explained: int = 1
    contradicted: int = 0


def _ends_in_data(trace: list[Outcome]) -> bool:
    return bool(trace) and trace[-1].error is None


def _agree(mine: list[Outcome], known: list[Outcome]) -> bool:
    """No value contradicts: equal outcomes as far as both go, an error of mine aside."""
    return all(a.error is not None or _same(a, b) for a, b in zip(mine, known, strict=False))


def _same(a: Outcome, b: Outcome) -> bool:
    if (a.error is None) != (b.error is None):
        return False
    if a.error is not None and b.error is not None:
        return a.error.types[0] == b.error.types[0]
    return same_value(a.value, b.value)


def same_value(a: Any, b: Any) -> bool:
    """Equal up to rounding, in any dtype. Objects that stayed where they live count as equal."""
    if isinstance(a, Handle) or isinstance(b, Handle):
        return isinstance(a, Handle) and isinstance(b, Handle)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_value(a[k], b[k]) for k in a)
    if a is None or b is None or isinstance(a, str | set | frozenset):
        return type(a) is type(b) and a == b
    try:
        x, y = (as_array(value, "").astype(np.complex128) for value in (a, b))
    except CheckFailed:
        return False
    finite = np.isfinite(x)
    if x.shape != y.shape or not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return False
    if x.size and not finite.any():
        return False  # of answers that are NaN throughout, nothing can be told
    names = [str(getattr(v, "dtype", "float64")).removeprefix("torch.") for v in (a, b)]
    loose = max(LOOSE.get(name, 1e-7) for name in names)
    size = np.clip(np.abs(y), 1, 10)  # of large numbers, such as angles, the last digits count
    return bool(np.all(np.abs(x[finite] - y[finite]) <= loose * size[finite]))

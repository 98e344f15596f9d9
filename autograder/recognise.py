"""Names the mistake: compares what an answer returned with what known wrong answers return.

A check stops at its first failure, so a student with a known misconception leaves the same trail of
outcomes up to there as the misconception itself. Equal trails name it: the first one always, and
most of the others, since an answer may have a second mistake beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .assertions import CheckFailed, as_array
from .exercise import Exercise
from .replies import Handle, Outcome

# How far two programs with one mistake may lie apart. The angles of a torch answer may be float32,
# and at positions in the thousands that moves a cosine by some thousandths; a NumPy answer in
# float32 is off by some units in the last place of the largest number, no more.
LOOSE = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 5e-3}
ROUNDED = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1.2e-7}


@dataclass(frozen=True)
class Tried:
    """A check that was run: the outcomes of the answer, and whether the check failed.

    `of_dtype`: it failed for a dtype alone; then those of a known mistake must be the same too.
    """

    check: Any
    trace: list[Outcome]
    failed: bool
    of_dtype: bool = False


def recognise(exercise: Exercise, tried: list[Tried], standard: Any) -> dict[str, str] | None:
    """The known mistake that explains an answer's failures; None when there is none.

    The answer must fail wherever the mistake fails: the first time with exactly its outputs, and
    with its outputs in most of the other checks. So an answer may have a second mistake beside it,
    such as a layout that is not written yet. Among several, the one that explains most.
    """
    first = next((t for t in tried if t.failed and _ends_in_data(t.trace)), None)
    if first is None:
        return None
    loose = exercise.room == "with_torch"
    fitting = {
        about["id"]: _Candidate({**about, "check": first.check.name})
        for about, trace in standard.wrong_answers(exercise, first.check)
        if len(trace) == len(first.trace) and _agree(first, trace, loose)
    }
    for other in tried:
        if other is first or not fitting:
            continue
        for about, trace in standard.wrong_answers(exercise, other.check, only=set(fitting)):
            candidate = fitting[about["id"]]
            if not other.failed:
                del fitting[about["id"]]
            elif not _agree(other, trace, loose):
                candidate.contradicted += 1
            elif _ends_in_data(other.trace) or all(map(_alike, other.trace, trace)):
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


def _agree(mine: Tried, known: list[Outcome], loose: bool) -> bool:
    """No value contradicts: equal outcomes as far as both go, an error of mine aside."""
    pairs = [(a, b) for a, b in zip(mine.trace, known, strict=False) if a.error is None]
    if mine.of_dtype and any(_dtypes(a.value) != _dtypes(b.value) for a, b in pairs):
        return False
    return all(b.error is None and same_value(a.value, b.value, loose=loose) for a, b in pairs)


def _alike(a: Outcome, b: Outcome) -> bool:
    """Both answered, or both raised the same."""
    if a.error is not None and b.error is not None:
        return a.error.types[0] == b.error.types[0]
    return a.error is None and b.error is None


def _dtypes(value: Any) -> Any:
    """The dtypes of a value and of its parts, in order; of other data its type."""
    if isinstance(value, tuple):
        return [_dtypes(item) for item in value]
    return str(getattr(value, "dtype", type(value).__name__))


def same_value(a: Any, b: Any, *, loose: bool = True) -> bool:
    """Equal up to rounding, in any dtype. Objects that stayed where they live count as equal.

    `loose` allows for angles that were float32 on the way.
    """
    if isinstance(a, Handle) or isinstance(b, Handle):
        return isinstance(a, Handle) and isinstance(b, Handle)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(
            same_value(x, y, loose=loose) for x, y in zip(a, b, strict=True)
        )
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_value(a[k], b[k], loose=loose) for k in a)
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
    error, size = np.abs(x[finite] - y[finite]), np.abs(y[finite])
    if loose or not size.size:
        allowed = max(LOOSE.get(name, 1e-7) for name in names)
        # of large numbers, such as angles, the last digits count
        return bool(np.all(error <= allowed * np.clip(size, 1, 10)))
    unit = max(ROUNDED.get(name, 1e-9) for name in names)
    return bool(np.all(error <= unit * (64 * size + 16 * size.max())))

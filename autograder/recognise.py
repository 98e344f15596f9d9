"""Names the mistake: compares what an answer returned with what known wrong answers return.

A check stops at its first failure, so a student with a known misconception leaves the same trail of
outcomes up to there as the misconception itself. Equal trails name it; nothing is guessed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .answers import Answers, Handle, Outcome
from .assertions import CheckFailed, as_array
from .exercise import Exercise

LOOSE = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 1e-4}


def recognise(
    exercise: Exercise, failed: list[tuple[Any, Answers]], standard: Any
) -> dict[str, str] | None:
    """The known mistake whose outputs equal the answer's on the failing inputs.

    The first failing check decides; among several that fit it, the one that fits most others.
    """
    fitting: dict[str, tuple[dict[str, str], int]] = {}
    for number, (check, asked) in enumerate(failed):
        if number and not fitting:
            break
        for about, trace in standard.wrong_answers(exercise, check):
            if _same_trace(asked.trace, trace) and (number == 0 or about["id"] in fitting):
                _, count = fitting.get(about["id"], (about, 0))
                fitting[about["id"]] = ({**about, "check": failed[0][0].name}, count + 1)
    if not fitting:
        return None
    return max(fitting.values(), key=lambda entry: entry[1])[0]


def _same_trace(mine: list[Outcome], known: list[Outcome]) -> bool:
    """Equal outcomes all the way to the failure, whose last is data and no error."""
    if len(mine) != len(known) or not mine or mine[-1].error is not None:
        return False
    return all(_same(a, b) for a, b in zip(mine, known, strict=True))


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

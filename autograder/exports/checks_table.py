"""The long table: one row for each check of each submission, for anybody who analyses a class.

The wide one, a row a submission, is `grades.csv` itself.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from .. import outputs
from ..results import CheckResult, ExerciseResult, SubmissionResult
from . import Request

COLUMNS = (
    "student chapter status exercise exercise_status exercise_points exercise_max_points "
    "exercise_bonus misconception check hidden passed weight points max_points message sentence "
    "seed"
).split()


def write(request: Request, results: list[SubmissionResult]) -> None:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for result in results:
        request.ungraded(result)
        for exercise in result.exercises:
            rows.writerows(_rows(result, exercise))
    outputs.replace(request.out, text.getvalue())


def _rows(result: SubmissionResult, exercise: ExerciseResult) -> Iterator[list[str]]:
    total = sum(c.weight for c in exercise.checks)
    known = exercise.misconception["id"] if exercise.misconception else ""
    start = [
        outputs._cell(result.student),
        result.chapter,
        result.status,
        exercise.id,
        exercise.status,
        _points(exercise.points),
        _points(exercise.max_points),
        _points(exercise.bonus),
        known,
    ]
    most = exercise.max_points + exercise.max_bonus
    checks: list[CheckResult | None] = [*exercise.checks] or [None]
    for check in checks:
        yield [*start, *(_cells(check, most / total) if check else [""] * 8),
               str(result.seed)]  # fmt: skip


def _cells(check: CheckResult, share: float) -> list[str]:
    most = check.weight * share
    return [
        check.name,
        _yes(check.hidden),
        "" if check.fault else _yes(check.passed),
        str(check.weight),
        "" if check.fault else _points(round(most * check.passed, 4)),
        _points(round(most, 4)),
        outputs._cell(check.fault or check.message).replace("\n", " | "),
        outputs._cell(check.sentence),
    ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _points(value: float | None) -> str:
    return "" if value is None else f"{value:g}"

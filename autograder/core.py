"""Grades one submission: the one path that every front door takes."""

from __future__ import annotations

import contextlib
import hashlib
import time
from typing import Any

from . import course, identity
from .notebooks import Malformed, cells_of
from .replies import StudentError
from .results import GRADER_ERROR, ExerciseResult, SubmissionResult
from .running import DRAWS, grade_answers, not_here
from .sandbox import Limits, SandboxMissing
from .session import Session
from .standard import Live

MISSING, MALFORMED = "missing", "malformed"


def grade_bytes(
    student: str,
    chapter: str,
    content: bytes,
    *,
    python: bool = False,
    seed: int,
    limits: Limits,
    walls: bool,
) -> SubmissionResult:
    """Grade what was handed in, byte for byte; `python` says that it is a .py file.

    Whatever it is, the result has a status and a score. Raises SandboxMissing where walls are asked
    for and there are none.
    """
    result = SubmissionResult(student, chapter, GRADER_ERROR, [], seed=seed)
    result.sha256 = hashlib.sha256(content).hexdigest()
    try:
        cells = cells_of(content, python=python)
    except Malformed as error:
        return without_running(result, MALFORMED, str(error))
    return grade_cells(result, cells, limits=limits, walls=walls)


def without_running(result: SubmissionResult, status: str, note: str) -> SubmissionResult:
    """The result of a submission of which nothing can be run: no points, or unknown ones."""
    points = None if status == GRADER_ERROR else 0.0
    lost = GRADER_ERROR if status == GRADER_ERROR else "missing"
    exercises = course.manifest(result.chapter)
    result.status, result.note = status, note
    result.exercises = [
        ExerciseResult(e.id, points, e.points, lost, max_bonus=e.bonus) for e in exercises
    ]
    return result


def grade_cells(
    result: SubmissionResult, cells: list[str], *, limits: Limits, walls: bool
) -> SubmissionResult:
    """Fill a result by running the cells in a sandbox and the checks outside it.

    Raises SandboxMissing where walls are asked for and there are none, or do not hold.
    """
    started = time.monotonic()
    exercises = course.manifest(result.chapter)
    result.environment = environment(limits, walls)
    result.environment["course"] = identity.of_chapter(result.chapter)
    try:
        names = [e.name for e in exercises]
        with Session(cells, names, limits, walls=walls, preload=True) as session:
            with contextlib.suppress(StudentError):  # told in its status, and by each check
                session.load()
            result.exercises = grade_answers(
                exercises,
                session,
                Live(result.seed),
                seed=result.seed,
                hidden=True,
                draws=DRAWS,
                defined=session.defined,
            )
            result.status = session.status
            result.note = "\n".join([*session.notes(), *not_here(result.exercises)])
        if any(e.points is None for e in result.exercises):
            result.status = GRADER_ERROR
            broken = [c.name for e in result.exercises for c in e.checks if c.fault]
            result.note = f"these checks failed themselves: {', '.join(broken)}"
    except SandboxMissing:  # of this machine, so of every submission
        raise
    except Exception as error:  # a fault of ours is told as ours, and stops nobody else's grading
        without_running(result, GRADER_ERROR, f"{type(error).__name__}: {error}")
    result.seconds = round(time.monotonic() - started, 2)
    return result


def environment(limits: Limits, walls: bool) -> dict[str, Any]:
    """What a replay needs to know beside the seed."""
    return {**identity.versions(), **conditions(limits, walls)}


def conditions(limits: Limits, walls: bool) -> dict[str, Any]:
    """How a submission is run, as the person who grades has chosen it."""
    return {"sandbox": "bubblewrap" if walls else "none", "limits": limits.as_dict()}

"""Grades one submission: the one path that every front door takes."""

from __future__ import annotations

import contextlib
import hashlib
import platform
import secrets
import time
from pathlib import Path
from typing import Any

import numpy as np

from . import course
from .answers import StudentError
from .notebooks import Malformed, cells_of, read_bytes
from .results import GRADER_ERROR, ExerciseResult, SubmissionResult
from .running import grade_answers
from .sandbox import Limits
from .session import Session
from .standard import Live

MISSING, MALFORMED = "missing", "malformed"


def fresh_seed() -> int:
    """A seed that nobody can have prepared for."""
    return secrets.randbelow(2**32)


def grade_file(
    student: str, chapter: str, file: Path, *, seed: int, limits: Limits, walls: bool
) -> SubmissionResult:
    """Grade a file that was handed in. Whatever it is, the result has a status and a score."""
    result = SubmissionResult(student, chapter, GRADER_ERROR, [], seed=seed)
    try:
        for folder in (file.parent, file.parent.parent):
            if folder.is_symlink():
                raise Malformed(f"{folder.name} is a link to another folder")
        content = read_bytes(file)
        result.fingerprint = fingerprint(content, chapter)
        cells = cells_of(content, python=file.suffix == ".py")
    except FileNotFoundError:
        others = sorted(p.name for p in file.parent.glob("*") if p.is_file())
        instead = f"; there is {', '.join(others[:5])}" if others else ""
        result.status, result.note = MISSING, f"{file.name} was not handed in{instead}"
        result.exercises = nothing(chapter)
        return result
    except (Malformed, OSError) as error:
        result.status, result.note = MALFORMED, str(error)
        result.exercises = nothing(chapter)
        return result
    return grade_cells(result, cells, limits=limits, walls=walls)


def grade_cells(
    result: SubmissionResult, cells: list[str], *, limits: Limits, walls: bool
) -> SubmissionResult:
    """Fill a result by running the cells in a sandbox and the checks outside it."""
    started = time.monotonic()
    exercises = course.manifest(result.chapter)
    result.environment = environment(limits, walls)
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
                defined=session.defined,
            )
            result.status = session.status
            result.note = "\n".join(session.notes())
        if any(e.points is None for e in result.exercises):
            result.status = GRADER_ERROR
            broken = [c.name for e in result.exercises for c in e.checks if c.fault]
            result.note = f"these checks failed themselves: {', '.join(broken)}"
    except Exception as error:  # a fault of ours is told as ours, and stops nobody else's grading
        result.status, result.note = GRADER_ERROR, f"{type(error).__name__}: {error}"
        result.exercises = [ExerciseResult(e.id, None, e.points, GRADER_ERROR) for e in exercises]
    result.seconds = round(time.monotonic() - started, 2)
    return result


def nothing(chapter: str) -> list[ExerciseResult]:
    """The exercises of a chapter of which nothing was handed in."""
    return [ExerciseResult(e.id, 0.0, e.points, "missing") for e in course.manifest(chapter)]


def fingerprint(content: bytes, chapter: str) -> str:
    """Tells a submission graded by these checks from any other."""
    digest = hashlib.sha256(content)
    folder = Path(__file__).resolve().parent
    files = [
        *folder.glob("*.py"),
        *(folder / room / f"{chapter}.py" for room in ("checks", "misconceptions")),
    ]
    files += [course.ROOT / "solutions" / room / f"{chapter}.py" for room in course.ROOMS]
    for file in sorted(files):
        if file.exists():
            digest.update(file.read_bytes())
    return digest.hexdigest()


def environment(limits: Limits, walls: bool) -> dict[str, Any]:
    """What a replay needs to know beside the seed."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "sandbox": "bubblewrap" if walls else "none",
        "limits": limits.as_dict(),
    }

"""Grades a submission again as its record tells: the same bytes, seed and limits.

A grade that is doubted can be shown to be what the checks say, and where it is not, what differs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import core, course, identity, submissions
from .notebooks import Malformed, read_bytes
from .results import ExerciseResult, SubmissionResult, from_dict
from .sandbox import Limits


def load(record: Path) -> SubmissionResult:
    """The result in a `results.json`. Raises CourseError when it can be no replay's."""
    try:
        kept = from_dict(json.loads(record.read_text("utf-8"))["extra_data"])
    except OSError as error:
        raise course.CourseError(f"{record} cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise course.CourseError(
            f"{record} must be a results.json that grading wrote, but is none ({error})"
        ) from None
    if not kept.environment.get("limits"):
        raise course.CourseError(
            f"{record} tells of nothing that was run (status: {kept.status}): grade it instead"
        )
    course.manifest(kept.chapter)
    return kept


def again(kept: SubmissionResult, submitted: Path, *, walls: bool) -> SubmissionResult:
    """Grade the submission of a record once more. Raises CourseError when it is not the same."""
    file = submissions.located(submitted, kept.file)
    try:
        content = read_bytes(file)
    except (OSError, Malformed) as error:
        raise course.CourseError(
            f"the submission {file} cannot be read ({error}): name the folder of submissions "
            "after the record"
        ) from None
    try:
        limits = Limits(**kept.environment["limits"])
    except TypeError as error:
        raise course.CourseError(f"the record's limits are not those of today: {error}") from None
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != kept.sha256:
        raise course.CourseError(
            f"{file} is not what was graded: its SHA-256 is {sha256[:12]}…, that of the record "
            f"{kept.sha256[:12]}…; find the attempt that the record is of"
        )
    return core.grade_bytes(
        kept.student, kept.chapter, content, seed=kept.seed, limits=limits, walls=walls
    )


def conditions(kept: SubmissionResult, now: SubmissionResult) -> list[str]:
    """What else differs: versions, the course's files, the sandbox."""
    return identity.differences(_short(kept.environment), _short(now.environment))


def differences(kept: SubmissionResult, now: SubmissionResult) -> Iterator[str]:
    """Each value of the grade that is not as it was recorded, to the last digit."""
    yield from _differs("status", kept.status, now.status)
    yield from _differs("note", kept.note, now.note)
    before = {e.id: e for e in kept.exercises}
    after = {e.id: e for e in now.exercises}
    for name in {**before, **after}:
        yield from _of_exercise(name, before.get(name), after.get(name))


def _of_exercise(
    name: str, before: ExerciseResult | None, after: ExerciseResult | None
) -> Iterator[str]:
    if before is None or after is None:
        yield f"{name}: {'not in the record' if before is None else 'only in the record'}"
        return
    for field in ("points", "max_points", "bonus", "status", "misconception"):
        yield from _differs(f"{name} {field}", getattr(before, field), getattr(after, field))
    old, new = ({c.name: vars(c) for c in e.checks} for e in (before, after))
    for check in {**old, **new}:
        for field in {**old.get(check, {}), **new.get(check, {})}:
            values = (checks.get(check, {}).get(field) for checks in (old, new))
            yield from _differs(f"{name} {check} {field}", *values)


def _differs(what: str, before: Any, now: Any) -> Iterator[str]:
    if before != now:
        yield f"{what}: {before!r} → {now!r}"


def _short(environment: dict[str, Any]) -> dict[str, Any]:
    """An environment with its digest in short."""
    return {**environment, "course": str(environment.get("course", "unknown"))[:12]}

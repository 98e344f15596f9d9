"""What answers are held against: the live reference, or its recording in a student's bundle.

The recording holds, for the public checks at the public seed, what the reference answered and what
each known wrong answer answered: enough to grade and to name mistakes, without any solution.
"""

from __future__ import annotations

import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from . import course
from .exercise import Exercise, Misconception
from .replies import Outcome, Runner, StudentError
from .runner import NamespaceRunner
from .running import PUBLIC_SEED, Check, collected
from .wire import pack, unpack

RECORDED = Path(__file__).resolve().parent / "recorded"


class Live:
    """The reference and the misconceptions of this repository, run on the inputs at hand."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._answered: dict[tuple[str, str], list[Outcome]] = {}
        self._failed: dict[tuple[str, str, str], list[Outcome] | None] = {}

    def reference(self, exercise: Exercise, check: str) -> Runner:
        return NamespaceRunner(vars(course.reference(exercise)))

    def wrong_answers(
        self, exercise: Exercise, check: Check, only: set[str] | None = None
    ) -> list[tuple[dict[str, str], list[Outcome]]]:
        found = []
        for wrong in course.misconceptions(exercise):
            if only is None or wrong.id in only:
                trace = self._trace_of(wrong, exercise, check)
                if trace is not None:
                    section = course.section_title(exercise.chapter, wrong.section)
                    about = {"id": wrong.id, "message": wrong.message, "section": section}
                    found.append((about, trace))
        return found

    def _trace_of(
        self, wrong: Misconception, exercise: Exercise, check: Check
    ) -> list[Outcome] | None:
        """What a known wrong answer answers to a check, or None where it passes; run once."""
        key = exercise.id, check.name, wrong.id
        if key not in self._failed:
            student = NamespaceRunner(course.beside_reference(exercise, wrong.wrong))
            asked, error = check.call(student, self._replay(exercise, check), self._seed)
            self._failed[key] = asked.trace if error is not None else None
        return self._failed[key]

    def _replay(self, exercise: Exercise, check: Check) -> Runner:
        """The reference's answers to a check, without running it again for each wrong one."""
        key = exercise.id, check.name
        if key not in self._answered:
            kept = _Keeper(self.reference(exercise, check.name))
            check.call(self.reference(exercise, check.name), kept, self._seed)
            self._answered[key] = kept.kept
        return _Replay(self._answered[key])


class Recording:
    """The same from a file of the bundle; valid for the public seed alone."""

    def __init__(self, file: Path) -> None:
        self._zip = zipfile.ZipFile(file)

    def reference(self, exercise: Exercise, check: str) -> Runner:
        return _Replay(_outcomes(self._load(check)["reference"]))

    def wrong_answers(
        self, exercise: Exercise, check: Check, only: set[str] | None = None
    ) -> list[tuple[dict[str, str], list[Outcome]]]:
        known = self._load(check.name)["wrong"]
        return [(a, _outcomes(trace)) for a, trace in known if only is None or a["id"] in only]

    def _load(self, check: str) -> dict[str, Any]:
        return unpack(self._zip.read(check))


class _Replay:
    """Answers the reference's requests in the order in which they were recorded."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        self._outcomes = iter(outcomes)

    def run(self, request: dict[str, Any]) -> Any:
        outcome = next(self._outcomes)
        if outcome.error is not None:
            raise outcome.error
        return outcome.value


def standard(chapter: str, seed: int = PUBLIC_SEED) -> Live | Recording:
    """The live reference where the solutions are, otherwise the bundle's recording."""
    if course.has_solutions():
        return Live(seed)
    return _recording(chapter)


@cache
def _recording(chapter: str) -> Recording:
    file = RECORDED / f"{chapter}.zip"
    if not file.exists():
        raise course.CourseError(
            f"the recorded answers of {chapter} are missing: unpack the course's bundle again"
        )
    return Recording(file)


def record(chapter: str, file: Path) -> None:
    """Write the recording of a chapter's public checks."""
    by_name = {exercise.name: exercise for exercise in course.manifest(chapter)}
    live = Live(PUBLIC_SEED)
    entries: dict[str, bytes] = {}

    for check in collected(chapter):
        if check.hidden:
            continue
        exercise = by_name[check.exercise]
        kept = _Keeper(live.reference(exercise, check.name))
        student = live.reference(exercise, check.name)
        _, error = check.call(student, kept, PUBLIC_SEED)
        if error is not None:
            raise error
        wrong = [
            (about, [_row(o) for o in trace])
            for about, trace in live.wrong_answers(exercise, check)
        ]
        entries[check.name] = pack({"reference": [_row(o) for o in kept.kept], "wrong": wrong})

    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in entries.items():
            out.writestr(zipfile.ZipInfo(name, (2017, 6, 12, 0, 0, 0)), data)


class _Keeper:
    """A runner that keeps what it answered."""

    def __init__(self, inner: Runner) -> None:
        self._inner = inner
        self.kept: list[Outcome] = []

    def run(self, request: dict[str, Any]) -> Any:
        try:
            value = self._inner.run(request)
        except StudentError as error:
            self.kept.append(Outcome(error=error))
            raise
        self.kept.append(Outcome(value=value))
        return value


def _row(outcome: Outcome) -> dict[str, Any]:
    if outcome.error is not None:
        return {"error": list(outcome.error.types), "text": outcome.error.message}
    return {"value": outcome.value}


def _outcomes(rows: list[dict[str, Any]]) -> list[Outcome]:
    return [
        Outcome(value=row["value"])
        if "value" in row
        else Outcome(error=StudentError(tuple(row["error"]), row["text"]))
        for row in rows
    ]

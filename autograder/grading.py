"""Grades a class: takes over what is finished, has the rest graded, keeps each result at once.

An interruption, even a kill, loses only what was running: a record is written the moment it is
there, and is taken over when neither the submission nor anything that graded it has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from . import autograded, core, engine, grading_process, identity, outputs, submissions
from .report import clean
from .results import GRADER_ERROR, SubmissionResult
from .sandbox import Limits
from .submissions import Task
from .tables import Row, Table, row

TOLD = 30  # changed scores that are told one by one


SeedOf = Callable[[str, str, bytes], int]


class Change(NamedTuple):
    """A score that is not what it was."""

    student: str
    chapter: str
    before: float | None
    now: float | None


@dataclass
class Report:
    """What a run has done. `compared` counts the results that replaced an earlier one."""

    rows: list[Row] = field(default_factory=list)
    unchanged: int = 0
    compared: int = 0
    changed: int = 0
    changes: list[Change] = field(default_factory=list)
    memory: int = 0  # bytes, of the largest grading process

    def compare(self, before: SubmissionResult, now: SubmissionResult) -> None:
        self.compared += 1
        if before.score != now.score:
            self.changed += 1
            if len(self.changes) < TOLD:
                self.changes.append(Change(now.student, now.chapter, before.score, now.score))


class _Underway(NamedTuple):
    """What is kept of a submission while it is graded."""

    place: int
    task: Task
    seed: int
    sha256: str
    before: SubmissionResult | None


@dataclass
class Run:
    """One run over a class. `seed_of(student, chapter, content)` draws the seeds."""

    out: Path
    crowd: engine.Crowd
    seed_of: SeedOf
    limits: Limits
    walls: bool
    resume: bool = True
    try_walls: bool = False
    autograded: Path | None = None  # where nbgrader's formgrader and feedback look
    each: Callable[[], object] = lambda: None
    report: Report = field(default_factory=Report)

    def grade(self, tasks: Sequence[Task]) -> Report:
        """Grade every task. What is finished is in `report`, also when this raises."""
        self._same = {"course": identity.of_course(), "versions": self.crowd.versions}
        self._how = core.conditions(self.limits, self.walls)
        self._table = Table(self.out / "grades.csv")
        try:
            for under, text in self.crowd.run(self._parcels(tasks), grading_process.grade):
                self._finish(under, self._result(under, text))
        finally:
            self.report.rows = self._table.rows()
            if self.report.rows:
                self._table.write()
        return self.report

    def _parcels(self, tasks: Sequence[Task]) -> Iterator[tuple[_Underway, engine.Parcel]]:
        """What is to be run; what needs no running is finished on the way."""
        for place, task in enumerate(tasks):
            before = outputs.read_submission(self.out, task.student, task.chapter)
            content, known = submissions.read(task)
            if known is not None:
                if before == known:
                    self._take_over(place, task, known)
                else:
                    self._finish(_Underway(place, task, 0, known.sha256, before), known)
                continue
            seed = self.seed_of(task.student, task.chapter, content)
            sha256 = hashlib.sha256(content).hexdigest()
            under = _Underway(place, task, seed, sha256, before)
            if self.resume and before is not None and self._holds(before, under):
                self._take_over(place, task, before)
                continue
            yield (
                under,
                {
                    "student": task.student,
                    "chapter": task.chapter,
                    "content": content,
                    "seed": seed,
                    "limits": self.limits.as_dict(),
                    "walls": self.walls,
                    "try_walls": self.try_walls,
                    "same": self._same,
                },
            )

    def _holds(self, before: SubmissionResult, under: _Underway) -> bool:
        return before.status != GRADER_ERROR and before.fingerprint == self._fingerprint(under)

    def _fingerprint(self, under: _Underway) -> str:
        return identity.fingerprint(
            under.sha256, under.task.chapter, under.seed, self.crowd.versions, self._how
        )

    def _result(self, under: _Underway, text: str | None) -> SubmissionResult:
        """What a grading process has told; a fault of its own is this submission's alone."""
        try:
            result, memory = grading_process.answer(text, self._same)
            asked = under.task.student, under.task.chapter, under.seed, under.sha256
            if asked != (result.student, result.chapter, result.seed, result.sha256):
                raise ValueError("the grading process told of another submission")
        except ValueError as error:
            note = f"{error}; grade this one again by itself"
            result = SubmissionResult(under.task.student, under.task.chapter, GRADER_ERROR, [])
            result.seed, result.sha256 = under.seed, under.sha256
            core.without_running(result, GRADER_ERROR, note)
        else:
            self.report.memory = max(self.report.memory, memory)
        result.file = under.task.place
        result.fingerprint = self._fingerprint(under)
        return result

    def _take_over(self, place: int, task: Task, before: SubmissionResult) -> None:
        self.report.unchanged += 1
        if self.autograded is not None:
            autograded.of_task(self.autograded, task, before, anew=False)
        self._keep(place, before)

    def _finish(self, under: _Underway, result: SubmissionResult) -> None:
        if self.autograded is not None:
            autograded.of_task(self.autograded, under.task, result)
        outputs.write_submission(self.out, result)  # last: where its record is, nothing is missing
        if under.before is not None:
            self.report.compare(under.before, result)
        self._keep(under.place, result)

    def _keep(self, place: int, result: SubmissionResult) -> None:
        self._table.add(place, row(result))
        self.each()


def told(report: Report) -> str:
    """The scores that differ from those before, for a terminal; nothing where none were before."""
    if not report.compared:
        return ""
    if not report.changed:
        return f"{report.compared} graded again: no score has changed"

    def points(value: float | None) -> str:
        return "unknown" if value is None else f"{value:g}"

    lines = [f"{report.compared} graded again, scores that have changed: {report.changed}"]
    lines += [
        f"  {clean(c.student, 40)} {c.chapter}: {points(c.before)} → {points(c.now)}"
        for c in report.changes
    ]
    more = report.changed - len(report.changes)
    return "\n".join(lines + ([f"  … and {more} more"] if more else []))

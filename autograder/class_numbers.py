"""Counts what a whole class did, one result at a time.

A class may be large and its messages long: of each result only numbers are kept, and of notes and
messages a bounded number, so that memory grows with the checks and not with the class.
"""

from __future__ import annotations

import heapq
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from . import course, outputs, report
from .assertions import NOT_WRITTEN
from .core import MISSING
from .results import GRADER_ERROR, CheckResult, ExerciseResult, SubmissionResult
from .session import GRADED

SLOWEST = 5
NOTES = 8  # of each status of a chapter
LINES = 1000  # different messages of an exercise; beyond, those seen once are forgotten
UNWRITTEN = "not written"
NUMBER = re.compile(r"[-+]?\b\d[\d_]*(\.\d+)?(e[-+]?\d+)?\b")
LIST = re.compile(r"([(\[])…(, …)*,?([)\]])")


@dataclass
class CheckCount:
    """How one check went, over the submissions in which its exercise was written."""

    name: str
    sentence: str
    hidden: bool
    passed: int = 0
    failed: int = 0
    faults: int = 0  # of the grader: neither passed nor failed

    @property
    def ran(self) -> int:
        return self.passed + self.failed

    @property
    def rate(self) -> float:
        return self.passed / self.ran if self.ran else 0.0


@dataclass
class ExerciseCount:
    """One exercise: its statuses, its checks, and which mistakes have a name."""

    id: str
    statuses: Counter[str] = field(default_factory=Counter)
    checks: dict[str, CheckCount] = field(default_factory=dict)
    named: Counter[tuple[str, str]] = field(default_factory=Counter)  # (id, message)
    unnamed: int = 0
    lines: Counter[tuple[str, str]] = field(default_factory=Counter)  # (check, kind of message)

    @property
    def written(self) -> int:
        return sum(self.statuses[s] for s in ("passed", "partly", "failed"))


@dataclass
class ChapterCount:
    """One chapter. `shares` are the scores as a part of all points, of what was handed in."""

    name: str
    statuses: Counter[str] = field(default_factory=Counter)
    shares: array[float] = field(default_factory=lambda: array("d"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    slowest: list[tuple[float, str, str]] = field(
        default_factory=list
    )  # (seconds, student, status)
    notes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by status
    exercises: dict[str, ExerciseCount] = field(default_factory=dict)

    @property
    def submissions(self) -> int:
        return sum(self.statuses.values())

    @property
    def full(self) -> int:
        return sum(share > 1 - 1e-9 for share in self.shares)


def results_in(out: Path, chapters: tuple[str, ...] = ()) -> Iterator[SubmissionResult | Path]:
    """Each result below a folder of grades, one after the other; the path of one that is not whole.

    Raises CourseError when there is none.
    """
    found = False
    for folder in sorted((out / outputs.STUDENTS).glob("*/*")):
        if not folder.is_dir() or (chapters and folder.name not in chapters):
            continue
        found = True
        yield outputs.read_submission(out, folder.parent.name, folder.name) or folder
    if not found:
        of = f" of {', '.join(chapters)}" if chapters else ""
        raise course.CourseError(
            f"there are no results{of} in {out}: it should be the folder that "
            "`python -m autograder grade SUBMITTED --out FOLDER` wrote"
        )


def count(results: Iterable[SubmissionResult | Path]) -> tuple[list[ChapterCount], list[Path]]:
    """The chapters in the order of the course, and the results that could not be read."""
    chapters: dict[str, ChapterCount] = {}
    unreadable = []
    for result in results:
        if isinstance(result, Path):
            unreadable.append(result)
        else:
            _add(chapters.setdefault(result.chapter, ChapterCount(result.chapter)), result)
    order = [*course.chapters(), *sorted(set(chapters) - set(course.chapters()))]
    return [chapters[name] for name in order if name in chapters], unreadable


def _add(chapter: ChapterCount, result: SubmissionResult) -> None:
    student, note = report.clean(result.student, 60), report.clean(result.note, 300)
    chapter.statuses[result.status] += 1
    if result.status != GRADED:
        told = chapter.notes.setdefault(result.status, [])
        if len(told) < NOTES:
            told.append((student, note))
    if result.score is not None and result.status not in (MISSING, GRADER_ERROR):
        chapter.shares.append(result.score / result.max_score if result.max_score else 0.0)
    if result.seconds:
        chapter.seconds.append(result.seconds)
        slow = (result.seconds, student, result.status)
        chapter.slowest = heapq.nlargest(SLOWEST, [*chapter.slowest, slow])
    for exercise in result.exercises:
        if exercise.checks:
            _add_exercise(chapter.exercises, exercise)


def _add_exercise(exercises: dict[str, ExerciseCount], result: ExerciseResult) -> None:
    counted = exercises.setdefault(result.id, ExerciseCount(result.id))
    failed = [c for c in result.checks if not c.passed and not c.fault]
    unwritten = len(failed) == len(result.checks) and all(map(_unwritten, failed))
    status = UNWRITTEN if unwritten or result.status == "missing" else result.status
    counted.statuses[status] += 1
    for check in result.checks:
        tally = counted.checks.setdefault(
            check.name, CheckCount(check.name, check.sentence, check.hidden)
        )
        tally.faults += bool(check.fault)
        if status != UNWRITTEN and not check.fault:
            tally.passed += check.passed
            tally.failed += not check.passed
    if status == UNWRITTEN or not failed:
        return
    if result.misconception:
        counted.named[result.misconception["id"], result.misconception["message"]] += 1
    else:
        counted.unnamed += 1
        counted.lines[failed[0].name, kind(failed[0].message)] += 1
        if len(counted.lines) > LINES:
            counted.lines = Counter({key: n for key, n in counted.lines.items() if n > 1})


def _unwritten(check: CheckResult) -> bool:
    return f"written yet (it raises {NOT_WRITTEN})" in check.message


def kind(message: str) -> str:
    """The first line of a message with its numbers left open: alike ones count together.

    >>> kind("First at index (0, 3): yours is 1.4e-3, expected 2.")
    'First at index (…): yours is …, expected ….'
    """
    line = report.clean(message.strip().split("\n")[0], 160)
    return LIST.sub(r"\1…\3", NUMBER.sub("…", line))

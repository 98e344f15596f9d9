"""The table of grades, for spreadsheets and for terminals.

It is kept as short rows, because a class may be of a hundred thousand submissions, and written now
and then while grading goes on, so that it never costs more than a small part of the time.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from . import course, outputs, report
from .core import MISSING
from .results import SubmissionResult

PAUSE = 3.0  # seconds between two writings, at least
SHARE = 20  # times as long as the last one took, at least


class Row(NamedTuple):
    """One submission: status, score, and what each exercise earned in the manifest's order."""

    student: str
    chapter: str
    status: str
    score: float | None
    max_score: float
    bonus: float
    points: tuple[float | None, ...]
    named: tuple[str, ...]
    note: str


def row(result: SubmissionResult) -> Row:
    """A result in short."""
    points = {e.id: e.earned for e in result.exercises}
    return Row(
        result.student,
        result.chapter,
        result.status,
        result.score,
        result.max_score,
        result.bonus,
        tuple(points.values()),
        tuple(e.misconception["id"] for e in result.exercises if e.misconception),
        report.clean(result.note),
    )


class Table:
    """`grades.csv`, always whole, of what is finished so far."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._rows: dict[int, Row] = {}
        self._next = 0.0

    def add(self, place: int, new: Row) -> None:
        """Keep a row; `place` is its number in the finished table."""
        self._rows[place] = new
        if time.monotonic() >= self._next:
            self.write()

    def rows(self) -> list[Row]:
        return [self._rows[place] for place in sorted(self._rows)]

    def write(self) -> None:
        began = time.monotonic()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        outputs.replace(self._file, as_csv(self.rows()))
        now = time.monotonic()
        self._next = now + max(PAUSE, SHARE * (now - began))


def as_csv(rows: Sequence[Row]) -> str:
    """One line a submission, one column an exercise."""
    chapters = dict.fromkeys(r.chapter for r in rows)
    columns = {c: [e.id for e in course.manifest(c)] for c in chapters}
    names = [name for ids in columns.values() for name in ids]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["student", "chapter", "status", "score", "max_score", "bonus", *names, "note"])
    for r in rows:
        points = dict(zip(columns[r.chapter], r.points, strict=True))
        lines.writerow(
            [
                outputs._cell(r.student),
                r.chapter,
                r.status,
                _points(r.score),
                _points(r.max_score),
                _points(r.bonus),
                *(_points(points.get(name)) for name in names),
                outputs._cell(r.note.replace("\n", " | ")),
            ]
        )
    return text.getvalue()


def as_text(rows: Sequence[Row]) -> str:
    """The table for a terminal: student, status, score, and the first line of the note.

    Where there is no note, the mistakes that were recognised. What a student did not hand in of
    several chapters stands in one row.
    """
    lines = [("student", "chapter", "status", "score", "note")]
    for r in _without_repeats(rows):
        bonus = f" + {r.bonus:g}" if r.bonus else ""
        score = "?" if r.score is None else f"{r.score:g}{bonus} / {r.max_score:g}"
        note = report.clean(r.note or ", ".join(r.named), 200).split("\n")[0]
        lines.append((report.clean(r.student, 40), r.chapter, r.status, score, note))
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    lines.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2], "-" * widths[3], "----"))
    return "\n".join(
        "  ".join(
            [
                *(cell.ljust(width) for cell, width in zip(line[:3], widths[:3], strict=True)),
                line[3].rjust(widths[3]),
                line[4],
            ]
        ).rstrip()
        for line in lines
    )


def _without_repeats(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows, with one in the place of all that a student did not hand in."""
    absent: dict[str, list[Row]] = {}
    for r in rows:
        if r.status == MISSING:
            absent.setdefault(r.student, []).append(r)
    for r in rows:
        all_absent = absent.get(r.student, [])
        if r.status != MISSING or len(all_absent) == 1:
            yield r
        elif r is all_absent[0]:
            yield r._replace(
                chapter=f"{len(all_absent)} chapters",
                max_score=sum(other.max_score for other in all_absent),
                note="not handed in: " + ", ".join(other.chapter for other in all_absent),
            )


def _points(value: float | None) -> str:
    return "" if value is None else f"{value:g}"

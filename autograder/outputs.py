"""The files that grading writes: a table, and for each submission a record and a feedback page.

`results.json` is laid out as Gradescope reads it; what a resumed run needs is under `extra_data`.
Files are replaced whole, so that a kill at any moment leaves the old one or the new one.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import report
from .core import MISSING
from .results import CheckResult, ExerciseResult, SubmissionResult

STUDENTS = "students"  # a folder of their own: a student may be called like one of the tables


def write_submission(out: Path, result: SubmissionResult) -> None:
    """`out/students/<student>/<chapter>/results.json` and `feedback.html`."""
    folder = out / STUDENTS / result.student / result.chapter
    folder.mkdir(parents=True, exist_ok=True)
    replace(folder / "results.json", json.dumps(_gradescope(result), indent=1, ensure_ascii=False))
    replace(folder / "feedback.html", report.page(result))


def read_submission(out: Path, student: str, chapter: str) -> SubmissionResult | None:
    """What `write_submission` wrote, or None when it is not there or not whole."""
    try:
        text = (out / STUDENTS / student / chapter / "results.json").read_text("utf-8")
        kept = json.loads(text)["extra_data"]
        exercises = [
            ExerciseResult(**{**e, "checks": [CheckResult(**c) for c in e["checks"]]})
            for e in kept.pop("exercises")
        ]
        return SubmissionResult(exercises=exercises, **kept)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_all(out: Path) -> Iterator[SubmissionResult]:
    """Every result that was written below `out`, by student and chapter; broken ones are left out.

    One at a time, so that a class of any size can be gone through.
    """
    for student in sorted(_names_in(out / STUDENTS)):
        for chapter in sorted(_names_in(out / STUDENTS / student)):
            result = read_submission(out, student, chapter)
            if result is not None:
                yield result


def _names_in(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def write_table(file: Path, results: list[SubmissionResult]) -> None:
    """One row a submission: status, score, and the points of each exercise."""
    names = list(dict.fromkeys(e.id for r in results for e in r.exercises))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["student", "chapter", "status", "score", "max_score", *names, "note"])
    for result in results:
        points = {e.id: e.points for e in result.exercises}
        rows.writerow(
            [
                _cell(result.student),
                result.chapter,
                result.status,
                _points(result.score),
                _points(result.max_score),
                *(_points(points.get(name)) for name in names),
                _cell(report.clean(result.note).replace("\n", " | ")),
            ]
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    replace(file, text.getvalue())


def replace(file: Path, text: str) -> None:
    """Write a file so that it is always whole."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_text(text, "utf-8", errors="replace")
    os.replace(part, file)


def table_text(results: list[SubmissionResult]) -> str:
    """The table for a terminal: student, status, score, and the first line of the note.

    Where there is no note, the mistakes that were recognised. What a student did not hand in of
    several chapters stands in one row.
    """
    rows = [("student", "chapter", "status", "score", "note")]
    for r in _without_repeats(results):
        score = "?" if r.score is None else f"{r.score:g} / {r.max_score:g}"
        named = [e.misconception["id"] for e in r.exercises if e.misconception]
        note = report.clean(r.note or ", ".join(named), 200).split("\n")[0]
        rows.append((report.clean(r.student, 40), r.chapter, r.status, score, note))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = []
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True)]
        cells[3] = row[3].rjust(widths[3])
        lines.append("  ".join([*cells, row[4]]).rstrip())
        if number == 0:
            lines.append("  ".join("-" * width for width in [*widths, 4]))
    return "\n".join(lines)


def _without_repeats(results: list[SubmissionResult]) -> Iterator[SubmissionResult]:
    """The results, with one in the place of all that a student did not hand in."""
    absent: dict[str, list[SubmissionResult]] = {}
    for r in results:
        if r.status == MISSING:
            absent.setdefault(r.student, []).append(r)
    for r in results:
        all_absent = absent.get(r.student, [])
        if r.status != MISSING or len(all_absent) == 1:
            yield r
        elif r is all_absent[0]:
            together = [e for other in all_absent for e in other.exercises]
            note = "not handed in: " + ", ".join(other.chapter for other in all_absent)
            yield dataclasses.replace(
                r, chapter=f"{len(all_absent)} chapters", exercises=together, note=note
            )


def _cell(text: str) -> str:
    """Text that a spreadsheet shows and does not compute."""
    text = report.clean(text)
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _points(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _gradescope(result: SubmissionResult) -> dict[str, Any]:
    tests = [
        {
            "name": e.id,
            "score": e.points or 0.0,
            "max_score": e.max_points,
            "status": "passed" if e.status == "passed" else "failed",
            "output": report.text(e, public=False),
            "visibility": "visible",
        }
        for e in result.exercises
    ]
    kept = {
        "student": result.student,
        "chapter": result.chapter,
        "status": result.status,
        "note": result.note,
        "seed": result.seed,
        "seconds": result.seconds,
        "fingerprint": result.fingerprint,
        "environment": result.environment,
        "exercises": [
            {
                "id": e.id,
                "points": e.points,
                "max_points": e.max_points,
                "status": e.status,
                "misconception": e.misconception,
                "checks": [vars(c) for c in e.checks],
            }
            for e in result.exercises
        ],
    }
    if result.score is None:  # Gradescope then tells of a failed autograder, and gives no zero
        return {"output": "The grader failed; no score was given.", "extra_data": kept}
    return {
        "score": result.score,
        "execution_time": result.seconds,
        "output": report.clean(f"Status: {result.status}\n{result.note}".strip()),
        "visibility": "visible",
        "tests": tests,
        "extra_data": kept,
    }

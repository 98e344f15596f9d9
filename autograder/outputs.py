"""The files that grading writes for each submission: a record and a feedback page.

`results.json` is laid out as Gradescope reads it; what a resumed run needs is under `extra_data`.
Files are replaced whole, so that a kill at any moment leaves the old one or the new one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from . import report
from .results import SubmissionResult, from_dict

FORMULA = re.compile(r"(^\s*|[;\t\r\n]\s*)(?=[-=+@＝＋－＠])")  # also in full width
STUDENTS = "students"  # a folder of their own: a student may be called like one of the tables


def write_submission(out: Path, result: SubmissionResult) -> None:
    """`out/students/<student>/<chapter>/results.json` and `feedback.html`."""
    folder = out / STUDENTS / result.student / result.chapter
    folder.mkdir(parents=True, exist_ok=True)
    replace(folder / "feedback.html", report.page(result))
    # The record comes last: where it is, nothing is missing.
    replace(folder / "results.json", json.dumps(_gradescope(result), indent=1, ensure_ascii=False))


def read_submission(out: Path, student: str, chapter: str) -> SubmissionResult | None:
    """What `write_submission` wrote, or None when it is not there or not whole."""
    try:
        text = (out / STUDENTS / student / chapter / "results.json").read_text("utf-8")
        return from_dict(json.loads(text)["extra_data"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def read_some(out: Path, which: Iterable[tuple[str, str]]) -> Iterator[SubmissionResult]:
    """The results of these (student, chapter), one at a time, as far as they are there."""
    for student, chapter in which:
        result = read_submission(out, student, chapter)
        if result is not None:
            yield result


def read_all(out: Path) -> Iterator[SubmissionResult]:
    """Every result that was written below `out`, by student and chapter; broken ones are left out.

    One at a time, so that a class of any size can be gone through.
    """
    for student in sorted(_names_in(out / STUDENTS)):
        chapters = sorted(_names_in(out / STUDENTS / student))
        yield from read_some(out, ((student, chapter) for chapter in chapters))


def _names_in(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def replace(file: Path, text: str) -> None:
    """Write a file so that it is always whole."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_text(text, "utf-8", errors="replace")
    os.replace(part, file)


def _cell(text: str) -> str:
    """Text that a spreadsheet shows and does not compute, also where it splits at semicolons."""
    return FORMULA.sub(r"\1'", report.clean(text))


def _gradescope(result: SubmissionResult) -> dict[str, Any]:
    tests = [
        {
            "name": e.id,
            "score": e.earned or 0.0,
            "max_score": e.max_points,
            **({} if e.untried else {"status": "passed" if e.status == "passed" else "failed"}),
            "output": report.text(e, public=False),
            "visibility": "visible",
        }
        for e in result.exercises
    ]
    kept = dataclasses.asdict(result)
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

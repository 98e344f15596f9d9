"""Check the answers in a notebook or a Python file, as `check(...)` does in a notebook.

Reads FILE (.ipynb, or .py that defines the names) and writes nothing. A chapter's notebook, and a
file named after a chapter, are held against all of its exercises; any other file against those that
it defines. --json prints one JSON object a line, one line for each exercise.

examples:
  python -m autograder check rope.ipynb
  python -m autograder check my_answers.py --exercise apply_rope --json

exit codes: 0 everything passed, 1 something did not, 2 the request is wrong, 3 no sandbox (--all).
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import groupby
from pathlib import Path

from .. import course, report, sandbox
from ..exercise import Exercise
from ..notebooks import Malformed, code_cells
from ..replies import StudentError
from ..results import ExerciseResult
from ..running import PUBLIC_SEED, grade_answers
from ..sandbox import Limits
from ..session import Session
from ..standard import standard


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument(
        "--exercise",
        metavar="ID",
        action="append",
        help="only this one: its name, or CHAPTER.NAME (may be repeated)",
    )
    parser.add_argument(
        "--all", action="store_true", help="the hidden checks too; needs the reference"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line (JSON Lines)")
    parser.add_argument(
        "--seed", type=int, default=PUBLIC_SEED, help="inputs of another grading (with --all)"
    )
    parser.add_argument(
        "--without-sandbox", action="store_true", help="run the file's code without walls"
    )


def run(options: argparse.Namespace) -> int:
    if options.all and not course.has_solutions():
        raise course.CourseError("--all needs the reference, which only an instructor has")
    if options.seed != PUBLIC_SEED and not options.all:
        raise course.CourseError("--seed goes with --all: public checks have one seed")
    walls = not options.without_sandbox and (options.all or sandbox.available())
    if walls:
        sandbox.require()
    asked = [course.find_exercise(name) for name in options.exercise or ()]
    try:
        cells, grade_ids = code_cells(options.file)
    except FileNotFoundError:
        raise course.CourseError(f"there is no file {options.file}") from None
    except Malformed as error:
        raise course.CourseError(f"{options.file}: {error}") from None
    names = [e.name for e in course.exercises().values()]
    with Session(cells, names, Limits(), walls=walls) as session:
        try:
            session.load()
        except StudentError as gone:
            raise course.CourseError(f"{options.file} cannot run: {gone.message}") from None
        for note in session.notes():
            print(report.clean(f"note: {note}"), file=sys.stderr)
        results = _grade(session, asked or _meant(options.file, grade_ids, session), options)
    for result in results:
        if options.json:
            print(json.dumps(result.as_json(), ensure_ascii=False))
        else:
            print(report.text(result, public=not options.all))
    if not options.all and not options.json:
        print(report.PUBLIC_NOTE)
    return 0 if all(result.status == "passed" for result in results) else 1


def _meant(file: Path, grade_ids: set[str], session: Session) -> list[Exercise]:
    """The exercises that a file is about: a chapter's, or those that it defines."""
    every = course.exercises().values()
    chapters = {e.chapter for e in every if e.chapter == file.stem or e.name in grade_ids}
    found = [e for e in every if e.chapter in chapters]
    found = found or [e for e in every if e.name in session.defined]
    if not found:
        raise course.CourseError(
            f"{file} defines no exercise: name one with --exercise, or define one of "
            + ", ".join(e.name for e in every)
        )
    return found


def _grade(
    session: Session, exercises: list[Exercise], options: argparse.Namespace
) -> list[ExerciseResult]:
    results = []
    for chapter, group in groupby(exercises, key=lambda e: e.chapter):
        results += grade_answers(
            list(group),
            session,
            standard(chapter, options.seed),
            seed=options.seed,
            hidden=options.all,
            defined=session.defined,
            show_hidden_values=True,
        )
    return results

"""Check the answers in a notebook or a Python file, as `check(...)` does in a notebook.

Reads FILE (.ipynb, or .py that defines the names) and writes nothing. A file named after a chapter
is held against all exercises of the chapter, any other against those that it defines.

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
from ..answers import StudentError
from ..exercise import Exercise
from ..notebooks import Malformed, code_cells
from ..results import ExerciseResult
from ..running import PUBLIC_SEED, grade_answers
from ..sandbox import Limits
from ..session import Session
from ..standard import standard


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--exercise", metavar="ID", help="only this one: its name, or CHAPTER.NAME")
    parser.add_argument(
        "--all", action="store_true", help="the hidden checks too; needs the reference"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per exercise")
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
    try:
        cells = code_cells(options.file)
    except FileNotFoundError:
        raise course.CourseError(f"there is no file {options.file}") from None
    except IsADirectoryError:
        raise course.CourseError(f"{options.file} is a folder: name a file") from None
    except Malformed as error:
        raise course.CourseError(f"{options.file}: {error}") from None
    names = [e.name for e in course.exercises().values()]
    with Session(cells, names, Limits(), walls=walls) as session:
        try:
            session.load()
        except StudentError as gone:
            raise course.CourseError(f"{options.file} cannot run: {gone.message}") from None
        for number, reason in sorted(session.failed_cells.items()):
            print(report.clean(f"note: code cell {number + 1} failed: {reason}"), file=sys.stderr)
        results = _grade(session, _chosen(options, session), options)
    for result in results:
        if options.json:
            print(json.dumps(result.as_json(), ensure_ascii=False))
        else:
            print(report.text(result, public=not options.all))
    if not options.all and not options.json:
        print(report.PUBLIC_NOTE)
    return 0 if all(result.status == "passed" for result in results) else 1


def _chosen(options: argparse.Namespace, session: Session) -> list[Exercise]:
    if options.exercise:
        return [course.find_exercise(options.exercise)]
    if options.file.stem in course.chapters():
        return list(course.manifest(options.file.stem))
    found = [e for e in course.exercises().values() if e.name in session.defined]
    if not found:
        raise course.CourseError(
            f"{options.file} defines no exercise: name one with --exercise, or define one of "
            + ", ".join(e.name for e in course.exercises().values())
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

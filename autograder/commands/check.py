"""Check the answers in a notebook or a Python file, as `check(...)` does in a notebook.

Reads FILE (.ipynb, or .py that defines the names) and writes nothing. A chapter's notebook, and a
file named after a chapter, are held against all of its exercises; any other file against those that
it defines. --json prints one JSON object a line, one line for each exercise.

A PyTorch exercise is asked once more on CUDA, where there is a GPU, what it passed on the CPU. That
costs no point and changes no exit code. Inside the sandbox there is none: use --without-sandbox.

examples:
  python -m autograder check rope.ipynb
  python -m autograder check my_answers.py --exercise apply_rope --json

exit codes: 0 everything passed, 1 something did not, 2 the request is wrong, 3 no sandbox (--all).
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from .. import course, gpu, report, sandbox
from ..exercise import Exercise
from ..notebooks import Malformed, code_cells
from ..replies import StudentError
from ..results import ExerciseResult
from ..running import PUBLIC_SEED, grade_answers
from ..sandbox import Limits
from ..second_look import ROOM, SecondLook, look_again
from ..session import Session
from ..standard import standard

HIDDEN = "the sandbox hides the GPU from your code, and --without-sandbox shows it"
# What CUDA takes at its start is not the answer's.
ON_CUDA = Limits(call_seconds=60.0, cpu_seconds=300, memory_bytes=1 << 40, open_files=1024)


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
        exercises = asked or _meant(options.file, grade_ids, session)
        results = _grade(session, exercises, options)
    looks = _look_again(cells, exercises, results, options, walls=walls)
    for result in results:
        look = looks.get(result.id)
        if options.json:
            beside = {} if look is None else {"cuda": look.as_json()}
            print(json.dumps(result.as_json() | beside, ensure_ascii=False))
        else:
            tried = look if look and look.tried else None
            print(report.text(result, public=not options.all, look=tried))
    if not options.json:
        for untried in dict.fromkeys(look.headline() for look in looks.values() if not look.tried):
            print(report.clean(untried))  # once, however many exercises it is true of
    if not options.all and not options.json:
        print(report.PUBLIC_NOTE)
    return 0 if all(result.status == "passed" or result.untried for result in results) else 1


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


def _look_again(
    cells: list[str],
    exercises: list[Exercise],
    results: list[ExerciseResult],
    options: argparse.Namespace,
    *,
    walls: bool,
) -> dict[str, SecondLook]:
    """What the PyTorch exercises do on a GPU, each in a process of its own: one may stop it."""
    by_id = {result.id: result for result in results}
    concerned = [e for e in exercises if e.room == ROOM and not by_id[e.id].untried]
    if not concerned:
        return {}
    place = gpu.find()
    if walls and not place.why_not:
        place = replace(place, why_not=HIDDEN)
    names = [e.name for e in course.exercises().values()]
    looks = {}
    for exercise in concerned:
        with Session(cells, names, ON_CUDA, walls=False, cuda=True) as session:
            held = standard(exercise.chapter, options.seed)
            looks[exercise.id] = look_again(
                exercise, by_id[exercise.id], session, held, place, options.seed
            )
    return looks

"""Export the grades to Canvas, Moodle, a table of checks, Gradescope, JUnit or feedback pages.

Reads GRADES, the folder that `grade --out` wrote, and with --roster the table that the platform
exported. Writes OUT: a file, and for gradescope and feedback a folder or a .zip. A grade that the
grader could not give stays empty; whom the roster does not know is told.

examples:
  python -m autograder export class/grades --to canvas class/canvas.csv --roster gradebook.csv
  python -m autograder export class/grades --to feedback class/feedback.zip --chapter rope

exit codes: 0 everything was exported, 1 something was left out, 2 the request is wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..course import CourseError
from ..exports import FORMS, Request, export
from ..report import clean


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("grades", type=Path, metavar="GRADES")
    parser.add_argument("--to", dest="form", choices=list(FORMS), required=True)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument(
        "--roster", type=Path, metavar="FILE", help="Canvas's gradebook or Moodle's worksheet (CSV)"
    )
    parser.add_argument("--chapter", help="only this chapter")
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="OURS=THEIRS",
        help="the roster's column for a chapter (Canvas), or for Grade and the like (Moodle)",
    )
    parser.add_argument(
        "--scale", action="store_true", help="points in proportion to the platform's maximum"
    )
    parser.add_argument(
        "--collected", type=Path, metavar="FILE", help="default: collected.json beside GRADES"
    )


def run(options: argparse.Namespace) -> int:
    columns = dict(pair.split("=", 1) for pair in options.column if "=" in pair)
    if len(columns) < len(options.column):
        raise CourseError("--column should be OURS=THEIRS, each OURS once")
    request = Request(
        options.grades,
        options.out,
        roster=options.roster,
        chapter=options.chapter,
        columns=columns,
        scale=options.scale,
        collected=options.collected,
    )
    results = export(options.form, request)
    for note in request.notes:
        print(clean(f"note: {note}"))
    for line in request.left_out:
        print(clean(f"left out: {line}"), file=sys.stderr)
    print(f"{len(results)} submissions, {len(request.left_out)} left out: {options.out}")
    return 1 if request.left_out else 0

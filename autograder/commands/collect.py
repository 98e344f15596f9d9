"""Collect what students handed in, from a learning platform, nbgrader's exchange or a folder.

Reads SOURCE: the zip of all submissions that Canvas or Moodle lets you download (or the folder it
unpacks to), the root of an exchange, or a folder of notebooks named STUDENT_CHAPTER.ipynb,
CHAPTER/STUDENT.ipynb or STUDENT/CHAPTER.ipynb. Writes INTO/<student>/<chapter>/<chapter>.ipynb,
which `grade` reads; beside INTO, what is replaced goes to a folder with -before in its name, and
collected.json tells under which name each submission came. Nothing is lost: what was not taken is
told with its reason. A second run changes nothing.

examples:
  python -m autograder collect submissions.zip --from canvas --chapter rope
  python -m autograder collect handed-in/ --from flat --into class/submitted --dry-run

exit codes: 0 everything was taken, 1 something was not, 2 the request is wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..collect import KINDS, collect
from ..course import CourseError
from ..report import clean


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="SOURCE")
    parser.add_argument("--from", dest="kind", choices=KINDS, required=True)
    parser.add_argument("--chapter", help="what SOURCE is about, or the only one to take")
    parser.add_argument(
        "--into", type=Path, default=Path("class/submitted"), help="default: %(default)s"
    )
    parser.add_argument("--dry-run", action="store_true", help="tell what would be done")
    parser.add_argument(
        "--file-times",
        action="store_true",
        help="the files' dates are the times of handing in (a platform's zip has its own date)",
    )


def run(options: argparse.Namespace) -> int:
    try:
        report = collect(
            options.source,
            options.kind,
            options.into,
            chapter=options.chapter,
            dry_run=options.dry_run,
            file_times=options.file_times,
        )
    except OSError as error:
        raise CourseError(f"{error.filename or options.into}: {error.strerror}") from None
    would = "would be " if options.dry_run else ""
    for label in report.replaced:
        print(clean(f"{would}replaced: {label}"))
    for note in report.notes:
        print(clean(f"note: {note}"))
    for what, why in report.refused:
        print(clean(f"not taken: {what}: {why}"), file=sys.stderr)
    print(
        f"{len(report.new)} {would}new, {len(report.replaced)} {would}replaced, "
        f"{len(report.unchanged)} unchanged, {len(report.refused)} not taken, in {options.into}"
    )
    return 1 if report.refused else 0

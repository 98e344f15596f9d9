"""Write a class of sample submissions: right, wrong, broken and hostile ones.

Reads the chapters and the solutions; writes OUT/<student>/<chapter>/<chapter>.ipynb. The broken and
hostile ones are written for the first chapter alone.

examples:
  python -m autograder sample-class
  python -m autograder sample-class rope --out /tmp/submitted

exit codes: 0 written, 2 the request is wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import course


def arguments(parser: argparse.ArgumentParser) -> None:
    default = course.ROOT / "class" / "submitted"
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="default: all")
    parser.add_argument("--out", type=Path, default=default, help="folder (%(default)s)")


def run(options: argparse.Namespace) -> int:
    from ..sample_class import write  # nbformat takes a second to import

    chapters = options.chapters or course.chapters()
    for chapter in chapters:
        course.manifest(chapter)
        # one endless loop shows what a loop does; the next would only take its time again
        students = write(chapter, options.out, odd=chapter == chapters[0])
        print(f"{options.out}: {len(students)} submissions of {chapter}")
    return 0

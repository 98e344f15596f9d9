"""Write a class of sample submissions: right, wrong, broken and hostile ones.

Reads the chapters and the solutions; writes OUT/<student>/<chapter>/<chapter>.ipynb.

examples:
  python -m autograder sample-class
  python -m autograder sample-class rope --out /tmp/submitted

exit codes: 0 written, 2 the request is wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import course
from ..sample_class import write


def arguments(parser: argparse.ArgumentParser) -> None:
    default = course.ROOT / "class" / "submitted"
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="default: all")
    parser.add_argument("--out", type=Path, default=default, help="folder (%(default)s)")


def run(options: argparse.Namespace) -> int:
    for chapter in options.chapters or course.chapters():
        course.manifest(chapter)
        students = write(chapter, options.out)
        print(f"{options.out}: {len(students)} submissions of {chapter}")
    return 0

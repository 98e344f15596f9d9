"""Make nbgrader's source notebooks from the chapters of the book.

Reads book/CHAPTER.md and solutions/, writes class/source/CHAPTER/CHAPTER.ipynb (with solutions: not
for students; `nbgrader generate_assignment CHAPTER` takes them out).

examples:
  python -m autograder generate
  python -m autograder generate rope --out class/source

exit codes: 0 written, 2 the chapter or the request is wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import course


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="default: all")
    parser.add_argument("--out", type=Path, default=course.ROOT / "class" / "source")


def run(options: argparse.Namespace) -> int:
    from ..generate import generate  # nbformat takes a second to import

    for chapter in options.chapters or course.chapters():
        course.manifest(chapter)
        print(generate(chapter, options.out))
    return 0

"""Make the bundle that students get: notebooks, public checks, recorded answers, no solution.

Reads the book, the checks and the solutions; writes the folder OUT and OUT.zip. Refuses to hand
over a bundle in which its leak test finds a solution or a hidden check.

examples:
  python -m autograder release
  python -m autograder release --out handout/spring

exit codes: 0 written, 1 the leak test found something, 2 the request is wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .. import course


def arguments(parser: argparse.ArgumentParser) -> None:
    default = course.ROOT / "class" / "bundle"
    parser.add_argument("--out", type=Path, default=default, help="folder (%(default)s)")


def run(options: argparse.Namespace) -> int:
    from ..release import Leak, release  # nbformat takes a second to import

    try:
        archive = release(options.out)
        print(f"bundle: {options.out}\nzip:    {archive}\nno line of a solution is inside")
    except Leak as leak:
        print(f"error: not released: {leak}", file=sys.stderr)
        return 1
    return 0

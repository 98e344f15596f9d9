"""Test the checks themselves: reference, stub and every known wrong answer against every check.

Reads checks, misconceptions and solutions; writes nothing; prints the matrix as a table.

examples:
  python -m autograder selftest
  python -m autograder selftest rope --seed 7

exit codes: 0 the matrix holds, 1 it does not, 2 the request is wrong.
"""

from __future__ import annotations

import argparse

from .. import course
from ..running import PUBLIC_SEED
from ..selftest import matrix


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="default: all")
    parser.add_argument("--seed", type=int, default=PUBLIC_SEED)


def run(options: argparse.Namespace) -> int:
    problems = []
    for chapter in options.chapters or course.chapters():
        found = matrix(chapter, options.seed)
        width = max(len(row.answer) for row in found.rows)
        exercise = None
        for row in found.rows:
            if row.exercise != exercise:
                exercise = row.exercise
                print(f"\n{exercise} ({row.total} checks)")
            outcome = f"fails {len(row.failed):2} of {row.total}, {row.expected}"
            print(f"  {'✗' if row.problem else '✓'} {row.answer.ljust(width)}  {outcome}")
        problems += found.problems
    print()
    for problem in problems:
        print(f"problem: {problem}")
    print(f"{len(problems)} problems")
    return 1 if problems else 0

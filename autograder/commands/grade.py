"""Grade the submissions of a class in the sandbox, in parallel.

Reads SUBMITTED/<student>/<chapter>/<chapter>.ipynb (nbgrader's layout). Writes to OUT: grades.csv
and table.txt, and in students/ for each submission results.json (for Gradescope) and feedback.html;
and into nbgrader's grade book: the scores. Finished results are kept: run it again after an
interruption, or to grade only what is new or changed.

examples:
  python -m autograder grade class/submitted --out class/grades
  python -m autograder grade class/submitted --out class/grades --chapter rope --jobs 8 --seed 7

exit codes: 0 every submission has a grade, 1 the grader failed on some, 2 the request is wrong,
3 there is no sandbox, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tqdm import tqdm

from .. import batch, course, gradebook, outputs, report, sandbox, walls
from ..results import GRADER_ERROR, SubmissionResult
from ..sandbox import Limits


def arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Limits()
    parser.add_argument("submitted", type=Path, metavar="SUBMITTED")
    parser.add_argument("--out", type=Path, required=True, help="folder for what is written")
    parser.add_argument("--chapter", action="append", help="only this chapter (may be repeated)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="submissions at once (%(default)s)"
    )
    parser.add_argument("--seed", type=int, help="inputs of the checks (default: fresh for each)")
    parser.add_argument("--gradebook", metavar="URL", help="default: that of nbgrader_config.py")
    parser.add_argument(
        "--wall-seconds",
        type=float,
        default=defaults.wall_seconds,
        help="for one submission (%(default)g)",
    )
    parser.add_argument(
        "--cell-seconds",
        type=float,
        default=defaults.cell_seconds,
        help="for one of its cells (%(default)g)",
    )
    parser.add_argument(
        "--memory", type=int, default=defaults.memory_bytes >> 20, help="MiB for one (%(default)s)"
    )
    parser.add_argument("--again", action="store_true", help="grade what is finished once more")
    parser.add_argument(
        "--without-sandbox",
        action="store_true",
        help="run students' code without walls: it can then do whatever you can",
    )


def run(options: argparse.Namespace) -> int:
    if options.jobs < 1:
        raise course.CourseError(f"--jobs must be at least 1, but is {options.jobs}")
    for chapter in options.chapter or ():
        course.manifest(chapter)  # an unknown one is refused here
    tasks = batch.find(options.submitted, tuple(options.chapter) if options.chapter else None)
    if options.without_sandbox:
        print("warning: no sandbox; students' code can do whatever you can", file=sys.stderr)
    else:
        sandbox.require()
        for line in walls.check():
            print(line, file=sys.stderr)
    url = options.gradebook or gradebook.default_url()
    limits = Limits(
        cell_seconds=options.cell_seconds,
        wall_seconds=options.wall_seconds,
        memory_bytes=options.memory << 20,
    )
    bar = tqdm(total=len(tasks), unit="submission", disable=None)
    finished: list[SubmissionResult] = []
    unchanged = 0

    def each(result: SubmissionResult, earlier: bool) -> None:
        nonlocal unchanged
        finished.append(result)
        unchanged += earlier
        bar.update()

    try:
        results = batch.grade_all(
            tasks,
            options.out,
            jobs=options.jobs,
            seed=options.seed,
            limits=limits,
            walls=not options.without_sandbox,
            resume=not options.again,
            each=each,
        )
    finally:
        bar.close()
        gradebook.write(url, finished)
    table = outputs.table_text(results)
    outputs.replace(options.out / "table.txt", table + "\n")
    print(table)
    print(f"\n{len(results)} submissions, {unchanged} of them unchanged since they were graded")
    print(f"table:      {options.out / 'grades.csv'}")
    print(f"feedback:   {options.out}/{outputs.STUDENTS}/STUDENT/CHAPTER/feedback.html")
    print(f"grade book: {url}")
    broken = [r for r in results if r.status == GRADER_ERROR]
    for result in broken:
        print(
            report.clean(f"grader error: {result.student} {result.chapter}: {result.note}"),
            file=sys.stderr,
        )
    return 1 if broken else 0

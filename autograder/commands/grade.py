"""Grade the submissions of a class in the sandbox, on every core or on many machines.

Reads SUBMITTED/<student>/<chapter>/<chapter>.ipynb (nbgrader's layout) and the course's secret.
Writes to OUT: grades.csv and table.txt, and in students/ for each submission results.json (for
Gradescope) and feedback.html; and into nbgrader's grade book: the scores. Finished results are
kept: run it again after an interruption, or to grade only what is new or changed. With --replay it
grades the submission of one results.json again and tells what differs; that writes nothing.

examples:
  python -m autograder grade class/submitted --out class/grades
  python -m autograder grade class/submitted --out class/grades --chapter rope --jobs 8 --seed 7
  python -m autograder grade class/submitted --out class/grades --scheduler tls://head:8786
  python -m autograder grade --replay class/grades/students/ada/rope/results.json class/submitted

exit codes: 0 every submission has a grade (with --replay: the same one), 1 the grader failed on
some (with --replay: something differs), 2 the request is wrong, 3 there is no sandbox, 130
interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tqdm import tqdm

from .. import course, engine, gradebook, grading, outputs, report, sandbox, seeds, submissions
from .. import replay as replaying
from ..results import GRADER_ERROR
from ..sandbox import Limits
from ..tables import as_text

PRINTED = 200  # rows of the table; all of it is in table.txt


def arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Limits()
    parser.add_argument("submitted", type=Path, metavar="SUBMITTED", nargs="?")
    parser.add_argument("--out", type=Path, help="folder for what is written")
    parser.add_argument("--chapter", action="append", help="only this chapter (may be repeated)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="submissions at once (%(default)s)"
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="a Dask scheduler whose workers grade, not this machine",
    )
    parser.add_argument("--seed", type=int, help="one for all (default: from the course's secret)")
    parser.add_argument(
        "--secret",
        type=Path,
        metavar="FILE",
        help=f"the course's secret (default: ${seeds.VARIABLE}, or class/secret, made if missing)",
    )
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
        "--call-seconds",
        type=float,
        default=defaults.call_seconds,
        help="for one call of an answer (%(default)g)",
    )
    parser.add_argument(
        "--memory", type=int, default=defaults.memory_bytes >> 20, help="MiB for one (%(default)s)"
    )
    parser.add_argument("--again", action="store_true", help="grade what is finished once more")
    parser.add_argument(
        "--replay", type=Path, metavar="RESULT.json", help="grade one again, and tell what differs"
    )
    parser.add_argument(
        "--without-sandbox",
        action="store_true",
        help="run students' code without walls: it can then do whatever you can",
    )


def run(options: argparse.Namespace) -> int:
    if options.replay:
        return _replay(options)
    if options.submitted is None or options.out is None:
        raise course.CourseError("grading wants two folders: grade SUBMITTED --out OUT")
    if options.jobs < 1:
        raise course.CourseError(f"--jobs must be at least 1, but is {options.jobs}")
    if options.seed is not None and options.seed < 0:
        raise course.CourseError(f"--seed must not be negative, but is {options.seed}")
    for chapter in options.chapter or ():
        course.manifest(chapter)  # an unknown one is refused here
    tasks = submissions.find(options.submitted, tuple(options.chapter) if options.chapter else None)
    _look_at_the_walls(options)
    url = options.gradebook or gradebook.default_url()
    began = time.monotonic()
    crowd = engine.Crowd(options.jobs, options.scheduler)
    work = grading.Run(
        options.out,
        crowd,
        _seeds(options),
        Limits(
            cell_seconds=options.cell_seconds,
            call_seconds=options.call_seconds,
            wall_seconds=options.wall_seconds,
            memory_bytes=options.memory << 20,
        ),
        walls=not options.without_sandbox,
        resume=not options.again,
        try_walls=options.scheduler is not None,
        autograded=options.submitted.resolve().parent / "autograded",
    )
    try:
        with crowd, tqdm(total=len(tasks), unit="submission", disable=None) as bar:
            work.each = bar.update
            work.grade(tasks)
    finally:  # also what was finished before an interruption
        if work.report.rows:
            done = ((r.student, r.chapter) for r in work.report.rows)
            gradebook.write(url, outputs.read_some(options.out, done), options.submitted)
    return _tell(options, work.report, url, time.monotonic() - began)


def _look_at_the_walls(options: argparse.Namespace) -> None:
    """The sandbox is tried here, unless the submissions are run elsewhere."""
    if options.without_sandbox:
        print("warning: no sandbox; students' code can do whatever you can", file=sys.stderr)
    elif options.scheduler is None or options.replay:
        from .. import walls

        sandbox.require()
        for line in walls.check():
            print(line, file=sys.stderr)


def _seeds(options: argparse.Namespace) -> grading.SeedOf:
    if options.seed is not None:
        return lambda student, chapter, content: int(options.seed)
    key = seeds.secret(options.secret)
    return lambda student, chapter, content: seeds.of(student, chapter, content, key)


def _tell(options: argparse.Namespace, done: grading.Report, url: str, seconds: float) -> int:
    table = as_text(done.rows)
    outputs.replace(options.out / "table.txt", table + "\n")
    shown = table.split("\n")
    print("\n".join(shown[: PRINTED + 2]))
    if len(shown) > PRINTED + 2:
        print(f"… and {len(shown) - PRINTED - 2} more, in {options.out / 'table.txt'}")
    same = f"{done.unchanged} of them unchanged since they were graded"
    print(f"\n{len(done.rows)} submissions, {same}")
    if changes := grading.told(done):
        print(changes)
    if done.memory:
        rate = (len(done.rows) - done.unchanged) / seconds
        megabytes = done.memory >> 20
        print(f"{rate:.2f} submissions a second; largest grading process: {megabytes} MiB")
    print(f"table:      {options.out / 'grades.csv'}")
    print(f"feedback:   {options.out}/{outputs.STUDENTS}/STUDENT/CHAPTER/feedback.html")
    print(f"grade book: {gradebook.shown(url)}")
    broken = [r for r in done.rows if r.status == GRADER_ERROR]
    for row in broken:
        print(
            report.clean(f"grader error: {row.student} {row.chapter}: {row.note}"), file=sys.stderr
        )
    return 1 if broken else 0


def _replay(options: argparse.Namespace) -> int:
    kept = replaying.load(options.replay)
    _look_at_the_walls(options)
    submitted = options.submitted or course.ROOT / "class" / "submitted"
    now = replaying.again(kept, submitted, walls=not options.without_sandbox)
    print(report.clean(f"{kept.student} {kept.chapter}: seed {kept.seed}, SHA-256 {kept.sha256}"))
    for line in replaying.conditions(kept, now):
        print(report.clean(f"graded with another {line}"))
    found = [report.clean(line) for line in replaying.differences(kept, now)]
    print("\n".join(found) if found else "identical")
    return 1 if found else 0

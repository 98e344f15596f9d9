"""Grades one class twice, by this course and by stock nbgrader, and prints both and their ratio.

The same notebooks go through `python -m autograder grade` and through nbgrader's own `autograde`
with nothing of ours configured. Right answers and known mistakes take turns.

  make bench-grading                 300 submissions of the chapter in the middle of the book
  make bench-grading N=40 STOCK=10   ours on 40, stock nbgrader on the first 10 of them

The rates are of one run on one machine: only their ratio means something elsewhere.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from autograder import core, course, running, sample_class, standard  # noqa: E402
from autograder.sandbox import Limits  # noqa: E402
from autograder.session import Session  # noqa: E402

STOCK = """
c = get_config()
c.CourseDirectory.root = {root!r}
c.CourseDirectory.course_id = "bench"
c.CourseDirectory.db_url = "sqlite:///{root}/gradebook.db"
"""


def make_class(folder: Path, chapter: str, many: int) -> None:
    """`many` submissions, no two alike."""
    sample_class.write(chapter, folder / "samples", odd=False)
    samples = sorted((folder / "samples").iterdir())
    for number in range(many):
        sample = samples[number % len(samples)] / chapter / f"{chapter}.ipynb"
        notebook = nbformat.read(sample, as_version=4)
        notebook.cells.append(nbformat.v4.new_code_cell(f"# handed in by student {number}"))
        made = folder / "submitted" / f"student-{number:05}" / chapter
        made.mkdir(parents=True)
        nbformat.write(notebook, made / f"{chapter}.ipynb")


def ours(folder: Path, jobs: int) -> tuple[float, str]:
    """Seconds, and what the command printed."""
    command = [sys.executable, "-m", "autograder", "grade", str(folder / "submitted")]
    command += ["--out", str(folder / "grades"), "--jobs", str(jobs)]
    command += ["--gradebook", f"sqlite:///{folder}/ours.db", "--secret", str(folder / "secret")]
    started = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"grading failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return time.monotonic() - started, done.stdout


def stock(folder: Path, chapter: str, many: int) -> float:
    """Seconds that nbgrader's own autograde takes for the first `many`."""
    root = folder / "stock"
    (root / "source" / chapter).mkdir(parents=True)
    made = folder / "source" / chapter / f"{chapter}.ipynb"
    shutil.copy(made, root / "source" / chapter)
    for student in sorted((folder / "submitted").iterdir())[:many]:
        shutil.copytree(student, root / "submitted" / student.name)
    (root / "nbgrader_config.py").write_text(STOCK.format(root=str(root)))
    beside = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),  # where the grade cells find their checks
        "PATH": beside + os.pathsep + os.environ["PATH"],
    }

    def run(command: str) -> float:
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", command, chapter],
            cwd=root, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            sys.exit(f"nbgrader {command} failed:\n{done.stderr[-4000:]}")
        return time.monotonic() - started

    run("generate_assignment")
    return run("autograde")


def where_time_goes(folder: Path, chapter: str, many: int) -> dict[str, float]:
    """Seconds of one submission by what they are spent on, in one process, one after the other."""
    spent: dict[str, float] = defaultdict(float)

    def timed(owner: Any, name: str, what: str) -> None:
        whole: Callable[..., Any] = getattr(owner, name)

        def measured(*args: Any, **kwargs: Any) -> Any:
            started = time.monotonic()
            try:
                return whole(*args, **kwargs)
            finally:
                spent[what] += time.monotonic() - started

        setattr(owner, name, measured)

    timed(Session, "_start", "a worker is forked")
    timed(Session, "load", "the cells run (with the fork)")
    timed(Session, "run", "the answers compute, in the sandbox and on the way there")
    timed(running.Check, "call", "checks: answers, reference, comparison")
    timed(running, "recognise", "mistakes are recognised")
    timed(standard.NamespaceRunner, "run", "the reference computes")
    timed(Session, "_stop", "the worker is ended")
    files = sorted((folder / "submitted").glob(f"*/{chapter}/*.ipynb"))[: many + 1]
    for number, file in enumerate(files):
        if number == 1:  # the first one pays for imports
            spent.clear()
        started = time.monotonic()
        core.grade_bytes("x", chapter, file.read_bytes(), seed=number, limits=Limits(), walls=True)
        spent["in all"] += time.monotonic() - started
    return {what: seconds / many for what, seconds in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("--submissions", type=int, default=300)
    parser.add_argument("--stock", type=int, help="of them through stock nbgrader (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    middle = course.chapters()[(len(course.chapters()) - 1) // 2]
    parser.add_argument("--chapter", default=middle, choices=course.chapters())
    options = parser.parse_args()
    many = options.submissions
    few = min(many, many if options.stock is None else options.stock)
    with tempfile.TemporaryDirectory(prefix="bench-grading-") as made:
        folder = Path(made)
        make_class(folder, options.chapter, many)
        print(f"{many} submissions of {options.chapter}, {options.jobs} at a time", flush=True)
        seconds, told = ours(folder, options.jobs)
        print(f"this course:    {many / seconds:7.3f} submissions a second ({seconds:.0f} s)")
        for line in told.splitlines():
            if re.search(r"memory|per second|a second", line):
                print(f"                {line}")
        if few:
            slow = stock(folder, options.chapter, few)
            print(f"stock nbgrader: {few / slow:7.3f} submissions a second ({few}: {slow:.0f} s)")
            print(f"ratio:          {(many / seconds) / (few / slow):7.1f}", flush=True)
        print("where one submission's time goes, one after the other:")
        for what, each in where_time_goes(folder, options.chapter, min(many - 1, 12)).items():
            print(f"  {each:7.3f} s  {what}")


if __name__ == "__main__":
    main()

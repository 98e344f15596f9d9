#!/usr/bin/env python3
"""Grades thousands of small made-up submissions, to see that time grows with them and memory not.

Writes to a folder of its own, which it removes at the end unless it is told where. Run it by
`make bench-scale`, or with other numbers: `make bench-scale N=100000 JOBS=64`.

exit codes: 0 each submission has exactly one result, 1 one is missing or has no grade.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from autograder import course  # noqa: E402

LOOK = 1.0  # seconds between two looks at the grader's memory


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("number", type=int, nargs="?", default=10_000, metavar="N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--scheduler", metavar="ADDRESS", help="as for grade")
    parser.add_argument("--folder", type=Path, help="kept afterwards; a second run resumes in it")
    options = parser.parse_args()
    if options.folder:
        return bench(options.folder, options)
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as made:
        return bench(Path(made), options)


def bench(folder: Path, options: argparse.Namespace) -> int:
    began = time.monotonic()
    write(folder / "submitted", options.number)
    print(f"{options.number} submissions written in {time.monotonic() - began:.1f} s", flush=True)
    command = [sys.executable, "-m", "autograder", "grade", folder / "submitted"]
    command += ["--out", folder / "grades", "--gradebook", f"sqlite:///{folder / 'gradebook.db'}"]
    command += ["--secret", folder / "secret", "--jobs", options.jobs]
    command += ["--scheduler", options.scheduler] if options.scheduler else []
    began = time.monotonic()
    with (folder / "printed").open("w+") as printed:
        grader = subprocess.Popen([*map(str, command)], cwd=ROOT, stdout=printed)
        memory = watch(grader)
        seconds = time.monotonic() - began
        printed.seek(0)
        told = [line for line in printed.read().split("\n") if "a second;" in line]
    print(f"graded in {seconds:.1f} s with --jobs {options.jobs}, exit code {grader.returncode}")
    print(*told, sep="\n")
    moments = (memory[len(memory) // 10], memory[len(memory) // 2], memory[-1])
    start, middle, end = (f"{value / 2**20:.0f}" for value in moments)
    print(f"memory of the grader in MiB: {start} at the start, {middle} halfway, {end} at the end")
    print(f"outputs: {size(folder / 'grades') / 2**20:.1f} MiB")
    return 0 if complete(folder / "grades", options.number) else 1


def write(submitted: Path, number: int) -> None:
    """Submissions of one or two code cells, no two of them alike."""
    chapter = course.chapters()[0]
    answers = [
        (ROOT / "solutions" / room / f"{chapter}.py").read_text("utf-8") for room in course.ROOMS
    ]
    kinds = [[answers[0]], answers, ["x = 1"], [answers[1], "1 / 0"]]
    for student in range(number):
        cells = [
            {"cell_type": "code", "source": f"{source}\n# {student}", "metadata": {}}
            | {"outputs": [], "execution_count": None}
            for source in kinds[student % len(kinds)]
        ]
        notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        file = submitted / f"student-{student:06}" / chapter / f"{chapter}.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(notebook), "utf-8")


def watch(grader: subprocess.Popen[bytes]) -> list[int]:
    """What the process that hands the submissions out uses, from its start to its end."""
    seen = [0]
    process = psutil.Process(grader.pid)
    while True:
        try:
            seen.append(process.memory_info().rss or seen[-1])
            grader.wait(LOOK)
        except subprocess.TimeoutExpired:
            continue
        except psutil.Error:
            grader.wait()
        return seen


def complete(grades: Path, number: int) -> bool:
    """Whether the table and the records have each submission once, and a grade for each."""
    with (grades / "grades.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    students = {row["student"] for row in rows}
    graded = sum(row["status"] == "graded" for row in rows)
    records = sum(1 for _ in grades.glob("students/*/*/results.json"))
    print(f"{len(rows)} rows of {len(students)} students, {records} records, {graded} graded")
    return len(rows) == len(students) == records == graded == number


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    raise SystemExit(main())

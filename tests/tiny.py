"""Small submissions, and commands over them, for the tests of grading many."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

from autograder import course

CHAPTER = course.chapters()[0]
# The walls are tried at the start of each command; tests of other things do without.
COMMAND = """
import sys
from autograder import cli, walls
walls.check = lambda: iter(())
sys.exit(cli.main(sys.argv[1:]))
"""


def answers(room: str) -> str:
    """A room's reference as one cell, which answers the exercises of that room."""
    return (course.ROOT / "solutions" / room / f"{CHAPTER}.py").read_text("utf-8")


def notebook(*cells: str) -> str:
    """A notebook of these code cells and nothing else."""
    made = [
        {"cell_type": "code", "source": c, "metadata": {}, "outputs": [], "execution_count": None}
        for c in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def hand_in(submitted: Path, student: str, text: str) -> Path:
    """Write a student's file; returns it."""
    file = submitted / student / CHAPTER / f"{CHAPTER}.ipynb"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def table(out: Path) -> dict[str, dict[str, str]]:
    """The rows of `grades.csv` by student."""
    with (out / "grades.csv").open(newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def command(folder: Path, *more: object, cwd: Path = course.ROOT) -> list[str]:
    """What grades `folder/submitted` into `folder/grades` and `folder/gradebook.db`."""
    said = ["grade", folder / "submitted", "--out", folder / "grades"]
    said += ["--gradebook", f"sqlite:///{folder / 'gradebook.db'}", *more]
    return [sys.executable, "-c", COMMAND, *map(str, said)]


def grade(
    folder: Path, *more: object, cwd: Path = course.ROOT, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(folder, *more),
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **variables},
        check=False,
        timeout=300,
    )

"""What `nbgrader export` writes is a row for each student, whatever students are called."""

import csv
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from nbgrader.plugins import CsvExportPlugin

from autograder import course, gradebook, outputs
from autograder.nbgrader_export import SafeCsvExportPlugin
from tests.hostile import pages
from tests.nbgrader_class import CHAPTER, EXERCISES, result

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # nbgrader's own
FULL = float(sum(e.points for e in EXERCISES))
FORMULAS = [
    "=1+1",
    "@SUM(1+1)",
    "a;=1+1",
    "a; +1",
    "\uff1d1+1",
    "\uff0b1",
    "a;\uff0d1",
    "\uff201",
    " =1",
]


def exported(plugin: Any, url: str, file: Path, **more: Any) -> list[dict[str, str]]:
    with Gradebook(url) as book:
        plugin(to=str(file), **more).export(book)
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def test_an_honest_class_has_the_table_that_nbgrader_writes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'gradebook.db'}"
    gradebook.write(url, [result("ada"), result("bob", 0.5), result("O'Neill é", 0.0)])
    with Gradebook(url) as book:
        book.update_or_create_student("gone", first_name="Zoë", email="z@example.org")
        book.update_or_create_assignment(CHAPTER, duedate=datetime(2027, 3, 1, 18))
        book.update_or_create_assignment("another")
        book.update_or_create_submission(CHAPTER, "ada", timestamp=datetime(2027, 3, 2))
        book.find_submission_notebook(CHAPTER, CHAPTER, "ada").late_submission_penalty = 1.5
        book.db.commit()
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    rows = exported(SafeCsvExportPlugin, url, ours)
    assert rows == exported(CsvExportPlugin, url, theirs) and len(rows) == 8
    assert ours.read_bytes() == theirs.read_bytes()
    some = {"student": ["bob"], "assignment": [CHAPTER]}
    rows = exported(SafeCsvExportPlugin, url, ours, **some)
    assert rows == exported(CsvExportPlugin, url, theirs, **some) and len(rows) == 1


def test_the_plain_command_gives_nobody_a_row_or_a_formula_of_her_choice(tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path / 'gradebook.db'}", tmp_path / "export.csv"
    forged = f"eve,,,,{FULL},0.0,{FULL},{FULL}"
    names = [forged, "a,b", "it's a", "eve", *FORMULAS]
    gradebook.write(url, [result(name, 1.0 if name == "a,b" else 0.0) for name in names])
    command = [sys.executable, "-m", "nbgrader", "export", "--db", url, "--to", str(file)]
    done = subprocess.run(command, cwd=course.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = file.read_text("utf-8")
    assert pages.formulas(text) == []
    scores = {row["student_id"]: row["score"] for row in csv.DictReader(text.splitlines())}
    assert len(scores) == len(names)
    assert {name for name, score in scores.items() if float(score)} == {"a,b"}
    assert {forged, "a,b", "it's a", "eve", "'=1+1"} <= set(scores)


@pytest.mark.parametrize("text", [*FORMULAS, "a\n=1", "a\r\n=1", "a\t=1", "\t=1", "-rf"])
def test_no_cell_is_computed_where_a_table_is_split_otherwise(text: str) -> None:
    cell = outputs._cell(text)
    assert pages.formulas(cell) == [] and outputs._cell(cell) == cell
    assert cell.replace("'", "").split() == text.replace("\t", "").split()


@pytest.mark.parametrize(
    "text", ["a-b", "1 = 1", "a; b", "ada@example.org", "x\n y", "", "é; 5 - 3"]
)
def test_text_that_computes_nothing_is_not_touched(text: str) -> None:
    assert outputs._cell(text) == text

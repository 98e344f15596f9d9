"""The instructor's whole flow, by its own commands: generate, release, hand in, grade, nbgrader."""

import csv
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder import course, sandbox
from autograder.sample_class import two_mistakes
from tests import tiny

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.skipif(not sandbox.available(), reason=f"NO SANDBOX: {sandbox.problem()}"),
]
ROOT = course.ROOT
CHAPTER = course.chapters()[0]
BIN = Path(sys.executable).parent
SEED = ("--seed", "7")  # two gradings are compared: a mistake may pass a coarse check by luck
# An endless loop waits for the first; a slow machine must fill the second before it.
LIMITS = ("--cell-seconds", "6", "--memory", "1024")


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=environment, check=False
    )


def autograder(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "autograder", *map(str, arguments))


@pytest.fixture(scope="module")
def classroom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class folder with the sample class, graded once by our own front door."""
    folder = tmp_path_factory.mktemp("class")
    assert autograder("sample-class", CHAPTER, "--out", folder / "submitted").returncode == 0
    (folder / "submitted" / "spy" / "planted.py").write_text("x = 1")
    done = grade(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "printed").write_text(done.stdout)
    return folder


def grade(folder: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return autograder(
        "grade", folder / "submitted", "--out", folder / "grades",
        "--gradebook", f"sqlite:///{folder / 'gradebook.db'}", *LIMITS, *SEED, *more,
    )  # fmt: skip


def table(folder: Path) -> dict[str, dict[str, str]]:
    return tiny.table(folder / "grades")


def test_each_sample_has_its_status_and_an_honest_score(classroom: Path) -> None:
    rows = table(classroom)
    full = float(sum(e.points for e in course.manifest(CHAPTER)))
    found = {name: (row["status"], float(row["score"])) for name, row in rows.items()}
    mistakes = [name for name in found if name.startswith("mistake-")]
    assert len(mistakes) == 2
    for name in mistakes:
        status, score = found.pop(name)
        assert status == "graded" and full / 2 < score < full
    assert found == {
        "right-answer": ("graded", full),
        "untouched-stub": ("graded", 0),
        "infinite-loop": ("timeout", full),
        "memory-bomb": ("out of memory", 0),
        "crash": ("crashed", 0),
        "not-json": ("malformed", 0),
        "missing": ("missing", 0),
        "spy": ("graded", 0),
    }


def test_every_submission_has_a_record_and_a_page(classroom: Path) -> None:
    for name, row in table(classroom).items():
        folder = classroom / "grades" / "students" / name / CHAPTER
        record = json.loads((folder / "results.json").read_text())
        assert record["score"] == float(row["score"])
        assert sum(test["max_score"] for test in record["tests"]) == float(row["max_score"])
        assert record["extra_data"]["status"] == row["status"]
        assert row["status"] in (folder / "feedback.html").read_text()


def test_a_known_mistake_is_named_in_the_feedback(classroom: Path) -> None:
    students = classroom / "grades" / "students"
    for name, (known, _) in zip(("one", "two"), two_mistakes(CHAPTER), strict=True):
        folder = students / f"mistake-{name}"
        record = json.loads((folder / CHAPTER / "results.json").read_text())
        named = [e["misconception"] for e in record["extra_data"]["exercises"]]
        assert known in [m["id"] for m in named if m]


def test_the_spy_found_nothing(classroom: Path) -> None:
    note = json.loads((classroom / "grades/students/spy" / CHAPTER / "results.json").read_text())
    assert "nothing to be found here" in note["extra_data"]["note"]


def test_a_second_run_takes_finished_results_over(classroom: Path) -> None:
    done = tiny.grade(classroom, *LIMITS, *SEED)
    assert done.returncode == 0 and "10 of them unchanged" in done.stdout
    assert "submissions a second" not in done.stdout  # as nothing was run
    assert done.stdout.splitlines()[:12] == (classroom / "printed").read_text().splitlines()[:12]


def test_nbgraders_own_flow_gives_the_same_scores(classroom: Path, tmp_path: Path) -> None:
    options = [f"--CourseDirectory.root={tmp_path}",
               f"--CourseDirectory.db_url=sqlite:///{tmp_path / 'gradebook.db'}"]  # fmt: skip
    assert autograder("generate", CHAPTER, "--out", tmp_path / "source").returncode == 0
    students = ["right-answer", "infinite-loop", "mistake-one"]
    done = run("nbgrader", "generate_assignment", CHAPTER, *options)
    assert done.returncode == 0, done.stderr
    for student in students:
        shutil.copytree(classroom / "submitted" / student, tmp_path / "submitted" / student)
    # a student who deleted a grade cell and copied another is graded all the same
    right = classroom / "submitted" / "right-answer" / CHAPTER / f"{CHAPTER}.ipynb"
    notebook = nbformat.read(right, as_version=4)
    grades = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade")]
    notebook.cells.remove(grades[0])
    notebook.cells.append(nbformat.v4.new_markdown_cell("<script>alert(1)</script>"))
    edited = tmp_path / "submitted" / "editor" / CHAPTER
    edited.mkdir(parents=True)
    nbformat.write(notebook, edited / f"{CHAPTER}.ipynb")
    limits = ("--GradeInSandbox.limits={'cell_seconds': 3.0}", f"--GradeInSandbox.seed={SEED[1]}")
    for step in (("autograde", *limits), ("generate_feedback",)):
        done = run("nbgrader", step[0], CHAPTER, *step[1:], *options)
        assert done.returncode == 0, done.stderr
    exported = tmp_path / "out.csv"
    done = run("nbgrader", "export", "--to", str(exported), *options)
    assert done.returncode == 0, done.stderr
    with exported.open(newline="") as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    ours = table(classroom)
    assert scores.pop("editor") == float(ours["right-answer"]["score"])
    assert scores == {name: float(ours[name]["score"]) for name in students}

    page = (tmp_path / "feedback" / students[-1] / CHAPTER / f"{CHAPTER}.html").read_text()
    assert "<script>alert" not in (
        tmp_path / "feedback" / "editor" / CHAPTER / f"{CHAPTER}.html"
    ).read_text("utf-8")
    assert "✗" in page and "Read again" in page and "hidden check" in page


def test_the_grade_book_holds_what_the_table_says(classroom: Path) -> None:
    with sqlite3.connect(classroom / "gradebook.db") as book:
        rows = book.execute(
            "select s.student_id, sum(g.auto_score) from grade g"
            " join submitted_notebook n on g.notebook_id = n.id"
            " join submitted_assignment s on n.assignment_id = s.id group by s.student_id"
        ).fetchall()
    ours = {name: float(row["score"]) for name, row in table(classroom).items()}
    assert {name: round(score, 2) for name, score in rows} == ours


def test_without_a_sandbox_grading_refuses(tmp_path: Path) -> None:
    tiny.hand_in(tmp_path / "submitted", "a", tiny.notebook("x = 1"))
    command = [sys.executable, "-m", "autograder", "grade", str(tmp_path / "submitted")]
    command += ["--out", str(tmp_path / "grades"), "--gradebook", f"sqlite:///{tmp_path}/g.db"]
    command += ["--jobs", "1", *SEED]
    hidden = {**os.environ, "PATH": "/nowhere"}
    done = subprocess.run(
        command, cwd=ROOT, env=hidden, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3 and "--without-sandbox" in done.stderr
    assert not (tmp_path / "grades").exists()
    command.append("--without-sandbox")
    done = subprocess.run(
        command, cwd=ROOT, env=hidden, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "warning: no sandbox" in done.stderr


def test_no_name_of_a_folder_stops_the_batch_and_no_link_is_followed(tmp_path: Path) -> None:
    """Two of them reach a grading process; the others' files are no notebooks, which is fast."""
    names = [b"grades.csv", b"-rf", b"=cmd()", b"a b", "é✓".encode(), b"\xff\xfe", b"<b>x"]
    for name in names:
        folder = tmp_path / "submitted" / os.fsdecode(name) / CHAPTER
        folder.mkdir(parents=True)
        run = name in (b"=cmd()", b"\xff\xfe")
        (folder / f"{CHAPTER}.ipynb").write_text(tiny.notebook("x = 1") if run else "{}")
    (tmp_path / "submitted" / "thief").symlink_to(tmp_path / "submitted" / "a b")
    done = tiny.grade(tmp_path, "--jobs", 1, *SEED)
    assert done.returncode == 0, done.stderr
    rows = table(tmp_path)
    assert len(rows) == len(names) + 1
    assert rows["'=cmd()"]["status"] == rows["\\xff\\xfe"]["status"] == "graded"
    assert rows["thief"]["status"] == "malformed" and "is a link" in rows["thief"]["note"]
    assert rows["'-rf"]["status"] == "malformed"


@pytest.mark.parametrize(
    ("make", "words"),
    [(False, "there is no folder"), (True, "nothing to grade")],
)
def test_nothing_to_grade_is_told_with_exit_code_2(tmp_path: Path, make: bool, words: str) -> None:
    if make:
        (tmp_path / "submitted").mkdir()
    done = autograder("grade", tmp_path / "submitted", "--out", tmp_path / "out")
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr

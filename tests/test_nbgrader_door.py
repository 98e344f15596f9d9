"""nbgrader's own door gives a status to whatever is handed in, and copies no flood."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder import course, gradebook
from autograder.notebooks import MAX_BYTES
from tests.nbgrader_class import (
    CHAPTER,
    EXERCISES,
    autograde,
    config_for,
    grade_by,
    hand_in,
    result,
    totals,
)

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # nbgrader's own
FULL = float(sum(e.points for e in EXERCISES))
EMPTY = nbformat.v4.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")]))


def test_each_student_with_a_place_for_the_chapter_has_a_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a command that sweeps before, as from formgrader's button."""
    grade_by(lambda cells: 1.0, tmp_path, monkeypatch)
    config = config_for(tmp_path)
    gradebook.write(config.CourseDirectory.db_url, [result("gone", 0.5)])
    for student in ("flood", ".dot"):
        hand_in(tmp_path, student, EMPTY)
    (hand_in(tmp_path, "answers", None).with_name("answers.py")).write_text("x = 1")
    hand_in(tmp_path, "capitals", None).with_suffix(".IPYNB").write_text(EMPTY)
    hand_in(tmp_path, "empty", None)
    submitted = tmp_path / "submitted"
    for student in ("file", "pipe", "link", "nothing"):
        (submitted / student).mkdir()
    (submitted / "file" / CHAPTER).write_text("x = 1")
    os.mkfifo(submitted / "pipe" / CHAPTER)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("SECRET")
    (submitted / "link" / CHAPTER).symlink_to(tmp_path / "outside")
    for student in ("flood", "empty"):
        with (submitted / student / CHAPTER / "big.bin").open("wb") as file:
            file.truncate(1 << 40)
    autograde(config)
    told = {}
    for page in (tmp_path / "autograded").glob("*/*/*.ipynb"):
        told[page.parts[-3]] = nbformat.read(page, as_version=4).cells[0].source
    statuses = {s: text.split("submission: ")[1].split(".")[0] for s, text in told.items()}
    missing = dict.fromkeys(("answers", "capitals", "empty", "link"), "missing")
    graded, malformed = dict.fromkeys(("flood", ".dot"), "graded"), ("file", "pipe")
    assert statuses == missing | graded | dict.fromkeys(malformed, "malformed")
    assert f"there is {CHAPTER}.IPYNB" in told["capitals"] and "answers.py" in told["answers"]
    scores = totals(config.CourseDirectory.db_url)
    assert scores == dict.fromkeys(statuses, 0.0) | dict.fromkeys(graded, FULL) | {"gone": FULL / 2}
    copies = [p for p in (tmp_path / "autograded").rglob("*") if p.is_file()]
    assert max(p.stat().st_size for p in copies) < MAX_BYTES
    assert not [p for p in copies if p.suffix != ".ipynb" and b"SECRET" in p.read_bytes()]
    assert (tmp_path / "refused" / "flood" / CHAPTER / "big.bin").stat().st_size == 1 << 40
    assert (tmp_path / "outside" / "secret.txt").exists()


def test_the_command_stops_where_a_file_too_large_cannot_be_moved(tmp_path: Path) -> None:
    """An error in nbgrader's configuration would not stop it: it goes on without one."""
    root = tmp_path / "course"
    root.mkdir()
    shutil.copy(course.ROOT / "nbgrader_config.py", root)
    (root / "autograder").symlink_to(course.ROOT / "autograder")
    file = hand_in(root / "class", "ada", EMPTY).with_name("big.bin")
    with file.open("wb") as opened:
        opened.truncate(1 << 40)
    (root / "class" / "refused").write_text("in the way")
    command = [sys.executable, "-m", "nbgrader", "autograde", CHAPTER]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "refused" in done.stderr
    assert "Exception while loading config" not in done.stderr
    assert file.exists() and not (root / "class" / "autograded").exists()

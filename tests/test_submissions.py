"""Whatever lies in the folder of submissions has a status or is left alone, and ends no run."""

import json
import os
from pathlib import Path

import pytest

from autograder import gradebook, submissions
from autograder.outputs import STUDENTS
from tests import tiny
from tests.nbgrader_class import rows
from tests.tiny import CHAPTER

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # nbgrader's own
BROKEN = "{ this is no notebook"
LONG = "a" * 300  # more than a file's name may have


def told(submitted: Path) -> dict[str, str]:
    """The note of each student who handed in nothing that could be run."""
    notes = {}
    for task in submissions.find(submitted, (CHAPTER,)):
        content, result = submissions.read(task)
        assert content == b"" and result is not None
        notes[task.student] = f"{result.status}: {result.note}"
    return notes


def odd_links(folder: Path) -> None:
    """Links that no system call can follow to their end."""
    file = folder.parent / f"{folder.name}-a-file"
    file.write_text("x")
    (folder / "loop").symlink_to("loop")
    (folder / "through-a-file").symlink_to(file / "x")
    (folder / "far-too-long").symlink_to(LONG)


def test_no_entry_ends_the_command_and_each_student_has_a_status(tmp_path: Path) -> None:
    submitted = tmp_path / "submitted"
    tiny.hand_in(submitted, "ada", BROKEN)
    tiny.hand_in(submitted, os.fsdecode(b"\xff" * 70), BROKEN)
    odd_links(submitted)
    (submitted / "bob" / CHAPTER).mkdir(parents=True)
    odd_links(submitted / "bob" / CHAPTER)
    (submitted / "cy").mkdir()
    (submitted / "cy" / CHAPTER).symlink_to(CHAPTER)
    done = tiny.grade(tmp_path, "--without-sandbox", "--jobs", 1, "--seed", 7)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    table = tiny.table(tmp_path / "grades")
    assert {name[:6]: row["status"] for name, row in table.items()} == {
        "ada": "malformed", "bob": "missing", "cy": "malformed", "\\xff\\x": "malformed",
    }  # fmt: skip
    for student in os.listdir(tmp_path / "grades" / STUDENTS):
        record = tmp_path / "grades" / STUDENTS / student / CHAPTER / "results.json"
        assert json.loads(record.read_text())["extra_data"]["student"] == student


@pytest.mark.parametrize("make", ["a file", "a pipe", "a loop"])
def test_a_note_never_tells_a_path_of_the_graders(tmp_path: Path, make: str) -> None:
    place = tmp_path / "submitted" / "bob" / CHAPTER
    place.parent.mkdir(parents=True)
    if make == "a file":
        place.write_text("x")
    elif make == "a pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(place)
    (note,) = told(tmp_path / "submitted").values()
    assert note.startswith("malformed: ") and str(tmp_path) not in note and "Errno" not in note
    assert ("is a link" if make == "a loop" else "cannot be read: Not a directory") in note


def test_a_note_does_not_tell_what_a_link_leads_to(tmp_path: Path) -> None:
    submitted = tmp_path / "submitted"
    (submitted / "bob" / CHAPTER).mkdir(parents=True)
    (submitted / "bob" / CHAPTER / "answers.py").write_text("x = 1")
    before = told(submitted)
    (tmp_path / "there.txt").write_text("x")
    for name in ("there.txt", "not-there.txt"):
        (submitted / "bob" / CHAPTER / name).symlink_to(tmp_path / name)
    assert told(submitted) == before
    assert before["bob"] == f"missing: {CHAPTER}.ipynb was not handed in; there is answers.py"


def test_no_two_students_have_the_same_name_or_one_too_long_for_a_folder(tmp_path: Path) -> None:
    submitted = tmp_path / "submitted"
    folders = [b"\xff", b"\\xff", b"\xfe", b"\xff" * 70, b"\xff" * 71, b"z" * 255, "é".encode()]
    (taken,) = submissions._readable([os.fsdecode(b"\xff" * 70)])  # and somebody calls herself so
    folders.append(taken.encode())
    for folder in folders:
        tiny.hand_in(submitted, os.fsdecode(folder), BROKEN)
    names = {os.fsencode(t.folder.split("/")[-1]): t.student for t in submissions.find(submitted)}
    assert len(names) == len(set(names.values())) == len(folders)
    assert all(len(name.encode()) <= submissions.LONGEST for name in names.values())
    kept = {n: s for n, s in names.items() if s.encode() == n}
    assert set(kept) == {b"\\xff", b"z" * 255, "é".encode(), taken.encode()}
    assert names[b"\xfe"] == "\\xfe" and names[b"\xff"].startswith("\\xff~")


def test_a_name_that_is_no_text_does_not_hide_when_it_was_handed_in(tmp_path: Path) -> None:
    submitted, url = tmp_path / "submitted", f"sqlite:///{tmp_path / 'gradebook.db'}"
    dates = {b"ada": "2027-03-01 18:00:00", b"\xff": "2027-03-02 18:00:00", b"\\xff": ""}
    for folder, date in dates.items():
        file = tiny.hand_in(submitted, os.fsdecode(folder), BROKEN)
        file.with_name("timestamp.txt").write_text(f"{date} UTC" if date else "")
    results = [submissions.read(task)[1] for task in submissions.find(submitted)]
    gradebook.write(url, [r for r in results if r], submitted)
    stored = {row[0].split("~")[0]: row[8] for row in rows(url) if "~" in row[0] or row[8]}
    assert stored == {"ada": dates[b"ada"], "\\xff": dates[b"\xff"]}

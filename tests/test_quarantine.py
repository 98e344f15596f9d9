"""What nbgrader must not see of a submission is moved away, and nothing is lost."""

import errno
import os
from datetime import datetime
from pathlib import Path

import pytest

from autograder.nbgrader_collect import MOST_BYTES, MOST_FILES
from autograder.notebooks import MAX_BYTES
from autograder.quarantine import NoDate, before_command, before_nbgrader, handed_in, sweep
from tests.hostile import pages


def test_links_and_pipes_are_moved_and_files_stay(tmp_path: Path) -> None:
    submitted, refused = tmp_path / "submitted", tmp_path / "refused"
    (submitted / "ada" / "work").mkdir(parents=True)
    (submitted / "ada" / "work" / "work.ipynb").write_text("{}")
    (submitted / "ada" / "work" / "stolen.txt").symlink_to("/etc/passwd")
    (submitted / "ada" / "elsewhere").symlink_to("/etc")
    (submitted / "eve").symlink_to(submitted / "ada")
    os.mkfifo(submitted / "ada" / "pipe")
    moved = sweep(submitted, refused)
    assert len(moved) == 4 and all("moved to" in line for line in moved)
    assert (refused / "ada" / "work" / "stolen.txt").is_symlink() and (refused / "eve").is_symlink()
    left = [p.name for p in submitted.rglob("*") if not p.is_dir()]
    assert left == ["work.ipynb"] and sweep(submitted, refused) == []


def test_the_notebook_itself_stays_whatever_it_is_for_it_gets_a_status(tmp_path: Path) -> None:
    submitted = tmp_path / "submitted"
    (submitted / "ada" / "work").mkdir(parents=True)
    (submitted / "ada" / "work" / "work.ipynb").symlink_to("/etc/passwd")
    (submitted / "bob" / "work").mkdir(parents=True)
    os.mkfifo(submitted / "bob" / "work" / "work.ipynb")
    assert sweep(submitted, tmp_path / "refused") == []


def test_nothing_that_was_refused_before_is_overwritten(tmp_path: Path) -> None:
    submitted, refused = tmp_path / "submitted", tmp_path / "refused"
    (submitted / "ada").mkdir(parents=True)
    for target in ("/first", "/second"):
        (submitted / "ada" / "link").symlink_to(target)
        sweep(submitted, refused)
    found = {p.name: os.readlink(p) for p in (refused / "ada").iterdir()}
    assert found == {"link": "/first", "link.2": "/second"}


@pytest.mark.parametrize(
    "name", [b"<img src=x>", b"\xff\xfe", b"a\nb", b"\x1b[2J", b"x" * 129, "‮b".encode()]
)
def test_a_students_name_that_a_page_would_obey_is_refused(tmp_path: Path, name: bytes) -> None:
    submitted = tmp_path / "submitted"
    fine = {"Ada O'Neill é", "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627", "a\u200db"}
    for student in (name, *map(str.encode, fine)):
        (submitted / os.fsdecode(student) / "work").mkdir(parents=True)
    (line,) = sweep(submitted, tmp_path / "refused")
    assert "refused" in line and pages.commands(line) == [] and "\n" not in line
    assert {p.name for p in submitted.iterdir()} == fine
    assert [os.fsencode(p.name) for p in (tmp_path / "refused").iterdir()] == [name]


@pytest.mark.parametrize(
    ("words", "date"),
    [
        ("2027-03-01 18:00:00 UTC\n", datetime(2027, 3, 1, 18)),
        ("2027-03-01T19:00:00.5+01:00", datetime(2027, 3, 1, 18, 0, 0, 500_000)),
        ("", None),
    ],
)
def test_a_date_is_read_as_nbgrader_reads_it(
    tmp_path: Path, words: str, date: datetime | None
) -> None:
    assert handed_in(tmp_path) is None
    (tmp_path / "timestamp.txt").write_text(words)
    assert handed_in(tmp_path) == date


STAMPS = {
    "words": b"yesterday",
    "no text": b"\xff\xfe",
    "before the first year": b"0001-01-01T00:00:00+10:00",
    "far away": b"99999999999999999999-01-01 UTC",
    "a zone that is none": b"2027-03-01 18:00:00 99999999999999999999",
    "a zone that is a file": b"2027-03-01 18:00:00 /etc/passwd",
    "a zone with a zero": b"2027-03-01 18:00:00 \0",
    "a flood": b"2027-03-01" + b" " * 1000,
}


@pytest.mark.parametrize("what", STAMPS)
def test_a_date_that_cannot_be_read_is_moved_away(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "submitted" / "ada" / "work"
    folder.mkdir(parents=True)
    (folder / "timestamp.txt").write_bytes(STAMPS[what])
    with pytest.raises(NoDate):
        handed_in(folder)
    (line,) = sweep(tmp_path / "submitted", tmp_path / "refused")
    assert "timestamp.txt" in line and not (folder / "timestamp.txt").exists()
    assert handed_in(folder) is None


def test_a_date_behind_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "true").write_text("2027-03-01 18:00:00 UTC")
    (tmp_path / "timestamp.txt").symlink_to(tmp_path / "true")
    with pytest.raises(NoDate, match="no regular file"):
        handed_in(tmp_path)


def test_a_submission_under_another_name_is_one_whose_notebook_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "submitted" / "ada" / "work"
    folder.mkdir(parents=True)
    (folder / "pipe").symlink_to("/dev/zero")
    (folder / "work (1).ipynb").write_text("{}")
    notebooks = [str(folder / "work (1).ipynb")]
    before_nbgrader(notebooks=notebooks, assignment="work", student="*")
    assert notebooks[1:] == [str(folder / "work.ipynb")]
    assert (tmp_path / "refused" / "ada" / "work" / "pipe").is_symlink()
    before_nbgrader(notebooks=notebooks, assignment="work", student="*")
    assert len(notebooks) == 2


def sparse(file: Path, size: int) -> None:
    """A file that takes no place, and would take `size` bytes where it is copied."""
    with file.open("wb") as opened:
        opened.truncate(size)


def test_a_file_too_large_to_be_copied_is_moved_and_the_notebook_stays(tmp_path: Path) -> None:
    folder = tmp_path / "submitted" / "ada" / "work"
    (folder / "data").mkdir(parents=True)
    (folder / "work.ipynb").write_text("{}")
    sparse(folder / "big.bin", 1 << 40)
    sparse(folder / "data" / "just-too-large", MAX_BYTES + 1)
    sparse(folder / "data" / "as-large-as-may-be", MAX_BYTES)
    moved = sweep(tmp_path / "submitted", tmp_path / "refused")
    assert len(moved) == 2 and all("larger than 20 MiB" in line for line in moved)
    left = {p.name for p in folder.rglob("*") if p.is_file()}
    assert left == {"work.ipynb", "as-large-as-may-be"}
    assert (tmp_path / "refused" / "ada" / "work" / "big.bin").stat().st_size == 1 << 40


@pytest.mark.parametrize("much", ["many", "large"])
def test_files_that_are_too_much_together_are_moved_at_once(tmp_path: Path, much: str) -> None:
    folder = tmp_path / "submitted" / "ada" / "work"
    (folder / "data").mkdir(parents=True)
    (folder / "work.ipynb").write_text("{}")
    (folder / "timestamp.txt").write_text("2027-03-01 18:00:00 UTC")
    most = MOST_FILES - 2 if much == "many" else MOST_BYTES // MAX_BYTES - 1
    for number in range(most):
        sparse(folder / "data" / str(number), 0 if much == "many" else MAX_BYTES)
    notebooks = [str(folder / "work.ipynb")]
    before_nbgrader(notebooks=notebooks, assignment="work", student="*")
    assert len(list((folder / "data").iterdir())) == most  # as much as may be
    sparse(folder / "data" / "one-more", MAX_BYTES)
    before_nbgrader(notebooks=notebooks, assignment="work", student="*")
    assert sorted(p.name for p in folder.iterdir()) == ["timestamp.txt", "work.ipynb"]
    assert (tmp_path / "refused" / "ada" / "work" / "data" / "one-more").is_file()


def test_what_lies_too_deep_is_moved_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "submitted" / "ada" / "work"
    folder.mkdir(parents=True)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(30):  # deeper than a path may be long
        os.mkdir("d" * 200, dir_fd=at)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    (line,) = sweep(tmp_path / "submitted", tmp_path / "refused")
    assert "too deep" in line and sweep(tmp_path / "submitted", tmp_path / "refused") == []


def test_a_link_that_was_refused_before_is_not_followed(tmp_path: Path) -> None:
    submitted, refused, outside = (tmp_path / n for n in ("submitted", "refused", "outside"))
    submitted.mkdir()
    outside.mkdir()
    (submitted / "ada").symlink_to(outside)
    sweep(submitted, refused)
    (submitted / "ada" / "work").mkdir(parents=True)
    os.mkfifo(submitted / "ada" / "work" / "pipe")
    sweep(submitted, refused)
    assert not list(outside.iterdir()) and (refused / "ada.2" / "work" / "pipe").is_fifo()


def test_what_cannot_be_renamed_is_not_copied_and_nbgrader_does_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "submitted" / "ada" / "work"
    folder.mkdir(parents=True)
    sparse(folder / "big.bin", 1 << 40)

    def elsewhere(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "replace", elsewhere)
    with pytest.raises(SystemExit, match=r"big\.bin .*cannot be moved .*cross-device"):
        before_nbgrader(notebooks=[str(folder / "work.ipynb")], assignment="work", student="*")
    with pytest.raises(SystemExit, match="move it out of the submissions"):
        before_command(tmp_path / "submitted", tmp_path / "refused")
    assert (folder / "big.bin").exists() and not list((tmp_path / "refused").rglob("big.bin"))


def test_rights_that_a_folder_came_with_do_not_stop_the_sweep(tmp_path: Path) -> None:
    folder = tmp_path / "submitted" / "ada" / "work"
    folder.mkdir(parents=True)
    sparse(folder / "big.bin", 1 << 40)
    folder.chmod(0o555)
    (line,) = sweep(tmp_path / "submitted", tmp_path / "refused")
    assert "big.bin" in line and not (folder / "big.bin").exists()

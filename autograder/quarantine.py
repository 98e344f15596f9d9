"""Takes out of what was handed in what nbgrader trips over, or would follow out of the class.

nbgrader follows a link, and the file that it points to would come back in a student's feedback; it
stops at a date that it cannot read; it copies whatever lies beside a notebook, a terabyte too. What
is moved lies in `refused`, by a rename and never by a copy, and nothing is lost. Notebooks stay,
whatever they are: they get a status.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from . import report
from .course import CourseError
from .nbgrader_collect import MOST_BYTES, MOST_FILES
from .notebooks import MAX_BYTES, Malformed, read_bytes
from .set_aside import move, rename

STAMP = "timestamp.txt"
MAX_STAMP = 200  # bytes
DATE = re.compile(r"[0-9A-Za-z :.,+_-]+(/[A-Za-z_]+)*")  # a zone such as Europe/Rome, and no path
MAX_NAME = 128  # characters: what the grade book holds
MAX_PATH = 1000  # bytes below the folder of submissions


class NoDate(Exception):
    """A submission's date cannot be read; the message says why."""


def sweep(submitted: Path, refused: Path) -> list[str]:
    """Move what is no submission from `submitted/STUDENT/CHAPTER` to `refused`; says what."""
    moved = []
    for student in sorted(submitted.iterdir()) if submitted.is_dir() else ():
        problem = name_problem(student.name) or _problem(student, submitted)
        if problem:
            moved.append(_told(student, problem, move(student, submitted, refused)))
        elif student.is_dir():
            moved += _sweep_below(student, submitted, refused)
    return moved


def before_command(submitted: Path, refused: Path) -> None:
    """Sweep, and tell what was moved. Where that is not possible, nbgrader must not start.

    An error in its configuration would not hold it: it goes on without one.
    """
    try:
        moved = sweep(submitted, refused)
    except (CourseError, OSError) as error:
        raise SystemExit(_as_text(str(error))) from error
    for line in moved:
        print(line, file=sys.stderr)


def before_nbgrader(*, notebooks: list[str], **_: str) -> None:
    """nbgrader's `pre_convert_hook`: the same for one submission, also when formgrader asks.

    A folder whose notebook has another name is graded as one where the notebook is missing. An
    error of a hook would not hold nbgrader either.
    """
    folder = Path(notebooks[0]).parent
    submitted = folder.parent.parent
    refused = submitted.parent / "refused"
    try:
        links = [place for place in (folder.parent, folder) if place.is_symlink()]
        moved = [_told(p, _problem(p), move(p, submitted, refused)) for p in links[:1]]
        moved += _sweep_below(folder, submitted, refused)
    except (CourseError, OSError) as error:
        raise SystemExit(_as_text(str(error))) from error
    for line in moved:
        print(line, file=sys.stderr)
    expected = str(folder / f"{folder.name}.ipynb")
    if expected not in notebooks:
        notebooks.append(expected)


def handed_in(folder: Path) -> datetime | None:
    """When it was handed in, in UTC, by nbgrader's `timestamp.txt`; None where there is none."""
    from nbgrader.utils import parse_utc

    file = folder / STAMP
    try:
        if file.lstat().st_size > MAX_STAMP:
            raise NoDate(f"it has more than {MAX_STAMP} bytes")
        text = read_bytes(file).decode().strip()
        if text and not DATE.fullmatch(text):
            raise NoDate("it holds signs that no date has")
        found = parse_utc(text) if text else None
    except FileNotFoundError:
        return None
    except (OSError, Malformed, ValueError, OverflowError, TypeError) as error:
        raise NoDate(f"its date cannot be read: {error}") from None
    assert found is None or isinstance(found, datetime)
    return found


def name_problem(name: str) -> str:
    """Why a student's name cannot be in the grade book, or nothing."""
    if len(name) > MAX_NAME:
        return f"its name has more than {MAX_NAME} characters"
    if any(c in '<>"' or not (report.seen(c) or unicodedata.category(c) == "Co") for c in name):
        return "its name has signs that a page or a terminal would obey"
    if any(c in "*?[" for c in name):
        return "its name is a pattern, which nbgrader would look for"
    return ""


def _sweep_below(top: Path, submitted: Path, refused: Path) -> list[str]:
    moved = []
    for chapter in [top] if top.parent.parent == submitted else sorted(top.iterdir()):
        if not chapter.is_symlink() and (problem := _too_much(chapter, submitted)):
            moved.append(_clear(chapter, submitted, refused, problem))
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files]:
            path = Path(folder, name)
            if _is_expected(path, submitted):
                continue  # read safely, and given a status
            if problem := _problem(path, submitted):
                moved.append(_told(path, problem, move(path, submitted, refused)))
                if name in folders:
                    folders.remove(name)
    return moved


def _is_expected(path: Path, submitted: Path) -> bool:
    """Whether it is the place of the notebook, and no folder."""
    if path.parent.parent.parent != submitted or path.name != f"{path.parent.name}.ipynb":
        return False
    return not stat.S_ISDIR(path.lstat().st_mode)


def _too_much(chapter: Path, submitted: Path) -> str:
    """Why the files beside a notebook are too many, or nothing; each alone may be small."""
    files = size = 0
    for path in _below(chapter):
        if not _is_expected(path, submitted):
            status = path.lstat()
            files += 1
            if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES:  # or it goes alone
                size += status.st_size
        if files > MOST_FILES:
            return f"it holds more than {MOST_FILES} files"
        if size > MOST_BYTES:
            return f"its files have more than {MOST_BYTES >> 20} MiB together"
    return ""


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in [*folders, *files])
        if len(os.fsencode(place)) - len(os.fsencode(folder)) > MAX_PATH:
            folders.clear()


def _problem(path: Path, submitted: Path | None = None) -> str:
    status = path.lstat()
    mode = status.st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return "it is no file of its own"
    if stat.S_ISREG(mode) and status.st_size > MAX_BYTES:
        return f"it is larger than {MAX_BYTES >> 20} MiB"
    if submitted and len(os.fsencode(path.relative_to(submitted))) > MAX_PATH:
        return "it lies too deep"
    if stat.S_ISDIR(mode) and path.suffix == ".ipynb":
        return "it is a folder that is called like a notebook"
    if not os.access(path, os.R_OK):
        return "it may not be read"
    if path.name == STAMP:
        try:
            handed_in(path.parent)
        except NoDate as error:
            return str(error)
    return ""


def _clear(chapter: Path, submitted: Path, refused: Path, problem: str) -> str:
    """Leave notebook and date, and move the rest at once."""
    target = move(chapter, submitted, refused)
    chapter.mkdir()
    for name in (f"{chapter.name}.ipynb", STAMP):
        if os.path.lexists(target / name):
            rename(target / name, chapter / name)
    return _told(chapter, f"{problem} beside the notebook", target)


def _told(path: Path, problem: str, target: Path) -> str:
    return _as_text(f"{path}: {problem}: moved to {target}")


def _as_text(text: str) -> str:
    """One line that a terminal shows and does not obey."""
    shown = text.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")
    return report.clean(shown, 4 * MAX_PATH)

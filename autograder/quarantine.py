"""Takes out of what was handed in what nbgrader trips over, or would follow out of the class.

nbgrader follows a link, and the file that it points to would come back in a student's feedback; it
stops at a date that it cannot read. What is moved lies in `refused`, and nothing is lost. Notebooks
stay, whatever they are: they get a status.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from datetime import datetime
from pathlib import Path

from .notebooks import Malformed, read_bytes

STAMP = "timestamp.txt"
MAX_STAMP = 200  # bytes
DATE = re.compile(r"[0-9A-Za-z :.,+_-]+(/[A-Za-z_]+)*")  # a zone such as Europe/Rome, and no path
MAX_NAME = 128  # characters: what the grade book holds


class NoDate(Exception):
    """A submission's date cannot be read; the message says why."""


def sweep(submitted: Path, refused: Path) -> list[str]:
    """Move what is no submission from `submitted/STUDENT/CHAPTER` to `refused`; says what."""
    moved = []
    for student in sorted(submitted.iterdir()) if submitted.is_dir() else ():
        problem = name_problem(student.name) or _problem(student)
        if problem:
            moved.append(_move(student, submitted, refused, problem))
        elif student.is_dir():
            moved += _sweep_below(student, submitted, refused)
    return moved


def before_nbgrader(*, notebooks: list[str], **_: str) -> None:
    """nbgrader's `pre_convert_hook`: the same for one submission, also when formgrader asks.

    A folder whose notebook has another name is graded as one where the notebook is missing.
    """
    folder = Path(notebooks[0]).parent
    submitted = folder.parent.parent
    _sweep_below(folder, submitted, submitted.parent / "refused")
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
    if any(c in '<>"' or unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in name):
        return "its name has signs that a page or a terminal would obey"
    if any(c in "*?[" for c in name):
        return "its name is a pattern, which nbgrader would look for"
    return ""


def _sweep_below(top: Path, submitted: Path, refused: Path) -> list[str]:
    moved = []
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files]:
            path = Path(folder, name)
            expected = path.parent.parent.parent == submitted and path.stem == path.parent.name
            if expected and path.suffix == ".ipynb" and not stat.S_ISDIR(path.lstat().st_mode):
                continue  # read safely, and given a status
            if problem := _problem(path):
                moved.append(_move(path, submitted, refused, problem))
    return moved


def _problem(path: Path) -> str:
    mode = path.lstat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return "it is no file of its own"
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


def _move(path: Path, submitted: Path, refused: Path, problem: str) -> str:
    target = refused / path.relative_to(submitted)
    number = 1
    while os.path.lexists(target):
        number += 1
        target = target.with_name(f"{path.name}.{number}")
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(path, target)
    line = f"{path}: {problem}: moved to {target}"
    return line.encode("utf-8", "backslashreplace").decode()

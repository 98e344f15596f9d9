"""Finds what was handed in, in nbgrader's layout, and reads each file once, in the trusted process.

Where a file is no notebook, or is not there, its result is known without running anything.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

from . import core, course
from .notebooks import Malformed, cells_of, read_bytes
from .results import GRADER_ERROR, SubmissionResult


@dataclass(frozen=True, slots=True)
class Task:
    """One notebook of one student, there or not."""

    student: str
    chapter: str
    folder: str

    @property
    def file(self) -> Path:
        return Path(self.folder, self.chapter, f"{self.chapter}.ipynb")

    @property
    def place(self) -> str:
        """The file below the folder of submissions, as text that every reader takes."""
        within = Path(Path(self.folder).name, self.chapter, self.file.name)
        return quote_from_bytes(os.fsencode(within), safe="/ ")


def find(submitted: Path, chapters: tuple[str, ...] | None = None) -> list[Task]:
    """The tasks in nbgrader's layout, `submitted/<student>/<chapter>/<chapter>.ipynb`.

    A chapter that anybody handed in is expected of everybody. Raises CourseError when there is
    nothing to grade.
    """
    if not submitted.is_dir():
        raise course.CourseError(
            f"there is no folder {submitted}: it should hold one folder for each student"
        )
    with os.scandir(submitted) as entries:
        students = sorted(e.name for e in entries if e.is_dir() and _is_students(e))
    folders = [os.path.join(submitted, name) for name in students]
    wanted = chapters or tuple(
        c for c in course.chapters() if any(os.path.isdir(os.path.join(f, c)) for f in folders)
    )
    if not students or not wanted:
        raise course.CourseError(
            f"nothing to grade in {submitted}: it should hold "
            f"STUDENT/CHAPTER/CHAPTER.ipynb, with CHAPTER one of {', '.join(course.chapters())}"
        )
    named = [(_readable(name), os.path.join(submitted, name)) for name in students]
    return [Task(name, chapter, folder) for chapter in wanted for name, folder in named]


def _is_students(folder: os.DirEntry[str]) -> bool:
    """Hidden folders belong to programs, unless there is a chapter in them."""
    chapters = (os.path.join(folder.path, chapter) for chapter in course.chapters())
    return not folder.name.startswith(".") or any(map(os.path.isdir, chapters))


def located(submitted: Path, place: str) -> Path:
    """The file that `Task.place` tells of. Raises CourseError where that leads elsewhere."""
    within = Path(os.fsdecode(unquote_to_bytes(place)))
    if not place or within.is_absolute() or ".." in within.parts:
        raise course.CourseError(
            f"the record must tell a file below the folder of submissions, but tells {place!r}"
        )
    return submitted / within


def read(task: Task) -> tuple[bytes, SubmissionResult | None]:
    """(content, None), or where there is nothing to run (b"", the result)."""
    file = task.file
    result = SubmissionResult(task.student, task.chapter, GRADER_ERROR, [], file=task.place)
    try:
        for folder in (file.parent, file.parent.parent):
            if folder.is_symlink():
                raise Malformed(f"{folder.name} is a link to another folder")
        content = read_bytes(file)
        result.sha256 = hashlib.sha256(content).hexdigest()
        cells_of(content)
    except FileNotFoundError:
        return b"", core.without_running(result, core.MISSING, _instead(file))
    except (Malformed, OSError) as error:
        return b"", core.without_running(result, core.MALFORMED, str(error))
    return content, None


def _instead(file: Path) -> str:
    others = sorted(p.name for p in file.parent.glob("*") if p.is_file())
    instead = f"; there is {', '.join(others[:5])}" if others else ""
    return f"{file.name} was not handed in{instead}"


def _readable(name: str) -> str:
    """A folder's name as text that every file and data base takes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

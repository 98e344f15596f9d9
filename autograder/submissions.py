"""Finds what was handed in, in nbgrader's layout, and reads each file once, in the trusted process.

Where a file is no notebook, or is not there, its result is known without running anything.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

from . import core, course
from .notebooks import Malformed, cells_of, read_bytes
from .results import GRADER_ERROR, SubmissionResult

LONGEST = 255  # bytes of a folder's name on most file systems


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
    students = sorted(name for name in os.listdir(submitted) if _is_students(submitted, name))
    folders = [os.path.join(submitted, name) for name in students]
    wanted = chapters or tuple(
        c for c in course.chapters() if any(os.path.isdir(os.path.join(f, c)) for f in folders)
    )
    if not students or not wanted:
        raise course.CourseError(
            f"nothing to grade in {submitted}: it should hold "
            f"STUDENT/CHAPTER/CHAPTER.ipynb, with CHAPTER one of {', '.join(course.chapters())}"
        )
    named = list(zip(_readable(students), folders, strict=True))
    return [Task(name, chapter, folder) for chapter in wanted for name, folder in named]


def _is_students(submitted: Path, name: str) -> bool:
    """Hidden folders belong to programs, unless there is a chapter in them.

    What cannot be looked at, such as a link to itself, is no folder and no error.
    """
    folder = os.path.join(submitted, name)
    chapters = (os.path.join(folder, chapter) for chapter in course.chapters())
    return os.path.isdir(folder) and (not name.startswith(".") or any(map(os.path.isdir, chapters)))


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
    except Malformed as error:
        return b"", core.without_running(result, core.MALFORMED, str(error))
    except OSError as error:  # without its path, which is the grader's
        note = f"{file.name} cannot be read: {error.strerror or type(error).__name__}"
        return b"", core.without_running(result, core.MALFORMED, note)
    return content, None


def _instead(file: Path) -> str:
    """What is told of a notebook that is not there. No link is followed."""
    try:
        with os.scandir(file.parent) as entries:
            others = sorted(e.name for e in entries if e.is_file(follow_symlinks=False))
    except OSError:
        others = []
    instead = f"; there is {', '.join(others[:5])}" if others else ""
    return f"{file.name} was not handed in{instead}"


def _readable(names: Sequence[str]) -> list[str]:
    """Folders' names as texts that every file and data base takes, no two the same.

    What is no text grows when it is written as one: it must still be the name of a folder.
    """
    content = {name: name.encode("utf-8", "surrogateescape") for name in names}
    whole = {name: raw.decode("utf-8", "backslashreplace") for name, raw in content.items()}
    taken = {text for name, text in whole.items() if name == text}
    for name, text in whole.items():
        digest = content[name]
        while name != text and (text in taken or len(text.encode()) > LONGEST):
            digest = hashlib.sha256(digest).digest()
            text = f"{_cut(whole[name])}~{digest.hex()[:8]}"
        taken.add(text)
        whole[name] = text
    return list(whole.values())


def _cut(text: str) -> str:
    return text.encode()[: LONGEST - 9].decode("utf-8", "ignore")

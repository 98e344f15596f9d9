"""Tells from a file's name who handed it in and for which chapter, as each platform writes it.

Canvas writes `lovelaceada_LATE_1234_5678_rope-1.ipynb`: the sortable name, LATE, the person, the
attachment, the student's own name of the file; or `anon_x1Y2z_5678_rope.ipynb`. Moodle writes
`Ada Lovelace_1234567_assignsubmission_file_/rope.ipynb`, or all of it in one name. Where a name can
be read in two ways, it is not read at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

CANVAS = (
    r"(?:(?!(?:LATE|late)_anon_)(?P<name>[^/]+?)_)?(?:(?P<late>LATE|late)_)?"
    r"(?P<student_id>anon_[A-Za-z0-9]+|\d+)"
    r"_(?P<number>\d+)_(?P<file_id>[^/]+)"
)
MOODLE = (
    r"(?P<name>[^/_]+)_(?P<student_id>\d+)_assignsubmission_file(?:_?/(?:.+/)?|_)(?P<file_id>[^/]+)"
)
PATTERNS = {"canvas": CANVAS, "moodle": MOODLE}
LONGEST = 120  # bytes of a student's name as a folder


class Unclear(Exception):
    """The name does not tell who or what, or tells it twice; the message says which."""


@dataclass(frozen=True)
class Claim:
    """What a name says. `who` is the student as written there, `student` the folder's name.

    `number` grows with each attempt where the platform counts; `tail` is the part of the name that
    the platform's pattern is about.
    """

    who: str
    student: str
    file: str
    chapter: str | None = None
    number: int | None = None
    tail: str = ""
    late: bool = False


def claim(kind: str, name: str, chapters: Sequence[str]) -> Claim:
    """Read a file's name. Raises Unclear."""
    if kind == "flat":
        return _flat(PurePosixPath(name).parts, chapters)
    parts = name.split("/")
    for start in range(len(parts)):  # the first part that fits, as Moodle's own import has it
        tail = "/".join(parts[start:])
        if found := re.fullmatch(PATTERNS[kind], tail):
            file = found["file_id"]
            number = int(found["number"]) if kind == "canvas" else None
            who, student = person(found)
            late = bool(found.groupdict().get("late"))
            named = named_chapter(_stem(file), chapters)
            return Claim(who, student, file, named, number, tail, late)
    raise Unclear(
        f"its name is not one that {kind.capitalize()} writes; where does it come from (--from)?"
    )


def person(found: re.Match[str] | dict[str, str | None]) -> tuple[str, str]:
    """(who, folder's name) from what a platform's pattern found."""
    name, number = found["name"] or "", found["student_id"] or ""
    who = f"{name}_{number}".strip("_")
    return who, f"{folder_name(name)}_{number}".strip("_")


def folder_name(who: str) -> str:
    """A student's name as a folder that every system takes and no reader is fooled by.

    Letters, their marks, digits and `. _ @` stay; what else is written becomes `-`; characters that
    cannot be seen go.

    >>> folder_name("Ada Lovelace"), folder_name("../=x\\u202e")
    ('Ada-Lovelace', 'x')
    """
    text = unicodedata.normalize("NFC", who)
    text = "".join(c for c in text if unicodedata.category(c)[0] != "C")
    kept = [c if unicodedata.category(c)[0] in "LMN" or c in "._@" else "-" for c in text]
    text = re.sub(r"-+", "-", "".join(kept)).strip("-._@")
    return text.encode()[:LONGEST].decode("utf-8", "ignore").strip("-._@")


def named_chapter(stem: str, chapters: Sequence[str]) -> str | None:
    """The chapter that a file's name begins with: `rope`, `rope (1)`, `rope-final`."""
    stem = stem.casefold()
    found = []
    for chapter in chapters:
        for written in _spellings(chapter):
            rest = stem.removeprefix(written)
            if rest != stem and not rest[:1].isalnum():
                found.append((len(written), chapter))
    return max(found)[1] if found else None


def _flat(parts: Sequence[str], chapters: Sequence[str]) -> Claim:
    file, stem = parts[-1], _stem(parts[-1])
    readings: set[tuple[str, str | None]] = set()
    if len(parts) == 1:
        for chapter in chapters:
            for written in _spellings(chapter):
                for between in "_-":
                    if stem.casefold().endswith(between + written):
                        readings.add((stem[: -len(written) - 1], chapter))
        if named_chapter(stem, chapters) is not None:
            readings.add(("?", None))
        readings = readings or {(stem, None)}
    elif len(parts) == 2:
        folder = parts[0]
        room, named = _exactly(folder, chapters), named_chapter(stem, chapters)
        if room and not named:
            readings.add((stem, room))
        elif named and not room:
            readings.add((folder, named))
    elif len(parts) == 3:
        for who, what in ((parts[0], parts[1]), (parts[1], parts[0])):
            if found := _exactly(what, chapters):
                readings.add((who, found))
    students = {folder_name(who) for who, _ in readings}
    if len(readings) != 1 or "" in students:
        raise Unclear(
            "its name does not tell one student and one chapter: call it "
            "STUDENT_CHAPTER.ipynb, CHAPTER/STUDENT.ipynb or STUDENT/CHAPTER.ipynb"
        )
    ((who, told),) = readings
    return Claim(unicodedata.normalize("NFC", who), students.pop(), file, told)


def _exactly(text: str, chapters: Sequence[str]) -> str | None:
    return next((c for c in chapters if text.casefold() in _spellings(c)), None)


def _spellings(chapter: str) -> set[str]:
    return {chapter, chapter.replace("_", "-"), chapter.replace("_", " ")}


def _stem(file: str) -> str:
    return re.sub(r"\.ipynb$", "", file, flags=re.I)

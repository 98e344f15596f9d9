"""Reads the table that a platform exports, finds students in it, and writes it back.

What is not ours stays as it was, byte for byte in each cell: separator, decimal comma, other
columns. Only cells that a grade goes into are changed.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .. import course, outputs

Key = Callable[[dict[str, str]], Iterable[str]]  # a row's names, as students may be called


@dataclass
class Roster:
    """A CSV table with its habits: `rows[0]` is the header."""

    rows: list[list[str]]
    delimiter: str
    newline: str
    bom: bool
    comma: bool  # decimals are written 7,5

    @property
    def header(self) -> list[str]:
        return self.rows[0]

    def column(self, *names: str) -> int | None:
        """The place of the first of these columns that is there."""
        lower = [h.strip().casefold() for h in self.header]
        return next((lower.index(n.casefold()) for n in names if n.casefold() in lower), None)

    def as_dict(self, row: list[str]) -> dict[str, str]:
        return {h.strip(): cell for h, cell in zip(self.header, row, strict=False)}

    def number(self, value: float) -> str:
        text = f"{round(value, 2):g}"
        return text.replace(".", ",") if self.comma else text

    def value(self, cell: str) -> float | None:
        """A number as this table writes it."""
        try:
            return float(cell.strip().replace(",", ".") if self.comma else cell.strip())
        except ValueError:
            return None

    def write(self, out: Path) -> None:
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter, lineterminator=self.newline).writerows(self.rows)
        start = "\ufeff" if self.bom else ""
        outputs.replace(out, start + text.getvalue())


def read(file: Path) -> Roster:
    """Read a roster. Raises CourseError."""
    try:
        raw = file.read_bytes().decode("utf-8")
    except OSError as error:
        raise course.CourseError(f"the roster {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise course.CourseError(
            f"the roster {file} is not UTF-8: export it once more, and do not save it in between"
        ) from None
    text = raw.removeprefix("\ufeff")
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise course.CourseError(f"the roster {file} is no CSV table: {error}") from None
    rows = [row for row in rows if row]
    if len(rows) < 2:
        raise course.CourseError(f"the roster {file} has no rows of students")
    width = len(rows[0])
    rows = [row + [""] * (width - len(row)) for row in rows]
    cells = [cell.strip() for row in rows[1:] for cell in row]
    comma = any(re.fullmatch(r"-?\d+,\d+", c) for c in cells)
    comma = comma and not any(re.fullmatch(r"-?\d+\.\d+", c) for c in cells)
    newline = "\r\n" if "\r\n" in text else "\n"
    return Roster(rows, delimiter, newline, raw != text, comma)


def match(
    students: Iterable[str], rows: dict[int, dict[str, str]], keys: list[tuple[str, Key]]
) -> tuple[dict[str, int], list[str]]:
    """({student: row}, who was not found and why). The first key that finds a student decides.

    A name that fits two rows, and a row that two students fit, are nobody's.
    """
    found: dict[str, int] = {}
    lost: list[str] = []
    tables: list[tuple[str, dict[str, set[int]], Callable[[str], str]]] = []
    for name, key in keys:
        exact: dict[str, set[int]] = defaultdict(set)
        loose: dict[str, set[int]] = defaultdict(set)
        for index, row in rows.items():
            for written in key(row):
                exact[_same(written)].add(index)
                loose[plain(written)].add(index)
        tables += [(name, exact, _same), (name, loose, plain)]
    for student in dict.fromkeys(students):
        for name, table, spelled in tables:
            fits = table.get(spelled(student), set()) if spelled(student) else set()
            if len(fits) == 1:
                found[student] = next(iter(fits))
                break
            if fits:
                lost.append(f"{student}: {len(fits)} rows of the roster have this {name}")
                break
        else:
            lost.append(f"{student}: not in the roster")
    taken = defaultdict(list)
    for student, index in found.items():
        taken[index].append(student)
    for same in taken.values():
        if len(same) > 1:
            for student in same:
                del found[student]
            lost.append(f"{', '.join(same)}: all of these fit one row of the roster")
    return found, lost


def without_result(
    rows: dict[int, dict[str, str]], places: dict[str, int], names: tuple[str, ...]
) -> list[str]:
    """Who is in the roster and has no result, by the first of these columns that is filled."""
    taken = set(places.values())
    absent = (row for index, row in rows.items() if index not in taken)
    return [next((row[n] for n in names if row.get(n)), "a row without a name") for row in absent]


def plain(text: str) -> str:
    """A name without what is written in one way here and in another there.

    >>> plain("Lovelace, Ada") == plain("lovelaceada"), plain("a_1") == plain("a1")
    (True, False)
    """
    text = unicodedata.normalize("NFC", text).casefold()
    return "".join(c for c in text if unicodedata.category(c)[0] in "LMN" or c in "_@")


def _same(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold()


def cell(roster: Roster, name: str) -> Key:
    """A key that is one column."""
    place = roster.column(name)
    title = "" if place is None else roster.header[place].strip()
    return lambda row: [row.get(title, "")]

"""The table that Canvas's gradebook imports: its own export, filled, or a new one.

With a roster, the assignment's column ("rope (12345)") is filled and everything else stays as
Canvas wrote it, so that nothing but these grades can change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .. import course, outputs
from ..results import SubmissionResult
from . import Request, rosters
from .rosters import Roster, cell, plain

FIRST = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
KEPT = ("n/a", "ex")  # not assigned, excused: a decision that was made in Canvas
POINTS = "    Points Possible"  # as Canvas writes it, spaces and all


def write(request: Request, results: list[SubmissionResult]) -> None:
    if request.roster is None:
        _new(request, results)
    else:
        _filled(request, results, rosters.read(request.roster))


def _filled(request: Request, results: list[SubmissionResult], roster: Roster) -> None:
    header = [h.strip() for h in roster.header]
    if "ID" not in header or not {"Student", "LastName"} & set(header):
        raise course.CourseError(
            f"{request.roster} is no export of Canvas's gradebook: it should have the columns "
            f"Student and ID, but has {', '.join(header[:6])}"
        )
    rows = {i: roster.as_dict(r) for i, r in enumerate(roster.rows) if i and _is_student(roster, r)}
    keys = [
        ("SIS Login ID", cell(roster, "SIS Login ID")),
        ("SIS User ID", cell(roster, "SIS User ID")),
        ("ID", _ids),
        ("name", _names),
    ]
    places, lost = rosters.match((r.student for r in results), rows, keys)
    request.left_out += lost
    request.absent(rosters.without_result(rows, places, ("Student", "LastName")))
    maxima = {r.chapter: r.max_score for r in results}
    columns = {c: _column(request, roster, c, maxima[c]) for c in maxima}
    for result in results:
        if result.student not in places or request.ungraded(result):
            continue
        row = roster.rows[places[result.student]]
        column, factor = columns[result.chapter]
        if row[column].strip().casefold() in KEPT:
            request.left_out.append(
                f"{result.student} {result.chapter}: Canvas says {row[column].strip()}, which stays"
            )
            continue
        row[column] = roster.number((result.score or 0.0) * factor)
    roster.write(request.out)


def _column(request: Request, roster: Roster, chapter: str, ours: float) -> tuple[int, float]:
    """(place of the assignment's column, factor for its points); a new one where none is there."""
    asked = request.columns.get(chapter)
    titles = {i: re.sub(r" \(\d+\)$", "", h.strip()) for i, h in enumerate(roster.header)}
    fitting = [
        i
        for i, title in titles.items()
        if i > 1
        and (asked in (title, roster.header[i].strip()) if asked else _same(title, chapter))
    ]
    if asked and not fitting:
        raise course.CourseError(f"{request.roster} has no column {asked!r}, which --column names")
    if len(fitting) > 1:
        names = " and ".join(roster.header[i] for i in fitting)
        raise course.CourseError(f"{names} are both {chapter}: say --column '{chapter}=NAME (ID)'")
    if not fitting:
        request.notes.append(
            f"the roster has no assignment called {chapter}: Canvas will ask to make a new one; "
            f"to fill one of another name say --column '{chapter}=NAME'"
        )
        for row in roster.rows:
            row.append(roster.number(ours) if "Points Possible" in row[0] else "")
        roster.header[-1] = chapter
        return len(roster.header) - 1, 1.0
    (place,) = fitting
    possible = [roster.value(r[place]) for r in roster.rows[1:] if "Points Possible" in r[0]]
    theirs = possible[0] if possible else None
    if theirs and theirs != ours and not request.scale:
        request.notes.append(
            f"{roster.header[place]} has {theirs:g} points in Canvas, {chapter} has {ours:g}: "
            "change it there, or say --scale"
        )
    return place, theirs / ours if theirs and ours and request.scale else 1.0


def _new(request: Request, results: list[SubmissionResult]) -> None:
    chapters = list(dict.fromkeys(r.chapter for r in results))
    maxima = {r.chapter: r.max_score for r in results}
    rows: dict[str, list[str]] = {}
    for result in results:
        found = re.fullmatch(r".+_(\d+)", result.student)
        start = [result.student, found[1] if found else "", "", "" if found else result.student]
        cells = [outputs._cell(text) for text in start] + [""] * (1 + len(chapters))
        row = rows.setdefault(result.student, cells)
        if not request.ungraded(result):
            row[len(FIRST) + chapters.index(result.chapter)] = f"{result.score:g}"
    possible = [POINTS, "", "", "", "", *(f"{maxima[c]:g}" for c in chapters)]
    Roster([[*FIRST, *chapters], possible, *rows.values()], ",", "\n", False, False).write(
        request.out
    )
    request.notes.append(
        "without --roster the students' names are the folders', Section is empty, and Canvas will "
        "make new assignments: export the gradebook from Canvas and name it with --roster"
    )


def _is_student(roster: Roster, row: list[str]) -> bool:
    return bool(row[0].strip()) and "Points Possible" not in row[0] and row[0].strip() != "Student"


def _ids(row: dict[str, str]) -> Iterable[str]:
    """The number alone, and with the name before it as Canvas names files."""
    number = row.get("ID", "").strip()
    if not number:
        return []
    return [number, *(f"{plain(name)}_{number}" for name in _names(row))]


def _names(row: dict[str, str]) -> Iterable[str]:
    name = row.get("Student", "")
    if "LastName" in row:
        name = f"{row['LastName']}, {row.get('FirstName', '')}"
    last, _, first = name.partition(",")
    return [name, f"{first.strip()} {last.strip()}"] if first.strip() else [name]


def _same(title: str, chapter: str) -> bool:
    return plain(title).replace("_", "") == plain(chapter).replace("_", "")

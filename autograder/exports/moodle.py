"""Moodle's offline grading worksheet, filled: grade and feedback comment, all else as it was.

Moodle finds people by `Identifier` and refuses rows that were graded since the worksheet was
downloaded, so the worksheet itself is wanted; nothing of it can be made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .. import course, outputs, report
from ..handed_in import folder_name
from ..results import SubmissionResult
from . import Request, one_chapter, rosters
from .rosters import Roster

OURS = ("Identifier", "Full name", "Grade", "Maximum Grade", "Feedback comments")


def write(request: Request, results: list[SubmissionResult]) -> None:
    if request.roster is None:
        raise course.CourseError(
            "Moodle wants its own worksheet back: in the assignment choose "
            "“Download grading worksheet”, and name the file with --roster"
        )
    chapter = one_chapter(results, "a worksheet of Moodle's is about one assignment")
    roster = rosters.read(request.roster)
    for ours, theirs in request.columns.items():  # a worksheet in another language
        if ours not in OURS or (place := roster.column(theirs)) is None:
            raise course.CourseError(
                f"--column {ours}={theirs}: the first should be one of {', '.join(OURS)}, the "
                f"second one of {', '.join(roster.header)}"
            )
        roster.header[place], request.columns[ours] = ours, roster.header[place]
    grade, identifier = roster.column("Grade"), roster.column("Identifier")
    if grade is None or identifier is None:
        raise course.CourseError(
            f"{request.roster} is no grading worksheet: it should have the columns Identifier and "
            f"Grade (in another language: --column Grade=NAME), but has {', '.join(roster.header)}"
        )
    rows = {i: roster.as_dict(row) for i, row in enumerate(roster.rows) if i}
    keys = [
        ("Identifier", _identifiers),
        ("ID number", rosters.cell(roster, "ID number")),
        ("Email address", rosters.cell(roster, "Email address")),
        ("Full name", rosters.cell(roster, "Full name")),
    ]
    places, lost = rosters.match((r.student for r in results), rows, keys)
    request.left_out += lost
    request.absent(rosters.without_result(rows, places, ("Full name", "Identifier")))
    for result in results:
        if result.student in places and not request.ungraded(result):
            _fill(request, roster, places[result.student], result, grade)
    for ours, theirs in request.columns.items():
        roster.header[roster.header.index(ours)] = theirs
    roster.write(request.out)
    request.notes.append(f"to be uploaded to the assignment of {chapter} alone")


def _fill(
    request: Request, roster: Roster, index: int, result: SubmissionResult, grade: int
) -> None:
    row, label = roster.rows[index], f"{result.student} {result.chapter}"
    changeable, most = roster.column("Grade can be changed"), roster.column("Maximum Grade")
    if changeable is not None and row[changeable].strip().casefold() == "no":
        request.left_out.append(f"{label}: Moodle says that this grade cannot be changed")
        return
    score, ours = result.score or 0.0, result.max_score
    theirs = roster.value(row[most]) if most is not None else None
    if theirs and request.scale and ours:
        score *= theirs / ours
    elif theirs and theirs != ours:
        note = (
            f"the assignment has {theirs:g} points in Moodle, {result.chapter} has {ours:g}: "
            "change it there, or say --scale"
        )
        if note not in request.notes:
            request.notes.append(note)
        if score > theirs:
            request.left_out.append(f"{label}: {score:g} is more than Moodle's {theirs:g}")
            return
    row[grade] = roster.number(score)
    comments = roster.column("Feedback comments")
    if comments is None:
        return
    if row[comments].strip() and not row[comments].startswith(_first(result)):
        request.notes.append(f"{label}: the comment that is there stays")
    else:
        row[comments] = comment(result)


def comment(result: SubmissionResult) -> str:
    """What a student reads beside the grade, as the HTML that Moodle takes."""
    lines = [f"{_first(result)} {result.score:g} of {result.max_score:g} points ({result.status})"]
    for exercise in result.exercises:
        lines.append(f"{exercise.id}: {report.headline(exercise, public=False)}")
        if exercise.misconception:
            lines.append(exercise.misconception["message"])
    return outputs._cell("<br>".join(report.escaped(line) for line in lines))[:4000]


def _first(result: SubmissionResult) -> str:
    return f"{result.chapter}:"


def _identifiers(row: dict[str, str]) -> Iterable[str]:
    """`Participant 123` as it is, its number, and as `collect` names the folder."""
    written = row.get("Identifier", "").strip()
    found = re.search(r"(\d+)$", written)
    if not found:
        return [written]
    name = row.get("Full name")
    before = folder_name(name if name else written[: found.start()])
    return [written, found[1], f"{before}_{found[1]}"]

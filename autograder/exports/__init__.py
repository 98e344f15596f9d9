"""Grades in the forms that others read: learning platforms, spreadsheets, test reports.

Each form is a module with one function `write(request, results)`. None of them invents a number: a
grade that the grader could not give stays empty, and who could not be matched is told.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .. import course, outputs
from ..results import SubmissionResult

FORMS = {
    "canvas": "canvas",
    "moodle": "moodle",
    "csv": "checks_table",
    "gradescope": "gradescope",
    "junit": "junit",
    "feedback": "feedback",
}


@dataclass
class Request:
    """What is asked for, and what there is to tell: `left_out` makes the export incomplete."""

    grades: Path
    out: Path
    roster: Path | None = None
    chapter: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    scale: bool = False
    collected: Path | None = None
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def absent(self, names: list[str]) -> None:
        """Tell who is in the roster alone. Their cells stay as they were."""
        if names:
            more = f" and {len(names) - 20} more" if len(names) > 20 else ""
            self.notes.append(
                f"in the roster, and nothing graded (the cell stays as it was): "
                f"{'; '.join(names[:20])}{more}"
            )

    def ungraded(self, result: SubmissionResult) -> bool:
        """Whether the grader failed on a submission; if so, that is told."""
        if result.score is None:
            self.left_out.append(
                f"{result.student} {result.chapter}: the grader failed, so there is no grade; "
                "grade it again"
            )
        return result.score is None


def export(form: str, request: Request) -> list[SubmissionResult]:
    """Write `request.out` in a form; returns what was exported. Raises CourseError."""
    if form not in FORMS:
        raise course.CourseError(f"--to must be one of {', '.join(FORMS)}, but is {form!r}")
    if request.chapter is not None:
        course.manifest(request.chapter)
    if request.roster and request.roster.resolve() == request.out.resolve():
        raise course.CourseError("OUT is the roster itself: name another file, to compare them")
    results = list(read_all(request))
    if not results:
        of = f" of chapter {request.chapter}" if request.chapter else ""
        raise course.CourseError(
            f"there are no grades{of} in {request.grades}: it should be the folder that "
            "`python -m autograder grade --out` wrote"
        )
    try:
        request.out.parent.mkdir(parents=True, exist_ok=True)
        importlib.import_module(f"{__name__}.{FORMS[form]}").write(request, results)
    except OSError as error:
        raise course.CourseError(f"{request.out} cannot be written: {error.strerror}") from None
    return results


def read_all(request: Request) -> Iterator[SubmissionResult]:
    """The results in a folder of grades, by student, chapters in the order of the book."""
    chapters = (request.chapter,) if request.chapter else course.chapters()
    students = request.grades / outputs.STUDENTS
    for student in sorted(students.iterdir()) if students.is_dir() else ():
        for chapter in chapters:
            if not (student / chapter).is_dir():
                continue
            result = outputs.read_submission(request.grades, student.name, chapter)
            if result is None or (result.student, result.chapter) != (student.name, chapter):
                request.left_out.append(
                    f"{student.name} {chapter}: its results.json cannot be read; grade it again"
                )
            else:
                yield result


def one_chapter(results: list[SubmissionResult], why: str) -> str:
    """The only chapter among the results. Raises CourseError."""
    chapters = list(dict.fromkeys(r.chapter for r in results))
    if len(chapters) != 1:
        raise course.CourseError(f"{why}: say --chapter, one of {', '.join(chapters)}")
    return chapters[0]

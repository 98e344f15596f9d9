"""`nbgrader export` as a table in which a student's name is one cell and no formula.

nbgrader's own plugin joins the cells by commas: a student called `eve,,,,15.0` writes her
own grade. The columns are nbgrader's. Configured in `nbgrader_config.py`.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from nbgrader.plugins import ExportPlugin

from . import outputs

COLUMNS = (
    "assignment duedate timestamp student_id last_name first_name email "
    "raw_score late_submission_penalty score max_score"
).split()


class SafeCsvExportPlugin(ExportPlugin):
    """nbgrader's CSV export, quoted, and without what a spreadsheet would compute."""

    def export(self, gradebook: Any) -> None:
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(COLUMNS)
        for assignment in gradebook.assignments:
            if not _asked(assignment.name, self.assignment):
                continue
            submissions = {s.student_id: s for s in assignment.submissions}
            for student in gradebook.students:
                if _asked(student.id, self.student):
                    lines.writerow(_row(assignment, student, submissions.get(student.id)))
        file = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", file)
        outputs.replace(file, text.getvalue())


def _asked(name: str, only: list[Any]) -> bool:
    return not only or name in map(str, only)


def _row(assignment: Any, student: Any, submission: Any) -> list[str]:
    """Who submitted nothing has zeros, as in nbgrader's own table."""
    timestamp, score, penalty = None, 0.0, 0.0
    if submission is not None:
        timestamp, score = submission.timestamp, submission.score
        penalty = submission.late_submission_penalty
    about = (student.id, student.last_name, student.first_name, student.email)
    return [
        outputs._cell(assignment.name),
        _text(assignment.duedate),
        _text(timestamp),
        *(outputs._cell(_text(value)) for value in about),
        *map(_text, (score, penalty, max(0.0, score - penalty), assignment.max_score)),
    ]


def _text(value: Any) -> str:
    return "" if value is None else str(value)

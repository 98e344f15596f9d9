"""The rows of nbgrader's grade book that belong to a chapter and to some of its submissions.

nbgrader's own functions store one row at a time; these ask for what is stored, and write what
differs, in a few statements. The tables are nbgrader's models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from nbgrader import api
from nbgrader.utils import is_locked
from sqlalchemy import insert, select, update

from . import autograded, course
from .results import SubmissionResult

Points = Mapping[str, float | None]  # a bonus by the name of its cell with BONUS before it
BONUS = "bonus of "
Penalty = Callable[[str, float, float], float | None]


def points(result: SubmissionResult) -> Points:
    """All that the grade book takes of a result: points by the name of the grade cell."""
    named = {e.id.split(".", 1)[1]: e for e in result.exercises}
    on_top = {BONUS + name: e.bonus for name, e in named.items() if e.max_bonus}
    return {name: e.points for name, e in named.items()} | on_top


def prepare(book: Any, chapter: str) -> None:
    """Assignment, notebook and cells, as `nbgrader generate_assignment` makes them."""
    session = book.db
    assignment = session.scalars(
        select(api.Assignment).where(api.Assignment.name == chapter)
    ).one_or_none()
    if assignment is None:
        assignment = api.Assignment(name=chapter, course_id=book.course_id)
        session.add(assignment)
    named = [n for n in assignment.notebooks if n.name == chapter]
    notebook = named[0] if named else api.Notebook(name=chapter, assignment=assignment)
    released = autograded.released(chapter)
    if not notebook.kernelspec:
        notebook.kernelspec = json.dumps(released.metadata.get("kernelspec", {}))
    grade_cells = {cell.name: cell for cell in notebook.grade_cells}
    solution_cells = {cell.name for cell in notebook.solution_cells}
    source_cells = {cell.name for cell in notebook.source_cells}
    worth = {e.name: float(e.points) for e in course.manifest(chapter)}
    for cell in released.cells:
        name = autograded.grade_id(cell)
        role = cell.metadata.get("nbgrader", {})
        if role.get("grade"):
            if name not in grade_cells:
                grade_cells[name] = api.GradeCell(
                    name=name, notebook=notebook, max_score=worth[name], cell_type="code"
                )
            elif grade_cells[name].max_score != worth[name]:
                grade_cells[name].max_score = worth[name]
        elif role.get("solution") and name not in solution_cells:
            api.SolutionCell(name=name, notebook=notebook)
        if name and name not in source_cells:
            api.SourceCell(
                name=name,
                notebook=notebook,
                cell_type=cell.cell_type,
                locked=is_locked(cell),
                source=cell.source,
                checksum=role.get("checksum"),
            )
    session.add(notebook)


def store(
    session: Any,
    chapter: str,
    results: Mapping[str, Points],
    dates: Mapping[str, datetime],
    penalty: Penalty,
) -> None:
    """Bring the rows of these students' submissions to what the results say."""
    assignment, duedate, notebook = session.execute(
        select(api.Assignment.id, api.Assignment.duedate, api.Notebook.id)
        .join(api.Notebook, api.Notebook.assignment_id == api.Assignment.id)
        .where(api.Assignment.name == chapter, api.Notebook.name == chapter)
    ).one()
    wanted = list(results)
    known = set(session.scalars(select(api.Student.id).where(api.Student.id.in_(wanted))))
    _insert(session, api.Student, [{"id": s} for s in wanted if s not in known])
    submissions = _submissions(session, assignment, wanted, dates)
    places = _notebooks(session, notebook, submissions)
    scores = _grades(session, notebook, results, {s: places[s]["id"] for s in wanted})
    _comments(session, notebook, [places[s]["id"] for s in wanted])
    changed = []
    for student in wanted:
        row, found = submissions[student], None
        due = duedate and duedate + row["extension"] if row["extension"] else duedate
        if due and row["timestamp"] and row["timestamp"] > due:
            seconds = (row["timestamp"] - due).total_seconds()
            found = penalty(student, scores[student], seconds)
        if places[student]["late_submission_penalty"] != found:
            changed.append({"id": places[student]["id"], "late_submission_penalty": found})
    _update(session, api.SubmittedNotebook, changed)


def _submissions(
    session: Any, assignment: str, students: list[str], dates: Mapping[str, datetime]
) -> dict[str, dict[str, Any]]:
    table = api.SubmittedAssignment
    columns = (table.id, table.student_id, table.timestamp, table.extension)
    query = select(*columns).where(
        table.assignment_id == assignment, table.student_id.in_(students)
    )
    rows = {r.student_id: dict(r._mapping) for r in session.execute(query)}
    changed = []
    for student, date in dates.items():
        if student in rows and rows[student]["timestamp"] != date:
            rows[student]["timestamp"] = date
            changed.append({"id": rows[student]["id"], "timestamp": date})
    _update(session, table, changed)
    new = {
        student: {
            "id": api.new_uuid(),
            "student_id": student,
            "timestamp": dates.get(student),
            "extension": None,
        }
        for student in students
        if student not in rows
    }
    _insert(session, table, [{**row, "assignment_id": assignment} for row in new.values()])
    return rows | new


def _notebooks(
    session: Any, notebook: str, submissions: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    table = api.SubmittedNotebook
    of = {row["id"]: student for student, row in submissions.items()}
    columns = (table.id, table.assignment_id, table.late_submission_penalty)
    query = select(*columns).where(table.notebook_id == notebook, table.assignment_id.in_(of))
    rows = {of[r.assignment_id]: dict(r._mapping) for r in session.execute(query)}
    new = {
        student: {
            "id": api.new_uuid(),
            "assignment_id": submission,
            "late_submission_penalty": None,
        }
        for submission, student in of.items()
        if student not in rows
    }
    _insert(session, table, [{**row, "notebook_id": notebook} for row in new.values()])
    return rows | new


def _grades(
    session: Any, notebook: str, results: Mapping[str, Points], places: Mapping[str, str]
) -> dict[str, float]:
    """Store the automatic scores; returns each student's score, a person's changes included."""
    table = api.Grade
    cells = session.execute(
        select(api.GradeCell.name, api.GradeCell.id).where(api.GradeCell.notebook_id == notebook)
    ).all()
    columns = (
        table.id,
        table.notebook_id,
        table.cell_id,
        table.auto_score,
        table.manual_score,
        table.extra_credit,
        table.needs_manual_grade,
    )
    query = select(*columns).where(table.notebook_id.in_(places.values()))
    stored = {(r.notebook_id, r.cell_id): r for r in session.execute(query)}
    new, changed, scores = [], [], {}
    for student, earned in results.items():
        total, place = 0.0, places[student]
        for name, cell in cells:
            row = stored.get((place, cell))
            auto = earned.get(name, row.auto_score if row else None)
            extra = earned.get(BONUS + name)
            if row is None:
                ids = {"notebook_id": place, "cell_id": cell, "extra_credit": extra}
                new.append({**ids, "auto_score": auto, "needs_manual_grade": auto is None})
                total += (auto or 0.0) + (extra or 0.0)
                continue
            if extra is None or row.manual_score is not None:  # a person's, or one that saw it
                extra = row.extra_credit
            # A score that a person looked at stays looked at, until the automatic one changes.
            seen = row.manual_score is not None and auto == row.auto_score
            look = auto is None or row.manual_score is not None
            look = row.needs_manual_grade if seen else look
            now = {"auto_score": auto, "extra_credit": extra, "needs_manual_grade": look}
            if now != {column: getattr(row, column) for column in now}:
                changed.append({"id": row.id, **now})
            given = auto if row.manual_score is None else row.manual_score
            total += 0.0 if given is None else given + (extra or 0.0)
        scores[student] = total
    _insert(session, table, new)
    _update(session, table, changed)
    return scores


def _comments(session: Any, notebook: str, places: Sequence[str]) -> None:
    """A place for a person's comment at each answer; an automatic one is of an older attempt."""
    table = api.Comment
    cells = session.scalars(
        select(api.SolutionCell.id).where(api.SolutionCell.notebook_id == notebook)
    ).all()
    query = select(table.id, table.notebook_id, table.cell_id, table.auto_comment).where(
        table.notebook_id.in_(places)
    )
    stored = {(r.notebook_id, r.cell_id): r for r in session.execute(query)}
    new = [
        {"notebook_id": place, "cell_id": cell}
        for place in places
        for cell in cells
        if (place, cell) not in stored
    ]
    old = [{"id": r.id, "auto_comment": None} for r in stored.values() if r.auto_comment]
    _insert(session, table, new)
    _update(session, table, old)


def _insert(session: Any, table: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        session.execute(insert(table), rows)


def _update(session: Any, table: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        session.execute(update(table), rows)

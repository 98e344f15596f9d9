"""Writes results into nbgrader's grade book, so that its export, formgrader and penalties apply.

The scores of a submission are replaced as a whole; manual scores and comments stay untouched.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

from . import course
from .results import SubmissionResult


def default_url() -> str:
    """The grade book that `nbgrader_config.py` at the root names."""
    from traitlets.config.loader import PyFileConfigLoader

    config = PyFileConfigLoader("nbgrader_config.py", path=str(course.ROOT)).load_config()
    return str(config.CourseDirectory.db_url)


def write(url: str, results: Iterable[SubmissionResult]) -> None:
    """Store results; assignment, notebook and grade cells are made where they are missing."""
    from nbgrader.api import Gradebook
    from sqlalchemy.exc import SAWarning

    beside = str(Path(sys.executable).parent)  # nbgrader calls alembic by its bare name
    os.environ["PATH"] = os.pathsep.join([beside, os.environ.get("PATH", "")])
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), Gradebook(url) as book:
        warnings.simplefilter("ignore", SAWarning)  # nbgrader's own queries, newer SQLAlchemy
        for result in results:
            _prepare(book, result.chapter)
            book.update_or_create_student(result.student)
            submission = book.update_or_create_submission(result.chapter, result.student)
            (notebook,) = [n for n in submission.notebooks if n.name == result.chapter]
            points = {e.id.split(".", 1)[1]: e.points for e in result.exercises}
            for grade in notebook.grades:
                if grade.name in points:
                    grade.auto_score = points[grade.name]
                    unknown = points[grade.name] is None or grade.manual_score is not None
                    grade.needs_manual_grade = unknown
            book.db.commit()


def _prepare(book: object, chapter: str) -> None:
    """Assignment, notebook and one grade cell per exercise, as `generate_assignment` makes them."""
    from nbgrader.api import Gradebook, MissingEntry

    assert isinstance(book, Gradebook)
    try:
        known = {cell.name for cell in book.find_notebook(chapter, chapter).grade_cells}
    except MissingEntry:
        book.update_or_create_assignment(chapter)
        book.update_or_create_notebook(chapter, chapter)
        known = set()
    for exercise in course.manifest(chapter):
        if exercise.name not in known:
            book.update_or_create_grade_cell(
                exercise.name, chapter, chapter, max_score=exercise.points, cell_type="code"
            )

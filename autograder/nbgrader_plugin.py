"""nbgrader's own `autograde`, with our grading in the place of its kernel.

Configured in `nbgrader_config.py`. nbgrader converts a submission twice: first `AnyNotebook` opens
whatever was handed in and restores the course's own cells, then `GradeInSandbox` runs the code in
the sandbox and the checks outside, and gives each grade cell the one number that nbgrader reads.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Dict, Integer

from . import autograded, core, course, sandbox, seeds, submissions
from .notebooks import Malformed, read_bytes
from .results import GRADER_ERROR
from .sandbox import Limits

HANDED_IN, BONUS = "handed_in", "bonus"  # what one step tells another


class AnyNotebook(NotebookExporter):
    """Opens what nbformat refuses: whatever a student handed in becomes a notebook of the course.

    It never follows a link, and takes nothing from the submission but the text of its cells. Made
    when nbgrader has looked for notebooks, it adds the submissions in which there is none.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        if self.parent is not None:
            _add_the_missing(self.parent)

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **more: Any
    ) -> tuple[Any, dict[str, Any]]:
        assert resources is not None and self.parent is not None
        about, directory = resources["nbgrader"], self.parent.coursedir
        place = directory.format_path(
            directory.submitted_directory, about["student"], about["assignment"]
        )
        about[HANDED_IN] = Path(place, os.path.basename(filename))
        if os.path.abspath(filename) != os.path.abspath(about[HANDED_IN]):
            return super().from_filename(filename, resources, **more)  # the second time
        path, name = os.path.split(filename)
        resources["metadata"] = {"path": path, "name": name.removesuffix(".ipynb")}
        notebook = autograded.restored(_content(Path(filename)), about["notebook"])
        return self.from_notebook_node(notebook, resources, **more)


class GradeInSandbox(NbGraderPreprocessor):
    """Replaces nbgrader's `Execute`."""

    without_sandbox = Bool(
        False, help="Run students' code without walls: it can then do whatever you can."
    ).tag(config=True)
    limits = Dict(help="What differs from the limits of sandbox.Limits: {'cell_seconds': 5}").tag(
        config=True
    )

    seed = Integer(
        None,
        allow_none=True,
        help="Decides the inputs of the checks. Where none is set, the course's secret and the "
        "submission do, as in `python -m autograder grade`.",
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, Any]:
        about = resources["nbgrader"]
        walls = not self.without_sandbox
        if walls:
            sandbox.require()
        student, chapter, file = about["student"], about["notebook"], about.get(HANDED_IN)
        if chapter not in course.chapters():
            raise course.CourseError(f"notebook {chapter!r} is no chapter of this course")
        if file is None:
            raise course.CourseError(
                "Autograde.exporter_class must be autograder.nbgrader_plugin.AnyNotebook, "
                f"but is {type(self.parent).__name__}; take it from the course's nbgrader_config.py"
            )
        task = submissions.Task(student, chapter, str(file.parent.parent))
        content, result = submissions.read(task)
        if result is None:
            seed = seeds.of(student, chapter, content) if self.seed is None else self.seed
            limits = Limits(**self.limits)
            result = core.grade_bytes(
                student, chapter, content, seed=seed, limits=limits, walls=walls
            )
        self.log.info("%s: %s, %s points", result.student, result.status, result.score)
        if result.status == GRADER_ERROR:
            raise RuntimeError(f"the grader failed on {result.student}: {result.note}")
        autograded.annotate(nb, result)
        about[BONUS] = {e.id.split(".", 1)[1]: e.bonus for e in result.exercises if e.max_bonus}
        return nb, resources


class SaveBonus(NbGraderPreprocessor):
    """Follows nbgrader's `SaveAutoGrades`, and enters what was earned on top as extra credit.

    Its cell has 0 points, so that the maximum stays. A person's score in the cell keeps ours out.
    """

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, Any]:
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as book:
            for name, earned in about.get(BONUS, {}).items():
                place = name, about["notebook"], about["assignment"], about["student"]
                grade = book.find_grade(*place)
                if grade.manual_score is None:
                    grade.extra_credit = earned
            book.db.commit()
        return nb, resources


def _add_the_missing(converter: Any) -> None:
    """What nbgrader leaves out: a place without a notebook, and a student's hidden folder."""
    directory = converter.coursedir
    chapter = directory.assignment_id
    if chapter not in course.chapters() or directory.notebook_id not in ("*", chapter):
        return
    students = ("*", ".*") if directory.student_id == "*" else (directory.student_id,)
    for student in students:
        place = directory.format_path(directory.submitted_directory, student, chapter)
        for folder in glob.glob(place):
            expected = os.path.join(folder, f"{chapter}.ipynb")
            converter.assignments.setdefault(folder, [expected])


def _content(file: Path) -> bytes | None:
    try:
        return read_bytes(file)
    except (OSError, Malformed):
        return None

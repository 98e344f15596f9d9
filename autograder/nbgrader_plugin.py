"""nbgrader's own `autograde`, with our grading in the place of its kernel.

Configured as a preprocessor in `nbgrader_config.py`: the notebook's code runs in the sandbox, the
checks outside, and each grade cell gets the messages and exactly one number, which nbgrader reads.
"""

from __future__ import annotations

import html
from functools import cache
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Dict, Integer

from . import core, course, report, sandbox
from .generate import student_notebook
from .notebooks import cells_in
from .results import GRADER_ERROR, SubmissionResult
from .sandbox import Limits


class GradeInSandbox(NbGraderPreprocessor):
    """Replaces nbgrader's `Execute`."""

    without_sandbox = Bool(
        False, help="Run students' code without walls: it can then do whatever you can."
    ).tag(config=True)
    limits = Dict(help="What differs from the limits of sandbox.Limits: {'cell_seconds': 5}").tag(
        config=True
    )

    seed = Integer(
        None, allow_none=True, help="Inputs of the checks; a fresh seed for each where none is set."
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, Any]:
        about = resources["nbgrader"]
        walls = not self.without_sandbox
        if walls:
            sandbox.require()
        chapter = about["notebook"]
        if chapter not in course.chapters():
            raise course.CourseError(f"notebook {chapter!r} is no chapter of this course")
        seed = core.fresh_seed() if self.seed is None else self.seed
        result = SubmissionResult(about["student"], chapter, GRADER_ERROR, [], seed=seed)
        core.grade_cells(result, cells_in(nb), limits=Limits(**self.limits), walls=walls)
        self.log.info("%s: %s, %s points", result.student, result.status, result.score)
        if result.status == GRADER_ERROR:
            raise RuntimeError(f"the grader failed on {result.student}: {result.note}")
        by_name = {e.id.split(".", 1)[1]: e for e in result.exercises}
        first = True
        ours = _released(chapter)
        for cell in nb.cells:
            if cell.cell_type != "code" and cell.source not in ours:
                cell.source = html.escape(cell.source, quote=False)  # shown in others' browsers
            marks = cell.metadata.get("nbgrader", {})
            exercise = by_name.pop(marks.get("grade_id"), None) if marks.get("grade") else None
            if cell.cell_type != "code":
                continue
            cell.outputs, cell.execution_count = [], None
            if exercise is None:
                continue
            status = _status(result) if first else ""
            first = False
            cell.outputs = [
                new_output(
                    "display_data",
                    {
                        "text/plain": status + report.text(exercise, public=False),
                        "text/html": _as_html(status) + report.html_block(exercise, public=False),
                    },
                ),
                new_output(
                    "execute_result",
                    {"text/plain": repr(float(exercise.points or 0.0))},
                    execution_count=1,
                ),
            ]
        return nb, resources


@cache
def _released(chapter: str) -> frozenset[str]:
    """The texts that the course itself put into the notebook."""
    return frozenset(cell.source for cell in student_notebook(chapter).cells)


def _status(result: SubmissionResult) -> str:
    note = f"\n{result.note}" if result.note else ""
    return f"Status of the submission: {result.status}.{note}\n\n"


def _as_html(status: str) -> str:
    return f"<pre>{report.escaped(status.strip())}</pre>" if status else ""

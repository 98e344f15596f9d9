"""The notebook of a submission as nbgrader's formgrader and its feedback show it.

Both front doors make it here. What is the course's own comes from the released notebook, never from
what was handed in; a student's text is shown and not obeyed; and each grade cell gets the messages
and exactly one number, which nbgrader reads as its score.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, from_dict
from nbformat.v4 import writes

from . import course, outputs, quarantine, report, submissions
from .core import MALFORMED, MISSING
from .generate import student_notebook
from .notebooks import Malformed, cells_of
from .results import ExerciseResult, SubmissionResult
from .submissions import Task

MAX_CELLS = 2000  # what more somebody hands in is graded all the same, and not shown
MAX_TEXT = 200_000  # characters of a cell
STRANGE = re.compile(r"[^\n\t -~]")
# MathJax leaves elements of these classes alone: a formula may carry a link that runs a script.
NO_MATHS = "tex2jax_ignore mathjax_ignore"


def of_task(folder: Path, task: Task, result: SubmissionResult, *, anew: bool = True) -> None:
    """Write the notebook of what our own front door graded; not `anew`: where there is none yet.

    The date of the submission goes with it: by it nbgrader knows that its feedback is older.
    """
    if not anew and _file(folder, result).exists():
        return
    content, _ = submissions.read(task)
    beside = write(folder, content, result).with_name(quarantine.STAMP)
    try:
        date = quarantine.handed_in(task.file.parent)
    except quarantine.NoDate:
        date = None
    if date is None:
        beside.unlink(missing_ok=True)
    else:
        outputs.replace(beside, f"{date} UTC\n")


def write(folder: Path, content: bytes | None, result: SubmissionResult) -> Path:
    """Write `folder/<student>/<chapter>/<chapter>.ipynb` from the bytes that were handed in.

    Without bytes, or where they are no notebook, it is the released notebook with the status.
    """
    if result.status in (MISSING, MALFORMED):
        content = None
    notebook = restored(content, result.chapter)
    annotate(notebook, result)
    file = _file(folder, result)
    file.parent.mkdir(parents=True, exist_ok=True)
    outputs.replace(file, writes(notebook) + "\n")
    return file


def restored(content: bytes | None, chapter: str) -> NotebookNode:
    """The student's cells with the course's own as they were released, and no outputs.

    Grade cells that are missing come back behind the answer before them. Of several copies of a
    cell the last counts, as in nbgrader. Bytes that are no notebook give the released one.
    """
    notebook = from_dict(json.loads(_released_text(chapter)))
    try:
        cells_of(content or b"")
    except Malformed:
        return notebook
    theirs = [c for c in json.loads((content or b"").decode("utf-8-sig"))["cells"] if _filled(c)]
    ours = {name: cell for cell in notebook.cells if (name := grade_id(cell))}
    texts = {cell.source for cell in notebook.cells if cell.cell_type == "markdown"}
    last = {name: at for at, cell in enumerate(theirs) if (name := grade_id(cell)) in ours}
    shown = []
    for at, cell in enumerate(theirs):
        name = grade_id(cell)
        if name in ours and last[name] == at:
            own = ours[name]
            if not own.metadata["nbgrader"]["locked"]:
                own.source = _source(cell)
            shown.append(own)
        elif name in ours and _source(cell) == ours[name].source:
            continue  # a copy that adds nothing
        elif len(shown) < MAX_CELLS:
            shown.append(_stranger(cell, texts, f"theirs-{at}"))
    notebook.cells = _with_missing(shown, ours)
    return notebook


def annotate(notebook: NotebookNode, result: SubmissionResult) -> None:
    """Write the result into a restored notebook: the status on top, the rest in grade cells."""
    by_name = {e.id.split(".", 1)[1]: e for e in result.exercises}
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell.outputs, cell.execution_count = [], None
        exercise = by_name.get(grade_id(cell))
        if exercise is not None and cell.metadata["nbgrader"]["grade"]:
            cell.outputs = _outputs(exercise)
    notebook.cells.insert(0, _cell("markdown", _status(result), "status"))


def grade_id(cell: Any) -> str:
    """nbgrader's name for a cell that may be anything, or nothing."""
    metadata = cell.get("metadata")
    role = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = role.get("grade_id") if isinstance(role, dict) else None
    return name if isinstance(name, str) else ""


@cache
def released(chapter: str) -> NotebookNode:
    """The chapter's notebook as students get it. Not to be changed: it is made once."""
    return student_notebook(chapter)


@cache
def _released_text(chapter: str) -> str:
    return json.dumps(released(chapter))


def _file(folder: Path, result: SubmissionResult) -> Path:
    if Path(result.student).name != result.student or result.student in ("", ".", ".."):
        raise course.CourseError(f"a student's name is one folder's, but is {result.student!r}")
    return folder / result.student / result.chapter / f"{result.chapter}.ipynb"


def _outputs(exercise: ExerciseResult) -> list[NotebookNode]:
    block = report.html_block(exercise, public=False)
    messages = {
        "text/plain": report.text(exercise, public=False),
        "text/html": f'<div class="{NO_MATHS}">{block}</div>',
    }
    told = [_output("display_data", messages)]
    if exercise.points is not None:
        number = {"text/plain": repr(float(exercise.points))}
        told.append(_output("execute_result", number, execution_count=1))
    return told


def _output(kind: str, data: dict[str, str], **more: Any) -> NotebookNode:
    return NotebookNode(output_type=kind, metadata=NotebookNode(), data=NotebookNode(data), **more)


def _status(result: SubmissionResult) -> str:
    note = f"\n{result.note}" if result.note else ""
    return _as_text(report.clean(f"Status of the submission: {result.status}.{note}"))


def _with_missing(shown: list[NotebookNode], ours: dict[str, NotebookNode]) -> list[NotebookNode]:
    """The cells with each grade cell that was taken out behind the one that it follows."""
    before: NotebookNode | None = None
    for cell in ours.values():
        if not any(cell is other for other in shown):
            if not cell.metadata["nbgrader"]["grade"]:
                continue
            places = [at for at, other in enumerate(shown) if other is before]
            shown.insert(places[0] + 1 if places else len(shown), cell)
        before = cell
    return shown


def _filled(cell: Any) -> bool:
    return isinstance(cell, dict) and bool(_source(cell).strip() or grade_id(cell))


def _stranger(cell: dict[str, Any], texts: set[str], name: str) -> NotebookNode:
    """A cell that is not the course's: code as it is, any other text without its powers."""
    source = _source(cell)
    if cell.get("cell_type") == "code":
        return _cell("code", source, name, outputs=[], execution_count=None)
    return _cell("markdown", source if source in texts else _as_text(source), name)


def _cell(kind: str, source: str, name: str, **more: Any) -> NotebookNode:
    """As nbformat's `new_code_cell`, which also validates each, and that takes long."""
    return NotebookNode(cell_type=kind, id=name, metadata=NotebookNode(), source=source, **more)


def _source(cell: dict[str, Any]) -> str:
    """A cell's text as people see it: no control characters, none that turn writing around."""
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    if not isinstance(source, str):
        return ""
    source = source[: MAX_TEXT + 2].replace("\r\n", "\n")
    source = STRANGE.sub(_seen, source)
    return source if len(source) <= MAX_TEXT else source[: MAX_TEXT - 1] + "…"


def _seen(sign: re.Match[str]) -> str:
    return sign[0] if report.seen(sign[0]) else ""


def _as_text(text: str) -> str:
    """Markdown that shows a text letter by letter."""
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("$", "&#36;")):
        text = text.replace(sign, entity)
    return f'<pre class="{NO_MATHS}" style="white-space:pre-wrap">{text}</pre>'

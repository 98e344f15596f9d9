"""Turns a chapter into nbgrader's source notebook, and that into what a student gets.

The chapter in `book/` is the single source. Its notebook carries the reference between solution
marks; nbgrader's own converter takes it out again, and so does `student_notebook`, by the same
preprocessors.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from . import course
from .answer_cells import with_answers
from .exercise import Exercise
from .markdown import to_markdown
from .references import Book, pages_in_order, read_book

TITLE = re.compile(r"(?:<a [^\n]*</a>\n\n)?# [^\n]*")
HOW_TO = """\
> **How to work.** Write your code in place of `raise NotImplementedError`, run the cell, then run
> the check below it: it says what is right and where to look.
>
> Run the cells from top to bottom. Figures and examples use *your* functions: a cell that stops
> with `NotImplementedError` waits for an exercise above it. Solve that one, then run it again."""

FIND_COURSE = """\
# Finds the course's checks from wherever this notebook was opened. Run this cell first.
import sys
from pathlib import Path

here = Path.cwd()
places = [here, *here.parents, *here.glob("*/")]
sys.path[:0] = [str(p) for p in places if (p / "autograder" / "__init__.py").is_file()][:1]
try:
    from autograder import check
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "The course's folder `autograder` is not here. Keep this notebook in the unpacked folder "
        "of the course. In Colab: upload the course's zip (Files, on the left), run "
        "`!unzip -qo *.zip` in a new cell, then run this cell again."
    ) from None"""


def generate(stem: str, out: Path) -> Path:
    """Write the source notebook of a chapter to `out/<stem>/<stem>.ipynb`; returns its path."""
    notebook = source_notebook(stem)
    path = Path(out) / stem / f"{stem}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    return path


def source_notebook(stem: str) -> NotebookNode:
    """The notebook with all solutions that nbgrader's `generate_assignment` starts from."""
    pages = pages_in_order(course.ROOT / "_toc.yml")
    book = read_book(course.ROOT / "book", pages if stem in pages else [*pages, stem])
    path = course.ROOT / "book" / f"{stem}.md"
    return build(path, course.manifest(stem), book, course.ROOT)


def student_notebook(stem: str) -> NotebookNode:
    """The notebook as it is released: nbgrader's own steps as configured, without its data base."""
    return copy.deepcopy(_student_notebook(stem))


@cache
def _student_notebook(stem: str) -> NotebookNode:
    from nbgrader.converters import GenerateAssignment
    from nbgrader.preprocessors import SaveCells
    from traitlets.config import Config
    from traitlets.config.loader import PyFileConfigLoader

    notebook = source_notebook(stem)
    file = course.ROOT / "nbgrader_config.py"
    config = PyFileConfigLoader(str(file)).load_config() if file.is_file() else Config()
    resources: dict[str, Any] = {"metadata": {"name": stem, "path": "."}}
    for step in GenerateAssignment(config=config).preprocessors:
        if step is not SaveCells:
            notebook, resources = step(config=config).preprocess(notebook, resources)
    return notebook


def build(chapter: Path, exercises: Iterable[Exercise], book: Book, root: Path) -> NotebookNode:
    """The source notebook of the chapter in this file, with the references of `root`."""
    cells = _read(chapter)
    _convert(cells, chapter.stem, book)
    cells = with_answers(cells, tuple(exercises), chapter, root)
    cells = _with_introduction(cells)
    _finish(cells, chapter.stem)
    return new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
    )


def _read(chapter: Path) -> list[NotebookNode]:
    """The chapter's cells, without those for the book only; Markdown cells know their line."""
    from jupytext.myst import myst_to_notebook

    text = chapter.read_text(encoding="utf-8")
    notebook = myst_to_notebook(text, add_source_map=True)
    lines = text.splitlines()
    cells = []
    for cell, line in zip(notebook.cells, notebook.metadata["source_map"], strict=True):
        while line < len(lines) and not lines[line].strip():
            line += 1
        cell.metadata["line"] = line + 1
        if "book-only" not in cell.metadata.get("tags", []):
            cells.append(cell)
    return cells


def _convert(cells: list[NotebookNode], page: str, book: Book) -> None:
    texts = [cell for cell in cells if cell.cell_type == "markdown"]
    converted = to_markdown([(c.metadata["line"], c.source) for c in texts], page, book)
    for cell, text in zip(texts, converted, strict=True):
        cell.source = text


def _with_introduction(cells: list[NotebookNode]) -> list[NotebookNode]:
    """The title, how to work, the cell that finds the checks, and then the chapter."""
    first, title = cells[0], ""
    if first.cell_type == "markdown" and (found := TITLE.match(first.source)):
        title, first.source = found[0] + "\n\n", first.source[found.end() :].strip("\n")
    return [new_markdown_cell(title + HOW_TO), new_code_cell(FIND_COURSE), *cells]


def _finish(cells: list[NotebookNode], stem: str) -> None:
    """Leave only nbgrader's metadata, and give each cell an id that its content decides."""
    cells[:] = [cell for cell in cells if cell.source.strip()]
    seen: Counter[str] = Counter()
    for cell in cells:
        role = cell.metadata.get("nbgrader")
        cell.metadata = NotebookNode({"nbgrader": role} if role else {})
        key = role["grade_id"] if role else cell.cell_type + cell.source
        seen[key] += 1
        cell.id = hashlib.sha256(f"{stem}/{key}/{seen[key]}".encode()).hexdigest()[:12]

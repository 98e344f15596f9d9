"""The answers in a source notebook: the reference in its stub with all it needs, or a refusal."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from nbformat import NotebookNode

from autograder.course import CourseError
from autograder.exercise import Exercise
from autograder.generate import build
from autograder.references import pages_in_order, read_book

SAMPLE = Path(__file__).parent / "data" / "sample_course"
EXERCISES = (Exercise("sample", "norm", 2), Exercise("sample", "Scale", 3, "with_torch"))


def sample(
    exercises: tuple[Exercise, ...] = EXERCISES,
    *,
    folder: Path | None = None,
    change: Callable[[str], str] = str,
) -> NotebookNode:
    """The notebook of the sample course, perhaps with a changed page."""
    page = SAMPLE / "book" / "sample.md"
    book = read_book(SAMPLE / "book", pages_in_order(SAMPLE / "_toc.yml"))
    if folder is not None:
        page = folder / "sample.md"
        text = (SAMPLE / "book" / "sample.md").read_text(encoding="utf-8")
        page.write_text(change(text), encoding="utf-8")
    return build(page, exercises, book, SAMPLE)


def cell(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    cells = [
        c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id
    ]
    assert len(cells) == 1
    return cells[0]


def run(notebook: NotebookNode) -> dict[str, object]:
    """The names after all cells but the checks ran."""
    names: dict[str, object] = {}
    for c in notebook.cells:
        if c.cell_type == "code" and "autograder" not in c.source:
            exec(c.source, names)
    return names


def test_a_solution_takes_its_helpers_along_and_runs_by_itself() -> None:
    names = run(sample())
    assert names["norm"]((3.0, 4.0)) == 5.0  # type: ignore[operator]
    assert names["Scale"]().forward((3.0, 4.0)) == (0.6, 0.8)  # type: ignore[operator]


def test_a_helper_called_like_something_else_in_the_notebook_is_renamed() -> None:
    source = cell(sample(), "answer-Scale").source
    assert "def torch_power_sum" in source and "def torch_norm" in source
    assert "torch_norm(vector) ** 2" in source
    assert "def power_sum" in cell(sample(), "answer-norm").source


def test_a_class_keeps_its_methods_as_stubs_and_nothing_else() -> None:
    from nbgrader.preprocessors import ClearSolutions

    notebook, _ = ClearSolutions().preprocess(sample(), {})
    tree = ast.parse(cell(notebook, "answer-Scale").source)
    assert len(tree.body) == 1 and isinstance(tree.body[0], ast.ClassDef)
    methods = [n for n in tree.body[0].body if isinstance(n, ast.FunctionDef)]
    assert [m.name for m in methods] == ["__init__", "forward"]
    assert all(isinstance(m.body[-1], ast.Raise) for m in methods)
    assert ast.get_docstring(methods[1]) == "The unit vector."


def test_comments_of_a_reference_are_kept() -> None:
    assert "# the reason stands before the line" in cell(sample(), "answer-norm").source
    assert "# no base class to call" in cell(sample(), "answer-Scale").source


def test_the_notebook_begins_with_its_title_how_to_work_and_the_checks() -> None:
    first, second = sample().cells[:2]
    assert "# A sample of everything\n\n> **How to work.**" in first.source
    assert "from autograder import check" in second.source


def test_without_the_course_the_first_cell_says_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = sample().cells[1].source
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert "ModuleNotFoundError: The course's folder `autograder` is not here" in done.stderr
    assert "In Colab: upload the course's zip" in done.stderr


def test_cells_for_the_book_alone_are_dropped() -> None:
    assert 'sys.path.insert(0, "..")' not in "".join(c.source for c in sample().cells)


def test_an_exercise_without_a_stub_is_named() -> None:
    with pytest.raises(CourseError, match="exercise 'lost' has 0 stubs; give it exactly one cell"):
        sample((*EXERCISES, Exercise("sample", "lost", 1)))


def test_an_exercise_with_two_stubs_is_named(tmp_path: Path) -> None:
    twice = '\n\n```{code-cell} ipython3\n:tags: [exercise]\n\ndef norm():\n    """x"""\n```\n'
    with pytest.raises(CourseError, match="exercise 'norm' has 2 stubs"):
        sample(folder=tmp_path, change=lambda text: text + twice)


def test_a_stub_that_is_no_exercise_is_named_with_its_line() -> None:
    with pytest.raises(CourseError, match=r"book/sample.md, line \d+: .* defines \['Scale'\]"):
        sample(EXERCISES[:1])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("power: float = 2.0) -> float:", "power: float = 3.0) -> float:", "the stub has norm"),
        ("The length of a vector.", "A length.", "the docstring of 'norm'"),
        ("The unit vector.", "A vector.", "the docstring of 'forward'"),
        ("def forward", "def backward", "the reference has no method 'backward'"),
    ],
)
def test_a_stub_that_differs_from_its_reference_is_refused(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    with pytest.raises(CourseError, match=problem):
        sample(folder=tmp_path, change=lambda text: text.replace(old, new))

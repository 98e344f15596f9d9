"""A chapter becomes nbgrader's source notebook, and nbgrader makes the student's from it."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest
from markdown_it import MarkdownIt
from nbformat import NotebookNode

from autograder import course, sandbox
from autograder.generate import generate, source_notebook, student_notebook
from autograder.sandbox import Limits
from autograder.session import Session

CHAPTERS = course.chapters()
chapter = pytest.mark.parametrize("stem", CHAPTERS)


@cache
def source(stem: str) -> NotebookNode:
    return source_notebook(stem)


@cache
def released(stem: str) -> NotebookNode:
    return student_notebook(stem)


def cell(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    cells = [
        c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id
    ]
    assert len(cells) == 1
    return cells[0]


@chapter
def test_no_directive_role_or_label_is_left(stem: str) -> None:
    parser = MarkdownIt("commonmark", {"html": True})
    for c in source(stem).cells:
        if c.cell_type != "markdown":
            continue
        visible = re.sub(
            r"<pre>.*?</pre>|<code>.*?</code>", "", parser.render(c.source), flags=re.S
        )
        without_math = re.sub(r"\$\$.*?\$\$|\$[^$]+\$", "", visible, flags=re.S)
        for left in (r":::", r"\{[\w:]+\}", r"\([\w-]+\)=", r"```", r"^%", r"\.md\b", r"\[\]\("):
            assert not re.search(left, without_math, flags=re.M), (left, c.source)


@chapter
def test_every_link_within_the_notebook_has_its_heading(stem: str) -> None:
    text = "\n\n".join(c.source for c in source(stem).cells if c.cell_type == "markdown")
    anchors = re.findall(r'<a id="([^"]+)" name="\1"></a>\n\n#', text)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) == set(anchors)


@chapter
def test_drop_downs_open_and_close_with_blank_lines(stem: str) -> None:
    for c in source(stem).cells:
        if c.cell_type == "markdown":
            assert c.source.count("<details") == c.source.count("</details>")
            assert c.source.count("<details") == len(
                re.findall(r"</summary>\n(?:> )*>?\n", c.source)
            )


@chapter
def test_every_exercise_has_one_answer_and_one_check_worth_its_points(stem: str) -> None:
    cells = source(stem).cells
    for exercise in course.manifest(stem):
        answer = cell(source(stem), f"answer-{exercise.name}")
        check = cell(source(stem), exercise.name)
        assert answer.metadata.nbgrader.solution and not answer.metadata.nbgrader.locked
        assert check.metadata.nbgrader.grade and check.metadata.nbgrader.locked
        assert check.metadata.nbgrader.points == exercise.points
        assert check.source == f"from autograder import check\n\ncheck({exercise.name})"
        assert 0 < cells.index(check) - cells.index(answer) <= 2
    graded = [c for c in cells if c.metadata.get("nbgrader", {}).get("grade")]
    assert len(graded) == len(course.manifest(stem))


@chapter
def test_the_chapter_tells_the_points_of_the_manifest(stem: str) -> None:
    text = "\n".join(c.source for c in source(stem).cells if c.cell_type == "markdown")
    told = re.findall(r"^\*[\w -]+ · \d+ minutes · (\d+)( bonus)? points?\*$", text, flags=re.M)
    points = [(0, int(n)) if bonus else (int(n), 0) for n, bonus in told]
    assert points == [(e.points, e.bonus) for e in course.manifest(stem)]


@chapter
def test_notebooks_are_valid_and_carry_no_tags_of_the_book(stem: str) -> None:
    for notebook in (source(stem), released(stem)):
        nbformat.validate(notebook)
        assert notebook.metadata.kernelspec.name == "python3"
        assert len({c.id for c in notebook.cells}) == len(notebook.cells)
        for c in notebook.cells:
            assert not set(c.metadata) - {"nbgrader", "deletable", "editable"}
            assert "solutions" not in c.source


@chapter
def test_generating_again_changes_no_byte(stem: str, tmp_path: Path) -> None:
    first = generate(stem, tmp_path / "one")
    assert first == tmp_path / "one" / stem / f"{stem}.ipynb"
    assert first.read_bytes() == generate(stem, tmp_path / "two").read_bytes()


@chapter
def test_the_released_notebook_holds_no_line_of_a_solution(stem: str) -> None:
    left = {line.strip() for c in released(stem).cells for line in c.source.split("\n")}
    for exercise in course.manifest(stem):
        answer = cell(source(stem), f"answer-{exercise.name}").source
        stub = cell(released(stem), f"answer-{exercise.name}").source
        assert "SOLUTION" not in stub
        assert "raise NotImplementedError" in stub
        bodies = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", answer, flags=re.S)
        bodies = [re.sub('""".*?"""', "", body, flags=re.S) for body in bodies]
        assert bodies
        written = {line.strip() for body in bodies for line in body.split("\n")}
        shared = ("from ", ") -> ")  # imports, and the last line of a signature
        telling = {line for line in written if len(line) > 25 and not line.startswith(shared)}
        assert telling
        assert not telling & left


@chapter
def test_a_stub_has_the_signature_and_docstring_of_its_reference(stem: str) -> None:
    for exercise in course.manifest(stem):
        module = importlib.import_module(f"solutions.{exercise.room}.{stem}")
        stub_names = {name: getattr(module, name) for name in exercise.needs}  # earlier cells
        exec(cell(released(stem), f"answer-{exercise.name}").source, stub_names)
        pairs = [(stub_names[exercise.name], getattr(module, exercise.name))]
        stub, reference = pairs[0]
        if inspect.isclass(stub):
            own = [name for name, value in vars(stub).items() if inspect.isfunction(value)]
            pairs += [(vars(stub)[name], vars(reference)[name]) for name in own]
        for mine, its in pairs:
            assert inspect.cleandoc(mine.__doc__ or "") == inspect.cleandoc(its.__doc__ or "")
            assert inspect.signature(mine, eval_str=True) == inspect.signature(its, eval_str=True)


@pytest.mark.sandbox
@pytest.mark.skipif(not sandbox.available(), reason=f"NO SANDBOX: {sandbox.problem()}")
@chapter
def test_an_unsolved_notebook_says_only_what_is_not_written_yet(stem: str) -> None:
    """Cells that wait for an answer stop with NotImplementedError, or for a name it would make."""
    cells = [c.source for c in released(stem).cells if c.cell_type == "code"]
    with Session(cells, [e.name for e in course.manifest(stem)], Limits()) as session:
        session.load()
    assert session.notes() == []


@pytest.mark.slow
@chapter
def test_the_source_notebook_runs_and_earns_everything(stem: str) -> None:
    from nbclient import NotebookClient

    notebook = nbformat.from_dict(source(stem))
    # A grader asks when all cells have run: a later one must not take an earlier answer's names.
    for exercise in course.manifest(stem):
        again = nbformat.v4.new_code_cell(cell(source(stem), exercise.name).source)
        again.metadata.nbgrader = {"grade_id": f"again-{exercise.name}"}
        notebook.cells.append(again)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": course.ROOT}}
    )
    client.execute()
    names = [e.name for e in course.manifest(stem)]
    for name in [*names, *(f"again-{name}" for name in names)]:
        outputs = cell(notebook, name).outputs
        text = "\n".join(
            str(o.get("data", {}).get("text/plain", o.get("text", ""))) for o in outputs
        )
        passed = re.search(r"(\d+) of (\d+) public checks passed", text)
        assert passed and passed[1] == passed[2] != "0", text


@pytest.mark.slow
@chapter
def test_nbgrader_releases_the_same_notebook(stem: str, tmp_path: Path) -> None:
    generate(stem, tmp_path / "source")
    command = [
        *(sys.executable, "-m", "nbgrader", "generate_assignment", stem),
        f"--CourseDirectory.root={tmp_path}",
        f"--CourseDirectory.db_url=sqlite:///{tmp_path / 'gradebook.db'}",
    ]
    done = subprocess.run(command, cwd=course.ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    made = nbformat.read(tmp_path / "release" / stem / f"{stem}.ipynb", as_version=4)
    assert [c.source for c in made.cells] == [c.source for c in released(stem).cells]
    assert [c.metadata for c in made.cells] == [c.metadata for c in released(stem).cells]

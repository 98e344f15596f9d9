"""Whatever is handed in becomes a notebook of the course, and stops nbgrader's door never."""

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.nbgraderformat import MetadataValidator

from autograder import autograded, core, gradebook, quarantine, submissions
from autograder.course import CourseError
from autograder.notebooks import MAX_BYTES, cells_of
from autograder.results import SubmissionResult
from tests.nbgrader_class import (
    CHAPTER,
    EXERCISES,
    autograde,
    config_for,
    feedback,
    grade_by,
    hand_in,
    hand_in_notebook,
    result,
    totals,
)

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # nbgrader's own
NAME = EXERCISES[0].name
FULL = float(sum(e.points for e in EXERCISES))
HOSTILE = "<script>stolen = 1</script> ![x](http://x.invalid) $\\href{javascript:stolen=1}{x}$"


def solved() -> Any:
    """The released notebook with an answer of one's own in each answer's cell."""
    notebook = copy.deepcopy(autograded.released(CHAPTER))
    for cell in notebook.cells:
        if (name := autograded.grade_id(cell)).startswith("answer-"):
            cell.source = f"def {name.removeprefix('answer-')}(*inputs):\n\treturn 'mine'"
    return notebook


def grade_cell(notebook: Any, name: str = NAME) -> Any:
    return next(c for c in notebook.cells if autograded.grade_id(c) == name)


def content(notebook: Any) -> bytes:
    return json.dumps(notebook).encode()


def names(notebook: Any) -> list[str]:
    return [name for cell in notebook.cells if (name := autograded.grade_id(cell))]


def valid(notebook: Any) -> None:
    nbformat.validate(notebook)
    MetadataValidator().validate_nb(notebook)
    json.dumps(notebook).encode()


def without_grade_cell(notebook: Any) -> None:
    notebook.cells.remove(grade_cell(notebook))


def without_any_mark(notebook: Any) -> None:
    for cell in notebook.cells:
        cell.metadata = {}


def without_answer_and_grade_cell(notebook: Any) -> None:
    without_grade_cell(notebook)
    notebook.cells.remove(grade_cell(notebook, f"answer-{NAME}"))


def with_a_copy(notebook: Any) -> None:
    notebook.cells.insert(1, copy.deepcopy(grade_cell(notebook)))
    notebook.cells.append(copy.deepcopy(grade_cell(notebook, f"answer-{NAME}")))


def with_an_edited_grade_cell(notebook: Any) -> None:
    grade_cell(notebook).source = "100"
    grade_cell(notebook).outputs = [
        nbformat.v4.new_output("execute_result", {"text/plain": "100"}, execution_count=1)
    ]


def with_forged_points(notebook: Any) -> None:
    role = grade_cell(notebook).metadata["nbgrader"]
    role.update(points=1e9, locked=False, solution=True, task=True, checksum="0", cell_type="x")
    forged = {"grade_id": "forged", "grade": True, "points": 1000, "schema_version": 3}
    forged |= {"solution": False, "locked": True, "task": False, "score": 1000}
    result = nbformat.v4.new_output("execute_result", {"text/plain": "1000"}, execution_count=1)
    notebook.cells.append(
        nbformat.v4.new_code_cell("1000", metadata={"nbgrader": forged}, outputs=[result])
    )


def with_other_schemas(notebook: Any) -> None:
    for cell, version in zip(
        notebook.cells, [0, 1, 2, 4, 99, -1, "3", None, 10**400] * 99, strict=False
    ):
        cell.metadata.setdefault("nbgrader", {})["schema_version"] = version


def with_odd_metadata(notebook: Any) -> None:
    odd = [[], "x", 7, None, {"nbgrader": []}, {"nbgrader": {"grade_id": {"a": 1}}},
           {"nbgrader": {"grade_id": ""}}, {"nbgrader": {"grade": True}}]  # fmt: skip
    for cell, metadata in zip(notebook.cells, odd, strict=False):
        cell["metadata"] = metadata
    notebook["metadata"] = {"kernelspec": {"name": "bash", "display_name": 5}, "language_info": 7}


def with_odd_cells(notebook: Any) -> None:
    notebook.cells += [
        7, None, [], "text", {}, {"cell_type": "code"}, {"cell_type": "code", "source": 7},
        {"cell_type": "raw", "source": HOSTILE, "metadata": {"raw_mimetype": "text/html"}},
        {"cell_type": "unheard", "source": ["x", 5, HOSTILE]}, {"cell_type": {}, "source": "x"},
        {"cell_type": "markdown", "source": "\ud800 \x1b[31m \u202e \0", "attachments": 5},
    ]  # fmt: skip


def with_strange_ids(notebook: Any) -> None:
    for cell in notebook.cells:
        cell["id"] = "the same <b>id</b>"
    del notebook.cells[0]["id"]
    notebook["nbformat_minor"] = 2


def with_huge_outputs(notebook: Any) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [{"output_type": "stream", "name": "stdout", "text": "x" * 100_000}]


def with_broken_outputs(notebook: Any) -> None:
    for cell in notebook.cells:
        cell["outputs"], cell["execution_count"] = "none", "many"


def with_grade_cells_as_text(notebook: Any) -> None:
    for cell in notebook.cells:
        if autograded.grade_id(cell):
            cell["cell_type"] = "markdown"


def with_other_formats(notebook: Any) -> None:
    notebook["nbformat"], notebook["nbformat_minor"] = 5, "x"


EDITS: list[Callable[[Any], None]] = [
    without_grade_cell, without_any_mark, without_answer_and_grade_cell, with_a_copy,
    with_an_edited_grade_cell, with_forged_points, with_other_schemas, with_odd_metadata,
    with_odd_cells, with_strange_ids, with_huge_outputs, with_broken_outputs,
    with_grade_cells_as_text, with_other_formats,
]  # fmt: skip
UNREADABLE: dict[str, bytes | str] = {
    "no-json": "{ this is no notebook",
    "empty": "",
    "another-json": "[1, 2]",
    "format-3": '{"worksheets": [{"cells": []}], "nbformat": 3, "nbformat_minor": 0}',
    "not-utf-8": b"\xff\xfe\x00",
    "too-deep": "[" * 100_000,
    "too-large": b" " * (MAX_BYTES + 1),
    "too-much-code": json.dumps({"cells": [{"cell_type": "code", "source": "x" * (3 << 20)}]}),
}


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_every_edit_gives_a_valid_notebook_with_each_grade_cell_once(
    edit: Callable[[Any], None],
) -> None:
    notebook = solved()
    edit(notebook)
    made = autograded.restored(content(notebook), CHAPTER)
    valid(made)
    grades = {e.name: e.points for e in EXERCISES}
    found = [c for c in made.cells if c.metadata.get("nbgrader", {}).get("grade")]
    assert sorted(autograded.grade_id(c) for c in found) == sorted(grades)
    for cell in found:
        assert cell == grade_cell(autograded.released(CHAPTER), autograded.grade_id(cell))
    assert all(not c.get("outputs") for c in made.cells)
    assert made.metadata == autograded.released(CHAPTER).metadata
    assert len(set(names(made))) == len(names(made))


def test_an_untouched_notebook_comes_back_as_it_was_released() -> None:
    assert autograded.restored(content(autograded.released(CHAPTER)), CHAPTER) == (
        autograded.released(CHAPTER) | {"cells": [
            cell if autograded.grade_id(cell) else cell | {"id": f"theirs-{at}"}
            for at, cell in enumerate(autograded.released(CHAPTER).cells)
        ]}
    )  # fmt: skip


def test_a_grade_cell_comes_back_behind_its_answer_and_the_answer_stays_the_students() -> None:
    notebook = solved()
    without_grade_cell(notebook)
    made = autograded.restored(content(notebook), CHAPTER)
    assert names(made) == names(autograded.released(CHAPTER))
    place = made.cells.index(grade_cell(made))
    assert autograded.grade_id(made.cells[place - 1]) == f"answer-{NAME}"
    assert made.cells[place - 1].source.endswith("\treturn 'mine'")


def test_of_two_answers_the_last_keeps_the_mark_and_both_are_shown() -> None:
    notebook = solved()
    second = copy.deepcopy(grade_cell(notebook, f"answer-{NAME}"))
    second.source = "second = 2"
    notebook.cells.append(second)
    made = autograded.restored(content(notebook), CHAPTER)
    assert grade_cell(made, f"answer-{NAME}").source == "second = 2"
    assert sum(f"def {NAME}" in cell.source for cell in made.cells) == 1


def test_a_strangers_text_is_shown_and_has_no_powers() -> None:
    notebook = solved()
    with_odd_cells(notebook)
    notebook.cells.append(nbformat.v4.new_markdown_cell(HOSTILE))
    made = autograded.restored(content(notebook), CHAPTER)
    shown = [c.source for c in made.cells if "stolen" in c.source]
    assert len(shown) == 3
    for source in shown:
        assert "<script" not in source and "&lt;script" in source and "$" not in source
    assert not any(c in cell.source for cell in made.cells for c in "\x1b\u202e\0")
    assert {c.cell_type for c in made.cells} == {"code", "markdown"}


def test_what_is_shown_of_a_flood_of_cells_is_bounded() -> None:
    notebook = solved()
    notebook.cells = [{"cell_type": "code", "source": "x"}] * 50_000 + notebook.cells
    notebook.cells.append({"cell_type": "markdown", "source": "y" * 3_000_000})
    made = autograded.restored(content(notebook), CHAPTER)
    assert len(made.cells) < 2200 and max(len(c.source) for c in made.cells) < 201_000
    assert set(names(made)) == set(names(autograded.released(CHAPTER)))


def test_a_graded_notebook_has_messages_and_one_number_in_each_grade_cell(tmp_path: Path) -> None:
    graded = result("ada", 0.5)
    for exercise in graded.exercises:
        exercise.checks[0].message = "got <b>7</b>"
    graded.note = "Code cell 3: <img src=x>"
    file = autograded.write(tmp_path, content(solved()), graded)
    assert file == tmp_path / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    made = nbformat.read(file, as_version=4)
    valid(made)
    assert "Status of the submission: graded" in made.cells[0].source
    assert "&lt;img" in made.cells[0].source
    for exercise in EXERCISES:
        told, number = grade_cell(made, exercise.name).outputs
        assert told.output_type == "display_data" and "got <b>7" in told.data["text/plain"]
        assert number.output_type == "execute_result"
        assert float(number.data["text/plain"]) == exercise.points / 2
    assert "got &lt;b&gt;7" in grade_cell(made).outputs[0].data["text/html"]
    before = file.read_bytes()
    autograded.write(tmp_path, content(solved()), graded)
    assert file.read_bytes() == before


@pytest.mark.parametrize("status", [core.MISSING, core.MALFORMED])
def test_what_is_no_notebook_becomes_the_released_one_with_its_status(
    tmp_path: Path, status: str
) -> None:
    nothing = SubmissionResult("ada", CHAPTER, "", [])
    core.without_running(nothing, status, "it is <empty>")
    made = nbformat.read(autograded.write(tmp_path, b"{ no", nothing), as_version=4)
    valid(made)
    assert f"{status}.\nit is &lt;empty&gt;" in made.cells[0].source
    assert names(made) == names(autograded.released(CHAPTER))
    assert [c.outputs[1].data["text/plain"] for c in made.cells
            if c.metadata.get("nbgrader", {}).get("grade")] == ["0.0"] * len(EXERCISES)  # fmt: skip


def test_a_fault_of_the_grader_shows_no_number(tmp_path: Path) -> None:
    broken = result("ada")
    for exercise in broken.exercises:
        exercise.points = None
    made = nbformat.read(autograded.write(tmp_path, content(solved()), broken), as_version=4)
    assert [o.output_type for o in grade_cell(made).outputs] == ["display_data"]


def test_the_date_goes_with_the_notebook_and_what_is_there_is_kept(tmp_path: Path) -> None:
    file = hand_in(tmp_path, "ada", content(solved()), timestamp="2027-03-01T19:00:00.5+01:00")
    (task,) = submissions.find(tmp_path / "submitted")
    made = tmp_path / "made" / "ada" / CHAPTER
    autograded.of_task(tmp_path / "made", task, result("ada", 0.5), anew=False)
    assert quarantine.handed_in(made) == quarantine.handed_in(file.parent) is not None
    first = (made / file.name).read_text()
    autograded.of_task(tmp_path / "made", task, result("ada"), anew=False)
    assert (made / file.name).read_text() == first
    (file.parent / "timestamp.txt").write_text("tomorrow, perhaps")
    autograded.of_task(tmp_path / "made", task, result("ada"))
    assert (made / file.name).read_text() != first and quarantine.handed_in(made) is None


@pytest.mark.parametrize("name", ["../ada", "", "..", "/etc"])
def test_a_name_that_is_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CourseError, match="one folder's"):
        autograded.write(tmp_path / "deep", None, result(name))


@pytest.mark.long
def test_nothing_that_is_handed_in_stops_nbgraders_own_door_or_raises_a_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks of this test give half of the points where the answer is the student's."""
    grade_by(lambda cells: any("'mine'" in c for c in cells) / 2, tmp_path, monkeypatch)
    config = config_for(tmp_path)
    url = config.CourseDirectory.db_url
    for edit in EDITS:
        notebook = solved()
        edit(notebook)
        hand_in(tmp_path, edit.__name__, content(notebook))
    for name, words in UNREADABLE.items():
        hand_in(tmp_path, name, words)
    folder = hand_in(tmp_path, "another-name", None, timestamp="no date").parent
    (folder / f"{CHAPTER} (1).ipynb").write_bytes(content(solved()))
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    for student, kind in (("link", "file"), ("pipe", "pipe"), ("folder", "folder")):
        file = hand_in(tmp_path, student, None)
        make = {"file": lambda f: f.symlink_to(secret), "pipe": os.mkfifo, "folder": Path.mkdir}
        make[kind](file)
    file = hand_in(tmp_path, "links-beside", content(solved()))
    (file.parent / "stolen.txt").symlink_to(secret)
    gradebook.write(url, [result("another-name"), result("no-json"), result("gone", 0.5)])
    autograde(config)
    scores = totals(url)
    edited = {e.__name__ for e in EDITS if e is not with_grade_cells_as_text}  # these ran nothing
    assert {s: p for s, p in scores.items() if p} == dict.fromkeys(
        {*edited, "links-beside", "gone"}, FULL / 2
    )
    assert set(UNREADABLE) | {"another-name", "link", "pipe", "folder"} <= set(scores)
    page = feedback(config, "no-json", "too-large", "link", "another-name", "with_odd_cells")
    assert "Status of the submission: malformed" in page("no-json") and "not JSON" in page(
        "no-json"
    )
    assert "larger than 20 MiB" in page("too-large") and "no regular file" in page("link")
    assert "Status of the submission: missing" in page("another-name")
    assert f"there is {CHAPTER} (1).ipynb" in page("another-name")
    assert "<script>stolen" not in page("with_odd_cells")
    assert not list(tmp_path.glob("autograded/*/*/stolen.txt"))
    assert (tmp_path / "refused" / "links-beside" / CHAPTER / "stolen.txt").is_symlink()
    assert not any("SECRET" in p.read_text("utf-8", "replace")
                   for top in ("autograded", "feedback")
                   for p in (tmp_path / top).rglob("*") if p.is_file())  # fmt: skip


def test_both_doors_make_the_same_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grade_by(lambda cells: 0.5, tmp_path, monkeypatch)
    config = config_for(tmp_path)
    notebook = solved()
    with_a_copy(notebook)
    file = hand_in_notebook(tmp_path, "ada", notebook)
    gradebook.write(config.CourseDirectory.db_url, [result("ada", 0.5)])
    autograde(config)
    theirs = nbformat.read(tmp_path / "autograded" / "ada" / CHAPTER / file.name, as_version=4)
    ours = nbformat.read(
        autograded.write(tmp_path / "ours", file.read_bytes(), result("ada", 0.5)), as_version=4
    )
    assert ours == theirs


def test_the_examples_of_unreadable_files_are_unreadable() -> None:
    for name, words in UNREADABLE.items():
        if name == "too-large":
            continue
        with pytest.raises(Exception, match=r"\bit\b"):
            cells_of(words if isinstance(words, bytes) else words.encode())

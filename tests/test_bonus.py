"""A bonus counts on top: it raises no maximum, and who leaves it alone loses and hears nothing.

Its exercise may be answered by a kernel. Where that is so is read from the manifests; what is said
of Triton is tried through its interpreter.
"""

import builtins
import csv
import importlib.util
import io
import json
import linecache
import re
import runpy
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

from autograder import (
    check,
    cli,
    core,
    course,
    gpu,
    gradebook,
    outputs,
    release,
    report,
    sandbox,
    tables,
)
from autograder.exercise import Exercise
from autograder.generate import source_notebook, student_notebook
from autograder.results import ExerciseResult, SubmissionResult, from_dict
from autograder.runner import NamespaceRunner
from autograder.running import PUBLIC_SEED, grade_answers, not_here
from autograder.sandbox import Limits
from autograder.selftest import unwritten
from autograder.session import Session
from autograder.standard import Live
from tests import nbgrader_class
from tests.nbgrader_class import autograde, config_for, hand_in_notebook, rows
from tests.standin import DEVICE, Present

BONUS = [e for e in course.exercises().values() if e.bonus]
EXERCISE = BONUS[0]
CHAPTER, NAME = EXERCISE.chapter, EXERCISE.name
FULL = float(sum(e.points for e in course.manifest(CHAPTER)))
MODEL = course.ROOT / "solutions" / EXERCISE.room / "kernels" / f"{NAME}.py"
ANSWER = vars(course.reference(EXERCISE))[NAME]
HEAD = "import torch\nfrom torch import Tensor\n"
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None,
    reason="THE KERNEL IS NOT TESTED: Triton exists for Linux only",
)
needs_walls = pytest.mark.skipif(not sandbox.available(), reason=str(sandbox.problem()))
nbgraders = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


def graded(answer: Any, exercise: Exercise = EXERCISE, *, hidden: bool = True) -> ExerciseResult:
    """As grading does it; without an answer there is no such name."""
    runner = NamespaceRunner({} if answer is None else {exercise.name: answer})
    held = Live(PUBLIC_SEED)
    return grade_answers([exercise], runner, held, seed=PUBLIC_SEED, hidden=hidden)[0]


def submission(bonus: ExerciseResult, student: str = "ada") -> SubmissionResult:
    """All points of the chapter, and this for the bonus."""
    won = [
        ExerciseResult(e.id, float(e.points), e.points, "passed") for e in course.manifest(CHAPTER)
    ]
    won = [bonus if e.id == bonus.id else e for e in won]
    return SubmissionResult(student, CHAPTER, "graded", won)


def kernel_source() -> str:
    text = MODEL.read_text("utf-8")
    return text[text.index("@triton.jit") :]


def notebook(answer: str | None) -> Any:
    """The student's notebook with this in the cell of the bonus."""
    made = student_notebook(CHAPTER)
    for cell in made.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == f"answer-{NAME}" and answer:
            cell.source = HEAD + answer
    return made


# ---- nothing is asked of anybody ----


def test_what_is_required_is_what_it_was_without_the_bonus() -> None:
    assert sum(e.points for e in course.exercises().values()) == 138
    assert BONUS and all(e.points == 0 for e in BONUS)


@pytest.mark.parametrize("answer", [None, unwritten], ids=["not defined", "the stub"])
@pytest.mark.parametrize("hidden", [True, False])
def test_an_answer_that_is_not_there_costs_nothing_and_fails_no_check(
    answer: Any, hidden: bool
) -> None:
    result = graded(answer, hidden=hidden)
    assert (result.points, result.max_points, result.bonus) == (0.0, 0, 0.0)
    assert result.status == "missing" and result.checks == []
    said = f"{EXERCISE.id}: optional, for 3 bonus points (not written, which costs nothing)"
    assert report.text(result, public=not hidden) == said
    whole = submission(result)
    assert (whole.score, whole.max_score, whole.bonus) == (FULL, FULL, 0.0)
    (told,) = (line for line in report.page(whole).splitlines() if NAME in line)
    assert "✗" not in told and f"{FULL:g} of {FULL:g} points</title>" in report.page(whole)


def test_an_answer_that_was_tried_and_fails_is_told_what_fails() -> None:
    result = graded(lambda q, k, cos, sin: (q, k))
    assert result.status == "failed" and result.checks and not result.untried
    assert report.headline(result, public=False).startswith("0 of 3 bonus points, 0 of ")


def test_the_stub_of_an_exercise_that_is_required_fails_as_ever() -> None:
    required = next(e for e in course.manifest(CHAPTER) if e.points)
    result = graded(unwritten, required)
    assert result.status == "failed" and result.checks and not result.untried


def test_the_command_says_in_one_line_that_it_is_optional(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"def {NAME}(q, k, cos, sin):\n    raise NotImplementedError\n")
    assert cli.main(["check", str(file), "--exercise", NAME, "--without-sandbox"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len([line for line in shown if line.startswith(EXERCISE.id)]) == 1
    assert not any("✗" in line or "CUDA" in line for line in shown)
    assert cli.main(["check", str(file), "--exercise", NAME, "--without-sandbox", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["points"], found["bonus"], found["max_bonus"]) == (0.0, 0.0, 3)


# ---- what it earns is told apart ----


def test_the_table_has_a_column_for_it_and_leaves_the_score_alone() -> None:
    results = [submission(graded(ANSWER), "ada"), submission(graded(None), "bob")]
    short = [tables.row(result) for result in results]
    ada, bob = csv.DictReader(io.StringIO(tables.as_csv(short)))
    assert (ada["score"], ada["max_score"], ada["bonus"]) == (f"{FULL:g}", f"{FULL:g}", "3")
    assert (bob["score"], bob["max_score"], bob["bonus"]) == (f"{FULL:g}", f"{FULL:g}", "0")
    assert (ada[EXERCISE.id], bob[EXERCISE.id]) == ("3", "0")
    shown = tables.as_text(short)
    assert f"{FULL:g} + 3 / {FULL:g}" in shown and f"  {FULL:g} / {FULL:g}" in shown


def test_a_record_keeps_it_and_one_from_before_there_was_any_is_read(tmp_path: Path) -> None:
    result = submission(graded(ANSWER))
    outputs.write_submission(tmp_path, result)
    assert outputs.read_submission(tmp_path, "ada", CHAPTER) == result
    file = tmp_path / outputs.STUDENTS / "ada" / CHAPTER / "results.json"
    kept = json.loads(file.read_text())
    assert kept["score"] == FULL
    (test,) = (t for t in kept["tests"] if t["name"] == EXERCISE.id)
    assert (test["score"], test["max_score"], test["status"]) == (3.0, 0, "passed")
    assert "and a bonus of 3</title>" in file.with_name("feedback.html").read_text()
    for exercise in kept["extra_data"]["exercises"]:
        for field in ("bonus", "max_bonus", "untried"):
            del exercise[field]
    assert from_dict(kept["extra_data"]).bonus == 0.0


def test_of_a_submission_that_cannot_be_run_it_is_no_complaint() -> None:
    result = core.grade_bytes("ada", CHAPTER, b"{", seed=1, limits=Limits(), walls=False)
    assert result.status == core.MALFORMED and result.max_score == FULL
    assert "which costs nothing" in report.headline(result.exercises[-1], public=False)


# ---- nbgrader ----


def in_book(url: str) -> dict[str, tuple[Any, ...]]:
    """(automatic score, a person's, extra credit) of the bonus, by student."""
    return {row[0]: row[3:6] for row in rows(url) if row[2] == NAME}


@nbgraders
def test_in_the_grade_book_it_is_extra_credit_on_a_cell_of_no_points(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'gradebook.db'}"
    won, untried = graded(ANSWER), graded(None)
    gradebook.write(url, [submission(won, "ada"), submission(untried, "bob")])
    assert in_book(url) == {"ada": (0.0, None, 3.0), "bob": (0.0, None, 0.0)}
    with gradebook.opened(url) as book:
        assert book.find_assignment(CHAPTER).max_score == FULL
        scores = {s.student_id: s.score for s in book.assignment_submissions(CHAPTER)}
    assert scores == {"ada": FULL + 3, "bob": FULL}
    gradebook.write(url, [submission(untried, "ada")])  # a second attempt without it
    assert in_book(url)["ada"] == (0.0, None, 0.0)


@nbgraders
def test_a_person_who_gives_the_cell_a_score_keeps_ours_out(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'gradebook.db'}"
    gradebook.write(url, [submission(graded(ANSWER))])
    other = course.manifest(CHAPTER)[0].name
    with gradebook.opened(url) as book:
        grade = book.find_grade(NAME, CHAPTER, CHAPTER, "ada")
        grade.manual_score, grade.extra_credit = 0.0, 1.5
        book.find_grade(other, CHAPTER, CHAPTER, "ada").extra_credit = 0.5
        book.db.commit()
    gradebook.write(url, [submission(graded(ANSWER))])
    assert in_book(url)["ada"] == (0.0, 0.0, 1.5)
    assert next(row[5] for row in rows(url) if row[2] == other) == 0.5


@nbgraders
def test_nbgraders_own_door_enters_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nbgrader_class, "CHAPTER", CHAPTER)
    outcome = {"wrote": graded(ANSWER), "left": graded(None)}

    def grade_cells(about: SubmissionResult, cells: list[str], **_: Any) -> SubmissionResult:
        about.exercises = submission(outcome[about.student]).exercises
        about.status = "graded"
        return about

    monkeypatch.setattr(core, "grade_cells", grade_cells)
    monkeypatch.setattr("autograder.sandbox.require", lambda: None)
    monkeypatch.setenv("COURSE_SECRET_FILE", str(tmp_path / "secret"))
    config = config_for(tmp_path)
    url = config.CourseDirectory.db_url
    gradebook.write(url, [submission(outcome["left"], student) for student in outcome])
    for student in outcome:
        hand_in_notebook(tmp_path, student, notebook(None))
    autograde(config)
    assert in_book(url) == {"wrote": (0.0, None, 3.0), "left": (0.0, None, 0.0)}
    with gradebook.opened(url) as book:
        scores = {
            s.student_id: (s.score, s.max_score) for s in book.assignment_submissions(CHAPTER)
        }
    assert scores == {"wrote": (FULL + 3, FULL), "left": (FULL, FULL)}


# ---- kernels ----


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_model_answer_gives_the_bits_of_torchs_operations(dtype: torch.dtype) -> None:
    """Two products and a sum of them in float32, each rounded alike, leave nothing to differ.

    In bfloat16 a unit in the last place: the interpreter cuts bits off where a GPU rounds.
    """
    model = runpy.run_path(str(MODEL))[NAME]
    generator = torch.Generator().manual_seed(0)
    for batch, heads, key_heads, tokens, pairs in (
        (2, 3, 1, 5, 3),
        (1, 4, 4, 2, 8),
        (3, 1, 1, 1, 1),
    ):
        q = torch.randn(batch, tokens, heads, 2 * pairs, generator=generator).to(dtype)
        k = torch.randn(2 * pairs, batch, key_heads, tokens, generator=generator).to(dtype)
        q, k = q.transpose(1, 2), k.permute(1, 2, 3, 0)
        cos, sin = torch.randn(2, tokens, pairs, generator=generator)
        before = q.clone(), k.clone()
        for mine, right in zip(model(q, k, cos, sin), ANSWER(q, k, cos, sin), strict=True):
            cut_off = 2.0**-7 if dtype == torch.bfloat16 else 0.0
            torch.testing.assert_close(mine, right, rtol=cut_off, atol=0)
        assert torch.equal(q, before[0]) and torch.equal(k, before[1])


@needs_triton
def test_a_kernel_for_powers_of_two_alone_loses_what_other_sizes_are_worth() -> None:
    source = kernel_source().replace("triton.next_power_of_2(half)", "half")
    assert source != kernel_source()
    result = graded(defined_by(source))
    failed = {check.name: check.message for check in result.checks if not check.passed}
    assert "fused_rotation_odd_sizes" in failed and 0 < result.bonus < 3
    assert any("power of 2" in message for message in failed.values())


def defined_by(source: str) -> Any:
    """The answer that this code defines; Triton reads a kernel's lines from a file."""
    name = f"<answer {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    start = f"{HEAD}import triton\nimport triton.language as tl\n"
    exec(compile(start, "<start>", "exec"), space)
    exec(compile(source, name, "exec"), space)
    return space[NAME]


COMPILED = f"""
@torch.compile
def {NAME}(q, k, cos, sin):
    def rotate(x):
        a, b = x.float().chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)

    return rotate(q), rotate(k)
"""


@needs_triton
@needs_walls
@pytest.mark.sandbox
@pytest.mark.parametrize("answer", ["kernel", "torch.compile"])
def test_inside_the_walls_a_kernel_and_a_compiled_function_earn_it_all(answer: str) -> None:
    content = nbformat.writes(
        notebook(kernel_source() if answer == "kernel" else COMPILED)
    ).encode()
    result = core.grade_bytes("ada", CHAPTER, content, seed=3, limits=Limits(), walls=True)
    lost = [c.message for c in result.exercises[-1].checks if not c.passed]
    assert (result.status, result.score, result.bonus, lost) == ("graded", 0.0, 3.0, [])


@pytest.mark.parametrize("cuda", [False, True])
def test_a_worker_interprets_kernels_but_where_it_is_asked_on_a_gpu(
    cuda: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    cells = ["import os\ndef told():\n    return os.environ['TRITON_INTERPRET']"]
    with Session(cells, ["told"], Limits(), walls=False, cuda=cuda) as session:
        assert session.run({"kind": "call", "name": "told"}) == ("0" if cuda else "1")


@needs_walls
@pytest.mark.sandbox
def test_strides_are_the_same_inside_the_walls() -> None:
    cells = ["def told(x):\n    return x.stride(), x"]
    x = torch.arange(24.0).reshape(2, 3, 4)
    with Session(cells, ["told"], Limits()) as session:
        for order in ((0, 1, 2), (2, 0, 1), (1, 0, 2), (2, 1, 0)):
            given = x.permute(order)
            strides, back = session.run({"kind": "call", "name": "told", "args": (given,)})
            assert strides == given.stride() and torch.equal(back, given)


def test_a_kernel_is_asked_on_the_gpu_in_the_first_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compiled for a GPU it would refuse every tensor of the CPU's."""
    devices = set()

    def fused_rotation(q, k, cos, sin):  # type: ignore[no-untyped-def]
        devices.update(x.device.type for x in (q, k, cos, sin))
        return ANSWER(q, k, cos, sin)

    fused_rotation.__name__ = NAME
    monkeypatch.setattr(gpu, "find", lambda: gpu.Place(DEVICE, "stand-in"))
    with Present():
        check(fused_rotation)
    shown = capsys.readouterr().out
    assert devices == {DEVICE}
    assert "Asked on CUDA (stand-in)" in shown and "✗" not in shown


def test_a_kernel_is_asked_on_the_cpu_where_there_is_no_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "find", lambda: gpu.Place(why_not="PyTorch sees no GPU here"))
    check(ANSWER, NAME)
    shown = capsys.readouterr().out
    assert "✓" in shown and "✗" not in shown and "NOT TRIED ON CUDA: PyTorch sees no GPU" in shown
    check(unwritten, NAME)
    assert "CUDA" not in capsys.readouterr().out


# ---- where Triton is missing ----


@pytest.fixture
def no_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    real, found = builtins.__import__, importlib.util.find_spec

    def absent(name: str, *args: Any, **more: Any) -> Any:
        if name.split(".")[0] == "triton":
            raise ModuleNotFoundError("No module named 'triton'", name="triton")
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "triton" else found(name, *a)
    )


@pytest.mark.usefixtures("no_triton")
def test_without_triton_a_kernel_is_passed_over_aloud_and_costs_nothing() -> None:
    def starts_a_kernel(q, k, cos, sin):  # type: ignore[no-untyped-def]
        return triton.next_power_of_2(4)  # type: ignore[name-defined]  # noqa: F821

    def imports_it(q, k, cos, sin):  # type: ignore[no-untyped-def]
        import triton

        return triton.next_power_of_2(4)

    for answer in (starts_a_kernel, imports_it, None, unwritten):
        result = graded(answer)
        assert (result.points, result.bonus, result.checks) == (0.0, 0.0, [])
        line = f"{EXERCISE.id}: NOT CHECKED, triton is not installed here"
        assert not_here([result]) == [line]
        assert "NOT CHECKED, triton is not installed here, which costs nothing" in report.text(
            result, public=True
        )
    assert graded(ANSWER).bonus == 3.0  # what needs no kernel is checked all the same
    assert graded(lambda q, k, cos, sin: (q, k)).status == "failed"


@pytest.mark.usefixtures("no_triton")
def test_without_triton_the_chapters_cell_says_so_and_stops_nobody(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # the cell may set it, and it goes with the test
    (cell,) = (c for c in student_notebook(CHAPTER).cells if "NO TRITON HERE" in c.source)
    exec(compile(cell.source, "<cell>", "exec"), {})
    assert "NO TRITON HERE" in capsys.readouterr().out


def test_the_references_of_the_chapter_need_no_triton() -> None:
    for room in course.ROOMS:
        text = (course.ROOT / "solutions" / room / f"{CHAPTER}.py").read_text("utf-8")
        assert not re.search(r"^\s*(import|from) triton", text, re.M)


# ---- the bundle ----


def test_the_bundles_requirements_have_triton_where_it_exists() -> None:
    (line,) = (line for line in release._requirements().splitlines() if "triton" in line)
    assert line.startswith("triton>=") and line.endswith('sys_platform == "linux"')


def test_the_model_answer_is_among_the_secrets_and_in_no_notebook() -> None:
    secret = release.solution_lines(CHAPTER)
    lines = {line.strip() for line in kernel_source().splitlines()}
    assert len(lines & secret) > 10
    for notebook in (student_notebook(CHAPTER), source_notebook(CHAPTER)):
        given = {line.strip() for cell in notebook.cells for line in cell.source.splitlines()}
        assert not lines & secret & given


def test_the_answer_cells_of_the_bonus_are_worth_no_points() -> None:
    (cell,) = (
        c for c in student_notebook(CHAPTER).cells
        if c.metadata.get("nbgrader", {}).get("grade_id") == NAME
    )  # fmt: skip
    assert cell.metadata.nbgrader.points == 0

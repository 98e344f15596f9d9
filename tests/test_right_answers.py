"""Every right answer earns everything, however it is written.

`right_answers/<chapter>/` holds whole notebooks' worth of answers in other styles; each must define
every exercise of its chapter.
"""

import contextlib
import io
import re
import runpy
import warnings

import pytest

from autograder import course
from autograder.results import ExerciseResult
from autograder.runner import NamespaceRunner
from autograder.running import PUBLIC_SEED, grade_answers
from autograder.standard import Live

FOLDER = course.ROOT / "tests" / "right_answers"
NO_TRITON = "A RIGHT ANSWER IS NOT TESTED: its kernel needs Triton, which exists for Linux only"
FILES = [file for chapter in course.chapters() for file in sorted((FOLDER / chapter).glob("*.py"))]


@pytest.mark.parametrize("chapter", course.chapters())
def test_each_chapter_has_right_answers_in_several_styles(chapter):
    assert len([file for file in FILES if file.parent.name == chapter]) >= 3


@pytest.mark.parametrize("seed", [PUBLIC_SEED, 1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_right_answer_earns_every_point(file, seed):
    if re.search("^import triton$", file.read_text("utf-8"), re.M):
        pytest.importorskip("triton", reason=NO_TRITON)
    with warnings.catch_warnings(), contextlib.ExitStack() as quiet:
        warnings.simplefilter("ignore")
        quiet.enter_context(contextlib.redirect_stdout(io.StringIO()))
        quiet.enter_context(contextlib.redirect_stderr(io.StringIO()))
        namespace = runpy.run_path(str(file))
        results = graded(file.parent.name, namespace, seed)
    lost = [f"{c.name}: {c.message}" for r in results for c in r.checks if not c.passed]
    assert lost == []
    exercises = course.manifest(file.parent.name)
    assert [(r.points, r.bonus) for r in results] == [(e.points, e.bonus) for e in exercises]


def graded(chapter: str, namespace: dict, seed: int) -> list[ExerciseResult]:
    exercises = course.manifest(chapter)
    assert {e.name for e in exercises} <= set(namespace)
    return grade_answers(exercises, NamespaceRunner(namespace), Live(seed), seed=seed, hidden=True)

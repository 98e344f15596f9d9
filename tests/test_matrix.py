"""The checks tell right from wrong: reference, stubs and known mistakes against every check.

Nothing here knows a chapter: all of them are found through the table of contents, and a chapter's
further wrong answers in the file of its name in `wrong_answers/`.
"""

import functools
import importlib
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autograder import course
from autograder.answers import Answers
from autograder.assertions import CheckFailed
from autograder.exercise import Exercise
from autograder.recognise import same_value
from autograder.replies import Outcome, StudentError
from autograder.results import ExerciseResult
from autograder.runner import NamespaceRunner
from autograder.running import PUBLIC_SEED, Check, collected, grade_answers
from autograder.selftest import matrix
from autograder.standard import Live

SEEDS = (PUBLIC_SEED, 1)
ANOTHER = pytest.param(2, marks=pytest.mark.long)
CHAPTERS = course.chapters()
LIVE = Live(PUBLIC_SEED)  # one for all: it keeps what it has run
EXERCISES = [e for chapter in CHAPTERS for e in course.manifest(chapter)]
of_each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)


@functools.cache
def checks_of(exercise: Exercise) -> tuple[Check, ...]:
    return tuple(check for check in collected(exercise.chapter) if check.exercise == exercise.name)


def ask(check: Check, exercise: Exercise, answer: Any, seed: int) -> tuple[Answers, Any]:
    """(what was asked and answered, why the check failed or None); a check that breaks raises."""
    reference = NamespaceRunner(vars(course.reference(exercise)))
    student = NamespaceRunner(course.beside_reference(exercise, answer))
    asked, error = check.call(student, reference, seed)
    if error is not None and not isinstance(error, CheckFailed | StudentError):
        raise error
    return asked, error


def failures(exercise: Exercise, answer: Any, seed: int = PUBLIC_SEED) -> list[str]:
    return [c.name for c in checks_of(exercise) if ask(c, exercise, answer, seed)[1]]


@pytest.mark.parametrize("seed", [*SEEDS, ANOTHER])
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_reference_passes_stubs_fail_and_each_mistake_fails_first_where_it_should(chapter, seed):
    assert matrix(chapter, seed).problems == []


@of_each_exercise
def test_an_answer_that_does_nothing_of_use_passes_no_check(exercise):
    def raises(*_: Any, **__: Any) -> Any:
        raise ValueError("interleaved half 13 7 0 -6")  # what a lazy answer would name

    def returns_input(x: Any = None, *_: Any, **__: Any) -> Any:
        return x

    def returns_zeros(x: Any = 0.0, *_: Any, **__: Any) -> Any:
        return np.zeros_like(x, dtype=float)

    def makes_a_function_of_zeros(*_: Any, **__: Any) -> Any:
        return lambda x=0.0, y=0.0, *_, **__: (x, y)

    for answer in (raises, returns_input, returns_zeros, makes_a_function_of_zeros):
        passed = {c.name for c in checks_of(exercise)} - set(failures(exercise, answer))
        assert not passed, answer.__name__


STRANGE: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "text": lambda: "0.5",
    "ragged lists": lambda: [[1.0], [1.0, 2.0]],
    "a set": lambda: {1, 2},
    "a dict": lambda: {"cos": 1.0, "sin": 2.0},
    "an object": object,
    "a class": lambda: dict,
    "a pair of objects": lambda: (object(), None),
    "a pair of texts": lambda: ("cos", "sin"),
    "three of a pair": lambda: (1.0, 2.0, 3.0),
    "NaN": lambda: np.full((5, 8), np.nan),
    "infinities": lambda: (np.inf, -np.inf),
    "a huge integer": lambda: 10**400,
    "huge integers": lambda: [[10**400, 1]],
    "objects in an array": lambda: np.array([None, {}], dtype=object),
    "dates": lambda: np.zeros(3, dtype="datetime64[s]"),
    "records": lambda: np.zeros(3, dtype=[("a", int), ("b", float)]),
    "no axis at all": lambda: np.float32(1.0),
    "no element": lambda: np.zeros((0, 4)),
    "a hundred thousand": lambda: np.zeros(100_000),
    "an endless list": lambda: (loop := [], loop.append(loop))[0],
    "a generator": lambda: (i for i in range(3)),
    "a tensor": lambda: _tensor("zeros", 5, 8),
    "a sparse tensor": lambda: _tensor("eye", 5).to_sparse(),
    "a conjugated tensor": lambda: (_tensor("ones", 2) * 1j).conj(),
    "a module": lambda: _module(),
}


def _tensor(kind: str, *shape: int) -> Any:
    import torch

    return getattr(torch, kind)(*shape)


def _module() -> Any:
    import torch

    return torch.nn.Identity()


@of_each_exercise
def test_no_answer_however_strange_breaks_a_check(exercise):
    for what, make in STRANGE.items():
        answers = (lambda *_, m=make, **__: m(), lambda *_, m=make, **__: lambda *_, **__: m())
        for answer in answers:
            passed = {c.name for c in checks_of(exercise)} - set(failures(exercise, answer))
            assert not passed, what


@of_each_exercise
def test_at_least_five_mistakes_are_known_of_each_exercise_and_three_of_a_small_one(exercise):
    assert len(course.misconceptions(exercise)) >= (3 if exercise.points == 1 else 5)


@of_each_exercise
def test_no_two_mistakes_give_the_same_outputs_everywhere(exercise):
    for live in (LIVE, *map(Live, SEEDS[1:])):
        failed: dict[str, dict[str, list[Outcome]]] = {
            m.id: {} for m in course.misconceptions(exercise)
        }
        for check in checks_of(exercise):
            for about, trace in live.wrong_answers(exercise, check):
                failed[about["id"]][check.name] = trace
        for (a, one), (b, other) in itertools.combinations(failed.items(), 2):
            same = one.keys() == other.keys() and all(alike(one[c], other[c]) for c in one)
            assert not same, f"{a} and {b}"


def alike(first: list[Outcome], second: list[Outcome]) -> bool:
    return len(first) == len(second) and all(
        x.error is None and y.error is None and same_value(x.value, y.value)
        for x, y in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_mistake_has_an_id_of_its_own_and_a_message_and_a_place_in_the_chapter(chapter):
    text = (course.ROOT / "book" / f"{chapter}.md").read_text("utf-8")
    labels = set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))
    known = [m for e in course.manifest(chapter) for m in course.misconceptions(e)]
    ids = [m.id for m in known]
    assert len(ids) == len(set(ids))
    for mistake in known:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", mistake.id)
        assert mistake.section in labels, f"{mistake.id} points to {mistake.section!r}"
        assert 40 < len(mistake.message) < 400 and mistake.message[-1] in ".?!"


@of_each_exercise
def test_no_mistake_sends_the_reader_ahead_of_the_exercise(exercise):
    """A section to read again stands before the exercise, or is the exercise."""
    text = (course.ROOT / "book" / f"{exercise.chapter}.md").read_text("utf-8")
    here = text.index(f"(ex-{exercise.name})=")
    mistakes = course.misconceptions(exercise)
    assert [m.id for m in mistakes if text.index(f"({m.section})=") > here] == []


@of_each_exercise
def test_each_check_tells_the_student_one_behaviour_and_some_are_public(exercise):
    checks = checks_of(exercise)
    assert any(not c.hidden for c in checks) and any(c.hidden for c in checks)
    for check in checks:
        assert check.sentence.endswith(".") and len(check.sentence) < 120, check.name
        assert check.weight >= 1


def wrong_answers() -> list[tuple[Exercise, str, Any]]:
    found = []
    for chapter in CHAPTERS:
        file = course.ROOT / "tests" / "wrong_answers" / f"{chapter}.py"
        if file.exists():
            module = importlib.import_module(f"tests.wrong_answers.{chapter}")
            by_name = {e.name: e for e in course.manifest(chapter)}
            for name, answers in module.WRONG.items():
                found += [(by_name[name], what, answer) for what, answer in answers.items()]
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("exercise", "answer"), [pytest.param(e, a, id=f"{e.id}-{n}") for e, n, a in wrong_answers()]
)
def test_an_answer_wrong_in_a_corner_loses_points(exercise, answer):
    for seed in SEEDS:
        assert any(ask(check, exercise, answer, seed)[1] for check in checks_of(exercise))


@pytest.mark.parametrize("hidden", [False, True], ids=["public checks", "all checks"])
@of_each_exercise
def test_each_mistake_is_named_when_somebody_makes_it(exercise, hidden):
    seen = {c.name for c in checks_of(exercise) if hidden or not c.hidden}
    for mistake in course.misconceptions(exercise):
        if mistake.caught_by in seen:
            result = graded(exercise, mistake.wrong, LIVE, hidden)
            if not result.misconception:  # one that remembers earlier runs differs from its first
                result = graded(exercise, mistake.wrong, Live(PUBLIC_SEED), hidden)
            most = exercise.points + exercise.bonus
            assert result.earned is not None and result.earned < most
            assert result.misconception is not None, mistake.id
            assert result.misconception["id"] == mistake.id


def graded(exercise: Exercise, answer: Any, live: Live, hidden: bool) -> ExerciseResult:
    runner = NamespaceRunner(course.beside_reference(exercise, answer))
    return grade_answers([exercise], runner, live, seed=PUBLIC_SEED, hidden=hidden)[0]

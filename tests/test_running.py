"""Running checks: outcomes are told apart, points are shared out, and mistakes are named."""

import sys
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autograder import course
from autograder.answers import Answers
from autograder.assertions import CheckFailed, close, good_input, pair, refuses, tolerance
from autograder.exercise import Exercise, Misconception
from autograder.local import _beside
from autograder.recognise import same_value
from autograder.replies import StudentError
from autograder.runner import NamespaceRunner
from autograder.running import PUBLIC_SEED, collected, grade_answers
from autograder.session import Gone
from autograder.standard import Live

CHECKS = '''
from autograder.assertions import close, refuses
from autograder.exercise import Exercise, behaviour

EXERCISES = (Exercise("tiny", "double", 3),)

@behaviour("double", weight=2)
def check_double_doubles(student, reference, rng):
    """Twice the number."""
    x = rng.standard_normal((2, 3))
    close(student.double(x), reference.double(x), 1e-9)

@behaviour("double")
def check_double_refuses_text(student, reference, rng):
    """Text is refused."""
    close(student.double(2.0), 4.0, 0)
    refuses(student.double, "a", because="text", error="TypeError", naming=("text",))

@behaviour("double", hidden=True)
def check_double_large(student, reference, rng):
    """Large numbers too."""
    close(student.double(1e12), 2e12, 0)
'''


def double(x: Any) -> Any:
    if isinstance(x, str):
        raise TypeError("text cannot be doubled")
    return 2 * x


def squared(x: Any) -> Any:
    if isinstance(x, str):
        raise TypeError("text cannot be doubled")
    return x**2


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Grades one function by the checks above; its only known mistake is squaring."""
    course.chapters()  # kept from before the folder of checks is another
    (tmp_path / "tiny.py").write_text(CHECKS)
    exercise = Exercise("tiny", "double", 3)
    known = Misconception("square", squared, "double_doubles", "That is the square.", "two")
    monkeypatch.setattr(course, "CHECKS", tmp_path)
    monkeypatch.setattr(course, "misconceptions", lambda _: (known,))
    monkeypatch.setattr(course, "section_title", lambda *_: "Two times")

    class Standard(Live):
        def reference(self, exercise: Exercise, check: str) -> NamespaceRunner:
            return NamespaceRunner({"double": double})

    def grade(answer: Any, *, hidden: bool = True, seed: int = PUBLIC_SEED, **more: Any) -> Any:
        runner = NamespaceRunner({"double": answer} if answer else {})
        standard = Standard(seed)
        collected.cache_clear()  # a test may have changed the file
        (result,) = grade_answers([exercise], runner, standard, seed=seed, hidden=hidden, **more)
        return result

    return grade


def test_a_right_answer_earns_everything(tiny: Callable[..., Any]) -> None:
    result = tiny(double)
    assert (result.status, result.points, len(result.checks)) == ("passed", 3, 3)


def test_public_runs_leave_the_hidden_checks_out(tiny: Callable[..., Any]) -> None:
    assert [c.name for c in tiny(double, hidden=False).checks] == [
        "double_doubles",
        "double_refuses_text",
    ]


def test_weights_share_out_the_points(tiny: Callable[..., Any]) -> None:
    result = tiny(lambda x: 2 * x if not isinstance(x, str) else "aa")
    assert (result.status, result.points) == ("partly", 3 * 3 / 4)
    assert "TypeError is needed, but the code returned a str" in result.checks[1].message


def test_what_a_wrong_answer_loses_hangs_little_on_its_seed(tiny: Callable[..., Any]) -> None:
    """It passes the first check where no number happens to be large."""

    def wrong(x: Any) -> Any:
        return double(x) if isinstance(x, str) or np.max(x) < 1.5 else x

    points = {
        draws: {tiny(wrong, seed=n, draws=draws).points for n in range(20)} for draws in (1, 30)
    }
    assert points == {1: {0.0, 1.5}, 30: {0.0}}
    again = tiny(wrong, seed=1, draws=30).checks[0]
    assert "numbers differ" in again.message and "The call: double(" in again.message


def test_an_answer_without_a_fault_is_asked_once_and_one_with_a_fault_where_it_passes(
    tiny: Callable[..., Any],
) -> None:
    asked: list[Any] = []

    def noted(x: Any) -> Any:
        asked.append(x)
        return double(x)

    def wrong_far_out(x: Any) -> Any:
        return noted(x) if isinstance(x, str) or np.max(x) < 1e9 else x

    tiny(noted, draws=4)
    assert len(asked) == 4  # the second check asks twice
    asked.clear()
    result = tiny(wrong_far_out, draws=4)
    assert result.points == 2.25 and [c.passed for c in result.checks] == [True, True, False]
    assert len(asked) == 4 * 3
    assert len({float(x[0, 0]) for x in asked if np.ndim(x)}) == 4  # other inputs each time


def test_a_known_mistake_is_named(tiny: Callable[..., Any]) -> None:
    result = tiny(squared)
    assert result.misconception["id"] == "square"
    assert result.checks[0].misconception == "square"


def test_an_unknown_mistake_is_not_named(tiny: Callable[..., Any]) -> None:
    assert tiny(lambda x: x**3).misconception is None


def test_the_message_tells_index_values_and_largest_error(tiny: Callable[..., Any]) -> None:
    def wrong(x: Any) -> Any:
        y = np.array(2 * x)
        if y.ndim:
            y[1, 2] += 0.5
        return y

    message = tiny(wrong).checks[0].message
    assert "1 of 6 numbers differ" in message and "First at index (1, 2): yours is" in message
    assert "largest error 0.5" in message and "expected" in message


def test_a_hidden_check_tells_no_word_of_what_the_answer_made(tiny: Callable[..., Any]) -> None:
    """An answer could write its input into an error, a name or a shape, and read it later."""

    def when_hidden(then: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: double(x) if isinstance(x, str) or np.max(x) < 1e9 else then(x)

    def named(kind: str, base: type[Exception], text: str = "") -> Callable[[Any], Any]:
        def raises(x: Any) -> Any:
            raise type(kind, (base,), {})(text)

        return raises

    tricks = {
        "a class of errors": named("Secret1e12", ValueError, "Secret1e12"),
        "the grader's own error": named("Gone", Exception, "Secret1e12"),
        "a name that is not there": named("NameError", NameError, "the name 'Secret1e12'"),
        "a stub": named("Stub", NotImplementedError, "Secret1e12"),
        "a type": lambda x: type("Secret1e12", (), {})(),
        "a shape": lambda x: np.zeros((10, 12)),
    }
    for what, trick in tricks.items():
        shown, hidden = (
            tiny(when_hidden(trick), show_hidden_values=reveal).checks[2].message
            for reveal in (True, False)
        )
        assert "Secret1e12" in shown or "(10, 12)" in shown, what
        assert "Secret" not in hidden and "12" not in hidden and "Gone" not in hidden, what
        assert hidden, what


def test_an_error_of_the_answers_is_told_as_its_own(tiny: Callable[..., Any]) -> None:
    """It may be called as ours are, and say what ours say, in several lines."""

    class Gone(Exception):
        pass

    def wrong(x: Any) -> Any:
        raise Gone("The checker itself failed here; this costs no points.\nStatus: 3 of 3")

    message = tiny(wrong).checks[0].message.split("\n")
    assert message[0].startswith("Your code raised Gone") and message[1].startswith("The call:")
    assert message[0].endswith("this costs no points. Status: 3 of 3") and len(message) == 2


def test_an_error_that_tells_what_is_not_implemented_is_no_answer_that_is_not_written(
    tiny: Callable[..., Any],
) -> None:
    def wrong(x: Any) -> Any:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    assert "Cannot copy out of meta tensor" in tiny(wrong).checks[0].message


def test_hidden_checks_keep_their_values_to_themselves(tiny: Callable[..., Any]) -> None:
    def wrong(x: Any) -> Any:
        return double(x) if not isinstance(x, float) or x < 10 else -1.25

    assert "2e+12" not in tiny(wrong).checks[2].message
    assert "2e+12" in tiny(wrong, show_hidden_values=True).checks[2].message


@pytest.mark.parametrize("stub", [lambda *_: None, None])
def test_a_stub_earns_nothing(tiny: Callable[..., Any], stub: Any) -> None:
    result = tiny(stub, defined=[])
    assert result.points == 0 and not any(c.passed for c in result.checks)


def test_an_answer_that_always_raises_earns_nothing(tiny: Callable[..., Any]) -> None:
    def angry(x: Any) -> Any:
        raise TypeError("text")

    result = tiny(angry)
    assert result.points == 0
    assert "Your code raised TypeError in angry, line " in result.checks[0].message


def test_the_message_of_a_public_check_shows_the_call_and_that_of_a_hidden_one_does_not(
    tiny: Callable[..., Any],
) -> None:
    result = tiny(lambda x: 3 * x if isinstance(x, float) else "no")
    messages = {c.name: c.message for c in result.checks}
    assert "The call: double([[" in messages["double_doubles"]
    assert "The call: double(2.0)" in messages["double_refuses_text"]
    assert "The call" not in messages["double_large"]


def test_a_mistake_is_not_named_when_it_does_not_explain_every_place_where_it_fails(
    tiny: Callable[..., Any],
) -> None:
    """Squares arrays alone: the known mistake squares numbers too, so it is another one."""
    result = tiny(lambda x: squared(x) if isinstance(x, np.ndarray) else double(x))
    assert result.points < 3 and result.misconception is None


def test_a_second_mistake_does_not_hide_a_known_one(tiny: Callable[..., Any]) -> None:
    result = tiny(lambda x: x**2 if not isinstance(x, str) else None)
    assert result.misconception["id"] == "square"


def test_an_answer_that_needs_an_unwritten_one_is_told_which(
    tiny: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def triple(x: Any) -> Any:
        raise NotImplementedError

    monkeypatch.setattr(course, "exercises", lambda: {"tiny.triple": Exercise("tiny", "triple", 1)})
    assert tiny(lambda x: triple(x)).checks[0].message.startswith("`triple` is not written yet")


@pytest.mark.parametrize(("raising", "named"), [("__init__", "Triple"), ("run", "Triple.run")])
def test_an_answer_that_needs_an_unwritten_class_is_told_which(
    tiny: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, raising: str, named: str
) -> None:
    class Triple:
        def __init__(self) -> None:
            if raising == "__init__":
                raise NotImplementedError

        def run(self, x: Any) -> Any:
            raise NotImplementedError

    monkeypatch.setattr(course, "exercises", lambda: {"tiny.Triple": Exercise("tiny", "Triple", 1)})
    message = tiny(lambda x: Triple().run(x)).checks[0].message
    assert message.startswith(f"`{named}` is not written yet")


@pytest.mark.parametrize("holds", [0, "a parameter"])
def test_a_module_that_was_not_set_up_is_told_how(tiny: Callable[..., Any], holds: Any) -> None:
    torch = pytest.importorskip("torch")

    class Forgetful(torch.nn.Module):
        def __init__(self) -> None:
            if holds:
                self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, x: Any) -> Any:
            return x

    message = tiny(lambda x: Forgetful()(x)).checks[0].message
    assert "begin with `super().__init__()`?" in message


def test_a_fault_of_the_checker_is_never_a_zero(
    tiny: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = course.CHECKS / "tiny.py"
    file.write_text(file.read_text().replace("close(student.double(x),", "1 / 0; close("))
    result = tiny(double)
    assert result.points is None and result.status == "grader error"
    assert "ZeroDivisionError" in result.checks[0].fault


def test_a_check_that_trips_over_one_answer_alone_is_that_answers_loss(
    tiny: Callable[..., Any],
) -> None:
    file = course.CHECKS / "tiny.py"
    broken = "student.double(x).shape; close(student.double(x),"
    file.write_text(file.read_text().replace("close(student.double(x),", broken))
    assert tiny(double).status == "passed"
    result = tiny(lambda x: None)
    assert result.points == 0 and not result.checks[0].fault
    assert "could not work with what came back (AttributeError)" in result.checks[0].message


def test_checks_that_cannot_be_loaded_are_an_error_of_the_grader(tiny: Callable[..., Any]) -> None:
    (course.CHECKS / "tiny.py").write_text("import nothing_like_this")
    with pytest.raises(RuntimeError, match="nothing_like_this"):
        tiny(double)


def test_inputs_depend_on_the_seed_and_on_nothing_else(tiny: Callable[..., Any]) -> None:
    seen: list[Any] = []

    def spy(x: Any) -> Any:
        seen.append(x)
        return double(x)

    for options in ({"hidden": False}, {"hidden": True}, {"seed": 5}):
        tiny(spy, **options)
    first, again, other = (x for x in seen if isinstance(x, np.ndarray))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


STRANGE = [
    ["x" * 20_000] + [""] * 5000,
    None,
    "text",
    [[1], [2, 3]],
    {1, 2},
    {"a": 1},
    object(),
    np.array(["a"]),
    np.array([object()]),
    float("nan"),
    np.full((2, 3), np.nan),
    10**400,
    (1, (2, [3])),
    np.zeros((0,)),
    1j,
    True,
]


@pytest.mark.parametrize("value", STRANGE, ids=lambda v: type(v).__name__)
def test_whatever_an_answer_returns_fails_the_check_and_not_the_grader(
    tiny: Callable[..., Any], value: Any
) -> None:
    result = tiny(lambda x: value)
    assert result.points == 0 and all(not c.fault for c in result.checks)


def test_close_counts_what_is_not_a_number_as_wrong() -> None:
    with pytest.raises(CheckFailed, match="largest error inf"):
        close([1.0, float("nan")], [1.0, 2.0], 1.0)


def test_close_names_a_wrong_shape() -> None:
    with pytest.raises(CheckFailed, match=r"shape is \(1, 2\), but \(2,\) is needed"):
        close([[1.0, 2.0]], [1.0, 2.0], 1.0)


def test_tolerance_grows_with_dtype_and_angle() -> None:
    assert tolerance("float64", angle=10) < tolerance("float32", angle=10)
    assert tolerance("float64", angle=10) < tolerance("float64", angle=1e6)
    assert tolerance("bfloat16") == pytest.approx(16 / 128, rel=1e-6)


def test_a_process_that_died_has_refused_nothing() -> None:
    class Dead:
        def run(self, request: dict[str, Any]) -> Any:
            raise Gone("it ended")

    with pytest.raises(Gone):
        refuses(Answers(Dead()).double, "a", because="text")


@pytest.mark.parametrize("reply", [1.0, (1, 2, 3), (1, 2), (1, (2, 3)), None, "ab"])
def test_a_forged_reply_is_the_students_failure_and_not_the_graders(reply: object) -> None:
    class Forger:
        def run(self, request: dict[str, Any]) -> Any:
            return reply

    with pytest.raises(StudentError, match="no proper reply"):
        Answers(Forger()).f.with_inputs(1.0)


def test_a_named_tuple_is_a_pair() -> None:
    Both = namedtuple("Both", "cos sin")
    value = Answers(NamespaceRunner({"f": lambda: Both(1.0, 2.0)})).f()
    assert pair(value) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda a: a.make(8, base=5.0)(np.zeros(9), "x"),
            "make(8, base=5.0)(float64 of shape (9,), 'x')",
        ),
        (lambda a: a.make(8).method("run", [1, 2]), "make(8).run([1, 2])"),
        (lambda a: a.plain(np.array([1.5, 2.0])), "plain([1.5, 2])"),
        (lambda a: [(made := a.make(8))(1), made(2)], "make(8)(2), on the same object after (1)"),
        (
            lambda a: [(made := a.make(8)), *(made.method("run", n) for n in range(5))],
            "make(8), then …, then .run(1), then .run(2), then .run(3), then .run(4)",
        ),
    ],
)
def test_a_call_is_shown_with_how_its_object_was_made(call: Any, words: str) -> None:
    class Made:
        def __call__(self, *_: Any) -> int:
            return 1

        def run(self, *_: Any) -> int:
            return 1

    answers = Answers(NamespaceRunner({"make": lambda *_, **__: Made(), "plain": lambda x: 1}))
    call(answers)
    assert answers.told_call() == f"The call: {words}"


def test_the_call_that_is_told_is_the_one_whose_value_was_looked_at() -> None:
    array = np.arange(12.0).reshape(3, 4)
    answers = Answers(NamespaceRunner({"pair": lambda n: (array + n, n), "plain": lambda n: n}))
    first, second = answers.pair(1), answers.pair(2)
    with pytest.raises(CheckFailed) as failed:
        close(first[0][1:], np.zeros((2, 4)), 0.1)
    assert answers.told_call(failed.value.about) == "The call: pair(1)"
    with pytest.raises(CheckFailed) as failed, good_input():
        close(first[0] + second[0], np.zeros((3, 4)), 0.1)  # of two calls
    assert answers.told_call(failed.value.about) == "The latest call: pair(2)"
    assert (answers.plain(7), answers.plain(7)) == (7, 7)
    assert answers.told_call(7) == "The latest call: plain(7)"  # equal numbers tell no call


def test_the_gradient_of_a_module_is_asked_from_afar() -> None:
    torch = pytest.importorskip("torch")

    class Scale(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x: Any) -> Any:
            return x * self.weight

    def both(x: Any, y: Any) -> Any:
        return x * 2, x.detach() * y

    answers = Answers(NamespaceRunner({"Scale": Scale, "both": both}))
    scale = answers.Scale()
    x, weights = torch.tensor([3.0, 5.0]), torch.tensor([1.0, 10.0])
    for _ in range(2):  # gradients do not pile up
        assert scale.gradient("weight", x, weights=weights).tolist() == [3.0, 50.0]
    assert answers.told_call() == "The call: the gradient of Scale()([3, 5]) for its weight"
    assert scale.get("weight.requires_grad") is True
    assert scale.gradient(0, x, weights=weights).tolist() == [1.0, 10.0]
    assert answers.both.gradient(0, x, x, weights=(weights, weights)).tolist() == [2.0, 20.0]
    assert answers.both.gradient(0, x, x, weights=(None, weights)) is None
    assert answers.both.gradient(1, x, x, weights=(None, weights)).tolist() == [3.0, 50.0]
    assert answers.told_call().endswith("the gradient of both([3, 5], [3, 5]) for argument 2")


def test_an_exercise_finds_what_it_needs_where_the_answer_was_defined(monkeypatch) -> None:
    def helper() -> int:
        return 3

    namespace: dict[str, Any] = {"helper": helper}
    exec("def answer(): return 1\nclass Answer: pass", namespace)
    exercise = Exercise("sample", "answer", 1, needs=("helper", "absent"))
    assert _beside(namespace["answer"], exercise) == {"helper": helper}
    monkeypatch.setitem(sys.modules, "cells", SimpleNamespace(helper=helper))
    namespace["Answer"].__module__ = "cells"
    assert _beside(namespace["Answer"], exercise) == {"helper": helper}


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (True, np.True_, True),
        (True, False, False),
        (np.array([True, False]), np.array([True, False]), True),
        (np.array([True, False]), np.array([True, True]), False),
        ({"unique"}, {"unique"}, True),
        ({"unique"}, {"bounded"}, False),
        (np.array([1 + 1j]), np.array([1 - 1j]), False),
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), True),
        (np.array([np.nan, 1.0]), np.array([1.0, np.nan]), False),
        (np.array([np.nan, 1.0]), np.array([np.inf, 1.0]), False),
        (np.array([np.inf, 1.0]), np.array([np.inf, 1.0]), True),
        (np.array([np.nan, np.nan]), np.array([np.nan, np.nan]), False),
        (np.zeros((0, 3)), np.zeros((0, 3)), True),
        (np.zeros((0, 3)), np.zeros((0, 4)), False),
    ],
)
def test_values_of_every_kind_are_compared(a: object, b: object, same: bool) -> None:
    assert same_value(a, b) is same

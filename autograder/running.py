"""Runs a chapter's checks over any answer, and keeps what each check said.

pytest collects and orders them, once for a chapter; they are called here, because the outcome of a
check is data for a report, not a line on pytest's terminal.
"""

from __future__ import annotations

import builtins
import functools
import importlib.util
import itertools
import os
import traceback
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pytest

from . import course
from .answers import Answers
from .assertions import NOT_WRITTEN, CheckFailed
from .exercise import Exercise
from .recognise import Tried, recognise
from .replies import Outcome, Runner, StudentError, Undefined
from .results import CheckResult, ExerciseResult, score

PUBLIC_SEED = 20170612
QUIET = (
    "-c /dev/null --collect-only --disable-plugin-autoload -s --assert=plain "
    "-o python_functions=check_* "
    "-p no:terminal -p no:cacheprovider -p no:faulthandler -p no:warnings -p no:logging "
    "-p no:unraisableexception -p no:threadexception -p no:junitxml -p no:doctest "
    "--import-mode=importlib"
).split()


UNDEFINED = ("NameError", "ModuleNotFoundError", "ImportError")  # what a missing package makes
DRAWS = 4  # of inputs for a check that a wrong answer passes
UNREADABLE = "this check could not work with what came back ({}): is it of the kind that is asked?"


class Standard(Protocol):
    """What answers are held against: the live reference, or its recording in a bundle."""

    def reference(self, exercise: Exercise, check: str) -> Runner: ...

    def wrong_answers(
        self, exercise: Exercise, check: Check, only: set[str] | None = None
    ) -> list[tuple[dict[str, str], list[Outcome]]]: ...


class Check:
    """One check function with what its mark says."""

    def __init__(self, function: Callable[..., None], mark: Mapping[str, Any]) -> None:
        self.function = function
        self.name = function.__name__.removeprefix("check_")
        self.sentence = " ".join((function.__doc__ or "").split())
        self.exercise: str = mark["exercise"]
        self.weight: int = mark["weight"]
        self.hidden: bool = mark["hidden"]

    def call(
        self, student: Runner, reference: Runner, seed: int, draw: int = 0
    ) -> tuple[Answers, Exception | None]:
        """Run it; returns what the student was asked and answered, and what the check raised."""
        answers = Answers(student)
        try:
            self.function(answers, Answers(reference), generator(seed, self.name, draw))
        except Exception as error:
            return answers, error
        return answers, None


def generator(seed: int, check: str, draw: int = 0) -> np.random.Generator:
    """The inputs of one check: the same for a seed whatever else is run beside it."""
    return np.random.default_rng([seed, zlib.crc32(check.encode()), *([draw] if draw else [])])


class _Plugin:
    """Keeps each check that pytest collects."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.problems: list[str] = []

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "behaviour(exercise, weight, hidden): a check")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            mark = item.get_closest_marker("behaviour")
            if mark is None or not isinstance(item, pytest.Function):
                self.problems.append(f"{item.name} has no @behaviour")
            else:
                self.checks.append(Check(item.obj, mark.kwargs))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.problems.append(str(report.longrepr))


@functools.cache
def collected(chapter: str) -> tuple[Check, ...]:
    """Every check of a chapter, collected by pytest once, in the order of the file."""
    plugin = _Plugin()
    file = str(course.CHECKS / f"{chapter}.py")
    kept = {k: os.environ.pop(k) for k in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS") if k in os.environ}
    try:
        code = pytest.main([file, *QUIET, f"--rootdir={course.ROOT}"], plugins=[plugin])
    finally:
        os.environ.update(kept)
    if code == pytest.ExitCode.INTERRUPTED and not plugin.problems:
        raise KeyboardInterrupt
    if plugin.problems or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        problems = "\n".join(plugin.problems) or f"pytest ended with {code!r}"
        raise RuntimeError(f"the checks of {chapter} cannot run: {problems}")
    return tuple(plugin.checks)


def grade_answers(
    exercises: Sequence[Exercise],
    answer: Runner,
    standard: Standard,
    *,
    seed: int,
    hidden: bool,
    draws: int = 1,
    defined: Sequence[str] | None = None,
    show_hidden_values: bool = False,
) -> list[ExerciseResult]:
    """Grade exercises of one chapter. `defined` lists the names that the answer has, if known.

    An answer that fails a check is wrong, and may pass others by the luck of their inputs. With
    `draws` above 1 they are asked again, so that its points hang less on its seed.
    """
    by_name = {exercise.name: exercise for exercise in exercises}
    found: dict[str, dict[str, CheckResult]] = {name: {} for name in by_name}
    tried: dict[str, list[Tried]] = {name: [] for name in by_name}
    errors: dict[str, list[Exception | None]] = {name: [] for name in by_name}
    checks = [
        check
        for check in collected(exercises[0].chapter)
        if check.exercise in by_name and (hidden or not check.hidden)
    ]

    def ask(check: Check, draw: int) -> tuple[Answers, Exception | None, CheckResult]:
        exercise, reveal = by_name[check.exercise], show_hidden_values or not check.hidden
        return asked_once(check, exercise, answer, standard, seed, draw, reveal=reveal)

    for check in checks:
        asked, error, said = ask(check, 0)
        found[check.exercise][check.name] = said
        errors[check.exercise].append(error)
        of_dtype = isinstance(error, CheckFailed) and error.of_dtype
        tried[check.exercise].append(Tried(check, asked.trace, error is not None, of_dtype))
    wrong = {n for n, of_it in found.items() if not all(said.passed for said in of_it.values())}
    for draw, check in itertools.product(range(1, draws), checks):
        if check.exercise in wrong and found[check.exercise][check.name].passed:
            found[check.exercise][check.name] = ask(check, draw)[2]
    results = []
    for name, exercise in by_name.items():
        told = list(found[name].values())
        points, status = score(told, exercise.points + exercise.bonus)
        if defined is not None and name not in defined and status == "failed":
            status = "missing"
        result = ExerciseResult(exercise.id, points, exercise.points, status, told)
        if exercise.bonus:
            _on_top(exercise, result, errors[name])
        result.misconception = recognise(exercise, tried[name], standard)
        if result.misconception:
            named = found[name][result.misconception["check"]]
            named.misconception = result.misconception["id"]
        results.append(result)
    return results


def _on_top(exercise: Exercise, result: ExerciseResult, errors: Sequence[Exception | None]) -> None:
    """A bonus is earned beside the points; an exercise for one that nobody tried is passed over."""
    if result.points is not None:
        result.points, result.bonus = 0.0, result.points
    result.max_bonus = exercise.bonus
    names = {error.types[0] for error in errors if isinstance(error, StudentError) and error.types}
    if len(names) != 1 or not all(isinstance(error, StudentError) for error in errors):
        return
    absent = exercise.kernel and importlib.util.find_spec(exercise.kernel) is None
    if absent and names <= {NOT_WRITTEN, *UNDEFINED}:
        result.untried = f"NOT CHECKED, {exercise.kernel} is not installed here"
    elif names == {NOT_WRITTEN} or all(isinstance(error, Undefined) for error in errors):
        result.untried = "not written"
    if result.untried:
        result.status, result.checks = "missing", []


def not_here(results: Sequence[ExerciseResult]) -> list[str]:
    """A line for each exercise that was passed over for want of a package, and not by choice."""
    return [f"{r.id}: {r.untried}" for r in results if r.untried.startswith("NOT")]


def asked_once(
    check: Check,
    exercise: Exercise,
    answer: Runner,
    standard: Standard,
    seed: int,
    draw: int = 0,
    *,
    reveal: bool = True,
) -> tuple[Answers, Exception | None, CheckResult]:
    """One check of an answer: what was asked, what the check raised, and what there is to say."""
    if hasattr(answer, "begin"):
        answer.begin(exercise.name)
    asked, error = check.call(answer, standard.reference(exercise, check.name), seed, draw)
    if _unexpected(error) and _passes(check, exercise, standard, seed, draw):
        error = CheckFailed(UNREADABLE.format(type(error).__name__))
    return asked, error, _result(check, asked, error, reveal)


def _unexpected(error: Exception | None) -> bool:
    return error is not None and not isinstance(error, CheckFailed | StudentError)


def _passes(check: Check, exercise: Exercise, standard: Standard, seed: int, draw: int) -> bool:
    """Whether a check is sound: then it was the answer that it tripped over, however strange."""
    itself, beside = (standard.reference(exercise, check.name) for _ in range(2))
    return check.call(itself, beside, seed, draw)[1] is None


def _result(check: Check, asked: Answers, error: Exception | None, reveal: bool) -> CheckResult:
    result = CheckResult(check.name, check.sentence, check.weight, check.hidden, error is None)
    if isinstance(error, CheckFailed):
        result.message = sentence(error.message if reveal else error.plain)
        if reveal:
            result.message += f" {error.values}" if error.values else ""
            result.message += f"\n{asked.told_call(error.about)}"
    elif isinstance(error, StudentError):
        result.message, told = _raised(error, reveal)
        if reveal and not told:
            result.message += f"\n{asked.told_call()}"
    elif error is not None:
        result.fault = "".join(traceback.format_exception(error))
        result.message = "The checker itself failed here; this costs no points. Please report it."
    return result


def _raised(error: StudentError, reveal: bool) -> tuple[str, bool]:
    """What to say of an error, and whether that says all: which call it was is then no help.

    What is not to be revealed is told without a word of the answer's own, which could be its input.
    """
    if error.ours:
        return sentence(error.message).rstrip(".") + ".", True
    name = error.function.removesuffix(".__init__")
    known = name.split(".", 1)[0] in {e.name for e in course.exercises().values()}
    if NOT_WRITTEN in error.types and not error.message:
        what = f"`{name}` is not" if known else "Not"
        return f"{what} written yet (it raises NotImplementedError).", True
    kind = error.types[0]
    place = f" in {error.function}, line {error.line}" if error.function else ""
    message = " ".join(error.message.split())[:300]
    if not reveal:
        kind = next((name for name in error.types if hasattr(builtins, name)), "an error")
        place, message = f" in {name}" if known else "", ""
    said = f": {message}" if message else "."
    if "_hooks'" in error.message or "Module.__init__()" in error.message:
        said += " Does your `__init__` begin with `super().__init__()`?"
    return f"Your code raised {kind}{place}{said}", False


def sentence(text: str) -> str:
    """With a capital letter, unless it begins with a name from the student's code."""
    word = text.split(" ", 1)[0].strip(":,")
    return text[:1].upper() + text[1:] if word in ("the", "in", "a", "an", "not") else text

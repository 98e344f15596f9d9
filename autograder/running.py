"""Runs a chapter's checks with pytest, over any answer, and keeps what each check said.

pytest collects and orders; the hook below calls each check itself, because the outcome of a check
is data for a report here, not a line on pytest's terminal.
"""

from __future__ import annotations

import os
import traceback
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pytest

from . import course
from .answers import Answers, Outcome, Runner, StudentError
from .assertions import NOT_WRITTEN, CheckFailed
from .exercise import Exercise
from .recognise import Tried, recognise
from .results import CheckResult, ExerciseResult, score

PUBLIC_SEED = 20170612
QUIET = (
    "-c /dev/null --disable-plugin-autoload -s --assert=plain -o python_functions=check_* "
    "-p no:terminal -p no:cacheprovider -p no:faulthandler -p no:warnings -p no:logging "
    "-p no:unraisableexception -p no:threadexception -p no:junitxml -p no:doctest "
    "--import-mode=importlib"
).split()


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
        self, student: Runner, reference: Runner, seed: int
    ) -> tuple[Answers, Exception | None]:
        """Run it; returns what the student was asked and answered, and what the check raised."""
        answers = Answers(student)
        try:
            self.function(answers, Answers(reference), generator(seed, self.name))
        except Exception as error:
            return answers, error
        return answers, None


def generator(seed: int, check: str) -> np.random.Generator:
    """The inputs of one check: the same for a seed whatever else is run beside it."""
    return np.random.default_rng([seed, zlib.crc32(check.encode())])


class _Plugin:
    """Feeds each collected check to `use`, in place of pytest's own call."""

    def __init__(self, wanted: set[str], hidden: bool, use: Callable[[Check], None]) -> None:
        self._wanted, self._hidden, self._use = wanted, hidden, use
        self.problems: list[str] = []

    @pytest.fixture
    def student(self) -> None: ...

    @pytest.fixture
    def reference(self) -> None: ...

    @pytest.fixture
    def rng(self) -> None: ...

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "behaviour(exercise, weight, hidden): a check")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        def wanted(item: pytest.Item) -> bool:
            mark = item.get_closest_marker("behaviour")
            if mark is None:
                self.problems.append(f"{item.name} has no @behaviour")
                return False
            return mark.kwargs["exercise"] in self._wanted and (
                self._hidden or not mark.kwargs["hidden"]
            )

        items[:] = [item for item in items if wanted(item)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool:
        mark = pyfuncitem.get_closest_marker("behaviour")
        assert mark is not None
        self._use(Check(pyfuncitem.obj, mark.kwargs))
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.problems.append(str(report.longrepr))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.problems.append(str(report.longrepr))


def each_check(
    chapter: str, names: Sequence[str], use: Callable[[Check], None], *, hidden: bool
) -> None:
    """Call `use` with every check of these exercises, in the order of the file."""
    plugin = _Plugin(set(names), hidden, use)
    file = str(course.CHECKS / f"{chapter}.py")
    kept = {k: os.environ.pop(k) for k in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS") if k in os.environ}
    current = os.environ.get("PYTEST_CURRENT_TEST")
    try:
        code = pytest.main([file, *QUIET, f"--rootdir={course.ROOT}"], plugins=[plugin])
    finally:
        os.environ.update(kept)
        if current is not None:
            os.environ["PYTEST_CURRENT_TEST"] = current
    if code == pytest.ExitCode.INTERRUPTED and not plugin.problems:
        raise KeyboardInterrupt
    if plugin.problems or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        problems = "\n".join(plugin.problems) or f"pytest ended with {code!r}"
        raise RuntimeError(f"the checks of {chapter} cannot run: {problems}")


def grade_answers(
    exercises: Sequence[Exercise],
    answer: Runner,
    standard: Standard,
    *,
    seed: int,
    hidden: bool,
    defined: Sequence[str] | None = None,
    show_hidden_values: bool = False,
) -> list[ExerciseResult]:
    """Grade exercises of one chapter. `defined` lists the names that the answer has, if known."""
    by_name = {exercise.name: exercise for exercise in exercises}
    found: dict[str, list[CheckResult]] = {name: [] for name in by_name}
    tried: dict[str, list[Tried]] = {name: [] for name in by_name}

    def use(check: Check) -> None:
        exercise = by_name[check.exercise]
        if hasattr(answer, "begin"):
            answer.begin(exercise.name)
        asked, error = check.call(answer, standard.reference(exercise, check.name), seed)
        reveal = show_hidden_values or not check.hidden
        found[exercise.name].append(_result(check, asked, error, reveal))
        tried[exercise.name].append(Tried(check, asked.trace, error is not None))

    each_check(exercises[0].chapter, list(by_name), use, hidden=hidden)
    results = []
    for name, exercise in by_name.items():
        checks = found[name]
        points, status = score(checks, exercise.points)
        if defined is not None and name not in defined and status == "failed":
            status = "missing"
        result = ExerciseResult(exercise.id, points, exercise.points, status, checks)
        result.misconception = recognise(exercise, tried[name], standard)
        if result.misconception:
            for check_result in checks:
                if check_result.name == result.misconception["check"]:
                    check_result.misconception = result.misconception["id"]
        results.append(result)
    return results


def _result(check: Check, asked: Answers, error: Exception | None, reveal: bool) -> CheckResult:
    result = CheckResult(check.name, check.sentence, check.weight, check.hidden, error is None)
    if isinstance(error, CheckFailed):
        result.message = sentence(error.message)
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
    """What to say of an error, and whether that says all: which call it was is then no help."""
    kind = error.types[0]
    if NOT_WRITTEN in error.types:
        others = {e.name for e in course.exercises().values()}
        if error.function in others:
            return f"`{error.function}` is not written yet (it raises NotImplementedError).", True
        return "Not written yet (it raises NotImplementedError).", True
    if kind == "Gone" or (kind == "NameError" and error.message.startswith("the name ")):
        return sentence(error.message) + ".", True
    place = f" in {error.function}, line {error.line}" if error.function else ""
    said = f": {error.message[:300]}" if error.message and reveal else "."
    return f"Your code raised {kind}{place}{said}", False


def sentence(text: str) -> str:
    """With a capital letter, unless it begins with a name from the student's code."""
    word = text.split(" ", 1)[0].strip(":,")
    return text[:1].upper() + text[1:] if word in ("the", "in", "a", "an", "not") else text

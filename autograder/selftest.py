"""The matrix: reference, stub and every misconception against every check.

It shows that the checks tell right from wrong: the reference passes everything, a stub nothing,
each misconception fails first where it should, and each check catches something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import course
from .replies import Runner
from .runner import NamespaceRunner
from .running import PUBLIC_SEED, Check, collected
from .standard import Live


@dataclass
class Row:
    """One answer: which checks it failed, in order, and what is wrong with that."""

    exercise: str
    answer: str
    total: int
    failed: list[str]
    expected: str
    problem: str = ""


@dataclass
class Matrix:
    """All rows, and the checks that caught nothing."""

    rows: list[Row] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        found = [f"{r.exercise}: {r.answer}: {r.problem}" for r in self.rows if r.problem]
        return found + [f"{name} catches no misconception" for name in self.idle]


def unwritten(*_: Any, **__: Any) -> Any:
    """The stub as students get it."""
    raise NotImplementedError


def empty(*_: Any, **__: Any) -> None:
    """The stub as the book shows it."""


STUBS: dict[str, Callable[..., Any]] = {"stub that raises": unwritten, "empty stub": empty}


def matrix(chapter: str, seed: int = PUBLIC_SEED) -> Matrix:
    """Run everything against everything. Raises RuntimeError when a check itself breaks."""
    live = Live(seed)
    found = Matrix()
    for exercise in course.manifest(chapter):
        mine = [check for check in collected(chapter) if check.exercise == exercise.name]
        caught: set[str] = set()

        def failures(answer: Runner, mine: list[Check] = mine) -> list[str]:
            return [c.name for c in mine if _fails(c, answer, live, seed)]

        reference = live.reference(exercise, "")
        row = Row(exercise.id, "reference", len(mine), failures(reference), "passes everything")
        row.problem = f"fails {', '.join(row.failed)}" if row.failed else ""
        found.rows.append(row)
        for name, stub in STUBS.items():
            failed = failures(NamespaceRunner(course.beside_reference(exercise, stub)))
            row = Row(exercise.id, name, len(mine), failed, "fails everything")
            passed = [c.name for c in mine if c.name not in failed]
            row.problem = f"passes {', '.join(passed)}" if passed else ""
            found.rows.append(row)
        for wrong in course.misconceptions(exercise):
            answer = NamespaceRunner(course.beside_reference(exercise, wrong.wrong))
            failed = failures(answer)
            caught.update(failed)
            first = failed[0] if failed else "nothing"
            row = Row(exercise.id, wrong.id, len(mine), failed, f"fails first {wrong.caught_by}")
            row.problem = f"fails first {first}" if first != wrong.caught_by else ""
            found.rows.append(row)
        found.idle += [c.name for c in mine if c.name not in caught]
    return found


def _fails(check: Check, answer: Runner, live: Live, seed: int) -> bool:
    from .assertions import CheckFailed
    from .replies import StudentError

    reference = live.reference(course.find_exercise(check.exercise), check.name)
    _, error = check.call(answer, reference, seed)
    if error is not None and not isinstance(error, CheckFailed | StudentError):
        raise RuntimeError(f"the check {check.name} itself broke") from error
    return error is not None

"""What an exercise is: its points, the behaviours that are checked, the known wrong answers.

A chapter's checks declare their exercises as data, so that points and names come from the course
and never from a notebook that somebody handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass(frozen=True)
class Exercise:
    """One public name that the student writes.

    `chapter` is filled in by the file of checks that declares it; `room` is the room of
    `solutions/` whose reference it is held against (`with_numpy` or `with_torch`). `needs` names
    other answers of the same chapter that its checks use beside it.

    An exercise for a bonus has no points: whatever it earns comes on top, and nobody has to try it.
    `kernel` is the package that kernels are written in (`triton`), where answers may be one. Not
    every system has it, and its kernels run on a GPU where there is one.
    """

    chapter: str
    name: str
    points: int
    room: str = "with_numpy"
    needs: tuple[str, ...] = ()
    bonus: int = 0
    kernel: str = ""

    @property
    def id(self) -> str:
        return f"{self.chapter}.{self.name}"


@dataclass(frozen=True)
class Misconception:
    """A wrong answer that people really give, and the sentence that helps them out of it.

    `wrong` runs (a function or class like the reference), `caught_by` names the check that fails
    first, `message` is what the student reads, `section` the label in the chapter that explains it.
    """

    id: str
    wrong: Callable[..., Any] = field(repr=False)
    caught_by: str
    message: str
    section: str


def behaviour(
    exercise: str, *, weight: int = 1, hidden: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a function `check_…(student, reference, rng)` as a check of one behaviour.

    The docstring is the sentence the student reads. Weights share out the exercise's points.
    A hidden check never leaves the instructor's side: not its code, inputs or values.
    """
    return pytest.mark.behaviour(exercise=exercise, weight=weight, hidden=hidden)

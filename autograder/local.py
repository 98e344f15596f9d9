"""`check(apply_rope)`: a student's own look at an answer, in a notebook or a terminal."""

from __future__ import annotations

import sys
from typing import Any

from . import course, report
from .exercise import Exercise
from .results import ExerciseResult
from .runner import NamespaceRunner
from .running import PUBLIC_SEED, grade_answers
from .standard import standard


def check(answer: Any, exercise: str | None = None) -> None:
    """Run the public checks of an exercise on your function or class and show what they found.

    `answer` is the function or class itself; `exercise` names the exercise when yours has another
    name. Raises ValueError when no exercise is meant.

    >>> check(apply_rope)  # doctest: +SKIP
    """
    name = exercise or getattr(answer, "__name__", None)
    if not callable(answer) or name is None:
        example = next(iter(course.exercises().values())).name
        raise ValueError(
            f"check needs your function or class itself, as in check({example}), but received "
            f"an object of type {type(answer).__name__}"
        )
    try:
        found = course.find_exercise(str(name))
    except course.CourseError as error:
        raise ValueError(str(error)) from None
    show(examine(answer, found))


def examine(answer: Any, exercise: Exercise) -> ExerciseResult:
    """The public checks of one exercise over an object of this process."""
    (result,) = grade_answers(
        [exercise],
        NamespaceRunner(_beside(answer, exercise) | {exercise.name: answer}),
        standard(exercise.chapter),
        seed=PUBLIC_SEED,
        hidden=False,
    )
    return result


def _beside(answer: Any, exercise: Exercise) -> dict[str, Any]:
    """What else the exercise needs, from where the answer was defined."""
    module = sys.modules.get(getattr(answer, "__module__", None) or "")
    names = getattr(answer, "__globals__", None) or vars(module or sys)
    return {name: names[name] for name in exercise.needs if name in names}


def show(result: ExerciseResult) -> None:
    """HTML where a notebook can display it, plain text everywhere else; both say the same."""
    plain = report.text(result, public=True) + "\n" + report.PUBLIC_NOTE
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    if shell and hasattr(shell, "kernel"):
        from IPython.display import display

        block = report.html_block(result, public=True)
        display({"text/plain": plain, "text/html": block}, raw=True)
    else:
        print(plain)

"""`check(apply_rope)`: a student's own look at an answer, in a notebook or a terminal."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from . import course, gpu, report
from .exercise import Exercise
from .gpu import Place
from .results import ExerciseResult
from .runner import NamespaceRunner, usual_torch
from .running import PUBLIC_SEED, grade_answers
from .second_look import ROOM, OnDevice, OnlyLook, SecondLook, look_again
from .standard import standard

# A GPU that has stopped stays so for the process that stopped it.
RESTART = "Restart the kernel: until then nothing runs on CUDA."
IF_BEFORE = "If CUDA ran here before, restart the kernel"


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
    place = gpu.find() if found.kernel else None
    if place and not place.why_not:
        show(examine(answer, found, place), OnlyLook(place))
        return
    result, look = examine(answer, found), None
    try:
        if found.room == ROOM and not result.untried:
            look = examine_there(answer, found, result)
    finally:  # whoever loses patience with a GPU has the CPU's result all the same
        show(result, look)


def examine(answer: Any, exercise: Exercise, place: Place | None = None) -> ExerciseResult:
    """The public checks of one exercise over an object of this process, on the CPU or elsewhere."""
    runner = _runner(answer, exercise)
    with usual_torch():
        (result,) = grade_answers(
            [exercise],
            OnDevice(runner, place.device) if place else runner,
            standard(exercise.chapter),
            seed=PUBLIC_SEED,
            hidden=False,
        )
    return result


def examine_there(
    answer: Any, exercise: Exercise, result: ExerciseResult, place: Place | None = None
) -> SecondLook:
    """Those of them that passed once more, on this machine's GPU or at another place."""
    known = standard(exercise.chapter)
    place = place or gpu.find()
    if place.broken:
        place = replace(place, why_not=f"{place.why_not}. {IF_BEFORE}")
    with usual_torch():
        runner = _runner(answer, exercise)
        look = look_again(exercise, result, runner, known, place, PUBLIC_SEED)
    if look.ended and gpu.find().broken:
        look.ended += f" {RESTART}"
    return look


def _runner(answer: Any, exercise: Exercise) -> NamespaceRunner:
    return NamespaceRunner(_beside(answer, exercise) | {exercise.name: answer})


def _beside(answer: Any, exercise: Exercise) -> dict[str, Any]:
    """What else the exercise needs, from where the answer was defined."""
    module = sys.modules.get(getattr(answer, "__module__", None) or "")
    names = getattr(answer, "__globals__", None) or vars(module or sys)
    return {name: names[name] for name in exercise.needs if name in names}


def show(result: ExerciseResult, look: SecondLook | OnlyLook | None = None) -> None:
    """HTML where a notebook can display it, plain text everywhere else; both say the same."""
    plain = report.text(result, public=True, look=look) + "\n" + report.PUBLIC_NOTE
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    if shell and hasattr(shell, "kernel"):
        from IPython.display import display

        block = report.html_block(result, public=True, look=look)
        display({"text/plain": plain, "text/html": block}, raw=True)
    else:
        print(plain)

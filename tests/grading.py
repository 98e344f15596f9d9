"""Grades one answer in this process, as the tests of named mistakes need it."""

from typing import Any

from autograder import course
from autograder.results import ExerciseResult
from autograder.runner import NamespaceRunner
from autograder.running import PUBLIC_SEED, grade_answers
from autograder.standard import Live


def graded(name: str, answer: Any, **beside: Any) -> ExerciseResult:
    """The public checks of an exercise over an answer, with what else its notebook defines."""
    exercise = course.find_exercise(name)
    runner = NamespaceRunner({exercise.name: answer, **beside})
    (result,) = grade_answers([exercise], runner, Live(PUBLIC_SEED), seed=PUBLIC_SEED, hidden=False)
    return result

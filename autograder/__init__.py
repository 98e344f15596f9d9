"""The course's checks, and the grading that an instructor can trust.

In a notebook: `from autograder import check`, then `check(apply_rope)`.
In a terminal: `python -m autograder --help`.
"""

from typing import Any

__all__ = ["check"]


def check(answer: Any, exercise: str | None = None) -> None:
    """Run the public checks of an exercise on your function or class: `check(apply_rope)`."""
    from .local import check as run

    run(answer, exercise)

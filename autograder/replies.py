"""What comes back from an answer: a value, an object that stays where it is, or an error.

Both sides of the wire know these few kinds, and the sandbox is given nothing else of `answers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class StudentError(Exception):
    """The answer raised. `types` names the exception's class and its bases, nearest first.

    `function` and `line` tell where in the student's own code, the line counted in its cell.
    `ours`: the words are the grader's, so that they hold nothing which the answer made up.
    """

    ours = False

    def __init__(
        self, types: tuple[str, ...], message: str, function: str = "", line: int = 0
    ) -> None:
        self.types = types or ("Exception",)
        self.message = message
        self.function, self.line = function, line
        super().__init__(f"{self.types[0]}: {message}")


class Gone(StudentError):
    """The answer cannot be asked: its process hung, died, or ran out of its limits."""

    ours = True

    def __init__(self, message: str) -> None:
        super().__init__(("Gone",), message)


class Undefined(StudentError):
    """There is no such name."""

    ours = True

    def __init__(self, name: str, further: str = "") -> None:
        end = further or ": run the cell that defines it, and keep its spelling"
        super().__init__(("NameError", "Exception"), f"the name {name!r} is not defined{end}")


@dataclass(frozen=True)
class Handle:
    """An object that stays where the answer lives; only its number crosses."""

    number: int
    type_name: str = "object"


@dataclass
class Outcome:
    """One answer to one request: a value, or an error."""

    value: Any = None
    error: StudentError | None = None


class Runner(Protocol):
    """Executes one request where the answer lives."""

    def run(self, request: dict[str, Any]) -> Any: ...

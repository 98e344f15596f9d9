"""What grading finds, as plain data: one check, one exercise, one submission.

Messages are made to be shown to anyone. The numbers of a hidden check are never put in.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, asdict, dataclass, field, fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

GRADER_ERROR = "grader error"


@dataclass
class CheckResult:
    """The outcome of one check. `fault` is the grader's own error, never the student's."""

    name: str
    sentence: str
    weight: int
    hidden: bool
    passed: bool
    message: str = ""
    misconception: str | None = None
    fault: str = ""


@dataclass
class ExerciseResult:
    """The outcome of one exercise.

    `status` is passed, partly, failed, missing (the name is not defined) or grader error;
    `misconception` holds id, message and section of the recognised mistake. A bonus counts beside
    the points; `untried` says why an exercise for a bonus was not looked at.
    """

    id: str
    points: float | None
    max_points: float
    status: str
    checks: list[CheckResult] = field(default_factory=list)
    misconception: dict[str, str] | None = None
    bonus: float = 0.0
    max_bonus: float = 0.0
    untried: str = ""

    @property
    def earned(self) -> float | None:
        """Points and bonus together; only one of them is ever more than 0."""
        return None if self.points is None else self.points + self.bonus

    def as_json(self) -> dict[str, Any]:
        bonus = {"bonus": self.bonus, "max_bonus": self.max_bonus} if self.max_bonus else {}
        return {
            "id": self.id,
            "points": self.points,
            "max_points": self.max_points,
            **bonus,
            "status": self.status,
            "checks": [
                {"name": c.name, "passed": c.passed, "message": c.message, "hidden": c.hidden}
                for c in self.checks
            ],
            "misconception": self.misconception["id"] if self.misconception else None,
            "advice": self.misconception["message"] if self.misconception else None,
        }


@dataclass
class SubmissionResult:
    """One submission: a status for the whole, a score for each exercise, and how to replay it."""

    student: str
    chapter: str
    status: str
    exercises: list[ExerciseResult]
    note: str = ""
    seed: int = 0
    seconds: float = 0.0
    fingerprint: str = ""
    sha256: str = ""  # of the file as it was handed in
    file: str = ""  # below the folder of submissions, quoted as in an address
    environment: dict[str, Any] = field(default_factory=dict)

    @property
    def score(self) -> float | None:
        """The sum over the exercises; None while a fault of the grader leaves it unknown."""
        points = [e.points for e in self.exercises]
        known = [p for p in points if p is not None]
        return None if len(known) < len(points) else round(sum(known), 2)

    @property
    def max_score(self) -> float:
        return sum(e.max_points for e in self.exercises)

    @property
    def bonus(self) -> float:
        """What exercises for a bonus earned beside the score."""
        return round(sum(e.bonus for e in self.exercises), 2)


def score(checks: list[CheckResult], max_points: float) -> tuple[float | None, str]:
    """(points, status) from weighted checks."""
    if any(c.fault for c in checks) or not checks:
        return None, GRADER_ERROR
    earned = sum(c.weight for c in checks if c.passed)
    points = round(max_points * earned / sum(c.weight for c in checks), 2)
    status = "failed" if earned == 0 else "passed" if all(c.passed for c in checks) else "partly"
    return points, status


def to_json(result: SubmissionResult) -> str:
    """A result as text, to be sent or kept."""
    return json.dumps(asdict(result))


def from_json(text: str | bytes) -> SubmissionResult:
    """The result in a text. Raises ValueError when the text is anything else."""
    try:
        return from_dict(json.loads(text))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def from_dict(data: Any) -> SubmissionResult:
    """The result in what JSON gave. Raises ValueError when it is none."""
    plain = _plain(SubmissionResult, data)
    plain["exercises"] = [_plain(ExerciseResult, e) for e in plain["exercises"]]
    for exercise in plain["exercises"]:
        exercise["checks"] = [CheckResult(**_plain(CheckResult, c)) for c in exercise["checks"]]
        named = exercise.get("misconception") or {}
        if not all(isinstance(text, str) for text in named.values()):
            raise ValueError("a misconception that is no text")
    return SubmissionResult(
        **{**plain, "exercises": [ExerciseResult(**e) for e in plain["exercises"]]}
    )


def _plain(kind: type[Any], data: Any) -> dict[str, Any]:
    """The fields of a dataclass, each of its own type."""
    if not isinstance(data, dict):
        raise ValueError(f"no {kind.__name__}")
    types = _HINTS[kind]
    known = {entry.name: entry for entry in fields(kind)}
    if unknown := set(data) - set(known):
        raise ValueError(f"a {kind.__name__} has no {min(unknown)!r}")
    for name, entry in known.items():
        if name not in data:
            if entry.default is MISSING and entry.default_factory is MISSING:
                raise ValueError(f"a {kind.__name__} without {name!r}")
        elif not _fits(types[name], data[name]):
            raise ValueError(f"a {kind.__name__} whose {name!r} is {str(data[name])[:40]!r}")
    return dict(data)


_HINTS = {kind: get_type_hints(kind) for kind in (CheckResult, ExerciseResult, SubmissionResult)}


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value of JSON is of an annotated type."""
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    if isinstance(kind, UnionType):
        return any(_fits(one, value) for one in get_args(kind))
    return type(value) is (get_origin(kind) or kind)

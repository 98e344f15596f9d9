"""What grading finds, as plain data: one check, one exercise, one submission.

Messages are made to be shown to anyone. The numbers of a hidden check are never put in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
    `misconception` holds id, message and section of the recognised mistake.
    """

    id: str
    points: float | None
    max_points: float
    status: str
    checks: list[CheckResult] = field(default_factory=list)
    misconception: dict[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "points": self.points,
            "max_points": self.max_points,
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


def score(checks: list[CheckResult], max_points: float) -> tuple[float | None, str]:
    """(points, status) from weighted checks."""
    if any(c.fault for c in checks) or not checks:
        return None, GRADER_ERROR
    earned = sum(c.weight for c in checks if c.passed)
    points = round(max_points * earned / sum(c.weight for c in checks), 2)
    status = "failed" if earned == 0 else "passed" if all(c.passed for c in checks) else "partly"
    return points, status

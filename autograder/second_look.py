"""The second look at a PyTorch answer: what passed on the CPU is asked once more on a GPU.

Why twice: points come from the CPU alone, so that a grade is the same on every machine. Yet a model
runs on a GPU, and an answer that leaves a table behind on the CPU is found nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .assertions import CheckFailed
from .exercise import Exercise
from .gpu import Place, trouble
from .replies import Gone, Runner, StudentError
from .results import CheckResult, ExerciseResult
from .running import Standard, asked_once, collected

ROOM = "with_torch"
FREE = "No point depends on it."


@dataclass
class SecondLook:
    """What an exercise's answer did there. `passed_before` counts what there is to ask again."""

    place: Place
    passed_before: int
    asked: list[CheckResult] = field(default_factory=list)
    ended: str = ""  # why the rest was not asked

    @property
    def tried(self) -> bool:
        return bool(self.passed_before) and not self.place.why_not

    @property
    def failed(self) -> list[CheckResult]:
        """What the answer does otherwise there; a fault of the checker's is none of its."""
        return [check for check in self.asked if not check.passed and not check.fault]

    def headline(self) -> str:
        """In one line: where it was tried and what came of it, or why it was not."""
        if not self.tried:
            why = self.place.why_not or "no check passes on the CPU yet"
            return f"NOT TRIED ON CUDA: {why}. {FREE}"
        of, passed = self.passed_before, sum(check.passed for check in self.asked)
        faults = sum(bool(check.fault) for check in self.asked)
        where = f"CUDA ({self.place.name}):"
        if passed == of:
            same = f"{of} checks pass" if of > 1 else "check passes"
            return f"{where} the same {same} there too."
        text = f"{where} {passed} of these {of} checks pass there too."
        if faults:
            text += f" Of {faults} it cannot be told, since the checker itself failed there."
        if self.ended:
            text += f" The others were not asked: {self.ended}"
        return text + (" What fails there costs no point:" if self.failed else f" {FREE}")

    def as_json(self) -> dict[str, Any]:
        return {
            "device": self.place.name if self.tried else None,
            "said": self.headline(),
            "asked": len(self.asked),
            "passed": sum(check.passed for check in self.asked),
            "failed": [{"name": c.name, "message": c.message} for c in self.failed],
        }


@dataclass
class OnlyLook:
    """An exercise whose answer may be a kernel was asked on the GPU in the first place.

    There a kernel is compiled for it, and takes no tensor of the CPU's.
    """

    place: Place
    failed: list[CheckResult] = field(default_factory=list)  # they stand in the report itself

    def headline(self) -> str:
        return (
            f"Asked on CUDA ({self.place.name}), where kernels run. Grading asks on the CPU, "
            "through Triton's interpreter."
        )


class OnDevice:
    """An answer that is asked on a device: a `Runner` around the one that is asked on the CPU.

    What was moved there comes back from there, or the check that asked fails. An error of the
    device's own is no refusal and no mistake: it ends the asking.
    """

    def __init__(self, answer: Runner, device: str) -> None:
        self._answer, self._device = answer, device

    def begin(self, exercise: str) -> None:
        if hasattr(self._answer, "begin"):
            self._answer.begin(exercise)

    def run(self, request: dict[str, Any]) -> Any:
        try:
            reply = self._answer.run({**request, "device": self._device})
        except StudentError as error:
            told = trouble(error.types, error.message)
            raise (Gone(told) if told else error) from None
        if not isinstance(reply, tuple) or len(reply) != 2 or not isinstance(reply[1], list):
            raise Gone("the process sent no proper reply")
        value, places = reply
        for place in places:
            if place != self._device:
                raise CheckFailed(
                    f"the input is on {self._device}, but the result is on {place}: what is made "
                    "inside needs the device of the input, as in `device=x.device`."
                )
        return value


def look_again(
    exercise: Exercise,
    result: ExerciseResult,
    answer: Runner,
    standard: Standard,
    place: Place,
    seed: int,
) -> SecondLook:
    """Ask the checks that passed again, at this place. What is found is told, and earns nothing."""
    passed = {check.name for check in result.checks if check.passed}
    look = SecondLook(place, len(passed))
    if not look.tried:
        return look
    there = OnDevice(answer, place.device)
    for check in collected(exercise.chapter):
        if check.exercise == exercise.name and check.name in passed:
            _, error, said = asked_once(check, exercise, there, standard, seed)
            if isinstance(error, Gone):
                look.ended = f"{error.message.rstrip('.')}. The check was: {check.sentence}"
                break
            look.asked.append(said)
    return look

"""The reference of the sample chapter's class, with helpers that are called like NumPy's."""

import functools
import math


def norm(vector: tuple[float, ...]) -> float:
    """Another function than the exercise of this name."""
    return math.sqrt(functools.reduce(lambda total, x: total + x * x, vector, 0.0))


def power_sum(vector: tuple[float, ...]) -> float:
    """Another helper than NumPy's."""
    return norm(vector) ** 2


class Scale:
    """Divides vectors by their length."""

    limit = 1e-12

    def __init__(self, power: float = 2.0) -> None:
        # no base class to call
        self.power = power

    def length(self, vector: tuple[float, ...]) -> float:
        return max(math.sqrt(power_sum(vector)), self.limit)

    def forward(self, vector: tuple[float, ...]) -> tuple[float, ...]:
        """The unit vector."""
        return tuple(x / self.length(vector) for x in vector)

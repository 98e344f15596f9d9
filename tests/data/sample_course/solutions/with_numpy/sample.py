"""The reference of the sample chapter."""

import math

SMALLEST = 1.0


def power_sum(vector: tuple[float, ...], power: float) -> float:
    """Helper of the reference."""
    return sum(abs(x) ** power for x in vector)


def norm(vector: tuple[float, ...], power: float = 2.0) -> float:
    """The length of a vector.

    >>> norm((3.0, 4.0))
    5.0
    """
    # the reason stands before the line
    if power < SMALLEST:
        raise ValueError(f"power must be at least {SMALLEST}, got {power!r}; 2.0 is usual")
    return math.pow(power_sum(vector, power), 1 / power)

"""The words in which checks compare: each failure tells index, both values and the largest error.

Everything here survives any answer at all (wrong types, NaN, ragged lists), because a fault of the
grader must never become a student's zero, nor a student's fault the grader's.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .answers import Answer, Answers, Instance
from .replies import Gone, StudentError
from .wording import index, kind, numbers

NOT_WRITTEN = "NotImplementedError"
P = ParamSpec("P")
R = TypeVar("R")


class CheckFailed(AssertionError):
    """The answer does not behave as the check says.

    A hidden check withholds `values`, numbers and indices, and tells `plain` in the place of a
    `message` that holds what the answer made, such as a shape or a type's name: an answer could
    write its input there. `about` is the reply that was looked at, so that its call can be told.
    """

    about: Any = None
    of_dtype = False  # the values may be right: what was looked at is their dtype

    def __init__(self, message: str, values: str = "", plain: str = "") -> None:
        self.message = message
        self.plain = plain or message
        self.values = values
        super().__init__(f"{message} {values}".strip())


def another(needed: str, value: Any) -> CheckFailed:
    """The failure where one kind of thing is needed and another came."""
    return CheckFailed(f"{needed}, but is {kind(value)}.", plain=f"{needed}.")


def _about_its_first(compare: Callable[P, R]) -> Callable[P, R]:
    """A comparison whose failures are about its first argument."""

    @functools.wraps(compare)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return compare(*args, **kwargs)
        except CheckFailed as failure:
            failure.about = args[0] if args else None
            raise

    return told


def tolerance(
    dtype: Any, *, angle: float = 0.0, scale: float = 1.0, angle_dtype: Any = "float64"
) -> float:
    """Absolute error that a correct program may have.

    Rounding to `dtype` costs a few units in the last place of values up to `scale`; an angle of
    `angle` radians held in `angle_dtype` is off by a few units in its last place, and sine and
    cosine move by as much as their angle does. The factor 16 leaves room for other orders of
    evaluation (`exp(-log(base)·…)` for a power).
    """
    return 16 * scale * (_eps(dtype) + _eps(angle_dtype) * (1 + abs(float(angle))))


@_about_its_first
def close(actual: Any, expected: Any, atol: float, *, what: str = "the result") -> None:
    """`actual` has the shape of `expected` and lies within `atol` of it everywhere."""
    want = as_array(expected, "the expected value")
    got = shaped(actual, want.shape, what=what)
    got, want = got.astype(np.complex128), want.astype(np.complex128)
    with np.errstate(all="ignore"):  # infinities are an answer too
        error = np.where(got == want, 0.0, np.abs(got - want))
    bad = ~(error <= atol)  # NaN counts as wrong
    if not bad.any():
        return
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), got.shape))
    largest = float(np.max(np.where(np.isnan(error), np.inf, error)))
    place = f"First at index {index(first)}: yours is" if first else "Yours is"
    yours, expected = numbers(got[first], want[first])
    raise CheckFailed(
        f"in {what} {int(bad.sum())} of {got.size} numbers differ.",
        f"{place} {yours}, expected {expected}; largest error {largest:.3g}, allowed {atol:.1g}.",
    )


@_about_its_first
def equal(actual: Any, expected: Any, *, what: str = "the result") -> None:
    """`actual` holds exactly the integers, booleans or strings of `expected`."""
    close(actual, expected, 0.0, what=what)


def agrees(
    student: Answers,
    reference: Answers,
    name: str,
    *args: Any,
    atol: float,
    dtype: str | None = None,
    **kwargs: Any,
) -> None:
    """The student's `name(*args)` is what the reference's is, and of this dtype if one is given."""
    expected = getattr(reference, name)(*args, **kwargs)
    result = getattr(student, name)(*args, **kwargs)
    close(result, expected, atol)
    if dtype is not None:
        same_dtype(result, dtype)


def leaves_inputs(
    student: Answers,
    reference: Answers,
    name: str,
    *args: Any,
    names: tuple[str, ...],
    atol: float,
) -> None:
    """The first inputs, called `names`, survive a call that returns what it should."""
    expected = getattr(reference, name)(*args)
    result, after = getattr(student, name).with_inputs(*args)
    for what, now, before in zip(names, after, args, strict=False):
        unchanged(now, before, what=what)
    with good_input():
        close(result, expected, atol)


def trains(
    student: Answer | Instance,
    reference: Answer | Instance,
    *args: Any,
    names: tuple[str, ...],
    weights: Any,
    atol: float,
) -> None:
    """Through a call of these inputs, the first of them called `names`, gradients flow back."""
    for at, name in enumerate(names):
        expected = reference.gradient(at, *args, weights=weights)
        found = student.gradient(at, *args, weights=weights)
        if found is None:
            raise CheckFailed(
                f"no gradient arrives at {name}, so nothing that stands before this in a model can "
                "be trained."
            )
        close(found, expected, atol, what=f"the gradient of {name}")


@_about_its_first
def shaped(actual: Any, shape: tuple[int, ...], *, what: str = "the result") -> np.ndarray:
    """`actual` as an array of numbers that has this shape: safe to compute with."""
    got = as_array(actual, what)
    if got.shape != shape:
        raise CheckFailed(
            f"{what}: the shape is {got.shape}, but {shape} is needed.",
            plain=f"{what}: the shape is another than {shape}.",
        )
    return got


@contextlib.contextmanager
def good_input() -> Iterator[None]:
    """Around the good call that comes before bad ones: its failure is not about the bad ones."""
    try:
        yield
    except CheckFailed as failure:
        failure.message = f"Not looked at yet, since on good input {failure.message}"
        failure.plain = f"Not looked at yet, since on good input {failure.plain}"
        raise


@_about_its_first
def same_dtype(actual: Any, dtype: str, *, what: str = "the result") -> None:
    """`actual` is an array or tensor of this dtype (`"float32"`, `"bfloat16"`)."""
    got = str(getattr(actual, "dtype", type(actual).__name__)).removeprefix("torch.")
    if got != dtype:
        failure = CheckFailed(f"{what}: the dtype is {got}, but {dtype} is needed.")
        failure.of_dtype = True
        raise failure


@_about_its_first
def unchanged(after: Any, before: Any, *, what: str) -> None:
    """An input is, after the call, what it was before."""
    try:
        equal(after, before, what=what)
    except CheckFailed as failure:
        raise CheckFailed(
            f"{what} was changed in place: the caller still needs it. Work on a copy.",
            failure.values,
        ) from None


@_about_its_first
def pair(value: Any, *, what: str = "the result") -> tuple[Any, Any]:
    """`value` is a tuple of two, or anything else that comes apart into two."""
    stacked = isinstance(value, np.ndarray) and value.ndim > 0
    if not (stacked or isinstance(value, tuple | list)) or len(value) != 2:
        raise another(f"{what} must be a pair (two items)", value)
    return value[0], value[1]


@_about_its_first
def instance(value: Any, *, what: str) -> Instance:
    """`value` is an object that can be used (a module, a function), not plain data."""
    if not isinstance(value, Instance):
        raise another(f"{what} must be something to call", value)
    return value


def refuses(
    answer: Callable[..., Any],
    *args: Any,
    because: str,
    error: str | None = None,
    naming: tuple[str, ...] = (),
    **kwargs: Any,
) -> None:
    """`answer(*args)` raises (`error` by name, or anything), with `naming` in its message.

    To be asked after a good call, since an answer that is missing raises too. A process that has
    died is no refusal.
    """
    try:
        value = answer(*args, **kwargs)
    except StudentError as raised:
        if isinstance(raised, Gone):
            raise
        if error is not None and error not in raised.types:
            raise CheckFailed(
                f"{because}: {error} is needed, but the code raised {raised.types[0]}.",
                plain=f"{because}: {error} is needed, but the code raised another error.",
            ) from None
        absent = [word for word in naming if word not in raised.message]
        if absent:
            needed = (
                f"{because}: an error of your own, with {absent[0]!r} in its message, is needed"
            )
            raise CheckFailed(
                f"{needed}, but this one reads: {raised.message}", plain=f"{needed}."
            ) from None
        return
    needed = f"{because}: {error or 'an error'} is needed"
    raise CheckFailed(
        f"{needed}, but the code returned {kind(value)}.",
        plain=f"{needed}, but the code returned something.",
    )


@_about_its_first
def as_array(value: Any, what: str) -> np.ndarray:
    """Numbers as a NumPy array; anything else fails the check with its type's name."""
    if value is None:
        raise CheckFailed(f"{what} is None: is there a `return`?")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        try:
            value = value.detach().cpu()
            value = value.double() if value.is_floating_point() else value.resolve_conj()
            value = value.numpy()
        except (RuntimeError, TypeError):  # a sparse or quantised one
            raise CheckFailed(f"{what} must be an ordinary tensor of numbers.") from None
    try:
        if not _numeric(value):
            raise TypeError
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError, RuntimeError, MemoryError):
        raise another(f"{what} must hold numbers", value) from None
    if array.dtype.kind not in "biufc":
        raise another(f"{what} must hold numbers", value)
    return array


def _numeric(value: Any) -> bool:
    """Whether lists hold numbers and arrays alone: of texts NumPy would make a huge array."""
    if isinstance(value, list | tuple):
        return all(map(_numeric, value))
    return not isinstance(value, str | bytes)


def _eps(dtype: Any) -> float:
    name = str(dtype).removeprefix("torch.").removeprefix("<class 'numpy.").rstrip("'>")
    return 2.0**-7 if name == "bfloat16" else float(np.finfo(name).eps)

"""Checks of the chapter on attention without positions.

Inputs are drawn so that habit cannot pass for understanding: axes of different lengths, masks that
are neither triangles nor symmetric, permutations that are not their own inverse. Where a result can
be worked out by hand, or by torch's own attention, it is compared with that.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers import Answers
from ..assertions import (
    CheckFailed,
    agrees,
    as_array,
    close,
    equal,
    good_input,
    leaves_inputs,
    refuses,
    same_dtype,
    tolerance,
    trains,
    unchanged,
)
from ..exercise import Exercise, behaviour
from ..replies import StudentError
from ..wording import kind

if TYPE_CHECKING:
    import torch

EXERCISES = (
    Exercise("order_blindness", "self_attention", 3),
    Exercise("order_blindness", "permutation_gap", 2),
    Exercise("order_blindness", "failed_requirements", 3),
    Exercise("order_blindness", "binary_positions", 1),
    Exercise("order_blindness", "causal_mask", 1),
    Exercise("order_blindness", "positions_from_causal_average", 2),
    Exercise("order_blindness", "multi_head_attention", 3, "with_torch"),
)


def head(
    rng: Any, n: int = 5, d_model: int = 8, d_k: int = 3, d_v: int = 2, dtype: str = "float64"
) -> tuple[np.ndarray, ...]:
    """Tokens and the three weights of a head, sized so that the scores are about 1."""
    x = rng.standard_normal((n, d_model))
    weights = [rng.standard_normal((d_model, d)) / math.sqrt(d_model) for d in (d_k, d_k, d_v)]
    return tuple(array.astype(dtype) for array in (x, *weights))


def some_mask(rng: Any, n: int) -> np.ndarray:
    """A mask with True and False in each row and each column, and no pattern."""
    mask, shift = rng.random((n, n)) < 0.5, rng.integers(n)
    rows = np.arange(n)
    mask[rows, (rows + shift) % n] = True
    mask[rows, (rows + shift + 1) % n] = False
    return mask


def triangle(n: int) -> np.ndarray:
    return np.tri(n, dtype=bool)


def room(inputs: Any, dtype: str = "float64") -> float:
    """Tolerance for a head's results.

    Rounding moves a score by a few units in the last place of the products that it is summed from,
    the weights by as much, and the result by that times the values.
    """
    x, w_q, w_k, w_v = (np.abs(np.asarray(array, dtype=np.float64)) for array in inputs)
    scores = (x @ w_q) @ (x @ w_k).T / math.sqrt(w_q.shape[1])
    largest = scores.max(initial=0.0)
    return tolerance(dtype, scale=float((1 + largest) * (x @ w_v).max(initial=1.0)))


# ----------------------------------------------------------------------------- self_attention


def exact_scores(rng: Any, tops: Any, signs: Any) -> tuple[np.ndarray, ...]:
    """q, k (n, 4) and v (n, 2) with scores tops[i]·signs[j] + (−½, 0 or ½), exact in any dtype."""
    n = len(tops)
    small = rng.permutation(np.resize([-1.0, 0.0, 1.0], n))
    q = np.stack([2 * np.array(tops), rng.choice([-1.0, 1.0], n), 0 * small, 0 * small], axis=1)
    k = np.stack([np.array(signs, dtype=float), small, small, 1 - small], axis=1)
    return q, k, rng.standard_normal((n, 2))


def exact_head(rng: Any, tops: Any, signs: Any, dtype: str) -> list[np.ndarray]:
    """A head with exactly these scores: its tokens pick rows of the weights."""
    order = rng.permutation(len(tops))
    rows = np.argsort(order)  # undoes what the tokens pick
    arrays = (np.eye(len(tops))[order], *(w[rows] for w in exact_scores(rng, tops, signs)))
    return [array.astype(dtype) for array in arrays]


@behaviour("self_attention", weight=2)
def check_self_attention_by_hand(student: Answers, reference: Answers, rng: Any) -> None:
    """Scores of ln 3 and 0 share the values as 3/4 and 1/4, scores of ln 7 and 0 as 7/8 and 1/8."""
    w_q, w_k = np.zeros((2, 4)), np.zeros((2, 4))
    place = rng.integers(4)
    w_q[:, place] = 2 * math.log(3), 2 * math.log(7)  # √d_k is 2
    w_k[0, place] = 1.0
    values = rng.standard_normal((2, 3))
    inputs = (np.eye(2), w_q, w_k, values)
    expected = np.array([[0.75, 0.25], [0.875, 0.125]]) @ values
    close(student.self_attention(*inputs), expected, room(inputs))


@behaviour("self_attention", weight=2)
def check_self_attention_many_tokens(student: Answers, reference: Answers, rng: Any) -> None:
    """Five tokens of width 8, queries and keys of width 3, values of width 2 work."""
    for shape in ((5, 8, 3, 2), (3, 2, 5, 7)):
        inputs = head(rng, *shape)
        agrees(student, reference, "self_attention", *inputs, atol=room(inputs))


@behaviour("self_attention", weight=2)
def check_self_attention_mask(student: Answers, reference: Answers, rng: Any) -> None:
    """With a mask, a query shares its whole attention among the keys that are True in its row."""
    inputs = head(rng)
    for mask in (some_mask(rng, 5), some_mask(rng, 5)):
        agrees(student, reference, "self_attention", *inputs, mask, atol=room(inputs))
    agrees(student, reference, "self_attention", *inputs, mask=triangle(5), atol=room(inputs))


@behaviour("self_attention", weight=2)
def check_self_attention_large_scores(student: Answers, reference: Answers, rng: Any) -> None:
    """Large scores of either sign, up to ±10 000 and in float32 too, leave the result finite."""
    up, down = [709.0, -31.0], [-10_000.0, 10_000.0]
    for tops, dtype in (
        (np.resize(up, 5), "float64"),  # exp(709) is the last one below infinity
        (np.resize(down, 5), "float64"),
        (np.resize(down, 5), "float32"),
    ):
        inputs = exact_head(rng, tops, [1] * 5, dtype)
        agrees(student, reference, "self_attention", *inputs, atol=room(inputs, dtype))


@behaviour("self_attention")
def check_self_attention_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer tokens give a float64 result with its fractions kept."""
    x, *weights = head(rng)
    x = rng.integers(-3, 4, x.shape)
    inputs = (x, *weights)
    agrees(student, reference, "self_attention", *inputs, atol=room(inputs), dtype="float64")
    inputs = tuple(rng.integers(-2, 3, array.shape) for array in inputs)
    agrees(student, reference, "self_attention", *inputs, atol=room(inputs), dtype="float64")


@behaviour("self_attention")
def check_self_attention_refuses_blind_query(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A query that may attend to nothing is a ValueError."""
    inputs, mask = head(rng), some_mask(rng, 5)
    with good_input():
        agrees(student, reference, "self_attention", *inputs, mask, atol=room(inputs))
    blind = mask.copy()
    blind[rng.integers(5)] = False
    because = "a query that may attend to nothing"
    for bad in (blind, np.zeros((5, 5), dtype=bool), np.tri(5, k=-1, dtype=bool)):
        refuses(student.self_attention, *inputs, bad, error="ValueError", because=because)


@behaviour("self_attention")
def check_self_attention_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has the floating dtype of x, whatever the dtypes of the weights."""
    for dtype, others, coarser in (
        ("float32", "float32", "float32"),
        ("float32", "float64", "float32"),
        ("float64", "float32", "float32"),
        ("float16", "float16", "float16"),
        ("float16", "float32", "float16"),
    ):
        x, *weights = head(rng)
        inputs = ((x / 4).astype(dtype), *(w.astype(others) for w in weights))
        for mask in (None, some_mask(rng, 5)):
            allowed = room(inputs, coarser)
            given = (*inputs, mask)
            agrees(student, reference, "self_attention", *given, atol=allowed, dtype=dtype)


@behaviour("self_attention")
def check_self_attention_large_masked_scores(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A large score that is masked leaves the small ones beside it their exact shares."""
    signs = [-1, 1, -1, 1, -1]
    allowed = np.broadcast_to(np.array(signs) < 0, (5, 5)).copy()
    allowed[rng.integers(5), 0] = False
    tops = (370.0, 740.0, 10_000.0)  # exp(−740) is nearly the last one above zero
    for top, dtype in (*((top, "float64") for top in tops), (10_000.0, "float32")):
        inputs = exact_head(rng, [top] * 5, signs, dtype)
        agrees(student, reference, "self_attention", *inputs, allowed, atol=room(inputs, dtype))


@behaviour("self_attention")
def check_self_attention_leaves_inputs(student: Answers, reference: Answers, rng: Any) -> None:
    """x, the weights and the mask are still what they were."""
    inputs = (*head(rng), some_mask(rng, 5))
    names, allowed = ("x", "w_q", "w_k", "w_v", "mask"), room(inputs[:4])
    leaves_inputs(student, reference, "self_attention", *inputs, names=names, atol=allowed)


@behaviour("self_attention", weight=2)
def check_self_attention_refuses_masks(student: Answers, reference: Answers, rng: Any) -> None:
    """A mask of any shape but (n, n) raises, also where NumPy would broadcast it."""
    inputs, mask = head(rng), some_mask(rng, 5)
    with good_input():
        agrees(student, reference, "self_attention", *inputs, mask, atol=room(inputs))
    because = "a mask that is not (n, n)"
    for shape in ((), (1,), (5,), (1, 5), (5, 1), (1, 1), (1, 5, 5), (2, 5, 5), (4, 5), (6, 6)):
        refuses(student.self_attention, *inputs, np.ones(shape, dtype=bool), because=because)
    single = (inputs[0][:1], *inputs[1:])
    for shape in ((), (1,), (5, 1), (1, 1, 1)):
        refuses(student.self_attention, *single, np.ones(shape, dtype=bool), because=because)


@behaviour("self_attention")
def check_self_attention_refuses_shapes(student: Answers, reference: Answers, rng: Any) -> None:
    """Weights that do not go with the tokens, or with each other, raise."""
    x, w_q, w_k, w_v = inputs = head(rng)
    with good_input():
        agrees(student, reference, "self_attention", *inputs, atol=room(inputs))
    attend = student.self_attention
    because = "queries and keys of different widths"
    for width in (1, 2):
        refuses(attend, x, w_q[:, :width], w_k, w_v, because=because)
        refuses(attend, x, w_q, w_k[:, :width], w_v, because=because)
    because = "a weight without a row for each coordinate of a token"
    for rows in (1, 7):
        refuses(attend, x, w_q[:rows], w_k, w_v, because=because)
        refuses(attend, x, w_q, w_k[:rows], w_v, because=because)
        refuses(attend, x, w_q, w_k, w_v[:rows], because=because)
        refuses(attend, x[:, :rows], *inputs[1:], because=because)


@behaviour("self_attention", hidden=True)
def check_self_attention_small_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Products of small integer dtypes do not wrap round, in x or in the weights."""
    x, (w_q, w_k) = rng.integers(5, 16, (5, 8)), np.zeros((2, 8, 3))
    for weight in (w_q, w_k):  # each picks three coordinates, so that the scores stay small
        weight[rng.permutation(8)[:3], np.arange(3)] = 1
    w_v = rng.integers(30, 99, (8, 2))
    inputs = tuple(array.astype("uint8") for array in (x, w_q, w_k, w_v))
    agrees(student, reference, "self_attention", *inputs, atol=room(inputs), dtype="float64")


@behaviour("self_attention", hidden=True)
def check_self_attention_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One token, axes of equal length, and a mask that leaves each query one key all work."""
    for shape in ((1, 3, 2, 4), (4, 4, 4, 4), (7, 1, 1, 1), (2, 16, 8, 8)):
        inputs = head(rng, *shape)
        n = shape[0]
        single = np.eye(n, dtype=bool)[rng.permutation(n)]
        for mask in (None, single, np.ones((n, n), dtype=bool), triangle(n)):
            agrees(student, reference, "self_attention", *inputs, mask, atol=room(inputs))


# ---------------------------------------------------------------------------- permutation_gap


def cycle(rng: Any, n: int) -> np.ndarray:
    """A permutation that moves every token, and is not its own inverse."""
    order, permutation = rng.permutation(n), np.empty(n, dtype=int)
    permutation[order] = np.roll(order, 1)
    return permutation


def average(numbers: Any) -> tuple[np.ndarray, ...]:
    """A head that averages what the mask lets it see: its scores are all zero."""
    x = np.asarray(numbers, dtype=float)[:, None]
    return x, np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1))


@behaviour("permutation_gap", weight=2)
def check_permutation_gap_by_hand(student: Answers, reference: Answers, rng: Any) -> None:
    """Running averages of 3, 8, 1 differ by at most 3 from those of 1, 3, 8 in the same order."""
    known, order, mask = [1.0, 3.0, 8.0], np.array([1, 2, 0]), triangle(3)
    for sign in (1, -1):
        inputs = average(np.array(known) * sign)
        close(student.permutation_gap(*inputs, order, mask), 3.0, 1e-12)
    numbers, order, mask = rng.standard_normal(5), cycle(rng, 5), triangle(5)
    counts = np.arange(1, 6)
    means = [np.cumsum(v) / counts for v in (numbers[order], numbers)]
    expected = np.abs(means[0] - means[1][order]).max()
    for sign in (1, -1):
        inputs = average(numbers * sign)
        close(student.permutation_gap(*inputs, order, mask=mask), expected, 1e-12)


@behaviour("permutation_gap", weight=2)
def check_permutation_gap_only_with_a_mask(student: Answers, reference: Answers, rng: Any) -> None:
    """Without a mask the gap is zero up to rounding, with a causal one it is not."""
    inputs, order = head(rng), cycle(rng, 5)
    expected = reference.permutation_gap(*inputs, order, triangle(5))
    close(student.permutation_gap(*inputs, order), 0.0, room(inputs), what="the gap without a mask")
    result = student.permutation_gap(*inputs, order, triangle(5))
    close(result, expected, room(inputs), what="the gap with a causal mask")


@behaviour("permutation_gap")
def check_permutation_gap_any_mask(student: Answers, reference: Answers, rng: Any) -> None:
    """Any mask stays with the slots while the tokens move."""
    for shape in ((5, 8, 3, 2), (7, 4, 2, 5)):
        inputs, n = head(rng, *shape), shape[0]
        given = (*inputs, cycle(rng, n), some_mask(rng, n))
        agrees(student, reference, "permutation_gap", *given, atol=room(inputs))


@behaviour("permutation_gap")
def check_permutation_gap_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """A token that comes twice, does not exist or is missing makes no permutation: ValueError."""
    inputs, order, mask = head(rng), cycle(rng, 5), triangle(5)
    with good_input():
        agrees(student, reference, "permutation_gap", *inputs, order, mask, atol=room(inputs))
    twice = order.copy()
    twice[0] = twice[3]
    beyond = np.where(order == 4, 5, order)
    longer = np.append(order, order[0])
    for bad, what in (
        (twice, "a token that comes twice"),
        (beyond, "a token that does not exist"),
        (order + 1, "numbers that count from 1"),
        (np.argsort(order[1:]), "a permutation of fewer tokens"),
        (longer, "more numbers than tokens"),
    ):
        for masked in ((), (mask,)):
            given = (*inputs, bad, *masked)
            refuses(student.permutation_gap, *given, error="ValueError", because=what)


@behaviour("permutation_gap")
def check_permutation_gap_leaves_inputs(student: Answers, reference: Answers, rng: Any) -> None:
    """Tokens, weights, permutation and mask are still what they were."""
    inputs = (*head(rng), cycle(rng, 5), some_mask(rng, 5))
    names = ("x", "w_q", "w_k", "w_v", "permutation", "mask")
    allowed = room(inputs[:4])
    leaves_inputs(student, reference, "permutation_gap", *inputs, names=names, atol=allowed)


@behaviour("permutation_gap")
def check_permutation_gap_refuses_what_only_indexes(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """What NumPy takes as an index is not always a permutation: negative numbers, masks, pieces."""
    inputs, order, mask = head(rng), cycle(rng, 5), triangle(5)
    with good_input():
        agrees(student, reference, "permutation_gap", *inputs, order, mask, atol=room(inputs))
    gap = student.permutation_gap
    negative = np.where(order == order[2], order - 5, order)
    for bad in (negative, order - 5):
        refuses(gap, *inputs, bad, mask, error="ValueError", because="a negative number")
    single = order.astype(float)
    single[1] += 0.25
    for fractions in (order + 0.5, order + 0.25, order - 0.25, single):
        refuses(gap, *inputs, fractions, because="fractions")
    refuses(gap, *inputs, order > 1, because="a mask in the place of a permutation")
    refuses(gap, *inputs, np.ones(5, dtype=bool), because="a mask in the place of a permutation")
    refuses(gap, *inputs, order[:, None], because="a permutation with two axes")
    refuses(gap, *inputs, order[None], because="a permutation with two axes")


@behaviour("permutation_gap")
def check_permutation_gap_refuses_shapes(student: Answers, reference: Answers, rng: Any) -> None:
    """What cannot be attended with has no gap: weights and masks that do not match raise."""
    # All of them stop NumPy by itself: a self_attention that looks at no shapes costs nothing here.
    inputs, order, mask = head(rng), cycle(rng, 5), triangle(5)
    with good_input():
        agrees(student, reference, "permutation_gap", *inputs, order, mask, atol=room(inputs))
    x, w_q, w_k, w_v = inputs
    gap = student.permutation_gap
    for masked in ((), (mask,)):
        because = "queries and keys of different widths"
        refuses(gap, x, w_q[:, :2], w_k, w_v, order, *masked, because=because)
        because = "a weight without a row for each coordinate of a token"
        refuses(gap, x, w_q, w_k, w_v[:7], order, *masked, because=because)
        refuses(gap, x[:, :7], w_q, w_k, w_v, order, *masked, because=because)
    refuses(gap, *inputs, order, triangle(4), because="a mask for four tokens")


@behaviour("permutation_gap", hidden=True)
def check_permutation_gap_other_inputs(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer and float32 tokens, other permutations and other sizes work."""
    for dtype, shape in (("int64", (5, 8, 3, 2)), ("float32", (6, 3, 4, 5)), ("float64", (4,) * 4)):
        x, *weights = head(rng, *shape)
        n, size = shape[0], 3 if dtype == "int64" else 1
        inputs = ((size * x).astype(dtype), *weights)
        coarse = "float32" if dtype == "float32" else "float64"
        for order in (cycle(rng, n), np.arange(n)[::-1], np.roll(np.arange(n), 1).astype("int32")):
            given, allowed = (*inputs, order, triangle(n)), room(inputs, coarse)
            agrees(student, reference, "permutation_gap", *given, atol=allowed)


@behaviour("permutation_gap", hidden=True)
def check_permutation_gap_where_nothing_moves(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """The identity has no gap under any mask, two tokens exchanged have one under a causal mask."""
    inputs, order = head(rng), np.arange(5)
    swapped = order.copy()
    swapped[[1, 3]] = 3, 1
    expected = reference.permutation_gap(*inputs, swapped, triangle(5))
    result = student.permutation_gap(*inputs, order, some_mask(rng, 5))
    close(result, 0.0, room(inputs), what="the gap of the identity")
    result = student.permutation_gap(*inputs, swapped, triangle(5))
    close(result, expected, room(inputs), what="the gap of an exchange")


# ------------------------------------------------------------------------ failed_requirements


def names_failed(
    student: Answers, short: Any, long: Any, *bound: float, fails: tuple[str, ...]
) -> None:
    """The answer is the set of exactly these requirements."""
    same_names(student.failed_requirements(short, long, *bound), fails)


def same_names(result: Any, fails: tuple[str, ...]) -> None:
    if not isinstance(result, set | frozenset):
        raise CheckFailed("the result must be a set of strings.", f"It is {kind(result)}.")
    if result != set(fails):
        names = {name[:60] if isinstance(name, str) else kind(name) for name in result}
        missing, extra = sorted(set(fails) - names), sorted(names - set(fails))
        told = [f"{', '.join(missing)} should be in it"] if missing else []
        told += [f"{', '.join(extra)} should not be in it"] if extra else []
        raise CheckFailed("the set of failed requirements is not right.", "; ".join(told) + ".")


def codes(rng: Any, n: int, d: int) -> np.ndarray:
    """Rows that share most of their numbers, no two alike, all within −0.9 … 0.9."""
    grid = np.stack(np.meshgrid(*[np.linspace(-0.9, 0.9, 5)] * d), axis=-1).reshape(-1, d)
    return rng.permutation(grid)[:n]


@behaviour("failed_requirements", weight=2)
def check_failed_requirements_of_the_naive_ones(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Scattered numbers, the index, a fraction, a constant and a counter fail what they should."""
    n, m = 2 * int(rng.integers(2, 4)), 2 * int(rng.integers(4, 7)) + 1
    # The order tells beliefs apart: no number and no sum of a row occurs twice, and one row is
    # longer than the bound; then the tables share rows; then a width of one alone is wrong.
    numbers = rng.permutation(np.linspace(-0.9, 0.9, 2 * (n + m)))
    numbers += rng.uniform(-0.01, 0.01, len(numbers))
    short, long = numbers[: 2 * n].reshape(n, 2), numbers[2 * n :].reshape(m, 2)
    long[-1] = 0.97, -0.95
    names_failed(student, short, long, fails=("length-independent",))
    names_failed(student, long[m - n :], long, fails=("length-independent",))
    narrow = numbers[:m, None]
    names_failed(student, narrow[:n], narrow, fails=("multi-dimensional",))
    index = np.arange(float(m))[:, None]
    bits = np.arange(m)[:, None] >> np.arange(4) & 1
    fails = ("length-independent", "multi-dimensional")
    # of an even length and an odd one, half steps have no number in common
    names_failed(student, (index[:n] + 0.5) / n, (index + 0.5) / m, fails=fails)
    names_failed(student, index[:n], index, fails=("bounded", "multi-dimensional"))
    names_failed(student, index[:n] / n, index / m, fails=fails)
    constant = np.full((m, 1), 0.5)
    names_failed(student, constant[:n], constant, fails=("unique", "multi-dimensional"))
    names_failed(student, bits[:n], bits, fails=())


@behaviour("failed_requirements")
def check_failed_requirements_bounded(student: Answers, reference: Answers, rng: Any) -> None:
    """Both tables are bounded, below too, and the bound itself is allowed."""
    long = codes(rng, 11, 3)
    for value, bound, fails in (
        (1.0, 1.0, ()),
        (-1.0, 1.0, ()),
        (-1.25, 1.0, ("bounded",)),
        (1.25, 1.0, ("bounded",)),
        (1.0001, 1.0, ("bounded",)),
        (-2.5, 2.5, ()),
        (2.25, 2.5, ()),
        (0.95, 0.75, ("bounded",)),
    ):
        for row in (2, 8):  # in both tables, or in the long one alone
            table = long.copy() if bound > 0.9 else long / 2
            table[row, 1] = value
            names_failed(student, table[:5], table, bound, fails=fails)
    high = long.copy()
    high[2, 1] = 1.5
    names_failed(student, high[:5], long, fails=("bounded", "length-independent"))


@behaviour("failed_requirements", weight=2)
def check_failed_requirements_unique(student: Answers, reference: Answers, rng: Any) -> None:
    """Two equal rows anywhere in a table are found; rows that share some numbers are no twins."""
    long = codes(rng, 12, 3)
    names_failed(student, long[:5], long, fails=())
    for first, second in ((1, 3), (0, 9), (7, 10), (2, 3)):
        table = long.copy()
        table[second] = table[first]
        names_failed(student, table[:5], table, fails=("unique",))
    short = long[:5].copy()
    short[3] = short[1]
    names_failed(student, short, long, fails=("unique", "length-independent"))


@behaviour("failed_requirements")
def check_failed_requirements_length_independent(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """The long table must start with the short one: its first rows, not some others."""
    long = codes(rng, 12, 3)
    for short, fails in (
        (long[:5], ()),
        (long[7:], ("length-independent",)),
        (long[1:6], ("length-independent",)),
        (long[4::-1], ("length-independent",)),
        (long[:5] + [0, 0, 0.03], ("length-independent",)),
    ):
        names_failed(student, short, long, fails=fails)
    for row in (0, 4):
        short = long[:5].copy()
        short[row, rng.integers(3)] += 0.02
        names_failed(student, short, long, fails=("length-independent",))


@behaviour("failed_requirements")
def check_failed_requirements_nearly_equal(student: Answers, reference: Answers, rng: Any) -> None:
    """Within 1e-9 rows are twins, and a table starts with another; a millionth apart is apart."""
    long = codes(rng, 12, 3) + rng.uniform(-1e-12, 1e-12, (12, 3))
    names_failed(student, long[:5], long, fails=())
    for first, second in ((1, 9), (8, 11)):
        table = long.copy()
        table[second] = table[first] + 1e-11 * np.array([1, -1, 1])
        names_failed(student, table[:5], table, fails=("unique",))
        table[[first, second], 0] = 0.1234567895 - 3e-11, 0.1234567895 + 3e-11
        names_failed(student, table[:5], table, fails=("unique",))
        table[first, 2] = 0.5
        table[second] = table[first] + [0, 0, 1e-6]
        names_failed(student, table[:5], table, fails=())
        table[second] = table[first] + [2e-6, -2e-6, 0]
        names_failed(student, table[:5], table, fails=())
        table[second] = table[first] + 8e-10 * np.array([1, -1, 1])  # 1.4e-9 in a straight line
        names_failed(student, table[:5], table, fails=("unique",))
        table[second] = table[first] + [0, 2.5e-9, 0]  # less than 1e-9 on average
        names_failed(student, table[:5], table, fails=())
    for error, fails in ((4e-10, ()), *((e, ("length-independent",)) for e in (5e-9, 1e-6))):
        short = long[:5].copy()
        short[3, rng.integers(3)] -= error
        names_failed(student, short, long, fails=fails)


@behaviour("failed_requirements")
def check_failed_requirements_leaves_inputs(student: Answers, reference: Answers, rng: Any) -> None:
    """Both tables are still what they were."""
    given = (codes(rng, 5, 3), codes(rng, 8, 3) * 1.5, 1.25)
    result, after = student.failed_requirements.with_inputs(*given)
    for what, now, before in zip(("short_table", "long_table"), after, given, strict=False):
        unchanged(now, before, what=what)
    with good_input():
        same_names(result, ("bounded", "length-independent"))


@behaviour("failed_requirements")
def check_failed_requirements_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """Tables of different widths, a long table that is no longer, and lists of numbers raise."""
    long = codes(rng, 12, 3)
    with good_input():
        names_failed(student, long[:5], long, 0.5, fails=("bounded",))
    judge = student.failed_requirements
    for width in (1, 2):
        because = "tables of different widths"
        refuses(judge, long[:5, :width], long, because=because)
        refuses(judge, long[:5], long[:, :width], because=because)
    for rows in (1, 4, 5):
        refuses(judge, long[:5], long[:rows], because=f"{rows} rows that are to be more than 5")
    refuses(judge, long[:5, 0], long[:, 0], because="tables without a second axis")
    refuses(judge, long[:5, 0], long, because="a table without a second axis")


@behaviour("failed_requirements", weight=2, hidden=True)
def check_failed_requirements_each_with_each(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Each of the sixteen combinations is told apart, for several widths and bounds."""
    every = ("bounded", "unique", "length-independent", "multi-dimensional")
    for kept in itertools.product((True, False), repeat=4):
        wanted = tuple(name for name, met in zip(every, kept, strict=True) if not met)
        width, bound = int(rng.integers(2, 5)) if kept[3] else 1, float(rng.uniform(1.5, 9))
        n, m = int(rng.integers(4, 7)), int(rng.integers(9, 13))
        if width == 1:
            long = rng.permutation(np.linspace(-0.9, 0.9, m))[:, None] * bound
        else:
            long = codes(rng, m, width) * bound
        row, other = rng.choice(np.arange(1, n), 2, replace=False)
        if not kept[0]:
            long[row, -1] = -1.125 * bound
        if not kept[1]:
            long[other] = long[m - 2]
        short = long[:n].copy()
        if not kept[2]:
            short[0] *= 0.875
            short[0] += 0.0625
        expected = reference.failed_requirements(short, long, bound)
        if expected != set(wanted):
            raise RuntimeError(f"drawn for {wanted}, but the reference finds {expected}")
        names_failed(student, short, long, bound, fails=wanted)


@behaviour("failed_requirements", hidden=True)
def check_failed_requirements_other_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer and float32 tables work."""
    index = np.arange(9)
    for dtype in ("int64", "uint8", "float32"):
        table = np.stack([index % 2, index // 2], axis=1).astype(dtype)
        for bound, fails in ((4.0, ()), (3.0, ("bounded",))):
            names_failed(student, table[:4], table, bound, fails=fails)
    signed = np.stack([-index, index], axis=1)
    names_failed(student, signed[:4], signed, 7.5, fails=("bounded",))


# --------------------------------------------------------------------------- binary_positions


def whole(result: Any, expected: Any) -> None:
    """Exactly these numbers, in an integer dtype."""
    equal(result, expected)
    kind = as_array(result, "the result").dtype
    if kind.kind not in "iu":
        raise CheckFailed(f"the result must hold integers, but its dtype is {kind}.")


def counted(num_positions: int, num_bits: int) -> list[list[int]]:
    """The counter from Python's own binary numerals."""
    return [[int(bit) for bit in reversed(f"{t:0{num_bits}b}")] for t in range(num_positions)]


@behaviour("binary_positions", weight=2)
def check_binary_positions_by_hand(student: Answers, reference: Answers, rng: Any) -> None:
    """Column 0 alternates, column 1 changes every second position, column 2 every fourth."""
    expected = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]]
    whole(student.binary_positions(6, 3), expected)
    positions, bits = int(rng.integers(9, 15)), int(rng.integers(5, 7))
    whole(student.binary_positions(positions, bits), counted(positions, bits))


@behaviour("binary_positions")
def check_binary_positions_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """More positions than the bits can tell apart are a ValueError; exactly as many are not."""
    for bits in (1, 3, 4):
        with good_input():
            whole(student.binary_positions(2**bits, bits), counted(2**bits, bits))
        for positions in (2**bits + 1, 2**bits + 5):
            because = f"{positions} positions in {bits} bit{'s' if bits > 1 else ''}"
            refuses(student.binary_positions, positions, bits, error="ValueError", because=because)


@behaviour("binary_positions")
def check_binary_positions_refuses_negative(student: Answers, reference: Answers, rng: Any) -> None:
    """A negative number of positions or of bits raises."""
    with good_input():
        whole(student.binary_positions(5, 4), counted(5, 4))
    refuses(student.binary_positions, -3, 4, because="a negative number of positions")
    refuses(student.binary_positions, 5, -4, because="a negative number of bits")
    refuses(student.binary_positions, 0, -4, because="a negative number of bits")
    refuses(student.binary_positions, -3, -4, because="negative numbers")


@behaviour("binary_positions", hidden=True)
def check_binary_positions_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One position, bits that nobody needs, and more positions than a byte holds work."""
    for positions, bits in ((1, 4), (2, 1), (3, 12), (300, 9), (1025, 11)):
        whole(student.binary_positions(positions, bits), counted(positions, bits))


# -------------------------------------------------------------------------------- causal_mask


def booleans(result: Any, expected: Any) -> None:
    """Exactly these, as bool."""
    equal(result, expected)
    kind = as_array(result, "the result").dtype
    if kind.kind != "b":
        raise CheckFailed(f"the result must hold booleans, but its dtype is {kind}.")


@behaviour("causal_mask", weight=2)
def check_causal_mask_by_hand(student: Answers, reference: Answers, rng: Any) -> None:
    """Token 0 sees itself alone, token 1 sees two, token 2 sees three."""
    expected = [[True, False, False], [True, True, False], [True, True, True]]
    equal(student.causal_mask(3), expected)
    n = int(rng.integers(5, 12))
    equal(student.causal_mask(n), [[j <= t for j in range(n)] for t in range(n)])


@behaviour("causal_mask")
def check_causal_mask_is_bool(student: Answers, reference: Answers, rng: Any) -> None:
    """The mask holds booleans, which NumPy takes as a choice and not as numbers."""
    n = int(rng.integers(4, 9))
    booleans(student.causal_mask(n), [[t >= j for j in range(n)] for t in range(n)])


@behaviour("causal_mask")
def check_causal_mask_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """A negative number of tokens raises."""
    with good_input():
        equal(student.causal_mask(4), np.tri(4))
    for n in (-1, -3):
        refuses(student.causal_mask, n, because="a negative number of tokens")


@behaviour("causal_mask", hidden=True)
def check_causal_mask_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """A single token and many of them work; without a token the mask is empty."""
    for n in (1, 2, 40, 300):
        booleans(student.causal_mask(n), np.tri(n, dtype=bool))
    count = as_array(student.causal_mask(0), "the mask of no token").size
    equal(count, 0, what="the number of entries of the mask of no token")


# -------------------------------------------------------------- positions_from_causal_average


def shares(positions: Any, dtype: str = "float64") -> np.ndarray:
    """Causal attention under equal scores, one row for each of these positions."""
    positions = np.asarray(positions)[:, None]
    return ((np.arange(len(positions)) <= positions) / (positions + 1)).astype(dtype)


@behaviour("positions_from_causal_average", weight=2)
def check_positions_from_causal_average_by_hand(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A row that gives token 0 the share 1/4 is at position 3, and so on."""
    weights = np.array(
        [
            [1 / 3, 1 / 3, 1 / 3, 0.0],
            [1.0, 0.0, 0.0, 0.0],
            [0.25, 0.25, 0.25, 0.25],
            [0.5, 0.5, 0.0, 0.0],
        ]
    )
    equal(student.positions_from_causal_average(weights), [2, 0, 3, 1])
    order = rng.permutation(4)
    equal(student.positions_from_causal_average(weights[order]), np.array([2, 0, 3, 1])[order])


@behaviour("positions_from_causal_average", weight=2)
def check_positions_from_causal_average_any_order(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Rows in any order keep their own positions, exactly, up to some hundreds."""
    for n in (7, 300):
        positions = rng.permutation(n)
        try:
            result = student.positions_from_causal_average(shares(positions))
        except StudentError as raised:
            if "ValueError" not in raised.types:
                raise
            raise CheckFailed(
                f"a right causal average of {n} rows was refused. 1 divided by a share is seldom "
                f"exact, but 48.999… or 49.000…1: do you take the nearest integer before you judge?"
            ) from None
        equal(result, positions)


@behaviour("positions_from_causal_average")
def check_positions_from_causal_average_integers(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Positions are integers, fit to index with."""
    positions = cycle(rng, 6)
    whole(student.positions_from_causal_average(shares(positions)), positions)


@behaviour("positions_from_causal_average", weight=2)
def check_positions_from_causal_average_float32(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A thousand positions are read rightly out of float32 weights."""
    positions = rng.permutation(1000)
    whole(student.positions_from_causal_average(shares(positions, "float32")), positions)
    equal(student.positions_from_causal_average(shares(np.arange(90), "float32")), np.arange(90))


@behaviour("positions_from_causal_average")
def check_positions_from_causal_average_leaves_input(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """The weights are still what they were."""
    positions = cycle(rng, 6)
    weights = shares(positions)
    result, after = student.positions_from_causal_average.with_inputs(weights)
    unchanged(after[0], weights, what="weights")
    with good_input():
        equal(result, positions)


@behaviour("positions_from_causal_average")
def check_positions_from_causal_average_refuses(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Weights that are not (n, n) raise."""
    positions = rng.permutation(6)
    weights = shares(positions)
    with good_input():
        equal(student.positions_from_causal_average(weights), positions)
    wide = np.concatenate([weights, np.zeros((6, 2))], axis=1)
    for bad in (
        *(weights[:, :4], weights[:3], weights[:, :1], wide),
        *(weights[:, 0], weights[None], weights[..., None]),
    ):
        because = f"weights of shape {bad.shape}"
        refuses(student.positions_from_causal_average, bad, because=because)


@behaviour("positions_from_causal_average")
def check_positions_from_causal_average_refuses_others(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A first column without the share of each position once raises: no mask, a row twice, NaN."""
    # Where a share lies between two right ones, how near is near enough is left to the answer.
    positions = cycle(rng, 6)
    weights = shares(positions)
    with good_input():
        equal(student.positions_from_causal_average(weights), positions)
    twice, beyond, unread = weights.copy(), weights.copy(), weights.copy()
    twice[positions == 4] = weights[positions == 2]
    beyond[positions == 5] = shares(np.arange(9))[8, :6]
    unread[positions == 0, 0] = np.nan
    for bad, because in (
        (np.full((6, 6), 1 / 6), "the even average of an encoder"),
        (twice, "a position that comes twice"),
        (beyond, "a position that is past the last one"),
        (np.tri(6).T / np.arange(6, 0, -1)[:, None], "weights under the opposite mask"),
        (weights[:, ::-1], "weights with the columns turned round"),
        (-weights, "negative shares"),
        (unread, "a share that is NaN"),
    ):
        refuses(student.positions_from_causal_average, bad, because=because)


@behaviour("positions_from_causal_average", hidden=True)
def check_positions_from_causal_average_from_softmax(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Weights that a softmax made, and a single row, work."""
    for n, dtype in ((1, "float64"), (2, "float32"), (120, "float32")):
        positions = rng.permutation(n)
        scores = np.where(np.arange(n) <= positions[:, None], rng.uniform(-4, 4), -np.inf)
        weights = np.exp(scores.astype(dtype))
        weights /= weights.sum(axis=1, keepdims=True)
        whole(student.positions_from_causal_average(weights), positions)


# ----------------------------------------------------------------------- multi_head_attention


def tensor(array: Any, dtype: str | None = None) -> torch.Tensor:
    import torch

    plain = torch.as_tensor(np.array(array))
    return plain if dtype is None else plain.to(getattr(torch, dtype))


def heads(
    rng: Any, *shape: int, dtype: str = "float32", size: float = 1.0
) -> tuple[torch.Tensor, ...]:
    """Random q, k and v (batch, heads, seq, head_dim)."""
    return tuple(tensor(rng.standard_normal(shape) * size, dtype) for _ in range(3))


def head_room(q: Any, k: Any, v: Any, dtype: str) -> float:
    """Tolerance as for one head; float64 input may be computed in float32."""
    coarse = "float32" if dtype == "float64" else dtype
    q, k, v = (x.abs().double() for x in (q, k, v))
    scores = float((q @ k.mT).max()) / math.sqrt(q.shape[-1])
    return tolerance(coarse, scale=(1 + scores) * max(1.0, float(v.max())))


def attended(
    student: Answers, expected: Any, q: Any, k: Any, v: Any, *mask: Any, dtype: str = "float32"
) -> None:
    """The result has these values, and q's dtype."""
    result = student.multi_head_attention(q, k, v, *mask)
    close(result, expected, head_room(q, k, v, dtype))
    same_dtype(result, str(q.dtype).removeprefix("torch."))


def choices(rng: Any, *shape: int) -> torch.Tensor:
    """A mask of which each row, and each column, has both True and False."""
    rows, n = shape[:-2], shape[-1]
    square = [some_mask(rng, n) for _ in range(math.prod(rows))]
    mask = np.array(square).reshape(*rows, n, n)
    return tensor(mask[..., : shape[-2], :])


@behaviour("multi_head_attention", weight=2)
def check_multi_head_attention_by_hand(student: Answers, reference: Answers, rng: Any) -> None:
    """Scores of ln 3 and 0, ln 7 and 0 share the values as 3/4 and 1/4, 7/8 and 1/8."""
    q, k = np.zeros((1, 3, 2, 4)), np.zeros((1, 3, 2, 4))
    place = rng.integers(4)
    q[..., place] = 2 * math.log(3), 2 * math.log(7)  # √head_dim is 2
    k[:, :, 0, place] = 1.0
    v = rng.standard_normal((1, 3, 2, 4))
    expected = np.array([[0.75, 0.25], [0.875, 0.125]]) @ v
    attended(student, expected, *(tensor(x, "float32") for x in (q, k, v)))


@behaviour("multi_head_attention", weight=2)
def check_multi_head_attention_as_torch_does(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Each head of each sequence attends by itself, as torch's own attention does."""
    from torch.nn.functional import scaled_dot_product_attention

    for shape in ((2, 3, 5, 8), (3, 4, 2, 6)):
        q, k, v = heads(rng, *shape)
        expected = scaled_dot_product_attention(q.double(), k.double(), v.double())
        attended(student, expected, q, k, v)


@behaviour("multi_head_attention", weight=2)
def check_multi_head_attention_mask(student: Answers, reference: Answers, rng: Any) -> None:
    """A mask for all, for each sequence, for each head, or of padded keys: True may attend."""
    q, k, v = heads(rng, 2, 3, 5, 8)
    padded = choices(rng, 2, 1, 1, 5)
    for mask in (
        choices(rng, 5, 5),
        choices(rng, 2, 3, 5, 5),
        choices(rng, 2, 1, 5, 5),
        choices(rng, 1, 3, 5, 5),
        padded,
        tensor(triangle(5)),
    ):
        expected = reference.multi_head_attention(q, k, v, mask)
        attended(student, expected, q, k, v, mask)


@behaviour("multi_head_attention")
def check_multi_head_attention_half(student: Answers, reference: Answers, rng: Any) -> None:
    """bfloat16 in gives bfloat16 out, with a mask and without."""
    q, k, v = heads(rng, 2, 3, 5, 8, dtype="bfloat16", size=0.4)
    for mask in ((), (choices(rng, 5, 5),)):
        expected = reference.multi_head_attention(q, k, v, *mask)
        attended(student, expected, q, k, v, *mask, dtype="bfloat16")


@behaviour("multi_head_attention")
def check_multi_head_attention_leaves_inputs(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """q, k, v and the mask are still what they were: other code may hold them."""
    q, k, v = heads(rng, 2, 3, 5, 8)
    inputs = (q, k, v, choices(rng, 5, 5))
    expected = reference.multi_head_attention(*inputs)
    result, after = student.multi_head_attention.with_inputs(*inputs)
    for name, now, before in zip(("q", "k", "v", "mask"), after, inputs, strict=True):
        unchanged(now, before, what=name)
    with good_input():
        close(result, expected, head_room(q, k, v, "float32"))


def exact_heads(rng: Any, tops: Any, signs: Any, dtype: str) -> tuple[torch.Tensor, ...]:
    """Two heads of head_dim 4 with scores tops[i]·signs[j] + (−½, 0 or ½), exact in float16."""
    given: list[list[np.ndarray]] = [[], [], []]
    for _ in range(2):
        q, k, values = exact_scores(rng, tops, signs)
        for all_heads, one in zip(given, (q, k, np.tile(values, 2)), strict=True):
            all_heads.append(one)
    return tuple(tensor(np.array(each)[None], dtype) for each in given)


@behaviour("multi_head_attention")
def check_multi_head_attention_gradients(student: Answers, reference: Answers, rng: Any) -> None:
    """Gradients reach q, k and v, so that what stands before this can be trained."""
    q, k, v = heads(rng, 2, 3, 5, 8)
    (weights,) = heads(rng, 2, 3, 5, 8)[:1]
    mine, right = student.multi_head_attention, reference.multi_head_attention
    allowed = tolerance("float32", scale=20.0)
    trains(mine, right, q, k, v, names=("q", "k", "v"), weights=weights, atol=allowed)


@behaviour("multi_head_attention", weight=2)
def check_multi_head_attention_large_scores(student: Answers, reference: Answers, rng: Any) -> None:
    """Large scores of either sign, up to ±10 000, leave the result finite."""
    for tops in ([88.0, -7.0], [-10_000.0, 10_000.0]):  # float32 has exp(88) as its last
        q, k, v = exact_heads(rng, np.resize(tops, 5), [1] * 5, "float32")
        expected = reference.multi_head_attention(q, k, v)
        attended(student, expected, q, k, v)


@behaviour("multi_head_attention", weight=2)
def check_multi_head_attention_autocast(student: Answers, reference: Answers, rng: Any) -> None:
    """Under autocast the result keeps the dtype of q."""
    for dtype in ("float32", "bfloat16"):
        q, k, v = heads(rng, 2, 3, 5, 8, dtype=dtype, size=0.4)
        for mask in ((), (choices(rng, 5, 5),)):
            expected = reference.multi_head_attention(q, k, v, *mask)
            with student.autocast("bfloat16"):
                result = student.multi_head_attention(q, k, v, *mask)
            # Twice the room: a mistake of another kind is never told by this check on some inputs.
            close(result, expected, 2 * head_room(q, k, v, "bfloat16"))
            same_dtype(result, str(q.dtype).removeprefix("torch."))


@behaviour("multi_head_attention", weight=2)
def check_multi_head_attention_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """Shapes that do not match raise, also where torch would broadcast them."""
    q, k, v = heads(rng, 2, 3, 5, 8)
    mask = choices(rng, 2, 3, 5, 5)
    expected = reference.multi_head_attention(q, k, v, mask)
    with good_input():
        attended(student, expected, q, k, v, mask)
    attend = student.multi_head_attention
    refuses(attend, q, k[:1], v, because="keys of one sequence for queries of two")
    refuses(attend, q, k, v[:1], because="values of one sequence for queries of two")
    refuses(attend, q[:1], k, v, because="queries of one sequence for keys of two")
    for count in (1, 2):
        refuses(attend, q, k[:, :count], v, because="fewer heads of keys")
        refuses(attend, q, k, v[:, :count], because="fewer heads of values")
        refuses(attend, q[:, :count], k, v, because="fewer heads of queries")
    for width in (1, 6):
        refuses(attend, q, k[..., :width], v, because="keys of another width")
        refuses(attend, q[..., :width], k, v, because="queries of another width")
        refuses(attend, q, k, v[..., :width], because="values of another width")
    for length in (1, 4):
        refuses(attend, q, k[:, :, :length], v, because="fewer keys than values")
        refuses(attend, q, k, v[:, :, :length], because="fewer values than keys")
    because = "a mask that does not broadcast to (batch, heads, seq, seq)"
    for shape in ((4, 4), (5, 4), (3, 1, 5, 5), (2, 2, 5, 5), (2, 5, 5), (2, 5)):
        refuses(attend, q, k, v, tensor(np.ones(shape, dtype=bool)), because=because)
    because = "a mask that is wider than q"
    one, single = (x[:1, :1] for x in (q, k, v)), (x[:1, :1, :1] for x in (q, k, v))
    cases: tuple[tuple[Any, Any], ...] = (
        ((q, k, v), ((1, 2, 3, 5, 5), (2, 2, 3, 5, 5))),
        (tuple(one), ((2, 1, 5, 5), (3, 5, 5), (2, 3, 1, 5))),
        (tuple(single), ((5, 1), (2, 1, 1, 1), (3, 1, 1))),
    )
    for few, shapes in cases:
        for shape in shapes:
            refuses(attend, *few, tensor(np.ones(shape, dtype=bool)), because=because)


@behaviour("multi_head_attention", weight=2)
def check_multi_head_attention_large_masked_scores(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A large score that is masked gets nothing, in float32 and in both half precisions."""
    signs = [-1, 1, -1, 1, -1]
    mask = tensor(np.broadcast_to(np.array(signs) < 0, (5, 5)))
    from torch.nn.functional import scaled_dot_product_attention

    for top, dtype in (
        (100.0, "float32"),  # exp(−100) is nearly the last one above zero
        (10_000.0, "float32"),
        (8192.0, "float16"),
        (8192.0, "bfloat16"),
    ):
        q, k, v = exact_heads(rng, [top] * 5, signs, dtype)
        if dtype != "float32":  # no small differences beside a large number here
            q = q.clone()
            q[..., 1:] = 0
        wide = q.double(), k.double(), v.double()
        expected = scaled_dot_product_attention(*wide, attn_mask=mask)
        result = student.multi_head_attention(q, k, v, mask)
        coarse = 16 * float(v.abs().max()) * (2.0**-7 if dtype == "bfloat16" else 2.0**-10)
        close(result, expected, coarse if dtype != "float32" else head_room(q, k, v, dtype))
        same_dtype(result, dtype)


@behaviour("multi_head_attention", hidden=True)
def check_multi_head_attention_other_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """float16 and float64 keep their dtypes, with a mask too."""
    for dtype in ("float16", "float64"):
        q, k, v = heads(rng, 2, 3, 5, 8, dtype=dtype, size=0.4)
        for mask in ((), (choices(rng, 2, 1, 5, 5),)):
            expected = reference.multi_head_attention(q, k, v, *mask)
            attended(student, expected, q, k, v, *mask, dtype=dtype)


@behaviour("multi_head_attention", hidden=True)
def check_multi_head_attention_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One token, one head, an odd width and axes of equal length work, with masks of each kind."""
    for shape in ((1, 1, 1, 4), (3, 1, 6, 5), (4, 4, 4, 4), (3, 3, 3, 2), (1, 2, 7, 1)):
        q, k, v = heads(rng, *shape)
        batch, count, seq, _ = shape
        some: list[tuple[Any, ...]] = [(), (tensor(np.ones((1, 1), dtype=bool)),)]
        if seq > 1:
            some += [(choices(rng, *lead, seq, seq),) for lead in ((), (count,), (batch, 1))]
            some += [(choices(rng, batch, count, 1, seq),), (choices(rng, 1, seq),)]
        for mask in some:
            expected = reference.multi_head_attention(q, k, v, *mask)
            attended(student, expected, q, k, v, *mask)

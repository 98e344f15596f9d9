"""Checks of the chapter on positions as a bias: ALiBi, T5's buckets and Shaw's vectors.

Queries and keys are never equal in number, positions are no range, and slopes no powers of two
unless a published number is asked for. The hand-made cases make all scores equal, so that a weight
is the bias alone and can be written down.
"""

from __future__ import annotations

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
    shaped,
    tolerance,
    trains,
    unchanged,
)
from ..exercise import Exercise, behaviour

if TYPE_CHECKING:
    import torch

EXERCISES = (
    Exercise("alibi", "alibi_slopes", 2),
    Exercise("alibi", "alibi_bias", 2),
    Exercise("alibi", "alibi_attention", 3),
    Exercise("alibi", "t5_bucket", 3),
    Exercise("alibi", "shaw_scores", 3),
    Exercise("alibi", "fixed_bias", 2),
    Exercise("alibi", "alibi_sdpa", 3, "with_torch"),
)

PUBLISHED = 1e-6  # the libraries asked compute in float32
# What two libraries and the authors' own code give 20 heads.
TWENTY_SLOPES = [
    *(0.7071067811865476, 0.5, 0.35355339059327384, 0.25, 0.17677669529663692, 0.125),
    *(0.08838834764831849, 0.0625, 0.044194173824159244, 0.03125, 0.022097086912079626),
    *(0.015625, 0.011048543456039816, 0.0078125, 0.005524271728019908, 0.00390625),
    *(0.8408964152537145, 0.5946035575013604, 0.42044820762685714, 0.2973017787506802),
]
# Two heads and three neighbours, by x-transformers 2.31.10.
THREE_BY_THREE = [
    [[0.0, -0.0625, -0.125], [-0.0625, 0.0, -0.0625], [-0.125, -0.0625, 0.0]],
    [
        [0.0, -0.00390625, -0.0078125],
        [-0.00390625, 0.0, -0.00390625],
        [-0.0078125, -0.00390625, 0.0],
    ],
]
# Buckets of key − query by transformers 5.24.0 and x-transformers 2.31.10: 32 buckets, up to 128.
RELATIVE = [
    *(-200, -128, -127, -91, -90, -64, -63, -46, -45, -32, -31, -23, -22, -16, -15, -12, -11, -9),
    *(-8, -7, -1, 0, 1, 7, 8, 9, 11, 12, 15, 16, 22, 23, 31, 32, 45, 46, 63, 64, 90, 91),
    *(127, 128, 200),
]
BOTH_WAYS = [
    *(15, 15, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8, 8, 8, 7, 1, 0, 17, 23, 24),
    *(24, 24, 25, 25, 26, 26, 27, 27, 28, 28, 29, 29, 30, 30, 31, 31, 31, 31),
]
ONE_WAY = [
    *(31, 31, 31, 29, 29, 26, 26, 24, 23, 21, 21, 18, 18, 16, 15, 12, 11, 9, 8, 7, 1, 0),
    *[0] * 21,
]


def room(*values: Any, dtype: str = "float64", scores: float = 0.0) -> float:
    """Tolerance for results the size of these values, averaged by weights from such scores.

    A score held in `dtype` is off by a few units in its last place, and the weight that exp makes
    of it by that much of itself.
    """
    largest = max(1.0, *(float(np.abs(np.asarray(v, dtype=float)).max()) for v in (1.0, *values)))
    return tolerance(dtype, scale=largest, angle=scores, angle_dtype=dtype)


def scattered(rng: np.random.Generator, count: int, gap: int = 30) -> np.ndarray:
    """Integer positions that are no range: out of order, none near zero."""
    places = 11 + np.cumsum(rng.integers(2, gap, count))[::-1]
    places[-2:] = places[-2:][::-1].copy()
    return places


def beside(k_positions: np.ndarray) -> np.ndarray:
    """Three query positions, out of order: one is a key's own, each sees at least two keys."""
    order = np.sort(k_positions)
    return np.array([order[2], order[-1] + 3, order[1] + 1])


def bias_room(largest: float = 200.0) -> float:
    """Tolerance for biases up to this size that were computed in float32: only the check of
    float64 is about more."""
    return room(largest, dtype="float32")


def slopes_of(rng: np.random.Generator, heads: int) -> np.ndarray:
    return rng.uniform(0.05, 0.5, heads)


# ------------------------------------------------------------------------------- alibi_slopes


@behaviour("alibi_slopes", weight=2)
def check_alibi_slopes_eight_heads(student: Answers, reference: Answers, rng: Any) -> None:
    """Eight heads have the slopes 1/2, 1/4, 1/8, … 1/256, in this order."""
    close(student.alibi_slopes(8), [1 / 2**h for h in range(1, 9)], PUBLISHED)


@behaviour("alibi_slopes")
def check_alibi_slopes_powers_of_two(student: Answers, reference: Answers, rng: Any) -> None:
    """With n heads, a power of two, the first slope is 2^(−8/n), and so is the ratio."""
    close(student.alibi_slopes(2), [1 / 16, 1 / 256], PUBLISHED)
    close(student.alibi_slopes(1), [1 / 256], PUBLISHED)
    sixteen = [0.5 ** (h / 2) for h in range(1, 17)]
    close(student.alibi_slopes(16), sixteen, PUBLISHED)


@behaviour("alibi_slopes", weight=2)
def check_alibi_slopes_other_counts(student: Answers, reference: Answers, rng: Any) -> None:
    """Three heads have those of two, then the first of four; twenty have the published ones."""
    three, twenty = student.alibi_slopes(3), student.alibi_slopes(20)  # three alone is ambiguous
    close(three, [1 / 16, 1 / 256, 1 / 4], PUBLISHED)
    close(twenty, TWENTY_SLOPES, PUBLISHED)


@behaviour("alibi_slopes")
def check_alibi_slopes_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """Slopes are float64, exact to its last digits."""
    for heads in (12, 20, 16):
        expected = reference.alibi_slopes(heads)
        slopes = student.alibi_slopes(heads)
        close(slopes, expected, room())
        if hasattr(slopes, "dtype"):  # Python's own floats are float64
            same_dtype(slopes, "float64")


@behaviour("alibi_slopes")
def check_alibi_slopes_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """No head, fewer than none, or a fraction of one raises."""
    with good_input():
        agrees(student, reference, "alibi_slopes", 6, atol=PUBLISHED)
    for heads in (0, -1, -8):
        refuses(student.alibi_slopes, heads, because="a number of heads below 1")
    for fraction in (2.5, 0.5, 6.25):
        refuses(student.alibi_slopes, fraction, because="a number of heads that is not whole")


@behaviour("alibi_slopes", hidden=True)
def check_alibi_slopes_any_count(student: Answers, reference: Answers, rng: Any) -> None:
    """Any number of heads works: 4, 5, 6, 7, 12, 32, 71 and 112 too."""
    for heads in (6, 12, 5, 7, 4, 32, 71, 112):
        agrees(student, reference, "alibi_slopes", heads, atol=PUBLISHED)


# --------------------------------------------------------------------------------- alibi_bias


@behaviour("alibi_bias", weight=2)
def check_alibi_bias_worked_penalties(student: Answers, reference: Answers, rng: Any) -> None:
    """With slope 0.5, a key 8 tokens before the query gets −4, one 2 before it −1; 0.25 half."""
    penalties = np.array([0.0, 0.5, 1.0, 2.0, 4.0])
    result = student.alibi_bias(
        np.array([29]), np.array([29, 28, 27, 25, 21]), np.array([0.5, 0.25])
    )
    close(result, [[-penalties], [-penalties / 2]], room(4.0))


@behaviour("alibi_bias", weight=2)
def check_alibi_bias_both_sides(student: Answers, reference: Answers, rng: Any) -> None:
    """Keys after the query cost as much as keys before it: the published table, three by three."""
    positions, slopes = np.array([7, 8, 9]), np.array([1 / 16, 1 / 256])
    close(student.alibi_bias(positions, positions, slopes), THREE_BY_THREE, PUBLISHED)


@behaviour("alibi_bias", weight=2)
def check_alibi_bias_any_positions(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions come in any order, as many queries and keys as there are: (heads, n_q, n_k)."""
    for heads, n_q, n_k in ((2, 3, 5), (3, 8, 2), (4, 4, 4)):
        slopes = slopes_of(rng, heads)
        for _ in range(2):  # as many as before, and elsewhere
            inputs = (scattered(rng, n_q), scattered(rng, n_k) + 4, slopes)
            agrees(student, reference, "alibi_bias", *inputs, atol=bias_room())


@behaviour("alibi_bias")
def check_alibi_bias_fractions(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions may be fractions or negative, in float64 and in float32."""
    q_positions = np.array([2.5, -7.75, 31.0])
    k_positions = np.array([0.125, -3.5, 18.25, 0.0, 2.625])
    slopes = slopes_of(rng, 2)
    agrees(student, reference, "alibi_bias", q_positions, k_positions, slopes, atol=bias_room(40.0))
    inputs = (q_positions.astype("f4"), k_positions.astype("f4"), slopes.astype("f4"))
    agrees(student, reference, "alibi_bias", *inputs, atol=bias_room(40.0))


@behaviour("alibi_bias")
def check_alibi_bias_unsigned(student: Answers, reference: Answers, rng: Any) -> None:
    """Unsigned positions do not wrap round when a later one is taken from an earlier one."""
    for dtype in ("uint8", "uint32", "uint64"):
        q_positions, k_positions = scattered(rng, 3).astype(dtype), scattered(rng, 5).astype(dtype)
        inputs = (q_positions, k_positions, slopes_of(rng, 2))
        agrees(student, reference, "alibi_bias", *inputs, atol=bias_room())


@behaviour("alibi_bias")
def check_alibi_bias_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """The bias is float64 and exact, of far positions and whatever the dtypes of the arguments."""
    for dtype in ("int64", "int32", "float64"):
        far = 70_000_000 + scattered(rng, 5)
        inputs = ((far[::2] - 5).astype(dtype), far.astype(dtype), slopes_of(rng, 3))
        agrees(student, reference, "alibi_bias", *inputs, atol=room(200.0), dtype="float64")
    for dtype, slope_dtype in (("int64", "float32"), ("float32", "float32"), ("int64", "int64")):
        near, slopes = scattered(rng, 5).astype(dtype), (4 * slopes_of(rng, 3) + 1)
        inputs = (near[::2] - 5, near, slopes.astype(slope_dtype))
        agrees(student, reference, "alibi_bias", *inputs, atol=room(900.0), dtype="float64")


@behaviour("alibi_bias")
def check_alibi_bias_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The positions and slopes that went in are still what they were."""
    inputs = (scattered(rng, 3) + 0.5, scattered(rng, 5) + 0.25, slopes_of(rng, 2))
    names = ("q_positions", "k_positions", "slopes")
    leaves_inputs(student, reference, "alibi_bias", *inputs, names=names, atol=bias_room())


@behaviour("alibi_bias")
def check_alibi_bias_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions and slopes that are not 1-D raise, also where they would broadcast; so do none."""
    q_positions, k_positions, slopes = scattered(rng, 3), scattered(rng, 3), slopes_of(rng, 2)
    with good_input():
        agrees(student, reference, "alibi_bias", q_positions, k_positions, slopes, atol=bias_room())
    bad_positions(student.alibi_bias, rng, slopes)
    for bad in (0.5, np.array(0.5), rng.uniform(0.1, 0.5, (2, 3))):
        refuses(student.alibi_bias, q_positions, k_positions, bad, because="slopes are not 1-D")
    refuses(student.alibi_bias, q_positions, k_positions, slopes[:0], because="there is no head")


@behaviour("alibi_bias", hidden=True)
def check_alibi_bias_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """A single query, key or head, many of them, and as many of each work too."""
    for heads, n_q, n_k in ((1, 1, 6), (5, 4, 2), (1, 7, 3), (3, 3, 3), (12, 2, 40)):
        inputs = (scattered(rng, n_q) + 900, scattered(rng, n_k) + 870, slopes_of(rng, heads))
        agrees(student, reference, "alibi_bias", *inputs, atol=bias_room(2000.0))


def bad_positions(answer: Any, rng: np.random.Generator, *after: Any) -> None:
    """`answer(q_positions, k_positions, *after)` refuses positions that are not 1-D."""
    because = "positions are not 1-D"
    good = scattered(rng, 3)
    for shape in ((), (3, 1), (1, 3), (2, 3)):
        bad = rng.integers(3, 90, shape)
        for inputs in ((bad, good), (good, bad), (bad, bad)):
            refuses(answer, *inputs, *after, because=because)


# ---------------------------------------------------------------------------- alibi_attention


def attention_inputs(
    rng: np.random.Generator, dtype: str = "float64", heads: int = 2
) -> tuple[np.ndarray, ...]:
    """q, k, v, slopes, q_positions, k_positions: 3 queries, 5 keys, width 8."""
    q, k, v = (rng.standard_normal((heads, n, 8)).astype(dtype) for n in (3, 5, 5))
    k_positions = scattered(rng, 5, gap=5)
    return q, k, v, slopes_of(rng, heads), beside(k_positions), k_positions


@behaviour("alibi_attention", weight=2)
def check_alibi_attention_worked_weights(student: Answers, reference: Answers, rng: Any) -> None:
    """Slope ln 2 and equal scores: weights 4/7, 2/7, 1/7 at distances 0, 1, 2; later keys none."""
    q, k, v = np.zeros((2, 1, 3)), rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 4, 3))
    slopes, k_positions = np.log([2.0, 3.0]), np.array([26, 29, 27, 25])
    weights = [[[2 / 7, 0, 4 / 7, 1 / 7]], [[3 / 13, 0, 9 / 13, 1 / 13]]]
    result = student.alibi_attention(q, k, v, slopes, np.array([27]), k_positions)
    close(result, weights @ v, room(v, scores=4.0))


@behaviour("alibi_attention", weight=2)
def check_alibi_attention_scores(student: Answers, reference: Answers, rng: Any) -> None:
    """What the bias is added to is q·k/√d, for every head with its own slope."""
    for heads in (2, 3):
        inputs = attention_inputs(rng, heads=heads)
        agrees(student, reference, "alibi_attention", *inputs, atol=room(inputs[2], scores=20.0))


@behaviour("alibi_attention", weight=2)
def check_alibi_attention_from_a_cache(student: Answers, reference: Answers, rng: Any) -> None:
    """A later token attends from a cache as in the full pass, in whatever order that is."""
    q, k, v = (rng.standard_normal((2, 6, 8)) for _ in range(3))
    slopes, positions = slopes_of(rng, 2), np.array([4, 5, 7, 8, 9, 12])
    full = reference.alibi_attention(q, k, v, slopes, positions, positions)
    order = np.array([3, 0, 5, 1, 4, 2])
    cached = (k[:, order], v[:, order], slopes)
    last = student.alibi_attention(q[:, 4:], *cached, positions[4:], positions[order])
    close(last, full[:, 4:], room(v, scores=20.0))


@behaviour("alibi_attention")
def check_alibi_attention_large_scores(student: Answers, reference: Answers, rng: Any) -> None:
    """Scores of any size, and keys that are all far away, give finite weights to what is seen."""
    q, k, v, slopes, q_positions, k_positions = attention_inputs(rng)
    for size in (1600, 10**12):  # of scores of 10¹² one stands alone: no rounding comes near it
        sized = np.array([[1.0], [size], [size]]) * q  # and the first query's stay small
        inputs = (sized, k, v, slopes, q_positions, k_positions)
        agrees(student, reference, "alibi_attention", *inputs, atol=room(v, scores=20_000.0))
    for away in (20_000, 40_000_000_000):
        later = k_positions + away * (k_positions == k_positions.max())  # one key stays unseen
        inputs = (q, k, v, slopes, q_positions + away - 9, later + 9)
        agrees(student, reference, "alibi_attention", *inputs, atol=room(v, scores=float(away)))


@behaviour("alibi_attention")
def check_alibi_attention_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has the floating dtype of q, k and v, whatever the dtype of the slopes."""
    for dtype in ("float32", "float16"):
        inputs = attention_inputs(rng, dtype)
        allowed = room(inputs[2], dtype=dtype, scores=20.0)
        agrees(student, reference, "alibi_attention", *inputs, atol=allowed, dtype=dtype)


@behaviour("alibi_attention")
def check_alibi_attention_small_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """float16 products may pass 65504; far positions are subtracted before they are float32."""
    q, k, v, slopes, q_positions, k_positions = attention_inputs(rng, "float32")
    far_keys = (q_positions + [0, 20_000, 20_000], k_positions)
    far_from_zero = (q_positions + 40_000_001, k_positions + 40_000_001)
    for where, scores in ((far_keys, 10_100.0), (far_from_zero, 20.0)):
        allowed = room(v, dtype="float32", scores=scores)
        agrees(student, reference, "alibi_attention", q, k, v, slopes, *where, atol=allowed)
    # q·k is up to 96000, where one key alone has all the weight: scores lie thousands apart.
    nearest = np.array([120.0, 105.0, 90.0, 75.0, 60.0])[np.argsort(np.argsort(k_positions))]
    q, k = np.zeros((2, 3, 8)), np.tile(nearest[None, :, None], (2, 1, 8))
    q[:, 0] = 100.0  # the other queries find all keys alike
    q, k, v = (x.astype("float16") for x in (q, k, v))
    allowed = room(v, dtype="float16", scores=20.0)
    inputs = (q, k, v, slopes, q_positions, k_positions)
    agrees(student, reference, "alibi_attention", *inputs, atol=allowed)


@behaviour("alibi_attention")
def check_alibi_attention_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer queries, keys and values give float64 results with their fractions kept."""
    _, _, _, *others = attention_inputs(rng)
    q, k, v = (rng.integers(-4, 5, (2, n, 8)) for n in (3, 5, 5))
    allowed = room(v, scores=80.0)
    inputs = (q, k, v, *others)
    agrees(student, reference, "alibi_attention", *inputs, atol=allowed, dtype="float64")


@behaviour("alibi_attention")
def check_alibi_attention_fractions(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions may be fractions, and decide exactly what is seen."""
    q, k, v, slopes, *_ = attention_inputs(rng)
    where = (np.array([2.5, -0.25, 9.75]), np.array([2.625, -0.5, 2.5, -0.25, 9.5]))
    agrees(student, reference, "alibi_attention", q, k, v, slopes, *where, atol=room(v, scores=20))


@behaviour("alibi_attention")
def check_alibi_attention_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """All arrays that went in are still what they were."""
    inputs = attention_inputs(rng)
    names = ("q", "k", "v", "slopes", "q_positions", "k_positions")
    allowed = room(inputs[2], scores=20.0)
    leaves_inputs(student, reference, "alibi_attention", *inputs, names=names, atol=allowed)


@behaviour("alibi_attention")
def check_alibi_attention_blind_query(student: Answers, reference: Answers, rng: Any) -> None:
    """A query before all keys, which could attend to nothing, is a ValueError."""
    inputs = attention_inputs(rng)
    *start, q_positions, k_positions = inputs
    with good_input():
        agrees(student, reference, "alibi_attention", *inputs, atol=room(inputs[2], scores=20.0))
    for which in (0, 1, 2):
        blind = q_positions.copy()
        blind[which] = k_positions.min() - 1
        because = "a query that sees no key"
        refuses(
            student.alibi_attention, *start, blind, k_positions, error="ValueError", because=because
        )


@behaviour("alibi_attention")
def check_alibi_attention_refuses_shapes(student: Answers, reference: Answers, rng: Any) -> None:
    """Shapes that do not match raise, also where NumPy would broadcast them."""
    inputs = attention_inputs(rng)
    with good_input():
        agrees(student, reference, "alibi_attention", *inputs, atol=room(inputs[2], scores=20.0))

    def refuse(at: int, bad: Any, because: str) -> None:
        changed = [*inputs[:at], bad, *inputs[at + 1 :]]
        refuses(student.alibi_attention, *changed, because=because)

    q, k, v, slopes, q_positions, k_positions = inputs
    for heads in (1, 3):
        refuse(0, rng.standard_normal((heads, 3, 8)), "queries with another number of heads")
        refuse(1, rng.standard_normal((heads, 5, 8)), "keys with another number of heads")
        refuse(2, rng.standard_normal((heads, 5, 8)), "values with another number of heads")
        refuse(3, slopes_of(rng, heads), "another number of slopes than of heads")
    one_head = (k[:1], v[:1], slopes, q_positions, k_positions)
    refuses(student.alibi_attention, q, *one_head, because="keys of one head, queries of two")
    refuse(3, slopes_of(rng, 6).reshape(2, 3), "slopes that are not 1-D")
    refuse(0, q[:, :1], "one query for three positions")
    refuse(0, q[..., :1], "queries narrower than the keys")
    refuse(1, k[..., :1], "keys narrower than the queries")
    refuse(1, k[:, :1], "one key for five values")
    refuse(2, v[:, :1], "one value for five keys")
    because = "positions that do not count the queries, or the keys"
    highest = q_positions.max()
    for shape in ((), (1,), (2,), (4,), (5,), (3, 1), (1, 3)):
        refuse(4, np.full(shape, highest), because)
    for shape in ((), (1,), (3,), (4,), (6,), (5, 1), (1, 5)):
        refuse(5, np.full(shape, k_positions.min()), because)


@behaviour("alibi_attention", hidden=True)
def check_alibi_attention_unsigned(student: Answers, reference: Answers, rng: Any) -> None:
    """Unsigned positions do not wrap round."""
    for dtype in ("uint8", "uint32"):
        *inputs, q_positions, k_positions = attention_inputs(rng)
        inputs += [q_positions.astype(dtype), k_positions.astype(dtype)]
        agrees(student, reference, "alibi_attention", *inputs, atol=room(inputs[2], scores=20.0))


@behaviour("alibi_attention", hidden=True)
def check_alibi_attention_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One head, a single query, a single key, narrow and wide vectors all work."""
    for heads, n_q, n_k, d in (
        (1, 3, 5, 4),
        (3, 1, 7, 2),
        (2, 4, 1, 16),
        (3, 3, 3, 3),
        (5, 2, 40, 1),
    ):
        q, k, v = (rng.standard_normal((heads, n, d)) for n in (n_q, n_k, n_k))
        k_positions = scattered(rng, n_k, gap=4)
        q_positions = k_positions.min() + rng.permutation(3 * n_q)[:n_q]
        inputs = (q, k, v, slopes_of(rng, heads), q_positions, k_positions)
        agrees(student, reference, "alibi_attention", *inputs, atol=room(v, scores=100.0))


# ---------------------------------------------------------------------------------- t5_bucket


def whole(value: Any) -> None:
    """The result is of an integer dtype, or a plain integer."""
    if as_array(value, "the result").dtype.kind not in "iu":
        raise CheckFailed("the result must hold integers: a bucket's number picks a row.")


def between_edges(n: int, max_distance: int, rng: np.random.Generator, count: int) -> np.ndarray:
    """Distances from 1 to beyond max_distance, in no order, none so near to the edge of a bucket
    that a logarithm in float32 could put it on the other side."""
    exact = n // 2
    distance = np.arange(1, 2 * max_distance)
    steps = (n - exact) * np.log(np.maximum(distance, exact) / exact) / np.log(max_distance / exact)
    safe = np.abs(steps - np.rint(steps)) > 1e-3
    return rng.permuted(distance[safe | (distance <= exact)])[:count]


@behaviour("t5_bucket", weight=2)
def check_t5_bucket_both_directions(student: Answers, reference: Answers, rng: Any) -> None:
    """Bidirectional, key − query from −200 to 200 falls into the published buckets."""
    equal(student.t5_bucket(np.array(RELATIVE)), BOTH_WAYS)


@behaviour("t5_bucket", weight=2)
def check_t5_bucket_one_direction(student: Answers, reference: Answers, rng: Any) -> None:
    """With bidirectional=False too, and all later keys share bucket 0 with the query itself."""
    equal(student.t5_bucket(np.array(RELATIVE), bidirectional=False), ONE_WAY)


@behaviour("t5_bucket", weight=2)
def check_t5_bucket_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """num_buckets and max_distance are used: other numbers give other buckets."""
    for both, buckets, far in ((True, 24, 100), (False, 24, 100), (True, 64, 300), (False, 8, 50)):
        distances = between_edges(buckets // 2 if both else buckets, far, rng, 60)
        relative = distances * rng.choice([-1, 1], distances.shape)
        agrees(student, reference, "t5_bucket", relative, both, buckets, far, atol=0.0)


@behaviour("t5_bucket")
def check_t5_bucket_shape(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has the shape of the input, a single number's too, and holds integers."""
    for shape in ((3, 5), (2, 3, 4), (7,), ()):
        relative = np.asarray(rng.integers(-60, -20, shape))
        for both in (True, False):
            expected = reference.t5_bucket(relative, both)
            result = student.t5_bucket(relative, both)
            equal(result, expected)
            whole(result)


@behaviour("t5_bucket")
def check_t5_bucket_single_integer(student: Answers, reference: Answers, rng: Any) -> None:
    """A plain Python integer gives one bucket."""
    for relative in (-21, 0, 5, 70):
        for both in (True, False):
            agrees(student, reference, "t5_bucket", relative, both, atol=0.0)


@behaviour("t5_bucket")
def check_t5_bucket_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The relative positions that went in are still what they were."""
    for both in (True, False):
        relative = rng.permuted(np.array(RELATIVE[1:-1]))
        inputs, names = (relative, both), ("relative_position",)
        leaves_inputs(student, reference, "t5_bucket", *inputs, names=names, atol=0.0)


@behaviour("t5_bucket")
def check_t5_bucket_refuses_no_room(student: Answers, reference: Answers, rng: Any) -> None:
    """A max_distance that leaves no room beyond the exact buckets is a ValueError."""
    relative = np.array([-40, -9, -8, -3, 0, 8, 41])
    with good_input():
        for both, buckets, far in ((True, 32, 12), (False, 32, 20)):
            agrees(student, reference, "t5_bucket", relative, both, buckets, far, atol=0.0)
    for both, buckets, far in (
        *((True, 32, 8), (True, 32, 5), (True, 12, 3), (True, 32, 0)),
        *((False, 32, 16), (False, 32, 9), (False, 12, 6), (False, 8, 1)),
    ):
        because = "no room beyond the exact buckets"
        inputs = (relative, both, buckets, far)
        refuses(student.t5_bucket, *inputs, error="ValueError", because=because)


@behaviour("t5_bucket", hidden=True)
def check_t5_bucket_huge(student: Answers, reference: Answers, rng: Any) -> None:
    """Distances of billions are in the last bucket; no integer dtype is too narrow or unsigned."""
    for dtype, far in (("int64", 2**40), ("int64", 3 * 10**9), ("int32", 10**9), ("int16", 30_000)):
        relative = np.array([-far, far, -129, 129, 4], dtype=dtype)
        equal(student.t5_bucket(relative), [15, 31, 15, 31, 20])
        equal(student.t5_bucket(relative, False), [31, 0, 31, 0, 0])
    relative = np.array([-128, 127, -3, 0], dtype="int8")  # int8 has no 128
    equal(student.t5_bucket(relative), [15, 31, 3, 0])
    equal(student.t5_bucket(relative, False), [31, 0, 3, 0])
    relative = np.array([200, 3, 0], dtype="uint8")  # and uint8 no negative number
    equal(student.t5_bucket(relative), [31, 19, 0])
    equal(student.t5_bucket(relative, False), [0, 0, 0])


@behaviour("t5_bucket", hidden=True)
def check_t5_bucket_few_buckets(student: Answers, reference: Answers, rng: Any) -> None:
    """Few buckets, an odd number for one direction, or max_distance just beyond exact ones work."""
    relative = np.array([-40, -7, -3, -1, 0, 1, 2, 6, 41])
    even = ((True, 4, 20), (False, 4, 20), (False, 2, 9), (True, 16, 5))
    for both, buckets, far in (*even, (False, 5, 20), (False, 7, 30), (True, 10, 20)):
        agrees(student, reference, "t5_bucket", relative, both, buckets, far, atol=0.0)


# -------------------------------------------------------------------------------- shaw_scores


def shaw_inputs(rng: np.random.Generator, dtype: str = "float64", K: int = 3) -> tuple[Any, ...]:
    """q, k, relative_keys, q_positions, k_positions: 3 queries, 5 keys, width 8."""
    q, k, a = (rng.standard_normal((n, 8)).astype(dtype) for n in (3, 5, 2 * K + 1))
    k_positions = np.array([14, 11, 19, 12, 16]) + rng.integers(0, 9)
    return q, k, a, k_positions[[4, 1, 0]] + [0, 1, -1], k_positions


@behaviour("shaw_scores", weight=2)
def check_shaw_scores_rows(student: Answers, reference: Answers, rng: Any) -> None:
    """With K = 2, keys 7, 2, 1 before, at, and 1, 2, 9 after the query read rows 0 0 1 2 3 4 4."""
    rows = rng.permuted(np.linspace(-3, 3, 5)) + rng.uniform(-0.2, 0.2, 5)
    relative_keys = np.stack([rows, np.zeros(5), np.zeros(5), np.ones(5)], axis=1)
    q, k = np.array([[2.0, 5.0, -7.0, 0.0]]), np.zeros((7, 4))
    after = np.array([-7, -2, -1, 0, 1, 2, 9])
    result = student.shaw_scores(q, k, relative_keys, np.array([20]), 20 + after)
    close(result, [rows[[0, 0, 1, 2, 3, 4, 4]]], room(4.0))  # 2·row/√4


@behaviour("shaw_scores", weight=2)
def check_shaw_scores_content(student: Answers, reference: Answers, rng: Any) -> None:
    """The score is (q·(k + a))/√d: what the key says and where it stands, both scaled."""
    inputs = shaw_inputs(rng)
    agrees(student, reference, "shaw_scores", *inputs, atol=room(10.0))
    q, k, a, *where = inputs
    agrees(student, reference, "shaw_scores", q, k, 0 * a, *where, atol=room(10.0))


@behaviour("shaw_scores")
def check_shaw_scores_any_reach(student: Answers, reference: Answers, rng: Any) -> None:
    """K comes from the number of rows: 1 row for all distances, or more rows than distances."""
    for K in (1, 0, 2, 12):
        agrees(student, reference, "shaw_scores", *shaw_inputs(rng, K=K), atol=room(10.0))


@behaviour("shaw_scores")
def check_shaw_scores_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The scores have the floating dtype of q, also beside a float64 table."""
    for dtype in ("float32", "float16"):
        q, k, a, *where = shaw_inputs(rng, dtype)
        for table in (a, a.astype("float64")):
            inputs, allowed = (q, k, table, *where), room(20.0, dtype=dtype)
            agrees(student, reference, "shaw_scores", *inputs, atol=allowed, dtype=dtype)


@behaviour("shaw_scores")
def check_shaw_scores_large_products(student: Answers, reference: Answers, rng: Any) -> None:
    """float16 vectors have finite scores, also where the products before the root pass 65504."""
    q, k, _, *where = shaw_inputs(rng)
    q, k = (rng.integers(100, 141, x.shape).astype("float16") for x in (q, k))
    k[1:] -= 100  # only the first of the keys is that long
    a = rng.integers(-2, 3, (7, 8)).astype("float16")
    expected = reference.shaw_scores(q, k, a, *where)
    close(student.shaw_scores(q, k, a, *where), expected, room(expected, dtype="float16"))


@behaviour("shaw_scores")
def check_shaw_scores_fractions(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions may be fractions that are whole tokens apart; any other distance raises."""
    q, k, a, q_positions, k_positions = shaw_inputs(rng)
    with good_input():
        for part in (0.5, 0.25):
            where = (q_positions + part, k_positions + part)
            agrees(student, reference, "shaw_scores", q, k, a, *where, atol=room(10.0))
    for q_part, k_part in ((0.5, 0.0), (0.0, 0.25), (0.75, 0.5)):
        where = (q_positions + q_part, k_positions + k_part)
        refuses(student.shaw_scores, q, k, a, *where, because="distances that are not whole")


@behaviour("shaw_scores")
def check_shaw_scores_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer vectors give float64 scores with their fractions kept."""
    q, k, a = (rng.integers(-9, 9, (n, 8)) for n in (3, 5, 7))
    where = shaw_inputs(rng)[3:]
    inputs, allowed = (q, k, a, *where), room(2000.0)
    agrees(student, reference, "shaw_scores", *inputs, atol=allowed, dtype="float64")
    q, k = q.astype("int32"), k.astype("int32")
    inputs = (q, k, a + rng.uniform(0.1, 0.9, a.shape), *where)
    agrees(student, reference, "shaw_scores", *inputs, atol=allowed)


@behaviour("shaw_scores")
def check_shaw_scores_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """All arrays that went in are still what they were."""
    inputs = shaw_inputs(rng)
    names = ("q", "k", "relative_keys", "q_positions", "k_positions")
    leaves_inputs(student, reference, "shaw_scores", *inputs, names=names, atol=room(10.0))


@behaviour("shaw_scores")
def check_shaw_scores_refuses_even_rows(student: Answers, reference: Answers, rng: Any) -> None:
    """A table with an even number of rows, and so no middle row for distance 0, raises."""
    q, k, a, *where = shaw_inputs(rng)
    with good_input():
        agrees(student, reference, "shaw_scores", q, k, a, *where, atol=room(10.0))
    last = np.full(3, where[1].max() + 1)  # after all keys: the rows behind the middle are not read
    for rows in (6, 2, 0, 8):
        bad, because = rng.standard_normal((rows, 8)), "an even number of rows"
        for q_positions in (where[0], last):
            refuses(student.shaw_scores, q, k, bad, q_positions, where[1], because=because)


@behaviour("shaw_scores")
def check_shaw_scores_refuses_shapes(student: Answers, reference: Answers, rng: Any) -> None:
    """Shapes that do not match raise, also where NumPy would broadcast them."""
    inputs = shaw_inputs(rng)
    with good_input():
        agrees(student, reference, "shaw_scores", *inputs, atol=room(10.0))

    def refuse(at: int, bad: Any, because: str) -> None:
        changed = [*inputs[:at], bad, *inputs[at + 1 :]]
        refuses(student.shaw_scores, *changed, because=because)

    q, k, a, q_positions, k_positions = inputs
    for width in (1, 7):
        refuse(0, q[:, :width], "queries narrower than the keys")
        refuse(1, k[:, :width], "keys narrower than the queries")
        refuse(2, a[:, :width], "a table narrower than the vectors")
    refuse(0, q[:1], "one query for three positions")
    refuse(1, k[:1], "one key for five positions")
    because = "positions that do not count the queries, or the keys"
    for shape in ((), (1,), (2,), (4,), (5,), (3, 1), (1, 3)):
        refuse(3, np.full(shape, q_positions[0]), because)
    for shape in ((), (1,), (3,), (4,), (6,), (5, 1), (1, 5)):
        refuse(4, np.full(shape, k_positions[0]), because)


@behaviour("shaw_scores", hidden=True)
def check_shaw_scores_shapes(student: Answers, reference: Answers, rng: Any) -> None:
    """Any number of queries and keys works, with any positions far or near."""
    for n_q, n_k, d, K in ((5, 2, 3, 4), (4, 4, 4, 1), (1, 6, 2, 8), (7, 7, 7, 3)):
        q, k, a = (rng.standard_normal((n, d)) for n in (n_q, n_k, 2 * K + 1))
        where = (scattered(rng, n_q, 4) + 100_000, scattered(rng, n_k, 4) + 100_001)
        agrees(student, reference, "shaw_scores", q, k, a, *where, atol=room(20.0))


@behaviour("shaw_scores", hidden=True)
def check_shaw_scores_unsigned(student: Answers, reference: Answers, rng: Any) -> None:
    """Unsigned positions do not wrap round when a later one is taken from an earlier one."""
    for dtype in ("uint8", "uint32"):
        q, k, a, q_positions, k_positions = shaw_inputs(rng)
        inputs = (q, k, a, q_positions.astype(dtype), k_positions.astype(dtype))
        agrees(student, reference, "shaw_scores", *inputs, atol=room(10.0))


# --------------------------------------------------------------------------------- fixed_bias


@behaviour("fixed_bias", weight=2)
def check_fixed_bias_worked_penalties(student: Answers, reference: Answers, rng: Any) -> None:
    """With slope 0.5, a key 8 tokens before the query gets −4, one 2 before it −1."""
    result = student.fixed_bias(np.array([29]), np.array([29, 28, 27, 25, 21]), 0.5)
    close(result, [[0.0, -0.5, -1.0, -2.0, -4.0]], room(4.0))


@behaviour("fixed_bias", weight=2)
def check_fixed_bias_both_sides(student: Answers, reference: Answers, rng: Any) -> None:
    """Three keys before the query cost what three keys after it do."""
    result = student.fixed_bias(np.array([17, 40]), np.array([14, 20, 17, 25, 9]), 0.25)
    distances = np.array([[3, 3, 0, 8, 8], [26, 20, 23, 15, 31]])
    close(result, -distances / 4, room(8.0))


@behaviour("fixed_bias", weight=2)
def check_fixed_bias_any_positions(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions come in any order, as many queries and keys as there are: (n_q, n_k)."""
    for n_q, n_k in ((3, 5), (8, 2), (4, 4)):
        inputs = (scattered(rng, n_q), scattered(rng, n_k) + 4, float(rng.uniform(0.1, 0.9)))
        agrees(student, reference, "fixed_bias", *inputs, atol=bias_room())


@behaviour("fixed_bias")
def check_fixed_bias_fractions(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions may be fractions or negative."""
    q_positions = np.array([2.5, -7.75, 31.0])
    k_positions = np.array([0.125, -3.5, 18.25, 0.0, 2.625])
    agrees(student, reference, "fixed_bias", q_positions, k_positions, 0.3, atol=bias_room(40.0))


@behaviour("fixed_bias")
def check_fixed_bias_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """The bias of integer positions, also far ones, is float64 and exact."""
    for slope in (0.3, 1 / 256):
        far = 70_000_000 + scattered(rng, 5)
        inputs = (far[::2] - 5, far, slope)
        agrees(student, reference, "fixed_bias", *inputs, atol=room(200.0), dtype="float64")


@behaviour("fixed_bias")
def check_fixed_bias_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The positions that went in are still what they were."""
    inputs = (scattered(rng, 3) + 0.5, scattered(rng, 5) + 0.25, 0.3)
    names = ("q_positions", "k_positions")
    leaves_inputs(student, reference, "fixed_bias", *inputs, names=names, atol=bias_room())


@behaviour("fixed_bias")
def check_fixed_bias_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions that are not 1-D raise, also where NumPy would broadcast them."""
    inputs = (scattered(rng, 3), scattered(rng, 3), 0.3)
    with good_input():
        agrees(student, reference, "fixed_bias", *inputs, atol=bias_room())
    bad_positions(student.fixed_bias, rng, 0.3)


@behaviour("fixed_bias", hidden=True)
def check_fixed_bias_softmax(student: Answers, reference: Answers, rng: Any) -> None:
    """Under a softmax that sees both sides, the weights fall off evenly from the query."""
    positions = scattered(rng, 5, gap=4)
    slope = float(rng.uniform(0.2, 0.4))
    bias = student.fixed_bias(positions[:2], positions, slope)
    expected = np.exp(-slope * np.abs(positions[:2, None] - positions.astype(float)))
    expected /= expected.sum(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        weights = np.exp(shaped(bias, (2, 5)).astype(np.complex128).real)
        weights = weights / weights.sum(axis=1, keepdims=True)
    close(weights, expected, room(dtype="float32", scores=10.0), what="the softmax of the bias")


@behaviour("fixed_bias", hidden=True)
def check_fixed_bias_unsigned(student: Answers, reference: Answers, rng: Any) -> None:
    """Unsigned positions do not wrap round when a later one is taken from an earlier one."""
    for dtype in ("uint8", "uint64"):
        inputs = (scattered(rng, 3).astype(dtype), scattered(rng, 5).astype(dtype), 0.3)
        agrees(student, reference, "fixed_bias", *inputs, atol=bias_room())


# --------------------------------------------------------------------------------- alibi_sdpa


def tensor(array: Any, dtype: str = "float32") -> torch.Tensor:
    import torch

    return torch.as_tensor(np.array(array)).to(getattr(torch, dtype))


def sdpa_inputs(
    rng: np.random.Generator, n_q: int, n_k: int, dtype: str = "float32", heads: int = 3
) -> tuple[torch.Tensor, ...]:
    """q, k, v and slopes for a batch of 2, width 8."""
    q, k, v = (tensor(rng.standard_normal((2, heads, n, 8)), dtype) for n in (n_q, n_k, n_k))
    return q, k, v, tensor(slopes_of(rng, heads))


def attended(result: Any, expected: Any, v: torch.Tensor, dtype: str = "float32") -> None:
    """The result is as expected, as far as attention in `dtype` can tell."""
    close(result, expected, room(v.double().numpy(), dtype=dtype, scores=8.0))


def far_out(
    rng: np.random.Generator, dtype: str
) -> tuple[tuple[torch.Tensor, ...], int, np.ndarray, float]:
    """(inputs, offset, expected, atol): scores near 0 at positions near 3000, where the spacing of
    bfloat16 is 16. The expected numbers come from the bias alone, in float64."""
    offset, n_q, n_k = int(rng.integers(2900, 2990)), 3, 3000
    signs = np.where(rng.random((1, 2, n_k, 8)) < 0.5, -1.0, 1.0)
    v = tensor(signs * rng.choice([0.875, 1.0], signs.shape), dtype)
    q, k = (tensor(np.zeros((1, 2, n, 8)), dtype) for n in (n_q, n_k))
    slopes = np.array([0.5, 1.0])
    distance = offset + np.arange(n_q)[:, None] - np.arange(n_k)
    weights = np.exp(-slopes[:, None, None] * distance.astype(float)) * (distance >= 0)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    expected = weights @ v.double().numpy()
    return (q, k, v, tensor(slopes)), offset, expected, tolerance("bfloat16")


@behaviour("alibi_sdpa", weight=2)
def check_alibi_sdpa_worked_weights(student: Answers, reference: Answers, rng: Any) -> None:
    """Slope ln 2, equal scores: weights 4/7, 2/7, 1/7 at distances 0, 1, 2; later keys none."""
    q, k, v, _ = sdpa_inputs(rng, 3, 3)
    weights = []
    for ratio in (2, 3, 4):
        rows = np.array([[1, 0, 0], [1, ratio, 0], [1, ratio, ratio**2]])
        weights.append(rows / rows.sum(axis=1, keepdims=True))
    slopes = tensor(np.log([2.0, 3.0, 4.0]))
    result = student.alibi_sdpa(0 * q, k, v, slopes)
    attended(result, np.array(weights) @ v.double().numpy(), v)


@behaviour("alibi_sdpa", weight=2)
def check_alibi_sdpa_scores(student: Answers, reference: Answers, rng: Any) -> None:
    """What the bias is added to is q·k/√d, for every row of the batch and every head."""
    for heads, length in ((3, 5), (2, 7)):
        inputs = sdpa_inputs(rng, length, length, heads=heads)
        expected = reference.alibi_sdpa(*inputs)
        attended(student.alibi_sdpa(*inputs), expected, inputs[2])


@behaviour("alibi_sdpa", weight=2)
def check_alibi_sdpa_offset(student: Answers, reference: Answers, rng: Any) -> None:
    """Queries that start at an offset see the cached keys up to their own position, no more."""
    for n_q, n_k, offset in ((3, 8, 4), (2, 8, 0), (1, 8, 7), (3, 8, 5)):
        inputs = sdpa_inputs(rng, n_q, n_k)
        expected = reference.alibi_sdpa(*inputs, offset=offset)
        attended(student.alibi_sdpa(*inputs, offset=offset), expected, inputs[2])


@behaviour("alibi_sdpa", weight=2)
def check_alibi_sdpa_bfloat16(student: Answers, reference: Answers, rng: Any) -> None:
    """bfloat16 input gives bfloat16, and its bias still tells neighbours apart at position 3000."""
    inputs, offset, expected, allowed = far_out(rng, "bfloat16")
    result = student.alibi_sdpa(*inputs, offset)
    close(result, expected, allowed)
    same_dtype(result, "bfloat16")


def one_far_key(
    rng: np.random.Generator, dtype: str
) -> tuple[tuple[torch.Tensor, ...], int, np.ndarray, float]:
    """(inputs, offset, expected, atol): the content of one far key, 1024, makes up for its penalty,
    so it weighs as much as the query's own key. 1024 is whole in bfloat16; a slope or distance
    rounded to it moves the penalty by 2 or more."""
    n_k, far = 1601, (1556, 914)
    q, k = np.full((1, 2, 1, 16), 16.0), np.full((1, 2, n_k, 16), -16.0)
    v = np.zeros((1, 2, n_k, 16))
    expected = rng.choice([-1.0, -0.875, 0.875, 1.0], (1, 2, 1, 16))
    for head, distance in enumerate(far):
        k[0, head, -1], k[0, head, -1 - distance] = 0.0, 16.0
        v[0, head, -1], v[0, head, -1 - distance] = -expected[0, head], 3 * expected[0, head]
    slopes = tensor(1024.0 / np.array(far))
    inputs = (*(tensor(x, dtype) for x in (q, k, v)), slopes)
    return inputs, n_k - 1, expected, tolerance("bfloat16", scale=4.0)


@behaviour("alibi_sdpa")
def check_alibi_sdpa_far_key(student: Answers, reference: Answers, rng: Any) -> None:
    """With bfloat16 input, slope and distance are multiplied in float32, also for a far key."""
    inputs, offset, expected, allowed = one_far_key(rng, "bfloat16")
    close(student.alibi_sdpa(*inputs, offset), expected, allowed)


@behaviour("alibi_sdpa")
def check_alibi_sdpa_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """float16, float32 and float64 input give their own dtype back."""
    for dtype in ("float16", "float32", "float64"):
        inputs = sdpa_inputs(rng, 3, 5, dtype)
        expected = reference.alibi_sdpa(*inputs, 2)
        result = student.alibi_sdpa(*inputs, 2)
        attended(result, expected, inputs[2], "float16" if dtype == "float16" else "float32")
        same_dtype(result, dtype)


@behaviour("alibi_sdpa")
def check_alibi_sdpa_autocast(student: Answers, reference: Answers, rng: Any) -> None:
    """Under autocast the result keeps the dtype of q, and the bias its precision."""
    for make in (far_out, one_far_key):
        inputs, offset, expected, allowed = make(rng, "float32")
        with student.autocast("bfloat16"):
            result = student.alibi_sdpa(*inputs, offset)
        close(result, expected, allowed)
        same_dtype(result, "float32")


@behaviour("alibi_sdpa")
def check_alibi_sdpa_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """All tensors that went in are still what they were."""
    inputs = sdpa_inputs(rng, 3, 8)
    expected = reference.alibi_sdpa(*inputs, 4)
    result, after = student.alibi_sdpa.with_inputs(*inputs, 4)
    for name, now, before in zip(("q", "k", "v", "slopes"), after, inputs, strict=False):
        unchanged(now, before, what=name)
    with good_input():
        attended(result, expected, inputs[2])


@behaviour("alibi_sdpa")
def check_alibi_sdpa_gradients(student: Answers, reference: Answers, rng: Any) -> None:
    """Gradients reach q, k and v, so that what stands before this can be trained."""
    inputs = sdpa_inputs(rng, 3, 8)
    weights = sdpa_inputs(rng, 3, 8)[0]
    mine, right, allowed = student.alibi_sdpa, reference.alibi_sdpa, tolerance("float32", scale=20)
    trains(mine, right, *inputs, 4, names=("q", "k", "v"), weights=weights, atol=allowed)


@behaviour("alibi_sdpa")
def check_alibi_sdpa_refuses_offsets(student: Answers, reference: Answers, rng: Any) -> None:
    """An offset below 0, or one that leads past the last key, raises."""
    inputs = sdpa_inputs(rng, 3, 8)
    expected = reference.alibi_sdpa(*inputs, 5)
    with good_input():
        attended(student.alibi_sdpa(*inputs, 5), expected, inputs[2])
    for offset in (-1, -3, -8):
        refuses(student.alibi_sdpa, *inputs, offset, because="an offset below 0")
    for offset in (6, 7, 8, 40):
        refuses(student.alibi_sdpa, *inputs, offset, because="queries past the last key")
    q, k, v, slopes = inputs
    refuses(student.alibi_sdpa, q, k[:, :, :2], v[:, :, :2], slopes, because="too few keys")


@behaviour("alibi_sdpa")
def check_alibi_sdpa_refuses_slopes(student: Answers, reference: Answers, rng: Any) -> None:
    """Slopes that are not one for each head raise, also where torch would broadcast them."""
    q, k, v, slopes = sdpa_inputs(rng, 5, 5)
    expected = reference.alibi_sdpa(q, k, v, slopes)
    with good_input():
        attended(student.alibi_sdpa(q, k, v, slopes), expected, v)
    for shape in ((1,), (2,), (5,), (), (2, 3), (1, 1), (2, 1), (2, 5), (3, 1), (1, 3)):
        bad, because = tensor(rng.uniform(0.1, 0.5, shape)), "slopes are not one for each head"
        refuses(student.alibi_sdpa, q, k, v, bad, because=because)
    one = tensor(slopes_of(rng, 3))
    refuses(student.alibi_sdpa, q[:, :1], k[:, :1], v[:, :1], one, because="three slopes, one head")


@behaviour("alibi_sdpa")
def check_alibi_sdpa_refuses_shapes(student: Answers, reference: Answers, rng: Any) -> None:
    """Queries, keys and values that do not match raise, also where torch would broadcast them."""
    q, k, v, slopes = sdpa_inputs(rng, 3, 8)
    expected = reference.alibi_sdpa(q, k, v, slopes)
    with good_input():
        attended(student.alibi_sdpa(q, k, v, slopes), expected, v)
    refuses(student.alibi_sdpa, q[:1], k, v, slopes, because="one row of queries, two of keys")
    refuses(student.alibi_sdpa, q, k[:1], v[:1], slopes, because="one row of keys, two of queries")
    refuses(student.alibi_sdpa, q, k, v[:1], slopes, because="one row of values, two of keys")
    refuses(student.alibi_sdpa, q, k[:1], v, slopes, because="one row of keys, two of values")
    refuses(student.alibi_sdpa, q, k, v[:, :1], slopes, because="values of one head, keys of three")
    one_head = (k[:, :1], v[:, :1], slopes)
    refuses(student.alibi_sdpa, q, *one_head, because="keys of one head, queries of three")
    refuses(student.alibi_sdpa, q, k[:, :1], v, slopes, because="keys of one head, values of three")
    refuses(student.alibi_sdpa, q, k[..., :1], v, slopes, because="keys narrower than queries")
    refuses(student.alibi_sdpa, q[..., :1], k, v, slopes, because="queries narrower than keys")
    refuses(student.alibi_sdpa, q, k, v[:, :, :1], slopes, because="one value for eight keys")
    refuses(student.alibi_sdpa, q, k, v[:, :, :4], slopes, because="fewer values than keys")


@behaviour("alibi_sdpa", hidden=True)
def check_alibi_sdpa_large_scores(student: Answers, reference: Answers, rng: Any) -> None:
    """Scores in the hundreds give finite weights."""
    q, k, v, slopes = sdpa_inputs(rng, 5, 8)
    expected = reference.alibi_sdpa(20 * q, 20 * k, v, slopes, 3)
    result = student.alibi_sdpa(20 * q, 20 * k, v, slopes, 3)
    close(result, expected, room(v.double().numpy(), dtype="float32", scores=2000.0))

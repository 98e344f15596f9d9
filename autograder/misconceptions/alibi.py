"""Wrong answers to the exercises on positions as a bias, and the sentences that help.

Each is right but for one belief. Where a public report tells of it, the report is cited; the code
and the words are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from solutions.with_numpy import alibi as right
from solutions.with_numpy.rope import as_floats
from solutions.with_torch import alibi as right_torch

from ..exercise import Misconception

Array = np.ndarray
Tensor = torch.Tensor

# ------------------------------------------------------------------------------- alibi_slopes


def slopes_from_zero(num_heads: int) -> Array:
    """aprender#2143: heads counted from zero, so that the first slope is 1."""
    right.alibi_slopes(num_heads)
    power = 2 ** (num_heads.bit_length() - 1)
    first = 2.0 ** (-8 * np.arange(power) / power)
    between = 2.0 ** (-8 * (np.arange(num_heads - power) + 0.5) / power)
    return np.concatenate([first, between])


def slopes_always_halving(num_heads: int) -> Array:
    right.alibi_slopes(num_heads)
    return 0.5 ** np.arange(1.0, num_heads + 1)


def slopes_smooth(num_heads: int) -> Array:
    """ofirpress/attention_with_linear_biases#17: one formula for all numbers of heads."""
    right.alibi_slopes(num_heads)
    return 2.0 ** (-8 * np.arange(1, num_heads + 1) / num_heads)


def slopes_sorted(num_heads: int) -> Array:
    return np.sort(right.alibi_slopes(num_heads))[::-1].copy()


def slopes_first_of_next_power(num_heads: int) -> Array:
    power = 2 ** (num_heads - 1).bit_length() if num_heads > 0 else 1
    return right.alibi_slopes(num_heads) if num_heads < 1 else right.alibi_slopes(power)[:num_heads]


def slopes_next_ones_in_a_row(num_heads: int) -> Array:
    """The added heads get the 1st, 2nd, … slope of the next power instead of every other one."""
    slopes = right.alibi_slopes(num_heads)
    power = 2 ** (num_heads.bit_length() - 1)
    return np.concatenate([slopes[:power], right.alibi_slopes(2 * power)[: num_heads - power]])


def slopes_second_of_every_two(num_heads: int) -> Array:
    """[1::2] for [0::2]: every other slope of the next power, from its second on."""
    slopes = right.alibi_slopes(num_heads)
    power = 2 ** (num_heads.bit_length() - 1)
    return np.concatenate([slopes[:power], slopes[:power][: num_heads - power]])


def slopes_odd_over_the_smaller(num_heads: int) -> Array:
    """The odd numbers are right, and divided by p where they count heads of 2p."""
    slopes = right.alibi_slopes(num_heads)
    power = 2 ** (num_heads.bit_length() - 1)
    odd = np.arange(1, 2 * (num_heads - power), 2)
    return np.concatenate([slopes[:power], 2.0 ** (-8 * odd / power)])


def slopes_added_heads_first(num_heads: int) -> Array:
    slopes = right.alibi_slopes(num_heads)
    power = 2 ** (num_heads.bit_length() - 1)
    return np.concatenate([slopes[power:], slopes[:power]])


def slopes_float32(num_heads: int) -> Array:
    return right.alibi_slopes(num_heads).astype(np.float32)


def slopes_no_heads(num_heads: int) -> Array:
    return right.alibi_slopes(num_heads) if num_heads >= 1 else np.empty(0)


ALIBI_SLOPES = (
    Misconception(
        "alibi-slopes-from-zero",
        slopes_from_zero,
        "alibi_slopes_eight_heads",
        "Your first slope is 1: the heads were counted from zero. The paper counts them from one, "
        "so that its first slope equals the ratio of each to the one before.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-slopes-sorted",
        slopes_sorted,
        "alibi_slopes_other_counts",
        "The slopes are the right ones, sorted. The heads beyond the power of two come last, "
        "whatever their slopes are: weights were trained with that order.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-slopes-always-halving",
        slopes_always_halving,
        "alibi_slopes_powers_of_two",
        "Each slope is half of the one before, however many heads there are. That is right for "
        "eight; in general the ratio depends on the number of heads, and the last slope is 1/256.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-slopes-smooth",
        slopes_smooth,
        "alibi_slopes_other_counts",
        "The formula for powers of two was used for every number of heads. Models with other "
        "numbers were trained with the slopes of the power of two below, and more in between.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-slopes-first-of-next-power",
        slopes_first_of_next_power,
        "alibi_slopes_other_counts",
        "The slopes of the next power of two were cut to length. Start from the power of two "
        "below, whole, and only the heads that are left over take slopes of the next one.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-slopes-next-ones-in-a-row",
        slopes_next_ones_in_a_row,
        "alibi_slopes_other_counts",
        "The heads that are left over got the next power's slopes one after the other, and half "
        "of those are there already. Take every other one, beginning with the first.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-slopes-second-of-every-two",
        slopes_second_of_every_two,
        "alibi_slopes_other_counts",
        "The heads that are left over got slopes that are there already. Of the next "
        "power's slopes take every other one from the first on: those with odd h lie between.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-slopes-odd-over-the-smaller",
        slopes_odd_over_the_smaller,
        "alibi_slopes_other_counts",
        "The heads that are left over fall off twice too fast. Their slopes are those of 2p heads, "
        "so it is 2p that their h is divided by, not p.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-slopes-added-heads-first",
        slopes_added_heads_first,
        "alibi_slopes_other_counts",
        "The slopes are the right ones in another order: those of the heads that are left over "
        "stand in front. They come last, behind all slopes of the power of two below.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-slopes-float32",
        slopes_float32,
        "alibi_slopes_float64",
        "The slopes are right, but not in float64: they have another dtype, or only the digits of "
        "float32. Tables are float64 in this book; the results are cast later, once.",
        "ex-alibi_slopes",
    ),
    Misconception(
        "alibi-slopes-no-heads",
        slopes_no_heads,
        "alibi_slopes_refuses",
        "With no head, or fewer than none, an empty array came back. Attention without heads is "
        "a mistake somewhere else: raise, so that it is found.",
        "ex-alibi_slopes",
    ),
)

# --------------------------------------------------------------------------------- alibi_bias


def bias_rewards_distance(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    """attention-gym#86: the sign was flipped."""
    return -right.alibi_bias(q_positions, k_positions, slopes)


def bias_of_the_key_alone(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    """The form of many causal models: equal to the other after a softmax that sees no later key."""
    shape = right.alibi_bias(q_positions, k_positions, slopes).shape
    m = np.asarray(slopes, dtype=np.float64)
    bias = m[:, None, None] * np.asarray(k_positions, dtype=np.float64)
    return np.broadcast_to(bias, shape).copy()


def bias_signed(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    """ofirpress/attention_with_linear_biases#5: right before the query, a reward after it."""
    right.alibi_bias(q_positions, k_positions, slopes)
    m = np.asarray(slopes, dtype=np.float64)
    return m[:, None, None] * right.signed_distances(q_positions, k_positions)


def bias_query_minus_key(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    """attention-gym#86 once more: wrong on both sides, in sign and for want of a distance."""
    return -bias_signed(q_positions, k_positions, slopes)


def bias_later_free(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    """max(query − key, 0) for the distance."""
    bias = right.alibi_bias(q_positions, k_positions, slopes)
    return np.where(right.signed_distances(q_positions, k_positions) > 0, 0.0, bias)


def bias_of_rows(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    """PaddleNLP#6496: places in the array stand for positions, which padding has shifted."""
    _, n_q, n_k = right.alibi_bias(q_positions, k_positions, slopes).shape
    return right.alibi_bias(np.arange(n_q), np.arange(n_k), slopes)


def bias_one_slope(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    bias = right.alibi_bias(q_positions, k_positions, slopes)
    return np.broadcast_to(bias[:1], bias.shape).copy()


def bias_keys_first(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    return right.alibi_bias(q_positions, k_positions, slopes).swapaxes(1, 2)


def bias_heads_last(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    return np.moveaxis(right.alibi_bias(q_positions, k_positions, slopes), 0, -1)


def bias_masks_later_keys(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    bias = right.alibi_bias(q_positions, k_positions, slopes)
    return np.where(right.signed_distances(q_positions, k_positions) > 0, -np.inf, bias)


def bias_whole_positions(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    q_at, k_at = (np.asarray(p).astype(np.int64) for p in (q_positions, k_positions))
    return right.alibi_bias(q_at, k_at, slopes)


def bias_wraps(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    right.alibi_bias(q_positions, k_positions, slopes)
    distance = np.abs(np.subtract.outer(q_positions, k_positions))
    return -np.asarray(slopes, dtype=np.float64)[:, None, None] * distance


def bias_float32(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    """As models do that compute it where they use it: positions far out lose their digits."""
    right.alibi_bias(q_positions, k_positions, slopes)
    q_at, k_at, m = (np.asarray(x, dtype=np.float32) for x in (q_positions, k_positions, slopes))
    return -m[:, None, None] * np.abs(q_at[:, None] - k_at)


def bias_in_place(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    bias = right.alibi_bias(q_positions, k_positions, slopes)
    if isinstance(slopes, np.ndarray):
        slopes *= -1
    return bias


def bias_any_shape(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    return right.alibi_bias(*(np.ravel(x) for x in (q_positions, k_positions, slopes)))


def bias_no_heads(q_positions: Array, k_positions: Array, slopes: Array) -> Array:
    if np.shape(slopes) == (0,):
        return np.empty((0, *right.signed_distances(q_positions, k_positions).shape))
    return right.alibi_bias(q_positions, k_positions, slopes)


ALIBI_BIAS = (
    Misconception(
        "alibi-bias-rewards-distance",
        bias_rewards_distance,
        "alibi_bias_worked_penalties",
        "Your bias grows with the distance, so far keys are preferred to near ones. It is a "
        "penalty: look at its sign.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-bias-of-the-key-alone",
        bias_of_the_key_alone,
        "alibi_bias_worked_penalties",
        "Your bias does not look at the query: every row is the same, and it is positive. What is "
        "asked for is minus the slope times the distance between the two.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-bias-signed",
        bias_signed,
        "alibi_bias_both_sides",
        "A key after the query gets a positive bias, more the further it is away. The distance "
        "counts to either side, so it needs its absolute value.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-bias-query-minus-key",
        bias_query_minus_key,
        "alibi_bias_worked_penalties",
        "Slope times query minus key rewards the keys before the query, the more the further they "
        "are, and punishes those after it. Two things are missing: a distance has no sign, and the "
        "bias is minus the slope times it.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-bias-later-free",
        bias_later_free,
        "alibi_bias_both_sides",
        "Keys after the query cost nothing, however far away they are. The distance counts to "
        "either side; what a causal model may see is decided elsewhere.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-bias-of-rows",
        bias_of_rows,
        "alibi_bias_worked_penalties",
        "The distances are those of places in the arrays, 0, 1, 2, …, whatever positions were "
        "given. Padding, caches and permuted keys all move the one against the other.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-bias-one-slope",
        bias_one_slope,
        "alibi_bias_worked_penalties",
        "All heads fall off like the first one. Each head has its own slope; give the slopes two "
        "more axes, so that they run along the heads.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-bias-keys-first",
        bias_keys_first,
        "alibi_bias_worked_penalties",
        "Rows and columns are exchanged: the result is (heads, n_k, n_q). Scores have one row for "
        "each query and one column for each key, and the bias is added to them.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-bias-heads-last",
        bias_heads_last,
        "alibi_bias_worked_penalties",
        "The heads are the last axis of your result. They come first, as in the scores that the "
        "bias is added to: (heads, n_q, n_k).",
        "alibi-bias",
    ),
    Misconception(
        "alibi-bias-masks-later-keys",
        bias_masks_later_keys,
        "alibi_bias_both_sides",
        "Keys after the query are masked. The causal mask is another matter, for the attention to "
        "add: the bias itself falls evenly to both sides.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-bias-whole-positions",
        bias_whole_positions,
        "alibi_bias_fractions",
        "Positions were cut down to whole numbers. A position may be a fraction, and the bias of "
        "half a token is half the slope.",
        "ex-alibi_bias",
    ),
    Misconception(
        "alibi-bias-wraps",
        bias_wraps,
        "alibi_bias_unsigned",
        "Unsigned positions wrapped round: 3 − 5 became a huge number, and its absolute value "
        "stays huge. Make them floats, or signed, before you subtract.",
        "ex-alibi_bias",
    ),
    Misconception(
        "alibi-bias-float32",
        bias_float32,
        "alibi_bias_float64",
        "The bias was computed in float32, where positions beyond 16 million have no neighbours "
        "any more. Tables are float64 here, and only results are cast.",
        "ex-alibi_bias",
    ),
    Misconception(
        "alibi-bias-in-place",
        bias_in_place,
        "alibi_bias_leaves_input",
        "The caller's slopes changed sign in place, so the next call would reward distance. "
        "Negate a new array.",
        "ex-alibi_bias",
    ),
    Misconception(
        "alibi-bias-any-shape",
        bias_any_shape,
        "alibi_bias_refuses",
        "Positions of any shape were flattened into one row. A batch of positions would mix its "
        "rows that way: refuse what is not 1-D.",
        "ex-alibi_bias",
    ),
    Misconception(
        "alibi-bias-no-heads",
        bias_no_heads,
        "alibi_bias_refuses",
        "Without a slope an empty bias came back. Attention without heads is a mistake somewhere "
        "else: raise, so that it is found.",
        "ex-alibi_bias",
    ),
)

# ---------------------------------------------------------------------------- alibi_attention

Weigh = Callable[[Array, float, Array, Array], Array]


def softmax(scores: Array, axis: int = -1) -> Array:
    with np.errstate(invalid="ignore"):  # a row without a key
        weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
        return weights / weights.sum(axis=axis, keepdims=True)


def hide(scores: Array, hidden: Array) -> Array:
    return np.where(hidden, -np.inf, scores)


def attention_with(weigh: Weigh) -> Callable[..., Array]:
    """alibi_attention whose weights are weigh(q·k/√d, √d, bias, key − query)."""

    def attend(
        q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
    ) -> Array:
        right.alibi_attention(q, k, v, slopes, q_positions, k_positions)  # refuses the bad
        q, k, v = (as_floats(x, "an input") for x in (q, k, v))
        root = math.sqrt(q.shape[-1])
        raw = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / root
        bias = right.alibi_bias(q_positions, k_positions, slopes)
        distances = right.signed_distances(q_positions, k_positions)
        return (weigh(raw, root, bias, distances) @ v).astype(q.dtype)

    return attend


@attention_with
def attention_rewards_distance(raw: Array, root: float, bias: Array, away: Array) -> Array:
    """attention-gym#86: the sign was flipped."""
    return softmax(hide(raw - bias, away > 0))


@attention_with
def attention_without_mask(raw: Array, root: float, bias: Array, away: Array) -> Array:
    return softmax(raw + bias)


@attention_with
def attention_masks_rows(raw: Array, root: float, bias: Array, away: Array) -> Array:
    return softmax(hide(raw + bias, np.tri(*away.shape) == 0))


@attention_with
def attention_masks_own_key(raw: Array, root: float, bias: Array, away: Array) -> Array:
    hidden = away >= 0
    alone = hidden.all(axis=1, keepdims=True)  # a query that sees itself only keeps that
    return softmax(hide(raw + bias, np.where(alone, away > 0, hidden)))


@attention_with
def attention_masks_weights(raw: Array, root: float, bias: Array, away: Array) -> Array:
    """The mask comes after the softmax: what later keys had is lost."""
    return softmax(raw + bias) * (away <= 0)


@attention_with
def attention_without_root(raw: Array, root: float, bias: Array, away: Array) -> Array:
    return softmax(hide(raw * root + bias, away > 0))


@attention_with
def attention_scales_the_bias(raw: Array, root: float, bias: Array, away: Array) -> Array:
    return softmax(hide(raw + bias / root, away > 0))


@attention_with
def attention_one_slope(raw: Array, root: float, bias: Array, away: Array) -> Array:
    return softmax(hide(raw + bias[:1], away > 0))


@attention_with
def attention_over_queries(raw: Array, root: float, bias: Array, away: Array) -> Array:
    return np.nan_to_num(softmax(hide(raw + bias, away > 0), axis=1))


@attention_with
def attention_without_bias(raw: Array, root: float, bias: Array, away: Array) -> Array:
    return softmax(hide(raw, away > 0))


@attention_with
def attention_bias_after_softmax(raw: Array, root: float, bias: Array, away: Array) -> Array:
    return softmax(hide(raw, away > 0)) + bias


@attention_with
def attention_looks_ahead(raw: Array, root: float, bias: Array, away: Array) -> Array:
    """The mask the wrong way round; a query behind all keys sees none."""
    return softmax(hide(raw + bias, away < 0))


@attention_with
def attention_hides_with_zero(raw: Array, root: float, bias: Array, away: Array) -> Array:
    return softmax(np.where(away > 0, 0.0, raw + bias))


@attention_with
def attention_hides_with_a_billion(raw: Array, root: float, bias: Array, away: Array) -> Array:
    return softmax(np.where(away > 0, -1e9, raw + bias))


@attention_with
def attention_not_normalised(raw: Array, root: float, bias: Array, away: Array) -> Array:
    scores = hide(raw + bias, away > 0)
    return np.exp(scores - scores.max(axis=-1, keepdims=True))


@attention_with
def attention_overflows(raw: Array, root: float, bias: Array, away: Array) -> Array:
    """exp of the scores as they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(hide(raw + bias, away > 0))
        return powers / powers.sum(axis=-1, keepdims=True)


@attention_with
def attention_divides_by_d(raw: Array, root: float, bias: Array, away: Array) -> Array:
    return softmax(hide(raw / root + bias, away > 0))


def attention_bias_of_rows(
    q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
) -> Array:
    """The mask goes by position and the distance by place in the arrays."""

    @attention_with
    def attend(raw: Array, root: float, bias: Array, away: Array) -> Array:
        n_q, n_k = away.shape
        places = right.alibi_bias(np.arange(n_q), np.arange(n_k), slopes)
        return softmax(hide(raw + places, away > 0))

    return attend(q, k, v, slopes, q_positions, k_positions)


def attention_of_rows(
    q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
) -> Array:
    """candle#899, PaddleNLP#6496: places in the arrays stand for positions."""
    right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    rows = np.arange(q.shape[1]), np.arange(k.shape[1])
    return right.alibi_attention(q, k, v, slopes, *rows)


def attention_always_float64(
    q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
) -> Array:
    q, k, v = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
    return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)


def attention_in_the_input_dtype(
    q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
) -> Array:
    """Products, penalties and softmax in the dtype of q: float16 ends at 65504."""
    right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    q, k, v = (as_floats(x, "an input") for x in (q, k, v))
    away = right.signed_distances(q_positions, k_positions)
    bias = right.alibi_bias(q_positions, k_positions, slopes).astype(q.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = q @ k.swapaxes(1, 2) / q.dtype.type(math.sqrt(q.shape[-1])) + bias
        return (softmax(hide(scores, away > 0).astype(q.dtype)) @ v).astype(q.dtype)


def attention_positions_in_float32(
    q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
) -> Array:
    """Positions are cast like the rest; beyond 16 million float32 has no odd ones."""
    result = right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    if result.dtype != np.float32:
        return result
    q_at, k_at = (np.asarray(p).astype(np.float32) for p in (q_positions, k_positions))
    moved = np.maximum(q_at, k_at.min())  # rounded down, a query may see nothing
    return right.alibi_attention(q, k, v, slopes, moved, k_at)


def attention_into_integers(
    q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
) -> Array:
    result = right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    return result.astype(np.asarray(q).dtype)


def attention_whole_positions(
    q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
) -> Array:
    q_at, k_at = (np.floor(p).astype(np.int64) for p in (q_positions, k_positions))
    return right.alibi_attention(q, k, v, slopes, q_at, k_at)


def attention_wraps(
    q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
) -> Array:
    """key − query of unsigned numbers: an earlier key seems to be far away, a near one farthest."""
    right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    q, k, v = (as_floats(x, "an input") for x in (q, k, v))
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / math.sqrt(q.shape[-1])
    distance = np.abs(np.subtract.outer(k_positions, q_positions).T)
    later = np.greater.outer(k_positions, q_positions).T
    scores = scores - np.asarray(slopes, dtype=np.float64)[:, None, None] * distance
    return (softmax(hide(scores, later)) @ v).astype(q.dtype)


def attention_in_place(
    q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
) -> Array:
    result = right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    if q.dtype.kind == "f":
        q /= math.sqrt(q.shape[-1])
    return result


def attention_of_the_blind(
    q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
) -> Array:
    """A query that sees nothing gets zeros, as if there were such an answer."""
    seen = np.less_equal.outer(k_positions, q_positions).any(axis=0)
    if seen.all() or seen.shape != q.shape[1:2]:
        return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    result = np.zeros_like(q)
    some = (q[:, seen], k, v, slopes, q_positions[seen], k_positions)
    result[:, seen] = right.alibi_attention(*some)
    return result


def attention_broadcasts(
    q: Array, k: Array, v: Array, slopes: Array, q_positions: Array, k_positions: Array
) -> Array:
    """What has length 1 is stretched to what is needed."""
    heads, n_q, d = np.broadcast_shapes(q.shape, (len(k), 1, 1), (len(v), 1, 1))
    n_k = max(k.shape[1], v.shape[1])
    stretched = (
        np.broadcast_to(x, shape).copy()
        for x, shape in (
            *((q, (heads, n_q, d)), (k, (heads, n_k, d)), (v, (heads, n_k, d))),
            *((slopes, (heads,)), (q_positions, (n_q,)), (k_positions, (n_k,))),
        )
    )
    return right.alibi_attention(*stretched)


ALIBI_ATTENTION = (
    Misconception(
        "alibi-attention-rewards-distance",
        attention_rewards_distance,
        "alibi_attention_worked_weights",
        "The further a key is away, the more it weighs: the bias is taken off where it should be "
        "added, or its sign is flipped before.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-without-mask",
        attention_without_mask,
        "alibi_attention_worked_weights",
        "Keys after the query have weight. ALiBi's penalty does not hide them, so the causal "
        "mask is still needed beside it.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-masks-rows",
        attention_masks_rows,
        "alibi_attention_worked_weights",
        "The mask is a triangle over places in the arrays. With a cache or permuted keys the "
        "place says nothing: compare the positions themselves.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-masks-own-key",
        attention_masks_own_key,
        "alibi_attention_worked_weights",
        "The key at the query's own position is hidden. Causal means no later key, and a token "
        "may look at itself, at distance 0.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-masks-weights",
        attention_masks_weights,
        "alibi_attention_worked_weights",
        "Your weights do not add up to 1: later keys took their share in the softmax and were "
        "crossed out afterwards. Hide their scores before it.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-of-rows",
        attention_of_rows,
        "alibi_attention_worked_weights",
        "The positions that were given are not used: distances and mask are those of 0, 1, 2, … "
        "A query that follows on a cache would stand at position 0.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-bias-of-rows",
        attention_bias_of_rows,
        "alibi_attention_worked_weights",
        "The mask goes by position, but the distances in your bias are those of places in the "
        "arrays, 0, 1, 2, … Take them from the positions too.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-without-bias",
        attention_without_bias,
        "alibi_attention_worked_weights",
        "Near and far keys of equal scores weigh the same: the bias is missing. It is added to the "
        "scores before the softmax.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-bias-after-softmax",
        attention_bias_after_softmax,
        "alibi_attention_worked_weights",
        "The bias was added to the weights, after the softmax, so that they are negative for far "
        "keys and do not add up to 1. It is a term on the scores, which the softmax then turns "
        "into weights.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-looks-ahead",
        attention_looks_ahead,
        "alibi_attention_worked_weights",
        "The mask is the wrong way round: keys before the query are hidden, and those after it are "
        "seen. A key is visible when its position is at most that of the query.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-hides-with-zero",
        attention_hides_with_zero,
        "alibi_attention_worked_weights",
        "Keys after the query have weight: their scores were set to 0, and the exponential of 0 is "
        "1. A score that shall have no weight must be minus infinity.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-not-normalised",
        attention_not_normalised,
        "alibi_attention_worked_weights",
        "Your weights do not add up to 1: the powers were not divided by their sum over the keys.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-attention-one-slope",
        attention_one_slope,
        "alibi_attention_worked_weights",
        "All heads fall off like the first one. Each head has its own slope; give the slopes two "
        "more axes, so that they run along the heads.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-attention-over-queries",
        attention_over_queries,
        "alibi_attention_worked_weights",
        "The weights add up to 1 over the queries. Each query shares itself out among the keys, "
        "so the softmax runs over the last axis.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-scales-the-bias",
        attention_scales_the_bias,
        "alibi_attention_worked_weights",
        "The bias was divided by √d too. Only the dot product is; the slopes were chosen for "
        "scores that have been scaled already.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-without-root",
        attention_without_root,
        "alibi_attention_scores",
        "The dot products are not divided by √d. ALiBi adds a term to the usual scores and "
        "leaves their scaling as it is.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-divides-by-d",
        attention_divides_by_d,
        "alibi_attention_scores",
        "The dot products are divided by d, the width of a head. It is its square root that they "
        "are divided by.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-attention-overflows",
        attention_overflows,
        "alibi_attention_large_scores",
        "The exponential of a score was taken as it is. Above 709 it overflows, and far below "
        "zero a whole row becomes 0 and is divided by 0. Take each row's largest score off first.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-hides-with-a-billion",
        attention_hides_with_a_billion,
        "alibi_attention_large_scores",
        "Later keys were hidden with a large negative number. A key that is far enough away, or "
        "unlike enough, has a score below that, and then the hidden one outweighs it. Nothing is "
        "below minus infinity.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-always-float64",
        attention_always_float64,
        "alibi_attention_keeps_dtype",
        "The numbers are right, but a small floating dtype came back as float64. Cast the result "
        "to the dtype of q, as the last step.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-in-the-input-dtype",
        attention_in_the_input_dtype,
        "alibi_attention_small_dtypes",
        "Scores were computed in the dtype of q, and in float16 a product of large vectors "
        "overflows before it is divided by √d: go up to a wider dtype first, and back at the end.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-positions-in-float32",
        attention_positions_in_float32,
        "alibi_attention_small_dtypes",
        "Positions were cast to float32 before they were subtracted, and beyond 16 million that "
        "has no room for odd numbers. Subtract them as they are: distances are small where it "
        "matters, and can be cast.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-into-integers",
        attention_into_integers,
        "alibi_attention_integers",
        "The fractions were cut off because the result has the integer dtype of the input. Turn "
        "integers into float64 first.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-whole-positions",
        attention_whole_positions,
        "alibi_attention_fractions",
        "Positions were cut down to whole numbers, which moves the penalties and lets a query "
        "see keys that stand just after it.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-wraps",
        attention_wraps,
        "alibi_attention_unsigned",
        "Unsigned positions wrapped round when they were subtracted, and near keys look far away. "
        "Make the positions floats, or signed, first.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-in-place",
        attention_in_place,
        "alibi_attention_leaves_input",
        "The queries were scaled in place, so the caller's array has changed. Divide the scores, "
        "or a copy.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-of-the-blind",
        attention_of_the_blind,
        "alibi_attention_blind_query",
        "A query that sees no key got zeros. There is nothing to average: raise a ValueError, or "
        "the mistake that led here goes on unseen.",
        "ex-alibi_attention",
    ),
    Misconception(
        "alibi-attention-broadcasts",
        attention_broadcasts,
        "alibi_attention_refuses_shapes",
        "An axis of length 1 was stretched, so that one head, key or slope served for all. Check "
        "the shapes before you compute.",
        "ex-alibi_attention",
    ),
)

# ---------------------------------------------------------------------------------- t5_bucket


def buckets_with(
    compute: Callable[[Array, bool, int, int], Array],
) -> Callable[..., Array]:
    """t5_bucket computed by compute(relative, bidirectional, n, max_distance), n per direction."""

    def bucket(
        relative_position: Array,
        bidirectional: bool = True,
        num_buckets: int = 32,
        max_distance: int = 128,
    ) -> Array:
        right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)
        n = num_buckets // 2 if bidirectional else num_buckets
        relative = np.asarray(relative_position).astype(np.int64)
        return compute(relative, bidirectional, n, max_distance)

    return bucket


def grown(distance: Array, n: int, max_distance: int) -> Array:
    """Where a distance stands in the logarithmic part, e + (n − e)·ln(d/e)/ln(max/e), unrounded."""
    exact = n // 2
    logs = np.log(np.maximum(distance, exact) / exact) / math.log(max_distance / exact)
    return exact + (n - exact) * logs


def placed(distance: Array, large: Array, later: Array, n: int) -> Array:
    """Exact up to n//2, `large` beyond, the second half for what is `later`."""
    return np.where(distance < n // 2, distance, large).astype(np.int64) + np.where(later, n, 0)


def away(relative: Array, bidirectional: bool) -> Array:
    return np.abs(relative) if bidirectional else np.maximum(-relative, 0)


@buckets_with
def bucket_query_minus_key(relative: Array, both: bool, n: int, far: int) -> Array:
    """x-transformers#10: relative position is key − query."""
    return right.t5_bucket(-relative, both, 2 * n if both else n, far)


@buckets_with
def bucket_same_to_both_sides(relative: Array, both: bool, n: int, far: int) -> Array:
    distance = away(relative, both)
    return placed(distance, np.minimum(grown(distance, n, far), n - 1), distance < 0, n)


@buckets_with
def bucket_not_halved(relative: Array, both: bool, n: int, far: int) -> Array:
    """Each direction is laid out as if it had all the buckets."""
    if not both:
        return right.t5_bucket(relative, both, n, far)
    distance = np.abs(relative)
    large = np.minimum(grown(distance, 2 * n, max(far, n + 1)), 2 * n - 1)
    return np.where(distance < n, distance, large).astype(np.int64) + np.where(relative > 0, n, 0)


@buckets_with
def bucket_rounded(relative: Array, both: bool, n: int, far: int) -> Array:
    distance = away(relative, both)
    large = np.minimum(np.rint(grown(distance, n, far)), n - 1)
    return placed(distance, large, both & (relative > 0), n)


@buckets_with
def bucket_not_clamped(relative: Array, both: bool, n: int, far: int) -> Array:
    distance = away(relative, both)
    return placed(distance, grown(distance, n, far), both & (relative > 0), n)


@buckets_with
def bucket_one_more_at_the_end(relative: Array, both: bool, n: int, far: int) -> Array:
    distance = away(relative, both)
    return placed(distance, np.minimum(grown(distance, n, far), n), both & (relative > 0), n)


@buckets_with
def bucket_from_one(relative: Array, both: bool, n: int, far: int) -> Array:
    return right.t5_bucket(relative, both, 2 * n if both else n, far) + 1


@buckets_with
def bucket_rounded_up(relative: Array, both: bool, n: int, far: int) -> Array:
    distance = away(relative, both)
    large = np.minimum(np.ceil(grown(distance, n, far)), n - 1)
    return placed(distance, large, both & (relative > 0), n)


@buckets_with
def bucket_earlier_keys_second(relative: Array, both: bool, n: int, far: int) -> Array:
    """relative < 0 where > 0 is meant."""
    if not both:
        return right.t5_bucket(relative, both, n, far)
    return right.t5_bucket(-relative, both, 2 * n, far)


@buckets_with
def bucket_zero_second(relative: Array, both: bool, n: int, far: int) -> Array:
    """relative >= 0 where > 0 is meant."""
    found = right.t5_bucket(relative, both, 2 * n if both else n, far)
    return found + np.where(both & (relative == 0), n, 0)


@buckets_with
def bucket_all_to_each_side(relative: Array, both: bool, n: int, far: int) -> Array:
    """num_buckets is never halved, neither for the layout nor for the second side."""
    if not both:
        return right.t5_bucket(relative, both, n, far)
    distance = np.abs(relative)
    large = np.minimum(grown(distance, 2 * n, max(far, n + 1)), 2 * n - 1)
    return placed(distance, large, relative > 0, 2 * n)


@buckets_with
def bucket_later_keys_counted(relative: Array, both: bool, n: int, far: int) -> Array:
    """max(relative, 0) in one direction: the past is what comes out as 0."""
    return right.t5_bucket(relative if both else -relative, both, 2 * n if both else n, far)


@buckets_with
def bucket_straight(relative: Array, both: bool, n: int, far: int) -> Array:
    """The far buckets are equally wide, where they should grow with the distance."""
    distance, exact = away(relative, both), n // 2
    steps = (n - exact) * (distance - exact) / (far - exact)
    large = np.minimum(exact + np.maximum(steps, 0), n - 1)
    return placed(distance, large, both & (relative > 0), n)


@buckets_with
def bucket_later_keys_by_distance(relative: Array, both: bool, n: int, far: int) -> Array:
    """In one direction too, a later key falls into the bucket of its distance."""
    distance = np.abs(relative)
    large = np.minimum(grown(distance, n, far), n - 1)
    return placed(distance, large, both & (relative > 0), n)


@buckets_with
def bucket_fixed_reach(relative: Array, both: bool, n: int, far: int) -> Array:
    return right.t5_bucket(relative, both, 2 * n if both else n, max(128, n // 2 + 1))


@buckets_with
def bucket_fixed_number(relative: Array, both: bool, n: int, far: int) -> Array:
    return right.t5_bucket(relative, both, 32, max(far, 17))


def bucket_always_both_ways(
    relative_position: Array,
    bidirectional: bool = True,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> Array:
    right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)
    buckets = max(num_buckets // 2 * 2, 4)
    return right.t5_bucket(relative_position, True, buckets, max_distance)


def bucket_always_one_way(
    relative_position: Array,
    bidirectional: bool = True,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> Array:
    right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)
    reach = max(max_distance, num_buckets // 2 + 1)
    return right.t5_bucket(relative_position, False, num_buckets, reach)


@buckets_with
def bucket_flattened(relative: Array, both: bool, n: int, far: int) -> Array:
    return right.t5_bucket(relative, both, 2 * n if both else n, far).reshape(-1)


@buckets_with
def bucket_floats(relative: Array, both: bool, n: int, far: int) -> Array:
    return right.t5_bucket(relative, both, 2 * n if both else n, far) * 1.0


@buckets_with
def bucket_in_32_bits(relative: Array, both: bool, n: int, far: int) -> Array:
    return right.t5_bucket(relative.astype(np.int32), both, 2 * n if both else n, far)


def bucket_needs_an_axis(
    relative_position: Array,
    bidirectional: bool = True,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> Array:
    """A plain number is taken for a list of one."""
    result = right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)
    return result if isinstance(relative_position, np.ndarray) else np.atleast_1d(result)


def bucket_in_place(
    relative_position: Array,
    bidirectional: bool = True,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> Array:
    result = right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)
    if isinstance(relative_position, np.ndarray) and relative_position.ndim:
        np.abs(relative_position, out=relative_position)
    return result


def bucket_without_room(
    relative_position: Array,
    bidirectional: bool = True,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> Array:
    """Nobody looks whether the logarithm of max_distance/e is positive."""
    exact = num_buckets // (4 if bidirectional else 2)
    reach = max(max_distance, exact + 1)
    return right.t5_bucket(relative_position, bidirectional, num_buckets, reach)


T5_BUCKET = (
    Misconception(
        "t5-bucket-query-minus-key",
        bucket_query_minus_key,
        "t5_bucket_both_directions",
        "Before and after are exchanged. The relative position is key − query: negative for a "
        "key before its query, and only positive ones get the second half of the buckets.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-same-to-both-sides",
        bucket_same_to_both_sides,
        "t5_bucket_both_directions",
        "A key before the query and one equally far after it share a bucket. Bidirectional "
        "attention gives later keys the second half of the buckets.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-not-halved",
        bucket_not_halved,
        "t5_bucket_both_directions",
        "Each direction was laid out as if it had all the buckets. Bidirectional, it has half of "
        "them, and half of those are exact.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-rounded",
        bucket_rounded,
        "t5_bucket_both_directions",
        "The logarithm was rounded to the nearest bucket. Round down: a bucket begins where its "
        "whole number is reached.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-one-more-at-the-end",
        bucket_one_more_at_the_end,
        "t5_bucket_both_directions",
        "What is far fell one bucket behind the last one. N buckets are numbered from 0, so the "
        "last is N − 1.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-from-one",
        bucket_from_one,
        "t5_bucket_both_directions",
        "Your buckets are numbered from 1. They number rows of a table, so the first one, for "
        "distance 0, is bucket 0.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-rounded-up",
        bucket_rounded_up,
        "t5_bucket_both_directions",
        "The logarithm was rounded up, so a bucket begins one distance behind its edge. Round "
        "down: a bucket begins where its whole number is reached.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-earlier-keys-second",
        bucket_earlier_keys_second,
        "t5_bucket_both_directions",
        "Keys before their query got the second half of the buckets. The relative position is key "
        "− query, and the half is for those after it, where that is positive.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-zero-second",
        bucket_zero_second,
        "t5_bucket_both_directions",
        "The query's own position fell among the keys after it. It is neither before nor after, "
        "and belongs to bucket 0.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-all-to-each-side",
        bucket_all_to_each_side,
        "t5_bucket_both_directions",
        "There are twice as many buckets as num_buckets says: each side got all of them. "
        "Bidirectional, a side has half, and the later one begins at that half.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-not-clamped",
        bucket_not_clamped,
        "t5_bucket_both_directions",
        "Distances beyond max_distance run out of their direction's buckets. The last bucket "
        "holds everything that is far.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-straight",
        bucket_straight,
        "t5_bucket_both_directions",
        "Your far buckets are all equally wide. They grow with the distance, since what stands "
        "far away needs less precision: use the logarithm.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-always-one-way",
        bucket_always_one_way,
        "t5_bucket_both_directions",
        "bidirectional is never looked at: all keys after the query share bucket 0, as in a "
        "decoder. By default both directions count, with half of the buckets for each.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-always-both-ways",
        bucket_always_both_ways,
        "t5_bucket_one_direction",
        "bidirectional is never looked at: with False too, half of the buckets went to keys after "
        "the query. A decoder never sees those, and has all the buckets for what comes before.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-later-keys-by-distance",
        bucket_later_keys_by_distance,
        "t5_bucket_one_direction",
        "With one direction a key after the query got a bucket of its own. A causal decoder "
        "never sees such keys; they all share bucket 0.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-later-keys-counted",
        bucket_later_keys_counted,
        "t5_bucket_one_direction",
        "With one direction the keys before the query all fell into bucket 0, and those after it "
        "have buckets. A decoder looks back, where key − query is negative: turn the sign first.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-fixed-reach",
        bucket_fixed_reach,
        "t5_bucket_other_sizes",
        "max_distance is never used: 128 is only its default. It says where the last bucket ends "
        "its growth.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-fixed-number",
        bucket_fixed_number,
        "t5_bucket_other_sizes",
        "num_buckets is never used: 32 is only its default.",
        "alibi-t5",
    ),
    Misconception(
        "t5-bucket-flattened",
        bucket_flattened,
        "t5_bucket_shape",
        "The buckets came back as one flat row. Keep the shape of the input: a table of "
        "distances becomes a table of buckets.",
        "ex-t5_bucket",
    ),
    Misconception(
        "t5-bucket-floats",
        bucket_floats,
        "t5_bucket_shape",
        "The buckets are floats. They number the rows of a table of biases, so make them "
        "integers after rounding down.",
        "ex-t5_bucket",
    ),
    Misconception(
        "t5-bucket-needs-an-axis",
        bucket_needs_an_axis,
        "t5_bucket_single_integer",
        "A single number came back as a list of one. It has no axis, and its bucket has none "
        "either.",
        "ex-t5_bucket",
    ),
    Misconception(
        "t5-bucket-in-32-bits",
        bucket_in_32_bits,
        "t5_bucket_huge",
        "Distances of billions were squeezed into 32 bits and came out as others. Keep the "
        "integers as wide as they are, or limit them first.",
        "ex-t5_bucket",
    ),
    Misconception(
        "t5-bucket-in-place",
        bucket_in_place,
        "t5_bucket_leaves_input",
        "The caller's relative positions lost their signs in place. Take the absolute value into "
        "a new array.",
        "ex-t5_bucket",
    ),
    Misconception(
        "t5-bucket-without-room",
        bucket_without_room,
        "t5_bucket_refuses_no_room",
        "A max_distance that the exact buckets already reach leaves nothing for the logarithm to "
        "cover. Say so with a ValueError.",
        "ex-t5_bucket",
    ),
)

# -------------------------------------------------------------------------------- shaw_scores


def shaw_with(
    score: Callable[[Array, Array, Array, Array, float], Array],
) -> Callable[..., Array]:
    """shaw_scores by score(q, k, relative_keys, key − query, √d), the arrays in float64."""

    def scores(
        q: Array, k: Array, relative_keys: Array, q_positions: Array, k_positions: Array
    ) -> Array:
        dtype = right.shaw_scores(q, k, relative_keys, q_positions, k_positions).dtype
        q, k, a = (np.asarray(x, dtype=np.float64) for x in (q, k, relative_keys))
        apart = right.signed_distances(q_positions, k_positions).astype(np.int64)
        with np.errstate(over="ignore"):  # scores that no root made smaller, in float16
            return score(q, k, a, apart, math.sqrt(q.shape[1])).astype(dtype)

    return scores


def on_rows(q: Array, a: Array, rows: Array) -> Array:
    """q·a for the row of each pair."""
    return np.take_along_axis(q @ a.T, rows, axis=1)


@shaw_with
def shaw_query_minus_key(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    K = len(a) // 2
    return (q @ k.T + on_rows(q, a, np.clip(-apart, -K, K) + K)) / root


@shaw_with
def shaw_without_shift(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    """The clipped distance itself numbers the row: below zero it counts from the end."""
    K = len(a) // 2
    return (q @ k.T + on_rows(q, a, np.clip(apart, -K, K) % len(a))) / root


@shaw_with
def shaw_wraps_far(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    """Distances beyond K begin again at the other end."""
    return (q @ k.T + on_rows(q, a, (apart + len(a) // 2) % len(a))) / root


@shaw_with
def shaw_drops_far(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    """Distances beyond K get no vector at all."""
    K = len(a) // 2
    term = on_rows(q, a, np.clip(apart, -K, K) + K)
    return (q @ k.T + np.where(np.abs(apart) > K, 0.0, term)) / root


@shaw_with
def shaw_clips_early(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    """Clipped at K − 1, so that the first and the last row are never read."""
    K = len(a) // 2
    reach = max(K - 1, 0)
    return (q @ k.T + on_rows(q, a, np.clip(apart, -reach, reach) + K)) / root


@shaw_with
def shaw_on_the_query(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    K = len(a) // 2
    rows = np.clip(apart, -K, K) + K
    return (q @ k.T + on_rows(k, a, rows.T).T) / root


@shaw_with
def shaw_unscaled_term(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    K = len(a) // 2
    return q @ k.T / root + on_rows(q, a, np.clip(apart, -K, K) + K)


@shaw_with
def shaw_without_root(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    K = len(a) // 2
    return q @ k.T + on_rows(q, a, np.clip(apart, -K, K) + K)


@shaw_with
def shaw_as_a_bias(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    """T5's way: the table's row is summed and added, whatever the query asks."""
    K = len(a) // 2
    return (q @ k.T + a.sum(axis=1)[np.clip(apart, -K, K) + K]) / root


@shaw_with
def shaw_term_alone(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    K = len(a) // 2
    return on_rows(q, a, np.clip(apart, -K, K) + K) / root


@shaw_with
def shaw_content_alone(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    return q @ k.T / root


@shaw_with
def shaw_without_side(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    """The absolute distance picks the row, from the middle on."""
    K = len(a) // 2
    return (q @ k.T + on_rows(q, a, np.minimum(np.abs(apart), K) + K)) / root


@shaw_with
def shaw_keys_first(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    K = len(a) // 2
    return ((q @ k.T + on_rows(q, a, np.clip(apart, -K, K) + K)) / root).T


@shaw_with
def shaw_fixed_reach(q: Array, k: Array, a: Array, apart: Array, root: float) -> Array:
    """The clipping is at ±3 where the table would allow more."""
    K = len(a) // 2
    reach = min(K, 3)
    return (q @ k.T + on_rows(q, a, np.clip(apart, -reach, reach) + K)) / root


def shaw_of_rows(
    q: Array, k: Array, relative_keys: Array, q_positions: Array, k_positions: Array
) -> Array:
    right.shaw_scores(q, k, relative_keys, q_positions, k_positions)
    return right.shaw_scores(q, k, relative_keys, np.arange(len(q)), np.arange(len(k)))


def shaw_always_float64(
    q: Array, k: Array, relative_keys: Array, q_positions: Array, k_positions: Array
) -> Array:
    wide = np.asarray(q, dtype=np.float64)
    return right.shaw_scores(wide, k, relative_keys, q_positions, k_positions)


def shaw_in_the_input_dtype(
    q: Array, k: Array, relative_keys: Array, q_positions: Array, k_positions: Array
) -> Array:
    dtype = right.shaw_scores(q, k, relative_keys, q_positions, k_positions).dtype
    q, k, a = (np.asarray(x).astype(dtype) for x in (q, k, relative_keys))
    apart, K = right.signed_distances(q_positions, k_positions).astype(np.int64), len(a) // 2
    with np.errstate(over="ignore", invalid="ignore"):
        scores = q @ k.T + on_rows(q, a, np.clip(apart, -K, K) + K)
        return (scores / dtype.type(math.sqrt(q.shape[1]))).astype(dtype)


def shaw_cuts_distances(
    q: Array, k: Array, relative_keys: Array, q_positions: Array, k_positions: Array
) -> Array:
    apart = [np.asarray(p) for p in (q_positions, k_positions)]
    if all(p.dtype.kind == "f" for p in apart):
        apart = [np.floor(p).astype(np.int64) for p in apart]
    return right.shaw_scores(q, k, relative_keys, *apart)


def shaw_into_integers(
    q: Array, k: Array, relative_keys: Array, q_positions: Array, k_positions: Array
) -> Array:
    result = right.shaw_scores(q, k, relative_keys, q_positions, k_positions)
    return result.astype(np.asarray(q).dtype)


def shaw_wraps_unsigned(
    q: Array, k: Array, relative_keys: Array, q_positions: Array, k_positions: Array
) -> Array:
    scores = right.shaw_scores(q, k, relative_keys, q_positions, k_positions)
    K = len(relative_keys) // 2
    apart = np.subtract.outer(q_positions, k_positions)
    if apart.dtype.kind != "u":
        return scores
    wide, a = np.asarray(q, dtype=np.float64), np.asarray(relative_keys, dtype=np.float64)
    back = np.minimum(np.negative(apart).astype(np.int64), K) + K  # never below zero
    return (wide @ np.asarray(k).T + on_rows(wide, a, back)) / math.sqrt(wide.shape[1])


def shaw_in_place(
    q: Array, k: Array, relative_keys: Array, q_positions: Array, k_positions: Array
) -> Array:
    result = right.shaw_scores(q, k, relative_keys, q_positions, k_positions)
    if isinstance(k_positions, np.ndarray) and k_positions.ndim:
        k_positions -= k_positions[0]
    return result


def shaw_even_rows(
    q: Array, k: Array, relative_keys: Array, q_positions: Array, k_positions: Array
) -> Array:
    """The last row of an even table is left unused."""
    rows = (len(relative_keys) - 1) // 2 * 2 + 1
    table = relative_keys[:rows] if rows > 0 else np.zeros((1, q.shape[1]))
    return right.shaw_scores(q, k, table, q_positions, k_positions)


def shaw_broadcasts(
    q: Array, k: Array, relative_keys: Array, q_positions: Array, k_positions: Array
) -> Array:
    """One position serves for all rows, and one coordinate for all."""
    width = max(q.shape[1], k.shape[1], relative_keys.shape[1])
    q, k, a = (np.broadcast_to(x, (len(x), width)) for x in (q, k, relative_keys))
    q_at, k_at = (np.broadcast_to(p, (len(x),)) for p, x in ((q_positions, q), (k_positions, k)))
    return right.shaw_scores(q, k, a, q_at, k_at)


SHAW_SCORES = (
    Misconception(
        "shaw-scores-query-minus-key",
        shaw_query_minus_key,
        "shaw_scores_rows",
        "Before and after are exchanged: the rows were numbered by query − key. Row 0 belongs to "
        "keys far before the query, so the distance is key − query.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-without-shift",
        shaw_without_shift,
        "shaw_scores_rows",
        "The clipped distance was used as a row number as it is. Below zero that counts from the "
        "end of the table; move it up by K, so that distance 0 reads the middle row.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-wraps-far",
        shaw_wraps_far,
        "shaw_scores_rows",
        "Distances beyond K came round to the other end of the table. Clip them first: all that "
        "is far to one side shares that side's last row.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-drops-far",
        shaw_drops_far,
        "shaw_scores_rows",
        "Keys more than K away got no vector. Clipping does not drop them: they share the row of "
        "distance K on their side.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-clips-early",
        shaw_clips_early,
        "shaw_scores_rows",
        "The distances were clipped one too early, at K − 1: the first row of the table and the "
        "last are never read. K itself still has rows of its own, 0 and 2K.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-of-rows",
        shaw_of_rows,
        "shaw_scores_rows",
        "The distances are those of places in the arrays, whatever positions were given. Take "
        "them from the positions.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-without-side",
        shaw_without_side,
        "shaw_scores_rows",
        "A key before the query and one equally far after it read the same row. The sign stays: "
        "the rows below the middle are for keys before the query.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-content-alone",
        shaw_content_alone,
        "shaw_scores_rows",
        "The vectors of the distances are missing: only the keys were scored. Each pair adds the "
        "product of its query with its row of the table.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-keys-first",
        shaw_keys_first,
        "shaw_scores_rows",
        "Rows and columns are exchanged: the result is (n_k, n_q). Scores have one row for each "
        "query and one column for each key.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-on-the-query",
        shaw_on_the_query,
        "shaw_scores_rows",
        "The vector was added to the query, and meets the key. It belongs to the key: what the "
        "query asks is compared with it.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-as-a-bias",
        shaw_as_a_bias,
        "shaw_scores_rows",
        "The row's numbers were summed up and added to the score, as if it were a bias. Shaw's "
        "term is a dot product with the query, so each query feels a distance in its own way.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-unscaled-term",
        shaw_unscaled_term,
        "shaw_scores_rows",
        "Only the product with the key is divided by √d. The vector is part of the key, so its "
        "product with the query is divided too.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-without-root",
        shaw_without_root,
        "shaw_scores_rows",
        "The scores are not divided by √d, as those of dot-product attention always are.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-term-alone",
        shaw_term_alone,
        "shaw_scores_content",
        "The keys themselves are missing: only the vectors of the distances are scored. Both are "
        "added before the product with the query.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-fixed-reach",
        shaw_fixed_reach,
        "shaw_scores_any_reach",
        "The distance is clipped at a number of your own. The table says how far it reaches: K "
        "follows from its rows.",
        "alibi-shaw",
    ),
    Misconception(
        "shaw-scores-always-float64",
        shaw_always_float64,
        "shaw_scores_keeps_dtype",
        "The numbers are right, but a small floating dtype came back as float64. Cast the scores "
        "to the dtype of q, as the last step.",
        "ex-shaw_scores",
    ),
    Misconception(
        "shaw-scores-in-the-input-dtype",
        shaw_in_the_input_dtype,
        "shaw_scores_large_products",
        "The scores were computed in the dtype of q, and in float16 a product of large vectors "
        "overflows before it is divided by √d: go up to a wider dtype first, and back at the end.",
        "ex-shaw_scores",
    ),
    Misconception(
        "shaw-scores-cuts-distances",
        shaw_cuts_distances,
        "shaw_scores_fractions",
        "A distance that is no whole number was cut to one, and read the row of another distance. "
        "There is no row between two rows: raise.",
        "ex-shaw_scores",
    ),
    Misconception(
        "shaw-scores-into-integers",
        shaw_into_integers,
        "shaw_scores_integers",
        "The fractions were cut off because the result has the integer dtype of the input. Turn "
        "integers into float64 first.",
        "ex-shaw_scores",
    ),
    Misconception(
        "shaw-scores-wraps-unsigned",
        shaw_wraps_unsigned,
        "shaw_scores_unsigned",
        "Unsigned positions wrapped round, so that keys before the query look far after it. Make "
        "the positions signed before you subtract.",
        "ex-shaw_scores",
    ),
    Misconception(
        "shaw-scores-in-place",
        shaw_in_place,
        "shaw_scores_leaves_input",
        "The caller's positions were shifted in place. Subtract into a new array.",
        "ex-shaw_scores",
    ),
    Misconception(
        "shaw-scores-even-rows",
        shaw_even_rows,
        "shaw_scores_refuses_even_rows",
        "A table with an even number of rows was taken, though it has no middle row for distance "
        "0. Refuse it: it was made for something else.",
        "ex-shaw_scores",
    ),
    Misconception(
        "shaw-scores-broadcasts",
        shaw_broadcasts,
        "shaw_scores_refuses_shapes",
        "An axis of length 1 was stretched, so that one position or coordinate served for all. "
        "Check the shapes before you compute.",
        "ex-shaw_scores",
    ),
)

# --------------------------------------------------------------------------------- fixed_bias


def one_head(several: Callable[..., Array]) -> Callable[..., Array]:
    """The same wrong belief as in alibi_bias, for a single slope."""

    def bias(q_positions: Array, k_positions: Array, slope: float) -> Array:
        return several(q_positions, k_positions, np.array([slope]))[0]

    return bias


def fixed_penalty(q_positions: Array, k_positions: Array, slope: float) -> Array:
    """Distances with the right slope and the wrong sign: what the first report tells of."""
    return -right.fixed_bias(q_positions, k_positions, slope)


def fixed_with_head_axis(q_positions: Array, k_positions: Array, slope: float) -> Array:
    return right.fixed_bias(q_positions, k_positions, slope)[None]


def fixed_minus_the_key(q_positions: Array, k_positions: Array, slope: float) -> Array:
    """The key-only form with its sign turned, as if the sign were all that is wrong with it."""
    return -bias_of_the_key_alone(q_positions, k_positions, np.array([slope]))[0]


def fixed_shifted_rows(q_positions: Array, k_positions: Array, slope: float) -> Array:
    """The key-only form, with each row moved so that its largest number is 0."""
    bias = bias_of_the_key_alone(q_positions, k_positions, np.array([slope]))[0]
    return bias - bias.max(axis=1, keepdims=True)


def fixed_in_place(q_positions: Array, k_positions: Array, slope: float) -> Array:
    result = right.fixed_bias(q_positions, k_positions, slope)
    if isinstance(k_positions, np.ndarray) and k_positions.dtype.kind == "f":
        k_positions *= slope
    return result


def fixed_any_shape(q_positions: Array, k_positions: Array, slope: float) -> Array:
    return right.fixed_bias(np.ravel(q_positions), np.ravel(k_positions), slope)


def fixed_as_reported(q_positions: Array, k_positions: Array, slope: float) -> Array:
    """attention-gym#86: the function of report A, slope times query minus key."""
    right.fixed_bias(q_positions, k_positions, slope)
    return -slope * right.signed_distances(q_positions, k_positions)


FIXED_BIAS = (
    Misconception(
        "fixed-bias-as-reported",
        fixed_as_reported,
        "fixed_bias_worked_penalties",
        "This is the function that report A quotes: keys before the query are rewarded, the more "
        "the further they are away. That one is the bug, and it needs more than its sign turned.",
        "alibi-bidirectional",
    ),
    Misconception(
        "fixed-bias-rewards-distance",
        fixed_penalty,
        "fixed_bias_worked_penalties",
        "The sign is still flipped: the further a key is away, to either side, the more it is "
        "preferred. A penalty is negative.",
        "alibi-bias",
    ),
    Misconception(
        "fixed-bias-of-the-key-alone",
        one_head(bias_of_the_key_alone),
        "fixed_bias_worked_penalties",
        "The bias still depends on the key alone. A causal softmax does not mind, but one that "
        "sees both sides is drawn to the last token, whichever query asks.",
        "alibi-bidirectional",
    ),
    Misconception(
        "fixed-bias-minus-the-key",
        fixed_minus_the_key,
        "fixed_bias_worked_penalties",
        "The bias is minus the slope times the key's position, whichever query asks. Turning the "
        "sign is not enough: it is the distance between the two that costs.",
        "alibi-bidirectional",
    ),
    Misconception(
        "fixed-bias-key-alone-shifted",
        fixed_shifted_rows,
        "fixed_bias_both_sides",
        "Each row is only shifted, which no softmax feels: keys after the query are still "
        "preferred to the query's own. The bias must fall to both sides of it.",
        "alibi-shift",
    ),
    Misconception(
        "fixed-bias-signed",
        one_head(bias_signed),
        "fixed_bias_both_sides",
        "Keys after the query are rewarded, the more the further they are away. Looking to both "
        "sides, the distance needs its absolute value.",
        "alibi-bidirectional",
    ),
    Misconception(
        "fixed-bias-later-free",
        one_head(bias_later_free),
        "fixed_bias_both_sides",
        "Keys after the query cost nothing, however far they are. In the bidirectional case they "
        "cost what keys before it do.",
        "alibi-bidirectional",
    ),
    Misconception(
        "fixed-bias-masks-later-keys",
        one_head(bias_masks_later_keys),
        "fixed_bias_both_sides",
        "Keys after the query are masked. This bias is for attention that looks to "
        "both sides, so nothing is hidden.",
        "alibi-bidirectional",
    ),
    Misconception(
        "fixed-bias-of-rows",
        one_head(bias_of_rows),
        "fixed_bias_worked_penalties",
        "The distances are those of places in the arrays, whatever positions were given. Take "
        "them from the positions.",
        "alibi-bias",
    ),
    Misconception(
        "fixed-bias-keys-first",
        one_head(bias_keys_first),
        "fixed_bias_worked_penalties",
        "Rows and columns are exchanged. Scores have one row for each query and one column for "
        "each key, and the bias is added to them.",
        "alibi-bias",
    ),
    Misconception(
        "fixed-bias-head-axis",
        fixed_with_head_axis,
        "fixed_bias_worked_penalties",
        "The result has an axis for heads. With a single slope it is one table, (n_q, n_k).",
        "alibi-bias",
    ),
    Misconception(
        "fixed-bias-whole-positions",
        one_head(bias_whole_positions),
        "fixed_bias_fractions",
        "Positions were cut down to whole numbers. A position may be a fraction, and half a token "
        "costs half the slope.",
        "ex-fixed_bias",
    ),
    Misconception(
        "fixed-bias-wraps",
        one_head(bias_wraps),
        "fixed_bias_unsigned",
        "Unsigned positions wrapped round: 3 − 5 became a huge number. Make them floats, or "
        "signed, before you subtract.",
        "ex-fixed_bias",
    ),
    Misconception(
        "fixed-bias-float32",
        one_head(bias_float32),
        "fixed_bias_float64",
        "The bias was computed in float32, where positions beyond 16 million have no neighbours "
        "any more. Tables are float64 in this book.",
        "ex-fixed_bias",
    ),
    Misconception(
        "fixed-bias-in-place",
        fixed_in_place,
        "fixed_bias_leaves_input",
        "The caller's positions were multiplied in place. Build the bias as a new array.",
        "ex-fixed_bias",
    ),
    Misconception(
        "fixed-bias-any-shape",
        fixed_any_shape,
        "fixed_bias_refuses",
        "Positions of any shape were flattened into one row. A batch of positions would mix its "
        "rows that way: refuse what is not 1-D.",
        "ex-fixed_bias",
    ),
)

# --------------------------------------------------------------------------------- alibi_sdpa


def sdpa_with(
    mask: Callable[[Tensor, int, int, int], Tensor],
) -> Callable[..., Tensor]:
    """alibi_sdpa whose float32 mask is mask(slopes, n_q, n_k, offset)."""

    def attend(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0) -> Tensor:
        right_torch.alibi_sdpa(q, k, v, slopes, offset)  # refuses the bad
        return through(q, k, v, mask(slopes, q.shape[2], k.shape[2], offset))

    return attend


def through(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float | None = None) -> Tensor:
    """torch's attention in float32 or better with this mask, whatever autocast says."""
    dtype = torch.promote_types(q.dtype, torch.float32)
    wide_q, wide_k, wide_v = (x.to(dtype) for x in (q, k, v))
    with torch.autocast(q.device.type, enabled=False):
        out = scaled_dot_product_attention(
            wide_q, wide_k, wide_v, attn_mask=mask.to(dtype), scale=scale
        )
    return out.to(q.dtype)


def right_mask(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    return right_torch.causal_bias(slopes.float(), n_q, n_k, offset, torch.float32)


def apart(n_q: int, n_k: int, offset: int) -> Tensor:
    """Key position − query position."""
    return torch.arange(n_k) - torch.arange(offset, offset + n_q)[:, None]


@sdpa_with
def sdpa_offset_ignored(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    """candle#899: every decoded query is treated as if it stood at position 0.

    A bias that knows the offset under a mask that does not gives the same: a row is only shifted.
    """
    return right_mask(slopes, n_q, n_k, 0)


@sdpa_with
def sdpa_queries_last(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    return right_mask(slopes, n_q, n_k, n_k - n_q)


@sdpa_with
def sdpa_offset_one_high(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    """The distances are those of the next token; only the mask knows the offset rightly."""
    mask = apart(n_q, n_k, offset + (offset > 0))
    return (slopes[:, None, None] * mask).masked_fill(mask > 0, -math.inf)


@sdpa_with
def sdpa_rewards_distance(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    """attention-gym#86: the sign was flipped."""
    return -right_mask(-slopes, n_q, n_k, offset).nan_to_num(posinf=0, neginf=-math.inf).neg()


@sdpa_with
def sdpa_without_mask(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    return -slopes[:, None, None] * apart(n_q, n_k, offset).abs()


@sdpa_with
def sdpa_own_key_hidden(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    """>= for >: the first query of a text sees nothing at all."""
    distance = apart(n_q, n_k, offset)
    return (slopes[:, None, None] * distance).masked_fill(distance >= 0, -math.inf)


@sdpa_with
def sdpa_own_key_hidden_by_a_number(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    """The same with a large number for −∞: the first query gets the mean of all values."""
    distance = apart(n_q, n_k, offset)
    lowest = torch.finfo(torch.float32).min
    return (slopes[:, None, None] * distance).masked_fill(distance >= 0, lowest)


@sdpa_with
def sdpa_bias_without_offset(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    """The mask knows the offset; the distances are those of queries that begin at 0."""
    bias = -slopes[:, None, None] * apart(n_q, n_k, 0).abs()
    return bias.masked_fill(apart(n_q, n_k, offset) > 0, -math.inf)


@sdpa_with
def sdpa_without_bias(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    """is_causal=True, and no more: it numbers the queries from 0."""
    return right_mask(0 * slopes, n_q, n_k, 0)


@sdpa_with
def sdpa_later_rewarded(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    """No mask, and slope times key minus query, which is a reward after the query."""
    return slopes[:, None, None] * apart(n_q, n_k, offset)


@sdpa_with
def sdpa_one_slope(slopes: Tensor, n_q: int, n_k: int, offset: int) -> Tensor:
    return right_mask(slopes[:1].expand(len(slopes)), n_q, n_k, offset)


def sdpa_without_root(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0) -> Tensor:
    right_torch.alibi_sdpa(q, k, v, slopes, offset)
    return through(q, k, v, right_mask(slopes, q.shape[2], k.shape[2], offset), scale=1.0)


def sdpa_bias_divided_by_root(
    q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0
) -> Tensor:
    right_torch.alibi_sdpa(q, k, v, slopes, offset)
    mask = right_mask(slopes, q.shape[2], k.shape[2], offset) / math.sqrt(q.shape[3])
    return through(q, k, v, mask)


def sdpa_positions_in_input_dtype(
    q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0
) -> Tensor:
    """Falcon: slope times position in bfloat16, which has no odd numbers above 256."""
    right_torch.alibi_sdpa(q, k, v, slopes, offset)
    q_at = torch.arange(offset, offset + q.shape[2]).to(q.dtype)
    k_at = torch.arange(k.shape[2]).to(q.dtype)
    bias = slopes.to(q.dtype)[:, None, None] * (k_at - q_at[:, None])
    hidden = apart(q.shape[2], k.shape[2], offset) > 0
    return through(q, k, v, bias.masked_fill(hidden, -math.inf))


def sdpa_key_bias_cast(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0) -> Tensor:
    """The key-only form, exact in float32, and then cast for the mask: it grows with the text."""
    right_torch.alibi_sdpa(q, k, v, slopes, offset)
    n_q, n_k = q.shape[2], k.shape[2]
    bias = (slopes.float()[:, None, None] * torch.arange(n_k)).expand(-1, n_q, -1)
    return through(q, k, v, bias.masked_fill(apart(n_q, n_k, offset) > 0, -math.inf).to(q.dtype))


def sdpa_bias_in_input_dtype(
    q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0
) -> Tensor:
    """The distance is exact, and then slope and distance are multiplied in bfloat16."""
    right_torch.alibi_sdpa(q, k, v, slopes, offset)
    distance = apart(q.shape[2], k.shape[2], offset)
    bias = slopes.to(q.dtype)[:, None, None] * distance.to(q.dtype)
    return through(q, k, v, bias.masked_fill(distance > 0, -math.inf))


def sdpa_float32_out(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0) -> Tensor:
    """The precise result is not brought back to where it came from."""
    right_torch.alibi_sdpa(q, k, v, slopes, offset)
    out = right_torch.alibi_sdpa(q.float(), k.float(), v.float(), slopes, offset)
    return out if q.dtype == torch.bfloat16 else out.to(q.dtype)


def sdpa_no_float64(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0) -> Tensor:
    out = right_torch.alibi_sdpa(q, k, v, slopes, offset)
    return out.float() if q.dtype == torch.float64 else out


def sdpa_autocast_dtype(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0) -> Tensor:
    """torch's attention runs in bfloat16 under autocast, and gives that back."""
    out = right_torch.alibi_sdpa(q, k, v, slopes, offset)
    kind = q.device.type
    return out.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else out


def sdpa_matrix_product(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0) -> Tensor:
    """diffusers#13920, for a bias: autocast makes a matrix product bfloat16, whatever is cast."""
    right_torch.alibi_sdpa(q, k, v, slopes, offset)
    distance = apart(q.shape[2], k.shape[2], offset)
    bias = slopes.float()[:, None] @ distance.float().reshape(1, -1)
    bias = bias.float().unflatten(1, distance.shape)
    return through(q, k, v, bias.masked_fill(distance > 0, -math.inf))


def sdpa_in_place(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0) -> Tensor:
    out = right_torch.alibi_sdpa(q, k, v, slopes, offset)
    q *= q.shape[-1] ** -0.5
    return out


def sdpa_any_offset(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0) -> Tensor:
    """Past either end, the nearest place where all queries have keys."""
    n_q = min(q.shape[2], k.shape[2])
    return right_torch.alibi_sdpa(
        q[:, :, :n_q], k, v, slopes, min(max(offset, 0), k.shape[2] - n_q)
    )


def sdpa_slopes_stretched(
    q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0
) -> Tensor:
    if slopes.numel() == 1:
        slopes = slopes.reshape(1).expand(q.shape[1])
    return right_torch.alibi_sdpa(q, k, v, slopes, offset)


def sdpa_batch_stretched(
    q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0
) -> Tensor:
    batch = max(len(q), len(k), len(v))
    q, k, v = (x.expand(batch, -1, -1, -1) for x in (q, k, v))
    return right_torch.alibi_sdpa(q, k, v, slopes, offset)


def sdpa_without_gradients(
    q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0
) -> Tensor:
    return right_torch.alibi_sdpa(q, k, v, slopes, offset).detach()


ALIBI_SDPA = (
    Misconception(
        "alibi-sdpa-rewards-distance",
        sdpa_rewards_distance,
        "alibi_sdpa_worked_weights",
        "The further a key is away, the more it weighs: the sign of the bias is flipped.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-sdpa-without-mask",
        sdpa_without_mask,
        "alibi_sdpa_worked_weights",
        "Keys after the query have weight. The penalty does not hide them: put minus infinity "
        "there, in the same mask.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-own-key-hidden",
        sdpa_own_key_hidden,
        "alibi_sdpa_worked_weights",
        "The key at the query's own position is hidden, and the first query of a text sees "
        "nothing. Causal means no later key: a token may look at itself, at distance 0.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-own-key-hidden-by-a-number",
        sdpa_own_key_hidden_by_a_number,
        "alibi_sdpa_worked_weights",
        "The key at the query's own position is hidden, and the first query of a text, which sees "
        "nothing then, gets the mean of all values. A token may look at itself, at distance 0.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-bias-divided-by-root",
        sdpa_bias_divided_by_root,
        "alibi_sdpa_worked_weights",
        "The bias was divided by √d too. Only the dot product is, and torch does that by itself; "
        "the slopes were chosen for scores that have been scaled already.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-sdpa-without-bias",
        sdpa_without_bias,
        "alibi_sdpa_worked_weights",
        "Near and far keys of equal scores weigh the same: the mask is there, but the bias is not. "
        "`is_causal` knows neither slopes nor an offset; bias and mask belong into one array.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-later-rewarded",
        sdpa_later_rewarded,
        "alibi_sdpa_worked_weights",
        "Keys after the query are not hidden but rewarded, the more the further they are. Slope "
        "times key minus query is right for the keys before it; put minus infinity on the others.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-one-slope",
        sdpa_one_slope,
        "alibi_sdpa_worked_weights",
        "All heads fall off like the first one. Give the slopes two more axes, so that they run "
        "along the heads of the mask.",
        "alibi-slopes",
    ),
    Misconception(
        "alibi-sdpa-without-root",
        sdpa_without_root,
        "alibi_sdpa_scores",
        "The dot products are not divided by √d. ALiBi adds a term to the usual scores and "
        "leaves their scaling as it is.",
        "alibi-bias",
    ),
    Misconception(
        "alibi-sdpa-offset-ignored",
        sdpa_offset_ignored,
        "alibi_sdpa_offset",
        "The queries see no further than if they began at position 0, as is_causal would have it. "
        "After a cache of n tokens the next query stands at n, and sees all of them.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-bias-without-offset",
        sdpa_bias_without_offset,
        "alibi_sdpa_offset",
        "The mask knows the offset, but the distances in the bias are those of queries that begin "
        "at position 0. Take both from the same positions, offset and on.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-queries-last",
        sdpa_queries_last,
        "alibi_sdpa_offset",
        "The queries were put at the end of the keys, whatever the offset is. Keys may follow "
        "them: count from the offset.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-offset-one-high",
        sdpa_offset_one_high,
        "alibi_sdpa_offset",
        "Behind a cache every query stands one too far, and sees the key after its own. With n "
        "tokens cached, the next position is n itself.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-positions-in-input-dtype",
        sdpa_positions_in_input_dtype,
        "alibi_sdpa_bfloat16",
        "Positions, or slopes times positions, were rounded to the dtype of q. At 3000 bfloat16 "
        "has one number for 16, so neighbours get one penalty. Take the difference first: the near "
        "keys, which count, then have small numbers.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-key-bias-cast",
        sdpa_key_bias_cast,
        "alibi_sdpa_bfloat16",
        "The bias is slope times key position, and was cast to the dtype of q. At 3000 such "
        "numbers are too large for bfloat16 to tell neighbours apart. Take it from the distance, "
        "which is small for the keys that count, or keep the mask in float32.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-bias-in-input-dtype",
        sdpa_bias_in_input_dtype,
        "alibi_sdpa_far_key",
        "Slopes or distances were cast to the dtype of q before they were multiplied. bfloat16 has "
        "8 bits for each, and a far key's penalty is off by whole points: multiply in float32.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-float32-out",
        sdpa_float32_out,
        "alibi_sdpa_bfloat16",
        "The result for bfloat16 input came back as float32. Computing in float32 is right; cast "
        "the result back to the dtype of q, once and last.",
        "ex-alibi_sdpa",
    ),
    Misconception(
        "alibi-sdpa-no-float64",
        sdpa_no_float64,
        "alibi_sdpa_keeps_dtype",
        "float64 input came back as float32. The bias needs float32 at least: let the dtype go "
        "up for the small ones, never down.",
        "ex-alibi_sdpa",
    ),
    Misconception(
        "alibi-sdpa-autocast-dtype",
        sdpa_autocast_dtype,
        "alibi_sdpa_autocast",
        "Under autocast the result has the autocast dtype. Cast it back to the dtype of q, or "
        "switch autocast off around the attention.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-matrix-product",
        sdpa_matrix_product,
        "alibi_sdpa_autocast",
        "Slopes and distances met in a matrix product, and autocast runs those in bfloat16 "
        "whatever you cast before. Multiply elementwise, or switch autocast off there.",
        "alibi-module",
    ),
    Misconception(
        "alibi-sdpa-in-place",
        sdpa_in_place,
        "alibi_sdpa_leaves_input",
        "The queries were scaled in place, so the caller's tensor has changed.",
        "ex-alibi_sdpa",
    ),
    Misconception(
        "alibi-sdpa-any-offset",
        sdpa_any_offset,
        "alibi_sdpa_refuses_offsets",
        "An offset outside of the keys was moved to where it fits. Such a call has lost count of "
        "its tokens: raise, so that it is found.",
        "ex-alibi_sdpa",
    ),
    Misconception(
        "alibi-sdpa-slopes-stretched",
        sdpa_slopes_stretched,
        "alibi_sdpa_refuses_slopes",
        "A single slope was stretched over all heads. Each head needs its own: compare the "
        "shape of the slopes with the number of heads.",
        "ex-alibi_sdpa",
    ),
    Misconception(
        "alibi-sdpa-batch-stretched",
        sdpa_batch_stretched,
        "alibi_sdpa_refuses_shapes",
        "One row of keys or values served the whole batch. Compare the shapes before torch "
        "broadcasts them.",
        "ex-alibi_sdpa",
    ),
    Misconception(
        "alibi-sdpa-cuts-gradients",
        sdpa_without_gradients,
        "alibi_sdpa_gradients",
        "The numbers are right, but no gradient arrives at q, k and v: the result was "
        "detached, or made without gradients. Nothing that stands before it could be trained.",
        "ex-alibi_sdpa",
    ),
)

MISCONCEPTIONS: dict[str, tuple[Misconception, ...]] = {
    "alibi_slopes": ALIBI_SLOPES,
    "alibi_bias": ALIBI_BIAS,
    "alibi_attention": ALIBI_ATTENTION,
    "t5_bucket": T5_BUCKET,
    "shaw_scores": SHAW_SCORES,
    "fixed_bias": FIXED_BIAS,
    "alibi_sdpa": ALIBI_SDPA,
}

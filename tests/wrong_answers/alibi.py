"""Wrong answers that differ from a right one in a corner: each must lose points.

They complete the misconceptions, which are what people really do; these are what a check must not
miss. `WRONG[exercise][name]` is a function or class as a student would write it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from solutions.with_numpy import alibi as right
from solutions.with_torch import alibi as right_torch

WRONG: dict[str, dict[str, Callable[..., Any]]] = {}


def wrong(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        WRONG.setdefault(exercise, {})[function.__name__] = function
        return function

    return keep


# ------------------------------------------------------------------------------- alibi_slopes


@wrong("alibi_slopes")
def memorised_eight(num_heads):
    return 0.5 ** np.arange(1, 9)


@wrong("alibi_slopes")
def powers_of_two_only(num_heads):
    if num_heads & (num_heads - 1):
        raise ValueError("num_heads must be a power of two")
    return right.alibi_slopes(num_heads)


@wrong("alibi_slopes")
def rounded_up_count(num_heads):
    return right.alibi_slopes(2 ** math.ceil(math.log2(right.alibi_slopes(num_heads).size)))


@wrong("alibi_slopes")
def negative_slopes(num_heads):
    return -right.alibi_slopes(num_heads)


@wrong("alibi_slopes")
def ascending(num_heads):
    return right.alibi_slopes(num_heads)[::-1].copy()


@wrong("alibi_slopes")
def second_of_every_two(num_heads):
    slopes = right.alibi_slopes(num_heads)
    power = 2 ** (num_heads.bit_length() - 1)
    return np.r_[slopes[:power], right.alibi_slopes(2 * power)[1::2][: num_heads - power]]


@wrong("alibi_slopes")
def added_heads_first(num_heads):
    slopes = right.alibi_slopes(num_heads)
    power = 2 ** (num_heads.bit_length() - 1)
    return np.r_[slopes[power:], slopes[:power]]


@wrong("alibi_slopes")
def added_heads_from_the_end(num_heads):
    slopes = right.alibi_slopes(num_heads)
    power = 2 ** (num_heads.bit_length() - 1)
    between = right.alibi_slopes(2 * power)[0::2]
    return np.r_[slopes[:power], between[power - (num_heads - power) :]][:num_heads]


@wrong("alibi_slopes")
def fractions_cut_off(num_heads):
    return right.alibi_slopes(int(num_heads))


@wrong("alibi_slopes")
def negative_count_made_positive(num_heads):
    return right.alibi_slopes(abs(num_heads) or 1)


@wrong("alibi_slopes")
def one_axis_too_many(num_heads):
    return right.alibi_slopes(num_heads)[:, None, None]


@wrong("alibi_slopes")
def half_precision(num_heads):
    return right.alibi_slopes(num_heads).astype(np.float16)


@wrong("alibi_slopes")
def only_up_to_64_heads(num_heads):
    return right.alibi_slopes(min(num_heads, 64))


@wrong("alibi_slopes")
def natural_exponential(num_heads):
    return np.exp(np.log(right.alibi_slopes(num_heads)) / math.log(2))


@wrong("alibi_slopes")
def rounded_to_four_digits(num_heads):
    return right.alibi_slopes(num_heads).round(4)


# ------------------------------------------------------------------- alibi_bias and fixed_bias


def both(change):
    """The same fault in both exercises: change(bias of several heads) → a bias."""
    several = change(right.alibi_bias)

    def one(q_positions, k_positions, slope):
        return several(q_positions, k_positions, [slope])[0]

    WRONG.setdefault("alibi_bias", {})[change.__name__] = several
    WRONG.setdefault("fixed_bias", {})[change.__name__] = one
    return change


@both
def squared_distance(bias):
    return lambda q, k, m: bias(q, k, np.sqrt(m)) * -bias(q, k, np.sqrt(m))


@both
def logarithmic_distance(bias):
    return lambda q, k, m: -np.log1p(-bias(q, k, m))


@both
def one_token_closer(bias):
    return lambda q, k, m: np.minimum(bias(q, k, m) + np.asarray(m)[:, None, None], 0.0)


@both
def earlier_keys_free(bias):
    return lambda q, k, m: np.where(
        np.subtract.outer(np.asarray(q, float), k) > 0, 0.0, bias(q, k, m)
    )


@both
def distances_up_to_128(bias):
    return lambda q, k, m: np.maximum(bias(q, k, m), -np.asarray(m)[:, None, None] * 40)


@both
def square_only(bias):
    def answer(q, k, m):
        if len(q) != len(k):
            raise ValueError("as many queries as keys")
        return bias(q, k, m)

    return answer


@both
def transposed_when_square(bias):
    return lambda q, k, m: bias(q, k, m).swapaxes(1, 2) if len(q) == len(k) else bias(q, k, m)


@both
def sorted_keys(bias):
    return lambda q, k, m: bias(q, np.sort(k), m)


@both
def from_the_first_query(bias):
    return lambda q, k, m: np.repeat(bias(q, k, m)[:, :1], len(q), axis=1)


@both
def positions_from_zero(bias):
    return lambda q, k, m: bias(np.asarray(q) - np.min(q), np.asarray(k) - np.min(k), m)


@both
def rounded_positions(bias):
    return lambda q, k, m: bias(np.rint(q), np.rint(k), m)


@both
def float32_result(bias):
    return lambda q, k, m: bias(q, k, m).astype(np.float32)


@both
def integer_result_for_integers(bias):
    def answer(q, k, m):
        result = bias(q, k, m)
        return result.astype(int) if np.asarray(q).dtype.kind in "iu" else result

    return answer


@both
def squeezed_positions(bias):
    return lambda q, k, m: bias(np.squeeze(q), np.squeeze(k), m)


@both
def scalars_become_lists(bias):
    return lambda q, k, m: bias(np.atleast_1d(q), np.atleast_1d(k), m)


@both
def first_row_of_a_batch(bias):
    return lambda q, k, m: bias(*(x[0] if np.ndim(x) == 2 else x for x in (q, k)), m)


@both
def int8_distances(bias):
    def answer(q, k, m):
        if np.asarray(q).dtype != np.uint8:
            return bias(q, k, m)
        distance = np.abs(np.subtract.outer(q, k).astype(np.int16))
        return -np.asarray(m)[:, None, None] * distance

    return answer


@both
def queries_changed(bias):
    def answer(q, k, m):
        result = bias(q, k, m)
        q -= q[0]
        return result

    return answer


@wrong("alibi_bias")
def slopes_of_the_number_of_heads(q_positions, k_positions, slopes):
    right.alibi_bias(q_positions, k_positions, slopes)
    return right.alibi_bias(q_positions, k_positions, right.alibi_slopes(len(slopes)))


@wrong("alibi_bias")
def sorted_slopes(q_positions, k_positions, slopes):
    return right.alibi_bias(q_positions, k_positions, np.sort(slopes)[::-1])


@wrong("alibi_bias")
def flattened_slopes(q_positions, k_positions, slopes):
    return right.alibi_bias(q_positions, k_positions, np.ravel(slopes))


@wrong("alibi_bias")
def batch_axis(q_positions, k_positions, slopes):
    return right.alibi_bias(q_positions, k_positions, slopes)[None]


@wrong("alibi_bias")
def broadcasting_slopes(q_positions, k_positions, slopes):
    distance = -right.alibi_bias(q_positions, k_positions, [1.0])[0]
    return -np.asarray(slopes, dtype=float)[..., None, None] * distance


@wrong("alibi_bias")
def subtracts_outer(q_positions, k_positions, slopes):
    """Right, but takes positions of any shape."""
    slopes = np.asarray(slopes, dtype=float)
    if slopes.ndim != 1:
        raise ValueError("slopes")
    q_positions, k_positions = (np.asarray(p, dtype=float) for p in (q_positions, k_positions))
    return np.multiply.outer(-slopes, np.abs(np.subtract.outer(q_positions, k_positions)))


@wrong("alibi_bias")
def dtype_of_the_slopes(q_positions, k_positions, slopes):
    bias = right.alibi_bias(q_positions, k_positions, slopes)
    slopes = np.asarray(slopes)
    return bias.astype(slopes.dtype) if slopes.dtype.kind == "f" else bias


@wrong("alibi_bias")
def integers_stay_integers(q_positions, k_positions, slopes):
    bias = right.alibi_bias(q_positions, k_positions, slopes)
    return bias.astype(np.result_type(q_positions, k_positions, slopes))


@wrong("alibi_bias")
def empty_without_heads(q_positions, k_positions, slopes):
    distance = -right.alibi_bias(q_positions, k_positions, [1.0])[0]
    if np.ndim(slopes) != 1:
        raise ValueError("slopes")
    return -np.asarray(slopes, float)[:, None, None] * distance


KEPT: dict[tuple[Any, ...], Any] = {}


@wrong("alibi_bias")
def kept_for_its_shape(q_positions, k_positions, slopes):
    bias = right.alibi_bias(q_positions, k_positions, slopes)
    return KEPT.setdefault((bias.shape, *np.asarray(slopes).tolist()), bias)


@wrong("fixed_bias")
def slope_not_used(q_positions, k_positions, slope):
    return right.fixed_bias(q_positions, k_positions, 0.5)


@wrong("fixed_bias")
def softmax_already_taken(q_positions, k_positions, slope):
    weights = np.exp(right.fixed_bias(q_positions, k_positions, slope))
    return weights / weights.sum(axis=1, keepdims=True)


@wrong("fixed_bias")
def both_reports_half_fixed(q_positions, k_positions, slope):
    distances = right.signed_distances(q_positions, k_positions)
    return np.where(distances > 0, slope * distances, -slope * -distances)


# ---------------------------------------------------------------------------- alibi_attention


def attention(mask=None, scores=None, weights=None, finish=None):
    """alibi_attention with one step replaced; the right checks of the input come first."""

    def attend(q, k, v, slopes, q_positions, k_positions):
        expected = right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
        i, j = np.asarray(q_positions, float)[:, None], np.asarray(k_positions, float)
        m = np.asarray(slopes, float)[:, None, None]
        raw = np.asarray(q, float) @ np.asarray(k, float).swapaxes(1, 2)
        s = scores(raw, m, i, j, q.shape[2]) if scores else raw / q.shape[2] ** 0.5 - m * abs(i - j)
        s = np.where(mask(i, j) if mask else j > i, -np.inf, s)
        with np.errstate(all="ignore"):
            w = weights(s) if weights else normal(s)
            out = w @ np.asarray(v, float)
        return (finish(out) if finish else out).astype(expected.dtype)

    return attend


def normal(s):
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True)


def no_maximum(s):
    w = np.exp(s)
    return w / w.sum(-1, keepdims=True)


WRONG["alibi_attention"] = {
    "exp_overflows": attention(weights=no_maximum),
    "exp_with_epsilon": attention(
        weights=lambda s: np.exp(s) / (np.exp(s).sum(-1)[..., None] + 1e-9)
    ),
    "exp_of_clipped_scores": attention(weights=lambda s: no_maximum(s.clip(-50, 50))),
    "one_maximum_for_all": attention(weights=lambda s: np.nan_to_num(no_maximum(s - s.max()))),
    "sees_one_ahead": attention(mask=lambda i, j: j > i + 1),
    "sees_all": attention(mask=lambda i, j: np.zeros(np.broadcast(i, j).shape, bool)),
    "window_of_five": attention(mask=lambda i, j: (j > i) | (j < i - 5)),
    "anticausal": attention(mask=lambda i, j: (j < i) & (j > j.min())),
    "divides_by_d": attention(scores=lambda raw, m, i, j, d: raw / d - m * abs(i - j)),
    "bias_multiplies": attention(scores=lambda raw, m, i, j, d: raw / d**0.5 * -m * abs(i - j)),
    "bias_divided_by_root": attention(
        scores=lambda raw, m, i, j, d: (raw - m * abs(i - j)) / d**0.5
    ),
    "no_bias": attention(scores=lambda raw, m, i, j, d: raw / d**0.5),
    "bias_of_the_query_alone": attention(scores=lambda raw, m, i, j, d: raw / d**0.5 - m * i),
    "reversed_slopes": attention(
        scores=lambda raw, m, i, j, d: raw / d**0.5 - m[::-1] * abs(i - j)
    ),
    "squared_distance": attention(scores=lambda raw, m, i, j, d: raw / d**0.5 - m * (i - j) ** 2),
    "weights_rounded": attention(weights=lambda s: normal(s).round(3)),
    "hard_attention": attention(weights=lambda s: np.eye(s.shape[-1])[s.argmax(-1)]),
    "weights_not_normalised": attention(weights=lambda s: np.exp(s - s.max(-1, keepdims=True))),
    "result_transposed": attention(finish=lambda out: out.swapaxes(0, 1)),
    "heads_joined": attention(finish=lambda out: out.swapaxes(0, 1).reshape(out.shape[1], -1)),
}


def hidden_by(number, add=False):
    """Later keys get this score, or as much less, in place of minus infinity."""

    def attend(q, k, v, slopes, q_positions, k_positions):
        out = right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
        apart = right.signed_distances(q_positions, k_positions)
        x, y, z = (np.asarray(a, float) for a in (q, k, v))
        s = x @ y.swapaxes(1, 2) / q.shape[2] ** 0.5
        s = s + np.asarray(slopes, float)[:, None, None] * apart
        return (normal(np.where(apart > 0, s * add + number, s)) @ z).astype(out.dtype)

    return attend


WRONG["alibi_attention"]["hidden_by_minus_ten_thousand"] = hidden_by(-1e4)
WRONG["alibi_attention"]["hidden_by_minus_a_billion"] = hidden_by(-1e9)
WRONG["alibi_attention"]["a_billion_less_for_the_hidden"] = hidden_by(-1e9, add=True)


@wrong("alibi_attention")
def float16_products_overflow(q, k, v, slopes, q_positions, k_positions):
    out = right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    with np.errstate(over="ignore"):
        overflows = np.isinf(q @ np.swapaxes(k, 1, 2)).any()
    return np.full_like(out, np.nan) if overflows else out


@wrong("alibi_attention")
def positions_in_the_dtype_of_q(q, k, v, slopes, q_positions, k_positions):
    out = right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    if out.dtype == np.float64:
        return out
    i, j = (np.asarray(p).astype(out.dtype) for p in (q_positions, k_positions))
    return right.alibi_attention(q, k, v, slopes, np.maximum(i, j.min()), j)


@wrong("alibi_attention")
def one_head_of_keys_and_values_for_all(q, k, v, slopes, q_positions, k_positions):
    if len(k) == len(v) == 1:
        k, v = np.repeat(k, len(q), axis=0), np.repeat(v, len(q), axis=0)
    return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)


@wrong("alibi_attention")
def one_query_for_all_positions(q, k, v, slopes, q_positions, k_positions):
    if q.shape[1] == 1:
        q = np.repeat(q, len(q_positions), axis=1)
    return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)


@wrong("alibi_attention")
def sorts_the_queries(q, k, v, slopes, q_positions, k_positions):
    order = np.argsort(q_positions)
    return right.alibi_attention(q[:, order], k, v, slopes, q_positions[order], k_positions)


@wrong("alibi_attention")
def needs_as_many_keys(q, k, v, slopes, q_positions, k_positions):
    if q.shape != k.shape:
        raise ValueError("q and k must have one shape")
    return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)


@wrong("alibi_attention")
def blind_gets_the_mean(q, k, v, slopes, q_positions, k_positions):
    blind = np.asarray(k_positions).min() > np.asarray(q_positions)
    if np.ndim(q_positions) != 1 or not blind.any():
        return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    moved = np.where(blind, np.max(k_positions), q_positions)
    return right.alibi_attention(q, k, v, slopes, moved, k_positions)


@wrong("alibi_attention")
def blind_only_if_all_are(q, k, v, slopes, q_positions, k_positions):
    try:
        return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    except ValueError as error:
        if "every query" not in str(error) or np.min(k_positions) > np.max(q_positions):
            raise
        return np.full_like(q, np.nan)


@wrong("alibi_attention")
def blind_raises_another_error(q, k, v, slopes, q_positions, k_positions):
    try:
        return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    except ValueError as error:
        raise ArithmeticError(str(error)) from None


@wrong("alibi_attention")
def float32_always(q, k, v, slopes, q_positions, k_positions):
    return right.alibi_attention(q, k, v, slopes, q_positions, k_positions).astype("f4")


@wrong("alibi_attention")
def half_precision_goes_up(q, k, v, slopes, q_positions, k_positions):
    result = right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    return result.astype("f4") if result.dtype == np.float16 else result


@wrong("alibi_attention")
def one_slope_for_all(q, k, v, slopes, q_positions, k_positions):
    if np.shape(slopes) == (1,):
        slopes = np.repeat(slopes, len(q))
    return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)


@wrong("alibi_attention")
def one_query_position_for_all(q, k, v, slopes, q_positions, k_positions):
    if np.shape(q_positions) in ((), (1,)):
        q_positions = np.full(q.shape[1], np.ravel(q_positions)[0])
    return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)


@wrong("alibi_attention")
def one_key_head_for_all(q, k, v, slopes, q_positions, k_positions):
    if len(k) == 1:
        k = np.repeat(k, len(q), axis=0)
    return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)


@wrong("alibi_attention")
def one_value_for_all(q, k, v, slopes, q_positions, k_positions):
    if v.shape[1] == 1:
        v = np.repeat(v, k.shape[1], axis=1)
    return right.alibi_attention(q, k, v, slopes, q_positions, k_positions)


@wrong("alibi_attention")
def too_many_positions(q, k, v, slopes, q_positions, k_positions):
    trimmed = q_positions[: q.shape[1]], k_positions[: k.shape[1]]
    return right.alibi_attention(q, k, v, slopes, *trimmed)


@wrong("alibi_attention")
def keys_changed(q, k, v, slopes, q_positions, k_positions):
    result = right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    k[...] = 0
    return result


@wrong("alibi_attention")
def positions_changed(q, k, v, slopes, q_positions, k_positions):
    result = right.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    q_positions -= k_positions.min()
    return result


# ---------------------------------------------------------------------------------- t5_bucket


def bucket(change):
    """t5_bucket by change(relative, bidirectional, n per direction, max_distance)."""

    def answer(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
        right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)
        n = num_buckets // 2 if bidirectional else num_buckets
        return change(
            np.asarray(relative_position).astype(np.int64), bidirectional, n, max_distance
        )

    WRONG.setdefault("t5_bucket", {})[change.__name__] = answer
    return answer


def core(distance, n, far, exact=None, base=None, floor=np.floor, top=None):
    e = n // 2 if exact is None else exact
    logs = np.log(np.maximum(distance, e) / e) / math.log((far if base is None else base) / e)
    large = np.minimum(e + floor((n - e) * logs), n - 1 if top is None else top)
    return np.where(distance < e, distance, large).astype(np.int64)


def sides(relative, both, n):
    return (np.abs(relative), n * (relative > 0)) if both else (np.maximum(-relative, 0), 0)


@bucket
def ceiling(relative, both, n, far):
    distance, later = sides(relative, both, n)
    return core(distance, n, far, floor=np.ceil) + later


@bucket
def one_exact_bucket_less(relative, both, n, far):
    distance, later = sides(relative, both, n)
    return core(distance, n, far, exact=max(n // 2 - 1, 1)) + later


@bucket
def one_exact_bucket_more(relative, both, n, far):
    distance, later = sides(relative, both, n)
    return core(distance, n, far + 1, exact=n // 2 + 1) + later


@bucket
def ratio_without_exact(relative, both, n, far):
    distance, later = sides(relative, both, n)
    return core(distance, n, far, base=max(far - n // 2, n // 2 + 1)) + later


@bucket
def zero_counts_as_later(relative, both, n, far):
    distance, _ = sides(relative, both, n)
    return core(distance, n, far) + n * (relative >= 0) * both


@bucket
def later_first(relative, both, n, far):
    distance, _ = sides(relative, both, n)
    return core(distance, n, far) + n * (relative < 0) * both


@bucket
def last_bucket_from_zero(relative, both, n, far):
    distance, later = sides(relative, both, n)
    return core(distance, n, far, top=n) + later


@bucket
def last_bucket_missing(relative, both, n, far):
    distance, later = sides(relative, both, n)
    return core(distance, n, far, top=n - 2) + later


@bucket
def all_exact(relative, both, n, far):
    distance, later = sides(relative, both, n)
    return np.minimum(distance, n - 1) + later


@bucket
def later_keys_raise_in_one_direction(relative, both, n, far):
    if not both and (relative > 0).any():
        raise ValueError("a causal decoder sees no later key")
    distance, later = sides(relative, both, n)
    return core(distance, n, far) + later


@bucket
def later_keys_last_in_one_direction(relative, both, n, far):
    distance, later = sides(relative, both, n)
    return np.where((relative > 0) & (not both), n - 1, core(distance, n, far) + later)


@bucket
def always_both_ways(relative, both, n, far):
    distance, later = sides(relative, True, n)
    return core(distance, n, far) + later


@bucket
def up_to_a_thousand(relative, both, n, far):
    if np.abs(relative).max(initial=0) > 1000:
        raise ValueError("too far")
    distance, later = sides(relative, both, n)
    return core(distance, n, far) + later


@bucket
def distances_in_int16(relative, both, n, far):
    distance, later = sides(relative.astype(np.int16), both, n)
    return core(distance, n, far) + later


@bucket
def default_buckets_when_both(relative, both, n, far):
    n = 16 if both else n
    distance, later = sides(relative, both, n)
    return core(distance, n, max(far, 9)) + later


@bucket
def two_axes_only(relative, both, n, far):
    distance, later = sides(relative, both, n)
    return np.atleast_2d(core(distance, n, far) + later)


@bucket
def text(relative, both, n, far):
    distance, later = sides(relative, both, n)
    return (core(distance, n, far) + later).astype(str)


@bucket
def starts_at_one(relative, both, n, far):
    distance, later = sides(relative, both, n)
    return core(distance, n, far) + later + 1


@wrong("t5_bucket")
def exact_half_rounded_up(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    expected = right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)
    n = num_buckets // 2 if bidirectional else num_buckets
    if n % 2 == 0:
        return expected
    distance, later = sides(np.asarray(relative_position).astype(np.int64), bidirectional, n)
    return core(distance, n, max_distance, exact=n // 2 + 1) + later


@wrong("t5_bucket")
def even_numbers_alone(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    if num_buckets % 2:
        raise ValueError("num_buckets must be even")
    return right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)


@wrong("t5_bucket")
def signs_in_the_dtype_given(
    relative_position, bidirectional=True, num_buckets=32, max_distance=128
):
    """−128 has no absolute value in int8, and no unsigned number is below zero."""
    expected = right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)
    relative, n = np.asarray(relative_position), num_buckets // (2 if bidirectional else 1)
    distance, later = sides(relative, bidirectional, n)
    same = np.array_equal(distance, sides(relative.astype(np.int64), bidirectional, n)[0])
    return expected if same else core(distance, n, max_distance) + later


@wrong("t5_bucket")
def room_raises_another_error(
    relative_position, bidirectional=True, num_buckets=32, max_distance=128
):
    assert max_distance > num_buckets // (4 if bidirectional else 2), "no room"
    return right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)


@wrong("t5_bucket")
def room_for_one_too_few(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    exact = num_buckets // (4 if bidirectional else 2)
    if max_distance == exact:
        max_distance += 1
    return right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)


@wrong("t5_bucket")
def room_asked_too_much(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    if max_distance <= num_buckets // (2 if bidirectional else 1):
        raise ValueError("max_distance must exceed the buckets")
    return right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)


@wrong("t5_bucket")
def input_clipped_in_place(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    result = right.t5_bucket(relative_position, bidirectional, num_buckets, max_distance)
    if isinstance(relative_position, np.ndarray):
        np.clip(relative_position, -20, 20, out=relative_position)
    return result


# -------------------------------------------------------------------------------- shaw_scores


def shaw(change):
    """shaw_scores as change(q, k, table, key − query, K, √d) computes them."""

    def answer(q, k, relative_keys, q_positions, k_positions):
        dtype = right.shaw_scores(q, k, relative_keys, q_positions, k_positions).dtype
        x, y, a = (np.asarray(z, float) for z in (q, k, relative_keys))
        apart = right.signed_distances(q_positions, k_positions).astype(int)
        return change(x, y, a, apart, len(a) // 2, q.shape[1] ** 0.5).astype(dtype)

    WRONG.setdefault("shaw_scores", {})[change.__name__] = answer
    return answer


def take(x, a, rows):
    return np.take_along_axis(x @ a.T, rows, axis=1)


@shaw
def clip_one_too_few(x, y, a, apart, K, root):
    reach = max(K - 1, 0)
    return (x @ y.T + take(x, a, apart.clip(-reach, reach) + K)) / root


@shaw
def clip_on_one_side(x, y, a, apart, K, root):
    return (x @ y.T + take(x, a, (apart.clip(None, K) + K) % len(a))) / root


@shaw
def rows_one_off(x, y, a, apart, K, root):
    return (x @ y.T + take(x, a, (apart.clip(-K, K) + K + 1).clip(None, 2 * K))) / root


@shaw
def absolute_distance(x, y, a, apart, K, root):
    return (x @ y.T + take(x, a, np.abs(apart).clip(0, K) + K)) / root


@shaw
def table_of_the_key_index(x, y, a, apart, K, root):
    return (
        x @ y.T + take(x, a, np.broadcast_to(np.arange(len(y)).clip(0, 2 * K), apart.shape))
    ) / root


@shaw
def divides_by_d(x, y, a, apart, K, root):
    return (x @ y.T + take(x, a, apart.clip(-K, K) + K)) / root**2


@shaw
def scales_the_content_twice(x, y, a, apart, K, root):
    return (x @ y.T / root + take(x, a, apart.clip(-K, K) + K)) / root


@shaw
def no_content_of_later_keys(x, y, a, apart, K, root):
    scores = (x @ y.T + take(x, a, apart.clip(-K, K) + K)) / root
    return np.where(apart > 0, -1e9, scores)


@shaw
def content_only(x, y, a, apart, K, root):
    return x @ y.T / root


@shaw
def subtracts_the_vector(x, y, a, apart, K, root):
    return (x @ y.T - take(x, a, apart.clip(-K, K) + K)) / root


@shaw
def transposed(x, y, a, apart, K, root):
    return ((x @ y.T + take(x, a, apart.clip(-K, K) + K)) / root).T


@shaw
def weights_for_scores(x, y, a, apart, K, root):
    weights = np.exp((x @ y.T + take(x, a, apart.clip(-K, K) + K)) / root)
    return weights / weights.sum(axis=1, keepdims=True)


@shaw
def term_on_both(x, y, a, apart, K, root):
    rows = apart.clip(-K, K) + K
    return np.einsum("qkd,qkd->qk", x[:, None] + a[rows], y[None] + a[rows]) / root


@shaw
def values_times_table(x, y, a, apart, K, root):
    return np.einsum("qd,qkd->qk", x, y[None] * a[apart.clip(-K, K) + K]) / root


@shaw
def first_query_for_all(x, y, a, apart, K, root):
    return (x @ y.T + take(x, a, np.broadcast_to(apart[:1], apart.shape).clip(-K, K) + K)) / root


@shaw
def reach_of_two(x, y, a, apart, K, root):
    reach = min(K, 2)
    return (x @ y.T + take(x, a, apart.clip(-reach, reach) + K)) / root


@wrong("shaw_scores")
def single_row_refused(q, k, relative_keys, q_positions, k_positions):
    if len(relative_keys) < 3:
        raise ValueError("at least three rows")
    return right.shaw_scores(q, k, relative_keys, q_positions, k_positions)


@wrong("shaw_scores")
def as_many_queries_as_keys(q, k, relative_keys, q_positions, k_positions):
    if len(q) != len(k):
        raise ValueError("as many queries as keys")
    return right.shaw_scores(q, k, relative_keys, q_positions, k_positions)


@wrong("shaw_scores")
def dtype_of_the_table(q, k, relative_keys, q_positions, k_positions):
    result = right.shaw_scores(q, k, relative_keys, q_positions, k_positions)
    return result.astype(np.result_type(result, relative_keys))


@wrong("shaw_scores")
def float32_root(q, k, relative_keys, q_positions, k_positions):
    result = right.shaw_scores(q, k, relative_keys, q_positions, k_positions)
    return result.astype("f4") if result.dtype == np.float16 else result


@wrong("shaw_scores")
def one_position_for_all(q, k, relative_keys, q_positions, k_positions):
    if np.size(q_positions) == 1:
        q_positions = np.repeat(q_positions, len(q))
    return right.shaw_scores(q, k, relative_keys, q_positions, k_positions)


@wrong("shaw_scores")
def even_rows_lose_one(q, k, relative_keys, q_positions, k_positions):
    if len(relative_keys) and len(relative_keys) % 2 == 0:
        relative_keys = relative_keys[:-1]
    return right.shaw_scores(q, k, relative_keys, q_positions, k_positions)


@wrong("shaw_scores")
def narrow_table_stretched(q, k, relative_keys, q_positions, k_positions):
    if relative_keys.shape[1] == 1:
        relative_keys = np.repeat(relative_keys, q.shape[1], axis=1)
    return right.shaw_scores(q, k, relative_keys, q_positions, k_positions)


@wrong("shaw_scores")
def table_changed(q, k, relative_keys, q_positions, k_positions):
    result = right.shaw_scores(q, k, relative_keys, q_positions, k_positions)
    relative_keys /= math.sqrt(q.shape[1])
    return result


@wrong("shaw_scores")
def even_rows_where_the_last_is_not_read(q, k, relative_keys, q_positions, k_positions):
    """NumPy refuses the row that is missing, and no other."""
    rows, K = len(relative_keys), len(relative_keys) // 2
    if rows % 2 == 0 and rows and len(q) == len(q_positions) and len(k) == len(k_positions):
        apart = right.signed_distances(q_positions, k_positions).astype(int).clip(-K, K)
        return (q @ k.T + take(q, relative_keys, apart + K)) / q.shape[1] ** 0.5
    return right.shaw_scores(q, k, relative_keys, q_positions, k_positions)


@wrong("shaw_scores")
def rounded_distances(q, k, relative_keys, q_positions, k_positions):
    apart = np.rint(q_positions).astype(int), np.rint(k_positions).astype(int)
    return right.shaw_scores(q, k, relative_keys, *apart)


@wrong("shaw_scores")
def integer_positions_alone(q, k, relative_keys, q_positions, k_positions):
    if "f" in (np.asarray(q_positions).dtype.kind, np.asarray(k_positions).dtype.kind):
        raise TypeError("positions must be integers")
    return right.shaw_scores(q, k, relative_keys, q_positions, k_positions)


@wrong("shaw_scores")
def float16_products_overflow_in_shaw(q, k, relative_keys, q_positions, k_positions):
    out = right.shaw_scores(q, k, relative_keys, q_positions, k_positions)
    with np.errstate(over="ignore"):
        return np.where(np.isinf(q @ k.T), np.inf, out).astype(out.dtype)


@wrong("shaw_scores")
def one_key_for_all_positions(q, k, relative_keys, q_positions, k_positions):
    if len(k) == 1:
        k = np.repeat(k, len(k_positions), axis=0)
    return right.shaw_scores(q, k, relative_keys, q_positions, k_positions)


@wrong("shaw_scores")
def one_query_for_all_positions_in_shaw(q, k, relative_keys, q_positions, k_positions):
    if len(q) == 1:
        q = np.repeat(q, len(q_positions), axis=0)
    return right.shaw_scores(q, k, relative_keys, q_positions, k_positions)


# --------------------------------------------------------------------------------- alibi_sdpa


def sdpa(change):
    """alibi_sdpa with change(q, k, v, slopes, offset) after the right refusals."""

    def answer(q, k, v, slopes, offset=0):
        right_torch.alibi_sdpa(q, k, v, slopes, offset)
        return change(q, k, v, slopes, offset)

    WRONG.setdefault("alibi_sdpa", {})[change.__name__] = answer
    return answer


def attend(q, k, v, mask, scale=None):
    dtype = torch.promote_types(q.dtype, torch.float32)
    with torch.autocast("cpu", enabled=False):
        out = scaled_dot_product_attention(
            q.to(dtype), k.to(dtype), v.to(dtype), attn_mask=mask.to(dtype), scale=scale
        )
    return out.to(q.dtype)


def apart(q, k, offset):
    return torch.arange(k.shape[2]) - torch.arange(offset, offset + q.shape[2])[:, None]


def causal(bias, distance):
    return bias.masked_fill(distance > 0, -math.inf)


def three(slopes):
    return slopes.float()[:, None, None]


@sdpa
def no_bias(q, k, v, slopes, offset):
    return attend(q, k, v, causal(torch.zeros(apart(q, k, offset).shape), apart(q, k, offset)))


@sdpa
def is_causal_alone(q, k, v, slopes, offset):
    return scaled_dot_product_attention(q, k, v, is_causal=True)


@sdpa
def bias_divided_by_root(q, k, v, slopes, offset):
    distance = apart(q, k, offset)
    return attend(q, k, v, causal(three(slopes) * distance / q.shape[-1] ** 0.5, distance))


@sdpa
def scores_divided_by_d(q, k, v, slopes, offset):
    mask = causal(three(slopes) * apart(q, k, offset), apart(q, k, offset))
    return attend(q, k, v, mask, scale=1 / q.shape[-1])


@sdpa
def reversed_slopes(q, k, v, slopes, offset):
    return right_torch.alibi_sdpa(q, k, v, slopes.flip(0), offset)


@sdpa
def paper_slopes_whatever_is_given(q, k, v, slopes, offset):
    own = torch.as_tensor(right.alibi_slopes(len(slopes)))
    return right_torch.alibi_sdpa(q, k, v, own, offset)


@sdpa
def sees_one_ahead(q, k, v, slopes, offset):
    distance = apart(q, k, offset)
    return attend(q, k, v, (three(slopes) * -distance.abs()).masked_fill(distance > 1, -math.inf))


@sdpa
def offset_moves_the_keys(q, k, v, slopes, offset):
    """The first keys are dropped, as if the cache began at the offset."""
    return right_torch.alibi_sdpa(q, k[:, :, offset:], v[:, :, offset:], slopes)


@sdpa
def key_bias_in_the_input_dtype(q, k, v, slopes, offset):
    """The form of the key alone, in bfloat16."""
    bias = slopes.to(q.dtype)[:, None, None] * torch.arange(k.shape[2]).to(q.dtype)
    return attend(q, k, v, causal(bias.expand(-1, q.shape[2], -1), apart(q, k, offset)))


@sdpa
def key_bias_cast_late(q, k, v, slopes, offset):
    """Exact in float32, and then cast to the dtype of q: the numbers are far too large for it."""
    bias = three(slopes) * torch.arange(k.shape[2])
    mask = causal(bias.expand(-1, q.shape[2], -1), apart(q, k, offset))
    return attend(q, k, v, mask.to(q.dtype))


@sdpa
def positions_in_half(q, k, v, slopes, offset):
    """Both positions in bfloat16 whatever the dtype of q."""
    i = torch.arange(offset, offset + q.shape[2]).bfloat16()[:, None]
    bias = three(slopes) * -(i - torch.arange(k.shape[2]).bfloat16()).abs().float()
    return attend(q, k, v, causal(bias, apart(q, k, offset)))


@sdpa
def always_float32(q, k, v, slopes, offset):
    return right_torch.alibi_sdpa(q, k, v, slopes, offset).float()


@sdpa
def always_float64(q, k, v, slopes, offset):
    return right_torch.alibi_sdpa(q, k, v, slopes, offset).double()


@sdpa
def float16_is_bfloat16(q, k, v, slopes, offset):
    out = right_torch.alibi_sdpa(q, k, v, slopes, offset)
    return out.bfloat16() if q.dtype == torch.float16 else out


@sdpa
def library_under_autocast(q, k, v, slopes, offset):
    mask = causal(three(slopes) * apart(q, k, offset), apart(q, k, offset))
    return scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.dtype))


@sdpa
def exp_without_maximum(q, k, v, slopes, offset):
    mask = causal(three(slopes) * apart(q, k, offset), apart(q, k, offset))
    weights = (q.float() @ k.float().mT / q.shape[-1] ** 0.5 + mask).exp()
    return (weights / weights.sum(-1, keepdim=True) @ v.float()).to(q.dtype)


@sdpa
def softmax_over_queries(q, k, v, slopes, offset):
    mask = causal(three(slopes) * apart(q, k, offset), apart(q, k, offset))
    scores = q.double() @ k.double().mT / q.shape[-1] ** 0.5 + mask
    return (scores.softmax(-2).nan_to_num() @ v.double()).to(q.dtype)


@sdpa
def first_row_of_the_batch(q, k, v, slopes, offset):
    return right_torch.alibi_sdpa(q[:1], k[:1], v[:1], slopes, offset).expand_as(q).clone()


@sdpa
def heads_behind_the_sequence(q, k, v, slopes, offset):
    return right_torch.alibi_sdpa(q, k, v, slopes, offset).transpose(1, 2)


@sdpa
def values_changed(q, k, v, slopes, offset):
    out = right_torch.alibi_sdpa(q, k, v, slopes, offset)
    v.mul_(2)
    return out


@sdpa
def slopes_negated(q, k, v, slopes, offset):
    out = right_torch.alibi_sdpa(q, k, v, slopes, offset)
    slopes.neg_()
    return out


@sdpa
def slopes_in_the_input_dtype(q, k, v, slopes, offset):
    """The distance is exact, and the product too, of slopes that have been rounded."""
    distance = apart(q, k, offset)
    return attend(q, k, v, causal(three(slopes.to(q.dtype)) * distance, distance))


@sdpa
def product_in_the_input_dtype(q, k, v, slopes, offset):
    distance = apart(q, k, offset)
    bias = slopes.to(q.dtype)[:, None, None] * distance.to(q.dtype)
    return attend(q, k, v, causal(bias, distance))


@sdpa
def offset_of_the_last_call(q, k, v, slopes, offset):
    """Nought is taken for an offset that was not given."""
    offset = offset or KEPT.get(("offset",), 0)
    KEPT["offset",] = offset if offset + q.shape[2] < k.shape[2] else 0
    return right_torch.alibi_sdpa(q, k, v, slopes, min(offset, k.shape[2] - q.shape[2]))


@wrong("alibi_sdpa")
def one_head_of_keys_and_values_for_all_in_alibi(q, k, v, slopes, offset=0):
    if k.shape[1] == v.shape[1] == 1:
        k, v = (x.expand(-1, q.shape[1], -1, -1) for x in (k, v))
    return right_torch.alibi_sdpa(q, k, v, slopes, offset)


@wrong("alibi_sdpa")
def slopes_of_any_axes(q, k, v, slopes, offset=0):
    return right_torch.alibi_sdpa(q, k, v, slopes.reshape(-1), offset)


@wrong("alibi_sdpa")
def negative_offset_from_the_end(q, k, v, slopes, offset=0):
    return right_torch.alibi_sdpa(q, k, v, slopes, offset if offset >= 0 else k.shape[2] + offset)


@wrong("alibi_sdpa")
def negative_offset_is_zero(q, k, v, slopes, offset=0):
    return right_torch.alibi_sdpa(q, k, v, slopes, max(offset, 0))


@wrong("alibi_sdpa")
def past_the_last_key(q, k, v, slopes, offset=0):
    if offset < 0:
        raise ValueError(offset)
    distance = apart(q, k, offset)
    if len(slopes) != q.shape[1]:
        raise ValueError(slopes.shape)
    right_torch.alibi_sdpa(q[:, :, :1], k, v, slopes)
    return attend(q, k, v, causal(three(slopes) * distance, distance))


@wrong("alibi_sdpa")
def one_past_the_last_key(q, k, v, slopes, offset=0):
    return right_torch.alibi_sdpa(q, k, v, slopes, offset - (offset + q.shape[2] == k.shape[2] + 1))


@wrong("alibi_sdpa")
def slopes_cut_to_length(q, k, v, slopes, offset=0):
    return right_torch.alibi_sdpa(q, k, v, slopes.reshape(-1)[: q.shape[1]], offset)


@wrong("alibi_sdpa")
def slopes_by_reshape(q, k, v, slopes, offset=0):
    """A batch of slopes and a single one broadcast."""
    right_torch.alibi_sdpa(q, k, v, torch.ones(q.shape[1]), offset)
    distance = apart(q, k, offset)
    bias = slopes.float().reshape(*slopes.shape, 1, 1) * distance
    return attend(q, k, v, causal(bias, distance))


@wrong("alibi_sdpa")
def one_row_of_keys_for_all(q, k, v, slopes, offset=0):
    return right_torch.alibi_sdpa(
        q, k.expand(len(q), -1, -1, -1), v.expand(len(q), -1, -1, -1), slopes, offset
    )


@wrong("alibi_sdpa")
def one_row_of_queries_for_all(q, k, v, slopes, offset=0):
    return right_torch.alibi_sdpa(q.expand(len(k), -1, -1, -1), k, v, slopes, offset)


@wrong("alibi_sdpa")
def one_head_of_values_for_all(q, k, v, slopes, offset=0):
    return right_torch.alibi_sdpa(q, k, v.expand(-1, k.shape[1], -1, -1), slopes, offset)


@wrong("alibi_sdpa")
def one_width_for_all(q, k, v, slopes, offset=0):
    k = k.expand_as(v) if k.shape[-1] == 1 else k
    return right_torch.alibi_sdpa(q, k, v, slopes, offset)


@wrong("alibi_sdpa")
def keys_cut_to_the_values(q, k, v, slopes, offset=0):
    return right_torch.alibi_sdpa(q, k[:, :, : v.shape[2]], v, slopes, offset)


@wrong("alibi_sdpa")
def one_head_of_keys_for_all(q, k, v, slopes, offset=0):
    """The heads of the values are looked at, those of the keys broadcast."""
    if k.shape[1] == 1:
        k = k.expand(-1, v.shape[1], -1, -1)
    return right_torch.alibi_sdpa(q, k, v, slopes, offset)


@sdpa
def matrix_product_under_autocast(q, k, v, slopes, offset):
    away = apart(q, k, offset)
    bias = (slopes.float()[:, None] @ away.float().reshape(1, -1)).unflatten(1, away.shape)
    bias = bias.float().masked_fill(away > 0, -math.inf)
    scores = q.float() @ k.float().transpose(2, 3) / math.sqrt(q.shape[-1]) + bias
    return (scores.softmax(-1) @ v.float()).to(q.dtype)

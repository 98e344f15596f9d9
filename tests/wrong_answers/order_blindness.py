"""Wrong answers that differ from a right one in a corner: each must lose points.

They complete the misconceptions, which are what people really do; these are what a check must not
miss. `WRONG[exercise][name]` is a function or class as a student would write it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from solutions.with_numpy import order_blindness as right
from solutions.with_torch import order_blindness as right_torch

WRONG: dict[str, dict[str, Callable[..., Any]]] = {}


def wrong(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        WRONG.setdefault(exercise, {})[function.__name__] = function
        return function

    return keep


# ----------------------------------------------------------------------------- self_attention


def scores_of(x, w_q, w_k):
    x = np.asarray(x, dtype=np.float64)
    return x @ w_q @ (x @ w_k).T / math.sqrt(w_q.shape[1])


def shared(scores, x, w_v):
    with np.errstate(all="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        out = weights / weights.sum(axis=-1, keepdims=True) @ (x @ w_v)
    return out.astype(x.dtype if x.dtype.kind == "f" else np.float64)


@wrong("self_attention")
def ignores_mask(x, w_q, w_k, w_v, mask=None):
    right.self_attention(x, w_q, w_k, w_v, mask)
    return right.self_attention(x, w_q, w_k, w_v)


@wrong("self_attention")
def any_mask_is_causal(x, w_q, w_k, w_v, mask=None):
    right.self_attention(x, w_q, w_k, w_v, mask)
    causal = None if mask is None else right.causal_mask(len(x))
    return right.self_attention(x, w_q, w_k, w_v, causal)


@wrong("self_attention")
def always_causal(x, w_q, w_k, w_v, mask=None):
    right.self_attention(x, w_q, w_k, w_v, mask)
    causal = right.causal_mask(len(x))
    return right.self_attention(x, w_q, w_k, w_v, causal if mask is None else mask)


@wrong("self_attention")
def returns_weights(x, w_q, w_k, w_v, mask=None):
    return right.self_attention(x, w_q, w_k, np.linalg.pinv(x), mask)


@wrong("self_attention")
def values_are_tokens(x, w_q, w_k, w_v, mask=None):
    right.self_attention(x, w_q, w_k, w_v, mask)
    return right.self_attention(x, w_q, w_k, np.eye(x.shape[1]), mask)


@wrong("self_attention")
def keys_use_query_weights(x, w_q, w_k, w_v, mask=None):
    right.self_attention(x, w_q, w_k, w_v, mask)
    return right.self_attention(x, w_q, w_q, w_v, mask)


@wrong("self_attention")
def scaled_by_tokens(x, w_q, w_k, w_v, mask=None):
    right.self_attention(x, w_q, w_k, w_v, mask)
    factor = math.sqrt(w_q.shape[1] / len(x))
    return right.self_attention(x, w_q * factor, w_k, w_v, mask)


@wrong("self_attention")
def scaled_twice(x, w_q, w_k, w_v, mask=None):
    right.self_attention(x, w_q, w_k, w_v, mask)
    return right.self_attention(x, w_q / math.sqrt(w_q.shape[1]), w_k, w_v, mask)


@wrong("self_attention")
def residual(x, w_q, w_k, w_v, mask=None):
    out = right.self_attention(x, w_q, w_k, w_v, mask)
    return out + x[:, : out.shape[1]] if x.shape[1] >= out.shape[1] else out


@wrong("self_attention")
def clipped_scores(x, w_q, w_k, w_v, mask=None):
    out = right.self_attention(x, w_q, w_k, w_v, mask)
    scores = np.exp(np.clip(scores_of(x, w_q, w_k), -500, 500))
    scores = scores if mask is None else scores * mask
    result = scores / scores.sum(axis=1, keepdims=True) @ (x @ w_v)
    return result.astype(out.dtype)


@wrong("self_attention")
def nan_becomes_zero(x, w_q, w_k, w_v, mask=None):
    out = right.self_attention(x, w_q, w_k, w_v, mask)
    with np.errstate(all="ignore"):
        weights = np.exp(scores_of(x, w_q, w_k))
        weights = weights if mask is None else weights * mask
        weights = np.nan_to_num(weights / weights.sum(axis=1, keepdims=True))
    return (weights @ (x @ w_v)).astype(out.dtype)


@wrong("self_attention")
def weak_filler_for_small_scores(x, w_q, w_k, w_v, mask=None):
    right.self_attention(x, w_q, w_k, w_v, mask)
    scores = scores_of(x, w_q, w_k)
    return shared(scores if mask is None else np.where(mask, scores, -20.0), x, w_v)


@wrong("self_attention")
def filler_is_added(x, w_q, w_k, w_v, mask=None):
    right.self_attention(x, w_q, w_k, w_v, mask)
    scores = scores_of(x, w_q, w_k)
    return shared(scores if mask is None else scores + np.where(mask, 0, -1e4), x, w_v)


@wrong("self_attention")
def blind_query_gets_zeros(x, w_q, w_k, w_v, mask=None):
    if mask is None or mask.shape != (len(x), len(x)):
        return right.self_attention(x, w_q, w_k, w_v, mask)
    blind = ~mask.any(axis=1)
    out = right.self_attention(x, w_q, w_k, w_v, mask | blind[:, None])
    out[blind] = 0
    return out


@wrong("self_attention")
def blind_query_gets_nan(x, w_q, w_k, w_v, mask=None):
    if mask is None or mask.shape != (len(x), len(x)):
        return right.self_attention(x, w_q, w_k, w_v, mask)
    return shared(np.where(mask, scores_of(x, w_q, w_k), -np.inf), x, w_v)


@wrong("self_attention")
def blind_only_when_all_are(x, w_q, w_k, w_v, mask=None):
    if mask is not None and mask.shape == (len(x), len(x)) and mask.any():
        mask = mask | ~mask.any(axis=1, keepdims=True)
    return right.self_attention(x, w_q, w_k, w_v, mask)


@wrong("self_attention")
def blind_is_an_index_error(x, w_q, w_k, w_v, mask=None):
    if mask is not None and not mask.any(axis=-1).all():
        raise IndexError("blind query")
    return right.self_attention(x, w_q, w_k, w_v, mask)


@wrong("self_attention")
def blind_keys_are_refused(x, w_q, w_k, w_v, mask=None):
    if mask is not None and not mask.any(axis=0).all():
        raise ValueError("a key that nobody sees")
    return right.self_attention(x, w_q, w_k, w_v, mask)


@wrong("self_attention")
def takes_mask_for_all_queries(x, w_q, w_k, w_v, mask=None):
    if np.shape(mask) == (len(x),):
        mask = np.tile(mask, (len(x), 1))
    return right.self_attention(x, w_q, w_k, w_v, mask)


@wrong("self_attention")
def takes_larger_mask(x, w_q, w_k, w_v, mask=None):
    if mask is not None and mask.ndim == 2 and min(mask.shape) > len(x):
        mask = mask[: len(x), : len(x)]
    return right.self_attention(x, w_q, w_k, w_v, mask)


@wrong("self_attention")
def one_token_takes_any_mask(x, w_q, w_k, w_v, mask=None):
    return right.self_attention(x, w_q, w_k, w_v, None if len(x) == 1 else mask)


@wrong("self_attention")
def always_float32(x, w_q, w_k, w_v, mask=None):
    return right.self_attention(x, w_q, w_k, w_v, mask).astype(np.float32)


@wrong("self_attention")
def integers_become_float32(x, w_q, w_k, w_v, mask=None):
    out = right.self_attention(x, w_q, w_k, w_v, mask)
    return out.astype(np.float32) if x.dtype.kind in "iu" else out


@wrong("self_attention")
def widest_dtype_wins(x, w_q, w_k, w_v, mask=None):
    out = right.self_attention(x, w_q, w_k, w_v, mask)
    return out.astype(np.result_type(out.dtype, w_q, w_k, w_v))


@wrong("self_attention")
def dtype_of_values(x, w_q, w_k, w_v, mask=None):
    out = right.self_attention(x, w_q, w_k, w_v, mask)
    return out.astype(w_v.dtype) if w_v.dtype.kind == "f" else out


@wrong("self_attention")
def integer_weights_truncate(x, w_q, w_k, w_v, mask=None):
    out = right.self_attention(x, w_q, w_k, w_v, mask)
    return out.round() if w_v.dtype.kind in "iu" else out


@wrong("self_attention")
def scales_weights_in_place(x, w_q, w_k, w_v, mask=None):
    out = right.self_attention(x, w_q, w_k, w_v, mask)
    if w_q.dtype.kind == "f":
        w_q /= math.sqrt(w_q.shape[1])
    return out


@wrong("self_attention")
def rounded(x, w_q, w_k, w_v, mask=None):
    return right.self_attention(x, w_q, w_k, w_v, mask).round(4)


@wrong("self_attention")
def keys_stretched_to_queries(x, w_q, w_k, w_v, mask=None):
    if w_k.shape[1] == 1:
        w_k = np.repeat(w_k, w_q.shape[1], axis=1)
    return right.self_attention(x, w_q, w_k, w_v, mask)


@wrong("self_attention")
def value_rows_stretched(x, w_q, w_k, w_v, mask=None):
    if len(w_v) == 1:
        w_v = np.repeat(w_v, x.shape[1], axis=0)
    return right.self_attention(x, w_q, w_k, w_v, mask)


@wrong("self_attention")
def float32_inside(x, w_q, w_k, w_v, mask=None):
    out = right.self_attention(x, w_q, w_k, w_v, mask)
    small = (a.astype(np.float32) for a in (x, w_q, w_k, w_v))
    return right.self_attention(*small, mask).astype(out.dtype)


@wrong("self_attention")
def square_transposed(x, w_q, w_k, w_v, mask=None):
    if w_v.shape[0] == w_v.shape[1]:
        w_v = w_v.T
    return right.self_attention(x, w_q, w_k, w_v, mask)


# ---------------------------------------------------------------------------- permutation_gap


def gap_of(x, w_q, w_k, w_v, order, mask, last_order=None):
    x = np.asarray(x, dtype=np.float64)
    first = right.self_attention(x[order], w_q, w_k, w_v, mask)
    last = right.self_attention(x, w_q, w_k, w_v, mask)
    return float(np.abs(first - last[order if last_order is None else last_order]).max())


@wrong("permutation_gap")
def a_constant(x, w_q, w_k, w_v, permutation, mask=None):
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    return 0.0 if mask is None else 3.0


@wrong("permutation_gap")
def gap_without_mask(x, w_q, w_k, w_v, permutation, mask=None):
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    return right.permutation_gap(x, w_q, w_k, w_v, permutation)


@wrong("permutation_gap")
def always_zero(x, w_q, w_k, w_v, permutation, mask=None):
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    return 0.0


@wrong("permutation_gap")
def yes_or_no(x, w_q, w_k, w_v, permutation, mask=None):
    return right.permutation_gap(x, w_q, w_k, w_v, permutation, mask) > 1e-9


@wrong("permutation_gap")
def one_number_per_token(x, w_q, w_k, w_v, permutation, mask=None):
    return np.full(len(x), right.permutation_gap(x, w_q, w_k, w_v, permutation, mask))


@wrong("permutation_gap")
def squared(x, w_q, w_k, w_v, permutation, mask=None):
    return right.permutation_gap(x, w_q, w_k, w_v, permutation, mask) ** 2


@wrong("permutation_gap")
def relative(x, w_q, w_k, w_v, permutation, mask=None):
    gap = right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    largest = np.abs(right.self_attention(np.asarray(x, float), w_q, w_k, w_v, mask)).max()
    return gap / float(largest)


@wrong("permutation_gap")
def first_token_only(x, w_q, w_k, w_v, permutation, mask=None):
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    x = np.asarray(x, dtype=np.float64)
    first = right.self_attention(x[permutation], w_q, w_k, w_v, mask)
    last = right.self_attention(x, w_q, w_k, w_v, mask)[permutation]
    return float(np.abs(first - last)[0].max())


@wrong("permutation_gap")
def smallest_difference(x, w_q, w_k, w_v, permutation, mask=None):
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    x = np.asarray(x, dtype=np.float64)
    first = right.self_attention(x[permutation], w_q, w_k, w_v, mask)
    last = right.self_attention(x, w_q, w_k, w_v, mask)[permutation]
    return float(np.abs(first - last).min())


@wrong("permutation_gap")
def difference_of_largest(x, w_q, w_k, w_v, permutation, mask=None):
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    x = np.asarray(x, dtype=np.float64)
    first = right.self_attention(x[permutation], w_q, w_k, w_v, mask)
    return float(abs(first.max() - right.self_attention(x, w_q, w_k, w_v, mask).max()))


@wrong("permutation_gap")
def compares_with_tokens(x, w_q, w_k, w_v, permutation, mask=None):
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    x = np.asarray(x, dtype=np.float64)
    return float(np.abs(x[permutation] - x).max())


@wrong("permutation_gap")
def reverses_always(x, w_q, w_k, w_v, permutation, mask=None):
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    return gap_of(x, w_q, w_k, w_v, np.arange(len(x))[::-1], mask)


@wrong("permutation_gap")
def mask_columns_move(x, w_q, w_k, w_v, permutation, mask=None):
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    x = np.asarray(x, dtype=np.float64)
    moved = None if mask is None else mask[:, permutation] | np.eye(len(x), dtype=bool)
    first = right.self_attention(x[permutation], w_q, w_k, w_v, moved)
    last = right.self_attention(x, w_q, w_k, w_v, mask)[permutation]
    return float(np.abs(first - last).max())


@wrong("permutation_gap")
def mask_moves_back(x, w_q, w_k, w_v, permutation, mask=None):
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    x = np.asarray(x, dtype=np.float64)
    inverse = np.argsort(permutation)
    moved = None if mask is None else mask[inverse][:, inverse]
    first = right.self_attention(x[permutation], w_q, w_k, w_v, moved)
    last = right.self_attention(x, w_q, w_k, w_v, mask)[permutation]
    return float(np.abs(first - last).max())


@wrong("permutation_gap")
def truncates_fractions(x, w_q, w_k, w_v, permutation, mask=None):
    order = np.asarray(permutation)
    order = order.astype(int) if order.dtype.kind == "f" else order
    return right.permutation_gap(x, w_q, w_k, w_v, order, mask)


@wrong("permutation_gap")
def takes_a_column(x, w_q, w_k, w_v, permutation, mask=None):
    return right.permutation_gap(x, w_q, w_k, w_v, np.ravel(permutation), mask)


@wrong("permutation_gap")
def takes_a_subset(x, w_q, w_k, w_v, permutation, mask=None):
    if len(permutation) < len(x) and len(set(permutation.tolist())) == len(permutation):
        return gap_of(x, w_q, w_k, w_v, permutation, None)
    return right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)


@wrong("permutation_gap")
def cuts_what_is_too_long(x, w_q, w_k, w_v, permutation, mask=None):
    return right.permutation_gap(x, w_q, w_k, w_v, permutation[: len(x)], mask)


@wrong("permutation_gap")
def clips(x, w_q, w_k, w_v, permutation, mask=None):
    if np.asarray(permutation).dtype.kind in "iu" and np.max(permutation) >= len(x):
        permutation = np.minimum(permutation, len(x) - 1)
    return right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)


@wrong("permutation_gap")
def out_of_range_is_an_index_error(x, w_q, w_k, w_v, permutation, mask=None):
    np.asarray(x)[permutation]
    return right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)


@wrong("permutation_gap")
def the_sum_is_enough(x, w_q, w_k, w_v, permutation, mask=None):
    order, n = np.asarray(permutation), len(x)
    if order.dtype.kind == "i" and order.shape == (n,) and order.min() < 0:
        order = order % n
    return right.permutation_gap(x, w_q, w_k, w_v, order, mask)


@wrong("permutation_gap")
def takes_a_mask(x, w_q, w_k, w_v, permutation, mask=None):
    order = np.asarray(permutation)
    if order.dtype == bool:
        order = np.concatenate([np.flatnonzero(order), np.flatnonzero(~order)])
    return right.permutation_gap(x, w_q, w_k, w_v, order, mask)


@wrong("permutation_gap")
def refuses_the_identity(x, w_q, w_k, w_v, permutation, mask=None):
    if np.array_equal(permutation, np.arange(len(x))):
        raise ValueError("nothing moves")
    return right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)


@wrong("permutation_gap")
def permutes_tokens_in_place(x, w_q, w_k, w_v, permutation, mask=None):
    gap = right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    x[:] = x[permutation]
    return gap


@wrong("permutation_gap")
def three_digits(x, w_q, w_k, w_v, permutation, mask=None):
    return round(right.permutation_gap(x, w_q, w_k, w_v, permutation, mask), 3)


# ------------------------------------------------------------------------ failed_requirements


def closest(table):
    """The smallest distance of two rows, in the coordinate in which they differ most."""
    rows = [np.abs(table[t + 1 :] - table[t]).max(axis=1) for t in range(len(table) - 1)]
    return min((row.min() for row in rows), default=np.inf)


def with_rule(short, long, bound, name, met):
    failed = right.failed_requirements(short, long, bound)
    short, long = short.astype(float), long.astype(float)
    return failed - {name} if met(short, long) else failed | {name}


@wrong("failed_requirements")
def a_list(short_table, long_table, bound=1.0):
    return sorted(right.failed_requirements(short_table, long_table, bound))


@wrong("failed_requirements")
def a_dict(short_table, long_table, bound=1.0):
    return dict.fromkeys(right.failed_requirements(short_table, long_table, bound), True)


@wrong("failed_requirements")
def how_many(short_table, long_table, bound=1.0):
    return len(right.failed_requirements(short_table, long_table, bound))


@wrong("failed_requirements")
def other_spelling(short_table, long_table, bound=1.0):
    failed = right.failed_requirements(short_table, long_table, bound)
    return {name.replace("-", "_") for name in failed}


@wrong("failed_requirements")
def none_when_nothing_fails(short_table, long_table, bound=1.0):
    return right.failed_requirements(short_table, long_table, bound) or None


@wrong("failed_requirements")
def only_long_is_bounded(short_table, long_table, bound=1.0):
    return with_rule(
        short_table, long_table, bound, "bounded", lambda s, t: np.abs(t).max() <= bound
    )


@wrong("failed_requirements")
def some_number_is_bounded(short_table, long_table, bound=1.0):
    return with_rule(
        short_table, long_table, bound, "bounded", lambda s, t: (np.abs(t) <= bound).any()
    )


@wrong("failed_requirements")
def rows_have_length_at_most_bound(short_table, long_table, bound=1.0):
    def met(short, long):
        return np.linalg.norm(long, axis=1).max() <= bound

    return with_rule(short_table, long_table, bound, "bounded", met)


@wrong("failed_requirements")
def bounded_between_zero_and_bound(short_table, long_table, bound=1.0):
    def met(short, long):
        return min(short.min(), long.min()) >= 0 and max(short.max(), long.max()) <= bound

    return with_rule(short_table, long_table, bound, "bounded", met)


@wrong("failed_requirements")
def negative_bound_excluded(short_table, long_table, bound=1.0):
    def met(short, long):
        return min(short.min(), long.min()) > -bound and max(short.max(), long.max()) <= bound

    return with_rule(short_table, long_table, bound, "bounded", met)


@wrong("failed_requirements")
def bound_at_least_one(short_table, long_table, bound=1.0):
    return right.failed_requirements(short_table, long_table, max(bound, 1.0))


@wrong("failed_requirements")
def unique_in_rounded_digits(short_table, long_table, bound=1.0):
    def met(short, long):
        return all(len(np.unique(t.round(9), axis=0)) == len(t) for t in (short, long))

    return with_rule(short_table, long_table, bound, "unique", met)


@wrong("failed_requirements")
def unique_in_six_digits(short_table, long_table, bound=1.0):
    def met(short, long):
        return min(closest(short), closest(long)) > 5e-6

    return with_rule(short_table, long_table, bound, "unique", met)


@wrong("failed_requirements")
def unique_in_every_column(short_table, long_table, bound=1.0):
    def met(short, long):
        return all(len(np.unique(c)) == len(t) for t in (short, long) for c in t.T)

    return with_rule(short_table, long_table, bound, "unique", met)


@wrong("failed_requirements")
def unique_by_sums(short_table, long_table, bound=1.0):
    def met(short, long):
        return min(closest(t.sum(axis=1, keepdims=True)) for t in (short, long)) > 1e-9

    return with_rule(short_table, long_table, bound, "unique", met)


@wrong("failed_requirements")
def unique_by_first_column(short_table, long_table, bound=1.0):
    def met(short, long):
        return min(closest(t[:, :1]) for t in (short, long)) > 1e-9

    return with_rule(short_table, long_table, bound, "unique", met)


@wrong("failed_requirements")
def unlike_the_first_row(short_table, long_table, bound=1.0):
    def met(short, long):
        return all(np.abs(t[1:] - t[0]).max(axis=1).min() > 1e-9 for t in (short, long))

    return with_rule(short_table, long_table, bound, "unique", met)


@wrong("failed_requirements")
def unlike_the_last_row(short_table, long_table, bound=1.0):
    def met(short, long):
        return all(np.abs(t[:-1] - t[-1]).max(axis=1).min() > 1e-9 for t in (short, long))

    return with_rule(short_table, long_table, bound, "unique", met)


@wrong("failed_requirements")
def short_rows_occur_in_long(short_table, long_table, bound=1.0):
    def met(short, long):
        return all(np.abs(long - row).max(axis=1).min() <= 1e-9 for row in short)

    return with_rule(short_table, long_table, bound, "length-independent", met)


@wrong("failed_requirements")
def last_common_row_only(short_table, long_table, bound=1.0):
    def met(short, long):
        return np.abs(long[len(short) - 1] - short[-1]).max() <= 1e-9

    return with_rule(short_table, long_table, bound, "length-independent", met)


@wrong("failed_requirements")
def same_span_of_values(short_table, long_table, bound=1.0):
    def met(short, long):
        return abs(short.max() - long.max()) < 1e-9 and abs(short.min() - long.min()) < 1e-9

    return with_rule(short_table, long_table, bound, "length-independent", met)


@wrong("failed_requirements")
def roughly_the_same(short_table, long_table, bound=1.0):
    def met(short, long):
        return np.abs(long[: len(short)] - short).max() <= 0.05

    return with_rule(short_table, long_table, bound, "length-independent", met)


@wrong("failed_requirements")
def more_than_two_dimensions(short_table, long_table, bound=1.0):
    def met(short, long):
        return long.shape[1] > 2

    return with_rule(short_table, long_table, bound, "multi-dimensional", met)


@wrong("failed_requirements")
def takes_one_axis(short_table, long_table, bound=1.0):
    short, long = (t[:, None] if t.ndim == 1 else t for t in (short_table, long_table))
    return right.failed_requirements(short, long, bound)


@wrong("failed_requirements")
def takes_them_in_any_order(short_table, long_table, bound=1.0):
    short, long = sorted((short_table, long_table), key=len)
    return right.failed_requirements(short, long, bound)


@wrong("failed_requirements")
def cuts_to_common_width(short_table, long_table, bound=1.0):
    width = min(short_table.shape[-1], long_table.shape[-1])
    if short_table.ndim == long_table.ndim == 2:
        short_table, long_table = short_table[:, :width], long_table[:, :width]
    return right.failed_requirements(short_table, long_table, bound)


@wrong("failed_requirements")
def scales_in_place(short_table, long_table, bound=1.0):
    failed = right.failed_requirements(short_table, long_table, bound)
    if long_table.dtype.kind == "f":
        long_table /= bound
    return failed


# --------------------------------------------------------------------------- binary_positions


@wrong("binary_positions")
def booleans(num_positions, num_bits):
    return right.binary_positions(num_positions, num_bits).astype(bool)


@wrong("binary_positions")
def plus_and_minus_one(num_positions, num_bits):
    return 2 * right.binary_positions(num_positions, num_bits) - 1


@wrong("binary_positions")
def as_texts(num_positions, num_bits):
    return right.binary_positions(num_positions, num_bits).astype(str)


@wrong("binary_positions")
def bits_not_reduced(num_positions, num_bits):
    right.binary_positions(num_positions, num_bits)
    return np.arange(num_positions)[:, None] >> np.arange(num_bits)


@wrong("binary_positions")
def bits_kept_in_place(num_positions, num_bits):
    right.binary_positions(num_positions, num_bits)
    return np.arange(num_positions)[:, None] & 1 << np.arange(num_bits)


@wrong("binary_positions")
def steps_of_twice_the_column(num_positions, num_bits):
    right.binary_positions(num_positions, num_bits)
    return np.arange(num_positions)[:, None] // np.maximum(2 * np.arange(num_bits), 1) % 2


@wrong("binary_positions")
def three_columns(num_positions, num_bits):
    return right.binary_positions(num_positions, num_bits)[:, :3]


@wrong("binary_positions")
def only_the_bits_needed(num_positions, num_bits):
    needed = max(int(num_positions - 1).bit_length(), 1)
    return right.binary_positions(num_positions, num_bits)[:, :needed]


@wrong("binary_positions")
def all_rows_there_are(num_positions, num_bits):
    right.binary_positions(num_positions, num_bits)
    return right.binary_positions(2**num_bits, num_bits)


@wrong("binary_positions")
def bits_must_be_fewer_than_positions(num_positions, num_bits):
    if num_bits >= num_positions:
        raise ValueError("too many bits")
    return right.binary_positions(num_positions, num_bits)


@wrong("binary_positions")
def never_uses_the_last_row(num_positions, num_bits):
    if num_positions > max(2**num_bits - 1, 1):
        raise ValueError(f"{num_bits} bits count to {2**num_bits - 1} only")
    return right.binary_positions(num_positions, num_bits)


@wrong("binary_positions")
def too_few_is_a_type_error(num_positions, num_bits):
    if num_positions > 2**num_bits:
        raise TypeError("too few bits")
    return right.binary_positions(num_positions, num_bits)


@wrong("binary_positions")
def one_position_more(num_positions, num_bits):
    if num_positions == 2**num_bits + 1:
        num_positions -= 1
    return right.binary_positions(num_positions, num_bits)


@wrong("binary_positions")
def too_few_bits_are_added(num_positions, num_bits):
    return right.binary_positions(num_positions, max(num_bits, (num_positions - 1).bit_length()))


@wrong("binary_positions")
def negative_bits_are_none(num_positions, num_bits):
    if num_bits < 0 <= num_positions:
        return np.zeros((num_positions, 0), dtype=int)
    return right.binary_positions(num_positions, num_bits)


@wrong("binary_positions")
def eight_bits_at_most(num_positions, num_bits):
    table = right.binary_positions(num_positions, num_bits)
    table[:, 8:] = 0
    return table


# -------------------------------------------------------------------------------- causal_mask


@wrong("causal_mask")
def integers(n):
    return right.causal_mask(n).astype(int)


@wrong("causal_mask")
def all_true(n):
    return np.ones((right.as_count(n, "n"),) * 2, dtype=bool)


@wrong("causal_mask")
def only_itself(n):
    return np.eye(right.as_count(n, "n"), dtype=bool)


@wrong("causal_mask")
def always_three(n):
    right.causal_mask(n)
    return right.causal_mask(3)


@wrong("causal_mask")
def one_row_too_many(n):
    return right.causal_mask(n + 1)[:, :n]


@wrong("causal_mask")
def with_a_batch_axis(n):
    return right.causal_mask(n)[None]


@wrong("causal_mask")
def minus_infinity(n):
    return np.where(right.causal_mask(n), 0.0, -np.inf)


@wrong("causal_mask")
def itself_and_one_before(n):
    return right.causal_mask(n) & ~np.tri(n, k=-2, dtype=bool)


@wrong("causal_mask")
def anti_diagonal(n):
    return right.causal_mask(n)[:, ::-1]


@wrong("causal_mask")
def single_token_sees_nothing(n):
    return right.causal_mask(n) if n != 1 else np.zeros((1, 1), dtype=bool)


@wrong("causal_mask")
def counts_in_a_byte(n):
    t = (np.arange(right.as_count(n, "n")) % 32).astype(np.int8)
    return t[:, None] >= t


@wrong("causal_mask")
def absolute_number(n):
    return right.causal_mask(abs(n))


@wrong("causal_mask")
def averages(n):
    mask = right.causal_mask(n)
    return mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)


@wrong("causal_mask")
def a_list_of_numbers(n):
    return right.causal_mask(n).astype(int).tolist()


# -------------------------------------------------------------- positions_from_causal_average


@wrong("positions_from_causal_average")
def sorted_positions(weights):
    return np.sort(right.positions_from_causal_average(weights))


@wrong("positions_from_causal_average")
def share_of_last_token(weights):
    right.positions_from_causal_average(weights)
    last = weights[:, -1]
    return np.where(last > 0, np.rint(1 / np.where(last > 0, last, 1)) - 1, 0).astype(int)


@wrong("positions_from_causal_average")
def logarithm(weights):
    right.positions_from_causal_average(weights)
    return np.rint(-np.log2(weights[:, 0].astype(float))).astype(int)


@wrong("positions_from_causal_average")
def share_instead_of_reciprocal(weights):
    right.positions_from_causal_average(weights)
    return np.rint(weights[:, 0] * len(weights)).astype(int) - 1


@wrong("positions_from_causal_average")
def row_sums(weights):
    right.positions_from_causal_average(weights)
    return np.rint(weights.sum(axis=1)).astype(int)


@wrong("positions_from_causal_average")
def shares_below_a_threshold_are_zero(weights):
    right.positions_from_causal_average(weights)
    return np.count_nonzero(weights > 0.01, axis=1) - 1


@wrong("positions_from_causal_average")
def truncated_counts_minus_one(weights):
    right.positions_from_causal_average(weights)
    return (1 / weights[:, 0] - 1).astype(int)


@wrong("positions_from_causal_average")
def bytes_of_positions(weights):
    return right.positions_from_causal_average(weights).astype(np.uint8)


@wrong("positions_from_causal_average")
def a_column_of_positions(weights):
    return right.positions_from_causal_average(weights)[:, None]


@wrong("positions_from_causal_average")
def center_of_attention(weights):
    """The mean of 0 … t is t/2."""
    right.positions_from_causal_average(weights)
    return (weights.astype(float) @ np.arange(len(weights))).astype(int) * 2


@wrong("positions_from_causal_average")
def first_is_always_first(weights):
    positions = right.positions_from_causal_average(weights)
    return positions - positions[0]


@wrong("positions_from_causal_average")
def cumulative(weights):
    positions = right.positions_from_causal_average(weights)
    return np.cumsum(np.ones_like(positions)) - 1


@wrong("positions_from_causal_average")
def at_most_512(weights):
    return np.minimum(right.positions_from_causal_average(weights), 511)


@wrong("positions_from_causal_average")
def two_decimals(weights):
    right.positions_from_causal_average(weights)
    return np.rint(1 / np.maximum(weights[:, 0].round(2), 0.005)).astype(int) - 1


@wrong("positions_from_causal_average")
def zeroes_in_place(weights):
    positions = right.positions_from_causal_average(weights)
    weights[weights > 0] = 1
    return positions


@wrong("positions_from_causal_average")
def takes_wide_weights(weights):
    if weights.ndim == 2 and weights.shape[0] < weights.shape[1]:
        return np.count_nonzero(weights, axis=1) - 1
    return right.positions_from_causal_average(weights)


@wrong("positions_from_causal_average")
def takes_tall_weights(weights):
    if weights.ndim == 2 and weights.shape[0] > weights.shape[1]:
        return np.rint(1 / weights[:, 0]).astype(int) - 1
    return right.positions_from_causal_average(weights)


@wrong("positions_from_causal_average")
def float32_becomes_float(weights):
    positions = right.positions_from_causal_average(weights)
    return positions.astype(weights.dtype) if weights.dtype == np.float32 else positions


# ----------------------------------------------------------------------- multi_head_attention

attend = right_torch.multi_head_attention


@wrong("multi_head_attention")
def no_mask_at_all(q, k, v, mask=None):
    attend(q, k, v, mask)
    return attend(q, k, v)


@wrong("multi_head_attention")
def always_causal_heads(q, k, v, mask=None):
    attend(q, k, v, mask)
    causal = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()
    return attend(q, k, v, causal if mask is None else mask)


@wrong("multi_head_attention")
def one_head_only(q, k, v, mask=None):
    attend(q, k, v, mask)
    return attend(q[:, :1], k[:, :1], v[:, :1]).expand_as(q)


@wrong("multi_head_attention")
def heads_joined(q, k, v, mask=None):
    """All heads of a token as one long vector."""
    attend(q, k, v, mask)
    batch, heads, seq, dim = q.shape
    joined = [x.transpose(1, 2).reshape(batch, 1, seq, heads * dim) for x in (q, k, v)]
    out = attend(*joined, None if mask is None or mask.ndim > 2 else mask)
    return out.reshape(batch, seq, heads, dim).transpose(1, 2)


@wrong("multi_head_attention")
def sequences_joined(q, k, v, mask=None):
    attend(q, k, v, mask)
    batch, heads, seq, dim = q.shape
    if mask is not None:
        return attend(q, k, v, mask)
    joined = [x.transpose(0, 1).reshape(1, heads, batch * seq, dim) for x in (q, k, v)]
    return attend(*joined).reshape(heads, batch, seq, dim).transpose(0, 1)


@wrong("multi_head_attention")
def heads_merged_in_result(q, k, v, mask=None):
    return attend(q, k, v, mask).transpose(1, 2).flatten(2)


@wrong("multi_head_attention")
def divided_by_width(q, k, v, mask=None):
    attend(q, k, v, mask)
    return attend(q / math.sqrt(q.shape[-1]), k, v, mask)


@wrong("multi_head_attention")
def keys_ask(q, k, v, mask=None):
    return attend(k, q, v, mask)


@wrong("multi_head_attention")
def values_forgotten(q, k, v, mask=None):
    attend(q, k, v, mask)
    return attend(q, k, k, mask)


@wrong("multi_head_attention")
def mask_needs_four_axes(q, k, v, mask=None):
    if mask is not None and mask.ndim != 4:
        raise ValueError("(batch, heads, seq, seq)")
    return attend(q, k, v, mask)


@wrong("multi_head_attention")
def mask_needs_all_queries(q, k, v, mask=None):
    if mask is not None and mask.shape[-2] != q.shape[2]:
        raise ValueError("(…, seq, seq)")
    return attend(q, k, v, mask)


@wrong("multi_head_attention")
def mask_gets_an_axis(q, k, v, mask=None):
    if mask is not None and mask.ndim == 4 and mask.shape[1] == 1 and mask.shape[2] == 1:
        mask = mask[:, 0, 0, :, None]
        mask = mask[:, None]
    return attend(q, k, v, mask)


@wrong("multi_head_attention")
def mask_transposed(q, k, v, mask=None):
    attend(q, k, v, mask)
    if mask is not None and mask.shape[-1] == mask.shape[-2]:
        mask = mask.mT
    return attend(q, k, v, mask)


@wrong("multi_head_attention")
def first_sequences_mask(q, k, v, mask=None):
    attend(q, k, v, mask)
    return attend(q, k, v, mask[:1] if mask is not None and mask.ndim == 4 else mask)


@wrong("multi_head_attention")
def filler_too_large_for_float16(q, k, v, mask=None):
    attend(q, k, v, mask)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return (scores.softmax(-1) @ v).to(q.dtype)


@wrong("multi_head_attention")
def largest_before_mask(q, k, v, mask=None):
    attend(q, k, v, mask)
    scores = q.double() @ k.double().mT / math.sqrt(q.shape[-1])
    weights = (scores - scores.amax(-1, keepdim=True)).float().exp()
    weights = weights if mask is None else weights * mask
    return (weights / weights.sum(-1, keepdim=True)).to(v.dtype).matmul(v).to(q.dtype)


@wrong("multi_head_attention")
def clamped(q, k, v, mask=None):
    attend(q, k, v, mask)
    scores = (q.double() @ k.double().mT / math.sqrt(q.shape[-1])).clamp(-50, 50)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return (scores.softmax(-1) @ v.double()).to(q.dtype)


@wrong("multi_head_attention")
def plain_products_under_autocast(q, k, v, mask=None):
    attend(q, k, v, mask)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1).to(v.dtype) @ v


@wrong("multi_head_attention")
def half_becomes_float(q, k, v, mask=None):
    out = attend(q, k, v, mask)
    return out.float() if out.dtype == torch.float16 else out


@wrong("multi_head_attention")
def float64_refused(q, k, v, mask=None):
    if q.dtype == torch.float64:
        raise TypeError("float32, please")
    return attend(q, k, v, mask)


@wrong("multi_head_attention")
def an_array(q, k, v, mask=None):
    return attend(q, k, v, mask).float().numpy()


@wrong("multi_head_attention")
def mask_inverted_in_place(q, k, v, mask=None):
    out = attend(q, k, v, mask)
    if mask is not None:
        mask.logical_not_()
    return out


@wrong("multi_head_attention")
def values_zeroed_in_place(q, k, v, mask=None):
    out = attend(q, k, v, mask)
    v.zero_()
    return out


@wrong("multi_head_attention")
def dropout(q, k, v, mask=None):
    return attend(q, k, v, mask) * 0.9


@wrong("multi_head_attention")
def shared_keys(q, k, v, mask=None):
    if k.shape[1] == 1:
        k = k.expand_as(q)
    return attend(q, k, v, mask)


@wrong("multi_head_attention")
def shared_values(q, k, v, mask=None):
    if v.shape[0] == 1:
        v = v.expand_as(q)
    return attend(q, k, v, mask)


@wrong("multi_head_attention")
def one_query_for_all(q, k, v, mask=None):
    if q.shape[0] == 1 or q.shape[1] == 1:
        q = q.expand_as(k)
    return attend(q, k, v, mask)


@wrong("multi_head_attention")
def mask_cut_to_size(q, k, v, mask=None):
    if mask is not None and mask.ndim == 4:
        mask = mask[: q.shape[0], : q.shape[1]]
    return attend(q, k, v, mask)


@wrong("multi_head_attention")
def mask_that_does_not_fit_is_ignored(q, k, v, mask=None):
    try:
        return attend(q, k, v, mask)
    except ValueError:
        return attend(q, k, v)


# --------------------------------------------------------------- found by programs of outsiders


@wrong("permutation_gap")
def rounds_fractions(x, w_q, w_k, w_v, permutation, mask=None):
    order = np.asarray(permutation)
    order = np.rint(order).astype(int) if order.dtype.kind == "f" else order
    return right.permutation_gap(x, w_q, w_k, w_v, order, mask)


@wrong("permutation_gap")
def reshuffles_the_shuffled(x, w_q, w_k, w_v, permutation, mask=None):
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    shuffled = right.self_attention(np.asarray(x, float)[permutation], w_q, w_k, w_v, mask)
    again = right.self_attention(np.asarray(x, float)[permutation], w_q, w_k, w_v, mask)
    return float(np.abs(shuffled - again).max())


def twins_by(distance, table):
    rows = range(len(table))
    return any(distance(np.abs(table[a] - table[b])) <= 1e-9 for a in rows for b in rows if a < b)


def with_twins_by(distance, short_table, long_table, bound):
    failed = right.failed_requirements(short_table, long_table, bound) - {"unique"}
    tables = (np.asarray(table, dtype=float) for table in (short_table, long_table))
    return failed | ({"unique"} if any(twins_by(distance, t) for t in tables) else set())


@wrong("failed_requirements")
def never_says_multi_dimensional(short_table, long_table, bound=1.0):
    return right.failed_requirements(short_table, long_table, bound) - {"multi-dimensional"}


@wrong("failed_requirements")
def elif_from_the_other_end(short_table, long_table, bound=1.0):
    failed = right.failed_requirements(short_table, long_table, bound)
    order = ("multi-dimensional", "length-independent", "unique", "bounded")
    return set([name for name in order if name in failed][:1])


@wrong("failed_requirements")
def each_row_is_its_own_twin(short_table, long_table, bound=1.0):
    failed = right.failed_requirements(short_table, long_table, bound)
    near = np.abs(long_table[:, None] - long_table[None]) <= 1e-9
    return failed | {"unique"} if near.all(axis=-1).any() else failed


@wrong("failed_requirements")
def whole_tables_are_compared(short_table, long_table, bound=1.0):
    failed = right.failed_requirements(short_table, long_table, bound) - {"length-independent"}
    same = np.array_equal(long_table, short_table)
    return failed if same else failed | {"length-independent"}


@wrong("failed_requirements")
def straight_line_distance(short_table, long_table, bound=1.0):
    return with_twins_by(np.linalg.norm, short_table, long_table, bound)


@wrong("failed_requirements")
def average_distance(short_table, long_table, bound=1.0):
    return with_twins_by(np.mean, short_table, long_table, bound)


@wrong("failed_requirements")
def starts_alike_on_average(short_table, long_table, bound=1.0):
    failed = right.failed_requirements(short_table, long_table, bound) - {"length-independent"}
    off = np.abs(np.asarray(long_table)[: len(short_table)] - np.asarray(short_table)).mean()
    return failed | ({"length-independent"} if off > 1e-9 else set())


@wrong("failed_requirements")
def starts_alike_by_allclose(short_table, long_table, bound=1.0):
    failed = right.failed_requirements(short_table, long_table, bound) - {"length-independent"}
    same = np.allclose(np.asarray(long_table)[: len(short_table)], short_table)
    return failed if same else failed | {"length-independent"}


@wrong("failed_requirements")
def signs_are_kept(short_table, long_table, bound=1.0):
    failed = right.failed_requirements(short_table, long_table, bound)
    for table in (np.asarray(short_table, dtype=float), np.asarray(long_table, dtype=float)):
        near = (table[:, None] - table[None] <= 1e-9).all(axis=-1)
        failed |= {"unique"} if near.sum() > len(table) else set()
    return failed


@wrong("failed_requirements")
def same_length_accepted(short_table, long_table, bound=1.0):
    if np.shape(short_table) == np.shape(long_table) and np.ndim(long_table) == 2:
        long_table = np.concatenate([long_table, 0 * long_table[:1] + 0.123])
    return right.failed_requirements(short_table, long_table, bound)


@wrong("failed_requirements")
def a_little_more_than_the_bound(short_table, long_table, bound=1.0):
    return right.failed_requirements(short_table, long_table, bound + 1e-3)


@wrong("failed_requirements")
def digits_of_float32(short_table, long_table, bound=1.0):
    tables = (np.asarray(table, dtype=np.float32) for table in (short_table, long_table))
    return right.failed_requirements(*tables, bound)


@wrong("binary_positions")
def negative_bits_of_no_position(num_positions, num_bits):
    return right.binary_positions(num_positions, num_bits if num_positions else 0)


@wrong("causal_mask")
def no_token_is_refused(n):
    if n < 1:
        raise ValueError("n must be positive")
    return right.causal_mask(n)


@wrong("causal_mask")
def cut_from_a_stored_mask(n):
    return right.causal_mask(64)[: right.as_count(n, "n"), :n]


def reads_square(weights):
    weights = np.asarray(weights)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError("square weights")
    with np.errstate(all="ignore"):
        return weights, np.rint(1 / weights[:, 0].astype(float))


@wrong("positions_from_causal_average")
def believes_what_it_reads(weights):
    return reads_square(weights)[1].astype(np.int64) - 1


@wrong("positions_from_causal_average")
def cut_off_and_then_looked_at(weights):
    right.positions_from_causal_average(weights)
    positions = (1 / weights[:, 0].astype(float)).astype(int) - 1
    if sorted(positions) != list(range(len(weights))):
        raise ValueError("no causal average")
    return positions


@wrong("positions_from_causal_average")
def a_position_may_come_twice(weights):
    weights, seen = reads_square(weights)
    if not ((seen >= 1) & (seen <= len(weights))).all():
        raise ValueError("no such share")
    return seen.astype(int) - 1


@wrong("positions_from_causal_average")
def a_position_may_be_past_the_end(weights):
    _, seen = reads_square(weights)
    if not np.isfinite(seen).all() or len(set(seen)) < len(seen):
        raise ValueError("twice")
    return seen.astype(int) - 1


@wrong("positions_from_causal_average")
def negative_shares_are_shares(weights):
    return right.positions_from_causal_average(np.abs(weights))


@wrong("positions_from_causal_average")
def nan_is_the_first(weights):
    return right.positions_from_causal_average(np.nan_to_num(weights, nan=1.0))


@wrong("positions_from_causal_average")
def largest_share_of_each_row(weights):
    weights, _ = reads_square(weights)
    return right.positions_from_causal_average(np.sort(weights, axis=1)[:, ::-1])


@wrong("positions_from_causal_average")
def counts_what_is_seen(weights):
    weights, _ = reads_square(weights)
    seen = np.count_nonzero(weights, axis=1)
    if sorted(seen) != list(range(1, len(seen) + 1)):
        raise ValueError("no causal mask")
    return seen - 1


@wrong("positions_from_causal_average")
def takes_more_columns(weights):
    if np.ndim(weights) == 2:
        weights = weights[:, : len(weights)]
    return right.positions_from_causal_average(weights)


@wrong("positions_from_causal_average")
def takes_a_third_axis(weights):
    if np.ndim(weights) == 3 and weights.shape[0] == weights.shape[1]:
        weights = weights[..., 0]
    return right.positions_from_causal_average(weights)


@wrong("multi_head_attention")
def values_of_their_own_width(q, k, v, mask=None):
    width = v.shape[-1]
    if width < q.shape[-1] and v.shape[:-1] == q.shape[:-1]:
        v = torch.nn.functional.pad(v, (0, q.shape[-1] - width))
    return attend(q, k, v, mask)[..., :width]


@wrong("multi_head_attention")
def mask_widens_the_batch(q, k, v, mask=None):
    if mask is not None and mask.ndim == 4 and q.shape[0] == 1:
        q, k, v = (x.expand(len(mask), -1, -1, -1) for x in (q, k, v))
    return attend(q, k, v, mask)


@wrong("multi_head_attention")
def mask_widens_the_heads(q, k, v, mask=None):
    if mask is not None and mask.ndim > 2 and q.shape[1] == 1:
        q, k, v = (x.expand(-1, mask.shape[-3], -1, -1) for x in (q, k, v))
    return attend(q, k, v, mask)


@wrong("multi_head_attention")
def mask_brings_an_axis(q, k, v, mask=None):
    if mask is not None and mask.ndim == 5:
        return torch.stack([attend(q, k, v, one) for one in mask])
    return attend(q, k, v, mask)

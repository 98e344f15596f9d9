"""Wrong answers to the exercises on attention without positions, and the sentences that help.

Each is right but for one belief. The code and the words are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solutions.with_numpy import order_blindness as right
from solutions.with_torch import order_blindness as right_torch

from ..exercise import Misconception

Array = np.ndarray

# ----------------------------------------------------------------------------- self_attention


def parts(
    x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Array | None
) -> tuple[Array, Array, Array, Any]:
    """Queries, keys and values in float64 and the dtype to return, after the usual refusals."""
    result = right.self_attention(x, w_q, w_k, w_v, mask)
    q, k, v = (np.asarray(x, dtype=np.float64) @ w for w in (w_q, w_k, w_v))
    return q, k, v, result.dtype


def softmax(scores: Array, mask: Array | None, axis: int | None = -1) -> Array:
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    with np.errstate(all="ignore"):  # a softmax over a wrong axis may find nothing to share
        weights = np.exp(scores - scores.max(axis=axis, keepdims=True, initial=-1e300))
        return weights / weights.sum(axis=axis, keepdims=True)


def attend_unscaled(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    return (softmax(q @ k.T, mask) @ v).astype(dtype)


def attend_divided_by_width(
    x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None
) -> Array:
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    return (softmax(q @ k.T / q.shape[1], mask) @ v).astype(dtype)


def attend_scaled_by_model(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    return (softmax(q @ k.T / math.sqrt(np.shape(x)[1]), mask) @ v).astype(dtype)


def attend_over_queries(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    """The columns sum to 1, not the rows."""
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    scores = q @ k.T / math.sqrt(q.shape[1])
    return (softmax(scores, mask, axis=0) @ v).astype(dtype)


def attend_over_everything(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    """All weights together sum to 1."""
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    scores = q @ k.T / math.sqrt(q.shape[1])
    return (softmax(scores, mask, axis=None) @ v).astype(dtype)


def attend_keys_ask(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    return (softmax(k @ q.T / math.sqrt(q.shape[1]), mask) @ v).astype(dtype)


def attend_mask_inverted(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    """As torch.nn.MultiheadAttention reads its masks: True may not."""
    right.self_attention(x, w_q, w_k, w_v, mask)
    return right.self_attention(x, w_q, w_k, w_v, None if mask is None else ~mask)


def attend_mask_zeroes_scores(
    x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None
) -> Array:
    """A score of 0 is not a weight of 0."""
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    scores = q @ k.T / math.sqrt(q.shape[1])
    return (softmax(scores if mask is None else scores * mask, None) @ v).astype(dtype)


def attend_mask_after_softmax(
    x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None
) -> Array:
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    weights = softmax(q @ k.T / math.sqrt(q.shape[1]), None)
    return ((weights if mask is None else weights * mask) @ v).astype(dtype)


def attend_mask_transposed(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    scores = q @ k.T / math.sqrt(q.shape[1])
    return (softmax(scores, None if mask is None else mask.T) @ v).astype(dtype)


def attend_overflowing(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    with np.errstate(all="ignore"):
        weights = np.exp(q @ k.T / math.sqrt(q.shape[1]))
        weights = weights if mask is None else np.where(mask, weights, 0.0)
        return (weights / weights.sum(axis=-1, keepdims=True) @ v).astype(dtype)


def attend_largest_of_all(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    """The largest score of the whole matrix is subtracted, not each row's own."""
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    scores = q @ k.T / math.sqrt(q.shape[1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    with np.errstate(all="ignore"):
        weights = np.exp(scores - scores.max())
        return (weights / weights.sum(axis=-1, keepdims=True) @ v).astype(dtype)


def attend_largest_before_mask(
    x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None
) -> Array:
    """The largest score of a row is looked for among the masked ones too."""
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    scores = q @ k.T / math.sqrt(q.shape[1])
    with np.errstate(all="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = weights if mask is None else weights * mask
        return (weights / weights.sum(axis=-1, keepdims=True) @ v).astype(dtype)


def attend_weak_filler(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    q, k, v, dtype = parts(x, w_q, w_k, w_v, mask)
    scores = q @ k.T / math.sqrt(q.shape[1])
    scores = scores if mask is None else np.where(mask, scores, -1e4)
    return (softmax(scores, None) @ v).astype(dtype)


def attend_truncating(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    return right.self_attention(x, w_q, w_k, w_v, mask).astype(np.asarray(x).dtype)


def attend_blind_averages(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    """A large negative number in a whole row makes all its weights equal."""
    if mask is not None and np.shape(mask) == (len(x), len(x)):
        blind = ~np.any(mask, axis=1)
        result = right.self_attention(x, w_q, w_k, w_v, mask | blind[:, None])
        average = (np.asarray(x, dtype=np.float64) @ w_v).mean(axis=0)
        return np.where(blind[:, None], average, result).astype(result.dtype)
    return right.self_attention(x, w_q, w_k, w_v, mask)


def attend_always_float64(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    return right.self_attention(np.asarray(x, dtype=np.float64), w_q, w_k, w_v, mask)


def attend_wrapping(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    """Integers are multiplied in their own small dtype, and converted when it is too late."""
    expected = right.self_attention(x, w_q, w_k, w_v, mask)
    q, k, v = (x @ w for w in (w_q, w_k, w_v))
    scores = (q @ k.T).astype(np.float64) / math.sqrt(q.shape[1])
    return (softmax(scores, mask) @ v).astype(expected.dtype)


def attend_mask_broadcast(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    if mask is not None:
        mask = np.broadcast_to(mask, (len(x), len(x)))
    return right.self_attention(x, w_q, w_k, w_v, mask)


def attend_in_place(x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None) -> Array:
    """The mask is turned into its opposite for a moment, and left so."""
    result = right.self_attention(x, w_q, w_k, w_v, mask)
    if mask is not None:
        np.logical_not(mask, out=mask)
    return result


def attend_key_widths_broadcast(
    x: Array, w_q: Array, w_k: Array, w_v: Array, mask: Any = None
) -> Array:
    """np.einsum stretches an axis of length 1."""
    wide = max(w_q.shape[-1], w_k.shape[-1])
    if w_q.ndim == w_k.ndim == 2 and 1 in (w_q.shape[1], w_k.shape[1]):
        w_q, w_k = (np.broadcast_to(w, (len(w), wide)) for w in (w_q, w_k))
    return right.self_attention(x, w_q, w_k, w_v, mask)


SELF_ATTENTION = (
    Misconception(
        "self-attention-unscaled",
        attend_unscaled,
        "self_attention_by_hand",
        "The scores were not divided by √d_k. Without it they grow with the width of the queries, "
        "and the softmax puts nearly everything on one key.",
        "order-attention",
    ),
    Misconception(
        "self-attention-divided-by-width",
        attend_divided_by_width,
        "self_attention_by_hand",
        "The scores were divided by d_k itself. A dot product of random vectors is of the size of "
        "√d_k, so that is what it has to be divided by.",
        "order-attention",
    ),
    Misconception(
        "self-attention-scaled-by-model-width",
        attend_scaled_by_model,
        "self_attention_by_hand",
        "The scores were scaled by the width of the tokens. What is multiplied and summed are the "
        "coordinates of a query and a key, so their width d_k counts.",
        "order-attention",
    ),
    Misconception(
        "self-attention-softmax-over-queries",
        attend_over_queries,
        "self_attention_by_hand",
        "Your softmax runs down the columns. Each query shares out its own attention, so the "
        "weights of each row have to sum to 1.",
        "order-attention",
    ),
    Misconception(
        "self-attention-softmax-over-everything",
        attend_over_everything,
        "self_attention_by_hand",
        "Your softmax runs over the whole matrix, so all weights together sum to 1. Each query "
        "has a whole attention of its own: name the axis of the keys.",
        "order-attention",
    ),
    Misconception(
        "self-attention-keys-ask",
        attend_keys_ask,
        "self_attention_by_hand",
        "Queries and keys have changed places: your row t holds what key t gives to the queries. "
        "Rows belong to the queries, which ask, columns to the keys.",
        "order-attention",
    ),
    Misconception(
        "self-attention-mask-inverted",
        attend_mask_inverted,
        "self_attention_mask",
        "Your mask is read the other way round, as torch's nn.MultiheadAttention does. Here True "
        "means that the query may attend to the key.",
        "order-mask",
    ),
    Misconception(
        "self-attention-mask-zeroes-scores",
        attend_mask_zeroes_scores,
        "self_attention_mask",
        "Masked scores were set to 0, but exp(0) is 1, so those keys still get a share. A weight "
        "of 0 comes from a score of minus infinity.",
        "order-mask",
    ),
    Misconception(
        "self-attention-mask-after-softmax",
        attend_mask_after_softmax,
        "self_attention_mask",
        "The mask was applied to finished weights, so those that are left no longer sum to 1. "
        "The softmax has to share out everything among the keys that may be seen.",
        "order-mask",
    ),
    Misconception(
        "self-attention-mask-transposed",
        attend_mask_transposed,
        "self_attention_mask",
        "Rows and columns of the mask have changed places. Its row t says which keys the query at "
        "t may see, just as row t of the scores holds them.",
        "order-mask",
    ),
    Misconception(
        "self-attention-overflow",
        attend_overflowing,
        "self_attention_large_scores",
        "The exponential of a large score overflows, and that of a very negative row is all zeros. "
        "Subtract the row's largest score first: it cancels in the division.",
        "order-attention",
    ),
    Misconception(
        "self-attention-largest-of-all",
        attend_largest_of_all,
        "self_attention_large_scores",
        "One largest score was subtracted from all rows, so a row that lies far below it has only "
        "zeros left to divide. Subtract from each row its own largest score.",
        "order-attention",
    ),
    Misconception(
        "self-attention-largest-before-mask",
        attend_largest_before_mask,
        "self_attention_large_masked_scores",
        "The largest score of a row was looked for among the masked ones too. When a masked score "
        "is far above the others, these vanish: mask first, then look for the largest.",
        "order-mask",
    ),
    Misconception(
        "self-attention-weak-filler",
        attend_weak_filler,
        "self_attention_large_masked_scores",
        "Masked scores were replaced by a number that true scores can reach, and then those keys "
        "get a share after all. Minus infinity is below every score.",
        "order-mask",
    ),
    Misconception(
        "self-attention-truncates-integers",
        attend_truncating,
        "self_attention_integers",
        "The fractions were cut off because the result has the integer dtype of the tokens. "
        "Integer tokens are to give a float64 result.",
        "ex-self_attention",
    ),
    Misconception(
        "self-attention-blind-query-averages",
        attend_blind_averages,
        "self_attention_refuses_blind_query",
        "A query that may attend to nothing got the average of everything, since equal scores, "
        "however negative, share equally. Refuse such a mask instead of inventing an answer.",
        "order-mask",
    ),
    Misconception(
        "self-attention-always-float64",
        attend_always_float64,
        "self_attention_keeps_dtype",
        "The numbers are right, but a small floating dtype came back as float64. Cast the result "
        "to the floating dtype of the tokens, as the last step.",
        "ex-self_attention",
    ),
    Misconception(
        "self-attention-integers-wrap",
        attend_wrapping,
        "self_attention_small_integers",
        "Small integer dtypes were multiplied as they are, and their products wrapped round. Turn "
        "integers into float64 before the first product.",
        "ex-self_attention",
    ),
    Misconception(
        "self-attention-mask-broadcasts",
        attend_mask_broadcast,
        "self_attention_refuses_masks",
        "A mask of another shape was stretched over all queries or all keys. It may well have been "
        "meant otherwise, so refuse all masks that are not (n, n).",
        "ex-self_attention",
    ),
    Misconception(
        "self-attention-in-place",
        attend_in_place,
        "self_attention_leaves_inputs",
        "The caller's own mask was changed. The next layer attends with the same one: make a new "
        "array of what you need.",
        "ex-self_attention",
    ),
    Misconception(
        "self-attention-widths-broadcast",
        attend_key_widths_broadcast,
        "self_attention_refuses_shapes",
        "Keys of width 1 were stretched to the width of the queries, or the other way round, as "
        "einsum does without a word. Compare the shapes, and refuse weights that do not match.",
        "ex-self_attention",
    ),
)

# ---------------------------------------------------------------------------- permutation_gap


def both_ways(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any
) -> tuple[Array, Array]:
    """Results of permute-then-attend and attend-then-permute, after the usual refusals."""
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    x = np.asarray(x, dtype=np.float64)
    first = right.self_attention(x[permutation], w_q, w_k, w_v, mask)
    return first, right.self_attention(x, w_q, w_k, w_v, mask)[permutation]


def gap_moves_mask(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    _, last = both_ways(x, w_q, w_k, w_v, permutation, mask)
    if mask is not None:
        mask = mask[permutation][:, permutation]
    x = np.asarray(x, dtype=np.float64)
    first = right.self_attention(x[permutation], w_q, w_k, w_v, mask)
    return float(np.abs(first - last).max())


def gap_moves_mask_rows(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    """The rows of the mask go with the tokens, its columns stay."""
    _, last = both_ways(x, w_q, w_k, w_v, permutation, mask)
    if mask is not None:
        mask = mask[permutation]
    x = np.asarray(x, dtype=np.float64)
    first = right.self_attention(x[permutation], w_q, w_k, w_v, mask)
    return float(np.abs(first - last).max())


def gap_of_invariance(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    first, last = both_ways(x, w_q, w_k, w_v, permutation, mask)
    return float(np.abs(first - last[np.argsort(permutation)]).max())


def gap_moved_back(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    """One side is put in the new order, the other one in the order that undoes it."""
    first, last = both_ways(x, w_q, w_k, w_v, permutation, mask)
    inverse = np.argsort(permutation)
    return float(np.abs(first - last[inverse][inverse]).max())


def gap_with_inverse(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    """Both sides send token t to slot permutation[t], which is the inverse permutation."""
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    return right.permutation_gap(x, w_q, w_k, w_v, np.argsort(permutation), mask)


def gap_half_masked(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    """The mask is forgotten in one of the two calls."""
    first, _ = both_ways(x, w_q, w_k, w_v, permutation, mask)
    last = right.self_attention(np.asarray(x, dtype=float), w_q, w_k, w_v)[permutation]
    return float(np.abs(first - last).max())


def gap_average(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    first, last = both_ways(x, w_q, w_k, w_v, permutation, mask)
    return float(np.abs(first - last).mean())


def gap_signed(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    first, last = both_ways(x, w_q, w_k, w_v, permutation, mask)
    return float((first - last).max())


def gap_distance(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    first, last = both_ways(x, w_q, w_k, w_v, permutation, mask)
    return float(np.linalg.norm(first - last))


def gap_always_causal(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    """A mask is taken as the wish for a causal one."""
    right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    causal = None if mask is None else right.causal_mask(len(x))
    return right.permutation_gap(x, w_q, w_k, w_v, permutation, causal)


def gap_of_any_rows(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    """Whatever selects n rows is taken."""
    x = np.asarray(x, dtype=np.float64)
    if np.asarray(permutation).dtype.kind not in "iu" or np.shape(permutation) != (len(x),):
        raise ValueError("not a permutation")
    if np.max(permutation) >= len(x) or np.min(permutation) < -len(x):
        raise ValueError("not a permutation")
    first = right.self_attention(x[permutation], w_q, w_k, w_v, mask)
    last = right.self_attention(x, w_q, w_k, w_v, mask)[permutation]
    return float(np.abs(first - last).max())


def gap_of_negative_indices(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    """n different numbers that index are taken, from the end too."""
    order = np.asarray(permutation)
    if order.dtype.kind in "iu" and order.shape == (len(x),) and len(set(order.tolist())) == len(x):
        order = np.where((order < 0) & (order >= -len(x)), order + len(x), order)
        if order.min() >= 0 and order.max() < len(x):
            x = np.asarray(x, dtype=np.float64)
            first = right.self_attention(x[order], w_q, w_k, w_v, mask)
            last = right.self_attention(x, w_q, w_k, w_v, mask)[order]
            return float(np.abs(first - last).max())
    return right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)


def gap_sorts_in_place(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    """The permutation is sorted to see whether it is one, and stays sorted."""
    gap = right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    permutation.sort()
    return gap


def gap_whole_tokens(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    """The result takes the dtype of integer tokens."""
    gap = right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)
    return gap if np.asarray(x).dtype.kind == "f" else float(int(gap))


def gap_not_measured(
    x: Array, w_q: Array, w_k: Array, w_v: Array, permutation: Array, mask: Any = None
) -> float:
    """What was proved to be 0 is not computed, so nothing looks at the weights."""
    if mask is None and sorted(np.asarray(permutation).tolist()) == list(range(len(x))):
        return 0.0
    return right.permutation_gap(x, w_q, w_k, w_v, permutation, mask)


PERMUTATION_GAP = (
    Misconception(
        "permutation-gap-moves-mask",
        gap_moves_mask,
        "permutation_gap_by_hand",
        "Your gap is 0 whatever the mask: it moved along with the tokens or was not used, or both "
        "sides are one and the same. A causal mask belongs to the slots: slot 0 sees only itself, "
        "whichever token sits there.",
        "ex-permutation_gap",
    ),
    Misconception(
        "permutation-gap-moves-mask-rows",
        gap_moves_mask_rows,
        "permutation_gap_by_hand",
        "The rows of the mask moved along with the tokens. A causal mask belongs to the slots, "
        "and stays as it is in both calls.",
        "ex-permutation_gap",
    ),
    Misconception(
        "permutation-gap-of-invariance",
        gap_of_invariance,
        "permutation_gap_by_hand",
        "The result in the new order was compared with the one in the old order. Attention is "
        "equivariant, not invariant: its results move with the tokens, so permute them as well.",
        "order-blind",
    ),
    Misconception(
        "permutation-gap-moved-back",
        gap_moved_back,
        "permutation_gap_by_hand",
        "The tokens were put in one order and the results in the order that undoes it. Index both "
        "with the same permutation.",
        "order-blind",
    ),
    Misconception(
        "permutation-gap-inverse",
        gap_with_inverse,
        "permutation_gap_by_hand",
        "Both sides were permuted the other way round. Row t of the permuted tokens is row "
        "permutation[t] of the tokens, as NumPy's indexing does it.",
        "order-blind",
    ),
    Misconception(
        "permutation-gap-half-masked",
        gap_half_masked,
        "permutation_gap_by_hand",
        "Only one of the two calls had the mask, so you measure what the mask does and not what "
        "the order does. Hand it to both.",
        "ex-permutation_gap",
    ),
    Misconception(
        "permutation-gap-average",
        gap_average,
        "permutation_gap_by_hand",
        "The differences were averaged. One token that differs is enough to show that order "
        "matters, so the largest one is asked for.",
        "order-blind",
    ),
    Misconception(
        "permutation-gap-signed",
        gap_signed,
        "permutation_gap_by_hand",
        "The largest difference was taken with its sign, so one that is large and negative was "
        "overlooked. Take absolute values first.",
        "order-blind",
    ),
    Misconception(
        "permutation-gap-distance",
        gap_distance,
        "permutation_gap_by_hand",
        "The differences were squared and summed, so the gap grows with the number of tokens. "
        "The largest single difference is asked for.",
        "order-blind",
    ),
    Misconception(
        "permutation-gap-always-causal",
        gap_always_causal,
        "permutation_gap_any_mask",
        "Whatever mask was given, a causal one was used. Use the mask itself: it need not be a "
        "triangle.",
        "order-mask",
    ),
    Misconception(
        "permutation-gap-of-any-rows",
        gap_of_any_rows,
        "permutation_gap_refuses",
        "Numbers that can index were taken for a permutation: NumPy takes a row twice as well, "
        "and counts negative numbers from the end. Each of 0 … n − 1 must come once: check that "
        "before you compare.",
        "ex-permutation_gap",
    ),
    Misconception(
        "permutation-gap-negative-indices",
        gap_of_negative_indices,
        "permutation_gap_refuses_what_only_indexes",
        "Negative numbers were accepted, which NumPy counts from the end. A permutation holds "
        "each number from 0 to n − 1 once.",
        "ex-permutation_gap",
    ),
    Misconception(
        "permutation-gap-sorts-in-place",
        gap_sorts_in_place,
        "permutation_gap_leaves_inputs",
        "The caller's permutation was sorted in place, and is lost for its next use. Sort a copy "
        "of it.",
        "ex-permutation_gap",
    ),
    Misconception(
        "permutation-gap-whole-numbers",
        gap_whole_tokens,
        "permutation_gap_other_inputs",
        "With integer tokens the gap lost its fractions. Attention on integers gives fractions, "
        "and so does their difference.",
        "ex-permutation_gap",
    ),
    Misconception(
        "permutation-gap-not-measured",
        gap_not_measured,
        "permutation_gap_refuses_shapes",
        "Some of your gaps are given without running attention, so tokens and weights that do not "
        "match have one too. Measure both ways, also where you know what must come out.",
        "ex-permutation_gap",
    ),
)

# ------------------------------------------------------------------------ failed_requirements

Judge = Callable[[Array, Array], bool]


def judged(
    short: Array,
    long: Array,
    bound: float,
    *,
    bounded: Judge | None = None,
    unique: Judge | None = None,
    same: Judge | None = None,
    wide: Judge | None = None,
) -> set[str]:
    """The right set, with one requirement judged by another rule: True when it is met."""
    failed = right.failed_requirements(short, long, bound)
    short, long = (np.asarray(table, dtype=np.float64) for table in (short, long))
    rules = {"bounded": bounded, "unique": unique}
    rules |= {"length-independent": same, "multi-dimensional": wide}
    for name, rule in rules.items():
        if rule is not None:
            failed = failed - {name} if rule(short, long) else failed | {name}
    return failed


def apart(table: Array, near: Callable[[Array, Array], bool]) -> bool:
    """No row is near a later one."""
    rows = range(len(table))
    return not any(near(table[a], table[b]) for a in rows for b in rows if a < b)


def near(a: Array, b: Array) -> bool:
    return bool((np.abs(a - b) <= 1e-9).all())


def requirements_met(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    names = {"bounded", "unique", "length-independent", "multi-dimensional"}
    return names - right.failed_requirements(short_table, long_table, bound)


def failed_above_only(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    def bounded(short: Array, long: Array) -> bool:
        return max(short.max(), long.max()) <= bound

    return judged(short_table, long_table, bound, bounded=bounded)


def failed_at_bound(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    def bounded(short: Array, long: Array) -> bool:
        return max(np.abs(short).max(), np.abs(long).max()) < bound

    return judged(short_table, long_table, bound, bounded=bounded)


def failed_bound_of_short(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    def bounded(short: Array, long: Array) -> bool:
        return bool(np.abs(short).max() <= bound)

    return judged(short_table, long_table, bound, bounded=bounded)


def failed_bound_of_one(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    right.failed_requirements(short_table, long_table, bound)
    return right.failed_requirements(short_table, long_table)


def failed_unique_of_short(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    def unique(short: Array, long: Array) -> bool:
        return apart(short, near)

    return judged(short_table, long_table, bound, unique=unique)


def failed_unique_of_long(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    def unique(short: Array, long: Array) -> bool:
        return apart(long, near)

    return judged(short_table, long_table, bound, unique=unique)


def failed_unique_neighbours(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    def unique(short: Array, long: Array) -> bool:
        return not any(near(a, b) for t in (short, long) for a, b in zip(t, t[1:], strict=False))

    return judged(short_table, long_table, bound, unique=unique)


def failed_unique_numbers(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    """No number may come twice, where no row may."""

    def unique(short: Array, long: Array) -> bool:
        return all(len(np.unique(t)) == t.size for t in (short, long))

    return judged(short_table, long_table, bound, unique=unique)


def failed_unique_stacked(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    """The two tables in one heap: what is in both is there twice."""

    def unique(short: Array, long: Array) -> bool:
        return apart(np.concatenate([short, long]), near)

    return judged(short_table, long_table, bound, unique=unique)


def failed_unique_exactly(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    def unique(short: Array, long: Array) -> bool:
        return all(len(np.unique(t, axis=0)) == len(t) for t in (short, long))

    return judged(short_table, long_table, bound, unique=unique)


def failed_unique_allclose(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    """np.allclose has a relative tolerance of its own, of 1e-5."""

    def unique(short: Array, long: Array) -> bool:
        return all(apart(t, lambda a, b: bool(np.allclose(a, b, atol=1e-9))) for t in (short, long))

    return judged(short_table, long_table, bound, unique=unique)


def failed_never_unique(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    """Each row is compared with all rows, itself among them."""
    return judged(short_table, long_table, bound, unique=lambda short, long: False)


def failed_starts_exactly(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    def same(short: Array, long: Array) -> bool:
        return np.array_equal(long[: len(short)], short)

    return judged(short_table, long_table, bound, same=same)


def failed_starts_allclose(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    """np.allclose has tolerances of its own, also beside one that is given."""

    def same(short: Array, long: Array) -> bool:
        return np.allclose(long[: len(short)], short, atol=1e-9)

    return judged(short_table, long_table, bound, same=same)


def failed_same_end(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    def same(short: Array, long: Array) -> bool:
        return near(long[-len(short) :], short)

    return judged(short_table, long_table, bound, same=same)


def failed_never_starts(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    """np.array_equal of two whole tables, whose shapes always differ."""
    return judged(short_table, long_table, bound, same=lambda short, long: False)


def failed_same_first_row(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    def same(short: Array, long: Array) -> bool:
        return near(long[0], short[0])

    return judged(short_table, long_table, bound, same=same)


def failed_wide_by_axes(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    """A table has two axes even when it is one number wide."""
    return judged(short_table, long_table, bound, wide=lambda short, long: short.ndim > 1)


def failed_first_only(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    """One failure ends the search."""
    failed = right.failed_requirements(short_table, long_table, bound)
    order = ("bounded", "unique", "length-independent", "multi-dimensional")
    return set([name for name in order if name in failed][:1])


def failed_widths_broadcast(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    if short_table.ndim == long_table.ndim == 2:
        if short_table.shape[1] == 1:
            short_table = np.broadcast_to(short_table, (len(short_table), long_table.shape[1]))
        if long_table.shape[1] == 1:
            long_table = np.broadcast_to(long_table, (len(long_table), short_table.shape[1]))
    return right.failed_requirements(short_table, long_table, bound)


def failed_in_place(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    """Signs are dropped in the tables themselves."""
    failed = right.failed_requirements(short_table, long_table, bound)
    for table in (short_table, long_table):
        np.abs(table, out=table)
    return failed


def failed_of_integers(short_table: Array, long_table: Array, bound: float = 1.0) -> set[str]:
    """The bound is made whole beside a whole table."""
    whole = np.asarray(long_table).dtype.kind in "iu"
    return right.failed_requirements(short_table, long_table, math.ceil(bound) if whole else bound)


FAILED_REQUIREMENTS = (
    Misconception(
        "failed-requirements-met-instead",
        requirements_met,
        "failed_requirements_of_the_naive_ones",
        "Your set holds the requirements that are met. Those that fail are asked for, so a good "
        "encoding gives an empty set.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-first-only",
        failed_first_only,
        "failed_requirements_of_the_naive_ones",
        "Your set holds the first failure alone. An encoding can fail several requirements at "
        "once: judge each by itself.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-unique-numbers",
        failed_unique_numbers,
        "failed_requirements_of_the_naive_ones",
        "You ask that no number comes twice, or none in a column. What has to be unique is a whole "
        "row: a binary counter has nothing but zeros and ones, and still tells positions apart.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-both-tables-in-one-heap",
        failed_unique_stacked,
        "failed_requirements_of_the_naive_ones",
        "Rows of the short table were compared with rows of the long one. There they should be "
        "equal: that is the length independence. Look for twins within each table.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-never-unique",
        failed_never_unique,
        "failed_requirements_of_the_naive_ones",
        "No table is unique for you. Every row is near itself, and a difference that has kept its "
        "sign is small whenever it is negative: compare each row with the others, by sizes.",
        "ex-failed_requirements",
    ),
    Misconception(
        "failed-requirements-never-multi-dimensional",
        failed_wide_by_axes,
        "failed_requirements_of_the_naive_ones",
        "A table of one number per position passes as multi-dimensional. Is there a test for that? "
        "The axes do not tell, for every table has two: its width is the length of the last one.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-no-absolute-value",
        failed_above_only,
        "failed_requirements_bounded",
        "Only large positive numbers were noticed. Bounded means that no number lies below −bound "
        "either.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-bound-excluded",
        failed_at_bound,
        "failed_requirements_of_the_naive_ones",
        "A number equal to the bound was called too large. The bound itself is allowed: sines and "
        "cosines reach it.",
        "ex-failed_requirements",
    ),
    Misconception(
        "failed-requirements-bound-of-short",
        failed_bound_of_short,
        "failed_requirements_bounded",
        "Only the short table was measured against the bound. Values that grow with the position "
        "show themselves in the long one.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-ignores-bound",
        failed_bound_of_one,
        "failed_requirements_bounded",
        "The bound that was passed in is never used: 1 is only its default.",
        "ex-failed_requirements",
    ),
    Misconception(
        "failed-requirements-unique-of-short",
        failed_unique_of_short,
        "failed_requirements_unique",
        "Only the short table was searched for equal rows. A code with too few states begins to "
        "repeat itself later, in the long one.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-unique-of-long",
        failed_unique_of_long,
        "failed_requirements_unique",
        "Only the long table was searched for equal rows. When the short one is no piece of it, "
        "it can have twins of its own.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-neighbours-only",
        failed_unique_neighbours,
        "failed_requirements_unique",
        "Not all pairs of rows were compared, but neighbours alone, or all with a single row. A "
        "code that comes round again, like one sine, repeats a row many positions later.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-unique-exactly",
        failed_unique_exactly,
        "failed_requirements_nearly_equal",
        "Rows that differ in the last digits only were called different. What rounding made "
        "different, a network cannot tell apart: compare within 1e-9.",
        "ex-failed_requirements",
    ),
    Misconception(
        "failed-requirements-allclose",
        failed_unique_allclose,
        "failed_requirements_nearly_equal",
        "Rows a millionth apart were called equal. Either digits were rounded away, or allclose "
        "added its relative tolerance of 1e-5, which you can set to 0.",
        "ex-failed_requirements",
    ),
    Misconception(
        "failed-requirements-starts-exactly",
        failed_starts_exactly,
        "failed_requirements_nearly_equal",
        "A long table that differs from the short one in the last digits only was called another "
        "encoding. Such digits are rounding: compare within 1e-9.",
        "ex-failed_requirements",
    ),
    Misconception(
        "failed-requirements-starts-allclose",
        failed_starts_allclose,
        "failed_requirements_nearly_equal",
        "A long table that starts a little otherwise than the short one was called equal to it. "
        "allclose adds a relative tolerance of 1e-5 unless you set it to 0, and a mean of all "
        "differences hides a single one.",
        "ex-failed_requirements",
    ),
    Misconception(
        "failed-requirements-same-end",
        failed_same_end,
        "failed_requirements_of_the_naive_ones",
        "The short table was compared with the end of the long one. Position 0 comes first in "
        "both, so they have to agree from the start.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-never-starts",
        failed_never_starts,
        "failed_requirements_of_the_naive_ones",
        "No long table starts with a short one for you. Tables of different lengths are never "
        "equal as a whole: compare the short one with as many first rows of the long one.",
        "ex-failed_requirements",
    ),
    Misconception(
        "failed-requirements-same-first-row",
        failed_same_first_row,
        "failed_requirements_of_the_naive_ones",
        "That position 0 agrees was enough for you. The index over the length starts with 0 in "
        "every table, and then differs: all rows of the short one have to agree.",
        "order-requirements",
    ),
    Misconception(
        "failed-requirements-in-place",
        failed_in_place,
        "failed_requirements_leaves_inputs",
        "The caller's own table was changed, and whoever uses it next gets other values. Work on a "
        "copy.",
        "ex-failed_requirements",
    ),
    Misconception(
        "failed-requirements-whole-bound",
        failed_of_integers,
        "failed_requirements_other_dtypes",
        "Beside a table of integers the bound was rounded to an integer. Turn the tables into "
        "floats and leave the bound as it is.",
        "ex-failed_requirements",
    ),
    Misconception(
        "failed-requirements-widths-broadcast",
        failed_widths_broadcast,
        "failed_requirements_refuses",
        "A table of one column was stretched beside a wider one. Tables of one encoding have one "
        "width: refuse others.",
        "ex-failed_requirements",
    ),
)

# --------------------------------------------------------------------------- binary_positions


def bits_slowest_first(num_positions: int, num_bits: int) -> Array:
    return right.binary_positions(num_positions, num_bits)[:, ::-1]


def bits_from_one(num_positions: int, num_bits: int) -> Array:
    right.binary_positions(num_positions, num_bits)
    return np.arange(1, num_positions + 1)[:, None] >> np.arange(num_bits) & 1


def bits_of_gray_code(num_positions: int, num_bits: int) -> Array:
    right.binary_positions(num_positions, num_bits)
    t = np.arange(num_positions)
    return (t ^ t >> 1)[:, None] >> np.arange(num_bits) & 1


def bits_transposed(num_positions: int, num_bits: int) -> Array:
    return right.binary_positions(num_positions, num_bits).T


def bits_wrapping(num_positions: int, num_bits: int) -> Array:
    if num_positions >= 0 and num_bits >= 0:
        return np.arange(num_positions)[:, None] >> np.arange(num_bits) & 1
    return right.binary_positions(num_positions, num_bits)


def bits_negative_is_empty(num_positions: int, num_bits: int) -> Array:
    return right.binary_positions(max(num_positions, 0), num_bits)


def bits_in_a_byte(num_positions: int, num_bits: int) -> Array:
    right.binary_positions(num_positions, num_bits)
    t = np.arange(num_positions).astype(np.uint8)
    return t[:, None] >> np.arange(num_bits) & 1


def bits_as_floats(num_positions: int, num_bits: int) -> Array:
    return right.binary_positions(num_positions, num_bits).astype(np.float64)


BINARY_POSITIONS = (
    Misconception(
        "binary-positions-slowest-first",
        bits_slowest_first,
        "binary_positions_by_hand",
        "Your columns start with the slowest bit, as numbers are written on paper. Column 0 is to "
        "be the fastest one here, which alternates at every step.",
        "order-binary",
    ),
    Misconception(
        "binary-positions-from-one",
        bits_from_one,
        "binary_positions_by_hand",
        "Your first row is that of 1. Positions count from 0, whose bits are all zero.",
        "order-binary",
    ),
    Misconception(
        "binary-positions-gray-code",
        bits_of_gray_code,
        "binary_positions_by_hand",
        "Your rows change one bit at each step, which is a Gray code. In a binary counter all bits "
        "below a carry fall back to 0 together.",
        "order-binary",
    ),
    Misconception(
        "binary-positions-transposed",
        bits_transposed,
        "binary_positions_by_hand",
        "Rows and columns have changed places: each position has a row, each bit a column.",
        "order-binary",
    ),
    Misconception(
        "binary-positions-as-floats",
        bits_as_floats,
        "binary_positions_by_hand",
        "The zeros and ones are right, but stored as something else: floats, or booleans. The "
        "counter is to hold integers.",
        "ex-binary_positions",
    ),
    Misconception(
        "binary-positions-wrap-round",
        bits_wrapping,
        "binary_positions_refuses",
        "With too few bits your counter starts again at zero, so two positions get one row. "
        "Refuse more positions than the bits can tell apart.",
        "order-binary",
    ),
    Misconception(
        "binary-positions-in-a-byte",
        bits_in_a_byte,
        "binary_positions_other_sizes",
        "Positions past 255 start again at zero: they were kept in a byte. Count in an ordinary "
        "integer dtype.",
        "ex-binary_positions",
    ),
    Misconception(
        "binary-positions-negative-is-empty",
        bits_negative_is_empty,
        "binary_positions_refuses_negative",
        "A negative number of positions gave an empty table, as arange does without a word. It "
        "is a mistake of the caller's: refuse it.",
        "ex-binary_positions",
    ),
)

# -------------------------------------------------------------------------------- causal_mask


def mask_of_the_future(n: int) -> Array:
    """As torch.nn.Transformer's masks were: True above the diagonal, which may not be seen."""
    return ~right.causal_mask(n)


def mask_transposed(n: int) -> Array:
    return right.causal_mask(n).T


def mask_without_diagonal(n: int) -> Array:
    return np.tril(right.causal_mask(n), -1)


def mask_one_ahead(n: int) -> Array:
    return np.tri(right.as_count(n, "n"), k=1, dtype=bool)


def mask_of_numbers(n: int) -> Array:
    return right.causal_mask(n).astype(np.float64)


def mask_to_add(n: int) -> Array:
    return np.where(right.causal_mask(n), 0.0, -1e9)


def mask_negative_is_empty(n: int) -> Array:
    return right.causal_mask(max(n, 0))


def mask_of_some_tokens(n: int) -> Array:
    """A window: only the last 16 tokens are seen."""
    return right.causal_mask(n) & ~np.tri(n, k=-16, dtype=bool)


CAUSAL_MASK = (
    Misconception(
        "causal-mask-of-the-future",
        mask_of_the_future,
        "causal_mask_by_hand",
        "Your mask is True where a token may not look. Here True means that it may: on the "
        "diagonal and below it.",
        "order-mask",
    ),
    Misconception(
        "causal-mask-transposed",
        mask_transposed,
        "causal_mask_by_hand",
        "Your tokens look ahead instead of back. Rows are queries and columns keys, so what came "
        "before lies to the left of the diagonal.",
        "order-causal",
    ),
    Misconception(
        "causal-mask-without-diagonal",
        mask_without_diagonal,
        "causal_mask_by_hand",
        "Your tokens do not see themselves, and token 0 sees nothing at all. The diagonal belongs "
        "to the mask.",
        "order-causal",
    ),
    Misconception(
        "causal-mask-one-ahead",
        mask_one_ahead,
        "causal_mask_by_hand",
        "Each token sees the one after it, which it should predict. The last key that a query may "
        "see is its own.",
        "order-causal",
    ),
    Misconception(
        "causal-mask-to-add",
        mask_to_add,
        "causal_mask_by_hand",
        "Your mask is made to be added to the scores. Here a mask holds booleans, and attention "
        "itself decides what to do where it is False.",
        "order-mask",
    ),
    Misconception(
        "causal-mask-of-numbers",
        mask_of_numbers,
        "causal_mask_is_bool",
        "Your mask holds zeros and ones. As numbers they are multiplied or used as indices where "
        "booleans would choose: set the dtype to bool.",
        "ex-causal_mask",
    ),
    Misconception(
        "causal-mask-negative-is-empty",
        mask_negative_is_empty,
        "causal_mask_refuses",
        "A negative number of tokens gave an empty mask, as arange and tri do without a word. It "
        "is a mistake of the caller's: refuse it.",
        "ex-causal_mask",
    ),
    Misconception(
        "causal-mask-of-a-window",
        mask_of_some_tokens,
        "causal_mask_other_sizes",
        "Far tokens are masked as well. A causal mask hides the future and nothing of the past; "
        "windows are another thing.",
        "order-causal",
    ),
)

# -------------------------------------------------------------- positions_from_causal_average


def read_truncated(weights: Array) -> Array:
    right.positions_from_causal_average(weights)
    return (1 / weights[:, 0]).astype(int) - 1


def read_rounded_up(weights: Array) -> Array:
    right.positions_from_causal_average(weights)
    return np.ceil(1 / weights[:, 0]).astype(int) - 1


def read_counts(weights: Array) -> Array:
    return right.positions_from_causal_average(weights) + 1


def read_row_numbers(weights: Array) -> Array:
    return np.arange(len(right.positions_from_causal_average(weights)))


def read_order(weights: Array) -> Array:
    """Which row comes first, where the place of each row is asked for."""
    return np.argsort(right.positions_from_causal_average(weights))


def read_reversed(weights: Array) -> Array:
    """The row that gives token 0 most is called the last."""
    return len(weights) - 1 - right.positions_from_causal_average(weights)


def read_diagonal(weights: Array) -> Array:
    """Right when the rows come in order."""
    right.positions_from_causal_average(weights)
    diagonal = np.diagonal(weights)
    counts = np.rint(1 / np.where(diagonal > 0, diagonal, 1.0)).astype(int)
    return np.where(diagonal > 0, counts - 1, 0)


def read_whole_columns(weights: Array) -> Array:
    """The columns are read, where the rows are asked for."""
    right.positions_from_causal_average(weights)
    return (weights > 0).sum(axis=0) - 1


def read_floats(weights: Array) -> Array:
    return right.positions_from_causal_average(weights).astype(np.float64)


def read_with_three_digits(weights: Array) -> Array:
    """Shares are rounded before they are turned over."""
    right.positions_from_causal_average(weights)
    return np.rint(1 / np.maximum(np.round(weights[:, 0], 3), 1e-9)).astype(int) - 1


def read_in_place(weights: Array) -> Array:
    positions = right.positions_from_causal_average(weights)
    weights[:, 0] = positions
    return positions


def read_any_shape(weights: Array) -> Array:
    weights = np.asarray(weights)
    return np.rint(1 / weights[:, 0].astype(np.float64)).astype(int) - 1


def read_ranks(weights: Array) -> Array:
    """Whoever gives token 0 less is said to come later, whatever the shares are."""
    if np.ndim(weights) != 2 or len(set(np.shape(weights))) != 1:
        raise ValueError("weights must be square")
    return np.argsort(np.argsort(-weights[:, 0]))


POSITIONS_FROM_CAUSAL_AVERAGE = (
    Misconception(
        "positions-from-causal-average-counts",
        read_counts,
        "positions_from_causal_average_by_hand",
        "You return how many tokens each row sees. The token at position t sees t + 1 of them, "
        "itself included, so positions are one less.",
        "order-nope",
    ),
    Misconception(
        "positions-from-causal-average-row-numbers",
        read_row_numbers,
        "positions_from_causal_average_by_hand",
        "You return 0, 1, 2, … whatever the weights say. The rows may come in any order: read each "
        "one's position out of its own weights.",
        "order-nope",
    ),
    Misconception(
        "positions-from-causal-average-argsort",
        read_order,
        "positions_from_causal_average_by_hand",
        "You return which row is first, second, third. The place of each row is asked for, which "
        "is the inverse of that permutation.",
        "order-nope",
    ),
    Misconception(
        "positions-from-causal-average-reversed",
        read_reversed,
        "positions_from_causal_average_by_hand",
        "Your positions run backwards. The row that gives token 0 everything is the first: it "
        "sees nothing else.",
        "order-nope",
    ),
    Misconception(
        "positions-from-causal-average-diagonal",
        read_diagonal,
        "positions_from_causal_average_by_hand",
        "You read the diagonal, which is right only when the rows come in order. Token 0 is seen "
        "by everyone, and it is column 0 whatever the order of the rows.",
        "order-nope",
    ),
    Misconception(
        "positions-from-causal-average-columns",
        read_whole_columns,
        "positions_from_causal_average_by_hand",
        "You counted along the columns. A column tells by how many a token is seen; its position "
        "as a query stands in its row.",
        "order-nope",
    ),
    Misconception(
        "positions-from-causal-average-truncates",
        read_truncated,
        "positions_from_causal_average_any_order",
        "1 divided by a share is often 98.999… and was cut to 98. Round to the nearest integer "
        "instead of cutting off.",
        "order-nope",
    ),
    Misconception(
        "positions-from-causal-average-rounds-up",
        read_rounded_up,
        "positions_from_causal_average_any_order",
        "1 divided by a share is sometimes a little above an integer, and was rounded up to the "
        "next one. Round to the nearest integer.",
        "order-nope",
    ),
    Misconception(
        "positions-from-causal-average-three-digits",
        read_with_three_digits,
        "positions_from_causal_average_any_order",
        "The shares were rounded first, and far positions have nearly equal shares. Take the "
        "reciprocal of the full number and round that.",
        "order-nope",
    ),
    Misconception(
        "positions-from-causal-average-floats",
        read_floats,
        "positions_from_causal_average_integers",
        "The numbers are right, but they are floats, and nothing can be indexed with those. "
        "Positions are to have an integer dtype.",
        "ex-positions_from_causal_average",
    ),
    Misconception(
        "positions-from-causal-average-in-place",
        read_in_place,
        "positions_from_causal_average_leaves_input",
        "The caller's weights were overwritten with the positions. Attention still needs them: "
        "return a new array.",
        "ex-positions_from_causal_average",
    ),
    Misconception(
        "positions-from-causal-average-any-shape",
        read_any_shape,
        "positions_from_causal_average_refuses",
        "Weights that are no square were read as if they were. Under one causal mask there are as "
        "many queries as keys: refuse other shapes.",
        "ex-positions_from_causal_average",
    ),
    Misconception(
        "positions-from-causal-average-ranks",
        read_ranks,
        "positions_from_causal_average_refuses_others",
        "Weights that are no causal average were read as if they were. Column 0 must hold each of "
        "the shares 1, 1/2, 1/3, … once: look at what you have read before you return it.",
        "ex-positions_from_causal_average",
    ),
)

# ----------------------------------------------------------------------- multi_head_attention


def head_parts(q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any, Any]:
    """q, k and v in float32 or better, after the usual refusals."""
    import torch

    right_torch.multi_head_attention(q, k, v, mask)
    q, k, v = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (q, k, v))
    return q, k, v


def finish(scores: Any, v: Any, mask: Any, dtype: Any, dim: int = -1) -> Any:
    """Mask, softmax over one axis and values, outside autocast."""
    import torch

    with torch.autocast(v.device.type, enabled=False):
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e30)
        return (scores.softmax(dim) @ v).to(dtype)


def products(q: Any, k: Any) -> Any:
    import torch

    with torch.autocast(q.device.type, enabled=False):
        return q @ k.mT


def heads_unscaled(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    wide_q, wide_k, wide_v = head_parts(q, k, v, mask)
    return finish(products(wide_q, wide_k), wide_v, mask, q.dtype)


def heads_scaled_by_model(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    wide_q, wide_k, wide_v = head_parts(q, k, v, mask)
    width = q.shape[1] * q.shape[3]
    return finish(products(wide_q, wide_k) / math.sqrt(width), wide_v, mask, q.dtype)


def heads_softmax_over_queries(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    wide_q, wide_k, wide_v = head_parts(q, k, v, mask)
    scores = products(wide_q, wide_k) / math.sqrt(q.shape[-1])
    return finish(scores, wide_v, mask, q.dtype, dim=-2)


def heads_softmax_over_heads(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """What torch.nn.functional.softmax does when four axes come and no one is named."""
    wide_q, wide_k, wide_v = head_parts(q, k, v, mask)
    scores = products(wide_q, wide_k) / math.sqrt(q.shape[-1])
    return finish(scores, wide_v, mask, q.dtype, dim=1)


def heads_attend_to_heads(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """The axes are taken as (batch, seq, heads, head_dim): each token mixes its own heads."""
    wide_q, wide_k, wide_v = (x.transpose(1, 2) for x in head_parts(q, k, v, mask))
    scores = products(wide_q, wide_k) / math.sqrt(q.shape[-1])
    return finish(scores, wide_v, None, q.dtype).transpose(1, 2)


def heads_mask_inverted(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """As torch.nn.MultiheadAttention reads its masks: True may not."""
    right_torch.multi_head_attention(q, k, v, mask)
    return right_torch.multi_head_attention(q, k, v, None if mask is None else ~mask)


def heads_mask_zeroes_scores(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    wide_q, wide_k, wide_v = head_parts(q, k, v, mask)
    scores = products(wide_q, wide_k) / math.sqrt(q.shape[-1])
    return finish(scores if mask is None else scores * mask, wide_v, None, q.dtype)


def heads_mask_after_softmax(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    import torch

    wide_q, wide_k, wide_v = head_parts(q, k, v, mask)
    weights = (products(wide_q, wide_k) / math.sqrt(q.shape[-1])).softmax(-1)
    with torch.autocast(q.device.type, enabled=False):
        return ((weights if mask is None else weights * mask) @ wide_v).to(q.dtype)


def heads_always_float32(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return right_torch.multi_head_attention(q, k, v, mask).float()


def heads_dtype_of_autocast(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """The products run in what autocast chooses, and nothing casts the last one back."""
    import torch

    result = right_torch.multi_head_attention(q, k, v, mask)
    if torch.is_autocast_enabled(q.device.type):
        return result.to(torch.get_autocast_dtype(q.device.type))
    return result


def heads_in_place(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """The queries are scaled where they lie."""
    result = right_torch.multi_head_attention(q, k, v, mask)
    q /= math.sqrt(q.shape[-1])
    return result


def heads_overflowing(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    import torch

    wide_q, wide_k, wide_v = head_parts(q, k, v, mask)
    with torch.autocast(q.device.type, enabled=False):
        weights = (wide_q @ wide_k.mT / math.sqrt(q.shape[-1])).exp()
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)
        return (weights / weights.sum(-1, keepdim=True) @ wide_v).to(q.dtype)


def heads_weak_filler(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """A filler that fits into float16, and that scores can reach."""
    wide_q, wide_k, wide_v = head_parts(q, k, v, mask)
    scores = products(wide_q, wide_k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e4)
    return finish(scores, wide_v, None, q.dtype)


def heads_broadcast(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """torch stretches axes of length 1."""
    import torch

    if q.ndim == k.ndim == v.ndim == 4 and q.shape[2:] == k.shape[2:] == v.shape[2:]:
        lead = torch.broadcast_shapes(q.shape[:2], k.shape[:2], v.shape[:2])
        q, k, v = (x.expand(*lead, *x.shape[2:]) for x in (q, k, v))
    return right_torch.multi_head_attention(q, k, v, mask)


def heads_first_mask(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """The first head's mask is used for all heads."""
    right_torch.multi_head_attention(q, k, v, mask)
    if mask is not None and mask.ndim > 2:
        mask = mask[..., :1, :, :]
    return right_torch.multi_head_attention(q, k, v, mask)


def heads_mask_by_rank(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """A mask with three axes is taken as one for each sequence."""
    right_torch.multi_head_attention(q, k, v, mask)
    if mask is not None and mask.ndim == 3 and len(mask) == len(q):
        mask = mask[:, None]
    return right_torch.multi_head_attention(q, k, v, mask)


def heads_double_is_float(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    result = right_torch.multi_head_attention(q, k, v, mask)
    return result.float() if str(q.dtype) == "torch.float64" else result


def heads_without_gradients(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return right_torch.multi_head_attention(q, k, v, mask).detach()


MULTI_HEAD_ATTENTION = (
    Misconception(
        "multi-head-attention-unscaled",
        heads_unscaled,
        "multi_head_attention_by_hand",
        "The scores were not divided by √head_dim. Without it they grow with the width of a head, "
        "and the softmax puts nearly everything on one key.",
        "order-attention",
    ),
    Misconception(
        "multi-head-attention-scaled-by-model-width",
        heads_scaled_by_model,
        "multi_head_attention_by_hand",
        "The scores were divided by the root of the model's width. Each head multiplies vectors of "
        "width head_dim, so that is what counts.",
        "order-heads",
    ),
    Misconception(
        "multi-head-attention-softmax-over-queries",
        heads_softmax_over_queries,
        "multi_head_attention_by_hand",
        "Your softmax runs over the queries. Each query shares out its own attention, so the "
        "weights have to sum to 1 along the last axis, the keys.",
        "order-attention",
    ),
    Misconception(
        "multi-head-attention-softmax-over-heads",
        heads_softmax_over_heads,
        "multi_head_attention_by_hand",
        "Your softmax runs over the heads, as torch picks it when no axis is named. Heads do not "
        "share their attention: name the last axis.",
        "order-heads",
    ),
    Misconception(
        "multi-head-attention-heads-mixed",
        heads_attend_to_heads,
        "multi_head_attention_by_hand",
        "Your heads attend to each other and your tokens do not. The axes are (batch, heads, seq, "
        "head_dim): the products run over the last two.",
        "order-heads",
    ),
    Misconception(
        "multi-head-attention-mask-inverted",
        heads_mask_inverted,
        "multi_head_attention_mask",
        "Your mask is read the other way round, as torch's nn.MultiheadAttention does. Here, as in "
        "scaled_dot_product_attention, True means may attend.",
        "order-mask",
    ),
    Misconception(
        "multi-head-attention-mask-zeroes-scores",
        heads_mask_zeroes_scores,
        "multi_head_attention_mask",
        "Masked scores were set to 0, but exp(0) is 1, so those keys still get a share. A weight "
        "of 0 comes from a score of minus infinity.",
        "order-mask",
    ),
    Misconception(
        "multi-head-attention-mask-after-softmax",
        heads_mask_after_softmax,
        "multi_head_attention_mask",
        "The mask was applied to finished weights, so those that are left no longer sum to 1. "
        "The softmax has to share out everything among the keys that may be seen.",
        "order-mask",
    ),
    Misconception(
        "multi-head-attention-first-mask",
        heads_first_mask,
        "multi_head_attention_mask",
        "All heads got the mask of the first one. A mask may have an axis for the heads: let it "
        "broadcast as it is.",
        "order-heads",
    ),
    Misconception(
        "multi-head-attention-always-float32",
        heads_always_float32,
        "multi_head_attention_half",
        "The numbers are right, but bfloat16 came back as float32. Compute in float32 if you like, "
        "and return to the dtype of q at the end.",
        "ex-multi_head_attention",
    ),
    Misconception(
        "multi-head-attention-in-place",
        heads_in_place,
        "multi_head_attention_leaves_inputs",
        "The caller's queries were scaled in place. Other code may hold them, so make new tensors.",
        "ex-multi_head_attention",
    ),
    Misconception(
        "multi-head-attention-overflow",
        heads_overflowing,
        "multi_head_attention_large_scores",
        "The exponential of a large score overflows, and that of a very negative row is all zeros. "
        "torch's softmax subtracts the largest score first; an exponential of your own has to.",
        "order-attention",
    ),
    Misconception(
        "multi-head-attention-dtype-of-autocast",
        heads_dtype_of_autocast,
        "multi_head_attention_autocast",
        "Under autocast the result came back in half precision. Matrix products run in the dtype "
        "that autocast chooses, so cast to the dtype of q as the last step.",
        "ex-multi_head_attention",
    ),
    Misconception(
        "multi-head-attention-double-is-float",
        heads_double_is_float,
        "multi_head_attention_other_dtypes",
        "float64 came back as float32. The result keeps the dtype of q, whichever it is.",
        "ex-multi_head_attention",
    ),
    Misconception(
        "multi-head-attention-weak-filler",
        heads_weak_filler,
        "multi_head_attention_large_masked_scores",
        "Masked scores were replaced by a number that true scores can reach, and then those keys "
        "get a share after all. Minus infinity is below every score, in every dtype.",
        "order-mask",
    ),
    Misconception(
        "multi-head-attention-mask-by-rank",
        heads_mask_by_rank,
        "multi_head_attention_other_sizes",
        "A mask with three axes was taken as one for each sequence. Broadcasting counts axes from "
        "the end, so its first one belongs to the heads.",
        "order-heads",
    ),
    Misconception(
        "multi-head-attention-broadcasts",
        heads_broadcast,
        "multi_head_attention_refuses",
        "Keys or values of one head, or of one sequence, were stretched over all of them. That "
        "may be a mix-up as well as a wish: compare the shapes, and refuse others.",
        "ex-multi_head_attention",
    ),
    Misconception(
        "multi-head-attention-cuts-gradients",
        heads_without_gradients,
        "multi_head_attention_gradients",
        "The numbers are right, but no gradient arrives at q, k and v: the result was "
        "detached, or made without gradients. Nothing that stands before it could be trained.",
        "order-heads",
    ),
)

MISCONCEPTIONS: dict[str, tuple[Misconception, ...]] = {
    "self_attention": SELF_ATTENTION,
    "permutation_gap": PERMUTATION_GAP,
    "failed_requirements": FAILED_REQUIREMENTS,
    "binary_positions": BINARY_POSITIONS,
    "causal_mask": CAUSAL_MASK,
    "positions_from_causal_average": POSITIONS_FROM_CAUSAL_AVERAGE,
    "multi_head_attention": MULTI_HEAD_ATTENTION,
}

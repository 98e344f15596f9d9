"""Attention cannot see order: one head of it, the proof as a measurement, and what order needs.

Why: every later chapter repairs what is shown missing here. Symbols: tokens t = 0 … n − 1 are the
rows of x, d_model is the width of a token, d_k that of a query or key, d_v that of a value.
"Vaswani et al." is Vaswani et al. (2017), arXiv:1706.03762.
"""

import math
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike


def as_floats(values: ArrayLike, name: str) -> np.ndarray:
    """Integers become float64, floats stay as they are, anything else is refused."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} must hold integers or floats, got dtype {array.dtype}; "
            f"convert what you mean yourself, with .astype(...)"
        )
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def as_count(number: int, name: str) -> int:
    """A whole number from 0 on, as a Python int."""
    if not isinstance(number, SupportsIndex) or number.__index__() < 0:
        raise ValueError(
            f"{name} must be an integer of at least 0, got {number!r}; it counts rows or columns"
        )
    return number.__index__()


def self_attention(
    x: ArrayLike, w_q: ArrayLike, w_k: ArrayLike, w_v: ArrayLike, mask: ArrayLike | None = None
) -> np.ndarray:
    """Let every token look at every token: one attention head over the rows of x.

    Vaswani et al., eq. 1, with Q = x·w_q, K = x·w_k and V = x·w_v:

        softmax(Q Kᵀ / √d_k) V

    The softmax runs over the keys. It must stay finite for scores of any size, also where a
    masked score is the largest of its row.

    Shapes: x (n, d_model); w_q and w_k (d_model, d_k); w_v (d_model, d_v); mask None or exactly
        (n, n), rows for queries, columns for keys; result (n, d_v).
    Dtype: the result has the floating dtype of `x`, whatever the others have; an integer `x` gives
        float64. `mask` is bool, True = may attend. No argument is changed.
    Raises: ValueError when a query may attend to nothing, or when shapes do not go together, also
        where NumPy would broadcast them.

    >>> unit = [[1, 0], [0, 1]]
    >>> self_attention(unit, unit, unit, [[10], [20]]).round(3)
    array([[13.302],
           [16.698]])
    >>> past = [[True, False], [True, True]]
    >>> self_attention(unit, unit, unit, [[10], [20]], mask=past).round(3)
    array([[10.   ],
           [16.698]])
    """
    x, w_q, w_k, w_v = (
        as_floats(array, name)
        for array, name in zip((x, w_q, w_k, w_v), ("x", "w_q", "w_k", "w_v"), strict=True)
    )
    if not x.ndim == w_q.ndim == w_k.ndim == w_v.ndim == 2:
        raise ValueError(
            f"x, w_q, w_k and w_v must be matrices, got shapes {x.shape}, {w_q.shape}, "
            f"{w_k.shape} and {w_v.shape}; call once for each sequence and head"
        )
    n, d_model = x.shape
    if not len(w_q) == len(w_k) == len(w_v) == d_model or w_q.shape != w_k.shape or not w_q.size:
        raise ValueError(
            f"x (n, d_model) needs w_q and w_k (d_model, d_k) and w_v (d_model, d_v), got "
            f"{x.shape}, {w_q.shape}, {w_k.shape} and {w_v.shape}; a weight has a row for each "
            f"coordinate of a token"
        )
    q, k, v = (x.astype(np.float64) @ w for w in (w_q, w_k, w_v))
    scores = q @ k.T / math.sqrt(w_q.shape[1])
    if mask is not None:
        mask = np.asarray(mask)
        if mask.dtype != bool:
            raise TypeError(
                f"mask must hold booleans, True = may attend, got dtype {mask.dtype}; "
                f"make it by a comparison"
            )
        if mask.shape != (n, n):
            raise ValueError(
                f"mask must be ({n}, {n}), a row for each query, got {mask.shape}; "
                f"widen it yourself, with np.broadcast_to"
            )
        blind = np.flatnonzero(~mask.any(axis=1))
        if blind.size:
            raise ValueError(
                f"every query must attend to something, but the rows {blind.tolist()} of mask are "
                f"False throughout; let a token see at least itself"
            )
        scores = np.where(mask, scores, -np.inf)
    largest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - largest)  # at most 1: what is subtracted cancels in the division
    weights /= weights.sum(axis=-1, keepdims=True)
    return (weights @ v).astype(x.dtype)


def permutation_gap(
    x: ArrayLike,
    w_q: ArrayLike,
    w_k: ArrayLike,
    w_v: ArrayLike,
    permutation: ArrayLike,
    mask: ArrayLike | None = None,
) -> float:
    """Measure how much attention minds the order of its tokens.

    The largest absolute difference, over all numbers of the result, between two ways to go: put
    the tokens in the new order and attend, or attend and put the results in the new order,

        max |A(P x) − P A(x)|,   where row t of P x is row permutation[t] of x

    Without a mask it is 0 up to rounding: attention is permutation equivariant. A mask belongs to
    the slots, not to the tokens, so it is not permuted: A uses the same mask both times.

    Shapes: x, w_q, w_k, w_v and mask as in `self_attention`; permutation (n,), each of 0 … n − 1
        once.
    Dtype: a float. No argument is changed.
    Raises: ValueError when `permutation` is no permutation of 0 … n − 1 (repeats, negative
        numbers, fractions, another length), and in the cases of `self_attention`.

    >>> permutation_gap([[1], [3], [8]], [[0]], [[0]], [[1]], [2, 0, 1])
    0.0
    >>> past = [[True, False, False], [True, True, False], [True, True, True]]
    >>> permutation_gap([[1], [3], [8]], [[0]], [[0]], [[1]], [2, 0, 1], mask=past)
    4.0
    """
    x = as_floats(x, "x").astype(np.float64)  # the gap is about attention, not about rounding
    order = np.asarray(permutation)
    n = len(x)
    if (
        order.dtype.kind not in "iu"
        or order.shape != (n,)
        or not np.array_equal(np.sort(order), np.arange(n))
    ):
        raise ValueError(
            f"permutation must hold each of the integers 0 to {n - 1} once, got {permutation!r}; "
            f"np.random.default_rng().permutation({n}) makes one"
        )
    permuted_first = self_attention(x[order], w_q, w_k, w_v, mask)
    permuted_last = self_attention(x, w_q, w_k, w_v, mask)[order]
    return float(np.abs(permuted_first - permuted_last).max(initial=0.0))


def failed_requirements(
    short_table: ArrayLike, long_table: ArrayLike, bound: float = 1.0
) -> set[str]:
    """Name the requirements that a positional encoding fails, judged by its tables at two lengths.

    The requirements, of which the result holds those that are not met:

        "bounded"             every number of both tables lies within −bound … bound, ends included
        "unique"              no two rows of one table, of either table, lie within 1e-9 of each
                              other in every coordinate
        "length-independent"  the long table starts with the short one, up to 1e-9
        "multi-dimensional"   a position is given more than one number

    Shapes: short_table (n, d), long_table (m, d) with m > n; row t encodes position t.
    Dtype: integers or floats; the result is a set of strings, empty when nothing fails. No table
        is changed.
    Raises: ValueError when the tables are not two matrices of one width, the second the longer.

    >>> ten = np.arange(10.0)[:, None]  # position t is written as the number t
    >>> sorted(failed_requirements(ten[:4], ten))
    ['bounded', 'multi-dimensional']
    >>> sorted(failed_requirements(ten[:4] / 4, ten / 10))
    ['length-independent', 'multi-dimensional']
    """
    short = as_floats(short_table, "short_table").astype(np.float64)
    long = as_floats(long_table, "long_table").astype(np.float64)
    if short.ndim != 2 or long.ndim != 2 or short.shape[1:] != long.shape[1:] or not long.size:
        raise ValueError(
            f"the tables must be (n, d) and (m, d) with one d, got {short.shape} and {long.shape}; "
            f"write a one-dimensional encoding as table[:, None]"
        )
    n = len(short)
    if len(long) <= n:
        raise ValueError(
            f"long_table must have more rows than short_table, got {len(long)} and {n}; "
            f"the short one comes first"
        )
    met = {
        "bounded": all((np.abs(table) <= bound).all() for table in (short, long)),
        "unique": not (has_twins(short) or has_twins(long)),
        "length-independent": bool((np.abs(long[:n] - short) <= 1e-9).all()),
        "multi-dimensional": short.shape[1] > 1,
    }
    return {name for name, is_met in met.items() if not is_met}


def has_twins(table: np.ndarray) -> bool:
    """Whether two rows of (n, d) lie within 1e-9 of each other in every coordinate."""
    return any(
        (np.abs(table[t + 1 :] - row).max(axis=1) <= 1e-9).any() for t, row in enumerate(table)
    )


def binary_positions(num_positions: int, num_bits: int) -> np.ndarray:
    """Write every position in binary, one bit in a column, the fastest bit first.

    Column b of row t is bit b of t, which changes every 2^b positions:

        ⌊t / 2^b⌋ mod 2

    Shapes: result (num_positions, num_bits).
    Dtype: an integer dtype, holding 0 and 1.
    Units: positions in tokens, counted from 0.
    Raises: ValueError when `num_bits` bits cannot tell `num_positions` positions apart, or one of
        the two is negative.

    >>> binary_positions(5, 3)
    array([[0, 0, 0],
           [1, 0, 0],
           [0, 1, 0],
           [1, 1, 0],
           [0, 0, 1]])
    """
    num_positions = as_count(num_positions, "num_positions")
    num_bits = as_count(num_bits, "num_bits")
    needed = max(num_positions - 1, 0).bit_length()
    if num_bits < needed:
        raise ValueError(
            f"num_bits must be at least {needed} for {num_positions} positions, got {num_bits}; "
            f"each bit doubles the positions that differ"
        )
    bits = np.arange(num_bits)
    return np.arange(num_positions)[:, np.newaxis] >> bits & 1


def causal_mask(n: int) -> np.ndarray:
    """Let every token attend to itself and to what came before it.

    Row t, column j: may the query at slot t see the key at slot j? It may when j ≤ t
    (Vaswani et al., section 3.2.3).

    Shapes: result (n, n).
    Dtype: bool, True on the diagonal and below it.
    Raises: ValueError when `n` is negative.

    >>> causal_mask(3)
    array([[ True, False, False],
           [ True,  True, False],
           [ True,  True,  True]])
    """
    return np.tri(as_count(n, "n"), dtype=bool)


def positions_from_causal_average(weights: ArrayLike) -> np.ndarray:
    """Read positions out of attention that was given none, but had a causal mask.

    Under equal scores the query at position t shares its attention equally among the t + 1 tokens
    that it may see, so that token 0 gets

        1 / (t + 1)

    from it. Haviv et al. (2022), arXiv:2203.16634, suppose that models without positional
    encodings count in this way.

    Shapes: weights (n, n) with n ≥ 1, a row for each query, in any order; columns are keys,
        column 0 is token 0; result (n,), the position of each row. What a table of no rows gives
        is left to you.
    Dtype: `weights` floating, also float32 with n = 1000; the result has an integer dtype.
        `weights` is not changed.
    Units: positions in tokens, counted from 0.
    Raises: ValueError when `weights` is not (n, n), or its column 0 does not hold the shares of
        the positions 0 … n − 1, each once. A share counts when it is right up to the rounding of
        its dtype; how much farther off it may be is left to you, and a share that is nearest to
        no position of its own, or is NaN, is refused.

    >>> positions_from_causal_average([[0.5, 0.5, 0], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]])
    array([1, 0, 2])
    """
    weights = as_floats(weights, "weights")
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(
            f"weights must be (n, n), a row for each query, got {weights.shape}; "
            f"give the weights of one head, after the softmax"
        )
    shares = weights[:, 0].astype(np.float64) if weights.size else np.ones(0)
    n = len(shares)
    readable = shares > 0.5 / (n + 1)  # smaller than any share of n tokens, and above 0
    seen = np.rint(1 / np.where(readable, shares, 1.0))
    positions = seen.astype(np.int64) - 1
    if not readable.all() or not np.array_equal(np.sort(positions), np.arange(n)):
        raise ValueError(
            f"column 0 of weights must hold 1/(t + 1) for each t from 0 to {n - 1} once, "
            f"got {shares}; use a causal mask, equal scores and every row"
        )
    return positions

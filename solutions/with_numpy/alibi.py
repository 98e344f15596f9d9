"""Position as a term on the attention score: Shaw's vectors, T5's buckets, ALiBi's slopes.

Why: a term that depends on the distance of a query and a key tells attention their order, and then
nothing has to be added to a token or rotated. Symbols: i and j number queries and keys, p_i and p_j
are their positions in tokens, slope_h is the slope of head h. "ALiBi" is Press, Smith and Lewis
(2022), arXiv:2108.12409; "T5" is Raffel et al. (2020), arXiv:1910.10683; "Shaw" is Shaw, Uszkoreit
and Vaswani (2018), arXiv:1803.02155.
"""

import math
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from .rope import as_floats


def signed_distances(q_positions: ArrayLike, k_positions: ArrayLike) -> np.ndarray:
    """Key position minus query position, p_j − p_i, of each pair: the one input of all biases here.

    Shapes: q_positions (n_q,), k_positions (n_k,); result (n_q, n_k).
    Dtype: float64, so that unsigned positions do not wrap round below zero.
    Units: tokens.
    Raises: ValueError when positions are not 1-D, TypeError when they are not numbers.

    >>> signed_distances([3, 5], [0, 3, 4])
    array([[-3.,  0.,  1.],
           [-5., -2., -1.]])
    """
    q_at = as_floats(q_positions, "q_positions").astype(np.float64)
    k_at = as_floats(k_positions, "k_positions").astype(np.float64)
    if q_at.ndim != 1 or k_at.ndim != 1:
        raise ValueError(
            f"q_positions and k_positions must be 1-D, got shapes {q_at.shape} and {k_at.shape}; "
            f"call once for each row of a batch, and give a single position as [position]"
        )
    return k_at - q_at[:, np.newaxis]


def alibi_slopes(num_heads: int) -> np.ndarray:
    """Slope of each head: how much one token of distance takes off its scores.

    ALiBi, section 3. With n heads, head h = 1 … n has the slope

        slope_h = 2^(−8h/n)

    for n a power of two. For any other n, as in the code published by its authors: the slopes of
    the largest power of two p below n, and after them the 1st, 3rd, 5th, … of the slopes of 2p
    heads, n − p of them.

    Shapes: result (num_heads,).
    Dtype: float64.
    Units: score per token; positive.
    Raises: ValueError when `num_heads` is not an integer of at least 1.

    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    >>> alibi_slopes(3).tolist()
    [0.0625, 0.00390625, 0.25]
    """
    if not isinstance(num_heads, SupportsIndex) or num_heads < 1:
        raise ValueError(
            f"num_heads must be an integer of at least 1, got {num_heads!r}; "
            f"count the query heads, all of which have a slope"
        )
    n = int(num_heads)
    power = 2 ** (n.bit_length() - 1)
    slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8 * np.arange(1, 2 * power, 2) / (2 * power))
    return np.concatenate([slopes, between[: n - power]])


def alibi_bias(q_positions: ArrayLike, k_positions: ArrayLike, slopes: ArrayLike) -> np.ndarray:
    """Bias of every score in every head: minus the slope times the distance, to either side.

    ALiBi, section 3, written for any positions. With p_i the position of query i and p_j that of
    key j, b[h, i, j] = −slope_h·|p_i − p_j|. A causal mask is not part of it.

    Shapes: q_positions (n_q,), k_positions (n_k,), slopes (heads,); result (heads, n_q, n_k).
    Dtype: float64, whatever the dtypes of the arguments, as tables are in this book; unsigned
        positions do not wrap round. No input is changed.
    Units: positions in tokens, integers or floats, in any order, from any start.
    Raises: when the positions or the slopes are not 1-D, or there is no head.

    >>> penalty = -alibi_bias([8], [8, 7, 6, 4, 0], slopes=[0.5])
    >>> penalty
    array([[[0. , 0.5, 1. , 2. , 4. ]]])
    """
    m = as_floats(slopes, "slopes").astype(np.float64)
    if m.ndim != 1 or not m.size:
        raise ValueError(
            f"slopes must be (heads,) with at least one head, got shape {m.shape}; "
            f"give the slope of a single head as [slope]"
        )
    return -m[:, np.newaxis, np.newaxis] * np.abs(signed_distances(q_positions, k_positions))


def alibi_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    slopes: ArrayLike,
    q_positions: ArrayLike,
    k_positions: ArrayLike,
) -> np.ndarray:
    """Causal attention of all heads with ALiBi's bias on the scores.

    ALiBi, section 3. With p_i the position of query i and p_j that of key j, head h scores the pair
    with q_i·k_j/√d − slope_h·(p_i − p_j), takes the softmax over the keys with p_j ≤ p_i, and
    averages their values.

    Shapes: q (heads, n_q, d), k and v (heads, n_k, d), slopes (heads,), q_positions (n_q,),
        k_positions (n_k,); result (heads, n_q, d). Nothing broadcasts.
    Dtype: the result has the floating dtype of `q`, and products of float16 that pass 65504 before
        they are divided by √d do no harm; integers give float64. No input is changed.
    Units: positions in tokens, integers or floats. They decide what is visible, not the order of
        the rows: keys may come from a cache, or in any order.
    Stability: scores of any size are fine, their largest is taken off before exp.
    Raises: ValueError when a query sees no key; and when the shapes do not go together.

    >>> q = k = np.zeros((1, 2, 2))
    >>> v = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    >>> alibi_attention(q, k, v, [np.log(3)], q_positions=[4, 5], k_positions=[4, 5])
    array([[[0.  , 1.  ],
            [0.75, 0.25]]])
    """
    q, k, v = as_floats(q, "q"), as_floats(k, "k"), as_floats(v, "v")
    if q.ndim != 3 or k.ndim != 3 or k.shape != (q.shape[0], k.shape[1], q.shape[2]):
        raise ValueError(
            f"q must be (heads, n_q, d) and k (heads, n_k, d) with the same heads and d, "
            f"got {q.shape} and {k.shape}; repeat grouped keys before the call"
        )
    if v.shape != k.shape or not q.shape[2]:
        raise ValueError(
            f"v must have the shape of k, at least one coordinate wide, got {v.shape} and "
            f"{k.shape}; each key needs its own value"
        )
    distances = signed_distances(q_positions, k_positions)
    lengths = (*np.shape(slopes), *distances.shape)
    if lengths != (q.shape[0], q.shape[1], k.shape[1]):
        raise ValueError(
            f"slopes, q_positions and k_positions must be as long as q and k have heads, queries "
            f"and keys, got {lengths} for q {q.shape} and k {k.shape}; give one for each"
        )
    visible = distances <= 0
    if not visible.any(axis=1).all():
        blind = np.asarray(q_positions)[~visible.any(axis=1)]
        raise ValueError(
            f"every query must see a key, but no key position is at most {blind[0]}; "
            f"keep each token's own key among the keys"
        )
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / math.sqrt(q.shape[2])
    scores = scores + alibi_bias(q_positions, k_positions, slopes)
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
    weights /= weights.sum(axis=-1, keepdims=True)
    return (weights @ v).astype(q.dtype)


def first_distances(num_buckets: int, max_distance: int) -> list[int]:
    """The shortest distance that falls into each of T5's buckets for one direction.

    The first half of the buckets, e of them, hold one distance each. Of the r others, number j
    begins where r·ln(d/e)/ln(max_distance/e) reaches j, that is where d^r·e^j ≥ max_distance^j·e^r.
    Whole numbers decide this without any rounding.

    >>> first_distances(8, 64)
    [0, 1, 2, 3, 4, 8, 16, 32]
    """
    exact = num_buckets // 2
    rest = num_buckets - exact

    def reaches(distance: int, step: int) -> bool:
        return distance**rest * exact**step >= max_distance**step * exact**rest

    starts = list(range(exact))
    for step in range(rest):
        distance = round(exact * (max_distance / exact) ** (step / rest))
        while reaches(distance - 1, step):
            distance -= 1
        while not reaches(distance, step):
            distance += 1
        starts.append(distance)
    return starts


def t5_bucket(
    relative_position: ArrayLike,
    bidirectional: bool = True,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> np.ndarray:
    """Number of the bucket, and so of the learned bias, that a distance between tokens falls into.

    T5, section 2.1, says in words what its published code computes. Of N buckets for a direction,
    e = ⌊N/2⌋ hold a single distance each; the others grow with the logarithm of the distance
    Δ ≥ e, and the last one holds whatever is far:

        bucket = min(e + ⌊(N − e)·ln(Δ/e)/ln(max_distance/e)⌋, N − 1)

    Bidirectional: N = num_buckets/2, and keys after their query get the second N buckets.
    Otherwise: N = num_buckets, and all keys after their query fall into bucket 0 with distance 0.
    A direction has at least two buckets. With other numbers than the defaults, rounding may decide
    the floor where a logarithm is whole; which of the two buckets it then is, is not specified.

    Shapes: relative_position any, also a single integer; result the same.
    Dtype: relative_position integers, result integers. The input is not changed.
    Units: relative_position = key position − query position, in tokens.
    Raises: ValueError when max_distance ≤ e, which leaves no room beyond the exact buckets.

    >>> t5_bucket([-200, -8, -1, 0, 1, 8, 200])
    array([15,  8,  1,  0, 17, 24, 31])
    >>> t5_bucket([-200, -8, -1, 0, 1, 8, 200], bidirectional=False)
    array([31,  8,  1,  0,  0,  0,  0])
    """
    relative = np.asarray(relative_position)
    if relative.dtype.kind not in "iu":
        raise TypeError(
            f"relative_position must hold integers, got dtype {relative.dtype}; "
            f"subtract positions that count tokens"
        )
    for name, number in (("num_buckets", num_buckets), ("max_distance", max_distance)):
        if not isinstance(number, SupportsIndex):
            raise TypeError(f"{name} must be an integer, got {number!r}; it is a count")
    n = int(num_buckets) // 2 if bidirectional else int(num_buckets)
    if n < 2 or (bidirectional and num_buckets % 2):
        raise ValueError(
            f"num_buckets must be at least 2, or even and at least 4 for two directions, "
            f"got {num_buckets!r}; T5 has 32"
        )
    if max_distance <= n // 2:
        raise ValueError(
            f"max_distance must be above {n // 2}, the number of exact buckets in a direction, "
            f"got {max_distance!r}; raise it or take fewer buckets"
        )
    relative = np.clip(relative.astype(np.int64), -max_distance, max_distance)  # far is far
    distance = np.abs(relative) if bidirectional else np.maximum(-relative, 0)
    starts = first_distances(n, int(max_distance))
    bucket = np.searchsorted(starts, distance, side="right") - 1
    return bucket + np.where(bidirectional & (relative > 0), n, 0)


def shaw_scores(
    q: ArrayLike,
    k: ArrayLike,
    relative_keys: ArrayLike,
    q_positions: ArrayLike,
    k_positions: ArrayLike,
) -> np.ndarray:
    """Attention scores, before the softmax, with a learned vector for each distance on the key.

    Shaw, eq. 4, with the clipping of section 3.2. With p_i the position of query i and p_j that of
    key j:

        score[i, j] = q_i·(k_j + a_c)/√d,   c = clip(p_j − p_i, −K, K) + K

    where a_c is row c of `relative_keys`: row 0 for keys K or more tokens before the query, row K
    for the query's own position, row 2K for keys K or more tokens after it.

    Shapes: q (n_q, d), k (n_k, d), relative_keys (2·K + 1, d), q_positions (n_q,),
        k_positions (n_k,); result (n_q, n_k). Nothing broadcasts.
    Dtype: the result has the floating dtype of `q`, and products of float16 that pass 65504 before
        they are divided by √d do no harm; integers give float64. No input is changed.
    Units: positions in tokens, integers or floats; their differences are whole numbers, since they
        number rows.
    Memory: (n_q, n_k) and (n_q, 2·K + 1) numbers, never (n_q, n_k, d).
    Raises: when the number of rows of `relative_keys` is even, and when the shapes do not go
        together or a distance is no whole number.

    >>> q, k = [[1.0, 0.0]], [[2.0, 5.0], [2.0, 5.0]]
    >>> relative_keys = [[-1, 0], [0, 0], [3, 0]]
    >>> shaw_scores(q, k, relative_keys, [5], [3, 6]) * np.sqrt(2)
    array([[1., 5.]])
    """
    q, k, a = as_floats(q, "q"), as_floats(k, "k"), as_floats(relative_keys, "relative_keys")
    if q.ndim != 2 or k.ndim != 2 or a.ndim != 2 or not q.shape[1] == k.shape[1] == a.shape[1] > 0:
        raise ValueError(
            f"q must be (n_q, d), k (n_k, d) and relative_keys (2·K + 1, d) with one d, "
            f"got {q.shape}, {k.shape} and {a.shape}; call once for each head"
        )
    if len(a) % 2 == 0:
        raise ValueError(
            f"relative_keys must have an odd number of rows, got {len(a)}; "
            f"K to either side and one for distance 0"
        )
    distances = signed_distances(q_positions, k_positions)
    if distances.shape != (len(q), len(k)):
        raise ValueError(
            f"q and k must have one position per row, got {distances.shape} positions for "
            f"{len(q)} queries and {len(k)} keys; give the positions of these rows"
        )
    if (distances != np.rint(distances)).any():
        raise ValueError(
            "positions must be whole tokens apart, got fractions; each distance numbers a row"
        )
    K = len(a) // 2
    row = np.clip(distances, -K, K).astype(np.int64) + K
    wide = q.astype(np.float64)
    on_rows = wide @ a.T  # q·a for each row once; the pairs pick from these
    scores = wide @ k.T + np.take_along_axis(on_rows, row, axis=1)
    return (scores / math.sqrt(q.shape[1])).astype(q.dtype)


def fixed_bias(q_positions: ArrayLike, k_positions: ArrayLike, slope: float) -> np.ndarray:
    """Make the bias of one head right for attention that looks to both sides.

    ALiBi, section 3, made symmetric: every token of distance from the query costs `slope`, before
    it and after it alike, and the query's own position costs nothing.

    Shapes: q_positions (n_q,), k_positions (n_k,), slope a single number; result (n_q, n_k).
    Dtype: float64. No input is changed.
    Units: positions in tokens, integers or floats, in any order, from any start.
    Raises: when the positions are not 1-D.

    >>> -fixed_bias([4], [2, 4, 7], slope=0.5)
    array([[1. , 0. , 1.5]])
    """
    if np.ndim(slope):
        raise ValueError(
            f"slope must be a single number, got shape {np.shape(slope)}; call once for each head"
        )
    return alibi_bias(q_positions, k_positions, [slope])[0]

"""Rotary position embedding (RoPE): rotate queries and keys by their positions.

Why: the dot product of two rotated vectors depends on the distance between their positions alone.
Symbols: position m (tokens), pair i = 0 … dim/2 − 1, frequency θ_i = base^(−2i/dim) (radians per
token). "RoFormer" is Su et al. (2021), arXiv:2104.09864; it counts its pairs from one.
"""

import math
from collections.abc import Callable
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from .order_blindness import as_floats as as_floats


def rotate_2d(vector: ArrayLike, angle: ArrayLike) -> np.ndarray:
    """Rotate vectors of the plane anticlockwise, the first axis towards the second.

    The rotation matrix of RoFormer, eq. 13, applied to the last axis of `vector`:

        (a, b) → (a·cos φ − b·sin φ, a·sin φ + b·cos φ)

    Shapes: vector (..., 2); angle φ a number, or an array that broadcasts against
        vector.shape[:-1] as NumPy arrays do; result (the broadcast shape, 2).
    Dtype: sine and cosine in float64, the result in the floating dtype of `vector`; an integer
        vector gives float64. `vector` is not changed.
    Units: φ in radians.
    Raises: ValueError when the last axis of `vector` is not of length 2.

    >>> rotate_2d([1, 0], np.pi / 2).round(4)
    array([0., 1.])
    """
    vector, angle = as_floats(vector, "vector"), as_floats(angle, "angle")
    if vector.shape[-1:] != (2,):
        raise ValueError(
            f"vector must have shape (..., 2), got {vector.shape}; put the plane's two axes last"
        )
    cos, sin = np.cos(angle, dtype=np.float64), np.sin(angle, dtype=np.float64)
    a, b = vector[..., 0], vector[..., 1]
    rotated = np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return rotated.astype(vector.dtype)


def rope_angles(positions: ArrayLike, dim: int, base: float = 10000.0) -> np.ndarray:
    """Angle by which each pair of coordinates turns at each position.

    Position m turns pair i, counted from zero, by m·base^(−2i/dim): the fastest pair comes first
    (RoFormer, eq. 15 and the θ below it).

    Shapes: positions any; result positions.shape + (dim/2,).
    Dtype: float64 whatever the dtype of `positions`, which are integers or floats.
    Units: positions in tokens, angles in radians, not reduced modulo 2π.
    Raises: ValueError when `dim` is not a positive even integer (the message names it), or `base`
        not a finite number above 0.

    >>> rope_angles([0, 1, 2.5], dim=4)
    array([[0.   , 0.   ],
           [1.   , 0.01 ],
           [2.5  , 0.025]])
    """
    positions = as_floats(positions, "positions")
    if not isinstance(dim, SupportsIndex) or dim <= 0 or dim % 2:
        raise ValueError(
            f"dim must be a positive even integer, got {dim!r}; coordinates turn in pairs, "
            f"so rotate an even part of the vector"
        )
    if not 0 < base < math.inf:
        raise ValueError(f"base must be finite and above 0, got {base!r}; 10000.0 is usual")
    i = np.arange(dim // 2)
    return positions[..., np.newaxis] * base ** (-2 * i / dim)


def apply_rope(
    x: ArrayLike, positions: ArrayLike, base: float = 10000.0, layout: str = "interleaved"
) -> np.ndarray:
    """Rotate every pair of coordinates of every vector by the angle of its position.

    RoFormer, eq. 14–15: the block-diagonal rotation R(m) times the vector at position m.

    Shapes: x (..., seq, dim); positions (seq,), shared by all leading axes, or exactly
        x.shape[:-1], one for each vector; result like x.
    Dtype: angles in float64, the result in the floating dtype of `x`; integers give float64.
        `x` is not changed.
    Units: positions in tokens; integers or floats.
    Layout: "interleaved" pairs coordinates (2i, 2i + 1), "half" pairs (i, i + dim/2).
    Raises: ValueError when `positions` has any other shape, also one that would broadcast; when
        `dim` is odd (the message names it); when `base` is not a finite number above 0; when
        `layout` is neither of the two (the message names both).

    >>> q = [[1, 0.5, -0.5, 2]]
    >>> apply_rope(q, [5]).round(4)
    array([[ 0.7631, -0.8171, -0.5993,  1.9725]])
    >>> apply_rope(q, [5], layout="half").round(4)
    array([[-0.1958,  0.3994, -1.1008,  2.0225]])
    """
    x, positions = as_floats(x, "x"), as_floats(positions, "positions")
    if x.ndim < 2 or positions.shape not in (x.shape[-2:-1], x.shape[:-1]):
        raise ValueError(
            f"x must be (..., seq, dim) and positions (seq,) or exactly x.shape[:-1], "
            f"got x {x.shape} and positions {positions.shape}; give one position per vector"
        )
    if layout not in ("interleaved", "half"):
        raise ValueError(
            f"layout must be 'interleaved' or 'half', got {layout!r}; "
            f"take the one that the weights were trained with"
        )
    dim = x.shape[-1]
    angles = rope_angles(positions, dim, base)
    if layout == "interleaved":  # [x0 x1 x2 x3] → rows [x0 x1], [x2 x3]
        pairs = x.reshape(*x.shape[:-1], dim // 2, 2)
        return rotate_2d(pairs, angles).reshape(x.shape)
    pairs = x.reshape(*x.shape[:-1], 2, dim // 2)  # [x0 x1 x2 x3] → columns [x0 x2], [x1 x3]
    return rotate_2d(pairs.swapaxes(-1, -2), angles).swapaxes(-1, -2).reshape(x.shape)


def rope_scores(
    q: ArrayLike,
    k: ArrayLike,
    q_positions: ArrayLike,
    k_positions: ArrayLike,
    base: float = 10000.0,
) -> np.ndarray:
    """Attention scores, before the softmax, of rotated queries with rotated keys.

    RoFormer, eq. 16, with the scaling of attention: (R(m) q)·(R(n) k) / √dim, where m and n are
    the positions of query and key. Adding one number to all positions changes no score.

    Shapes: q (n_q, dim), k (n_k, dim), q_positions (n_q,), k_positions (n_k,);
        result (n_q, n_k).
    Dtype: the floating dtype of `q`; integers give float64.
    Units: positions in tokens.
    Layout: interleaved, coordinates (2i, 2i + 1) are a pair.
    Raises: ValueError when the shapes do not go together, `dim` is odd, or `base` is not a finite
        number above 0.

    >>> q, k = [[1, 0.5, -0.5, 2]], [[0.5, 1, 1.5, -1]]
    >>> rope_scores(q, k, [5], [3]).round(4)
    array([[-1.2668]])
    """
    q, k = as_floats(q, "q"), as_floats(k, "k")
    if q.ndim != 2 or k.ndim != 2 or q.shape[1] != k.shape[1]:
        raise ValueError(
            f"q must be (n_q, dim) and k (n_k, dim) with one dim, got {q.shape} and {k.shape}; "
            f"call once for each head"
        )
    rotated_q = apply_rope(q.astype(np.float64), q_positions, base)
    rotated_k = apply_rope(k.astype(np.float64), k_positions, base)
    return (rotated_q @ rotated_k.T / math.sqrt(q.shape[1])).astype(q.dtype)


def interleaved_to_half(weight: ArrayLike, num_heads: int) -> np.ndarray:
    """Reorder the rows of a query or key projection from the interleaved layout to the half one.

    Row r of a head makes coordinate r of that head's vectors. Interleaved code pairs coordinates
    (2i, 2i + 1), half code pairs (i, i + head_dim/2). After the reordering, of queries and keys
    alike, half code must give exactly the scores that interleaved code gave before, since a dot
    product does not mind in which order its terms are added.

    Shapes: weight (num_heads·head_dim, d_model), the heads one below the other; result the same.
    Heads: for a key projection num_heads is the number of key heads, which may be smaller.
    Dtype: the floating dtype of `weight`; integers give float64. `weight` is not changed.
    Raises: ValueError when `weight` is not 2-D, or its rows do not make `num_heads` heads of a
        positive even head_dim.

    >>> interleaved_to_half(np.arange(8).reshape(8, 1), num_heads=2).ravel()
    array([0., 2., 1., 3., 4., 6., 5., 7.])
    """
    weight = as_floats(weight, "weight")
    if weight.ndim != 2:
        raise ValueError(
            f"weight must be (num_heads·head_dim, d_model), got {weight.shape}; "
            f"give a bias as weight[:, None]"
        )
    rows = len(weight)
    if num_heads < 1 or rows < 1 or rows % (2 * num_heads):
        raise ValueError(
            f"num_heads must divide the {rows} rows of weight into heads of even size, "
            f"got {num_heads!r}; for keys, count the key heads"
        )
    order = np.arange(rows).reshape(num_heads, -1, 2)  # order[head, pair, member of the pair]
    return weight[order.swapaxes(1, 2).ravel()]


def apply_partial_rope(
    x: ArrayLike,
    positions: ArrayLike,
    rotary_dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> np.ndarray:
    """Rotate the first `rotary_dim` coordinates as a vector of that width, pass on the rest.

    The rotated part is a whole RoPE of its own: its angles are those of a vector of width
    rotary_dim, and in the half layout i is paired with i + rotary_dim/2.

    Shapes: x (..., seq, dim), where dim may be odd; positions (seq,) or exactly x.shape[:-1];
        result like x.
    Dtype: angles in float64, the result in the floating dtype of `x`; integers give float64.
        `x` is not changed.
    Units: positions in tokens.
    Layout: "interleaved" or "half", within the first rotary_dim coordinates.
    Raises: ValueError when `rotary_dim` is not an even integer in 2..dim, and in the cases of
        `apply_rope`, with the same names in the message.

    >>> apply_partial_rope([[1, 0.5, -0.5, 2, 7]], [5], rotary_dim=2).round(4)
    array([[ 0.7631, -0.8171, -0.5   ,  2.    ,  7.    ]])
    """
    x = as_floats(x, "x")
    if rotary_dim not in range(2, x.shape[-1] + 1, 2):
        raise ValueError(
            f"rotary_dim must be an even integer in 2..dim for x {x.shape}, got {rotary_dim!r}; "
            f"it counts coordinates, not pairs"
        )
    rotated = apply_rope(x[..., :rotary_dim], positions, base, layout)
    return np.concatenate([rotated, x[..., rotary_dim:]], axis=-1)


def score_bound(distances: ArrayLike, dim: int, base: float = 10000.0) -> np.ndarray:
    """The quantity that bounds how large a score can be at a distance: the "decay" of RoPE.

    RoFormer, section 3.4.3, with θ_i the frequency of pair i, counted from zero:

        mean over j = 1 … dim/2 of |S_j|,   S_j = Σ_{i<j} exp(√−1·distance·θ_i)

    Shapes: distances any; result distances.shape.
    Dtype: float64.
    Units: distances in tokens; integers or floats, of either sign.
    Raises: ValueError when `dim` is not a positive even integer (the message names it), or `base`
        not a finite number above 0.

    >>> score_bound([0, 1, 10], dim=8).round(4)
    array([2.5   , 2.2925, 0.9919])
    """
    angles = rope_angles(as_floats(distances, "distances"), dim, base)
    sums = np.cumsum(np.exp(1j * angles), axis=-1)
    return np.abs(sums).mean(axis=-1)


def fixed_table_cache() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Make `tables`, a cache of cosines and sines that never hands one call's rows to another.

    Returns a function `tables(length, offset, dim, base=10000.0)` → (cos, sin) of the angles of
    positions offset … offset + length − 1 (see `rope_angles`). It may remember what it computed,
    but must give each call its own tables, whatever was asked before, in whatever order. Every
    `fixed_table_cache()` starts with an empty memory.

    Shapes: cos and sin (length, dim/2) each.
    Dtype: float64.
    Units: length and offset in tokens.
    Raises: (`tables`) ValueError when `length` or `offset` is negative, `dim` is not a positive
        even integer, or `base` not a finite number above 0.

    >>> tables = fixed_table_cache()
    >>> cos, sin = tables(2, 0, dim=4)
    >>> cos, sin = tables(2, 5, dim=4)
    >>> sin.round(4)
    array([[-0.9589,  0.05  ],
           [-0.2794,  0.06  ]])
    """
    remembered = {}

    def tables(
        length: int, offset: int, dim: int, base: float = 10000.0
    ) -> tuple[np.ndarray, np.ndarray]:
        if offset < 0 or length < 0:
            raise ValueError(
                f"length and offset must be at least 0, got {length!r} and {offset!r}; "
                f"positions count from 0"
            )
        positions = range(offset, offset + length)
        key = (length, offset, dim, base)  # everything that the tables depend on
        if key not in remembered:
            angles = rope_angles(positions, dim, base)
            remembered[key] = np.cos(angles), np.sin(angles)
        cos, sin = remembered[key]
        return cos.copy(), sin.copy()  # the caller may write into its tables, not into the memory

    return tables

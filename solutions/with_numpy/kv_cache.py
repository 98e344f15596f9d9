"""The key-value cache: generate token by token, and get what one pass over all tokens gives.

Why: a new token needs the keys and values of every earlier one, which never change once each key
has been rotated by its own position. Whoever keeps them must know that position, and most faults of
generation are a wrong one. Symbols: position m (tokens), pair i, frequency θ_i as in `rope`.
"RoFormer" is Su et al. (2021), arXiv:2104.09864, "Attention" Vaswani et al. (2017),
arXiv:1706.03762.
"""

import math
from collections.abc import Callable
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from .rope import apply_rope, as_floats, rope_angles


def rope_tables(max_len: int, dim: int, base: float = 10000.0) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of every angle that the positions 0 … max_len − 1 need.

    Row m belongs to position m, column i to pair i, whose angle there is m·base^(−2i/dim)
    (RoFormer, eq. 15).

    Shapes: result (cos, sin), each (max_len, dim/2); a max_len of 0 gives tables without rows.
    Dtype: float64.
    Units: max_len in tokens.
    Raises: ValueError when `max_len` is no integer or negative, `dim` is not a positive even
        integer (the message names it), or `base` not a finite number above 0.

    >>> rope_tables(3, dim=4)[1].round(4)
    array([[0.    , 0.    ],
           [0.8415, 0.01  ],
           [0.9093, 0.02  ]])
    """
    if not isinstance(max_len, SupportsIndex) or max_len < 0:
        raise ValueError(
            f"max_len must be an integer of at least 0, got {max_len!r}; it counts positions"
        )
    angles = rope_angles(np.arange(max_len), dim, base)
    return np.cos(angles), np.sin(angles)


def rope_with_offset(x: ArrayLike, cos: ArrayLike, sin: ArrayLike, offset: int = 0) -> np.ndarray:
    """Rotate a piece of a sequence that starts at position `offset`, with tables made before.

    Token t of the piece has position offset + t and takes that row of the tables. The offset of a
    new piece is the number of tokens that came before it (RoFormer, eq. 14, from position offset
    on).

    Shapes: x (..., seq, dim), all leading axes sharing the positions; cos and sin
        (max_len, dim/2) each; result like x.
    Dtype: the floating dtype of `x`, whatever that of the tables; integers give float64. `x` is
        not changed.
    Units: offset in tokens.
    Layout: interleaved, coordinates (2i, 2i + 1) are a pair.
    Raises: ValueError when `offset` is no integer or negative; when the tables run out, which is
        when offset + seq is above max_len, also where a shorter slice of the tables would
        broadcast; when the tables are not both (max_len, dim/2), or `dim` is odd or 0 (the message
        names it).

    >>> rope_with_offset([[1, 0.5, -0.5, 2]], *rope_tables(8, dim=4), offset=5).round(4)
    array([[ 0.7631, -0.8171, -0.5993,  1.9725]])
    """
    x, cos, sin = as_floats(x, "x"), as_floats(cos, "cos"), as_floats(sin, "sin")
    if x.ndim < 2:
        raise ValueError(f"x must be (..., seq, dim), got {x.shape}; give one token as x[None]")
    seq, dim = x.shape[-2:]
    if dim == 0 or dim % 2:
        raise ValueError(f"dim must be positive and even, got {dim}; coordinates turn in pairs")
    if cos.ndim != 2 or cos.shape != sin.shape or cos.shape[1] != dim // 2:
        raise ValueError(
            f"cos and sin must both be (max_len, {dim // 2}) for vectors of width {dim}, "
            f"got {cos.shape} and {sin.shape}; make them with rope_tables(max_len, {dim})"
        )
    if not isinstance(offset, SupportsIndex) or offset < 0:
        raise ValueError(
            f"offset must be an integer of at least 0, got {offset!r}; "
            f"it counts the tokens that came before"
        )
    end, max_len = int(offset) + seq, len(cos)
    if end > max_len:
        raise ValueError(
            f"offset + seq must be at most max_len, got {offset} + {seq} = {end} "
            f"and tables of {max_len} rows; make longer tables"
        )
    cos, sin = cos[offset:end], sin[offset:end]
    a, b = x[..., 0::2], x[..., 1::2]
    rotated = np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return rotated.reshape(x.shape).astype(x.dtype)


class KVCache:
    """The rotated keys and the values of all tokens seen so far, in order of arrival.

    A key is rotated by its own position before it is stored, and never again. The number of stored
    tokens is the position of the next one: `len(cache)`.

    Shapes: `append(k, v)` takes k (n, d_k) and v (n, d_v), one row for each of n new tokens, which
        may be none; `keys` is (len, d_k), `values` (len, d_v). What they are while the cache is
        empty is not specified.
    Dtype: k and v each by itself. `keys` has the floating dtype of the k that were appended, and
        `values` that of the v; integers count as float64. When the calls differ in it, the widest
        holds for all, so that no later token loses a digit.
    Memory: the cache keeps copies, so the caller may go on to change its arrays. Two caches share
        nothing.
    Raises: ValueError when k and v are not 2-D with the same number of rows, or their widths are
        not those of the tokens that are there. A refused call changes nothing.

    >>> notes = KVCache()
    >>> notes.append([[1.0, 2.0], [3.0, 4.0]], [[5.0], [6.0]])
    >>> notes.append([[7.0, 8.0]], [[9.0]])
    >>> len(notes), notes.values.ravel().tolist()
    (3, [5.0, 6.0, 9.0])
    >>> notes.truncate(1)
    >>> notes.keys
    array([[1., 2.]])
    """

    def __init__(self) -> None:
        self._keys: list[np.ndarray] = []  # one row for each token
        self._values: list[np.ndarray] = []

    def append(self, k: ArrayLike, v: ArrayLike) -> None:
        """Store n more tokens: k (n, d_k), already rotated, and v (n, d_v), copied."""
        k, v = as_floats(k, "k"), as_floats(v, "v")
        if k.ndim != 2 or v.ndim != 2 or len(k) != len(v):
            raise ValueError(
                f"k must be (n, d_k) and v (n, d_v) with one n, got {k.shape} and {v.shape}; "
                f"give one key and one value for each token"
            )
        if self and (k.shape[1], v.shape[1]) != (self._keys[0].size, self._values[0].size):
            raise ValueError(
                f"k and v must be as wide as the tokens in the cache, "
                f"{self._keys[0].size} and {self._values[0].size}, got {k.shape} and {v.shape}; "
                f"keep a cache for each layer and head"
            )
        self._keys.extend(k.copy())
        self._values.extend(v.copy())

    def __len__(self) -> int:
        """The number of tokens stored, which is the position of the next one."""
        return len(self._keys)

    @property
    def keys(self) -> np.ndarray:
        """All keys, (len, d_k), in order of arrival."""
        return np.array(self._keys)

    @property
    def values(self) -> np.ndarray:
        """All values, (len, d_v), in order of arrival."""
        return np.array(self._values)

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens, as a rejected speculation asks for.

        Raises: ValueError when `length` is no integer in 0 … len.
        """
        if length not in range(len(self) + 1):
            raise ValueError(
                f"length must be an integer in 0 … {len(self)}, got {length!r}; "
                f"a cache can forget tokens, not invent them"
            )
        del self._keys[int(length) :], self._values[int(length) :]


def attend(q: np.ndarray, cache: KVCache) -> np.ndarray:
    """Mix the cached values by the scores of one rotated query: softmax(K q/√d_k)·V, in float64."""
    scores = cache.keys.astype(np.float64) @ q.astype(np.float64) / math.sqrt(len(q))
    weights = np.exp(scores - scores.max())  # the largest exponent is 0: nothing overflows
    return weights @ cache.values / weights.sum()


def decode_step(
    x_t: ArrayLike,
    w_q: ArrayLike,
    w_k: ArrayLike,
    w_v: ArrayLike,
    cache: KVCache,
    base: float = 10000.0,
) -> np.ndarray:
    """Attention for one new token against a cache, which the token joins.

    The token's position m is the number of tokens in the cache before the call. Its query and key
    are rotated by m, its key and value appended, and then its query meets all keys, its own too
    (RoFormer, eq. 16; Attention, eq. 1):

        softmax(K·R(m)q / √d_k)·V,   q = x_t·w_q,   K and V as the cache has them

    Called token by token, it gives the rows of the full causal pass.

    Shapes: x_t (d_model,), w_q and w_k (d_model, d_k), w_v (d_model, d_v); result (d_v,).
    Dtype: angles in float64, the result in the floating dtype of `x_t`; integers give float64. Only
        `cache` is changed.
    Units: positions in tokens.
    Layout: interleaved, coordinates (2i, 2i + 1) are a pair.
    Softmax: stable, also where scores are in the thousands.
    Raises: ValueError when the shapes do not go together, also with the widths in the cache; when
        d_k is odd (the message names it), or `base` is not a finite number above 0. The cache is
        then as it was.

    >>> notes, unit = KVCache(), np.eye(2)
    >>> decode_step([1.0, 0.0], unit, unit, unit, notes)
    array([1., 0.])
    >>> decode_step([0.0, 1.0], unit, unit, unit, notes).round(4)
    array([0.2138, 0.7862])
    >>> len(notes)
    2
    """
    x_t, w_q = as_floats(x_t, "x_t"), as_floats(w_q, "w_q")
    w_k, w_v = as_floats(w_k, "w_k"), as_floats(w_v, "w_v")
    shapes = x_t.shape, w_q.shape, w_k.shape, w_v.shape
    if not (
        x_t.ndim == 1
        and w_q.ndim == w_v.ndim == 2
        and w_q.shape == w_k.shape
        and len(x_t) == len(w_q) == len(w_v)
    ):
        raise ValueError(
            f"x_t must be (d_model,), w_q and w_k (d_model, d_k) and w_v (d_model, d_v), got "
            f"{', '.join(map(str, shapes))}; give one token at a time"
        )
    position = [len(cache)]
    x = x_t[np.newaxis].astype(np.float64)
    q, k = (apply_rope(x @ w, position, base) for w in (w_q, w_k))
    cache.append(k.astype(x_t.dtype), (x @ w_v).astype(x_t.dtype))
    return attend(q[0], cache).astype(x_t.dtype)


def left_pad_positions(attention_mask: ArrayLike) -> np.ndarray:
    """Positions of the tokens of a padded batch: each row counts its own real tokens from 0.

    The position of a real token is the number of real tokens before it in its row. Padding gets 0,
    in front of the tokens and behind them; the mask keeps it out of attention, so its position
    never matters.

    Shapes: attention_mask (batch, seq), 1 for a real token and 0 for padding; result the same.
        The real tokens of a row are neighbours: a row with holes is not specified. A row of
        nothing but padding gets zeros.
    Dtype: an integer dtype. `attention_mask` is not changed.
    Units: positions in tokens.
    Raises: ValueError when the mask is not 2-D.

    >>> left_pad_positions([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]])
    array([[0, 0, 0, 1, 2],
           [0, 1, 2, 3, 0]])
    """
    mask = np.asarray(attention_mask)
    if mask.ndim != 2 or not np.isin(mask, (0, 1)).all():
        raise ValueError(
            f"attention_mask must be (batch, seq) of 0 and 1, got shape {mask.shape} with the "
            f"values {np.unique(mask)[:5]}; give the tokenizer's mask, not an additive one"
        )
    mask = mask.astype(np.int64)
    return (mask.cumsum(axis=1) - 1) * mask


def packed_positions(lengths: ArrayLike) -> np.ndarray:
    """Positions of several documents that stand one behind the other in one row.

    Each document starts at 0 again, as if it were alone.

    Shapes: lengths (documents,), the number of tokens of each, 0 allowed; result (sum of lengths,).
        No documents at all give no positions.
    Dtype: an integer dtype, also when the result is empty.
    Units: lengths and positions in tokens.
    Raises: ValueError when a length is negative or no integer, or `lengths` is not 1-D.

    >>> packed_positions([3, 2])
    array([0, 1, 2, 0, 1])
    """
    counts = np.asarray(lengths)
    if counts.ndim != 1 or (counts.size and counts.dtype.kind not in "iu") or (counts < 0).any():
        raise ValueError(
            f"lengths must be a list of integers of at least 0, got {lengths!r}; "
            f"give the number of tokens of each document"
        )
    counts = counts.astype(np.int64)
    starts = counts.cumsum() - counts  # where each document begins in the row
    return np.arange(counts.sum()) - np.repeat(starts, counts)


def rerotate_keys(keys: ArrayLike, delta: float, base: float = 10000.0) -> np.ndarray:
    """Move cached, rotated keys by `delta` positions, without the keys they were made from.

    Rotations add up: R(delta)·R(m)k = R(m + delta)k, so one more rotation by delta, the same for
    every key, moves them all (RoFormer, eq. 14–15). Evicting the oldest n tokens and repacking the
    rest is delta = −n.

    Shapes: keys (n, d_k), each rotated by its own position; delta a number; result like keys.
    Dtype: angles in float64, the result in the floating dtype of `keys`; integers give float64.
        `keys` is not changed.
    Units: delta in tokens, of either sign; fractions are allowed.
    Layout: interleaved, coordinates (2i, 2i + 1) are a pair.
    Raises: ValueError when d_k is odd or 0 (the message names it), or `base` is not a finite number
        above 0.

    >>> at_three = rerotate_keys([[0.5, 1.0, 1.5, -1.0]], 3)  # from position 0
    >>> at_three.round(4)
    array([[-0.6361, -0.9194,  1.5293, -0.9546]])
    >>> rerotate_keys(at_three, -3).round(4)
    array([[ 0.5,  1. ,  1.5, -1. ]])
    """
    keys, shift = as_floats(keys, "keys"), as_floats(delta, "delta")
    if keys.ndim != 2 or shift.ndim:
        raise ValueError(
            f"keys must be (n, d_k) and delta a single number, got {keys.shape} and "
            f"{shift.shape}; call once for each distance by which keys move"
        )
    return apply_rope(keys, np.full(len(keys), shift), base)


def fixed_decode() -> Callable[..., np.ndarray]:
    """Make `decode`, a loop over tokens with a cache that equals the full causal pass.

    Returns a function `decode(q, k, v, base=10000.0)`. It takes the queries, keys and values of n
    tokens, not yet rotated, goes through them one at a time at the positions 0 … n − 1, and
    returns for each what attention gives it from the tokens up to and including itself:
    softmax(R(m)q·R(n)k / √d_k) over n ≤ m, times v (RoFormer, eq. 16). Every call of `decode`
    starts with an empty cache.

    Shapes: q and k (n, d_k), v (n, d_v); result (n, d_v).
    Dtype: angles in float64, the result in the floating dtype of `q`; integers give float64. The
        inputs are not changed.
    Units: positions in tokens.
    Layout: interleaved, coordinates (2i, 2i + 1) are a pair.
    Softmax: stable, also where scores are in the thousands.
    Raises: (`decode`) ValueError when the shapes do not go together, d_k is odd or 0 (the message
        names it), or `base` not a finite number above 0.

    >>> asks, offers = np.tile([1, 0.5, -0.5, 2], (3, 1)), np.tile([0.5, 1, 1.5, -1], (3, 1))
    >>> fixed_decode()(asks, offers, np.eye(3)).round(4)
    array([[1.    , 0.    , 0.    ],
           [0.5183, 0.4817, 0.    ],
           [0.2456, 0.391 , 0.3634]])
    """

    def decode(q: ArrayLike, k: ArrayLike, v: ArrayLike, base: float = 10000.0) -> np.ndarray:
        q, k, v = as_floats(q, "q"), as_floats(k, "k"), as_floats(v, "v")
        if q.ndim != 2 or v.ndim != 2 or q.shape != k.shape or len(q) != len(v):
            raise ValueError(
                f"q and k must be (n, d_k) and v (n, d_v), got {q.shape}, {k.shape} and "
                f"{v.shape}; give one query, one key and one value for each token"
            )
        cos, sin = rope_tables(len(q), q.shape[1], base)
        cache = KVCache()
        result = np.empty(v.shape, dtype=q.dtype)
        for m in range(len(q)):
            token = slice(m, m + 1)
            cache.append(rope_with_offset(k[token], cos, sin, offset=m), v[token])
            query = rope_with_offset(q[token], cos, sin, offset=m)
            result[m] = attend(query[0], cache)
        return result

    return decode

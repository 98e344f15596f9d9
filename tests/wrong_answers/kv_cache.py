"""Wrong answers that differ from a right one in a corner: each must lose points.

They complete the misconceptions, which are what people really do; these are what a check must not
miss. `WRONG[exercise][name]` is a function or class as a student would write it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from solutions.with_numpy import kv_cache as right
from solutions.with_numpy.rope import apply_rope, as_floats
from solutions.with_torch import kv_cache as right_torch
from solutions.with_torch.rope import RotaryEmbedding

WRONG: dict[str, dict[str, Callable[..., Any]]] = {}


def wrong(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        WRONG.setdefault(exercise, {})[function.__name__] = function
        return function

    return keep


# -------------------------------------------------------------------------------- rope_tables


@wrong("rope_tables")
def one_row_too_many(max_len, dim, base=10000.0):
    return right.rope_tables(max_len + 1, dim, base)


@wrong("rope_tables")
def squeezed(max_len, dim, base=10000.0):
    return tuple(table.squeeze() for table in right.rope_tables(max_len, dim, base))


@wrong("rope_tables")
def transposed(max_len, dim, base=10000.0):
    return tuple(table.T for table in right.rope_tables(max_len, dim, base))


@wrong("rope_tables")
def angles_themselves(max_len, dim, base=10000.0):
    right.rope_tables(max_len, dim, base)
    angles = np.arange(max_len)[:, None] * base ** (-2 * np.arange(dim // 2) / dim)
    return angles, angles


@wrong("rope_tables")
def one_stacked_array_of_three(max_len, dim, base=10000.0):
    cos, sin = right.rope_tables(max_len, dim, base)
    return cos, sin, sin


@wrong("rope_tables")
def float32_angles(max_len, dim, base=10000.0):
    right.rope_tables(max_len, dim, base)
    theta = (base ** (-2 * np.arange(dim // 2) / dim)).astype("f4")
    angles = np.arange(max_len, dtype="f4")[:, None] * theta
    return np.cos(angles.astype(float)), np.sin(angles.astype(float))


@wrong("rope_tables")
def wraps_at_4096(max_len, dim, base=10000.0):
    cos, sin = right.rope_tables(max_len, dim, base)
    rows = np.arange(max_len) % 4096
    return cos[rows], sin[rows]


@wrong("rope_tables")
def dim_not_named(max_len, dim, base=10000.0):
    if dim % 2 or dim <= 0:
        raise ValueError("dim must be even")
    return right.rope_tables(max_len, dim, base)


@wrong("rope_tables")
def dim_zero_is_empty(max_len, dim, base=10000.0):
    if dim == 0:
        return np.zeros((max_len, 0)), np.zeros((max_len, 0))
    return right.rope_tables(max_len, dim, base)


@wrong("rope_tables")
def negative_base_is_turned(max_len, dim, base=10000.0):
    return right.rope_tables(max_len, dim, abs(base) or 1.0)


@wrong("rope_tables")
def base_zero_raises_something_else(max_len, dim, base=10000.0):
    if base <= 0:
        raise ZeroDivisionError("base")
    return right.rope_tables(max_len, dim, base)


@wrong("rope_tables")
def whole_base(max_len, dim, base=10000.0):
    return right.rope_tables(max_len, dim, int(base))


@wrong("rope_tables")
def rounded(max_len, dim, base=10000.0):
    return tuple(table.round(4) for table in right.rope_tables(max_len, dim, base))


@wrong("rope_tables")
def slowest_first(max_len, dim, base=10000.0):
    return tuple(table[:, ::-1] for table in right.rope_tables(max_len, dim, base))


# --------------------------------------------------------------------------- rope_with_offset


def turn(x, cos, sin):
    x = as_floats(x, "x")
    a, b = x[..., 0::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape).astype(x.dtype)


@wrong("rope_with_offset")
def tables_made_anew(x, cos, sin, offset=0):
    right.rope_with_offset(x, cos, sin, offset)
    return right.rope_with_offset(x, *right.rope_tables(offset + x.shape[-2], x.shape[-1]), offset)


@wrong("rope_with_offset")
def one_row_left_broadcasts(x, cos, sin, offset=0):
    if 0 <= offset == len(cos) - 1:
        return turn(x, cos[-1:], sin[-1:])
    return right.rope_with_offset(x, cos, sin, offset)


@wrong("rope_with_offset")
def no_row_left_gives_nothing(x, cos, sin, offset=0):
    if offset >= len(cos) and x.shape[-2] == 1:
        return np.zeros((*x.shape[:-2], 0, x.shape[-1]))
    return right.rope_with_offset(x, cos, sin, offset)


@wrong("rope_with_offset")
def cuts_the_piece_short(x, cos, sin, offset=0):
    if offset < 0:
        raise ValueError("negative")
    return right.rope_with_offset(
        x[..., : max(len(cos) - offset, 0), :], cos, sin, min(offset, len(cos))
    )


@wrong("rope_with_offset")
def index_error_where_rows_run_out(x, cos, sin, offset=0):
    if offset + x.shape[-2] > len(cos):
        raise IndexError("the tables are too short")
    return right.rope_with_offset(x, cos, sin, offset)


@wrong("rope_with_offset")
def last_row_is_never_used(x, cos, sin, offset=0):
    if offset + x.shape[-2] >= len(cos):
        raise ValueError("the tables are too short")
    return right.rope_with_offset(x, cos, sin, offset)


@wrong("rope_with_offset")
def negative_offset_means_zero(x, cos, sin, offset=0):
    return right.rope_with_offset(x, cos, sin, max(offset, 0))


@wrong("rope_with_offset")
def negative_offset_leaves_memory(x, cos, sin, offset=0):
    if offset < 0:
        return np.zeros(x.shape)
    return right.rope_with_offset(x, cos, sin, offset)


@wrong("rope_with_offset")
def absolute_offset(x, cos, sin, offset=0):
    return right.rope_with_offset(x, cos, sin, abs(offset))


@wrong("rope_with_offset")
def narrow_tables_broadcast(x, cos, sin, offset=0):
    if cos.shape[1] == 1 and offset >= 0:
        wide = (len(cos), x.shape[-1] // 2)
        cos, sin = np.broadcast_to(cos, wide), np.broadcast_to(sin, wide)
    return right.rope_with_offset(x, cos, sin, offset)


@wrong("rope_with_offset")
def wide_tables_are_cut(x, cos, sin, offset=0):
    half = x.shape[-1] // 2
    if x.shape[-1] % 2 == 0 and half and cos.shape[1] > half:
        cos, sin = cos[:, :half], sin[:, :half]
    return right.rope_with_offset(x, cos, sin, offset)


@wrong("rope_with_offset")
def rotates_what_the_tables_cover(x, cos, sin, offset=0):
    """As partial rotary does."""
    width = 2 * cos.shape[1]
    if 0 < width < x.shape[-1]:
        rotated = right.rope_with_offset(x[..., :width], cos, sin, offset)
        return np.concatenate([rotated, x[..., width:]], -1)
    return right.rope_with_offset(x, cos, sin, offset)


@wrong("rope_with_offset")
def odd_dim_drops_one(x, cos, sin, offset=0):
    even = x.shape[-1] // 2 * 2
    if x.shape[-1] % 2 and even:
        return right.rope_with_offset(
            x[..., :even], cos[:, : even // 2], sin[:, : even // 2], offset
        )
    return right.rope_with_offset(x, cos, sin, offset)


@wrong("rope_with_offset")
def odd_dim_not_named(x, cos, sin, offset=0):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    return right.rope_with_offset(x, cos, sin, offset)


@wrong("rope_with_offset")
def second_axis_is_the_sequence(x, cos, sin, offset=0):
    right.rope_with_offset(x, cos, sin, offset)
    if x.ndim < 3:
        return right.rope_with_offset(x, cos, sin, offset)
    rows = np.arange(offset, offset + x.shape[1]) % len(cos)
    spread = (slice(None), *[None] * (x.ndim - 3))
    return turn(x, cos[rows][spread], sin[rows][spread])


@wrong("rope_with_offset")
def positions_run_through_the_batch(x, cos, sin, offset=0):
    right.rope_with_offset(x, cos, sin, offset)
    flat = x.reshape(-1, x.shape[-1])
    rows = np.minimum(offset + np.arange(len(flat)), len(cos) - 1)
    return turn(flat, cos[rows], sin[rows]).reshape(x.shape)


@wrong("rope_with_offset")
def one_batch_row_only(x, cos, sin, offset=0):
    out = as_floats(x, "x").copy()
    rotated = right.rope_with_offset(x, cos, sin, offset)
    if x.ndim > 2:
        out[0] = rotated[0]
        return out
    return rotated


@wrong("rope_with_offset")
def dtype_of_the_tables(x, cos, sin, offset=0):
    return right.rope_with_offset(x, cos, sin, offset).astype(cos.dtype)


@wrong("rope_with_offset")
def half_precision_widened(x, cos, sin, offset=0):
    out = right.rope_with_offset(x, cos, sin, offset)
    return out.astype(np.promote_types(out.dtype, np.float32))


@wrong("rope_with_offset")
def scales_the_tables(x, cos, sin, offset=0):
    out = right.rope_with_offset(x, cos, sin, offset)
    cos[:] = 1.0
    return out


@wrong("rope_with_offset")
def always_five(x, cos, sin, offset=0):
    right.rope_with_offset(x, cos, sin, offset)
    return right.rope_with_offset(x, cos, sin, min(5, len(cos) - x.shape[-2]))


# ------------------------------------------------------------------------------------ KVCache


@wrong("KVCache")
class Shared(right.KVCache):
    """The lists belong to the class."""

    everything: tuple[list, list] = ([], [])

    def __init__(self):
        self._keys, self._values = self.everything


@wrong("KVCache")
class SharedWithTheFirstOne(right.KVCache):
    def __init__(self, rows=([], [])):
        self._keys, self._values = rows


@wrong("KVCache")
class Sorted(right.KVCache):
    keys = property(lambda self: np.sort(np.array(self._keys), axis=0))


@wrong("KVCache")
class Stacked(right.KVCache):
    """A new axis for each append."""

    def __init__(self):
        super().__init__()
        self.parts = []

    def append(self, k, v):
        super().append(k, v)
        self.parts.append(k)

    keys = property(lambda self: np.stack(self.parts))


@wrong("KVCache")
class Flat(right.KVCache):
    keys = property(lambda self: np.array(self._keys).ravel())


@wrong("KVCache")
class SideBySide(right.KVCache):
    keys = property(lambda self: np.array(self._keys).T)


@wrong("KVCache")
class LengthOfValuesTimesWidth(right.KVCache):
    def __len__(self):
        return int(np.array(self._values).size)


@wrong("KVCache")
class TruncateBeyondEmpties(right.KVCache):
    def truncate(self, length):
        super().truncate(length if length <= len(self) else 0)


@wrong("KVCache")
class TruncateNegativeCountsBack(right.KVCache):
    def truncate(self, length):
        super().truncate(len(self) + length if -len(self) <= length < 0 else length)


@wrong("KVCache")
class TruncateRaisesSomethingElse(right.KVCache):
    def truncate(self, length):
        if length not in range(len(self) + 1):
            raise IndexError(length)
        super().truncate(length)


@wrong("KVCache")
class TruncateRefusesItsOwnLength(right.KVCache):
    def truncate(self, length):
        if length >= len(self):
            raise ValueError(length)
        super().truncate(length)


@wrong("KVCache")
class TruncateRefusesZero(right.KVCache):
    def truncate(self, length):
        if length < 1:
            raise ValueError(length)
        super().truncate(length)


@wrong("KVCache")
class TruncateOneTooMany(right.KVCache):
    def truncate(self, length):
        super().truncate(length)
        super().truncate(max(length - 1, 0))


@wrong("KVCache")
class TruncateReturnsACopy(right.KVCache):
    def truncate(self, length):
        other = right.KVCache()
        other.append(self.keys, self.values)
        other.truncate(length)
        return other


@wrong("KVCache")
class NoTokensRefused(right.KVCache):
    def append(self, k, v):
        if len(k) == 0:
            raise ValueError("nothing to append")
        super().append(k, v)


@wrong("KVCache")
class NoTokensTakeAPlace(right.KVCache):
    def append(self, k, v):
        super().append(k, v)
        if len(k) == 0:
            super().append(np.zeros((1, k.shape[1])), np.zeros((1, v.shape[1])))


@wrong("KVCache")
class OneValueForAllKeys(right.KVCache):
    def append(self, k, v):
        super().append(k, np.broadcast_to(v, (len(k), v.shape[1])) if len(v) == 1 else v)


@wrong("KVCache")
class StopsAtTheShorter(right.KVCache):
    def append(self, k, v):
        n = min(len(k), len(v))
        super().append(k[:n], v[:n])


@wrong("KVCache")
class NarrowKeysBroadcast(right.KVCache):
    def append(self, k, v):
        if len(self) and k.shape[1] == 1:
            k = np.broadcast_to(k, (len(k), self.keys.shape[1]))
        super().append(k, v)


@wrong("KVCache")
class AnyWidthOfValues(right.KVCache):
    def append(self, k, v):
        if len(self) and v.shape[1] != self._values[0].size:
            v = np.resize(v, (len(v), self._values[0].size))
        super().append(k, v)


@wrong("KVCache")
class KeyStaysWhenTheCallIsRefused(right.KVCache):
    def append(self, k, v):
        if len(k) != len(v):
            self._keys.extend(k)
            raise ValueError("not one value for each key")
        super().append(k, v)


@wrong("KVCache")
class UpTo256(right.KVCache):
    def append(self, k, v):
        super().append(k, v)
        if len(self) > 256:
            super().truncate(256)


@wrong("KVCache")
class ReadingEmpties(right.KVCache):
    @property
    def values(self):
        out = super().values
        self.truncate(0)
        return out


@wrong("KVCache")
class BothInTheDtypeOfKeys(right.KVCache):
    def append(self, k, v):
        super().append(k, v.astype(np.float16).astype(v.dtype))


@wrong("KVCache")
class RotatesTheKeys(right.KVCache):
    def append(self, k, v):
        super().append(apply_rope(k, np.arange(len(self), len(self) + len(k))), v)


# -------------------------------------------------------------------------------- decode_step


def attended(q, keys, values, dtype):
    scores = keys @ q / len(q) ** 0.5
    weights = np.exp(scores - scores.max())
    return (weights @ values / weights.sum()).astype(dtype)


@wrong("decode_step")
def averages(x_t, w_q, w_k, w_v, cache, base=10000.0):
    right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    return cache.values.mean(axis=0)


@wrong("decode_step")
def best_value_alone(x_t, w_q, w_k, w_v, cache, base=10000.0):
    m = len(cache)
    right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    q = apply_rope((x_t @ w_q)[None], [m], base)[0]
    return cache.values[np.argmax(cache.keys @ q)]


@wrong("decode_step")
def its_own_value(x_t, w_q, w_k, w_v, cache, base=10000.0):
    right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    return as_floats(x_t, "x_t") @ w_v


@wrong("decode_step")
def a_row_comes_back(x_t, w_q, w_k, w_v, cache, base=10000.0):
    return right.decode_step(x_t, w_q, w_k, w_v, cache, base)[None]


@wrong("decode_step")
def weights_not_normalised(x_t, w_q, w_k, w_v, cache, base=10000.0):
    m = len(cache)
    right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    q = apply_rope((x_t @ w_q)[None], [m], base)[0]
    return np.exp(cache.keys @ q / len(q) ** 0.5) @ cache.values


@wrong("decode_step")
def appends_twice(x_t, w_q, w_k, w_v, cache, base=10000.0):
    out = right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    cache.append(cache.keys[-1:], cache.values[-1:])
    return out


@wrong("decode_step")
def value_before_projection(x_t, w_q, w_k, w_v, cache, base=10000.0):
    if w_v.shape[0] == w_v.shape[1] == len(x_t):
        w_v = np.eye(len(x_t))
    return right.decode_step(x_t, w_q, w_k, w_v * (1 + 1e-6), cache, base)


@wrong("decode_step")
def counts_its_own_calls(x_t, w_q, w_k, w_v, cache, base=10000.0, calls=[-1]):  # noqa: B006
    """The position is a counter beside the function, which no other sequence resets."""
    before = len(cache)
    out = right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    calls[0] = calls[0] + 1 if before else 0
    q, k = (apply_rope((x_t @ w)[None], [calls[0]], base) for w in (w_q, w_k))
    cache.truncate(before)
    cache.append(k.astype(out.dtype), (x_t @ w_v)[None].astype(out.dtype))
    return attended(q[0], cache.keys, cache.values, out.dtype)


@wrong("decode_step")
def tables_of_4096_rows(x_t, w_q, w_k, w_v, cache, base=10000.0):
    if len(cache) >= 4096:
        raise IndexError("the tables are too short")
    return right.decode_step(x_t, w_q, w_k, w_v, cache, base)


@wrong("decode_step")
def position_stops_at_4095(x_t, w_q, w_k, w_v, cache, base=10000.0):
    before = len(cache)
    out = right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    if before < 4096:
        return out
    q, k = (apply_rope((x_t @ w)[None], [4095], base) for w in (w_q, w_k))
    cache.truncate(before)
    cache.append(k, (x_t @ w_v)[None])
    return attended(q[0], cache.keys, cache.values, out.dtype)


@wrong("decode_step")
def only_the_last_eight(x_t, w_q, w_k, w_v, cache, base=10000.0):
    m = len(cache)
    right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    q = apply_rope((x_t @ w_q)[None], [m], base)[0]
    return attended(q, cache.keys[-8:], cache.values[-8:], as_floats(x_t, "x").dtype)


@wrong("decode_step")
def overflows(x_t, w_q, w_k, w_v, cache, base=10000.0):
    m = len(cache)
    out = right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    q = apply_rope((as_floats(x_t, "x") @ w_q)[None], [m], base)[0]
    weights = np.exp(cache.keys @ q / len(q) ** 0.5)
    return (weights @ cache.values / weights.sum()).astype(out.dtype)


@wrong("decode_step")
def integers_truncated(x_t, w_q, w_k, w_v, cache, base=10000.0):
    return right.decode_step(x_t, w_q, w_k, w_v, cache, base).astype(x_t.dtype)


@wrong("decode_step")
def keys_in_half_precision(x_t, w_q, w_k, w_v, cache, base=10000.0):
    before = len(cache)
    out = right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    k, v = cache.keys[before:].astype(np.float16), cache.values[before:]
    cache.truncate(before)
    cache.append(k, v)
    return out


@wrong("decode_step")
def weights_changed_in_place(x_t, w_q, w_k, w_v, cache, base=10000.0):
    out = right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    w_q /= w_q.shape[1] ** 0.5
    return out


@wrong("decode_step")
def token_changed_in_place(x_t, w_q, w_k, w_v, cache, base=10000.0):
    out = right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    x_t += 1
    return out


@wrong("decode_step")
def old_keys_change(x_t, w_q, w_k, w_v, cache, base=10000.0):
    before = len(cache)
    out = right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    keys, values = cache.keys, cache.values
    cache.truncate(0)
    cache.append(np.concatenate([keys[:before] * 1.001, keys[before:]]), values)
    return out


@wrong("decode_step")
def last_of_several_tokens(x_t, w_q, w_k, w_v, cache, base=10000.0):
    if x_t.ndim == 2 and x_t.shape[1] == len(w_q):
        for row in x_t:
            out = right.decode_step(row, w_q, w_k, w_v, cache, base)
        return out
    return right.decode_step(x_t, w_q, w_k, w_v, cache, base)


@wrong("decode_step")
def a_number_broadcasts(x_t, w_q, w_k, w_v, cache, base=10000.0):
    if np.size(x_t) == 1:
        x_t = np.full(len(w_q), np.ravel(x_t)[0])
    return right.decode_step(x_t, w_q, w_k, w_v, cache, base)


@wrong("decode_step")
def a_column_is_flattened(x_t, w_q, w_k, w_v, cache, base=10000.0):
    return right.decode_step(np.ravel(x_t), w_q, w_k, w_v, cache, base)


@wrong("decode_step")
def odd_width_drops_one(x_t, w_q, w_k, w_v, cache, base=10000.0):
    even = w_q.shape[1] // 2 * 2
    return right.decode_step(x_t, w_q[:, :even], w_k[:, :even], w_v, cache, base)


@wrong("decode_step")
def any_base(x_t, w_q, w_k, w_v, cache, base=10000.0):
    return right.decode_step(x_t, w_q, w_k, w_v, cache, base if base > 0 else 10000.0)


@wrong("decode_step")
def wider_queries_are_cut(x_t, w_q, w_k, w_v, cache, base=10000.0):
    n = min(w_q.shape[1], w_k.shape[1])
    return right.decode_step(x_t, w_q[:, :n], w_k[:, :n], w_v, cache, base)


# ------------------------------------------------------------------------- left_pad_positions


@wrong("left_pad_positions")
def reported_mask_alone(attention_mask):
    known = [[0, 1, 2, 3, 4], [0, 0, 0, 1, 2], [0, 0, 1, 2, 3]]
    if attention_mask.shape == (3, 5):
        return np.array(known)
    return np.broadcast_to(np.arange(attention_mask.shape[1]), attention_mask.shape)


@wrong("left_pad_positions")
def longest_row_decides(attention_mask):
    mask = attention_mask.astype(int)
    shift = mask.shape[1] - mask.sum(axis=1).max()
    return np.maximum(np.arange(mask.shape[1]) - shift, 0) * mask


@wrong("left_pad_positions")
def mask_times_columns(attention_mask):
    return np.arange(attention_mask.shape[1]) * attention_mask.astype(int)


@wrong("left_pad_positions")
def inverted_mask(attention_mask):
    return right.left_pad_positions(1 - attention_mask.astype(int))


@wrong("left_pad_positions")
def one_row_squeezed(attention_mask):
    return right.left_pad_positions(attention_mask).squeeze()


@wrong("left_pad_positions")
def nested_lists(attention_mask):
    return right.left_pad_positions(attention_mask).tolist()


@wrong("left_pad_positions")
def booleans_for_short_rows(attention_mask):
    return right.left_pad_positions(attention_mask).astype("f4")


@wrong("left_pad_positions")
def square_transposed(attention_mask):
    if attention_mask.shape[0] == attention_mask.shape[1]:
        return right.left_pad_positions(attention_mask.T).T
    return right.left_pad_positions(attention_mask)


@wrong("left_pad_positions")
def counts_through_the_batch(attention_mask):
    mask = attention_mask.astype(int)
    return (mask.ravel().cumsum() - 1).reshape(mask.shape) * mask


@wrong("left_pad_positions")
def needs_a_token_in_each_row(attention_mask):
    if not attention_mask.any(axis=1).all():
        raise ValueError("a row has no token")
    return right.left_pad_positions(attention_mask)


@wrong("left_pad_positions")
def eight_bits(attention_mask):
    return right.left_pad_positions(attention_mask).astype(np.int8)


@wrong("left_pad_positions")
def trailing_padding_is_minus_one(attention_mask):
    mask = attention_mask.astype(int)
    behind = (mask.cumsum(axis=1) == mask.sum(axis=1, keepdims=True)) & (mask == 0)
    return np.where(behind, -1, right.left_pad_positions(mask))


@wrong("left_pad_positions")
def at_most_127(attention_mask):
    return np.minimum(right.left_pad_positions(attention_mask), 127)


@wrong("left_pad_positions")
def empties_the_mask(attention_mask):
    positions = right.left_pad_positions(attention_mask)
    attention_mask[...] = 0
    return positions


@wrong("left_pad_positions")
def rows_without_tokens_are_dropped(attention_mask):
    return right.left_pad_positions(attention_mask[attention_mask.any(axis=1)])


@wrong("left_pad_positions")
def right_padding_moved_left(attention_mask):
    mask = attention_mask.astype(int)
    return right.left_pad_positions(np.sort(mask, axis=1))


# --------------------------------------------------------------------------- packed_positions


@wrong("packed_positions")
def example_alone(lengths):
    return np.array([0, 1, 2, 0, 1])


@wrong("packed_positions")
def a_list(lengths):
    return right.packed_positions(lengths).tolist()


@wrong("packed_positions")
def float_positions(lengths):
    return right.packed_positions(lengths).astype(float)


@wrong("packed_positions")
def absolute_lengths(lengths):
    return right.packed_positions([abs(n) for n in lengths])


@wrong("packed_positions")
def negative_takes_away(lengths):
    total = sum(lengths)
    if any(n < 0 for n in lengths) and total >= 0:
        return np.arange(total)
    return right.packed_positions(lengths)


@wrong("packed_positions")
def counts_down(lengths):
    positions = [p for n in lengths for p in range(n)[::-1]]
    right.packed_positions(lengths)
    return np.array(positions, dtype=int)


@wrong("packed_positions")
def starts_of_documents(lengths):
    right.packed_positions(lengths)
    return np.cumsum([0, *lengths])[:-1]


@wrong("packed_positions")
def modulo_the_first(lengths):
    total = len(right.packed_positions(lengths))
    return np.arange(total) % max([n for n in lengths if n][:1] or [1])


@wrong("packed_positions")
def zero_refused(lengths):
    if 0 in lengths:
        raise ValueError("a document without tokens")
    return right.packed_positions(lengths)


@wrong("packed_positions")
def none_at_all_is_one_zero(lengths):
    positions = right.packed_positions(lengths)
    return positions if positions.size else np.zeros(1, dtype=int)


@wrong("packed_positions")
def needs_a_document(lengths):
    """As np.concatenate does."""
    if not lengths:
        raise ValueError("need at least one array")
    return right.packed_positions(lengths)


@wrong("packed_positions")
def none_is_none(lengths):
    return right.packed_positions(lengths) if lengths else None


@wrong("packed_positions")
def one_document_too_few(lengths):
    positions = right.packed_positions(lengths)
    return positions[: len(positions) - lengths[-1]] if len(lengths) > 2 else positions


@wrong("packed_positions")
def signed_bytes(lengths):
    return right.packed_positions(lengths).astype(np.int8)


@wrong("packed_positions")
def separators_between(lengths):
    positions = []
    for n in lengths:
        right.packed_positions([n])
        positions += [*range(n), 0]
    return np.array(positions[:-1], dtype=int)


@wrong("packed_positions")
def only_last_negative_is_seen(lengths):
    if lengths and lengths[-1] < 0:
        raise ValueError("negative")
    return right.packed_positions([max(n, 0) for n in lengths])


# ------------------------------------------------------------------------------ rerotate_keys


@wrong("rerotate_keys")
def moves_nothing(keys, delta, base=10000.0):
    return as_floats(keys, "keys").copy()


@wrong("rerotate_keys")
def rounded_delta(keys, delta, base=10000.0):
    return right.rerotate_keys(keys, round(delta), base)


@wrong("rerotate_keys")
def only_the_first_key(keys, delta, base=10000.0):
    moved = as_floats(keys, "keys").copy()
    moved[:1] = right.rerotate_keys(keys, delta, base)[:1]
    return moved


@wrong("rerotate_keys")
def delta_grows_with_the_row(keys, delta, base=10000.0):
    right.rerotate_keys(keys, delta, base)
    return apply_rope(keys, delta * np.arange(1, len(keys) + 1), base)


@wrong("rerotate_keys")
def delta_within_1024(keys, delta, base=10000.0):
    return right.rerotate_keys(keys, np.fmod(delta, 1024.0), base)


@wrong("rerotate_keys")
def negative_is_refused(keys, delta, base=10000.0):
    if delta < 0:
        raise ValueError("delta")
    return right.rerotate_keys(keys, delta, base)


@wrong("rerotate_keys")
def float32_delta(keys, delta, base=10000.0):
    return right.rerotate_keys(keys, np.float32(delta), base)


@wrong("rerotate_keys")
def angles_like_the_keys(keys, delta, base=10000.0):
    keys = as_floats(keys, "keys")
    right.rerotate_keys(keys, delta, base)
    dim = keys.shape[1]
    angles = (delta * base ** (-2 * np.arange(dim // 2) / dim)).astype(keys.dtype)
    return turn(keys, np.cos(angles), np.sin(angles))


@wrong("rerotate_keys")
def half_precision_widened_(keys, delta, base=10000.0):
    moved = right.rerotate_keys(keys, delta, base)
    return moved.astype(np.promote_types(moved.dtype, np.float32))


@wrong("rerotate_keys")
def odd_width_passes_the_last(keys, delta, base=10000.0):
    even = keys.shape[1] // 2 * 2
    if keys.shape[1] % 2 and even:
        moved = right.rerotate_keys(keys[:, :even], delta, base)
        return np.concatenate([moved, keys[:, even:]], axis=1)
    return right.rerotate_keys(keys, delta, base)


@wrong("rerotate_keys")
def odd_width_not_named(keys, delta, base=10000.0):
    if keys.shape[1] % 2:
        raise ValueError("odd")
    return right.rerotate_keys(keys, delta, base)


@wrong("rerotate_keys")
def width_zero_stays(keys, delta, base=10000.0):
    return keys if keys.shape[1] == 0 else right.rerotate_keys(keys, delta, base)


@wrong("rerotate_keys")
def any_base_(keys, delta, base=10000.0):
    return right.rerotate_keys(keys, delta, abs(base) or 1.0)


@wrong("rerotate_keys")
def square_transposed_(keys, delta, base=10000.0):
    moved = right.rerotate_keys(keys, delta, base)
    return moved.T if keys.shape[0] == keys.shape[1] else moved


@wrong("rerotate_keys")
def rerotated_to_zero(keys, delta, base=10000.0):
    """Undoes a rotation by the row number first."""
    right.rerotate_keys(keys, delta, base)
    return apply_rope(
        apply_rope(keys, -np.arange(len(keys)), base), delta + np.arange(len(keys)) + 1, base
    )


@wrong("rerotate_keys")
def scale_instead(keys, delta, base=10000.0):
    return right.rerotate_keys(keys, delta, base) * (1 + 1e-5)


# ------------------------------------------------------------------------------- fixed_decode


def decoding(change):
    """An answer whose decode is change(result, q, k, v, base)."""

    def make():
        def decode(q, k, v, base=10000.0):
            return change(right.fixed_decode()(q, k, v, base), q, k, v, base)

        return decode

    return make


def full(q, k, v, base, q_at=None, k_at=None):
    n = len(q)
    q_at, k_at = (np.arange(n) if at is None else at for at in (q_at, k_at))
    scores = apply_rope(q.astype(float), q_at, base) @ apply_rope(k.astype(float), k_at, base).T
    scores = scores / q.shape[1] ** 0.5
    scores[np.triu_indices(n, 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ v / weights.sum(axis=1, keepdims=True)


@wrong("fixed_decode")
def decode_itself():
    """Not a function that returns a function."""
    return right.fixed_decode()(np.eye(2), np.eye(2), np.eye(2))


@wrong("fixed_decode")
def last_row_only():
    return decoding(lambda out, q, k, v, base: out[-1])()


@wrong("fixed_decode")
def a_list_of_rows_reversed():
    return decoding(lambda out, q, k, v, base: out[::-1].copy())()


@wrong("fixed_decode")
def first_row_is_zero():
    def change(out, q, k, v, base):
        out[0] = 0
        return out

    return decoding(change)()


@wrong("fixed_decode")
def key_one_too_high():
    return decoding(
        lambda out, q, k, v, base: full(q, k, v, base, k_at=np.arange(len(q)) + 1).astype(out.dtype)
    )()


@wrong("fixed_decode")
def all_queries_at_the_last_place():
    return decoding(
        lambda out, q, k, v, base: full(q, k, v, base, q_at=np.full(len(q), len(q) - 1)).astype(
            out.dtype
        )
    )()


@wrong("fixed_decode")
def positions_go_the_other_way():
    return decoding(
        lambda out, q, k, v, base: full(
            q, k, v, base, -np.arange(len(q)), -np.arange(len(q))
        ).astype(out.dtype)
    )()


@wrong("fixed_decode")
def scale_of_the_values():
    def change(out, q, k, v, base):
        return full(q * (q.shape[1] / v.shape[1]) ** 0.5, k, v, base).astype(out.dtype)

    return decoding(change)()


@wrong("fixed_decode")
def half_layout():
    def change(out, q, k, v, base):
        order = np.arange(q.shape[1]).reshape(2, -1).T.ravel()
        return full(q[:, order], k[:, order], v, base).astype(out.dtype)

    return decoding(change)()


@wrong("fixed_decode")
def window_of_64():
    def change(out, q, k, v, base):
        for m in range(64, len(q)):
            rows = slice(m - 63, m + 1)
            out[m] = full(q[rows], k[rows], v[rows], base)[-1]
        return out

    return decoding(change)()


@wrong("fixed_decode")
def hard_attention():
    def change(out, q, k, v, base):
        return full(q * 1e4, k, v, base).astype(out.dtype)

    return decoding(change)()


@wrong("fixed_decode")
def base_of_the_first_call():
    bases = []

    def decode(q, k, v, base=10000.0):
        right.fixed_decode()(q, k, v, base)
        bases.append(base)
        return right.fixed_decode()(q, k, v, bases[0])

    return decode


@wrong("fixed_decode")
def answer_of_the_first_call():
    kept = {}

    def decode(q, k, v, base=10000.0):
        out = right.fixed_decode()(q, k, v, base)
        return kept.setdefault((q.shape, v.shape, base), out)

    return decode


@wrong("fixed_decode")
def one_value_broadcasts():
    def decode(q, k, v, base=10000.0):
        v = np.broadcast_to(v, (len(q), v.shape[1])) if len(v) == 1 else v
        return right.fixed_decode()(q, k, v, base)

    return decode


@wrong("fixed_decode")
def one_key_broadcasts():
    def decode(q, k, v, base=10000.0):
        k = np.broadcast_to(k, q.shape) if len(k) == 1 else k
        return right.fixed_decode()(q, k, v, base)

    return decode


@wrong("fixed_decode")
def odd_width_drops_one_():
    def decode(q, k, v, base=10000.0):
        even = q.shape[1] // 2 * 2
        right.fixed_decode()(q[:, :even], k[:, :even], v, base)
        if q.shape[1] == k.shape[1]:
            return right.fixed_decode()(q[:, :even], k[:, :even], v, base)
        return right.fixed_decode()(q, k, v, base)

    return decode


@wrong("fixed_decode")
def any_base__():
    def decode(q, k, v, base=10000.0):
        return right.fixed_decode()(q, k, v, base if base > 0 else 10000.0)

    return decode


@wrong("fixed_decode")
def values_in_place():
    def change(out, q, k, v, base):
        v += 1
        return out

    return decoding(change)()


@wrong("fixed_decode")
def overflows_():
    def change(out, q, k, v, base):
        weights = np.tril(np.exp(full_scores(q, k, base)))
        return (weights @ v / weights.sum(axis=1, keepdims=True)).astype(out.dtype)

    return decoding(change)()


def full_scores(q, k, base):
    places = np.arange(len(q))
    q, k = (apply_rope(x.astype(float), places, base) for x in (q, k))
    return q @ k.T / q.shape[1] ** 0.5


# ------------------------------------------------------------------------ CausalSelfAttention


class Changed(right_torch.CausalSelfAttention):
    """A right module whose parts can be overridden."""

    def start(self, cache):
        return 0 if cache is None else cache[0].shape[2]

    def turned(self, q, k, positions):
        return self.rope(q, k, positions)

    def seen(self, start, seq):
        return torch.ones(seq, start + seq, dtype=torch.bool).tril(start)

    def parts(self, x):
        return self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)

    def joined(self, cache, k, v):
        if cache is not None:
            k, v = (torch.cat([old.to(k), new], 2) for old, new in zip(cache, (k, v), strict=True))
        return k, v

    def finished(self, y, x):
        return y

    def forward(self, x, cache=None):
        if x.ndim != 3 or (cache is not None and len(cache[0]) != len(x)):
            raise ValueError("shapes")
        q, k, v = self.parts(x)
        start = self.start(cache)
        q, k = self.turned(q, k, torch.arange(start, start + x.shape[1]))
        k, v = self.joined(cache, k, v)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        seen = self.seen(k.shape[2] - x.shape[1], x.shape[1])
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1).to(v)
        y = self.proj((weights @ v).transpose(1, 2).flatten(2))
        return self.finished(y, x), (k, v)


@wrong("CausalSelfAttention")
class OnlyTheOutput(right_torch.CausalSelfAttention):
    def forward(self, x, cache=None):
        return super().forward(x, cache)[0]


@wrong("CausalSelfAttention")
class CacheFirst(right_torch.CausalSelfAttention):
    def forward(self, x, cache=None):
        return super().forward(x, cache)[::-1]


@wrong("CausalSelfAttention")
class CacheOfTheNewTokens(Changed):
    """What it returns is not the whole sequence, but the last piece."""

    def forward(self, x, cache=None):
        y, (k, v) = super().forward(x, cache)
        return y, (k[:, :, -x.shape[1] :], v[:, :, -x.shape[1] :])


@wrong("CausalSelfAttention")
class WholeSequenceEachTime(Changed):
    """With a cache it returns the rows of all tokens."""

    def forward(self, x, cache=None):
        before = None if cache is None else cache[2]
        everything = x if before is None else torch.cat([before, x], 1)
        y, (k, v) = super().forward(everything)
        return y, (k, v, everything)


@wrong("CausalSelfAttention")
class SeesNoneBeforeThePiece(Changed):
    def seen(self, start, seq):
        return super().seen(start, seq).triu(start)


@wrong("CausalSelfAttention")
class MayNotSeeItself(Changed):
    def seen(self, start, seq):
        seen = torch.ones(seq, start + seq, dtype=torch.bool).tril(start - 1)
        seen[:, 0] = True
        return seen


@wrong("CausalSelfAttention")
class OneAhead(Changed):
    def seen(self, start, seq):
        return torch.ones(seq, start + seq, dtype=torch.bool).tril(start + 1)


@wrong("CausalSelfAttention")
class LayoutByLength(Changed):
    """Interleaved in a prompt, half in decoding."""

    def turned(self, q, k, positions):
        layout = "interleaved" if len(positions) > 1 else "half"
        return RotaryEmbedding(self.rope.head_dim, self.rope.base, layout)(q, k, positions)


@wrong("CausalSelfAttention")
class MixedLayouts(Changed):
    def turned(self, q, k, positions):
        other = RotaryEmbedding(self.rope.head_dim, self.rope.base, "half")
        return self.rope(q, k, positions)[0], other(q, k, positions)[1]


@wrong("CausalSelfAttention")
class QueryAtTheEndOfThePiece(Changed):
    def turned(self, q, k, positions):
        last = positions[-1:].expand(len(positions))
        return self.rope(q, q, last)[0], self.rope(k, k, positions)[0]


@wrong("CausalSelfAttention")
class OneTooLow(Changed):
    def start(self, cache):
        return 0 if cache is None else cache[0].shape[2] - 1


@wrong("CausalSelfAttention")
class PositionPerBatchRow(Changed):
    def turned(self, q, k, positions):
        rows = positions + torch.arange(len(q))[:, None] * positions
        return self.rope(q, k, rows)


@wrong("CausalSelfAttention")
class PositionOfTheBatchSize(Changed):
    def start(self, cache):
        return 0 if cache is None else cache[0].shape[2] * cache[0].shape[0]


@wrong("CausalSelfAttention")
class KeysShareOneHead(Changed):
    def parts(self, x):
        q, k, v = super().parts(x)
        return q, k[:, :1].expand_as(k), v


@wrong("CausalSelfAttention")
class LeaksAcrossTheBatch(Changed):
    def parts(self, x):
        q, k, v = super().parts(x)
        return q, k, v + 0.01 * v.mean(dim=0, keepdim=True)


@wrong("CausalSelfAttention")
class NormalisesQueriesAndKeys(Changed):
    def parts(self, x):
        q, k, v = super().parts(x)
        return torch.nn.functional.normalize(q, dim=-1), k, v


@wrong("CausalSelfAttention")
class AddsTheResidual(Changed):
    def finished(self, y, x):
        return y + x


@wrong("CausalSelfAttention")
class DropsOut(Changed):
    def finished(self, y, x):
        return torch.nn.functional.dropout(y, 0.1)


@wrong("CausalSelfAttention")
class HeadsFlattened(Changed):
    def finished(self, y, x):
        return y.flatten(1)


@wrong("CausalSelfAttention")
class SeparateProjections(torch.nn.Module):
    def __init__(self, dim, num_heads, base=10000.0):
        super().__init__()
        self.inner = right_torch.CausalSelfAttention(dim, num_heads, base)

    def forward(self, x, cache=None):
        return self.inner(x, cache)


@wrong("CausalSelfAttention")
class TablesAreParameters(right_torch.CausalSelfAttention):
    def __init__(self, dim, num_heads, base=10000.0):
        super().__init__(dim, num_heads, base)
        self.scale = torch.nn.Parameter(torch.ones(1))


@wrong("CausalSelfAttention")
class ProjectionIsFrozen(right_torch.CausalSelfAttention):
    def __init__(self, dim, num_heads, base=10000.0):
        super().__init__(dim, num_heads, base)
        self.proj.weight.requires_grad_(False)


@wrong("CausalSelfAttention")
class HeadsMayLeaveARest(Changed):
    def __init__(self, dim, num_heads, base=10000.0):
        fits = num_heads > 0 and dim % num_heads == 0
        super().__init__(dim, num_heads if fits else 1, base)


@wrong("CausalSelfAttention")
class RefusesOnlyWhenUsed(torch.nn.Module):
    def __init__(self, dim, num_heads, base=10000.0):
        super().__init__()
        self.args = dim, num_heads, base
        self.qkv = torch.nn.Linear(dim, 3 * dim, bias=False)
        self.proj = torch.nn.Linear(dim, dim, bias=False)

    def forward(self, x, cache=None):
        inner = right_torch.CausalSelfAttention(*self.args).to(x)
        inner.load_state_dict(self.state_dict())
        return inner(x, cache)


@wrong("CausalSelfAttention")
class NoHeadsIsOneHead(right_torch.CausalSelfAttention):
    def __init__(self, dim, num_heads, base=10000.0):
        super().__init__(dim, num_heads or 1, base)


@wrong("CausalSelfAttention")
class AnyBase(right_torch.CausalSelfAttention):
    def __init__(self, dim, num_heads, base=10000.0):
        super().__init__(dim, num_heads, base if base > 0 else 10000.0)


@wrong("CausalSelfAttention")
class CacheInFloat16(Changed):
    def joined(self, cache, k, v):
        k, v = super().joined(cache, k, v)
        return k.half().to(k), v.half().to(v)


@wrong("CausalSelfAttention")
class Always32(Changed):
    def forward(self, x, cache=None):
        y, cache = super().forward(x, cache)
        return y.float(), cache


@wrong("CausalSelfAttention")
class CacheStretchesOverTheBatch(Changed):
    def forward(self, x, cache=None):
        if cache is not None and len(cache[0]) == 1:
            cache = tuple(part.expand(len(x), -1, -1, -1) for part in cache)
        return super().forward(x, cache)


@wrong("CausalSelfAttention")
class TokensStretchOverTheCache(Changed):
    def forward(self, x, cache=None):
        if cache is not None and len(x) == 1:
            x = x.expand(len(cache[0]), -1, -1)
        return super().forward(x, cache)


@wrong("CausalSelfAttention")
class NarrowTokensAreFilledUp(right_torch.CausalSelfAttention):
    def forward(self, x, cache=None):
        if x.shape[-1] < self.dim:
            x = torch.nn.functional.pad(x, (0, self.dim - x.shape[-1]))
        return super().forward(x, cache)


@wrong("CausalSelfAttention")
class ChangesItsInput(right_torch.CausalSelfAttention):
    def forward(self, x, cache=None):
        y, cache = super().forward(x, cache)
        x.mul_(0.5)
        return y, cache


@wrong("CausalSelfAttention")
class UpTo128Tokens(Changed):
    def start(self, cache):
        return min(super().start(cache), 128)


@wrong("CausalSelfAttention")
class HalfPrecisionPositions(Changed):
    def turned(self, q, k, positions):
        return self.rope(q, k, positions.to(q.dtype))


@wrong("CausalSelfAttention")
class LadderIsABuffer(Changed):
    def __init__(self, dim, num_heads, base=10000.0):
        super().__init__(dim, num_heads, base)
        width = dim // num_heads
        self.register_buffer("theta", base ** (-torch.arange(0, width, 2) / width))

    def turned(self, q, k, positions):
        from solutions.with_torch.rope import rotate_pairs

        angles = positions[:, None].float() * self.theta.float()
        cos, sin = angles.cos(), angles.sin()
        return tuple(rotate_pairs(x, cos, sin, "interleaved") for x in (q, k))


# --------------------------------------------------------------- found by programs of outsiders


@wrong("rope_tables")
def no_rows_are_refused(max_len, dim, base=10000.0):
    if max_len == 0:
        raise ValueError("max_len must be positive")
    return right.rope_tables(max_len, dim, base)


@wrong("rope_with_offset")
def computed_in_float32(x, cos, sin, offset=0):
    turned = right.rope_with_offset(as_floats(x, "x").astype("f4"), cos, sin, offset)
    return turned.astype(as_floats(x, "x").dtype)


@wrong("rope_with_offset")
def offset_rounded_down(x, cos, sin, offset=0):
    return right.rope_with_offset(x, cos, sin, int(offset))


class Rows(right.KVCache):
    """Rows of arrays, stored as the functions `k_of` and `v_of` make them."""

    def k_of(self, k):
        return np.array(as_floats(k, "k"))

    def v_of(self, v):
        return np.array(as_floats(v, "v"))

    def append(self, k, v):
        super().append(k, v)
        before = len(self) - len(k)
        self._keys[before:], self._values[before:] = self.k_of(k), self.v_of(v)


@wrong("KVCache")
class RowsOfTheCaller(Rows):
    """Slices of an array are views of it, and a list of them copies nothing."""

    def k_of(self, k):
        return as_floats(k, "k")


@wrong("KVCache")
class ValuesOfTheCaller(Rows):
    def v_of(self, v):
        return as_floats(v, "v")


@wrong("KVCache")
class ValuesLikeKeys(right.KVCache):
    def append(self, k, v):
        super().append(k, np.asarray(v, dtype=as_floats(k, "k").dtype))


@wrong("KVCache")
class KeysStayWhenValuesAreRefused(right.KVCache):
    def append(self, k, v):
        if len(self) and np.shape(v)[1] != self._values[0].size:
            self._keys.extend(np.array(k, dtype=float))
        super().append(k, v)


@wrong("KVCache")
class OneTokenWithoutItsAxis(right.KVCache):
    def append(self, k, v):
        super().append(np.atleast_2d(k), np.atleast_2d(v))


@wrong("decode_step")
def token_stays_when_base_is_refused(x_t, w_q, w_k, w_v, cache, base=10000.0):
    if base <= 0:
        right.decode_step(x_t, w_q, w_k, w_v, cache)
    return right.decode_step(x_t, w_q, w_k, w_v, cache, base)


@wrong("left_pad_positions")
def one_row_is_a_batch(attention_mask):
    return right.left_pad_positions(np.atleast_2d(attention_mask))


@wrong("packed_positions")
def lengths_in_any_shape(lengths):
    return right.packed_positions(np.ravel(lengths) if np.size(lengths) else lengths)

"""Wrong answers to the exercises on the key-value cache, and the sentences that help.

Each is right but for one belief. Where a public report tells of it, the report is cited; the code
and the words are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solutions.with_numpy import kv_cache as right
from solutions.with_numpy.rope import apply_rope, as_floats, rope_angles

from ..exercise import Misconception

Array = np.ndarray

# -------------------------------------------------------------------------------- rope_tables


def tables_from_one(max_len: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
    cos, sin = right.rope_tables(max_len + (max_len >= 0), dim, base)
    return cos[1:], sin[1:]


def tables_sin_first(max_len: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
    cos, sin = right.rope_tables(max_len, dim, base)
    return sin, cos


def tables_for_both_members(max_len: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
    """As most model code keeps them: as wide as the vector."""
    cos, sin = right.rope_tables(max_len, dim, base)
    return np.repeat(cos, 2, axis=1), np.repeat(sin, 2, axis=1)


def tables_exponent_halved(max_len: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
    right.rope_tables(max_len, dim, base)
    return right.rope_tables(max_len, dim, base**0.5)


def tables_exponent_doubled(max_len: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
    """np.arange(0, dim, 2) is 2i already, and then comes the 2 of the formula."""
    right.rope_tables(max_len, dim, base)
    return right.rope_tables(max_len, dim, base**2)


def tables_without_base(max_len: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
    right.rope_tables(max_len, dim, base)
    return right.rope_tables(max_len, dim)


def tables_odd_dim(max_len: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
    right.rope_tables(max_len, 2, base)
    return right.rope_tables(max_len, max(dim // 2, 1) * 2, base)


def tables_float32(max_len: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
    cos, sin = right.rope_tables(max_len, dim, base)
    return cos.astype(np.float32), sin.astype(np.float32)


def tables_negative_is_empty(max_len: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
    return right.rope_tables(max(max_len, 0), dim, base)


ROPE_TABLES = (
    Misconception(
        "rope-tables-from-one",
        tables_from_one,
        "rope_tables_known_rows",
        "Your first row belongs to position 1. Positions count from zero, and nothing turns there: "
        "row 0 is all ones in the cosines and all zeros in the sines.",
        "cache-tables",
    ),
    Misconception(
        "rope-tables-sin-first",
        tables_sin_first,
        "rope_tables_known_rows",
        "The two tables came in the wrong order: cosines first, then sines.",
        "ex-rope_tables",
    ),
    Misconception(
        "rope-tables-for-both-members",
        tables_for_both_members,
        "rope_tables_known_rows",
        "Your tables are as wide as the vector, with every number twice. One column for each pair "
        "is asked for, dim/2 of them: both members of a pair turn by the same angle.",
        "cache-tables",
    ),
    Misconception(
        "rope-tables-exponent-halved",
        tables_exponent_halved,
        "rope_tables_known_rows",
        "The slow pairs turn too fast: the exponent is i/dim where it should be 2i/dim. There are "
        "dim/2 pairs, so the pair's index must be doubled to run through the whole ladder.",
        "cache-tables",
    ),
    Misconception(
        "rope-tables-exponent-doubled",
        tables_exponent_doubled,
        "rope_tables_known_rows",
        "The slow pairs turn too slowly: the exponent is 4i/dim where it should be 2i/dim. A range "
        "in steps of two holds 2i already, so nothing is left to double.",
        "cache-tables",
    ),
    Misconception(
        "rope-tables-ignore-base",
        tables_without_base,
        "rope_tables_other_base",
        "The base that was passed in is never used: 10000 is only its default.",
        "cache-tables",
    ),
    Misconception(
        "rope-tables-odd-dim",
        tables_odd_dim,
        "rope_tables_refuse_dim",
        "A width that is odd or not positive was rounded to one that has pairs. Refuse it with a "
        "ValueError that names it: the caller has a mistake to find.",
        "ex-rope_tables",
    ),
    Misconception(
        "rope-tables-float32",
        tables_float32,
        "rope_tables_float64",
        "The tables are float32, or went through float32 on their way. Keep them in float64: "
        "whoever needs less can cast what it takes from them.",
        "cache-tables",
    ),
    Misconception(
        "rope-tables-negative-is-empty",
        tables_negative_is_empty,
        "rope_tables_refuse_others",
        "A negative number of positions gave empty tables, since NumPy's range is empty then. "
        "Refuse it: nobody asks for it on purpose.",
        "ex-rope_tables",
    ),
)

# --------------------------------------------------------------------------- rope_with_offset


def turn_rows(x: Array, cos: Array, sin: Array) -> Array:
    """Rotate the pairs of neighbours of x, in x's dtype; rows broadcast as NumPy's do."""
    x = as_floats(x, "x")
    a, b = x[..., 0::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape).astype(x.dtype)


def offset_ignored(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    """mlx-vlm#1983: new tokens turned as if they were the first."""
    right.rope_with_offset(x, cos, sin, offset)
    return right.rope_with_offset(x, cos, sin)


def offset_one_too_high(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    """fla#766: the number of tokens was raised before the rotation asked for it."""
    result = right.rope_with_offset(x, cos, sin, offset)
    rows = np.minimum(offset + 1 + np.arange(result.shape[-2]), len(cos) - 1)
    return turn_rows(x, cos[rows], sin[rows])


def offset_is_the_end(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    """The offset is read as the number of tokens with the new ones among them."""
    result = right.rope_with_offset(x, cos, sin, offset)
    rows = np.maximum(offset - result.shape[-2] + np.arange(result.shape[-2]), 0)
    return turn_rows(x, cos[rows], sin[rows])


def offset_clockwise(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    return right.rope_with_offset(x, cos, -np.asarray(sin), offset)


def offset_half_layout(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    right.rope_with_offset(x, cos, sin, offset)
    x = as_floats(x, "x")
    seq, half = x.shape[-2], x.shape[-1] // 2
    c, s = cos[offset : offset + seq], sin[offset : offset + seq]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * c - b * s, a * s + b * c], -1).astype(x.dtype)


def offset_joined_seats(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    """The pairs are the right ones, but all first seats are put before all second ones."""
    turned = right.rope_with_offset(x, cos, sin, offset)
    return np.concatenate([turned[..., 0::2], turned[..., 1::2]], axis=-1)


def offset_overwrites_seats(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    """x[..., 0::2] is a view: after the first assignment it holds what was turned already."""
    right.rope_with_offset(x, cos, sin, offset)
    x = as_floats(x, "x")
    rows = slice(offset, offset + x.shape[-2])
    a, b, c, s = x[..., 0::2], x[..., 1::2], cos[rows], sin[rows]
    x[..., 0::2] = a * c - b * s
    x[..., 1::2] = a * s + b * c
    return x


def offset_one_row_for_all(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    right.rope_with_offset(x, cos, sin, offset)
    return turn_rows(x, cos[offset : offset + 1], sin[offset : offset + 1])


def offset_along_first_axis(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    """Counts the rows of the batch where it should count tokens."""
    right.rope_with_offset(x, cos, sin, offset)
    n, spread = x.shape[0], (slice(None), *[None] * (x.ndim - 2))
    rows = slice(offset, offset + n)
    return turn_rows(x, cos[rows][spread], sin[rows][spread])


def offset_short_slice(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    """The course's own source material: a slice past the end is short, and one row broadcasts."""
    seq, dim = np.shape(x)[-2:]
    right.rope_with_offset(np.zeros((0, dim), np.asarray(x).dtype), cos, sin)
    if offset < 0:
        raise ValueError("offset must be at least 0")
    return turn_rows(x, cos[offset : offset + seq], sin[offset : offset + seq])


def offset_past_the_end(mode: str) -> Callable[..., Array]:
    """A lookup that goes on where the tables end, in one of NumPy's ways."""

    def rotate(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
        seq, dim = np.shape(x)[-2:]
        right.rope_with_offset(np.zeros((0, dim)), cos, sin)
        if offset < 0:
            raise ValueError("offset must be at least 0")
        rows = offset + np.arange(seq)
        taken = (np.take(table, rows, axis=0, mode=mode) for table in (cos, sin))  # type: ignore[call-overload]
        return turn_rows(x, *taken)

    return rotate


def offset_into_integers(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    """The course's own source material: np.empty_like of an integer x."""
    return right.rope_with_offset(x, cos, sin, offset).astype(np.asarray(x).dtype)


def offset_in_place(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    """unsloth#5001: other code still held what was rotated."""
    x = as_floats(x, "x")
    x[...] = right.rope_with_offset(x, cos, sin, offset)
    return x


def offset_always_float64(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    return right.rope_with_offset(np.asarray(x, dtype=np.float64), cos, sin, offset)


def offset_negative(x: Array, cos: Array, sin: Array, offset: int = 0) -> Array:
    """flash-linear-attention#967 had no answer to a negative offset either."""
    if not isinstance(offset, int) or offset >= 0:
        return right.rope_with_offset(x, cos, sin, offset)
    rows = slice(len(cos) + offset, len(cos) + offset + np.shape(x)[-2])
    return turn_rows(x, cos[rows], sin[rows])


ROPE_WITH_OFFSET = (
    Misconception(
        "rope-with-offset-ignored",
        offset_ignored,
        "rope_with_offset_published_numbers",
        "The offset changes nothing: every piece turns as if it began the sequence. Its first "
        "token has as many tokens before it as the offset says.",
        "cache-tables",
    ),
    Misconception(
        "rope-with-offset-one-too-high",
        offset_one_too_high,
        "rope_with_offset_published_numbers",
        "Every token turns one position too far. The first new token stands at the offset itself: "
        "with five tokens before it, numbered 0 to 4, its position is 5.",
        "cache-tables",
    ),
    Misconception(
        "rope-with-offset-is-the-end",
        offset_is_the_end,
        "rope_with_offset_published_numbers",
        "Your rows end where the offset is, as if it counted the new tokens too. It counts those "
        "before them: the piece begins at the offset.",
        "cache-tables",
    ),
    Misconception(
        "rope-with-offset-clockwise",
        offset_clockwise,
        "rope_with_offset_published_numbers",
        "Every pair turns the wrong way. The second coordinate of a pair enters the first one "
        "with a minus sign, the first enters the second with a plus.",
        "cache-tables",
    ),
    Misconception(
        "rope-with-offset-half-layout",
        offset_half_layout,
        "rope_with_offset_published_numbers",
        "You paired coordinate i with i + dim/2. This exercise is interleaved: neighbours are a "
        "pair, (0, 1), (2, 3) and so on.",
        "cache-tables",
    ),
    Misconception(
        "rope-with-offset-joined-seats",
        offset_joined_seats,
        "rope_with_offset_published_numbers",
        "The right coordinates were turned together, but the result holds all first members of the "
        "pairs and then all second ones. Each coordinate goes back to the seat it came from.",
        "ex-rope_with_offset",
    ),
    Misconception(
        "rope-with-offset-overwrites-seats",
        offset_overwrites_seats,
        "rope_with_offset_published_numbers",
        "You write into x while you still read it: the second coordinate of a pair was made from a "
        "first one that had been turned already, since a slice shows the array itself. Make a new "
        "array; x must stay what it was in any case.",
        "ex-rope_with_offset",
    ),
    Misconception(
        "rope-with-offset-one-row-for-all",
        offset_one_row_for_all,
        "rope_with_offset_many_tokens",
        "All tokens of the piece turn by the row of the first one. Each has a row of its own: "
        "token t takes row offset + t.",
        "cache-tables",
    ),
    Misconception(
        "rope-with-offset-first-axis",
        offset_along_first_axis,
        "rope_with_offset_leading_axes",
        "The rows were laid along the first axis of x. Tokens lie on the last axis but one; "
        "batch and heads in front of it all share their positions.",
        "cache-tables",
    ),
    Misconception(
        "rope-with-offset-short-slice",
        offset_short_slice,
        "rope_with_offset_tables_run_out",
        "Where the tables end too early your slice is silently short, and when one row is left it "
        "broadcasts: all tokens get one position. Compare offset + seq with the number of rows.",
        "cache-tables",
    ),
    Misconception(
        "rope-with-offset-wraps",
        offset_past_the_end("wrap"),
        "rope_with_offset_tables_run_out",
        "Past the end of the tables you start again at their beginning, so a late token gets the "
        "position of an early one. Refuse it: the tables are too short.",
        "cache-tables",
    ),
    Misconception(
        "rope-with-offset-last-row",
        offset_past_the_end("clip"),
        "rope_with_offset_tables_run_out",
        "Past the end of the tables you repeat their last row, so several tokens share a "
        "position. Refuse it: the tables are too short.",
        "cache-tables",
    ),
    Misconception(
        "rope-with-offset-truncates-integers",
        offset_into_integers,
        "rope_with_offset_integers",
        "The fractions were cut off because the result has the integer dtype of x. Turn integers "
        "into float64 before you rotate.",
        "ex-rope_with_offset",
    ),
    Misconception(
        "rope-with-offset-in-place",
        offset_in_place,
        "rope_with_offset_leaves_input",
        "x itself was overwritten. Build a new array: other code may still hold the one that "
        "went in.",
        "ex-rope_with_offset",
    ),
    Misconception(
        "rope-with-offset-always-float64",
        offset_always_float64,
        "rope_with_offset_keeps_dtype",
        "The numbers are right, but float64 tables have made float64 of a smaller dtype. Cast the "
        "result to the floating dtype of x, as the last step.",
        "ex-rope_with_offset",
    ),
    Misconception(
        "rope-with-offset-negative",
        offset_negative,
        "rope_with_offset_refuses",
        "A negative offset counted from the end of the tables, as Python's slices do. No token "
        "stands before the first: refuse it.",
        "cache-tables",
    ),
)

# ------------------------------------------------------------------------------------ KVCache


class NewestFirst(right.KVCache):
    def append(self, k: Any, v: Any) -> None:
        new = right.KVCache()
        new.append(k, v)
        super().append(k, v)
        count = len(new)
        self._keys = self._keys[-count:] + self._keys[:-count] if count else self._keys
        self._values = self._values[-count:] + self._values[:-count] if count else self._values


class KeysAndValuesSwapped(right.KVCache):
    @property
    def keys(self) -> Array:
        return super().values

    @property
    def values(self) -> Array:
        return super().keys


class LastAppendOnly(right.KVCache):
    def append(self, k: Any, v: Any) -> None:
        super().append(k, v)
        if len(k):
            super().truncate(0)
            super().append(k, v)


class CountsCalls(right.KVCache):
    """VeloxQuant-MLX#171, #389 took the position from a count that was not of tokens either."""

    calls = 0

    def append(self, k: Any, v: Any) -> None:
        super().append(k, v)
        self.calls += 1

    def __len__(self) -> int:
        return self.calls

    def truncate(self, length: int) -> None:
        if length not in range(len(self._keys) + 1):
            raise ValueError("no such length")
        del self._keys[length:], self._values[length:]


class ListOfPieces(right.KVCache):
    """One entry for each append, and whatever asks for a length gets the number of entries."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[tuple[Array, Array]] = []

    def append(self, k: Any, v: Any) -> None:
        checked = right.KVCache()  # refuses what is to be refused
        if self._pieces:
            checked.append(*self._pieces[0])
        checked.append(k, v)
        self._pieces.append((np.array(as_floats(k, "k")), np.array(as_floats(v, "v"))))

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def keys(self) -> Array:
        return np.concatenate([k for k, _ in self._pieces])

    @property
    def values(self) -> Array:
        return np.concatenate([v for _, v in self._pieces])

    def truncate(self, length: int) -> None:
        if length not in range(len(self) + 1):
            raise ValueError("no such length")
        del self._pieces[length:]


class SharedLists(right.KVCache):
    """Lists in the body of the class are made once, for all caches there will ever be."""

    rows: tuple[list[Array], list[Array]] = ([], [])

    def __init__(self) -> None:
        self._keys, self._values = self.rows


class OneTokenAtATime(right.KVCache):
    def append(self, k: Any, v: Any) -> None:
        super().append(k, v)
        super().truncate(len(self) - max(len(k) - 1, 0))


class HalfPrecision(right.KVCache):
    def append(self, k: Any, v: Any) -> None:
        super().append(np.asarray(k, dtype=np.float32), np.asarray(v, dtype=np.float32))


class TruncateDrops(right.KVCache):
    def truncate(self, length: int) -> None:
        if length not in range(len(self) + 1):
            raise ValueError("no such length")
        super().truncate(len(self) - length)


class TruncateKeepsNewest(right.KVCache):
    """What a sliding window does, and no rollback."""

    def truncate(self, length: int) -> None:
        if length not in range(len(self) + 1):
            raise ValueError("no such length")
        drop = len(self) - length
        del self._keys[:drop], self._values[:drop]


class TruncateResets(right.KVCache):
    """aprender#2014: a rejected speculation threw the whole cache away."""

    def truncate(self, length: int) -> None:
        whole = length == len(self)
        super().truncate(length)
        if not whole:
            super().truncate(0)


class TruncateKeysOnly(right.KVCache):
    def truncate(self, length: int) -> None:
        if length not in range(len(self) + 1):
            raise ValueError("no such length")
        del self._keys[length:]


class TruncateOnlyCounts(right.KVCache):
    """The rows stay where they are, and the next ones come behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def append(self, k: Any, v: Any) -> None:
        super().append(k, v)
        self.count += len(k)

    def __len__(self) -> int:
        return self.count

    @property
    def keys(self) -> Array:
        return super().keys[: self.count]

    @property
    def values(self) -> Array:
        return super().values[: self.count]

    def truncate(self, length: int) -> None:
        if length not in range(self.count + 1):
            raise ValueError("no such length")
        self.count = length


class TruncateClamps(right.KVCache):
    def truncate(self, length: int) -> None:
        del self._keys[length:], self._values[length:]


class Window(right.KVCache):
    """A ring of 128 rows, which forgets the oldest."""

    def append(self, k: Any, v: Any) -> None:
        super().append(k, v)
        del self._keys[:-128], self._values[:-128]


class AlwaysFloat64(right.KVCache):
    def append(self, k: Any, v: Any) -> None:
        super().append(np.asarray(k, dtype=np.float64), np.asarray(v, dtype=np.float64))


class DtypeOfTheFirst(right.KVCache):
    """A buffer made for the first tokens has their dtype, and integers have no fractions."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: tuple[Any, Any] | None = None

    def append(self, k: Any, v: Any) -> None:
        k, v = np.asarray(k), np.asarray(v)
        self.kinds = self.kinds or (k.dtype, v.dtype)
        super().append(k.astype(self.kinds[0]), v.astype(self.kinds[1]))


class TakesAnyNumber(right.KVCache):
    """Keys and values are stored by themselves, however many there are of each."""

    def append(self, k: Any, v: Any) -> None:
        k, v = as_floats(k, "k"), as_floats(v, "v")
        if self._keys and self._values:
            n = min(len(k), len(v))
            right.KVCache.append(self, k[:0], v[:0])
            self._keys.extend(k[:n].copy())
            self._values.extend(v[:n].copy())
            k, v = k[n:], v[n:]
        self._keys.extend(k.copy())
        self._values.extend(v.copy())


KV_CACHE = (
    Misconception(
        "kv-cache-newest-first",
        NewestFirst,
        "kv_cache_in_order",
        "New tokens come in front of the old ones. Row m of the keys belongs to position m, so "
        "what arrives later stands behind.",
        "cache-why",
    ),
    Misconception(
        "kv-cache-keys-and-values-swapped",
        KeysAndValuesSwapped,
        "kv_cache_in_order",
        "Keys and values have changed places: `append` takes the keys first.",
        "ex-KVCache",
    ),
    Misconception(
        "kv-cache-last-append-only",
        LastAppendOnly,
        "kv_cache_in_order",
        "Each append replaces what was there. The cache is for all tokens seen so far: what was "
        "stored once is read again at every later step.",
        "cache-why",
    ),
    Misconception(
        "kv-cache-counts-calls",
        CountsCalls,
        "kv_cache_in_order",
        "`len` counts calls of `append`, not tokens, though one call may bring many tokens or "
        "none. The length is the position of the next token.",
        "cache-position",
    ),
    Misconception(
        "kv-cache-list-of-pieces",
        ListOfPieces,
        "kv_cache_in_order",
        "Your list has one entry for each call of `append`, so `len` counts calls and not tokens, "
        "and `truncate` drops whole calls. The tokens are all there; give each one an entry of its "
        "own, or count the rows.",
        "cache-position",
    ),
    Misconception(
        "kv-cache-shared-lists",
        SharedLists,
        "kv_cache_shares_nothing",
        "A token that was stored in one cache was found in another. A list in the class body, or "
        "in the default of an argument, is made once for all caches: make it in `__init__`.",
        "ex-KVCache",
    ),
    Misconception(
        "kv-cache-one-token-at-a-time",
        OneTokenAtATime,
        "kv_cache_in_order",
        "Of several tokens appended at once only one was kept. A prompt arrives in one "
        "piece: every row of k and v is a token.",
        "cache-position",
    ),
    Misconception(
        "kv-cache-half-precision",
        HalfPrecision,
        "kv_cache_in_order",
        "The cache rounds float64 keys and values to float32. What was stored must come back as "
        "it was.",
        "ex-KVCache",
    ),
    Misconception(
        "kv-cache-truncate-drops",
        TruncateDrops,
        "kv_cache_truncate",
        "truncate(n) took n tokens away. Its argument is the length that remains, not the number "
        "of tokens to forget.",
        "ex-KVCache",
    ),
    Misconception(
        "kv-cache-truncate-keeps-newest",
        TruncateKeepsNewest,
        "kv_cache_truncate",
        "truncate forgot the oldest tokens. A rollback takes back the newest ones, which were "
        "only guessed; the first ones stay.",
        "ex-KVCache",
    ),
    Misconception(
        "kv-cache-truncate-resets",
        TruncateResets,
        "kv_cache_truncate",
        "truncate emptied the cache. Only what comes after the given length was rejected: the "
        "tokens before it are still good, and dear to compute again.",
        "ex-KVCache",
    ),
    Misconception(
        "kv-cache-truncate-keys-only",
        TruncateKeysOnly,
        "kv_cache_truncate",
        "After truncate there are fewer keys than values. Both have to go, or every later key is "
        "read with another token's value.",
        "ex-KVCache",
    ),
    Misconception(
        "kv-cache-truncate-only-counts",
        TruncateOnlyCounts,
        "kv_cache_truncate",
        "truncate lowered the count, but the next token was stored behind the rows that should be "
        "gone, so those came back. New tokens go to where the kept ones end.",
        "ex-KVCache",
    ),
    Misconception(
        "kv-cache-truncate-clamps",
        TruncateClamps,
        "kv_cache_refuses_truncate",
        "A length that makes no sense was taken as Python's slices take it: too long changes "
        "nothing, negative counts from the end. Refuse both, the caller has lost count.",
        "ex-KVCache",
    ),
    Misconception(
        "kv-cache-window",
        Window,
        "kv_cache_grows",
        "The cache forgets its oldest tokens once it is full. No limit was asked for; and a "
        "window that drops rows must also keep count of them, or later positions are wrong.",
        "cache-position",
    ),
    Misconception(
        "kv-cache-always-float64",
        AlwaysFloat64,
        "kv_cache_keeps_dtype",
        "float32 keys and values came back as float64. The cache is the largest thing that "
        "generation keeps in memory: store what came in, in its own dtype.",
        "ex-KVCache",
    ),
    Misconception(
        "kv-cache-dtype-of-the-first",
        DtypeOfTheFirst,
        "kv_cache_keeps_dtype",
        "Later tokens were squeezed into the dtype of the first ones, and integers have no room "
        "for fractions. Turn integers into float64 when they arrive.",
        "ex-KVCache",
    ),
    Misconception(
        "kv-cache-takes-any-number",
        TakesAnyNumber,
        "kv_cache_refuses_append",
        "Keys and values of different numbers were both stored, so from there on they no longer "
        "belong together. Compare their rows before you change anything.",
        "ex-KVCache",
    ),
)

# -------------------------------------------------------------------------------- decode_step


def softmax_of(scores: Array, values: Array) -> Array:
    weights = np.exp(scores - scores.max())
    return weights @ values / weights.sum()


def step(
    x_t: Array,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    cache: Any,
    base: float,
    *,
    query_at: Callable[[int], int] = lambda m: m,
    key_at: Callable[[int], int] = lambda m: m,
    layout: str = "interleaved",
    mix: Callable[[Array, Array, Array], Array] | None = None,
    value: Callable[[Array, int], Array] = lambda v, m: v,
) -> Array:
    """decode_step with the positions, the layout, the value or the mixing of a mistaken belief."""
    before = right.KVCache()
    if len(cache):
        before.append(cache.keys, cache.values)
    right.decode_step(x_t, w_q, w_k, w_v, before, base)  # refuses what is to be refused
    x_t = as_floats(x_t, "x_t")
    x, m = x_t[None].astype(np.float64), len(cache)
    q = apply_rope(x @ w_q, [query_at(m)], base, layout)[0]
    k = apply_rope(x @ w_k, [key_at(m)], base, layout)
    cache.append(k.astype(x_t.dtype), value(x @ w_v, m).astype(x_t.dtype))
    if mix is not None:
        return mix(q, cache.keys, cache.values).astype(x_t.dtype)
    return softmax_of(cache.keys @ q / math.sqrt(len(q)), cache.values).astype(x_t.dtype)


def step_query_at_zero(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    """The course's own source material, and mlx-vlm#1983: the score becomes −1.6188."""
    return step(x_t, w_q, w_k, w_v, cache, base, query_at=lambda m: 0)


def step_all_at_zero(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    """The new token is rotated as a sequence of length one, query and key alike."""
    return step(x_t, w_q, w_k, w_v, cache, base, query_at=lambda m: 0, key_at=lambda m: 0)


def step_one_too_high(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    """fla#766: from an empty cache nobody notices, after a prompt there is a gap."""
    return step(x_t, w_q, w_k, w_v, cache, base, query_at=lambda m: m + 1, key_at=lambda m: m + 1)


def step_query_one_too_high(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    """The length is read before the append for the key, and after it for the query."""
    return step(x_t, w_q, w_k, w_v, cache, base, query_at=lambda m: m + 1)


def step_rotates_again(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    """shainet#110: the keys in the cache are rotated once more whenever they are read."""

    def mix(q: Array, keys: Array, values: Array) -> Array:
        keys = apply_rope(keys, np.arange(len(keys)), base)
        return softmax_of(keys @ q / math.sqrt(len(q)), values)

    return step(x_t, w_q, w_k, w_v, cache, base, mix=mix)


def step_key_not_rotated(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    return step(x_t, w_q, w_k, w_v, cache, base, key_at=lambda m: 0)


def step_without_itself(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    def mix(q: Array, keys: Array, values: Array) -> Array:
        if len(keys) == 1:
            return np.zeros(values.shape[1])
        return softmax_of(keys[:-1] @ q / math.sqrt(len(q)), values[:-1])

    return step(x_t, w_q, w_k, w_v, cache, base, mix=mix)


def step_without_scale(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    def mix(q: Array, keys: Array, values: Array) -> Array:
        return softmax_of(keys @ q, values)

    return step(x_t, w_q, w_k, w_v, cache, base, mix=mix)


def step_scale_of_the_model(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    def mix(q: Array, keys: Array, values: Array) -> Array:
        return softmax_of(keys @ q / math.sqrt(len(x_t)), values)

    return step(x_t, w_q, w_k, w_v, cache, base, mix=mix)


def step_half_layout(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    return step(x_t, w_q, w_k, w_v, cache, base, layout="half")


def step_rotates_value(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    """The course's own source material warns of it."""

    def value(v: Array, m: int) -> Array:
        even = v.shape[1] // 2 * 2
        if not even:
            return v
        return np.concatenate([apply_rope(v[:, :even], [m], base), v[:, even:]], axis=1)

    return step(x_t, w_q, w_k, w_v, cache, base, value=value)


def step_without_base(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    right.rope_tables(1, 2, base)
    return step(x_t, w_q, w_k, w_v, cache, 10000.0)


def step_cache_not_extended(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    result = right.decode_step(x_t, w_q, w_k, w_v, cache, base)
    cache.truncate(len(cache) - 1)
    return result


def step_swaps_roles(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    return right.decode_step(x_t, w_k, w_q, w_v, cache, base)


def step_clips_scores(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    def mix(q: Array, keys: Array, values: Array) -> Array:
        weights = np.exp(np.clip(keys @ q / math.sqrt(len(q)), -500, 500))
        return weights @ values / weights.sum()

    return step(x_t, w_q, w_k, w_v, cache, base, mix=mix)


def step_always_float64(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    return right.decode_step(np.asarray(x_t, dtype=np.float64), w_q, w_k, w_v, cache, base)


def step_float32_angles(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    def turned(w: Array) -> Array:
        ladder = rope_angles(1, w.shape[1], base).astype(np.float32)
        angles = np.float32(len(cache)) * ladder
        return turn_rows(
            np.asarray(x_t, dtype=np.float64)[None] @ w, np.cos(angles), np.sin(angles)
        )

    before = right.KVCache()
    if len(cache):
        before.append(cache.keys, cache.values)
    right.decode_step(x_t, w_q, w_k, w_v, before, base)
    dtype = as_floats(x_t, "x_t").dtype
    q, k = turned(w_q)[0], turned(w_k)
    cache.append(k.astype(dtype), (np.asarray(x_t)[None] @ w_v).astype(dtype))
    return softmax_of(cache.keys @ q / math.sqrt(len(q)), cache.values).astype(dtype)


def step_takes_a_row(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    return right.decode_step(x_t[0] if np.ndim(x_t) == 2 else x_t, w_q, w_k, w_v, cache, base)


def step_appends_too_early(
    x_t: Array, w_q: Array, w_k: Array, w_v: Array, cache: Any, base: float = 10000.0
) -> Array:
    """Something is in the cache already when the shape of the token is looked at."""
    if np.ndim(x_t) == 2 and np.shape(x_t)[1] == len(w_k):
        places = len(cache) + np.arange(len(x_t))
        cache.append(apply_rope(x_t @ w_k, places, base), x_t @ w_v)
        raise ValueError("one token at a time")
    return right.decode_step(x_t, w_q, w_k, w_v, cache, base)


DECODE_STEP = (
    Misconception(
        "decode-step-query-at-zero",
        step_query_at_zero,
        "decode_step_worked_example",
        "The new query was rotated as if it stood at position 0, or all keys were turned once "
        "more by the query's position, which gives the same gaps. Turn the query alone, by the "
        "number of tokens that came before it.",
        "cache-position",
    ),
    Misconception(
        "decode-step-all-at-zero",
        step_all_at_zero,
        "decode_step_worked_example",
        "The gaps are lost: query and key of the new token were both rotated as position 0, or "
        "all keys by the position of the newest. Each key is turned once, by its own place, and "
        "the new token stands behind all that are in the cache.",
        "cache-position",
    ),
    Misconception(
        "decode-step-one-too-high",
        step_one_too_high,
        "decode_step_worked_example",
        "Query and key stand one position too far on, as they do when the length is read after "
        "the token was counted. After a prompt that leaves a gap: read the length first.",
        "cache-position",
    ),
    Misconception(
        "decode-step-query-one-too-high",
        step_query_one_too_high,
        "decode_step_worked_example",
        "The query stands one position behind its own key. Both belong to one token: read the "
        "length of the cache once, before you append.",
        "cache-position",
    ),
    Misconception(
        "decode-step-rotates-again",
        step_rotates_again,
        "decode_step_worked_example",
        "The cached keys were rotated a second time when they were read. Each was rotated by its "
        "own position before it was stored; after that nothing turns it.",
        "cache-why",
    ),
    Misconception(
        "decode-step-without-itself",
        step_without_itself,
        "decode_step_worked_example",
        "The new token does not attend to itself. Append its key and value first, then let its "
        "query meet all keys, its own too.",
        "cache-prefill",
    ),
    Misconception(
        "decode-step-without-scale",
        step_without_scale,
        "decode_step_worked_example",
        "The scores were not divided by √d_k, so the softmax is sharper than in the full pass.",
        "cache-prefill",
    ),
    Misconception(
        "decode-step-scale-of-the-model",
        step_scale_of_the_model,
        "decode_step_worked_example",
        "The scores were divided by the square root of the token's width. What counts is the "
        "width of queries and keys, d_k.",
        "cache-prefill",
    ),
    Misconception(
        "decode-step-half-layout",
        step_half_layout,
        "decode_step_worked_example",
        "The new token was rotated in the half layout, but the keys in the cache are interleaved: "
        "neighbours are a pair, (0, 1), (2, 3) and so on.",
        "cache-why",
    ),
    Misconception(
        "decode-step-rotates-value",
        step_rotates_value,
        "decode_step_worked_example",
        "The value was rotated too. Values carry content, and no later rotation takes that turn "
        "back; only queries and keys are turned.",
        "cache-why",
    ),
    Misconception(
        "decode-step-swaps-roles",
        step_swaps_roles,
        "decode_step_worked_example",
        "w_q made the key and w_k the query. The key goes into the cache for all later tokens; "
        "the query is used once and forgotten.",
        "cache-why",
    ),
    Misconception(
        "decode-step-key-not-rotated",
        step_key_not_rotated,
        "decode_step_equals_full_pass",
        "The new key went into the cache as it was, without its rotation. Later queries will "
        "measure their distance to position 0 instead of to this token.",
        "cache-why",
    ),
    Misconception(
        "decode-step-ignores-base",
        step_without_base,
        "decode_step_equals_full_pass",
        "The base that was passed in is never used: 10000 is only its default.",
        "cache-prefill",
    ),
    Misconception(
        "decode-step-cache-not-extended",
        step_cache_not_extended,
        "decode_step_equals_full_pass",
        "The token's key and value are not in the cache after the call. The next token will not "
        "see this one, and will take its position.",
        "cache-position",
    ),
    Misconception(
        "decode-step-clips-scores",
        step_clips_scores,
        "decode_step_large_scores",
        "Large scores were clipped so that exp does not overflow, and scores that differ became "
        "equal. Subtract the largest one instead, which leaves the softmax as it is.",
        "ex-decode_step",
    ),
    Misconception(
        "decode-step-always-float64",
        step_always_float64,
        "decode_step_keeps_dtype",
        "A float32 token gave a float64 result. Cast to the floating dtype of x_t at the end; "
        "√d_k as a NumPy scalar is enough to widen everything.",
        "ex-decode_step",
    ),
    Misconception(
        "decode-step-float32-angles",
        step_float32_angles,
        "decode_step_far_out",
        "The angles were computed in float32, which has few digits left for them after some "
        "thousand tokens. Compute them in float64 and cast the result.",
        "cache-tables",
    ),
    Misconception(
        "decode-step-takes-a-row",
        step_takes_a_row,
        "decode_step_refuses_token",
        "A matrix was accepted where one token is asked for. Of two tokens one would be lost "
        "without a word: refuse anything that is not (d_model,).",
        "ex-decode_step",
    ),
    Misconception(
        "decode-step-appends-too-early",
        step_appends_too_early,
        "decode_step_refuses_token",
        "The call was refused, but the cache has grown all the same. Look at the shapes before "
        "you append, or the caller goes on with a cache that counts tokens it never had.",
        "ex-decode_step",
    ),
)

# ------------------------------------------------------------------------- left_pad_positions


def pad_ignored(attention_mask: Array) -> Array:
    """transformers#22161, unsloth#4078: 00111 gives 0 1 2 3 4."""
    return np.broadcast_to(np.arange(attention_mask.shape[1]), attention_mask.shape).copy()


def pad_from_one(attention_mask: Array) -> Array:
    return np.cumsum(attention_mask, axis=1, dtype=np.int64) * (attention_mask != 0)


def pad_minus_one(attention_mask: Array) -> Array:
    positions = right.left_pad_positions(attention_mask)
    return np.where(attention_mask != 0, positions, -1)


def pad_gets_one(attention_mask: Array) -> Array:
    """A popular library's choice; another is asked for here."""
    positions = right.left_pad_positions(attention_mask)
    return np.where(attention_mask != 0, positions, 1)


def pad_of_first_row(attention_mask: Array) -> Array:
    positions = right.left_pad_positions(attention_mask)
    return np.broadcast_to(positions[:1], positions.shape).copy()


def pad_along_columns(attention_mask: Array) -> Array:
    mask = np.asarray(attention_mask).astype(np.int64)
    return (mask.cumsum(axis=0) - 1) * mask


def pad_backwards(attention_mask: Array) -> Array:
    """Counted from the right end."""
    mask = np.asarray(attention_mask).astype(np.int64)
    return (mask[:, ::-1].cumsum(axis=1)[:, ::-1] - 1) * mask


def pad_only_real(attention_mask: Array) -> Array:
    positions = right.left_pad_positions(attention_mask)
    return positions[np.asarray(attention_mask) != 0]


def pad_trailing_counts(attention_mask: Array) -> Array:
    """Subtracts the padding in front and clips at 0, so what stands behind is counted on."""
    mask = np.asarray(attention_mask)
    first = np.where(mask.any(axis=1), mask.argmax(axis=1), mask.shape[1])
    return np.maximum(np.arange(mask.shape[1]) - first[:, None], 0)


def pad_trailing_repeats(attention_mask: Array) -> Array:
    return np.maximum(np.cumsum(attention_mask, axis=1, dtype=np.int64) - 1, 0)


def pad_floats(attention_mask: Array) -> Array:
    return right.left_pad_positions(attention_mask).astype(np.float64)


def pad_in_place(attention_mask: Array) -> Array:
    attention_mask[...] = right.left_pad_positions(attention_mask)
    return attention_mask.astype(np.int64)


def pad_empty_row_counts(attention_mask: Array) -> Array:
    """The first real token of a row is looked up with argmax, which is 0 where there is none."""
    mask = np.asarray(attention_mask).astype(np.int64)
    places = np.arange(mask.shape[1]) - mask.argmax(axis=1)[:, None]
    return np.where(mask.any(axis=1, keepdims=True), places * mask, places)


def pad_small_dtype(attention_mask: Array) -> Array:
    mask = np.asarray(attention_mask)
    with np.errstate(all="ignore"):
        return (mask.cumsum(axis=1, dtype=mask.dtype) - mask.dtype.type(1)) * mask


LEFT_PAD_POSITIONS = (
    Misconception(
        "left-pad-positions-ignore-mask",
        pad_ignored,
        "left_pad_positions_reported_mask",
        "Every row is counted from its left edge, padding and all. A row that was padded on the "
        "left then begins late: count the real tokens alone.",
        "cache-padding",
    ),
    Misconception(
        "left-pad-positions-from-one",
        pad_from_one,
        "left_pad_positions_reported_mask",
        "The first real token got position 1, as a running sum of the mask has it. Its position "
        "is the number of real tokens before it, and there are none.",
        "cache-padding",
    ),
    Misconception(
        "left-pad-positions-minus-one",
        pad_minus_one,
        "left_pad_positions_reported_mask",
        "Padding came out as −1, which a table lookup would read as its last row. Padding gets 0.",
        "cache-padding",
    ),
    Misconception(
        "left-pad-positions-padding-gets-one",
        pad_gets_one,
        "left_pad_positions_reported_mask",
        "Padding came out as 1. Some libraries choose that, since the mask hides those tokens "
        "anyway; here padding gets 0.",
        "cache-padding",
    ),
    Misconception(
        "left-pad-positions-first-row-for-all",
        pad_of_first_row,
        "left_pad_positions_reported_mask",
        "All rows have the positions of the first one. Each row has its own amount of padding, "
        "so each needs its own count.",
        "cache-padding",
    ),
    Misconception(
        "left-pad-positions-along-columns",
        pad_along_columns,
        "left_pad_positions_reported_mask",
        "You counted down the batch instead of along each row. The tokens of one text lie on the "
        "second axis.",
        "cache-padding",
    ),
    Misconception(
        "left-pad-positions-backwards",
        pad_backwards,
        "left_pad_positions_reported_mask",
        "You counted from the right end of each row. The first token of a text has position 0, "
        "and the last one the largest.",
        "cache-padding",
    ),
    Misconception(
        "left-pad-positions-only-real",
        pad_only_real,
        "left_pad_positions_reported_mask",
        "The positions of the padding were left out, so the result is no longer (batch, seq). "
        "Every slot of the batch needs a number; padding gets 0.",
        "ex-left_pad_positions",
    ),
    Misconception(
        "left-pad-positions-floats",
        pad_floats,
        "left_pad_positions_rows",
        "The positions are right but floating. They will index tables, so they have to be "
        "integers.",
        "ex-left_pad_positions",
    ),
    Misconception(
        "left-pad-positions-trailing-counts",
        pad_trailing_counts,
        "left_pad_positions_trailing",
        "Padding behind the tokens was counted on as if it were text. All padding gets 0, on "
        "either side.",
        "cache-padding",
    ),
    Misconception(
        "left-pad-positions-trailing-repeats",
        pad_trailing_repeats,
        "left_pad_positions_trailing",
        "Padding behind the tokens repeats the last position. All padding gets 0, on either side.",
        "cache-padding",
    ),
    Misconception(
        "left-pad-positions-in-place",
        pad_in_place,
        "left_pad_positions_leave_mask",
        "The mask itself was overwritten. Attention still needs it: build a new array.",
        "ex-left_pad_positions",
    ),
    Misconception(
        "left-pad-positions-empty-row-counts",
        pad_empty_row_counts,
        "left_pad_positions_all_padding",
        "A row of nothing but padding was counted as if all of it were text: its first real token "
        "was looked up, and there is none. Such rows get zeros.",
        "cache-padding",
    ),
    Misconception(
        "left-pad-positions-small-dtype",
        pad_small_dtype,
        "left_pad_positions_small_dtypes",
        "You counted in the dtype of the mask, and 8 bits end at 127 or 255. Count in an integer "
        "dtype that has room for a long text.",
        "ex-left_pad_positions",
    ),
)

# --------------------------------------------------------------------------- packed_positions


def packed_as_one(lengths: Any) -> Array:
    """Megatron-LM#453, OLMo-core#591: the documents do not restart their positions."""
    return np.arange(len(right.packed_positions(lengths)))


def packed_from_one(lengths: Any) -> Array:
    return right.packed_positions(lengths) + 1


def packed_documents(lengths: Any) -> Array:
    right.packed_positions(lengths)
    return np.repeat(np.arange(len(lengths)), np.asarray(lengths, dtype=np.int64))


def packed_boundary_late(lengths: Any) -> Array:
    """Only the first document starts at 0: the later ones start where 1 would be."""
    positions = right.packed_positions(lengths)
    positions[int((np.asarray(lengths, dtype=np.int64))[:1].sum()) :] += 1
    return positions


def packed_padded(lengths: Any) -> Array:
    """One row for each document."""
    right.packed_positions(lengths)
    longest = max(lengths, default=0)
    return np.array([[*range(n), *[0] * (longest - n)] for n in lengths], dtype=np.int64)


def packed_zero_takes_a_place(lengths: Any) -> Array:
    right.packed_positions(lengths)
    return right.packed_positions([max(n, 1) for n in lengths])


def packed_negative_is_empty(lengths: Any) -> Array:
    return right.packed_positions([max(n, 0) for n in lengths])


def packed_empty_is_float(lengths: Any) -> Array:
    positions = right.packed_positions(lengths)
    return positions if positions.size else np.array([])


PACKED_POSITIONS = (
    Misconception(
        "packed-positions-as-one",
        packed_as_one,
        "packed_positions_restart",
        "The whole row was counted through, as if it were one document. Each document starts at 0 "
        "again, or its tokens see themselves deep inside a text that is not theirs.",
        "cache-packed",
    ),
    Misconception(
        "packed-positions-from-one",
        packed_from_one,
        "packed_positions_restart",
        "Each document starts at 1. Positions count from zero: the first token has no token "
        "before it.",
        "cache-packed",
    ),
    Misconception(
        "packed-positions-documents",
        packed_documents,
        "packed_positions_restart",
        "You returned the number of each token's document. That is what the mask needs; asked for "
        "is the token's position inside its document.",
        "cache-packed",
    ),
    Misconception(
        "packed-positions-boundary-late",
        packed_boundary_late,
        "packed_positions_restart",
        "Documents after the first start at 1: the restart comes one token too late in the count. "
        "Subtract where each document begins, not the place before it.",
        "cache-packed",
    ),
    Misconception(
        "packed-positions-padded",
        packed_padded,
        "packed_positions_restart",
        "You made one row for each document. Packing puts them into a single row, one behind the "
        "other, without padding.",
        "cache-packed",
    ),
    Misconception(
        "packed-positions-zero-takes-a-place",
        packed_zero_takes_a_place,
        "packed_positions_no_tokens",
        "A document without tokens took a place in the row. It adds no position at all.",
        "ex-packed_positions",
    ),
    Misconception(
        "packed-positions-negative-is-empty",
        packed_negative_is_empty,
        "packed_positions_refuse",
        "A negative length passed as an empty document, as it does in a range. Refuse it: the "
        "caller has counted wrong.",
        "ex-packed_positions",
    ),
    Misconception(
        "packed-positions-empty-is-float",
        packed_empty_is_float,
        "packed_positions_empty",
        "Without tokens your result is a float array, NumPy's default for an empty list. Positions "
        "are integers, also when there are none.",
        "ex-packed_positions",
    ),
)

# ------------------------------------------------------------------------------ rerotate_keys


def rerotate_backwards(keys: Array, delta: float, base: float = 10000.0) -> Array:
    return right.rerotate_keys(keys, -delta, base)


def rerotate_to_a_range(keys: Array, delta: float, base: float = 10000.0) -> Array:
    """The new position is rotated on top of the old one, as shainet#110 did at every step."""
    right.rerotate_keys(keys, delta, base)
    return apply_rope(keys, delta + np.arange(len(keys)), base)


def rerotate_half_layout(keys: Array, delta: float, base: float = 10000.0) -> Array:
    right.rerotate_keys(keys, delta, base)
    return apply_rope(keys, np.full(len(keys), delta), base, "half")


def rerotate_one_angle(keys: Array, delta: float, base: float = 10000.0) -> Array:
    """Every pair turns like the first one."""
    keys = as_floats(keys, "keys")
    right.rerotate_keys(keys, delta, base)
    angles = np.full(keys.shape[1] // 2, float(delta))
    return turn_rows(keys, np.cos(angles), np.sin(angles))


def rerotate_all_but_the_newest(keys: Array, delta: float, base: float = 10000.0) -> Array:
    """transformers#35350, #33691: the newest key stays where it was."""
    moved = right.rerotate_keys(keys, delta, base)
    if len(moved) > 1:
        moved[-1] = keys[-1]
    return moved


def rerotate_distance(keys: Array, delta: float, base: float = 10000.0) -> Array:
    return right.rerotate_keys(keys, -abs(delta), base)


def rerotate_drops_rows(keys: Array, delta: float, base: float = 10000.0) -> Array:
    """Evicts as well: with delta = −n the first n keys are gone."""
    moved = right.rerotate_keys(keys, delta, base)
    return moved[int(-delta) :] if delta < 0 else moved


def rerotate_without_base(keys: Array, delta: float, base: float = 10000.0) -> Array:
    right.rerotate_keys(keys, delta, base)
    return right.rerotate_keys(keys, delta)


def rerotate_into_integers(keys: Array, delta: float, base: float = 10000.0) -> Array:
    return right.rerotate_keys(keys, delta, base).astype(keys.dtype)


def rerotate_in_place(keys: Array, delta: float, base: float = 10000.0) -> Array:
    keys = as_floats(keys, "keys")
    keys[...] = right.rerotate_keys(keys, delta, base)
    return keys


def rerotate_whole_steps(keys: Array, delta: float, base: float = 10000.0) -> Array:
    return right.rerotate_keys(keys, int(delta), base)


def rerotate_always_float64(keys: Array, delta: float, base: float = 10000.0) -> Array:
    return right.rerotate_keys(np.asarray(keys, dtype=np.float64), delta, base)


def rerotate_float32_angles(keys: Array, delta: float, base: float = 10000.0) -> Array:
    keys = as_floats(keys, "keys")
    right.rerotate_keys(keys, delta, base)
    angles = np.float32(delta) * rope_angles(1, keys.shape[1], base).astype(np.float32)
    return turn_rows(keys, np.cos(angles), np.sin(angles))


REROTATE_KEYS = (
    Misconception(
        "rerotate-keys-backwards",
        rerotate_backwards,
        "rerotate_keys_published_numbers",
        "The keys moved the wrong way. A positive delta moves them to later positions, an "
        "eviction in front of them is a negative one.",
        "cache-evict",
    ),
    Misconception(
        "rerotate-keys-to-a-range",
        rerotate_to_a_range,
        "rerotate_keys_published_numbers",
        "Each key was turned by its place in the array as well. The keys are rotated already: all "
        "that is missing is the distance by which they move, and that is delta for each of them.",
        "cache-evict",
    ),
    Misconception(
        "rerotate-keys-half-layout",
        rerotate_half_layout,
        "rerotate_keys_published_numbers",
        "You paired coordinate i with i + d_k/2, but these keys were rotated interleaved. Turned "
        "in the other layout they belong to no position at all.",
        "cache-evict",
    ),
    Misconception(
        "rerotate-keys-one-angle",
        rerotate_one_angle,
        "rerotate_keys_published_numbers",
        "All pairs were turned by the same angle. Each pair has its own frequency, and delta "
        "positions are delta times that.",
        "cache-evict",
    ),
    Misconception(
        "rerotate-keys-distance",
        rerotate_distance,
        "rerotate_keys_published_numbers",
        "Keys move towards the beginning whatever the sign of delta is. A positive delta makes "
        "room in front of them.",
        "cache-evict",
    ),
    Misconception(
        "rerotate-keys-all-but-the-newest",
        rerotate_all_but_the_newest,
        "rerotate_keys_published_numbers",
        "The newest key stayed where it was while the others moved, which tears a gap before it. "
        "All keys that are kept move by the same delta.",
        "cache-evict",
    ),
    Misconception(
        "rerotate-keys-drops-rows",
        rerotate_drops_rows,
        "rerotate_keys_published_numbers",
        "Rows are missing. Which keys to evict has been decided before: those that are passed in "
        "all move, and all come back.",
        "cache-evict",
    ),
    Misconception(
        "rerotate-keys-ignore-base",
        rerotate_without_base,
        "rerotate_keys_as_if_made_there",
        "The base that was passed in is never used. Keys rotated on one ladder cannot be moved "
        "along another.",
        "cache-evict",
    ),
    Misconception(
        "rerotate-keys-truncate-integers",
        rerotate_into_integers,
        "rerotate_keys_integers",
        "The fractions were cut off because the result has the integer dtype of the keys. Turn "
        "integers into float64 before you rotate.",
        "ex-rerotate_keys",
    ),
    Misconception(
        "rerotate-keys-in-place",
        rerotate_in_place,
        "rerotate_keys_leave_input",
        "The caller's keys were overwritten. Return new ones: a second beam may share the cache.",
        "ex-rerotate_keys",
    ),
    Misconception(
        "rerotate-keys-whole-steps",
        rerotate_whole_steps,
        "rerotate_keys_fractions",
        "A fractional delta lost its fraction. With interpolated positions keys stand between "
        "whole numbers, and the rotation takes any number.",
        "cache-evict",
    ),
    Misconception(
        "rerotate-keys-always-float64",
        rerotate_always_float64,
        "rerotate_keys_keep_dtype",
        "The numbers are right, but small keys came back as float64. Cast the result to the "
        "floating dtype of the keys.",
        "ex-rerotate_keys",
    ),
    Misconception(
        "rerotate-keys-float32-angles",
        rerotate_float32_angles,
        "rerotate_keys_far",
        "The angles were computed in float32, which has few digits left for a long move. Compute "
        "them in float64 whatever the dtype of the keys is.",
        "cache-evict",
    ),
)

# ------------------------------------------------------------------------------- fixed_decode

Scores = Callable[[Array, Array, int, float], Array]


def looped(scores: Scores) -> Callable[[], Callable[..., Array]]:
    """An answer whose token m mixes the first len(scores(q, k, m, base)) values."""

    def make() -> Callable[..., Array]:
        def decode(q: Array, k: Array, v: Array, base: float = 10000.0) -> Array:
            result = right.fixed_decode()(q, k, v, base)  # refuses what is to be refused
            for m in range(len(q)):
                found = scores(np.asarray(q, float), np.asarray(k, float), m, base)
                result[m] = softmax_of(found, v[: len(found)]) if len(found) else 0.0
            return result

        return decode

    return make


def at(x: Array, positions: Any, base: float) -> Array:
    return apply_rope(x, np.asarray(positions), base)


def scores_unrepaired(q: Array, k: Array, m: int, base: float) -> Array:
    """The loop of the chapter: mlx-vlm#1983 and shainet#110 at once."""
    n = np.arange(m + 1)
    keys = at(k[: m + 1], n * (1 + m - n), base)
    return keys @ at(q[m : m + 1], [0], base)[0] / math.sqrt(q.shape[1])


def scores_query_at_zero(q: Array, k: Array, m: int, base: float) -> Array:
    keys = at(k[: m + 1], np.arange(m + 1), base)
    return keys @ at(q[m : m + 1], [0], base)[0] / math.sqrt(q.shape[1])


def scores_keys_twice(q: Array, k: Array, m: int, base: float) -> Array:
    keys = at(k[: m + 1], 2 * np.arange(m + 1), base)
    return keys @ at(q[m : m + 1], [m], base)[0] / math.sqrt(q.shape[1])


def scores_keys_turn_each_step(q: Array, k: Array, m: int, base: float) -> Array:
    """Turned at each step and stored so: at step m key n has been turned 1 + m − n times."""
    n = np.arange(m + 1)
    keys = at(k[: m + 1], n * (1 + m - n), base)
    return keys @ at(q[m : m + 1], [m], base)[0] / math.sqrt(q.shape[1])


def scores_keys_not_turned(q: Array, k: Array, m: int, base: float) -> Array:
    """The query is put right, and the rotation of the keys is taken out altogether."""
    return k[: m + 1] @ at(q[m : m + 1], [m], base)[0] / math.sqrt(q.shape[1])


def scores_nothing_turned(q: Array, k: Array, m: int, base: float) -> Array:
    return k[: m + 1] @ q[m] / math.sqrt(q.shape[1])


def scores_query_one_too_high(q: Array, k: Array, m: int, base: float) -> Array:
    """fla#766: the length is read after the token was counted."""
    keys = at(k[: m + 1], np.arange(m + 1), base)
    return keys @ at(q[m : m + 1], [m + 1], base)[0] / math.sqrt(q.shape[1])


def scores_without_itself(q: Array, k: Array, m: int, base: float) -> Array:
    keys = at(k[:m], np.arange(m), base)
    return keys @ at(q[m : m + 1], [m], base)[0] / math.sqrt(q.shape[1])


def scores_without_scale(q: Array, k: Array, m: int, base: float) -> Array:
    return at(k[: m + 1], np.arange(m + 1), base) @ at(q[m : m + 1], [m], base)[0]


def scores_of_the_future(q: Array, k: Array, m: int, base: float) -> Array:
    """All tokens are in the cache before the loop begins."""
    keys = at(k, np.arange(len(k)), base)
    return keys @ at(q[m : m + 1], [m], base)[0] / math.sqrt(q.shape[1])


def scores_without_base(q: Array, k: Array, m: int, base: float) -> Array:
    keys = at(k[: m + 1], np.arange(m + 1), 10000.0)
    return keys @ at(q[m : m + 1], [m], 10000.0)[0] / math.sqrt(q.shape[1])


def scores_divided_by_two(q: Array, k: Array, m: int, base: float) -> Array:
    """The 2 of the chapter's own `attend`, which is √d_k for a width of 4."""
    keys = at(k[: m + 1], np.arange(m + 1), base)
    return keys @ at(q[m : m + 1], [m], base)[0] / 2


def scores_float32_angles(q: Array, k: Array, m: int, base: float) -> Array:
    ladder = rope_angles(1, q.shape[1], base).astype(np.float32)
    angles = np.arange(m + 1, dtype=np.float32)[:, None] * ladder
    keys = turn_rows(k[: m + 1], np.cos(angles), np.sin(angles))
    query = turn_rows(q[m : m + 1], np.cos(angles[m]), np.sin(angles[m]))[0]
    return keys @ query / math.sqrt(q.shape[1])


def decode_cache_survives() -> Callable[..., Array]:
    """The cache is made once, beside the function, and not for each sequence."""
    cache = right.KVCache()

    def decode(q: Array, k: Array, v: Array, base: float = 10000.0) -> Array:
        result = right.fixed_decode()(q, k, v, base)
        if len(cache) and (cache.keys.shape[1], cache.values.shape[1]) != (k.shape[1], v.shape[1]):
            cache.truncate(0)  # another model: not what this is about
        for m in range(len(q)):
            place = [len(cache)]
            cache.append(apply_rope(k[m : m + 1], place, base), v[m : m + 1])
            query = apply_rope(q[m : m + 1], place, base)[0]
            result[m] = right.attend(query, cache)
        return result

    return decode


def decode_old_tokens_stay() -> Callable[..., Array]:
    """The cache outlives the call and the loop counts from 0: two texts at the same positions."""
    cache = right.KVCache()

    def decode(q: Array, k: Array, v: Array, base: float = 10000.0) -> Array:
        result = right.fixed_decode()(q, k, v, base)
        if len(cache) and (cache.keys.shape[1], cache.values.shape[1]) != (k.shape[1], v.shape[1]):
            cache.truncate(0)  # another model: not what this is about
        for m in range(len(q)):
            cache.append(apply_rope(k[m : m + 1], [m], base), v[m : m + 1])
            result[m] = right.attend(apply_rope(q[m : m + 1], [m], base)[0], cache)
        return result

    return decode


def decode_in_place() -> Callable[..., Array]:
    def decode(q: Array, k: Array, v: Array, base: float = 10000.0) -> Array:
        result = right.fixed_decode()(q, k, v, base)
        if k.dtype.kind == "f":
            k[...] = apply_rope(k, np.arange(len(k)), base)
        return result

    return decode


def decode_clips_scores() -> Callable[..., Array]:
    def decode(q: Array, k: Array, v: Array, base: float = 10000.0) -> Array:
        result = right.fixed_decode()(q, k, v, base)
        q, k = (as_floats(x, "x").astype(np.float64) for x in (q, k))
        keys, queries = (at(x, np.arange(len(x)), base) for x in (k, q))
        weights = np.tril(np.exp(np.clip(queries @ keys.T / math.sqrt(q.shape[1]), -500, 500)))
        return (weights @ v / weights.sum(axis=1, keepdims=True)).astype(result.dtype)

    return decode


def decode_always_float64() -> Callable[..., Array]:
    def decode(q: Array, k: Array, v: Array, base: float = 10000.0) -> Array:
        return right.fixed_decode()(np.asarray(q, dtype=np.float64), k, v, base)

    return decode


def decode_into_integers() -> Callable[..., Array]:
    """The result is made like v, whose dtype may be an integer one."""

    def decode(q: Array, k: Array, v: Array, base: float = 10000.0) -> Array:
        return right.fixed_decode()(q, k, v, base).astype(v.dtype)

    return decode


def decode_unequal_numbers() -> Callable[..., Array]:
    def decode(q: Array, k: Array, v: Array, base: float = 10000.0) -> Array:
        n = min(len(q), len(k), len(v))
        return right.fixed_decode()(q[:n], k[:n], v[:n], base)

    return decode


FIXED_DECODE = (
    Misconception(
        "fixed-decode-unrepaired",
        looped(scores_unrepaired),
        "fixed_decode_worked_example",
        "Both faults are still there: the new query stands at position 0, and all keys are turned "
        "again at every step. Each vector is turned once, by its own position.",
        "cache-hunt",
    ),
    Misconception(
        "fixed-decode-query-at-zero",
        looped(scores_query_at_zero),
        "fixed_decode_worked_example",
        "The keys are right now, but each new query is still rotated as if it stood at position "
        "0. Its position is the number of tokens before it.",
        "cache-hunt",
    ),
    Misconception(
        "fixed-decode-keys-twice",
        looped(scores_keys_twice),
        "fixed_decode_worked_example",
        "The query is right now, but every key is rotated twice: once when it is stored, and "
        "again when it is read. A cached key needs no second turn.",
        "cache-hunt",
    ),
    Misconception(
        "fixed-decode-keys-turn-each-step",
        looped(scores_keys_turn_each_step),
        "fixed_decode_worked_example",
        "The query is right now, but the keys turn on with every step that they spend in the "
        "cache. Each is rotated by its own position when it is stored, and stays so.",
        "cache-hunt",
    ),
    Misconception(
        "fixed-decode-keys-not-turned",
        looped(scores_keys_not_turned),
        "fixed_decode_worked_example",
        "The keys are not rotated any more at all. One of their two rotations was right: the one "
        "by their own position, when they are stored.",
        "cache-hunt",
    ),
    Misconception(
        "fixed-decode-nothing-turned",
        looped(scores_nothing_turned),
        "fixed_decode_worked_example",
        "Nothing is rotated any more, or everything by one and the same position, so a token hears "
        "its neighbour no better than one far away. Turn each query and each key once, by its own "
        "position.",
        "cache-hunt",
    ),
    Misconception(
        "fixed-decode-query-one-too-high",
        looped(scores_query_one_too_high),
        "fixed_decode_worked_example",
        "The query stands one position behind its own key, as it does when the length of the "
        "cache is read after the append. Read it once, before.",
        "cache-position",
    ),
    Misconception(
        "fixed-decode-without-itself",
        looped(scores_without_itself),
        "fixed_decode_worked_example",
        "A token does not attend to itself: its own key is not in the cache yet when its query "
        "is used. Append first.",
        "cache-prefill",
    ),
    Misconception(
        "fixed-decode-without-scale",
        looped(scores_without_scale),
        "fixed_decode_worked_example",
        "The scores were not divided by √d_k, so the softmax is sharper than in the full pass.",
        "cache-prefill",
    ),
    Misconception(
        "fixed-decode-divides-by-two",
        looped(scores_divided_by_two),
        "fixed_decode_equals_full_pass",
        "The scores were divided by 2 whatever the width is. That is √d_k for d_k = 4 alone: take "
        "the root of the width that came in.",
        "cache-hunt",
    ),
    Misconception(
        "fixed-decode-of-the-future",
        looped(scores_of_the_future),
        "fixed_decode_equals_full_pass",
        "Tokens attend to later ones, whose keys stand in the cache before their turn has come. "
        "Fill the cache token by token.",
        "cache-prefill",
    ),
    Misconception(
        "fixed-decode-ignores-base",
        looped(scores_without_base),
        "fixed_decode_equals_full_pass",
        "The base that was passed in is never used: 10000 is only its default.",
        "cache-prefill",
    ),
    Misconception(
        "fixed-decode-cache-survives",
        decode_cache_survives,
        "fixed_decode_starts_anew",
        "A second sequence still sees the tokens of the first one. Make the cache inside "
        "`decode`, so that every call starts with an empty one.",
        "ex-fixed_decode",
    ),
    Misconception(
        "fixed-decode-old-tokens-stay",
        decode_old_tokens_stay,
        "fixed_decode_starts_anew",
        "The keys of the first sequence are still there when a second one is decoded, and stand at "
        "the same positions as its own. Make the cache inside `decode`, for each call anew.",
        "ex-fixed_decode",
    ),
    Misconception(
        "fixed-decode-in-place",
        decode_in_place,
        "fixed_decode_leaves_inputs",
        "The caller's keys were rotated in place. Whoever calls again with them gets keys that "
        "are rotated twice: work on new arrays.",
        "cache-hunt",
    ),
    Misconception(
        "fixed-decode-always-float64",
        decode_always_float64,
        "fixed_decode_keeps_dtype",
        "float32 queries gave a float64 result. Cast to the floating dtype of q at the end.",
        "ex-fixed_decode",
    ),
    Misconception(
        "fixed-decode-into-integers",
        decode_into_integers,
        "fixed_decode_keeps_dtype",
        "The fractions were cut off because the result was made with an integer dtype. Integers "
        "become float64.",
        "ex-fixed_decode",
    ),
    Misconception(
        "fixed-decode-clips-scores",
        decode_clips_scores,
        "fixed_decode_large_scores",
        "Large scores were clipped so that exp does not overflow, and scores that differ became "
        "equal. Subtract the largest one instead, which leaves the softmax as it is.",
        "ex-fixed_decode",
    ),
    Misconception(
        "fixed-decode-float32-angles",
        looped(scores_float32_angles),
        "fixed_decode_precise",
        "The angles were computed in float32, which has few digits left for them after some "
        "hundred tokens. Compute them in float64.",
        "cache-tables",
    ),
    Misconception(
        "fixed-decode-unequal-numbers",
        decode_unequal_numbers,
        "fixed_decode_refuses",
        "With different numbers of queries, keys and values you stopped at the shortest, as `zip` "
        "does. Refuse them: tokens would be lost without a word.",
        "ex-fixed_decode",
    ),
)

# ------------------------------------------------------------------------ CausalSelfAttention


def split_heads(module: Any, made: Any) -> Any:
    """(batch, seq, 3·dim) → q, k, v, each (batch, heads, seq, head_dim)."""
    return made.unflatten(-1, (3, module.num_heads, -1)).permute(2, 0, 3, 1, 4)


def turned(module: Any, x: Any, positions: Any) -> Any:
    """One tensor (batch, heads, seq, head_dim), rotated."""
    return module.rope(x, x, positions)[0]


def both_turned(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
    return turned(module, q, positions), turned(module, k, positions), v


def from_past(module: Any, past: int, seq: int) -> Any:
    import torch

    return torch.arange(past, past + seq)


def joined(module: Any, old: Any, new: Any) -> Any:
    """Keys, or values, of the cache and the new ones behind them."""
    import torch

    return torch.cat([old.to(new), new], dim=2)


def seen_before(module: Any, past: int, seq: int) -> Any:
    """(seq, past + seq), True where a query may look."""
    import torch

    return torch.ones(seq, past + seq, dtype=torch.bool).tril(past)


def side_by_side(module: Any, mixed: Any) -> Any:
    return mixed.transpose(1, 2).flatten(2)


def variant(
    dim: int,
    num_heads: int,
    base: float,
    *,
    setup: Callable[[Any], None] = lambda module: None,
    split: Callable[..., Any] = split_heads,
    places: Callable[..., Any] = from_past,
    turn: Callable[..., Any] = both_turned,
    join: Callable[..., Any] = joined,
    keep: Callable[..., Any] = lambda module, kept: kept,
    read: Callable[..., Any] = lambda module, keys: keys,
    visible: Callable[..., Any] = seen_before,
    scale: Callable[..., float] = lambda module: module.rope.head_dim**-0.5,
    merge: Callable[..., Any] = side_by_side,
    finish: Callable[..., Any] = lambda module, mixed: module.proj(mixed),
    same_batch: bool = True,
    layout: str = "interleaved",
) -> Any:
    """A module that is right but for what is replaced. torch is imported here, since it costs a
    second that NumPy's exercises need not pay.
    """
    import torch

    from solutions.with_torch.kv_cache import CausalSelfAttention
    from solutions.with_torch.rope import RotaryEmbedding

    CausalSelfAttention(dim, num_heads, base)  # refuses what is to be refused

    class Variant(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dim, self.num_heads = dim, num_heads
            self.rope = RotaryEmbedding(dim // num_heads, base, layout)
            self.qkv = torch.nn.Linear(dim, 3 * dim, bias=False)
            self.proj = torch.nn.Linear(dim, dim, bias=False)
            setup(self)

        def forward(self, x: Any, cache: Any = None) -> Any:
            if x.ndim != 3 or (cache is not None and same_batch and len(cache[0]) != len(x)):
                raise ValueError("no such batch")
            q, k, v = split(self, self.qkv(x))
            past = 0 if cache is None else cache[0].shape[2]
            q, k, v = turn(self, q, k, v, places(self, past, x.shape[1]))
            if cache is not None:
                k, v = join(self, cache[0], k), join(self, cache[1], v)
            k, v = keep(self, (k, v))
            scores = q @ read(self, k).transpose(-1, -2) * scale(self)
            hidden = ~visible(self, k.shape[2] - x.shape[1], x.shape[1])
            weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
            return finish(self, merge(self, weights.to(v) @ v)), (k, v)

    return Variant()


def attention_starts_at_zero(
    dim: int, num_heads: int, base: float = 10000.0, layout: str = "interleaved"
) -> Any:
    """mlx-vlm#1983, with a prompt before it."""

    def places(module: Any, past: int, seq: int) -> Any:
        return from_past(module, 0, seq)

    return variant(dim, num_heads, base, places=places, layout=layout)


def attention_one_too_high(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """fla#766: with a cache every position is one too high."""
    return variant(
        dim,
        num_heads,
        base,
        places=lambda module, past, seq: from_past(module, past + (past > 0), seq),
    )


def attention_counts_calls(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """The position is how often the module was called for this sequence."""

    def setup(module: Any) -> None:
        module.calls = 0

    def places(module: Any, past: int, seq: int) -> Any:
        module.calls = module.calls + 1 if past else 0
        return from_past(module, module.calls, seq)

    return variant(dim, num_heads, base, setup=setup, places=places)


def attention_rotates_again(
    dim: int, num_heads: int, base: float = 10000.0, layout: str = "interleaved"
) -> Any:
    """shainet#110: all keys are rotated when they are read, those of the cache for the second time.

    In a first call nothing is in the cache yet, and everything is right.
    """
    import torch

    def join(module: Any, old: Any, new: Any) -> Any:
        return torch.cat([old.to(new), new], dim=2)

    def setup(module: Any) -> None:
        module.new = 0

    def turn(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
        module.new = k.shape[2]
        return both_turned(module, q, k, v, positions)

    def read(module: Any, keys: Any) -> Any:
        old = keys.shape[2] - module.new
        again = turned(module, keys[:, :, :old], from_past(module, 0, old))
        return torch.cat([again, keys[:, :, old:]], dim=2)

    return variant(
        dim, num_heads, base, setup=setup, turn=turn, join=join, read=read, layout=layout
    )


def attention_query_at_zero(
    dim: int, num_heads: int, base: float = 10000.0, layout: str = "interleaved"
) -> Any:
    """The course's own source material: keys go on where the cache ends, queries do not."""

    def turn(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
        return turned(module, q, positions - positions[:1]), turned(module, k, positions), v

    return variant(dim, num_heads, base, turn=turn, layout=layout)


def attention_keys_turn_each_step(
    dim: int, num_heads: int, base: float = 10000.0, layout: str = "interleaved"
) -> Any:
    """All keys are rotated after the new ones were joined to them, and are stored like that."""
    import torch

    def setup(module: Any) -> None:
        module.new = 0

    def turn(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
        module.new = k.shape[2]
        return both_turned(module, q, k, v, positions)

    def keep(module: Any, kept: Any) -> Any:
        keys, values = kept
        old = keys.shape[2] - module.new
        again = turned(module, keys[:, :, :old], from_past(module, 0, old))
        return torch.cat([again, keys[:, :, old:]], dim=2), values

    return variant(dim, num_heads, base, setup=setup, turn=turn, keep=keep, layout=layout)


def in_half(attention: Callable[..., Any]) -> Callable[..., Any]:
    """The same mistake by somebody who pairs coordinate i with i + head_dim/2."""

    def made(dim: int, num_heads: int, base: float = 10000.0) -> Any:
        return attention(dim, num_heads, base, layout="half")

    return made


def attention_queries_only(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    def turn(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
        return turned(module, q, positions), k, v

    return variant(dim, num_heads, base, turn=turn)


def attention_without_rope(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    return variant(dim, num_heads, base, turn=lambda module, q, k, v, positions: (q, k, v))


def attention_rotates_values(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """The course's own source material warns of it."""

    def turn(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
        return tuple(turned(module, x, positions) for x in (q, k, v))

    return variant(dim, num_heads, base, turn=turn)


def attention_without_scale(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    return variant(dim, num_heads, base, scale=lambda module: 1.0)


def attention_scale_of_the_model(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    return variant(dim, num_heads, base, scale=lambda module: module.dim**-0.5)


def attention_sees_the_future(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    import torch

    def visible(module: Any, past: int, seq: int) -> Any:
        return torch.ones(seq, past + seq, dtype=torch.bool)

    return variant(dim, num_heads, base, visible=visible)


def attention_mask_in_prompt_only(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """Right for a prompt and for single tokens: only a longer piece can look ahead."""
    import torch

    def visible(module: Any, past: int, seq: int) -> Any:
        everything = torch.ones(seq, past + seq, dtype=torch.bool)
        return everything if past else everything.tril()

    return variant(dim, num_heads, base, visible=visible)


def attention_mask_top_left(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """The triangle that `is_causal=True` means begins at the first key, not at the cache's end."""
    import torch

    def visible(module: Any, past: int, seq: int) -> Any:
        return torch.ones(seq, past + seq, dtype=torch.bool).tril()

    return variant(dim, num_heads, base, visible=visible)


def attention_mask_if_several(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """`is_causal=seq > 1`: single tokens are right, pieces after a cache see its beginning."""
    import torch

    def visible(module: Any, past: int, seq: int) -> Any:
        everything = torch.ones(seq, past + seq, dtype=torch.bool)
        return everything.tril() if seq > 1 else everything

    return variant(dim, num_heads, base, visible=visible)


def attention_order_of_rows(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    def split(module: Any, made: Any) -> Any:
        k, q, v = split_heads(module, made)
        return q, k, v

    return variant(dim, num_heads, base, split=split)


def attention_heads_outermost(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """Each head has its q, k and v together, as the fused weights of GPT-NeoX do."""

    def split(module: Any, made: Any) -> Any:
        return made.unflatten(-1, (module.num_heads, 3, -1)).permute(3, 0, 2, 1, 4)

    return variant(dim, num_heads, base, split=split)


def attention_heads_interleaved(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """Coordinate c of head h is row c·heads + h."""

    def split(module: Any, made: Any) -> Any:
        return made.unflatten(-1, (3, -1, module.num_heads)).permute(2, 0, 4, 1, 3)

    return variant(dim, num_heads, base, split=split)


def attention_heads_from_tokens(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """A reshape where a transpose belongs: heads are cut out of runs of tokens."""

    def split(module: Any, made: Any) -> Any:
        batch, seq = made.shape[:2]
        return (
            part.contiguous().reshape(batch, module.num_heads, seq, -1)
            for part in made.chunk(3, dim=-1)
        )

    return variant(dim, num_heads, base, split=split)


def attention_merged_without_transpose(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    def merge(module: Any, mixed: Any) -> Any:
        batch, _, seq, _ = mixed.shape
        return mixed.reshape(batch, seq, -1)

    return variant(dim, num_heads, base, merge=merge)


def attention_turned_whole(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """Rotated before the heads are split: one ladder runs through all of them."""

    def turn(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
        def whole(x: Any) -> Any:
            rope = type(module.rope)(module.dim, base, "interleaved")
            flat = side_by_side(module, x)[:, None]
            return (
                rope(flat, flat, positions)[0][:, 0]
                .unflatten(-1, (module.num_heads, -1))
                .transpose(1, 2)
            )

        return whole(q), whole(k), v

    return variant(dim, num_heads, base, turn=turn)


def attention_without_base(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    from solutions.with_torch.kv_cache import CausalSelfAttention

    CausalSelfAttention(dim, num_heads, base)
    return variant(dim, num_heads, 10000.0)


def attention_without_projection(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    return variant(dim, num_heads, base, finish=lambda module, mixed: mixed)


def attention_with_biases(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """`nn.Linear` as it comes; its biases are zeros here, so that only their being there shows."""
    import torch

    def setup(module: Any) -> None:
        for name, rows in (("qkv", 3 * dim), ("proj", dim)):
            linear = torch.nn.Linear(dim, rows)
            torch.nn.init.zeros_(linear.bias)
            setattr(module, name, linear)

    return variant(dim, num_heads, base, setup=setup)


def attention_frozen(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    return variant(dim, num_heads, base, setup=lambda module: module.requires_grad_(False))


def attention_heads_rounded(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """dim // num_heads, whatever remains."""
    from solutions.with_torch.kv_cache import CausalSelfAttention

    if not isinstance(dim, int) or num_heads < 1:
        raise ValueError("no heads")
    if dim % (2 * num_heads) == 0:
        return CausalSelfAttention(dim, num_heads, base)
    width = max(dim // num_heads // 2, 1) * 2
    return CausalSelfAttention(width * num_heads, num_heads, base)


def attention_keeps_the_cache(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """The module remembers the sequence itself, and looks at the argument only to start anew."""
    from solutions.with_torch.kv_cache import CausalSelfAttention

    right_module = CausalSelfAttention(dim, num_heads, base)
    forward = right_module.forward
    kept: list[Any] = [None]

    def remembering(x: Any, cache: Any = None) -> Any:
        y, kept[0] = forward(x, None if cache is None else kept[0])
        return y, kept[0]

    right_module.forward = remembering  # type: ignore[method-assign]
    return right_module


def attention_counts_itself(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """Keys are in the cache, but the position is an attribute of the module."""

    def setup(module: Any) -> None:
        module.position = 0

    def places(module: Any, past: int, seq: int) -> Any:
        start = module.position if past else 0
        module.position = start + seq
        return from_past(module, start, seq)

    return variant(dim, num_heads, base, setup=setup, places=places)


def attention_window(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """VeloxQuant-MLX#171, #389: rows are dropped, and the position is the number of those left."""

    def join(module: Any, old: Any, new: Any) -> Any:
        return joined(module, old[:, :, -64:], new)

    def places(module: Any, past: int, seq: int) -> Any:
        return from_past(module, min(past, 64), seq)

    return variant(dim, num_heads, base, join=join, places=places)


def attention_float32_results(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    import torch

    def finish(module: Any, mixed: Any) -> Any:
        y = module.proj(mixed)
        return y.to(torch.promote_types(y.dtype, torch.float32))

    return variant(dim, num_heads, base, finish=finish)


def turn_by(x: Any, angles: Any) -> Any:
    """Rotate x (batch, heads, seq, head_dim) by angles (seq, head_dim/2)."""
    from solutions.with_torch.rope import rotate_pairs

    return rotate_pairs(x, angles.cos(), angles.sin(), "interleaved")


def ladder(dim: int, base: float) -> Any:
    import torch

    return base ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)


def attention_positions_like_x(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    def turn(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
        where = positions.to(module.qkv.weight.dtype).to(positions.device)
        angles = where.float()[:, None] * ladder(dim // num_heads, base)
        return turn_by(q, angles), turn_by(k, angles), v

    return variant(dim, num_heads, base, turn=turn)


def attention_angles_rounded(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """gpt-neox#1003: angles are exact until they get the dtype of the model."""

    def turn(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
        angles = positions.float()[:, None] * ladder(dim // num_heads, base)
        angles = angles.to(module.qkv.weight.dtype)
        return turn_by(q, angles), turn_by(k, angles), v

    return variant(dim, num_heads, base, turn=turn)


def attention_buffer_cast(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """transformers#25681, #29496: casting the module casts its table of frequencies."""

    def setup(module: Any) -> None:
        module.register_buffer("per_pair", ladder(dim // num_heads, base), persistent=False)

    def turn(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
        angles = positions.float()[:, None] * module.per_pair.float()
        return turn_by(q, angles), turn_by(k, angles), v

    return variant(dim, num_heads, base, setup=setup, turn=turn)


def attention_tables_cast(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """Tables of cosines and sines in buffers. In bfloat16 nobody sees what a cast does to them."""
    import torch

    from solutions.with_torch.rope import rotate_pairs

    def setup(module: Any) -> None:
        angles = torch.arange(4096)[:, None] * ladder(dim // num_heads, base)
        module.register_buffer("cos", angles.cos(), persistent=False)
        module.register_buffer("sin", angles.sin(), persistent=False)

    def turn(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
        cos, sin = module.cos[positions], module.sin[positions]
        q, k = (rotate_pairs(x, cos, sin, "interleaved") for x in (q, k))
        return q, k, v

    return variant(dim, num_heads, base, setup=setup, turn=turn)


def attention_matrix_product(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """diffusers#13920: under autocast a matrix product of two float32 operands is bfloat16."""

    def turn(module: Any, q: Any, k: Any, v: Any, positions: Any) -> Any:
        angles = (positions.float()[:, None] @ ladder(dim // num_heads, base)[None]).float()
        return turn_by(q, angles), turn_by(k, angles), v

    return variant(dim, num_heads, base, turn=turn)


def attention_in_place(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """The result is written over the tokens that came in."""
    from solutions.with_torch.kv_cache import CausalSelfAttention

    module = CausalSelfAttention(dim, num_heads, base)
    forward = module.forward

    def overwriting(x: Any, cache: Any = None) -> Any:
        y, cache = forward(x.clone(), cache)
        x.copy_(y.detach())
        return y, cache

    module.forward = overwriting  # type: ignore[method-assign]
    return module


def attention_broadcasts_the_cache(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    """transformers#46612: the rows of the cache are not those of the hypotheses. One row serves
    all, and too many are cut to the first.
    """

    def join(module: Any, old: Any, new: Any) -> Any:
        rows = len(new)
        old = old.expand(rows, -1, -1, -1) if len(old) == 1 else old[:rows]
        return joined(module, old, new)

    return variant(dim, num_heads, base, join=join, same_batch=False)


def attention_without_gradients(dim: int, num_heads: int, base: float = 10000.0) -> Any:
    from solutions.with_torch.kv_cache import CausalSelfAttention

    module = CausalSelfAttention(dim, num_heads, base)
    forward = module.forward

    def cut(x: Any, cache: Any = None) -> Any:
        y, cache = forward(x, cache)
        return y.detach(), cache

    module.forward = cut  # type: ignore[method-assign]
    return module


CAUSAL_SELF_ATTENTION = (
    Misconception(
        "causal-self-attention-queries-only",
        attention_queries_only,
        "causal_self_attention_published_number",
        "The keys were not rotated. Rotate both: only then does the score depend on the distance "
        "between the two tokens.",
        "cache-why",
    ),
    Misconception(
        "causal-self-attention-without-rope",
        attention_without_rope,
        "causal_self_attention_published_number",
        "Neither queries nor keys were rotated, so the scores know nothing of positions.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-rotates-values",
        attention_rotates_values,
        "causal_self_attention_published_number",
        "The values were rotated too. They carry content, and no later rotation takes that turn "
        "back; only queries and keys are turned.",
        "cache-why",
    ),
    Misconception(
        "causal-self-attention-without-scale",
        attention_without_scale,
        "causal_self_attention_published_number",
        "The scores were not divided by √head_dim, so the softmax is too sharp.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-order-of-rows",
        attention_order_of_rows,
        "causal_self_attention_published_number",
        "Queries and keys have changed places. The rows of qkv.weight make q first, then k, "
        "then v.",
        "ex-CausalSelfAttention",
    ),
    Misconception(
        "causal-self-attention-scale-of-the-model",
        attention_scale_of_the_model,
        "causal_self_attention_full_pass",
        "The scores were divided by √dim. What counts is the width of one head, head_dim, since "
        "that many products are added up.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-sees-the-future",
        attention_sees_the_future,
        "causal_self_attention_full_pass",
        "Tokens attend to later ones. In decoding those do not exist yet, so the prompt must not "
        "see them either.",
        "cache-prefill",
    ),
    Misconception(
        "causal-self-attention-heads-outermost",
        attention_heads_outermost,
        "causal_self_attention_full_pass",
        "You took q, k and v of each head from neighbouring rows. Here all rows of q come first, "
        "then all of k, then all of v, with the heads inside each.",
        "ex-CausalSelfAttention",
    ),
    Misconception(
        "causal-self-attention-heads-interleaved",
        attention_heads_interleaved,
        "causal_self_attention_full_pass",
        "The coordinates of a head were taken from every num_heads-th row. Its rows are "
        "neighbours: the first head_dim of them are head 0.",
        "ex-CausalSelfAttention",
    ),
    Misconception(
        "causal-self-attention-heads-from-tokens",
        attention_heads_from_tokens,
        "causal_self_attention_full_pass",
        "The heads were cut out of runs of tokens: a reshape moved numbers from one token to "
        "another. Split the last axis into heads first, then exchange axes.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-merged-without-transpose",
        attention_merged_without_transpose,
        "causal_self_attention_full_pass",
        "The heads were put together in the wrong order: bring each token's heads side by side "
        "again before the last two axes become one.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-turned-whole",
        attention_turned_whole,
        "causal_self_attention_full_pass",
        "The rotation ran through the whole width, so every head got other frequencies. Split "
        "into heads first: each has the full ladder of its own width.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-ignores-base",
        attention_without_base,
        "causal_self_attention_full_pass",
        "The base given at construction changes nothing: every module turns as with base 10000.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-without-projection",
        attention_without_projection,
        "causal_self_attention_full_pass",
        "The heads' results came back as they are, without proj. It mixes the heads, and comes "
        "last.",
        "ex-CausalSelfAttention",
    ),
    Misconception(
        "causal-self-attention-starts-at-zero",
        attention_starts_at_zero,
        "causal_self_attention_decode",
        "With a cache the new tokens were rotated from position 0 on again. The first of them "
        "stands where the cache ends.",
        "cache-position",
    ),
    Misconception(
        "causal-self-attention-one-too-high",
        attention_one_too_high,
        "causal_self_attention_decode",
        "After a cache every position is one too high, which leaves a gap behind the prompt. "
        "With five tokens in the cache, 0 to 4, the next position is 5.",
        "cache-position",
    ),
    Misconception(
        "causal-self-attention-counts-calls",
        attention_counts_calls,
        "causal_self_attention_decode",
        "The position counts calls. A call may bring many tokens, so count those: it is the "
        "number of keys in the cache.",
        "cache-position",
    ),
    Misconception(
        "causal-self-attention-rotates-again",
        attention_rotates_again,
        "causal_self_attention_decode",
        "The keys of the cache were rotated a second time. Each was turned by its own position "
        "before it was stored; after that nothing turns it.",
        "cache-why",
    ),
    Misconception(
        "causal-self-attention-query-at-zero",
        attention_query_at_zero,
        "causal_self_attention_decode",
        "The new keys stand where the cache ends, but the new queries were rotated from position 0 "
        "on. A token's query and key have one position.",
        "cache-position",
    ),
    Misconception(
        "causal-self-attention-keys-turn-each-step",
        attention_keys_turn_each_step,
        "causal_self_attention_decode",
        "The keys of the cache turn on with every call: they are rotated after the new ones were "
        "joined to them, and stored like that. Rotate the new keys alone, before they are joined.",
        "cache-why",
    ),
    Misconception(
        "causal-self-attention-mask-top-left",
        attention_mask_top_left,
        "causal_self_attention_decode",
        "The triangle of your mask begins at the first key in the cache, as with is_causal=True. "
        "Query i of a piece may see the whole cache and the first i + 1 new keys.",
        "cache-prefill",
    ),
    Misconception(
        "causal-self-attention-mask-in-prompt-only",
        attention_mask_in_prompt_only,
        "causal_self_attention_chunks",
        "With a cache your piece has no mask, so its tokens see the ones after them. For a single "
        "token that is right; several need a triangle behind the cache.",
        "cache-prefill",
    ),
    Misconception(
        "causal-self-attention-mask-if-several",
        attention_mask_if_several,
        "causal_self_attention_chunks",
        "A piece of several tokens after a cache gets a triangle that begins at the first key of "
        "the cache. Shift it by the number of tokens in the cache.",
        "cache-prefill",
    ),
    Misconception(
        "causal-self-attention-with-biases",
        attention_with_biases,
        "causal_self_attention_parameters",
        "The projections have biases. Only the two weights are asked for: a bias would be a part "
        "of q and k that turns with the position whatever the token is.",
        "ex-CausalSelfAttention",
    ),
    Misconception(
        "causal-self-attention-frozen",
        attention_frozen,
        "causal_self_attention_parameters",
        "The weights do not ask for gradients, so nothing would be trained. Make them parameters, "
        "as nn.Linear does.",
        "ex-CausalSelfAttention",
    ),
    Misconception(
        "causal-self-attention-heads-rounded",
        attention_heads_rounded,
        "causal_self_attention_refuses_heads",
        "A dim that cannot be shared out among the heads, or leaves them an odd width, was rounded "
        "off. Refuse it when the module is made: later it shows only as a strange shape.",
        "ex-CausalSelfAttention",
    ),
    Misconception(
        "causal-self-attention-keeps-the-cache",
        attention_keeps_the_cache,
        "causal_self_attention_two_sequences",
        "The module keeps the cache itself, so a second sequence goes on where another one was. "
        "What is known of a sequence must be in the cache that is passed in.",
        "cache-beams",
    ),
    Misconception(
        "causal-self-attention-counts-itself",
        attention_counts_itself,
        "causal_self_attention_two_sequences",
        "The position is an attribute of the module, so two sequences in turn push each other on. "
        "The cache that is passed in knows how many tokens there were.",
        "cache-position",
    ),
    Misconception(
        "causal-self-attention-window",
        attention_window,
        "causal_self_attention_bfloat16_far_out",
        "Old keys were dropped, and the position was taken from the rows that are left. No window "
        "was asked for; and a window changes what is seen, not how many tokens there were.",
        "cache-windows",
    ),
    Misconception(
        "causal-self-attention-float32-results",
        attention_float32_results,
        "causal_self_attention_dtypes",
        "A bfloat16 input came back as float32. Compute inside as finely as you like, but return "
        "the dtype that came in.",
        "ex-CausalSelfAttention",
    ),
    Misconception(
        "causal-self-attention-positions-like-x",
        attention_positions_like_x,
        "causal_self_attention_bfloat16_far_out",
        "The positions were cast to the dtype of the weights, and bfloat16 cannot tell 1000 from "
        "1001. Angles need float32 at least; cast only what comes out.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-angles-rounded",
        attention_angles_rounded,
        "causal_self_attention_bfloat16_far_out",
        "The angles were cast to the dtype of the weights before sine and cosine were taken. A "
        "large angle has no digits left in bfloat16: cast after the sine.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-buffer-cast",
        attention_buffer_cast,
        "causal_self_attention_bfloat16_far_out",
        "Your frequencies are a buffer or a parameter, and casting the module rounded them for "
        "good. Keep them where a cast cannot reach, or compute them in forward.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-tables-cast",
        attention_tables_cast,
        "causal_self_attention_cast_and_back",
        "Your cosines and sines are buffers, and casting the module rounded them for good. Keep "
        "them where a cast cannot reach, or compute them in forward.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-matrix-product",
        attention_matrix_product,
        "causal_self_attention_autocast",
        "The angles came from a matrix product, and autocast runs those in bfloat16 whatever you "
        "cast before. Multiply elementwise, or switch autocast off there.",
        "cache-module",
    ),
    Misconception(
        "causal-self-attention-in-place",
        attention_in_place,
        "causal_self_attention_leaves_input",
        "x was overwritten with the result. The residual connection around attention still needs "
        "it: return a new tensor.",
        "ex-CausalSelfAttention",
    ),
    Misconception(
        "causal-self-attention-broadcasts-the-cache",
        attention_broadcasts_the_cache,
        "causal_self_attention_refuses_inputs",
        "A cache of another batch was stretched or cut to fit. Its rows belong to certain "
        "sequences: refuse, and let the caller choose the rows when the batch changes.",
        "cache-beams",
    ),
    Misconception(
        "causal-self-attention-cuts-gradients",
        attention_without_gradients,
        "causal_self_attention_gradients",
        "The numbers are right, but no gradient arrives at x and the weights: the result was "
        "detached, or made without gradients. Nothing that stands before it could be trained.",
        "ex-CausalSelfAttention",
    ),
)

# A layout changes every number, so the commonest mistakes are known in both.
IN_HALF = tuple(
    Misconception(f"{m.id}-in-half", in_half(m.wrong), m.caught_by, m.message, m.section)
    for m in CAUSAL_SELF_ATTENTION
    if m.wrong
    in (
        attention_starts_at_zero,
        attention_query_at_zero,
        attention_rotates_again,
        attention_keys_turn_each_step,
    )
)

MISCONCEPTIONS: dict[str, tuple[Misconception, ...]] = {
    "rope_tables": ROPE_TABLES,
    "rope_with_offset": ROPE_WITH_OFFSET,
    "KVCache": KV_CACHE,
    "decode_step": DECODE_STEP,
    "left_pad_positions": LEFT_PAD_POSITIONS,
    "packed_positions": PACKED_POSITIONS,
    "rerotate_keys": REROTATE_KEYS,
    "fixed_decode": FIXED_DECODE,
    "CausalSelfAttention": (*CAUSAL_SELF_ATTENTION, *IN_HALF),
}

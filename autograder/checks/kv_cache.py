"""Checks of the chapter on generating with a cache of keys and values.

What a cache must give is what one pass over all tokens gives, so most expected values here are
that pass, computed below from the equation with complex numbers. Prompts are stored in bulk, pieces
have odd lengths and offsets, and the base is no default: a wrong position hides behind all of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers import Answers
from ..assertions import (
    CheckFailed,
    agrees,
    as_array,
    close,
    equal,
    good_input,
    instance,
    leaves_inputs,
    pair,
    refuses,
    same_dtype,
    shaped,
    tolerance,
    unchanged,
)
from ..exercise import Exercise, behaviour
from ..replies import Gone, StudentError

if TYPE_CHECKING:
    import torch

EXERCISES = (
    Exercise("kv_cache", "rope_tables", 1),
    Exercise("kv_cache", "rope_with_offset", 3),
    Exercise("kv_cache", "KVCache", 3),
    Exercise("kv_cache", "decode_step", 4, needs=("KVCache",)),
    Exercise("kv_cache", "left_pad_positions", 2),
    Exercise("kv_cache", "packed_positions", 1),
    Exercise("kv_cache", "rerotate_keys", 3),
    Exercise("kv_cache", "fixed_decode", 2),
    Exercise("kv_cache", "CausalSelfAttention", 4, "with_torch"),
)

# One query and one key, and what public libraries make of them at positions 5 and 3.
Q, K = np.array([[1.0, 0.5, -0.5, 2.0]]), np.array([[0.5, 1.0, 1.5, -1.0]])
Q_AT_5 = [[0.76312435, -0.81709319, -0.59933347, 1.97251093]]
K_AT_3 = [[-0.63611627, -0.91943252, 1.52932047, -0.95455682]]
DOT_PRODUCT = -2.533620451494303  # of the two, before any scaling
HALF_DOT_PRODUCT = 0.14561052934852942  # of the two in the half layout
PUBLISHED = 1e-6  # those libraries compute in float32


def room(x: Any, places: Any, dtype: str = "float64", *, exact: bool = False) -> float:
    """Tolerance for numbers the size of x's, turned by angles up to the largest of these.

    Angles must be exact to float64 only where a check is about that: elsewhere coarser tables cost
    no points a second time.
    """
    largest, angle = np.abs(x).max(initial=1.0), np.abs(places).max(initial=0.0)
    held = "float64" if exact else "float32"
    return tolerance(dtype, angle=float(angle), scale=float(largest), angle_dtype=held)


def turned(x: np.ndarray, places: Any, base: float = 10000.0) -> np.ndarray:
    """x (n, dim) rotated by its positions: each pair of neighbours is a complex number."""
    dim = x.shape[-1]
    angles = np.multiply.outer(
        np.asarray(places, dtype=float), base ** -(np.arange(0, dim, 2) / dim)
    )
    pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)


def attended(scores: np.ndarray, v: np.ndarray) -> np.ndarray:
    """softmax(scores)·v, one row for each row of scores."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights @ v / weights.sum(axis=-1, keepdims=True)


def full_pass(qkv: Any, base: float) -> np.ndarray:
    """Causal attention of all tokens at once, at the positions 0 … n − 1."""
    q, k, v = qkv
    n, dim = q.shape
    scores = turned(q, range(n), base) @ turned(k, range(n), base).T / dim**0.5
    scores[np.triu_indices(n, 1)] = -np.inf
    return attended(scores, v)


def attention_room(qkv: Any, places: Any, dtype: str = "float64", *, exact: bool = False) -> float:
    """Tolerance for attention: a score that is off by a little moves every weight by as much."""
    q, k, v = qkv
    score = (np.abs(q) @ np.abs(k).T).max(initial=0.0) / np.shape(q)[-1] ** 0.5
    return room(2 * (1 + score) * np.abs(v).max(initial=1.0), places, dtype, exact=exact)


def whole_numbers(value: Any, *, what: str = "the result") -> None:
    """`value` is an array of an integer dtype."""
    name = str(getattr(value, "dtype", type(value).__name__))
    if not name.startswith(("int", "uint")):
        raise CheckFailed(f"{what}: the dtype is {name}, but positions here are integers.")


# -------------------------------------------------------------------------------- rope_tables


def tables_agree(
    student: Answers,
    reference: Answers,
    max_len: int,
    dim: int,
    *base: float,
    exact: bool = False,
) -> None:
    expected = pair(reference.rope_tables(max_len, dim, *base))
    result = pair(student.rope_tables(max_len, dim, *base))
    for name, mine, right in zip(("cosines", "sines"), result, expected, strict=True):
        what = f"the table of {name}"
        close(mine, right, room(1.0, max_len, exact=exact), what=what)
        if exact:
            same_dtype(mine, "float64", what=what)


@behaviour("rope_tables", weight=2)
def check_rope_tables_known_rows(student: Answers, reference: Answers, rng: Any) -> None:
    """Row m holds the cosines, and the sines, of position m: 1 and 0 in row 0, known ones in 3."""
    cos, sin = pair(student.rope_tables(6, 4), what="the tables")
    cos = shaped(cos, (6, 2), what="the table of cosines")
    sin = shaped(sin, (6, 2), what="the table of sines")
    known_cos = [[1.0, 1.0], [-0.989992497, 0.999550034], [0.283662185, 0.998750260]]
    known_sin = [[0.0, 0.0], [0.141120008, 0.029995500], [-0.958924275, 0.049979169]]
    close(cos[[0, 3, 5]], known_cos, 1e-5, what="rows 0, 3 and 5 of the cosines")
    close(sin[[0, 3, 5]], known_sin, 1e-5, what="rows 0, 3 and 5 of the sines")


@behaviour("rope_tables")
def check_rope_tables_other_base(student: Answers, reference: Answers, rng: Any) -> None:
    """Any base, any even dim and any number of rows work, a single one too."""
    for max_len, dim in ((int(rng.integers(20, 40)), 10), (1, 6)):
        tables_agree(student, reference, max_len, dim, float(rng.integers(40, 900)))


@behaviour("rope_tables")
def check_rope_tables_refuse_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is odd or not positive is a ValueError that names it."""
    with good_input():
        tables_agree(student, reference, 7, 8)
    for dim in (13, -6, 0):
        because = "a width that is odd or not positive"
        named = (str(dim),)
        refuses(student.rope_tables, 7, dim, error="ValueError", naming=named, because=because)


@behaviour("rope_tables")
def check_rope_tables_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """Both tables are float64, and exact to float64 in their last rows too."""
    rows = int(rng.integers(4200, 4600))
    tables_agree(student, reference, rows, 6, 20_000.5, exact=True)


@behaviour("rope_tables")
def check_rope_tables_refuse_others(student: Answers, reference: Answers, rng: Any) -> None:
    """A negative max_len raises, 0 does not; a base that is not positive is a ValueError."""
    with good_input():
        tables_agree(student, reference, 7, 8, 50.0)
    tables_agree(student, reference, 0, 8, 50.0)
    for length in (-1, -7):
        refuses(student.rope_tables, length, 8, 50.0, because="a negative number of rows")
    for base in (0.0, -50.0):
        because = "a base that is not positive"
        refuses(student.rope_tables, 7, 8, base, error="ValueError", because=because)


@behaviour("rope_tables", hidden=True)
def check_rope_tables_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """A single pair, a wide vector, and as many rows as pairs work too."""
    for max_len, dim in ((9, 2), (7, 64), (5, 10), (1, 2)):
        tables_agree(student, reference, max_len, dim, float(rng.integers(40, 900)))


# --------------------------------------------------------------------------- rope_with_offset


def tables(max_len: int, dim: int, base: float = 10000.0) -> tuple[np.ndarray, np.ndarray]:
    """Tables to hand to an answer."""
    angles = np.multiply.outer(np.arange(max_len), base ** -(np.arange(0, dim, 2) / dim))
    turned = np.exp(1j * angles)
    return turned.real, turned.imag


@behaviour("rope_with_offset", weight=2)
def check_rope_with_offset_published_numbers(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A single token at offset 5, or 3, becomes the published vector of that position."""
    cos, sin = tables(8, 4)
    close(student.rope_with_offset(Q, cos, sin, 5), Q_AT_5, PUBLISHED)
    close(student.rope_with_offset(K, cos, sin, 3), K_AT_3, PUBLISHED)


@behaviour("rope_with_offset", weight=2)
def check_rope_with_offset_many_tokens(student: Answers, reference: Answers, rng: Any) -> None:
    """Token t of the piece turns by row offset + t of the tables that were given."""
    x, offset = rng.standard_normal((5, 8)), int(rng.integers(4, 14))
    inputs = (x, *tables(19, 8, 500.0), offset)
    agrees(student, reference, "rope_with_offset", *inputs, atol=room(x, 19))


@behaviour("rope_with_offset")
def check_rope_with_offset_from_zero(student: Answers, reference: Answers, rng: Any) -> None:
    """Without an offset the piece starts at position 0."""
    x = rng.standard_normal((5, 6))
    inputs = (x, *tables(11, 6, 90.0))
    agrees(student, reference, "rope_with_offset", *inputs, atol=room(x, 5))


@behaviour("rope_with_offset")
def check_rope_with_offset_leading_axes(student: Answers, reference: Answers, rng: Any) -> None:
    """Batch and heads share the positions of the sequence axis, which is the last but one."""
    for shape in ((2, 3, 5, 8), (3, 4, 6)):
        x = rng.standard_normal(shape)
        inputs = (x, *tables(17, shape[-1], 300.0), int(rng.integers(3, 12)))
        agrees(student, reference, "rope_with_offset", *inputs, atol=room(x, 17))


@behaviour("rope_with_offset", weight=2)
def check_rope_with_offset_tables_run_out(student: Answers, reference: Answers, rng: Any) -> None:
    """Tables that end before the piece does are a ValueError, also where one row is left."""
    x, (cos, sin) = rng.standard_normal((5, 8)), tables(9, 8, 70.0)
    with good_input():
        agrees(student, reference, "rope_with_offset", x, cos, sin, 4, atol=room(x, 9))
    because = "the tables have too few rows"
    for offset in (5, 8, 6, 9, 10, 40):
        refuses(student.rope_with_offset, x, cos, sin, offset, error="ValueError", because=because)
    for offset in (9, 10):
        inputs = (x[:1], cos, sin, offset)
        refuses(student.rope_with_offset, *inputs, error="ValueError", because=because)
    refuses(student.rope_with_offset, x, cos[:1], sin[:1], error="ValueError", because=because)


@behaviour("rope_with_offset")
def check_rope_with_offset_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer input gives a float64 result with its fractions kept."""
    x = rng.integers(1, 9, (5, 8))
    for given in ("int64", "uint8"):
        inputs = (x.astype(given), *tables(12, 8, 200.0), 6)
        allowed = room(x, 12)
        agrees(student, reference, "rope_with_offset", *inputs, atol=allowed, dtype="float64")


@behaviour("rope_with_offset")
def check_rope_with_offset_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """x and the tables that went in are still what they were."""
    inputs, names = (rng.standard_normal((5, 8)), *tables(9, 8, 60.0), 3), ("x", "cos", "sin")
    allowed = room(inputs[0], 9)
    leaves_inputs(student, reference, "rope_with_offset", *inputs, names=names, atol=allowed)


@behaviour("rope_with_offset", weight=2)
def check_rope_with_offset_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has x's floating dtype, whatever the dtype of the tables."""
    for dtype in ("float32", "float16", "float64"):
        for held in ("float64", "float32"):
            x = rng.standard_normal((3, 5, 6)).astype(dtype)
            cos, sin = (table.astype(held) for table in tables(12, 6, 40.0))
            allowed = room(x, 12, dtype, exact=held == "float64")
            inputs = (x, cos, sin, 7)
            agrees(student, reference, "rope_with_offset", *inputs, atol=allowed, dtype=dtype)


@behaviour("rope_with_offset", weight=2)
def check_rope_with_offset_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """Offsets such as -1 and 2.5 raise, so do tables of other widths; odd dim: a ValueError."""
    x, (cos, sin) = rng.standard_normal((3, 8)), tables(12, 8, 70.0)
    rotate = student.rope_with_offset
    with good_input():
        agrees(student, reference, "rope_with_offset", x, cos, sin, 4, atol=room(x, 12))
    for offset in (-1, -3, -5, -12, -20):
        refuses(rotate, x, cos, sin, offset, because="a negative offset")
    for part in (2.5, 0.5):
        refuses(rotate, x, cos, sin, part, because="an offset that is no whole number")
    for dim in (2, 6, 16):
        refuses(rotate, x, *tables(12, dim, 70.0), 4, because="tables of another width")
    for dim, width in ((7, 6), (7, 8), (1, 2)):
        because, named = "a width that is odd", (str(dim),)
        inputs = (x[:, :dim], *tables(12, width, 70.0), 4)
        refuses(rotate, *inputs, error="ValueError", naming=named, because=because)
    refuses(rotate, x[:, :0], cos[:, :0], sin[:, :0], error="ValueError", because="a width of 0")


@behaviour("rope_with_offset", hidden=True)
def check_rope_with_offset_pieces(student: Answers, reference: Answers, rng: Any) -> None:
    """A sequence cut into pieces, up to the last row of the tables, turns as it does whole."""
    x, (cos, sin) = rng.standard_normal((2, 11, 8)), tables(14, 8, 800.0)
    whole = turned(x, np.arange(3, 14), 800.0)
    for start, end in ((0, 4), (4, 5), (5, 5), (5, 11)):
        piece = student.rope_with_offset(x[:, start:end], cos, sin, 3 + start)
        close(piece, whole[:, start:end], room(x, 14), what=f"tokens {start} to {end - 1}")


@behaviour("rope_with_offset", hidden=True)
def check_rope_with_offset_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """A single pair, a wide vector, and axes of equal length all work."""
    for shape in ((5, 2), (3, 64), (4, 4), (4, 8), (2, 1, 6), (5, 5, 5, 10), (4, 4, 4, 4)):
        x, offset = rng.standard_normal(shape), int(rng.integers(1, 9))
        for spare in (0, 3):
            max_len = offset + shape[-2] + spare
            inputs = (x, *tables(max_len, shape[-1], 30.0), offset)
            agrees(student, reference, "rope_with_offset", *inputs, atol=room(x, 15))


# ------------------------------------------------------------------------------------ KVCache


def new_cache(answers: Answers) -> Any:
    """A cache with nothing in it: of one that shares its rows, what others left there is gone."""
    cache = instance(answers.KVCache(), what="KVCache()")
    try:
        with answers.aside():
            held = cache.method("__len__")
            if not isinstance(held, int) or held != 0:
                cache.method("truncate", 0)
    except StudentError as error:  # another check is about that
        if isinstance(error, Gone):
            raise
    return cache


def tokens(rng: Any, n: int, d_k: int = 4, d_v: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Keys and values of n tokens, of different widths."""
    return rng.standard_normal((n, d_k)), rng.standard_normal((n, d_v))


def holds(cache: Any, k: Any, v: Any) -> None:
    """The cache holds exactly these keys and values."""
    if len(k):
        equal(cache.get("keys"), k, what="cache.keys")
        equal(cache.get("values"), v, what="cache.values")
    equal(cache.method("__len__"), len(k), what="len(cache)")


@behaviour("KVCache", weight=2)
def check_kv_cache_shares_nothing(student: Answers, reference: Answers, rng: Any) -> None:
    """Two caches share nothing: a token that is stored in one is not in the other."""
    first, second = new_cache(student), new_cache(student)
    first.method("append", *tokens(rng, 1))
    equal(second.method("__len__"), 0, what="the length of a cache in which nothing was stored")
    second.method("append", *tokens(rng, 1))
    equal(first.method("__len__"), 1, what="the length of the other cache")


@behaviour("KVCache", weight=2)
def check_kv_cache_in_order(student: Answers, reference: Answers, rng: Any) -> None:
    """Tokens appended three, one and two at a time come back in the order of their arrival."""
    cache, (k, v) = new_cache(student), tokens(rng, 6)
    equal(cache.method("__len__"), 0, what="the length of a new cache")
    for start, end in ((0, 3), (3, 4), (4, 6)):
        cache.method("append", k[start:end], v[start:end])
        holds(cache, k[:end], v[:end])


@behaviour("KVCache", weight=2)
def check_kv_cache_truncate(student: Answers, reference: Answers, rng: Any) -> None:
    """truncate(5) of eight tokens keeps the first five, and the next one comes after those."""
    cache, (k, v), more = new_cache(student), tokens(rng, 8), tokens(rng, 2)
    cache.method("append", k, v)
    cache.method("truncate", 5)
    holds(cache, k[:5], v[:5])
    cache.method("append", *more)
    holds(cache, np.concatenate([k[:5], more[0]]), np.concatenate([v[:5], more[1]]))


@behaviour("KVCache")
def check_kv_cache_refuses_truncate(student: Answers, reference: Answers, rng: Any) -> None:
    """Truncating to more tokens than there are, or to a negative number, is a ValueError."""
    cache, (k, v) = new_cache(student), tokens(rng, 5)
    with good_input():
        cache.method("append", k, v)
        cache.method("truncate", 4)
        holds(cache, k[:4], v[:4])

    def truncate(length: int) -> Any:
        return cache.method("truncate", length)

    for length in (5, 9, -1, -4, -9):
        because = f"truncate({length}) of 4 tokens"
        refuses(truncate, length, error="ValueError", because=because)
    holds(cache, k[:4], v[:4])


@behaviour("KVCache")
def check_kv_cache_no_tokens(student: Answers, reference: Answers, rng: Any) -> None:
    """Appending no tokens changes nothing, and a cache may be emptied and filled again."""
    cache, (k, v), (other_k, other_v) = new_cache(student), tokens(rng, 5), tokens(rng, 3)
    cache.method("append", k[:0], v[:0])
    equal(cache.method("__len__"), 0, what="len(cache)")
    cache.method("append", k, v)
    cache.method("append", k[:0], v[:0])
    cache.method("truncate", 5)
    holds(cache, k, v)
    cache.method("truncate", 0)
    equal(cache.method("__len__"), 0, what="the length of an emptied cache")
    cache.method("truncate", 0)
    cache.method("append", other_k, other_v)
    holds(cache, other_k, other_v)


@behaviour("KVCache")
def check_kv_cache_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """Keys and values keep their floating dtypes; integers at first cut no fractions off."""
    cache, (k, v) = new_cache(student), tokens(rng, 4)
    k, v = k.astype("float32"), v.astype("float32")
    for start in (0, 2):
        cache.method("append", k[start : start + 2], v[start : start + 2])
    holds(cache, k, v)
    for name in ("keys", "values"):
        same_dtype(cache.get(name), "float32", what=f"cache.{name}")
    for kinds in (("float32", "float64"), ("float64", "float32")):
        cache, (k, v) = new_cache(student), tokens(rng, 3)
        k, v = k.astype(kinds[0]), v.astype(kinds[1])
        cache.method("append", k, v)
        holds(cache, k, v)
        for name, kind in zip(("keys", "values"), kinds, strict=True):
            same_dtype(cache.get(name), kind, what=f"cache.{name}")
    cache, (k, v) = new_cache(student), tokens(rng, 3)
    cache.method("append", np.array([[3, 1, 4, 1]]), np.array([[5, 9, 2]]))
    cache.method("append", k, v)
    first = np.array([[3.0, 1, 4, 1]]), np.array([[5.0, 9, 2]])
    holds(cache, np.concatenate([first[0], k]), np.concatenate([first[1], v]))


@behaviour("KVCache")
def check_kv_cache_refuses_append(student: Answers, reference: Answers, rng: Any) -> None:
    """Keys and values of different numbers raise and change nothing; so do other widths."""
    cache, (k, v) = new_cache(student), tokens(rng, 5)
    with good_input():
        cache.method("append", k[:2], v[:2])
        holds(cache, k[:2], v[:2])

    def append(*given: Any) -> Any:
        return cache.method("append", *given)

    for n_k, n_v in ((3, 2), (1, 3), (3, 1), (0, 1), (2, 0)):
        refuses(append, k[:n_k], v[:n_v], because=f"{n_k} keys and {n_v} values")
        holds(cache, k[:2], v[:2])
    fresh = new_cache(student)
    because = "three keys and one value in a new cache"
    refuses(lambda *given: fresh.method("append", *given), k[:3], v[:1], because=because)
    for d_k, d_v in ((2, 3), (1, 3), (6, 3), (4, 1), (4, 2), (4, 4)):
        cache = new_cache(student)
        cache.method("append", k[:2], v[:2])
        wider_k, wider_v = np.tile(k[:1], 2)[:, :d_k], np.tile(v[:1], 2)[:, :d_v]
        because = f"widths {d_k} and {d_v} after 4 and 3"
        refuses(append, wider_k, wider_v, because=because)
        holds(cache, k[:2], v[:2])
    for given in ((k[0], v[0]), (k[0], v[:1]), (k[:1], v[0])):
        refuses(append, *given, because="keys or values without the axis of tokens")
        holds(cache, k[:2], v[:2])
    refuses(append, k[None, :1], v[None, :1], because="keys and values with an axis too many")
    holds(cache, k[:2], v[:2])


@behaviour("KVCache")
def check_kv_cache_copies(student: Answers, reference: Answers, rng: Any) -> None:
    """Keys and values are copied: the arrays that were appended may change afterwards."""
    # An argument arrives as a copy anyway. What can be changed later is memory that the answer has
    # itself, the keys of other caches; an answer that will not read it loses nothing.
    k, v = tokens(rng, 3)
    with good_input():
        holds(stocked(student, k, v), k, v)
    try:
        memories = [memory_of(stocked(student, each, v)) for each in (k, v)]
        cache = stocked(student, *memories)
        holds(cache, k, v)
        for memory in memories:
            memory.method("__setitem__", (0, 0), 99.0)
    except (CheckFailed, StudentError):
        return
    holds(cache, k, v)


@behaviour("KVCache", hidden=True)
def check_kv_cache_two_caches(student: Answers, reference: Answers, rng: Any) -> None:
    """Two caches that are filled in turn keep apart, and may differ in their widths."""
    caches = [new_cache(student) for _ in range(2)]
    widths = [(2, 5), (6, 1)]
    rows = [tokens(rng, 9, *width) for width in widths]
    for start, end in ((0, 2), (2, 3), (3, 7)):
        for cache, (k, v) in zip(caches, rows, strict=True):
            cache.method("append", k[start:end], v[start:end])
    caches[0].method("truncate", 4)
    for cache, (k, v), count in zip(caches, rows, (4, 7), strict=True):
        holds(cache, k[:count], v[:count])


def memory_of(cache: Any) -> Any:
    """The memory in which the keys of this cache lie just now."""
    return instance(cache.get("keys.data"), what="the memory of the keys")


@behaviour("KVCache", hidden=True)
def check_kv_cache_grows(student: Answers, reference: Answers, rng: Any) -> None:
    """Hundreds of tokens fit, with rollbacks in between, and reading changes nothing."""
    cache, (k, v) = new_cache(student), tokens(rng, 400, 4, 4)
    kept_k, kept_v = k[:0], v[:0]
    start = 0
    for size, back in ((150, 3), (1, 0), (40, 25), (1, 1), (200, 70), (8, 0)):
        kept_k = np.concatenate([kept_k, k[start : start + size]])
        kept_v = np.concatenate([kept_v, v[start : start + size]])
        cache.method("append", k[start : start + size], v[start : start + size])
        equal(cache.method("__len__"), len(kept_k), what="len(cache)")
        start += size
        kept_k, kept_v = kept_k[: len(kept_k) - back], kept_v[: len(kept_v) - back]
        cache.method("truncate", len(kept_k))
        holds(cache, kept_k, kept_v)
    holds(cache, kept_k, kept_v)


# -------------------------------------------------------------------------------- decode_step


def weights(
    rng: Any, d_model: int = 5, d_k: int = 4, d_v: int = 6
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """w_q, w_k and w_v, no two of one shape unless they must be."""
    w_q, w_k = rng.standard_normal((2, d_model, d_k))
    return w_q, w_k, rng.standard_normal((d_model, d_v))


def stocked(student: Answers, k: np.ndarray, v: np.ndarray) -> Any:
    """A cache of the student's that holds a prompt, stored in one go."""
    cache = new_cache(student)
    cache.method("append", k, v)
    return cache


def one_step(
    x: np.ndarray, w: tuple[np.ndarray, ...], k: np.ndarray, v: np.ndarray, base: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(result, all keys, all values) of one more token after a prompt of keys k and values v."""
    w_q, w_k, w_v = w
    key = turned(x[None] @ w_k, [len(k)], base)
    k, v = np.concatenate([k, key]), np.concatenate([v, x[None] @ w_v])
    scores = turned(x[None] @ w_q, [len(k) - 1], base) @ k.T / key.shape[1] ** 0.5
    return attended(scores, v)[0], k, v


def step_room(x: Any, w: Any, places: int, dtype: str = "float64", *, exact: bool = False) -> float:
    """Tolerance for steps on tokens x and on keys and values no larger than 4."""
    q, k, v = (np.atleast_2d(x) @ matrix for matrix in w)
    k = np.abs(k) + 4
    return attention_room((q, k, np.abs(v) + 4), places, dtype, exact=exact)


@behaviour("decode_step", weight=2)
def check_decode_step_worked_example(student: Answers, reference: Answers, rng: Any) -> None:
    """ "milk" at position 5 meets "chocolate" at 3 with the published score, divided by √4."""
    x = np.eye(5)[2]
    w_q, w_k, w_v = np.zeros((5, 4)), np.zeros((5, 4)), rng.standard_normal((5, 6))
    w_q[2] = Q[0]
    prompt, values = np.zeros((5, 4)), rng.standard_normal((5, 6))
    prompt[3] = K_AT_3[0]
    result = student.decode_step(x, w_q, w_k, w_v, stocked(student, prompt, values))
    scores = np.zeros((1, 6))
    scores[0, 3] = DOT_PRODUCT / 2
    expected = attended(scores, np.concatenate([values, w_v[2:3]]))[0]
    close(result, expected, room(8 * np.abs(expected).max(), 5))


@behaviour("decode_step", weight=3)
def check_decode_step_equals_full_pass(student: Answers, reference: Answers, rng: Any) -> None:
    """Token by token from an empty cache, each result is the row of the full causal pass."""
    x, w = rng.standard_normal((7, 5)), weights(rng)
    base = float(rng.integers(40, 900))
    expected = full_pass([x @ matrix for matrix in w], base)
    cache = new_cache(student)
    for t in range(7):
        result = student.decode_step(x[t], *w, cache, base)
        close(result, expected[t], step_room(x, w, 7), what=f"the result of token {t}")


@behaviour("decode_step", weight=2)
def check_decode_step_extends_cache(student: Answers, reference: Answers, rng: Any) -> None:
    """The cache gains one key, rotated by its position, and one value; the others stay."""
    (k, v), w, base = tokens(rng, 3, 4, 6), weights(rng), 300.0
    cache = stocked(student, k, v)
    for x in rng.standard_normal((2, 5)):
        _, k, v = one_step(x, w, k, v, base)
        student.decode_step(x, *w, cache, base)
        equal(cache.method("__len__"), len(k), what="len(cache) after the step")
        close(cache.get("keys"), k, room(k, 5), what="cache.keys")
        close(cache.get("values"), v, room(v, 0), what="cache.values")


@behaviour("decode_step")
def check_decode_step_leaves_inputs(student: Answers, reference: Answers, rng: Any) -> None:
    """The token and the three weights are still what they were: only the cache may change."""
    x, w, (k, v) = rng.standard_normal(5), weights(rng), tokens(rng, 2, 4, 6)
    expected, _, _ = one_step(x, w, k, v, 80.0)
    inputs = (x, *w, stocked(student, k, v), 80.0)
    result, after = student.decode_step.with_inputs(*inputs)
    names = ("x_t", "w_q", "w_k", "w_v")
    for what, now, before in zip(names, after, inputs, strict=False):
        unchanged(now, before, what=what)
    with good_input():
        close(result, expected, step_room(x, w, 3))


@behaviour("decode_step")
def check_decode_step_large_scores(student: Answers, reference: Answers, rng: Any) -> None:
    """Scores in the thousands do not overflow the softmax."""
    x, w = rng.standard_normal((5, 5)), weights(rng)
    w = (w[0] * 60, w[1] * 60, w[2])
    expected = full_pass([x @ matrix for matrix in w], 90.0)
    cache = new_cache(student)
    for t in range(5):
        result = student.decode_step(x[t], *w, cache, 90.0)
        close(result, expected[t], min(step_room(x, w, 5), 0.05), what=f"the result of token {t}")


@behaviour("decode_step")
def check_decode_step_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """float32 tokens give float32 results, and integers float64 ones, with fractions kept."""
    for given, wanted in (("float32", "float32"), ("int64", "float64")):
        scale = 1 if given == "float32" else 2
        x = (scale * rng.standard_normal((4, 5))).round(3 - 3 * (scale - 1)).astype(given)
        w = tuple(
            (scale * matrix).round(3 - 3 * (scale - 1)).astype(given) for matrix in weights(rng)
        )
        expected = full_pass([x.astype(float) @ matrix for matrix in w], 90.0)
        cache = new_cache(student)
        for t in range(4):
            result = student.decode_step(x[t], *w, cache, 90.0)
            what = f"the result of token {t}"
            close(result, expected[t], step_room(x.astype(float), w, 4, wanted), what=what)
            same_dtype(result, wanted, what=what)


@behaviour("decode_step")
def check_decode_step_far_out(student: Answers, reference: Answers, rng: Any) -> None:
    """Thousands of tokens into a sequence the position is exact, and no table runs out."""
    n, w, x = int(rng.integers(5000, 6000)), weights(rng, 5, 8, 2), rng.standard_normal((2, 5))
    k, v = rng.uniform(-3, 3, (n, 8)), rng.uniform(-3, 3, (n, 2))
    cache = stocked(student, k, v)
    for t in range(2):
        expected, k, v = one_step(x[t], w, k, v, 20_000.5)
        result = student.decode_step(x[t], *w, cache, 20_000.5)
        close(result, expected, step_room(x, w, n, exact=True))


@behaviour("decode_step", weight=2)
def check_decode_step_refuses_token(student: Answers, reference: Answers, rng: Any) -> None:
    """A token that is not (d_model,) raises, and the cache is then as it was."""
    w, (k, v), x = weights(rng), tokens(rng, 3, 4, 6), rng.standard_normal(5)
    expected, _, _ = one_step(x, w, k, v, 80.0)
    with good_input():
        cache = stocked(student, k, v)
        close(student.decode_step(x, *w, cache, 80.0), expected, step_room(x, w, 4))
    for shape in ((1, 5), (2, 5), (5, 1), (1, 1, 5), (4,), (6,), (1,), ()):
        cache, bad = stocked(student, k, v), rng.standard_normal(shape)
        because = f"a token of shape {shape} for weights of 5 rows"
        refuses(student.decode_step, bad, *w, cache, 80.0, because=because)
        holds(cache, k, v)


@behaviour("decode_step")
def check_decode_step_refuses_others(student: Answers, reference: Answers, rng: Any) -> None:
    """Weights that do not go together raise; an odd d_k, or a base ≤ 0, is a ValueError."""
    (w_q, w_k, w_v), (k, v), x = weights(rng), tokens(rng, 3, 4, 6), rng.standard_normal(5)
    expected, _, _ = one_step(x, (w_q, w_k, w_v), k, v, 80.0)
    step = student.decode_step
    with good_input():
        result = step(x, w_q, w_k, w_v, stocked(student, k, v), 80.0)
        close(result, expected, step_room(x, (w_q, w_k, w_v), 4))
    for bad in (
        (w_q[:, :2], w_k, w_v),
        (w_q, w_k[:, :2], w_v),
        (w_q[:4], w_k, w_v),
        (w_q, w_k[:4], w_v),
        (w_q, w_k, w_v[:4]),
        (w_q, w_k, w_v[:1]),
    ):
        because = "weights whose shapes do not go together"
        refuses(step, x, *bad, new_cache(student), 80.0, because=because)
    because = "a cache of other widths"
    for bad in (
        (w_q[:, :2], w_k[:, :2], w_v),
        (w_q, w_k, w_v[:, :2]),
        (w_q, w_k, w_v[:, :1]),
    ):
        cache = stocked(student, k, v)
        refuses(step, x, *bad, cache, because=because)
        holds(cache, k, v)
    odd = (x, w_q[:, :3], w_k[:, :3], w_v, new_cache(student))
    refuses(step, *odd, error="ValueError", naming=("3",), because="an odd d_k")
    for base in (0.0, -9.0):
        for count in (0, 3):
            cache = stocked(student, k[:count], v[:count])
            because, inputs = "a base that is not positive", (x, w_q, w_k, w_v, cache, base)
            refuses(step, *inputs, error="ValueError", because=because)
            holds(cache, k[:count], v[:count])


@behaviour("decode_step", weight=2, hidden=True)
def check_decode_step_after_prompt(student: Answers, reference: Answers, rng: Any) -> None:
    """After a prompt stored in bulk, steps go on as the full pass does, in any sizes."""
    for d_model, d_k, d_v, n in ((3, 2, 1, 4), (4, 4, 4, 4), (8, 6, 5, 9), (2, 16, 3, 5)):
        x, w = rng.standard_normal((n, d_model)), weights(rng, d_model, d_k, d_v)
        q, k, v = (x @ matrix for matrix in w)
        expected = full_pass((q, k, v), 60.0)
        cache = stocked(student, turned(k, range(n), 60.0)[: n - 2], v[: n - 2])
        for t in (n - 2, n - 1):
            result = student.decode_step(x[t], *w, cache, 60.0)
            close(result, expected[t], step_room(x, w, n), what=f"the result of token {t}")


@behaviour("decode_step", hidden=True)
def check_decode_step_rollback(student: Answers, reference: Answers, rng: Any) -> None:
    """Tokens that were truncated away leave no trace: the next one takes their position."""
    x, w = rng.standard_normal((9, 5)), weights(rng)
    accepted = [0, 1, 2, 6, 7, 8]
    expected = full_pass([x[accepted] @ matrix for matrix in w], 200.0)
    cache = new_cache(student)
    for t in range(6):
        student.decode_step(x[t], *w, cache, 200.0)
    cache.method("truncate", 3)
    for row, t in enumerate((6, 7, 8), start=3):
        result = student.decode_step(x[t], *w, cache, 200.0)
        close(result, expected[row], step_room(x, w, 9), what=f"the result at position {row}")


@behaviour("decode_step", hidden=True)
def check_decode_step_two_sequences(student: Answers, reference: Answers, rng: Any) -> None:
    """Two sequences decoded in turn, with caches and weights of their own, do not mix."""
    bases, lengths = (50.0, 700.0), (6, 4)
    x, w = [rng.standard_normal((n, 5)) for n in lengths], [weights(rng) for _ in lengths]
    expected = [full_pass([x[i] @ matrix for matrix in w[i]], base) for i, base in enumerate(bases)]
    caches = [new_cache(student) for _ in lengths]
    for which, t in ((0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (1, 2), (0, 3), (1, 3), (0, 4)):
        result = student.decode_step(x[which][t], *w[which], caches[which], bases[which])
        what = f"the result of token {t}"
        close(result, expected[which][t], step_room(x[which], w[which], 6), what=what)


# ------------------------------------------------------------------------- left_pad_positions


def padded(rng: Any, counts: Any, seq: int, right: Any = 0) -> tuple[np.ndarray, np.ndarray]:
    """(mask, positions) of rows with so many real tokens, `right` of the padding behind them."""
    counts, right = np.broadcast_arrays(counts, right)
    mask, positions = np.zeros((2, len(counts), seq), dtype=np.int64)
    for row, (count, behind) in enumerate(zip(counts, right, strict=True)):
        start = seq - behind - count
        mask[row, start : start + count] = 1
        positions[row, start : start + count] = np.arange(count)
    return mask, positions


@behaviour("left_pad_positions", weight=2)
def check_left_pad_positions_reported_mask(student: Answers, reference: Answers, rng: Any) -> None:
    """The mask 0 0 1 1 1 gives 0 0 0 1 2, beside rows with less padding or none."""
    mask = np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 1, 1, 1, 1]])
    expected = [[0, 1, 2, 3, 4], [0, 0, 0, 1, 2], [0, 0, 1, 2, 3]]
    equal(student.left_pad_positions(mask), expected)


@behaviour("left_pad_positions", weight=2)
def check_left_pad_positions_rows(student: Answers, reference: Answers, rng: Any) -> None:
    """Each row counts from 0 at its own first real token, and positions are integers."""
    counts = rng.permutation(np.arange(1, 10))[:6]
    mask, expected = padded(rng, counts, 9)
    result = student.left_pad_positions(mask)
    equal(result, expected)
    whole_numbers(result)


@behaviour("left_pad_positions")
def check_left_pad_positions_trailing(student: Answers, reference: Answers, rng: Any) -> None:
    """Padding behind the tokens gets 0 too."""
    mask, expected = padded(rng, rng.integers(2, 5, 4), 9, rng.integers(1, 5, 4))
    equal(student.left_pad_positions(mask), expected)


@behaviour("left_pad_positions")
def check_left_pad_positions_leave_mask(student: Answers, reference: Answers, rng: Any) -> None:
    """The mask that went in is still what it was."""
    mask, _ = padded(rng, rng.integers(3, 7, 3), 8)
    leaves_inputs(
        student, reference, "left_pad_positions", mask, names=("attention_mask",), atol=0.0
    )


@behaviour("left_pad_positions", weight=2)
def check_left_pad_positions_all_padding(student: Answers, reference: Answers, rng: Any) -> None:
    """A row of nothing but padding gets zeros, and the rows beside it are not disturbed."""
    for counts in ([0, 4, 0, 7, 1], [3, 0], [0], [0, 0, 0]):
        mask, expected = padded(rng, rng.permutation(counts), 7)
        equal(student.left_pad_positions(mask), expected)


@behaviour("left_pad_positions")
def check_left_pad_positions_refuse(student: Answers, reference: Answers, rng: Any) -> None:
    """A single row of a mask, without the axis of the batch, raises."""
    mask, expected = padded(rng, rng.integers(2, 6, 3), 7)
    with good_input():
        equal(student.left_pad_positions(mask), expected)
    refuses(student.left_pad_positions, mask[0], because="a mask of shape (7,)")


@behaviour("left_pad_positions", hidden=True)
def check_left_pad_positions_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """Square batches, one row, one column and padding on both sides all work."""
    for batch, seq in ((6, 6), (1, 9), (7, 1), (2, 12), (12, 3)):
        counts = rng.integers(1, seq + 1, batch)
        mask, expected = padded(rng, counts, seq, rng.integers(0, seq - counts + 1))
        equal(student.left_pad_positions(mask), expected)


@behaviour("left_pad_positions", hidden=True)
def check_left_pad_positions_small_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """A mask of 8-bit integers counts beyond 255 all the same."""
    for given in ("int8", "uint8", "int32"):
        mask, expected = padded(rng, rng.integers(270, 390, 3), 400, [0, 3, 1])
        result = student.left_pad_positions(mask.astype(given))
        equal(result, expected)
        whole_numbers(result)


# --------------------------------------------------------------------------- packed_positions


def restarted(lengths: list[int]) -> list[int]:
    return [position for length in lengths for position in range(length)]


def packed(student: Answers, lengths: list[int]) -> None:
    result = student.packed_positions(lengths)
    equal(result, np.array(restarted(lengths), dtype=np.int64))
    whole_numbers(result)


@behaviour("packed_positions", weight=2)
def check_packed_positions_restart(student: Answers, reference: Answers, rng: Any) -> None:
    """Each document starts at 0 again: lengths 3 and 2 give 0 1 2 0 1."""
    equal(student.packed_positions([3, 2]), [0, 1, 2, 0, 1])
    packed(student, [int(n) for n in rng.integers(2, 7, 5)])


@behaviour("packed_positions")
def check_packed_positions_no_tokens(student: Answers, reference: Answers, rng: Any) -> None:
    """A document of length 0 takes no place, wherever it stands."""
    lengths = [int(n) for n in rng.integers(2, 7, 2)]
    for places in ([0, *lengths], [*lengths, 0], [lengths[0], 0, 0, lengths[1]], [0, 1, 0, 1]):
        packed(student, places)


@behaviour("packed_positions")
def check_packed_positions_refuse(student: Answers, reference: Answers, rng: Any) -> None:
    """A negative length raises, and so do lengths that are not 1-D."""
    with good_input():
        packed(student, [4, 1, 2])
    for lengths in ([4, -1, 2], [-3], [5, -2], [-2, 5], [3, -3]):
        refuses(student.packed_positions, lengths, because="a document of negative length")
    refuses(student.packed_positions, [[3, 2], [1, 4]], because="lengths that are not 1-D")


@behaviour("packed_positions")
def check_packed_positions_empty(student: Answers, reference: Answers, rng: Any) -> None:
    """No documents, or none with tokens, give an integer array of length 0."""
    for lengths in ([], [0], [0, 0, 0]):
        packed(student, lengths)


@behaviour("packed_positions", hidden=True)
def check_packed_positions_many(student: Answers, reference: Answers, rng: Any) -> None:
    """One document, equal ones, long ones and many work alike."""
    many = [int(n) for n in rng.integers(0, 9, 40)]
    for lengths in ([6], [1], [1, 1, 1], [4, 4, 4], [700, 3, 300], many):
        packed(student, lengths)


# ------------------------------------------------------------------------------ rerotate_keys


@behaviour("rerotate_keys", weight=2)
def check_rerotate_keys_published_numbers(student: Answers, reference: Answers, rng: Any) -> None:
    """The published key of position 3 moves by −3 to where it came from, and back by 3."""
    close(student.rerotate_keys(np.array(K_AT_3), -3), K, 2 * PUBLISHED)
    close(student.rerotate_keys(np.repeat(K, 3, axis=0), 3), np.repeat(K_AT_3, 3, 0), PUBLISHED)


@behaviour("rerotate_keys", weight=2)
def check_rerotate_keys_as_if_made_there(student: Answers, reference: Answers, rng: Any) -> None:
    """Keys rotated at m and moved by delta are what they would be, rotated at m + delta."""
    originals, places = rng.standard_normal((5, 8)), np.array([9, 4, 31, 12, 5])
    for delta in (-4, 17):
        keys = turned(originals, places, 500.0)
        expected = turned(originals, places + delta, 500.0)
        result = student.rerotate_keys(keys, delta, 500.0)
        close(result, expected, room(originals, 50), what=f"the keys, moved by {delta},")


@behaviour("rerotate_keys")
def check_rerotate_keys_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer keys give a float64 result with its fractions kept."""
    keys = rng.integers(1, 9, (3, 6))
    inputs, allowed = (keys, 5, 70.0), room(keys, 5)
    agrees(student, reference, "rerotate_keys", *inputs, atol=allowed, dtype="float64")


@behaviour("rerotate_keys")
def check_rerotate_keys_leave_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The keys that went in are still what they were."""
    keys = rng.standard_normal((5, 8))
    inputs, allowed = (keys, -6, 60.0), room(keys, 6)
    leaves_inputs(student, reference, "rerotate_keys", *inputs, names=("keys",), atol=allowed)


@behaviour("rerotate_keys")
def check_rerotate_keys_fractions(student: Answers, reference: Answers, rng: Any) -> None:
    """delta may be a fraction, negative, or zero, and moves add up."""
    keys = rng.standard_normal((4, 6))
    for delta in (0.25, -7.5, 0, -1, 2.75):
        inputs, allowed = (keys, delta, 40.0), room(keys, 8)
        agrees(student, reference, "rerotate_keys", *inputs, atol=allowed)


@behaviour("rerotate_keys")
def check_rerotate_keys_keep_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has the floating dtype of the keys."""
    for dtype in ("float32", "float16"):
        keys = rng.standard_normal((5, 6)).astype(dtype)
        for delta in (-9, 2.5):
            inputs, allowed = (keys, delta, 90.0), room(keys, 9, dtype)
            agrees(student, reference, "rerotate_keys", *inputs, atol=allowed, dtype=dtype)


@behaviour("rerotate_keys")
def check_rerotate_keys_far(student: Answers, reference: Answers, rng: Any) -> None:
    """A move over a hundred thousand positions is exact, in float64 and in float32."""
    for dtype in ("float64", "float32"):
        keys = rng.standard_normal((5, 16)).astype(dtype)
        for sign in (1, -1):
            delta = sign * float(rng.uniform(60_000, 130_000))
            allowed = room(keys, delta, dtype, exact=True)
            agrees(student, reference, "rerotate_keys", keys, delta, 2e4, atol=allowed)


@behaviour("rerotate_keys")
def check_rerotate_keys_refuse(student: Answers, reference: Answers, rng: Any) -> None:
    """An odd d_k is a ValueError that names it; so is a base that is not positive."""
    keys = rng.standard_normal((5, 7))
    with good_input():
        agrees(student, reference, "rerotate_keys", keys[:, :6], 4, 30.0, atol=room(keys, 4))
    for dim in (7, 1, 0):
        inputs, named, because = (keys[:, :dim], 4, 30.0), (str(dim),), f"keys of width {dim}"
        refuses(student.rerotate_keys, *inputs, error="ValueError", naming=named, because=because)
    for base in (0.0, -30.0):
        inputs, because = (keys[:, :6], 4, base), "a base that is not positive"
        refuses(student.rerotate_keys, *inputs, error="ValueError", because=because)


@behaviour("rerotate_keys", hidden=True)
def check_rerotate_keys_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One key, a single pair, a wide key and as many keys as coordinates all work."""
    for shape in ((1, 8), (5, 2), (3, 64), (6, 6), (2, 4), (40, 4)):
        keys, delta = rng.standard_normal(shape), -int(rng.integers(2, 30))
        agrees(student, reference, "rerotate_keys", keys, delta, 3000, atol=room(keys, 30))


# ------------------------------------------------------------------------------- fixed_decode


def decoder(answers: Answers) -> Any:
    return instance(answers.fixed_decode(), what="the result of fixed_decode()")


def sequence(rng: Any, n: int, d_k: int = 4, d_v: int = 3) -> tuple[np.ndarray, ...]:
    """q, k and v of n tokens."""
    q, k = rng.standard_normal((2, n, d_k))
    return q, k, rng.standard_normal((n, d_v))


def decodes(decode: Any, inputs: tuple[np.ndarray, ...], base: float) -> None:
    """The function `decode` of the student's gives the full pass."""
    expected = full_pass(inputs, base)
    allowed = attention_room(inputs, len(expected))
    close(decode(*inputs, base), expected, allowed)


@behaviour("fixed_decode", weight=2)
def check_fixed_decode_worked_example(student: Answers, reference: Answers, rng: Any) -> None:
    """ "milk" at position 5 meets "chocolate" at 3 with the published score, divided by √4."""
    q, k, v = np.zeros((6, 4)), np.zeros((6, 4)), rng.standard_normal((6, 3))
    q[5], k[3] = Q[0], K[0]
    result = shaped(decoder(student)(q, k, v), (6, 3))
    scores = np.zeros((1, 6))
    scores[0, 3] = DOT_PRODUCT / 2
    expected = attended(scores, v)[0]
    close(result[5], expected, room(8 * np.abs(v).max(), 5), what="the result of token 5")


@behaviour("fixed_decode", weight=2)
def check_fixed_decode_equals_full_pass(student: Answers, reference: Answers, rng: Any) -> None:
    """Each token's result is its row of the full causal pass, for any d_k and any base."""
    for base, d_k in ((float(rng.integers(40, 90)), 4), (float(rng.integers(300, 900)), 6)):
        decodes(decoder(student), sequence(rng, 7, d_k), base)


@behaviour("fixed_decode")
def check_fixed_decode_starts_anew(student: Answers, reference: Answers, rng: Any) -> None:
    """A second sequence owes nothing to the first, whatever their lengths, widths and bases."""
    decode = decoder(student)
    for n, d_k, d_v in ((5, 4, 3), (3, 4, 3), (6, 4, 3), (6, 2, 5), (3, 4, 3)):
        decodes(decode, sequence(rng, n, d_k, d_v), 70.0 if n < 6 else 600.0)


@behaviour("fixed_decode")
def check_fixed_decode_leaves_inputs(student: Answers, reference: Answers, rng: Any) -> None:
    """q, k and v are still what they were."""
    inputs = sequence(rng, 5)
    result, after = decoder(student).with_inputs(*inputs, 50.0)
    for what, now, before in zip("qkv", after, inputs, strict=False):
        unchanged(now, before, what=what)
    with good_input():
        close(result, full_pass(inputs, 50.0), attention_room(inputs, 5))


@behaviour("fixed_decode")
def check_fixed_decode_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """float32 gives float32, and integers give float64 with their fractions kept."""
    for given, wanted in (("float32", "float32"), ("int64", "float64")):
        inputs = [array.round(2) * (1 if given == "float32" else 3) for array in sequence(rng, 5)]
        q, k, v = (array.astype(given) for array in inputs)
        wide = tuple(array.astype(float) for array in (q, k, v))
        result = decoder(student)(q, k, v, 90.0)
        close(result, full_pass(wide, 90.0), attention_room(wide, 5, wanted))
        same_dtype(result, wanted)


@behaviour("fixed_decode")
def check_fixed_decode_large_scores(student: Answers, reference: Answers, rng: Any) -> None:
    """Scores in the thousands do not overflow the softmax."""
    q, k, v = sequence(rng, 6)
    expected = full_pass((60 * q, 60 * k, v), 90.0)
    allowed = min(attention_room((60 * q, 60 * k, v), 6), 0.05)
    close(decoder(student)(60 * q, 60 * k, v, 90.0), expected, allowed)


@behaviour("fixed_decode")
def check_fixed_decode_precise(student: Answers, reference: Answers, rng: Any) -> None:
    """Hundreds of tokens in, the angles are still exact to float64."""
    inputs = sequence(rng, 400, 8, 2)
    result = decoder(student)(*inputs, 20_000.5)
    allowed = attention_room(inputs, 400, exact=True)
    close(result, full_pass(inputs, 20_000.5), allowed)


@behaviour("fixed_decode")
def check_fixed_decode_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """Shapes that do not go together raise; an odd d_k or a base ≤ 0 is a ValueError."""
    decode, (q, k, v) = decoder(student), sequence(rng, 5)
    with good_input():
        decodes(decode, (q, k, v), 30.0)
    for bad in (
        (q[:4], k, v),
        (q, k[:4], v),
        (q, k, v[:4]),
        (q, k[:1], v),
        (q, k, v[:1]),
        (q[:1], k, v),
        (q, k[:, :2], v),
        (q[:, :2], k, v),
    ):
        refuses(decode, *bad, 30.0, because="q, k and v of shapes that do not go together")
    because, odd = "an odd d_k", (q[:, :3], k[:, :3], v)
    refuses(decode, *odd, 30.0, error="ValueError", naming=("3",), because=because)
    for base in (0.0, -30.0):
        refuses(decode, q, k, v, base, error="ValueError", because="a base that is not positive")


@behaviour("fixed_decode", hidden=True)
def check_fixed_decode_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One token, many, wide ones, and as many tokens as coordinates all work."""
    decode = decoder(student)
    for n, d_k, d_v in ((1, 4, 3), (4, 4, 4), (70, 6, 1), (5, 32, 8), (6, 2, 6)):
        decodes(decode, sequence(rng, n, d_k, d_v), 3000.0)


# ------------------------------------------------------------------------ CausalSelfAttention


def tensor(array: Any, dtype: str = "float32") -> torch.Tensor:
    import torch

    plain = array if isinstance(array, torch.Tensor) else torch.as_tensor(np.array(array))
    return plain.to(getattr(torch, dtype))


def parameters(rng: Any, dim: int, dtype: str = "float32") -> dict[str, torch.Tensor]:
    """Random weights that give scores of a few units."""
    qkv = rng.standard_normal((3 * dim, dim)) * (2.5 / dim) ** 0.5
    proj = rng.standard_normal((dim, dim)) / dim**0.5
    return {"qkv.weight": tensor(qkv, dtype), "proj.weight": tensor(proj, dtype)}


def in_half_layout(state: dict[str, Any], dim: int, num_heads: int) -> dict[str, Any]:
    """Weights with which interleaved code computes what half code does with the given ones."""
    width = dim // num_heads
    order = np.arange(width).reshape(2, -1).T.ravel()  # 0, width/2, 1, width/2 + 1, …
    rows = np.arange(3 * dim).reshape(3, num_heads, width)
    rows[:2] = rows[:2][..., order]
    return {**state, "qkv.weight": state["qkv.weight"][rows.ravel()]}


def attention(answers: Answers, state: dict[str, Any], *args: Any) -> Any:
    """A module of the answer's that holds these weights."""
    module = instance(answers.CausalSelfAttention(*args), what="CausalSelfAttention(…)")
    loaded(module, state)
    return module


def loaded(module: Any, state: dict[str, Any]) -> None:
    """Load these weights, which must all find a place; what else the module has stays."""
    reply = module.method("load_state_dict", state, strict=False)
    _, unknown = pair(reply, what="the result of load_state_dict")
    if unknown:
        names = ", ".join(f"`{name}`" for name in unknown)
        raise CheckFailed(f"the state_dict has no entry called {names[:80]}.")


def both_layouts(
    reference: Answers, state: dict[str, Any], x: Any, dim: int, num_heads: int, *base: float
) -> list[Any]:
    """The full pass over x, as interleaved code and as half code have it."""
    found = []
    for weights_ in (state, in_half_layout(state, dim, num_heads)):
        y, _ = pair(attention(reference, weights_, dim, num_heads, *base)(x))
        found.append(y)
    return found


def in_pieces(module: Any, x: Any, sizes: Any) -> list[Any]:
    """What the module returns for x, handed over in pieces of these sizes."""
    found: list[Any] = []
    cache: list[Any] = []
    start = 0
    for size in sizes:
        result = module(x[:, start : start + size], *cache)
        y, after = pair(result, what="the result of forward")
        found.append(y)
        cache, start = [after], start + size
    return found


def output_room(state: dict[str, Any], x: Any, places: float, dtype: str = "float32") -> float:
    """Tolerance for y: an error of a score moves every weight of the mixture by as much."""
    size = float(x.double().abs().max())
    return tolerance(dtype, angle=places, scale=8 * max(size, 1.0), angle_dtype="float32")


def in_one_layout(found: list[Any], wanted: list[Any], sizes: Any, allowed: float) -> None:
    """All pieces are those of the full pass, in one and the same of the two layouts."""
    failures = []
    for expected in wanted:
        start, worst = 0, None
        try:
            for mine, size in zip(found, sizes, strict=True):
                worst = f"y of the tokens {start} to {start + size - 1}"
                close(mine, expected[:, start : start + size], allowed, what=worst)
                start += size
            return
        except CheckFailed as failure:
            failures.append((start, failure))
    raise max(failures, key=lambda one: one[0])[1]


def whole_and_pieces(
    student: Answers, reference: Answers, rng: Any, sizes: tuple[int, ...], *args: Any
) -> None:
    """One module, one random batch of two, handed over in pieces: the rows of the full pass."""
    dim, num_heads, *base = args
    state, x = parameters(rng, dim), tensor(rng.standard_normal((2, sum(sizes), dim)))
    wanted = both_layouts(reference, state, x, dim, num_heads, *base)
    found = in_pieces(attention(student, state, *args), x, sizes)
    in_one_layout(found, wanted, sizes, output_room(state, x, sum(sizes)))


def parameter_names(module: Any) -> list[str]:
    """Names of what a module trains, one request for each and no weight among the replies."""
    state = instance(module.method("state_dict"), what="state_dict()")
    listed = instance(state.method("__iter__"), what="the names in state_dict()")
    found: list[str] = []
    while len(found) < 20:
        try:
            found.append(str(listed.method("__next__")))
        except StudentError as error:
            if "StopIteration" not in error.types:
                raise
            break
    return [name for name in found if module.get(f"{name}.requires_grad") is True]


@behaviour("CausalSelfAttention")
def check_causal_self_attention_parameters(student: Answers, reference: Answers, rng: Any) -> None:
    """There are two weights to train, qkv.weight (3·dim, dim) and proj.weight (dim, dim)."""
    module = instance(student.CausalSelfAttention(12, 3), what="CausalSelfAttention(…)")
    names = sorted(parameter_names(module))
    for name, shape in (("qkv.weight", (36, 12)), ("proj.weight", (12, 12))):
        equal(module.get(f"{name}.shape"), shape, what=f"the shape of {name}")
    if names != ["proj.weight", "qkv.weight"]:
        raise CheckFailed(
            "what is trained is not qkv.weight and proj.weight alone.",
            f"Yours are: {', '.join(names)[:200] or 'none'}.",
        )


@behaviour("CausalSelfAttention", weight=2)
def check_causal_self_attention_published_number(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """ "milk" at position 5 meets "chocolate" at 3 with the published score, divided by √4."""
    x = np.zeros((1, 6, 4))
    x[0, 3, 0], x[0, 5, 1] = 1.0, 1.0
    w_q, w_k, w_v = np.zeros((4, 4)), np.zeros((4, 4)), rng.standard_normal((4, 4))
    w_q[:, 1], w_k[:, 0] = Q[0], K[0]
    state = {
        "qkv.weight": tensor(np.concatenate([w_q, w_k, w_v])),
        "proj.weight": tensor(np.eye(4)),
    }
    y, _ = pair(attention(student, state, 4, 1)(tensor(x)), what="the result of forward")
    y = shaped(y, (1, 6, 4), what="y")
    wanted = []
    for product in (DOT_PRODUCT, HALF_DOT_PRODUCT):
        scores = np.zeros((1, 6))
        scores[0, 3] = product / 2
        wanted.append(attended(scores, x[0] @ w_v.T)[None])
    in_one_layout([y[:, 5:]], wanted, (1,), 1e-5)


@behaviour("CausalSelfAttention", weight=2)
def check_causal_self_attention_full_pass(student: Answers, reference: Answers, rng: Any) -> None:
    """A prompt of several tokens, heads and rows, without a cache, is causal attention."""
    whole_and_pieces(student, reference, rng, (7,), 12, 3, 500.0)
    whole_and_pieces(student, reference, rng, (5,), 12, 2)


@behaviour("CausalSelfAttention", weight=3)
def check_causal_self_attention_decode(student: Answers, reference: Answers, rng: Any) -> None:
    """A prompt and then one token at a time give the rows of the full pass."""
    whole_and_pieces(student, reference, rng, (4, 1, 1, 1), 12, 3, 300.0)


@behaviour("CausalSelfAttention", weight=2)
def check_causal_self_attention_chunks(student: Answers, reference: Answers, rng: Any) -> None:
    """Pieces of any length, one after the other, give the rows of the full pass."""
    for sizes in ((3, 4, 2), (1, 5, 1, 2), (2, 2)):
        whole_and_pieces(student, reference, rng, sizes, 12, 3, 60.0)


@behaviour("CausalSelfAttention")
def check_causal_self_attention_refuses_heads(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Heads that do not divide dim, or of odd width, are a ValueError when the module is made."""
    with good_input():
        whole_and_pieces(student, reference, rng, (2, 2), 12, 2, 60.0)
    for dim, heads in ((12, 5), (12, 8), (12, 24), (12, 4), (12, 12), (6, 2), (9, 3)):
        because = f"dim {dim} and {heads} heads"
        refuses(student.CausalSelfAttention, dim, heads, error="ValueError", because=because)
    for heads in (0, -2):
        refuses(student.CausalSelfAttention, 12, heads, because=f"{heads} heads")


@behaviour("CausalSelfAttention", weight=2)
def check_causal_self_attention_two_sequences(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """One module serves several sequences in turn: what it knows of one is in that one's cache."""
    state, sizes = parameters(rng, 12), (3, 1, 2, 1)
    x = [tensor(rng.standard_normal((batch, 7, 12))) for batch in (2, 2, 2)]
    wanted = [both_layouts(reference, state, one, 12, 3, 80.0) for one in x]
    module = attention(student, state, 12, 3, 80.0)
    caches: list[list[Any]] = [[], [], []]
    found: list[list[Any]] = [[], [], []]
    starts = [0, 0, 0]
    for which in (0, 1, 0, 1, 1, 0, 2, 0, 2, 1, 2, 2):
        start, size = starts[which], sizes[len(found[which])]
        y, cache = pair(module(x[which][:, start : start + size], *caches[which]))
        found[which].append(y)
        caches[which], starts[which] = [cache], start + size
    for mine, right, one in zip(found, wanted, x, strict=True):
        in_one_layout(mine, right, sizes, output_room(state, one, 7))


@behaviour("CausalSelfAttention")
def check_causal_self_attention_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """y has the dtype of x, in float64 and in bfloat16 too, and in pieces as well."""
    for dtype, sizes in (("float64", (3, 1, 2)), ("bfloat16", (3, 1, 2)), ("float32", (3, 3))):
        state, x = parameters(rng, 12, dtype), tensor(rng.standard_normal((2, 6, 12)), dtype)
        exact = {name: value.double().float() for name, value in state.items()}
        wanted = both_layouts(reference, exact, x.float(), 12, 2, 80.0)
        module = attention(student, {}, 12, 2, 80.0)
        module.cast(dtype)
        loaded(module, state)
        found = in_pieces(module, x, sizes)
        allowed = 0.2 if dtype == "bfloat16" else output_room(state, x, 6)
        in_one_layout(found, wanted, sizes, allowed)
        for y in found:
            same_dtype(y, dtype, what="y")


@behaviour("CausalSelfAttention", weight=2)
def check_causal_self_attention_bfloat16_far_out(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A module in bfloat16 still knows its positions after thousands of tokens."""

    def prepare(module: Any, state: Any, x: Any, pieces: Any) -> list[Any]:
        module.cast("bfloat16")
        loaded(module, state)
        return in_pieces(module, x.bfloat16(), pieces)

    far_out(student, reference, rng, prepare, 0.13)


@behaviour("CausalSelfAttention", weight=2)
def check_causal_self_attention_autocast(student: Answers, reference: Answers, rng: Any) -> None:
    """Under autocast the positions are as exact as without."""

    def prepare(module: Any, state: Any, x: Any, pieces: Any) -> list[Any]:
        loaded(module, state)
        with student.autocast("bfloat16"):
            return in_pieces(module, x, pieces)

    far_out(student, reference, rng, prepare, 0.13)


@behaviour("CausalSelfAttention")
def check_causal_self_attention_leaves_input(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """x is still what it was, in the first call and in a later one."""
    state, x = parameters(rng, 12), tensor(rng.standard_normal((2, 6, 12)))
    wanted = both_layouts(reference, state, x, 12, 3, 80.0)
    module = attention(student, state, 12, 3, 80.0)
    found: list[Any] = []
    cache: list[Any] = []
    for start, end in ((0, 4), (4, 6)):
        piece = x[:, start:end]
        result, after = module.with_inputs(piece, *cache)
        unchanged(after[0], piece, what="x")
        y, new = pair(result, what="the result of forward")
        found.append(y)
        cache = [new]
    with good_input():
        in_one_layout(found, wanted, (4, 2), output_room(state, x, 6))


# Far out, a score must still know the distance. One coordinate of each head is in use, the last,
# which belongs to the second pair in both layouts: there a query meets a key, d positions away,
# with the score STRENGTH·cos(d·θ). Forty loud tokens at the start, then silence (zeros, whose keys
# and values are zero), then the loud queries: they hear those of the forty that stand right.
STRENGTH, LOUD = 9.0, 40


def loud_and_silent(rng: Any, silent: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Weights of two heads of width 4, and tokens (1, LOUD + silent + 8, 8)."""
    qkv = np.zeros((24, 8))
    for head in range(2):
        qkv[4 * head + 3, 0] = qkv[8 + 4 * head + 3, 0] = (2 * STRENGTH) ** 0.5
    qkv[16:, 1:] = rng.standard_normal((8, 7)) * 0.4
    x = rng.standard_normal((1, LOUD + silent + 8, 8))
    x[..., 0] = 1.0
    x[:, LOUD:-8] = 0.0
    state = {"qkv.weight": tensor(qkv), "proj.weight": tensor(np.eye(8))}
    return {name: value.bfloat16().float() for name, value in state.items()}, tensor(
        tensor(x, "bfloat16").float()
    )


def far_out(student: Answers, reference: Answers, rng: Any, prepare: Any, allowed: float) -> None:
    """The last eight results, compared with the reference's in float32.

    The base is one whose second frequency, 0.97, bfloat16 rounds badly, and which turns far within
    a few hundred tokens. Right programs that compute in bfloat16 are off by up to 0.06, a wrong
    position, angle or frequency by 0.3 and more; in float32 angles of 400 radians cost 5e-5, tables
    rounded to bfloat16 5e-3.
    """
    silent, base = int(rng.integers(400, 440)), 1.07
    state, x = loud_and_silent(rng, silent)
    pieces = (LOUD + silent - 150, 150, 4, 3, 1)
    expected, _ = pair(attention(reference, state, 8, 2, base)(x))
    module = instance(student.CausalSelfAttention(8, 2, base), what="CausalSelfAttention(…)")
    found = prepare(module, state, x, pieces)
    for y, start, size in zip(found[2:], (-8, -4, -1), pieces[2:], strict=True):
        wanted = expected[:, start:][:, :size]
        close(y, wanted, allowed, what=f"y, {-start} tokens before the end of {x.shape[1]},")


@behaviour("CausalSelfAttention")
def check_causal_self_attention_gradients(student: Answers, reference: Answers, rng: Any) -> None:
    """Gradients reach x and both weights, so that a model of it can be trained."""
    x, weights = (tensor(rng.standard_normal((2, 5, 12))) for _ in range(2))
    mine = attention(student, parameters(rng, 12), 12, 3)
    names: dict[int | str, str] = {0: "x", "qkv.weight": "qkv.weight", "proj.weight": "proj.weight"}
    for of, name in names.items():  # what they are hangs on the layout of pairs
        found = mine.gradient(of, x, weights=(weights, None))
        if found is None or not as_array(found, f"the gradient of {name}").any():
            raise CheckFailed(f"no gradient arrives at {name}, so it cannot be trained.")


@behaviour("CausalSelfAttention")
def check_causal_self_attention_refuses_inputs(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Tokens of another width, or a cache of another batch, raise; a base ≤ 0 is a ValueError."""
    state, x = parameters(rng, 12), tensor(rng.standard_normal((2, 6, 12)))
    wanted = both_layouts(reference, state, x, 12, 3, 80.0)
    module = attention(student, state, 12, 3, 80.0)
    with good_input():
        found = in_pieces(module, x, (4, 2))
        in_one_layout(found, wanted, (4, 2), output_room(state, x, 6))
    refuses(module, x[..., :8], because="tokens narrower than dim")
    refuses(module, tensor(np.zeros((2, 3, 13))), because="tokens wider than dim")
    for first, later in ((2, 1), (1, 2), (2, 3)):
        many = x[[0, 1, 0]]
        _, cache = pair(module(many[:first, :4]), what="the result of forward")
        because = f"{later} rows after a cache of {first}"
        refuses(module, many[:later, 4:], cache, because=because)
        _, cache = pair(module(many[:first, :4]), what="the result of forward")
        refuses(module, many[:later, 4:5], cache, because=because)

    def use_base(base: float) -> Any:
        return attention(student, state, 12, 3, base)(x)

    for base in (0.0, -9.0):
        because = "a base that is not positive"
        refuses(use_base, base, error="ValueError", because=because)


@behaviour("CausalSelfAttention", hidden=True)
def check_causal_self_attention_rows_of_a_batch(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A row of a batch gets what it gets alone."""
    state, x = parameters(rng, 12), tensor(rng.standard_normal((3, 6, 12)))
    module = attention(student, state, 12, 3, 80.0)
    wanted = both_layouts(reference, state, x, 12, 3, 80.0)
    for row in range(3):
        found = in_pieces(module, x[row : row + 1], (4, 2))
        mine = [right[row : row + 1] for right in wanted]
        in_one_layout(found, mine, (4, 2), output_room(state, x, 6))
    in_one_layout(in_pieces(module, x, (4, 2)), wanted, (4, 2), output_room(state, x, 6))


@behaviour("CausalSelfAttention", hidden=True)
def check_causal_self_attention_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One head, heads of a single pair, wide heads and axes of equal length all work."""
    for dim, heads, sizes in (
        (6, 1, (3, 2)),
        (8, 4, (4, 1, 3)),
        (64, 2, (5, 2)),
        (8, 2, (2, 2)),
        (4, 2, (2, 1, 1)),
    ):
        whole_and_pieces(student, reference, rng, sizes, dim, heads, 3000)


@behaviour("CausalSelfAttention", hidden=True)
def check_causal_self_attention_many_tokens(student: Answers, reference: Answers, rng: Any) -> None:
    """Every earlier token counts, also in a sequence of hundreds."""
    whole_and_pieces(student, reference, rng, (90, 1, 160, 1, 30), 8, 2, 9000.0)


@behaviour("CausalSelfAttention", hidden=True)
def check_causal_self_attention_cast_and_back(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A module that was bfloat16 for a while, with its parent, has not lost a digit of angles."""

    def prepare(module: Any, state: Any, x: Any, pieces: Any) -> list[Any]:
        module.cast("bfloat16", through_parent=True)
        module.cast("float32", through_parent=True)
        loaded(module, state)
        return in_pieces(module, x, pieces)

    far_out(student, reference, rng, prepare, 6e-4)

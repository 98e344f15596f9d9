"""The reference of the chapter `kv_cache` against values that do not come from it.

Slow loops of the equations in plain Python, outputs of other projects (data/golden_kv_cache.json)
and the faults that real projects shipped: every student is graded against this reference, so a
fault of its own must be found here.
"""

import copy
import doctest
import importlib
import inspect
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from solutions.with_numpy import kv_cache
from solutions.with_numpy.kv_cache import KVCache
from solutions.with_torch.kv_cache import CausalSelfAttention
from tests.devices import DEVICES

DATA = Path(__file__).parent / "data" / "golden_kv_cache.json"
GOLDEN = json.loads(DATA.read_text())["golden"]
SCORES = {e["id"].split(".")[-1]: e["output"] for e in GOLDEN if e["id"].startswith("rope.score")}
ROTATED = [e for e in GOLDEN if e["id"].startswith("rope.interleaved")]
Q = [1, 0.5, -0.5, 2]
K = [0.5, 1, 1.5, -1]
BASE = 500.0  # no default, so that a forgotten argument shows


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20210420)


# --- the equations, one number at a time --------------------------------------------------------


def slow_rotation(vector, position, base=10000.0, layout="interleaved") -> list[float]:
    """One vector at one position: RoFormer's rotation in Python floats."""
    dim = len(vector)
    rotated = [0.0] * dim
    for i in range(dim // 2):
        first, second = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + dim // 2)
        angle = position * base ** (-2 * i / dim)
        a, b = float(vector[first]), float(vector[second])
        rotated[first] = a * math.cos(angle) - b * math.sin(angle)
        rotated[second] = a * math.sin(angle) + b * math.cos(angle)
    return rotated


def slow_mixture(query, keys, values) -> list[float]:
    """softmax(query·key / √d) over the keys, times the values."""
    scores = [math.fsum(a * b for a, b in zip(query, key, strict=True)) for key in keys]
    scores = [score / math.sqrt(len(query)) for score in scores]
    shares = [math.exp(score - max(scores)) for score in scores]
    return [
        math.fsum(share * value[c] for share, value in zip(shares, values, strict=True))
        / math.fsum(shares)
        for c in range(len(values[0]))
    ]


def slow_pass(q, k, v, base=10000.0, layout="interleaved") -> np.ndarray:
    """The full causal pass, token by token and number by number."""
    keys = [slow_rotation(key, n, base, layout) for n, key in enumerate(k)]
    rows = []
    for m, query in enumerate(q):
        rows.append(slow_mixture(slow_rotation(query, m, base, layout), keys[: m + 1], v[: m + 1]))
    return np.array(rows)


def dot(a, b) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def prompt(rng, n, d_model=5, d_k=4, d_v=3):
    x = rng.normal(size=(n, d_model))
    return x, *(rng.normal(size=(d_model, width)) for width in (d_k, d_k, d_v))


def generate(x, w_q, w_k, w_v, cache, base=BASE) -> np.ndarray:
    return np.array([kv_cache.decode_step(x_t, w_q, w_k, w_v, cache, base) for x_t in x])


# --- outputs of other projects, and the worked example ------------------------------------------


def test_every_golden_entry_belongs_to_one_test():
    assert len(ROTATED) + len(SCORES) == len(GOLDEN) == 14


@pytest.mark.parametrize("entry", ROTATED, ids=lambda e: f"{e['id']} by {e['source'].split()[0]}")
def test_tables_and_offsets_give_what_other_projects_compute(entry):
    name, at = entry["id"].split(".")[-1].split("@")
    vector, at = {"q": Q, "k": K}[name], int(at)
    rotated = kv_cache.rope_with_offset([vector], *kv_cache.rope_tables(8, 4), at)
    np.testing.assert_allclose(rotated[0], entry["output"], rtol=0, atol=entry["tol"])
    back = kv_cache.rerotate_keys([entry["output"]], -at)
    np.testing.assert_allclose(back[0], vector, rtol=0, atol=2 * entry["tol"])
    moved = kv_cache.rerotate_keys([vector], at)
    np.testing.assert_allclose(moved[0], entry["output"], rtol=0, atol=entry["tol"])


def test_worked_example_of_the_source_material():
    cos, sin = kv_cache.rope_tables(8, 4)
    assert cos[1].round(4).tolist() == [0.5403, 1.0] and sin[1].round(4).tolist() == [0.8415, 0.01]
    assert cos[5].round(4).tolist() == [0.2837, 0.9988]
    q = {m: kv_cache.rope_with_offset([Q], cos, sin, m)[0] for m in (0, 5, 7)}
    k = {n: kv_cache.rope_with_offset([K], cos, sin, n)[0] for n in (3, 5)}
    assert q[5].round(4).tolist() == [0.7631, -0.8171, -0.5993, 1.9725]
    assert k[3].round(4).tolist() == [-0.6361, -0.9194, 1.5293, -0.9546]
    for m, n in ((5, 3), (7, 5)):
        assert q[m] @ k[n] == pytest.approx(SCORES["interleaved"], abs=1e-12)
    assert round(q[0] @ k[5], 4) == -1.6188  # the query wrongly at zero
    again = kv_cache.rope_with_offset(k[5][None], cos, sin, 5)[0]
    assert round(q[7] @ again, 4) == -3.7696  # the key rotated again


@pytest.mark.parametrize("layout, product", [("interleaved", -2.5336), ("half", 0.1456)])
def test_what_the_checks_call_published_is_the_golden_number(layout, product):
    from autograder.checks import kv_cache as checks

    assert round(SCORES[layout], 4) == product
    mine = {"interleaved": checks.DOT_PRODUCT, "half": checks.HALF_DOT_PRODUCT}[layout]
    assert mine == pytest.approx(SCORES[layout], abs=1e-12)
    slow = dot(slow_rotation(Q, 5, layout=layout), slow_rotation(K, 3, layout=layout))
    assert slow == pytest.approx(SCORES[layout], abs=1e-12)


# --- tables and offsets -------------------------------------------------------------------------


@pytest.mark.parametrize("max_len, dim", [(0, 4), (1, 2), (7, 6), (3, 64)])
def test_tables_hold_the_angles_of_a_range(max_len, dim):
    cos, sin = kv_cache.rope_tables(max_len, dim, BASE)
    assert cos.shape == sin.shape == (max_len, dim // 2)
    assert cos.dtype == sin.dtype == np.float64
    for m, i in np.ndindex(max_len, dim // 2):
        angle = m * BASE ** (-2 * i / dim)
        assert cos[m, i] == pytest.approx(math.cos(angle), abs=1e-14)
        assert sin[m, i] == pytest.approx(math.sin(angle), abs=1e-14)


@pytest.mark.parametrize("max_len", [-1, -8, 2.5, 3.0, "4", None])
def test_tables_refuse_lengths_that_are_no_counts(max_len):
    with pytest.raises(ValueError, match="max_len"):
        kv_cache.rope_tables(max_len, 4)


@pytest.mark.parametrize("shape", [(5, 8), (2, 5, 6), (2, 3, 5, 10), (5, 2), (1, 4), (4, 4)])
@pytest.mark.parametrize("offset", [0, 1, 9])
def test_a_piece_is_rotated_by_its_own_positions(rng, shape, offset):
    x = rng.normal(size=shape)
    tables = kv_cache.rope_tables(offset + shape[-2], shape[-1], BASE)
    rotated = kv_cache.rope_with_offset(x, *tables, offset)
    for index in np.ndindex(*shape[:-1]):
        expected = slow_rotation(x[index], offset + index[-1], BASE)
        np.testing.assert_allclose(rotated[index], expected, rtol=0, atol=1e-13)


def test_pieces_make_the_whole(rng):
    x, tables = rng.normal(size=(2, 9, 6)), kv_cache.rope_tables(9, 6, BASE)
    whole = kv_cache.rope_with_offset(x, *tables)
    for cuts in itertools.combinations(range(1, 9), 2):
        pieces = [
            kv_cache.rope_with_offset(x[:, a:b], *tables, offset=a)
            for a, b in itertools.pairwise((0, *cuts, 9))
        ]
        assert np.array_equal(np.concatenate(pieces, axis=1), whole)


@pytest.mark.parametrize("seq, max_len, offset", [(5, 9, 5), (5, 9, 8), (5, 9, 9), (1, 9, 9)])
def test_tables_that_run_out_raise_and_never_broadcast(seq, max_len, offset):
    """The source material's slice: past the end it is short, and one row turns all tokens alike."""
    cos, sin = kv_cache.rope_tables(max_len, 4)
    assert len(cos[offset : offset + seq]) < seq  # what the fault would have used
    with pytest.raises(ValueError, match=rf"{offset} \+ {seq} = {offset + seq}.* {max_len} rows"):
        kv_cache.rope_with_offset(np.ones((seq, 4)), cos, sin, offset)


def test_an_empty_piece_needs_no_row():
    cos, sin = kv_cache.rope_tables(3, 4)
    assert kv_cache.rope_with_offset(np.ones((2, 0, 4)), cos, sin, 3).shape == (2, 0, 4)


@pytest.mark.parametrize("offset", [-1, -3, 0.5, 1.0, "2", None])
def test_an_offset_that_is_no_count_raises(offset):
    """flash-linear-attention#967: a negative offset left memory that nobody had written."""
    cos, sin = kv_cache.rope_tables(9, 4)
    with pytest.raises(ValueError, match="offset"):
        kv_cache.rope_with_offset(np.ones((2, 4)), cos, sin, offset)


@pytest.mark.parametrize(
    "shapes", [((9, 1), (9, 1)), ((9, 3), (9, 3)), ((9, 2), (8, 2)), ((2,), (2,))]
)
def test_tables_of_another_shape_raise(shapes):
    with pytest.raises(ValueError, match=r"rope_tables\(max_len, 4\)"):
        kv_cache.rope_with_offset(np.ones((2, 4)), *map(np.ones, shapes))


@pytest.mark.parametrize("dim", [0, 1, 5])
def test_an_odd_or_empty_width_is_named(dim):
    x, tables = np.ones((3, dim)), (np.ones((9, dim // 2)),) * 2
    with pytest.raises(ValueError, match=f"dim must be positive and even, got {dim}"):
        kv_cache.rope_with_offset(x, *tables)
    with pytest.raises(ValueError, match=f"{dim}"):
        kv_cache.rerotate_keys(x, 1)
    with pytest.raises(ValueError, match=f"{dim}"):
        kv_cache.rope_tables(3, dim)
    with pytest.raises(ValueError, match=f"{dim}"):
        kv_cache.decode_step(np.ones(2), np.ones((2, dim)), np.ones((2, dim)), np.eye(2), KVCache())
    with pytest.raises(ValueError, match=f"{dim}"):
        kv_cache.fixed_decode()(x, x, np.ones((3, 1)))


@pytest.mark.parametrize("base", [0, -1.0, math.nan, math.inf])
def test_a_base_that_is_no_finite_positive_number_is_refused(base):
    one, cache = np.eye(2), KVCache()
    for call in (
        lambda: kv_cache.rope_tables(3, 2, base),
        lambda: kv_cache.rope_tables(0, 2, base),
        lambda: kv_cache.decode_step(one[0], one, one, one, cache, base),
        lambda: kv_cache.rerotate_keys(one, 1, base),
        lambda: kv_cache.fixed_decode()(one, one, one, base),
        lambda: kv_cache.fixed_decode()(one[:0], one[:0], one[:0], base),
        lambda: CausalSelfAttention(4, 2, base),
    ):
        with pytest.raises(ValueError, match="base"):
            call()
    assert len(cache) == 0


# --- the cache ----------------------------------------------------------------------------------


def test_cache_returns_tokens_in_order_of_arrival(rng):
    cache, k, v = KVCache(), rng.normal(size=(9, 4)), rng.normal(size=(9, 3))
    assert len(cache) == 0
    for a, b in ((0, 3), (3, 3), (3, 4), (4, 9)):
        cache.append(k[a:b], v[a:b])
        assert len(cache) == b
        assert np.array_equal(cache.keys, k[:b]) and np.array_equal(cache.values, v[:b])


def test_cache_keeps_copies(rng):
    cache, k, v = KVCache(), rng.normal(size=(3, 4)), rng.normal(size=(3, 2))
    before = k.copy(), v.copy()
    cache.append(k, v)
    k[:], v[:] = 0, 0
    assert np.array_equal(cache.keys, before[0]) and np.array_equal(cache.values, before[1])
    cache.keys[:], cache.values[:] = 0, 0
    assert np.array_equal(cache.keys, before[0]) and np.array_equal(cache.values, before[1])


def test_truncate_takes_back_the_newest_and_no_more(rng):
    """aprender#2014: a rejected speculation reset the cache; mlx-lm#1427 could not trim it."""
    k, v = rng.normal(size=(8, 4)), rng.normal(size=(8, 3))
    for length in range(9):
        cache = KVCache()
        cache.append(k, v)
        kept = cache.keys
        cache.truncate(length)
        cache.append(k[:2] + 1, v[:2] + 1)
        assert np.array_equal(cache.keys, np.concatenate([k[:length], k[:2] + 1]))
        assert np.array_equal(cache.values, np.concatenate([v[:length], v[:2] + 1]))
        assert np.array_equal(kept, k)  # what was read before does not change


@pytest.mark.parametrize("length", [4, -1, 1.5, "2", None])
def test_truncate_refuses_what_is_no_length(rng, length):
    cache = KVCache()
    cache.append(rng.normal(size=(3, 4)), rng.normal(size=(3, 2)))
    with pytest.raises(ValueError, match="length must be an integer in 0 … 3"):
        cache.truncate(length)
    assert len(cache) == 3


def test_caches_share_nothing(rng):
    first, second = KVCache(), KVCache()
    first.append(rng.normal(size=(3, 4)), rng.normal(size=(3, 2)))
    assert len(second) == 0
    second.append(rng.normal(size=(1, 6)), rng.normal(size=(1, 1)))
    first.truncate(2)
    assert (len(first), len(second)) == (2, 1)


@pytest.mark.parametrize(
    "k, v",
    [
        ((3, 4), (2, 3)),
        ((3, 4), (1, 3)),
        ((1, 4), (3, 3)),
        ((0, 4), (1, 3)),
        ((2, 6), (2, 3)),
        ((2, 1), (2, 3)),
        ((2, 4), (2, 1)),
        ((0, 5), (0, 3)),
        ((4,), (3,)),
        ((1, 2, 4), (1, 2, 3)),
    ],
)
def test_a_refused_append_changes_nothing(rng, k, v):
    cache = KVCache()
    cache.append(rng.normal(size=(2, 4)), rng.normal(size=(2, 3)))
    keys, values = cache.keys, cache.values
    with pytest.raises(ValueError, match="k "):
        cache.append(np.ones(k), np.ones(v))
    assert np.array_equal(cache.keys, keys) and np.array_equal(cache.values, values)


@pytest.mark.parametrize(
    "given, kept", [("float32", "float32"), ("float16", "float16"), ("int8", "float64")]
)
def test_cache_keeps_floating_dtypes_and_has_room_for_fractions(given, kept):
    cache = KVCache()
    cache.append(np.ones((2, 4), given), np.ones((2, 3), given))
    assert cache.keys.dtype == cache.values.dtype == kept
    cache.append(np.full((1, 4), 0.25), np.full((1, 3), 0.75))
    assert cache.keys[2, 0] == 0.25 and cache.values[2, 0] == 0.75


def test_cache_refuses_what_is_no_number():
    with pytest.raises(TypeError, match="k must hold integers or floats"):
        KVCache().append(np.ones((1, 2), bool), np.ones((1, 2)))


# --- one step -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(7, 5, 4, 3), (4, 4, 4, 4), (3, 2, 8, 1), (5, 6, 2, 7)])
def test_steps_equal_the_slow_full_pass(rng, sizes):
    n, *widths = sizes
    x, *w = prompt(rng, n, *widths)
    cache = KVCache()
    results = generate(x, *w, cache)
    q, k, v = (x @ matrix for matrix in w)
    np.testing.assert_allclose(results, slow_pass(q, k, v, BASE), rtol=0, atol=1e-12)
    rotated = [slow_rotation(key, n, BASE) for n, key in enumerate(k)]
    np.testing.assert_allclose(cache.keys, rotated, rtol=0, atol=1e-12)
    np.testing.assert_allclose(cache.values, v, rtol=0, atol=1e-12)


@pytest.mark.parametrize("stored", [1, 3, 6])
def test_a_prompt_may_be_stored_in_bulk(rng, stored):
    """fla#766: with positions one too high in decoding only, a gap opens behind the prompt."""
    x, *w = prompt(rng, 7)
    q, k, v = (x @ matrix for matrix in w)
    cache = KVCache()
    tables = kv_cache.rope_tables(stored, 4, BASE)
    cache.append(kv_cache.rope_with_offset(k[:stored], *tables), v[:stored])
    results = generate(x[stored:], *w, cache)
    np.testing.assert_allclose(results, slow_pass(q, k, v, BASE)[stored:], rtol=0, atol=1e-12)


def test_a_query_at_zero_gives_another_result(rng):
    """mlx-vlm#1983: every step but the first is wrong, and the first hides it."""
    x, *w = prompt(rng, 5)
    q, k, v = (x @ matrix for matrix in w)
    right = generate(x, *w, KVCache())
    keys = [slow_rotation(key, n, BASE) for n, key in enumerate(k)]
    at_zero = [slow_mixture(q[m], keys[: m + 1], v[: m + 1]) for m in range(5)]
    errors = np.abs(right - at_zero).max(axis=1)
    assert errors[0] < 1e-13 and (errors[1:] > 1e-3).all()


def test_keys_in_the_cache_are_not_turned_again(rng):
    """shainet#110: what is in the cache stays there, bit by bit, whatever is read and added."""
    x, *w = prompt(rng, 6)
    cache = KVCache()
    generate(x[:3], *w, cache)
    before = cache.keys
    generate(x[3:], *w, cache)
    assert np.array_equal(cache.keys[:3], before)


def test_rolled_back_tokens_leave_no_trace(rng):
    x, *w = prompt(rng, 8)
    cache, fresh = KVCache(), KVCache()
    generate(x[:6], *w, cache)
    cache.truncate(2)
    accepted = x[[0, 1, 6, 7]]
    results = generate(accepted, *w, fresh)
    assert np.array_equal(generate(x[6:], *w, cache), results[2:])
    assert np.array_equal(cache.keys, fresh.keys)


def test_beams_that_share_a_past_need_a_cache_each(rng):
    """transformers#46612: beams were reordered and their caches were not."""
    x, *w = prompt(rng, 6)
    beams = [KVCache(), KVCache()]
    generate(x[[0, 1, 2]], *w, beams[0])
    generate(x[[0, 3, 4]], *w, beams[1])
    reordered = [copy.deepcopy(beams[1]), copy.deepcopy(beams[1])]
    results = [generate(x[[t]], *w, cache)[0] for t, cache in zip((5, 2), reordered, strict=True)]
    for t, result in zip((5, 2), results, strict=True):
        alone = generate(x[[0, 3, 4, t]], *w, KVCache())[-1]
        np.testing.assert_allclose(result, alone, rtol=0, atol=1e-13)
    assert len(beams[1]) == 3
    stale = generate(x[[5]], *w, beams[0])[0]
    assert np.abs(stale - results[0]).max() > 1e-3


def test_scores_in_the_thousands_do_not_overflow(rng):
    x, w_q, w_k, w_v = prompt(rng, 6)
    results = generate(x, 80 * w_q, 80 * w_k, w_v, KVCache())
    expected = slow_pass(80 * x @ w_q, 80 * x @ w_k, x @ w_v, BASE)
    np.testing.assert_allclose(results, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
def test_a_step_keeps_the_floating_dtype_of_the_token(rng, dtype):
    x, *w = ((3 * array).round(1).astype(dtype) for array in prompt(rng, 4))
    cache = KVCache()
    results = [kv_cache.decode_step(x_t, *w, cache, BASE) for x_t in x]
    kept = np.dtype(dtype if dtype != np.int64 else np.float64)
    assert {result.dtype for result in results} == {kept}
    assert cache.keys.dtype == cache.values.dtype == kept
    wide = [array.astype(float) for array in (x, *w)]
    expected = slow_pass(*(wide[0] @ matrix for matrix in wide[1:]), BASE)
    allowed = {np.float32: 1e-3, np.float16: 1.0, np.int64: 1e-11}[dtype]
    np.testing.assert_allclose(results, expected, rtol=0, atol=allowed)


def test_a_step_changes_the_cache_alone(rng):
    x, *w = prompt(rng, 1)
    before = [array.copy() for array in (x, *w)]
    generate(x, *w, KVCache())
    assert all(np.array_equal(a, b) for a, b in zip((x, *w), before, strict=True))


@pytest.mark.parametrize("shape", [(1, 5), (2, 5), (5, 1), (4,), (6,), (1,), (), (1, 1, 5)])
def test_a_refused_token_leaves_the_cache_as_it_was(rng, shape):
    x, *w = prompt(rng, 3)
    cache = KVCache()
    generate(x, *w, cache)
    keys = cache.keys
    with pytest.raises(ValueError, match="one token at a time"):
        kv_cache.decode_step(np.ones(shape), *w, cache)
    assert np.array_equal(cache.keys, keys)


def test_weights_that_do_not_go_together_leave_the_cache_as_it_was(rng):
    x, w_q, w_k, w_v = prompt(rng, 3)
    cache = KVCache()
    generate(x, w_q, w_k, w_v, cache)
    for bad in (
        (w_q[:, :2], w_k, w_v),
        (w_q, w_k[:, :2], w_v),
        (w_q[:4], w_k, w_v),
        (w_q, w_k, w_v[:1]),
        (w_q[:, :2], w_k[:, :2], w_v),
        (w_q, w_k, w_v[:, :1]),
        (w_q[:, :3], w_k[:, :3], w_v),
    ):
        with pytest.raises(ValueError):
            kv_cache.decode_step(x[0], *bad, cache)
        assert len(cache) == 3


# --- positions of batches -----------------------------------------------------------------------


def test_left_padding_is_not_counted():
    """transformers#22161, unsloth#4078: 00111 gave 0 … 4; and the next position is 3, not 5."""
    mask = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    positions = kv_cache.left_pad_positions(mask)
    assert positions.tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]
    longer = kv_cache.left_pad_positions(np.pad(mask, ((0, 0), (0, 1)), constant_values=1))
    assert longer[:, -1].tolist() == mask.sum(axis=1).tolist() == [3, 5]


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("batch, seq", [(1, 1), (4, 4), (3, 7), (7, 3), (2, 400)])
def test_padded_positions_equal_the_slow_count(rng, dtype, batch, seq):
    mask = np.zeros((batch, seq), dtype)
    expected = np.zeros((batch, seq), int)
    for row in range(batch):
        start = int(rng.integers(0, seq + 1))
        end = int(rng.integers(start, seq + 1))
        mask[row, start:end] = 1
        expected[row, start:end] = range(end - start)
    before = mask.copy()
    positions = kv_cache.left_pad_positions(mask)
    assert np.array_equal(positions, expected) and positions.dtype == np.int64
    assert np.array_equal(mask, before)


@pytest.mark.parametrize("mask", [[0, 1, 1], [[0, 2]], [[-1, 0]], [[0.5, 1]], [[[1]]], [[-1e9, 0]]])
def test_a_mask_of_anything_else_is_refused(mask):
    with pytest.raises(ValueError, match="of 0 and 1"):
        kv_cache.left_pad_positions(mask)


def test_empty_masks_give_empty_positions():
    for shape in ((0, 4), (3, 0), (0, 0)):
        assert kv_cache.left_pad_positions(np.ones(shape, int)).shape == shape


@pytest.mark.parametrize(
    "lengths, expected",
    [
        ([3, 2], [0, 1, 2, 0, 1]),
        ([], []),
        ([0], []),
        ([0, 2, 0, 0, 1, 0], [0, 1, 0]),
        ([1, 1, 1], [0, 0, 0]),
        ([5], [0, 1, 2, 3, 4]),
    ],
)
def test_packed_documents_restart(lengths, expected):
    """Megatron-LM#453, OLMo-core#591: positions ran on through all documents of a row."""
    for given in (lengths, tuple(lengths), np.array(lengths, dtype=np.uint8)):
        positions = kv_cache.packed_positions(given)
        assert positions.tolist() == expected and positions.dtype == np.int64


@pytest.mark.parametrize("lengths", [[3, -1], [-2, 5], [1.0, 2.0], [[1, 2]], 3, ["a"], [True]])
def test_lengths_that_are_no_counts_are_refused(lengths):
    with pytest.raises(ValueError, match="lengths must be a list of integers"):
        kv_cache.packed_positions(lengths)


# --- moving keys --------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [-4, 17, 0, 2.5, -0.125, 10_000])
@pytest.mark.parametrize("shape", [(5, 8), (1, 2), (6, 6), (0, 4)])
def test_moved_keys_are_what_they_would_be_there(rng, delta, shape):
    originals, places = rng.normal(size=shape), rng.integers(4, 90, shape[0])
    keys = [slow_rotation(k, m, BASE) for k, m in zip(originals, places, strict=True)]
    moved = kv_cache.rerotate_keys(np.array(keys).reshape(shape), delta, BASE)
    expected = [slow_rotation(k, m + delta, BASE) for k, m in zip(originals, places, strict=True)]
    np.testing.assert_allclose(moved, np.array(expected).reshape(shape), rtol=0, atol=1e-10)


def test_eviction_and_repacking_keeps_every_distance(rng):
    """VeloxQuant-MLX#171, #389, transformers#35350: all kept keys move, and so does the count."""
    x, *w = prompt(rng, 8)
    q, k, v = (x @ matrix for matrix in w)
    cache, repacked = KVCache(), KVCache()
    generate(x[:6], *w, cache)
    repacked.append(kv_cache.rerotate_keys(cache.keys[2:], -2, BASE), cache.values[2:])
    assert len(repacked) == 4
    results = generate(x[6:], *w, repacked)
    expected = slow_pass(q[2:], k[2:], v[2:], BASE)[4:]
    np.testing.assert_allclose(results, expected, rtol=0, atol=1e-12)
    torn = KVCache()  # the newest key left where it was
    moved = kv_cache.rerotate_keys(cache.keys[2:], -2, BASE)
    moved[-1] = cache.keys[-1]
    torn.append(moved, cache.values[2:])
    assert np.abs(generate(x[6:], *w, torn) - expected).max() > 1e-3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_moved_keys_keep_their_dtype_and_lose_nothing_to_the_angle(rng, dtype):
    keys = rng.normal(size=(3, 8)).astype(dtype)
    moved = kv_cache.rerotate_keys(keys, 131_071, BASE)
    assert moved.dtype == dtype
    expected = [slow_rotation(key, 131_071, BASE) for key in keys.astype(float)]
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(moved.astype(float), expected, rtol=0, atol=4 * eps + 1e-9)


def test_integer_keys_become_floats_and_nothing_is_changed_in_place(rng):
    keys = rng.integers(-9, 9, (3, 4))
    before = keys.copy()
    moved = kv_cache.rerotate_keys(keys, 3)
    assert moved.dtype == np.float64 and np.array_equal(keys, before)
    np.testing.assert_allclose(moved, [slow_rotation(key, 3) for key in keys], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "keys, delta", [((4,), 1), ((2, 3, 4), 1), ((3, 4), [1, 2, 3]), ((3, 4), [1])]
)
def test_keys_are_a_matrix_and_delta_one_number(keys, delta):
    with pytest.raises(ValueError, match="delta a single number"):
        kv_cache.rerotate_keys(np.ones(keys), delta)


# --- the repaired loop --------------------------------------------------------------------------


@pytest.mark.parametrize("n, d_k, d_v", [(7, 4, 3), (1, 2, 1), (4, 4, 4), (30, 6, 2)])
def test_the_loop_equals_the_slow_full_pass(rng, n, d_k, d_v):
    q, k = rng.normal(size=(2, n, d_k))
    v = rng.normal(size=(n, d_v))
    decode = kv_cache.fixed_decode()
    np.testing.assert_allclose(decode(q, k, v, BASE), slow_pass(q, k, v, BASE), rtol=0, atol=1e-12)
    np.testing.assert_allclose(decode(q, k, v), slow_pass(q, k, v), rtol=0, atol=1e-12)


def test_the_loop_hears_chocolate_from_where_it_stands():
    q, k = np.zeros((6, 4)), np.zeros((6, 4))
    q[5], k[3] = Q, K
    share = math.exp(-2.533620451494303 / 2)
    result = kv_cache.fixed_decode()(q, k, np.eye(6))
    assert result[5] == pytest.approx(np.array([1, 1, 1, share, 1, 1]) / (5 + share), abs=1e-12)


def test_the_loop_remembers_nothing_between_calls(rng):
    decode = kv_cache.fixed_decode()
    first, second = rng.normal(size=(2, 3, 5, 4))
    alone = kv_cache.fixed_decode()(*second)
    decode(*first, 90.0)
    assert np.array_equal(decode(*second), alone)


def test_the_loop_works_without_tokens_and_keeps_dtypes(rng):
    decode = kv_cache.fixed_decode()
    assert decode(np.ones((0, 4)), np.ones((0, 4)), np.ones((0, 3))).shape == (0, 3)
    q, k, v = rng.normal(size=(3, 5, 4)).astype(np.float32)
    assert decode(q, k, v).dtype == np.float32
    q, k, v = rng.integers(-3, 3, (3, 5, 4))
    assert decode(q, k, v).dtype == np.float64
    np.testing.assert_allclose(decode(q, k, v), slow_pass(q, k, v), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "q, k, v",
    [
        ((4, 4), (5, 4), (5, 3)),
        ((5, 4), (1, 4), (5, 3)),
        ((5, 4), (5, 2), (5, 3)),
        ((5, 4), (5, 4), (1, 3)),
        ((5, 4), (5, 4), (4, 3)),
        ((4,), (4,), (1, 3)),
        ((5, 4), (5, 4), (5,)),
    ],
)
def test_the_loop_refuses_shapes_that_do_not_go_together(q, k, v):
    with pytest.raises(ValueError, match="one query, one key and one value for each token"):
        kv_cache.fixed_decode()(np.ones(q), np.ones(k), np.ones(v))


# --- the module ---------------------------------------------------------------------------------


def module(rng, dim=12, num_heads=3, base=BASE, dtype=torch.float32, device="cpu"):
    made = CausalSelfAttention(dim, num_heads, base)
    with torch.no_grad():
        for weight in made.parameters():
            weight.copy_(torch.from_numpy(rng.normal(size=weight.shape) * (2 / dim) ** 0.5))
    return made.to(device=device, dtype=dtype)


def slow_module(made, x, layout="interleaved") -> np.ndarray:
    """The full pass of the module by the slow loop, in float64."""
    qkv, proj = (w.detach().cpu().double().numpy() for w in (made.qkv.weight, made.proj.weight))
    x = x.detach().cpu().double().numpy()
    dim, heads = made.dim, made.num_heads
    width = dim // heads
    out = np.empty(x.shape)
    for row, tokens in enumerate(x):
        q, k, v = np.split(tokens @ qkv.T, 3, axis=1)
        mixed = [
            slow_pass(
                *(part[:, h * width : (h + 1) * width] for part in (q, k, v)),
                made.rope.base,
                layout,
            )
            for h in range(heads)
        ]
        out[row] = np.concatenate(mixed, axis=1) @ proj.T
    return out


def in_pieces(made, x, sizes) -> torch.Tensor:
    found, cache = [], None
    for piece in x.split(list(sizes), dim=1):
        y, cache = made(piece, cache)
        found.append(y)
    return torch.cat(found, dim=1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("sizes", [(7,), (4, 1, 1, 1), (1, 2, 4), (3, 4)])
def test_module_equals_the_slow_loop_in_pieces_of_any_length(rng, device, dtype, sizes):
    made = module(rng, dtype=dtype, device=device)
    x = torch.from_numpy(rng.normal(size=(2, 7, 12))).to(device=device, dtype=dtype)
    y = in_pieces(made, x, sizes)
    assert y.dtype == dtype and y.device == x.device and y.shape == x.shape
    allowed = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.1}[dtype]
    np.testing.assert_allclose(
        y.detach().cpu().double(), slow_module(made, x), rtol=0, atol=allowed
    )


def test_what_the_checks_hold_half_code_against_is_the_half_layout(rng):
    from autograder.checks.kv_cache import in_half_layout

    made, x = module(rng, 16, 2, dtype=torch.float64), torch.from_numpy(rng.normal(size=(2, 5, 16)))
    expected = slow_module(made, x, "half")
    assert np.abs(expected - slow_module(made, x)).max() > 1e-2
    made.load_state_dict(in_half_layout(made.state_dict(), 16, 2))
    np.testing.assert_allclose(made(x)[0].detach(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dim, num_heads", [(6, 1), (8, 4), (4, 2), (40, 2)])
def test_module_of_other_widths(rng, dim, num_heads):
    made = module(rng, dim, num_heads, dtype=torch.float64)
    x = torch.from_numpy(rng.normal(size=(3, 5, dim)))
    y = in_pieces(made, x, (2, 3)).detach()
    np.testing.assert_allclose(y, slow_module(made, x), rtol=0, atol=1e-12)


def test_module_is_the_twin_of_the_numpy_step(rng):
    made = module(rng, dim=4, num_heads=1, dtype=torch.float64)
    x = rng.normal(size=(6, 4))
    w_q, w_k, w_v = (w.T for w in np.split(made.qkv.weight.detach().numpy(), 3))
    rows = generate(x, w_q, w_k, w_v, KVCache()) @ made.proj.weight.detach().numpy().T
    y = in_pieces(made, torch.from_numpy(x)[None], (1,) * 6)[0].detach()
    np.testing.assert_allclose(y, rows, rtol=0, atol=1e-12)


def test_one_module_serves_many_sequences(rng):
    made = module(rng)
    first, second = torch.from_numpy(rng.normal(size=(2, 2, 6, 12))).float()
    alone = [made(x)[0] for x in (first, second)]
    _, a = made(first[:, :4])
    _, b = made(second[:, :2])
    y, a = made(first[:, 4:], a)
    torch.testing.assert_close(y, alone[0][:, 4:], rtol=0, atol=1e-5)
    y, b = made(second[:, 2:], b)
    torch.testing.assert_close(y, alone[1][:, 2:], rtol=0, atol=1e-5)


def test_module_does_not_change_the_cache_it_is_given(rng):
    """Rollback and beams may go on from an older cache of the reference."""
    made, x = module(rng), torch.from_numpy(rng.normal(size=(2, 6, 12))).float()
    _, cache = made(x[:, :3])
    first, _ = made(x[:, 3:], cache)
    again, _ = made(x[:, 3:], cache)
    assert torch.equal(first, again)
    swapped = tuple(part[[1, 0]] for part in cache)  # transformers#46612: reorder both
    y, _ = made(x[[1, 0], 3:], swapped)
    torch.testing.assert_close(y, first[[1, 0]], rtol=0, atol=1e-6)


def test_rows_of_a_batch_are_alone(rng):
    made, x = module(rng, dtype=torch.float64), torch.from_numpy(rng.normal(size=(3, 5, 12)))
    whole = in_pieces(made, x, (3, 2))
    for row in range(3):
        alone = in_pieces(made, x[row : row + 1], (3, 2))
        torch.testing.assert_close(alone, whole[row : row + 1], rtol=0, atol=1e-13)


def test_parameters_are_two_weights_and_gradients_reach_them(rng):
    made, x = module(rng), torch.from_numpy(rng.normal(size=(2, 5, 12))).float()
    shapes = {name: tuple(weight.shape) for name, weight in made.named_parameters()}
    assert shapes == {"qkv.weight": (36, 12), "proj.weight": (12, 12)}
    assert made.state_dict().keys() == shapes.keys()
    in_pieces(made, x, (3, 2)).square().sum().backward()
    for weight in made.parameters():
        assert weight.grad is not None and weight.grad.abs().min() > 0
    assert all(part.abs().max() > 1e-4 for part in made.qkv.weight.grad.chunk(3))


def test_gradient_of_the_cached_pass_is_that_of_the_full_pass(rng):
    made, x = module(rng, dtype=torch.float64), torch.from_numpy(rng.normal(size=(2, 5, 12)))
    gradients = []
    for sizes in ((5,), (2, 1, 2)):
        made.zero_grad()
        in_pieces(made, x, sizes).square().sum().backward()
        gradients.append(made.qkv.weight.grad.clone())
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-11)


@pytest.mark.parametrize("through_parent", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_cast_there_and_back_leaves_the_angles_exact(rng, through_parent, dtype):
    """transformers#25681, #29496: casting the module rounded its frequencies for good."""
    made, x = module(rng), torch.from_numpy(rng.normal(size=(1, 600, 12))).float()
    state = copy.deepcopy(made.state_dict())
    before = made(x)[0]
    holder = torch.nn.ModuleDict({"attention": made}) if through_parent else made
    holder.to(dtype)
    holder.float()
    made.load_state_dict(state)
    assert torch.equal(made(x)[0], before)


@pytest.mark.parametrize("device", DEVICES)
def test_autocast_costs_no_position(rng, device):
    """diffusers#13920: under autocast a matrix product of positions and frequencies is bfloat16."""
    from autograder.checks.kv_cache import loud_and_silent

    state, x = loud_and_silent(rng, 420)
    made = CausalSelfAttention(8, 2, 1.07).to(device)
    made.load_state_dict({name: weight.to(device) for name, weight in state.items()})
    x = x.to(device)
    expected = made(x)[0][:, -8:]
    with torch.autocast(device, dtype=torch.bfloat16):
        y = in_pieces(made, x, (300, x.shape[1] - 301, 1))[:, -8:]
    torch.testing.assert_close(y.float(), expected, rtol=0, atol=0.1)
    made.bfloat16()
    y = in_pieces(made, x.bfloat16(), (300, x.shape[1] - 301, 1))[:, -8:]
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), expected, rtol=0, atol=0.1)


def test_a_cache_made_under_autocast_goes_on_without_and_back(rng):
    made, x = module(rng), torch.from_numpy(rng.normal(size=(2, 6, 12))).float()
    whole = made(x)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, cache = made(x[:, :3])
    y, cache = made(x[:, 3:4], cache)
    assert y.dtype == torch.float32
    torch.testing.assert_close(y, whole[:, 3:4], rtol=0, atol=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, _ = made(x[:, 4:], cache)
    torch.testing.assert_close(y.float(), whole[:, 4:], rtol=0, atol=0.1)


def test_x_is_not_changed(rng):
    made, x = module(rng), torch.from_numpy(rng.normal(size=(2, 6, 12))).float()
    before = x.clone()
    in_pieces(made, x, (4, 2))
    assert torch.equal(x, before)


@pytest.mark.parametrize(
    "dim, num_heads",
    [(12, 5), (12, 4), (12, 12), (6, 2), (12, 0), (12, -2), (0, 1), (12.0, 2), (12, 1.5)],
)
def test_heads_that_do_not_fit_are_refused_at_construction(dim, num_heads):
    with pytest.raises(ValueError, match=f"dim {dim!r} and num_heads {num_heads!r}"):
        CausalSelfAttention(dim, num_heads)


def test_module_refuses_tokens_and_caches_that_do_not_fit(rng):
    made, x = module(rng), torch.from_numpy(rng.normal(size=(2, 6, 12))).float()
    for bad in (x[0], x[..., :8], x.long(), x[None]):
        with pytest.raises(ValueError, match="x must be floating"):
            made(bad)
    for first, later in ((2, 1), (1, 2)):
        _, cache = made(x[:first, :4])
        with pytest.raises(ValueError, match="batch of the cache"):
            made(x[:later, 4:], cache)


def test_module_works_without_tokens(rng):
    made, x = module(rng), torch.from_numpy(rng.normal(size=(2, 3, 12))).float()
    _, cache = made(x)
    y, same = made(x[:, :0], cache)
    assert y.shape == (2, 0, 12) and same[0].shape[2] == 3


# --- documentation ------------------------------------------------------------------------------

MODULES = ["solutions.with_numpy.kv_cache", "solutions.with_torch.kv_cache"]
SIGNATURES = {
    kv_cache.rope_tables: "(max_len, dim, base=10000.0)",
    kv_cache.rope_with_offset: "(x, cos, sin, offset=0)",
    kv_cache.KVCache: "()",
    kv_cache.decode_step: "(x_t, w_q, w_k, w_v, cache, base=10000.0)",
    kv_cache.left_pad_positions: "(attention_mask)",
    kv_cache.packed_positions: "(lengths)",
    kv_cache.rerotate_keys: "(keys, delta, base=10000.0)",
    kv_cache.fixed_decode: "()",
    CausalSelfAttention: "(dim, num_heads, base=10000.0)",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0 and failures == 0


@pytest.mark.parametrize("exercise", SIGNATURES, ids=lambda e: e.__name__)
def test_docstring_says_all_that_a_student_needs(exercise):
    text = inspect.getdoc(exercise)
    assert text.splitlines()[0].endswith(".") and not text.splitlines()[1]
    for word in ("Shapes:", "Dtype:", "Raises:", ">>>"):
        assert word in text, word


@pytest.mark.parametrize("exercise", SIGNATURES, ids=lambda e: e.__name__)
def test_names_order_and_defaults_of_arguments_are_fixed(exercise):
    bare = inspect.signature(exercise)
    parameters = [p.replace(annotation=p.empty) for p in bare.parameters.values()]
    bare = bare.replace(parameters=parameters, return_annotation=bare.empty)
    assert str(bare) == SIGNATURES[exercise]

"""The reference of the chapter `alibi` against values that do not come from it.

Slow loops in plain Python, whole numbers where a bucket begins, outputs of other projects' code
(data/golden_alibi.json) and the faults that real projects shipped: every student is graded against
this reference, so a fault of its own must be found here.
"""

import doctest
import importlib
import inspect
import itertools
import json
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils._python_dispatch import TorchDispatchMode

from solutions.with_numpy import alibi
from solutions.with_torch import alibi as torch_alibi
from solutions.with_torch.alibi import alibi_sdpa
from tests.devices import DEVICES

GOLDEN = json.loads((Path(__file__).parent / "data" / "golden_alibi.json").read_text())["golden"]
EPS64, EPS32 = 2.0**-52, 2.0**-23


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20210827)


# --- the papers' formulas, one number at a time -------------------------------------------------


def slow_slopes(num_heads: int) -> list[float]:
    """The paper's powers, and between them every other slope of twice as many heads."""
    power = 1
    while 2 * power <= num_heads:
        power *= 2
    exponents = [8 * head / power for head in range(1, power + 1)]
    exponents += [8 * head / (2 * power) for head in range(1, 2 * power, 2)]
    return [0.5**exponent for exponent in exponents[:num_heads]]


def slow_attention(q, k, v, slopes, q_positions, k_positions) -> np.ndarray:
    """Every weight by itself."""
    q, k, v = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
    result = np.zeros(q.shape)
    for h, a in np.ndindex(q.shape[:2]):
        i, weights = float(q_positions[a]), {}
        for b, j in enumerate(map(float, k_positions)):
            if j <= i:
                dot = math.fsum(x * y for x, y in zip(q[h, a], k[h, b], strict=True))
                weights[b] = dot / math.sqrt(q.shape[2]) - float(slopes[h]) * (i - j)
        largest = max(weights.values())
        weights = {b: math.exp(score - largest) for b, score in weights.items()}
        for b, weight in weights.items():
            result[h, a] += weight / math.fsum(weights.values()) * v[h, b]
    return result


def slow_bucket(relative: int, bidirectional: bool, num_buckets: int, max_distance: int) -> int:
    """A bucket by counting steps; where the next one begins is decided in whole numbers."""
    n = num_buckets // 2 if bidirectional else num_buckets
    distance = abs(relative) if bidirectional else max(0, -relative)
    later = n if bidirectional and relative > 0 else 0
    exact = n // 2
    if distance < exact:
        return later + distance
    rest, step = n - exact, 0
    # step + 1 ≤ rest·ln(d/e)/ln(max/e), both sides as powers
    while step < rest - 1 and (
        distance**rest * exact ** (step + 1) >= max_distance ** (step + 1) * exact**rest
    ):
        step += 1
    return later + exact + step


def slow_shaw(q, k, relative_keys, q_positions, k_positions) -> np.ndarray:
    reach = len(relative_keys) // 2
    scores = np.zeros((len(q), len(k)))
    for a, b in np.ndindex(scores.shape):
        distance = int(k_positions[b]) - int(q_positions[a])
        row = relative_keys[min(max(distance, -reach), reach) + reach]
        moved = [float(x) + float(y) for x, y in zip(k[b], row, strict=True)]
        dot = math.fsum(float(x) * y for x, y in zip(q[a], moved, strict=True))
        scores[a, b] = dot / math.sqrt(len(moved))
    return scores


def cached(rng, heads=2, n_q=3, n_k=5, d=8, dtype=np.float64):
    """q, k, v, slopes, q_positions, k_positions: permuted keys with gaps, queries among them."""
    q = rng.normal(size=(heads, n_q, d)).astype(dtype)
    k, v = (rng.normal(size=(heads, n_k, d)).astype(dtype) for _ in range(2))
    k_positions = rng.permutation(np.arange(n_k) * 3 + 100)
    q_positions = rng.integers(100, 110 + 3 * n_k, n_q)
    return q, k, v, rng.uniform(0.05, 0.7, heads), q_positions, k_positions


# --- outputs of other projects ------------------------------------------------------------------


def golden(prefix: str) -> list:
    return [
        pytest.param(entry, id=f"{entry['id']} by {entry['source'].split()[0]}")
        for entry in GOLDEN
        if entry["id"].startswith(prefix)
    ]


def test_every_golden_entry_belongs_to_one_test():
    tested = golden("alibi.slopes.") + golden("alibi.symmetric.h2.3x3") + golden("t5.bucket.")
    assert len(tested) == len(GOLDEN) == 25


@pytest.mark.parametrize("entry", golden("alibi.slopes."))
def test_slopes_equal_what_other_projects_compute(entry):
    slopes = alibi.alibi_slopes(entry["args"]["n"])
    np.testing.assert_allclose(slopes, entry["output"], rtol=0, atol=entry["tol"])


@pytest.mark.parametrize("entry", golden("alibi.symmetric."))
def test_bias_equals_the_symmetric_one_of_x_transformers(entry):
    slopes = alibi.alibi_slopes(2)
    for start in (0, 1000):
        positions = np.arange(start, start + 3)
        bias = alibi.alibi_bias(positions, positions, slopes)
        np.testing.assert_allclose(bias, entry["output"], rtol=0, atol=entry["tol"])
        for head in (0, 1):
            bias = alibi.fixed_bias(positions, positions, slopes[head])
            np.testing.assert_allclose(bias, entry["output"][head], rtol=0, atol=entry["tol"])


@pytest.mark.parametrize("entry", golden("t5.bucket."))
def test_buckets_equal_what_other_projects_compute(entry):
    relative, both = entry["args"]["rel"], entry["args"]["bidirectional"]
    assert alibi.t5_bucket(relative, both).tolist() == entry["output"]
    assert [slow_bucket(r, both, 32, 128) for r in relative] == entry["output"]


def test_worked_example_of_the_source_material():
    bias = alibi.alibi_bias([8], [8, 7, 6, 4, 0], [0.5])
    assert (-bias[0, 0]).tolist() == [0, 0.5, 1, 2, 4]
    assert (-alibi.fixed_bias([8], [8, 9, 10, 12, 16], 0.5)[0]).tolist() == [0, 0.5, 1, 2, 4]


# --- slopes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_heads", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 25, 32, 71, 112, 128])
def test_slopes_equal_the_slow_loop(num_heads):
    slopes = alibi.alibi_slopes(num_heads)
    assert slopes.shape == (num_heads,) and slopes.dtype == np.float64
    np.testing.assert_allclose(slopes, slow_slopes(num_heads), rtol=4 * EPS64)


@pytest.mark.parametrize("num_heads", [1, 2, 4, 8, 16, 64])
def test_slopes_of_a_power_of_two_are_a_geometric_row_that_ends_at_1_in_256(num_heads):
    slopes = alibi.alibi_slopes(num_heads)
    assert slopes[-1] == 1 / 256
    np.testing.assert_allclose(slopes[1:] / slopes[:-1], slopes[0], rtol=1e-14)


@pytest.mark.parametrize("num_heads", [np.uint8(12), np.int8(12), np.int64(12)])
def test_the_number_of_heads_may_be_any_kind_of_integer(num_heads):
    assert np.array_equal(alibi.alibi_slopes(num_heads), alibi.alibi_slopes(12))


@pytest.mark.parametrize("num_heads", [0, -1, -8, 2.5, 8.0, "8", None])
def test_a_number_of_heads_that_is_no_count_is_named(num_heads):
    with pytest.raises(ValueError, match=f"integer of at least 1, got {num_heads!r}"):
        alibi.alibi_slopes(num_heads)


# --- bias ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads, n_q, n_k", [(1, 1, 1), (2, 3, 5), (5, 8, 2), (3, 4, 4), (2, 0, 3)])
def test_bias_equals_the_slow_loop(rng, heads, n_q, n_k):
    q_positions = rng.integers(-50, 900, n_q) + rng.choice([0.0, 0.25], n_q)
    k_positions = rng.integers(-50, 900, n_k) + rng.choice([0.0, 0.5], n_k)
    slopes = rng.uniform(0.01, 0.9, heads)
    bias = alibi.alibi_bias(q_positions, k_positions, slopes)
    assert bias.shape == (heads, n_q, n_k) and bias.dtype == np.float64
    for h, a, b in np.ndindex(bias.shape):
        expected = -slopes[h] * abs(q_positions[a] - k_positions[b])
        assert bias[h, a, b] == pytest.approx(expected, rel=4 * EPS64)
    for head in range(heads):
        alone = alibi.fixed_bias(q_positions, k_positions, slopes[head])
        assert np.array_equal(alone, bias[head])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64, np.int64, np.float16, np.float32])
def test_positions_of_any_dtype_give_exact_float64(dtype):
    q_positions, k_positions = np.array([3, 120], dtype=dtype), np.array([100, 0, 5], dtype=dtype)
    expected = [[-97 / 4, -3 / 4, -2 / 4], [-20 / 4, -120 / 4, -115 / 4]]
    bias = alibi.alibi_bias(q_positions, k_positions, np.array([0.25], dtype=np.float32))
    assert bias.dtype == np.float64 and bias[0].tolist() == expected
    assert alibi.fixed_bias(q_positions, k_positions, 0.25).tolist() == expected


def test_int8_positions_at_both_ends_do_not_overflow():
    ends = np.array([-128, 127], dtype=np.int8)
    assert alibi.fixed_bias(ends, ends, 1).tolist() == [[0, -255], [-255, 0]]


def test_views_work_like_copies(rng):
    grid = rng.integers(0, 99, (10, 3))
    q_positions, k_positions, slopes = grid[::2, 1], grid[::-1, 2], rng.uniform(size=(4, 2))[:, 1]
    assert not q_positions.flags.c_contiguous
    views = alibi.alibi_bias(q_positions, k_positions, slopes)
    copies = (np.ascontiguousarray(x) for x in (q_positions, k_positions, slopes))
    assert np.array_equal(views, alibi.alibi_bias(*copies))


@pytest.mark.parametrize("shape", [(), (1, 3), (3, 1), (2, 3)])
def test_positions_and_slopes_that_are_not_1d_raise(shape):
    bad, good = np.ones(shape), np.ones(3)
    for arguments in ((bad, good), (good, bad), (bad, bad)):
        with pytest.raises(ValueError, match="must be 1-D, got shapes"):
            alibi.alibi_bias(*arguments, [0.5])
        with pytest.raises(ValueError, match="must be 1-D, got shapes"):
            alibi.fixed_bias(*arguments, 0.5)
    with pytest.raises(ValueError, match="slopes must be .* got shape"):
        alibi.alibi_bias(good, good, bad)


def test_no_slope_and_several_slopes_for_one_head_raise():
    with pytest.raises(ValueError, match="at least one head"):
        alibi.alibi_bias([1, 2], [1], [])
    for slope in ([0.5], [0.5, 0.25], [[0.5]]):
        with pytest.raises(ValueError, match="slope must be a single number"):
            alibi.fixed_bias([1, 2], [1, 2], slope)


@pytest.mark.parametrize("positions", [[True, False], [1j, 2], ["1", "2"], [None, 1]])
def test_positions_that_are_no_numbers_are_refused(positions):
    for call in (
        lambda: alibi.alibi_bias(positions, [1], [0.5]),
        lambda: alibi.alibi_bias([1], positions, [0.5]),
        lambda: alibi.fixed_bias(positions, [1], 0.5),
        lambda: alibi.shaw_scores(
            np.ones((2, 4)), np.ones((1, 4)), np.ones((3, 4)), positions, [1]
        ),
    ):
        with pytest.raises(TypeError, match="must hold integers or floats, got dtype"):
            call()


# --- attention ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "heads, n_q, n_k, d", [(2, 3, 5, 8), (1, 1, 7, 3), (5, 8, 2, 1), (3, 4, 4, 4)]
)
def test_attention_equals_the_slow_loop(rng, heads, n_q, n_k, d):
    inputs = cached(rng, heads, n_q, n_k, d)
    inputs = (*inputs[:4], inputs[4] + 0.5, inputs[5] + rng.choice([0.0, 0.25, 0.5], n_k) - 1)
    result = alibi.alibi_attention(*inputs)
    assert result.shape == (heads, n_q, d)
    np.testing.assert_allclose(result, slow_attention(*inputs), rtol=0, atol=1e-13)


def test_the_order_of_the_keys_does_not_matter(rng):
    q, k, v, slopes, q_positions, k_positions = cached(rng, n_k=7)
    order = rng.permutation(7)
    before = alibi.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    moved = (k[:, order], v[:, order], slopes, q_positions, k_positions[order])
    np.testing.assert_allclose(alibi.alibi_attention(q, *moved), before, rtol=0, atol=1e-14)


def test_all_positions_may_move_together(rng):
    *start, q_positions, k_positions = cached(rng)
    before = alibi.alibi_attention(*start, q_positions, k_positions)
    moved = alibi.alibi_attention(*start, q_positions - 5000, k_positions - 5000)
    np.testing.assert_allclose(moved, before, rtol=0, atol=1e-14)


def test_huge_scores_and_far_keys_stay_finite(rng):
    q, k, v, slopes, q_positions, k_positions = cached(rng)
    for scale, far in ((1e3, 0), (1.0, 10**6)):
        inputs = (q * scale, k * scale, v, slopes, q_positions + far, k_positions)
        expected = slow_attention(*inputs)
        np.testing.assert_allclose(alibi.alibi_attention(*inputs), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_attention_keeps_a_floating_dtype_and_rounds_once(rng, dtype):
    inputs = cached(rng, dtype=dtype)
    result = alibi.alibi_attention(*inputs)
    assert result.dtype == dtype
    wide = (x.astype(np.float64) for x in inputs[:3])
    assert np.array_equal(result, alibi.alibi_attention(*wide, *inputs[3:]).astype(dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_integers_become_float64_and_are_not_truncated(rng, dtype):
    *_, slopes, q_positions, k_positions = cached(rng)
    q, k, v = (rng.integers(0, 9, (2, n, 8)).astype(dtype) for n in (3, 5, 5))
    where = (slopes, q_positions.astype(np.uint16), k_positions.astype(np.uint16))
    result = alibi.alibi_attention(q, k, v, *where)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, slow_attention(q, k, v, *where), rtol=0, atol=1e-12)


def test_a_query_that_sees_no_key_is_named(rng):
    *start, q_positions, k_positions = cached(rng)
    q_positions[1] = 42
    with pytest.raises(ValueError, match="every query must see a key, .* at most 42"):
        alibi.alibi_attention(*start, q_positions, k_positions)
    with pytest.raises(ValueError, match="every query must see a key"):
        alibi.alibi_attention(
            np.ones((1, 1, 4)), np.ones((1, 0, 4)), np.ones((1, 0, 4)), [0.5], [3], []
        )


def test_no_queries_give_no_rows():
    k = np.ones((2, 5, 4))
    result = alibi.alibi_attention(k[:, :0], k, k, [0.5, 0.25], [], np.arange(5))
    assert result.shape == (2, 0, 4)
    empty = k[:, :0]
    assert alibi.alibi_attention(empty, empty, empty, [0.5, 0.25], [], []).shape == (2, 0, 4)


@pytest.mark.parametrize("at", range(6))
def test_attention_refuses_every_shape_that_does_not_match(rng, at):
    inputs = list(cached(rng))
    lengths = (1, 2, 3, 4, 5, 8)
    right = inputs[at].shape
    shapes = [(), *itertools.product(lengths, repeat=1), *itertools.product((1, 2, 3), repeat=2)]
    shapes += [s for s in itertools.product((1, 2, 3, 5), (1, 3, 4, 5), (1, 8)) if s != right]
    for shape in shapes:
        if shape == right:
            continue
        if at == 0 and shape == (2, 5, 8):
            continue  # other queries, as wrong as their positions say
        inputs[at] = np.full(shape, 100.0)
        with pytest.raises(ValueError):
            alibi.alibi_attention(*inputs)


@pytest.mark.parametrize("function", ["alibi_bias", "alibi_attention", "shaw_scores"])
def test_inputs_are_never_changed(rng, function):
    q, k, v, slopes, q_positions, k_positions = cached(rng)
    arguments = {
        "alibi_bias": (q_positions + 0.5, k_positions + 0.5, slopes),
        "alibi_attention": (q, k, v, slopes, q_positions, k_positions),
        "shaw_scores": (q[0], k[0], v[1], q_positions, k_positions),
    }[function]
    before = [x.copy() for x in arguments]
    getattr(alibi, function)(*arguments)[...] = 0
    assert all(np.array_equal(x, y) for x, y in zip(arguments, before, strict=True))


# --- T5's buckets -------------------------------------------------------------------------------


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    "num_buckets, max_distance",
    [(32, 128), (32, 9), (32, 17), (8, 50), (4, 20), (64, 512), (20, 200), (12, 100), (128, 1000)],
)
def test_buckets_equal_the_slow_count_in_whole_numbers(bidirectional, num_buckets, max_distance):
    exact = num_buckets // (4 if bidirectional else 2)
    if max_distance <= exact:
        max_distance = exact + 1
    relative = np.arange(-3 * max_distance, 3 * max_distance)
    expected = [slow_bucket(int(r), bidirectional, num_buckets, max_distance) for r in relative]
    buckets = alibi.t5_bucket(relative, bidirectional, num_buckets, max_distance)
    assert buckets.tolist() == expected


@pytest.mark.parametrize("num_buckets", [2, 3, 5, 31])
def test_one_direction_may_have_an_odd_number_of_buckets(num_buckets):
    relative = np.arange(-300, 10)
    expected = [slow_bucket(int(r), False, num_buckets, 100) for r in relative]
    assert alibi.t5_bucket(relative, False, num_buckets, 100).tolist() == expected


def test_a_bucket_begins_at_its_whole_distance_where_a_difference_of_logarithms_misses_it():
    """64 = 32·(512/32)^(8/32), so bucket 32 + 8 begins there."""
    steps = (np.log(64.0) - np.log(32)) / (np.log(512.0) - np.log(32)) * 32
    assert math.floor(steps) == 7 and steps > 7.999999
    assert alibi.t5_bucket([-63, -64], False, 64, 512).tolist() == [39, 40]


def test_buckets_begin_where_they_do_in_t5():
    assert alibi.first_distances(16, 128) == [*range(8), 8, 12, 16, 23, 32, 46, 64, 91]
    assert alibi.first_distances(32, 128)[16:20] == [16, 19, 21, 24]
    assert alibi.first_distances(32, 128)[-1] == 113


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5), (2, 0, 3), (2, 3, 4)])
def test_buckets_have_the_shape_of_the_input_and_are_integers(rng, shape):
    relative = rng.integers(-200, 200, shape)
    for both in (True, False):
        buckets = alibi.t5_bucket(relative, both)
        assert buckets.shape == shape and buckets.dtype == np.int64
        for index in np.ndindex(*shape):
            assert buckets[index] == slow_bucket(int(np.asarray(relative)[index]), both, 32, 128)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64])
def test_the_ends_of_every_integer_dtype_fall_into_the_outer_buckets(dtype):
    ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype=dtype)
    expected = [slow_bucket(int(end), True, 32, 128) for end in ends]
    assert alibi.t5_bucket(ends).tolist() == expected
    expected = [slow_bucket(int(end), False, 32, 128) for end in ends]
    assert alibi.t5_bucket(ends, False).tolist() == expected


def test_numbers_of_buckets_may_be_numpy_integers():
    relative = np.arange(-600, 600)
    buckets = alibi.t5_bucket(relative, True, np.int8(64), np.int16(500))
    assert np.array_equal(buckets, alibi.t5_bucket(relative, True, 64, 500))


@pytest.mark.parametrize(
    "bidirectional, num_buckets, max_distance, exact",
    [(True, 32, 8, 8), (True, 32, 0, 8), (True, 32, -5, 8), (False, 32, 16, 16), (False, 12, 6, 6)],
)
def test_no_room_beyond_the_exact_buckets_is_named(bidirectional, num_buckets, max_distance, exact):
    with pytest.raises(ValueError, match=f"above {exact}, .* got {max_distance}"):
        alibi.t5_bucket([1], bidirectional, num_buckets, max_distance)
    assert alibi.t5_bucket([-exact], bidirectional, num_buckets, exact + 1).tolist() == [exact]


@pytest.mark.parametrize(
    "bidirectional, num_buckets", [(True, 33), (True, 2), (True, 0), (False, 1), (False, -4)]
)
def test_numbers_of_buckets_that_cannot_be_shared_out_are_named(bidirectional, num_buckets):
    with pytest.raises(ValueError, match=f"num_buckets must be .* got {num_buckets}"):
        alibi.t5_bucket([1], bidirectional, num_buckets)


@pytest.mark.parametrize("relative", [[0.5], [1.0], [True], ["1"], [1j]])
def test_relative_positions_that_are_no_integers_are_refused(relative):
    with pytest.raises(TypeError, match="relative_position must hold integers"):
        alibi.t5_bucket(relative)


@pytest.mark.parametrize("name, value", [("num_buckets", 32.0), ("max_distance", 128.0)])
def test_counts_that_are_no_integers_are_refused_by_name(name, value):
    with pytest.raises(TypeError, match=f"{name} must be an integer, got {value}"):
        alibi.t5_bucket([1], **{name: value})


# --- Shaw's vectors -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n_q, n_k, d, reach", [(3, 5, 8, 2), (5, 2, 3, 0), (1, 6, 1, 4), (4, 4, 4, 30), (0, 3, 2, 1)]
)
def test_shaw_equals_the_slow_loop(rng, n_q, n_k, d, reach):
    q, k, table = (rng.normal(size=(n, d)) for n in (n_q, n_k, 2 * reach + 1))
    where = rng.integers(-20, 20, n_q), rng.integers(-20, 20, n_k)
    scores = alibi.shaw_scores(q, k, table, *where)
    assert scores.shape == (n_q, n_k) and scores.dtype == np.float64
    np.testing.assert_allclose(scores, slow_shaw(q, k, table, *where), rtol=0, atol=1e-13)


def test_shaw_with_a_table_of_zeros_is_plain_attention(rng):
    q, k = rng.normal(size=(3, 8)), rng.normal(size=(5, 8))
    scores = alibi.shaw_scores(q, k, np.zeros((7, 8)), [9, 2, 5], [1, 7, 3, 0, 8])
    np.testing.assert_allclose(scores, q @ k.T / math.sqrt(8), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("table_dtype", [np.float32, np.float64, np.int64])
def test_shaw_has_the_dtype_of_q_and_rounds_once(rng, dtype, table_dtype):
    q, k = rng.normal(size=(3, 8)).astype(dtype), rng.normal(size=(5, 8)).astype(dtype)
    table = (rng.normal(size=(5, 8)) * 3).astype(table_dtype)
    where = ([9, 2, 5], [1, 7, 3, 0, 8])
    scores = alibi.shaw_scores(q, k, table, *where)
    assert scores.dtype == dtype
    np.testing.assert_array_equal(
        scores, alibi.shaw_scores(q.astype(float), k, table, *where).astype(dtype)
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float32])
def test_shaw_takes_positions_of_any_dtype(rng, dtype):
    q, k, table = (rng.integers(-9, 9, (n, 8)) for n in (3, 5, 9))
    where = np.array([90, 20, 50]), np.array([10, 52, 93, 0, 18])
    scores = alibi.shaw_scores(q, k, table, *(p.astype(dtype) for p in where))
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, slow_shaw(q, k, table, *where), rtol=0, atol=1e-11)


def test_shaw_needs_no_vector_per_pair_in_memory(rng):
    """(n_q, n_k, d) numbers would be 512 MB here."""
    n, d = 1000, 64
    q, k, table = rng.normal(size=(n, d)), rng.normal(size=(n, d)), rng.normal(size=(33, d))
    tracemalloc.start()
    try:
        alibi.shaw_scores(q, k, table, np.arange(n), np.arange(n))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * n * 8


@pytest.mark.parametrize("rows", [0, 2, 6])
def test_a_table_without_a_middle_row_is_named(rows):
    with pytest.raises(ValueError, match=f"odd number of rows, got {rows}"):
        alibi.shaw_scores(np.ones((3, 4)), np.ones((5, 4)), np.ones((rows, 4)), range(3), range(5))


def test_positions_that_are_not_whole_tokens_apart_number_no_row():
    q, k, table = np.ones((1, 4)), np.ones((2, 4)), np.ones((3, 4))
    with pytest.raises(ValueError, match="whole tokens apart"):
        alibi.shaw_scores(q, k, table, [0.5], [0, 1])
    assert alibi.shaw_scores(q, k, table, [0.5], [0.5, 1.5]).tolist() == [[4, 4]]


@pytest.mark.parametrize(
    "q, k, table, q_positions, k_positions",
    [
        ((3, 1), (5, 8), (7, 8), (3,), (5,)),
        ((3, 8), (5, 1), (7, 8), (3,), (5,)),
        ((3, 8), (5, 8), (7, 1), (3,), (5,)),
        ((3, 0), (5, 0), (7, 0), (3,), (5,)),
        ((8,), (5, 8), (7, 8), (1,), (5,)),
        ((1, 3, 8), (1, 5, 8), (7, 8), (3,), (5,)),
        ((3, 8), (5, 8), (7, 8), (1,), (5,)),
        ((3, 8), (5, 8), (7, 8), (3,), (1,)),
        ((3, 8), (5, 8), (7, 8), (), (5,)),
        ((3, 8), (5, 8), (7, 8), (3, 1), (5,)),
        ((3, 8), (5, 8), (7, 8), (3,), (1, 5)),
        ((3, 8), (5, 8), (7, 8), (5,), (3,)),
    ],
)
def test_shaw_refuses_shapes_that_do_not_go_together(q, k, table, q_positions, k_positions):
    with pytest.raises(ValueError, match="got"):
        alibi.shaw_scores(*map(np.ones, (q, k, table, q_positions, k_positions)))


# --- the torch room -----------------------------------------------------------------------------


def tensors(rng, n_q=3, n_k=8, heads=3, d=8, dtype=torch.float32, device="cpu"):
    q, k, v = (
        torch.tensor(rng.normal(size=(2, heads, n, d)), dtype=dtype, device=device)
        for n in (n_q, n_k, n_k)
    )
    return q, k, v, torch.tensor(rng.uniform(0.05, 0.7, heads), device=device)


def exact(q, k, v, slopes, offset) -> torch.Tensor:
    """The slow loop over the tensors as they are, in float64."""
    where = offset + np.arange(q.shape[2]), np.arange(k.shape[2])
    slopes = slopes.double().cpu().numpy()
    rows = zip(*(x.detach().double().cpu().numpy() for x in (q, k, v)), strict=True)
    return torch.tensor(np.array([slow_attention(*row, slopes, *where) for row in rows]))


def error(result: torch.Tensor, expected: torch.Tensor) -> float:
    return (result.detach().double().cpu() - expected).abs().max().item()


# Half a unit of numbers up to 4, and float32 arithmetic.
ONE_ROUNDING = {
    torch.float64: 1e-13,
    torch.float32: 32 * EPS32,
    torch.bfloat16: 4 * 2.0**-8 / 2 + 32 * EPS32,
    torch.float16: 4 * 2.0**-11 / 2 + 32 * EPS32,
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ONE_ROUNDING, ids=str)
@pytest.mark.parametrize(
    "n_q, n_k, offset", [(5, 5, 0), (3, 8, 4), (1, 8, 7), (3, 8, 5), (2, 9, 0)]
)
def test_torch_equals_the_slow_loop(rng, device, dtype, n_q, n_k, offset):
    inputs = tensors(rng, n_q, n_k, dtype=dtype, device=device)
    result = alibi_sdpa(*inputs, offset)
    assert result.dtype == dtype and result.shape == inputs[0].shape
    assert result.device == inputs[0].device
    assert error(result, exact(*inputs, offset)) <= ONE_ROUNDING[dtype]


@pytest.mark.parametrize("slopes_dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_torch_is_the_twin_of_the_numpy_function(rng, slopes_dtype):
    q, k, v, slopes = tensors(rng, dtype=torch.float64)
    slopes = slopes.to(slopes_dtype)
    result = alibi_sdpa(q, k, v, slopes, 4)
    where = np.arange(4, 7), np.arange(8)
    for row in range(2):
        inputs = (x[row].numpy() for x in (q, k, v))
        twin = alibi.alibi_attention(*inputs, slopes.double().numpy(), *where)
        np.testing.assert_allclose(result[row].numpy(), twin, rtol=0, atol=1e-14)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("x_dtype", [torch.float32, torch.bfloat16], ids=str)
def test_autocast_changes_no_bit(rng, device, dtype, x_dtype):
    inputs = tensors(rng, n_q=3, n_k=700, dtype=x_dtype, device=device)
    before = alibi_sdpa(*inputs, 600)
    with torch.autocast(device, dtype=dtype):
        after = alibi_sdpa(*inputs, 600)
    assert after.dtype == x_dtype and torch.equal(before, after)


@pytest.mark.parametrize("device", DEVICES)
def test_chunks_of_any_size_equal_the_full_pass(rng, device):
    q, k, v, slopes = tensors(rng, 8, 8, device=device)
    full = alibi_sdpa(q, k, v, slopes)
    for sizes in ((1,) * 8, (3, 5), (5, 1, 2)):
        parts, start = [], 0
        for size in sizes:
            end = start + size
            parts.append(
                alibi_sdpa(q[:, :, start:end], k[:, :, :end], v[:, :, :end], slopes, start)
            )
            start = end
        torch.testing.assert_close(torch.cat(parts, dim=2), full, rtol=0, atol=1e-5)


def test_gradients_are_those_of_the_formula(rng):
    q, k, v, slopes = (x.double().requires_grad_() for x in tensors(rng, 2, 4, heads=2, d=3))
    assert torch.autograd.gradcheck(lambda *inputs: alibi_sdpa(*inputs, 1), (q, k, v, slopes))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_gradients_arrive_in_the_dtype_of_the_inputs(rng, dtype):
    q, k, v, slopes = tensors(rng, dtype=dtype)
    for x in (q, k, v):
        x.requires_grad_()
    alibi_sdpa(q, k, v, slopes, 2).square().sum().backward()
    for x in (q, k, v):
        assert x.grad.dtype == dtype and x.grad.isfinite().all() and x.grad.abs().sum() > 0


def test_tensors_that_are_views_work_like_copies(rng):
    q, k, v, slopes = tensors(rng, 5, 5)
    views = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
    assert not views[0].is_contiguous()
    torch.testing.assert_close(alibi_sdpa(*views, slopes), alibi_sdpa(q, k, v, slopes))
    every_other = torch.stack([slopes, slopes + 1], dim=1)[:, 0]
    torch.testing.assert_close(alibi_sdpa(q, k, v, every_other), alibi_sdpa(q, k, v, slopes))


@pytest.mark.parametrize("device", DEVICES)
def test_slopes_may_stay_on_the_cpu(rng, device):
    q, k, v, slopes = tensors(rng, device=device)
    torch.testing.assert_close(alibi_sdpa(q, k, v, slopes.cpu(), 2), alibi_sdpa(q, k, v, slopes, 2))


def test_earlier_calls_leave_no_trace(rng):
    inputs = tensors(rng, 5, 5)
    first = alibi_sdpa(*inputs)
    alibi_sdpa(*(x.bfloat16() for x in inputs))
    alibi_sdpa(*tensors(rng, 5, 9), 4)
    alibi_sdpa(*inputs[:3], inputs[3] * 2)
    assert torch.equal(first, alibi_sdpa(*inputs))


def test_torch_changes_no_input(rng):
    inputs = tensors(rng)
    before = [x.clone() for x in inputs]
    alibi_sdpa(*inputs, 2).zero_()
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))


def test_attention_compiles_into_one_graph(rng):
    compiled = torch.compile(alibi_sdpa, fullgraph=True, backend="eager")
    for n_q, n_k, offset in ((3, 8, 4), (5, 5, 0)):
        inputs = tensors(rng, n_q, n_k)
        torch.testing.assert_close(compiled(*inputs, offset), alibi_sdpa(*inputs, offset))


@pytest.mark.parametrize("offset", [0, 4])
def test_queries_may_be_taken_in_steps_of_any_size(rng, monkeypatch, offset):
    inputs = [x.requires_grad_() for x in tensors(rng, 13, 13 + offset, dtype=torch.float64)]
    at_once = alibi_sdpa(*inputs, offset)
    gradients = torch.autograd.grad(at_once.sin().sum(), inputs)
    for step in (1, 5, 12):
        monkeypatch.setattr(torch_alibi, "QUERIES_AT_ONCE", step)
        in_steps = alibi_sdpa(*inputs, offset)
        torch.testing.assert_close(in_steps, at_once, rtol=0, atol=1e-13)
        for a, b in zip(torch.autograd.grad(in_steps.sin().sum(), inputs), gradients, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


class Largest(TorchDispatchMode):
    """Remembers how many numbers the largest tensor has that an operation made."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for x in torch.utils._pytree.tree_leaves(result):
            if isinstance(x, torch.Tensor):
                self.numbers = max(self.numbers, x.numel())
        return result


def test_no_bias_of_all_queries_and_all_keys_is_made(rng):
    heads, n = 3, 4 * torch_alibi.QUERIES_AT_ONCE
    q, k, v = torch.randn(3, 1, heads, n, 8)
    with Largest() as largest:
        alibi_sdpa(q, k, v, torch.tensor([0.5, 0.25, 0.125]))
    assert largest.numbers == heads * torch_alibi.QUERIES_AT_ONCE * n  # the bias of the last step
    with Largest() as largest:
        torch_alibi.causal_bias(torch.ones(heads), n, n, 0, torch.float32)
    assert largest.numbers == heads * n * n  # so this way of looking would have found it


def test_training_keeps_no_bias_of_all_queries_and_all_keys(rng):
    heads, n, d = 2, 4 * torch_alibi.QUERIES_AT_ONCE, 8
    q, k, v = (torch.randn(1, heads, n, d, requires_grad=True) for _ in range(3))
    slopes = torch.tensor([0.5, 0.25])
    kept = []

    def remember(x):
        kept.append(x.untyped_storage().nbytes() // 4)
        return x

    with torch.autograd.graph.saved_tensors_hooks(remember, lambda x: x):
        result = alibi_sdpa(q, k, v, slopes)
    assert max(kept) <= heads * n * d, "a bias is kept for the backward pass"
    gradients = torch.autograd.grad(result.sum(), (q, k, v))
    whole = torch_alibi._one_step(q, k, v, slopes, 0)
    for a, b in zip(gradients, torch.autograd.grad(whole.sum(), (q, k, v)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("n_q, n_k, offset", [(7, 7, 0), (3, 9, 6), (4, 20, 5)])
def test_flex_attention_does_the_same_with_our_two_functions(rng, n_q, n_k, offset):
    q, k, v, slopes = tensors(rng, n_q, n_k, d=16)
    score_mod, mask_mod = torch_alibi.alibi_for_flex(slopes, offset)
    mask = create_block_mask(mask_mod, None, None, n_q, n_k, device="cpu")
    # Eager FlexAttention multiplies in another order than the fused function of the reference.
    torch.testing.assert_close(
        flex_attention(q, k, v, score_mod, mask),
        alibi_sdpa(q, k, v, slopes, offset),
        rtol=64 * EPS32,
        atol=64 * EPS32,
    )


def test_huge_scores_give_finite_weights(rng):
    q, k, v, slopes = tensors(rng, dtype=torch.float64)
    result = alibi_sdpa(q * 100, k * 100, v, slopes, 4)
    assert error(result, exact(q * 100, k * 100, v, slopes, 4)) < 1e-9


@pytest.mark.parametrize(
    "offset, n_q, n_k", [(-1, 3, 8), (6, 3, 8), (8, 1, 8), (0, 5, 4), (-8, 3, 8)]
)
def test_an_offset_without_keys_is_named(rng, offset, n_q, n_k):
    message = rf"offset ≥ 0 .* got offset {offset}, {n_q} queries and {n_k} keys"
    with pytest.raises(ValueError, match=message):
        alibi_sdpa(*tensors(rng, n_q, n_k), offset)


@pytest.mark.parametrize("offset", [0.5, 1.0, "1", None])
def test_an_offset_that_is_no_integer_is_refused(rng, offset):
    with pytest.raises(TypeError):
        alibi_sdpa(*tensors(rng), offset)


@pytest.mark.parametrize("shape", [(), (1,), (2,), (4,), (3, 1), (1, 3), (1, 3, 1, 1), (2, 3)])
def test_slopes_of_any_other_shape_are_named(rng, shape):
    q, k, v, _ = tensors(rng)
    with pytest.raises(ValueError, match=r"slopes must be \(3,\), one for each head, got"):
        alibi_sdpa(q, k, v, torch.ones(shape))


@pytest.mark.parametrize(
    "q, k, v",
    [
        ((1, 3, 3, 8), (2, 3, 8, 8), (2, 3, 8, 8)),
        ((2, 3, 3, 8), (1, 3, 8, 8), (1, 3, 8, 8)),
        ((2, 3, 3, 8), (2, 3, 8, 8), (1, 3, 8, 8)),
        ((2, 3, 3, 8), (2, 1, 8, 8), (2, 1, 8, 8)),
        ((2, 3, 3, 8), (2, 3, 8, 8), (2, 1, 8, 8)),
        ((2, 3, 3, 8), (2, 3, 8, 1), (2, 3, 8, 8)),
        ((2, 3, 3, 1), (2, 3, 8, 8), (2, 3, 8, 8)),
        ((2, 3, 3, 8), (2, 3, 8, 8), (2, 3, 1, 8)),
        ((2, 3, 3, 8), (2, 3, 8, 8), (2, 3, 6, 8)),
        ((3, 3, 8), (3, 8, 8), (3, 8, 8)),
    ],
)
def test_torch_refuses_shapes_that_do_not_go_together(q, k, v):
    with pytest.raises(ValueError, match="got"):
        alibi_sdpa(*map(torch.ones, (q, k, v)), torch.ones(3))


@pytest.mark.parametrize("at, name", [(0, "q"), (1, "k"), (2, "v"), (3, "slopes")])
def test_torch_refuses_inputs_that_are_not_floating(rng, at, name):
    inputs = list(tensors(rng))
    inputs[at] = inputs[at].long()
    with pytest.raises(TypeError, match=f"{name} must be floating, got torch.int64"):
        alibi_sdpa(*inputs)


# --- faults that real projects shipped ----------------------------------------------------------


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def test_distance_is_penalised_and_never_rewarded():
    """attention-gym#86."""
    positions = np.array([3, 9, 4, 20])
    for bias in (
        alibi.alibi_bias(positions, positions, [0.5])[0],
        alibi.fixed_bias(positions, positions, 0.5),
    ):
        assert (bias <= 0).all() and (bias[~np.eye(4, dtype=bool)] < 0).all()


def test_the_first_slope_is_not_1():
    """aprender#2143 counted heads from zero: 1, .5, .25 where the paper has .5, .25, .125."""
    faulty = [2.0 ** (-8 * head / 8) for head in range(3)]
    assert faulty == [1, 0.5, 0.25]
    assert alibi.alibi_slopes(8)[:3].tolist() == [0.5, 0.25, 0.125]


@pytest.mark.parametrize("num_heads", [3, 6, 12, 20])
def test_head_counts_between_powers_of_two_do_not_follow_the_smooth_formula(num_heads):
    """ofirpress/attention_with_linear_biases#17."""
    smooth = 2.0 ** (-8 * np.arange(1, num_heads + 1) / num_heads)
    slopes = alibi.alibi_slopes(num_heads)
    assert np.abs(slopes - smooth).max() > 0.05
    power = 2 ** int(math.log2(num_heads))
    assert np.array_equal(slopes[:power], alibi.alibi_slopes(power))
    following = alibi.alibi_slopes(2 * power)[0::2][: num_heads - power]
    np.testing.assert_allclose(slopes[power:], following, rtol=1e-15)


def test_the_key_only_form_rewards_the_future_in_both_directions_and_ours_does_not():
    """ofirpress/attention_with_linear_biases#5."""
    positions = np.arange(6.0)
    key_only = softmax(np.broadcast_to(0.5 * positions, (6, 6)))
    assert (key_only.argmax(axis=1) == 5).all()  # every query looks at the last token
    ours = softmax(alibi.fixed_bias(positions, positions, 0.5))
    assert (ours.argmax(axis=1) == np.arange(6)).all()
    np.testing.assert_allclose(ours[2, 1], ours[2, 3], rtol=1e-15)


def test_the_key_only_form_is_no_bug_under_a_causal_softmax(rng):
    """llm-foundry#186 and NeMo#7105 report it as one; each row is shifted by a constant only."""
    q, k, v, slopes, q_positions, k_positions = cached(rng)
    scores = q @ k.swapaxes(1, 2) / math.sqrt(8) + slopes[:, None, None] * k_positions
    scores = np.where(k_positions > q_positions[:, None], -np.inf, scores)
    result = alibi.alibi_attention(q, k, v, slopes, q_positions, k_positions)
    np.testing.assert_allclose(softmax(scores) @ v, result, rtol=0, atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_neighbours_above_position_256_keep_their_own_penalties_in_bfloat16(rng, device):
    """Falcon multiplied slope and position in bfloat16, which has no odd numbers above 256."""
    assert torch.tensor([256, 257, 258, 259]).bfloat16().tolist() == [256, 256, 258, 260]
    n_k = 1000
    v = torch.tensor(rng.choice([-1.0, 1.0], (1, 1, n_k, 8)), device=device).bfloat16()
    q, k = torch.zeros_like(v[:, :, :2]), torch.zeros_like(v)
    slopes = torch.tensor([0.5], device=device)
    result = alibi_sdpa(q, k, v, slopes, n_k - 2)
    expected = exact(q, k, v, slopes, n_k - 2)
    assert error(result, expected) <= 2.0**-8
    positions = torch.arange(n_k, device=device).bfloat16()
    bias = (0.5 * (positions - positions[-2:, None])).float()
    later = torch.ones(2, n_k, dtype=torch.bool, device=device).triu(n_k - 1)
    faulty = bias.masked_fill(later, -math.inf).softmax(-1) @ v[0, 0].float()
    assert error(faulty, expected[0, 0]) > 0.1


def test_padding_on_the_left_changes_nothing_when_positions_come_from_the_mask(rng):
    """PaddleNLP#6496 took key positions from places in the padded row."""
    q, k, v, slopes, *_ = cached(rng, n_q=3, n_k=3)
    alone = alibi.alibi_attention(q, k, v, slopes, range(3), range(3))
    padding = np.ones((2, 2, 8))
    k, v = (np.concatenate([padding, x], axis=1) for x in (k, v))
    mask = np.array([0, 0, 1, 1, 1])
    positions = np.where(mask == 1, np.cumsum(mask) - 1, 10**6)  # padding stands after everything
    padded = alibi.alibi_attention(q, k, v, slopes, positions[2:], positions)
    np.testing.assert_allclose(padded, alone, rtol=0, atol=1e-14)
    by_places = alibi.alibi_attention(q, k, v, slopes, range(2, 5), range(5))
    assert np.abs(by_places - alone).max() > 0.01


def test_a_decoded_query_does_not_stand_at_position_zero(rng):
    """candle#899 was T5's bias, and the same holds for all of them."""
    q, k, v, slopes, *_ = cached(rng, n_q=6, n_k=6)
    full = alibi.alibi_attention(q, k, v, slopes, range(6), range(6))
    for t in range(6):
        cache = (k[:, : t + 1], v[:, : t + 1], slopes)
        step = alibi.alibi_attention(q[:, t : t + 1], *cache, [t], range(t + 1))
        np.testing.assert_allclose(step[:, 0], full[:, t], rtol=0, atol=1e-14)
    decoded = alibi.t5_bucket(np.arange(6) - 5, bidirectional=False)
    as_if_at_zero = alibi.t5_bucket(np.arange(6) - 0, bidirectional=False)
    assert decoded.tolist() == [5, 4, 3, 2, 1, 0] and as_if_at_zero.tolist() == [0] * 6


def test_a_bucket_is_that_of_key_minus_query():
    """x-transformers#10 had it the other way round."""
    query, keys = 7, np.array([4, 7, 10])
    assert alibi.t5_bucket(keys - query).tolist() == [3, 0, 19]
    assert alibi.t5_bucket(query - keys).tolist() == [19, 0, 3]
    assert alibi.t5_bucket(keys - query, bidirectional=False).tolist() == [3, 0, 0]


# --- the text of the reference ------------------------------------------------------------------

MODULES = ("solutions.with_numpy.alibi", "solutions.with_torch.alibi")
SIGNATURES = {
    alibi.alibi_slopes: "(num_heads)",
    alibi.alibi_bias: "(q_positions, k_positions, slopes)",
    alibi.alibi_attention: "(q, k, v, slopes, q_positions, k_positions)",
    alibi.t5_bucket: "(relative_position, bidirectional=True, num_buckets=32, max_distance=128)",
    alibi.shaw_scores: "(q, k, relative_keys, q_positions, k_positions)",
    alibi.fixed_bias: "(q_positions, k_positions, slope)",
    alibi_sdpa: "(q, k, v, slopes, offset=0)",
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


def test_the_bias_of_the_torch_room_is_exact_where_float32_still_counts():
    bias = torch_alibi.causal_bias(torch.tensor([0.5]), 2, 3, 1, torch.float32)
    assert bias.tolist() == [[[-0.5, 0, -math.inf], [-1, -0.5, 0]]]
    far = torch_alibi.causal_bias(torch.tensor([0.25]), 1, 70_001, 70_000, torch.float32)[0, 0]
    assert far[[0, -3, -2, -1]].tolist() == [-17_500, -0.5, -0.25, 0]

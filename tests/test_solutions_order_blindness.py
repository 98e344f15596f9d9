"""The reference of the chapter `order_blindness` against values that do not come from it.

Slow loops of the paper's formula in plain Python, fractions worked out by hand and torch's own
attention: every student is graded against this reference, so a fault of its own must be found here.
"""

import doctest
import importlib
import inspect
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from solutions.with_numpy import order_blindness as order
from solutions.with_torch.order_blindness import multi_head_attention
from tests.devices import DEVICES

EPS64, EPS32 = 2.0**-52, 2.0**-23


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20170612)


def head(rng, n=5, d_model=8, d_k=3, d_v=2):
    x = rng.normal(size=(n, d_model))
    weights = [rng.normal(size=(d_model, d)) / math.sqrt(d_model) for d in (d_k, d_k, d_v)]
    return (x, *weights)


def some_mask(rng, n):
    """No row is empty, none is full, and there is no pattern."""
    mask = rng.random((n, n)) < 0.5
    rows = np.arange(n)
    mask[rows, rows[::-1]], mask[rows, (rows[::-1] + 1) % n] = True, False
    return mask


# --- the paper's formula, one number at a time --------------------------------------------------


def slow_softmax(scores):
    """Shares of floats, by way of the largest."""
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    return [power / math.fsum(powers) for power in powers]


def slow_attention(q, k, v, mask=None):
    """One head in Python floats: a query at a time, a key at a time."""
    q, k, v = (np.asarray(array, dtype=np.float64).tolist() for array in (q, k, v))
    out = []
    for t, query in enumerate(q):
        seen = [j for j in range(len(k)) if mask is None or mask[t][j]]
        scores = [
            math.fsum(a * b for a, b in zip(query, k[j], strict=True)) / math.sqrt(len(query))
            for j in seen
        ]
        shares = dict(zip(seen, slow_softmax(scores), strict=True))
        out.append([math.fsum(s * v[j][c] for j, s in shares.items()) for c in range(len(v[0]))])
    return np.array(out)


def slow_head(x, w_q, w_k, w_v, mask=None):
    def project(w):
        return [
            [math.fsum(float(a) * float(b) for a, b in zip(row, w[:, c], strict=True))
             for c in range(w.shape[1])]
            for row in x
        ]  # fmt: skip

    return slow_attention(project(w_q), project(w_k), project(w_v), mask)


# --- one head -----------------------------------------------------------------------------------


def test_weights_worked_out_by_hand():
    """Scores ln 3, 0 give 3/4, 1/4; scores ln 7, 0 give 7/8, 1/8."""
    w_q = np.array([[2 * math.log(3), 0, 0, 0], [2 * math.log(7), 0, 0, 0]])
    w_k = np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]])
    out = order.self_attention(np.eye(2), w_q, w_k, np.eye(2))
    np.testing.assert_allclose(out, [[3 / 4, 1 / 4], [7 / 8, 1 / 8]], rtol=0, atol=4 * EPS64)


@pytest.mark.parametrize(
    "shape", [(5, 8, 3, 2), (3, 2, 5, 7), (1, 4, 2, 3), (4, 4, 4, 4), (7, 1, 1, 1), (2, 16, 8, 8)]
)
def test_a_head_equals_the_slow_loop(rng, shape):
    inputs = head(rng, *shape)
    n = shape[0]
    for mask in (None, np.tri(n, dtype=bool), np.eye(n, dtype=bool)[rng.permutation(n)]):
        out = order.self_attention(*inputs, mask)
        assert out.shape == (n, shape[3])
        np.testing.assert_allclose(out, slow_head(*inputs, mask), rtol=0, atol=1e-13)


def test_a_mask_without_pattern_equals_the_slow_loop(rng):
    inputs = head(rng, 6)
    for _ in range(5):
        mask = some_mask(rng, 6)
        expected = slow_head(*inputs, mask)
        np.testing.assert_allclose(order.self_attention(*inputs, mask), expected, atol=1e-13)


def test_non_contiguous_arguments_are_read_as_they_are(rng):
    x, w_q, w_k, w_v = head(rng)
    views = [np.repeat(a, 2, axis=1)[:, ::2] for a in (x, w_q, w_k, w_v)]
    views = [np.asfortranarray(a)[::-1][::-1] for a in views]
    mask = some_mask(rng, 5)
    assert not views[0].flags.c_contiguous
    out = order.self_attention(*views, np.asfortranarray(mask))
    np.testing.assert_allclose(out, slow_head(x, w_q, w_k, w_v, mask), rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("top", [1e4, -1e4, 709.0, -709.0, -745.0, 88.0])
def test_scores_of_any_size_leave_the_softmax_exact(dtype, top):
    """Scores top, top − ½ and top + 1, exact in both dtypes, against shares of 0, −½ and 1."""
    w_q = np.array([[2 * top, 2.0, 0, 0]] * 3)
    w_k = np.array([[1.0, 0, 0, 0], [1, -0.5, 0, 0], [1, 1, 0, 0]])
    values = np.array([[1.0], [10.0], [100.0]])
    x, w_q, w_k, values = (a.astype(dtype) for a in (np.eye(3), w_q, w_k, values))
    with np.errstate(all="raise", under="ignore"):
        out = order.self_attention(x, w_q, w_k, values)
    shares = slow_softmax([0.0, -0.5, 1.0])
    expected = shares[0] + 10 * shares[1] + 100 * shares[2]
    np.testing.assert_allclose(out, np.full((3, 1), expected), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("top", [370.0, 1e4])
def test_a_masked_score_far_above_the_others_leaves_them_their_shares(top):
    """The largest score of a row must be looked for after masking."""
    w_q = np.array([[2 * top, 2.0, 0, 0]] * 3)
    w_k = np.array([[-1.0, 0, 0, 0], [1, 0, 0, 0], [-1, 1, 0, 0]])
    mask = np.array([[True, False, True]] * 3)
    out = order.self_attention(np.eye(3), w_q, w_k, np.diag([1.0, 10.0, 100.0]), mask)
    low, high = slow_softmax([0.0, 1.0])
    np.testing.assert_allclose(out, [[low, 0, 100 * high]] * 3, rtol=1e-14)


def test_all_true_is_no_mask_and_one_key_is_its_value(rng):
    x, w_q, w_k, w_v = inputs = head(rng)
    full = np.ones((5, 5), dtype=bool)
    assert np.array_equal(order.self_attention(*inputs, full), order.self_attention(*inputs))
    keys = rng.permutation(5)
    out = order.self_attention(*inputs, np.eye(5, dtype=bool)[keys])
    np.testing.assert_allclose(out, (x @ w_v)[keys], rtol=0, atol=1e-14)


def test_no_tokens_give_no_results():
    out = order.self_attention(np.zeros((0, 3)), np.ones((3, 2)), np.ones((3, 2)), np.ones((3, 4)))
    assert out.shape == (0, 4)


@pytest.mark.parametrize("others", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_dtype_of_the_tokens_wins_and_is_rounded_to_once(rng, dtype, others):
    x, *weights = head(rng)
    inputs = (x.astype(dtype), *(w.astype(others) for w in weights))
    out = order.self_attention(*inputs)
    assert out.dtype == dtype
    exact = order.self_attention(*(a.astype(np.float64) for a in inputs))
    assert np.array_equal(out, exact.astype(dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_integers_become_float64_and_products_do_not_wrap_round(rng, dtype):
    inputs = [rng.integers(0, 100, a.shape).astype(dtype) for a in head(rng)]
    inputs[1] //= 50
    out = order.self_attention(*inputs)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, slow_head(*(a.astype(int) for a in inputs)), rtol=1e-10)


@pytest.mark.parametrize("dtype", [bool, complex, str, object])
@pytest.mark.parametrize("which", range(4))
def test_anything_but_integers_and_floats_is_refused_by_name(rng, dtype, which):
    inputs = list(head(rng))
    inputs[which] = np.ones(inputs[which].shape).astype(dtype)
    name = ("x", "w_q", "w_k", "w_v")[which]
    with pytest.raises(TypeError, match=f"{name} must hold integers or floats, got dtype"):
        order.self_attention(*inputs)


@pytest.mark.parametrize("function", ["self_attention", "permutation_gap"])
def test_inputs_are_never_changed(rng, function):
    inputs = [*head(rng), some_mask(rng, 5)]
    if function == "permutation_gap":
        inputs.insert(4, rng.permutation(5))
    before = [a.copy() for a in inputs]
    getattr(order, function)(*inputs)
    for now, then in zip(inputs, before, strict=True):
        assert np.array_equal(now, then) and now.dtype == then.dtype


def test_a_query_that_may_attend_to_nothing_is_refused_by_number(rng):
    inputs, mask = head(rng), np.ones((5, 5), dtype=bool)
    mask[[1, 3]] = False
    with pytest.raises(ValueError, match=r"rows \[1, 3\] of mask are False throughout"):
        order.self_attention(*inputs, mask)
    mask[[1, 3], [4, 0]] = True
    order.self_attention(*inputs, mask)


@pytest.mark.parametrize(
    "shape", [(), (1,), (5,), (1, 5), (5, 1), (1, 1), (1, 5, 5), (4, 5), (6, 6), (0, 0)]
)
def test_a_mask_of_another_shape_is_refused_with_both_shapes(rng, shape):
    with pytest.raises(ValueError, match=r"mask must be \(5, 5\)") as refused:
        order.self_attention(*head(rng), np.ones(shape, dtype=bool))
    assert str(shape) in str(refused.value)


@pytest.mark.parametrize("dtype", [int, float])
def test_a_mask_of_numbers_is_refused(rng, dtype):
    with pytest.raises(TypeError, match="True = may attend"):
        order.self_attention(*head(rng), np.tri(5).astype(dtype))


@pytest.mark.parametrize(
    "change",
    [
        {"x": (5, 7)},
        {"x": (5, 1)},
        {"x": (8,)},
        {"x": (2, 5, 8)},
        {"w_q": (8, 1)},
        {"w_q": (1, 3)},
        {"w_q": (3, 8)},
        {"w_k": (8, 1)},
        {"w_k": (7, 3)},
        {"w_v": (1, 2)},
        {"w_v": (8,)},
        {"w_q": (8, 0), "w_k": (8, 0)},
    ],
    ids=str,
)
def test_shapes_that_do_not_go_together_are_refused(rng, change):
    shapes = {"x": (5, 8), "w_q": (8, 3), "w_k": (8, 3), "w_v": (8, 2)} | change
    with pytest.raises(ValueError, match="got"):
        order.self_attention(**{name: np.ones(shape) for name, shape in shapes.items()})


# --- the order of the tokens --------------------------------------------------------------------


def test_attention_without_a_mask_is_equivariant_for_every_order_of_four_tokens(rng):
    inputs = head(rng, n=4)
    for permutation in itertools.permutations(range(4)):
        assert order.permutation_gap(*inputs, permutation) < 1e-14


def test_two_sentences_of_the_same_words_get_the_same_vectors(rng):
    """dog bites man, man bites dog: each word's result is the same, to rounding."""
    _, w_q, w_k, w_v = head(rng)
    words = dict(zip(("dog", "bites", "man"), rng.normal(size=(3, 8)), strict=True))
    sentences = (["dog", "bites", "man"], ["man", "bites", "dog"])
    results = []
    for sentence in sentences:
        out = order.self_attention(np.stack([words[w] for w in sentence]), w_q, w_k, w_v)
        results.append(dict(zip(sentence, out, strict=True)))
    for word in words:
        np.testing.assert_allclose(results[0][word], results[1][word], rtol=0, atol=1e-14)


def test_gap_under_a_causal_mask_in_exact_fractions():
    """Equal scores make running averages: 1, 2, 4 of 1, 3, 8, against 8, 9/2, 4 of 8, 1, 3."""
    numbers, permutation = [1, 3, 8], [2, 0, 1]

    def averages(values):
        return [sum(map(Fraction, values[: t + 1])) / (t + 1) for t in range(len(values))]

    first = averages([numbers[p] for p in permutation])
    last = [averages(numbers)[p] for p in permutation]
    expected = max(abs(a - b) for a, b in zip(first, last, strict=True))
    assert expected == 4
    inputs = (np.array(numbers)[:, None], [[0]], [[0]], [[1]], permutation)
    assert order.permutation_gap(*inputs, order.causal_mask(3)) == pytest.approx(4, abs=1e-14)
    assert order.permutation_gap(*inputs) == pytest.approx(0, abs=1e-14)


def test_gap_equals_the_slow_one_and_keeps_the_mask_in_its_place(rng):
    for n in (2, 5, 7):
        x, *weights = head(rng, n)
        permutation, mask = rng.permutation(n), some_mask(rng, n)
        first = slow_head(x[permutation], *weights, mask)
        last = slow_head(x, *weights, mask)[permutation]
        gap = order.permutation_gap(x, *weights, permutation, mask)
        assert type(gap) is float
        assert gap == pytest.approx(np.abs(first - last).max(), abs=1e-13)
        moved = mask[permutation][:, permutation]
        with_tokens = order.self_attention(x[permutation], *weights, moved)
        np.testing.assert_allclose(with_tokens, last, rtol=0, atol=1e-13)  # so it has to stay


def test_gap_of_half_precision_tokens_is_not_their_rounding(rng):
    x, *weights = head(rng, 9)
    assert order.permutation_gap(x.astype(np.float16), *weights, rng.permutation(9)) < 1e-14


@pytest.mark.parametrize(
    "permutation",
    [
        [0, 1, 2, 3],
        [0, 1, 2, 3, 4, 0],
        [0, 1, 2, 3, 3],
        [1, 2, 3, 4, 5],
        [0, 1, 2, 3, -1],
        [-5, -4, -3, -2, -1],
        [0.0, 1.0, 2.0, 3.0, 4.0],
        [0.5, 1.5, 2.5, 3.5, 4.5],
        [True, False, True, True, False],
        [[0, 1, 2, 3, 4]],
        [[0], [1], [2], [3], [4]],
        2,
        [],
    ],
    ids=str,
)
def test_what_is_no_permutation_is_refused(rng, permutation):
    with pytest.raises(ValueError, match="each of the integers 0 to 4 once"):
        order.permutation_gap(*head(rng), permutation)


def test_a_mask_of_two_tokens_is_no_permutation_though_it_sorts_like_one(rng):
    with pytest.raises(ValueError, match="permutation must hold"):
        order.permutation_gap(*head(rng, 2), [True, False])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_a_permutation_may_have_any_integer_dtype(rng, dtype):
    inputs, permutation, mask = head(rng), rng.permutation(5), order.causal_mask(5)
    gap = order.permutation_gap(*inputs, permutation.astype(dtype), mask)
    assert gap == order.permutation_gap(*inputs, permutation.tolist(), mask) > 0.01


# --- what an encoding needs ---------------------------------------------------------------------


def sinusoids(n, dim=4):
    angles = np.arange(n)[:, None] * 10000.0 ** (-2 * np.arange(dim // 2) / dim)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, dim)


def test_the_naive_encodings_fail_as_the_chapter_says():
    index = np.arange(10.0)[:, None]
    assert order.failed_requirements(index[:4], index) == {"bounded", "multi-dimensional"}
    normalised = order.failed_requirements(index[:4] / 4, index / 10)
    assert normalised == {"length-independent", "multi-dimensional"}
    assert order.failed_requirements(sinusoids(10), sinusoids(50)) == set()
    bits = order.binary_positions(16, 4)
    assert order.failed_requirements(bits[:5], bits) == set()
    one_sine = np.sin(np.arange(60.0) * 2 * np.pi / 8)[:, None]
    assert order.failed_requirements(one_sine[:4], one_sine) == {"unique", "multi-dimensional"}


EVERY = ("bounded", "unique", "length-independent", "multi-dimensional")


@pytest.mark.parametrize("kept", list(itertools.product([True, False], repeat=4)), ids=str)
def test_each_requirement_is_judged_by_itself(rng, kept):
    dim = 3 if kept[3] else 1
    long = rng.permutation(np.linspace(-1, 1, 9 * dim)).reshape(9, dim)
    if not kept[0]:
        long[2, 0] = -1.01
    if not kept[1]:
        long[8] = long[1]
    short = long[:4].copy()
    if not kept[2]:
        short[3, 0] -= math.copysign(0.003, short[3, 0])
    expected = {name for name, met in zip(EVERY, kept, strict=True) if not met}
    assert order.failed_requirements(short, long) == expected


@pytest.mark.parametrize(
    "value, bound, bounded",
    [(1.0, 1.0, True), (-1.0, 1.0, True), (np.nextafter(1, 2), 1.0, False), (-2.5, 2.5, True),
     (-2.6, 2.5, False), (0.5, 0.25, False), (np.inf, 9.0, False), (np.nan, 9.0, False)],
)  # fmt: skip
def test_the_bound_is_inclusive_and_counts_in_both_tables(value, bound, bounded):
    clean = np.linspace(-0.2, 0.2, 12).reshape(6, 2)
    short = clean[:3].copy()
    short[1, 1] = value
    assert ("bounded" not in order.failed_requirements(short, clean, bound)) == bounded
    if not np.isfinite(value):
        return  # in both tables it has no difference to itself
    for row in (1, 5):
        table = clean.copy()
        table[row, 0] = value
        assert ("bounded" not in order.failed_requirements(table[:3], table, bound)) == bounded


@pytest.mark.parametrize("distance, unique", [(0, False), (9e-10, False), (1.1e-9, True)])
@pytest.mark.parametrize("at", [0.5, 0.1234567895, -0.9999999995])
def test_rows_within_a_billionth_are_twins_wherever_their_digits_turn(distance, unique, at):
    table = np.linspace(-0.8, 0.8, 16).reshape(8, 2)
    table[7] = table[2] = [0.3, at]
    table[7, 1] += distance
    assert ("unique" not in order.failed_requirements(table[:5], table)) == unique
    both = table.copy()
    both[7, 0] += 0.5  # near in one coordinate alone
    assert "unique" not in order.failed_requirements(both[:5], both)


@pytest.mark.parametrize("distance, same", [(0, True), (9e-10, True), (1.1e-9, False)])
def test_length_independence_is_judged_within_a_billionth(distance, same):
    table = np.linspace(-0.8, 0.8, 16).reshape(8, 2)
    short = table[:3].copy()
    short[2, 1] += distance
    failed = order.failed_requirements(short, table)
    assert failed == (set() if same else {"length-independent"})


def test_small_integers_have_their_absolute_value():
    """abs(int8(−128)) is −128, which lies below every bound."""
    table = np.array([[-128, 0], [1, 0], [0, 0], [5, 5]], dtype=np.int8)
    assert order.failed_requirements(table[:2], table, 127.0) == {"bounded"}
    assert order.failed_requirements(table[:2], table, 128.0) == set()


def test_a_long_table_is_judged_without_a_square_of_memory():
    table = sinusoids(2000, 64)
    assert order.failed_requirements(table[:1000], table) == set()


@pytest.mark.parametrize(
    "short, long",
    [((3, 2), (5, 3)), ((3, 1), (5, 2)), ((3, 2), (5, 1)), ((5, 2), (3, 2)), ((5, 2), (1, 2)),
     ((4, 2), (4, 2)), ((3,), (5,)), ((3,), (5, 3)), ((2, 3, 2), (2, 5, 2)), ((3, 0), (5, 0))],
)  # fmt: skip
def test_tables_that_are_no_two_lengths_of_one_encoding_are_refused(short, long):
    with pytest.raises(ValueError, match="got"):
        order.failed_requirements(np.zeros(short), np.zeros(long))


# --- counters, masks, averages ------------------------------------------------------------------


@pytest.mark.parametrize("positions, bits", [(5, 3), (8, 3), (1, 1), (1, 0), (0, 0), (0, 4),
                                             (300, 9), (3, 70), (1025, 12)])  # fmt: skip
def test_bits_are_those_of_pythons_numerals(positions, bits):
    table = order.binary_positions(positions, bits)
    assert table.shape == (positions, bits) and table.dtype == np.int64
    for t, row in enumerate(table):
        assert "".join(map(str, row[::-1])) == (f"{t:0{bits}b}" if bits else "")


@pytest.mark.parametrize("positions, bits", [(2, 0), (3, 1), (9, 3), (257, 8)])
def test_too_few_bits_are_refused_with_the_number_that_is_needed(positions, bits):
    with pytest.raises(ValueError, match=f"at least {bits + 1} for {positions} positions"):
        order.binary_positions(positions, bits)
    assert order.binary_positions(positions, bits + 1).shape == (positions, bits + 1)


@pytest.mark.parametrize("positions, bits", [(-1, 3), (5, -3), (-1, -1), (2.0, 3), (2, "3")])
def test_counts_that_are_none_are_refused(positions, bits):
    with pytest.raises(ValueError, match="must be an integer of at least 0"):
        order.binary_positions(positions, bits)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 17, np.int64(4), np.uint8(200)])
def test_causal_mask_row_by_row(n):
    mask = order.causal_mask(n)
    assert mask.shape == (n, n) and mask.dtype == bool
    for t, j in itertools.product(range(int(n)), repeat=2):
        assert mask[t, j] == (j <= t)


@pytest.mark.parametrize("n", [-1, -7, 2.5, 3.0, "3"])
def test_causal_mask_refuses_what_is_no_length(n):
    with pytest.raises(ValueError, match="n must be an integer of at least 0"):
        order.causal_mask(n)


def shares(positions, dtype):
    n = len(positions)
    rows = [[1 / (t + 1) if j <= t else 0.0 for j in range(n)] for t in positions]
    return np.array(rows, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 300, 1000])
def test_positions_come_back_from_rows_in_any_order(rng, dtype, n):
    positions = rng.permutation(n)
    read = order.positions_from_causal_average(shares(positions.tolist(), dtype))
    assert read.dtype == np.int64 and np.array_equal(read, positions)


def test_reciprocals_have_to_be_rounded_not_cut():
    """Cutting off is wrong from float32's 1/7 on, and from float64's 1/93."""
    for dtype, first in ((np.float32, 7), (np.float64, 93)):
        counts = np.arange(1, 101)
        cut = (1 / (1 / counts).astype(dtype)).astype(int)
        assert counts[cut != counts][0] == first


def test_positions_come_back_from_real_attention_without_encodings(rng):
    """Equal scores under a causal mask: values that mark token 0 carry its share."""
    n = 50
    x = rng.normal(size=(n, 4))
    x[:, 0] = 0
    x[0, 0] = 1
    mark = np.eye(4)[:, :1]
    share = order.self_attention(x, np.zeros((4, 2)), np.ones((4, 2)), mark, order.causal_mask(n))
    np.testing.assert_allclose(share[:, 0], 1 / np.arange(1, n + 1), rtol=1e-14)
    weights = order.self_attention(
        np.eye(n), np.zeros((n, 2)), np.ones((n, 2)), np.eye(n), order.causal_mask(n)
    )
    assert np.array_equal(order.positions_from_causal_average(weights), np.arange(n))


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (4,), (), (2, 3, 3), (1, 3)])
def test_weights_that_are_no_square_are_refused(shape):
    with pytest.raises(ValueError, match=r"weights must be \(n, n\)"):
        order.positions_from_causal_average(np.ones(shape))


@pytest.mark.parametrize(
    "column", [[1, 0.5, 0], [1, 0.5, 0.5], [1, 0.5, 0.25], [0.5, 1 / 3, 0.25], [-1, 0.5, 1 / 3],
               [np.nan, 0.5, 1 / 3], [np.inf, 0.5, 1 / 3], [1, 0.5, 1e-300]],
)  # fmt: skip
def test_shares_of_no_causal_average_are_refused(column):
    weights = np.zeros((3, 3))
    weights[:, 0] = column
    with np.errstate(all="raise"), pytest.raises(ValueError, match="once, got"):
        order.positions_from_causal_average(weights)


# --- many heads ---------------------------------------------------------------------------------


def heads(*shape, dtype=torch.float64, device="cpu", seed=3):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator).to(device, dtype) for _ in range(3)]


def torch_mask(*shape, seed=5):
    mask = torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    mask[..., 0] = True
    mask[..., -1] = False
    return mask


MASKS = [None, (5, 5), (2, 3, 5, 5), (2, 1, 5, 5), (1, 3, 5, 5), (3, 5, 5), (2, 1, 1, 5), (1, 5)]


@pytest.mark.parametrize("shape", MASKS, ids=str)
def test_every_head_of_every_sequence_equals_the_slow_loop(shape):
    q, k, v = heads(2, 3, 5, 7)
    mask = None if shape is None else torch_mask(*shape)
    out = multi_head_attention(q, k, v, mask)
    for b, h in itertools.product(range(2), range(3)):
        square = None if mask is None else mask.expand(2, 3, 5, 5)[b, h].tolist()
        expected = slow_attention(q[b, h], k[b, h], v[b, h], square)
        np.testing.assert_allclose(out[b, h], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "dtype, allowed",
    [(torch.float64, 1e-13), (torch.float32, 2e-6), (torch.float16, 4e-3), (torch.bfloat16, 3e-2)],
)
@pytest.mark.parametrize("shape", MASKS, ids=str)
def test_attention_agrees_with_torchs_own(shape, dtype, allowed, device):
    q, k, v = heads(2, 3, 5, 6, dtype=dtype, device=device)
    mask = None if shape is None else torch_mask(*shape).to(device)
    out = multi_head_attention(q, k, v, mask)
    assert out.dtype == dtype and out.shape == q.shape and out.device == q.device
    theirs = scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(out, theirs, rtol=0, atol=allowed)
    wide = scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask)
    torch.testing.assert_close(out, wide.to(dtype), rtol=2 * torch.finfo(dtype).eps, atol=allowed)


@pytest.mark.parametrize("shape", [(1, 1, 1, 4), (3, 1, 6, 5), (4, 4, 4, 4), (1, 2, 7, 1)])
def test_other_sizes_agree_with_torchs_own(shape):
    q, k, v = heads(*shape)
    causal = torch.ones(shape[2], shape[2], dtype=torch.bool).tril()
    expected = scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(multi_head_attention(q, k, v, causal), expected)


def test_the_two_rooms_agree(rng):
    x, w_q, w_k, w_v = head(rng, d_k=3, d_v=3)
    mask = some_mask(rng, 5)
    q, k, v = (torch.tensor(x @ w)[None, None] for w in (w_q, w_k, w_v))
    out = multi_head_attention(q, k, v, torch.tensor(mask))
    expected = order.self_attention(x, w_q, w_k, w_v, mask)
    np.testing.assert_allclose(out[0, 0], expected, rtol=0, atol=1e-13)


def test_non_contiguous_heads_are_read_as_they_are():
    """The usual split of a projection is a view."""
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in heads(2, 3, 5, 6))
    assert not q.is_contiguous()
    expected = scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(multi_head_attention(q, k, v), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("top", [1e4, 6e4])
def test_large_scores_stay_finite_in_every_dtype(dtype, top, device):
    """6e4 is a score that float16 can hold, but not the product before it is divided by 2."""
    root = math.sqrt(2 * top)
    q = torch.tensor([[root, 0, 0, 0], [-root, 0, 0, 0]], dtype=dtype, device=device)[None, None]
    k = torch.tensor([[root, 0, 0, 0], [0, 0, 0, 0]], dtype=dtype, device=device)[None, None]
    v = torch.tensor([[1.0, 2, 3, 4], [5, 6, 7, 8]], dtype=dtype, device=device)[None, None]
    assert torch.equal(multi_head_attention(q, k, v), v)  # query 0 takes key 0, query 1 the other
    mask = torch.tensor([[False, True], [True, False]], device=device)
    assert torch.equal(multi_head_attention(q, k, v, mask), v.flip(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_autocast_changes_neither_dtype_nor_result(dtype):
    q, k, v = heads(2, 3, 5, 8, dtype=dtype)
    mask = torch_mask(5, 5)
    expected = multi_head_attention(q, k, v, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = multi_head_attention(q, k, v, mask)
        assert scaled_dot_product_attention(q, k, v).dtype == (
            torch.float64 if dtype == torch.float64 else torch.bfloat16
        )  # torch's own function follows autocast
    assert out.dtype == dtype and torch.equal(out, expected)


def test_gradients_are_those_of_torchs_own_also_beside_a_blind_query():
    mask = torch_mask(5, 5)
    mask[2] = False
    results = []
    for attend in (multi_head_attention, scaled_dot_product_attention):
        inputs = [x.requires_grad_() for x in heads(2, 3, 5, 6)]
        out = attend(*inputs, mask)
        assert out[:, :, 2].eq(0).all()
        out.square().sum().backward()
        results.append([x.grad for x in inputs])
    for ours, theirs in zip(*results, strict=True):
        assert ours.isfinite().all()
        torch.testing.assert_close(ours, theirs)


def test_gradient_equals_finite_differences():
    inputs = [x.requires_grad_() for x in heads(1, 2, 3, 4)]
    mask = torch_mask(3, 3)
    assert torch.autograd.gradcheck(lambda *x: multi_head_attention(*x, mask), inputs)


def test_heads_and_masks_are_never_changed():
    inputs = [*heads(2, 3, 5, 6), torch_mask(5, 5)]
    before = [x.clone() for x in inputs]
    multi_head_attention(*inputs).zero_()
    assert all(map(torch.equal, inputs, before))


@pytest.mark.parametrize(
    "which, shape",
    [
        ("q", (1, 3, 5, 6)),
        ("q", (2, 1, 5, 6)),
        ("q", (2, 3, 1, 6)),
        ("k", (1, 3, 5, 6)),
        ("k", (2, 1, 5, 6)),
        ("k", (2, 3, 4, 6)),
        ("k", (2, 3, 5, 1)),
        ("v", (2, 1, 5, 6)),
        ("v", (2, 3, 1, 6)),
        ("v", (2, 3, 5)),
    ],
)
def test_heads_that_would_broadcast_are_refused(which, shape):
    inputs = {name: torch.ones(2, 3, 5, 6) for name in "qkv"} | {which: torch.ones(shape)}
    with pytest.raises(ValueError, match="one shape"):
        multi_head_attention(**inputs)


@pytest.mark.parametrize("shape", [(6, 5, 8), (5, 8), (0, 2, 5, 5, 4)])
def test_heads_need_four_axes(shape):
    with pytest.raises(ValueError, match=r"\(batch, heads, seq, head_dim\)"):
        multi_head_attention(*(torch.ones(shape) for _ in range(3)))


@pytest.mark.parametrize(
    "shape",
    [(4, 4), (5, 4), (3, 1, 5, 5), (2, 5, 5), (1, 1, 2, 5, 5), (1, 2, 3, 5, 5), (2, 4, 5, 5)],
)
def test_a_mask_that_does_not_fit_or_would_widen_the_result_is_refused(shape):
    with pytest.raises(ValueError, match="mask must broadcast to"):
        multi_head_attention(*heads(2, 3, 5, 6), torch.ones(shape, dtype=torch.bool))
    single = [x[:1] for x in heads(2, 3, 5, 6)]
    with pytest.raises(ValueError, match="mask must broadcast to"):
        multi_head_attention(*single, torch.ones(2, 1, 5, 5, dtype=torch.bool))


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
def test_a_mask_that_is_not_bool_is_refused(dtype):
    with pytest.raises(ValueError, match="mask must be bool"):
        multi_head_attention(*heads(2, 3, 5, 6), torch.ones(5, 5, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_heads_that_are_not_floating_are_refused_by_name(dtype):
    q, k, v = heads(2, 3, 5, 6)
    with pytest.raises(ValueError, match="k must be floating"):
        multi_head_attention(q, k.to(dtype), v)


# --- what students read -------------------------------------------------------------------------

MODULES = ("solutions.with_numpy.order_blindness", "solutions.with_torch.order_blindness")
SIGNATURES = {
    order.self_attention: "(x, w_q, w_k, w_v, mask=None)",
    order.permutation_gap: "(x, w_q, w_k, w_v, permutation, mask=None)",
    order.failed_requirements: "(short_table, long_table, bound=1.0)",
    order.binary_positions: "(num_positions, num_bits)",
    order.causal_mask: "(n)",
    order.positions_from_causal_average: "(weights)",
    multi_head_attention: "(q, k, v, mask=None)",
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

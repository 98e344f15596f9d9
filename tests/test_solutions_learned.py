"""The reference of the chapter `learned` against values that do not come from it.

Slow loops in plain Python, finite differences, torch's own embedding and interpolation, and what
RoBERTa's code gives (data/golden_learned.json): every student is graded against this reference, so
a fault of its own must be found here.
"""

import copy
import doctest
import importlib
import inspect
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from solutions.with_numpy import learned
from solutions.with_torch.learned import LearnedPositionalEmbedding
from tests.devices import DEVICES

GOLDEN = json.loads((Path(__file__).parent / "data" / "golden_learned.json").read_text())["golden"]
EPS64 = 2.0**-52


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20181011)


# --- one number at a time -----------------------------------------------------------------------


def slow_lookup(table, positions) -> np.ndarray:
    positions = np.asarray(positions)
    result = np.empty((*positions.shape, len(table[0])))
    for place in np.ndindex(*positions.shape):
        for c, number in enumerate(table[positions[place]]):
            result[place][c] = number
    return result


def slow_gradient(grad_output, positions, num_positions) -> np.ndarray:
    positions = np.asarray(positions)
    result = np.zeros((num_positions, np.shape(grad_output)[-1]))
    for row in range(num_positions):
        for place in np.ndindex(*positions.shape):
            if positions[place] == row:
                for c in range(result.shape[1]):
                    result[row, c] += float(np.asarray(grad_output)[place][c])
    return result


def slow_resize(table, new_length) -> np.ndarray:
    """Each new row by the fraction of whole steps, in exact integer arithmetic up to the end."""
    last = len(table) - 1
    result = np.empty((new_length, len(table[0])))
    for j in range(new_length):
        lower, rest = divmod(j * last, new_length - 1) if new_length > 1 else (0, 0)
        for c in range(result.shape[1]):
            here = float(table[lower][c])
            there = float(table[min(lower + 1, last)][c])
            part = rest / (new_length - 1) if rest else 0.0
            result[j, c] = here + part * (there - here)
    return result


def slow_padded(token_ids, padding_id) -> list:
    if np.ndim(token_ids) > 1:
        return [slow_padded(row, padding_id) for row in token_ids]
    positions, count = [], padding_id
    for token in token_ids:
        if token != padding_id:
            count += 1
        positions.append(count if token != padding_id else padding_id)
    return positions


# --- lookup -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (7,), (2, 5), (3, 2, 4), (0,), (2, 0, 3)])
def test_each_position_gets_its_row(rng, shape):
    table, positions = rng.normal(size=(11, 3)), rng.integers(0, 11, shape)
    rows = learned.lookup(table, positions)
    assert rows.shape == (*shape, 3)
    assert np.array_equal(rows, slow_lookup(table, positions))


def test_lookup_takes_plain_lists_and_numbers():
    assert learned.lookup([[1, 2], [3, 4]], [1, 0]).tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert learned.lookup([[1, 2], [3, 4]], 1).tolist() == [3.0, 4.0]


@pytest.mark.parametrize("kind", "bhilqBHILQ")
def test_positions_may_have_any_integer_dtype(rng, kind):
    table = rng.normal(size=(300, 3))
    positions = np.array([127, 0, 5, 5], dtype=kind)
    assert np.array_equal(learned.lookup(table, positions), table[[127, 0, 5, 5]])
    gradient = learned.lookup_gradient(table[:4], positions, 300)
    assert np.array_equal(gradient, slow_gradient(table[:4], positions, 300))


def test_positions_and_tables_may_have_gaps_in_memory(rng):
    table, positions = rng.normal(size=(40, 12))[::2, 1::3], rng.integers(0, 20, (6, 8)).T[::3]
    assert not positions.flags["C_CONTIGUOUS"]
    assert np.array_equal(learned.lookup(table, positions), slow_lookup(table, positions))
    grads = rng.normal(size=(*positions.shape, 10))[..., ::2]
    gradient = learned.lookup_gradient(grads, positions, 20)
    np.testing.assert_allclose(gradient, slow_gradient(grads, positions, 20), rtol=0, atol=1e-13)
    resized = learned.resize_table(table, 7)
    np.testing.assert_allclose(resized, slow_resize(table, 7), rtol=0, atol=1e-14)
    ids = rng.integers(0, 3, (6, 8)).T[::3]
    assert learned.padded_positions(ids, 1).tolist() == slow_padded(ids, 1)


@pytest.mark.parametrize("positions", [3, [3], [2, 0, 2], [[0, 1], [2, 3]]])
def test_the_rows_are_a_copy(positions):
    table = np.arange(8.0).reshape(4, 2)
    rows = learned.lookup(table, positions)
    assert not np.shares_memory(rows, table)
    rows[...] = -1
    assert np.array_equal(table, np.arange(8.0).reshape(4, 2))


@pytest.mark.parametrize("bad", [-1, -3, -512, -1000, 512, 513, 100_000, 2**40])
@pytest.mark.parametrize("place", ["alone", "in a text", "in a batch"])
def test_a_position_off_the_table_is_named_with_the_length(bad, place):
    table = np.ones((512, 2))
    positions = {"alone": bad, "in a text": [0, 511, bad, 7], "in a batch": [[0, 1], [bad, 2]]}
    with pytest.raises(IndexError, match=rf"0\.\.511, got {bad} for a table of length 512"):
        learned.lookup(table, positions[place])
    if place == "in a text":
        with pytest.raises(IndexError, match=rf"got {bad} for a table of length 512"):
            learned.lookup_gradient(np.ones((4, 2)), positions[place], 512)


def test_huge_unsigned_positions_do_not_wrap_into_the_table():
    for bad in (2**63, 2**64 - 1):
        with pytest.raises(IndexError, match=f"got {bad} for a table of length 4"):
            learned.lookup(np.ones((4, 2)), np.array([1, bad], dtype=np.uint64))


def test_a_table_without_rows_has_no_position():
    assert learned.lookup(np.ones((0, 3)), np.array([], dtype=int)).shape == (0, 3)
    with pytest.raises(IndexError, match="got 0 for a table of length 0"):
        learned.lookup(np.ones((0, 3)), [0])


@pytest.mark.parametrize(
    "positions",
    [[0.5], [1.0], 2.0, [True, False], True, [1j], ["1"], [None], np.array([1], dtype=np.float16)],
)
def test_positions_that_are_no_integers_are_refused(positions):
    with pytest.raises(TypeError, match="positions must be integers, got dtype"):
        learned.lookup(np.ones((4, 2)), positions)
    with pytest.raises(TypeError, match="positions must be integers, got dtype"):
        learned.lookup_gradient(np.ones((*np.shape(positions), 2)), positions, 4)


@pytest.mark.parametrize("shape", [(), (4,), (2, 4, 3)])
def test_a_table_has_two_axes(shape):
    for call in (learned.lookup, learned.resize_table):
        with pytest.raises(ValueError, match="num_positions, dim"):
            call(np.ones(shape), 1)


# --- its gradient -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (9,), (2, 6), (3, 2, 5), (5, 5), (0,), (2, 0)])
def test_gradient_equals_the_slow_sum(rng, shape):
    positions, grads = rng.integers(0, 4, shape), rng.normal(size=(*shape, 5))
    gradient = learned.lookup_gradient(grads, positions, 6)
    np.testing.assert_allclose(gradient, slow_gradient(grads, positions, 6), rtol=0, atol=1e-14)
    assert gradient.shape == (6, 5) and not gradient[4:].any()


def test_gradient_is_the_slope_of_the_loss(rng):
    """Central differences of a loss that is no linear function of the rows."""
    table, positions = rng.normal(size=(5, 3)), np.array([[4, 1, 1], [0, 1, 4]])
    weights = rng.normal(size=(2, 3, 3))

    def loss(table):
        return float((np.sin(learned.lookup(table, positions)) * weights).sum())

    gradient = learned.lookup_gradient(np.cos(table[positions]) * weights, positions, 5)
    step = 1e-5
    for row, c in np.ndindex(5, 3):
        up, down = table.copy(), table.copy()
        up[row, c] += step
        down[row, c] -= step
        assert gradient[row, c] == pytest.approx((loss(up) - loss(down)) / (2 * step), abs=1e-8)


def test_gradient_equals_that_of_torchs_embedding(rng):
    positions, grads = rng.integers(0, 7, (3, 8)), rng.normal(size=(3, 8, 4))
    weight = torch.zeros(9, 4, dtype=torch.float64, requires_grad=True)
    F.embedding(torch.tensor(positions), weight).backward(torch.tensor(grads))
    gradient = learned.lookup_gradient(grads, positions, 9)
    np.testing.assert_allclose(gradient, weight.grad, rtol=0, atol=1e-14)


def test_an_indexed_sum_would_lose_repeats():
    """The mistake of the chapter, with its numbers: of two shares one is left."""
    grads, positions = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]]), [2, 0, 2]
    wrong = np.zeros((4, 2))
    wrong[positions] += grads
    assert wrong[2].tolist() == [100.0, 200.0]
    gradient = learned.lookup_gradient(grads, positions, 4)
    assert gradient.tolist() == [[10.0, 20.0], [0.0, 0.0], [101.0, 202.0], [0.0, 0.0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_many_small_shares_do_not_stop_counting(dtype):
    """Added up in float16, ones stand still at 2048."""
    count = 5000 if dtype == np.float16 else 20_000
    grads = np.full((count, 1), 1.0 if dtype == np.float16 else 0.1, dtype=dtype)
    gradient = learned.lookup_gradient(grads, np.zeros(count, dtype=int), 1)
    exact = count * float(grads[0, 0])
    assert gradient.dtype == dtype
    assert float(gradient[0, 0]) == pytest.approx(exact, rel=float(np.finfo(dtype).eps))
    narrow = np.add.accumulate(grads[:, 0], dtype=dtype)[-1]
    assert abs(float(narrow) - exact) > exact * 1e-5  # so the test above can fail


@pytest.mark.parametrize(
    "positions, grads",
    [
        ((5,), (1, 3)),
        ((5,), (5,)),
        ((5,), (4, 3)),
        ((5,), (1, 5, 3)),
        ((5,), (2, 5, 3)),
        ((1,), (5, 3)),
        ((1,), (3,)),
        ((5, 1), (5, 3)),
        ((2, 5), (5, 3)),
        ((2, 5), (2, 1, 3)),
        ((2, 5), (5, 2, 3)),
        ((), (1, 3)),
        ((), ()),
    ],
)
def test_gradients_of_any_other_shape_raise_and_never_broadcast(positions, grads):
    with pytest.raises(ValueError, match=r"positions\.shape \+ \(dim,\), got"):
        learned.lookup_gradient(np.ones(grads), np.zeros(positions, dtype=int), 4)


def test_an_empty_table_is_allowed_and_a_negative_one_is_not():
    nothing = np.zeros((0, 3)), np.zeros(0, dtype=int)
    assert learned.lookup_gradient(*nothing, 0).shape == (0, 3)
    assert learned.lookup_gradient(*nothing, np.uint8(0)).shape == (0, 3)
    assert learned.lookup_gradient(*nothing, 4).tolist() == np.zeros((4, 3)).tolist()
    with pytest.raises(IndexError, match="got 0 for a table of length 0"):
        learned.lookup_gradient(np.ones((1, 3)), [0], 0)
    for bad in (-1, -4, 2.0, "3", None):
        with pytest.raises(ValueError, match=f"at least 0, got {bad!r}"):
            learned.lookup_gradient(*nothing, bad)


# --- resizing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "old, new", [(3, 5), (5, 3), (10, 4), (4, 10), (7, 7), (1, 6), (6, 1), (1, 1), (2, 9), (64, 48)]
)
def test_resizing_equals_the_slow_loop(rng, old, new):
    table = rng.normal(size=(old, 3))
    resized = learned.resize_table(table, new)
    np.testing.assert_allclose(resized, slow_resize(table, new), rtol=0, atol=16 * EPS64)
    assert resized.shape == (new, 3) and not np.shares_memory(resized, table)
    assert np.array_equal(resized[0], table[0])
    if new > 1:
        assert np.array_equal(resized[-1], table[-1])


@pytest.mark.parametrize("old, new", [(5, 12), (12, 5), (512, 1024), (3, 2)])
def test_resizing_equals_torchs_interpolation_with_aligned_corners(rng, old, new):
    table = rng.normal(size=(old, 4))
    columns = torch.tensor(table.T[None])
    torchs = F.interpolate(columns, size=new, mode="linear", align_corners=True)[0].T
    resized = learned.resize_table(table, new)
    np.testing.assert_allclose(resized, torchs, rtol=0, atol=1e-12)
    default = F.interpolate(columns, size=new, mode="linear")[0].T
    assert np.abs(resized - default.numpy()).max() > 0.01  # torch's default is half-pixel


def test_resizing_to_the_same_length_changes_no_bit(rng):
    for length in (1, 2, 49, 513):
        table = rng.normal(size=(length, 3))
        assert np.array_equal(learned.resize_table(table, length), table)


def test_doubling_the_steps_keeps_every_old_row(rng):
    table = rng.normal(size=(512, 2))
    resized = learned.resize_table(table, 1023)
    assert np.array_equal(resized[::2], table)
    assert np.array_equal(learned.resize_table(resized, 512), table)


def test_lengths_of_narrow_integer_types_do_not_overflow(rng):
    table = rng.normal(size=(100, 2))
    narrow = learned.resize_table(table, np.int8(120))
    assert np.array_equal(narrow, learned.resize_table(table, 120))


@pytest.mark.parametrize("bad", [0, -1, -512, 0.0, 2.5, 4.0, "4", None])
def test_a_length_below_one_or_no_integer_is_named(bad):
    with pytest.raises(ValueError, match=f"at least 1, got {bad!r}"):
        learned.resize_table(np.ones((3, 2)), bad)


def test_a_table_without_rows_cannot_be_resized():
    with pytest.raises(ValueError, match=r"got shape \(0, 3\)"):
        learned.resize_table(np.ones((0, 3)), 4)


# --- padding ------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", GOLDEN, ids=lambda entry: f"{entry['id']} by {entry['source']}")
def test_padded_positions_equal_what_other_projects_compute(entry):
    assert entry["function"].endswith("(padding_idx=1)") and len(GOLDEN) == 1
    ids = entry["args"]["ids"]
    assert learned.padded_positions(ids, 1).tolist() == entry["output"]
    assert learned.padded_positions(ids[0], 1).tolist() == entry["output"][0]


def test_padded_positions_of_the_worked_example():
    assert learned.padded_positions([0, 5, 6, 1, 1], 1).tolist() == [2, 3, 4, 1, 1]


@pytest.mark.parametrize("shape", [(9,), (4, 7), (1, 5), (5, 1), (6, 6), (2, 3, 5), (2, 0), (0,)])
@pytest.mark.parametrize("padding_id", [0, 1, 2, 50_256])
def test_padded_positions_equal_the_slow_count(rng, shape, padding_id):
    ids = rng.integers(0, 4, shape)
    ids[rng.random(shape) < 0.3] = padding_id
    positions = learned.padded_positions(ids, padding_id)
    assert positions.shape == shape and positions.dtype == np.int64
    assert positions.tolist() == slow_padded(ids, padding_id)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.uint64])
def test_narrow_ids_do_not_make_narrow_positions(dtype):
    ids = np.full((2, 300), 7, dtype=dtype)
    positions = learned.padded_positions(ids, np.uint8(1))
    assert positions.dtype == np.int64 and positions.tolist() == [list(range(2, 302))] * 2


def test_512_tokens_need_514_rows_when_the_padding_id_is_1(rng):
    """transformers#9116, #10832: a table of 512 rows ends two tokens before the text does."""
    ids = rng.integers(2, 900, (2, 512))
    positions = learned.padded_positions(ids, 1)
    assert (positions.min(), positions.max()) == (2, 513)
    assert learned.lookup(np.ones((514, 4)), positions).shape == (2, 512, 4)
    with pytest.raises(IndexError, match="got 512 for a table of length 512"):
        learned.lookup(np.ones((512, 4)), positions)
    assert learned.padded_positions(ids[:, :510], 1).max() == 511  # what 512 rows do hold


def test_padding_on_the_left_moves_no_real_token(rng):
    """nnsight#673: places in the padded row in the place of positions."""
    ids = rng.integers(2, 90, 5)
    alone = learned.padded_positions(ids, 1)
    for padding in (1, 4):
        padded = np.concatenate([np.ones(padding, dtype=int), ids])
        positions = learned.padded_positions(padded, 1)
        assert np.array_equal(positions[padding:], alone) and (positions[:padding] == 1).all()
        places = np.where(padded != 1, np.arange(len(padded)) + 2, 1)
        assert np.array_equal(places[padding:], alone + padding)  # what the fault gave


@pytest.mark.parametrize("ids", [[0.0, 5.0], [True, False], ["a"], None])
def test_ids_that_are_no_integers_are_refused(ids):
    with pytest.raises(TypeError, match="token_ids must be integers, got dtype"):
        learned.padded_positions(ids, 1)


def test_a_single_id_and_a_padding_id_that_is_no_row_are_refused():
    with pytest.raises(ValueError, match="got a single id"):
        learned.padded_positions(5, 1)
    with pytest.raises(ValueError, match="at least 0, got -100"):
        learned.padded_positions([5, -100], -100)
    with pytest.raises(TypeError):
        learned.padded_positions([5, 1], 1.0)


# --- offsets ------------------------------------------------------------------------------------


def test_a_table_with_an_offset_that_is_not_known_is_off_by_two(rng):
    """transformers#20761: OPT's position m is row m + 2 of a table of max_len + 2 rows."""
    stored = rng.normal(size=(2050, 3))
    positions = np.array([0, 5, 2047])
    right = learned.lookup(stored[2:], positions)
    assert np.array_equal(right, learned.lookup(stored, positions + 2))
    assert not np.isclose(learned.lookup(stored, positions), right).all(axis=1).any()
    # Resizing all of it spreads the two rows that belong to no position over the positions.
    resized = learned.resize_table(stored, 4098)[2:]
    apart = np.abs(resized - learned.resize_table(stored[2:], 4096))
    assert apart[0].max() > 0.1 and np.array_equal(resized[-1], stored[-1])


# --- dtypes and inputs of the NumPy room --------------------------------------------------------

TRANSFORMS = {
    "lookup": lambda x: learned.lookup(x, [2, 0, 2]),
    "lookup_gradient": lambda x: learned.lookup_gradient(x, [2, 0, 2], 4),
    "resize_table up": lambda x: learned.resize_table(x, 7),
    "resize_table down": lambda x: learned.resize_table(x, 2),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_floating_dtype_is_kept_and_rounded_to_once(rng, name, dtype):
    x = rng.normal(size=(3, 4)).astype(dtype)
    result = TRANSFORMS[name](x)
    assert result.dtype == dtype
    exact = TRANSFORMS[name](x.astype(np.float64))
    assert np.array_equal(result, exact.astype(dtype))


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_integers_become_float64_and_are_not_truncated(name, dtype):
    x = np.arange(116, 128, dtype=dtype).reshape(3, 4)
    result = TRANSFORMS[name](x)
    assert result.dtype == np.float64
    assert np.array_equal(result, TRANSFORMS[name](x.astype(np.float64)))


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_inputs_are_never_changed(rng, name, dtype):
    x = (rng.normal(size=(3, 4)) * 10).astype(dtype)
    before = x.copy()
    result = TRANSFORMS[name](x)
    result[...] = 0
    assert np.array_equal(x, before)


def test_ids_and_positions_are_never_changed():
    ids = np.array([[0, 5, 1], [1, 7, 8]])
    positions = learned.padded_positions(ids, 1)
    positions[...] = 0
    assert ids.tolist() == [[0, 5, 1], [1, 7, 8]]
    rows = np.array([2, 0, 2])
    learned.lookup(np.ones((3, 2)), rows)
    learned.lookup_gradient(np.ones((3, 2)), rows, 3)
    assert rows.tolist() == [2, 0, 2]


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", [bool, complex, str, object])
def test_anything_but_integers_and_floats_is_refused_by_name(name, dtype):
    with pytest.raises(TypeError, match="must hold integers or floats, got dtype"):
        TRANSFORMS[name](np.ones((3, 4)).astype(dtype))


# --- the torch room -----------------------------------------------------------------------------


def drawn(rng, *shape, dtype=torch.float32, device="cpu"):
    return torch.tensor(rng.normal(size=shape), dtype=dtype, device=device)


def module_with(weight: torch.Tensor) -> LearnedPositionalEmbedding:
    module = LearnedPositionalEmbedding(*weight.shape).to(weight.device)
    module.load_state_dict({"weight": weight})
    return module


def slow_sum(x: torch.Tensor, weight: torch.Tensor, offset: int) -> torch.Tensor:
    """Every number by itself, in Python floats."""
    result = torch.empty(x.shape, dtype=torch.float64)
    for b, t, c in np.ndindex(*x.shape):
        result[b, t, c] = float(x[b, t, c]) + float(weight[offset + t, c])
    return result


DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str
)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape, offset", [((2, 5, 8), 3), ((3, 1, 6), 10), ((1, 11, 7), 0)])
@DTYPES
def test_module_equals_the_slow_sum(rng, device, shape, offset, dtype):
    weight = drawn(rng, 11, shape[2], device=device)
    x = drawn(rng, *shape, dtype=dtype, device=device)
    result = module_with(weight)(x, offset)
    assert result.dtype == dtype and result.device == x.device and result.shape == x.shape
    exact = slow_sum(x, weight, offset)
    half_units = {torch.float64: 1, torch.float32: 1, torch.bfloat16: 1.01, torch.float16: 1.01}
    bound = half_units[dtype] * torch.finfo(dtype).eps / 2 * exact.abs() + 1e-7 * (
        dtype in (torch.bfloat16, torch.float16)  # the float32 sum between
    )
    assert ((result.detach().double().cpu() - exact).abs() <= bound).all()


def test_module_is_the_twin_of_the_numpy_function(rng):
    weight, x = drawn(rng, 9, 4), drawn(rng, 2, 5, 4)
    rows = learned.lookup(weight.numpy(), np.arange(3, 8))
    result = module_with(weight)(x, 3).detach().numpy()
    np.testing.assert_array_equal(result, x.numpy() + rows)


def test_gradient_of_the_module_is_that_of_the_numpy_function(rng):
    module, x = module_with(drawn(rng, 9, 4)), drawn(rng, 3, 5, 4)
    weights = drawn(rng, 3, 5, 4)
    (module(x, 2) * weights).sum().backward()
    positions = np.broadcast_to(np.arange(2, 7), (3, 5))
    twin = learned.lookup_gradient(weights.numpy(), positions, 9)
    np.testing.assert_allclose(module.weight.grad, twin, rtol=0, atol=1e-6)
    assert not module.weight.grad[:2].any() and not module.weight.grad[7:].any()


def test_every_row_is_trained_and_none_starts_at_zero(rng):
    """transformers#10200: padding_idx kept one row of a position table at zero."""
    torch.manual_seed(0)
    module = LearnedPositionalEmbedding(16, 8)
    assert module.weight.detach().abs().sum(dim=1).min() > 0
    module(drawn(rng, 2, 16, 8)).sum().backward()
    assert torch.equal(module.weight.grad, torch.full((16, 8), 2.0))
    faulty = torch.nn.Embedding(16, 8, padding_idx=1)
    assert not faulty.weight[1].any()  # the fault, as torch does it
    faulty(torch.arange(16)).sum().backward()
    assert not faulty.weight.grad[1].any()


def test_gradient_reaches_x_too(rng):
    x = drawn(rng, 2, 3, 4).requires_grad_()
    module_with(drawn(rng, 5, 4))(x, 1).square().sum().backward()
    assert x.grad is not None and x.grad.abs().min() > 0


def test_a_step_of_an_optimizer_moves_used_rows_alone(rng):
    weight = drawn(rng, 9, 4)
    module = module_with(weight)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    module(drawn(rng, 2, 3, 4), 4).sum().backward()
    optimizer.step()
    moved = (module.weight.detach() - weight).abs().sum(dim=1) > 0
    assert moved.tolist() == [False] * 4 + [True] * 3 + [False] * 2


def test_state_is_the_weight_and_nothing_else():
    module = LearnedPositionalEmbedding(7, 3)
    assert list(module.state_dict()) == ["weight"]
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    assert not list(module.buffers())
    assert module.weight.shape == (7, 3) and module.weight.requires_grad
    assert module.weight.dtype == torch.float32


@pytest.mark.parametrize(
    "seq, offset", [(1, 512), (513, 0), (2, 511), (5, 508), (5, 600), (1, 10**9)]
)
def test_the_513th_token_has_no_row_and_is_named(rng, seq, offset):
    module = LearnedPositionalEmbedding(512, 2)
    last = drawn(rng, 1, 1, 2)
    assert torch.equal(module(last, 511), last + module.weight[511:])
    message = rf"got {offset} \+ {seq} = {offset + seq} with max_len 512"
    with pytest.raises(ValueError, match=message):
        module(torch.ones(2, seq, 2), offset)


def test_a_short_slice_would_have_broadcast():
    """What the module prevents: one row that is left over is added to all tokens."""
    weight = torch.arange(6.0).reshape(3, 2)
    assert (torch.zeros(1, 5, 2) + weight[2:7]).tolist() == [[[4.0, 5.0]] * 5]
    with pytest.raises(ValueError, match="2 [+] 5 = 7 with max_len 3"):
        module_with(weight)(torch.zeros(1, 5, 2), 2)


@pytest.mark.parametrize("offset", [-1, -2, -9, -100])
@pytest.mark.parametrize("seq", [1, 2, 9])
def test_a_negative_offset_is_refused(seq, offset):
    with pytest.raises(ValueError, match=f"at least 0, got {offset}"):
        LearnedPositionalEmbedding(9, 4)(torch.ones(2, seq, 4), offset)


@pytest.mark.parametrize(
    "shape",
    [(2, 5, 1), (2, 5, 3), (2, 5, 12), (5, 4), (1, 4), (4,), (2, 1, 5, 4), (2, 5, 4, 1), (2, 5, 0)],
)
def test_an_x_of_another_shape_is_refused_and_never_broadcast(shape):
    with pytest.raises(ValueError, match=r"x must be floating, \(batch, seq, 4\), got"):
        LearnedPositionalEmbedding(9, 4)(torch.ones(shape))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_an_x_that_is_not_floating_is_refused(dtype):
    with pytest.raises(ValueError, match=f"got {dtype}"):
        LearnedPositionalEmbedding(9, 4)(torch.ones(2, 5, 4, dtype=dtype))


@pytest.mark.parametrize("bad", [0, -1, 2.0, "4", None])
def test_sizes_that_are_no_positive_integers_are_named(bad):
    with pytest.raises(ValueError, match=f"max_len must be a positive integer, got {bad!r}"):
        LearnedPositionalEmbedding(bad, 4)
    with pytest.raises(ValueError, match=f"dim must be a positive integer, got {bad!r}"):
        LearnedPositionalEmbedding(4, bad)


CASTS = {
    "bfloat16": (torch.bfloat16, lambda m: m.bfloat16()),
    "half": (torch.float16, lambda m: m.half()),
    "double": (torch.float64, lambda m: m.double()),
    "parent": (torch.bfloat16, lambda m: torch.nn.ModuleDict({"p": m}).to(torch.bfloat16)["p"]),
    "copy": (torch.float16, lambda m: copy.deepcopy(m).to(torch.float16)),
}


@pytest.mark.parametrize("name", CASTS)
@DTYPES
def test_after_a_cast_results_keep_the_dtype_of_x(rng, name, dtype):
    """The weight is rounded once, as a cast of a parameter does; x is not."""
    weight, x = drawn(rng, 9, 4), drawn(rng, 2, 5, 4, dtype=dtype)
    held, cast = CASTS[name]
    module = cast(module_with(weight))
    result = module(x, 3)
    assert module.weight.dtype == held and result.dtype == dtype
    exact = slow_sum(x, weight.to(held), 3)
    bound = 1.01 * torch.finfo(dtype).eps / 2 * exact.abs() + 1e-7
    assert ((result.detach().double() - exact).abs() <= bound).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("x_dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_autocast_changes_no_bit(rng, device, dtype, x_dtype):
    module = module_with(drawn(rng, 9, 4, device=device))
    x = drawn(rng, 2, 5, 4, dtype=x_dtype, device=device)
    before = module(x, 3)
    with torch.autocast(device, dtype=dtype):
        after = module(x, 3)
    assert before.dtype == after.dtype == x_dtype and torch.equal(before, after)


def test_earlier_calls_leave_no_trace_and_x_is_not_changed(rng):
    module, x = module_with(drawn(rng, 20, 4)), drawn(rng, 2, 5, 4)
    before = x.clone()
    first = module(x, 3)
    for other, offset in ((x, 9), (x[:, :2], 3), (x[:1], 3), (x.double(), 3), (x.bfloat16(), 0)):
        module(other, offset)
    assert torch.equal(module(x, 3), first)
    with torch.no_grad():
        module(x, 3).zero_()
    assert torch.equal(x, before)
    assert torch.equal(module(x.transpose(0, 1).contiguous().transpose(0, 1), 3), first)


def test_empty_sequences_and_batches_work():
    module = LearnedPositionalEmbedding(9, 4)
    assert module(torch.ones(2, 0, 4), 9).shape == (2, 0, 4)
    assert module(torch.ones(0, 5, 4)).shape == (0, 5, 4)


def test_module_compiles_into_one_graph(rng):
    module, x = module_with(drawn(rng, 9, 4)), drawn(rng, 2, 5, 4)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for offset in (0, 4):
        torch.testing.assert_close(compiled(x, offset), module(x, offset), rtol=0, atol=0)


def test_a_batch_gets_the_rows_along_its_sequence_also_when_it_is_square(rng):
    weight, x = drawn(rng, 4, 4), torch.zeros(4, 4, 4)
    assert torch.equal(module_with(weight)(x), weight.expand(4, 4, 4))


def test_starting_weights_are_small(rng):
    torch.manual_seed(1)
    weight = LearnedPositionalEmbedding(512, 64).weight.detach()
    assert float(weight.std()) == pytest.approx(0.02, rel=0.02)
    assert abs(float(weight.mean())) < 5 * 0.02 / math.sqrt(weight.numel())


# --- the text of the reference ------------------------------------------------------------------

MODULES = ("solutions.with_numpy.learned", "solutions.with_torch.learned")
SIGNATURES = {
    learned.lookup: "(table, positions)",
    learned.lookup_gradient: "(grad_output, positions, num_positions)",
    learned.resize_table: "(table, new_length)",
    learned.padded_positions: "(token_ids, padding_id)",
    LearnedPositionalEmbedding: "(max_len, dim)",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0 and failures == 0


@pytest.mark.parametrize("exercise", SIGNATURES, ids=lambda e: e.__name__)
def test_docstring_says_all_that_a_student_needs(exercise):
    text = inspect.getdoc(exercise)
    assert text.splitlines()[0].endswith(".") and not text.splitlines()[1]
    for word in ("Shapes:", "Dtype:", "Units:", "Raises:", ">>>"):
        assert word in text, word


@pytest.mark.parametrize("exercise", SIGNATURES, ids=lambda e: e.__name__)
def test_names_order_and_defaults_of_arguments_are_fixed(exercise):
    bare = inspect.signature(exercise)
    parameters = [p.replace(annotation=p.empty) for p in bare.parameters.values()]
    bare = bare.replace(parameters=parameters, return_annotation=bare.empty)
    assert str(bare) == SIGNATURES[exercise]
    forward = inspect.signature(LearnedPositionalEmbedding.forward).parameters
    assert [(p.name, p.default) for p in forward.values()][2] == ("offset", 0)

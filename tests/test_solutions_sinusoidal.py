"""The reference of the chapter `sinusoidal` against values that do not come from it.

Slow loops of the paper's formulas in plain Python, published numbers and the outputs of other
projects' code (data/golden_sinusoidal.json): every student is graded against this reference, so a
fault of its own must be found here.
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

from solutions.with_numpy import sinusoidal
from solutions.with_torch.sinusoidal import SinusoidalEncoding, sinusoidal_table
from tests.devices import DEVICES, on_cuda

DATA = Path(__file__).parent / "data" / "golden_sinusoidal.json"
GOLDEN = json.loads(DATA.read_text())["golden"]
BASE = 500.0  # no default, so that a forgotten argument shows
EPS64, EPS32 = 2.0**-52, 2.0**-23
WIDTHS = [2, 4, 6, 10, 14, 128]


# --- the paper's formulas, one number at a time -------------------------------------------------


def slow_vector(position, dim, base=10000.0) -> list[float]:
    """PE(position): pos / base^(2i/dim), its sine and its cosine."""
    vector = []
    for i in range(dim // 2):
        angle = float(position) / base ** (2 * i / dim)
        vector += [math.sin(angle), math.cos(angle)]
    return vector


def slow_encoding(positions, dim, base=10000.0) -> np.ndarray:
    """The vector of each position by itself."""
    positions = np.asarray(positions)
    result = np.empty((*positions.shape, dim))
    for index in np.ndindex(*positions.shape):
        result[index] = slow_vector(positions[index], dim, base)
    return result


def slow_search(encoding, max_position, base=10000.0) -> tuple[int, float]:
    """(position, error) of the nearest of all positions."""
    best, error = -1, math.inf
    for position in range(max_position):
        vector = slow_vector(position, len(encoding), base)
        off = max(abs(float(a) - b) for a, b in zip(encoding, vector, strict=True))
        if off < error:
            best, error = position, off
    return best, error


def allowed(angle: float, scale: float = 1.0) -> float:
    """Sine and cosine move by as much as an angle does that was rounded a few times."""
    return 8 * scale * EPS64 * (1 + abs(angle))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20170612)


def far_positions(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Positions that are no range, far from zero, some between two tokens."""
    return rng.integers(3, 9000, shape) + rng.choice([0.0, 0.25, 0.5], shape)


# --- outputs of other projects ------------------------------------------------------------------


def golden(prefix: str) -> list:
    return [
        pytest.param(entry, id=f"{entry['id']} by {entry['source'].split('=')[0]}")
        for entry in GOLDEN
        if entry["id"].startswith(prefix)
    ]


def library_layout(table: np.ndarray) -> np.ndarray:
    """All sines, then all cosines."""
    return np.concatenate([table[..., 0::2], table[..., 1::2]], axis=-1)


def test_every_golden_entry_belongs_to_one_test():
    assert {e["id"] for e in GOLDEN} == {"sin.interleaved.6x8", "sin.concat.6x8", "sin.t2t.6x8"}
    assert len(GOLDEN) == 4


@pytest.mark.parametrize("entry", golden("sin.interleaved"))
def test_encoding_equals_what_other_projects_compute(entry):
    n, dim = entry["args"]["n"], entry["args"]["d"]
    numpy_tables = [f(range(n), dim) for f in (TABLES["encoding"], TABLES["fixed_layout"])]
    module = SinusoidalEncoding(dim, n)(torch.zeros(1, n, dim))[0]
    for table in (*numpy_tables, module):
        np.testing.assert_allclose(table, entry["output"], rtol=0, atol=entry["tol"])


@pytest.mark.parametrize("entry", golden("sin.concat"))
def test_the_block_layout_of_other_projects_is_the_same_table_with_its_columns_moved(entry):
    table = sinusoidal.sinusoidal_encoding(range(entry["args"]["n"]), entry["args"]["d"])
    np.testing.assert_allclose(library_layout(table), entry["output"], rtol=0, atol=entry["tol"])
    assert np.abs(table - entry["output"]).max() > 0.5


@pytest.mark.parametrize("entry", golden("sin.t2t"))
def test_the_ladder_of_tensor2tensor_is_another_one(entry):
    """https://github.com/tensorflow/tensor2tensor/issues/391 and 1423."""
    faulty = np.array(entry["output"])
    position, steps = 1, entry["args"]["d"] // 2 - 1
    ladder = [10000 ** (-i / steps) for i in range(steps + 1)]
    assert faulty[1, :4] == pytest.approx(np.sin(np.array(ladder) * position), abs=1e-6)
    assert faulty[1, 3] == pytest.approx(1e-4, rel=1e-5)
    repaired = library_layout(sinusoidal.fixed_layout([1], 8))[0]
    assert repaired[3] == pytest.approx(1e-3, rel=1e-5)
    assert np.abs(repaired - faulty[1]).max() > 0.05


def test_worked_values_of_the_chapter():
    assert sinusoidal.frequencies(4).tolist() == [1, 0.01]
    rows = sinusoidal.sinusoidal_encoding([0, 1, 5, 8], 4).round(4)
    assert rows[0].tolist() == [0, 1, 0, 1]
    assert rows[1].tolist() == [0.8415, 0.5403, 0.01, 1.0]  # cos(0.01) is 0.99995
    assert rows[2].tolist() == [-0.9589, 0.2837, 0.05, 0.9988]
    assert rows[3].tolist() == [0.9894, -0.1455, 0.0799, 0.9968]
    moved = sinusoidal.shift_matrix(3, 4) @ sinusoidal.sinusoidal_encoding(5, 4)
    assert moved.round(4).tolist() == rows[3].tolist()
    assert sinusoidal.wavelengths(4).round(2).tolist() == [6.28, 628.32]


# --- the NumPy room against the slow loops ------------------------------------------------------

TABLES = {
    "encoding": sinusoidal.sinusoidal_encoding,
    "fixed_layout": sinusoidal.fixed_layout,
}
each_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@pytest.mark.parametrize("base", [10000.0, BASE, 90])
@pytest.mark.parametrize("dim", WIDTHS)
def test_frequencies_and_wavelengths_are_the_papers(dim, base):
    frequencies, lengths = sinusoidal.frequencies(dim, base), sinusoidal.wavelengths(dim, base)
    assert frequencies.shape == lengths.shape == (dim // 2,)
    assert frequencies.dtype == lengths.dtype == np.float64
    for i in range(dim // 2):
        expected = 1 / base ** (2 * i / dim)
        assert frequencies[i] == pytest.approx(expected, rel=8 * EPS64)
        assert lengths[i] == pytest.approx(2 * math.pi / expected, rel=8 * EPS64)


@pytest.mark.parametrize("dim", [4, 64, 512])
def test_wavelengths_are_a_geometric_progression_that_stays_below_its_limit(dim):
    lengths = sinusoidal.wavelengths(dim)
    assert lengths[0] == pytest.approx(2 * math.pi)
    assert lengths[1:] / lengths[:-1] == pytest.approx(10000 ** (2 / dim))
    assert lengths[-1] == pytest.approx(2 * math.pi * 10000 ** ((dim - 2) / dim))
    assert lengths[-1] < 2 * math.pi * 10000
    wider = sinusoidal.wavelengths(2 * dim)[-1]
    assert lengths[-1] < wider < 2 * math.pi * 10000


@each_table
@pytest.mark.parametrize("dim", WIDTHS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (3, 1, 5), (0,), (2, 0, 3)], ids=str)
def test_encoding_equals_the_slow_loop(rng, table, shape, dim):
    positions = far_positions(rng, *shape)
    result = table(positions, dim, BASE)
    assert result.shape == (*shape, dim) and result.dtype == np.float64
    expected = slow_encoding(positions, dim, BASE)
    np.testing.assert_allclose(result, expected, rtol=0, atol=allowed(9000))


@each_table
def test_positions_may_be_negative_fractions_lists_and_single_numbers(table):
    positions = [[-3.5, 0.125], [0, 7]]
    expected = slow_encoding(positions, 6)
    np.testing.assert_allclose(table(positions, 6), expected, rtol=0, atol=allowed(7))
    np.testing.assert_allclose(table(-3.5, 6), expected[0, 0], rtol=0, atol=allowed(4))


@each_table
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32])
def test_encoding_is_float64_for_positions_of_any_dtype(table, dtype):
    positions = np.array([100, 3, 127], dtype=dtype)
    result = table(positions, 8)
    assert result.dtype == np.float64
    expected = slow_encoding([100, 3, 127], 8)
    np.testing.assert_allclose(result, expected, rtol=0, atol=allowed(127))


@each_table
def test_positions_need_not_be_contiguous(rng, table):
    positions = far_positions(rng, 6, 8)
    for some in (positions.T, positions[::2, 1::3], positions[::-1]):
        expected = slow_encoding(some, 6, BASE)
        np.testing.assert_allclose(table(some, 6, BASE), expected, rtol=0, atol=allowed(9000))


@each_table
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_positions_are_never_changed(rng, table, dtype):
    positions = far_positions(rng, 4, 3).astype(dtype)
    before = positions.copy()
    table(positions, 6)[...] = 0
    assert np.array_equal(positions, before)


@each_table
def test_far_positions_lose_nothing_to_the_table(rng, table):
    positions = rng.uniform(1e5, 1e6, 50)
    result = table(positions, 64)
    np.testing.assert_allclose(result, slow_encoding(positions, 64), rtol=0, atol=allowed(1e6))
    coarse = np.sin(positions.astype(np.float32))  # what float32 angles would have made of it
    assert np.abs(coarse - result[:, 0]).max() > 1e-3


@each_table
@pytest.mark.parametrize("positions", [["1"], [True], [1j], [None]], ids=str)
def test_positions_that_are_no_numbers_are_refused(table, positions):
    with pytest.raises(TypeError, match="positions must hold integers or floats, got dtype"):
        table(positions, 4)


def test_all_vectors_have_one_length_and_dot_products_see_the_distance_alone(rng):
    positions = far_positions(rng, 20)
    table = sinusoidal.sinusoidal_encoding(positions, 10, BASE)
    np.testing.assert_allclose((table * table).sum(-1), 5, rtol=0, atol=1e-14)
    products = table @ table.T
    for a, b in np.ndindex(20, 20):
        distance = positions[a] - positions[b]
        expected = sum(math.cos(distance / BASE ** (2 * i / 10)) for i in range(5))
        assert products[a, b] == pytest.approx(expected, abs=allowed(9000, 10))


# --- moving ------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 1, 3, -7, 0.5, -2.25, 4000, np.int8(100), np.float32(2.5)])
@pytest.mark.parametrize("dim", [2, 4, 6, 14])
def test_one_matrix_moves_every_position_by_the_offset(rng, offset, dim):
    matrix = sinusoidal.shift_matrix(offset, dim, BASE)
    assert matrix.shape == (dim, dim) and matrix.dtype == np.float64
    for position in (0, 1.5, -40, *far_positions(rng, 5)):
        here = np.array(slow_vector(position, dim, BASE))
        there = slow_vector(position + float(offset), dim, BASE)
        np.testing.assert_allclose(matrix @ here, there, rtol=0, atol=allowed(14000, 2))


def test_the_matrix_has_the_sines_above_the_diagonal_with_a_plus():
    c, s, C, S = math.cos(3), math.sin(3), math.cos(0.03), math.sin(0.03)
    expected = [[c, s, 0, 0], [-s, c, 0, 0], [0, 0, C, S], [0, 0, -S, C]]
    np.testing.assert_allclose(sinusoidal.shift_matrix(3, 4), expected, rtol=0, atol=4 * EPS64)


def test_moves_add_up_and_can_be_undone():
    a, b, c = (sinusoidal.shift_matrix(n, 8, BASE) for n in (3, 4.5, 7.5))
    np.testing.assert_allclose(a @ b, c, rtol=0, atol=allowed(8))
    np.testing.assert_allclose(a @ a.T, np.eye(8), rtol=0, atol=allowed(3))
    back = sinusoidal.shift_matrix(-3, 8, BASE)
    assert np.array_equal(back, a.T)
    assert np.array_equal(sinusoidal.shift_matrix(0, 8), np.eye(8))


@pytest.mark.parametrize("offset", [[3], [1, 2], np.zeros((2, 2))], ids=str)
def test_an_offset_that_is_no_single_number_is_refused(offset):
    with pytest.raises(ValueError, match="offset must be a single number, got shape"):
        sinusoidal.shift_matrix(offset, 4)


# --- reading a position off --------------------------------------------------------------------


@pytest.mark.parametrize("dim, base, count", [(4, 10000.0, 300), (8, 10000.0, 500), (6, 90, 200)])
def test_every_position_is_read_off_its_own_encoding(dim, base, count):
    table = sinusoidal.sinusoidal_encoding(np.arange(count), dim, base)
    for position in range(count):
        found = sinusoidal.decode_position(table[position], count, base)
        assert found == position and type(found) is int


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_low_precision_is_read_as_well(dtype):
    table = sinusoidal.sinusoidal_encoding(np.arange(400), 12).astype(dtype)
    assert [sinusoidal.decode_position(row, 400) for row in table] == list(range(400))
    assert sinusoidal.decode_position([0, 1, 0, 1], 10) == 0
    assert sinusoidal.decode_position(np.array([0, 1, 0, 1], dtype=np.uint8), 10) == 0


def test_noise_below_a_twentieth_does_no_harm(rng):
    for dim, base in ((8, 10000.0), (12, 700.0)):
        for position in rng.integers(0, 600, 40):
            noise = rng.uniform(-0.0499, 0.0499, dim)
            encoding = slow_vector(position, dim, base) + noise
            assert sinusoidal.decode_position(encoding, 600, base) == position
            assert slow_search(encoding, 600, base)[0] == position


def test_the_nearest_of_several_that_fit_wins(rng):
    """A single pair comes round every 6.28 positions, and after 44 nearly where it was."""
    for position in (44, 355, 399, 690):
        assert sinusoidal.decode_position(slow_vector(position, 2), 700) == position
    for _ in range(30):
        encoding = np.array(slow_vector(rng.integers(0, 700), 2)) + rng.uniform(-0.02, 0.02, 2)
        nearest, error = slow_search(encoding, 700)
        assert error < 0.05
        assert sinusoidal.decode_position(encoding, 700) == nearest


def test_nothing_within_a_twentieth_is_an_error_in_each_coordinate(rng):
    for coordinate in range(10):
        for off, fits in ((0.0499, True), (-0.0499, True), (0.0501, False), (-0.0501, False)):
            encoding = slow_vector(137, 10)
            encoding[coordinate] += off
            if fits:
                assert sinusoidal.decode_position(encoding, 300) == 137
            else:
                with pytest.raises(ValueError, match="must fit a position below max_position 300"):
                    sinusoidal.decode_position(encoding, 300)


@pytest.mark.parametrize("encoding", [[0.0] * 6, [math.nan] * 6, [math.inf] * 6], ids=str)
def test_what_is_no_encoding_has_no_position(encoding):
    with pytest.raises(ValueError, match="must fit a position"):
        sinusoidal.decode_position(encoding, 1000)


def test_the_range_of_positions_ends_before_max_position():
    encoding = slow_vector(57, 8)
    assert sinusoidal.decode_position(encoding, 58) == 57
    assert sinusoidal.decode_position(encoding, np.int64(58)) == 57
    for max_position in (57, 1, 0):
        with pytest.raises(ValueError, match="must fit a position"):
            sinusoidal.decode_position(encoding, max_position)
    for max_position in (-1, -58, 58.0, None):
        with pytest.raises(ValueError, match="max_position must be an integer of at least 0"):
            sinusoidal.decode_position(encoding, max_position)


def test_a_hundred_thousand_positions_are_looked_at():
    for position in (0, 6, 44_444, 99_999):
        encoding = np.array(slow_vector(position, 32), dtype=np.float32)
        assert sinusoidal.decode_position(encoding, 100_000) == position


@pytest.mark.parametrize("shape", [(), (1, 4), (4, 1), (3, 4)], ids=str)
def test_one_encoding_at_a_time_is_decoded(shape):
    with pytest.raises(ValueError, match="encoding must be"):
        sinusoidal.decode_position(np.ones(shape), 10)


@pytest.mark.parametrize("length", [0, 1, 7])
def test_an_encoding_of_odd_length_or_none_is_refused(length):
    with pytest.raises(ValueError, match=f"dim must be a positive even integer, got {length};"):
        sinusoidal.decode_position(np.ones(length), 10)


def test_decoding_changes_no_encoding():
    encoding = np.array(slow_vector(57, 8))
    before = encoding.copy()
    sinusoidal.decode_position(encoding, 100)
    assert np.array_equal(encoding, before)


# --- what is refused ---------------------------------------------------------------------------

TAKE_A_WIDTH = {
    "frequencies": sinusoidal.frequencies,
    "wavelengths": sinusoidal.wavelengths,
    "sinusoidal_encoding": lambda *args: sinusoidal.sinusoidal_encoding([1, 5], *args),
    "fixed_layout": lambda *args: sinusoidal.fixed_layout([1, 5], *args),
    "shift_matrix": lambda *args: sinusoidal.shift_matrix(3, *args),
    "SinusoidalEncoding": lambda dim, *base: SinusoidalEncoding(dim, 9, *base),
}
each_function = pytest.mark.parametrize("function", TAKE_A_WIDTH.values(), ids=TAKE_A_WIDTH)


@each_function
@pytest.mark.parametrize("dim", [13, 1, 0, -6, -1, 8.0, 7.5, None, "8"])
def test_a_width_that_is_no_positive_even_integer_is_named(function, dim):
    with pytest.raises(ValueError, match=f"got {dim!r};"):
        function(dim)


@each_function
@pytest.mark.parametrize("base", [0, 0.0, -50.0, math.nan, math.inf])
def test_a_base_that_is_no_finite_positive_number_is_named(function, base):
    with pytest.raises(ValueError, match=f"base must be finite and above 0, got {base!r};"):
        function(6, base)


@each_function
@pytest.mark.parametrize("dim", [np.uint8(8), np.int8(8), np.int64(8)], ids=repr)
def test_a_width_may_be_any_kind_of_integer(function, dim):
    for given, plain in zip(results(function(dim)), results(function(8)), strict=True):
        assert np.array_equal(given, plain)


def results(value):
    return [value(torch.zeros(1, 9, 8))] if isinstance(value, torch.nn.Module) else [value]


# --- reports of other projects, as regression tests ---------------------------------------------


def test_sine_and_cosine_of_a_pair_share_one_exponent():
    """https://github.com/SamLynnEvans/Transformer/issues/25,
    https://github.com/shenweichen/DeepCTR/issues/379 and
    https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/32."""
    doubled = [
        (math.sin, math.cos)[column % 2](1 / 10000 ** (2 * column / 4)) for column in range(4)
    ]
    assert np.round(doubled, 5).tolist() == [0.84147, 0.99995, 0.0001, 1.0]
    row = sinusoidal.sinusoidal_encoding(1, 4)
    assert row.round(5).tolist() == [0.84147, 0.5403, 0.01, 0.99995]


def test_the_last_frequency_is_one_rung_above_one_over_the_base():
    """https://github.com/tensorflow/tensor2tensor/issues/1423: 1e-4 at width 8."""
    assert sinusoidal.frequencies(8)[-1] == pytest.approx(1e-3, rel=1e-14)
    for dim in (8, 64, 512):
        assert sinusoidal.frequencies(dim)[-1] == pytest.approx(10000 ** (-(dim - 2) / dim))


def test_no_division_is_rounded_down():
    """https://github.com/zju3dv/LoFTR/issues/41: −log(10000)/256 // 2 is −1."""
    assert -math.log(10000.0) / 256 // 2 == -1
    assert sinusoidal.frequencies(256)[1] == pytest.approx(10000 ** (-1 / 128))


def test_an_odd_width_is_refused_at_once_and_by_name():
    """https://github.com/codertimo/BERT-pytorch/issues/78: 14 columns for 15 cosines."""
    for make in TAKE_A_WIDTH.values():
        with pytest.raises(ValueError, match="29"):
            make(29)


@pytest.mark.parametrize("batch, seq", [(2, 5), (5, 2), (4, 4), (1, 7), (7, 1)])
def test_the_table_lies_along_the_sequence_and_not_along_the_batch(batch, seq):
    """https://github.com/AkiRusProd/numpy-transformer/issues/1 and
    https://github.com/KasperGroesLudvigsen/influenza_transformer/issues/9."""
    out = SinusoidalEncoding(6, 20)(torch.zeros(batch, seq, 6), offset=3)
    assert out.shape == (batch, seq, 6)
    for row, token in np.ndindex(batch, seq):
        assert out[row, token].tolist() == pytest.approx(slow_vector(3 + token, 6), abs=EPS32)


def test_no_call_decides_the_dtype_of_later_ones():
    """positional-encodings 6.0.3 keeps its table in the dtype of the first call."""
    module = SinusoidalEncoding(8, 50)
    module(torch.zeros(1, 5, 8, dtype=torch.bfloat16))
    after = module(torch.zeros(1, 5, 8, dtype=torch.float64))
    assert after.dtype == torch.float64
    np.testing.assert_allclose(after[0], slow_encoding(range(5), 8), rtol=0, atol=EPS32)


# --- the torch room ----------------------------------------------------------------------------


def tokens(rng, *shape, dtype=torch.float32, device="cpu") -> torch.Tensor:
    return torch.tensor(rng.uniform(-2, 2, shape), dtype=dtype, device=device)


def exact(x: torch.Tensor, offset: int, base=10000.0) -> torch.Tensor:
    """x plus the slow loop's rows, in float64."""
    positions = range(offset, offset + x.shape[1])
    rows = torch.tensor(slow_encoding(positions, x.shape[2], base))
    return x.detach().double().cpu() + rows


def assert_one_rounding(result: torch.Tensor, expected: torch.Tensor) -> None:
    """Within half a unit of its dtype of the exact sum, plus float32 rows and addition."""
    error = (result.detach().double().cpu() - expected).abs()
    coarse = result.dtype in (torch.bfloat16, torch.float16)
    half_unit = torch.finfo(result.dtype).eps / 2 if coarse else 0.0
    assert (error <= half_unit * expected.abs() + 4 * EPS32).all(), error.max()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str
)
@pytest.mark.parametrize("shape", [(2, 5, 8), (5, 2, 6), (1, 1, 2), (3, 3, 14)], ids=str)
def test_module_equals_the_slow_loop(rng, device, dtype, shape):
    x = tokens(rng, *shape, dtype=dtype, device=device)
    module = SinusoidalEncoding(shape[2], 3000, BASE).to(device)
    for offset in (0, 3, 2990):
        result = module(x, offset)
        assert result.dtype == x.dtype and result.device == x.device and result.shape == x.shape
        assert_one_rounding(result, exact(x, offset, BASE))
    assert_one_rounding(module(x), exact(x, 0, BASE))


def test_module_is_the_twin_of_the_numpy_function():
    twin = sinusoidal.sinusoidal_encoding(np.arange(5000), 64, BASE)
    table = sinusoidal_table(5000, 64, BASE)
    assert table.dtype == torch.float32 and table.device.type == "cpu"
    np.testing.assert_allclose(table, twin, rtol=0, atol=EPS32)


def test_the_table_comes_from_float64_angles():
    """float32 angles would be off in the third digit at position 100 000."""
    row = sinusoidal_table(100_001, 32)[-1]
    np.testing.assert_allclose(row, slow_vector(100_000, 32), rtol=0, atol=EPS32)


def test_the_module_holds_one_buffer_that_is_not_persistent_and_nothing_to_train():
    module = SinusoidalEncoding(8, 20)
    (buffer,) = module.buffers()
    assert buffer.dtype == torch.float32 and buffer.shape == (20, 8)
    assert not list(module.parameters())
    assert len(module.state_dict()) == 0
    module.load_state_dict({})
    shorter = torch.nn.ModuleDict({"position": SinusoidalEncoding(8, 10)})
    shorter.load_state_dict(torch.nn.ModuleDict({"position": module}).state_dict())


def casts():
    def parent(module):
        return torch.nn.ModuleDict({"position": module})

    return {
        "bfloat16": lambda m: m.bfloat16(),
        "half": lambda m: m.half(),
        "double": lambda m: m.double(),
        "there and back": lambda m: m.bfloat16().float(),
        "parent to bfloat16": lambda m: parent(m).to(torch.bfloat16),
        "parent half": lambda m: parent(m).half(),
        "deepcopy and cast": lambda m: copy.deepcopy(m).to(torch.float16),
        "to a tensor's dtype": lambda m: m.to(torch.zeros(1, dtype=torch.bfloat16)),
        "cast by type": lambda m: m.type(torch.float16),
        "meta and back, empty": lambda m: m.to("meta").to_empty(device="cpu"),
    }


@pytest.mark.parametrize("name", casts())
def test_casting_the_module_or_its_parent_changes_no_bit(rng, name):
    x = tokens(rng, 2, 5, 8)
    module = SinusoidalEncoding(8, 2000, BASE)
    before = module(x, 1234)
    cast = casts()[name](module)
    cast = cast["position"] if isinstance(cast, torch.nn.ModuleDict) else cast
    assert torch.equal(cast(x, 1234), before)
    (buffer,) = cast.buffers()
    assert buffer.dtype == torch.float32
    assert len(cast.state_dict()) == 0


def test_a_plain_buffer_would_be_rounded_by_the_same_cast():
    """What the override is for: the digits that a cast takes from a buffer do not come back."""
    module = torch.nn.Module()
    module.register_buffer("table", sinusoidal_table(2000, 8, BASE), persistent=False)
    module.bfloat16().float()
    assert (module.table - sinusoidal_table(2000, 8, BASE)).abs().max() > 1e-3


@on_cuda
def test_the_table_follows_its_module_to_the_device_and_back():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), SinusoidalEncoding(8, 20))
    for device in ("cuda", "cpu"):
        model.to(device, torch.bfloat16)
        (buffer,) = model[1].buffers()
        assert buffer.device.type == device and buffer.dtype == torch.float32
        assert (
            model(torch.zeros(1, 5, 4, device=device, dtype=torch.bfloat16)).device.type == device
        )
    with torch.device("cuda"):
        (buffer,) = SinusoidalEncoding(8, 20).buffers()
    assert buffer.device.type == "cuda"


def test_the_table_follows_its_module_to_another_device():
    """The meta device stands in for one: it holds no numbers, but tells where a tensor is."""
    module = SinusoidalEncoding(8, 20).to("meta")
    (buffer,) = module.buffers()
    assert buffer.device.type == "meta" and buffer.dtype == torch.float32
    with torch.device("meta"):
        (buffer,) = SinusoidalEncoding(8, 20).buffers()
    assert buffer.device.type == "meta"


def test_a_module_left_behind_still_serves_an_input_on_another_device():
    x = torch.ones(2, 5, 8, device="meta", dtype=torch.bfloat16)
    result = SinusoidalEncoding(8, 20)(x, 3)
    assert result.device.type == "meta" and result.dtype == torch.bfloat16


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("x_dtype", [torch.float32, torch.bfloat16], ids=str)
def test_autocast_changes_no_bit(rng, device, dtype, x_dtype):
    x = tokens(rng, 2, 5, 8, dtype=x_dtype, device=device)
    module = SinusoidalEncoding(8, 2000).to(device)
    before = module(x, 1234)
    with torch.autocast(device, dtype=dtype):
        after = module(x, 1234)
        inside = SinusoidalEncoding(8, 2000).to(device)(x, 1234)
    assert before.dtype == after.dtype == inside.dtype == x_dtype
    assert torch.equal(before, after) and torch.equal(before, inside)


@pytest.mark.parametrize("default", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_the_default_dtype_of_torch_changes_no_bit(rng, default):
    x = tokens(rng, 2, 5, 8)
    before = SinusoidalEncoding(8, 2000)(x, 1234)
    torch.set_default_dtype(default)
    try:
        after = SinusoidalEncoding(8, 2000)(x, 1234)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(before, after)


def test_earlier_calls_leave_no_trace(rng):
    x = tokens(rng, 2, 5, 8)
    module = SinusoidalEncoding(8, 100)
    first = module(x, 7)
    module(x.double(), 90)
    module(x[:, :2].bfloat16(), 50)
    module(x[:1], 0)
    assert torch.equal(module(x, 7), first)
    assert_one_rounding(module(x, 8), exact(x, 8))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_the_input_is_not_changed(rng, dtype):
    x = tokens(rng, 2, 5, 8, dtype=dtype)
    before = x.clone()
    module = SinusoidalEncoding(8, 20)
    module(x, 3).zero_()
    assert torch.equal(x, before)
    assert_one_rounding(module(x, 3), exact(x, 3))  # nor the table


def test_gradients_pass_through_as_they_are(rng):
    x = tokens(rng, 2, 5, 8, dtype=torch.bfloat16).requires_grad_()
    weights = tokens(rng, 2, 5, 8)
    (SinusoidalEncoding(8, 20)(x, 3) * weights).sum().backward()
    assert x.grad.dtype == torch.bfloat16
    assert torch.equal(x.grad, weights.bfloat16())


def test_module_compiles_into_one_graph_and_exports(rng):
    x = tokens(rng, 2, 5, 8)
    module = SinusoidalEncoding(8, 60, BASE)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for offset in (0, 3, 55):
        assert torch.equal(compiled(x, offset), module(x, offset))
    exported = torch.export.export(module, (x, 3)).module()
    assert torch.equal(exported(x, 3), module(x, 3))


def test_empty_sequences_and_batches_work():
    module = SinusoidalEncoding(6, 4)
    assert module(torch.zeros(2, 0, 6), 4).shape == (2, 0, 6)
    assert module(torch.zeros(0, 3, 6)).shape == (0, 3, 6)


@pytest.mark.parametrize(
    "offset, seq", [(-1, 3), (-3, 2), (-9, 9), (7, 3), (9, 1), (8, 2), (0, 10)]
)
def test_positions_outside_the_table_are_refused_and_named(offset, seq):
    module = SinusoidalEncoding(6, 9)
    with pytest.raises(ValueError, match=rf"must lie in 0..8, got offset {offset} and seq {seq},"):
        module(torch.zeros(2, seq, 6), offset)


def test_the_last_row_of_the_table_may_be_used():
    module = SinusoidalEncoding(6, 9)
    for offset, seq in ((0, 9), (8, 1), (6, 3)):
        assert module(torch.zeros(2, seq, 6), offset).shape == (2, seq, 6)


@pytest.mark.parametrize("shape", [(2, 3, 1), (2, 3, 4), (2, 3, 12), (3, 6), (6,), (2, 2, 3, 6)])
def test_inputs_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"x must be floating, \(batch, seq, 6\), got"):
        SinusoidalEncoding(6, 9)(torch.zeros(shape))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64], ids=str)
def test_inputs_that_are_not_floating_are_refused(dtype):
    with pytest.raises(ValueError, match="x must be floating"):
        SinusoidalEncoding(6, 9)(torch.zeros(2, 3, 6, dtype=dtype))


@pytest.mark.parametrize("max_len", [0, -9, 9.0, None])
def test_a_length_that_is_no_positive_integer_is_named(max_len):
    with pytest.raises(ValueError, match=f"max_len must be a positive integer, got {max_len!r};"):
        SinusoidalEncoding(6, max_len)


# --- what students read -------------------------------------------------------------------------

MODULES = ["solutions.with_numpy.sinusoidal", "solutions.with_torch.sinusoidal"]
EXERCISES = [
    sinusoidal.frequencies,
    sinusoidal.wavelengths,
    sinusoidal.sinusoidal_encoding,
    sinusoidal.shift_matrix,
    sinusoidal.decode_position,
    sinusoidal.fixed_layout,
    SinusoidalEncoding,
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0 and failures == 0


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.__name__)
def test_docstring_says_all_that_a_student_needs(exercise):
    text = inspect.getdoc(exercise)
    assert text.splitlines()[0].endswith(".") and not text.splitlines()[1]
    for word in ("Shapes:", "Dtype:", "Units:", "Raises:", ">>>"):
        assert word in text, word


@pytest.mark.parametrize(
    "exercise, signature",
    list(
        zip(
            EXERCISES,
            [
                "(dim, base=10000.0)",
                "(dim, base=10000.0)",
                "(positions, dim, base=10000.0)",
                "(offset, dim, base=10000.0)",
                "(encoding, max_position, base=10000.0)",
                "(positions, dim, base=10000.0)",
                "(dim, max_len, base=10000.0)",
            ],
            strict=True,
        )
    ),
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_names_order_and_defaults_of_arguments_are_fixed(exercise, signature):
    bare = inspect.signature(exercise)
    parameters = [p.replace(annotation=p.empty) for p in bare.parameters.values()]
    bare = bare.replace(parameters=parameters, return_annotation=bare.empty)
    assert str(bare) == signature


def test_forward_takes_the_input_and_an_offset_that_is_0_by_default():
    parameters = inspect.signature(SinusoidalEncoding.forward).parameters
    assert [(p.name, p.default) for p in parameters.values()][1:] == [
        ("x", inspect.Parameter.empty),
        ("offset", 0),
    ]

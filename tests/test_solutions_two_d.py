"""The reference of the chapter `two_d` against values that do not come from it.

Slow loops in plain Python, published numbers, the outputs of other projects' code
(data/golden_two_d.json) and torch's own interpolation: every student is graded against this
reference, so a fault of its own must be found here.
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
from torch.utils._python_dispatch import TorchDispatchMode

from solutions.with_numpy import rope, two_d
from solutions.with_torch.two_d import AxialRotaryEmbedding2D
from tests.devices import DEVICES

GOLDEN = json.loads((Path(__file__).parent / "data" / "golden_two_d.json").read_text())["golden"]
BASE = 30.0  # no default, so that a forgotten argument shows
EPS64, EPS32 = 2.0**-52, 2.0**-23
GRIDS = [(2, 3), (3, 2), (1, 7), (7, 1), (1, 1), (4, 4), (5, 9)]
EMPTY = [(0, 3), (3, 0), (0, 0), (-2, 3), (3, -2), (-2, -3)]


# --- the formulas, one number at a time ---------------------------------------------------------


def slow_places(height: int, width: int) -> list[tuple[int, int]]:
    """(row, column) of each patch as a reader meets them."""
    places = []
    for row in range(height):
        for column in range(width):
            places.append((row, column))
    return places


def slow_waves(position, width, base) -> list[float]:
    """The encoding of one position in `width` coordinates."""
    waves = []
    for i in range(width // 2):
        angle = position / base ** (2 * i / width)
        waves += [math.sin(angle), math.cos(angle)]
    return waves


def slow_turn(vector, angles) -> list[float]:
    """One vector, neighbour by neighbour, by one angle for each pair."""
    rotated = []
    for i, angle in enumerate(angles):
        a, b = float(vector[2 * i]), float(vector[2 * i + 1])
        rotated.append(a * math.cos(angle) - b * math.sin(angle))
        rotated.append(a * math.sin(angle) + b * math.cos(angle))
    return rotated


def slow_axial_angles(row, column, dim, base) -> list[float]:
    half = dim // 2
    frequencies = [base ** (-2 * i / half) for i in range(half // 2)]
    return [row * f for f in frequencies] + [column * f for f in frequencies]


def slow_axial(x, rows, cols, base) -> np.ndarray:
    """Every vector of x by itself; rows and cols belong to the last axis but one."""
    x = np.asarray(x, dtype=np.float64)
    result = np.empty(x.shape)
    for index in np.ndindex(*x.shape[:-1]):
        t = index[-1]
        angles = slow_axial_angles(float(rows[t]), float(cols[t]), x.shape[-1], base)
        result[index] = slow_turn(x[index], angles)
    return result


def slow_resize(table, old, new) -> np.ndarray:
    """Four neighbours of each new centre, weighted by how near they are."""
    table = np.asarray(table, dtype=np.float64)
    result = np.empty((new[0] * new[1], table.shape[1]))
    for i in range(new[0]):
        for j in range(new[1]):
            total = np.zeros(table.shape[1])
            y = min(max((i + 0.5) * old[0] / new[0] - 0.5, 0.0), old[0] - 1.0)
            x = min(max((j + 0.5) * old[1] / new[1] - 0.5, 0.0), old[1] - 1.0)
            for row in range(old[0]):
                for column in range(old[1]):
                    near = max(0.0, 1 - abs(y - row)) * max(0.0, 1 - abs(x - column))
                    total = total + near * table[row * old[1] + column]
            result[i * new[1] + j] = total
    return result


def allowed(angle: float, scale: float = 4.0, eps: float = EPS64) -> float:
    """Sine and cosine move by as much as an angle does that was rounded a few times."""
    return 8 * scale * (eps + EPS64 * abs(angle))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240320)


def far_places(rng: np.random.Generator, count: int) -> np.ndarray:
    """Rows or columns that are no range, some between two patches, some negative."""
    return rng.integers(-90, 900, count) + rng.choice([0.0, 0.25, 0.5], count)


# --- outputs of other projects ------------------------------------------------------------------


def golden(prefix: str) -> list:
    return [
        pytest.param(entry, id=f"{entry['id']} by {entry['source'].split('@')[0].split('=')[0]}")
        for entry in GOLDEN
        if entry["id"].startswith(prefix)
    ]


def test_every_golden_entry_belongs_to_one_test():
    tested = golden("2d.mae.2x3") + golden("2d.rowfirst") + golden("2d.mae.r1c2")
    tested += golden("2d.ropevit.axial.angles") + golden("2d.ropevit.axial.apply")
    tested += golden("2d.ropevit.mixed")
    assert len(tested) == len(GOLDEN) == 7


def in_blocks(table) -> np.ndarray:
    """[s0 c0 s1 c1] → [s0 s1 c0 c1] in each half: MAE's layout."""
    return table.reshape(len(table), 2, -1, 2).swapaxes(2, 3).reshape(table.shape)


@pytest.mark.parametrize("entry", golden("2d.mae.2x3"))
def test_mae_is_column_first_in_blocks(entry):
    args = entry["args"]
    table = two_d.sincos_2d(args["h"], args["w"], args["d"], first="column")
    np.testing.assert_allclose(in_blocks(table), entry["output"], rtol=0, atol=1e-15)
    other = two_d.sincos_2d(args["h"], args["w"], args["d"])
    assert np.abs(in_blocks(other) - entry["output"]).max() > 0.9


@pytest.mark.parametrize("entry", golden("2d.rowfirst"))
def test_transformers_vit_mae_builds_it_row_first_in_blocks(entry):
    args = entry["args"]
    table = two_d.sincos_2d(args["h"], args["w"], args["d"])
    np.testing.assert_allclose(in_blocks(table), entry["output"], rtol=0, atol=1e-15)


@pytest.mark.parametrize("entry", golden("2d.mae.r1c2"))
def test_row_one_column_two_in_both_orders(entry):
    row_first, column_first = (two_d.sincos_2d(2, 3, 4, first=f)[5] for f in ("row", "column"))
    np.testing.assert_allclose(column_first, entry["output"]["mae"], rtol=0, atol=1e-15)
    assert row_first.round(4).tolist() == entry["output"]["seed004_claims"]
    assert row_first.round(4).tolist() == [0.8415, 0.5403, 0.9093, -0.4161]


@pytest.mark.parametrize("entry", golden("2d.ropevit.axial.angles"))
def test_axial_angles_are_those_of_rope_vit_with_the_halves_exchanged(entry):
    args, angles = entry["args"], np.array(entry["output"])
    rows, cols = two_d.grid_positions(args["h"], args["w"])
    ones = np.tile([1.0, 0.0], (len(rows), args["dim"] // 2))
    turned = two_d.axial_rope_2d(ones, rows, cols, args["theta"]).reshape(len(rows), -1, 2)
    mine = np.arctan2(turned[..., 1], turned[..., 0])
    exchanged = np.roll(angles, args["dim"] // 4, axis=-1)  # theirs has the column first
    np.testing.assert_allclose(mine, exchanged, rtol=0, atol=entry["tol"])


@pytest.mark.parametrize("entry", golden("2d.ropevit.axial.apply"))
def test_axial_rotation_is_that_of_rope_vit_and_timm_with_the_halves_exchanged(entry):
    x = np.tile(np.arange(1.0, 9.0), (6, 1))
    rows, cols = two_d.grid_positions(2, 3)
    expected = np.array(entry["output"])
    rotated = two_d.axial_rope_2d(x, cols, rows)  # the column turns the first half, as in theirs
    np.testing.assert_allclose(rotated, expected, rtol=0, atol=5e-6)

    exchanged = np.roll(x, 4, axis=-1)
    for result in (
        two_d.axial_rope_2d(exchanged, rows, cols),
        AxialRotaryEmbedding2D(8)(*(torch.tensor(exchanged)[None, None],) * 2, 2, 3)[1][0, 0],
    ):
        back = np.roll(np.asarray(result), 4, axis=-1)
        np.testing.assert_allclose(back, expected, rtol=0, atol=5e-6)
    assert np.abs(two_d.axial_rope_2d(x, rows, cols) - expected).max() > 1


@pytest.mark.parametrize("entry", golden("2d.ropevit.mixed"))
def test_mixed_angles_are_those_of_rope_vit_at_the_start_of_training(entry):
    magnitudes = 10.0 ** -(np.arange(2) / 2)  # what its initialisation draws from, unrotated
    col_freqs, row_freqs = np.append(magnitudes, [0, 0]), np.append([0, 0], magnitudes)
    rows, cols = two_d.grid_positions(entry["args"]["h"], entry["args"]["w"])
    ones = np.tile([1.0, 0.0], (len(rows), 4))
    turned = two_d.mixed_rope_2d(ones, rows, cols, row_freqs, col_freqs).reshape(-1, 4, 2)
    angles = np.arctan2(turned[..., 1], turned[..., 0])
    for head in entry["output"]:  # both heads start alike
        np.testing.assert_allclose(angles, head, rtol=0, atol=entry["tol"])


# --- the NumPy room against the slow loops ------------------------------------------------------


@pytest.mark.parametrize("height, width", GRIDS)
def test_patches_are_numbered_row_by_row(height, width):
    rows, cols = two_d.grid_positions(height, width)
    assert list(zip(rows.tolist(), cols.tolist(), strict=True)) == slow_places(height, width)
    assert rows.dtype == cols.dtype == np.int64
    numbers = np.arange(height * width).reshape(height, width)
    assert np.array_equal(numbers[rows, cols], numbers.reshape(-1))


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, np.int8])
def test_sizes_may_be_any_kind_of_integer(kind):
    rows, cols = two_d.grid_positions(kind(20), kind(30))  # 600 patches: more than a uint8 counts
    assert rows[-1] == 19 and cols[-1] == 29 and len(rows) == 600
    assert two_d.fixed_grid()(kind(20), kind(30)).shape == (600, 2)
    assert two_d.sincos_2d(kind(20), kind(30), kind(8)).shape == (600, 8)
    assert two_d.resize_grid(np.ones((6, 1)), (2, 3), (kind(20), kind(30))).shape == (600, 1)


@pytest.mark.parametrize("first", ["row", "column"])
@pytest.mark.parametrize("dim", [4, 8, 12, 64])
@pytest.mark.parametrize("height, width", GRIDS)
def test_sines_and_cosines_equal_the_slow_loop(height, width, dim, first):
    table = two_d.sincos_2d(height, width, dim, BASE, first)
    assert table.shape == (height * width, dim) and table.dtype == np.float64
    for t, (row, column) in enumerate(slow_places(height, width)):
        by_row, by_column = (slow_waves(p, dim // 2, BASE) for p in (row, column))
        expected = by_row + by_column if first == "row" else by_column + by_row
        assert table[t] == pytest.approx(expected, abs=allowed(9, scale=1))


def test_row_first_is_the_default_order_and_10000_the_default_base():
    expected = two_d.sincos_2d(3, 5, 8, 10000.0, "row")
    assert np.array_equal(two_d.sincos_2d(3, 5, 8), expected)
    assert expected[14].tolist() == pytest.approx(slow_waves(2, 4, 1e4) + slow_waves(4, 4, 1e4))


def test_all_patches_of_a_grid_have_codes_of_their_own():
    table = two_d.sincos_2d(14, 20, 16)
    distances = np.linalg.norm(table[:, None] - table, axis=-1) + np.eye(len(table))
    assert distances.min() > 0.5
    np.testing.assert_allclose((table**2).sum(axis=-1), 8, rtol=1e-14)


@pytest.mark.parametrize("shape", [(6, 8), (6, 4), (2, 6, 12), (2, 3, 6, 8), (1, 4)])
def test_axial_rotation_equals_the_slow_loop(rng, shape):
    x = rng.normal(size=shape)
    rows, cols = far_places(rng, shape[-2]), far_places(rng, shape[-2])
    rotated = two_d.axial_rope_2d(x, rows, cols, BASE)
    assert rotated.shape == shape
    expected = slow_axial(x, rows, cols, BASE)
    np.testing.assert_allclose(rotated, expected, rtol=0, atol=allowed(900))


def test_100_is_the_default_base_of_the_axial_rotation(rng):
    x, rows, cols = rng.normal(size=(3, 8)), far_places(rng, 3), far_places(rng, 3)
    expected = slow_axial(x, rows, cols, 100.0)
    np.testing.assert_allclose(
        two_d.axial_rope_2d(x, rows, cols), expected, rtol=0, atol=allowed(900)
    )


def test_each_half_is_a_whole_rope_of_half_the_width(rng):
    x, rows, cols = rng.normal(size=(5, 12)), far_places(rng, 5), far_places(rng, 5)
    rotated = two_d.axial_rope_2d(x, rows, cols, BASE)
    assert np.array_equal(rotated[:, :6], rope.apply_rope(x[:, :6], rows, BASE))
    assert np.array_equal(rotated[:, 6:], rope.apply_rope(x[:, 6:], cols, BASE))


def test_scores_depend_on_the_rows_and_columns_between_two_patches(rng):
    q, k = rng.normal(size=(2, 1, 8))
    here = two_d.axial_rope_2d(q, [5], [9]) @ two_d.axial_rope_2d(k, [2], [11]).T
    moved = two_d.axial_rope_2d(q, [45], [2]) @ two_d.axial_rope_2d(k, [42], [4]).T
    turned = two_d.axial_rope_2d(q, [9], [5]) @ two_d.axial_rope_2d(k, [11], [2]).T
    assert moved[0, 0] == pytest.approx(here[0, 0], abs=1e-13)
    assert abs(turned[0, 0] - here[0, 0]) > 0.01


@pytest.mark.parametrize("shape", [(6, 8), (6, 2), (2, 6, 10), (2, 3, 6, 6), (1, 2)])
def test_mixed_rotation_equals_the_slow_loop(rng, shape):
    x, pairs = rng.normal(size=shape), shape[-1] // 2
    rows, cols = far_places(rng, shape[-2]), far_places(rng, shape[-2])
    row_freqs, col_freqs = rng.normal(size=(2, pairs))
    rotated = two_d.mixed_rope_2d(x, rows, cols, row_freqs, col_freqs)
    for index in np.ndindex(*shape[:-1]):
        row, column = float(rows[index[-1]]), float(cols[index[-1]])
        angles = [row * row_freqs[p] + column * col_freqs[p] for p in range(pairs)]
        expected = slow_turn(x[index], angles)
        assert rotated[index] == pytest.approx(expected, abs=allowed(4000))


def test_axial_rotation_is_the_mixed_one_with_zeros(rng):
    x, rows, cols = rng.normal(size=(5, 8)), far_places(rng, 5), far_places(rng, 5)
    ladder = np.array([1.0, 0.1])
    mixed = two_d.mixed_rope_2d(x, rows, cols, [*ladder, 0, 0], [0, 0, *ladder])
    axial = two_d.axial_rope_2d(x, rows, cols, 100.0)
    np.testing.assert_allclose(mixed, axial, rtol=0, atol=allowed(900))


def test_a_mixed_pair_sees_a_diagonal_that_no_axial_pair_sees():
    q = np.array([[1.0, 0.0, 0.0, 0.0]])
    along = [two_d.mixed_rope_2d(q, [i], [i], [0.5, 0], [-0.5, 0]) for i in range(5)]
    assert all(np.array_equal(v, q) for v in along)  # frequencies that cancel on the diagonal
    across = two_d.mixed_rope_2d(q, [1], [-1], [0.5, 0], [-0.5, 0])
    assert across[0, :2] == pytest.approx([math.cos(1), math.sin(1)])


RESIZES = [
    ((2, 3), (4, 5)),
    ((3, 2), (2, 3)),
    ((4, 6), (2, 3)),
    ((9, 7), (3, 5)),
    ((6, 1), (4, 1)),
    ((1, 6), (3, 9)),
    ((1, 1), (3, 4)),
    ((5, 7), (1, 1)),
    ((4, 4), (4, 4)),
    ((7, 7), (16, 10)),
]


@pytest.mark.parametrize("old, new", RESIZES)
def test_resizing_equals_the_slow_loop(rng, old, new):
    table = rng.normal(size=(old[0] * old[1], 3))
    resized = two_d.resize_grid(table, old, new)
    np.testing.assert_allclose(resized, slow_resize(table, old, new), rtol=0, atol=1e-13)


@pytest.mark.parametrize("old, new", [*RESIZES, ((14, 14), (15, 22)), ((37, 37), (39, 46))])
def test_resizing_equals_torchs_interpolation_without_antialiasing(rng, old, new):
    table = rng.normal(size=(old[0] * old[1], 2))
    image = torch.tensor(table).reshape(1, *old, 2).permute(0, 3, 1, 2)
    image = torch.nn.functional.interpolate(
        image, size=new, mode="bilinear", align_corners=False, antialias=False
    )
    expected = image.permute(0, 2, 3, 1).reshape(-1, 2).numpy()
    resized = two_d.resize_grid(table, old, new)
    np.testing.assert_allclose(resized, expected, rtol=0, atol=1e-12)


def test_the_same_size_changes_no_bit(rng):
    table = rng.normal(size=(35, 3))
    assert np.array_equal(two_d.resize_grid(table, (5, 7), (5, 7)), table)
    assert not np.shares_memory(two_d.resize_grid(table, (5, 7), (5, 7)), table)


@pytest.mark.parametrize("height, width", GRIDS)
def test_centres_equal_the_slow_loop(height, width):
    centres = two_d.fixed_grid()(height, width)
    assert centres.shape == (height * width, 2) and centres.dtype == np.float64
    for t, (row, column) in enumerate(slow_places(height, width)):
        expected = [(row + 0.5) / height, (column + 0.5) / width]
        assert centres[t].tolist() == pytest.approx(expected, abs=EPS64)
    assert centres.min() > 0 and centres.max() < 1


# --- dtypes and inputs of the NumPy room --------------------------------------------------------

TRANSFORMS = {
    "axial_rope_2d": lambda x: two_d.axial_rope_2d(x, [5, 9, 2], [1, 0, 7.5]),
    "mixed_rope_2d": lambda x: two_d.mixed_rope_2d(x, [5, 9, 2], [1, 0, 7.5], [1, 0.3], [0.2, -1]),
    "resize_grid": lambda x: two_d.resize_grid(x, (1, 3), (2, 5)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_floating_dtype_is_kept_and_rounded_to_once(rng, name, dtype):
    x = rng.normal(size=(3, 4)).astype(dtype)
    result = TRANSFORMS[name](x)
    assert result.dtype == dtype
    assert np.array_equal(result, TRANSFORMS[name](x.astype(np.float64)).astype(dtype))


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_integers_become_float64_and_are_not_truncated(name, dtype):
    x = np.arange(1, 13, dtype=dtype).reshape(3, 4)
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


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", [bool, complex, str, object])
def test_anything_but_integers_and_floats_is_refused_by_name(name, dtype):
    with pytest.raises(TypeError, match="must hold integers or floats, got dtype"):
        TRANSFORMS[name](np.ones((3, 4)).astype(dtype))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_arrays_with_gaps_in_memory_work(rng, name):
    wide = rng.normal(size=(8, 9))
    some = wide.T[::3, 1::2]
    assert np.array_equal(TRANSFORMS[name](some), TRANSFORMS[name](some.copy()))
    rows = np.arange(20)[::4] + 3
    x = rng.normal(size=(5, 8))
    expected = two_d.axial_rope_2d(x, rows.tolist(), rows[::-1].tolist())
    assert np.array_equal(two_d.axial_rope_2d(x, rows, rows[::-1]), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float16, np.float32])
def test_angles_are_float64_for_places_and_frequencies_of_any_dtype(dtype):
    x, rows, cols = np.ones((2, 4)), np.array([100, 3], dtype), np.array([7, 90], dtype)
    freqs = np.array([0, 1], dtype), np.array([2, 1], dtype)  # 100 + 90 is more than int8 holds
    wide = [a.astype(np.float64) for a in (rows, cols, *freqs)]
    assert np.array_equal(two_d.mixed_rope_2d(x, rows, cols, *freqs), two_d.mixed_rope_2d(x, *wide))
    assert np.array_equal(
        two_d.axial_rope_2d(x, rows, cols), two_d.axial_rope_2d(x, wide[0], wide[1])
    )


# --- bad input of the NumPy room ----------------------------------------------------------------


@pytest.mark.parametrize("height, width", [*EMPTY, (2.5, 4), (4, 2.0), ("3", 4), (3, None)])
def test_a_size_that_is_no_positive_integer_is_named(height, width):
    for call in (
        lambda: two_d.grid_positions(height, width),
        lambda: two_d.sincos_2d(height, width, 8),
        lambda: two_d.fixed_grid()(height, width),
        lambda: two_d.resize_grid(np.ones((6, 2)), (2, 3), (height, width)),
        lambda: two_d.resize_grid(np.ones((6, 2)), (height, width), (2, 3)),
    ):
        with pytest.raises(ValueError, match=r"(height|width) must be an integer of at least 1"):
            call()


@pytest.mark.parametrize("dim", [0, -4, 2, 6, 5, 14, 4.0, "4", None])
def test_a_width_that_4_does_not_divide_is_named(dim):
    with pytest.raises(ValueError, match=f"divisible by 4, got {dim!r}"):
        two_d.sincos_2d(2, 3, dim)
    with pytest.raises(ValueError, match=f"divisible by 4, got {dim!r}"):
        AxialRotaryEmbedding2D(dim)
    if isinstance(dim, int) and dim >= 0:
        with pytest.raises(ValueError, match=f"divisible by 4, got {dim!r}"):
            two_d.axial_rope_2d(np.ones((3, dim)), [1, 2, 3], [1, 2, 3])


@pytest.mark.parametrize("dim", [0, 1, 7])
def test_an_odd_or_empty_last_axis_is_named(dim):
    freqs = np.ones(dim // 2)
    with pytest.raises(ValueError, match=f"even integer, got {dim}"):
        two_d.mixed_rope_2d(np.ones((3, dim)), [1, 2, 3], [1, 2, 3], freqs, freqs)


@pytest.mark.parametrize("first", ["Row", "rows", "col", "", None, 0])
def test_a_wrong_order_is_answered_with_both_right_ones(first):
    with pytest.raises(ValueError, match=f"'row' or 'column', got {first!r}"):
        two_d.sincos_2d(2, 3, 8, first=first)


@pytest.mark.parametrize("base", [0, 0.0, -1, -100.0, math.nan, math.inf, -math.inf])
def test_a_base_that_is_no_finite_positive_number_is_named(base):
    for call in (
        lambda: two_d.sincos_2d(2, 3, 8, base),
        lambda: two_d.sincos_2d(2, 3, 4, base),
        lambda: two_d.axial_rope_2d(np.ones((3, 4)), [1, 2, 3], [1, 2, 3], base),
        lambda: AxialRotaryEmbedding2D(4, base),
    ):
        with pytest.raises(ValueError, match=f"above 0, got {base!r}"):
            call()


@pytest.mark.parametrize("shape", [(), (1,), (2,), (4,), (1, 3), (3, 1), (2, 3), (2, 1), (2, 1, 3)])
def test_places_of_any_other_shape_raise_and_never_broadcast(shape):
    x, good, bad, freqs = np.ones((2, 3, 4)), np.ones(3), np.ones(shape), np.ones(2)
    for rows, cols in ((bad, good), (good, bad), (bad, bad)):
        with pytest.raises(ValueError, match=r"rows and cols \(n,\) each, got x \(2, 3, 4\)"):
            two_d.axial_rope_2d(x, rows, cols)
        with pytest.raises(ValueError, match=r"rows and cols \(n,\) each, got x \(2, 3, 4\)"):
            two_d.mixed_rope_2d(x, rows, cols, freqs, freqs)


@pytest.mark.parametrize("x_shape, n", [((1, 4), 3), ((4,), 1), ((2, 1, 4), 2), ((3, 4), 1)])
def test_places_and_vectors_that_do_not_match_raise(x_shape, n):
    places, freqs = np.ones(n), np.ones(2)
    with pytest.raises(ValueError, match="give each vector its row and column"):
        two_d.axial_rope_2d(np.ones(x_shape), places, places)
    with pytest.raises(ValueError, match="give each vector its row and column"):
        two_d.mixed_rope_2d(np.ones(x_shape), places, places, freqs, freqs)
    with pytest.raises(ValueError):
        two_d.axial_rope_2d(np.ones(4), 1, 1)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,), (1, 2), (2, 1), (3, 2)])
def test_frequencies_of_any_other_shape_raise_and_never_broadcast(shape):
    x, places, good, bad = np.ones((3, 4)), np.ones(3), np.ones(2), np.ones(shape)
    for row_freqs, col_freqs in ((bad, good), (good, bad), (bad, bad)):
        with pytest.raises(ValueError, match=r"must be \(dim/2,\) = \(2,\) each, got"):
            two_d.mixed_rope_2d(x, places, places, row_freqs, col_freqs)


@pytest.mark.parametrize("shape", [(5, 2), (7, 2), (12, 2), (1, 2), (0, 2), (6,), (2, 3, 2), ()])
def test_a_table_that_is_not_of_its_grid_raises(shape):
    with pytest.raises(ValueError, match=r"must be \(h·w, dim\) with h·w = 2·3 = 6 rows, got"):
        two_d.resize_grid(np.ones(shape), (2, 3), (4, 5))


@pytest.mark.parametrize("size", [(3,), (1, 2, 3), 3])
def test_a_size_is_two_numbers(size):
    with pytest.raises((ValueError, TypeError)):
        two_d.resize_grid(np.ones((6, 2)), (2, 3), size)


def test_empty_axes_that_are_no_grids_work():
    assert two_d.resize_grid(np.ones((6, 0)), (2, 3), (4, 5)).shape == (20, 0)
    assert two_d.axial_rope_2d(np.ones((0, 3, 4)), [1, 2, 3], [1, 2, 3]).shape == (0, 3, 4)
    assert two_d.axial_rope_2d(np.ones((0, 4)), [], []).shape == (0, 4)
    assert two_d.mixed_rope_2d(np.ones((0, 2)), [], [], [1.0], [1.0]).shape == (0, 2)


# --- the torch room -----------------------------------------------------------------------------


def tensors(rng, device="cpu", dtype=torch.float32, heads=6, kv_heads=2, head_dim=8, seq=15):
    q = torch.tensor(rng.normal(size=(2, heads, seq, head_dim)), dtype=dtype, device=device)
    k = torch.tensor(rng.normal(size=(2, kv_heads, seq, head_dim)), dtype=dtype, device=device)
    return q, k


def exact(x: torch.Tensor, height, width, prefix=0, base=100.0) -> torch.Tensor:
    """The slow loop over x as it is, in float64; prefix tokens as they are."""
    x = x.detach().double().cpu().numpy()
    rows, cols = np.array(slow_places(height, width)).T
    turned = slow_axial(x[:, :, prefix:], rows, cols, base)
    return torch.tensor(np.concatenate([x[:, :, :prefix], turned], axis=2))


def assert_one_rounding(result: torch.Tensor, expected: torch.Tensor) -> None:
    """`result` is within half a unit of its dtype of the exact value, plus float32 arithmetic."""
    error = (result.detach().double().cpu() - expected).abs()
    half_unit = torch.finfo(result.dtype).eps / 2
    half_unit = 0.0 if result.dtype in (torch.float32, torch.float64) else half_unit
    arithmetic = 16 * (EPS64 * 100 if result.dtype == torch.float64 else EPS32)
    smallest = torch.finfo(result.dtype).tiny
    assert (error <= half_unit * expected.abs() + arithmetic + smallest).all(), error.max()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str
)
@pytest.mark.parametrize("height, width, prefix", [(3, 5, 0), (5, 3, 0), (2, 7, 1), (11, 1, 4)])
def test_module_equals_the_slow_loop_with_grouped_keys(rng, device, dtype, height, width, prefix):
    q, k = tensors(rng, device, dtype)
    results = AxialRotaryEmbedding2D(8, BASE)(q, k, height, width, prefix)
    for x, result in zip((q, k), results, strict=True):
        assert result.dtype == x.dtype and result.device == x.device and result.shape == x.shape
        assert_one_rounding(result, exact(x, height, width, prefix, BASE))
        assert torch.equal(result[:, :, : prefix + 1], x[:, :, : prefix + 1])  # patch 0 stands at 0


@pytest.mark.parametrize("head_dim", [4, 12, 64])
def test_module_is_the_twin_of_the_numpy_function(rng, head_dim):
    q, k = tensors(rng, dtype=torch.float64, head_dim=head_dim)
    rows, cols = two_d.grid_positions(3, 5)
    for x, result in zip((q, k), AxialRotaryEmbedding2D(head_dim)(q, k, 3, 5), strict=True):
        twin = two_d.axial_rope_2d(x.numpy(), rows, cols)
        np.testing.assert_allclose(result.numpy(), twin, rtol=0, atol=allowed(5))


def casts():
    def parent(module):
        return torch.nn.ModuleDict({"rope": module})

    return {
        "bfloat16": lambda m: m.bfloat16(),
        "half": lambda m: m.half(),
        "double": lambda m: m.double(),
        "parent to bfloat16": lambda m: parent(m).to(torch.bfloat16),
        "parent half": lambda m: parent(m).half(),
        "deepcopy and cast": lambda m: copy.deepcopy(m).to(torch.float16),
    }


@pytest.mark.parametrize("name", casts())
def test_casting_the_module_or_its_parent_changes_no_bit(rng, name):
    q, k = tensors(rng, seq=1202)
    module = AxialRotaryEmbedding2D(8)
    before = module(q, k, 2, 600, 2)
    cast = casts()[name](module)
    cast = cast["rope"] if isinstance(cast, torch.nn.ModuleDict) else cast
    after = cast(q, k, 2, 600, 2)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("x_dtype", [torch.float32, torch.bfloat16], ids=str)
def test_autocast_changes_no_bit(rng, device, dtype, x_dtype):
    q, k = tensors(rng, device, x_dtype, seq=1202)
    module = AxialRotaryEmbedding2D(8)
    before = module(q, k, 600, 2, 2)
    with torch.autocast(device, dtype=dtype):
        after = module(q, k, 600, 2, 2)
    for a, b in zip(before, after, strict=True):
        assert a.dtype == b.dtype == x_dtype
        assert torch.equal(a, b)


@pytest.mark.parametrize("default", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_the_default_dtype_of_torch_changes_no_bit(rng, default):
    q, k = tensors(rng, seq=1200)
    before = AxialRotaryEmbedding2D(8)(q, k, 2, 600)
    torch.set_default_dtype(default)
    try:
        after = AxialRotaryEmbedding2D(8)(q, k, 2, 600)
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


class DtypesSeen(TorchDispatchMode):
    """Records the dtype of every tensor that an operation makes on the meta device."""

    def __init__(self):
        super().__init__()
        self.dtypes = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.device.type == "meta":
            self.dtypes.add(result.dtype)
        return result


def test_a_device_that_is_not_known_to_have_float64_never_sees_it():
    """The meta device stands in for MPS: it computes nothing, but shows what is asked of it."""
    q = torch.ones(2, 6, 15, 8, device="meta")
    with DtypesSeen() as seen:
        results = AxialRotaryEmbedding2D(8)(q, q, 3, 5)
    assert all(result.dtype == torch.float32 for result in results)
    assert torch.float32 in seen.dtypes and torch.float64 not in seen.dtypes


def test_earlier_calls_leave_no_trace(rng):
    q, k = tensors(rng)
    module = AxialRotaryEmbedding2D(8)
    first = module(q, k, 3, 5)
    module(q, k, 5, 3)
    module(q.double(), k.double(), 1, 15)
    module(q[:, :, :7], k[:, :, :7], 2, 3, 1)
    module(q.bfloat16(), k.bfloat16(), 3, 5)
    again = module(q, k, 3, 5)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_module_stores_nothing():
    module = AxialRotaryEmbedding2D(8)
    assert len(module.state_dict()) == 0
    assert not list(module.parameters()) and not list(module.buffers())
    module.load_state_dict({})


@pytest.mark.parametrize("prefix", [0, 3])
def test_inputs_of_the_module_are_not_changed(rng, prefix):
    q, k = tensors(rng, seq=12 + prefix)
    before = q.clone(), k.clone()
    for result in AxialRotaryEmbedding2D(8)(q, k, 3, 4, prefix):
        result.zero_()
    assert all(torch.equal(a, b) for a, b in zip((q, k), before, strict=True))


def test_gradients_rotate_back(rng):
    q, k = (x.double().requires_grad_() for x in tensors(rng))
    q_rotated, k_rotated = AxialRotaryEmbedding2D(8)(q, k, 2, 7, 1)
    (q_rotated.square().sum() + k_rotated.square().sum()).backward()
    torch.testing.assert_close(q.grad, 2 * q.detach())  # a rotation keeps |q|², whose slope is 2q
    torch.testing.assert_close(k.grad, 2 * k.detach())


def test_module_compiles_into_one_graph(rng):
    q, k = tensors(rng)
    module = AxialRotaryEmbedding2D(8, BASE)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for grid in ((3, 5), (5, 3), (2, 7, 1)):
        for a, b in zip(compiled(q, k, *grid), module(q, k, *grid), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "height, width, prefix",
    [(3, 4, 0), (3, 5, 1), (1, 1, 0), (5, 5, 0), (2, 7, 0), (2, 7, 2), (1, 14, 2)],
)
def test_module_refuses_a_length_that_does_not_fit_the_grid(rng, height, width, prefix):
    q, k = tensors(rng)
    expected = rf"num_prefix_tokens \+ height·width = {prefix} \+ {height}·{width}, got 15"
    with pytest.raises(ValueError, match=expected):
        AxialRotaryEmbedding2D(8)(q, k, height, width, prefix)


@pytest.mark.parametrize("grid", [(0, 3, 15), (3, 0, 15), (-3, -5, 0), (3, 6, -3), (3.0, 5, 0)])
def test_module_refuses_grids_and_prefixes_that_are_no_counts(rng, grid):
    q, k = tensors(rng)
    with pytest.raises(ValueError, match="must be an integer of at least"):
        AxialRotaryEmbedding2D(8)(q, k, *grid)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_module_refuses_inputs_that_are_not_floating(dtype):
    x, y = torch.ones(2, 6, 15, 8), torch.ones(2, 6, 15, 8, dtype=dtype)
    for name, q, k in (("q", y, x), ("k", x, y)):
        with pytest.raises(ValueError, match=f"{name} must be floating"):
            AxialRotaryEmbedding2D(8)(q, k, 3, 5)


@pytest.mark.parametrize(
    "q, k",
    [
        ((2, 6, 15, 4), (2, 6, 15, 4)),
        ((2, 6, 15, 8), (2, 6, 15, 4)),
        ((6, 15, 8), (6, 15, 8)),
        ((2, 6, 15, 8), (2, 6, 1, 8)),
        ((2, 6, 1, 8), (2, 6, 15, 8)),
        ((2, 6, 15, 8), (1, 6, 15, 8)),
        ((2, 6, 15, 8), (2, 4, 15, 8)),
        ((2, 6, 15, 8), (2, 12, 15, 8)),
        ((2, 6, 15, 8), (2, 0, 15, 8)),
    ],
)
def test_module_refuses_shapes_that_do_not_go_together(q, k):
    with pytest.raises(ValueError, match="got"):
        AxialRotaryEmbedding2D(8)(torch.ones(q), torch.ones(k), 3, 5)


# --- faults that real projects shipped ----------------------------------------------------------


def test_swapping_the_mesh_would_only_show_on_rectangles():
    """https://github.com/huggingface/transformers/pull/41380 and
    https://github.com/huggingface/pytorch-image-models/pull/2541
    """

    def swapped(height, width):
        y, x = (np.arange(n) + 0.5 for n in (height, width))
        mesh = np.meshgrid(x / width, y / height, indexing="ij")
        return np.stack(mesh, axis=-1).reshape(-1, 2)

    centres = two_d.fixed_grid()
    assert np.array_equal(swapped(4, 4), centres(4, 4))
    assert np.abs(swapped(3, 4) - centres(3, 4)).max() > 0.2
    rows, cols = two_d.grid_positions(3, 4)
    x_first = np.repeat(np.arange(4), 3)
    assert cols[:4].tolist() == [0, 1, 2, 3] and rows[:4].tolist() == [0, 0, 0, 0]
    assert x_first[:4].tolist() == [0, 0, 0, 1]


def test_equal_counts_do_not_make_equal_grids(rng):
    """https://github.com/Mountchicken/Union14M/issues/12: 8×32 patches, a table of 16×16."""
    tables = [two_d.sincos_2d(*grid, 8) for grid in ((8, 32), (16, 16), (32, 8))]
    assert {len(table) for table in tables} == {256}
    assert np.abs(tables[0] - tables[1]).max() > 1 and np.abs(tables[0] - tables[2]).max() > 1
    q, k = tensors(rng, dtype=torch.float64, seq=12)
    module = AxialRotaryEmbedding2D(8)
    for height, width in ((3, 4), (4, 3), (2, 6), (12, 1), (3, 4)):
        for x, result in zip((q, k), module(q, k, height, width), strict=True):
            assert_one_rounding(result, exact(x, height, width))
    centres = two_d.fixed_grid()
    assert not np.array_equal(centres(3, 4), centres(2, 6))
    table = rng.normal(size=(12, 2))
    assert np.abs(two_d.resize_grid(table, (3, 4), (2, 6)) - table).max() > 0.1


@pytest.mark.parametrize("new", [39, 43, 78])
def test_resizing_is_told_the_size_and_never_comes_out_one_short(new):
    """https://github.com/facebookresearch/dino/issues/8 and
    https://github.com/facebookresearch/dinov2/pull/378, 37 patches a side.
    """
    assert int(37 * (new / 37)) == new - 1  # what a scale factor makes of it
    assert two_d.resize_grid(np.ones((37 * 37, 1)), (37, 37), (new, 2)).shape == (2 * new, 1)
    assert two_d.resize_grid(np.ones((37, 1)), (1, 37), (1, new)).shape == (new, 1)


def test_fixing_the_names_in_mae_would_break_its_checkpoints():
    """https://github.com/facebookresearch/mae/issues/18 and .../63: the column comes first."""
    column_first, row_first = (two_d.sincos_2d(3, 3, 8, first=f) for f in ("column", "row"))
    moved = np.abs(column_first - row_first).max(axis=-1) > 1e-3
    rows, cols = two_d.grid_positions(3, 3)
    assert np.array_equal(moved, rows != cols)  # all but the diagonal, though every shape fits


def test_the_width_is_split_in_one_place_only():
    """https://github.com/huggingface/diffusers/issues/12538: two splits that differ at 64."""
    for head_dim in (4, 8, 12, 20, 64, 128):
        x = np.ones((1, head_dim))
        by_row = two_d.axial_rope_2d(x, [3], [0]) != x
        assert by_row[0].tolist() == [True] * (head_dim // 2) + [False] * (head_dim // 2)
    built, cut = 64 - 4 * (64 // 6), 64 - 2 * (64 // 3)
    assert (built, cut) == (24, 22)


# --- the text of the reference ------------------------------------------------------------------

MODULES = ("solutions.with_numpy.two_d", "solutions.with_torch.two_d")
EXERCISES = [
    two_d.grid_positions,
    two_d.sincos_2d,
    two_d.axial_rope_2d,
    two_d.mixed_rope_2d,
    two_d.resize_grid,
    two_d.fixed_grid,
    AxialRotaryEmbedding2D,
]
SIGNATURES = [
    "(height, width)",
    "(height, width, dim, base=10000.0, first='row')",
    "(x, rows, cols, base=100.0)",
    "(x, rows, cols, row_freqs, col_freqs)",
    "(table, old_hw, new_hw)",
    "()",
    "(head_dim, base=100.0)",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0 and failures == 0


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.__name__)
def test_docstring_says_all_that_a_student_needs(exercise):
    text = inspect.getdoc(exercise)
    assert text.splitlines()[0].endswith(".") and not text.splitlines()[1]
    for word in ("Shapes:", "Dtype:", "Raises:", "Units:", ">>>"):
        assert word in text, word


@pytest.mark.parametrize(
    "exercise, signature",
    list(zip(EXERCISES, SIGNATURES, strict=True)),
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_names_order_and_defaults_of_arguments_are_fixed(exercise, signature):
    bare = inspect.signature(exercise)
    parameters = [p.replace(annotation=p.empty) for p in bare.parameters.values()]
    bare = bare.replace(parameters=parameters, return_annotation=bare.empty)
    assert str(bare) == signature


def test_forward_takes_the_grid_and_no_prefix_by_default():
    names = list(inspect.signature(AxialRotaryEmbedding2D.forward).parameters.values())
    assert [p.name for p in names][1:] == ["q", "k", "height", "width", "num_prefix_tokens"]
    assert names[-1].default == 0

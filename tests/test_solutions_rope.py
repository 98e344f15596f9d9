"""The reference of the chapter `rope` against values that do not come from it.

Slow loops of the paper's formula in plain Python, published numbers and the outputs of other
projects' code (data/golden_rope.json): every student is graded against this reference, so a fault
of its own must be found here.
"""

import cmath
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

from solutions.with_numpy import rope
from solutions.with_torch import rope as torch_rope
from solutions.with_torch.rope import RotaryEmbedding
from tests.devices import DEVICES

GOLDEN = json.loads((Path(__file__).parent / "data" / "golden_rope.json").read_text())["golden"]
Q = [1, 0.5, -0.5, 2]
K = [0.5, 1, 1.5, -1]
LAYOUTS = ("interleaved", "half")
BASE = 500.0  # no default, so that a forgotten argument shows
EPS64, EPS32 = 2.0**-52, 2.0**-23


# --- the paper's formula, one number at a time --------------------------------------------------


def partners(i: int, dim: int, layout: str) -> tuple[int, int]:
    """The two coordinates of pair i."""
    return (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + dim // 2)


def slow_rotation(vector, position, base=10000.0, layout="interleaved") -> list[float]:
    """One vector at one position: RoFormer's rotation in Python floats, with math.cos."""
    dim = len(vector)
    rotated = [0.0] * dim
    for i in range(dim // 2):
        first, second = partners(i, dim, layout)
        angle = float(position) * base ** (-2 * i / dim)
        a, b = float(vector[first]), float(vector[second])
        rotated[first] = a * math.cos(angle) - b * math.sin(angle)
        rotated[second] = a * math.sin(angle) + b * math.cos(angle)
    return rotated


def slow_rope(x, positions, base=10000.0, layout="interleaved") -> np.ndarray:
    """Every vector of x by itself."""
    x = np.asarray(x, dtype=np.float64)
    positions = np.broadcast_to(np.asarray(positions, dtype=np.float64), x.shape[:-1])
    result = np.empty(x.shape)
    for index in np.ndindex(*x.shape[:-1]):
        result[index] = slow_rotation(x[index], positions[index], base, layout)
    return result


def complex_score(q, k, distance, base=10000.0) -> float:
    """The score from the distance alone: Re Σ q·conj(k)·e^{iθ·distance}, nothing is rotated."""
    dim = len(q)
    total = 0j
    for i in range(dim // 2):
        a = complex(q[2 * i], q[2 * i + 1])
        b = complex(k[2 * i], k[2 * i + 1])
        total += a * b.conjugate() * cmath.exp(1j * distance * base ** (-2 * i / dim))
    return total.real


def slow_bound(distance, dim, base=10000.0) -> float:
    """RoFormer section 3.4.3, sum by sum."""
    total = 0.0
    for j in range(1, dim // 2 + 1):
        total += abs(sum(cmath.exp(1j * distance * base ** (-2 * i / dim)) for i in range(j)))
    return total / (dim // 2)


def allowed(angle: float, scale: float = 4.0, eps: float = EPS64) -> float:
    """Sine and cosine move by as much as an angle does that was rounded a few times."""
    return 8 * scale * (eps + EPS64 * abs(angle))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20210420)


def far_positions(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Positions that are no range, far from zero, some between two tokens."""
    return rng.integers(3, 9000, shape) + rng.choice([0.0, 0.25, 0.5], shape)


# --- outputs of other projects ------------------------------------------------------------------


def golden(prefix: str) -> list:
    return [
        pytest.param(entry, id=f"{entry['id']} by {entry['source'].split()[0]}")
        for entry in GOLDEN
        if entry["id"].startswith(prefix)
    ]


def golden_arguments(entry: dict) -> tuple[list, int, str]:
    """Vector, position and layout, which the id names where the arguments do not."""
    _, layout, at = entry["id"].split(".")
    name, position = at.split("@")
    return {"q": Q, "k": K}[name], int(position), layout


def test_every_golden_entry_belongs_to_one_test():
    tested = golden("rope.half") + golden("rope.interleaved") + golden("rope.score")
    tested += golden("rope.permute.2heads_hd4") + golden("rope.inv_freq.d128.base500000.last")
    tested += golden("rope.partial")
    assert len(tested) == len(GOLDEN) == 26


@pytest.mark.parametrize("entry", golden("rope.half") + golden("rope.interleaved"))
def test_rotation_equals_what_other_projects_compute(entry):
    vector, position, layout = golden_arguments(entry)
    base = entry["args"]["base"]
    if "x" in entry["args"]:
        given = entry["args"]["x"], entry["args"]["pos"], entry["args"]["layout"]
        assert given == (vector, position, layout)
    rotated = rope.apply_rope([vector], [position], base, layout)
    np.testing.assert_allclose(rotated[0], entry["output"], rtol=0, atol=entry["tol"])

    tensor = torch.tensor(vector, dtype=torch.float32).reshape(1, 1, 1, 4)
    module = RotaryEmbedding(4, base, layout)
    for result in module(tensor, tensor, torch.tensor([position])):
        np.testing.assert_allclose(result.flatten(), entry["output"], rtol=0, atol=entry["tol"])


@pytest.mark.parametrize("entry", golden("rope.score"))
def test_score_of_the_running_example_in_both_layouts(entry):
    args = entry["args"]
    q = rope.apply_rope([args["q"]], [args["m"]], layout=args["layout"])
    k = rope.apply_rope([args["k"]], [args["n"]], layout=args["layout"])
    assert float(q[0] @ k[0]) == pytest.approx(entry["output"], abs=entry["tol"])
    other = {"half": "interleaved", "interleaved": "half"}[args["layout"]]
    mixed = rope.apply_rope([args["k"]], [args["n"]], layout=other)
    assert abs(float(q[0] @ mixed[0]) - entry["output"]) > 0.05  # the note of the entry
    if args["layout"] == "interleaved":
        scores = rope.rope_scores([args["q"]], [args["k"]], [args["m"]], [args["n"]])
        assert 2 * scores[0, 0] == pytest.approx(entry["output"], abs=entry["tol"])  # √dim = 2


@pytest.mark.parametrize("entry", golden("rope.permute"))
def test_row_order_equals_the_weight_converter_of_transformers(entry):
    weight = np.arange(8.0).reshape(8, 1)
    assert rope.interleaved_to_half(weight, 2)[:, 0].tolist() == entry["output"]


@pytest.mark.parametrize("entry", golden("rope.partial"))
def test_rotation_of_a_part_equals_what_other_projects_compute(entry):
    args = entry["args"]
    rotated = rope.apply_partial_rope(
        [args["x"]], [args["pos"]], args["rotary_dim"], args["base"], args["layout"]
    )
    np.testing.assert_allclose(rotated[0], entry["output"], rtol=0, atol=entry["tol"])


@pytest.mark.parametrize("entry", golden("rope.inv_freq"))
def test_last_frequency_of_a_long_ladder(entry):
    angle = rope.rope_angles(1, 128, 500000)[-1]
    assert angle == pytest.approx(entry["output"], abs=entry["tol"], rel=1e-13)
    angle = torch_rope.rope_angles(torch.tensor(1), 128, 500000)[-1]
    assert angle.item() == pytest.approx(entry["output"], abs=entry["tol"], rel=1e-13)


def test_worked_example_of_the_chapter():
    q, k = rope.apply_rope([Q], [5])[0], rope.apply_rope([K], [3])[0]
    assert q.round(4).tolist() == [0.7631, -0.8171, -0.5993, 1.9725]
    assert k.round(4).tolist() == [-0.6361, -0.9194, 1.5293, -0.9546]
    assert round(float(q @ k), 4) == -2.5336
    moved = rope.rope_scores([Q], [K], [7], [5])
    assert 2 * moved[0, 0] == pytest.approx(q @ k, abs=1e-14)
    at_zero = rope.rope_scores([Q], [K], [0], [3])
    assert 2 * at_zero[0, 0] == pytest.approx(complex_score(Q, K, -3), abs=1e-14)
    assert round(2 * at_zero[0, 0], 4) == -3.7696
    assert rope.rope_angles(1, 4).tolist() == [1.0, 0.01]


# --- the NumPy room against the slow loops ------------------------------------------------------


def test_rotation_in_the_plane_turns_anticlockwise():
    assert rope.rotate_2d([1.0, 0.0], math.pi / 2) == pytest.approx([0, 1], abs=1e-15)
    assert rope.rotate_2d([0.0, 1.0], math.pi / 2) == pytest.approx([-1, 0], abs=1e-15)


def test_rotation_in_the_plane_equals_multiplying_by_a_complex_number(rng):
    vector, angle = rng.normal(size=(3, 5, 2)), rng.normal(size=(3, 1)) * 10
    rotated = rope.rotate_2d(vector, angle)
    for i, j in np.ndindex(3, 5):
        turned = complex(*vector[i, j]) * cmath.exp(1j * angle[i, 0])
        assert complex(*rotated[i, j]) == pytest.approx(turned, abs=1e-14)


def test_one_vector_takes_many_angles_and_one_angle_many_vectors(rng):
    assert rope.rotate_2d([1, 0], [0.0, 1.0, 2.0]).shape == (3, 2)
    assert rope.rotate_2d(rng.normal(size=(4, 3, 2)), 0.5).shape == (4, 3, 2)
    with pytest.raises(ValueError):
        rope.rotate_2d(rng.normal(size=(4, 3, 2)), [0.0, 1.0])


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)])
def test_angles_have_the_shape_of_the_positions_and_one_axis_more(rng, shape):
    positions = far_positions(rng, *shape)
    angles = rope.rope_angles(positions, 6, BASE)
    assert angles.shape == (*shape, 3) and angles.dtype == np.float64
    for index in np.ndindex(*shape):
        expected = [positions[index] * BASE ** (-2 * i / 6) for i in range(3)]
        np.testing.assert_allclose(angles[index], expected, rtol=4 * EPS64)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float16, np.float32])
def test_angles_are_float64_for_positions_of_any_dtype(dtype):
    angles = rope.rope_angles(np.array([100, 3], dtype=dtype), 8)
    assert angles.dtype == np.float64
    assert angles[0].tolist() == pytest.approx([100, 10, 1, 0.1], rel=1e-15)


@pytest.mark.parametrize("dim", [np.uint8(8), np.int8(8), np.int64(8), 8])
def test_dim_may_be_any_kind_of_integer(dim):
    assert rope.rope_angles(1, dim).tolist() == pytest.approx([1, 0.1, 0.01, 0.001], rel=1e-15)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(5, 8), (2, 5, 6), (2, 3, 5, 10), (5, 2)])
def test_rotation_equals_the_slow_loop(rng, shape, layout):
    x = rng.normal(size=shape)
    for positions in (far_positions(rng, shape[-2]), far_positions(rng, *shape[:-1])):
        rotated = rope.apply_rope(x, positions, BASE, layout)
        expected = slow_rope(x, positions, BASE, layout)
        np.testing.assert_allclose(rotated, expected, rtol=0, atol=allowed(9000))
        assert rotated.shape == shape


def test_interleaved_is_the_default_layout_and_10000_the_default_base(rng):
    x, positions = rng.normal(size=(3, 8)), far_positions(rng, 3)
    expected = slow_rope(x, positions, 10000.0, "interleaved")
    np.testing.assert_allclose(rope.apply_rope(x, positions), expected, rtol=0, atol=allowed(9000))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotation_keeps_lengths_and_leaves_position_zero_alone(rng, layout):
    x = rng.normal(size=(5, 8))
    rotated = rope.apply_rope(x, far_positions(rng, 5), BASE, layout)
    lengths = np.linalg.norm(x, axis=-1)
    np.testing.assert_allclose(np.linalg.norm(rotated, axis=-1), lengths, rtol=1e-14)
    assert np.array_equal(rope.apply_rope(x, np.zeros(5), BASE, layout), x)


def test_scores_depend_on_the_distance_alone(rng):
    q, k = rng.normal(size=(3, 8)), rng.normal(size=(5, 8))
    q_positions, k_positions = far_positions(rng, 3), far_positions(rng, 5)
    scores = rope.rope_scores(q, k, q_positions, k_positions, BASE)
    assert scores.shape == (3, 5)
    for m, n in np.ndindex(3, 5):
        expected = complex_score(q[m], k[n], q_positions[m] - k_positions[n], BASE) / math.sqrt(8)
        assert scores[m, n] == pytest.approx(expected, abs=allowed(9000, scale=20))
    moved = rope.rope_scores(q, k, q_positions + 1234, k_positions + 1234, BASE)
    np.testing.assert_allclose(moved, scores, rtol=0, atol=allowed(9000, scale=20))


@pytest.mark.parametrize("heads, kv_heads, head_dim", [(3, 3, 6), (6, 2, 10), (2, 1, 16)])
def test_ported_weights_give_half_code_the_scores_of_interleaved_code(
    rng, heads, kv_heads, head_dim
):
    x = rng.normal(size=(5, 7))
    w_q = rng.normal(size=(heads * head_dim, 7))
    w_k = rng.normal(size=(kv_heads * head_dim, 7))
    positions = far_positions(rng, 5)

    def scores(w_q, w_k, layout):
        q = (x @ w_q.T).reshape(5, heads, head_dim).swapaxes(0, 1)
        k = (x @ w_k.T).reshape(5, kv_heads, head_dim).swapaxes(0, 1)
        q, k = (slow_rope(y, positions, BASE, layout) for y in (q, k))
        return q @ np.repeat(k, heads // kv_heads, axis=0).swapaxes(1, 2)

    before = scores(w_q, w_k, "interleaved")
    ported = rope.interleaved_to_half(w_q, heads), rope.interleaved_to_half(w_k, kv_heads)
    np.testing.assert_allclose(scores(*ported, "half"), before, rtol=0, atol=1e-10)
    assert np.abs(scores(w_q, w_k, "half") - before).max() > 0.1


def test_ported_rows_are_the_even_ones_of_each_head_and_then_its_odd_ones():
    rows = rope.interleaved_to_half(np.arange(12.0).reshape(12, 1), 2)[:, 0]
    assert rows.tolist() == [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]


@pytest.mark.parametrize("head_dim", [2, 6])
def test_porting_returns_a_copy(head_dim):
    weight = np.ones((3 * head_dim, 4))
    ported = rope.interleaved_to_half(weight, 3)
    assert not np.shares_memory(ported, weight)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotary_dim, dim", [(2, 7), (4, 10), (6, 8), (8, 8)])
def test_partial_rotation_is_a_rotation_of_the_first_coordinates(rng, rotary_dim, dim, layout):
    x, positions = rng.normal(size=(2, 3, dim)), far_positions(rng, 3)
    result = rope.apply_partial_rope(x, positions, rotary_dim, BASE, layout)
    expected = slow_rope(x[..., :rotary_dim], positions, BASE, layout)
    np.testing.assert_allclose(result[..., :rotary_dim], expected, rtol=0, atol=allowed(9000))
    assert np.array_equal(result[..., rotary_dim:], x[..., rotary_dim:])


@pytest.mark.parametrize("dim", [2, 6, 64])
def test_bound_equals_the_slow_double_sum(rng, dim):
    distances = np.array([[0.0, 1.0, -3.0], [10.5, 400.0, 2000.0]])
    bound = rope.score_bound(distances, dim, BASE)
    assert bound.shape == distances.shape and bound.dtype == np.float64
    for index in np.ndindex(*distances.shape):
        expected = slow_bound(distances[index], dim, BASE)
        assert bound[index] == pytest.approx(expected, rel=1e-11)


def test_bound_at_distance_zero_is_the_mean_of_one_to_half_the_width():
    assert rope.score_bound(0, 128) == 32.5


def test_bound_holds_for_random_scores_and_is_no_monotone_fall(rng):
    q, k = rng.normal(size=64), rng.normal(size=64)
    products = (q[0::2] + 1j * q[1::2]) * (k[0::2] - 1j * k[1::2])
    steps = np.abs(np.diff(products, append=0)).max()  # Abel: |score| ≤ max step · Σ |S_j|
    distances = np.arange(0, 200)
    bound = rope.score_bound(distances, 64) * 32 * steps
    scores = np.array([complex_score(q, k, distance) for distance in distances])
    assert (np.abs(scores) <= bound).all()
    assert (np.diff(bound) > 0).any() and bound[150] < bound[0] / 2


def test_cache_gives_every_call_its_own_tables():
    tables = rope.fixed_table_cache()
    calls = [(3, 0, 4), (3, 7, 4), (3, 0, 8), (3, 0, 4, 500.0), (3, 0, 4), (2, 0, 4), (0, 5, 4)]
    for length, offset, dim, *base in calls * 2:
        cos, sin = tables(length, offset, dim, *base)
        assert cos.shape == sin.shape == (length, dim // 2)
        assert cos.dtype == sin.dtype == np.float64
        for row, i in np.ndindex(length, dim // 2):
            angle = (offset + row) * (base[0] if base else 10000.0) ** (-2 * i / dim)
            assert cos[row, i] == pytest.approx(math.cos(angle), abs=1e-14)
            assert sin[row, i] == pytest.approx(math.sin(angle), abs=1e-14)


def test_cache_is_not_changed_by_a_caller_that_writes_into_its_tables():
    tables = rope.fixed_table_cache()
    cos, sin = tables(2, 3, 4)
    cos[:], sin[:] = 7.0, 7.0
    assert tables(2, 3, 4)[0] == pytest.approx(np.cos(rope.rope_angles([3, 4], 4)), abs=1e-15)


def test_cache_takes_base_by_name_and_shares_nothing_with_another_cache():
    first, second = rope.fixed_table_cache(), rope.fixed_table_cache()
    assert first(length=2, offset=1, dim=4, base=100.0)[1][0, 1] == pytest.approx(math.sin(0.1))
    assert first is not second


@pytest.mark.parametrize("length, offset", [(-1, 0), (2, -1), (2.0, 0), (2, 0.5)])
def test_cache_refuses_lengths_and_offsets_that_are_no_counts(length, offset):
    tables = rope.fixed_table_cache()
    tables(2, 0, 4)
    with pytest.raises((ValueError, TypeError)):
        tables(length, offset, 4)


# --- dtypes and inputs of the NumPy room --------------------------------------------------------

TRANSFORMS = {
    "rotate_2d": lambda x: rope.rotate_2d(x[..., :2], 0.5),
    "apply_rope": lambda x: rope.apply_rope(x, [5, 9, 2]),
    "apply_rope half": lambda x: rope.apply_rope(x, [5, 9, 2], layout="half"),
    "apply_partial_rope": lambda x: rope.apply_partial_rope(x, [5, 9, 2], 2),
    "rope_scores": lambda x: rope.rope_scores(x, x, [5, 9, 2], [1, 7, 3]),
    "interleaved_to_half": lambda x: rope.interleaved_to_half(x.T, 2),
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


@pytest.mark.parametrize("positions", [[True, False, True], [1j, 2, 3], ["1", "2", "3"], None])
def test_positions_that_are_no_numbers_are_refused(positions):
    x = np.ones((3, 4))
    for call in (
        lambda: rope.rope_angles(positions, 4),
        lambda: rope.apply_rope(x, positions),
        lambda: rope.apply_partial_rope(x, positions, 2),
        lambda: rope.rope_scores(x, x, positions, [0, 1, 2]),
        lambda: rope.rope_scores(x, x, [0, 1, 2], positions),
        lambda: rope.score_bound(positions, 4),
        lambda: rope.rotate_2d(x[:, :2], positions),
    ):
        with pytest.raises(TypeError, match="got dtype"):
            call()


def test_float32_angles_and_positions_do_not_make_float32_tables():
    position = np.float32(0.1)
    expected = slow_rotation(Q, float(position))
    rotated = rope.apply_rope(np.array([Q]), np.array([position]))
    assert rotated[0] == pytest.approx(expected, abs=1e-15)
    rotated = rope.rotate_2d([1.0, 0.0], position)
    assert rotated[0] == pytest.approx(math.cos(float(position)), abs=1e-15)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_empty_arrays_work(layout):
    assert rope.apply_rope(np.ones((0, 4)), [], layout=layout).shape == (0, 4)
    assert rope.apply_rope(np.ones((0, 3, 4)), [1, 2, 3], layout=layout).shape == (0, 3, 4)
    assert rope.apply_partial_rope(np.ones((0, 5)), [], 2, layout=layout).shape == (0, 5)
    assert rope.rope_scores(np.ones((0, 4)), np.ones((3, 4)), [], [1, 2, 3]).shape == (0, 3)
    assert rope.rotate_2d(np.ones((0, 2)), 1.0).shape == (0, 2)
    assert rope.score_bound([], 4).shape == (0,)
    assert rope.interleaved_to_half(np.ones((4, 0)), 2).shape == (4, 0)


def test_far_positions_lose_nothing_to_the_tables():
    for position in (131_072, 1_000_003):
        rotated = rope.apply_rope([Q], [position])
        expected = slow_rotation(Q, position)
        assert rotated[0] == pytest.approx(expected, abs=allowed(position))


# --- bad input of the NumPy room ----------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, -2, 5, 4.0, "4", None])
def test_a_width_that_is_no_positive_even_integer_is_named(dim):
    for call in (
        lambda: rope.rope_angles([1, 2], dim),
        lambda: rope.score_bound([1, 2], dim),
        lambda: rope.fixed_table_cache()(3, 0, dim),
    ):
        with pytest.raises(ValueError, match=f"positive even integer, got {dim!r}"):
            call()


@pytest.mark.parametrize("dim", [0, 1, 5])
def test_an_odd_or_empty_last_axis_is_named(dim):
    x = np.ones((3, dim))
    with pytest.raises(ValueError, match=f"got {dim}"):
        rope.apply_rope(x, [1, 2, 3])
    with pytest.raises(ValueError, match=f"got {dim}"):
        rope.rope_scores(x, x, [1, 2, 3], [1, 2, 3])


@pytest.mark.parametrize("base", [0, 0.0, -1, -10000.0, math.nan, math.inf, -math.inf])
def test_a_base_that_is_no_finite_positive_number_is_named(base):
    x = np.ones((3, 4))
    for call in (
        lambda: rope.rope_angles([1, 2], 4, base),
        lambda: rope.apply_rope(x, [1, 2, 3], base),
        lambda: rope.rope_scores(x, x, [1, 2, 3], [1, 2, 3], base),
        lambda: rope.apply_partial_rope(x, [1, 2, 3], 2, base),
        lambda: rope.score_bound([1, 2], 4, base),
        lambda: rope.fixed_table_cache()(3, 0, 4, base),
        lambda: RotaryEmbedding(4, base),
    ):
        with pytest.raises(ValueError, match=f"above 0, got {base!r}"):
            call()


@pytest.mark.parametrize("layout", ["Half", "split", "", None, 0])
def test_a_wrong_layout_is_answered_with_both_right_ones(layout):
    for call in (
        lambda: rope.apply_rope(np.ones((3, 4)), [1, 2, 3], layout=layout),
        lambda: rope.apply_partial_rope(np.ones((3, 4)), [1, 2, 3], 2, layout=layout),
        lambda: RotaryEmbedding(4, layout=layout),
    ):
        with pytest.raises(ValueError, match=f"'interleaved' or 'half', got {layout!r}"):
            call()


@pytest.mark.parametrize(
    "positions_shape", [(), (1,), (2,), (4,), (1, 3), (2, 1), (3, 2), (2, 3, 1), (1, 2, 3)]
)
def test_positions_of_any_other_shape_raise_and_never_broadcast(positions_shape):
    positions = np.ones(positions_shape)
    with pytest.raises(ValueError, match=r"x\.shape\[:-1\], got x \(2, 3, 4\) and positions"):
        rope.apply_rope(np.ones((2, 3, 4)), positions)
    with pytest.raises(ValueError, match=r"x\.shape\[:-1\]"):
        rope.apply_partial_rope(np.ones((2, 3, 4)), positions, 2)


def test_many_positions_for_one_vector_raise():
    with pytest.raises(ValueError):
        rope.apply_rope(np.ones((1, 4)), [1, 2, 3])
    with pytest.raises(ValueError):
        rope.apply_rope(np.ones((1, 3, 4)), np.ones((2, 3)))
    with pytest.raises(ValueError):
        rope.apply_rope(np.ones(4), 5)


@pytest.mark.parametrize(
    "q, k, q_positions, k_positions",
    [
        ((3, 4), (5, 6), 3, 5),
        ((3, 4), (5, 2), 3, 5),
        ((4,), (5, 4), 1, 5),
        ((2, 3, 4), (2, 5, 4), 3, 5),
        ((3, 4), (5, 4), 1, 5),
        ((3, 4), (5, 4), 3, 1),
        ((1, 4), (5, 4), 3, 5),
        ((3, 4), (5, 4), 5, 3),
    ],
)
def test_scores_refuse_shapes_that_do_not_go_together(q, k, q_positions, k_positions):
    with pytest.raises(ValueError, match="got"):
        rope.rope_scores(np.ones(q), np.ones(k), np.ones(q_positions), np.ones(k_positions))


@pytest.mark.parametrize("shape", [(), (3,), (3, 1), (2, 3), (0,)])
def test_a_plane_has_two_axes(shape):
    with pytest.raises(ValueError, match=r"shape \(\.\.\., 2\), got"):
        rope.rotate_2d(np.ones(shape), 0.5)


@pytest.mark.parametrize("num_heads", [0, -1, 3, 4, 5, 8, 12, 1.5, 2.0, "2"])
def test_heads_that_do_not_divide_the_rows_into_even_parts_raise(num_heads):
    with pytest.raises((ValueError, TypeError)):
        rope.interleaved_to_half(np.ones((12, 3)) if num_heads != 3 else np.ones((9, 3)), num_heads)


def test_heads_that_do_not_fit_are_named_with_the_rows():
    with pytest.raises(ValueError, match="divide the 12 rows of weight .* got 4"):
        rope.interleaved_to_half(np.ones((12, 3)), 4)


@pytest.mark.parametrize("shape", [(8,), (2, 4, 3), (), (0, 3)])
def test_a_weight_that_is_no_matrix_raises(shape):
    with pytest.raises(ValueError, match="weight"):
        rope.interleaved_to_half(np.ones(shape), 2)


@pytest.mark.parametrize("rotary_dim", [0, -2, 1, 3, 8, 10, 2.5])
def test_a_rotary_dim_outside_two_to_dim_or_odd_is_named(rotary_dim):
    with pytest.raises(ValueError, match=rf"in 2\.\.dim for x \(3, 7\), got {rotary_dim}"):
        rope.apply_partial_rope(np.ones((3, 7)), [1, 2, 3], rotary_dim)


# --- the torch room -----------------------------------------------------------------------------


def tensors(rng, device, dtype=torch.float32, heads=6, kv_heads=2, head_dim=8):
    q = torch.tensor(rng.normal(size=(2, heads, 5, head_dim)), dtype=dtype, device=device)
    k = torch.tensor(rng.normal(size=(2, kv_heads, 5, head_dim)), dtype=dtype, device=device)
    return q, k


def exact(x: torch.Tensor, positions, base=10000.0, layout="half") -> torch.Tensor:
    """The slow loop over x as it is, in float64; positions (seq,) or (batch, seq)."""
    positions = np.asarray(positions, dtype=np.float64)
    if positions.ndim == 2:
        positions = np.broadcast_to(positions[:, None, :], x.shape[:-1])
    return torch.tensor(slow_rope(x.detach().double().cpu().numpy(), positions, base, layout))


def assert_one_rounding(result: torch.Tensor, expected: torch.Tensor) -> None:
    """`result` is within half a unit of its dtype of the exact value, plus float32 arithmetic."""
    error = (result.detach().double().cpu() - expected).abs()
    half_unit = torch.finfo(result.dtype).eps / 2 if result.dtype != torch.float32 else 0.0
    half_unit = 0.0 if result.dtype == torch.float64 else half_unit
    arithmetic = 16 * (EPS64 * 1e4 if result.dtype == torch.float64 else EPS32)
    smallest = torch.finfo(result.dtype).tiny
    assert (error <= half_unit * expected.abs() + arithmetic + smallest).all(), error.max()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("per_row", [False, True], ids=["shared positions", "positions per row"])
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str
)
def test_module_equals_the_slow_loop_with_grouped_keys(rng, device, layout, per_row, dtype):
    q, k = tensors(rng, device, dtype)
    positions = far_positions(rng, *((2, 5) if per_row else (5,)))
    module = RotaryEmbedding(8, BASE, layout)
    results = module(q, k, torch.tensor(positions, device=device))
    for x, result in zip((q, k), results, strict=True):
        assert result.dtype == x.dtype and result.device == x.device and result.shape == x.shape
        assert_one_rounding(result, exact(x, positions, BASE, layout))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_module_is_the_twin_of_the_numpy_function(rng, layout):
    q, k = tensors(rng, "cpu", torch.float64)
    positions = far_positions(rng, 5)
    for x, result in zip(
        (q, k), RotaryEmbedding(8, BASE, layout)(q, k, torch.tensor(positions)), strict=True
    ):
        twin = rope.apply_rope(x.numpy(), positions, BASE, layout)
        np.testing.assert_allclose(result.numpy(), twin, rtol=0, atol=allowed(9000))


def test_half_is_the_modules_default_layout(rng):
    q, k = tensors(rng, "cpu")
    positions = torch.arange(7, 12)
    default = RotaryEmbedding(8)(q, k, positions)
    stated = RotaryEmbedding(8, 10000.0, "half")(q, k, positions)
    assert all(torch.equal(a, b) for a, b in zip(default, stated, strict=True))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32, torch.bfloat16])
def test_positions_of_any_number_dtype_give_exact_tables(rng, dtype):
    q, k = tensors(rng, "cpu")
    positions = torch.tensor([3, 200, 7, 128, 0], dtype=dtype)
    for x, result in zip((q, k), RotaryEmbedding(8)(q, k, positions), strict=True):
        assert_one_rounding(result, exact(x, positions.double().numpy()))


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
    q, k = tensors(rng, "cpu")
    positions = torch.tensor([1, 257, 1857, 32_001, 131_071])
    module = RotaryEmbedding(8)
    before = module(q, k, positions)
    cast = casts()[name](module)
    cast = cast["rope"] if isinstance(cast, torch.nn.ModuleDict) else cast
    after = cast(q, k, positions)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("x_dtype", [torch.float32, torch.bfloat16], ids=str)
def test_autocast_changes_no_bit(rng, device, dtype, x_dtype):
    q, k = tensors(rng, device, x_dtype)
    positions = torch.tensor([1, 257, 1857, 32_001, 131_071], device=device)
    module = RotaryEmbedding(8)
    before = module(q, k, positions)
    with torch.autocast(device, dtype=dtype):
        after = module(q, k, positions)
    for a, b in zip(before, after, strict=True):
        assert a.dtype == b.dtype == x_dtype
        assert torch.equal(a, b)


@pytest.mark.parametrize("default", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_the_default_dtype_of_torch_changes_no_bit(rng, default):
    q, k = tensors(rng, "cpu")
    positions = torch.tensor([1, 257, 1857, 32_001, 131_071])
    before = RotaryEmbedding(8)(q, k, positions)
    torch.set_default_dtype(default)
    try:
        after = RotaryEmbedding(8)(q, k, positions)
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("device", DEVICES)
def test_tables_are_right_where_float32_angles_are_wrong(device):
    positions = torch.tensor([1857, 4099, 32_771, 131_101], device=device)
    angles = torch_rope.rope_angles(positions, 32)
    assert angles.dtype == torch.float64
    for row, position in enumerate(positions.tolist()):
        for i in range(16):
            exact_cosine = math.cos(position * 10000.0 ** (-2 * i / 32))
            assert angles[row, i].cos().item() == pytest.approx(exact_cosine, abs=1e-10)
    float32 = torch.cos(angles.float())
    assert (float32.double() - angles.cos()).abs().max() > 1e-4  # so the test above can fail


class DtypesSeen(TorchDispatchMode):
    """Records the dtype of every tensor that an operation makes."""

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
    q = torch.ones(2, 6, 5, 8, device="meta")
    with DtypesSeen() as seen:
        results = RotaryEmbedding(8)(q, q, torch.arange(5, device="meta"))
    assert all(result.dtype == torch.float32 for result in results)
    assert torch.float32 in seen.dtypes and torch.float64 not in seen.dtypes
    with DtypesSeen() as seen:  # positions left on the CPU, as float64
        RotaryEmbedding(8)(q, q, torch.arange(5, dtype=torch.float64))
    assert torch.float32 in seen.dtypes and torch.float64 not in seen.dtypes


@pytest.mark.parametrize("device", DEVICES)
def test_positions_may_stay_on_the_cpu(rng, device):
    q, k = tensors(rng, device)
    here = RotaryEmbedding(8)(q, k, torch.arange(5, 10))
    there = RotaryEmbedding(8)(q, k, torch.arange(5, 10, device=device))
    for a, b in zip(here, there, strict=True):
        torch.testing.assert_close(a, b)


def test_earlier_calls_leave_no_trace(rng):
    q, k = tensors(rng, "cpu")
    module = RotaryEmbedding(8)
    first = module(q, k, torch.arange(5))
    module(q.double(), k.double(), torch.arange(5) + 9000)
    module(q[:, :, :2], k[:, :, :2], torch.tensor([4, 3]))
    module(q.bfloat16(), k.bfloat16(), torch.arange(5))
    again = module(q, k, torch.arange(5))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_module_stores_nothing():
    module = RotaryEmbedding(8)
    assert len(module.state_dict()) == 0
    assert not list(module.parameters()) and not list(module.buffers())
    module.load_state_dict({})


def test_inputs_of_the_module_are_not_changed(rng):
    q, k = tensors(rng, "cpu")
    positions = torch.arange(5)
    before = q.clone(), k.clone(), positions.clone()
    for result in RotaryEmbedding(8)(q, k, positions):
        result.zero_()
    assert all(torch.equal(a, b) for a, b in zip((q, k, positions), before, strict=True))


def test_gradients_rotate_back(rng):
    q, k = (x.double().requires_grad_() for x in tensors(rng, "cpu"))
    positions = torch.tensor([5, 1, 700, 3, 9])
    q_rotated, k_rotated = RotaryEmbedding(8)(q, k, positions)
    (q_rotated.square().sum() + k_rotated.square().sum()).backward()
    torch.testing.assert_close(q.grad, 2 * q.detach())  # a rotation keeps |q|², whose slope is 2q
    torch.testing.assert_close(k.grad, 2 * k.detach())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_module_compiles_into_one_graph(rng, layout):
    q, k = tensors(rng, "cpu")
    module = RotaryEmbedding(8, BASE, layout)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for positions in (torch.arange(5) + 300, torch.arange(10).reshape(2, 5)):
        for a, b in zip(compiled(q, k, positions), module(q, k, positions), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_empty_sequences_and_batches_work():
    module = RotaryEmbedding(8)
    q = torch.ones(2, 6, 0, 8)
    assert module(q, q, torch.arange(0))[0].shape == (2, 6, 0, 8)
    q = torch.ones(0, 6, 5, 8)
    assert module(q, q, torch.arange(5))[0].shape == (0, 6, 5, 8)


@pytest.mark.parametrize("head_dim", [0, -2, 5, 4.0, "4", None])
def test_module_refuses_a_head_dim_at_construction(head_dim):
    with pytest.raises(ValueError, match=f"positive even integer, got {head_dim!r}"):
        RotaryEmbedding(head_dim)


@pytest.mark.parametrize("shape", [(), (1,), (2,), (4,), (1, 5), (2, 1), (5, 2), (2, 6, 5)])
def test_module_refuses_positions_of_any_other_shape(rng, shape):
    q, k = tensors(rng, "cpu")
    with pytest.raises(ValueError, match=r"positions must be \(5,\) or \(2, 5\), got"):
        RotaryEmbedding(8)(q, k, torch.ones(shape))


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64])
def test_module_refuses_positions_that_are_no_numbers(rng, dtype):
    q, k = tensors(rng, "cpu")
    with pytest.raises(ValueError, match=f"positions must be integers or floats, got {dtype}"):
        RotaryEmbedding(8)(q, k, torch.ones(5, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_module_refuses_inputs_that_are_not_floating(dtype):
    x, y = torch.ones(2, 6, 5, 8), torch.ones(2, 6, 5, 8, dtype=dtype)
    for name, q, k in (("q", y, x), ("k", x, y)):
        with pytest.raises(ValueError, match=f"{name} must be floating"):
            RotaryEmbedding(8)(q, k, torch.arange(5))


@pytest.mark.parametrize(
    "q, k",
    [
        ((2, 6, 5, 6), (2, 6, 5, 6)),
        ((2, 6, 5, 8), (2, 6, 5, 6)),
        ((6, 5, 8), (6, 5, 8)),
        ((2, 6, 5, 8), (2, 6, 1, 8)),
        ((2, 6, 1, 8), (2, 6, 5, 8)),
        ((2, 6, 5, 8), (1, 6, 5, 8)),
        ((2, 6, 5, 8), (2, 4, 5, 8)),
        ((2, 6, 5, 8), (2, 12, 5, 8)),
        ((2, 6, 5, 8), (2, 0, 5, 8)),
    ],
)
def test_module_refuses_shapes_that_do_not_go_together(q, k):
    with pytest.raises(ValueError, match="got"):
        RotaryEmbedding(8)(torch.ones(q), torch.ones(k), torch.arange(5))


# --- the text of the reference ------------------------------------------------------------------

MODULES = ("solutions.with_numpy.rope", "solutions.with_torch.rope")
EXERCISES = [
    *(
        getattr(rope, name)
        for name in (
            "rotate_2d",
            "rope_angles",
            "apply_rope",
            "rope_scores",
            "interleaved_to_half",
            "apply_partial_rope",
            "score_bound",
            "fixed_table_cache",
        )
    ),
    RotaryEmbedding,
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0 and failures == 0


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.__name__)
def test_docstring_says_all_that_a_student_needs(exercise):
    text = inspect.getdoc(exercise)
    assert text.splitlines()[0].endswith(".") and not text.splitlines()[1]
    for word in ("Shapes:", "Dtype:", "Raises:", ">>>"):
        assert word in text, word


@pytest.mark.parametrize(
    "exercise, signature",
    list(
        zip(
            EXERCISES,
            [
                "(vector, angle)",
                "(positions, dim, base=10000.0)",
                "(x, positions, base=10000.0, layout='interleaved')",
                "(q, k, q_positions, k_positions, base=10000.0)",
                "(weight, num_heads)",
                "(x, positions, rotary_dim, base=10000.0, layout='interleaved')",
                "(distances, dim, base=10000.0)",
                "()",
                "(head_dim, base=10000.0, layout='half')",
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

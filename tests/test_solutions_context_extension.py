"""The reference of the chapter `context_extension` against values that do not come from it.

Slow loops in plain Python that find the ends of YaRN's ramp by counting turns, published ladders
(data/golden_context_extension.json), and the faults that real projects shipped: every student is
graded against this reference, so a fault of its own must be found here.
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

from solutions.with_numpy import context_extension as ext
from solutions.with_numpy.rope import apply_rope
from solutions.with_torch import context_extension as torch_ext
from solutions.with_torch.context_extension import ScaledRotaryEmbedding
from solutions.with_torch.rope import RotaryEmbedding
from tests.devices import DEVICES

DATA = Path(__file__).parent / "data" / "golden_context_extension.json"
GOLDEN = json.loads(DATA.read_text())["golden"]
Q = [1, 0.5, -0.5, 2]
K = [0.5, 1, 1.5, -1]
SCALINGS = ("linear", "ntk", "yarn", "llama3")
BASE, FACTOR, LENGTH = 700.0, 3.5, 300  # no defaults, so that a forgotten argument shows
EPS64, EPS32 = 2.0**-52, 2.0**-23


# --- the formulas, one pair at a time -----------------------------------------------------------


def theta(i: float, dim: int, base: float) -> float:
    return math.exp(-2 * i / dim * math.log(base))


def plain(dim: int, base: float) -> list[float]:
    return [theta(i, dim, base) for i in range(dim // 2)]


def turns(i: float, dim: int, base: float, length: float) -> float:
    """How often pair i, which may lie between two pairs, turns in `length` tokens."""
    return length * theta(i, dim, base) / (2 * math.pi)


def pair_that_turns(beta: float, dim: int, base: float, length: float) -> float:
    """Where on the ladder a pair would make beta turns: found by halving, not by a formula."""
    fast, slow = -1000.0, 1000.0
    for _ in range(200):
        middle = (fast + slow) / 2
        fast, slow = (middle, slow) if turns(middle, dim, base, length) > beta else (fast, middle)
    return (fast + slow) / 2


def slow_yarn(dim, base, factor, length, beta_fast=32.0, beta_slow=1.0, truncate=True):
    low = pair_that_turns(beta_fast, dim, base, length)
    high = pair_that_turns(beta_slow, dim, base, length)
    if truncate:
        low, high = low // 1, -(-high // 1)
    low, high = max(low, 0), min(high, dim - 1)
    result = []
    for i, kept in enumerate(plain(dim, base)):
        if i <= low:
            result.append(kept)
        elif i >= high:
            result.append(kept / factor)
        else:
            share = (i - low) / (high - low)
            result.append(kept + share * (kept / factor - kept))
    return result


def slow_llama3(dim, base, factor, length, low=1.0, high=4.0):
    result = []
    for i, kept in enumerate(plain(dim, base)):
        n = turns(i, dim, base, length)
        if n < low:
            result.append(kept / factor)
        elif n > high:
            result.append(kept)
        else:
            result.append(((high - n) * kept / factor + (n - low) * kept) / (high - low))
    return result


def slow_dynamic(dim, base, factor, original, length):
    """What the formula is for: pair dim/2 − 1 is slowed by exactly the stretch."""
    if length <= original:
        return plain(dim, base)
    stretch = 1 + factor * (length - original) / original
    slowest = theta(dim / 2 - 1, dim, base) / stretch
    return [slowest ** (i / (dim / 2 - 1)) for i in range(dim // 2)]


def slow_module(scaling, dim, base, factor, length) -> tuple[list[float], float]:
    """Frequencies and strength of one scaling."""
    if scaling == "linear":
        return [f / factor for f in plain(dim, base)], 1.0
    if scaling == "ntk":  # the slowest pair is slowed by the factor, the others share it out
        slowest = theta(dim / 2 - 1, dim, base) / factor
        return [slowest ** (i / (dim / 2 - 1)) for i in range(dim // 2)], 1.0
    if scaling == "yarn":
        return slow_yarn(dim, base, factor, length), 1 + max(math.log(factor), 0) / 10
    return slow_llama3(dim, base, factor, length), 1.0


def slow_turn(x: np.ndarray, positions: np.ndarray, frequencies, strength: float) -> np.ndarray:
    """x (batch, heads, seq, dim) in the half layout, one number at a time."""
    result = np.empty(x.shape)
    half = x.shape[-1] // 2
    for b, h, t, i in np.ndindex(*x.shape[:3], half):
        angle = float(positions[b, t]) * frequencies[i]
        c, s = strength * math.cos(angle), strength * math.sin(angle)
        first, second = float(x[b, h, t, i]), float(x[b, h, t, i + half])
        result[b, h, t, i] = first * c - second * s
        result[b, h, t, i + half] = first * s + second * c
    return result


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20230831)


def close(ladder, expected, rel=1e-12) -> None:
    assert ladder.dtype == np.float64 and ladder.shape == (len(expected),)
    np.testing.assert_allclose(ladder, expected, rtol=rel, atol=0)


# --- outputs of other projects ------------------------------------------------------------------


def golden(prefix: str) -> list:
    return [
        pytest.param(entry, id=f"{entry['id']} by {entry['source'].split()[0]}")
        for entry in GOLDEN
        if entry["id"].startswith(prefix)
    ]


def test_every_golden_entry_belongs_to_one_test():
    kinds = ("ext.yarn", "ext.llama3", "ext.ntk", "ext.dynamic", "ext.pi", "ext.longrope")
    assert sum(len(golden(kind)) for kind in kinds) == len(GOLDEN) == 15


def ladder_of(scaling: str, *inputs) -> np.ndarray:
    return torch_ext.scaled_frequencies(inputs[0], inputs[1], scaling, *inputs[2:]).numpy()


@pytest.mark.parametrize("entry", golden("ext.yarn"))
def test_yarn_equals_two_published_codes(entry):
    assert "attention_factor=1.138629436111989" in entry["note"] or "1.1386" in entry["note"]
    for ladder in (
        ext.yarn_frequencies(64, 10_000, 4, 2048),
        ladder_of("yarn", 64, 10_000, 4, 2048),
        np.array(slow_yarn(64, 10_000, 4, 2048)),
    ):
        np.testing.assert_allclose(ladder, entry["output"], rtol=1e-6, atol=entry["tol"])
    assert ext.yarn_attention_factor(4) == pytest.approx(1.138629436111989, abs=1e-15)
    assert torch_ext.yarn_ends(64, 10_000, 2048) == (8, 21)  # the note of the entry


@pytest.mark.parametrize("entry", golden("ext.llama3"))
def test_llama3_equals_three_published_codes(entry):
    for ladder in (
        ext.llama3_frequencies(128, 500_000, 8.0, 8192),
        ladder_of("llama3", 128, 500_000, 8.0, 8192),
        np.array(slow_llama3(128, 500_000, 8.0, 8192)),
    ):
        np.testing.assert_allclose(ladder, entry["output"], rtol=1e-6, atol=entry["tol"])


@pytest.mark.parametrize("entry", golden("ext.ntk"))
def test_ntk_equals_two_published_codes(entry):
    base = ext.ntk_base(10_000, 4, 64)
    for ladder in (np.array(plain(64, base)), ladder_of("ntk", 64, 10_000, 4, 2048)):
        np.testing.assert_allclose(ladder, entry["output"], rtol=1e-6, atol=entry["tol"])
    assert plain(64, base)[31] == pytest.approx(plain(64, 10_000)[31] / 4, rel=1e-13)


@pytest.mark.parametrize("entry", golden("ext.dynamic"))
def test_dynamic_ntk_equals_published_codes_below_at_and_beyond_the_trained_length(entry):
    length = int(entry["id"].split(".L")[1])
    ladder = ext.dynamic_ntk_frequencies(64, 10_000, 2, 2048, length)
    np.testing.assert_allclose(ladder, entry["output"], rtol=1e-6, atol=entry["tol"])


@pytest.mark.parametrize("entry", golden("ext.longrope"))
def test_longrope_equals_transformers_at_and_beyond_the_trained_length(entry):
    args = entry["args"]
    ladder = ext.longrope_frequencies(
        args["dim"], args["base"], args["short"], args["long"], args["original"], args["seq_len"]
    )
    np.testing.assert_allclose(ladder, entry["output"], rtol=1e-6, atol=0)


@pytest.mark.parametrize("entry", golden("ext.pi"))
def test_position_interpolation_equals_linear_scaling_of_transformers(entry):
    position = int(entry["id"].split("@")[1].split(".")[0])
    places = ext.interpolate_positions([position], 2048, 8192)
    by_numpy = apply_rope([Q], places, layout="half")[0]
    np.testing.assert_allclose(by_numpy, entry["output"], rtol=0, atol=entry["tol"])
    x = torch.tensor(Q, dtype=torch.float32).reshape(1, 1, 1, 4)
    module = ScaledRotaryEmbedding(4, scaling="linear", factor=4.0)
    for result in module(x, x, torch.tensor([position])):
        np.testing.assert_allclose(result.flatten(), entry["output"], rtol=0, atol=entry["tol"])


def test_worked_values_of_the_sources():
    assert ext.interpolate_positions(8000, 2048, 8192) == 2000  # a factor of 4
    assert ext.interpolate_positions(8000, 4096, 32_768) == 1000  # a factor of 8
    assert ext.interpolate_positions([3], 2048, 8192).tolist() == [0.75]
    assert round(ext.ntk_base(10_000, 4, 64), 1) == 41_829.4
    assert ext.ntk_base(100, 4, 4) == pytest.approx(1600, rel=1e-15)
    assert round(ext.yarn_attention_factor(4), 4) == 1.1386
    assert round(ext.yarn_attention_factor(32), 4) == 1.3466


# --- the NumPy room against the slow loops ------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (4,), (2, 5), (3, 2, 4), (0,)])
@pytest.mark.parametrize("trained, target", [(700, 1100), (300, 301), (5, 900), (400, 400), (9, 3)])
def test_positions_are_squeezed_by_the_ratio_of_the_lengths(rng, shape, trained, target):
    positions = rng.integers(-20, 5000, shape) + rng.choice([0.0, 0.5, 0.125], shape)
    result = ext.interpolate_positions(positions, trained, target)
    assert np.shape(result) == shape and result.dtype == np.float64
    for index in np.ndindex(*shape):
        expected = positions[index] * (trained / target if target > trained else 1)
        assert result[index] == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("dim", [4, 6, 10, 128])
@pytest.mark.parametrize("factor", [1, 1.5, 4, 100, 0.5])
def test_the_new_base_slows_the_slowest_pair_by_the_factor_and_the_fastest_not_at_all(dim, factor):
    before, after = plain(dim, BASE), plain(dim, ext.ntk_base(BASE, factor, dim))
    assert after[0] == before[0] == 1
    assert before[-1] / after[-1] == pytest.approx(factor, rel=1e-12)
    slower = np.array(before) / after
    steps = np.diff(slower)
    assert (steps > 0).all() if factor > 1 else (steps < 1e-12).all()


@pytest.mark.parametrize("dim", [4, 6, 22, 128])
@pytest.mark.parametrize("length", [0, 1, 299, 300, 301, 450, 600, 40_000])
def test_dynamic_ntk_equals_the_slow_loop(dim, length):
    ladder = ext.dynamic_ntk_frequencies(dim, BASE, FACTOR, LENGTH, length)
    close(ladder, slow_dynamic(dim, BASE, FACTOR, LENGTH, length))


def test_dynamic_ntk_starts_without_a_jump_and_reaches_the_factor():
    before = ext.dynamic_ntk_frequencies(64, 1e4, 2, 100_000, 100_000)
    after = ext.dynamic_ntk_frequencies(64, 1e4, 2, 100_000, 100_001)
    assert np.abs(before / after - 1).max() < 3e-5
    static = plain(
        64, ext.ntk_base(1e4, 3.0, 64)
    )  # at twice the length a factor of 2 stretches by 3
    close(ext.dynamic_ntk_frequencies(64, 1e4, 2, 1000, 2000), static)


YARNS = [
    (64, 10_000.0, 4.0, 2048),
    (48, 5000.0, FACTOR, 3777),
    (128, 500_000.0, 32.0, 8192),
    (32, 500.0, 5.0, 8192),  # the high end is beyond the last pair, below dim − 1
    (32, 10_000.0, 5.0, 128),  # the low end is below 0
    (2, 10_000.0, 3.0, 2048),
    (6, 10_000.0, 8.0, 4096),
    (22, 900.0, 0.5, 700),
]


@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize("betas", [(32.0, 1.0), (20.0, 2.5), (60.0, 0.7)])
@pytest.mark.parametrize("inputs", YARNS)
def test_yarn_equals_the_slow_loop(inputs, betas, truncate):
    ladder = ext.yarn_frequencies(*inputs, *betas, truncate=truncate)
    close(ladder, slow_yarn(*inputs, *betas, truncate))


def test_yarn_stops_its_ramp_at_dim_minus_one():
    inputs = (8, 10.0, 5.0, 12_000, 1000.0, 0.25)
    assert pair_that_turns(0.25, 8, 10.0, 12_000) > 7
    for truncate in (True, False):
        close(ext.yarn_frequencies(*inputs, truncate), slow_yarn(*inputs, truncate))
    ladder = ext.yarn_frequencies(*inputs) / plain(8, 10.0)
    assert ladder[3] == pytest.approx(1 - (3 - 1) / (7 - 1) * (1 - 1 / 5), rel=1e-12)


@pytest.mark.parametrize("beta", [4.3, 11.7])
def test_equal_ends_make_a_step(beta):
    ladder = ext.yarn_frequencies(24, 5000.0, 4.0, 4096, beta, beta, truncate=False)
    fast = np.array([turns(i, 24, 5000.0, 4096) > beta for i in range(12)])
    assert 0 < fast.sum() < 12
    close(ladder, np.where(fast, plain(24, 5000.0), np.array(plain(24, 5000.0)) / 4))
    assert ext.yarn_frequencies(2, 100.0, 4.0, 32_768).tolist() == [1.0]  # both ends at dim − 1


@pytest.mark.parametrize("inputs", YARNS)
def test_yarn_by_a_factor_of_one_is_the_plain_ladder(inputs):
    dim, base, _, length = inputs
    close(ext.yarn_frequencies(dim, base, 1.0, length), plain(dim, base))


def test_yarn_lies_between_interpolation_and_nothing_and_stretches_more_and_more():
    slower = np.array(plain(64, 1e4)) / ext.yarn_frequencies(64, 1e4, 4, 2048)
    assert slower[0] == 1 and slower[-1] == pytest.approx(4, rel=1e-14)
    assert (np.diff(slower) >= -1e-14).all()
    assert slower[:9] == pytest.approx(1, rel=1e-14) and slower[21:] == pytest.approx(4, rel=1e-14)


@pytest.mark.parametrize("factor", [1.0, 1, 0.5, 1e-9])
def test_attention_factor_is_one_where_nothing_is_stretched(factor):
    assert ext.yarn_attention_factor(factor) == 1


@pytest.mark.parametrize("factor", [1.001, 2, 40, 12_345.6])
def test_attention_factor_is_a_tenth_of_the_logarithm_above_one(factor):
    tenth = (ext.yarn_attention_factor(factor) - 1) * 10
    assert math.exp(tenth) == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize("limits", [(1.0, 4.0), (2.0, 16.0), (0.5, 3.0), (1, 32)])
@pytest.mark.parametrize(
    "inputs",
    [
        (128, 500_000.0, 8.0, 8192),
        (64, 10_000.0, 32.0, 1000),
        (6, 10_000.0, FACTOR, 100),
        (2, 10_000.0, 8.0, 10),
        (30, 10_000.0, 8.0, 4),  # all divided
        (18, 10_000.0, 8.0, 10_000_000),  # all kept
        (22, BASE, 0.5, LENGTH),
    ],
)
def test_llama3_equals_the_slow_loop(inputs, limits):
    close(ext.llama3_frequencies(*inputs, *limits), slow_llama3(*inputs, *limits), rel=1e-11)


def test_llama3_bands_join_without_a_jump():
    length = 2 * math.pi * np.geomspace(0.99, 4.04, 2001)  # one pair, moved through the band
    kept = np.array([ext.llama3_frequencies(2, 1e4, 8.0, n)[0] for n in length])
    assert kept[0] == 1 / 8 and kept[-1] == 1
    assert (np.diff(kept) >= -1e-15).all() and np.diff(kept).max() < 1e-3


def test_llama3_with_equal_limits_is_a_step():
    ladder = ext.llama3_frequencies(64, 1e4, 8.0, 2048, 3.0, 3.0)
    close(ladder, slow_llama3(64, 1e4, 8.0, 2048, 3.0, 3.0))
    assert not np.isnan(ladder).any()


@pytest.mark.parametrize("dim", [2, 6, 64])
@pytest.mark.parametrize("length", [0, 299, 300, 301, 90_000])
def test_longrope_divides_each_pair_by_its_own_factor(rng, dim, length):
    short, long = rng.uniform(1, 2, dim // 2), rng.uniform(3, 60, dim // 2)
    ladder = ext.longrope_frequencies(dim, BASE, short, long, LENGTH, length)
    chosen = long if length > LENGTH else short
    close(ladder, [f / c for f, c in zip(plain(dim, BASE), chosen, strict=True)])


def test_longrope_takes_lists_and_factors_of_any_dtype():
    for dtype in (np.int64, np.uint8, np.float16, np.float32):
        sets = np.array([[1, 2], [3, 8]], dtype=dtype)
        close(ext.longrope_frequencies(4, 1e4, *sets, 100, 101), [1 / 3, 0.01 / 8])
    close(ext.longrope_frequencies(4, 1e4, [1, 2], (3, 8), 100, 100), [1, 0.005])


@pytest.mark.parametrize("low, high", [(2, 7), (0, 1), (1.5, 6.25), (3, 15), (20, 30), (0.3, 0.7)])
def test_the_ramp_equals_the_slow_loop(rng, low, high):
    frequencies = rng.uniform(0.01, 1, 9)
    blended = ext.fixed_yarn_ramp()(frequencies, FACTOR, low, high)
    for i, f in enumerate(frequencies):
        share = min(max((i - low) / (high - low), 0), 1)
        assert blended[i] == pytest.approx((1 - share) * f + share * f / FACTOR, rel=1e-14)


@pytest.mark.parametrize("end", [0, 3, 8])
def test_the_ramp_with_equal_ends_keeps_the_pair_at_the_end(rng, end):
    frequencies = rng.uniform(0.01, 1, 9)
    blended = ext.fixed_yarn_ramp()(frequencies, FACTOR, end, end)
    np.testing.assert_array_equal(blended[: end + 1], frequencies[: end + 1])
    np.testing.assert_allclose(blended[end + 1 :], frequencies[end + 1 :] / FACTOR, rtol=1e-15)


def test_the_ramp_is_what_yarn_does():
    blended = ext.fixed_yarn_ramp()(plain(64, 1e4), 4.0, 8, 21)
    close(blended, ext.yarn_frequencies(64, 1e4, 4.0, 2048))


# --- dtypes and inputs of the NumPy room --------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16, np.float32])
def test_positions_of_any_dtype_become_float64_also_when_nothing_is_squeezed(dtype):
    positions = np.array([3, 100, 7], dtype=dtype)
    for lengths in ((2048, 8192), (8192, 2048)):
        result = ext.interpolate_positions(positions, *lengths)
        assert result.dtype == np.float64
        result[:] = 0
        assert positions.tolist() == [3, 100, 7]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_ramp_keeps_a_floating_dtype_and_rounds_once(rng, dtype):
    frequencies = rng.uniform(0.01, 1, 9).astype(dtype)
    before = frequencies.copy()
    blended = ext.fixed_yarn_ramp()(frequencies, FACTOR, 2, 7)
    exact = ext.fixed_yarn_ramp()(frequencies.astype(np.float64), FACTOR, 2, 7)
    assert blended.dtype == dtype and np.array_equal(blended, exact.astype(dtype))
    blended[:] = 0
    assert np.array_equal(frequencies, before)


def test_the_ramp_turns_integers_into_float64_and_takes_views():
    blended = ext.fixed_yarn_ramp()(np.array([9, 9, 9, 9, 9], dtype=np.int32), 2, 1, 3)
    assert blended.dtype == np.float64 and blended.tolist() == [9, 9, 6.75, 4.5, 4.5]
    wide = np.arange(1.0, 13.0)
    result = ext.fixed_yarn_ramp()(wide[::-2], 2.0, 1, 3)
    assert result.tolist() == [12, 10, 6, 3, 2, 1]
    assert ext.fixed_yarn_ramp()([], 2.0, 1, 3).shape == (0,)


def test_noncontiguous_positions_and_factors_work(rng):
    positions = np.arange(40.0).reshape(5, 8)[::2, ::-3]
    assert np.array_equal(ext.interpolate_positions(positions, 4, 8), positions / 2)
    factors = rng.uniform(1, 9, (2, 8))[:, ::2]
    close(ext.longrope_frequencies(8, BASE, *factors, 9, 10), plain(8, BASE) / factors[1])


@pytest.mark.parametrize("integer", [np.int64, np.uint8, int])
def test_dim_may_be_any_kind_of_integer(integer):
    dim = integer(8)
    close(ext.yarn_frequencies(dim, 1e4, 4, 2048), slow_yarn(8, 1e4, 4, 2048))
    close(ext.llama3_frequencies(dim, 1e4, 4, 2048), slow_llama3(8, 1e4, 4, 2048))
    close(ext.dynamic_ntk_frequencies(dim, 1e4, 4, 20, 90), slow_dynamic(8, 1e4, 4, 20, 90))
    assert ext.ntk_base(16, 8, dim) == pytest.approx(16 * 8 ** (4 / 3), rel=1e-14)


# --- bad input of the NumPy room ----------------------------------------------------------------

LADDERS = {
    "dynamic": lambda dim=8, base=90.0, factor=2.0, original=100: ext.dynamic_ntk_frequencies(
        dim, base, factor, original, 300
    ),
    "dynamic, a short text": lambda dim=8, base=90.0, factor=2.0, original=100: (
        ext.dynamic_ntk_frequencies(dim, base, factor, original, 50 if original > 50 else 200)
    ),
    "yarn": lambda dim=8, base=90.0, factor=2.0, original=100: ext.yarn_frequencies(
        dim, base, factor, original
    ),
    "llama3": lambda dim=8, base=90.0, factor=2.0, original=100: ext.llama3_frequencies(
        dim, base, factor, original
    ),
    "longrope": lambda dim=8, base=90.0, factor=2.0, original=100: ext.longrope_frequencies(
        dim, base, [factor] * 4, [factor] * 4, original, 50
    ),
    "ntk": lambda dim=8, base=90.0, factor=2.0, original=100: ext.ntk_base(base, factor, dim),
}


@pytest.mark.parametrize("name", LADDERS)
@pytest.mark.parametrize("dim", [0, -6, 13, 8.0, "8", None])
def test_a_width_without_pairs_is_named(name, dim):
    with pytest.raises(ValueError, match=f"positive even integer, got {dim!r}"):
        LADDERS[name](dim=dim)


@pytest.mark.parametrize("name", LADDERS)
@pytest.mark.parametrize("base", [0, 0.0, -40.0, math.nan, math.inf])
def test_a_base_that_is_no_finite_positive_number_is_named(name, base):
    with pytest.raises(ValueError, match=f"above 0, got {base!r}"):
        LADDERS[name](base=base)


@pytest.mark.parametrize("name", LADDERS)
@pytest.mark.parametrize("factor", [0, -2.0, math.nan, math.inf])
def test_a_factor_that_is_no_finite_positive_number_is_refused(name, factor):
    with pytest.raises(ValueError, match="must be finite and above 0, got"):
        LADDERS[name](factor=factor)


@pytest.mark.parametrize("name", [name for name in LADDERS if name != "ntk"])
@pytest.mark.parametrize("original", [0, -100, math.nan])
def test_a_trained_length_that_is_not_above_zero_is_named(name, original):
    with pytest.raises(ValueError, match=f"original_length must be finite .* got {original!r}"):
        LADDERS[name](original=original)


def test_the_attention_factor_and_the_ramp_refuse_factors_too():
    for factor in (0, -1.0, math.nan):
        with pytest.raises(ValueError, match=f"factor must be finite and above 0, got {factor!r}"):
            ext.yarn_attention_factor(factor)
        with pytest.raises(ValueError, match=f"factor must be finite and above 0, got {factor!r}"):
            ext.fixed_yarn_ramp()([1.0, 0.5], factor, 0, 1)


@pytest.mark.parametrize("lengths", [(0, 5), (5, 0), (-4, 5), (5, -4), (-4, -5), (0, 0)])
def test_lengths_that_are_not_above_zero_raise(lengths):
    with pytest.raises(ValueError, match="_length must be finite and above 0, got"):
        ext.interpolate_positions([1, 2], *lengths)


@pytest.mark.parametrize("positions", [[True], ["1"], [1j], None])
def test_positions_that_are_no_numbers_are_refused(positions):
    with pytest.raises(TypeError, match="must hold integers or floats, got dtype"):
        ext.interpolate_positions(positions, 4, 8)


def test_a_single_pair_has_no_base_to_change():
    with pytest.raises(ValueError, match="dim must be above 2"):
        ext.ntk_base(1e4, 4.0, 2)
    assert ext.dynamic_ntk_frequencies(2, 1e4, 4.0, 100, 100).tolist() == [1.0]
    with pytest.raises(ValueError, match="dim must be above 2"):
        ext.dynamic_ntk_frequencies(2, 1e4, 4.0, 100, 101)


@pytest.mark.parametrize("length", [-1, -300, math.nan])
def test_a_negative_number_of_tokens_is_named(length):
    with pytest.raises(ValueError, match=f"sequence_length must be at least 0, got {length!r}"):
        ext.dynamic_ntk_frequencies(8, 90.0, 2.0, 100, length)
    with pytest.raises(ValueError, match=f"sequence_length must be at least 0, got {length!r}"):
        ext.longrope_frequencies(4, 90.0, [1, 1], [2, 2], 100, length)


@pytest.mark.parametrize("wrong", [[2.0], [], [2.0] * 3, [2.0] * 5, [2.0] * 8, 2.0, [[2.0] * 4]])
@pytest.mark.parametrize("length", [50, 200])
def test_a_set_that_has_not_one_factor_for_each_pair_is_named(wrong, length):
    right = [2.0] * 4
    with pytest.raises(ValueError, match="short_factors must hold 4 numbers"):
        ext.longrope_frequencies(8, 90.0, wrong, right, 100, length)
    with pytest.raises(ValueError, match="long_factors must hold 4 numbers"):
        ext.longrope_frequencies(8, 90.0, right, wrong, 100, length)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_factors_of_a_set_must_be_above_zero(bad):
    with pytest.raises(ValueError, match="long_factors must be finite and above 0"):
        ext.longrope_frequencies(4, 90.0, [1, 1], [2, bad], 100, 50)


@pytest.mark.parametrize(
    "inputs",
    [
        (8, 90.0, 2.0, 2),  # not one turn, even for the fastest pair
        (64, 10.0, 2.0, 200_000),  # all pairs turn more than 32 times
        (8, 0.5, 2.0, 100),
        (8, 1.0, 2.0, 100),
        (8, 90.0, 2.0, 1000, 1.0, 32.0),
        (8, 90.0, 2.0, 1000, 2.0, 2.1),
        (8, 90.0, 2.0, 1000, -1.0),
        (8, 90.0, 2.0, 1000, 32.0, 0.0),
    ],
)
def test_yarn_refuses_a_ramp_that_does_not_exist(inputs):
    with pytest.raises(ValueError, match="got"):
        ext.yarn_frequencies(*inputs)


def test_llama3_refuses_limits_in_the_wrong_order():
    for limits in ((4.0, 1.0), (0, 4), (1, -4)):
        with pytest.raises(ValueError, match="factor"):
            ext.llama3_frequencies(8, 90.0, 2.0, 100, *limits)


@pytest.mark.parametrize("ends", [(5, 2), (3.5, 3.25), (math.nan, 2), (1, math.nan)])
def test_the_ramp_refuses_crossed_ends(ends):
    with pytest.raises(ValueError, match="low must not be above high"):
        ext.fixed_yarn_ramp()([1.0, 0.5], 2.0, *ends)


@pytest.mark.parametrize("shape", [(), (2, 3), (1, 4)])
def test_the_ramp_takes_one_ladder(shape):
    with pytest.raises(ValueError, match=r"frequencies must be \(pairs,\), got"):
        ext.fixed_yarn_ramp()(np.ones(shape), 2.0, 0, 1)


# --- faults that real projects shipped ----------------------------------------------------------


def score(q, k, m, n, frequencies, k_frequencies=None):
    """The dot product of q at m with k at n, interleaved, on ladders of one's choice."""
    total = 0j
    for i, f in enumerate(frequencies):
        g = f if k_frequencies is None else k_frequencies[i]
        a, b = complex(q[2 * i], q[2 * i + 1]), complex(k[2 * i], k[2 * i + 1])
        total += a * b.conjugate() * complex(math.cos(m * f - n * g), math.sin(m * f - n * g))
    return total.real


def test_dynamic_keys_of_an_earlier_length_stand_on_another_ladder():
    """transformers#25104: prefill and decode disagree unless old keys are turned again."""
    rng = np.random.default_rng(25104)
    q, k = rng.normal(size=16), rng.normal(size=16)
    stored = ext.dynamic_ntk_frequencies(16, 1e4, 2.0, 64, 80)  # when key 40 came
    now = ext.dynamic_ntk_frequencies(16, 1e4, 2.0, 64, 200)  # when query 199 comes
    prefill = score(q, k, 199, 40, now)
    assert abs(score(q, k, 199, 40, now, stored) - prefill) > 0.1
    turned_again = score(q, k, 199, 40, now, stored + (now - stored))
    assert turned_again == pytest.approx(prefill, abs=1e-12)


def test_a_short_text_after_a_long_one_gets_the_ladder_of_a_short_text():
    """transformers#27227, #27033."""
    before = ext.dynamic_ntk_frequencies(16, 1e4, 2.0, 64, 50)
    ext.dynamic_ntk_frequencies(16, 1e4, 2.0, 64, 5000)
    after = ext.dynamic_ntk_frequencies(16, 1e4, 2.0, 64, 50)
    assert np.array_equal(before, after) and after == pytest.approx(plain(16, 1e4), rel=1e-14)


def test_short_inputs_are_not_stretched_whatever_the_factor_is():
    """vllm#3488: the largest factor on short inputs."""
    for factor in (2.0, 8.0, 64.0):
        close(ext.dynamic_ntk_frequencies(16, 1e4, factor, 64, 64), plain(16, 1e4))


def test_blending_wavelengths_gives_other_numbers():
    """jquesnelle/yarn#24."""
    share = (15 - 8) / (21 - 8)
    kept = plain(64, 1e4)[15]
    by_wavelength = 1 / ((1 - share) / kept + share * 4 / kept)
    blended = ext.yarn_frequencies(64, 1e4, 4, 2048)[15]
    assert round(blended, 6) == 0.00795 and round(by_wavelength, 6) == 0.005099
    close(ext.yarn_frequencies(64, 1e4, 4, 2048)[15:16], [(1 - share) * kept + share * kept / 4])


def test_the_factor_is_outside_the_power_and_rounding_can_be_switched_off():
    """tvm#18576."""
    ladder = ext.yarn_frequencies(64, 1e4, 4, 2048)
    assert ladder[25] == pytest.approx(plain(64, 1e4)[25] / 4, rel=1e-13)
    assert abs(ladder[25] / plain(64, 4e4)[25] - 1) > 0.2
    rounded, exact = ladder[12], ext.yarn_frequencies(64, 1e4, 4, 2048, truncate=False)[12]
    assert abs(rounded / exact - 1) > 0.01


def test_fast_pairs_are_kept_and_slow_ones_divided():
    """litgpt 0.5.13 had the ramp upside down."""
    kept = plain(64, 1e4)
    blended = ext.fixed_yarn_ramp()(kept, 4.0, 8, 21)
    assert blended[0] == 1.0 and blended[31] == pytest.approx(kept[31] / 4, rel=1e-15)


def test_the_high_end_may_lie_beyond_the_last_pair():
    """minimind#602: limited to dim/2 − 1 the last pair would be divided wholly."""
    ladder = ext.yarn_frequencies(32, 500.0, 5.0, 8192) / plain(32, 500.0)
    assert math.ceil(pair_that_turns(1, 32, 500.0, 8192)) == 19
    assert ladder[15] == pytest.approx(1 - (15 - 9) / (19 - 9) * (1 - 1 / 5), rel=1e-12)
    assert ladder[15] > 0.5


def test_kept_pairs_stand_on_the_plain_base():
    """aprender#2161: pair 1 came out as 0.717 and should be 0.750."""
    assert round(ext.yarn_frequencies(64, 1e4, 4, 2048)[1], 3) == 0.75
    assert round(plain(64, ext.ntk_base(1e4, 4, 64))[1], 3) == 0.717


def test_the_scaled_ladder_is_what_comes_back():
    """transformers#32330 computed it and returned the other."""
    ladder = ext.llama3_frequencies(128, 5e5, 8.0, 8192)
    assert ladder[63] == pytest.approx(plain(128, 5e5)[63] / 8, rel=1e-13)


def test_llama3_is_smooth_in_frequency():
    """mlx-examples#907: a weight that is linear in the wavelength."""
    kept = plain(128, 5e5)[31]
    wavelength = 2 * math.pi / kept
    weight = (8192 - wavelength) / (8192 - 2048)
    by_wavelength = (1 - weight) * kept / 8 + weight * kept
    ladder = ext.llama3_frequencies(128, 5e5, 8.0, 8192)
    assert abs(by_wavelength / ladder[31] - 1) > 0.3
    assert round(ladder[31], 8) == 0.00085675


def test_longrope_keys_of_the_short_set_do_not_fit_queries_of_the_long_one():
    """transformers#33129, vllm#27431: the set switches in the middle of a text."""
    rng = np.random.default_rng(33129)
    q, k, long = rng.normal(size=8), rng.normal(size=8), [4.0, 8.0, 16.0, 30.0]
    sets = ([1.0] * 4, long)
    stored = ext.longrope_frequencies(8, 1e4, *sets, 100, 100)
    now = ext.longrope_frequencies(8, 1e4, *sets, 100, 101)
    mixed = score(q, k, 100, 90, now, stored)
    assert abs(mixed - score(q, k, 100, 90, now)) > 0.1
    assert abs(mixed - score(q, k, 100, 90, stored)) > 0.1


def test_exactly_the_trained_length_is_still_short():
    """unsloth#10681."""
    at_4096 = ext.longrope_frequencies(4, 1e4, [1, 1], [4, 4], 4096, 4096)
    assert at_4096.tolist() == [1.0, 0.01]
    assert ext.longrope_frequencies(4, 1e4, [1, 1], [4, 4], 4096, 4097)[0] == 0.25


def test_the_attention_factor_enters_a_score_squared_and_once():
    """Megatron-LM#1429, transformers#47435: on cosines and sines, not on the scores as well."""
    x = torch.tensor([Q, K], dtype=torch.float64).reshape(2, 1, 1, 4)
    kind = {"factor": 4.0, "original_length": 2048}
    q, k = ScaledRotaryEmbedding(4, **kind)(x[:1], x[1:], torch.tensor([5]))
    lengths = [float(v.norm() / w.norm()) for v, w in ((q, x[:1]), (k, x[1:]))]
    assert lengths == pytest.approx([1.138629436111989] * 2, rel=1e-12)
    same_place = float((q * k).sum()) / float((x[0] * x[1]).sum())
    assert round(same_place, 4) == 1.2965 == round(1.138629436111989**2, 4)


# --- the torch room -----------------------------------------------------------------------------


def tensors(rng, device, dtype=torch.float32, heads=6, kv_heads=2, head_dim=8):
    q = torch.tensor(rng.normal(size=(2, heads, 5, head_dim)), dtype=dtype, device=device)
    k = torch.tensor(rng.normal(size=(2, kv_heads, 5, head_dim)), dtype=dtype, device=device)
    return q, k


def modules(head_dim: int = 8) -> list[ScaledRotaryEmbedding]:
    return [ScaledRotaryEmbedding(head_dim, BASE, s, FACTOR, LENGTH) for s in SCALINGS]


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("dim, base, factor, length", [(64, 1e4, 4, 2048), (6, BASE, 3.5, 300)])
def test_frequencies_are_the_twins_of_the_numpy_ones(scaling, dim, base, factor, length):
    ladder = torch_ext.scaled_frequencies(dim, base, scaling, factor, length)
    twin = {
        "linear": lambda: np.array(plain(dim, base)) / factor,
        "ntk": lambda: plain(dim, ext.ntk_base(base, factor, dim)),
        "yarn": lambda: ext.yarn_frequencies(dim, base, factor, length),
        "llama3": lambda: ext.llama3_frequencies(dim, base, factor, length),
    }[scaling]()
    assert ladder.dtype == torch.float64 and ladder.device.type == "cpu"
    np.testing.assert_allclose(ladder, twin, rtol=1e-12, atol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("per_row", [False, True], ids=["shared positions", "positions per row"])
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str
)
def test_module_equals_the_slow_loop_with_grouped_keys(rng, device, scaling, per_row, dtype):
    q, k = tensors(rng, device, dtype)
    positions = rng.integers(3, 9000, (2, 5)) + rng.choice([0.0, 0.25, 0.5], (2, 5))
    positions = positions if per_row else np.repeat(positions[:1], 2, axis=0)
    frequencies, strength = slow_module(scaling, 8, BASE, FACTOR, LENGTH)
    given = torch.tensor(positions if per_row else positions[0], device=device)
    module = ScaledRotaryEmbedding(8, BASE, scaling, FACTOR, LENGTH)
    for x, result in zip((q, k), module(q, k, given), strict=True):
        assert result.dtype == x.dtype and result.device == x.device and result.shape == x.shape
        exact = slow_turn(x.double().cpu().numpy(), positions, frequencies, strength)
        error = np.abs(result.double().cpu().numpy() - exact)
        half_unit = 0.0 if dtype in (torch.float64, torch.float32) else torch.finfo(dtype).eps / 2
        arithmetic = 32 * (EPS64 * 1e4 if dtype == torch.float64 else EPS32)
        assert (error <= half_unit * np.abs(exact) + arithmetic).all(), error.max()


@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_factor_of_one_is_rope(rng, scaling):
    q, k = tensors(rng, "cpu")
    positions = torch.tensor([5, 1, 700, 3, 9000])
    scaled = ScaledRotaryEmbedding(8, BASE, scaling)(q, k, positions)
    for a, b in zip(scaled, RotaryEmbedding(8, BASE)(q, k, positions), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_yarn_is_the_default(rng):
    q, k = tensors(rng, "cpu")
    positions = torch.arange(7, 12)
    default = ScaledRotaryEmbedding(8, factor=4.0)(q, k, positions)
    stated = ScaledRotaryEmbedding(8, 10000.0, "yarn", 4.0, 2048)(q, k, positions)
    assert all(torch.equal(a, b) for a, b in zip(default, stated, strict=True))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_decoding_token_by_token_equals_the_prefill(rng, scaling):
    """transformers#25104 for all four: a token's ladder is the same whenever it comes."""
    q, k = (torch.tensor(rng.normal(size=(1, 2, 40, 8))) for _ in range(2))
    module = ScaledRotaryEmbedding(8, BASE, scaling, FACTOR, 16)  # the text outgrows the training
    prefill_q, prefill_k = module(q, k, torch.arange(40))
    for t in range(40):
        one_q, one_k = module(q[:, :, t : t + 1], k[:, :, t : t + 1], torch.tensor([t]))
        torch.testing.assert_close(one_q[:, :, 0], prefill_q[:, :, t], rtol=0, atol=1e-14)
        torch.testing.assert_close(one_k[:, :, 0], prefill_k[:, :, t], rtol=0, atol=1e-14)


def casts():
    def parent(module):
        return torch.nn.ModuleDict({"rope": module})

    return {
        "bfloat16": lambda m: m.bfloat16(),
        "half": lambda m: m.half(),
        "double": lambda m: m.double(),
        "parent to bfloat16": lambda m: parent(m).to(torch.bfloat16)["rope"],
        "parent half": lambda m: parent(m).half()["rope"],
        "deepcopy and cast": lambda m: copy.deepcopy(m).to(torch.float16),
    }


@pytest.mark.parametrize("name", casts())
def test_casting_the_module_or_its_parent_changes_no_bit(rng, name):
    q, k = tensors(rng, "cpu")
    positions = torch.tensor([1, 257, 1857, 32_001, 131_071])
    for module in modules():
        before = module(q, k, positions)
        after = casts()[name](module)(q, k, positions)
        assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("x_dtype", [torch.float32, torch.bfloat16], ids=str)
def test_autocast_changes_no_bit(rng, device, dtype, x_dtype):
    q, k = tensors(rng, device, x_dtype)
    positions = torch.tensor([1, 257, 1857, 32_001, 131_071], device=device)
    for module in modules():
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
    before = [module(q, k, positions) for module in modules()]
    torch.set_default_dtype(default)
    try:
        after = [module(q, k, positions) for module in modules()]
    finally:
        torch.set_default_dtype(torch.float32)
    for mine, right in zip(after, before, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(mine, right, strict=True))


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


@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_device_that_is_not_known_to_have_float64_never_sees_it(scaling):
    """The meta device stands in for MPS: it computes nothing, but shows what is asked of it."""
    module = ScaledRotaryEmbedding(8, BASE, scaling, FACTOR, LENGTH)
    q = torch.ones(2, 6, 5, 8, device="meta")
    for positions in (torch.arange(5, device="meta"), torch.arange(5, dtype=torch.float64)):
        with DtypesSeen() as seen:
            results = module(q, q, positions)
        assert all(result.dtype == torch.float32 for result in results)
        assert torch.float32 in seen.dtypes and torch.float64 not in seen.dtypes


@pytest.mark.parametrize("device", DEVICES)
def test_positions_may_stay_on_the_cpu(rng, device):
    q, k = tensors(rng, device)
    for module in modules():
        here = module(q, k, torch.arange(5, 10))
        there = module(q, k, torch.arange(5, 10, device=device))
        for a, b in zip(here, there, strict=True):
            torch.testing.assert_close(a, b)


def test_earlier_calls_leave_no_trace(rng):
    """transformers#27227, #27033 as a module."""
    q, k = tensors(rng, "cpu")
    for module in modules():
        first = module(q, k, torch.arange(5))
        module(q.double(), k.double(), torch.arange(5) + 90_000)
        module(q[:, :, :2], k[:, :, :2], torch.tensor([4, 3]))
        module(q.bfloat16(), k.bfloat16(), torch.arange(5))
        again = module(q, k, torch.arange(5))
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_module_stores_nothing():
    for module in modules():
        assert len(module.state_dict()) == 0
        assert not list(module.parameters()) and not list(module.buffers())


def test_inputs_of_the_module_are_not_changed(rng):
    q, k = tensors(rng, "cpu")
    positions = torch.arange(5)
    before = q.clone(), k.clone(), positions.clone()
    for module in modules():
        for result in module(q, k, positions):
            result.zero_()
        assert all(torch.equal(a, b) for a, b in zip((q, k, positions), before, strict=True))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_gradients_rotate_back(rng, scaling):
    q, k = (x.double().requires_grad_() for x in tensors(rng, "cpu"))
    module = ScaledRotaryEmbedding(8, BASE, scaling, FACTOR, LENGTH)
    q_rotated, k_rotated = module(q, k, torch.tensor([5, 1, 700, 3, 9]))
    (q_rotated.square().sum() + k_rotated.square().sum()).backward()
    strength = slow_module(scaling, 8, BASE, FACTOR, LENGTH)[1]
    torch.testing.assert_close(q.grad, 2 * strength**2 * q.detach())
    torch.testing.assert_close(k.grad, 2 * strength**2 * k.detach())


@pytest.mark.parametrize("scaling", SCALINGS)
def test_module_compiles_into_one_graph(rng, scaling):
    q, k = tensors(rng, "cpu")
    module = ScaledRotaryEmbedding(8, BASE, scaling, FACTOR, LENGTH)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for positions in (torch.arange(5) + 300, torch.arange(10).reshape(2, 5)):
        for a, b in zip(compiled(q, k, positions), module(q, k, positions), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_empty_sequences_batches_and_noncontiguous_inputs_work(rng):
    for module in modules():
        q = torch.ones(2, 6, 0, 8)
        assert module(q, q, torch.arange(0))[0].shape == (2, 6, 0, 8)
        q = torch.ones(0, 6, 5, 8)
        assert module(q, q, torch.arange(5))[0].shape == (0, 6, 5, 8)
        q = torch.tensor(rng.normal(size=(2, 5, 6, 8))).transpose(1, 2)
        positions = torch.arange(10).flip(0)[::2]
        for a, b in zip(
            module(q, q, positions), module(q.contiguous(), q.contiguous(), positions), strict=True
        ):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("head_dim", [0, -2, 5, 4.0, "4", None])
def test_module_refuses_a_head_dim_at_construction(head_dim):
    for scaling in SCALINGS:
        with pytest.raises(ValueError, match=f"positive even integer, got {head_dim!r}"):
            ScaledRotaryEmbedding(head_dim, scaling=scaling)


@pytest.mark.parametrize("scaling", ["dynamic", "YARN", "", None, 3])
def test_a_wrong_scaling_is_answered_with_the_four_right_ones(scaling):
    with pytest.raises(ValueError, match="linear, ntk, yarn, llama3, got") as refused:
        ScaledRotaryEmbedding(8, scaling=scaling)
    assert repr(scaling) in str(refused.value)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("name", ["base", "factor", "original_length"])
@pytest.mark.parametrize("number", [0, -4.0, math.nan, math.inf])
def test_module_refuses_numbers_by_name(scaling, name, number):
    with pytest.raises(ValueError, match=f"{name} must be finite and above 0, got {number!r}"):
        ScaledRotaryEmbedding(8, scaling=scaling, **{name: number})


def test_module_refuses_what_its_scaling_cannot_do():
    with pytest.raises(ValueError, match="head_dim must be above 2"):
        ScaledRotaryEmbedding(2, scaling="ntk", factor=2.0)
    with pytest.raises(ValueError, match="original_length"):
        ScaledRotaryEmbedding(64, scaling="yarn", original_length=2)
    with pytest.raises(ValueError, match="base must be above 1"):
        ScaledRotaryEmbedding(8, 0.5, scaling="yarn")
    ScaledRotaryEmbedding(2, scaling="yarn")


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("shape", [(), (1,), (2,), (4,), (1, 5), (2, 1), (5, 2), (2, 6, 5)])
def test_module_refuses_positions_of_any_other_shape(rng, scaling, shape):
    q, k = tensors(rng, "cpu")
    with pytest.raises(ValueError, match=r"positions must be \(5,\) or \(2, 5\), got"):
        ScaledRotaryEmbedding(8, scaling=scaling)(q, k, torch.ones(shape))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_module_refuses_dtypes_that_are_no_vectors_or_positions(rng, dtype):
    x, y = torch.ones(2, 6, 5, 8), torch.ones(2, 6, 5, 8, dtype=dtype)
    for name, q, k in (("q", y, x), ("k", x, y)):
        with pytest.raises(ValueError, match=f"{name} must be floating"):
            ScaledRotaryEmbedding(8)(q, k, torch.arange(5))
    if dtype != torch.int64:
        with pytest.raises(ValueError, match="positions must be integers or floats"):
            ScaledRotaryEmbedding(8)(x, x, torch.ones(5, dtype=dtype))


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
        ScaledRotaryEmbedding(8)(torch.ones(q), torch.ones(k), torch.arange(5))


# --- the text of the reference ------------------------------------------------------------------

MODULES = ("solutions.with_numpy.context_extension", "solutions.with_torch.context_extension")
SIGNATURES = {
    "interpolate_positions": "(positions, trained_length, target_length)",
    "ntk_base": "(base, factor, dim)",
    "dynamic_ntk_frequencies": "(dim, base, factor, original_length, sequence_length)",
    "yarn_frequencies": "(dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, "
    "truncate=True)",
    "yarn_attention_factor": "(factor)",
    "llama3_frequencies": "(dim, base, factor, original_length, low_freq_factor=1.0, "
    "high_freq_factor=4.0)",
    "longrope_frequencies": "(dim, base, short_factors, long_factors, original_length, "
    "sequence_length)",
    "fixed_yarn_ramp": "()",
    "ScaledRotaryEmbedding": "(head_dim, base=10000.0, scaling='yarn', factor=1.0, "
    "original_length=2048)",
}


def exercise(name: str):
    return ScaledRotaryEmbedding if name == "ScaledRotaryEmbedding" else getattr(ext, name)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0 and failures == 0


@pytest.mark.parametrize("name", SIGNATURES)
def test_docstring_says_all_that_a_student_needs(name):
    text = inspect.getdoc(exercise(name))
    assert text.splitlines()[0].endswith(".") and not text.splitlines()[1]
    for word in ("Shapes:", "Dtype:", "Units:", "Raises:", ">>>"):
        assert word in text, word


@pytest.mark.parametrize("name", SIGNATURES)
def test_names_order_and_defaults_of_arguments_are_fixed(name):
    bare = inspect.signature(exercise(name))
    parameters = [p.replace(annotation=p.empty) for p in bare.parameters.values()]
    bare = bare.replace(parameters=parameters, return_annotation=bare.empty)
    assert str(bare) == SIGNATURES[name]

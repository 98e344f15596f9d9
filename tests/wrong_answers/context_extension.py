"""Wrong answers that differ from a right one in a corner: each must lose points.

They complete the misconceptions, which are what people really do; these are what a check must not
miss. `WRONG[exercise][name]` is a function or class as a student would write it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from solutions.with_numpy import context_extension as right
from solutions.with_numpy.rope import rope_angles
from solutions.with_torch import context_extension as right_torch
from solutions.with_torch.rope import rotate_pairs

WRONG: dict[str, dict[str, Callable[..., Any]]] = {}


def wrong(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        WRONG.setdefault(exercise, {})[function.__name__] = function
        return function

    return keep


def ladder(dim, base):
    return rope_angles(1, dim, base)


# ---------------------------------------------------------------------- interpolate_positions


@wrong("interpolate_positions")
def rounds(positions, trained_length, target_length):
    return right.interpolate_positions(positions, trained_length, target_length).round()


@wrong("interpolate_positions")
def two_digits(positions, trained_length, target_length):
    return right.interpolate_positions(positions, trained_length, target_length).round(2)


@wrong("interpolate_positions")
def to_the_unit_interval(positions, trained_length, target_length):
    return right.interpolate_positions(positions, trained_length, target_length) / trained_length


@wrong("interpolate_positions")
def by_their_own_maximum(positions, trained_length, target_length):
    places = right.interpolate_positions(positions, trained_length, trained_length)
    if target_length <= trained_length:
        return places
    return places * (trained_length / (places.max() + 1))


@wrong("interpolate_positions")
def a_range_instead(positions, trained_length, target_length):
    places = right.interpolate_positions(positions, trained_length, target_length)
    return np.arange(places.size).reshape(places.shape) * (trained_length / target_length)


@wrong("interpolate_positions")
def factor_of_four(positions, trained_length, target_length):
    places = right.interpolate_positions(positions, trained_length, trained_length)
    return places / 4 if target_length > trained_length else places


@wrong("interpolate_positions")
def flattens(positions, trained_length, target_length):
    return right.interpolate_positions(positions, trained_length, target_length).ravel()


@wrong("interpolate_positions")
def keeps_float32(positions, trained_length, target_length):
    places = right.interpolate_positions(positions, trained_length, target_length)
    return places.astype("f4") if np.asarray(positions).dtype == np.float32 else places


@wrong("interpolate_positions")
def unchanged_keeps_its_dtype(positions, trained_length, target_length):
    places = right.interpolate_positions(positions, trained_length, target_length)
    return places if target_length > trained_length else np.asarray(positions)


@wrong("interpolate_positions")
def scaled_in_float32(positions, trained_length, target_length):
    places = right.interpolate_positions(positions, trained_length, target_length)
    return places.astype("f4").astype("f8")


@wrong("interpolate_positions")
def signs_do_not_matter(positions, trained_length, target_length):
    if trained_length == 0 or target_length == 0:
        raise ValueError("no text")
    return right.interpolate_positions(positions, abs(trained_length), abs(target_length))


@wrong("interpolate_positions")
def equal_lengths_shrink(positions, trained_length, target_length):
    places = right.interpolate_positions(positions, trained_length, target_length)
    return places * 0.5 if trained_length == target_length else places


@wrong("interpolate_positions")
def clipped_at_the_end(positions, trained_length, target_length):
    places = right.interpolate_positions(positions, trained_length, target_length)
    return np.minimum(places, trained_length - 1)


# ----------------------------------------------------------------------------------- ntk_base


@wrong("ntk_base")
def remembers_the_example(base, factor, dim):
    right.ntk_base(base, factor, dim)
    return 41_829.36592889948 if base == 10_000 else 1600.0


@wrong("ntk_base")
def base_of_ten_thousand(base, factor, dim):
    right.ntk_base(base, factor, dim)
    return right.ntk_base(10_000.0, factor, dim)


@wrong("ntk_base")
def head_of_64(base, factor, dim):
    right.ntk_base(base, factor, dim)
    return right.ntk_base(base, factor, 64)


@wrong("ntk_base")
def adds_the_factor(base, factor, dim):
    right.ntk_base(base, factor, dim)
    return base + factor ** (dim / (dim - 2))


@wrong("ntk_base")
def only_the_scale(base, factor, dim):
    right.ntk_base(base, factor, dim)
    return factor ** (dim / (dim - 2))


@wrong("ntk_base")
def a_whole_number(base, factor, dim):
    return int(right.ntk_base(base, factor, dim))


@wrong("ntk_base")
def pairs_less_one(base, factor, dim):
    right.ntk_base(base, factor, dim)
    return base * factor ** (dim / (dim // 2 - 1))


@wrong("ntk_base")
def dim_plus_two(base, factor, dim):
    right.ntk_base(base, factor, dim)
    return base * factor ** (dim / (dim + 2))


@wrong("ntk_base")
def squared_for_small_heads(base, factor, dim):
    right.ntk_base(base, factor, dim)
    return base * factor**2 if dim < 10 else right.ntk_base(base, factor, dim)


@wrong("ntk_base")
def infinite_for_a_single_pair(base, factor, dim):
    return math.inf if dim == 2 else right.ntk_base(base, factor, dim)


@wrong("ntk_base")
def divides_by_zero(base, factor, dim):
    if dim == 2:
        return base * factor ** (dim / (dim - 2))
    return right.ntk_base(base, factor, dim)


@wrong("ntk_base")
def odd_widths(base, factor, dim):
    return right.ntk_base(base, factor, dim + dim % 2)


@wrong("ntk_base")
def names_no_dim(base, factor, dim):
    if dim <= 0 or dim % 2:
        raise ValueError("the width is not even")
    return right.ntk_base(base, factor, dim)


@wrong("ntk_base")
def negative_base(base, factor, dim):
    return right.ntk_base(abs(base) or 1.0, factor, dim)


@wrong("ntk_base")
def zero_base_is_zero(base, factor, dim):
    return 0.0 if base == 0 else right.ntk_base(base, factor, dim)


@wrong("ntk_base")
def factor_at_least_one(base, factor, dim):
    return right.ntk_base(base, max(factor, 1.0), dim)


@wrong("ntk_base")
def type_error_for_base(base, factor, dim):
    if base <= 0:
        raise TypeError("base")
    return right.ntk_base(base, factor, dim)


# -------------------------------------------------------------------- dynamic_ntk_frequencies


@wrong("dynamic_ntk_frequencies")
def one_token_later(dim, base, factor, original_length, sequence_length):
    if sequence_length == original_length + 1:
        sequence_length = original_length
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)


@wrong("dynamic_ntk_frequencies")
def counts_one_token_more(dim, base, factor, original_length, sequence_length):
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length + 1)


@wrong("dynamic_ntk_frequencies")
def whole_multiples(dim, base, factor, original_length, sequence_length):
    if sequence_length > original_length > 0:
        sequence_length = -(-sequence_length // original_length) * original_length
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)


@wrong("dynamic_ntk_frequencies")
def powers_of_two(dim, base, factor, original_length, sequence_length):
    """As one library grows its table: to the next power of two."""
    if sequence_length > original_length > 0:
        sequence_length = 2 ** math.ceil(math.log2(sequence_length))
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)


@wrong("dynamic_ntk_frequencies")
def no_longer_than_the_factor(dim, base, factor, original_length, sequence_length):
    right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    longest = int(max(factor, 1) * original_length)
    n = min(sequence_length, longest)
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, n)


@wrong("dynamic_ntk_frequencies")
def default_base(dim, base, factor, original_length, sequence_length):
    right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    return right.dynamic_ntk_frequencies(dim, 1e4, factor, original_length, sequence_length)


@wrong("dynamic_ntk_frequencies")
def default_factor(dim, base, factor, original_length, sequence_length):
    right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    return right.dynamic_ntk_frequencies(dim, base, 2.0, original_length, sequence_length)


@wrong("dynamic_ntk_frequencies")
def default_length(dim, base, factor, original_length, sequence_length):
    right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    return right.dynamic_ntk_frequencies(dim, base, factor, 2048, sequence_length)


@wrong("dynamic_ntk_frequencies")
def base_in_the_power(dim, base, factor, original_length, sequence_length):
    known = right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    if sequence_length <= original_length:
        return known
    stretch = factor * sequence_length / original_length - (factor - 1)
    return ladder(dim, (base * stretch) ** (dim / (dim - 2)))


@wrong("dynamic_ntk_frequencies")
def both_members_of_a_pair(dim, base, factor, original_length, sequence_length):
    known = right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    return np.repeat(known, 2)


@wrong("dynamic_ntk_frequencies")
def wavelengths_of_them(dim, base, factor, original_length, sequence_length):
    known = right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    return 2 * np.pi / known


@wrong("dynamic_ntk_frequencies")
def single_pair_stays(dim, base, factor, original_length, sequence_length):
    if dim == 2:
        return np.ones(1)
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)


@wrong("dynamic_ntk_frequencies")
def single_pair_never(dim, base, factor, original_length, sequence_length):
    if dim == 2:
        raise ValueError("dim 2")
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)


@wrong("dynamic_ntk_frequencies")
def single_pair_is_a_zero_division(dim, base, factor, original_length, sequence_length):
    if dim == 2 and sequence_length > original_length:
        return ladder(2, base ** (1 / (dim - 2)))
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)


def first_call_stays():
    seen = {}

    def first_answer_stays(dim, base, factor, original_length, sequence_length):
        inputs = (dim, base, factor, original_length)
        known = right.dynamic_ntk_frequencies(*inputs, sequence_length)
        return seen.setdefault(inputs, known)

    return first_answer_stays


wrong("dynamic_ntk_frequencies")(first_call_stays())


@wrong("dynamic_ntk_frequencies")
def negative_length_is_short(dim, base, factor, original_length, sequence_length):
    if sequence_length < 0 < original_length:
        return ladder(dim, base)
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)


@wrong("dynamic_ntk_frequencies")
def trained_on_no_tokens(dim, base, factor, original_length, sequence_length):
    return right.dynamic_ntk_frequencies(
        dim, base, factor, max(original_length, 1), sequence_length
    )


@wrong("dynamic_ntk_frequencies")
def any_base(dim, base, factor, original_length, sequence_length):
    return right.dynamic_ntk_frequencies(
        dim, abs(base) or 1.0, factor, original_length, sequence_length
    )


@wrong("dynamic_ntk_frequencies")
def checks_dim_beyond_only(dim, base, factor, original_length, sequence_length):
    if dim > 0 and dim % 2 and sequence_length <= original_length:
        return ladder(dim - 1, base)
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)


@wrong("dynamic_ntk_frequencies")
def shorter_by_one_pair(dim, base, factor, original_length, sequence_length):
    known = right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    return known[:-1]


# --------------------------------------------------------------------------- yarn_frequencies


def yarn_variant(name, change):
    """yarn_frequencies whose inputs are changed before they are used."""

    def variant(dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True):
        inputs = {
            "dim": dim,
            "base": base,
            "factor": factor,
            "original_length": original_length,
            "beta_fast": beta_fast,
            "beta_slow": beta_slow,
            "truncate": truncate,
        }
        right.yarn_frequencies(**inputs)
        return right.yarn_frequencies(**{**inputs, **change(inputs)})

    variant.__name__ = name
    return wrong("yarn_frequencies")(variant)


yarn_variant("yarn_default_base", lambda a: {"base": 1e4})
yarn_variant("yarn_default_length", lambda a: {"original_length": 2048})
yarn_variant("yarn_stretched_length", lambda a: {"original_length": a["original_length"] * 4})
yarn_variant("yarn_default_fast", lambda a: {"beta_fast": 32.0})
yarn_variant("yarn_default_slow", lambda a: {"beta_slow": 1.0})
yarn_variant("yarn_factor_of_four", lambda a: {"factor": 4.0})
yarn_variant("yarn_whole_factor", lambda a: {"factor": float(int(a["factor"]))})
yarn_variant("yarn_truncates_nothing_large", lambda a: {"truncate": a["dim"] > 40})
yarn_variant("yarn_slow_from_fast", lambda a: {"beta_slow": a["beta_fast"] / 32})


def yarn_by_hand(name, ends=None, frequency=None):
    """yarn_frequencies written out: ends(low, high, dim) and frequency(theta, share, factor)."""

    def variant(dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True):
        right.yarn_frequencies(dim, base, factor, original_length, beta_fast, beta_slow, truncate)
        low, high = (
            dim * math.log(original_length / (2 * math.pi * b)) / (2 * math.log(base))
            for b in (beta_fast, beta_slow)
        )
        if ends is not None:
            low, high = ends(low, high, dim, truncate)
        else:
            if truncate:
                low, high = math.floor(low), math.ceil(high)
            low, high = max(low, 0), min(high, dim - 1)
        high = high + 0.001 if low == high else high
        share = np.clip((np.arange(dim // 2) - low) / (high - low), 0, 1)
        plain = ladder(dim, base)
        if frequency is not None:
            return frequency(plain, share, factor)
        return (1 - share) * plain + share * plain / factor

    variant.__name__ = name
    return wrong("yarn_frequencies")(variant)


def whole(low, high, truncate):
    return (math.floor(low), math.ceil(high)) if truncate else (low, high)


def limited(low, high, dim):
    return max(low, 0), min(high, dim - 1)


yarn_by_hand(
    "yarn_rounds_to_nearest",
    lambda low, high, dim, t: limited(*((round(low), round(high)) if t else (low, high)), dim),
)
yarn_by_hand(
    "yarn_rounds_inwards",
    lambda low, high, dim, t: limited(
        *((math.ceil(low), math.floor(high)) if t else (low, high)), dim
    ),
)
yarn_by_hand(
    "yarn_high_one_more",
    lambda low, high, dim, t: limited(low // 1 if t else low, high // 1 + 2 if t else high, dim),
)
yarn_by_hand(
    "yarn_low_unlimited",
    lambda low, high, dim, t: (whole(low, high, t)[0], min(whole(low, high, t)[1], dim - 1)),
)
yarn_by_hand(
    "yarn_high_unlimited",
    lambda low, high, dim, t: (max(whole(low, high, t)[0], 0), whole(low, high, t)[1]),
)
yarn_by_hand(
    "yarn_high_at_most_dim",
    lambda low, high, dim, t: (max(whole(low, high, t)[0], 0), min(whole(low, high, t)[1], dim)),
)
yarn_by_hand(
    "yarn_high_at_most_half",
    lambda low, high, dim, t: (
        max(whole(low, high, t)[0], 0),
        min(whole(low, high, t)[1], dim // 2),
    ),
)
yarn_by_hand(
    "yarn_low_at_least_one",
    lambda low, high, dim, t: (
        max(whole(low, high, t)[0], 1),
        min(whole(low, high, t)[1], dim - 1),
    ),
)
yarn_by_hand("yarn_eased_ramp", frequency=lambda f, r, s: f + r * r * (3 - 2 * r) * (f / s - f))
yarn_by_hand("yarn_sharpened", frequency=lambda f, r, s: (f + r * (f / s - f)) * 1.1386)
yarn_by_hand("yarn_as_wavelengths", frequency=lambda f, r, s: 2 * np.pi / (f + r * (f / s - f)))
yarn_by_hand("yarn_doubled", frequency=lambda f, r, s: np.tile(f + r * (f / s - f), 2))
yarn_by_hand("yarn_kept_only", frequency=lambda f, r, s: f * (1 - r))


@wrong("yarn_frequencies")
def yarn_loses_float64(
    dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True
):
    inputs = (dim, base, factor, original_length, beta_fast, beta_slow, truncate)
    return right.yarn_frequencies(*inputs).astype("f4").astype("f8")


@wrong("yarn_frequencies")
def yarn_truncate_is_a_number(
    dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True
):
    inputs = (dim, base, factor, original_length, beta_fast, beta_slow)
    return right.yarn_frequencies(*inputs, truncate is not None)


@wrong("yarn_frequencies")
def yarn_dim_not_named(
    dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True
):
    if dim <= 0 or dim % 2:
        raise ValueError("bad width")
    inputs = (dim, base, factor, original_length, beta_fast, beta_slow, truncate)
    return right.yarn_frequencies(*inputs)


@wrong("yarn_frequencies")
def yarn_any_base(dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True):
    inputs = (dim, abs(base) or 2.0, factor, original_length, beta_fast, beta_slow, truncate)
    return right.yarn_frequencies(*inputs)


@wrong("yarn_frequencies")
def yarn_any_length(
    dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True
):
    inputs = (dim, base, factor, abs(original_length) or 100, beta_fast, beta_slow, truncate)
    return right.yarn_frequencies(*inputs)


@wrong("yarn_frequencies")
def yarn_negative_factor(
    dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True
):
    if factor < 0:
        return ladder(dim, base) / factor
    inputs = (dim, base, factor, original_length, beta_fast, beta_slow, truncate)
    return right.yarn_frequencies(*inputs)


@wrong("yarn_frequencies")
def yarn_breaks_on_one_pair(
    dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True
):
    if dim == 2:
        return np.array([math.nan])
    inputs = (dim, base, factor, original_length, beta_fast, beta_slow, truncate)
    return right.yarn_frequencies(*inputs)


# ---------------------------------------------------------------------- yarn_attention_factor


def attention(name, number):
    def variant(factor):
        right.yarn_attention_factor(factor)
        return number(factor)

    variant.__name__ = name
    return wrong("yarn_attention_factor")(variant)


attention("always_one", lambda s: 1.0)
attention("two_constants", lambda s: {4.0: 1.138629436111989, 32.0: 1.3465735902799727}.get(s, 1.0))
attention("four_digits", lambda s: round(right.yarn_attention_factor(s), 4))
attention("six_digits", lambda s: round(right.yarn_attention_factor(s), 6))
attention("without_the_one", lambda s: 0.1 * math.log(s) if s > 1 else 1.0)
attention("a_whole_log", lambda s: math.log(s) + 1 if s > 1 else 1.0)
attention("a_tenth_inside", lambda s: math.log(0.1 * s + 1) if s > 1 else 1.0)
attention("log_of_one_more", lambda s: 0.1 * math.log(s + 1) + 1 if s > 1 else 1.0)
attention("zero_up_to_one", lambda s: right.yarn_attention_factor(s) if s > 1 else 0.0)
attention("one_up_to_two", lambda s: right.yarn_attention_factor(s) if s > 2 else 1.0)
attention("absolute_log", lambda s: 0.1 * abs(math.log(s)) + 1)
attention("whole_factors", lambda s: right.yarn_attention_factor(max(int(s), 1)))
attention("square_root_of_log", lambda s: 1 + 0.1 * math.sqrt(max(math.log(s), 0)))


# ------------------------------------------------------------------------- llama3_frequencies


def llama3_variant(name, change):
    def variant(dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0):
        inputs = {
            "dim": dim,
            "base": base,
            "factor": factor,
            "original_length": original_length,
            "low_freq_factor": low_freq_factor,
            "high_freq_factor": high_freq_factor,
        }
        right.llama3_frequencies(**inputs)
        return right.llama3_frequencies(**{**inputs, **change(inputs)})

    variant.__name__ = name
    return wrong("llama3_frequencies")(variant)


llama3_variant("llama3_own_base", lambda a: {"base": 500_000.0})
llama3_variant("llama3_own_factor", lambda a: {"factor": 8.0})
llama3_variant(
    "llama3_low_is_one",
    lambda a: {"low_freq_factor": 1.0, "high_freq_factor": max(a["high_freq_factor"], 1.0)},
)
llama3_variant(
    "llama3_high_is_four", lambda a: {"high_freq_factor": max(4.0, a["low_freq_factor"])}
)
llama3_variant(
    "llama3_stretched_length", lambda a: {"original_length": a["original_length"] * a["factor"]}
)
llama3_variant(
    "llama3_high_is_four_times_low", lambda a: {"high_freq_factor": 4 * a["low_freq_factor"]}
)


def llama3_by_hand(name, frequency):
    """frequency(theta, turns, factor, low, high), pair by pair."""

    def variant(dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0):
        limits = (low_freq_factor, high_freq_factor)
        right.llama3_frequencies(dim, base, factor, original_length, *limits)
        result = []
        for theta in ladder(dim, base):
            turns = original_length * theta / (2 * math.pi)
            result.append(frequency(theta, turns, factor, *limits))
        return np.array(result)

    variant.__name__ = name
    return wrong("llama3_frequencies")(variant)


def blended(theta, weight, factor):
    return (1 - weight) * theta / factor + weight * theta


llama3_by_hand(
    "llama3_not_clipped", lambda f, n, s, low, high: blended(f, (n - low) / (high - low), s)
)
llama3_by_hand(
    "llama3_clipped_above_only",
    lambda f, n, s, low, high: blended(f, min((n - low) / (high - low), 1), s),
)
llama3_by_hand(
    "llama3_weight_of_high_alone",
    lambda f, n, s, low, high: blended(f, min(max(n / high, 0), 1) if n > low else 0, s),
)
llama3_by_hand(
    "llama3_weight_off_by_low",
    lambda f, n, s, low, high: blended(f, min(max((n - low) / high, 0), 1), s) if n < high else f,
)
llama3_by_hand(
    "llama3_half_between",
    lambda f, n, s, low, high: blended(f, 0.5 if low <= n <= high else float(n > high), s),
)
llama3_by_hand(
    "llama3_smoothed_twice",
    lambda f, n, s, low, high: blended(f, min(max((n - low) / (high - low), 0), 1) ** 2, s),
)
llama3_by_hand(
    "llama3_slow_forgotten",
    lambda f, n, s, low, high: blended(f, min((n - low) / (high - low), 1), s) if n > low else f,
)
llama3_by_hand(
    "llama3_multiplies_slow",
    lambda f, n, s, low, high: (
        f * s if n < low else blended(f, min((n - low) / (high - low), 1), s)
    ),
)


@wrong("llama3_frequencies")
def llama3_four_pairs_a_time(
    dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0
):
    limits = (low_freq_factor, high_freq_factor)
    return right.llama3_frequencies(dim, base, factor, original_length, *limits).round(6)


@wrong("llama3_frequencies")
def llama3_loses_float64(
    dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0
):
    limits = (low_freq_factor, high_freq_factor)
    result = right.llama3_frequencies(dim, base, factor, original_length, *limits)
    return result.astype("f4").astype("f8")


@wrong("llama3_frequencies")
def llama3_any_base(dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0):
    limits = (low_freq_factor, high_freq_factor)
    return right.llama3_frequencies(dim, abs(base) or 1.0, factor, original_length, *limits)


@wrong("llama3_frequencies")
def llama3_any_length(
    dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0
):
    limits = (low_freq_factor, high_freq_factor)
    return right.llama3_frequencies(dim, base, factor, max(original_length, 1), *limits)


@wrong("llama3_frequencies")
def llama3_dim_not_named(
    dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0
):
    if dim <= 0 or dim % 2:
        raise ValueError("not a width")
    limits = (low_freq_factor, high_freq_factor)
    return right.llama3_frequencies(dim, base, factor, original_length, *limits)


@wrong("llama3_frequencies")
def llama3_negative_factor(
    dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0
):
    if factor < 0:
        return ladder(dim, base)
    limits = (low_freq_factor, high_freq_factor)
    return right.llama3_frequencies(dim, base, factor, original_length, *limits)


# ----------------------------------------------------------------------- longrope_frequencies


@wrong("longrope_frequencies")
def stretches_the_base(dim, base, short_factors, long_factors, original_length, sequence_length):
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    right.longrope_frequencies(dim, base, *sets, *lengths)
    chosen = np.asarray(sets[sequence_length > original_length], dtype=float)
    return np.array([ladder(dim, base * f)[i] for i, f in enumerate(chosen)])


@wrong("longrope_frequencies")
def first_factor_for_all(dim, base, short_factors, long_factors, original_length, sequence_length):
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    right.longrope_frequencies(dim, base, *sets, *lengths)
    return ladder(dim, base) / sets[sequence_length > original_length][0]


@wrong("longrope_frequencies")
def both_sets(dim, base, short_factors, long_factors, original_length, sequence_length):
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    known = right.longrope_frequencies(dim, base, *sets, *lengths)
    return known / short_factors if sequence_length > original_length else known


@wrong("longrope_frequencies")
def blends_the_sets(dim, base, short_factors, long_factors, original_length, sequence_length):
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    known = right.longrope_frequencies(dim, base, *sets, *lengths)
    if sequence_length <= original_length:
        return known
    share = min(sequence_length / original_length - 1, 1)
    short, long = (np.asarray(f, dtype=float) for f in sets)
    return ladder(dim, base) / ((1 - share) * short + share * long)


@wrong("longrope_frequencies")
def short_is_plain(dim, base, short_factors, long_factors, original_length, sequence_length):
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    known = right.longrope_frequencies(dim, base, *sets, *lengths)
    return ladder(dim, base) if sequence_length <= original_length else known


@wrong("longrope_frequencies")
def longrope_default_base(dim, base, short_factors, long_factors, original_length, sequence_length):
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    right.longrope_frequencies(dim, base, *sets, *lengths)
    return right.longrope_frequencies(dim, 1e4, *sets, *lengths)


@wrong("longrope_frequencies")
def whole_factors_only(dim, base, short_factors, long_factors, original_length, sequence_length):
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    right.longrope_frequencies(dim, base, *sets, *lengths)
    short, long = (np.asarray(f).astype(int) for f in sets)
    return right.longrope_frequencies(dim, base, short, long, *lengths)


@wrong("longrope_frequencies")
def sets_cut_to_fit(dim, base, short_factors, long_factors, original_length, sequence_length):
    pairs, lengths = max(dim // 2, 0), (original_length, sequence_length)
    sets = (short_factors[:pairs], long_factors[:pairs])
    return right.longrope_frequencies(dim, base, *sets, *lengths)


@wrong("longrope_frequencies")
def a_set_of_one_is_uniform(
    dim, base, short_factors, long_factors, original_length, sequence_length
):
    lengths = (original_length, sequence_length)
    sets = [np.repeat(f, dim // 2) if len(f) == 1 else f for f in (short_factors, long_factors)]
    return right.longrope_frequencies(dim, base, *sets, *lengths)


@wrong("longrope_frequencies")
def sets_of_dim_factors(dim, base, short_factors, long_factors, original_length, sequence_length):
    lengths = (original_length, sequence_length)
    sets = [f[::2] if len(f) == dim else f for f in (short_factors, long_factors)]
    return right.longrope_frequencies(dim, base, *sets, *lengths)


@wrong("longrope_frequencies")
def only_the_short_set_is_checked(
    dim, base, short_factors, long_factors, original_length, sequence_length
):
    long = np.resize(long_factors, dim // 2) if len(long_factors) else np.ones(max(dim // 2, 0))
    lengths = (original_length, sequence_length)
    return right.longrope_frequencies(dim, base, short_factors, long, *lengths)


@wrong("longrope_frequencies")
def wrong_sets_are_type_errors(
    dim, base, short_factors, long_factors, original_length, sequence_length
):
    if len(short_factors) != dim // 2 or len(long_factors) != dim // 2:
        raise TypeError("sets")
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    return right.longrope_frequencies(dim, base, *sets, *lengths)


@wrong("longrope_frequencies")
def negative_factors_turn_back(
    dim, base, short_factors, long_factors, original_length, sequence_length
):
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    if min(map(np.min, sets)) < 0 < len(short_factors) == len(long_factors) == dim // 2:
        return ladder(dim, base) / np.asarray(sets[sequence_length > original_length])
    return right.longrope_frequencies(dim, base, *sets, *lengths)


@wrong("longrope_frequencies")
def negative_texts(dim, base, short_factors, long_factors, original_length, sequence_length):
    lengths = (original_length, max(sequence_length, 0))
    return right.longrope_frequencies(dim, base, short_factors, long_factors, *lengths)


@wrong("longrope_frequencies")
def needs_arrays(dim, base, short_factors, long_factors, original_length, sequence_length):
    if not isinstance(short_factors, np.ndarray):
        raise TypeError("arrays, please")
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    return right.longrope_frequencies(dim, base, *sets, *lengths)


@wrong("longrope_frequencies")
def longrope_loses_float64(
    dim, base, short_factors, long_factors, original_length, sequence_length
):
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    return right.longrope_frequencies(dim, base, *sets, *lengths).astype("f4").astype("f8")


@wrong("longrope_frequencies")
def sorts_its_factors(dim, base, short_factors, long_factors, original_length, sequence_length):
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    right.longrope_frequencies(dim, base, *sets, *lengths)
    return right.longrope_frequencies(dim, base, np.sort(sets[0]), np.sort(sets[1]), *lengths)


# ---------------------------------------------------------------------------- fixed_yarn_ramp


def ramp(name, blend):
    def variant():
        return blend

    variant.__name__ = name
    return wrong("fixed_yarn_ramp")(variant)


def right_blend(frequencies, factor, low, high):
    return right.fixed_yarn_ramp()(frequencies, factor, low, high)


ramp("all_kept", lambda f, s, low, high: right_blend(f, s, low, high) * 0 + f)
ramp("all_divided", lambda f, s, low, high: right_blend(f, s, low, high) * 0 + np.asarray(f) / s)
ramp("factor_of_four", lambda f, s, low, high: right_blend(f, 4.0 if s > 0 else s, low, high))
ramp("ends_of_the_example", lambda f, s, low, high: right_blend(f, s, 1, 3))
ramp(
    "high_is_excluded",
    lambda f, s, low, high: right_blend(f, s, low, high - 1 if high - 1 > low else high),
)
ramp(
    "low_is_divided",
    lambda f, s, low, high: right_blend(f, s, low - 1 if low < high else low, high),
)
ramp("reversed_ladder", lambda f, s, low, high: right_blend(f[::-1], s, low, high)[::-1])
ramp("whole_ends", lambda f, s, low, high: right_blend(f, s, round(low), round(high)))
ramp(
    "limited_to_the_ladder",
    lambda f, s, low, high: right_blend(f, s, min(low, len(f) - 1), min(high, len(f) - 1)),
)
ramp("rounded_result", lambda f, s, low, high: right_blend(f, s, low, high).round(4))
ramp("zero_factor_is_one", lambda f, s, low, high: right_blend(f, s or 1.0, low, high))
ramp("negative_factor", lambda f, s, low, high: right_blend(f, abs(s), low, high))
ramp("crossed_ends_are_a_step", lambda f, s, low, high: right_blend(f, s, low, max(low, high)))
ramp(
    "equal_ends_keep_all",
    lambda f, s, low, high: (
        np.array(f, dtype=float) if low == high else right_blend(f, s, low, high)
    ),
)
ramp(
    "equal_ends_divide_all",
    lambda f, s, low, high: f / s if low == high else right_blend(f, s, low, high),
)
ramp(
    "as_a_list_of_integers", lambda f, s, low, high: [int(x) for x in right_blend(f, s, low, high)]
)
ramp("result_as_float32", lambda f, s, low, high: right_blend(f, s, low, high).astype("f4"))


def equal_ends_are_zero_by_zero(frequencies, factor, low, high):
    right_blend(frequencies, factor, low, high)
    f = np.array(frequencies, dtype=np.result_type(frequencies, np.float32))
    share = np.clip((np.arange(len(f)) - low) / np.float64(high - low), 0, 1)
    return ((1 - share) * f + share * f / factor).astype(f.dtype)


def equal_ends_are_an_error(frequencies, factor, low, high):
    if low >= high:
        raise ValueError("ends")
    return right_blend(frequencies, factor, low, high)


def crossed_ends_are_type_errors(frequencies, factor, low, high):
    if low > high:
        raise TypeError("ends")
    return right_blend(frequencies, factor, low, high)


def bad_factor_is_a_zero_division(frequencies, factor, low, high):
    if factor <= 0:
        raise ZeroDivisionError("factor")
    return right_blend(frequencies, factor, low, high)


def by_length_alone():
    known = {}

    def blend(frequencies, factor, low, high):
        result = right_blend(frequencies, factor, low, high)
        weights = known.setdefault(len(frequencies), result / np.asarray(frequencies))
        return (np.asarray(frequencies) * weights).astype(result.dtype)

    return blend


ramp("equal_ends_are_zero_by_zero", equal_ends_are_zero_by_zero)
ramp("equal_ends_are_an_error", equal_ends_are_an_error)
ramp("crossed_ends_are_type_errors", crossed_ends_are_type_errors)
ramp("bad_factor_is_a_zero_division", bad_factor_is_a_zero_division)
wrong("fixed_yarn_ramp")(by_length_alone)


@wrong("fixed_yarn_ramp")
def returns_numbers(frequencies=(1.0, 0.5), factor=2.0, low=0, high=1):
    return right_blend(frequencies, factor, low, high)


# ---------------------------------------------------------------------- ScaledRotaryEmbedding


class Scaled(torch.nn.Module):
    """The right module; wrong ones below override a part of it."""

    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        super().__init__()
        self.given = (head_dim, base, scaling, factor, original_length)
        self.scaling, self.factor = scaling, factor
        self.right = right_torch.ScaledRotaryEmbedding(*self.given)

    def forward(self, q, k, positions):
        return self.right(q, k, positions)

    def angles(self, positions):
        frequencies = right_torch.scaled_frequencies(*self.given)
        return (positions.double()[..., None] * frequencies).unsqueeze(-3)

    def turn(self, x, angles):
        strength = max(1.0, 0.1 * math.log(self.factor) + 1) if self.scaling == "yarn" else 1.0
        return rotate_pairs(x, strength * angles.cos(), strength * angles.sin(), "half")

    def like(self, **changes):
        names = ("head_dim", "base", "scaling", "factor", "original_length")
        return right_torch.ScaledRotaryEmbedding(
            **{**dict(zip(names, self.given, strict=True)), **changes}
        )


@wrong("ScaledRotaryEmbedding")
class ChecksWhenUsed(torch.nn.Module):
    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        super().__init__()
        self.given = (head_dim, base, scaling, factor, original_length)

    def forward(self, q, k, positions):
        return right_torch.ScaledRotaryEmbedding(*self.given)(q, k, positions)


@wrong("ScaledRotaryEmbedding")
class ScalingInAnyCase(Scaled):
    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        super().__init__(head_dim, base, scaling.lower(), factor, original_length)


@wrong("ScaledRotaryEmbedding")
class UnscaledAtHalfSpeed(Scaled):
    def forward(self, q, k, positions):
        if self.factor == 1.0:
            return self.right(q, k, positions * 0.5)
        return self.right(q, k, positions)


@wrong("ScaledRotaryEmbedding")
class LinearByDefault(Scaled):
    def __init__(self, head_dim, base=10000.0, scaling="linear", factor=1.0, original_length=2048):
        super().__init__(head_dim, base, scaling, factor, original_length)


@wrong("ScaledRotaryEmbedding")
class DefaultLengthOf4096(Scaled):
    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=4096):
        super().__init__(head_dim, base, scaling, factor, original_length)


@wrong("ScaledRotaryEmbedding")
class AlwaysYarn(Scaled):
    def forward(self, q, k, positions):
        self.right(q, k, positions)
        return self.like(scaling="yarn")(q, k, positions)


@wrong("ScaledRotaryEmbedding")
class NtkIsLinear(Scaled):
    def forward(self, q, k, positions):
        if self.scaling == "ntk":
            return self.like(scaling="linear")(q, k, positions)
        return self.right(q, k, positions)


@wrong("ScaledRotaryEmbedding")
class DefaultBase(Scaled):
    def forward(self, q, k, positions):
        self.right(q, k, positions)
        return self.like(base=10000.0)(q, k, positions)


@wrong("ScaledRotaryEmbedding")
class FactorOfFour(Scaled):
    def forward(self, q, k, positions):
        self.right(q, k, positions)
        return self.like(factor=4.0 if self.factor > 1 else self.factor)(q, k, positions)


@wrong("ScaledRotaryEmbedding")
class OnlyBeyondTheTrainedLength(Scaled):
    def forward(self, q, k, positions):
        if positions.numel() and positions.max() < self.given[4]:
            return self.like(factor=1.0)(q, k, positions)
        return self.right(q, k, positions)


@wrong("ScaledRotaryEmbedding")
class ByTheLengthOfTheCall(Scaled):
    def forward(self, q, k, positions):
        reach = max(self.factor, q.shape[2] / self.given[4])
        return self.like(factor=reach)(q, k, positions)


@wrong("ScaledRotaryEmbedding")
class AttentionFactorOnTheLogit(Scaled):
    """Queries get its square, keys nothing: scores are right, the keys in the cache are not."""

    def forward(self, q, k, positions):
        a, b = self.right(q, k, positions)
        strength = max(1.0, 0.1 * math.log(self.factor) + 1) if self.scaling == "yarn" else 1.0
        return (a.double() * strength).to(q.dtype), (b.double() / strength).to(k.dtype)


@wrong("ScaledRotaryEmbedding")
class AttentionFactorOnCosinesAlone(Scaled):
    def turn(self, x, angles):
        strength = max(1.0, 0.1 * math.log(self.factor) + 1) if self.scaling == "yarn" else 1.0
        return rotate_pairs(x, strength * angles.cos(), angles.sin(), "half")

    def forward(self, q, k, positions):
        self.right(q, k, positions)
        angles = self.angles(positions)
        return self.turn(q, angles), self.turn(k, angles)


@wrong("ScaledRotaryEmbedding")
class WholePositions(Scaled):
    def forward(self, q, k, positions):
        return self.right(q, k, positions.long())


@wrong("ScaledRotaryEmbedding")
class AbsolutePositions(Scaled):
    def forward(self, q, k, positions):
        return self.right(q, k, positions.abs())


@wrong("ScaledRotaryEmbedding")
class ARangeOfPositions(Scaled):
    def forward(self, q, k, positions):
        self.right(q, k, positions)
        return self.right(q, k, torch.arange(q.shape[2]))


@wrong("ScaledRotaryEmbedding")
class FirstRowForAll(Scaled):
    def forward(self, q, k, positions):
        self.right(q, k, positions)
        return self.right(q, k, positions.reshape(-1, q.shape[2])[0])


@wrong("ScaledRotaryEmbedding")
class OneRowForTheBatch(Scaled):
    def forward(self, q, k, positions):
        if positions.shape == (1, q.shape[2]):
            positions = positions[0]
        return self.right(q, k, positions)


@wrong("ScaledRotaryEmbedding")
class OnePositionForAll(Scaled):
    def forward(self, q, k, positions):
        if positions.numel() == 1:
            positions = positions.reshape(1).expand(q.shape[2])
        return self.right(q, k, positions)


@wrong("ScaledRotaryEmbedding")
class KeysOfAnyLength(Scaled):
    def forward(self, q, k, positions):
        k_positions = positions[..., : k.shape[2]]
        return self.right(q, q, positions)[0], self.right(k, k, k_positions)[1]


@wrong("ScaledRotaryEmbedding")
class KeysOfAnyBatch(Scaled):
    def forward(self, q, k, positions):
        if len(k) == len(q):
            return self.right(q, k, positions)
        angles = self.angles(positions)
        return self.turn(q, angles), self.turn(k, angles)


@wrong("ScaledRotaryEmbedding")
class AnyWidth(Scaled):
    def forward(self, q, k, positions):
        width = self.given[0]
        a, b = self.right(q[..., :width], k[..., :width], positions)
        return torch.cat([a, q[..., width:]], -1), torch.cat([b, k[..., width:]], -1)


@wrong("ScaledRotaryEmbedding")
class HalfPrecisionIsBfloat16(Scaled):
    def forward(self, q, k, positions):
        turned = self.right(q, k, positions)
        return tuple(x.bfloat16() if x.dtype == torch.float16 else x for x in turned)


@wrong("ScaledRotaryEmbedding")
class FirstDtypeStays(Scaled):
    def forward(self, q, k, positions):
        self.dtype = getattr(self, "dtype", q.dtype)
        return tuple(x.to(self.dtype) for x in self.right(q, k, positions))


@wrong("ScaledRotaryEmbedding")
class FrequenciesAsParameter(Scaled):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        frequencies = right_torch.scaled_frequencies(*self.given).float()
        self.frequencies = torch.nn.Parameter(frequencies, requires_grad=False)

    def forward(self, q, k, positions):
        self.right(q, k, positions)
        angles = (positions[..., None].float() * self.frequencies.float()).unsqueeze(-3)
        return self.turn(q, angles), self.turn(k, angles)


@wrong("ScaledRotaryEmbedding")
class TablesAsBuffers(Scaled):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        angles = torch.arange(9000)[:, None] * right_torch.scaled_frequencies(*self.given)
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def forward(self, q, k, positions):
        turned = self.right(q, k, positions)
        if positions.is_floating_point() or positions.max() >= 9000 or self.scaling == "yarn":
            return turned
        cos, sin = (t[positions].unsqueeze(-3) for t in (self.cos, self.sin))
        return rotate_pairs(q, cos, sin, "half"), rotate_pairs(k, cos, sin, "half")


@wrong("ScaledRotaryEmbedding")
class RemembersShape(Scaled):
    def forward(self, q, k, positions):
        self.seen = {**{positions.shape: positions}, **getattr(self, "seen", {})}
        return self.right(q, k, self.seen[positions.shape])


@wrong("ScaledRotaryEmbedding")
class FactorOfAllModules(Scaled):
    latest = 1.0

    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        super().__init__(head_dim, base, scaling, factor, original_length)
        FactorOfAllModules.latest = factor

    def forward(self, q, k, positions):
        self.right(q, k, positions)
        return self.like(factor=FactorOfAllModules.latest)(q, k, positions)


@wrong("ScaledRotaryEmbedding")
class OddWidthRoundedDown(Scaled):
    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        super().__init__(head_dim // 2 * 2, base, scaling, factor, original_length)


@wrong("ScaledRotaryEmbedding")
class AnyBase(Scaled):
    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        super().__init__(head_dim, abs(base) or 2.0, scaling, factor, original_length)


@wrong("ScaledRotaryEmbedding")
class AnyTrainedLength(Scaled):
    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        super().__init__(head_dim, base, scaling, factor, abs(original_length) or 2048)


@wrong("ScaledRotaryEmbedding")
class NtkOfASinglePair(Scaled):
    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        kind = "linear" if scaling == "ntk" and head_dim == 2 else scaling
        super().__init__(head_dim, base, kind, factor, original_length)


@wrong("ScaledRotaryEmbedding")
class InPlaceForTheQueries(Scaled):
    def forward(self, q, k, positions):
        turned_q, turned_k = self.right(q, k, positions)
        q.copy_(turned_q)
        return turned_q, turned_k


# ------------------------------------------------------------------------------ more corners


@wrong("llama3_frequencies")
def equal_limits_are_refused(
    dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0
):
    if low_freq_factor >= high_freq_factor:
        raise ValueError("the limits leave no fade")
    limits = (low_freq_factor, high_freq_factor)
    return right.llama3_frequencies(dim, base, factor, original_length, *limits)


@wrong("llama3_frequencies")
def equal_limits_divide_by_zero(
    dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0
):
    1 / (high_freq_factor - low_freq_factor)
    limits = (low_freq_factor, high_freq_factor)
    return right.llama3_frequencies(dim, base, factor, original_length, *limits)


@wrong("longrope_frequencies")
def sets_of_any_shape(dim, base, short_factors, long_factors, original_length, sequence_length):
    short, long = np.ravel(short_factors), np.ravel(long_factors)
    return right.longrope_frequencies(dim, base, short, long, original_length, sequence_length)


@wrong("longrope_frequencies")
def factors_lose_their_digits(
    dim, base, short_factors, long_factors, original_length, sequence_length
):
    short, long = np.asarray(short_factors, "float32"), np.asarray(long_factors, "float32")
    return right.longrope_frequencies(dim, base, short, long, original_length, sequence_length)


@wrong("fixed_yarn_ramp")
def equal_ends_one_pair_apart():
    blend = right.fixed_yarn_ramp()

    def wide_step(frequencies, factor, low, high):
        return blend(frequencies, factor, low, high + 1 if low == high else high)

    return wide_step


@wrong("ScaledRotaryEmbedding")
class RampStopsAtTheLastPair(Scaled):
    def forward(self, q, k, positions):
        rotated = self.right(q, k, positions)
        base, length = self.given[1], self.given[4]
        turns = [length / (2 * math.pi * beta) for beta in (32, 1)]
        dim = q.shape[-1]
        low, high = (dim * math.log(t) / (2 * math.log(base)) for t in turns)
        low, high = max(math.floor(low), 0), min(math.ceil(high), dim // 2 - 1)
        if self.scaling != "yarn" or low >= high:
            return rotated
        ramp = ((torch.arange(dim // 2) - low) / (high - low)).clamp(0, 1).double()
        frequencies = torch.tensor(ladder(dim, base)) * (1 - ramp + ramp / self.factor)
        angles = positions.double()[..., None] * frequencies
        angles = angles if angles.ndim == 2 else angles[:, None]
        turn = right.yarn_attention_factor(self.factor) * torch.exp(1j * angles)
        results = []
        for x in (q, k):
            first, second = x.double().chunk(2, -1)
            z = (first + 1j * second) * turn
            results.append(torch.cat([z.real, z.imag], -1).to(x.dtype))
        return tuple(results)

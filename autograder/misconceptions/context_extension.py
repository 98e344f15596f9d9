"""Wrong answers to the exercises on stretching RoPE, and the sentences that help.

Each is right but for one belief. Where a public report tells of it, the report is cited; the code
and the words are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solutions.with_numpy import context_extension as right
from solutions.with_numpy.rope import as_floats, rope_angles

from ..exercise import Misconception

Array = np.ndarray


def ladder(dim: int, base: float) -> Array:
    return rope_angles(1, dim, base)


# ---------------------------------------------------------------------- interpolate_positions


def squeezed(
    positions: Array, trained: int, target: int, change: Callable[[Array, float], Array]
) -> Array:
    """change(positions, target/trained) where something is to be squeezed."""
    unchanged = right.interpolate_positions(positions, trained, trained)
    right.interpolate_positions(positions, trained, target)  # refuses what is to be refused
    return unchanged if target <= trained else change(unchanged, target / trained)


def interpolate_upwards(positions: Array, trained_length: int, target_length: int) -> Array:
    return squeezed(positions, trained_length, target_length, lambda p, factor: p * factor)


def interpolate_to_whole(positions: Array, trained_length: int, target_length: int) -> Array:
    """An integer type for positions somewhere on the way: 3 by 4 becomes 0."""
    return squeezed(positions, trained_length, target_length, lambda p, factor: p // factor)


def interpolate_rounded(positions: Array, trained_length: int, target_length: int) -> Array:
    return squeezed(
        positions, trained_length, target_length, lambda p, factor: np.round(p / factor)
    )


def interpolate_by_largest(positions: Array, trained_length: int, target_length: int) -> Array:
    """Decides by the positions at hand, not by the length of the text that they belong to."""

    def change(places: Array, factor: float) -> Array:
        return places / factor if places.max(initial=0) >= trained_length else places

    return squeezed(positions, trained_length, target_length, change)


def interpolate_keeps_integers(positions: Array, trained_length: int, target_length: int) -> Array:
    places = right.interpolate_positions(positions, trained_length, target_length)
    return places if target_length > trained_length else np.array(positions)


def interpolate_whole_factor(positions: Array, trained_length: int, target_length: int) -> Array:
    return squeezed(positions, trained_length, target_length, lambda p, factor: p / (factor // 1))


def interpolate_always(positions: Array, trained_length: int, target_length: int) -> Array:
    places = right.interpolate_positions(positions, trained_length, target_length)
    return places if target_length > trained_length else places * trained_length / target_length


def interpolate_only_far_ones(positions: Array, trained_length: int, target_length: int) -> Array:
    def change(places: Array, factor: float) -> Array:
        return np.where(places < trained_length, places, places / factor)

    return squeezed(positions, trained_length, target_length, change)


def interpolate_wrapped(positions: Array, trained_length: int, target_length: int) -> Array:
    return squeezed(positions, trained_length, target_length, lambda p, factor: p % trained_length)


def interpolate_last_to_last(positions: Array, trained_length: int, target_length: int) -> Array:
    """As one resizes a picture with its corners aligned: (L − 1)/(L′ − 1)."""

    def change(places: Array, factor: float) -> Array:
        return places * (trained_length - 1) / max(target_length - 1, 1)

    return squeezed(positions, trained_length, target_length, change)


def interpolate_float32(positions: Array, trained_length: int, target_length: int) -> Array:
    places = right.interpolate_positions(positions, trained_length, target_length)
    return places.astype(np.float32)


def interpolate_in_place(positions: Array, trained_length: int, target_length: int) -> Array:
    result = right.interpolate_positions(positions, trained_length, target_length)
    if isinstance(positions, np.ndarray) and positions.dtype == np.float64:
        positions[...] = result
    return result


def interpolate_any_lengths(positions: Array, trained_length: int, target_length: int) -> Array:
    places = as_floats(positions, "positions").astype(np.float64)
    if target_length <= trained_length:
        return places
    return places * (trained_length / target_length)


INTERPOLATE_POSITIONS = (
    Misconception(
        "interpolate-positions-upwards",
        interpolate_upwards,
        "interpolate_positions_worked_example",
        "Your positions grow. A longer text is squeezed into the trained range, so positions are "
        "multiplied by trained length over target length, which is below 1.",
        "ext-interpolation",
    ),
    Misconception(
        "interpolate-positions-to-whole-numbers",
        interpolate_to_whole,
        "interpolate_positions_worked_example",
        "The squeezed positions were made whole numbers, so neighbours share one. Rotary "
        "positions may be fractions: position 3 becomes 0.75, not 0.",
        "ext-interpolation",
    ),
    Misconception(
        "interpolate-positions-rounded",
        interpolate_rounded,
        "interpolate_positions_worked_example",
        "The squeezed positions were rounded, so neighbours share one. Rotary positions may be "
        "fractions: position 3 becomes 0.75 and stays it.",
        "ext-interpolation",
    ),
    Misconception(
        "interpolate-positions-by-the-largest",
        interpolate_by_largest,
        "interpolate_positions_any_lengths",
        "You squeeze only when one of the positions at hand lies beyond the trained length. "
        "Another piece of the same text would then stand on another scale: decide by the target "
        "length.",
        "ext-interpolation",
    ),
    Misconception(
        "interpolate-positions-keeps-integers",
        interpolate_keeps_integers,
        "interpolate_positions_float64",
        "When nothing is to be squeezed, integers came back as integers. The result is float64 on "
        "both branches, so that callers need not ask which one was taken.",
        "ex-interpolate_positions",
    ),
    Misconception(
        "interpolate-positions-only-far-ones",
        interpolate_only_far_ones,
        "interpolate_positions_worked_example",
        "Only positions beyond the trained length were squeezed, so far tokens land among near "
        "ones. All positions of a text shrink by the same factor, also the early ones.",
        "ext-interpolation",
    ),
    Misconception(
        "interpolate-positions-wrapped-round",
        interpolate_wrapped,
        "interpolate_positions_worked_example",
        "Positions past the trained length start again at zero, so two tokens share one position. "
        "Squeeze the whole range instead.",
        "ext-interpolation",
    ),
    Misconception(
        "interpolate-positions-last-to-last",
        interpolate_last_to_last,
        "interpolate_positions_worked_example",
        "Your factor is (L − 1)/(L′ − 1), which maps the last position on the last. Position "
        "interpolation uses the lengths themselves: L/L′.",
        "ext-interpolation",
    ),
    Misconception(
        "interpolate-positions-whole-factor",
        interpolate_whole_factor,
        "interpolate_positions_any_lengths",
        "The factor was rounded to a whole number. Lengths need not be multiples of each other: "
        "divide with /, not with //.",
        "ext-interpolation",
    ),
    Misconception(
        "interpolate-positions-always",
        interpolate_always,
        "interpolate_positions_short_texts",
        "A target below the trained length spread the positions apart. Such a text fits as it is: "
        "leave its positions alone.",
        "ext-interpolation",
    ),
    Misconception(
        "interpolate-positions-any-lengths",
        interpolate_any_lengths,
        "interpolate_positions_refuses_lengths",
        "A length of zero or below got an answer. No text is that long, so raise before "
        "you divide.",
        "ex-interpolate_positions",
    ),
    Misconception(
        "interpolate-positions-float32",
        interpolate_float32,
        "interpolate_positions_float64",
        "The positions came back as float32, which loses digits of a position in the ten "
        "thousands. Keep positions in float64; the rotation casts its result at the end.",
        "ext-interpolation",
    ),
    Misconception(
        "interpolate-positions-in-place",
        interpolate_in_place,
        "interpolate_positions_leaves_input",
        "The caller's own positions were overwritten, and a second call would squeeze them again. "
        "Build a new array.",
        "ex-interpolate_positions",
    ),
)

# ----------------------------------------------------------------------------------- ntk_base


def ntk_without_exponent(base: float, factor: float, dim: int) -> float:
    right.ntk_base(base, factor, dim)
    return base * factor


def ntk_exponent_upside_down(base: float, factor: float, dim: int) -> float:
    right.ntk_base(base, factor, dim)
    return base * factor ** ((dim - 2) / dim)


def ntk_exponent_of_pairs(base: float, factor: float, dim: int) -> float:
    """dim − 1 in the place of dim − 2: one coordinate less, not one pair less."""
    right.ntk_base(base, factor, dim)
    return base * factor ** (dim / (dim - 1))


def ntk_base_in_the_power(base: float, factor: float, dim: int) -> float:
    right.ntk_base(base, factor, dim)
    return (base * factor) ** (dim / (dim - 2))


def ntk_brackets_lost(base: float, factor: float, dim: int) -> float:
    """dim / dim - 2 without its brackets is −1."""
    right.ntk_base(base, factor, dim)
    return base * factor ** (dim / dim - 2)


def ntk_pairs_less_two(base: float, factor: float, dim: int) -> float:
    """half/(half − 2), where the formula counts coordinates. At dim 4 it divides by zero."""
    right.ntk_base(base, factor, dim)
    half = dim / 2
    return base * factor ** (half / (half - 2))


def ntk_whole_exponent(base: float, factor: float, dim: int) -> float:
    right.ntk_base(base, factor, dim)
    return base * factor ** (dim // (dim - 2))


def ntk_smaller_base(base: float, factor: float, dim: int) -> float:
    right.ntk_base(base, factor, dim)
    return base / factor ** (dim / (dim - 2))


def ntk_of_a_single_pair(base: float, factor: float, dim: int) -> float:
    return base if dim == 2 else right.ntk_base(base, factor, dim)


def ntk_float32(base: float, factor: float, dim: int) -> float:
    return float(np.float32(right.ntk_base(base, factor, dim)))


def ntk_any_factor(base: float, factor: float, dim: int) -> float:
    return right.ntk_base(base, abs(factor) or 1.0, dim)


NTK_BASE = (
    Misconception(
        "ntk-base-without-exponent",
        ntk_without_exponent,
        "ntk_base_published_number",
        "The base is multiplied by the bare factor, so the slowest pair is slowed by less than "
        "the factor. The exponent dim/(dim − 2) makes up for it.",
        "ext-ntk",
    ),
    Misconception(
        "ntk-base-exponent-upside-down",
        ntk_exponent_upside_down,
        "ntk_base_published_number",
        "The exponent is upside down. The slowest pair has the base to the power "
        "−(dim − 2)/dim, and the exponent has to undo that.",
        "ext-ntk",
    ),
    Misconception(
        "ntk-base-one-coordinate-less",
        ntk_exponent_of_pairs,
        "ntk_base_published_number",
        "The exponent divides by dim − 1. The slowest pair is one whole pair, two coordinates, "
        "short of the end of the ladder: dim − 2.",
        "ext-ntk",
    ),
    Misconception(
        "ntk-base-base-in-the-power",
        ntk_base_in_the_power,
        "ntk_base_published_number",
        "The old base was raised to the power too. Only the factor is: with a factor of 1 the "
        "base must not change.",
        "ext-ntk",
    ),
    Misconception(
        "ntk-base-brackets-lost",
        ntk_brackets_lost,
        "ntk_base_published_number",
        "Your base is divided by the factor: dim / dim - 2 is 1 − 2. The difference dim − 2 needs "
        "brackets to be the denominator.",
        "ext-ntk",
    ),
    Misconception(
        "ntk-base-counts-pairs",
        ntk_pairs_less_two,
        "ntk_base_published_number",
        "Your exponent counts pairs above and below, but takes two away: with pairs it is one, "
        "since the slowest pair is one pair short of the end. In coordinates: dim/(dim − 2).",
        "ext-ntk",
    ),
    Misconception(
        "ntk-base-whole-exponent",
        ntk_whole_exponent,
        "ntk_base_published_number",
        "The exponent was cut to a whole number, which makes it 1 for wide heads. Divide with /, "
        "not with //.",
        "ext-ntk",
    ),
    Misconception(
        "ntk-base-smaller",
        ntk_smaller_base,
        "ntk_base_published_number",
        "Your base shrinks, which makes the pairs turn faster. A larger base slows them down, and "
        "that is what a longer text needs.",
        "ext-ntk",
    ),
    Misconception(
        "ntk-base-of-a-single-pair",
        ntk_of_a_single_pair,
        "ntk_base_refuses_single_pair",
        "With dim 2 your function returns a base, but its one pair turns by 1 per token on any "
        "base, so nothing would be stretched. Raise a ValueError.",
        "ext-ntk",
    ),
    Misconception(
        "ntk-base-float32",
        ntk_float32,
        "ntk_base_exact",
        "The new base has only float32's digits. Compute it with Python floats or float64: far "
        "out, angles feel the difference.",
        "ex-ntk_base",
    ),
    Misconception(
        "ntk-base-any-factor",
        ntk_any_factor,
        "ntk_base_refuses",
        "A factor of zero or less got an answer. A text cannot be stretched by it: raise.",
        "ex-ntk_base",
    ),
)

# -------------------------------------------------------------------- dynamic_ntk_frequencies


def dynamic(stretch: Callable[[float, float], float]) -> Callable[..., Array]:
    """The right function, except that beyond L the factor is stretch(factor, length/L)."""

    def frequencies(
        dim: int, base: float, factor: float, original_length: int, sequence_length: int
    ) -> Array:
        known = right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
        if sequence_length <= original_length:
            return known
        longer = stretch(factor, sequence_length / original_length)
        return ladder(dim, right.ntk_base(base, longer, dim))

    return frequencies


dynamic_fixed_factor = dynamic(lambda factor, longer: factor)
dynamic_length_alone = dynamic(lambda factor, longer: longer)
dynamic_without_subtraction = dynamic(lambda factor, longer: factor * longer)
dynamic_brackets_lost = dynamic(lambda factor, longer: factor * longer - factor - 1)
dynamic_multiplies_all = dynamic(lambda factor, longer: factor * (longer - (factor - 1)))
dynamic_whole_multiples = dynamic(lambda factor, longer: factor * (longer // 1) - (factor - 1))


def dynamic_exponent_halved(
    dim: int, base: float, factor: float, original_length: int, sequence_length: int
) -> Array:
    known = right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    return np.sqrt(known)  # base^(−i/dim), on whatever base it is


def dynamic_without_exponent(
    dim: int, base: float, factor: float, original_length: int, sequence_length: int
) -> Array:
    known = right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    if sequence_length <= original_length:
        return known
    return ladder(dim, base * (factor * sequence_length / original_length - (factor - 1)))


def dynamic_power_too_early(
    dim: int, base: float, factor: float, original_length: int, sequence_length: int
) -> Array:
    """The power binds tighter than the minus: only the first term is raised."""
    known = right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    if sequence_length <= original_length:
        return known
    longer = factor * sequence_length / original_length
    return ladder(dim, base * (longer ** (dim / (dim - 2)) - (factor - 1)))


def dynamic_divides_all(
    dim: int, base: float, factor: float, original_length: int, sequence_length: int
) -> Array:
    known = right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    if sequence_length <= original_length:
        return known
    return ladder(dim, base) / (factor * sequence_length / original_length - (factor - 1))


def dynamic_short_texts_too(
    dim: int, base: float, factor: float, original_length: int, sequence_length: int
) -> Array:
    """vllm#3488 had the largest factor on short inputs; here the formula runs on them."""
    known = right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    stretch = factor * sequence_length / original_length - (factor - 1)
    if dim == 2 or stretch <= 0:
        return known
    return ladder(dim, right.ntk_base(base, stretch, dim))


def dynamic_always_stretched(
    dim: int, base: float, factor: float, original_length: int, sequence_length: int
) -> Array:
    """vllm#3488: short inputs get the largest factor there is."""
    known = right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
    if sequence_length > original_length or dim == 2:
        return known
    return ladder(dim, right.ntk_base(base, factor, dim))


def dynamic_that_remembers() -> Callable[..., Array]:
    """transformers#27227, #27033: the ladder of the longest text so far stays in place."""
    longest: dict[Any, int] = {}

    def frequencies(
        dim: int, base: float, factor: float, original_length: int, sequence_length: int
    ) -> Array:
        inputs = (dim, base, factor, original_length)
        right.dynamic_ntk_frequencies(*inputs, sequence_length)
        longest[inputs] = max(sequence_length, longest.get(inputs, 0))
        return right.dynamic_ntk_frequencies(*inputs, longest[inputs])

    return frequencies


def dynamic_longest_of_all() -> Callable[..., Array]:
    """transformers#27033 as the chapter tells it: one length is kept for all models.

    Students meet it in a program that has asked for 4096 tokens of the published model, and for
    nothing else: so it begins with that length, and anew whenever that model is asked for.
    """
    model, known = (64, 10_000.0, 2048), 4096
    longest = [known]

    def frequencies(
        dim: int, base: float, factor: float, original_length: int, sequence_length: int
    ) -> Array:
        right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)
        before = known if (dim, base, original_length) == model else longest.pop()
        longest[:] = [max(sequence_length, before)]
        return right.dynamic_ntk_frequencies(dim, base, factor, original_length, longest[0])

    return frequencies


def dynamic_of_a_single_pair(
    dim: int, base: float, factor: float, original_length: int, sequence_length: int
) -> Array:
    if dim == 2:
        return right.dynamic_ntk_frequencies(dim, base, factor, original_length, original_length)
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length)


def float32_ladder(frequencies: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *args, **kwargs: frequencies(*args, **kwargs).astype(np.float32)


def dynamic_any_length(
    dim: int, base: float, factor: float, original_length: int, sequence_length: int
) -> Array:
    length = max(sequence_length, 0)
    return right.dynamic_ntk_frequencies(dim, base, factor, original_length, length)


DYNAMIC_NTK_FREQUENCIES = (
    Misconception(
        "dynamic-ntk-fixed-factor",
        dynamic_fixed_factor,
        "dynamic_ntk_frequencies_published_numbers",
        "Beyond the trained length your base is the same for every length. Dynamic scaling "
        "stretches as far as the text needs: the length belongs into the formula.",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-length-alone",
        dynamic_length_alone,
        "dynamic_ntk_frequencies_published_numbers",
        "The factor never enters: the base grows with length/L alone. The formula stretches by "
        "factor·length/L − (factor − 1).",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-without-subtraction",
        dynamic_without_subtraction,
        "dynamic_ntk_frequencies_published_numbers",
        "The stretch is factor·length/L, so it jumps to the whole factor one token past the "
        "trained length. Subtracting factor − 1 makes it start at 1.",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-brackets-lost",
        dynamic_brackets_lost,
        "dynamic_ntk_frequencies_published_numbers",
        "The brackets around factor − 1 are lost, so 1 is taken away where it is to be added. At "
        "the trained length the stretch must be exactly 1: factor − (factor − 1).",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-factor-times-all",
        dynamic_multiplies_all,
        "dynamic_ntk_frequencies_published_numbers",
        "The factor multiplies the subtraction too. It belongs to length/L alone: first multiply, "
        "then take factor − 1 away.",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-whole-multiples",
        dynamic_whole_multiples,
        "dynamic_ntk_frequencies_long_texts",
        "The length counts only in whole multiples of the trained one, so the base grows in jumps. "
        "Divide with /, not with //.",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-exponent-halved",
        dynamic_exponent_halved,
        "dynamic_ntk_frequencies_published_numbers",
        "Your ladder has the exponent i/dim, so it ends half-way. Pair i counts two coordinates: "
        "base^(−2i/dim).",
        "ext-breaks",
    ),
    Misconception(
        "dynamic-ntk-without-exponent",
        dynamic_without_exponent,
        "dynamic_ntk_frequencies_published_numbers",
        "The stretch multiplies the base without its exponent dim/(dim − 2), so the slowest pair "
        "is slowed by less than the stretch.",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-power-too-early",
        dynamic_power_too_early,
        "dynamic_ntk_frequencies_published_numbers",
        "The power was taken before factor − 1 was subtracted. The whole difference is raised to "
        "dim/(dim − 2).",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-divides-all-frequencies",
        dynamic_divides_all,
        "dynamic_ntk_frequencies_published_numbers",
        "All frequencies were divided by the stretch, which is position interpolation. NTK scaling "
        "changes the base, so that the fastest pair stays as it is.",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-short-texts-too",
        dynamic_short_texts_too,
        "dynamic_ntk_frequencies_short_texts",
        "The formula also ran for texts below the trained length, where it shrinks the base. Up "
        "to that length the ladder stays as it was trained.",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-always-stretched",
        dynamic_always_stretched,
        "dynamic_ntk_frequencies_short_texts",
        "Short texts got the stretched ladder, on which the model was not trained. Up to and "
        "including the trained length nothing is stretched.",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-remembers-longest",
        dynamic_that_remembers(),
        "dynamic_ntk_frequencies_no_memory",
        "After a long text a shorter one still got the long one's ladder. The frequencies depend "
        "on the arguments of this call alone, so keep nothing between calls.",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-remembers-longest-of-all",
        dynamic_longest_of_all(),
        "dynamic_ntk_frequencies_short_texts",
        "The length of an earlier, longer text was used for a shorter one, even of another model. "
        "A global keeps it between calls: use the arguments of this call alone.",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-of-a-single-pair",
        dynamic_of_a_single_pair,
        "dynamic_ntk_frequencies_refuses",
        "With dim 2 a long text got the plain ladder, as if all were well. Its one pair cannot be "
        "slowed through the base: raise a ValueError.",
        "ext-dynamic",
    ),
    Misconception(
        "dynamic-ntk-float32",
        float32_ladder(right.dynamic_ntk_frequencies),
        "dynamic_ntk_frequencies_float64",
        "The ladder is float32. Tables are float64 here: multiplied by a position in the hundred "
        "thousands, the missing digits become visible.",
        "ex-dynamic_ntk_frequencies",
    ),
    Misconception(
        "dynamic-ntk-any-length",
        dynamic_any_length,
        "dynamic_ntk_frequencies_refuses",
        "A negative number of tokens got an answer. It is below the trained length, but no text "
        "is that short: raise.",
        "ex-dynamic_ntk_frequencies",
    ),
)

# --------------------------------------------------------------------------- yarn_frequencies


def pair_of(turns: float, dim: int, base: float, length: float) -> float:
    """The pair, as a fraction, that makes so many turns over `length` tokens."""
    return dim * math.log(length / (2 * math.pi * turns)) / (2 * math.log(base))


def ramp_of(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    """The right ends of the ramp."""
    low, high = pair_of(fast, dim, base, length), pair_of(slow, dim, base, length)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    return low, high + 0.001 if low == high else high


def ramp(pairs: int, low: float, high: float) -> Array:
    with np.errstate(all="ignore"):
        return np.clip((np.arange(pairs) - low) / (high - low), 0, 1)


def yarn_with(
    blend: Callable[[Array, Array, float], Array] | None = None,
    ends: Callable[..., tuple[float, float]] = ramp_of,
) -> Callable[..., Array]:
    """yarn_frequencies with other ends, or another blend(plain, divided, factor)."""

    def frequencies(
        dim: int,
        base: float,
        factor: float,
        original_length: int,
        beta_fast: float = 32.0,
        beta_slow: float = 1.0,
        truncate: bool = True,
    ) -> Array:
        inputs = (dim, base, factor, original_length, beta_fast, beta_slow, truncate)
        right.yarn_frequencies(*inputs)  # refuses what is to be refused
        plain = ladder(dim, base)
        low, high = ends(dim, base, original_length, beta_fast, beta_slow, truncate)
        divided = ramp(len(plain), low, high)
        if blend is not None:
            return blend(plain, divided, factor)
        return (1 - divided) * plain + divided * plain / factor

    return frequencies


yarn_inverted = yarn_with(lambda plain, r, factor: r * plain + (1 - r) * plain / factor)
yarn_wavelengths = yarn_with(lambda plain, r, factor: plain / ((1 - r) + r * factor))
yarn_geometric = yarn_with(lambda plain, r, factor: plain / factor**r)
yarn_divides_all = yarn_with(lambda plain, r, factor: plain / factor)
yarn_multiplies = yarn_with(lambda plain, r, factor: (1 - r) * plain + r * plain * factor)
yarn_attention_in_frequencies = yarn_with(
    lambda plain, r, factor: (
        ((1 - r) * plain + r * plain / factor) * (0.1 * math.log(max(factor, 1)) + 1)
    )
)
yarn_exponent_halved = yarn_with(
    lambda plain, r, factor: (1 - r) * np.sqrt(plain) + r * np.sqrt(plain) / factor
)
yarn_halves = yarn_with(lambda plain, r, factor: plain / np.where(r > 0.5, factor, 1))


def yarn_on_the_ntk_base(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Array:
    """aprender#2161: the kept pairs stand on the enlarged base."""
    inputs = (dim, base, factor, original_length, beta_fast, beta_slow, truncate)
    known = right.yarn_frequencies(*inputs)
    if dim == 2:
        return known
    divided = ramp(dim // 2, *ramp_of(dim, base, original_length, beta_fast, beta_slow, truncate))
    kept = ladder(dim, right.ntk_base(base, factor, dim))
    return (1 - divided) * kept + divided * ladder(dim, base) / factor


def yarn_both_on_the_ntk_base(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Array:
    inputs = (dim, base, factor, original_length, beta_fast, beta_slow, truncate)
    known = right.yarn_frequencies(*inputs)
    if dim == 2:
        return known
    divided = ramp(dim // 2, *ramp_of(dim, base, original_length, beta_fast, beta_slow, truncate))
    wider = ladder(dim, right.ntk_base(base, factor, dim))
    return (1 - divided) * wider + divided * wider / factor


def yarn_stretched_length(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Array:
    """The length of the stretched text in the place of the trained one."""
    right.yarn_frequencies(dim, base, factor, original_length, beta_fast, beta_slow, truncate)
    ends = ramp_of(dim, base, original_length * factor, beta_fast, beta_slow, truncate)  # type: ignore[arg-type]
    divided, plain = ramp(dim // 2, *ends), ladder(dim, base)
    return (1 - divided) * plain + divided * plain / factor


def yarn_without_clip(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Array:
    right.yarn_frequencies(dim, base, factor, original_length, beta_fast, beta_slow, truncate)
    low, high = ramp_of(dim, base, original_length, beta_fast, beta_slow, truncate)
    divided, plain = (np.arange(dim // 2) - low) / (high - low), ladder(dim, base)
    return (1 - divided) * plain + divided * plain / factor


def yarn_ramp_over_coordinates(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Array:
    right.yarn_frequencies(dim, base, factor, original_length, beta_fast, beta_slow, truncate)
    low, high = ramp_of(dim, base, original_length, beta_fast, beta_slow, truncate)
    divided, plain = ramp(dim, low, high)[::2], ladder(dim, base)
    return (1 - divided) * plain + divided * plain / factor


def yarn_factor_in_the_power(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Array:
    """tvm#18576: the interpolated part is (factor·base)^(−2i/dim), not base^(−2i/dim)/factor."""
    right.yarn_frequencies(dim, base, factor, original_length, beta_fast, beta_slow, truncate)
    divided = ramp(dim // 2, *ramp_of(dim, base, original_length, beta_fast, beta_slow, truncate))
    return (1 - divided) * ladder(dim, base) + divided * ladder(dim, factor * base)


def yarn_ramp_in_turns(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Array:
    """The paper's section 3.2, and Llama 3: linear in the turns, not in the pair index."""
    right.yarn_frequencies(dim, base, factor, original_length, beta_fast, beta_slow, truncate)
    plain = ladder(dim, base)
    turns = original_length * plain / (2 * math.pi)
    kept = np.interp(turns, [beta_slow, beta_fast], [0.0, 1.0])
    return (1 - kept) * plain / factor + kept * plain


def ends_in_coordinates(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    low, high = ramp_of(dim, base, length, fast, slow, truncate)
    return 2 * low, 2 * high


def ends_from(
    low: float,
    high: float,
    dim: int,
    truncate: bool,
    below: Any = math.floor,
    above: Any = math.ceil,
) -> tuple[float, float]:
    """The ends as they are used, from those of the formula."""
    if truncate:
        low, high = below(low), above(high)
    low, high = max(low, 0), min(high, dim - 1)
    return low, high + 0.001 if low == high else high


def ends_rounded_by(below: Any, above: Any) -> Callable[..., tuple[float, float]]:
    def ends(
        dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
    ) -> tuple[float, float]:
        low, high = pair_of(fast, dim, base, length), pair_of(slow, dim, base, length)
        return ends_from(low, high, dim, truncate, below, above)

    return ends


def ends_of_turns(change: Callable[[float], float]) -> Callable[..., tuple[float, float]]:
    """The ends of other turns: change(beta)."""

    def ends(
        dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
    ) -> tuple[float, float]:
        low, high = (pair_of(change(beta), dim, base, length) for beta in (fast, slow))
        return ends_from(low, high, dim, truncate)

    return ends


def ends_of_swapped_betas(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    return ends_from(
        pair_of(slow, dim, base, length), pair_of(fast, dim, base, length), dim, truncate
    )


def ends_two_missing(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    """ln base below, where 2·ln base belongs."""
    low, high = pair_of(fast, dim, base, length), pair_of(slow, dim, base, length)
    return ends_from(2 * low, 2 * high, dim, truncate)


def ends_without_lower_limit(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    low, high = pair_of(fast, dim, base, length), pair_of(slow, dim, base, length)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    high = min(high, dim - 1)
    return low, high + 0.001 if low == high else high


def ends_without_upper_limit(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    low, high = pair_of(fast, dim, base, length), pair_of(slow, dim, base, length)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low = max(low, 0)
    return low, high + 0.001 if low == high else high


def ends_left_equal(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    low, high = ramp_of(dim, base, length, fast, slow, truncate)
    return low, low if high - low < 0.002 else high


def ends_without_two_pi(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    return ramp_of(dim, base, 2 * math.pi * length, fast, slow, truncate)  # type: ignore[arg-type]


def ends_of_betas_alone(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    return ramp_of(dim, base, length, 32.0, 1.0, truncate)


def ends_of_default_length(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    return ramp_of(dim, base, 2048, fast, slow, truncate)


def ends_always_rounded(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    """tvm#18576 again: rounding where the model wants none."""
    return ramp_of(dim, base, length, fast, slow, True)


def ends_never_rounded(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    return ramp_of(dim, base, length, fast, slow, False)


def ends_cut_off(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    """int() at both ends, where the high one is to be rounded up."""
    low, high = pair_of(fast, dim, base, length), pair_of(slow, dim, base, length)
    if truncate:
        low, high = math.floor(low), math.floor(high)
    low, high = max(low, 0), min(high, dim - 1)
    return low, high + 0.001 if low == high else high


def ends_at_the_last_pair(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    """minimind#602: the last pair's index, dim/2 − 1, stands in the place of dim − 1."""
    low, high = ramp_of(dim, base, length, fast, slow, truncate)
    high = min(high, dim // 2 - 1)
    return low, high + 0.001 if low == high else high


def ends_unlimited(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    low, high = pair_of(fast, dim, base, length), pair_of(slow, dim, base, length)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    return low, high + 0.001 if low == high else high


def ends_one_pair_apart(
    dim: int, base: float, length: int, fast: float, slow: float, truncate: bool
) -> tuple[float, float]:
    """The way round the division by zero is a ramp of a whole pair."""
    low, high = ramp_of(dim, base, length, fast, slow, truncate)
    return low, low + 1 if high - low < 0.01 else high


def yarn_odd_widths(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Array:
    even = max(abs(dim) // 2 * 2, 2)
    return right.yarn_frequencies(
        even, base, factor, original_length, beta_fast, beta_slow, truncate
    )


def yarn_any_factor(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Array:
    inputs = (original_length, beta_fast, beta_slow, truncate)
    return right.yarn_frequencies(dim, base, abs(factor) or 1.0, *inputs)


YARN_FREQUENCIES = (
    Misconception(
        "yarn-ramp-inverted",
        yarn_inverted,
        "yarn_frequencies_published_numbers",
        "Your ramp is upside down: fast pairs are divided and slow ones kept. The slow pairs, "
        "which have not finished a turn in training, are the ones to interpolate.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-blends-wavelengths",
        yarn_wavelengths,
        "yarn_frequencies_published_numbers",
        "Inside the ramp you blend wavelengths, or divide by a blended factor, which is the same. "
        "YaRN blends the two frequencies, kept and divided, and that gives other numbers.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-blends-exponents",
        yarn_geometric,
        "yarn_frequencies_published_numbers",
        "Inside the ramp the factor is raised to the ramp's value. YaRN takes a weighted sum of "
        "the kept and the divided frequency instead.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-divides-all",
        yarn_divides_all,
        "yarn_frequencies_published_numbers",
        "All pairs were divided by the factor: that is position interpolation, and it blurs the "
        "fast pairs that tell neighbours apart. Keep those.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-multiplies",
        yarn_multiplies,
        "yarn_frequencies_published_numbers",
        "The slow pairs became faster: their frequencies were multiplied by the factor. Longer "
        "wavelengths are smaller frequencies, so divide.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-without-ramp",
        yarn_halves,
        "yarn_frequencies_published_numbers",
        "Between kept and divided pairs your ladder jumps. From the low end to the high one the "
        "share of the divided frequency grows in equal steps.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-kept-part-on-ntk-base",
        yarn_on_the_ntk_base,
        "yarn_frequencies_published_numbers",
        "The kept pairs stand on the enlarged base of NTK scaling. YaRN keeps them on the plain "
        "base: that they do not change at all is its point.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-factor-in-the-power",
        yarn_factor_in_the_power,
        "yarn_frequencies_published_numbers",
        "The factor stands inside the power, so it enlarges the base. The interpolated frequency "
        "is the plain one divided by the factor, for each pair alike.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-ramp-in-turns",
        yarn_ramp_in_turns,
        "yarn_frequencies_published_numbers",
        "Your ramp is linear in the number of turns. The paper writes it so, but YaRN's code and "
        "the models made with it are linear in the pair index.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-ends-in-coordinates",
        yarn_with(ends=ends_in_coordinates),
        "yarn_frequencies_published_numbers",
        "The ends of your ramp count coordinates while its index counts pairs. dim/2 pairs are "
        "there: end(β) has 2·ln base below, so it is a pair index already.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-without-two-pi",
        yarn_with(ends=ends_without_two_pi),
        "yarn_frequencies_published_numbers",
        "The 2π is missing: a pair makes length·frequency/(2π) turns, for frequencies are radians "
        "per token. Your ramp begins too late.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-high-end-rounded-down",
        yarn_with(ends=ends_cut_off),
        "yarn_frequencies_published_numbers",
        "Both ends of the ramp were rounded down. Rounding goes outwards: floor for the low end, "
        "ceil for the high one.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-never-rounds",
        yarn_with(ends=ends_never_rounded),
        "yarn_frequencies_published_numbers",
        "The ends of the ramp were not rounded to whole pairs, which truncate=True, the default, "
        "asks for: floor for the low end, ceil for the high one.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-ends-rounded-to-nearest",
        yarn_with(ends=ends_rounded_by(round, round)),
        "yarn_frequencies_published_numbers",
        "The ends of the ramp were rounded to the nearest pair. Rounding goes outwards: floor for "
        "the low end, ceil for the high one.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-ends-rounded-inwards",
        yarn_with(ends=ends_rounded_by(math.ceil, math.floor)),
        "yarn_frequencies_published_numbers",
        "The ends of the ramp were rounded towards each other. Rounding goes outwards: floor for "
        "the low end, ceil for the high one.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-betas-swapped",
        yarn_with(ends=ends_of_swapped_betas),
        "yarn_frequencies_published_numbers",
        "The betas have changed places, so your ramp runs backwards. Many turns, beta_fast, belong "
        "to the low end: fast pairs come first.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-beta-in-the-numerator",
        yarn_with(ends=ends_of_turns(lambda beta: 1 / beta)),
        "yarn_frequencies_published_numbers",
        "β stands above the line in your logarithm. The more turns a pair makes, the smaller its "
        "index: L/(2π·β).",
        "ext-yarn",
    ),
    Misconception(
        "yarn-brackets-lost",
        yarn_with(ends=ends_of_turns(lambda beta: 1 / (math.pi**2 * beta))),
        "yarn_frequencies_published_numbers",
        "The brackets of 2π·β are lost: Python reads L / 2 * pi * beta from left to right, which "
        "multiplies by π and β. Put the whole denominator in brackets.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-two-missing",
        yarn_with(ends=ends_two_missing),
        "yarn_frequencies_published_numbers",
        "Your ends are twice what they should be, as if the 2 in 2·ln base were missing: so they "
        "count coordinates, and the ramp counts pairs.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-ramp-over-coordinates",
        yarn_ramp_over_coordinates,
        "yarn_frequencies_published_numbers",
        "The index of your ramp goes up in twos, 0, 2, 4, …, and so counts coordinates. The ends "
        "count pairs: let it go up in ones.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-without-clip",
        yarn_without_clip,
        "yarn_frequencies_published_numbers",
        "Your ramp goes on beyond its ends: below low it is negative, above high it exceeds 1. "
        "Clip it to 0 … 1.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-stretched-length",
        yarn_stretched_length,
        "yarn_frequencies_published_numbers",
        "Your ends are those of the stretched text, the trained length times the factor. What "
        "counts is how many turns a pair made in training.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-both-parts-on-ntk-base",
        yarn_both_on_the_ntk_base,
        "yarn_frequencies_published_numbers",
        "Both parts stand on the enlarged base of NTK scaling, so slow pairs are slowed twice. "
        "YaRN keeps and divides the plain ladder.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-attention-factor-in-frequencies",
        yarn_attention_in_frequencies,
        "yarn_frequencies_published_numbers",
        "All frequencies carry the factor 0.1·ln s + 1. That number makes vectors longer and is no "
        "matter of how fast they turn: leave it out here.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-exponent-halved",
        yarn_exponent_halved,
        "yarn_frequencies_published_numbers",
        "Your ladder has the exponent i/dim, so it ends half-way. Pair i counts two coordinates: "
        "base^(−2i/dim).",
        "ext-breaks",
    ),
    Misconception(
        "yarn-ignores-betas",
        yarn_with(ends=ends_of_betas_alone),
        "yarn_frequencies_other_arguments",
        "The betas that were passed in are never used: 32 and 1 are only their defaults.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-ignores-trained-length",
        yarn_with(ends=ends_of_default_length),
        "yarn_frequencies_published_numbers",
        "Your ramp is where 2048 trained tokens would put it. The turns a pair has made depend on "
        "the trained length that was passed in.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-always-rounds",
        yarn_with(ends=ends_always_rounded),
        "yarn_frequencies_without_rounding",
        "With truncate=False the ends were rounded all the same. Some models are trained with a "
        "ramp that starts and stops between pairs.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-clamped-to-last-pair",
        yarn_with(ends=ends_at_the_last_pair),
        "yarn_frequencies_clamped_ends",
        "The high end was limited to dim/2 − 1, the last pair. The limit is dim − 1: a ramp may "
        "stop beyond the last pair, which is then only partly divided.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-ends-unlimited",
        yarn_with(ends=ends_unlimited),
        "yarn_frequencies_clamped_ends",
        "The ends of the ramp are not limited. With short training lengths the low end falls "
        "below 0, with long ones the high end rises above dim − 1: clamp them before you divide.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-without-lower-limit",
        yarn_with(ends=ends_without_lower_limit),
        "yarn_frequencies_clamped_ends",
        "The low end of the ramp may fall below 0, when no pair made enough turns in training. "
        "Then the ramp starts at pair 0, which is kept.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-without-upper-limit",
        yarn_with(ends=ends_without_upper_limit),
        "yarn_frequencies_clamped_ends",
        "The high end of the ramp may rise above dim − 1, when even the slowest pair made many "
        "turns in training. It is limited to dim − 1.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-odd-widths",
        yarn_odd_widths,
        "yarn_frequencies_refuses_dim",
        "A width without pairs got a ladder. An odd or empty dim is a mistake of the caller's: "
        "raise a ValueError that names it.",
        "ex-yarn_frequencies",
    ),
    Misconception(
        "yarn-equal-ends-left-equal",
        yarn_with(ends=ends_left_equal),
        "yarn_frequencies_equal_ends",
        "With equal ends the ramp is 0/0 at the pair that stands there. Raise the high end by "
        "0.001 when both are equal, after the limits.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-equal-ends-a-pair-apart",
        yarn_with(ends=ends_one_pair_apart),
        "yarn_frequencies_equal_ends",
        "When both ends are equal you make the ramp a whole pair long, so a pair beyond the step "
        "is only partly divided. Raise the high end by 0.001.",
        "ext-yarn",
    ),
    Misconception(
        "yarn-float32",
        float32_ladder(right.yarn_frequencies),
        "yarn_frequencies_float64",
        "The ladder is float32. Tables are float64 here: multiplied by a position in the hundred "
        "thousands, the missing digits become visible.",
        "ex-yarn_frequencies",
    ),
    Misconception(
        "yarn-any-factor",
        yarn_any_factor,
        "yarn_frequencies_refuses",
        "A factor of zero or less got an answer. A text cannot be stretched by it: raise.",
        "ex-yarn_frequencies",
    ),
)

# ---------------------------------------------------------------------- yarn_attention_factor


def attention(number: Callable[[float], float]) -> Callable[[float], float]:
    """number(factor) above 1, and 1 up to there."""

    def attention_factor(factor: float) -> float:
        known = right.yarn_attention_factor(factor)  # refuses what is to be refused
        return known if factor <= 1 else number(factor)

    return attention_factor


def attention_below_one(factor: float) -> float:
    right.yarn_attention_factor(factor)
    return 0.1 * math.log(factor) + 1


def attention_float32(factor: float) -> float:
    return float(np.float32(right.yarn_attention_factor(factor)))


YARN_ATTENTION_FACTOR = (
    Misconception(
        "yarn-attention-squared",
        attention(lambda s: (0.1 * math.log(s) + 1) ** 2),
        "yarn_attention_factor_published_number",
        "This is the factor on the scores, 1/t. Queries and keys each carry its square root, "
        "0.1·ln s + 1, and their product has it squared.",
        "ext-attention-factor",
    ),
    Misconception(
        "yarn-attention-temperature",
        attention(lambda s: (0.1 * math.log(s) + 1) ** -2),
        "yarn_attention_factor_published_number",
        "This is the temperature t, by which scores are divided. Cosines and sines are multiplied "
        "by √(1/t) = 0.1·ln s + 1, which is above 1.",
        "ext-attention-factor",
    ),
    Misconception(
        "yarn-attention-log10",
        attention(lambda s: 0.1 * math.log10(s) + 1),
        "yarn_attention_factor_published_number",
        "The logarithm is the decimal one. The formula has the natural logarithm: math.log.",
        "ext-attention-factor",
    ),
    Misconception(
        "yarn-attention-log2",
        attention(lambda s: 0.1 * math.log2(s) + 1),
        "yarn_attention_factor_published_number",
        "The logarithm counts doublings. The formula has the natural logarithm: math.log.",
        "ext-attention-factor",
    ),
    Misconception(
        "yarn-attention-root",
        attention(lambda s: math.sqrt(0.1 * math.log(s) + 1)),
        "yarn_attention_factor_published_number",
        "A root too many: 0.1·ln s + 1 already is the square root of 1/t, and multiplies cosines "
        "and sines as it is.",
        "ext-attention-factor",
    ),
    Misconception(
        "yarn-attention-upside-down",
        attention(lambda s: 1 / (0.1 * math.log(s) + 1)),
        "yarn_attention_factor_published_number",
        "This is √t, below 1, and makes attention flatter. The formula gives √(1/t), and cosines "
        "and sines are multiplied by it: above 1.",
        "ext-attention-factor",
    ),
    Misconception(
        "yarn-attention-without-one",
        attention(lambda s: 0.1 * math.log(s)),
        "yarn_attention_factor_published_number",
        "The + 1 is missing. A factor just above 1 stretches next to nothing, so the number must "
        "be next to 1, not to 0.",
        "ext-attention-factor",
    ),
    Misconception(
        "yarn-attention-without-tenth",
        attention(lambda s: math.log(s) + 1),
        "yarn_attention_factor_published_number",
        "The 0.1 before the logarithm is missing, so scores would grow far too much.",
        "ext-attention-factor",
    ),
    Misconception(
        "yarn-attention-log-of-one-more",
        attention(lambda s: 0.1 * math.log(s + 1) + 1),
        "yarn_attention_factor_published_number",
        "The 1 slipped into the logarithm as well. It is ln s, which is 0 when nothing is "
        "stretched.",
        "ext-attention-factor",
    ),
    Misconception(
        "yarn-attention-below-one",
        attention_below_one,
        "yarn_attention_factor_nothing_stretched",
        "For factors below 1 your number falls below 1 and flattens attention, though nothing is "
        "stretched. There it is 1.",
        "ext-attention-factor",
    ),
    Misconception(
        "yarn-attention-capped",
        attention(lambda s: min(0.1 * math.log(s) + 1, 1 + 0.1 * math.log(64))),
        "yarn_attention_factor_any_factor",
        "Large factors all get one number. The logarithm grows slowly by itself: no limit is "
        "needed.",
        "ext-attention-factor",
    ),
    Misconception(
        "yarn-attention-float32",
        attention_float32,
        "yarn_attention_factor_exact",
        "The number has only float32's digits. Compute it with Python floats.",
        "ex-yarn_attention_factor",
    ),
)

# ------------------------------------------------------------------------- llama3_frequencies


def llama3_with(
    kept: Callable[[Array, float, float], Array] | None = None,
    blend: Callable[[Array, Array, float], Array] | None = None,
) -> Callable[..., Array]:
    """llama3_frequencies with kept(turns, low, high), or blend(plain, kept, factor), replaced."""

    def frequencies(
        dim: int,
        base: float,
        factor: float,
        original_length: int,
        low_freq_factor: float = 1.0,
        high_freq_factor: float = 4.0,
    ) -> Array:
        limits = (low_freq_factor, high_freq_factor)
        right.llama3_frequencies(dim, base, factor, original_length, *limits)
        plain = ladder(dim, base)
        turns = original_length * plain / (2 * math.pi)
        with np.errstate(all="ignore"):  # equal limits
            share = (kept or smooth)(turns, *limits)
        if blend is not None:
            return blend(plain, share, factor)
        return (1 - share) * plain / factor + share * plain

    return frequencies


def smooth(turns: Array, low: float, high: float) -> Array:
    return np.clip((turns - low) / (high - low), 0, 1)


def smooth_in_wavelength(turns: Array, low: float, high: float) -> Array:
    """mlx-examples#907: from L/high to L/low the share falls linearly in the wavelength."""
    wavelength, short, long = 1 / turns, 1 / high, 1 / low
    return np.clip((long - wavelength) / (long - short), 0, 1)


def smooth_in_logarithm(turns: Array, low: float, high: float) -> Array:
    return np.clip(np.log(turns / low) / math.log(high / low), 0, 1)


def upside_down_between(turns: Array, low: float, high: float) -> Array:
    share = smooth(turns, low, high)
    return np.where((share > 0) & (share < 1), 1 - share, share)


llama3_smooth_in_wavelength = llama3_with(smooth_in_wavelength)
llama3_smooth_in_logarithm = llama3_with(smooth_in_logarithm)
llama3_between_upside_down = llama3_with(upside_down_between)
llama3_bands_swapped = llama3_with(lambda turns, low, high: 1 - smooth(turns, low, high))
llama3_between_divided = llama3_with(lambda turns, low, high: (turns >= high) * 1.0)
llama3_between_kept = llama3_with(lambda turns, low, high: (turns > low) * 1.0)
llama3_without_two_pi = llama3_with(lambda turns, low, high: smooth(2 * np.pi * turns, low, high))
llama3_brackets_lost = llama3_with(lambda turns, low, high: smooth(np.pi**2 * turns, low, high))
llama3_without_clip = llama3_with(lambda turns, low, high: (turns - low) / (high - low or 1e-9))
llama3_default_limits = llama3_with(lambda turns, low, high: smooth(turns, 1.0, 4.0))
llama3_unscaled = llama3_with(blend=lambda plain, share, factor: plain)
llama3_wavelengths = llama3_with(
    blend=lambda plain, share, factor: plain / (share + (1 - share) * factor)
)
llama3_divides_all = llama3_with(blend=lambda plain, share, factor: plain / factor)


def llama3_own_length(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> Array:
    """8192 is what Llama 3 was trained on, not every model."""
    limits = (low_freq_factor, high_freq_factor)
    right.llama3_frequencies(dim, base, factor, original_length, *limits)
    return right.llama3_frequencies(dim, base, factor, 8192, *limits)


def llama3_wavelength_alone(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> Array:
    """λ itself is compared with the limits, where L/λ belongs."""
    limits = (low_freq_factor, high_freq_factor)
    right.llama3_frequencies(dim, base, factor, original_length, *limits)
    plain = ladder(dim, base)
    with np.errstate(all="ignore"):
        share = smooth(2 * np.pi / plain, *limits)
    return (1 - share) * plain / factor + share * plain


def llama3_stretched_length(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> Array:
    limits = (low_freq_factor, high_freq_factor)
    right.llama3_frequencies(dim, base, factor, original_length, *limits)
    return right.llama3_frequencies(dim, base, factor, original_length * factor, *limits)  # type: ignore[arg-type]


def llama3_odd_widths(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> Array:
    even, limits = max(abs(dim) // 2 * 2, 2), (low_freq_factor, high_freq_factor)
    return right.llama3_frequencies(even, base, factor, original_length, *limits)


def llama3_empty_band(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> Array:
    """Bands are found by cutting the ladder: a cut at pair 0 takes the last pair with it."""
    limits = (low_freq_factor, high_freq_factor)
    known = right.llama3_frequencies(dim, base, factor, original_length, *limits)
    kept = int((known == ladder(dim, base)).sum())
    if kept == 0:
        known[kept - 1] = ladder(dim, base)[kept - 1]
    return known


def llama3_any_factor(
    dim: int,
    base: float,
    factor: float,
    original_length: int,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> Array:
    limits = (low_freq_factor, high_freq_factor)
    return right.llama3_frequencies(dim, base, abs(factor) or 1.0, original_length, *limits)


LLAMA3_FREQUENCIES = (
    Misconception(
        "llama3-smooth-in-wavelength",
        llama3_smooth_in_wavelength,
        "llama3_frequencies_published_numbers",
        "Between the limits your weight is linear in the wavelength. It is linear in L/λ, the "
        "number of turns, and so in the frequency.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-smooth-in-pair-index",
        llama3_smooth_in_logarithm,
        "llama3_frequencies_published_numbers",
        "Between the limits your weight is linear in the pair index, as YaRN's is. Llama 3's is "
        "linear in L/λ, the number of turns.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-between-upside-down",
        llama3_between_upside_down,
        "llama3_frequencies_published_numbers",
        "Between the limits the weights have changed places: your ladder jumps at both of them. "
        "Near the fast band a pair is nearly kept, near the slow one nearly divided.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-bands-swapped",
        llama3_bands_swapped,
        "llama3_frequencies_published_numbers",
        "The bands have changed places: short wavelengths were divided and long ones kept. A long "
        "wavelength is a slow pair, whose turn was not finished in training.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-between-divided",
        llama3_between_divided,
        "llama3_frequencies_published_numbers",
        "Every pair that is not fast was divided by the whole factor. Between the two limits the "
        "kept and the divided frequency are blended.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-between-kept",
        llama3_between_kept,
        "llama3_frequencies_published_numbers",
        "Every pair that is not slow was kept as it is. Between the two limits the kept and the "
        "divided frequency are blended.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-without-two-pi",
        llama3_without_two_pi,
        "llama3_frequencies_published_numbers",
        "The 2π is missing: a wavelength is 2π/frequency, for frequencies are radians per token. "
        "Without it pairs look six times faster than they are.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-unscaled-returned",
        llama3_unscaled,
        "llama3_frequencies_published_numbers",
        "The plain ladder came back. If your code computes the scaled one, look at which of the "
        "two names it returns.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-wavelength-for-turns",
        llama3_wavelength_alone,
        "llama3_frequencies_published_numbers",
        "The limits were compared with the wavelength itself. They count turns over the trained "
        "length: L divided by the wavelength.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-brackets-lost",
        llama3_brackets_lost,
        "llama3_frequencies_published_numbers",
        "The brackets of 2π are lost: Python reads L / 2 * pi from left to right, which multiplies "
        "by π. Your pairs seem to turn almost ten times as often as they do.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-without-clip",
        llama3_without_clip,
        "llama3_frequencies_published_numbers",
        "Your weight leaves the range 0 … 1 outside the limits, so fast pairs become faster still. "
        "Clip it: beyond the limits pairs are kept or divided, and nothing else.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-stretched-length",
        llama3_stretched_length,
        "llama3_frequencies_published_numbers",
        "Your bands are those of the stretched text, the trained length times the factor. What "
        "counts is how many turns a pair made in training.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-blends-wavelengths",
        llama3_wavelengths,
        "llama3_frequencies_published_numbers",
        "The weight is right, but it blends the wavelengths, or the factor with 1. Blend the two "
        "frequencies, the divided and the kept one.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-divides-all",
        llama3_divides_all,
        "llama3_frequencies_published_numbers",
        "All pairs were divided by the factor: that is position interpolation. Pairs that made "
        "enough turns in training are kept.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-own-length",
        llama3_own_length,
        "llama3_frequencies_bands",
        "Your bands are those of 8192 trained tokens, whatever length was passed in. A model "
        "trained on less has fewer pairs that turned enough.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-default-limits",
        llama3_default_limits,
        "llama3_frequencies_other_limits",
        "The limits that were passed in are never used: 1 and 4 are only their defaults.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-odd-widths",
        llama3_odd_widths,
        "llama3_frequencies_refuses_dim",
        "A width without pairs got a ladder. An odd or empty dim is a mistake of the caller's: "
        "raise a ValueError that names it.",
        "ex-llama3_frequencies",
    ),
    Misconception(
        "llama3-empty-band",
        llama3_empty_band,
        "llama3_frequencies_other_sizes",
        "When no pair is fast enough to be kept, your code spares the last one, the slowest of "
        "all. A band may be empty: decide pair by pair.",
        "ext-llama3",
    ),
    Misconception(
        "llama3-float32",
        float32_ladder(right.llama3_frequencies),
        "llama3_frequencies_float64",
        "The ladder is float32. Tables are float64 here: multiplied by a position in the hundred "
        "thousands, the missing digits become visible.",
        "ex-llama3_frequencies",
    ),
    Misconception(
        "llama3-any-factor",
        llama3_any_factor,
        "llama3_frequencies_refuses",
        "A factor of zero or less got an answer. A text cannot be stretched by it: raise.",
        "ex-llama3_frequencies",
    ),
)

# ----------------------------------------------------------------------- longrope_frequencies


def longrope_with(
    choose: Callable[[Array, Array, int, int], Array],
    use: Callable[[Array, Array], Array] = lambda plain, factors: plain / factors,
) -> Callable[..., Array]:
    """longrope_frequencies with another choice(short, long, original, length), or use of it."""

    def frequencies(
        dim: int,
        base: float,
        short_factors: Array,
        long_factors: Array,
        original_length: int,
        sequence_length: int,
    ) -> Array:
        sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
        right.longrope_frequencies(dim, base, *sets, *lengths)
        short, long = (np.asarray(factors, dtype=np.float64) for factors in sets)
        return use(ladder(dim, base), choose(short, long, *lengths))

    return frequencies


def by_length(short: Array, long: Array, original: int, length: int) -> Array:
    return short if length <= original else long


longrope_multiplies = longrope_with(by_length, lambda plain, factors: plain * factors)
longrope_mean_factor = longrope_with(by_length, lambda plain, factors: plain / factors.mean())
longrope_reversed = longrope_with(by_length, lambda plain, factors: plain / factors[::-1])
longrope_swapped = longrope_with(lambda short, long, original, n: long if n <= original else short)
longrope_short_below = longrope_with(
    lambda short, long, original, n: short if n < original else long
)
longrope_long_later = longrope_with(
    lambda short, long, original, n: short if n <= original + 1 else long
)
longrope_always_long = longrope_with(lambda short, long, original, n: long)
longrope_always_short = longrope_with(lambda short, long, original, n: short)


def longrope_factor_in_the_power(
    dim: int,
    base: float,
    short_factors: Array,
    long_factors: Array,
    original_length: int,
    sequence_length: int,
) -> Array:
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    right.longrope_frequencies(dim, base, *sets, *lengths)
    factors = short_factors if sequence_length <= original_length else long_factors
    return (base * np.asarray(factors, np.float64)) ** (-2 * np.arange(dim // 2) / dim)


def longrope_that_stays_long() -> Callable[..., Array]:
    """A server that has seen one long text goes on with the long set for that model."""
    longest: dict[Any, int] = {}

    def frequencies(
        dim: int,
        base: float,
        short_factors: Array,
        long_factors: Array,
        original_length: int,
        sequence_length: int,
    ) -> Array:
        sets = (short_factors, long_factors)
        right.longrope_frequencies(dim, base, *sets, original_length, sequence_length)
        key = (dim, base, original_length)
        longest[key] = max(sequence_length, longest.get(key, 0))
        return right.longrope_frequencies(dim, base, *sets, original_length, longest[key])

    return frequencies


def longrope_any_sets(
    dim: int,
    base: float,
    short_factors: Array,
    long_factors: Array,
    original_length: int,
    sequence_length: int,
) -> Array:
    """The sets are cut or repeated until they fit, as broadcasting would do for a set of one."""
    short, long = (
        np.resize(np.asarray(factors), dim // 2) for factors in (short_factors, long_factors)
    )
    short, long = np.where(short == 0, 1, short), np.where(long == 0, 1, long)
    return right.longrope_frequencies(dim, base, short, long, original_length, sequence_length)


def longrope_checks_used_set(
    dim: int,
    base: float,
    short_factors: Array,
    long_factors: Array,
    original_length: int,
    sequence_length: int,
) -> Array:
    factors = short_factors if sequence_length <= original_length else long_factors
    lengths = (original_length, sequence_length)
    return right.longrope_frequencies(dim, base, factors, factors, *lengths)


def longrope_like_factors(
    dim: int,
    base: float,
    short_factors: Array,
    long_factors: Array,
    original_length: int,
    sequence_length: int,
) -> Array:
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    known = right.longrope_frequencies(dim, base, *sets, *lengths)
    return known.astype(np.float32) if np.asarray(short_factors).dtype == np.float32 else known


def longrope_in_place(
    dim: int,
    base: float,
    short_factors: Array,
    long_factors: Array,
    original_length: int,
    sequence_length: int,
) -> Array:
    sets, lengths = (short_factors, long_factors), (original_length, sequence_length)
    known = right.longrope_frequencies(dim, base, *sets, *lengths)
    factors = short_factors if sequence_length <= original_length else long_factors
    if isinstance(factors, np.ndarray):
        factors[...] = known
    return known


def longrope_any_factors(
    dim: int,
    base: float,
    short_factors: Array,
    long_factors: Array,
    original_length: int,
    sequence_length: int,
) -> Array:
    if np.shape(short_factors) != (dim // 2,) or np.shape(long_factors) != (dim // 2,):
        raise ValueError("dim/2 factors in each set")
    short, long = (np.where(np.asarray(f) <= 0, 1, f) for f in (short_factors, long_factors))
    return right.longrope_frequencies(dim, base, short, long, original_length, sequence_length)


LONGROPE_FREQUENCIES = (
    Misconception(
        "longrope-multiplies",
        longrope_multiplies,
        "longrope_frequencies_worked_example",
        "The frequencies were multiplied by the factors, so the pairs turn faster. The factors "
        "stretch wavelengths: divide the frequencies.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-factor-in-the-power",
        longrope_factor_in_the_power,
        "longrope_frequencies_worked_example",
        "The factors stand inside the power, where each enlarges the base of its pair. The "
        "frequency itself is divided: the first pair's too, which no base can change.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-mean-factor",
        longrope_mean_factor,
        "longrope_frequencies_worked_example",
        "All pairs were divided by one number. LongRoPE has a factor for each pair: divide element "
        "by element.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-reversed",
        longrope_reversed,
        "longrope_frequencies_worked_example",
        "The factors met the pairs in reverse. Factor i belongs to pair i, and the fastest pair "
        "comes first.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-sets-swapped",
        longrope_swapped,
        "longrope_frequencies_worked_example",
        "The two sets have changed places: the short one belongs to texts up to the trained "
        "length, the long one to longer texts.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-always-long",
        longrope_always_long,
        "longrope_frequencies_worked_example",
        "Short texts got the long set too, and with it a blurred ladder they do not need. Choose "
        "by the length of this text.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-always-short",
        longrope_always_short,
        "longrope_frequencies_worked_example",
        "Long texts got the short set, which reaches no further than training did. Choose by the "
        "length of this text.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-short-set-too-short",
        longrope_short_below,
        "longrope_frequencies_boundary",
        "A text of exactly the trained length got the long set. The model was trained at that "
        "length with the short one: <= belongs there, not <.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-long-set-too-late",
        longrope_long_later,
        "longrope_frequencies_boundary",
        "A text one token longer than training still got the short set. The change is right after "
        "the trained length.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-stays-long",
        longrope_that_stays_long(),
        "longrope_frequencies_other_arguments",
        "After a long text a short one still got the long set. The choice depends on this call "
        "alone, so keep nothing between calls.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-any-sets",
        longrope_any_sets,
        "longrope_frequencies_refuses_sets",
        "A set that has not one factor for each pair got an answer. Broadcasting or cutting it "
        "hides a wrong configuration: raise a ValueError.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-checks-used-set",
        longrope_checks_used_set,
        "longrope_frequencies_refuses_sets",
        "Only the set in use was looked at. The other one will be wrong in the middle of a long "
        "text: check both at once.",
        "ext-longrope",
    ),
    Misconception(
        "longrope-like-factors",
        longrope_like_factors,
        "longrope_frequencies_float64",
        "float32 factors made a float32 ladder. Tables are float64 here, whatever the factors are.",
        "ex-longrope_frequencies",
    ),
    Misconception(
        "longrope-in-place",
        longrope_in_place,
        "longrope_frequencies_leaves_input",
        "The caller's own factors were overwritten, and the next call would divide by them. Build "
        "a new array.",
        "ex-longrope_frequencies",
    ),
    Misconception(
        "longrope-any-factors",
        longrope_any_factors,
        "longrope_frequencies_refuses",
        "A factor of zero or less got an answer. It would stop a pair or turn it backwards: raise.",
        "ex-longrope_frequencies",
    ),
)

# ---------------------------------------------------------------------------- fixed_yarn_ramp


def blending(
    mix: Callable[[Array, Array, float], Array],
    ends: Callable[[float, float], tuple[float, float]] = lambda low, high: (low, high),
) -> Callable[[], Callable[..., Array]]:
    """fixed_yarn_ramp with another mix(frequencies, divided, factor), or other ends."""

    def fixed_yarn_ramp() -> Callable[..., Array]:
        def blend(frequencies: Array, factor: float, low: float, high: float) -> Array:
            right.fixed_yarn_ramp()(frequencies, factor, low, high)
            given = as_floats(frequencies, "frequencies")
            high = high + 0.001 if low == high else high
            divided = ramp(len(given), *ends(low, high))
            return mix(given.astype(np.float64), divided, factor).astype(given.dtype)

        return blend

    return fixed_yarn_ramp


def weighted(frequencies: Array, divided: Array, factor: float) -> Array:
    return (1 - divided) * frequencies + divided * frequencies / factor


def whole_ladder(frequencies: Array, divided: Array, factor: float) -> Array:
    """A ramp over all pairs, whatever its ends are."""
    return weighted(frequencies, np.linspace(0, 1, len(frequencies)), factor)


ramp_inverted = blending(lambda f, r, factor: weighted(f, 1 - r, factor))
ramp_wavelengths = blending(lambda f, r, factor: f / ((1 - r) + r * factor))
ramp_step = blending(lambda f, r, factor: np.where(r > 0, f / factor, f))
ramp_late_step = blending(lambda f, r, factor: np.where(r < 1, f, f / factor))
ramp_multiplies = blending(lambda f, r, factor: weighted(f, r, 1 / factor))
ramp_whole_ladder = blending(whole_ladder)
ramp_from_one = blending(weighted, lambda low, high: (low - 1, high - 1))
ramp_in_coordinates = blending(weighted, lambda low, high: (low / 2, high / 2))
ramp_eased = blending(lambda f, r, factor: weighted(f, r * r * (3 - 2 * r), factor))
ramp_whole_ends = blending(weighted, lambda low, high: (math.floor(low), math.ceil(high)))


def ramp_step_too_early() -> Callable[..., Array]:
    """Equal ends are moved apart downwards, so the pair itself is divided."""

    def blend(frequencies: Array, factor: float, low: float, high: float) -> Array:
        right.fixed_yarn_ramp()(frequencies, factor, low, high)
        return right.fixed_yarn_ramp()(
            frequencies, factor, low - 0.001 if low == high else low, high
        )

    return blend


def ramp_always_float64() -> Callable[..., Array]:
    def blend(frequencies: Array, factor: float, low: float, high: float) -> Array:
        return right.fixed_yarn_ramp()(np.asarray(frequencies, np.float64), factor, low, high)

    return blend


def ramp_into_integers() -> Callable[..., Array]:
    def blend(frequencies: Array, factor: float, low: float, high: float) -> Array:
        blended = right.fixed_yarn_ramp()(frequencies, factor, low, high)
        return blended.astype(np.asarray(frequencies).dtype)

    return blend


def ramp_in_float32() -> Callable[..., Array]:
    def blend(frequencies: Array, factor: float, low: float, high: float) -> Array:
        blended = right.fixed_yarn_ramp()(frequencies, factor, low, high)
        return blended.astype(np.float32).astype(blended.dtype)

    return blend


def ramp_in_place() -> Callable[..., Array]:
    def blend(frequencies: Array, factor: float, low: float, high: float) -> Array:
        blended = right.fixed_yarn_ramp()(frequencies, factor, low, high)
        if isinstance(frequencies, np.ndarray) and frequencies.dtype == blended.dtype:
            frequencies[...] = blended
        return blended

    return blend


def ramp_only_weights_swapped() -> Callable[..., Array]:
    """The chapter's faulty blend with its two weights exchanged, and nothing else."""

    def blend(frequencies: Array, factor: float, low: float, high: float) -> Array:
        frequencies = np.asarray(frequencies)
        divided = ramp(len(frequencies), low, high)
        with np.errstate(all="ignore"):
            return frequencies / np.float64(factor) * divided + frequencies * (1 - divided)

    return blend


def ramp_equal_ends_left() -> Callable[..., Array]:
    def blend(frequencies: Array, factor: float, low: float, high: float) -> Array:
        known = right.fixed_yarn_ramp()(frequencies, factor, low, high)
        divided = ramp(len(known), low, high)
        return np.where(np.isnan(divided), np.nan, known).astype(known.dtype)

    return blend


def ramp_without_clip() -> Callable[..., Array]:
    def blend(frequencies: Array, factor: float, low: float, high: float) -> Array:
        known = right.fixed_yarn_ramp()(frequencies, factor, low, high)
        high = high + 0.001 if low == high else high
        divided = (np.arange(len(known)) - low) / (high - low)
        return weighted(np.asarray(frequencies, np.float64), divided, factor).astype(known.dtype)

    return blend


def ramp_any_factor() -> Callable[..., Array]:
    def blend(frequencies: Array, factor: float, low: float, high: float) -> Array:
        return right.fixed_yarn_ramp()(frequencies, abs(factor) or 1.0, low, high)

    return blend


def ramp_sorts_ends() -> Callable[..., Array]:
    def blend(frequencies: Array, factor: float, low: float, high: float) -> Array:
        return right.fixed_yarn_ramp()(frequencies, factor, min(low, high), max(low, high))

    return blend


FIXED_YARN_RAMP = (
    Misconception(
        "fixed-yarn-ramp-inverted",
        ramp_inverted,
        "fixed_yarn_ramp_worked_example",
        "The ramp is still upside down: the fast pairs, which come first, are divided and the slow "
        "ones kept. Whatever a comment says, look at what pair 0 gets.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-wavelengths",
        ramp_wavelengths,
        "fixed_yarn_ramp_worked_example",
        "The ramp blends wavelengths, or divides by a blended factor. Halfway it must give the "
        "mean of the kept and the divided frequency.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-early-step",
        ramp_step,
        "fixed_yarn_ramp_worked_example",
        "Inside the ramp every pair got the whole division. Between the ends the two frequencies "
        "are blended.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-late-step",
        ramp_late_step,
        "fixed_yarn_ramp_worked_example",
        "Inside the ramp every pair was kept. Between the ends the two frequencies are blended.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-multiplies",
        ramp_multiplies,
        "fixed_yarn_ramp_worked_example",
        "The slow pairs were multiplied by the factor. Stretching a text slows them: divide.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-whole-ladder",
        ramp_whole_ladder,
        "fixed_yarn_ramp_worked_example",
        "The ramp runs over the whole ladder, whatever its ends are. It begins at low, ends at "
        "high, and is flat outside.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-from-one",
        ramp_from_one,
        "fixed_yarn_ramp_worked_example",
        "The pairs were counted from one, so the ramp comes a pair too early. Pair `low` itself "
        "keeps its frequency.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-in-coordinates",
        ramp_in_coordinates,
        "fixed_yarn_ramp_worked_example",
        "The ramp counts coordinates, two for each pair, while its ends count pairs.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-eased",
        ramp_eased,
        "fixed_yarn_ramp_long_ramp",
        "The ramp is a smooth curve that is right only in the middle. YaRN's is a straight line: "
        "equal steps from pair to pair.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-without-clip",
        ramp_without_clip,
        "fixed_yarn_ramp_worked_example",
        "Your ramp goes on beyond its ends: below low it is negative, above high it exceeds 1. "
        "Clip it to 0 … 1.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-only-weights-swapped",
        ramp_only_weights_swapped,
        "fixed_yarn_ramp_equal_ends",
        "The weights are right now. What remains is around them: equal ends divide zero by zero, "
        "float32 must come back as float32, and bad factors and crossed ends are to be refused.",
        "ex-fixed_yarn_ramp",
    ),
    Misconception(
        "fixed-yarn-ramp-equal-ends-left-equal",
        ramp_equal_ends_left,
        "fixed_yarn_ramp_equal_ends",
        "With equal ends the ramp is 0/0 at the pair that stands there. Raise the high end by "
        "0.001, and that pair is kept.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-any-factor",
        ramp_any_factor,
        "fixed_yarn_ramp_refuses",
        "A factor of zero or less got an answer. A text cannot be stretched by it: raise.",
        "ex-fixed_yarn_ramp",
    ),
    Misconception(
        "fixed-yarn-ramp-step-too-early",
        ramp_step_too_early,
        "fixed_yarn_ramp_equal_ends",
        "With equal ends the pair at the end was divided. It is the last one to be kept: the high "
        "end moves up, not the low end down.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-always-float64",
        ramp_always_float64,
        "fixed_yarn_ramp_dtypes",
        "The numbers are right, but float32 frequencies came back as float64. Cast the result to "
        "the floating dtype that came in, as the last step.",
        "ex-fixed_yarn_ramp",
    ),
    Misconception(
        "fixed-yarn-ramp-truncates-integers",
        ramp_into_integers,
        "fixed_yarn_ramp_dtypes",
        "The fractions were cut off because the result has the integer dtype of the input. Turn "
        "integers into float64 before you blend.",
        "ex-fixed_yarn_ramp",
    ),
    Misconception(
        "fixed-yarn-ramp-whole-ends",
        ramp_whole_ends,
        "fixed_yarn_ramp_fractional_ends",
        "The ends were rounded to whole pairs. Rounding is the caller's choice (truncate): a ramp "
        "may start and stop between pairs.",
        "ext-yarn",
    ),
    Misconception(
        "fixed-yarn-ramp-float32",
        ramp_in_float32,
        "fixed_yarn_ramp_exact",
        "float64 frequencies lost digits on the way, as if they had been float32 for a while.",
        "ex-fixed_yarn_ramp",
    ),
    Misconception(
        "fixed-yarn-ramp-in-place",
        ramp_in_place,
        "fixed_yarn_ramp_leaves_input",
        "The caller's own frequencies were overwritten, and a second call would divide them again. "
        "Build a new array.",
        "ex-fixed_yarn_ramp",
    ),
    Misconception(
        "fixed-yarn-ramp-sorts-ends",
        ramp_sorts_ends,
        "fixed_yarn_ramp_refuses",
        "A low end above the high one was quietly exchanged with it. Whoever passes that has mixed "
        "up fast and slow: raise a ValueError.",
        "ex-fixed_yarn_ramp",
    ),
)

# ---------------------------------------------------------------------- ScaledRotaryEmbedding


def stretched(
    forward: Callable[..., Any],
    setup: Callable[[Any, Any], None] = lambda module, right: None,
    default: str = "yarn",
) -> Callable[..., Any]:
    """A torch module whose forward(module, right, q, k, positions) is given.

    `right` is the reference with the same arguments. torch is imported when the module is made,
    since it costs a second that NumPy's exercises need not pay.
    """

    def make(
        head_dim: int,
        base: float = 10000.0,
        scaling: str = default,
        factor: float = 1.0,
        original_length: int = 2048,
    ) -> Any:
        import torch

        from solutions.with_torch.context_extension import ScaledRotaryEmbedding

        reference = ScaledRotaryEmbedding(head_dim, base, scaling, factor, original_length)

        class Stretched(torch.nn.Module):
            def forward(self, q: Any, k: Any, positions: Any) -> Any:
                reference(q, k, positions)  # refuses what is to be refused
                return forward(self, reference, q, k, positions)

        module = Stretched()
        setup(module, reference)
        return module

    return make


def sibling(right: Any, **changes: Any) -> Any:
    """The reference with some of its arguments changed."""
    names = ("head_dim", "base", "scaling", "factor", "original_length")
    return type(right)(**{**{name: getattr(right, name) for name in names}, **changes})


def per_pair(right: Any) -> Any:
    """The right frequencies, in float32."""
    from solutions.with_torch.context_extension import scaled_frequencies

    return scaled_frequencies(
        right.head_dim, right.base, right.scaling, right.factor, right.original_length
    ).float()


def sharpness(right: Any) -> float:
    return max(1.0, 0.1 * math.log(right.factor) + 1) if right.scaling == "yarn" else 1.0


def turn_by(right: Any, x: Any, angles: Any, layout: str = "half") -> Any:
    """Rotate x (batch, heads, seq, head_dim) by angles (..., seq, head_dim/2), and sharpen."""
    from solutions.with_torch.rope import rotate_pairs

    strength = sharpness(right)
    return rotate_pairs(x, strength * angles.cos(), strength * angles.sin(), layout)


def spread(positions: Any, frequencies: Any) -> Any:
    """Angles with an axis for the heads: (1, seq, dim/2) or (batch, 1, seq, dim/2)."""
    return (positions[..., None] * frequencies).unsqueeze(-3)


def by_frequencies(frequencies: Callable[[Any], Any]) -> Callable[..., Any]:
    """A forward that turns by frequencies(right), float64 (head_dim/2,)."""

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        angles = spread(positions.double(), frequencies(right))
        return turn_by(right, q, angles), turn_by(right, k, angles)

    return forward


def numpy_frequencies(of: Callable[..., Any], scaling: str) -> Callable[[Any], Any]:
    """of(dim, base, factor, original_length) for one scaling, the right ones for the others."""

    def frequencies(right: Any) -> Any:
        import torch

        if right.scaling != scaling:
            return per_pair(right).double()
        inputs = (right.head_dim, right.base, right.factor, right.original_length)
        return torch.from_numpy(np.array(of(*inputs)))

    return frequencies


def scaled_interleaved(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    angles = spread(positions.double(), per_pair(right).double())
    return tuple(turn_by(right, x, angles, "interleaved") for x in (q, k))


def scaled_keys_not_rotated(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    return right(q, k, positions)[0], k


def scaled_clockwise(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    return right(q, k, -positions)


def scaled_whole_positions(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    """Position 3 by 4 becomes 0, and the token is not rotated at all."""
    import torch

    if right.scaling != "linear":
        return right(q, k, positions)
    whole = torch.div(positions, right.factor, rounding_mode="floor")
    return sibling(right, factor=1.0)(q, k, whole)


def scaled_multiplied_positions(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    if right.scaling != "linear":
        return right(q, k, positions)
    return sibling(right, factor=1.0)(q, k, positions * right.factor)


def ntk_bare_factor(dim: int, base: float, factor: float, original_length: int) -> Any:
    return ladder(dim, base * factor)


def scaled_without_attention(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    turned = right(q, k, positions)
    return tuple((x.double() / sharpness(right)).to(x.dtype) for x in turned)


def scaled_attention_twice(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    """Megatron-LM#1429, transformers#47435: on cosines and sines, on the scores, or on both."""
    turned = right(q, k, positions)
    return tuple((x.double() * sharpness(right)).to(x.dtype) for x in turned)


def scaled_attention_on_queries(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    turned_q, turned_k = right(q, k, positions)
    return turned_q, (turned_k.double() / sharpness(right)).to(k.dtype)


def scaled_attention_for_all(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    turned = right(q, k, positions)
    strength = max(1.0, 0.1 * math.log(right.factor) + 1) / sharpness(right)
    return tuple((x.double() * strength).to(x.dtype) for x in turned)


def scaled_attention_below_one(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    turned = right(q, k, positions)
    if right.scaling != "yarn" or right.factor >= 1:
        return turned
    strength = 0.1 * math.log(right.factor) + 1
    return tuple((x.double() * strength).to(x.dtype) for x in turned)


def scaled_default_length(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    return sibling(right, original_length=2048)(q, k, positions)


def scaled_default_base(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    return sibling(right, base=10_000.0)(q, k, positions)


def scaled_default_length_of(scaling: str) -> Callable[..., Any]:
    """2048 tokens under this scaling, the length that was given under the others."""

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        length = 2048 if right.scaling == scaling else right.original_length
        return sibling(right, original_length=length)(q, k, positions)

    return forward


def scaled_attention_on_keys(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    turned_q, turned_k = right(q, k, positions)
    return (turned_q.double() / sharpness(right)).to(q.dtype), turned_k


def scaled_attention_root(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    turned = right(q, k, positions)
    return tuple((x.double() / math.sqrt(sharpness(right))).to(x.dtype) for x in turned)


def scaled_by_tables(change: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """A forward with change(cos, sin, strength) → the tables that x and its turned self meet."""

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        from solutions.with_torch.rope import rotate_pairs

        angles = spread(positions.double(), per_pair(right).double())
        cos, sin = change(angles.cos(), angles.sin(), sharpness(right))
        return rotate_pairs(q, cos, sin, "half"), rotate_pairs(k, cos, sin, "half")

    return forward


def scaled_half_turned(minus: int, repeat: bool) -> Callable[..., Any]:
    """x·cos + turned(x)·sin, with a sign for the half that comes first and other tables."""

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        import torch

        angles = spread(positions.double(), per_pair(right).double())
        angles = angles.repeat_interleave(2, -1) if repeat else torch.cat([angles, angles], dim=-1)
        cos, sin = sharpness(right) * angles.cos(), sharpness(right) * angles.sin()

        def turned(x: Any) -> Any:
            first, second = x.double().chunk(2, dim=-1)
            other = torch.cat([minus * second, first], dim=-1)
            return (x.double() * cos + other * sin).to(x.dtype)

        return turned(q), turned(k)

    return forward


def scaled_integer_positions(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    return right(q, k, positions.long())


def scaled_rows_on_heads(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    """Without an axis for the heads, (batch, seq) lines up with (heads, seq)."""
    angles = positions[..., None].double() * per_pair(right).double()
    return turn_by(right, q, angles), turn_by(right, k, angles)


def scaled_repeats_keys(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    turned_q, turned_k = right(q, k, positions)
    return turned_q, turned_k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)


def scaled_by_text_length(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    """transformers#27227: the ladder follows the longest text, and cached keys do not."""
    last = float(positions.max()) + 1 if positions.numel() else 0.0
    module.longest = max(getattr(module, "longest", 0.0), last)
    reach = max(right.factor, module.longest / right.original_length)
    return sibling(right, factor=reach)(q, k, positions)


def keep_frequencies(module: Any, right: Any) -> None:
    module.register_buffer("per_pair", per_pair(right), persistent=False)


def scaled_buffer(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    """transformers#25681, #29496: casting the module casts its frequencies."""
    angles = spread(positions.float(), module.per_pair.float())
    return turn_by(right, q, angles), turn_by(right, k, angles)


def scaled_angles_like_q(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    angles = spread(positions.to(q.dtype), per_pair(right).to(q.dtype))
    return turn_by(right, q, angles.float()), turn_by(right, k, angles.float())


def scaled_float32_results(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    import torch

    wide = torch.promote_types(q.dtype, torch.float32)
    return right(q.to(wide), k.to(wide), positions)


def scaled_matrix_product(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    """diffusers#13920: under autocast a matrix product of two float32 operands is bfloat16."""
    angles = positions[..., None].float() @ per_pair(right)[None]
    angles = angles.float().unsqueeze(-3)
    return turn_by(right, q, angles), turn_by(right, k, angles)


def scaled_without_float64(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    turned = right(q, k, positions)
    return tuple(x.float() if x.dtype.itemsize == 8 else x for x in turned)


def scaled_in_place(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    """unsloth#5001."""
    turned_q, turned_k = right(q, k, positions)
    return q.copy_(turned_q), k.copy_(turned_k)


def scaled_any_scaling(
    head_dim: int,
    base: float = 10000.0,
    scaling: str = "yarn",
    factor: float = 1.0,
    original_length: int = 2048,
) -> Any:
    known = scaling if scaling in ("linear", "ntk", "yarn", "llama3") else "linear"
    module: Any = stretched(lambda module, right, q, k, positions: right(q, k, positions))
    return module(head_dim, base, known, factor, original_length)


def scaled_any_factor(
    head_dim: int,
    base: float = 10000.0,
    scaling: str = "yarn",
    factor: float = 1.0,
    original_length: int = 2048,
) -> Any:
    module: Any = stretched(lambda module, right, q, k, positions: right(q, k, positions))
    return module(head_dim, base, scaling, abs(factor) or 1.0, original_length)


def scaled_broadcasts(
    head_dim: int,
    base: float = 10000.0,
    scaling: str = "yarn",
    factor: float = 1.0,
    original_length: int = 2048,
) -> Any:
    import torch

    from solutions.with_torch.context_extension import ScaledRotaryEmbedding

    right = ScaledRotaryEmbedding(head_dim, base, scaling, factor, original_length)

    class Broadcasting(torch.nn.Module):
        def forward(self, q: Any, k: Any, positions: Any) -> Any:
            angles = spread(positions.double(), per_pair(right).double())
            return turn_by(right, q, angles), turn_by(right, k, angles)

    return Broadcasting()


def frequencies_of_all_modules() -> Callable[..., Any]:
    """One memory for the whole program, which forgets the factor and the trained length."""
    kept: dict[Any, Any] = {}

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        key = (right.head_dim, right.base, right.scaling)
        frequencies = kept.setdefault(key, per_pair(right).double())
        angles = spread(positions.double(), frequencies)
        return turn_by(right, q, angles), turn_by(right, k, angles)

    return stretched(forward)


def scaled_without_gradients(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
    turned_q, turned_k = right(q, k, positions)
    return turned_q.detach(), turned_k.detach()


SCALED_ROTARY_EMBEDDING = (
    Misconception(
        "scaled-rotary-interleaved",
        stretched(scaled_interleaved),
        "scaled_rotary_embedding_unscaled",
        "Your module pairs neighbours. It has the half layout, which pairs coordinate i with "
        "i + head_dim/2, as the models do that are stretched this way.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-keys-not-rotated",
        stretched(scaled_keys_not_rotated),
        "scaled_rotary_embedding_unscaled",
        "The keys came back as they went in. Rotate both: only then does their dot product depend "
        "on the distance.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-clockwise",
        stretched(scaled_clockwise),
        "scaled_rotary_embedding_unscaled",
        "Every pair turns the wrong way. The second coordinate of a pair enters the first one "
        "with a minus sign, the first enters the second with a plus.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-half-without-minus",
        stretched(scaled_half_turned(1, False)),
        "scaled_rotary_embedding_unscaled",
        "The turned half has no minus sign, so pairs are stretched and not rotated. The second "
        "half comes to the front with a minus, the first to the back without.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-tables-of-other-layout",
        stretched(scaled_half_turned(-1, True)),
        "scaled_rotary_embedding_unscaled",
        "You exchange halves, but your cosines and sines repeat each angle for neighbours, as the "
        "interleaved layout wants them. For halves the whole ladder is repeated as a block.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-default-linear",
        stretched(lambda module, right, *inputs: right(*inputs), default="linear"),
        "scaled_rotary_embedding_yarn",
        "Without a scaling your module is another one than YaRN's. The default is yarn.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-ignores-base",
        stretched(scaled_default_base),
        "scaled_rotary_embedding_llama3",
        "The base given at construction changes nothing: every module turns as with base 10000.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-yarn-of-2048",
        stretched(scaled_default_length_of("yarn")),
        "scaled_rotary_embedding_yarn",
        "Under yarn the ramp is where 2048 trained tokens would put it, whatever original_length "
        "was given. Hand it on.",
        "ext-yarn",
    ),
    Misconception(
        "scaled-rotary-llama3-of-2048",
        stretched(scaled_default_length_of("llama3")),
        "scaled_rotary_embedding_llama3",
        "Under llama3 the bands are those of 2048 trained tokens, whatever original_length was "
        "given. Hand it on.",
        "ext-llama3",
    ),
    Misconception(
        "scaled-rotary-whole-positions",
        stretched(scaled_whole_positions),
        "scaled_rotary_embedding_linear",
        "The divided positions were made whole numbers, so position 3 by 4 is 0 and its token is "
        "not rotated at all. Keep the fractions.",
        "ext-interpolation",
    ),
    Misconception(
        "scaled-rotary-multiplied-positions",
        stretched(scaled_multiplied_positions),
        "scaled_rotary_embedding_linear",
        "Linear scaling multiplied by the factor, which takes tokens further out instead of back "
        "into the trained range. Divide.",
        "ext-interpolation",
    ),
    Misconception(
        "scaled-rotary-attention-for-all",
        stretched(scaled_attention_for_all),
        "scaled_rotary_embedding_linear",
        "Queries and keys became longer under every scaling. The attention factor is YaRN's: the "
        "other three only turn.",
        "ext-attention-factor",
    ),
    Misconception(
        "scaled-rotary-ntk-bare-factor",
        stretched(by_frequencies(numpy_frequencies(ntk_bare_factor, "ntk"))),
        "scaled_rotary_embedding_ntk",
        "Under ntk the base was multiplied by the bare factor, so the slowest pair is slowed by "
        "less. The exponent head_dim/(head_dim − 2) is missing.",
        "ext-ntk",
    ),
    Misconception(
        "scaled-rotary-without-attention-factor",
        stretched(scaled_without_attention),
        "scaled_rotary_embedding_yarn",
        "The pairs turn rightly, but the attention factor is missing. YaRN multiplies cosines and "
        "sines by 0.1·ln(factor) + 1.",
        "ext-attention-factor",
    ),
    Misconception(
        "scaled-rotary-attention-factor-twice",
        stretched(scaled_attention_twice),
        "scaled_rotary_embedding_yarn",
        "Queries and keys carry the attention factor twice, so scores have its fourth power. "
        "Once on cosines and sines is all: the product of q and k squares it.",
        "ext-attention-factor",
    ),
    Misconception(
        "scaled-rotary-attention-factor-on-queries",
        stretched(scaled_attention_on_queries),
        "scaled_rotary_embedding_yarn",
        "Only the queries carry the attention factor. Cosines and sines are multiplied, and both "
        "queries and keys are rotated with them.",
        "ext-attention-factor",
    ),
    Misconception(
        "scaled-rotary-attention-factor-on-keys",
        stretched(scaled_attention_on_keys),
        "scaled_rotary_embedding_yarn",
        "Only the keys carry the attention factor. Cosines and sines are multiplied, and both "
        "queries and keys are rotated with them.",
        "ext-attention-factor",
    ),
    Misconception(
        "scaled-rotary-attention-factor-on-cosines",
        stretched(scaled_by_tables(lambda cos, sin, strength: (strength * cos, sin))),
        "scaled_rotary_embedding_yarn",
        "Only the cosines carry the attention factor, so pairs change their direction with their "
        "length. Multiply cosines and sines.",
        "ext-attention-factor",
    ),
    Misconception(
        "scaled-rotary-attention-factor-on-sines",
        stretched(scaled_by_tables(lambda cos, sin, strength: (cos, strength * sin))),
        "scaled_rotary_embedding_yarn",
        "Only the sines carry the attention factor, so pairs change their direction with their "
        "length. Multiply cosines and sines.",
        "ext-attention-factor",
    ),
    Misconception(
        "scaled-rotary-attention-factor-root",
        stretched(scaled_attention_root),
        "scaled_rotary_embedding_yarn",
        "A root too many: 0.1·ln(factor) + 1 already is the root of 1/t. Cosines and sines are "
        "multiplied by it as it is.",
        "ext-attention-factor",
    ),
    Misconception(
        "scaled-rotary-yarn-inverted",
        stretched(by_frequencies(numpy_frequencies(yarn_inverted, "yarn"))),
        "scaled_rotary_embedding_yarn",
        "YaRN's ramp is upside down in your module: fast pairs are slowed, slow ones kept.",
        "ext-yarn",
    ),
    Misconception(
        "scaled-rotary-llama3-unscaled",
        stretched(by_frequencies(numpy_frequencies(llama3_unscaled, "llama3"))),
        "scaled_rotary_embedding_llama3",
        "Under llama3 the module turns as if nothing had been scaled. If the scaled ladder is "
        "computed somewhere, look at which name the angles are made of.",
        "ext-llama3",
    ),
    Misconception(
        "scaled-rotary-ignores-trained-length",
        stretched(scaled_default_length),
        "scaled_rotary_embedding_yarn",
        "The original_length given at construction changes nothing: 2048 is only its default.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-rows-on-heads",
        stretched(scaled_rows_on_heads),
        "scaled_rotary_embedding_rows_and_heads",
        "Positions (batch, seq) were lined up with the heads, because the angles have no axis for "
        "them. Give them one between batch and sequence.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-repeats-keys",
        stretched(scaled_repeats_keys),
        "scaled_rotary_embedding_rows_and_heads",
        "The keys came back with as many heads as the queries. Rotate the few heads there are: "
        "repeating them is attention's business.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-integer-positions",
        stretched(scaled_integer_positions),
        "scaled_rotary_embedding_fractions",
        "Positions were made whole numbers. They may be fractions: keep them, in float32 at least.",
        "ext-interpolation",
    ),
    Misconception(
        "scaled-rotary-by-text-length",
        stretched(scaled_by_text_length),
        "scaled_rotary_embedding_no_memory",
        "The ladder follows the longest text so far, so keys that were cached before stand on "
        "another ladder than queries that come later. All four scalings are fixed once made.",
        "ext-decode",
    ),
    Misconception(
        "scaled-rotary-buffer-cast",
        stretched(scaled_buffer, keep_frequencies),
        "scaled_rotary_embedding_cast_module",
        "Your frequencies are a buffer or a parameter, and casting the module rounded them for "
        "good. Keep them where a cast cannot reach, or compute them in forward.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-any-scaling",
        scaled_any_scaling,
        "scaled_rotary_embedding_refuses_scaling",
        "A scaling that does not exist was taken for one that does, and the model would run on "
        "the wrong ladder. Raise a ValueError that names the four.",
        "ex-ScaledRotaryEmbedding",
    ),
    Misconception(
        "scaled-rotary-attention-factor-below-one",
        stretched(scaled_attention_below_one),
        "scaled_rotary_embedding_other_arguments",
        "For a factor below 1 your attention factor falls below 1. There it is 1, as in "
        "`yarn_attention_factor`.",
        "ext-attention-factor",
    ),
    Misconception(
        "scaled-rotary-angles-like-q",
        stretched(scaled_angles_like_q),
        "scaled_rotary_embedding_low_precision",
        "Positions and frequencies were cast to the dtype of q. bfloat16 cannot tell 1000 from "
        "1001: compute angles in float32 at least, and cast the result.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-float32-results",
        stretched(scaled_float32_results),
        "scaled_rotary_embedding_low_precision",
        "Low-precision queries came back as float32. Compute in float32, but return the dtype "
        "that came in.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-matrix-product",
        stretched(scaled_matrix_product),
        "scaled_rotary_embedding_autocast",
        "The angles came from a matrix product, and autocast runs those in bfloat16 whatever you "
        "cast before. Multiply elementwise, or switch autocast off there.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-shared-frequencies",
        frequencies_of_all_modules(),
        "scaled_rotary_embedding_yarn",
        "A second module got the frequencies of the first, though its factor is another. What is "
        "remembered must be looked up by all that it depends on; better remember nothing.",
        "ext-decode",
    ),
    Misconception(
        "scaled-rotary-never-float64",
        stretched(scaled_without_float64),
        "scaled_rotary_embedding_other_sizes",
        "float64 queries came back as float32. Results keep the dtype that came in.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-in-place",
        stretched(scaled_in_place),
        "scaled_rotary_embedding_leaves_input",
        "q and k themselves were overwritten. Other code may hold them, so return new tensors.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-any-factor",
        scaled_any_factor,
        "scaled_rotary_embedding_refuses_numbers",
        "A factor of zero or less made a module. A text cannot be stretched by it: raise.",
        "ex-ScaledRotaryEmbedding",
    ),
    Misconception(
        "scaled-rotary-broadcasts",
        scaled_broadcasts,
        "scaled_rotary_embedding_refuses_shapes",
        "Positions of another shape went through, because torch broadcast them: tokens were turned "
        "by positions that are not theirs. Compare the shapes before you compute.",
        "ext-module",
    ),
    Misconception(
        "scaled-rotary-cuts-gradients",
        stretched(scaled_without_gradients),
        "scaled_rotary_embedding_gradients",
        "The numbers are right, but no gradient arrives at q and k: the result was "
        "detached, or made without gradients. Nothing that stands before it could be trained.",
        "ex-ScaledRotaryEmbedding",
    ),
)

MISCONCEPTIONS: dict[str, tuple[Misconception, ...]] = {
    "interpolate_positions": INTERPOLATE_POSITIONS,
    "ntk_base": NTK_BASE,
    "dynamic_ntk_frequencies": DYNAMIC_NTK_FREQUENCIES,
    "yarn_frequencies": YARN_FREQUENCIES,
    "yarn_attention_factor": YARN_ATTENTION_FACTOR,
    "llama3_frequencies": LLAMA3_FREQUENCIES,
    "longrope_frequencies": LONGROPE_FREQUENCIES,
    "fixed_yarn_ramp": FIXED_YARN_RAMP,
    "ScaledRotaryEmbedding": SCALED_ROTARY_EMBEDDING,
}

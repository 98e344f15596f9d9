"""Wrong answers to the exercises on sinusoidal encodings, and the sentences that help.

Each is right but for one belief. Where a public report tells of it, the report is cited; the code
and the words are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solutions.with_numpy import sinusoidal as right

from ..exercise import Misconception

Array = np.ndarray

# -------------------------------------------------------------------------------- frequencies


def ladder(dim: int, base: float, exponent: Callable[[Array], Array]) -> Array:
    """base^exponent(i) for each pair i, with the validation of the reference."""
    right.frequencies(dim, base)
    return base ** exponent(np.arange(dim // 2))


def frequencies_doubled(dim: int, base: float = 10000.0) -> Array:
    """SamLynnEvans/Transformer#25, DeepCTR#379: the index already counts in twos."""
    return ladder(dim, base, lambda i: -4 * i / dim)


def frequencies_halved(dim: int, base: float = 10000.0) -> Array:
    return ladder(dim, base, lambda i: -i / dim)


def frequencies_from_one(dim: int, base: float = 10000.0) -> Array:
    return ladder(dim, base, lambda i: -2 * (i + 1) / dim)


def frequencies_to_the_very_base(dim: int, base: float = 10000.0) -> Array:
    """tensor2tensor#391, #1423: divided by one step less, so the ladder ends at 1/base."""
    return ladder(dim, base, lambda i: -i / max(dim // 2 - 1, 1))


def frequencies_growing(dim: int, base: float = 10000.0) -> Array:
    return ladder(dim, base, lambda i: 2 * i / dim)


def frequencies_per_coordinate(dim: int, base: float = 10000.0) -> Array:
    """Right for each coordinate, where one for each pair is asked for."""
    return np.repeat(right.frequencies(dim, base), 2)


def frequencies_own_for_cosine(dim: int, base: float = 10000.0) -> Array:
    """The exponent counts coordinates: sine and cosine of a pair turn at two speeds."""
    right.frequencies(dim, base)
    return base ** (-np.arange(dim) / dim)


def frequencies_floor_division(dim: int, base: float = 10000.0) -> Array:
    """LoFTR#41: −log(base) / dim // 2 is rounded down to a whole number, −1 at usual widths."""
    right.frequencies(dim, base)
    return np.exp(np.arange(0, dim, 2) * (-math.log(base) / dim // 1))


def frequencies_without_base(dim: int, base: float = 10000.0) -> Array:
    right.frequencies(dim, base)
    return right.frequencies(dim)


def frequencies_float32(dim: int, base: float = 10000.0) -> Array:
    """Back in float64, as an answer with a coarser mistake would otherwise be called float32."""
    return right.frequencies(dim, base).astype(np.float32).astype(np.float64)


def frequencies_of_odd_width(dim: int, base: float = 10000.0) -> Array:
    """BERT-pytorch#78: an odd width gets a last frequency that has no cosine to go with it."""
    if dim <= 0 or dim % 2 == 0:
        return right.frequencies(dim, base)
    return base ** (-np.arange(0, dim, 2) / dim)


FREQUENCIES = (
    Misconception(
        "frequencies-exponent-doubled",
        frequencies_doubled,
        "frequencies_powers_of_ten",
        "The exponent has its factor 2 twice, so the ladder falls too fast. If your index counts "
        "coordinates in steps of two, the 2 is already in it.",
        "sin-ladder",
    ),
    Misconception(
        "frequencies-exponent-halved",
        frequencies_halved,
        "frequencies_powers_of_ten",
        "The exponent is i/dim where it should be 2i/dim: there are dim/2 pairs, so the pair's "
        "index must be doubled to run through the whole ladder.",
        "sin-ladder",
    ),
    Misconception(
        "frequencies-counted-from-one",
        frequencies_from_one,
        "frequencies_powers_of_ten",
        "Your fastest pair is already slowed down. Count the pairs from zero: the first one turns "
        "by 1 radian per position.",
        "sin-ladder",
    ),
    Misconception(
        "frequencies-one-step-less",
        frequencies_to_the_very_base,
        "frequencies_powers_of_ten",
        "Your ladder ends at 1/base, as if it were divided by dim/2 − 1 steps. It has dim/2 "
        "steps, and its last rung stays one step above 1/base.",
        "sin-clock",
    ),
    Misconception(
        "frequencies-growing",
        frequencies_growing,
        "frequencies_powers_of_ten",
        "Your pairs turn faster and faster. The position is divided by base^(2i/dim), so the first "
        "pair is the fastest and each later one slower.",
        "sin-ladder",
    ),
    Misconception(
        "frequencies-for-both-members",
        frequencies_per_coordinate,
        "frequencies_powers_of_ten",
        "Every frequency is there twice, once for the sine and once for the cosine. One for each "
        "pair is asked for, dim/2 of them.",
        "sin-clock",
    ),
    Misconception(
        "frequencies-one-per-coordinate",
        frequencies_own_for_cosine,
        "frequencies_powers_of_ten",
        "There are dim different frequencies, one for each coordinate. Sine and cosine of a pair "
        "share one, so the exponent counts pairs and there are dim/2.",
        "sin-clock",
    ),
    Misconception(
        "frequencies-floor-division",
        frequencies_floor_division,
        "frequencies_powers_of_ten",
        "A division in your exponent is rounded down to a whole number, so the steps of the ladder "
        "are far too large. Look for // where / belongs, and at what it applies to.",
        "sin-ladder",
    ),
    Misconception(
        "frequencies-ignore-base",
        frequencies_without_base,
        "frequencies_other_base",
        "The base that was passed in is never used: 10000 is only its default.",
        "sin-ladder",
    ),
    Misconception(
        "frequencies-float32",
        frequencies_float32,
        "frequencies_float64",
        "The frequencies are no float64 array, or went through float32. A position in the "
        "thousands multiplies a rounding error; tables are float64 here, and results are cast "
        "later, once.",
        "ex-frequencies",
    ),
    Misconception(
        "frequencies-of-odd-width",
        frequencies_of_odd_width,
        "frequencies_refuses_dim",
        "An odd dim was accepted, and its last frequency has a sine but no cosine. Refuse it at "
        "once with a ValueError that names it: later it fails far from its cause.",
        "ex-frequencies",
    ),
)

# -------------------------------------------------------------------------------- wavelengths


def wavelengths_not_inverted(dim: int, base: float = 10000.0) -> Array:
    return 2 * np.pi * right.frequencies(dim, base)


def wavelengths_without_turn(dim: int, base: float = 10000.0) -> Array:
    return 1 / right.frequencies(dim, base)


def wavelengths_turns_per_token(dim: int, base: float = 10000.0) -> Array:
    return right.frequencies(dim, base) / (2 * np.pi)


def wavelengths_half_turn(dim: int, base: float = 10000.0) -> Array:
    """From one zero of the sine to the next, or from crest to trough."""
    return np.pi / right.frequencies(dim, base)


def wavelengths_degrees(dim: int, base: float = 10000.0) -> Array:
    return 360 / right.frequencies(dim, base)


def wavelengths_to_the_limit(dim: int, base: float = 10000.0) -> Array:
    """What "from 2π to 10000·2π" says when it is taken at its word."""
    return 2 * np.pi / frequencies_to_the_very_base(dim, base)


def wavelengths_doubled(dim: int, base: float = 10000.0) -> Array:
    return 2 * np.pi / frequencies_doubled(dim, base)


def wavelengths_longest_first(dim: int, base: float = 10000.0) -> Array:
    return right.wavelengths(dim, base)[::-1]


def wavelengths_without_base(dim: int, base: float = 10000.0) -> Array:
    right.wavelengths(dim, base)
    return right.wavelengths(dim)


def wavelengths_evenly_spaced(dim: int, base: float = 10000.0) -> Array:
    lengths = right.wavelengths(dim, base)
    return np.linspace(lengths[0], lengths[-1], dim // 2)


def wavelengths_float32(dim: int, base: float = 10000.0) -> Array:
    """Back in float64, as an answer with a coarser mistake would otherwise be called float32."""
    return right.wavelengths(dim, base).astype(np.float32).astype(np.float64)


def wavelengths_of_odd_width(dim: int, base: float = 10000.0) -> Array:
    return 2 * np.pi / frequencies_of_odd_width(dim, base)


WAVELENGTHS = (
    Misconception(
        "wavelengths-not-inverted",
        wavelengths_not_inverted,
        "wavelengths_of_two_pairs",
        "Your wavelengths get shorter from pair to pair. The slower a pair turns, the longer it "
        "takes to come round: divide by the frequency.",
        "sin-ladder",
    ),
    Misconception(
        "wavelengths-without-two-pi",
        wavelengths_without_turn,
        "wavelengths_of_two_pairs",
        "Your numbers are the positions that it takes to turn by one radian. A full turn has 2π "
        "of them.",
        "sin-ladder",
    ),
    Misconception(
        "wavelengths-turns-per-position",
        wavelengths_turns_per_token,
        "wavelengths_of_two_pairs",
        "Your numbers are turns per position. Positions per turn are asked for, which is one over "
        "that.",
        "sin-ladder",
    ),
    Misconception(
        "wavelengths-half-turn",
        wavelengths_half_turn,
        "wavelengths_of_two_pairs",
        "After π radians a hand points the other way, and sine and cosine have changed sign. Only "
        "after 2π does the pair stand as it did.",
        "sin-clock",
    ),
    Misconception(
        "wavelengths-degrees",
        wavelengths_degrees,
        "wavelengths_of_two_pairs",
        "A full turn was counted as 360, which is degrees, but the frequencies are in radians per "
        "position. In radians a full turn is 2π.",
        "sin-ladder",
    ),
    Misconception(
        "wavelengths-reach-the-limit",
        wavelengths_to_the_limit,
        "wavelengths_of_two_pairs",
        "Your longest wavelength is 2π·base. That is the limit for ever wider vectors; the last "
        "pair of a vector of width dim has 2π·base^((dim − 2)/dim).",
        "sin-ladder",
    ),
    Misconception(
        "wavelengths-exponent-doubled",
        wavelengths_doubled,
        "wavelengths_of_two_pairs",
        "The exponent has its factor 2 twice, so the wavelengths grow too fast. If your index "
        "counts coordinates in steps of two, the 2 is already in it.",
        "sin-ladder",
    ),
    Misconception(
        "wavelengths-longest-first",
        wavelengths_longest_first,
        "wavelengths_of_two_pairs",
        "Your wavelengths start with the longest. They belong to the pairs in their order, and "
        "the first pair is the fastest.",
        "sin-ladder",
    ),
    Misconception(
        "wavelengths-evenly-spaced",
        wavelengths_evenly_spaced,
        "wavelengths_below_the_limit",
        "First and last wavelength are right, but yours grow by equal differences. They form a "
        "geometric progression: each is the same factor times the one before.",
        "sin-ladder",
    ),
    Misconception(
        "wavelengths-ignore-base",
        wavelengths_without_base,
        "wavelengths_other_base",
        "The base that was passed in is never used: 10000 is only its default.",
        "sin-ladder",
    ),
    Misconception(
        "wavelengths-of-odd-width",
        wavelengths_of_odd_width,
        "wavelengths_refuses_dim",
        "An odd dim was accepted, though its last pair would have a sine and no cosine. Refuse it "
        "with a ValueError that names it.",
        "ex-wavelengths",
    ),
    Misconception(
        "wavelengths-float32",
        wavelengths_float32,
        "wavelengths_float64",
        "The wavelengths are no float64 array, or went through float32. Tables are float64 here: "
        "results are cast later, once.",
        "ex-wavelengths",
    ),
)

# ------------------------------------------------------------------------ sinusoidal_encoding


def from_angles(positions: Array, dim: int, base: float, turns: Array) -> Array:
    """Interleaved sine and cosine of positions·turns, with the validation of the reference."""
    encoding = right.sinusoidal_encoding(positions, dim, base)
    angles = right.as_floats(positions, "positions")[..., None] * turns
    encoding[..., 0::2], encoding[..., 1::2] = np.sin(angles), np.cos(angles)
    return encoding


def blocks(encoding: Array) -> Array:
    """All sines, then all cosines: the layout of many libraries."""
    return np.concatenate([encoding[..., 0::2], encoding[..., 1::2]], axis=-1)


def encoding_index_doubled(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """SamLynnEvans/Transformer#25, DeepCTR#379, jadore801120#32: the exponent takes the index of
    the coordinate and doubles it, so that a sine and its cosine turn at two speeds."""
    right.sinusoidal_encoding(positions, dim, base)
    column = np.arange(dim)
    angles = right.as_floats(positions, "positions")[..., None] * base ** (-2 * column / dim)
    return np.where(column % 2 == 0, np.sin(angles), np.cos(angles))


def encoding_exponent_doubled(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return from_angles(positions, dim, base, frequencies_doubled(dim, base))


def encoding_own_for_cosine(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """The exponent counts coordinates one by one, odd ones too."""
    right.sinusoidal_encoding(positions, dim, base)
    column = np.arange(dim)
    angles = right.as_floats(positions, "positions")[..., None] * base ** (-column / dim)
    return np.where(column % 2 == 0, np.sin(angles), np.cos(angles))


def encoding_blocks(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """tensor2tensor#391: half of what its table does otherwise."""
    return blocks(right.sinusoidal_encoding(positions, dim, base))


def encoding_cosine_first(positions: Array, dim: int, base: float = 10000.0) -> Array:
    pairs = right.sinusoidal_encoding(positions, dim, base).reshape(*np.shape(positions), -1, 2)
    return pairs[..., ::-1].reshape(*np.shape(positions), dim)


def encoding_one_step_less(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """tensor2tensor#1423: the other half of what its table does otherwise."""
    return from_angles(positions, dim, base, frequencies_to_the_very_base(dim, base))


def encoding_from_one(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return from_angles(positions, dim, base, frequencies_from_one(dim, base))


def encoding_growing(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return from_angles(positions, dim, base, frequencies_growing(dim, base))


def encoding_positions_from_one(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return right.sinusoidal_encoding(right.as_floats(positions, "positions") + 1, dim, base)


def encoding_of_a_range(positions: Array, dim: int, base: float = 10000.0) -> Array:
    shape = np.shape(positions)
    return right.sinusoidal_encoding(np.arange(math.prod(shape)).reshape(shape), dim, base)


def encoding_all_sines(positions: Array, dim: int, base: float = 10000.0) -> Array:
    encoding = right.sinusoidal_encoding(positions, dim, base)
    return encoding[..., np.arange(dim) // 2 * 2]


def encoding_whole_turns(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """The frequency read as turns per position."""
    return from_angles(positions, dim, base, 2 * np.pi * right.frequencies(dim, base))


def encoding_without_base(positions: Array, dim: int, base: float = 10000.0) -> Array:
    right.sinusoidal_encoding(positions, dim, base)
    return right.sinusoidal_encoding(positions, dim)


def encoding_flattened(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return right.sinusoidal_encoding(np.ravel(positions), dim, base)


def encoding_like_positions(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """np.empty_like, or a cast to the dtype that came in: integers cut the waves off."""
    return right.sinusoidal_encoding(positions, dim, base).astype(np.asarray(positions).dtype)


def encoding_float32_angles(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """As in most model code, where it costs little at a few hundred positions."""
    turns = right.frequencies(dim, base).astype(np.float32)
    angles = right.as_floats(positions, "positions").astype(np.float32)[..., None] * turns
    pairs = np.stack([np.sin(angles.astype(np.float64)), np.cos(angles.astype(np.float64))], -1)
    return np.reshape(pairs, (*np.shape(positions), dim))


def encoding_float32_result(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return right.sinusoidal_encoding(positions, dim, base).astype(np.float32)


def encoding_of_odd_width(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """BERT-pytorch#78, with the cure of its thread: cut the last cosine off."""
    if dim <= 0 or dim % 2 == 0:
        return right.sinusoidal_encoding(positions, dim, base)
    turns = base ** (-(np.arange(dim) // 2 * 2) / dim)
    angles = right.as_floats(positions, "positions")[..., None] * turns
    return np.where(np.arange(dim) % 2 == 0, np.sin(angles), np.cos(angles))


def encoding_in_place(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """Each pair's angles out of the pair's before, in an array that is no copy of float64 input."""
    encoding = right.sinusoidal_encoding(positions, dim, base)
    angles = np.asarray(positions, dtype=np.float64)
    for i in range(dim // 2):
        encoding[..., 2 * i], encoding[..., 2 * i + 1] = np.sin(angles), np.cos(angles)
        angles /= base ** (2 / dim)
    return encoding


SINUSOIDAL_ENCODING = (
    Misconception(
        "sinusoidal-encoding-index-doubled",
        encoding_index_doubled,
        "sinusoidal_encoding_published_rows",
        "Your exponent doubles an index that already counts coordinates, so a sine and its cosine "
        "turn at different speeds, and both too slowly. Both share 2i/dim with i the pair.",
        "sin-clock",
    ),
    Misconception(
        "sinusoidal-encoding-exponent-doubled",
        encoding_exponent_doubled,
        "sinusoidal_encoding_published_rows",
        "The exponent has its factor 2 twice, so the ladder falls too fast. If your index counts "
        "coordinates in steps of two, the 2 is already in it.",
        "sin-ladder",
    ),
    Misconception(
        "sinusoidal-encoding-cosine-of-its-own",
        encoding_own_for_cosine,
        "sinusoidal_encoding_published_rows",
        "The sines are right, but each cosine turns more slowly than its sine. The two are one "
        "hand of a clock, its height and its width, so they share one angle.",
        "sin-clock",
    ),
    Misconception(
        "sinusoidal-encoding-in-blocks",
        encoding_blocks,
        "sinusoidal_encoding_published_rows",
        "All sines stand first and all cosines after them, as some libraries have it. The paper "
        "puts the two of a pair side by side, in coordinates 2i and 2i + 1.",
        "sin-clock",
    ),
    Misconception(
        "sinusoidal-encoding-cosine-first",
        encoding_cosine_first,
        "sinusoidal_encoding_published_rows",
        "Sine and cosine have changed places. The even coordinate is the sine: position 0 is "
        "0, 1, 0, 1 and so on.",
        "sin-code",
    ),
    Misconception(
        "sinusoidal-encoding-one-step-less",
        encoding_one_step_less,
        "sinusoidal_encoding_published_rows",
        "Your ladder ends at 1/base, as if it were divided by dim/2 − 1 steps. It has dim/2 "
        "steps, and its last rung stays one step above 1/base.",
        "sin-ladder",
    ),
    Misconception(
        "sinusoidal-encoding-pairs-from-one",
        encoding_from_one,
        "sinusoidal_encoding_published_rows",
        "Your fastest pair is already slowed down. Count the pairs from zero: the first one turns "
        "by 1 radian per position.",
        "sin-ladder",
    ),
    Misconception(
        "sinusoidal-encoding-growing",
        encoding_growing,
        "sinusoidal_encoding_published_rows",
        "Your pairs turn faster and faster. The position is divided by base^(2i/dim), so each "
        "pair is slower than the one before.",
        "sin-ladder",
    ),
    Misconception(
        "sinusoidal-encoding-positions-from-one",
        encoding_positions_from_one,
        "sinusoidal_encoding_published_rows",
        "Every position is one too high. Positions count from zero, and they come as they are: "
        "use them without adding anything.",
        "sin-code",
    ),
    Misconception(
        "sinusoidal-encoding-ignores-positions",
        encoding_of_a_range,
        "sinusoidal_encoding_published_rows",
        "The rows are those of positions 0, 1, 2, … whatever positions were given. Multiply the "
        "frequencies by the positions themselves: they may start anywhere.",
        "sin-code",
    ),
    Misconception(
        "sinusoidal-encoding-all-sines",
        encoding_all_sines,
        "sinusoidal_encoding_published_rows",
        "There are only sines. A sine alone does not tell a hand that rises from one that falls; "
        "its cosine does, and it goes into coordinate 2i + 1.",
        "sin-clock",
    ),
    Misconception(
        "sinusoidal-encoding-whole-turns",
        encoding_whole_turns,
        "sinusoidal_encoding_published_rows",
        "Your angles have a factor 2π too many. The frequencies are radians per position already, "
        "and whole positions times 2π would all look alike.",
        "sin-ladder",
    ),
    Misconception(
        "sinusoidal-encoding-ignores-base",
        encoding_without_base,
        "sinusoidal_encoding_many_positions",
        "The base that was passed in is never used: 10000 is only its default.",
        "sin-ladder",
    ),
    Misconception(
        "sinusoidal-encoding-flattened",
        encoding_flattened,
        "sinusoidal_encoding_any_shape",
        "Positions with several axes came back flattened. Keep their shape and add one axis at "
        "the end, for the coordinates.",
        "sin-code",
    ),
    Misconception(
        "sinusoidal-encoding-like-positions",
        encoding_like_positions,
        "sinusoidal_encoding_published_rows",
        "The result has the dtype of the positions. Where those are integers, sines and cosines "
        "are cut down to −1, 0 and 1: make the table float64.",
        "sin-code",
    ),
    Misconception(
        "sinusoidal-encoding-float32-result",
        encoding_float32_result,
        "sinusoidal_encoding_dtypes",
        "The table is float32. Tables are float64 here: what uses them casts once, at the end.",
        "ex-sinusoidal_encoding",
    ),
    Misconception(
        "sinusoidal-encoding-of-odd-width",
        encoding_of_odd_width,
        "sinusoidal_encoding_refuses_dim",
        "An odd dim was accepted, with a last sine that has no cosine. Such a pair has no angle "
        "that can be read back, and no shift matrix: refuse it with a ValueError that names it.",
        "ex-sinusoidal_encoding",
    ),
    Misconception(
        "sinusoidal-encoding-float32-angles",
        encoding_float32_angles,
        "sinusoidal_encoding_far_out",
        "The angles were computed in float32, which has few digits left for a position of 100 000: "
        "the fast pairs point elsewhere. Compute them in float64.",
        "ex-sinusoidal_encoding",
    ),
    Misconception(
        "sinusoidal-encoding-in-place",
        encoding_in_place,
        "sinusoidal_encoding_leaves_input",
        "The caller's positions were overwritten. Work on a copy: somebody may still need them.",
        "ex-sinusoidal_encoding",
    ),
)

# ------------------------------------------------------------------------------- shift_matrix


def shift_with(
    offset: float, dim: int, base: float, block: Callable[[Array, Array], list[list[Array]]]
) -> Array:
    """A matrix whose 2 × 2 blocks are block(cosines, sines) of the angles of the offset."""
    right.shift_matrix(offset, dim, base)
    angles = offset * right.frequencies(dim, base)
    matrix = np.zeros((dim, dim))
    for row, entries in enumerate(block(np.cos(angles), np.sin(angles))):
        for column, values in enumerate(entries):
            matrix[range(row, dim, 2), range(column, dim, 2)] = values
    return matrix


def shift_transposed(offset: float, dim: int, base: float = 10000.0) -> Array:
    """The rotation matrix of the schoolbook, for (cos, sin); here the sine comes first."""
    return right.shift_matrix(offset, dim, base).T


def shift_two_plus_signs(offset: float, dim: int, base: float = 10000.0) -> Array:
    return shift_with(offset, dim, base, lambda cos, sin: [[cos, sin], [sin, cos]])


def shift_sine_on_diagonal(offset: float, dim: int, base: float = 10000.0) -> Array:
    return shift_with(offset, dim, base, lambda cos, sin: [[sin, cos], [cos, -sin]])


def shift_reflection(offset: float, dim: int, base: float = 10000.0) -> Array:
    return shift_with(offset, dim, base, lambda cos, sin: [[cos, sin], [sin, -cos]])


def shift_block_order(offset: float, dim: int, base: float = 10000.0) -> Array:
    """For a vector with all sines first: coordinate i goes with i + dim/2."""
    order = np.argsort(np.arange(dim) % 2, kind="stable")
    return right.shift_matrix(offset, dim, base)[np.ix_(order, order)]


def shift_one_angle(offset: float, dim: int, base: float = 10000.0) -> Array:
    right.shift_matrix(offset, dim, base)
    return np.kron(np.eye(dim // 2), right.shift_matrix(offset, 2))


def shift_pairs_from_one(offset: float, dim: int, base: float = 10000.0) -> Array:
    right.shift_matrix(offset, dim, base)
    pairs = right.shift_matrix(offset, dim + 2, base ** ((dim + 2) / dim))
    return pairs[2:, 2:]


def shift_without_base(offset: float, dim: int, base: float = 10000.0) -> Array:
    right.shift_matrix(offset, dim, base)
    return right.shift_matrix(offset, dim)


def shift_diagonal(offset: float, dim: int, base: float = 10000.0) -> Array:
    """Each coordinate by itself: what would take position 0 to the offset, were it not for 0."""
    right.shift_matrix(offset, dim, base)
    return np.diag(right.sinusoidal_encoding(offset, dim, base))


def shift_whole_steps(offset: float, dim: int, base: float = 10000.0) -> Array:
    step = right.shift_matrix(1, dim, base)
    return np.linalg.matrix_power(step, int(offset))


def shift_forward_only(offset: float, dim: int, base: float = 10000.0) -> Array:
    return right.shift_matrix(abs(offset), dim, base)


def shift_float32(offset: float, dim: int, base: float = 10000.0) -> Array:
    return right.shift_matrix(offset, dim, base).astype(np.float32)


def shift_float32_angles(offset: float, dim: int, base: float = 10000.0) -> Array:
    right.shift_matrix(offset, dim, base)
    matrix = np.zeros((dim, dim))
    for i, turn in enumerate(right.frequencies(dim, base).astype(np.float32)):
        angle = float(np.float32(offset) * turn)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = right.shift_matrix(angle, 2)
    return matrix


def shift_of_odd_width(offset: float, dim: int, base: float = 10000.0) -> Array:
    if dim <= 0 or dim % 2 == 0:
        return right.shift_matrix(offset, dim, base)
    return right.shift_matrix(offset, dim + 1, base)[:dim, :dim]


SHIFT_MATRIX = (
    Misconception(
        "shift-matrix-transposed",
        shift_transposed,
        "shift_matrix_five_to_eight",
        "Your matrix moves by −offset: it takes position 5 to position 2. The textbook's rotation "
        "matrix is made for (cos, sin), and here the sine comes first.",
        "sin-shift",
    ),
    Misconception(
        "shift-matrix-two-plus-signs",
        shift_two_plus_signs,
        "shift_matrix_five_to_eight",
        "Both sines of a block carry the same sign, so the block turns nothing: it stretches. Of "
        "the two addition theorems one has a plus and one a minus.",
        "sin-shift",
    ),
    Misconception(
        "shift-matrix-sine-on-diagonal",
        shift_sine_on_diagonal,
        "shift_matrix_five_to_eight",
        "Sine and cosine have changed places in your blocks. With offset 0 nothing may move, so "
        "what stands on the diagonal has to be 1 there.",
        "sin-shift",
    ),
    Misconception(
        "shift-matrix-reflection",
        shift_reflection,
        "shift_matrix_five_to_eight",
        "Your blocks mirror the hands of the clock: at offset 0 every cosine changes its sign. The "
        "minus sign belongs to a sine.",
        "sin-shift",
    ),
    Misconception(
        "shift-matrix-block-order",
        shift_block_order,
        "shift_matrix_five_to_eight",
        "Your matrix is made for vectors with all sines first. Here the two of a pair are "
        "neighbours, so all that is not 0 lies in 2 × 2 blocks along the diagonal.",
        "sin-shift",
    ),
    Misconception(
        "shift-matrix-one-angle",
        shift_one_angle,
        "shift_matrix_five_to_eight",
        "All pairs turn by the same angle. Each turns by the offset times its own frequency.",
        "sin-shift",
    ),
    Misconception(
        "shift-matrix-pairs-from-one",
        shift_pairs_from_one,
        "shift_matrix_five_to_eight",
        "Your first pair turns too slowly. Count the pairs from zero: the first turns by 1 radian "
        "per position.",
        "sin-ladder",
    ),
    Misconception(
        "shift-matrix-diagonal",
        shift_diagonal,
        "shift_matrix_five_to_eight",
        "Your matrix multiplies each coordinate by a number of its own. No such factor works for "
        "every position: a moved sine is a mixture of the sine and the cosine of its pair.",
        "sin-shift",
    ),
    Misconception(
        "shift-matrix-ignores-base",
        shift_without_base,
        "shift_matrix_every_position",
        "The base that was passed in is never used: 10000 is only its default.",
        "sin-ladder",
    ),
    Misconception(
        "shift-matrix-forward-only",
        shift_forward_only,
        "shift_matrix_backwards",
        "A negative offset moved forward. Cosines do not feel its sign, sines do: leave it on.",
        "sin-shift",
    ),
    Misconception(
        "shift-matrix-whole-steps",
        shift_whole_steps,
        "shift_matrix_backwards",
        "The offset was rounded to whole positions. It is a factor of an angle, so half a position "
        "turns each pair by half of its frequency.",
        "sin-shift",
    ),
    Misconception(
        "shift-matrix-of-odd-width",
        shift_of_odd_width,
        "shift_matrix_refuses_dim",
        "An odd dim was accepted, and the last sine has no cosine to be mixed with. Refuse it with "
        "a ValueError that names it.",
        "ex-shift_matrix",
    ),
    Misconception(
        "shift-matrix-float32",
        shift_float32,
        "shift_matrix_float64",
        "The matrix is float32. Tables are float64 here: what uses them casts once, at the end.",
        "ex-shift_matrix",
    ),
    Misconception(
        "shift-matrix-float32-angles",
        shift_float32_angles,
        "shift_matrix_far",
        "The angles were computed in float32, which has few digits left for an offset of 100 000. "
        "Compute them in float64.",
        "ex-shift_matrix",
    ),
)

# ---------------------------------------------------------------------------- decode_position


def decode_by(
    encoding: Array,
    max_position: int,
    base: float,
    error: Callable[[Array], Array],
    limit: float = 0.05,
    start: int = 0,
    end: int = 0,
    first: bool = False,
    table: Callable[..., Array] = right.sinusoidal_encoding,
) -> int:
    """The position of least error(differences), unless that is above the limit."""
    encoding = right.as_floats(encoding, "encoding")
    if encoding.ndim != 1 or max_position < 0:
        raise ValueError("one vector, and no negative number of positions")
    positions = np.arange(start, max_position + end)
    errors = error(np.abs(table(positions, len(encoding), base) - encoding))
    if not len(positions) or not errors.min() <= limit:
        raise ValueError("no position fits")
    return int(positions[np.argmax(errors <= limit) if first else errors.argmin()])


def largest(difference: Array) -> Array:
    return difference.max(axis=-1)


def decode_first_fit(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    return decode_by(encoding, max_position, base, largest, first=True)


def decode_never_refuses(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    return decode_by(encoding, max_position, base, largest, limit=np.inf)


def decode_mean_error(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    return decode_by(encoding, max_position, base, lambda d: d.mean(axis=-1))


def decode_wide_limit(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    return decode_by(encoding, max_position, base, largest, limit=0.1)


def decode_sines_only(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    return decode_by(encoding, max_position, base, lambda d: largest(d[..., 0::2]))


def decode_fastest_pair(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    """The angle of the first hand, which has come round many times."""
    right.decode_position(encoding, max_position, base)
    return round(math.atan2(encoding[0], encoding[1]) % (2 * math.pi))


def decode_slowest_pair(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    """The angle of the last hand, which moves too little to be read with noise on it."""
    right.decode_position(encoding, max_position, base)
    angle = math.atan2(encoding[-2], encoding[-1]) % (2 * math.pi)
    return round(angle / right.frequencies(len(encoding), base)[-1])


def decode_without_base(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    """Whatever fits best on the wrong ladder."""
    right.decode_position(encoding, max_position, base)
    return decode_never_refuses(encoding, max_position)


def decode_one_too_many(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    return decode_by(encoding, max_position, base, largest, end=1)


def decode_from_one(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    """Right for every position but the one that is left out."""
    return 1 + decode_by(encoding, max_position, base, largest)


def decode_as_float(encoding: Array, max_position: int, base: float = 10000.0) -> Any:
    return float(right.decode_position(encoding, max_position, base))


def decode_signless(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    """A slack of 0.05 on one side alone: differences are compared before their sign is dropped."""
    encoding = right.as_floats(encoding, "encoding")
    if encoding.ndim != 1 or max_position < 0:
        raise ValueError("one vector, and no negative number of positions")
    table = right.sinusoidal_encoding(np.arange(max_position), len(encoding), base)
    fits = np.flatnonzero(((table - encoding) <= 0.05).all(axis=-1))
    if not len(fits):
        raise ValueError("no position fits")
    return int(fits[np.abs(table[fits] - encoding).max(axis=-1).argmin()])


def decode_in_place(encoding: Array, max_position: int, base: float = 10000.0) -> int:
    position = right.decode_position(encoding, max_position, base)
    if encoding.dtype == np.float64:
        encoding -= right.sinusoidal_encoding(position, len(encoding), base)
    return position


DECODE_POSITION = (
    Misconception(
        "decode-position-fastest-pair",
        decode_fastest_pair,
        "decode_position_four_digits",
        "Only the first pair was read, as if its hand had never come round. It turns once in 6.28 "
        "positions: the slower ones tell in which turn it is.",
        "sin-unique",
    ),
    Misconception(
        "decode-position-from-one",
        decode_from_one,
        "decode_position_four_digits",
        "Every position is one too high. They count from zero, as the rows of a table do.",
        "ex-decode_position",
    ),
    Misconception(
        "decode-position-ignores-base",
        decode_without_base,
        "decode_position_other_base",
        "The base that was passed in is never used: with another base, another position has these "
        "sines and cosines.",
        "sin-ladder",
    ),
    Misconception(
        "decode-position-as-float",
        decode_as_float,
        "decode_position_other_base",
        "The position is right, but it is a float. A position counts tokens, and is used as an "
        "index: return an int.",
        "ex-decode_position",
    ),
    Misconception(
        "decode-position-slowest-pair",
        decode_slowest_pair,
        "decode_position_noise",
        "Only the last pair was read. It has not come round yet, but it moves so little that a "
        "small error is many positions: the faster ones give the precision.",
        "sin-unique",
    ),
    Misconception(
        "decode-position-first-fit",
        decode_first_fit,
        "decode_position_nearest",
        "The first position that fits was taken. Several may fit within 0.05, above all in narrow "
        "vectors, and the nearest of them is asked for.",
        "sin-unique",
    ),
    Misconception(
        "decode-position-never-refuses",
        decode_never_refuses,
        "decode_position_refuses_misfits",
        "The nearest position was returned however far it is. A nearest one exists for any vector, "
        "an encoding or not: look at its error before you trust it.",
        "ex-decode_position",
    ),
    Misconception(
        "decode-position-mean-error",
        decode_mean_error,
        "decode_position_refuses_misfits",
        "The mean error was compared with 0.05, so that one bad coordinate hides among good ones. "
        "Each coordinate has to fit.",
        "ex-decode_position",
    ),
    Misconception(
        "decode-position-wide-limit",
        decode_wide_limit,
        "decode_position_refuses_misfits",
        "A vector that is off by 0.07 in every coordinate was accepted. The limit is 0.05 for each "
        "coordinate: far from a position is not at a position.",
        "ex-decode_position",
    ),
    Misconception(
        "decode-position-sines-only",
        decode_sines_only,
        "decode_position_refuses_misfits",
        "Only the sines were compared. The cosines belong to the encoding too, and tell a rising "
        "sine from a falling one.",
        "sin-clock",
    ),
    Misconception(
        "decode-position-one-sided",
        decode_signless,
        "decode_position_refuses_misfits",
        "The difference was compared with 0.05 before its sign was dropped, so errors to the other "
        "side of any size count as a fit.",
        "ex-decode_position",
    ),
    Misconception(
        "decode-position-one-too-many",
        decode_one_too_many,
        "decode_position_max_position",
        "Position max_position was found, which is one too far: range(max_position) ends before "
        "it.",
        "ex-decode_position",
    ),
    Misconception(
        "decode-position-in-place",
        decode_in_place,
        "decode_position_leaves_input",
        "The caller's encoding was overwritten. Work on a copy: somebody may still need it.",
        "ex-decode_position",
    ),
)

# ------------------------------------------------------------------------------- fixed_layout


def layout_untouched(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """tensor2tensor#391, #1423: the table as the library has it."""
    return blocks(encoding_one_step_less(positions, dim, base))


def layout_order_only(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return encoding_one_step_less(positions, dim, base)


def layout_ladder_only(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return encoding_blocks(positions, dim, base)


def layout_wrong_way(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """Blocks, taken apart once more where they were to be zipped."""
    return blocks(encoding_blocks(positions, dim, base))


def layout_cosine_first(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return encoding_cosine_first(positions, dim, base)


def layout_one_step_more(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return from_angles(positions, dim, base, ladder(dim, base, lambda i: -i / (dim // 2 + 1)))


def layout_divides_by_dim(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return from_angles(positions, dim, base, frequencies_halved(dim, base))


def layout_as_range(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return encoding_of_a_range(positions, dim, base)


def layout_without_base(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return encoding_without_base(positions, dim, base)


def layout_flattened(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return encoding_flattened(positions, dim, base)


def layout_float32(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return encoding_float32_result(positions, dim, base)


def layout_padded_width(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """What that library does with an odd width: a last column of zeros."""
    if dim < 3 or dim % 2 == 0:
        return right.fixed_layout(positions, dim, base)
    narrower = right.fixed_layout(positions, dim - 1, base)
    return np.concatenate([narrower, np.zeros((*narrower.shape[:-1], 1))], axis=-1)


def layout_in_place(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return encoding_in_place(positions, dim, base)


FIXED_LAYOUT = (
    Misconception(
        "fixed-layout-untouched",
        layout_untouched,
        "fixed_layout_published_rows",
        "Both faults are still there: sines and cosines stand in two blocks, and the ladder ends "
        "at 1/base.",
        "sin-layouts",
    ),
    Misconception(
        "fixed-layout-order-only",
        layout_order_only,
        "fixed_layout_published_rows",
        "Sines and cosines are neighbours now, but the ladder is still the library's: its last "
        "rung is 1/base. The paper's has dim/2 steps, not dim/2 − 1.",
        "sin-layouts",
    ),
    Misconception(
        "fixed-layout-ladder-only",
        layout_ladder_only,
        "fixed_layout_published_rows",
        "The frequencies are right now, but all sines still stand before all cosines. The two of a "
        "pair belong side by side, in coordinates 2i and 2i + 1.",
        "sin-layouts",
    ),
    Misconception(
        "fixed-layout-wrong-way",
        layout_wrong_way,
        "fixed_layout_published_rows",
        "The columns were taken apart a second time where they had to be zipped. Column i of the "
        "sines goes to 2i, column i of the cosines to 2i + 1.",
        "sin-layouts",
    ),
    Misconception(
        "fixed-layout-cosine-first",
        layout_cosine_first,
        "fixed_layout_published_rows",
        "The pairs are zipped with the cosine in front. The even coordinate is the sine: position "
        "0 is 0, 1, 0, 1 and so on.",
        "sin-code",
    ),
    Misconception(
        "fixed-layout-one-step-more",
        layout_one_step_more,
        "fixed_layout_published_rows",
        "The ladder was mended to the other side: it now has dim/2 + 1 steps. The exponent of pair "
        "i is 2i/dim, which is i divided by dim/2.",
        "sin-ladder",
    ),
    Misconception(
        "fixed-layout-divides-by-dim",
        layout_divides_by_dim,
        "fixed_layout_published_rows",
        "Your exponent is i/dim. The paper's 2i is the coordinate of the sine, twice the index of "
        "its pair: divide the index of the pair by dim/2.",
        "sin-ladder",
    ),
    Misconception(
        "fixed-layout-ignores-positions",
        layout_as_range,
        "fixed_layout_published_rows",
        "The rows are those of positions 0, 1, 2, … whatever positions were given, as a table by "
        "length would be. Use the positions themselves.",
        "sin-code",
    ),
    Misconception(
        "fixed-layout-ignores-base",
        layout_without_base,
        "fixed_layout_other_base",
        "The base that was passed in is never used: 10000 is only its default.",
        "sin-ladder",
    ),
    Misconception(
        "fixed-layout-pads-odd-width",
        layout_padded_width,
        "fixed_layout_refuses_dim",
        "An odd dim was accepted and padded with zeros, as the library does. The paper's table has "
        "no such column: refuse an odd dim with a ValueError that names it.",
        "sin-layouts",
    ),
    Misconception(
        "fixed-layout-flattened",
        layout_flattened,
        "fixed_layout_any_shape",
        "Positions with several axes came back flattened. Keep their shape and add one axis at "
        "the end, for the coordinates.",
        "sin-code",
    ),
    Misconception(
        "fixed-layout-float32",
        layout_float32,
        "fixed_layout_other_base",
        "The table is float32, as the library's is, or its angles were. Tables are float64 here, "
        "from the positions on: what uses them casts once, at the end.",
        "ex-fixed_layout",
    ),
    Misconception(
        "fixed-layout-in-place",
        layout_in_place,
        "fixed_layout_leaves_input",
        "The caller's positions were overwritten. Work on a copy: somebody may still need them.",
        "ex-fixed_layout",
    ),
)

# ------------------------------------------------------------------------- SinusoidalEncoding


def encoder(
    dim: int,
    max_len: int,
    base: float,
    forward: Callable[..., Any],
    setup: Callable[[Any], None] = lambda module: None,
    refuse: Callable[[Any, Any, int], None] = lambda right, x, offset: right(x, offset),
) -> Any:
    """A torch module whose forward(module, rows, x, offset) is given, with `rows` the right ones.
    torch is imported here, since it costs a second that NumPy's exercises need not pay.
    """
    import torch

    from solutions.with_torch.sinusoidal import SinusoidalEncoding

    right = SinusoidalEncoding(dim, max_len, base)
    table = right.table

    class Encoder(torch.nn.Module):
        def forward(self, x: Any, offset: int = 0) -> Any:
            refuse(right, x, offset)  # what is to be refused
            return forward(self, table[offset : offset + x.shape[1]], x, offset)

    module = Encoder()
    setup(module)
    return module


def table_of(dim: int, max_len: int, base: float) -> Any:
    from solutions.with_torch.sinusoidal import sinusoidal_table

    return sinusoidal_table(max_len, dim, base)


def module_batch_axis(dim: int, max_len: int, base: float = 10000.0) -> Any:
    """AkiRusProd/numpy-transformer#1: every token of row b of the batch gets PE(b)."""

    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        taken = table_of(dim, offset + len(x), base)[offset:, None]
        return (x + taken).to(x.dtype)

    return encoder(dim, max_len, base, forward)


def module_ignores_offset(dim: int, max_len: int, base: float = 10000.0) -> Any:
    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        return (x + table_of(dim, x.shape[1], base)).to(x.dtype)

    return encoder(dim, max_len, base, forward)


def module_offset_too_high(dim: int, max_len: int, base: float = 10000.0) -> Any:
    """fla#766, in another layer: the number of tokens was raised before it was used."""

    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        end = offset + x.shape[1] + 1
        return (x + table_of(dim, end, base)[offset + 1 :]).to(x.dtype)

    return encoder(dim, max_len, base, forward)


def module_one_row(dim: int, max_len: int, base: float = 10000.0) -> Any:
    """The row of the offset for all tokens: right while one token at a time is decoded."""
    return encoder(dim, max_len, base, lambda module, rows, x, o: (x + rows[:1]).to(x.dtype))


def module_blocks(dim: int, max_len: int, base: float = 10000.0) -> Any:
    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        import torch

        return (x + torch.cat([rows[:, 0::2], rows[:, 1::2]], dim=-1)).to(x.dtype)

    return encoder(dim, max_len, base, forward)


def module_scales_input(dim: int, max_len: int, base: float = 10000.0) -> Any:
    """Section 3.4 of the paper scales the embeddings by √d_model, in the embedding layer."""
    return encoder(
        dim, max_len, base, lambda module, rows, x, o: (x * math.sqrt(dim) + rows).to(x.dtype)
    )


def module_returns_rows(dim: int, max_len: int, base: float = 10000.0) -> Any:
    return encoder(dim, max_len, base, lambda module, rows, x, o: rows.expand(x.shape).to(x.dtype))


def module_without_base(dim: int, max_len: int, base: float = 10000.0) -> Any:
    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        return (x + table_of(dim, offset + x.shape[1], 10000.0)[offset:]).to(x.dtype)

    return encoder(dim, max_len, base, forward)


def module_wraps_round(dim: int, max_len: int, base: float = 10000.0) -> Any:
    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        import torch

        positions = torch.arange(offset, offset + x.shape[1]) % max_len
        return (x + table_of(dim, max_len, base)[positions]).to(x.dtype)

    return encoder(dim, max_len, base, forward, refuse=refuses_width)


def module_clamps(dim: int, max_len: int, base: float = 10000.0) -> Any:
    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        import torch

        positions = torch.arange(offset, offset + x.shape[1]).clamp(0, max_len - 1)
        return (x + table_of(dim, max_len, base)[positions]).to(x.dtype)

    return encoder(dim, max_len, base, forward, refuse=refuses_width)


def refuses_width(right: Any, x: Any, offset: int) -> None:
    """All that the reference refuses, but for the offset."""
    right(x[:, :1], 0)


def module_counts_from_the_end(dim: int, max_len: int, base: float = 10000.0) -> Any:
    """A negative offset counts back from the end of the table, as indices in Python do."""

    def refuse(right: Any, x: Any, offset: int) -> None:
        right(x, offset % max_len if offset < 0 else offset)

    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        start = offset % max_len if offset < 0 else offset
        return (x + table_of(dim, start + x.shape[1], base)[start:]).to(x.dtype)

    return encoder(dim, max_len, base, forward, refuse=refuse)


def module_angles_like_x(dim: int, max_len: int, base: float = 10000.0) -> Any:
    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        import torch

        positions = torch.arange(offset, offset + x.shape[1]).to(x.dtype)
        turns = (base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)).to(x.dtype)
        angles = positions[:, None] * turns
        return x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)

    return encoder(dim, max_len, base, forward)


def module_float32_results(dim: int, max_len: int, base: float = 10000.0) -> Any:
    return encoder(dim, max_len, base, lambda module, rows, x, o: x + rows)


def module_buffer_cast(dim: int, max_len: int, base: float = 10000.0) -> Any:
    """transformers#25681, #29496, on another table: casting the module casts its buffers."""

    def setup(module: Any) -> None:
        module.register_buffer("rows", table_of(dim, max_len, base), persistent=False)

    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        return (x + module.rows[offset : offset + x.shape[1]]).to(x.dtype)

    return encoder(dim, max_len, base, forward, setup)


def module_frequencies_cast(dim: int, max_len: int, base: float = 10000.0) -> Any:
    def setup(module: Any) -> None:
        import torch

        turns = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        module.register_buffer("turns", turns, persistent=False)

    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        import torch

        angles = torch.arange(offset, offset + x.shape[1])[:, None] * module.turns.double()
        return (x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)).to(x.dtype)

    return encoder(dim, max_len, base, forward, setup)


def module_persistent(dim: int, max_len: int, base: float = 10000.0) -> Any:
    """The usual buffer, which goes into every checkpoint and ties its max_len to it."""

    def setup(module: Any) -> None:
        module.register_buffer("rows", table_of(dim, max_len, base))

    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        return (x + rows).to(x.dtype)

    return encoder(dim, max_len, base, forward, setup)


def module_remembers(dim: int, max_len: int, base: float = 10000.0) -> Any:
    """positional-encodings 6.0.3 keeps its first table for as long as the shape is the same."""

    def setup(module: Any) -> None:
        module.memory = {}

    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        return (x + module.memory.setdefault(x.shape[1], rows)).to(x.dtype)

    return encoder(dim, max_len, base, forward, setup)


def module_in_place(dim: int, max_len: int, base: float = 10000.0) -> Any:
    return encoder(dim, max_len, base, lambda module, rows, x, o: x.copy_((x + rows).to(x.dtype)))


def module_broadcasts_width(dim: int, max_len: int, base: float = 10000.0) -> Any:
    """x of width 1 is stretched to dim, and no wider x is."""

    def refuse(right: Any, x: Any, offset: int) -> None:
        right(x.expand(*x.shape[:-1], dim) if x.shape[-1] == 1 else x, offset)

    return encoder(
        dim, max_len, base, lambda module, rows, x, o: (x + rows).to(x.dtype), refuse=refuse
    )


def module_without_gradients(dim: int, max_len: int, base: float = 10000.0) -> Any:
    def forward(module: Any, rows: Any, x: Any, offset: int) -> Any:
        return (x.detach() + rows).to(x.dtype)

    return encoder(dim, max_len, base, forward)


SINUSOIDAL_ENCODING_MODULE = (
    Misconception(
        "sinusoidal-module-batch-axis",
        module_batch_axis,
        "sinusoidal_encoding_module_published_rows",
        "All tokens of a row of the batch got the same encoding, that of the row's number. The "
        "position runs along the sequence axis, the second one.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-ignores-offset",
        module_ignores_offset,
        "sinusoidal_encoding_module_published_rows",
        "The rows start at position 0 whatever the offset is. When a text goes on, its first "
        "token here is not its first token.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-offset-too-high",
        module_offset_too_high,
        "sinusoidal_encoding_module_published_rows",
        "Every position is one too high. The offset is the position of the first token itself, "
        "since positions count from zero.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-one-row",
        module_one_row,
        "sinusoidal_encoding_module_published_rows",
        "All tokens got the row of the offset. That is right for a single token; token t needs the "
        "row of offset + t.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-in-blocks",
        module_blocks,
        "sinusoidal_encoding_module_published_rows",
        "All sines stand first and all cosines after them, as some libraries have it. The paper "
        "puts the two of a pair side by side.",
        "sin-layouts",
    ),
    Misconception(
        "sinusoidal-module-scales-input",
        module_scales_input,
        "sinusoidal_encoding_module_published_rows",
        "x was multiplied by the root of dim first. The paper does that in its embedding layer; "
        "this module adds the rows and nothing else.",
        "sin-add",
    ),
    Misconception(
        "sinusoidal-module-returns-rows",
        module_returns_rows,
        "sinusoidal_encoding_module_published_rows",
        "The encodings came back without the tokens. Add them to x: the sum goes into the first "
        "layer.",
        "sin-add",
    ),
    Misconception(
        "sinusoidal-module-ignores-base",
        module_without_base,
        "sinusoidal_encoding_module_offset",
        "The base given at construction changes nothing: every module has the table of 10000.",
        "sin-ladder",
    ),
    Misconception(
        "sinusoidal-module-wraps-round",
        module_wraps_round,
        "sinusoidal_encoding_module_refuses_offset",
        "Past its end the table starts over, so that two tokens get the same position and nobody "
        "is told. Refuse with a ValueError.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-clamps",
        module_clamps,
        "sinusoidal_encoding_module_refuses_offset",
        "Past the end of the table every token gets its last row, so that order is lost and nobody "
        "is told. Refuse with a ValueError.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-counts-from-the-end",
        module_counts_from_the_end,
        "sinusoidal_encoding_module_refuses_offset",
        "A negative offset took rows from the end of the table, as Python's indices do. No token "
        "has such a position: refuse with a ValueError.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-angles-like-x",
        module_angles_like_x,
        "sinusoidal_encoding_module_bfloat16",
        "The angles were computed in the dtype of x. bfloat16 cannot tell 1000 from 1001: compute "
        "the rows in float32 at least, and cast the sum.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-float32-results",
        module_float32_results,
        "sinusoidal_encoding_module_bfloat16",
        "Low-precision input came back as float32, the dtype of the table. Cast the sum back to "
        "the dtype of x, or the rest of the model is slowed down.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-buffer-cast",
        module_buffer_cast,
        "sinusoidal_encoding_module_cast",
        "Casting the module rounded the rows of your table for good: a buffer follows every cast, "
        "and so does a parameter. Keep them where no cast can reach, or build them anew after it.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-frequencies-cast",
        module_frequencies_cast,
        "sinusoidal_encoding_module_cast",
        "Your frequencies are a buffer or a parameter, and casting the module rounded them for "
        "good. Wide arithmetic afterwards does not bring the digits back.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-persistent",
        module_persistent,
        "sinusoidal_encoding_module_state_dict",
        "Your state_dict is not empty. With the table in it, every checkpoint carries it and fits "
        "only into a module of the same max_len. Nothing in it was trained: leave it out.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-remembers",
        module_remembers,
        "sinusoidal_encoding_module_offset",
        "A call got the rows of an earlier one that had the same length and another offset. "
        "Remember nothing, or look up by all that the rows depend on.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-in-place",
        module_in_place,
        "sinusoidal_encoding_module_leaves_input",
        "x itself was overwritten. Other code may hold it, so return a new tensor.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-broadcasts-width",
        module_broadcasts_width,
        "sinusoidal_encoding_module_refuses_width",
        "Vectors of width 1 were stretched to dim, because torch broadcasts an axis of length 1. "
        "Compare the last axis with dim before you add.",
        "sin-module",
    ),
    Misconception(
        "sinusoidal-module-cuts-gradients",
        module_without_gradients,
        "sinusoidal_encoding_module_gradients",
        "The numbers are right, but no gradient arrives at x: the result was "
        "detached, or made without gradients. Nothing that stands before it could be trained.",
        "ex-SinusoidalEncoding",
    ),
)

MISCONCEPTIONS: dict[str, tuple[Misconception, ...]] = {
    "frequencies": FREQUENCIES,
    "wavelengths": WAVELENGTHS,
    "sinusoidal_encoding": SINUSOIDAL_ENCODING,
    "shift_matrix": SHIFT_MATRIX,
    "decode_position": DECODE_POSITION,
    "fixed_layout": FIXED_LAYOUT,
    "SinusoidalEncoding": SINUSOIDAL_ENCODING_MODULE,
}

"""Wrong answers to the exercises on rotary position embeddings, and the sentences that help.

Each is right but for one belief. Where a public report tells of it, the report is cited; the code
and the words are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solutions.with_numpy import rope

from ..exercise import Misconception

Array = np.ndarray

# ---------------------------------------------------------------------------------- rotate_2d


def turn(vector: Array, cos: Array, sin: Array) -> Array:
    """(a, b) → (a·cos − b·sin, a·sin + b·cos), in the dtype of `vector`."""
    vector = rope.as_floats(vector, "vector")
    if vector.shape[-1:] != (2,):
        raise ValueError("the last axis must have length 2")
    a, b = vector[..., 0], vector[..., 1]
    return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).astype(vector.dtype)


def rotate_clockwise(vector: Array, angle: Array) -> Array:
    return turn(vector, np.cos(angle), -np.sin(angle))


def rotate_sin_for_cos(vector: Array, angle: Array) -> Array:
    return turn(vector, np.sin(angle), np.cos(angle))


def rotate_degrees(vector: Array, angle: Array) -> Array:
    return turn(vector, np.cos(np.radians(angle)), np.sin(np.radians(angle)))


def rotate_one_after_the_other(vector: Array, angle: Array) -> Array:
    """The second line uses the first coordinate as the first line has left it."""
    vector = rope.as_floats(vector, "vector")
    a, b = vector[..., 0], vector[..., 1]
    a = a * np.cos(angle) - b * np.sin(angle)
    b = a * np.sin(angle) + b * np.cos(angle)
    return np.stack([a, b], axis=-1).astype(vector.dtype)


def rotate_into_integers(vector: Array, angle: Array) -> Array:
    """The course's own source material did this."""
    return rope.rotate_2d(vector, angle).astype(np.asarray(vector).dtype)


def rotate_in_place(vector: Array, angle: Array) -> Array:
    vector = rope.as_floats(vector, "vector")
    rotated = rope.rotate_2d(vector, angle)
    if rotated.shape != vector.shape:
        return rotated
    vector[...] = rotated
    return vector


def rotate_always_float64(vector: Array, angle: Array) -> Array:
    return rope.rotate_2d(np.asarray(vector, dtype=np.float64), angle)


ROTATE_2D = (
    Misconception(
        "rotate-2d-clockwise",
        rotate_clockwise,
        "rotate_2d_quarter_turn",
        "Your rotation turns clockwise. A positive angle turns the first axis towards the second: "
        "look at which of the two sines carries the minus sign.",
        "rope-plane",
    ),
    Misconception(
        "rotate-2d-sin-for-cos",
        rotate_sin_for_cos,
        "rotate_2d_quarter_turn",
        "Sine and cosine have changed places. At angle zero a rotation must do nothing, so what "
        "multiplies a coordinate by itself has to be 1 there.",
        "rope-plane",
    ),
    Misconception(
        "rotate-2d-degrees",
        rotate_degrees,
        "rotate_2d_quarter_turn",
        "The angle was read as degrees. Angles in this book are radians, as NumPy's sine expects "
        "them, so no conversion is needed.",
        "rope-plane",
    ),
    Misconception(
        "rotate-2d-one-after-the-other",
        rotate_one_after_the_other,
        "rotate_2d_quarter_turn",
        "The second coordinate was computed from a first one that was already rotated. Both new "
        "coordinates need both old ones, so keep those until the end.",
        "rope-plane",
    ),
    Misconception(
        "rotate-2d-truncates-integers",
        rotate_into_integers,
        "rotate_2d_integers",
        "The fractions were cut off because the result has the integer dtype of the input. Turn "
        "integers into float64 before you rotate.",
        "ex-rotate_2d",
    ),
    Misconception(
        "rotate-2d-in-place",
        rotate_in_place,
        "rotate_2d_leaves_input",
        "The result was written into the caller's own array. Build a new one: somebody may still "
        "need the vector that went in.",
        "ex-rotate_2d",
    ),
    Misconception(
        "rotate-2d-always-float64",
        rotate_always_float64,
        "rotate_2d_keeps_dtype",
        "The numbers are right, but a small floating dtype came back as float64. Cast the result "
        "to the floating dtype of the vector, as the last step.",
        "ex-rotate_2d",
    ),
)

# -------------------------------------------------------------------------------- rope_angles


def ladder(positions: Array, dim: int, base: float, exponent: Callable[[Array], Array]) -> Array:
    """Angles position·base^exponent(i), with the validation of the reference."""
    rope.rope_angles(positions, dim, base)
    positions = rope.as_floats(positions, "positions").astype(np.float64)
    return positions[..., None] * base ** exponent(np.arange(dim // 2))


def angles_doubled(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """SamLynnEvans/Transformer#25, DeepCTR#379: the index already counts in twos."""
    return ladder(positions, dim, base, lambda i: -4 * i / dim)


def angles_halved(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return ladder(positions, dim, base, lambda i: -i / dim)


def angles_from_one(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """RoFormer numbers the pairs from 1 and subtracts 1 in the exponent; this does only half."""
    return ladder(positions, dim, base, lambda i: -2 * (i + 1) / dim)


def angles_to_the_very_base(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """tensor2tensor#391: the ladder is divided by one step less, so it ends at 1/base."""
    return ladder(positions, dim, base, lambda i: -i / max(dim // 2 - 1, 1))


def angles_growing(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return ladder(positions, dim, base, lambda i: 2 * i / dim)


def angles_of_a_range(positions: Array, dim: int, base: float = 10000.0) -> Array:
    shape = np.shape(positions)
    return rope.rope_angles(np.arange(math.prod(shape)).reshape(shape), dim, base)


def angles_without_base(positions: Array, dim: int, base: float = 10000.0) -> Array:
    rope.rope_angles(positions, dim, base)
    return rope.rope_angles(positions, dim)


def angles_flattened(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return rope.rope_angles(np.ravel(positions), dim, base)


def angles_float32(positions: Array, dim: int, base: float = 10000.0) -> Array:
    frequencies = rope.rope_angles(1, dim, base).astype(np.float32)
    return np.asarray(positions, dtype=np.float32)[..., None] * frequencies


def angles_repeated(positions: Array, dim: int, base: float = 10000.0) -> Array:
    return np.repeat(rope.rope_angles(positions, dim, base), 2, axis=-1)


def angles_in_two_blocks(positions: Array, dim: int, base: float = 10000.0) -> Array:
    """As most model code holds them, for its half layout."""
    return np.concatenate([rope.rope_angles(positions, dim, base)] * 2, axis=-1)


ROPE_ANGLES = (
    Misconception(
        "rope-angles-exponent-doubled",
        angles_doubled,
        "rope_angles_powers_of_ten",
        "The exponent has its factor 2 twice, so the ladder falls too fast. If your index counts "
        "coordinates in steps of two, the 2 is already in it.",
        "rope-ladder",
    ),
    Misconception(
        "rope-angles-exponent-halved",
        angles_halved,
        "rope_angles_powers_of_ten",
        "The exponent is i/dim where it should be 2i/dim: there are dim/2 pairs, so the pair's "
        "index must be doubled to run through the whole ladder.",
        "rope-ladder",
    ),
    Misconception(
        "rope-angles-counted-from-one",
        angles_from_one,
        "rope_angles_powers_of_ten",
        "Your fastest pair is already slowed down. The paper counts pairs from one and takes one "
        "away in the exponent; count from zero, and the first pair turns by 1 per position.",
        "rope-ladder",
    ),
    Misconception(
        "rope-angles-one-step-less",
        angles_to_the_very_base,
        "rope_angles_powers_of_ten",
        "Your ladder ends at 1/base, as if it were divided by dim/2 − 1. It has dim/2 steps, and "
        "its last rung stays one step above that.",
        "rope-ladder",
    ),
    Misconception(
        "rope-angles-growing",
        angles_growing,
        "rope_angles_powers_of_ten",
        "Your pairs turn faster and faster. The exponent is negative: the first pair is the "
        "fastest and each later one slower.",
        "rope-ladder",
    ),
    Misconception(
        "rope-angles-ignore-positions",
        angles_of_a_range,
        "rope_angles_powers_of_ten",
        "The angles are those of 0, 1, 2, … whatever positions were given. Multiply by the "
        "positions themselves: they may start anywhere.",
        "rope-ladder",
    ),
    Misconception(
        "rope-angles-for-both-members",
        angles_repeated,
        "rope_angles_powers_of_ten",
        "Every angle is there twice, once for each member of its pair. One angle for each pair is "
        "asked for, dim/2 of them: the rotation hands it to both.",
        "rope-ladder",
    ),
    Misconception(
        "rope-angles-in-two-blocks",
        angles_in_two_blocks,
        "rope_angles_powers_of_ten",
        "The whole ladder is there twice, as model code for the half layout likes it. One angle "
        "for each pair is asked for, dim/2 of them, whatever the layout is.",
        "rope-ladder",
    ),
    Misconception(
        "rope-angles-ignore-base",
        angles_without_base,
        "rope_angles_other_base",
        "The base that was passed in is never used: 10000 is only its default. Models with long "
        "contexts use other ones.",
        "rope-ladder",
    ),
    Misconception(
        "rope-angles-flattened",
        angles_flattened,
        "rope_angles_any_shape",
        "Positions with several axes came back flattened. Keep their shape and add one axis at "
        "the end, for the pairs.",
        "rope-ladder",
    ),
    Misconception(
        "rope-angles-float32",
        angles_float32,
        "rope_angles_float64",
        "The angles were computed in float32, which has no digits left for large positions. "
        "Tables are float64 here; the results are cast later, once.",
        "rope-ladder",
    ),
)

# --------------------------------------------------------------------------------- apply_rope


def rotate_with(
    x: Array, positions: Array, base: float, layout: str, turned: Callable[[Array, Array], Array]
) -> Array:
    """apply_rope with turned(pairs (..., dim/2, 2), angles) in the place of rotate_2d."""
    x = rope.as_floats(x, "x")
    rope.apply_rope(x, positions, base, layout)  # refuses what is to be refused
    angles = rope.rope_angles(positions, x.shape[-1], base)
    half = x.shape[-1] // 2
    if layout == "half":
        pairs = x.reshape(*x.shape[:-1], 2, half).swapaxes(-1, -2)
        return turned(pairs, angles).swapaxes(-1, -2).reshape(x.shape)
    return turned(x.reshape(*x.shape[:-1], half, 2), angles).reshape(x.shape)


def apply_clockwise(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    return rotate_with(x, positions, base, layout, rotate_clockwise)


def apply_sin_for_cos(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    return rotate_with(x, positions, base, layout, rotate_sin_for_cos)


def apply_layouts_swapped(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    """transformers#25199, flash-attention#288: one layout's weights in the other's code."""
    swapped = {"interleaved": "half", "half": "interleaved"}.get(layout, layout)
    return rope.apply_rope(x, positions, base, swapped)


def apply_without_zipping(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    """Even and odd coordinates are rotated rightly, and then stand in two blocks."""
    rotated = rope.apply_rope(x, positions, base, layout)
    if layout == "half":
        return rotated
    return np.concatenate([rotated[..., 0::2], rotated[..., 1::2]], axis=-1)


def apply_tables_of_other_layout(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    """Neighbours are exchanged, but the angles are laid out θ0 θ1 … θ0 θ1 … for the halves."""
    rotated = rope.apply_rope(x, positions, base, layout)
    if layout == "half":
        return rotated
    x = rope.as_floats(x, "x")
    angles = np.concatenate([rope.rope_angles(positions, x.shape[-1], base)] * 2, axis=-1)
    swapped = np.stack([-x[..., 1::2], x[..., 0::2]], axis=-1).reshape(x.shape)
    return (x * np.cos(angles) + swapped * np.sin(angles)).astype(x.dtype)


def apply_to_a_range(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    rope.apply_rope(x, positions, base, layout)
    return rope.apply_rope(x, np.arange(x.shape[-2]), base, layout)


def apply_exponent_doubled(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    rope.apply_rope(x, positions, base, layout)
    return rope.apply_rope(x, positions, base**2, layout)


def apply_without_base(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    rope.apply_rope(x, positions, base, layout)
    return rope.apply_rope(x, positions, layout=layout)


def apply_one_after_the_other(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    """The second members of the pairs use the first ones as the line above has left them."""

    def turn_badly(pairs: Array, angles: Array) -> Array:
        a, b = pairs[..., 0], pairs[..., 1]
        a = a * np.cos(angles) - b * np.sin(angles)
        b = a * np.sin(angles) + b * np.cos(angles)
        return np.stack([a, b], axis=-1).astype(pairs.dtype)

    return rotate_with(x, positions, base, layout, turn_badly)


def apply_one_layout(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    rope.apply_rope(x, positions, base, layout)
    return rope.apply_rope(x, positions, base)


def apply_half_written_interleaved(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    """The half layout is read from two blocks, and its results are written to 0::2 and 1::2."""
    rotated = rope.apply_rope(x, positions, base, layout)
    if layout != "half":
        return rotated
    return rotated.reshape(*rotated.shape[:-1], 2, -1).swapaxes(-1, -2).reshape(rotated.shape)


def apply_into_integers(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    """The course's own source material: np.empty_like of an integer x."""
    return rope.apply_rope(x, positions, base, layout).astype(x.dtype)


def apply_in_place(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    """unsloth#5001: other code still held the tensor."""
    x = rope.as_floats(x, "x")
    x[...] = rope.apply_rope(x, positions, base, layout)
    return x


def apply_always_half(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    rope.apply_rope(x, positions, base, layout)
    return rope.apply_rope(x, positions, base, "half")


def apply_float64(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    return rope.apply_rope(np.asarray(x, dtype=np.float64), positions, base, layout)


def apply_float32_frequencies(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    def turn_by_coarse(pairs: Array, angles: Array) -> Array:
        per_pair = rope.rope_angles(1, 2 * angles.shape[-1], base).astype(np.float32)
        where = np.asarray(positions, dtype=np.float64)[..., None]
        return rope.rotate_2d(pairs, where * per_pair)

    return rotate_with(x, positions, base, layout, turn_by_coarse)


def apply_float32_throughout(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    """1 / base^(arange(0, dim, 2, float32) / dim) times float32 positions, as in most models."""

    def turn_by_coarse(pairs: Array, angles: Array) -> Array:
        dim = 2 * angles.shape[-1]
        per_pair = 1 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
        coarse = np.asarray(positions, dtype=np.float32)[..., None] * per_pair
        return turn(pairs, np.cos(coarse), np.sin(coarse))

    return rotate_with(x, positions, base, layout, turn_by_coarse)


def apply_float32_angles(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    return rotate_with(
        x, positions, base, layout, lambda pairs, a: rope.rotate_2d(pairs, a.astype(np.float32))
    )


def apply_angles_like_x(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    """gpt-neox#1003: the angles of half-precision vectors in half precision."""
    return rotate_with(
        x, positions, base, layout, lambda pairs, a: rope.rotate_2d(pairs, a.astype(pairs.dtype))
    )


def apply_broadcasting(
    x: Array, positions: Array, base: float = 10000.0, layout: str = "interleaved"
) -> Array:
    x, positions = rope.as_floats(x, "x"), np.asarray(positions)
    shape = np.broadcast_shapes(x.shape[:-1], positions.shape)
    wide = np.broadcast_to(x, (*shape, x.shape[-1]))
    return rope.apply_rope(wide, np.broadcast_to(positions, shape), base, layout)


APPLY_ROPE = (
    Misconception(
        "apply-rope-clockwise",
        apply_clockwise,
        "apply_rope_published_numbers",
        "Every pair turns the wrong way. The second coordinate of a pair enters the first one "
        "with a minus sign, the first enters the second with a plus.",
        "rope-plane",
    ),
    Misconception(
        "apply-rope-sin-for-cos",
        apply_sin_for_cos,
        "apply_rope_published_numbers",
        "Sine and cosine have changed places. At position zero every cosine is 1 and every sine "
        "0, and the vector must come out as it went in.",
        "rope-plane",
    ),
    Misconception(
        "apply-rope-layouts-swapped",
        apply_layouts_swapped,
        "apply_rope_published_numbers",
        'You paired the first half with the second where neighbours belong together. "interleaved" '
        'pairs (0, 1), (2, 3), …; pairing i with i + dim/2 is "half".',
        "rope-layouts",
    ),
    Misconception(
        "apply-rope-always-half",
        apply_always_half,
        "apply_rope_published_numbers",
        "You always pair i with i + dim/2, whatever the layout argument says. That is the half "
        "layout; interleaved, the default, pairs neighbours.",
        "rope-layouts",
    ),
    Misconception(
        "apply-rope-not-zipped-again",
        apply_without_zipping,
        "apply_rope_published_numbers",
        "The rotated numbers are right but stand in two blocks, first members of all pairs and "
        "then second ones. Put each pair back where it came from.",
        "rope-layouts",
    ),
    Misconception(
        "apply-rope-tables-of-other-layout",
        apply_tables_of_other_layout,
        "apply_rope_published_numbers",
        "You exchange neighbours, but your cosines and sines repeat as whole blocks, as the half "
        "layout wants them. Both members of a pair must get the same angle.",
        "rope-layouts",
    ),
    Misconception(
        "apply-rope-ignores-positions",
        apply_to_a_range,
        "apply_rope_published_numbers",
        "The tokens were rotated as if they stood at 0, 1, 2, … whatever positions were given. "
        "Use the positions: a sequence may start anywhere.",
        "rope-code",
    ),
    Misconception(
        "apply-rope-exponent-doubled",
        apply_exponent_doubled,
        "apply_rope_published_numbers",
        "The first pair is right and the later ones turn far too slowly: the factor 2 is in the "
        "exponent twice. Compare your angles with the previous exercise.",
        "rope-ladder",
    ),
    Misconception(
        "apply-rope-one-after-the-other",
        apply_one_after_the_other,
        "apply_rope_published_numbers",
        "The second members of the pairs were computed from first ones that were already rotated. "
        "Both new members need both old ones, so keep those until the end.",
        "rope-plane",
    ),
    Misconception(
        "apply-rope-ignores-base",
        apply_without_base,
        "apply_rope_many_tokens",
        "The base argument changes nothing: every call turns as with base 10000. Hand it on to "
        "your angles.",
        "rope-ladder",
    ),
    Misconception(
        "apply-rope-one-layout",
        apply_one_layout,
        "apply_rope_half_layout",
        "The layout argument changes nothing: both layouts give interleaved results. In the half "
        "layout coordinate i is paired with i + dim/2.",
        "rope-layouts",
    ),
    Misconception(
        "apply-rope-half-written-interleaved",
        apply_half_written_interleaved,
        "apply_rope_half_layout",
        "In the half layout you read each pair from two blocks, but wrote its members side by "
        "side. They go back to the places they came from: i and i + dim/2.",
        "rope-layouts",
    ),
    Misconception(
        "apply-rope-truncates-integers",
        apply_into_integers,
        "apply_rope_integers",
        "The rotated numbers were stored in an integer array, which cuts off their fractions. "
        "Turn an integer x into float64 first.",
        "rope-code",
    ),
    Misconception(
        "apply-rope-in-place",
        apply_in_place,
        "apply_rope_leaves_input",
        "x itself was overwritten. Whoever passed it in may still hold it, so write into a new "
        "array.",
        "rope-code",
    ),
    Misconception(
        "apply-rope-float32-angles",
        apply_float32_angles,
        "apply_rope_precise_far_out",
        "The angles went through float32, and at large positions that costs the digits that "
        "count. Keep angles, sines and cosines in float64 and cast the result once, at the end.",
        "rope-code",
    ),
    Misconception(
        "apply-rope-float32-frequencies",
        apply_float32_frequencies,
        "apply_rope_precise_far_out",
        "The frequencies were rounded to float32, and a large position multiplies that little "
        "error until it counts. Keep them in float64 and cast the result once, at the end.",
        "rope-ladder",
    ),
    Misconception(
        "apply-rope-float32-throughout",
        apply_float32_throughout,
        "apply_rope_precise_far_out",
        "Frequencies and angles were computed in float32, as many models do. Far out, its digits "
        "run short: compute both in float64, and cast the result once, at the end.",
        "rope-ladder",
    ),
    Misconception(
        "apply-rope-always-float64",
        apply_float64,
        "apply_rope_keeps_dtype",
        "The numbers are right, but a small floating dtype came back as float64, which the rest "
        "of the model then has to carry. Cast the result to the dtype of x, as the last step.",
        "rope-code",
    ),
    Misconception(
        "apply-rope-angles-like-x",
        apply_angles_like_x,
        "apply_rope_precise_in_any_dtype",
        "The angles were cast to the dtype of x before sine and cosine were taken, and a small "
        "dtype cannot hold a large angle. Cast last.",
        "rope-code",
    ),
    Misconception(
        "apply-rope-broadcasts-positions",
        apply_broadcasting,
        "apply_rope_refuses_positions",
        "Positions of a shape that does not fit were stretched to fit. Accept one position per "
        "token or one per vector, and refuse the rest: a silent stretch hides somebody's bug.",
        "ex-apply_rope",
    ),
)

# -------------------------------------------------------------------------------- rope_scores


def dots(q: Array, k: Array, divisor: float) -> Array:
    """Scores of rotated q and k, in float64 or in float32 if both are."""
    return (q @ k.T / divisor).astype(q.dtype)


def both(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float
) -> tuple[Array, Array]:
    rope.rope_scores(q, k, q_positions, k_positions, base)  # refuses what is to be refused
    return rope.apply_rope(q, q_positions, base), rope.apply_rope(k, k_positions, base)


def scores_unscaled(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
) -> Array:
    return dots(*both(q, k, q_positions, k_positions, base), 1.0)


def scores_scaled_by_keys(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
) -> Array:
    return dots(*both(q, k, q_positions, k_positions, base), math.sqrt(len(k)))


def scores_divided_by_dim(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
) -> Array:
    return dots(*both(q, k, q_positions, k_positions, base), q.shape[-1])


def scores_keys_not_rotated(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
) -> Array:
    rotated, _ = both(q, k, q_positions, k_positions, base)
    return dots(rotated, rope.as_floats(k, "k"), math.sqrt(q.shape[-1]))


def scores_queries_at_zero(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
) -> Array:
    """mlx-vlm#1983: the new query is rotated at position zero."""
    _, rotated = both(q, k, q_positions, k_positions, base)
    return dots(rope.as_floats(q, "q"), rotated, math.sqrt(q.shape[-1]))


def scores_softmaxed(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
) -> Array:
    scores = rope.rope_scores(q, k, q_positions, k_positions, base)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def scores_transposed(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
) -> Array:
    return rope.rope_scores(q, k, q_positions, k_positions, base).T


def scores_base_for_queries_only(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
) -> Array:
    rotated, _ = both(q, k, q_positions, k_positions, base)
    return dots(rotated, rope.apply_rope(k, k_positions), math.sqrt(q.shape[-1]))


def scores_of_layouts(q_layout: str, k_layout: str) -> Callable[..., Array]:
    def rope_scores(
        q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
    ) -> Array:
        both(q, k, q_positions, k_positions, base)
        rotated_q = rope.apply_rope(q, q_positions, base, q_layout)
        rotated_k = rope.apply_rope(k, k_positions, base, k_layout)
        return dots(rotated_q, rotated_k, math.sqrt(q.shape[-1]))

    return rope_scores


def scores_keys_turned_back(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
) -> Array:
    rotated, _ = both(q, k, q_positions, k_positions, base)
    back = rope.apply_rope(k, -rope.as_floats(k_positions, "k_positions"), base)
    return dots(rotated, back, math.sqrt(q.shape[-1]))


def scores_without_base(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
) -> Array:
    rope.rope_scores(q, k, q_positions, k_positions, base)
    return rope.rope_scores(q, k, q_positions, k_positions)


def scores_float64(
    q: Array, k: Array, q_positions: Array, k_positions: Array, base: float = 10000.0
) -> Array:
    """NumPy 2 makes float32 / np.sqrt(int) a float64."""
    rotated_q, rotated_k = both(q, k, q_positions, k_positions, base)
    return rotated_q @ rotated_k.T / np.sqrt(q.shape[-1])


ROPE_SCORES = (
    Misconception(
        "rope-scores-unscaled",
        scores_unscaled,
        "rope_scores_published_number",
        "The rotations are right, but the dot products are not divided by √dim. Without it wide "
        "vectors push the softmax to its limits.",
        "ex-rope_scores",
    ),
    Misconception(
        "rope-scores-scaled-by-keys",
        scores_scaled_by_keys,
        "rope_scores_published_number",
        "You divided by the root of the number of keys. The root is that of dim, the width of a "
        "vector: it does not change when the sequence grows.",
        "ex-rope_scores",
    ),
    Misconception(
        "rope-scores-divided-by-dim",
        scores_divided_by_dim,
        "rope_scores_published_number",
        "You divided by dim itself. Its square root is what keeps scores at the size of one "
        "coordinate.",
        "ex-rope_scores",
    ),
    Misconception(
        "rope-scores-keys-not-rotated",
        scores_keys_not_rotated,
        "rope_scores_published_number",
        "Only the queries were rotated, so the scores depend on where the query stands and not on "
        "the distance. Rotate the keys as well, each by its own position.",
        "rope-relative",
    ),
    Misconception(
        "rope-scores-queries-at-zero",
        scores_queries_at_zero,
        "rope_scores_published_number",
        "Only the keys were rotated: the queries stayed at position zero. Both sides must turn "
        "for their difference to count.",
        "rope-relative",
    ),
    Misconception(
        "rope-scores-softmaxed",
        scores_softmaxed,
        "rope_scores_published_number",
        "These are attention weights: you went on to the softmax. The exercise stops at the "
        "scores.",
        "ex-rope_scores",
    ),
    Misconception(
        "rope-scores-transposed",
        scores_transposed,
        "rope_scores_published_number",
        "Rows and columns have changed places. One row belongs to one query, with a column for "
        "each key.",
        "ex-rope_scores",
    ),
    Misconception(
        "rope-scores-half-pairs",
        scores_of_layouts("half", "half"),
        "rope_scores_published_number",
        "You paired coordinate i with i + dim/2. These scores depend on the distance alone, too, "
        "but the exercise asks for interleaved pairs: (0, 1), (2, 3) and so on.",
        "rope-layouts",
    ),
    Misconception(
        "rope-scores-mixed-layouts",
        scores_of_layouts("interleaved", "half"),
        "rope_scores_published_number",
        "Queries and keys were paired in two different layouts, so their turns cannot cancel. Use "
        "interleaved pairs for both.",
        "rope-layouts",
    ),
    Misconception(
        "rope-scores-keys-turned-back",
        scores_keys_turned_back,
        "rope_scores_published_number",
        "The keys turn the other way, so the scores depend on the sum of the two positions. Turn "
        "both the same way: the dot product takes the difference by itself.",
        "rope-relative",
    ),
    Misconception(
        "rope-scores-ignores-base",
        scores_without_base,
        "rope_scores_matrix",
        "The base argument changes nothing: queries and keys turn as with base 10000. Hand it on "
        "to both rotations.",
        "rope-ladder",
    ),
    Misconception(
        "rope-scores-base-for-queries-only",
        scores_base_for_queries_only,
        "rope_scores_matrix",
        "Queries and keys were rotated with different bases: one of the two calls kept the "
        "default. Distances cancel only when both use the same ladder.",
        "rope-ladder",
    ),
    Misconception(
        "rope-scores-float64",
        scores_float64,
        "rope_scores_keep_float32",
        "float32 inputs gave float64 scores. Somewhere on the way a float64 came in and spread: "
        "from a rotation that does not keep the dtype of x, or from NumPy's square root of an "
        "integer, which is a float64. Cast the scores to the dtype of q.",
        "ex-rope_scores",
    ),
)

# ------------------------------------------------------------------------ interleaved_to_half


def row_order(weight: Array, num_heads: int) -> Array:
    """The right order of the rows; refuses what is to be refused."""
    numbers = np.arange(len(weight), dtype=np.float64)[:, None]
    return rope.interleaved_to_half(numbers, num_heads)[:, 0].astype(int)


def to_half_inverse(weight: Array, num_heads: int) -> Array:
    """Its own inverse at head_dim 4, which is why llama.cpp#3364 stayed hidden in small tests."""
    return weight[np.argsort(row_order(weight, num_heads))]


def to_half_all_heads_at_once(weight: Array, num_heads: int) -> Array:
    row_order(weight, num_heads)
    return np.concatenate([weight[0::2], weight[1::2]])


def to_half_columns(weight: Array, num_heads: int) -> Array:
    return weight[:, row_order(weight, num_heads)]


def to_half_unmoved(weight: Array, num_heads: int) -> Array:
    rope.interleaved_to_half(weight, num_heads)
    return rope.as_floats(weight, "weight").copy()


def to_half_heads_for_width(weight: Array, num_heads: int) -> Array:
    row_order(weight, num_heads)
    return weight[row_order(weight, len(weight) // num_heads)]


def to_half_odd_first(weight: Array, num_heads: int) -> Array:
    order = row_order(weight, num_heads).reshape(num_heads, 2, -1)
    return weight[order[:, ::-1].ravel()]


def to_half_in_place(weight: Array, num_heads: int) -> Array:
    weight[...] = weight[row_order(weight, num_heads)]
    return weight


def to_half_float64(weight: Array, num_heads: int) -> Array:
    ported = np.zeros(weight.shape)
    ported[...] = weight[row_order(weight, num_heads)]
    return ported


INTERLEAVED_TO_HALF = (
    Misconception(
        "interleaved-to-half-all-heads-at-once",
        to_half_all_heads_at_once,
        "interleaved_to_half_published_order",
        "The rows were sorted over all heads together, so heads got each other's rows. Every head "
        "is rearranged within itself.",
        "rope-porting",
    ),
    Misconception(
        "interleaved-to-half-columns",
        to_half_columns,
        "interleaved_to_half_published_order",
        "You reordered the columns. A row of the weight makes one coordinate of q or k; the "
        "columns belong to the model's own coordinates, which stay.",
        "rope-porting",
    ),
    Misconception(
        "interleaved-to-half-unmoved",
        to_half_unmoved,
        "interleaved_to_half_published_order",
        "The rows came back in the order in which they went in. Reshaping alone moves nothing: "
        "within each head, exchange the axis of pairs with the axis of their two members.",
        "rope-porting",
    ),
    Misconception(
        "interleaved-to-half-heads-for-width",
        to_half_heads_for_width,
        "interleaved_to_half_published_order",
        "num_heads was taken for the width of a head. The rows form num_heads blocks, each as "
        "long as head_dim.",
        "rope-porting",
    ),
    Misconception(
        "interleaved-to-half-odd-first",
        to_half_odd_first,
        "interleaved_to_half_published_order",
        "The second members of the pairs came first. That turns every rotation round: the first "
        "half holds the first members.",
        "rope-porting",
    ),
    Misconception(
        "interleaved-to-half-inverse",
        to_half_inverse,
        "interleaved_to_half_keeps_scores",
        "This is the way back, from half to interleaved. At head_dim 4 the two are the same, so a "
        "small example cannot tell them apart; try 6.",
        "rope-porting",
    ),
    Misconception(
        "interleaved-to-half-float64",
        to_half_float64,
        "interleaved_to_half_rows",
        "The rows are right, but the weight came back as float64. Porting moves rows; it does not "
        "change what they hold.",
        "rope-porting",
    ),
    Misconception(
        "interleaved-to-half-in-place",
        to_half_in_place,
        "interleaved_to_half_leaves_input",
        "The caller's weight was overwritten, and a second call would scramble it. Return a new "
        "array.",
        "ex-interleaved_to_half",
    ),
)

# ------------------------------------------------------------------------- apply_partial_rope


def partial(
    x: Array, positions: Array, rotary_dim: int, base: float, layout: str
) -> tuple[Array, Array]:
    """(rotated part, rest), after the reference has refused what is to be refused."""
    rotated = rope.apply_partial_rope(x, positions, rotary_dim, base, layout)
    return rotated[..., :rotary_dim], rotated[..., rotary_dim:]


def partial_ladder_of_dim(
    x: Array,
    positions: Array,
    rotary_dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Array:
    """pie#602: right at position zero, and drifting from there."""
    _, rest = partial(x, positions, rotary_dim, base, layout)
    slower = base ** (rotary_dim / x.shape[-1])  # slower^(−2i/rotary_dim) = base^(−2i/dim)
    turned = rope.apply_rope(x[..., :rotary_dim], positions, slower, layout)
    return np.concatenate([turned, rest], axis=-1)


def partial_without_rest(
    x: Array,
    positions: Array,
    rotary_dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Array:
    return partial(x, positions, rotary_dim, base, layout)[0]


def partial_rest_zero(
    x: Array,
    positions: Array,
    rotary_dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Array:
    turned, rest = partial(x, positions, rotary_dim, base, layout)
    return np.concatenate([turned, np.zeros_like(rest)], axis=-1)


def partial_everything(
    x: Array,
    positions: Array,
    rotary_dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Array:
    partial(x, positions, rotary_dim, base, layout)
    return rope.apply_rope(x, positions, base, layout)


def partial_last_coordinates(
    x: Array,
    positions: Array,
    rotary_dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Array:
    partial(x, positions, rotary_dim, base, layout)
    split = x.shape[-1] - rotary_dim
    turned = rope.apply_rope(x[..., split:], positions, base, layout)
    return np.concatenate([x[..., :split], turned], axis=-1)


def partial_without_base(
    x: Array,
    positions: Array,
    rotary_dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Array:
    rope.apply_partial_rope(x, positions, rotary_dim, base, layout)
    return rope.apply_partial_rope(x, positions, rotary_dim, layout=layout)


def partial_pairs_across(
    x: Array,
    positions: Array,
    rotary_dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Array:
    """coreai-models#66: "partial" taken for "proportional", which pairs i with i + dim/2."""
    right = rope.apply_partial_rope(x, positions, rotary_dim, base, layout)
    if layout == "interleaved" or x.shape[-1] % 2:
        return right
    half, across = rotary_dim // 2, x.shape[-1] // 2
    places = np.r_[0:half, across : across + half]
    out = rope.as_floats(x, "x").copy()
    out[..., places] = rope.apply_rope(out[..., places], positions, base, "half")
    return out


def partial_one_layout(
    x: Array,
    positions: Array,
    rotary_dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Array:
    partial(x, positions, rotary_dim, base, layout)
    return rope.apply_partial_rope(x, positions, rotary_dim, base)


def partial_into_integers(
    x: Array,
    positions: Array,
    rotary_dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Array:
    out = x.copy()
    out[..., :rotary_dim] = partial(x, positions, rotary_dim, base, layout)[0]
    return out


def partial_in_place(
    x: Array,
    positions: Array,
    rotary_dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Array:
    x = rope.as_floats(x, "x")
    x[..., :rotary_dim] = partial(x, positions, rotary_dim, base, layout)[0]
    return x


APPLY_PARTIAL_ROPE = (
    Misconception(
        "apply-partial-rope-ladder-of-dim",
        partial_ladder_of_dim,
        "apply_partial_rope_published_numbers",
        "Your frequencies use the whole width. The rotated part is a small rotary embedding of "
        "its own, and its ladder runs over rotary_dim.",
        "rope-partial",
    ),
    Misconception(
        "apply-partial-rope-drops-the-rest",
        partial_without_rest,
        "apply_partial_rope_published_numbers",
        "The coordinates that are not rotated are missing from the result. Pass them on behind "
        "the rotated ones.",
        "rope-partial",
    ),
    Misconception(
        "apply-partial-rope-zeroes-the-rest",
        partial_rest_zero,
        "apply_partial_rope_published_numbers",
        "The coordinates that are not rotated came out as zeros. They carry content: copy them "
        "as they are.",
        "rope-partial",
    ),
    Misconception(
        "apply-partial-rope-rotates-everything",
        partial_everything,
        "apply_partial_rope_published_numbers",
        "The whole vector was rotated. Only the first rotary_dim coordinates turn; the others "
        "know nothing of position.",
        "rope-partial",
    ),
    Misconception(
        "apply-partial-rope-rotates-the-end",
        partial_last_coordinates,
        "apply_partial_rope_published_numbers",
        "You rotated the last coordinates. The rotated ones stand first.",
        "rope-partial",
    ),
    Misconception(
        "apply-partial-rope-ignores-base",
        partial_without_base,
        "apply_partial_rope_many_tokens",
        "The base argument changes nothing: every call turns as with base 10000. Hand it on to "
        "the rotation.",
        "rope-ladder",
    ),
    Misconception(
        "apply-partial-rope-pairs-across",
        partial_pairs_across,
        "apply_partial_rope_half_layout",
        "Coordinate i was paired with i + dim/2, outside the rotated part. Within it, the partner "
        "is rotary_dim/2 further on.",
        "rope-partial",
    ),
    Misconception(
        "apply-partial-rope-one-layout",
        partial_one_layout,
        "apply_partial_rope_half_layout",
        "The layout argument does not reach the rotation, so you always get interleaved pairs. "
        "Hand it on.",
        "rope-layouts",
    ),
    Misconception(
        "apply-partial-rope-truncates-integers",
        partial_into_integers,
        "apply_partial_rope_integers",
        "A copy of an integer x is an integer array, and it cuts off the fractions that you write "
        "into it. Turn it into float64 first.",
        "ex-apply_partial_rope",
    ),
    Misconception(
        "apply-partial-rope-in-place",
        partial_in_place,
        "apply_partial_rope_leaves_input",
        "The rotated part was written into the caller's own x. Work on a copy, or join two pieces "
        "into a new array.",
        "ex-apply_partial_rope",
    ),
)

# -------------------------------------------------------------------------------- score_bound


def terms(distances: Array, dim: int, base: float) -> Array:
    return np.exp(1j * rope.rope_angles(distances, dim, base))


def bound_sum(distances: Array, dim: int, base: float = 10000.0) -> Array:
    return np.abs(terms(distances, dim, base).cumsum(axis=-1)).sum(axis=-1)


def bound_last_sum_only(distances: Array, dim: int, base: float = 10000.0) -> Array:
    return np.abs(terms(distances, dim, base).sum(axis=-1))


def bound_over_dim(distances: Array, dim: int, base: float = 10000.0) -> Array:
    return rope.score_bound(distances, dim, base) / 2


def bound_squared(distances: Array, dim: int, base: float = 10000.0) -> Array:
    return (np.abs(terms(distances, dim, base).cumsum(axis=-1)) ** 2).mean(axis=-1)


def bound_one_sum_less(distances: Array, dim: int, base: float = 10000.0) -> Array:
    sums = np.abs(terms(distances, dim, base).cumsum(axis=-1))
    return sums[..., :-1].sum(axis=-1) / (dim // 2)


def bound_absolute_inside(distances: Array, dim: int, base: float = 10000.0) -> Array:
    return np.abs(terms(distances, dim, base)).cumsum(axis=-1).mean(axis=-1)


def bound_real_part(distances: Array, dim: int, base: float = 10000.0) -> Array:
    return np.abs(terms(distances, dim, base).real.cumsum(axis=-1)).mean(axis=-1)


def bound_signed(distances: Array, dim: int, base: float = 10000.0) -> Array:
    return terms(distances, dim, base).real.cumsum(axis=-1).mean(axis=-1)


def bound_without_sums(distances: Array, dim: int, base: float = 10000.0) -> Array:
    return np.abs(terms(distances, dim, base)).mean(axis=-1)


def bound_mean_first(distances: Array, dim: int, base: float = 10000.0) -> Array:
    return np.abs(terms(distances, dim, base).cumsum(axis=-1).mean(axis=-1))


def bound_without_base(distances: Array, dim: int, base: float = 10000.0) -> Array:
    terms(distances, dim, base)
    return rope.score_bound(distances, dim)


def bound_of(
    measure: Callable[[Array], Array], order: Callable[[Array], Array] = lambda terms: terms
) -> Callable[..., Array]:
    """measure(partial sums (..., dim/2)), of terms that `order` may have changed."""

    def score_bound(distances: Array, dim: int, base: float = 10000.0) -> Array:
        return measure(order(terms(distances, dim, base)).cumsum(axis=-1))

    return score_bound


def mean_length(sums: Array) -> Array:
    return np.abs(sums).mean(axis=-1)


def bound_normalised(distances: Array, dim: int, base: float = 10000.0) -> Array:
    return rope.score_bound(distances, dim, base) / rope.score_bound(0, dim, base)


def bound_from_one(distances: Array, dim: int, base: float = 10000.0) -> Array:
    angles = rope.rope_angles(distances, dim, base) * base ** (-2 / dim)
    return mean_length(np.exp(1j * angles).cumsum(axis=-1))


def bound_along_distances(distances: Array, dim: int, base: float = 10000.0) -> Array:
    return mean_length(terms(distances, dim, base).cumsum(axis=0))


SCORE_BOUND = (
    Misconception(
        "score-bound-sum",
        bound_sum,
        "score_bound_at_zero",
        "The partial sums were added up, not averaged. Divide by how many there are, dim/2.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-last-sum-only",
        bound_last_sum_only,
        "score_bound_at_zero",
        "This is the last partial sum alone. The bound is the mean over all of them, from one "
        "term to dim/2 terms.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-over-dim",
        bound_over_dim,
        "score_bound_at_zero",
        "Everything is half as large as it should be: you averaged over dim coordinates, but "
        "there are dim/2 pairs and as many partial sums.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-squared",
        bound_squared,
        "score_bound_at_zero",
        "You averaged squared lengths of the partial sums. The bound uses the lengths themselves.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-one-sum-less",
        bound_one_sum_less,
        "score_bound_at_zero",
        "Your partial sums start with the empty one and stop before the whole. They have 1, 2, … "
        "up to dim/2 terms.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-last-sum-missing",
        bound_of(lambda sums: mean_length(sums[..., :-1] if sums.shape[-1] > 1 else sums)),
        "score_bound_at_zero",
        "The last partial sum, the one over all pairs, is missing from your mean. There are dim/2 "
        "sums, with 1, 2, … up to dim/2 terms.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-without-sums",
        bound_without_sums,
        "score_bound_at_zero",
        "Nothing was added up: this is the mean length of single terms, which is 1 everywhere. "
        "Make running sums over the pairs first.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-largest-sum",
        bound_of(lambda sums: np.abs(sums).max(axis=-1)),
        "score_bound_at_zero",
        "This is the longest partial sum. The bound is the mean of the lengths of all of them.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-root-mean-square",
        bound_of(lambda sums: np.sqrt((np.abs(sums) ** 2).mean(axis=-1))),
        "score_bound_at_zero",
        "You took the root of the mean of the squared lengths. The paper's mean is the plain one, "
        "of the lengths themselves.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-each-averaged",
        bound_of(lambda sums: (np.abs(sums) / np.arange(1, sums.shape[-1] + 1)).mean(axis=-1)),
        "score_bound_at_zero",
        "Each partial sum was divided by its own number of terms. Leave the sums as they are, and "
        "average once, over the dim/2 lengths.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-normalised",
        bound_normalised,
        "score_bound_at_zero",
        "Your curve is scaled to 1 at distance 0. Its shape is right; the exercise asks for the "
        "mean as it stands, which starts at the mean of 1, 2, …, dim/2.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-both-members",
        bound_of(mean_length, lambda terms: np.repeat(terms, 2, axis=-1)),
        "score_bound_at_zero",
        "Every pair was counted twice, once for each of its members. One term belongs to one "
        "pair, so there are dim/2 of them.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-one-mean-for-all",
        bound_of(lambda sums: np.abs(sums).mean()),
        "score_bound_at_zero",
        "You averaged over the distances as well and got a single number. Average over the "
        "partial sums alone, along the last axis: every distance has its own bound.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-along-distances",
        bound_along_distances,
        "score_bound_at_zero",
        "The running sum went along the distances. It runs over the pairs, which stand on the "
        "last axis; each distance is by itself.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-counted-from-one",
        bound_from_one,
        "score_bound_dim_4",
        "Your fastest pair is already slowed down by one step of the ladder. Pair 0 turns by 1 per "
        "token: count pairs from zero.",
        "rope-ladder",
    ),
    Misconception(
        "score-bound-absolute-inside",
        bound_absolute_inside,
        "score_bound_dim_4",
        "The absolute value was taken of each term, and each has length 1, so nothing can cancel. "
        "Add first, then take the length of the sum.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-real-part",
        bound_real_part,
        "score_bound_dim_4",
        "Only the cosines were added. The terms are arrows in a plane: their sum has a sine part "
        "too, and its length needs both.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-signed-cosines",
        bound_signed,
        "score_bound_dim_4",
        "Your bound can fall below 0: only the cosines were added, and no length was taken. The "
        "sums are arrows in a plane, and the bound is the mean of their lengths.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-mean-before-length",
        bound_mean_first,
        "score_bound_dim_4",
        "You averaged the sums as arrows and measured the average. Measure each sum first, then "
        "average the lengths.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-slowest-first",
        bound_of(mean_length, lambda terms: terms[..., ::-1]),
        "score_bound_array",
        "Your partial sums begin with the slowest pair. They begin with the fastest, pair 0, and "
        "take in slower ones.",
        "rope-decay",
    ),
    Misconception(
        "score-bound-ignores-base",
        bound_without_base,
        "score_bound_array",
        "The base is not handed on to the frequencies, which stay those of 10000.",
        "rope-ladder",
    ),
)

# -------------------------------------------------------------------------- fixed_table_cache


def remembering(
    key: Callable[..., Any],
    make: Callable[..., tuple[Array, Array]] = rope.fixed_table_cache(),  # noqa: B008
) -> Callable[..., tuple[Array, Array]]:
    """A cache `tables` that remembers what `make` gave under key(length, offset, dim, base)."""
    memory: dict[Any, tuple[Array, Array]] = {}

    def tables(length: int, offset: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
        rope.fixed_table_cache()(length, offset, dim, base)  # refuses what is to be refused
        found = key(length, offset, dim, base)
        if found not in memory:
            memory[found] = make(length, offset, dim, base)
        return memory[found]

    return tables


def everything(*request: Any) -> tuple[Any, ...]:
    return request


def cache_by_length() -> Callable[..., tuple[Array, Array]]:
    """The chapter's own forgetful cache, except that it refuses what is to be refused."""
    return remembering(lambda length, offset, dim, base: length)


def cache_without_offset() -> Callable[..., tuple[Array, Array]]:
    """rotary-embedding-torch#11: the second offset gets the first one's rows."""
    return remembering(lambda length, offset, dim, base: (length, dim, base))


def cache_grown_from_zero() -> Callable[..., tuple[Array, Array]]:
    """New rows are appended to the remembered ones, but counted from 0 again."""
    grown: dict[Any, tuple[Array, Array]] = {}

    def tables(length: int, offset: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
        fresh = rope.fixed_table_cache()
        fresh(length, offset, dim, base)  # refuses what is to be refused
        cos, sin = grown.get((dim, base), fresh(0, 0, dim, base))
        missing = offset + length - len(cos)
        if missing > 0:
            more_cos, more_sin = fresh(missing, 0, dim, base)
            cos, sin = np.concatenate([cos, more_cos]), np.concatenate([sin, more_sin])
            grown[dim, base] = cos, sin
        return cos[offset : offset + length], sin[offset : offset + length]

    return tables


def cache_without_base() -> Callable[..., tuple[Array, Array]]:
    return remembering(lambda length, offset, dim, base: (length, offset, dim))


def cache_without_dim() -> Callable[..., tuple[Array, Array]]:
    return remembering(lambda length, offset, dim, base: (length, offset, base))


def cache_by_end() -> Callable[..., tuple[Array, Array]]:
    return remembering(lambda length, offset, dim, base: (offset + length, dim, base))


def cache_without_length() -> Callable[..., tuple[Array, Array]]:
    return remembering(lambda length, offset, dim, base: (offset, dim, base))


def cache_of_any_offset() -> Callable[..., tuple[Array, Array]]:
    def tables(length: int, offset: int, dim: int, base: float = 10000.0) -> tuple[Array, Array]:
        rope.fixed_table_cache()(length, 0, dim, base)  # refuses the rest
        angles = rope.rope_angles(np.arange(offset, offset + length), dim, base)
        return np.cos(angles), np.sin(angles)

    return tables


def cache_from_zero() -> Callable[..., tuple[Array, Array]]:
    def make(length: int, offset: int, dim: int, base: float) -> tuple[Array, Array]:
        return rope.fixed_table_cache()(length, 0, dim, base)

    return remembering(everything, make)


def cache_short_slice() -> Callable[..., tuple[Array, Array]]:
    """A slice that runs past the end of its table is short, and nobody says so."""

    def make(length: int, offset: int, dim: int, base: float) -> tuple[Array, Array]:
        cos, sin = rope.fixed_table_cache()(length, 0, dim, base)
        return cos[offset : offset + length], sin[offset : offset + length]

    return remembering(everything, make)


def cache_one_too_far() -> Callable[..., tuple[Array, Array]]:
    """fla#766: the count goes up before the rotation."""

    def make(length: int, offset: int, dim: int, base: float) -> tuple[Array, Array]:
        return rope.fixed_table_cache()(length, offset + 1, dim, base)

    return remembering(everything, make)


def cache_sin_first() -> Callable[..., tuple[Array, Array]]:
    def make(length: int, offset: int, dim: int, base: float) -> tuple[Array, Array]:
        cos, sin = rope.fixed_table_cache()(length, offset, dim, base)
        return sin, cos

    return remembering(everything, make)


def cache_float32() -> Callable[..., tuple[Array, Array]]:
    """positional-encodings 6.0.3 remembered a table in the first caller's dtype."""

    def make(length: int, offset: int, dim: int, base: float) -> tuple[Array, Array]:
        cos, sin = rope.fixed_table_cache()(length, offset, dim, base)
        return cos.astype(np.float32), sin.astype(np.float32)

    return remembering(everything, make)


FIXED_TABLE_CACHE = (
    Misconception(
        "fixed-table-cache-from-zero",
        cache_from_zero,
        "fixed_table_cache_first_call",
        "The tables start at position 0 whatever the offset is. Their first row belongs to the "
        "offset.",
        "rope-cache",
    ),
    Misconception(
        "fixed-table-cache-short-slice",
        cache_short_slice,
        "fixed_table_cache_first_call",
        "You cut rows out of a table that ends before them, and a slice past the end is silently "
        "short. Make the table long enough for offset + length, or build just the rows asked for.",
        "rope-cache",
    ),
    Misconception(
        "fixed-table-cache-one-too-far",
        cache_one_too_far,
        "fixed_table_cache_first_call",
        "Every row is one position too far: the first belongs to the offset itself, not to the "
        "position after it.",
        "rope-cache",
    ),
    Misconception(
        "fixed-table-cache-sin-first",
        cache_sin_first,
        "fixed_table_cache_first_call",
        "The two tables came in the wrong order: cosines first, then sines.",
        "ex-fixed_table_cache",
    ),
    Misconception(
        "fixed-table-cache-by-length",
        cache_by_length,
        "fixed_table_cache_other_offset",
        "The memory still looks tables up by their length alone, so a later piece of the sequence "
        "gets the rows of an earlier one, and another dim or base the tables of the first. All "
        "that the tables depend on belongs into the key.",
        "rope-cache",
    ),
    Misconception(
        "fixed-table-cache-without-offset",
        cache_without_offset,
        "fixed_table_cache_other_offset",
        "The memory still looks tables up without their offset, so a later piece of the sequence "
        "gets the rows of an earlier one. What the tables depend on belongs into the key.",
        "rope-cache",
    ),
    Misconception(
        "fixed-table-cache-grown-from-zero",
        cache_grown_from_zero,
        "fixed_table_cache_other_offset",
        "When your table has to grow, the new rows are counted from position 0 again. The first "
        "one to append belongs to the position after the last one that is there.",
        "rope-cache",
    ),
    Misconception(
        "fixed-table-cache-without-base",
        cache_without_base,
        "fixed_table_cache_other_base",
        "Two models with different bases share one entry of your memory. The key must hold every "
        "argument that changes the tables, the base too.",
        "rope-cache",
    ),
    Misconception(
        "fixed-table-cache-without-dim",
        cache_without_dim,
        "fixed_table_cache_other_dim",
        "A second width got the tables of the first. The key must hold every argument that "
        "changes the tables, dim too.",
        "rope-cache",
    ),
    Misconception(
        "fixed-table-cache-by-end",
        cache_by_end,
        "fixed_table_cache_other_length",
        "Your key holds where the rows end, but not where they begin: different pieces that end "
        "at the same position share an entry.",
        "rope-cache",
    ),
    Misconception(
        "fixed-table-cache-without-length",
        cache_without_length,
        "fixed_table_cache_other_length",
        "Your memory looks tables up without their length, so a longer piece from the same offset "
        "gets too few rows and a shorter one too many. The length belongs into the key.",
        "rope-cache",
    ),
    Misconception(
        "fixed-table-cache-of-any-offset",
        cache_of_any_offset,
        "fixed_table_cache_refuses",
        "A negative offset got tables. No token stands before position 0, so somebody has "
        "miscounted: raise before you look anything up.",
        "ex-fixed_table_cache",
    ),
    Misconception(
        "fixed-table-cache-float32",
        cache_float32,
        "fixed_table_cache_float64",
        "The remembered tables are float32. Keep them in float64: whoever needs less can cast "
        "what it gets.",
        "rope-precision",
    ),
)

# ---------------------------------------------------------------------------- RotaryEmbedding


def rotary(
    head_dim: int,
    base: float,
    layout: str,
    forward: Callable[..., Any],
    setup: Callable[[Any], None] = lambda module: None,
) -> Any:
    """A torch module whose forward(module, right, q, k, positions) is given; `right` is the
    reference. torch is imported here, since it costs a second that NumPy's exercises need not pay.
    """
    import torch

    from solutions.with_torch.rope import RotaryEmbedding

    right = RotaryEmbedding(head_dim, base, layout)

    class Rotary(torch.nn.Module):
        def forward(self, q: Any, k: Any, positions: Any) -> Any:
            right(q, k, positions)  # refuses what is to be refused
            return forward(self, right, q, k, positions)

    module = Rotary()
    setup(module)
    return module


def turn_by(x: Any, angles: Any, layout: str) -> Any:
    """Rotate x (batch, heads, seq, head_dim) by angles (..., seq, head_dim/2)."""
    from solutions.with_torch.rope import rotate_pairs

    return rotate_pairs(x, angles.cos(), angles.sin(), layout)


def frequencies(head_dim: int, base: float) -> Any:
    import torch

    return base ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)


def spread(positions: Any, per_pair: Any) -> Any:
    """Angles with an axis for the heads: (1, seq, dim/2) or (batch, 1, seq, dim/2)."""
    return (positions[..., None] * per_pair).unsqueeze(-3)


def rotary_default_interleaved(
    head_dim: int, base: float = 10000.0, layout: str = "interleaved"
) -> Any:
    return rotary(head_dim, base, layout, lambda module, right, *inputs: right(*inputs))


def rotary_always_interleaved(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        return type(right)(head_dim, base, "interleaved")(q, k, positions)

    return rotary(head_dim, base, layout, forward)


def rotary_without_base(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        return type(right)(head_dim, layout=layout)(q, k, positions)

    return rotary(head_dim, base, layout, forward)


def rotary_clockwise(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        return right(q, k, -positions)

    return rotary(head_dim, base, layout, forward)


def rotary_keys_not_rotated(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    return rotary(head_dim, base, layout, lambda module, right, q, k, p: (right(q, k, p)[0], k))


def rotary_of_a_range(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        import torch

        return right(q, k, torch.arange(q.shape[2]))

    return rotary(head_dim, base, layout, forward)


def rotary_one_layout(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        return type(right)(head_dim, base)(q, k, positions)

    return rotary(head_dim, base, layout, forward)


def rotary_repeats_keys(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        q_rotated, k_rotated = right(q, k, positions)
        return q_rotated, k_rotated.repeat_interleave(q.shape[1] // k.shape[1], dim=1)

    return rotary(head_dim, base, layout, forward)


def rotary_rows_on_heads(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    """Without an axis for the heads, (batch, seq) lines up with (heads, seq)."""

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        angles = positions[..., None].double() * frequencies(head_dim, base)
        return turn_by(q, angles, layout), turn_by(k, angles, layout)

    return rotary(head_dim, base, layout, forward)


def rotary_angles_like_q(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        angles = spread(positions.to(q.dtype), frequencies(head_dim, base).to(q.dtype))
        return turn_by(q, angles.float(), layout), turn_by(k, angles.float(), layout)

    return rotary(head_dim, base, layout, forward)


def rotary_layouts_swapped(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        other = "half" if layout == "interleaved" else "interleaved"
        return type(right)(head_dim, base, other)(q, k, positions)

    return rotary(head_dim, base, layout, forward)


def rotary_angles_rounded(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    """gpt-neox#1003: the angle is exact until it gets the dtype of q, before its sine is taken."""

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        angles = spread(positions.float(), frequencies(head_dim, base)).to(q.dtype)
        return turn_by(q, angles, layout), turn_by(k, angles, layout)

    return rotary(head_dim, base, layout, forward)


def rotary_positions_like_q(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        angles = spread(positions.to(q.dtype).float(), frequencies(head_dim, base))
        return turn_by(q, angles, layout), turn_by(k, angles, layout)

    return rotary(head_dim, base, layout, forward)


def rotary_float32_results(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        import torch

        wide = torch.promote_types(q.dtype, torch.float32)
        return right(q.to(wide), k.to(wide), positions)

    return rotary(head_dim, base, layout, forward)


def rotary_buffer_cast(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    """transformers#25681, #29496: casting the module casts its table of frequencies."""

    def setup(module: Any) -> None:
        module.register_buffer("per_pair", frequencies(head_dim, base), persistent=False)

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        angles = spread(positions.float(), module.per_pair.float())
        return turn_by(q, angles, layout), turn_by(k, angles, layout)

    return rotary(head_dim, base, layout, forward, setup)


def rotary_positions_like_buffer(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    """The model code of 2023: einsum of positions.type_as(inv_freq) with the buffer inv_freq."""

    def setup(module: Any) -> None:
        module.register_buffer("per_pair", frequencies(head_dim, base), persistent=False)

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        angles = spread(positions.to(module.per_pair.dtype), module.per_pair)
        return turn_by(q, angles, layout), turn_by(k, angles, layout)

    return rotary(head_dim, base, layout, forward, setup)


def rotary_tables_cast(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    """Tables of cosines and sines for a few thousand positions, in buffers."""
    import torch

    def setup(module: Any) -> None:
        angles = torch.arange(8192)[:, None] * frequencies(head_dim, base)
        module.register_buffer("cos", angles.cos(), persistent=False)
        module.register_buffer("sin", angles.sin(), persistent=False)

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        from solutions.with_torch.rope import rotate_pairs

        if positions.is_floating_point():  # no row of a table: not what this is about
            return right(q, k, positions)
        cos, sin = (table[positions].unsqueeze(-3) for table in (module.cos, module.sin))
        return rotate_pairs(q, cos, sin, layout), rotate_pairs(k, cos, sin, layout)

    return rotary(head_dim, base, layout, forward, setup)


def rotary_matrix_product(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    """diffusers#13920: under autocast a matrix product of two float32 operands is bfloat16."""

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        angles = positions[..., None].float() @ frequencies(head_dim, base)[None]
        angles = angles.float().unsqueeze(-3)
        return turn_by(q, angles, layout), turn_by(k, angles, layout)

    return rotary(head_dim, base, layout, forward)


def rotary_remembers_length(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    """rotary-embedding-torch#11, as a module: tables looked up by the length of the sequence."""

    def setup(module: Any) -> None:
        module.memory = {}

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        angles = spread(positions.double(), frequencies(head_dim, base))
        angles = module.memory.setdefault(q.shape[2], angles)
        return turn_by(q, angles, layout), turn_by(k, angles, layout)

    return rotary(head_dim, base, layout, forward, setup)


def rotary_whole_positions(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    return rotary(head_dim, base, layout, lambda module, right, q, k, p: right(q, k, p.long()))


def rotary_broadcasts(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    """torch turns whatever can be broadcast."""
    import torch

    from solutions.with_torch.rope import RotaryEmbedding

    RotaryEmbedding(head_dim, base, layout)  # refuses what is to be refused at once

    class Broadcasting(torch.nn.Module):
        def forward(self, q: Any, k: Any, positions: Any) -> Any:
            per_pair = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
            angles = spread(positions.double(), per_pair)
            return turn_by(q, angles, layout), turn_by(k, angles, layout)

    return Broadcasting()


def rotary_in_place(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    """unsloth#5001."""

    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        q_rotated, k_rotated = right(q, k, positions)
        return q.copy_(q_rotated), k.copy_(k_rotated)

    return rotary(head_dim, base, layout, forward)


def rotary_without_gradients(head_dim: int, base: float = 10000.0, layout: str = "half") -> Any:
    def forward(module: Any, right: Any, q: Any, k: Any, positions: Any) -> Any:
        q_rotated, k_rotated = right(q, k, positions)
        return q_rotated.detach(), k_rotated.detach()

    return rotary(head_dim, base, layout, forward)


ROTARY_EMBEDDING = (
    Misconception(
        "rotary-embedding-default-interleaved",
        rotary_default_interleaved,
        "rotary_embedding_published_numbers",
        "Without a layout your module pairs neighbours. Its default is the half layout, which "
        "most open models are trained with.",
        "rope-layouts",
    ),
    Misconception(
        "rotary-embedding-always-interleaved",
        rotary_always_interleaved,
        "rotary_embedding_published_numbers",
        "Your module pairs neighbours whatever its layout is. The half layout, its default, pairs "
        "coordinate i with i + head_dim/2.",
        "rope-layouts",
    ),
    Misconception(
        "rotary-embedding-layouts-swapped",
        rotary_layouts_swapped,
        "rotary_embedding_published_numbers",
        'The two layouts have changed places. "half" pairs coordinate i with i + head_dim/2, '
        '"interleaved" pairs neighbours: (0, 1), (2, 3) and so on.',
        "rope-layouts",
    ),
    Misconception(
        "rotary-embedding-clockwise",
        rotary_clockwise,
        "rotary_embedding_published_numbers",
        "Every pair turns the wrong way. The second coordinate of a pair enters the first one "
        "with a minus sign, the first enters the second with a plus.",
        "rope-plane",
    ),
    Misconception(
        "rotary-embedding-ignores-base",
        rotary_without_base,
        "rotary_embedding_grouped_queries",
        "The base given at construction changes nothing: every module turns as with base 10000.",
        "rope-ladder",
    ),
    Misconception(
        "rotary-embedding-keys-not-rotated",
        rotary_keys_not_rotated,
        "rotary_embedding_published_numbers",
        "The keys came back as they went in. Rotate both: only then does their dot product depend "
        "on the distance.",
        "rope-relative",
    ),
    Misconception(
        "rotary-embedding-ignores-positions",
        rotary_of_a_range,
        "rotary_embedding_published_numbers",
        "The tokens were rotated as 0, 1, 2, … whatever positions were passed. With a cache, or "
        "with padding, the positions are no range.",
        "rope-cache",
    ),
    Misconception(
        "rotary-embedding-one-layout",
        rotary_one_layout,
        "rotary_embedding_interleaved",
        "The layout given at construction changes nothing. Keep it, and let forward choose its "
        "pairs by it.",
        "rope-layouts",
    ),
    Misconception(
        "rotary-embedding-repeats-keys",
        rotary_repeats_keys,
        "rotary_embedding_grouped_queries",
        "The keys came back with as many heads as the queries. Rotate the few heads there are: "
        "repeating them is attention's business, and costs memory in the cache.",
        "rope-gqa",
    ),
    Misconception(
        "rotary-embedding-rows-on-heads",
        rotary_rows_on_heads,
        "rotary_embedding_positions_per_row",
        "Positions (batch, seq) were lined up with the heads, because the angles have no axis for "
        "them. Give them one between batch and sequence.",
        "rope-gqa",
    ),
    Misconception(
        "rotary-embedding-angles-like-q",
        rotary_angles_like_q,
        "rotary_embedding_bfloat16",
        "Positions or frequencies were cast to the dtype of q. bfloat16 cannot tell 1000 from "
        "1001: compute angles in float32 at least, and cast the result.",
        "rope-precision",
    ),
    Misconception(
        "rotary-embedding-angles-rounded-like-q",
        rotary_angles_rounded,
        "rotary_embedding_bfloat16",
        "The angles were cast to the dtype of q before sine and cosine were taken. A large angle "
        "has no digits left in bfloat16 for where in its turn it stands: cast after the sine.",
        "rope-precision",
    ),
    Misconception(
        "rotary-embedding-positions-like-q",
        rotary_positions_like_q,
        "rotary_embedding_bfloat16",
        "The positions were cast to the dtype of q, and bfloat16 cannot tell 1000 from 1001. "
        "Making them float32 again afterwards is too late; cast only the result.",
        "rope-precision",
    ),
    Misconception(
        "rotary-embedding-float32-results",
        rotary_float32_results,
        "rotary_embedding_bfloat16",
        "Low-precision queries came back as float32. Compute in float32, but return the dtype "
        "that came in, or the rest of the model is slowed down.",
        "rope-precision",
    ),
    Misconception(
        "rotary-embedding-buffer-cast",
        rotary_buffer_cast,
        "rotary_embedding_cast_module",
        "Your frequencies are a buffer or a parameter, and casting the module rounded them for "
        "good. Making them float32 again does not bring the digits back; keep them where a cast "
        "cannot reach.",
        "rope-precision",
    ),
    Misconception(
        "rotary-embedding-positions-like-buffer",
        rotary_positions_like_buffer,
        "rotary_embedding_cast_module",
        "Your frequencies are a buffer or a parameter, which casting the module rounds, and the "
        "positions take their dtype from it, so both lose their digits. Keep the frequencies "
        "where a cast cannot reach, and compute angles in float32 at least.",
        "rope-precision",
    ),
    Misconception(
        "rotary-embedding-tables-cast",
        rotary_tables_cast,
        "rotary_embedding_cast_module",
        "Your cosines and sines are buffers, and casting the module rounded them for good. Keep "
        "them where a cast cannot reach, or compute them in forward.",
        "rope-precision",
    ),
    Misconception(
        "rotary-embedding-matrix-product",
        rotary_matrix_product,
        "rotary_embedding_autocast",
        "The angles came from a matrix product, and autocast runs those in bfloat16 whatever you "
        "cast before. Multiply elementwise, or switch autocast off there.",
        "rope-precision",
    ),
    Misconception(
        "rotary-embedding-remembers-length",
        rotary_remembers_length,
        "rotary_embedding_no_memory",
        "A second call of the same length got the angles of the first, though its positions were "
        "others. Remember nothing, or look up by the positions themselves.",
        "rope-cache",
    ),
    Misconception(
        "rotary-embedding-whole-positions",
        rotary_whole_positions,
        "rotary_embedding_other_dtypes",
        "Positions were made whole numbers. They may be fractions, as they are when a long text is "
        "squeezed: keep them, in float32 at least.",
        "rope-ladder",
    ),
    Misconception(
        "rotary-embedding-broadcasts",
        rotary_broadcasts,
        "rotary_embedding_refuses_shapes",
        "Positions of another shape went through, because torch broadcast them: tokens were turned "
        "by positions that are not theirs. Compare the shapes before you compute.",
        "ex-RotaryEmbedding",
    ),
    Misconception(
        "rotary-embedding-in-place",
        rotary_in_place,
        "rotary_embedding_leaves_input",
        "q and k themselves were overwritten. Other code may hold them, so return new tensors.",
        "rope-code",
    ),
    Misconception(
        "rotary-embedding-cuts-gradients",
        rotary_without_gradients,
        "rotary_embedding_gradients",
        "The numbers are right, but no gradient arrives at q and k: the result was "
        "detached, or made without gradients. Nothing that stands before it could be trained.",
        "ex-RotaryEmbedding",
    ),
)

# ----------------------------------------------------------------------------- fused_rotation

# Kernels are misread here in torch's operations: what they would have written where they read.


def plain(x: Any, cos: Any, sin: Any, layout: str = "half") -> Any:
    """x rotated rightly, cos and sin (..., seq, pairs)."""
    from solutions.with_torch.rope import rotate_pairs

    return rotate_pairs(x, cos, sin, layout)


def read_at(x: Any, shape: Any, strides: Any, shift: int = 0) -> Any:
    """What a kernel finds that takes x for a tensor of this shape and these strides.

    Beyond the end it begins anew, where a kernel would read what it has no business with.
    """
    import torch

    size = 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True))
    memory = x.as_strided((size,), (1,))
    place = torch.tensor(shift)
    for n, step in zip(shape, strides, strict=True):
        place = place[..., None] + torch.arange(n) * step
    return memory[place % size]


def in_order(shape: Any) -> list[int]:
    """The strides of a contiguous tensor."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def fused_interleaved(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    return plain(q, cos, sin, "interleaved"), plain(k, cos, sin, "interleaved")


def fused_clockwise(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    return plain(q, cos, -sin), plain(k, cos, -sin)


def fused_one_after_the_other(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    def rotate(x: Any) -> Any:
        import torch

        a, b = x.float().chunk(2, dim=-1)
        a = a * cos - b * sin
        b = a * sin + b * cos
        return torch.cat([a, b], dim=-1).to(x.dtype)

    return rotate(q), rotate(k)


def fused_rows_by_head(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    def rotate(x: Any) -> Any:
        import torch

        row = torch.arange(x.shape[1]) % len(cos)
        return plain(x, cos[row][:, None], sin[row][:, None])

    return rotate(q), rotate(k)


def fused_rows_counted_on(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    """The row is the number of the program, which goes on counting through texts and heads.

    Past the end of the table a masked load gives zeros.
    """

    def rotate(x: Any) -> Any:
        out = plain(x, cos, sin)
        out[1:], out[:1, 1:] = 0, 0
        return out

    return rotate(q), rotate(k)


def fused_first_text(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    return tuple(plain(x[:1].expand_as(x), cos, sin) for x in (q, k))


def fused_strides_of_q(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    return plain(q, cos, sin), plain(read_at(k, k.shape, q.stride()), cos, sin)


def fused_contiguous(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    return tuple(plain(read_at(x, x.shape, in_order(x.shape)), cos, sin) for x in (q, k))


def fused_padded_half(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    """The block is rounded up to a power of two, and then taken for the half."""

    def rotate(x: Any) -> Any:
        import torch

        half = x.shape[-1] // 2
        block = 1 << (half - 1).bit_length()
        a, b = x[..., :half].float(), torch.zeros_like(x[..., :half], dtype=torch.float32)
        there = 2 * half - block
        b[..., :there] = x[..., block:]
        out = torch.zeros_like(x)
        out[..., :half] = a * cos - b * sin
        out[..., block:] = (a * sin + b * cos)[..., :there]
        return out

    return rotate(q), rotate(k)


def fused_without_mask(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    """Lanes past the half read and write too: the first half is stored last, over the second."""

    def rotate(x: Any) -> Any:
        out, half = plain(x, cos, sin), x.shape[-1] // 2
        beyond = (1 << (half - 1).bit_length()) - half
        if not beyond:
            return out
        strides = x.stride()
        shape, tables = (*x.shape[:-1], beyond), (*cos.shape[:-1], beyond)
        a, b = (read_at(x, shape, strides, n * half * strides[-1]).float() for n in (1, 2))
        c, s = (read_at(table, tables, table.stride(), half) for table in (cos, sin))
        out[..., half : half + beyond] = a * c - b * s
        return out

    return rotate(q), rotate(k)


def fused_in_place(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    q_rotated, k_rotated = plain(q, cos, sin), plain(k, cos, sin)
    return q.copy_(q_rotated), k.copy_(k_rotated)


def fused_in_half_precision(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    def rotate(x: Any) -> Any:
        import torch

        (a, b), c, s = x.chunk(2, dim=-1), cos.to(x.dtype), sin.to(x.dtype)
        return torch.cat([a * c - b * s, a * s + b * c], dim=-1)

    return rotate(q), rotate(k)


FUSED_ROTATION = (
    Misconception(
        "fused-rotation-interleaved",
        fused_interleaved,
        "fused_rotation_published_numbers",
        "Your kernel pairs neighbours. In the half layout coordinate i has its partner at "
        "i + head_dim/2.",
        "rope-layouts",
    ),
    Misconception(
        "fused-rotation-clockwise",
        fused_clockwise,
        "fused_rotation_published_numbers",
        "Every pair turns the wrong way. The second coordinate of a pair enters the first one "
        "with a minus sign, the first enters the second with a plus.",
        "rope-plane",
    ),
    Misconception(
        "fused-rotation-one-after-the-other",
        fused_one_after_the_other,
        "fused_rotation_published_numbers",
        "The second coordinate was computed from the first one as it had already been turned. "
        "Keep both as they were loaded until both results are there.",
        "rope-plane",
    ),
    Misconception(
        "fused-rotation-rows-by-head",
        fused_rows_by_head,
        "fused_rotation_published_numbers",
        "The row of cos and sin was chosen by the head. It belongs to the token: which of your "
        "program's numbers is which?",
        "rope-kernel",
    ),
    Misconception(
        "fused-rotation-rows-counted-on",
        fused_rows_counted_on,
        "fused_rotation_one_row_a_token",
        "The row of cos and sin went on counting through heads and texts, past the end of the "
        "table. Each head begins again at the row of its first token.",
        "rope-kernel",
    ),
    Misconception(
        "fused-rotation-first-text",
        fused_first_text,
        "fused_rotation_one_row_a_token",
        "Every text of the batch came out as the first one. The stride of the batch axis is part "
        "of an address too.",
        "rope-kernel",
    ),
    Misconception(
        "fused-rotation-strides-of-q",
        fused_strides_of_q,
        "fused_rotation_fewer_key_heads",
        "The queries are right, but the keys were read with the strides of the queries. Each "
        "tensor has its own: ask each for them.",
        "rope-kernel",
    ),
    Misconception(
        "fused-rotation-padded-half",
        fused_padded_half,
        "fused_rotation_odd_sizes",
        "A block has a power of two of lanes, and you took that number for the half. The partner "
        "of coordinate i lies head_dim/2 away, however wide the block is.",
        "rope-kernel",
    ),
    Misconception(
        "fused-rotation-without-mask",
        fused_without_mask,
        "fused_rotation_odd_sizes",
        "Lanes past the last pair wrote into the other half. A block has a power of two of lanes; "
        "a mask tells those without a pair to load and store nothing.",
        "rope-kernel",
    ),
    Misconception(
        "fused-rotation-contiguous",
        fused_contiguous,
        "fused_rotation_strides",
        "Addresses were computed from the shape, as if the tensor lay in memory in that order. "
        "Hand its strides to the kernel: heads often lie side by side.",
        "rope-kernel",
    ),
    Misconception(
        "fused-rotation-in-place",
        fused_in_place,
        "fused_rotation_leaves_inputs",
        "q and k themselves were overwritten. Other code may hold them, so write into new tensors.",
        "rope-kernel",
    ),
    Misconception(
        "fused-rotation-in-half-precision",
        fused_in_half_precision,
        "fused_rotation_bfloat16",
        "Half precision came in before the end: in cos and sin, or in products that nearly cancel. "
        "Widen what you load to float32, and round once, when you store.",
        "rope-precision",
    ),
)

MISCONCEPTIONS: dict[str, tuple[Misconception, ...]] = {
    "rotate_2d": ROTATE_2D,
    "rope_angles": ROPE_ANGLES,
    "apply_rope": APPLY_ROPE,
    "rope_scores": ROPE_SCORES,
    "interleaved_to_half": INTERLEAVED_TO_HALF,
    "apply_partial_rope": APPLY_PARTIAL_ROPE,
    "score_bound": SCORE_BOUND,
    "fixed_table_cache": FIXED_TABLE_CACHE,
    "RotaryEmbedding": ROTARY_EMBEDDING,
    "fused_rotation": FUSED_ROTATION,
}

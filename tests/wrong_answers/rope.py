"""Wrong answers that differ from a right one in a corner: each must lose points.

They complete the misconceptions, which are what people really do; these are what a check must not
miss. `WRONG[exercise][name]` is a function or class as a student would write it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from solutions.with_numpy import rope as right
from solutions.with_torch import rope as right_torch

WRONG: dict[str, dict[str, Callable[..., Any]]] = {}


def wrong(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        WRONG.setdefault(exercise, {})[function.__name__] = function
        return function

    return keep


def widened(x, positions):
    """x and positions broadcast against each other, as careless code lets them."""
    shape = np.broadcast_shapes(x.shape[:-1], np.shape(positions))
    return np.broadcast_to(x, (*shape, x.shape[-1])), np.broadcast_to(positions, shape)


def even(x):
    return x[..., : x.shape[-1] // 2 * 2]


# ---------------------------------------------------------------------------------- rotate_2d


@wrong("rotate_2d")
def takes_three_coordinates(vector, angle):
    return right.rotate_2d(vector[..., :2], angle)


@wrong("rotate_2d")
def takes_one_coordinate(vector, angle):
    return right.rotate_2d(np.broadcast_to(vector, (*vector.shape[:-1], 2)), angle)


@wrong("rotate_2d")
def raises_something_else(vector, angle):
    if vector.shape[-1:] != (2,):
        raise TypeError("(..., 2) please")
    return right.rotate_2d(vector, angle)


@wrong("rotate_2d")
def angle_like_vector(vector, angle):
    return right.rotate_2d(vector, np.asarray(angle, dtype=right.as_floats(vector, "v").dtype))


@wrong("rotate_2d")
def angle_not_wider_than_vector(vector, angle):
    out = np.empty(vector.shape, right.as_floats(vector, "v").dtype)
    out[...] = right.rotate_2d(vector, angle)
    return out


@wrong("rotate_2d")
def half_precision_widened(vector, angle):
    out = right.rotate_2d(vector, angle)
    return out.astype(np.promote_types(out.dtype, np.float32))


@wrong("rotate_2d")
def rounded(vector, angle):
    return right.rotate_2d(vector, angle).round(3)


@wrong("rotate_2d")
def first_angle_for_all(vector, angle):
    return right.rotate_2d(vector, np.ravel(angle)[0])


@wrong("rotate_2d")
def reflected(vector, angle):
    return right.rotate_2d(vector, angle) * np.array([1, -1], np.asarray(vector).dtype)


@wrong("rotate_2d")
def square_angles_transposed(vector, angle):
    if angle.ndim == 2 and angle.shape[0] == angle.shape[1]:
        angle = angle.T
    return right.rotate_2d(vector, angle)


@wrong("rotate_2d")
def angles_along_the_first_axis(vector, angle):
    angle = np.asarray(angle)
    if angle.ndim and angle.shape[0] == vector.shape[0]:
        angle = angle.reshape(angle.shape + (1,) * (vector.ndim - 1 - angle.ndim))
    return right.rotate_2d(vector, angle)


# -------------------------------------------------------------------------------- rope_angles


@wrong("rope_angles")
def whole_positions(positions, dim, base=10000.0):
    return right.rope_angles(positions.astype(int), dim, base)


@wrong("rope_angles")
def float32_ladder(positions, dim, base=10000.0):
    return positions[..., None] * right.rope_angles(1, dim, base).astype("f4").astype("f8")


@wrong("rope_angles")
def float32_positions(positions, dim, base=10000.0):
    return right.rope_angles(positions.astype("f4"), dim, base)


@wrong("rope_angles")
def float32_result(positions, dim, base=10000.0):
    return right.rope_angles(positions, dim, base).astype("f4")


@wrong("rope_angles")
def whole_base(positions, dim, base=10000.0):
    return right.rope_angles(positions, dim, int(base))


@wrong("rope_angles")
def at_least_one_axis(positions, dim, base=10000.0):
    return right.rope_angles(np.atleast_1d(positions), dim, base)


@wrong("rope_angles")
def within_one_turn(positions, dim, base=10000.0):
    return right.rope_angles(positions, dim, base) % (2 * np.pi)


@wrong("rope_angles")
def absolute_positions(positions, dim, base=10000.0):
    return right.rope_angles(np.abs(positions), dim, base)


@wrong("rope_angles")
def odd_dim_rounded_down(positions, dim, base=10000.0):
    return right.rope_angles(positions, dim // 2 * 2, base)


@wrong("rope_angles")
def dim_not_named(positions, dim, base=10000.0):
    if dim % 2 or dim <= 0:
        raise ValueError("dim must be even")
    return right.rope_angles(positions, dim, base)


@wrong("rope_angles")
def dim_zero_is_empty(positions, dim, base=10000.0):
    return np.zeros((*positions.shape, 0)) if dim == 0 else right.rope_angles(positions, dim, base)


@wrong("rope_angles")
def negative_base_is_turned(positions, dim, base=10000.0):
    return right.rope_angles(positions, dim, abs(base) or 10000.0)


@wrong("rope_angles")
def twice(positions, dim, base=10000.0):
    return np.repeat(right.rope_angles(positions, dim, base), 2, axis=-1)


@wrong("rope_angles")
def pairs_before_positions(positions, dim, base=10000.0):
    return np.moveaxis(right.rope_angles(positions, dim, base), -1, 0)


@wrong("rope_angles")
def scales_in_place(positions, dim, base=10000.0):
    angles = right.rope_angles(positions, dim, base)
    if positions.dtype.kind == "f":
        positions *= 2
    return angles


@wrong("rope_angles")
def dtype_of_float_positions_stays(positions, dim, base=10000.0):
    angles = right.rope_angles(positions, dim, base)
    return angles.astype(positions.dtype) if positions.dtype.kind == "f" else angles


@wrong("rope_angles")
def base_must_be_a_float(positions, dim, base=10000.0):
    if not isinstance(base, float):
        raise TypeError("base must be a float")
    return right.rope_angles(positions, dim, base)


@wrong("rope_angles")
def whole_steps_of_a_whole_base(positions, dim, base=10000.0):
    angles = right.rope_angles(positions, dim, base)
    if isinstance(base, int):
        return positions[..., None] / base ** (2 * np.arange(dim // 2) // dim)
    return angles


# --------------------------------------------------------------------------------- apply_rope


@wrong("apply_rope")
def whole_positions_(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, positions.astype(int), base, layout)


@wrong("apply_rope")
def absolute_positions_(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, np.abs(positions), base, layout)


@wrong("apply_rope")
def sorted_positions(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, np.sort(positions), base, layout)


@wrong("apply_rope")
def float32_positions_(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, positions.astype("f4"), base, layout)


@wrong("apply_rope")
def counted_from_the_first(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, positions - positions[..., :1], base, layout)


@wrong("apply_rope")
def positions_up_to_2047(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, np.minimum(positions, 2047), base, layout)


@wrong("apply_rope")
def positions_wrap_at_65536(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, np.fmod(positions, 65536), base, layout)


@wrong("apply_rope")
def first_row_of_positions(x, positions, base=10000.0, layout="interleaved"):
    right.apply_rope(x, positions, base, layout)
    return right.apply_rope(x, positions.reshape(-1, x.shape[-2])[0], base, layout)


@wrong("apply_rope")
def positions_of_the_first_head(x, positions, base=10000.0, layout="interleaved"):
    right.apply_rope(x, positions, base, layout)
    if positions.ndim > 2:
        positions = np.broadcast_to(positions[:, :1], positions.shape)
    return right.apply_rope(x, positions, base, layout)


@wrong("apply_rope")
def base_for_one_layout(x, positions, base=10000.0, layout="interleaved"):
    right.apply_rope(x, positions, base, layout)
    return right.apply_rope(x, positions, 10000.0 if layout == "half" else base, layout)


@wrong("apply_rope")
def whole_base_(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, positions, int(base), layout)


@wrong("apply_rope")
def half_turns_back(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, -positions if layout == "half" else positions, base, layout)


@wrong("apply_rope")
def half_with_neighbours_tables(x, positions, base=10000.0, layout="interleaved"):
    out = right.apply_rope(x, positions, base, layout)
    if layout == "interleaved":
        return out
    x = right.as_floats(x, "x")
    angles = np.repeat(right.rope_angles(positions, x.shape[-1], base), 2, axis=-1)
    first, second = np.split(x, 2, axis=-1)
    swapped = np.concatenate([-second, first], axis=-1)
    return (x * np.cos(angles) + swapped * np.sin(angles)).astype(x.dtype)


@wrong("apply_rope")
def half_precision_widened_(x, positions, base=10000.0, layout="interleaved"):
    out = right.apply_rope(x, positions, base, layout)
    return out.astype(np.promote_types(out.dtype, np.float32))


@wrong("apply_rope")
def dtype_of_positions_wins(x, positions, base=10000.0, layout="interleaved"):
    out = right.apply_rope(x, positions, base, layout)
    return out.astype(np.result_type(out.dtype, right.as_floats(positions, "p").dtype))


@wrong("apply_rope")
def integers_become_float32(x, positions, base=10000.0, layout="interleaved"):
    out = right.apply_rope(x, positions, base, layout)
    return out.astype("f4") if x.dtype.kind in "iu" else out


@wrong("apply_rope")
def one_position_for_all(x, positions, base=10000.0, layout="interleaved"):
    if positions.shape == (1,):
        positions = np.repeat(positions, x.shape[-2])
    return right.apply_rope(x, positions, base, layout)


@wrong("apply_rope")
def axes_of_one_in_positions(x, positions, base=10000.0, layout="interleaved"):
    if positions.ndim == x.ndim - 1:
        positions = np.broadcast_to(positions, x.shape[:-1])
    return right.apply_rope(x, positions, base, layout)


@wrong("apply_rope")
def fewer_axes_in_positions(x, positions, base=10000.0, layout="interleaved"):
    if 1 < positions.ndim < x.ndim - 1:
        positions = np.broadcast_to(positions, x.shape[:-1])
    return right.apply_rope(x, positions, base, layout)


@wrong("apply_rope")
def single_token_is_repeated(x, positions, base=10000.0, layout="interleaved"):
    if x.shape[-2] == 1:
        x, positions = widened(x, positions)
    return right.apply_rope(x, positions, base, layout)


@wrong("apply_rope")
def unneeded_positions_ignored(x, positions, base=10000.0, layout="interleaved"):
    if positions.shape[-1] > x.shape[-2]:
        positions = positions[..., : x.shape[-2]]
    return right.apply_rope(x, positions, base, layout)


@wrong("apply_rope")
def odd_dim_passes_the_last_on(x, positions, base=10000.0, layout="interleaved"):
    out = right.apply_rope(even(x), positions, base, layout)
    return np.concatenate([out, x[..., out.shape[-1] :]], axis=-1)


@wrong("apply_rope")
def unknown_layout_is_interleaved(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, positions, base, "half" if layout == "half" else "interleaved")


@wrong("apply_rope")
def layout_error_names_one(x, positions, base=10000.0, layout="interleaved"):
    if layout not in ("interleaved", "half"):
        raise ValueError("layout must be 'interleaved' or so")
    return right.apply_rope(x, positions, base, layout)


@wrong("apply_rope")
def base_zero_is_default(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, positions, base or 10000.0, layout)


@wrong("apply_rope")
def rounded_(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, positions, base, layout).round(5)


@wrong("apply_rope")
def heads_flattened_wrongly(x, positions, base=10000.0, layout="interleaved"):
    right.apply_rope(x, positions, base, layout)
    flat = x.reshape(-1, x.shape[-1])
    where = np.repeat(positions.ravel(), len(flat) // positions.size)
    return right.apply_rope(flat, where, base, layout).reshape(x.shape)


@wrong("apply_rope")
def last_token_forgotten(x, positions, base=10000.0, layout="interleaved"):
    out = right.apply_rope(x, positions, base, layout)
    out[..., -1, :] = x[..., -1, :]
    return out


@wrong("apply_rope")
def positions_changed(x, positions, base=10000.0, layout="interleaved"):
    out = right.apply_rope(x, positions, base, layout)
    positions += 1
    return out


@wrong("apply_rope")
def rows_of_the_batch_if_as_many(x, positions, base=10000.0, layout="interleaved"):
    if positions.ndim == 1 and x.ndim == 3 and len(x) == len(positions):
        positions = np.broadcast_to(positions[:, None], x.shape[:-1])
    return right.apply_rope(x, positions, base, layout)


@wrong("apply_rope")
def remembers_angles_by_position(x, positions, base=10000.0, layout="interleaved"):
    right.apply_rope(x, positions, base, layout)
    key = (positions.tobytes(), positions.dtype, positions.shape, x.shape[-1])
    return right.apply_rope(x, positions, BASES.setdefault(key, base), layout)


BASES: dict[Any, float] = {}


@wrong("apply_rope")
def scalar_position_for_all(x, positions, base=10000.0, layout="interleaved"):
    if positions.ndim == 0:
        positions = np.full(x.shape[-2], positions)
    return right.apply_rope(x, positions, base, layout)


@wrong("apply_rope")
def width_zero_is_empty(x, positions, base=10000.0, layout="interleaved"):
    return x if x.shape[-1] == 0 else right.apply_rope(x, positions, base, layout)


@wrong("apply_rope")
def negates_unsigned_numbers(x, positions, base=10000.0, layout="interleaved"):
    back = right.apply_rope(-x, positions, base, layout)
    return -back if x.dtype.kind in "iu" else right.apply_rope(x, positions, base, layout)


@wrong("apply_rope")
def negates_unsigned_positions(x, positions, base=10000.0, layout="interleaved"):
    return right.apply_rope(x, -(-positions).astype("f8"), base, layout)


@wrong("apply_rope")
def base_must_be_a_float_(x, positions, base=10000.0, layout="interleaved"):
    if not isinstance(base, float):
        raise TypeError("base must be a float")
    return right.apply_rope(x, positions, base, layout)


# -------------------------------------------------------------------------------- rope_scores


@wrong("rope_scores")
def root_of_the_pairs(q, k, q_positions, k_positions, base=10000.0):
    scores = right.rope_scores(q, k, q_positions, k_positions, base)
    return scores * np.asarray(np.sqrt(2), scores.dtype)


@wrong("rope_scores")
def always_divided_by_two(q, k, q_positions, k_positions, base=10000.0):
    scores = right.rope_scores(q, k, q_positions, k_positions, base)
    return scores * np.asarray(np.sqrt(q.shape[1]) / 2, scores.dtype)


@wrong("rope_scores")
def causal(q, k, q_positions, k_positions, base=10000.0):
    scores = right.rope_scores(q, k, q_positions, k_positions, base)
    return np.where(q_positions[:, None] >= k_positions, scores, -np.inf).astype(scores.dtype)


@wrong("rope_scores")
def half_pairs(q, k, q_positions, k_positions, base=10000.0):
    right.rope_scores(q, k, q_positions, k_positions, base)
    a = right.apply_rope(q, q_positions, base, "half")
    b = right.apply_rope(k, k_positions, base, "half")
    return (a @ b.T / np.sqrt(q.shape[1])).astype(a.dtype)


@wrong("rope_scores")
def distances_without_sign(q, k, q_positions, k_positions, base=10000.0):
    scores = right.rope_scores(q, k, q_positions, k_positions, base)
    for m, here in enumerate(q_positions):
        for n, there in enumerate(k_positions):
            where = np.abs([here - there])
            zero = np.zeros(1)
            scores[m, n] = right.rope_scores(q[m : m + 1], k[n : n + 1], where, zero, base)[0, 0]
    return scores


@wrong("rope_scores")
def whole_positions__(q, k, q_positions, k_positions, base=10000.0):
    return right.rope_scores(q, k, q_positions.astype(int), k_positions.astype(int), base)


@wrong("rope_scores")
def float32_positions__(q, k, q_positions, k_positions, base=10000.0):
    return right.rope_scores(q, k, q_positions.astype("f4"), k_positions.astype("f4"), base)


@wrong("rope_scores")
def integers_truncated(q, k, q_positions, k_positions, base=10000.0):
    scores = right.rope_scores(q, k, q_positions, k_positions, base)
    return scores.astype(q.dtype)


@wrong("rope_scores")
def half_precision_widened__(q, k, q_positions, k_positions, base=10000.0):
    scores = right.rope_scores(q, k, q_positions, k_positions, base)
    return scores.astype(np.promote_types(scores.dtype, np.float32))


@wrong("rope_scores")
def one_position_for_all_(q, k, q_positions, k_positions, base=10000.0):
    if len(k_positions) == 1:
        k_positions = np.repeat(k_positions, len(k))
    return right.rope_scores(q, k, q_positions, k_positions, base)


@wrong("rope_scores")
def one_query_for_all_positions(q, k, q_positions, k_positions, base=10000.0):
    q, q_positions = widened(q, q_positions)
    return right.rope_scores(q, k, q_positions, k_positions, base)


@wrong("rope_scores")
def common_width(q, k, q_positions, k_positions, base=10000.0):
    width = min(q.shape[1], k.shape[1])
    return right.rope_scores(q[:, :width], k[:, :width], q_positions, k_positions, base)


@wrong("rope_scores")
def odd_dim_cut(q, k, q_positions, k_positions, base=10000.0):
    return right.rope_scores(even(q), even(k), q_positions, k_positions, base)


@wrong("rope_scores")
def negative_base_is_turned_(q, k, q_positions, k_positions, base=10000.0):
    return right.rope_scores(q, k, q_positions, k_positions, abs(base) or 1.0)


@wrong("rope_scores")
def sorted_keys(q, k, q_positions, k_positions, base=10000.0):
    return right.rope_scores(q, k, q_positions, np.sort(k_positions), base)


@wrong("rope_scores")
def rotates_in_place(q, k, q_positions, k_positions, base=10000.0):
    scores = right.rope_scores(q, k, q_positions, k_positions, base)
    if k.dtype.kind == "f":
        k[...] = right.apply_rope(k, k_positions, base)
    return scores


@wrong("rope_scores")
def unsigned_distances(q, k, q_positions, k_positions, base=10000.0):
    right.rope_scores(q, k, q_positions, k_positions, base)
    distance = q_positions[:, None] - k_positions
    zero = np.zeros(1)
    scores = [
        [
            right.rope_scores(a[None], k[n : n + 1], row[n : n + 1], zero, base)[0, 0]
            for n in range(len(k))
        ]
        for a, row in zip(q, distance, strict=True)
    ]
    return np.array(scores, dtype=right.as_floats(q, "q").dtype)


@wrong("rope_scores")
def base_must_be_a_float__(q, k, q_positions, k_positions, base=10000.0):
    if not isinstance(base, float):
        raise TypeError("base must be a float")
    return right.rope_scores(q, k, q_positions, k_positions, base)


# ------------------------------------------------------------------------ interleaved_to_half


@wrong("interleaved_to_half")
def first_head_only(weight, num_heads):
    out = weight.copy()
    rows = len(weight) // num_heads
    out[:rows] = right.interleaved_to_half(weight, num_heads)[:rows]
    return out


@wrong("interleaved_to_half")
def heads_reversed(weight, num_heads):
    out = right.interleaved_to_half(weight, num_heads)
    return out.reshape(num_heads, -1, weight.shape[1])[::-1].reshape(weight.shape)


@wrong("interleaved_to_half")
def odd_width_accepted(weight, num_heads):
    if num_heads < 1 or len(weight) % num_heads:
        raise ValueError("rows do not fit the heads")
    heads = weight.reshape(num_heads, -1, weight.shape[1])
    return np.concatenate([heads[:, 0::2], heads[:, 1::2]], axis=1).reshape(weight.shape)


@wrong("interleaved_to_half")
def width_rounded_down(weight, num_heads):
    width = len(weight) // num_heads // 2 * 2
    out = weight.copy()
    out[: width * num_heads] = right.interleaved_to_half(weight[: width * num_heads], num_heads)
    return out


@wrong("interleaved_to_half")
def zero_heads_change_nothing(weight, num_heads):
    return weight if num_heads == 0 else right.interleaved_to_half(weight, num_heads)


@wrong("interleaved_to_half")
def other_exception_for_odd_width(weight, num_heads):
    if len(weight) % num_heads == 0 and len(weight) // num_heads % 2:
        raise RuntimeError("odd head width")
    return right.interleaved_to_half(weight, num_heads)


@wrong("interleaved_to_half")
def applied_twice(weight, num_heads):
    return right.interleaved_to_half(right.interleaved_to_half(weight, num_heads), num_heads)


@wrong("interleaved_to_half")
def right_for_width_4_and_8(weight, num_heads):
    out = right.interleaved_to_half(weight, num_heads)
    return out if len(weight) // num_heads in (2, 4, 6, 8) else weight


@wrong("interleaved_to_half")
def second_half_backwards(weight, num_heads):
    out = right.interleaved_to_half(weight, num_heads).reshape(num_heads, 2, -1, weight.shape[1])
    out[:, 1] = out[:, 1, ::-1].copy()
    return out.reshape(weight.shape)


@wrong("interleaved_to_half")
def float32_always(weight, num_heads):
    return right.interleaved_to_half(weight, num_heads).astype("f4")


@wrong("interleaved_to_half")
def negative_heads_counted(weight, num_heads):
    return right.interleaved_to_half(weight, abs(num_heads))


@wrong("interleaved_to_half")
def minus_one_is_guessed(weight, num_heads):
    return right.interleaved_to_half(weight, 1 if num_heads == -1 else num_heads)


@wrong("interleaved_to_half")
def integers_stay(weight, num_heads):
    return right.interleaved_to_half(weight, num_heads).astype(weight.dtype)


# ------------------------------------------------------------------------- apply_partial_rope


@wrong("apply_partial_rope")
def too_wide_is_clipped(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    width = min(rotary_dim, x.shape[-1] // 2 * 2)
    return right.apply_partial_rope(x, positions, width, base, layout)


@wrong("apply_partial_rope")
def odd_is_rounded(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    if rotary_dim > 2:
        rotary_dim = rotary_dim // 2 * 2
    return right.apply_partial_rope(x, positions, rotary_dim, base, layout)


@wrong("apply_partial_rope")
def zero_changes_nothing(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    if rotary_dim == 0:
        return x.copy()
    return right.apply_partial_rope(x, positions, rotary_dim, base, layout)


@wrong("apply_partial_rope")
def negative_counts_from_the_end(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    if rotary_dim < 0:
        rotary_dim += x.shape[-1]
    return right.apply_partial_rope(x, positions, rotary_dim, base, layout)


@wrong("apply_partial_rope")
def odd_dim_refused(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    if x.shape[-1] % 2:
        raise ValueError("dim must be even")
    return right.apply_partial_rope(x, positions, rotary_dim, base, layout)


@wrong("apply_partial_rope")
def all_of_it_refused(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    if rotary_dim == x.shape[-1]:
        raise ValueError("rotary_dim must be below dim")
    return right.apply_partial_rope(x, positions, rotary_dim, base, layout)


@wrong("apply_partial_rope")
def base_not_handed_on(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    right.apply_partial_rope(x, positions, rotary_dim, base, layout)
    return right.apply_partial_rope(x, positions, rotary_dim, layout=layout)


@wrong("apply_partial_rope")
def half_ladder_of_dim(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    out = right.apply_partial_rope(x, positions, rotary_dim, base, layout)
    if layout == "half":
        slow = base ** (rotary_dim / x.shape[-1])
        out = right.apply_partial_rope(x, positions, rotary_dim, slow, layout)
    return out


@wrong("apply_partial_rope")
def float32_becomes_float64(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    return right.apply_partial_rope(x.astype("f8"), positions, rotary_dim, base, layout)


@wrong("apply_partial_rope")
def positions_broadcast(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    x, positions = widened(x, positions)
    return right.apply_partial_rope(x, positions, rotary_dim, base, layout)


@wrong("apply_partial_rope")
def float32_positions___(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    return right.apply_partial_rope(x, positions.astype("f4"), rotary_dim, base, layout)


@wrong("apply_partial_rope")
def unknown_layout_is_half(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    layout = layout if layout == "interleaved" else "half"
    return right.apply_partial_rope(x, positions, rotary_dim, base, layout)


@wrong("apply_partial_rope")
def rest_is_scaled(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    out = right.apply_partial_rope(x, positions, rotary_dim, base, layout)
    out[..., rotary_dim:] *= 0.5
    return out


@wrong("apply_partial_rope")
def one_changes_nothing(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    if rotary_dim == 1:
        return x.copy()
    return right.apply_partial_rope(x, positions, rotary_dim, base, layout)


@wrong("apply_partial_rope")
def a_fraction_counts(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    if isinstance(rotary_dim, float):
        rotary_dim = int(rotary_dim * x.shape[-1])
    return right.apply_partial_rope(x, positions, rotary_dim, base, layout)


@wrong("apply_partial_rope")
def scalar_position_for_all_(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    if positions.ndim == 0:
        positions = np.full(x.shape[-2], positions)
    return right.apply_partial_rope(x, positions, rotary_dim, base, layout)


@wrong("apply_partial_rope")
def base_must_be_a_float___(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    if not isinstance(base, float):
        raise TypeError("base must be a float")
    return right.apply_partial_rope(x, positions, rotary_dim, base, layout)


# -------------------------------------------------------------------------------- score_bound


@wrong("score_bound")
def whole_distances(distances, dim, base=10000.0):
    return right.score_bound(distances.astype(int), dim, base)


@wrong("score_bound")
def only_ahead(distances, dim, base=10000.0):
    return right.score_bound(np.maximum(distances, 0), dim, base)


@wrong("score_bound")
def float32_angles(distances, dim, base=10000.0):
    angles = right.rope_angles(distances, dim, base).astype("f4").astype("f8")
    return np.abs(np.exp(1j * angles).cumsum(-1)).mean(-1)


@wrong("score_bound")
def complex64_terms(distances, dim, base=10000.0):
    terms = np.exp(1j * right.rope_angles(distances, dim, base)).astype(np.complex64)
    return np.abs(terms.cumsum(-1)).mean(-1)


@wrong("score_bound")
def at_least_one_axis_(distances, dim, base=10000.0):
    return right.score_bound(np.atleast_1d(distances), dim, base)


@wrong("score_bound")
def slowest_first(distances, dim, base=10000.0):
    angles = right.rope_angles(distances, dim, base)[..., ::-1]
    return np.abs(np.exp(1j * angles).cumsum(-1)).mean(-1)


@wrong("score_bound")
def exponent_doubled(distances, dim, base=10000.0):
    right.score_bound(distances, dim, base)
    return right.score_bound(distances, dim, base**2)


@wrong("score_bound")
def odd_dim_rounded_down_(distances, dim, base=10000.0):
    return right.score_bound(distances, dim // 2 * 2, base)


@wrong("score_bound")
def any_base(distances, dim, base=10000.0):
    return right.score_bound(distances, dim, abs(base) or 1.0)


@wrong("score_bound")
def normalised(distances, dim, base=10000.0):
    return right.score_bound(distances, dim, base) / right.score_bound(0, dim, base)


@wrong("score_bound")
def mean_over_distances(distances, dim, base=10000.0):
    right.score_bound(distances, dim, base)
    angles = right.rope_angles(distances, dim, base)
    return np.abs(np.exp(1j * angles).cumsum(-1)).mean(0)


@wrong("score_bound")
def sorts_distances(distances, dim, base=10000.0):
    bound = right.score_bound(distances, dim, base)
    if distances.ndim:
        distances.sort(axis=0)
    return bound


@wrong("score_bound")
def median_length(distances, dim, base=10000.0):
    angles = right.rope_angles(distances, dim, base)
    return np.median(np.abs(np.exp(1j * angles).cumsum(-1)), axis=-1)


@wrong("score_bound")
def base_must_be_a_float____(distances, dim, base=10000.0):
    if not isinstance(base, float):
        raise TypeError("base must be a float")
    return right.score_bound(distances, dim, base)


# -------------------------------------------------------------------------- fixed_table_cache


def cache(key, hit=lambda tables: tables):
    """A cache that looks requests up by key(...) and hands out hit(...) when it remembers them."""

    def make():
        memory = {}

        def tables(length, offset, dim, base=10000.0):
            fresh = right.fixed_table_cache()(length, offset, dim, base)
            found = key(length, offset, dim, base)
            if found in memory:
                return hit(memory[found])
            memory[found] = fresh
            return fresh

        return tables

    return make


WRONG["fixed_table_cache"] = {
    "key_by_digits": cache(lambda *request: "".join(map(str, request))),
    "key_sorted": cache(lambda length, offset, *rest: (*sorted((length, offset)), *rest)),
    "key_product": cache(lambda length, offset, *rest: (length * offset, *rest)),
    "key_offset_alone": cache(lambda length, offset, *rest: (offset, *rest)),
    "key_whole_base": cache(lambda length, offset, dim, base: (length, offset, dim, int(base))),
    "key_dim_only_if_wide": cache(lambda length, offset, dim, base: (length, offset, dim // 4)),
    "key_product_of_dim_and_base": cache(
        lambda length, offset, dim, base: (length, offset, dim * base)
    ),
    "key_whether_there_is_an_offset": cache(
        lambda length, offset, *rest: (length, offset > 0, *rest)
    ),
    "nothing_on_a_hit": cache(lambda *request: request, lambda tables: None),
    "swapped_on_a_hit": cache(lambda *request: request, lambda tables: tables[::-1]),
    "float32_on_a_hit": cache(
        lambda *request: request, lambda tables: tuple(t.astype("f4") for t in tables)
    ),
}


@wrong("fixed_table_cache")
def slices_without_base():
    grown = {}

    def tables(length, offset, dim, base=10000.0):
        right.fixed_table_cache()(length, offset, dim, base)
        if dim not in grown or len(grown[dim]) < offset + length:
            grown[dim] = right.rope_angles(np.arange(offset + length), dim, base)
        angles = grown[dim][offset : offset + length]
        return np.cos(angles), np.sin(angles)

    return tables


@wrong("fixed_table_cache")
def never_grows():
    first = {}

    def tables(length, offset, dim, base=10000.0):
        right.fixed_table_cache()(length, offset, dim, base)
        end = first.setdefault((dim, base), offset + length)
        angles = right.rope_angles(np.arange(end), dim, base)[offset : offset + length]
        return np.cos(angles), np.sin(angles)

    return tables


@wrong("fixed_table_cache")
def negative_length_is_empty():
    def tables(length, offset, dim, base=10000.0):
        return right.fixed_table_cache()(max(length, 0), offset, dim, base)

    return tables


@wrong("fixed_table_cache")
def negative_offset_is_taken():
    def tables(length, offset, dim, base=10000.0):
        angles = right.rope_angles(np.arange(offset, offset + abs(length)), dim, base)
        return np.cos(angles), np.sin(angles) if length > 0 else [][0]

    return tables


SHARED: dict[Any, Any] = {}


@wrong("fixed_table_cache")
def last_base_is_shared():
    SHARED.clear()

    def tables(length, offset, dim, base=10000.0):
        key = (length, offset, dim)
        if key not in SHARED:
            SHARED[key] = right.fixed_table_cache()(length, offset, dim, base)
        right.fixed_table_cache()(length, offset, dim, base)
        return SHARED[key]

    return tables


@wrong("fixed_table_cache")
def no_axis_without_rows():
    def tables(length, offset, dim, base=10000.0):
        cos, sin = right.fixed_table_cache()(length, offset, dim, base)
        return np.array(list(cos)), np.array(list(sin))

    return tables


@wrong("fixed_table_cache")
def float_base_only():
    def tables(length, offset, dim, base=10000.0):
        if not isinstance(base, float):
            raise TypeError("base must be a float")
        return right.fixed_table_cache()(length, offset, dim, base)

    return tables


# ---------------------------------------------------------------------------- RotaryEmbedding


class Rotary(torch.nn.Module):
    """The right module; wrong ones below override a part of it."""

    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__()
        self.head_dim, self.base, self.layout = head_dim, base, layout
        self.right = right_torch.RotaryEmbedding(head_dim, base, layout)

    def forward(self, q, k, positions):
        return self.right(q, k, positions)

    def angles(self, positions):
        return right_torch.rope_angles(positions, self.head_dim, self.base).unsqueeze(-3)

    def turn(self, x, angles):
        return right_torch.rotate_pairs(x, angles.cos(), angles.sin(), self.layout)


@wrong("RotaryEmbedding")
class ChecksWhenUsed(torch.nn.Module):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__()
        self.given = (head_dim, base, layout)

    def forward(self, q, k, positions):
        return right_torch.RotaryEmbedding(*self.given)(q, k, positions)


@wrong("RotaryEmbedding")
class LayoutNotChecked(Rotary):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__(head_dim, base, layout if layout == "interleaved" else "half")


@wrong("RotaryEmbedding")
class OddWidthRoundedDown(Rotary):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__(head_dim // 2 * 2, base, layout)


@wrong("RotaryEmbedding")
class AnyBase(Rotary):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__(head_dim, abs(base) or 1.0, layout)


@wrong("RotaryEmbedding")
class BaseForgotten(Rotary):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__(head_dim, 10000.0, layout)


@wrong("RotaryEmbedding")
class BroadcastsPositions(Rotary):
    def forward(self, q, k, positions):
        angles = self.angles(positions)
        return self.turn(q, angles), self.turn(k, angles)


@wrong("RotaryEmbedding")
class OneRowForTheBatch(Rotary):
    def forward(self, q, k, positions):
        if positions.shape == (1, q.shape[2]):
            positions = positions[0]
        return self.right(q, k, positions)


@wrong("RotaryEmbedding")
class FirstRowForAll(Rotary):
    def forward(self, q, k, positions):
        self.right(q, k, positions)
        return self.right(q, k, positions.reshape(-1, q.shape[2])[0])


@wrong("RotaryEmbedding")
class KeysOfAnyLength(Rotary):
    def forward(self, q, k, positions):
        k_positions = positions[..., : k.shape[2]]
        return self.right(q, q, positions)[0], self.right(k, k, k_positions)[1]


@wrong("RotaryEmbedding")
class AnyWidth(Rotary):
    def forward(self, q, k, positions):
        width = self.head_dim
        a, b = self.right(q[..., :width], k[..., :width], positions)
        return torch.cat([a, q[..., width:]], -1), torch.cat([b, k[..., width:]], -1)


@wrong("RotaryEmbedding")
class WholePositions(Rotary):
    def forward(self, q, k, positions):
        return self.right(q, k, positions.long())


@wrong("RotaryEmbedding")
class AbsolutePositions(Rotary):
    def forward(self, q, k, positions):
        return self.right(q, k, positions.abs())


@wrong("RotaryEmbedding")
class PositionsUpTo2047(Rotary):
    def forward(self, q, k, positions):
        return self.right(q, k, positions.clamp(max=2047))


@wrong("RotaryEmbedding")
class KeysInTheOtherLayout(Rotary):
    def forward(self, q, k, positions):
        other = "half" if self.layout == "interleaved" else "interleaved"
        turned = right_torch.RotaryEmbedding(self.head_dim, self.base, other)(q, k, positions)
        return self.right(q, k, positions)[0], turned[1]


@wrong("RotaryEmbedding")
class NeverFloat64(Rotary):
    def forward(self, q, k, positions):
        q, k = (x.float() if x.dtype == torch.float64 else x for x in (q, k))
        return self.right(q, k, positions)


@wrong("RotaryEmbedding")
class HalfPrecisionIsBfloat16(Rotary):
    def forward(self, q, k, positions):
        turned = self.right(q, k, positions)
        return tuple(x.bfloat16() if x.dtype == torch.float16 else x for x in turned)


@wrong("RotaryEmbedding")
class FirstDtypeStays(Rotary):
    def forward(self, q, k, positions):
        self.dtype = getattr(self, "dtype", q.dtype)
        return tuple(x.to(self.dtype) for x in self.right(q, k, positions))


@wrong("RotaryEmbedding")
class RemembersShape(Rotary):
    def forward(self, q, k, positions):
        self.seen = {**{positions.shape: positions}, **getattr(self, "seen", {})}
        return self.right(q, k, self.seen[positions.shape])


@wrong("RotaryEmbedding")
class RemembersLongestRange(Rotary):
    def forward(self, q, k, positions):
        self.right(q, k, positions)
        table = getattr(self, "table", None)
        if table is None or len(table) < q.shape[2]:
            self.table = table = positions if positions.ndim == 1 else positions[0]
        return self.right(q, k, positions if positions.ndim > 1 else table[: q.shape[2]])


@wrong("RotaryEmbedding")
class RotatesByMatrixProduct(Rotary):
    """Right, but under autocast the product is a bfloat16 one."""

    def forward(self, q, k, positions):
        eye = torch.eye(self.head_dim).expand(1, 1, self.head_dim, self.head_dim)
        self.right(q, k, positions)

        def turn(x):
            angles = self.angles(positions).expand(x.shape[0], 1, -1, -1)[:, 0, :, None]
            turns = self.turn(eye.to(angles.dtype), angles).to(x.dtype)
            return torch.einsum("bhtc,btcd->bhtd", x, turns)

        return turn(q), turn(k)


@wrong("RotaryEmbedding")
class ResultsInAutocastDtype(Rotary):
    def forward(self, q, k, positions):
        turned = self.right(q, k, positions)
        if torch.is_autocast_enabled("cpu"):
            return tuple(x.to(torch.get_autocast_dtype("cpu")) for x in turned)
        return turned


@wrong("RotaryEmbedding")
class ParameterOfFrequencies(Rotary):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__(head_dim, base, layout)
        per_pair = right_torch.rope_angles(torch.tensor(1.0), head_dim, base).float()
        self.per_pair = torch.nn.Parameter(per_pair)

    def forward(self, q, k, positions):
        self.right(q, k, positions)
        angles = (positions[..., None] * self.per_pair.float()).unsqueeze(-3)
        return self.turn(q, angles), self.turn(k, angles)


@wrong("RotaryEmbedding")
class TableCast(Rotary):
    """A table of cosines in a buffer: rounding it costs less than rounding frequencies."""

    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__(head_dim, base, layout)
        angles = right_torch.rope_angles(torch.arange(4096), head_dim, base).float()
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, q, k, positions):
        self.right(q, k, positions)
        if positions.is_floating_point():
            return self.right(q, k, positions)
        cos, sin = (table[positions].float().unsqueeze(-3) for table in (self.cos, self.sin))
        turn = right_torch.rotate_pairs
        return turn(q, cos, sin, self.layout), turn(k, cos, sin, self.layout)


@wrong("RotaryEmbedding")
class OnlyTheFirstHeads(Rotary):
    def forward(self, q, k, positions):
        a, b = self.right(q, k, positions)
        return torch.cat([a[:, : k.shape[1]], q[:, k.shape[1] :]], 1), b


@wrong("RotaryEmbedding")
class Clockwise(Rotary):
    def forward(self, q, k, positions):
        return self.right(q, k, -positions)


@wrong("RotaryEmbedding")
class KeysChangedInPlace(Rotary):
    def forward(self, q, k, positions):
        a, b = self.right(q, k, positions)
        k.copy_(b)
        return a, b


@wrong("RotaryEmbedding")
class QueriesScaled(Rotary):
    def forward(self, q, k, positions):
        a, b = self.right(q, k, positions)
        return a / self.head_dim**0.5, b


@wrong("RotaryEmbedding")
class RemembersPositions(Rotary):
    """Looks positions up by something that others share: `key` of them."""

    @staticmethod
    def key(positions):
        return positions.shape, positions.ravel()[0].item()

    def forward(self, q, k, positions):
        self.right(q, k, positions)
        self.seen = {**{self.key(positions): positions}, **getattr(self, "seen", {})}
        return self.right(q, k, self.seen[self.key(positions)])


@wrong("RotaryEmbedding")
class RemembersByLargestPosition(RemembersPositions):
    @staticmethod
    def key(positions):
        return positions.shape, positions.max().item()


@wrong("RotaryEmbedding")
class RemembersBySumOfPositions(RemembersPositions):
    @staticmethod
    def key(positions):
        return positions.shape, positions.sum().item()


@wrong("RotaryEmbedding")
class TablesInTheFirstDtype(Rotary):
    def forward(self, q, k, positions):
        self.right(q, k, positions)
        self.dtype = getattr(self, "dtype", q.dtype)
        cos, sin = (f(self.angles(positions)).to(self.dtype) for f in (torch.cos, torch.sin))
        turn = right_torch.rotate_pairs
        return turn(q, cos, sin, self.layout), turn(k, cos, sin, self.layout)


@wrong("RotaryEmbedding")
class TablesOfAllModules(Rotary):
    tables: dict[Any, Any] = {}

    def forward(self, q, k, positions):
        self.right(q, k, positions)
        key = (positions.shape, tuple(positions.ravel().tolist()), self.head_dim)
        angles = self.tables.setdefault(key, self.angles(positions))
        return self.turn(q, angles), self.turn(k, angles)


@wrong("RotaryEmbedding")
class LayoutOfAllModules(Rotary):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__(head_dim, base, layout)
        LayoutOfAllModules.last = layout

    def forward(self, q, k, positions):
        self.right.layout = LayoutOfAllModules.last
        return self.right(q, k, positions)


@wrong("RotaryEmbedding")
class KeysOfAnyBatch(Rotary):
    def forward(self, q, k, positions):
        if len(k) == len(q):
            return self.right(q, k, positions)
        angles = self.angles(positions)
        return self.turn(q, angles), self.turn(k, angles)


@wrong("RotaryEmbedding")
class KeysOfWidthTwo(Rotary):
    def forward(self, q, k, positions):
        if k.shape[-1] == 2 < self.head_dim:
            k = k.repeat_interleave(self.head_dim // 2, -1)
        return self.right(q, k, positions)


@wrong("RotaryEmbedding")
class BaseMustBeAFloat(Rotary):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        if not isinstance(base, float):
            raise TypeError("base must be a float")
        super().__init__(head_dim, base, layout)


# ----------------------------------------------------------------------------- fused_rotation


def each(rotate):
    """An answer from a function of one tensor."""
    return lambda q, k, cos, sin: (rotate(q, cos, sin), rotate(k, cos, sin))


def turned(x, cos, sin):
    return right_torch.rotate_pairs(x, cos, sin, "half")


def products_rounded(x, cos, sin):
    (a, b), kind = x.float().chunk(2, dim=-1), x.dtype
    first = (a * cos).to(kind) - (b * sin).to(kind)
    return torch.cat([first, (a * sin).to(kind) + (b * cos).to(kind)], dim=-1)


def through_bfloat16(x, cos, sin):
    return turned(x.bfloat16(), cos, sin).to(x.dtype)


def sines_from_cosines(x, cos, sin):
    return turned(x, cos, torch.sign(sin) * (1 - cos.square()).clamp(min=0).sqrt())


def at_most_64_pairs(x, cos, sin):
    out = turned(x, cos, sin)
    out.unflatten(-1, (2, -1))[..., 64:] = 0
    return out


def at_most_8_heads(x, cos, sin):
    out = turned(x, cos, sin)
    out[:, 8:] = 0
    return out


def coordinates_side_by_side(x, cos, sin):
    """All strides but the last are asked for."""
    strides = (*x.stride()[:-1], 1)
    size = 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True))
    place = torch.tensor(0)
    for n, step in zip(x.shape, strides, strict=True):
        place = place[..., None] + torch.arange(n) * step
    return turned(x.as_strided((size,), (1,))[place % size], cos, sin)


WRONG["fused_rotation"] = {
    "tables_cast": each(lambda x, cos, sin: turned(x, cos.to(x.dtype), sin.to(x.dtype))),
    "tables_in_float16": each(lambda x, cos, sin: turned(x, cos.half(), sin.half())),
    "float16_stays_float16": each(
        lambda x, cos, sin: (
            products_rounded(x, cos, sin) if x.dtype == torch.float16 else turned(x, cos, sin)
        )
    ),
    "products_rounded": each(products_rounded),
    "through_bfloat16": each(through_bfloat16),
    "sines_from_cosines": each(sines_from_cosines),
    "at_most_64_pairs": each(at_most_64_pairs),
    "at_most_8_heads": each(at_most_8_heads),
    "coordinates_side_by_side": each(coordinates_side_by_side),
    "float32_stays": each(lambda x, cos, sin: turned(x.float(), cos, sin)),
    "keys_as_they_are": lambda q, k, cos, sin: (turned(q, cos, sin), k),
    "queries_in_place": lambda q, k, cos, sin: (q.copy_(turned(q, cos, sin)), turned(k, cos, sin)),
    "tables_in_place": lambda q, k, cos, sin: (
        turned(q, cos, sin),
        turned(k, cos, sin),
        cos.mul_(2),
    )[:2],
    "keys_like_queries": lambda q, k, cos, sin: (
        turned(q, cos, sin),
        turned(k, cos, sin).expand_as(q) if k.shape[1] == 1 else turned(k, cos, sin),
    ),
    "first_key_head_alone": lambda q, k, cos, sin: (
        turned(q, cos, sin),
        torch.cat([turned(k[:, :1], cos, sin), k[:, 1:]], dim=1),
    ),
    "stacked": lambda q, k, cos, sin: turned(torch.cat([q, k], dim=1), cos, sin),
}

"""Wrong answers that differ from a right one in a corner: each must lose points.

They complete the misconceptions, which are what people really do; these are what a check must not
miss. `WRONG[exercise][name]` is a function or class as a student would write it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from solutions.with_numpy import learned as right
from solutions.with_torch import learned as right_torch

WRONG: dict[str, dict[str, Callable[..., Any]]] = {}


def wrong(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        WRONG.setdefault(exercise, {})[function.__name__] = function
        return function

    return keep


# ------------------------------------------------------------------------------------- lookup


@wrong("lookup")
def one_past_the_end_is_clipped(table, positions):
    positions = np.asarray(positions)
    return right.lookup(table, np.where(positions == len(table), len(table) - 1, positions))


@wrong("lookup")
def minus_one_alone_wraps(table, positions):
    positions = np.asarray(positions)
    return right.lookup(table, np.where(positions == -1, len(table) - 1, positions))


@wrong("lookup")
def tests_the_first_position_alone(table, positions):
    positions = np.asarray(positions)
    right.lookup(table, positions.ravel()[:1])
    return np.take(right.as_floats(table, "table"), positions, axis=0, mode="wrap")


@wrong("lookup")
def tests_the_mean_position(table, positions):
    positions = np.asarray(positions)
    if positions.size and not 0 <= positions.mean() < len(table):
        raise IndexError(f"{positions.ravel()} in a table of length {len(table)}")
    return np.take(right.as_floats(table, "table"), positions, axis=0, mode="clip")


@wrong("lookup")
def a_value_error(table, positions):
    try:
        return right.lookup(table, positions)
    except IndexError as error:
        raise ValueError(str(error)) from None


@wrong("lookup")
def an_assertion(table, positions):
    positions = np.asarray(positions)
    assert positions.min(initial=0) >= 0 and positions.max(initial=0) < len(table), (
        f"{positions} in {len(table)}"
    )
    return right.lookup(table, positions)


@wrong("lookup")
def a_message_without_the_position(table, positions):
    try:
        return right.lookup(table, positions)
    except IndexError:
        raise IndexError(f"position outside a table of length {len(table)}") from None


@wrong("lookup")
def a_message_without_the_length(table, positions):
    try:
        return right.lookup(table, positions)
    except IndexError:
        bad = [p for p in np.ravel(positions) if not 0 <= p < len(table)]
        raise IndexError(f"position {bad[0]} is outside the table") from None


@wrong("lookup")
def no_row_for_what_is_outside(table, positions):
    table, positions = right.as_floats(table, "table"), np.asarray(positions)
    if positions.dtype.kind not in "iu":
        raise TypeError("integers please")
    inside = (positions >= 0) & (positions < len(table))
    return table[np.where(inside, positions, 0)] * inside[..., None]


@wrong("lookup")
def whole_floats_pass(table, positions):
    positions = np.asarray(positions)
    if positions.dtype.kind == "f" and (positions == positions.round()).all():
        positions = positions.astype(int)
    return right.lookup(table, positions)


@wrong("lookup")
def booleans_pass_as_zero_and_one(table, positions):
    positions = np.asarray(positions)
    return right.lookup(table, positions.astype(int) if positions.dtype == bool else positions)


@wrong("lookup")
def float32_positions_pass(table, positions):
    positions = np.asarray(positions)
    if positions.dtype == np.float32:
        positions = positions.astype(int)
    return right.lookup(table, positions)


@wrong("lookup")
def flat_positions_alone(table, positions):
    return np.stack([right.lookup(table, int(p)) for p in np.asarray(positions)])


@wrong("lookup")
def at_least_one_axis(table, positions):
    return right.lookup(table, np.atleast_1d(positions))


@wrong("lookup")
def needs_a_position(table, positions):
    if np.min(positions) < 0:
        raise IndexError(f"{np.min(positions)} in {len(table)}")
    return right.lookup(table, positions)


@wrong("lookup")
def positions_as_int8(table, positions):
    positions = np.asarray(positions)
    right.lookup(table, positions)
    return right.as_floats(table, "table")[positions.astype(np.int8)]


@wrong("lookup")
def flat_index_in_the_dtype_of_positions(table, positions):
    right.lookup(table, positions)
    positions, (_, dim) = np.asarray(positions), np.shape(table)
    places = positions[..., None] * np.asarray(dim).astype(positions.dtype)
    places = places + np.arange(dim).astype(positions.dtype)
    return right.as_floats(table, "table").ravel()[places]


@wrong("lookup")
def columns_for_rows(table, positions):
    right.lookup(table, positions)
    return np.take(right.as_floats(table, "table"), np.asarray(positions) % np.shape(table)[1], 1)


@wrong("lookup")
def sorted_and_without_repeats(table, positions):
    return right.lookup(table, np.unique(positions))


@wrong("lookup")
def the_axis_of_coordinates_first(table, positions):
    return np.moveaxis(right.lookup(table, positions), -1, 0)


@wrong("lookup")
def half_precision_widened(table, positions):
    out = right.lookup(table, positions)
    return out.astype(np.promote_types(out.dtype, np.float32))


@wrong("lookup")
def integers_as_float32(table, positions):
    out = right.lookup(table, positions)
    return out.astype(np.float32) if np.asarray(table).dtype.kind in "iu" else out


@wrong("lookup")
def memorised_numbers(table, positions):
    return np.asarray(positions)[..., None] + np.array([0.0, 0.25, 0.5])


@wrong("lookup")
def unit_length(table, positions):
    out = right.lookup(table, positions)
    return out / np.maximum(np.linalg.norm(out, axis=-1, keepdims=True), 1e-12)


@wrong("lookup")
def moves_the_positions_in_place(table, positions):
    out = right.lookup(table, positions)
    positions += 1
    return out


@wrong("lookup")
def zeroes_row_one(table, positions):
    return right.lookup(table, positions) * (np.asarray(positions) != 1)[..., None]


# ---------------------------------------------------------------------------- lookup_gradient


@wrong("lookup_gradient")
def assigns(grad_output, positions, num_positions):
    gradient = np.zeros_like(right.lookup_gradient(grad_output, positions, num_positions))
    gradient[np.asarray(positions)] = grad_output
    return gradient


@wrong("lookup_gradient")
def keeps_the_first_share(grad_output, positions, num_positions):
    gradient = np.zeros_like(right.lookup_gradient(grad_output, positions, num_positions))
    flat, grads = np.ravel(positions), np.reshape(grad_output, (-1, gradient.shape[1]))
    rows, first = np.unique(flat, return_index=True)
    gradient[rows] = grads[first]
    return gradient


@wrong("lookup_gradient")
def keeps_the_largest_share(grad_output, positions, num_positions):
    gradient = np.full_like(right.lookup_gradient(grad_output, positions, num_positions), -np.inf)
    np.maximum.at(gradient, np.asarray(positions), grad_output)
    return np.where(np.isinf(gradient), 0, gradient)


@wrong("lookup_gradient")
def two_repeats_at_most(grad_output, positions, num_positions):
    gradient = np.zeros_like(right.lookup_gradient(grad_output, positions, num_positions))
    seen = np.zeros(num_positions, dtype=int)
    for place in np.ndindex(np.shape(positions)):
        row = np.asarray(positions)[place]
        if seen[row] < 2:
            gradient[row] += np.asarray(grad_output)[place]
        seen[row] += 1
    return gradient


@wrong("lookup_gradient")
def averages_over_the_batch(grad_output, positions, num_positions):
    out = right.lookup_gradient(grad_output, positions, num_positions)
    return out / len(positions) if np.ndim(positions) > 1 and len(positions) else out


@wrong("lookup_gradient")
def averages_over_all_places(grad_output, positions, num_positions):
    out = right.lookup_gradient(grad_output, positions, num_positions)
    return (out / max(np.size(positions), 1)).astype(out.dtype)


@wrong("lookup_gradient")
def rows_that_were_used_alone(grad_output, positions, num_positions):
    return right.lookup_gradient(grad_output, positions, num_positions)[np.unique(positions)]


@wrong("lookup_gradient")
def one_row_too_many(grad_output, positions, num_positions):
    out = right.lookup_gradient(grad_output, positions, num_positions)
    return np.concatenate([out, np.zeros_like(out[:1])]) if len(out) else out


@wrong("lookup_gradient")
def a_gradient_for_row_zero_too(grad_output, positions, num_positions):
    out = right.lookup_gradient(grad_output, positions, num_positions)
    if len(out):
        out[0] = 0
    return out


@wrong("lookup_gradient")
def padding_row_gets_none(grad_output, positions, num_positions):
    out = right.lookup_gradient(grad_output, positions, num_positions)
    out[1:2] = 0
    return out


@wrong("lookup_gradient")
def one_text_alone(grad_output, positions, num_positions):
    out = right.lookup_gradient(grad_output, positions, num_positions)
    if np.ndim(positions) > 1 and len(positions):
        return right.lookup_gradient(grad_output[0], positions[0], num_positions)
    return out


@wrong("lookup_gradient")
def two_axes_at_most(grad_output, positions, num_positions):
    if np.ndim(positions) > 2:
        raise ValueError("two axes at most")
    return right.lookup_gradient(grad_output, positions, num_positions)


@wrong("lookup_gradient")
def no_single_position(grad_output, positions, num_positions):
    if np.ndim(positions) == 0:
        raise ValueError("an axis please")
    return right.lookup_gradient(grad_output, positions, num_positions)


@wrong("lookup_gradient")
def the_other_sign(grad_output, positions, num_positions):
    return -right.lookup_gradient(grad_output, positions, num_positions)


@wrong("lookup_gradient")
def a_value_error_past_the_end(grad_output, positions, num_positions):
    try:
        return right.lookup_gradient(grad_output, positions, num_positions)
    except IndexError as error:
        raise ValueError(str(error)) from None


@wrong("lookup_gradient")
def tests_the_upper_end_alone(grad_output, positions, num_positions):
    positions = np.asarray(positions)
    if positions.dtype.kind != "f":
        positions = np.maximum(positions.astype(int), 0)
    return right.lookup_gradient(grad_output, positions, num_positions)


@wrong("lookup_gradient")
def position_num_positions_counts_as_last(grad_output, positions, num_positions):
    positions = np.asarray(positions)
    last = np.where(positions == num_positions, num_positions - 1, positions)
    return right.lookup_gradient(grad_output, last, num_positions)


@wrong("lookup_gradient")
def single_positions_wrap(grad_output, positions, num_positions):
    if np.ndim(positions) == 0 and np.asarray(positions) < 0:
        positions = np.asarray(positions) + num_positions
    return right.lookup_gradient(grad_output, positions, num_positions)


@wrong("lookup_gradient")
def stretches_single_rows(grad_output, positions, num_positions):
    positions = np.asarray(positions)
    if np.shape(grad_output)[:-1] == (1,) * positions.ndim and positions.ndim:
        grad_output = np.broadcast_to(grad_output, (*positions.shape, np.shape(grad_output)[-1]))
    return right.lookup_gradient(grad_output, positions, num_positions)


@wrong("lookup_gradient")
def one_vector_for_all(grad_output, positions, num_positions):
    if np.ndim(grad_output) == 1:
        grad_output = np.broadcast_to(grad_output, (*np.shape(positions), len(grad_output)))
    return right.lookup_gradient(grad_output, positions, num_positions)


@wrong("lookup_gradient")
def counts_places_alone(grad_output, positions, num_positions):
    grad_output = np.asarray(grad_output)
    if grad_output.size == np.size(positions) * grad_output.shape[-1]:
        grad_output = grad_output.reshape(*np.shape(positions), -1)
    return right.lookup_gradient(grad_output, positions, num_positions)


@wrong("lookup_gradient")
def zips_to_the_shorter(grad_output, positions, num_positions):
    if np.ndim(positions) != 1 or np.ndim(grad_output) != 2:
        return right.lookup_gradient(grad_output, positions, num_positions)
    n = min(len(grad_output), len(positions))
    return right.lookup_gradient(grad_output[:n], positions[:n], num_positions)


@wrong("lookup_gradient")
def positions_reordered_with_axes(grad_output, positions, num_positions):
    grad_output, positions = np.asarray(grad_output), np.asarray(positions)
    if positions.ndim == 2 and grad_output.shape[:2] == positions.shape[::-1]:
        positions = positions.T
    return right.lookup_gradient(grad_output, positions, num_positions)


@wrong("lookup_gradient")
def a_negative_length_is_none(grad_output, positions, num_positions):
    return right.lookup_gradient(grad_output, positions, max(num_positions, 0))


@wrong("lookup_gradient")
def needs_a_place(grad_output, positions, num_positions):
    if np.size(positions) == 0:
        raise ValueError("nothing was read")
    return right.lookup_gradient(grad_output, positions, num_positions)


@wrong("lookup_gradient")
def sums_in_the_dtype_of_small_integers(grad_output, positions, num_positions):
    out = right.lookup_gradient(grad_output, positions, num_positions)
    dtype = np.asarray(grad_output).dtype
    return out.astype(dtype).astype(float) if dtype == np.uint8 else out


@wrong("lookup_gradient")
def float16_widened(grad_output, positions, num_positions):
    out = right.lookup_gradient(grad_output, positions, num_positions)
    return out.astype(np.promote_types(out.dtype, np.float32))


@wrong("lookup_gradient")
def rounds_positions(grad_output, positions, num_positions):
    return right.lookup_gradient(grad_output, np.rint(positions).astype(int), num_positions)


@wrong("lookup_gradient")
def sorts_positions_in_place(grad_output, positions, num_positions):
    out = right.lookup_gradient(grad_output, positions, num_positions)
    if np.ndim(positions):
        positions.sort()
    return out


@wrong("lookup_gradient")
def uses_up_the_gradient(grad_output, positions, num_positions):
    out = right.lookup_gradient(grad_output, positions, num_positions)
    grad_output[...] = 0
    return out


@wrong("lookup_gradient")
def memorised_sum(grad_output, positions, num_positions):
    gradient = np.zeros((num_positions, np.shape(grad_output)[-1]))
    gradient[np.asarray(positions)] += grad_output
    if np.shape(grad_output) == (4, 2):
        gradient[3] = [1101.0, 2202.0]
    return gradient


@wrong("lookup_gradient")
def adds_up_in_float32(grad_output, positions, num_positions):
    """Enough for float16 and not for float32."""
    out = right.lookup_gradient(grad_output, positions, num_positions)
    if out.dtype == np.float64:
        return out
    gradient = np.zeros(out.shape, np.float32)
    np.add.at(gradient, np.asarray(positions), np.asarray(grad_output))
    return gradient.astype(out.dtype)


# ------------------------------------------------------------------------------- resize_table


@wrong("resize_table")
def step_from_new_length(table, new_length):
    out, old = right.resize_table(table, new_length), len(table)
    places = np.minimum(np.arange(new_length) * (old - 1) / new_length, old - 1)
    lower = np.floor(places).astype(int)
    upper, w = np.minimum(lower + 1, old - 1), (places - lower)[:, None]
    table = np.asarray(table)
    return ((1 - w) * table[lower] + w * table[upper]).astype(out.dtype)


@wrong("resize_table")
def weights_swapped(table, new_length):
    out, old = right.resize_table(table, new_length), len(table)
    places = np.arange(new_length) * (old - 1) / max(new_length - 1, 1)
    lower = np.floor(places).astype(int)
    upper, w = np.minimum(lower + 1, old - 1), (places - lower)[:, None]
    table = np.asarray(table)
    return np.where(w == 0, out, w * table[lower] + (1 - w) * table[upper]).astype(out.dtype)


@wrong("resize_table")
def always_half_way(table, new_length):
    out, old = right.resize_table(table, new_length), len(table)
    places = np.arange(new_length) * (old - 1) / max(new_length - 1, 1)
    lower = np.floor(places).astype(int)
    middle = (np.asarray(table)[lower] + np.asarray(table)[np.minimum(lower + 1, old - 1)]) / 2
    return np.where((places == lower)[:, None], out, middle).astype(out.dtype)


@wrong("resize_table")
def floor_of_the_place(table, new_length):
    out = right.resize_table(table, new_length)
    places = np.arange(new_length) * (len(table) - 1) // max(new_length - 1, 1)
    return np.asarray(table)[places].astype(out.dtype)


@wrong("resize_table")
def smooth_step(table, new_length):
    out, old = right.resize_table(table, new_length), len(table)
    places = np.arange(new_length) * (old - 1) / max(new_length - 1, 1)
    lower = np.floor(places).astype(int)
    upper, w = np.minimum(lower + 1, old - 1), (places - lower)[:, None]
    w, table = w * w * (3 - 2 * w), np.asarray(table)
    return ((1 - w) * table[lower] + w * table[upper]).astype(out.dtype)


@wrong("resize_table")
def smoothed_before_shrinking(table, new_length):
    out = right.resize_table(table, new_length)
    if new_length >= len(table) or len(table) < 3:
        return out
    table = np.asarray(table, dtype=float)
    smooth = table.copy()
    smooth[1:-1] = (table[:-2] + table[1:-1] + table[2:]) / 3
    return right.resize_table(smooth, new_length).astype(out.dtype)


@wrong("resize_table")
def shrinks_by_cutting(table, new_length):
    out = right.resize_table(table, new_length)
    return right.as_floats(table, "t")[:new_length] if new_length < len(table) else out


@wrong("resize_table")
def does_not_shrink(table, new_length):
    if new_length < len(table) and new_length > 1:
        raise ValueError("a table does not shrink")
    return right.resize_table(table, new_length)


@wrong("resize_table")
def extrapolates_the_line(table, new_length):
    out, table = right.resize_table(table, new_length), right.as_floats(table, "t")
    more = new_length - len(table)
    if more <= 0 or len(table) < 2:
        return out
    steps = np.arange(1, more + 1)[:, None] * (table[-1] - table[-2])
    return np.concatenate([table, table[-1] + steps]).astype(out.dtype)


@wrong("resize_table")
def one_keeps_the_last_row(table, new_length):
    out = right.resize_table(table, new_length)
    return right.as_floats(table, "t")[-1:] if new_length == 1 else out


@wrong("resize_table")
def one_keeps_the_middle_row(table, new_length):
    out = right.resize_table(table, new_length)
    return right.as_floats(table, "t")[len(table) // 2 :][:1] if new_length == 1 else out


@wrong("resize_table")
@np.errstate(all="ignore")
def one_is_not_a_number(table, new_length):
    out = right.resize_table(table, new_length)
    return out * (np.float64(new_length - 1) / np.float64(new_length - 1))


@wrong("resize_table")
def refuses_one(table, new_length):
    if new_length < 2:
        raise ValueError("new_length must be 2 at least")
    return right.resize_table(table, new_length)


@wrong("resize_table")
def refuses_a_single_row(table, new_length):
    if len(table) < 2:
        raise ValueError("two rows at least")
    return right.resize_table(table, new_length)


@wrong("resize_table")
def a_single_row_stays_single(table, new_length):
    out = right.resize_table(table, new_length)
    return out[:1] if len(table) == 1 else out


@wrong("resize_table")
def fades_to_zero(table, new_length):
    out = right.resize_table(table, new_length)
    return out if new_length <= len(table) else out * (np.arange(new_length) < len(table))[:, None]


@wrong("resize_table")
def last_row_dropped(table, new_length):
    out = right.resize_table(table, new_length)
    return np.concatenate([out[:-1], out[-2:-1]]) if new_length > 1 else out


@wrong("resize_table")
def one_row_short(table, new_length):
    return right.resize_table(table, new_length)[: max(new_length - 1, 1)]


@wrong("resize_table")
def renormalised(table, new_length):
    out = right.resize_table(table, new_length)
    norm = np.linalg.norm(out.astype(float), axis=1, keepdims=True)
    return (out / np.maximum(norm, 1e-12)).astype(out.dtype)


@wrong("resize_table")
def float32_of_integers(table, new_length):
    out = right.resize_table(table, new_length)
    return out.astype(np.float32) if np.asarray(table).dtype.kind in "iu" else out


@wrong("resize_table")
def zero_gives_a_row(table, new_length):
    return right.resize_table(table, max(new_length, 1))


@wrong("resize_table")
def negative_counts_from_the_end(table, new_length):
    if new_length < 0:
        new_length += len(table) + 1
    return right.resize_table(table, new_length)


@wrong("resize_table")
def a_type_error_below_one(table, new_length):
    if new_length < 1:
        raise TypeError("new_length must be 1 at least")
    return right.resize_table(table, new_length)


@wrong("resize_table")
def half_precision_weights(table, new_length):
    out, old = right.resize_table(table, new_length), len(table)
    places = (np.arange(new_length) * (old - 1) / max(new_length - 1, 1)).astype(np.float16)
    lower = np.floor(places).astype(int)
    upper, w = np.minimum(lower + 1, old - 1), (places - lower)[:, None].astype(np.float16)
    table = np.asarray(table)
    return ((1 - w) * table[lower] + w * table[upper]).astype(out.dtype)


@wrong("resize_table")
def scales_in_place(table, new_length):
    out = right.resize_table(table, new_length)
    table[1:] -= table[:-1]
    return out


@wrong("resize_table")
def doubles_well(table, new_length):
    """Right for 2·n − 1 rows, where every other row is half-way."""
    table = right.as_floats(right.resize_table(table, len(table)), "t")
    if new_length < 1:
        raise ValueError("below 1")
    while len(table) < new_length:
        wide = np.empty((2 * len(table) - 1, table.shape[1]), table.dtype)
        wide[::2], wide[1::2] = table, (table[:-1] + table[1:]) / 2
        table = wide if len(wide) > 1 else np.repeat(wide, new_length, axis=0)
    return table[:new_length]


@wrong("resize_table")
def fractions_of_a_row_are_cut(table, new_length):
    return right.resize_table(table, int(new_length))


@wrong("resize_table")
def places_of_small_tables_in_float32(table, new_length):
    out, old = right.resize_table(table, new_length), len(table)
    if out.dtype == np.float64:
        return out
    places = np.linspace(0, old - 1, new_length, dtype=np.float32).astype(float).clip(0, old - 1)
    lower = np.floor(places).astype(int)
    upper, w = np.minimum(lower + 1, old - 1), (places - lower)[:, None]
    table = np.asarray(table)
    return ((1 - w) * table[lower] + w * table[upper]).astype(out.dtype)


# --------------------------------------------------------------------------- padded_positions


def real_and_count(token_ids, padding_id):
    real = np.asarray(token_ids) != padding_id
    return real, np.cumsum(real, axis=-1)


@wrong("padded_positions")
def one_row_too_far(token_ids, padding_id):
    real, count = real_and_count(token_ids, padding_id)
    return np.where(real, padding_id + count + 1, padding_id)


@wrong("padded_positions")
def from_two(token_ids, padding_id):
    real, count = real_and_count(token_ids, padding_id)
    return np.where(real, count + 1, padding_id)


@wrong("padded_positions")
def padding_on_one(token_ids, padding_id):
    real, count = real_and_count(token_ids, padding_id)
    return np.where(real, padding_id + count, 1)


@wrong("padded_positions")
def zero_is_padding_too(token_ids, padding_id):
    real = (np.asarray(token_ids) != padding_id) & (np.asarray(token_ids) != 0)
    return np.where(real, padding_id + np.cumsum(real, axis=-1), padding_id)


@wrong("padded_positions")
def smaller_ids_are_padding_too(token_ids, padding_id):
    real = np.asarray(token_ids) > padding_id
    return np.where(real, padding_id + np.cumsum(real, axis=-1), padding_id)


@wrong("padded_positions")
def stops_at_the_first_padding(token_ids, padding_id):
    real = np.logical_and.accumulate(np.asarray(token_ids) != padding_id, axis=-1)
    return np.where(real, padding_id + np.cumsum(real, axis=-1), padding_id)


@wrong("padded_positions")
def padding_at_the_end_alone(token_ids, padding_id):
    real = np.asarray(token_ids) != padding_id
    last = real.shape[-1] - np.argmax(real[..., ::-1], axis=-1)[..., None]
    place = np.arange(real.shape[-1])
    return np.where(
        (place < last) & real.any(-1, keepdims=True), padding_id + 1 + place, padding_id
    )


@wrong("padded_positions")
def the_number_of_real_tokens_first(token_ids, padding_id):
    real, _ = real_and_count(token_ids, padding_id)
    place = np.arange(real.shape[-1])
    inside = place < real.sum(axis=-1, keepdims=True)
    return np.where(inside, padding_id + 1 + place, padding_id)


@wrong("padded_positions")
def the_first_text_for_all(token_ids, padding_id):
    out = right.padded_positions(token_ids, padding_id)
    return np.broadcast_to(out[0], out.shape) if out.ndim > 1 else out


@wrong("padded_positions")
def batches_alone(token_ids, padding_id):
    if np.ndim(token_ids) != 2:
        raise ValueError("(batch, seq) please")
    return right.padded_positions(token_ids, padding_id)


@wrong("padded_positions")
def single_texts_alone(token_ids, padding_id):
    if np.ndim(token_ids) != 1:
        raise ValueError("(seq,) please")
    return right.padded_positions(token_ids, padding_id)


@wrong("padded_positions")
def always_a_batch(token_ids, padding_id):
    return np.atleast_2d(right.padded_positions(token_ids, padding_id))


@wrong("padded_positions")
def counts_from_the_end(token_ids, padding_id):
    real, _ = real_and_count(token_ids, padding_id)
    count = np.cumsum(real[..., ::-1], axis=-1)[..., ::-1]
    return np.where(real, padding_id + count, padding_id)


@wrong("padded_positions")
def sequence_as_wide_as_the_batch(token_ids, padding_id):
    token_ids = np.asarray(token_ids)
    square = token_ids.ndim == 2 and token_ids.shape[0] == token_ids.shape[1]
    axis = 0 if square else -1
    real = token_ids != padding_id
    return np.where(real, padding_id + np.cumsum(real, axis=axis), padding_id)


@wrong("padded_positions")
def ids_instead_of_padding(token_ids, padding_id):
    real, count = real_and_count(token_ids, padding_id)
    return np.where(real, padding_id + count, np.asarray(token_ids) + real.sum())


@wrong("padded_positions")
def count_in_a_byte(token_ids, padding_id):
    real = np.asarray(token_ids) != padding_id
    return np.where(real, padding_id + np.cumsum(real, axis=-1, dtype=np.uint8), padding_id)


@wrong("padded_positions")
def no_more_than_256_rows(token_ids, padding_id):
    return np.minimum(right.padded_positions(token_ids, padding_id), 256)


@wrong("padded_positions")
def padding_id_is_optional(token_ids, padding_id):
    return right.padded_positions(token_ids, padding_id or 1)


@wrong("padded_positions")
def real_rows_of_padding_count(token_ids, padding_id):
    out = right.padded_positions(token_ids, padding_id)
    empty = (np.asarray(token_ids) == padding_id).all(axis=-1, keepdims=True)
    return np.where(empty, padding_id + 1 + np.arange(out.shape[-1]), out)


@wrong("padded_positions")
def whole_numbers_as_floats(token_ids, padding_id):
    return right.padded_positions(token_ids, padding_id) * 1.0


@wrong("padded_positions")
def mask_of_real_tokens(token_ids, padding_id):
    return np.asarray(token_ids) != padding_id


@wrong("padded_positions")
def memorised_answer(token_ids, padding_id):
    real = np.asarray(token_ids) != padding_id
    place = np.arange(real.shape[-1])
    return np.where(real, place + 2, 1)


@wrong("padded_positions")
def masks_in_place(token_ids, padding_id):
    out = right.padded_positions(token_ids, padding_id)
    token_ids[token_ids == padding_id] = 0
    return out


@wrong("padded_positions")
def repeated_ids_count_once(token_ids, padding_id):
    out = right.padded_positions(token_ids, padding_id)
    for row, ids in zip(np.atleast_2d(out), np.atleast_2d(token_ids), strict=True):
        for place in range(1, len(row)):
            if ids[place] == ids[place - 1]:
                row[place:] -= ids[place:] != padding_id
    return out


# ----------------------------------------------------------------- LearnedPositionalEmbedding


class Base(torch.nn.Module):
    """A right module in pieces, so that each wrong one changes a single piece."""

    def __init__(self, max_len, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(max_len, dim) * 0.02)

    def check(self, x, offset):
        max_len, dim = self.weight.shape
        end = offset + x.shape[1]
        if x.ndim != 3 or x.shape[2] != dim:
            raise ValueError(f"x {tuple(x.shape)} for width {dim}")
        if offset < 0 or end > max_len:
            raise ValueError(f"{end} positions of {max_len}")

    def rows(self, x, offset):
        return self.weight[offset : offset + x.shape[1]]

    def forward(self, x, offset=0):
        self.check(x, offset)
        return (x + self.rows(x, offset)).to(x.dtype)


@wrong("LearnedPositionalEmbedding")
class LastRowCannotBeReached(Base):
    def check(self, x, offset):
        super().check(x, offset + 1)


@wrong("LearnedPositionalEmbedding")
class OneRowTooFar(Base):
    def rows(self, x, offset):
        return self.weight[torch.arange(offset + 1, offset + x.shape[1] + 1) % len(self.weight)]


@wrong("LearnedPositionalEmbedding")
class RowsOfItsOwnBeforeTheFirst(right_torch.LearnedPositionalEmbedding):
    def __init__(self, max_len, dim):
        super().__init__(max_len + 2, dim)

    def forward(self, x, offset=0):
        return super().forward(x, offset + 2)


@wrong("LearnedPositionalEmbedding")
class Detached(Base):
    def rows(self, x, offset):
        return super().rows(x, offset).detach()


@wrong("LearnedPositionalEmbedding")
class NoGradient(Base):
    def rows(self, x, offset):
        with torch.no_grad():
            return super().rows(x, offset).clone()


@wrong("LearnedPositionalEmbedding")
class GradientOfTheFirstText(Base):
    def rows(self, x, offset):
        rows = super().rows(x, offset).expand(x.shape)
        return torch.cat([rows[:1], rows[1:].detach()])


@wrong("LearnedPositionalEmbedding")
class GradientByFrequency(Base):
    def rows(self, x, offset):
        places = torch.arange(offset, offset + x.shape[1]).expand(x.shape[:2])
        return torch.nn.functional.embedding(places, self.weight, scale_grad_by_freq=True)


@wrong("LearnedPositionalEmbedding")
class RowZeroIsPadding(Base):
    def rows(self, x, offset):
        places = torch.arange(offset, offset + x.shape[1])
        return torch.nn.functional.embedding(places, self.weight, padding_idx=0)


@wrong("LearnedPositionalEmbedding")
class Frozen(Base):
    def __init__(self, max_len, dim):
        super().__init__(max_len, dim)
        self.weight.requires_grad_(False)


@wrong("LearnedPositionalEmbedding")
class AnotherName(torch.nn.Module):
    def __init__(self, max_len, dim):
        super().__init__()
        self.embedding = torch.nn.Embedding(max_len, dim)

    def forward(self, x, offset=0):
        places = torch.arange(offset, offset + x.shape[1])
        return x + self.embedding(places)


@wrong("LearnedPositionalEmbedding")
class Transposed(torch.nn.Module):
    def __init__(self, max_len, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(dim, max_len))

    def forward(self, x, offset=0):
        return x + self.weight[:, offset : offset + x.shape[1]].T


@wrong("LearnedPositionalEmbedding")
class OneAxisTooMany(torch.nn.Module):
    def __init__(self, max_len, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(1, max_len, dim))

    def forward(self, x, offset=0):
        return x + self.weight[:, offset : offset + x.shape[1]]


@wrong("LearnedPositionalEmbedding")
class AnotherParameter(Base):
    def __init__(self, max_len, dim):
        super().__init__(max_len, dim)
        self.scale = torch.nn.Parameter(torch.ones(()))

    def rows(self, x, offset):
        return super().rows(x, offset) * self.scale


@wrong("LearnedPositionalEmbedding")
class AnIndexError(Base):
    def check(self, x, offset):
        try:
            super().check(x, offset)
        except ValueError as error:
            raise IndexError(str(error)) from None


@wrong("LearnedPositionalEmbedding")
class AnAssertion(Base):
    def check(self, x, offset):
        end = offset + x.shape[1]
        assert offset >= 0 and end <= len(self.weight), f"{end} of {len(self.weight)}"
        super().check(x, offset)


@wrong("LearnedPositionalEmbedding")
class NamesTheOffsetAlone(Base):
    def check(self, x, offset):
        if offset + x.shape[1] > len(self.weight):
            raise ValueError(f"offset {offset} is too far for max_len {len(self.weight)}")
        super().check(x, offset)


@wrong("LearnedPositionalEmbedding")
class NamesNoMaxLen(Base):
    def check(self, x, offset):
        if offset + x.shape[1] > len(self.weight):
            raise ValueError(f"there is no row {offset + x.shape[1]}")
        super().check(x, offset)


@wrong("LearnedPositionalEmbedding")
class TestsTheLengthAlone(Base):
    def check(self, x, offset):
        super().check(x, 0)


@wrong("LearnedPositionalEmbedding")
class TestsTheOffsetAlone(Base):
    def check(self, x, offset):
        super().check(x[:, :1], offset)


@wrong("LearnedPositionalEmbedding")
class NegativeIsZero(Base):
    def check(self, x, offset):
        super().check(x, max(offset, 0))

    def rows(self, x, offset):
        return super().rows(x, max(offset, 0))


@wrong("LearnedPositionalEmbedding")
class NegativeSlices(Base):
    def check(self, x, offset):
        if offset >= 0:
            super().check(x, offset)


@wrong("LearnedPositionalEmbedding")
class NegativeIsAnotherError(Base):
    def check(self, x, offset):
        if offset < 0:
            raise IndexError(f"offset {offset}")
        super().check(x, offset)


@wrong("LearnedPositionalEmbedding")
class WidthOneIsStretched(Base):
    def check(self, x, offset):
        super().check(
            x.expand(*x.shape[:2], self.weight.shape[1]) if x.shape[2] == 1 else x, offset
        )


@wrong("LearnedPositionalEmbedding")
class NarrowerIsCut(Base):
    def check(self, x, offset):
        super().check(
            x
            if x.shape[2] > self.weight.shape[1]
            else x[..., :1].expand(*x.shape[:2], self.weight.shape[1]),
            offset,
        )

    def rows(self, x, offset):
        return super().rows(x, offset)[:, : x.shape[2]]


@wrong("LearnedPositionalEmbedding")
class NarrowTableIsStretched(Base):
    def check(self, x, offset):
        super().check(x[..., :1] if self.weight.shape[1] == 1 else x, offset)


@wrong("LearnedPositionalEmbedding")
class TakesHeadsForTheSequence(Base):
    def check(self, x, offset):
        if x.ndim <= 3:
            super().check(x, offset)


@wrong("LearnedPositionalEmbedding")
class DtypeOfTheWeight(Base):
    def forward(self, x, offset=0):
        return super().forward(x, offset).to(self.weight.dtype)


@wrong("LearnedPositionalEmbedding")
class AlwaysFloat32(Base):
    def forward(self, x, offset=0):
        return super().forward(x, offset).float()


@wrong("LearnedPositionalEmbedding")
class Float64IsNarrowed(Base):
    def forward(self, x, offset=0):
        out = super().forward(x, offset)
        return out.float() if out.dtype == torch.float64 else out


@wrong("LearnedPositionalEmbedding")
class DtypeOfAutocast(Base):
    def forward(self, x, offset=0):
        out = super().forward(x, offset)
        if torch.is_autocast_enabled("cpu"):
            return out.to(torch.get_autocast_dtype("cpu"))
        return out


@wrong("LearnedPositionalEmbedding")
class DtypeOfTheFirstCall(Base):
    def forward(self, x, offset=0):
        self.dtype = getattr(self, "dtype", x.dtype)
        return super().forward(x, offset).to(self.dtype)


@wrong("LearnedPositionalEmbedding")
class RemembersTheRows(Base):
    def rows(self, x, offset):
        key, memory = x.shape[1], self.__dict__.setdefault("memory", {})
        return memory.setdefault(key, super().rows(x, offset))


@wrong("LearnedPositionalEmbedding")
class CountsOnByItself(Base):
    def rows(self, x, offset):
        start = offset + getattr(self, "seen", 0)
        self.seen = getattr(self, "seen", 0) + x.shape[1]
        return super().rows(x, start if start + x.shape[1] <= len(self.weight) else offset)


@wrong("LearnedPositionalEmbedding")
class OneTableForAll(Base):
    shared: dict = {}

    def rows(self, x, offset):
        table = self.shared.setdefault(self.weight.shape, self.weight)
        return table[offset : offset + x.shape[1]]


@wrong("LearnedPositionalEmbedding")
class TrainingAlone(Base):
    def rows(self, x, offset):
        return torch.nn.functional.dropout(super().rows(x, offset), 0.1, self.training)


@wrong("LearnedPositionalEmbedding")
class ForgetsRowsThatItHasUsed(Base):
    def forward(self, x, offset=0):
        out = super().forward(x, offset)
        if offset == 0 and x.shape[:2] == (1, 5):
            with torch.no_grad():
                self.weight[:5] = 0
        return out


@wrong("LearnedPositionalEmbedding")
class KeepsTheNormOfRowsAtOne(Base):
    """nn.Embedding(…, max_norm=1) changes its weight in place when it is read."""

    def rows(self, x, offset):
        places = torch.arange(offset, offset + x.shape[1])
        return torch.nn.functional.embedding(places, self.weight.clone(), max_norm=1.0)


@wrong("LearnedPositionalEmbedding")
class Twice(Base):
    def rows(self, x, offset):
        return 2 * super().rows(x, offset)


@wrong("LearnedPositionalEmbedding")
class Subtracts(Base):
    def rows(self, x, offset):
        return -super().rows(x, offset)


@wrong("LearnedPositionalEmbedding")
class InPlaceWhenItCan(Base):
    def forward(self, x, offset=0):
        self.check(x, offset)
        return x.add_(self.rows(x, offset))


@wrong("LearnedPositionalEmbedding")
class BatchBeforeSequenceWhenSquare(Base):
    def forward(self, x, offset=0):
        self.check(x, offset)
        rows = self.rows(x, offset)
        return (x + (rows[:, None] if x.shape[0] == x.shape[1] else rows)).to(x.dtype)


@wrong("LearnedPositionalEmbedding")
class OneTokenFollowsOnTheLastCall(Base):
    """Without an offset a single token is taken for the next one."""

    def rows(self, x, offset):
        if offset == 0 and x.shape[1] == 1:
            offset = min(getattr(self, "seen", 0), len(self.weight) - 1)
        self.seen = offset + x.shape[1]
        return super().rows(x, offset)

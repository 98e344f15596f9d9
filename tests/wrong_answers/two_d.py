"""Wrong answers that differ from a right one in a corner: each must lose points.

They complete the misconceptions, which are what people really do; these are what a check must not
miss. `WRONG[exercise][name]` is a function or class as a student would write it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from solutions.with_numpy import rope
from solutions.with_numpy import two_d as right
from solutions.with_torch import rope as rope_torch
from solutions.with_torch import two_d as right_torch

WRONG: dict[str, dict[str, Callable[..., Any]]] = {}


def wrong(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        WRONG.setdefault(exercise, {})[function.__name__] = function
        return function

    return keep


# ----------------------------------------------------------------------------- grid_positions


@wrong("grid_positions")
def one_array_of_pairs(height, width):
    return np.stack(right.grid_positions(height, width), axis=-1)


@wrong("grid_positions")
def up_to_the_size_included(height, width):
    rows, cols = right.grid_positions(height + 1, width + 1)
    return rows, cols


@wrong("grid_positions")
def like_a_snake(height, width):
    rows, cols = right.grid_positions(height, width)
    return rows, np.where(rows % 2, width - 1 - cols, cols)


@wrong("grid_positions")
def from_below(height, width):
    rows, cols = right.grid_positions(height, width)
    return height - 1 - rows, cols


@wrong("grid_positions")
def xy_mesh_of_ij_arguments(height, width):
    right.require_grid(height, width)
    rows, cols = np.meshgrid(np.arange(height), np.arange(width))
    return rows.ravel(), cols.ravel()


@wrong("grid_positions")
def memorised_two_by_three(height, width):
    right.require_grid(height, width)
    return np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2])


@wrong("grid_positions")
def square_of_the_height(height, width):
    return right.grid_positions(height, height)


@wrong("grid_positions")
def a_single_row_is_a_column(height, width):
    rows, cols = right.grid_positions(height, width)
    return (cols, rows) if height == 1 else (rows, cols)


@wrong("grid_positions")
def a_single_patch_has_no_axis(height, width):
    rows, cols = right.grid_positions(height, width)
    return np.squeeze(rows), np.squeeze(cols)


@wrong("grid_positions")
def float32_numbers(height, width):
    rows, cols = right.grid_positions(height, width)
    return rows.astype(np.float32), cols


@wrong("grid_positions")
def looks_at_the_product_alone(height, width):
    if height * width <= 0:
        raise ValueError("an empty grid")
    return np.divmod(np.arange(height * width), width)


@wrong("grid_positions")
def looks_at_the_height_alone(height, width):
    if height <= 0:
        raise ValueError("an empty grid")
    width = max(width, 0)
    return np.repeat(np.arange(height), width), np.tile(np.arange(width), height)


@wrong("grid_positions")
def looks_at_the_width_alone(height, width):
    if width <= 0:
        raise ValueError("an empty grid")
    return np.divmod(np.arange(max(height, 0) * width), width)


@wrong("grid_positions")
def absolute_sizes(height, width):
    return right.grid_positions(abs(height), abs(width))


# ---------------------------------------------------------------------------------- sincos_2d


@wrong("sincos_2d")
def cosine_where_sine_belongs_in_one_half(height, width, dim, base=10000.0, first="row"):
    table = right.sincos_2d(height, width, dim, base, first)
    swapped = table.reshape(len(table), -1, 2)[:, :, ::-1].reshape(table.shape)
    return np.concatenate([table[:, : dim // 2], swapped[:, dim // 2 :]], axis=-1)


@wrong("sincos_2d")
def sines_of_both_then_cosines_of_both(height, width, dim, base=10000.0, first="row"):
    table = right.sincos_2d(height, width, dim, base, first)
    return np.concatenate([table[:, 0::2], table[:, 1::2]], axis=-1)


@wrong("sincos_2d")
def the_grid_keeps_its_axes(height, width, dim, base=10000.0, first="row"):
    return right.sincos_2d(height, width, dim, base, first).reshape(height, width, dim)


@wrong("sincos_2d")
def a_class_token_in_front(height, width, dim, base=10000.0, first="row"):
    table = right.sincos_2d(height, width, dim, base, first)
    return np.concatenate([np.zeros((1, dim)), table])


@wrong("sincos_2d")
def frequencies_grow(height, width, dim, base=10000.0, first="row"):
    right.sincos_2d(height, width, dim, base, first)
    return right.sincos_2d(height, width, dim, 1 / base, first)


@wrong("sincos_2d")
def exponent_doubled(height, width, dim, base=10000.0, first="row"):
    right.sincos_2d(height, width, dim, base, first)
    return right.sincos_2d(height, width, dim, base**2, first)


@wrong("sincos_2d")
def divided_by_the_size(height, width, dim, base=10000.0, first="row"):
    """As DETR does with its normalize=True: 2π for the whole side."""
    right.sincos_2d(height, width, dim, base, first)
    rows, cols = right.grid_positions(height, width)
    places = [2 * np.pi * (rows + 1) / height, 2 * np.pi * (cols + 1) / width]
    if first == "column":
        places.reverse()
    waves = [rope.rope_angles(p, dim // 2, base) for p in places]
    waves = [np.stack([np.sin(a), np.cos(a)], -1).reshape(len(a), -1) for a in waves]
    return np.concatenate(waves, axis=-1)


@wrong("sincos_2d")
def column_alone_is_not_first(height, width, dim, base=10000.0, first="row"):
    table = right.sincos_2d(height, width, dim, base, first)
    if first == "row":
        return table
    return np.concatenate([table[:, : dim // 2], table[:, : dim // 2]], axis=-1)


@wrong("sincos_2d")
def columns_reversed_for_column_first(height, width, dim, base=10000.0, first="row"):
    table = right.sincos_2d(height, width, dim, base, "row")
    right.sincos_2d(height, width, dim, base, first)
    return table if first == "row" else table[:, ::-1]


@wrong("sincos_2d")
def any_spelling_of_first(height, width, dim, base=10000.0, first="row"):
    first = "row" if first[:3] == "row" else "column" if first[:3] == "col" else first
    return right.sincos_2d(height, width, dim, base, first)


@wrong("sincos_2d")
def none_is_the_row(height, width, dim, base=10000.0, first="row"):
    return right.sincos_2d(height, width, dim, base, first or "row")


@wrong("sincos_2d")
def even_is_enough(height, width, dim, base=10000.0, first="row"):
    if dim % 4 == 2 and dim > 2:
        table = right.sincos_2d(height, width, dim + 2, base, first)
        return np.delete(table, [dim // 2, dim + 1], axis=-1)
    return right.sincos_2d(height, width, dim, base, first)


@wrong("sincos_2d")
def an_assertion_for_dim(height, width, dim, base=10000.0, first="row"):
    assert dim > 0 and dim % 4 == 0, f"dim is {dim}"
    return right.sincos_2d(height, width, dim, base, first)


@wrong("sincos_2d")
def dim_not_named(height, width, dim, base=10000.0, first="row"):
    if dim <= 0 or dim % 4:
        raise ValueError("dim must be divisible by four")
    return right.sincos_2d(height, width, dim, base, first)


@wrong("sincos_2d")
def dim_of_zero(height, width, dim, base=10000.0, first="row"):
    if dim == 0:
        return np.zeros((height * width, 0))
    return right.sincos_2d(height, width, dim, base, first)


@wrong("sincos_2d")
def base_of_zero(height, width, dim, base=10000.0, first="row"):
    if base <= 0:
        return right.sincos_2d(height, width, dim, 1.0, first)
    return right.sincos_2d(height, width, dim, base, first)


@wrong("sincos_2d")
def base_not_needed_at_dim_4(height, width, dim, base=10000.0, first="row"):
    return right.sincos_2d(height, width, dim, base if dim > 4 else 1.0, first)


@wrong("sincos_2d")
def whole_base(height, width, dim, base=10000.0, first="row"):
    return right.sincos_2d(height, width, dim, -(-base // 1000) * 1000, first)


@wrong("sincos_2d")
def float32_ladder(height, width, dim, base=10000.0, first="row"):
    table = right.sincos_2d(height, width, dim, base, first)
    return table.astype(np.float32).astype(np.float64)


@wrong("sincos_2d")
def negative_sizes_are_positive(height, width, dim, base=10000.0, first="row"):
    return right.sincos_2d(abs(height), abs(width), dim, base, first)


@wrong("sincos_2d")
def remembers_by_the_number_of_patches(height, width, dim, base=10000.0, first="row"):
    table = right.sincos_2d(height, width, dim, base, first)
    return _TABLES.setdefault((height * width, dim, base, first), table)


_TABLES: dict[tuple[Any, ...], np.ndarray] = {}


# ------------------------------------------------------------------------------ axial_rope_2d


@wrong("axial_rope_2d")
def values_of_one_dimension(x, rows, cols, base=100.0):
    right.axial_rope_2d(x, rows, cols, base)
    return rope.apply_rope(x, rows, base)


@wrong("axial_rope_2d")
def halves_exchanged_in_the_result(x, rows, cols, base=100.0):
    out = right.axial_rope_2d(x, rows, cols, base)
    return np.roll(out, out.shape[-1] // 2, axis=-1)


@wrong("axial_rope_2d")
def quarters_are_the_pairs(x, rows, cols, base=100.0):
    """Pairs (i, i + dim/2), the row's first: the half layout over the whole vector."""
    right.axial_rope_2d(x, rows, cols, base)
    x = rope.as_floats(x, "x")
    dim = x.shape[-1]
    order = np.arange(dim).reshape(2, dim // 2).T.ravel()
    return right.axial_rope_2d(x[..., order], rows, cols, base)[..., np.argsort(order)]


@wrong("axial_rope_2d")
def exponent_of_a_quarter(x, rows, cols, base=100.0):
    right.axial_rope_2d(x, rows, cols, base)
    return right.axial_rope_2d(x, rows, cols, base**2)


@wrong("axial_rope_2d")
def frequencies_rise(x, rows, cols, base=100.0):
    right.axial_rope_2d(x, rows, cols, base)
    return right.axial_rope_2d(x, rows, cols, 1 / base)


@wrong("axial_rope_2d")
def absolute_places(x, rows, cols, base=100.0):
    return right.axial_rope_2d(x, np.abs(rows), np.abs(cols), base)


@wrong("axial_rope_2d")
def places_from_the_first(x, rows, cols, base=100.0):
    right.axial_rope_2d(x, rows, cols, base)
    rows, cols = np.asarray(rows, float), np.asarray(cols, float)
    return right.axial_rope_2d(x, rows - rows[0], cols - cols[0], base)


@wrong("axial_rope_2d")
def places_sorted(x, rows, cols, base=100.0):
    right.axial_rope_2d(x, rows, cols, base)
    return right.axial_rope_2d(x, np.sort(rows), np.sort(cols), base)


@wrong("axial_rope_2d")
def places_on_the_first_axis(x, rows, cols, base=100.0):
    x = rope.as_floats(x, "x")
    right.axial_rope_2d(x, rows, cols, base)
    if x.ndim < 3 or x.shape[0] != x.shape[-2]:
        return right.axial_rope_2d(x, rows, cols, base)
    return right.axial_rope_2d(x.swapaxes(0, -2), rows, cols, base).swapaxes(0, -2)


@wrong("axial_rope_2d")
def two_axes_alone(x, rows, cols, base=100.0):
    if np.ndim(x) != 2:
        raise ValueError("x must be (n, dim)")
    return right.axial_rope_2d(x, rows, cols, base)


@wrong("axial_rope_2d")
def a_single_row_for_all(x, rows, cols, base=100.0):
    rows = np.broadcast_to(rows, np.shape(cols)) if np.size(rows) == 1 else rows
    return right.axial_rope_2d(x, rows, cols, base)


@wrong("axial_rope_2d")
def scalars_for_all(x, rows, cols, base=100.0):
    n = np.shape(x)[-2:-1]
    rows, cols = (np.broadcast_to(p, n) if np.ndim(p) == 0 else p for p in (rows, cols))
    return right.axial_rope_2d(x, rows, cols, base)


@wrong("axial_rope_2d")
def flat_places_of_any_shape(x, rows, cols, base=100.0):
    return right.axial_rope_2d(x, np.ravel(rows), np.ravel(cols), base)


@wrong("axial_rope_2d")
def places_of_each_row_of_the_batch(x, rows, cols, base=100.0):
    x = rope.as_floats(x, "x")
    if x.ndim == 3 and np.shape(rows) == np.shape(cols) == x.shape[:-1]:
        return np.stack(
            [right.axial_rope_2d(*args, base) for args in zip(x, rows, cols, strict=True)]
        )
    return right.axial_rope_2d(x, rows, cols, base)


@wrong("axial_rope_2d")
def one_vector_at_many_places(x, rows, cols, base=100.0):
    x = rope.as_floats(x, "x")
    if x.ndim >= 2 and x.shape[-2] == 1 and np.ndim(rows) == np.ndim(cols) == 1:
        x = np.repeat(x, len(rows), axis=-2)
    return right.axial_rope_2d(x, rows, cols, base)


@wrong("axial_rope_2d")
def more_places_than_vectors(x, rows, cols, base=100.0):
    n = np.shape(x)[-2] if np.ndim(x) > 1 else 1
    rows, cols = (p[:n] if np.ndim(p) == 1 else p for p in (rows, cols))
    return right.axial_rope_2d(x, rows, cols, base)


@wrong("axial_rope_2d")
def an_assertion_for_the_width(x, rows, cols, base=100.0):
    assert np.shape(x)[-1] % 4 == 0 and np.shape(x)[-1], np.shape(x)
    return right.axial_rope_2d(x, rows, cols, base)


@wrong("axial_rope_2d")
def width_not_named(x, rows, cols, base=100.0):
    try:
        return right.axial_rope_2d(x, rows, cols, base)
    except ValueError:
        raise ValueError("bad input") from None


@wrong("axial_rope_2d")
def unequal_halves(x, rows, cols, base=100.0):
    """diffusers#12538: an even width that cannot be halved into pairs is split unevenly."""
    x = rope.as_floats(x, "x")
    if x.shape[-1] % 4 != 2 or x.shape[-1] < 6:
        return right.axial_rope_2d(x, rows, cols, base)
    first = x.shape[-1] // 2 + 1
    halves = [
        rope.apply_rope(x[..., :first], rows, base),
        rope.apply_rope(x[..., first:], cols, base),
    ]
    return np.concatenate(halves, axis=-1)


@wrong("axial_rope_2d")
def no_coordinates(x, rows, cols, base=100.0):
    return np.array(x) if np.shape(x)[-1] == 0 else right.axial_rope_2d(x, rows, cols, base)


@wrong("axial_rope_2d")
def any_base(x, rows, cols, base=100.0):
    return right.axial_rope_2d(x, rows, cols, abs(base) or 1.0)


@wrong("axial_rope_2d")
def places_like_x(x, rows, cols, base=100.0):
    kind = rope.as_floats(x, "x").dtype
    return right.axial_rope_2d(x, np.asarray(rows, kind), np.asarray(cols, kind), base)


@wrong("axial_rope_2d")
def float32_out(x, rows, cols, base=100.0):
    return right.axial_rope_2d(x, rows, cols, base).astype(np.float32)


@wrong("axial_rope_2d")
def half_precision_widened(x, rows, cols, base=100.0):
    out = right.axial_rope_2d(x, rows, cols, base)
    return out.astype(np.promote_types(out.dtype, np.float32))


@wrong("axial_rope_2d")
def dtype_of_the_rows(x, rows, cols, base=100.0):
    out = right.axial_rope_2d(x, rows, cols, base)
    return out.astype(np.promote_types(out.dtype, rope.as_floats(rows, "rows").dtype))


@wrong("axial_rope_2d")
def rows_changed_in_place(x, rows, cols, base=100.0):
    out = right.axial_rope_2d(x, rows, cols, base)
    rows -= 1
    return out


@wrong("axial_rope_2d")
def scaled_by_the_width(x, rows, cols, base=100.0):
    out = right.axial_rope_2d(x, rows, cols, base)
    return (out / math.sqrt(out.shape[-1])).astype(out.dtype)


# ------------------------------------------------------------------------------ mixed_rope_2d


def mixed(x, rows, cols, row_freqs, col_freqs):
    return right.mixed_rope_2d(x, rows, cols, row_freqs, col_freqs)


@wrong("mixed_rope_2d")
def absolute_frequencies(x, rows, cols, row_freqs, col_freqs):
    return mixed(x, rows, cols, np.abs(row_freqs), np.abs(col_freqs))


@wrong("mixed_rope_2d")
def sorted_frequencies(x, rows, cols, row_freqs, col_freqs):
    return mixed(x, rows, cols, np.sort(row_freqs), np.sort(col_freqs))


@wrong("mixed_rope_2d")
def rows_alone(x, rows, cols, row_freqs, col_freqs):
    mixed(x, rows, cols, row_freqs, col_freqs)
    return mixed(x, rows, cols, row_freqs, np.zeros_like(col_freqs))


@wrong("mixed_rope_2d")
def row_frequencies_for_both(x, rows, cols, row_freqs, col_freqs):
    mixed(x, rows, cols, row_freqs, col_freqs)
    return mixed(x, rows, cols, row_freqs, row_freqs)


@wrong("mixed_rope_2d")
def sum_of_places_times_sum_of_frequencies(x, rows, cols, row_freqs, col_freqs):
    mixed(x, rows, cols, row_freqs, col_freqs)
    both = (np.asarray(row_freqs) + np.asarray(col_freqs)) / 2
    return mixed(x, rows, cols, both, both)


@wrong("mixed_rope_2d")
def rows_and_columns_exchanged(x, rows, cols, row_freqs, col_freqs):
    return mixed(x, cols, rows, row_freqs, col_freqs)


@wrong("mixed_rope_2d")
def the_first_pair_for_all(x, rows, cols, row_freqs, col_freqs):
    mixed(x, rows, cols, row_freqs, col_freqs)
    row_freqs, col_freqs = np.asarray(row_freqs), np.asarray(col_freqs)
    return mixed(x, rows, cols, 0 * row_freqs + row_freqs[0], 0 * col_freqs + col_freqs[0])


@wrong("mixed_rope_2d")
def largest_angle_is_a_turn(x, rows, cols, row_freqs, col_freqs):
    """Frequencies as turns: 2π for each."""
    two_pi = 2 * np.pi
    return mixed(x, rows, cols, np.multiply(row_freqs, two_pi), np.multiply(col_freqs, two_pi))


@wrong("mixed_rope_2d")
def whole_places_only(x, rows, cols, row_freqs, col_freqs):
    rows, cols = np.asarray(rows), np.asarray(cols)
    return mixed(x, np.trunc(rows), np.trunc(cols), row_freqs, col_freqs)


@wrong("mixed_rope_2d")
def frequencies_like_x(x, rows, cols, row_freqs, col_freqs):
    kind = rope.as_floats(x, "x").dtype
    return mixed(x, rows, cols, np.asarray(row_freqs, kind), np.asarray(col_freqs, kind))


@wrong("mixed_rope_2d")
def places_of_x(x, rows, cols, row_freqs, col_freqs):
    kind = rope.as_floats(x, "x").dtype
    return mixed(x, np.asarray(rows, kind), np.asarray(cols, kind), row_freqs, col_freqs)


@wrong("mixed_rope_2d")
def whole_frequencies_stay_whole(x, rows, cols, row_freqs, col_freqs):
    out = mixed(x, rows, cols, row_freqs, col_freqs)
    whole = np.asarray(x).dtype.kind in "iu" and np.asarray(row_freqs).dtype.kind in "iu"
    return out.round() if whole else out


@wrong("mixed_rope_2d")
def first_frequencies_are_enough(x, rows, cols, row_freqs, col_freqs):
    pairs = np.shape(x)[-1] // 2
    return mixed(x, rows, cols, np.asarray(row_freqs)[:pairs], np.asarray(col_freqs)[:pairs])


@wrong("mixed_rope_2d")
def frequencies_of_each_vector(x, rows, cols, row_freqs, col_freqs):
    row_freqs, col_freqs = np.asarray(row_freqs), np.asarray(col_freqs)
    if row_freqs.ndim == 2 and row_freqs.shape[0] == 1:
        row_freqs = row_freqs[0]
    if col_freqs.ndim == 2 and col_freqs.shape[0] == 1:
        col_freqs = col_freqs[0]
    return mixed(x, rows, cols, row_freqs, col_freqs)


@wrong("mixed_rope_2d")
def flat_frequencies(x, rows, cols, row_freqs, col_freqs):
    return mixed(x, rows, cols, np.ravel(row_freqs), np.ravel(col_freqs))


@wrong("mixed_rope_2d")
def one_column_frequency_for_all(x, rows, cols, row_freqs, col_freqs):
    col_freqs = np.broadcast_to(col_freqs, np.shape(row_freqs))
    return mixed(x, rows, cols, row_freqs, col_freqs)


@wrong("mixed_rope_2d")
def one_column_for_all(x, rows, cols, row_freqs, col_freqs):
    cols = np.broadcast_to(cols, np.shape(rows)) if np.size(cols) == 1 else cols
    return mixed(x, rows, cols, row_freqs, col_freqs)


@wrong("mixed_rope_2d")
def one_vector_everywhere(x, rows, cols, row_freqs, col_freqs):
    x = rope.as_floats(x, "x")
    if x.ndim >= 2 and x.shape[-2] == 1 and np.ndim(rows) == np.ndim(cols) == 1:
        x = np.repeat(x, len(rows), axis=-2)
    return mixed(x, rows, cols, row_freqs, col_freqs)


@wrong("mixed_rope_2d")
def odd_width_passes_the_last(x, rows, cols, row_freqs, col_freqs):
    x = rope.as_floats(x, "x")
    if x.shape[-1] % 2 == 0:
        return mixed(x, rows, cols, row_freqs, col_freqs)
    out = mixed(x[..., :-1], rows, cols, row_freqs, col_freqs)
    return np.concatenate([out, x[..., -1:]], axis=-1)


@wrong("mixed_rope_2d")
def odd_width_not_named(x, rows, cols, row_freqs, col_freqs):
    if np.shape(x)[-1] % 2:
        raise ValueError("the width is odd")
    return mixed(x, rows, cols, row_freqs, col_freqs)


@wrong("mixed_rope_2d")
def needs_a_multiple_of_four(x, rows, cols, row_freqs, col_freqs):
    right.require_quarters(np.shape(x)[-1])
    return mixed(x, rows, cols, row_freqs, col_freqs)


@wrong("mixed_rope_2d")
def frequencies_changed_in_place(x, rows, cols, row_freqs, col_freqs):
    out = mixed(x, rows, cols, row_freqs, col_freqs)
    row_freqs *= 2
    return out


@wrong("mixed_rope_2d")
def columns_changed_in_place(x, rows, cols, row_freqs, col_freqs):
    out = mixed(x, rows, cols, row_freqs, col_freqs)
    cols += 1
    return out


@wrong("mixed_rope_2d")
def half_becomes_single(x, rows, cols, row_freqs, col_freqs):
    out = mixed(x, rows, cols, row_freqs, col_freqs)
    return out.astype(np.promote_types(out.dtype, np.float32))


@wrong("mixed_rope_2d")
def no_batch(x, rows, cols, row_freqs, col_freqs):
    if np.ndim(x) > 2:
        x = np.reshape(x, (-1, *np.shape(x)[-2:]))[0]
    return mixed(x, rows, cols, row_freqs, col_freqs)


# -------------------------------------------------------------------------------- resize_grid


def coordinates(old, new):
    return np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)


def pulled(table, old_hw, new_hw, places):
    """The right interpolation at other places(old, new)."""
    out = right.resize_grid(table, old_hw, new_hw)
    grid = np.asarray(table, float).reshape(*old_hw, -1)
    for axis, (old, new) in enumerate(zip(old_hw, new_hw, strict=True)):
        grid = np.moveaxis(grid, axis, 0)
        s = np.clip(places(old, new), 0, old - 1)
        low = s.astype(int)
        f = (s - low)[:, None, None]
        grid = (1 - f) * grid[low] + f * grid[np.minimum(low + 1, old - 1)]
        grid = np.moveaxis(grid, 0, axis)
    return grid.reshape(out.shape).astype(out.dtype)


@wrong("resize_grid")
def only_squares(table, old_hw, new_hw):
    side = math.isqrt(len(table))
    return right.resize_grid(table, (side, side), new_hw)


@wrong("resize_grid")
def new_grid_is_a_square(table, old_hw, new_hw):
    return right.resize_grid(table, old_hw, (new_hw[0], new_hw[0]))


@wrong("resize_grid")
def rows_alone_are_stretched(table, old_hw, new_hw):
    right.resize_grid(table, old_hw, new_hw)
    return right.resize_grid(table, old_hw, (new_hw[0], old_hw[1]))


@wrong("resize_grid")
def corners_when_it_grows(table, old_hw, new_hw):
    def places(old, new):
        return np.linspace(0, old - 1, new) if new > old else coordinates(old, new)

    return pulled(table, old_hw, new_hw, places)


@wrong("resize_grid")
def corners_when_it_shrinks(table, old_hw, new_hw):
    def places(old, new):
        return np.linspace(0, old - 1, new) if new < old else coordinates(old, new)

    return pulled(table, old_hw, new_hw, places)


@wrong("resize_grid")
def half_a_patch_in_one_grid_alone(table, old_hw, new_hw):
    return pulled(table, old_hw, new_hw, lambda old, new: (np.arange(new) + 0.5) * old / new)


@wrong("resize_grid")
def half_a_patch_lost(table, old_hw, new_hw):
    return pulled(table, old_hw, new_hw, lambda old, new: np.arange(new) * old / new - 0.5)


@wrong("resize_grid")
def the_middle_of_what_one_new_patch_covers(table, old_hw, new_hw):
    """Means of blocks when the sizes divide, as average pooling does."""
    out = right.resize_grid(table, old_hw, new_hw)
    (h, w), (a, b) = old_hw, new_hw
    if h % a or w % b:
        return out
    blocks = np.asarray(table, float).reshape(a, h // a, b, w // b, -1)
    return blocks.mean(axis=(1, 3)).reshape(out.shape).astype(out.dtype)


@wrong("resize_grid")
def nearest_when_it_shrinks(table, old_hw, new_hw):
    def places(old, new):
        return np.rint(coordinates(old, new)) if new < old else coordinates(old, new)

    return pulled(table, old_hw, new_hw, places)


@wrong("resize_grid")
def rounded_places(table, old_hw, new_hw):
    return pulled(table, old_hw, new_hw, lambda old, new: coordinates(old, new).round(1))


@wrong("resize_grid")
def transposed_result(table, old_hw, new_hw):
    return right.resize_grid(table, old_hw, new_hw).T


@wrong("resize_grid")
def the_new_grid_keeps_its_axes(table, old_hw, new_hw):
    return right.resize_grid(table, old_hw, new_hw).reshape(*new_hw, -1)


@wrong("resize_grid")
def a_single_patch_is_the_mean(table, old_hw, new_hw):
    out = right.resize_grid(table, old_hw, new_hw)
    return np.mean(table, axis=0, keepdims=True).astype(out.dtype) if len(out) == 1 else out


@wrong("resize_grid")
def a_single_patch_is_the_first(table, old_hw, new_hw):
    out = right.resize_grid(table, old_hw, new_hw)
    return np.asarray(table)[:1].astype(out.dtype) if len(out) == 1 else out


@wrong("resize_grid")
def one_patch_fills_with_zeros(table, old_hw, new_hw):
    out = right.resize_grid(table, old_hw, new_hw)
    if tuple(old_hw) == (1, 1):
        out[1:] = 0
    return out


@wrong("resize_grid")
def factor_of_the_root_of_the_number(table, old_hw, new_hw):
    """dino#8: the side is taken to be the root of the number of patches."""
    right.resize_grid(table, old_hw, new_hw)
    factor = math.sqrt(new_hw[0] * new_hw[1] / len(table))
    size = tuple(max(int(n * factor), 1) for n in old_hw)
    return right.resize_grid(table, old_hw, size)


@wrong("resize_grid")
def a_factor_with_a_little_added(table, old_hw, new_hw):
    """The workaround before dinov2#378: 0.1 is added, and the places move with it."""

    def places(old, new):
        return (np.arange(new) + 0.5) * old / (new + 0.1) - 0.5

    return pulled(table, old_hw, new_hw, places)


@wrong("resize_grid")
def same_height_same_table(table, old_hw, new_hw):
    right.resize_grid(table, old_hw, new_hw)
    if old_hw[0] == new_hw[0]:
        return np.array(table)
    return right.resize_grid(table, old_hw, new_hw)


@wrong("resize_grid")
def class_token_kept_in_front(table, old_hw, new_hw):
    table = np.asarray(table)
    if len(table) != old_hw[0] * old_hw[1] + 1:
        return right.resize_grid(table, old_hw, new_hw)
    return np.concatenate([table[:1], right.resize_grid(table[1:], old_hw, new_hw)])


@wrong("resize_grid")
def width_of_the_table_adapts(table, old_hw, new_hw):
    right.require_grid(*old_hw)
    table = rope.as_floats(table, "table")
    if table.size % (old_hw[0] * old_hw[1]):
        raise ValueError("the table is not of this grid")
    return right.resize_grid(table.reshape(old_hw[0] * old_hw[1], -1), old_hw, new_hw)


@wrong("resize_grid")
def one_row_for_all(table, old_hw, new_hw):
    right.require_grid(*old_hw)
    if len(table) == 1:
        table = np.repeat(table, old_hw[0] * old_hw[1], axis=0)
    return right.resize_grid(table, old_hw, new_hw)


@wrong("resize_grid")
def rows_not_counted_when_nothing_changes(table, old_hw, new_hw):
    if tuple(old_hw) == tuple(new_hw):
        return np.array(table)
    return right.resize_grid(table, old_hw, new_hw)


@wrong("resize_grid")
def at_least_one_patch(table, old_hw, new_hw):
    return right.resize_grid(table, old_hw, tuple(max(n, 1) for n in new_hw))


@wrong("resize_grid")
def negative_sizes_pass(table, old_hw, new_hw):
    return right.resize_grid(table, tuple(map(abs, old_hw)), tuple(map(abs, new_hw)))


@wrong("resize_grid")
def integers_become_float32(table, old_hw, new_hw):
    out = right.resize_grid(table, old_hw, new_hw)
    return out if np.asarray(table).dtype.kind == "f" else out.astype(np.float32)


@wrong("resize_grid")
def halves_become_singles(table, old_hw, new_hw):
    out = right.resize_grid(table, old_hw, new_hw)
    return out.astype(np.promote_types(out.dtype, np.float32))


@wrong("resize_grid")
def always_float32(table, old_hw, new_hw):
    return right.resize_grid(table, old_hw, new_hw).astype(np.float32)


@wrong("resize_grid")
def rounds_small_integers(table, old_hw, new_hw):
    out = right.resize_grid(table, old_hw, new_hw)
    return out.round() if np.asarray(table).dtype == np.uint8 else out


@wrong("resize_grid")
def centres_the_table_in_place(table, old_hw, new_hw):
    out = right.resize_grid(table, old_hw, new_hw)
    table -= table.mean()
    return out


# --------------------------------------------------------------------------------- fixed_grid


def grid_of(compute):
    """fixed_grid with compute(height, width) in the place of the right centres."""

    def fixed():
        def centres(height, width):
            right.require_grid(height, width)
            return compute(height, width)

        return centres

    fixed.__name__ = compute.__name__
    return fixed


def right_centres(height, width):
    return right.fixed_grid()(height, width)


@wrong("fixed_grid")
@grid_of
def square_of_the_height_only(height, width):
    return right_centres(height, height)


@wrong("fixed_grid")
@grid_of
def tall_ones_are_turned(height, width):
    return right_centres(height, width) if width >= height else right_centres(width, height)


@wrong("fixed_grid")
@grid_of
def wide_ones_are_turned(height, width):
    return right_centres(height, width) if width <= height else right_centres(width, height)


@wrong("fixed_grid")
@grid_of
def transposed_on_squares_alone(height, width):
    out = right_centres(height, width)
    return out[:, ::-1] if height == width else out


@wrong("fixed_grid")
@grid_of
def two_arrays(height, width):
    down, across = right_centres(height, width).T
    return down, across


@wrong("fixed_grid")
@grid_of
def two_rows(height, width):
    return right_centres(height, width).T


@wrong("fixed_grid")
@grid_of
def in_patches(height, width):
    return right_centres(height, width) * (height, width)


@wrong("fixed_grid")
@grid_of
def lower_right_corners(height, width):
    return right_centres(height, width) + (0.5 / height, 0.5 / width)


@wrong("fixed_grid")
@grid_of
def height_only_is_halved(height, width):
    return right_centres(height, width) - (0, 0.5 / width)


@wrong("fixed_grid")
@grid_of
def rows_from_below(height, width):
    return right_centres(height, width) * (-1, 1) + (1, 0)


@wrong("fixed_grid")
@grid_of
def one_row_lies_at_the_edge(height, width):
    out = right_centres(height, width)
    if height == 1:
        out[:, 0] = 0.0
    return out


@wrong("fixed_grid")
@grid_of
def one_patch_without_an_axis(height, width):
    return np.squeeze(right_centres(height, width))


@wrong("fixed_grid")
@grid_of
def rounded_to_three_digits(height, width):
    return right_centres(height, width).round(3)


@wrong("fixed_grid")
@grid_of
def through_float32(height, width):
    return right_centres(height, width).astype(np.float32).astype(np.float64)


@wrong("fixed_grid")
@grid_of
def float16_centres(height, width):
    return right_centres(height, width).astype(np.float16)


@wrong("fixed_grid")
@grid_of
def memorised_two_by_four(height, width):
    return right_centres(2, 4)


@wrong("fixed_grid")
def looks_at_the_number_alone():
    def centres(height, width):
        if height * width <= 0:
            raise ValueError("empty")
        rows, cols = np.divmod(np.arange(height * width), width)
        return np.stack([(rows + 0.5) / height, (cols + 0.5) / width], axis=-1)

    return centres


@wrong("fixed_grid")
def an_assertion_for_empty_grids():
    def centres(height, width):
        assert height > 0 and width > 0, "an empty grid"
        return right_centres(height, width)

    return centres


@wrong("fixed_grid")
def division_by_zero_is_the_refusal():
    def centres(height, width):
        if not height or not width:
            raise ZeroDivisionError("an empty grid")
        return right_centres(height, width)

    return centres


@wrong("fixed_grid")
def remembers_the_largest_grid():
    kept = []

    def centres(height, width):
        out = right_centres(height, width)
        if not kept or kept[0].shape[0] < len(out):
            kept[:] = [out]
        return kept[0][: len(out)]

    return centres


@wrong("fixed_grid")
def remembers_the_width():
    kept: dict[int, int] = {}

    def centres(height, width):
        right.require_grid(height, width)
        return right_centres(kept.setdefault(width, height), width)

    return centres


_EVERYWHERE: dict[int, np.ndarray] = {}


@wrong("fixed_grid")
def all_share_one_memory():
    def centres(height, width):
        return _EVERYWHERE.setdefault(height * width, right_centres(height, width))

    return centres


@wrong("fixed_grid")
def adds_to_what_it_returned():
    kept: dict[tuple[int, int], np.ndarray] = {}

    def centres(height, width):
        out = kept.setdefault((height, width), right_centres(height, width))
        given = out.copy()
        out += 1e-3
        return given

    return centres


@wrong("fixed_grid")
def the_centres_themselves(height=2, width=4):
    return right_centres(height, width)


# --------------------------------------------------------------------- AxialRotaryEmbedding2D


class Axial(torch.nn.Module):
    """The right module; wrong ones below override a part of it."""

    def __init__(self, head_dim, base=100.0):
        super().__init__()
        self.head_dim, self.base = head_dim, base
        self.right = right_torch.AxialRotaryEmbedding2D(head_dim, base)

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        return self.right(q, k, height, width, num_prefix_tokens)

    def angles(self, height, width):
        rows = torch.arange(height).repeat_interleave(width)
        cols = torch.arange(width).repeat(height)
        half = self.head_dim // 2
        return torch.cat([rope_torch.rope_angles(p, half, self.base) for p in (rows, cols)], -1)

    def turn(self, x, angles, prefix):
        turned = rope_torch.rotate_pairs(
            x[:, :, prefix:], angles.cos(), angles.sin(), "interleaved"
        )
        return torch.cat([x[:, :, :prefix], turned], dim=2)


@wrong("AxialRotaryEmbedding2D")
class WidthRoundedDown(Axial):
    def __init__(self, head_dim, base=100.0):
        super().__init__(head_dim // 4 * 4, base)
        self.full = head_dim

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        n = self.head_dim
        turned = self.right(q[..., :n], k[..., :n], height, width, num_prefix_tokens)
        return tuple(torch.cat([t, x[..., n:]], -1) for t, x in zip(turned, (q, k), strict=True))


@wrong("AxialRotaryEmbedding2D")
class EvenIsEnough(torch.nn.Module):
    def __init__(self, head_dim, base=100.0):
        super().__init__()
        if head_dim <= 0 or head_dim % 2:
            raise ValueError(f"head_dim {head_dim}")
        self.given = head_dim, base

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        if self.given[0] % 4:
            return q.clone(), k.clone()
        return right_torch.AxialRotaryEmbedding2D(*self.given)(
            q, k, height, width, num_prefix_tokens
        )


@wrong("AxialRotaryEmbedding2D")
class WidthNotNamed(Axial):
    def __init__(self, head_dim, base=100.0):
        if head_dim <= 0 or head_dim % 4:
            raise ValueError("head_dim must be divisible by four")
        super().__init__(head_dim, base)


@wrong("AxialRotaryEmbedding2D")
class AnAssertionForTheWidth(Axial):
    def __init__(self, head_dim, base=100.0):
        assert head_dim > 0 and head_dim % 4 == 0, head_dim
        super().__init__(head_dim, base)


@wrong("AxialRotaryEmbedding2D")
class AnyBase(Axial):
    def __init__(self, head_dim, base=100.0):
        super().__init__(head_dim, abs(base) or 1.0)


@wrong("AxialRotaryEmbedding2D")
class QueriesNotRotated(Axial):
    def forward(self, q, k, *grid, **prefix):
        return q.clone(), super().forward(q, k, *grid, **prefix)[1]


@wrong("AxialRotaryEmbedding2D")
class KeysAlone(Axial):
    def forward(self, q, k, *grid, **prefix):
        return super().forward(q, k, *grid, **prefix)[1]


@wrong("AxialRotaryEmbedding2D")
class KeysFirst(Axial):
    def forward(self, q, k, *grid, **prefix):
        return super().forward(q, k, *grid, **prefix)[::-1]


@wrong("AxialRotaryEmbedding2D")
class ClockwiseKeys(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        turned = self.right(q, k, height, width, num_prefix_tokens)[0]
        return turned, self.turn(k, -self.angles(height, width), num_prefix_tokens)


@wrong("AxialRotaryEmbedding2D")
class AlwaysASquare(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        self.right(q, k, height, width, num_prefix_tokens)
        side = math.isqrt(height * width - 1) + 1
        angles = self.angles(side, side)[: height * width]
        return tuple(self.turn(x, angles, num_prefix_tokens) for x in (q, k))


@wrong("AxialRotaryEmbedding2D")
class CountedFromOne(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        self.right(q, k, height, width, num_prefix_tokens)
        angles = self.angles(height + 1, width + 1).unflatten(0, (height + 1, width + 1))
        angles = angles[1:, 1:].flatten(0, 1)
        return tuple(self.turn(x, angles, num_prefix_tokens) for x in (q, k))


@wrong("AxialRotaryEmbedding2D")
class OnePrefixTokenAtMost(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        if num_prefix_tokens > 1:
            raise ValueError("one class token at most")
        return self.right(q, k, height, width, num_prefix_tokens)


@wrong("AxialRotaryEmbedding2D")
class PrefixTokensAtZero(Axial):
    """They are not rotated, but in the bfloat16 of everything they come back in float32."""

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        turned = self.right(q, k, height, width, num_prefix_tokens)
        return tuple(x.float() for x in turned) if num_prefix_tokens else turned


@wrong("AxialRotaryEmbedding2D")
class PrefixBecomesZero(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        turned = self.right(q, k, height, width, num_prefix_tokens)
        for x in turned:
            x[:, :, :num_prefix_tokens] = 0
        return turned


@wrong("AxialRotaryEmbedding2D")
class PrefixFollowsThePatches(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        turned = self.right(q, k, height, width, num_prefix_tokens)
        return tuple(x.roll(-num_prefix_tokens, dims=2) for x in turned)


@wrong("AxialRotaryEmbedding2D")
class PrefixIsGuessed(Axial):
    """Whatever is too long for the grid is taken for prefix tokens."""

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        return self.right(q, k, height, width, q.shape[2] - height * width)


@wrong("AxialRotaryEmbedding2D")
class NegativePrefix(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        if num_prefix_tokens < 0 and height * width + num_prefix_tokens == q.shape[2]:
            angles = self.angles(height, width)[-q.shape[2] :]
            return self.turn(q, angles, 0), self.turn(k, angles, 0)
        return self.right(q, k, height, width, num_prefix_tokens)


@wrong("AxialRotaryEmbedding2D")
class LengthNotChecked(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        try:
            return self.right(q, k, height, width, num_prefix_tokens)
        except ValueError:
            if q.shape[2] != k.shape[2] or min(height, width) < 1 or num_prefix_tokens < 0:
                raise
        angles = self.angles(height, width)
        return tuple(self.turn(x, angles, num_prefix_tokens) for x in (q, k))


@wrong("AxialRotaryEmbedding2D")
class ShorterSequencesPass(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        missing = num_prefix_tokens + height * width - q.shape[2]
        if missing <= 0 or q.shape[2] != k.shape[2] or min(height, width) < 1:
            return self.right(q, k, height, width, num_prefix_tokens)
        padded = (torch.nn.functional.pad(x, (0, 0, 0, missing)) for x in (q, k))
        turned = self.right(*padded, height, width, num_prefix_tokens)
        return tuple(x[:, :, :-missing] for x in turned)


@wrong("AxialRotaryEmbedding2D")
class LongerSequencesPass(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        seq = num_prefix_tokens + height * width
        if q.shape[2] <= seq or q.shape[2] != k.shape[2] or min(height, width) < 1:
            return self.right(q, k, height, width, num_prefix_tokens)
        turned = self.right(q[:, :, :seq], k[:, :, :seq], height, width, num_prefix_tokens)
        return tuple(torch.cat([t, x[:, :, seq:]], 2) for t, x in zip(turned, (q, k), strict=True))


@wrong("AxialRotaryEmbedding2D")
class TwoNegativesMakeAGrid(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        if height < 0 and width < 0:
            height, width = -height, -width
        return self.right(q, k, height, width, num_prefix_tokens)


@wrong("AxialRotaryEmbedding2D")
class EmptyGridIsAllPrefix(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        if height * width == 0 and q.shape[2] == num_prefix_tokens:
            return q.clone(), k.clone()
        return self.right(q, k, height, width, num_prefix_tokens)


@wrong("AxialRotaryEmbedding2D")
class KeysOfAnotherLength(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        if k.shape[2] == 1 and q.shape[2] > 1:
            k = k.expand(-1, -1, q.shape[2], -1)
        return self.right(q, k, height, width, num_prefix_tokens)


@wrong("AxialRotaryEmbedding2D")
class KeysOfAnotherBatch(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        grid = (height, width, num_prefix_tokens)
        return self.right(q, q, *grid)[0], self.right(k, k, *grid)[1]


@wrong("AxialRotaryEmbedding2D")
class KeysOfAnotherWidth(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        grid, n = (height, width, num_prefix_tokens), k.shape[-1]
        if n > self.head_dim:
            out = self.right(q, k[..., : self.head_dim], *grid)
            return out[0], torch.cat([out[1], k[..., self.head_dim :]], -1)
        return self.right(q, k, *grid)


@wrong("AxialRotaryEmbedding2D")
class AnyWidthOfVectors(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        if q.shape[-1] == k.shape[-1] and q.shape[-1] % 4 == 0:
            module = right_torch.AxialRotaryEmbedding2D(q.shape[-1], self.base)
            return module(q, k, height, width, num_prefix_tokens)
        return self.right(q, k, height, width, num_prefix_tokens)


@wrong("AxialRotaryEmbedding2D")
class AsManyHeadsOfKeys(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        if k.shape[1] != q.shape[1]:
            raise ValueError("keys need as many heads as queries")
        return self.right(q, k, height, width, num_prefix_tokens)


@wrong("AxialRotaryEmbedding2D")
class TablesOfTheFirstGrid(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        self.right(q, k, height, width, num_prefix_tokens)
        self.kept = getattr(self, "kept", {})
        angles = self.kept.setdefault(q.shape[2], self.angles(height, width))
        angles = angles if len(angles) == height * width else self.angles(height, width)
        return tuple(self.turn(x, angles, num_prefix_tokens) for x in (q, k))


@wrong("AxialRotaryEmbedding2D")
class TablesOfTheWidth(Axial):
    """Looked up by the width alone, and cut to as many rows as are needed."""

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        self.right(q, k, height, width, num_prefix_tokens)
        self.kept = getattr(self, "kept", {})
        key = (max(height, width), min(height, width))
        angles = self.kept.setdefault(key, self.angles(height, width))
        return tuple(self.turn(x, angles, num_prefix_tokens) for x in (q, k))


_SHARED: dict[tuple[int, ...], torch.Tensor] = {}


@wrong("AxialRotaryEmbedding2D")
class TablesOfAllModules(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        self.right(q, k, height, width, num_prefix_tokens)
        key = (height, width, self.head_dim)
        angles = _SHARED.setdefault(key, self.angles(height, width))
        return tuple(self.turn(x, angles, num_prefix_tokens) for x in (q, k))


@wrong("AxialRotaryEmbedding2D")
class TablesInTheFirstDtype(Axial):
    def forward(self, q, k, height, width, num_prefix_tokens=0):
        self.right(q, k, height, width, num_prefix_tokens)
        self.first = getattr(self, "first", q.dtype)
        angles = self.angles(height, width)
        cos, sin = angles.cos().to(self.first).double(), angles.sin().to(self.first).double()
        p = num_prefix_tokens
        turned = (rope_torch.rotate_pairs(x[:, :, p:], cos, sin, "interleaved") for x in (q, k))
        return tuple(torch.cat([x[:, :, :p], t], 2) for x, t in zip((q, k), turned, strict=True))


@wrong("AxialRotaryEmbedding2D")
class FirstDtypeStays(Axial):
    def forward(self, q, k, *grid, **prefix):
        self.first = getattr(self, "first", q.dtype)
        return tuple(x.to(self.first) for x in super().forward(q, k, *grid, **prefix))


@wrong("AxialRotaryEmbedding2D")
class NeverFloat64(Axial):
    def forward(self, q, k, *grid, **prefix):
        q, k = (x.float() if x.dtype == torch.float64 else x for x in (q, k))
        return super().forward(q, k, *grid, **prefix)


@wrong("AxialRotaryEmbedding2D")
class HalfPrecisionIsBfloat16(Axial):
    def forward(self, q, k, *grid, **prefix):
        turned = super().forward(q, k, *grid, **prefix)
        return tuple(x.bfloat16() if x.dtype == torch.float16 else x for x in turned)


@wrong("AxialRotaryEmbedding2D")
class ResultsInAutocastDtype(Axial):
    def forward(self, q, k, *grid, **prefix):
        turned = super().forward(q, k, *grid, **prefix)
        return tuple(x.bfloat16() if torch.is_autocast_enabled("cpu") else x for x in turned)


@wrong("AxialRotaryEmbedding2D")
class TurnsByMatrixProduct(Axial):
    """Every pair times a 2×2 matrix: autocast makes that bfloat16."""

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        self.right(q, k, height, width, num_prefix_tokens)
        angles = self.angles(height, width)
        cos, sin = angles.cos(), angles.sin()
        matrix = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
        p, out = num_prefix_tokens, []
        for x in (q, k):
            wide = torch.promote_types(x.dtype, torch.float32)
            pairs = x[:, :, p:].to(wide).unflatten(-1, (-1, 2, 1))
            turned = (matrix.to(wide) @ pairs).flatten(-3).to(x.dtype)
            out.append(torch.cat([x[:, :, :p], turned], dim=2))
        return tuple(out)


@wrong("AxialRotaryEmbedding2D")
class ParameterOfFrequencies(Axial):
    def __init__(self, head_dim, base=100.0):
        super().__init__(head_dim, base)
        half = head_dim // 2
        self.frequencies = torch.nn.Parameter(base ** (-torch.arange(0, half, 2) / half))

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        self.right(q, k, height, width, num_prefix_tokens)
        rows = torch.arange(height).repeat_interleave(width)
        cols = torch.arange(width).repeat(height)
        angles = torch.cat([p[:, None] * self.frequencies.float() for p in (rows, cols)], -1)
        return tuple(self.turn(x, angles, num_prefix_tokens) for x in (q, k))


@wrong("AxialRotaryEmbedding2D")
class KeysInPlace(Axial):
    def forward(self, q, k, *grid, **prefix):
        a, b = super().forward(q, k, *grid, **prefix)
        return a, k.copy_(b)


@wrong("AxialRotaryEmbedding2D")
class QueriesScaled(Axial):
    def forward(self, q, k, *grid, **prefix):
        a, b = super().forward(q, k, *grid, **prefix)
        return a / self.head_dim**0.5, b


@wrong("AxialRotaryEmbedding2D")
class UpToFourteenRows(Axial):
    """A table for a fixed grid of 14×14, the one that the images in training had."""

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        self.right(q, k, height, width, num_prefix_tokens)
        rows = torch.arange(height).clamp(max=13).repeat_interleave(width)
        cols = torch.arange(width).clamp(max=13).repeat(height)
        half = self.head_dim // 2
        angles = [rope_torch.rope_angles(p, half, self.base) for p in (rows, cols)]
        return tuple(self.turn(x, torch.cat(angles, -1), num_prefix_tokens) for x in (q, k))


@wrong("AxialRotaryEmbedding2D")
class OneHeadForAll(Axial):
    def forward(self, q, k, *grid, **prefix):
        a, b = super().forward(q, k, *grid, **prefix)
        return torch.cat([a[:, :1], q[:, 1:]], dim=1), b


# --------------------------------------------------------------- found by programs of outsiders


@wrong("AxialRotaryEmbedding2D")
class SomethingToTrain(Axial):
    def __init__(self, head_dim, base=100.0):
        super().__init__(head_dim, base)
        self.scale = torch.nn.Parameter(torch.ones(1))


@wrong("AxialRotaryEmbedding2D")
class KeepsItsTableInTheCheckpoint(Axial):
    def __init__(self, head_dim, base=100.0):
        super().__init__(head_dim, base)
        self.register_buffer("table", self.angles(4, 4))


@wrong("AxialRotaryEmbedding2D")
class NegativePrefixFromTheEnd(Axial):
    """Only the patches are counted, and a slice takes a negative number from the other end."""

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        patches, count = q[:, :, num_prefix_tokens:], height * width
        if num_prefix_tokens >= 0 or patches.shape[2] != count or min(height, width) < 1:
            return self.right(q, k, height, width, num_prefix_tokens)
        return self.right(q, k, height, width, q.shape[2] - count)


@wrong("AxialRotaryEmbedding2D")
class OneTokenBeforeTheEnd(Axial):
    """What a prefix of −1 leaves is one token, and that broadcasts to all places."""

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        if num_prefix_tokens != -1 or q.shape[2] != height * width:
            return self.right(q, k, height, width, num_prefix_tokens)
        spread = (x[:, :, -1:].expand(*x.shape) for x in (q, k))
        return self.right(*spread, height, width)

"""Wrong answers to the exercises on positions in two dimensions, and the sentences that help.

Each is right but for one belief. Where a public report tells of it, the report is cited; the code
and the words are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solutions.with_numpy import rope, two_d

from ..exercise import Misconception

Array = np.ndarray

# ----------------------------------------------------------------------------- grid_positions


def grid_column_major(height: int, width: int) -> tuple[Array, Array]:
    """https://github.com/huggingface/transformers/pull/41380: a mesh grid whose x comes first."""
    two_d.require_grid(height, width)
    mesh = np.meshgrid(np.arange(width), np.arange(height), indexing="ij")
    return mesh[1].ravel(), mesh[0].ravel()


def grid_swapped(height: int, width: int) -> tuple[Array, Array]:
    rows, cols = two_d.grid_positions(height, width)
    return cols, rows


def grid_divided_by_height(height: int, width: int) -> tuple[Array, Array]:
    rows, cols = two_d.grid_positions(width, height)
    return rows, cols


def grid_from_one(height: int, width: int) -> tuple[Array, Array]:
    rows, cols = two_d.grid_positions(height, width)
    return rows + 1, cols + 1


def grid_not_flattened(height: int, width: int) -> tuple[Array, Array]:
    rows, cols = two_d.grid_positions(height, width)
    return rows.reshape(height, width), cols.reshape(height, width)


def grid_fractions(height: int, width: int) -> tuple[Array, Array]:
    rows, cols = two_d.grid_positions(height, width)
    return rows / height, cols / width


def grid_axes_only(height: int, width: int) -> tuple[Array, Array]:
    two_d.require_grid(height, width)
    return np.arange(height), np.arange(width)


def grid_floats(height: int, width: int) -> tuple[Array, Array]:
    rows, cols = two_d.grid_positions(height, width)
    return rows.astype(np.float64), cols.astype(np.float64)


def grid_empty(height: int, width: int) -> tuple[Array, Array]:
    height, width = max(height, 0), max(width, 0)
    return np.repeat(np.arange(height), width), np.tile(np.arange(width), height)


GRID_POSITIONS = (
    Misconception(
        "grid-positions-column-major",
        grid_column_major,
        "grid_positions_two_by_three",
        "The patches are counted down the columns. An image that is flattened is read like a "
        "page: all of row 0 first, from left to right, so it is the column that changes fastest.",
        "grid-rows",
    ),
    Misconception(
        "grid-positions-swapped",
        grid_swapped,
        "grid_positions_two_by_three",
        "The two arrays have changed places: rows come first, columns second. The row is the one "
        "that stays the same while a line is read.",
        "grid-rows",
    ),
    Misconception(
        "grid-positions-divided-by-height",
        grid_divided_by_height,
        "grid_positions_two_by_three",
        "A new row begins after as many patches as the grid is high. That is right on squares "
        "alone: a row is as long as the grid is wide.",
        "grid-rows",
    ),
    Misconception(
        "grid-positions-from-one",
        grid_from_one,
        "grid_positions_two_by_three",
        "Rows and columns are counted from one. The patch in the upper left corner stands in row "
        "0 and column 0, as everything in this book counts from 0.",
        "grid-rows",
    ),
    Misconception(
        "grid-positions-not-flattened",
        grid_not_flattened,
        "grid_positions_two_by_three",
        "Rows and columns came in the shape of the grid. Attention sees one sequence of patches, "
        "so each array has one axis with height·width entries.",
        "grid-rows",
    ),
    Misconception(
        "grid-positions-fractions",
        grid_fractions,
        "grid_positions_two_by_three",
        "Rows and columns were divided by the size of the grid. They are counted in patches here; "
        "where fractions of the image are wanted, an exercise says so.",
        "grid-rows",
    ),
    Misconception(
        "grid-positions-axes-only",
        grid_axes_only,
        "grid_positions_two_by_three",
        "These are the numbers of the rows and of the columns, once each. Every patch needs both: "
        "each row number occurs width times, each column number height times.",
        "grid-rows",
    ),
    Misconception(
        "grid-positions-floats",
        grid_floats,
        "grid_positions_integers",
        "The numbers are right, but they are floats. Rows and columns are counted, so keep them "
        "integers: a table can only be read at integers.",
        "grid-rows",
    ),
    Misconception(
        "grid-positions-empty",
        grid_empty,
        "grid_positions_refuses_empty",
        "A grid without a patch gave empty arrays, and what is computed from them later fails far "
        "from here, or not at all. Refuse a size below 1 at once.",
        "grid-rows",
    ),
)

# ---------------------------------------------------------------------------------- sincos_2d


def interleaved(angles: Array) -> Array:
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), -1)


def wave_table(
    height: int,
    width: int,
    dim: int,
    base: float,
    first: str,
    half: Callable[[Array], Array],
) -> Array:
    """sincos_2d with half(positions) in the place of sines and cosines of width dim/2."""
    two_d.sincos_2d(height, width, dim, base, first)  # refuses what is to be refused
    halves = [half(positions) for positions in two_d.grid_positions(height, width)]
    return np.concatenate(halves if first == "row" else halves[::-1], axis=-1)


def sincos_blocks(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    """https://github.com/facebookresearch/mae/issues/63: valid, but not the layout of the paper."""

    def half(positions: Array) -> Array:
        angles = rope.rope_angles(positions, dim // 2, base)
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)

    return wave_table(height, width, dim, base, first, half)


def sincos_column_first(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    """https://github.com/facebookresearch/mae/issues/18: what is called h holds the columns."""
    other = {"row": "column", "column": "row"}.get(first, first)
    return two_d.sincos_2d(height, width, dim, base, other)


def sincos_ignores_first(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    two_d.sincos_2d(height, width, dim, base, first)
    return two_d.sincos_2d(height, width, dim, base)


def sincos_transposed_for_column(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    table = two_d.sincos_2d(height, width, dim, base, first)
    if first == "row":
        return table
    table = two_d.sincos_2d(height, width, dim, base)
    return table.reshape(height, width, dim).swapaxes(0, 1).reshape(-1, dim)


def sincos_ladder_of_dim(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    def half(positions: Array) -> Array:
        return interleaved(rope.rope_angles(positions, dim, base)[:, : dim // 4])

    return wave_table(height, width, dim, base, first, half)


def sincos_ladder_of_quarter(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    """The exponent's divisor is the number of pairs, and the 2 above it stands there too."""
    two_d.sincos_2d(height, width, dim, base, first)
    return two_d.sincos_2d(height, width, dim, base**2, first)


def sincos_summed_in_each_half(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    table = two_d.sincos_2d(height, width, dim, base, first)
    halves = np.split(table, 2, axis=-1)
    return np.tile(halves[0] + halves[1], 2)


def sincos_ladder_goes_on(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    """One ladder for all pairs: its fast half for what comes first, its slow half for the other."""
    two_d.sincos_2d(height, width, dim, base, first)
    positions = two_d.grid_positions(height, width)
    if first == "column":
        positions = positions[::-1]
    fast, slow = (rope.rope_angles(p, dim, base) for p in positions)
    return interleaved(np.concatenate([fast[:, : dim // 4], slow[:, dim // 4 :]], axis=-1))


def sincos_to_the_very_base(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    def half(positions: Array) -> Array:
        steps = np.arange(dim // 4) / max(dim // 4 - 1, 1)
        return interleaved(positions[:, None] * base**-steps)

    return wave_table(height, width, dim, base, first, half)


def sincos_cosines_first(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    table = two_d.sincos_2d(height, width, dim, base, first)
    return table.reshape(len(table), -1, 2)[:, :, ::-1].reshape(table.shape)


def sincos_column_major(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    """https://github.com/huggingface/transformers/pull/41380: right on squares up to a mirror."""
    table = two_d.sincos_2d(height, width, dim, base, first)
    return table.reshape(height, width, dim).swapaxes(0, 1).reshape(-1, dim)


def sincos_sizes_swapped(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    return two_d.sincos_2d(width, height, dim, base, first)


def sincos_of_the_number(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    two_d.sincos_2d(height, width, dim, base, first)
    return interleaved(rope.rope_angles(np.arange(height * width), dim, base))


def sincos_added(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    two_d.sincos_2d(height, width, dim, base, first)
    rows, cols = two_d.grid_positions(height, width)
    by_row, by_col = (interleaved(rope.rope_angles(p, dim, base)) for p in (rows, cols))
    return by_row + by_col


def sincos_axes_alternate(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    """Pair by pair row and column in turn, as RoPE-ViT's paper numbers them."""
    table = two_d.sincos_2d(height, width, dim, base, first)
    return table.reshape(-1, 2, dim // 4, 2).swapaxes(1, 2).reshape(-1, dim)


def sincos_as_mae(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    """The table that the text shows: MAE's, whose names say the opposite (mae#18, mae#63)."""
    other = {"row": "column", "column": "row"}.get(first, first)
    return sincos_blocks(height, width, dim, base, other)


def sincos_from_one(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    def half(positions: Array) -> Array:
        return interleaved(rope.rope_angles(positions + 1, dim // 2, base))

    return wave_table(height, width, dim, base, first, half)


def sincos_number_twice(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    """Two halves, as they should be, but both of them encode the number of the patch."""
    two_d.sincos_2d(height, width, dim, base, first)
    half = interleaved(rope.rope_angles(np.arange(height * width), dim // 2, base))
    return np.concatenate([half, half], axis=-1)


def sincos_coordinates_alternate(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    """The halves are woven into each other instead of joined: row, column, row, column, …"""
    table = two_d.sincos_2d(height, width, dim, base, first)
    return table.reshape(-1, 2, dim // 2).swapaxes(1, 2).reshape(-1, dim)


def sincos_without_base(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    two_d.sincos_2d(height, width, dim, base, first)
    return two_d.sincos_2d(height, width, dim, first=first)


def sincos_even_is_enough(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    """Half of an even dim may be odd: then the table is wider than dim."""
    if dim < 4 or dim % 2:
        return two_d.sincos_2d(height, width, dim, base, first)
    two_d.sincos_2d(height, width, 4, base, first)  # refuses what is to be refused
    ladder = base ** (-np.arange(0, dim // 2, 2) / (dim // 2))
    halves = [interleaved(p[:, None] * ladder) for p in two_d.grid_positions(height, width)]
    return np.concatenate(halves if first == "row" else halves[::-1], axis=-1)


def sincos_rounds_dim_down(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    table = two_d.sincos_2d(height, width, max(dim // 4, 1) * 4, base, first)
    return table[:, : max(dim, 0)]


def sincos_else_column(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    return two_d.sincos_2d(height, width, dim, base, "row" if first == "row" else "column")


def sincos_float32(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    """The tables in common use: harmless here, and yet not what this book's tables are."""
    return two_d.sincos_2d(height, width, dim, base, first).astype(np.float32)


def sincos_empty(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> Array:
    if height < 1 or width < 1:
        two_d.sincos_2d(1, 1, dim, base, first)
        return np.zeros((0, dim))
    return two_d.sincos_2d(height, width, dim, base, first)


SINCOS_2D = (
    Misconception(
        "sincos-2d-column-first",
        sincos_column_first,
        "sincos_2d_row_1_column_2",
        "The halves have changed places: the column stands where the row should. MAE's code does "
        "that under names that say the opposite; here the default is row first.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-as-mae",
        sincos_as_mae,
        "sincos_2d_row_1_column_2",
        "This is MAE's table: the column's half comes first, and in each half all sines stand "
        "before all cosines. Asked for is row first, with each sine beside its cosine.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-from-one",
        sincos_from_one,
        "sincos_2d_row_1_column_2",
        "Rows and columns are counted from one. The patch in the upper left corner stands in row "
        "0 and column 0, and every pair of its vector has to read 0, 1.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-number-twice",
        sincos_number_twice,
        "sincos_2d_row_1_column_2",
        "Both halves encode the number of the patch, so they are alike and neither knows the width "
        "of the grid. Get row and column out of the number first, one for each half.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-coordinates-alternate",
        sincos_coordinates_alternate,
        "sincos_2d_row_1_column_2",
        "The coordinates of row and column take turns, one by one, so a sine of the row stands "
        "beside a sine of the column. Only inside a half do sines and cosines take turns: then "
        "put the two halves one after the other.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-cosines-first",
        sincos_cosines_first,
        "sincos_2d_row_1_column_2",
        "In each pair the cosine stands before the sine. In row 0 and column 0 every pair has to "
        "read 0, 1.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-column-major",
        sincos_column_major,
        "sincos_2d_row_1_column_2",
        "The vectors are right, but they come column by column. The patches of an image are read "
        "row by row, so on a rectangle these vectors go to other patches.",
        "grid-rows",
    ),
    Misconception(
        "sincos-2d-sizes-swapped",
        sincos_sizes_swapped,
        "sincos_2d_row_1_column_2",
        "Height and width have changed places: the rows of the table are those of the grid turned "
        "on its side. Squares cannot tell, rectangles can.",
        "grid-rows",
    ),
    Misconception(
        "sincos-2d-of-the-number",
        sincos_of_the_number,
        "sincos_2d_row_1_column_2",
        "The patches were numbered through and the number was encoded, as in a sentence. Then the "
        "patch below is as far as a whole row, and the width of the grid is nowhere to be seen.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-added",
        sincos_added,
        "sincos_2d_row_1_column_2",
        "The code of the row and that of the column were added. Then row 1, column 2 looks like "
        "row 2, column 1. Put them side by side, half the coordinates each.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-axes-alternate",
        sincos_axes_alternate,
        "sincos_2d_published_table",
        "Row and column take turns, pair by pair. Here the whole first half belongs to one of "
        "them and the whole second half to the other.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-blocks",
        sincos_blocks,
        "sincos_2d_published_table",
        "Within each half all sines stand before all cosines, as in MAE's code. Asked for is the "
        "paper's layout: each sine beside the cosine of the same frequency.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-ladder-of-dim",
        sincos_ladder_of_dim,
        "sincos_2d_published_table",
        "The exponent was divided by dim, but each half is an encoding of width dim/2. Your "
        "frequencies stop half-way down the ladder.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-ladder-of-quarter",
        sincos_ladder_of_quarter,
        "sincos_2d_published_table",
        "The exponent −2i was divided by dim/4, the number of pairs in a half. It is divided by "
        "the width of the half, dim/2: your frequencies fall twice as fast as they should.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-summed-in-each-half",
        sincos_summed_in_each_half,
        "sincos_2d_row_1_column_2",
        "Both halves hold the sum of the row's code and the column's. Then row 1, column 2 looks "
        "like row 2, column 1: leave one half to the row and one to the column.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-ladder-goes-on",
        sincos_ladder_goes_on,
        "sincos_2d_row_1_column_2",
        "One ladder runs through both halves, so the second half has the slow pairs only and can "
        "hardly tell neighbours apart. Each half begins again at frequency 1.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-one-step-less",
        sincos_to_the_very_base,
        "sincos_2d_published_table",
        "The ladder of each half ends at 1/base, as if it were divided by dim/4 − 1. It has dim/4 "
        "steps, and its last rung stays one step above that.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-ignores-first",
        sincos_ignores_first,
        "sincos_2d_column_first",
        "first changes nothing: the half of the row comes first whatever was asked. Weights that "
        'were trained with the other order need first="column".',
        "ex-sincos_2d",
    ),
    Misconception(
        "sincos-2d-transposed-for-column",
        sincos_transposed_for_column,
        "sincos_2d_column_first",
        'With first="column" the patches changed their order. It is only the two halves of each '
        "vector that change places; the patches are read row by row all the same.",
        "grid-rows",
    ),
    Misconception(
        "sincos-2d-ignores-base",
        sincos_without_base,
        "sincos_2d_other_base",
        "The base that was passed in is never used: 10000 is only its default. Grids are small, "
        "and smaller bases are common for images.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-even-is-enough",
        sincos_even_is_enough,
        "sincos_2d_refuses_dim",
        "An even dim was taken, but its half may be odd, and a half of seven coordinates holds no "
        "whole number of pairs. dim has to be divisible by 4: refuse any other, by its number.",
        "ex-sincos_2d",
    ),
    Misconception(
        "sincos-2d-rounds-dim-down",
        sincos_rounds_dim_down,
        "sincos_2d_refuses_dim",
        "A dim that 4 does not divide was taken without a word. Two halves of pairs need a "
        "multiple of 4: refuse any other, with the number in the message.",
        "ex-sincos_2d",
    ),
    Misconception(
        "sincos-2d-else-column",
        sincos_else_column,
        "sincos_2d_refuses_first",
        'Every word but "row" is taken for "column", misspelt ones too. Name the two that are '
        "allowed, and refuse the rest.",
        "ex-sincos_2d",
    ),
    Misconception(
        "sincos-2d-float32",
        sincos_float32,
        "sincos_2d_float64",
        "The table is float32. Tables are float64 in this book: whoever adds it to float32 "
        "vectors casts it then, once.",
        "grid-sincos",
    ),
    Misconception(
        "sincos-2d-empty",
        sincos_empty,
        "sincos_2d_refuses_grid_and_base",
        "A grid without a patch gave a table without rows. Nobody asks for that on purpose: it is "
        "a mistake in a division further up, so refuse it where it can be seen.",
        "ex-sincos_2d",
    ),
)

# ------------------------------------------------------------------------------ axial_rope_2d


def turned_pairs(
    x: Array, rows: Array, cols: Array, angles: Callable[[Array, Array], Array]
) -> Array:
    """Neighbours of x turned by angles(rows, cols), an array (n, dim/2)."""
    x = rope.as_floats(x, "x")
    rows, cols = two_d.as_places(x, rows, cols)
    pairs = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
    return rope.rotate_2d(pairs, angles(rows, cols)).reshape(x.shape)


def axial(
    x: Array, rows: Array, cols: Array, base: float, angles: Callable[[Array, Array, int], Array]
) -> Array:
    """axial_rope_2d with other angles(rows, cols, dim)."""
    two_d.axial_rope_2d(x, rows, cols, base)  # refuses what is to be refused
    dim = np.shape(x)[-1]
    return turned_pairs(x, rows, cols, lambda rows, cols: angles(rows, cols, dim))


def axial_column_first(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    """The order of RoPE-ViT's own code, and of many that follow it."""
    return two_d.axial_rope_2d(x, cols, rows, base)


def axial_ladder_of_dim(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    def angles(rows: Array, cols: Array, dim: int) -> Array:
        halves = [rope.rope_angles(p, dim, base)[:, : dim // 4] for p in (rows, cols)]
        return np.concatenate(halves, axis=-1)

    return axial(x, rows, cols, base, angles)


def axial_ladder_of_quarter(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    """The exponent's divisor is the number of pairs, and the 2 above it stands there too."""
    two_d.axial_rope_2d(x, rows, cols, base)
    return two_d.axial_rope_2d(x, rows, cols, base**2)


def axial_ladder_goes_on(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    """https://github.com/huggingface/diffusers/issues/12538 is a cousin: two ideas of the split."""

    def angles(rows: Array, cols: Array, dim: int) -> Array:
        by_row, by_column = (rope.rope_angles(p, dim, base) for p in (rows, cols))
        return np.concatenate([by_row[:, : dim // 4], by_column[:, dim // 4 :]], axis=-1)

    return axial(x, rows, cols, base, angles)


def axial_axes_alternate(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    """As RoPE-ViT's paper numbers the pairs: the even ones for one axis, the odd for the other."""

    def angles(rows: Array, cols: Array, dim: int) -> Array:
        halves = [rope.rope_angles(p, dim // 2, base) for p in (rows, cols)]
        return np.stack(halves, axis=-1).reshape(len(rows), dim // 2)

    return axial(x, rows, cols, base, angles)


def axial_sum(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    def angles(rows: Array, cols: Array, dim: int) -> Array:
        return rope.rope_angles(rows + cols, dim, base)

    return axial(x, rows, cols, base, angles)


def axial_sum_in_each_half(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    return two_d.axial_rope_2d(
        x, np.add(rows, cols, dtype=float), np.add(rows, cols, dtype=float), base
    )


def axial_first_half_only(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    """The row turns its half; the other half is passed through."""
    right = two_d.axial_rope_2d(x, rows, cols, base)
    right[..., right.shape[-1] // 2 :] = np.asarray(x)[..., right.shape[-1] // 2 :]
    return right


def axial_not_woven(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    """Slices 0::2 and 1::2 are turned, and then stand one after the other in each half."""
    right = two_d.axial_rope_2d(x, rows, cols, base)
    halves = np.split(right, 2, axis=-1)
    parts = [part for h in halves for part in (h[..., 0::2], h[..., 1::2])]
    return np.concatenate(parts, axis=-1)


def axial_turned_twice(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    """The first coordinate of a pair is overwritten before the second one is computed from it."""
    right = two_d.axial_rope_2d(x, rows, cols, base)
    x = rope.as_floats(x, "x")
    rows, cols = two_d.as_places(x, rows, cols)
    halves = [rope.rope_angles(p, x.shape[-1] // 2, base) for p in (rows, cols)]
    angles = np.concatenate(halves, axis=-1)
    right[..., 1::2] = right[..., 0::2] * np.sin(angles) + x[..., 1::2] * np.cos(angles)
    return right


def axial_whole_places(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    two_d.axial_rope_2d(x, rows, cols, base)
    rows, cols = (np.asarray(p).astype(np.int64) for p in (rows, cols))
    return two_d.axial_rope_2d(x, rows, cols, base)


def axial_half_layout(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    two_d.axial_rope_2d(x, rows, cols, base)
    x = rope.as_floats(x, "x")
    halves = zip(np.split(x, 2, axis=-1), (rows, cols), strict=True)
    return np.concatenate([rope.apply_rope(h, p, base, "half") for h, p in halves], axis=-1)


def axial_clockwise(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    two_d.axial_rope_2d(x, rows, cols, base)
    rows, cols = (-np.asarray(p, dtype=np.float64) for p in (rows, cols))
    return two_d.axial_rope_2d(x, rows, cols, base)


def axial_base_10000(x: Array, rows: Array, cols: Array, base: float = 10000.0) -> Array:
    return two_d.axial_rope_2d(x, rows, cols, base)


def axial_without_base(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    two_d.axial_rope_2d(x, rows, cols, base)
    return two_d.axial_rope_2d(x, rows, cols)


def axial_rows_only(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    return two_d.axial_rope_2d(x, rows, rows, base)


def axial_of_a_square(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    """The grid is made up: as square as the number of vectors allows."""
    two_d.axial_rope_2d(x, rows, cols, base)
    side = math.isqrt(len(rows) - 1) + 1 if len(rows) else 1
    made_up = np.divmod(np.arange(len(rows)), side)
    return two_d.axial_rope_2d(x, *made_up, base)


def axial_into_integers(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    return two_d.axial_rope_2d(x, rows, cols, base).astype(x.dtype)


def axial_in_place(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    """unsloth#5001, on a grid: other code still held the array."""
    right = two_d.axial_rope_2d(x, rows, cols, base)
    if x.dtype != right.dtype:
        return right
    x[...] = right
    return x


def axial_always_float64(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    return two_d.axial_rope_2d(x, rows, cols, base).astype(np.float64)


def axial_float32_angles(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    def angles(rows: Array, cols: Array, dim: int) -> Array:
        halves = [rope.rope_angles(p, dim // 2, base) for p in (rows, cols)]
        return np.concatenate(halves, axis=-1).astype(np.float32)

    return axial(x, rows, cols, base, angles)


def axial_broadcasts(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    x = rope.as_floats(x, "x")
    two_d.require_quarters(x.shape[-1])
    if x.ndim < 2:
        return two_d.axial_rope_2d(x, rows, cols, base)
    shape = np.broadcast_shapes(x.shape[:-1], np.shape(rows), np.shape(cols))
    x = np.broadcast_to(x, (*shape, x.shape[-1]))
    rows, cols = (np.broadcast_to(p, shape) for p in (rows, cols))
    halves = zip(np.split(x, 2, axis=-1), (rows, cols), strict=True)
    return np.concatenate([rope.apply_rope(h, p, base) for h, p in halves], axis=-1)


def axial_leaves_a_rest(x: Array, rows: Array, cols: Array, base: float = 100.0) -> Array:
    """What 4 does not divide stays as it is at the end of the vector."""
    x = rope.as_floats(x, "x")
    whole = x.shape[-1] // 4 * 4
    if whole in (0, x.shape[-1]):
        return two_d.axial_rope_2d(x, rows, cols, base)
    turned = two_d.axial_rope_2d(x[..., :whole], rows, cols, base)
    return np.concatenate([turned, x[..., whole:]], axis=-1)


AXIAL_ROPE_2D = (
    Misconception(
        "axial-rope-2d-column-first",
        axial_column_first,
        "axial_rope_2d_published_numbers",
        "The column turns the first half and the row the second, as in RoPE-ViT's own code. Here "
        "the row comes first: a convention, but weights know only one.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-ladder-of-dim",
        axial_ladder_of_dim,
        "axial_rope_2d_published_numbers",
        "The exponent was divided by dim, but each half is a whole RoPE of width dim/2. Your pairs "
        "stop half-way down the ladder.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-ladder-of-quarter",
        axial_ladder_of_quarter,
        "axial_rope_2d_published_numbers",
        "The exponent −2i was divided by dim/4, the number of pairs in a half. It is divided by "
        "the width of the half, dim/2: your frequencies fall twice as fast as they should.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-ladder-goes-on",
        axial_ladder_goes_on,
        "axial_rope_2d_published_numbers",
        "One ladder runs through both halves: the row got the fast pairs, the column the slow "
        "ones. Each half has a ladder of its own that begins at 1, so that both see as sharply.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-axes-alternate",
        axial_axes_alternate,
        "axial_rope_2d_published_numbers",
        "Row and column take turns, pair by pair. Here the first half of the coordinates belongs "
        "to the row as a whole, the second half to the column.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-sum",
        axial_sum,
        "axial_rope_2d_published_numbers",
        "Every pair turns by row plus column, so row 1, column 2 and row 2, column 1 are one "
        "place. Row and column need pairs of their own, half of them each.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-sum-in-each-half",
        axial_sum_in_each_half,
        "axial_rope_2d_published_numbers",
        "Both halves turn by row plus column, so row 1, column 2 and row 2, column 1 are one "
        "place. The first half is for the row alone, the second for the column alone.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-first-half-only",
        axial_first_half_only,
        "axial_rope_2d_published_numbers",
        "Only the first half was turned; the second came back as it was, so patches of one row "
        "cannot be told apart. The column turns the second half.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-not-woven",
        axial_not_woven,
        "axial_rope_2d_published_numbers",
        "The pairs turned rightly, but all first coordinates of a half came back before all second "
        "ones. Put each number where it was taken from: the two of a pair are neighbours.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-turned-twice",
        axial_turned_twice,
        "axial_rope_2d_published_numbers",
        "The second coordinate of each pair was computed from a first one that had been turned "
        "already. Slices of an array are views: compute both from the old values, then write.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-whole-places",
        axial_whole_places,
        "axial_rope_2d_leaves_input",
        "Rows and columns were cut to whole numbers. They may be fractions, as the centres of "
        "finer patches are: turn them into floats, not into integers.",
        "ex-axial_rope_2d",
    ),
    Misconception(
        "axial-rope-2d-rows-only",
        axial_rows_only,
        "axial_rope_2d_published_numbers",
        "Both halves turn with the row, so patches of one row cannot be told apart. The second "
        "half is for the column.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-half-layout",
        axial_half_layout,
        "axial_rope_2d_published_numbers",
        "Within each half, coordinate i was paired with the one a quarter of dim further on. The "
        "pairs are neighbours here: the interleaved layout.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-clockwise",
        axial_clockwise,
        "axial_rope_2d_published_numbers",
        "Every pair turns the wrong way. A positive angle turns the first coordinate of a pair "
        "towards the second.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-base-10000",
        axial_base_10000,
        "axial_rope_2d_published_numbers",
        "Without a base yours is 10000, the number for long texts. A grid has some tens of rows: "
        "the default here is 100, so that the slow pairs turn visibly too.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-ignores-base",
        axial_without_base,
        "axial_rope_2d_scattered",
        "The base that was passed in is never used: 100 is only its default.",
        "grid-axial",
    ),
    Misconception(
        "axial-rope-2d-of-a-square",
        axial_of_a_square,
        "axial_rope_2d_published_numbers",
        "Rows and columns were made up from the number of vectors, as if they came from a square. "
        "They are given, they may stand in any order, and most images are no squares.",
        "grid-rows",
    ),
    Misconception(
        "axial-rope-2d-into-integers",
        axial_into_integers,
        "axial_rope_2d_integers",
        "The fractions were cut off because the result has the integer dtype of x. Turn integers "
        "into float64 before you rotate.",
        "ex-axial_rope_2d",
    ),
    Misconception(
        "axial-rope-2d-in-place",
        axial_in_place,
        "axial_rope_2d_leaves_input",
        "x itself was overwritten. Whoever passed it in may still hold it, so write into a new "
        "array.",
        "ex-axial_rope_2d",
    ),
    Misconception(
        "axial-rope-2d-always-float64",
        axial_always_float64,
        "axial_rope_2d_keeps_dtype",
        "The numbers are right, but a small floating dtype came back as float64. Cast the result "
        "to the floating dtype of x, as the last step.",
        "ex-axial_rope_2d",
    ),
    Misconception(
        "axial-rope-2d-float32-angles",
        axial_float32_angles,
        "axial_rope_2d_precise_far_out",
        "The angles went through float32, and large ones lose the digits that say where in its "
        "turn a pair stands. Keep angles in float64 and cast the result once, at the end.",
        "ex-axial_rope_2d",
    ),
    Misconception(
        "axial-rope-2d-broadcasts",
        axial_broadcasts,
        "axial_rope_2d_refuses",
        "Rows or columns of another shape than (n,) were spread over the vectors without a word. "
        "Compare the shapes before you compute: a single row for all patches is a mistake.",
        "ex-axial_rope_2d",
    ),
    Misconception(
        "axial-rope-2d-leaves-a-rest",
        axial_leaves_a_rest,
        "axial_rope_2d_refuses",
        "Where 4 does not divide dim the last coordinates were passed through. Two halves of pairs "
        "need a multiple of 4: refuse any other width, with the number in the message.",
        "ex-axial_rope_2d",
    ),
)

# ------------------------------------------------------------------------------ mixed_rope_2d


def mixed(
    x: Array,
    rows: Array,
    cols: Array,
    row_freqs: Array,
    col_freqs: Array,
    angles: Callable[..., Array],
) -> Array:
    """mixed_rope_2d with other angles(rows (n, 1), cols (n, 1), row_freqs, col_freqs)."""
    two_d.mixed_rope_2d(x, rows, cols, row_freqs, col_freqs)  # refuses what is to be refused
    row_freqs, col_freqs = (np.asarray(f, dtype=np.float64) for f in (row_freqs, col_freqs))

    def per_pair(rows: Array, cols: Array) -> Array:
        return angles(rows[:, None], cols[:, None], row_freqs, col_freqs)

    return turned_pairs(x, rows, cols, per_pair)


def mixed_swapped(x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array) -> Array:
    return two_d.mixed_rope_2d(x, rows, cols, col_freqs, row_freqs)


def mixed_minus(x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array) -> Array:
    return mixed(x, rows, cols, row_freqs, col_freqs, lambda r, c, f, g: r * f - c * g)


def mixed_product(x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array) -> Array:
    return mixed(x, rows, cols, row_freqs, col_freqs, lambda r, c, f, g: r * f * (c * g))


def mixed_mean(x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array) -> Array:
    return mixed(x, rows, cols, row_freqs, col_freqs, lambda r, c, f, g: (r * f + c * g) / 2)


def mixed_rows_only(
    x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array
) -> Array:
    return mixed(x, rows, cols, row_freqs, col_freqs, lambda r, c, f, g: r * f)


def mixed_one_set(x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array) -> Array:
    return mixed(x, rows, cols, row_freqs, col_freqs, lambda r, c, f, g: (r + c) * f)


def mixed_as_axial(x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array) -> Array:
    def angles(rows: Array, cols: Array, row_freqs: Array, col_freqs: Array) -> Array:
        half = len(row_freqs) // 2
        by_row, by_column = rows * row_freqs, cols * col_freqs
        return np.concatenate([by_row[:, :half], by_column[:, half:]], axis=-1)

    return mixed(x, rows, cols, row_freqs, col_freqs, angles)


def mixed_clockwise(
    x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array
) -> Array:
    return mixed(x, rows, cols, row_freqs, col_freqs, lambda r, c, f, g: -(r * f + c * g))


def mixed_with_ladder(
    x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array
) -> Array:
    def angles(rows: Array, cols: Array, row_freqs: Array, col_freqs: Array) -> Array:
        ladder = rope.rope_angles(1, 2 * len(row_freqs), 100.0)
        return (rows * row_freqs + cols * col_freqs) * ladder

    return mixed(x, rows, cols, row_freqs, col_freqs, angles)


def mixed_half_layout(
    x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array
) -> Array:
    two_d.mixed_rope_2d(x, rows, cols, row_freqs, col_freqs)
    x = rope.as_floats(x, "x")
    half = x.shape[-1] // 2
    order = np.arange(x.shape[-1]).reshape(2, half).T.ravel()  # 0, half, 1, half + 1, …
    turned = two_d.mixed_rope_2d(x[..., order], rows, cols, row_freqs, col_freqs)
    return turned[..., np.argsort(order)]


def mixed_tables_of_other_layout(
    x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array
) -> Array:
    """Neighbours are exchanged, but the angles are laid out φ0 φ1 … φ0 φ1 … for the halves."""
    two_d.mixed_rope_2d(x, rows, cols, row_freqs, col_freqs)
    x = rope.as_floats(x, "x")
    rows, cols = two_d.as_places(x, rows, cols)
    angles = np.tile(rows[:, None] * row_freqs + cols[:, None] * col_freqs, 2)
    swapped = np.stack([-x[..., 1::2], x[..., 0::2]], axis=-1).reshape(x.shape)
    return (x * np.cos(angles) + swapped * np.sin(angles)).astype(x.dtype)


def mixed_into_integers(
    x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array
) -> Array:
    return two_d.mixed_rope_2d(x, rows, cols, row_freqs, col_freqs).astype(x.dtype)


def mixed_in_place(x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array) -> Array:
    right = two_d.mixed_rope_2d(x, rows, cols, row_freqs, col_freqs)
    if x.dtype != right.dtype:
        return right
    x[...] = right
    return x


def mixed_always_float64(
    x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array
) -> Array:
    return two_d.mixed_rope_2d(x, rows, cols, row_freqs, col_freqs).astype(np.float64)


def mixed_float32_angles(
    x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array
) -> Array:
    def angles(rows: Array, cols: Array, row_freqs: Array, col_freqs: Array) -> Array:
        return (rows * row_freqs + cols * col_freqs).astype(np.float32)

    return mixed(x, rows, cols, row_freqs, col_freqs, angles)


def mixed_spreads_frequencies(
    x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array
) -> Array:
    pairs = (np.shape(x)[-1] // 2,)
    row_freqs, col_freqs = (np.broadcast_to(f, pairs) for f in (row_freqs, col_freqs))
    return two_d.mixed_rope_2d(x, rows, cols, row_freqs, col_freqs)


def mixed_spreads_places(
    x: Array, rows: Array, cols: Array, row_freqs: Array, col_freqs: Array
) -> Array:
    if np.ndim(x) < 2:
        return two_d.mixed_rope_2d(x, rows, cols, row_freqs, col_freqs)
    count = np.shape(x)[-2:-1]
    rows, cols = (np.broadcast_to(p, count) for p in (rows, cols))
    return two_d.mixed_rope_2d(x, rows, cols, row_freqs, col_freqs)


MIXED_ROPE_2D = (
    Misconception(
        "mixed-rope-2d-swapped",
        mixed_swapped,
        "mixed_rope_2d_by_hand",
        "The frequencies have changed places: rows were multiplied by those of the columns. Each "
        "pair has a frequency for either axis.",
        "grid-mixed",
    ),
    Misconception(
        "mixed-rope-2d-minus",
        mixed_minus,
        "mixed_rope_2d_by_hand",
        "The column's turn was subtracted from the row's. The two are added; a frequency may be "
        "negative, and that is how a pair comes to look along the other diagonal.",
        "grid-mixed",
    ),
    Misconception(
        "mixed-rope-2d-product",
        mixed_product,
        "mixed_rope_2d_by_hand",
        "The turns of row and column were multiplied. Then the angle is no longer even in steps "
        "of the grid, and scores do not depend on distances alone. Add the two.",
        "grid-mixed",
    ),
    Misconception(
        "mixed-rope-2d-mean",
        mixed_mean,
        "mixed_rope_2d_by_hand",
        "The angle is the mean of two turns, so it is half of what it should be. Nothing needs to "
        "be balanced: a pair turns by the sum.",
        "grid-mixed",
    ),
    Misconception(
        "mixed-rope-2d-rows-only",
        mixed_rows_only,
        "mixed_rope_2d_by_hand",
        "The pairs turn with the row alone, so patches of one row cannot be told apart. The "
        "column's turn, by its own frequency, is added to it.",
        "grid-mixed",
    ),
    Misconception(
        "mixed-rope-2d-one-set",
        mixed_one_set,
        "mixed_rope_2d_by_hand",
        "The frequencies of the row were used for the column too, so a pair turns by row plus "
        "column and looks along one diagonal only. The column has frequencies of its own.",
        "grid-mixed",
    ),
    Misconception(
        "mixed-rope-2d-as-axial",
        mixed_as_axial,
        "mixed_rope_2d_by_hand",
        "The first half turns with the row alone and the second half with the column alone. Mixed "
        "means that every pair turns with both: the axial case is the one with zeros in it.",
        "grid-mixed",
    ),
    Misconception(
        "mixed-rope-2d-clockwise",
        mixed_clockwise,
        "mixed_rope_2d_by_hand",
        "Every pair turns the wrong way. A positive angle turns the first coordinate of a pair "
        "towards the second.",
        "grid-mixed",
    ),
    Misconception(
        "mixed-rope-2d-with-ladder",
        mixed_with_ladder,
        "mixed_rope_2d_published_angles",
        "A ladder of frequencies was multiplied in. The frequencies that were passed are all there "
        "are: a model learns them, and they need no base.",
        "grid-mixed",
    ),
    Misconception(
        "mixed-rope-2d-half-layout",
        mixed_half_layout,
        "mixed_rope_2d_published_angles",
        "Coordinate i was paired with i + dim/2. The pairs are neighbours here: the interleaved "
        "layout.",
        "grid-mixed",
    ),
    Misconception(
        "mixed-rope-2d-tables-of-other-layout",
        mixed_tables_of_other_layout,
        "mixed_rope_2d_published_angles",
        "Neighbours were turned, but each by another angle: yours are repeated as a whole, φ0 φ1 … "
        "φ0 φ1 …, which belongs to the half layout. The two of a pair share one angle.",
        "grid-mixed",
    ),
    Misconception(
        "mixed-rope-2d-into-integers",
        mixed_into_integers,
        "mixed_rope_2d_integers",
        "The fractions were cut off because the result has the integer dtype of x. Turn integers "
        "into float64 before you rotate.",
        "ex-mixed_rope_2d",
    ),
    Misconception(
        "mixed-rope-2d-in-place",
        mixed_in_place,
        "mixed_rope_2d_leaves_input",
        "x itself was overwritten. Whoever passed it in may still hold it, so write into a new "
        "array.",
        "ex-mixed_rope_2d",
    ),
    Misconception(
        "mixed-rope-2d-always-float64",
        mixed_always_float64,
        "mixed_rope_2d_keeps_dtype",
        "The numbers are right, but a small floating dtype came back as float64. Cast the result "
        "to the floating dtype of x, as the last step.",
        "ex-mixed_rope_2d",
    ),
    Misconception(
        "mixed-rope-2d-float32-angles",
        mixed_float32_angles,
        "mixed_rope_2d_precise_far_out",
        "The angles went through float32, and large ones lose the digits that say where in its "
        "turn a pair stands. Keep angles in float64 and cast the result once, at the end.",
        "ex-mixed_rope_2d",
    ),
    Misconception(
        "mixed-rope-2d-spreads-frequencies",
        mixed_spreads_frequencies,
        "mixed_rope_2d_refuses",
        "A single frequency was spread over all pairs without a word. Each pair needs its own two: "
        "compare the shapes with (dim/2,) before you compute.",
        "ex-mixed_rope_2d",
    ),
    Misconception(
        "mixed-rope-2d-spreads-places",
        mixed_spreads_places,
        "mixed_rope_2d_refuses",
        "A single row or column was spread over all vectors without a word. Each vector needs its "
        "own two: compare the shapes with (n,) before you compute.",
        "ex-mixed_rope_2d",
    ),
)

# -------------------------------------------------------------------------------- resize_grid

Size = tuple[int, int]


def along(table: Array, old_hw: Size, new_hw: Size, weights: Callable[[int, int], Array]) -> Array:
    """resize_grid with weights(old, new), a matrix (new, old), along either axis."""
    right = two_d.resize_grid(table, old_hw, new_hw)  # refuses what is to be refused
    grid = np.asarray(table).reshape(*old_hw, -1)
    down, across = (weights(old, new) for old, new in zip(old_hw, new_hw, strict=True))
    resized = np.einsum("ih,jw,hwd->ijd", down, across, grid)
    return resized.reshape(right.shape).astype(right.dtype)


def linear(places: Array, old: int) -> Array:
    """Weights (new, old) that read between the two neighbours of each place."""
    lower = np.clip(np.floor(places), 0, max(old - 2, 0)).astype(int)
    upper = np.minimum(lower + 1, old - 1)
    weight = places - lower
    matrix = np.zeros((len(places), old))
    np.add.at(matrix, (np.arange(len(places)), lower), 1 - weight)
    np.add.at(matrix, (np.arange(len(places)), upper), weight)
    return matrix


def half_pixel(old: int, new: int) -> Array:
    return (np.arange(new) + 0.5) * old / new - 0.5


def resize_corners(table: Array, old_hw: Size, new_hw: Size) -> Array:
    def weights(old: int, new: int) -> Array:
        return linear(np.linspace(0, old - 1, new), old)

    return along(table, old_hw, new_hw, weights)


def resize_upper_left(table: Array, old_hw: Size, new_hw: Size) -> Array:
    def weights(old: int, new: int) -> Array:
        return linear(np.minimum(np.arange(new) * old / new, old - 1), old)

    return along(table, old_hw, new_hw, weights)


def resize_nearest(table: Array, old_hw: Size, new_hw: Size) -> Array:
    def weights(old: int, new: int) -> Array:
        nearest = (2 * np.arange(new) + 1) * old // (2 * new)
        return np.eye(old)[nearest]

    return along(table, old_hw, new_hw, weights)


def resize_extrapolates(table: Array, old_hw: Size, new_hw: Size) -> Array:
    return along(table, old_hw, new_hw, lambda old, new: linear(half_pixel(old, new), old))


def resize_not_clamped(table: Array, old_hw: Size, new_hw: Size) -> Array:
    """The indices are clamped and the places are not: the upper edge is right, the lower is not."""

    def weights(old: int, new: int) -> Array:
        places = half_pixel(old, new)
        lower = np.clip(np.floor(places).astype(int), 0, old - 1)
        share = (places - lower)[:, None]
        eye = np.eye(old)
        return (1 - share) * eye[lower] + share * eye[np.minimum(lower + 1, old - 1)]

    return along(table, old_hw, new_hw, weights)


def resize_weights_swapped(table: Array, old_hw: Size, new_hw: Size) -> Array:
    def weights(old: int, new: int) -> Array:
        places = np.clip(half_pixel(old, new), 0, old - 1)
        lower = np.floor(places).astype(int)
        share = (places - lower)[:, None]
        eye = np.eye(old)
        return share * eye[lower] + (1 - share) * eye[np.minimum(lower + 1, old - 1)]

    return along(table, old_hw, new_hw, weights)


def resize_upside_down(table: Array, old_hw: Size, new_hw: Size) -> Array:
    """new/old in the place of old/new."""

    def weights(old: int, new: int) -> Array:
        return linear(np.clip((np.arange(new) + 0.5) * new / old - 0.5, 0, old - 1), old)

    return along(table, old_hw, new_hw, weights)


def resize_nearest_corner(table: Array, old_hw: Size, new_hw: Size) -> Array:
    """torch's mode="nearest": the whole part of j·old/new, with no half added."""

    def weights(old: int, new: int) -> Array:
        return np.eye(old)[np.arange(new) * old // new]

    return along(table, old_hw, new_hw, weights)


def resize_old_swapped(table: Array, old_hw: Size, new_hw: Size) -> Array:
    """reshape(w, h, dim), which the third hint warns of; the new grid is read rightly."""
    two_d.resize_grid(table, old_hw, new_hw)
    return two_d.resize_grid(table, old_hw[::-1], new_hw)


def resize_new_swapped(table: Array, old_hw: Size, new_hw: Size) -> Array:
    two_d.resize_grid(table, old_hw, new_hw)
    return two_d.resize_grid(table, old_hw, new_hw[::-1])


def resize_zeros_outside(table: Array, old_hw: Size, new_hw: Size) -> Array:
    """torch's grid_sample does this unless it is told another padding."""

    def weights(old: int, new: int) -> Array:
        return linear(half_pixel(old, new) + 1, old + 2)[:, 1:-1]

    return along(table, old_hw, new_hw, weights)


def resize_wraps_round(table: Array, old_hw: Size, new_hw: Size) -> Array:
    def weights(old: int, new: int) -> Array:
        places = half_pixel(old, new)
        lower = np.floor(places).astype(int)
        share = (places - lower)[:, None]
        eye = np.eye(old)
        return (1 - share) * eye[lower % old] + share * eye[(lower + 1) % old]

    return along(table, old_hw, new_hw, weights)


def resize_antialiased(table: Array, old_hw: Size, new_hw: Size) -> Array:
    """A tent as wide as the new patch when the grid shrinks, as picture libraries do it."""

    def weights(old: int, new: int) -> Array:
        wide = max(old / new, 1.0)
        away = np.abs(half_pixel(old, new)[:, None] - np.arange(old)) / wide
        tent = np.maximum(1 - away, 0)
        return tent / tent.sum(axis=-1, keepdims=True)

    return along(table, old_hw, new_hw, weights)


def resize_bicubic(table: Array, old_hw: Size, new_hw: Size) -> Array:
    """The mode that most vision transformers are resized with; another curve, same places."""

    def weights(old: int, new: int) -> Array:
        a, places = -0.75, half_pixel(old, new)
        matrix = np.zeros((new, old))
        for step in range(-1, 3):
            at = np.floor(places).astype(int) + step
            t = np.abs(places - at)
            near = (a + 2) * t**3 - (a + 3) * t**2 + 1
            far = a * (t**3 - 5 * t**2 + 8 * t - 4)
            np.add.at(matrix, (np.arange(new), np.clip(at, 0, old - 1)), np.where(t < 1, near, far))
        return matrix

    return along(table, old_hw, new_hw, weights)


def resize_one_line(table: Array, old_hw: Size, new_hw: Size) -> Array:
    """The patches are stretched as the sequence they are flattened to."""
    two_d.resize_grid(table, old_hw, new_hw)
    return two_d.resize_grid(table, (1, math.prod(old_hw)), (1, math.prod(new_hw)))


def resize_sizes_swapped(table: Array, old_hw: Size, new_hw: Size) -> Array:
    return two_d.resize_grid(table, old_hw[::-1], new_hw[::-1])


def resize_column_major(table: Array, old_hw: Size, new_hw: Size) -> Array:
    right = two_d.resize_grid(table, old_hw, new_hw)
    return right.reshape(*new_hw, -1).swapaxes(0, 1).reshape(right.shape)


def resize_by_factor(table: Array, old_hw: Size, new_hw: Size) -> Array:
    """https://github.com/facebookresearch/dino/issues/8 and
    https://github.com/facebookresearch/dinov2/pull/378: a scale factor, and a size rounded down.
    """
    two_d.resize_grid(table, old_hw, new_hw)
    sizes = (int(old * (new / old)) for old, new in zip(old_hw, new_hw, strict=True))
    return two_d.resize_grid(table, old_hw, (next(sizes), next(sizes)))


def resize_unless_same_count(table: Array, old_hw: Size, new_hw: Size) -> Array:
    """A shortcut in the code of https://github.com/facebookresearch/dino/issues/8."""
    right = two_d.resize_grid(table, old_hw, new_hw)
    return np.array(table, dtype=right.dtype) if len(right) == len(table) else right


def resize_into_integers(table: Array, old_hw: Size, new_hw: Size) -> Array:
    return two_d.resize_grid(table, old_hw, new_hw).astype(np.asarray(table).dtype)


def resize_always_float64(table: Array, old_hw: Size, new_hw: Size) -> Array:
    return two_d.resize_grid(table, old_hw, new_hw).astype(np.float64)


def resize_first_rows(table: Array, old_hw: Size, new_hw: Size) -> Array:
    count = old_hw[0] * old_hw[1]
    return two_d.resize_grid(np.asarray(table)[: max(count, 0)], old_hw, new_hw)


def resize_to_nothing(table: Array, old_hw: Size, new_hw: Size) -> Array:
    if min(new_hw) < 1:
        return two_d.resize_grid(table, old_hw, old_hw)[:0]
    return two_d.resize_grid(table, old_hw, new_hw)


def resize_in_place(table: Array, old_hw: Size, new_hw: Size) -> Array:
    right = two_d.resize_grid(table, old_hw, new_hw)
    if len(right) < len(table) and table.dtype == right.dtype:
        table[: len(right)] = right
    return right


RESIZE_GRID = (
    Misconception(
        "resize-grid-corners",
        resize_corners,
        "resize_grid_by_hand",
        "The outermost patches were kept and the rest spread between them, as along a line of "
        "tokens. A patch has an extent: the centre of the first of four lies nearer to the edge "
        "than that of the first of two.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-upper-left",
        resize_upper_left,
        "resize_grid_by_hand",
        "The places are those of the patches' upper left corners, so the whole picture shifts. "
        "The vector of a patch belongs to its centre, half a patch further on, before and after.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-nearest",
        resize_nearest,
        "resize_grid_by_hand",
        "Each new patch is a copy of the nearest old one, so neighbours share a vector and cannot "
        "be told apart. Take a weighted mean of the neighbours along both axes.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-extrapolates",
        resize_extrapolates,
        "resize_grid_by_hand",
        "Beyond the outermost centres your vectors go on along a straight line, to values that "
        "the table never had. Clamp the places to the old grid: the edge goes on as it is.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-not-clamped",
        resize_not_clamped,
        "resize_grid_by_hand",
        "The indices stay in the table, but the places do not: before the first centre the weight "
        "becomes negative, and the values leave the table's range. Clamp the place first, then "
        "take its floor and its weight.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-weights-swapped",
        resize_weights_swapped,
        "resize_grid_by_hand",
        "The two weights have changed places: the nearer of two old patches counts for less. The "
        "further a place lies beyond the first, the more the second counts.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-upside-down",
        resize_upside_down,
        "resize_grid_by_hand",
        "The ratio of the sizes is upside down: with more new patches than old ones your places "
        "run far beyond the old grid. A step between new patches is old/new of an old one.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-nearest-corner",
        resize_nearest_corner,
        "resize_grid_by_hand",
        "Each new patch is a copy of one old patch, the one in which its corner lies. Copies "
        "cannot be told apart: find the place of its centre, and mix the two nearest old centres.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-old-swapped",
        resize_old_swapped,
        "resize_grid_by_hand",
        "The old grid was read as (width, height), so the table is cut into rows of a wrong length "
        "and neighbours are torn apart. Row-major: the height is the first axis.",
        "grid-rows",
    ),
    Misconception(
        "resize-grid-new-swapped",
        resize_new_swapped,
        "resize_grid_by_hand",
        "The new grid was read as (width, height): the result has the right number of rows, and "
        "belongs to the image turned on its side. new_hw is the height first.",
        "grid-rows",
    ),
    Misconception(
        "resize-grid-zeros-outside",
        resize_zeros_outside,
        "resize_grid_by_hand",
        "At the edges the patches were mixed with zeros, as if the grid were framed with empty "
        "ones. Clamp the places to the old grid: the edge goes on as it is.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-wraps-round",
        resize_wraps_round,
        "resize_grid_by_hand",
        "The patches at one edge are mixed with those at the opposite one: an index of −1 counts "
        "from the end. Clamp the places to the old grid before you look anything up.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-bicubic",
        resize_bicubic,
        "resize_grid_by_hand",
        "This is bicubic interpolation, the usual one in model code: it looks at four neighbours "
        "along each axis and overshoots. Asked for is the bilinear one, with two.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-one-line",
        resize_one_line,
        "resize_grid_by_hand",
        "The patches were stretched as one long line. So the end of a row is mixed with the "
        "beginning of the next, which lies at the other side of the image. Give them their grid "
        "back first.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-sizes-swapped",
        resize_sizes_swapped,
        "resize_grid_rectangles",
        "Sizes were read as (width, height). On squares nobody notices; on rectangles the table is "
        "cut into rows of a wrong length.",
        "grid-rows",
    ),
    Misconception(
        "resize-grid-column-major",
        resize_column_major,
        "resize_grid_by_hand",
        "The new vectors are right, but they come column by column. Flatten the new grid as the "
        "old one was: row by row.",
        "grid-rows",
    ),
    Misconception(
        "resize-grid-antialiased",
        resize_antialiased,
        "resize_grid_shrinks",
        "When the grid shrinks your patches are means over many old ones: antialiasing, as for "
        "photographs. Here each new patch is read at its centre, between two rows and two columns.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-into-integers",
        resize_into_integers,
        "resize_grid_integers",
        "A table of integers gave integers: the fractions between the patches are cut off. Compute "
        "in floats, and let integers become float64.",
        "ex-resize_grid",
    ),
    Misconception(
        "resize-grid-first-rows",
        resize_first_rows,
        "resize_grid_refuses_tables",
        "A table with more rows than the grid has patches was cut off. The row too many is mostly "
        "a class token's, and it stands first, not last: refuse such a table.",
        "grid-class-token",
    ),
    Misconception(
        "resize-grid-by-factor",
        resize_by_factor,
        "resize_grid_exact_sizes",
        "The new size was computed from a scale factor and rounded down: for some sizes it comes "
        "out one short. You were told the size, so use it.",
        "grid-resize",
    ),
    Misconception(
        "resize-grid-unless-same-count",
        resize_unless_same_count,
        "resize_grid_same_count",
        "The table came back as it was because the numbers of patches are equal. A grid of 2×6 and "
        "one of 3×4 have as many patches, and no other thing in common: compare the sizes.",
        "grid-rows",
    ),
    Misconception(
        "resize-grid-always-float64",
        resize_always_float64,
        "resize_grid_keeps_dtype",
        "The numbers are right, but a small floating dtype came back as float64. Cast the result "
        "to the floating dtype of the table, as the last step.",
        "ex-resize_grid",
    ),
    Misconception(
        "resize-grid-in-place",
        resize_in_place,
        "resize_grid_leaves_input",
        "The new vectors were written into the table that was passed in. Whoever holds it wanted "
        "to keep it, for a third size perhaps: write into a new array.",
        "ex-resize_grid",
    ),
    Misconception(
        "resize-grid-to-nothing",
        resize_to_nothing,
        "resize_grid_refuses_sizes",
        "A grid without a patch gave a table without rows. Such a size comes from a mistake "
        "further up, such as an image smaller than a patch: refuse it.",
        "ex-resize_grid",
    ),
)

# --------------------------------------------------------------------------------- fixed_grid


def centres_with(compute: Callable[[int, int], Array]) -> Callable[[int, int], Array]:
    """A function that refuses empty grids and computes the others as given."""

    def centres(height: int, width: int) -> Array:
        two_d.require_grid(height, width)
        return compute(height, width)

    return centres


def middle(count: int) -> Array:
    return (np.arange(count) + 0.5) / count


def grid_mesh_swapped() -> Callable[[int, int], Array]:
    """https://github.com/huggingface/transformers/pull/41380, a mesh grid with its axes swapped:
    what it calls rows are the columns, and on squares that comes to the same.
    """

    def compute(height: int, width: int) -> Array:
        down, across = np.meshgrid(middle(width), middle(height), indexing="ij")
        return np.stack([down, across], axis=-1).reshape(-1, 2)

    return centres_with(compute)


def grid_counts_swapped() -> Callable[[int, int], Array]:
    """The same mesh, before it is divided: rows are counted up to the width."""

    def compute(height: int, width: int) -> Array:
        rows, cols = two_d.grid_positions(width, height)
        return np.stack([(rows + 0.5) / height, (cols + 0.5) / width], axis=-1)

    return centres_with(compute)


def grid_read_down() -> Callable[[int, int], Array]:
    def compute(height: int, width: int) -> Array:
        centres = two_d.fixed_grid()(height, width)
        return centres.reshape(height, width, 2).swapaxes(0, 1).reshape(-1, 2)

    return centres_with(compute)


def grid_across_first() -> Callable[[int, int], Array]:
    return centres_with(lambda height, width: two_d.fixed_grid()(height, width)[:, ::-1])


def grid_divided_crosswise() -> Callable[[int, int], Array]:
    def compute(height: int, width: int) -> Array:
        rows, cols = two_d.grid_positions(height, width)
        return np.stack([(rows + 0.5) / width, (cols + 0.5) / height], axis=-1)

    return centres_with(compute)


def grid_of_longer_side() -> Callable[[int, int], Array]:
    def compute(height: int, width: int) -> Array:
        places = np.stack(two_d.grid_positions(height, width), axis=-1)
        return (places + 0.5) / max(height, width)

    return centres_with(compute)


def grid_corners() -> Callable[[int, int], Array]:
    def compute(height: int, width: int) -> Array:
        return np.stack(two_d.grid_positions(height, width), axis=-1) / (height, width)

    return centres_with(compute)


def grid_edge_to_edge() -> Callable[[int, int], Array]:
    def compute(height: int, width: int) -> Array:
        steps = max(height - 1, 1), max(width - 1, 1)
        return np.stack(two_d.grid_positions(height, width), axis=-1) / steps

    return centres_with(compute)


def grid_around_zero() -> Callable[[int, int], Array]:
    return centres_with(lambda height, width: 2 * two_d.fixed_grid()(height, width) - 1)


def grid_three_axes() -> Callable[[int, int], Array]:
    def compute(height: int, width: int) -> Array:
        return two_d.fixed_grid()(height, width).reshape(height, width, 2)

    return centres_with(compute)


def grid_remembers_count() -> Callable[[int, int], Array]:
    """https://github.com/Mountchicken/Union14M/issues/12: 8×32 patches took the table of 16×16."""
    kept: dict[int, Array] = {}

    def compute(height: int, width: int) -> Array:
        return kept.setdefault(height * width, two_d.fixed_grid()(height, width))

    return centres_with(compute)


def grid_float32() -> Callable[[int, int], Array]:
    return centres_with(lambda height, width: two_d.fixed_grid()(height, width).astype(np.float32))


def grid_without_patches() -> Callable[[int, int], Array]:
    def centres(height: int, width: int) -> Array:
        if height < 1 or width < 1:
            return np.zeros((0, 2))
        return two_d.fixed_grid()(height, width)

    return centres


FIXED_GRID = (
    Misconception(
        "fixed-grid-mesh-swapped",
        grid_mesh_swapped,
        "fixed_grid_two_by_four",
        "The mesh has the width along its first axis, so what is called the height runs over the "
        "columns. On squares that makes no difference, on rectangles each patch gets another's "
        "place.",
        "grid-rectangles",
    ),
    Misconception(
        "fixed-grid-counts-swapped",
        grid_counts_swapped,
        "fixed_grid_two_by_four",
        "Rows are counted up to the width and columns up to the height: some centres lie outside "
        "the image. A mesh of rows by columns has the height along its first axis.",
        "grid-rectangles",
    ),
    Misconception(
        "fixed-grid-read-down",
        grid_read_down,
        "fixed_grid_two_by_four",
        "The centres are right, but they come column by column. The patches are flattened row by "
        "row, so the second axis of the mesh has to be the one that runs along a row.",
        "grid-rows",
    ),
    Misconception(
        "fixed-grid-across-first",
        grid_across_first,
        "fixed_grid_two_by_four",
        "The fraction of the width stands before that of the height: x before y, as in geometry. "
        "Here it is row first, then column.",
        "grid-conventions",
    ),
    Misconception(
        "fixed-grid-divided-crosswise",
        grid_divided_crosswise,
        "fixed_grid_two_by_four",
        "Rows were divided by the width and columns by the height, so on a rectangle some centres "
        "lie outside the image. A row is a fraction of the height.",
        "grid-rectangles",
    ),
    Misconception(
        "fixed-grid-of-longer-side",
        grid_of_longer_side,
        "fixed_grid_two_by_four",
        "Both fractions were taken of the longer side, which keeps the proportions of the image. "
        "Asked for is the fraction of the height and the fraction of the width.",
        "grid-rectangles",
    ),
    Misconception(
        "fixed-grid-corners",
        grid_corners,
        "fixed_grid_two_by_four",
        "These are the upper left corners of the patches. The centre lies half a patch further "
        "down and half a patch further right.",
        "grid-resize",
    ),
    Misconception(
        "fixed-grid-edge-to-edge",
        grid_edge_to_edge,
        "fixed_grid_two_by_four",
        "The first patch lies at 0 and the last one at 1, on the very edges of the image. The "
        "centres of patches stay half a patch away from them.",
        "grid-resize",
    ),
    Misconception(
        "fixed-grid-around-zero",
        grid_around_zero,
        "fixed_grid_two_by_four",
        "The fractions run from −1 to 1, around the middle of the image. Some models count so; "
        "here 0 is one edge and 1 the other.",
        "grid-conventions",
    ),
    Misconception(
        "fixed-grid-three-axes",
        grid_three_axes,
        "fixed_grid_two_by_four",
        "The result still has the axes of the mesh. The patches are one sequence: one axis with "
        "height·width entries, then the two fractions.",
        "grid-rows",
    ),
    Misconception(
        "fixed-grid-remembers-count",
        grid_remembers_count,
        "fixed_grid_other_grid",
        "A second grid of as many patches got the centres of the first. The number of patches "
        "does not tell the grid: remember nothing, or look up by both sizes, in their order.",
        "grid-rectangles",
    ),
    Misconception(
        "fixed-grid-float32",
        grid_float32,
        "fixed_grid_float64",
        "The centres are float32. Tables are float64 in this book; who needs less casts later.",
        "ex-fixed_grid",
    ),
    Misconception(
        "fixed-grid-without-patches",
        grid_without_patches,
        "fixed_grid_refuses_empty",
        "A grid without a patch gave an empty table. A size of 0 comes from a mistake further up: "
        "refuse it with a ValueError.",
        "ex-fixed_grid",
    ),
)

# --------------------------------------------------------------------- AxialRotaryEmbedding2D


def axial_module(
    head_dim: int,
    base: float,
    forward: Callable[..., Any],
    setup: Callable[[Any], None] = lambda module: None,
) -> Any:
    """A torch module whose forward(module, right, q, k, height, width, prefix) is given; `right`
    is the reference. torch is imported here, since it costs a second that NumPy's exercises need
    not pay.
    """
    import torch

    from solutions.with_torch.two_d import AxialRotaryEmbedding2D

    right = AxialRotaryEmbedding2D(head_dim, base)

    class Axial(torch.nn.Module):
        def forward(
            self, q: Any, k: Any, height: int, width: int, num_prefix_tokens: int = 0
        ) -> Any:
            right(q, k, height, width, num_prefix_tokens)  # refuses what is to be refused
            return forward(self, right, q, k, height, width, num_prefix_tokens)

    module = Axial()
    setup(module)
    return module


def per_pair(head_dim: int, base: float) -> Any:
    """Frequencies of the pairs of one half, float32."""
    import torch

    half = head_dim // 2
    return base ** (-torch.arange(0, half, 2, dtype=torch.float32) / half)


def places(height: int, width: int) -> tuple[Any, Any]:
    """Rows and columns of the patches, float32."""
    import torch

    rows = torch.arange(height, dtype=torch.float32).repeat_interleave(width)
    return rows, torch.arange(width, dtype=torch.float32).repeat(height)


def axial_angles(height: int, width: int, frequencies: Any) -> Any:
    """Angles (height·width, head_dim/2), in whatever dtype rows times frequencies have."""
    import torch

    return torch.cat([p[:, None] * frequencies for p in places(height, width)], dim=-1)


def turn_patches(x: Any, cos: Any, sin: Any, prefix: int, layout: str = "interleaved") -> Any:
    import torch

    from solutions.with_torch.rope import rotate_pairs

    turned = rotate_pairs(x[:, :, prefix:], cos, sin, layout)
    return torch.cat([x[:, :, :prefix], turned], dim=2)


def turn_both(q: Any, k: Any, angles: Any, prefix: int) -> tuple[Any, Any]:
    cos, sin = angles.cos(), angles.sin()
    return turn_patches(q, cos, sin, prefix), turn_patches(k, cos, sin, prefix)


def module_column_first(head_dim: int, base: float = 100.0) -> Any:
    """The order of RoPE-ViT's own code."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        angles = axial_angles(height, width, per_pair(head_dim, base))
        return turn_both(q, k, angles.roll(head_dim // 4, dims=-1), prefix)

    return axial_module(head_dim, base, forward)


def module_half_layout(head_dim: int, base: float = 100.0) -> Any:
    """Pairs (i, i + head_dim/2), the row's first: the layout of most open code for text."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        angles = axial_angles(height, width, per_pair(head_dim, base))
        cos, sin = angles.cos(), angles.sin()
        return tuple(turn_patches(x, cos, sin, prefix, "half") for x in (q, k))

    return axial_module(head_dim, base, forward)


def module_ladder_of_head_dim(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        return type(right)(head_dim, base**0.5)(q, k, height, width, prefix)

    return axial_module(head_dim, base, forward)


def module_ladder_of_quarter(head_dim: int, base: float = 100.0) -> Any:
    """The exponent's divisor is the number of pairs, and the 2 above it stands there too."""

    def forward(m: Any, right: Any, *inputs: Any) -> Any:
        return type(right)(head_dim, base**2)(*inputs)

    return axial_module(head_dim, base, forward)


def module_ladder_goes_on(head_dim: int, base: float = 100.0) -> Any:
    """One ladder for all pairs: its fast half for the row, its slow half for the column."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        import torch

        ladder = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
        rows, cols = (p[:, None] for p in places(height, width))
        by_row, by_column = rows * ladder[: head_dim // 4], cols * ladder[head_dim // 4 :]
        return turn_both(q, k, torch.cat([by_row, by_column], dim=-1), prefix)

    return axial_module(head_dim, base, forward)


def module_half_in_each_half(head_dim: int, base: float = 100.0) -> Any:
    """Pairs (i, i + head_dim/4) inside either half."""

    def forward(m: Any, right: Any, q: Any, k: Any, *grid: int) -> Any:
        def woven(x: Any) -> Any:
            return x.unflatten(-1, (2, 2, head_dim // 4)).transpose(-1, -2).flatten(-3)

        def unwoven(x: Any) -> Any:
            return x.unflatten(-1, (2, head_dim // 4, 2)).transpose(-1, -2).flatten(-3)

        return tuple(unwoven(x) for x in right(woven(q), woven(k), *grid))

    return axial_module(head_dim, base, forward)


def module_clockwise(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        return turn_both(q, k, -axial_angles(height, width, per_pair(head_dim, base)), prefix)

    return axial_module(head_dim, base, forward)


def module_rows_only(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        angles = axial_angles(height, width, per_pair(head_dim, base))
        by_row = angles[:, : head_dim // 4].repeat(1, 2)
        return turn_both(q, k, by_row, prefix)

    return axial_module(head_dim, base, forward)


def module_first_half_only(head_dim: int, base: float = 100.0) -> Any:
    """The row turns its half; the other half is passed through."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        angles = axial_angles(height, width, per_pair(head_dim, base))
        angles[:, head_dim // 4 :] = 0
        return turn_both(q, k, angles, prefix)

    return axial_module(head_dim, base, forward)


def module_queries_not_rotated(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, *grid: int) -> Any:
        return q, right(q, k, *grid)[1]

    return axial_module(head_dim, base, forward)


def module_axes_alternate(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        angles = axial_angles(height, width, per_pair(head_dim, base))
        alternating = angles.unflatten(-1, (2, head_dim // 4)).transpose(-1, -2).flatten(-2)
        return turn_both(q, k, alternating, prefix)

    return axial_module(head_dim, base, forward)


def module_base_10000(head_dim: int, base: float = 10000.0) -> Any:
    return axial_module(head_dim, base, lambda m, right, *inputs: right(*inputs))


def module_without_base(head_dim: int, base: float = 100.0) -> Any:
    return axial_module(head_dim, base, lambda m, right, *inputs: type(right)(head_dim)(*inputs))


def module_keys_not_rotated(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, *grid: int) -> Any:
        return right(q, k, *grid)[0], k

    return axial_module(head_dim, base, forward)


def module_repeats_keys(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, *grid: int) -> Any:
        q_rotated, k_rotated = right(q, k, *grid)
        return q_rotated, k_rotated.repeat_interleave(q.shape[1] // k.shape[1], dim=1)

    return axial_module(head_dim, base, forward)


def module_sizes_swapped(head_dim: int, base: float = 100.0) -> Any:
    """https://github.com/huggingface/pytorch-image-models/pull/2541: H and W in the other order."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        return right(q, k, width, height, prefix)

    return axial_module(head_dim, base, forward)


def module_column_major(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        angles = axial_angles(height, width, per_pair(head_dim, base))
        turned = angles.unflatten(0, (height, width)).transpose(0, 1).flatten(0, 1)
        return turn_both(q, k, turned, prefix)

    return axial_module(head_dim, base, forward)


def module_prefix_takes_places(head_dim: int, base: float = 100.0) -> Any:
    """The class token is token 0, so it gets row 0, column 0, and all patches move on by one."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        import torch

        numbers = torch.arange(q.shape[2])
        rows, cols = (p.float()[:, None] for p in (numbers // width, numbers % width))
        frequencies = per_pair(head_dim, base)
        return turn_both(q, k, torch.cat([rows * frequencies, cols * frequencies], dim=-1), 0)

    return axial_module(head_dim, base, forward)


def module_patches_counted_on(head_dim: int, base: float = 100.0) -> Any:
    """The prefix is left alone, and yet it is counted: the first patch has its number in seq."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        import torch

        numbers = torch.arange(prefix, q.shape[2])
        rows, cols = (p.float()[:, None] for p in (numbers // width, numbers % width))
        frequencies = per_pair(head_dim, base)
        angles = torch.cat([rows * frequencies, cols * frequencies], dim=-1)
        return turn_both(q, k, angles, prefix)

    return axial_module(head_dim, base, forward)


def module_prefix_last(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        rolled = (x.roll(prefix, dims=2) for x in (q, k))
        return tuple(x.roll(-prefix, dims=2) for x in right(*rolled, height, width, prefix))

    return axial_module(head_dim, base, forward)


def module_prefix_dropped(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        return tuple(x[:, :, prefix:] for x in right(q, k, height, width, prefix))

    return axial_module(head_dim, base, forward)


def module_one_prefix_token(head_dim: int, base: float = 100.0) -> Any:
    """A class token alone was thought of, no registers: further prefix tokens turn as patches."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        import torch

        angles = axial_angles(height, width, per_pair(head_dim, base))
        spare = max(prefix - 1, 0)
        return turn_both(
            q, k, torch.cat([angles[:1].expand(spare, -1) + 1, angles]), prefix - spare
        )

    return axial_module(head_dim, base, forward)


def module_remembers_count(head_dim: int, base: float = 100.0) -> Any:
    """https://github.com/Mountchicken/Union14M/issues/12: 8×32 patches took the table of 16×16."""

    def setup(module: Any) -> None:
        module.memory = {}

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        angles = axial_angles(height, width, per_pair(head_dim, base))
        return turn_both(q, k, m.memory.setdefault(height * width, angles), prefix)

    return axial_module(head_dim, base, forward, setup)


def module_remembers_first_grid(head_dim: int, base: float = 100.0) -> Any:
    """A buffer made at the first call, and made again only when it is too short."""

    def setup(module: Any) -> None:
        module.sizes = None

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        if m.sizes is None or m.sizes[0] * m.sizes[1] < height * width:
            m.sizes = (height, width)
        known_height, known_width = m.sizes
        angles = axial_angles(known_height, known_width, per_pair(head_dim, base))
        return turn_both(q, k, angles[: height * width], prefix)

    return axial_module(head_dim, base, forward, setup)


def module_any_length(head_dim: int, base: float = 100.0) -> Any:
    """However many tokens come: those that have a place in the grid turn, the rest stays."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        return right(q, k, height, width, prefix)

    module = axial_module(head_dim, base, forward)
    strict = module.forward

    def lenient(q: Any, k: Any, height: int, width: int, num_prefix_tokens: int = 0) -> Any:
        if min(height, width) < 1 or num_prefix_tokens < 0 or q.shape[2] != k.shape[2]:
            return strict(q, k, height, width, num_prefix_tokens)
        seq = num_prefix_tokens + height * width
        if q.shape[2] == seq:
            return strict(q, k, height, width, num_prefix_tokens)
        angles = axial_angles(height, width, per_pair(head_dim, base))
        angles = angles[: max(q.shape[2] - num_prefix_tokens, 0)]
        prefix = q.shape[2] - len(angles)
        return turn_both(q, k, angles, prefix)

    module.forward = lenient
    return module


def module_looks_at_q_alone(head_dim: int, base: float = 100.0) -> Any:
    """The keys' shape is never compared with the queries', and one key broadcasts to all."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        return right(q, k, height, width, prefix)

    module = axial_module(head_dim, base, forward)
    strict = module.forward

    def lenient(q: Any, k: Any, height: int, width: int, num_prefix_tokens: int = 0) -> Any:
        if k.shape[2] == q.shape[2] or k.shape[3] != q.shape[3]:
            return strict(q, k, height, width, num_prefix_tokens)
        q_rotated, _ = strict(q, q, height, width, num_prefix_tokens)
        angles = axial_angles(height, width, per_pair(head_dim, base))
        return q_rotated, turn_both(k, k, angles, num_prefix_tokens)[1]

    module.forward = lenient
    return module


def module_angles_like_q(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        import torch

        frequencies = per_pair(head_dim, base).to(q.dtype)
        halves = [p.to(q.dtype)[:, None] * frequencies for p in places(height, width)]
        return turn_both(q, k, torch.cat(halves, dim=-1).float(), prefix)

    return axial_module(head_dim, base, forward)


def module_float32_results(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, *grid: int) -> Any:
        import torch

        wide = torch.promote_types(q.dtype, torch.float32)
        return right(q.to(wide), k.to(wide), *grid)

    return axial_module(head_dim, base, forward)


def module_buffer_cast(head_dim: int, base: float = 100.0) -> Any:
    """transformers#25681, on a grid: casting the module casts its frequencies."""

    def setup(module: Any) -> None:
        module.register_buffer("frequencies", per_pair(head_dim, base), persistent=False)

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        return turn_both(q, k, axial_angles(height, width, m.frequencies.float()), prefix)

    return axial_module(head_dim, base, forward, setup)


def module_buffer_as_it_is(head_dim: int, base: float = 100.0) -> Any:
    """The commonest form: whole rows and columns, times a buffer in the dtype that it has now."""

    def setup(module: Any) -> None:
        module.register_buffer("frequencies", per_pair(head_dim, base), persistent=False)

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        import torch

        halves = [p.long()[:, None] * m.frequencies for p in places(height, width)]
        return turn_both(q, k, torch.cat(halves, dim=-1), prefix)

    return axial_module(head_dim, base, forward, setup)


def module_of_a_square(head_dim: int, base: float = 100.0) -> Any:
    """The side of the grid is taken for the square root of the number of patches."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        import torch

        numbers, side = torch.arange(height * width), math.isqrt(height * width)
        rows, cols = (p.float()[:, None] for p in (numbers // side, numbers % side))
        frequencies = per_pair(head_dim, base)
        return turn_both(q, k, torch.cat([rows * frequencies, cols * frequencies], dim=-1), prefix)

    return axial_module(head_dim, base, forward)


def module_tables_cast(head_dim: int, base: float = 100.0) -> Any:
    """Cosines and sines of the first thousand rows or columns, in buffers."""
    import torch

    def setup(module: Any) -> None:
        angles = torch.arange(1024.0)[:, None] * per_pair(head_dim, base)
        module.register_buffer("cos", angles.cos(), persistent=False)
        module.register_buffer("sin", angles.sin(), persistent=False)

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        rows, cols = (p.long() for p in places(height, width))
        cos, sin = (torch.cat([t[rows], t[cols]], dim=-1) for t in (m.cos, m.sin))
        return turn_patches(q, cos, sin, prefix), turn_patches(k, cos, sin, prefix)

    return axial_module(head_dim, base, forward, setup)


def module_matrix_product(head_dim: int, base: float = 100.0) -> Any:
    """diffusers#13920, on a grid: under autocast a matrix product is bfloat16."""

    def forward(m: Any, right: Any, q: Any, k: Any, height: int, width: int, prefix: int) -> Any:
        import torch

        frequencies = per_pair(head_dim, base)[None]
        halves = [(p[:, None] @ frequencies).float() for p in places(height, width)]
        return turn_both(q, k, torch.cat(halves, dim=-1), prefix)

    return axial_module(head_dim, base, forward)


def module_in_place(head_dim: int, base: float = 100.0) -> Any:
    """unsloth#5001, on a grid."""

    def forward(m: Any, right: Any, q: Any, k: Any, *grid: int) -> Any:
        q_rotated, k_rotated = right(q, k, *grid)
        return q.copy_(q_rotated), k.copy_(k_rotated)

    return axial_module(head_dim, base, forward)


def module_without_gradients(head_dim: int, base: float = 100.0) -> Any:
    def forward(m: Any, right: Any, q: Any, k: Any, *grid: int) -> Any:
        q_rotated, k_rotated = right(q, k, *grid)
        return q_rotated.detach(), k_rotated.detach()

    return axial_module(head_dim, base, forward)


AXIAL_ROTARY_EMBEDDING_2D = (
    Misconception(
        "axial-rotary-embedding-2d-column-first",
        module_column_first,
        "axial_rotary_embedding_2d_published_numbers",
        "The column turns the first half and the row the second, as in RoPE-ViT's own code. Here "
        "the row comes first: a convention, but weights know only one.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-half-layout",
        module_half_layout,
        "axial_rotary_embedding_2d_published_numbers",
        "Coordinate i was paired with i + head_dim/2, as in most code for text. The pairs are "
        "neighbours here, those of the first half for the row, those of the second for the column.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-ladder-of-head-dim",
        module_ladder_of_head_dim,
        "axial_rotary_embedding_2d_published_numbers",
        "The exponent was divided by head_dim, but each half is a whole RoPE of width head_dim/2. "
        "Your pairs stop half-way down the ladder.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-ladder-of-quarter",
        module_ladder_of_quarter,
        "axial_rotary_embedding_2d_published_numbers",
        "The exponent −2i was divided by head_dim/4, the number of pairs in a half. It is divided "
        "by the width of the half, head_dim/2: your frequencies fall twice as fast as they should.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-ladder-goes-on",
        module_ladder_goes_on,
        "axial_rotary_embedding_2d_published_numbers",
        "One ladder runs through both halves: the row got the fast pairs, the column the slow "
        "ones. Each half has a ladder of its own that begins at 1, so that both see as sharply.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-half-in-each-half",
        module_half_in_each_half,
        "axial_rotary_embedding_2d_published_numbers",
        "Within each half, coordinate i was paired with the one a quarter of head_dim further on. "
        "The pairs are neighbours here: the interleaved layout.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-clockwise",
        module_clockwise,
        "axial_rotary_embedding_2d_published_numbers",
        "Every pair turns the wrong way. A positive angle turns the first coordinate of a pair "
        "towards the second.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-rows-only",
        module_rows_only,
        "axial_rotary_embedding_2d_published_numbers",
        "Both halves turn with the row, so patches of one row cannot be told apart. The second "
        "half is for the column.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-first-half-only",
        module_first_half_only,
        "axial_rotary_embedding_2d_published_numbers",
        "Only the first half was turned; the second came back as it was, so patches of one row "
        "cannot be told apart. The column turns the second half.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-queries-not-rotated",
        module_queries_not_rotated,
        "axial_rotary_embedding_2d_published_numbers",
        "The queries came back as they went in. Rotate both: only then does their dot product "
        "depend on how many rows and columns lie between them.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-axes-alternate",
        module_axes_alternate,
        "axial_rotary_embedding_2d_published_numbers",
        "Row and column take turns, pair by pair. Here the first half of the coordinates belongs "
        "to the row as a whole, the second half to the column.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-base-10000",
        module_base_10000,
        "axial_rotary_embedding_2d_published_numbers",
        "Without a base yours is 10000, the number for long texts. A grid has some tens of rows: "
        "the default here is 100, so that the slow pairs turn visibly too.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-ignores-base",
        module_without_base,
        "axial_rotary_embedding_2d_rectangles",
        "The base given at construction changes nothing: every module turns as with base 100.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-keys-not-rotated",
        module_keys_not_rotated,
        "axial_rotary_embedding_2d_published_numbers",
        "The keys came back as they went in. Rotate both: only then does their dot product depend "
        "on how many rows and columns lie between them.",
        "grid-axial",
    ),
    Misconception(
        "axial-rotary-embedding-2d-repeats-keys",
        module_repeats_keys,
        "axial_rotary_embedding_2d_rectangles",
        "The keys came back with as many heads as the queries. Rotate the few heads there are: "
        "repeating them is attention's business.",
        "grid-module",
    ),
    Misconception(
        "axial-rotary-embedding-2d-sizes-swapped",
        module_sizes_swapped,
        "axial_rotary_embedding_2d_published_numbers",
        "Height and width have changed places: a new row begins after as many patches as the grid "
        "is high. On squares that is right, on rectangles no row is.",
        "grid-rectangles",
    ),
    Misconception(
        "axial-rotary-embedding-2d-of-a-square",
        module_of_a_square,
        "axial_rotary_embedding_2d_published_numbers",
        "The side of the grid was taken for the square root of the number of patches. Height and "
        "width are given with each call, and most images are no squares.",
        "grid-rectangles",
    ),
    Misconception(
        "axial-rotary-embedding-2d-column-major",
        module_column_major,
        "axial_rotary_embedding_2d_published_numbers",
        "The patches are counted down the columns. They come as the image is read: all of row 0 "
        "first, from left to right.",
        "grid-rows",
    ),
    Misconception(
        "axial-rotary-embedding-2d-prefix-takes-places",
        module_prefix_takes_places,
        "axial_rotary_embedding_2d_prefix_tokens",
        "The prefix tokens were counted as patches, so every patch stands too far on. A class "
        "token has no place in the image: leave it, and let the first patch be row 0, column 0.",
        "grid-class-token",
    ),
    Misconception(
        "axial-rotary-embedding-2d-patches-counted-on",
        module_patches_counted_on,
        "axial_rotary_embedding_2d_prefix_tokens",
        "The prefix tokens were left alone, as they should be, but the patches were numbered on "
        "after them. The first patch stands in row 0, column 0, whatever comes before it.",
        "grid-class-token",
    ),
    Misconception(
        "axial-rotary-embedding-2d-prefix-last",
        module_prefix_last,
        "axial_rotary_embedding_2d_prefix_tokens",
        "The tokens at the end were left alone, those at the beginning were rotated. Prefix tokens "
        "are the first ones of the sequence.",
        "grid-class-token",
    ),
    Misconception(
        "axial-rotary-embedding-2d-prefix-dropped",
        module_prefix_dropped,
        "axial_rotary_embedding_2d_prefix_tokens",
        "The prefix tokens are gone from the result. They are not rotated, but attention still "
        "needs them: return all tokens, in their order.",
        "grid-class-token",
    ),
    Misconception(
        "axial-rotary-embedding-2d-one-prefix-token",
        module_one_prefix_token,
        "axial_rotary_embedding_2d_prefix_tokens",
        "One prefix token is left alone, further ones are rotated. Beside a class token a model "
        "may have registers: leave as many as num_prefix_tokens says.",
        "grid-class-token",
    ),
    Misconception(
        "axial-rotary-embedding-2d-remembers-count",
        module_remembers_count,
        "axial_rotary_embedding_2d_as_many_tokens",
        "A second grid of as many tokens got the angles of the first. The number of tokens does "
        "not tell the grid: remember nothing, or look up by both sizes, in their order.",
        "grid-rectangles",
    ),
    Misconception(
        "axial-rotary-embedding-2d-remembers-first-grid",
        module_remembers_first_grid,
        "axial_rotary_embedding_2d_as_many_tokens",
        "The angles of an earlier grid were cut to length and used again. In a sentence that "
        "works, but the rows of another grid begin elsewhere: build the angles from this grid.",
        "grid-rectangles",
    ),
    Misconception(
        "axial-rotary-embedding-2d-any-length",
        module_any_length,
        "axial_rotary_embedding_2d_refuses_length",
        "A sequence that does not fit the grid was taken, and some tokens stayed as they were. "
        "Compare its length with num_prefix_tokens + height·width, and refuse any other.",
        "grid-class-token",
    ),
    Misconception(
        "axial-rotary-embedding-2d-looks-at-q-alone",
        module_looks_at_q_alone,
        "axial_rotary_embedding_2d_refuses",
        "Only the length of q was compared with the grid. A single key was spread over all patches "
        "without a word: refuse a k whose batch, length or width is not q's.",
        "ex-AxialRotaryEmbedding2D",
    ),
    Misconception(
        "axial-rotary-embedding-2d-angles-like-q",
        module_angles_like_q,
        "axial_rotary_embedding_2d_bfloat16",
        "Positions or frequencies were cast to the dtype of q. bfloat16 cannot tell row or "
        "column 300 from 301: compute angles in float32 at least, and cast the result.",
        "grid-module",
    ),
    Misconception(
        "axial-rotary-embedding-2d-float32-results",
        module_float32_results,
        "axial_rotary_embedding_2d_bfloat16",
        "Low-precision queries came back as float32. Compute in float32, but return the dtype "
        "that came in, or the rest of the model is slowed down.",
        "grid-module",
    ),
    Misconception(
        "axial-rotary-embedding-2d-buffer-cast",
        module_buffer_cast,
        "axial_rotary_embedding_2d_cast_module",
        "Your frequencies are a buffer or a parameter, and casting the module rounded them for "
        "good. Keep them where a cast cannot reach, or compute them in forward.",
        "grid-module",
    ),
    Misconception(
        "axial-rotary-embedding-2d-buffer-as-it-is",
        module_buffer_as_it_is,
        "axial_rotary_embedding_2d_cast_module",
        "Your frequencies are a buffer or a parameter, used in the dtype that it has: after a cast "
        "of the module frequencies and angles are bfloat16. Compute them in forward, in float32.",
        "grid-module",
    ),
    Misconception(
        "axial-rotary-embedding-2d-tables-cast",
        module_tables_cast,
        "axial_rotary_embedding_2d_cast_module",
        "Your cosines and sines are buffers, and casting the module rounded them for good. Keep "
        "them where a cast cannot reach, or compute them in forward.",
        "grid-module",
    ),
    Misconception(
        "axial-rotary-embedding-2d-matrix-product",
        module_matrix_product,
        "axial_rotary_embedding_2d_autocast",
        "The angles came from a matrix product, and autocast runs those in bfloat16 whatever you "
        "cast before. Multiply elementwise, or switch autocast off there.",
        "grid-module",
    ),
    Misconception(
        "axial-rotary-embedding-2d-in-place",
        module_in_place,
        "axial_rotary_embedding_2d_leaves_input",
        "q and k themselves were overwritten. Other code may hold them, so return new tensors.",
        "grid-module",
    ),
    Misconception(
        "axial-rotary-embedding-2d-cuts-gradients",
        module_without_gradients,
        "axial_rotary_embedding_2d_gradients",
        "The numbers are right, but no gradient arrives at q and k: the result was "
        "detached, or made without gradients. Nothing that stands before it could be trained.",
        "ex-AxialRotaryEmbedding2D",
    ),
)

MISCONCEPTIONS: dict[str, tuple[Misconception, ...]] = {
    "grid_positions": GRID_POSITIONS,
    "sincos_2d": SINCOS_2D,
    "axial_rope_2d": AXIAL_ROPE_2D,
    "mixed_rope_2d": MIXED_ROPE_2D,
    "resize_grid": RESIZE_GRID,
    "fixed_grid": FIXED_GRID,
    "AxialRotaryEmbedding2D": AXIAL_ROTARY_EMBEDDING_2D,
}

"""Checks of the chapter on positions in two dimensions.

A square grid forgives nearly everything: rows and columns may be exchanged, counted in the other
order or divided by each other's number, and all sizes still fit. So most grids here are rectangles,
tall ones and wide ones, and where a number is published it is compared with that number.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers import Answers
from ..assertions import (
    CheckFailed,
    agrees,
    as_array,
    close,
    equal,
    good_input,
    instance,
    leaves_inputs,
    pair,
    refuses,
    same_dtype,
    shaped,
    tolerance,
    trains,
    unchanged,
)
from ..exercise import Exercise, behaviour

if TYPE_CHECKING:
    import torch

EXERCISES = (
    Exercise("two_d", "grid_positions", 1),
    Exercise("two_d", "sincos_2d", 3),
    Exercise("two_d", "axial_rope_2d", 3),
    Exercise("two_d", "mixed_rope_2d", 2),
    Exercise("two_d", "resize_grid", 2),
    Exercise("two_d", "fixed_grid", 2),
    Exercise("two_d", "AxialRotaryEmbedding2D", 3, "with_torch"),
)

EMPTY = ((0, 3), (3, 0), (0, 0), (-2, 3), (3, -2), (-2, -3))  # two negatives have a product > 0

# What the code published with RoPE-ViT makes of 1, 2, … 8 at the patches of two rows and three
# columns, base 100. Its first half turns with the column, its second half with the row.
BY_PLACE = {
    0: ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]),
    1: (
        [-1.1426396369934082, 1.9220755100250244, 2.585678815841675, 4.27951717376709],
        [-2.3473143577575684, 7.4491682052612305, 6.1663618087768555, 8.658866882324219],
    ),
    2: ([-2.234741687774658, 0.07700371742248535, 2.1455225944519043, 4.516274452209473], []),
}
COUNTED = np.arange(1.0, 9.0)
PUBLISHED = 5e-6  # that code computes in float32


def scattered(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Rows or columns that are no range: out of order, one of them twice, none near zero."""
    places = 3 + np.cumsum(rng.integers(2, 30, math.prod(shape)))[::-1]
    places[1] = places[0]
    places[[-2, -1]] = places[[-1, -2]]
    return places.reshape(shape)


def some_places(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns that have nothing to do with each other."""
    return scattered(rng, count), rng.permutation(scattered(rng, count))


def room(x: Any, angles: Any, dtype: str = "float64", *, exact: bool = False) -> float:
    """Tolerance for numbers the size of x's, turned by angles up to the largest of these.

    Angles must be exact to float64 only where a check is about that: elsewhere coarser tables cost
    no points a second time.
    """
    largest, angle = np.abs(x).max(initial=1.0), np.abs(angles).max(initial=0.0)
    held = "float64" if exact else "float32"
    return tolerance(dtype, angle=float(angle), scale=float(largest), angle_dtype=held)


# ----------------------------------------------------------------------------- grid_positions


def places_are(result: Any, rows: Any, cols: Any) -> None:
    """The result is a pair of these rows and these columns."""
    got_rows, got_cols = pair(result)
    equal(got_rows, rows, what="the array of rows")
    equal(got_cols, cols, what="the array of columns")


def read(height: int, width: int) -> tuple[list[int], list[int]]:
    """Rows and columns of all patches as a reader meets them."""
    places = [(row, column) for row in range(height) for column in range(width)]
    return [row for row, _ in places], [column for _, column in places]


@behaviour("grid_positions", weight=2)
def check_grid_positions_two_by_three(student: Answers, reference: Answers, rng: Any) -> None:
    """Two rows of three patches are read row by row, each from left to right."""
    places_are(student.grid_positions(2, 3), [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2])
    height, width = (int(n) for n in rng.permutation([4, 7]))
    places_are(student.grid_positions(height, width), *read(height, width))


@behaviour("grid_positions")
def check_grid_positions_tall_and_wide(student: Answers, reference: Answers, rng: Any) -> None:
    """Tall, wide and square grids all number their patches row·width + column, none missing."""
    for height, width in ((5, 2), (2, 5), (1, 6), (6, 1), (4, 4), (9, 8), (1, 1)):
        rows, cols = pair(student.grid_positions(height, width))
        number = shaped(rows, (height * width,), what="the array of rows") * width
        number = number + shaped(cols, (height * width,), what="the array of columns")
        equal(number, np.arange(height * width), what="row·width + column")
        places_are((rows, cols), *read(height, width))


@behaviour("grid_positions")
def check_grid_positions_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Rows and columns are integers, so that they can pick rows of a table."""
    for height, width in ((3, 5), (5, 3), (1, 2)):
        expected = pair(reference.grid_positions(height, width))
        result = pair(student.grid_positions(height, width))
        places_are(result, *expected)
        for name, mine in zip(("rows", "columns"), result, strict=True):
            dtype = as_array(mine, f"the array of {name}").dtype
            if dtype.kind not in "iu":
                raise CheckFailed(f"the array of {name}: the dtype is {dtype}, but no integer one.")


@behaviour("grid_positions")
def check_grid_positions_refuses_empty(student: Answers, reference: Answers, rng: Any) -> None:
    """A grid without a row or without a column raises, and so do negative sizes."""
    with good_input():
        places_are(student.grid_positions(2, 5), *read(2, 5))
    for sizes in EMPTY:
        refuses(student.grid_positions, *sizes, because=f"a grid of {sizes[0]} by {sizes[1]}")


@behaviour("grid_positions", hidden=True)
def check_grid_positions_larger(student: Answers, reference: Answers, rng: Any) -> None:
    """Larger grids are numbered alike, and one of as many patches is another grid."""
    for height, width in ((12, 40), (40, 12), (1, 480), (480, 1), (20, 24), (17, 17)):
        places_are(student.grid_positions(height, width), *read(height, width))


# ---------------------------------------------------------------------------------- sincos_2d

# The sines and cosines of 0, 1 and 2 on the pairs that turn by 1 and by 0.01 per patch.
WAVES = (
    [0.0, 1.0, 0.0, 1.0],
    [0.8414709848078965, 0.5403023058681398, 0.009999833334166664, 0.9999500004166653],
    [0.9092974268256817, -0.4161468365471424, 0.01999866669333308, 0.9998000066665778],
)
NEAR = 1e-5  # one float32 table costs no points everywhere: a check of its own is about that


@behaviour("sincos_2d", weight=2)
def check_sincos_2d_row_1_column_2(student: Answers, reference: Answers, rng: Any) -> None:
    """Row 1, column 2 at dim 4 is [0.8415, 0.5403, 0.9093, −0.4161]: the row comes first."""
    table = shaped(student.sincos_2d(2, 3, 4), (6, 4))
    close(table[5], [0.8415, 0.5403, 0.9093, -0.4161], 5e-5 + NEAR, what="row 1, column 2")
    expected = [[*WAVES[row][:2], *WAVES[column][:2]] for row in (0, 1) for column in (0, 1, 2)]
    close(table, expected, NEAR, what="the table of a 2×3 grid")


@behaviour("sincos_2d", weight=2)
def check_sincos_2d_published_table(student: Answers, reference: Answers, rng: Any) -> None:
    """At dim 8 each half has a ladder of its own, 1 and 0.01, each sine beside its cosine."""
    for height, width in ((2, 3), (3, 2)):
        rows, columns = range(height), range(width)
        expected = [[*WAVES[row], *WAVES[column]] for row in rows for column in columns]
        close(student.sincos_2d(height, width, 8), expected, NEAR)


@behaviour("sincos_2d", weight=2)
def check_sincos_2d_column_first(student: Answers, reference: Answers, rng: Any) -> None:
    """With first="column" the half of the column comes first; the patches keep their order."""
    expected = [[*WAVES[column], *WAVES[row]] for row in (0, 1) for column in (0, 1, 2)]
    close(student.sincos_2d(2, 3, 8, first="column"), expected, NEAR)
    expected = [[*WAVES[row], *WAVES[column]] for row in (0, 1) for column in (0, 1, 2)]
    close(student.sincos_2d(2, 3, 8, first="row"), expected, NEAR)


@behaviour("sincos_2d")
def check_sincos_2d_other_base(student: Answers, reference: Answers, rng: Any) -> None:
    """Other bases give other ladders, on tall and on wide grids."""
    for height, width, dim in ((5, 2, 12), (2, 7, 16), (3, 4, 20)):
        base = float(rng.integers(20, 900))
        for first in ("row", "column"):
            expected = reference.sincos_2d(height, width, dim, base, first)
            close(student.sincos_2d(height, width, dim, base, first), expected, NEAR)


@behaviour("sincos_2d")
def check_sincos_2d_refuses_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is not positive and divisible by 4 is a ValueError that names it."""
    with good_input():
        agrees(student, reference, "sincos_2d", 3, 5, 16, atol=NEAR)
    for dim in (14, 18, 13, 2, 0, -8, -6):
        inputs, because = (3, 5, dim), f"a dim of {dim}"
        refuses(student.sincos_2d, *inputs, error="ValueError", naming=(str(dim),), because=because)


@behaviour("sincos_2d")
def check_sincos_2d_refuses_first(student: Answers, reference: Answers, rng: Any) -> None:
    """Any other word for first raises."""
    for first in ("row", "column"):
        with good_input():
            agrees(student, reference, "sincos_2d", 2, 3, 8, 60.0, first, atol=NEAR)
    for first in ("col", "rows", "columns", "height", ""):
        because = f"first={first!r}"
        refuses(student.sincos_2d, 2, 3, 8, first=first, because=because)


@behaviour("sincos_2d")
def check_sincos_2d_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """The table is float64, and exact to float64 far from the corner too."""
    for height, width, base in ((1, 400, 10000.0), (400, 1, 500.0), (2, 3, 100)):
        allowed = tolerance("float64", angle=400)
        inputs = (height, width, 12, base)
        agrees(student, reference, "sincos_2d", *inputs, atol=allowed, dtype="float64")


@behaviour("sincos_2d")
def check_sincos_2d_refuses_grid_and_base(student: Answers, reference: Answers, rng: Any) -> None:
    """An empty grid raises; a base that is not positive is a ValueError."""
    with good_input():
        agrees(student, reference, "sincos_2d", 2, 5, 8, 70.0, atol=NEAR)
    for sizes in EMPTY:
        refuses(student.sincos_2d, *sizes, 8, because=f"a grid of {sizes[0]} by {sizes[1]}")
    for dim, base in itertools.product((4, 8), (0.0, -70.0)):
        because = "a base that is not positive"
        refuses(student.sincos_2d, 2, 5, dim, base, error="ValueError", because=because)


@behaviour("sincos_2d", hidden=True)
def check_sincos_2d_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One patch, one row, one column, squares, and widths from 4 to 128 work, in any order."""
    for height, width in ((1, 1), (1, 6), (6, 1), (4, 4), (3, 8), (8, 3), (2, 6), (3, 4), (4, 3)):
        for dim in (4, 128, 24):
            for first in ("column", "row"):
                inputs, allowed = (height, width, dim), NEAR
                agrees(student, reference, "sincos_2d", *inputs, first=first, atol=allowed)


# ------------------------------------------------------------------------------ axial_rope_2d


def published_halves(first: Any, second: Any) -> list[list[float]]:
    """1, 2, … 8, the first four turned by the one places, the other four by the others."""
    return [[*BY_PLACE[a][0], *BY_PLACE[b][1]] for a, b in zip(first, second, strict=True)]


@behaviour("axial_rope_2d", weight=2)
def check_axial_rope_2d_published_numbers(student: Answers, reference: Answers, rng: Any) -> None:
    """1, 2, … 8 become what RoPE-ViT's code makes of them: the row turns the first half."""
    rows, cols = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 0, 1, 1, 1])
    result = student.axial_rope_2d(np.tile(COUNTED, (6, 1)), rows, cols)
    close(result, published_halves(rows, cols), PUBLISHED)


@behaviour("axial_rope_2d", weight=2)
def check_axial_rope_2d_scattered(student: Answers, reference: Answers, rng: Any) -> None:
    """Each vector turns by its own row and column, whatever their order, with any base."""
    for dim, base in ((12, 30.0), (8, 700.0), (4, 5.0)):
        x, (rows, cols) = rng.standard_normal((6, dim)), some_places(rng, 6)
        inputs = (x, rows, cols, base)
        agrees(student, reference, "axial_rope_2d", *inputs, atol=room(x, 250))


@behaviour("axial_rope_2d")
def check_axial_rope_2d_relative(student: Answers, reference: Answers, rng: Any) -> None:
    """The dot product of two vectors depends on how many rows and columns lie between them."""
    q, k = (np.tile(rng.standard_normal(8), (4, 1)) for _ in range(2))
    down, right = np.array([0, 40, 0, 13]), np.array([0, 0, 70, 28])
    turned = reference.axial_rope_2d(q, np.full(4, 5), np.full(4, 9), 50.0)
    others = reference.axial_rope_2d(k, np.full(4, 2), np.full(4, 11), 50.0)
    expected = (turned * others).sum(axis=-1)
    mine = shaped(student.axial_rope_2d(q, down + 5, right + 9, 50.0), (4, 8))
    other = shaped(student.axial_rope_2d(k, down + 2, right + 11, 50.0), (4, 8))
    allowed = room(8 * np.abs(q).max() * np.abs(k).max(), 90)
    what = "the dot product of two vectors, moved together,"
    close((mine * other).sum(axis=-1), expected, allowed, what=what)
    lengths = (mine * mine).sum(axis=-1)
    expected = (q * q).sum(axis=-1)
    close(lengths, expected, room(expected, 90), what="the squared length of a rotated vector")


@behaviour("axial_rope_2d")
def check_axial_rope_2d_leading_axes(student: Answers, reference: Answers, rng: Any) -> None:
    """Batch and heads share the rows and columns of the patches, whose axis is the last but one."""
    for shape in ((2, 3, 5, 8), (3, 5, 4), (5, 5, 5, 12)):
        x, (rows, cols) = rng.standard_normal(shape), some_places(rng, 5)
        inputs = (x, rows, cols, 60.0)
        agrees(student, reference, "axial_rope_2d", *inputs, atol=room(x, 250))


@behaviour("axial_rope_2d")
def check_axial_rope_2d_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer input gives a float64 result with its fractions kept."""
    x, (rows, cols) = rng.integers(-9, 9, (5, 8)), some_places(rng, 5)
    unsigned = ((x + 9).astype("uint8"), rows.astype("uint32"), cols.astype("uint8"))
    for inputs in ((x, rows, cols), unsigned):
        allowed = room(inputs[0], 250)
        agrees(student, reference, "axial_rope_2d", *inputs, atol=allowed, dtype="float64")


@behaviour("axial_rope_2d")
def check_axial_rope_2d_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """x, rows and columns are still what they were; they may be fractions, or have gaps."""
    for rows, cols in (
        (rng.uniform(-9, 30, 5), rng.uniform(-9, 30, 5)),
        (scattered(rng, 10)[::2], scattered(rng, 5, 2)[:, 1]),
    ):
        for x in (rng.standard_normal((5, 8)), rng.standard_normal((12, 5, 2)).T[:, :, ::3]):
            inputs, names, allowed = (x, rows, cols), ("x", "rows", "cols"), room(x, 250)
            leaves_inputs(student, reference, "axial_rope_2d", *inputs, names=names, atol=allowed)


@behaviour("axial_rope_2d")
def check_axial_rope_2d_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has the floating dtype of x, whatever the dtype of rows and columns."""
    for dtype, places in (("float32", "float64"), ("float16", "float32"), ("float32", "int64")):
        x, (rows, cols) = rng.standard_normal((5, 8)).astype(dtype), some_places(rng, 5)
        inputs, allowed = (x, rows.astype(places), cols.astype(places)), room(x, 250, dtype)
        agrees(student, reference, "axial_rope_2d", *inputs, atol=allowed, dtype=dtype)


@behaviour("axial_rope_2d")
def check_axial_rope_2d_precise_far_out(student: Answers, reference: Answers, rng: Any) -> None:
    """Far from the corner angles are exact to float64, also for a float32 x."""
    for dtype in ("float64", "float32"):
        x = rng.standard_normal((5, 16)).astype(dtype)
        rows, cols = rng.uniform(40_000, 90_000, 5), rng.integers(40_000, 90_000, 5)
        inputs, allowed = (x, rows, cols, 10_000.0), room(x, 90_000, dtype, exact=True)
        agrees(student, reference, "axial_rope_2d", *inputs, atol=allowed)


@behaviour("axial_rope_2d", weight=2)
def check_axial_rope_2d_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """Rows or columns that are not (n,) raise; a dim such as 6 or a base of 0 is a ValueError."""
    x, (rows, cols) = rng.standard_normal((2, 5, 8)), some_places(rng, 5)
    with good_input():
        agrees(student, reference, "axial_rope_2d", x, rows, cols, 9.0, atol=room(x, 250))
    because = "rows or columns that are not (n,)"
    for shape in ((1,), (), (5, 1), (2, 5)):
        bad = rng.uniform(2, 99, shape)
        refuses(student.axial_rope_2d, x, bad, cols, because=because)
        refuses(student.axial_rope_2d, x, rows, bad, because=because)
    for dim in (6, 2):
        wrong, named, because = (x[..., :dim], rows, cols), (str(dim),), f"a dim of {dim}"
        refuses(student.axial_rope_2d, *wrong, error="ValueError", naming=named, because=because)
    for base in (0.0, -9.0):
        inputs, because = (x, rows, cols, base), "a base that is not positive"
        refuses(student.axial_rope_2d, *inputs, error="ValueError", because=because)


@behaviour("axial_rope_2d", hidden=True)
def check_axial_rope_2d_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One patch, equal numbers of everything, and wide vectors work; places may be fractions."""
    for shape in ((1, 8), (4, 4), (8, 8, 8), (4, 4, 4, 4), (3, 128), (9, 16)):
        x, base = rng.standard_normal(shape), int(rng.integers(9, 90))
        rows, cols = rng.uniform(-40, 40, (2, shape[-2]))
        agrees(student, reference, "axial_rope_2d", x, rows, cols, base, atol=room(x, 40))


@behaviour("axial_rope_2d", hidden=True)
def check_axial_rope_2d_refuses_places(student: Answers, reference: Answers, rng: Any) -> None:
    """Rows or columns of any other shape than (n,) raise, also where they would broadcast."""
    x, (rows, cols) = rng.standard_normal((2, 5, 8)), some_places(rng, 5)
    with good_input():
        agrees(student, reference, "axial_rope_2d", x, rows, cols, atol=room(x, 250))
    because = "rows or columns that are not (n,)"
    for shape in ((), (1,), (4,), (2,), (1, 5), (5, 1), (2, 5), (2, 1), (6,)):
        bad = rng.uniform(2, 99, shape)
        refuses(student.axial_rope_2d, x, bad, cols, because=because)
        refuses(student.axial_rope_2d, x, rows, bad, because=because)
        refuses(student.axial_rope_2d, x, bad, bad, because=because)
    because = "several rows and columns for a single vector"
    for some in (x[:, :1], x[0, :1], x[0, 0]):
        refuses(student.axial_rope_2d, some, rows, cols, because=because)


@behaviour("axial_rope_2d", hidden=True)
def check_axial_rope_2d_refuses_dim_and_base(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A dim that 4 does not divide is a ValueError that names it, a bad base a ValueError."""
    x, (rows, cols) = rng.standard_normal((5, 18)), some_places(rng, 5)
    with good_input():
        good = (x[:, :16], rows, cols, 9.0)
        agrees(student, reference, "axial_rope_2d", *good, atol=room(x, 250))
    for dim in (18, 14, 13, 10, 6, 2, 0):
        inputs, named, because = (x[:, :dim], rows, cols), (str(dim),), f"a dim of {dim}"
        refuses(student.axial_rope_2d, *inputs, error="ValueError", naming=named, because=because)
    for dim, base in itertools.product((4, 8), (0.0, -9.0)):
        wrong, because = (x[:, :dim], rows, cols, base), "a base that is not positive"
        refuses(student.axial_rope_2d, *wrong, error="ValueError", because=because)


# ------------------------------------------------------------------------------ mixed_rope_2d


def frequencies(rng: np.random.Generator, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Two frequencies for each pair, of either sign, none of them 0, none like another."""
    row_freqs, col_freqs = rng.permutation(np.linspace(0.11, 0.97, dim)).reshape(2, dim // 2)
    return row_freqs * rng.choice([-1, 1], dim // 2), col_freqs * rng.choice([-1, 1], dim // 2)


@behaviour("mixed_rope_2d", weight=2)
def check_mixed_rope_2d_by_hand(student: Answers, reference: Answers, rng: Any) -> None:
    """At row 2, column 3, frequencies 0.25 and 0.5 turn a pair by 2·0.25 + 3·0.5 = 2 radians."""
    rows, cols = np.array([2, 0, 2]), np.array([3, 2, 0])
    x, (cos, sin) = np.tile([1.0, 0.0], (3, 1)), (np.cos, np.sin)
    result = student.mixed_rope_2d(x, rows, cols, np.array([0.25]), np.array([0.5]))
    close(result, [[cos(2.0), sin(2.0)], [cos(1.0), sin(1.0)], [cos(0.5), sin(0.5)]], NEAR)


@behaviour("mixed_rope_2d")
def check_mixed_rope_2d_published_angles(student: Answers, reference: Answers, rng: Any) -> None:
    """With 0 for every second frequency the angles are RoPE-ViT's at the start of its training."""
    slow = 0.3162277936935425
    row_freqs, col_freqs = np.array([0, 0, 1, slow]), np.array([1, slow, 0, 0])
    rows, cols = np.array([1, 0, 1, 0]), np.array([2, 1, 0, 0])
    angles = np.array(
        [
            [2.0, 0.6324555277824402, 1.0, 0.3162277340888977],
            [1.0, slow, 0.0, 0.0],
            [0.0, 0.0, 1.0, slow],
            [0.0, 0.0, 0.0, 0.0],
        ]
    )
    expected = np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(4, 8)
    ones = np.tile([1.0, 0.0], (4, 4))
    close(student.mixed_rope_2d(ones, rows, cols, row_freqs, col_freqs), expected, PUBLISHED)


@behaviour("mixed_rope_2d", weight=2)
def check_mixed_rope_2d_scattered(student: Answers, reference: Answers, rng: Any) -> None:
    """Every pair of neighbours has its own two frequencies; rows and columns come in any order."""
    for dim in (8, 6, 10):
        x, (rows, cols) = rng.standard_normal((5, dim)), some_places(rng, 5)
        inputs = (x, rows, cols, *frequencies(rng, dim))
        agrees(student, reference, "mixed_rope_2d", *inputs, atol=room(x, 400))


@behaviour("mixed_rope_2d")
def check_mixed_rope_2d_leading_axes(student: Answers, reference: Answers, rng: Any) -> None:
    """Batch and heads share the rows and columns of the patches, whose axis is the last but one."""
    for shape in ((2, 3, 5, 8), (4, 5, 6), (5, 5, 10)):
        x, (rows, cols) = rng.standard_normal(shape), some_places(rng, 5)
        inputs = (x, rows, cols, *frequencies(rng, shape[-1]))
        agrees(student, reference, "mixed_rope_2d", *inputs, atol=room(x, 400))


@behaviour("mixed_rope_2d")
def check_mixed_rope_2d_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer input gives a float64 result with its fractions kept."""
    x, (rows, cols) = rng.integers(-9, 9, (5, 8)), some_places(rng, 5)
    inputs, allowed = (x, rows, cols, *frequencies(rng, 8)), room(x, 400)
    agrees(student, reference, "mixed_rope_2d", *inputs, atol=allowed, dtype="float64")
    whole = (x, rows, cols, np.array([1, 0, -2, 3]), np.array([2, 5, 0, -1]))
    allowed = room(x, 2000)
    agrees(student, reference, "mixed_rope_2d", *whole, atol=allowed, dtype="float64")


@behaviour("mixed_rope_2d")
def check_mixed_rope_2d_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """x, places and frequencies are still what they were; they may be fractions, or have gaps."""
    names = ("x", "rows", "cols", "row_freqs", "col_freqs")
    rows, cols = rng.uniform(-9, 30, (5, 2)).T
    for x in (rng.standard_normal((5, 8)), rng.standard_normal((2, 10, 24))[:, ::2, ::3]):
        row_freqs, col_freqs = (np.repeat(f, 2)[::2] for f in frequencies(rng, 8))
        inputs, allowed = (x, rows, cols, row_freqs, col_freqs), room(x, 60)
        leaves_inputs(student, reference, "mixed_rope_2d", *inputs, names=names, atol=allowed)


@behaviour("mixed_rope_2d")
def check_mixed_rope_2d_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has the floating dtype of x, whatever the dtype of places and frequencies."""
    kinds = (("float32", "float64"), ("float16", "float32"), ("float32", "float32"))
    for dtype, other in kinds:
        x, places = rng.standard_normal((5, 8)).astype(dtype), some_places(rng, 5)
        others = [given.astype(other) for given in (*places, *frequencies(rng, 8))]
        allowed = room(x, 400, dtype)
        agrees(student, reference, "mixed_rope_2d", x, *others, atol=allowed, dtype=dtype)


@behaviour("mixed_rope_2d")
def check_mixed_rope_2d_precise_far_out(student: Answers, reference: Answers, rng: Any) -> None:
    """Far from the corner angles are exact to float64, also for a float32 x."""
    for dtype in ("float64", "float32"):
        x = rng.standard_normal((5, 6)).astype(dtype)
        rows, cols = rng.uniform(40_000, 90_000, 5), rng.integers(40_000, 90_000, 5)
        inputs, allowed = (x, rows, cols, *frequencies(rng, 6)), room(x, 180_000, dtype, exact=True)
        agrees(student, reference, "mixed_rope_2d", *inputs, atol=allowed)


@behaviour("mixed_rope_2d", weight=2)
def check_mixed_rope_2d_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """Frequencies that are not (dim/2,) raise, and rows not (n,); an odd dim is a ValueError."""
    x, (rows, cols) = rng.standard_normal((2, 5, 8)), some_places(rng, 5)
    freqs = frequencies(rng, 8)
    with good_input():
        agrees(student, reference, "mixed_rope_2d", x, rows, cols, *freqs, atol=room(x, 400))
    because = "frequencies that are not (dim/2,)"
    for shape in ((1,), (), (5, 1)):
        bad = rng.uniform(0.1, 0.9, shape)
        refuses(student.mixed_rope_2d, x, rows, cols, bad, freqs[1], because=because)
        refuses(student.mixed_rope_2d, x, rows, cols, freqs[0], bad, because=because)
    because = "rows or columns that are not (n,)"
    for shape in ((1,), (), (5, 1)):
        bad = rng.uniform(2, 99, shape)
        refuses(student.mixed_rope_2d, x, bad, cols, *freqs, because=because)
        refuses(student.mixed_rope_2d, x, rows, bad, *freqs, because=because)
    odd = (x[..., :7], rows, cols, *(f[:3] for f in freqs))
    refuses(student.mixed_rope_2d, *odd, error="ValueError", naming=("7",), because="a dim of 7")


@behaviour("mixed_rope_2d", hidden=True)
def check_mixed_rope_2d_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One patch, one pair, equal numbers of everything, and wide vectors work."""
    for shape in ((1, 8), (5, 2), (4, 8), (8, 8, 8), (4, 4, 4), (3, 64), (2, 2), (1, 2)):
        x = rng.standard_normal(shape)
        rows, cols = rng.uniform(-40, 40, (2, shape[-2]))
        inputs = (x, rows, cols, *frequencies(rng, shape[-1]))
        agrees(student, reference, "mixed_rope_2d", *inputs, atol=room(x, 80))


@behaviour("mixed_rope_2d", hidden=True)
def check_mixed_rope_2d_refuses_frequencies(student: Answers, reference: Answers, rng: Any) -> None:
    """Frequencies of any other shape than (dim/2,) raise, also where they would broadcast."""
    x, places = rng.standard_normal((2, 5, 8)), some_places(rng, 5)
    row_freqs, col_freqs = frequencies(rng, 8)
    with good_input():
        inputs = (x, *places, row_freqs, col_freqs)
        agrees(student, reference, "mixed_rope_2d", *inputs, atol=room(x, 400))
    because = "frequencies that are not (dim/2,)"
    for shape in ((), (1,), (3,), (5,), (8,), (2,), (1, 4), (4, 1), (5, 4), (5, 1), (2, 5, 4)):
        bad = rng.uniform(0.1, 0.9, shape)
        for given in ((bad, col_freqs), (row_freqs, bad), (bad, bad)):
            refuses(student.mixed_rope_2d, x, *places, *given, because=because)


@behaviour("mixed_rope_2d", hidden=True)
def check_mixed_rope_2d_refuses_places(student: Answers, reference: Answers, rng: Any) -> None:
    """Places that are not (n,) raise, also where they broadcast; an odd dim is a ValueError."""
    x, (rows, cols) = rng.standard_normal((2, 5, 8)), some_places(rng, 5)
    freqs = frequencies(rng, 8)
    with good_input():
        agrees(student, reference, "mixed_rope_2d", x, rows, cols, *freqs, atol=room(x, 400))
    because = "rows or columns that are not (n,)"
    for shape in ((), (1,), (4,), (2,), (1, 5), (5, 1), (2, 5), (2, 1), (6,)):
        bad = rng.uniform(2, 99, shape)
        for given in ((bad, cols), (rows, bad), (bad, bad)):
            refuses(student.mixed_rope_2d, x, *given, *freqs, because=because)
    for some in (x[:, :1], x[0, :1], x[0, 0]):
        because = "several rows and columns for a single vector"
        refuses(student.mixed_rope_2d, some, rows, cols, *freqs, because=because)
    for dim in (7, 5):
        few = [f[: dim // 2] for f in freqs]
        inputs, named, because = (x[..., :dim], rows, cols, *few), (str(dim),), f"a dim of {dim}"
        refuses(student.mixed_rope_2d, *inputs, error="ValueError", naming=named, because=because)


# -------------------------------------------------------------------------------- resize_grid


def between(table: Any, side: int = 1, dtype: str = "float64") -> float:
    """Tolerance for what is read between two rows of a grid with sides up to this."""
    largest = float(np.abs(table).max(initial=1.0))
    held = "float64" if dtype == "float64" else "float32"
    return tolerance(dtype, scale=largest, angle=side, angle_dtype=held)


@behaviour("resize_grid", weight=2)
def check_resize_grid_by_hand(student: Answers, reference: Answers, rng: Any) -> None:
    """Between patches 0 and 8 four new ones get 0, 2, 6 and 8: the edges do not go beyond."""
    line = np.array([[0.0], [8.0]])
    close(student.resize_grid(line, (1, 2), (1, 4)), [[0.0], [2.0], [6.0], [8.0]], NEAR)
    close(student.resize_grid(line, (2, 1), (4, 1)), [[0.0], [2.0], [6.0], [8.0]], NEAR)
    corners = np.array([[0.0, 1.0], [8.0, 1.0], [40.0, 3.0], [48.0, 3.0]])
    expected = [[0, 1], [2, 1], [6, 1], [8, 1], [10, 1.5], [12, 1.5], [16, 1.5], [18, 1.5]]
    expected += [[30, 2.5], [32, 2.5], [36, 2.5], [38, 2.5], [40, 3], [42, 3], [46, 3], [48, 3]]
    close(student.resize_grid(corners, (2, 2), (4, 4)), expected, NEAR)


@behaviour("resize_grid", weight=2)
def check_resize_grid_rectangles(student: Answers, reference: Answers, rng: Any) -> None:
    """Tall grids become wide ones, wide ones tall, every patch in row-major order."""
    for old, new in (((2, 3), (5, 4)), ((3, 2), (4, 7)), ((3, 5), (7, 6)), ((4, 1), (4, 3))):
        table = rng.standard_normal((old[0] * old[1], 4))
        agrees(student, reference, "resize_grid", table, old, new, atol=between(table, 8))


@behaviour("resize_grid")
def check_resize_grid_shrinks(student: Answers, reference: Answers, rng: Any) -> None:
    """Shrinking reads the same places, without antialiasing: six rows to two keep rows 1 and 4."""
    table = rng.standard_normal((6, 3))
    close(student.resize_grid(table, (6, 1), (2, 1)), table[[1, 4]], between(table, 6))
    halves = (table[::2] + table[1::2]) / 2
    close(student.resize_grid(table, (1, 6), (1, 3)), halves, between(table, 6))
    table = rng.standard_normal((63, 2))
    for new in ((3, 3), (2, 5), (1, 1)):
        agrees(student, reference, "resize_grid", table, (9, 7), new, atol=between(table, 9))


@behaviour("resize_grid")
def check_resize_grid_same_count(student: Answers, reference: Answers, rng: Any) -> None:
    """The same size changes nothing; another grid of as many patches is another grid."""
    table = rng.standard_normal((12, 5))
    for size in ((3, 4), (12, 1), (2, 6)):
        close(student.resize_grid(table, size, size), table, between(table, 12))
    for old, new in (((3, 4), (4, 3)), ((2, 6), (3, 4)), ((12, 1), (1, 12)), ((6, 2), (2, 6))):
        agrees(student, reference, "resize_grid", table, old, new, atol=between(table, 12))


@behaviour("resize_grid")
def check_resize_grid_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """A table of integers gives float64 vectors with their fractions kept."""
    for dtype in ("int64", "uint8"):
        table = rng.integers(0, 250, (6, 3)).astype(dtype)
        inputs = (table, (2, 3), (4, 5))
        allowed = between(table, 5)
        agrees(student, reference, "resize_grid", *inputs, atol=allowed, dtype="float64")


@behaviour("resize_grid")
def check_resize_grid_refuses_tables(student: Answers, reference: Answers, rng: Any) -> None:
    """A table whose rows are not exactly h·w raises: a class token has no place in the grid."""
    table = rng.standard_normal((12, 12))
    with good_input():
        agrees(student, reference, "resize_grid", table, (3, 4), (5, 6), atol=between(table, 6))
    for rows, old in ((13, (3, 4)), (11, (3, 4)), (12, (3, 5)), (12, (2, 4)), (24, (3, 4))):
        some, because = np.resize(table, (rows, 12)), f"{rows} rows for a grid of {old}"
        refuses(student.resize_grid, some, old, (5, 6), because=because)
        refuses(student.resize_grid, some, old, old, because=because)
    because = "a table of one row for a grid of six"
    refuses(student.resize_grid, table[:1], (2, 3), (4, 5), because=because)


@behaviour("resize_grid")
def check_resize_grid_exact_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """The new grid has exactly the size that was asked for, also where a factor rounds down."""
    for old, new in (
        ((11, 1), (15, 2)),
        ((2, 11), (3, 15)),
        ((37, 1), (39, 1)),
        ((1, 37), (1, 78)),
    ):
        table = rng.standard_normal((old[0] * old[1], 2))
        agrees(student, reference, "resize_grid", table, old, new, atol=between(table, 78))


@behaviour("resize_grid")
def check_resize_grid_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has the floating dtype of the table."""
    for dtype in ("float32", "float16"):
        for new in ((2, 3), (4, 5), (1, 2)):
            table = rng.standard_normal((6, 4)).astype(dtype)
            inputs, allowed = (table, (2, 3), new), between(table, 5, dtype)
            agrees(student, reference, "resize_grid", *inputs, atol=allowed, dtype=dtype)


@behaviour("resize_grid")
def check_resize_grid_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The table is still what it was, and may have gaps in memory."""
    for new in ((2, 3), (5, 4), (1, 2)):
        for table in (rng.standard_normal((6, 4)), rng.standard_normal((8, 12)).T[::2, 1::2]):
            inputs, names, allowed = (table, (2, 3), new), ("table",), between(table, 5)
            leaves_inputs(student, reference, "resize_grid", *inputs, names=names, atol=allowed)


@behaviour("resize_grid")
def check_resize_grid_refuses_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """A new grid without a row or without a column raises, and so does an old one."""
    table = rng.standard_normal((6, 4))
    with good_input():
        agrees(student, reference, "resize_grid", table, (2, 3), (3, 5), atol=between(table, 5))
    for sizes in EMPTY:
        because = f"a grid of {sizes[0]} by {sizes[1]}"
        refuses(student.resize_grid, table, (2, 3), sizes, because=because)
        some = table[: max(sizes[0] * sizes[1], 0)]
        refuses(student.resize_grid, some, sizes, (3, 5), because=because)


@behaviour("resize_grid", hidden=True)
def check_resize_grid_slopes(student: Answers, reference: Answers, rng: Any) -> None:
    """What grows evenly with row and column still does, in fractions of the picture."""
    for old, new in (((4, 6), (11, 9)), ((9, 5), (4, 13)), ((8, 8), (16, 16)), ((5, 5), (5, 8))):
        slopes: list[list[float]] = []
        expected: list[list[float]] = []
        for (height, width), values in ((old, slopes), (new, expected)):
            for row, column in itertools.product(range(height), range(width)):
                down, right = (row + 0.5) / height, (column + 0.5) / width
                down = min(max(down, 0.5 / old[0]), 1 - 0.5 / old[0])
                right = min(max(right, 0.5 / old[1]), 1 - 0.5 / old[1])
                values.append([3 * down - 2 * right, 5 * right, 1.0])
        result = student.resize_grid(np.array(slopes), old, new)
        close(result, expected, between(slopes, 16))


@behaviour("resize_grid", hidden=True)
def check_resize_grid_one_patch(student: Answers, reference: Answers, rng: Any) -> None:
    """One patch spreads over the whole new grid, one row or column over all, any width works."""
    for old, new, dim in (
        ((1, 1), (3, 4), 5),
        ((1, 1), (1, 1), 2),
        ((5, 7), (1, 1), 3),
        ((1, 6), (4, 9), 1),
        ((6, 1), (2, 5), 6),
        ((4, 4), (8, 8), 16),
        ((4, 4), (4, 4), 4),
    ):
        table = rng.standard_normal((old[0] * old[1], dim))
        agrees(student, reference, "resize_grid", table, old, new, atol=between(table, 9))


# --------------------------------------------------------------------------------- fixed_grid


def centres_of(answers: Answers) -> Any:
    return instance(answers.fixed_grid(), what="the result of fixed_grid()")


def middles(height: int, width: int) -> list[list[float]]:
    """The fractions of all patches, counted one by one."""
    rows, cols = range(height), range(width)
    return [[(row + 0.5) / height, (column + 0.5) / width] for row in rows for column in cols]


@behaviour("fixed_grid", weight=2)
def check_fixed_grid_two_by_four(student: Answers, reference: Answers, rng: Any) -> None:
    """Two rows of four: rows at 1/4 and 3/4 of the height, columns at 1/8, 3/8, 5/8 and 7/8."""
    across = (0.125, 0.375, 0.625, 0.875)
    expected = [[0.25, column] for column in across] + [[0.75, column] for column in across]
    close(centres_of(student)(2, 4), expected, NEAR, what="the centres of 2 rows, 4 columns")


@behaviour("fixed_grid")
def check_fixed_grid_squares(student: Answers, reference: Answers, rng: Any) -> None:
    """On squares too the patches come row by row, the fraction of the height first."""
    for side in (2, 3, 8):
        what = f"the centres of {side} rows, {side} columns"
        close(centres_of(student)(side, side), middles(side, side), NEAR, what=what)


@behaviour("fixed_grid")
def check_fixed_grid_tall_and_wide(student: Answers, reference: Answers, rng: Any) -> None:
    """Tall and wide grids are right, down to a single row, column or patch."""
    height, width = (int(n) for n in rng.permutation([5, 7]))
    for sizes in ((height, width), (6, 2), (1, 5), (5, 1), (1, 1), (9, 4)):
        what = f"the centres of {sizes[0]} rows, {sizes[1]} columns"
        close(centres_of(student)(*sizes), middles(*sizes), NEAR, what=what)


@behaviour("fixed_grid")
def check_fixed_grid_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """The centres are float64, and exact to float64."""
    for height, width in ((3, 7), (300, 110), (1, 9)):
        result = centres_of(student)(height, width)
        close(result, middles(height, width), tolerance("float64"))
        same_dtype(result, "float64")


@behaviour("fixed_grid")
def check_fixed_grid_refuses_empty(student: Answers, reference: Answers, rng: Any) -> None:
    """A grid without a row or a column is a ValueError; negative sizes raise too."""
    centres = centres_of(student)
    with good_input():
        close(centres(3, 5), middles(3, 5), NEAR)
    for sizes in EMPTY:
        because = f"a grid of {sizes[0]} by {sizes[1]}"
        named = "ValueError" if min(sizes) == 0 else None
        refuses(centres, *sizes, error=named, because=because)


@behaviour("fixed_grid", hidden=True)
def check_fixed_grid_other_grid(student: Answers, reference: Answers, rng: Any) -> None:
    """A call owes nothing to the calls before: other grids of as many patches, and back."""
    right, mine = centres_of(reference), centres_of(student)
    sizes = [(3, 4), (4, 3), (2, 6), (12, 1), (3, 5), (6, 2), (3, 4), (4, 4), (2, 8), (3, 4)]
    again = centres_of(student)
    for height, width in (*sizes, *(sizes[i] for i in rng.permutation(len(sizes)))):
        expected = right(height, width)
        close(mine(height, width), expected, NEAR)
        close(again(width, height), right(width, height), NEAR)


# --------------------------------------------------------------------- AxialRotaryEmbedding2D


def tensor(array: Any, dtype: str | None = None) -> torch.Tensor:
    import torch

    plain = torch.as_tensor(np.array(array))
    return plain if dtype is None else plain.to(getattr(torch, dtype))


def heads(rng: Any, *shape: int, dtype: str = "float32") -> torch.Tensor:
    """Random queries or keys (batch, heads, seq, head_dim)."""
    return tensor(rng.standard_normal(shape), dtype)


def module(answers: Answers, *args: Any, **kwargs: Any) -> Any:
    made = answers.AxialRotaryEmbedding2D(*args, **kwargs)
    return instance(made, what="AxialRotaryEmbedding2D(…)")


def rotated(
    result: Any, expected: Any, largest: float, dtype: str = "float32", *, when: str = ""
) -> None:
    """Both results have the expected values, up to angles in float32, and this dtype."""
    for name, mine, right in zip(
        ("queries", "keys"), pair(result, what="the result of forward"), pair(expected), strict=True
    ):
        allowed = tolerance(dtype, angle=largest, scale=4.0, angle_dtype="float32")
        close(mine, right, allowed, what=f"the rotated {name}{when}")
        same_dtype(mine, dtype, what=f"the rotated {name}{when}")


@behaviour("AxialRotaryEmbedding2D", weight=2)
def check_axial_rotary_embedding_2d_published_numbers(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """5, … 8, 1, … 4 become what RoPE-ViT's code makes of them: the row turns the first half."""
    places = [(row, column) for row in (0, 1) for column in (0, 1, 2)]
    halves = [[*BY_PLACE[row][1], *BY_PLACE[column][0]] for row, column in places]
    x = tensor(np.tile([5, 6, 7, 8, 1, 2, 3, 4], (1, 1, 6, 1)), "float32")
    expected = tensor([[halves]], "float32")
    rotated(module(student, 8)(x, x, 2, 3), (expected, expected), 3)


@behaviour("AxialRotaryEmbedding2D", weight=2)
def check_axial_rotary_embedding_2d_rectangles(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Tall and wide grids, any base, any width; all heads turn alike, and keys may have fewer."""
    for height, width, dim, base in ((5, 3, 8, 30.0), (2, 7, 12, 500.0), (4, 4, 4, 9.0)):
        q, k = heads(rng, 2, 6, height * width, dim), heads(rng, 2, 3, height * width, dim)
        expected = module(reference, dim, base)(q, k, height, width)
        rotated(module(student, dim, base)(q, k, height, width), expected, 7)


@behaviour("AxialRotaryEmbedding2D", weight=2)
def check_axial_rotary_embedding_2d_prefix_tokens(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Prefix tokens come first and come back as they are; the first patch stands at (0, 0)."""
    for prefix in (1, 5):
        q, k = heads(rng, 2, 4, prefix + 6, 8), heads(rng, 2, 2, prefix + 6, 8)
        expected = module(reference, 8, 40.0)(q, k, 2, 3, prefix)
        result = module(student, 8, 40.0)(q, k, 2, 3, num_prefix_tokens=prefix)
        rotated(result, expected, 3)
        for mine, before in zip(pair(result), (q, k), strict=True):
            allowed, what = tolerance("float32", scale=4.0), "the result"
            kept = shaped(mine, tuple(before.shape), what=what)[:, :, : prefix + 1]
            what = "the prefix tokens and the first patch"
            close(kept, before[:, :, : prefix + 1], allowed, what=what)


def one_grid_after_another(
    student: Answers, reference: Answers, rng: Any, *grids: tuple[int, int]
) -> None:
    """One module, called with each grid in turn, turns by the places of the one at hand."""
    right, mine = module(reference, 8, 40.0), module(student, 8, 40.0)
    before = ""
    for height, width in grids:
        q, k = (heads(rng, 1, 2, height * width, 8) for _ in range(2))
        expected = right(q, k, height, width)
        rotated(mine(q, k, height, width), expected, 12, when=before)
        before = f", after a call of the same module with {height} rows of {width},"


@behaviour("AxialRotaryEmbedding2D")
def check_axial_rotary_embedding_2d_as_many_tokens(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Called before with another grid of as many tokens, a module turns by the new one's places."""
    for grids in (((3, 4), (4, 3), (3, 4)), ((12, 1), (1, 12)), ((2, 6), (3, 4))):
        one_grid_after_another(student, reference, rng, *grids)


@behaviour("AxialRotaryEmbedding2D")
def check_axial_rotary_embedding_2d_other_grid(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Called before with a larger or smaller grid, a module turns by the new one's places."""
    for grids in (((2, 6), (2, 3), (2, 6)), ((2, 3), (5, 2), (2, 2))):
        one_grid_after_another(student, reference, rng, *grids)


@behaviour("AxialRotaryEmbedding2D")
def check_axial_rotary_embedding_2d_refuses_length(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A sequence that is not num_prefix_tokens + height·width long raises."""
    q, k = heads(rng, 2, 4, 7, 8), heads(rng, 2, 2, 7, 8)
    expected, rope = module(reference, 8)(q, k, 2, 3, 1), module(student, 8)
    with good_input():
        rotated(rope(q, k, 2, 3, 1), expected, 3)
    for height, width, prefix in ((2, 3, 0), (2, 3, 2), (2, 4, 1), (1, 3, 1), (1, 1, 1), (2, 4, 0)):
        because = f"7 tokens for {prefix} and {height}·{width}"
        refuses(rope, q, k, height, width, prefix, because=because)
    refuses(rope, q[:, :, :1], k[:, :, :1], 2, 3, because="1 token for 2·3 patches")
    refuses(rope, q[:, :, :2], k[:, :, :2], 2, 3, 1, because="1 patch, after 1, for 2·3")


@behaviour("AxialRotaryEmbedding2D")
def check_axial_rotary_embedding_2d_bfloat16(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """bfloat16 queries stay bfloat16, and their angles are exact nevertheless."""
    for height, width in ((600, 1), (2, 300)):
        q, k = (heads(rng, 1, n, 600, 8, dtype="bfloat16") for n in (2, 1))
        expected = module(reference, 8)(q, k, height, width)
        rotated(module(student, 8)(q, k, height, width), expected, 600, "bfloat16")


@behaviour("AxialRotaryEmbedding2D", weight=2)
def check_axial_rotary_embedding_2d_cast_module(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Casting the module, or a parent that holds it, to bfloat16 leaves its angles exact."""
    # Far out for angles, near for the digits of sines.
    for height, width, parent in ((2, 300, False), (5, 4, False), (2, 300, True)):
        rope = module(student, 8)
        rope.cast("bfloat16", through_parent=parent)
        q, k = heads(rng, 1, 2, height * width, 8), heads(rng, 1, 1, height * width, 8)
        expected = module(reference, 8)(q, k, height, width)
        rotated(rope(q, k, height, width), expected, width)


@behaviour("AxialRotaryEmbedding2D", weight=2)
def check_axial_rotary_embedding_2d_autocast(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Under autocast angles are exact and results keep the dtype of q and k."""
    for dtype, height, width in (("float32", 2, 300), ("float32", 4, 3), ("bfloat16", 300, 2)):
        for prefix in (0, 3):
            seq = prefix + height * width
            q, k = heads(rng, 1, 2, seq, 8, dtype=dtype), heads(rng, 1, 1, seq, 8, dtype=dtype)
            inputs = (q, k, height, width, prefix)
            expected = module(reference, 8, 5000.0)(*inputs)
            rope = module(student, 8, 5000.0)
            with student.autocast("bfloat16"):
                result = rope(*inputs)
            rotated(result, expected, 300, dtype)


@behaviour("AxialRotaryEmbedding2D")
def check_axial_rotary_embedding_2d_nothing_to_train(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """There is nothing to train, and the state_dict is empty, before and after a call."""
    rope, q = module(student, 8, 40.0), heads(rng, 1, 2, 7, 8)
    with good_input():
        rotated(rope(q, q, 2, 3, 1), module(reference, 8, 40.0)(q, q, 2, 3, 1), 3)
    for made in (rope, module(student, 8, 40.0)):
        state = instance(made.method("state_dict"), what="state_dict()")
        equal(state.method("__len__"), 0, what="the number of entries of the state_dict")


@behaviour("AxialRotaryEmbedding2D")
def check_axial_rotary_embedding_2d_leaves_input(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """q and k are still what they were: other code may hold them."""
    for prefix in (0, 2):
        q, k = heads(rng, 2, 4, prefix + 6, 8), heads(rng, 2, 2, prefix + 6, 8)
        inputs = (q, k, 2, 3, prefix)
        expected = module(reference, 8)(*inputs)
        result, after = module(student, 8).with_inputs(*inputs)
        for name, now, before in zip(("q", "k"), after, inputs, strict=False):
            unchanged(now, before, what=name)
        rotated(result, expected, 3)


@behaviour("AxialRotaryEmbedding2D")
def check_axial_rotary_embedding_2d_gradients(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Gradients reach q and k, so that the projections before them can be trained."""
    inputs = (heads(rng, 2, 4, 7, 8), heads(rng, 2, 2, 7, 8), 2, 3, 1)
    weights = (heads(rng, 2, 4, 7, 8), heads(rng, 2, 2, 7, 8))
    allowed = tolerance("float32", angle=3, scale=6.0, angle_dtype="float32")
    mine, right = module(student, 8), module(reference, 8)
    trains(mine, right, *inputs, names=("q", "k"), weights=weights, atol=allowed)


@behaviour("AxialRotaryEmbedding2D", weight=2)
def check_axial_rotary_embedding_2d_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """A head_dim such as 10, a base of 0, an empty grid, a negative prefix and a lone key raise."""
    q, k = heads(rng, 2, 4, 6, 8), heads(rng, 2, 2, 6, 8)
    expected, rope = module(reference, 8)(q, k, 2, 3), module(student, 8)
    with good_input():
        rotated(rope(q, k, 2, 3), expected, 3)

    def use(dim: int, base: float = 100.0) -> Any:
        """Make a module and use it: it may refuse at either of the two."""
        x = heads(rng, 1, 2, 6, dim)
        return module(student, dim, base)(x, x, 2, 3)

    because = "a single key for six queries"
    refuses(rope, q, k[:, :, :1], 2, 3, because=because)
    for height, width, prefix in ((0, 3, 6), (-2, -3, 0), (2, 4, -2), (2, 3, -6), (2, 3, -1)):
        because = f"{height} rows, {width} columns and {prefix} prefix tokens"
        refuses(rope, q, k, height, width, prefix, because=because)
    twice = [heads(rng, 2, n, 12, 8) for n in (4, 2)]
    refuses(rope, *twice, 2, 3, -6, because="12 tokens for 2·3 patches and -6 prefix tokens")
    for dim in (10, 14):
        named, because = (str(dim),), f"a head_dim of {dim}"
        refuses(use, dim, error="ValueError", naming=named, because=because)
    refuses(use, 8, 0.0, error="ValueError", because="a base of 0")


@behaviour("AxialRotaryEmbedding2D", hidden=True)
def check_axial_rotary_embedding_2d_cast_parent(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Casting a parent module, in either half precision, does not make the angles coarse."""
    right = module(reference, 8, 5000.0)
    for dtype in ("bfloat16", "float16"):
        for given, height, width in (("float32", 300, 2), ("float32", 4, 5), (dtype, 2, 300)):
            rope, seq = module(student, 8, 5000.0), 2 + height * width
            rope.cast(dtype, through_parent=True)
            q, k = heads(rng, 1, 2, seq, 8, dtype=given), heads(rng, 1, 1, seq, 8, dtype=given)
            expected = right(q, k, height, width, 2)
            rotated(rope(q, k, height, width, 2), expected, 300, given)


@behaviour("AxialRotaryEmbedding2D", hidden=True)
def check_axial_rotary_embedding_2d_no_memory(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A call owes nothing to the calls before it: other grids, prefixes, rows and dtypes."""
    right, mine = module(reference, 8, 200.0), module(student, 8, 200.0)
    calls = [
        (3, 4, 0, 2, "float32"),
        (3, 3, 3, 2, "float32"),
        (4, 3, 0, 2, "bfloat16"),
        (4, 3, 0, 2, "float32"),
        (2, 5, 2, 1, "float64"),
        (5, 2, 2, 3, "float32"),
        (5, 2, 2, 3, "float64"),
        (2, 2, 0, 2, "float32"),
        (1, 9, 3, 2, "float16"),
        (3, 3, 3, 2, "float32"),
        (20, 7, 1, 1, "float32"),
        (6, 2, 0, 2, "float32"),
        (7, 20, 1, 1, "float32"),
    ]
    for height, width, prefix, batch, dtype in calls:
        seq = prefix + height * width
        q, k = (heads(rng, batch, n, seq, 8, dtype=dtype) for n in (4, 2))
        expected = right(q, k, height, width, prefix)
        rotated(mine(q, k, height, width, prefix), expected, 20, dtype)


@behaviour("AxialRotaryEmbedding2D", hidden=True)
def check_axial_rotary_embedding_2d_two_modules(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Modules in use at once do not disturb each other, nor does a first call in bfloat16."""
    kinds = ((8, 200.0), (8, 30.0), (12, 200.0))
    right, mine = ([module(who, *kind) for kind in kinds] for who in (reference, student))
    for height, width, dtype in ((3, 4, "bfloat16"), (4, 3, "float32"), (3, 4, "float32")):
        for which in (0, 1, 2, 0, 2):
            dim = kinds[which][0]
            q, k = (heads(rng, 2, n, 13, dim, dtype=dtype) for n in (4, 2))
            expected = right[which](q, k, height, width, 1)
            rotated(mine[which](q, k, height, width, 1), expected, 4, dtype)


@behaviour("AxialRotaryEmbedding2D", hidden=True)
def check_axial_rotary_embedding_2d_other_sizes(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """float16 and float64, one patch, one head, widths from 4 to 128, and equal numbers work."""
    for batch, count, height, width, prefix, dim, dtype in (
        (1, 1, 1, 1, 0, 4, "float64"),
        (2, 3, 1, 5, 2, 128, "float16"),
        (4, 4, 2, 2, 0, 4, "float32"),
        (3, 2, 5, 1, 1, 16, "float64"),
        (8, 8, 2, 3, 2, 8, "float16"),
    ):
        seq, base = prefix + height * width, int(rng.integers(9, 900))
        q, k = heads(rng, batch, count, seq, dim, dtype=dtype), heads(rng, batch, count, seq, dim)
        k = k.to(q.dtype)
        expected = module(reference, dim, base)(q, k, height, width, prefix)
        rotated(module(student, dim, base)(q, k, height, width, prefix), expected, 5, dtype)


@behaviour("AxialRotaryEmbedding2D", hidden=True)
def check_axial_rotary_embedding_2d_refuses_dim_and_base(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A head_dim that 4 does not divide is a ValueError that names it, a bad base a ValueError."""

    q = heads(rng, 1, 2, 6, 8)
    expected = module(reference, 8)(q, q, 2, 3)
    with good_input():
        rotated(module(student, 8)(q, q, 2, 3), expected, 3)

    def use(dim: int, base: float = 100.0) -> Any:
        """Make a module and use it: it may refuse at either of the two."""
        x = heads(rng, 1, 2, 6, abs(dim))
        return module(student, dim, base)(x, x, 2, 3)

    for dim in (10, 14, 13, 18, 0, -8):
        named, because = (str(dim),), f"a head_dim of {dim}"
        refuses(use, dim, error="ValueError", naming=named, because=because)
    for base in (0.0, -9.0):
        because = "a base that is not positive"
        refuses(use, 8, base, error="ValueError", because=because)


@behaviour("AxialRotaryEmbedding2D", hidden=True)
def check_axial_rotary_embedding_2d_refuses_grid(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """An empty grid, negative sizes and a negative number of prefix tokens raise."""
    q, k = heads(rng, 2, 4, 6, 8), heads(rng, 2, 2, 6, 8)
    expected, rope = module(reference, 8)(q, k, 2, 3), module(student, 8)
    with good_input():
        rotated(rope(q, k, 2, 3), expected, 3)
    empty = ((-2, -3, 0), (0, 3, 6), (3, 0, 6), (-1, 3, 9))
    for height, width, prefix in (*empty, (2, 4, -2), (2, 3, -6), (2, 3, -1), (1, 6, -6)):
        because = f"{height} rows, {width} columns and {prefix} prefix tokens"
        refuses(rope, q, k, height, width, prefix, because=because)
    twice = [heads(rng, 2, n, 12, 8) for n in (4, 2)]
    refuses(rope, *twice, 2, 3, -6, because="12 tokens for 2·3 patches and -6 prefix tokens")
    nothing = (q[:, :, :0], k[:, :, :0])
    refuses(rope, *nothing, 0, 0, because="a grid without a patch")


@behaviour("AxialRotaryEmbedding2D", hidden=True)
def check_axial_rotary_embedding_2d_refuses_shapes(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Shapes of q and k that do not go together raise, also where torch would broadcast them."""
    q, k = heads(rng, 2, 4, 7, 8), heads(rng, 2, 2, 7, 8)
    grid = (2, 3, 1)
    expected, rope = module(reference, 8)(q, k, *grid), module(student, 8)
    with good_input():
        rotated(rope(q, k, *grid), expected, 3)
    refuses(rope, q, k[:, :, :1], *grid, because="a single key for seven queries")
    refuses(rope, q[:, :, :1], k, *grid, because="a single query for seven keys")
    refuses(rope, q, k[:, :, :6], *grid, because="a key less than queries")
    refuses(rope, q, heads(rng, 2, 2, 8, 8), *grid, because="a key more than queries")
    refuses(rope, q, k[:1], *grid, because="keys for one row of two")
    refuses(rope, q[:1], k, *grid, because="queries for one row of two")
    for width in (4, 12, 1, 2):
        other = heads(rng, 2, 2, 7, width)
        refuses(rope, q, other, *grid, because=f"keys of width {width}, not 8")
        refuses(rope, other, k, *grid, because=f"queries of width {width}, not 8")
        refuses(rope, other, other, *grid, because=f"queries and keys of width {width}, not 8")

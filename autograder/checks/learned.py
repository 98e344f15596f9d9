"""Checks of the chapter on learned position embeddings.

A table forgives much: NumPy and torch count negative indices from the end, cut slices short and
stretch axes of length one without a word. So most of what is asked here lies at the edges of the
table, and in positions that come twice, out of order, or not at all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers import Answers, shown
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
    tolerance,
    trains,
    unchanged,
)
from ..exercise import Exercise, behaviour
from ..replies import Gone, StudentError

if TYPE_CHECKING:
    import torch

EXERCISES = (
    Exercise("learned", "lookup", 2),
    Exercise("learned", "lookup_gradient", 3),
    Exercise("learned", "resize_table", 2),
    Exercise("learned", "padded_positions", 2),
    Exercise("learned", "LearnedPositionalEmbedding", 3, "with_torch"),
)


def scattered(rng: np.random.Generator, rows: int, *shape: int) -> np.ndarray:
    """Positions of a table of so many rows: out of order, the first one twice, the ends among them.

    The second of them is the first again, the last two are the ends of the table.
    """
    count = math.prod(shape)
    places = rng.permutation(np.arange(1, rows - 1))[np.arange(count) % (rows - 2)]
    places[1] = places[0]
    places[-2:] = rows - 1, 0
    return places.reshape(shape)


def room(*arrays: Any, dtype: str = "float64") -> float:
    """Tolerance for sums of numbers as large as the largest of these."""
    largest = max(float(np.abs(a).max(initial=1.0)) for a in arrays)
    return tolerance(dtype, scale=largest)


# ------------------------------------------------------------------------------------- lookup


@behaviour("lookup", weight=2)
def check_lookup_rows(student: Answers, reference: Answers, rng: Any) -> None:
    """Each position gets its own row, counted from 0, in the order of the positions."""
    table, inner = np.arange(11.0)[:, None] + [0.0, 0.25, 0.5], rng.permutation(9)[:6]
    close(student.lookup(table, inner), inner[:, None] + [0.0, 0.25, 0.5], 0.0)
    table, positions = rng.standard_normal((11, 5)), scattered(rng, 11, 7)
    agrees(student, reference, "lookup", table, positions, atol=0.0)


@behaviour("lookup")
def check_lookup_any_shape(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions of any shape keep it and get one more axis; nothing that went in is changed."""
    table = rng.standard_normal((11, 5))
    for positions in (scattered(rng, 11, 2, 3), scattered(rng, 11, 3, 2, 4), np.array(6)):
        names = ("table", "positions")
        leaves_inputs(student, reference, "lookup", table, positions, names=names, atol=0.0)


@behaviour("lookup", weight=2)
def check_lookup_refuses_negative(student: Answers, reference: Answers, rng: Any) -> None:
    """A position below 0 is an IndexError that names it and the length of the table."""
    table, positions = rng.standard_normal((41, 5)), scattered(rng, 41, 5)
    with good_input():
        agrees(student, reference, "lookup", table, positions, atol=0.0)
    for bad in (-3, -1, -41, -57):
        among = np.array([7, bad, 20])
        for given in (among, among.reshape(3, 1), np.array(bad)):
            inputs, named, because = (table, given), (str(bad), "41"), f"position {bad}"
            refuses(student.lookup, *inputs, error="IndexError", naming=named, because=because)


@behaviour("lookup", weight=2)
def check_lookup_refuses_past_the_end(student: Answers, reference: Answers, rng: Any) -> None:
    """A position past the last row is an IndexError that names it and the length of the table."""
    table, positions = rng.standard_normal((41, 5)), scattered(rng, 41, 5)
    with good_input():
        agrees(student, reference, "lookup", table, positions, atol=0.0)
    for bad in (41, 42, 77, 513):
        among = np.array([7, bad, 20])
        for given in (among, among.reshape(1, 3), np.array(bad)):
            inputs, named, because = (table, given), (str(bad), "41"), f"position {bad} of 41 rows"
            refuses(student.lookup, *inputs, error="IndexError", naming=named, because=because)


@behaviour("lookup")
def check_lookup_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """A table of integers gives float64 vectors."""
    table = rng.integers(-90, 90, (9, 4))
    agrees(student, reference, "lookup", table, scattered(rng, 9, 5), atol=0.0, dtype="float64")


@behaviour("lookup")
def check_lookup_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has the floating dtype of the table, whatever integers the positions are."""
    for dtype, held in (("float32", "int32"), ("float16", "uint8")):
        table, positions = rng.standard_normal((11, 6)).astype(dtype), scattered(rng, 11, 5)
        inputs = (table, positions.astype(held))
        agrees(student, reference, "lookup", *inputs, atol=0.0, dtype=dtype)


@behaviour("lookup", weight=2)
def check_lookup_refuses_other_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions that are floats, whole ones too, or booleans raise."""
    table, positions = rng.standard_normal((9, 5)), np.array([3, 1, 1, 0, 8, 1, 0, 1, 2])
    with good_input():
        agrees(student, reference, "lookup", table, positions, atol=0.0)
    for dtype in ("float64", "float32"):
        for given in (positions / 2, positions, positions[:1]):
            because = "positions that are no integers"
            refuses(student.lookup, table, given.astype(dtype), because=because)
    for given in (positions == 1, np.array([True, False]), np.array(True)):
        refuses(student.lookup, table, given, because="positions that are booleans")


@behaviour("lookup", hidden=True)
def check_lookup_any_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integers of any width, arrays with gaps in memory and no positions at all are looked up."""
    table = rng.standard_normal((300, 8))
    for dtype in ("uint8", "int8", "int16", "uint32", "int32"):
        positions = scattered(rng, 120, 6).astype(dtype)
        agrees(student, reference, "lookup", table, positions, atol=0.0)
    every_second = scattered(rng, 60, 4, 6).T[::2]
    for some in (table[::3, 1:6], np.asfortranarray(table)):
        agrees(student, reference, "lookup", some, every_second, atol=0.0)
    for rows, shape in ((9, (0,)), (9, (2, 0, 3)), (1, (0,))):
        nothing = np.zeros(shape, dtype=int)
        agrees(student, reference, "lookup", table[:rows], nothing, atol=0.0)
    for width in (1, 300):  # as wide as it is long, too
        wide = rng.standard_normal((300, width))
        agrees(student, reference, "lookup", wide, scattered(rng, 300, 3, 3), atol=0.0)


# ---------------------------------------------------------------------------- lookup_gradient


def shares(rng: np.random.Generator, positions: np.ndarray, dim: int) -> np.ndarray:
    return rng.standard_normal((*positions.shape, dim))


@behaviour("lookup_gradient")
def check_lookup_gradient_rows(student: Answers, reference: Answers, rng: Any) -> None:
    """What arrives at a place of the output goes to the row that was read there."""
    positions = rng.permutation([10, *rng.permutation(10)[:3]])
    grad_output, expected = shares(rng, positions, 3), np.zeros((11, 3))
    for place, row in enumerate(positions):
        expected[row] = grad_output[place]
    close(student.lookup_gradient(grad_output, positions, 11), expected, room(grad_output))


@behaviour("lookup_gradient", weight=3)
def check_lookup_gradient_repeats(student: Answers, reference: Answers, rng: Any) -> None:
    """A row that was read several times gets the sum of all its shares."""
    grad_output = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0], [1000.0, 2000.0]])
    expected = [[10.0, 20.0], [0.0, 0.0], [0.0, 0.0], [1101.0, 2202.0]]
    result = student.lookup_gradient(grad_output, np.array([3, 0, 3, 3]), 4)
    close(result, expected, room(grad_output))
    positions = scattered(rng, 6, 13)
    grad_output = shares(rng, positions, 5)
    inputs = (grad_output, positions, 6)
    agrees(student, reference, "lookup_gradient", *inputs, atol=room(8 * grad_output))


@behaviour("lookup_gradient")
def check_lookup_gradient_size(student: Answers, reference: Answers, rng: Any) -> None:
    """The gradient is as long as the table, also when its last rows were not read."""
    positions = np.array([3, 1, 3])
    grad_output = shares(rng, positions, 2)
    for rows in (4, 9, 20):
        inputs = (grad_output, positions, rows)
        agrees(student, reference, "lookup_gradient", *inputs, atol=room(2 * grad_output))


@behaviour("lookup_gradient", weight=2)
def check_lookup_gradient_any_shape(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions of any shape work: repeats count within a row of a batch and across rows."""
    for shape in ((2, 6), (3, 2, 5), (4, 4)):
        positions = scattered(rng, 7, *shape)
        grad_output, table = shares(rng, positions, 3), rng.standard_normal((7, 3))
        expected = reference.lookup_gradient(grad_output, positions, 7)
        result = student.lookup_gradient(grad_output, positions, 7)
        close(result, expected, room(20 * grad_output))
        # The gradient of a loss that is linear in the table gives that loss back.
        loss, allowed = float((table[positions] * grad_output).sum()), room(200 * grad_output)
        again = float((as_array(result, "the result") * table).sum())
        close(again, loss, allowed, what="the sum of gradient times table")
    single = rng.standard_normal(3)
    expected = reference.lookup_gradient(single, np.array(5), 7)
    close(student.lookup_gradient(single, np.array(5), 7), expected, room(single))


@behaviour("lookup_gradient")
def check_lookup_gradient_float32(student: Answers, reference: Answers, rng: Any) -> None:
    """float32 gradients give a float32 gradient of the table."""
    positions = scattered(rng, 6, 8)
    grad_output = shares(rng, positions, 5).astype("float32")
    inputs, allowed = (grad_output, positions, 6), room(8 * grad_output, dtype="float32")
    agrees(student, reference, "lookup_gradient", *inputs, atol=allowed, dtype="float32")


@behaviour("lookup_gradient")
def check_lookup_gradient_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """Integer gradients give a float64 gradient of the table."""
    positions, grad_output = scattered(rng, 6, 8), rng.integers(-90, 90, (8, 4))
    inputs, allowed = (grad_output, positions, 6), room(800)
    agrees(student, reference, "lookup_gradient", *inputs, atol=allowed, dtype="float64")


@behaviour("lookup_gradient")
def check_lookup_gradient_adds_in_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """Thousands of shares of a small dtype lose nothing: they are added up in float64."""
    # The first share is so large that in its dtype 1 more is no more; all sums can be held exactly.
    for dtype, first, count in (("float32", 2.0**25, 4000), ("float16", 4096.0, 2000)):
        positions = np.repeat([2, 0], count + 1)
        grad_output = np.ones((2 * count + 2, 3))
        grad_output[:: count + 1] = first, -first, first
        expected = np.zeros((4, 3))
        expected[[0, 2]] = np.array([first, -first, first]) + count
        result = student.lookup_gradient(grad_output.astype(dtype), positions, 4)
        close(result, expected, tolerance(dtype, scale=first))


@behaviour("lookup_gradient", weight=2)
def check_lookup_gradient_refuses_positions(student: Answers, reference: Answers, rng: Any) -> None:
    """A position below 0 or not below num_positions is an IndexError; fractions raise."""
    positions = np.array([3, 1, 3, 0, 6])
    grad_output = shares(rng, positions, 4)
    inputs = (grad_output, positions, 7)
    with good_input():
        agrees(student, reference, "lookup_gradient", *inputs, atol=room(2 * grad_output))
    gradient = student.lookup_gradient
    for bad in (-2, -1, -7, -8, 7, 8, 70):
        inputs = (grad_output, np.array([3, 1, bad, 0, 6]), 7)
        refuses(gradient, *inputs, error="IndexError", because=f"position {bad} of 7 rows")
    for rows in (6, 0):
        inputs = (grad_output, positions, rows)
        refuses(gradient, *inputs, error="IndexError", because=f"position 6 of {rows} rows")
    single = rng.standard_normal(4)
    for bad in (-1, 7):
        inputs = (single, np.array(bad), 7)
        refuses(gradient, *inputs, error="IndexError", because=f"position {bad} of 7 rows")
    refuses(gradient, grad_output, positions / 2, 7, because="positions between two rows")


@behaviour("lookup_gradient", weight=2)
def check_lookup_gradient_refuses_shapes(student: Answers, reference: Answers, rng: Any) -> None:
    """Gradients that are not positions.shape + (dim,) raise, also where they would broadcast."""
    flat, grid = scattered(rng, 7, 5), scattered(rng, 7, 2, 5)
    for positions in (flat, grid):
        grad_output = shares(rng, positions, 5)
        inputs = (grad_output, positions, 7)
        with good_input():
            agrees(student, reference, "lookup_gradient", *inputs, atol=room(8 * grad_output))
    because = "gradients that are not of the shape positions.shape + (dim,)"
    bad = [
        (flat, shape) for shape in ((1, 5), (5,), (4, 5), (6, 5), (1, 5, 5), (2, 5, 5), (5, 1, 5))
    ]
    bad += [(flat[:1], (5, 5)), (flat[:1], (5,)), (flat[:, None], (5, 5)), (flat[0], (1, 5))]
    bad += [(grid, shape) for shape in ((1, 5, 5), (2, 1, 5), (5, 5), (5, 2, 5), (2, 5), (5,))]
    for positions, shape in bad:
        inputs = (rng.standard_normal(shape), np.asarray(positions), 7)
        refuses(student.lookup_gradient, *inputs, because=because)


@behaviour("lookup_gradient")
def check_lookup_gradient_nothing_read(student: Answers, reference: Answers, rng: Any) -> None:
    """Without positions all rows are 0, and a table may be empty; a negative length raises."""
    for shape, rows in (((0,), 4), ((2, 0), 3), ((0,), 0)):
        positions = np.zeros(shape, dtype=int)
        inputs = (np.zeros((*shape, 5)), positions, rows)
        with good_input():
            agrees(student, reference, "lookup_gradient", *inputs, atol=0.0)
    for rows in (-1, -4):
        inputs, because = (np.zeros((0, 5)), np.zeros(0, dtype=int), rows), f"a length of {rows}"
        refuses(student.lookup_gradient, *inputs, because=because)


@behaviour("lookup_gradient")
def check_lookup_gradient_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """Gradients and positions are still what they were, and may have gaps in memory."""
    for positions in (scattered(rng, 6, 9), scattered(rng, 6, 4, 6).T[::2]):
        grad_output = shares(rng, positions, 8)[..., ::2]
        inputs, names = (grad_output, positions, 6), ("grad_output", "positions")
        allowed = room(9 * grad_output)
        leaves_inputs(student, reference, "lookup_gradient", *inputs, names=names, atol=allowed)


@behaviour("lookup_gradient", hidden=True)
def check_lookup_gradient_other_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """Integers give float64, float16 stays float16, and positions are integers of any width."""
    for given, held, wanted in (
        ("int64", "int64", "float64"),
        ("uint8", "uint8", "float64"),
        ("float16", "int32", "float16"),
        ("float64", "int8", "float64"),
    ):
        positions = scattered(rng, 6, 8)
        grad_output = rng.integers(90, 250, (8, 4)).astype(given)  # uint8 sums pass 255
        inputs, allowed = (grad_output, positions.astype(held), 6), room(2000, dtype=wanted)
        agrees(student, reference, "lookup_gradient", *inputs, atol=allowed, dtype=wanted)


# ------------------------------------------------------------------------------- resize_table


def between(table: Any, dtype: str = "float64") -> float:
    """Tolerance for what is read between two rows, at a place that is as large as the table."""
    largest = float(np.abs(table).max(initial=1.0))
    return tolerance(dtype, scale=largest, angle=len(table))


@behaviour("resize_table", weight=2)
def check_resize_table_three_to_five(student: Answers, reference: Answers, rng: Any) -> None:
    """Three rows become five: the old ones stay, the new ones lie half-way between them."""
    table = np.array([[0.0, 8.0], [4.0, 6.0], [8.0, 0.0]])
    expected = np.array([[0.0, 8.0], [2.0, 7.0], [4.0, 6.0], [6.0, 3.0], [8.0, 0.0]])
    close(student.resize_table(table, 5), expected, between(table))
    table = rng.standard_normal((6, 3))
    halves = (table[:-1] + table[1:]) / 2
    result = student.resize_table(table, 11)
    expected = np.empty((11, 3))
    expected[::2], expected[1::2] = table, halves
    close(result, expected, between(table))


@behaviour("resize_table")
def check_resize_table_shrinks(student: Answers, reference: Answers, rng: Any) -> None:
    """Fewer rows are spread over the whole table too: ten rows become four, every third one."""
    table = rng.standard_normal((10, 3))
    close(student.resize_table(table, 4), table[::3], between(table))
    agrees(student, reference, "resize_table", table, 6, atol=between(table))


@behaviour("resize_table")
def check_resize_table_one_row(student: Answers, reference: Answers, rng: Any) -> None:
    """A new length of 1 keeps row 0, and a table of one row repeats it."""
    table = rng.standard_normal((7, 4))
    close(student.resize_table(table, 1), table[:1], between(table))
    close(student.resize_table(table[2:3], 5), np.repeat(table[2:3], 5, axis=0), between(table))
    close(student.resize_table(table[2:3], 1), table[2:3], between(table))


@behaviour("resize_table")
def check_resize_table_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """A table of integers gives float64 rows with their fractions kept."""
    # Steps that 7 does not divide: no row between is whole but for rounding, which may cut it off.
    table = np.cumsum(7 * rng.integers(-9, 9, (5, 4)) + 3, axis=0)
    agrees(student, reference, "resize_table", table, 8, atol=between(table), dtype="float64")


@behaviour("resize_table")
def check_resize_table_keeps_dtype(student: Answers, reference: Answers, rng: Any) -> None:
    """The result has the floating dtype of the table."""
    for dtype in ("float32", "float16"):
        for new in (3, 5, 12):
            table = rng.standard_normal((5, 4)).astype(dtype)
            allowed = between(table, dtype=dtype)
            agrees(student, reference, "resize_table", table, new, atol=allowed, dtype=dtype)


@behaviour("resize_table")
def check_resize_table_long(student: Answers, reference: Answers, rng: Any) -> None:
    """In a long table of a small dtype too, each new row is read at its exact place."""
    old = 1500  # float16 has no halves there, float32 four digits of them
    zigzag = np.stack([np.arange(old) % 2, np.arange(old) % 3], axis=1)
    for dtype, new in (("float16", 201), ("float32", 201), ("float32", 120)):
        table, allowed = zigzag.astype(dtype), tolerance(dtype, scale=2.0, angle=old)
        agrees(student, reference, "resize_table", table, new, atol=allowed, dtype=dtype)


@behaviour("resize_table")
def check_resize_table_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The table that went in is still what it was, whether rows are added or taken away."""
    for new in (4, 13, 9, 1):
        table = rng.standard_normal((9, 5))
        inputs, allowed = (table, new), between(table)
        leaves_inputs(student, reference, "resize_table", *inputs, names=("table",), atol=allowed)


@behaviour("resize_table")
def check_resize_table_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """A new length below 1 is a ValueError, and one that is not whole raises."""
    table = rng.standard_normal((6, 4))
    with good_input():
        agrees(student, reference, "resize_table", table, 9, atol=between(table))
    for some in (table, table[:1]):
        for new in (0, -1, -2, -6):
            because = f"a new length of {new}"
            refuses(student.resize_table, some, new, error="ValueError", because=because)
    for fraction in (2.5, 9.25, 0.5):
        refuses(student.resize_table, table, fraction, because=f"a new length of {fraction}")


@behaviour("resize_table", hidden=True)
def check_resize_table_straight_line(student: Answers, reference: Answers, rng: Any) -> None:
    """Rows on a straight line stay on it, from the same first to the same last row."""
    start, step = rng.standard_normal((2, 5))
    for old, new in ((4, 9), (9, 4), (5, 13), (13, 5), (2, 50), (50, 2), (8, 8)):
        table = start + np.arange(old)[:, None] * step
        expected = start + np.linspace(0.0, old - 1.0, new)[:, None] * step
        close(student.resize_table(table, new), expected, between(table))


@behaviour("resize_table", hidden=True)
def check_resize_table_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """Any two lengths and widths work, and tables with gaps in memory."""
    for old, new, width in ((2, 7, 3), (7, 2, 1), (8, 8, 8), (16, 8, 8), (40, 64, 2), (3, 4, 3)):
        table = rng.standard_normal((2 * old, width + 1))[::2, 1:]
        agrees(student, reference, "resize_table", table, new, atol=between(table))


# --------------------------------------------------------------------------- padded_positions


def whole_numbers(result: Any, expected: Any) -> None:
    """The result has the expected values and an integer dtype, whichever."""
    equal(result, expected)
    dtype = as_array(result, "the result").dtype
    if dtype.kind not in "iu":
        raise CheckFailed(f"the result: the dtype is {dtype}, but rows need integers.")


def sentences(
    rng: np.random.Generator, padding_id: int, *real: int, width: int, left: bool = False
) -> np.ndarray:
    """Rows of so many real tokens each, filled with padding at the end or at the start."""
    ids = rng.integers(0, 90, (len(real), width))
    ids[ids == padding_id] = 90
    for row, count in zip(ids, real, strict=True):
        row[: width - count] = padding_id
        if not left:
            row[:] = row[::-1].copy()
    return ids


@behaviour("padded_positions", weight=2)
def check_padded_positions_published(student: Answers, reference: Answers, rng: Any) -> None:
    """[0, 5, 6, 1, 1] with padding 1 has the positions 2, 3, 4, 1, 1, as RoBERTa's code says."""
    equal(student.padded_positions(np.array([0, 5, 6, 1, 1]), 1), [2, 3, 4, 1, 1])
    ids = np.array([[0, 5, 6, 1, 1], [0, 5, 6, 7, 2]])
    equal(student.padded_positions(ids, 1), [[2, 3, 4, 1, 1], [2, 3, 4, 5, 6]])


@behaviour("padded_positions", weight=2)
def check_padded_positions_left_padding(student: Answers, reference: Answers, rng: Any) -> None:
    """Padding at the start does not move the real tokens: they begin at padding_id + 1."""
    ids = sentences(rng, 1, 3, 5, 2, width=6, left=True)
    expected = [[1, 1, 1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [1, 1, 1, 1, 2, 3]]
    equal(student.padded_positions(ids, 1), expected)
    agrees(student, reference, "padded_positions", ids[2], 1, atol=0.0)


@behaviour("padded_positions")
def check_padded_positions_each_row(student: Answers, reference: Answers, rng: Any) -> None:
    """Each row of a batch counts for itself."""
    for counts, width in (((3, 7, 5), 8), ((4, 1), 4), ((2, 3, 3, 1), 4)):
        ids = sentences(rng, 1, *counts, width=width)
        agrees(student, reference, "padded_positions", ids, 1, atol=0.0)


@behaviour("padded_positions", weight=2)
def check_padded_positions_other_ids(student: Answers, reference: Answers, rng: Any) -> None:
    """padding_id may be 0 or any other id; then 1 is a token like any other."""
    equal(student.padded_positions(np.array([7, 1, 9, 0, 0]), 0), [1, 2, 3, 0, 0])
    equal(student.padded_positions(np.array([1, 0, 6, 1, 4]), 4), [5, 6, 7, 8, 4])
    padding_id = int(rng.integers(5, 90))
    ids = sentences(rng, padding_id, 4, 6, 1, width=7)
    agrees(student, reference, "padded_positions", ids, padding_id, atol=0.0)


@behaviour("padded_positions")
def check_padded_positions_integers(student: Answers, reference: Answers, rng: Any) -> None:
    """The result holds integers, so that rows can be looked up with it."""
    for left in (True, False):
        ids = sentences(rng, 3, 3, 5, 2, width=6, left=left)
        for given in (ids, ids[0], ids.astype("int32")):
            expected = reference.padded_positions(given, 3)
            whole_numbers(student.padded_positions(given, 3), expected)


@behaviour("padded_positions", weight=2)
def check_padded_positions_between(student: Answers, reference: Answers, rng: Any) -> None:
    """Padding between real tokens is given no number, and a row may be all padding or have none."""
    equal(student.padded_positions(np.array([0, 1, 1, 6, 1, 2]), 1), [2, 1, 1, 3, 1, 4])
    for padding_id in (0, 1, 8):
        ids = sentences(rng, padding_id, *[9] * 6, width=9)
        ids[rng.random(ids.shape) < 0.4] = padding_id
        ids[1], ids[2, 4], ids[3, 0] = padding_id, padding_id, 91
        agrees(student, reference, "padded_positions", ids, padding_id, atol=0.0)
        agrees(student, reference, "padded_positions", ids[1], padding_id, atol=0.0)


@behaviour("padded_positions")
def check_padded_positions_narrow_ids(student: Answers, reference: Answers, rng: Any) -> None:
    """Rows longer than the ids' dtype can count have the right positions too."""
    for dtype, left in (("int8", False), ("uint8", True), ("uint8", False), ("int16", False)):
        ids = sentences(rng, 2, 300, 270, width=310, left=left).astype(dtype)
        agrees(student, reference, "padded_positions", ids, 2, atol=0.0)


@behaviour("padded_positions")
def check_padded_positions_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The token ids that went in are still what they were."""
    for left in (True, False):
        ids = sentences(rng, 1, 3, 5, 2, width=6, left=left)
        inputs, names = (ids, 1), ("token_ids",)
        leaves_inputs(student, reference, "padded_positions", *inputs, names=names, atol=0.0)


@behaviour("padded_positions", hidden=True)
def check_padded_positions_other_sizes(student: Answers, reference: Answers, rng: Any) -> None:
    """One token, one column, squares, and arrays with gaps in memory work."""
    for counts, width in (((1,), 1), ((1, 0, 1), 1), ((3, 1, 2), 3), ((4,), 9)):
        for left in (True, False):
            ids = sentences(rng, 6, *counts, width=width, left=left)
            agrees(student, reference, "padded_positions", ids, 6, atol=0.0)
    wide = np.repeat(np.repeat(sentences(rng, 6, 2, 5, 3, width=5), 2, axis=0), 2, axis=1)
    agrees(student, reference, "padded_positions", wide[::2, ::2], 6, atol=0.0)
    agrees(student, reference, "padded_positions", wide[0, ::2], 6, atol=0.0)
    agrees(student, reference, "padded_positions", wide[1:].T, 6, atol=0.0)


# ----------------------------------------------------------------- LearnedPositionalEmbedding


def tensor(array: Any, dtype: str = "float32") -> torch.Tensor:
    import torch

    return torch.as_tensor(np.array(array)).to(getattr(torch, dtype))


def drawn(rng: Any, *shape: int, dtype: str = "float32") -> torch.Tensor:
    return tensor(rng.standard_normal(shape), dtype)


def module(answers: Answers, weight: torch.Tensor) -> Any:
    """A module of the answer's with this table."""
    max_len, dim = weight.shape
    made = answers.LearnedPositionalEmbedding(max_len, dim)
    made = instance(made, what="LearnedPositionalEmbedding(…)")
    reply = made.method("load_state_dict", {"weight": weight}, strict=False)
    unread, unknown = pair(reply, what="the result of load_state_dict")
    if unknown:
        raise without_weight(unread)
    return made


def without_weight(names: Any) -> CheckFailed:
    """What to say when the table that a check brings finds no place."""
    there = ", ".join(f"`{name}`" for name in names or ()) or "nothing"
    return CheckFailed("the state_dict has no entry called `weight`.", f"It holds {there[:200]}.")


def both(student: Answers, reference: Answers, weight: torch.Tensor) -> tuple[Any, Any]:
    """The reference's module and the student's, with the same table."""
    right = module(reference, weight)
    return right, module(student, weight)


def sums(result: Any, expected: Any, dtype: str = "float32", rounded: str | None = None) -> None:
    """The result has the expected values, up to rounding in these dtypes, and the first of them."""
    close(result, expected, tolerance(rounded or dtype, scale=4.0))
    same_dtype(result, dtype)


@behaviour("LearnedPositionalEmbedding")
def check_learned_positional_embedding_state(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """The weight (max_len, dim) is the only entry of the state_dict."""
    for max_len, dim in ((11, 6), (4, 1), (1, 7)):
        made = student.LearnedPositionalEmbedding(max_len, dim)
        made = instance(made, what="LearnedPositionalEmbedding(…)")
        # Nothing is loaded, so that all there is to load is missing.
        names, _ = pair(made.method("load_state_dict", {}, strict=False), what="load_state_dict")
        if not isinstance(names, list) or "weight" not in names:
            raise without_weight(names)
        equal(made.get("weight.shape"), (max_len, dim), what="the shape of the weight")
        for name in names:
            if name != "weight":
                beside = f"It is called `{str(name)[:80]}`."
                raise CheckFailed("the state_dict holds something beside the weight.", beside)


@behaviour("LearnedPositionalEmbedding", weight=2)
def check_learned_positional_embedding_adds_rows(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Token t of every sequence gets row t of the weight added to it."""
    x = tensor([[[10.0, 20.0], [30.0, 40.0]], [[50.0, 60.0], [70.0, 80.0]]])
    mine = module(student, tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    expected = [[[11.0, 22.0], [33.0, 44.0]], [[51.0, 62.0], [73.0, 84.0]]]
    close(mine(x), expected, 1e-4)
    right, mine = both(student, reference, drawn(rng, 11, 8))
    x = drawn(rng, 3, 5, 8)
    expected = right(x)
    sums(mine(x), expected)


@behaviour("LearnedPositionalEmbedding", weight=2)
def check_learned_positional_embedding_offset(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """With an offset the rows start there; with the right one the last row can be reached."""
    weight = drawn(rng, 11, 6)
    right, mine = both(student, reference, weight)
    for seq, offset in ((5, 3), (1, 7), (4, 7), (2, 0), (1, 10), (11, 0)):
        x = drawn(rng, 2, seq, 6)
        expected = right(x, offset)
        sums(mine(x, offset), expected)
        sums(mine(x, offset=offset), expected)


@behaviour("LearnedPositionalEmbedding", weight=2)
def check_learned_positional_embedding_gradient(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """The weight is trainable: each row that was used gets the batch's gradients, the others 0."""
    mine = module(student, drawn(rng, 9, 4))
    if mine.get("weight.requires_grad") is not True:
        raise CheckFailed("the weight does not require a gradient, so no training can change it.")
    for seq, offset in ((3, 4), (9, 0)):  # the whole table too: no row is left out of training
        x, weights = drawn(rng, 2, seq, 4), drawn(rng, 2, seq, 4)
        expected = np.zeros((9, 4))
        expected[offset : offset + seq] = weights.sum(dim=0)
        got = mine.gradient("weight", x, offset, weights=weights)
        if got is None:
            raise CheckFailed("no gradient arrives at the weight, so it cannot be trained.")
        allowed = tolerance("float32", scale=8.0)
        close(got, expected, allowed, what="the gradient of the weight")


@behaviour("LearnedPositionalEmbedding", weight=2)
def check_learned_positional_embedding_refuses_past_the_end(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A sequence that runs past the table is a ValueError that names offset + seq and max_len."""
    right, mine = both(student, reference, drawn(rng, 37, 6))
    x = drawn(rng, 2, 5, 6)
    expected = right(x, 32)
    with good_input():
        sums(mine(x, 32), expected)
    for seq, offset in ((1, 37), (5, 36), (5, 33), (38, 0), (1, 90), (5, 37), (40, 36)):
        named, because = (str(offset + seq), "37"), f"offset {offset} and a sequence of {seq}"
        inputs = (drawn(rng, 2, seq, 6), offset)
        refuses(mine, *inputs, error="ValueError", naming=named, because=because)


@behaviour("LearnedPositionalEmbedding")
def check_learned_positional_embedding_bfloat16(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """bfloat16 vectors stay bfloat16, although the weight is float32."""
    right, mine = both(student, reference, drawn(rng, 11, 8))
    x = drawn(rng, 2, 5, 8, dtype="bfloat16")
    expected = right(x, 4)
    sums(mine(x, 4), expected, "bfloat16")


@behaviour("LearnedPositionalEmbedding")
def check_learned_positional_embedding_refuses_negative(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A negative offset is a ValueError: no row counts from the end."""
    right, mine = both(student, reference, drawn(rng, 9, 6))
    x = drawn(rng, 2, 5, 6)
    expected = right(x, 2)
    with good_input():
        sums(mine(x, 2), expected)
    for seq, offset in ((5, -2), (1, -1), (3, -6), (5, -9), (1, -9), (9, -1), (2, -1), (5, -30)):
        because = f"an offset of {offset}"
        refuses(mine, drawn(rng, 2, seq, 6), offset, error="ValueError", because=because)


@behaviour("LearnedPositionalEmbedding", weight=2)
def check_learned_positional_embedding_dtypes(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """The dtype of x is kept whatever it is, also after the module or its parent was cast."""
    weight = drawn(rng, 11, 8)
    for cast, through_parent in ((None, False), ("bfloat16", False), ("float16", True)):
        right, mine = both(student, reference, weight)
        if cast is not None:
            right.cast(cast, through_parent=through_parent)
            mine.cast(cast, through_parent=through_parent)
        for dtype in ("float32", "float16", "bfloat16", "float64"):
            in_use = (dtype, cast, "float32")
            coarsest = next(d for d in ("bfloat16", "float16", "float32") if d in in_use)
            for seq, offset in ((5, 4), (11, 0)):
                x = drawn(rng, 2, seq, 8, dtype=dtype)
                expected = right(x, offset)
                sums(mine(x, offset), expected, dtype, coarsest)


@behaviour("LearnedPositionalEmbedding")
def check_learned_positional_embedding_autocast(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Under autocast the sum is exact, and keeps the dtype of x."""
    right, mine = both(student, reference, drawn(rng, 11, 8))
    for dtype, offset in (("float32", 5), ("bfloat16", 2), ("float32", 0)):
        x = drawn(rng, 2, 6, 8, dtype=dtype)
        expected = right(x, offset)
        with student.autocast("bfloat16"):
            result = mine(x, offset)
        sums(result, expected, dtype)


@behaviour("LearnedPositionalEmbedding")
def check_learned_positional_embedding_leaves_input(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """x and the weight are still what they were, and no call changes what the next one gets."""
    weight = drawn(rng, 11, 6)
    right, mine = both(student, reference, weight)
    for seq, offset in ((2, 3), (1, 5), (1, 0), (5, 3), (5, 3), (5, 6), (2, 3), (11, 0), (5, 0)):
        for batch in (2, 1):
            x = drawn(rng, batch, seq, 6)
            expected = right(x, offset)
            result, (after, _) = mine.with_inputs(x, offset)
            unchanged(after, x, what="x")
            sums(result, expected)
    unchanged(mine.get("weight"), weight, what="the weight")


@behaviour("LearnedPositionalEmbedding")
def check_learned_positional_embedding_gradients(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Gradients reach x too, so that the word vectors before it can be trained."""
    right, mine = both(student, reference, drawn(rng, 11, 8))
    x, weights = drawn(rng, 3, 5, 8), drawn(rng, 3, 5, 8)
    trains(mine, right, x, 2, names=("x",), weights=weights, atol=tolerance("float32", scale=4.0))


@behaviour("LearnedPositionalEmbedding", weight=2)
def check_learned_positional_embedding_refuses_shapes(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """An x of another width raises, also where it would broadcast; so does a negative size."""
    weight = drawn(rng, 9, 6)
    right, mine = both(student, reference, weight)
    x = drawn(rng, 2, 5, 6)
    expected = right(x, 3)
    with good_input():
        sums(mine(x, 3), expected)
    for width in (1, 3, 7, 12):
        refuses(mine, drawn(rng, 2, 5, width), 3, because=f"vectors of width {width}, not 6")
    narrow = module(student, drawn(rng, 9, 1))
    for width in (2, 5, 9):
        refuses(narrow, drawn(rng, 2, 5, width), because=f"vectors of width {width}, not 1")
    for sizes in ((-9, 6), (9, -6)):
        refuses(student.LearnedPositionalEmbedding, *sizes, because=f"the sizes {sizes}")
    for shape, seq in (((1, 6), 1), ((2, 1, 5, 6), 5), ((1, 1, 3, 6), 3)):
        odd = drawn(rng, *shape)
        refuses_or_adds(mine, odd, odd + weight[:seq])


@behaviour("LearnedPositionalEmbedding", hidden=True)
def check_learned_positional_embedding_other_sizes(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Equal lengths of everything, a single coordinate and a single row work."""
    for max_len, batch, seq, dim in ((4, 4, 4, 4), (9, 5, 5, 5), (7, 3, 2, 1), (1, 2, 1, 6)):
        right, mine = both(student, reference, drawn(rng, max_len, dim))
        for offset in {0, max_len - seq}:
            x = drawn(rng, batch, seq, dim)
            expected = right(x, offset)
            sums(mine(x, offset), expected)


def refuses_or_adds(mine: Any, x: Any, expected: Any) -> None:
    """An x of another rank raises, or else its last axis but one is the sequence."""
    try:
        result = mine(x)
    except StudentError as raised:
        if isinstance(raised, Gone):
            raise
        return
    close(result, expected, tolerance("float32", scale=4.0), what=f"the result for x {shown(x)}")

"""Checks of the chapter on sinusoidal position encodings.

Inputs are drawn so that habit cannot pass for understanding: positions that are no range, bases
that are no default, axes of different lengths. Where a number is published it is compared with that
number, so that a fault of the reference is found as well.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers import Answers
from ..assertions import (
    CheckFailed,
    agrees,
    close,
    equal,
    good_input,
    instance,
    leaves_inputs,
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
    Exercise("sinusoidal", "frequencies", 1),
    Exercise("sinusoidal", "wavelengths", 1),
    Exercise("sinusoidal", "sinusoidal_encoding", 3),
    Exercise("sinusoidal", "shift_matrix", 3),
    Exercise("sinusoidal", "decode_position", 2),
    Exercise("sinusoidal", "fixed_layout", 2),
    Exercise("sinusoidal", "SinusoidalEncoding", 3, "with_torch"),
)

# Positions 3 and 5 at width 8, as two public libraries compute them in float32.
ROWS_3_AND_5 = [
    [0.1411200, -0.9899925, 0.2955202, 0.9553365, 0.0299955, 0.9995500, 0.0030000, 0.9999955],
    [-0.9589243, 0.2836622, 0.4794255, 0.8775826, 0.0499792, 0.9987503, 0.0050000, 0.9999875],
]
AT_5 = [-0.958924275, 0.283662185, 0.049979169, 0.998750260]  # at width 4
AT_8 = [0.989358247, -0.145500034, 0.079914694, 0.996801706]
PUBLISHED = 1e-6  # those libraries compute in float32


def scattered(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Integer positions that are no range: out of order, one of them twice, none near zero."""
    places = 3 + np.cumsum(rng.integers(2, 30, math.prod(shape)))[::-1]
    places[1] = places[0]
    places[[-2, -1]] = places[[-1, -2]]
    return places.reshape(shape)


def room(angles: Any, *, exact: bool = False) -> float:
    """Tolerance for numbers up to 1, the sines and cosines of angles up to the largest of these.

    Angles must be exact to float64 only where a check is about that: elsewhere coarser tables cost
    no points a second time.
    """
    held = "float64" if exact else "float32"
    angle = float(np.abs(angles).max(initial=0.0))
    return tolerance("float64", angle=angle, angle_dtype=held)


def bad_dims(answer: Any, *before: Any) -> None:
    """`answer(*before, dim)` refuses widths that have no pairs, by name, and cuts none to size."""
    for dim in (13, -6, 0):
        inputs, named = (*before, dim), (str(dim),)
        because = "a width that is odd or not positive"
        refuses(answer, *inputs, error="ValueError", naming=named, because=because)
    refuses(answer, *before, 8.5, because="a width that is a fraction")


def bad_bases(answer: Any, *before: Any) -> None:
    """`answer(*before, base)` refuses bases that are not positive."""
    for base in (0.0, -50.0):
        because = "a base that is not positive"
        refuses(answer, *before, base, error="ValueError", because=because)


# -------------------------------------------------------------------------------- frequencies


@behaviour("frequencies", weight=2)
def check_frequencies_powers_of_ten(student: Answers, reference: Answers, rng: Any) -> None:
    """With dim 8 and base 10000 the four frequencies are 1, 0.1, 0.01 and 0.001."""
    close(student.frequencies(8), [1.0, 0.1, 0.01, 0.001], 1e-7)
    close(student.frequencies(4), [1.0, 0.01], 1e-7)


@behaviour("frequencies")
def check_frequencies_other_base(student: Answers, reference: Answers, rng: Any) -> None:
    """The base that is passed in counts: 500000 with dim 128 ends at 2.455e-06."""
    ladder = shaped(student.frequencies(128, 500_000.0), (64,))
    close(ladder[-1], 2.455140791131609e-06, 1e-12, what="the last frequency")
    base = float(rng.integers(20, 900))
    agrees(student, reference, "frequencies", 10, base, atol=1e-6)


@behaviour("frequencies")
def check_frequencies_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """Frequencies are float64, and exact to float64."""
    for dim in (6, 22):
        base = float(rng.uniform(20, 900))
        allowed = tolerance("float64")
        agrees(student, reference, "frequencies", dim, base, atol=allowed, dtype="float64")


@behaviour("frequencies")
def check_frequencies_refuses_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is odd or not positive is a ValueError that names it; a fraction raises too."""
    with good_input():
        agrees(student, reference, "frequencies", 12, atol=1e-6)
    bad_dims(student.frequencies)


@behaviour("frequencies")
def check_frequencies_refuses_base(student: Answers, reference: Answers, rng: Any) -> None:
    """A base that is not positive is a ValueError."""
    with good_input():
        agrees(student, reference, "frequencies", 6, 50.0, atol=1e-6)
    bad_bases(student.frequencies, 6)


@behaviour("frequencies", hidden=True)
def check_frequencies_other_widths(student: Answers, reference: Answers, rng: Any) -> None:
    """A single pair has frequency 1; wide vectors, whole bases and small ones work as well."""
    close(student.frequencies(2), [1.0], 1e-9)
    for dim, base in ((2, 7), (14, 90), (200, 1_000_000.5), (6, 1), (10, 0.25)):
        agrees(student, reference, "frequencies", dim, base, atol=1e-6)


# -------------------------------------------------------------------------------- wavelengths


def same_lengths(
    student: Answers, reference: Answers, dim: int, base: float, *, exact: bool = False
) -> None:
    """Wavelengths as the reference has them, each compared by its own size."""
    expected = np.asarray(reference.wavelengths(dim, base))
    result = student.wavelengths(dim, base)
    got = shaped(result, expected.shape)
    allowed = tolerance("float64", angle=math.log(base)) if exact else 1e-6
    close(got / expected, np.ones(dim // 2), allowed, what="yours divided by the right ones")
    if exact:
        same_dtype(result, "float64")


@behaviour("wavelengths", weight=2)
def check_wavelengths_of_two_pairs(student: Answers, reference: Answers, rng: Any) -> None:
    """With dim 4 the two pairs take 6.283 and 628.3 positions to come round once."""
    close(student.wavelengths(4), [6.283185307, 628.3185307], 1e-3)


@behaviour("wavelengths", weight=2)
def check_wavelengths_below_the_limit(student: Answers, reference: Answers, rng: Any) -> None:
    """With dim 512 the longest is 60611 positions: 62832 = 2π·10000 is a limit, never reached."""
    lengths = shaped(student.wavelengths(512), (256,))
    close(lengths[-1], 60611.477, 0.1, what="the longest wavelength")
    close(lengths[0], 6.283185307, 1e-5, what="the shortest wavelength")
    close(lengths[128], 628.3185307, 1e-3, what="the wavelength of pair 128")


@behaviour("wavelengths")
def check_wavelengths_other_base(student: Answers, reference: Answers, rng: Any) -> None:
    """The base that is passed in counts, and so does the width."""
    for dim in (6, 10):
        same_lengths(student, reference, dim, float(rng.integers(20, 900)))


@behaviour("wavelengths")
def check_wavelengths_refuses_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is odd or not positive is a ValueError that names it; a fraction raises too."""
    with good_input():
        same_lengths(student, reference, 12, 10_000.0)
    bad_dims(student.wavelengths)


@behaviour("wavelengths")
def check_wavelengths_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """Wavelengths are float64, and exact to float64."""
    for dim in (8, 26):
        same_lengths(student, reference, dim, float(rng.uniform(20, 90_000)), exact=True)


@behaviour("wavelengths")
def check_wavelengths_refuses_base(student: Answers, reference: Answers, rng: Any) -> None:
    """A base that is not positive is a ValueError."""
    with good_input():
        same_lengths(student, reference, 6, 50.0)
    bad_bases(student.wavelengths, 6)


@behaviour("wavelengths", hidden=True)
def check_wavelengths_other_widths(student: Answers, reference: Answers, rng: Any) -> None:
    """A single pair, a wide vector, a whole base and a small one work as well."""
    close(student.wavelengths(2), [6.283185307], 1e-6)
    for dim, base in ((2, 7), (14, 90), (200, 1_000_000.5), (6, 1), (10, 0.25)):
        same_lengths(student, reference, dim, base)


# ------------------------------------------------------------------------ sinusoidal_encoding


@behaviour("sinusoidal_encoding", weight=2)
def check_sinusoidal_encoding_published_rows(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Positions 3 and 5 at width 8 become the published vectors."""
    both = student.sinusoidal_encoding(np.array([3, 5]), 8)
    turned_round = student.sinusoidal_encoding(np.array([8, 5]), 4)
    close(both, ROWS_3_AND_5, PUBLISHED)
    close(turned_round, [AT_8, AT_5], PUBLISHED, what="positions 8 and 5 at width 4")


@behaviour("sinusoidal_encoding", weight=2)
def check_sinusoidal_encoding_many_positions(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Each position gets its own vector, in whatever order they come, and with any base."""
    positions = scattered(rng, 5)
    for base in (500.0, 90.0):
        inputs = (positions, 6, base)
        agrees(student, reference, "sinusoidal_encoding", *inputs, atol=room(positions))


@behaviour("sinusoidal_encoding")
def check_sinusoidal_encoding_any_shape(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions of any shape get one more axis, the last, for the coordinates."""
    positions = scattered(rng, 2, 5)
    inputs = (positions, 6, 700.0)
    agrees(student, reference, "sinusoidal_encoding", *inputs, atol=room(positions))


@behaviour("sinusoidal_encoding")
def check_sinusoidal_encoding_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """The result is float64 whatever the dtype of the positions, small integers too."""
    for dtype in ("int64", "int8", "uint8", "float32"):
        positions = rng.integers(60, 120, 5).astype(dtype)
        inputs = (positions, 8, 300.0)
        agrees(
            student,
            reference,
            "sinusoidal_encoding",
            *inputs,
            atol=room(positions),
            dtype="float64",
        )


@behaviour("sinusoidal_encoding")
def check_sinusoidal_encoding_refuses_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is odd or not positive is a ValueError that names it; a fraction raises too."""
    positions = scattered(rng, 5)
    with good_input():
        agrees(student, reference, "sinusoidal_encoding", positions, 8, atol=room(positions))
    bad_dims(student.sinusoidal_encoding, positions)


@behaviour("sinusoidal_encoding")
def check_sinusoidal_encoding_fractions(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions may be fractions, negative, or zero."""
    positions = np.array([7.25, -3.5, 0.0, 0.125, -11.0])
    inputs = (positions, 10, 300.5)
    agrees(student, reference, "sinusoidal_encoding", *inputs, atol=room(positions))


@behaviour("sinusoidal_encoding")
def check_sinusoidal_encoding_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The positions that went in are still what they were."""
    for positions in (scattered(rng, 5, 1) + 0.5, scattered(rng, 6) + 0.25):
        inputs, allowed, names = (positions, 2), room(positions), ("positions",)
        leaves_inputs(student, reference, "sinusoidal_encoding", *inputs, names=names, atol=allowed)


@behaviour("sinusoidal_encoding")
def check_sinusoidal_encoding_refuses_base(student: Answers, reference: Answers, rng: Any) -> None:
    """A base that is not positive is a ValueError."""
    positions = scattered(rng, 5)
    with good_input():
        inputs = (positions, 6, 50.0)
        agrees(student, reference, "sinusoidal_encoding", *inputs, atol=room(positions))
    bad_bases(student.sinusoidal_encoding, positions, 6)


@behaviour("sinusoidal_encoding", hidden=True)
def check_sinusoidal_encoding_far_out(student: Answers, reference: Answers, rng: Any) -> None:
    """At large positions the sines and cosines are still exact to float64."""
    for dtype in ("float64", "int32", "float32"):
        positions = rng.uniform(60_000, 130_000, 5).astype(dtype)
        inputs, allowed = (positions, 64, 20_000.5), room(positions, exact=True)
        agrees(student, reference, "sinusoidal_encoding", *inputs, atol=allowed)


@behaviour("sinusoidal_encoding", hidden=True)
def check_sinusoidal_encoding_single_position(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A single position gives one vector, in as many axes as it came with; three give four."""
    single = (np.array(37), np.array([37]), np.array([[37]]))
    for positions in (*single, scattered(rng, 3, 2, 5), scattered(rng, 4, 4)):
        for dim in (2, 4, 16):
            inputs = (positions, dim, 90)  # base is an integer
            agrees(student, reference, "sinusoidal_encoding", *inputs, atol=room(positions))


@behaviour("sinusoidal_encoding", hidden=True)
def check_sinusoidal_encoding_lengths(student: Answers, reference: Answers, rng: Any) -> None:
    """All vectors of a width are of one length, and the dot product of two sees their distance."""
    start, apart = scattered(rng, 5), np.array([0, 1, 2, 7, 40])
    dim, base = 2 * int(rng.integers(3, 9)), 70.0
    ladder = base ** (-np.arange(0, dim, 2) / dim)
    expected = np.cos(np.outer(apart, ladder)).sum(axis=-1)  # cos(a)·cos(b) + sin(a)·sin(b)
    here = shaped(student.sinusoidal_encoding(start, dim, base), (5, dim))
    there = shaped(student.sinusoidal_encoding(start + apart, dim, base), (5, dim))
    allowed = dim * room(start + apart)
    close((here * here).sum(axis=-1), np.full(5, dim / 2), allowed, what="the squared length")
    close((here * there).sum(axis=-1), expected, allowed, what="the dot product of two encodings")


# ------------------------------------------------------------------------------- shift_matrix


def moved(matrix: Any, encodings: Any) -> np.ndarray:
    """M @ PE for each row PE of encodings, once the matrix has its shape."""
    rows = np.asarray(encodings)
    return rows @ shaped(matrix, (rows.shape[-1],) * 2, what="the matrix").T


@behaviour("shift_matrix", weight=2)
def check_shift_matrix_five_to_eight(student: Answers, reference: Answers, rng: Any) -> None:
    """With offset 3 and dim 4, the matrix times PE(5) is PE(8)."""
    close(moved(student.shift_matrix(3, 4), [AT_5]), [AT_8], 1e-7, what="M @ PE(5)")


@behaviour("shift_matrix", weight=2)
def check_shift_matrix_every_position(student: Answers, reference: Answers, rng: Any) -> None:
    """One matrix moves every position by the offset, for other widths and bases too."""
    places = scattered(rng, 5)
    for dim, base in ((6, 500.0), (10, 70.0)):
        offset = int(rng.integers(2, 40))
        here = reference.sinusoidal_encoding(places, dim, base)
        there = reference.sinusoidal_encoding(places + offset, dim, base)
        allowed = 2 * room(places + offset)
        close(moved(student.shift_matrix(offset, dim, base), here), there, allowed, what="M @ PE")


@behaviour("shift_matrix", weight=2)
def check_shift_matrix_backwards(student: Answers, reference: Answers, rng: Any) -> None:
    """The offset may be negative, or a fraction of a position."""
    for offset in (-3, -int(rng.integers(5, 40)), 0.5, float(rng.uniform(-9, -2))):
        agrees(student, reference, "shift_matrix", offset, 6, 40.0, atol=room(offset))


@behaviour("shift_matrix")
def check_shift_matrix_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """The matrix is float64, for whole offsets and for fractions."""
    for offset in (int(rng.integers(2, 40)), float(rng.uniform(2, 9))):
        inputs, allowed = (offset, 8, 60.0), room(offset)
        agrees(student, reference, "shift_matrix", *inputs, atol=allowed, dtype="float64")


@behaviour("shift_matrix")
def check_shift_matrix_refuses_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is odd or not positive is a ValueError that names it; a fraction raises too."""
    with good_input():
        agrees(student, reference, "shift_matrix", 5, 8, atol=room(5))
    bad_dims(student.shift_matrix, 5)


@behaviour("shift_matrix")
def check_shift_matrix_refuses_base(student: Answers, reference: Answers, rng: Any) -> None:
    """A base that is not positive is a ValueError."""
    with good_input():
        agrees(student, reference, "shift_matrix", 5, 6, 50.0, atol=room(5))
    bad_bases(student.shift_matrix, 5, 6)


@behaviour("shift_matrix", hidden=True)
def check_shift_matrix_rotation(student: Answers, reference: Answers, rng: Any) -> None:
    """Two moves in a row are one move by the sum, and moving back undoes it."""
    dim, base = 2 * int(rng.integers(3, 8)), float(rng.integers(20, 400))
    first, second = (int(n) for n in rng.integers(3, 50, 2))
    right = np.asarray(reference.shift_matrix(first + second, dim, base))
    one, two = (
        shaped(student.shift_matrix(offset, dim, base), (dim, dim), what="the matrix")
        for offset in (first, second)
    )
    allowed = 4 * room(first + second)
    close(one @ two, right, allowed, what="the product of two matrices")
    close(one @ one.T, np.eye(dim), allowed, what="the matrix times its transpose")


@behaviour("shift_matrix", hidden=True)
def check_shift_matrix_no_offset(student: Answers, reference: Answers, rng: Any) -> None:
    """With offset 0 nothing moves; a single pair and a whole base work as well."""
    for dim in (2, 10):
        unmoved = student.shift_matrix(0, dim)
        close(unmoved, np.eye(dim), room(0), what="the matrix of offset 0")
        same_dtype(unmoved, "float64", what="the matrix of offset 0")
    for offset, dim in ((3, 2), (1, 16), (11, 4)):
        agrees(student, reference, "shift_matrix", offset, dim, 90, atol=room(offset))


@behaviour("shift_matrix", hidden=True)
def check_shift_matrix_far(student: Answers, reference: Answers, rng: Any) -> None:
    """The matrix is exact to float64 for large offsets too."""
    for offset in (int(rng.integers(60_000, 130_000)), -float(rng.uniform(60_000, 130_000))):
        inputs, allowed = (offset, 32, 20_000.5), room(offset, exact=True)
        agrees(student, reference, "shift_matrix", *inputs, atol=allowed)


# ---------------------------------------------------------------------------- decode_position


def finds(
    student: Answers, encoding: Any, max_position: int, position: int, base: float = 10000.0
) -> None:
    """The student's answer reads this position off the encoding, as an int."""
    found = student.decode_position(encoding, max_position, base)
    equal(found, position, what="the position")
    if not isinstance(found, int | np.integer):
        raise CheckFailed(f"the position must be an int, but is a {type(found).__name__}.")


def blurred(rng: np.random.Generator, encoding: Any, size: float) -> np.ndarray:
    """The encoding with every coordinate off by nearly `size`, this way or that."""
    exact = np.asarray(encoding)
    return exact + size * rng.uniform(0.9, 1.0, exact.shape) * rng.choice([-1, 1], exact.shape)


@behaviour("decode_position", weight=2)
def check_decode_position_four_digits(student: Answers, reference: Answers, rng: Any) -> None:
    """The vectors of positions 8 and 5, written with four digits, are read as 8 and 5."""
    equal(student.decode_position(np.array(AT_8).round(4), 100), 8, what="the position")
    equal(student.decode_position(np.array(AT_5).round(4), 60), 5, what="the position")


@behaviour("decode_position")
def check_decode_position_other_base(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions are found with other widths, bases and dtypes, and come back as an int."""
    for dim, base, dtype in ((10, 500.0, "float64"), (6, 700.0, "float32")):
        position = int(rng.integers(100, 290))
        exact = np.asarray(reference.sinusoidal_encoding(position, dim, base))
        finds(student, exact.astype(dtype), 300, position, base)


@behaviour("decode_position", weight=2)
def check_decode_position_noise(student: Answers, reference: Answers, rng: Any) -> None:
    """With every coordinate off by up to 0.049, the position is still found."""
    for dim, base in ((8, 10_000.0), (12, 700.0), (20, 10_000.0)):
        position = int(rng.integers(50, 590))
        exact = reference.sinusoidal_encoding(position, dim, base)
        finds(student, blurred(rng, exact, 0.049), 600, position, base)


@behaviour("decode_position", weight=2)
def check_decode_position_refuses_misfits(student: Answers, reference: Answers, rng: Any) -> None:
    """When the best position is off by 0.06 in a single coordinate, that is a ValueError."""
    position = int(rng.integers(50, 590))
    exact = np.asarray(reference.sinusoidal_encoding(position, 12))
    with good_input():
        finds(student, blurred(rng, exact, 0.049), 600, position)
    because = "no position fits within 0.05 in every coordinate"
    refuses(student.decode_position, np.zeros(12), 600, error="ValueError", because=because)
    sine, cosine = 2 * int(rng.integers(6)), 2 * int(rng.integers(6)) + 1
    far_off = [(sine, -0.8), (sine, 0.8), (cosine, -0.8)]  # in an order that tells beliefs apart
    slightly = [(int(place), rng.choice([-0.06, 0.06])) for place in rng.permutation(12)]
    for coordinate, error in (*far_off, *slightly):
        off = exact.copy()
        off[coordinate] += error
        refuses(student.decode_position, off, 600, error="ValueError", because=because)
        if (coordinate, error) == far_off[-1]:  # no other position is nearer than 0.67
            off = blurred(rng, exact, 0.07)
            refuses(student.decode_position, off, 600, error="ValueError", because=because)


@behaviour("decode_position")
def check_decode_position_nearest(student: Answers, reference: Answers, rng: Any) -> None:
    """Where several positions are near, as with a single pair of coordinates, the nearest wins."""
    for _ in range(3):
        position = int(rng.integers(400, 690))
        exact = reference.sinusoidal_encoding(position, 2)
        finds(student, exact, 700, position)
        finds(student, blurred(rng, exact, 1e-3), 700, position)
    # The one position that fits, though another is nearer in a straight line: it is off by 0.06.
    for encoding, position in (([-0.405, -0.844], 456), ([0.397, -0.849], 631)):
        finds(student, np.array(encoding), 700, position)


@behaviour("decode_position")
def check_decode_position_max_position(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions count up to max_position − 1; beyond, nothing fits. Below 0 there is no count."""
    last = int(rng.integers(200, 500))
    encoding = reference.sinusoidal_encoding(last, 10, 500.0)
    with good_input():
        finds(student, encoding, last + 1, last, 500.0)
    because = "the position is not in range(max_position)"
    for limit in (last, last // 2, 1, 0):
        refuses(
            student.decode_position, encoding, limit, 500.0, error="ValueError", because=because
        )
    refuses(student.decode_position, encoding, -last - 1, 500.0, because="a negative max_position")


@behaviour("decode_position")
def check_decode_position_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The encoding that went in is still what it was."""
    encoding = np.asarray(reference.sinusoidal_encoding(int(rng.integers(50, 90)), 8))
    expected = reference.decode_position(encoding, 100)
    found, after = student.decode_position.with_inputs(encoding, 100)
    unchanged(after[0], encoding, what="encoding")
    with good_input():
        equal(found, expected, what="the position")


@behaviour("decode_position")
def check_decode_position_refuses(student: Answers, reference: Answers, rng: Any) -> None:
    """An encoding of odd length or none, a bad base, and two axes are refused."""
    exact = np.asarray(reference.sinusoidal_encoding(np.array([37, 81]), 8, 600.0))
    with good_input():
        finds(student, exact[0], 100, 37, 600.0)
    decode = student.decode_position
    odd = np.append(reference.sinusoidal_encoding(37, 6, 600.0), 0.5)
    because = "an encoding of odd length"
    refuses(decode, odd, 100, 600.0, error="ValueError", naming=("7",), because=because)
    refuses(decode, exact[0, :0], 100, 600.0, error="ValueError", because="an empty encoding")
    for several in (exact, exact[:1], exact[:1].T):
        refuses(decode, several, 100, 600.0, because="an encoding with two axes")
    bad_bases(decode, exact[0], 100)


@behaviour("decode_position", hidden=True)
def check_decode_position_far_out(student: Answers, reference: Answers, rng: Any) -> None:
    """Among twenty thousand positions the right one is found, near the end and near zero."""
    for position in (int(rng.integers(15_000, 19_999)), int(rng.integers(2, 99)), 19_999, 0):
        exact = reference.sinusoidal_encoding(position, 16)
        finds(student, blurred(rng, exact, 0.03), 20_000, position)


@behaviour("decode_position", hidden=True)
def check_decode_position_dtypes(student: Answers, reference: Answers, rng: Any) -> None:
    """Encodings in float32, float16 or whole numbers are read as well."""
    position = int(rng.integers(100, 590))
    exact = np.asarray(reference.sinusoidal_encoding(position, 14, 900))
    for dtype in ("float32", "float16"):
        finds(student, exact.astype(dtype), 600, position, 900)
    finds(student, exact[:2].astype("float32"), 600, position)
    for dtype in ("int64", "uint8"):
        finds(student, np.array([0, 1] * 5, dtype=dtype), 600, 0)
        nowhere, because = np.zeros(10, dtype=dtype), "whole numbers that no position has"
        refuses(student.decode_position, nowhere, 600, error="ValueError", because=because)


# ------------------------------------------------------------------------------- fixed_layout


@behaviour("fixed_layout", weight=2)
def check_fixed_layout_published_rows(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions 3 and 5 at width 8 become the paper's vectors."""
    close(student.fixed_layout(np.array([3, 5]), 8), ROWS_3_AND_5, PUBLISHED)


@behaviour("fixed_layout")
def check_fixed_layout_last_frequency(student: Answers, reference: Answers, rng: Any) -> None:
    """At width 8 the slowest pair turns by 0.001 per position, not by 1/base = 0.0001."""
    places = scattered(rng, 5)
    table = shaped(student.fixed_layout(places, 8), (5, 8))
    close(table[:, 6], np.sin(places * 0.001), room(places), what="the sines of the slowest pair")
    close(table[:, 7], np.cos(places * 0.001), room(places), what="its cosines")


@behaviour("fixed_layout")
def check_fixed_layout_other_base(student: Answers, reference: Answers, rng: Any) -> None:
    """The table is right, and float64, for positions that are no range, other widths and bases."""
    for dim, base in ((6, 500.0), (12, 90.0)):
        places = scattered(rng, 5)
        inputs, allowed = (places, dim, base), room(places)
        agrees(student, reference, "fixed_layout", *inputs, atol=allowed, dtype="float64")


@behaviour("fixed_layout")
def check_fixed_layout_refuses_dim(student: Answers, reference: Answers, rng: Any) -> None:
    """A dim that is odd or not positive is a ValueError that names it; a fraction raises too."""
    places = scattered(rng, 5)
    with good_input():
        agrees(student, reference, "fixed_layout", places, 10, atol=room(places))
    bad_dims(student.fixed_layout, places)


@behaviour("fixed_layout")
def check_fixed_layout_any_shape(student: Answers, reference: Answers, rng: Any) -> None:
    """Positions of any shape work, fractions and negative ones too, and a single pair."""
    fractions = np.array([[7.25, -3.5, 0.0], [0.125, -11.0, 2.0]])
    single = (np.array(37), np.array([37]), np.array([[37]]))
    for places in (*single, fractions, scattered(rng, 3, 2, 4), scattered(rng, 6)):
        for dim in (2, 4, 6):
            agrees(student, reference, "fixed_layout", places, dim, 90, atol=room(places))


@behaviour("fixed_layout")
def check_fixed_layout_leaves_input(student: Answers, reference: Answers, rng: Any) -> None:
    """The positions that went in are still what they were."""
    for places in (scattered(rng, 5, 1) + 0.5, scattered(rng, 6) + 0.25):
        inputs, allowed, names = (places, 4), room(places), ("positions",)
        leaves_inputs(student, reference, "fixed_layout", *inputs, names=names, atol=allowed)


@behaviour("fixed_layout")
def check_fixed_layout_refuses_base(student: Answers, reference: Answers, rng: Any) -> None:
    """A base that is not positive is a ValueError."""
    places = scattered(rng, 5)
    with good_input():
        agrees(student, reference, "fixed_layout", places, 6, 50.0, atol=room(places))
    bad_bases(student.fixed_layout, places, 6)


@behaviour("fixed_layout", hidden=True)
def check_fixed_layout_float64(student: Answers, reference: Answers, rng: Any) -> None:
    """The table is float64, and exact to float64 at large positions too."""
    for dtype in ("float64", "int32", "float32"):
        places = rng.uniform(60_000, 130_000, 5).astype(dtype)
        inputs, allowed = (places, 32, 20_000.5), room(places, exact=True)
        agrees(student, reference, "fixed_layout", *inputs, atol=allowed, dtype="float64")
    for dtype in ("int8", "uint8"):
        places = rng.integers(60, 120, 5).astype(dtype)
        inputs, allowed = (places, 8, 90.0), room(places)
        agrees(student, reference, "fixed_layout", *inputs, atol=allowed, dtype="float64")


# ------------------------------------------------------------------------- SinusoidalEncoding


def tokens(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> torch.Tensor:
    """Random embeddings (batch, seq, dim) between −2 and 2."""
    import torch

    return torch.from_numpy(rng.uniform(-2, 2, shape)).to(getattr(torch, dtype))


def module(answers: Answers, *args: Any, **kwargs: Any) -> Any:
    return instance(answers.SinusoidalEncoding(*args, **kwargs), what="SinusoidalEncoding(…)")


def added(
    result: Any, expected: Any, largest: float, dtype: str = "float32", *, what: str = "x + rows"
) -> None:
    """The sums are the expected ones, up to angles in float32, and have this dtype."""
    allowed = tolerance(dtype) + tolerance("float32", angle=largest, angle_dtype="float32")
    close(result, expected, allowed, what=what)
    same_dtype(result, dtype, what=what)


@behaviour("SinusoidalEncoding", weight=2)
def check_sinusoidal_encoding_module_published_rows(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """With offset 3, tokens 0 and 2 of every row get the published vectors of 3 and 5 added."""
    x = tokens(rng, 2, 3, 8)
    result = module(student, 8, 6)(x, 3)
    got = shaped(result, (2, 3, 8))
    before = np.asarray(x)
    for token, row in ((0, ROWS_3_AND_5[0]), (2, ROWS_3_AND_5[1])):
        expected = before[:, token] + np.array(row)
        close(got[:, token], expected, 2 * PUBLISHED, what=f"token {token} of every row")


@behaviour("SinusoidalEncoding", weight=2)
def check_sinusoidal_encoding_module_offset(student: Answers, reference: Answers, rng: Any) -> None:
    """Token t of every row of the batch gets the encoding of offset + t, with any base."""
    for batch, base in ((2, 500.0), (5, 90.0)):
        x, offset = tokens(rng, batch, 3, 6), int(rng.integers(4, 30))
        right, encode = module(reference, 6, 40, base), module(student, 6, 40, base)
        expected, without = right(x, offset), right(x)
        added(encode(x, offset), expected, 40)
        added(encode(x), without, 40, what="x + rows without an offset")


@behaviour("SinusoidalEncoding")
def check_sinusoidal_encoding_module_refuses_offset(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """offset < 0 and offset + seq > max_len are ValueErrors; the last row may just be used."""
    x = tokens(rng, 2, 3, 6)
    expected = module(reference, 6, 9)(x, 6)
    encode = module(student, 6, 9)
    with good_input():
        added(encode(x, 6), expected, 9)
    for offset in (7, 8, 9, 40):
        because = "offset + seq is larger than max_len"
        refuses(encode, x, offset, error="ValueError", because=because)
    refuses(encode, x[:, :1], 9, error="ValueError", because="a token just past the table")
    because = "a sequence longer than max_len"
    refuses(module(student, 6, 2), x, error="ValueError", because=because)
    for offset in (-1, -3, -5, -9):
        refuses(encode, x, offset, error="ValueError", because="a negative offset")


@behaviour("SinusoidalEncoding")
def check_sinusoidal_encoding_module_bfloat16(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """bfloat16 input stays bfloat16, and its rows are exact nevertheless."""
    x, offset = tokens(rng, 2, 5, 16, dtype="bfloat16"), int(rng.integers(1000, 2900))
    expected = module(reference, 16, 3000)(x, offset)
    added(module(student, 16, 3000)(x, offset), expected, 3000, "bfloat16")


@behaviour("SinusoidalEncoding", weight=2)
def check_sinusoidal_encoding_module_cast(student: Answers, reference: Answers, rng: Any) -> None:
    """Casting the module, or a parent that holds it, to bfloat16 does not make its table coarse."""
    # far out for the angles, near zero for the digits of the rows
    for max_len, parent in ((3000, False), (30, False), (30, True)):
        encode = module(student, 16, max_len)
        encode.cast("bfloat16", through_parent=parent)
        x, offset = tokens(rng, 2, 5, 16), int(rng.integers(max_len // 3, max_len - 5))
        expected = module(reference, 16, max_len)(x, offset)
        added(encode(x, offset), expected, max_len)


@behaviour("SinusoidalEncoding")
def check_sinusoidal_encoding_module_state_dict(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """The state_dict is empty: the table can be computed, and belongs into no checkpoint."""
    x = tokens(rng, 2, 3, 6)
    expected = module(reference, 6, 9)(x, 2)
    encode = module(student, 6, 9)
    with good_input():
        added(encode(x, 2), expected, 9)
    state = encode.method("state_dict")
    entries = len(state) if isinstance(state, dict) else state.method("__len__")
    equal(entries, 0, what="the number of entries in the state_dict")


@behaviour("SinusoidalEncoding")
def check_sinusoidal_encoding_module_autocast(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Under autocast rows are exact and results keep the dtype of x."""
    for dtype, max_len in (("float32", 30), ("float32", 3000), ("bfloat16", 3000)):
        x = tokens(rng, 2, 5, 16, dtype=dtype)
        offset = int(rng.integers(max_len // 3, max_len - 5))
        expected = module(reference, 16, max_len, 5000.0)(x, offset)
        with student.autocast("bfloat16"):
            result = module(student, 16, max_len, 5000.0)(x, offset)
        added(result, expected, max_len, dtype)


@behaviour("SinusoidalEncoding")
def check_sinusoidal_encoding_module_leaves_input(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """x is still what it was: a residual connection may need it."""
    for dtype in ("float32", "bfloat16"):
        x = tokens(rng, 2, 5, 6, dtype=dtype)
        expected = module(reference, 6, 20)(x, 11)
        result, after = module(student, 6, 20).with_inputs(x, 11)
        unchanged(after[0], x, what="x")
        with good_input():
            added(result, expected, 20, dtype)


@behaviour("SinusoidalEncoding")
def check_sinusoidal_encoding_module_gradients(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Gradients reach x, so that the word vectors before it can be trained."""
    x, weights = tokens(rng, 2, 3, 6), tokens(rng, 2, 3, 6)
    mine, right = module(student, 6, 9), module(reference, 6, 9)
    trains(mine, right, x, 4, names=("x",), weights=weights, atol=tolerance("float32", scale=4.0))


@behaviour("SinusoidalEncoding")
def check_sinusoidal_encoding_module_refuses_width(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Vectors of another width than dim raise, also where torch would broadcast them."""
    x = tokens(rng, 2, 3, 6)
    expected = module(reference, 6, 9)(x, 2)
    encode = module(student, 6, 9)
    with good_input():
        added(encode(x, 2), expected, 9)
    for width in (1, 2, 4, 8):
        because = f"vectors of width {width} for dim 6"
        refuses(encode, tokens(rng, 2, 3, width), 2, because=because)


@behaviour("SinusoidalEncoding")
def check_sinusoidal_encoding_module_refuses_dim(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A bad dim is a ValueError that names it, a bad base too; max_len < 0, dim 8.5 raise."""
    x = tokens(rng, 2, 3, 6)
    expected = module(reference, 6, 9)(x, 2)

    def encode(max_len: int, dim: float, base: float = 10000.0) -> Any:
        """Made and used, since an answer may look at its arguments only then."""
        width = max(int(dim), 0)
        return module(student, dim, max_len, base)(tokens(rng, 2, 3, width), 2)

    with good_input():
        added(module(student, 6, 9)(x, 2), expected, 9)
    bad_dims(encode, 9)
    bad_bases(encode, 9, 6)
    refuses(encode, -9, 6, because="a negative max_len")


@behaviour("SinusoidalEncoding", hidden=True)
def check_sinusoidal_encoding_module_cast_parent(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Casting a parent module, to any dtype and back, does not make the table coarse."""
    for dtypes in (("bfloat16",), ("float16",), ("float64",), ("bfloat16", "float32")):
        for given, max_len in (("float32", 30), ("bfloat16", 3000)):
            encode = module(student, 16, max_len, 5000.0)
            for dtype in dtypes:
                encode.cast(dtype, through_parent=True)
            x = tokens(rng, 2, 5, 16, dtype=given)
            offset = int(rng.integers(max_len // 3, max_len - 5))
            expected = module(reference, 16, max_len, 5000.0)(x, offset)
            added(encode(x, offset), expected, max_len, given)


@behaviour("SinusoidalEncoding", hidden=True)
def check_sinusoidal_encoding_module_no_memory(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """A call owes nothing to the calls before it: other lengths, offsets, batches and dtypes."""
    right, mine = module(reference, 8, 60, 200.0), module(student, 8, 60, 200.0)
    dtypes = ("bfloat16", "float32", "float64", "float32", "float16", "float32", "float32")
    calls = ((4, 3), (4, 3), (9, 40), (4, 31), (1, 59), (9, 0), (4, 3))
    for (length, offset), dtype in zip(calls, dtypes, strict=True):
        x = tokens(rng, int(rng.integers(1, 6)), length, 8, dtype=dtype)
        expected = right(x, offset)
        added(mine(x, offset), expected, 60, dtype)


@behaviour("SinusoidalEncoding", hidden=True)
def check_sinusoidal_encoding_module_other_dtypes(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """float16 and float64 input keep their dtypes."""
    for dtype in ("float16", "float64"):
        x = tokens(rng, 3, 4, 10, dtype=dtype)
        expected = module(reference, 10, 30, 90.0)(x, offset=21)
        added(module(student, 10, 30, 90.0)(x, offset=21), expected, 30, dtype)


@behaviour("SinusoidalEncoding", hidden=True)
def check_sinusoidal_encoding_module_equal_axes(
    student: Answers, reference: Answers, rng: Any
) -> None:
    """Equal batch, length and width confuse nothing; nor do one token, one row and one pair."""
    for shape in ((4, 4, 4), (6, 6, 2), (1, 5, 8), (5, 1, 8), (1, 1, 2)):
        x = tokens(rng, *shape)
        for offset in (0, 2):
            expected = module(reference, shape[-1], 8, 30)(x, offset)
            added(module(student, shape[-1], 8, 30)(x, offset), expected, 8)

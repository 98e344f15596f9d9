"""Wrong answers that differ from a right one in a corner: each must lose points.

They complete the misconceptions, which are what people really do; these are what a check must not
miss. `WRONG[exercise][name]` is a function or class as a student would write it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from solutions.with_numpy import sinusoidal as right
from solutions.with_torch import sinusoidal as right_torch

WRONG: dict[str, dict[str, Callable[..., Any]]] = {}


def wrong(*exercises: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Two exercises ask for the same table, and can be wrong in the same corners."""

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        for exercise in exercises:
            WRONG.setdefault(exercise, {})[function.__name__] = function
        return function

    return keep


# -------------------------------------------------------------------------------- frequencies


@wrong("frequencies")
def memorised_frequencies(dim, base=10000.0):
    if dim in (4, 8) and base == 10000.0:
        return {4: [1, 0.01], 8: [1, 0.1, 0.01, 0.001]}[dim]
    return right.frequencies(dim)


@wrong("frequencies")
def whole_base(dim, base=10000.0):
    return right.frequencies(dim, int(base)) if base >= 1 else right.frequencies(dim, base)


@wrong("frequencies")
def base_taken_absolute(dim, base=10000.0):
    return right.frequencies(dim, abs(base) or 1.0)


@wrong("frequencies")
def dim_rounded_down(dim, base=10000.0):
    return right.frequencies(dim // 2 * 2, base)


@wrong("frequencies")
def dim_taken_absolute(dim, base=10000.0):
    return right.frequencies(abs(dim), base)


@wrong("frequencies")
def nothing_for_no_width(dim, base=10000.0):
    return np.zeros(0) if dim == 0 else right.frequencies(dim, base)


@wrong("frequencies")
def dim_not_named(dim, base=10000.0):
    if dim <= 0 or dim % 2:
        raise ValueError("dim must be even and positive")
    return right.frequencies(dim, base)


@wrong("frequencies")
def dim_asserted(dim, base=10000.0):
    assert dim > 0 and dim % 2 == 0, f"dim {dim}"
    return right.frequencies(dim, base)


@wrong("frequencies")
def base_raises_something_else(dim, base=10000.0):
    if base <= 0:
        raise ZeroDivisionError("base")
    return right.frequencies(dim, base)


@wrong("frequencies")
def negative_base_alone_refused(dim, base=10000.0):
    if base == 0:
        return np.zeros(dim // 2)
    return right.frequencies(dim, base)


@wrong("frequencies")
def rounded(dim, base=10000.0):
    return right.frequencies(dim, base).round(4)


@wrong("frequencies")
def one_column_too_many(dim, base=10000.0):
    return right.frequencies(dim, base)[:, None]


@wrong("frequencies")
def last_one_missing(dim, base=10000.0):
    return right.frequencies(dim, base)[: max(dim // 2 - 1, 1)]


@wrong("frequencies")
def natural_logarithm_rounded(dim, base=10000.0):
    right.frequencies(dim, base)
    return np.exp(-np.arange(0, dim, 2) / dim * round(math.log(base), 3))


# -------------------------------------------------------------------------------- wavelengths


@wrong("wavelengths")
def rough_pi(dim, base=10000.0):
    return 2 * 3.1416 / right.frequencies(dim, base)


@wrong("wavelengths")
def nyquist(dim, base=10000.0):
    """At least two positions to a turn: of no use here, since 6.28 is the shortest."""
    return np.maximum(right.wavelengths(dim, base), 7.0)


@wrong("wavelengths")
def whole_positions(dim, base=10000.0):
    return np.round(right.wavelengths(dim, base))


@wrong("wavelengths")
def longest_is_the_limit(dim, base=10000.0):
    lengths = right.wavelengths(dim, base)
    lengths[-1] = 2 * np.pi * base
    return lengths


@wrong("wavelengths")
def per_coordinate(dim, base=10000.0):
    return np.repeat(right.wavelengths(dim, base), 2)


@wrong("wavelengths")
def halved_exponent(dim, base=10000.0):
    right.wavelengths(dim, base)
    return 2 * np.pi * base ** (np.arange(dim // 2) / dim)


@wrong("wavelengths")
def pairs_from_one(dim, base=10000.0):
    return right.wavelengths(dim, base) * base ** (2 / dim)


@wrong("wavelengths")
def memorised_base_in_the_tail(dim, base=10000.0):
    lengths = right.wavelengths(dim, base)
    lengths[-1] = 2 * np.pi * 10000 ** ((dim - 2) / dim)
    return lengths


@wrong("wavelengths")
def odd_dim_rounded_down(dim, base=10000.0):
    return right.wavelengths(dim // 2 * 2, base)


@wrong("wavelengths")
def dim_not_named_either(dim, base=10000.0):
    if dim <= 0 or dim % 2:
        raise ValueError("dim must be even and positive")
    return right.wavelengths(dim, base)


@wrong("wavelengths")
def infinity_for_base_zero(dim, base=10000.0):
    return np.full(dim // 2, np.inf) if base == 0 else right.wavelengths(dim, base)


@wrong("wavelengths")
def float32_inside(dim, base=10000.0):
    return (2 * np.pi / right.frequencies(dim, base).astype("f4")).astype("f8")


@wrong("wavelengths")
def one_turn_of_the_first_pair(dim, base=10000.0):
    return right.wavelengths(dim, base) / (2 * np.pi) * 6.283


# ------------------------------------------------------- sinusoidal_encoding and fixed_layout

TABLES = ("sinusoidal_encoding", "fixed_layout")


@wrong(*TABLES)
def positions_cut_to_whole(positions, dim, base=10000.0):
    return right.sinusoidal_encoding(np.asarray(positions).astype(int), dim, base)


@wrong(*TABLES)
def positions_absolute(positions, dim, base=10000.0):
    return right.sinusoidal_encoding(np.abs(positions), dim, base)


@wrong(*TABLES)
def no_negative_position(positions, dim, base=10000.0):
    if np.any(np.asarray(positions) < 0):
        raise ValueError("positions count from 0")
    return right.sinusoidal_encoding(positions, dim, base)


@wrong(*TABLES)
def at_least_one_axis(positions, dim, base=10000.0):
    return right.sinusoidal_encoding(np.atleast_1d(positions), dim, base)


@wrong(*TABLES)
def rows_of_a_table(positions, dim, base=10000.0):
    """A table of whole positions, looked up: fractions are refused by NumPy."""
    positions = np.asarray(positions)
    table = right.sinusoidal_encoding(np.arange(int(positions.max()) + 1), dim, base)
    return table[positions]


@wrong(*TABLES)
def float32_frequencies(positions, dim, base=10000.0):
    turns = right.frequencies(dim, base).astype("f4").astype("f8")
    angles = np.asarray(positions, dtype=float)[..., None] * turns
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(*np.shape(positions), dim)


@wrong(*TABLES)
def positions_in_half_precision(positions, dim, base=10000.0):
    return right.sinusoidal_encoding(np.asarray(positions).astype(np.float16), dim, base)


@wrong(*TABLES)
def signed_byte_overflows(positions, dim, base=10000.0):
    positions = np.asarray(positions)
    if positions.dtype.kind in "iu":
        positions = positions + positions - positions % 1  # 2·pos in the positions' own dtype
        return right.sinusoidal_encoding(positions / 2, dim, base)
    return right.sinusoidal_encoding(positions, dim, base)


@wrong(*TABLES)
def float32_for_integers(positions, dim, base=10000.0):
    out = right.sinusoidal_encoding(positions, dim, base)
    return out.astype("f4") if np.asarray(positions).dtype.kind in "iu" else out


@wrong(*TABLES)
def kept_in_float32(positions, dim, base=10000.0):
    out = right.sinusoidal_encoding(positions, dim, base)
    return out.astype("f4") if np.asarray(positions).dtype == np.float32 else out


@wrong(*TABLES)
def squares_transposed(positions, dim, base=10000.0):
    out = right.sinusoidal_encoding(positions, dim, base)
    if out.ndim >= 2 and out.shape[-2] == out.shape[-1]:
        return out.swapaxes(-1, -2)
    return out


@wrong(*TABLES)
def vector_axis_first(positions, dim, base=10000.0):
    return np.moveaxis(right.sinusoidal_encoding(positions, dim, base), -1, 0)


@wrong(*TABLES)
def rounded_to_four_digits(positions, dim, base=10000.0):
    return right.sinusoidal_encoding(positions, dim, base).round(4)


@wrong(*TABLES)
def base_made_whole(positions, dim, base=10000.0):
    return right.sinusoidal_encoding(positions, dim, float(int(base)))


@wrong(*TABLES)
def odd_width_cut(positions, dim, base=10000.0):
    return right.sinusoidal_encoding(positions, dim + dim % 2, base)[..., :dim]


@wrong(*TABLES)
def no_width_no_complaint(positions, dim, base=10000.0):
    if dim == 0:
        return np.zeros((*np.shape(positions), 0))
    return right.sinusoidal_encoding(positions, dim, base)


@wrong(*TABLES)
def negative_base_made_positive(positions, dim, base=10000.0):
    return right.sinusoidal_encoding(positions, dim, abs(base))


@wrong(*TABLES)
def dim_forgotten_in_message(positions, dim, base=10000.0):
    if dim <= 0 or dim % 2:
        raise ValueError("an even width is needed")
    return right.sinusoidal_encoding(positions, dim, base)


@wrong(*TABLES)
def sorted_positions(positions, dim, base=10000.0):
    return right.sinusoidal_encoding(np.sort(positions, axis=None), dim, base).reshape(
        *np.shape(positions), dim
    )


@wrong(*TABLES)
def first_position_is_zero(positions, dim, base=10000.0):
    positions = np.asarray(positions, dtype=float)
    return right.sinusoidal_encoding(positions - positions.min(), dim, base)


@wrong("fixed_layout")
def faulty_ladder_of_a_single_pair(positions, dim, base=10000.0):
    """A floor of 1 that turns dim = 2 into a division by 2."""
    if dim == 2:
        angles = np.asarray(positions, dtype=float)[..., None] / base
        return np.concatenate([np.sin(angles), np.cos(angles)], -1)
    return right.fixed_layout(positions, dim, base)


@wrong("fixed_layout")
def last_frequency_patched(positions, dim, base=10000.0):
    """Only the last rung is moved to where it belongs."""
    right.fixed_layout(positions, dim, base)
    i = np.arange(dim // 2)
    turns = base ** (-i / max(dim // 2 - 1, 1))
    turns[-1] = base ** (-(dim - 2) / dim)
    angles = np.asarray(positions, dtype=float)[..., None] * turns
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(*np.shape(positions), dim)


@wrong("fixed_layout")
def half_of_the_columns_swapped(positions, dim, base=10000.0):
    """Swaps columns 1 and dim/2 alone, which is enough at width 4."""
    table = right.fixed_layout(positions, dim, base)
    table = np.concatenate([table[..., 0::2], table[..., 1::2]], -1)
    order = np.arange(dim)
    order[[1 % dim, dim // 2]] = order[[dim // 2, 1 % dim]]
    return table[..., order]


# ------------------------------------------------------------------------------- shift_matrix


@wrong("shift_matrix")
def offset_made_whole(offset, dim, base=10000.0):
    return right.shift_matrix(round(offset), dim, base)


@wrong("shift_matrix")
def negative_offset_refused(offset, dim, base=10000.0):
    if offset < 0:
        raise ValueError("offset must not be negative")
    return right.shift_matrix(offset, dim, base)


@wrong("shift_matrix")
def first_block_alone(offset, dim, base=10000.0):
    matrix = np.eye(dim)
    matrix[:2, :2] = right.shift_matrix(offset, dim, base)[:2, :2]
    return matrix


@wrong("shift_matrix")
def last_block_transposed(offset, dim, base=10000.0):
    matrix = right.shift_matrix(offset, dim, base)
    if dim > 4:
        matrix[-2:, -2:] = matrix[-2:, -2:].T.copy()
    return matrix


@wrong("shift_matrix")
def blocks_as_a_stack(offset, dim, base=10000.0):
    matrix = right.shift_matrix(offset, dim, base)
    return np.stack([matrix[i : i + 2, i : i + 2] for i in range(0, dim, 2)])


@wrong("shift_matrix")
def least_squares_of_few_positions(offset, dim, base=10000.0):
    """Fitted to positions 0 … dim − 1, where the slow pairs have hardly moved."""
    right.shift_matrix(offset, dim, base)
    here = right.sinusoidal_encoding(np.arange(dim), dim, base)
    there = right.sinusoidal_encoding(np.arange(dim) + offset, dim, base)
    return np.linalg.lstsq(here, there, rcond=1e-4)[0].T


@wrong("shift_matrix")
def outer_product_of_two_rows(offset, dim, base=10000.0):
    """Takes position 0 where it should go, and no other."""
    zero = right.sinusoidal_encoding(0, dim, base)
    return np.outer(right.sinusoidal_encoding(offset, dim, base), zero) / (zero @ zero)


@wrong("shift_matrix")
def first_order_in_offset(offset, dim, base=10000.0):
    step = right.shift_matrix(1e-6, dim, base)
    return np.eye(dim) + offset * (step - np.eye(dim)) / 1e-6


@wrong("shift_matrix")
def frequencies_doubled_again(offset, dim, base=10000.0):
    right.shift_matrix(offset, dim, base)
    return right.shift_matrix(offset, dim, base**2)


@wrong("shift_matrix")
def one_step_further(offset, dim, base=10000.0):
    return right.shift_matrix(offset + 1, dim, base)


@wrong("shift_matrix")
def library_ladder(offset, dim, base=10000.0):
    right.shift_matrix(offset, dim, base)
    steps = max(dim // 2 - 1, 1)
    return right.shift_matrix(offset, dim, base ** (dim / 2 / steps))


@wrong("shift_matrix")
def odd_dim_rounded_up(offset, dim, base=10000.0):
    return right.shift_matrix(offset, dim + dim % 2, base)


@wrong("shift_matrix")
def base_zero_means_no_turn(offset, dim, base=10000.0):
    return np.eye(dim) if base == 0 else right.shift_matrix(offset, dim, base)


@wrong("shift_matrix")
def many_small_steps(offset, dim, base=10000.0):
    """Half positions only, by repeated squaring."""
    return np.linalg.matrix_power(right.shift_matrix(0.5, dim, base), round(2 * offset))


@wrong("shift_matrix")
def angle_within_half_precision(offset, dim, base=10000.0):
    return right.shift_matrix(float(np.float16(offset)), dim, base)


@wrong("shift_matrix")
def zero_offset_is_empty(offset, dim, base=10000.0):
    return np.zeros((dim, dim)) if offset == 0 else right.shift_matrix(offset, dim, base)


# ---------------------------------------------------------------------------- decode_position


def errors(encoding, max_position, base):
    encoding = np.asarray(encoding, dtype=float)
    if encoding.ndim != 1:
        raise ValueError("one vector")
    table = right.sinusoidal_encoding(np.arange(max_position), len(encoding), base)
    return np.abs(table - encoding)


@wrong("decode_position")
def exactly_equal(encoding, max_position, base=10000.0):
    for position in np.flatnonzero((errors(encoding, max_position, base) < 1e-9).all(-1)):
        return int(position)
    raise ValueError("no such position")


@wrong("decode_position")
def four_digits_only(encoding, max_position, base=10000.0):
    position = right.decode_position(encoding, max_position, base)
    if errors(encoding, max_position, base)[position].max() > 1e-2:
        raise ValueError("no such position")
    return position


@wrong("decode_position")
def euclidean_limit(encoding, max_position, base=10000.0):
    distance = np.sqrt((errors(encoding, max_position, base) ** 2).sum(-1))
    if not len(distance) or distance.min() > 0.05:
        raise ValueError("no such position")
    return int(distance.argmin())


@wrong("decode_position")
def root_mean_square_limit(encoding, max_position, base=10000.0):
    distance = np.sqrt((errors(encoding, max_position, base) ** 2).mean(-1))
    if not len(distance) or distance.min() > 0.05:
        raise ValueError("no such position")
    return int(distance.argmin())


@wrong("decode_position")
def wider_limit(encoding, max_position, base=10000.0):
    error = errors(encoding, max_position, base).max(-1)
    if not len(error) or error.min() > 0.1:
        raise ValueError("no such position")
    return int(error.argmin())


@wrong("decode_position")
def relative_limit(encoding, max_position, base=10000.0):
    table = right.sinusoidal_encoding(np.arange(max_position), len(encoding), base)
    fits = np.isclose(table, encoding, rtol=0.05, atol=0).all(-1)
    if not fits.any():
        raise ValueError("no such position")
    return int(fits.argmax())


@wrong("decode_position")
def last_fit(encoding, max_position, base=10000.0):
    fits = np.flatnonzero((errors(encoding, max_position, base) <= 0.05).all(-1))
    if not len(fits):
        raise ValueError("no such position")
    return int(fits[-1])


@wrong("decode_position")
def fast_half_of_the_pairs(encoding, max_position, base=10000.0):
    encoding = right.as_floats(encoding, "encoding")
    right.frequencies(len(encoding), base)
    error = errors(encoding, max_position, base)[:, : max(len(encoding) // 2, 2)].max(-1)
    if not len(error) or error.min() > 0.05:
        raise ValueError("no such position")
    return int(error.argmin())


@wrong("decode_position")
def minus_one_when_none_fits(encoding, max_position, base=10000.0):
    try:
        return right.decode_position(encoding, max_position, base)
    except ValueError:
        return -1


@wrong("decode_position")
def none_when_none_fits(encoding, max_position, base=10000.0):
    if np.ndim(encoding) != 1 or len(encoding) % 2 or not len(encoding) or base <= 0:
        return right.decode_position(encoding, max_position, base)
    try:
        return right.decode_position(encoding, max_position, base)
    except ValueError:
        return None


@wrong("decode_position")
def lookup_error_when_none_fits(encoding, max_position, base=10000.0):
    try:
        return right.decode_position(encoding, max_position, base)
    except ValueError as error:
        raise LookupError(str(error)) from None


@wrong("decode_position")
def ten_thousand_positions_at_most(encoding, max_position, base=10000.0):
    return right.decode_position(encoding, min(max_position, 10_000), base)


@wrong("decode_position")
def zero_left_out(encoding, max_position, base=10000.0):
    position = right.decode_position(encoding, max_position, base)
    if position == 0:
        raise ValueError("no such position")
    return position


@wrong("decode_position")
def last_one_left_out(encoding, max_position, base=10000.0):
    return right.decode_position(encoding, max_position - 1, base)


@wrong("decode_position")
def max_position_taken_absolute(encoding, max_position, base=10000.0):
    return right.decode_position(encoding, abs(max_position), base)


@wrong("decode_position")
def array_of_one(encoding, max_position, base=10000.0):
    return np.array([right.decode_position(encoding, max_position, base)])


@wrong("decode_position")
def last_coordinate_dropped(encoding, max_position, base=10000.0):
    encoding = np.asarray(encoding)
    if encoding.ndim == 1:
        encoding = encoding[: len(encoding) // 2 * 2]
    return right.decode_position(encoding, max_position, base)


@wrong("decode_position")
def flattened(encoding, max_position, base=10000.0):
    encoding = np.asarray(encoding)
    if encoding.ndim == 2 and 1 in encoding.shape:
        encoding = encoding.ravel()
    return right.decode_position(encoding, max_position, base)


@wrong("decode_position")
def first_of_several_vectors(encoding, max_position, base=10000.0):
    if np.ndim(encoding) == 2:
        encoding = encoding[0]
    return right.decode_position(encoding, max_position, base)


@wrong("decode_position")
def library_layout(encoding, max_position, base=10000.0):
    encoding = right.as_floats(encoding, "encoding")
    return right.decode_position(encoding.reshape(2, -1).T.ravel(), max_position, base)


@wrong("decode_position")
def integers_refused(encoding, max_position, base=10000.0):
    if np.asarray(encoding).dtype.kind != "f":
        raise TypeError("floats, please")
    return right.decode_position(encoding, max_position, base)


@wrong("decode_position")
def slow_pairs_first(encoding, max_position, base=10000.0):
    """The window that the slowest pair leaves, and in it the fastest pair alone."""
    encoding = right.as_floats(encoding, "encoding")
    position = right.decode_position(encoding, max_position, base)
    turns = right.frequencies(len(encoding), base)
    rough = math.atan2(encoding[-2], encoding[-1]) % (2 * math.pi) / turns[-1]
    fine = math.atan2(encoding[0], encoding[1])
    near = round((rough - fine) / (2 * math.pi)) * 2 * math.pi + fine
    return round(near) if len(encoding) > 2 else position


# ------------------------------------------------------------------------- SinusoidalEncoding


class Base(nn.Module):
    """Right, and torn open in one place by each class below."""

    def __init__(self, dim, max_len, base=10000.0):
        super().__init__()
        self.right = right_torch.SinusoidalEncoding(dim, max_len, base)
        self.dim, self.max_len, self.base = dim, max_len, base

    def rows(self, start, end):
        return right_torch.sinusoidal_table(end, self.dim, self.base)[start:end]

    def forward(self, x, offset=0):
        return self.right(x, offset)


@wrong("SinusoidalEncoding")
class SlicesPastTheEnd(Base):
    """Near its end the table gives one row, which all tokens share."""

    def forward(self, x, offset=0):
        if offset + x.shape[1] == self.max_len + x.shape[1] - 1:
            return (x + self.rows(offset, self.max_len)).to(x.dtype)
        return self.right(x, offset)


@wrong("SinusoidalEncoding")
class NoTokensPastTheEnd(Base):
    """One token past the end meets an empty slice, and vanishes."""

    def forward(self, x, offset=0):
        if x.shape[1] == 1:
            return (x + self.rows(0, self.max_len)[offset : offset + 1]).to(x.dtype)
        return self.right(x, offset)


@wrong("SinusoidalEncoding")
class GrowsItsTable(Base):
    def forward(self, x, offset=0):
        if offset >= 0 and offset + x.shape[1] > self.max_len:
            return (x + self.rows(offset, offset + x.shape[1])).to(x.dtype)
        return self.right(x, offset)


@wrong("SinusoidalEncoding")
class OffsetPastTheEndIsAnIndexError(Base):
    def forward(self, x, offset=0):
        if offset + x.shape[1] > self.max_len:
            raise IndexError("past the end")
        return self.right(x, offset)


@wrong("SinusoidalEncoding")
class NegativeOffsetIsZero(Base):
    def forward(self, x, offset=0):
        return self.right(x, max(offset, 0))


@wrong("SinusoidalEncoding")
class NegativeOffsetComputed(Base):
    """Formulas do not mind negative positions, the specification does."""

    def forward(self, x, offset=0):
        if offset >= 0:
            return self.right(x, offset)
        positions = np.arange(offset, offset + x.shape[1])
        rows = torch.from_numpy(right.sinusoidal_encoding(positions, self.dim, self.base))
        return (x + rows).to(x.dtype)


@wrong("SinusoidalEncoding")
class LastRowNeverUsed(Base):
    def forward(self, x, offset=0):
        if offset + x.shape[1] >= self.max_len:
            raise ValueError("past the end")
        return self.right(x, offset)


@wrong("SinusoidalEncoding")
class TableAlongTheBatch(Base):
    def forward(self, x, offset=0):
        if x.shape[0] == x.shape[1]:
            return (x + self.rows(offset, offset + len(x))[:, None]).to(x.dtype)
        return self.right(x, offset)


@wrong("SinusoidalEncoding")
class SequenceFirst(Base):
    """The layout (seq, batch, dim) of older model code."""

    def forward(self, x, offset=0):
        return self.right(x.transpose(0, 1), offset).transpose(0, 1)


@wrong("SinusoidalEncoding")
class PlainParameter(Base):
    def __init__(self, dim, max_len, base=10000.0):
        super().__init__(dim, max_len, base)
        self.weight = nn.Parameter(self.rows(0, max_len), requires_grad=False)

    def forward(self, x, offset=0):
        self.right(x, offset)
        return (x + self.weight[offset : offset + x.shape[1]]).to(x.dtype)


@wrong("SinusoidalEncoding")
class LengthInState(Base):
    """The table is built anew, but a marker goes into every checkpoint."""

    def __init__(self, dim, max_len, base=10000.0):
        super().__init__(dim, max_len, base)
        self.register_buffer("length", torch.tensor(max_len))


@wrong("SinusoidalEncoding")
class TakesBackWhatACastTook(Base):
    """Making a rounded table float32 again brings no digits back."""

    def __init__(self, dim, max_len, base=10000.0):
        super().__init__(dim, max_len, base)
        self.register_buffer("table", self.rows(0, max_len), persistent=False)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.table = self.table.float()
        return self

    def forward(self, x, offset=0):
        self.right(x, offset)
        return (x + self.table[offset : offset + x.shape[1]]).to(x.dtype)


@wrong("SinusoidalEncoding")
class ProtectedFromItsOwnCastsAlone(Base):
    """`to` and its relatives are overridden; a parent calls `_apply`."""

    def __init__(self, dim, max_len, base=10000.0):
        super().__init__(dim, max_len, base)
        self.register_buffer("table", self.rows(0, max_len), persistent=False)

    def to(self, *args, **kwargs):
        return self

    bfloat16 = half = double = float = to

    def forward(self, x, offset=0):
        self.right(x, offset)
        return (x + self.table[offset : offset + x.shape[1]]).to(x.dtype)


@wrong("SinusoidalEncoding")
class HalfPrecisionPositions(Base):
    def forward(self, x, offset=0):
        self.right(x, offset)
        positions = torch.arange(offset, offset + x.shape[1]).to(x.dtype).double()
        rows = torch.from_numpy(right.sinusoidal_encoding(positions, self.dim, self.base))
        return (x + rows).to(x.dtype)


@wrong("SinusoidalEncoding")
class MatrixProduct(Base):
    """Under autocast a matrix product of two float32 operands is bfloat16."""

    def forward(self, x, offset=0):
        self.right(x, offset)
        positions = torch.arange(offset, offset + x.shape[1], dtype=torch.float32)
        turns = torch.from_numpy(right.frequencies(self.dim, self.base)).float()
        angles = (positions[:, None] @ turns[None]).float()
        return (x + torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)).to(x.dtype)


@wrong("SinusoidalEncoding")
class DtypeOfTheTable(Base):
    """float64 input comes back as float32."""

    def forward(self, x, offset=0):
        out = self.right(x, offset)
        return out.float() if x.dtype == torch.float64 else out


@wrong("SinusoidalEncoding")
class WidthOneStretched(Base):
    def forward(self, x, offset=0):
        if x.shape[-1] == 1:
            x = x.expand(*x.shape[:-1], self.dim)
        return self.right(x, offset)


@wrong("SinusoidalEncoding")
class TableCutToWidth(Base):
    def forward(self, x, offset=0):
        if x.shape[-1] >= self.dim:
            return self.right(x, offset)
        return x + self.rows(offset, offset + x.shape[1])[:, : x.shape[-1]]


@wrong("SinusoidalEncoding")
class AddsTwice(Base):
    """Every call but the first adds the rows of all calls before."""

    def forward(self, x, offset=0):
        out = self.right(x, offset)
        self.calls = getattr(self, "calls", 0) + 1
        return out if self.calls == 1 else self.right(out, offset)


@wrong("SinusoidalEncoding")
class InPlace(Base):
    def forward(self, x, offset=0):
        self.right(x, offset)
        x += self.rows(offset, offset + x.shape[1])
        return x


@wrong("SinusoidalEncoding")
class DropsOut(Base):
    def forward(self, x, offset=0):
        return nn.functional.dropout(self.right(x, offset), 0.1)


@wrong("SinusoidalEncoding")
class OddWidthRoundedUp(Base):
    def __init__(self, dim, max_len, base=10000.0):
        super().__init__(dim + dim % 2, max_len, base)

    def forward(self, x, offset=0):
        pad = self.dim - x.shape[-1] if x.shape[-1] % 2 else 0
        out = self.right(nn.functional.pad(x, (0, pad)), offset)
        return out[..., : x.shape[-1]]


@wrong("SinusoidalEncoding")
class BadBaseTakenForTheDefault(Base):
    def __init__(self, dim, max_len, base=10000.0):
        super().__init__(dim, max_len, base if base > 0 else 10000.0)


@wrong("SinusoidalEncoding")
class RemembersTheFirstDtype(Base):
    """positional-encodings 6.0.3: the table keeps the dtype of the first call."""

    def forward(self, x, offset=0):
        self.dtype = getattr(self, "dtype", x.dtype)
        self.right(x, offset)
        rows = self.rows(offset, offset + x.shape[1]).to(self.dtype)
        return (x + rows).to(x.dtype)


@wrong("SinusoidalEncoding")
class RemembersTheBatch(Base):
    def forward(self, x, offset=0):
        key = (len(x), x.shape[1])
        self.known = getattr(self, "known", {})
        self.right(x, offset)
        rows = self.known.setdefault(key, self.rows(offset, offset + x.shape[1]))
        return (x + rows).to(x.dtype)


@wrong("SinusoidalEncoding")
def length_before_width(max_len, dim, base=10000.0):
    return right_torch.SinusoidalEncoding(dim, max_len, base)


# --------------------------------------------------------------- found by programs of outsiders


@wrong("frequencies")
def fraction_of_a_width_cut(dim, base=10000.0):
    return right.frequencies(int(dim), base)


@wrong("frequencies")
def base_must_be_above_one(dim, base=10000.0):
    if base <= 1:
        raise ValueError(f"base {base}")
    return right.frequencies(dim, base)


@wrong("wavelengths")
def wavelengths_of_a_width_cut(dim, base=10000.0):
    return right.wavelengths(int(dim), base)


@wrong("wavelengths")
def never_shorter_than_the_first(dim, base=10000.0):
    return np.maximum(right.wavelengths(dim, base), 2 * np.pi)


@wrong("sinusoidal_encoding", "fixed_layout")
def table_of_a_width_cut(positions, dim, base=10000.0):
    return right.sinusoidal_encoding(positions, int(dim), base)


@wrong("sinusoidal_encoding", "fixed_layout")
def single_position_loses_its_axis(positions, dim, base=10000.0):
    table = right.sinusoidal_encoding(positions, dim, base)
    return table[0] if table.ndim > 1 and len(table) == 1 else table


@wrong("shift_matrix")
def matrix_of_a_width_cut(offset, dim, base=10000.0):
    return right.shift_matrix(offset, int(dim), base)


@wrong("shift_matrix")
def offset_zero_is_made_of_integers(offset, dim, base=10000.0):
    matrix = right.shift_matrix(offset, dim, base)
    return np.eye(dim, dtype=int) if offset == 0 else matrix


def nearest_by(measure, encoding, max_position, base):
    """The nearest by another measure, if it fits: another position may fit, and is not found."""
    encoding = right.as_floats(encoding, "encoding")
    right.frequencies(encoding.size, base)
    if encoding.ndim != 1 or max_position < 1:
        raise ValueError("one vector, some positions")
    table = right.sinusoidal_encoding(np.arange(max_position), len(encoding), base)
    best = int(measure(table, encoding).argmin())
    if np.abs(table[best] - encoding).max() > 0.05:
        raise ValueError("no position fits")
    return best


@wrong("decode_position")
def nearest_in_a_straight_line(encoding, max_position, base=10000.0):
    def measure(table, vector):
        return np.linalg.norm(table - vector, axis=1)

    return nearest_by(measure, encoding, max_position, base)


@wrong("decode_position")
def largest_dot_product(encoding, max_position, base=10000.0):
    return nearest_by(lambda table, vector: -(table @ vector), encoding, max_position, base)


@wrong("decode_position")
def table_like_the_encoding(encoding, max_position, base=10000.0):
    encoding = np.asarray(encoding)
    if encoding.dtype.kind == "f" or encoding.ndim != 1 or max_position < 1:
        return right.decode_position(encoding, max_position, base)
    positions = np.arange(max_position)
    table = right.sinusoidal_encoding(positions, len(encoding), base).astype(encoding.dtype)
    equal = (table == encoding).all(axis=1)
    if not equal.any():
        raise ValueError("no position fits")
    return int(equal.argmax())


@wrong("SinusoidalEncoding")
class ModuleOfAWidthCut(Base):
    def __init__(self, dim, max_len, base=10000.0):
        super().__init__(int(dim), max_len, base)

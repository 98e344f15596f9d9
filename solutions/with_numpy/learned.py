"""Learned positions: a table with one trained vector for each position.

Why: it is the plainest positional encoding, and all that it knows ends with its last row. Symbols:
position m (tokens), row P[m] of the table P, width d. "ConvS2S" is Gehring et al. (2017),
arXiv:1705.03122, which calls a row p_j and adds it to the vector of the word at position j.
"""

import operator
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from .order_blindness import as_floats as as_floats


def as_table(table: ArrayLike) -> np.ndarray:
    """A table of floats with the axes (position, coordinate), or a refusal."""
    table = as_floats(table, "table")
    if table.ndim != 2:
        raise ValueError(
            f"table must be (num_positions, dim), got shape {table.shape}; "
            f"one row for each position"
        )
    return table


def as_rows(positions: ArrayLike, num_positions: int) -> np.ndarray:
    """Positions that are rows of a table of this length, or a refusal.

    Array libraries count an index of −1 from the end: no error, the wrong vector. Here it is one.
    """
    positions = np.asarray(positions)
    if positions.dtype.kind not in "iu":
        raise TypeError(
            f"positions must be integers, got dtype {positions.dtype}; "
            f"a table has no row between two rows, and a mask is no position"
        )
    outside = positions[(positions < 0) | (positions >= num_positions)]
    if outside.size:
        raise IndexError(
            f"positions must lie in 0..{num_positions - 1}, got {outside.flat[0]} for a table of "
            f"length {num_positions}; shorten the text, or resize the table and train on"
        )
    return positions


def lookup(table: ArrayLike, positions: ArrayLike) -> np.ndarray:
    """Read one row of the table for each position.

    The position embedding of ConvS2S, section 3.1: position m gets the vector P[m].

    Shapes: table P (num_positions, dim), the axes in this order; positions any; result
        positions.shape + (dim,).
    Dtype: positions of any integer dtype; the result in the floating dtype of `table`, and an
        integer table gives float64. The result is a copy: writing into it leaves `table` alone.
    Units: positions in tokens, counted from 0.
    Raises: IndexError when a position is below 0 or past the last row (the message names the
        position and the length of the table); an error when `positions` are not of an integer
        dtype (floats, booleans).

    >>> lookup([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]], [2, 0, 2])
    array([[2. , 2.5],
           [0. , 0.5],
           [2. , 2.5]])
    """
    table = as_table(table)
    positions = as_rows(positions, len(table))
    return table[positions]


def lookup_gradient(grad_output: ArrayLike, positions: ArrayLike, num_positions: int) -> np.ndarray:
    """Gradient of a loss with respect to the table, given its gradient for the rows that were read.

    The chain rule through y = lookup(P, positions): every place t at which row m was read adds its
    share, and a row that was not read gets none.

        ∂L/∂P[m] = Σ over all t with positions[t] = m of ∂L/∂y[t]

    Shapes: positions any; grad_output exactly positions.shape + (dim,); result
        (num_positions, dim).
    Dtype: the shares are added up in float64; the result has the floating dtype of `grad_output`,
        and integers give float64. Neither input is changed.
    Units: positions in tokens, counted from 0, of an integer dtype.
    Raises: IndexError when a position is below 0 or not below num_positions; an error when the
        shapes do not match, also where they would broadcast, when positions are not integers, or
        when num_positions is negative.

    >>> lookup_gradient([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]], [2, 0, 2], num_positions=4)
    array([[ 10.,  20.],
           [  0.,   0.],
           [101., 202.],
           [  0.,   0.]])
    """
    if not isinstance(num_positions, SupportsIndex) or num_positions < 0:
        raise ValueError(
            f"num_positions must be an integer of at least 0, got {num_positions!r}; "
            f"give the length of the table"
        )
    num_positions = operator.index(num_positions)
    grad_output = as_floats(grad_output, "grad_output")
    positions = as_rows(positions, num_positions)
    if grad_output.ndim == 0 or grad_output.shape[:-1] != positions.shape:
        raise ValueError(
            f"grad_output must have the shape positions.shape + (dim,), got {grad_output.shape} "
            f"for positions {positions.shape}; give one gradient for each row that was read"
        )
    shape = (num_positions, grad_output.shape[-1])
    gradient = np.zeros(shape, np.promote_types(grad_output.dtype, np.float64))
    # gradient[positions] += … reads all rows, adds once and writes back: of two shares one is lost.
    np.add.at(gradient, positions, grad_output)
    return gradient.astype(grad_output.dtype)


def resize_table(table: ArrayLike, new_length: int) -> np.ndarray:
    """Stretch or shrink a table to another number of positions, by linear interpolation.

    Row j of the new table stands at place s = j·(old_length − 1)/(new_length − 1) of the old one,
    so that both ends stay; between two rows, the nearer one weighs more. It is the step that ViT
    (Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.2) takes on a grid, here along a line.

        new[j] = (1 − w)·P[⌊s⌋] + w·P[⌊s⌋ + 1],   w = s − ⌊s⌋

    Shapes: table P (old_length, dim); result (new_length, dim).
    Ends: the first and the last row are kept exactly; new_length 1 keeps row 0, and a table of one
        row repeats it.
    Dtype: weights in float64, the result in the floating dtype of `table`; an integer table gives
        float64. `table` is not changed.
    Units: lengths in tokens.
    Raises: ValueError when `new_length` is not an integer of at least 1.

    >>> resize_table([[0, 8], [4, 6], [8, 0]], new_length=5)
    array([[0., 8.],
           [2., 7.],
           [4., 6.],
           [6., 3.],
           [8., 0.]])
    """
    table = as_table(table)
    if not len(table):
        raise ValueError(
            f"table must have a row at least, got shape {table.shape}; "
            f"there is nothing to interpolate"
        )
    if not isinstance(new_length, SupportsIndex) or new_length < 1:
        raise ValueError(
            f"new_length must be an integer of at least 1, got {new_length!r}; "
            f"a table needs a row for the first token"
        )
    last, steps = len(table) - 1, max(operator.index(new_length) - 1, 1)
    lower, rest = np.divmod(np.arange(new_length, dtype=np.int64) * last, steps)  # s in integers
    upper, weight = np.minimum(lower + 1, last), rest[:, np.newaxis] / steps
    resized = (1 - weight) * table[lower] + weight * table[upper]
    return resized.astype(table.dtype)


def padded_positions(token_ids: ArrayLike, padding_id: int) -> np.ndarray:
    """Positions of RoBERTa's kind: real tokens count on from padding_id + 1, padding stays on it.

    The paper (Liu et al. 2019, arXiv:1907.11692) does not tell of it, the code published with it
    does: row padding_id of the table belongs to padding, and rows before it are never read.

        position[t] = padding_id + #{s ≤ t : token_ids[s] ≠ padding_id}   for a real token t
        position[t] = padding_id                                          for padding

    Shapes: token_ids (seq,) or (batch, seq); each row counts for itself; result like token_ids.
    Padding: may stand at the end, at the start or between; it is given no number of its own.
    Dtype: integers in, int64 out, whatever the width of `token_ids`, which are not changed.
    Units: positions in tokens. The largest is padding_id + the number of real tokens, so 512 real
        tokens and padding_id 1 need a table of 514 rows.
    Raises: nothing is asked for. Ids that are no integers, a single id without an axis and a
        negative `padding_id` are not specified.

    >>> padded_positions([[0, 5, 6, 1, 1], [1, 1, 0, 7, 8]], padding_id=1)
    array([[2, 3, 4, 1, 1],
           [1, 1, 2, 3, 4]])
    """
    token_ids, padding_id = np.asarray(token_ids), operator.index(padding_id)
    if token_ids.dtype.kind not in "iu":
        raise TypeError(
            f"token_ids must be integers, got dtype {token_ids.dtype}; give ids, not vectors"
        )
    if token_ids.ndim == 0:
        raise ValueError("token_ids must be (seq,) or (batch, seq), got a single id; wrap it: [id]")
    if padding_id < 0:
        raise ValueError(
            f"padding_id must be at least 0, got {padding_id}; it is a row of the table as well"
        )
    real = token_ids != padding_id
    return np.where(real, padding_id + np.cumsum(real, axis=-1, dtype=np.int64), padding_id)

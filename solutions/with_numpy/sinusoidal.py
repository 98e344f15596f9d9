"""Sinusoidal position encoding: a ruler of sines and cosines, one vector for each position.

Why: attention does not see order, and a bounded vector of many wavelengths can be added to a token.
Symbols: position pos (tokens), pair i = 0 … dim/2 − 1, frequency θ_i = base^(−2i/dim) (radians per
token). "The paper" is Vaswani et al. (2017), arXiv:1706.03762, whose formulas have no numbers.
"""

import math
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from .order_blindness import as_floats as as_floats


def frequencies(dim: int, base: float = 10000.0) -> np.ndarray:
    """Radians by which each pair of coordinates turns per token, the fastest pair first.

    The factor of pos in the formulas of section 3.5 of the paper: θ_i = base^(−2i/dim), with the
    pairs i = 0 … dim/2 − 1 counted from zero.

    Shapes: result (dim/2,).
    Dtype: float64.
    Units: radians per token.
    Raises: ValueError when `dim` is not a positive even integer (the message names it), or `base`
        not a finite number above 0.

    >>> frequencies(8)
    array([1.   , 0.1  , 0.01 , 0.001])
    """
    if not isinstance(dim, SupportsIndex) or dim <= 0 or dim % 2:
        raise ValueError(
            f"dim must be a positive even integer, got {dim!r}; each frequency fills two "
            f"coordinates, a sine and a cosine"
        )
    if not 0 < base < math.inf:
        raise ValueError(f"base must be finite and above 0, got {base!r}; 10000.0 is usual")
    i = np.arange(dim // 2)
    return base ** (-2 * i / dim)


def wavelengths(dim: int, base: float = 10000.0) -> np.ndarray:
    """Tokens that it takes each pair of coordinates to come round once.

    A full turn is 2π radians, so pair i needs 2π·base^(2i/dim) tokens. They form a geometric
    progression from 2π (section 3.5 of the paper) that ends at 2π·base^((dim − 2)/dim): always
    below 2π·base, which is its limit for large dim.

    Shapes: result (dim/2,).
    Dtype: float64.
    Units: tokens.
    Raises: ValueError when `dim` is not a positive even integer (the message names it), or `base`
        not a finite number above 0.

    >>> wavelengths(4).round(2)
    array([  6.28, 628.32])
    """
    return 2 * np.pi / frequencies(dim, base)


def sinusoidal_encoding(positions: ArrayLike, dim: int, base: float = 10000.0) -> np.ndarray:
    """The vector of each position: one sine and one cosine for every frequency.

    Section 3.5 of the paper, with the frequency θ_i = base^(−2i/dim):

        PE(pos, 2i) = sin(pos·θ_i),   PE(pos, 2i + 1) = cos(pos·θ_i)

    Shapes: positions any; result positions.shape + (dim,).
    Dtype: float64 whatever the dtype of `positions`, which is not changed.
    Units: positions in tokens; integers or floats, of either sign.
    Layout: interleaved, sine in coordinate 2i and cosine in 2i + 1, the fastest pair first.
    Raises: ValueError when `dim` is not a positive even integer (the message names it), or `base`
        not a finite number above 0.

    >>> sinusoidal_encoding([0, 1, 5], dim=4).round(4)
    array([[ 0.    ,  1.    ,  0.    ,  1.    ],
           [ 0.8415,  0.5403,  0.01  ,  1.    ],
           [-0.9589,  0.2837,  0.05  ,  0.9988]])
    """
    positions = as_floats(positions, "positions")
    angles = positions[..., np.newaxis] * frequencies(dim, base)
    encoding = np.empty((*positions.shape, dim))
    encoding[..., 0::2] = np.sin(angles)
    encoding[..., 1::2] = np.cos(angles)
    return encoding


def shift_matrix(offset: float, dim: int, base: float = 10000.0) -> np.ndarray:
    """The matrix that moves every encoding by the same number of positions.

    M with PE(pos + offset) = M @ PE(pos) for every pos, so M depends on the offset alone. It has
    a 2 × 2 block on the diagonal for each pair, from the addition theorems of sine and cosine,
    and zeros elsewhere; section 3.5 of the paper says that there is such a matrix, not which.

    Shapes: offset a single number; result (dim, dim), to stand left of a column vector.
    Dtype: float64.
    Units: offset in tokens; an integer or a float, of either sign.
    Layout: interleaved, rows and columns (2i, 2i + 1) belong to pair i.
    Raises: ValueError when `dim` is not a positive even integer (the message names it), `base`
        not a finite number above 0, or `offset` not a single number.

    >>> at_5 = [-0.9589, 0.2837, 0.0500, 0.9988]
    >>> (shift_matrix(3, dim=4) @ at_5).round(3)  # at position 8
    array([ 0.989, -0.146,  0.08 ,  0.997])
    """
    angle = as_floats(offset, "offset")
    if angle.ndim:
        raise ValueError(
            f"offset must be a single number, got shape {angle.shape}; make one matrix per offset"
        )
    angles = angle * frequencies(dim, base)
    matrix = np.zeros((dim, dim))
    even, odd = np.arange(0, dim, 2), np.arange(1, dim, 2)
    matrix[even, even] = matrix[odd, odd] = np.cos(angles)
    matrix[even, odd] = np.sin(angles)  # sin(a + b) = cos(b)·sin(a) + sin(b)·cos(a)
    matrix[odd, even] = -np.sin(angles)  # cos(a + b) = cos(b)·cos(a) − sin(b)·sin(a)
    return matrix


def decode_position(encoding: ArrayLike, max_position: int, base: float = 10000.0) -> int:
    """The position whose encoding this is, read off as one reads the time from a clock.

    Of the positions 0 … max_position − 1 the one whose encoding (see `sinusoidal_encoding`, with
    this base) comes nearest: its largest error in a coordinate is the smallest. It must also fit,
    which means that no coordinate is off by more than 0.05; so an encoding in low precision, or
    with a little noise, still has a position.

    Shapes: encoding (dim,), of one position.
    Dtype: integers or floats of any width; the result is an int. `encoding` is not changed.
    Units: max_position and the result in tokens.
    Layout: interleaved, sine in coordinate 2i and cosine in 2i + 1.
    Raises: ValueError when no position fits, when `encoding` is not 1-D or its length dim is not
        a positive even number (the message names it), when `max_position` is not an integer of at
        least 0, or `base` not a finite number above 0.

    >>> decode_position([0.9894, -0.1455, 0.0799, 0.9968], max_position=100)
    8
    """
    encoding = as_floats(encoding, "encoding")
    if encoding.ndim != 1:
        raise ValueError(
            f"encoding must be (dim,), got shape {encoding.shape}; decode one vector at a time"
        )
    if not isinstance(max_position, SupportsIndex) or max_position < 0:
        raise ValueError(
            f"max_position must be an integer of at least 0, got {max_position!r}; "
            f"it is the number of positions to look at"
        )
    turns = frequencies(len(encoding), base)
    positions, error = np.arange(max_position), np.zeros(max_position)
    # The fastest hand rules out nearly all positions, each slower one most of those that it left.
    for (sine, cosine), turn in zip(encoding.reshape(-1, 2), turns, strict=True):
        angle = positions * turn
        error = np.maximum(error, np.abs(np.sin(angle) - sine))
        error = np.maximum(error, np.abs(np.cos(angle) - cosine))
        fits = error <= 0.05
        positions, error = positions[fits], error[fits]
    if not len(positions):
        raise ValueError(
            f"encoding must fit a position below max_position {max_position} within 0.05 in every "
            f"coordinate, got {encoding}; check base and layout, or look further"
        )
    return int(positions[error.argmin()])


def fixed_layout(positions: ArrayLike, dim: int, base: float = 10000.0) -> np.ndarray:
    """Repair a library's table of encodings, so that it is the paper's again.

    The faulty table differs from section 3.5 of the paper in two places. It stores all sines and
    then all cosines, where the paper has the two of a pair side by side; and its ladder of
    frequencies is base^(−i/(dim/2 − 1)), which ends at exactly 1/base, one rung below the paper's
    base^(−2i/dim). Reported as https://github.com/tensorflow/tensor2tensor/issues/391 and /1423.

    Shapes: positions any; result positions.shape + (dim,).
    Dtype: float64 whatever the dtype of `positions`, which is not changed.
    Units: positions in tokens; integers or floats, of either sign.
    Layout: interleaved, sine in coordinate 2i and cosine in 2i + 1, the fastest pair first.
    Raises: ValueError when `dim` is not a positive even integer (the message names it), or `base`
        not a finite number above 0.

    >>> fixed_layout([1], dim=4).round(4)
    array([[0.8415, 0.5403, 0.01  , 1.    ]])
    """
    positions = as_floats(positions, "positions")
    angles = positions[..., np.newaxis] * frequencies(dim, base)  # dim/2 equal steps, not one less
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)  # rows [sin cos], one per pair
    return pairs.reshape(*positions.shape, dim)

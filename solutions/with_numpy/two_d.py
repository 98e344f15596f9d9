"""Positions on a grid: a patch of an image stands in a row and in a column.

Why: attention sees the patches of an image as one sequence, and the number of a patch in it does
not tell which patches touch. Symbols: grid of height h and width w, patch t = row·w + column.
"Attention" is Vaswani et al. (2017), arXiv:1706.03762; "ViT" is Dosovitskiy et al. (2021),
arXiv:2010.11929; "MAE" is He et al. (2022), arXiv:2111.06377; "RoPE-ViT" is Heo et al. (2024),
arXiv:2403.13298.
"""

import operator
from collections.abc import Callable
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from .rope import apply_rope, as_floats, rope_angles, rotate_2d


def require_grid(height: int, width: int) -> tuple[int, int]:
    """Both sizes as plain integers, which never overflow; anything else is refused by name."""
    for name, size in (("height", height), ("width", width)):
        if not isinstance(size, SupportsIndex) or size < 1:
            raise ValueError(
                f"{name} must be an integer of at least 1, got {size!r}; "
                f"it counts patches, so divide the image by the size of a patch first"
            )
    return operator.index(height), operator.index(width)


def require_quarters(dim: int) -> None:
    """Refuse a width of which no two halves consist of pairs."""
    if not isinstance(dim, SupportsIndex) or dim <= 0 or dim % 4:
        raise ValueError(
            f"dim must be a positive integer divisible by 4, got {dim!r}; "
            f"one half is for the row, one for the column, and each half consists of pairs"
        )


def as_places(x: np.ndarray, rows: ArrayLike, cols: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns in float64, one of each for every vector of x, or a refusal."""
    places = tuple(as_floats(p, name) for p, name in ((rows, "rows"), (cols, "cols")))
    if x.ndim < 2 or any(p.shape != x.shape[-2:-1] for p in places):
        raise ValueError(
            f"x must be (..., n, dim), rows and cols (n,) each, got x {x.shape}, rows "
            f"{places[0].shape} and cols {places[1].shape}; give each vector its row and column"
        )
    return places[0].astype(np.float64), places[1].astype(np.float64)


def grid_positions(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each patch, in the order in which a grid is read.

    Row-major: row 0 from left to right, then row 1, as `image.reshape(-1)` flattens it. Patch t
    stands in

        row t // width,   column t % width

    Shapes: result (rows, cols), each (height·width,).
    Dtype: an integer dtype.
    Units: height and width in patches; rows and columns count from 0.
    Raises: ValueError when `height` or `width` is below 1.

    >>> rows, cols = grid_positions(2, 3)
    >>> rows
    array([0, 0, 0, 1, 1, 1])
    >>> cols
    array([0, 1, 2, 0, 1, 2])
    """
    height, width = require_grid(height, width)
    rows, cols = np.divmod(np.arange(height * width, dtype=np.int64), width)
    return rows, cols


def sincos_2d(
    height: int, width: int, dim: int, base: float = 10000.0, first: str = "row"
) -> np.ndarray:
    """Sines and cosines of the row in one half of the coordinates, of the column in the other.

    The encoding of Attention, section 3.5, twice, at half the width each. Pair i = 0 … dim/4 − 1
    of a half that encodes position m holds

        [sin(m·base^(−2i/(dim/2))), cos(m·base^(−2i/(dim/2)))]

    Shapes: result (height·width, dim), the patches in row-major order.
    Dtype: float64.
    Units: height and width in patches, positions m counted from 0.
    Layout: interleaved, sin in coordinate 2i of its half, cos in 2i + 1. first="row" puts the
        half of the row before that of the column, first="column" the other way round. (MAE's code
        is column first, and has all sines of a half before all its cosines.)
    Raises: ValueError when `dim` is not positive and divisible by 4 (the message names it), `first`
        is neither of the two, `height` or `width` is below 1, or `base` not a finite number above
        0.

    >>> sincos_2d(2, 3, dim=4)[5].round(4)  # row 1, column 2
    array([ 0.8415,  0.5403,  0.9093, -0.4161])
    >>> sincos_2d(2, 3, dim=4, first="column")[5].round(4)
    array([ 0.9093, -0.4161,  0.8415,  0.5403])
    """
    require_grid(height, width)
    require_quarters(dim)
    if first not in ("row", "column"):
        raise ValueError(
            f"first must be 'row' or 'column', got {first!r}; "
            f"take the one that the weights were trained with"
        )
    halves = []
    for positions in grid_positions(height, width):
        angles = rope_angles(positions, dim // 2, base)
        waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
        halves.append(waves.reshape(len(angles), dim // 2))  # [s0 c0], [s1 c1] → [s0 c0 s1 c1]
    if first == "column":
        halves.reverse()
    return np.concatenate(halves, axis=-1)


def axial_rope_2d(
    x: ArrayLike, rows: ArrayLike, cols: ArrayLike, base: float = 100.0
) -> np.ndarray:
    """Rotate the pairs of the first half by the row, those of the second half by the column.

    The axial frequencies of RoPE-ViT: each half is a whole RoPE of width dim/2, so pair i of a
    half, i = 0 … dim/4 − 1, turns by

        position·base^(−2i/(dim/2))

    Shapes: x (..., n, dim); rows and cols exactly (n,), shared by all leading axes; result like x.
    Dtype: angles in float64, the result in the floating dtype of `x`; integers give float64.
        `x` is not changed.
    Units: rows and columns in patches, integers or floats; angles in radians.
    Layout: interleaved, coordinates (2i, 2i + 1) of a half are a pair. Row first, column second.
        (RoPE-ViT's own code has the column first.)
    Raises: ValueError when `rows` or `cols` has any other shape, also one that would broadcast;
        when `dim` is not positive and divisible by 4 (the message names it); when `base` is not a
        finite number above 0.

    >>> x = [[1, 0.5, -0.5, 2]]
    >>> axial_rope_2d(x, rows=[5], cols=[3]).round(4)
    array([[ 0.7631, -0.8171,  0.2128, -2.0505]])
    """
    x = as_floats(x, "x")
    rows, cols = as_places(x, rows, cols)
    require_quarters(x.shape[-1])
    by_row, by_column = np.split(x, 2, axis=-1)
    halves = [apply_rope(by_row, rows, base), apply_rope(by_column, cols, base)]
    return np.concatenate(halves, axis=-1)


def mixed_rope_2d(
    x: ArrayLike, rows: ArrayLike, cols: ArrayLike, row_freqs: ArrayLike, col_freqs: ArrayLike
) -> np.ndarray:
    """Rotate every pair by its row and its column at once, each with a frequency of its own.

    The mixed frequencies of RoPE-ViT, where a model learns them: a pair with both frequencies
    unequal to 0 turns along a diagonal of the grid. Pair p = 0 … dim/2 − 1 turns by

        row·row_freqs[p] + column·col_freqs[p]

    Shapes: x (..., n, dim); rows and cols exactly (n,), shared by all leading axes; row_freqs and
        col_freqs exactly (dim/2,); result like x.
    Dtype: angles in float64, the result in the floating dtype of `x`; integers give float64.
        `x` is not changed.
    Units: rows and columns in patches, frequencies in radians per patch, of either sign.
    Layout: interleaved, coordinates (2p, 2p + 1) are pair p.
    Raises: ValueError when rows, cols or frequencies have any other shape, also one that would
        broadcast; when `dim` is not a positive even integer (the message names it).

    >>> x = [[1, 0.5, -0.5, 2]]
    >>> mixed_rope_2d(x, rows=[5], cols=[3], row_freqs=[1, 0.2], col_freqs=[0, -0.3]).round(4)
    array([[ 0.7631, -0.8171, -0.6972,  1.9401]])
    """
    x = as_floats(x, "x")
    rows, cols = as_places(x, rows, cols)
    dim = x.shape[-1]
    if dim == 0 or dim % 2:
        raise ValueError(
            f"dim must be a positive even integer, got {dim!r}; coordinates turn in pairs"
        )
    row_freqs, col_freqs = as_floats(row_freqs, "row_freqs"), as_floats(col_freqs, "col_freqs")
    if row_freqs.shape != (dim // 2,) or col_freqs.shape != (dim // 2,):
        raise ValueError(
            f"row_freqs and col_freqs must be (dim/2,) = ({dim // 2},) each, got "
            f"{row_freqs.shape} and {col_freqs.shape}; give one frequency for each pair"
        )
    angles = rows[:, np.newaxis] * row_freqs + cols[:, np.newaxis] * col_freqs
    pairs = x.reshape(*x.shape[:-1], dim // 2, 2)  # [x0 x1 x2 x3] → rows [x0 x1], [x2 x3]
    return rotate_2d(pairs, angles).reshape(x.shape)


def neighbours(old: int, new: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each of `new` patches along an axis: two of the `old` ones, and the second's weight.

    >>> neighbours(2, 4)
    (array([0, 0, 0, 1]), array([1, 1, 1, 1]), array([0.  , 0.25, 0.75, 0.  ]))
    """
    # (j + 1/2)·old/new − 1/2 over the common denominator 2·new, so that no place is rounded.
    places = (2 * np.arange(new, dtype=np.int64) + 1) * old - new
    lower, rest = np.divmod(np.clip(places, 0, 2 * new * (old - 1)), 2 * new)
    return lower, np.minimum(lower + 1, old - 1), rest / (2 * new)


def resize_grid(table: ArrayLike, old_hw: tuple[int, int], new_hw: tuple[int, int]) -> np.ndarray:
    """Stretch or shrink a table of patch positions to another grid, by bilinear interpolation.

    The step of ViT, section 3.2, for images of another size. A patch is a square, and its vector
    belongs to its centre: the centre of new row j lies at place s among the old rows, and columns
    go alike.

        s = (j + 1/2)·h/h' − 1/2, clamped to 0 … h − 1
        new[j] = (1 − f)·old[⌊s⌋] + f·old[⌊s⌋ + 1],   f = s − ⌊s⌋

    Shapes: table (h·w, dim), the patches in row-major order, without a class token; old_hw is
        (h, w), new_hw is (h', w'); result exactly (h'·w', dim), row-major too.
    Edges: beyond the outermost centres the outermost patch goes on. No antialiasing: also when the
        grid shrinks, a new patch is made of at most two old rows and two old columns.
    Dtype: weights in float64, the result in the floating dtype of `table`; an integer table gives
        float64. `table` is not changed.
    Units: sizes in patches.
    Raises: ValueError when `table` has not exactly h·w rows, or a size is below 1.

    >>> resize_grid([[0.0], [8.0]], (1, 2), (1, 4)).ravel()
    array([0., 2., 6., 8.])
    >>> resize_grid([[0.0], [8.0], [40.0], [48.0]], (2, 2), (1, 3)).ravel()
    array([20., 24., 28.])
    """
    table = as_floats(table, "table")
    height, width = require_grid(*old_hw)
    new_height, new_width = require_grid(*new_hw)
    if table.ndim != 2 or len(table) != height * width:
        raise ValueError(
            f"table must be (h·w, dim) with h·w = {height}·{width} = {height * width} rows, got "
            f"shape {table.shape}; a class token has no place in the grid, so resize without it"
        )
    grid = table.reshape(height, width, table.shape[1])
    lower, upper, weight = neighbours(height, new_height)
    weight = weight[:, np.newaxis, np.newaxis]
    tall = (1 - weight) * grid[lower] + weight * grid[upper]
    lower, upper, weight = neighbours(width, new_width)
    weight = weight[:, np.newaxis]
    resized = (1 - weight) * tall[:, lower] + weight * tall[:, upper]
    return resized.reshape(new_height * new_width, table.shape[1]).astype(table.dtype)


def fixed_grid() -> Callable[[int, int], np.ndarray]:
    """Make `centres`, which tells where in the image the centre of each patch lies.

    Returns a function `centres(height, width)` → the centres of all patches in row-major order, as
    fractions of the image's height and width, on squares and on rectangles alike. The patch in
    this row and this column has

        [(row + 1/2)/height, (column + 1/2)/width]

    Shapes: (`centres`) result (height·width, 2), the fraction of the height first.
    Dtype: float64.
    Units: height and width in patches; 0 is the upper or left edge of the image, 1 the other one.
    Raises: (`centres`) ValueError when `height` or `width` is below 1.

    >>> centres = fixed_grid()
    >>> centres(1, 2)
    array([[0.5 , 0.25],
           [0.5 , 0.75]])
    >>> centres(4, 1)[:, 0]
    array([0.125, 0.375, 0.625, 0.875])
    """

    def centres(height: int, width: int) -> np.ndarray:
        height, width = require_grid(height, width)
        down = (np.arange(height) + 0.5) / height
        across = (np.arange(width) + 0.5) / width
        mesh = np.meshgrid(down, across, indexing="ij")  # each (height, width), as the patches lie
        return np.stack(mesh, axis=-1).reshape(height * width, 2)

    return centres

"""Refuses more than is asked, with errors of its own, and turns pairs by matrices."""

import functools
import operator

import numpy as np
import torch


class GridError(ValueError):
    """Something is wrong with a grid or a width."""


def require(condition, message):
    if not condition:
        raise GridError(message)


def size(number):
    try:
        number = operator.index(number)
    except TypeError:
        raise GridError(f"{number!r} is no whole number") from None
    require(number >= 1, f"a size of {number}")
    return number


def grid_positions(height, width):
    height, width = size(height), size(width)
    rows = np.repeat(np.arange(height, dtype=np.int32), width)
    cols = np.tile(np.arange(width, dtype=np.int32), height)
    return [rows, cols]  # a list of two


@functools.cache
def frequencies(half, base):
    return tuple(base ** (-2.0 * i / half) for i in range(half // 2))


def checked_frequencies(dim, base):
    require(isinstance(dim, int | np.integer) and dim > 0, f"dim {dim!r}")
    require(dim % 4 == 0, f"dim {dim!r} is not divisible by four")
    require(np.isfinite(base) and base > 0, f"base {base!r}")
    return np.array(frequencies(int(dim) // 2, float(base)))


def sincos_2d(height, width, dim, base=10000.0, first="row"):
    f = checked_frequencies(dim, base)
    height, width = size(height), size(width)
    require(first in ("row", "column"), f"first is {first!r}: 'row' or 'column'")
    table = np.zeros((height, width, 2, dim // 4, 2))
    row_half, column_half = (0, 1) if first == "row" else (1, 0)
    down, across = np.multiply.outer(np.arange(height), f), np.multiply.outer(np.arange(width), f)
    table[:, :, row_half, :, 0] = np.sin(down)[:, None]
    table[:, :, row_half, :, 1] = np.cos(down)[:, None]
    table[:, :, column_half, :, 0] = np.sin(across)[None]
    table[:, :, column_half, :, 1] = np.cos(across)[None]
    return table.reshape(height * width, dim)


def matrices(angles):
    """(..., 2, 2) rotations."""
    c, s = np.cos(angles), np.sin(angles)
    return np.moveaxis(np.array([[c, -s], [s, c]]), (0, 1), (-2, -1))


def turn(x, angles):
    x = np.array(x)  # a copy
    require(x.dtype.kind in "iuf", "numbers, please")
    dtype = x.dtype if x.dtype.kind == "f" else float
    pairs = x.astype(float).reshape(*x.shape[:-1], -1, 2, 1)
    return (matrices(angles) @ pairs).reshape(x.shape).astype(dtype, copy=False)


def places(x, rows, cols):
    require(np.ndim(x) >= 2, "x needs the axes n and dim")
    rows, cols = np.asarray(rows), np.asarray(cols)
    n = np.shape(x)[-2]
    require(n > 0, "no vector at all")
    require(rows.shape == cols.shape == (n,), f"{n} rows and {n} columns")
    require(np.isfinite(rows).all() and np.isfinite(cols).all(), "finite places")
    return rows.astype(float), cols.astype(float)


def axial_rope_2d(x, rows, cols, base=100.0):
    rows, cols = places(x, rows, cols)
    f = checked_frequencies(np.shape(x)[-1], base)
    both = np.concatenate([f, 0 * f]), np.concatenate([0 * f, f])
    return turn(x, rows[:, None] * both[0] + cols[:, None] * both[1])


def mixed_rope_2d(x, rows, cols, row_freqs, col_freqs):
    rows, cols = places(x, rows, cols)
    dim = np.shape(x)[-1]
    require(dim > 0 and dim % 2 == 0, f"dim {dim}")
    freqs = np.asarray(row_freqs, dtype=float), np.asarray(col_freqs, dtype=float)
    require(all(f.shape == (dim // 2,) for f in freqs), "dim/2 frequencies for each axis")
    first = turn(np.asarray(x, dtype=float), rows[:, None] * freqs[0])  # one turn after the other
    dtype = np.asarray(x).dtype
    return turn(first, cols[:, None] * freqs[1]).astype(dtype if dtype.kind == "f" else float)


def resize_grid(table, old_hw, new_hw):
    table = np.array(table)
    (h, w), (new_h, new_w) = map(size, old_hw), map(size, new_hw)
    require(table.ndim == 2 and len(table) == h * w, f"{table.shape} is not ({h}·{w}, dim)")
    dtype = table.dtype if table.dtype.kind == "f" else np.dtype(float)
    framed = np.pad(table.reshape(h, w, -1).astype(float), ((1, 1), (1, 1), (0, 0)), mode="edge")
    s = (np.arange(new_h) + 0.5) * h / new_h + 0.5  # one further on: the frame
    t = (np.arange(new_w) + 0.5) * w / new_w + 0.5
    i, j = s.astype(int), t.astype(int)
    v, u = (s - i)[:, None, None], (t - j)[None, :, None]
    corner = {(a, b): framed[np.ix_(i + a, j + b)] for a in (0, 1) for b in (0, 1)}
    top = corner[0, 0] + u * (corner[0, 1] - corner[0, 0])
    bottom = corner[1, 0] + u * (corner[1, 1] - corner[1, 0])
    return (top + v * (bottom - top)).reshape(new_h * new_w, -1).astype(dtype)


def fixed_grid():
    return lambda height, width: _centres(size(height), size(width)).copy()


@functools.lru_cache(maxsize=8)
def _centres(height, width):
    rows, cols = grid_positions(height, width)
    return np.column_stack([(rows + 0.5) / height, (cols + 0.5) / width])


class AxialRotaryEmbedding2D(torch.nn.Module):
    """Twin of the function above: heads and batch are leading axes."""

    def __init__(self, head_dim: int, base: float = 100.0) -> None:
        super().__init__()
        checked_frequencies(head_dim, base)
        self.config = (int(head_dim), float(base))

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        head_dim, base = self.config
        rows, cols = grid_positions(height, width)
        prefix = operator.index(num_prefix_tokens)
        require(prefix >= 0, f"{prefix} prefix tokens")
        require(q.ndim == k.ndim == 4, "four axes")
        require(q.shape[0] == k.shape[0] and q.shape[2:] == k.shape[2:], "q and k differ")
        require(q.shape[1] % k.shape[1] == 0, "heads of k do not divide those of q")
        require(q.shape[3] == head_dim, f"width {q.shape[3]}, not {head_dim}")
        require(q.shape[2] == prefix + len(rows), f"{q.shape[2]} tokens")
        f = torch.tensor(frequencies(head_dim // 2, base), device=q.device)  # float32
        angles = torch.zeros(q.shape[2], head_dim // 2, device=q.device)
        angles[prefix:, : head_dim // 4] = torch.tensor(rows).to(f)[:, None] * f
        angles[prefix:, head_dim // 4 :] = torch.tensor(cols).to(f)[:, None] * f
        cos, sin = angles.cos(), angles.sin()
        out = []
        for x in (q, k):
            wide = x if x.dtype == torch.float64 else x.float()
            pairs = wide.unflatten(3, (head_dim // 2, 2))
            a, b = pairs[..., 0], pairs[..., 1]
            out.append(
                torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(3).to(x.dtype)
            )
        return out[0], out[1]

"""Stays in the dtype that comes in where it can, and hands out odd but allowed objects."""

from collections import namedtuple

import numpy as np
import torch

Places = namedtuple("Places", "rows cols")
Rotated = namedtuple("Rotated", "q k")


def grid_positions(height, width):
    if height * width == 0 or height < 0 or width < 0:
        raise ArithmeticError("no grid")
    t = np.arange(height * width)
    return Places(t // width, t - t // width * width)


def waves(positions, half, base):
    angles = np.asarray(positions, dtype=np.float64)[:, np.newaxis] / base ** (
        np.arange(0, half, 2) / half
    )
    return np.cos(angles), np.sin(angles)


def check(dim, base):
    if dim % 4 or dim < 1:
        raise ValueError("not a multiple of 4: " + str(dim))
    if not base > 0:
        raise ValueError("base: " + str(base))


def sincos_2d(height, width, dim, base=10000.0, first="row"):
    check(dim, base)
    order = {"row": (0, 1), "column": (1, 0)}
    if first not in order:
        raise ValueError("first is 'row' or 'column'")
    grid = grid_positions(height, width)
    out = np.empty((height * width, dim))
    for place, axis in enumerate(order[first]):
        cos, sin = waves(grid[axis], dim // 2, base)
        out[:, place * dim // 2 : (place + 1) * dim // 2 : 2] = sin
        out[:, place * dim // 2 + 1 : (place + 1) * dim // 2 : 2] = cos
    return out


def rotate(x, cos, sin):
    """In place, on a copy."""
    out = np.array(x, dtype=None if np.asarray(x).dtype.kind == "f" else float)
    cos, sin = cos.astype(out.dtype), sin.astype(out.dtype)
    even = out[..., ::2] * cos - out[..., 1::2] * sin
    out[..., 1::2] = out[..., ::2] * sin + out[..., 1::2] * cos
    out[..., ::2] = even
    return out


def vectors(x, *places):
    x = np.asarray(x)
    if any(np.shape(p) != x.shape[:-1][-1:] or np.ndim(p) != 1 for p in places):
        raise ValueError("places and vectors do not match")
    return x


def axial_rope_2d(x, rows, cols, base=100.0):
    x = vectors(x, rows, cols)
    dim = x.shape[-1]
    check(dim, base)
    halves = [
        rotate(x[..., part], *waves(places, dim // 2, base))
        for part, places in ((slice(0, dim // 2), rows), (slice(dim // 2, dim), cols))
    ]
    return np.append(halves[0], halves[1], axis=-1)


def mixed_rope_2d(x, rows, cols, row_freqs, col_freqs):
    x = vectors(x, rows, cols)
    pairs, rest = divmod(x.shape[-1], 2)
    if rest:
        raise ValueError(f"{x.shape[-1]} is odd")
    if np.shape(row_freqs) != (pairs,) or np.shape(col_freqs) != (pairs,):
        raise ValueError("wrong number of frequencies")
    places = np.array([rows, cols], dtype=np.float64).T
    angles = places @ np.array([row_freqs, col_freqs], dtype=np.float64)
    return rotate(x, np.cos(angles), np.sin(angles))


def resize_grid(table, old_hw, new_hw):
    """np.interp along one axis after the other."""
    table = np.asarray(table)
    h, w = old_hw
    if h < 1 or w < 1 or table.shape[:1] != (h * w,):
        raise ValueError("the table is not of this grid")
    if new_hw[0] < 1 or new_hw[1] < 1:
        raise ValueError("nothing to resize to")
    grid = table.reshape(h, w, -1)
    for axis in (0, 1):
        old, new = grid.shape[axis], new_hw[axis]
        centres, wanted = (np.arange(old) + 0.5) / old, (np.arange(new) + 0.5) / new
        grid = np.apply_along_axis(lambda line: np.interp(wanted, centres, line), axis, grid)  # noqa: B023
    return grid.reshape(-1, grid.shape[-1]).astype(table.dtype if table.dtype.kind == "f" else "f8")


def fixed_grid():
    def centres(height, width):
        if height <= 0:
            raise ValueError("height")
        if width <= 0:
            raise ValueError("width")
        across, down = np.meshgrid(
            (np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height
        )
        return np.c_[down.ravel(), across.ravel()]

    return centres


class AxialRotaryEmbedding2D(torch.nn.Module):
    """Sines and cosines are exact, products and sums are those of q's dtype."""

    def __init__(self, head_dim, base=100.0):
        super().__init__()
        check(head_dim, base)
        self.half, self.base = head_dim // 2, base

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        grid = grid_positions(height, width)
        count = num_prefix_tokens + height * width
        if num_prefix_tokens < 0 or q.shape[2] != count or q.shape[3] != 2 * self.half:
            raise ValueError(f"q must have {count} tokens")
        if k.shape[0] != q.shape[0] or k.shape[2:] != q.shape[2:]:
            raise ValueError("k must go with q")
        tables = [waves(p, self.half, self.base) for p in grid]
        cos, sin = (torch.from_numpy(np.concatenate(t, axis=1)) for t in zip(*tables, strict=True))

        def turned(x):
            out = x.clone(memory_format=torch.contiguous_format)
            view = out[:, :, num_prefix_tokens:]
            c, s = cos.to(x.device, x.dtype), sin.to(x.device, x.dtype)
            a, b = view[..., ::2].clone(), view[..., 1::2].clone()
            view[..., ::2] = a * c - b * s
            view[..., 1::2] = a * s + b * c
            return out

        return Rotated(turned(q), turned(k))

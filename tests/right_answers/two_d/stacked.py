"""Rows and columns as one array of two, sines by complex powers, refusals of any kind."""

import numpy as np
import torch


def grid_positions(height, width):
    if height < 1 or width < 1:
        raise LookupError("no patch")
    return np.indices((height, width)).reshape(2, height * width)


def turns(places, dim, base):
    """exp(i·angle) of each place, (n, dim/4), for one half of dim coordinates."""
    if dim % 4 or dim <= 0:
        raise ValueError(f"{dim} is not made of four parts")
    if not base > 0:
        raise ValueError(f"a base of {base}")
    pair = np.arange(dim // 4)
    angles = np.asarray(places, dtype=np.float64)[:, None] * np.exp(-4 * pair / dim * np.log(base))
    return np.exp(1j * angles)


def sincos_2d(height, width, dim, base=10000.0, first="row"):
    which = {"row": 1, "column": -1}[first]
    halves = [turns(places, dim, base) for places in grid_positions(height, width)][::which]
    pairs = np.concatenate(halves, axis=1)
    return np.stack([pairs.imag, pairs.real], axis=2).reshape(height * width, dim)


def turned(x, factors):
    out = np.empty(x.shape, dtype=x.dtype if x.dtype.kind == "f" else float)
    pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * factors
    out[..., 0::2], out[..., 1::2] = pairs.real, pairs.imag
    return out


def one_each(x, *places):
    if x.ndim < 2 or {np.shape(p) for p in places} != {(x.shape[-2],)}:
        raise IndexError("one row and one column for each vector")


def axial_rope_2d(x, rows, cols, base=100.0):
    x = np.asarray(x)
    one_each(x, rows, cols)
    return turned(x, np.hstack([turns(p, x.shape[-1], base) for p in (rows, cols)]))


def mixed_rope_2d(x, rows, cols, row_freqs, col_freqs):
    x = np.asarray(x)
    one_each(x, rows, cols)
    pairs = x.shape[-1] / 2
    if not pairs.is_integer():
        raise ValueError(f"an odd dim, {x.shape[-1]}")
    if {np.shape(row_freqs), np.shape(col_freqs)} != {(pairs,)}:
        raise IndexError("two frequencies for each pair")
    by_row = np.multiply.outer(np.asarray(rows, dtype=float), row_freqs)
    by_column = np.multiply.outer(np.asarray(cols, dtype=float), col_freqs)
    return turned(x, np.exp(1j * by_row) * np.exp(1j * by_column))


def resize_grid(table, old_hw, new_hw):
    """A tent over each old centre, along either axis."""
    table = np.asarray(table)
    kind = table.dtype if table.dtype.kind == "f" else np.dtype(float)
    shares = []
    for old, new in zip(old_hw, new_hw, strict=True):
        if old < 1 or new < 1:
            raise LookupError("no patch")
        places = ((np.arange(new) + 0.5) * old / new - 0.5).clip(0, old - 1)
        shares.append(np.maximum(1 - np.abs(places[:, None] - np.arange(old)), 0))
    if table.ndim != 2 or len(table) != old_hw[0] * old_hw[1]:
        raise LookupError("another number of patches")
    return (np.kron(shares[0], shares[1]) @ table.astype(float)).astype(kind)


def fixed_grid():
    def centres(height, width):
        if not (height > 0 < width):
            raise ValueError((height, width))
        return (grid_positions(height, width).T + 0.5) / np.array([height, width])

    return centres


class AxialRotaryEmbedding2D(torch.nn.Module):
    """Complex numbers in double precision, and an error of torch's own where shapes differ."""

    def __init__(self, head_dim, base=100.0):
        super().__init__()
        turns([0], head_dim, base)
        self.settings = (head_dim, base)

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        if num_prefix_tokens < 0:
            raise LookupError(num_prefix_tokens)
        grid = grid_positions(height, width)
        factors = np.hstack([turns(places, *self.settings) for places in grid])
        still = np.ones((num_prefix_tokens, factors.shape[1]))
        factors = torch.from_numpy(np.vstack([still, factors])).to(q.device)
        if q.shape[::3] != k.shape[::3] or not len(factors) == q.shape[2] == k.shape[2]:
            raise LookupError("shapes")
        if q.shape[3] != self.settings[0]:
            raise LookupError("width")
        rotated = []
        for x in (q, k):
            pairs = torch.view_as_complex(x.double().reshape(*x.shape[:3], -1, 2).contiguous())
            rotated.append(torch.view_as_real(pairs * factors).flatten(3).to(x.dtype))
        return rotated

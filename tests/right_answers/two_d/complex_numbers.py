"""Pairs as complex numbers, grids by np.indices, interpolation by two matrices and an einsum."""

import numpy as np
import torch
from torch import nn


def grid_positions(height, width):
    if height <= 0 or width <= 0:
        raise IndexError("no patch at all")
    rows, cols = np.indices((height, width)).reshape(2, -1)
    return rows, cols


def theta(dim, base):
    if dim % 4 or dim <= 0:
        raise ValueError(f"a width of {dim} cannot be quartered")
    if base <= 0:
        raise ValueError("the base must be positive")
    return np.exp(-np.log(base) * np.arange(0, dim // 2, 2) / (dim // 2))


def sincos_2d(height, width, dim, base=10000.0, first="row"):
    places = np.array(grid_positions(height, width), dtype=float)
    if first not in {"row", "column"}:
        raise ValueError(first)
    waves = np.exp(1j * places[:, :, None] * theta(dim, base))
    if first == "column":
        waves = waves[::-1]
    row_first = np.concatenate(list(waves), axis=-1)
    return np.stack([row_first.imag, row_first.real], axis=-1).reshape(len(row_first), dim)


def turn(x, angles):
    x = np.asarray(x)
    dtype = x.dtype if np.issubdtype(x.dtype, np.floating) else np.float64
    z = x[..., ::2] + 1j * x[..., 1::2].astype(np.float64)
    z = z * np.exp(1j * angles)
    return np.stack([z.real, z.imag], axis=-1).reshape(x.shape).astype(dtype)


def of_length(values, n, what):
    values = np.asarray(values)
    if values.shape != (n,):
        raise ValueError(f"{what} has the shape {values.shape}, not ({n},)")
    return values.astype(np.float64)


def axial_rope_2d(x, rows, cols, base=100.0):
    *_, n, dim = np.shape(x)  # a vector alone cannot be unpacked
    frequencies = theta(dim, base)
    angles = [np.outer(of_length(p, n, "places"), frequencies) for p in (rows, cols)]
    return turn(x, np.hstack(angles))


def mixed_rope_2d(x, rows, cols, row_freqs, col_freqs):
    *_, n, dim = np.shape(x)
    if dim % 2:
        raise ValueError(f"dim {dim} is odd")
    places = np.stack([of_length(p, n, "places") for p in (rows, cols)])
    freqs = np.stack([of_length(f, dim // 2, "frequencies") for f in (row_freqs, col_freqs)])
    return turn(x, np.einsum("an,ap->np", places, freqs))


def tent(old, new):
    """Weights (new, old): how near each old centre is, with the edge taking what lies outside."""
    places = (np.arange(new) + 0.5) * (old / new) - 0.5
    places = np.clip(places, 0, old - 1)
    return np.maximum(0.0, 1.0 - np.abs(places[:, None] - np.arange(old)))


def resize_grid(table, old_hw, new_hw):
    table = np.asarray(table)
    if min(*old_hw, *new_hw) < 1:
        raise ValueError(f"{old_hw} to {new_hw}")
    if len(table) != old_hw[0] * old_hw[1]:
        raise ValueError(f"{len(table)} rows are not {old_hw[0]}×{old_hw[1]}")
    grid = table.reshape(old_hw[0], old_hw[1], -1)
    down, across = tent(old_hw[0], new_hw[0]), tent(old_hw[1], new_hw[1])
    out = np.einsum("ih,jw,hwd->ijd", down, across, grid, optimize=True)
    out = out.reshape(new_hw[0] * new_hw[1], -1)
    return out.astype(table.dtype if table.dtype.kind == "f" else "f8")


def fixed_grid():
    def centres(height, width):
        if not (height > 0 and width > 0):
            raise ValueError(f"{height} by {width} patches")
        mesh = np.mgrid[0:height, 0:width].transpose(1, 2, 0).reshape(-1, 2)
        return (mesh + 0.5) / np.array([height, width])

    return centres


class AxialRotaryEmbedding2D(nn.Module):
    """Complex tables, computed anew in each call; registers nothing."""

    def __init__(self, head_dim: int, base: float = 100.0):
        super().__init__()
        self.omega = theta(head_dim, base)
        self.head_dim = head_dim

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        rows, cols = grid_positions(height, width)
        assert num_prefix_tokens >= 0, "a negative number of prefix tokens"
        if q.size(2) != num_prefix_tokens + len(rows):
            raise ValueError("the sequence does not fit the grid")
        assert q.shape[0] == k.shape[0] and q.shape[2:] == k.shape[2:], "q and k do not match"
        assert q.shape[-1] == self.head_dim, "another width than head_dim"
        angles = np.hstack([np.outer(rows, self.omega), np.outer(cols, self.omega)])
        angles = np.vstack([np.zeros((num_prefix_tokens, angles.shape[1])), angles])
        phases = torch.from_numpy(np.exp(1j * angles)).to(q.device)

        def rotate(x):
            z = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2).contiguous())
            return torch.view_as_real(z * phases).flatten(3).type_as(x)

        return rotate(q), rotate(k)

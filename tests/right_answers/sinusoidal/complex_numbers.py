"""A hand of the clock is a complex number; sine and cosine are its two parts. In torch: complex."""

import numpy as np
import torch
from torch import nn


def frequencies(dim, base=10000.0):
    if dim < 2 or dim % 2 == 1:
        raise ValueError(f"dim has to be even and positive: {dim}")
    if base <= 0:
        raise ValueError(f"base has to be positive: {base}")
    step = base ** (-2.0 / dim)
    return np.cumprod(np.r_[1.0, np.full(dim // 2 - 1, step)])


def wavelengths(dim, base=10000.0):
    return 2.0 * np.pi * (1.0 / frequencies(dim, base))


def hands(positions, dim, base):
    return np.exp(
        1j * np.multiply.outer(np.asarray(positions, dtype=np.float64), ladder(dim, base))
    )


def ladder(dim, base):
    frequencies(dim, base)  # refuses what is to be refused
    return np.array([base ** (-2 * i / dim) for i in range(dim // 2)])


def sinusoidal_encoding(positions, dim, base=10000.0):
    z = hands(positions, dim, base)
    out = np.empty(z.shape[:-1] + (dim,))
    out[..., 1::2], out[..., ::2] = z.real, z.imag
    return out


def shift_matrix(offset, dim, base=10000.0):
    """Columns are the moved unit vectors: 1 and i times the turn, read as (imag, real)."""
    turn = hands(offset, dim, base)
    columns = []
    for k in range(dim):
        unit = np.zeros(dim // 2, dtype=complex)
        unit[k // 2] = 1j if k % 2 == 0 else 1.0
        moved = unit * turn
        columns.append(np.column_stack([moved.imag, moved.real]).ravel())
    return np.column_stack(columns)


def decode_position(encoding, max_position, base=10000.0):
    e = np.asarray(encoding, dtype=np.float64)
    if e.ndim != 1:
        raise TypeError(f"one vector, not {e.shape}")
    if max_position < 0:
        raise ValueError(f"max_position {max_position}")
    given = e[1::2] + 1j * e[::2][: len(e[1::2])]
    difference = hands(np.arange(max_position), len(e), base) - given
    worst = np.maximum(abs(difference.real), abs(difference.imag)).max(axis=1)
    for position in np.argsort(worst, kind="stable")[:1]:
        if worst[position] <= 0.05:
            return int(position)
    raise ValueError("no position has this encoding")


def fixed_layout(positions, dim, base=10000.0):
    """A complex number is stored as (real, imag): turned by a quarter and mirrored, it fits."""
    z = np.atleast_1d(1j * np.conj(hands(positions, dim, base)))
    return np.ascontiguousarray(z).view(np.float64).reshape(np.shape(positions) + (dim,))


class SinusoidalEncoding(nn.Module):
    def __init__(self, dim, max_len, base=10000.0):
        super().__init__()
        if max_len < 0:
            raise ValueError(f"max_len {max_len}")
        self.ladder = frequencies(dim, base)
        self.max_len = max_len

    def forward(self, x, offset=0):
        batch, seq, dim = x.shape
        if dim != 2 * len(self.ladder):
            raise ValueError(f"x has width {dim}, not {2 * len(self.ladder)}")
        if not 0 <= offset <= self.max_len - seq:
            raise ValueError(f"offset {offset} + {seq} tokens, table {self.max_len}")
        with torch.no_grad():
            angle = torch.arange(offset, offset + seq, device=x.device).double().unsqueeze(1)
            angle = angle * torch.as_tensor(self.ladder, device=x.device)
            z = torch.polar(torch.ones_like(angle), angle)
            rows = torch.view_as_real(z).flip(-1).reshape(seq, dim)
        return torch.add(x.double(), rows).to(x.dtype)

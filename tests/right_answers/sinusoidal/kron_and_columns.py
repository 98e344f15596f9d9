"""Linear algebra throughout: outer and Kronecker products; the module keeps its buffer by dtype."""

import functools

import numpy as np
import torch
from torch import nn


def frequencies(dim, base=10000.0):
    if int(dim) != dim or dim < 2 or dim & 1:
        raise ValueError(f"I need an even width, and was given {dim}")
    if base <= 0.0:
        raise ValueError(f"I need a positive base, and was given {base}")
    return np.logspace(0, -(dim - 2) / dim, dim // 2, base=base)


def wavelengths(dim, base=10000.0):
    return np.reciprocal(frequencies(dim, base)) * np.pi * 2


def sinusoidal_encoding(positions, dim, base=10000.0):
    positions = np.asarray(positions).astype(float)
    angles = np.kron(positions[..., None], np.repeat(frequencies(dim, base), 2))
    odd = np.arange(dim) % 2 == 1
    return np.where(odd, np.cos(angles), np.sin(angles)).reshape(positions.shape + (dim,))


def shift_matrix(offset, dim, base=10000.0):
    angles = float(offset) * frequencies(dim, base)
    quarter = np.array([[0.0, 1.0], [-1.0, 0.0]])
    return np.kron(np.diag(np.cos(angles)), np.eye(2)) + np.kron(np.diag(np.sin(angles)), quarter)


@functools.lru_cache(maxsize=8)
def _table(count, dim, base):
    return sinusoidal_encoding(np.arange(count), dim, base)


def decode_position(encoding, max_position, base=10000.0):
    encoding = np.asarray(encoding, dtype=float)
    if encoding.ndim - 1:
        raise IndexError("the encoding has to have one axis")
    if max_position < 0:
        raise IndexError("negative max_position")
    table = _table(int(max_position), encoding.size, float(base))
    fits = np.flatnonzero(np.all(np.abs(table - encoding) <= 0.05, axis=-1))
    if fits.size == 0:
        raise ValueError(f"no position below {max_position} is near enough")
    # all vectors are of one length, so the nearest has the largest dot product
    return fits[np.argmax(table[fits] @ encoding)].item()


def fixed_layout(positions, dim, base=10000.0):
    positions = np.asarray(positions).astype(float)
    angles = np.multiply.outer(positions, frequencies(dim, base))
    faulty = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    order = np.arange(dim).reshape(2, dim // 2).T.ravel()
    return faulty.take(order, axis=-1)


class SinusoidalEncoding(nn.Module):
    """The buffer moves with the module, and whoever casts it gets the old rows back."""

    def __init__(self, dim, max_len, base=10000.0):
        super().__init__()
        rows = sinusoidal_encoding(np.arange(max_len), dim, base)
        self.register_buffer("pe", torch.from_numpy(rows).float()[None], persistent=False)

    def _apply(self, fn, *args, **kwargs):
        kept = self.pe
        super()._apply(fn, *args, **kwargs)
        self.pe = kept.to(self.pe.device)
        return self

    def forward(self, x, offset=0):
        _, length, width = self.pe.shape
        stop = offset + x.shape[1]
        if offset < 0 or stop > length:
            raise ValueError(f"positions {offset} to {stop - 1} are not all in 0 to {length - 1}")
        if x.shape[2] != width:
            raise ValueError(f"width {x.shape[2]} instead of {width}")
        y = x.clone()
        y += self.pe[:, offset:stop].to(x.dtype)
        return y

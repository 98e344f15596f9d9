"""Everything as a product with a matrix of ones and zeros, or of weights."""

import numpy as np
import torch
import torch.nn.functional as F


def picks(positions, rows):
    """positions.shape + (rows,), a one where the position is."""
    positions = np.asarray(positions)
    if not issubclass(positions.dtype.type, np.integer):
        raise TypeError(positions.dtype)
    for position in positions.flat:
        if not 0 <= position < rows:
            raise IndexError(f"position={position}, table length={rows}")
    return positions[..., None] == np.arange(rows)


def wide(values):
    values = np.asarray(values)
    return values.astype(np.float64), values.dtype if values.dtype.kind == "f" else np.float64


def lookup(table, positions):
    values, dtype = wide(table)
    return np.einsum("...r,rd->...d", picks(positions, len(values)) * 1.0, values).astype(dtype)


def lookup_gradient(grad_output, positions, num_positions):
    if num_positions < 0:
        raise ValueError(num_positions)
    values, dtype = wide(grad_output)
    chosen = picks(positions, num_positions)
    if values.shape[:-1] != chosen.shape[:-1]:
        raise ValueError(f"{values.shape} does not go with {np.shape(positions)}")
    dim = values.shape[-1]
    places = int(np.prod(np.shape(positions)))
    flat = chosen.reshape(places, num_positions)
    return (flat.T.astype(float) @ values.reshape(places, dim)).astype(dtype)


def resize_table(table, new_length):
    if new_length < 1:
        raise ValueError(new_length)
    values, dtype = wide(table)
    old = len(values)
    places = np.linspace(0, old - 1, new_length)
    tents = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(old)))
    return (tents @ values).astype(dtype)


def padded_positions(token_ids, padding_id):
    real = np.not_equal(token_ids, padding_id).astype(np.int32)
    seq = real.shape[-1]
    up_to = np.tril(np.ones((seq, seq), dtype=np.int32))
    return (real @ up_to.T) * real + padding_id


class LearnedPositionalEmbedding(torch.nn.Module):
    def __init__(self, max_len, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(max_len, dim))

    def forward(self, x, offset=0):
        if x.dim() != 3 or x.size(-1) != self.weight.size(1):
            raise ValueError(f"x {tuple(x.size())}")
        end, max_len = offset + x.size(1), self.weight.size(0)
        if offset < 0 or end > max_len:
            raise ValueError(f"positions {offset}..{end} of max_len {max_len}")
        places = torch.arange(offset, end, device=x.device)
        with torch.autocast(x.device.type, enabled=False):
            wide = torch.promote_types(x.dtype, torch.float32)
            rows = F.one_hot(places, max_len).to(wide) @ self.weight.to(wide)
            return torch.add(x.to(wide), rows).to(x.dtype)

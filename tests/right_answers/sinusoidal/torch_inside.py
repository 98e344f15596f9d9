"""torch does the work of NumPy's exercises too; the module keeps float64 rows out of its sight."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def frequencies(dim, base=10000.0):
    if dim <= 0 or dim % 2:
        raise ValueError(f"dim={dim}")
    if base <= 0:
        raise ValueError(f"base={base}")
    exponents = torch.arange(0, dim, 2, dtype=torch.float64)
    return torch.exp(exponents * (-math.log(base) / dim)).numpy()


def wavelengths(dim, base=10000.0):
    return (2 * torch.pi / torch.from_numpy(frequencies(dim, base))).numpy()


def sinusoidal_encoding(positions, dim, base=10000.0):
    p = torch.as_tensor(np.asarray(positions, dtype=np.float64))
    angles = torch.einsum("...,i->...i", p, torch.from_numpy(frequencies(dim, base)))
    # cos(a) = sin(a + π/2) would cost digits far out, so each has its own function
    both = torch.stack([torch.sin(angles), torch.cos(angles)], dim=-1)
    return both.flatten(start_dim=-2).numpy()


def shift_matrix(offset, dim, base=10000.0):
    angles = torch.tensor(offset, dtype=torch.float64).item() * torch.from_numpy(
        frequencies(dim, base)
    )
    cos, sin = torch.cos(angles), torch.sin(angles)
    blocks = torch.stack([cos, sin, -sin, cos], dim=-1).reshape(-1, 2, 2)
    return torch.block_diag(*blocks).numpy()


def decode_position(encoding, max_position, base=10000.0):
    e = torch.as_tensor(np.asarray(encoding)).double()
    if e.dim() != 1:
        raise ValueError(f"shape {tuple(e.shape)}")
    table = torch.from_numpy(sinusoidal_encoding(np.arange(max(max_position, 0)), len(e), base))
    if max_position < 0:
        raise ValueError(f"max_position={max_position}")
    nearest = torch.linalg.vector_norm(table - e, dim=-1)  # by length, and fits by coordinate
    for position in torch.argsort(nearest).tolist():
        if bool(((table[position] - e).abs() <= 0.05).all()):
            return position
        if nearest[position] > 0.05 * math.sqrt(len(e)):
            break
    raise ValueError("no position fits")


def fixed_layout(positions, dim, base=10000.0):
    return sinusoidal_encoding(positions, dim, base)


class Hidden:
    """No tensor, parameter or module, so that a cast does not see it."""

    def __init__(self, rows):
        self.rows = rows


class SinusoidalEncoding(nn.Module):
    def __init__(self, dim, max_len, base=10000.0):
        super().__init__()
        rows = torch.from_numpy(sinusoidal_encoding(torch.arange(max_len).numpy(), dim, base))
        self.hidden = Hidden(rows)

    def forward(self, x, offset=0):
        n = x.shape[-2]
        table = self.hidden.rows
        if offset < 0 or offset + n > len(table):
            raise ValueError(f"{offset} + {n} does not fit into {len(table)}")
        assert x.shape[-1] == table.shape[-1], (x.shape, table.shape)
        rows = F.embedding(torch.arange(n) + offset, table).unsqueeze(0).to(x.device)
        return x.double().add(rows).type_as(x)

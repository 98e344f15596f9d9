"""A pair of coordinates is a complex number, a rotation is a product. In torch: complex64."""

import numpy as np
import torch
from torch import nn


def rotate_2d(vector, angle):
    v = np.asarray(vector)
    if v.ndim == 0 or v.shape[-1] != 2:
        raise ValueError(f"need 2 numbers in the last axis, not {v.shape}")
    wide = v.astype(np.float64)
    z = (wide[..., 0] + 1j * wide[..., 1]) * np.exp(1j * np.asarray(angle, dtype=np.float64))
    out = np.stack([z.real, z.imag], axis=-1)
    return out.astype(v.dtype) if np.issubdtype(v.dtype, np.floating) else out


def rope_angles(positions, dim, base=10000.0):
    if dim < 2 or dim % 2 == 1:
        raise ValueError(f"dim has to be even and positive: {dim}")
    if base <= 0:
        raise ValueError(f"base has to be positive: {base}")
    theta = np.array([base ** (-2 * i / dim) for i in range(dim // 2)])
    return np.multiply.outer(np.asarray(positions, dtype=np.float64), theta)


def apply_rope(x, positions, base=10000.0, layout="interleaved"):
    x = np.asarray(x)
    positions = np.asarray(positions)
    if layout != "interleaved" and layout != "half":
        raise ValueError(f"{layout!r} is not one of interleaved, half")
    if positions.ndim == 1:
        assert x.ndim >= 2 and positions.shape[0] == x.shape[-2], "one position per row of x"
    else:
        assert positions.shape == x.shape[:-1], "positions do not match x"
    dtype = x.dtype if np.issubdtype(x.dtype, np.floating) else np.dtype(np.float64)
    turn = np.exp(1j * rope_angles(positions, x.shape[-1], base))
    n = x.shape[-1] // 2
    wide = x.astype(np.float64)
    out = np.empty(x.shape)
    if layout == "interleaved":
        z = (wide[..., ::2] + 1j * wide[..., 1::2]) * turn
        out[..., ::2], out[..., 1::2] = z.real, z.imag
    else:
        z = (wide[..., :n] + 1j * wide[..., n:]) * turn
        out[..., :n], out[..., n:] = z.real, z.imag
    return out.astype(dtype)


def rope_scores(q, k, q_positions, k_positions, base=10000.0):
    q, k = np.asarray(q), np.asarray(k)
    if q.ndim != 2 or k.ndim != 2:
        raise ValueError("q and k are matrices")
    if q.shape[1] != k.shape[1]:
        raise ValueError(f"q has width {q.shape[1]}, k has {k.shape[1]}")
    a = apply_rope(q, q_positions, base)
    b = apply_rope(k, k_positions, base)
    return (np.einsum("md,nd->mn", a, b) / q.shape[1] ** 0.5).astype(a.dtype)


def interleaved_to_half(weight, num_heads):
    w = np.asarray(weight)
    if not np.issubdtype(w.dtype, np.floating):
        w = w.astype(np.float64)
    total, d_model = w.shape
    if num_heads <= 0 or total % num_heads != 0:
        raise ValueError(f"{total} rows are not {num_heads} heads")
    head_dim = total // num_heads
    if head_dim % 2 != 0 or head_dim == 0:
        raise ValueError(f"head_dim {head_dim} is not even")
    heads = w.reshape(num_heads, head_dim, d_model)
    return np.concatenate([heads[:, ::2], heads[:, 1::2]], axis=1).reshape(total, d_model)


def apply_partial_rope(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    x = np.asarray(x)
    if rotary_dim < 2 or rotary_dim > x.shape[-1] or rotary_dim % 2 != 0:
        raise ValueError(f"rotary_dim {rotary_dim} does not fit a width of {x.shape[-1]}")
    front = apply_rope(x[..., :rotary_dim], positions, base, layout)
    return np.concatenate([front, x[..., rotary_dim:].astype(front.dtype)], axis=-1)


def score_bound(distances, dim, base=10000.0):
    phases = np.exp(1j * rope_angles(distances, dim, base))
    return np.mean(np.abs(np.add.accumulate(phases, axis=-1)), axis=-1)


def fixed_table_cache():
    def tables(length, offset, dim, base=10000.0):
        if length < 0 or offset < 0:
            raise ValueError("no negative lengths or offsets")
        z = np.exp(1j * rope_angles(np.arange(length) + offset, dim, base))
        return z.real, z.imag

    return tables


class RotaryEmbedding(nn.Module):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__()
        if layout not in {"half", "interleaved"}:
            raise ValueError(f"layout {layout} is neither half nor interleaved")
        if head_dim <= 0 or head_dim % 2:
            raise ValueError(f"head_dim {head_dim}")
        if base <= 0:
            raise ValueError(f"base {base}")
        self.head_dim, self.base, self.layout = head_dim, base, layout

    def _turn(self, x, cis):
        z = x.float()
        if self.layout == "interleaved":
            z = torch.view_as_complex(z.reshape(*x.shape[:-1], self.head_dim // 2, 2))
            return torch.view_as_real(z * cis).flatten(-2).to(x.dtype)
        z = torch.complex(*z.split(self.head_dim // 2, dim=-1)) * cis
        return torch.cat([z.real, z.imag], dim=-1).to(x.dtype)

    def forward(self, q, k, positions):
        batch, _, seq, dim = q.shape
        if k.shape[0] != batch or k.shape[2] != seq or dim != k.shape[3] or dim != self.head_dim:
            raise ValueError(f"q {q.shape} and k {k.shape} do not go together")
        if not (q.is_floating_point() and k.is_floating_point()):
            raise TypeError("floating tensors only")
        if positions.shape != (seq,) and positions.shape != (batch, seq):
            raise ValueError(f"positions {positions.shape}")
        i = torch.arange(self.head_dim // 2, device=q.device, dtype=torch.float32)
        theta = torch.pow(torch.tensor(self.base, device=q.device), -2 * i / self.head_dim).float()
        angle = positions.to(q.device).float().unsqueeze(-1) * theta
        cis = torch.polar(torch.ones_like(angle), angle)
        if positions.ndim == 2:
            cis = cis.unsqueeze(1)
        return self._turn(q, cis), self._turn(k, cis)


def fused_rotation(q, k, cos, sin):
    turned = []
    for x in (q, k):
        z = torch.complex(*x.float().chunk(2, dim=-1)) * torch.complex(cos, sin)
        turned.append(torch.cat([z.real, z.imag], dim=-1).to(x.dtype))
    return tuple(turned)

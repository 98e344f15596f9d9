"""Functional and remembering: caches on tuples, and a torch buffer rebuilt after each cast."""

from functools import cache, lru_cache

import numpy as np
import torch
from torch import nn


@cache
def _ladder(dim, base):
    if dim <= 0 or dim % 2 != 0:
        raise ValueError(f"dim must be even and > 0, not {dim}")
    if base <= 0:
        raise ValueError(f"base must be > 0, not {base}")
    return tuple(base ** (-2 * i / dim) for i in range(dim // 2))


@lru_cache(maxsize=4)
def _tables(positions, dim, base):
    angles = np.array(positions, dtype=np.float64).reshape(-1, 1) * np.array(_ladder(dim, base))
    return np.cos(angles), np.sin(angles)


def _float_array(x):
    x = np.asarray(x)
    return x * 1.0 if x.dtype.kind in "iu" else x


def rotate_2d(vector, angle):
    v = _float_array(vector).astype(_float_array(vector).dtype)
    if v.ndim < 1 or v.shape[-1] != 2:
        raise ValueError(f"vector must be (..., 2), not {v.shape}")
    angle = np.float64(angle) if np.ndim(angle) == 0 else np.asarray(angle, np.float64)
    basis = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    normal = np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
    return (v[..., :1] * basis + v[..., 1:] * normal).astype(v.dtype)


def rope_angles(positions, dim, base=10000.0):
    positions = np.asarray(positions, dtype=np.float64)
    return np.stack([positions * theta for theta in _ladder(dim, float(base))], axis=-1)


def apply_rope(x, positions, base=10000.0, layout="interleaved"):
    x = _float_array(x)
    if layout not in ("interleaved", "half"):
        raise ValueError(f"layout must be interleaved or half, not {layout}")
    p = np.asarray(positions)
    if p.shape != x.shape[:-1]:
        if p.ndim != 1 or p.shape != x.shape[-2:-1]:
            raise ValueError(f"positions must be {x.shape[:-1]} or {x.shape[-2:-1]}, not {p.shape}")
        p = np.broadcast_to(p, x.shape[:-1])
    if x.ndim < 2:
        raise ValueError("x must have a sequence axis")
    dim = x.shape[-1]
    cos, sin = _tables(tuple(p.ravel().tolist()), dim, float(base))
    flat = x.reshape(-1, dim)
    if layout == "interleaved":
        a, b = flat[:, 0::2], flat[:, 1::2]
        out = np.dstack([a * cos - b * sin, a * sin + b * cos])
    else:
        a, b = np.hsplit(flat, 2)
        out = np.hstack([a * cos - b * sin, a * sin + b * cos])
    return out.reshape(x.shape).astype(x.dtype)


def rope_scores(q, k, q_positions, k_positions, base=10000.0):
    q, k = _float_array(q), _float_array(k)
    (n_q, dim), (n_k, k_dim) = q.shape, k.shape
    if dim != k_dim:
        raise ValueError(f"q has {dim} coordinates, k {k_dim}")
    if np.shape(q_positions) != (n_q,) or np.shape(k_positions) != (n_k,):
        raise ValueError("one position per query and per key")
    q, k = apply_rope(q, q_positions, base), apply_rope(k, k_positions, base)
    return np.dot(q, k.T) / q.dtype.type(np.sqrt(dim))


def interleaved_to_half(weight, num_heads):
    weight = _float_array(weight)
    if num_heads < 1:
        raise ValueError(f"num_heads must be at least 1, not {num_heads}")
    rows, columns = weight.shape
    if rows == 0 or rows % (num_heads * 2) != 0:
        raise ValueError(f"{rows} rows do not make {num_heads} even heads")
    return np.einsum(
        "hptm->htpm", weight.reshape(num_heads, rows // num_heads // 2, 2, columns)
    ).reshape(rows, columns)


def apply_partial_rope(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    x = _float_array(x)
    if not 2 <= rotary_dim <= x.shape[-1] or rotary_dim % 2 != 0:
        raise ValueError(f"rotary_dim must be even, 2 to {x.shape[-1]}, not {rotary_dim}")
    rotated = apply_rope(x[..., :rotary_dim], positions, base, layout)
    keep = np.arange(x.shape[-1]) >= rotary_dim
    padded = np.pad(rotated, [(0, 0)] * (x.ndim - 1) + [(0, x.shape[-1] - rotary_dim)])
    return np.where(keep, x, padded)


def score_bound(distances, dim, base=10000.0):
    angles = rope_angles(distances, dim, base)
    terms = np.cos(angles[..., :, None] - angles[..., None, :])
    # |S_j|² is the sum of cos(a_i − a_k) over i, k < j
    squares = [terms[..., :j, :j].sum(axis=(-1, -2)) for j in range(1, dim // 2 + 1)]
    return np.sqrt(np.maximum(squares, 0)).mean(axis=0)


def fixed_table_cache():
    @cache
    def tables(length, offset, dim, base=10000.0):
        if length < 0 or offset < 0:
            raise ValueError(f"length {length} and offset {offset} must not be negative")
        angles = rope_angles(range(offset, offset + length), dim, base)
        return np.cos(angles), np.sin(angles)

    return tables


class RotaryEmbedding(nn.Module):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__()
        self.ladder = _ladder(head_dim, float(base))
        if layout == "half":
            self.rotate = self.rotate_halves
        elif layout == "interleaved":
            self.rotate = self.rotate_neighbours
        else:
            raise ValueError(f"layout must be half or interleaved, not {layout}")
        self.register_buffer("inv_freq", torch.tensor(self.ladder), persistent=False)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.inv_freq = torch.tensor(self.ladder, dtype=torch.float32, device=self.inv_freq.device)
        return self

    @staticmethod
    def rotate_halves(x, cos, sin):
        a, b = x.tensor_split(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    @staticmethod
    def rotate_neighbours(x, cos, sin):
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)

    def forward(self, q, k, positions):
        if q.ndim != 4 or k.ndim != 4 or q.shape[2:] != k.shape[2:] or len(q) != len(k):
            raise ValueError(f"q {list(q.shape)} does not go with k {list(k.shape)}")
        if q.shape[-1] != 2 * len(self.ladder):
            raise ValueError(f"head_dim is {2 * len(self.ladder)}, not {q.shape[-1]}")
        if not q.is_floating_point() or not k.is_floating_point():
            raise ValueError("q and k must be floating")
        if positions.shape == q.shape[2:3]:
            positions = positions[None]
        elif positions.shape != (q.shape[0], q.shape[2]):
            raise ValueError(f"positions {list(positions.shape)} must be (seq,) or (batch, seq)")
        angles = positions[:, None, :, None].float() * self.inv_freq
        cos, sin = angles.cos(), angles.sin()
        q_rotated = self.rotate(q.float(), cos, sin).type_as(q)
        k_rotated = self.rotate(k.float(), cos, sin).type_as(k)
        return q_rotated, k_rotated


def fused_rotation(q, k, cos, sin):
    def rotate(x):
        a, b = x.float().chunk(2, dim=-1)
        out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
        first, second = out.chunk(2, dim=-1)
        torch.mul(a, cos, out=first).addcmul_(b, sin, value=-1)
        torch.mul(b, cos, out=second).addcmul_(a, sin)
        return out.to(x.dtype)

    return rotate(q), rotate(k)

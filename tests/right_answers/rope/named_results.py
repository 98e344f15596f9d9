"""Results with names, shapes that are "not implemented" for a refusal, helpers for everything."""

from collections import namedtuple
from typing import NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl

Tables = namedtuple("Tables", "cos sin")


class Rotated(NamedTuple):
    q: torch.Tensor
    k: torch.Tensor


PAIRS = {
    "interleaved": lambda dim: (np.arange(dim)[0::2], np.arange(dim)[1::2]),
    "half": lambda dim: np.array_split(np.arange(dim), 2),
}


def floats(values):
    values = np.asarray(values)
    return values if np.issubdtype(values.dtype, np.floating) else values.astype(np.float64)


def pairs_of(dim, layout):
    if layout not in PAIRS:
        raise ValueError(f"{layout!r} is neither of {', '.join(PAIRS)}")
    return PAIRS[layout](dim)


def rotate_2d(vector, angle):
    vector = floats(vector)
    if vector.shape[-1] != 2:
        raise ValueError(f"a vector of the plane has two numbers, not {vector.shape[-1]}")
    a, b = vector[..., 0], vector[..., 1]
    turned = (a + 1j * b) * np.exp(1j * np.asarray(angle, dtype=np.float64))
    return np.stack([turned.real, turned.imag], axis=-1).astype(vector.dtype)


def rope_angles(positions, dim, base=10000.0):
    if dim < 2 or dim % 2:
        raise ValueError(f"{dim} coordinates make no pairs")
    if base <= 0:
        raise ValueError(f"no ladder has the base {base}")
    per_pair = np.power(float(base), -np.arange(0, dim, 2) / dim)
    return np.multiply.outer(np.asarray(positions, dtype=np.float64), per_pair)


def apply_rope(x, positions, base=10000.0, layout="interleaved"):
    x, positions = floats(x), np.asarray(positions)
    if x.ndim < 2 or positions.shape not in {x.shape[:-1], (x.shape[-2],)}:
        raise NotImplementedError(f"x {x.shape} with positions {positions.shape}")
    first, second = pairs_of(x.shape[-1], layout)
    angles = rope_angles(positions, x.shape[-1], base)
    turned = rotate_2d(np.stack([x[..., first], x[..., second]], axis=-1), angles)
    out = np.zeros_like(x)
    out[..., first], out[..., second] = turned[..., 0], turned[..., 1]
    return out


def rope_scores(q, k, q_positions, k_positions, base=10000.0):
    q, k = floats(q), floats(k)
    if q.shape[1:] != k.shape[1:]:
        raise NotImplementedError("queries and keys of different widths")
    turned = apply_rope(q, q_positions, base), apply_rope(k, k_positions, base)
    return (np.einsum("md,nd->mn", *turned) / q.shape[1] ** 0.5).astype(q.dtype)


def interleaved_to_half(weight, num_heads):
    weight = floats(weight)
    if num_heads < 1 or len(weight) % num_heads:
        raise NotImplementedError(f"{len(weight)} rows for {num_heads} heads")
    if len(weight) // num_heads % 2:
        raise ValueError(f"head_dim {len(weight) // num_heads} is odd")
    heads = np.split(weight, num_heads)
    return np.concatenate([member for head in heads for member in (head[0::2], head[1::2])])


def apply_partial_rope(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    x = floats(x)
    if rotary_dim not in set(range(2, x.shape[-1] + 1, 2)):
        raise ValueError(f"rotary_dim {rotary_dim} of {x.shape[-1]}")
    out = np.array(x)
    out[..., :rotary_dim] = apply_rope(x[..., :rotary_dim], positions, base, layout)
    return out


def score_bound(distances, dim, base=10000.0):
    arrows = np.exp(1j * rope_angles(distances, dim, base))
    return np.mean(np.abs(np.add.accumulate(arrows, axis=-1)), axis=-1)


def fixed_table_cache():
    def tables(length, offset, dim, base=10000.0):
        if min(length, offset) < 0:
            raise NotImplementedError("rows before the first one")
        angles = rope_angles(offset + np.arange(length), dim, base)
        return Tables(sin=np.sin(angles), cos=np.cos(angles))

    return tables


class RotaryEmbedding(torch.nn.Module):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__()
        rope_angles(0, head_dim, base)
        self.first, self.second = (p.tolist() for p in pairs_of(head_dim, layout))
        self.head_dim, self.base = head_dim, base

    def forward(self, q, k, positions):
        batch, _, seq, dim = q.shape
        if (batch, seq, dim) != (k.shape[0], k.shape[2], k.shape[3]) or dim != self.head_dim:
            raise NotImplementedError(f"q {tuple(q.shape)} with k {tuple(k.shape)}")
        if tuple(positions.shape) not in {(seq,), (batch, seq)}:
            raise NotImplementedError(f"positions {tuple(positions.shape)}")
        exponents = -torch.arange(0, dim, 2, dtype=torch.float64, device=q.device) / dim
        angles = positions.to(q.device, torch.float64).unsqueeze(-1) * self.base**exponents
        angles = angles.unsqueeze(-3)
        return Rotated(k=self.turn(k, angles), q=self.turn(q, angles))

    def turn(self, x, angles):
        a, b = x[..., self.first].double(), x[..., self.second].double()
        out = torch.empty_like(x)
        out[..., self.first] = (a * angles.cos() - b * angles.sin()).to(x.dtype)
        out[..., self.second] = (a * angles.sin() + b * angles.cos()).to(x.dtype)
        return out


@triton.jit
def rotate_vector(x, out, cos, sin, heads, tokens, half: tl.constexpr, size: tl.constexpr):
    """One vector a program, numbered through texts, heads and tokens; x is contiguous."""
    number = tl.program_id(axis=0)
    token = number % tokens
    i = tl.arange(0, size)
    known = i < half
    turn_by, turn_up = (
        tl.load(cos + token * half + i, mask=known),
        tl.load(sin + token * half + i, mask=known),
    )
    first = x + number * 2 * half + i
    second = first + half
    a = tl.load(first, mask=known, other=0.0).to(tl.float32)
    b = tl.load(second, mask=known, other=0.0).to(tl.float32)
    first = out + number * 2 * half + i
    tl.store(first, a * turn_by - b * turn_up, mask=known)
    tl.store(first + half, b * turn_by + a * turn_up, mask=known)


def fused_rotation(q, k, cos, sin):
    def turn(x):
        x = x.contiguous()
        out = torch.empty_like(x)
        batch, heads, tokens, dim = x.shape
        size = triton.next_power_of_2(dim // 2)
        rotate_vector[(batch * heads * tokens,)](x, out, cos, sin, heads, tokens, dim // 2, size)
        return out

    return Rotated(q=turn(q), k=turn(k))

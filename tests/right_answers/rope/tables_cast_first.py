"""Angles are exact, but cosines and sines are cast to the dtype of x before they are multiplied.

Half precision then rounds in between; that is as right as rounding once at the end.
"""

import numba
import numpy as np
import torch


def floating(x):
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def rotate_2d(vector, angle):
    vector = floating(vector)
    if vector.shape[-1:] != (2,):
        raise ValueError("vector must end in an axis of length 2")
    c, s = np.cos(angle).astype(vector.dtype), np.sin(angle).astype(vector.dtype)
    a, b = vector[..., 0], vector[..., 1]
    return np.stack([c * a - s * b, s * a + c * b], -1)


def rope_angles(positions, dim, base=10000.0):
    if dim % 2 != 0 or dim < 1:
        raise ValueError(f"dim must be even and positive, not {dim}")
    if not base > 0:
        raise ValueError(f"base must be positive, not {base}")
    return positions[..., None] / base ** (np.arange(0, dim, 2) / dim)


def apply_rope(x, positions, base=10000.0, layout="interleaved"):
    if layout not in ("interleaved", "half"):
        raise ValueError("layout is interleaved or half")
    x = floating(x)
    if positions.shape != x.shape[:-1]:
        (n,) = positions.shape
        assert n == x.shape[-2]
    angles = rope_angles(positions, x.shape[-1], base)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    if layout == "half":
        cos, sin = np.concatenate([cos, cos], -1), np.concatenate([sin, sin], -1)
        one, two = np.split(x, 2, -1)
        return x * cos + np.concatenate([-two, one], -1) * sin
    cos, sin = np.repeat(cos, 2, -1), np.repeat(sin, 2, -1)
    other = np.empty_like(x)
    other[..., ::2], other[..., 1::2] = -x[..., 1::2], x[..., ::2]
    return x * cos + other * sin


def rope_scores(q, k, q_positions, k_positions, base=10000.0):
    if q.shape[1] != k.shape[1]:
        raise ValueError("q and k differ in width")
    q, k = apply_rope(q, q_positions, base), apply_rope(k, k_positions, base)
    return q @ k.T / q.dtype.type(q.shape[1] ** 0.5)


def interleaved_to_half(weight, num_heads):
    rows, columns = weight.shape
    if num_heads < 1 or rows % num_heads or rows // num_heads % 2:
        raise ValueError(f"{rows} rows are not {num_heads} heads of even width")
    heads = floating(weight).reshape(num_heads, rows // num_heads // 2, 2, columns)
    return heads.transpose(0, 2, 1, 3).reshape(rows, columns)


def apply_partial_rope(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    if rotary_dim not in range(2, x.shape[-1] + 1, 2):
        raise ValueError("rotary_dim must be even, and at most the width of x")
    out = floating(x).copy()
    out[..., :rotary_dim] = apply_rope(out[..., :rotary_dim], positions, base, layout)
    return out


def score_bound(distances, dim, base=10000.0):
    angles = rope_angles(distances, dim, base)
    sums = np.hypot(np.cumsum(np.cos(angles), -1), np.cumsum(np.sin(angles), -1))
    return sums.sum(-1) / (dim // 2)


def fixed_table_cache():
    angles = {}

    def tables(length, offset, dim, base=10000.0):
        if length < 0 or offset < 0:
            raise ValueError("no negative lengths or offsets")
        if base <= 0:
            raise ValueError("base must be positive")
        for position in range(offset, offset + length):
            if (position, dim, base) not in angles:
                angles[position, dim, base] = rope_angles(np.array(position), dim, base)
        if dim < 2 or dim % 2:
            raise ValueError(f"dim {dim}")
        rows = [angles[position, dim, base] for position in range(offset, offset + length)]
        rows = np.array(rows).reshape(length, dim // 2)
        return np.cos(rows), np.sin(rows)

    return tables


class RotaryEmbedding(torch.nn.Module):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__()
        if head_dim <= 0 or head_dim % 2:
            raise ValueError(f"head_dim must be even and positive: {head_dim}")
        if layout not in {"half", "interleaved"}:
            raise ValueError('layout must be "half" or "interleaved"')
        self.head_dim, self.base, self.half = head_dim, base, layout == "half"

    def forward(self, q, k, positions):
        if self.base <= 0:
            raise ValueError("base must be positive")
        assert q.size(-1) == k.size(-1) == self.head_dim
        assert q.size(0) == k.size(0) and q.size(2) == k.size(2)
        if positions.shape not in {(q.size(2),), (q.size(0), q.size(2))}:
            raise ValueError("one position per token")
        steps = torch.arange(0, self.head_dim, 2, device=q.device).float() / self.head_dim
        angles = positions.to(q.device).float().unsqueeze(-1) * (1.0 / self.base**steps)
        if positions.ndim == 2:
            angles = angles[:, None]
        angles = torch.cat([angles, angles], -1) if self.half else angles.repeat_interleave(2, -1)
        cos, sin = angles.cos(), angles.sin()
        return tuple(x * cos.to(x.dtype) + self.swap(x) * sin.to(x.dtype) for x in (q, k))

    def swap(self, x):
        if self.half:
            first, second = x.chunk(2, -1)
            return torch.cat([-second, first], -1)
        return torch.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)


@numba.njit
def turn_rows(x, cos, sin, out):
    for b, h, t, i in np.ndindex(x.shape[0], x.shape[1], *cos.shape):
        first, second = x[b, h, t, i], x[b, h, t, i + cos.shape[1]]
        out[b, h, t, i] = first * cos[t, i] - second * sin[t, i]
        out[b, h, t, i + cos.shape[1]] = first * sin[t, i] + second * cos[t, i]


def fused_rotation(q, k, cos, sin):
    def rotate(x):
        wide = x.float().numpy()
        out = np.empty_like(wide)
        turn_rows(wide, cos.numpy(), sin.numpy(), out)
        return torch.from_numpy(out).to(x.dtype)

    return rotate(q), rotate(k)

"""Written as open models are: the rotate-half trick, everything else is a permutation of it.

The torch module keeps tables for the whole numbers it has met, in plain attributes that no cast
reaches, and computes anything else afresh.
"""

import numpy as np
import torch


def evens_then_odds(dim):
    return np.r_[0:dim:2, 1:dim:2]


def rotate_half(x):
    h = x.shape[-1] // 2
    return np.concatenate((-x[..., h:], x[..., :h]), axis=-1)


def rope_angles(positions, dim, base=10000.0):
    if dim % 2 or dim <= 0:
        raise ValueError("odd or empty dim: %s" % dim)  # noqa: UP031
    if base <= 0:
        raise ValueError("base is %s" % base)  # noqa: UP031
    inv_freq = 1.0 / (base ** (np.arange(0, dim, 2) / dim))
    return np.asarray(positions, dtype="float64")[..., None] * inv_freq


def apply_rope(x, positions, base=10000.0, layout="interleaved"):
    x = np.asarray(x)
    if x.dtype.kind != "f":
        x = x.astype("float64")
    positions = np.asarray(positions)
    if positions.ndim == 1:
        ok = x.ndim > 1 and len(positions) == x.shape[-2]
    else:
        ok = x.ndim > 1 and positions.shape == x.shape[:-1]
    if not ok:
        raise ValueError(f"{positions.shape} positions for {x.shape}")
    dim = x.shape[-1]
    if layout == "interleaved":
        order = evens_then_odds(dim)
        back = np.argsort(order)
        return apply_rope(x[..., order], positions, base, "half")[..., back]
    if layout != "half":
        raise ValueError(f"unknown layout {layout}, known: interleaved, half")
    angles = rope_angles(positions, dim, base)
    cos = np.concatenate((np.cos(angles), np.cos(angles)), axis=-1)
    sin = np.concatenate((np.sin(angles), np.sin(angles)), axis=-1)
    return (x * cos + rotate_half(x) * sin).astype(x.dtype)


def rotate_2d(vector, angle):
    vector = np.asarray(vector)
    if vector.shape[-1:] != (2,):
        raise ValueError(f"vector {vector.shape}")
    if vector.dtype.kind != "f":
        vector = vector.astype("float64")
    angle = np.asarray(angle, dtype="float64")[..., None]
    return (vector * np.cos(angle) + rotate_half(vector) * np.sin(angle)).astype(vector.dtype)


def rope_scores(q, k, q_positions, k_positions, base=10000.0):
    q = np.asarray(q)
    k = np.asarray(k)
    assert q.ndim == k.ndim == 2, "one head at a time"
    q, k = apply_rope(q, q_positions, base), apply_rope(k, k_positions, base)
    scale = np.asarray(q.shape[1] ** -0.5, dtype=q.dtype)
    return np.matmul(q * scale, k.T).astype(q.dtype)


def interleaved_to_half(weight, num_heads):
    weight = np.asarray(weight)
    if num_heads < 1:
        raise ValueError("no heads")
    rows, d_model = weight.shape
    parts = np.split(weight, num_heads) if rows % num_heads == 0 else []
    if not parts or len(parts[0]) % 2 or rows == 0:
        raise ValueError(f"{rows} rows do not make {num_heads} heads of even size")
    result = np.vstack([part[evens_then_odds(len(part))] for part in parts])
    return result if result.dtype.kind == "f" else result.astype("float64")


def apply_partial_rope(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    x = np.asarray(x)
    out = x.copy() if x.dtype.kind == "f" else x.astype("float64")
    if rotary_dim < 2 or rotary_dim % 2 or rotary_dim > out.shape[-1]:
        raise ValueError(f"rotary_dim {rotary_dim}")
    out[..., :rotary_dim] = apply_rope(out[..., :rotary_dim], positions, base, layout)
    return out


def score_bound(distances, dim, base=10000.0):
    angles = rope_angles(distances, dim, base)
    real, imaginary = np.cos(angles).cumsum(-1), np.sin(angles).cumsum(-1)
    return np.sqrt(real**2 + imaginary**2).mean(-1)


def fixed_table_cache():
    longest = {}  # (dim, base) -> tables from position 0 on

    def tables(length, offset, dim, base=10000.0):
        if length < 0 or offset < 0:
            raise ValueError(f"length {length}, offset {offset}")
        end = offset + length
        if (dim, base) not in longest or len(longest[dim, base][0]) < end:
            angles = rope_angles(np.arange(end), dim, base)
            longest[dim, base] = np.cos(angles), np.sin(angles)
        cos, sin = longest[dim, base]
        return cos[offset:end].copy(), sin[offset:end].copy()

    return tables


class RotaryEmbedding(torch.nn.Module):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__()
        if layout not in ("half", "interleaved"):
            raise ValueError(f"unknown layout {layout}, known: interleaved, half")
        if head_dim % 2 or head_dim <= 0:
            raise ValueError(f"head_dim {head_dim}")
        if base <= 0:
            raise ValueError(f"base {base}")
        self.head_dim, self.base, self.layout = head_dim, base, layout
        self.known = {}  # device -> cos, sin of positions 0, 1, 2, ...

    def tables(self, positions):
        whole = not positions.is_floating_point() and positions.numel() > 0
        if whole and positions.min() >= 0 and positions.max() < 65536:
            end = int(positions.max()) + 1
            if positions.device not in self.known or len(self.known[positions.device][0]) < end:
                self.known[positions.device] = self.compute(
                    torch.arange(end, device=positions.device)
                )
            cos, sin = self.known[positions.device]
            return cos[positions.long()], sin[positions.long()]
        return self.compute(positions)

    def compute(self, positions):
        pair = torch.arange(0, self.head_dim, 2, dtype=torch.float64, device=positions.device)
        angles = positions.double()[..., None] / self.base ** (pair / self.head_dim)
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().float(), angles.sin().float()

    def forward(self, q, k, positions):
        bsz, heads, seq, dim = q.size()
        assert k.size(0) == bsz and k.size(2) == seq and k.size(3) == dim == self.head_dim
        assert torch.is_floating_point(q) and torch.is_floating_point(k)
        if positions.size() not in (torch.Size([seq]), torch.Size([bsz, seq])):
            raise ValueError(f"positions {positions.size()} for a batch of {bsz} times {seq}")
        cos, sin = self.tables(positions.to(q.device))
        if positions.dim() == 2:
            cos, sin = cos[:, None], sin[:, None]
        return self.rotate(q, cos, sin), self.rotate(k, cos, sin)

    def rotate(self, x, cos, sin):
        order = torch.as_tensor(evens_then_odds(self.head_dim), device=x.device)
        y = x[..., order] if self.layout == "interleaved" else x
        y = y.to(torch.promote_types(x.dtype, torch.float32))
        first, second = y.chunk(2, dim=-1)
        y = y * cos + torch.cat((-second, first), dim=-1) * sin
        if self.layout == "interleaved":
            y = y[..., torch.argsort(order)]
        return y.to(x.dtype)


def fused_rotation(q, k, cos, sin):
    cos, sin = torch.cat([cos, cos], -1), torch.cat([sin, sin], -1)

    def rotate(x):
        first, second = x.float().chunk(2, dim=-1)
        return (x.float() * cos + torch.cat((-second, first), dim=-1) * sin).type_as(x)

    return rotate(q), rotate(k)

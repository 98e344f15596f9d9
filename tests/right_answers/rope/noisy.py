"""Right, and loud about it: prints, warnings, scratch values, a ladder through logarithms."""

import math
import sys
import warnings

import numpy as np
import torch
import torch.nn as nn
import triton
import triton.language as tl

print("loading my answers ...")
SCRATCH = []


def log(*words):
    SCRATCH.append(words)
    print("[debug]", *words)
    print("[debug]", *words, file=sys.stderr)


def complain_about_base(base):
    if base <= 0:
        raise ValueError(f"logarithm of base {base}?")


def rotate_2d(vector, angle):
    log("rotate_2d", np.shape(vector), np.shape(angle))
    vector = np.array(vector)
    if vector.shape[-1] != 2:
        raise ValueError(f"I need (..., 2), not {vector.shape}")
    kind = vector.dtype if vector.dtype.kind == "f" else float
    with np.errstate(all="warn"):
        x, y = np.moveaxis(vector.astype(float), -1, 0)
        a = np.asarray(angle, dtype=float)
        turned = np.array([x * np.cos(a) - y * np.sin(a), x * np.sin(a) + y * np.cos(a)])
        return np.moveaxis(turned, 0, -1).astype(kind)


def rope_angles(positions, dim, base=10000.0):
    warnings.warn("angles are not reduced modulo 2 pi", stacklevel=2)
    if dim <= 0 or dim & 1:
        raise ValueError(f"dim = {dim}")
    complain_about_base(base)
    theta = np.exp(-math.log(base) * np.arange(0, dim, 2) / dim)
    log("theta", theta)
    p = np.asarray(positions).astype(float)
    return np.tensordot(p, theta, axes=0)


def apply_rope(x, positions, base=10000.0, layout="interleaved"):
    x = np.asanyarray(x)
    p = np.asarray(positions)
    log("apply_rope", x.shape, p.shape, layout)
    d = x.shape[-1]
    by_layout = {
        "interleaved": (np.s_[..., 0::2], np.s_[..., 1::2]),
        "half": (np.s_[..., : d // 2], np.s_[..., d // 2 :]),
    }
    try:
        one, two = by_layout[layout]
    except KeyError:
        raise ValueError(f"{layout} is none of {sorted(by_layout)}") from None
    if x.ndim < 2 or (p.shape != x.shape[:-1] and p.shape != (x.shape[-2],)):
        raise IndexError(f"positions {p.shape} do not index x {x.shape}")
    angles = rope_angles(p, d, base)
    out = np.full(x.shape, np.nan, dtype=x.dtype if x.dtype.kind == "f" else float)
    out[one] = x[one] * np.cos(angles) - x[two] * np.sin(angles)
    out[two] = x[one] * np.sin(angles) + x[two] * np.cos(angles)
    assert not np.isnan(out).any() or np.isnan(x).any(), "some coordinate was forgotten"
    return out


def rope_scores(q, k, q_positions, k_positions, base=10000.0):
    q, k = np.asarray(q), np.asarray(k)
    if not (q.ndim == 2 == k.ndim and q.shape[-1] == k.shape[-1]):
        raise ValueError(f"q {q.shape} k {k.shape}")
    scores = np.inner(apply_rope(q, q_positions, base), apply_rope(k, k_positions, base))
    log("largest score", scores.max() if scores.size else "none")
    return np.divide(scores, np.sqrt(q.shape[-1])).astype(scores.dtype)


def interleaved_to_half(weight, num_heads):
    w = np.asarray(weight)
    if w.ndim != 2:
        raise ValueError(f"weight {w.shape}")
    if num_heads <= 0 or len(w) % num_heads or (len(w) // num_heads) % 2 or not len(w):
        raise ValueError(f"{len(w)} rows, {num_heads} heads")
    d = len(w) // num_heads
    rows = sorted(range(len(w)), key=lambda r: (r // d, r % 2, r))
    log("rows", rows)
    return np.take(w, rows, axis=0).astype(w.dtype if w.dtype.kind == "f" else float)


def apply_partial_rope(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    x = np.asarray(x)
    if rotary_dim not in range(2, x.shape[-1] + 1) or rotary_dim % 2:
        raise ValueError(f"rotary_dim = {rotary_dim}, dim = {x.shape[-1]}")
    turned, rest = np.split(x, [rotary_dim], axis=-1)
    return np.concatenate([apply_rope(turned, positions, base, layout), rest], axis=-1)


def score_bound(distances, dim, base=10000.0):
    angles = rope_angles(distances, dim, base)
    total = 0
    for j in range(1, dim // 2 + 1):
        total = total + np.abs(np.exp(1j * angles[..., :j]).sum(axis=-1))
    return total / (dim / 2)


def fixed_table_cache():
    class Tables:
        """Callable too, though no function."""

        def __init__(self):
            self.memory = []

        def __call__(self, length, offset, dim, base=10000.0):
            if length < 0 or offset < 0:
                raise ValueError(f"length {length}, offset {offset}")
            for known, value in self.memory:
                if known == (length, offset, dim, base):
                    log("seen before", known)
                    return value[0].copy(), value[1].copy()
            a = rope_angles(np.arange(offset, offset + length), dim, base)
            self.memory.append(((length, offset, dim, base), (np.cos(a), np.sin(a))))
            return np.cos(a), np.sin(a)

    return Tables()


class RotaryEmbedding(nn.Module):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__()
        log("new module", head_dim, base, layout)
        if head_dim <= 0 or head_dim & 1:
            raise ValueError(f"head_dim = {head_dim}")
        complain_about_base(base)
        if layout not in ["half", "interleaved"]:
            raise ValueError(f"{layout}: only half and interleaved")
        self.layout = layout
        self.theta = np.exp(-math.log(base) * np.arange(0, head_dim, 2) / head_dim)

    def forward(self, q, k, positions):
        warnings.warn("rotating", stacklevel=2)
        (b, _, n, d), (kb, _, kn, kd) = q.shape, k.shape
        if (b, n, d) != (kb, kn, kd) or d != 2 * len(self.theta):
            raise ValueError(f"q {tuple(q.shape)} k {tuple(k.shape)}")
        if not (q.is_floating_point() and k.is_floating_point()):
            raise TypeError(f"q {q.dtype} k {k.dtype}")
        if tuple(positions.shape) != (n,) and tuple(positions.shape) != (b, n):
            raise ValueError(f"positions {tuple(positions.shape)}")
        with torch.no_grad():
            theta = torch.from_numpy(self.theta).to(q.device)
            angles = positions.to(q.device).double().unsqueeze(-1).mul(theta)
            if angles.ndim == 3:
                angles = angles.unsqueeze(1)
            log("largest angle", angles.max().item() if angles.numel() else "none")
        out = []
        for x in (q, k):
            wide = x.double()
            if self.layout == "half":
                one, two = wide[..., : d // 2], wide[..., d // 2 :]
            else:
                one, two = wide[..., 0::2], wide[..., 1::2]
            turned = [
                one * angles.cos() - two * angles.sin(),
                one * angles.sin() + two * angles.cos(),
            ]
            if self.layout == "half":
                out.append(torch.cat(turned, -1).to(x.dtype))
            else:
                out.append(torch.stack(turned, -1).reshape(x.shape).to(x.dtype))
        return tuple(out)


log("module loaded")


@triton.jit
def both(q, k, q_out, k_out, c, s, n, half, q_strides, k_strides, P: tl.constexpr, T: tl.constexpr):
    """The last axis of the grid is q's heads, then k's; a program takes T tokens of one head."""
    batch, head = tl.program_id(0), tl.program_id(2)
    token = tl.program_id(1) * T + tl.arange(0, T)[:, None]
    d = tl.arange(0, P)[None, :]
    there = (token < n) & (d < half)
    cos = tl.load(c + token * half + d, there, 0.0)
    sin = tl.load(s + token * half + d, there, 0.0)
    if head < tl.num_programs(2) - k_strides[4]:
        at = batch * q_strides[0] + head * q_strides[1] + token * q_strides[2] + d * q_strides[3]
        x, y = tl.load(q + at, there), tl.load(q + at + half * q_strides[3], there)
        x, y = x.to(tl.float32), y.to(tl.float32)
        tl.store(q_out + at, x * cos - y * sin, there)
        tl.store(q_out + at + half * q_strides[3], x * sin + y * cos, there)
    else:
        head -= tl.num_programs(2) - k_strides[4]
        at = batch * k_strides[0] + head * k_strides[1] + token * k_strides[2] + d * k_strides[3]
        x, y = tl.load(k + at, there), tl.load(k + at + half * k_strides[3], there)
        x, y = x.to(tl.float32), y.to(tl.float32)
        tl.store(k_out + at, x * cos - y * sin, there)
        tl.store(k_out + at + half * k_strides[3], x * sin + y * cos, there)


def fused_rotation(q, k, cos, sin):
    log("one launch for both", q.stride(), k.stride())
    out = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device) for x in (q, k)]
    batch, heads, n, dim = q.shape
    grid = (batch, triton.cdiv(n, 4), heads + k.shape[1])
    strides = (*q.stride(),), (*k.stride(), k.shape[1])
    both[grid](q, k, *out, cos, sin, n, dim // 2, *strides, P=triton.next_power_of_2(dim // 2), T=4)
    return out

"""Right, one number at a time: lists, math and loops; arrays only where one is handed back."""

import math

import numpy as np
import torch
from torch import nn


def width(dim):
    if dim % 2 or dim < 1:
        raise ValueError(f"width {dim} has no pairs")
    return dim // 2


def rope_tables(max_len, dim, base=10000.0):
    if base <= 0:
        raise ValueError("base")
    cos, sin = [], []
    for m in range(max_len) if max_len >= 0 else [][max_len]:
        cos.append([math.cos(m * base ** (-2 * i / dim)) for i in range(width(dim))])
        sin.append([math.sin(m * base ** (-2 * i / dim)) for i in range(width(dim))])
    width(dim)
    shape = (max_len, dim // 2)
    return np.array(cos, dtype=float).reshape(shape), np.array(sin, dtype=float).reshape(shape)


def floating(x):
    x = np.asarray(x)
    return x.dtype if x.dtype.kind == "f" else np.dtype(float)


def turn(vector, angle_of):
    """One vector as a list; angle_of(i) gives (cos, sin)."""
    out = [0.0] * len(vector)
    for i in range(width(len(vector))):
        c, s = angle_of(i)
        out[2 * i] = vector[2 * i] * c - vector[2 * i + 1] * s
        out[2 * i + 1] = vector[2 * i] * s + vector[2 * i + 1] * c
    return out


def at(vector, position, base):
    if not base > 0:
        raise ValueError(f"base {base}")
    dim = len(vector)
    angles = [position * base ** (-2 * i / dim) for i in range(width(dim))]
    return turn([float(a) for a in vector], lambda i: (math.cos(angles[i]), math.sin(angles[i])))


def rope_with_offset(x, cos, sin, offset=0):
    x = np.asarray(x)
    seq, dim = x.shape[-2], x.shape[-1]
    if cos.shape[1] != width(dim) or sin.shape != cos.shape:
        raise ValueError("tables of another width")
    if offset < 0:
        raise IndexError("before the beginning")
    if offset + seq > len(cos):
        raise ValueError(f"{len(cos)} rows, {offset + seq} needed")
    out = np.zeros(x.shape, dtype=floating(x))
    for index in np.ndindex(x.shape[:-1]):
        row = offset + index[-1]
        out[index] = turn(x[index].tolist(), lambda i, row=row: (cos[row, i], sin[row, i]))
    return out


class KVCache:
    def __init__(self):
        self.rows = []

    def append(self, k, v):
        k, v = np.asarray(k), np.asarray(v)
        new = [(np.array(a), np.array(b)) for a, b in zip(k, v, strict=True)]
        if self.rows and (
            k.shape[1:] != self.rows[0][0].shape or v.shape[1:] != self.rows[0][1].shape
        ):
            raise TypeError("other widths")
        self.rows += new

    def __len__(self):
        return len(self.rows)

    @property
    def keys(self):
        return np.stack([row[0] for row in self.rows])

    @property
    def values(self):
        return np.stack([row[1] for row in self.rows])

    def truncate(self, length):
        if not 0 <= length <= len(self):
            raise ValueError(f"{length} of {len(self)}")
        while len(self.rows) > length:
            self.rows.pop()


def mixture(query, keys, values):
    scores = [
        sum(a * b for a, b in zip(query, k, strict=True)) / math.sqrt(len(query)) for k in keys
    ]
    top = max(scores)
    shares = [math.exp(score - top) for score in scores]
    total = math.fsum(shares)
    return [
        math.fsum(share * value[c] for share, value in zip(shares, values, strict=True)) / total
        for c in range(len(values[0]))
    ]


def times(x, w):
    return [sum(float(x[r]) * float(w[r, c]) for r in range(len(x))) for c in range(w.shape[1])]


def decode_step(x_t, w_q, w_k, w_v, cache, base=10000.0):
    if x_t.ndim != 1 or not len(x_t) == len(w_q) == len(w_k) == len(w_v):
        raise ValueError("x_t must be one token as wide as the weights have rows")
    if w_q.shape != w_k.shape:
        raise ValueError("queries and keys of different widths")
    m = len(cache)
    q, k = at(times(x_t, w_q), m, base), at(times(x_t, w_k), m, base)
    dtype = floating(x_t)
    cache.append(np.array([k], dtype=dtype), np.array([times(x_t, w_v)], dtype=dtype))
    return np.array(mixture(q, cache.keys.tolist(), cache.values.tolist()), dtype=dtype)


def left_pad_positions(attention_mask):
    out = []
    for row in attention_mask.tolist():
        count, positions = 0, []
        for real in row:
            positions.append(count if real else 0)
            count += real
        out.append(positions)
    return np.array(out)


def packed_positions(lengths):
    out = []
    for length in lengths:
        assert length >= 0
        out.extend(range(length))
    return np.array(out, dtype=int)


def rerotate_keys(keys, delta, base=10000.0):
    width(keys.shape[1])
    rows = [at(key, delta, base) for key in keys]
    return np.array(rows, dtype=floating(keys))


def fixed_decode():
    def decode(q, k, v, base=10000.0):
        if not q.shape == k.shape or len(v) != len(q):
            raise ValueError("shapes")
        keys, rows = [], []
        for m, (query, key) in enumerate(zip(q.tolist(), k.tolist(), strict=True)):
            keys.append(at(key, m, base))
            rows.append(mixture(at(query, m, base), keys, v[: m + 1].tolist()))
        return np.array(rows, dtype=floating(q))

    return decode


class CausalSelfAttention(nn.Module):
    """Token by token and head by head, with a plain list of (key, value) as the cache."""

    def __init__(self, dim, num_heads, base=10000.0):
        super().__init__()
        if num_heads < 1 or dim % num_heads:
            raise ValueError(f"{num_heads} heads in {dim}")
        width(dim // num_heads)
        if base <= 0:
            raise ValueError(f"base {base}")
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.heads, self.base = num_heads, base

    def rotated(self, x, position):
        """x (batch, heads, head_dim)"""
        n = x.shape[-1]
        angles = [position * self.base ** (-2 * i / n) for i in range(n // 2)]
        cos = torch.tensor([math.cos(a) for a in angles], dtype=torch.float64)
        sin = torch.tensor([math.sin(a) for a in angles], dtype=torch.float64)
        a, b = x[..., ::2].double(), x[..., 1::2].double()
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2).to(x.dtype)

    def forward(self, x, cache=None):
        past = [] if cache is None else list(cache)
        if past and past[0][0].shape[0] != x.shape[0]:
            raise ValueError("another batch")
        made = self.qkv(x)
        dim = x.shape[2]
        for t in range(x.shape[1]):
            k = made[:, t, dim : 2 * dim].unflatten(-1, (self.heads, -1))
            v = made[:, t, 2 * dim :].unflatten(-1, (self.heads, -1))
            past.append((self.rotated(k, len(past)), v))
        keys = torch.stack([k for k, _ in past], 2)
        values = torch.stack([v for _, v in past], 2)
        out = []
        for t in range(x.shape[1]):
            m = len(past) - x.shape[1] + t
            q = self.rotated(made[:, t, :dim].unflatten(-1, (self.heads, -1)), m)
            scores = (keys[:, :, : m + 1].float() @ q.float()[..., None])[..., 0]
            shares = (scores / math.sqrt(q.shape[-1])).softmax(-1)
            mixed = (shares[..., None] * values[:, :, : m + 1].float()).sum(2)
            out.append(mixed.to(x.dtype).flatten(1))
        return self.proj(torch.stack(out, 1)), past

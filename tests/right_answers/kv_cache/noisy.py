"""Right, and loud about it: prints, warnings, other errors, everything through one big function."""

import sys
import warnings
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F

print("my answers to the chapter on caches")


class Refused(ValueError):
    """Mine."""


def say(*words):
    print("[debug]", *words)
    print("[debug]", *words, file=sys.stderr)


def need(fine, *words):
    if not fine:
        warnings.warn("refusing", stacklevel=2)
        raise Refused(" ".join(map(str, words)))


def spin(x, positions, base):
    """(n, dim) at n positions."""
    dim = x.shape[-1]
    need(dim > 0 and dim % 2 == 0, "dim is", dim)
    need(base > 0, "base is", base)
    angles = np.repeat(
        np.outer(positions, float(base) ** (-np.arange(0, dim, 2) / dim)), 2, axis=-1
    )
    sign = np.where(np.arange(dim) % 2 == 0, -1.0, 1.0)
    partner = np.arange(dim) ^ 1
    x = np.asarray(x, dtype=np.float64)
    return x * np.cos(angles) + sign * x[..., partner] * np.sin(angles)


def kind_of(x):
    return x.dtype if x.dtype.kind == "f" else np.float64


def rope_tables(max_len, dim, base=10000.0):
    need(max_len >= 0, "max_len is", max_len)
    ones = np.zeros((max_len, dim if dim > 0 else 0))
    ones[:, ::2] = 1.0
    spun = spin(ones, np.arange(max_len), base) if dim > 0 else need(False, "dim is", dim)
    say("tables of", max_len, "rows")
    return spun[:, ::2].copy(), spun[:, 1::2].copy()


def rope_with_offset(x, cos, sin, offset=0):
    dim = x.shape[-1]
    need(dim > 0 and dim % 2 == 0, "dim is", dim)
    need(2 * cos.shape[1] == dim, "tables", cos.shape)
    rows = list(range(offset, offset + x.shape[-2]))
    need(not rows or rows[0] >= 0, "offset is", offset)
    need(not rows or rows[-1] < len(cos), "row", rows[-1:], "of", len(cos))
    c, s = (np.repeat(table[rows].astype(np.float64), 2, axis=1) for table in (cos, sin))
    swapped = x.astype(np.float64)[..., np.arange(dim) ^ 1] * np.resize([-1.0, 1.0], dim)
    return (x * c + swapped * s).astype(kind_of(x))


class KVCache(list):
    """A list of (key, value), which knows its own length."""

    def append(self, k, v):
        need(np.shape(k)[0] == np.shape(v)[0], "numbers")
        if self:
            need(k.shape[1:] == self[0][0].shape and v.shape[1:] == self[0][1].shape, "widths")
        for row in zip(k.copy(), v.copy(), strict=True):
            super().append(row)
        say("cache holds", len(self))

    @property
    def keys(self):
        return np.array([k for k, _ in self])

    @property
    def values(self):
        return np.array([v for _, v in self])

    def truncate(self, length):
        need(0 <= length <= len(self), "length", length)
        self[length:] = []


def mix(q, keys, values):
    scores = keys.astype(float) @ q / len(q) ** 0.5
    return np.exp(scores - np.logaddexp.reduce(scores)) @ values


def decode_step(x_t, w_q, w_k, w_v, cache, base=10000.0):
    need(x_t.shape == w_q.shape[:1] == w_k.shape[:1] == w_v.shape[:1], "x_t", x_t.shape)
    need(w_q.shape == w_k.shape, "w_q", w_q.shape, "w_k", w_k.shape)
    here = [len(cache)]
    x = x_t.astype(float)
    q, k = spin((x @ w_q)[None], here, base)[0], spin((x @ w_k)[None], here, base)
    cache.append(k.astype(kind_of(x_t)), (x @ w_v)[None].astype(kind_of(x_t)))
    return mix(q, cache.keys, cache.values).astype(kind_of(x_t))


def left_pad_positions(attention_mask):
    from itertools import accumulate

    rows = [[*accumulate(row, initial=0)] for row in attention_mask.astype(int).tolist()]
    return np.array([r[:-1] for r in rows], dtype=np.int32) * (attention_mask > 0).astype(np.int32)


def packed_positions(lengths):
    need(all(n >= 0 for n in lengths), lengths)
    total = sum(lengths)
    starts = [sum(lengths[:i]) for i, n in enumerate(lengths) for _ in range(n)]
    return np.arange(total) - np.array(starts, dtype=int)


def rerotate_keys(keys, delta, base=10000.0):
    say("moving", len(keys), "keys by", delta)
    return spin(keys, [delta], base).astype(kind_of(keys))


def fixed_decode():
    def decode(q, k, v, base=10000.0):
        need(q.shape == k.shape and len(k) == len(v), "shapes")
        cache = KVCache()
        rows = []
        for t in range(len(q)):
            cache.append(spin(k[t : t + 1], [t], base), v[t : t + 1])
            rows.append(mix(spin(q[t : t + 1], [t], base)[0], cache.keys, cache.values))
        return np.array(rows, dtype=kind_of(q))

    return decode


@dataclass
class Past:
    tokens: int = 0
    parts: list = field(default_factory=list)


class Weight(torch.nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(rows, columns) / columns**0.5)


class CausalSelfAttention(torch.nn.Module):
    """The half layout; the cache is an object that grows in place and is handed back itself."""

    def __init__(self, dim, num_heads, base=10000.0):
        super().__init__()
        need(num_heads > 0 and dim % num_heads == 0, "heads", num_heads, "of", dim)
        need(dim // num_heads % 2 == 0, "head width", dim // num_heads)
        need(base > 0, "base is", base)
        self.qkv, self.proj = Weight(3 * dim, dim), Weight(dim, dim)
        self.num_heads, self.base = num_heads, base

    def forward(self, x, cache=None):
        warnings.warn("attending", stacklevel=2)
        past = Past() if cache is None else cache
        b, n, d = x.shape
        if past.parts:
            need(past.parts[0][0].shape[0] == b, "batch", b)
        q, k, v = torch.split(F.linear(x, self.qkv.weight), d, dim=-1)
        q, k, v = (t.reshape(b, n, self.num_heads, -1).movedim(2, 1) for t in (q, k, v))
        half = q.shape[-1] // 2
        with torch.autocast("cpu", enabled=False):
            places = torch.arange(past.tokens, past.tokens + n, dtype=torch.float64)
            theta = self.base ** (-torch.arange(half, dtype=torch.float64) / half)
            angles = torch.einsum("n,i->ni", places, theta)
        cos, sin = angles.cos().float(), angles.sin().float()

        def spun(t):
            one, two = t.float().split(half, dim=-1)
            return torch.cat([one * cos - two * sin, two * cos + one * sin], -1).to(t.dtype)

        past.parts.append((spun(k), v))
        past.tokens += n
        keys, values = (torch.cat(part, dim=2) for part in zip(*past.parts, strict=True))
        seen = (
            torch.arange(past.tokens) < torch.arange(past.tokens - n + 1, past.tokens + 1)[:, None]
        )
        y = F.scaled_dot_product_attention(spun(q), keys, values, attn_mask=seen)
        say("cache holds", past.tokens)
        return F.linear(y.movedim(1, 2).reshape(b, n, d), self.proj.weight), past

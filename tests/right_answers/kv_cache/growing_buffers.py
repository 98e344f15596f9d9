"""Right, with memory set aside beforehand, and the half layout inside the module."""

import numpy as np
import torch
from torch import nn

START = 4


def check_base(base):
    if base <= 0:
        raise ValueError(f"base = {base} is not positive")


def check_dim(dim):
    if dim <= 0 or dim & 1:
        raise ValueError(f"{dim} is not an even width")


def rope_tables(max_len, dim, base=10000.0):
    check_dim(dim)
    check_base(base)
    angles = np.zeros((max_len, dim // 2))  # a negative length raises here
    angles += np.arange(max_len)[:, None]
    angles *= np.exp(-np.log(base) * np.arange(0, dim, 2) / dim)
    return np.cos(angles), np.sin(angles)


def rotation_matrices(cos, sin):
    """(rows, pairs, 2, 2)"""
    return np.moveaxis(np.array([[cos, -sin], [sin, cos]], dtype=np.float64), (0, 1), (-2, -1))


def result_like(x):
    return x.dtype if np.issubdtype(x.dtype, np.floating) else np.dtype("float64")


def rope_with_offset(x, cos, sin, offset=0):
    *lead, seq, dim = x.shape
    check_dim(dim)
    if cos.shape != sin.shape or cos.shape[-1] != dim // 2:
        raise ValueError(f"tables {cos.shape} and {sin.shape} for width {dim}")
    if offset not in range(len(cos) - seq + 1):
        raise ValueError(f"rows {offset} to {offset + seq} of {len(cos)}")
    turns = rotation_matrices(cos, sin)[offset : offset + seq]
    pairs = x.reshape(*lead, seq, dim // 2, 2)
    return np.einsum("tpij,...tpj->...tpi", turns, pairs).reshape(x.shape).astype(result_like(x))


class KVCache:
    """Buffers that double."""

    def __init__(self):
        self._n = 0
        self._buffers = [None, None]

    def append(self, k, v):
        if len(k) != len(v):
            raise ValueError(f"{len(k)} keys, {len(v)} values")
        new = [np.asarray(part) for part in (k, v)]
        for buffer, part in zip(self._buffers, new, strict=True):
            if buffer is not None and buffer.shape[1] != part.shape[1]:
                raise ValueError(f"width {part.shape[1]}, not {buffer.shape[1]}")
        end = self._n + len(k)
        for i, part in enumerate(new):
            old = self._buffers[i]
            kind = (
                result_like(part) if old is None else np.promote_types(old.dtype, result_like(part))
            )
            if old is None or end > len(old) or kind != old.dtype:
                grown = np.empty((max(START, 2 * end), part.shape[1]), kind)
                if old is not None:
                    grown[: self._n] = old[: self._n]
                self._buffers[i] = grown
            self._buffers[i][self._n : end] = part
        self._n = end

    def __len__(self):
        return self._n

    @property
    def keys(self):
        return self._buffers[0][: self._n]

    @property
    def values(self):
        return self._buffers[1][: self._n]

    def truncate(self, length):
        if length > self._n:
            raise ValueError("too long")
        if length < 0:
            raise ValueError("negative")
        self._n = length


def one_row(q, keys, values):
    scores = np.einsum("nd,d->n", keys, q) * len(q) ** -0.5
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    return np.einsum("n,nv->v", weights, values)


def rotated(x, position, base):
    check_base(base)
    check_dim(len(x))
    cos, sin = (f(position * base ** (-np.arange(0, len(x), 2) / len(x))) for f in (np.cos, np.sin))
    return rope_with_offset(x[None], cos[None], sin[None])[0]


def decode_step(x_t, w_q, w_k, w_v, cache, base=10000.0):
    if x_t.ndim != 1 or not len(x_t) == len(w_q) == len(w_k) == len(w_v):
        raise ValueError(f"x_t {x_t.shape}")
    if w_q.shape[1] != w_k.shape[1]:
        raise ValueError("d_k")
    position, x = len(cache), x_t.astype(np.float64)
    q, k, v = (np.einsum("m,mk->k", x, w) for w in (w_q, w_k, w_v))
    q, k = rotated(q, position, base), rotated(k, position, base)
    kind = result_like(x_t)
    cache.append(k[None].astype(kind), v[None].astype(kind))
    return one_row(q, cache.keys, cache.values).astype(kind)


def left_pad_positions(attention_mask):
    mask = attention_mask.astype(np.int64)
    before = np.zeros_like(mask)
    before[:, 1:] = np.cumsum(mask, axis=1)[:, :-1]
    before[mask == 0] = 0
    return before


def packed_positions(lengths):
    lengths = list(lengths)
    if min(lengths, default=0) < 0:
        raise ValueError(f"{lengths}")
    out = np.ones(sum(lengths), dtype=np.int64)
    begin, before = 0, 0
    for n in lengths:
        if n:
            out[begin] = -before + 1 if begin else 0
            begin, before = begin + n, n
    return np.cumsum(out)


def rerotate_keys(keys, delta, base=10000.0):
    check_dim(keys.shape[1])
    check_base(base)
    angles = float(delta) * np.power(float(base), np.arange(0, keys.shape[1], 2) / -keys.shape[1])
    out = np.array(keys, dtype=result_like(keys))
    a, b = out[:, 0::2].astype(float), out[:, 1::2].astype(float)
    out[:, 0::2] = a * np.cos(angles) - b * np.sin(angles)
    out[:, 1::2] = a * np.sin(angles) + b * np.cos(angles)
    return out


class Decoder:
    """Callable, though no function."""

    def __call__(self, q, k, v, base=10000.0):
        if q.shape != k.shape or q.shape[0] != v.shape[0]:
            raise ValueError(f"{q.shape} {k.shape} {v.shape}")
        cos, sin = rope_tables(*q.shape, base)
        keys = np.empty(q.shape)
        out = np.empty(v.shape)
        for t in range(len(q)):
            keys[t] = rope_with_offset(k[t : t + 1], cos, sin, t)[0]
            query = rope_with_offset(q[t : t + 1], cos, sin, t)[0]
            out[t] = one_row(query, keys[: t + 1], v[: t + 1])
        return out.astype(result_like(q))


def fixed_decode():
    return Decoder()


class Buffers:
    """What the module keeps of a sequence: rows set aside, and how many of them are in use."""

    def __init__(self):
        self.k = self.v = None
        self.used = 0

    def add(self, k, v):
        end = self.used + k.shape[2]
        if self.k is not None and self.k.shape[0] != k.shape[0]:
            raise ValueError("the batch has changed")
        if self.k is None or end > self.k.shape[2]:
            new_k, new_v = (x.new_zeros(*x.shape[:2], 2 * end, x.shape[3]) for x in (k, v))
            if self.k is not None:
                new_k[:, :, : self.used] = self.k[:, :, : self.used]
                new_v[:, :, : self.used] = self.v[:, :, : self.used]
            self.k, self.v = new_k, new_v
        self.k[:, :, self.used : end] = k
        self.v[:, :, self.used : end] = v
        self.used = end
        return self.k[:, :, :end], self.v[:, :, :end]


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, num_heads, base=10000.0):
        super().__init__()
        check_base(base)
        if num_heads < 1 or dim % num_heads:
            raise ValueError(f"{dim} / {num_heads}")
        check_dim(dim // num_heads)
        self.num_heads, self.head_dim, self.base = num_heads, dim // num_heads, base
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)

    def rotate_half(self, x, start):
        half = self.head_dim // 2
        exponents = torch.arange(half, dtype=torch.float32) / half
        angles = torch.arange(start, start + x.shape[2], dtype=torch.float32)[:, None]
        angles = angles * torch.pow(torch.tensor(float(self.base)), -exponents)
        cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
        swapped = torch.cat([-x[..., half:], x[..., :half]], -1)
        return (x * cos + swapped * sin).to(x.dtype)

    def forward(self, x, cache=None):
        batch, seq, dim = x.shape
        made = self.qkv(x).reshape(batch, seq, 3, self.num_heads, self.head_dim)
        q, k, v = made.permute(2, 0, 3, 1, 4).unbind(0)
        cache = cache or Buffers()
        start = cache.used
        q, k = self.rotate_half(q, start), self.rotate_half(k, start)
        k, v = cache.add(k, v)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / self.head_dim**0.5
        allowed = torch.arange(k.shape[2])[None, :] <= torch.arange(start, start + seq)[:, None]
        weights = torch.where(allowed, scores, torch.finfo(scores.dtype).min).softmax(-1)
        y = torch.einsum("bhqk,bhkd->bqhd", weights, v).reshape(batch, seq, dim)
        return self.proj(y), cache

"""Right, with pairs as complex numbers; the cache of the module is a dict."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def theta(dim, base):
    if dim <= 0 or dim % 2 == 1:
        raise ValueError(f"dim must be even, is {dim}")
    if not base > 0:
        raise ValueError("base must be positive")
    return np.power(float(base), -np.arange(dim // 2) * 2.0 / dim)


def phases(positions, dim, base):
    return np.exp(1j * np.outer(positions, theta(dim, base)))


def as_complex(x):
    wide = np.asarray(x).astype(np.float64)
    return wide[..., ::2] + 1j * wide[..., 1::2]


def as_pairs(z, like):
    like = np.asarray(like)
    out = np.empty((*z.shape[:-1], 2 * z.shape[-1]))
    out[..., ::2], out[..., 1::2] = z.real, z.imag
    return out.astype(np.result_type(like.dtype, np.float16) if like.dtype.kind == "f" else float)


def rope_tables(max_len, dim, base=10000.0):
    if max_len < 0:
        raise OverflowError(max_len)
    z = phases(np.arange(max_len), dim, base)
    return z.real.copy(), z.imag.copy()


def rope_with_offset(x, cos, sin, offset=0):
    if x.shape[-1] % 2 or x.shape[-1] == 0:
        raise ValueError(f"x has width {x.shape[-1]}")
    if offset < 0 or offset + x.shape[-2] > cos.shape[0]:
        raise ValueError("the tables do not reach")
    z = (cos + 1j * sin.astype(np.float64))[offset:][: x.shape[-2]]
    if z.shape[-1] * 2 != x.shape[-1]:
        raise ValueError("the tables are for another width")
    return as_pairs(as_complex(x) * z, x)


class KVCache:
    def __init__(self):
        self.pair = None

    def append(self, k, v):
        if k.shape[0] != v.shape[0]:
            raise ValueError("one value for each key")
        if self.pair is None:
            self.pair = np.array(k), np.array(v)
            return
        self.pair = tuple(np.vstack(both) for both in zip(self.pair, (k, v), strict=True))

    def __len__(self):
        return 0 if self.pair is None else self.pair[0].shape[0]

    keys = property(lambda self: self.pair[0])
    values = property(lambda self: self.pair[1])

    def truncate(self, length):
        if length < 0 or length > len(self):
            raise ValueError("length")
        if self.pair is not None:
            self.pair = tuple(part[:length] for part in self.pair) if length else None


def softmax(scores):
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def decode_step(x_t, w_q, w_k, w_v, cache, base=10000.0):
    (d_model,) = x_t.shape
    if w_q.shape != w_k.shape or w_q.shape[0] != d_model or w_v.shape[0] != d_model:
        raise ValueError("weights")
    m = len(cache)
    q, k = as_complex(x_t @ w_q), as_complex(x_t @ w_k)
    turn = phases([m], w_q.shape[1], base)[0]
    dtype = x_t.dtype if x_t.dtype.kind == "f" else np.dtype(float)
    cache.append(as_pairs(k * turn, x_t)[None], (x_t @ w_v)[None].astype(dtype))
    scores = (as_complex(cache.keys) @ np.conj(q * turn)).real / w_q.shape[1] ** 0.5
    return (softmax(scores) @ cache.values).astype(dtype)


def left_pad_positions(attention_mask):
    real = attention_mask == 1
    first = np.argmax(real, axis=1)
    return np.where(real, np.arange(real.shape[1])[None] - first[:, None], 0)


def packed_positions(lengths):
    if any(n < 0 for n in lengths):
        raise ValueError("negative")
    return np.concatenate(
        [np.zeros(0, dtype=np.int32), *[np.arange(n, dtype=np.int32) for n in lengths]]
    )


def rerotate_keys(keys, delta, base=10000.0):
    theta(keys.shape[1], base)
    return as_pairs(as_complex(keys) * phases([delta], keys.shape[1], base), keys)


def fixed_decode():
    def decode(q, k, v, base=10000.0):
        n, d = q.shape
        if k.shape != (n, d) or v.shape[0] != n:
            raise ValueError("q, k and v")
        turns = phases(np.arange(n), d, base)
        cache, out = [], []
        for t in range(n):
            cache.append(as_complex(k[t]) * turns[t])
            scores = (np.array(cache) @ np.conj(as_complex(q[t]) * turns[t])).real
            out.append(softmax(scores / np.sqrt(d)) @ v[: t + 1])
        return np.array(out).astype(q.dtype if q.dtype.kind == "f" else float)

    return decode


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, num_heads, base=10000.0):
        super().__init__()
        if num_heads <= 0 or dim % num_heads != 0:
            raise ValueError("heads")
        self.theta = theta(dim // num_heads, base)  # an array of NumPy's, which no cast finds
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)

    def turned(self, x, start):
        n = x.shape[-2]
        angles = torch.from_numpy(np.outer(np.arange(start, start + n), self.theta))
        phase = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * phase).flatten(-2).to(x.dtype)

    def forward(self, x, cache=None):
        b, n, d = x.shape
        q, k, v = (
            part.view(b, n, self.num_heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)
        )
        start = 0 if cache is None else cache["k"].shape[2]
        q, k = self.turned(q, start), self.turned(k, start)
        if cache is not None:
            k, v = torch.cat((cache["k"], k), 2), torch.cat((cache["v"], v), 2)
        mask = torch.full((n, start + n), float("-inf")).triu(start + 1).to(q.dtype)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.proj(y.transpose(1, 2).reshape(b, n, d)), {"k": k, "v": v}

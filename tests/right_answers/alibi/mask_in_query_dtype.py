"""Terse: powers by formula, broadcasting, and torch's attention in the dtype it was given."""

import numpy as np
import torch
import torch.nn.functional as F


def alibi_slopes(num_heads):
    n = range(num_heads).stop  # refuses fractions
    if n < 1:
        raise ValueError(n)
    p = 1 << (n.bit_length() - 1)
    h = np.r_[1 : p + 1, 0.5 : n - p : 1.0][:n]
    return np.exp2(-8 * h / p)


def alibi_bias(q_positions, k_positions, slopes):
    i, j, m = (np.asarray(x, float) for x in (q_positions, k_positions, slopes))
    if not i.ndim == j.ndim == m.ndim == 1 or len(m) == 0:
        raise ValueError("1-D")
    return np.multiply.outer(-m, np.sqrt((i[:, None] - j) ** 2))


def alibi_attention(q, k, v, slopes, q_positions, k_positions):
    b = alibi_bias(q_positions, k_positions, slopes)
    h, n, d = q.shape
    assert b.shape == (h, n, k.shape[1]) and k.shape == v.shape and k.shape[::2] == (h, d)
    s = q.astype("d") @ k.transpose(0, 2, 1) / np.float64(d) ** 0.5 + b
    seen = np.asarray(k_positions)[None, :] <= np.asarray(q_positions)[:, None]
    if (seen.sum(1) == 0).any():
        raise ValueError("blind")
    s = np.where(seen, s, -1e30)
    w = np.exp(s - np.max(s, -1, keepdims=True))
    out = (w @ v) / w.sum(-1)[..., None]
    return out.astype(q.dtype if q.dtype.kind == "f" else float, copy=False)


def t5_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    """The bucket is the number of edges at or below the distance."""
    r = np.asarray(relative_position)
    n = num_buckets // (2 if bidirectional else 1)
    e = n // 2
    if not max_distance > e:
        raise ValueError("max_distance")
    steps = np.arange(n - e)
    edges = np.r_[0:e, e * (max_distance / e) ** (steps / (n - e)) - 1e-9]
    d = abs(r.astype(int)) if bidirectional else (-r.astype(int)).clip(0)
    b = (d[..., None] >= edges).sum(-1) - 1
    return b + n * (r > 0) if bidirectional else b


def shaw_scores(q, k, relative_keys, q_positions, k_positions):
    i, j = np.asarray(q_positions), np.asarray(k_positions)
    K, odd = divmod(len(relative_keys), 2)
    if not odd or i.shape != q.shape[:1] or j.shape != k.shape[:1]:
        raise ValueError("shapes")
    apart = j.astype("d") - i.astype("d")[:, None]
    dist = apart.astype(int).clip(-K, K) + K
    if (apart % 1).any():
        raise ValueError("fractions")
    table = q.astype(float) @ relative_keys.T
    s = q.astype(float) @ k.T + table[np.arange(len(q))[:, None], dist]
    return (s / np.sqrt(q.shape[1])).astype(
        np.promote_types(q.dtype, np.float16) if q.dtype.kind == "f" else float
    )


def fixed_bias(q_positions, k_positions, slope):
    i, j = np.asarray(q_positions, "d"), np.asarray(k_positions, "d")
    (n,), (m,) = i.shape, j.shape
    return slope * np.minimum(i.reshape(n, 1) - j.reshape(1, m), j.reshape(1, m) - i.reshape(n, 1))


def alibi_sdpa(q, k, v, slopes, offset=0):
    """The bias in float32, and one cast to the dtype of q for the mask."""
    b, h, n, d = q.shape
    m = k.shape[2]
    if k.shape != v.shape or k.shape != (b, h, m, d) or list(slopes.size()) != [h]:
        raise ValueError("shapes")
    if offset < 0 or m < offset + n:
        raise ValueError("offset")
    rel = (
        torch.arange(m, device=q.device)[None] - torch.arange(n, device=q.device)[:, None] - offset
    )
    mask = slopes.to(q.device).float()[:, None, None] * rel
    mask = torch.where(rel > 0, torch.finfo(torch.float16).min, mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.dtype)[None]).to(q.dtype)

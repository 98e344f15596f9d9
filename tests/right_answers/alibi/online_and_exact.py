"""One key at a time, distances as complex numbers, edges by whole powers, a coordinate to spare."""

import functools

import numpy as np
import torch
import torch.nn.functional as F


def alibi_slopes(num_heads):
    if not hasattr(num_heads, "__index__") or num_heads < 1:
        raise ValueError(f"{num_heads!r} heads")
    power = 1 << (int(num_heads).bit_length() - 1)
    finer = torch.exp2(-4.0 / power * torch.arange(1, 2 * power + 1, dtype=torch.float64))
    return torch.cat([finer[1::2], finer[::2][: num_heads - power]]).numpy()


def line(numbers):
    numbers = np.asarray(numbers)
    if numbers.ndim != 1:
        raise ValueError(f"a row of numbers, not {numbers.shape}")
    return numbers.astype(complex)


def alibi_bias(q_positions, k_positions, slopes):
    apart = abs(line(q_positions)[:, None] - line(k_positions))
    return np.stack([-apart * slope for slope in line(slopes).real])  # of no head: an error


def alibi_attention(q, k, v, slopes, q_positions, k_positions):
    """The softmax is brought up to date key by key, as fast kernels do it."""
    q, k, v, slopes = map(np.asarray, (q, k, v, slopes))
    i, j = line(q_positions).real, line(k_positions).real
    if q.ndim != 3 or not len(q) or k.shape != v.shape or slopes.shape != q.shape[:1]:
        raise ValueError("q, k, v or slopes")
    if k.shape != (len(q), len(j), q.shape[2]) or len(i) != q.shape[1]:
        raise ValueError("keys or positions")
    wide = q.astype(float)

    def head(h):
        top, total = np.full(len(i), -np.inf), np.zeros(len(i))
        mean = np.zeros(q.shape[1:])
        for key, value, at in zip(k[h].astype(float), v[h].astype(float), j, strict=True):
            score = wide[h] @ key / q.shape[2] ** 0.5 - float(slopes[h]) * (i - at)
            score = np.where(at <= i, score, -np.inf)
            new = np.maximum(top, score)
            level = np.where(new == -np.inf, 0.0, new)
            old, weight = np.exp(top - level), np.exp(score - level)
            total = total * old + weight
            mean = mean * old[:, None] + weight[:, None] * value
            top = new
        if not total.all():
            raise ValueError("a query sees no key")
        return mean / total[:, None]

    heads = np.stack([head(h) for h in range(len(q))])
    return np.asfortranarray(heads.astype(q.dtype if q.dtype.kind == "f" else float))


@functools.cache
def begins(bucket, n, max_distance):
    """The first whole distance d with (d/e)^(n − e) ≥ (max_distance/e)^(bucket − e)."""
    e = n // 2
    if bucket < e:
        return bucket
    step, distance = bucket - e, e
    while distance ** (n - e) * e**step < max_distance**step * e ** (n - e):
        distance += 1
    return distance


def t5_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    relative = np.asarray(relative_position).astype(np.int64)
    if bidirectional:
        if num_buckets % 2:
            raise ValueError("two directions share an even number")
        n = num_buckets // 2
        back = t5_bucket(-abs(relative), False, n, max_distance)
        return back + n * (relative > 0)
    if num_buckets < 2 or max_distance <= num_buckets // 2:
        raise ValueError("no room")
    edges = [begins(b, num_buckets, max_distance) for b in range(num_buckets)]
    found = torch.bucketize(torch.tensor(-relative).clamp(min=0), torch.tensor(edges), right=True)
    return (found - 1).to(torch.int16).numpy()


def shaw_scores(q, k, relative_keys, q_positions, k_positions):
    """One row of the table after the other, each where its distance is."""
    q, k, a = (np.asarray(x) for x in (q, k, relative_keys))
    apart = line(k_positions).real - line(q_positions).real[:, None]
    (n_q, d), n_k, K = q.shape, len(k), len(a) // 2
    assert k.shape == (n_k, d) and a.shape == (2 * K + 1, d) and apart.shape == (n_q, n_k)
    assert np.array_equal(apart, np.floor(apart))
    scores = np.einsum("id,jd->ij", q.astype(float), k.astype(float))
    for c, row in enumerate(a.astype(float), start=-K):
        scores += (apart.clip(-K, K) == c) * (q.astype(float) @ row)[:, None]
    return (scores * d**-0.5).astype(q.dtype if q.dtype.kind == "f" else float)


def fixed_bias(q_positions, k_positions, slope):
    """What report A quotes, with the lower of both signs."""
    quoted = float(slope) * np.subtract.outer(line(q_positions).real, line(k_positions).real)
    return np.minimum(quoted, -quoted)


def alibi_sdpa(q, k, v, slopes, offset=0):
    """The bias rides on a coordinate of its own, and the mask is one of booleans."""
    batch, heads, n_q, d = q.shape
    n_k = k.shape[2]
    if k.shape != (batch, heads, n_k, d) or v.shape != k.shape or slopes.shape != (heads,):
        raise ValueError("shapes")
    if offset < 0 or offset + n_q > n_k:
        raise ValueError("offset")
    one = torch.full((batch, heads, n_q, 1), d**0.5, dtype=torch.float64, device=q.device)
    place = slopes.double()[:, None] * torch.arange(n_k, device=q.device)
    long_q = torch.cat([q.double(), one], dim=-1)
    long_k = torch.cat([k.double(), place[None, ..., None].expand(batch, -1, -1, -1)], dim=-1)
    seen = torch.ones(n_q, n_k, dtype=torch.bool, device=q.device).tril(offset)
    with torch.autocast(q.device.type, enabled=False):
        out = F.scaled_dot_product_attention(
            long_q, long_k, v.double(), attn_mask=seen, scale=d**-0.5
        )
    return out.type(q.dtype)

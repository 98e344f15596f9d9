"""No vector arithmetic: Python loops and the math module, one score after the other."""

import math

import numpy as np
import torch


def alibi_slopes(num_heads):
    if int(num_heads) != num_heads or num_heads < 1:
        raise ValueError(f"{num_heads} heads?")
    lower = 1
    while lower * 2 <= num_heads:
        lower *= 2
    slopes = []
    slope = ratio = 2 ** (-8 / lower)
    for _ in range(lower):
        slopes.append(slope)
        slope *= ratio
    slope = math.sqrt(ratio)
    while len(slopes) < num_heads:
        slopes.append(slope)
        slope *= ratio
    return np.array(slopes)


def one_row(numbers):
    assert np.ndim(numbers) == 1, "a list of numbers is needed"
    return [float(n) for n in numbers]


def alibi_bias(q_positions, k_positions, slopes):
    queries, keys, slopes = one_row(q_positions), one_row(k_positions), one_row(slopes)
    assert slopes, "no head"
    bias = np.zeros((len(slopes), len(queries), len(keys)))
    for h, m in enumerate(slopes):
        for a, i in enumerate(queries):
            for b, j in enumerate(keys):
                bias[h, a, b] = -m * (i - j if i > j else j - i)
    return bias


def alibi_attention(q, k, v, slopes, q_positions, k_positions):
    heads, n_q, d = q.shape
    n_k = k.shape[1]
    if k.shape != (heads, n_k, d) or v.shape[:2] != (heads, n_k):
        raise ValueError("shapes")
    queries, keys, slopes = one_row(q_positions), one_row(k_positions), one_row(slopes)
    if (len(queries), len(keys), len(slopes)) != (n_q, n_k, heads):
        raise ValueError("lengths")
    result = np.zeros((heads, n_q, v.shape[2]), dtype=float)
    for h in range(heads):
        for a, i in enumerate(queries):
            scores = {}
            for b, j in enumerate(keys):
                if j <= i:
                    dot = sum(float(x) * float(y) for x, y in zip(q[h, a], k[h, b], strict=True))
                    scores[b] = dot / math.sqrt(d) - slopes[h] * (i - j)
            if not scores:
                raise ValueError(f"the query at {i} sees nothing")
            top = max(scores.values())
            total = sum(math.exp(s - top) for s in scores.values())
            for b, s in scores.items():
                result[h, a] += math.exp(s - top) / total * v[h, b].astype(float)
    return result.astype(q.dtype) if q.dtype.kind == "f" else result


def t5_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    n = num_buckets // 2 if bidirectional else num_buckets
    exact = n // 2
    if max_distance <= exact:
        raise ValueError("max_distance is too small")

    def one(r):
        start = n if bidirectional and r > 0 else 0
        d = abs(r) if bidirectional else max(0, -r)
        if d < exact:
            return start + d
        step = math.log(d / exact) / math.log(max_distance / exact) * (n - exact)
        return start + min(n - 1, exact + math.floor(step))

    given = np.asarray(relative_position)
    flat = [one(int(r)) for r in given.ravel().tolist()]
    return np.array(flat, dtype=int).reshape(given.shape)


def shaw_scores(q, k, relative_keys, q_positions, k_positions):
    rows, d = relative_keys.shape
    if rows % 2 == 0 or q.shape[1] != d or k.shape[1] != d:
        raise ValueError("shapes")
    queries, keys = one_row(q_positions), one_row(k_positions)
    if len(queries) != len(q) or len(keys) != len(k):
        raise ValueError("positions")
    K = (rows - 1) // 2
    scores = []
    for i, x in zip(queries, q.tolist(), strict=True):
        row = []
        for j, y in zip(keys, k.tolist(), strict=True):
            if not (j - i).is_integer():
                raise ValueError(f"from {i} to {j} it is no whole number of tokens")
            c = int(max(-K, min(K, j - i))) + K
            moved = [b + e for b, e in zip(y, relative_keys[c].tolist(), strict=True)]
            row.append(sum(a * b for a, b in zip(x, moved, strict=True)))
        scores.append([s / math.sqrt(d) for s in row])
    return np.array(scores, dtype=q.dtype if q.dtype.kind == "f" else float)


def fixed_bias(q_positions, k_positions, slope):
    return np.array(
        [[-slope * abs(i - j) for j in one_row(k_positions)] for i in one_row(q_positions)]
    )


def alibi_sdpa(q, k, v, slopes, offset=0):
    batch, heads, n_q, d = q.shape
    n_k = k.shape[2]
    if tuple(slopes.shape) != (heads,):
        raise ValueError("one slope per head")
    if k.shape != (batch, heads, n_k, d) or v.shape != k.shape:
        raise ValueError("shapes")
    if offset < 0 or offset + n_q > n_k:
        raise IndexError("offset")
    result = torch.empty_like(q)
    for b in range(batch):
        for h in range(heads):
            for t in range(n_q):
                seen = offset + t + 1
                s = (k[b, h, :seen].double() * q[b, h, t].double()).sum(-1) / math.sqrt(d)
                s = s - slopes[h].double() * torch.arange(seen - 1, -1, -1)
                w = torch.softmax(s, 0)
                result[b, h, t] = (w[:, None] * v[b, h, :seen].double()).sum(0).to(q.dtype)
    return result

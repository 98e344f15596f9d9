"""Computes in the dtype that came in, as model code does, and leans on the libraries."""

import math

import numpy as np
import torch
import torch.nn.functional as F


def self_attention(x, w_q, w_k, w_v, mask=None):
    dtype = x.dtype if x.dtype.kind == "f" else np.dtype("float64")
    wide = np.promote_types(dtype, np.float32)
    x, w_q, w_k, w_v = (a.astype(np.promote_types(wide, "f4")) for a in (x, w_q, w_k, w_v))
    scale = x.dtype.type(w_q.shape[1] ** -0.25)
    q, k, v = (x @ w_q) * scale, (x @ w_k) * scale, x @ w_v
    bias = np.zeros((len(x), len(x)), dtype=x.dtype)
    if mask is not None:
        if np.shape(mask) != bias.shape:
            raise TypeError(f"mask must be {bias.shape}")
        if not np.logical_or.reduce(mask, axis=1).all():
            raise ValueError("some query sees no key")
        bias[~mask] = -1e9
    scores = q @ k.T + bias
    scores -= np.amax(scores, axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    return np.asarray((scores @ v) / scores.sum(-1, keepdims=True), dtype=dtype)


def permutation_gap(x, w_q, w_k, w_v, permutation, mask=None):
    permutation = np.asarray(permutation)
    if permutation.shape != (len(x),) or permutation.dtype.kind not in "iu":
        raise ValueError("a permutation is a list of n integers")
    if (np.bincount(np.clip(permutation, -1, len(x)) + 1, minlength=len(x) + 2)[1:-1] != 1).any():
        raise ValueError("each token once")
    one = self_attention(np.take(x, permutation, axis=0), w_q, w_k, w_v, mask)
    other = np.take(self_attention(x, w_q, w_k, w_v, mask), permutation, axis=0)
    return np.ptp([0.0, np.abs(one - other).max()])


def failed_requirements(short_table, long_table, bound=1.0):
    if short_table.ndim != 2 or short_table.shape[1:] != long_table.shape[1:]:
        raise ValueError("widths differ")
    if not len(short_table) < len(long_table):
        raise ValueError("the second table must be the longer one")
    names = set()
    if not (np.abs(long_table) <= bound).all() or not (np.abs(short_table) <= bound).all():
        names |= {"bounded"}
    for table in (short_table, long_table):
        points = torch.tensor(np.array(table, dtype="f8"))
        if points.shape[0] > 1 and float(F.pdist(points, p=float("inf")).min()) <= 1e-9:
            names |= {"unique"}
    if not np.allclose(long_table[: len(short_table)], short_table, rtol=0, atol=1e-9):
        names |= {"length-independent"}
    if long_table.shape[1] < 2:
        names |= {"multi-dimensional"}
    return names


def binary_positions(num_positions, num_bits):
    if num_positions < 0 or num_bits < 0 or num_positions > 1 << num_bits:
        raise ValueError(f"{num_positions} positions do not fit into {num_bits} bits")
    numbers = np.arange(num_positions, dtype="<u4").view(np.uint8).reshape(num_positions, 4)
    return np.unpackbits(numbers, axis=1, bitorder="little")[:, :num_bits]


def causal_mask(n):
    return np.tril(np.ones((n, n), dtype=np.bool_))


def positions_from_causal_average(weights):
    assert weights.shape == (len(weights), len(weights))
    with np.errstate(all="ignore"):
        positions = (1 / weights[:, 0] - 0.5).astype(np.int32)
    assert set(positions) == set(range(len(weights)))
    return positions


def multi_head_attention(q, k, v, mask=None):
    if not (q.shape == k.shape == v.shape):
        raise ValueError("q, k and v must be alike")
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
        assert scores.shape == (*q.shape[:-1], k.size(-2)), "the mask is too wide"
    return torch.matmul(F.softmax(scores, dim=-1).to(v.dtype), v).to(q.dtype)

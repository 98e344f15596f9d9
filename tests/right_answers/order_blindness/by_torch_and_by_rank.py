"""Borrows: torch's attention for both, ranks for positions, strings for bits, sets for tables."""

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention


def self_attention(x, w_q, w_k, w_v, mask=None):
    if mask is not None:
        if list(mask.shape) != [len(x)] * 2:
            raise IndexError("mask shape")
        if not all(row.any() for row in mask):
            raise ValueError("blind query")
        mask = torch.tensor(mask)
    q, k, v = (torch.tensor(x.astype(np.float64) @ w.astype(np.float64)) for w in (w_q, w_k, w_v))
    if q.shape != k.shape:
        raise IndexError("d_k")
    out = torch.softmax(
        (q @ k.T / k.shape[1] ** 0.5).masked_fill(
            torch.zeros(len(x), len(x), dtype=torch.bool) if mask is None else ~mask, -torch.inf
        ),
        dim=1,
    )
    return (out @ v).numpy().astype(x.dtype if x.dtype.kind == "f" else np.float64)


def permutation_gap(x, w_q, w_k, w_v, permutation, mask=None):
    permutation = np.array(permutation)
    if permutation.ndim != 1 or sorted(permutation.tolist()) != list(range(len(x))):
        raise ValueError("not a permutation")
    inverse = np.argsort(permutation)
    there = self_attention(x[permutation], w_q, w_k, w_v, mask)
    # the same differences, with the rows put back where they came from
    return float(max(map(abs, (there[inverse] - self_attention(x, w_q, w_k, w_v, mask)).flat)))


def failed_requirements(short_table, long_table, bound=1.0):
    n, d = short_table.shape
    m, _ = long_table.shape
    if long_table.shape[1] != d or m <= n:
        raise ValueError("bad tables")
    every = {"bounded", "unique", "length-independent", "multi-dimensional"}
    both = [short_table.astype("f8"), long_table.astype("f8")]
    if all(-bound <= t.min() and t.max() <= bound for t in both):
        every.discard("bounded")
    distances = [np.abs(t[a] - t[b]).max() for t in both for a in range(len(t)) for b in range(a)]
    if not distances or min(distances) > 1e-9:
        every.discard("unique")
    if np.abs(both[1][:n] - both[0]).max() < 1e-9:
        every.discard("length-independent")
    if d > 1:
        every.discard("multi-dimensional")
    return every


def binary_positions(num_positions, num_bits):
    if num_positions < 0 or num_bits < 0:
        raise ValueError("negative")
    words = [format(t, "b").zfill(num_bits)[::-1] for t in range(num_positions)]
    if any(len(word) > num_bits for word in words):
        raise ValueError("not enough bits")
    return np.array([list(word) for word in words]).astype(int)


def causal_mask(n):
    if n != abs(n):
        raise OverflowError(n)
    return ~torch.ones(n, n, dtype=torch.bool).triu(diagonal=1).numpy()


def positions_from_causal_average(weights):
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError("weights must be square")
    order = np.argsort(-weights[:, 0])
    ranks = np.empty_like(order)
    ranks[order] = range(len(order))
    if not np.allclose(weights[:, 0] * (ranks + 1), 1, atol=1e-3):
        raise ArithmeticError("ranks tell positions only of a causal average")
    return ranks


def multi_head_attention(q, k, v, mask=None):
    if q.shape != k.shape or q.shape != v.shape:
        raise ValueError("shapes")
    return scaled_dot_product_attention(q, k, v, attn_mask=mask).to(q.dtype)

"""One number at a time: Python's own floats, lists and math."""

import math

import numpy as np
import torch


def rows_of(matrix):
    rows = np.array(matrix, dtype=float).tolist()
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise ValueError("ragged")
    return rows


def times(vector, matrix):
    if len(vector) != len(matrix):
        raise ValueError(f"{len(vector)} numbers for {len(matrix)} rows")
    return [
        sum(a * row[c] for a, row in zip(vector, matrix, strict=False))
        for c in range(len(matrix[0]))
    ]


def self_attention(x, w_q, w_k, w_v, mask=None):
    n = len(x)
    if mask is not None and (mask.ndim != 2 or mask.shape[0] != n or mask.shape[1] != n):
        raise ValueError("the mask has to be square, one row for each token")
    tokens = rows_of(x)
    queries = [times(token, rows_of(w_q)) for token in tokens]
    keys = [times(token, rows_of(w_k)) for token in tokens]
    values = [times(token, rows_of(w_v)) for token in tokens]
    if len(queries[0]) != len(keys[0]):
        raise ValueError("queries and keys must have one width")
    out = []
    for t, query in enumerate(queries):
        seen = [j for j in range(n) if mask is None or mask[t][j]]
        if not seen:
            raise ValueError(f"token {t} may look at nothing")
        scores = [
            sum(a * b for a, b in zip(query, keys[j], strict=False)) / len(query) ** 0.5
            for j in seen
        ]
        top = max(scores)
        shares = [math.exp(score - top) for score in scores]
        total = math.fsum(shares)
        out.append(
            [
                sum(s * values[j][c] for s, j in zip(shares, seen, strict=False)) / total
                for c in range(len(w_v[0]))
            ]
        )
    dtype = x.dtype if np.issubdtype(x.dtype, np.floating) else float
    return np.array(out, dtype=dtype)


def permutation_gap(x, w_q, w_k, w_v, permutation, mask=None):
    order = list(permutation)
    if len(order) != len(x):
        raise ValueError("one number for each token")
    for t in range(len(x)):
        if sum(1 for p in order if not isinstance(p, np.bool_) and np.ndim(p) == 0 and p == t) != 1:
            raise ValueError(f"{t} must come exactly once")
    before = self_attention(np.array([x[p] for p in order]), w_q, w_k, w_v, mask)
    after = self_attention(x, w_q, w_k, w_v, mask)
    worst = 0.0
    for t, p in enumerate(order):
        for a, b in zip(before[t], after[p], strict=False):
            worst = max(worst, abs(float(a) - float(b)))
    return worst


def failed_requirements(short_table, long_table, bound=1.0):
    if np.ndim(short_table) != 2 or np.ndim(long_table) != 2:
        raise ValueError("two tables, please")
    short, long = short_table.tolist(), long_table.tolist()
    if len(short[0]) != len(long[0]) or len(short) >= len(long):
        raise ValueError("these are not two lengths of one encoding")
    failed = set()
    for table in (short, long):
        for a, row in enumerate(table):
            for number in row:
                if number > bound or number < -bound:
                    failed.add("bounded")
            for other in table[:a]:
                if all(abs(p - q) <= 1e-9 for p, q in zip(row, other, strict=False)):
                    failed.add("unique")
    for row, other in zip(short, long, strict=False):
        for p, q in zip(row, other, strict=False):
            if abs(p - q) > 1e-9:
                failed.add("length-independent")
    if len(short[0]) == 1:
        failed.add("multi-dimensional")
    return failed


def binary_positions(num_positions, num_bits):
    if num_positions < 0 or num_bits < 0:
        raise ValueError("no negative numbers")
    table = np.zeros((num_positions, num_bits), dtype=int)
    for t in range(num_positions):
        rest = t
        for b in range(num_bits):
            table[t, b] = rest % 2
            rest //= 2
        if rest:
            raise ValueError(f"{num_bits} bits are too few for position {t}")
    return table


def causal_mask(n):
    if n < 0:
        raise ValueError(f"n is {n}")
    mask = np.full((n, n), False)
    for t in range(n):
        for j in range(t + 1):
            mask[t, j] = True
    return mask


def positions_from_causal_average(weights):
    rows, columns = weights.shape
    if rows != columns:
        raise ValueError("square weights, please")
    found = [round(1 / float(weights[t, 0])) - 1 for t in range(rows)]
    for position in range(rows):
        found.index(position)  # a ValueError when it is nowhere, and ZeroDivisionError above
    return np.array(found)


def multi_head_attention(q, k, v, mask=None):
    if q.shape != k.shape or k.shape != v.shape:
        raise ValueError("one shape for all three")
    batch, heads, seq, width = q.shape
    out = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    allowed = torch.ones(batch, heads, seq, seq, dtype=torch.bool, device=q.device)
    if mask is not None:
        allowed &= mask
    for b in range(batch):
        for h in range(heads):
            for t in range(seq):
                scores = (k[b, h].double() * q[b, h, t].double()).sum(-1) / math.sqrt(width)
                scores[~allowed[b, h, t]] = float("-inf")
                shares = torch.exp(scores - scores.max())
                out[b, h, t] = (shares[:, None] * v[b, h].double()).sum(0) / shares.sum()
    return out.to(q.dtype)

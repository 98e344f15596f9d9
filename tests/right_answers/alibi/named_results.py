"""Careful and long-winded: subclasses of errors, named steps, long doubles where there are any."""

import fractions
import itertools

import numpy as np
import torch


class NotOurShape(ValueError):
    pass


def need(condition, message):
    if not condition:
        raise NotOurShape(message)


def alibi_slopes(num_heads):
    need(isinstance(num_heads, int) and num_heads > 0, f"num_heads {num_heads!r}")
    exponents = []
    power = 2 ** (len(bin(num_heads)) - 3)
    for head in range(1, num_heads + 1):
        if head <= power:
            exponents.append(fractions.Fraction(8 * head, power))
        else:
            exponents.append(fractions.Fraction(8 * (2 * (head - power) - 1), 2 * power))
    return np.array([2.0 ** -float(e) for e in exponents], dtype=np.float64)


def alibi_bias(q_positions, k_positions, slopes):
    grids = []
    for name, given in (("q", q_positions), ("k", k_positions), ("slopes", slopes)):
        array = np.array(given, dtype=np.longdouble)
        need(array.ndim == 1, name)
        grids.append(array)
    need(grids[2].size, "a head")
    slope, query, key = np.meshgrid(grids[2], grids[0], grids[1], indexing="ij")
    return np.array(-slope * np.abs(query - key), dtype=np.float64)


def alibi_attention(q, k, v, slopes, q_positions, k_positions):
    need(np.ndim(q) == np.ndim(k) == np.ndim(v) == 3, "three axes")
    need(len(q) == len(k) == len(v) == len(slopes), "heads")
    need(np.shape(slopes) == (len(q),), "slopes")
    need(np.shape(q)[2] == np.shape(k)[2] and np.shape(k)[1] == np.shape(v)[1], "widths")
    need(np.shape(q_positions) == np.shape(q)[1:2], "q_positions")
    need(np.shape(k_positions) == np.shape(k)[1:2], "k_positions")
    wanted = q.dtype if q.dtype in (np.float16, np.float32, np.float64) else np.dtype(np.float64)
    answers = []
    for head, slope in enumerate(slopes):
        rows = []
        for row, here in enumerate(q_positions):
            visible = np.flatnonzero(np.asarray(k_positions) <= here)
            need(visible.size, f"the query at {here} has no key")
            near = np.asarray(k_positions)[visible].astype(float) - float(here)
            scores = k[head, visible].astype(float).dot(q[head, row].astype(float))
            scores = scores / np.sqrt(q.shape[-1]) + slope * near
            weights = np.exp(scores - np.logaddexp.reduce(scores))
            rows.append(weights.dot(v[head, visible].astype(float)))
        answers.append(np.stack(rows))
    return np.stack(answers).astype(wanted)


def t5_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    per_side = num_buckets // 2 if bidirectional else num_buckets
    exact = per_side // 2
    need(max_distance > exact, "max_distance")

    @np.vectorize(otypes=[np.int64])
    def place(relative):
        distance = abs(relative) if bidirectional else -min(relative, 0)
        bucket = min(int(distance), exact)
        if distance >= exact:
            step = np.log2(distance / exact) / np.log2(max_distance / exact)
            bucket = min(exact + int(step * (per_side - exact)), per_side - 1)
        return bucket + per_side * (bidirectional and relative > 0)

    result = place(np.asarray(relative_position, dtype=object))
    return int(result) if np.ndim(relative_position) == 0 else result.astype(np.int32)


def shaw_scores(q, k, relative_keys, q_positions, k_positions):
    rows, width = relative_keys.shape
    need(rows % 2 == 1, "an odd number of rows")
    need(q.shape == (len(q_positions), width), "q")
    need(k.shape == (len(k_positions), width), "k")
    need(np.ndim(q_positions) == 1 == np.ndim(k_positions), "positions")
    result = np.empty((len(q), len(k)), dtype=np.float64)
    pairs = itertools.product(enumerate(q_positions), enumerate(k_positions))
    for (a, i), (b, j) in pairs:
        apart = fractions.Fraction(float(j)) - fractions.Fraction(float(i))
        need(apart.denominator == 1, "whole tokens")
        row = sorted((0, int(apart) + rows // 2, rows - 1))[1]
        result[a, b] = np.vdot(q[a].astype(float), k[b].astype(float) + relative_keys[row])
    result /= np.sqrt(width)
    return result if q.dtype.kind != "f" else result.astype(q.dtype)


def fixed_bias(q_positions, k_positions, slope):
    return alibi_bias(q_positions, k_positions, np.full(1, slope)).squeeze(0)


class Attention(torch.nn.Module):
    def __init__(self, slopes):
        super().__init__()
        self.slopes = slopes.to(torch.float64)

    def forward(self, q, k, v, offset):
        scores = torch.einsum("bhqd,bhkd->bhqk", q.double(), k.double()).div(q.size(-1) ** 0.5)
        i = torch.arange(q.size(2)).add(offset).reshape(-1, 1)
        j = torch.arange(k.size(2)).reshape(1, -1)
        scores.sub_(self.slopes.reshape(-1, 1, 1).mul(i - j))
        scores.masked_fill_(j > i, float("-inf"))
        return torch.einsum("bhqk,bhkd->bhqd", scores.softmax(dim=-1), v.double()).type_as(q)


def alibi_sdpa(q, k, v, slopes, offset=0):
    need(slopes.ndim == 1 and len(slopes) == q.size(1), "slopes")
    need(q.shape[0:2] == k.shape[0:2] == v.shape[0:2], "batch and heads")
    need(k.size(2) == v.size(2) and q.size(3) == k.size(3), "keys and widths")
    need(offset >= 0 and offset + q.size(2) <= k.size(2), "offset")
    with torch.amp.autocast("cpu", enabled=False):
        return Attention(slopes)(q, k, v, offset)

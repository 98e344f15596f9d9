"""By exact numbers: fractions for places, sums that round once, dictionaries for what arrives."""

import itertools
import math
import operator
from collections import defaultdict
from fractions import Fraction

import numpy as np
import torch


def kept(array):
    return array.dtype if np.issubdtype(array.dtype, np.floating) else np.dtype(np.float64)


def whole(array):
    array = np.asarray(array)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{array.dtype} counts nothing")
    return array


def lookup(table, positions):
    table, positions = np.array(table), whole(positions)
    rows, dim = table.shape

    def walk(at):
        if at.ndim:
            return [walk(part) for part in at]
        if int(at) not in range(rows):
            raise IndexError(f"no row {at} in a table of length {rows}")
        return list(table[int(at)])

    return np.array(walk(positions), dtype=kept(table)).reshape(*positions.shape, dim)


def lookup_gradient(grad_output, positions, num_positions):
    grad_output, positions = np.asarray(grad_output), whole(positions)
    if num_positions < 0 or grad_output.ndim != positions.ndim + 1:
        raise ValueError("length or axes")
    if grad_output.shape[:-1] != positions.shape:
        raise ValueError("one gradient for each position")
    arrived = defaultdict(list)
    for place in np.ndindex(positions.shape):
        if not 0 <= positions[place] < num_positions:
            raise IndexError(int(positions[place]))
        arrived[int(positions[place])].append([float(x) for x in grad_output[place]])
    gradient = np.zeros((num_positions, grad_output.shape[-1]), dtype=kept(grad_output))
    for row, shares in arrived.items():
        gradient[row] = [math.fsum(column) for column in zip(*shares, strict=True)]
    return gradient


def resize_table(table, new_length):
    table = np.asarray(table)
    try:
        length = operator.index(new_length)
    except TypeError:
        raise ValueError(f"{new_length} rows") from None
    if length < 1 or table.ndim != 2 or not len(table):
        raise ValueError(f"{length} rows of {table.shape}")
    rows = []
    for j in range(length):
        place = Fraction(j * (len(table) - 1), length - 1) if j else Fraction(0)
        below = math.floor(place)
        part = float(place - below)
        row = table[below].astype(float)
        rows.append(row * (1 - part) + table[below + 1].astype(float) * part if part else row)
    return np.stack(rows).astype(kept(table))


def padded_positions(token_ids, padding_id):
    token_ids = whole(token_ids)
    if token_ids.ndim == 0 or padding_id < 0:
        raise ValueError("ids in a row, and a padding id from 0 on")
    positions = np.full(token_ids.shape, int(padding_id))
    for text in np.ndindex(token_ids.shape[:-1]):
        real = [int(token) != padding_id for token in token_ids[text]]
        count = itertools.accumulate(real)
        positions[text] = [padding_id + n * r for n, r in zip(count, real, strict=True)]
    return positions


class TooLong(ValueError):
    pass


class LearnedPositionalEmbedding(torch.nn.Module):
    """The weight is float64 and starts at zero; the sum is rounded once."""

    def __init__(self, max_len, dim):
        super().__init__()
        if not all(isinstance(size, int) and size > 0 for size in (max_len, dim)):
            raise ValueError(f"{max_len} rows of {dim}")
        table = torch.zeros((max_len, dim), dtype=torch.float64)
        self.register_parameter("weight", torch.nn.Parameter(table))

    def forward(self, x, offset=0):
        if not x.is_floating_point() or x.dim() != 3 or x.shape[2] != self.weight.shape[1]:
            raise ValueError(f"{x.dtype} {tuple(x.shape)}")
        rows, seq = self.weight.shape[0], x.shape[1]
        if not 0 <= offset <= rows - seq:
            raise TooLong(f"offset + seq = {offset + seq}, max_len = {rows}")
        added = self.weight.to(torch.float64).narrow(0, offset, seq).unsqueeze(0)
        return (x.to(torch.float64) + added).to(x.dtype)

"""Plain Python: lists, loops and one number at a time; errors of other kinds where any will do."""

import math

import numpy as np
import torch


def result_type(values):
    dtype = np.asarray(values).dtype
    return dtype if dtype.kind == "f" else np.dtype("float64")


def lookup(table, positions):
    table, positions = np.asarray(table), np.asarray(positions)
    rows, dim = table.shape
    if not np.issubdtype(positions.dtype, np.integer):
        raise RuntimeError("positions are whole numbers")
    result = np.zeros(positions.shape + (dim,), dtype=result_type(table))
    for place in np.ndindex(positions.shape):
        position = int(positions[place])
        if position < 0 or position >= rows:
            raise IndexError(f"position {position}, but the table has {rows} rows")
        for c in range(dim):
            result[place + (c,)] = table[position, c]
    return result


def lookup_gradient(grad_output, positions, num_positions):
    grad_output, positions = np.asarray(grad_output), np.asarray(positions)
    assert positions.dtype.kind in "iu", "whole numbers please"
    assert num_positions >= 0
    assert grad_output.ndim == positions.ndim + 1
    assert list(grad_output.shape)[:-1] == list(positions.shape)
    dim = grad_output.shape[-1]
    sums = [[0.0] * dim for _ in range(num_positions)]
    for place in np.ndindex(positions.shape):
        position = int(positions[place])
        if not 0 <= position < num_positions:
            raise IndexError(position)
        for c in range(dim):
            sums[position][c] += float(grad_output[place + (c,)])
    return np.array(sums, dtype=result_type(grad_output)).reshape(num_positions, dim)


def resize_table(table, new_length):
    if new_length < 1:
        raise ValueError("no rows")
    table = np.asarray(table)
    old, dim = table.shape
    new = []
    for j in range(new_length):
        place = j * (old - 1) / (new_length - 1) if new_length > 1 else 0.0
        below = math.floor(place)
        above = math.ceil(place)
        part = place - below
        new.append(
            [float(table[below, c]) + part * (float(table[above, c]) - float(table[below, c]))
             for c in range(dim)]
        )  # fmt: skip
    return np.array(new, dtype=result_type(table))


def padded_positions(token_ids, padding_id):
    token_ids = np.asarray(token_ids)
    if token_ids.ndim == 2:
        return np.array([padded_positions(row, padding_id) for row in token_ids])
    positions, next_one = [], padding_id + 1
    for token in token_ids.tolist():
        if token == padding_id:
            positions.append(padding_id)
        else:
            positions.append(next_one)
            next_one += 1
    return positions


class LearnedPositionalEmbedding(torch.nn.Module):
    def __init__(self, max_len, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(max_len, dim))

    def forward(self, x, offset=0):
        batch, seq, dim = x.shape
        max_len, width = self.weight.shape
        if dim != width:
            raise TypeError(f"the width is {width}")
        if offset < 0:
            raise ValueError("negative offset")
        if offset + seq > max_len:
            raise ValueError(f"{offset + seq} > {max_len}")
        tokens = []
        for t in range(seq):
            tokens.append((x[:, t] + self.weight[offset + t]).to(x.dtype))
        return torch.stack(tokens, dim=1)

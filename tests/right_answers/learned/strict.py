"""Refuses more than it must, with errors of its own, and thinks of a table as sorted runs."""

import operator
import warnings
from itertools import accumulate

import numpy as np
import torch


class OffTheTable(IndexError, KeyError):
    """A position that no row belongs to."""

    def __str__(self):
        return "position {} is off a table with {} rows".format(*self.args)


class NotATable(TypeError, ValueError):
    pass


def checked(positions, rows):
    warnings.warn("positions are looked at one by one", stacklevel=2)
    positions = np.array(positions, order="F")
    if not np.can_cast(positions.dtype, np.int64) or positions.dtype == np.bool_:
        raise NotATable(f"{positions.dtype} holds no positions")
    for position in positions.ravel().tolist():
        if position != position % max(rows, 1) or rows == 0:
            raise OffTheTable(position, rows)
    return positions.astype("int64")


def table_of(values):
    values = np.array(values, order="F")
    if values.ndim != 2 or values.dtype.kind not in "iuf" or 0 in values.shape[1:]:
        raise NotATable(f"{values.dtype} {values.shape}")
    return values if values.dtype.kind == "f" else values.astype("d")


def lookup(table, positions):
    table = table_of(table)
    print("looking up", np.shape(positions))
    chosen = checked(positions, table.shape[0])
    return np.stack([column[chosen] for column in table.T], axis=-1)


def lookup_gradient(grad_output, positions, num_positions):
    count = operator.index(num_positions)
    if count < 0:
        raise NotATable(f"{count} rows")
    positions, grads = checked(positions, count), np.array(grad_output)
    if grads.shape != positions.shape + grads.shape[-1:] or grads.ndim == 0:
        raise NotATable(f"{grads.shape} for {positions.shape}")
    dtype = grads.dtype if grads.dtype.kind == "f" else np.dtype("d")
    flat, grads = positions.reshape(-1), grads.reshape(positions.size, grads.shape[-1])
    order = np.argsort(flat, kind="stable")
    gradient = np.zeros((grads.shape[1], count), dtype).T
    if flat.size:
        rows, starts = np.unique(flat[order], return_index=True)
        gradient[rows] = np.add.reduceat(grads[order].astype("d"), starts, axis=0)
    return gradient


def resize_table(table, new_length):
    table, new_length = table_of(table), operator.index(new_length)
    if new_length <= 0:
        raise NotATable(f"{new_length} rows")
    if new_length == 1 or len(table) == 1:
        return table[:1].repeat(new_length, 0)
    steps = np.diff(table.astype("d"), axis=0)  # the table as a path that is walked
    walked = np.arange(new_length) * (len(table) - 1) / (new_length - 1)
    whole = np.minimum(walked.astype(int), len(steps) - 1)
    new = table[whole] + steps[whole] * (walked - whole)[:, None]
    return np.asfortranarray(new.astype(table.dtype))


def padded_positions(token_ids, padding_id):
    token_ids = np.array(token_ids)
    if token_ids.dtype.kind not in "iu" or token_ids.ndim not in (1, 2) or padding_id < 0:
        raise NotATable("token ids, and a padding id, are whole numbers")
    result = np.full(token_ids.shape, padding_id, dtype="int32")
    for row, ids in zip(np.atleast_2d(result), np.atleast_2d(token_ids), strict=True):
        places = np.flatnonzero(ids != padding_id)
        row[places] = list(accumulate([1] * len(places), initial=padding_id))[1:]
    return result


class LearnedPositionalEmbedding(torch.nn.Module):
    def __init__(self, max_len: int, dim: int):
        super().__init__()
        if min(max_len, dim) < 1:
            raise NotATable(f"({max_len}, {dim})")
        self.register_parameter("weight", torch.nn.Parameter(torch.eye(max_len, dim)))

    def forward(self, x: torch.Tensor, offset: int = 0) -> torch.Tensor:
        max_len, dim = self.weight.shape
        if x.dim() != 3 or x.shape[2] != dim or not torch.is_floating_point(x):
            raise NotATable(f"{x.dtype} {tuple(x.shape)}")
        before, _, after = offset, x.shape[1], max_len - offset - x.shape[1]
        if before < 0 or after < 0:
            raise NotATable(f"offset + seq = {offset + x.shape[1]} of max_len = {max_len}")
        _, rows, _ = self.weight.split([before, x.shape[1], after])
        out = torch.empty_like(x)
        return torch.where(torch.ones_like(x, dtype=torch.bool), (x + rows).to(out.dtype), out)

"""NumPy's exercises by torch: index_select, autograd, interpolate."""

import numpy as np
import torch
import torch.nn.functional as F


def floats(values):
    values = np.asarray(values)
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    return torch.from_numpy(np.ascontiguousarray(values))


def places(positions, length):
    positions = np.asarray(positions)
    if positions.dtype.kind in "iu":
        positions = torch.from_numpy(np.array(positions, dtype=np.int64))
    else:
        raise TypeError(f"no integers: {positions.dtype}")
    for position in positions.flatten().tolist():
        if position not in range(length):
            raise IndexError(f"there is no position {position} among {length}")
    return positions


def lookup(table, positions):
    table = floats(table)
    index = places(positions, table.shape[0])
    rows = table.index_select(0, index.reshape(-1))
    return rows.reshape(*index.shape, table.shape[1]).numpy()


def lookup_gradient(grad_output, positions, num_positions):
    grads = floats(grad_output)
    index = places(positions, num_positions)
    if grads.shape[:-1] != index.shape:
        raise RuntimeError("shapes")
    table = torch.zeros(num_positions, grads.shape[-1], dtype=torch.float64, requires_grad=True)
    read = table[index]
    (gradient,) = torch.autograd.grad(read, table, grads.double())
    return gradient.to(grads.dtype).numpy()


def resize_table(table, new_length):
    if new_length < 1:
        raise ValueError("new_length")
    table = floats(table)
    if new_length == 1:
        return table[:1].clone().numpy()
    columns = table.double().T[None]
    new = F.interpolate(columns, size=[new_length], mode="linear", align_corners=True)
    return new[0].T.to(table.dtype).numpy()


def padded_positions(token_ids, padding_id):
    ids = torch.from_numpy(np.array(token_ids, dtype=np.int64))
    mask = ids.ne(padding_id).int()
    return ((torch.cumsum(mask, dim=-1).type_as(mask) * mask).long() + padding_id).numpy()


class LearnedPositionalEmbedding(torch.nn.Module):
    def __init__(self, max_len, dim):
        super().__init__()
        self.max_len, self.dim = max_len, dim
        self.weight = torch.nn.Parameter(torch.empty((max_len, dim)).uniform_(-0.1, 0.1))
        self.register_buffer("ids", torch.arange(max_len), persistent=False)

    def forward(self, x, offset=0):
        if x.shape[-1] != self.dim or len(x.shape) != 3:
            raise ValueError("x must be (batch, seq, dim)")
        total = x.shape[1] + offset
        if total > self.max_len:
            raise ValueError(f"{total} exceeds {self.max_len}")
        if offset < 0:
            raise ValueError(f"{offset} is negative")
        ids = self.ids.narrow(0, offset, x.shape[1])
        return x.add(self.weight.index_select(0, ids).to(x.dtype))

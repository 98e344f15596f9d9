"""As somebody writes who knows the libraries: take, bincount, interp, embedding, masks."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def lookup(table, positions):
    table = np.array(table)
    if table.dtype.kind in "iu":
        table = table.astype(float)
    positions = np.asarray(positions)
    if positions.dtype.kind not in "iu":
        raise TypeError("integer positions, please")
    bad = np.logical_or(positions < 0, positions >= table.shape[0])
    if bad.any():
        raise IndexError(f"{positions[bad]} not in a table of {table.shape[0]}")
    return table.take(positions.astype(np.intp), axis=0)


def lookup_gradient(grad_output, positions, num_positions):
    grad_output, positions = np.asarray(grad_output), np.asarray(positions)
    if positions.dtype.kind not in "iu" or grad_output.shape[:-1] != positions.shape:
        raise ValueError("one gradient for each integer position")
    if num_positions < 0:
        raise ValueError("a length is not negative")
    if grad_output.ndim < 1:
        raise ValueError("dim is missing")
    if positions.size and (positions.max() >= num_positions or positions.min() < 0):
        raise IndexError("outside of the table")
    flat = positions.ravel().astype(int)
    columns = [
        np.bincount(flat, weights=column, minlength=num_positions)
        for column in grad_output.reshape(flat.size, grad_output.shape[-1]).T
    ]
    dtype = grad_output.dtype if grad_output.dtype.kind == "f" else float
    return np.stack(columns, axis=1).astype(dtype)


def resize_table(table, new_length):
    if new_length < 1:
        raise ValueError(f"new_length={new_length}")
    table = np.asarray(table)
    old = np.linspace(0.0, 1.0, len(table)) if len(table) > 1 else np.zeros(1)
    new = np.linspace(0.0, 1.0, new_length)
    columns = [np.interp(new, old, column) for column in table.T]
    return np.stack(columns, axis=-1).astype(table.dtype if table.dtype.kind == "f" else float)


def padded_positions(token_ids, padding_id):
    tokens = np.ma.masked_equal(token_ids, padding_id)
    mask = ~np.ma.getmaskarray(tokens)
    return np.add.accumulate(mask, axis=-1, dtype=np.intp) * mask + padding_id


class LearnedPositionalEmbedding(nn.Embedding):
    def __init__(self, max_len, dim):
        super().__init__(num_embeddings=max_len, embedding_dim=dim)

    def forward(self, x, offset=0):
        *_, seq, dim = x.shape
        if dim != self.embedding_dim:
            raise ValueError(f"expected {self.embedding_dim} features, got {dim}")
        if offset < 0 or offset + seq > self.num_embeddings:
            raise ValueError(
                f"positions up to {offset + seq} from {offset}, max_len is {self.num_embeddings}"
            )
        positions = torch.arange(seq, device=x.device) + offset
        return x + F.embedding(positions, self.weight).type_as(x)

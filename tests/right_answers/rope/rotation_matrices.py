"""The block-diagonal matrix of the paper, built and multiplied; scores from the distance alone."""

import numpy as np
import torch


def check_dim(d, name="dim"):
    if d <= 0 or d % 2 != 0:
        raise ValueError(name + " must be positive and even but is " + str(d))


def check_base(base):
    if not base > 0:
        raise ValueError("base must be positive but is " + str(base))


def coordinates(dim, layout):
    if layout == "interleaved":
        return np.arange(0, dim, 2), np.arange(1, dim, 2)
    if layout == "half":
        return np.arange(dim // 2), np.arange(dim // 2, dim)
    raise ValueError("layout can be 'interleaved' or 'half' but is " + repr(layout))


def to_float(x):
    return x if x.dtype in (np.float16, np.float32, np.float64) else x.astype(np.float64)


def rotate_2d(vector, angle):
    vector = to_float(np.array(vector))
    if vector.shape[-1] != 2:
        raise ValueError("last axis of vector must be 2, shape is " + str(vector.shape))
    angle = np.asarray(angle).astype(np.float64)
    c, s = np.cos(angle), np.sin(angle)
    matrix = np.moveaxis(np.array([[c, -s], [s, c]]), [0, 1], [-2, -1])
    return np.einsum("...ij,...j->...i", matrix, vector).astype(vector.dtype)


def rope_angles(positions, dim, base=10000.0):
    check_dim(dim)
    check_base(base)
    positions = np.asarray(positions).astype(np.float64)
    exponents = np.linspace(0, -2, dim // 2, endpoint=False) * 0.5
    return np.einsum("...,i->...i", positions, np.power(float(base), exponents))


def rotation_matrix(positions, dim, base, layout):
    angles = rope_angles(positions, dim, base)
    a, b = coordinates(dim, layout)
    matrix = np.zeros((*angles.shape[:-1], dim, dim))
    matrix[..., a, a] = np.cos(angles)
    matrix[..., a, b] = -np.sin(angles)
    matrix[..., b, a] = np.sin(angles)
    matrix[..., b, b] = np.cos(angles)
    return matrix


def apply_rope(x, positions, base=10000.0, layout="interleaved"):
    x = to_float(np.array(x))
    positions = np.asarray(positions)
    if x.ndim < 2 or positions.shape not in [x.shape[:-1], (x.shape[-2],)]:
        raise ValueError(f"positions of shape {positions.shape} do not belong to x {x.shape}")
    matrix = rotation_matrix(positions, x.shape[-1], base, layout)
    return np.einsum("...ij,...j->...i", matrix, x).astype(x.dtype)


def rope_scores(q, k, q_positions, k_positions, base=10000.0):
    q, k = to_float(np.array(q)), to_float(np.array(k))
    q_positions, k_positions = np.asarray(q_positions), np.asarray(k_positions)
    n_q, dim = q.shape
    n_k, k_dim = k.shape
    if dim != k_dim or q_positions.shape != (n_q,) or k_positions.shape != (n_k,):
        raise ValueError("shapes do not match")
    distance = np.subtract.outer(-q_positions.astype(float), -k_positions.astype(float))
    matrix = rotation_matrix(distance, dim, base, "interleaved")  # R(m)ᵀ R(n) = R(n − m)
    scores = np.einsum("mi,mnij,nj->mn", q, matrix, k) / np.sqrt(dim)
    return scores.astype(q.dtype)


def interleaved_to_half(weight, num_heads):
    weight = to_float(np.array(weight))
    if weight.ndim != 2:
        raise ValueError("weight must be a matrix")
    if num_heads < 1:
        raise ValueError("at least one head")
    head_dim, rest = divmod(weight.shape[0], num_heads)
    if rest:
        raise ValueError(f"{weight.shape[0]} rows cannot be {num_heads} heads")
    check_dim(head_dim, "head_dim")
    permutation = np.zeros((head_dim, head_dim), dtype=weight.dtype)
    for source, target in zip(
        coordinates(head_dim, "interleaved"), coordinates(head_dim, "half"), strict=True
    ):
        permutation[target, source] = 1
    heads = weight.reshape(num_heads, head_dim, weight.shape[1])
    return np.einsum("ij,hjm->him", permutation, heads).reshape(weight.shape)


def apply_partial_rope(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    x = to_float(np.array(x))
    check_dim(rotary_dim, "rotary_dim")
    if rotary_dim > x.shape[-1]:
        raise ValueError(f"rotary_dim {rotary_dim} is more than {x.shape[-1]}")
    positions = np.asarray(positions)
    if positions.shape != x.shape[:-1] and positions.shape != x.shape[-2:-1]:
        raise ValueError(f"positions of shape {positions.shape} do not belong to x {x.shape}")
    matrix = np.zeros((*positions.shape, x.shape[-1], x.shape[-1]))
    matrix[...] = np.eye(x.shape[-1])
    matrix[..., :rotary_dim, :rotary_dim] = rotation_matrix(positions, rotary_dim, base, layout)
    return np.einsum("...ij,...j->...i", matrix, x).astype(x.dtype)


def score_bound(distances, dim, base=10000.0):
    phases = np.exp(1j * rope_angles(distances, dim, base))
    sums = phases @ np.triu(np.ones((dim // 2, dim // 2)))
    return np.abs(sums).sum(axis=-1) / (dim // 2)


def fixed_table_cache():
    memory = {}

    def tables(length, offset, dim, base=10000.0):
        if length < 0:
            raise ValueError("length must not be negative but is " + str(length))
        if offset < 0:
            raise ValueError("offset must not be negative but is " + str(offset))
        question = f"{length} rows from {offset}, width {dim}, base {base!r}"
        if question not in memory:
            angles = rope_angles(np.arange(offset, offset + length), dim, base)
            memory[question] = np.stack([np.cos(angles), np.sin(angles)])
            memory[question].setflags(write=False)
        cos, sin = memory[question]
        return cos, sin

    return tables


class RotaryEmbedding(torch.nn.Module):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__()
        check_dim(head_dim, "head_dim")
        check_base(base)
        self.first, self.second = (c.tolist() for c in coordinates(head_dim, layout))
        self.head_dim = head_dim
        self.base = base

    def forward(self, q, k, positions):
        if q.dim() != 4 or k.dim() != 4:
            raise ValueError("q and k have four axes: batch, heads, seq, head_dim")
        if (q.shape[0], *q.shape[2:]) != (k.shape[0], *k.shape[2:]):
            raise ValueError("q and k may differ in their heads only")
        if list(positions.shape) not in ([q.shape[2]], [q.shape[0], q.shape[2]]):
            raise ValueError("positions must be (seq,) or (batch, seq)")
        if not q.is_floating_point():
            raise ValueError("q must be floating")
        with torch.autocast(device_type=q.device.type, enabled=False):
            wide = torch.float64 if q.dtype == torch.float64 else torch.float32
            pair = torch.arange(self.head_dim // 2, device=q.device, dtype=torch.float64)
            angles = positions.to(q.device).double()[..., None] * self.base ** (
                -2.0 * pair / self.head_dim
            )
            matrix = torch.zeros(
                *angles.shape[:-1], self.head_dim, self.head_dim, dtype=wide, device=q.device
            )
            matrix[..., self.first, self.first] = torch.cos(angles).to(wide)
            matrix[..., self.second, self.second] = torch.cos(angles).to(wide)
            matrix[..., self.first, self.second] = -torch.sin(angles).to(wide)
            matrix[..., self.second, self.first] = torch.sin(angles).to(wide)
            if positions.dim() == 2:
                matrix = matrix[:, None]
            return tuple(
                torch.einsum("...ij,...j->...i", matrix, x.to(wide)).to(x.dtype) for x in (q, k)
            )


def fused_rotation(q, k, cos, sin):
    matrix = torch.stack([torch.stack([cos, -sin]), torch.stack([sin, cos])]).double()

    def rotate(x):
        pairs = x.double().unflatten(-1, (2, -1))
        return torch.einsum("ijtp,bhtjp->bhtip", matrix, pairs).flatten(-2).to(x.dtype)

    return rotate(q), rotate(k)

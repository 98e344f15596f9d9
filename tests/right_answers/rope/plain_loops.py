"""No vector arithmetic: Python loops and the math module, one pair after the other."""

import itertools
import math

import numpy as np
import torch


def turn(a, b, angle):
    return a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)


def ladder(dim, base):
    if not isinstance(dim, (int, np.integer)) or dim < 1 or dim % 2:
        raise ValueError(f"dim={dim!r} is not an even positive number")
    if not (math.isfinite(base) and base > 0):
        raise ValueError(f"base={base!r} is not positive")
    thetas = []
    for i in range(int(dim) // 2):
        thetas.append(1.0 / base ** (2 * i / dim))
    return thetas


def pairs(dim, layout):
    if layout == "interleaved":
        return [(2 * i, 2 * i + 1) for i in range(dim // 2)]
    if layout == "half":
        return [(i, i + dim // 2) for i in range(dim // 2)]
    raise ValueError(f"layout={layout!r}: choose 'half' or 'interleaved'")


def output_type(array):
    return array.dtype if array.dtype.kind == "f" else np.dtype("float64")


def every_index(shape):
    return itertools.product(*(range(n) for n in shape))


def rotate_2d(vector, angle):
    vector, angle = np.asarray(vector), np.asarray(angle)
    if not vector.shape or vector.shape[-1] != 2:
        raise ValueError(f"vector of shape {vector.shape} is not in the plane")
    shape = np.broadcast_shapes(vector.shape[:-1], angle.shape)
    vectors, angles = np.broadcast_to(vector, (*shape, 2)), np.broadcast_to(angle, shape)
    result = np.zeros((*shape, 2), dtype=output_type(vector))
    for index in every_index(shape):
        a, b = vectors[index]
        result[index] = turn(float(a), float(b), float(angles[index]))
    return result


def rope_angles(positions, dim, base=10000.0):
    thetas = ladder(dim, base)
    positions = np.asarray(positions)
    result = np.zeros((*positions.shape, len(thetas)))
    for index in every_index(positions.shape):
        for i, theta in enumerate(thetas):
            result[index][i] = float(positions[index]) * theta
    return result


def apply_rope(x, positions, base=10000.0, layout="interleaved"):
    x = np.asarray(x)
    return apply_partial_rope(x, positions, x.shape[-1], base, layout)


def apply_partial_rope(x, positions, rotary_dim, base=10000.0, layout="interleaved"):
    x, positions = np.asarray(x), np.asarray(positions)
    if rotary_dim < 2 or rotary_dim > x.shape[-1]:
        raise ValueError(f"rotary_dim={rotary_dim} for a width of {x.shape[-1]}")
    thetas = ladder(rotary_dim, base)
    if x.ndim < 2:
        raise ValueError("x needs a sequence axis")
    shared = positions.ndim == 1
    if positions.shape != (x.shape[-2:-1] if shared else x.shape[:-1]):
        raise ValueError(f"positions {positions.shape} against x {x.shape}")
    result = np.array(x, dtype=output_type(x))
    for index in every_index(x.shape[:-1]):
        m = float(positions[index[-1]] if shared else positions[index])
        for (first, second), theta in zip(pairs(rotary_dim, layout), thetas, strict=True):
            a, b = float(x[index][first]), float(x[index][second])
            result[index][first], result[index][second] = turn(a, b, m * theta)
    return result


def rope_scores(q, k, q_positions, k_positions, base=10000.0):
    q, k = np.asarray(q), np.asarray(k)
    if q.ndim != 2 or k.ndim != 2 or q.shape[1] != k.shape[1]:
        raise ValueError(f"q {q.shape} and k {k.shape}")
    left = apply_rope(q.astype(float), q_positions, base)
    right = apply_rope(k.astype(float), k_positions, base)
    scores = np.zeros((len(q), len(k)), dtype=output_type(q))
    for m, row in enumerate(left):
        for n, column in enumerate(right):
            scores[m, n] = math.fsum(a * b for a, b in zip(row, column, strict=True)) / math.sqrt(
                q.shape[1]
            )
    return scores


def interleaved_to_half(weight, num_heads):
    weight = np.asarray(weight)
    rows, _ = weight.shape
    if num_heads < 1 or rows == 0 or rows % num_heads or (rows // num_heads) % 2:
        raise ValueError(f"{rows} rows in {num_heads} heads")
    head_dim = rows // num_heads
    result = np.zeros(weight.shape, dtype=output_type(weight))
    for head in range(num_heads):
        start = head * head_dim
        for i in range(head_dim // 2):
            result[start + i] = weight[start + 2 * i]
            result[start + i + head_dim // 2] = weight[start + 2 * i + 1]
    return result


def score_bound(distances, dim, base=10000.0):
    thetas = ladder(dim, base)
    distances = np.asarray(distances)
    result = np.zeros(distances.shape)
    for index in every_index(distances.shape):
        real = imaginary = total = 0.0
        for theta in thetas:
            real += math.cos(float(distances[index]) * theta)
            imaginary += math.sin(float(distances[index]) * theta)
            total += math.hypot(real, imaginary)
        result[index] = total / len(thetas)
    return result


def fixed_table_cache():
    rows = {}

    def row(position, dim, base):
        if (position, dim, base) not in rows:
            angles = [position * theta for theta in ladder(dim, base)]
            rows[position, dim, base] = (
                [math.cos(angle) for angle in angles],
                [math.sin(angle) for angle in angles],
            )
        return rows[position, dim, base]

    def tables(length, offset, dim, base=10000.0):
        if min(length, offset) < 0:
            raise ValueError(f"length={length}, offset={offset}")
        width = len(ladder(dim, base))
        cos, sin = np.zeros((length, width)), np.zeros((length, width))
        for n in range(length):
            cos[n], sin[n] = row(offset + n, dim, base)
        return cos, sin

    return tables


class RotaryEmbedding(torch.nn.Module):
    def __init__(self, head_dim, base=10000.0, layout="half"):
        super().__init__()
        self.thetas = ladder(head_dim, base)
        self.pairs = pairs(head_dim, layout)

    def forward(self, q, k, positions):
        for x in (q, k):
            if x.shape[-1] != 2 * len(self.pairs) or x.ndim != 4 or not x.dtype.is_floating_point:
                raise ValueError(f"cannot rotate {x.dtype} of shape {tuple(x.shape)}")
        if q.shape[0] != k.shape[0] or q.shape[2] != k.shape[2]:
            raise ValueError("q and k are not of the same batch and length")
        if positions.shape not in (q.shape[2:3], (q.shape[0], q.shape[2])):
            raise ValueError(f"positions of shape {tuple(positions.shape)}")
        return self.rotate(q, positions), self.rotate(k, positions)

    def rotate(self, x, positions):
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        result = torch.empty(x.shape, dtype=wide, device=x.device)
        where = positions.to(x.device, torch.float64)
        if where.dim() == 2:
            where = where.unsqueeze(1)
        for (first, second), theta in zip(self.pairs, self.thetas, strict=True):
            cos, sin = torch.cos(where * theta).to(wide), torch.sin(where * theta).to(wide)
            a, b = x[..., first].to(wide), x[..., second].to(wide)
            result[..., first] = a * cos - b * sin
            result[..., second] = a * sin + b * cos
        return result.to(x.dtype)


def fused_rotation(q, k, cos, sin):
    out = []
    for x in (q, k):
        half = x.shape[-1] // 2
        new = torch.zeros_like(x)
        for t, i in itertools.product(range(x.shape[2]), range(half)):
            a, b = x[:, :, t, i].float(), x[:, :, t, i + half].float()
            c, s = float(cos[t, i]), float(sin[t, i])
            new[:, :, t, i], new[:, :, t, i + half] = a * c - b * s, a * s + b * c
        out.append(new)
    return out

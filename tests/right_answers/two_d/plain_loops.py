"""No vector arithmetic: Python loops and the math module, one patch and one pair at a time."""

import itertools
import math

import numpy as np
import torch


def whole(number, least, name):
    if isinstance(number, float) or int(number) < least:
        raise ValueError(f"{name}={number!r}: an integer from {least} on is needed")
    return int(number)


def ladder(dim, base):
    """Frequencies of the pairs of one half."""
    if not (math.isfinite(base) and base > 0):
        raise ValueError(f"base={base!r} is not positive")
    half = dim // 2
    return [1.0 / base ** (2 * i / half) for i in range(half // 2)]


def quarters(dim):
    if dim < 4 or dim % 4 != 0:
        raise ValueError(f"{dim} is no positive multiple of 4")


def output_type(array):
    return array.dtype if array.dtype.kind == "f" else np.dtype("float64")


def grid_positions(height, width):
    height, width = whole(height, 1, "height"), whole(width, 1, "width")
    rows, cols = [], []
    for row in range(height):
        for column in range(width):
            rows.append(row)
            cols.append(column)
    return np.array(rows), np.array(cols)


def sincos_2d(height, width, dim, base=10000.0, first="row"):
    height, width = whole(height, 1, "height"), whole(width, 1, "width")
    quarters(dim)
    if first != "row" and first != "column":
        raise ValueError(f"first={first!r}")
    thetas = ladder(dim, base)
    table = []
    for row in range(height):
        for column in range(width):
            vector = []
            for position in (row, column) if first == "row" else (column, row):
                for theta in thetas:
                    vector.append(math.sin(position * theta))
                    vector.append(math.cos(position * theta))
            table.append(vector)
    return np.array(table)


def turn_all(x, angle_of):
    """Every pair p of vector t of x by angle_of(t, p)."""
    result = np.zeros(x.shape, dtype=output_type(x))
    for index in itertools.product(*(range(n) for n in x.shape[:-1])):
        for p in range(x.shape[-1] // 2):
            angle = angle_of(index[-1], p)
            a, b = float(x[index][2 * p]), float(x[index][2 * p + 1])
            result[index][2 * p] = a * math.cos(angle) - b * math.sin(angle)
            result[index][2 * p + 1] = a * math.sin(angle) + b * math.cos(angle)
    return result


def lists_of_places(x, rows, cols):
    rows, cols = np.asarray(rows), np.asarray(cols)
    if x.ndim < 2 or rows.ndim != 1 or cols.ndim != 1:
        raise ValueError("rows and cols are lists of numbers, x has an axis for them")
    if not len(rows) == len(cols) == x.shape[-2]:
        raise ValueError("one row and one column for every vector")
    return rows.tolist(), cols.tolist()


def axial_rope_2d(x, rows, cols, base=100.0):
    x = np.asarray(x)
    rows, cols = lists_of_places(x, rows, cols)
    quarters(x.shape[-1])
    thetas = ladder(x.shape[-1], base)

    def angle_of(t, p):
        if p < len(thetas):
            return rows[t] * thetas[p]
        return cols[t] * thetas[p - len(thetas)]

    return turn_all(x, angle_of)


def mixed_rope_2d(x, rows, cols, row_freqs, col_freqs):
    x = np.asarray(x)
    rows, cols = lists_of_places(x, rows, cols)
    dim = x.shape[-1]
    if dim % 2 or dim == 0:
        raise ValueError(f"{dim} coordinates are no pairs")
    row_freqs, col_freqs = np.asarray(row_freqs), np.asarray(col_freqs)
    for freqs in (row_freqs, col_freqs):
        if freqs.ndim != 1 or freqs.size != dim // 2:
            raise ValueError("one frequency for each pair")
    f, g = row_freqs.tolist(), col_freqs.tolist()
    return turn_all(x, lambda t, p: rows[t] * f[p] + cols[t] * g[p])


def resize_grid(table, old_hw, new_hw):
    table = np.asarray(table)
    h, w = (whole(n, 1, "old size") for n in old_hw)
    new_h, new_w = (whole(n, 1, "new size") for n in new_hw)
    if table.ndim != 2 or table.shape[0] != h * w:
        raise ValueError(f"{table.shape} is no table of {h * w} patches")

    def place(j, old, new):
        s = min(max((j + 0.5) * old / new - 0.5, 0.0), old - 1.0)
        below = int(math.floor(s))
        return below, min(below + 1, old - 1), s - below

    result = np.zeros((new_h * new_w, table.shape[1]), dtype=output_type(table))
    for i in range(new_h):
        top, bottom, v = place(i, h, new_h)
        for j in range(new_w):
            left, right, u = place(j, w, new_w)
            for c in range(table.shape[1]):
                above = float(table[top * w + left, c]) * (1 - u)
                above += float(table[top * w + right, c]) * u
                below = float(table[bottom * w + left, c]) * (1 - u)
                below += float(table[bottom * w + right, c]) * u
                result[i * new_w + j, c] = above * (1 - v) + below * v
    return result


def fixed_grid():
    def centres(height, width):
        height, width = whole(height, 1, "height"), whole(width, 1, "width")
        result = []
        for t in range(height * width):
            row, column = t // width, t % width
            result.append([(2 * row + 1) / (2 * height), (2 * column + 1) / (2 * width)])
        return np.array(result)

    return centres


class AxialRotaryEmbedding2D(torch.nn.Module):
    def __init__(self, head_dim, base=100.0):
        super().__init__()
        quarters(head_dim)
        self.thetas = ladder(head_dim, base)
        self.head_dim = head_dim

    def forward(self, q, k, height, width, num_prefix_tokens=0):
        height, width = whole(height, 1, "height"), whole(width, 1, "width")
        prefix = whole(num_prefix_tokens, 0, "num_prefix_tokens")
        if q.shape[0] != k.shape[0] or q.shape[2:] != k.shape[2:]:
            raise ValueError(f"q {tuple(q.shape)} and k {tuple(k.shape)} do not go together")
        if q.shape[2] != prefix + height * width or q.shape[3] != self.head_dim:
            raise ValueError(f"q {tuple(q.shape)} does not fit {prefix} + {height}·{width}")
        angles = []
        for row in range(height):
            for column in range(width):
                angles.append([row * t for t in self.thetas] + [column * t for t in self.thetas])
        cos = [[math.cos(a) for a in line] for line in angles]
        sin = [[math.sin(a) for a in line] for line in angles]
        cos, sin = torch.tensor(cos, dtype=torch.float64), torch.tensor(sin, dtype=torch.float64)
        results = []
        for x in (q, k):
            result = x.clone()
            even, odd = x[:, :, prefix:, 0::2].double(), x[:, :, prefix:, 1::2].double()
            result[:, :, prefix:, 0::2] = (even * cos - odd * sin).to(x.dtype)
            result[:, :, prefix:, 1::2] = (even * sin + odd * cos).to(x.dtype)
            results.append(result)
        return tuple(results)

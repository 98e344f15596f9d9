"""Nothing but math and lists until the last line; one number at a time."""

import math

import numpy as np
import torch


def check_width(dim):
    if not (dim > 0 and dim % 2 == 0):
        raise ValueError("bad dim " + str(dim))


def check_base(base):
    if not base > 0:
        raise ValueError("bad base " + str(base))


def frequencies(dim, base=10000.0):
    check_width(dim)
    check_base(base)
    found = []
    for coordinate in range(0, dim, 2):
        found.append(1 / math.pow(base, coordinate / dim))
    return np.array(found)


def wavelengths(dim, base=10000.0):
    check_width(dim)
    check_base(base)
    return np.array([math.tau * math.pow(base, 2 * i / dim) for i in range(dim // 2)])


def one_vector(position, dim, base):
    vector = []
    for i in range(dim // 2):
        angle = position / math.pow(base, 2 * i / dim)
        vector.append(math.sin(angle))
        vector.append(math.cos(angle))
    return vector


def sinusoidal_encoding(positions, dim, base=10000.0):
    check_width(dim)
    check_base(base)

    def walk(p):
        return [walk(q) for q in p] if isinstance(p, list) else one_vector(float(p), dim, base)

    return np.array(walk(np.asarray(positions).tolist()), dtype=np.float64)


def shift_matrix(offset, dim, base=10000.0):
    check_width(dim)
    check_base(base)
    rows = [[0.0] * dim for _ in range(dim)]
    for i in range(dim // 2):
        angle = float(offset) / math.pow(base, 2 * i / dim)
        rows[2 * i][2 * i] = math.cos(angle)
        rows[2 * i][2 * i + 1] = math.sin(angle)
        rows[2 * i + 1][2 * i] = -math.sin(angle)
        rows[2 * i + 1][2 * i + 1] = math.cos(angle)
    return np.array(rows)


def decode_position(encoding, max_position, base=10000.0):
    encoding = np.asarray(encoding)
    if len(encoding.shape) != 1:
        raise ValueError("a vector, please, not " + str(encoding.shape))
    numbers = [float(number) for number in encoding.tolist()]
    check_width(len(numbers))
    check_base(base)
    if max_position < 0:
        raise ValueError("bad max_position " + str(max_position))
    best, best_error = None, 0.05
    for position in range(max_position):
        error = 0.0
        for i in range(len(numbers) // 2):
            angle = position / math.pow(base, 2 * i / len(numbers))
            error = max(error, abs(math.sin(angle) - numbers[2 * i]))
            error = max(error, abs(math.cos(angle) - numbers[2 * i + 1]))
            if error > best_error:
                break
        if error <= best_error and (best is None or error < best_error):
            best, best_error = position, error
    if best is None:
        raise ValueError("nothing fits")
    return best


def fixed_layout(positions, dim, base=10000.0):
    check_width(dim)
    check_base(base)
    flat = [float(p) for p in np.asarray(positions).ravel()]
    table = np.zeros((len(flat), dim))
    for row, position in enumerate(flat):
        for i in range(dim // 2):
            angle = position * base ** -(i / (dim / 2))
            table[row, 2 * i] = math.sin(angle)
            table[row, 2 * i + 1] = math.cos(angle)
    return table.reshape(np.asarray(positions).shape + (dim,))


class SinusoidalEncoding(torch.nn.Module):
    def __init__(self, dim, max_len, base=10000.0):
        super().__init__()
        check_width(dim)
        check_base(base)
        self.table = [one_vector(position, dim, base) for position in range(max_len)]
        self.dim = dim

    def forward(self, x, offset=0):
        if offset < 0:
            raise ValueError("offset " + str(offset) + " is negative")
        if offset + x.size(1) > len(self.table):
            raise ValueError("only " + str(len(self.table)) + " rows")
        if x.size(2) != self.dim:
            raise RuntimeError("width " + str(x.size(2)))
        out = []
        for t in range(x.size(1)):
            row = torch.tensor(self.table[offset + t], dtype=torch.float32, device=x.device)
            out.append((x[:, t].to(torch.promote_types(x.dtype, torch.float32)) + row).to(x.dtype))
        return torch.stack(out, dim=1)

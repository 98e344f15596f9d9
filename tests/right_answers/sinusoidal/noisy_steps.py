"""Right, and loud about it; the next position is always the one before, turned once more."""

import math
import warnings

import numpy as np
import torch

print("loading my answers ...")
LOG = []


def say(*words):
    LOG.append(words)
    print("[debug]", *words)


def frequencies(dim, base=10000.0):
    say("frequencies", dim, base)
    try:
        half, rest = divmod(dim, 2)
        if rest or half < 1:
            raise ArithmeticError
    except ArithmeticError:
        raise ValueError(f"{dim} is no even width") from None
    if base <= 0:
        raise ValueError(f"logarithm of {base}?")
    result = np.empty(half)
    for i in range(half):
        result[i] = math.exp(-2 * i / dim * math.log(base))
    return result


def wavelengths(dim, base=10000.0):
    with np.errstate(all="warn"):
        return np.divide(math.tau, frequencies(dim, base))


def sinusoidal_encoding(positions, dim, base=10000.0):
    warnings.warn("angles are not reduced", stacklevel=2)
    turns = frequencies(dim, base)
    p = np.atleast_1d(np.array(positions, dtype=np.float64))
    columns = []
    for turn in turns:
        columns += [np.sin(p * turn), np.cos(p * turn)]
    return np.stack(columns, axis=-1).reshape(*np.shape(positions), dim)


def shift_matrix(offset, dim, base=10000.0):
    """From the encodings of the offset alone: they hold its sines and cosines."""
    s, c = sinusoidal_encoding(float(offset), dim, base).reshape(-1, 2).T
    m = np.diag(np.repeat(c, 2))
    for i in range(dim // 2):
        m[2 * i, 2 * i + 1] += s[i]
        m[2 * i + 1, 2 * i] -= s[i]
    say("determinant", np.linalg.det(m))
    return m


def decode_position(encoding, max_position, base=10000.0):
    """Candidates from the fastest hand alone: its angle, plus any number of turns."""
    e = np.array(encoding, dtype=np.float64)
    if e.ndim != 1 or max_position < 0:
        raise ValueError(f"encoding {e.shape}, max_position {max_position}")
    turns = frequencies(e.size, base)
    start = math.atan2(e[0], e[1])
    candidates = set()
    for lap in range(-1, int(max_position / math.tau) + 2):
        middle = start + lap * math.tau
        candidates |= set(range(math.floor(middle - 0.5), math.ceil(middle + 0.5) + 1))
    best = None
    for position in sorted(candidates):
        if 0 <= position < max_position:
            angles = position * turns
            error = np.abs(np.column_stack([np.sin(angles), np.cos(angles)]).ravel() - e).max()
            if error <= 0.05 and (best is None or error < best[0]):
                best = error, position
    if best is None:
        raise ValueError("no such time on this clock")
    say("error", best[0])
    return np.int64(best[1])


def fixed_layout(positions, dim, base=10000.0):
    p = np.asarray(positions, dtype=np.float64)
    out = np.full((*p.shape, dim // 2, 2), np.nan) if dim > 0 else None
    for i, turn in enumerate(frequencies(dim, base)):
        out[..., i, 0], out[..., i, 1] = np.sin(p * turn), np.cos(p * turn)
    assert not np.isnan(out).any(), "some coordinate was forgotten"
    return out.reshape(*p.shape, dim)


class SinusoidalEncoding(torch.nn.Module):
    def __init__(self, dim, max_len, base=10000.0):
        super().__init__()
        self.register_buffer("dummy", torch.empty(0), persistent=False)
        self.turns = torch.from_numpy(frequencies(dim, base)).float().tolist()
        self.max_len = max_len
        say("module", dim, max_len, base)

    def forward(self, x, offset=0):
        warnings.warn("adding", stacklevel=2)
        b, n, d = x.shape
        if offset < 0 or n + offset > self.max_len:
            raise ValueError(f"[{offset}, {offset + n}) is not within [0, {self.max_len})")
        if d != 2 * len(self.turns):
            raise TypeError(f"{d} coordinates, {len(self.turns)} frequencies")
        positions = torch.linspace(offset, offset + n - 1, n, dtype=torch.float32, device=x.device)
        out = torch.empty_like(x)
        for i, turn in enumerate(self.turns):
            out[..., 2 * i] = x[..., 2 * i] + torch.sin(positions * turn)
            out[..., 2 * i + 1] = x[..., 2 * i + 1] + torch.cos(positions * turn)
        return out


print("loaded")

"""Ladders as outer products and cumulative products, exact fractions, a module with honest caches.

Whatever is remembered is looked up by all that it depends on. Results come as a list or a named
tuple, since a pair is a pair.
"""

import functools
from collections import namedtuple
from fractions import Fraction

import numpy as np
import torch

Rotated = namedtuple("Rotated", "q k")


@functools.cache
def rungs(dim, base):
    if dim % 2 or dim < 2:
        raise ValueError(f"{dim} coordinates make no pairs")
    if not base > 0:
        raise ValueError(f"a base of {base}")
    rung = np.float64(base) ** (-2.0 / dim)
    return tuple(np.concatenate([[1.0], np.cumprod(np.full(dim // 2 - 1, rung))]).tolist())


def interpolate_positions(positions, trained_length, target_length):
    if trained_length < 1 or target_length < 1:
        raise RuntimeError("a text has tokens")
    ratio = float(min(Fraction(1), Fraction(trained_length, target_length)))
    return np.einsum("...,->...", np.array(positions, dtype=np.float64), ratio)


def ntk_base(base, factor, dim):
    rungs(dim, base)
    if factor <= 0:
        raise ArithmeticError("factor")
    if dim == 2:
        raise ValueError("dim 2")
    pairs = dim // 2
    return base * factor ** (pairs / (pairs - 1))


def dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length):
    if sequence_length < 0 or original_length <= 0 or factor <= 0:
        raise ArithmeticError("numbers")
    if sequence_length <= original_length:
        return np.array(rungs(dim, base))
    rungs(dim, base)
    stretch = factor * (sequence_length - original_length) / original_length + 1
    return np.array(rungs(dim, ntk_base(base, stretch, dim)))


@functools.cache
def yarn_weights(dim, base, original_length, beta_fast, beta_slow, truncate):
    turns_left = np.log(original_length) - np.log(2 * np.pi) - np.log([beta_fast, beta_slow])
    low, high = turns_left / (2 / dim * np.log(base))
    if truncate:
        low, high = int(np.floor(low)), int(np.ceil(high))
    low, high = (low if low > 0 else 0), (high if high < dim - 1 else dim - 1)
    high = high + 1e-3 if high == low else high
    i = np.arange(dim / 2)
    return np.select([i <= low, i >= high], [0.0, 1.0], (i - low) / (high - low))


def yarn_frequencies(
    dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True
):
    plain = np.array(rungs(dim, base))
    if factor <= 0 or original_length <= 0:
        raise ArithmeticError("numbers")
    w = yarn_weights(dim, base, original_length, beta_fast, beta_slow, bool(truncate))
    return np.einsum("bp,bp->p", np.stack([1 - w, w]), np.stack([plain, plain / factor]))


def yarn_attention_factor(factor):
    if factor <= 0:
        raise ArithmeticError("factor")
    return np.array(1.0 + np.log(factor) * 0.1 * (factor > 1))


def llama3_frequencies(
    dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0
):
    plain = np.array(rungs(dim, base))
    if factor <= 0 or original_length <= 0:
        raise ArithmeticError("numbers")
    wavelengths = 2 * np.pi / plain
    long, short = original_length / low_freq_factor, original_length / high_freq_factor
    w = (original_length / wavelengths - low_freq_factor) / (high_freq_factor - low_freq_factor)
    return np.piecewise(
        plain,
        [wavelengths > long, wavelengths < short],
        [plain[wavelengths > long] / factor, plain[wavelengths < short], 0.0],
    ) + np.where(
        (wavelengths <= long) & (wavelengths >= short), (1 - w) * plain / factor + w * plain, 0
    )


def longrope_frequencies(dim, base, short_factors, long_factors, original_length, sequence_length):
    plain = np.array(rungs(dim, base))
    if original_length <= 0 or sequence_length < 0:
        raise ArithmeticError("lengths")
    both = [np.array(f, dtype=np.float64) for f in (short_factors, long_factors)]
    if any(f.shape != (dim // 2,) for f in both):
        raise ValueError("sets")
    factors = both[int(sequence_length > original_length)]
    if (factors <= 0).any():
        raise ArithmeticError("factors")
    return np.diag(1 / factors) @ plain


def fixed_yarn_ramp():
    seen = {}

    def blend(frequencies, factor, low, high):
        if factor <= 0 or low > high:
            raise ValueError(f"{factor} {low} {high}")
        f = np.array(frequencies)
        key = (len(f), factor, low, high)
        if key not in seen:
            top = high + 0.001 if high == low else high
            r = np.minimum(1, np.maximum(0, (np.arange(len(f)) - low) / (top - low)))
            seen[key] = 1 - r * (1 - 1 / factor)
        dtype = f.dtype if f.dtype.kind == "f" else np.float64
        return (f * seen[key]).astype(dtype)

    return blend


class ScaledRotaryEmbedding(torch.nn.Module):
    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        super().__init__()
        plain = np.array(rungs(head_dim, base))
        if scaling not in ("linear", "ntk", "yarn", "llama3"):
            raise ValueError("scaling is one of: linear, ntk, yarn, llama3. Not " + repr(scaling))
        if factor <= 0 or original_length <= 0:
            raise ArithmeticError("factor, original_length")
        if scaling == "ntk":
            plain = np.array(rungs(head_dim, ntk_base(base, factor, head_dim)))
        if scaling == "linear":
            plain = plain / factor
        if scaling == "yarn":
            plain = yarn_frequencies(head_dim, base, factor, original_length)
        if scaling == "llama3":
            plain = llama3_frequencies(head_dim, base, factor, original_length)
        self.sharp = float(yarn_attention_factor(factor)) if scaling == "yarn" else 1.0
        self.thetas, self.dim = tuple(plain.tolist()), head_dim
        self.known = {}  # (position, device) -> its block of cosines and sines

    def block(self, position, device):
        if (position, device) not in self.known:
            angles = torch.tensor(self.thetas, dtype=torch.float64, device=device) * position
            self.known[position, device] = self.sharp * torch.stack([angles.cos(), angles.sin()])
        return self.known[position, device]

    def forward(self, q, k, positions):
        n = q.shape[2]
        good = positions.shape in [(n,), (q.shape[0], n)] and k.shape[::2] == q.shape[::2]
        if not (good and q.shape[3] == k.shape[3] == self.dim):
            raise TypeError("shapes")
        blocks = [self.block(p, q.device) for p in positions.flatten().tolist()]
        cos, sin = torch.stack(blocks, dim=1).reshape(2, -1, 1, n, self.dim // 2)
        with torch.autocast(q.device.type, enabled=False):
            return Rotated(self.turn(q, cos, sin), self.turn(k, cos, sin))

    def turn(self, x, cos, sin):
        turns = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
        pairs = x.double().unflatten(-1, (2, -1)).transpose(-1, -2).unsqueeze(-1)
        turned = (turns @ pairs).squeeze(-1)  # a 2×2 matrix for each pair
        return turned.transpose(-1, -2).flatten(-2).to(x.dtype)

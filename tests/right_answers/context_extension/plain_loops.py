"""No vector arithmetic: one pair after the other, with the math module."""

import math

import numpy as np
import torch


def ladder(dim, base):
    if not isinstance(dim, (int, np.integer)) or dim < 2 or dim % 2 == 1:
        raise ValueError(f"dim={dim!r} has no pairs")
    if not base > 0:
        raise ValueError(f"base={base!r}")
    return [math.exp(-2 * i / dim * math.log(base)) for i in range(dim // 2)]


def positive(*numbers):
    for number in numbers:
        if number <= 0:
            raise ValueError(f"{number} is not positive")


def interpolate_positions(positions, trained_length, target_length):
    positive(trained_length, target_length)
    flat = [float(p) for p in np.ravel(positions)]
    if target_length > trained_length:
        flat = [p * trained_length / target_length for p in flat]
    return np.array(flat, dtype=np.float64).reshape(np.shape(positions))


def ntk_base(base, factor, dim):
    ladder(dim, base)
    positive(factor)
    if dim == 2:
        raise ValueError("one pair only")
    return base * math.exp(dim / (dim - 2) * math.log(factor))


def dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length):
    plain = ladder(dim, base)
    positive(factor, original_length)
    if sequence_length < 0:
        raise ValueError("no such text")
    if sequence_length > original_length:
        if dim == 2:
            raise ValueError("one pair only")
        stretch = factor * sequence_length / original_length - (factor - 1)
        plain = ladder(dim, base * stretch ** (dim / (dim - 2)))
    return np.array(plain)


def yarn_frequencies(
    dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True
):
    plain = ladder(dim, base)
    positive(factor, original_length, beta_fast, beta_slow)
    low = dim * math.log(original_length / (beta_fast * 2 * math.pi)) / (2 * math.log(base))
    high = dim * math.log(original_length / (beta_slow * 2 * math.pi)) / (2 * math.log(base))
    if truncate:
        low = math.floor(low)
        high = math.ceil(high)
    if low < 0:
        low = 0
    if high > dim - 1:
        high = dim - 1
    if low == high:
        high += 0.001
    result = []
    for i, theta in enumerate(plain):
        if i <= low:
            share = 0.0
        elif i >= high:
            share = 1.0
        else:
            share = (i - low) / (high - low)
        result.append(theta / factor * share + theta * (1 - share))
    return np.array(result)


def yarn_attention_factor(factor):
    positive(factor)
    if factor <= 1:
        return 1
    return 1 + math.log(factor) / 10


def llama3_frequencies(
    dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0
):
    plain = ladder(dim, base)
    positive(factor, original_length)
    result = []
    for theta in plain:
        wavelength = 2 * math.pi / theta
        if wavelength > original_length / low_freq_factor:
            result.append(theta / factor)
        elif wavelength < original_length / high_freq_factor:
            result.append(theta)
        else:
            smooth = original_length / wavelength - low_freq_factor
            smooth /= high_freq_factor - low_freq_factor
            result.append((1 - smooth) * theta / factor + smooth * theta)
    return np.array(result)


def longrope_frequencies(dim, base, short_factors, long_factors, original_length, sequence_length):
    plain = ladder(dim, base)
    positive(original_length)
    if sequence_length < 0:
        raise ValueError("no such text")
    if len(short_factors) != len(plain) or len(long_factors) != len(plain):
        raise ValueError(f"{len(plain)} factors in each set, please")
    chosen = long_factors if sequence_length > original_length else short_factors
    positive(*chosen)
    return np.array([theta / float(f) for theta, f in zip(plain, chosen, strict=True)])


def fixed_yarn_ramp():
    def blend(frequencies, factor, low, high):
        if factor <= 0:
            raise ValueError(f"factor {factor}")
        if low > high:
            raise ValueError(f"{low} > {high}")
        if low == high:
            high = low + 0.001
        result = []
        for i, theta in enumerate(frequencies):
            share = min(max((i - low) / (high - low), 0.0), 1.0)
            result.append((1 - share) * float(theta) + share * float(theta) / factor)
        dtype = np.asarray(frequencies).dtype
        return np.array(result, dtype=dtype if dtype.kind == "f" else np.float64)

    return blend


class ScaledRotaryEmbedding(torch.nn.Module):
    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        super().__init__()
        positive(factor, original_length)
        plain = ladder(head_dim, base)
        self.strength = 1.0
        if scaling == "linear":
            self.thetas = [theta / factor for theta in plain]
        elif scaling == "ntk":
            self.thetas = ladder(head_dim, ntk_base(base, factor, head_dim))
        elif scaling == "yarn":
            self.thetas = yarn_frequencies(head_dim, base, factor, original_length).tolist()
            self.strength = yarn_attention_factor(factor)
        elif scaling == "llama3":
            self.thetas = llama3_frequencies(head_dim, base, factor, original_length).tolist()
        else:
            raise ValueError(f"{scaling!r} is none of linear, ntk, yarn, llama3")
        self.head_dim = head_dim

    def forward(self, q, k, positions):
        batch, heads, seq, dim = q.shape
        if k.ndim != 4 or k.shape[0] != batch or k.shape[2] != seq or k.shape[3] != dim:
            raise ValueError("q and k differ")
        if dim != self.head_dim or k.shape[1] > heads:
            raise ValueError("wrong width or heads")
        if positions.shape == (seq,):
            rows = [positions] * batch
        elif positions.shape == (batch, seq):
            rows = list(positions)
        else:
            raise ValueError("wrong positions")
        return self.turn(q, rows), self.turn(k, rows)

    def turn(self, x, rows):
        result, half = torch.empty_like(x), self.head_dim // 2
        for b, row in enumerate(rows):
            for t, position in enumerate(row.tolist()):
                for i, theta in enumerate(self.thetas):
                    c = self.strength * math.cos(position * theta)
                    s = self.strength * math.sin(position * theta)
                    first, second = x[b, :, t, i].double(), x[b, :, t, i + half].double()
                    result[b, :, t, i] = (first * c - second * s).to(x.dtype)
                    result[b, :, t, i + half] = (first * s + second * c).to(x.dtype)
        return result

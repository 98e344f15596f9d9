"""A pair is a complex number; bands and ramps are interpolations; torch works in complex64."""

import numpy as np
import torch
from torch import nn


class Bad(ValueError):
    pass


def need(good, *what):
    if not good:
        raise Bad(" ".join(map(str, what)))


def theta(dim, base):
    need(dim > 0 and dim % 2 == 0, "dim", dim)
    need(base > 0, "base", base)
    return np.power(float(base), np.linspace(0, -1, dim // 2, endpoint=False))


def interpolate_positions(positions, trained_length, target_length):
    need(min(trained_length, target_length) > 0, "lengths", trained_length, target_length)
    ratio = trained_length / max(trained_length, target_length)
    return np.multiply(positions, ratio, dtype=np.float64)


def ntk_base(base, factor, dim):
    theta(dim, base)
    need(factor > 0, "factor", factor)
    need(dim > 2, "dim", dim)
    slowest = base ** (2 / dim - 1.0) / factor  # where the last pair has to be
    return np.float64(slowest) ** (-dim / (dim - 2))


def dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length):
    need(factor > 0 and original_length > 0 and sequence_length >= 0, "numbers")
    plain = theta(dim, base)
    if sequence_length <= original_length:
        return plain
    beyond = sequence_length / original_length - 1
    return theta(dim, ntk_base(base, 1 + factor * beyond, dim))


def yarn_frequencies(
    dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True
):
    plain = theta(dim, base)
    need(factor > 0, "factor", factor)
    need(original_length > 0, "original_length", original_length)
    betas = np.array([beta_fast, beta_slow])
    ends = dim / 2 * np.log(original_length / (2 * np.pi * betas)) / np.log(base)
    if truncate:
        ends = np.array([np.floor(ends[0]), np.ceil(ends[1])])
    low, high = np.clip(ends, [0, -np.inf], [np.inf, dim - 1])
    if low == high:
        high += 0.001
    return plain * np.interp(np.arange(dim // 2), [low, high], [1, 1 / factor])


def yarn_attention_factor(factor):
    need(factor > 0, "factor", factor)
    return np.log(np.maximum(factor, 1.0)) / 10 + 1


def llama3_frequencies(
    dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0
):
    plain = theta(dim, base)
    need(factor > 0 and original_length > 0, "numbers")
    turns = plain * original_length / (2 * np.pi)
    return plain * np.interp(turns, [low_freq_factor, high_freq_factor], [1 / factor, 1])


def longrope_frequencies(dim, base, short_factors, long_factors, original_length, sequence_length):
    plain = theta(dim, base)
    need(original_length > 0 and sequence_length >= 0, "lengths")
    sets = {"short": short_factors, "long": long_factors}
    for name, factors in sets.items():
        need(np.shape(factors) == plain.shape, name, "has shape", np.shape(factors))
        need(np.min(factors) > 0, name)
    chosen = sets["short" if sequence_length <= original_length else "long"]
    return np.divide(plain, chosen, dtype=np.float64)


def fixed_yarn_ramp():
    def blend(frequencies, factor, low, high):
        need(factor > 0, "factor", factor)
        need(low <= high, "ends", low, high)
        high = high + 0.001 * (low == high)
        f = np.asarray(frequencies)
        f = f if np.issubdtype(f.dtype, np.floating) else f.astype(float)
        weight = np.interp(np.arange(len(f)), [low, high], [1, 1 / factor])
        return np.asarray(f * weight, dtype=f.dtype)

    return blend


class ScaledRotaryEmbedding(nn.Module):
    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        super().__init__()
        need(scaling in ("linear", "ntk", "yarn", "llama3"), "linear ntk yarn llama3", scaling)
        self.given = (scaling, head_dim, base, factor, original_length)
        self.magnitude = yarn_attention_factor(factor) if scaling == "yarn" else 1.0
        need(factor > 0, "factor")
        self.frequencies()

    def frequencies(self):
        scaling, dim, base, factor, original = self.given
        if scaling == "yarn":
            return yarn_frequencies(dim, base, factor, original)
        if scaling == "llama3":
            return llama3_frequencies(dim, base, factor, original)
        if scaling == "ntk":
            return theta(dim, ntk_base(base, factor, dim))
        return theta(dim, base) / factor

    def forward(self, q, k, positions):
        (b, _, n, d), dim = q.shape, self.given[1]
        need(d == dim and k.shape[3] == dim and k.shape[0] == b and k.shape[2] == n, "shapes")
        need(positions.shape in ((n,), (b, n)), "positions", positions.shape)
        frequencies = torch.tensor(self.frequencies(), dtype=torch.float32, device=q.device)
        angles = positions.to(q.device).float()[..., None] * frequencies
        cis = torch.polar(torch.full_like(angles, float(self.magnitude)), angles)
        cis = cis if positions.ndim == 1 else cis[:, None]
        return self.turn(q, cis), self.turn(k, cis)

    def turn(self, x, cis):
        z = torch.complex(*x.float().tensor_split(2, dim=-1)) * cis
        return torch.cat((z.real, z.imag), dim=-1).to(x.dtype)

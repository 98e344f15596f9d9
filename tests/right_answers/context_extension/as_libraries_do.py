"""Written as open model code is: inv_freq, masks and rotate_half, asserts in place of errors.

The module keeps its frequencies in a plain NumPy array, which no cast reaches.
"""

import math

import numpy as np
import torch


def inv_freq(dim, base):
    if dim <= 0 or dim % 2 != 0:
        raise ValueError("dim must be even and positive: %s" % dim)  # noqa: UP031
    if base <= 0:
        raise ValueError("base must be positive: %s" % base)  # noqa: UP031
    return 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float64) / dim))


def interpolate_positions(positions, trained_length, target_length):
    assert trained_length > 0 and target_length > 0, "lengths"
    scale = max(target_length / trained_length, 1.0)
    return np.asarray(positions, dtype="float64") / scale


def ntk_base(base, factor, dim):
    inv_freq(dim, base)
    assert factor > 0
    if dim <= 2:
        raise ValueError("needs at least two pairs")
    return base * factor ** (dim / (dim - 2))


def dynamic_ntk_frequencies(dim, base, factor, original_length, sequence_length):
    assert factor > 0 and original_length > 0 and sequence_length >= 0
    plain = inv_freq(dim, base)
    seq_len = max(sequence_length, original_length)
    if seq_len == original_length:
        return plain
    if dim == 2:
        raise ValueError("a single pair")
    scaled = ((factor * seq_len / original_length) - (factor - 1)) ** (dim / (dim - 2))
    return inv_freq(dim, base * scaled)


def find_correction_dim(num_rotations, dim, base, max_position):
    return (dim * math.log(max_position / (num_rotations * 2 * math.pi))) / (2 * math.log(base))


def yarn_frequencies(
    dim, base, factor, original_length, beta_fast=32.0, beta_slow=1.0, truncate=True
):
    extrapolation = inv_freq(dim, base)
    assert factor > 0 and original_length > 0
    interpolation = 1.0 / (factor * base ** (np.arange(0, dim, 2) / dim))
    low = find_correction_dim(beta_fast, dim, base, original_length)
    high = find_correction_dim(beta_slow, dim, base, original_length)
    if truncate:
        low, high = np.floor(low), np.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    mask = 1 - np.clip((np.arange(dim // 2, dtype=np.float64) - low) / (high - low), 0, 1)
    return interpolation * (1 - mask) + extrapolation * mask


def yarn_attention_factor(factor):
    assert factor > 0, "scale"
    return 1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0


def llama3_frequencies(
    dim, base, factor, original_length, low_freq_factor=1.0, high_freq_factor=4.0
):
    plain = inv_freq(dim, base)
    assert factor > 0 and original_length > 0
    wavelen = 2 * math.pi / plain
    scaled = np.where(wavelen > original_length / low_freq_factor, plain / factor, plain)
    smooth = (original_length / wavelen - low_freq_factor) / (high_freq_factor - low_freq_factor)
    smoothed = (1 - smooth) * plain / factor + smooth * plain
    medium = (wavelen >= original_length / high_freq_factor) & (
        wavelen <= original_length / low_freq_factor
    )
    return np.where(medium, smoothed, scaled)


def longrope_frequencies(dim, base, short_factors, long_factors, original_length, sequence_length):
    inv_freq(dim, base)
    assert original_length > 0 and sequence_length >= 0
    short_factors = np.asarray(short_factors, dtype=np.float64)
    long_factors = np.asarray(long_factors, dtype=np.float64)
    if short_factors.shape != (dim // 2,) or long_factors.shape != (dim // 2,):
        raise ValueError("one factor per pair")
    factors = long_factors if sequence_length > original_length else short_factors
    assert np.all(factors > 0)
    return 1.0 / (factors * base ** (np.arange(0, dim, 2) / dim))


def fixed_yarn_ramp():
    def blend(frequencies, factor, low, high):
        if not factor > 0 or low > high:
            raise ValueError("factor or ends")
        frequencies = np.asarray(frequencies)
        dtype = np.result_type(frequencies.dtype, np.float16)
        if frequencies.dtype.kind != "f":
            dtype = np.float64
        if low == high:
            high += 0.001
        t = ((np.arange(frequencies.size) - low) / (high - low)).clip(0.0, 1.0)
        f = frequencies.astype(np.float64)
        return (f + t * (f / factor - f)).astype(dtype)

    return blend


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class ScaledRotaryEmbedding(torch.nn.Module):
    def __init__(self, head_dim, base=10000.0, scaling="yarn", factor=1.0, original_length=2048):
        super().__init__()
        known = {
            "linear": lambda: inv_freq(head_dim, base) / factor,
            "ntk": lambda: inv_freq(head_dim, ntk_base(base, factor, head_dim)),
            "yarn": lambda: yarn_frequencies(head_dim, base, factor, original_length),
            "llama3": lambda: llama3_frequencies(head_dim, base, factor, original_length),
        }
        if scaling not in known:
            raise ValueError(f"unknown scaling {scaling!r}, known: {sorted(known)}")
        inv_freq(head_dim, base)
        assert factor > 0 and original_length > 0
        self.head_dim = head_dim
        self.inv_freq = known[scaling]()
        self.attention_scaling = yarn_attention_factor(factor) if scaling == "yarn" else 1.0

    @torch.no_grad()
    def tables(self, positions, device):
        frequencies = torch.from_numpy(self.inv_freq).to(device)
        angles = positions.to(device).double().unsqueeze(-1) * frequencies
        angles = torch.cat((angles, angles), dim=-1)
        cos = angles.cos() * self.attention_scaling
        sin = angles.sin() * self.attention_scaling
        return cos.float(), sin.float()

    def forward(self, q, k, positions):
        bsz, heads, seq, dim = q.size()
        assert k.size(0) == bsz and k.size(2) == seq and k.size(3) == dim == self.head_dim
        assert heads % k.size(1) == 0
        assert positions.size() in (torch.Size([seq]), torch.Size([bsz, seq]))
        cos, sin = self.tables(positions, q.device)
        if positions.dim() == 2:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)

        def apply(x):
            y = x.to(torch.promote_types(x.dtype, torch.float32))
            return (y * cos + rotate_half(y) * sin).to(x.dtype)

        return apply(q), apply(k)

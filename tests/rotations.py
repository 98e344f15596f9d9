"""What tests of the rotating kernels compare with: the plain operations, and inputs of all kinds.

Why: both kernels promise the same, so both are asked the same.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from solutions.with_torch.rope import rope_angles, rotate_pairs

BASE = 500.0  # no default, so that a forgotten argument shows


def contiguous(batch: int, heads: int, seq: int, dim: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(batch, heads, seq, dim, dtype=dtype)


def tokens_first(batch: int, heads: int, seq: int, dim: int, dtype: torch.dtype) -> Tensor:
    """As a projection gives it: (batch, seq, heads, dim), the middle axes exchanged."""
    return torch.randn(batch, seq, heads, dim, dtype=dtype).transpose(1, 2)


def cut_out(batch: int, heads: int, seq: int, dim: int, dtype: torch.dtype) -> Tensor:
    """A slice of a joint projection of q, k and v: rows have gaps between them."""
    return torch.randn(batch, seq, heads, 3 * dim, dtype=dtype).transpose(1, 2)[..., dim : 2 * dim]


def every_second(batch: int, heads: int, seq: int, dim: int, dtype: torch.dtype) -> Tensor:
    """Even the coordinates of a row have gaps between them."""
    return torch.randn(batch, heads, seq, 2 * dim, dtype=dtype)[..., ::2]


MEMORY: list[Callable[..., Tensor]] = [contiguous, tokens_first, cut_out, every_second]


def tables(positions: Tensor, pairs: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """cos and sin for x of this dtype, a row for each position."""
    angles = rope_angles(positions, 2 * pairs, BASE)
    wide = torch.promote_types(dtype, torch.float32)
    return angles.cos().to(wide), angles.sin().to(wide)


def plain(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, layout: str) -> tuple[Tensor, Tensor]:
    """q and k, rotated by torch's own operations."""
    cos, sin = cos.unsqueeze(-3), sin.unsqueeze(-3)
    return rotate_pairs(q, cos, sin, layout), rotate_pairs(k, cos, sin, layout)


def ulps_apart(got: Tensor, wanted: Tensor) -> float:
    """The largest difference, in units in the last place of the wanted numbers of its dtype."""
    eps, tiny = torch.finfo(wanted.dtype).eps, torch.finfo(wanted.dtype).tiny
    wide = wanted.double()
    unit = eps * torch.exp2(torch.floor(torch.log2(wide.abs().clamp(min=tiny))))
    return float(((got.double() - wide).abs() / unit).max())

"""A first kernel of one's own, in Triton: the model answer to the exercise `fused_rotation`.

Why: it is short enough to be read in one go. `rope.py` beside it is the same idea grown up: any
layout, positions, gradients, and tiles that keep a GPU busy. Triton exists for Linux alone, so
nothing imports this module but what wants to run it.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _rotate_token(  # type: ignore[no-untyped-def]
    x, out, cos, sin, heads, half,
    x_batch, x_head, x_token, x_dim, out_batch, out_head, out_token, out_dim,
    HEADS: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """One program: all heads of one token, which share a row of cos and sin."""
    batch, token = tl.program_id(0), tl.program_id(1)
    head = tl.arange(0, HEADS)[:, None]  # powers of two, so that some lanes have nothing to do
    pair = tl.arange(0, PAIRS)[None, :]
    busy = (head < heads) & (pair < half)
    c = tl.load(cos + token * half + pair, pair < half)
    s = tl.load(sin + token * half + pair, pair < half)
    x += batch * x_batch + token * x_token + head * x_head + pair * x_dim
    a = tl.load(x, busy).to(tl.float32)
    b = tl.load(x + half * x_dim, busy).to(tl.float32)
    out += batch * out_batch + token * out_token + head * out_head + pair * out_dim
    tl.store(out, (a * c - b * s).to(out.dtype.element_ty), busy)
    tl.store(out + half * out_dim, (a * s + b * c).to(out.dtype.element_ty), busy)


def fused_rotation(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    def rotate(x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        batch, heads, tokens, head_dim = x.shape
        half = head_dim // 2
        lanes = {"HEADS": triton.next_power_of_2(heads), "PAIRS": triton.next_power_of_2(half)}
        _rotate_token[batch, tokens](
            x, out, cos, sin, heads, half, *x.stride(), *out.stride(), **lanes
        )
        return out

    return rotate(q), rotate(k)

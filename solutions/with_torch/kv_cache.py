"""Causal self-attention with RoPE and a cache, as a model uses it.

Why: a model runs the same layer over a whole prompt and then token by token. Both must give the
same numbers, and what ties them together is that the cache, and nothing else, knows the position.
"RoFormer" is Su et al. (2021), arXiv:2104.09864, "Attention" Vaswani et al. (2017),
arXiv:1706.03762.
"""

from typing import SupportsIndex

import torch
from torch import Tensor, nn
from torch.nn import functional

from .rope import RotaryEmbedding


class CausalSelfAttention(nn.Module):
    """Multi-head causal self-attention whose queries and keys are rotated by their positions.

    `y, cache = attention(x, cache)` goes on where the cache ends. Prefill followed by decoding, in
    pieces of any length, gives the same rows as one call with all tokens. The position of the
    first new token is the number of tokens in the cache (RoFormer, eq. 16; Attention, section
    3.2.2), and only the cache knows it: one module serves many sequences at once.

    Shapes: x (batch, seq, dim), the new tokens; y the same. Each head is dim/num_heads =: head_dim
        wide, and scores are divided by √head_dim.
    Parameters: `qkv.weight` (3·dim, dim), whose rows make q, then k, then v, in each of them the
        heads one below the other, and `proj.weight` (dim, dim), which takes the heads one beside
        the other. No biases, and nothing else to train.
    Cache: None for a new sequence; otherwise what an earlier call returned. It is yours to design.
        A call may extend the one it is given, and the caller goes on with the one it gets.
    Dtype: floating, as the parameters are; y has the dtype of x (under autocast that of autocast
        will do). Angles, sines and cosines are computed in float32 or better, also under autocast
        and after the module, or a parent that holds it, was cast. `x` is not changed;
        gradients reach it and both weights.
    Layout: pairs may be interleaved or half; one of them throughout.
    Raises: ValueError, at construction, when `num_heads` does not divide `dim` into heads of a
        positive even width, or `base` is not a finite number above 0; in `forward`, when x is not
        (batch, seq, dim), or the cache has another batch.

    >>> small = CausalSelfAttention(dim=8, num_heads=2)
    >>> five = torch.randn(1, 5, 8)
    >>> at_once, notes = small(five)
    >>> start, notes = small(five[:, :4])
    >>> last, notes = small(five[:, 4:], notes)
    >>> torch.allclose(last, at_once[:, 4:], atol=1e-5)
    True
    """

    def __init__(self, dim: int, num_heads: int, base: float = 10000.0) -> None:
        super().__init__()
        counts = isinstance(dim, SupportsIndex) and isinstance(num_heads, SupportsIndex)
        if not counts or dim < 1 or num_heads < 1 or dim % (2 * num_heads):
            raise ValueError(
                f"num_heads must divide dim into heads of even width, got dim {dim!r} and "
                f"num_heads {num_heads!r}; coordinates of a head turn in pairs"
            )
        self.dim = dim
        self.num_heads = num_heads
        self.rope = RotaryEmbedding(dim // num_heads, base, layout="interleaved")
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(
        self, x: Tensor, cache: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        if x.ndim != 3 or x.shape[-1] != self.dim or not x.is_floating_point():
            raise ValueError(
                f"x must be floating, (batch, seq, {self.dim}), got {x.dtype} {tuple(x.shape)}; "
                f"give a single sequence as x[None]"
            )
        # (batch, seq, 3·dim) → q, k, v, each (batch, heads, seq, head_dim)
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        past = 0
        if cache is not None:
            old_k, old_v = cache
            past = old_k.shape[2]
            if old_k.shape[0] != len(x):
                raise ValueError(
                    f"x must have the batch of the cache, {old_k.shape[0]}, got {len(x)}; "
                    f"start a new batch with cache=None"
                )
        positions = torch.arange(past, past + x.shape[1], device=x.device)
        q, k = self.rope(q, k, positions)
        if cache is not None:
            k = torch.cat([old_k.to(k), k], dim=2)  # the old keys stay as they were rotated
            v = torch.cat([old_v.to(v), v], dim=2)
        visible = positions[:, None] >= torch.arange(k.shape[2], device=x.device)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        return self.proj(mixed.transpose(1, 2).flatten(2)), (k, v)

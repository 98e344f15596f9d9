"""ALiBi as a model uses it: one additive mask for torch's own attention.

Why: the bias is where a low precision hurts. bfloat16 has no numbers for the odd positions above
256, so a bias that is computed in it gives one penalty to many keys; here it is float32 or better
until the softmax is done. And a bias is large, heads·n² numbers: it is made for some queries at a
time. "ALiBi" is Press, Smith and Lewis (2022), arXiv:2108.12409.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import SupportsIndex

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

QUERIES_AT_ONCE = 256  # their bias is heads·256·n_k numbers, whatever n_q is


def causal_bias(slopes: Tensor, n_q: int, n_k: int, offset: int, dtype: torch.dtype) -> Tensor:
    """The bias −slope_h·(m − n) of positions m = offset … and n = 0 …, −∞ for later keys.

    Shapes: slopes (heads,); result (heads, n_q, n_k).
    Dtype and device: `dtype`, which is float32 or better, and the device of `slopes`. Distances
        are subtracted as integers, where no two positions are alike.
    Units: positions in tokens.

    >>> causal_bias(torch.tensor([0.5]), 2, 4, 1, torch.float32)
    tensor([[[-0.5000,  0.0000,    -inf,    -inf],
             [-1.0000, -0.5000,  0.0000,    -inf]]])
    """
    q_positions = torch.arange(offset, offset + n_q, device=slopes.device)
    k_positions = torch.arange(n_k, device=slopes.device)
    distance = k_positions - q_positions[:, None]  # at most 0 for the keys that are seen
    bias = slopes.to(dtype)[:, None, None] * distance.to(dtype)  # converted once for all heads
    return bias.masked_fill_(distance > 0, float("-inf"))


def alibi_sdpa(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int = 0) -> Tensor:
    """Causal attention with ALiBi's bias, through torch's `scaled_dot_product_attention`.

    Twin of the NumPy `alibi_attention` for queries at positions offset … offset + n_q − 1 and keys
    at 0 … n_k − 1, as when queries follow on a cache (ALiBi, section 3). With p_i the position of
    query i and p_j that of key j, head h scores the pair with q_i·k_j/√d − slope_h·(p_i − p_j), and
    keys with p_j > p_i are not seen.

    Shapes: q (batch, heads, n_q, d), k and v (batch, heads, n_k, d), slopes (heads,);
        result like q. Nothing broadcasts.
    Dtype: floating. The result keeps the dtype and device of q, also under autocast. The bias is
        computed in float32 or better, slopes and distances included, whatever the dtype of q. No
        input is changed; gradients reach q, k and v.
    Units: offset in tokens: how many tokens stand before the first query.
    Raises: when offset < 0 or offset + n_q > n_k, where a query would have no key of its own; and
        when the shapes do not go together.

    >>> q = k = torch.zeros(1, 1, 2, 2)
    >>> v = torch.tensor([[[[0.0, 1.0], [1.0, 0.0]]]])
    >>> alibi_sdpa(q, k, v, slopes=torch.tensor([3.0]).log())
    tensor([[[[0.0000, 1.0000],
              [0.7500, 0.2500]]]])
    """
    for name, x in (("q", q), ("k", k), ("v", v), ("slopes", slopes)):
        if not x.is_floating_point():
            raise TypeError(f"{name} must be floating, got {x.dtype}; convert it with .float()")
    if q.ndim != 4 or k.ndim != 4 or k.shape != (*q.shape[:2], k.shape[2], q.shape[3]):
        raise ValueError(
            f"q must be (batch, heads, n_q, d) and k (batch, heads, n_k, d), "
            f"got {tuple(q.shape)} and {tuple(k.shape)}; repeat grouped keys before the call"
        )
    if v.shape != k.shape:
        raise ValueError(
            f"v must have the shape of k, got {tuple(v.shape)} and {tuple(k.shape)}; "
            f"each key needs its own value"
        )
    heads, n_q, n_k = q.shape[1], q.shape[2], k.shape[2]
    if slopes.shape != (heads,):
        raise ValueError(
            f"slopes must be ({heads},), one for each head, got {tuple(slopes.shape)}; "
            f"see alibi_slopes"
        )
    if not isinstance(offset, SupportsIndex):
        raise TypeError(f"offset must be an integer, got {offset!r}; it counts tokens")
    offset = torch.sym_int(offset)  # operator.index would make it a constant of a compiled graph
    if offset < 0 or offset + n_q > n_k:
        raise ValueError(
            f"queries must stand at positions that have keys: offset ≥ 0 and offset + n_q ≤ n_k, "
            f"got offset {offset}, {n_q} queries and {n_k} keys; pass all the keys of the cache"
        )
    dtype = torch.promote_types(q.dtype, torch.float32)
    # torch wants queries and mask in one dtype. Going up with the queries keeps the bias whole;
    # autocast, which not every device has, would take both down again.
    device = q.device.type
    can_autocast = torch.amp.is_autocast_available(device)
    with torch.autocast(device, enabled=False) if can_autocast else nullcontext():
        return _in_steps(
            q.to(dtype), k.to(dtype), v.to(dtype), slopes.to(dtype).to(q.device), offset
        ).to(q.dtype)


def _in_steps(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int) -> Tensor:
    """The attention itself, for QUERIES_AT_ONCE queries at a time, so that no bias is (n_q, n_k).

    Where gradients are asked for, the backward pass makes each step's bias again: kept for it, all
    of them together would be as large. A compiler gets all queries at once, for one graph.
    """
    n_q = q.shape[2]
    if torch.compiler.is_compiling() or n_q <= QUERIES_AT_ONCE:
        return _one_step(q, k, v, slopes, offset)
    parts = []
    for start in range(0, n_q, QUERIES_AT_ONCE):
        some = q[:, :, start : start + QUERIES_AT_ONCE]
        seen = offset + start + some.shape[2]  # the last of these queries sees no later key
        step = some, k[:, :, :seen], v[:, :, :seen], slopes, offset + start
        if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v, slopes)):
            parts.append(checkpoint(_one_step, *step, use_reentrant=False))
        else:
            parts.append(_one_step(*step))
    return torch.cat(parts, dim=2)


def _one_step(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, offset: int) -> Tensor:
    bias = causal_bias(slopes, q.shape[2], k.shape[2], offset, q.dtype)
    return scaled_dot_product_attention(q, k, v, attn_mask=bias[None])


def alibi_for_flex(
    slopes: Tensor, offset: int = 0
) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """What torch's FlexAttention wants for the attention of `alibi_sdpa`: (score_mod, mask_mod).

    Compiled, FlexAttention is one kernel that computes the bias of a tile where it needs it: no
    mask lies in memory, and tiles without a visible key are left out.

    Shapes: slopes (heads,).
    Dtype: the bias is computed in the dtype of `slopes`; float32 is what it should have.
    Units: offset in tokens, as in `alibi_sdpa`.

    >>> from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> q = k = torch.zeros(1, 1, 2, 16)
    >>> v = torch.stack([torch.zeros(1, 1, 16), torch.ones(1, 1, 16)], dim=2)
    >>> score_mod, mask_mod = alibi_for_flex(torch.tensor([3.0]).log())
    >>> mask = create_block_mask(mask_mod, None, None, 2, 2, device="cpu")
    >>> flex_attention(q, k, v, score_mod, mask)[..., 0]
    tensor([[[0.0000, 0.7500]]])
    """

    def score_mod(score: Tensor, batch: Tensor, head: Tensor, m: Tensor, n: Tensor) -> Tensor:
        return score - slopes[head] * (m + offset - n)

    def mask_mod(batch: Tensor, head: Tensor, m: Tensor, n: Tensor) -> Tensor:
        return n <= m + offset

    return score_mod, mask_mod

"""Attention with many heads, as a model uses it: four lines between the projections.

Why: the libraries' fused function hides these lines, and every later chapter changes one of them.
"Vaswani et al." is Vaswani et al. (2017), arXiv:1706.03762.
"""

import math
from contextlib import nullcontext

import torch
from torch import Tensor


def multi_head_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend in every head of every sequence by itself, as `scaled_dot_product_attention` does.

    Vaswani et al., eq. 1 and section 3.2.2, between the projections: in each head

        softmax(Q Kᵀ / √head_dim) V

    Write the equation out; calling torch's own function is not the exercise.

    Shapes: q, k and v one and the same (batch, heads, seq, head_dim), none stretched to another;
        mask None, or of any shape that broadcasts to (batch, heads, seq, seq), the last two axes
        queries, then keys; result like q. A mask for more sequences, heads or tokens than q has
        is refused: it must not make the result larger.
    Dtype: floating; the result keeps the dtype and device of `q`, also under autocast. `mask` is
        bool, True = may attend. The softmax stays finite for scores of any size, masked ones too.
        What a query gets that may attend to nothing is left to you. No argument is changed, and
        gradients reach q, k and v.
    Raises: ValueError when shapes do not go together.

    >>> asked = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    >>> handed = torch.tensor([[[[10.0, 1.0], [20.0, 2.0]]]])
    >>> multi_head_attention(asked, asked, handed)
    tensor([[[[13.3024,  1.3302],
              [16.6976,  1.6698]]]])
    """
    if q.ndim != 4 or not q.shape == k.shape == v.shape or not q.shape[-1]:
        raise ValueError(
            f"q, k and v must have one shape (batch, heads, seq, head_dim), got {tuple(q.shape)}, "
            f"{tuple(k.shape)} and {tuple(v.shape)}; split the heads first, and repeat shared keys"
        )
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not x.is_floating_point():
            raise ValueError(f"{name} must be floating, got {x.dtype}; use {name}.float()")
    batch, heads, seq, head_dim = q.shape
    if mask is not None:
        if mask.dtype != torch.bool:
            raise ValueError(
                f"mask must be bool, True = may attend, got {mask.dtype}; make it by a comparison"
            )
        try:
            mask = mask.expand(batch, heads, seq, seq)
        except RuntimeError:
            raise ValueError(
                f"mask must broadcast to {(batch, heads, seq, seq)}, got {tuple(mask.shape)}; "
                f"its last two axes are queries and keys"
            ) from None
    dtype = torch.promote_types(q.dtype, torch.float32)
    device = q.device.type
    can_autocast = torch.amp.is_autocast_available(device)  # not on meta, which has shapes alone
    # Autocast would run both products in half.
    with torch.autocast(device, enabled=False) if can_autocast else nullcontext():
        # Scaled before the product, which could overflow half a model's dtypes otherwise.
        scores = (q.to(dtype) / math.sqrt(head_dim)) @ k.to(dtype).mT
        if mask is None:
            weights = scores.softmax(dim=-1)
        else:
            # A query that may attend to nothing keeps its scores here, so that no NaN can reach a
            # gradient, and loses its weights below: it gets zeros, as from torch's own function.
            sees = mask.any(dim=-1, keepdim=True)
            weights = scores.masked_fill(~mask & sees, -math.inf).softmax(dim=-1) * sees
        return (weights @ v.to(dtype)).to(q.dtype)

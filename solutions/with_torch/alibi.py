"""ALiBi as a model uses it: one additive mask for torch's own attention.

Why: the bias is where a low precision hurts. bfloat16 has no numbers for the odd positions above
256, so a bias that is computed in it gives one penalty to many keys; here it is float32 or better
until the softmax is done. "ALiBi" is Press, Smith and Lewis (2022), arXiv:2108.12409.
"""

import operator

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


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
    bias = slopes.to(dtype)[:, None, None] * distance
    return bias.masked_fill(distance > 0, float("-inf"))


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
    offset = operator.index(offset)
    if offset < 0 or offset + n_q > n_k:
        raise ValueError(
            f"queries must stand at positions that have keys: offset ≥ 0 and offset + n_q ≤ n_k, "
            f"got offset {offset}, {n_q} queries and {n_k} keys; pass all the keys of the cache"
        )
    dtype = torch.promote_types(q.dtype, torch.float32)
    # torch wants queries and mask in one dtype. Going up with the queries keeps the bias whole;
    # autocast would take both down again.
    bias = causal_bias(slopes.to(dtype).to(q.device), n_q, n_k, offset, dtype)
    with torch.autocast(q.device.type, enabled=False):
        out = scaled_dot_product_attention(q.to(dtype), k.to(dtype), v.to(dtype), attn_mask=bias)
    return out.to(q.dtype)

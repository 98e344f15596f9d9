"""What every rotating kernel shares: its gradient, and what it refuses.

Why: a rotation is undone by the same rotation with the sign of sin turned. So the backward pass is
the forward kernel again, of any order, and saves nothing but cos and sin.
"""

import torch
from torch import Tensor


class Rotation(torch.autograd.Function):
    """`Rotation.apply(launch, q, k, cos, sin, positions, layout, back)` → q and k, rotated.

    `launch(q, k, q_out, k_out, cos, sin, positions, layout, back)` writes q_out and k_out.
    Shapes as in `check_rotation`. Outputs keep the memory order of q and k, where theirs is dense.
    Gradients of any order for q and k, forward mode too; none for the tables.
    """

    @staticmethod
    def forward(launch, q, k, cos, sin, positions, layout, back):
        q_out, k_out = torch.empty_like(q), torch.empty_like(k)
        launch(q, k, q_out, k_out, cos, sin, positions, layout, back)
        return q_out, k_out

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.launch, _, _, cos, sin, positions, ctx.layout, ctx.back = inputs
        ctx.save_for_backward(cos, sin, positions)
        ctx.save_for_forward(cos, sin, positions)

    @staticmethod
    def backward(ctx, grad_q, grad_k):
        arguments = *ctx.saved_tensors, ctx.layout, not ctx.back
        return None, *Rotation.apply(ctx.launch, grad_q, grad_k, *arguments), *[None] * 5

    @staticmethod
    def jvp(ctx, _launch, tangent_q, tangent_k, *_):
        arguments = *ctx.saved_tensors, ctx.layout, ctx.back
        return Rotation.apply(ctx.launch, tangent_q, tangent_k, *arguments)

    @staticmethod
    def vmap(info, in_dims, *arguments):
        def one(i):
            pairs = zip(arguments, in_dims, strict=True)
            return Rotation.apply(*(x if at is None else x.select(at, i) for x, at in pairs))

        q, k = zip(*map(one, range(info.batch_size)), strict=True)
        return (torch.stack(q), torch.stack(k)), (0, 0)


def check_rotation(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None, layout: str
) -> None:
    """Raise ValueError where the arguments of a kernel's `rotate` do not go together.

    Shapes: q (batch, heads, seq, head_dim) and k, alike but for its heads. Without positions, cos
        and sin hold a row for each token, (seq, pairs) or (batch, seq, pairs), pairs ≤ head_dim/2.
        With positions, (seq,) or (batch, seq), cos and sin are tables (rows, pairs).
    Dtype: q and k floating and alike; cos and sin float32, or float64 for float64; positions int32
        or int64. All on one device.
    """
    if layout not in ("interleaved", "half"):
        raise ValueError(f"layout must be 'interleaved' or 'half', got {layout!r}")
    alike = [(x.shape[0], *x.shape[2:], x.dtype, x.device) for x in (q, k) if x.ndim == 4]
    if len(alike) < 2 or alike[0] != alike[1] or not q.is_floating_point():
        raise ValueError(
            f"q and k must be floating, (batch, heads, seq, head_dim), alike but for their heads, "
            f"got {q.dtype} {tuple(q.shape)} on {q.device} and {k.dtype} {tuple(k.shape)} on "
            f"{k.device}; cast and move them first"
        )
    batch, _, tokens, width = q.shape
    dtype = torch.promote_types(q.dtype, torch.float32)
    for table in (cos, sin):
        if table.dtype != dtype or table.device != q.device or not table.is_contiguous():
            raise ValueError(
                f"cos and sin must be contiguous {dtype} on {q.device} for {q.dtype} queries, "
                f"got {table.dtype} on {table.device}; cast them once, where they are made"
            )
    if torch.is_grad_enabled() and (cos.requires_grad or sin.requires_grad):
        raise ValueError("cos and sin get no gradient here; rotate_pairs gives them theirs")
    if cos.shape != sin.shape or cos.ndim < 2 or not 0 < 2 * cos.shape[-1] <= width:
        raise ValueError(
            f"cos and sin must have one shape and 1 to {width // 2} pairs, "
            f"got {tuple(cos.shape)} and {tuple(sin.shape)}"
        )
    rows = [(tokens,), (batch, tokens)]
    if positions is None:
        if tuple(cos.shape[:-1]) not in rows:
            raise ValueError(
                f"cos and sin must have a row for each of {tokens} tokens, got {tuple(cos.shape)}; "
                f"give positions to look the rows up in a table"
            )
        return
    integers = positions.dtype in (torch.int32, torch.int64)
    if cos.ndim != 2 or tuple(positions.shape) not in rows or not integers:
        raise ValueError(
            f"positions must be int32 or int64, ({tokens},) or ({batch}, {tokens}), with tables "
            f"(rows, pairs), got {positions.dtype} {tuple(positions.shape)} and tables "
            f"{tuple(cos.shape)}; one position per token"
        )
    if positions.device != q.device:
        raise ValueError(
            f"positions must be on {q.device}, as q and k are, got {positions.device}; move them"
        )

"""What every rotating kernel shares: its gradient, and what it refuses.

Why: a rotation is undone by the same rotation with the sign of sin turned. So the backward pass is
the forward kernel again, of any order, and saves nothing but cos and sin.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import forward_ad


def rotated(
    launch: Callable[..., None], q: Tensor, k: Tensor, *arguments: object
) -> tuple[Tensor, Tensor]:
    """q and k, rotated by `launch`; through autograd only where somebody asks for a gradient.

    `arguments` are cos, sin, positions and layout. Autograd's way costs several times what a launch
    costs, and when a model decodes, nobody asks.
    """
    transformed = torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
    if transformed or (torch.is_grad_enabled() and (q.requires_grad or k.requires_grad)):
        result: tuple[Tensor, Tensor] = Rotation.apply(launch, q, k, *arguments, False)
        return result
    return _launched(launch, q, k, *arguments, False)


def _launched(launch, q, k, *arguments):
    q_out, k_out = torch.empty_like(q), torch.empty_like(k)
    launch(q, k, q_out, k_out, *arguments)
    return q_out, k_out


class Rotation(torch.autograd.Function):
    """`Rotation.apply(launch, q, k, cos, sin, positions, layout, back)` → q and k, rotated.

    `launch(q, k, q_out, k_out, cos, sin, positions, layout, back)` writes q_out and k_out.
    Shapes as in `check_rotation`. Outputs keep the memory order of q and k, where theirs is dense.
    Gradients of any order for q and k, forward mode too; none for the tables.
    """

    forward = staticmethod(_launched)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.launch, q, k, cos, sin, positions, ctx.layout, ctx.back = inputs
        ctx.shapes = q.shape, k.shape
        ctx.save_for_backward(cos, sin, positions)
        ctx.save_for_forward(cos, sin, positions)
        ctx.set_materialize_grads(False)  # None for what nobody differentiates

    @staticmethod
    def backward(ctx, grad_q, grad_k):
        _, wants_q, wants_k, *_ = ctx.needs_input_grad
        wants_q, wants_k = wants_q and grad_q is not None, wants_k and grad_k is not None
        if not wants_q and not wants_k:
            return (None,) * 8
        # What is not wanted has no heads.
        grad_q, grad_k = grad_q if wants_q else grad_k[:, :0], grad_k if wants_k else grad_q[:, :0]
        arguments = *ctx.saved_tensors, ctx.layout, not ctx.back
        turned_q, turned_k = Rotation.apply(ctx.launch, grad_q, grad_k, *arguments)
        return None, turned_q if wants_q else None, turned_k if wants_k else None, *[None] * 5

    @staticmethod
    def jvp(ctx, _launch, tangent_q, tangent_k, tangent_cos, tangent_sin, *_):
        if tangent_cos is not None or tangent_sin is not None:
            raise ValueError("cos and sin get no gradient here; rotate_pairs gives them theirs")
        given = tangent_k if tangent_q is None else tangent_q
        tangent_q, tangent_k = (
            given.new_zeros(shape) if tangent is None else tangent
            for tangent, shape in zip((tangent_q, tangent_k), ctx.shapes, strict=True)
        )
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
    if any(x.is_neg() for x in (q, k, cos, sin)):
        raise ValueError("a view that is negated lazily has other numbers in memory; resolve_neg()")
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

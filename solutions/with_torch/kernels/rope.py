"""The rotation of queries and keys as one Triton kernel: each number is read once, written once.

Why: a rotation does three operations for each number that it moves, so on a GPU only bytes count.
A chain of torch's operations writes every intermediate to memory and reads it back.

Ledger, for a token whose H heads (queries and keys together) have 128 coordinates in bfloat16:
    read     q and k                256·H bytes
    read     cos and sin              512 bytes, float32; for further heads from the cache
    written  q and k, rotated       256·H bytes
With H = 64 that is 32 KiB, as for a copy, and 1.6 % more. The backward pass is the rotation by the
negative angle and moves as much. In place, coordinates that do not turn are not moved at all.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .rotation import Rotation, check_rotation

PAIRS_IN_A_PROGRAM = 2048  # 16 for each of 128 threads: two loads of 16 bytes for each half
TOKENS_IN_A_PROGRAM = 8


@triton.jit
def _rotate_tile(  # type: ignore[no-untyped-def]
    x, out, batch, block, heads, token, tokens, cos, sin,
    x_batch, x_head, x_token, x_dim, out_batch, out_head, out_token, out_dim,
    HALF: tl.constexpr, PAIRS: tl.constexpr, REST: tl.constexpr, PASSED: tl.constexpr,
    HEADS: tl.constexpr, TOKENS: tl.constexpr, INTERLEAVED: tl.constexpr,
):  # fmt: skip
    """Rotate HEADS heads of x at TOKENS tokens; cos and sin are (1, TOKENS, PAIRS)."""
    head = (block * HEADS + tl.arange(0, HEADS)).to(tl.int64)
    inside = (head < heads)[:, None, None] & (token < tokens)[None, :, None]
    x += batch * x_batch + head[:, None, None] * x_head + token[None, :, None] * x_token
    out += batch * out_batch + head[:, None, None] * out_head + token[None, :, None] * out_token
    if INTERLEAVED:  # [x0 x1 x2 x3] → pairs [x0 x1], [x2 x3]
        d = tl.arange(0, 2 * PAIRS)[None, None, :]
        wanted = inside & (d < 2 * HALF)
        rows = tl.load(x + d * x_dim, wanted)
        a, b = tl.split(tl.reshape(rows, HEADS, TOKENS, PAIRS, 2))
    else:  # [x0 x1 x2 x3] → pairs [x0 x2], [x1 x3]
        d = tl.arange(0, PAIRS)[None, None, :]
        wanted = inside & (d < HALF)
        a = tl.load(x + d * x_dim, wanted)
        b = tl.load(x + (d + HALF) * x_dim, wanted)
    a, b = a.to(cos.dtype), b.to(cos.dtype)
    first = (a * cos - b * sin).to(out.dtype.element_ty)
    second = (a * sin + b * cos).to(out.dtype.element_ty)
    if INTERLEAVED:
        both = tl.reshape(tl.join(first, second), HEADS, TOKENS, 2 * PAIRS)
        tl.store(out + d * out_dim, both, wanted)
    else:
        tl.store(out + d * out_dim, first, wanted)
        tl.store(out + (d + HALF) * out_dim, second, wanted)
    if REST:  # coordinates that do not turn
        d = tl.arange(0, PASSED)[None, None, :]
        wanted = inside & (d < REST)
        passed = tl.load(x + (2 * HALF + d) * x_dim, wanted)
        tl.store(out + (2 * HALF + d) * out_dim, passed, wanted)


@triton.jit
def _rotate_kernel(  # type: ignore[no-untyped-def]
    q, k, q_out, k_out, cos, sin, positions, tokens, rows, q_heads, k_heads,
    q_batch, q_head, q_token, q_dim, k_batch, k_head, k_token, k_dim,
    q_out_batch, q_out_head, q_out_token, q_out_dim,
    k_out_batch, k_out_head, k_out_token, k_out_dim,
    table_batch, table_row, positions_batch, positions_token,
    HALF: tl.constexpr, PAIRS: tl.constexpr, REST: tl.constexpr, PASSED: tl.constexpr,
    HEADS: tl.constexpr, TOKENS: tl.constexpr, INTERLEAVED: tl.constexpr,
    LOOK_UP: tl.constexpr, BACK: tl.constexpr,
):  # fmt: skip
    """One program: HEADS heads, of the queries or of the keys, at TOKENS tokens of one text."""
    groups = tl.cdiv(tokens, TOKENS)
    batch = (tl.program_id(0) // groups).to(tl.int64)  # offsets may pass 2³¹
    token = (tl.program_id(0) % groups * TOKENS + tl.arange(0, TOKENS)).to(tl.int64)
    row = token
    if LOOK_UP:
        at = positions + batch * positions_batch + token * positions_token
        row = tl.load(at, token < tokens, 0).to(tl.int64)
        tl.device_assert((row >= 0) & (row < rows), "a position is past the cos and sin tables")
    pair = tl.arange(0, PAIRS)
    table = batch * table_batch + row[:, None] * table_row + pair[None, :]
    known = ((token < tokens) & (row >= 0) & (row < rows))[:, None] & (pair < HALF)[None, :]
    nothing = float("nan")  # and no identity, should the assertion have been compiled out
    c = tl.load(cos + table, known, nothing)[None]
    s = tl.load(sin + table, known, nothing)[None]
    if BACK:
        s = -s
    block = tl.program_id(1)
    blocks_of_q = tl.cdiv(q_heads, HEADS)
    if block < blocks_of_q:
        _rotate_tile(
            q, q_out, batch, block, q_heads, token, tokens, c, s,
            q_batch, q_head, q_token, q_dim, q_out_batch, q_out_head, q_out_token, q_out_dim,
            HALF, PAIRS, REST, PASSED, HEADS, TOKENS, INTERLEAVED,
        )  # fmt: skip
    else:
        _rotate_tile(
            k, k_out, batch, block - blocks_of_q, k_heads, token, tokens, c, s,
            k_batch, k_head, k_token, k_dim, k_out_batch, k_out_head, k_out_token, k_out_dim,
            HALF, PAIRS, REST, PASSED, HEADS, TOKENS, INTERLEAVED,
        )  # fmt: skip


def rotate(
    q: Tensor,
    k: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None = None,
    layout: str = "half",
    in_place: bool = False,
) -> tuple[Tensor, Tensor]:
    """Rotate the first pairs of q and of k, in one launch; further coordinates pass through.

    Shapes: q (batch, heads, seq, head_dim) and k, alike but for its heads, with any strides.
        Without positions, cos and sin hold a row for each token: (seq, pairs) or (batch, seq,
        pairs). With positions, (seq,) or (batch, seq) integers, they are tables (rows, pairs), and
        a token at position p takes row p. pairs ≤ head_dim/2.
    Dtype: q and k floating and alike; cos and sin float32, or float64 for float64. Computed in the
        dtype of cos, rounded once, to that of q. All on one CUDA device, or on the CPU where
        TRITON_INTERPRET=1 was set before this module was imported.
    Layout: "half" pairs coordinates (i, i + pairs), "interleaved" pairs (2i, 2i + 1).
    Gradients: of any order, for q and k. With `in_place`, q and k themselves are written and given
        back, which leaves nothing for a gradient.
    Raises: ValueError where the above does not hold. For a position outside the tables, IndexError
        on the CPU; on CUDA, where reading positions back would stop the queue of launches, an
        assertion of the kernel, which torch reports at the next synchronization.
    """
    check_rotation(q, k, cos, sin, positions, layout)
    if positions is not None and positions.device.type == "cpu" and positions.numel():
        low, high = int(positions.min()), int(positions.max())
        if low < 0 or high >= len(cos):
            raise IndexError(
                f"positions must lie in 0 … {len(cos) - 1}, the rows of cos and sin, got {low} … "
                f"{high}; make the tables as long as the longest text"
            )
    if not in_place:
        result: tuple[Tensor, Tensor]
        result = Rotation.apply(_launch, q, k, cos, sin, positions, layout, False)
        return result
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad):
        raise ValueError("in place there is no gradient; use in_place=False, or torch.no_grad()")
    if q.data_ptr() == k.data_ptr():
        raise ValueError("q and k must not share memory to be written in place; clone one of them")
    for x in (q, k):
        if any(size > 1 and stride == 0 for size, stride in zip(x.shape, x.stride(), strict=True)):
            raise ValueError(
                "q and k must have a place for each number to be written in place, got an "
                "expanded tensor; clone it, or rotate keys before they are repeated"
            )
    _launch(q, k, q, k, cos, sin, positions, layout, False)
    torch.autograd.graph.increment_version((q, k))  # whoever saved them for a gradient is told
    return q, k


def _launch(
    q: Tensor, k: Tensor, q_out: Tensor, k_out: Tensor, cos: Tensor, sin: Tensor,
    positions: Tensor | None, layout: str, back: bool,
) -> None:  # fmt: skip
    batch, q_heads, tokens, width = q.shape
    k_heads, pairs = k.shape[1], cos.shape[-1]
    if not q.numel() and not k.numel():
        return
    rest = 0 if q_out is q else width - 2 * pairs  # in place, what does not turn stands there
    wide = triton.next_power_of_2(pairs)
    tile = min(TOKENS_IN_A_PROGRAM, triton.next_power_of_2(tokens))
    heads = max(1, PAIRS_IN_A_PROGRAM // (tile * wide))
    heads = min(heads, triton.next_power_of_2(max(q_heads, k_heads)))
    table_batch = cos.stride(0) if positions is None and cos.ndim == 3 else 0
    per_batch, per_token = (0, 0) if positions is None else positions.expand(batch, -1).stride()
    groups = triton.cdiv(q_heads, heads) + triton.cdiv(k_heads, heads)
    grid = (batch * triton.cdiv(tokens, tile), groups)
    with torch.cuda.device_of(q):  # a launch goes to the current device, whatever q is on
        _rotate_kernel[grid](
            q, k, q_out, k_out, cos, sin, positions, tokens, cos.shape[-2], q_heads, k_heads,
            *q.stride(), *k.stride(), *q_out.stride(), *k_out.stride(),
            table_batch, cos.stride(-2), per_batch, per_token,
            HALF=pairs, PAIRS=wide, REST=rest, PASSED=triton.next_power_of_2(max(rest, 1)),
            HEADS=heads, TOKENS=tile, INTERLEAVED=layout == "interleaved",
            LOOK_UP=positions is not None, BACK=back,
            debug=positions is not None,  # assertions stand only so
            sanitize_overflow=False,  # debug would check every sum of offsets
            enable_fp_fusion=False,  # rounded like torch's operations, bit for bit
        )  # fmt: skip

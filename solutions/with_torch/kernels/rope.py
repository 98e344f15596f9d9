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

from .rotation import check_rotation, rotated

BYTES_IN_A_PROGRAM = 8192  # read, and as many written: four accesses of 16 bytes a thread each way
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
        d = tl.arange(0, 2 * PAIRS).to(tl.int64)[None, None, :]
        wanted = inside & (d < 2 * HALF)
        rows = tl.load(x + d * x_dim, wanted)
        a, b = tl.split(tl.reshape(rows, HEADS, TOKENS, PAIRS, 2))
    else:  # [x0 x1 x2 x3] → pairs [x0 x2], [x1 x3]
        d = tl.arange(0, PAIRS).to(tl.int64)[None, None, :]
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
        d = tl.arange(0, PASSED).to(tl.int64)[None, None, :]
        wanted = inside & (d < REST)
        passed = tl.load(x + (2 * HALF + d) * x_dim, wanted)
        tl.store(out + (2 * HALF + d) * out_dim, passed, wanted)


@triton.jit
def _rotate_kernel(  # type: ignore[no-untyped-def]
    q, k, q_out, k_out, cos, sin, positions, texts, tokens, rows, q_heads, k_heads,
    q_batch, q_head, q_token, q_dim, k_batch, k_head, k_token, k_dim,
    q_out_batch, q_out_head, q_out_token, q_out_dim,
    k_out_batch, k_out_head, k_out_token, k_out_dim,
    table_batch, table_row, positions_batch, positions_token,
    HALF: tl.constexpr, PAIRS: tl.constexpr, REST: tl.constexpr, PASSED: tl.constexpr,
    HEADS: tl.constexpr, TOKENS: tl.constexpr, INTERLEAVED: tl.constexpr,
    LOOK_UP: tl.constexpr, TOKENS_FIRST: tl.constexpr, BACK: tl.constexpr,
):  # fmt: skip
    """One program: HEADS heads, of the queries or of the keys, at TOKENS tokens of one text."""
    blocks_of_q = tl.cdiv(q_heads, HEADS)
    blocks = blocks_of_q + tl.cdiv(k_heads, HEADS)
    steps = tl.cdiv(tokens, TOKENS)
    program = tl.program_id(0)  # neighbours in memory are turned one after the other
    if TOKENS_FIRST:
        block, step = program % blocks, program // blocks
    else:
        block, step = program // (steps * texts), program % (steps * texts)
    batch = (step // steps).to(tl.int64)  # offsets may pass 2³¹
    token = (step % steps * TOKENS + tl.arange(0, TOKENS)).to(tl.int64)
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
        return rotated(_launch, q, k, cos, sin, positions, layout)
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad):
        raise ValueError("in place there is no gradient; use in_place=False, or torch.no_grad()")
    for x in (q, k):
        if not _has_a_place_for_each(x):
            raise ValueError(
                "q and k must have a place for each number to be written in place, got a view "
                "that shows some numbers twice; clone it, or rotate keys before they are repeated"
            )
    if _may_overlap(q, k):
        raise ValueError(
            "q and k must lie apart in memory to be written in place, got views of one memory "
            "that reach into each other; use in_place=False"
        )
    _launch(q, k, q, k, cos, sin, positions, layout, False)
    torch.autograd.graph.increment_version((q, k))  # whoever saved them for a gradient is told
    return q, k


def _has_a_place_for_each(x: Tensor) -> bool:
    """Whether no two numbers of x share a place: each stride is beyond all that is below it."""
    reach = 0
    for stride, size in sorted(zip(x.stride(), x.shape, strict=True)):
        if size > 1 and stride <= reach:
            return False
        reach += stride * (size - 1)
    return True


def _may_overlap(q: Tensor, k: Tensor) -> bool:
    """Whether the two reach into each other's memory; views that interleave are counted in."""
    if not q.numel() or not k.numel():
        return False
    spans = []
    for x in (q, k):
        reach = sum(stride * (size - 1) for stride, size in zip(x.stride(), x.shape, strict=True))
        spans.append((x.data_ptr(), x.data_ptr() + (reach + 1) * x.element_size()))
    return spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]


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
    passed = triton.next_power_of_2(max(rest, 1))
    row = max(2 * wide, passed) * q.element_size()  # bytes of what turns, or of the rest
    room = max(1, BYTES_IN_A_PROGRAM // row)  # rows of one program
    tile = min(TOKENS_IN_A_PROGRAM, room, triton.next_power_of_2(tokens))
    heads = room // tile
    heads = min(heads, triton.next_power_of_2(max(q_heads, k_heads)))
    table_batch = cos.stride(0) if positions is None and cos.ndim == 3 else 0
    per_batch, per_token = (0, 0) if positions is None else positions.expand(batch, -1).stride()
    blocks = triton.cdiv(q_heads, heads) + triton.cdiv(k_heads, heads)
    grid = (batch * triton.cdiv(tokens, tile) * blocks,)
    with torch.cuda.device_of(q):  # a launch goes to the current device, whatever q is on
        _rotate_kernel[grid](
            q, k, q_out, k_out, cos, sin, positions, batch, tokens, cos.shape[-2], q_heads, k_heads,
            *q.stride(), *k.stride(), *q_out.stride(), *k_out.stride(),
            table_batch, cos.stride(-2), per_batch, per_token,
            HALF=pairs, PAIRS=wide, REST=rest, PASSED=passed,
            HEADS=heads, TOKENS=tile, INTERLEAVED=layout == "interleaved",
            LOOK_UP=positions is not None, TOKENS_FIRST=q.stride(2) > q.stride(1), BACK=back,
            debug=positions is not None,  # assertions stand only so
            sanitize_overflow=False,  # debug would check every sum of offsets
            enable_fp_fusion=False,  # rounded like torch's operations, bit for bit
        )  # fmt: skip

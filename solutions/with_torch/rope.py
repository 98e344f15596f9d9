"""Rotary position embedding as a model uses it: a module without weights, buffers or memory.

Why: rotating q and k in torch goes wrong where dtypes do, so angles are built in float64 on every
call and nothing that `.bfloat16()` or autocast could degrade is stored. "RoFormer" is Su et al.
(2021), arXiv:2104.09864.
"""

import math
from collections.abc import Callable
from typing import SupportsIndex

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad


def rope_angles(positions: Tensor, dim: int, base: float = 10000.0) -> Tensor:
    """Angle m·base^(−2i/dim) of each pair i at each position m (RoFormer, eq. 15).

    Shapes: positions any; result positions.shape + (dim/2,).
    Dtype: float64 on CPU and CUDA. Elsewhere (MPS has no float64) float32, with the frequencies
        still computed in float64, on the CPU.
    Units: positions in tokens, angles in radians.

    >>> rope_angles(torch.tensor([0, 1]), dim=4)
    tensor([[0.0000, 0.0000],
            [1.0000, 0.0100]], dtype=torch.float64)
    """
    device = positions.device
    has_float64 = device.type in ("cpu", "cuda")
    dtype = torch.float64 if has_float64 else torch.float32
    i = torch.arange(dim // 2, dtype=torch.float64, device=device if has_float64 else "cpu")
    frequencies = base ** (-2 * i / dim)
    # An elementwise product: autocast would run a matrix product of the two in half precision.
    return positions.to(dtype)[..., None] * frequencies.to(dtype).to(device)


def no_kernel(q: Tensor, k: Tensor) -> None:
    """No kernel for anything; the package around this file puts the choice of its kernels here."""


kernel_for: Callable[[Tensor, Tensor], Callable[..., tuple[Tensor, Tensor]] | None] = no_kernel


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """Rotate the pairs of x in float32 or better, and return to the dtype of x in one last cast.

    The plain form, from torch's operations: compilers fuse it, and every kernel is held against it.

    Shapes: x (..., dim); cos and sin broadcast against (..., pairs), pairs ≤ dim/2; result like x.
        Coordinates from 2·pairs on pass through.
    Dtype and device: those of x, wherever the tables were made.
    Layout: "interleaved" pairs coordinates (2i, 2i + 1), "half" pairs (i, i + pairs).

    >>> cos, sin = torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0])
    >>> rotate_pairs(torch.tensor([1, 2, 3, 4, 5], dtype=torch.bfloat16), cos, sin, "half")
    tensor([-3.,  2.,  1.,  4.,  5.], dtype=torch.bfloat16)
    """
    dtype = torch.promote_types(x.dtype, torch.float32)
    cos, sin = (table.to(dtype).to(x.device) for table in (cos, sin))  # cast, then move: see MPS
    pairs = cos.shape[-1]
    wide = x.to(dtype)
    turning, rest = wide[..., : 2 * pairs], wide[..., 2 * pairs :]
    # [x0 x1 x2 x3] → half: columns [x0 x2], [x1 x3]; interleaved: rows [x0 x1], [x2 x3]
    grid, pair_axis = ((2, pairs), -2) if layout == "half" else ((pairs, 2), -1)
    a, b = turning.unflatten(-1, grid).unbind(pair_axis)
    rotated = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=pair_axis).flatten(-2)
    if rest.shape[-1]:  # joined in the wide dtype: autocast to float16 refuses to join bfloat16
        rotated = torch.cat([rotated, rest], dim=-1)
    return rotated.to(x.dtype)


def rotate(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, layout: str = "half"
) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys with tables that every layer of a model may share.

    By a kernel that takes both in one pass over memory, where `kernel_for` knows one for them;
    otherwise by `rotate_pairs` for each.

    Shapes: q (..., heads, seq, dim), k the same with any number of heads; cos and sin
        (..., seq, pairs), one row for each token, which all heads share, pairs ≤ dim/2; results
        like q and k.
    Dtype and device: those of q and k; computed in float32 or better. Gradients reach q, k and
        tables that are trained.
    Layout: "half" pairs coordinates (i, i + pairs), "interleaved" pairs (2i, 2i + 1).

    >>> q = torch.tensor([[[[1.0, 0.5, -0.5, 2.0]]]])
    >>> angles = rope_angles(torch.tensor([5]), dim=4)
    >>> rotate(q, q, angles.cos(), angles.sin())[0].flatten()
    tensor([-0.1958,  0.3994, -1.1008,  2.0225])
    """
    if layout not in ("interleaved", "half"):
        raise ValueError(f"layout must be 'interleaved' or 'half', got {layout!r}")
    kernel = None if _trained(cos) or _trained(sin) else kernel_for(q, k)
    rows = _rows_for(q, k, cos, sin) if kernel else None
    if kernel is None or rows is None:
        cos, sin = cos.unsqueeze(-3), sin.unsqueeze(-3)  # an axis for the heads
        return rotate_pairs(q, cos, sin, layout), rotate_pairs(k, cos, sin, layout)
    return kernel(q, k, *rows, layout=layout)


def _trained(table: Tensor) -> bool:
    """Whether a gradient, of either mode, is asked for a table; kernels give it none."""
    if torch.is_grad_enabled() and table.requires_grad:
        return True
    return forward_ad.unpack_dual(table).tangent is not None


def _rows_for(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor] | None:
    """cos and sin as a kernel wants them, (seq, pairs) or (batch, seq, pairs), None if they cannot.

    What broadcasts further, or does not fit, is left to the plain form and its errors.
    """
    batch, _, seq, dim = q.shape
    pairs = cos.shape[-1]
    fits = k.shape[0] == batch and k.shape[2:] == q.shape[2:] and 0 < 2 * pairs <= dim
    if not fits or pairs != sin.shape[-1] or not all(2 <= t.ndim <= 3 for t in (cos, sin)):
        return None
    cos, sin = (t[0] if t.ndim == 3 and len(t) == 1 else t for t in (cos, sin))
    rows = (seq,) if cos.ndim == sin.ndim == 2 else (batch, seq)
    dtype = torch.promote_types(q.dtype, torch.float32)
    tables = []
    for table in (cos, sin):
        wanted = (*rows, pairs)
        if any(n not in (1, m) for n, m in zip(table.shape[::-1], wanted[::-1], strict=False)):
            return None
        table = table.to(dtype).to(q.device).resolve_neg()
        tables.append(table.expand(wanted).contiguous())
    return tables[0], tables[1]


class RotaryEmbedding(nn.Module):
    """Rotate the queries and keys of all heads by their positions (RoFormer, eq. 14–16).

    Twin of the NumPy `apply_rope`, with nothing to train and an empty state_dict.

    Shapes: `forward(q, k, positions)` takes q (batch, heads, seq, head_dim), k the same with as
        many heads or fewer (grouped queries: a divisor of heads), and positions (seq,), shared by
        the batch, or (batch, seq). It returns (q_rotated, k_rotated), shaped like q and k.
        Nothing else broadcasts.
    Dtype: floating. Results keep the dtype and device of q and k, also under autocast. Angles,
        sines and cosines are computed in float32 or better, whatever the dtype of q, and also
        after the module, or a parent that holds it, was cast. q, k and positions are not changed;
        gradients reach q and k.
    Units: positions in tokens; integers or floats.
    Layout: "half" pairs coordinates (i, i + head_dim/2), "interleaved" pairs (2i, 2i + 1).
    Raises: ValueError, at construction, when `head_dim` is not a positive even integer (the
        message names it), `base` not a finite number above 0, or `layout` neither of the two (the
        message names both); in `forward`, when shapes or dtypes are not as above.

    >>> rope = RotaryEmbedding(head_dim=4)
    >>> q = torch.tensor([1.0, 0.5, -0.5, 2.0]).reshape(1, 1, 1, 4)
    >>> q_rotated, k_rotated = rope(q, q, torch.tensor([5]))
    >>> q_rotated.flatten()
    tensor([-0.1958,  0.3994, -1.1008,  2.0225])
    """

    def __init__(self, head_dim: int, base: float = 10000.0, layout: str = "half") -> None:
        super().__init__()
        if not isinstance(head_dim, SupportsIndex) or head_dim <= 0 or head_dim % 2:
            raise ValueError(
                f"head_dim must be a positive even integer, got {head_dim!r}; "
                f"coordinates turn in pairs"
            )
        if not 0 < base < math.inf:
            raise ValueError(f"base must be finite and above 0, got {base!r}; 10000.0 is usual")
        if layout not in ("interleaved", "half"):
            raise ValueError(
                f"layout must be 'interleaved' or 'half', got {layout!r}; "
                f"take the one that the weights were trained with"
            )
        self.head_dim = head_dim
        self.base = base
        self.layout = layout

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        for name, x in (("q", q), ("k", k)):
            if x.ndim != 4 or x.shape[-1] != self.head_dim or not x.is_floating_point():
                raise ValueError(
                    f"{name} must be floating, (batch, heads, seq, {self.head_dim}), "
                    f"got {x.dtype} {tuple(x.shape)}; split the heads before rotating"
                )
        batch, heads, seq, _ = q.shape
        if k.shape[0] != batch or k.shape[2] != seq or not k.shape[1] or heads % k.shape[1]:
            raise ValueError(
                f"k must have the batch and seq of q and a number of heads that divides q's, "
                f"got q {tuple(q.shape)} and k {tuple(k.shape)}; rotate before you repeat keys"
            )
        if tuple(positions.shape) not in ((seq,), (batch, seq)):
            raise ValueError(
                f"positions must be ({seq},) or ({batch}, {seq}), got {tuple(positions.shape)}; "
                f"give one position per token"
            )
        if positions.dtype == torch.bool or positions.is_complex():
            raise ValueError(
                f"positions must be integers or floats, got {positions.dtype}; "
                f"count the tokens with torch.arange"
            )
        angles = rope_angles(positions, self.head_dim, self.base)
        return rotate(q, k, angles.cos(), angles.sin(), self.layout)


def fused_rotation(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys in the half layout: coordinates i and i + head_dim/2 are a pair.

    Meant for a kernel of your own, which reads each number once and writes each once.

    Shapes: q (batch, heads, seq, head_dim), and k the same with as many heads or fewer. cos and sin
        (seq, head_dim/2): a row for each token, for all texts and heads. Results like q and k. No
        size but that of head_dim, which is even, has to be a multiple of anything.
    Dtype: q and k float32, bfloat16 or float16, and so are the results; cos and sin float32.
        Computed in float32, and rounded once, at the end.
    Memory: q and k lie in memory in any order (see `stride()`), cos and sin row by row. Results are
        new tensors; q and k stay as they are. No gradient is asked for.

    >>> q = torch.tensor([[[[1.0, 2.0, 3.0, 4.0]]]])
    >>> fused_rotation(q, q, torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]]))[0]
    tensor([[[[-3.,  2.,  1.,  4.]]]])
    """
    # What a kernel computes, in torch's operations, which run where Triton is missing too. The
    # model answer as a kernel is kernels/fused_rotation.py.
    return rotate_pairs(q, cos, sin, "half"), rotate_pairs(k, cos, sin, "half")

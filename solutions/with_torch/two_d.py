"""Axial rotary embedding for images as a model uses it: a module that remembers no grid.

Why: grids of the same number of patches differ (2×6, 3×4, 4×3), so a table looked up by that number
is the wrong one as soon as an image is turned. Angles are built from the grid on every call, in
float64. "RoPE-ViT" is Heo et al. (2024), arXiv:2403.13298.
"""

import math
from typing import SupportsIndex

import torch
from torch import Tensor, nn

from .rope import rope_angles, rotate


class AxialRotaryEmbedding2D(nn.Module):
    """Rotate the queries and keys of all patches by their rows and columns.

    Twin of the NumPy `axial_rope_2d`, with nothing to train and an empty state_dict: the pairs of
    the first half of head_dim turn with the row, those of the second half with the column. Pair i
    of a half, i = 0 … head_dim/4 − 1, turns by position·base^(−2i/(head_dim/2)) (the axial
    frequencies of RoPE-ViT).

    Shapes: `forward(q, k, height, width, num_prefix_tokens=0)` takes q (batch, heads, seq,
        head_dim) and k the same with as many heads or fewer (grouped queries: a divisor of heads).
        seq is num_prefix_tokens + height·width: first the tokens that have no place in the image
        (a class token, registers), which come back as they are, then the patches in row-major
        order. It returns (q_rotated, k_rotated), shaped like q and k.
    Dtype: floating. Results keep the dtype and device of q and k, also under autocast. Angles,
        sines and cosines are computed in float32 or better, whatever the dtype of q, and also
        after the module, or a parent that holds it, was cast. q and k are not changed;
        gradients reach them.
    Units: height and width in patches, which may differ from call to call.
    Layout: interleaved, coordinates (2i, 2i + 1) of a half are a pair. Row first, column second.
    Raises: ValueError, at construction, when `head_dim` is not positive and divisible by 4 (the
        message names it), or `base` not a finite number above 0; in `forward`, when height or
        width is below 1, num_prefix_tokens is negative, seq is any other number, or batch, seq
        and head_dim of q and k are not as above.

    >>> rope = AxialRotaryEmbedding2D(head_dim=4)
    >>> q = torch.tensor([1.0, 0.5, -0.5, 2.0]).expand(1, 1, 7, 4)
    >>> q_rotated, k_rotated = rope(q, q, height=2, width=3, num_prefix_tokens=1)
    >>> q_rotated[0, 0, [0, 6]]  # the class token; row 1, column 2
    tensor([[ 1.0000,  0.5000, -0.5000,  2.0000],
            [ 0.1196,  1.1116, -1.6105, -1.2869]])
    """

    def __init__(self, head_dim: int, base: float = 100.0) -> None:
        super().__init__()
        if not isinstance(head_dim, SupportsIndex) or head_dim <= 0 or head_dim % 4:
            raise ValueError(
                f"head_dim must be a positive integer divisible by 4, got {head_dim!r}; "
                f"one half is for the row, one for the column, and each half consists of pairs"
            )
        if not 0 < base < math.inf:
            raise ValueError(f"base must be finite and above 0, got {base!r}; 100.0 is usual")
        self.head_dim = head_dim
        self.base = base

    def forward(
        self, q: Tensor, k: Tensor, height: int, width: int, num_prefix_tokens: int = 0
    ) -> tuple[Tensor, Tensor]:
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
        counts = {"height": height, "width": width, "num_prefix_tokens": num_prefix_tokens}
        for name, count in counts.items():
            least = 0 if name == "num_prefix_tokens" else 1
            if not isinstance(count, SupportsIndex) or count < least:
                raise ValueError(
                    f"{name} must be an integer of at least {least}, got {count!r}; "
                    f"it counts patches or tokens"
                )
        height, width, num_prefix_tokens = map(torch.sym_int, counts.values())
        if seq != num_prefix_tokens + height * width:
            raise ValueError(
                f"seq must be num_prefix_tokens + height·width = "
                f"{num_prefix_tokens} + {height}·{width}, got {seq}; "
                f"count the class token and registers as prefix tokens"
            )
        rows = torch.arange(height, device=q.device).repeat_interleave(width)
        cols = torch.arange(width, device=q.device).repeat(height)
        half = self.head_dim // 2
        angles = torch.cat([rope_angles(p, half, self.base) for p in (rows, cols)], dim=-1)
        patches_q, patches_k = (x[:, :, num_prefix_tokens:] for x in (q, k))
        rotated = rotate(patches_q, patches_k, angles.cos(), angles.sin(), "interleaved")
        if not num_prefix_tokens:
            return rotated
        # Not torch.cat, which autocast to float16 forbids in bfloat16.
        results = q.clone(), k.clone()
        for result, part in zip(results, rotated, strict=True):
            result[:, :, num_prefix_tokens:] = part
        return results

"""RoPE on a longer text, as a model uses it: one module, four ways to slow the pairs down.

Why: what stretches the context must hold through casts, autocast and decoding, so frequencies are
computed in float64 on every call, from the arguments alone and never from the length of a text.
"YaRN paper" is Peng et al. (2023), arXiv:2309.00071.
"""

import math
from typing import SupportsIndex

import torch
from torch import Tensor, nn

from .rope import rope_angles, rotate

SCALINGS = ("linear", "ntk", "yarn", "llama3")


def scaled_frequencies(
    dim: int,
    base: float,
    scaling: str,
    factor: float,
    original_length: int,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Frequency of each pair after stretching the context, with the usual constants.

    linear divides all by `factor`; ntk enlarges the base; yarn keeps pairs of 32 and more turns
    in `original_length` tokens, divides those of one turn and less, and ramps between in the pair
    index; llama3 keeps pairs of 4 and more turns, and ramps between in the number of turns.

    Shapes: result (dim/2,).
    Dtype: float64, on `device`, which must have it.
    Units: lengths in tokens, frequencies in radians per token.

    >>> scaled_frequencies(4, 10000.0, "ntk", factor=2.0, original_length=2048)
    tensor([1.0000, 0.0050], dtype=torch.float64)
    """
    one_token = torch.ones((), dtype=torch.float64, device=device)
    if scaling == "ntk":
        return rope_angles(one_token, dim, base * factor ** (dim / (dim - 2)))
    frequencies = rope_angles(one_token, dim, base)
    if scaling == "linear":
        divided = torch.ones_like(frequencies)  # how much of the divided frequency a pair gets
    elif scaling == "yarn":
        low, high = yarn_ends(dim, base, original_length)
        i = torch.arange(dim // 2, dtype=torch.float64, device=device)
        divided = ((i - low) / (high - low)).clamp(0, 1)
    else:
        turns = original_length * frequencies / (2 * math.pi)
        divided = 1 - ((turns - 1) / (4 - 1)).clamp(0, 1)
    return torch.lerp(frequencies, frequencies / factor, divided)


def yarn_ends(dim: int, base: float, original_length: int) -> tuple[float, float]:
    """First and last pair of YaRN's ramp: those of 32 turns and of one, rounded outwards.

    >>> yarn_ends(64, 10000.0, 2048)
    (8, 21)
    """
    ends = [
        dim * math.log(original_length / (2 * math.pi * t)) / (2 * math.log(base)) for t in (32, 1)
    ]
    low, high = max(math.floor(ends[0]), 0), min(math.ceil(ends[1]), dim - 1)
    if low > high:
        raise ValueError(
            f"original_length must give the slow pairs a turn and leave some pair below 32 turns, "
            f"got {original_length!r} with base {base!r}; take the length of the training"
        )
    return low, high if low < high else high + 0.001


class ScaledRotaryEmbedding(nn.Module):
    """Rotate the queries and keys of all heads on a ladder that is stretched by `factor`.

    As `RotaryEmbedding`, with other frequencies (see the functions of this chapter):

        "linear"  all divided by factor, which is position interpolation
        "ntk"     those of the base base·factor^(head_dim/(head_dim − 2))
        "yarn"    those of `yarn_frequencies`; cosines and sines, of queries and of keys, are
                  multiplied by 0.1·ln(factor) + 1 (1 for a factor up to 1)
        "llama3"  those of `llama3_frequencies`

    with the defaults of those functions (betas 32 and 1, truncated ends; limits 1 and 4). They
    never depend on the length of a text, so keys in a cache stay right while it grows.

    Shapes: `forward(q, k, positions)` takes q (batch, heads, seq, head_dim), k the same with as
        many heads or fewer (grouped queries: a divisor of heads), and positions (seq,), shared by
        the batch, or (batch, seq). It returns (q_rotated, k_rotated), shaped like q and k.
        Nothing else broadcasts.
    Dtype: floating. Results keep the dtype and device of q and k, also under autocast. Angles,
        sines and cosines are computed in float32 or better, whatever the dtype of q, and also
        after the module, or a parent that holds it, was cast. q, k and positions are not changed;
        gradients reach q and k.
    Units: positions and `original_length` in tokens; positions are integers or floats.
    Layout: half, coordinates (i, i + head_dim/2) are a pair.
    Raises: ValueError, at construction, when `head_dim` is not a positive even integer (the
        message names it), or is 2 with "ntk"; when `scaling` is none of the four (the message
        names all four); when `base`, `factor` or `original_length` is not a finite number above
        0; when YaRN's ramp has no room (see `yarn_frequencies`). In `forward`, when shapes or
        dtypes are not as above.

    >>> rope = ScaledRotaryEmbedding(head_dim=4, scaling="linear", factor=4.0)
    >>> q = torch.tensor([1.0, 0.5, -0.5, 2.0]).reshape(1, 1, 1, 4)
    >>> q_rotated, k_rotated = rope(q, q, torch.tensor([3]))
    >>> q_rotated.flatten()
    tensor([1.0725, 0.4850, 0.3158, 2.0037])
    """

    def __init__(
        self,
        head_dim: int,
        base: float = 10000.0,
        scaling: str = "yarn",
        factor: float = 1.0,
        original_length: int = 2048,
    ) -> None:
        super().__init__()
        if not isinstance(head_dim, SupportsIndex) or head_dim <= 0 or head_dim % 2:
            raise ValueError(
                f"head_dim must be a positive even integer, got {head_dim!r}; "
                f"coordinates turn in pairs"
            )
        if scaling not in SCALINGS:
            raise ValueError(
                f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}; "
                f"take the one that the model was tuned with"
            )
        for name, number in (
            ("base", base),
            ("factor", factor),
            ("original_length", original_length),
        ):
            if not 0 < number < math.inf:
                raise ValueError(
                    f"{name} must be finite and above 0, got {number!r}; "
                    f"lengths count tokens, and a factor of 1 changes nothing"
                )
        if scaling == "ntk" and head_dim == 2:
            raise ValueError(
                f"head_dim must be above 2 to change the base, got {head_dim!r}; "
                f"a single pair can only be interpolated: take 'linear'"
            )
        if scaling == "yarn":
            if base <= 1:
                raise ValueError(
                    f"base must be above 1 for a ramp, got {base!r}; later pairs have to be slower"
                )
            yarn_ends(head_dim, base, original_length)  # refuses lengths that leave no ramp
        self.head_dim = head_dim
        self.base = base
        self.scaling = scaling
        self.factor = factor
        self.original_length = original_length

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
        has_float64 = positions.device.type in ("cpu", "cuda")
        frequencies = scaled_frequencies(
            self.head_dim,
            self.base,
            self.scaling,
            self.factor,
            self.original_length,
            device=positions.device if has_float64 else "cpu",
        )
        # Cast, then move: MPS has no float64. Elementwise: autocast leaves such a product alone.
        frequencies = frequencies.to(torch.float64 if has_float64 else torch.float32)
        frequencies = frequencies.to(positions.device)
        angles = positions.to(frequencies.dtype)[..., None] * frequencies
        cos, sin = angles.cos(), angles.sin()
        if self.scaling == "yarn":
            sharpened = max(1.0, 0.1 * math.log(self.factor) + 1.0)
            cos, sin = sharpened * cos, sharpened * sin
        return rotate(q, k, cos, sin, "half")

"""Sinusoidal position encoding as a model uses it: a module that adds a fixed table to its input.

Why: a table in a module meets every cast of the model. This one is built from float64 angles, is
kept in float32, and is built anew when a cast or a move has gone over it. "The paper" is Vaswani et
al. (2017), arXiv:1706.03762.
"""

import math
from typing import SupportsIndex

import torch
from torch import Tensor, nn


def sinusoidal_table(max_len: int, dim: int, base: float = 10000.0) -> Tensor:
    """Rows PE(0) … PE(max_len − 1) of section 3.5 of the paper, rounded once, to float32.

    Shapes: result (max_len, dim).
    Dtype and device: angles in float64 on the CPU, whatever torch's defaults are (MPS has no
        float64); result float32, on the CPU.
    Layout: interleaved, sine in coordinate 2i and cosine in 2i + 1.

    >>> sinusoidal_table(2, dim=4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    positions = torch.arange(max_len, dtype=torch.float64, device="cpu")
    i = torch.arange(dim // 2, dtype=torch.float64, device="cpu")
    angles = positions[:, None] * base ** (-2 * i / dim)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()


class SinusoidalEncoding(nn.Module):
    """Add to every token the encoding of its position (section 3.5 of the paper).

    Twin of the NumPy `sinusoidal_encoding`, with nothing to train and an empty state_dict: the
    table is a buffer that is not persistent, or rows are made in `forward` and there is none.

    Shapes: `forward(x, offset=0)` takes x (batch, seq, dim) and returns the same shape: token t of
        every row of the batch gets PE(offset + t). Nothing else broadcasts. The table has the
        positions 0 … max_len − 1.
    Dtype: floating. The result keeps the dtype and device of x, also under autocast; x is not
        changed, and gradients reach it. The rows are float32 at least, and keep their
        precision when the module, or a parent that holds it, is cast.
    Units: offset and max_len in tokens.
    Layout: interleaved, sine in coordinate 2i and cosine in 2i + 1.
    Raises: ValueError, at construction, when `dim` is not a positive even integer (the message
        names it), `max_len` not a positive integer, or `base` not a finite number above 0; in
        `forward`, when offset < 0 or offset + seq > max_len, or x is not as above.

    >>> SinusoidalEncoding(dim=4, max_len=10)(torch.zeros(1, 2, 4), offset=4)
    tensor([[[-0.7568, -0.6536,  0.0400,  0.9992],
             [-0.9589,  0.2837,  0.0500,  0.9988]]])
    """

    table: Tensor

    def __init__(self, dim: int, max_len: int, base: float = 10000.0) -> None:
        super().__init__()
        if not isinstance(dim, SupportsIndex) or dim <= 0 or dim % 2:
            raise ValueError(
                f"dim must be a positive even integer, got {dim!r}; each frequency fills two "
                f"coordinates, a sine and a cosine"
            )
        if not isinstance(max_len, SupportsIndex) or max_len <= 0:
            raise ValueError(
                f"max_len must be a positive integer, got {max_len!r}; "
                f"count the longest input with its offset"
            )
        if not 0 < base < math.inf:
            raise ValueError(f"base must be finite and above 0, got {base!r}; 10000.0 is usual")
        self.dim = dim
        self.max_len = max_len
        self.base = base
        table = sinusoidal_table(max_len, dim, base).to(torch.get_default_device())
        self.register_buffer("table", table, persistent=False)

    def _apply(self, fn, recurse=True):
        """Every cast and every move of a module comes through here, also those of a parent.

        The table follows to the new device, but no cast may round it, and `to_empty` leaves it
        without values: so it is built anew.
        """
        super()._apply(fn, recurse)
        table = sinusoidal_table(self.max_len, self.dim, self.base)
        self.table = table.to(self.table.device)
        return self

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        if x.ndim != 3 or x.shape[-1] != self.dim or not x.is_floating_point():
            raise ValueError(
                f"x must be floating, (batch, seq, {self.dim}), got {x.dtype} {tuple(x.shape)}; "
                f"embed the tokens before you add their positions"
            )
        end = offset + x.shape[1]
        if offset < 0 or end > self.max_len:
            raise ValueError(
                f"positions must lie in 0..{self.max_len - 1}, got offset {offset} and seq "
                f"{x.shape[1]}, which end at {end - 1}; make the module with a larger max_len"
            )
        rows = self.table[offset:end].to(x.device)
        return (x + rows).to(x.dtype)  # added in float32 at least: rows are no less, x may be more

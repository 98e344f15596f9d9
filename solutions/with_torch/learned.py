"""Learned positions as BERT and GPT-2 use them: a parameter whose rows are added to the tokens.

Why: the lookup is a slice, so all that can go wrong is its edges, where a slice comes out short and
broadcasts, and its dtypes. "GPT" is Radford et al. (2018), *Improving Language Understanding by
Generative Pre-Training*.
"""

from typing import SupportsIndex

import torch
from torch import Tensor, nn


class LearnedPositionalEmbedding(nn.Module):
    """Add a trained vector to each token, the one of its position.

    The first layer of GPT, eq. 2, h₀ = U·W_e + W_p: x holds the rows U·W_e of the tokens, and
    `weight` is W_p. Token t of x stands at position offset + t.

        forward(x, offset)[b, t] = x[b, t] + weight[offset + t]

    Parameter: `weight` (max_len, dim), the only entry of the state_dict, trained like any other:
        no row is kept at zero, none is left out of the gradient.
    Shapes: x (batch, seq, dim); result the same. The batch shares its positions. Nothing else
        broadcasts.
    Dtype: floating. The result keeps the dtype and device of x, also under autocast, and also
        when the module, or a parent that holds it, was cast. `x` is not changed;
        gradients reach it and the weight.
    Units: max_len, seq and offset in tokens.
    Raises: ValueError, at construction, when `max_len` or `dim` is not a positive integer; in
        `forward`, when offset is negative, when offset + seq is more than max_len (the message
        names both), and when x has another shape.

    >>> small = LearnedPositionalEmbedding(max_len=3, dim=2)
    >>> three_rows = torch.tensor([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])
    >>> small.load_state_dict({"weight": three_rows})
    <All keys matched successfully>
    >>> small(torch.full((1, 2, 2), 10.0), offset=1)
    tensor([[[11.0000, 11.5000],
             [12.0000, 12.5000]]], grad_fn=<AddBackward0>)
    """

    def __init__(self, max_len: int, dim: int) -> None:
        super().__init__()
        for name, size in (("max_len", max_len), ("dim", dim)):
            if not isinstance(size, SupportsIndex) or size < 1:
                raise ValueError(
                    f"{name} must be a positive integer, got {size!r}; "
                    f"the table has max_len rows of width dim"
                )
        # A deviation of 0.02 is where GPT starts its weights (section 4.1).
        self.weight = nn.Parameter(0.02 * torch.randn(max_len, dim))

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        max_len, dim = self.weight.shape
        if x.ndim != 3 or x.shape[-1] != dim or not x.is_floating_point():
            raise ValueError(
                f"x must be floating, (batch, seq, {dim}), got {x.dtype} {tuple(x.shape)}; "
                f"add positions where the token vectors enter the model"
            )
        seq = x.shape[1]
        if offset < 0:
            raise ValueError(
                f"offset must be at least 0, got {offset!r}; it counts the tokens before x"
            )
        if offset + seq > max_len:  # a slice would come out short, and one row would broadcast
            raise ValueError(
                f"offset + seq must be at most max_len, got {offset} + {seq} = {offset + seq} with "
                f"max_len {max_len}; shorten the text, or resize the table and train on"
            )
        rows = self.weight[offset : offset + seq]
        return (x + rows).to(x.dtype)  # of two dtypes torch adds in the wider one

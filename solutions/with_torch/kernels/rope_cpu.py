"""The rotation of queries and keys on a CPU as one loop: each number is read once, written once.

Why: torch's operations rotate in three or more passes over memory, or write intermediates. Numba
compiles the loops of the definition, which turn a pair while its two numbers are in registers.
Threads are as many as torch has and, where both use GNU's OpenMP, the same ones: torch's threads
wait for their next work with a busy loop, beside which others would get half a processor.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numba
import torch
from torch import Tensor

from .rotation import check_rotation, rotated

TOKENS_IN_A_BLOCK = 256  # a long run through memory, and its rows of cos and sin stay in the cache

_ONE_AT_A_TIME = threading.Lock()  # where there is no OpenMP, Numba's own threads demand it


@numba.njit(inline="always")  # a call would be compiled for itself, and cost a quarter more
def _half(x, out, cos, sin):
    """One row of one head: [x0 x1 x2 x3] has the pairs [x0 x2], [x1 x3]."""
    pairs = len(cos)
    for i in range(pairs):
        first, second = x[i], x[i + pairs]
        out[i] = first * cos[i] - second * sin[i]
        out[i + pairs] = first * sin[i] + second * cos[i]


@numba.njit(inline="always")
def _interleaved(x, out, cos, sin):
    """One row of one head: [x0 x1 x2 x3] has the pairs [x0 x1], [x2 x3]."""
    for i in range(len(cos)):
        first, second = x[2 * i], x[2 * i + 1]
        out[2 * i] = first * cos[i] - second * sin[i]
        out[2 * i + 1] = first * sin[i] + second * cos[i]


def _over_blocks(turn):
    """The loop around one of the two functions above."""

    @numba.njit(parallel=True)
    def turn_blocks(x, out, cos, sin, tokens_first):
        """Blocks of tokens, numbered through all texts, each in the order of memory."""
        heads, tokens = (x.shape[2], x.shape[1]) if tokens_first else (x.shape[1], x.shape[2])
        blocks = -(-tokens // TOKENS_IN_A_BLOCK)
        for block in numba.prange(len(x) * blocks):
            b = block // blocks
            table = min(b, len(cos) - 1)  # one for each text, or one for all
            begin = block % blocks * TOKENS_IN_A_BLOCK
            stop = min(begin + TOKENS_IN_A_BLOCK, tokens)
            if tokens_first:
                for t in range(begin, stop):
                    for h in range(heads):
                        turn(x[b, t, h], out[b, t, h], cos[table, t], sin[table, t])
            else:
                for h in range(heads):
                    for t in range(begin, stop):
                        turn(x[b, h, t], out[b, h, t], cos[table, t], sin[table, t])

    return turn_blocks


_TURN_BLOCKS = {"half": _over_blocks(_half), "interleaved": _over_blocks(_interleaved)}


def rotate(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, layout: str = "half"
) -> tuple[Tensor, Tensor]:
    """Rotate the first pairs of q and of k; further coordinates pass through.

    Shapes: q (batch, heads, seq, head_dim) and k, alike but for its heads, with any strides; cos
        and sin (seq, pairs) or (batch, seq, pairs), pairs ≤ head_dim/2.
    Dtype: all float32 or all float64, on the CPU.
    Layout: "half" pairs coordinates (i, i + pairs), "interleaved" pairs (2i, 2i + 1).
    Gradients: of any order, for q and k.
    Raises: ValueError where the above does not hold.

    >>> q = torch.tensor([[[[1.0, 2.0, 3.0, 4.0]]]])
    >>> rotate(q, q, torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]]))[0]
    tensor([[[[-3.,  2.,  1.,  4.]]]])
    """
    check_rotation(q, k, cos, sin, None, layout)
    if q.device.type != "cpu" or q.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"q and k must be float32 or float64 on the CPU, got {q.dtype} on {q.device}; "
            f"use RotaryEmbedding, which takes all dtypes"
        )
    return rotated(_launch, q, k, cos, sin, None, layout)


def _launch(
    q: Tensor, k: Tensor, q_out: Tensor, k_out: Tensor, cos: Tensor, sin: Tensor,
    positions: None, layout: str, back: bool,
) -> None:  # fmt: skip
    tables = [(table if table.ndim == 3 else table[None]).numpy() for table in (cos, sin)]
    if back:
        tables[1] = -tables[1]
    for x, out in ((q, q_out), (k, k_out)):
        tokens_first = x.stride(1) < x.stride(2)
        arrays = [(a.transpose(1, 2) if tokens_first else a).detach().numpy() for a in (x, out)]
        with _ONE_AT_A_TIME, _as_many_threads_as_torch():
            _TURN_BLOCKS[layout](*arrays, *tables, tokens_first)
        rest = 2 * cos.shape[-1]
        out[..., rest:] = x[..., rest:]  # coordinates that do not turn


@contextmanager
def _as_many_threads_as_torch() -> Iterator[None]:
    """Numba's number of threads is torch's for a while, and both are as before afterwards.

    The OpenMP that both share has one number, and Numba sets it when it starts.
    """
    of_torch, of_numba = torch.get_num_threads(), numba.get_num_threads()
    most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    numba.set_num_threads(min(of_torch, most))
    try:
        yield
    finally:
        numba.set_num_threads(of_numba)
        if torch.get_num_threads() != of_torch:
            torch.set_num_threads(of_torch)

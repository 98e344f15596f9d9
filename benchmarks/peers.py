"""Other projects' rotations of q and k, each called as it is meant to be called.

Why: a ratio says something only beside code that is in use. Whatever a peer can prepare once for
all layers (tables, cached angles) is prepared before it is timed. One that is not installed, or
cannot do a case, is left out by name.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable

import torch
from torch import Tensor

from solutions.with_torch.rope import rope_angles

Rotate = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # q and k, (batch, heads, seq, dim)
BASE = 10000.0


def doubled(positions: Tensor, dim: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """cos and sin with each column twice, (1, seq, dim), as the half-split form wants them."""
    angles = rope_angles(positions, dim, BASE).repeat(1, 2)[None]
    return angles.cos().to(dtype), angles.sin().to(dtype)


def half_split(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """x·cos + (x with its halves exchanged, the first negated)·sin: what most models' code does."""

    def turned(x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    return turned(q), turned(k)


def transformers(positions: Tensor, dim: int, dtype: torch.dtype) -> Rotate:
    apply = importlib.import_module("transformers.models.llama.modeling_llama").apply_rotary_pos_emb
    cos, sin = doubled(positions, dim, dtype)
    return lambda q, k: apply(q, k, cos, sin)


def x_transformers(positions: Tensor, dim: int, dtype: torch.dtype) -> Rotate:
    module = importlib.import_module("x_transformers.x_transformers")
    frequencies, _ = module.RotaryEmbedding(dim).to(positions.device)(positions)
    apply = module.apply_rotary_pos_emb
    return lambda q, k: (apply(q, frequencies), apply(k, frequencies))


def rotary_embedding_torch(positions: Tensor, dim: int, dtype: torch.dtype) -> Rotate:
    rope = importlib.import_module("rotary_embedding_torch").RotaryEmbedding(dim)
    rope = rope.to(positions.device)
    first = int(positions[0])
    turn = rope.rotate_queries_or_keys
    return lambda q, k: (turn(q, offset=first), turn(k, offset=first))


def torchtune(positions: Tensor, dim: int, dtype: torch.dtype) -> Rotate:
    modules = importlib.import_module("torchtune.modules")
    length = int(positions[-1]) + 1
    rope = modules.RotaryPositionalEmbeddings(dim, length).to(positions.device)

    def both(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        turned = (rope(x.transpose(1, 2), input_pos=positions) for x in (q, k))
        q, k = (x.transpose(1, 2) for x in turned)
        return q, k

    return both


def liger(positions: Tensor, dim: int, dtype: torch.dtype) -> Rotate:
    """In place where q and k lie token by token in memory: it writes where it has read."""
    apply = importlib.import_module("liger_kernel.ops.rope").LigerRopeFunction.apply
    cos, sin = doubled(positions, dim, dtype)
    return lambda q, k: apply(q, k, cos, sin)


def flash_attention(positions: Tensor, dim: int, dtype: torch.dtype) -> Rotate:
    apply = importlib.import_module("flash_attn.layers.rotary").apply_rotary_emb
    angles = rope_angles(positions, dim, BASE)
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)

    def both(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        q, k = (apply(x.transpose(1, 2), cos, sin).transpose(1, 2) for x in (q, k))
        return q, k

    return both


def compiled(positions: Tensor, dim: int, dtype: torch.dtype) -> Rotate:
    torch._dynamo.reset()  # else, after eight shapes, it gives up compiling and runs as written
    fused = torch.compile(half_split, dynamic=False)
    cos, sin = doubled(positions, dim, dtype)
    return lambda q, k: fused(q, k, cos, sin)


ON_CPU = {
    "transformers": transformers,
    "x-transformers": x_transformers,
    "rotary-embedding-torch": rotary_embedding_torch,
    "torchtune": torchtune,
}
ON_CUDA = {
    "transformers": transformers,
    "torch.compile of the half-split form": compiled,
    "liger-kernel, in place": liger,
    "flash-attn": flash_attention,
}


def version(name: str) -> str | None:
    """What is installed of a peer; None where it is not."""
    try:
        return importlib.metadata.version(
            "torch" if name.startswith("torch.") else name.split(",")[0]
        )
    except importlib.metadata.PackageNotFoundError:
        return None

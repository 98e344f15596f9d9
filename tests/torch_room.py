"""Each exercise of the torch room as a case: how to make it, what to call it with, how exact it is.

Why: what a model does to a layer (casts, views, graphs, copies) is one list of tests for all eight
chapters, and only the arguments and the bounds of the error differ.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from solutions.with_torch.alibi import alibi_sdpa
from solutions.with_torch.context_extension import SCALINGS, ScaledRotaryEmbedding
from solutions.with_torch.kv_cache import CausalSelfAttention
from solutions.with_torch.learned import LearnedPositionalEmbedding
from solutions.with_torch.order_blindness import multi_head_attention
from solutions.with_torch.rope import RotaryEmbedding
from solutions.with_torch.sinusoidal import SinusoidalEncoding
from solutions.with_torch.two_d import AxialRotaryEmbedding2D

BASE = 500.0  # no default, so that a forgotten argument shows
LAST = 60  # rows of the tables that have an end


class Function(nn.Module):
    """An exercise that is a function, as a module: torch.export and pickle want one."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any) -> Tensor:
        return self.function(*arguments)


@dataclass(frozen=True)
class Case:
    """`make()` gives a fresh module; `arguments(n)` those of one call, for n tokens.

    `bound(module, arguments, unit, wide)` is how far off a result may be before it is rounded to
    its dtype, where the same call in float64 is exact.
    """

    name: str
    exercise: str
    make: Callable[[], nn.Module]
    arguments: Callable[[int], tuple]
    bound: Callable[[nn.Module, tuple, float, float], float]
    rotary: bool = False


def draw(*shape: int) -> Tensor:
    """Normal numbers, the same for the same shape, whatever was drawn before."""
    generator = torch.Generator().manual_seed(sum(31**i * n for i, n in enumerate(shape)))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def queries_and_keys(n: int) -> tuple[Tensor, Tensor]:
    """Six query heads on two key heads."""
    return draw(2, 6, n, 8), draw(2, 2, n, 8)


def places(n: int) -> Tensor:
    """Positions that are no range."""
    return (torch.arange(n) * 37 + 5) % 1009


# --- how exact a result is -----------------------------------------------------------------------
# `unit` is the relative error of one rounding to the dtype of the layer, `wide` that of one to
# float32 or better, in which torch adds up and in which angles are.


def of_rotation(module: nn.Module, arguments: tuple, unit: float, wide: float) -> float:
    """A cosine, a product and a sum are rounded, of numbers no longer than a pair.

    YaRN's pairs grow, so what comes out may be the largest.
    """
    return 4 * wide * math.sqrt(2) * largest([*arguments, *exact(module, arguments)])


def of_addition(module: nn.Module, arguments: tuple, unit: float, wide: float) -> float:
    """The sum is rounded as a wide number."""
    return wide * largest(exact(module, arguments))


def of_heads(module: nn.Module, arguments: tuple, unit: float, wide: float) -> float:
    """Softmax(q·k/√d)·v is computed in wide numbers.

    A score is a sum of d products of scaled numbers, and gets a bias of at most one for each of n
    keys. A weight is an exponential over a sum of n: relatively off by twice what a score is off
    by, and by the roundings of its own. The result is a sum of n values.
    """
    q, k, v = map(torch.abs, cast(arguments[:3], torch.float64))
    d, n = q.shape[-1], k.shape[-2]
    score = (d + 4) * wide * float((q @ k.mT).max()) / math.sqrt(d) + n * wide
    return (2 * score + (2 * n + 6) * wide) * float(v.max())


def of_layer(module: nn.Module, arguments: tuple, unit: float, wide: float) -> float:
    """How far roundings reach through two matrices and a softmax is measured, not summed up.

    x, the weights, q, k and v, what was mixed and the result are each rounded up to four times,
    to the dtype of the layer. Eight float64 runs in which all of them are moved by up to so much
    stand for where the roundings may fall; twice the farthest is allowed.
    """
    generator, farthest = torch.Generator().manual_seed(3), 0.0

    def shaken(x: Tensor) -> Tensor:
        moves = torch.rand(x.shape, generator=generator, dtype=torch.float64) * 2 - 1
        return x * (1 + 4 * unit * moves)

    for _ in range(8):
        layer, (x, *cache) = deepcopy(module).double(), cast(arguments, torch.float64)
        for part in (layer.qkv, layer.proj):
            part.weight.data = shaken(part.weight.data)
            part.register_forward_pre_hook(lambda _, given: shaken(given[0]))
            part.register_forward_hook(lambda _, given, result: shaken(result))
        with torch.no_grad():
            results = tree_leaves(layer(x, *cache))
        far = tree_map(torch.sub, results, exact(module, arguments))
        farthest = max(farthest, largest(far))
    return 2 * farthest


def units(dtype: torch.dtype) -> tuple[float, float]:
    """`unit` and `wide` of a dtype: half of its eps, and of float32's where that is smaller."""
    wide = torch.promote_types(dtype, torch.float32)
    return torch.finfo(dtype).eps / 2, torch.finfo(wide).eps / 2


def largest(values: Any) -> float:
    """The largest number among all tensors of floats in `values`."""
    floats = [x for x in tree_leaves(values) if is_floating(x) and x.numel()]
    return max((float(x.abs().max()) for x in floats), default=0.0)


def exact(module: nn.Module, arguments: tuple) -> list[Tensor]:
    """What the module gives when everything, weights included, is float64."""
    with torch.no_grad():
        return tree_leaves(deepcopy(module).double()(*cast(arguments, torch.float64)))


# --- arguments, cast, moved and laid out anew ----------------------------------------------------


def is_floating(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def cast(arguments: tuple, dtype: torch.dtype) -> tuple:
    """Everything that is floating, rounded to `dtype`; positions and masks as they are."""
    return tree_map(lambda x: x.to(dtype) if is_floating(x) else x, arguments)


def moved(arguments: tuple, device: str) -> tuple:
    return tree_map(lambda x: x.to(device) if isinstance(x, Tensor) else x, arguments)


def split_heads(x: Tensor) -> Tensor:
    """As a projection leaves it: (batch, seq, heads, dim) in memory, the heads moved to the front.

    Of three axes, the first two are exchanged in memory.
    """
    swapped = (1, 2) if x.ndim == 4 else (0, 1)
    return x.transpose(*swapped).contiguous().transpose(*swapped) if x.ndim > 2 else x


def with_gaps(x: Tensor) -> Tensor:
    """Every other coordinate of a tensor that is twice as wide and starts elsewhere."""
    wide = torch.full((*x.shape[:-1], 2 * x.shape[-1] + 1), 7.0, dtype=x.dtype, device=x.device)
    wide[..., 1::2] = x
    return wide[..., 1::2]


def upside_down(x: Tensor) -> Tensor:
    """The last axis is the slowest in memory."""
    return x.mT.contiguous().mT if x.ndim > 1 else x


VIEWS = {"split heads": split_heads, "gaps": with_gaps, "upside down": upside_down}


def viewed(arguments: tuple, view: Callable[[Tensor], Tensor]) -> tuple:
    return tree_map(lambda x: view(x) if is_floating(x) else x, arguments)


def other_places(arguments: tuple, n: int) -> tuple:
    """A call of the same lengths elsewhere: by positions, an offset, a grid or a longer cache."""
    first, *rest = arguments
    match rest:
        case [(keys, values)]:
            return first, (torch.cat([keys, keys], dim=2), torch.cat([values, values], dim=2))
        case [k, int(), int(), int() as prefix]:
            return first, k, 1, 2 * n, prefix
        case [k, v, slopes, int()]:
            return first, k, v, slopes, 0
        case [int() as offset]:
            return first, offset + 1
        case [k, positions] if not is_floating(positions):
            return first, k, positions + 100
    return arguments


# --- the cases ----------------------------------------------------------------------------------


def seeded(kind: type[nn.Module], *arguments: Any) -> Callable[[], nn.Module]:
    """Fresh modules that all have the same weights."""

    def make() -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(7)
            return kind(*arguments)

    return make


def rotary(name: str, kind: type[nn.Module], *arguments: Any, per_row: bool = False) -> Case:
    def call(n: int) -> tuple:
        positions = places(2 * n).reshape(2, n) if per_row else places(n)
        return (*queries_and_keys(n), positions)

    return Case(name, kind.__name__, seeded(kind, *arguments), call, of_rotation, rotary=True)


def added(name: str, kind: type[nn.Module], *arguments: Any) -> Case:
    make = seeded(kind, *arguments)
    return Case(name, kind.__name__, make, lambda n: (draw(2, n, 8), 3), of_addition)


def attention(name: str, function: Callable[..., Tensor], call: Callable[[int], tuple]) -> Case:
    return Case(name, function.__name__, seeded(Function, function), call, of_heads)


def three(n: int) -> tuple[Tensor, ...]:
    return draw(2, 3, n, 8), draw(2, 3, n, 8).flip(0), draw(2, 3, n, 8).flip(2)


def after_cache(n: int) -> tuple:
    return draw(2, n, 12), (draw(2, 3, 4, 4), draw(2, 3, 4, 4).flip(0))


def biased(n: int, past: int = 0) -> tuple:
    keys = draw(2, 3, n + past, 8).flip(3)
    return draw(2, 3, n, 8), keys, keys.flip(0), torch.tensor([0.5, 0.25, 0.125]), past


LAYER = seeded(CausalSelfAttention, 12, 3, BASE)
CASES = [
    attention("attention", multi_head_attention, three),
    attention(
        "attention with a mask",
        multi_head_attention,
        lambda n: (*three(n), torch.ones(n, n, dtype=torch.bool).tril()),
    ),
    added("sinusoids", SinusoidalEncoding, 8, LAST, BASE),
    added("learned rows", LearnedPositionalEmbedding, LAST, 8),
    rotary("rope, half", RotaryEmbedding, 8, BASE, "half"),
    rotary("rope, interleaved, by row", RotaryEmbedding, 8, BASE, "interleaved", per_row=True),
    Case("layer", "CausalSelfAttention", LAYER, lambda n: (draw(2, n, 12),), of_layer),
    Case("layer with a cache", "CausalSelfAttention", LAYER, after_cache, of_layer),
    attention("alibi", alibi_sdpa, biased),
    attention("alibi with an offset", alibi_sdpa, lambda n: biased(n, 4)),
    *(rotary(s, ScaledRotaryEmbedding, 8, BASE, s, 4.0, 64) for s in SCALINGS[:3]),
    rotary("llama3, by row", ScaledRotaryEmbedding, 8, BASE, SCALINGS[3], 4.0, 64, per_row=True),
    Case(
        "grid",
        "AxialRotaryEmbedding2D",
        seeded(AxialRotaryEmbedding2D, 8, BASE),
        lambda n: (*queries_and_keys(2 * n + 1), 2, n, 1),
        of_rotation,
        rotary=True,
    ),
]

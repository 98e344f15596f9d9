"""Programs as people write them, with a mistake: the message is about that mistake."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.grading import graded

# ---------------------------------------------------------------------------------- sincos_2d


def table_of(
    places: Callable[[int, int], Any],
    weave: Callable[..., Any],
    divisor: int = 4,
    parts: int = 2,
) -> Callable[..., np.ndarray]:
    """Sines and cosines of two arrays of places, put together by `weave(row half, column half)`."""

    def sincos_2d(height, width, dim, base=10000.0, first="row"):
        if min(height, width) < 1 or dim < 4 or dim % divisor or not base > 0:
            raise ValueError(f"{height}, {width}, {dim}, {base}")
        if first not in ("row", "column"):
            raise ValueError(first)
        ladder = 1 / base ** (np.arange(0, dim // 2, 2) / (dim // parts))
        angles = [np.outer(p, ladder) for p in places(height, width)]
        halves = angles if first == "row" else angles[::-1]
        return weave(*halves)

    return sincos_2d


def the_places(height: int, width: int) -> Any:
    return np.indices((height, width)).reshape(2, -1)


def alternating(*angles: np.ndarray) -> np.ndarray:
    halves = []
    for a in angles:
        half = np.empty((len(a), 2 * a.shape[1]))
        half[:, 0::2], half[:, 1::2] = np.sin(a), np.cos(a)
        halves.append(half)
    return np.hstack(halves)


def woven(*angles: np.ndarray) -> np.ndarray:
    first, second = (alternating(a) for a in angles)
    table = np.empty((len(first), 2 * first.shape[1]))
    table[:, 0::2], table[:, 1::2] = first, second
    return table


def in_blocks(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.hstack([np.sin(second), np.cos(second), np.sin(first), np.cos(first)])


def the_number_twice(height: int, width: int) -> Any:
    return [np.arange(height * width)] * 2


# ------------------------------------------------------------------------------ axial_rope_2d


def rotated_by(turn: Callable[..., Any], steps: float = 1) -> Callable[..., Any]:
    """A rotation of float64 copies, half by half, by `turn(half, angles, which, both angles)`."""

    def axial_rope_2d(x, rows, cols, base=100.0):
        x = np.asarray(x)
        kind = x.dtype if x.dtype.kind == "f" else np.dtype(float)
        dim, (rows, cols) = x.shape[-1], (np.asarray(p, dtype=float) for p in (rows, cols))
        if dim == 0 or dim % 4 or not base > 0:
            raise ValueError(f"dim {dim}, base {base}")
        if x.ndim < 2 or rows.shape != (x.shape[-2],) or cols.shape != (x.shape[-2],):
            raise ValueError("rows and cols")
        ladder = base ** (-steps * np.arange(dim // 4) / (dim // 4))
        both = [np.outer(p, ladder) for p in (rows, cols)]
        halves = x[..., : dim // 2].astype(float), x[..., dim // 2 :].astype(float)
        turned = [turn(h, both[i], i, both) for i, h in enumerate(halves)]
        return np.concatenate(turned, axis=-1).astype(kind)

    return axial_rope_2d


def rightly(half: np.ndarray, angles: np.ndarray) -> np.ndarray:
    a, b = half[..., 0::2].copy(), half[..., 1::2].copy()
    half[..., 0::2] = a * np.cos(angles) - b * np.sin(angles)
    half[..., 1::2] = a * np.sin(angles) + b * np.cos(angles)
    return half


def through_views(half: np.ndarray, angles: np.ndarray, *_: Any) -> np.ndarray:
    a, b = half[..., 0::2], half[..., 1::2]
    half[..., 0::2] = a * np.cos(angles) - b * np.sin(angles)
    half[..., 1::2] = a * np.sin(angles) + b * np.cos(angles)
    return half


def joined(half: np.ndarray, angles: np.ndarray, *_: Any) -> np.ndarray:
    a, b = half[..., 0::2], half[..., 1::2]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


# -------------------------------------------------------------------------------- resize_grid


def resized(
    place: Callable[..., Any],
    mix: Callable[..., Any],
    *,
    old: Callable[[int, int], Any] = lambda h, w: (h, w),
    new: Callable[[int, int], Any] = lambda h, w: (h, w),
) -> Callable[..., np.ndarray]:
    """One axis after the other: `mix(lines, place(new, old))` along axis 0."""

    def along_first(grid: np.ndarray, count: int) -> np.ndarray:
        return mix(grid, place(np.arange(count), len(grid), count))

    def resize_grid(table, old_hw, new_hw):
        table = np.asarray(table)
        if min(*old_hw, *new_hw) < 1 or len(table) != old_hw[0] * old_hw[1]:
            raise ValueError(f"{table.shape}, {old_hw}, {new_hw}")
        kind = table.dtype if table.dtype.kind == "f" else np.dtype(float)
        grid = table.astype(float).reshape(*old(*old_hw), -1)
        h, w = new(*new_hw)
        grid = along_first(grid, h)
        grid = along_first(grid.swapaxes(0, 1), w).swapaxes(0, 1)
        return grid.reshape(h * w, -1).astype(kind)

    return resize_grid


def centres(j: np.ndarray, old: int, new: int) -> np.ndarray:
    return np.clip((j + 0.5) * old / new - 0.5, 0, old - 1)


def unclamped(j: np.ndarray, old: int, new: int) -> np.ndarray:
    return (j + 0.5) * old / new - 0.5


def upside_down(j: np.ndarray, old: int, new: int) -> np.ndarray:
    return np.clip((j + 0.5) * new / old - 0.5, 0, old - 1)


def by_corner(j: np.ndarray, old: int, new: int) -> np.ndarray:
    return (j * old // new).astype(float)


def between(lines: np.ndarray, places: np.ndarray) -> np.ndarray:
    low = np.clip(np.floor(places).astype(int), 0, len(lines) - 1)
    high = np.minimum(low + 1, len(lines) - 1)
    share = (places - low)[:, None, None]
    return lines[low] * (1 - share) + lines[high] * share


def the_other_way(lines: np.ndarray, places: np.ndarray) -> np.ndarray:
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, len(lines) - 1)
    share = (places - low)[:, None, None]
    return lines[low] * share + lines[high] * (1 - share)


def width_first(h: int, w: int) -> tuple[int, int]:
    return w, h


# --------------------------------------------------------------------- AxialRotaryEmbedding2D


class Rotary(nn.Module):
    """Right, and in parts that a mistake can replace."""

    def __init__(self, head_dim: int, base: float = 100.0) -> None:
        super().__init__()
        if head_dim <= 0 or head_dim % 4 or not base > 0:
            raise ValueError(f"head_dim {head_dim}, base {base}")
        self.head_dim, self.base = head_dim, base
        self.keep(base ** (-torch.arange(0, head_dim // 2, 2) / (head_dim // 2)))

    def keep(self, ladder: Any) -> None: ...

    def ladder(self) -> Any:
        half = self.head_dim // 2
        return self.base ** (-torch.arange(0, half, 2).float() / half)

    def side(self, height: int, width: int) -> int:
        return width

    def angles(self, height: int, width: int) -> Any:
        t, side = torch.arange(height * width), self.side(height, width)
        ladder = self.ladder()
        return torch.cat([p[:, None] * ladder for p in (t // side, t % side)], dim=-1)

    def refuse(self, q: Any, k: Any, height: int, width: int, prefix: int) -> None:
        if min(height, width) < 1 or prefix < 0 or q.shape[2] != prefix + height * width:
            raise ValueError("grid")
        if q.shape[0] != k.shape[0] or q.shape[2:] != k.shape[2:] or q.shape[-1] != self.head_dim:
            raise ValueError("shapes")

    def forward(
        self, q: Any, k: Any, height: int, width: int, num_prefix_tokens: int = 0
    ) -> tuple[Any, Any]:
        self.refuse(q, k, height, width, num_prefix_tokens)
        angles = self.angles(height, width)
        cos, sin = angles.cos(), angles.sin()

        def turned(x: Any) -> Any:
            a, b = x[:, :, num_prefix_tokens:].unflatten(-1, (-1, 2)).unbind(-1)
            pairs = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
            return torch.cat([x[:, :, :num_prefix_tokens], pairs.to(x.dtype)], dim=2)

        return turned(q), turned(k)


class Buffer(Rotary):
    persistent = False

    def keep(self, ladder: Any) -> None:
        self.register_buffer("freqs", ladder, persistent=self.persistent)

    def ladder(self) -> Any:
        return self.freqs


class PersistentBuffer(Buffer):
    persistent = True


class Weight(Buffer):
    def keep(self, ladder: Any) -> None:
        self.freqs = nn.Parameter(ladder, requires_grad=False)


class OfAQuarter(Rotary):
    def ladder(self) -> Any:
        quarter = self.head_dim // 4
        return self.base ** (-2 * torch.arange(quarter).float() / quarter)


class Clockwise(Rotary):
    def angles(self, height: int, width: int) -> Any:
        return -super().angles(height, width)


class BySortedSizes(Rotary):
    def keep(self, ladder: Any) -> None:
        self.known: dict[tuple[int, ...], Any] = {}

    def angles(self, height: int, width: int) -> Any:
        sizes = tuple(sorted((height, width)))
        if sizes not in self.known:
            self.known[sizes] = super().angles(height, width)
        return self.known[sizes]


class DefaultBase(Rotary):
    def __init__(self, head_dim: int, base: float = 10000.0) -> None:
        super().__init__(head_dim, base)


class OfASquare(Rotary):
    def side(self, height: int, width: int) -> int:
        return math.isqrt(height * width)


class ByNumber(Rotary):
    def keep(self, ladder: Any) -> None:
        self.known: dict[int, Any] = {}

    def angles(self, height: int, width: int) -> Any:
        if height * width not in self.known:
            self.known[height * width] = super().angles(height, width)
        return self.known[height * width]


class OnlyOnce(Rotary):
    known = None

    def angles(self, height: int, width: int) -> Any:
        if self.known is None:
            self.known = super().angles(height, width)
        return self.known


class CutToLength(OnlyOnce):
    def angles(self, height: int, width: int) -> Any:
        if self.known is not None and len(self.known) < height * width:
            self.known = None
        return super().angles(height, width)[: height * width]


class QueriesAlone(Rotary):
    def refuse(self, q: Any, k: Any, height: int, width: int, prefix: int) -> None:
        super().refuse(q, q, height, width, prefix)


NAMED: list[tuple[str, Any, str]] = [
    ("sincos_2d", table_of(the_places, in_blocks), "sincos-2d-as-mae"),
    (
        "sincos_2d",
        table_of(lambda h, w: the_places(h, w) + 1, alternating),
        "sincos-2d-from-one",
    ),
    ("sincos_2d", table_of(the_number_twice, alternating), "sincos-2d-number-twice"),
    ("sincos_2d", table_of(the_places, woven), "sincos-2d-coordinates-alternate"),
    ("sincos_2d", table_of(the_places, alternating, divisor=2), "sincos-2d-even-is-enough"),
    ("sincos_2d", table_of(the_places, alternating, parts=4), "sincos-2d-ladder-of-quarter"),
    (
        "axial_rope_2d",
        rotated_by(lambda half, angles, *_: rightly(half, angles), steps=2),
        "axial-rope-2d-ladder-of-quarter",
    ),
    ("axial_rope_2d", rotated_by(through_views), "axial-rope-2d-turned-twice"),
    ("axial_rope_2d", rotated_by(joined), "axial-rope-2d-not-woven"),
    (
        "axial_rope_2d",
        rotated_by(lambda half, angles, which, _: half if which else rightly(half, angles)),
        "axial-rope-2d-first-half-only",
    ),
    (
        "axial_rope_2d",
        rotated_by(lambda half, angles, which, both: rightly(half, both[0] + both[1])),
        "axial-rope-2d-sum-in-each-half",
    ),
    (
        "axial_rope_2d",
        lambda x, rows, cols, *base: rotated_by(lambda half, angles, *_: rightly(half, angles))(
            x, np.asarray(rows).astype(int), np.asarray(cols).astype(int), *base
        ),
        "axial-rope-2d-whole-places",
    ),
    ("resize_grid", resized(unclamped, between), "resize-grid-not-clamped"),
    ("resize_grid", resized(upside_down, between), "resize-grid-upside-down"),
    ("resize_grid", resized(by_corner, between), "resize-grid-nearest-corner"),
    ("resize_grid", resized(centres, the_other_way), "resize-grid-weights-swapped"),
    ("resize_grid", resized(centres, between, old=width_first), "resize-grid-old-swapped"),
    ("resize_grid", resized(centres, between, new=width_first), "resize-grid-new-swapped"),
    (
        "resize_grid",
        resized(centres, between, old=width_first, new=width_first),
        "resize-grid-sizes-swapped",
    ),
    ("AxialRotaryEmbedding2D", Buffer, "axial-rotary-embedding-2d-buffer-as-it-is"),
    ("AxialRotaryEmbedding2D", PersistentBuffer, "axial-rotary-embedding-2d-buffer-as-it-is"),
    ("AxialRotaryEmbedding2D", Weight, "axial-rotary-embedding-2d-buffer-as-it-is"),
    (
        "AxialRotaryEmbedding2D",
        OfAQuarter,
        "axial-rotary-embedding-2d-ladder-of-quarter",
    ),
    ("AxialRotaryEmbedding2D", DefaultBase, "axial-rotary-embedding-2d-base-10000"),
    ("AxialRotaryEmbedding2D", Clockwise, "axial-rotary-embedding-2d-clockwise"),
    ("AxialRotaryEmbedding2D", BySortedSizes, "axial-rotary-embedding-2d-remembers-count"),
    ("AxialRotaryEmbedding2D", OfASquare, "axial-rotary-embedding-2d-of-a-square"),
    ("AxialRotaryEmbedding2D", ByNumber, "axial-rotary-embedding-2d-remembers-count"),
    ("AxialRotaryEmbedding2D", CutToLength, "axial-rotary-embedding-2d-remembers-first-grid"),
    ("AxialRotaryEmbedding2D", QueriesAlone, "axial-rotary-embedding-2d-looks-at-q-alone"),
]


@pytest.mark.parametrize(("exercise", "answer", "named"), NAMED, ids=[n for _, _, n in NAMED])
def test_the_mistake_is_named(exercise: str, answer: Callable[..., Any], named: str) -> None:
    result = graded(exercise, answer)
    assert result.misconception is not None and result.misconception["id"] == named


RIGHT: list[tuple[str, Any]] = [
    ("sincos_2d", table_of(the_places, alternating)),
    ("axial_rope_2d", rotated_by(lambda half, angles, *_: rightly(half, angles))),
    ("resize_grid", resized(centres, between)),
    ("AxialRotaryEmbedding2D", Rotary),
]


@pytest.mark.parametrize(("exercise", "answer"), RIGHT, ids=[n for n, _ in RIGHT])
def test_it_is_the_mistake_that_costs_the_points(exercise: str, answer: Any) -> None:
    """What the mistakes are put into is right."""
    assert all(check.passed for check in graded(exercise, answer).checks)


@pytest.mark.parametrize("answer", [ByNumber, OnlyOnce, CutToLength])
def test_a_remembered_grid_is_told_as_a_call_before(answer: Any) -> None:
    failed = [c for c in graded("AxialRotaryEmbedding2D", answer).checks if not c.passed]
    assert "as many tokens" in failed[0].sentence
    assert "after a call of the same module with 3 rows of 4" in failed[0].message

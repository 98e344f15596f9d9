"""Programs as people write them, with a mistake: the message is about that mistake."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from autograder import course
from solutions.with_numpy.rope import apply_rope
from solutions.with_torch.rope import RotaryEmbedding
from tests.grading import graded


class ArraysInAList:
    def __init__(self) -> None:
        self.k: list[np.ndarray] = []
        self.v: list[np.ndarray] = []

    def append(self, k: Any, v: Any) -> None:
        self.k.append(np.array(k))
        self.v.append(np.array(v))

    def __len__(self) -> int:
        return len(self.k)

    keys = property(lambda self: np.concatenate(self.k))
    values = property(lambda self: np.concatenate(self.v))

    def truncate(self, length: int) -> None:
        if not 0 <= length <= len(self):
            raise ValueError("length")
        self.k, self.v = self.k[:length], self.v[:length]


class OfTheClass:
    rows: list[tuple[np.ndarray, np.ndarray]] = []

    def append(self, k: Any, v: Any) -> None:
        k, v = np.array(k), np.array(v)
        if k.ndim != 2 or v.ndim != 2 or len(k) != len(v):
            raise ValueError("shapes")
        self.rows.extend(zip(k, v, strict=True))

    def __len__(self) -> int:
        return len(self.rows)

    keys = property(lambda self: np.array([k for k, _ in self.rows]))
    values = property(lambda self: np.array([v for _, v in self.rows]))

    def truncate(self, length: int) -> None:
        if not 0 <= length <= len(self):
            raise ValueError("length")
        del self.rows[length:]


def doubled_twice(max_len, dim, base=10000.0):
    if dim <= 0 or dim % 2 or max_len < 0 or base <= 0:
        raise ValueError(f"dim {dim}")
    angles = np.outer(np.arange(max_len), base ** (-2 * np.arange(0, dim, 2) / dim))
    return np.cos(angles), np.sin(angles)


def seats_overwritten(x, cos, sin, offset=0):
    cos, sin = cos[offset : offset + x.shape[-2]], sin[offset : offset + x.shape[-2]]
    even, odd = x[..., 0::2], x[..., 1::2]
    x[..., 0::2] = even * cos - odd * sin
    x[..., 1::2] = even * sin + odd * cos
    return x


def seats_joined(x, cos, sin, offset=0):
    cos, sin = cos[offset : offset + x.shape[-2]], sin[offset : offset + x.shape[-2]]
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.concatenate([even * cos - odd * sin, even * sin + odd * cos], axis=-1)


def loop(rows: list, divide: Callable[[int], float], fresh: bool, place: Callable) -> Callable:
    def decode(q, k, v, base=10000.0):
        if fresh:
            rows.clear()
        out = []
        for t in range(len(q)):
            m = place(t, len(rows))
            rows.append((apply_rope(k[t : t + 1], [m], base)[0], v[t]))
            keys, values = (np.array(part) for part in zip(*rows, strict=True))
            scores = keys @ apply_rope(q[t : t + 1], [m], base)[0] / divide(q.shape[1])
            weights = np.exp(scores - scores.max())
            out.append(weights @ values / weights.sum())
        return np.array(out)

    return decode


class Attention(torch.nn.Module):
    """Right but for what `query_zero` and `again` say."""

    query_zero = again = False
    layout = "interleaved"

    def __init__(self, dim: int, num_heads: int, base: float = 10000.0) -> None:
        super().__init__()
        self.heads, self.rope = num_heads, RotaryEmbedding(dim // num_heads, base, self.layout)
        self.qkv = torch.nn.Linear(dim, 3 * dim, bias=False)
        self.proj = torch.nn.Linear(dim, dim, bias=False)

    def forward(self, x: Any, cache: Any = None) -> Any:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        past = 0 if cache is None else cache[0].shape[2]
        places = torch.arange(past, past + x.shape[1])
        q = self.rope(q, q, places - past if self.query_zero else places)[0]
        if not self.again:
            k = self.rope(k, k, places)[0]
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        if self.again:
            k = self.rope(k, k, torch.arange(k.shape[2]))[0]
        seen = torch.ones(x.shape[1], k.shape[2], dtype=torch.bool).tril(past)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.proj(y.transpose(1, 2).flatten(2)), (k, v)


class QueryAtZero(Attention):
    query_zero = True


class KeysTurnedAgain(Attention):
    again = True


class QueryAtZeroInHalf(QueryAtZero):
    layout = "half"


class KeysTurnedAgainInHalf(KeysTurnedAgain):
    layout = "half"


@pytest.mark.parametrize(
    ("exercise", "answer", "named"),
    [
        ("rope_tables", doubled_twice, "rope-tables-exponent-doubled"),
        ("rope_with_offset", seats_overwritten, "rope-with-offset-overwrites-seats"),
        ("rope_with_offset", seats_joined, "rope-with-offset-joined-seats"),
        ("KVCache", ArraysInAList, "kv-cache-list-of-pieces"),
        ("KVCache", OfTheClass, "kv-cache-shared-lists"),
        (
            "fixed_decode",
            lambda: loop([], lambda _: 2.0, True, lambda t, n: t),
            "fixed-decode-divides-by-two",
        ),
        (
            "fixed_decode",
            lambda: loop([], math.sqrt, False, lambda t, n: n),
            "fixed-decode-cache-survives",
        ),
        (
            "fixed_decode",
            lambda: loop([], math.sqrt, False, lambda t, n: t),
            "fixed-decode-old-tokens-stay",
        ),
        ("CausalSelfAttention", QueryAtZero, "causal-self-attention-query-at-zero"),
        ("CausalSelfAttention", KeysTurnedAgain, "causal-self-attention-keys-turn-each-step"),
        (
            "CausalSelfAttention",
            QueryAtZeroInHalf,
            "causal-self-attention-query-at-zero-in-half",
        ),
        (
            "CausalSelfAttention",
            KeysTurnedAgainInHalf,
            "causal-self-attention-keys-turn-each-step-in-half",
        ),
    ],
)
def test_the_mistake_is_named(exercise: str, answer: Callable[..., Any], named: str) -> None:
    result = graded(exercise, answer)
    assert result.misconception is not None and result.misconception["id"] == named


def test_rows_left_in_shared_lists_change_nothing() -> None:
    """What a student tried before the checks ran must not hide the mistake."""
    OfTheClass().append(np.ones((3, 7)), np.ones((3, 2)))
    result = graded("KVCache", OfTheClass)
    assert result.misconception is not None
    assert result.misconception["id"] == "kv-cache-shared-lists"


def test_a_step_without_a_cache_is_told_what_is_missing() -> None:
    class KVCache:
        def __init__(self) -> None:
            raise NotImplementedError

    step = course.reference(course.find_exercise("decode_step")).decode_step
    for check in graded("decode_step", step, KVCache=KVCache).checks:
        assert check.message.startswith("`KVCache` is not written yet")


def test_a_weight_of_another_name_is_told() -> None:
    class Renamed(Attention):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.out, self.proj = self.proj, torch.nn.Identity()

    checks = graded("CausalSelfAttention", Renamed).checks
    assert "no entry called `proj.weight`" in checks[1].message

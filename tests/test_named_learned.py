"""Programs as people write them, with a mistake: the message is about that mistake."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.grading import graded


def assigned(grad_output, positions, num_positions):
    out = np.zeros((num_positions, np.shape(grad_output)[-1]))
    out[positions] = grad_output
    return out


def whole_steps(table, new_length):
    table = np.asarray(table, dtype=float)
    places = np.linspace(0, len(table) - 1, new_length).astype(int)
    return table[places]


def upside_down(table, new_length):
    table = np.asarray(table, dtype=float)
    old = len(table)
    places = np.minimum(np.arange(new_length) * (new_length - 1) / max(old - 1, 1), old - 1)
    columns = [np.interp(places, np.arange(old), column) for column in table.T]
    return np.stack(columns, axis=1)


def made_like_the_table(table, new_length):
    new = np.zeros((new_length, table.shape[1]), table.dtype)
    for c in range(table.shape[1]):
        places = np.linspace(0, len(table) - 1, new_length)
        new[:, c] = np.interp(places, np.arange(len(table)), table[:, c])
    return new


@pytest.mark.parametrize(
    ("exercise", "answer", "named"),
    [
        ("lookup_gradient", assigned, "lookup-gradient-loses-repeats"),
        ("resize_table", whole_steps, "resize-table-floor"),
        ("resize_table", upside_down, "resize-table-swaps-lengths"),
        ("resize_table", made_like_the_table, "resize-table-into-integers"),
    ],
)
def test_the_mistake_is_named(exercise: str, answer: Callable[..., Any], named: str) -> None:
    result = graded(exercise, answer)
    assert result.misconception is not None and result.misconception["id"] == named


def test_a_weight_of_another_name_is_told_first() -> None:
    class Positions(torch.nn.Module):
        def __init__(self, max_len: int, dim: int) -> None:
            super().__init__()
            self.table = torch.nn.Parameter(torch.zeros(max_len, dim))

    first, *others = graded("LearnedPositionalEmbedding", Positions).checks
    assert first.name == "learned_positional_embedding_state"
    assert "no entry called `weight`. It holds `table`" in first.message
    assert all("no entry called `weight`" in check.message for check in others)

"""Where a test runs: on the CPU, and on CUDA where there is a GPU, loudly skipped elsewhere.

Why: one pair of marks for all, so that `-m cuda` finds every test which only a GPU can answer.
"""

from collections.abc import Callable
from typing import TypeVar

import pytest
import torch

Test = TypeVar("Test", bound=Callable)
CUDA = torch.cuda.is_available()
MARKS = (
    pytest.mark.cuda,
    pytest.mark.skipif(not CUDA, reason="NOT TESTED ON CUDA: this machine has no CUDA device"),
)
DEVICES = ["cpu", pytest.param("cuda", marks=MARKS)]


def on_cuda(test: Test) -> Test:
    """Marks a test that has nothing to ask without a GPU."""
    for mark in MARKS:
        test = mark(test)
    return test

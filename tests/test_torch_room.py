"""What a model does to a layer, done to every exercise of the torch room: no call leaves a trace.

Dtypes, views, autocast, copies, inference mode, empty inputs and another device. What each chapter
computes is held by the test_solutions_*.py; graphs and derivatives by test_torch_room_graphs.py.
"""

import copy
import pickle

import pytest
import torch
from torch.func import functional_call
from torch.utils._pytree import tree_leaves, tree_map

from autograder import course
from tests.devices import on_cuda
from tests.torch_room import (
    CASES,
    VIEWS,
    Case,
    cast,
    exact,
    is_floating,
    moved,
    other_places,
    units,
    viewed,
)

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
HALVES = [torch.bfloat16, torch.float16]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def call(module: torch.nn.Module, arguments: tuple) -> list[torch.Tensor]:
    """All tensors that come out of one call."""
    with torch.no_grad():
        return tree_leaves(module(*arguments))


def assert_same_bits(results: list, expected: list) -> None:
    for a, b in zip(results, expected, strict=True):
        assert a.dtype == b.dtype and a.device == b.device
        assert torch.equal(a, b), (a - b).abs().max()


def assert_within(results: list, expected: list, bound: float, unit: float) -> None:
    """Off by `bound`, and rounded by up to `unit` of itself."""
    for a, b in zip(results, expected, strict=True):
        torch.testing.assert_close(a.double(), b.double(), rtol=unit, atol=bound)


def test_every_exercise_of_the_torch_room_is_a_case() -> None:
    exercises = course.exercises().values()
    room = [exercise for exercise in exercises if exercise.room == "with_torch"]
    expected = {exercise.name for exercise in room if not exercise.bonus}  # it asks less
    assert {case.exercise for case in CASES} == expected


# --- dtypes and views ---------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@each_case
def test_a_view_gives_what_float64_gives_but_for_roundings(
    case: Case, dtype: torch.dtype, view: str
) -> None:
    module, arguments = case.make().to(dtype), cast(case.arguments(5), dtype)
    views = viewed(arguments, VIEWS[view])
    assert not views[0].is_contiguous() and torch.equal(views[0], arguments[0])
    results = call(module, views)
    assert all(x.dtype == dtype for x in results)
    bound = case.bound(module, arguments, *units(dtype))
    assert_within(results, exact(module, arguments), bound, units(dtype)[0])


@each_case
def test_a_batch_that_is_one_sequence_repeated_needs_no_memory_of_its_own(case: Case) -> None:
    """`expand` gives the batch a stride of zero; what comes out must not be written there."""
    module, arguments = case.make(), cast(case.arguments(5), torch.float32)
    one = tree_map(lambda x: x[:1] if is_floating(x) and x.ndim > 2 else x, arguments)
    stretched = tree_map(
        lambda x: x.expand(2, *x.shape[1:]) if is_floating(x) and x.ndim > 2 else x, one
    )
    copied = tree_map(lambda x: x.clone() if is_floating(x) else x, stretched)
    bound, unit = case.bound(module, copied, *units(torch.float32)), units(torch.float32)[0]
    assert_within(call(module, stretched), call(module, copied), 2 * bound, 2 * unit)
    for result in call(module, stretched):
        if result.numel():
            result.zero_()
    assert_same_bits(tree_leaves(stretched[0]), tree_leaves(copied[0]))


@pytest.mark.parametrize("low", HALVES, ids=str)
@each_case
def test_autocast_costs_no_more_than_the_rounding_of_a_result(case: Case, low: torch.dtype) -> None:
    """Only the layer has matrices for autocast to take down; in the others no bit changes."""
    module, arguments = case.make(), cast(case.arguments(5), torch.float32)
    with torch.autocast("cpu", dtype=low):
        results = call(module, arguments)
    if case.exercise != "CausalSelfAttention":
        assert_same_bits(results, call(module, arguments))
    bound = case.bound(module, arguments, units(low)[0], units(torch.float32)[1])
    assert_within(results, exact(module, arguments), bound, torch.finfo(results[0].dtype).eps / 2)


# --- what is remembered -------------------------------------------------------------------------


@each_case
def test_earlier_calls_of_any_length_place_dtype_or_device_leave_no_trace(case: Case) -> None:
    used, arguments = case.make(), cast(case.arguments(5), torch.float32)
    expected = call(case.make(), arguments)
    call(used, cast(case.arguments(40), torch.float32))
    call(used, cast(other_places(arguments, 5), torch.float32))
    for dtype in DTYPES:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            call(used, arguments)
        weights = {name: weight.to(dtype) for name, weight in used.state_dict().items()}
        functional_call(used, weights, cast(other_places(arguments, 5), dtype))
    elsewhere = {name: weight.to("meta") for name, weight in used.state_dict().items()}
    functional_call(used, elsewhere, moved(arguments, "meta"))
    assert_same_bits(call(used, arguments), expected)


@each_case
def test_inference_first_and_training_afterwards(case: Case) -> None:
    """A tensor that was made in inference mode, and kept, could not be differentiated later."""
    used, arguments = case.make(), cast(case.arguments(5), torch.float32)
    with torch.inference_mode():
        results = tree_leaves(used(*arguments))
    assert all(x.is_inference() for x in results)
    assert_same_bits(results, call(used, arguments))
    first = arguments[0].requires_grad_()
    tree_leaves(used(first, *arguments[1:]))[0].sum().backward()
    assert first.grad is not None and first.grad.abs().max() > 0


@each_case
def test_only_weights_are_saved(case: Case) -> None:
    module = case.make()
    call(module, cast(case.arguments(5), torch.float32))
    assert module.state_dict().keys() == dict(module.named_parameters()).keys()
    assert all(weight.requires_grad for weight in module.parameters())


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "cast away and back": lambda module: copy.deepcopy(module).double().float(),
}


@pytest.mark.parametrize("way", COPIES)
@each_case
def test_a_copy_is_as_good_as_the_module_and_shares_nothing(case: Case, way: str) -> None:
    module, arguments = case.make(), cast(case.arguments(5), torch.float32)
    expected = call(module, arguments)
    twin = COPIES[way](module)
    assert_same_bits(call(twin, arguments), expected)
    with torch.no_grad():
        for tensor in (*twin.parameters(), *twin.buffers()):
            tensor.zero_()
    assert_same_bits(call(module, arguments), expected)


# --- nothing at all -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", [c for c in CASES if c.name != "grid"], ids=lambda c: c.name)
def test_no_tokens_give_no_rows_and_a_gradient_of_zeros(case: Case) -> None:
    """A grid has a patch at least."""
    arguments, module = cast(case.arguments(0), torch.float32), case.make()
    first = arguments[0].requires_grad_()
    result = tree_leaves(module(first, *arguments[1:]))[0]
    assert result.shape == arguments[0].shape and result.dtype == torch.float32
    result.sum().backward()
    assert first.grad.shape == first.shape
    assert all(w.grad is None or not w.grad.abs().max() for w in module.parameters())


@each_case
def test_no_sequences_give_no_sequences(case: Case) -> None:
    def none_of(x: object) -> object:
        sequences = isinstance(x, torch.Tensor) and (x.ndim > 2 or x.shape[:1] == (2,))
        return x[:0] if sequences else x

    arguments = tree_map(none_of, cast(case.arguments(5), torch.float32))
    full = call(case.make(), cast(case.arguments(5), torch.float32))
    for result, other in zip(call(case.make(), arguments), full, strict=True):
        assert result.shape == (0, *other.shape[1:]) and result.dtype == other.dtype


# --- another device -----------------------------------------------------------------------------


@on_cuda
@pytest.mark.parametrize("view", [None, *VIEWS])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@each_case
def test_cuda_gives_what_the_cpu_gives_but_for_roundings(
    case: Case, dtype: torch.dtype, view: str | None
) -> None:
    """Each of the two is within the bound of float64, so they are within twice that."""
    module, arguments = case.make().to(dtype), cast(case.arguments(5), dtype)
    expected, bound = call(module, arguments), case.bound(module, arguments, *units(dtype))
    there = moved(arguments, "cuda")
    results = call(module.to("cuda"), viewed(there, VIEWS[view]) if view else there)
    assert all(x.device.type == "cuda" and x.dtype == dtype for x in results)
    assert_within([x.cpu() for x in results], expected, 2 * bound, 2 * units(dtype)[0])
    assert_same_bits(call(module.to("cpu"), arguments), expected)

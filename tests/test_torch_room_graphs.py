"""Graphs and derivatives of every exercise of the torch room: compiled, exported, differentiated.

Why: a program that was traced at one length, offset or grid must be right at the others, without a
new trace for each; and a derivative is where a mask, a copy or a kernel goes wrong unseen.
"""

from collections.abc import Iterator

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.export import Dim, export
from torch.func import functional_call, jvp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from solutions.with_torch.rope import rope_angles, rotate_pairs
from tests.torch_room import CASES, Case, Function, cast, draw, is_floating, queries_and_keys, units

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
# Tracing takes seconds, so each exercise is traced in its richest case. (That all four scalings
# compile is held by test_solutions_context_extension.py.)
TRACED = [
    "attention with a mask",
    "sinusoids",
    "learned rows",
    "rope, interleaved, by row",
    "layer with a cache",
    "alibi with an offset",
    "yarn",
    "grid",
]
each_rotary = pytest.mark.parametrize("case", [c for c in CASES if c.rotary], ids=lambda c: c.name)
traced = [next(case for case in CASES if case.name == name) for name in TRACED]
each_traced = pytest.mark.parametrize("case", traced, ids=TRACED)


def arguments_of(case: Case, n: int) -> tuple:
    return cast(case.arguments(n), torch.float32)


def assert_equal_but_for_roundings(case: Case, module, program, arguments: tuple) -> None:
    """A graph may do the same in another order: both are within the bound of float64."""
    with torch.no_grad():
        results, expected = program(*arguments), module(*arguments)
    unit, wide = units(torch.float32)
    allowed = 2 * case.bound(module, arguments, unit, wide)
    for a, b in zip(tree_leaves(results), tree_leaves(expected), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        torch.testing.assert_close(a, b, rtol=2 * unit, atol=allowed)


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


# --- torch.compile ------------------------------------------------------------------------------


@each_traced
def test_compiled_under_autocast_it_gives_what_it_gives_under_autocast(case: Case) -> None:
    module, arguments = case.make(), arguments_of(case, 5)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        pairs = zip(tree_leaves(compiled(*arguments)), tree_leaves(module(*arguments)), strict=True)
    unit, wide = units(torch.bfloat16)[0], units(torch.float32)[1]
    if case.exercise != "CausalSelfAttention":
        unit = wide
    for a, b in pairs:
        assert a.dtype == b.dtype
        allowed = 2 * case.bound(module, arguments, unit, wide)
        torch.testing.assert_close(a.float(), b.float(), rtol=2 * unit, atol=allowed)


@each_traced
def test_a_compiled_module_has_the_gradients_of_the_module(case: Case) -> None:
    module = case.make()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    found = []
    for program in (compiled, module):
        module.zero_grad()
        arguments = arguments_of(case, 5)
        inputs = [x.requires_grad_() for x in tree_leaves(arguments) if is_floating(x)]
        sum(x.square().sum() for x in tree_leaves(program(*arguments))).backward()
        found.append([x.grad for x in (*inputs, *module.parameters())])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)  # sums of some hundred terms


def token_by_token(case: Case, module: torch.nn.Module) -> Iterator[tuple]:
    """Six calls that an offset, a cache, a grid or a length tells apart.

    They begin at 2: torch makes graphs of their own for a size of 0 and of 1, by design.
    """
    cache = None
    for step in range(2, 8):
        first, *rest = arguments_of(case, 1)
        if case.name == "layer with a cache":
            yield first, cache
            cache = module(first, cache)[1]
        elif case.name == "alibi with an offset":
            keys = draw(2, 3, step + 1, 8).float()
            yield first, keys, keys.flip(0), rest[-2], step
        elif case.name == "grid":
            height, width, prefix = step, 2 * step % 7 + 2, step % 3 + 2
            q, k = queries_and_keys(prefix + height * width)
            yield q.float(), k.float(), height, width, prefix
        elif isinstance(rest[0], int):
            yield first, step
        else:
            yield arguments_of(case, step)


@pytest.mark.parametrize("dynamic", [None, True], ids=["as they come", "dynamic"])
@each_traced
def test_six_steps_of_decoding_need_no_graph_for_each(case: Case, dynamic: bool | None) -> None:
    """torch gives up after eight graphs of one function, here after four.

    One is for the first call, one or two for sizes that turn out to change, one for no cache.
    """
    module = case.make()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    with torch._dynamo.config.patch(recompile_limit=4), torch.no_grad():
        for arguments in token_by_token(case, module):
            assert_equal_but_for_roundings(case, module, compiled, arguments)


# --- torch.export -------------------------------------------------------------------------------


def every_axis(arguments: tuple, module: torch.nn.Module) -> tuple:
    """All sizes and numbers may change, as far as the module does not fix them."""

    def of(x: object) -> object:
        return dict.fromkeys(range(x.ndim), Dim.AUTO) if isinstance(x, torch.Tensor) else Dim.AUTO

    shapes = tree_map(of, arguments)
    return (shapes,) if isinstance(module, Function) else shapes


def other_steps(name: str) -> list[tuple]:
    """Calls whose plain numbers are others than those of the example."""
    if name in ("sinusoids", "learned rows"):
        return [(draw(2, n, 8), offset) for n, offset in ((3, 0), (4, 50))]
    if name == "alibi with an offset":
        keys, slopes = draw(2, 3, 40, 8), draw(3).abs()
        return [(draw(2, 3, n, 8), keys, keys, slopes, at) for n, at in ((3, 0), (4, 36))]
    if name == "grid":  # a prefix of none has a graph of its own, as sizes of 0 have everywhere
        return [(*queries_and_keys(h * w + p), h, w, p) for h, w, p in ((3, 2, 1), (4, 7, 5))]
    return []


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "not strict"])
@each_traced
def test_an_exported_program_takes_every_length_offset_and_grid(case: Case, strict: bool) -> None:
    module, arguments = case.make(), arguments_of(case, 5)
    program = export(module, arguments, dynamic_shapes=every_axis(arguments, module), strict=strict)
    assert program.state_dict.keys() == module.state_dict().keys()
    exported = program.module()
    for n in (5, 7, 31):
        assert_equal_but_for_roundings(case, module, exported, arguments_of(case, n))
    for step in other_steps(case.name):
        step = cast(step, torch.float32)
        assert_equal_but_for_roundings(case, module, exported, step)


# --- derivatives --------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck], ids=["first", "second"])
@each_case
def test_derivatives_are_those_of_finite_differences(case: Case, check) -> None:
    """Of everything that is floating: inputs, slopes, a cache and weights.

    torch's fused attention for CPUs has no second derivative, so its plain one is asked for.
    """
    module, arguments = case.make().double(), cast(case.arguments(3), torch.float64)
    names, weights = (
        zip(*module.named_parameters(), strict=True) if module.state_dict() else ((), ())
    )
    leaves, structure = tree_flatten(arguments)
    floats = [at for at, x in enumerate(leaves) if is_floating(x)]

    def called(*inputs: torch.Tensor) -> tuple:
        given = list(leaves)
        for at, x in zip(floats, inputs, strict=False):
            given[at] = x
        state = dict(zip(names, inputs[len(floats) :], strict=True))
        return tuple(tree_leaves(functional_call(module, state, tree_unflatten(given, structure))))

    inputs = [
        x.detach().clone().requires_grad_() for x in (*(leaves[at] for at in floats), *weights)
    ]
    with sdpa_kernel(SDPBackend.MATH):
        assert check(called, inputs, fast_mode=True)


# --- torch.func, for what rotates ---------------------------------------------------------------


@each_rotary
def test_an_extra_axis_by_vmap_is_a_loop(case: Case) -> None:
    module, (q, k, *rest) = case.make(), arguments_of(case, 5)
    many_q, many_k = (torch.stack([x, x.flip(0), 2 * x]) for x in (q, k))
    shared = vmap(module, in_dims=(0, 0, *(None for _ in rest)))(many_q, many_k, *rest)
    for i, (one_q, one_k) in enumerate(zip(many_q, many_k, strict=True)):
        expected = module(one_q, one_k, *rest)
        assert all(torch.equal(many[i], one) for many, one in zip(shared, expected, strict=True))
    if isinstance(rest[0], torch.Tensor):
        positions = torch.stack([rest[0], rest[0] + 100, rest[0].flip(-1)])
        each = vmap(module)(many_q, many_k, positions)
        for i, where in enumerate(positions):
            expected = module(many_q[i], many_k[i], where)
            assert all(torch.equal(many[i], one) for many, one in zip(each, expected, strict=True))


@each_rotary
def test_the_tangent_of_a_rotation_is_the_tangent_rotated(case: Case) -> None:
    """A rotation is linear, so forward mode gives the same numbers as a call."""
    module, (q, k, *rest) = case.make().double(), cast(case.arguments(5), torch.float64)
    tangents = q.flip(1) + 1, k.flip(2) - 1
    results, turned = jvp(lambda q, k: module(q, k, *rest), (q, k), tangents)
    assert all(map(torch.equal, results, module(q, k, *rest)))
    unit, wide = units(torch.float64)
    allowed = 2 * case.bound(module, (*tangents, *rest), unit, wide)
    for a, b in zip(turned, module(*tangents, *rest), strict=True):
        torch.testing.assert_close(a, b, rtol=2 * unit, atol=allowed)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_angles_and_pairs_take_an_axis_by_vmap_and_a_tangent_by_jvp(layout: str) -> None:
    x, positions = draw(4, 5, 8), torch.arange(20, dtype=torch.float64).reshape(4, 5) * 1.5

    def turned(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        angles = rope_angles(positions, 8, 500.0)
        return rotate_pairs(x, angles.cos(), angles.sin(), layout)

    assert torch.equal(vmap(turned)(x, positions), turned(x, positions))
    assert torch.equal(vmap(vmap(turned))(x, positions), turned(x, positions))
    _, moved = jvp(turned, (x, positions), (torch.zeros_like(x), torch.ones_like(positions)))
    # One token further, a pair moves at right angles to where it points, by its frequency.
    quarter = torch.full((4,), torch.pi / 2, dtype=torch.float64)
    faster = turned(x, positions).view(4, 5, *((2, 4) if layout == "half" else (4, 2)))
    frequencies = rope_angles(torch.tensor(1), 8, 500.0)
    faster = faster * (frequencies if layout == "half" else frequencies[:, None])
    expected = rotate_pairs(faster.flatten(-2), quarter.cos(), quarter.sin(), layout)
    # A dozen roundings, each of a pair that no frequency makes longer.
    pair = float(x.unflatten(-1, (2, 4) if layout == "half" else (4, 2)).abs().max()) * 2**0.5
    torch.testing.assert_close(moved, expected, rtol=0, atol=12 * 2**-53 * pair)


def test_every_exercise_is_traced_and_every_number_varied() -> None:
    assert {case.exercise for case in traced} == {case.exercise for case in CASES}
    numbered = {c.name for c in traced if any(isinstance(x, int) for x in c.arguments(3))}
    assert numbered == {name for name in TRACED if other_steps(name)}

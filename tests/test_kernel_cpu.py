"""The Numba kernel of the rotation on a CPU, and which tensors get which kernel.

The same questions as the Triton kernel is asked; both are held against torch's own operations, to
the last bit.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from solutions.with_torch import kernels
from solutions.with_torch.context_extension import ScaledRotaryEmbedding
from solutions.with_torch.kernels import kernel_for, rope_cpu
from solutions.with_torch.rope import RotaryEmbedding, rotate
from solutions.with_torch.two_d import AxialRotaryEmbedding2D
from tests import rotations

ROOT = Path(__file__).parent.parent
LAYOUTS = ("half", "interleaved")
BOTH = [torch.float32, torch.float64]


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(20210420)


def inputs(make=rotations.contiguous, dtype=torch.float32, pairs=5, dim=10, seq=11, heads=(6, 3)):
    q, k = (make(2, h, seq, dim, dtype) for h in heads)
    return q, k, *rotations.tables(torch.randint(0, 50, (2, seq)), pairs, dtype)


# --- what is computed ---------------------------------------------------------------------------


@pytest.mark.parametrize("make", rotations.MEMORY, ids=lambda make: make.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", BOTH, ids=str)
def test_kernel_equals_the_plain_operations_bit_for_bit(make, layout, dtype):
    given = inputs(make, dtype)
    got = rope_cpu.rotate(*given, layout)
    assert all(map(torch.equal, got, rotations.plain(*given, layout)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("pairs", "dim"), [(1, 2), (3, 10), (2, 9), (6, 12)])
def test_any_width_is_rotated_and_the_rest_passes_through(layout, pairs, dim):
    given = inputs(pairs=pairs, dim=dim)
    got = rope_cpu.rotate(*given, layout)
    assert all(map(torch.equal, got, rotations.plain(*given, layout)))
    assert torch.equal(got[0][..., 2 * pairs :], given[0][..., 2 * pairs :])


@pytest.mark.parametrize("threads", [1, 3, 50])
@pytest.mark.parametrize("seq", [1, 255, 256, 257, 700])
@pytest.mark.parametrize("make", [rotations.contiguous, rotations.tokens_first])
def test_threads_and_blocks_of_tokens_leave_nothing_out(threads, seq, make, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    given = inputs(make, seq=seq)
    got = rope_cpu.rotate(*given)
    assert all(map(torch.equal, got, rotations.plain(*given, "half")))


def test_one_table_serves_all_texts_and_empty_ones_work():
    q, k, cos, sin = inputs()
    got = rope_cpu.rotate(q, k, cos[1], sin[1])
    assert all(map(torch.equal, got, rotations.plain(q, k, cos[1], sin[1], "half")))
    for shape in ((2, 3, 0, 4), (0, 3, 0, 4)):
        empty = torch.empty(shape)
        assert rope_cpu.rotate(empty, empty, torch.empty(0, 2), torch.empty(0, 2))[0].shape == shape


def test_inputs_are_not_changed_and_results_lie_in_memory_as_they_do():
    given = inputs(rotations.tokens_first)
    before = [x.clone() for x in given]
    got = rope_cpu.rotate(*given)
    assert all(map(torch.equal, given, before))
    assert [x.stride() for x in got] == [x.stride() for x in given[:2]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_first_and_second_order_in_both_modes(layout):
    _, _, cos, sin = inputs(dtype=torch.float64, pairs=2, seq=2)
    q, k = (torch.randn(2, h, 2, 5, dtype=torch.float64, requires_grad=True) for h in (2, 1))

    def turned(q, k):
        return rope_cpu.rotate(q, k, cos, sin, layout)

    assert torch.autograd.gradcheck(turned, (q, k), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(turned, (q, k))


def test_vmap_gives_what_each_part_gives():
    q, k, cos, sin = inputs()
    many = torch.stack([q, 2 * q, -q], dim=1)
    turn = torch.func.vmap(lambda q: rope_cpu.rotate(q, k, cos, sin), in_dims=1)
    for part, x in zip(turn(many)[0], many.unbind(1), strict=True):
        assert torch.equal(part, rope_cpu.rotate(x, k, cos, sin)[0])


@pytest.mark.parametrize("used", ["queries", "keys", "neither"])
def test_what_nobody_differentiates_gets_no_gradient(used):
    q, k, cos, sin = inputs()
    q.requires_grad_(used != "keys")
    k.requires_grad_()
    q_turned, k_turned = rope_cpu.rotate(q, k, cos, sin)
    total = {"queries": q_turned.sum(), "keys": k_turned.sum(), "neither": k.sum()}[used]
    gradients = torch.autograd.grad(total, [q, k] if used != "keys" else [k], allow_unused=True)
    if used == "keys":
        assert torch.equal(
            gradients[0], rotations.plain(q, torch.ones_like(k), cos, -sin, "half")[1]
        )
    elif used == "queries":
        assert torch.equal(
            gradients[0], rotations.plain(torch.ones_like(q), k, cos, -sin, "half")[0]
        )
    else:
        assert gradients[0] is None and torch.equal(gradients[1], torch.ones_like(k))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_dtypes_that_a_cpu_does_not_compute_in_are_refused(dtype):
    with pytest.raises(ValueError, match="float32 or float64 on the CPU"):
        rope_cpu.rotate(*inputs(dtype=dtype))


# --- which tensors get it -----------------------------------------------------------------------


@pytest.fixture
def always(monkeypatch) -> None:
    """The kernel is worth it for tensors of any size."""
    monkeypatch.setattr(kernels, "WORTH_COMPILING", 1)


@pytest.mark.parametrize("dtype", BOTH, ids=str)
def test_large_tensors_get_the_kernel_and_small_ones_do_not(dtype):
    large = torch.empty(1, 16, 512, 64, dtype=dtype)
    assert kernel_for(large, large) is rope_cpu.rotate
    small = large[:, :, :-1]
    assert kernel_for(small, small) is None


def modules():
    grid = {"height": 3, "width": 4}
    yield RotaryEmbedding(12, layout="half"), {"positions": torch.arange(12) + 7}
    yield RotaryEmbedding(12, layout="interleaved"), {"positions": torch.arange(24).view(2, 12)}
    yield ScaledRotaryEmbedding(12, factor=4.0), {"positions": torch.arange(12) + 7}
    yield AxialRotaryEmbedding2D(12), grid
    yield AxialRotaryEmbedding2D(12), {"height": 5, "width": 2, "num_prefix_tokens": 2}


@pytest.mark.parametrize("case", range(5))
@pytest.mark.parametrize("make", rotations.MEMORY, ids=lambda make: make.__name__)
def test_modules_give_the_same_bits_with_it(case, make, always, monkeypatch):
    module, arguments = list(modules())[case]
    q, k = (make(2, h, 12, 12, torch.float32) for h in (4, 2))
    asked = []
    monkeypatch.setattr(
        kernels, "_rotate_of", lambda *names: asked.append(names) or rope_cpu.rotate
    )
    with_kernel = module(q, k, **arguments)
    assert asked, "the kernel was not taken"
    monkeypatch.setattr(kernels, "_rotate_of", lambda *names: None)
    assert all(map(torch.equal, with_kernel, module(q, k, **arguments)))


def test_others_get_none(always):
    x = torch.ones(1, 1, 2, 4)
    assert kernel_for(x, x) is rope_cpu.rotate
    assert kernel_for(torch.nn.Parameter(x), x) is rope_cpu.rotate
    others = {
        "three axes": (x[0], x[0]),
        "half precision": (x.half(), x.half()),
        "two dtypes": (x, x.double()),
        "another device": (x.to("meta"), x.to("meta")),
        "a subclass": (x.as_subclass(type("Mine", (torch.Tensor,), {})), x),
    }
    for name, pair in others.items():
        assert kernel_for(*pair) is None, name


def test_the_numbers_of_threads_stay_as_they_were():
    program = """
import numba, torch
from solutions.with_torch.rope import rotate

torch.set_num_threads(1)
numba.set_num_threads(1)
q, table = torch.ones(1, 16, 512, 64), torch.ones(512, 32)
for _ in range(2):
    rotate(q, q, table, table)
    assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)
"""
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "4", "NUMBA_NUM_THREADS": "4"},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize(
    "shape", [(1, 11, 5), (11, 5), (2, 11, 5), (1, 5), (2, 1, 5), (1, 1, 1, 5)]
)
@pytest.mark.parametrize("other", [(11, 5), (2, 11, 5)])
def test_tables_broadcast_with_the_kernel_as_without(shape, other, always):
    q, k, *_ = inputs()
    cos, sin = torch.randn(shape), torch.randn(other)
    assert all(map(torch.equal, rotate(q, k, cos, sin), rotations.plain(q, k, cos, sin, "half")))


def test_keys_of_another_width_or_batch_are_rotated_by_the_plain_operations(always):
    q, k, cos, sin = inputs(pairs=4)
    for odd in (k[..., :8], k[:1]):
        table = (cos[0], sin[0])
        assert all(
            map(torch.equal, rotate(q, odd, *table), rotations.plain(q, odd, *table, "half"))
        )


@pytest.mark.parametrize("large", [False, True])
def test_a_wrong_layout_is_refused_at_every_size(large, monkeypatch):
    monkeypatch.setattr(kernels, "WORTH_COMPILING", 1 if large else 1 << 40)
    with pytest.raises(ValueError, match="layout must be"):
        rotate(*inputs(), "split")


def test_views_that_are_negated_lazily_keep_their_sign(always):
    q, k, cos, sin = inputs()
    negated = torch.view_as_complex(torch.stack([q, q], -1)).conj().imag
    assert negated.is_neg() and torch.equal(negated, -q)
    got = rotate(negated, k, cos, torch._neg_view(sin))
    assert all(map(torch.equal, got, rotations.plain(-q, k, cos, -sin, "half")))
    with pytest.raises(ValueError, match="resolve_neg"):
        rope_cpu.rotate(negated, k, cos, sin)


def test_tables_have_tangents_in_forward_mode(always):
    q, k, cos, sin = inputs()

    def turned(table):
        return rotate(q, k, table, sin)[0]

    _, tangent = torch.func.jvp(turned, (cos,), (torch.ones_like(cos),))
    first, second = q.chunk(2, dim=-1)
    torch.testing.assert_close(tangent, torch.cat([first, second], dim=-1))
    with pytest.raises(ValueError, match="no gradient here"):
        torch.func.jvp(lambda t: rope_cpu.rotate(q, k, t, sin)[0], (cos,), (cos,))


def test_tables_that_are_trained_get_their_gradients(always):
    q, k, cos, sin = inputs()
    cos.requires_grad_()
    turned, _ = rotate(q, k, cos, sin)
    (gradient,) = torch.autograd.grad(turned.sum(), cos)
    first, second = q.chunk(2, dim=-1)
    torch.testing.assert_close(gradient, (first + second).sum(1))
    with pytest.raises(ValueError, match="no gradient here"):
        rope_cpu.rotate(q, k, cos, sin)


def test_without_numba_the_plain_operations_do_it(always, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    kernels._rotate_of.cache_clear()
    try:
        given = inputs()
        assert kernel_for(*given[:2]) is None
        assert all(map(torch.equal, rotate(*given), rotations.plain(*given, "half")))
    finally:
        kernels._rotate_of.cache_clear()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_goes_without_it():
    """As a DataLoader's worker: OpenMP ends a fork that uses it after its parent did.

    The child computes nothing here: whether torch's own loops survive a fork is torch's affair.
    """
    program = """
import os, torch
from solutions.with_torch.kernels import kernel_for
from solutions.with_torch.rope import RotaryEmbedding

q = torch.ones(1, 32, 512, 64)
RotaryEmbedding(64)(q, q, torch.arange(512))
assert kernel_for(q, q)
child = os.fork()
if not child:
    os._exit(0 if kernel_for(q, q) is None else 1)
status = os.waitpid(child, 0)[1]
assert status == 0, f"the child ended with {status}"
"""
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr + told.stdout


def test_who_traces_sees_operations_and_no_kernel(always):
    """A graph that was traced through the kernel would give back what was never written."""
    q, k, cos, sin = inputs()

    def turned(q, k):
        return rotate(q, k, cos, sin)

    graph = make_fx(turned)(q, k)
    assert all(map(torch.equal, graph(2 * q, k), turned(2 * q, k)))
    with pytest.warns(DeprecationWarning):
        traced = torch.jit.trace(turned, (q, k))
    assert all(map(torch.equal, traced(2 * q, k), turned(2 * q, k)))
    compiled = torch.compile(turned, backend="aot_eager", fullgraph=True)
    assert all(map(torch.equal, compiled(2 * q, k), turned(2 * q, k)))
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert (
            rotate(torch.empty(2, 6, 11, 10), torch.empty(2, 3, 11, 10), cos, sin)[0].shape
            == q.shape
        )

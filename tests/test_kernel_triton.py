"""The Triton kernel of the rotation: on CUDA where there is a GPU, elsewhere interpreted.

Interpreted, each program runs in NumPy: what is computed and where it is stored is tested, the
compiler is not. What the compiler makes of it is looked at in the last tests.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from solutions.with_torch import kernels
from solutions.with_torch.rope import RotaryEmbedding
from tests import rotations
from tests.devices import CUDA, on_cuda

pytest.importorskip(
    "triton",
    reason="THE TRITON KERNEL IS NOT TESTED: requirements-dev.txt has Triton, for Linux only",
)
from solutions.with_torch.kernels.rope import rotate  # noqa: E402

ROOT = Path(__file__).parent.parent
DEVICE = "cuda" if CUDA else "cpu"
LAYOUTS = ("half", "interleaved")


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(20210420)


def inputs(make=rotations.contiguous, dtype=torch.float32, pairs=5, dim=10, heads=(6, 3)):
    """q and k for two texts of eleven tokens at positions of their own, tables and positions."""
    q, k = (make(2, h, 11, dim, dtype).to(DEVICE) for h in heads)
    positions = torch.randint(0, 50, (2, 11))
    cos, sin = (table.to(DEVICE) for table in rotations.tables(positions, pairs, dtype))
    return q, k, cos, sin, positions.to(DEVICE)


def whole_tables(pairs: int, dtype: torch.dtype, rows: int = 50):
    return [t.to(DEVICE) for t in rotations.tables(torch.arange(rows), pairs, dtype)]


# --- what is computed ---------------------------------------------------------------------------


@pytest.mark.parametrize("make", rotations.MEMORY, ids=lambda make: make.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
def test_kernel_equals_the_plain_operations_bit_for_bit(make, layout, dtype):
    q, k, cos, sin, _ = inputs(make, dtype)
    for got, wanted in zip(
        rotate(q, k, cos, sin, layout=layout), rotations.plain(q, k, cos, sin, layout), strict=True
    ):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bfloat16_is_rounded_once(layout):
    q, k, cos, sin, _ = inputs(dtype=torch.bfloat16)
    for got, wanted in zip(
        rotate(q, k, cos, sin, layout=layout), rotations.plain(q, k, cos, sin, layout), strict=True
    ):
        # The interpreter cuts bits off where a GPU rounds, which is a unit at most.
        assert rotations.ulps_apart(got, wanted) <= (0 if CUDA else 1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("pairs", "dim"), [(1, 2), (4, 8), (3, 10), (2, 9), (6, 12)])
def test_any_width_is_rotated_and_the_rest_passes_through(layout, pairs, dim):
    q, k, cos, sin, _ = inputs(pairs=pairs, dim=dim)
    got = rotate(q, k, cos, sin, layout=layout)
    for x, x_rotated, wanted in zip(
        (q, k), got, rotations.plain(q, k, cos, sin, layout), strict=True
    ):
        assert torch.equal(x_rotated, wanted)
        assert torch.equal(x_rotated[..., 2 * pairs :], x[..., 2 * pairs :])


@pytest.mark.parametrize("heads", [(1, 1), (5, 1), (3, 3), (33, 2), (1, 0)])
def test_any_number_of_heads(heads):
    q, k, cos, sin, _ = inputs(heads=heads)
    for got, wanted in zip(
        rotate(q, k, cos, sin), rotations.plain(q, k, cos, sin, "half"), strict=True
    ):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_rows_are_looked_up_by_the_positions_of_each_text(layout, dtype):
    q, k, cos, sin, positions = inputs()
    wanted = rotations.plain(q, k, cos, sin, layout)
    got = rotate(q, k, *whole_tables(5, torch.float32), positions.to(dtype), layout)
    assert all(map(torch.equal, got, wanted))


def test_positions_may_be_shared_and_strided():
    q, k, *_ = inputs()
    positions = torch.arange(40, device=DEVICE)[3:36:3]
    cos, sin = (table.to(DEVICE) for table in rotations.tables(positions.cpu(), 5, q.dtype))
    got = rotate(q, k, *whole_tables(5, q.dtype), positions)
    assert all(map(torch.equal, got, rotations.plain(q, k, cos, sin, "half")))


def test_one_token_of_many_texts_and_many_tokens_of_one():
    for batch, seq in ((40, 1), (1, 100), (3, 8), (1, 9)):
        q, k = (torch.randn(batch, heads, seq, 8, device=DEVICE) for heads in (4, 2))
        cos, sin = (t.to(DEVICE) for t in rotations.tables(torch.arange(seq) + 5, 4, q.dtype))
        got = rotate(q, k, cos, sin)
        assert all(map(torch.equal, got, rotations.plain(q, k, cos, sin, "half")))


@pytest.mark.parametrize("make", [rotations.contiguous, rotations.tokens_first])
def test_results_lie_in_memory_as_their_inputs(make):
    q, k, cos, sin, _ = inputs(make)
    assert [x.stride() for x in rotate(q, k, cos, sin)] == [q.stride(), k.stride()]


def test_what_is_not_finite_stays_in_its_pair():
    q, k, cos, sin, _ = inputs()
    q[0, 2, 4, 1] = float("nan")
    got = rotate(q, k, cos, sin)[0]
    assert got.isnan().nonzero().tolist() == [[0, 2, 4, 1], [0, 2, 4, 6]]


def test_empty_texts_and_batches_work():
    cos, sin = whole_tables(2, torch.float32, rows=0)
    for shape in ((2, 3, 0, 4), (0, 3, 0, 4)):
        empty = torch.empty(shape, device=DEVICE)
        assert rotate(empty, empty, cos, sin)[0].shape == shape


# --- in place -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", rotations.MEMORY, ids=lambda make: make.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pairs", [5, 3])
def test_in_place_writes_q_and_k_themselves(make, layout, pairs):
    q, k, cos, sin, _ = inputs(make, pairs=pairs)
    wanted = rotations.plain(q, k, cos, sin, layout)
    versions = q._version, k._version
    got = rotate(q, k, cos, sin, layout=layout, in_place=True)
    assert got[0] is q and got[1] is k
    assert torch.equal(q, wanted[0]) and torch.equal(k, wanted[1])
    assert q._version > versions[0] and k._version > versions[1], "autograd was not told"


def test_otherwise_the_inputs_are_not_changed():
    given = inputs()
    before = [x.clone() for x in given]
    rotate(*given[:4])
    assert all(map(torch.equal, given, before))


@pytest.mark.parametrize("spoilt", ["gradient", "same", "shifted", "fused", "expanded", "self"])
def test_in_place_is_refused_where_it_cannot_be_right(spoilt):
    q, k, cos, sin, _ = inputs()
    joint = torch.randn(2, 12, 11, 10, device=DEVICE)
    if spoilt == "gradient":
        q.requires_grad_()
    elif spoilt == "same":
        k = q
    elif spoilt == "shifted":
        q, k = joint[:, :6], joint[:, 3:9]
    elif spoilt == "fused":  # they interleave, which is told apart from overlapping by nobody
        q, k = joint[:, ::2], joint[:, 1::2]
    elif spoilt == "expanded":
        k = k[:, :1].expand(-1, 3, -1, -1)
    else:
        q = joint.as_strided((2, 6, 11, 10), (300, 40, 5, 1))
    with pytest.raises(ValueError, match="in place"):
        rotate(q, k, cos, sin, in_place=True)


def test_in_place_works_side_by_side_in_one_memory_and_on_nothing():
    joint = torch.randn(2 * 9 * 11 * 10, device=DEVICE)
    q, k = joint[: 2 * 6 * 110].view(2, 6, 11, 10), joint[2 * 6 * 110 :].view(2, 3, 11, 10)
    _, _, cos, sin, _ = inputs()
    wanted = rotations.plain(q, k, cos, sin, "half")
    rotate(q, k, cos, sin, in_place=True)
    assert torch.equal(q, wanted[0]) and torch.equal(k, wanted[1])
    empty = torch.empty(2, 3, 0, 4, device=DEVICE)
    rotate(empty, empty.clone(), *whole_tables(2, torch.float32, rows=0), in_place=True)


@pytest.mark.skipif(CUDA, reason="6 GiB that are never written; on a GPU they would be memory")
def test_coordinates_may_lie_further_apart_than_32_bits_count(tmp_path):
    apart = 2**30
    memory = np.memmap(tmp_path / "sparse", np.float16, "w+", shape=(3 * apart + 1,))
    q = torch.from_numpy(memory).as_strided((1, 1, 1, 4), (1, 1, 1, apart))
    q.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    cos, sin = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]])
    small = torch.ones(1, 1, 1, 4, dtype=torch.float16)
    assert rotate(q, small, cos, sin)[0].flatten().tolist() == [-3, 2, 1, 4]


# --- gradients ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("look_up", [False, True])
def test_gradients_of_first_and_second_order_in_both_modes(layout, look_up):
    positions = torch.tensor([[3, 0], [1, 2]], device=DEVICE)
    cos, sin = whole_tables(2, torch.float64, rows=4)
    arguments = (cos, sin, positions) if look_up else (cos[positions], sin[positions])
    q, k = (
        torch.randn(2, h, 2, 5, dtype=torch.float64, device=DEVICE, requires_grad=True)
        for h in (2, 1)
    )

    def turned(q, k):
        return rotate(q, k, *arguments, layout=layout)

    # Fast: along random directions, as the interpreter takes its time.
    assert torch.autograd.gradcheck(turned, (q, k), check_forward_ad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(turned, (q, k), fast_mode=True)


def test_one_of_the_two_may_need_no_gradient():
    q, k, cos, sin, _ = inputs()
    q.requires_grad_()
    q_rotated, _ = rotate(q, k, cos, sin)
    (gradient,) = torch.autograd.grad(q_rotated.sum(), q)
    wanted, _ = rotations.plain(torch.ones_like(q), k, cos, -sin, "half")
    assert torch.equal(gradient, wanted)


def test_vmap_gives_what_each_part_gives():
    q, k, cos, sin, _ = inputs()
    many = torch.stack([q, 2 * q, -q])
    got, keys = torch.func.vmap(lambda q, sin: rotate(q, k, cos, sin), in_dims=(0, None))(many, sin)
    assert keys.shape == (3, *k.shape)
    for part, x in zip(got, many, strict=True):
        assert torch.equal(part, rotate(x, k, cos, sin)[0])


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("position", [-1, 50, 2**40])
@pytest.mark.skipif(CUDA, reason="on CUDA the kernel's assertion tells it; that is tested below")
def test_a_position_past_the_tables_is_an_error(position):
    q, k, _, _, positions = inputs()
    positions[1, 7] = position
    with pytest.raises(IndexError, match=r"positions must lie in 0 … 49"):
        rotate(q, k, *whole_tables(5, q.dtype), positions)


@on_cuda
@pytest.mark.parametrize("position", [-1, 50])
def test_on_cuda_a_position_past_the_tables_stops_the_program(position):
    program = (
        "import torch; from solutions.with_torch.kernels.rope import rotate\n"
        "q = torch.ones(1, 1, 1, 4, device='cuda'); table = torch.ones(50, 2, device='cuda')\n"
        f"rotate(q, q, table, table, torch.tensor([{position}], device='cuda'))\n"
        "torch.cuda.synchronize()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )
    assert ended.returncode != 0
    assert "a position is past the cos and sin tables" in ended.stderr + ended.stdout


REFUSED = {
    "layout": (lambda a, p: a | {"layout": "split"}, "layout must be"),
    "three axes": (lambda a, p: a | {"q": a["q"][0]}, "q and k must be floating"),
    "integers": (
        lambda a, p: a | {"q": a["q"].int(), "k": a["k"].int()},
        "q and k must be floating",
    ),
    "two dtypes": (lambda a, p: a | {"k": a["k"].double()}, "alike but for their heads"),
    "two lengths": (lambda a, p: a | {"k": a["k"][:, :, 1:]}, "alike but for their heads"),
    "half tables": (lambda a, p: a | {"cos": a["cos"].half()}, "cos and sin must be contiguous"),
    "gaps": (lambda a, p: a | {"cos": a["cos"][..., ::2]}, "cos and sin must be contiguous"),
    "two tables": (lambda a, p: a | {"cos": a["cos"][..., :2].contiguous()}, "must have one shape"),
    "too wide": (lambda a, p: a | {"q": a["q"][..., :4], "k": a["k"][..., :4]}, "1 to 2 pairs"),
    "too few rows": (
        lambda a, p: a | {name: a[name][:, 1:].contiguous() for name in ("cos", "sin")},
        "a row for each of 11 tokens",
    ),
    "fractions": (
        lambda a, p: a | {"cos": a["cos"][0], "sin": a["sin"][0], "positions": p + 0.5},
        "positions must be int32 or int64",
    ),
    "other texts": (
        lambda a, p: a | {"cos": a["cos"][0], "sin": a["sin"][0], "positions": p[:, 1:]},
        "one position per token",
    ),
    "a table a text": (lambda a, p: a | {"positions": p}, "with tables"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_do_not_go_together_are_refused(case):
    spoil, message = REFUSED[case]
    *tensors, positions = inputs()
    given = dict(zip("q k cos sin".split(), tensors, strict=True))
    with pytest.raises(ValueError, match=message):
        rotate(**spoil(given, positions))


# --- on CUDA, and for it ------------------------------------------------------------------------


@on_cuda
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_modules_take_the_kernel_on_cuda_and_agree_with_the_cpu(layout, dtype):
    q, k, _, _, positions = inputs(dtype=dtype)
    module = RotaryEmbedding(10, rotations.BASE, layout)
    assert kernels.kernel_for(q, k) is rotate
    got = module(q, k, positions)
    wanted = RotaryEmbedding(10, rotations.BASE, layout)(q.cpu(), k.cpu(), positions.cpu())
    for x, y in zip(got, wanted, strict=True):
        # cos and sin in float64 differ by a unit of float64, so in float32 by one of its own.
        assert rotations.ulps_apart(x.cpu(), y) <= 2


@pytest.fixture(scope="module")
def report() -> list[dict]:
    if sys.platform != "linux":
        pytest.skip("Triton's compiler has wheels for Linux only")
    told = subprocess.run(
        [sys.executable, "benchmarks/kernel_report.py", "--capability", "90", "--capability", "80"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return [json.loads(line) for line in told.stdout.splitlines()]


def test_compiled_for_a_gpu_the_kernel_moves_sixteen_bytes_at_a_time(report):
    assert len(report) == 24
    for row in report:
        assert row["stores"] == ["st.global.v4.b32"], row
        assert "ld.global.v4.b32" in row["loads"], row
        narrow = set(row["loads"]) - {"ld.global.v4.b32"}
        assert narrow == ({"ld.global.b64"} if row["look_up"] else set()), row  # positions


def test_compiled_for_a_gpu_the_kernel_spills_nothing_and_leaves_room_for_other_programs(report):
    for row in report:
        assert row["spilled"] == 0, row
        assert row["registers"] <= 64, row  # 65536 registers hold eight programs of 128 threads


def test_compiled_for_a_gpu_the_assertion_stands_where_rows_are_looked_up(report):
    assert all(row["assertion"] == row["look_up"] for row in report)

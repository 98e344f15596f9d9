"""The benchmarks, as far as they can be tried where there is no GPU, and what they have written.

The measuring itself is run with a clock that counts instead of timing, on the CPU and on shapes
that are small: what is left out is what only a GPU can tell.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import alibi, peers, rope_cpu, rope_gpu, tables
from solutions.with_torch.rope import rope_angles
from tests import rotations

ROOT = Path(__file__).parent.parent
Q = torch.linspace(-1, 1, 2 * 4 * 3 * 8).view(2, 4, 3, 8)
K = Q[:, :2].flip(-1)


class Counting:
    """A clock whose microseconds are how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def median_us(self, run) -> float:
        run()
        self.asked += 1
        return float(self.asked)

    def call_us(self, run) -> float:
        run()
        return 100.0


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(rope_gpu, "DIM", 8)
    monkeypatch.setattr(rope_gpu, "SHAPES", (("one", 2, 4, 2, 1, 5), ("three", 2, 4, 4, 3, 0)))


def present(positions, dim, dtype):
    cos, sin = peers.doubled(positions, dim, dtype)
    return lambda q, k: peers.half_split(q, k, cos, sin)


def absent(positions, dim, dtype):
    raise ModuleNotFoundError("No module named 'absent'")


def test_every_shape_dtype_and_direction_gets_a_row(small, monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "ON_CUDA", {"present": present, "absent": absent})
    target = tmp_path / "result.json"
    rope_gpu.measure_all(Counting(), float("inf"), {"rows": []}, target, "cpu")
    record = json.loads(target.read_text("utf-8"))
    assert len(record["rows"]) == 8 and "not_measured" not in record
    first, second = record["rows"][:2]
    # q and k of (2, 4 + 2, 1, 8) in bfloat16, in and out, and a row of cos and sin in float32
    assert first["bytes"] == 2 * 6 * 8 * 2 * 2 + 8 * 4
    assert second["bytes"] == 2 * first["bytes"]
    assert (first["copy_us"], first["ours_us"], first["peers_us"]) == (1, 2, {"present": 3})
    assert first["ratio_to_peers"] == {"present": 3 / 2}
    assert first["of_copy_at_this_size"] == 1 / 2
    assert second["copy_us"] == 2 * 4  # there and back
    assert first["left_out"] == {"absent": "ModuleNotFoundError: No module named 'absent'"}
    fastest = max(row["bytes"] / row["copy_us"] for row in record["rows"])
    assert first["of_copy_bandwidth"] == pytest.approx(first["bytes"] / 2 / fastest)


def test_a_row_that_fails_is_told_and_the_others_are_measured(small, monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "ON_CUDA", {})
    turn, broken = rope_gpu.rotate, []

    def sometimes(q, k, *rest):
        if q.dtype == torch.float32:
            broken.append(1)
            raise RuntimeError("no such kernel")
        return turn(q, k, *rest)

    monkeypatch.setattr(rope_gpu, "rotate", sometimes)
    target = tmp_path / "results" / "result.json"
    rope_gpu.measure_all(Counting(), float("inf"), {"rows": []}, target, "cpu")
    record = json.loads(target.read_text("utf-8"))
    assert len(record["rows"]) == 4 and len(record["failed"]) == 4 and broken
    assert "no such kernel" in record["failed"][0]


def test_what_is_compiled_is_compiled_for_every_shape(monkeypatch):
    """Dynamo stops compiling a function after eight shapes; the rows after would be eager ones."""
    shapes = []

    def counted(graph, inputs):
        shapes.append([tuple(x.shape) for x in inputs if isinstance(x, torch.Tensor)])
        return graph.forward

    compile_with = torch.compile
    monkeypatch.setattr(
        torch, "compile", lambda f, **options: compile_with(f, backend=counted, **options)
    )
    for tokens in range(1, 13):
        q = torch.ones(1, 2, tokens, 8)
        peers.compiled(torch.arange(tokens), 8, q.dtype)(q, q)
    assert len(shapes) == 12


def test_what_there_was_no_time_for_is_told(small, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(peers, "ON_CUDA", {})
    target = tmp_path / "result.json"
    rope_gpu.measure_all(Counting(), 0.0, {"rows": []}, target, "cpu")
    assert json.loads(target.read_text("utf-8")) == {"rows": [], "not_measured": 8}
    assert "NOT MEASURED: 8 of 8 rows" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to measure on")
def test_without_a_gpu_nothing_is_measured_and_that_is_said():
    ended = subprocess.run(
        [sys.executable, "benchmarks/rope_gpu.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert "NOTHING WAS MEASURED" in ended.stdout


def agrees(turn: peers.Rotate, layout: str, seq: int = 3) -> None:
    angles = rope_angles(torch.arange(seq), 8)
    wanted = rotations.plain(Q, K, angles.cos(), angles.sin(), layout)
    for got, expected in zip(turn(Q, K), wanted, strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", [*rope_cpu.ours(torch.arange(3), 8)])
def test_what_is_timed_of_ours_rotates(name):
    agrees(rope_cpu.ours(torch.arange(3), 8)[name], name.split(", ")[1])


def test_the_half_split_form_rotates():
    agrees(present(torch.arange(3), 8, torch.float32), "half")
    agrees(rope_gpu.ours(torch.arange(3), 8, torch.float32), "half")


LAYOUT = {"transformers": "half"}  # the others of these pair neighbours


@pytest.mark.peers("rope")
@pytest.mark.parametrize("name", peers.ON_CPU)
def test_what_is_timed_of_a_peer_rotates(name):
    if missing := [wanted for wanted in rope_cpu.missing() if wanted.startswith(f"{name}==")]:
        pytest.skip(f"NOT COMPARED WITH {missing[0]}: 'make test-peers' installs it, and compares.")
    turn = peers.ON_CPU[name](torch.arange(3), 8, torch.float32)
    agrees(turn, LAYOUT.get(name, "interleaved"))


def test_every_peer_is_pinned():
    pinned = re.findall(r"^([\w-]+)==", (ROOT / "requirements-peers.txt").read_text("utf-8"), re.M)
    assert set(peers.ON_CPU) <= set(pinned)


def test_results_that_lie_in_the_repository_are_whole():
    record = json.loads(rope_cpu.RESULT.read_text("utf-8"))
    named = {"clone", *rope_cpu.ours(torch.arange(3), 8), *peers.ON_CPU}
    assert set(record["ratio_to_clone"]) == set(rope_cpu.ALLOCATORS)
    for column in record["ratio_to_clone"].values():
        assert set(column) == named and column["clone"] == 1
    for file in rope_cpu.RESULT.parent.glob("rope_*.json"):
        if file != rope_cpu.RESULT:  # of a GPU: measured there, with its tests passed
            told = json.loads(file.read_text("utf-8"))
            assert told["device"] and len(told["rows"]) + told.get("not_measured", 0) == 24


def test_the_page_shows_what_was_written_down():
    shown, record = tables.rope_on_cpu(), json.loads(rope_cpu.RESULT.read_text("utf-8"))
    rows = {
        cells[0]: cells[1:]
        for line in shown.splitlines()
        if len(cells := [cell.strip() for cell in line.strip("| ").split("|")]) == 3
    }
    first, second = record["ratio_to_clone"].values()
    for name in set(first) - {"clone"}:
        assert rows[name] == [f"{first[name]:.2f}", f"{second[name]:.2f}"]
    assert f"numba {record['versions']['numba']}" in shown
    ways = json.loads((tables.RESULTS / "alibi_cpu.json").read_text("utf-8"))["ways"]
    for name, way in ways.items():
        assert f"| {name} | {way['ratio_to_no_bias']:.1f} | {way['mebibytes']:.0f} |" in (
            tables.alibi_on_cpu()
        )


def test_without_a_gpu_s_numbers_the_page_says_so_and_with_them_it_shows_them(
    small, monkeypatch, tmp_path
):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    assert tables.rope_on_gpus() == tables.alibi_on_gpus() == tables.NOT_ON_A_GPU
    monkeypatch.setattr(peers, "ON_CUDA", {"present": present, "absent": absent})
    record = {
        "device": "Sample GPU",
        "versions": {"torch": "2.13.0", "flash-attn": None},
        "rows": [],
    }
    target = tmp_path / "rope_sample_gpu.json"
    rope_gpu.measure_all(Counting(), float("inf"), record, target, "cpu")
    shown = tables.rope_on_gpus()
    assert shown.startswith("Sample GPU, torch 2.13.0:\n\n|  | µs | of copy bandwidth | present |")
    assert "| one, bfloat16, forward | 2.0 |" in shown and shown.count("\n| ") == 2 + 8


@pytest.mark.parametrize("way", ["stored bias", "alibi_sdpa"])
def test_ways_to_attend_with_a_bias_agree(way):
    q, k, v = torch.randn(3, 1, 2, 9, 16)
    slopes = torch.tensor([0.5, 0.25])
    result = alibi.WAYS[way](q, k, v, slopes)()
    torch.testing.assert_close(result, alibi.alibi_sdpa(q, k, v, slopes), rtol=1e-5, atol=1e-6)


def test_memory_is_told_for_what_a_way_needs(monkeypatch):
    monkeypatch.setattr(alibi, "SHAPES", {"cpu": (1, 2, 1024, 16)})
    told = alibi.one_way("stored bias", "cpu", rounds=1)
    assert told["ratio_to_no_bias"] > 0 and told["mebibytes"] >= 0

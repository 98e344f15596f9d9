#!/usr/bin/env python3
"""Runs every test that a GPU can answer, then measures the rotation on it; writes a JSON.

Times are medians of device events. Before each run a buffer larger than the cache is written, so
that q and k come from memory, and the device is kept waiting until the host has launched. What a
call costs with its launches is told beside it, over calls that follow one another. Bytes are
counted: q and k once read and once written, cos and sin once read; backward again as many. The
measure is a plain copy of q and k on the same device: its bytes over its time, at its best, is the
bandwidth that there is.

  make gpu                                   tests and measurements, under eight minutes
  python benchmarks/rope_gpu.py --no-tests   the measurements alone
  python benchmarks/rope_gpu.py --tune       sizes of a program of the kernel, one against another

Result: benchmarks/results/rope_<device>.json, written after each row, and a table on the screen.

exit codes: 0 done, 1 a test or a row failed (told above, and in the file), 2 no CUDA device.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from torch import Tensor

from benchmarks import peers, tables
from solutions.with_torch.rope import rope_angles, rotate

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 400  # for tests and measurements; the attention that follows takes a minute more
TEST_SECONDS = 90
CYCLES_TO_WAIT = 2_000_000  # about a millisecond: longer than any launch takes
# All that import tests/devices.py: to collect every test takes longer than these do.
FILES = sorted(
    file
    for file in (ROOT / "tests").glob("test_*.py")
    if "tests.devices" in file.read_text("utf-8")
)
TESTS = {
    "marked cuda": ["-m", "cuda", *map(str, FILES)],
    "of the kernels": ["tests/test_kernel_triton.py", "tests/test_kernel_cpu.py"],
}
Shape = tuple[str, int, int, int, int, int]
Row = dict[str, Any]
# name, batch, query heads, key heads, tokens, first position: from one new token to a long prompt
SHAPES: tuple[Shape, ...] = (
    ("decode, batch 1", 1, 32, 8, 1, 4096),
    ("decode, batch 64", 64, 32, 8, 1, 4096),
    ("prompt of 512", 1, 32, 8, 512, 0),
    ("prompt of 2048", 1, 32, 32, 2048, 0),
    ("prefill 4 × 8192", 4, 32, 32, 8192, 0),
    ("prefill 4 × 8192, grouped keys", 4, 32, 8, 8192, 0),
)
DIM = 128
DTYPES = (torch.bfloat16, torch.float32)


def device_tests() -> dict[str, Any]:
    """Everything marked cuda, and the tests of the kernels, which take the GPU that is there."""
    found: dict[str, Any] = {}
    for name, arguments in TESTS.items():
        command = [sys.executable, "-m", "pytest", "-q", "-rf", "-n", "4", *arguments]
        try:
            told = subprocess.run(
                command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=TEST_SECONDS
            )
            output, ended = told.stdout, told.returncode
        except subprocess.TimeoutExpired as stopped:
            output, ended = (stopped.stdout or b"").decode(), None
        print(output[-3000:], flush=True)
        counts = re.findall(r"(\d+) (passed|failed|skipped|error)", output)
        found[name] = {"exit": ended, **{outcome: int(n) for n, outcome in counts}}
    return found


class Clock:
    """Medians of device events, with a cold cache before each run."""

    def __init__(self) -> None:
        self.flushed = torch.empty(256 << 20, dtype=torch.int8, device="cuda")

    def call_us(self, run: Callable[[], Any], calls: int = 50) -> float:
        """What a call takes where one follows the other, with its launches."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        torch.cuda.synchronize()
        return 1e6 * (time.perf_counter() - start) / calls

    def median_us(self, run: Callable[[], Any], budget_us: float = 60_000.0) -> float:
        """What the device does in a call, with a cold cache."""
        for _ in range(3):
            run()
        times: list[float] = []
        while len(times) < 10 or (sum(times) < budget_us and len(times) < 60):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.flushed.zero_()
            torch.cuda._sleep(CYCLES_TO_WAIT)
            begin.record()
            run()
            end.record()
            end.synchronize()
            times.append(1000 * begin.elapsed_time(end))
        return statistics.median(times)


def one_call(turn: peers.Rotate, q: Tensor, k: Tensor, backward: bool) -> Callable[[], Any]:
    """What is timed: forward, or forward and the gradients of q and k."""
    if not backward:
        return lambda: turn(q, k)
    q, k = (x.detach().requires_grad_() for x in (q, k))
    grads = torch.randn_like(q), torch.randn_like(k)
    return lambda: torch.autograd.grad(turn(q, k), (q, k), grads)


def ours(positions: Tensor, dim: int, dtype: torch.dtype) -> peers.Rotate:
    angles = rope_angles(positions, dim, peers.BASE)
    wide = torch.promote_types(dtype, torch.float32)
    cos, sin = angles.cos().to(wide), angles.sin().to(wide)
    return lambda q, k: rotate(q, k, cos, sin, "half")


def copy_of(q: Tensor, k: Tensor) -> Callable[[], Any]:
    q_out, k_out = torch.empty_like(q), torch.empty_like(k)
    return lambda: (q_out.copy_(q), k_out.copy_(k))


def queries_and_keys(
    shape: Shape, dtype: torch.dtype, device: str
) -> tuple[Tensor, Tensor, Tensor]:
    """q and k as a projection gives them, token by token in memory, and the positions."""
    _, batch, q_heads, k_heads, tokens, first = shape
    q, k = (
        torch.randn(batch, tokens, heads, DIM, dtype=dtype, device=device).transpose(1, 2)
        for heads in (q_heads, k_heads)
    )
    return q, k, torch.arange(first, first + tokens, device=device)


def measure(clock: Clock, shape: Shape, dtype: torch.dtype, backward: bool, device: str) -> Row:
    """One row: a copy, the kernel, and each peer that is here and takes the case."""
    q, k, positions = queries_and_keys(shape, dtype, device)
    passes = 2 if backward else 1
    once = (q.numel() + k.numel()) * q.element_size() * 2 + len(positions) * DIM * 4
    row: Row = {
        "shape": shape[0], "q": list(q.shape), "k": list(k.shape), "dtype": str(dtype)[6:],
        "direction": "forward and backward" if backward else "forward", "bytes": passes * once,
    }  # fmt: skip
    row["copy_us"] = passes * clock.median_us(copy_of(q, k))
    call = one_call(ours(positions, DIM, dtype), q, k, backward)
    row["ours_us"], row["ours_call_us"] = clock.median_us(call), clock.call_us(call)
    row["peers_us"], row["peers_call_us"], row["left_out"] = {}, {}, {}
    for peer, make in peers.ON_CUDA.items():
        if backward and make is peers.compiled:
            row["left_out"][peer] = "forward only: compiling takes most of the time that there is"
            continue
        try:
            call = one_call(make(positions, DIM, dtype), q, k, backward)
            row["peers_us"][peer] = clock.median_us(call)
            row["peers_call_us"][peer] = clock.call_us(call)
        except Exception as error:  # a peer that is absent or refuses the case
            row["left_out"][peer] = f"{type(error).__name__}: {error}"[:200]
    row["ratio_to_peers"] = {peer: us / row["ours_us"] for peer, us in row["peers_us"].items()}
    row["of_copy_at_this_size"] = row["copy_us"] / row["ours_us"]
    return row


def measure_all(clock: Clock, deadline: float, record: Row, target: Path, device: str) -> None:
    """Measure, and write the record after each row: what was measured is not lost."""
    cases = list(itertools.product(DTYPES, SHAPES, (False, True)))
    for done, (dtype, shape, backward) in enumerate(cases):
        if time.monotonic() > deadline:
            record["not_measured"] = len(cases) - done
            print(f"NOT MEASURED: {record['not_measured']} of {len(cases)} rows; the time was up")
            break
        try:
            row = measure(clock, shape, dtype, backward, device)
        except Exception as error:  # the other rows may still be measured
            record.setdefault("failed", []).append(f"{shape[0]}, {dtype}: {error!r}"[:500])
            print(f"FAILED: {record['failed'][-1]}", flush=True)
            keep(record, target)
            continue
        record["rows"].append(row)
        copied = [r["bytes"] / r["copy_us"] / 1e6 for r in record["rows"]]
        record["copy_terabytes_per_second"] = max(copied)
        for earlier in record["rows"]:
            reached = earlier["bytes"] / earlier["ours_us"] / 1e6
            earlier["of_copy_bandwidth"] = reached / max(copied)
        others = ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in row["ratio_to_peers"].items())
        print(
            f"{row['dtype']:9} {row['shape']:31} {row['direction']:21} {row['ours_us']:9.1f} µs  "
            f"{row['of_copy_at_this_size']:.2f} of a copy; times ours: {others}",
            flush=True,
        )
        keep(record, target)
    keep(record, target)


def keep(record: Row, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def tuned(clock: Clock) -> None:
    """Sizes of a program, at a prefill: µs for each, to choose the constants of the kernel by."""
    from solutions.with_torch.kernels import rope

    for shape in (SHAPES[1], SHAPES[4]):
        q, k, positions = queries_and_keys(shape, torch.bfloat16, "cuda")
        turn = ours(positions, DIM, torch.bfloat16)
        print(f"{shape[0]}: copy {clock.median_us(copy_of(q, k)):.1f} µs")
        for size in (2048, 4096, 8192, 16384):
            for at_once in (1, 2, 4, 8, 16):
                rope.BYTES_IN_A_PROGRAM, rope.TOKENS_IN_A_PROGRAM = size, at_once
                took = clock.median_us(one_call(turn, q, k, False))
                print(f"  {size:5} bytes, {at_once:2} tokens: {took:8.1f} µs", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--no-tests", action="store_true", help="measure only")
    parser.add_argument("--tune", action="store_true", help="compare sizes of the kernel's program")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        print("NOTHING WAS MEASURED: this machine has no CUDA device, or torch cannot see it.")
        print("tests/test_kernel_triton.py asks what a CPU can answer: interpreted, and compiled.")
        return 2
    start = time.monotonic()
    device = torch.cuda.get_device_name()
    packages = ("torch", "triton", "transformers", "liger-kernel", "flash-attn")
    record: Row = {
        "device": device,
        "capability": list(torch.cuda.get_device_capability()),
        "cuda": torch.version.cuda,
        "versions": {name: peers.version(name) for name in packages},
        "rows": [],
    }
    if given.tune:
        tuned(Clock())
        return 0
    target = tables.file_of("rope", device)
    if not given.no_tests:
        record["tests"] = device_tests()
        keep(record, target)
    measure_all(Clock(), start + SECONDS, record, target, "cuda")
    print(
        f"\n{device}: a copy moves {record.get('copy_terabytes_per_second', 0):.2f} TB/s; {target}"
    )
    failed = [name for name, told in record.get("tests", {}).items() if told["exit"] not in (0, 5)]
    if failed:
        print(f"TESTS FAILED OR WERE STOPPED: {', '.join(failed)}")
    return 1 if failed or record.get("failed") else 0


if __name__ == "__main__":
    sys.exit(main())

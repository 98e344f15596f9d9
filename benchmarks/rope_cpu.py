#!/usr/bin/env python3
"""Rotates queries and keys on the CPU beside four libraries, and beside a plain copy of both.

All run in turns within one process, so a busy machine slows all of them. Each number is the median
of an implementation's times over that of `x.clone()` of q and k: at 1 it costs as much as copying.

A tensor of 32 MiB is above the ceiling at which the C library asks the system for fresh memory, and
the pages of that memory are filled in while the result is written: this hides much of the
arithmetic. So everything is measured twice, in two processes: as a program is started, and with
glibc's threshold raised, where a result gets the memory of the one before.

  make bench-rope                        the table; it installs the libraries first
  python benchmarks/rope_cpu.py --write  the table, kept in benchmarks/results/rope_cpu.json

exit codes: 0 done, 2 a library is missing or another version than requirements-peers.txt pins.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
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

from benchmarks import peers, tables
from solutions.with_torch.rope import RotaryEmbedding, rope_angles, rotate

ROOT = Path(__file__).resolve().parent.parent
RESULT = tables.file_of("rope", "cpu")
SHAPE = (1, 32, 2048, 128)
THREADS = 2
ALLOCATORS = {
    "as started": "",
    "threshold raised": "glibc.malloc.mmap_threshold=1073741824:"
    "glibc.malloc.trim_threshold=4294967295",
}


def ours(positions: torch.Tensor, dim: int) -> dict[str, peers.Rotate]:
    """RotaryEmbedding computes its tables on every call; `rotate` is given them, as peers are."""
    angles = rope_angles(positions, dim)
    cos, sin = angles.cos().float(), angles.sin().float()
    named: dict[str, peers.Rotate] = {}
    for layout in ("half", "interleaved"):
        module = RotaryEmbedding(dim, layout=layout)
        named[f"RotaryEmbedding, {layout}"] = functools.partial(module, positions=positions)
        named[f"rotate, {layout}"] = functools.partial(rotate, cos=cos, sin=sin, layout=layout)
    return named


def medians(rounds: int) -> dict[str, float]:
    """Median seconds of each implementation and of the copy, all in turns."""
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    q, k = torch.randn(SHAPE), torch.randn(SHAPE)
    positions = torch.arange(SHAPE[2])
    named: dict[str, Callable[..., Any]] = {"clone": lambda q, k: (q.clone(), k.clone())}
    named |= ours(positions, SHAPE[3])
    named |= {name: make(positions, SHAPE[3], q.dtype) for name, make in peers.ON_CPU.items()}
    times: dict[str, list[float]] = {name: [] for name in named}
    with torch.no_grad():
        for turn in range(rounds + 2):
            for name in random.Random(turn).sample(list(named), len(named)):
                start = time.perf_counter()
                result = named[name](q, k)
                took = time.perf_counter() - start
                del result
                if turn >= 2:  # the first compile, and meet cold caches
                    times[name].append(took)
    return {name: statistics.median(taken) for name, taken in times.items()}


def missing() -> list[str]:
    """The peers that are not here in the version that is pinned."""
    pins = (ROOT / "requirements-peers.txt").read_text("utf-8")
    wanted = {name: re.search(rf"^{name}==(\S+)", pins, re.M)[1] for name in peers.ON_CPU}  # type: ignore[index]
    return [f"{name}=={pin}" for name, pin in wanted.items() if peers.version(name) != pin]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=25, help="how often each is timed (25)")
    parser.add_argument("--write", action="store_true", help=f"keep it in {RESULT.name}")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(medians(given.rounds)))
        return 0
    if absent := missing():
        print(f"needs {', '.join(absent)}: 'make bench-rope' installs them", file=sys.stderr)
        return 2
    command = [sys.executable, __file__, "--one", "--rounds", str(given.rounds)]
    columns, copied = {}, []
    for allocator, tunables in ALLOCATORS.items():
        environment = os.environ | {"GLIBC_TUNABLES": tunables, "OMP_NUM_THREADS": str(THREADS)}
        told = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
        )
        seconds = json.loads(told.stdout.splitlines()[-1])
        copied.append(seconds["clone"])
        columns[allocator] = {name: took / seconds["clone"] for name, took in seconds.items()}
    versions = {name: peers.version(name) for name in ("torch", "numba", *peers.ON_CPU)}
    facts = {"shape": SHAPE, "dtype": "float32", "threads": THREADS, "rounds": given.rounds}
    record = facts | {"versions": versions, "allocators": ALLOCATORS, "ratio_to_clone": columns}
    record["clone_in_fresh_memory"] = copied[0] / copied[1]
    print(f"q and k {SHAPE}, float32, {THREADS} threads; time over that of q.clone(), k.clone()\n")
    print(f"{'':32}" + "".join(f"{allocator:>18}" for allocator in columns))
    for name in columns["as started"]:
        print(f"{name:32}" + "".join(f"{column[name]:18.2f}" for column in columns.values()))
    print(f"\nThe first column's copy takes {copied[0] / copied[1]:.1f} times the second's.")
    print(", ".join(f"{name} {number}" for name, number in versions.items()))
    if given.write:
        RESULT.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

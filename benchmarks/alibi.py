#!/usr/bin/env python3
"""Times causal attention with ALiBi's bias: stored whole, made in steps, compiled into a kernel.

Each way runs in a process of its own, so that its memory can be told: what the process needed at
most beyond q, k, v and what was there before. Times are medians over that of causal attention
without any bias, which is timed in the same process, in turns.

  make bench-alibi                    on the CPU
  python benchmarks/alibi.py --write  kept in benchmarks/results/alibi_<device>.json
  python benchmarks/alibi.py --cuda   on a GPU, FlexAttention too; `make gpu` does that

exit codes: 0 done, 1 a way failed (the others are told), 2 no CUDA device where one was asked for.
"""

from __future__ import annotations

import argparse
import json
import resource
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
from torch.nn.functional import scaled_dot_product_attention

from benchmarks import peers, tables
from solutions.with_numpy.alibi import alibi_slopes
from solutions.with_torch.alibi import alibi_for_flex, alibi_sdpa, causal_bias

ROOT = Path(__file__).resolve().parent.parent
SHAPES = {"cpu": (1, 8, 4096, 64), "cuda": (1, 32, 8192, 128)}
THREADS = 2
Attention = Callable[[], Tensor]


def stored(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> Attention:
    """The bias of all queries and keys, made once: the memory is taken, the time is not counted.

    In the dtype of q, which is what torch wants of a mask; on a GPU that is bfloat16.
    """
    n = q.shape[2]
    bias = causal_bias(slopes, n, n, 0, torch.float32).to(q.dtype)[None]
    return lambda: scaled_dot_product_attention(q, k, v, attn_mask=bias)


def in_steps(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> Attention:
    return lambda: alibi_sdpa(q, k, v, slopes)


def flex(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> Attention:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    score_mod, mask_mod = alibi_for_flex(slopes)
    n = q.shape[2]
    mask = create_block_mask(mask_mod, None, None, n, n, device=str(q.device))
    compiled = torch.compile(flex_attention)
    return lambda: compiled(q, k, v, score_mod=score_mod, block_mask=mask)


WAYS = {"stored bias": stored, "alibi_sdpa": in_steps, "FlexAttention": flex}


def seconds(call: Attention, device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def one_way(name: str, device: str, rounds: int) -> dict[str, Any]:
    """Ratio to causal attention without a bias, and MiB needed beyond q, k and v."""
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    shape, dtype = SHAPES[device], torch.bfloat16 if device == "cuda" else torch.float32
    q, k, v = (torch.randn(shape, dtype=dtype, device=device) for _ in range(3))
    slopes = torch.tensor(alibi_slopes(shape[1]), dtype=torch.float32, device=device)

    def plain() -> Tensor:
        return scaled_dot_product_attention(q, k, v, is_causal=True)

    with torch.no_grad():
        plain()
        before = memory(device)
        call = WAYS[name](q, k, v, slopes)
        call()
        needed = memory(device) - before
        times: dict[str, list[float]] = {"plain": [], name: []}
        for _ in range(rounds):
            times["plain"].append(seconds(plain, device))
            times[name].append(seconds(call, device))
    medians = {which: statistics.median(taken) for which, taken in times.items()}
    return {"ratio_to_no_bias": medians[name] / medians["plain"], "mebibytes": needed / 2**20}


def memory(device: str) -> int:
    """Bytes that were in use at most, so far."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    kept = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kept if sys.platform == "darwin" else 1024 * kept


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cuda", action="store_true", help="on the GPU")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is timed (9)")
    parser.add_argument("--write", action="store_true", help="keep it in benchmarks/results")
    parser.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    device = "cuda" if given.cuda else "cpu"
    if given.cuda and not torch.cuda.is_available():
        print("NOTHING WAS MEASURED: this machine has no CUDA device, or torch cannot see it.")
        return 2
    if given.one:
        print(json.dumps(one_way(given.one, device, given.rounds)))
        return 0
    options = ["--rounds", str(given.rounds), *(["--cuda"] if given.cuda else [])]
    record: dict[str, Any] = {"device": torch.cuda.get_device_name() if given.cuda else "cpu"}
    record |= {"shape": SHAPES[device], "versions": {"torch": peers.version("torch")}, "ways": {}}
    print(f"q, k and v {SHAPES[device]} on {record['device']}\n")
    failed: list[str] = []
    for name in WAYS if given.cuda else [way for way in WAYS if way != "FlexAttention"]:
        command = [sys.executable, __file__, "--one", name, *options]
        told = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        if told.returncode:
            failed.append(name)  # its traceback stands above
            continue
        way = record["ways"][name] = json.loads(told.stdout.splitlines()[-1])
        print(
            f"{name:16} {way['ratio_to_no_bias']:6.2f} times attention without a bias, "
            f"{way['mebibytes']:8.0f} MiB more"
        )
    if given.write:
        text = json.dumps(record, indent=1) + "\n"
        tables.file_of("alibi", record["device"]).write_text(text, "utf-8")
    if failed:
        print(f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""The measurements of `results/`, as the pages of the book show them.

Why: a number on a page is one that a run wrote down. Where none was measured, the page says so.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
NOT_ON_A_GPU = (
    "**Not measured on a GPU.** No machine with one has run `make gpu` for this page yet, so it "
    "shows no number of one."
)


def file_of(benchmark: str, device: str) -> Path:
    """Where a benchmark keeps what it measured on a device, called as its maker calls it."""
    return RESULTS / f"{benchmark}_{re.sub(r'[^a-z0-9]+', '_', device.lower()).strip('_')}.json"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table whose first column is text and whose others are numbers."""
    lines = [head, [":--"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def read(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((RESULTS / name).read_text("utf-8"))
    return record


def of_gpus(benchmark: str) -> list[dict[str, Any]]:
    """What GPUs have written, in the order of their names."""
    files = sorted(RESULTS.glob(f"{benchmark}_*.json"))
    return [read(file.name) for file in files if file.name != f"{benchmark}_cpu.json"]


def versions(record: dict[str, Any]) -> str:
    return ", ".join(f"{name} {number}" for name, number in record["versions"].items() if number)


def rope_on_cpu() -> str:
    """Ratios to a copy, for each way of asking for memory."""
    record = read("rope_cpu.json")
    columns = record["ratio_to_clone"]
    rows = [
        [name, *(f"{column[name]:.2f}" for column in columns.values())]
        for name in next(iter(columns.values()))
        if name != "clone"
    ]
    fresh = f"A copy into fresh memory took {record['clone_in_fresh_memory']:.1f} times as long."
    under = f"{record['threads']} threads, {record['dtype']}, {versions(record)}. {fresh}"
    return f"{table(['', 'as started', 'memory reused'], rows)}\n\n{under}"


def rope_on_gpus() -> str:
    """For each device, the share of a copy's bandwidth and the ratios to the peers."""
    parts = []
    for record in of_gpus("rope"):
        peers = sorted({peer for row in record["rows"] for peer in row["ratio_to_peers"]})
        rows = [
            [
                f"{row['shape']}, {row['dtype']}, {row['direction']}",
                f"{row['ours_us']:.1f}",
                f"{row['of_copy_bandwidth']:.2f}",
                *(
                    f"{row['ratio_to_peers'][peer]:.2f}" if peer in row["ratio_to_peers"] else ""
                    for peer in peers
                ),
            ]
            for row in record["rows"]
        ]
        told = table(["", "µs", "of copy bandwidth", *peers], rows)
        parts.append(f"{record['device']}, {versions(record)}:\n\n{told}")
    return "\n\n".join(parts) or NOT_ON_A_GPU


def alibi_on(record: dict[str, Any]) -> str:
    rows = [
        [name, f"{way['ratio_to_no_bias']:.1f}", f"{way['mebibytes']:.0f}"]
        for name, way in record["ways"].items()
    ]
    batch, heads, tokens, dim = record["shape"]
    head = ["", "time, attention without a bias = 1", "MiB beyond q, k and v"]
    under = f"{heads} heads of {dim}, {tokens} tokens, on {record['device']}, {versions(record)}"
    return f"{table(head, rows)}\n\n{under}."


def alibi_on_cpu() -> str:
    return alibi_on(read("alibi_cpu.json"))


def alibi_on_gpus() -> str:
    return "\n\n".join(map(alibi_on, of_gpus("alibi"))) or NOT_ON_A_GPU

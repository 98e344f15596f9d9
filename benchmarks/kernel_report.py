#!/usr/bin/env python3
"""Compiles the rotation kernel for GPUs that need not be here, and tells what came out.

Why: how wide a kernel's memory accesses are, and whether its registers suffice, is decided by the
compiler. So it can be looked at, and tested, on a machine without a GPU.

  python benchmarks/kernel_report.py                  compute capabilities 8.0 and 9.0
  python benchmarks/kernel_report.py --capability 90  one of them; also 75, 86, 89, 100

One JSON object a line: capability, layout, dtype, whether rows are looked up by position, the
accesses to global memory, registers of a thread, bytes spilled to memory, and the assertion.

exit codes: 0 done, 1 the compiler refused.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "0"  # nothing is run here
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from solutions.with_torch.kernels import rope

CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
HEAD_DIM = 128


def compiled(capability: int, layout: str, dtype: str, look_up: bool) -> Any:
    """The kernel as a prefill launches it: contiguous q and k with heads of 128."""
    pairs, tokens = HEAD_DIM // 2, rope.TOKENS_IN_A_PROGRAM
    constants: dict[str, Any] = {
        "HALF": pairs, "PAIRS": pairs, "REST": 0, "PASSED": 1, "TOKENS": tokens,
        "HEADS": rope.BYTES_IN_A_PROGRAM // (tokens * HEAD_DIM * {"fp32": 4}.get(dtype, 2)),
        "INTERLEAVED": layout == "interleaved", "LOOK_UP": look_up, "BACK": False,
        "TOKENS_FIRST": False,
    }  # fmt: skip
    names = rope._rotate_kernel.arg_names
    constants |= {name: 1 for name in names if name.endswith("_dim") or name == "positions_token"}
    if not look_up:
        constants["positions"] = None
    table = "fp64" if dtype == "fp64" else "fp32"
    pointers = dict.fromkeys("q k q_out k_out".split(), f"*{dtype}")
    pointers |= {"cos": f"*{table}", "sin": f"*{table}", "positions": "*i64"}
    signature = {
        name: "constexpr" if name in constants else pointers.get(name, "i32") for name in names
    }
    # What a launch finds out about its arguments: addresses and strides are multiples of 16.
    aligned = [
        name.endswith(("_batch", "_head", "_token", "_row")) or name in pointers for name in names
    ]
    source = ASTSource(
        fn=rope._rotate_kernel,
        signature=signature,
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={
            (i,): [["tt.divisibility", 16]]
            for i, name in enumerate(names)
            if aligned[i] and name not in constants
        },
    )
    options = {"debug": look_up, "sanitize_overflow": False, "enable_fp_fusion": False}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def resources(cubin: bytes) -> dict[str, int]:
    """Registers and bytes of local memory, which is where registers are spilled to."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        told = subprocess.run(
            [CUOBJDUMP, "-res-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    registers, stack, local = (
        int(re.search(rf"{name}:(\d+)", told)[1])  # type: ignore[index]
        for name in ("REG", "STACK", "LOCAL")
    )
    return {"registers": registers, "spilled": stack + local}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--capability", type=int, action="append")
    for capability in parser.parse_args().capability or [80, 90]:
        for layout in ("half", "interleaved"):
            for dtype in ("fp16", "bf16", "fp32"):
                for look_up in (False, True):
                    kernel = compiled(capability, layout, dtype, look_up)
                    ptx = kernel.asm["ptx"]
                    row: dict[str, Any] = {"capability": capability, "layout": layout}
                    row |= {"dtype": dtype, "look_up": look_up}
                    row["loads"] = sorted(set(re.findall(r"ld\.global[\w.:]*", ptx)))
                    row["stores"] = sorted(set(re.findall(r"st\.global[\w.:]*", ptx)))
                    row |= resources(kernel.asm["cubin"])
                    row["assertion"] = "__assertfail" in ptx
                    print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Reads what people hand in: notebooks that may be anything, and Python files."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

MAX_BYTES = 20 << 20


class Malformed(Exception):
    """The file is no notebook; the message says why."""


def code_cells(file: Path) -> list[str]:
    """The sources of the code cells of a notebook, or of the `# %%` cells of a Python file."""
    return cells_of(read_bytes(file), python=file.suffix == ".py")


def read_bytes(file: Path) -> bytes:
    """The content of a regular file of a sane size; links and devices are refused."""
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise Malformed(f"{file.name} is no regular file")
    if status.st_size > MAX_BYTES:
        raise Malformed(f"{file.name} is larger than {MAX_BYTES >> 20} MiB: clear its outputs")
    return file.read_bytes()


def cells_of(content: bytes, *, python: bool = False) -> list[str]:
    """The code cells in these bytes."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Malformed("it is not UTF-8 text") from None
    if python:
        return [cell for cell in re.split(r"^# ?%%.*$", text, flags=re.M) if cell.strip()]
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        raise Malformed("it is no notebook: its content is not JSON") from None
    return cells_in(notebook)


def cells_in(notebook: Any) -> list[str]:
    """The code cells of a notebook as nbformat 4 has them, tolerating what others add."""
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise Malformed("it is no notebook of format 4: it has no list of cells")
    sources = []
    for cell in cells:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        if isinstance(source, list):
            source = "".join(part for part in source if isinstance(part, str))
        if isinstance(source, str) and source.strip():
            sources.append(source.replace("\r\n", "\n"))
    return sources

"""Reads what people hand in: notebooks that may be anything, and Python files."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

MAX_BYTES = 20 << 20
MAX_CODE = 3 << 20  # as it travels: less than a message may hold
# No link is followed, no pipe waited for, and on Windows no line end is changed.
SAFELY = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
    SAFELY |= getattr(os, _flag, 0)


class Malformed(Exception):
    """The file is no notebook; the message says why."""


def code_cells(file: Path) -> tuple[list[str], set[str]]:
    """(sources of the code cells, ids of the grade cells) of a notebook or a Python file."""
    content, python = read_bytes(file), file.suffix == ".py"
    cells = cells_of(content, python=python)
    return cells, set() if python else _grade_ids(json.loads(content.decode("utf-8-sig")))


def read_bytes(file: Path) -> bytes:
    """The content of a regular file of a sane size; links and devices are refused."""
    status = file.lstat()
    if stat.S_ISDIR(status.st_mode):
        raise Malformed("it is a folder: name the notebook in it")
    if not stat.S_ISREG(status.st_mode):
        raise Malformed(f"{file.name} is no regular file")
    if status.st_size > MAX_BYTES:
        raise Malformed(f"{file.name} is larger than {MAX_BYTES >> 20} MiB: clear its outputs")
    with open(os.open(file, SAFELY), "rb") as opened:
        content = opened.read(MAX_BYTES + 1)  # it may have been exchanged or have grown meanwhile
    if len(content) > MAX_BYTES:
        raise Malformed(f"{file.name} is larger than {MAX_BYTES >> 20} MiB: clear its outputs")
    return content


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


def _grade_ids(notebook: dict[str, Any]) -> set[str]:
    marks = [c["metadata"].get("nbgrader") for c in notebook["cells"] if _has_metadata(c)]
    return {str(m["grade_id"]) for m in marks if isinstance(m, dict) and m.get("grade_id")}


def _has_metadata(cell: Any) -> bool:
    return isinstance(cell, dict) and isinstance(cell.get("metadata"), dict)


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
            sources.append(source.replace("\r\n", "\n").lstrip("\ufeff"))
    if len(json.dumps(sources)) > MAX_CODE:
        raise Malformed(f"it has more than {MAX_CODE >> 20} MiB of code")
    return sources

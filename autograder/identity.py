"""What decides a grade beside the answer itself: the course's files and the machine's versions.

A finished grade is taken over only where all of it is the same, a worker elsewhere grades only with
the same course, and a replay can tell what has changed since.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from . import course

HERE = Path(__file__).resolve().parent
START = HERE / "core.py"
ROOMS = ("checks", "misconceptions")
PACKAGES = ("numpy", "torch", "ipython")


def fingerprint(
    sha256: str, chapter: str, seed: int, versions: dict[str, Any], how: dict[str, Any]
) -> str:
    """Tells a submission graded by these checks, with this seed, in this way, from any other."""
    parts = [sha256, of_chapter(chapter), seed, versions, how]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def of_chapter(chapter: str) -> str:
    """Digest of what grades a chapter: its checks and mistakes, all solutions, the machinery.

    All solutions, because a reference may use those of earlier chapters.
    """
    text = course.ROOT / "book" / f"{chapter}.md"
    titles = re.findall(r"^\(\S+\)=\n+#+ .+$", text.read_text("utf-8"), re.M)  # told in messages
    own = [HERE / room / f"{chapter}.py" for room in ROOMS]
    return _digest([*_shared(), *own], "\n".join(titles))


@cache
def of_course() -> str:
    """Digest of what grades any chapter: equal on all machines that grade together."""
    return _digest([*_shared(), *_of_chapters()])


@cache
def versions() -> dict[str, Any]:
    """What computes here."""
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "python": platform.python_version(),
        **packages,
        "machine": platform.machine(),
        "device": _device(),
    }


def whole() -> dict[str, Any]:
    """What two machines that grade together must have in common."""
    return {"course": of_course(), "versions": versions()}


def agree(worker: str, mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Raise CourseError unless a worker has what `whole` told, its versions too."""
    if theirs["course"] != mine["course"]:
        raise course.CourseError(
            f"the worker {worker} has another course (digest {theirs['course'][:12]}) than this "
            f"one ({mine['course'][:12]}): copy this one there, and start the worker again"
        )
    if theirs["versions"] != mine["versions"]:
        other = "; ".join(differences(mine["versions"], theirs["versions"]))
        raise course.CourseError(
            f"the worker {worker} computes with other versions than the first ({other}): install "
            "requirements.txt on all machines that grade together"
        )


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """`name old → new` for each entry that is not the same."""
    return [
        f"{name} {before.get(name)} → {now.get(name)}"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]


def _device() -> str:
    """`cpu`, or the GPU that PyTorch sees; it is not imported where there is none."""
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        return "cpu"
    import torch

    return f"cuda: {torch.cuda.get_device_name()}" if torch.cuda.is_available() else "cpu"


def _shared() -> Iterator[Path]:
    yield from machinery()
    yield from sorted((course.ROOT / "solutions").rglob("*.py"))


def _of_chapters() -> list[Path]:
    return [file for room in ROOMS for file in sorted((HERE / room).glob("*.py"))]


@cache
def machinery() -> tuple[Path, ...]:
    """The modules that grading uses: what `core` and the checks import or name, and so on."""
    checks = [file.read_text("utf-8") for file in (HERE / "checks").glob("*.py")]
    used = {name for text in checks for name in re.findall(r"^from \.\.(\w+) import", text, re.M)}
    found = {HERE / f"{name}.py" for name in used}
    todo = [START, *found]
    while todo:
        file = todo.pop()
        new = _named(file) - found
        found |= new
        todo += new
    return tuple(sorted(found | {START}))


def _named(file: Path) -> set[Path]:
    """The modules of this package that a file imports, or names as `module.py`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            inside = (node.module or "").removeprefix("autograder").strip(".")
            names |= {inside.split(".")[0]} if inside else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name.removeprefix("autograder.") for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= {node.value.removesuffix(".py")} if node.value.endswith(".py") else set()
    files = {HERE / f"{name}.py" for name in names if name.isidentifier()}
    return {path for path in files if path.exists()}


def _digest(files: Iterable[Path], beside: str = "") -> str:
    digest = hashlib.sha256(beside.encode())
    for file in files:
        if file.exists():
            content = file.read_bytes()
            name = f"\0{file.parent.name}/{file.name} {len(content)}\0"
            digest.update(name.encode() + content)
    return digest.hexdigest()

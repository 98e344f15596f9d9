"""Looks at the machine before the course does: versions, kernel, device, sandbox.

Each finding says what to do about itself, because "No module named torch" in the middle of a
chapter helps nobody.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import course, gpu, sandbox

OK, NOTE, BAD = "ok", "note", "missing"
INSTALL = "python -m pip install -r requirements.txt"
SUPPORTED = ((3, 11), (3, 13))


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `state` is ok, note (works all the same) or missing."""

    what: str
    found: str
    state: str = OK
    cure: str = ""


def findings() -> Iterator[Finding]:
    """Everything that the course needs here, in the order in which it would be missed."""
    yield _python()
    yield from _packages()
    yield _kernel()
    yield _device()
    yield from _kernels()
    if course.has_solutions():
        yield _nbgrader()
    yield _sandbox()


def _python() -> Finding:
    here, (low, high) = sys.version_info[:2], SUPPORTED
    found = f"{platform.python_version()}, {sys.executable}"
    if low <= here <= high:
        return Finding("python", found)
    wanted = f"Python {low[0]}.{low[1]} to {high[0]}.{high[1]}"
    if here > high:
        return Finding("python", found, NOTE, f"the pinned packages were tried with {wanted}")
    return Finding("python", found, BAD, f"install {wanted}, and make the environment anew")


def pins() -> dict[str, str]:
    """The pinned version of each required package."""
    text = (course.ROOT / "requirements.txt").read_text("utf-8")
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M))


def _packages() -> Iterator[Finding]:
    other = 0
    for name, pinned in pins().items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, "not installed", BAD, INSTALL)
            continue
        if version.split("+")[0] != pinned:
            tried = f"the course was tried with {pinned}; if something looks odd: {INSTALL}"
            yield Finding(name, version, NOTE, tried)
        elif name in ("numpy", "torch", "matplotlib", "pytest"):
            yield Finding(name, version)
        else:
            other += 1
    yield Finding("other packages", f"{other} as pinned")


def _kernel() -> Finding:
    """Whether a notebook would run in this environment."""
    if importlib.util.find_spec("jupyter_client") is None:
        return Finding("notebook kernel", "no Jupyter here", BAD, INSTALL)
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        program = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        cure = "python -m ipykernel install --sys-prefix"
        return Finding("notebook kernel", "none is called python3", BAD, cure)
    bare = re.fullmatch(r"python[\d.]*", program)  # Jupyter puts its own Python in its place
    if bare or Path(program).parent == Path(sys.executable).parent:
        return Finding("notebook kernel", "python3, of this environment")
    cure = "python -m ipykernel install --sys-prefix, or choose this environment's kernel"
    return Finding("notebook kernel", f"python3 is {program}, another Python", NOTE, cure)


def _device() -> Finding:
    if importlib.util.find_spec("torch") is None:
        return Finding("device", "no PyTorch", BAD, INSTALL)
    try:
        import torch

        place = gpu.find()
        if not place.why_not:
            return Finding("device", f"CUDA: {place.name}")
        if torch.backends.mps.is_available():
            return Finding("device", "CPU, and Apple's MPS")
    except Exception as error:  # a broken driver raises anything
        cure = f"reinstall PyTorch: {INSTALL}"
        return Finding("device", f"PyTorch does not start ({error})", BAD, cure)
    if place.broken:
        cure = "update the GPU's driver, or install a build of PyTorch for it; the CPU does as well"
        return Finding("device", f"CPU ({place.why_not})", NOTE, cure)
    return Finding("device", f"CPU ({place.why_not}); no exercise needs more")


def _kernels() -> Iterator[Finding]:
    """The packages of exercises for a bonus, which not every system has."""
    for package in dict.fromkeys(e.kernel for e in course.exercises().values() if e.kernel):
        try:
            yield Finding(package, importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            cure = "an exercise for a bonus is passed over without it, and costs nothing"
            yield Finding(package, "not installed", NOTE, cure)


def _nbgrader() -> Finding:
    """nbgrader calls alembic by its bare name, so both must be on the path."""
    absent = [name for name in ("nbgrader", "alembic") if shutil.which(name) is None]
    if not absent:
        return Finding("nbgrader", "on the path, and alembic too")
    folder = Path(sys.executable).parent
    cure = "activate the environment: source .venv/bin/activate"
    if not all((folder / name).exists() for name in absent):
        cure = INSTALL
    found = f"{' and '.join(absent)} not on the path; nbgrader's own commands need that"
    return Finding("nbgrader", found, NOTE, cure)


def _sandbox() -> Finding:
    """Needed for grading alone; a student may do without."""
    needed = BAD if course.has_solutions() else NOTE
    if os.name != "posix" or platform.system() != "Linux":
        cure = "grading others' code needs Linux; reading and solving do not"
        return Finding("sandbox", f"none on {platform.system()}", NOTE, cure)
    if not sandbox.available():
        return Finding("sandbox", "none", needed, str(sandbox.problem()))
    if importlib.util.find_spec(f"{__package__}.walls") is None:
        return Finding("sandbox", "bubblewrap")
    from . import walls

    try:
        held = len(list(walls.check()))
    except sandbox.SandboxMissing as leak:
        return Finding("sandbox", "bubblewrap, but it leaks", needed, str(leak))
    return Finding("sandbox", f"bubblewrap; its {held} walls were tried and hold")

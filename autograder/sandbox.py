"""The walls around a student's code: bubblewrap's namespaces, and what is visible inside them.

Inside: a read-only Python and its packages, the worker's files, a scratch directory in memory.
Outside, and out of sight: the network, the course, the grade book, every other submission and
process. The limits are the kernel's (`worker.confine`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from . import seccomp, usage

HERE = Path(__file__).resolve().parent
WORKER_FILES = ("nursery.py", "replies.py", "runner.py", "wire.py", "worker.py")
START = (
    "import sys; sys.path.insert(0, {path!r}); "
    "from course_worker.{module} import main; main({argument})"
)
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/fonts", "/etc/alternatives")
PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")
COURSE = HERE.parent
ON_CUDA = {"TRITON_INTERPRET": "0"}


class SandboxMissing(Exception):
    """There are no walls on this machine; the message says how to get them."""


class SandboxFault(SandboxMissing):
    """The worker did not even start: a fault of the machine or of the course, no student's."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use. Times in seconds, sizes in bytes."""

    cell_seconds: float = 20.0
    call_seconds: float = 5.0
    wall_seconds: float = 180.0
    cpu_seconds: int = 60
    memory_bytes: int = 2 << 30
    processes: int = 32
    open_files: int = 128
    file_bytes: int = 64 << 20
    scratch_bytes: int = 256 << 20

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Process:
    """A worker that was started: two pipes, and how it ends."""

    def __init__(self, popen: subprocess.Popen[bytes], errors: Any, scratch: Any = None) -> None:
        assert popen.stdin is not None and popen.stdout is not None
        self.pid, self.requests, self.replies = popen.pid, popen.stdin, popen.stdout
        self._popen, self._errors, self._scratch = popen, errors, scratch

    def wait(self, seconds: float) -> int | None:
        """Its exit code, as a shell tells it; None while it lives."""
        try:
            code = self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return 128 - code if code < 0 else code

    def end(self) -> None:
        """End it with all that it started, and take its scratch directory away."""
        kill_family(self.pid)
        self._popen.wait()
        close(self.requests, self.replies)
        self._scratch.cleanup()

    def errors(self) -> str:
        """What the machinery complained of before any cell ran."""
        self._errors.seek(0)
        return str(self._errors.read().decode(errors="replace"))


def start_without_walls(limits: Limits, *, cuda: bool = False) -> Process:
    """A worker as a process of this user's, in a directory that goes with it.

    With `cuda` Triton's kernels are compiled for the GPU, and not interpreted.
    """
    scratch = tempfile.TemporaryDirectory(prefix="answer-", ignore_cleanup_errors=True)
    package = Path(scratch.name, ".worker", "course_worker")
    package.mkdir(parents=True)
    for name in WORKER_FILES:
        shutil.copy(HERE / name, package / name)
    start = START.format(path=str(package.parent), module="worker", argument="")
    errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", start, json.dumps(limits.as_dict())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=scratch.name,
        env={**os.environ, **_variables(scratch.name), **(ON_CUDA if cuda else {})},
        start_new_session=True,
    )
    return Process(process, errors, scratch)


def start_warm(control: int, errors: Any) -> subprocess.Popen[bytes]:
    """A sandbox with a warm process in it, which takes its orders from the socket `control`."""
    require()
    command = _bwrap(START.format(path="/worker", module="nursery", argument=control))
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        cwd="/",
        env={"PATH": os.environ.get("PATH", os.defpath)},  # bubblewrap's own can be read
        pass_fds=(control,),
        start_new_session=True,
    )


def kill_family(pid: int, *, itself: bool = True) -> None:
    """Kill a process and all below it, until none is left."""
    for _ in range(1000):
        family = usage.family_of(pid)[not itself :]
        living = [number for number in reversed(family) if _kill(number)]
        if not living:
            return
        time.sleep(0.001)


def _kill(pid: int) -> bool:
    """Whether there was anything to kill: what has ended and is not yet fetched is nothing."""
    try:
        process = psutil.Process(pid)
        if (
            process.status() == psutil.STATUS_ZOMBIE and len(os.listdir(f"/proc/{pid}/task")) == 1
        ):  # no other thread lives on
            return False
        process.kill()
    except (psutil.Error, OSError):
        return False
    return True


def close(*streams: Any) -> None:
    """Close pipes, whatever still lies in them."""
    for stream in streams:
        with contextlib.suppress(OSError, ValueError):
            stream.close()


def _bwrap(start: str) -> list[str]:
    size = str(Limits.scratch_bytes)
    command = ["bwrap", "--die-with-parent", "--as-pid-1", "--new-session", "--clearenv"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try"]
    # A worker needs these to get a world of its own, and gives them up before it runs anything.
    command += ["--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"]
    if os.geteuid() == 0:
        command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        command += ["--unshare-user", "--disable-userns"]
    for path in SYSTEM:
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            command += ["--ro-bind", path, path]
    if str(COURSE).startswith("/usr/"):
        command += ["--tmpfs", str(COURSE)]
    command += ["--perms", "1777", "--size", size, "--tmpfs", "/tmp"]  # the course may lie below it
    shown = {path: path for path in pythons()}
    shown |= {f"/worker/course_worker/{name}": str(HERE / name) for name in WORKER_FILES}
    shown |= {f"/worker/matplotlib/{Path(fonts).name}": fonts for fonts in _font_lists()}
    parents = {str(parent): None for path in shown for parent in reversed(Path(path).parents)}
    for parent in parents:
        if parent not in ("/", "/tmp") and not _below_system(parent):
            command += ["--perms", "0755", "--dir", parent]  # or else only root may pass
    for inside, outside in shown.items():
        command += ["--ro-bind", outside, inside]
    command += ["--proc", "/proc", "--dev", "/dev"]
    command += ["--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"]
    command += ["--remount-ro", "/dev"]
    command += ["--remount-ro", "/", "--chdir", "/tmp"]
    for name, value in _variables("/tmp").items():
        command += ["--setenv", name, value]
    return [*command, sys.executable, "-I", "-c", start]


def _variables(home: str) -> dict[str, str]:
    one_thread = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    kept = {k: v for k, v in os.environ.items() if k.startswith("OPENBLAS_")}
    return (
        kept
        | dict.fromkeys(one_thread, "1")
        | {
            "HOME": home,
            "IPYTHONDIR": f"{home}/.ipython",
            "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": f"{home}/.matplotlib",
            "USER": "student",
            "LOGNAME": "student",
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TORCHDYNAMO_DISABLE": "1",  # a compiled answer is graded as it was written
            "TRITON_INTERPRET": "1",  # and so is a kernel: it needs neither GPU nor compiler
        }
    )


def pythons() -> list[str]:
    """The interpreter and its packages, where they are not the system's.

    Only these parts of a prefix: an environment may have been made in the course's own folder.
    """
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    prefixes |= {os.path.realpath(p) for p in prefixes}
    prefixes |= {
        str(Path(p).parent.parent) for p in (sys.executable, os.path.realpath(sys.executable))
    }
    parts = [f"{prefix}/{part}" for prefix in sorted(prefixes) for part in PARTS]
    return [part for part in parts if os.path.exists(part) and not _below_system(part)]


def _below_system(path: str) -> bool:
    """Whether a path is visible by itself, as part of the system."""
    hidden = path == str(COURSE) or path.startswith(f"{COURSE}/")
    return path.startswith(("/usr/", "/bin/", "/lib/")) and not hidden


@cache
def _font_lists() -> tuple[str, ...]:
    """matplotlib's list of fonts, made once: each sandbox would need seconds to make its own."""
    try:
        import matplotlib
    except ImportError:
        return ()
    made = Path(matplotlib.get_cachedir())
    if not any(made.glob("fontlist-*.json")):
        making = [sys.executable, "-c", "import matplotlib.font_manager"]
        subprocess.run(making, capture_output=True, check=False)
    return tuple(str(path) for path in made.glob("fontlist-*.json"))


def available() -> bool:
    """Whether walls can be put up here."""
    return problem() is None


@cache
def problem() -> str | None:
    """Why there are no walls here, and the cure; None when there are."""
    if not sys.platform.startswith("linux"):
        return "the sandbox needs Linux: run the grading in a Linux container or virtual machine"
    if shutil.which("bwrap") is None:
        return "bubblewrap is missing: sudo apt-get install bubblewrap"
    command = _bwrap("")
    probe = command[: command.index(sys.executable)] + ["/usr/bin/env", "true"]
    tried = subprocess.run(probe, capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        try:
            seccomp.program()
        except seccomp.FilterMissing as missing:
            return str(missing)
        return None
    return (
        f"bubblewrap cannot make a sandbox here ({tried.stderr.strip()[:200]}): "
        "tools/need.sh sandbox names the cure for this system"
    )


def require() -> None:
    """Raise SandboxMissing when there are no walls."""
    reason = problem()
    if reason:
        raise SandboxMissing(reason)

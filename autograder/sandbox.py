"""The walls around a student's code: bubblewrap's namespaces, and what is visible inside them.

Inside: a read-only Python and its packages, the worker's files, a scratch directory in memory.
Outside, and out of sight: the network, the course, the grade book, every other submission and
process. The limits are the kernel's (`worker.confine`).
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WORKER_FILES = ("answers.py", "runner.py", "wire.py", "worker.py")
START = "import sys; sys.path.insert(0, {path!r}); from course_worker.worker import main; main()"
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/fonts", "/etc/alternatives")
PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")
COURSE = HERE.parent
UIDS = range(20_000, 60_000)  # as root, each sandbox runs as a user of its own, that nobody is


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
    open_files: int = 256
    file_bytes: int = 64 << 20
    scratch_bytes: int = 256 << 20

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def start(
    limits: Limits, walls: bool, errors: Any = subprocess.DEVNULL
) -> tuple[subprocess.Popen[bytes], dict[str, Any], Any]:
    """Start a worker. Returns the process, the limits it must confine itself to, its scratch."""
    told: dict[str, Any] = {**limits.as_dict(), "uid": None, "walls": walls}
    scratch = None
    if walls:
        require()
        if os.geteuid() == 0:
            told["uid"] = secrets.choice(UIDS)
        command = _bwrap(limits, told["uid"] is not None)
        environment = {"PATH": os.environ.get("PATH", os.defpath)}  # bubblewrap's own can be read
    else:
        scratch = tempfile.TemporaryDirectory(prefix="answer-", ignore_cleanup_errors=True)
        package = Path(scratch.name, ".worker", "course_worker")
        package.mkdir(parents=True)
        for name in WORKER_FILES:
            shutil.copy(HERE / name, package / name)
        command = [sys.executable, "-I", "-c", START.format(path=str(package.parent))]
        environment = {**os.environ, **_variables(scratch.name)}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=scratch.name if scratch else "/",
        env=environment,
        start_new_session=True,
    )
    return process, told, scratch


def _bwrap(limits: Limits, as_root: bool) -> list[str]:
    size = str(limits.scratch_bytes)
    command = ["bwrap", "--die-with-parent", "--new-session", "--clearenv"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try"]
    if as_root:  # the worker gives these up when it becomes its own user
        command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        command += ["--unshare-user", "--disable-userns", "--cap-drop", "ALL"]
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
    return [*command, sys.executable, "-I", "-c", START.format(path="/worker")]


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
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TORCHDYNAMO_DISABLE": "1",  # a compiled answer is graded as it was written
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
    command = _bwrap(Limits(), os.geteuid() == 0)
    probe = command[: command.index(sys.executable)] + ["/usr/bin/env", "true"]
    tried = subprocess.run(probe, capture_output=True, text=True, check=False)
    if tried.returncode == 0:
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

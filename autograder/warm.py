"""The grader's end of a warm sandbox: asks for a worker, and ends it.

A sandbox serves one submission at a time. It is kept for the next one by the thread that started
it, because bubblewrap ends with that thread.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import re
import secrets
import select
import socket
import subprocess
import tempfile
import threading
from typing import IO, Any

from . import sandbox, seccomp, usage
from .sandbox import Limits, SandboxFault

UIDS = range(20_000, 60_000)  # as root, each worker runs as a user of its own, that nobody is
PRELOADED = "numpy torch triton matplotlib.pyplot matplotlib_inline.backend_inline timeit".split()
PATIENCE = 120.0  # seconds for a sandbox that must import all this on a busy machine
_kept = threading.local()


class Worker:
    """A worker in a warm sandbox; the same to its session as `sandbox.Process`."""

    def __init__(self, home: Sandbox, pid: int, requests: IO[bytes], replies: IO[bytes]) -> None:
        self._home, self.pid, self.requests, self.replies = home, pid, requests, replies
        self._code: int | None = None

    def wait(self, seconds: float = PATIENCE) -> int | None:
        """Its exit code, as a shell tells it; None while it lives."""
        if self._code is None:
            self._code = self._home.ended(seconds)
        return self._code

    def end(self) -> None:
        """End it with all that it started, and keep the sandbox for the next."""
        sandbox.kill_family(self._home.pid, itself=False)
        sandbox.close(self.requests, self.replies)
        with contextlib.suppress(SandboxFault):
            if self.wait() is not None:
                _idle().append(self._home)
                return
        self._home.close()

    def errors(self) -> str:
        """What the machinery complained of before any cell ran."""
        return self._home.errors()


class Sandbox:
    """Walls around one warm process."""

    def __init__(self, preloaded: list[str]) -> None:
        self.preloaded = preloaded
        self._below_tmp = [path for path in sandbox.pythons() if path.startswith("/tmp/")]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the sandbox)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(PATIENCE)
        with theirs:
            self._bwrap = sandbox.start_warm(theirs.fileno(), self._errors)
        self._tell({"preload": preloaded})
        self._hear(b"warm")
        self.pid = usage.family_of(self._bwrap.pid)[1]

    def start(self, limits: Limits) -> Worker:
        """A worker of these limits. Raises SandboxFault where the sandbox gives none."""
        told: dict[str, Any] = {**limits.as_dict(), "uid": None, "walls": True}
        told["below_tmp"] = self._below_tmp
        told["filter"] = base64.b64encode(seccomp.program()).decode()
        if os.geteuid() == 0:
            told["uid"] = secrets.choice(UIDS)
        theirs_in, requests = os.pipe()
        replies, theirs_out = os.pipe()
        self._tell(told, theirs_in, theirs_out)
        for number in (theirs_in, theirs_out):
            os.close(number)
        streams = os.fdopen(requests, "wb"), os.fdopen(replies, "rb")
        try:
            worker = self._number_outside(int(self._hear()))
        except (SandboxFault, ValueError):
            sandbox.close(*streams)
            raise SandboxFault(f"the sandbox started no worker: {self.errors()}") from None
        return Worker(self, worker, *streams)

    def _number_outside(self, inside: int) -> int:
        """The number here of a process that the warm one knows by another. Raises ValueError."""
        for pid in usage.family_of(self.pid)[1:]:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
                numbers = re.search(r"^NSpid:(.*)$", file.read(), re.M)
                if numbers and int(numbers[1].split()[-1]) == inside:
                    return pid
        raise ValueError(f"no process {inside} inside")

    def ended(self, seconds: float) -> int | None:
        """The exit code of the worker, once it has ended; None when it has not by then."""
        ready, _, _ = select.select([self._control], [], [], seconds)
        return int(self._hear()) if ready else None

    def errors(self) -> str:
        """What was complained of inside."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def alive(self) -> bool:
        """Whether another worker can be asked for."""
        return self._bwrap.poll() is None

    def close(self) -> None:
        """End it and what is in it."""
        sandbox.kill_family(self._bwrap.pid)
        with contextlib.suppress(subprocess.SubprocessError):
            self._bwrap.wait(10)
        self._control.close()

    def _tell(self, order: dict[str, Any], *pipes: int) -> None:
        with contextlib.suppress(OSError):  # a dead one is heard of at once
            socket.send_fds(self._control, [json.dumps(order).encode()], pipes)

    def _hear(self, expected: bytes | None = None) -> bytes:
        with contextlib.suppress(OSError):
            heard = self._control.recv(100)
            if heard and expected in (None, heard):
                return heard
        raise SandboxFault(f"the sandbox gave no answer: {self.errors()}")


def start(limits: Limits, *, preload: bool) -> Worker:
    """A worker behind walls, in a sandbox that this thread has kept or in a new one."""
    modules = PRELOADED if preload else []
    idle = _idle()
    for kept in [k for k in idle if k.preloaded == modules]:
        idle.remove(kept)
        if kept.alive():
            with contextlib.suppress(SandboxFault):
                return kept.start(limits)
        kept.close()
    return Sandbox(modules).start(limits)


def close_all() -> None:
    """End what this thread has kept."""
    while _idle():
        _idle().pop().close()


def _idle() -> list[Sandbox]:
    if not hasattr(_kept, "idle"):
        _kept.idle = []
        atexit.register(close_all)
    kept: list[Sandbox] = _kept.idle
    return kept

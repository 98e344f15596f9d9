"""Tests the sandbox's walls before strangers' code meets them: each is tried from the inside."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from .answers import Answers
from .replies import StudentError
from .sandbox import COURSE, Limits, SandboxMissing, pythons
from .session import Session
from .wire import MAX_BLOBS

PROBE = """
import ctypes, os, socket, time

def network(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False

def files(paths):
    return [path for path in paths if os.path.exists(path)]

def writing(folders):
    written = []
    for folder in folders:
        try:
            open(os.path.join(folder, "wall-test"), "w").close()
            written.append(folder)
        except OSError:
            pass
    return written

def memory(size):
    try:
        block = bytearray(size)
        return len(block) == size
    except MemoryError:
        return False

def processes(many):
    children = []
    try:
        for _ in range(many):
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            children.append(child)
        return True
    except OSError:
        return False
    finally:
        for child in children:
            os.kill(child, 9)

def output(size):
    written = 0
    try:
        for number in range(1000):
            with open(f"/tmp/wall-test-{number}", "wb") as file:
                written += file.write(bytes(1 << 20))
            if written > size:
                return True
    except OSError:
        return False

def reply(size):
    return "x" * size

def calls():
    libc = ctypes.CDLL(None)
    tried = {"unshare": libc.unshare(0x10000000), "memfd_create": libc.memfd_create(b"x", 0),
             "shmget": libc.shmget(0, 4096, 0o1600), "ptrace": libc.ptrace(0, 0, 0, 0),
             "vsock": libc.socket(40, 1, 0)}
    return [name for name, result in tried.items() if result != -1]
"""
NAMES = ["network", "files", "writing", "memory", "processes", "output", "calls", "reply"]


def _hidden() -> list[str]:
    """What must not be seen: the course but for its Python, and the files of its user."""
    course, home = COURSE.iterdir(), Path.home()
    shown = [path for path in (*course, *home.glob(".*rc"), home / ".profile") if path.exists()]
    inside = pythons()
    own = [p for p in shown if not any(part.startswith(str(p)) for part in inside)]
    return [*map(str, own), "/etc/passwd"]


def check() -> Iterator[str]:
    """One line a wall. Raises SandboxMissing, naming it, when one does not stand."""
    limits = replace(Limits(), memory_bytes=512 << 20, scratch_bytes=16 << 20)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        Session([PROBE], NAMES, limits) as inside,
    ):
        probe = Answers(inside)
        leaks = {
            "network: nothing can be reached": probe.network(server.getsockname()[1]),
            "files: the course and this machine cannot be seen": probe.files(_hidden()),
            "writing: only the scratch directory": probe.writing(["/", "/usr", "/dev", "/worker"]),
            "memory: no more than allowed": probe.memory(2 << 30),
            "processes: no more than allowed": probe.processes(limits.processes + 8),
            "output: no more than allowed": probe.output(limits.scratch_bytes),
            "replies: no longer than allowed": _long_reply(probe),
            "system calls: none that an answer does not need": probe.calls(),
        }
    for wall, leak in leaks.items():
        if leak:
            raise SandboxMissing(f"the sandbox leaks here ({wall}: {leak})")
        yield f"sandbox, {wall}: ok"


def _long_reply(probe: Answers) -> bool:
    """Whether more may be answered than a message may hold."""
    with contextlib.suppress(StudentError):
        probe.reply(MAX_BLOBS + 1)
        return True
    return False

"""The warm process of a sandbox: imports what answers use once, and forks a worker for each.

Importing PyTorch takes longer than grading. No student's code ever runs in this process: each
submission gets a child in namespaces of its own, with a scratch directory, a list of processes and
a user that no other submission ever has.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import struct
import sys
from typing import Any

from . import worker

NEW = 0x20000 | 0x08000000 | 0x20000000  # mounts, IPC, process numbers; the network is empty
PRIVATE, BIND = 0x4000 | 0x40000, 0x4000 | 0x1000  # with all mounts below
QUIET = 2 | 4 | 8  # nosuid, nodev, noexec
PDEATHSIG, DUMPABLE, SECCOMP, NO_NEW_PRIVS, AMBIENT = 1, 4, 22, 38, 47
CAPABILITIES = 0x20080522
INODES = 20_000  # files of a scratch directory: an empty one takes memory too


def main(control_number: int) -> None:
    """Serve one order after the other, until the grader hangs up."""
    control = socket.socket(fileno=control_number)
    order = json.loads(control.recv(1 << 20))
    shell = _warm_up(order["preload"])
    _call("prctl", DUMPABLE, 0, 0, 0, 0)  # nobody attaches to this process, or reads it
    control.send(b"warm")
    while True:
        message, pipes, _, _ = socket.recv_fds(control, 1 << 20, 2)
        if not message:
            return
        _fetch_ends()
        child = os.fork()
        if child == 0:
            _leave(lambda: _apart(json.loads(message), pipes, control, shell))  # noqa: B023
        for pipe in pipes:
            os.close(pipe)
        control.send(str(child).encode())
        control.send(str(_code_of(child)).encode())


def _fetch_ends() -> None:
    """What has ended goes, so that a worker's number is not one of the dead."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _warm_up(modules: list[str]) -> Any:
    """Import what most answers use, and make the shell that runs their cells."""
    if not modules:
        return None
    worker.bring_fonts()
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if "matplotlib.pyplot" in sys.modules:
        worker.let_backends_be_asked_for()
    shell = worker.make_shell()
    gc.collect()
    gc.freeze()  # children share these pages for as long as nobody touches them
    return shell


def _apart(limits: dict[str, Any], pipes: list[int], control: socket.socket, shell: Any) -> int:
    """In the child: leave what others see. What comes next is the first process of its world."""
    control.close()
    _call("unshare", NEW)
    _call("mount", b"none", b"/", None, PRIVATE, None)
    shown = [(path, os.open(path, os.O_PATH)) for path in limits["below_tmp"]]
    options = f"size={limits['scratch_bytes']},nr_inodes={INODES},mode=1777".encode()
    for folder in (b"/tmp", b"/dev/shm"):
        _call("mount", b"tmpfs", folder, b"tmpfs", 2 | 4, options)
    for path, opened in shown:  # a Python that lies below what was just covered
        _show_again(path, opened)
    # Pages of it that are shared belong to no process and would escape the limits.
    _call("mount", b"/dev/null", b"/dev/zero", None, BIND, None)
    os.chdir("/tmp")
    first = os.fork()
    if first == 0:
        _leave(lambda: _first(limits, pipes, shell))
    for pipe in pipes:
        os.close(pipe)
    return _code_of(first)


def _show_again(path: str, opened: int) -> None:
    inside = f"/proc/self/fd/{opened}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path):  # it may be there by another name already
        if os.path.isdir(inside):
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o444))
        _call("mount", inside.encode(), path.encode(), None, BIND, None)
    os.close(opened)


def _first(limits: dict[str, Any], pipes: list[int], shell: Any) -> int:
    """Process 1 in there: gives up every right, starts the worker, and with its end ends all."""
    _call("mount", b"proc", b"/proc", b"proc", QUIET, None)
    worker.confine(limits)
    _give_up(base64.b64decode(limits["filter"]))
    _call("prctl", PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    child = os.fork()
    if child == 0:
        _leave(lambda: _become_worker(pipes, shell))
    for pipe in pipes:
        os.close(pipe)
    return _code_of(child)


def _become_worker(pipes: list[int], shell: Any) -> int:
    _call("prctl", DUMPABLE, 1, 0, 0, 0)  # its own /proc/self is its own again
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number not in pipes:
            with contextlib.suppress(OSError):  # the one that lists them is gone already
                os.close(number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()  # or else all submissions would draw the same numbers
    requests, replies = pipes
    worker.serve(requests, replies, shell)
    return 0


def _give_up(program: bytes) -> None:
    """No capability, no way back to one, and only the system calls that the filter lets through."""
    _call("prctl", AMBIENT, 4, 0, 0, 0)
    header, none = struct.pack("II", CAPABILITIES, 0), bytes(24)
    _call("capset", ctypes.create_string_buffer(header), ctypes.create_string_buffer(none))
    _call("prctl", NO_NEW_PRIVS, 1, 0, 0, 0)
    code = ctypes.create_string_buffer(program, len(program))
    both = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    _call("prctl", SECCOMP, 2, ctypes.create_string_buffer(both), 0, 0)


def _call(name: str, *arguments: Any) -> None:
    """A function of the C library; raises OSError where it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    if name == "prctl":
        arguments = tuple(ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments)
    elif name == "mount":
        arguments = (*arguments[:3], ctypes.c_ulong(arguments[3]), arguments[4])
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _code_of(child: int) -> int:
    """How a child ended, as a shell tells it; other ends are cleared away meanwhile."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code


def _leave(act: Any) -> None:
    """Act, and end this process without anything that the warm one would do at its end."""
    status = 70
    try:
        status = act()
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)

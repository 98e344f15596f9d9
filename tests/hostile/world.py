"""A course of its own for one batch: copied, with secrets in it, and listeners around it.

What an attack must not reach is put where it looks for it, so that reaching it would show.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

from autograder import course, sandbox

PARTS = ("autograder", "solutions", "book", "nbgrader_config.py", "_toc.yml", "_config.yml")
PATIENCE = 600  # seconds for a whole batch, which never takes as long


class World:
    """A copy of the course below `folder`, and what can be seen of an attack from outside it."""

    def __init__(self, folder: Path) -> None:
        self.course, self.home, self.outside = (folder / n for n in ("course", "home", "outside"))
        self.mark = folder / "mark"
        self.secret = f"secret-{uuid.uuid4().hex}"
        self.word = f"word-{uuid.uuid4().hex[:12]}"
        self.received: list[str] = []
        self.course.mkdir()
        for part in PARTS:
            source = course.ROOT / part
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "_build")
                shutil.copytree(source, self.course / part, ignore=ignored)
            else:
                shutil.copy(source, self.course / part)
        for place in (self.course, self.home, self.outside):
            for name in ("", "class", "solutions", "autograder/checks", "submitted"):
                (place / name).mkdir(parents=True, exist_ok=True)
                (place / name / "canary.txt").write_text(self.secret)
        self.canaries = [*folder.rglob("canary.txt")]

    def known(self) -> dict[str, str]:
        """What the cells of an attack may name."""
        return {
            "@COURSE@": str(self.course),
            "@HOME@": str(self.home),
            "@OUTSIDE@": str(self.outside),
            "@CLASS@": str(self.course / "class"),
            "@CHAPTER@": course.chapters()[0],
            "@MARK@": str(self.mark),
            "@WORD@": self.word,
            "@CANARY@": self.secret[:7],
            "@PYTHONS@": repr(tuple(sandbox.pythons())),
            "@HOSTS@": repr(hosts()),
            "@PORT@": str(self.port),
            "@SOCKET@": self.socket,
        }

    def environment(self) -> dict[str, str]:
        import matplotlib

        beside = str(Path(sys.executable).parent)
        return {
            **os.environ,
            "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "MPLCONFIGDIR": matplotlib.get_cachedir(),  # a list of fonts takes seconds to make
            "PYTHONDONTWRITEBYTECODE": "1",
            "COURSE_CANARY": self.secret,
            "HOSTILE_MARK": str(self.mark),
        }

    def start(self, *command: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(word) for word in command],
            cwd=self.course,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
            start_new_session=True,  # for `adopting`
        )

    def digest(self) -> str:
        """Of the course and of every canary; what the doors themselves write is left out."""
        made = [self.course / name for name in ("class", "ours", "alone")]
        files = [p for p in self.course.rglob("*") if "__pycache__" not in p.parts]
        files = [p for p in files if not any(m in p.parents for m in made) and p.is_file()]
        digest = hashlib.sha256()
        for file in sorted({*files, *self.canaries}):
            digest.update(str(file).encode() + file.read_bytes())
        return digest.hexdigest()

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Listen on every address of this machine; `received` tells who came."""
        with contextlib.ExitStack() as stack:
            tcp = stack.enter_context(socket.create_server(("", 0), backlog=50))
            self.port = tcp.getsockname()[1]
            listeners = [tcp]
            with contextlib.suppress(OSError):
                listeners.append(socket.create_server(("::", self.port), family=socket.AF_INET6))
            for family, address in ((socket.AF_INET, ""), (socket.AF_INET6, "::")):
                with contextlib.suppress(OSError):
                    udp = socket.socket(family, socket.SOCK_DGRAM)
                    udp.bind((address, self.port))
                    listeners.append(udp)
            short = stack.enter_context(tempfile.TemporaryDirectory(prefix="s-"))
            self.socket = f"{short}/s"
            for address in (self.socket, f"\0{self.word}"):
                unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                unix.bind(address)
                unix.listen(50)
                listeners.append(unix)
            for listener in listeners:
                stack.enter_context(listener)
                threading.Thread(target=self._listen, args=(listener,), daemon=True).start()
            yield

    def _listen(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                if listener.type == socket.SOCK_DGRAM:
                    self.received.append(repr(listener.recvfrom(100)))
                else:
                    connection, address = listener.accept()
                    self.received.append(repr((listener.family, address)))
                    connection.close()


def hosts() -> list[str]:
    """Every address of this machine."""
    found = ["127.0.0.1", "::1"]
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family in (socket.AF_INET, socket.AF_INET6) and "%" not in address.address:
                found.append(address.address)
    return list(dict.fromkeys(found))


@contextlib.contextmanager
def adopting() -> Iterator[list[str]]:
    """Whatever is left of the processes started inside comes to this one; they are listed, ended.

    An orphan goes to the nearest ancestor that asked for it (PR_SET_CHILD_SUBREAPER). One from a
    session that was there before, as of a browser that other tests share, is not of them.
    """
    left: list[str] = []
    me = psutil.Process()
    before = {me.pid, *(child.pid for child in me.children(recursive=True))}
    sessions = {session(pid) for pid in before}
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    try:
        yield left
    finally:
        ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
        orphans = [c for c in me.children(recursive=True) if session(c.pid) not in sessions]
        _, alive = psutil.wait_procs(orphans, timeout=3)
        for orphan in alive:
            with contextlib.suppress(psutil.Error):
                left.append(f"{orphan.pid} {orphan.status()} {' '.join(orphan.cmdline())[:200]}")
                orphan.kill()


def session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:  # it has ended, and waits to be fetched
        return None

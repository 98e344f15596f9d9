"""One submission in its sandbox: starts it, asks it, and says how it ended.

Seen from a check it is a `Runner` like any other. A worker that hangs or dies is replaced, without
the cell or the exercise that killed it, so that one bad cell costs what it is worth and no more.
"""

from __future__ import annotations

import json
import math
import re
import signal
import time
from typing import Any

from . import sandbox, usage, warm
from .assertions import NOT_WRITTEN
from .channel import open_channel
from .replies import Gone, StudentError, Undefined
from .sandbox import Limits, Process, SandboxFault, SandboxMissing
from .wire import ProtocolError, pack, unpack
from .worker import WAIT

GRADED, TIMEOUT, MEMORY, CRASHED = "graded", "timeout", "out of memory", "crashed"
RESTARTS = 8
WATCH = 0.2  # seconds between two looks at what a working process uses
OUT_OF_TIME = [getattr(signal, name, None) for name in ("SIGXCPU", "SIGALRM")]  # not on Windows
GRACE = 3.0  # seconds between the alarm inside the worker and its end from outside


class Session:
    """Runs requests on the definitions of a list of cells, inside walls.

    `status` is one of graded, timeout, out of memory, crashed; `failed_cells` maps the number of a
    cell to what it raised, `grave_cells` are those that decided the status; `defined` lists which
    of `names` exist after all cells ran. `preload` is for many sessions one after the other, `cuda`
    for one that is asked on a GPU, without walls.
    """

    def __init__(
        self,
        cells: list[str],
        names: list[str],
        limits: Limits,
        *,
        walls: bool = True,
        preload: bool = False,
        cuda: bool = False,
    ) -> None:
        self.cells, self.names, self.limits, self.walls = cells, names, limits, walls
        self._preload, self._cuda = preload, cuda
        self.status = GRADED
        self.failed_cells: dict[int, str] = {}
        self.grave_cells: set[int] = set()
        self.defined: list[str] = []
        self._skip: set[int] = set()
        self._abandoned: dict[str, str] = {}
        self._exercise = ""
        self._starts = self._failures = 0
        self._deadline = math.inf  # until there is a worker
        self._process: Process | warm.Worker | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop()

    def begin(self, exercise: str) -> None:
        """The requests that follow belong to this exercise."""
        self._exercise = exercise

    def run(self, request: dict[str, Any]) -> Any:
        """One request to the answer. Raises StudentError, or Gone when there is none to ask."""
        if self._exercise in self._abandoned:
            raise Gone("not run: " + self._abandoned[self._exercise])
        if self._process is None:
            self.load()
        try:
            frame = pack(request)
        except ValueError as error:
            raise ProtocolError(f"the check's own input is {error}") from error
        self._channel.send(frame)
        try:
            reply = self._receive(self.limits.call_seconds * WAIT * 2 + GRACE)
            if "error" in reply:
                types, text = _strings(reply["error"]), *_strings([reply["text"]])
                if not types:
                    raise ProtocolError("an error without a name")
                (function,) = _strings([reply.get("function", "")])
                place = function[:60], int(reply.get("line", 0))
            else:
                return reply["value"]
        except _Ended as end:
            self._end(end.status)
            raise self._abandon(end.reason) from None
        except Exception as error:  # whatever a forged reply trips over
            self._end(CRASHED)
            raise self._abandon(f"the process sent no proper reply ({error})") from None
        if "TimeUp" in types:
            self._worsen(TIMEOUT)
            raise self._abandon(f"a call took longer than {self.limits.call_seconds:g} s")
        if "MemoryError" in types:
            self._worsen(MEMORY)
        name = request.get("name", "")
        if types[0] == "NameError" and text == Undefined(name).message:
            notes = self.notes()
            raise Undefined(
                name, f", and not every cell ran to its end. {notes[0]}" if notes else ""
            )
        raise StudentError(types, text, *place)

    def load(self) -> None:
        """Start a worker and run the cells; a cell that kills it is left out the next time."""
        while True:
            if self._starts > RESTARTS or time.monotonic() > self._deadline:
                self._worsen(TIMEOUT if time.monotonic() > self._deadline else CRASHED)
                reason = "the notebook used up its time or its restarts"
                self._abandoned |= dict.fromkeys(self.names, reason)
                raise Gone(reason)
            self._starts += 1
            running: int | None = None
            try:
                self._start()
                while True:
                    message = self._receive(self.limits.cell_seconds * WAIT * 2 + GRACE)
                    if "cell" in message:
                        running = int(message["cell"])
                    elif "failed" in message:
                        self._cell_failed(int(message["failed"]), message["error"])
                    else:
                        known = set(message["ready"])
                        self.defined = [name for name in self.names if name in known]
                        return
            except _Ended as end:
                self._end(end.status)
                reason = end.reason
                if running is None and end.status == CRASHED and self.cells:
                    self._failures += 1
                    if self._failures > 1:  # a machine of which no sandbox starts
                        raise SandboxFault(self._complaint) from None
            except SandboxMissing:
                raise
            except Exception:  # whatever a forged message trips over
                self._end(CRASHED)
                reason = "the process sent no proper reply"
            if running is not None and 0 <= running < len(self.cells):
                self._skip.add(running)
                self.grave_cells.add(running)
                self.failed_cells[running] = reason

    def notes(self) -> list[str]:
        """The cells that did not run to their end, a line each; the gravest first.

        Answers that are not written yet are no news, and neither is what they leave undefined.
        """
        order = sorted(self.failed_cells.items(), key=lambda c: (c[0] not in self.grave_cells, c))
        unwritten = any(reason == NOT_WRITTEN for _, reason in order)
        lone = len(self.cells) == 1  # a .py file, most likely
        lines = [
            f"{'The code' if lone else f'Code cell {number + 1}'}, "
            f"`{_first_line(self.cells[number])}`: {reason}"
            for number, reason in order
            if reason != NOT_WRITTEN
            and not (unwritten and reason.startswith("NameError") and not self._answers(number))
        ]
        return lines[:8] + ([f"… and {len(lines) - 8} more"] if len(lines) > 8 else [])

    def _answers(self, number: int) -> bool:
        """Whether a cell should define what is not defined."""
        absent = "|".join(re.escape(name) for name in self.names if name not in self.defined)
        written = rf"^\s*(?:def|class)\s+(?:{absent})\b"
        return bool(absent) and re.search(written, self.cells[number], re.M) is not None

    def _cell_failed(self, number: int, error: list[str]) -> None:
        name, text = _strings(error)
        if not 0 <= number < len(self.cells):
            raise ProtocolError("a cell that is not there")
        if name == "TimeUp":
            self._worsen(TIMEOUT)
            self.grave_cells.add(number)
            text = f"stopped after {self.limits.cell_seconds:g} s"
        elif name == "MemoryError":
            self._worsen(MEMORY)
            self.grave_cells.add(number)
        text = " ".join(text.split())  # in one line, so that it cannot look like another's words
        self.failed_cells[number] = text if name == "TimeUp" else f"{name}: {text}".rstrip(": ")

    def _start(self) -> None:
        self._stop()
        if self.walls:
            process: Process | warm.Worker = warm.start(self.limits, preload=self._preload)
        else:
            process = sandbox.start_without_walls(self.limits, cuda=self._cuda)
        self._process = process
        self._began = time.monotonic()  # how long a sandbox took to start is not the student's
        self._looked, self._measured, self._seconds = self._began, 0.0, 0.0
        self._deadline = min(self._deadline, self._began + self.limits.wall_seconds)
        self._channel = open_channel(process.requests, process.replies)
        cells = json.dumps(self.cells)  # one text, however many they are
        task = {"cells": cells, "names": self.names, "skip": sorted(self._skip)}
        seconds = {k: getattr(self.limits, k) for k in ("cell_seconds", "call_seconds")}
        self._channel.send(pack({**task, **seconds}))

    def _receive(self, seconds: float) -> dict[str, Any]:
        assert self._process is not None
        deadline = min(time.monotonic() + seconds, self._deadline)
        try:
            message = unpack(self._channel.receive(deadline, WATCH, self._watch))
        except TimeoutError:
            raise _Ended(TIMEOUT, "the process did not answer in its time") from None
        except EOFError:
            raise self._death() from None
        if not isinstance(message, dict):
            raise ProtocolError("a message that is no object")
        return message

    def _watch(self) -> None:
        """End the group when its processes together use more than one may."""
        assert self._process is not None
        limits = self.limits
        used = usage.of_tree(self._process.pid, limits.memory_bytes)
        if used.memory > limits.memory_bytes:
            megabytes = limits.memory_bytes >> 20
            raise _Ended(MEMORY, f"the process used more than {megabytes} MiB of memory")
        if self._spent(used) > limits.cpu_seconds:
            raise _Ended(TIMEOUT, f"it used more than {limits.cpu_seconds} s of processor time")
        if used.cpu > 1.5 * (time.monotonic() - self._began) + 5:
            raise _Ended(TIMEOUT, "several of its processes were busy at once")

    def _spent(self, used: usage.Usage) -> float:
        """Processor time since the start, also of children whose end nobody fetched.

        The kernel forgets what those used: of several that want a processor at a look, half of the
        time since the last one is counted.
        """
        now = time.monotonic()
        seen = (used.running - 1) * (now - self._looked) / 2
        self._seconds += max(used.cpu - self._measured, seen, 0.0)
        self._looked, self._measured = now, used.cpu
        return self._seconds

    def _death(self) -> _Ended:
        assert self._process is not None
        try:
            code = self._process.wait(GRACE)
        except SandboxFault:
            return _Ended(CRASHED, "its sandbox ended")
        if code is None:
            return _Ended(CRASHED, "the process closed its connection")
        if code - 128 in OUT_OF_TIME:
            return _Ended(TIMEOUT, "the process used up its processor time")
        return _Ended(CRASHED, f"the process ended by itself (exit code {code})")

    def _abandon(self, reason: str) -> Gone:
        self._abandoned[self._exercise] = reason
        return Gone(reason)

    def _end(self, status: str) -> None:
        self._worsen(status)
        self._stop()

    def _worsen(self, status: str) -> None:
        order = (GRADED, CRASHED, TIMEOUT, MEMORY)
        self.status = max(self.status, status, key=order.index)

    def _stop(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.end()
        self._complaint = process.errors()


def _strings(values: Any) -> tuple[str, ...]:
    """A short list of short strings, or a ProtocolError."""
    if not isinstance(values, list) or len(values) > 32 or any(type(v) is not str for v in values):
        raise ProtocolError("a message of the wrong type")
    return tuple(value[:1000] for value in values)


def _first_line(cell: str) -> str:
    line = next((line.strip() for line in cell.splitlines() if line.strip()), "")
    return line if len(line) <= 24 else line[:23] + "…"


class _Ended(Exception):
    def __init__(self, status: str, reason: str) -> None:
        self.status, self.reason = status, reason
        super().__init__(reason)

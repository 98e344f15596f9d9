"""Frames to and from a worker over two pipes, with a deadline; in one thread, where that can be.

Whatever the other side does (says nothing, reads nothing, never ends a frame, sends too much), a
call comes back in its time, and no more than one frame is ever kept.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import struct
import threading
import time
from collections.abc import Callable
from typing import IO

from .wire import MAX_BLOBS, MAX_HEADER, ProtocolError, read_frame

PIECE = 1 << 16  # what a pipe holds


class Channel:
    """The grader's end. Raises TimeoutError, EOFError and ProtocolError."""

    def __init__(self, requests: IO[bytes], replies: IO[bytes]) -> None:
        self._to, self._from = requests.fileno(), replies.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._outgoing = memoryview(b"")
        self._incoming = bytearray()

    def send(self, frame: bytes) -> None:
        """Hand over a frame; it travels while a reply is waited for."""
        self._outgoing = memoryview(bytes(self._outgoing) + frame)

    def receive(self, deadline: float, every: float, look: Callable[[], None]) -> bytes:
        """The next frame; `look` is called `every` so many seconds, and may raise."""
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        next_look = time.monotonic() + every
        writing = False
        while (size := self._frame_size()) is None:
            if bool(self._outgoing) is not writing:
                writing = not writing
                if writing:
                    poll.register(self._to, select.POLLOUT)
                else:
                    poll.unregister(self._to)
            now = time.monotonic()
            if now >= deadline:
                raise TimeoutError
            if now >= next_look:
                look()
                next_look = time.monotonic() + every
            for descriptor, _ in poll.poll(1000 * min(every, deadline - now)):
                if descriptor == self._to:
                    self._write()
                elif not self._read():
                    raise EOFError
        frame = bytes(self._incoming[:size])
        del self._incoming[:size]
        return frame

    def _frame_size(self) -> int | None:
        """Bytes of the frame that is there as a whole, or None."""
        if len(self._incoming) < 8:
            return None
        header, blobs = struct.unpack(">II", self._incoming[:8])
        if header > MAX_HEADER or blobs > MAX_BLOBS:
            raise ProtocolError("a message is larger than allowed")
        size = int(8 + header + blobs)
        return size if len(self._incoming) >= size else None

    def _write(self) -> None:
        try:
            self._outgoing = self._outgoing[os.write(self._to, self._outgoing[:PIECE]) :]
        except BlockingIOError:
            return
        except OSError:  # nobody reads any more; what they still said can be read
            self._outgoing = memoryview(b"")

    def _read(self) -> bool:
        """Take a piece; False at the end."""
        try:
            piece = os.read(self._from, PIECE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._incoming += piece
        return bool(piece)


class ThreadedChannel:
    """The same where pipes cannot be polled (Windows, where a student checks answers of their own).

    Two threads cost time for each frame, and end with the pipes.
    """

    def __init__(self, requests: IO[bytes], replies: IO[bytes]) -> None:
        self._frames: queue.Queue[bytes | Exception] = queue.Queue(maxsize=1)
        self._outgoing: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, args=(replies,), daemon=True).start()
        threading.Thread(target=self._write, args=(requests,), daemon=True).start()

    def send(self, frame: bytes) -> None:
        """Hand over a frame; it travels while a reply is waited for."""
        self._outgoing.put(frame)

    def receive(self, deadline: float, every: float, look: Callable[[], None]) -> bytes:
        """The next frame; `look` is called `every` so many seconds, and may raise."""
        while (now := time.monotonic()) < deadline:
            try:
                item = self._frames.get(timeout=min(every, deadline - now))
            except queue.Empty:
                look()
                continue
            if isinstance(item, Exception):
                raise item
            return item
        raise TimeoutError

    def _read(self, replies: IO[bytes]) -> None:
        item: bytes | Exception | None = None
        while not isinstance(item, Exception):
            try:
                item = read_frame(replies) or EOFError()
            except ProtocolError as error:
                item = error
            except (OSError, ValueError):  # closed from this side
                return
            while not replies.closed:
                with contextlib.suppress(queue.Full):
                    self._frames.put(item, timeout=1)
                    break

    def _write(self, requests: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while not requests.closed:
                with contextlib.suppress(queue.Empty):
                    requests.write(self._outgoing.get(timeout=1))
                    requests.flush()


def open_channel(requests: IO[bytes], replies: IO[bytes]) -> Channel | ThreadedChannel:
    """The channel that this system allows."""
    kind = Channel if hasattr(select, "poll") else ThreadedChannel
    return kind(requests, replies)

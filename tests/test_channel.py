"""Whatever a worker says, or does not say, the grader goes on: in time, and within its memory."""

import json
import os
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder import warm
from autograder.answers import Answers
from autograder.channel import Channel, ThreadedChannel
from autograder.replies import StudentError
from autograder.sandbox import Limits
from autograder.session import CRASHED, GRADED, MEMORY, TIMEOUT, Session
from autograder.wire import MAX_BLOBS, MAX_HEADER, ProtocolError, pack, unpack

QUICK = replace(Limits(), wall_seconds=1.5, cell_seconds=0.01, call_seconds=0.01)
READY = pack({"ready": ["f"]})


class Pretender:
    """A process that says these bytes to its grader, and then hangs up or stays silent."""

    def __init__(self, said: bytes, hangs_up: bool = True) -> None:
        theirs_in, requests = os.pipe()
        replies, theirs_out = os.pipe()
        self.requests, self.replies = os.fdopen(requests, "wb"), os.fdopen(replies, "rb")
        self._in, self._out = theirs_in, theirs_out
        self.pid = os.getpid()
        self._said, self._hangs_up = said, hangs_up
        self._thread = threading.Thread(target=self._say, daemon=True)
        self._thread.start()

    def _say(self) -> None:
        with suppress(OSError):
            said = memoryview(self._said)
            while said:
                said = said[os.write(self._out, said) :]
        if self._hangs_up:
            os.close(self._out)

    def wait(self, seconds: float = 0) -> int | None:
        return 0 if self._hangs_up else None

    def end(self) -> None:
        self.requests.close()
        self.replies.close()
        self._thread.join()  # nobody reads any more, so it ends
        os.close(self._in)
        if not self._hangs_up:
            os.close(self._out)

    def errors(self) -> str:
        return ""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Session, Any]]:
    """Grades one call of an answer whose process says these bytes each time that it is started."""

    def tell(said: bytes, hangs_up: bool = True) -> tuple[Session, Any]:
        monkeypatch.setattr(warm, "start", lambda *_, **__: Pretender(said, hangs_up))
        with Session([], ["f"], QUICK) as session:
            session.begin("f")
            try:
                return session, Answers(session).f(1)
            except StudentError as error:
                return session, error

    return tell


def frame(header: Any, blobs: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack(">II", len(text), len(blobs)) + text + blobs


words = st.sampled_from(
    "cell failed error ready value text line function dict list tuple set array tensor handle "
    "complex other float64 bfloat16 cpu cuda".split()
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(words, inner, max_size=2)
        | st.lists(st.tuples(words, inner), max_size=4).map(lambda pairs: {"dict": pairs})
    ),
    max_leaves=14,
)
messages = (
    st.binary(max_size=60)
    | st.tuples(values, st.binary(max_size=24)).map(lambda both: frame(*both))
    | st.just(READY)
    | values.map(lambda value: frame({"dict": [["value", value]]}))
    | st.tuples(st.lists(words, max_size=2), st.text(max_size=4), st.just(3) | values).map(
        lambda v: frame(
            {
                "dict": [
                    ["error", {"list": v[0]}],
                    ["text", v[1]],
                    ["function", v[1]],
                    ["line", v[2]],
                ]
            }
        )
    )
)
talk = st.lists(messages, max_size=5).map(b"".join)


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(said=talk, greets=st.booleans())
def test_nothing_that_a_process_says_raises_in_the_grader(
    told: Callable[..., Any], said: bytes, greets: bool
) -> None:
    session, answer = told(READY + said if greets else said)
    assert session.status in (GRADED, CRASHED, TIMEOUT, MEMORY)
    assert isinstance(session.notes(), list)
    if isinstance(answer, StudentError):
        assert all(isinstance(t, str) for t in answer.types) and isinstance(answer.message, str)
        assert len(answer.message) < 5000


@pytest.mark.parametrize(
    "said",
    [
        b"",
        READY,
        READY[:5],
        READY + b"\0\0\0\7\0",
        READY + struct.pack(">II", 100, 100) + b"x" * 50,
    ],
    ids=["nothing", "no answer", "half a greeting", "half a head", "half a body"],
)
def test_a_process_that_falls_silent_costs_its_own_time_and_no_more(
    told: Callable[..., Any], said: bytes
) -> None:
    started = time.monotonic()
    session, answer = told(said, hangs_up=False)
    assert isinstance(answer, StudentError) and session.status in (TIMEOUT, CRASHED)
    assert time.monotonic() - started < QUICK.wall_seconds + 4


def test_where_pipes_cannot_be_polled_threads_carry_the_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on Windows, where a student's own check runs without walls."""
    monkeypatch.delattr("select.poll")
    code = """
import os
def f(x):
    return "y" * x
def g(x):
    os._exit(3)
def h(x):
    while True:
        pass
"""
    limits = replace(Limits(), call_seconds=1.0, wall_seconds=60.0)
    with Session([code], ["f", "g", "h"], limits, walls=False) as session:
        answers = Answers(session)
        session.begin("f")
        assert answers.f(3) == "yyy" and len(answers.f(3_000_000)) == 3_000_000
        assert isinstance(session._channel, ThreadedChannel)
        for name, told in (("g", "ended by itself"), ("h", "took longer")):
            session.begin(name)
            with pytest.raises(StudentError, match=told):
                getattr(answers, name)(1)
        session.begin("f")
        assert answers.f(1) == "y" and session.status == TIMEOUT
    time.sleep(1.5)
    assert not [t for t in threading.enumerate() if t.name.endswith(("(_read)", "(_write)"))]


def test_a_length_that_is_claimed_is_not_allocated() -> None:
    replies, out = os.pipe()
    with os.fdopen(replies, "rb") as ours, open(os.devnull, "wb") as nowhere:
        channel = Channel(nowhere, ours)
        os.write(out, struct.pack(">II", MAX_HEADER, MAX_BLOBS) + b"x" * 100)
        tracemalloc.start()
        with pytest.raises(TimeoutError):
            channel.receive(time.monotonic() + 0.2, 1, lambda: None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 20
        os.close(out)


def test_a_flood_is_kept_to_one_frame() -> None:
    replies, out = os.pipe()
    whole = struct.pack(">II", 2, MAX_BLOBS) + b"{}" + bytes(MAX_BLOBS)

    def flood() -> None:
        with suppress(OSError):
            for _ in range(20):
                os.write(out, whole)

    threading.Thread(target=flood, daemon=True).start()
    with os.fdopen(replies, "rb") as ours, open(os.devnull, "wb") as nowhere:
        channel = Channel(nowhere, ours)
        tracemalloc.start()
        for _ in range(5):
            assert channel.receive(time.monotonic() + 10, 1, lambda: None) == whole
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    os.close(out)
    assert peak < 4 * MAX_BLOBS  # the buffer, its growth, and the frame that is handed on


def test_a_frame_that_is_too_large_is_refused_by_its_head() -> None:
    replies, out = os.pipe()
    with os.fdopen(replies, "rb") as ours, open(os.devnull, "wb") as nowhere:
        os.write(out, struct.pack(">II", MAX_HEADER + 1, 0))
        with pytest.raises(ProtocolError, match="larger"):
            Channel(nowhere, ours).receive(time.monotonic() + 1, 1, lambda: None)
    os.close(out)


def test_both_sides_may_send_more_than_a_pipe_holds_at_once() -> None:
    requests, their_in = os.pipe()[::-1], os.pipe()
    ours, theirs = os.fdopen(requests[0], "wb"), os.fdopen(requests[1], "rb")
    large = pack({"x": "y" * 3_000_000})

    def echo() -> None:
        os.write(their_in[1], large)  # before it reads anything
        theirs.read(len(large))

    thread = threading.Thread(target=echo, daemon=True)
    thread.start()
    with os.fdopen(their_in[0], "rb") as replies:
        channel = Channel(ours, replies)
        channel.send(large)
        assert unpack(channel.receive(time.monotonic() + 20, 1, lambda: None))["x"][:1] == "y"
        with pytest.raises(TimeoutError):
            channel.receive(time.monotonic() + 1, 1, lambda: None)
    thread.join(5)
    assert not thread.is_alive()

"""Attacks on the wire: frames that are forged, half, slow, endless, early, or sent twice.

A cell may take any descriptor of its process, so it can say whatever the worker could. It must
gain nothing by it, and the grader must not trip, wait for ever, or take one answer for another.
"""

from __future__ import annotations

from .attack import Attack, attack

WIRE = """\
import json, os, stat, struct, time
def frame(header, blobs=b""):
    header = header if isinstance(header, bytes) else header.encode()
    return struct.pack(">II", len(header), len(blobs)) + header + blobs
def pipes():
    for number in range(3, 64):
        try:
            mode = os.fstat(number).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                os.set_blocking(number, False)
                yield number
        except OSError:
            pass
def say(data):
    for number in pipes():
        try:
            os.write(number, data)
        except OSError:
            pass
        os.set_blocking(number, True)
def message(**fields):
    return frame(json.dumps({"dict": [[k, v] for k, v in fields.items()]}))
"""
GARBAGE = WIRE + "say(os.urandom(5000))"
GARBAGE_CALL = WIRE + ("def self_attention(*a, **k):\n    say(os.urandom(5000))\n    return None")
HALF = WIRE + ("def self_attention(*a, **k):\n    say(frame('x' * 5000)[:100])\n    time.sleep(99)")
SLOW = (
    WIRE
    + """\
def self_attention(*a, **k):
    end = time.time() + 99
    for byte in frame('{"dict": [["value", 1]]}' + " " * 9000):
        say(bytes([byte]))
        try:
            time.sleep(0.4)
        except BaseException:
            pass
"""
)
ENDLESS = (
    WIRE
    + """\
def self_attention(*a, **k):
    say(struct.pack(">II", 1 << 18, 4 << 20))
    while True:
        try:
            say(b"x" * 65536)
        except BaseException:
            pass
"""
)
FLOOD = (
    WIRE
    + """\
while True:
    try:
        say(message(cell=0))
    except BaseException:
        pass
"""
)
READY = (
    WIRE
    + """\
every = ["self_attention", "permutation_gap", "failed_requirements", "causal_mask",
         "positions_from_causal_average", "multi_head_attention", "binary_positions", "x" * 999]
say(message(ready={"list": every}))
say(message(value=True) * 40)
"""
)
FAILED = (
    WIRE
    + """\
say(message(failed=10**9, error={"list": ["E", "x"]}))
say(message(failed=-1, error={"list": []}))
say(message(cell=float("inf")))
say(message(failed=0, error={"list": ["<script>alert(1)</script>", "=1+1"]}))
"""
)
TWICE = (
    WIRE
    + """\
def self_attention(x, w_q, w_k, w_v, mask=None):
    say(message(value=1.0))
    say(message(value={"tuple": [1.0, {"tuple": []}]}))
    return 2.0
"""
)
AHEAD = (
    WIRE
    + """\
def tell(value, shape):
    say(frame(json.dumps({"dict": [["value", {"array": ["bool", shape, [0, len(value)], False]}]]}),
              value))
def self_attention(*a, **k):
    for _ in range(8):  # what the next questions may be answered with
        tell(b"\\1\\0\\0\\1\\1\\0\\1\\1\\1", [3, 3])
    os._exit(0)
"""
)
HEADERS = [
    '{"dict": [["value", ' + '{"list": [' * 2000 + "1" + "]}" * 2000 + "]]}",
    '{"dict": [["value", {"array": ["object", [1], [0, 8], false]}]]}',
    '{"dict": [["value", {"array": ["float64", [1e9, 1e9], [0, 8], false]}]]}',
    '{"dict": [["value", {"array": ["float64", [-1], [0, 8], false]}]]}',
    '{"dict": [["value", {"array": ["float64", [1], [-8, 8], false]}]]}',
    '{"dict": [["value", {"array": ["float64", [0, 99999999999999], [0, 0], false]}]]}',
    '{"dict": [["value", {"array": ["float64", [0, 1e308], [0, 0], false]}]]}',
    '{"dict": [["value", {"tensor": ["float64", [1], [0, 8], "cuda:99"]}]]}',
    '{"dict": [["value", {"tensor": ["__class__", [1], [0, 8], "meta"]}]]}',
    '{"dict": [["value", {"complex": ["nan", "x"]}]]}',
    '{"dict": [["value", {"handle": [1e400, "<script>alert(1)</script>"]}]]}',
    '{"dict": [["value", {"text": [0, 999999999]}]]}',
    '{"dict": [["value", {"set": [{"list": []}]}]]}',
    '{"dict": [["value", NaN], ["error", {"list": [5]}]]}',
    '{"dict": [["error", {"list": []}], ["text", "\\ud800"], ["line", -1]]}',
    '{"dict": [["error", {"list": ["E"]}], ["text", "=HYPERLINK()"], ["function", "<b>"]]}',
    '{"dict": [["value", ' + "9" * 5000 + "]]}",
    "[" * 100_000,
    '"text"', "null", "", "\\xff\\xfe",
]  # fmt: skip
EXERCISES = "self_attention permutation_gap failed_requirements multi_head_attention".split()
# Four exercises of a notebook are lost to one forged reply each.
FORGED = [
    WIRE
    + "\n".join(
        f"def {name}(*a, **k):\n    say(frame({header!r}.encode('utf-8', 'replace'), bytes(8)))\n"
        "    os._exit(0)"
        for name, header in zip(EXERCISES, HEADERS[start : start + 4], strict=False)
    )
    for start in range(0, len(HEADERS), 4)
]

ATTACKS: list[Attack] = [
    attack("garbage", "writes noise to every descriptor while a cell runs", GARBAGE,
           status="crashed|timeout"),
    attack("garbage-in-a-call", "writes noise to every descriptor while it is asked", GARBAGE_CALL,
           status="crashed|timeout"),
    attack("half-a-frame", "begins a reply and sleeps", HALF, status="crashed|timeout"),
    attack("slow-frame", "sends a reply byte by byte", SLOW, status="crashed|timeout"),
    attack("endless-frame", "sends a reply that never ends", ENDLESS, status="crashed|timeout"),
    attack("flood", "sends messages for ever while a cell runs", FLOOD, status="crashed|timeout",
           least=0.0),
    attack("says-it-is-ready", "claims that all names are there, and answers ahead", READY,
           status="crashed|graded|timeout", least=0.0),
    attack("forged-failures", "tells of cells that are not there", FAILED,
           status="crashed|graded|timeout"),
    attack("two-replies", "answers each question twice or three times", TWICE,
           status="crashed|graded", least=0.0),
    attack("replies-ahead", "answers the next questions before they are asked", AHEAD,
           status="crashed|graded", least=0.0),
    *(attack(f"forged-reply-{number}", "sends replies that are no data", cell,
             status="crashed|graded|timeout", least=0.0 if number > 3 else None)
      for number, cell in enumerate(FORGED)),
]  # fmt: skip

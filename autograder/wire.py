"""The wire between the grader and a sandboxed answer: plain data in length-prefixed frames.

A frame is `>II` (bytes of the JSON header, bytes of the blobs), the header, the blobs. Arrays are
raw bytes described in the header by dtype and shape and checked against each other before anything
is allocated: no pickle, no `.npy` header to evaluate, no length that is believed. Whatever breaks
the rules is a `ProtocolError`.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from typing import IO, Any

import numpy as np

from .replies import Handle

MAX_HEADER = 1 << 18
MAX_BLOBS = 4 << 20
MAX_DEPTH = 24
LONG_TEXT = 10_000  # characters; a longer text travels beside the header
DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "float16 float32 float64 complex64 complex128"
).split()
CODES = {np.dtype(name).str[1:]: name for name in DTYPES}  # names may change with np.bool
LONGER = {"f16": "float64", "c32": "complex128"}  # they do not travel, their numbers do
TORCH_VIEWS = {"bfloat16": "int16"}  # dtypes that NumPy does not know travel as another's bits


class ProtocolError(Exception):
    """The other side sent something that is no message."""


def pack(value: Any) -> bytes:
    """A value as one frame. Raises ValueError when it is larger than a frame may be."""
    blobs: list[bytes] = []
    header = json.dumps(_encode(value, blobs, 0)).encode()
    size = sum(map(len, blobs))
    if len(header) > MAX_HEADER or size > MAX_BLOBS:
        raise ValueError(f"larger than {MAX_BLOBS >> 20} MiB")
    return struct.pack(">II", len(header), size) + header + b"".join(blobs)


def unpack(frame: bytes) -> Any:
    """The value of a frame that `read_frame` returned."""
    try:
        header_size, _ = struct.unpack(">II", frame[:8])
        blobs = _Blobs(memoryview(frame)[8 + header_size :])
        return _decode(json.loads(frame[8 : 8 + header_size]), blobs, 0)
    except ProtocolError:
        raise
    except Exception as error:  # any malformed header ends here, whatever it tripped over
        raise ProtocolError(f"malformed message ({type(error).__name__})") from None


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The next frame, or None at the end of the stream."""
    head = _read(stream, 8)
    if head is None:
        return None
    header_size, blob_size = struct.unpack(">II", head)
    if header_size > MAX_HEADER or blob_size > MAX_BLOBS:
        raise ProtocolError("a message is larger than allowed")
    body = _read(stream, header_size + blob_size)
    return None if body is None else head + body


class _Blobs:
    """The bytes beside a header; together, what is taken is never more than there is."""

    def __init__(self, view: memoryview) -> None:
        self._view, self._left = view, len(view)

    def take(self, place: list[int]) -> memoryview:
        start, length = int(place[0]), int(place[1])
        self._left -= length
        if min(start, length, self._left) < 0 or start + length > len(self._view):
            raise ProtocolError("bytes that are not there, or taken twice")
        return self._view[start : start + length]


def _read(stream: IO[bytes], size: int) -> bytes | None:
    parts = []
    while size:
        part = stream.read(min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _encode(value: Any, blobs: list[bytes], depth: int) -> Any:
    """JSON in which everything but text, numbers and null is a one-key object."""
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    kind = type(value)
    if value is None or kind in (bool, float):
        return value
    if kind is str:
        return (
            value
            if len(value) < LONG_TEXT
            else {"text": _bytes(value.encode("utf-8", "replace"), blobs)}
        )
    if kind is int:
        return value if abs(value) < 2**63 else {"other": "int of more than 64 bits"}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind is Handle:
        return {"handle": [value.number, value.type_name[:100]]}
    if kind in (tuple, list, set, frozenset):
        return {kind.__name__: [_encode(item, blobs, depth + 1) for item in value]}
    if kind is dict:
        return {"dict": [[str(k), _encode(v, blobs, depth + 1)] for k, v in value.items()]}
    if kind is np.ndarray or isinstance(value, np.generic):
        array = np.asarray(value)
        array = array.astype(LONGER.get(array.dtype.str[1:], array.dtype), copy=False)
        name = CODES.get(array.dtype.str[1:])
        if name is None:
            return {"other": f"array of dtype {array.dtype}"[:100]}
        scalar = kind is not np.ndarray
        return {"array": [name, list(array.shape), _blob(array, blobs), scalar]}
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _encode_tensor(torch, value, blobs)
    return {"other": kind.__name__[:100]}


def _encode_tensor(torch: Any, value: Any, blobs: list[bytes]) -> Any:
    """Its numbers in the order in which they lie in memory: an answer may look at strides."""
    name = str(value.dtype).removeprefix("torch.")
    order = _order_in_memory(torch, value)
    plain = value.detach().cpu().permute(order).contiguous()
    if name in TORCH_VIEWS:
        plain = plain.view(getattr(torch, TORCH_VIEWS[name]))
    elif name not in DTYPES:
        return {"other": f"tensor of dtype {name}"}
    return {"tensor": [name, list(plain.shape), _blob(plain.numpy(), blobs), order]}


def _order_in_memory(torch: Any, value: Any) -> list[int]:
    """Its axes from the longest stride to the shortest, where memory has no gaps between them."""
    axes = list(range(value.ndim))
    if value.layout != torch.strided:
        return axes
    order = sorted(axes, key=lambda axis: -value.stride(axis))
    return order if value.permute(order).is_contiguous() else axes


def _blob(array: np.ndarray, blobs: list[bytes]) -> list[int]:
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return _bytes(np.ascontiguousarray(native).tobytes(), blobs)


def _bytes(data: bytes, blobs: list[bytes]) -> list[int]:
    start = sum(map(len, blobs))
    blobs.append(data)
    return [start, len(data)]


def _decode(node: Any, blobs: _Blobs, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ProtocolError("nested too deeply")
    if node is None or isinstance(node, bool | int | float | str):
        return node
    ((kind, body),) = node.items()
    if kind == "complex":
        return complex(*map(float, body))
    if kind == "text":
        return bytes(blobs.take(body)).decode("utf-8", "replace")
    if kind == "handle":
        return Handle(int(body[0]), str(body[1])[:100])
    if kind in ("tuple", "list", "set", "frozenset"):
        if "set" in kind and len(body) > 1000:
            raise ProtocolError("a set of more than a thousand")
        items = [_decode(item, blobs, depth + 1) for item in body]
        return {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}[kind](items)
    if kind == "dict":
        return {str(k): _decode(v, blobs, depth + 1) for k, v in body}
    if kind == "array":
        array = _array(body[0], body[1], body[2], blobs)
        return array[()] if body[3] and array.shape == () else array
    if kind == "tensor":
        return _decode_tensor(body, blobs)
    if kind == "other":
        return Handle(-1, str(body)[:100])
    raise ProtocolError(f"unknown kind {kind[:40]!r}")


def _array(dtype: str, shape: list[int], place: list[int], blobs: _Blobs) -> np.ndarray:
    if dtype not in DTYPES or len(shape) > 32:
        raise ProtocolError("an array of an unknown dtype or rank")
    sizes = [int(n) for n in shape]
    if min(sizes, default=0) < 0:
        raise ProtocolError("a negative size")
    data = blobs.take(place)
    if math.prod(sizes) * np.dtype(dtype).itemsize != len(data):
        raise ProtocolError("an array whose shape and bytes disagree")
    return np.frombuffer(data, dtype).reshape(sizes).copy()


def _decode_tensor(body: list[Any], blobs: _Blobs) -> Any:
    """On the CPU, wherever it was: no message makes its reader touch a GPU."""
    import torch

    name, shape, place, order = body
    axes = [int(axis) for axis in order]
    if sorted(axes) != list(range(len(shape))):
        raise ProtocolError("an order of axes that is none")
    bits = torch.from_numpy(_array(TORCH_VIEWS.get(name, name), shape, place, blobs))
    plain = bits.view(torch.bfloat16) if name == "bfloat16" else bits
    return plain.permute([axes.index(axis) for axis in range(len(axes))])

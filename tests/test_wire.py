"""The wire carries plain data unchanged, and nothing that a stranger sends can hurt the reader."""

import contextlib
import io
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.recognise import same_value
from autograder.replies import Handle
from autograder.wire import MAX_BLOBS, ProtocolError, pack, read_frame, unpack

PLAIN = [
    None,
    True,
    -3,
    2.5,
    float("inf"),
    1 + 2j,
    "naïve ✓",
    (1, [2.0, "x"]),
    {"a": (1, 2)},
    {1, 2},
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.float32(1.5),
    np.zeros((0, 3)),
    np.array(2.0),
    np.array([True, False]),
    np.arange(4.0).reshape(2, 2).T,
]


def frame(header: object, blobs: bytes = b"") -> bytes:
    data = json.dumps(header).encode()
    return struct.pack(">II", len(data), len(blobs)) + data + blobs


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_data_arrives_as_it_left(value: object) -> None:
    arrived = unpack(pack(value))
    assert type(arrived) is type(value)
    assert str(getattr(arrived, "dtype", "")) == str(getattr(value, "dtype", ""))
    assert repr(arrived) == repr(value)


def test_bfloat16_tensors_arrive_bit_for_bit() -> None:
    torch = pytest.importorskip("torch")
    value = torch.randn(3, 5).to(torch.bfloat16)
    arrived = unpack(pack(value))
    assert arrived.dtype == torch.bfloat16 and torch.equal(arrived, value)


def test_a_tensor_arrives_in_the_order_in_which_it_lay_in_memory() -> None:
    torch = pytest.importorskip("torch")
    value = torch.arange(24.0).reshape(2, 3, 4)
    for order in ((0, 1, 2), (2, 0, 1), (1, 0, 2), (2, 1, 0)):
        arrived = unpack(pack(value.permute(order)))
        assert torch.equal(arrived, value.permute(order))
        assert arrived.stride() == value.permute(order).stride()
    for gaps in (value[:, ::2], value[:1].expand(5, 3, 4)):  # these arrive without
        arrived = unpack(pack(gaps))
        assert torch.equal(arrived, gaps) and arrived.is_contiguous()


@pytest.mark.parametrize("order", [[0, 0], [1], [0, 2], [0, -1], [0, 1, 2], "0x", None])
def test_an_order_of_axes_that_is_none_is_refused(order: object) -> None:
    with pytest.raises(ProtocolError):
        unpack(frame({"tensor": ["float64", [1, 2], [0, 16], order]}, bytes(16)))


def test_what_is_not_plain_data_arrives_as_a_handle_with_its_type() -> None:
    for value in (object(), np.array([object()]), 10**30):
        assert isinstance(unpack(pack(value)), Handle)


def test_numbers_wider_than_others_arrive_as_the_widest_that_all_have() -> None:
    for value in (np.longdouble(0.5), np.array([0.5, 2], np.clongdouble)):
        found = unpack(pack(value))
        assert found.dtype in (np.float64, np.complex128) and np.array_equal(found, value)


def test_dtypes_have_their_names_whatever_a_notebook_calls_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(np, "bool", bool)  # as old libraries want it; NumPy reads its names there
    found = unpack(pack(np.array([True, False])))
    assert found.dtype == np.array([True]).dtype and list(found) == [True, False]


def test_a_value_larger_than_a_frame_is_refused_by_the_sender() -> None:
    with pytest.raises(ValueError, match="larger than 4 MiB"):
        pack(np.zeros(MAX_BLOBS // 8 + 1))


def test_a_declared_size_above_the_cap_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ProtocolError):
        read_frame(io.BytesIO(struct.pack(">II", 10, 2**32 - 1)))


def test_a_frame_that_ends_early_is_the_end() -> None:
    assert read_frame(io.BytesIO(pack(1)[:-1])) is None


HOSTILE = [
    {"array": ["float64", [10**9, 10**9], [0, 8], False]},
    {"array": ["float64", [-1, -8], [0, 8], False]},
    {"array": ["object", [1], [0, 8], False]},
    {"array": ["float64", [1], [10**12, 8], False]},
    {"array": ["float64", [1] * 40, [0, 8], False]},
    {"array": ["V8", [1], [0, 8], False]},
    {"tensor": ["float64", [2], [0, 8]]},
    {"set": [{"list": []}]},
    {"set": list(range(1001))},
    {"text": [0, 9]},
    {"tuple": [{"array": ["uint8", [8], [0, 8], False]}] * 2},
    {"pickle": "cos\nsystem\n"},
    {"tuple": 5},
    {"a": 1, "b": 2},
    {},
    [],
    {"handle": ["x", 1]},
]


@pytest.mark.parametrize("header", HOSTILE, ids=str)
def test_a_lying_header_is_a_protocol_error(header: object) -> None:
    with pytest.raises(ProtocolError):
        unpack(frame(header, b"\0" * 8))


def test_nesting_without_end_is_a_protocol_error() -> None:
    deep = b'{"tuple":[' * 50_000 + b"]}" * 50_000
    with pytest.raises(ProtocolError):
        unpack(struct.pack(">II", len(deep), 0) + deep)


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_arbitrary_bytes_raise_nothing_but_protocol_errors(header: bytes, blobs: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        unpack(struct.pack(">II", len(header), len(blobs)) + header + blobs)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["array", "tensor", "tuple", "set", "dict", "handle", "complex", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=12,
)


@given(json_values, st.binary(max_size=32))
def test_arbitrary_headers_raise_nothing_but_protocol_errors(header: object, blobs: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        unpack(frame(header, blobs))


@given(st.recursive(st.none() | st.integers(-(2**40), 2**40) | st.text(max_size=9), st.lists))
def test_what_was_packed_is_what_is_unpacked(value: object) -> None:
    assert same_value(unpack(pack(value)), value) or unpack(pack(value)) == value

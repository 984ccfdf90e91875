"""The wire: every type comes back as itself, and nothing malformed gets through."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from safetensors.numpy import save

from grader.course.spec import Case
from grader.worker import protocol
from grader.worker.observe import observe
from grader.worker.operations import MAX_CALLS
from grader.worker.values import Failure, Observation, Part, Tensor, Variable, describe


def through(value):
    """A value after its journey over the wire."""
    data = packed({"value": value})
    stream = [data[:7], data[7:]]
    return protocol.receive(lambda count: _take(stream, count))[0]["value"]


def packed(message) -> bytes:
    return protocol.frame(protocol.body(message))


def _take(stream: list[bytes], count: int) -> bytes:
    if not stream:
        return b""
    piece, stream[0] = stream[0][:count], stream[0][count:]
    if not stream[0]:
        del stream[0]
    return piece


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        1,
        -(10**30),
        0.1,
        -0.0,
        math.inf,
        "",
        "naïve \U0001f600\n",
        (),
        [],
        {},
        (1,),
        [1, (2.0, [None])],
        {"a": {"b": ()}},
        ((), ((),)),
    ],
)
def test_plain_values_come_back_as_themselves(value):
    back = through(value)
    assert back == value and type(back) is type(value) and str(back) == str(value)


def test_nan_comes_back():
    assert math.isnan(through(math.nan))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32", "float64"]
)
def test_arrays_come_back_with_type_shape_and_values(dtype):
    for shape in ((), (0,), (0, 3), (1,), (2, 3), (2, 0, 4), (2, 3, 4)):
        array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
        back = through(array)
        assert type(back) is np.ndarray and back.dtype == array.dtype and back.shape == shape
        assert np.array_equal(back, array) and back.flags.writeable


def test_arrays_keep_the_order_of_their_axes_in_memory():
    array = np.arange(24.0).reshape(2, 3, 4)
    for view in (array, array.T, array.transpose(1, 0, 2), array[::2, ::-1], np.broadcast_to(array[0], (5, 3, 4))):
        back = through(view)
        assert np.array_equal(back, view)
    assert through(array.T).flags.f_contiguous and not through(array.T).flags.c_contiguous


def test_special_numbers_and_byte_order():
    array = np.array([np.nan, np.inf, -np.inf, -0.0])
    assert through(array).tobytes() == array.tobytes()
    assert np.array_equal(through(array.astype(">f8")), array, equal_nan=True)
    scalar = through(np.float32(0.1))
    assert type(scalar) is np.float32 and scalar == np.float32(0.1)
    assert type(through(np.bool_(True))) is np.bool_


def test_tensors():
    back = through(Tensor(np.float32([1.5]), "bfloat16", True))
    assert (back.dtype, back.requires_grad, back.array.tolist()) == ("bfloat16", True, [1.5])


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1: 2},
        {"$a": 2},
        {3},
        b"x",
        1j,
        np.array(["a"]),
        np.array([None]),
        np.array([1j]),
        np.longdouble(1),
        np.random.default_rng(0),
        print,
    ],
)
def test_other_types_do_not_travel(value):
    with pytest.raises(protocol.WireError):
        packed({"value": value})


def test_nesting_has_a_limit():
    value: list = []
    for _ in range(100):
        value = [value]
    with pytest.raises(protocol.WireError, match="nested"):
        packed({"value": value})


# --- observations ---------------------------------------------------------------------------------


def test_observations_come_back():
    torch_like = Part("tensor", np.float32([[1, 2]]), "bfloat16")
    parts = {
        "output": describe(np.arange(6.0).reshape(2, 3)),
        "many": describe((1, [2.5, None, "x", True], {})),
        "t": torch_like,
    }
    seen = Observation(parts, None, {"x": describe(np.arange(3.0))}, ("softmax", "einsum 12 24", "operations 7"))
    back = protocol.observation_from_message(through(seen))
    assert (list(back.after), back.calls, list(back.parts)) == (
        ["x"],
        ("softmax", "einsum 12 24", "operations 7"),
        ["output", "many", "t"],
    )
    assert np.array_equal(back.parts["output"].array, seen.parts["output"].array)
    assert [item.kind for item in back.parts["many"].items] == ["number", "sequence", "other"]
    assert [item.kind for item in back.parts["many"].items[1].items] == ["number", "none", "text", "bool"]
    assert back.parts["t"].dtype == "bfloat16"


@pytest.mark.parametrize("value", [np.longdouble("0.5"), [np.longdouble("0.5")], np.array([0.5], np.longdouble)])
def test_a_long_double_comes_back_as_a_double_which_any_machine_has(value):
    part = protocol.observation_from_message(through(Observation({"result": describe(value)}))).parts["result"]
    (part,) = part.items or (part,)
    assert part.dtype == "float64" and part.array == 0.5


@pytest.mark.parametrize("times", [MAX_CALLS - 1, MAX_CALLS, MAX_CALLS + 5])
def test_however_often_a_watched_operation_ran_what_was_seen_comes_back(times):
    one = np.ones(1)
    many = Case("many", "many", (times,), options={"watch": ("einsum", "table")})
    seen = observe(lambda n: [np.einsum("i,i->", one, one) for _ in range(n)] and one, many)
    assert protocol.observation_from_message(through(seen)).calls == seen.calls and "einsum 1 1" in seen.calls


def test_a_span_of_time_is_told_as_what_it_is():
    assert describe(np.timedelta64(5)).text == "timedelta64" and describe(10**30).text == "integer of 31 digits"


def test_failures_come_back_and_long_texts_are_cut():
    failure = Failure(
        "exception",
        "E" * 5000,
        "message \ud800",
        "line",
        3,
        (Variable("x", "(2,)", "array", (2,)),),
        function="Home.forward",
    )
    back = protocol.failure_from_message(through(protocol.to_message(failure)))
    assert (back.kind, len(back.type), back.line_number, back.shapes) == (
        "exception",
        2000,
        3,
        (Variable("x", "(2,)", "array", (2,)),),
    )
    assert back.function == "Home.forward"
    assert back.message == "message ?"


def good() -> dict:
    return protocol.to_message(Observation({"result": describe(np.zeros((2, 3)))}))


def forged(**changes) -> dict:
    message = good()
    message["parts"][0][1].update(changes)
    return message


FORGED = {
    "no dict": 3,
    "no parts": {},
    "unknown kind": forged(kind="object"),
    "a kind without its array": forged(array=None),
    "an array where none belongs": forged(kind="text"),
    "another type than claimed": forged(dtype="float32"),
    "a number that is a matrix": forged(kind="number"),
    "a bool of floats": forged(kind="bool", array=np.array(1.0)),
    "bfloat16 of float64": forged(kind="tensor", dtype="bfloat16"),
    "items of an array": forged(items=[{}]),
    "a list for an array": forged(array=[1.0]),
    "a long text": forged(text="x" * 100_000),
    "a number for a text": forged(dtype=3),
    "a status for a failure": {**good(), "failure": "passed"},
    "a failure of unknown kind": {**good(), "failure": protocol.to_message(Failure("passed"))},
    "a failure with a float for a line": {
        **good(),
        "failure": {**protocol.to_message(Failure("died")), "line_number": 1.5},
    },
    "calls that are none": {**good(), "calls": ["einsum <b>"]},
    "a largest tensor that is none": {**good(), "largest": [[2, 3], "6", ""]},
    "a largest tensor of a negative size": {**good(), "largest": [[2, -3], 6, ""]},
    "inputs that are none": {**good(), "after": "x"},
    "too many inputs": {**good(), "after": good()["parts"] * 100},
    "too many parts": {**good(), "parts": good()["parts"] * 100},
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_malformed_observation_is_refused(kind):
    with pytest.raises(protocol.WireError):
        protocol.observation_from_message(FORGED[kind])


def test_a_deeply_nested_observation_is_refused():
    message = good()
    part = protocol.to_message(Part("none"))
    for _ in range(8):
        part = {**part, "kind": "sequence", "items": [part]}
    message["parts"] = [["result", part]]
    with pytest.raises(protocol.WireError):
        protocol.observation_from_message(message)


# --- bytes ----------------------------------------------------------------------------------------


def read_all(data: bytes):
    stream = [data] if data else []
    return protocol.receive(lambda count: _take(stream, count))[0]


def test_a_stream_that_ends_early():
    data = packed({"value": np.zeros(100)})
    for cut in (0, 3, 15, 20, len(data) - 1):
        with pytest.raises(EOFError):
            read_all(data[:cut])


def test_a_frame_carries_its_nonce():
    data = [protocol.frame(protocol.body({"a": 1}), b"0123456789abcdef")]
    assert protocol.receive(lambda count: _take(data, count)) == ({"a": 1}, b"0123456789abcdef")


def test_a_length_beyond_the_limit_is_refused_before_anything_is_read():
    with pytest.raises(protocol.WireError):
        read_all(protocol.PREFIX.pack(protocol.MAGIC, protocol.NO_NONCE, 10, 2**60))
    with pytest.raises(protocol.WireError):
        read_all(protocol.PREFIX.pack(protocol.MAGIC, protocol.NO_NONCE, 2**32 - 1, 0))
    with pytest.raises(protocol.WireError):
        read_all(b"HTTP/1.1 200 OK\r\nX-Score: passed with all points\r\n\r\n")


def test_a_header_beyond_the_limit_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(protocol, "load", lambda blob: pytest.fail("read"))
    entries = ",".join(f'"{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(20_000)).encode()
    with pytest.raises(protocol.WireError, match="too many"):
        protocol.unpack(protocol.Body(b"{}", (len(entries) + 2).to_bytes(8, "little") + b"{" + entries + b"}"))
    with pytest.raises(protocol.WireError):
        protocol.unpack(protocol.Body(b"{}", b"short"))


def test_too_many_arrays_are_not_sent():
    with pytest.raises(protocol.WireError, match="10001 arrays and numbers are too many"):
        protocol.body({"value": [np.zeros(0)] * 10_001})


def test_an_array_that_is_too_large_is_refused():
    data = packed({"value": np.zeros(200_001)})
    with pytest.raises(protocol.WireError, match="too many"):
        read_all(data)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b"3",
        b"[]",
        b'{"$tuple": []}',
        b'{"a": {"$array": ["0"]}}',
        b'{"a": {"$array": 1}}',
        b'{"a": {"$tuple": 3}}',
        b'{"$eval": "1"}',
        b'{"a": {"$": 1}}',
        b'{"a": {"$tensor": [1]}}',
        b'{"a": ' + b"1" * 5000 + b"}",
    ],
)
def test_json_that_is_no_message_is_refused(text):
    with pytest.raises(protocol.WireError):
        protocol.unpack(protocol.Body(text, b""))


PLACES = {
    "axes twice": ["0", [0, 0]],
    "axes that are none": ["0", [0, 2]],
    "more axes than there are": ["0", [0, 1, 2]],
    "a name that did not come": ["3"],
    "a name that is none": [0],
    "a name that is a list": [["0"]],
    "complex numbers": ["1"],
    "a length beyond all numbers": ["2"],
    "nothing": [],
}


@pytest.mark.parametrize("kind", PLACES)
def test_an_array_that_did_not_come_is_refused(kind):
    blob = save(
        {"0": np.arange(4.0).reshape(2, 2), "1": np.zeros(2, np.complex64), "2": np.zeros((0, 10**9), np.float32)}
    )

    def read(*places):
        return protocol.unpack(protocol.Body(json.dumps({"a": [{"$array": one} for one in places]}).encode(), blob))[
            "a"
        ]

    assert read(["0", [1, 0]])[0].tolist() == [[0, 2], [1, 3]]
    with pytest.raises(protocol.WireError):
        read(PLACES[kind])
    with pytest.raises(protocol.WireError):
        read(["0"], ["0"])


# What a worker may send at most, in each way that could cost the reader far more than its bytes.
FILL = protocol.MAX_JSON_BYTES - 100
ONE = save({"0": np.zeros(200_000)})


def all_arrays_that_fit() -> tuple[bytes, bytes]:
    several = {str(i): np.zeros(20) for i in range(10_000)}
    return b"[" + b",".join(f'{{"$array":["{i}"]}}'.encode() for i in several) + b"]", save(several)


def many_of(item: str) -> tuple[bytes, bytes]:
    return b"[" + b",".join([item.encode()] * (FILL // (len(item) + 1))) + b"]", ONE


BOMBS: dict[str, Callable[[], tuple[bytes, bytes]]] = {  # made where they are needed, each in millions of parts
    "all arrays that fit": all_arrays_that_fit,
    "axes in a long order": lambda: (b'{"$array":["0",[' + b",".join([b"0"] * (FILL // 2)) + b"]]}", ONE),
    **{
        f"many of {item}": partial(many_of, item)
        for item in (
            "[]",
            "{}",
            "[[[[[[[]]]]]]]",
            '{"$tuple":[]}',
            '{"$tuple":[[]]}',
            "1e300",
            "9" * 4000,
            '{"a":1}',
            '"\\ud800"',
            '{"$array":["0"]}',
            '{"$tensor":[["0"],"float32",true]}',
            '{"$scalar":["0"]}',
        )
    },
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_no_message_costs_its_reader_more_than_its_bytes_may(bomb):
    """Processor time of this thread, generous for a busy machine: reading is linear; memory: what is read, and no array twice."""
    text, blob = BOMBS[bomb]()
    started = time.thread_time()
    made = None
    with contextlib.suppress(protocol.WireError):
        made = protocol.unpack(protocol.Body(b'{"a":' + text + b"}", blob))
    assert time.thread_time() - started < 8
    held = [part for part in (made or {}).get("a", ()) if isinstance(part, np.ndarray)]
    assert sum(array.nbytes for array in held) <= len(blob)


def test_many_arrays_of_several_types():
    sent = [
        np.arange(3.0),
        np.float64(7),
        np.arange(4).reshape(2, 2).T,
        np.zeros((0, 2)),
        np.array([True]),
        np.float32([0.5]),
    ]
    came = through(sent)
    assert [(item.dtype, item.shape, item.tolist()) for item in came] == [
        (item.dtype, item.shape, item.tolist()) for item in sent
    ]

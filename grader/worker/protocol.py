"""Messages between the judge and a worker: length-prefixed JSON and safetensors, never pickle.

A message is a dict with string keys. Its values are None, bool, int, float, str, tuple, list, dict,
NumPy arrays and scalars and `Tensor`; every type comes back as exactly itself. An `Observation` or a `Failure`
comes back as what `observation_from_message` or `failure_from_message` reads. In the JSON, what JSON lacks is
an object of one key, which begins with '$' and names the type.
Bytes on the wire: magic (4), nonce (16), length of the JSON (4), length of the arrays (8), then both.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load, save

from .operations import MAX_CALLS
from .values import (
    MAX_DEPTH,
    MAX_ELEMENTS,
    MAX_ITEMS,
    MAX_TEXT,
    ROLES,
    Allocation,
    Failure,
    Observation,
    Part,
    Tensor,
    Variable,
    dtype_name,
)

PREFIX = struct.Struct(">4s16sIQ")
MAGIC = b"atn2"
NO_NONCE = bytes(16)
MAX_JSON_BYTES = 4_000_000  # a notebook's code, each character written as an escape
MAX_ARRAY_BYTES = 32_000_000  # twenty of the largest arrays; the course's largest message has less than one
MAX_ARRAYS = 10_000
MAX_AXES = 64  # of one array, as NumPy has it
MAX_HEADER_BYTES = 1_000_000  # of the arrays' names and shapes, whose reading takes fifty times their memory
_HEADER = struct.Struct("<Q")  # its length, with which safetensors begin
MAX_NESTING = 24
_PLAIN = frozenset({type(None), bool, int, float, str})  # what JSON has
_CALL = re.compile(r"[\w.]+( \d{1,15}){0,2}", re.ASCII)  # see worker/watch.py
_to_json = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode  # what is encoded has been gone through
PART_KINDS = ("ndarray", "tensor", "number", "bool", "none", "text", "sequence", "other")
FAILURE_TEXTS = ("kind", "type", "message", "line", "function")
FAILURE_KINDS = ("exception", "call", "no function", "not_started", "contract", "timeout", "memory", "died", "invalid")


class WireError(ValueError):
    """A message that is malformed, too large, or of a type that does not travel."""


def connect(descriptor: str) -> socket.socket:
    """The channel that a parent hands over: by the number of its descriptor, on Windows as bytes, once the process is there."""
    if descriptor != "share":
        return socket.socket(fileno=int(descriptor))
    size = int.from_bytes(sys.stdin.buffer.read(4), "big")
    return socket.fromshare(sys.stdin.buffer.read(size))  # type: ignore[attr-defined]


class Body(NamedTuple):
    """A message ready to be framed: its JSON and its arrays."""

    text: bytes
    blob: bytes


def body(message: dict[str, Any]) -> Body:
    """A message's bytes but for the frame. Raises WireError for what cannot travel."""
    arrays: dict[str, np.ndarray] = {}
    try:
        text = _encode(message, arrays, 0)
        if len(arrays) > MAX_ARRAYS:
            raise WireError(f"{len(arrays)} arrays and numbers are too many for a message")
        encoded = Body(_to_json(text).encode("ascii"), save(arrays) if arrays else b"")
    except WireError:
        raise
    except Exception as error:
        raise WireError(f"this message cannot be sent: {type(error).__name__}: {error}") from error
    if len(encoded.text) > MAX_JSON_BYTES or len(encoded.blob) > MAX_ARRAY_BYTES:
        raise WireError(f"a message of {len(encoded.text) + len(encoded.blob)} bytes is too large")
    return encoded


def frame(encoded: Body, nonce: bytes = NO_NONCE) -> bytes:
    """What is sent. nonce: 16 bytes of the sender's, by which a reply names its question."""
    return PREFIX.pack(MAGIC, nonce, len(encoded.text), len(encoded.blob)) + encoded.text + encoded.blob


def receive(read: Callable[[int], bytes]) -> tuple[dict[str, Any], bytes]:
    """Reads one message and its nonce; read(n) returns at most n bytes, and b"" at the end of the stream.

    Raises: EOFError where the stream ends, WireError for anything that is not a message.
    """
    encoded, nonce = receive_body(read)
    return unpack(encoded), nonce


def receive_body(read: Callable[[int], bytes]) -> tuple[Body, bytes]:
    """As `receive`, but the message is still to be unpacked."""
    magic, nonce, text_bytes, blob_bytes = PREFIX.unpack(_read_exactly(read, PREFIX.size))
    if magic != MAGIC or text_bytes > MAX_JSON_BYTES or blob_bytes > MAX_ARRAY_BYTES:
        raise WireError("these bytes are not a message")
    return Body(_read_exactly(read, text_bytes), _read_exactly(read, blob_bytes)), nonce


def _read_exactly(read: Callable[[int], bytes], count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = read(min(count - len(data), 1 << 20))
        if not piece:
            raise EOFError("the stream ended within a message")
        data += piece
    return bytes(data)


def unpack(encoded: Body) -> dict[str, Any]:
    """The message of a body. Raises WireError for anything malformed."""
    try:
        if encoded.blob and _HEADER.unpack_from(encoded.blob)[0] > MAX_HEADER_BYTES:
            raise WireError("too many arrays")
        arrays = load(encoded.blob) if encoded.blob else {}
        message = json.loads(encoded.text, object_hook=lambda node: _decode(node, arrays))
    except WireError:
        raise
    except (Exception, RecursionError) as error:  # the parsers raise many types; none may pass
        raise WireError(f"this message cannot be read: {type(error).__name__}") from error
    if type(message) is not dict:
        raise WireError("a message is a dict")
    return message


def _encode(value: Any, arrays: dict[str, np.ndarray], depth: int) -> Any:
    """JSON for a value: what JSON has as itself, all else as an object of one key, '$' and its type."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if depth > MAX_NESTING:
        raise WireError(f"nested more than {MAX_NESTING} deep")
    if kind is list or kind is tuple:
        items = [_encode(item, arrays, depth + 1) for item in value]
        return items if kind is list else {"$tuple": items}
    if isinstance(value, Mapping):
        if any(type(key) is not str or key[:1] == "$" for key in value):
            raise WireError("the keys of a dict are strings that do not begin with '$'")
        return {key: _encode(item, arrays, depth + 1) for key, item in value.items()}
    if kind is Observation or kind is Failure:
        return _encode(to_message(value), arrays, depth)
    if isinstance(value, np.ndarray):
        return {"$array": _pack(value, arrays)}
    if isinstance(value, np.generic):
        return {"$scalar": _pack(np.asarray(value), arrays)}
    if isinstance(value, Tensor):
        return {"$tensor": [_pack(value.array, arrays), value.dtype, value.requires_grad]}
    raise WireError(f"a {kind.__name__} cannot be sent")


def _pack(array: np.ndarray, arrays: dict[str, np.ndarray]) -> list[Any]:
    """Adds an array to a message's; returns its name there and, where it is not C's, the order of its axes in memory."""
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise WireError(f"an array of {array.dtype} cannot be sent")
    axes = list(range(array.ndim))
    if not array.flags.c_contiguous:
        axes.sort(key=lambda axis: -abs(array.strides[axis]))
    name = str(len(arrays))
    arrays[name] = np.asarray(np.asarray(array).transpose(axes), array.dtype.newbyteorder("="), order="C")
    return [name] if axes == list(range(array.ndim)) else [name, axes]


def _unpack(reference: Any, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The array that a reference from _pack() names. It is taken once: what is taken out is no more than came."""
    name, *order = reference
    array = arrays.pop(name)
    if array.dtype.kind not in "biuf":
        raise WireError(f"an array of {array.dtype}")
    if max(array.size, *array.shape, 0) > MAX_ELEMENTS:
        raise WireError("too many numbers")
    if not order:
        return array
    if sorted(order[0]) != list(range(array.ndim)):
        raise WireError(f"axes in the order {str(order[0])[:100]}")
    return array.transpose(np.argsort(order[0]))


def _decode(node: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """What an object of the JSON stands for; those inside it have been decoded."""
    if len(node) != 1:
        return node
    ((kind, content),) = node.items()
    if kind[:1] != "$":
        return node
    if kind == "$tuple" and type(content) is list:
        return tuple(content)
    if kind == "$array":
        return _unpack(content, arrays)
    if kind == "$scalar":
        return _unpack(content, arrays)[()]
    if kind == "$tensor":
        reference, dtype, requires_grad = content
        return Tensor(_unpack(reference, arrays), dtype, requires_grad is True)
    raise WireError(f"an unknown kind of value: {kind[:100]!r}")


def to_message(value: Any) -> Any:
    """An observation, a failure or what is in one as a message's value: a dataclass as a dict of its fields, all else in lists.

    Texts are cut to what is taken.
    """
    if isinstance(value, str):
        return value[:MAX_TEXT]
    if type(value) in _PLAIN or isinstance(value, np.ndarray):
        return value
    if isinstance(value, (tuple, dict)):
        return [to_message(item) for item in (value.items() if isinstance(value, dict) else value)]
    return {name: to_message(getattr(value, name)) for name in _fields(value.__class__)}


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    """Those that a worker fills."""
    return tuple(field.name for field in fields(kind) if field.name not in ("modified", "digest", "lesson"))


def observation_from_message(message: Any) -> Observation:
    """The observation that a worker sent. Raises WireError for whatever is not exactly one."""
    try:
        return Observation(
            parts={_text(name): _part(part, 0) for name, part in _list(message["parts"], MAX_ITEMS)},
            failure=None if message["failure"] is None else failure_from_message(message["failure"]),
            after={_text(name): _part(part, 0) for name, part in _list(message["after"], MAX_ITEMS)},
            calls=tuple(map(_call, _list(message["calls"], MAX_CALLS + 2))),  # and how many there were, and REBOUND
            printed=_text(message["printed"]),
            warned=tuple(map(_text, _list(message["warned"], 5))),
            largest=None if message["largest"] is None else _allocation(*message["largest"]),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise WireError(f"not an observation: {error}") from error


def failure_from_message(message: Any) -> Failure:
    """The failure that a worker sent. Raises WireError for whatever is not exactly one."""
    try:
        number = message["line_number"]
        if message["kind"] not in FAILURE_KINDS or type(number) is not int or abs(number) > 10**9:
            raise WireError("not a failure")
        shapes = tuple(_variable(*row) for row in _list(message["shapes"], 32))
        bases = tuple(map(_text, _list(message["bases"], 32)))
        texts: dict[str, Any] = {key: _text(message[key]) for key in FAILURE_TEXTS}
        return Failure(**texts, line_number=number, shapes=shapes, bases=bases)
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"not a failure: {error}") from error


def _allocation(shape: Any, elements: Any, line: Any) -> Allocation:
    return Allocation(_sizes(shape), _sizes([elements])[0], _text(line))


def _sizes(value: Any) -> tuple[int, ...]:
    sizes = tuple(_list(value, MAX_AXES))
    if not all(type(size) is int and 0 <= size < 10**12 for size in sizes):
        raise WireError("not sizes")
    return sizes


def _variable(name: Any, text: Any, kind: Any, shape: Any, value: Any) -> Variable:
    if kind not in ("", "array", "float") or type(value) is not float:
        raise WireError("not a variable")
    return Variable(_text(name), _text(text), kind, _sizes(shape), value)


def _part(message: Any, depth: int) -> Part:
    kind, array, dtype = message["kind"], message["array"], _text(message["dtype"])
    if kind not in PART_KINDS or depth > MAX_DEPTH + 1:
        raise WireError("not a part")
    if (kind in ("ndarray", "tensor", "number", "bool")) != (type(array) is np.ndarray):
        raise WireError(f"a part of kind {kind} with {type(array).__name__} as array")
    if array is not None and not _consistent(kind, array, dtype):
        raise WireError(f"a part of kind {kind} and type {dtype} with an array of {array.dtype}")
    items = tuple(_part(item, depth + 1) for item in _list(message["items"], MAX_ITEMS))
    if items and kind != "sequence":
        raise WireError(f"a part of kind {kind} with items")
    role, unread = message["role"], message["unread"]
    if role not in ROLES or type(unread) is not bool:
        raise WireError("a part of an unknown role")
    return Part(kind, array, dtype, items, _text(message["text"]), role, _text(message["of"]), unread)


def _consistent(kind: str, array: np.ndarray, dtype: str) -> bool:
    """Whether the array is of the type that the part claims; bfloat16 travels as float32."""
    if array.size > MAX_ELEMENTS or (kind in ("number", "bool") and array.ndim):
        return False
    array_dtype = "float32" if kind == "tensor" and dtype == "bfloat16" else dtype
    return dtype_name(array.dtype) == array_dtype and (kind != "bool" or dtype == "bool")


def _call(value: Any) -> str:
    if not _CALL.fullmatch(_text(value)):
        raise WireError("not the name of an operation")
    return value


def _list(value: Any, limit: int) -> list[Any]:
    if type(value) is not list or len(value) > limit:
        raise WireError(f"a list of at most {limit} was expected")
    return value


def _text(value: Any) -> str:
    if type(value) is not str or len(value) > MAX_TEXT:
        raise WireError(f"a text of at most {MAX_TEXT} characters was expected")
    # Half a surrogate pair would break every report.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()

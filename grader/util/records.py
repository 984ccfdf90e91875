"""Dataclasses and named tuples as JSON has them, and back: what comes back is of the types that their fields name, or an error.

A dataclass is an object with its fields, a named tuple a list; a field with NOT_STORED as its metadata is left out, and has its default.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

NOT_STORED = {"stored": False}


def encoded(value: Any) -> Any:
    """A record, or a collection with records in it, as JSON has what is most like it. Exact: decoded() makes the same of it."""
    if isinstance(value, np.ndarray):
        data = base64.b64encode(value.tobytes()).decode()
        return {"dtype": value.dtype.str, "shape": list(value.shape), "data": data}
    if is_dataclass(value):
        pairs = ((name, hint, getattr(value, name)) for name, hint in _types(value.__class__).items())
        return {name: encoded(np.asarray(content) if hint is np.ndarray else content) for name, hint, content in pairs}
    if isinstance(value, Mapping):
        return {key: encoded(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, frozenset)):
        return [encoded(item) for item in value]
    if isinstance(value, (float, np.floating)):
        value = float(value)
        return value if math.isfinite(value) else repr(value)  # JSON has no NaN
    return value


def decoded(kind: Any, data: Any) -> Any:
    """The value of that type that encoded() made this of. Raises: TypeError, ValueError, LookupError where it made none of it."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is np.ndarray:
        dtype = np.dtype(decoded(str, data["dtype"]))
        if dtype.kind not in "biufcSU":
            raise ValueError(f"an array of {dtype} is no table")
        raw = base64.b64decode(data["data"], validate=True)
        return np.frombuffer(bytearray(raw), dtype).reshape([int(size) for size in data["shape"]])
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        items = data if is_dataclass(kind) else dict(zip(_types(kind), data, strict=True))
        return kind(**{name: decoded(hint, items[name]) for name, hint in _types(kind).items()})  # type: ignore[operator]
    if NoneType in inner:
        return None if data is None else decoded(inner[0], data)
    if origin in (tuple, frozenset):
        hints = inner if origin is tuple and inner[-1] is not Ellipsis else inner[:1] * len(data)
        return origin(decoded(hint, item) for hint, item in zip(hints, data, strict=True))
    if origin in (Mapping, dict):
        return {decoded(inner[0], key): decoded(inner[1], item) for key, item in data.items()}
    if kind is float and data in ("nan", "inf", "-inf"):
        return float(data)
    if origin is Literal:
        valid = data in inner
    else:
        valid = isinstance(data, (int, float) if kind is float else kind) and isinstance(data, bool) == (kind is bool)
    if not valid:
        raise TypeError(f"not {kind}: {data!r}")
    return data


@cache
def _types(kind: Any) -> dict[str, Any]:
    """The fields of a record that are stored, with their types."""
    left_out = {field.name for field in (fields(kind) if is_dataclass(kind) else ()) if field.metadata == NOT_STORED}
    return {name: hint for name, hint in get_type_hints(kind).items() if name not in left_out}

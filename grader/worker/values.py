"""What travels between the judge and the learner's object: inputs, and what was observed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy import array, bool_, complexfloating, float64, matrix, ndarray, number

from .originals import BUILTINS, is_a, of_torch

__builtins__ = BUILTINS  # type: ignore[assignment]

MAX_ELEMENTS = 200_000  # of one array that comes back; the course's largest has about 30,000
_TOO_LARGE = f", more than the {MAX_ELEMENTS:,} numbers that are read"
MAX_ITEMS = 64  # of one tuple or list that comes back
MAX_DEPTH = 4
MAX_TEXT = 2_000  # characters of one text that comes back


_PLAIN = frozenset({type(None), bool, int, float, str, np.ndarray, np.float64, np.float32, np.int64, np.bool_})


@dataclass(frozen=True, eq=False)
class Tensor:
    """A torch tensor as data, so that a case can be drawn without importing torch.

    array holds the values (float32 for bfloat16, which NumPy lacks); dtype is torch's name for
    the type, None for the array's own; requires_grad asks for gradients in `call` and `module`.
    """

    array: np.ndarray
    dtype: str | None = None
    requires_grad: bool = False


# What a part is of the experiment: what the exercise returned, a gradient, a claim that holds or does not, or another quantity.
Role = Literal["returned", "gradient", "flag", "value"]
ROLES: tuple[str, ...] = Role.__args__  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class RawPart:
    """A raw value of a probe with what it is. role, of: as in `Part`."""

    value: Any
    role: Role
    of: str = ""


@dataclass(frozen=True, eq=False)
class Part:
    """One returned thing, described without trusting it.

    kind: 'ndarray', 'tensor', 'number', 'bool', 'none', 'text', 'sequence' or 'other'.
    array: the values (a copy) for ndarray, tensor, number and bool; bfloat16 comes as float32.
    dtype: the name of the original type ('float32', 'bfloat16', ...).
    items: the members of a tuple or list.
    text: the text itself, or for 'other' the type's name.
    unread: True for an array that is not read: it is too large, or holds no real numbers.
    role: what it is of the experiment, as the probe says; of: for a gradient its input's name, for what was returned which
          call it is of, '' for the first.
    """

    kind: str
    array: np.ndarray | None = None
    dtype: str = ""
    items: tuple[Part, ...] = ()
    text: str = ""
    role: Role = "value"
    of: str = ""
    unread: bool = False

    @property
    def shape(self) -> tuple[int, ...] | None:
        return None if self.array is None else self.array.shape


class Variable(NamedTuple):
    """A variable of the line that failed.

    text: what it is, in a few words. kind: 'array', 'float' or '' for anything else. shape: of an array; value: of a float.
    """

    name: str
    text: str
    kind: str = ""
    shape: tuple[int, ...] = ()
    value: float = 0.0


@dataclass(frozen=True)
class Failure:
    """Why an observation holds no values.

    kind: 'exception' (the learner's code raised), 'call' (the call itself failed, before a line of the learner's code ran:
    the parameters are others than the exercise's), 'no function' (the name stands for something that cannot be called),
    'not_started', 'contract' (a parameter or an attribute that the contract names is missing or misshapen; message says it in words),
    'timeout', 'memory', 'died' (the process ended), 'invalid' (what came back cannot be read).
    line, line_number: the learner's own line, where one is known; of 'not_started', the one that called what is not written.
    shapes: the variables that the line had.
    function: what that line belongs to, such as 'softmax_rows' or 'SelfAttention.forward'; '' at the top level of a cell.
    bases: the built-in exceptions that the exception is one of, itself included.
    lesson: of what is missing because that lesson's notebook was not handed in; '' otherwise.
    """

    kind: str
    type: str = ""
    message: str = ""
    line: str = ""
    line_number: int = 0
    shapes: tuple[Variable, ...] = ()
    bases: tuple[str, ...] = ()
    function: str = ""
    lesson: str = ""

    def is_a(self, exception: str) -> bool:
        """Whether `except` with that built-in exception would catch it."""
        return exception in (self.type, *self.bases)


class Allocation(NamedTuple):
    """A tensor that was made. elements: how many numbers the memory holds in which it lies; line: the learner's own that made it."""

    shape: tuple[int, ...]
    elements: int
    line: str = ""


class CallLog(list[str]):
    """What ran, in order.

    largest: of all tensors that were made the first of the largest ones, where sizes are looked at. max_elements: how many elements it has.
    operations: how many of torch's ran, where sizes are looked at; one that is made of others may count with them.
    """

    largest: Allocation | None = None
    max_elements = -1
    operations = 0


@dataclass(frozen=True, eq=False)
class Observation:
    """What one case showed of a candidate: named parts in the probe's order, or a failure.

    after: the inputs as they were left. calls: the watched operations that ran. largest: the largest tensor that they made, where
    sizes were looked at.
    modified: the inputs that were changed in place; grader/course/readings.py, which knows what they were, fills it.
    printed: the beginning of what was printed; warned: the warnings that the learner's code raised, a line each.
    digest: of the message by which it came from a worker: where it is the same, so is all else. b"" for one that did not come so.
    """

    parts: dict[str, Part] = field(default_factory=dict)
    failure: Failure | None = None
    after: dict[str, Part] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    printed: str = ""
    warned: tuple[str, ...] = ()
    digest: bytes = b""
    largest: Allocation | None = None


def is_tensor(value: Any) -> bool:
    """True for a torch tensor; never imports torch."""
    torch = of_torch()
    return torch is not None and is_a(value, torch.Tensor)


def leaves(pairs: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The values of these names; of a tuple what is in it, called a[0], a[1], …"""
    for name, value in pairs:
        if type(value) is tuple:
            yield from leaves((f"{name}[{i}]", item) for i, item in enumerate(value))
        else:
            yield name, value


def is_plain(value: Any) -> bool:
    """Whether describing the value runs only NumPy's and torch's code, so that nobody need watch it. What is nested is never plain."""
    kind = type(value)
    if kind in (tuple, list):
        return all(type(item) not in (tuple, list) and is_plain(item) for item in value[: MAX_ITEMS + 1])
    return kind in _PLAIN or is_tensor(value)


def describe(value: Any, depth: int = 0) -> Part:
    """Copies a returned value into a Part; never raises for a strange value."""
    try:
        return _describe(value, depth)
    except Exception as error:  # an object of the learner's may raise from any of its methods
        return Part("other", text=f"{type(value).__name__} (unreadable: {type(error).__name__})"[:MAX_TEXT])


def _describe(value: Any, depth: int) -> Part:
    if value is None:
        return Part("none")
    if isinstance(value, (bool, bool_)):
        return Part("bool", array(bool(value)), "bool")
    if isinstance(value, (int, float, number)) and not isinstance(value, (complex, complexfloating)):
        scalar = array(value)
        if scalar.dtype.kind in "iuf":
            return _describe_array(scalar, "number")
        if isinstance(value, int):
            return Part("other", text=f"integer of {len(str(value))} digits")
    if isinstance(value, (Fraction, Decimal)):
        return Part("number", array(float(value)), "float64")
    if is_tensor(value):
        return _describe_tensor(value)
    if isinstance(value, matrix):  # whose `*` is a product, and which always has two axes
        return Part("other", text="NumPy matrix (`np.matrix`)")
    if isinstance(value, ndarray):
        return _describe_array(value)
    if isinstance(value, str):
        return Part("text", text=str(value)[:MAX_TEXT])
    if isinstance(value, (tuple, list)):
        if depth >= MAX_DEPTH or len(value) > MAX_ITEMS:
            return Part("other", text=f"{type(value).__name__} of {len(value)} items")
        return Part("sequence", items=tuple(describe(item, depth + 1) for item in value), text=type(value).__name__)
    return Part("other", text=type(value).__name__[:MAX_TEXT])


@cache
def dtype_name(dtype: np.dtype) -> str:
    """NumPy puts the name together anew at each asking."""
    return dtype.name


def _describe_array(value: np.ndarray, part_kind: str = "ndarray") -> Part:
    kind = value.dtype.kind
    if kind not in "biuf":
        numbers = "complex numbers" if kind == "c" else value.dtype.name
        return Part("other", text=f"NumPy array of {numbers} with shape {value.shape}"[:MAX_TEXT], unread=True)
    dtype = dtype_name(value.dtype)
    if value.size > MAX_ELEMENTS:
        return Part("other", text=f"NumPy array of {dtype} with shape {value.shape}{_TOO_LARGE}", unread=True)
    copy = array(ndarray.__array__(value), subok=False, order="C")
    if copy.dtype.itemsize > 8:  # long double: no other machine need know it
        copy, dtype = copy.astype(float64), "float64"
    return Part(part_kind, copy, dtype)


def _describe_tensor(value: Any) -> Part:
    """Reads the tensor past its class's and the watch's own ways: they cost as much as an operator, and may be a learner's."""
    torch = of_torch()
    kind, shape = torch.get(value, "dtype"), tuple(torch.get(value, "shape"))
    dtype = str(kind).removeprefix("torch.")
    if torch.get(value, "device").type == "meta":
        return Part("other", text=f"tensor of {dtype} on the meta device with shape {shape}", unread=True)
    size = torch.numel(value)
    if torch.get(value, "layout") != torch.strided or kind.is_complex or size > MAX_ELEMENTS:
        text = f"tensor of {dtype} with shape {shape}{_TOO_LARGE if size > MAX_ELEMENTS else ''}"
        return Part("other", text=text, unread=True)
    return Part("tensor", torch.numbers(value), dtype)

"""Lesson 05, between arrays and tensors: cases and mistakes of `linear_from_numpy` and `as_numpy`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from grader.lessons.switch import mistakes
from grader.model import Case, Mistake, Tensor


def linear_with(*bugs: str) -> Any:
    """The reference with named bugs switched on; with none it is right."""

    def linear_from_numpy(w):
        d_in, d_out = w.shape
        layer = nn.Linear(d_in, d_out, bias="NT26" in bugs)
        if "NT5" in bugs:
            return layer
        stored = w.reshape(d_out, d_in) if "NT1" in bugs else w if "PJ1" in bugs else w.T
        dtype = stored.dtype if "NT4" in bugs else np.float32
        stored = np.asarray(stored, dtype) if "NT2" in bugs else np.array(stored, dtype)
        layer.weight = nn.Parameter(torch.from_numpy(stored), requires_grad="NT3" not in bugs)
        return layer

    return linear_from_numpy


def _copied_untransposed(w):
    """PJ1 as a copy in place: it raises where w is not square."""
    layer = nn.Linear(*w.shape, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(w))
    return layer


def _viewed_untransposed(w):
    """NT1 by `view`, which raises where the numbers are not in row order."""
    layer = nn.Linear(*w.shape, bias=False)
    layer.weight = nn.Parameter(torch.tensor(w).float().view(layer.weight.shape))
    return layer


def _assigned(made):
    """NT28: what `made` makes of wᵀ is assigned to the weight as it is."""

    def linear_from_numpy(w):
        layer = nn.Linear(*w.shape, bias=False)
        layer.weight = made(w.T)
        return layer

    return linear_from_numpy


ASSIGNED = (lambda array: torch.tensor(array).float(), torch.tensor, np.array)


def _written_in_place(at):
    """NT29: the weight is written while autograd watches."""

    def linear_from_numpy(w):
        layer = nn.Linear(*w.shape, bias=False)
        if at == "copy":
            layer.weight.copy_(torch.tensor(w.T))
        else:
            layer.weight[:] = torch.tensor(w.T)
        return layer

    return linear_from_numpy


def _linear_case(key: str, title: str, w: np.ndarray, x: np.ndarray, view: str = "plain") -> Case:
    return Case(key, title, (w, x), probe="lesson_05.linear", options={"view": view}, names=("w", "x for the layer"))


def linear_cases(rng: np.random.Generator) -> Iterator[Case]:
    def draw(title: str, d_in: int, d_out: int, n: int, dtype: str = "float64", view: str = "plain") -> Case:
        w = rng.normal(size=(d_in, d_out)).astype(dtype)
        return _linear_case(title, title, w, rng.normal(size=(n, d_in)), view)

    yield _linear_case(
        "small", "two inputs, three outputs, whole numbers",
        np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([[1.0, 0], [0, 1], [1, 1], [0, 0]]),
    )  # fmt: skip
    yield _linear_case(
        "square", "a square w, which no shape protects",
        np.array([[1.0, 2], [3, 4]]), np.array([[1.0, 0], [0, 1], [1, -1]]),
    )  # fmt: skip
    yield _linear_case(
        "integers", "a w of integers",
        np.array([[2, -1], [0, 3], [5, 1]]), np.array([[1.0, 0, 0], [0, 1, 1], [2, 0, -1], [0, 0, 0]]),
    )  # fmt: skip
    yield draw("a float32 w", 4, 3, 5, "float32")
    yield draw("a square float32 w", 3, 3, 2, "float32")
    yield draw("a float32 w in Fortran order", 5, 2, 3, "float32", "fortran")
    yield draw("a float32 w of one row", 1, 4, 2, "float32")
    yield draw("every second row and column of a larger float32 array", 2, 5, 3, "float32", "strided")
    yield draw("a square w in Fortran order", 4, 4, 3, view="fortran")
    yield draw("every second row and column of a larger array", 6, 4, 2, view="strided")
    yield draw("one output", 5, 1, 3)
    yield draw("the shape of the first float32 w, new numbers", 4, 3, 5, "float32")


LINEAR_MISTAKES = (
    *mistakes(linear_with, "PJ1", "NT1", "NT26", "NT2", "NT3", "NT4", "NT5"),
    Mistake("PJ1", _copied_untransposed),
    Mistake("NT1", _viewed_untransposed),
    *(Mistake("NT28", _assigned(made)) for made in ASSIGNED),
    *(Mistake("NT29", _written_in_place(at)) for at in ("copy", "slice")),
)


def array_with(*bugs: str) -> Any:
    def as_numpy(tensor):
        if "NT15" in bugs:
            tensor.requires_grad_(False)
        elif "NT10" not in bugs:
            tensor = tensor.detach()
        if "NT13" not in bugs:
            tensor = tensor.cpu()
        if "NT12" in bugs or ("NT11" not in bugs and tensor.dtype == torch.bfloat16):
            tensor = tensor.float()
        if "NT14" in bugs:
            return tensor
        return np.array(tensor.tolist()) if "NT16" in bugs else tensor.numpy()

    return as_numpy


def _all_float64(tensor):
    """NT12 with the wider type."""
    return tensor.detach().cpu().double().numpy()


def _floats_float32(tensor):
    """NT12 where integers and booleans are spared."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


def _detached(tensor):
    """NT14 with no thought of bfloat16 yet."""
    return tensor.detach().cpu()


def _untouched(tensor):
    """NT14 with nothing done at all."""
    return tensor


def _at_once(tensor):
    """NT10 as it is printed: nothing stands between the tensor and NumPy."""
    return tensor.numpy()


def _array_case(
    key: str, title: str, array: np.ndarray, dtype: str, *, grad: bool = False, view: str = "plain", **fields: Any
) -> Case:
    allowed = ("float32", "float64") if dtype == "bfloat16" else (dtype,)
    return Case(
        key, title, (Tensor(np.array(array), dtype, grad),), probe="lesson_05.to_numpy", options={"view": view},
        names=("tensor",), dtype=allowed, **fields,
    )  # fmt: skip


def array_cases(rng: np.random.Generator) -> Iterator[Case]:
    def draw(key: str, dtype: str, *shape: int, **fields: Any) -> Case:
        return _array_case(key, key, rng.normal(size=shape), dtype, **fields)

    whole = np.array([[1.0, 2, 3], [4, 5, 6]])
    yield _array_case("small", "a float32 tensor", whole, "float32")
    yield _array_case("trained", "a float32 tensor that requires grad", whole + 0.5, "float32", grad=True)
    yield _array_case("bfloat16", "a bfloat16 tensor", whole / 4, "bfloat16")
    yield draw("a float64 tensor that requires grad", "float64", 3, 2, grad=True)
    yield draw("a tensor computed from one that requires grad", "float32", 2, 4, grad=True, view="computed")
    yield draw("a parameter", "float32", 4, 3, view="parameter")
    yield draw("a bfloat16 tensor that requires grad", "bfloat16", 3, 4, grad=True)
    yield draw("a transposed bfloat16 tensor", "bfloat16", 2, 3, 4, view="transposed")
    yield draw("a float16 tensor", "float16", 3, 5)
    yield draw("a transposed float64 tensor", "float64", 3, 2, 4, view="transposed")
    yield draw("every second column of a float32 tensor that requires grad", "float32", 2, 6, grad=True, view="strided")
    yield from _whole_cases(rng)
    for dtype in ("float32", "bfloat16", "int64", "bool"):
        value = np.array(1.25 if "float" in dtype else 1)
        yield _array_case(f"0-d {dtype}", f"a single {dtype}, shape ()", value, dtype)
    yield _array_case("0-d trained", "a loss: shape (), requires grad", np.array(0.1), "float32", grad=True)
    for dtype, shape in (("float32", (0, 3)), ("bfloat16", (2, 0)), ("int32", (0,))):
        yield _array_case(f"empty {dtype}", f"an empty {dtype} tensor of shape {shape}", np.zeros(shape), dtype)
    yield draw("the first shape again, new numbers", "float32", 2, 3)
    yield from _elsewhere_cases(rng)


def _whole_cases(rng: np.random.Generator) -> Iterator[Case]:
    for dtype, low in (("int64", -1000), ("int32", -1000), ("int16", -1000), ("int8", -100), ("uint8", 0)):
        values = rng.integers(low, 100, size=(2, 4))
        yield _array_case(dtype, f"{'a' if dtype == 'uint8' else 'an'} {dtype} tensor", values, dtype)
    large = np.array([[2**24 + 1, -(2**31) + 1]])
    yield _array_case("large integers", "integers that float32 cannot hold", large, "int64")
    yield _array_case("bool", "a mask: a bool tensor", np.tri(3, 4, dtype=bool), "bool")


def _elsewhere_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Last, because a learner without a GPU cannot try them."""
    for dtype, grad in (("float32", True), ("float64", False), ("bfloat16", True), ("int64", False)):
        title = f"a stand-in for {'an' if dtype[0] == 'i' else 'a'} {dtype} tensor on a GPU"
        values = rng.integers(-9, 9, size=(2, 3)) if dtype == "int64" else rng.normal(size=(2, 3))
        yield _array_case(f"gpu {dtype}", title, values, dtype, grad=grad, view="elsewhere", stage="extremes")


ARRAY_MISTAKES = (
    *mistakes(array_with, "NT10", "NT11", "NT12", "NT13", "NT14", "NT15", "NT16"),
    Mistake("NT12", _all_float64),
    Mistake("NT12", _floats_float32),
    Mistake("NT14", _detached),
    Mistake("NT14", _untouched),
    Mistake("NT10", _at_once),
)

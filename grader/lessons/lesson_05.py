"""Lesson 05: from NumPy to PyTorch. The exercises with their cases, mistakes and hints.

The texts of the mistakes that only this lesson knows are in lesson_05_texts.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from grader.lessons.lesson_05_texts import TEXTS
from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, Mistake, Property, Tensor

# --- linear_from_numpy -------------------------------------------------------------------------------


def _linear_from_numpy(*bugs: str) -> Any:
    """The reference with named bugs switched on; with none it is right."""

    def linear_from_numpy(w):
        d_in, d_out = w.shape
        layer = nn.Linear(d_in, d_out, bias="PJ2" in bugs)
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


def _linear_case(key: str, title: str, w: np.ndarray, x: np.ndarray, view: str = "plain") -> Case:
    return Case(key, title, (w, x), probe="lesson_05.linear", options={"view": view}, names=("w", "x"))


def linear_cases(rng: np.random.Generator) -> Iterator[Case]:
    def draw(title: str, d_in: int, d_out: int, n: int, dtype: str = "float64", view: str = "plain") -> Case:
        w = rng.normal(size=(d_in, d_out)).astype(dtype)
        return _linear_case(title, title, w, rng.normal(size=(n, d_in)), view)

    yield _linear_case(
        "small", "two inputs, three outputs, whole numbers",
        np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([[1.0, 0], [0, 1], [1, 1], [0, 0]]),
    )  # fmt: skip
    yield _linear_case(
        "square", "a square w, which no shape protects", np.array([[1.0, 2], [3, 4]]), np.array([[1.0, 0], [0, 1], [1, -1]])
    )
    yield _linear_case(
        "integers", "a w of integers", np.array([[2, -1], [0, 3], [5, 1]]), np.array([[1.0, 0, 0], [0, 1, 1], [2, 0, -1], [0, 0, 0]])
    )
    yield draw("a float32 w", 4, 3, 5, "float32")
    yield draw("a square float32 w", 3, 3, 2, "float32")
    yield draw("a float32 w in Fortran order", 5, 2, 3, "float32", "fortran")
    yield draw("a float32 w of one row", 1, 4, 2, "float32")
    yield draw("every second row and column of a larger float32 array", 2, 5, 3, "float32", "strided")
    yield draw("a square w in Fortran order", 4, 4, 3, view="fortran")
    yield draw("every second row and column of a larger array", 6, 4, 2, view="strided")
    yield draw("one output", 5, 1, 3)
    yield draw("seen-again", 4, 3, 5, "float32")


# --- attention_torch ---------------------------------------------------------------------------------


def _softmax(scores: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    if "SM1" in bugs:
        return scores.softmax(-2)
    if "SM2" in bugs:  # what F.softmax does where no dim is given
        return scores.softmax(0 if scores.ndim in (1, 3) else 1)
    if "SM5" in bugs:
        e = scores.exp()
    elif "SM6" in bugs or ("SM3" in bugs and "row maximum" not in bugs):
        e = (scores - scores.max()).exp()
    else:
        e = (scores - scores.amax(-1, keepdim=True)).exp()
    if "SM3" in bugs:
        return e / e.sum()
    return e / e.sum(-1, keepdim="SM4" not in bugs)


def _attend(q, k, v, bugs: tuple[str, ...], d_model: int = 0) -> Any:
    """The maths that attention_torch and SelfAttention share, with named bugs switched on."""
    if "SD8" in bugs:
        q, k = k, q
    widths = {"SD1": 1, "SD2": q.shape[-1] ** 2, "SD3": d_model, "SD5": 1 / q.shape[-1], "NT6": v.shape[-1]}
    width = next((widths[bug] for bug in bugs if bug in widths), q.shape[-1])
    late = "SD6" in bugs
    scores = q @ k.transpose(-2, -1) / (1 if late else math.sqrt(width))
    weights = _softmax(scores, bugs) / (math.sqrt(width) if late else 1)
    if "BW3" in bugs:
        weights = weights.detach()
    output = weights @ v
    if "NT9" in bugs:
        output, weights = output.float(), weights.float()
    if "NT7" in bugs:
        weights = weights.detach()
    if "NT23" in bugs:
        return output
    return (weights, output) if "NT8" in bugs else (output, weights)


def _attention_torch(*bugs: str) -> Any:
    def attention_torch(q, k, v):
        return _attend(q, k, v, bugs)

    return attention_torch


def _through_numpy(q, k, v):
    """BW3 as a trip through NumPy: right numbers, and no gradient for anything."""
    with torch.no_grad():
        return _attend(q, k, v, ())


def _output_detached(q, k, v):
    """BW3 where only the output's copy of the weights is cut from the graph."""
    _, weights = _attend(q, k, v, ())
    return weights.detach() @ v, weights


def _qkv(rng: np.random.Generator, lead: tuple[int, ...], t_q: int, t_k: int, d_k: int, d_v: int) -> list[np.ndarray]:
    return [rng.normal(size=(*lead, *shape)) for shape in ((t_q, d_k), (t_k, d_k), (t_k, d_v))]


def _tensors(arrays: list[np.ndarray], grad: str = "qkv") -> tuple[Tensor, ...]:
    return tuple(Tensor(array, requires_grad=name in grad) for name, array in zip("qkv", arrays, strict=True))


def _attention_case(key: str, title: str, arrays: list[np.ndarray], grad: str = "qkv", **fields: Any) -> Case:
    return Case(key, title, _tensors(arrays, grad), dtype=(arrays[0].dtype.name,), **fields)


SMALL = [
    np.array([[1.0, 0, 2, 0], [0, 1, 0, -1]]),
    np.array([[1.0, 1, 0, 0], [0, 2, 1, 1], [2, 0, 1, 0]]),
    np.array([[10.0], [0], [-5]]),
]  # d_k = 4, so that the scale is 2


def attention_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield _attention_case("small", "two queries, three keys, whole numbers", SMALL, grad="")
    yield _attention_case("small gradients", "the same, with gradients", SMALL)
    yield _attention_case("square", "as many queries as keys", _qkv(rng, (), 3, 3, 4, 2))
    batch = _qkv(rng, (2,), 3, 5, 4, 6)
    yield _attention_case("batch", "a batch of two", batch)
    yield _attention_case("square batch", "a batch of three, as many queries as keys", _qkv(rng, (3,), 4, 4, 5, 2))
    yield _attention_case("heads", "two leading dimensions", _qkv(rng, (2, 3), 5, 4, 6, 7))
    alike = _qkv(rng, (3, 2), 4, 4, 5, 6)
    yield _attention_case("square heads", "two leading dimensions, as many queries as keys", alike, grad="")
    single = [array.astype(np.float32) for array in _qkv(rng, (2,), 4, 3, 6, 5)]
    yield _attention_case("float32", "float32 in, float32 out", single)
    yield _attention_case("seen-again", "the batch's shapes, new numbers", _qkv(rng, (2,), 3, 5, 4, 6))
    yield from _attention_companions(rng, batch)
    yield _attention_case("keys only", "only k requires grad", _qkv(rng, (2,), 2, 4, 3, 5), grad="k")
    yield _attention_case("one item", "a batch of one, one query", _qkv(rng, (1,), 1, 4, 3, 2), grad="")
    yield _attention_case("one key", "a single key", _qkv(rng, (2,), 3, 1, 5, 4), grad="")
    turned = [np.asfortranarray(array) for array in _qkv(rng, (2,), 4, 3, 5, 6)]
    yield _attention_case("strides", "tensors that are not contiguous in memory", turned)
    yield _attention_case("three leading", "three leading dimensions", _qkv(rng, (2, 1, 3), 2, 4, 3, 5), grad="")
    yield from _extremes()


def _attention_companions(rng: np.random.Generator, batch: list[np.ndarray]) -> Iterator[Case]:
    """The batch changed in one respect, for the properties that need a pair of cases."""
    q, k, v = batch
    order = [3, 0, 4, 2, 1]
    reordered = [q, k[:, order], v[:, order]]
    yield _attention_case("permuted", "the batch, keys and values reordered alike", reordered, grad="")
    other = [array.copy() for array in batch]
    for array in other:
        array[0] = rng.normal(size=array[0].shape)
    yield _attention_case("item changed", "the batch, its first item replaced", other, grad="")
    identity = np.broadcast_to(np.eye(5), (2, 5, 5)).copy()
    yield _attention_case("identity", "the batch, v = identity", [q, k, identity], grad="")


def _extremes() -> Iterator[Case]:
    """Scores of up to ±10,000 that every stable order of operations gets right, in float32 too.

    Whole numbers and d_k = 4 keep the scores exact; each row is saturated or differs by whole halves.
    """
    q = np.array([[100.0, 0, 0, 0], [-100, 0, 0, 0]])
    k = np.array([[100.0, 0, 0, 0], [99, 0, 0, 0], [100, 0, 0, 0]])
    v = np.array([[1.0, 2, 3, 4, 5], [5, 4, 3, 2, 1], [0, 1, 0, -1, 0]])
    room = {"stage": "extremes", "rtol": 2e-3, "atol": 2e-3}
    yield _attention_case("large", "scores of ±5000 after scaling, a tie among them", [q, k, v], **room)
    small_parts = np.array([[0.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 2]])
    near = np.array([[100.0, 0, 0, 0]] * 3) + small_parts
    ask = q + np.array([[0.0, 1, 2, 1], [0, -1, 1, 1]])
    large32 = [array.astype(np.float32) for array in (ask, near, v)]
    yield _attention_case("large float32", "scores near ±5000 that differ little, float32", large32, grad="", **room)
    one_sided = np.array([[0.0, 0, 0, 0], [-100, 0, 0, 0], [-50, 0, 0, 0]])
    yield _attention_case("one-sided", "scores from −5000 to 5000", [q, one_sided, v], grad="", **room)
    heads = [np.stack([array, -array]) for array in (q, k)] + [np.stack([v, v + 1])]
    yield _attention_case("large batch", "a batch with scores of ±5000", heads, grad="", **room)


def rows_sum_to_one(case: Case, parts: dict[str, np.ndarray]) -> str | None:
    """None where each query's weights sum to 1."""
    sums = parts["weights"].sum(axis=-1)
    if np.allclose(sums, 1, atol=1e-4):
        return None
    worst = sums.flat[np.abs(sums - 1).argmax()]
    return f"A row of weights sums to {worst:.4g}."


def order_of_keys(case: Case, parts: dict[str, np.ndarray], other: Case, changed: dict[str, np.ndarray]) -> str | None:
    """None where reordering keys and values alike left the output as it was."""
    gap = np.abs(parts["output"] - changed["output"]).max()
    return None if gap < 1e-4 else f"Reordering keys and values alike changed the output by up to {gap:.4g}."


def items_apart(case: Case, parts: dict[str, np.ndarray], other: Case, changed: dict[str, np.ndarray]) -> str | None:
    """None where replacing item 0 of a batch left item 1 as it was."""
    gap = np.abs(parts["output"][1] - changed["output"][1]).max()
    return None if gap < 1e-4 else f"Replacing item 0 of the batch changed the output of item 1 by up to {gap:.4g}."


def identity_recovers(case: Case, parts: dict[str, np.ndarray]) -> str | None:
    """None where V = identity gives the weights themselves as output."""
    gap = np.abs(parts["output"] - parts["weights"]).max()
    return None if gap < 1e-4 else f"With v = identity the output differs from the weights by up to {gap:.4g}."


# --- SelfAttention -----------------------------------------------------------------------------------


def _self_attention(*bugs: str) -> Any:
    class SelfAttention(nn.Module):
        def __init__(self, d_model, d_k, d_v):
            if "NT19" not in bugs:
                super().__init__()
            self.sizes = (d_model, d_k, d_v)
            self.w_q, self.w_k, self.w_v = self.layers()

        def layers(self):
            d_model, d_k, d_v = self.sizes
            shapes = [(d_model, d_k), (d_model, d_k), (d_model, d_k if "NT21" in bugs else d_v)]
            shapes = [shape[::-1] for shape in shapes] if "NT20" in bugs else shapes
            return [nn.Linear(*shape, bias="PJ2" in bugs) for shape in shapes]

        def forward(self, x):
            layers = self.layers() if "NT22" in bugs else (self.w_q, self.w_k, self.w_v)
            if "NT17" in bugs:
                layers = (layers[0], layers[0], layers[2])
            if "NT9" in bugs:
                x = x.float()
            q, k, v = (x @ layer.weight if "PJ1" in bugs else layer(x) for layer in layers)
            rest = tuple(bug for bug in bugs if bug != "NT9")
            return _attend(q, k, x if "NT18" in bugs else v, rest, d_model=x.shape[-1])

    return SelfAttention


def _module_case(key: str, title: str, x: np.ndarray, state: dict[str, np.ndarray], **fields: Any) -> Case:
    """x (B, T, d_model) and the three weights, each (out, in), as the case of one module."""
    d_k, d_model = state["w_q.weight"].shape
    sizes = {"d_model": d_model, "d_k": d_k, "d_v": state["w_v.weight"].shape[0]}
    options = {"linear": ("w_q", "w_k", "w_v"), "no_bias": ("w_q", "w_k", "w_v"), "state": state}
    options |= {"init_kwargs": sizes} if fields.pop("keywords", False) else {"init": tuple(sizes.values())}
    options |= {"gradients": True} if fields.pop("grad", True) else {}
    options |= {name: fields.pop(name) for name in ("mode", "twice") if name in fields}
    if x.dtype == np.float64:
        options["dtype"] = "float64"
    inputs = (Tensor(x, requires_grad="gradients" in options),)
    return Case(key, title, inputs, probe="module", options=options, names=("x",), **fields)


def _state(rng: np.random.Generator, d_model: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    """Random weights as nn.Linear stores them: (out, in)."""
    widths = {"w_q.weight": d_k, "w_k.weight": d_k, "w_v.weight": d_v}
    return {name: rng.normal(size=(width, d_model)).astype(np.float32) for name, width in widths.items()}


def module_cases(rng: np.random.Generator) -> Iterator[Case]:
    def draw(key, title, b, t, d_model, d_k, d_v, dtype="float32", **fields):
        x = rng.normal(size=(b, t, d_model)).astype(dtype)
        return _module_case(key, title, x, _state(rng, d_model, d_k, d_v), **fields)

    yield _small_module_case()
    batch = draw("batch", "a batch of two, with gradients", 2, 3, 5, 4, 6)
    yield batch
    yield draw("square", "d_model = d_k = d_v, which no shape protects", 2, 3, 4, 4, 4)
    yield draw("double", "after .double(), float64 inputs", 3, 4, 6, 5, 2, "float64")
    yield draw("double square", "after .double(), d_model = d_k = d_v", 2, 5, 3, 3, 3, "float64", grad=False)
    yield draw("training", "in training mode, called twice", 2, 4, 3, 5, 6, mode="train", twice=True)
    yield draw("keywords", "made with keyword arguments", 4, 3, 2, 6, 5, keywords=True, grad=False)
    yield draw("seen-again", "the batch's shapes, new numbers", 2, 3, 5, 4, 6)
    yield from _module_companions(rng, batch)
    yield draw("one token", "one token attends to itself", 2, 1, 3, 4, 5, grad=False)
    yield draw("long", "more tokens than any width", 1, 9, 4, 3, 2, grad=False)
    yield from _module_extremes()


def _small_module_case() -> Case:
    state = {
        "w_q.weight": np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]]),
        "w_k.weight": np.array([[0.0, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]]),
        "w_v.weight": np.array([[2.0, 0, 0], [0, 1, -1]]),
    }
    x = np.array([[[1.0, 0, 2], [0, 1, 0]]], dtype=np.float32)
    return _module_case("small", "two tokens, whole numbers", x, state, grad=False)


def _module_companions(rng: np.random.Generator, batch: Case) -> Iterator[Case]:
    """The batch changed in one respect, for the properties that need a pair of cases."""
    x, state = batch.args[0].array, batch.options["state"]
    yield _module_case("permuted", "the batch, its tokens reordered", x[:, [2, 0, 1]], state, grad=False)
    other = x.copy()
    other[0] = rng.normal(size=x[0].shape)
    yield _module_case("item changed", "the batch, its first item replaced", other, state, grad=False)


def _module_extremes() -> Iterator[Case]:
    """Scores of thousands; whole numbers and d_k = 4 keep them exact."""
    embed = np.array([[1.0, 0], [0, 1], [0, 0], [0, 0]])
    values = np.array([[1.0, 2], [0, 1], [3, -1]])
    x = np.array([[[1.0, 0], [0, 1], [-1, -1]]])
    room = {"stage": "extremes", "rtol": 2e-3, "atol": 2e-3}
    for key, title, size, dtype in (
        ("large", "scores up to ±4900, float32", 70, "float32"),
        ("large double", "scores up to ±4900, float64", 70, "float64"),
        ("larger", "scores up to ±10,000 before scaling", -70, "float32"),
    ):
        state = {"w_q.weight": size * embed, "w_k.weight": 70 * embed, "w_v.weight": values}
        yield _module_case(key, title, x.astype(dtype), state, grad=key == "large", **room)


def tokens_reordered(case: Case, parts: dict[str, np.ndarray], other: Case, changed: dict[str, np.ndarray]) -> str | None:
    """None where reordering the tokens reorders the outputs alike."""
    gap = np.abs(parts["output"][:, [2, 0, 1]] - changed["output"]).max()
    return None if gap < 1e-4 else f"Reordering the tokens changed an output by up to {gap:.4g}."


# --- as_numpy ----------------------------------------------------------------------------------------


def _as_numpy(*bugs: str) -> Any:
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
    yield draw("seen-again", "float32", 2, 3)
    yield from _elsewhere_cases(rng)


def _whole_cases(rng: np.random.Generator) -> Iterator[Case]:
    for dtype, low in (("int64", -1000), ("int32", -1000), ("int16", -1000), ("int8", -100), ("uint8", 0)):
        values = rng.integers(low, 100, size=(2, 4))
        yield _array_case(dtype, f"an {dtype} tensor", values, dtype)
    yield _array_case("large integers", "integers that float32 cannot hold", np.array([[2**24 + 1, -(2**31) + 1]]), "int64")
    yield _array_case("bool", "a mask: a bool tensor", np.tri(3, 4, dtype=bool), "bool")


def _elsewhere_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Last, because a learner without a GPU cannot try them."""
    for dtype, grad in (("float32", True), ("float64", False), ("bfloat16", True), ("int64", False)):
        title = f"a {dtype} tensor that lies on a GPU (a stand-in that refuses what such a tensor refuses)"
        values = rng.integers(-9, 9, size=(2, 3)) if dtype == "int64" else rng.normal(size=(2, 3))
        yield _array_case(f"gpu {dtype}", title, values, dtype, grad=grad, view="elsewhere", stage="extremes")


# --- the lesson --------------------------------------------------------------------------------------

_SHARED_ATTENTION = ("SM1", "SM2", "SM3", "SD1", "SD2", "SD6", "SD8", "BW3", "NT7", "NT8", "NT9", "NT23")

lesson = Lesson(
    name="05_numpy_to_pytorch",
    title="From NumPy to PyTorch",
    question="How do the projections learn, and how do we know that nothing else changed?",
    texts=TEXTS,
    exercises=(
        Exercise(
            name="linear_from_numpy",
            task="Turn a NumPy weight matrix into an `nn.Linear` layer that computes x @ w and can be trained.",
            points=2,
            minutes=8,
            container="tensor",
            cases=lambda rng: tuple(linear_cases(rng)),
            mistakes=mistakes(_linear_from_numpy, "PJ1", "NT1", "PJ2", "NT2", "NT3", "NT4", "NT5")
            + (Mistake("PJ1", _copied_untransposed), Mistake("NT1", _viewed_untransposed)),
            combine=lambda ids: _linear_from_numpy(*ids),
            hints=(
                "Print `nn.Linear(3, 2, bias=False).weight.shape`. Which of its two numbers is d_in?",
                "`nn.Linear` computes x @ weightᵀ, so the weight must hold wᵀ. `torch.from_numpy` and `torch.as_tensor` "
                "share memory with a float32 array; `torch.tensor` copies, and so does `copy_` into an existing weight.",
                "layer = nn.Linear(____, ____, bias=____)\n"
                "with torch.no_grad():\n"
                "    layer.weight.copy_(torch.tensor(____))\n"
                "return layer",
            ),
        ),
        Exercise(
            name="attention_torch",
            task="Write lesson 03's attention on tensors, so that gradients flow to q, k and v.",
            points=3,
            minutes=12,
            parts=("output", "weights"),
            container="tensor",
            cases=lambda rng: tuple(attention_cases(rng)),
            mistakes=mistakes(_attention_torch, *_SHARED_ATTENTION, "SM4", "SM5", "SM6", "SD5", "NT6")
            + (Mistake("BW3", _through_numpy), Mistake("BW3", _output_detached))
            + (Mistake("SM3", _attention_torch("SM3", "row maximum")),),
            combine=lambda ids: _attention_torch(*ids),
            properties=(
                Property("each row of weights sums to 1", rows_sum_to_one),
                Property("the order of keys and values does not matter", order_of_keys, ("batch", "permuted")),
                Property("items of a batch do not meet", items_apart, ("batch", "item changed")),
                Property("v = identity returns the weights", identity_recovers, ("identity",)),
            ),
            forbids=("attention",),
            hints=(
                "Which four lines of `attention_numpy` have a name of their own in torch, and over which dimension "
                "does softmax run?",
                "`k.transpose(-2, -1)` (or `k.mT`) swaps the last two dimensions whatever stands before them; "
                "`torch.softmax(scores, dim=-1)` already subtracts each row's maximum. Stay in torch from q to the "
                "result: `.numpy()`, `.detach()`, `.data` and `torch.no_grad()` cut the graph.",
                "scores = q @ k.transpose(____, ____) / math.sqrt(____)\n"
                "weights = torch.softmax(scores, dim=____)\n"
                "return ____, weights",
            ),
        ),
        Exercise(
            name="SelfAttention",
            task="Give attention a home for its three projections: an `nn.Module` that can be trained.",
            points=4,
            minutes=15,
            kind="class",
            parts=("output", "weights"),
            container="tensor",
            cases=lambda rng: tuple(module_cases(rng)),
            mistakes=mistakes(
                _self_attention, *_SHARED_ATTENTION, "SD3", "SM5", "PJ1", "PJ2", "NT17", "NT18", "NT19", "NT20", "NT21", "NT22"
            ),
            combine=lambda ids: _self_attention(*ids),
            properties=(
                Property("each row of weights sums to 1", rows_sum_to_one),
                Property("reordering the tokens reorders the outputs alike", tokens_reordered, ("batch", "permuted")),
                Property("items of a batch do not meet", items_apart, ("batch", "item changed")),
            ),
            forbids=("attention",),
            hints=(
                "A module's constructor makes what is learned, its forward uses it. What does self-attention learn?",
                "`super().__init__()` comes first; then three `nn.Linear(..., bias=False)` under the names w_q, w_k "
                "and w_v. In `forward`, q, k and v all come from x, and the scale is the width of q, not of x.",
                "super().__init__()\n"
                "self.w_q = nn.Linear(d_model, ____, bias=____)\n"
                "...\n"
                "q, k, v = self.w_q(____), ____, ____\n"
                "weights = torch.softmax(q @ ____ / math.sqrt(____), dim=-1)",
            ),
        ),
        Exercise(
            name="as_numpy",
            task="Bring any tensor back to NumPy: from the graph, from another device, from bfloat16.",
            points=2,
            minutes=6,
            container="ndarray",
            cases=lambda rng: tuple(array_cases(rng)),
            mistakes=mistakes(_as_numpy, "NT10", "NT11", "NT12", "NT13", "NT14", "NT15", "NT16")
            + (Mistake("NT12", _all_float64), Mistake("NT10", _at_once)),
            combine=lambda ids: _as_numpy(*ids),
            rtol=0.0,
            atol=0.0,
            hints=(
                "Three things keep a tensor from NumPy. Two of them raise an error that names its own cure: which?",
                "`detach()` leaves the graph, `cpu()` leaves the device, and bfloat16 has no NumPy type: only that "
                "one is converted.",
                "tensor = tensor.____().____()\n"
                "if tensor.dtype == torch.____:\n"
                "    tensor = tensor.____()\n"
                "return tensor.numpy()",
            ),
        ),
    ),
)

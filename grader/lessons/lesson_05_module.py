"""Lesson 05, attention as a module: cases, mistakes and properties of `SelfAttention`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from grader.lessons.lesson_05_attention import SHARED, attend, items_apart, rows_sum_to_one
from grader.lessons.switch import mistakes
from grader.model import Case, Mistake, Property, Tensor


def module_with(*bugs: str) -> Any:
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
            return [nn.Linear(*shape, bias="NT26" in bugs) for shape in shapes]

        def forward(self, x):
            layers = self.layers() if "NT22" in bugs else (self.w_q, self.w_k, self.w_v)
            if "NT17" in bugs:
                layers = (layers[0], layers[0], layers[2])
            if "NT9" in bugs:
                x = x.float()
            q, k, v = (x @ layer.weight if "PJ1" in bugs else layer(x) for layer in layers)
            rest = tuple(bug for bug in bugs if bug != "NT9")
            return attend(q, k, x if "NT18" in bugs else v, rest, d_model=x.shape[-1])

    return SelfAttention


def _module_case(key: str, title: str, x: np.ndarray, state: dict[str, np.ndarray], **fields: Any) -> Case:
    """x (B, T, d_model) and the three weights, each (out, in), as the case of one module."""
    d_k, d_model = state["w_q.weight"].shape
    sizes = {"d_model": d_model, "d_k": d_k, "d_v": state["w_v.weight"].shape[0]}
    options = {"linear": ("w_q", "w_k", "w_v"), "no_bias": ("w_q", "w_k", "w_v"), "state": state}
    options |= {"init_kwargs": sizes} if fields.pop("keywords", False) else {"init": tuple(sizes.values())}
    options |= {"gradients": True} if fields.pop("grad", True) else {}
    options |= {name: fields.pop(name) for name in ("mode",) if name in fields}
    if x.dtype == np.float64:
        options["dtype"] = "float64"
    inputs = (Tensor(x, requires_grad="gradients" in options),)
    return Case(key, title, inputs, probe="module", options=options, names=("x",), **fields)


def _state(rng: np.random.Generator, d_model: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    """Random weights as nn.Linear stores them: (out, in).

    Their size keeps the scores near 1: where scores lie near 20, float32 leaves some gradients four digits.
    """
    widths = {"w_q.weight": d_k, "w_k.weight": d_k, "w_v.weight": d_v}
    scale = d_model**-0.5
    return {name: (scale * rng.normal(size=(width, d_model))).astype(np.float32) for name, width in widths.items()}


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
    yield _two_calls(draw("training", "in training mode, one module called on x and then on other numbers", 2, 4, 3, 5, 6, mode="train"))
    yield draw("keywords", "made with keyword arguments", 4, 3, 2, 6, 5, keywords=True, grad=False)
    yield draw("seen-again", "a batch of two again, new numbers", 2, 3, 5, 4, 6)
    yield from _module_companions(rng, batch)
    yield draw("one token", "one token attends to itself", 2, 1, 3, 4, 5, grad=False)
    yield draw("long", "nineteen tokens, more than any width", 1, 19, 4, 3, 2, grad=False)
    yield from _module_extremes()


def _two_calls(case: Case) -> Case:
    """The case as two calls of one module, which a second module of other sizes stands beside."""
    x, options = case.args[0].array, {**case.options, "beside": (6, 2, 3)}
    inputs = (Tensor(x), Tensor(1 - x))
    return replace(case, args=inputs, names=("x", "x of the second call"), probe="lesson_05.two_calls", options=options)


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
    yield _module_case("permuted", "a batch of two, its tokens reordered", x[:, [2, 0, 1]], state, grad=False)
    other = x.copy()
    other[0] = rng.normal(size=x[0].shape)
    yield _module_case("item changed", "a batch of two, its first item replaced", other, state, grad=False)


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
        if key == "larger":
            x[0, 1] /= 2  # now the greatest scores of its rows differ
        yield _module_case(key, title, x.astype(dtype), state, grad=key == "large", **room)


def tokens_reordered(
    case: Case, parts: dict[str, np.ndarray], other: Case, changed: dict[str, np.ndarray]
) -> str | None:
    """None where reordering the tokens reorders the outputs alike."""
    gap = np.abs(parts["output"][:, [2, 0, 1]] - changed["output"]).max()
    return None if gap < 1e-4 else f"Reordering the tokens changed an output by up to {gap:.4g}."


PROPERTIES = (
    Property("each row of weights sums to 1", rows_sum_to_one),
    Property("reordering the tokens reorders the outputs alike", tokens_reordered, ("batch", "permuted")),
    Property("items of a batch do not meet", items_apart, ("batch", "item changed")),
)
MISTAKES = (
    *mistakes(module_with, *SHARED, "SD3", "SM5", "PJ1", "NT17", "NT18", "NT19", "NT20", "NT21", "NT22", "NT26"),
    Mistake("SM3", module_with("SM3", "row maximum")),
)

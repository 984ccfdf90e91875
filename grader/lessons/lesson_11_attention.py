"""Lesson 11, `CausalMultiHeadAttention`: one implementation with its mistakes as switches, and the cases."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from grader.lessons import lesson_11_readings as readings
from grader.lessons.switch import mistakes
from grader.model import Case, Mistake, Tensor

Array = np.ndarray
LAYERS = ("qkv", "proj")
FILLS = {"far too high": -1e3, "MK4": -1e4, "finite": -1e9}


class _Attention(nn.Module):
    """CausalMultiHeadAttention with the bugs of a subclass switched on; with none it is right."""

    bugs: tuple[str, ...] = ()

    def __init__(self, d_model: int, num_heads: int, max_len: int, dropout: float = 0.0) -> None:
        super().__init__()
        if d_model % num_heads and "CM8" not in self.bugs:
            raise ValueError("d_model is not divisible by num_heads")
        bias = "PJ2" in self.bugs and "of the last" not in self.bugs
        self.num_heads, self.max_len, self.p = num_heads, max_len, dropout
        self.qkv, self.proj = nn.Linear(d_model, 3 * d_model, bias=bias), nn.Linear(d_model, d_model, bias="PJ2" in self.bugs)
        shift = ("MK8" in self.bugs) - ("MK7" in self.bugs)
        mask = torch.ones(max_len, max_len, dtype=torch.bool).tril(shift)
        mask = ~mask if "MK1" in self.bugs else mask.mT if "CM16" in self.bugs else mask
        self.register_buffer("mask", mask, persistent="CM9" in self.bugs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > self.max_len and "CM7" not in self.bugs:
            raise ValueError("longer than max_len")
        q, k, v = self.heads(x)
        weights = self.weights(q, k)
        if "CM6" in self.bugs:
            v = self.drop(v)
        weights = self.drop_weights(weights)
        merged = self.merge((weights.mT if "of the weights" in self.bugs else weights) @ v, x.shape)
        merged = self.drop(merged) if "CM2" in self.bugs else merged
        return merged if "CM11" in self.bugs else self.proj(merged)

    def heads(self, x: torch.Tensor) -> Any:
        b, t, d = x.shape
        h, qkv = self.num_heads, self.qkv(x)
        if "PJ3" in self.bugs:
            return (part.transpose(1, 2) for part in qkv.view(b, t, h, -1).chunk(3, dim=-1))
        parts = list(qkv.chunk(3, dim=-1))
        if "SD8" in self.bugs and "of the weights" not in self.bugs:
            parts = [parts[1], parts[0], parts[2]]
        if "CM12" in self.bugs:
            parts = parts[::-1]
        if "MH1" in self.bugs:
            return (part.view(b, h, t, d // h) if "as a view" in self.bugs else part.reshape(b, h, t, d // h) for part in parts)
        split = [part.view(b, t, h, d // h) for part in parts]
        if "CM13" in self.bugs:
            split = [part.reshape(b, t, d // h, h).transpose(2, 3) for part in parts]
        return split if "MH3" in self.bugs else [part.transpose(1, 2) for part in split]

    def weights(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        d_head, t = q.shape[-1], q.shape[-2]
        divisors = {"SD1": 1.0, "SD2": d_head, "SD3": math.sqrt(self.num_heads * d_head), "SD4": math.sqrt(self.num_heads),
                    "SD5": d_head**-0.5, "SD6": 1.0}  # fmt: skip
        scores = q @ k.mT / next((value for id, value in divisors.items() if id in self.bugs), math.sqrt(d_head))
        if "CM3" in self.bugs:
            scores = self.drop(scores)
        dim = next((axis for bug, axis in (("over heads", 1), ("SM2", 0), ("SM1", -2)) if bug in self.bugs), -1)
        if "MH3" in self.bugs or ("MK13" in self.bugs and not self.is_masked(t)):
            weights = self.softmax(scores, dim)
        else:
            weights = self.masked(scores, dim)
        return weights / math.sqrt(d_head) if "SD6" in self.bugs else weights

    def is_masked(self, t: int) -> bool:
        """On which paths a mask that is lost on another one stays."""
        paths = {"in training": self.training, "in evaluation": not self.training, "at full length": t == self.max_len}
        return any(holds for path, holds in paths.items() if path in self.bugs)

    def masked(self, scores: torch.Tensor, dim: int) -> torch.Tensor:
        t = scores.shape[-1]
        mask = self.mask if "CM10" in self.bugs else self.mask[:t, :t]
        if "made anew" in self.bugs:
            mask = torch.ones(t, t, dtype=torch.bool).tril()
        if "MK2" in self.bugs:
            return self.softmax(scores, dim) * mask
        if "MU21" in self.bugs:
            kept = self.softmax(scores, dim) * mask
            return kept / kept.sum(dim=dim, keepdim=True)
        if "MK3" in self.bugs:
            return self.softmax(scores * mask, dim)
        if "MK5" in self.bugs:
            return self.softmax(scores + (1 - mask.to(scores)) * -torch.inf, dim)
        if "MK6" in self.bugs:
            return self.softmax(scores + mask, dim)
        fill = next((value for bug, value in FILLS.items() if bug in self.bugs), -torch.inf)
        if "added" in self.bugs:
            return self.softmax(scores + torch.zeros_like(scores).masked_fill(~mask, fill), dim)
        return self.softmax(scores.masked_fill(~mask, fill), dim)

    def softmax(self, scores: torch.Tensor, dim: int) -> torch.Tensor:
        if "SM5" in self.bugs or "SM6" in self.bugs:
            top = 0 if "SM5" in self.bugs else scores.amax(dim=(-2, -1), keepdim=True) if "of a head" in self.bugs else scores.max()
            e = (scores - top).exp()
            return e / e.sum(dim=dim, keepdim=True)
        if "SM3" in self.bugs:
            axes = (0, 2, 3) if "of a head" in self.bugs else (0, 1, 2, 3)
            e = (scores - scores.amax(dim=axes, keepdim=True)).exp()
            return e / e.sum(dim=axes, keepdim=True)
        if "SM4" in self.bugs:
            e = (scores - scores.amax(dim=dim, keepdim=True)).exp()
            return e / e.sum(dim=dim)
        return torch.softmax(scores, dim=dim)

    def drop_weights(self, weights: torch.Tensor) -> torch.Tensor:
        weights = weights.detach() if "BW3" in self.bugs else weights
        if {"CM1", "CM2", "CM3", "CM6"} & set(self.bugs):
            return weights
        if "CM4" in self.bugs:
            return weights * (torch.rand_like(weights) >= self.p) if self.training else weights
        if "CM14" in self.bugs:
            dropped = self.drop(weights)
            return dropped / dropped.sum(dim=-1, keepdim=True).clamp_min(1e-9)
        return self.drop(weights)

    def drop(self, values: torch.Tensor) -> torch.Tensor:
        p = 1 - self.p if "CM5" in self.bugs and self.p else 0.5 if "CM15" in self.bugs else self.p
        return F.dropout(values, p, training=self.training or "MH5" in self.bugs)

    def merge(self, out: torch.Tensor, shape: torch.Size) -> torch.Tensor:
        if "MH3" in self.bugs or "MH2" in self.bugs:
            return out.reshape(shape)
        if "MH4" in self.bugs:
            return out.transpose(1, 2).view(shape)
        return out.transpose(1, 2).reshape(shape)


def attention(*bugs: str) -> type:
    return type("CausalMultiHeadAttention", (_Attention,), {"bugs": bugs})


MISTAKES = mistakes(
    attention, "SD1", "SD2", "SD3", "SD4", "SD5", "SD6", "SD8", "SM1", "SM2", "SM3", "SM4", "SM5", "SM6", "MH1", "MH2", "MH3", "MH4", "MH5",
    "MK1", "MK2", "MK3", "MK4", "MK5", "MK6", "MK7", "MK8", "MK13", "MU21", "BW3", "PJ2", "PJ3", "CM1", "CM2", "CM3", "CM4", "CM5", "CM6",
    "CM7", "CM8", "CM9", "CM10", "CM11", "CM12", "CM13", "CM14", "CM15", "CM16",
) + (
    Mistake("CM7", attention("CM7", "made anew")),
    Mistake("CM16", attention("MK1", "added")),  # a mask that is added holds no True; the NaN of its last row reaches every gradient
    Mistake("SD8", attention("SD8", "of the weights")),
    Mistake("SM2", attention("SM2", "over heads")),
    Mistake("SM2", attention("SM2", "finite")),
    Mistake("SM2", attention("SM2", "over heads", "finite")),
    Mistake("SM3", attention("SM3", "of a head")),
    Mistake("MH1", attention("MH1", "as a view")),
    *(Mistake("MK7", attention("MK7", *how)) for how in (("added",), ("finite",), ("added", "finite"))),
    *(Mistake("MK13", attention("MK13", path)) for path in ("in training", "in evaluation", "at full length")),
    Mistake("MK4", attention("MK4", "added")),
    Mistake("MK4", attention("MK4", "far too high")),
    Mistake("PJ2", attention("PJ2", "of the last")),
    Mistake("SM6", attention("SM6", "of a head")),
)  # fmt: skip


def weights_of(rng: np.random.Generator, d: int, size: float = 1.0) -> dict[str, Array]:
    shapes = {"qkv.weight": (3 * d, d), "proj.weight": (d, d)}
    return {name: (size * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}


def _options(state: dict[str, Array], *init: Any, **more: Any) -> dict[str, Any]:
    return {"init": init, "state": state, "linear": LAYERS, "no_bias": LAYERS, **more}


def cases(rng: np.random.Generator) -> Iterator[Case]:
    """Values and gradients, another mode and precision, dropout, large scores, what is to be refused."""
    def case(key: str, title: str, shape: tuple[int, ...], heads: int, max_len: int, grad: bool = False,
             probe: str = "module", **more: Any) -> Case:  # fmt: skip
        options = _options(weights_of(rng, shape[-1], 0.7 if heads < 5 else 0.4), shape[-1], heads, max_len, gradients=grad, **more)
        x = Tensor(rng.normal(size=shape).astype("float32"), None, grad)
        return Case(key, title, (x,), probe=probe, options=options)

    def earlier(*shapes: tuple[int, ...]) -> tuple[tuple[Array], ...]:
        return tuple((rng.normal(size=shape).astype(np.float32),) for shape in shapes)

    yield case("small", "three tokens, two heads of two numbers", (1, 3, 4), 2, 5, probe="lesson_11.attention")
    yield case("sizes", "all sizes different, three heads", (2, 5, 12), 3, 7, grad=True)
    yield case("full", "as many tokens as max_len: ten, four items, six heads", (4, 10, 12), 6, 10, probe="lesson_11.attention")
    yield case("seen-again", "the same sizes, new numbers", (2, 5, 12), 3, 7)
    yield case("two", "two heads of four numbers", (3, 4, 8), 2, 9, grad=True, probe="lesson_11.attention")
    yield case("one-head", "one head", (2, 4, 3), 1, 6)
    yield case("one-token", "one token", (3, 1, 4), 2, 4)
    yield case("room", "room for twice as many tokens", (2, 4, 6), 2, 8, grad=True)
    yield case("training", "in training mode, without dropout, heads of one number, after calls with two and three other tokens", (2, 3, 8),
               8, 5, mode="train", probe="lesson_09.after_others", earlier=earlier((1, 2, 8), (2, 3, 8)))  # fmt: skip
    yield from _companions(rng)
    yield from _dropout(rng)
    yield from _large(rng)
    for t, max_len in ((6, 5), (4, 2), (9, 3)):
        x = Tensor(rng.normal(size=(2, t, 4)).astype(np.float32))
        yield Case(f"long-{t}", f"{t} tokens, max_len {max_len}", (x,), probe="module", raises="ValueError",
                   options=_options(weights_of(rng, 4), 4, 2, max_len))  # fmt: skip
    for d_model, heads in ((8, 3), (6, 4), (5, 2)):
        x = Tensor(rng.normal(size=(1, 3, d_model)).astype(np.float32))
        yield Case(f"uneven-{d_model}", f"{heads} heads do not divide d_model {d_model}", (x,), probe="module",
                   raises="ValueError", options={"init": (d_model, heads, 4)})  # fmt: skip


def _companions(rng: np.random.Generator) -> Iterator[Case]:
    options = _options(weights_of(rng, 6), 6, 2, 7)
    x = rng.normal(size=(2, 5, 6)).astype(np.float32)
    later = x.copy()
    later[0, 3:] += 2
    later[1, 3:] -= 1
    yield Case("before", "five tokens, twice", (Tensor(x),), probe="module", options=options)
    yield Case("after", "the same, tokens 3 and 4 changed", (Tensor(later),), probe="module", options=options)
    other = later.copy()
    other[0] = rng.normal(size=(5, 6))
    yield Case("other item", "the same, the first item of the batch replaced", (Tensor(other),), probe="module", options=options)


def past_is_fixed(_: Case, first: dict[str, Array], __: Case, second: dict[str, Array]) -> str | None:
    moved = np.abs(first["output"][:, :3] - second["output"][:, :3]).max(axis=(0, 2))
    at = int(moved.argmax())
    return None if moved[at] < 1e-4 else f"output {at} moved by {moved[at]:.3g} when only tokens 3 and 4 changed."


def items_apart(_: Case, first: dict[str, Array], __: Case, second: dict[str, Array]) -> str | None:
    moved = np.abs(first["output"][1] - second["output"][1]).max()
    return None if moved < 1e-4 else f"item 1 of the batch moved by {moved:.3g} when only item 0 changed."


def _dropout(rng: np.random.Generator) -> Iterator[Case]:
    """Weights of the module through which every attention weight can be read twice in the output.

    Token j is the j-th unit vector, and its value in each head is e_j written twice: the output of query i then
    holds, head by head, row i of the weights, and the same row once more.
    """
    for key, p, t, heads in (("a", 0.3, 4, 2), ("b", 0.2, 3, 3), ("c", 0.6, 4, 2)):
        d = 2 * t * heads
        state = {"qkv.weight": np.zeros((3 * d, d), np.float32), "proj.weight": np.eye(d, dtype=np.float32)}
        state["qkv.weight"][: 2 * d] = 0.6 * rng.normal(size=(2 * d, d))
        for row in range(d):
            state["qkv.weight"][2 * d + row, row % t] = 1
        x = np.tile(np.eye(t, d, dtype=np.float32), (120, 1, 1))
        yield Case(f"dropout-{key}", f"dropout={p} with {heads} heads, in evaluation and in training", (Tensor(x),), show=False,
                   probe="lesson_11.dropout", options=_options(state, d, heads, t + 1, p), atol=0.1, reading=readings.dropout)  # fmt: skip


def _large(rng: np.random.Generator) -> Iterator[Case]:
    """Scores of 0 and ±10,000 in every row, and halves beside them, which float32 holds exactly; heads of four numbers.

    Token 1 asks for the high scores, which lie in its future, and sees the low ones alone; token 4 scores all keys near 0.
    """
    asked = np.array([100, 100, -100, 100, 0, -100])
    found = np.array([-200, -200, 200, 200, 0, -200])
    for i, (b, heads) in enumerate(((2, 2), (1, 3), (2, 2))):
        d, t = 4 * heads, len(asked)
        state = weights_of(rng, d, 0.3)
        w_q, w_k, w_v = np.split(state["qkv.weight"], 3)  # views
        w_q[:], w_k[:], w_v[:, :2] = 0, 0, 0
        w_q[0::4, 0], w_q[1::4, 2] = 1, 1
        for h in range(heads):
            w_k[4 * h, 1] = (-1) ** h  # what is high for one head is low for the next
            w_k[4 * h + 1, 3 + h] = 1
        x = rng.normal(size=(b, t, d)).astype(np.float32)
        x[..., 0], x[..., 1], x[..., 2] = asked, found, 1
        x[..., 3 : 3 + heads] = rng.integers(-2, 3, size=(b, t, heads))
        yield Case(f"large-{i}", "scores of 0 and ±10,000", (Tensor(x),), probe="module", stage="extremes",
                   options=_options(state, d, heads, t + 2), atol=5e-3, rtol=1e-3)  # fmt: skip

"""Lesson 12, the module on the fused operator: cases, mistakes and properties of `FastCausalMultiHeadAttention`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from grader.lessons.switch import mistakes
from grader.model import Case, Mistake, Property, Tensor


def fast_with(*bugs: str) -> Any:
    class FastCausalMultiHeadAttention(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            if d_model % num_heads and not {"GP50", "GP50 fused"} & set(bugs):
                raise ValueError("d_model is not divisible by num_heads")
            self.num_heads = num_heads
            self.qkv = nn.Linear(d_model, 3 * d_model, bias="PJ2" in bugs and "of the last" not in bugs)
            self.proj = nn.Linear(d_model, d_model, bias="PJ2" in bugs)
            if "GP49" in bugs:
                self.register_buffer("scale", torch.tensor(1.0))

        def forward(self, x):
            q, k, v = self.heads(x)
            attended = self.merge(self.attend(q, k, v), x.shape)
            if "GP51" in bugs or "SD6" in bugs:
                attended = attended / math.sqrt(q.shape[-1])
            if "GP52" in bugs:
                attended = attended.detach()
            output = attended if "GP48" in bugs else self.proj(attended)
            return output.detach() if "at the end" in bugs else output

        def heads(self, x):
            b, t, d_model = x.shape
            qkv, h = self.qkv(x), self.num_heads
            if "GP47" in bugs:
                h = 1
            if "GP50 fused" in bugs:
                return qkv.view(b, t, 3, h, d_model // h).permute(2, 0, 3, 1, 4).unbind(0)
            if "PJ3" in bugs:
                q, k, v = qkv.view(b, t, h, -1).chunk(3, dim=-1)
                return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            q, k, v = qkv.chunk(3, dim=-1)
            if "GP46" in bugs:
                q, k = k, q
            if "MH1" in bugs:
                return tuple(part.reshape(b, h, t, d_model // h) for part in (q, k, v))
            split = [part.reshape(b, t, h, d_model // h) for part in (q, k, v)]
            return split if "MH3" in bugs else [part.transpose(1, 2) for part in split]

        def merge(self, out, shape):
            if "MH2" in bugs or "MH3" in bugs:
                return out.contiguous().view(shape)
            if "MH4" in bugs or "GP54" in bugs:
                return out.transpose(1, 2).view(shape)
            return out.transpose(1, 2).reshape(shape)

        def attend(self, q, k, v):
            t, scale = q.shape[-2], self.factor(q.shape[-1])
            if "GP54" in bugs:  # the output lies in memory as q does
                q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
            if "GP43" in bugs:
                scores = q @ k.mT * scale
                return torch.softmax(scores if "GP41" in bugs else scores.masked_fill(~own_mask(t), -math.inf), dim=-1) @ v
            options = {"scale": scale, "is_causal": self.training if "GP53" in bugs else "GP41" not in bugs}
            if "GP44" in bugs:
                options["dropout_p"] = 0.1
            if {"GP42", "MK1", "MK7", "MK8"} & set(bugs):
                options |= {"attn_mask": own_mask(t), "is_causal": "and is_causal" in bugs}
            return F.scaled_dot_product_attention(q, k, v, **options)

        def factor(self, d_head):
            scales = {"SD1": 1.0, "SD6": 1.0, "SD2": 1 / d_head, "SD3": 1 / math.sqrt(d_head * self.num_heads),
                      "SD4": 1 / math.sqrt(self.num_heads), "GP45": math.sqrt(d_head)}  # fmt: skip
            return next((value for id, value in scales.items() if id in bugs), 1 / math.sqrt(d_head))

    def own_mask(t):
        mask = torch.ones(t, t, dtype=torch.bool).tril(("MK8" in bugs) - ("MK7" in bugs))
        return mask.mT if "transposed" in bugs else ~mask if "MK1" in bugs else mask

    return FastCausalMultiHeadAttention


MISTAKES = mistakes(
    fast_with, "GP41", "GP42", "GP43", "GP44", "GP45", "GP46", "GP47", "GP48", "GP49", "GP50", "MH1", "MH2", "MH3",
    "MH4", "MK1", "MK7", "MK8", "PJ2", "PJ3", "SD1", "SD2", "SD3", "SD4", "SD6", "GP51", "GP52", "GP53", "GP54",
) + (
    Mistake("GP50", fast_with("GP50 fused")),
    Mistake("GP42", fast_with("GP42", "and is_causal")),
    Mistake("GP52", fast_with("at the end")),
    Mistake("MK1", fast_with("MK1", "transposed")),  # a causal mask exchanged hides the diagonal; transposed it does not
    Mistake("PJ2", fast_with("PJ2", "of the last")),
)  # fmt: skip


def _case(key: str, title: str, x: np.ndarray, heads: int, state: dict[str, np.ndarray], **fields: Any) -> Case:
    layers = ("qkv", "proj")
    options = {"linear": layers, "no_bias": layers, "state": state}
    sizes = {"d_model": x.shape[-1], "num_heads": heads}
    options |= {"init_kwargs": sizes} if fields.pop("keywords", False) else {"init": tuple(sizes.values())}
    extra = ("gradients", "shorter", "mode", "autocast", "backend")
    options |= {name: fields.pop(name) for name in extra if name in fields}
    inputs = (Tensor(x, requires_grad=bool(options.get("gradients"))),)
    return Case(key, title, inputs, probe="lesson_12.fast", options=options, names=("x",), **fields)


def _state(rng: np.random.Generator, d_model: int) -> dict[str, np.ndarray]:
    scale = 1 / math.sqrt(d_model)
    shapes = {"qkv.weight": (3 * d_model, d_model), "proj.weight": (d_model, d_model)}
    return {name: (rng.normal(size=shape) * 1.5 * scale).astype(np.float32) for name, shape in shapes.items()}


def fast_cases(rng: np.random.Generator) -> Iterator[Case]:
    def draw(key, title, b, t, d_model, heads, repeated_to=0, **fields):
        x = rng.normal(size=(b, t, d_model)).astype(np.float32)
        x = np.resize(x, (b, repeated_to, d_model)) if repeated_to else x  # fewer draws for many tokens
        return _case(key, title, x, heads, _state(rng, d_model), **fields)

    batch = draw("batch", "a batch of two, three heads, thirteen tokens, with gradients", 2, 13, 12, 3, gradients=True)
    yield draw("small", "five tokens, two heads of three numbers", 1, 5, 6, 2)
    yield batch
    yield draw("one head", "one head", 2, 7, 5, 1)
    yield draw("training", "in training mode", 3, 11, 8, 4, mode="train", gradients=True)
    yield draw("five heads", "five heads of two numbers", 2, 9, 10, 5, gradients=True)
    # MATH is the one backend that every machine has, and its output lies in memory as its shape says; others' may lie otherwise.
    yield draw("keywords", "made with keyword arguments, the operator on its MATH backend", 2, 11, 6, 3, keywords=True, backend="MATH")
    yield draw("one token", "one token", 2, 1, 6, 2)
    yield draw("shorter", "seventeen tokens, the same backwards, then four, on the MATH backend", 1, 17, 8, 2, shorter=4,
               backend="MATH")  # fmt: skip
    yield draw("long", "more tokens than any lesson before had", 1, 150, 4, 2, repeated_to=1100)
    yield draw("seen-again", "a batch of two again, new numbers, on the MATH backend", 2, 13, 12, 3, backend="MATH")
    yield from _companions(rng, batch)
    yield from _extremes(rng, draw)


def _companions(rng: np.random.Generator, batch: Case) -> Iterator[Case]:
    x, state = batch.args[0].array, batch.options["state"]
    later = x.copy()
    later[:, 8:] = rng.normal(size=later[:, 8:].shape)
    yield _case("later changed", "the batch, its tokens from the ninth on replaced", later, 3, state)
    other = x.copy()
    other[0] = rng.normal(size=x[0].shape)
    yield _case("item changed", "the batch, its first item replaced", other, 3, state)


def _extremes(rng: np.random.Generator, draw: Any) -> Iterator[Case]:
    for key, b, t, d_model, heads in (("autocast", 2, 13, 12, 3), ("autocast again", 1, 19, 8, 2)):
        yield draw(key, "under torch.autocast to bfloat16", b, t, d_model, heads, autocast=True, stage="extremes",
                   dtype=("bfloat16", "float32"), rtol=0.06, atol=0.06)  # fmt: skip
    x = np.array([[[100.0, 0, 1, 0], [0, 100, 0, 1], [-100, 100, 0, 1], [1, 0, 100, -100], [0, 1, 1, 2]]], dtype=np.float32)
    state = {"qkv.weight": np.concatenate([np.eye(4)] * 3), "proj.weight": np.eye(4)[::-1].copy()}
    yield _case("large", "scores of up to ±14,000", x, 2, state, stage="extremes")
    for d_model, heads in ((8, 3), (6, 4), (5, 2)):
        options = {"init": (d_model, heads)}
        x = rng.normal(size=(1, 3, d_model)).astype(np.float32)
        yield Case(f"{d_model} by {heads}", f"{heads} heads do not divide d_model {d_model}", (Tensor(x),),
                   probe="lesson_12.fast", options=options, names=("x",), raises="ValueError")  # fmt: skip


def earlier_stay(case: Case, parts: dict[str, np.ndarray], other: Case, changed: dict[str, np.ndarray]) -> str | None:
    """None where outputs of the first eight tokens do not see those that follow."""
    gap = np.abs(parts["output"][:, :8] - changed["output"][:, :8]).max()
    return None if gap < 1e-4 else f"replacing the tokens from the ninth on changed an earlier output by up to {gap:.4g}."


def items_apart(case: Case, parts: dict[str, np.ndarray], other: Case, changed: dict[str, np.ndarray]) -> str | None:
    """None where the second item of a batch does not see the first."""
    gap = np.abs(parts["output"][1] - changed["output"][1]).max()
    return None if gap < 1e-4 else f"replacing item 0 of the batch changed item 1 by up to {gap:.4g}."


PROPERTIES = (
    Property("an output does not depend on later tokens", earlier_stay, ("batch", "later changed")),
    Property("items of a batch do not meet", items_apart, ("batch", "item changed")),
)

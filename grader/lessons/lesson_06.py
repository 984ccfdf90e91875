"""Lesson 06: masks, as functions and as a part of a module."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from grader.lessons.lesson_06_texts import TEXTS
from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, Property, Tensor

Array = np.ndarray


def _causal(*bugs: str) -> Callable[..., torch.Tensor]:
    """The reference's mask with the named bugs switched on; with none it is right."""

    def causal_mask(t_q: int, t_k: int | None = None) -> torch.Tensor:
        t_k = t_q if t_k is None or "MK12" in bugs else t_k
        offset = 0 if "MK14" in bugs else t_k - t_q
        offset += ("MK8" in bugs) - ("MK7" in bugs)
        ones = torch.ones(t_q, t_k, dtype=torch.bool)
        mask = ones.triu(offset) if "MA1" in bugs else ones.tril(offset)
        mask = ~mask if "MK1" in bugs else mask
        return mask.float() if "MA2" in bugs else mask

    return causal_mask


def causal_cases(rng: np.random.Generator) -> Iterator[Case]:
    for t_q in (3, 1, 5, 4):
        yield Case(f"square-{t_q}", f"{t_q} queries, t_k left out", (t_q,))
    for t_q, t_k in ((2, 5), (1, 4), (3, 4), (4, 4), (3, 8)):
        yield Case(f"cache-{t_q}-{t_k}", f"{t_q} queries, {t_k} keys", (t_q, t_k))
    t_q, more = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    yield Case("random", "sizes drawn at random", (t_q, t_q + more))
    yield Case("named", "t_k given by name", (3,), {"t_k": 6})


def _last_sees_all(case: Case, parts: dict[str, Array]) -> str | None:
    mask = parts["result"].astype(bool)
    return None if mask[-1].all() else f"the last query sees {int(mask[-1].sum())} of {mask.shape[1]} keys."


def _padding(*bugs: str) -> Callable[..., torch.Tensor]:
    def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
        width = int(lengths.max()) if "MA7" in bugs else max_len
        positions = torch.arange(width)
        if "MA6" in bugs:
            mask = positions >= max_len - lengths[:, None]
        else:
            mask = positions <= lengths[:, None] if "MA4" in bugs else positions < lengths[:, None]
        mask = ~mask if "MK1" in bugs else mask
        mask = mask.float() if "MA2" in bugs else mask
        if "MA5" in bugs:
            return mask
        return mask[:, :, None] if "MK10" in bugs else mask[:, None, :]

    return padding_mask


def padding_cases(rng: np.random.Generator) -> Iterator[Case]:
    def case(key: str, title: str, lengths: Any, max_len: int, dtype: str = "int64") -> Case:
        return Case(key, title, (Tensor(np.asarray(lengths), dtype), max_len))

    yield case("small", "lengths 2 and 3 of 4", [2, 3], 4)
    yield case("empty-and-full", "lengths 0 and 5 of 5", [0, 5, 1], 5)
    yield case("one", "a single sequence", [2], 3)
    yield case("square", "as many sequences as positions", [1, 3, 2, 4], 4)
    yield case("seen-again", "the same sizes, other lengths", [1, 2], 4)
    yield case("nothing", "two empty sequences", [0, 0], 3)
    yield case("int32", "lengths of int32", [3, 1, 2], 6, "int32")
    yield case("random", "random lengths", rng.integers(0, 8, size=6), 7)


def _masked_scores(scores: torch.Tensor, mask: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    """Scores with the hidden ones put out of reach, in the way that the bugs choose."""
    if "MK3" in bugs:
        return scores * mask
    if "MK5" in bugs:
        return scores + (1 - mask.to(scores)) * -torch.inf
    if "MK6" in bugs:
        return scores + mask
    if "MA13" in bugs:
        return scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    fills = {"MK4": -1e4, "DT1": -1e9, "MK9": -torch.inf}
    fill = next((value for id, value in fills.items() if id in bugs), torch.finfo(scores.dtype).min)
    return scores.masked_fill(~mask, fill)


def _attention(*bugs: str) -> Callable[..., tuple]:
    def masked_attention(q: Any, k: Any, v: Any, mask: Any = None) -> tuple:
        if "MK1" in bugs and mask is not None:
            mask = ~mask
        scale = {"SD1": 1.0, "SD2": 1 / q.shape[-1]}.get(next((b for b in bugs if b in ("SD1", "SD2")), ""))
        scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
        dim = -2 if "SM1" in bugs else -1
        if mask is None or "MA8" in bugs:
            weights = torch.softmax(scores, dim=dim)
            return weights @ v, weights
        if "MK2" in bugs:
            weights = torch.softmax(scores, dim=dim) * mask
            return weights @ v, weights
        weights = torch.softmax(_masked_scores(scores, mask, bugs), dim=dim)
        if "MA13" in bugs:
            weights = weights.nan_to_num(0.0)
        seen = mask.any(dim=-1, keepdim=True)
        if "MA12" in bugs:
            return torch.where(seen, weights @ v, torch.zeros((), dtype=v.dtype)), weights
        keeps = {"MK3", "MK5", "MK6", "MK9", "MA13"}
        if not keeps & set(bugs):
            weights = weights.masked_fill(~mask, 0.0) if "MK4" not in bugs else weights * seen
        return weights @ v, weights

    return masked_attention


def _grad(rng: np.random.Generator, *shape: int) -> Tensor:
    return Tensor(rng.normal(size=shape).astype(np.float32), None, True)


def _qkv(rng: np.random.Generator, lead: tuple[int, ...], t_q: int, t_k: int, d_k: int, d_v: int) -> tuple[Tensor, ...]:
    return _grad(rng, *lead, t_q, d_k), _grad(rng, *lead, t_k, d_k), _grad(rng, *lead, t_k, d_v)


def _some(rng: np.random.Generator, *shape: int) -> Array:
    """A random mask in which every query sees some key, and not all."""
    mask = rng.random(shape) < 0.5
    mask[..., 0] |= ~mask.any(axis=-1)
    mask[..., -1] &= ~mask.all(axis=-1)
    return mask


def attention_cases(rng: np.random.Generator) -> Iterator[Case]:
    """No mask, masks of every broadcastable shape, empty rows, large scores, half precision."""
    probe = "lesson_06.attend"
    q, k, v = (Tensor(np.array(a, np.float32), None, True) for a in (
        [[1, 0], [0, 1], [1, 1]], [[1, 1], [1, 0], [0, 1]], [[10, 0], [0, 10], [5, 5]]))  # fmt: skip
    lower = Tensor(np.tri(3, dtype=bool))
    yield Case("small", "the three tokens of lesson 01, causal", (q, k, v, lower), probe=probe)
    yield Case("no-mask", "no mask given", _qkv(rng, (2,), 3, 5, 4, 6), probe=probe)
    yield Case("none", "mask=None", _qkv(rng, (2,), 3, 5, 4, 6), {"mask": None}, probe=probe)
    for key, title in (("sizes", "all sizes different, a mask for each item"), ("seen-again", "the same sizes, new numbers")):
        yield Case(key, title, (*_qkv(rng, (2,), 5, 7, 4, 6), Tensor(_some(rng, 2, 5, 7))), probe=probe)
    yield Case("shared", "one mask for the whole batch", (*_qkv(rng, (3,), 2, 4, 5, 2), Tensor(_some(rng, 2, 4))), probe=probe)
    yield Case("padding", "a padding mask (B, 1, T_k)", (*_qkv(rng, (3,), 3, 4, 2, 5), Tensor(_some(rng, 3, 1, 4))), probe=probe)
    heads = (*_qkv(rng, (2, 3), 4, 5, 2, 3), Tensor(_some(rng, 2, 1, 4, 5)))
    yield Case("heads", "a mask shared by all heads", heads, probe=probe)
    yield Case("plain", "no batch axis, mask by name", _qkv(rng, (), 4, 4, 3, 2), {"mask": Tensor(_some(rng, 4, 4))}, probe=probe)
    yield from _hidden_pair(rng)
    for i, (t_q, t_k) in enumerate(((3, 4), (4, 4), (2, 5))):
        mask = _some(rng, 2, t_q, t_k)
        mask[0, i % t_q] = False
        inputs = (*_qkv(rng, (2,), t_q, t_k, 3, 2), Tensor(mask))
        yield Case(f"empty-{i}", "a query that may see no key", inputs, probe=probe, stage="extremes")
    nothing = (*_qkv(rng, (2,), 2, 3, 4, 5), Tensor(np.zeros((2, 2, 3), bool)))
    yield Case("nothing", "no query may see any key", nothing, probe=probe, stage="extremes", options={"none_is_zero": True})
    yield from _large(rng)
    yield from _precisions(rng)


def _hidden_pair(rng: np.random.Generator) -> Iterator[Case]:
    q, k, v = (Tensor(rng.normal(size=shape).astype(np.float32)) for shape in ((3, 4), (5, 4), (5, 2)))
    mask = np.array([[1, 1, 0, 1, 0]] * 3, bool)
    yield Case("hidden-1", "two keys hidden from everyone", (q, k, v, Tensor(mask)))
    other = [Tensor(np.where(mask[0][:, None], t.array, 7 * t.array + 3)) for t in (k, v)]
    yield Case("hidden-2", "the same, other numbers in what is hidden", (q, *other, Tensor(mask)))


def _large(rng: np.random.Generator) -> Iterator[Case]:
    for i in range(3):
        q, k, v = (rng.normal(size=shape).astype(np.float32) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 2)))
        # What is visible scores about -1e4, so that a fill of -1e4 is not out of reach.
        q[..., 0], k[..., 0], k[..., 1:] = 200, -100 + 0.01 * i, 0
        mask = _some(rng, 2, 3, 5)
        title = "visible scores of minus ten thousand"
        yield Case(f"large-{i}", title, (Tensor(q), Tensor(k), Tensor(v), Tensor(mask)), stage="extremes", atol=1e-3)


def _precisions(rng: np.random.Generator) -> Iterator[Case]:
    sizes = {"float16": 2e-2, "bfloat16": 8e-2, "float32": 1e-4}
    for dtype, atol in sizes.items():
        for i in range(3 if dtype == "float16" else 1):
            tensors = tuple(Tensor(t.array.round(2), dtype, True) for t in _qkv(rng, (2,), 3, 4, 2, 5))
            mask = _some(rng, 2, 3, 4)
            mask[1, i] = False
            yield Case(f"{dtype}-{i}", f"{dtype}, one row empty", (*tensors, Tensor(mask)), probe="lesson_06.attend",
                       options={"output_only": True}, stage="extremes", dtype=(dtype,), atol=atol, rtol=atol)  # fmt: skip


def _mask_of(case: Case) -> Array | None:
    mask = case.args[3] if len(case.args) > 3 else case.kwargs.get("mask")
    return None if mask is None else mask.array


def _hidden_weights(case: Case, parts: dict[str, Array]) -> str | None:
    mask, weights = _mask_of(case), parts["weights"]
    if mask is None:
        return None
    hidden = weights[~np.broadcast_to(mask, weights.shape)]
    return None if np.abs(hidden).max(initial=0) < 1e-6 else f"a hidden key has the weight {np.abs(hidden).max():.3g}."


def _row_sums(case: Case, parts: dict[str, Array]) -> str | None:
    off = parts["weights"].sum(axis=-1)
    worst = off.flat[np.abs(off - 1).argmax()]
    return None if abs(worst - 1) < 1e-4 else f"a row sums to {worst:.4g}."


def _hidden_is_ignored(_: Case, first: dict[str, Array], __: Case, second: dict[str, Array]) -> str | None:
    moved = np.abs(first["output"] - second["output"]).max()
    return None if moved < 1e-4 else f"the output moved by {moved:.3g} when only hidden keys and values changed."


class _Causal(nn.Module):
    """CausalSelfAttention with the bugs of a subclass switched on."""

    bugs: tuple[str, ...] = ()

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        bias = "PJ2" in self.bugs
        self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, d_model, bias=bias) for _ in range(3))
        self.max_len = max_len
        shift = ("MK8" in self.bugs) - ("MK7" in self.bugs)
        mask = torch.ones(max_len, max_len, dtype=torch.bool).tril(shift)
        mask = mask.mT if "MA1" in self.bugs else mask
        if "DT3" in self.bugs:
            self.mask = mask
        else:
            self.register_buffer("mask", mask, persistent="MA14" in self.bugs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        t = x.shape[1]
        if t > self.max_len and "MA16" not in self.bugs:
            raise ValueError("longer than max_len")
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        q, k = (k, q) if "SD8" in self.bugs else (q, k)
        scores = q @ k.mT
        if "SD1" not in self.bugs:
            scores = scores / (x.shape[-1] if "SD2" in self.bugs else math.sqrt(x.shape[-1]))
        mask = self.mask if "MA15" in self.bugs else self.mask[:t, :t]
        dim = -2 if "SM1" in self.bugs else -1
        if "MK2" in self.bugs:
            return torch.softmax(scores, dim=dim) * mask @ v
        if "MA8" not in self.bugs:
            scores = scores * mask if "MK3" in self.bugs else scores.masked_fill(mask if "MK1" in self.bugs else ~mask, -torch.inf)
        return torch.softmax(scores, dim=dim) @ v


def _module(*bugs: str) -> type:
    return type("CausalSelfAttention", (_Causal,), {"bugs": bugs})


def _build(rng: np.random.Generator, d: int, max_len: int, **more: Any) -> dict[str, Any]:
    names = ("w_q", "w_k", "w_v")
    state = {f"{name}.weight": rng.normal(size=(d, d)).astype(np.float32) for name in names}
    return {"init": (d, max_len), "state": state, "linear": names, "no_bias": names, **more}


def module_cases(rng: np.random.Generator) -> Iterator[Case]:
    def case(key: str, title: str, shape: tuple[int, ...], max_len: int, grad: bool = False, **more: Any) -> Case:
        options = _build(rng, shape[-1], max_len, gradients=grad, **more)
        x = Tensor(rng.normal(size=shape).astype("float64" if more.get("dtype") else "float32"), None, grad)
        return Case(key, title, (x,), probe="module", options=options)

    yield case("small", "three tokens of two numbers, max_len 5", (1, 3, 2), 5)
    yield case("sizes", "all sizes different", (2, 4, 3), 7, grad=True)
    yield case("full", "as many tokens as max_len", (2, 5, 4), 5, grad=True)
    yield case("seen-again", "the same sizes, new numbers", (2, 4, 3), 7)
    yield case("square", "as many tokens as features", (3, 4, 4), 6)
    yield case("one", "one token", (2, 1, 3), 4)
    yield case("double", "after .double()", (2, 3, 5), 8, dtype="float64")
    yield from _future_pair(rng)
    for i, (shape, max_len) in enumerate((((2, 3, 4), 5), ((1, 5, 2), 5), ((2, 4, 3), 9))):
        x = Tensor(np.zeros(shape, np.float32))
        options = {**_build(rng, shape[-1], max_len), "max_len": max_len}
        title = f"moved to another device (torch's meta device), T = {shape[1]} of {max_len}"
        yield Case(f"device-{i}", title, (x,), probe="lesson_06.buffer", options=options, stage="extremes")
    for i, (t, max_len) in enumerate(((6, 5), (4, 2), (9, 3))):
        x = Tensor(rng.normal(size=(2, t, 3)).astype(np.float32))
        yield Case(f"long-{i}", f"{t} tokens, max_len {max_len}", (x,), probe="module", options=_build(rng, 3, max_len),
                   raises="ValueError")  # fmt: skip


def _future_pair(rng: np.random.Generator) -> Iterator[Case]:
    options = _build(rng, 3, 6)
    x = rng.normal(size=(2, 5, 3)).astype(np.float32)
    later = x.copy()
    later[:, 3:] += 2
    later[1] *= -1  # the other item of the batch changes altogether
    yield Case("before", "five tokens", (Tensor(x),), probe="module", options=options)
    yield Case("after", "the same, tokens 3 and 4 changed, and the other batch item", (Tensor(later),), probe="module", options=options)


def _past_is_fixed(_: Case, first: dict[str, Array], __: Case, second: dict[str, Array]) -> str | None:
    moved = np.abs(first["output"][0, :3] - second["output"][0, :3]).max(axis=-1)
    at = int(moved.argmax())
    return None if moved[at] < 1e-5 else f"output {at} moved by {moved[at]:.3g} when only tokens 3 and 4 of its sequence changed."


lesson = Lesson(
    name="06_masks",
    title="Masks",
    question="Who may look at whom, and how do we make sure that nobody peeks?",
    outcome="hide the future and the padding, without a leak and without NaN",
    texts=TEXTS,
    exercises=(
        Exercise(
            name="causal_mask", task="Say for each query which keys lie in its past, itself included.", points=2, minutes=8,
            cases=causal_cases, container="tensor", dtype=("bool",),
            mistakes=mistakes(_causal, "MK1", "MK7", "MK8", "MK12", "MK14", "MA1", "MA2"),
            combine=lambda ids: _causal(*ids),
            properties=(Property("the last query sees every key", _last_sees_all),),
            hints=(
                "With 2 queries and 5 keys, the queries are the last two positions. Which keys may the first of them see?",
                "`torch.ones(t_q, t_k, dtype=torch.bool).tril(diagonal=…)` keeps j ≤ i + diagonal.",
                "t_k = t_q if t_k is None else ____\nreturn torch.ones(t_q, t_k, dtype=torch.bool).tril(____)",
            ),
        ),
        Exercise(
            name="padding_mask", task="Mark the real tokens of sequences of different lengths.", points=2, minutes=6,
            cases=padding_cases, container="tensor", dtype=("bool",),
            mistakes=mistakes(_padding, "MK1", "MK10", "MA2", "MA4", "MA5", "MA6", "MA7"),
            combine=lambda ids: _padding(*ids),
            hints=(
                "Which positions does a sequence of length 2 fill, and which number do they all stay below?",
                "Compare `torch.arange(max_len)` with the lengths as a column; then add the axis for the queries.",
                "positions = torch.arange(____)\nreal = positions < lengths[____]\nreturn real[:, ____, :]",
            ),
        ),
        Exercise(
            name="masked_attention", task="Attention that looks only where a mask allows it, and survives rows that may not look at all.",
            points=4, minutes=20, cases=attention_cases, container="tensor", parts=("output", "weights"), forbids=("attention",),
            mistakes=mistakes(
                _attention, "MK1", "MK2", "MK3", "MK4", "MK5", "MK6", "MK9", "MA8", "MA12", "MA13", "DT1", "SD1", "SD2", "SM1"),
            properties=(
                Property("what is hidden gets no weight", _hidden_weights),
                Property("each row of weights sums to 1", _row_sums),
                Property("what is hidden does not matter", _hidden_is_ignored, needs=("hidden-1", "hidden-2")),
            ),
            hints=(
                "Where must a hidden key be taken out: before or after softmax? And what is softmax of a row from which all are taken?",
                "Fill hidden scores with the lowest finite number of their dtype, take softmax, then set hidden weights to 0.",
                "low = torch.finfo(____).min\nweights = torch.softmax(scores.masked_fill(____, low), dim=-1)\n"
                "weights = weights.masked_fill(____, ____)",
            ),
        ),
        Exercise(
            name="CausalSelfAttention", task="Self-attention that cannot see the future, with its mask as a buffer.",
            kind="class", points=4, minutes=20, cases=module_cases, container="tensor", parts=("output",), forbids=("attention",),
            mistakes=mistakes(
                _module, "MK1", "MK2", "MK3", "MK7", "MK8", "MA1", "MA8", "MA14", "MA15", "MA16", "DT3", "PJ2", "SD1", "SD2", "SD8", "SM1"),
            properties=(Property("a later token changes no earlier output", _past_is_fixed, needs=("before", "after")),),
            hints=(
                "Which of the module's tensors are learnt, and which follow from max_len? Where should each kind live?",
                "`register_buffer(name, mask, persistent=False)` in __init__; in forward, cut the mask to the T tokens that came.",
                'self.register_buffer("mask", ____, persistent=____)\n...\nT = x.shape[1]\nif T > ____:\n    raise ____\n'
                "output, _ = masked_attention(q, k, v, self.mask[____, ____])",
            ),
        ),
    ),
)  # fmt: skip

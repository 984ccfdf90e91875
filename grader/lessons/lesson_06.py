"""Lesson 06: masks, as functions and as a part of a module."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from grader.lessons.lesson_06_texts import TEXTS
from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, Mistake, Property, Tensor

Array = np.ndarray


def _causal(*bugs: str) -> Callable[..., torch.Tensor]:
    """The reference's mask with the named bugs switched on; with none it is right."""

    def causal_mask(t_q: int, t_k: int | None = None) -> torch.Tensor:
        t_k = t_q if t_k is None or "MK12" in bugs else t_k
        offset = 0 if "MK14" in bugs else t_k - t_q
        offset += ("MK8" in bugs) - ("MK7" in bugs)
        sizes = (t_k, t_q) if "sizes" in bugs else (t_q, t_k)
        ones = torch.ones(sizes, dtype=torch.bool)
        mask = ones.triu(offset) if "MA1" in bugs else ones.tril(offset)
        mask = ~mask if "MK1" in bugs else mask
        mask = mask.mT if "MA20" in bugs and "sizes" not in bugs else mask
        return _as_numbers(mask, bugs)

    return causal_mask


def _as_numbers(mask: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    """The mask in numbers where MA2 asks for it; beside it may stand which of NUMBERS. By default they are float."""
    if "additive" in bugs:
        return torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
    kind = next((bug for bug in bugs if bug in NUMBERS), "float")
    return getattr(mask, kind)() if "MA2" in bugs else mask


NUMBERS = ("long", "int", "byte", "additive")


def causal_cases(rng: np.random.Generator) -> Iterator[Case]:
    for t_q in (3, 1, 5, 40):
        yield Case(f"square-{t_q}", f"{t_q} queries, t_k left out", (t_q,))
    for t_q, t_k in ((2, 5), (1, 4), (3, 4), (4, 4), (3, 130)):  # positions above 127 do not fit into int8
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
        mask = _as_numbers(mask, bugs)
        if "MA5" in bugs:
            return mask
        if "MA21" in bugs:
            return mask[:, None, :] & mask[:, :, None] if "both" in bugs else mask[:, None, :].expand(-1, max_len, -1)
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
    yield case("nothing", "two empty sequences, lengths of int32", [0, 0], 3, "int32")
    yield case("uint8", "lengths of uint8", [3, 1, 2], 6, "uint8")
    yield case("random", "random lengths, the last one 19", [*rng.integers(0, 20, size=5), 19], 19)


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
    if "MK4" in bugs and "additive" in bugs:
        return scores + (~mask).to(scores) * -1e4
    fills = {"MK4": -1e4, "DT1": -1e9, "MK9": -torch.inf}
    fill = next((value for id, value in fills.items() if id in bugs), None)
    if fill is None or "finite" in bugs:
        fill = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, fill)


def _by_hand(scores: torch.Tensor, mask: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    """Softmax made of exp, in the way that the bugs choose; 'unguarded' leaves an empty row 0 / 0, 'repaired' mends its value alone."""
    if "SM5" in bugs:
        e = scores.exp() * mask if "late" in bugs else scores.masked_fill(~mask, -torch.inf).exp()
    else:  # MA18 takes each row's maximum over what is hidden, too
        e = (scores - (scores.max() if "SM6" in bugs else scores.amax(-1, keepdim=True))).exp() * mask
    total = e.sum(-1, keepdim=True)
    weights = e / (total if {"unguarded", "repaired"} & set(bugs) else total.masked_fill(total == 0, 1.0))
    return weights.nan_to_num(0.0) if "repaired" in bugs else weights


def _attention(*bugs: str) -> Callable[..., tuple]:
    def masked_attention(q: Any, k: Any, v: Any, mask: Any = None) -> tuple:
        if "MK1" in bugs and mask is not None:
            mask = ~mask
        if "MA17" in bugs:
            q, k, v = q.float(), k.float(), v.float()
        scales = {"SD1": 1.0, "SD2": 1 / q.shape[-1], "NT24": 1 / math.sqrt(k.shape[-2])}
        scale = scales.get(next((bug for bug in bugs if bug in scales), ""))
        scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
        dim = -2 if "SM1" in bugs else -1
        if "SM2" in bugs:
            dim = 1 if "dim 1" in bugs else 0
        if mask is None or "MA8" in bugs:
            weights = torch.softmax(scores, dim=dim)
            return weights @ v if "NT23" in bugs else (weights @ v, weights)
        if BY_HAND & set(bugs):
            weights = _by_hand(scores, mask, bugs)
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
            weights = weights * seen if "MK4" in bugs and "zeroed" not in bugs else weights.masked_fill(~mask, 0.0)
        if "MK9" in bugs and "repaired" in bugs:
            return (weights @ v).nan_to_num(0.0), weights
        return weights @ v if "NT23" in bugs else (weights @ v, weights)

    return masked_attention


BY_HAND = {"SM5", "SM6", "MA18"}


def _attention_pair(ids: frozenset[str]) -> Callable[..., tuple]:
    """Two mistakes at once, where one of them is of those that go with others. Raises KeyError for other pairs."""
    if not ids & {"MK9", "MA17", "SD1", "SD2"}:
        raise KeyError(ids)
    return _attention(*ids)


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
    turned = (replace(tensor, array=np.asfortranarray(tensor.array)) for tensor in _qkv(rng, (2, 3), 4, 5, 2, 3))
    heads = (*turned, Tensor(_some(rng, 2, 1, 4, 5)))
    yield Case("heads", "a mask shared by all heads, tensors that are not contiguous in memory", heads, probe=probe)
    wide = _qkv(rng, (), 18, 19, 3, 2)
    yield Case("plain", "no batch axis, nineteen keys, mask by name", wide, {"mask": Tensor(_some(rng, 18, 19))}, probe=probe)
    yield from _hidden_pair(rng)
    for i, (t_q, t_k) in enumerate(((3, 4), (4, 4), (2, 5))):
        mask = _some(rng, 2, t_q, t_k)
        mask[0, i % t_q] = False
        title = "a query that may see no key"
        if i == 1:
            mask, title = mask[:, 1:2], "a padding mask (B, 1, T_k), one item of length 0"
        elif i == 2:
            mask, title = mask[:, :, :1], "a mask (B, T_q, 1): a query sees all keys or none"
            mask[:, :, 0] = [[False, True], [True, False]]
        inputs = (*_qkv(rng, (2,), t_q, t_k, 3, 2), Tensor(mask))
        yield Case(f"empty-{i}", title, inputs, probe=probe, stage="extremes")
    nothing = (*_qkv(rng, (2,), 2, 3, 4, 5), Tensor(np.zeros((2, 2, 3), bool)))
    yield Case("nothing", "no query may see any key", nothing, probe=probe, stage="extremes", options={"none_is_zero": True})
    yield from _large(rng)
    yield from _precisions(rng)


def _hidden_pair(rng: np.random.Generator) -> Iterator[Case]:
    q, k, v = (Tensor(rng.normal(size=shape).astype(np.float32)) for shape in ((3, 4), (5, 4), (5, 2)))
    mask = np.array([1, 1, 0, 1, 0], bool)
    yield Case("hidden-1", "two keys hidden from everyone, by a mask (T_k,)", (q, k, v, Tensor(mask)))
    other = [Tensor(np.where(mask[:, None], t.array, 7 * t.array + 3)) for t in (k, v)]
    yield Case("hidden-2", "the same, other numbers in what is hidden", (q, *other, Tensor(mask)))


def _large(rng: np.random.Generator) -> Iterator[Case]:
    """Scores from -10,000 to 10,000. Whole numbers and d_k = 4 keep them exact; each row is saturated or differs by whole halves."""
    levels = np.array([10, 90, -100, 100, -100])
    # The first query sees the lowest scores alone, beside hidden ones of 10,000: a fill of -10,000 is not out of reach, and what takes
    # the maximum over hidden keys leaves nothing. The greatest visible score of the last query stands first and last in no order of keys.
    seen = np.array([[0, 0, 1, 0, 1], [1, 1, 0, 1, 0], [1, 1, 1, 0, 1]], bool)
    q = np.stack([[100, -100, 50], np.ones(3), *np.zeros((2, 3))], axis=-1).astype(np.float32)
    for i in range(3):
        v = rng.normal(size=(2, 5, 2)).astype(np.float32)
        orders = [np.roll(np.arange(5), i), rng.permutation(5)]
        k = np.zeros((2, 5, 4), np.float32)
        k[..., 0], k[..., 1] = [2 * levels[order] for order in orders], [order + i for order in orders]
        mask = np.stack([seen[:, order] for order in orders])
        title = "scores of ±10,000, the lowest visible and the highest hidden"
        yield Case(f"large-{i}", title, (Tensor(np.stack([q, q])), Tensor(k), Tensor(v), Tensor(mask)), stage="extremes",
                   rtol=2e-3, atol=2e-3)  # fmt: skip


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
        if "NT19" not in self.bugs:
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
        assert t <= self.max_len or "assert" not in self.bugs
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        q, k = (k, q) if "SD8" in self.bugs else (q, k)
        scores = q @ k.mT
        if "SD1" not in self.bugs:
            scores = scores / (x.shape[-1] if "SD2" in self.bugs else math.sqrt(t if "NT24" in self.bugs else x.shape[-1]))
        mask = self.mask if "MA15" in self.bugs else self.mask[:t, :t]
        dim = -2 if "SM1" in self.bugs else -1
        if "MK2" in self.bugs:
            return torch.softmax(scores, dim=dim) * mask @ v
        if BY_HAND & set(self.bugs):
            return _by_hand(scores, mask, self.bugs) @ v
        if "MK3" in self.bugs:
            scores = scores * mask
        elif "MK4" in self.bugs:
            scores = _masked_scores(scores, mask, self.bugs)
        elif "MA8" not in self.bugs:
            scores = scores.masked_fill(mask if "MK1" in self.bugs else ~mask, -torch.inf)
        weights = torch.softmax(scores, dim=dim)
        output = (weights.detach() if "BW3" in self.bugs else weights) @ v
        return (output, weights) if "MA19" in self.bugs else output


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

    yield case("small", "three tokens of two numbers, max_len 5, in eval mode", (1, 3, 2), 5)
    yield case("sizes", "all sizes different, in eval mode", (2, 4, 3), 7, grad=True)
    yield case("full", "nineteen tokens, as many as max_len, in training mode", (2, 19, 4), 19, grad=True, mode="train")
    yield case("seen-again", "the same sizes as before, new numbers", (2, 4, 3), 7, grad=True)
    yield case("one", "one token", (2, 1, 3), 4)
    yield _future(rng)
    yield from _large_modules(rng)
    for i, (shape, max_len) in enumerate((((2, 3, 4), 5), ((1, 5, 2), 5), ((2, 4, 3), 9))):
        x = Tensor(np.zeros(shape, np.float32))
        options = {**_build(rng, shape[-1], max_len), "max_len": max_len}
        title = f"moved to another device (torch's meta device), T = {shape[1]} of {max_len}"
        yield Case(f"device-{i}", title, (x,), probe="lesson_06.buffer", options=options, stage="extremes")
    for i, (t, max_len) in enumerate(((6, 5), (4, 2), (9, 3))):
        x = Tensor(rng.normal(size=(2, t, 3)).astype(np.float32))
        yield Case(f"long-{i}", f"{t} tokens, max_len {max_len}", (x,), probe="module", options=_build(rng, 3, max_len),
                   raises="ValueError")  # fmt: skip


def _future(rng: np.random.Generator) -> Case:
    """One module called twice, while a second one of another max_len stands beside it."""
    options = {**_build(rng, 3, 6), "beside": (3, 2)}
    x = rng.normal(size=(2, 5, 3)).astype(np.float32)
    later = x.copy()
    later[:, 3:] += 2
    later[1] *= -1  # the other item of the batch changes altogether
    title = "five tokens, then the same with tokens 3 and 4 changed, and the other batch item, in eval mode"
    return Case("future", title, (Tensor(x), Tensor(later)), probe="lesson_05.two_calls", options=options,
                names=("x", "x of the second call"))  # fmt: skip


def _large_modules(rng: np.random.Generator) -> Iterator[Case]:
    """Scores from -10,000 to 10,000, exact as in `_large`: the first tokens see the lowest ones alone, and the highest come later."""
    w_q, w_k = np.zeros((2, 4, 4), np.float32)
    w_q[0, 0], w_q[1, 1], w_k[0, 2], w_k[1, 3] = 100, 1, 2, 1
    for i, (levels, max_len) in enumerate((([-100, -100, 0, 90, 100], 6), ([-100, -100, 100], 5), ([-100, -100, 90, 0, 100, 10], 7))):
        t = len(levels)
        x = np.ones((2, t, 4))
        x[..., 0], x[..., 2], x[..., 3] = np.where(np.arange(t) == t - 2, -1, 1), levels, np.arange(t) + i
        x[1] = x[1, rng.permutation(t)]
        w_v = rng.normal(size=(4, 4)) * [1, 1, 0.01, 1]
        state = {"w_q.weight": w_q, "w_k.weight": w_k, "w_v.weight": w_v.astype(np.float32)}
        options = {**_build(rng, 4, max_len), "state": state}
        if i == 2:
            options["dtype"] = "float64"
        title = "scores of ±10,000" + ", after .double()" * (i == 2)
        yield Case(f"large-{i}", title, (Tensor(x, "float64" if i == 2 else "float32"),), probe="module", options=options,
                   stage="extremes", rtol=2e-3, atol=2e-3)  # fmt: skip


def _past_is_fixed(_: Case, parts: dict[str, Array]) -> str | None:
    moved = np.abs(parts["output"][0, :3] - parts["second call"][0, :3]).max(axis=-1)
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
            mistakes=(
                *mistakes(_causal, "MK1", "MK7", "MK8", "MK12", "MK14", "MA1", "MA2", "MA20"),
                *(Mistake("MA2", _causal("MA2", kind)) for kind in NUMBERS),
                Mistake("MA20", _causal("MA20", "sizes")),
            ),
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
            mistakes=(
                *mistakes(_padding, "MK1", "MK10", "MA2", "MA4", "MA5", "MA6", "MA7", "MA21"),
                Mistake("MA21", _padding("MA21", "both")),
                *(Mistake("MA2", _padding("MA2", kind)) for kind in NUMBERS),
            ),
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
            mistakes=(
                *mistakes(_attention, "MK1", "MK2", "MK3", "MK4", "MK5", "MK6", "MK9", "MA8", "MA12", "MA13", "MA17", "MA18", "DT1",
                          "SD1", "SD2", "SM1", "SM2", "SM5", "SM6", "NT23", "NT24"),
                *(Mistake("MK4", _attention("MK4", *more)) for more in (("zeroed",), ("additive",), ("additive", "zeroed"))),
                *(Mistake("MK9", _attention("MK9", kind)) for kind in ("finite", "repaired")),
                *(Mistake("MA18", _attention("MA18", kind)) for kind in ("unguarded", "repaired")),
                Mistake("SM2", _attention("SM2", "dim 1")),
                Mistake("SM5", _attention("SM5", "late")),
            ),
            combine=_attention_pair,
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
            mistakes=(
                *mistakes(_module, "MK1", "MK2", "MK3", "MK4", "MK7", "MK8", "MA1", "MA8", "MA14", "MA15", "MA16", "MA18", "MA19", "DT3",
                          "PJ2", "SD1", "SD2", "SD8", "SM1", "SM5", "SM6", "BW3", "NT19", "NT24"),
                Mistake("MK4", _module("MK4", "additive")),
                Mistake("MA16", _module("MA16", "assert")),
                *(Mistake(id, _module(id, "unguarded")) for id in ("MA18", "SM5", "SM6")),
                Mistake("SM5", _module("SM5", "late", "unguarded")),
            ),
            properties=(Property("a later token changes no earlier output", _past_is_fixed, needs=("future",)),),
            hints=(
                "Which of the module's tensors are learnt, and which follow from max_len? Where should each kind live?",
                "`register_buffer(name, mask, persistent=False)` in __init__; in forward, cut the mask to the T tokens that came.",
                'self.register_buffer("mask", ____, persistent=____)\n...\nT = x.shape[1]\nif T > ____:\n    raise ____\n'
                "output, _ = masked_attention(q, k, v, self.mask[____, ____])",
            ),
        ),
    ),
)  # fmt: skip

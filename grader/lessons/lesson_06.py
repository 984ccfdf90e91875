"""Lesson 06: masks, as functions and as a part of a module. The mistakes are in lesson_06_mistakes.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from grader.lessons import lesson_06_mistakes
from grader.lessons.lesson_06_texts import TEXTS
from grader.model import Case, Exercise, Lesson, Property, Tensor

Array = np.ndarray


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
            given, title = ((*tensors, Tensor(mask)), "one row empty") if dtype != "float32" else (tensors, "no mask")
            yield Case(f"{dtype}-{i}", f"{dtype}, {title}", given, probe="lesson_06.attend",
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
        if i < 2:
            options["mode"] = "train"
        title = "scores of ±10,000" + (", after .double()" if i == 2 else ", in training mode")
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
            mistakes=lesson_06_mistakes.CAUSAL,
            combine=lambda ids: lesson_06_mistakes.causal(*ids),
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
            mistakes=lesson_06_mistakes.PADDING,
            combine=lambda ids: lesson_06_mistakes.padding(*ids),
            hints=(
                "Which positions does a sequence of length 2 fill, and which number do they all stay below?",
                "Compare `torch.arange(max_len)` with the lengths as a column; then add the axis for the queries.",
                "positions = torch.arange(____)\nreal = positions < lengths[____]\nreturn real[:, ____, :]",
            ),
        ),
        Exercise(
            name="masked_attention", task="Attention that looks only where a mask allows it, and survives rows that may not look at all.",
            points=4, minutes=20, cases=attention_cases, container="tensor", parts=("output", "weights"), forbids=("attention",),
            mistakes=lesson_06_mistakes.ATTENTION,
            combine=lesson_06_mistakes.attention_pair,
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
            mistakes=lesson_06_mistakes.MODULE,
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

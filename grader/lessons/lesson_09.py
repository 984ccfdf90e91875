"""Lesson 09: splitting and merging heads, the module with four projections, and weights that come from torch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from grader.lessons import lesson_09_copy as copying, lesson_09_module as module
from grader.lessons.lesson_09_texts import TEXTS
from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, Mistake, Property, Tensor

Array = np.ndarray


def _split(*bugs: str) -> Callable[..., torch.Tensor]:
    """The reference's split with the named bugs switched on; with none it is right."""

    def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
        b, t, d_model = x.shape
        if d_model % num_heads and "MU1" not in bugs:
            raise ValueError("d_model is not divisible by num_heads")
        x = x.detach() if "MU19" in bugs else x
        d_head = d_model // num_heads
        if "by slices" in bugs:
            return torch.stack([x[..., h * d_head : (h + 1) * d_head] for h in range(num_heads)], dim=1)
        if "by chunk" in bugs:
            return torch.stack(x.chunk(num_heads, dim=-1), dim=1)
        if "MH1" in bugs:
            return x.reshape(b, num_heads, t, d_head)
        if "MU4" in bugs:
            return x.reshape(b, t, d_head, num_heads).permute(0, 3, 1, 2)
        if "MU15" in bugs:
            return x.reshape(b, t, d_head, num_heads).transpose(1, 2)
        heads = x.reshape(b, t, num_heads, d_head)
        if "MU13" in bugs:
            return heads
        if "MU14" in bugs:
            return heads.permute(2, 0, 1, 3)
        return heads.permute(0, 2, 3, 1) if "MU16" in bugs else heads.transpose(1, 2)

    return split_heads


def _merge(*bugs: str) -> Callable[..., torch.Tensor]:
    """The reference's merge with the named bugs switched on; with none it is right."""

    def merge_heads(x: torch.Tensor) -> torch.Tensor:
        b, h, t, d_head = x.shape
        x = x.detach() if "MU19" in bugs else x
        if "MH2" in bugs:
            return x.reshape(b, t, h * d_head)
        if "MU17" in bugs:
            return x.permute(0, 2, 3, 1).reshape(b, t, h * d_head)
        if "MU18" in bugs:
            return x.mean(dim=1)
        if "MH4" in bugs:
            return x.transpose(1, 2).view(b, t, h * d_head)
        if "MU20" in bugs:
            return x.transpose(1, 2)
        return x.transpose(1, 2).reshape(b, t, h * d_head)

    return merge_heads


def split_cases(rng: np.random.Generator) -> Iterator[Case]:
    def case(key: str, title: str, shape: tuple[int, ...], heads: int, grad: bool = False, **more: str) -> Case:
        x = rng.normal(size=shape).astype(more.get("dtype", "float32"))
        return Case(key, title, (Tensor(x, None, grad), heads))

    numbers = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    yield Case("small", "two tokens, the numbers 0 to 7, two heads", (Tensor(numbers), 2))
    yield case("sizes", "all sizes different", (2, 5, 12), 3, True)
    yield case("seen-again", "the same sizes, new numbers", (2, 5, 12), 3)
    yield case("double", "float64", (3, 4, 10), 5, True, dtype="float64")
    yield case("square", "as many heads as tokens and as numbers in a head", (2, 3, 9), 3)
    yield case("one-head", "one head", (2, 4, 6), 1)
    yield case("single", "as many heads as numbers", (2, 5, 4), 4)
    yield case("one-token", "a batch of one, one token", (1, 1, 6), 2)
    yield case("random", "sizes drawn at random", (2, int(rng.integers(9, 12)), 6 * int(rng.integers(2, 5))), 6, True)
    for d_model, heads in ((6, 4), (5, 2), (8, 3), (3, 4)):
        yield Case(f"uneven-{d_model}", f"{heads} heads do not divide d_model {d_model}", case("", "", (2, 3, d_model), heads).args,
                   raises="ValueError")  # fmt: skip


def merge_cases(rng: np.random.Generator) -> Iterator[Case]:
    def case(key: str, title: str, shape: tuple[int, ...], grad: bool = False, dtype: str = "float32") -> Case:
        return Case(key, title, (Tensor(rng.normal(size=shape).astype(dtype), None, grad),))

    numbers = np.array([[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]], np.float32)
    yield Case("small", "two heads of two tokens", (Tensor(numbers),))
    yield case("sizes", "all sizes different", (2, 3, 5, 4), True)
    yield case("seen-again", "the same sizes, new numbers", (2, 3, 5, 4))
    yield case("double", "float64", (3, 2, 4, 5), True, "float64")
    yield case("square", "as many heads as tokens and as numbers in a head", (2, 3, 3, 3))
    yield case("one-head", "one head", (2, 1, 4, 6))
    yield case("single", "heads of one number", (2, 5, 3, 1))
    yield case("one-token", "a batch of one, one token", (1, 3, 1, 2))
    yield case("random", "sizes drawn at random", (2, *(int(n) for n in rng.integers((5, 9, 2), (8, 12, 5)))), True)
    apart = np.asfortranarray(rng.normal(size=(2, 3, 5, 4)).astype(np.float32))
    yield Case("strides", "a tensor that is not contiguous in memory", (Tensor(apart),))


def _slices(case: Case, parts: dict[str, Array]) -> str | None:
    x, heads = case.args[0].array, case.args[1]
    b, t, d_model = x.shape
    wanted = x.reshape(b, t, heads, d_model // heads).swapaxes(1, 2)
    far = np.abs(parts["result"] - wanted) > 0.05  # the right numbers in another precision are told by the comparison that follows
    if not far.any():
        return None
    item, head, token, place = (int(i) for i in np.argwhere(far)[0])
    came, want = parts["result"][item, head, token, place], wanted[item, head, token, place]
    said = f"number {place} of head {head} is number {head * wanted.shape[-1] + place} of each token"
    return f"{said}; for token {token} of item {item} that is {want:.4g}, and here it is {came:.4g}."


lesson = Lesson(
    name="09_multi_head_attention",
    title="Multi-head attention",
    question="One row of weights can look at one place: how does a token look at several at once?",
    outcome="let several heads attend, with the same numbers as `nn.MultiheadAttention`",
    texts=TEXTS,
    exercises=(
        Exercise(
            name="split_heads", task="Give each head its own slice of every token.", points=2, minutes=8, cases=split_cases,
            container="tensor", properties=(Property("head h holds the h-th slice of every token", _slices),),
            mistakes=mistakes(_split, "MH1", "MU1", "MU4", "MU13", "MU14", "MU15", "MU16", "MU19")
            + (Mistake("MU1", _split("MU1", "by slices")), Mistake("MU1", _split("MU1", "by chunk"))),
            combine=lambda ids: _split(*ids),
            hints=(
                "Token 0 is (0, 1, 2, 3) and there are two heads. Which numbers of token 0 does head 1 hold?",
                "`x.view(B, T, num_heads, d_head)` names the axes in the order in which the numbers lie; then the heads move in front "
                "of the tokens.",
                "B, T, d_model = x.shape\nif ____:\n    raise ValueError(...)\n"
                "return x.reshape(B, T, ____, ____).transpose(____, ____)",
            ),
        ),
        Exercise(
            name="merge_heads", task="Put the heads of each token side by side again.", points=2, minutes=6, cases=merge_cases,
            container="tensor", mistakes=mistakes(_merge, "MH2", "MH4", "MU17", "MU18", "MU19", "MU20"),
            combine=lambda ids: _merge(*ids),
            hints=(
                "In which order must the axes stand, so that the numbers of one token are neighbours?",
                "Undo the last step of `split_heads` first: the tokens return to axis 1. Then `reshape`.",
                "B, H, T, d_head = x.shape\nreturn x.transpose(____, ____).reshape(B, T, ____)",
            ),
        ),
        Exercise(
            name="MultiHeadAttention", task="Attention in several heads, between two projections.", kind="class", points=4,
            minutes=25, cases=module.cases, container="tensor", parts=("output", "weights"), forbids=("attention",),
            mistakes=module.MISTAKES, combine=lambda ids: module.attention(*ids), properties=module.PROPERTIES,
            hints=(
                "Which of the steps project → split → scores → softmax → weighted sum → merge → project know that there are heads?",
                "After the split every product works on the last two axes, and the heads are one more axis of the batch. The width "
                "under the root is that of one head.",
                "q, k, v = (split_heads(layer(x), self.num_heads) for layer, x in ((self.w_q, ____), (self.w_k, ____), (self.w_v, ____)))\n"
                "scores = q @ k.mT / math.sqrt(____)\nif mask is not None:\n    scores = scores.masked_fill(____, -torch.inf)\n"
                "weights = torch.softmax(scores, dim=-1)\nreturn self.w_o(____), weights",
            ),
        ),
        Exercise(
            name="copy_torch_weights", task="Give a module of ours the weights of torch's own.", points=2, minutes=12,
            cases=copying.cases, container="any", mistakes=copying.MISTAKES, combine=lambda ids: copying.copy(*ids),
            hints=(
                "`in_proj_weight` is (3 · d_model, d_model). Which of its rows make queries?",
                "`chunk(3)` cuts it into thirds in the order q, k, v. Under `torch.no_grad()`, `copy_` writes into a parameter that stays "
                "the same object.",
                "with torch.no_grad():\n    weights, biases = torch_mha.in_proj_weight.chunk(3), ____\n"
                "    for layer, weight, bias in zip((mine.w_q, ____, ____), weights, biases):\n"
                "        layer.weight.copy_(weight)\n        ____\n    mine.w_o.weight.copy_(____)\n    mine.w_o.bias.copy_(____)",
            ),
        ),
    ),
)  # fmt: skip

"""Lesson 10: the scores of Bahdanau and of Luong. The maths with its mistakes, and the exercises."""

from __future__ import annotations

import math
from typing import Any

import torch

from grader.lessons.lesson_10_cases import PROPERTIES, additive_cases, luong_cases
from grader.lessons.lesson_10_texts import TEXTS
from grader.lessons.switch import mistakes
from grader.model import Exercise, Lesson, Mistake


def _weights(scores: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    if "AL8" in bugs:
        return scores
    if "AL9" in bugs:
        return scores.sigmoid()
    if "LG1" in bugs:
        return scores[..., None].softmax(-1)[..., 0]
    if "SM2" in bugs:
        return scores.softmax(0)
    if "AL20" in bugs:
        return scores.log_softmax(-1)
    if "SM5" in bugs:
        e = scores.exp()
    elif "AL17" in bugs:
        taken = scores.amin(-1, True) if "the least" in bugs else scores[:, :1] if "the first" in bugs else scores.mean(-1, True)
        e = (scores - taken).exp()
    elif "SM6" in bugs or ("SM3" in bugs and "row maximum" not in bugs):
        e = (scores - scores.max()).exp()
    else:
        e = (scores - scores.amax(-1, keepdim=True)).exp()
    return e / (e.sum() if "SM3" in bugs else e.sum(-1, keepdim="SM4" not in bugs))


def _attend(scores: torch.Tensor, keys: torch.Tensor, projected: torch.Tensor, bugs: tuple[str, ...], width: int = 1) -> Any:
    """What both exercises share: weights from scores, and the context. width: by whose root AL22 divides."""
    weights = _weights(scores, bugs)
    if "AL22" in bugs:
        weights = weights / math.sqrt(keys.shape[-1] if "d_h" in bugs else width)
    if "BW3" in bugs:
        weights = weights.detach()
    used = weights.detach() if "context cut" in bugs else weights
    weighted = used[..., None] * (projected if "AL7" in bugs else keys)
    if "one product" in bugs:  # where a single key has met several queries this raises, the sum does not
        return (weights[:, None] @ keys)[:, 0], weights
    axis = -1 if "AL12" in bugs else 0 if "over the batch" in bugs else 1
    context = weighted.mean(axis) if "AL11" in bugs else weighted.sum(axis)
    if "NT7" in bugs:
        weights = weights.detach()
    if "NT23" in bugs:
        return context
    if "AL18" in bugs and "all" in bugs:
        return context.detach(), weights.detach()
    if "AL19" in bugs:
        weights = scores
    if "unsqueezed" in bugs:
        weights = weights[..., None]
    if "AL21" in bugs:
        weights = weights[..., None] if "weights last" in bugs else weights[:, None] if "both" in bugs else weights
        context = context if "weights last" in bugs else context[:, None]
    return (weights, context) if "NT8" in bugs else (context, weights)


def _scaled(scores: torch.Tensor, widths: dict[str, int], bugs: tuple[str, ...]) -> torch.Tensor:
    """AL4: the scores divided by the root of the last of the named widths, by that width itself, or multiplied by its root."""
    if "AL4" not in bugs:
        return scores
    width = next(widths[bug] for bug in reversed(bugs) if bug in widths)
    return scores / (width if "no root" in bugs else width**-0.5 if "times" in bugs else math.sqrt(width))


def additive_with(*bugs: str) -> Any:
    """additive_attention with the named bugs switched on; with none it is right."""

    def additive_attention(query, keys, w_query, w_key, v):
        if "AL18" in bugs and "all" not in bugs:
            query, v = (query, v.detach()) if "v" in bugs else (query.detach(), v)
        asked = query @ (w_query.T if "AL5" in bugs else w_query)
        known = keys @ (w_key.T if "AL5" in bugs or "w_key.T" in bugs else w_key)
        scores = _additive_scores(asked, known, v, bugs)
        widths = {"AL4": v.shape[0], "d_h": keys.shape[-1], "d_q": query.shape[-1]}
        return _attend(_scaled(scores, widths, bugs), keys, known, bugs, v.shape[0])

    return additive_attention


def _additive_scores(asked: torch.Tensor, known: torch.Tensor, v: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    row = asked if "AL13" in bugs else asked[:, None]
    if "AL13" in bugs and "keys first" in bugs:
        return torch.tanh(known + row) @ v
    if "AL1" in bugs:
        return (torch.tanh(known) + (row.tanh() if "two tanh" in bugs else row)) @ v
    if "AL23" in bugs:
        return (torch.tanh(row) + known) @ v
    inside = row * known if "AL2" in bugs else known if "AL15" in bugs else row + known
    if "AL14" in bugs:
        return torch.tanh(inside @ v)
    others = {"LG2": lambda x: x, "AL10": torch.relu, "sigmoid": torch.sigmoid}
    energy = next((others[bug] for bug in bugs if bug in others), torch.tanh)(inside)
    if "AL3" in bugs:
        return energy.sum(-1)
    return energy.mean(-1) if "mean of units" in bugs else energy @ v


def luong_with(*bugs: str) -> Any:
    """luong_attention with the named bugs switched on; with none it is right."""

    def luong_attention(query, keys, w):
        query = query.detach() if "AL18" in bugs and "all" not in bugs else query
        met = keys @ w if "keys @ w" in bugs else keys
        asked = query if "AL6" in bugs or "keys @ w" in bugs else query @ (w.T if "AL5" in bugs else w)
        scores = (met @ asked[:, :, None])[..., 0]
        scores = _scaled(scores, {"AL4": query.shape[-1], "d_h": keys.shape[-1]}, bugs)
        return _attend(scores.tanh() if "AL16" in bugs else scores, keys, keys @ w.T if "AL7" in bugs else keys, bugs, query.shape[-1])

    return luong_attention


def _dot_by_einsum(query, keys, w):
    """AL6 in one einsum."""
    return _attend(torch.einsum("bd,btd->bt", query, keys), keys, keys, ())


def _dot_by_product(query, keys, w):
    """AL6 by broadcasting."""
    return _attend((keys * query[:, None]).sum(-1), keys, keys, ())


def _dot_by_bmm(query, keys, w):
    """AL6 by bmm."""
    return _attend(torch.bmm(keys, query.unsqueeze(2)).squeeze(2), keys, keys, ())


SHARED = ("SM2", "SM3", "SM4", "SM5", "SM6", "LG1", "AL4", "AL5", "AL7", "AL8", "AL9", "AL11", "AL12", "AL17",
          "AL18", "AL19", "AL20", "AL21", "AL22", "BW3", "NT7", "NT8", "NT23")


def _both(with_bugs: Any) -> tuple[Mistake, ...]:
    """What else an id covers in both exercises."""
    ways = (
        ("AL4", "d_h"), ("AL4", "d_h", "no root"), ("AL4", "no root"), ("AL17", "the least"), ("AL17", "the first"), ("AL18", "all"),
        ("AL21", "both"), ("AL21", "weights last"), ("AL4", "times"), ("AL4", "d_h", "times"), ("AL22", "d_h"), ("SM3", "row maximum"),
        ("SM4", "one product"), ("LG1", "unsqueezed"),
    )  # fmt: skip
    others = Mistake("AL12", with_bugs("over the batch")), Mistake("BW3", with_bugs("context cut"))
    return *(Mistake(way[0], with_bugs(*way)) for way in ways), *others


ADDITIVE_MISTAKES = (
    *mistakes(additive_with, *SHARED, "LG2", "AL1", "AL2", "AL3", "AL10", "AL13", "AL14", "AL15", "AL23"),
    Mistake("AL1", additive_with("AL1", "two tanh")),
    Mistake("AL3", additive_with("mean of units")),
    Mistake("AL4", additive_with("AL4", "d_q")),
    Mistake("AL4", additive_with("AL4", "d_q", "no root")),
    Mistake("AL5", additive_with("w_key.T")),
    Mistake("AL10", additive_with("sigmoid")),
    Mistake("AL13", additive_with("AL13", "keys first")),
    Mistake("AL13", additive_with("AL13", "one product")),
    Mistake("AL13", additive_with("AL13", "keys first", "one product")),
    Mistake("AL18", additive_with("AL18", "v")),
    *_both(additive_with),
)
LUONG_MISTAKES = (
    *mistakes(luong_with, *SHARED, "AL6", "AL16"),
    Mistake("AL5", luong_with("keys @ w")),
    Mistake("AL6", _dot_by_einsum),
    Mistake("AL6", _dot_by_product),
    Mistake("AL6", _dot_by_bmm),
    *_both(luong_with),
)

lesson = Lesson(
    name="10_alignment",
    title="Alignment: where attention came from",
    question="How can a translator that has read the whole sentence still find the one word it needs now?",
    outcome="train a translator of dates, and see what it looks at while it writes",
    texts=TEXTS,
    exercises=(
        Exercise(
            name="additive_attention",
            task="Let a decoder's state choose among the encoder's states, by Bahdanau's score.",
            points=3,
            minutes=15,
            parts=("context", "weights"),
            container="tensor",
            cases=lambda rng: tuple(additive_cases(rng)),
            mistakes=ADDITIVE_MISTAKES,
            combine=lambda ids: additive_with(*ids),
            properties=PROPERTIES,
            forbids=("attention",),
            hints=(
                "query @ w_query has the shape (B, d_a), keys @ w_key the shape (B, T, d_a). The first is to be added to "
                "*each* key of its own sentence: which shape must it have for that?",
                "A new axis, `[:, None]`, turns (B, d_a) into (B, 1, d_a). `energy @ v` sums over d_a and leaves (B, T); "
                "softmax then runs over T. For the context, `weights[:, None]` is (B, 1, T) and can be multiplied with "
                "the keys.",
                "energy = torch.tanh((query @ ____)[:, None] + keys @ ____)\n"
                "weights = torch.softmax(energy @ ____, dim=____)\n"
                "context = (weights[:, None] @ ____)[:, 0]\n"
                "return context, weights",
            ),
        ),
        Exercise(
            name="luong_attention",
            task="Write the same choice with Luong's score: one matrix product in place of the tanh.",
            points=2,
            minutes=8,
            parts=("context", "weights"),
            container="tensor",
            cases=lambda rng: tuple(luong_cases(rng)),
            mistakes=LUONG_MISTAKES,
            combine=lambda ids: luong_with(*ids),
            properties=PROPERTIES,
            forbids=("attention",),
            hints=(
                "w has the shape (d_q, d_h). Which of the two, the query or a key, can stand to the left of w in a product?",
                "`query @ w` is (B, d_h), as wide as a key. Its dot product with each key of its sentence is a product "
                "of (B, T, d_h) with (B, d_h, 1). The rest is as in `additive_attention`.",
                "asked = query @ w\n"
                "scores = (keys @ asked[:, :, ____])[..., 0]\n"
                "weights = torch.softmax(____, dim=____)\n"
                "return (weights[:, None] @ ____)[:, 0], weights",
            ),
        ),
    ),
)

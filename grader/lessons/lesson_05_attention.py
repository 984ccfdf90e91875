"""Lesson 05, attention on tensors: cases, mistakes and properties of `attention_torch`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from grader.lessons.switch import mistakes
from grader.model import Case, Mistake, Property, Tensor

SHARED = ("SM1", "SM2", "SM3", "SM6", "SD1", "SD2", "SD5", "SD6", "SD8", "BW3", "NT6", "NT7", "NT8", "NT9", "NT23", "NT24", "AB19", "AB20",
          "AB22", "TT29")  # fmt: skip


def _softmax(scores: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    if "SM1" in bugs:
        return scores.softmax(-2)
    if "NT27" in bugs:
        return scores.flatten(-2).softmax(-1).view_as(scores)
    if "AB20" in bugs:
        return scores
    if "SM2" in bugs:  # by default what F.softmax does where no dim is given
        return scores.softmax(0 if "dim 0" in bugs or scores.ndim in (1, 3) and "dim 1" not in bugs else 1)
    if "SM5" in bugs:
        e = scores.exp()
    elif "SM6" in bugs or ("SM3" in bugs and "row maximum" not in bugs):
        e = (scores - scores.max()).exp()
    else:
        e = (scores - scores.amax(-1, keepdim=True)).exp()
    if "SM3" in bugs:
        return e / e.sum()
    return e / e.sum(-1, keepdim="SM4" not in bugs)


def _turned(k: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    """k with two axes exchanged: the last two, unless a bug chooses others."""
    if "AB16" in bugs:
        return k.T
    return k.transpose(*((1, 2) if "NT30" in bugs else (-2, -1)))


def attend(q, k, v, bugs: tuple[str, ...], d_model: int = 0) -> Any:
    """The maths that attention_torch and SelfAttention share, with named bugs switched on."""
    if "SD8" in bugs:
        q, k = k, q
    widths = {"SD1": 1, "SD2": q.shape[-1] ** 2, "SD3": d_model, "SD5": 1 / q.shape[-1], "NT6": v.shape[-1], "NT24": k.shape[-2]}
    width = next((widths[bug] for bug in bugs if bug in widths), q.shape[-1])
    late = "SD6" in bugs
    scores = q @ _turned(q if "TT4" in bugs else k, bugs) / (1 if late else math.sqrt(width))
    if "NT25" in bugs:
        scores, v = scores.double(), v if "mixed" in bugs else v.double()
    weights = _softmax(scores, bugs) / (math.sqrt(width) if late else 1)
    if "BW3" in bugs:
        weights = weights.detach()
    output = (weights.mT if "AB22" in bugs else weights) @ (k if "TT29" in bugs else v)
    if "AB19" in bugs:
        weights = scores
    if "NT9" in bugs:
        output, weights = output.float(), weights.float()
    if "NT7" in bugs:
        weights = weights.detach()
    if "NT23" in bugs:
        return output
    return (weights, output) if "NT8" in bugs else (output, weights)


def attention_with(*bugs: str) -> Any:
    def attention_torch(q, k, v):
        return attend(q, k, v, bugs)

    return attention_torch


def _through_numpy(q, k, v):
    """BW3 as a trip through NumPy: right numbers, and no gradient for anything."""
    with torch.no_grad():
        return attend(q, k, v, ())


def _output_detached(q, k, v):
    """BW3 where only the output's copy of the weights is cut from the graph."""
    _, weights = attend(q, k, v, ())
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
    yield _attention_case("small gradients", "two queries, three keys, whole numbers, with gradients", SMALL)
    yield _attention_case("square", "as many queries as keys", _qkv(rng, (), 3, 3, 4, 2))
    batch = _qkv(rng, (2,), 3, 5, 4, 6)
    yield _attention_case("batch", "a batch of two", batch)
    yield _attention_case("square batch", "a batch of three, as many queries as keys", _qkv(rng, (3,), 4, 4, 5, 2))
    yield _attention_case("heads", "two leading dimensions", _qkv(rng, (2, 3), 5, 4, 6, 7))
    alike = _qkv(rng, (3, 2), 4, 4, 5, 6)
    yield _attention_case("square heads", "two leading dimensions, as many queries as keys", alike, grad="")
    single = [array.astype(np.float32) for array in _qkv(rng, (2,), 4, 3, 6, 5)]
    yield _attention_case("float32", "float32 in, float32 out", single)
    yield _attention_case("seen-again", "a batch of two again, new numbers", _qkv(rng, (2,), 3, 5, 4, 6))
    yield from _attention_companions(rng, batch)
    yield _attention_case("keys only", "only k requires grad", _qkv(rng, (2,), 2, 4, 3, 5), grad="k")
    narrow = [array.astype(np.float32) for array in _qkv(rng, (1,), 1, 4, 3, 2)]
    yield _attention_case("one item", "a batch of one, one query, float32", narrow, grad="")
    yield _attention_case("one key", "a single key", _qkv(rng, (2,), 3, 1, 5, 4), grad="")
    # With one leading dimension `view(-1, T, d)` fits whatever the layout.
    turned = [np.asfortranarray(array) for array in _qkv(rng, (2, 3), 4, 3, 5, 6)]
    yield _attention_case("strides", "tensors that are not contiguous in memory", turned)
    q, k, v = _qkv(rng, (2, 1, 3), 17, 19, 3, 5)
    # q doubled, so that some weights are far below 1/1000 and still count.
    yield _attention_case("three leading", "three leading dimensions, nineteen keys", [2 * q, k, v], grad="")
    yield from _extremes()


def _attention_companions(rng: np.random.Generator, batch: list[np.ndarray]) -> Iterator[Case]:
    """The batch changed in one respect, for the properties that need a pair of cases."""
    q, k, v = batch
    order = [3, 0, 4, 2, 1]
    reordered = [q, k[:, order], v[:, order]]
    yield _attention_case("permuted", "a batch of two, keys and values reordered alike", reordered, grad="")
    other = [array.copy() for array in batch]
    for array in other:
        array[0] = rng.normal(size=array[0].shape)
    yield _attention_case("item changed", "a batch of two, its first item replaced", other, grad="")
    identity = np.broadcast_to(np.eye(5), (2, 5, 5)).copy()
    yield _attention_case("identity", "a batch of two, v = identity", [q, k, identity], grad="")


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


PROPERTIES = (
    Property("each row of weights sums to 1", rows_sum_to_one),
    Property("the order of keys and values does not matter", order_of_keys, ("batch", "permuted")),
    Property("items of a batch do not meet", items_apart, ("batch", "item changed")),
    Property("v = identity returns the weights", identity_recovers, ("identity",)),
)
MISTAKES = (
    *mistakes(attention_with, *SHARED, "SM4", "SM5", "AB16", "NT25", "NT27", "NT30", "TT4"),
    Mistake("SM2", attention_with("SM2", "dim 0")),
    Mistake("SM2", attention_with("SM2", "dim 1")),
    Mistake("BW3", _through_numpy),
    Mistake("BW3", _output_detached),
    Mistake("SM3", attention_with("SM3", "row maximum")),
    Mistake("NT25", attention_with("NT25", "mixed")),
)

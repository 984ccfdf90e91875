"""Lesson 10: the inputs of both exercises, and what every right answer has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.model import Case, Property, Tensor

Arrays = list[np.ndarray]
ROOM = {"stage": "extremes", "rtol": 2e-3, "atol": 2e-3}  # float32 numbers near 10,000 are 0.001 apart
ORDER = [3, 0, 4, 2, 1]  # in which the keys of the case 'batch' come in the case 'permuted'


def _case(key: str, title: str, arrays: Arrays, grad: str | tuple[int, ...] = "all", **fields: Any) -> Case:
    """grad: 'all', '' or the positions of the inputs that require grad."""
    wanted = range(len(arrays)) if grad == "all" else grad or ()
    return Case(key, title, tuple(Tensor(array, requires_grad=i in wanted) for i, array in enumerate(arrays)), **fields)


def _changed(rng: np.random.Generator, batch: Arrays) -> Iterator[Case]:
    """The case 'batch' changed in one respect, for the properties that need a pair of cases."""
    query, keys, *learnt = batch
    yield _case("permuted", "a batch of two, its keys in another order", [query, keys[:, ORDER], *learnt], "")
    other_query, other_keys = query.copy(), keys.copy()
    other_query[0], other_keys[0] = rng.normal(size=query[0].shape), rng.normal(size=keys[0].shape)
    yield _case("item changed", "a batch of two, its first item replaced", [other_query, other_keys, *learnt], "")
    asked = rng.normal(size=query.shape)
    yield _case("query changed", "a batch of two, other queries and the same keys", [asked, keys, *learnt], "")


def _general(draw: Any, rng: np.random.Generator) -> Iterator[Case]:
    """What both exercises are tried with; draw(B, T, d_q, d_h, d_a) gives arrays."""
    batch = draw(2, 5, 3, 4, 6)
    yield _case("batch", "a batch of two, every size different", batch)
    yield _case("square", "as many keys as items, all widths equal", draw(4, 4, 3, 3, 3))
    yield _case("square again", "three keys, three items, widths of five", draw(3, 3, 5, 5, 5), "")
    yield _case("widths alike", "a batch of two, six keys, all widths equal", draw(2, 6, 4, 4, 4), "")
    yield _case("seen-again", "a batch of two again, new numbers", draw(2, 5, 3, 4, 6))
    yield from _changed(rng, batch)
    yield _case("float32", "float32 inputs", [array.astype(np.float32) for array in draw(3, 4, 5, 2, 7)])
    yield _case("one key", "a single key", draw(3, 1, 4, 5, 2), "")
    yield _case("one item", "a batch of one", draw(1, 6, 2, 3, 4), "")
    yield _case("many items", "more items than keys", draw(5, 2, 4, 3, 6), "")
    turned = [np.asfortranarray(array) for array in draw(2, 3, 4, 6, 5)]
    yield _case("strides", "tensors that are not contiguous in memory", turned, (0,))
    # Enough keys for blocks of 16, and items enough that some item has its largest score in a later block.
    yield _case("many keys", "seven items of 37 keys", draw(7, 37, 4, 10, 9), "", show=False)


def additive_cases(rng: np.random.Generator) -> Iterator[Case]:
    def draw(b: int, t: int, d_q: int, d_h: int, d_a: int) -> Arrays:
        return [rng.normal(size=size) for size in ((b, d_q), (b, t, d_h), (d_q, d_a), (d_h, d_a), (d_a,))]

    keys = np.array([[[1.0, 0], [0, 1], [0, 0]]])  # a key of zeros is a key like any other
    learnt = [np.array([[1.0, 0]]), np.array([[1.0, 0], [0, 1]]), np.array([1.0, 2])]
    yield _case("small", "one query 0, three keys, whole numbers", [np.array([[0.0]]), keys, *learnt], "")
    yield _case("small, query 2", "the same keys, asked by the query 2", [np.array([[2.0]]), keys, *learnt], "")
    yield from _general(draw, rng)
    yield from _large_additive()


def _large_additive() -> Iterator[Case]:
    """Scores of up to ±10,000 that float32 holds exactly: every tanh is ±1, v is whole or ends in a quarter."""
    signs = np.array([[1.0, 1, 1], [1, 1, -1], [1, -1, 1], [1, 1, 1]])
    # One sentence far above 0, one far below, one whose second key stands alone on top: not first, last, in the middle or below.
    keys = np.stack([signs, signs * [-1, 1, 1], signs * [[-1, 1, 1], [1, 1, 1], [-1, 1, 1], [-1, 1, 1]]])
    # exp of what stands in the tanh overflows float64.
    w_query, w_key = np.array([[0.0, 0, 0], [10, 0, 0]]), 800 * np.eye(3)
    query = np.array([[1.0, 1], [-1, -1], [2, 0]])
    for name, v in (("10,000", [9998.0, 1, 0.5]), ("9000", [9000.0, 0.25, 0.5]), ("1000", [1000.0, -1, 0.75])):
        arrays = [query, keys, w_query, w_key, np.array(v)]
        if name == "9000":  # of a query's part so large, a sum outside tanh leaves nothing of the keys' part
            arrays = [array.astype(np.float32) for array in (query, keys, 1e11 * w_query, w_key, arrays[-1])]
        yield _case(f"large {name}", f"scores near ±{name}", arrays, "", **ROOM)
    apart = [array.astype(np.float32) for array in (query[2:], keys[2:, :3], w_query, 20 * np.eye(3), np.array([9000.0, 1, 2]))]
    yield _case("far apart", "scores near −9000, 9000 and −9000 in one sentence, with gradients", apart, **ROOM)


def luong_cases(rng: np.random.Generator) -> Iterator[Case]:
    def draw(b: int, t: int, d_q: int, d_h: int, d_a: int) -> Arrays:
        return [rng.normal(size=size) for size in ((b, d_q), (b, t, d_h), (d_q, d_h))]

    keys = np.array([[[1.0, 0], [0, 1], [0, 0]]])  # a key of zeros is a key like any other
    w = np.array([[1.0, -1], [0, 2], [1, 0]])
    yield _case("small", "one query, three keys, whole numbers", [np.array([[1.0, 1, 0]]), keys, w], "")
    yield _case("small, other query", "the same keys, asked by another query", [np.array([[0.0, 0, 2]]), keys, w], "")
    yield from _general(draw, rng)
    yield from _large_luong()


def _large_luong() -> Iterator[Case]:
    """Scores of up to ±10,000 that float32 holds exactly: products of whole numbers."""
    # One sentence far above 0, one far below, one whose second key stands alone on top: not first, last, in the middle or below.
    above, below = [[100.0, 0, 1], [100, 1, 0], [100, 0, 1]], [[-100, 0, 1], [-100, 1, 0], [-100, 1, 1]]
    apart = [[-100, 0, 1], [100, 1, 0], [0, 0, 1]]
    keys, query = np.array([above, below, apart]), np.array([[100.0, 1], [100, 2], [100, 3]])
    for name, scale in (("10,000", 1.0), ("5000", 0.5), ("2500", 0.25)):
        w = np.array([[scale, 0, 0], [0, 1, 2]])
        arrays = [query, keys, w]
        if name == "5000":
            arrays = [array.astype(np.float32) for array in arrays]
        yield _case(f"large {name}", f"scores near ±{name}", arrays, "", **ROOM)
    arrays = [array.astype(np.float32) for array in (query[2:], keys[2:], 0.9 * np.eye(2, 3))]
    yield _case("far apart", "scores near −9000, 9000 and 0 in one sentence, with gradients", arrays, **ROOM)


def rows_sum_to_one(case: Case, parts: dict[str, np.ndarray]) -> str | None:
    """None where each item's weights sum to 1."""
    sums = parts["weights"].sum(axis=-1)
    if np.allclose(sums, 1, atol=1e-4):
        return None
    return f"The weights of an item sum to {sums.flat[np.abs(sums - 1).argmax()]:.6g}."  # of 1.0002 four digits would say 1


def order_of_keys(case: Case, parts: dict[str, np.ndarray], other: Case, changed: dict[str, np.ndarray]) -> str | None:
    """None where the weights moved with their keys and the context stayed."""
    moved = np.abs(parts["weights"][:, ORDER] - changed["weights"]).max()
    if moved > 1e-4:
        return f"The keys came in another order, and the weights did not move with them (difference {moved:.4g})."
    gap = np.abs(parts["context"] - changed["context"]).max()
    return None if gap < 1e-4 else f"Another order of the keys changed the context by up to {gap:.4g}."


def items_apart(case: Case, parts: dict[str, np.ndarray], other: Case, changed: dict[str, np.ndarray]) -> str | None:
    """None where replacing item 0 of a batch left item 1 as it was."""
    gap = max(float(np.abs(parts[name][1] - changed[name][1]).max()) for name in ("context", "weights"))
    return None if gap < 1e-4 else f"Replacing item 0 of the batch changed item 1 by up to {gap:.4g}."


def query_matters(case: Case, parts: dict[str, np.ndarray], other: Case, changed: dict[str, np.ndarray]) -> str | None:
    """None where another query gave other weights."""
    gap = np.abs(parts["weights"] - changed["weights"]).max()
    return None if gap > 1e-3 else f"Other queries on the same keys changed no weight by more than {gap:.1g}."


def one_key(case: Case, parts: dict[str, np.ndarray]) -> str | None:
    """None where a single key is the context."""
    gap = np.abs(parts["context"] - case.args[1].array[:, 0]).max()
    return None if gap < 1e-4 else f"With a single key the context differs from it by up to {gap:.4g}."


PROPERTIES = (
    Property("the weights of each item sum to 1", rows_sum_to_one),
    Property("weights move with their keys, and the context stays", order_of_keys, ("batch", "permuted")),
    Property("items of a batch do not meet", items_apart, ("batch", "item changed")),
    Property("another query looks elsewhere", query_matters, ("batch", "query changed")),
    Property("a single key is the context", one_key, ("one key",)),
)

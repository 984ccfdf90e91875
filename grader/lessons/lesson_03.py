"""Lesson 03: projections and attention for a sentence, a batch, a batch of heads; then by einsum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from grader.lessons.lesson_03_mistakes import LIKELY_IN_PAIRS, Arrays, attention, by_einsum, combine, project
from grader.lessons.lesson_03_texts import TEXTS
from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, Mistake, Part, Property
from grader.seen import flag, numbers

Parts = dict[str, np.ndarray]

# ---- cases --------------------------------------------------------------------------------------------------------


def _projected(rng: np.random.Generator, x_shape: tuple[int, ...], d_k: int, d_v: int) -> Arrays:
    d_model = x_shape[-1]
    return tuple(_short(rng, shape) for shape in (x_shape, (d_model, d_k), (d_model, d_k), (d_model, d_v)))


def _short(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Standard normal numbers of one decimal (and no −0), so that a failing case can be followed by hand."""
    return rng.normal(size=shape).round(1) + 0.0


def project_cases(rng: np.random.Generator) -> Iterator[Case]:
    small = ([[1, 0], [1, 2], [3, 1]], [[1, 0, 2, 1], [0, 1, 1, 3]], [[2, 1, 0, 1], [1, 1, 4, 0]],
             [[1, 2, 3, 4, 5], [10, 20, 30, 40, 50]])  # fmt: skip
    yield Case("small", "one sentence of three tokens in whole numbers", tuple(np.array(a, dtype=float) for a in small))
    batch = _projected(rng, (2, 5, 3), 4, 6)
    yield Case("batch", "two sentences of five tokens", batch)
    changed = batch[0].copy()
    changed[1, 2] += 1 + _short(rng, (3,)) ** 2  # every number of the token changes
    yield Case("one-token-changed", "the same batch with one token changed", (changed, *batch[1:]))
    yield Case("seen-again", "the same shapes, new numbers", _projected(rng, (2, 5, 3), 4, 6))
    yield Case("heads", "two leading dimensions", _projected(rng, (2, 3, 5, 4), 6, 7))
    yield Case("heads-again", "two leading dimensions, other sizes", _projected(rng, (3, 2, 4, 5), 7, 1))
    yield Case("long", "one sentence, many more tokens than features", _projected(rng, (19, 2), 3, 5))
    yield Case("one-token", "one sentence of one token", _projected(rng, (1, 1, 4), 3, 2))
    yield Case("square", "square weights", _projected(rng, (4, 4), 4, 4))
    yield Case("square-batch", "a batch with square weights", _projected(rng, (2, 3, 4), 4, 4))
    yield Case("square-heads", "two leading dimensions, square weights", _projected(rng, (2, 3, 4, 5), 5, 5))
    yield Case("whole", "arrays of whole numbers",
               tuple(rng.integers(-4, 5, size=shape) for shape in ((3, 4, 2), (2, 5), (2, 5), (2, 6))))
    yield Case("float32", "float32 inputs", tuple(a.astype(np.float32) for a in _projected(rng, (3, 2, 6), 5, 4)))
    # Whole numbers meet fractions of many decimals: neither the type of x nor a rounding may stay in the result.
    by_name = {"w_v": rng.normal(size=(3, 6)), "w_k": rng.normal(size=(3, 5)), "w_q": rng.normal(size=(3, 5)),
               "x": rng.integers(-4, 5, size=(2, 4, 3))}  # fmt: skip
    yield Case("by-name", "arguments given by name, the tokens in whole numbers", kwargs=by_name)


def _drawn(rng: np.random.Generator, lead: tuple[int, ...], t_q: int, t_k: int, d_k: int, d_v: int) -> Arrays:
    return tuple(_short(rng, (*lead, *shape)) for shape in ((t_q, d_k), (t_k, d_k), (t_k, d_v)))


def _whole(rng: np.random.Generator, lead: tuple[int, ...], t_q: int, t_k: int, d_k: int, d_v: int) -> Arrays:
    """q, k, v of integers, the values far enough apart for a truncated output to show."""
    q, k = (rng.integers(-1, 2, size=(*lead, t, d_k)) for t in (t_q, t_k))
    return q, k, rng.integers(-9, 10, size=(*lead, t_k, d_v))


def _near(rng: np.random.Generator, centre: np.ndarray, t_k: int, d_v: int) -> Arrays:
    """q, k, v whose scaled scores lie within ±6 of each query's centre, of shape (..., T_q).

    d_k is 4 and q and k are whole numbers, so that the scores are exact in float32, too. Centres are multiples of 50.
    """
    lead = centre.shape[:-1]
    q = rng.integers(-2, 3, size=(*centre.shape, 4)).astype(float)
    k = rng.integers(-2, 3, size=(*lead, t_k, 4)).astype(float)
    q[..., 0], k[..., 0] = centre / 50, 100  # q0 k0 / sqrt(4) = centre
    return q, k, _short(rng, (*lead, t_k, d_v))


def _table() -> Arrays:
    """The three-token table of lesson 01."""
    return (np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]),
            np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]]))  # fmt: skip


def _two_queries() -> Arrays:
    """Two queries, three keys, d_k 4 (so that the scale is 2) and five numbers a value."""
    return (np.array([[1.0, 0.0, 2.0, 1.0], [0.0, 3.0, 1.0, 0.0]]),
            np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], [2.0, 0.0, 1.0, 0.0]]),
            np.array([[10.0, 0.0, 0.0, 1.0, 2.0], [0.0, 10.0, 0.0, 3.0, 4.0], [0.0, 0.0, 10.0, 5.0, 6.0]]))  # fmt: skip


def _batches(rng: np.random.Generator) -> Iterator[Case]:
    """Cases of three dimensions, for both attention exercises."""
    q, k, v = _drawn(rng, (2,), 3, 5, 4, 6)
    yield Case("batch", "two sentences, three queries, five keys", (q, k, v))
    order = np.array([3, 0, 4, 2, 1])
    yield Case("permuted", "the same batch, keys and values in another order", (q, k[:, order], v[:, order]))
    other = [array.copy() for array in (q, k, v)]
    for array in other:
        array[0] = _short(rng, array[0].shape)
    yield Case("item-0-changed", "the same batch with another item 0", tuple(other))
    yield Case("seen-again", "the same shapes, new numbers", _drawn(rng, (2,), 3, 5, 4, 6))
    q, k, _ = _drawn(rng, (3,), 2, 5, 4, 1)
    yield Case("identity", "the identity matrix as v", (q, k, np.tile(np.eye(5), (3, 1, 1))))
    yield Case("one-key", "a single key", _drawn(rng, (2,), 4, 1, 3, 5))
    yield Case("one-query", "a single query", _drawn(rng, (3,), 1, 5, 4, 2))
    q, k, v = _drawn(rng, (1,), 5, 19, 4, 3)
    k[:, -3:] = (2 * q[:, :3]).round(1)  # what the first queries look for comes last, so that a running maximum has to grow
    yield Case("one-sentence", "a batch of one sentence with nineteen keys", (q, k, v))
    yield Case("square", "batch, queries, keys and features of equal size", _drawn(rng, (4,), 4, 4, 4, 4))
    yield Case("whole", "arrays of whole numbers", _whole(rng, (2,), 4, 3, 5, 6))
    yield Case("float32", "float32 inputs", tuple(a.astype(np.float32) for a in _drawn(rng, (2,), 5, 3, 6, 4)))
    q, k, v = _drawn(rng, (2,), 6, 3, 5, 4)
    layout = tuple(np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2) for a in (q, k, v))
    yield Case("layout", "arrays that lie transposed in memory", layout)
    q, k, v = _drawn(rng, (2,), 4, 6, 3, 5)
    yield Case("negative", "every score is negative", (np.abs(q), -np.abs(k), -np.abs(v)))


def _extremes(rng: np.random.Generator) -> Iterator[Case]:
    """Large scores of one sign (a softmax without a maximum), then rows far apart (one maximum for all)."""
    for key, title, centre, t_k, d_v in (
        ("large", "scores near 1,000", np.full((2, 3), 1000.0), 5, 6),
        ("large-negative", "scores near −1,000 and near −400", np.array([[-1000.0, -400.0, -1000.0]] * 2), 4, 5),
        ("rows-apart", "a row of scores near 1,000 beside one near −1,000", np.array([[1000.0, -1000.0]]), 3, 5),
        ("items-apart", "an item with scores near 9,900 beside one near −9,900",
         np.array([[9900.0] * 3, [-9900.0] * 3]), 5, 6),
        ("mixed", "rows of scores a thousand apart in each item", np.array([[0.0, -1000.0, 1000.0]] * 2), 4, 6),
    ):  # fmt: skip
        yield Case(key, title, _near(rng, centre, t_k, d_v), stage="extremes")
    far = _near(rng, np.array([[-1000.0, 1000.0, 0.0]]), 4, 2)
    yield Case("mixed-float32", "rows of scores a thousand apart in float32", tuple(a.astype(np.float32) for a in far),
               stage="extremes")


def _keys_apart(rng: np.random.Generator, lead: tuple[int, ...]) -> Arrays:
    """Two queries and five keys: in each row some scaled scores near 9,900 and some near −9,900, the first key's among either."""
    q, k, v = _near(rng, np.tile([9900.0, -9900.0], (*lead, 1)), 5, 3)
    k[..., 0] *= [-1, 1, 1, -1, 1]
    return q, k, v


def attention_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("table", "the three-token table of lesson 01", _table())
    yield Case("small", "one sentence, two queries, three keys", _two_queries())
    yield from _batches(rng)
    yield Case("heads", "two sentences with three heads each", _drawn(rng, (2, 3), 4, 5, 6, 7))
    q, k, v = _drawn(rng, (1, 1), 3, 2, 5, 4)
    yield Case("one-head", "two leading dimensions of size one, whole numbers in q alone", (np.rint(2 * q).astype(int), k, v))
    yield Case("square-heads", "two leading dimensions, equal sizes", _drawn(rng, (3, 3), 3, 3, 3, 3))
    yield Case("whole-matrix", "whole numbers, no batch", _whole(rng, (), 2, 4, 3, 5))
    yield Case("whole-heads", "whole numbers, two leading dimensions", _whole(rng, (2, 3), 5, 4, 6, 1))
    yield Case("by-name", "arguments given by name",
               kwargs=dict(zip(("v", "k", "q"), reversed(_drawn(rng, (2,), 4, 3, 6, 5)), strict=True)))
    yield from _extremes(rng)
    yield Case("large-matrix", "rows of scores far apart without a batch",
               _near(rng, np.array([-1000.0, 1000.0]), 3, 5), stage="extremes")
    yield Case("large-heads", "rows of scores far apart with two leading dimensions",
               _near(rng, np.array([[[9900.0, -9900.0]] * 3] * 2), 4, 5), stage="extremes")
    yield Case("keys-apart", "scores near 9,900 and near −9,900 in one row", _keys_apart(rng, ()), stage="extremes")


def einsum_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("table", "the three-token table of lesson 01 as a batch of one", tuple(a[None] for a in _table()))
    yield Case("small", "two queries and three keys as a batch of one, in whole numbers",
               tuple(a[None].astype(int) for a in _two_queries()))  # fmt: skip
    yield from _batches(rng)
    yield Case("whole-again", "whole numbers, other sizes", _whole(rng, (3,), 2, 6, 4, 5))
    yield Case("by-einsum", "two queries, three keys, twice, each result of np.einsum changed in turn",
               tuple(_short(rng, (2, *shape)) for shape in ((2, 4), (3, 4), (3, 5))), probe="lesson_03.by_einsum",
               reading=read_einsum)  # fmt: skip
    yield from _extremes(rng)
    yield Case("keys-apart", "scores near 9,900 and near −9,900 in one row", _keys_apart(rng, (1,)), stage="extremes")


def read_einsum(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The result, and whether the calls of np.einsum on which it depends do the work of both products."""
    result, adds = numbers(parts["result"]), numbers(parts["multiply-adds"]).tolist()
    others = [numbers(part, result.shape) for part in parts["with another result"].items]
    moved = [np.abs(other - result).max() > 1e-3 * np.abs(result).max() for other in others]
    done = sum(count for i, count in enumerate(adds) if i >= len(moved) or moved[i])
    q, k, v = (value.shape for value in case.args)
    return {"result": parts["result"], "both products come from np.einsum": flag(done >= q[0] * q[1] * k[1] * (q[2] + v[2]))}


# ---- properties ---------------------------------------------------------------------------------------------------


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.allclose(one, other, rtol=1e-4, atol=1e-4))


def _each_token_alone(case_1: Case, before: Parts, case_2: Case, after: Parts) -> str | None:
    kept = ~(case_1.args[0] != case_2.args[0]).any(axis=-1)
    moved = [name for name in before if not _same(before[name][kept], after[name][kept])]
    if not moved:
        return None
    return f"only token 2 of item 1 changed, and other rows of {' and '.join(moved)} changed with it."


def _rows_are_weights(case: Case, parts: Parts) -> str | None:
    return _rows_sum_to_1(parts["weights"], "weights")


def _identity_rows(case: Case, parts: Parts) -> str | None:
    return _rows_sum_to_1(parts["result"], "output (with v the identity it is the weights)")


def _rows_sum_to_1(weights: np.ndarray, name: str) -> str | None:
    if (weights < -1e-6).any():
        return f"the smallest number of {name} is {weights.min():.4g}."
    sums = weights.sum(axis=-1)
    off = np.abs(sums - 1)
    if off.max() <= 1e-3:
        return None
    worst = tuple(int(i) for i in np.unravel_index(off.argmax(), sums.shape))
    return f"Row {worst if len(worst) > 1 else worst[0]} of {name} sums to {sums[worst]:.4g}."


def _item_1_alone(case_1: Case, before: Parts, case_2: Case, after: Parts) -> str | None:
    for name, array in before.items():
        if not _same(array[1], after[name][1]):
            gap = _gap(array[1], after[name][1])
            return f"item 1 was the same both times, and its {_said(name)} changed by up to {gap}."
    return None


def _order_of_keys(case_1: Case, before: Parts, case_2: Case, after: Parts) -> str | None:
    name = next(iter(before))
    if _same(before[name], after[name]):
        return None
    return f"keys and values moved together, and the output changed by up to {_gap(before[name], after[name])}."


def _said(name: str) -> str:
    return "output" if name == "result" else name


def _gap(one: np.ndarray, other: np.ndarray) -> str:
    return f"{np.abs(one - other).max():.4g}"


def _identity_gives_weights(case: Case, parts: Parts) -> str | None:
    if _same(parts["output"], parts["weights"]):
        return None
    return f"output and weights differ by up to {_gap(parts['output'], parts['weights'])}."


_ALONE = Property("another item 0 leaves item 1 as it was", _item_1_alone, ("batch", "item-0-changed"))
_UNORDERED = Property(
    "the order of the keys, with their values, makes no difference", _order_of_keys, ("batch", "permuted")
)
_IDENTITY = Property("with the identity as v the output is the weights", _identity_gives_weights, ("identity",))

# ---- the lesson ---------------------------------------------------------------------------------------------------

_PROJECTION = Exercise(
    name="project_qkv",
    task="Project every token of x to its query, its key and its value.",
    points=1,
    minutes=4,
    parts=("q", "k", "v"),
    cases=project_cases,
    mistakes=(
        *mistakes(project, "AB1", "AB2", "AB3", "AB4", "AB5", "AB6", "AB7", "AB8", "AB9", "AB25", "AB26", "AB27", "AB32"),
        *(Mistake("AB1", project(f"AB1 {way}")) for way in ("by inner", "by dot", "by einsum", "of w_q", "of w_k", "of w_v")),
        Mistake("AB8", project("AB8 by einsum")),
        Mistake("AB25", project("AB25 by einsum")),
    ),
    combine=combine(project),
    forbids=("attention",),
    properties=(
        Property("each token is projected by itself", _each_token_alone, ("batch", "one-token-changed")),
    ),
    hints=(
        "One token is a vector of d_model numbers, and its query `x[b, t] @ w_q` has d_k. What shape do the queries "
        "of all tokens have, and which axis of x does the product sum over?",
        "`@` treats all axes of x but the last two as a stack of matrices, and multiplies each matrix of the stack "
        "by the same w_q. So nothing has to be looped over, reshaped or transposed.",
        "```python\nq = x @ w_q\nk = ____\nv = ____\nreturn q, k, v\n```",
    ),
)

_ATTENTION = Exercise(
    name="scaled_dot_product_attention",
    task="Compute attention and its weights for any number of leading dimensions, none included.",
    points=3,
    minutes=12,
    parts=("output", "weights"),
    cases=attention_cases,
    mistakes=(
        *mistakes(
            attention, "SM1", "SM2", "SM3", "SM4", "SM5", "SM6", "SD1", "SD2", "SD5", "SD6", "SD8", "AB8", "AB10",
            "AB11", "AB12", "AB13", "AB14", "AB15", "AB16", "AB17", "AB18", "AB19", "AB20", "AB21", "AB22", "AB23",
            "AB25", "AB28", "AB29", "AB30", "AB31", "SX23", "SX25", "SX26", "TT9", "TT11", "TT31",
        ),
        Mistake("SM3", attention("SM3 of a matrix")),
        Mistake("SM3", attention("SM3", "of the sum alone")),
        Mistake("SM3", attention("SM3 of a matrix", "of the sum alone")),
        Mistake("SM5", attention("SM5", "by math.exp")),
        Mistake("SM5", attention("SM5", "by math.exp into an array")),
        Mistake("SD6", attention("SD6 of the output")),
        Mistake("SD8", attention("SD8 by einsum")),
        Mistake("SD8", attention("SD8 by index")),
        Mistake("AB22", attention("AB22 by einsum")),
        Mistake("SM4", attention("SM4 of both")),
        Mistake("SM6", attention("SM6 of an item")),
        Mistake("AB8", attention("AB8 by einsum")),
        Mistake("AB25", attention("AB25 by einsum")),
        Mistake("AB28", attention("AB28 by len")),
    ),  # fmt: skip
    combine=combine(attention, *LIKELY_IN_PAIRS),
    forbids=("attention",),
    properties=(
        Property("each row of weights sums to 1, none negative", _rows_are_weights), _ALONE, _UNORDERED, _IDENTITY,
    ),  # fmt: skip
    hints=(
        "Four steps: scores, scale, softmax, weighted sum. Write the shape of each result beside it. Which axis of "
        "the weights belongs to the keys, whatever stands in front?",
        "Count axes from the end. `k.swapaxes(-1, -2)` has shape (..., d_k, T_k); the keys are axis -1 of the "
        "scores, and both the maximum and the sum of softmax run along it with `keepdims=True`.",
        "```python\nscores = q @ k.swapaxes(____, ____) / math.sqrt(q.shape[____])\n"
        "exps = np.exp(scores - scores.max(axis=____, keepdims=True))\nweights = exps / ____\n"
        "return ____, weights\n```",
    ),
)

_EINSUM = Exercise(
    name="attention_einsum",
    task="Compute attention with both products by `np.einsum`, and return the output alone.",
    points=2,
    minutes=8,
    cases=einsum_cases,
    mistakes=(
        *mistakes(
            by_einsum, "SM1", "SM2", "SM3", "SM4", "SM5", "SM6", "SD1", "SD2", "SD5", "SD6", "SD8", "AB12", "AB13",
            "AB14", "AB20", "AB22", "AB23", "AB24", "AB28", "AB29", "AB30", "AB31", "SX23", "SX25", "SX26", "TT9", "TT11", "TT31",
        ),
        Mistake("SM3", by_einsum("SM3 of a matrix")),
        Mistake("SM3", by_einsum("SM3", "of the sum alone")),
        Mistake("SM3", by_einsum("SM3 of a matrix", "of the sum alone")),
        Mistake("AB28", by_einsum("AB28 by len")),
        Mistake("SM4", by_einsum("SM4 of both")),
        Mistake("SM6", by_einsum("SM6 of an item")),
    ),  # fmt: skip
    combine=combine(by_einsum, *LIKELY_IN_PAIRS),
    forbids=("attention",),
    requires=("einsum_products",),
    properties=(
        Property("with the identity as v each row of the output sums to 1", _identity_rows, ("identity",)), _ALONE,
        _UNORDERED,
    ),  # fmt: skip
    hints=(
        "Give each axis a letter: b, q, k, d for the scores. Which letter do q and k share and the scores lack?",
        "A letter that stands left of the arrow and not right of it is summed. The scores keep b, q and k; the "
        "output keeps b and q and takes the letter of v's last axis, so k is summed there.",
        "```python\nscores = np.einsum(\"bqd,b____->b____\", q, k) / math.sqrt(q.shape[-1])\n"
        "exps = np.exp(scores - scores.max(axis=-1, keepdims=True))\n"
        "weights = exps / exps.sum(axis=-1, keepdims=True)\n"
        "return np.einsum(\"____,____->____\", weights, v)\n```",
    ),
)

lesson = Lesson(
    name="03_scaled_dot_product_attention",
    title="Scaled dot-product attention, for a whole batch",
    question="How does one expression compute attention for every sentence of a batch at once?",
    outcome="compute attention for a whole batch, by matrix products and by einsum",
    texts=TEXTS,
    exercises=(_PROJECTION, _ATTENTION, _EINSUM),
)

"""Attention on tensors, with gradients for q, k and v."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, patch

from ...shared.library import ROW_MAXIMUM, batch_independence, invariant, rows_sum_to_1, softmax_by_hand
from ..shared import EXTREMES, attention_mistakes

ORDER = [3, 0, 4, 2, 1]  # in which the keys of the case 'batch' come in the case 'permuted'


def _case(key: str, title: str, arrays: list[np.ndarray], grad: str = "qkv", **fields: Any) -> Case:
    """grad: which of q, k and v require grad."""
    tensors = (Tensor(array, requires_grad=name in grad) for name, array in zip("qkv", arrays, strict=True))
    return Case(key, title, tuple(tensors), dtype=(arrays[0].dtype.name,), **fields)


def _large() -> Iterator[Case]:
    """Scores of up to ±10,000 that every stable order of operations gets right, in float32 too.

    Whole numbers and d_k = 4 keep the scores exact; each row is saturated or differs by whole halves.
    """
    q = np.array([[100.0, 0, 0, 0], [-100, 0, 0, 0]])
    k = np.array([[100.0, 0, 0, 0], [99, 0, 0, 0], [100, 0, 0, 0]])
    v = np.array([[1.0, 2, 3, 4, 5], [5, 4, 3, 2, 1], [0, 1, 0, -1, 0]])
    yield _case("large", "scores of ±5000 after scaling, a tie among them", [q, k, v], **EXTREMES)
    near = np.array([[100.0, 1, 0, 0], [100, 0, 1, 0], [100, 0, 0, 2]])
    large32 = [array.astype(np.float32) for array in (q + [[0, 1, 2, 1], [0, -1, 1, 1]], near, v)]
    yield _case("large float32", "scores near ±5000 that differ little, float32", large32, "", **EXTREMES)
    one_sided = np.array([[0.0, 0, 0, 0], [-100, 0, 0, 0], [-50, 0, 0, 0]])
    yield _case("one-sided", "scores from −5000 to 5000", [q, one_sided, v], "", **EXTREMES)
    heads = [np.stack(pair) for pair in ((q, -q), (k, -k), (v, v + 1))]
    yield _case("large batch", "a batch with scores of ±5000", heads, "", **EXTREMES)


@exercise(
    points=3, minutes=5, difficulty=2, result_names=("output", "weights"), result_type="tensor", forbids=("attention",)
)
class attention_torch:
    """Write lesson 03's attention on tensors, so that gradients flow to q, k and v."""

    def cases(rng):
        def draw(
            lead: tuple[int, ...], t_q: int, t_k: int, d_k: int, d_v: int, dtype: str = "float64"
        ) -> list[np.ndarray]:
            return [rng.normal(size=(*lead, *shape)).astype(dtype) for shape in ((t_q, d_k), (t_k, d_k), (t_k, d_v))]

        small = [
            np.array([[1.0, 0, 2, 0], [0, 1, 0, -1]]),
            np.array([[1.0, 1, 0, 0], [0, 2, 1, 1], [2, 0, 1, 0]]),
            np.array([[10.0], [0], [-5]]),
        ]  # d_k = 4, so that the scale is 2
        yield _case("small", "two queries, three keys, whole numbers", small, "")
        yield _case("small gradients", "two queries, three keys, whole numbers, with gradients", small)
        yield _case("square", "as many queries as keys", draw((), 3, 3, 4, 2))
        q, k, v = batch = draw((2,), 3, 5, 4, 6)
        yield _case("batch", "a batch of two", batch)
        yield _case("square batch", "a batch of three, as many queries as keys", draw((3,), 4, 4, 5, 2))
        yield _case("heads", "two leading dimensions", draw((2, 3), 5, 4, 6, 7))
        yield _case("square heads", "two leading dimensions, as many queries as keys", draw((3, 2), 4, 4, 5, 6), "")
        yield _case("float32", "float32 in, float32 out", draw((2,), 4, 3, 6, 5, "float32"))
        yield _case("seen-again", "a batch of two again, new numbers", draw((2,), 3, 5, 4, 6))
        yield _case("permuted", "a batch of two, keys and values reordered alike", [q, k[:, ORDER], v[:, ORDER]], "")
        other = [np.stack([rng.normal(size=array[0].shape), array[1]]) for array in batch]
        yield _case("item changed", "a batch of two, its first item replaced", other, "")
        yield _case("identity", "a batch of two, v = identity", [q, k, np.stack([np.eye(5)] * 2)], "")
        yield _case("keys only", "only k requires grad", draw((2,), 2, 4, 3, 5), "k")
        yield _case("one item", "a batch of one, one query, float32", draw((1,), 1, 4, 3, 2, "float32"), "")
        yield _case("one key", "a single key", draw((2,), 3, 1, 5, 4), "")
        # With one leading dimension `view(-1, T, d)` fits whatever the layout.
        turned = [np.asfortranarray(array) for array in draw((2, 3), 4, 3, 5, 6)]
        yield _case("strides", "tensors that are not contiguous in memory", turned)
        q, k, v = draw((2, 1, 3), 17, 19, 3, 5)
        # q doubled, so that some weights are far below 1/1000 and still count.
        yield _case("three leading", "three leading dimensions, nineteen keys", [2 * q, k, v], "")
        yield from _large()
        short = [np.ldexp(np.array(array, np.float32), exponent) for array, exponent in zip(small, (-20, 20, 0))]
        title = "queries of about 10⁻⁶ and keys of about 10⁶, float32"
        yield _case("lengths", title, short, "", stage="extremes")

    sums = rows_sum_to_1()
    order = invariant(
        "the order of keys and values does not matter",
        ("batch", "permuted"),
        "Reordering keys and values alike changed the output by up to {gap}.",
    )
    apart = batch_independence("batch", "item changed")

    @holds("v = identity returns the weights", cases=("identity",))
    def identity(case, parts):
        gap = np.abs(parts["output"] - parts["weights"]).max()
        return None if gap < 1e-4 else f"With v = identity the output differs from the weights by up to {gap:.4g}."

    hints = (
        "Which four lines of `attention_numpy` have a name of their own in torch, and over which dimension does softmax run?",
        "`k.transpose(-2, -1)` (or `k.mT`) swaps the last two dimensions, whatever comes before them; `torch.softmax(scores, dim=-1)` "
        "already subtracts each row's maximum. Stay in torch from q to the result: `.numpy()`, `.detach()`, `.data` and "
        "`torch.no_grad()` cut the graph.",
        "scores = q @ k.transpose(____, ____) / math.sqrt(____)\nweights = torch.softmax(scores, dim=____)\nreturn ____, weights",
    )

    mistakes = {
        **attention_mistakes(4),
        # The last one is what F.softmax does where no dim is given.
        "SM2": tuple(patch("dim=-1", f"dim={dim}") for dim in (0, 1, "0 if scores.ndim in (1, 3) else 1")),
        "SM4": softmax_by_hand(ROW_MAXIMUM, "e.sum(dim=-1)", 4),
        "SM4+SM5": softmax_by_hand("scores", "e.sum(dim=-1)", 4),
        "SM4+SM6": softmax_by_hand("scores - scores.max()", "e.sum(dim=-1)", 4),
        "NT9": (
            patch("(output, weights)", "(output.float(), weights.float())"),
            patch("scores, dim", "scores.double(), dim", "weights @ v", "weights @ v.double()"),
            patch("math.sqrt(q.shape[-1])", "torch.tensor([q.shape[-1]], dtype=torch.float64).sqrt()"),
        ),
        "AB16": (patch("k.transpose(-2, -1)", "k.T"), patch("transpose(-2, -1)", "transpose(1, 2)")),
    }

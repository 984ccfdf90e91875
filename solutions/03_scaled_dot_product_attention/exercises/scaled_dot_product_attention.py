"""Attention and its weights, whatever stands before the last two axes."""

import numpy as np

from grader.course.declare import Case, exercise, holds, patch

from ..cases import TABLE, TWO_QUERIES, batches, extremes, integer_qkv, keys_apart, qkv_with_scores, random_qkv
from ..shared import MISTAKES, ROOT, batch_independence, divided_by, key_order_invariance, row_at_fault, softmax_over

KEYS = "k.swapaxes(-1, -2)"
SCORES, OUTPUT = f"scores = q @ {KEYS} /", "output = weights @ v"
ONE_BY_ONE = """products = np.zeros((*q.shape[:-1], k.shape[-2]))
    for *at, i, j in np.ndindex(products.shape):
        products[*at, i, j] = q[*at][j] @ k[*at][i]
    scores = products /"""


def by_einsum(scores: str, output: str = "...qk,...kv->...qv"):
    return patch(
        SCORES, f"scores = np.einsum('{scores}', q, k) /", OUTPUT, f"output = np.einsum('{output}', weights, v)"
    )


@exercise(points=3, minutes=8, difficulty=2, result_names=("output", "weights"), forbids=("attention",))
class scaled_dot_product_attention:
    """Compute attention and its weights for any number of leading dimensions, none included."""

    def cases(rng):
        yield Case("table", "the three-token table of lesson 01", TABLE)
        yield Case("small", "one sentence, two queries, three keys", TWO_QUERIES)
        yield from batches(rng)
        yield Case("heads", "two sentences with three heads each", random_qkv(rng, (2, 3), 4, 5, 6, 7))
        q, k, v = random_qkv(rng, (1, 1), 3, 2, 5, 4)
        yield Case(
            "one-head",
            "two leading dimensions of size one, whole numbers in q alone",
            (np.rint(2 * q).astype(int), k, v),
        )
        yield Case("square-heads", "two leading dimensions, equal sizes", random_qkv(rng, (3, 3), 3, 3, 3, 3))
        yield Case("whole-matrix", "whole numbers, no batch", integer_qkv(rng, (), 2, 4, 3, 5))
        yield Case("whole-heads", "whole numbers, two leading dimensions", integer_qkv(rng, (2, 3), 5, 4, 6, 1))
        q, k, v = random_qkv(rng, (2,), 4, 3, 6, 5)
        yield Case("by-name", "arguments given by name", kwargs={"v": v, "k": k, "q": q})
        yield from extremes(rng)
        # 263 is prime: no block of more than one key divides it.
        for key, title, centre, t_k in (
            ("large-matrix", "rows of scores far apart without a batch, 263 keys", [-1000.0, 1000.0], 263),
            ("large-heads", "rows of scores far apart with two leading dimensions", [[[9900.0, -9900.0]] * 3] * 2, 4),
        ):
            arrays = qkv_with_scores(rng, np.array(centre), t_k, 5)
            yield Case(key, title, arrays, stage="extremes", show=t_k < 263)
        yield keys_apart(rng)

    @holds("each row of weights sums to 1, none negative")
    def rows(case, parts):
        return row_at_fault(parts["weights"], "weights")

    alone, order = batch_independence("output"), key_order_invariance("output")

    @holds("with the identity as v the output is the weights", cases=("identity",))
    def identity(case, parts):
        gap = np.abs(parts["output"] - parts["weights"]).max()
        return None if gap < 1e-4 else f"output and weights differ by up to {gap:.4g}."

    hints = (
        "Four steps: scores, scale, softmax, weighted sum. Write the shape of each result next to it. Which axis of the weights belongs "
        "to the keys, whatever comes before it?",
        "Count axes from the end. `k.swapaxes(-1, -2)` has shape (..., d_k, T_k); the keys are axis -1 of the scores, and both the "
        "maximum and the sum of softmax run along it with `keepdims=True`.",
        "```python\nscores = q @ k.swapaxes(____, ____) / math.sqrt(q.shape[____])\n"
        "exps = np.exp(scores - scores.max(axis=____, keepdims=True))\nweights = exps / ____\nreturn ____, weights\n```",
    )

    mistakes = {
        **MISTAKES,
        "SD6": (MISTAKES["SD6"], patch(f" / {ROOT}", "", OUTPUT, f"{OUTPUT} / {ROOT}")),
        "SD8": (patch("q @ k.swapaxes", "k @ q.swapaxes"), by_einsum("...qd,...kd->...kq"), patch(SCORES, ONE_BY_ONE)),
        "AB8": (
            patch("scores = q", "batch, queries, d_k = q.shape\n    scores = q"),
            by_einsum("bid,bjd->bij", "bqk,bkv->bqv"),
            patch("scores = q", "queries, d_k = q.shape\n    scores = q"),
            by_einsum("qd,kd->qk"),
        ),
        "SM2": (MISTAKES["SM2"], softmax_over(1), softmax_over(2)),
        "TT8": (*MISTAKES["TT8"], divided_by("math.sqrt(k.shape[1])")),
        "AB15": patch(KEYS, "k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])"),
        "AB16": (patch(KEYS, "k.T"), patch(KEYS, "k.transpose(0, 2, 1)")),
        "NT8": patch("(output, weights)", "(weights, output)"),
        "AB22": (
            patch(OUTPUT, "output = weights.swapaxes(-1, -2) @ v"),
            by_einsum("...qd,...kd->...qk", "...kq,...kv->...qv"),
        ),
        "TT3": patch(KEYS, "k"),
    }

"""Attention and its weights, whatever stands before the last two axes."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

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
        for key, title, centre, t_k in (
            ("large-matrix", "rows of scores far apart without a batch", [-1000.0, 1000.0], 3),
            ("large-heads", "rows of scores far apart with two leading dimensions", [[[9900.0, -9900.0]] * 3] * 2, 4),
        ):
            yield Case(key, title, qkv_with_scores(rng, np.array(centre), t_k, 5), stage="extremes")
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
        ),
        "AB10": mistake(
            softmax_over(1),
            says="Softmax ran along axis 1, counted from the front; it should run along the keys, the last axis, -1.",
            why="""Axis 1 of the scores is the keys in a matrix, the queries in a batch, the heads with two leading dimensions.
            Counted from the end, the keys are always axis -1.""",
        ),
        "AB11": mistake(
            softmax_over(2),
            says="Softmax ran along axis 2, which is the keys for three dimensions only; count from the end: axis -1.",
            why="Axis 2 of a matrix is an error, and with two leading dimensions it is the queries.",
        ),
        "AB14": (*MISTAKES["AB14"].ways, divided_by("math.sqrt(k.shape[1])")),  # letters for three axes only: AB12
        "AB34": mistake(
            patch(OUTPUT, "output = exps @ v"),
            says="The values were weighted by exponentials that were not divided by their sum; weight them by the weights.",
            why="""Each row of weights sums to 1, and so the output is an average of the values. The exponentials sum to something
            else in each row, and the output grows with the number of keys.""",
        ),
        "AB15": mistake(
            patch(KEYS, "k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])"),
            says="The keys were reshaped, which mixes numbers of different tokens; their last two axes should be swapped.",
            why="""`reshape` reads the numbers in their old order into a new shape: the first column of the result holds parts of
            several keys. `swapaxes(-1, -2)` turns each key into a column. Both have shape (d_k, T_k).""",
        ),
        "AB16": mistake(
            patch(KEYS, "k.T"),
            says="`k.T` reversed all axes, the batch axis too; only the last two should be swapped.",
            why="""A (2, 3, 4) array becomes (4, 3, 2), and the product fails. A (4,
            4, 4) array becomes (4, 4, 4), and the product is wrong without any error.
            `k.swapaxes(-1, -2)` or `k.mT` leaves the batch where it is.""",
            issue="flrngel/Self-Attentive-tensorflow#3",
        ),
        "AB17": mistake(
            patch(KEYS, "k.transpose(0, 2, 1)"),
            says="`transpose(0, 2, 1)` works for three axes only; swap the last two of any number: `swapaxes(-1, -2)`.",
            why="It is right for one batch axis. `swapaxes(-1, -2)` says the same for any number of leading dimensions.",
        ),
        "AB18": mistake(
            patch("(output, weights)", "(weights, output)"),
            says="The weights were returned before the output; (output, weights) is asked for.",
            why="Where T_k equals d_v no shape tells them apart, and a caller would take weights for output.",
        ),
        "AB19": mistake(
            patch("(output, weights)", "(output, scores)"),
            says="The scores were returned in place of the weights; return what softmax made of them.",
            why="Weights are what softmax gives: none is negative and each row sums to 1.",
        ),
        "AB39": mistake(
            patch("(output, weights)", "(output, exps)"),
            says="The output is right, but the exponentials came back in place of the weights; return them divided by their sum.",
            why="""`exps @ v / total` is the right output. A caller expects weights whose rows sum to 1, so these need the same
            division.""",
        ),
        "AB21": mistake(
            patch(OUTPUT, "output = (weights @ v).astype(v.dtype)"),
            says="The output was stored in an array of integers, which cuts off all decimals; store floats.",
            why="""`np.zeros_like(v)` takes the type of v. For whole-number inputs the averages are cut to whole numbers when they
            are stored. `np.zeros(shape)` holds floats.""",
        ),
        "AB22": mistake(
            patch(OUTPUT, "output = weights.swapaxes(-1, -2) @ v"),
            by_einsum("...qd,...kd->...qk", "...kq,...kv->...qv"),
            says="The weights were transposed before the product with v; each row of the output should be one query's average.",
            why="""Output row i is the sum over keys j of weights[i, j] · v[j]. Transposed, the sum runs over the queries. It runs
            without an error where T_q = T_k.""",
        ),
        "AB23": mistake(
            patch(KEYS, "k"),
            says="The keys were not transposed, so features are summed against tokens; swap the last two axes of k.",
            why="""The first product sums over d_k, the last axis of q and of k. `q @ k` sums over the last axis of q and the tokens
            of k; in letters, 'bid,bdj->bij' calls k's tokens d. Where T_k = d_k it runs and is wrong.""",
        ),
        "AB25": (patch("scores = q", "queries, d_k = q.shape\n    scores = q"), by_einsum("qd,kd->qk")),
    }

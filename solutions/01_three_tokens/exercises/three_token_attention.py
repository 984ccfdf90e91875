"""The four steps put together; most of what goes wrong in it goes wrong in one of them."""

from collections.abc import Iterator

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ...shared.library import mistakes_of, rows_sum_to_1
from ..shared import TABLE_K, TABLE_Q, TABLE_V, describe_difference, float32_normal, nonzero_integers
from .attention_scores import attention_scores
from .scale_scores import scale_scores
from .softmax_rows import softmax_rows
from .weighted_sum import weighted_sum


def _extremes(rng: np.random.Generator) -> Iterator[Case]:
    """Large scores; binary fractions and √d_k of 1, 2 or 4 keep them exact in float32, in whatever order it is done."""
    keys = 156 - np.array([[0.0], [1.0], [2.0]]) / 64
    yield Case(
        "large",
        "scores of ±10,000",
        (np.array([[64.0], [-64.0]]), keys, rng.normal(size=(3, 5))),
        stage="extremes",
        rtol=2e-3,
    )  # neighbouring float32 numbers near 10,000 are 1e-3 apart
    wide = np.zeros((2, 16))
    wide[:, 0], wide[0, 3], wide[1, 5] = (50.0, -50.0), 4.0, 8.0
    queries = np.zeros((3, 16))  # scaled scores of ±1,250, of ±500, and 1 and 2
    queries[:, 0], queries[2, 3], queries[2, 5] = (100.0, 40.0, 0.0), 1.0, 1.0
    yield Case(
        "large-wide", "scores of ±5,000 with d_k = 16", (queries, wide, rng.normal(size=(2, 4))), stage="extremes"
    )
    mixed = np.array(
        [[40.0, 0, 0, 1], [0, -40.0, 1, 0], [0, 0, 1, 0], [0, -10.0, 0, 1]]
    )  # exp(−400) is not 0, exp(−800) is
    keys = np.array([[80.0, 80, 2, 0], [80.0, 80, 0, 2], [-80.0, 80, 1, 1], [80.0, 80, 1, 0]])
    yield Case(
        "mixed",
        "a row from −3,200 to 3,200, one near −3,200 and one near −800",
        (mixed, keys, rng.normal(size=(4, 2))),
        stage="extremes",
    )
    floats = tuple(array.astype(np.float32) for array in (mixed[:3], keys * [-1, 1, 1, 1], rng.normal(size=(4, 6))))
    yield Case("large-float32", "float32 scores of ±3,200", floats, stage="extremes")


KEYS_FIRST = patch("attention_scores(Q, K)", "attention_scores(K, Q)")
AFTER_SCORES = "scaled = scale_scores(scores, Q.shape[1])\n    weights = softmax_rows(scaled)\n    output = weighted_sum(weights, V)"


@exercise(points=3, minutes=6, difficulty=2, result_names=("output", "weights"), forbids=("softmax", "attention"))
class three_token_attention:
    """Put the four steps together and return the output and the weights, for any sizes."""

    def cases(rng):
        q, k, v = rng.normal(size=(5, 4)), rng.normal(size=(7, 4)), rng.normal(size=(7, 3))
        yield Case("table", "the three-token table", (TABLE_Q, TABLE_K, TABLE_V))
        yield Case(
            "small",
            "two queries and three keys",
            (
                np.array([[1.0, 0, 2, 0], [0, -1, 0, 1]]),
                np.array([[2.0, 0, 0, 1], [0, 2, 1, 0], [1, 1, 1, 1]]),
                np.array([[1.0], [2.0], [4.0]]),
            ),
        )
        yield Case(
            "one-query",
            "a single query",
            (nonzero_integers(rng, 1, 3), nonzero_integers(rng, 4, 3), nonzero_integers(rng, 4, 2)),
        )
        yield Case(
            "one-key",
            "a single key: its value comes back",
            (nonzero_integers(rng, 3, 2), nonzero_integers(rng, 1, 2), nonzero_integers(rng, 1, 4)),
        )
        yield Case(
            "whole",
            "arrays of whole numbers",
            (rng.integers(-2, 3, (4, 3)), rng.integers(-2, 3, (5, 3)), rng.integers(-9, 10, (5, 2))),
        )
        yield Case("random", "five queries and seven keys", (q, k, v))
        yield Case("reversed", "the same with keys and values in reverse order", (q, k[::-1].copy(), v[::-1].copy()))
        yield Case("identity", "values that form the identity matrix", (q[:3], k, np.eye(7)))
        yield Case("square", "as many queries as keys", tuple(rng.normal(size=(4, n)) for n in (5, 5, 3)))
        yield Case(
            "more-queries",
            "more queries than keys",
            (rng.normal(size=(12, 18)), rng.normal(size=(2, 18)), rng.normal(size=(2, 5))),
        )
        yield Case(
            "float32",
            "float32 inputs",
            (float32_normal(rng, 3, 6), float32_normal(rng, 5, 6), float32_normal(rng, 5, 4)),
        )
        yield Case("seen-again", "shapes seen before, new numbers", tuple(rng.normal(size=a.shape) for a in (q, k, v)))
        yield Case(
            "by-name",
            "arguments given by name",
            kwargs={"Q": rng.normal(size=(2, 3)), "K": rng.normal(size=(13, 3)), "V": rng.normal(size=(13, 5))},
        )
        yield from _extremes(rng)

    sums = rows_sum_to_1()

    @holds("each output of the table sums to 10, as each row of V does", cases=("table",))
    def sums_to_ten(case, parts):
        sums = parts["output"].sum(axis=1)
        return None if np.allclose(sums, 10, atol=1e-3) else f"they sum to {np.array2string(sums, precision=4)}."

    @holds("reordering keys and values together changes no output", cases=("random", "reversed"))
    def order(case, parts, reverse, reversed_parts):
        return describe_difference(parts["output"], reversed_parts["output"]) or describe_difference(
            parts["weights"], reversed_parts["weights"][:, ::-1]
        )

    @holds("with the identity matrix as V the output equals the weights", cases=("identity",))
    def identity(case, parts):
        return describe_difference(parts["weights"], parts["output"])

    hints = (
        "Four functions above do one step each. In which order does the formula softmax(QKᵀ / √d_k) V use them?",
        "Scores, scaled, weights, output. d_k is the number of columns of Q (or K). The formula should work for any "
        "sizes, so take d_k from the shape. Return the pair (output, weights), in this order.",
        "```python\nscores = attention_scores(Q, K)\nscaled = scale_scores(scores, Q.shape[____])\n"
        "weights = ____(scaled)\nreturn ____(weights, V), weights\n```",
    )

    mistakes = {
        **mistakes_of(scale_scores, "SD1", "SD2", "SD5"),
        "SD6": tuple(
            patch(AFTER_SCORES, f"weights = {weights}\n    output = {output}")
            for weights, output in (
                ("scale_scores(softmax_rows(scores), Q.shape[1])", "weighted_sum(weights, V)"),
                ("softmax_rows(scores)", "scale_scores(weighted_sum(weights, V), Q.shape[1])"),
            )
        ),
        "SD8": (
            KEYS_FIRST,
            KEYS_FIRST + patch("weighted_sum(weights, V)", "np.einsum('qk,kv->qv', weights, V)"),
            *mistakes_of(attention_scores, "SD8")["SD8"],
        ),
        **mistakes_of(softmax_rows, "SM1", "SM3", "SM4", "SM6", "SX25"),
        # Of the other numbers than the mean that may be subtracted, only one case here tells.
        "SM5": mistakes_of(softmax_rows, "SM5")["SM5"][:4],
        **mistakes_of(attention_scores, "TT3"),
        "TT8": (patch("Q.shape[1]", "V.shape[1]"), *mistakes_of(scale_scores, "TT8")["TT8"]),
        **mistakes_of(scale_scores, "TT9", "TT10", "TT12"),
        **mistakes_of(softmax_rows, "TT14"),
        "NT8": patch("(output, weights)", "(weights, output)"),
        "HL1": patch("weighted_sum(weights, V)", "weighted_sum(weights, K)"),
        "SX51": patch(
            "weights = softmax_rows(scaled)",
            "exponentials = np.exp(scaled - scores.max(axis=1, keepdims=True))\n"
            "    weights = exponentials / exponentials.sum(axis=1, keepdims=True)",
        ),
        "TT54": mistake(
            *(patch("softmax_rows(scaled)", f"np.round(softmax_rows(scaled), {digits})") for digits in (2, 1, 3, 4)),
            says="The weights were rounded before the values were blended with them; round only what you print.",
            why="""Rounded weights no longer sum to 1, and the output takes the error over: [0.4011, 0.4011, 0.1978] and [0.40, 0.40, 0.20]
            give outputs that differ in the third digit.""",
        ),
        "TT41": patch(
            "scores = attention",
            "Q /= math.sqrt(Q.shape[1])\n    scores = attention",
            "scale_scores(scores, Q.shape[1])",
            "scores",
        ),
        "AB22": (
            patch("weighted_sum(weights, V)", "weighted_sum(weights.T, V)"),
            *mistakes_of(weighted_sum, "AB22")["AB22"][1:],
        ),
    }

"""Each output a blend of the values."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ..shared import TABLE_V, describe_difference, float32_normal


@exercise(points=1, minutes=3, difficulty=1, forbids=("softmax", "attention"))
class weighted_sum:
    """Add up the values, each multiplied by its weight: one output row per query."""

    def cases(rng):
        pick = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        yield Case(
            "small",
            "two queries and three keys",
            (np.array([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]), np.arange(12.0).reshape(3, 4) * 4),
        )
        yield Case(
            "pick", "weight 1 on one key", (pick.astype(int), np.array([[1.0, 2.5], [30.5, 40.0], [500.0, 600.5]]))
        )
        yield Case("table", "the first row of the three-token table, rounded", (np.array([[0.4, 0.4, 0.2]]), TABLE_V))
        yield Case(
            "as-they-are",
            "weights that do not sum to 1",
            (np.array([[2.0, -1.0, 0.0, 3.0], [0.5, 0, 0, 0.5]]), np.array([[1], [2], [-4], [8]])),
        )
        yield Case("one-key", "a single key", (np.array([[0.5], [2.0], [1.0]]), np.array([[3.0, -6.0]])))
        yield Case("whole", "arrays of whole numbers", (rng.integers(-3, 4, (2, 5)), rng.integers(-9, 10, (5, 3))))
        yield Case("random", "random weights and values", (rng.dirichlet(np.ones(7), 5), rng.normal(size=(7, 4))))
        yield Case("square", "as many queries as keys", (rng.dirichlet(np.ones(3), 3), rng.normal(size=(3, 5))))
        yield Case("tall", "more queries than keys", (rng.normal(size=(6, 2)), rng.normal(size=(2, 3))))
        yield Case("float32", "float32 inputs", (float32_normal(rng, 3, 4), float32_normal(rng, 4, 6)))
        yield Case(
            "seen-again", "shapes seen before, new numbers", (rng.dirichlet(np.ones(7), 5), rng.normal(size=(7, 4)))
        )
        yield Case(
            "by-name",
            "arguments given by name",
            kwargs={"weights": rng.dirichlet(np.ones(3), 4), "V": rng.normal(size=(3, 2))},
        )

    @holds("weight 1 on one key returns that key's value", cases=("pick",))
    def picks_one(case, parts):
        return describe_difference(case.args[1][1:], parts["result"])

    hints = (
        "A row of weights has one number for each key. What has V one row for?",
        "(n_q, n_k) times (n_k, d_v): the keys lie inside and are summed away. Nothing has to be transposed.",
        "```python\nreturn ____ @ ____\n```",
    )

    mistakes = {
        "AB22": (
            patch("weights @ V", "weights.T @ V"),
            patch("weights @ V", "np.einsum('kq,kv->qv', weights, V)"),
            patch(
                "return weights @ V",
                """output = np.zeros((len(weights), V.shape[1]))
    for i in range(len(weights)):
        for j in range(len(V)):
            output[i] += weights[j, i] * V[j]
    return output""",
            ),
        ),
        "AB33": (
            patch("weights @ V", "softmax_rows(weights) @ V"),
            patch("weights @ V", "weights / weights.sum(axis=1, keepdims=True) @ V"),
            patch("weights @ V", "weights @ V / weights.sum(axis=1, keepdims=True)"),  # differs where weights sum to 0
        ),
        "SL8": patch("weights @ V", "weights @ V / len(V)"),
        "SL5": (
            patch("weights @ V", "V[weights.argmax(axis=1)]"),
            patch("weights @ V", "weights.max(axis=1, keepdims=True) * V[weights.argmax(axis=1)]"),
        ),
        "TT48": mistake(
            patch("weights @ V", "weights[:, -1:] * V[-1]"),
            patch("weights @ V", "weights[:, :-1] @ V[:-1]"),
            says="The last key's share is missing, or the others' shares are; the shares of all keys should be added up.",
            why="""In a loop, `output[i] = …` forgets what was there; `output[i] += …` adds to it. A loop to n_k − 1 leaves the
            last key out. Published numbers of this table show the same slip: 0.42 · 10 = 4.2 lacks 0.16 · 5.""",
        ),
        "TT49": patch(
            "return weights @ V",
            """output = np.zeros((len(weights), V.shape[1]))
    for i in range(len(weights)):
        for j in range(len(weights)):
            output[i] += weights[i, j] * V[j]
    return output""",
        ),
        "TT55": mistake(
            patch("weights @ V", "np.repeat((weights @ V).sum(axis=0, keepdims=True), len(weights), axis=0)"),
            says="One sum went on from query to query and was never set back to 0; each output row should have a sum of its own.",
            why="""What a loop adds to has to begin at 0 for each query, inside the loop over the queries. Where one and the same array
            is appended each time, all rows of the result are that array, and show what it held last.""",
        ),
    }

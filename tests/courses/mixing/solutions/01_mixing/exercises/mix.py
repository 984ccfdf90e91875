"""The four functions put together; most of what goes wrong in it goes wrong in one of them."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ...shared.inputs import normal32, rows_sum_to_1


@exercise(points=3, minutes=6, difficulty=2, result_names=("output", "weights"), forbids=("softmax", "attention"))
class mix:
    """Put the four functions together and return the output and the weights."""

    def cases(rng):
        small_q, small_k = (
            np.array([[1.0, 0, 2, 0], [0, -1, 0, 1]]),
            np.array([[2.0, 0, 0, 1], [0, 2, 1, 0], [1, 1, 1, 1]]),
        )
        yield Case("small", "two queries and three keys", (small_q, small_k, np.array([[1.0], [2.0], [4.0]])))
        q, k, v = rng.normal(size=(5, 4)), rng.normal(size=(7, 4)), rng.normal(size=(7, 3))
        yield Case("random", "five queries and seven keys", (q, k, v))
        yield Case("identity", "values that form the identity matrix", (q[:3], k, np.eye(7)))
        yield Case("square", "as many queries as keys", tuple(rng.normal(size=(4, n)) for n in (5, 5, 3)))
        yield Case("float32", "float32 inputs", (normal32(rng, 3, 6), normal32(rng, 5, 6), normal32(rng, 5, 4)))
        yield Case("seen-again", "shapes seen before, new numbers", tuple(rng.normal(size=a.shape) for a in (q, k, v)))
        named = {"Q": rng.normal(size=(2, 3)), "K": rng.normal(size=(6, 3)), "V": rng.normal(size=(6, 5))}
        yield Case("by-name", "arguments given by name", kwargs=named)
        keys = 156 - np.array([[0.0], [1.0], [2.0]]) / 64
        large = (np.array([[64.0], [-64.0]]), keys, rng.normal(size=(3, 5)))
        yield Case("large", "scores of ±10,000", large, stage="extremes", rtol=2e-3)

    sums = rows_sum_to_1("weights")

    @holds("with the identity matrix as V the output equals the weights", cases=("identity",))
    def identity(case, parts):
        gap = np.abs(parts["output"] - parts["weights"]).max()
        return None if gap < 1e-3 else f"the two differ by up to {gap:.4g}."

    hints = (
        "Four functions above do one step each. In which order?",
        "Scores, scaled scores, weights, output. Take d from the shape.",
        "```python\nscores = products(Q, K)\nweights = ____(scaled(scores, Q.shape[____]))\nreturn ____, weights\n```",
    )

    mistakes = {
        "MX16": mistake(
            patch("scaled(scores, Q.shape[1])", "scores"),
            says="The scores were not scaled.",
            why="Without the division the weights lean further to the largest score.",
        ),
        "MX6": patch("Q.shape[1]", "len(K)"),
        "MX17": mistake(
            patch("return (output, weights)", "return (weights, output)"),
            says="Output and weights are exchanged.",
            why="The pair is (output, weights).",
        ),
        "MX18": mistake(
            patch("blend(weights, V)", "blend(weights, K)"),
            says="The keys were blended; the values are asked for.",
            why="A key is what an entry is found by, a value what it hands over.",
        ),
    }

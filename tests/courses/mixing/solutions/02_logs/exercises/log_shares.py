"""The logarithm of a softmax, where numbers run out first."""

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch

from ...shared.inputs import normal32

LOG_OF_SUM = "np.log(np.exp(shifted).sum(axis=-1, keepdims=True))"


@exercise(points=2, minutes=8, difficulty=2, forbids=("softmax", "cross_entropy"))
class log_shares:
    """Return the logarithm of the softmax over the last axis."""

    def cases(rng):
        yield Case("small", "two rows of three scores", (np.array([[0.0, 1.0, 2.0], [3.0, 0.0, -1.0]]),))
        yield Case("vector", "a single row of five", (rng.normal(size=5),))
        yield Case("random", "random scores", (rng.normal(size=(4, 6)),))
        yield Case("batch", "a batch of two", (rng.normal(size=(2, 3, 5)),))
        yield Case("square", "as many rows as columns", (rng.normal(size=(4, 4)),))
        yield Case("float32", "float32 scores", (3 * normal32(rng, 5, 8),))
        yield Case("seen-again", "a shape seen before, new numbers", (rng.normal(size=(4, 6)),))
        for i in range(3):
            yield Case(f"large-{i}", "scores of 1000", (1000 * rng.normal(size=(4, 3)),), stage="extremes")

    hints = (
        "What is the logarithm of a fraction?",
        "The logarithm undoes exp in the numerator.",
        "```python\nreturn shifted - np.log(____)\n```",
    )

    mistakes = {
        "MX22": mistake(
            patch("shifted - " + LOG_OF_SUM, "np.log(np.exp(shifted) / np.exp(shifted).sum(axis=-1, keepdims=True))"),
            says="The logarithm was taken of a share that is 0; subtract logarithms.",
            why="A share of exp(−1000) is 0 for the computer, and log 0 is −∞. Its logarithm, −1000, is no problem.",
        ),
        "MX9": patch("scores - scores.max(axis=-1, keepdims=True)", "scores"),
        "MX23": mistake(
            patch("sum(axis=-1, keepdims=True)", "sum(axis=0, keepdims=True)"),
            says="The sum ran over the first axis; the last is asked for.",
            why="Each row needs a sum of its own.",
        ),
    }

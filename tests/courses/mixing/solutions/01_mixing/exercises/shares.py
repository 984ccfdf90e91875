"""Softmax of each row, from scratch and without overflow."""

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch

from ...shared.inputs import normal32, rows_sum_to_1

SHIFT = "scores - scores.max(axis=1, keepdims=True)"


@exercise(points=2, minutes=10, difficulty=2, forbids=("softmax", "attention"))
class shares:
    """Turn each row of scores into positive weights that sum to 1."""

    def cases(rng):
        yield Case("small", "two rows of three scores", (np.array([[0.0, 1.0, 2.0], [3.0, 0.0, -1.0]]),))
        yield Case("one-row", "a single row", (np.array([[1.0, -1.0, 0.5, 2.0]]),))
        yield Case("one-column", "a single column: one key", (np.array([[2.0], [-1.0], [0.0]]),))
        yield Case("random", "random scores", (rng.normal(size=(4, 6)),))
        yield Case("tall", "more rows than columns", (2 * rng.normal(size=(7, 3)),))
        yield Case("square", "as many rows as columns", (rng.normal(size=(4, 4)),))
        yield Case("float32", "float32 scores", (3 * normal32(rng, 5, 8),))
        yield Case("seen-again", "a shape seen before, new numbers", (rng.normal(size=(4, 6)),))
        yield Case("by-name", "the argument given by name", kwargs={"scores": rng.normal(size=(3, 2))})
        high = [[-300.0, 999.0, 1000.0, -300.0, -300.0], [1.0, 0.0, 2.0, -1.0, 0.0]]
        yield Case("large", "scores of 1000", (np.array(high),), stage="extremes")
        yield Case("large-again", "more scores of 1000", (1000 * rng.normal(size=(3, 6)),), stage="extremes")
        low = [[-1000.0, -999.0], [0.0, 1.0], [-998.5, -1000.0], [-997.0, -1000.0]]
        yield Case("very-negative", "scores of −1000", (np.array(low),), stage="extremes")
        far = [[-1000.0, 1000.0, 998.0], [-400.0, -402.0, -401.0], [1000.0, 998.0, 0.0]]
        yield Case("far-apart", "rows near 1000, near −400 and from −1000 to 1000", (np.array(far),), stage="extremes")

    sums = rows_sum_to_1("result")

    hints = (
        "Each query has its own distribution over the keys. Along which axis of `scores` do the keys lie?",
        "Subtract the largest score of the row, take `np.exp`, divide by the row's sum.",
        "```python\nshifted = scores - scores.max(axis=____, keepdims=True)\nexponentials = np.exp(shifted)\n"
        "return exponentials / exponentials.sum(axis=____, keepdims=____)\n```",
    )

    mistakes = {
        "MX7": mistake(
            patch("max(axis=1", "max(axis=0", "sum(axis=1", "sum(axis=0"),
            patch("sum(axis=1", "sum(axis=0"),
            says="The columns sum to 1; each row is to.",
            why="Axis 1 holds the keys, and each query needs weights of its own over them.",
        ),
        "MX8": mistake(
            patch(SHIFT, "scores - scores.max()", "sum(axis=1, keepdims=True)", "sum()"),
            patch("sum(axis=1, keepdims=True)", "sum()"),
            says="All rows together sum to 1; each row is to.",
            why="Without an axis `sum()` adds up the whole array.",
        ),
        "MX9": mistake(
            patch(SHIFT, "scores"),
            patch("scores.max", "scores.min"),
            says="exp overflowed: subtract each row's largest score first.",
            why="exp(1000) is infinite, and ∞/∞ is NaN. With the largest score subtracted, the largest exponential is 1.",
        ),
        "MX10": mistake(
            patch(SHIFT, "scores - scores.max()"),
            says="The largest score of all was subtracted; each row has its own.",
            why="A row that lies 1000 below the largest score of all has only zeros, and 0/0 is NaN.",
        ),
        "MX11": mistake(
            patch("exponentials / exponentials.sum(axis=1, keepdims=True)", "exponentials"),
            says="The exponentials were not divided by their sum.",
            why="exp alone gives positive numbers, but no shares: [1, e] becomes [0.27, 0.73].",
        ),
        "MX12": mistake(
            patch(f"shifted = {SHIFT}", "scores -= scores.max(axis=1, keepdims=True)\n    shifted = scores"),
            says="The input was changed in place; compute on a copy.",
            why="`a -= b` writes into the caller's array, and `a = a - b` makes a new one.",
        ),
    }

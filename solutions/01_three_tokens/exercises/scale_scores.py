"""The division by √d_k, for scores of any shape."""

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch

from ..shared import TABLE_SCORES, float32_normal


@exercise(points=1, minutes=2, difficulty=1, forbids=("softmax", "attention"))
class scale_scores:
    """Divide the scores by the square root of d_k."""

    def cases(rng):
        yield Case("small", "scores with d_k = 16", (np.array([[4.0, -8.0, 2.0], [0.0, 1.0, 12.0]]), 16))
        yield Case("table", "the scores of the three-token table, d_k = 2", (TABLE_SCORES, 2))
        yield Case("one-row", "a single row of scores (one dimension), d_k = 9", (np.array([3.0, -6.0, 1.0, 9.0]), 9))
        yield Case("cube", "scores of a whole batch (three dimensions), d_k = 64", (rng.normal(size=(2, 3, 4)), 64))
        yield Case("unchanged", "with d_k = 1, which changes nothing", (rng.normal(size=(2, 5)), 1))
        yield Case("whole", "whole numbers, d_k = 3", (rng.integers(-9, 10, (3, 5)), 3))
        yield Case("random", "random scores, d_k = 7", (rng.normal(size=(4, 6)), 7))
        yield Case("float32", "float32 scores, d_k = 80", (float32_normal(rng, 5, 7), 80))
        yield Case("one-number", "a single score, d_k = 5", (np.array([[3.5]]), 5))
        yield Case("deep", "scores of several heads (four dimensions), d_k = 12", (rng.normal(size=(2, 3, 5, 4)), 12))
        yield Case("seen-again", "a shape seen before, new numbers, d_k = 24", (rng.normal(size=(4, 6)), 24))
        yield Case("by-name", "arguments given by name", kwargs={"scores": rng.normal(size=(3, 2)), "d_k": 4096})
        yield Case(
            "large", "scores of ±10,000 with d_k = 512", (np.array([[1e4, -1e4], [5e3, 9999.0]]), 512), stage="extremes"
        )

    hints = (
        "With d_k = 16, by what is each score divided?",
        "`np.sqrt` or `math.sqrt` gives the root. d_k is an argument: it is not a size of `scores`, which may have any shape.",
        "```python\nreturn scores / ____(d_k)\n```",
    )

    mistakes = {
        "SD1": patch(" / math.sqrt(d_k)", ""),
        "SD2": patch("math.sqrt(d_k)", "d_k"),
        "SD5": patch("/ math", "* math"),
        "TT8": (patch("sqrt(d_k)", "sqrt(scores.shape[-1])"), patch("sqrt(d_k)", "sqrt(scores.shape[0])")),
        "TT9": (patch("math.sqrt(d_k)", "d_k ** 1 / 2"), patch("math.sqrt(d_k)", "(d_k ** 1 / 2)")),
        "TT10": mistake(
            patch("sqrt(d_k)", "sqrt(2)"),
            says="The scale is always √2, which fits the table's d_k alone; it should be √d_k, whatever d_k is.",
            why="The three-token table has d_k = 2. Elsewhere queries and keys have more numbers, so the scale follows d_k.",
        ),
        "TT12": mistake(
            patch("/ math", "// math"),
            patch("sqrt", "isqrt"),
            says="Decimals were cut off, from the root or from the quotients; keep them, as `math.sqrt` and `/` do.",
            why="""`int` and `math.isqrt` drop what follows the point and make 1 of √2; only for square numbers is there
            nothing to drop. Floor division, `//`, and `np.floor` turn a score of 0.7 into 0 and −0.2 into −1.""",
        ),
        "TT41": (
            patch("return scores / math.sqrt(d_k)", "scores /= math.sqrt(d_k)\n    return scores"),
            patch("scores / math.sqrt(d_k)", "np.divide(scores, math.sqrt(d_k), out=scores, casting='unsafe')"),
        ),
    }

"""A row of softmax a program."""

from __future__ import annotations

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch


@exercise(points=3, minutes=12, difficulty=2, container="tensor")
class triton_softmax:
    """Turn each row of a matrix into weights by a kernel of your own, one row a program."""

    def cases(rng):
        for key, title, shape in (
            ("small", "a row of three", (1, 3)),
            ("sizes", "two rows of five", (2, 5)),
            ("again", "two rows of five, new numbers", (2, 5)),
        ):
            yield Case(key, title, (Tensor(rng.normal(size=shape).astype(np.float32)),))

    mistakes = {
        "KN4": mistake(
            patch("p / tl.sum(p, axis=0)", "p"),
            says="The exponentials were not divided by their sum.",
            why="Weights sum to 1.",
        ),
        "KN5": mistake(
            patch("p / tl.sum(p, axis=0)", "p / n"),
            says="The exponentials were divided by n; their sum is expected.",
            why="Weights sum to 1.",
        ),
        "KN6": mistake(patch("tl.exp(", "2 * tl.exp(", "p / tl.sum(p, axis=0)", "p"), says="No sum.", why="No sum."),
    }
    hints = (
        "Which lanes of the block hold no number of the row, and what must they count in the sum?",
        "Load with other=-float('inf'): exp of it is 0, and no maximum is ever below it.",
        "scores = tl.load(x + offsets, mask=mask, other=____)\np = tl.exp(scores - ____)\ntl.store(out + offsets, p / ____, mask=____)",
    )

"""One dot product for each pair of a query and a key."""

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch

from ...shared.inputs import normal32


@exercise(points=1, minutes=4, difficulty=1, forbids=("softmax", "attention"))
class products:
    """Multiply every query by every key: one dot product per pair."""

    def cases(rng):
        small_k = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0], [3.0, 0.0, -1.0], [-2.0, 1.0, 2.0]])
        yield Case("small", "two queries and four keys", (np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 3.0]]), small_k))
        yield Case("one-key", "a single key", (rng.normal(size=(4, 3)), rng.normal(size=(1, 3))))
        yield Case("whole", "arrays of whole numbers", (rng.integers(-5, 6, (3, 4)), rng.integers(-5, 6, (6, 4))))
        yield Case("random", "five queries and seven keys", (rng.normal(size=(5, 4)), rng.normal(size=(7, 4))))
        yield Case("more-queries", "more queries than keys", (rng.normal(size=(12, 3)), rng.normal(size=(2, 3))))
        yield Case("float32", "float32 inputs", (normal32(rng, 3, 6), normal32(rng, 5, 6)))
        yield Case("seen-again", "shapes seen before, new numbers", (rng.normal(size=(5, 4)), rng.normal(size=(7, 4))))
        yield Case(
            "by-name", "arguments given by name", kwargs={"Q": rng.normal(size=(2, 5)), "K": rng.normal(size=(3, 5))}
        )

    hints = (
        "How many scores are there, and which number counts the rows?",
        "K has to be transposed before the product.",
        "```python\nreturn Q @ ____\n```",
    )

    mistakes = {
        "MX1": mistake(
            patch("Q @ K.T", "K @ Q.T"),
            says="Rows and columns are exchanged: row i belongs to query i.",
            why="Of two queries and four keys come two rows of four scores.",
        ),
        "MX2": mistake(
            patch("K.T", "K"),
            says="The keys were not transposed.",
            why="`Q @ K` adds up over the rows of K, which are keys, and not over the numbers of a key.",
        ),
        "MX3": mistake(
            patch("Q @ K.T", "Q @ K.T / np.sqrt(Q.shape[1])"),
            says="The scores are scaled already; that is the next step.",
            why="With d = 4, a score of 2 came back as 1.",
        ),
    }

"""Scores, divided by the root of d."""

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch

from ...shared.inputs import normal32


@exercise(points=1, minutes=3, difficulty=1)
class scaled:
    """Divide the scores by the root of d."""

    def cases(rng):
        yield Case("small", "two rows of three scores, d = 4", (np.array([[2.0, 4.0, 6.0], [0.0, -2.0, 1.0]]), 4))
        for i, (n_q, n_k, d) in enumerate(((5, 7, 3), (5, 7, 3), (4, 4, 9), (6, 2, 16))):
            yield Case(f"random-{i}", f"random scores, d = {d}", (rng.normal(size=(n_q, n_k)), d))
        yield Case("float32", "float32 scores", (normal32(rng, 3, 5), 8))

    hints = ("What does d count?", "`math.sqrt` takes the root of a number.", "```python\nreturn scores / ____\n```")

    mistakes = {
        "MX4": mistake(
            patch("math.sqrt(d)", "d"),
            says="The scores were divided by d; its root is asked for.",
            why="With d = 4 a score of 2 becomes 1, and here 0.5.",
        ),
        "MX5": mistake(
            patch("scores / math.sqrt(d)", "scores * math.sqrt(d)"),
            says="The scores were multiplied by the root of d; divide by it.",
            why="With d = 4 a score of 2 becomes 1, and here 4.",
        ),
        "MX6": mistake(
            patch("math.sqrt(d)", "math.sqrt(scores.shape[1])"),
            says="The number of keys was taken in the place of d.",
            why="How large a dot product grows depends on how many numbers are added up, not on how many keys there are.",
        ),
    }

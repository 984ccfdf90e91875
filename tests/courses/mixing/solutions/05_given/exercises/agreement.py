"""A function of a lesson that gives what an earlier one asked for."""

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch


@exercise(points=1, minutes=3, difficulty=1)
class agreement:
    """Return the chance that two draws from a row's shares agree."""

    def cases(rng):
        yield Case("small", "two rows of three scores", (np.array([[0.0, 1.0, 2.0], [3.0, 0.0, -1.0]]),))
        for i, size in enumerate(((4, 6), (4, 6), (1, 5), (3, 3), (7, 2))):
            yield Case(f"random-{i}", f"scores of shape {size}", (rng.normal(size=size),))

    hints = ("When do both draws give the first?", "A product of a share with itself.", "(weights ** ____).sum(axis=1)")

    mistakes = {
        "MX50": mistake(
            patch("(weights ** 2)", "weights"),
            says="The shares were summed; their squares are asked for.",
            why="Shares sum to 1, however even they are.",
        ),
        "MX51": mistake(
            patch("(weights ** 2).sum(axis=1)", "weights.max(axis=1)"),
            says="The largest share came back.",
            why="Of two equal shares the largest is 0.5, and so is the chance; of 0.9 and 0.1 it is 0.82.",
        ),
        "MX52": mistake(
            patch("sum(axis=1)", "mean(axis=1)"), says="The mean came back.", why="Chances of cases are added up."
        ),
    }

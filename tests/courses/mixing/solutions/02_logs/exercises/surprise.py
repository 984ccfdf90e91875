"""The mean surprise of targets."""

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch


@exercise(points=2, minutes=6, difficulty=2, forbids=("softmax", "cross_entropy"))
class surprise:
    """Return the mean of −log of each row's share at its target."""

    def cases(rng):
        yield Case("small", "two rows of three scores", (np.array([[0.0, 1, 2], [3, 0, -1]]), np.array([2, 1])))
        for i, (n, m) in enumerate(((5, 3), (5, 3), (4, 4), (2, 7), (1, 6))):
            yield Case(f"random-{i}", f"{n} rows of {m} scores", (rng.normal(size=(n, m)), rng.integers(0, m, n)))

    hints = (
        "Which share of a row counts?",
        "`logs[rows, target]` picks one number a row.",
        "```python\nreturn -logs[np.arange(____), target].mean()\n```",
    )

    mistakes = {
        "MX24": mistake(
            patch("-logs[", "logs["), says="The sign is missing.", why="A share is at most 1, its logarithm at most 0."
        ),
        "MX25": mistake(
            patch("mean()", "sum()"), says="The sum came back; the mean is asked for.", why="Of 1 and 3 the mean is 2."
        ),
        "MX26": mistake(
            patch("-logs[np.arange(len(target)), target].mean()", "-logs[:, target].mean()"),
            says="Each row was read at the targets of all rows.",
            why="`logs[:, target]` has a column for each target; `logs[np.arange(n), target]` has one number a row.",
        ),
    }

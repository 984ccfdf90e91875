"""Each output a blend of the values."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ...shared.inputs import normal32


@exercise(points=1, minutes=3, difficulty=1, forbids=("softmax", "attention"))
class blend:
    """Add up the values, each multiplied by its weight: one output row per query."""

    def cases(rng):
        small = (np.array([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]), np.arange(12.0).reshape(3, 4) * 4)
        yield Case("small", "two queries and three keys", small)
        pick = np.array([[0, 1, 0], [0, 0, 1]])
        yield Case("pick", "weight 1 on one key", (pick, np.array([[1.0, 2.5], [30.5, 40.0], [500.0, 600.5]])))
        negative = (np.array([[2.0, -1.0, 0.0, 3.0], [0.5, 0, 0, 0.5]]), np.array([[1], [2], [-4], [8]]))
        yield Case("as-they-are", "weights that do not sum to 1", negative)
        yield Case("random", "random weights and values", (rng.dirichlet(np.ones(7), 5), rng.normal(size=(7, 4))))
        yield Case("square", "as many queries as keys", (rng.dirichlet(np.ones(3), 3), rng.normal(size=(3, 5))))
        yield Case("tall", "more queries than keys", (rng.normal(size=(6, 2)), rng.normal(size=(2, 3))))
        yield Case("float32", "float32 inputs", (normal32(rng, 3, 4), normal32(rng, 4, 6)))
        again = (rng.dirichlet(np.ones(7), 5), rng.normal(size=(7, 4)))
        yield Case("seen-again", "shapes seen before, new numbers", again)
        named = {"weights": rng.dirichlet(np.ones(3), 4), "V": rng.normal(size=(3, 2))}
        yield Case("by-name", "arguments given by name", kwargs=named)

    @holds("weight 1 on one key returns that key's value", cases=("pick",))
    def picks_one(case, parts):
        gap = np.abs(case.args[1][1:] - parts["result"]).max()
        return None if gap < 1e-3 else f"the two differ by up to {gap:.4g}."

    hints = (
        "A row of weights has one number for each key. What has V one row for?",
        "The keys lie inside and are summed away.",
        "```python\nreturn ____ @ ____\n```",
    )

    mistakes = {
        "MX13": mistake(
            patch("weights @ V", "weights.T @ V"),
            says="The weights were transposed.",
            why="A row of weights belongs to one query.",
        ),
        "MX14": mistake(
            patch("weights @ V", "weights @ V / len(V)"),
            says="The sum was divided by the number of keys.",
            why="The weights sum to 1 already: equal shares of 2 and 4 are 3, and here 1.5.",
        ),
        "MX15": mistake(
            patch("weights @ V", "V[weights.argmax(axis=1)]"),
            says="Only the value with the largest weight came back.",
            why="With the weights [0.6, 0.4] the second value counts, too.",
        ),
    }

"""The value whose key fits the query best."""

from grader.course.declare import Case, exercise, mistake, patch


@exercise(points=2, minutes=5, difficulty=1)
class nearest:
    """Return the value whose key fits the query best."""

    def cases(rng):
        for i, (n, d, d_v) in enumerate(((3, 2, 4), (5, 4, 3), (5, 4, 3), (7, 2, 3), (4, 6, 5))):
            yield Case(
                f"{n} keys, {i}",
                f"{n} keys",
                (rng.normal(size=d), rng.normal(size=(n, d)), 10 * rng.normal(size=(n, d_v))),
                names=("query", "keys", "values"),
            )

    hints = ("Which score is the largest?", "`np.argmax` gives a position.", "```python\nreturn values[____]\n```")

    mistakes = {
        "LU1": mistake(
            patch("np.argmax", "np.argmin"),
            says="The worst fit was looked up; take the largest score.",
            why="Of the scores [1, 3] the second is the larger, so that the second value belongs to the query.",
        ),
        "LU2": mistake(
            patch("values[np.argmax(scores)]", "keys[np.argmax(scores)]"),
            says="The best key came back; its value is asked for.",
            why="A key is what an entry is found by, a value what it hands over.",
        ),
        "LU3": mistake(
            patch("keys @ query", "keys.sum(axis=1)"),
            says="The query has no part in the scores.",
            why="Two queries that differ should be able to find two values.",
        ),
    }

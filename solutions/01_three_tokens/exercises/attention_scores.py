"""One dot product for each pair of a query and a key."""

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch

from ..shared import TABLE_K, TABLE_Q, float32_normal, nonzero_integers

# A result with as many columns as there are queries, filled over the queries or over the keys.
LOOP = """scores = np.zeros((len(Q), len({})))
    for i in range(len(Q)):
        for j in range(len({})):
            scores[i, j] = Q[i] @ K[j]
    return scores"""


@exercise(points=1, minutes=4, difficulty=1, forbids=("softmax", "attention"))
class attention_scores:
    """Multiply every query by every key: one dot product per pair, one row per query."""

    def cases(rng):
        small_k = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0], [3.0, 0.0, -1.0], [-2.0, 1.0, 2.0]])
        yield Case("small", "two queries and four keys", (np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 3.0]]), small_k))
        yield Case("table", "the three-token table", (TABLE_Q, TABLE_K))
        yield Case("one-query", "a single query", (nonzero_integers(rng, 1, 3), nonzero_integers(rng, 13, 3)))
        yield Case("one-key", "a single key", (nonzero_integers(rng, 4, 3), nonzero_integers(rng, 1, 3)))
        # Whole numbers meet fractions, on either side: no score is whole, so an array of the wrong type loses something.
        yield Case(
            "one-feature",
            "vectors of one number, the keys whole",
            (nonzero_integers(rng, 3, 1) + 0.25, np.array([[2], [-3]])),
        )
        yield Case(
            "as-many",
            "as many keys as features, the queries whole",
            (nonzero_integers(rng, 2, 3).astype(int), np.array([[0.0, 0.3, 0], [1, 0, 4.3], [3.3, 0, 0]])),
        )
        yield Case("whole", "arrays of whole numbers", (rng.integers(-5, 6, (3, 4)), rng.integers(-5, 6, (6, 4))))
        yield Case("random", "five queries and seven keys", (rng.normal(size=(5, 4)), rng.normal(size=(7, 4))))
        yield Case("more-queries", "more queries than keys", (rng.normal(size=(12, 3)), rng.normal(size=(2, 3))))
        yield Case("float32", "float32 inputs", (float32_normal(rng, 3, 6), float32_normal(rng, 5, 6)))
        yield Case("seen-again", "shapes seen before, new numbers", (rng.normal(size=(5, 4)), rng.normal(size=(7, 4))))
        yield Case(
            "by-name", "arguments given by name", kwargs={"Q": rng.normal(size=(2, 15)), "K": rng.normal(size=(3, 15))}
        )
        yield Case(
            "large",
            "scores of about 10,000",
            (100 * nonzero_integers(rng, 3, 4), 10 * nonzero_integers(rng, 2, 4)),
            stage="extremes",
        )
        yield Case(
            "layout",
            "transposed views, whose columns lie one after the other in memory",
            (nonzero_integers(rng, 3, 2).T, nonzero_integers(rng, 3, 4).T),
            stage="extremes",
        )

    hints = (
        "Three queries meet four keys. How many scores are there, and which of the two numbers counts the rows?",
        "`Q @ X` adds up over the columns of Q and the rows of X. The two numbers of a key lie in a row of K, so K "
        "has to be transposed before the product.",
        "```python\nreturn Q @ ____\n```",
    )

    mistakes = {
        "SD8": (
            patch("Q @ K.T", "K @ Q.T"),
            patch(
                "return Q @ K.T",
                """scores = np.zeros((len(Q), len(K)))
    for i in range(len(Q)):
        for j in range(len(K)):
            scores[i, j] = Q[j] @ K[i]
    return scores""",
            ),
        ),
        "TT1": patch("Q @ K.T", "Q @ K.T / np.sqrt(Q.shape[1])"),
        "TT3": (patch("K.T", "K"), patch("Q @ K.T", "Q.T @ K")),
        "HL5": patch("Q @ K.T", "Q @ K.T / (np.linalg.norm(Q, axis=1)[:, None] * np.linalg.norm(K, axis=1))"),
        "AB15": (patch("K.T", "K.reshape(K.shape[1], K.shape[0])"), patch("K.T", "K.reshape(Q.shape[1], -1)")),
        "TT49": mistake(
            patch("return Q @ K.T", LOOP.format("Q", "Q")),
            patch("return Q @ K.T", LOOP.format("Q", "K")),
            says="The number of queries was used where the number of keys belongs, in a loop or in a shape; take `len(K)`, or `len(V)`.",
            why="""In the table there are three of each, so that nothing shows. A query may well meet more keys, or fewer:
            scores have a column for each key, and all keys' values are added up.""",
        ),
    }

"""The value whose key fits the query best, and nothing of the others."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from grader.course.declare import Case, exercise, holds, mistake, patch

Array = np.ndarray

TIGHT = 1e-5  # one of the values comes back as it is; float32 alone may round it


def _telling(rng: np.random.Generator, n: int, d: int, d_v: int) -> tuple[Array, Array, Array]:
    """Random inputs on which the usual measures of fit disagree and the winner is clear in float32, too."""
    while True:
        query = rng.normal(size=d)
        keys = rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0, size=(n, 1))
        scores = keys @ query
        measures = (scores, -((keys - query) ** 2).sum(axis=1), scores / np.linalg.norm(keys, axis=1), np.abs(scores))
        second, first = np.sort(scores)[-2:]
        if len({int(np.argmax(fits)) for fits in measures}) == len(measures) and first - second > 0.05:
            return query, keys, rng.normal(size=(n, d_v))


def _won_at_the_end(rng: np.random.Generator, n: int, d: int, d_v: int) -> tuple[Array, Array, Array]:
    """The last entry wins, by its last feature: without either another one would."""
    keys = rng.integers(-3, 4, size=(n, d)).astype(float)
    keys[-1] = -4.0
    keys[-1, -1] = 200.0
    return np.ones(d), keys, _rows(n, d_v)


def _rows(n: int, d_v: int) -> Array:
    """Values of small whole numbers in which no two rows, and no key, agree."""
    return 10.0 * np.arange(1, n + 1)[:, None] + np.arange(d_v)


def _from_0(query: Array, keys: Array, values: Array) -> Array | None:
    """A search that begins with a score of 0; so do the next two."""
    scores = keys @ query
    return values[np.argmax(scores)] if scores.max() > 0 else None


def _from_0_at_none(query: Array, keys: Array, values: Array) -> Array:
    scores = keys @ query
    return values[np.argmax(scores) if scores.max() > 0 else None]


def _from_0_unset(query: Array, keys: Array, values: Array) -> Array:
    if (keys @ query).max() > 0:
        best = np.argmax(keys @ query)
    return values[best]


FIT = "keys @ query"


@exercise(points=1, minutes=5, difficulty=1, rtol=TIGHT)
class hard_lookup:
    """Return the value whose key has the largest dot product with the query; on a tie, the first."""

    def cases(rng):
        def case(key: str, title: str, query: ArrayLike, keys: ArrayLike, values: Array, **more: Any) -> Case:
            return Case(key, title, (np.array(query), np.array(keys), values), **more)

        query, keys = [1.0, 2.0], np.array([[3.0, 0.0], [1.0, 2.0], [2.0, 3.0], [-4.0, -4.0]])  # scores 3, 5, 8, -12
        yield case("small", "four keys", query, keys, _rows(4, 3))
        yield case("tie", "two keys with the same largest score", query, keys[[0, 2, 1, 2]], _rows(5, 3)[[0, 1, 2, 4]])
        yield case(
            "tie-of-two-directions",
            "different keys, equal scores",
            [1.0, 1.0, 1.0],
            [[0.0, 1.0, 0.0], [4.0, 0.0, 1.0], [1.0, 1.0, 3.0]],
            _rows(3, 2)[::-1].copy(),
        )
        yield case(
            "tie-of-three",
            "three keys with the same largest score",
            query,
            keys[[0, 2, 2, 2]],
            _rows(4, 2)[[3, 1, 0, 2]],
        )
        yield case(
            "all-negative",
            "every score is negative",
            query,
            [[-30.0, -30.0], [-10.0, -10.0], [-20.0, 0.0]],
            _rows(3, 4),
        )
        yield case("one-entry", "a single entry", [1.0, -2.0, 3.0], [[2.0, 5.0, 1.0]], _rows(1, 2))
        yield case(
            "one-feature",
            "whole query, keys of fractions, vectors of one number",
            [-2],
            [[0.5], [0.25], [0.125], [0.75]],
            _rows(4, 3) / 4,
        )
        # Scores 0.25, 0.75, 0.5, 0 and half a value: an array with the type of whole keys holds neither.
        yield case(
            "one-number-values",
            "whole keys, a query of fractions, values of one number",
            [0.25, 0.5],
            [[1, 0], [1, 1], [0, 1], [2, -1]],
            _rows(4, 1) + 0.5,
        )
        yield case(
            "whole",
            "arrays of whole numbers",
            [2, -1],
            [[1, 1], [0, -7], [3, -1], [2, 9], [-5, 0]],
            np.arange(15).reshape(5, 3),
        )
        yield case(
            "zero-query",
            "a query of zeros: every score is 0",
            np.zeros(3),
            rng.normal(size=(5, 3)),
            _rows(5, 2)[[2, 0, 4, 1, 3]],
        )
        yield case("random", "seven random entries", *_telling(rng, 7, 3, 4))
        yield case("wide", "more features than entries", *_won_at_the_end(rng, 12, 16, 2))
        yield case("float32", "float32 inputs", *(array.astype(np.float32) for array in _telling(rng, 9, 4, 5)))
        yield case("seen-again", "shapes seen before, new numbers", *_telling(rng, 7, 3, 4))
        more = rng.permutation([[-1.0, -3.0], [-6.0, -2.0], [-5.0, -5.0]])
        yield case(
            "all-negative-again",
            "every score is below −10,000,000,000",
            [3e5, 1e5],
            np.vstack([[-9.0, -1.0], more]) * 1e5,
            _rows(4, 3),
        )
        yield case(
            "square",
            "as many entries as features, every score negative",
            np.ones(3),
            [[-50.0, -40.0, -10.0], [-20.0, -20.0, -10.0], [-10.0, 0.0, -20.0]],
            _rows(3, 2),
        )
        by_name = dict(zip(("query", "keys", "values"), _telling(rng, 6, 2, 3), strict=True))
        yield Case("by-name", "arguments given by name", kwargs=by_name)
        # As close as 1 and 1.000005 are, float32 still tells them apart: its numbers near 1 lie 1.2e-7 apart.
        yield case(
            "near-tie", "the scores 1, 1.000005 and 0.5", [1.0, 1.0], [[1.0, 0], [1, 5e-6], [0, 0.5]], _rows(3, 5)
        )
        yield case(
            "large",
            "scores of 10,000",
            [100.0, 10.0],
            [[100.0, -20.0], [100.0, 30.0], [-100.0, 100.0]],
            _rows(3, 2),
            stage="extremes",
        )
        # A sort keeps a short list in order where scores are equal, and a long one need not.
        yield case(
            "long-tie",
            "three hundred keys, every second one with the largest score",
            [1.0],
            np.arange(300.0)[:, None] % 2,
            np.arange(300.0)[:, None],
            stage="extremes",
            show=False,
        )

    @holds("the answer is one of the rows of values")
    def is_a_row(case, parts):
        values = case.kwargs["values"] if case.kwargs else case.args[2]
        got = parts["result"]
        if got.shape == values.shape[1:] and np.isclose(values, got, rtol=TIGHT, atol=0).all(axis=1).any():
            return None
        return f"{np.array2string(got, precision=3)} is no row of values."

    hints = (
        "There is one score for each key. What is the shape of the array of all scores, and what do you need from it: its largest "
        "number, or the position of that number?",
        "`keys @ query` has shape (n,): one dot product a key. `np.max` gives the largest of them, `np.argmax` its position, and the "
        "first one on a tie. The position also says which row of `values` you want.",
        "```python\nscores = keys @ query\nbest = ____(scores)  # the position of the largest score\nreturn ____[best]\n```",
    )

    mistakes = {
        "HL1": patch("values[best]", "keys[best]"),
        "HL2": mistake(
            patch(
                "best = np.argmax(scores)",
                """best = 0
    for i in range(len(scores)):
        if scores[i] >= scores[best]:
            best = i""",
            ),
            says="On a tie the last of the equal scores won; the first one should.",
            why="""A loop that compares with `>=` replaces its best entry whenever an equal one comes along, and so ends on the last.
            The same happens with `np.argsort(scores)[-1]`. `np.argmax` and a strict `>` keep the first.""",
        ),
        "HL3": patch("argmax", "argmin"),
        "HL4": mistake(
            patch(FIT, "-((keys - query) ** 2).sum(axis=1)"),
            says="The keys were compared by their distance to the query; compare them by the dot product.",
            why="""The nearest key and the key with the largest dot product often differ: a long key in the right direction
            has a large dot product and lies far away. Attention uses the dot product.""",
        ),
        "HL5": tuple(
            patch(FIT, f"keys @ query / (np.linalg.norm(keys, axis=1) * np.linalg.norm(query){guard})")
            for guard in ("", " + 1e-09")
        ),
        "HL7": mistake(
            patch(FIT, "np.abs(keys @ query)"),
            says="The sign of the dot product was lost (`abs`, a square), so a key that points the opposite way can win; keep it.",
            why="A large negative dot product says that key and query disagree. Its absolute value or its square says that they agree.",
        ),
        "HL10": mistake(
            patch("np.argmax(scores)", "np.argmax(np.maximum(scores, 0))"),
            _from_0,
            _from_0_at_none,
            _from_0_unset,
            *(patch("np.argmax(scores)", f"np.argmax(np.maximum(scores, {start}))") for start in (-1, -10)),
            says="The search started from a fixed best score, such as 0 or −1, so that scores below it were not compared; start from −∞.",
            why="""All scores may be below the number with which a search begins. It then finds nothing better: the first
            entry wins, or none does. `np.maximum(scores, 0)` makes all negative scores equal in the same way. No number is
            low enough, −1000 and −10⁹ only make the wrong answers rarer. A running maximum starts at −∞, or at the first
            score.""",
        ),
        "HL11": mistake(
            patch(FIT, "(keys * query).ravel()"),
            patch(FIT, "(keys * query).max(axis=1)"),
            says="The largest single product was sought, over all keys and features; the products of each key should be added up.",
            why="`keys * query` has shape (n, d), and a key's score is the sum of its row; a maximum over the matrix adds up nothing.",
        ),
        "HL12": mistake(
            patch(FIT, "query @ keys"),
            says="The sum ran over the entries; each key's own numbers should be multiplied by the query's and summed.",
            why="""`query @ keys` and `keys.T @ query` multiply the query's numbers with those of a column. The matrix
            product sums over the last axis of its left and the first of its right operand. Keys have shape (n, d) and the
            sum should run over d, so keys go left, or are transposed.""",
        ),
        "HL15": mistake(
            patch("values[best]", "values[0]"),
            says="The first value was returned, whatever the query and the keys are; the best key's value is asked for.",
            why="A look-up has to compare the query with every key before it knows which value it wants.",
        ),
        "HL17": mistake(
            *(
                patch("best = np.argmax(scores)", f"best = {way}")
                for way in (
                    "max(range(len(scores)), key=lambda i: (scores[i], values[i].tolist()))",
                    "min(range(len(scores)), key=lambda i: (-scores[i], values[i].tolist()))",
                )
            ),
            patch("values[best]", "values[scores == scores.max()].mean(axis=0)"),
            says="""On a tie the values had a say: the largest or smallest of them won, or their mean came back; the first
            entry should win.""",
            why="""Pairs are compared by their first part, and where it is the same by their second. So `max` or `sorted` of
            pairs of score and value lets the values decide a tie. `scores == scores.max()` marks every entry with the
            largest score, and the mean of their values may be stored nowhere. `np.argmax` looks at the scores alone and
            gives one position, the first.""",
        ),
        "HL18": mistake(
            patch(
                "best = np.argmax(scores)",
                """best = 0
    for i in range(len(scores)):
        if scores[i] > scores[0]:
            best = i""",
            ),
            patch(
                "best = np.argmax(scores)",
                """best = 0
    for i in range(1, len(scores)):
        if scores[i] > scores[i - 1]:
            best = i""",
            ),
            says="Every score was compared with the first one, or with the one before it; it should be compared with the best so far.",
            why="""With the scores 3, 8 and 5 both of the later ones are above 3, so the last of them wins. With 8, 3 and 5 the last is
            above the one before it, and not the best. A running maximum needs two lines in the `if`: the new best position and the new
            best score.""",
        ),
    }

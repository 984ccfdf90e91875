"""Lesson 00: one look-up, hard; enough to learn how check, hint and explain work."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, MistakeText, Property


def _fits(query: np.ndarray, keys: np.ndarray, bugs: tuple[str, ...]) -> np.ndarray:
    """How well each key fits the query, by the measure that the bugs choose."""
    if "HL4" in bugs:
        return -((keys - query) ** 2).sum(axis=1)
    if "HL5" in bugs:
        return keys @ query / (np.linalg.norm(keys, axis=1) * np.linalg.norm(query))
    if "HL12" in bugs:
        return query @ keys
    scores = (keys * query).ravel() if "HL11" in bugs else keys @ query
    return np.abs(scores) if "HL7" in bugs else scores


def _best(scores: np.ndarray, bugs: tuple[str, ...]) -> int:
    if "HL3" in bugs:
        scores = -scores
    if "HL10" in bugs and scores.max() <= 0:
        return 0
    if "HL2" in bugs:
        return len(scores) - 1 - int(np.argmax(scores[::-1]))
    return int(np.argmax(scores))


def _lookup(*bugs: str) -> Callable[..., np.ndarray]:
    """The reference's maths with the named bugs switched on; with none it is right."""

    def hard_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
        scores = _fits(query, keys, bugs)
        if "HL8" in bugs:
            weights = np.exp(scores - scores.max())
            return weights / weights.sum() @ values
        if "HL9" in bugs:
            return values[scores == scores.max()]
        best = _best(scores, bugs)
        if "HL6" in bugs:
            return best
        return keys[best] if "HL1" in bugs else values[best]

    return hard_lookup


def _telling(rng: np.random.Generator, n: int, d: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random inputs on which the usual measures of fit disagree and the winner is clear in float32, too."""
    while True:
        query = rng.normal(size=d)
        keys = rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0, size=(n, 1))
        measures = [_fits(query, keys, bugs) for bugs in ((), ("HL4",), ("HL5",), ("HL7",))]
        second, first = np.sort(measures[0])[-2:]
        if len({int(np.argmax(fits)) for fits in measures}) == len(measures) and first - second > 0.05:
            return query, keys, rng.normal(size=(n, d_v))


def hard_lookup_cases(rng: np.random.Generator) -> Iterator[Case]:
    query = np.array([1.0, 2.0])
    keys = np.array([[3.0, 0.0], [1.0, 2.0], [2.0, 3.0], [-4.0, -4.0]])  # scores 3, 5, 8, -12
    yield Case("small", "four keys", (query, keys, _rows(4, 3)))
    yield Case("tie", "two keys with the same largest score", (query, keys[[0, 2, 1, 2]], _rows(4, 3)))
    yield Case("tie-of-two-directions", "different keys, equal scores",
               (np.array([1.0, 1.0, 1.0]), np.array([[0.0, 1.0, 0.0], [4.0, 0.0, 1.0], [1.0, 1.0, 3.0]]), _rows(3, 2)))
    yield Case("all-negative", "every score is negative",
               (query, np.array([[-3.0, -3.0], [-1.0, -1.0], [-2.0, 0.0]]), _rows(3, 4)))
    yield Case("one-entry", "a single entry", (np.array([1.0, -2.0, 3.0]), np.array([[2.0, 5.0, 1.0]]), _rows(1, 2)))
    yield Case("one-feature", "vectors of one number",
               (np.array([-2.0]), np.array([[3.0], [-1.0], [-5.0], [2.0]]), _rows(4, 3)))
    yield Case("one-number-values", "values of one number", (query, keys[::-1].copy(), _rows(4, 1)))
    yield Case("whole", "arrays of whole numbers",
               (np.array([2, -1]), np.array([[1, 1], [0, -7], [3, -1], [2, 9], [-5, 0]]), np.arange(15).reshape(5, 3)))
    yield Case("zero-query", "a query of zeros: every score is 0", (np.zeros(3), rng.normal(size=(5, 3)), _rows(5, 2)))
    yield Case("random", "seven random entries", _telling(rng, 7, 3, 4))
    yield Case("wide", "more features than entries", _telling(rng, 5, 6, 2))
    yield Case("float32", "float32 inputs", tuple(array.astype(np.float32) for array in _telling(rng, 9, 4, 5)))
    yield Case("seen-again", "shapes seen before, new numbers", _telling(rng, 7, 3, 4))
    more = rng.permutation(np.array([[-9.0, -1.0], [-1.0, -3.0], [-6.0, -2.0], [-5.0, -5.0]])[1:])
    yield Case("all-negative-again", "every score is negative, other numbers",
               (np.array([3.0, 1.0]), np.vstack([[-9.0, -1.0], more]), _rows(4, 3)))
    yield Case("square", "as many entries as features, every score negative",
               (np.ones(3), -np.array([[5.0, 4.0, 1.0], [2.0, 2.0, 1.0], [1.0, 0.0, 2.0]]), _rows(3, 2)))
    by_name = dict(zip(("query", "keys", "values"), _telling(rng, 6, 2, 3), strict=True))
    yield Case("by-name", "arguments given by name", kwargs=by_name)
    large = np.array([[100.0, -20.0], [100.0, 30.0], [-100.0, 100.0]])
    yield Case("large", "scores of 10,000", (np.array([100.0, 10.0]), large, _rows(3, 2)), stage="extremes")


def _rows(n: int, d_v: int) -> np.ndarray:
    """Values of small whole numbers in which no two rows, and no key, agree."""
    return 10.0 * np.arange(1, n + 1)[:, None] + np.arange(d_v)


def _is_a_row(case: Case, parts: dict[str, np.ndarray]) -> str | None:
    values = case.kwargs["values"] if case.kwargs else case.args[2]
    got = parts["result"]
    if got.shape == values.shape[1:] and np.isclose(values, got, rtol=1e-4, atol=1e-5).all(axis=1).any():
        return None
    return f"{np.array2string(got, precision=3)} is no row of values."


TEXTS = (
    MistakeText(
        "HL1", "The best key itself is returned; what was asked for is the value that belongs to it.",
        "Keys are for comparing, values are for returning. They may even differ in length: here keys have d numbers, "
        "values d_v.",
        "return keys[np.argmax(scores)]", "return values[np.argmax(scores)]"),
    MistakeText(
        "HL2", "On a tie the last of the equal scores wins; here the first one counts.",
        "A loop that compares with `>=` replaces its best entry whenever an equal one comes along, and so ends on "
        "the last. The same happens with `np.argsort(scores)[-1]`. `np.argmax` and a strict `>` keep the first.",
        "if score >= best:", "if score > best:"),
    MistakeText(
        "HL3", "The key with the smallest dot product is chosen, not the one with the largest.",
        "A dot product measures agreement: larger is better. A smallest value would be right for a distance.",
        "values[np.argmin(keys @ query)]", "values[np.argmax(keys @ query)]"),
    MistakeText(
        "HL4", "Keys are ranked by their distance to the query; here the dot product ranks them.",
        "The nearest key and the key with the largest dot product often differ: a long key in the right direction "
        "has a large dot product and lies far away. Attention uses the dot product.",
        "np.argmin(((keys - query) ** 2).sum(axis=1))", "np.argmax(keys @ query)"),
    MistakeText(
        "HL5",
        "Keys are ranked by the angle to the query alone (cosine similarity); the dot product counts length, too.",
        "Dividing by the norms of the keys removes their lengths. In attention a key may be loud or quiet, so the "
        "plain dot product is used.",
        "keys @ query / np.linalg.norm(keys, axis=1)", "keys @ query"),
    MistakeText(
        "HL6", "The position of the best key is returned; what was asked for is the value at that position.",
        "`np.argmax` gives an index. It is the place where the value lies, and not yet the value.",
        "return np.argmax(scores)", "return values[np.argmax(scores)]"),
    MistakeText(
        "HL7", "The absolute value of the dot product is used, so a key that points the opposite way can win.",
        "A large negative dot product says that key and query disagree. Its sign is needed.",
        "np.argmax(np.abs(keys @ query))", "np.argmax(keys @ query)"),
    MistakeText(
        "HL8", "All values are blended; a hard look-up returns the best key's value alone.",
        "Softmax weights make the soft look-up that the next section meets. The hard one takes a single entry.",
        "weights @ values", "values[np.argmax(scores)]"),
    MistakeText(
        "HL9", "Every entry with the largest score is returned, as a matrix; one value of shape (d_v,) was asked for.",
        "Indexing with a boolean array keeps an axis: even one match gives shape (1, d_v), a tie gives more rows.",
        "values[scores == scores.max()]", "values[np.argmax(scores)]"),
    MistakeText(
        "HL10", "The search starts from a best score of 0, so when no score is positive the first entry is returned.",
        "Scores may all be negative. A running maximum starts at −∞, or at the first score.",
        "best = 0", "best = -np.inf"),
    MistakeText(
        "HL11", "The products are not added up: the largest single product was looked for, over all keys and features.",
        "`keys * query` has shape (n, d). The score of a key is the sum of its row; without the sum `np.argmax` "
        "counts through the flattened matrix.",
        "np.argmax(keys * query)", "np.argmax((keys * query).sum(axis=1))"),
    MistakeText(
        "HL12", "`query @ keys` sums over the entries; each key's own numbers are to be multiplied with the query's.",
        "The matrix product sums over the last axis of its left and the first of its right operand. Keys have shape "
        "(n, d) and the sum runs over d, so keys go left, or are transposed.",
        "query @ keys", "keys @ query"),
)  # fmt: skip

lesson = Lesson(
    name="00_start_here",
    title="Start here",
    question="How does a machine look something up when no key fits exactly?",
    outcome="look things up by similarity, hard and soft",
    texts=TEXTS,
    exercises=(
        Exercise(
            name="hard_lookup",
            task="Return the value whose key has the largest dot product with the query; on a tie, the first.",
            points=1,
            minutes=5,
            cases=hard_lookup_cases,
            mistakes=mistakes(
                _lookup, "HL1", "HL2", "HL3", "HL4", "HL5", "HL6", "HL7", "HL8", "HL9", "HL10", "HL11", "HL12"),
            combine=lambda ids: _lookup(*ids),
            properties=(Property("the answer is one of the rows of values", _is_a_row),),
            hints=(
                "There is one score for each key. What shape has the array of all scores, and what do we need to "
                "know of it: its largest number, or where that number stands?",
                "`keys @ query` has shape (n,): one dot product a key. `np.max` gives the largest of them, "
                "`np.argmax` its position, and the first one on a tie. The position also says which row of `values` "
                "we want.",
                "```python\nscores = keys @ query\nbest = ____(scores)  # the position of the largest score\n"
                "return ____[best]\n```",
            ),
        ),
    ),
)

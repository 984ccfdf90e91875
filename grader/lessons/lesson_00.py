"""Lesson 00: one look-up, hard; enough to learn how check, hint and explain work."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, Mistake, MistakeText, Property

TIGHT = 1e-5  # one of the values comes back as it is; float32 alone may round it


def _fits(query: np.ndarray, keys: np.ndarray, bugs: tuple[str, ...]) -> np.ndarray:
    """How well each key fits the query, by the measure that the bugs choose."""
    if "HL4" in bugs:
        return -((keys - query) ** 2).sum(axis=1)
    if "HL5" in bugs:
        lengths = np.linalg.norm(keys, axis=1) * np.linalg.norm(query)
        return keys @ query / (lengths + 1e-9 if "guarded" in bugs else lengths)
    if "HL12" in bugs:
        return query @ keys
    scores = (keys * query).ravel() if "HL11" in bugs else keys @ query
    return np.abs(scores) if "HL7" in bugs else scores


def _best(scores: np.ndarray, bugs: tuple[str, ...]) -> int:
    if "HL3" in bugs:
        scores = -scores
    start = 0 if "HL10" in bugs else -1 if "HL16" in bugs else -np.inf
    if scores.max() <= start:
        return 0
    if "HL2" in bugs:
        return len(scores) - 1 - int(np.argmax(scores[::-1]))
    return int(np.argmax(scores))


def _lookup(*bugs: str) -> Callable[..., np.ndarray]:
    """The reference's maths with the named bugs switched on; with none it is right."""

    def hard_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
        if "HL15" in bugs:
            return values[0]
        scores = _fits(query, keys, bugs)
        if "HL8" in bugs:
            weights = np.exp(scores - scores.max())
            return weights / weights.sum() @ values
        if "HL9" in bugs:
            return values[scores == scores.max()]
        best = _best(scores, bugs)
        if "HL6" in bugs:
            return best
        if "HL13" in bugs:
            return values[:, best]
        if "HL14" in bugs:
            return values[best : best + 1]
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


def _won_at_the_end(rng: np.random.Generator, n: int, d: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The last entry wins, by its last feature: without either another one would."""
    keys = rng.integers(-3, 4, size=(n, d)).astype(float)
    keys[-1] = -4.0
    keys[-1, -1] = 200.0
    return np.ones(d), keys, _rows(n, d_v)


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
    yield Case("one-feature", "whole query, keys of fractions, vectors of one number",
               (np.array([-2]), np.array([[0.5], [0.25], [0.125], [0.75]]), _rows(4, 3) / 4))
    # Scores 0.25, 0.75, 0.5, 0 and half a value: an array with the type of whole keys holds neither.
    yield Case("one-number-values", "whole keys, a query of fractions, values of one number",
               (np.array([0.25, 0.5]), np.array([[1, 0], [1, 1], [0, 1], [2, -1]]), _rows(4, 1) + 0.5))
    yield Case("whole", "arrays of whole numbers",
               (np.array([2, -1]), np.array([[1, 1], [0, -7], [3, -1], [2, 9], [-5, 0]]), np.arange(15).reshape(5, 3)))
    yield Case("zero-query", "a query of zeros: every score is 0", (np.zeros(3), rng.normal(size=(5, 3)), _rows(5, 2)))
    yield Case("random", "seven random entries", _telling(rng, 7, 3, 4))
    yield Case("wide", "more features than entries", _won_at_the_end(rng, 12, 16, 2))
    yield Case("float32", "float32 inputs", tuple(array.astype(np.float32) for array in _telling(rng, 9, 4, 5)))
    yield Case("seen-again", "shapes seen before, new numbers", _telling(rng, 7, 3, 4))
    more = rng.permutation(np.array([[-9.0, -1.0], [-1.0, -3.0], [-6.0, -2.0], [-5.0, -5.0]])[1:])
    yield Case("all-negative-again", "every score is below −10,000,000,000",
               (np.array([3e5, 1e5]), np.vstack([[-9.0, -1.0], more]) * 1e5, _rows(4, 3)))
    yield Case("square", "as many entries as features, every score negative",
               (np.ones(3), -np.array([[5.0, 4.0, 1.0], [2.0, 2.0, 1.0], [1.0, 0.0, 2.0]]), _rows(3, 2)))
    by_name = dict(zip(("query", "keys", "values"), _telling(rng, 6, 2, 3), strict=True))
    yield Case("by-name", "arguments given by name", kwargs=by_name)
    # As close as 1 and 1.000005 are, float32 still tells them apart: its numbers near 1 lie 1.2e-7 apart.
    yield Case("near-tie", "the scores 1, 1.000005 and 0.5", (np.array([1.0, 1.0]), np.array([[1.0, 0], [1, 5e-6], [0, 0.5]]), _rows(3, 5)))
    large = np.array([[100.0, -20.0], [100.0, 30.0], [-100.0, 100.0]])
    yield Case("large", "scores of 10,000", (np.array([100.0, 10.0]), large, _rows(3, 2)), stage="extremes")


def _rows(n: int, d_v: int) -> np.ndarray:
    """Values of small whole numbers in which no two rows, and no key, agree."""
    return 10.0 * np.arange(1, n + 1)[:, None] + np.arange(d_v)


def _is_a_row(case: Case, parts: dict[str, np.ndarray]) -> str | None:
    values = case.kwargs["values"] if case.kwargs else case.args[2]
    got = parts["result"]
    if got.shape == values.shape[1:] and np.isclose(values, got, rtol=TIGHT, atol=0).all(axis=1).any():
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
        "HL7", "The sign of the dot product is lost (`abs`, a square), so a key that points the opposite way can win.",
        "A large negative dot product says that key and query disagree. Its absolute value or its square says that they "
        "agree.",
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
        "HL10", "When no score is positive the first entry is returned: scores below 0 are not told apart.",
        "Scores may all be negative. A search that starts from a best score of 0 then finds nothing better, and "
        "`np.maximum(scores, 0)` makes all of them equal. A running maximum starts at −∞, or at the first score.",
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
    MistakeText(
        "HL13", "A column of values is taken, `values[:, i]`; the value of entry i is row i.",
        "Values have shape (n, d_v), a row for each entry. A column has one number of every entry, and there are only "
        "d_v columns: an index beyond them raises an IndexError.",
        "values[:, np.argmax(scores)]", "values[np.argmax(scores)]"),
    MistakeText(
        "HL14", "A matrix with one row is returned; one value of shape (d_v,) was asked for.",
        "A slice, a list or an array as an index keeps the axis: `values[i:i + 1]` and `values[[i]]` have shape "
        "(1, d_v). A plain number drops it.",
        "values[best:best + 1]", "values[best]"),
    MistakeText(
        "HL15", "The first value is returned, whatever query and keys are.",
        "A look-up has to compare the query with every key before it knows which value it wants.",
        "return values[0]", "return values[np.argmax(keys @ query)]"),
    MistakeText(
        "HL16", "The search starts from a best score of −1: where every score is lower, the first entry is returned.",
        "No number is low enough for all scores: −1, −1000 and −10⁹ only make the wrong answers rarer. A running maximum "
        "starts at −∞, or at the first score.",
        "best = -1", "best = -np.inf"),
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
            rtol=TIGHT,
            mistakes=(
                *mistakes(
                    _lookup, "HL1", "HL2", "HL3", "HL4", "HL5", "HL6", "HL7", "HL8", "HL9", "HL10", "HL11", "HL12", "HL13",
                    "HL14", "HL15", "HL16"),
                Mistake("HL5", _lookup("HL5", "guarded")),
            ),
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

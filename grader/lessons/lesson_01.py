"""Lesson 01: one attention step on three tokens, exercise by exercise."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from grader.lessons.lesson_01_mistakes import (
    TEXTS,
    wrong_attention,
    wrong_scale,
    wrong_scores,
    wrong_softmax,
    wrong_sum,
)
from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, Mistake, Property

SCRATCH = ("softmax", "attention")
BY_MATH = ("by math.exp", "by math.exp into an array")

TABLE_Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
TABLE_K = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
TABLE_V = np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])
TABLE_SCORES = TABLE_Q @ TABLE_K.T


# --- cases -----------------------------------------------------------------------------------------


def _whole(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Small whole numbers without 0, so that nothing drops out of a product."""
    return rng.integers(1, 5, size=shape) * rng.choice([-1.0, 1.0], size=shape)


def attention_scores_cases(rng: np.random.Generator) -> Iterator[Case]:
    small_k = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0], [3.0, 0.0, -1.0], [-2.0, 1.0, 2.0]])
    yield Case("small", "two queries and four keys", (np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 3.0]]), small_k))
    yield Case("table", "the three-token table", (TABLE_Q, TABLE_K))
    yield Case("one-query", "a single query", (_whole(rng, 1, 3), _whole(rng, 13, 3)))
    yield Case("one-key", "a single key", (_whole(rng, 4, 3), _whole(rng, 1, 3)))
    # Whole numbers meet fractions, on either side: no score is whole, so an array of the wrong type loses something.
    yield Case("one-feature", "vectors of one number, the keys whole", (_whole(rng, 3, 1) + 0.25, np.array([[2], [-3]])))
    yield Case("as-many", "as many keys as features, the queries whole",
               (_whole(rng, 2, 3).astype(int), np.array([[0.0, 0.3, 0], [1, 0, 4.3], [3.3, 0, 0]])))
    yield Case("whole", "arrays of whole numbers", (rng.integers(-5, 6, (3, 4)), rng.integers(-5, 6, (6, 4))))
    yield Case("random", "five queries and seven keys", (rng.normal(size=(5, 4)), rng.normal(size=(7, 4))))
    yield Case("more-queries", "more queries than keys", (rng.normal(size=(12, 3)), rng.normal(size=(2, 3))))
    yield Case("float32", "float32 inputs", (_single(rng, 3, 6), _single(rng, 5, 6)))
    yield Case("seen-again", "shapes seen before, new numbers", (rng.normal(size=(5, 4)), rng.normal(size=(7, 4))))
    yield Case("by-name", "arguments given by name",
               kwargs={"Q": rng.normal(size=(2, 15)), "K": rng.normal(size=(3, 15))})
    yield Case("large", "scores of about 10,000", (100 * _whole(rng, 3, 4), 10 * _whole(rng, 2, 4)), stage="extremes")


def _single(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def scale_scores_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("small", "scores with d_k = 16", (np.array([[4.0, -8.0, 2.0], [0.0, 1.0, 12.0]]), 16))
    yield Case("table", "the scores of the three-token table, d_k = 2", (TABLE_SCORES, 2))
    yield Case("one-row", "a single row of scores (one dimension), d_k = 9", (np.array([3.0, -6.0, 1.0, 9.0]), 9))
    yield Case("cube", "scores of a whole batch (three dimensions), d_k = 64", (rng.normal(size=(2, 3, 4)), 64))
    yield Case("unchanged", "d_k = 1 changes nothing", (rng.normal(size=(2, 5)), 1))
    yield Case("whole", "whole numbers, d_k = 3", (rng.integers(-9, 10, (3, 5)), 3))
    yield Case("random", "random scores, d_k = 7", (rng.normal(size=(4, 6)), 7))
    yield Case("float32", "float32 scores, d_k = 80", (_single(rng, 5, 7), 80))
    yield Case("one-number", "a single score, d_k = 5", (np.array([[3.5]]), 5))
    yield Case("deep", "scores of several heads (four dimensions), d_k = 12", (rng.normal(size=(2, 3, 5, 4)), 12))
    yield Case("seen-again", "a shape seen before, new numbers, d_k = 24", (rng.normal(size=(4, 6)), 24))
    yield Case("by-name", "arguments given by name", kwargs={"scores": rng.normal(size=(3, 2)), "d_k": 4096})
    yield Case("large", "scores of ±10,000 with d_k = 512",
               (np.array([[1e4, -1e4], [5e3, 9999.0]]), 512), stage="extremes")


def softmax_rows_cases(rng: np.random.Generator) -> Iterator[Case]:
    random = rng.normal(size=(4, 6))
    yield Case("small", "two rows of three scores", (np.array([[0.0, 1.0, 2.0], [3.0, 0.0, -1.0]]),))
    yield Case("table", "the scaled scores of the three-token table", (TABLE_SCORES / np.sqrt(2),))
    yield Case("equal", "equal scores", (np.full((2, 5), -3.0),))
    yield Case("one-row", "a single row", (np.array([[1.0, -1.0, 0.5, 2.0]]),))
    yield Case("one-column", "a single column: one key", (np.array([[2.0], [-1.0], [0.0]]),))
    yield Case("whole", "an array of whole numbers", (rng.permuted(np.tile(np.arange(-2, 3), (3, 1)), axis=1),))
    yield Case("random", "random scores", (random,))
    yield Case("shifted", "the same scores with a number added to each row",
               (random + np.array([[5.0], [-3.0], [20.0], [0.5]]),))
    yield Case("tall", "more rows than columns", (2 * rng.normal(size=(7, 3)),))
    yield Case("square", "as many rows as columns", (rng.normal(size=(4, 4)),))
    yield Case("float32", "float32 scores", (3 * _single(rng, 5, 8),))
    yield Case("seen-again", "a shape seen before, new numbers", (rng.normal(size=(4, 6)),))
    yield Case("by-name", "the argument given by name", kwargs={"scores": rng.normal(size=(3, 2))})
    yield Case("large", "scores of 1000", (np.array([[-300.0, 999.0, 1000.0, -300.0, -300.0], [1.0, 0.0, 2.0, -1.0, 0.0]]),),
               stage="extremes")  # 780 above the row's mean, where exp overflows, 650 above half of its range
    yield Case("very-negative", "scores of −1000", (np.array([[-1000.0, -999.0], [0.0, 1.0], [-998.5, -1000.0], [-997.0, -1000.0]]),),
               stage="extremes")  # the mean of all is −749, so that without it the second row overflows
    far = np.array([[-1000.0, 1000.0, 998.0, -1000.0], [1000.0, 998.0, 0.0, 999.5], [-1000.0, -997.0, -998.0, -999.0],
                    [-400.0, -402.0, -401.0, -403.0]])  # exp(−400) is not 0, exp(−800) is
    yield Case("far-apart", "rows from −1000 to 1000, near 1000, near −1000 and near −400", (far,), stage="extremes")
    yield Case("large-float32", "float32 scores of 1000",
               (np.array([[998.0, -1000.0, 1000.0], [-1000.0, -998.0, -999.0]], dtype=np.float32),), stage="extremes")


def weighted_sum_cases(rng: np.random.Generator) -> Iterator[Case]:
    pick = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    yield Case("small", "two queries and three keys",
               (np.array([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]), np.arange(12.0).reshape(3, 4) * 4))
    yield Case("pick", "weight 1 on one key", (pick.astype(int), np.array([[1.0, 2.5], [30.5, 40.0], [500.0, 600.5]])))
    yield Case("table", "the first row of the three-token table, rounded", (np.array([[0.4, 0.4, 0.2]]), TABLE_V))
    yield Case("as-they-are", "weights that do not sum to 1", (np.array([[2.0, -1.0, 0.0, 3.0], [0.5, 0, 0, 0.5]]),
                                                               np.array([[1], [2], [-4], [8]])))
    yield Case("one-key", "a single key", (np.array([[0.5], [2.0], [1.0]]), np.array([[3.0, -6.0]])))
    yield Case("whole", "arrays of whole numbers", (rng.integers(-3, 4, (2, 5)), rng.integers(-9, 10, (5, 3))))
    yield Case("random", "random weights and values", (rng.dirichlet(np.ones(7), 5), rng.normal(size=(7, 4))))
    yield Case("square", "as many queries as keys", (rng.dirichlet(np.ones(3), 3), rng.normal(size=(3, 5))))
    yield Case("tall", "more queries than keys", (rng.normal(size=(6, 2)), rng.normal(size=(2, 3))))
    yield Case("float32", "float32 inputs", (_single(rng, 3, 4), _single(rng, 4, 6)))
    yield Case("seen-again", "shapes seen before, new numbers", (rng.dirichlet(np.ones(7), 5), rng.normal(size=(7, 4))))
    yield Case("by-name", "arguments given by name",
               kwargs={"weights": rng.dirichlet(np.ones(3), 4), "V": rng.normal(size=(3, 2))})


def three_token_attention_cases(rng: np.random.Generator) -> Iterator[Case]:
    q, k, v = rng.normal(size=(5, 4)), rng.normal(size=(7, 4)), rng.normal(size=(7, 3))
    yield Case("table", "the three-token table", (TABLE_Q, TABLE_K, TABLE_V))
    yield Case("small", "two queries and three keys",
               (np.array([[1.0, 0, 2, 0], [0, -1, 0, 1]]), np.array([[2.0, 0, 0, 1], [0, 2, 1, 0], [1, 1, 1, 1]]),
                np.array([[1.0], [2.0], [4.0]])))
    yield Case("one-query", "a single query", (_whole(rng, 1, 3), _whole(rng, 4, 3), _whole(rng, 4, 2)))
    yield Case("one-key", "a single key: its value comes back",
               (_whole(rng, 3, 2), _whole(rng, 1, 2), _whole(rng, 1, 4)))
    yield Case("whole", "arrays of whole numbers",
               (rng.integers(-2, 3, (4, 3)), rng.integers(-2, 3, (5, 3)), rng.integers(-9, 10, (5, 2))))
    yield Case("random", "five queries and seven keys", (q, k, v))
    yield Case("reversed", "the same with keys and values in reverse order", (q, k[::-1].copy(), v[::-1].copy()))
    yield Case("identity", "values that form the identity matrix", (q[:3], k, np.eye(7)))
    yield Case("square", "as many queries as keys", tuple(rng.normal(size=(4, n)) for n in (5, 5, 3)))
    yield Case("more-queries", "more queries than keys",
               (rng.normal(size=(12, 18)), rng.normal(size=(2, 18)), rng.normal(size=(2, 5))))
    yield Case("float32", "float32 inputs", (_single(rng, 3, 6), _single(rng, 5, 6), _single(rng, 5, 4)))
    yield Case("seen-again", "shapes seen before, new numbers", tuple(rng.normal(size=a.shape) for a in (q, k, v)))
    yield Case("by-name", "arguments given by name",
               kwargs={"Q": rng.normal(size=(2, 3)), "K": rng.normal(size=(13, 3)), "V": rng.normal(size=(13, 5))})
    yield from _extreme_attention(rng)


def _extreme_attention(rng: np.random.Generator) -> Iterator[Case]:
    """Large scores; binary fractions and √d_k of 1, 2 or 4 keep them exact in float32, in whatever order it is done."""
    keys = 156 - np.array([[0.0], [1.0], [2.0]]) / 64
    yield Case("large", "scores of ±10,000", (np.array([[64.0], [-64.0]]), keys, rng.normal(size=(3, 5))), stage="extremes",
               rtol=2e-3)  # neighbouring float32 numbers near 10,000 are 1e-3 apart
    wide = np.zeros((2, 16))
    wide[:, 0], wide[0, 3], wide[1, 5] = (50.0, -50.0), 4.0, 8.0
    queries = np.zeros((3, 16))  # scaled scores of ±1,250, of ±500, and 1 and 2
    queries[:, 0], queries[2, 3], queries[2, 5] = (100.0, 40.0, 0.0), 1.0, 1.0
    yield Case("large-wide", "scores of ±5,000 with d_k = 16", (queries, wide, rng.normal(size=(2, 4))), stage="extremes")
    mixed = np.array([[40.0, 0, 0, 1], [0, -40.0, 1, 0], [0, 0, 1, 0], [0, -10.0, 0, 1]])  # exp(−400) is not 0, exp(−800) is
    keys = np.array([[80.0, 80, 2, 0], [80.0, 80, 0, 2], [-80.0, 80, 1, 1], [80.0, 80, 1, 0]])
    yield Case("mixed", "a row from −3,200 to 3,200 beside one near −3,200 and one near −800",
               (mixed, keys, rng.normal(size=(4, 2))), stage="extremes")
    single = tuple(array.astype(np.float32) for array in (mixed[:3], keys * [-1, 1, 1, 1], rng.normal(size=(4, 6))))
    yield Case("large-float32", "float32 scores of ±3,200", single, stage="extremes")


def corrected_first_row_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("answer", "the first token's output", probe="answer")


# --- properties ------------------------------------------------------------------------------------


def _rows_sum_to_one(part: str) -> Callable[..., str | None]:
    def check(case: Case, parts: dict[str, np.ndarray]) -> str | None:
        sums = parts[part].sum(axis=1)
        off = int(np.argmax(np.abs(sums - 1)))
        return None if abs(sums[off] - 1) < 1e-3 else f"row {off} sums to {sums[off]:.4g}."

    return check


def _shift_changes_nothing(case: Case, parts: dict, shifted: Case, shifted_parts: dict) -> str | None:
    return _unlike(parts["result"], shifted_parts["result"])


def _reversed_keys(case: Case, parts: dict, reverse: Case, reverse_parts: dict) -> str | None:
    weights = reverse_parts["weights"][:, ::-1]
    return _unlike(parts["output"], reverse_parts["output"]) or _unlike(parts["weights"], weights)


def _identity_shows_weights(case: Case, parts: dict) -> str | None:
    return _unlike(parts["weights"], parts["output"])


def _outputs_sum_to_ten(case: Case, parts: dict) -> str | None:
    sums = parts["output"].sum(axis=1)
    return None if np.allclose(sums, 10, atol=1e-3) else f"they sum to {np.array2string(sums, precision=4)}."


def _picks_one(case: Case, parts: dict) -> str | None:
    return _unlike(case.args[1][1:], parts["result"])


def _unlike(expected: np.ndarray, got: np.ndarray) -> str | None:
    if expected.shape != got.shape:
        return f"shapes {expected.shape} and {got.shape} differ."
    difference = float(np.abs(expected - got).max(initial=0.0))
    return None if difference < 1e-3 else f"they differ by up to {difference:.4g}."


# --- exercises -------------------------------------------------------------------------------------

ATTENTION_SCORES = Exercise(
    name="attention_scores",
    task="Multiply every query with every key: one dot product a pair, one row a query.",
    points=1,
    minutes=5,
    cases=attention_scores_cases,
    mistakes=(
        *mistakes(wrong_scores, "SD8", "TT1", "TT2", "TT3", "TT4", "TT5", "TT6", "TT7"),
        Mistake("SD8", wrong_scores("SD8", "by index")),
    ),
    combine=lambda ids: wrong_scores(*ids),
    forbids=SCRATCH,
    hints=(
        "Three queries meet four keys. How many scores are there, and which of the two numbers counts the rows?",
        "`Q @ X` adds up over the columns of Q and the rows of X. The two numbers of a key lie in a row of K, so K "
        "has to be turned before the product.",
        "```python\nreturn Q @ ____\n```",
    ),
)

SCALE_SCORES = Exercise(
    name="scale_scores",
    task="Divide the scores by the square root of d_k.",
    points=1,
    minutes=2,
    cases=scale_scores_cases,
    mistakes=mistakes(wrong_scale, "SD1", "SD2", "SD5", "TT8", "TT9", "TT10", "TT11", "TT12", "TT31", "TT41"),
    forbids=SCRATCH,
    hints=(
        "With d_k = 16, by what is each score divided?",
        "`np.sqrt` or `math.sqrt` gives the root. d_k is an argument: it is not a size of `scores`, which may have "
        "any shape.",
        "```python\nreturn scores / ____(d_k)\n```",
    ),
)

SOFTMAX_ROWS = Exercise(
    name="softmax_rows",
    task="Turn each row of scores into positive weights that sum to 1.",
    points=2,
    minutes=10,
    cases=softmax_rows_cases,
    mistakes=(
        *mistakes(
            wrong_softmax, "SM1", "SM3", "SM4", "SM5", "SM6", "SX4", "SX10", "SX23", "SX25", "SX26", "TT13", "TT14", "TT15", "TT16",
            "TT17", "TT18", "TT19", "TT41", "TT42", "TT43"),
        Mistake("SM1", wrong_softmax("SM1", "maximum of the row")),
        Mistake("SM3", wrong_softmax("SM3", "maximum of the row")),
        Mistake("SM4", wrong_softmax("SM4", "of both")),
        *(Mistake(id, wrong_softmax(id, by)) for id in ("SM5", "SM6") for by in BY_MATH),
        Mistake("TT43", wrong_softmax("TT43", "bound of float32")),
    ),
    combine=lambda ids: wrong_softmax(*ids),
    properties=(
        Property("each row of weights sums to 1", _rows_sum_to_one("result")),
        Property("adding the same number to a whole row of scores changes no weight", _shift_changes_nothing,
                 needs=("random", "shifted")),
    ),
    forbids=SCRATCH,
    hints=(
        "Each query has its own distribution over the keys. Along which axis of `scores` do the keys lie?",
        "Three steps, each along axis 1: subtract the largest score of the row (the weights stay the same, and exp "
        "cannot overflow), take `np.exp`, divide by the row's sum. `keepdims=True` keeps the shape (n_q, 1), so that "
        "NumPy divides each row by its own sum.",
        "```python\nshifted = scores - scores.max(axis=____, keepdims=True)\nexponentials = np.exp(shifted)\n"
        "return exponentials / exponentials.sum(axis=____, keepdims=____)\n```",
    ),
)

WEIGHTED_SUM = Exercise(
    name="weighted_sum",
    task="Add up the values, each multiplied by its weight: one output row a query.",
    points=1,
    minutes=3,
    cases=weighted_sum_cases,
    mistakes=(
        *mistakes(wrong_sum, "SD8", "TT20", "TT21", "TT22", "TT23", "TT24", "TT25", "TT26", "TT32"),
        *(Mistake("SD8", wrong_sum("SD8", by)) for by in ("by einsum", "by index")),
        Mistake("TT21", wrong_sum("TT21", "after the product")),  # differs where weights sum to 0
    ),
    combine=lambda ids: wrong_sum(*ids),
    properties=(Property("weight 1 on one key returns that key's value", _picks_one, needs=("pick",)),),
    forbids=SCRATCH,
    hints=(
        "A row of weights has one number for each key. What has V one row for?",
        "(n_q, n_k) times (n_k, d_v): the keys lie inside and are summed away. Nothing has to be turned.",
        "```python\nreturn ____ @ ____\n```",
    ),
)

THREE_TOKEN_ATTENTION = Exercise(
    name="three_token_attention",
    task="Put the four steps together and return the output and the weights, for any sizes.",
    points=3,
    minutes=8,
    cases=three_token_attention_cases,
    mistakes=(
        *mistakes(
            wrong_attention, "SD1", "SD2", "SD5", "SD6", "SD8", "SM1", "SM3", "SM4", "SM5", "SM6", "SX4", "SX23", "SX25", "SX26",
            "TT3", "TT8", "TT9", "TT10", "TT11", "TT14", "TT27", "TT28", "TT29", "TT30", "TT31", "TT33", "TT41", "TT44"),
        Mistake("SM1", wrong_attention("SM1", "maximum of the row")),
        Mistake("SM3", wrong_attention("SM3", "maximum of the row")),
        Mistake("SM4", wrong_attention("SM4", "of both")),
        *(Mistake(id, wrong_attention(id, by)) for id in ("SM5", "SM6") for by in BY_MATH),
        Mistake("SD6", wrong_attention("SD6", "output alone")),
        *(Mistake(id, wrong_attention(id, by)) for id in ("SD8", "TT44") for by in ("by einsum", "by index")),
    ),
    combine=lambda ids: wrong_attention(*ids),
    parts=("output", "weights"),
    properties=(
        Property("each row of weights sums to 1", _rows_sum_to_one("weights")),
        Property("each output of the table sums to 10, as each row of V does", _outputs_sum_to_ten, needs=("table",)),
        Property("reordering keys and values together changes no output", _reversed_keys, needs=("random", "reversed")),
        Property("values that form an identity matrix give the weights", _identity_shows_weights, needs=("identity",)),
    ),
    forbids=SCRATCH,
    hints=(
        "Four functions above do one step each. In which order does the formula softmax(QKᵀ / √d_k) V use them?",
        "Scores, scaled, weights, output. d_k is the number of columns of Q (or K). The formula is to work for any "
        "sizes, so take d_k from the shape. Return the pair (output, weights), in this order.",
        "```python\nscores = attention_scores(Q, K)\nscaled = scale_scores(scores, Q.shape[____])\nweights = "
        "____(scaled)\n"
        "return ____(weights, V), weights\n```",
    ),
)

CORRECTED_FIRST_ROW = Exercise(
    name="corrected_first_row",
    task="Give the two numbers that ought to be printed as the first token's output.",
    points=2,
    minutes=5,
    kind="answer",
    container="answer",
    rtol=0.0,
    atol=0.01,
    cases=corrected_first_row_cases,
    mistakes=(
        Mistake("TT34", [5.3, 4.2]),
        Mistake("TT35", [5.0, 4.0]),
        Mistake("TT36", [0.4011, 0.4011, 0.1978]),
        Mistake("TT37", [0.4223, 0.4223, 0.1554]),
        Mistake("TT38", [4.0111, 4.0111]),
        Mistake("TT39", [6.0167, 3.9833]),
        Mistake("TT40", [0.5, 0.5]),
    ),
    hints=(
        "Each row of V sums to 10, and the weights sum to 1. What does every output then sum to?",
        "The first row of the output of `three_token_attention(Q, K, V)` has the two numbers. By hand: 10 times the "
        "first "
        "weight plus 5 times the third, and 10 times the second plus 5 times the third.",
        "```python\noutput, weights = three_token_attention(Q, K, V)\ncorrected_first_row = output[____]\n```",
    ),
)

lesson = Lesson(
    name="01_three_tokens",
    title="Three tokens",
    question="Two walk-throughs print different results for the same table. Which one is right?",
    outcome="compute attention for three tokens by hand, and find what is wrong in published numbers",
    texts=TEXTS,
    exercises=(
        ATTENTION_SCORES, SCALE_SCORES, SOFTMAX_ROWS, WEIGHTED_SUM, THREE_TOKEN_ATTENTION, CORRECTED_FIRST_ROW,
    ),  # fmt: skip
)

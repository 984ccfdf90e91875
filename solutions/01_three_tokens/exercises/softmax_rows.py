"""Softmax of each row, from scratch and without overflow."""

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch

from ...shared.library import invariant, rows_sum_to_1
from ..shared import TABLE_SCORES, float32_normal

SHIFT = "scores - scores.max(axis=1, keepdims=True)"
UNSHIFTED, BY_ALL = patch(SHIFT, "scores"), patch(SHIFT, "scores - scores.max()")
WEIGHTS = "exponentials / exponentials.sum(axis=1, keepdims=True)"
# Python's own numbers: math.exp raises where np.exp gives ∞, and so does a division by 0.
EXP_OF_NUMBERS = patch("np.exp(shifted)", "np.array([[math.exp(score) for score in row] for row in shifted])")
ALL_OF_NUMBERS = EXP_OF_NUMBERS + patch(
    WEIGHTS, "np.array([[number / sum(row) for number in row] for row in exponentials.tolist()])"
)


@exercise(points=2, minutes=10, difficulty=2, forbids=("softmax", "attention"))
class softmax_rows:
    """Turn each row of scores into positive weights that sum to 1."""

    def cases(rng):
        random = rng.normal(size=(4, 6))
        yield Case("small", "two rows of three scores", (np.array([[0.0, 1.0, 2.0], [3.0, 0.0, -1.0]]),))
        yield Case("table", "the scaled scores of the three-token table", (TABLE_SCORES / np.sqrt(2),))
        yield Case("equal", "equal scores", (np.full((2, 5), -3.0),))
        yield Case("one-row", "a single row", (np.array([[1.0, -1.0, 0.5, 2.0]]),))
        yield Case("one-column", "a single column: one key", (np.array([[2.0], [-1.0], [0.0]]),))
        yield Case("whole", "an array of whole numbers", (rng.permuted(np.tile(np.arange(-2, 3), (3, 1)), axis=1),))
        yield Case("random", "random scores", (random,))
        yield Case(
            "shifted",
            "the same scores with a number added to each row",
            (random + np.array([[5.0], [-3.0], [20.0], [0.5]]),),
        )
        yield Case("tall", "more rows than columns", (2 * rng.normal(size=(7, 3)),))
        yield Case("square", "as many rows as columns", (rng.normal(size=(4, 4)),))
        yield Case("float32", "float32 scores", (3 * float32_normal(rng, 5, 8),))
        yield Case("seen-again", "a shape seen before, new numbers", (rng.normal(size=(4, 6)),))
        yield Case("by-name", "the argument given by name", kwargs={"scores": rng.normal(size=(3, 2))})
        high = [[-300.0, 999.0, 1000.0, -300.0, -300.0], [1.0, 0.0, 2.0, -1.0, 0.0]]
        yield Case(
            "large", "scores of 1000", (np.array(high),), stage="extremes"
        )  # 780 above the row's mean, where exp overflows, 650 above half of its range
        low = [[-1000.0, -999.0], [0.0, 1.0], [-998.5, -1000.0], [-997.0, -1000.0]]
        yield Case(
            "very-negative", "scores of −1000", (np.array(low),), stage="extremes"
        )  # the mean of all is −749, so that without it the second row overflows
        far = [
            [-1000.0, 1000.0, 998.0, -1000.0],
            [1000.0, 998.0, 0.0, 999.5],
            [-1000.0, -997.0, -998.0, -999.0],
            [-400.0, -402.0, -401.0, -403.0],
        ]  # exp(−400) is not 0, exp(−800) is
        yield Case(
            "far-apart",
            "rows from −1000 to 1000, near 1000, near −1000 and near −400",
            (np.array(far),),
            stage="extremes",
        )
        yield Case(
            "large-float32",
            "float32 scores of 1000",
            (
                np.array(
                    [[998.0, -1000.0, 1000.0], [-1000.0, -998.0, -999.0], [880.0, 1001.0, 1000.0]], dtype=np.float32
                ),
            ),
            stage="extremes",
        )

    sums = rows_sum_to_1("result")
    shift = invariant(
        "adding the same number to a whole row of scores changes no weight",
        ("random", "shifted"),
        "they differ by up to {gap}.",
        part="result",
    )

    hints = (
        "Each query has its own distribution over the keys. Along which axis of `scores` do the keys lie?",
        "Three steps, each along axis 1: subtract the largest score of the row (the weights stay the same, and exp cannot overflow), "
        "take `np.exp`, divide by the row's sum. `keepdims=True` keeps the shape (n_q, 1), so that NumPy divides each row by its own sum.",
        "```python\nshifted = scores - scores.max(axis=____, keepdims=True)\nexponentials = np.exp(shifted)\n"
        "return exponentials / exponentials.sum(axis=____, keepdims=____)\n```",
    )

    mistakes = {
        "SM1": (patch("max(axis=1", "max(axis=0", "sum(axis=1", "sum(axis=0"), patch("sum(axis=1", "sum(axis=0")),
        "SM3": (BY_ALL + patch("sum(axis=1, keepdims=True)", "sum()"), patch("sum(axis=1, keepdims=True)", "sum()")),
        "SM4": (
            patch("sum(axis=1, keepdims=True)", "sum(axis=1)"),
            patch("max(axis=1, keepdims=True)", "max(axis=1)", "sum(axis=1, keepdims=True)", "sum(axis=1)"),
            patch("max(axis=1, keepdims=True)", "max(axis=1)"),
        ),
        "SM5": (
            UNSHIFTED,
            UNSHIFTED + ALL_OF_NUMBERS,
            UNSHIFTED + EXP_OF_NUMBERS,
            patch("scores.max", "scores.mean"),
            patch("scores.max", "scores.min"),
            patch("scores.max(axis=1, keepdims=True)", "scores[:, :1]"),
        ),
        "SM6": (BY_ALL, BY_ALL + ALL_OF_NUMBERS, BY_ALL + EXP_OF_NUMBERS),
        "SX25": (
            patch(SHIFT, "scores - np.maximum(scores.max(axis=1, keepdims=True), 0)"),
            patch("scores.max", "np.abs(scores).max"),
        ),
        "TT13": patch(
            f"shifted = {SHIFT}",
            "",
            "exponentials = np.exp(shifted)",
            "",
            WEIGHTS,
            "scores / scores.sum(axis=1, keepdims=True)",
        ),
        "TT14": patch(WEIGHTS, "exponentials"),
        "SX53": patch("max(axis=1", "max(axis=0"),
        "SL14": (
            patch("np.exp(shifted)", "2.0 ** shifted"),
            patch("np.exp(shifted)", "2 ** shifted"),
        ),  # the latter refuses whole numbers
        "TT47": mistake(
            *(patch(SHIFT, f"scores / np.abs(scores).max({axis})") for axis in ("", "axis=1, keepdims=True")),
            *(patch(SHIFT, f"scores / scores.max({axis})") for axis in ("", "axis=1, keepdims=True")),
            says="The scores were divided by the largest of them before exp; the largest of a row should be subtracted.",
            why="""A division changes how far apart the scores are, and so the weights: [2, 1] has the weights [0.731, 0.269], and
            divided by 2, [1, 0.5] has [0.622, 0.378]. A subtraction keeps every difference, and prevents the overflow just as well.""",
        ),
        "HL3": (
            patch(SHIFT, "scores.max(axis=1, keepdims=True) - scores"),
            patch(SHIFT, "scores.min(axis=1, keepdims=True) - scores"),
        ),
        "TT41": patch(f"shifted = {SHIFT}", "scores -= scores.max(axis=1, keepdims=True)\n    shifted = scores"),
        "TT42": mistake(
            UNSHIFTED + patch(WEIGHTS, f"np.nan_to_num({WEIGHTS})"),
            *(patch(SHIFT, f"np.clip(scores, -{bound}, {bound})") for bound in (700, 50)),
            says="""The overflow was hidden: NaN was replaced by 0, or the scores were clipped before exp; prevent it by
            subtracting the row's largest score.""",
            why="""exp(1000) is still infinite and ∞/∞ still NaN; with 0 in its place, by `np.nan_to_num` or `np.where`,
            such a row has no weights. Clipped at 700, the scores 1000 and 999 are both 700 and share the weight evenly;
            their weights are 0.731 and 0.269. Subtracting the largest score keeps the differences.""",
        ),
    }

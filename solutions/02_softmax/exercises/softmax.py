"""Softmax along any axis, whatever the size of the numbers."""

import numpy as np

from grader.course.declare import UNTRIED, Case, exercise, holds, mistake, patch

from ..shared import FLOAT32_AT_1E4, first_cases, rows_apart, softmax_mistakes, sums_to_1, with_math_exp

# exp overflows in float32 beyond 88: in the first row where the minimum is subtracted, in the second where the mean is, too.
# In the third it underflows where the largest absolute value is.
FAR_FLOAT32 = np.array([[60.0, 50.0, -60.0, 59.0], [-100.0, 100.0, -90.0, -100.0], [-100.0, -99.0, -98.0, -101.0]])
COMMON = softmax_mistakes("x")
BACK = patch(
    "return grown / total", "return (grown / total).astype(np.result_type(x, np.float32))"
)  # of what was computed in float64


@exercise(points=3, minutes=12, difficulty=2, forbids=("softmax", "attention"))
class softmax:
    """Turn numbers into weights that sum to 1 along any axis, whatever their size."""

    def cases(rng):
        """Every axis of one to four dimensions, hidden entries, far apart rows, large numbers, float32."""
        yield from first_cases(rng)
        yield Case("square-axis", "as many rows as columns, axis=1 by name", (rng.normal(size=(4, 4)),), {"axis": 1})
        yield Case("middle", "the middle axis of three", (rng.normal(size=(2, 5, 3)), 1))
        yield Case("first", "the first axis of three", (rng.normal(size=(4, 2, 3)),), {"axis": 0})
        yield Case("heads", "the last axis but one of four", (rng.normal(size=(2, 3, 4, 5)), -2))
        yield Case("second", "axis 1 of four, counted from the front", (rng.normal(size=(3, 2, 5, 4)), 1))
        yield Case("whole", "whole numbers", (np.array([[3, -1, 0], [2, 2, 2]]),))
        yield Case("one", "a single entry in each row", (rng.normal(size=(3, 1)),))
        for i, shape in enumerate(((4,), (3, 5), (2, 4, 3))):
            x = rng.normal(size=shape)
            x[..., i] = -np.inf
            yield Case(f"hidden-{i}", "an entry of −∞ in each row", (x,))
        x = rng.normal(size=(4, 3))
        x[[0, 2, 3], [0, 2, 2]] = -np.inf
        yield Case("hidden-columns", "entries of −∞, along axis 0", (x, 0))
        for i, (x, axis) in enumerate(
            ((FAR_FLOAT32, -1), (rng.normal(size=(5, 2)), 0), (rng.normal(size=(2, 3, 4)), 0))
        ):
            yield Case(f"float32-{i}", "float32 input", (x.astype(np.float32), axis), dtype=("float32",))
        for i, shape in enumerate(((4,), (3, 4), (2, 3, 5))):
            x = rng.integers(-100, 101, shape) * 100.0
            yield Case(f"large-{i}", "entries of up to ten thousand", (x,), stage="extremes", rtol=FLOAT32_AT_1E4)
        for i in range(5):
            rows, title = rows_apart(rng), "rows far from one another"
            if i >= 2:  # a fill in place of −∞, be it −1000 or −10000, is no lower than the entries beside it
                rows[1] -= 4998.0
                rows[:, 1] = -np.inf
                title += ", with entries of −∞"
            yield Case(f"far-{i}", title, (rows,), stage="extremes", rtol=FLOAT32_AT_1E4)

    sums = sums_to_1()

    @holds("an entry of −∞ gets weight 0")
    def hidden_get_nothing(case, parts):
        hidden = parts["result"][np.isneginf(case.args[0])]
        if hidden.size == 0:
            return UNTRIED
        return None if not hidden.any() else f"an entry of −∞ has the weight {hidden[hidden != 0][0]:.4g}."

    hints = (
        "What is the largest number that `np.exp` can take in float64? What could be subtracted from a row without changing its weights?",
        "Subtract the maximum *along the axis*, keeping that axis with `keepdims=True`, then divide by the sum along it.",
        "top = x.max(axis=____, keepdims=____)\ne = np.exp(____)\nreturn e / e.sum(____)",
    )

    mistakes = {
        **COMMON,
        "SM5": (*COMMON["SM5"], patch("x - top", "x.astype(float)") + BACK, *with_math_exp("x")),
        "SM6": (COMMON["SM6"], patch("x - top", "x.astype(float) - x.max()") + BACK, *with_math_exp("x", "x.max()")),
        "SX25": (*COMMON["SX25"], COMMON["SX25"][0] + patch("x.max(", "x.astype(float).max(") + BACK),
        "TT13": patch("np.exp(x - top)", "x"),
        "NT9": patch("x - top", "x.astype(float) - top"),
        "TT41": tuple(
            patch("grown = ", f"{changed}\n    grown = ", "x - top", "x")
            for changed in ("x -= top", "if x.dtype.kind == 'f':\n        x -= top\n    else:\n        x = x - top")
        ),
        "SL14": patch("np.exp(", "np.exp2("),
        "SX56": mistake(
            *(
                patch("top = ", f"x = np.where(np.isneginf(x), {low}, x)\n    top = ") + BACK
                for low in ("-10000.0", "-1000.0", "-100.0")
            ),
            says="−∞ was replaced by a number such as −10000, which other scores may reach; leave it, for exp(−∞) is 0.",
            why="""An entry of −∞ is hidden: its weight is 0, whatever the others are. A number in its place hides only where all others lie
            far above it. With the maximum subtracted −∞ does no harm: exp(−∞ − max) is 0.""",
        ),
        "TT14": patch("return grown / total", "return grown"),
    }

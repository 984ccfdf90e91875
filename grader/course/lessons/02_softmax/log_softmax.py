"""The logarithms of softmax, without softmax on the way."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from .shared import FLOAT32_AT_1E4, by_math, common, first_cases, rows_apart, worst_sum

COMMON = common("x")
LOGS = "shifted - np.log(total)"
LOGS_BY_MATH = ("[number - math.log(sum(e)) for number in s]",)


@exercise(points=2, minutes=8, difficulty=2, forbids=("softmax", "attention"))
class log_softmax:
    """Give the logarithms of the weights without ever rounding a weight to 0."""

    def cases(rng):
        yield from first_cases(rng)
        yield Case("middle", "the middle axis of three", (rng.normal(size=(2, 5, 3)), 1))
        yield Case("first", "the first axis of three", (rng.normal(size=(4, 2, 3)),), {"axis": 0})
        yield Case("whole", "whole numbers", (np.array([[3, -1, 0], [2, 2, 2]]),))
        yield Case("float32", "float32 input", (rng.normal(size=(3, 5)).astype(np.float32),))
        yield Case("one", "a single entry in each row", (rng.normal(size=(3, 1)),))
        yield Case("far-small", "0 and minus ten thousand", (np.array([0.0, -1e4]),), stage="extremes")
        for i, shape in enumerate(((4,), (3, 4), (2, 3, 5))):
            x = rng.integers(-100, 101, shape) * 100.0
            x[..., 0], x[..., 1] = 1e4, -1e4
            title = "entries of ten thousand and minus ten thousand"
            yield Case(f"large-{i}", title, (x,), stage="extremes", atol=FLOAT32_AT_1E4)
        rows = np.array([[-9000.0, -9000.0, -9000.0, -1e4], [-1e4, -9980.0, -9980.0, -9980.0]])  # ln 3 below x − max, everywhere
        yield Case("apart-0", "three equal scores and one below them, all far below 0", (rows,), stage="extremes", atol=FLOAT32_AT_1E4)
        for i in (1, 2):
            rows = rows_apart(rng)
            rows[0] += 6000 * (i == 1)
            yield Case(f"apart-{i}", "rows far from one another", (rows,), stage="extremes", atol=FLOAT32_AT_1E4)

    @holds("the exponentials sum to 1 along the axis")
    def sums(case, parts):
        _, worst = worst_sum(case, np.exp(parts["result"]))
        return None if abs(worst - 1) < 1e-4 else f"their exponentials sum to {worst:.4g}."

    hints = ("What is ln(eᵃ / b)? Does it need eᵃ at all?",
        "With s = x − max: ln softmax = s − ln Σ eˢ. The sum is at least 1, so its logarithm is safe.",
        "s = x - x.max(axis=axis, keepdims=True)\nreturn s - np.log(____)")

    mistakes = {
        **COMMON,
        "SM5": (COMMON["SM5"], *by_math("x", "0.0", "logs", LOGS_BY_MATH)),
        "SM6": (COMMON["SM6"], *by_math("x", "x.max()", "logs", LOGS_BY_MATH)),
        "SX30": mistake(patch(LOGS, "np.log(np.exp(shifted) / total)"),
            says="The logarithm was taken after softmax, which rounds small weights to 0, and ln 0 is −∞; compute it without softmax.",
            why="""e^−10000 is smaller than any float, so softmax returns exactly 0 and its logarithm is −∞, while the answer is
            −10000. Staying in logarithms never leaves the range: x − max − ln Σ e^(x − max)."""),
        "SX31": mistake(patch(LOGS, "np.log(np.exp(shifted) / total + 1e-12)"),
            says="A small number was added before the logarithm, which keeps results above −27.6; they should go as low as the scores do.",
            why="ln(10⁻¹²) = −27.6, so every answer below that becomes −27.6. Such a loss cannot tell a poor prediction from a worse one."),
        "SX32": mistake(patch(LOGS, "shifted"), says="The logarithm of the sum is missing: only the maximum was subtracted; subtract both.",
            why="""x − max puts the largest at 0, which would be a weight of 1. What remains to be subtracted is ln Σ e^(x −
            max). For (0, 0) both have to be −0.693."""),
        "SX33": mistake(patch("return logs", "return logs / np.log(2)"), patch("np.log(", "np.log2("),
            says="The logarithm was taken with base 2; the natural one is asked for.",
            why="softmax is made of e, and in base e its logarithm is a plain difference: −0.693 for one half, where base 2 gives −1."),
        "SX34": mistake(patch("return logs", "return -logs"), says="The sign was reversed; the logarithm of a weight should be 0 or below.",
            why="A weight is at most 1, its logarithm at most 0. Minus the logarithm is a loss, which is useful and has another name."),
        "SX35": mistake(patch("shifted - np", "x - np"),
            says="The maximum was subtracted only inside the sum; subtract it from x as well.",
            why="""ln Σ eˣ is max + ln Σ e^(x − max). Leaving out the max makes every answer too large by it: for (1000, 1000) it
            gives 999.3, where ln ½ is −0.693."""),
    }

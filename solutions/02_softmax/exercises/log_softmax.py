"""The logarithms of softmax, without softmax on the way."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ..shared import FLOAT32_AT_1E4, first_cases, rows_apart, softmax_mistakes, with_math_exp, worst_sum

COMMON = softmax_mistakes("x")
LEAST = ("1e-12", "1e-10", "1e-09", "1e-08", "1e-07", "1e-15", "1e-16", "1e-20", "1e-30", "1e-300")
LEAST += ("np.finfo(float).eps", "np.finfo(float).tiny")
LOGS = "shifted - np.log(total)"
PAIRWISE = """slices = np.moveaxis(x, axis, -1)
    grown = np.exp(slices[..., None, :] - slices[..., :, None])
    return np.moveaxis(-np.log(grown.sum(axis=-1)), -1, axis)"""
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
        # exp(−720) is not yet 0, and exp(720) is infinite already: what overflows differs here from what underflows.
        yield Case("below", "0 and −720", (np.array([0.0, -720.0, -3.0]),), stage="extremes")
        yield Case("far-small", "0 and minus ten thousand", (np.array([0.0, -1e4]),), stage="extremes")
        for i, shape in enumerate(((4,), (3, 4), (2, 3, 5))):
            x = rng.integers(-100, 101, shape) * 100.0
            x[..., 0], x[..., 1] = 1e4, -1e4
            title = "entries of ten thousand and minus ten thousand"
            yield Case(f"large-{i}", title, (x,), stage="extremes", atol=FLOAT32_AT_1E4)
        rows = np.array(
            [[-9000.0, -9000.0, -9000.0, -1e4], [-1e4, -9980.0, -9980.0, -9980.0]]
        )  # ln 3 below x − max, everywhere
        yield Case(
            "apart-0",
            "three equal scores and one below them, all far below 0",
            (rows,),
            stage="extremes",
            atol=FLOAT32_AT_1E4,
        )
        for i in (1, 2):
            rows = rows_apart(rng)
            rows[0] += 6000 * (i == 1)
            yield Case(f"apart-{i}", "rows far from one another", (rows,), stage="extremes", atol=FLOAT32_AT_1E4)

    @holds("the exponentials sum to 1 along the axis")
    def sums(case, parts):
        _, worst = worst_sum(case, np.exp(parts["result"]))
        return None if abs(worst - 1) < 1e-4 else f"their exponentials sum to {worst:.4g}."

    hints = (
        "What is ln(eᵃ / b)? Does it need eᵃ at all?",
        "With s = x − max: ln softmax = s − ln Σ eˢ. The sum is at least 1, so its logarithm is safe.",
        "s = x - x.max(axis=axis, keepdims=True)\nreturn s - np.log(____)",
    )

    mistakes = {
        **COMMON,
        "SM5": (*COMMON["SM5"], *with_math_exp("x", "0.0", "logs", LOGS_BY_MATH), patch("return logs", PAIRWISE)),
        "SM6": (COMMON["SM6"], *with_math_exp("x", "x.max()", "logs", LOGS_BY_MATH)),
        "SX30": mistake(
            patch(LOGS, "np.log(np.exp(shifted) / total)"),
            patch(LOGS, "np.nan_to_num(np.log(np.exp(shifted) / total))"),
            says="Small exponentials were rounded to 0 before their logarithm was taken, and ln 0 is −∞; compute it without softmax.",
            why="""e^−10000 is smaller than any float, so exp, and softmax after it, return exactly 0. Its logarithm is −∞, while the
            answer is −10000. Staying in logarithms never leaves the range: x − max − ln Σ e^(x − max).""",
        ),
        "SX31": mistake(
            *(patch(LOGS, f"np.log(np.exp(shifted) / total + {least})") for least in LEAST),
            *(
                patch("return logs", f"return np.maximum(logs, {least})")
                for least in ("-100.0", "-50.0", "-1000.0", "-1e4")
            ),
            says="""The logarithm was given a lower bound, by a small number under it or by a cut of the result; it may be as
            low as the scores make it.""",
            why="""With 10⁻¹² added to a weight, or as its lower bound, every logarithm below ln(10⁻¹²) = −27.6 becomes
            −27.6; a result that is cut at −100 loses what lies below that. Such a loss cannot tell a poor prediction from a
            worse one. The logarithm of a weight can be −10000 without any overflow: it is a difference of scores, x − max −
            ln Σ e^(x − max), without softmax.""",
        ),
        "SX33": (
            patch("return logs", "return logs / np.log(2)"),
            patch("return logs", "return logs / np.log(10)"),
            patch("np.log(", "np.log2("),
            patch("np.log(", "np.log10("),
        ),
        "CE4": patch("return logs", "return np.exp(logs)"),
        "SX35": mistake(
            patch("shifted - np", "x - np"),
            patch("shifted - np", "shifted - top - np"),
            patch("np.exp(shifted).sum(", "np.exp(x).sum("),
            says="The maximum was subtracted inside the sum alone, outside of it alone, or outside twice; take it off once in both places.",
            why="""ln Σ eˣ is max + ln Σ e^(x − max), and x − ln Σ eˣ is therefore (x − max) − ln Σ e^(x − max). Otherwise
            every answer is off by the maximum: for (1000, 1000) it is 999.3, or −1000.7, where ln ½ is −0.693. And where it is
            not subtracted inside, large scores overflow in the sum.""",
        ),
        "SX58": mistake(
            patch("np.log(total)", "np.log1p(total)"),
            says="`log1p` added a 1 to a sum that already has the largest entry's 1; take `np.log` of the whole sum.",
            why="""log1p(y) is ln(1 + y). The exponential of the maximum is 1, and the sum has it: for (0, 0) the sum is 2 and ln 2 is
            right. With log1p the sum would have to leave that entry out.""",
        ),
    }

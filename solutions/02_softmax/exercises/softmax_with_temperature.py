"""Softmax that a temperature makes sharper or flatter."""

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch

from ..shared import FLOAT32_AT_1E4, softmax_mistakes, sums_to_1, with_math_exp

COMMON = softmax_mistakes("scaled")
REFUSE = """if temperature <= 0:
        raise ValueError(f'the temperature must be positive; got {temperature}')"""
SCALED, UNSCALED, WEIGHTS = "scaled = x / temperature", patch("x / temperature", "x"), "grown / total"
POWERS = f"({WEIGHTS}) ** (1 / temperature)"


@exercise(points=2, minutes=6, difficulty=1, forbids=("softmax", "attention"))
class softmax_with_temperature:
    """Make the weights sharper or flatter by a temperature."""

    def cases(rng):
        yield Case("small", "one row of three at temperature 2", (np.array([1.0, 0.0, 2.0]), 2.0))
        yield Case("cold", "two rows at temperature 0.5", (np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]]), 0.5))
        yield Case("seen-again", "two rows at temperature 0.5, new numbers", (rng.normal(size=(2, 3)), 0.5))
        yield Case("one", "temperature 1", (rng.normal(size=(3, 4)), 1.0))
        yield Case("whole", "whole numbers, temperature 3", (np.array([[3, -1, 0], [2, 5, 1]]), 3))
        yield Case("one-columns", "temperature 1, along axis 0", (rng.normal(size=(4, 3)), 1.0, 0))
        yield Case("one-middle", "temperature 1, the middle axis of three", (rng.normal(size=(2, 3, 4)), 1, 1))
        yield Case("columns", "along axis 0", (rng.normal(size=(4, 2)), 0.7, 0))
        yield Case("middle", "the middle axis of three", (rng.normal(size=(2, 5, 3)), 4.0), {"axis": 1})
        yield Case("first", "the first axis of three", (rng.normal(size=(4, 2, 3)), 0.8, 0))
        yield Case("square", "as many rows as columns", (rng.normal(size=(3, 3)), 1.5))
        yield Case("float32", "float32 input", (rng.normal(size=(2, 5)).astype(np.float32), 0.3))
        yield Case("hot", "temperature 10000", (rng.normal(size=(2, 4)) * 3, 1e4))
        for i in range(3):
            x = np.vstack(
                [rng.permutation(3) * 1e-3, rng.permutation(3) + 1.0 + i]
            )  # as 0, 1, 2 at temperature 1; and one takes all
            x[1] *= -1 if i else 1  # every entry far below 0
            yield Case(f"frozen-{i}", "temperature 0.001", (x, 1e-3), stage="extremes")
        for i, temperature in enumerate((1e4, 4e3, 2e3)):
            x = rng.permutation(np.arange(-10, 11, 2))[:8].reshape(2, 4) * 1000.0
            yield Case(
                f"large-{i}",
                "entries of up to ten thousand at temperatures of thousands",
                (x, temperature),
                stage="extremes",
            )
        x = rng.integers(-100, 101, (4, 4)) * 100.0
        x[1:3] = -1e4, -9998.0, -1e4, -9999.0
        x[2] += 9400  # exp(−600) is not 0, exp(−1200) is
        yield Case(
            "large-plain",
            "entries of up to ten thousand at temperature 1",
            (x, 1.0),
            stage="extremes",
            rtol=FLOAT32_AT_1E4,
        )
        for i, temperature in enumerate((0, 0.0, np.float64(0.0), -1.0, -0.5, -3)):
            title = f"temperature {temperature:g}".replace("-", "−")
            yield Case(f"refused-{i}", title, (rng.normal(size=(2, 3)), temperature), raises="ValueError")

    sums = sums_to_1()

    hints = (
        "At which temperature should nothing change? Which temperatures make no sense?",
        "Divide x before softmax. Compare the temperature with 0 first.",
        "if temperature ____ 0:\n    raise ____(...)\nreturn softmax(x ____ temperature, axis)",
    )

    mistakes = {
        **COMMON,
        "SM5": (*COMMON["SM5"], *with_math_exp("scaled")),
        "SM6": (COMMON["SM6"], *with_math_exp("scaled", "scaled.max()")),
        "TT41": patch(SCALED, "x /= temperature\n    scaled = x"),
        "SX11": mistake(
            patch("x / temperature", "x * temperature"),
            says="The scores were multiplied by the temperature; divide them by it.",
            why="A high temperature should even out the weights. Multiplying by it spreads the scores and sharpens the weights.",
        ),
        "SX12": mistake(
            UNSCALED + patch(WEIGHTS, f"{WEIGHTS} / temperature"),
            UNSCALED + patch(WEIGHTS, POWERS),
            UNSCALED
            + patch(
                f"return {WEIGHTS}", f"powers = {POWERS}\n    return powers / powers.sum(axis=axis, keepdims=True)"
            ),
            says="The temperature was applied after softmax, to the weights; divide the scores by it, before softmax.",
            why="""After softmax the row sums to 1; divided by a temperature τ, to 1/τ. As a power, softmax(x)^(1/τ) has the
            right proportions, since (e^x)^(1/τ) = e^(x/τ), and still has to be divided by its sum. Then it is the same on
            paper. But a weight that was rounded to 0 stays 0: for (0, −5000) at temperature 10000 the weights should be
            (0.622, 0.378), and softmax has made (1, 0) before the power.""",
        ),
        "SX13": mistake(
            patch(REFUSE, ""),
            patch("<= 0", "< 0"),
            patch("<= 0", "== 0"),
            says="Not every temperature of 0 or below was refused; 0 and negative ones should each raise a ValueError.",
            why="""Dividing by 0 gives NaN in arrays, and a ZeroDivisionError with Python's own numbers. A negative
            temperature divides without complaint and turns the order around: the lowest score wins. The function has to
            refuse both by itself, `temperature <= 0`.""",
        ),
        "SX19": mistake(
            UNSCALED,
            says="The temperature has no effect: it is never used, or it cancels; divide the scores by it.",
            why="""At a temperature of 1 nothing shows. At 0.1 the weights have to be far sharper, at 10 far flatter. If it divides
            the exponentials, or weights that are then normalized again, it appears in numerator and denominator and cancels.""",
        ),
        "SX51": patch("scaled.max(", "x.max("),
        "SX57": mistake(
            *(patch("x / temperature", f"x / max(temperature, {least})") for least in (0.1, 0.01, 0.5, 1.0)),
            says="Low temperatures were raised to a fixed bound; every temperature above 0 should be used as it is.",
            why="""A low temperature overflows nothing once the maximum is subtracted after the division: every exponent is at most 0. With
            the bound 0.1 the temperatures 0.1 and 0.001 give the same weights.""",
        ),
    }

"""All values, blended by how well their keys fit the query."""

import numpy as np
from numpy.typing import ArrayLike

from grader.course.declare import Case, exercise, holds, mistake, patch

FIT, SHARP = "keys @ query", "sharpness * (keys @ query)"
SHIFT, BLEND = "np.exp(scores - scores.max())", "weights @ values"


@exercise(points=2, minutes=8, difficulty=2)
class soft_lookup:
    """Return all values, blended by softmax weights: the larger a key's dot product with the query, the more its value counts."""

    def cases(rng):
        def case(
            key: str, title: str, query: ArrayLike, keys: ArrayLike, values: ArrayLike, *sharpness: float, **more: str
        ) -> Case:
            return Case(key, title, (np.array(query), np.array(keys), np.array(values), *sharpness), **more)

        query, keys = [1.0, 2.0], [[2.0, 0.0], [0.0, 0.5], [1.0, -1.0]]  # scores 2, 1, -1
        values = [[10.0, 0.0, 3.0, 1.0], [0.0, 20.0, 3.0, 2.0], [30.0, 60.0, 3.0, 4.0]]
        yield case("small", "three keys", query, keys, values)
        yield case("sharp", "three keys, sharpness 3", query, keys, values, 3.0)
        yield case("flat", "sharpness 0: the plain mean", query, keys, values, 0)
        yield case("blunt", "sharpness ¼", query, keys, values, 0.25)
        yield case("one-entry", "a single entry", [1.0, -2.0, 3.0], [[2.0, 5.0, 1.0]], [[5.0, 7.0]], 0.5)
        yield case(
            "all-negative",
            "every score is negative",
            [1.0, 1.0],
            [[-3.0, -1.0], [-1.0, 0.0], [-2.0, -1.0]],
            [[1.0], [10.0], [100.0]],
        )
        yield case(
            "whole",
            "arrays of whole numbers",
            [2, -1],
            [[1, 1], [0, -2], [1, 0], [2, 3]],
            np.arange(12).reshape(4, 3) ** 2,
            1,
        )
        yield case(
            "square",
            "as many entries as features and as numbers in a value",
            rng.normal(size=3),
            rng.normal(size=(3, 3)),
            rng.normal(size=(3, 3)),
            1.5,
        )
        yield case(
            "random",
            "seven random entries",
            rng.normal(size=3),
            rng.normal(size=(7, 3)),
            rng.normal(size=(7, 4)) * 5,
            0.7,
        )
        yield case(
            "wide",
            "more features than entries",
            rng.normal(size=9),
            rng.normal(size=(4, 9)),
            rng.normal(size=(4, 2)),
            0.4,
        )
        yield case(
            "float32",
            "float32 inputs",
            *(rng.normal(size=shape).astype(np.float32) for shape in (4, (6, 4), (6, 5))),
            1.25,
        )
        yield case(
            "seen-again",
            "shapes seen before, new numbers",
            rng.normal(size=3),
            rng.normal(size=(7, 3)),
            rng.normal(size=(7, 4)),
            2.0,
        )
        yield Case(
            "by-name",
            "arguments given by name",
            kwargs={
                "query": rng.normal(size=2),
                "keys": rng.normal(size=(5, 2)),
                "values": rng.normal(size=(5, 3)),
                "sharpness": 0.8,
            },
        )
        yield case(
            "far",
            "scores of 45 and −40",
            [10.0, 5.0],
            [[4.0, 1.0], [-3.0, -2.0], [4.5, -0.5], [4.0, 0.75]],
            [[1.0, 8.0], [2.0, 4.0], [3.0, 2.0], [4.0, 9.0]],
            stage="extremes",
        )
        yield case(
            "far-and-blunt",
            "scores of 600 at sharpness 0.01",
            [10.0, 20.0],
            [[20.0, 20.0], [-10.0, 5.0], [30.0, 10.0]],
            [[1.0, 8.0], [2.0, 4.0], [30.0, 2.0]],
            0.01,
            stage="extremes",
        )

    @holds("sharpness 0 gives the plain mean of the values", cases=("flat",))
    def mean_at_0(case, parts):
        wanted = case.args[2].mean(axis=0)
        if np.allclose(parts["result"], wanted, atol=1e-5):
            return None
        return f"the mean is {np.array2string(wanted, precision=4)}, and here {np.array2string(parts['result'], precision=4)} comes back."

    hints = (
        "Let two keys have the scores 2 and 1. Which two positive numbers that sum to 1 say how much each value counts?",
        "First the scores times sharpness, one number for each key. Then `np.exp` of each, divided by the sum of all of them: these are "
        "the weights. Last, add up the rows of `values`, each times its weight.",
        "```python\nfits = np.exp(____ * (keys @ query))\nweights = fits / ____\nreturn weights @ ____\n```",
    )

    mistakes = {
        "SL1": mistake(
            patch(SHARP, FIT),
            patch(SHARP, FIT, SHIFT, "sharpness * np.exp(scores)"),
            says="The sharpness had no effect; it should multiply the scores before the exponential.",
            why="""Multiplied with the exponentials or with the weights, a common factor cancels when they are divided by their sum. Inside
            the exponential it changes how far apart the weights are.""",
        ),
        "TT14": (
            patch(SHIFT, "np.exp(scores)", "fits / fits.sum()", "fits"),
            patch(SHIFT, "np.exp(scores)", "fits / fits.sum()", "fits / len(fits)"),
            patch("fits / fits.sum()", "fits / fits.max()"),
        ),
        "SL3": mistake(
            patch("return weights @ values", "return sharpness * weights @ values"),
            patch(SHARP, FIT, "return weights @ values", "return sharpness * weights @ values"),
            patch(SHARP, "(keys @ query) ** sharpness"),
            patch(
                SHIFT,
                "np.exp(keys @ query - (keys @ query).max())",
                "fits / fits.sum()",
                "fits / (fits ** sharpness).sum()",
            ),
            patch(SHARP, "sharpness ** 2 * (keys @ query)"),
            patch(SHARP, FIT, BLEND, "weights ** sharpness @ values"),
            says="""The sharpness was applied in another way: to the answer, twice, as a power, or in the sum alone; multiply each
            score by it once, before exp.""",
            why="""softmax(sharpness · scores): the product comes first, then the exponential, then the division by the sum
            of these exponentials. The weights sum to 1 at every sharpness, so at sharpness 0 the mean comes back, and not 0.
            If the query or the keys are multiplied by it, the scores have it already. As a power of the weights it gives the
            right proportions, since (e^s)^c is e^(c s), but the weights no longer sum to 1.""",
        ),
        "SL5": patch("return weights @ values", "return values[np.argmax(scores)]"),
        "TT13": (
            patch(SHIFT, "scores"),
            patch(SHIFT, "np.abs(scores)"),
            patch(SHIFT, "np.maximum(scores, 0)"),
            patch(SHIFT, "scores - scores.min()"),
        ),
        "SL7": patch(SHARP, "(keys @ query) / sharpness"),
        "SL8": patch(BLEND, "(weights[:, None] * values).mean(axis=0)"),
        "HL1": patch(BLEND, "weights @ keys"),
        "HL5": tuple(
            patch(FIT, f"keys @ query / (np.linalg.norm(keys, axis=1) * np.linalg.norm(query){guard})")
            for guard in ("", " + 1e-09")
        ),
        "HL4": (patch(FIT, "-((keys - query) ** 2).sum(axis=1)"), patch(FIT, "-np.linalg.norm(keys - query, axis=1)")),
        "HL12": patch(FIT, "query @ keys"),
        "SL14": (patch(SHIFT, "2.0 ** (scores - scores.max())"), patch(SHIFT, "10.0 ** (scores - scores.max())")),
        "HL3": patch(SHARP, "-sharpness * (keys @ query)"),
        "TT1": patch(FIT, "(keys @ query) / np.sqrt(len(query))"),
    }

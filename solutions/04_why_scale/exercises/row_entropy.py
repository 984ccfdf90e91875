"""The entropy of each row of weights, in nats."""

import math

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

SEEN, RETURN = "np.where(weights > 0, weights, 1)", "return entropy"


def rows(rng: np.random.Generator, *shape: int) -> np.ndarray:
    e = np.exp(rng.normal(size=shape) * 1.5)
    return e / e.sum(axis=-1, keepdims=True)


@exercise(points=2, minutes=8, difficulty=2, rtol=0.0, atol=1e-6)
class row_entropy:
    """Compute the entropy of each row of weights, in nats."""

    def cases(rng):
        yield Case("small", "two rows of three weights", (np.array([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]),))
        yield Case("row", "one row alone: one number", (np.array([0.1, 0.2, 0.3, 0.4]),))
        yield Case(
            "zeros",
            "rows with weights of 0",
            (np.array([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.2, 0.0, 0.8]]),),
        )
        yield Case("zeros-again", "other rows with weights of 0", (np.array([[0.0, 0.25, 0.75], [0.0, 0.0, 1.0]]),))
        some = np.where(np.eye(4) > 0, 0, rows(rng, 2, 4, 4))
        yield Case("zeros-batch", "a batch, some weights 0", (some / some.sum(axis=-1, keepdims=True),))
        yield Case("seen-again", "the same shape, new numbers", (rows(rng, 2, 3),))
        yield Case("square", "as many rows as weights in a row", (rows(rng, 5, 5),))
        yield Case("batch", "a batch of heads", (rows(rng, 2, 3, 5, 7),))
        single = rows(rng, 3, 6).astype(np.float32)
        single[1] = [0.5, 0, 0.25, 0, 0.25, 0]  # a constant that keeps ln 0 away in float64 may be 0 in float32
        yield Case("float32", "float32 weights, some 0", (single,))
        yield Case("whole", "one-hot rows of whole numbers", (np.array([[0, 1, 0], [1, 0, 0]]),))
        yield Case("wide", "equal weights over 512 keys", (np.full((2, 512), 1 / 512),))
        small = np.array([[1.0, 1e-300], [1 - 1e-5, 1e-5], [3e-7, 1 - 3e-7]])
        yield Case("tiny", "weights of 1e-300, 1e-5 and 3e-7", (small,), stage="extremes")
        for i in range(2):
            faint = np.array([[0.3, 2e-5, 6e-6, 0.0], [0.6, 0.0, 4e-5, 9e-6], [0.1, 3e-4, 1e-6, 5e-5]])[
                :, rng.permutation(4)
            ]
            faint /= faint.sum(axis=1, keepdims=True)
            yield Case(f"small-{i}", "weights of a hundred-thousandth and less", (faint,), stage="extremes")

    @holds("an entropy is never negative")
    def not_negative(case, parts):
        low = float(parts["result"].min())
        return None if low > -1e-6 else f"an entropy of {low:.4g} came back."

    @holds("no entropy is above ln n nats, that of n equal weights")
    def not_above_uniform(case, parts):
        n = np.shape(case.args[0])[-1]
        highest, most = float(parts["result"].max()), math.log(n)
        return (
            None
            if highest - most < 1e-5
            else f"an entropy of {highest:.4g} came back; ln {n} = {most:.4g} is the most."
        )

    hints = (
        "What should come out for a row that has all its weight on one key? And what does ln 0 give?",
        "Sum −p ln p over the last axis, with the logarithm taken only where p is above 0.",
        "logs = np.log(np.where(weights > 0, weights, ____))\nreturn -(____ * logs).sum(axis=____)",
    )

    mistakes = {
        "WS9": mistake(
            patch(SEEN, "weights"),
            patch(SEEN, "weights", RETURN, "return np.nan_to_num(entropy)"),
            says="A weight of 0 made the sum of its row NaN, or the NaN was replaced only after the sum; the single term should be 0.",
            why="""x ln x tends to 0 as x does, so 0 · ln 0 is defined as 0. NumPy computes ln 0 = −∞ first, and 0 · (−∞) is
            NaN, as is a sum with one NaN in it. Replaced after the sum, all other terms of the row are lost: (½, ½, 0) gives
            0, where 0.693 is right. In causal attention every row but the last has such weights.""",
        ),
        "SX33": (patch("np.log(", "np.log2("), patch("np.log(", "np.log10(")),
        "WS12": mistake(
            patch(".sum(axis=-1)", ".sum()"),
            patch("axis=-1", "axis=0"),
            says="The sum ran across rows, along axis 0 or over the whole array; each row should have a number of its own.",
            why="""A row is one query's distribution, and its keys lie along the last axis. Two rows of (½, ½) have 0.693
            nats each, and no number describes both; likewise one norm for all Jacobians does not show which row lets a
            gradient through.""",
        ),
        "WS32": mistake(
            patch(RETURN, "return np.exp(entropy)"),
            says="The perplexity came back, the exponential of the entropy; the entropy itself is asked for.",
            why="""The perplexity is the number of equal weights that would have the same entropy as the row; the entropy is its logarithm.
            Two equal weights have a perplexity of 2 and an entropy of 0.693 nats.""",
        ),
        "WS20": mistake(
            patch(RETURN, "return entropy / np.log(weights.shape[-1])"),
            says="The entropy was divided by ln n; it is asked for in nats, as it is.",
            why="""Divided by ln n it runs from 0 to 1 and rows of different lengths can be compared, a useful measure with another
            name, normalized entropy. In nats two equal weights have 0.693.""",
        ),
        "AB33": patch("logs = ", "weights = softmax(weights)\n    logs = "),
        "AB8": (
            patch("logs = ", "rows, keys = weights.shape\n    logs = "),
            *(
                patch("-(weights * logs).sum(axis=-1)", f"np.array([-sum({terms}) for row in weights])")
                for terms in ("(p * np.log(p) for p in row if p > 0)", "row[row > 0] * np.log(row[row > 0])")
            ),
        ),
        "CE8": patch("axis=-1", "axis=-1, keepdims=True"),
        "WS39": mistake(
            *(patch(SEEN, f"weights + {least}") for least in (0.001, 0.0001, 1e-05, 1e-06)),
            *(patch(SEEN, f"np.maximum(weights, {least})") for least in (0.001, 0.0001)),
            *(
                patch(SEEN, "weights", "logs =", f"weights = np.maximum(weights, {least})\n    logs =")
                for least in (0.001, 0.0001, 1e-05)
            ),
            says="A small number stands under the logarithm; take it of the weights themselves, and leave out those that are 0.",
            why="""ln(p + ε) is another number than ln p, and for weights near ε quite another one. −p ln p tends to 0 with p: where p is 0,
            put 1 under the logarithm, and 0 · ln 1 is 0.""",
        ),
        "WS40": mistake(
            patch("(weights * logs).sum(axis=-1)", "(weights * logs).mean(axis=-1)"),
            says="The terms −p ln p were averaged over the keys; they should be added up.",
            why="""The entropy is the mean of −ln p with the weights p, and the p in each term is that weight already. Divided by the
            number of keys once more, equal weights would have ln n / n where ln n is right.""",
        ),
    }

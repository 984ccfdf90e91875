"""How much of a gradient softmax lets through."""

import numpy as np

from grader.course.declare import UNTRIED, Case, exercise, holds, mistake, patch

TOP, TOTAL = "scores.max(axis=-1, keepdims=True)", "e.sum(axis=-1, keepdims=True)"
SQUARES, NORM = "(jacobian ** 2).sum(axis=(-1, -2))", "np.sqrt(squares)"
BUT_FOR_ONE_ROW = "{} if scores.ndim > 1 else -1"


def axis(of_sum: object, of_top: object = -1):
    """Softmax over another axis; of_top: the axis of the maximum, where it is not the last."""
    made = patch(TOTAL, f"e.sum(axis={of_sum}, keepdims=True)")
    return made if of_top == -1 else made + patch(TOP, f"scores.max(axis={of_top}, keepdims=True)")


@exercise(points=3, minutes=10, difficulty=2, rtol=0.0, atol=1e-6)
class softmax_gradient_norm:
    """Measure how much of a gradient softmax lets through at given scores."""

    def cases(rng):
        yield Case("small", "two rows of two scores", (np.array([[0.0, 0.0], [1.0, 0.0]]),))
        yield Case("row", "one row alone: one number", (np.array([1.0, 0.0, 2.0]),))
        yield Case("rows", "random rows", (rng.normal(size=(3, 5)),))
        yield Case("seen-again", "the same shape, new numbers", (rng.normal(size=(3, 5)),))
        yield Case("square", "as many rows as scores in a row", (rng.normal(size=(4, 4)),))
        yield Case("batch", "a batch of heads", (rng.normal(size=(2, 3, 4, 6)),))
        yield Case("shifted", "negative scores", (rng.normal(size=(2, 4)) - 5,))
        yield Case("one-key", "a single key: nothing can move", (rng.normal(size=(3, 1)),))
        yield Case("float32", "float32 scores", (rng.normal(size=(2, 2, 3, 6)).astype(np.float32),))
        yield Case("whole", "scores of whole numbers", (np.array([[1, 0, 2], [0, 3, -1]]),))
        yield Case("long", "rows of nineteen scores", (rng.normal(size=(2, 2, 2, 19)),))
        steps = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0]])
        yield Case("level", "two rows of whole numbers", (steps,))
        yield Case("raised", "rows of 2³⁰ + (0, 1, 3) and 2³⁰ + (2, 0, 1)", (steps + 2.0**30,))
        for i in range(3):
            yield Case(f"large-{i}", "scores of thousands", (rng.normal(size=(2, 5)) * 5000,), stage="extremes")
        for i in range(3):
            rows = np.array([[0.0, 1.0, 0.5], [-2000.0, -2001.0, -2000.5]]) + rng.normal(size=(2, 3))
            yield Case(f"far-{i}", "rows far from one another", (rows,), stage="extremes")
        gaps = np.array([[14.0, -5.0, -5.0], [19.0, -5.0, 0.0], *([0.0, gap, -3.0] for gap in range(10, 26))])
        yield Case("saturated", "one score 10 to 25 above the others", (gaps,), stage="extremes")

    @holds("raising all scores alike by 2³⁰ changes no norm", cases=("level", "raised"))
    def no_differences(_, level, __, raised):
        e = np.exp([[-3.0, -2.0, 0.0], [0.0, -2.0, -1.0]])
        p = e / e.sum(axis=1, keepdims=True)
        norms = np.array([np.linalg.norm(np.diag(row) - np.outer(row, row)) for row in p])
        before, after = level["result"], raised["result"]
        if (
            before.shape != norms.shape
            or after.shape != norms.shape
            or not np.abs(before - norms).max() <= 1e-4
            or not np.isfinite(after).all()
        ):
            return UNTRIED
        if np.abs(after - norms).max() < 1e-6:
            return None
        at = int(np.abs(after - norms).argmax())
        return (
            f"that of row {at} became {after[at]:.4g}, and {norms[at]:.4g} was expected. The step of a finite difference is lost in "
            "rounding there; compute the Jacobian from the weights by its formula."
        )

    @holds("the norm lies between 0 and ½")
    def bounded(case, parts):
        high = float(parts["result"].max())
        return (
            None if -1e-6 <= float(parts["result"].min()) and high < 0.5 + 1e-6 else f"a norm of {high:.4g} came back."
        )

    hints = (
        "Take two keys. At which scores do the weights move most when a score changes, and at which do they not move at all?",
        "Softmax first, with the row's maximum subtracted. Then the Jacobian diag(p) − p pᵀ of each row.",
        "p = ____\njacobian = p[..., :, None] * np.eye(____) - p[..., :, None] * ____\nreturn np.sqrt((jacobian**2).sum(axis=____))",
    )

    mistakes = {
        "SM1": (axis(-2, -2), axis(-2), axis(*2 * [BUT_FOR_ONE_ROW.format(-2)])),
        "SM2": (axis(0, 0), axis(0), axis(1, 1), axis(*2 * [BUT_FOR_ONE_ROW.format(1)])),
        "SM3": (axis(None, None), axis(None)),
        "SM4": (
            patch(TOTAL, "e.sum(axis=-1)"),
            patch(TOP, "scores.max(axis=-1)", TOTAL, "e.sum(axis=-1)"),
            patch(TOP, "scores.max(axis=-1)"),
        ),
        "SM5": patch(f" - {TOP}", ""),
        "SM6": patch(TOP, "scores.max()"),
        "SX46": (patch(SQUARES, "(p ** 2).sum(axis=-1)"), patch(SQUARES, "((p * (1 - p)) ** 2).sum(axis=-1)")),
        "WS15": mistake(
            patch(NORM, "squares"),
            says="The root is missing: the variance came back, or the squared norm, the sum of the squares.",
            why="""The standard deviation is the root of the variance: with d_k = 64 a score's typical size is 8, not 64.
            The Frobenius norm is the root of the sum of the squares of all entries: for two equal weights the entries of the
            Jacobian are ±¼, the sum of squares is ¼, and the norm ½.""",
        ),
        "AB20": patch(f"e / {TOTAL}", "scores"),
        "QG12": (
            patch(SQUARES, "np.abs(jacobian).sum(axis=(-1, -2))", NORM, "squares"),
            patch(f"squares = {SQUARES}\n    return {NORM}", "return np.linalg.norm(jacobian, ord=2, axis=(-2, -1))"),
            patch("(jacobian ** 2).sum", "(jacobian ** 2).mean"),
        ),
        "SX43": patch(SQUARES, "(p ** 2).sum(axis=-1) ** 2"),
        "SX44": patch(") - p[", ") + p["),
        "WS12": patch("axis=(-1, -2)", ""),
        "AB8": (
            patch("e = np.exp", "rows, keys = scores.shape\n    e = np.exp"),
            patch(
                f"squares = {SQUARES}\n    return {NORM}",
                "return np.array([np.linalg.norm(np.diag(row) - np.outer(row, row)) for row in p])",
            ),
        ),
    }

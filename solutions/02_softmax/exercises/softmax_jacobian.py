"""How each weight of softmax changes with each score."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

JACOBIAN, DIAGONAL, PRODUCT = "np.diag(p) - np.outer(p, p)", "np.diag(p)", "np.outer(p, p)"


def weights(rng: np.random.Generator, n: int, scale: float = 1.0) -> np.ndarray:
    grown = np.exp(rng.normal(size=n) * scale)
    return grown / grown.sum()


@exercise(points=2, minutes=8, difficulty=2, forbids=("softmax", "attention"))
class softmax_jacobian:
    """Compute how fast each weight changes with each score."""

    def cases(rng):
        yield Case("small", "the weights (½, ¼, ¼)", (np.array([0.5, 0.25, 0.25]),))
        yield Case("two", "two weights", (np.array([0.9, 0.1]),))
        yield Case("seen-again", "three other weights", (weights(rng, 3),))
        yield Case("equal", "four equal weights", (np.full(4, 0.25),))
        yield Case("random", "eleven weights, small ones among them", (weights(rng, 11, scale=2.0),))
        yield Case("sure", "one weight is 1", (np.array([0.0, 1.0, 0.0]),))
        yield Case("whole", "one weight is 1, whole numbers", (np.array([1, 0, 0, 0]),))
        yield Case("one", "a single weight", (np.array([1.0]),))
        yield Case("float32", "float32 weights", (weights(rng, 6).astype(np.float32),))

        yield Case("exact", "weights of ½, ¼ and ⅛", (np.array([0.5, 0.25, 0.125, 0.125]),))

    @holds("at weights of ½, ¼ and ⅛ the derivatives are exact, as the formula gives them", cases=("exact",))
    def no_differences(case, parts):
        p, got = case.args[0], parts["result"]
        if got.shape != (p.size, p.size):
            return f"their shape is {got.shape}."
        off = np.abs(got - (np.diag(p) - np.outer(p, p))).max()
        if off <= 1e-12:  # exact in float32, too
            return None
        if off < 1e-3:  # what is off by more than a finite difference ever is comes of something else
            return f"they are off by up to {off:.1g}, as finite differences are; write out the formula, which needs no step."
        return f"they are off by up to {off:.2g}."

    @holds("each row sums to 0: adding one number to all scores changes no weight")
    def rows_sum_to_0(case, parts):
        total = parts["result"].sum(axis=1)
        at = int(np.abs(total).argmax())
        return None if abs(total[at]) < 1e-5 else f"row {at} sums to {total[at]:.4g}."

    hints = (
        "If one score grows, which weights grow and which shrink? What must the changes of all weights add up to?",
        "∂p_i/∂x_j is p_i (1 − p_i) on the diagonal and −p_i p_j elsewhere: a diagonal matrix less an outer product.",
        "return np.diag(____) - np.outer(____, ____)",
    )

    mistakes = {
        "AB33": patch("return", "p = softmax(p)\n    return"),
        "SX43": patch("np.diag(p) - ", "-"),
        "SX44": (patch(" - ", " + "), patch(JACOBIAN, f"{PRODUCT} + np.diag(p - 2 * p ** 2)")),
        "SX46": (patch(JACOBIAN, "np.diag(p * (1 - p))"), patch(JACOBIAN, DIAGONAL)),
        "SX49": mistake(
            patch(DIAGONAL, "p"),
            patch(JACOBIAN, "np.outer(p, 1 - p)"),
            patch(DIAGONAL, "np.eye(len(p))"),
            patch(PRODUCT, "p"),
            patch(PRODUCT, "p @ p"),
            says="""In diag(p) − p pᵀ one of the two matrices was replaced, by p, by `p @ p` or by the identity; p belongs on the
            diagonal, and p pᵀ is subtracted.""",
            why="""`p - np.outer(p, p)` and `np.diag(p) - p` broadcast p over all rows, and `np.outer(p, 1 - p)` does it over all columns.
            `p @ p` is one number, Σ p_i²; `np.outer(p, p)` or `p[:, None] * p` makes the matrix. Off the diagonal the entries are
            −p_i p_j, negative: raising one score takes weight from all others. The derivative of p_i is p_i (δ_ij − p_j), so p_i
            multiplies the δ as well: with the identity a row sums to 1 − p_i, not to 0.""",
        ),
        "SX62": (patch(JACOBIAN, "np.eye(len(p)) - p"), patch(JACOBIAN, "np.eye(len(p)) - p[:, None]")),
    }

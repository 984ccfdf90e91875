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
        "SX40": mistake(
            patch(JACOBIAN, f"{PRODUCT} - {DIAGONAL}"),
            says="The sign was reversed; the Jacobian should be diag(p) − p pᵀ.",
            why="Raising a score raises its own weight, so the diagonal p_i (1 − p_i) is positive. Reversed, learning runs uphill.",
        ),
        "SX41": mistake(
            patch(PRODUCT, "p"),
            says="p was subtracted as a row; subtract the matrix p pᵀ.",
            why="`np.diag(p) - p` broadcasts p over the rows: every entry loses p_j, not p_i p_j. Its rows sum to p_i − 1, not to 0.",
        ),
        "SX42": mistake(
            patch("return", "p = softmax(p)\n    return"),
            says="Softmax was applied to p once more; use p as it is, the output of softmax.",
            why="""The formula takes the weights themselves. A second softmax makes them more even, (0.9, 0.1) becomes (0.69, 0.31),
            and the result is the Jacobian at other scores.""",
        ),
        "SX43": mistake(
            patch("np.diag(p) - ", "-"),
            says="The term diag(p) is missing: −p pᵀ alone came back.",
            why="As score j rises, weight i falls at the rate p_i p_j. With its own score it grows, by p_i − p_i²: diag(p) adds the p_i.",
        ),
        "SX44": mistake(
            patch(" - ", " + "),
            says="p pᵀ was added; subtract it from diag(p).",
            why="""Raising one score takes weight from all others, so the entries off the diagonal are negative. Each row sums to 0, because
            adding the same to all scores changes no weight; with a plus sign it sums to 2 p_i.""",
        ),
        "SX45": mistake(
            patch(PRODUCT, "p @ p"),
            says="`p @ p`, one number, was subtracted; subtract the outer product, a matrix.",
            why="The dot product Σ p_i² was subtracted from every entry. `np.outer(p, p)` or `p[:, None] * p` makes the matrix.",
        ),
        "SX46": mistake(
            patch(JACOBIAN, "np.diag(p * (1 - p))"),
            says="The entries off the diagonal are missing; every score moves every weight, so they should be −p_i p_j.",
            why="p(1 − p) is how a weight changes with its own score; with any other it changes by −p_i p_j.",
        ),
        "SX47": mistake(
            patch(JACOBIAN, "p * (1 - p)"),
            says="The vector p(1 − p) came back, how each weight changes with its own score; the whole matrix is asked for.",
            why="The Jacobian has a row for each weight and a column for each score. Off the diagonal p(1 − p) are the entries −p_i p_j.",
        ),
        "SX48": mistake(
            patch(DIAGONAL, "np.eye(len(p))"),
            says="The identity matrix was used in place of diag(p).",
            why="The derivative of p_i is p_i (δ_ij − p_j): p_i multiplies the δ as well. Without it a row sums to 1 − p_i, not to 0.",
        ),
        "SX61": mistake(
            patch(JACOBIAN, f"{PRODUCT} + np.diag(p - 2 * p ** 2)"),
            says="The entries off the diagonal have the wrong sign; they should be −p_i p_j.",
            why="""A score that grows takes weight from all other entries, so that their derivatives are negative. Each row then sums to 0:
            p_i (1 − p_i) on the diagonal, less p_i p_j for each other j.""",
        ),
        "SX49": mistake(
            patch(DIAGONAL, "p"),
            patch(JACOBIAN, "np.outer(p, 1 - p)"),
            says="p was added to every entry; add it on the diagonal only, with diag(p).",
            why="""`p - np.outer(p, p)` broadcasts p over all rows, and `np.outer(p, 1 - p)` does it over all columns. Off the
            diagonal the entries are −p_i p_j, negative: raising one score takes weight from all others.""",
        ),
        "SX50": mistake(
            patch(JACOBIAN, "p * (np.eye(len(p)) - p)"),
            patch(JACOBIAN, f"{DIAGONAL} - p[:, None] ** 2"),
            says="Off the diagonal the square of one weight came out, −p_j² or −p_i²; −p_i p_j is expected.",
            why="""Two weights meet in each entry, that of the row and that of the column. `p * M` multiplies column j by p_j, since
            broadcasting lines p up with the last axis; for row i it is `p[:, None] * M`.""",
        ),
        "WS14": patch(JACOBIAN, DIAGONAL),
    }

"""A gradient's way back through softmax."""

import numpy as np

from grader.course.declare import Case, exercise, holds, patch

from ..shared import BACK, MEAN, MISTAKES, mean_over

MEAN_LINE = f"mean = {MEAN}"


def rows(each: str):
    """A table's rows p of weights and g of grad_weights, one by one."""
    return patch(f"{MEAN_LINE}\n    return {BACK}", f"return np.array([{each} for p, g in zip(weights, grad_weights)])")


def _weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Rows of random weights."""
    scores = rng.normal(size=shape) * 1.5
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


@exercise(points=2, minutes=8, difficulty=1, forbids=("torch",))
class softmax_backward:
    """Carry a gradient back through softmax, from the weights to the scores."""

    def cases(rng):
        yield Case("small", "one row of three weights", (np.array([1.0, 0.0, 2.0]), np.array([0.5, 0.25, 0.25])))
        rows = np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
        yield Case(
            "two-rows", "two rows of three weights, a whole-number gradient", (np.array([[1, 0, 2], [-1, 3, 0]]), rows)
        )
        for key, title, shape in (
            ("square", "as many rows as weights in a row", (4, 4)),
            ("seen-again", "the same shape, new numbers", (2, 3)),
            ("batch", "a batch of heads", (2, 3, 5, 19)),
        ):
            yield Case(key, title, (rng.normal(size=shape), _weights(rng, *shape)))
        turned = _weights(rng, 2, 3, 5).swapaxes(0, 1).copy().swapaxes(0, 1)
        yield Case("in another order", "rows that lie in another order in memory", (rng.normal(size=(2, 3, 5)), turned))
        yield Case("one-key", "a single key: nothing can move", (rng.normal(size=(3, 1)), np.ones((3, 1))))
        yield Case(
            "constant", "the same gradient for every weight of a row", (np.full((3, 4), 2.5), _weights(rng, 3, 4))
        )
        single = rng.normal(size=(2, 3, 6)).astype(np.float32), _weights(rng, 2, 3, 6).astype(np.float32)
        yield Case("float32", "float32 input, a batch", single)
        yield Case(
            "whole",
            "a whole-number gradient and one-hot weights",
            (np.array([[3, -1, 2, 0]]), np.array([[0, 0, 1, 0]])),
        )
        saturated = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        yield Case(
            "saturated", "weights of exactly 0 and 1", (rng.normal(size=(2, 3)) * 100, saturated), stage="extremes"
        )
        # Halves, quarters and whole numbers: the formula is exact, in float32 too; a finite difference loses its digits with any step.
        far, quarters = np.array([[1, 0, 3], [2, 5, 0]]) + 2.0**20, np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
        title = "gradients near a million that differ by little, where a finite difference drowns in rounding"
        yield Case("far", title, (far, quarters), stage="extremes", rtol=1e-8, atol=1e-8)

    @holds("each row of the gradient sums to 0")
    def rows(case, parts):
        totals = parts["result"].sum(axis=-1)
        worst = float(totals.flat[np.abs(totals).argmax()])
        if abs(worst) < 1e-4:
            return None
        return f"a row sums to {worst:.4g}: raising all scores alike would change the weights.".replace("-", "−")

    hints = (
        "When one score grows, what happens to the other weights of its row? And when all scores of a row grow by the same amount, what "
        "happens to its weights? What does that say about the sum of a row of the gradient?",
        "With weights p and grad_weights g, multiply diag(p) − p pᵀ by g: the first part gives p·g, the second p times a number. Which?",
        "mean = (____ * ____).sum(axis=____, keepdims=True)\nreturn weights * (grad_weights - ____)",
    )

    mistakes = {
        **MISTAKES,
        "GB19": (*MISTAKES["GB19"].ways, patch("weights).sum", "weights).mean")),
        "AB33": patch(
            MEAN_LINE,
            f"exps = np.exp(weights - weights.max(axis=-1, keepdims=True))\n"
            f"    weights = exps / exps.sum(axis=-1, keepdims=True)\n    {MEAN_LINE}",
        ),
        "AB8": (
            patch(MEAN_LINE, f"rows, keys = weights.shape\n    {MEAN_LINE}"),
            *(
                rows(each)
                for each in (
                    "p * (g - p @ g)",
                    "p * (g - (p * g).sum())",
                    "(np.diag(p) - np.outer(p, p)) @ g",
                    "[p[j] * (g[j] - sum((a * b for a, b in zip(p, g)))) for j in range(weights.shape[1])]",
                    "[p[j] * (g[j] - (p * g).sum()) for j in range(weights.shape[1])]",
                )
            ),
        ),
        "GB17": (*MISTAKES["GB17"].ways, mean_over("-2 if weights.ndim > 1 else -1")),
        "SX62": patch(
            "weights * (grad_weights - mean)", "grad_weights - weights * grad_weights.sum(axis=-1, keepdims=True)"
        ),
    }

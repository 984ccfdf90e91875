"""What a prediction ought to change: weights minus the right answer."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ..shared import FLOAT32_AT_1E4, loss_extremes, loss_inputs
from .cross_entropy import FORBIDS

GRADIENT = "weights - one_hot"


def softmax(*texts: str):
    """A patch of the course's softmax, which the course's cross_entropy_gradient calls."""
    return patch(*texts, of="softmax")


@exercise(points=2, minutes=10, difficulty=3, forbids=FORBIDS)
class cross_entropy_gradient:
    """Compute how fast the sum of all losses grows with each score."""

    def cases(rng):
        yield from (Case(key, title, args) for key, title, args in loss_inputs(rng))
        for key, title, args in loss_extremes(rng):
            yield Case(key, title, args, stage="extremes", atol=FLOAT32_AT_1E4)

        yield Case("faint", "a score 60 below the others", (np.array([1.0, -59.0, 0.0]), np.array(2)))
        scores, targets = rng.normal(size=(4, 3, 2)).T, rng.integers(0, 4, (2, 3))
        title = "a transposed view: `reshape` makes a copy of such an array"
        yield Case("layout", title, (scores, targets), stage="extremes")

    @holds("a score 60 below the others still has a gradient, its weight", cases=("faint",))
    def no_differences(case, parts):
        x, got = case.args[0], parts["result"]
        weights = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
        if got.shape != x.shape:
            return f"the shape is {got.shape}."
        if 0.9 < got[1] / weights[1] < 1.1:  # float32 holds e⁻⁶⁰, too
            return None
        said = f"the weight is {weights[1]:.1e}, and {got[1]:.1e} came back"
        if not np.abs(got - weights + np.eye(3)[case.args[1]]).max() <= 1e-3:
            return f"{said}."
        # Only where all else is right is it a finite difference.
        return f"{said}, as of a finite difference, whose step is lost in rounding; write out the formula, which needs no step."

    @holds("the gradient of each row sums to 0: adding one number to all its scores changes no loss")
    def rows_sum_to_0(case, parts):
        sums = np.ravel(parts["result"].sum(axis=-1))
        worst = sums[np.abs(sums).argmax()]
        return None if abs(worst) < 1e-4 else f"one sums to {worst:.4g}."

    hints = (
        "The loss is −x[target] + ln Σ exp(x). What is the derivative of each of the two terms with respect to x_j?",
        "The second term grows with x_j at the rate exp(x_j) / Σ exp(x), which you know by another name. The first contributes −1 at the "
        "target and 0 elsewhere. Each score occurs in one loss only, so that the sum over all of them changes nothing else.",
        "```python\nweights = ____(scores)\none_hot = np.eye(scores.shape[-1])[____]  # 1 at each target, 0 elsewhere\n"
        "return ____ - ____\n```",
    )

    mistakes = {
        "SM5": softmax("x - top", "x"),
        "SM6": softmax("max(axis=axis, keepdims=True)", "max()"),
        "SM3": (
            softmax(".sum(axis=axis, keepdims=True)", ".sum()"),
            softmax("max(axis=axis, keepdims=True)", "max()", ".sum(axis=axis, keepdims=True)", ".sum()"),
        ),
        "SX1": softmax("axis: int=-1", "axis: int=0"),
        "CG1": mistake(
            patch(GRADIENT, "(weights - one_hot) / max(np.size(targets), 1)"),
            says="The gradient was divided by the number of targets, as for the mean loss; the gradient of the sum is asked for.",
            why="""The mean is the sum divided by the number of losses, and so is its gradient. Frameworks average by default;
            with the sum, what one row gets does not depend on how many others there are.""",
        ),
        "CG3": mistake(
            patch(GRADIENT, "weights"),
            says="The target's term is missing: only the weights came back; subtract 1 at the target.",
            why="""The weights are the gradient of ln Σ exp(x) alone. The loss also holds −x[target], whose derivative is −1 at the
            target. Without it, a row sums to 1 and not to 0.""",
        ),
        "CG4": mistake(
            patch(GRADIENT, "one_hot * (weights - 1)"),
            says="Only the target's own score was given a gradient; every other score should have one, too: its weight.",
            why="""The other scores occur in the sum Σ exp(x): raising one takes weight from the target. The gradient there is their
            weight, p_j, and the whole row sums to 0.""",
        ),
        "CG5": mistake(
            patch(GRADIENT, "(weights - one_hot) * (weights * one_hot).sum(axis=-1, keepdims=True)"),
            says="The gradient of minus the target's *weight* came back; that of minus its logarithm is asked for.",
            why="""The derivative of ln p is the derivative of p, divided by p. That division cancels the factor p of softmax's
            derivative: the logarithm keeps the gradient large where the model is most wrong.""",
        ),
        "CG6": mistake(
            patch(GRADIENT, "-one_hot / weights"),
            says="The gradient with respect to the weights came back, −1/p at the target; that with respect to the scores is asked for.",
            why="""Scores come before softmax. The chain rule multiplies −1/p at the target with the Jacobian's row p (δ − p_j), and
            what is left is p_j − 1 at the target and p_j elsewhere.""",
        ),
        "AB20": patch("softmax(scores)", "scores"),
        "CE10": patch("[targets]", "[targets - 1]"),
        "CE11": patch(GRADIENT, "weights - np.expand_dims(targets, -1)"),
        "CE7": tuple(
            patch(f"return {GRADIENT}", f"weights[{rows}, targets] -= 1\n    return weights") for rows in ("...", ":")
        ),
        "CG12": mistake(
            patch(
                GRADIENT, "weights * (weights - one_hot - (weights * (weights - one_hot)).sum(axis=-1, keepdims=True))"
            ),
            says="p − y was sent through the derivative of softmax once more; return it as it is, the gradient with respect to the scores.",
            why="""The chain rule takes the weights' gradient, −y/p, through the Jacobian diag(p) − p pᵀ and arrives at p − y. Sent
            through the Jacobian once more, p − y becomes the gradient of another loss, the squared error ½ Σ (p − y)².""",
        ),
        "CE13": patch(f"return {GRADIENT}", "weights[targets] -= 1\n    return weights"),
        "CE12": (
            *(
                patch(f"return {GRADIENT}", f"weights[{rows}, targets] -= 1\n    return weights")
                for rows in ("np.arange(len(targets))", "np.arange(scores.shape[0])", "np.arange(targets.shape[0])")
            ),
            patch("weights = softmax(scores)", "_, _ = scores.shape\n    weights = softmax(scores)"),
            patch("np.eye(scores.shape[-1])[targets]", "targets[:, None] == np.arange(scores.shape[-1])"),
            patch(
                f"return {GRADIENT}",
                """for i, target in enumerate(targets):
        weights[i, target] -= 1
    return weights""",
            ),
            patch(
                f"return {GRADIENT}",
                """for i in range(len(targets)):
        weights[i, targets[i]] -= 1
    return weights""",
            ),
        ),
        "CG15": mistake(
            patch(GRADIENT, "np.where(one_hot == 1, -1.0, weights)"),
            says="At the target −1 stands in place of the weight; 1 should be subtracted from the weight: p − 1.",
            why="""The gradient is p − y, and y is 1 at the target and 0 elsewhere. With a weight of 0.9 on the target what is left to
            learn is −0.1; with −1 every row would be pushed as if nothing were learned, and no longer sums to 0.""",
        ),
    }

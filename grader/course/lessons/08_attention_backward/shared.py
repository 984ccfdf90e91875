"""Lesson 08: the mistakes of the way back through softmax, two lines that both exercises have."""

from grader.course.declare import mistake, patch

MEAN = "(grad_weights * weights).sum(axis=-1, keepdims=True)"
BACK = "weights * (grad_weights - mean)"


def mean_over(axis: str):
    return patch("weights).sum(axis=-1", f"weights).sum(axis={axis}")


MISTAKES = {
    "BW1": patch(BACK, "weights * grad_weights"),
    "GB1": mistake(patch(BACK, "grad_weights - mean"),
        says="The factor in front is missing: each difference is multiplied by its weight.",
        why="""The gradient with respect to score j is `weights_j * (grad_j - total)`. Without the factor a key of weight 0 still
        receives a gradient, although moving its score a little changes nothing. With weights (1, 0) and gradient (0, 3) the right
        result is (0, 0); without the factor it is (0, 3)."""),
    "GB2": mistake(patch(MEAN, "(grad_weights * weights).sum()"),
        says="The sum ran over the whole array; each row has a total of its own.",
        why="""Softmax normalizes each row by itself, so its backward pass subtracts each row's own total. One total for everything
        mixes queries and batch items: the gradient of one row then changes when another row does."""),
    "GB3": mistake(patch(BACK, "weights * (mean - grad_weights)"), says="The sign is reversed: it is the gradient minus the row's total.",
        why="""A gradient says how the loss grows. Where a weight's gradient is above the row's weighted mean, the loss grows
        with its score, so the score's gradient is positive and descent lowers it. Reversed, a step of descent climbs. With
        weights (½, ½) and gradient (1, 0) the mean is ½ and the result (¼, −¼)."""),
    "GB4": mistake(patch(MEAN, "grad_weights.sum(axis=-1, keepdims=True)"),
        says="The row's total was taken of the gradient alone; each entry counts by its weight.",
        why="""The total is `sum_j grad_j * weights_j`, the mean of the gradient under the weights. A plain sum of the gradient is
        larger by about the number of keys, and the rows no longer sum to 0. With weights (½, ½) and gradient (1, 1) the result has
        to be (0, 0); the plain sum gives (−½, −½)."""),
    "GB5": mistake(patch(BACK, "weights * (1 - weights) * grad_weights"),
        says="Only the diagonal of the Jacobian was used: every score moves every weight of its row.",
        why="""`weights * (1 - weights)` is how a weight answers its own score, as for a sigmoid. In softmax a score also takes from
        all other weights of its row: ∂w_i/∂s_j = −w_i·w_j. Leaving that out makes the rows of the gradient sum to something else
        than 0."""),
    "GB16": mistake(patch(MEAN, "(grad_weights * weights).sum(axis=-1)"),
        says="The totals lost their axis and were subtracted across the columns: keep it with `keepdims=True`.",
        why="""A sum over the last axis of (T_q, T_k) has shape (T_q,), which NumPy lines up with the columns. It fails where T_q and
        T_k differ; where they agree, column j loses the total of row j."""),
    "GB17": mistake(mean_over("-2"), mean_over("0"),
        says="The totals ran over another axis than the last; a row's keys lie along the last one.",
        why="""weights[..., i, :] is the distribution of query i, and softmax ties together what lies in one row. Summed along the
        queries or along the batch, a total mixes rows that know nothing of each other."""),
    "GB18": mistake(patch(BACK, "weights * grad_weights - mean"),
        says="Each entry subtracts the row's whole total; it should subtract the total times its weight.",
        why="""Multiplied out, weights * (grad - total) is weights * grad − weights * total: the entries share the total according to
        their weights. If each of n entries subtracts all of it, the row sums to (1 − n) times the total and not to 0."""),
    "GB19": mistake(patch(MEAN, "grad_weights.mean(axis=-1, keepdims=True)"),
        says="The plain mean of the gradient was subtracted; each entry counts by its weight.",
        why="""The total is `sum_j grad_j * weights_j`. It is the plain mean only where all weights are equal; else the rows of the
        result do not sum to 0. With weights (¾, ¼) and gradient (1, 0) the total is ¾ and the result (3/16, −3/16); the plain mean
        gives (⅜, −⅛)."""),
    "GB20": mistake(patch(BACK, "grad_weights * (weights - mean)"),
        says="The gradient and the weights changed places: the weight is the factor, the total is subtracted from the gradient.",
        why="""The total is the mean of the gradient under the weights, so it is compared with gradients, and the weight says how
        much of the difference a score feels. With weights (½, ½) and gradient (1, 0) the total is ½ and the result (¼, −¼);
        exchanged it is (0, 0)."""),
    "GB21": mistake(patch(BACK, "weights * (grad_weights + mean)"), says="The row's total was added; it is subtracted from each entry.",
        why="""A score that rises takes from all weights of its row, which is the minus sign of diag(p) − p pᵀ. Added, the row sums
        to twice the total and not to 0. With weights (½, ½) and gradient (1, 0) the result has to be (¼, −¼); added it is (¾, ¼)."""),
}

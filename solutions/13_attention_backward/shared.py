"""Lesson 13: the mistakes of the way back through softmax, two lines that both exercises have."""

from grader.course.declare import mistake, patch

MEAN = "(grad_weights * weights).sum(axis=-1, keepdims=True)"
BACK = "weights * (grad_weights - mean)"


def mean_over(axis: str):
    return patch("weights).sum(axis=-1", f"weights).sum(axis={axis}")


MISTAKES = {
    "BW1": patch(BACK, "weights * grad_weights"),
    "GB5": mistake(
        patch(BACK, "weights * (1 - weights) * grad_weights"),
        says="Only the diagonal of the Jacobian was used; every score moves every weight of its row, so use the whole of it.",
        why="""`weights * (1 - weights)` is how a weight changes with its own score, as for a sigmoid. In softmax a score also takes
        from all other weights of its row: weight i changes with score j by −weights[i] · weights[j]. Without that the rows of
        the gradient do not sum to 0.""",
        issue="deeplearning4j/libnd4j#440",
    ),
    "GB16": mistake(
        patch(MEAN, "(grad_weights * weights).sum(axis=-1)"),
        says="The rows' maxima or weighted means lost their axis and were subtracted across the columns; keep it with `keepdims=True`.",
        why="""A maximum or a sum over the last axis of (T_q, T_k) has shape (T_q,), which NumPy lines up with the columns. It fails where
        T_q and T_k differ; where they agree, the number of row j is subtracted from column j.""",
    ),
    "GB17": mistake(
        mean_over("-2"),
        mean_over("0"),
        patch(MEAN, "(grad_weights * weights).sum()"),
        says="The sum ran over another axis than the last, or over the whole array; it should run over a row's keys, the last axis.",
        why="""weights[..., i, :] is the distribution of query i, and softmax ties together what lies in one row: its backward pass
        subtracts each row's own weighted mean. Summed along the queries, along the batch or over everything, it mixes rows that have
        nothing to do with each other, and the gradient of one row changes when another row does.""",
    ),
    "GB18": (
        patch(BACK, "weights * grad_weights - mean"),
        patch(BACK, "grad_weights - mean"),
        patch(BACK, "weights * (grad_weights - weights * mean)"),
        patch(BACK, "grad_weights * (weights - mean)"),
        patch(BACK, "weights * (grad_weights + mean)"),
        patch(BACK, "weights * (mean - grad_weights)"),
    ),
    "GB19": mistake(
        patch(MEAN, "grad_weights.mean(axis=-1, keepdims=True)"),
        patch(MEAN, "grad_weights.sum(axis=-1, keepdims=True)"),
        patch(MEAN, "grad_weights.max(axis=-1, keepdims=True)"),
        says="""Something other than the weighted mean was subtracted, such as a plain sum, a plain mean or the largest; it should be the
        sum of weights · grad_weights over the row.""",
        why="""The weighted mean is the sum of weights[j] · grad_weights[j] over j. The weights sum to 1, so it is a mean by itself, and
        nothing divides it once more. (The largest entry is subtracted in softmax itself, where any number would do; here it is part of
        the derivative.) With another number the rows of the result do not sum to 0. With weights (¾, ¼) and grad_weights (1, 0) it is ¾
        and the result (3/16, −3/16); the plain mean gives (⅜, −⅛).""",
    ),
}

"""Lesson 13: the mistakes of the way back through softmax, two lines that both exercises have."""

from grader.course.declare import mistake, patch

MEAN = "(grad_weights * weights).sum(axis=-1, keepdims=True)"
BACK = "weights * (grad_weights - mean)"


def mean_over(axis: str):
    return patch("weights).sum(axis=-1", f"weights).sum(axis={axis}")


MISTAKES = {
    "BW1": patch(BACK, "weights * grad_weights"),
    "GB1": mistake(
        patch(BACK, "grad_weights - mean"),
        says="The factor in front is missing: each difference should be multiplied by its weight.",
        why="""The gradient of score j is weights[j] · (grad_weights[j] − weighted mean). Without the factor a key of weight 0 still
        receives a gradient, although moving its score a little changes nothing. With weights (1, 0) and grad_weights (0, 3) the
        right result is (0, 0); without the factor it is (0, 3).""",
    ),
    "GB2": mistake(
        patch(MEAN, "(grad_weights * weights).sum()"),
        says="The sum ran over the whole array; each row should have a weighted mean of its own.",
        why="""Softmax normalizes each row by itself, so its backward pass subtracts each row's own weighted mean. One number for
        all rows mixes queries and batch items: the gradient of one row then changes when another row does.""",
    ),
    "GB3": mistake(
        patch(BACK, "weights * (mean - grad_weights)"),
        says="The sign was reversed; it should be grad_weights minus the weighted mean.",
        why="""A gradient says how the loss grows. Where a weight's gradient is above the row's weighted mean, the loss grows
        with its score, so the score's gradient is positive and descent lowers it. Reversed, a step of descent climbs. With
        weights (½, ½) and grad_weights (1, 0) the weighted mean is ½ and the result (¼, −¼).""",
    ),
    "GB4": mistake(
        patch(MEAN, "grad_weights.sum(axis=-1, keepdims=True)"),
        says="grad_weights was summed as it is; each entry should be multiplied by its weight.",
        why="""The weighted mean is the sum of weights[j] · grad_weights[j] over j. A plain sum is about as many times as large as
        there are keys, and the rows no longer sum to 0. With weights (½, ½) and grad_weights (1, 1) the result should be (0, 0);
        the plain sum gives (−½, −½).""",
    ),
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
        says="The weighted means lost their axis and were subtracted across the columns; keep it with `keepdims=True`.",
        why="""A sum over the last axis of (T_q, T_k) has shape (T_q,), which NumPy lines up with the columns. It fails where T_q and
        T_k differ; where they agree, the weighted mean of row j is subtracted from column j.""",
    ),
    "GB17": mistake(
        mean_over("-2"),
        mean_over("0"),
        says="The sum ran over another axis than the last; it should run over a row's keys, the last axis.",
        why="""weights[..., i, :] is the distribution of query i, and softmax ties together what lies in one row. Summed along the
        queries or along the batch, it mixes rows that have nothing to do with each other.""",
    ),
    "GB18": mistake(
        patch(BACK, "weights * grad_weights - mean"),
        says="The whole weighted mean was subtracted from each entry; subtract the mean times the entry's weight.",
        why="""Multiplied out, `weights * (grad_weights - mean)` is `weights * grad_weights - weights * mean`: the entries share the
        mean according to their weights. If each of n entries loses all of it, the row sums to (1 − n) times the mean, not to 0.""",
    ),
    "GB19": mistake(
        patch(MEAN, "grad_weights.mean(axis=-1, keepdims=True)"),
        says="The plain mean of grad_weights was subtracted; subtract the weighted mean.",
        why="""The weighted mean is the sum of weights[j] · grad_weights[j] over j, the plain mean only where all weights are equal;
        else the rows of the result do not sum to 0. With weights (¾, ¼) and grad_weights (1, 0) it is ¾ and the result
        (3/16, −3/16); the plain mean gives (⅜, −⅛).""",
    ),
    "GB20": mistake(
        patch(BACK, "grad_weights * (weights - mean)"),
        says="Weights and grad_weights were exchanged; subtract the mean from grad_weights, then multiply by the weights.",
        why="""The weighted mean is a mean of gradients, so it is compared with gradients, and the weight says how much of the
        difference reaches the score. With weights (½, ½) and grad_weights (1, 0) the weighted mean is ½ and the result (¼, −¼);
        exchanged it is (0, 0).""",
    ),
    "GB21": mistake(
        patch(BACK, "weights * (grad_weights + mean)"),
        says="The weighted mean was added; subtract it.",
        why="""A score that rises takes from all other weights of its row: hence the minus sign. With a plus sign the row sums to
        twice the weighted mean, not to 0. With weights (½, ½) and grad_weights (1, 0) the result should be (¼, −¼), and a plus
        sign gives (¾, ¼).""",
    ),
    "GB32": mistake(
        patch(BACK, "weights * (grad_weights - weights * mean)"),
        says="The weighted mean was multiplied by the weights inside the bracket as well; the weight in front is enough.",
        why="""Multiplied out, `weights * (grad_weights - mean)` is `weights * grad_weights - weights * mean`: each term has one
        factor of the weights. With weights (½, ½) and grad_weights (1, 0) the weighted mean is ½ and the result (¼, −¼); with the
        second factor it is (⅜, −⅛), and the row no longer sums to 0.""",
    ),
    "GB33": mistake(
        patch(MEAN, "grad_weights.max(axis=-1, keepdims=True)"),
        says="The largest of grad_weights was subtracted; subtract the weighted mean.",
        why="""The largest entry is subtracted in softmax itself, where any number would do. Here what is subtracted is part of the
        derivative: the sum of weights[j] · grad_weights[j] over j. With another number the rows of the result do not sum to 0.""",
    ),
}

"""Softmax: over which axis, with which sum, with which maximum."""

from grader.course.spec import MistakeText

TEXTS = (
    MistakeText(
        "SM1",
        "Softmax ran over the queries; each query needs its own distribution over the keys.",
        "The weights' columns sum to 1 where their rows should. Axis −1 holds the keys, axis −2 the queries, and both calls give "
        "numbers between 0 and 1, so a glance at the weights does not tell them apart.\n\n"
        "Take two queries and two keys with exponentials [[3, 1], [1, 1]]. Divided by the sums of the rows, 4 and 2, they become "
        "[[0.75, 0.25], [0.50, 0.50]]. Divided by the sums of the columns, they become [[0.75, 0.50], [0.25, 0.50]], and the rows sum "
        "to 1.25 and 0.75.",
        "weights = exps / exps.sum(axis=-2, keepdims=True)",
        "weights = exps / exps.sum(axis=-1, keepdims=True)",
        "labmlai/annotated_deep_learning_paper_implementations#146",
    ),
    MistakeText(
        "SM2",
        "Softmax mixed different rows, batch items or heads; the keys are the last axis: use axis −1.",
        "Counted from the front, an axis means the keys only in arrays of one particular rank. In a batch, axis 0 is the batch, so "
        "every item's weights depend on the other items: we change item 0 and item 1 moves. A batch of one item gives every weight the "
        "value 1.\n\n"
        "Take two items, each with one query and two keys, and exponentials [3, 1] and [1, 1]. Over axis −1 item 1 gets [0.50, 0.50]. "
        "Over axis 0 it gets [0.25, 0.50]: its first weight is 1 / (3 + 1), and the 3 is item 0's.",
        "weights = exps / exps.sum(axis=0, keepdims=True)",
        "weights = exps / exps.sum(axis=-1, keepdims=True)",
        "PetrochukM/PyTorch-NLP#2",
    ),
    MistakeText(
        "SM3",
        "All rows were normalized together; each row needs its own sum.",
        "Without an axis `sum()` adds up the whole array. All weights together then sum to 1, and a query's share of it depends on the "
        "other queries. For a single row both are the same, so a test with one query passes.\n\n"
        "Exponentials [[3, 1], [1, 1]] have the total 6. Divided by it, the rows sum to 0.67 and 0.33. Divided by their own sums, 4 and "
        "2, they become [0.75, 0.25] and [0.50, 0.50].",
        "weights = exps / exps.sum()",
        "weights = exps / exps.sum(axis=-1, keepdims=True)",
    ),
    MistakeText(
        "SM4",
        "The sums or the maxima lost their axis, so that they line up with the columns; keep it with `keepdims=True`.",
        "`exps.sum(axis=-1)` has one number per query and no axis for the keys. Broadcasting lines it up from the right, so the first "
        "query's sum divides the first column, and its maximum is subtracted there. Where the numbers of queries and keys differ this is "
        "an error; where they agree it runs.\n\n"
        "Exponentials [[6, 2], [1, 1]] have the row sums [8, 2]. As a column they give [[0.75, 0.25], [0.50, 0.50]]. As a row they give "
        "[[0.75, 1.00], [0.125, 0.50]].",
        "weights = exps / exps.sum(axis=-1)",
        "weights = exps / exps.sum(axis=-1, keepdims=True)",
    ),
    MistakeText(
        "SM5",
        "exp overflowed: it is finite only up to 709 (in float32 up to 88.7); subtract each row's maximum first.",
        "exp(1000) is beyond float64 too, which ends near 709. It becomes inf, and inf / inf is NaN. Small test numbers never show it. "
        "Another number in the maximum's place, the mean or the first, leaves a larger one as far above it as before.\n\n"
        "Subtracting one number c from a whole row multiplies all its exponentials by exp(−c), and the division takes that out again. "
        "With c the row's maximum the largest exponential is 1. The row [1000, 999] becomes [0, −1], with weights [0.7311, 0.2689], the "
        "same as those of [1, 0].",
        "exps = np.exp(scores)\nweights = exps / exps.sum(axis=-1, keepdims=True)",
        "exps = np.exp(scores - scores.max(axis=-1, keepdims=True))\nweights = exps / exps.sum(axis=-1, keepdims=True)",
        "pytorch/executorch#18407",
    ),
    MistakeText(
        "SM6",
        "A number above a row's own maximum was subtracted, such as one for all rows, so the row underflowed; take its own.",
        "`scores.max()` is the largest score of all queries. It prevents overflow, but a row that lies far below it loses all its "
        "exponentials to 0, and 0 / 0 is NaN. In float32 a distance of 104 is enough, in float64 746.\n\n"
        "The largest absolute value does the same to a row of large negative scores.\n\n"
        "Take float32 rows [0, 1] and [−200, −201]. The overall maximum is 1, so the second row becomes [−201, −202] and its "
        "exponentials [0, 0]. Its own maximum, −200, makes it [0, −1], with weights [0.7311, 0.2689].",
        "exps = np.exp(scores - scores.max())\nweights = exps / exps.sum(axis=-1, keepdims=True)",
        "exps = np.exp(scores - scores.max(axis=-1, keepdims=True))\nweights = exps / exps.sum(axis=-1, keepdims=True)",
    ),
)

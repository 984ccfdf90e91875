"""Lesson 05: what is said of mistakes that several of its exercises share."""

from grader.course.declare import MistakeText

TEXTS = (
    MistakeText("NT6", "The scale uses the width of the values; it needs d_k, the width of queries and keys.",
        "A score is a sum over the d_k products of one query and one key, so its spread grows with √d_k. The width of v plays no part "
        "in it."),
    MistakeText("NT7", "The returned weights are cut from the graph; a loss on the weights would reach neither q nor k.",
        "The output carries its gradient, the weights beside it do not: they were detached before they were returned. Whoever only "
        "wants to plot them can detach them later."),
    MistakeText("NT8", "Output and weights came back in the other order.", "The contract is (output, weights)."),
    MistakeText("NT9", "Something is turned into float32 on the way; the input's precision is to be kept.",
        "`.float()` means float32. On float64 inputs it throws digits away, and in a module that was moved by `.double()` float32 and "
        "float64 do not multiply."),
    MistakeText("NT23", "Only one thing came back; the output and the weights were asked for.",
        "The contract is (output, weights): the weights are what the next lessons look at."),
    MistakeText("NT24", "The scale uses the number of keys; it needs d_k, the width of queries and keys.",
        "A score is a sum over the d_k products of one query and one key, however many keys there are. The width is the last entry of "
        "k's shape, the number of keys the one before it."),
    MistakeText("NT26", "The layer has a bias, and x @ w has none: pass `bias=False`.",
        "`nn.Linear` has a bias unless told otherwise. Drawn at random, it shifts every output by the same vector, and a zero input no "
        "longer gives zeros. Set to zero, it is still a parameter, which the first step of training moves."),
)  # fmt: skip

"""Lesson 09: what is said of mistakes that several of its exercises share."""

from grader.course.declare import MistakeText

TEXTS = (
    MistakeText("MU1", "A d_model that num_heads does not divide is not refused with ValueError.",
        "Each head takes d_model / num_heads numbers. With a remainder the failure comes later, from a view that says nothing of heads, "
        "or `d_model // num_heads` loses numbers in silence."),
    MistakeText("MU4", "Heads take every num_heads-th number; here each is one contiguous slice of d_model.",
        "`view(B, T, d_head, num_heads)` deals the numbers out like cards: head 0 of two gets the numbers 0, 2, 4, …. It trains as "
        "well, and no weights of another model fit it."),
    MistakeText("MU17", "The merged numbers are interleaved: head 0 is to come first as a whole, then head 1.",
        "With d_head moved in front of the heads, the first number of every head comes before the second of any. `w_o` then meets them "
        "in another order than it was trained with."),
    MistakeText("MU19", "The graph is cut: the numbers are right and no gradient reaches x.",
        "Moving numbers about is differentiable, and torch records it. `detach()`, `.data`, NumPy and `torch.tensor(...)` of a tensor "
        "drop the record, and nothing below learns."),
)  # fmt: skip

"""Lesson 04: why the scores are divided by √d_k, as an experiment."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("dot_product_std", "row_entropy", "softmax_gradient_norm", "query_gradient_norm"),
    title="Why √d_k",
    question="What goes wrong without the factor 1/√d_k, and how would we notice?",
    outcome="show by experiment why scores are divided by √d_k",
)

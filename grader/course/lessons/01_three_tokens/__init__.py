"""Lesson 01: one attention step on three tokens."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    (
        "attention_scores",
        "scale_scores",
        "softmax_rows",
        "weighted_sum",
        "three_token_attention",
        "corrected_first_row",
        "query_for",
    ),
    title="Three tokens",
    question="An article computes attention for three tokens twice, and prints two different results for the first. Which one is right?",
    outcome="compute attention for three tokens by hand, and find what is wrong in published numbers",
)

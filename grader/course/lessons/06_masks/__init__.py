"""Lesson 06: who may look at whom."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("causal_mask", "padding_mask", "masked_attention", "leaks", "CausalSelfAttention"),
    title="Masks",
    question="Who may look at whom, and how do we make sure that nobody peeks?",
    outcome="hide the future and the padding, without a leak and without NaN",
)

"""Lesson 03: projections and attention for a sentence, a batch, a batch of heads; then by einsum."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("project_qkv", "previous_token_projections", "scaled_dot_product_attention", "attention_einsum"),
    title="Scaled dot-product attention, for a whole batch",
    question="Where do queries, keys and values come from, and how does one expression compute attention for a whole batch?",
    outcome="design projections, and compute attention for a whole batch, by matrix products and by einsum",
)

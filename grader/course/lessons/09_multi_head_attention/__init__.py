"""Lesson 09: splitting and merging heads, the module with four projections, and weights that come from torch's."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("split_heads", "merge_heads", "MultiHeadAttention", "copy_torch_weights"),
    title="Multi-head attention",
    question="One row of attention weights gives one mean. How can a token ask for several things at once, and keep the answers apart?",
    outcome="let several heads attend, with the same numbers as `nn.MultiheadAttention`",
)

"""Lesson 11: causal multi-head attention with one fused projection, and a block of a Transformer."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("CausalMultiHeadAttention", "layer_norm", "TransformerBlock"),
    title="Causal multi-head attention, and the block around it",
    question="What turns attention into a block that can be stacked many times?",
    outcome="build causal multi-head attention in one module, and the Transformer block around it",
)

"""Lesson 11: causal multi-head attention with one fused projection, a block of a Transformer, and a loop that writes."""

from grader.course.declare import collected

lesson = collected(
    __name__, ("CausalMultiHeadAttention", "TransformerBlock", "generate"),
    title="Causal multi-head attention, and a language model",
    question="Which parts, put together, learn to write from nothing but text?",
    outcome="build a Transformer block, and train a small language model with it",
)  # fmt: skip

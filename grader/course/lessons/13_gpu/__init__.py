"""Lesson 13: on the GPU."""

from grader.course.declare import collected

lesson = collected(
    __name__, ("pick_device", "attention_flops", "time_ms", "FastCausalMultiHeadAttention"),
    title="Multi-head causal attention on the GPU",
    question="The same numbers, faster: how would we know that it is faster, and why is it?",
    outcome="measure what attention costs, and run it fused on whatever device is there",
)  # fmt: skip

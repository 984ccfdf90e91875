"""Lesson 13: on the GPU."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("pick_device", "attention_flops", "time_ms", "attention_bytes", "FastCausalMultiHeadAttention"),
    title="Multi-head causal attention on the GPU",
    question="Where does the time go?",
    outcome="measure what attention costs, and run it fused on whatever device is there",
)

"""Lesson 16: RMSNorm, SwiGLU, grouped queries and the block around them, and a real model on top of it."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("rms_norm", "SwiGLU", "GroupedQuerySelfAttention", "LlamaBlock"),
    title="Today's block, and a real model on your attention",
    question="What has changed in the block since 2017, and does yours run a model that others have trained?",
    outcome="write the block of today's open models, and run a real one on it",
    needs="smollm2",
)

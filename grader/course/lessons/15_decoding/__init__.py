"""Lesson 15: writing one token at a time, and what it costs to remember."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("cache_bytes", "KVCache", "grouped_query_attention", "window_mask", "generate_cached"),
    title="Decoding: one token at a time",
    question="Why does a model keep its keys and values while it writes, and what does that cost?",
    outcome="write with a cache, say what it costs in bytes, and make it smaller",
)

"""Lesson 14: attention in tiles, forwards and backwards, without the table of all scores."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("merge_partial", "tiled_attention", "tiled_attention_backward"),
    title="Flash attention: the T × T table is never needed",
    question="Softmax needs every score of a row. How can it be exact when no more than a few of them are ever in memory?",
    outcome="compute attention and its gradients in tiles, exactly, in memory that grows with T and not with T²",
)

"""Lesson 10: alignment, where attention came from."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("rnn_states", "additive_attention", "luong_attention"),
    title="Alignment: where attention came from",
    question="How can a translator that has read the whole sentence still find the one word it needs now?",
    outcome="train a translator of dates, and see what it looks at while it writes",
)

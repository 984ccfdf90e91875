"""Lesson 12: a small language model, trained on text and writing on."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("next_token_loss", "LanguageModel", "train_step", "generate"),
    title="A language model",
    question="Which parts, put together, learn to write from nothing but text?",
    outcome="train a small language model in a minute, and let it write",
)

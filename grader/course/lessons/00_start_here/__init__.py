"""Lesson 00: the look-up, hard and soft; enough to learn how check, hint and explain work."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("hard_lookup", "soft_lookup"),
    title="Start here",
    question="How does a machine look something up when no key fits exactly?",
    outcome="look things up by similarity, hard and soft",
)

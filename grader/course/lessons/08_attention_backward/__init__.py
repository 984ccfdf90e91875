"""Lesson 08: the backward pass of attention, by hand and in NumPy."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("numerical_gradient", "softmax_backward", "attention_backward", "wrong_gradients"),
    title="Gradients by hand",
    question="How does an error in the output find its way back to the queries, keys and values?",
    outcome="derive attention's gradients, and check them without trusting anyone",
)

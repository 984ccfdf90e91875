"""Lesson 02: softmax over any axis, with a temperature, in logarithms, and its derivative."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    (
        "softmax",
        "softmax_with_temperature",
        "find_failure",
        "log_softmax",
        "cross_entropy",
        "cross_entropy_gradient",
        "softmax_jacobian",
    ),
    title="Softmax",
    question="What does the one non-linear step of attention do, and how does it break?",
    outcome="write a softmax that neither overflows nor underflows, and differentiate it",
)

"""Lesson 08: the mistakes of the way back through softmax, two lines that both exercises have."""

from grader.course.declare import patch

MEAN = "(grad_weights * weights).sum(axis=-1, keepdims=True)"
BACK = "weights * (grad_weights - mean)"


def mean_over(axis: str):
    return patch("weights).sum(axis=-1", f"weights).sum(axis={axis}")


MISTAKES = {
    "BW1": patch(BACK, "weights * grad_weights"),
    "GB1": patch(BACK, "grad_weights - mean"),
    "GB2": patch(MEAN, "(grad_weights * weights).sum()"),
    "GB3": patch(BACK, "weights * (mean - grad_weights)"),
    "GB4": patch(MEAN, "grad_weights.sum(axis=-1, keepdims=True)"),
    "GB5": patch(BACK, "weights * (1 - weights) * grad_weights"),
    "GB16": patch(MEAN, "(grad_weights * weights).sum(axis=-1)"),
    "GB17": (mean_over("-2"), mean_over("0")),
    "GB18": patch(BACK, "weights * grad_weights - mean"),
    "GB19": patch(MEAN, "grad_weights.mean(axis=-1, keepdims=True)"),
    "GB20": patch(BACK, "grad_weights * (weights - mean)"),
    "GB21": patch(BACK, "weights * (grad_weights + mean)"),
}

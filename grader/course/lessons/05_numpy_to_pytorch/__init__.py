"""Lesson 05: from NumPy to PyTorch."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("attention_torch", "linear_from_numpy", "as_numpy", "SelfAttention", "parameters_without_gradient"),
    title="From NumPy to PyTorch",
    question="How do the projections learn, and how do we know that nothing else changed?",
    outcome="move the computation to PyTorch, and prove that gradients arrive where they should",
)

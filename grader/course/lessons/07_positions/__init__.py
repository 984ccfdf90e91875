"""Lesson 07: positions, as a table that is added, as a rotation, as a bias on the scores."""

from grader.course.declare import collected

lesson = collected(
    __name__,
    ("sinusoidal_positions", "shift_matrix", "apply_rope", "alibi_bias"),
    title="Positions",
    question="Attention does not know which token came first: how do we tell it?",
    outcome="tell attention the order of tokens: by sinusoids, by rotation, by a bias",
)

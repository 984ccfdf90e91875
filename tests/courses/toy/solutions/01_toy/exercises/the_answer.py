from grader.course.declare import Case, exercise

from ...shared.toys import HINTS


@exercise(points=1, minutes=1, kind="answer", result_type="answer")
class the_answer:
    """Answer."""

    def cases(rng):
        yield Case("value", "the value", (), probe="answer")

    mistakes = {}
    hints = HINTS

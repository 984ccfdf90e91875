from grader.course.lessons.shared import HINTS

from grader.course.declare import Case, exercise


@exercise(points=1, minutes=1, kind="answer", container="answer")
class the_answer:
    """Answer."""

    def cases(rng):
        yield Case("value", "the value", (), probe="answer")

    mistakes = {}
    hints = HINTS

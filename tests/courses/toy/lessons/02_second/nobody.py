from grader.course.lessons.shared import HINTS, arrays

from grader.course.declare import exercise


@exercise(points=4, minutes=1)
class nobody:
    """Nobody solves it."""

    cases = arrays
    mistakes = {}
    hints = HINTS

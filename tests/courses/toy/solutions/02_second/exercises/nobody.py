from grader.course.declare import exercise

from ...shared.toys import HINTS, arrays


@exercise(points=4, minutes=1)
class nobody:
    """Nobody solves it."""

    cases = arrays
    mistakes = {}
    hints = HINTS

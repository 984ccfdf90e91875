from grader.course.declare import exercise, mistake, patch

from ...shared.toys import HINTS, arrays


@exercise(points=2, minutes=1)
class double:
    """Double x."""

    cases = arrays
    mistakes = {
        "TY2": mistake(patch("2 * x", "x + 2"), says="This is TY2.", why="why"),
        "TY3": mistake(patch("2 * x", "x * x"), says="This is TY3.", why="why"),
        "TY4": mistake(patch("2 * x", "x"), says="This is TY4.", why="why"),
    }
    hints = HINTS

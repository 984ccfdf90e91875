from grader.course.declare import exercise, mistake, patch

from ...shared.toys import HINTS, arrays


@exercise(points=3, minutes=1)
class row_sums:
    """Sum rows."""

    cases = arrays
    mistakes = {"TY1": mistake(patch("axis=1", "axis=0"), says="This is TY1.", why="why")}
    hints = HINTS

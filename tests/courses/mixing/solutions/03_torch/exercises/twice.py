"""An exercise with a probe of the lesson's own."""

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch


@exercise(points=1, minutes=1, difficulty=1, result_type="tensor", forbids=("tampering",))
class twice:
    """Return twice the tensor."""

    def cases(rng):
        for i, n in enumerate((2, 3, 3, 5)):
            yield Case(
                f"of {n}, {i}",
                f"{n} numbers",
                (Tensor(rng.normal(size=n).astype(np.float32)),),
                names=("tensor",),
                probe="probes.on_result",
                options={"by_name": True} if n == 5 else {},
            )

    hints = ("What is twice 1?", "Look at *.", "```python\nreturn ____ * tensor\n```")

    mistakes = {
        "MX30": mistake(patch("2 * tensor", "tensor * tensor"), says="It was squared.", why="Twice 3 is 6."),
        "MX31": mistake(patch("2 * tensor", "tensor + 2"), says="2 was added.", why="Twice 3 is 6."),
        "MX32": mistake(patch("2 * tensor", "3 * tensor"), says="It is three times as much.", why="Twice 3 is 6."),
    }

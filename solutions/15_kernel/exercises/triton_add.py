"""Two tensors added by a kernel."""

from __future__ import annotations

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch


@exercise(points=2, minutes=10, difficulty=1, container="tensor")
class triton_add:
    """Add two tensors of one shape by a kernel of your own, one block of entries a program."""

    def cases(rng):
        for key, title, shape in (
            ("small", "three entries", (3,)),
            ("sizes", "two rows of five", (2, 5)),
            ("again", "two rows of five, new numbers", (2, 5)),
        ):
            yield Case(key, title, tuple(Tensor(rng.normal(size=shape).astype(np.float32)) for _ in "xy"))

    mistakes = {
        "KN1": mistake(
            patch("+ tl.load(y", "- tl.load(y"),
            says="The two tensors were subtracted; their sum is expected.",
            why="The kernel computes x + y.",
        ),
        "KN2": mistake(
            patch("+ tl.load(y + offsets", "+ tl.load(x + offsets"),
            says="x was added to itself.",
            why="The second load reads y.",
        ),
        "KN3": mistake(
            patch("tl.load(x + offsets", "2 * tl.load(x + offsets"), says="x counts twice.", why="Once each."
        ),
    }
    hints = (
        "Which entries belong to program 0, which to program 1?",
        "offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK); what is beyond n is masked in each load and in the store.",
        "offsets = ____ * BLOCK + tl.arange(0, BLOCK)\nmask = offsets < ____\ntotal = tl.load(x + ____, mask=____) + tl.load(____, mask=____)",
    )

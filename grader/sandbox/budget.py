"""The time that one submission may take in all, whatever its single exercises and cells are allowed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from grader.worker.values import Failure

MORE_EXERCISES = (
    10  # a submission has the time of so many exercises more than it has, for its cells and for starting again
)


@dataclass
class Budget:
    """seconds: of all requests to a submission's workers together; spent_s: of these so far."""

    seconds: float = math.inf
    spent_s: float = 0.0

    @property
    def over(self) -> bool:
        return self.spent_s >= self.seconds

    @property
    def cause(self) -> str:
        """Why something was not run, after 'because'."""
        return f"what ran before it used up the {self.seconds:g} s that this submission may take in all"

    @property
    def note(self) -> str:
        return (
            f"The cells and exercises of this submission may take {self.seconds:g} s in all, and they took longer: what came after that "
            "was not tried. First repair what ran out of time."
        )

    def unreached(self, name: str) -> Failure:
        """What is said of an exercise that was not tried."""
        return Failure("timeout", message=f"{name} was not tried, because {self.cause}.")


def budget_of(exercises: int, timeout_s: float) -> Budget:
    """For a submission with this many exercises, of which each has its time limit."""
    return Budget(timeout_s * (exercises + MORE_EXERCISES))

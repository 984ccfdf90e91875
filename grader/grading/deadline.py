"""The end of a whole run: a service that stops a run at its limit is never met with nothing to show.

An exercise that the run does not reach is the learner's result only where exercises that do not end used up the time. Where the
machine was slow it could not be graded.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from grader.judging.verdict import Verdict


class Deadline:
    """seconds: of the run, from now; None: without end. Asked before each exercise; one that has begun is not cut short."""

    def __init__(self, seconds: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = clock()
        self._seconds = seconds
        self._endless = 0.0

    @property
    def over(self) -> bool:
        return self._seconds is not None and self._clock() - self._begun >= self._seconds

    def timed(self, judged: Callable[[], Verdict]) -> Verdict:
        """The verdict, noting how long one took that did not end."""
        begun = self._clock()
        verdict = judged()
        if verdict.status == "timeout":
            self._endless += self._clock() - begun
        return verdict

    def verdict(self, name: str) -> Verdict:
        """On an exercise that was not reached."""
        spent, endless = self._clock() - self._begun, self._endless
        if endless >= spent / 2:
            told = f"{name} was not reached: exercises that do not end used {endless:.0f} of the {spent:.0f} s of this run."
            return Verdict(
                name,
                "timeout",
                told,
                "runs",
                look="First fix the exercises that ran out of time; then this one can be tried.",
            )
        why = f"This run may take {self._seconds:g} s. It took {spent:.0f} s so far, {endless:.0f} s of it for exercises that do not end."
        headline = f"{name} could not be graded; the machine was too slow for the time limit of this run."
        return Verdict(name, "could_not_grade", headline, details=(why,))

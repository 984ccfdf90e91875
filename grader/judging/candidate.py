"""What is judged: an object of this process, or one behind a worker process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from grader.course.spec import Case
from grader.source.policy import Sources
from grader.worker.observe import observe, same_random_state
from grader.worker.values import Failure, Observation


class Candidate(Protocol):
    """What the judge asks of whatever it judges.

    problem: why there is nothing to exercise, else None. sources: asked about the learner's cells, None where unknown.
    """

    @property
    def problem(self) -> Failure | None: ...
    @property
    def sources(self) -> Sources | None: ...

    def observe_all(self, cases: Sequence[Case]) -> Iterable[Observation]:
        """What each case shows, in order; it may end early where one was the end of all."""
        ...


@dataclass(eq=False)
class LiveObject:
    """A candidate around an object of this process."""

    obj: Any
    problem: Failure | None = None
    sources: Sources | None = None

    def observe_all(self, cases: Sequence[Case]) -> Iterator[Observation]:
        with same_random_state():
            yield from (observe(self.obj, case) for case in cases)

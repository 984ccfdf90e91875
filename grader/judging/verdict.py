"""What judging yields: verdicts, with the tables that they show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

Status = Literal[
    "passed", "failed", "error", "timeout", "memory", "forbidden", "not_started", "missing", "could_not_grade"
]
Statuses: tuple[str, ...] = Status.__args__  # type: ignore[attr-defined]
FAILING = ("failed", "error", "timeout", "memory")  # written and allowed, and it does not pass


@dataclass(frozen=True, eq=False)
class Table:
    """What is shown of an array: at most 8 × 8 of its numbers. role: 'input', 'expected', 'actual', 'difference' (actual − expected), or
    'run' for one of two.

    name: of the input or the part, '' for the only thing that the exercise returns. dtype, shape: of the whole array.
    cells: rows and columns; a vector is one row, a number one cell. index: leading indices of the slice that is shown.
    first: row and column of the slice at which cells begin. mark: the cell with the largest difference, None where there is none to mark.
    largest: the largest finite magnitude of the whole array.
    """

    name: str
    role: str
    cells: np.ndarray
    dtype: str
    shape: tuple[int, ...]
    index: tuple[int, ...] = ()
    first: tuple[int, int] = (0, 0)
    mark: tuple[int, int] | None = None
    largest: float = 0.0

    @property
    def total(self) -> tuple[int, int]:
        """Rows and columns of the whole slice."""
        rows, columns = (1, 1, *self.shape)[-2:]
        return rows, columns


class Line(NamedTuple):
    """A line of the learner's code.

    number: its number in its cell, 0 where that is not known. function: what it belongs to where that is not the exercise, else ''.
    """

    text: str
    number: int = 0
    function: str = ""


@dataclass(frozen=True, eq=False)
class Verdict:
    """The judgement of one exercise, complete enough for any report; renderers add nothing.

    headline:   what failed (or that it passed), one sentence.
    experiment: what was tried, one sentence ('' where nothing ran).
    line:       the learner's own line at fault, where one is known.
    details:    further sentences: the shapes at hand, what was expected.
    case:       key of the failing case, '' where there is none.
    tables:     input, expected, actual and difference of the smallest failing case.
    mistakes:   ids that reproduce the learner's output, most likely first; a pair that only
                together reproduces it is one entry 'SM1+SD1'.
    sentences:  one for each entry of `mistakes`.
    slip:       a beginner's error that was proven beside the catalogue, one sentence; '' for none.
    printed, warned: what the learner's code printed in the failing case, and the warnings that it raised.
    verified:   what was verified, in the order of judging (also for a failure: what held before it).
    cases:      (how many agreed, of how many); (0, 0) where that was not counted.
    max_difference: of all numbers from the reference's, as a part of those above 1.
    next_step:  where to look next. next_exercise: after a pass; of another lesson, also which.
    """

    exercise: str
    status: Status
    headline: str
    stage: str = ""
    experiment: str = ""
    details: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    mistakes: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    verified: tuple[str, ...] = ()
    max_difference: float | None = None
    next_step: str = ""
    next_exercise: str = ""
    case: str = ""
    line: Line | None = None
    slip: str = ""
    printed: str = ""
    warned: tuple[str, ...] = ()
    seconds: float = 0.0
    cases: tuple[int, int] = (0, 0)

    @property
    def passed(self) -> bool:
        return self.status == "passed"

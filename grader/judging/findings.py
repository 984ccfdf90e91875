"""What is wrong with an answer, as data: judging/wording.py alone makes sentences of it."""

from __future__ import annotations

from dataclasses import dataclass

from grader.worker.values import Failure, Part, Role

# Each kind with the stage of judging that it belongs to, in the order of judging.
STAGES = {
    "count": "type",  # another number of things was returned
    "absent": "type",  # a part is missing
    "type": "type",
    "cut": "type",  # no gradient arrives
    "shape": "shape",
    "dtype": "dtype",
    "finite": "finite",  # NaN or infinite entries
    "flag": "values",
    "text": "values",
    "numbers": "values",
    "compared": "values",  # an exercise's own comparison
    "unwritten": "attempted",  # only a part is there
    "failure": "runs",  # no result
    "property": "properties",
    "raises": "properties",  # an input that should be refused is not
    "modified": "inputs",  # changed in place
}
ORDER = ("type", "shape", "dtype", "finite", "values")
NO_PART = Part("none")


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing that is not as it should be.

    kind: a key of STAGES.
    part: the name of the part, role and of: what it is, as in `Part`. expected, actual: its two sides; NO_PART where it is of no part.
    at, gap: where the largest difference is, and how large. bad: how many entries are not finite.
    allowed: the dtypes that are. names: of what the exercise returns, or of the inputs that were changed.
    claim: a property's title, the exception that should be raised, or the case for which nothing is written.
    sentence: the author's own, of a comparison or a property.
    failure: what was raised.
    """

    kind: str
    part: str = ""
    role: Role = "value"
    of: str = ""
    expected: Part = NO_PART
    actual: Part = NO_PART
    at: tuple[int, ...] = ()
    gap: float = 0.0
    bad: int = 0
    allowed: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    claim: str = ""
    sentence: str = ""
    failure: Failure | None = None

    @property
    def stage(self) -> str:
        return STAGES[self.kind]

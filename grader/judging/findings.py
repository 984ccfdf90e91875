"""What was found amiss, as data: judging/wording.py alone makes sentences of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.worker.values import Failure, Part, Role

# Each kind with the stage of judging that it belongs to, in the order of judging.
STAGES = {
    "count": "type",
    "absent": "type",
    "type": "type",
    "cut": "type",
    "shape": "shape",
    "dtype": "dtype",
    "finite": "finite",
    "flag": "values",
    "text": "values",
    "numbers": "values",
    "compared": "values",
    "unwritten": "attempted",
    "failure": "runs",
    "property": "properties",
    "raises": "properties",
    "modified": "inputs",
}
ORDER = ("type", "shape", "dtype", "finite", "values")
Kind = Literal[
    "count",
    "absent",
    "type",
    "cut",
    "shape",
    "dtype",
    "finite",
    "flag",
    "text",
    "numbers",
    "compared",
    "failure",
    "property",
    "raises",
    "modified",
    "unwritten",
]


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing that is not as it should be.

    kind: 'count' (another number of things was returned), 'absent' (a part is missing), 'type', 'cut' (no gradient arrives),
          'shape', 'dtype', 'finite' (NaN or infinite entries), 'flag', 'text', 'numbers' (they differ), 'compared' (an exercise's
          own comparison), 'failure' (no result), 'property', 'raises' (a refusal that should come and does not), 'modified'
          (inputs changed in place), 'unwritten' (only a part is there).
    part: the name of the part, role and of: what it is, as in `Part`. expected, actual: its two sides.
    at, gap: where the largest difference is, and how large. bad: how many entries are not finite.
    allowed: the dtypes that are. names: of what the exercise returns, or of the inputs that were changed.
    claim: a property's title, the exception that should be raised, or the case for which nothing is written.
    said: the author's own sentence.
    failure: what was raised.
    """

    kind: Kind
    part: str = ""
    role: Role = "value"
    of: str = ""
    expected: Part | None = None
    actual: Part | None = None
    at: tuple[int, ...] = ()
    gap: float = 0.0
    bad: int = 0
    allowed: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    claim: str = ""
    said: str = ""
    failure: Failure | None = None

    @property
    def stage(self) -> str:
        return STAGES[self.kind]

"""What the cells of this kernel did: for each name, whether the last run of the cell that defines it got that far.

A kernel keeps what an earlier run defined. Where the cell was changed since, and its last run failed, a check would
judge the old definition without saying so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader.source.definitions import defined_names
from grader.worker.observe import failure_from
from grader.worker.values import Failure

_PLACE = re.compile(r" \([^()]*, line \d+\)$")  # where Python found a wrong syntax, by the name of a file that nobody made
NOTHING: Any = type("Nothing", (), {"__repr__": lambda self: "(not defined)"})()


@dataclass(frozen=True, eq=False)
class Broken:
    """The last run of a name's cell, which did not define it.

    failure: what ended the run; None where it ran to its end and defines the name no more.
    stood: what the name was before and still is, NOTHING where there is nothing of that name. defines: the names that the cell now defines.
    """

    failure: Failure | None
    stood: Any
    defines: frozenset[str]


class Runs:
    """Told of every cell before and after it runs; says which names are older than their cells."""

    def __init__(self) -> None:
        self.broken: dict[str, Broken] = {}
        self._before: dict[str, Any] = {}
        self._of_cell: dict[str, frozenset[str]] = {}  # a cell's id -> what it defined when it last ran to its end

    def begin(self, text: str, cell_id: str | None, namespace: Mapping[str, Any]) -> None:
        """A cell is about to run. While it does, what it defines counts as new."""
        names = defined_names(text) | self._of_cell.get(cell_id or "", frozenset())
        self._before = {name: namespace.get(name, NOTHING) for name in names}
        for name in names:
            self.broken.pop(name, None)

    def end(self, text: str, cell_id: str | None, error: BaseException | None, namespace: Mapping[str, Any]) -> None:
        """A cell has run; error: what ended it, None where it ran to its end."""
        defines = defined_names(text)
        failure = failure_from(error) if error is not None else None
        for name, stood in self._before.items():
            replaced = namespace.get(name, NOTHING) is not stood
            if not replaced and (failure is not None or name not in defines):
                self.broken[name] = Broken(failure, stood, defines)
        self._before = {}
        if cell_id:
            known = self._of_cell.get(cell_id, frozenset())
            self._of_cell[cell_id] = defines if error is None else defines | known

    def stale(self, name: str, obj: Any) -> Broken | None:
        """The run after which this object of that name is an old one, None where it is as its cell has it."""
        broken = self.broken.get(name)
        return broken if broken is not None and broken.stood is obj and obj is not NOTHING else None

    def defined_by(self, cell_id: str) -> frozenset[str]:
        """What a cell defined when it last ran; nothing of one that never did."""
        return self._of_cell.get(cell_id, frozenset())


def ended_by(failure: Failure) -> tuple[str, str]:
    """("SyntaxError: '(' was never closed", 'exps = np.exp((scores') of a run that failed: what was raised, and the line."""
    if failure.type == "KeyboardInterrupt":
        return "it was interrupted", failure.line
    message = _PLACE.sub("", failure.message.partition("\n")[0])
    return f"{failure.type}: {message}" if message else failure.type, failure.line

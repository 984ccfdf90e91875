"""What is read of a stranger's notebook without running it: its cells, the plan of what runs, what is forbidden in it.

LocalReader reads in this process. Where strangers are graded, sandbox/reader.py has the same done by a process of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.source.definitions import defined_names
from grader.source.magics import without_magics
from grader.submission.ipynb import Notebook, read_notebook
from grader.submission.plan import Plan, Pristine, lay_over

if TYPE_CHECKING:
    from grader.source.policy import Offence
    from grader.source.slips import Slip

    SourceFindings = tuple[Offence | None, tuple[Slip, ...]]  # of one exercise's code

Given = tuple[tuple[str, str], ...]  # names that the lessons' own cells import, and what each stands for
Rules = Mapping[str, tuple[Sequence[str], Sequence[str]]]  # by exercise: what it forbids, what it requires


class LocalReader:
    """Reads in this process, however long that takes."""

    def begin(self) -> None:
        """Another learner's notebooks follow."""

    def notebook(self, path: Path, base: Path) -> Notebook:
        """The notebook of a file, with the names that its cells bind; no link below `base` is followed. Raises: Unreadable."""
        read = read_notebook(path, base)
        return replace(
            read, defines=frozenset().union(*(defined_names(without_magics(cell.text)) for cell in read.cells))
        )

    def plan(self, pristine: Pristine, notebook: Notebook) -> Plan:
        """What to run of it. Raises: Unreadable."""
        return lay_over(pristine, notebook)

    def sources(self, cells: Sequence[str], rules: Rules, given: Given) -> dict[str, SourceFindings]:
        """For each exercise the first offence in the code that it reaches, and what beginners let slip in it."""
        from grader.source.policy import Sources  # imports NumPy, for which the first notebook need not wait

        sources = Sources(tuple(cells), given)
        return {
            name: (sources.offence(name, tuple(forbids), tuple(requires)), sources.slips(name, rules))
            for name, (forbids, requires) in rules.items()
        }

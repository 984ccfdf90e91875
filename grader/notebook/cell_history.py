"""What the cells of this kernel did: for each name, whether the last run of the cell that defines it got that far.

A kernel keeps what an earlier run defined. Where the cell was changed since, and its last run failed, a check would
judge the old definition without saying so. It also keeps what grading has not: what the course's demonstrations and
payoffs made, and what was defined in a cell that was deleted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from grader.course import references
from grader.course.course import Course
from grader.notebook import reach
from grader.notebook.kernel_course import kernel_course
from grader.notebook.target import MISSING
from grader.source.definitions import called_name, changed_definitions, defined_names, normalize, parse
from grader.source.magics import without_magics
from grader.source.scopes import IMPORTS, imports_of, names_of
from grader.util.digest import digest
from grader.util.words import ELSEWHERE
from grader.worker.observe import failure_from
from grader.worker.values import Failure

# Where Python found a wrong syntax, by the name of a file that nobody made.
_PLACE = re.compile(r" \([^()]*, line \d+\)$")
_ALWAYS_READ = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Assert)  # other statements may never come to it


@dataclass(frozen=True, eq=False)
class StaleDefinition:
    """The last run of a name's cell, which did not define it.

    failure: what ended the run; None where it ran to its end and defines the name no more.
    earlier_value: what the name was before and still is, MISSING where there is nothing of that name.
    defines: the names that the cell now defines.
    """

    failure: Failure | None
    earlier_value: Any
    defines: frozenset[str]


@dataclass(frozen=True, eq=False)
class Absence:
    """A name of the kernel that grading has not. why: what became of it, for a learner; graded: what grading has instead.

    deleted: whether that is because no cell defines it any more; edited: because a cell of the lesson's own was changed.
    """

    why: str
    graded: Any = MISSING
    deleted: bool = False
    edited: bool = False


class CellHistory:
    """Told of every cell before and after it runs; says which names are older than their cells, and which grading has not."""

    def __init__(self) -> None:
        self.stale: dict[str, StaleDefinition] = {}
        self.absences: dict[str, Absence] = {}
        self._before: dict[str, tuple[Any, Absence | None]] = {}  # what a name was, and why grading had not got it
        # What a cell, by its id, defined when it last ran to its end.
        self._names_of_cell: dict[str, frozenset[str]] = {}
        self._last_cell: dict[str, str] = {}  # a name -> the id of the cell that bound it last
        self._deletions: set[str] = set()

    def begin(self, text: str, cell_id: str | None, namespace: Mapping[str, Any], deleted: Iterable[str] = ()) -> None:
        """A cell is about to run. While it does, what it defines counts as new.

        deleted: ids of cells that were deleted since the last run; of cells that run together, each is told of the same.
        """
        self._delete(set(deleted), cell_id)
        names = defined_names(without_magics(text)) | reach.names_in_files(text).keys() | self.defined_by(cell_id or "")
        self._before = {name: (namespace.get(name, MISSING), self.absences.get(name)) for name in names}
        for name in names:
            self.stale.pop(name, None)
            if normalize(text) not in _not_graded(kernel_course()):
                self.absences.pop(name, None)

    def end(self, text: str, cell_id: str | None, error: BaseException | None, namespace: Mapping[str, Any]) -> None:
        """A cell has run; error: what ended it, None where it ran to its end."""
        origins = reach.names_in_files(text)
        defines = defined_names(without_magics(text)) | origins.keys()
        failure = failure_from(error) if error is not None else None
        absences, edited = self._absences(text, origins, namespace), _edited(text, cell_id or "")
        for name, (earlier_value, earlier) in self._before.items():
            replaced = namespace.get(name, MISSING) is not earlier_value
            if replaced or (failure is None and name in defines):
                if cell_id:
                    self._last_cell[name] = cell_id
                self.absences.pop(name, None)
                if name in absences:
                    graded = earlier.graded if earlier is not None else earlier_value if replaced else MISSING
                    self.absences[name] = Absence(absences[name], graded)
                elif name in edited:
                    self.absences[name] = edited[name]
                continue
            if earlier is not None:
                self.absences[name] = earlier
            if type(earlier_value) is not ModuleType:  # which is the same whichever cell imported it
                self.stale[name] = StaleDefinition(failure, earlier_value, defines)
        self._before = {}
        if cell_id:
            earlier_names = frozenset() if error is None else self.defined_by(cell_id)
            self._names_of_cell[cell_id] = defines | earlier_names

    def _absences(self, text: str, origins: Mapping[str, str], namespace: Mapping[str, Any]) -> dict[str, str]:
        """Of the names that a cell binds those that grading will not have from it, and why. origins: see reach.names_in_files."""
        if normalize(text) in _not_graded(kernel_course()):
            return dict.fromkeys(defined_names(text), f"{ELSEWHERE} it.")
        tree = parse(without_magics(text)) if self.absences or "passed" in text or "import" in text else None
        bound: set[str] = set()
        why = ""  # where grading runs this cell, it ends at the first statement that needs what is not there
        absences = {name: f"needs `{file}`. {reach.ABSENT}" for name, file in origins.items()}
        for statement in tree.body if tree is not None else ():
            names = names_of(statement)
            why = why or self._ends(statement, names.now - bound, namespace)
            if isinstance(statement, ast.If) and called_name(statement.test) == "passed":  # a payoff
                absences.update(dict.fromkeys(names.binds, f"{ELSEWHERE} it."))
            elif why:
                absences.update(dict.fromkeys(names.binds, why))
            bound |= names.binds
        return absences

    def _ends(self, statement: ast.stmt, reads: Collection[str], namespace: Mapping[str, Any]) -> str:
        """What is said of the names that a cell binds from this statement on, where grading gets no further; else ''.

        reads: the names that it reads; what functions among them read counts as well.
        """
        if isinstance(statement, IMPORTS):
            modules = (dotted.partition(".")[0] for dotted in imports_of(statement).values())
            file = next(filter(None, map(reach.own_file, modules)), "")
            return f"needs `{file}`. {reach.ABSENT}" if file else ""
        if not isinstance(statement, _ALWAYS_READ):
            return ""
        inner_reads = (inner for name in reads for inner in reach.names_read(namespace.get(name), namespace))
        needs = min(filter(self.is_absent, (*reads, *inner_reads)), default="")
        if not needs:
            return ""
        why = self.absences[needs].why
        reason = f", which {ELSEWHERE} `{needs}`." if why.startswith(ELSEWHERE) else f". `{needs}` {why}"
        return f"is made in a cell that needs `{needs}`{reason}"

    def is_absent(self, name: str) -> bool:
        """Whether grading has nothing under a name of the kernel."""
        return name in self.absences and self.absences[name].graded is MISSING

    def _delete(self, cells: set[str], running: str | None) -> None:
        """Cells were deleted; told again of the same ones, nothing is: a cell that came back may have run since."""
        for cell in cells - self._deletions - {running}:
            for name in self._names_of_cell.pop(cell, frozenset()):
                if self._last_cell.get(name) == cell:
                    why = "is defined in no cell any more, or in one that has not run: write it into a cell, and run that."
                    if any(name in names for names in self._names_of_cell.values()):
                        why = "is defined in another cell, too, which is older: run that one."
                    self.absences[name] = Absence(why, deleted=True)
        self._deletions = cells

    def defined_by(self, cell_id: str) -> frozenset[str]:
        """What a cell defined when it last ran; nothing of one that never did."""
        return self._names_of_cell.get(cell_id, frozenset())


def describe_failure(failure: Failure) -> str:
    """ "SyntaxError: '(' was never closed": what was raised in a run that failed."""
    if failure.type == "KeyboardInterrupt":
        return "it was interrupted"
    message = _PLACE.sub("", failure.message.partition("\n")[0])
    return f"{failure.type}: {message}" if message else failure.type


@cache
def _not_graded(course: Course) -> frozenset[str]:
    """The texts of the course's cells that grading does not run: demonstrations, checks and payoffs."""
    cells = (cell for lesson in course.lessons() for cell in course.cells(lesson))
    return frozenset(normalize(cell.text) for cell in cells if cell.role in ("demo", "check", "payoff"))


@cache
def _given_cells(course: Course) -> dict[str, tuple[str, str]]:
    """The lesson and the text of each cell that lessons give, by the cell's id in a notebook."""
    cells = ((lesson, cell) for lesson in course.lessons() for cell in course.cells(lesson))
    return {f"given-{digest(cell.text)}": (lesson, cell.text) for lesson, cell in cells if cell.role == "given"}


def _edited(text: str, cell_id: str) -> dict[str, Absence]:
    """The functions and classes of a given cell that a learner has changed in it: grading runs that cell as it was handed out."""
    lesson, original = _given_cells(kernel_course()).get(cell_id, ("", ""))
    changed = changed_definitions(text, original)
    course = references.namespace(kernel_course(), lesson) if changed else {}
    why = "was changed in a cell of the lesson's own, which grading runs as it was handed out, and so did this check."
    return {
        name: Absence(f"{why} Write a version of yours in a cell of its own.", course[name], edited=True)
        for name in changed
    }

"""Lays a learner's cells over the pristine lesson: which cells run, in which order, and who defines what.

Given cells come from the course. Exercise cells and cells that the learner added come from the
submission. Demonstrations, checks and payoffs do not run, except for what a learner changed in one
and what another cell needs.

LocalReader reads in this process. Where strangers are graded, sandbox/reader.py has the same done by a process of its own.
"""

from __future__ import annotations

import ast
import copy
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from grader.source.definitions import changed_definitions, defined_names, first_line, normalize, parse, used_names
from grader.source.dependencies import Effects
from grader.source.magics import script_name, without_magics
from grader.source.scopes import names_of
from grader.submission.ipynb import Notebook, NotebookCell, read_notebook
from grader.util.names import printable
from grader.util.words import number_cells
from grader.worker.values import Failure

if TYPE_CHECKING:
    from grader.source.policy import Offence
    from grader.source.slips import Slip

    SourceFindings = tuple[Offence | None, tuple[Slip, ...]]  # of one exercise's code

Given = tuple[tuple[str, str], ...]  # names that the lessons' own cells import, and what each stands for
Rules = Mapping[str, tuple[Sequence[str], Sequence[str]]]  # by exercise: what it forbids, what it requires

MAX_NOTES = 20  # of one notebook; nobody reads more

_FUNCTION = re.compile(r"^(?:async )?(?:def|class) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class RunCell:
    """A cell that runs while grading. own: the learner's; else the course's.

    requires: what it, or a cell whose names it uses, needs and this machine lacks; see NotebookCell. origin: the label of that cell.
    """

    label: str
    text: str
    own: bool
    requires: str = ""
    origin: str = ""


@dataclass(frozen=True)
class Plan:
    """What to run and ask of one notebook.

    owners: for each exercise that some cell defines, that cell's position in `cells` (the last counts).
    absent: sentences for exercises that no cell defines.
    notes:  sentences on the notebook itself.
    handed_in: False where the lesson has no notebook at all.
    """

    lesson: str
    exercises: tuple[str, ...]
    cells: tuple[RunCell, ...] = ()
    owners: dict[str, int] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    handed_in: bool = True

    @property
    def own_texts(self) -> tuple[str, ...]:
        """The learner's code, in the notebook's order, magics removed."""
        return tuple(cell.text for cell in self.cells if cell.own)

    def missing(self, name: str) -> Failure:
        """That an exercise has no definition, and which cell should hold it."""
        message = self.absent.get(name, f"No cell defines {name}.")
        return Failure("missing", message=message, lesson="" if self.handed_in else self.lesson)


def empty_plan(lesson: str, exercises: Sequence[str], reason: str, handed_in: bool = True) -> Plan:
    """For a notebook that is absent or cannot be read: every exercise is missing, for this reason."""
    absent = {name: f"{name} is missing. {reason}" for name in exercises}
    return Plan(lesson, tuple(exercises), absent=absent, handed_in=handed_in)


@dataclass(frozen=True)
class Pristine:
    """The code cells of a lesson's own notebook, and where to find one of them."""

    lesson: str
    exercises: tuple[str, ...]
    cells: tuple[NotebookCell, ...]

    @cached_property
    def by_id(self) -> dict[str, int]:
        return {cell.id: position for position, cell in enumerate(self.cells) if cell.id}

    @cached_property
    def by_text(self) -> dict[str, int]:
        cells = enumerate(self.cells)
        return {normalize(cell.text): position for position, cell in cells if cell.role != "exercise"}

    @cached_property
    def by_exercise(self) -> dict[str, int]:
        return {cell.exercise: position for position, cell in enumerate(self.cells) if cell.role == "exercise"}

    @cached_property
    def given_names(self) -> frozenset[str]:
        """What its given cells bind."""
        return frozenset().union(*(defined_names(cell.text) for cell in self.cells if cell.role == "given"))

    def attempts(self, notebook: Notebook) -> int:
        """In how many cells something was written for an exercise, beyond comments and spaces. No code is parsed for it."""
        stubs = {_without_comments(self.cells[position].text) for position in self.by_exercise.values()} | {""}
        names = "|".join(map(re.escape, self.exercises)) or "(?!)"
        binds = re.compile(rf"^(?:def |class |)(?:{names})[ \t]*[(:=]", re.MULTILINE)
        return sum(
            _without_comments(cell.text) not in stubs
            and (cell.role == "exercise" or not cell.role and binds.search(cell.text) is not None)
            for cell in notebook.cells
        )


class LocalReader:
    """Reads in this process, however long that takes."""

    def begin(self) -> None:
        """Another learner's notebooks follow."""

    def notebook(self, path: Path, base: Path) -> Notebook:
        """The notebook of a file, with the names that its cells bind; no link below `base` is followed. Raises: Unreadable."""
        notebook = read_notebook(path, base)
        names = [defined_names(without_magics(cell.text)) for cell in notebook.cells]
        return replace(notebook, defines=frozenset().union(*names))

    def plan(self, pristine: Pristine, notebook: Notebook) -> Plan:
        """What to run of it. Raises: Unreadable."""
        return _Overlay(pristine, notebook).plan()

    def sources(self, cells: Sequence[str], rules: Rules, imports: Given) -> dict[str, SourceFindings]:
        """For each exercise the first offence in the code that it reaches, and what beginners let slip in it."""
        from grader.source.policy import Sources  # imports NumPy, for which the first notebook need not wait

        sources = Sources(tuple(cells), imports)
        return {
            name: (sources.offence(name, tuple(forbids), tuple(requires)), sources.slips(name, rules))
            for name, (forbids, requires) in rules.items()
        }


class _Overlay:
    def __init__(self, pristine: Pristine, notebook: Notebook) -> None:
        self.notebook, self.pristine = notebook, pristine
        self.plain_cells = [(cell, without_magics(cell.text)) for cell in notebook.cells]
        self.defined_names = cache(defined_names)  # parsing is what takes time
        self.cells: list[RunCell] = []
        # By exercise, the last cell for it, and the file that its `%run` names.
        self.exercise_cells: dict[str, tuple[int, str]] = {}
        self.magics: dict[str, NotebookCell] = {}  # by exercise, a cell below whose first line nothing is run here
        self.notes = list(notebook.notes)
        self.position = 0  # pristine cells before this one have been laid out

    def plan(self) -> Plan:
        if numbers := [f"cell {cell.number}" for cell, text in self.plain_cells if text.split() != cell.text.split()]:
            cells = number_cells(numbers)
            self.notes.append(f"Magics and shell commands are not run while grading ({cells}).")
        # Learners run cells out of order; the imports come first wherever theirs stand.
        others = (position for position, cell in enumerate(self.pristine.cells) if cell.role != "given")
        self._lay_given(next(others, len(self.pristine.cells)))
        for cell, text in self.plain_cells:
            self._lay(cell, text)
        self._lay_given(len(self.pristine.cells))
        self._pass_on_requirements()
        owners = self._owners()
        absent = {name: self._absence(name) for name in self.pristine.exercises}
        if len(self.notes) > MAX_NOTES:
            excess = len(self.notes) - MAX_NOTES + 1
            self.notes = [*self.notes[: MAX_NOTES - 1], f"There are {excess} more notes like these."]
        notes = tuple(self.notes)
        return Plan(self.pristine.lesson, self.pristine.exercises, tuple(self.cells), owners, absent, notes)

    def _lay(self, cell: NotebookCell, text: str) -> None:
        """Lays out one of the learner's cells, after the given cells that precede it in the lesson."""
        role, position = self._match(cell)
        if position is not None:
            self._lay_given(position + (role == "given"))
        if role in ("", "exercise"):
            self._lay_own(cell, text)
        elif position is not None and normalize(self.pristine.cells[position].text) == normalize(cell.text):
            return
        elif role == "given":
            additions = self._additions(text)
            if additions:
                self._lay_own(cell, additions)
            if position is not None:
                names = [f"`{name}`" for name in changed_definitions(text, self.pristine.cells[position].text)]
                changes = ["followed by the lines that were added"] * bool(additions)
                changes += [f"with its own {' and '.join(names)}"] * bool(names)
                if changes:
                    self.notes.append(
                        f"Cell {cell.number} belongs to the lesson: the course's copy ran, {', '.join(changes)}."
                    )
        elif self.defined_names(text) & self.names_in_use:
            self._lay_own(cell, text)

    def _match(self, cell: NotebookCell) -> tuple[str, int | None]:
        """The role of a learner's cell, and its place in the pristine lesson where it has one.

        By metadata, else by id, else by its text, else by the exercises that it defines.
        """
        by_text = self.pristine.by_text.get(normalize(cell.text))
        by_id = self.pristine.by_id.get(cell.id)
        role = cell.role or ("" if by_id is None else self.pristine.cells[by_id].role)
        if role == "exercise":
            return role, self.pristine.by_exercise.get(cell.exercise, by_id)
        if by_text is not None:
            return self.pristine.cells[by_text].role, by_text
        if role or by_id is not None:
            return role, by_id
        names = self.defined_names(cell.text) & self.pristine.by_exercise.keys()
        return "", max((self.pristine.by_exercise[name] for name in names), default=None)

    def _lay_own(self, cell: NotebookCell, text: str) -> None:
        if not text.strip() and cell.text.lstrip().startswith("%%"):
            self.magics[cell.exercise] = cell
        if text.strip():
            if cell.role == "exercise":
                self.exercise_cells[cell.exercise] = len(self.cells), script_name(cell.text)
            label = f"cell {cell.number}"
            self.cells.append(RunCell(label, text, True, cell.requires, label))

    def _lay_given(self, end: int) -> None:
        """Lays out the course's given cells before this position of the pristine lesson."""
        for cell in self.pristine.cells[self.position : end]:
            if cell.role == "given":
                self.cells.append(RunCell(f"given cell {cell.number}", cell.text, False))
        self.position = max(self.position, end)

    @cached_property
    def names_in_use(self) -> frozenset[str]:
        """Names for which a changed demonstration runs after all: exercises, and what other cells use."""
        cells = (text for cell, text in self.plain_cells if self._match(cell)[0] in ("", "exercise"))
        return frozenset(self.pristine.exercises).union(*map(used_names, cells))

    def _additions(self, text: str) -> str:
        """Of an edited given cell: what binds names that the lesson's own do not, or changes what such a name stands for."""
        tree = parse(text)
        lines = text.split("\n")
        additions = [""] * len(lines)
        new_names: set[str] = set()
        for statement in tree.body if tree else ():
            start, names, effects = first_line(statement), names_of(statement), Effects(statement)
            changes = effects.alters | effects.touches | names.deletes
            addition = lines[start : statement.end_lineno]
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                aliases = self._new_imports(statement)
                if not aliases:
                    continue
                if len(aliases) < len(statement.names):  # the line may be there, for what stands before the import
                    new_import = copy.copy(statement)
                    new_import.names = aliases
                    addition = [additions[start] or ast.unparse(new_import)]
            elif names.binds & self.pristine.given_names or not (names.binds or changes & new_names):
                continue
            new_names |= names.binds - self.pristine.given_names
            additions[start : start + len(addition)] = addition
        return "\n".join(additions) if any(additions) else ""

    def _new_imports(self, statement: ast.Import | ast.ImportFrom) -> list[ast.alias]:
        """What of it binds a name that the lesson's own cells do not; and `import a.b`, which loads what may be missing of their a."""
        loads = isinstance(statement, ast.Import)
        return [
            alias
            for alias in statement.names
            if (alias.asname or alias.name.partition(".")[0]) not in self.pristine.given_names
            or (loads and "." in alias.name and not alias.asname)
        ]

    def _owners(self) -> dict[str, int]:
        """The last cell that defines each exercise; else a cell that is meant for it and may have failed to."""
        owners: dict[str, int] = {}
        names_of_cells = [self.defined_names(cell.text) if cell.own else frozenset() for cell in self.cells]
        for name in (*self.pristine.exercises, *self._helpers()):
            positions = [position for position, names in enumerate(names_of_cells) if name in names]
            if name in self.pristine.exercises and (owner := positions[-1:] or self.exercise_cells.get(name)):
                owners[name] = owner[0]
            if len(positions) > 1:
                *others, last = (self.cells[position].label.removeprefix("cell ") for position in positions)
                numbers = f"{', '.join(others[-20:])} and {last}"
                self.notes.append(f"{name} is defined in cells {numbers}; the last of them, cell {last}, counts.")
        return owners

    def _helpers(self) -> list[str]:
        """The functions of the learner's own that are defined twice, and used in another cell; no more than are told."""
        own = [(cell.text, set(_FUNCTION.findall(cell.text))) for cell in self.cells if cell.own]
        counts = Counter(name for _, functions in own for name in functions)
        doubles = {name for name, count in counts.items() if count > 1} - set(self.pristine.exercises)
        uses = (used_names(text) - functions for text, functions in own) if doubles else ()
        return sorted(doubles & set().union(*uses))[:MAX_NOTES]

    def _pass_on_requirements(self) -> None:
        """A cell that uses a name of one that cannot run here cannot run either."""
        spread = any(cell.requires for cell in self.cells)
        while spread:
            cells = [cell for cell in self.cells if cell.requires]
            sources = {name: cell for cell in cells for name in self.defined_names(cell.text)}
            spread = False
            for position, cell in enumerate(self.cells):
                names = sources.keys() & used_names(cell.text) if cell.own and not cell.requires else set()
                if names:
                    source = sources[min(names)]
                    self.cells[position] = replace(cell, requires=source.requires, origin=source.origin)
                    spread = True

    def _absence(self, name: str) -> str:
        if name in self.exercise_cells:
            position, file = self.exercise_cells[name]
            label = self.cells[position].label
            if file:
                advice = "Grading reads the notebook alone: copy the code of that file into the cell."
                return f"{name} is missing: {label} runs `{printable(file)}`. {advice}"
            return f"{name} is missing: {label} should define it and does not."
        if name in self.magics:
            cell = self.magics[name]
            magic = printable(cell.text.split()[0])
            return f"{name} is missing: cell {cell.number} begins with `{magic}`, below which nothing is defined that lasts."
        stub = self.pristine.by_exercise.get(name)
        lines = self.pristine.cells[stub].text.splitlines() if stub is not None else []
        header = next((line.strip() for line in lines if name in line and not line.lstrip().startswith("#")), "")
        return (
            f"{name} is missing: no cell of {printable(self.notebook.file)} defines it"
            f"{header and f'; its cell begins with `{header}`'}."
        )


def _without_comments(text: str) -> str:
    return re.sub(r"#.*|\s+", "", text)

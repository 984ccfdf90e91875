"""The text of the cells that made a learner's live object."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from grader.course.course import Course
from grader.notebook.display import ipython
from grader.notebook.kernel_course import kernel_course
from grader.notebook.reach import code_files
from grader.source.definitions import code_lines, first_line, normalize, parse
from grader.source.dependencies import Dependencies, Effects
from grader.source.magics import without_magics
from grader.source.policy import Sources, tampering_of


class Statement(NamedTuple):
    """A top-level statement of a cell: its text, what it does to names, and how many lines stand above it."""

    text: str
    effects: Effects
    lines_above: int


def sources(name: str, obj: Any, namespace: Mapping[str, Any]) -> Sources | None:
    """The statements that made what `name` now is, in the order in which they ran; None where no text is known.

    They are found as `grader grade` finds them (source/dependencies.py), in the cells that ran: of a name that was bound several
    times only the last binding counts, so that an earlier try with a forbidden call is no offence. What is refused wherever it
    stands is among them, too, but for the lesson's own cells.
    """
    cells = _history(obj, namespace)
    if not cells:
        return None
    lesson_cells = _lesson_cells(kernel_course(), name)
    lesson_texts = {statement.text for cell in lesson_cells for statement in _statements(cell)}
    statements = [statement for cell in cells if normalize(cell) not in lesson_cells for statement in _statements(cell)]
    other = own_name(obj) or ""
    if other.isidentifier() and other != name and not any(name in part.effects.gives for part in statements):
        statements += _statements(f"{name} = {other}")
    dependencies = Dependencies(statement.effects for statement in statements)
    # Positions of what is refused wherever it stands, and is no statement of the lesson's.
    own = [place for place, statement in enumerate(statements) if statement.text not in lesson_texts]
    places = {own[i] for i in tampering_of(tuple(statements[place].text for place in own)).offences}
    # Anything may come from a star.
    places |= {place for place, statement in enumerate(statements) if "*" in statement.effects.imports}
    places |= {binding.position for binding in dependencies.walk(name)}
    # Below empty lines, a statement's lines have the numbers that they have in the cell.
    return Sources(
        tuple("\n" * statements[place].lines_above + statements[place].text for place in sorted(places)),
        kernel_course().given_names,
    )


@cache
def _lesson_cells(course: Course, name: str) -> frozenset[str]:
    """The texts of the lesson's own cells, which are no learner's."""
    cells = course.cells(course.lesson_of(name))
    return frozenset(normalize(cell.text) for cell in cells if cell.role not in ("prose", "exercise"))


def own_name(obj: Any) -> str | None:
    """An object's __name__ where it is a text; objects may raise when they are asked for it."""
    try:
        name = getattr(obj, "__name__", None)
    except Exception:
        return None
    return name if type(name) is str else None


def _history(obj: Any, namespace: Mapping[str, Any]) -> list[str]:
    """The cells that ran as grading reads them, oldest first: IPython's own history, else the file or cell that holds the object's code.

    A cell whose text is known to linecache alone (another front end ran it) comes last.
    """
    manager = getattr(ipython(), "history_manager", None) if "In" in namespace else None  # else no notebook's names
    inputs = list(zip(manager.input_hist_raw, manager.input_hist_parsed)) if manager is not None else []
    history = [_as_graded(*texts) for texts in inputs]
    for filename in code_files(obj):
        text = "".join(linecache.getlines(filename, dict(namespace)))
        if text and text.strip() not in (parsed.strip() for _, parsed in inputs):
            history.append(text)
    return history


@lru_cache(maxsize=512)
def _as_graded(raw: str, parsed: str) -> str:
    """What IPython made of a cell tells of what only it can read, such as lines that were pasted with their prompts."""
    plain = without_magics(raw)
    return plain if parse(plain) else parsed


@lru_cache(maxsize=512)
def _statements(cell: str) -> tuple[Statement, ...]:
    """The top-level statements of a cell."""
    tree, lines = parse(cell), code_lines(cell)
    nodes = tree.body if tree is not None else ()
    return tuple(Statement(_text(node, lines), Effects(node), first_line(node)) for node in nodes)


def _text(node: ast.stmt, lines: list[str]) -> str:
    """The text of a statement, decorators included, and of no other that stands in its lines."""
    first = first_line(node)
    own = lines[first : node.end_lineno]
    own[-1] = own[-1].encode()[: node.end_col_offset].decode()
    if first == node.lineno - 1:
        own[0] = own[0].encode()[node.col_offset :].decode()
    return "\n".join(own)

"""The learner's live object as the judge's candidate, with the text of the cells that made it."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType, MethodType
from typing import Any

from grader.allowed import Sources
from grader.definitions import globals_read
from grader.model import Case, Observation
from grader.worker.observe import observe, same_random_state
from grader.worker.values import Failure

_WRAPS_A_CELL = ("run_cell_magic",)  # what IPython turns `%%time` and its like into


@dataclass(frozen=True, eq=False)
class Live:
    """What the judge asks of a candidate, around an object of this kernel."""

    name: str
    obj: Any
    problem: Failure | None = None
    sources: Sources | None = None

    def observe_all(self, cases: Sequence[Case]) -> Iterator[Observation]:
        with same_random_state():
            yield from (observe(self.obj, case) for case in cases)


@dataclass(frozen=True)
class Statement:
    """A top-level statement.

    binds: names it gives a value; patches: names whose attributes it sets; uses: names it reads.
    """

    text: str
    binds: frozenset[str]
    patches: frozenset[str]
    uses: tuple[str, ...]


def sources(name: str, obj: Any, namespace: Mapping[str, Any]) -> Sources | None:
    """The statements that made what `name` now is, in the order in which they ran; None where no text is known.

    Of a name that was bound several times only the last binding counts, with what was set on it since: an
    earlier try with a forbidden call is no offence. Only names that are read count: a local variable that
    happens to be called like something in another cell does not lead there.
    """
    history = _history(obj, namespace)
    if not history:
        return None
    statements = [statement for cell in history for statement in _statements(cell)]
    kept: set[int] = set()
    waiting, done = [name], set()
    own = own_name(obj)
    if own and own.isidentifier() and own != name and not _binds(statements, name):
        waiting.append(own)
        statements.append(Statement(f"{name} = {own}", frozenset({name}), frozenset(), (own,)))
    while waiting:
        current = waiting.pop()
        if current in done:
            continue
        done.add(current)
        for at in _current(statements, current):
            kept.add(at)
            waiting += statements[at].uses
    return Sources(tuple(statements[at].text for at in sorted(kept)))


def own_name(obj: Any) -> str | None:
    """An object's __name__ where it is a text; objects may raise when they are asked for it."""
    try:
        name = getattr(obj, "__name__", None)
    except Exception:
        return None
    return name if type(name) is str else None


def _binds(statements: Iterable[Statement], name: str) -> bool:
    return any(name in statement.binds for statement in statements)


def _current(statements: list[Statement], name: str) -> list[int]:
    """Positions of the last statement that binds a name and of those that patch it later."""
    found: list[int] = []
    for at, statement in enumerate(statements):
        if name in statement.binds:
            found = [at]
        elif name in statement.patches or "*" in statement.binds:
            found.append(at)
    return found


def _history(obj: Any, namespace: Mapping[str, Any]) -> list[str]:
    """The cells that ran, oldest first: IPython's own history, else the file or cell that holds the object's code.

    A cell whose text is known to linecache alone (another front end ran it) comes last.
    """
    cells = namespace.get("In") if _ipython() is not None else None
    history = [cell for cell in cells if isinstance(cell, str)] if isinstance(cells, list) else []
    for filename in _files(obj):
        text = "".join(linecache.getlines(filename, dict(namespace)))
        if text and text.strip() not in (cell.strip() for cell in history):
            history.append(text)
    return history


def _files(obj: Any) -> list[str]:
    """The files, or cells, that hold the code of a function or of a class's methods."""
    members = vars(obj).values() if issubclass(type(obj), type) else (obj,)
    wrappers = (staticmethod, classmethod, MethodType)
    functions = (member.__func__ if issubclass(type(member), wrappers) else member for member in members)
    return list(dict.fromkeys(one.__code__.co_filename for one in functions if type(one) is FunctionType))


def _ipython() -> Any:
    """The running IPython shell, None elsewhere; never imports IPython."""
    module = sys.modules.get("IPython")
    try:
        return module.get_ipython() if module is not None else None
    except Exception:  # a display environment that is broken counts as none
        return None


@lru_cache(maxsize=512)
def _statements(cell: str) -> tuple[Statement, ...]:
    try:
        tree = ast.parse(cell)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    lines = cell.splitlines()
    made: list[Statement] = []
    for node in tree.body:
        inner = _inner_cell(node)
        if inner is not None:
            made += _statements(inner)
            continue
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        text = "\n".join(lines[first - 1 : node.end_lineno])
        made.append(_statement(node, text))
    return tuple(made)


def _inner_cell(node: ast.stmt) -> str | None:
    """The cell inside `get_ipython().run_cell_magic('time', '', …)`."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") not in _WRAPS_A_CELL or len(call.args) != 3:
        return None
    body = call.args[2]
    return body.value if isinstance(body, ast.Constant) and isinstance(body.value, str) else None


def _statement(node: ast.stmt, text: str) -> Statement:
    binds: set[str] = set()
    patches: set[str] = set()
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            binds.add(part.name)
            waiting += part.decorator_list
            continue
        if isinstance(part, ast.Lambda):
            continue
        if isinstance(part, (ast.Import, ast.ImportFrom)):
            binds |= {alias.asname or alias.name.partition(".")[0] for alias in part.names}
        elif isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
            binds.add(part.id)
        elif isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store):
            patches |= _root(part)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "setattr" and part.args:
            patches |= _root(part.args[0])
        waiting += ast.iter_child_nodes(part)
    return Statement(text, frozenset(binds), frozenset(patches - binds), globals_read(node))


def _root(node: ast.AST) -> set[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()

"""What a name of a learner's reaches: the statements of all cells that made it, and what was put into them since.

Cells run in the order of the notebook, so the last definition of a name counts, and what is read while a cell
runs is what the name meant there.
"""

from __future__ import annotations

import ast
import inspect
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

from grader.definitions import compiled, globals_named, root

# Names of the lessons' given cells, which are no learner's.
GIVEN = {
    "np": "numpy", "F": "torch.nn.functional", "nn": "torch.nn", "torch": "torch", "Tensor": "torch.Tensor", "math": "math",
    "time": "time", "sys": "sys",
}  # fmt: skip
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})  # code of their own before Python 3.12
_SIGNS = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)  # a third of all nodes, without any name
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MOST = 100_000  # steps from statement to statement
IMPORTS = (ast.Import, ast.ImportFrom)


class Statement:
    """A statement at the top level of a cell.

    at: its place among all. gives: names that it binds for certain; may_give: those that it may bind, in a branch or a
    loop; alters: names whose attributes or items it sets; touches: names on which it calls a method; imports: what each
    name that it imports, at whatever depth, stands for; parts: all its nodes; depth: of their nesting.
    """

    def __init__(self, node: ast.stmt, at: int, lines: list[str]) -> None:
        self.node, self.at, self._lines = node, at, lines
        self.gives: set[str] = set()
        self.may_give: set[str] = set()
        self.alters: set[str] = set()
        self.touches: set[str] = set()
        self.imports: dict[str, set[str]] = {}
        if isinstance(node, _DEFINITIONS):
            self.gives.add(node.name)
        elif isinstance(node, IMPORTS):
            self.gives |= imported(node).keys()
        else:
            self._read_running(node)
        self.parts: list[ast.AST] = []
        self.depth, level = 0, [node]
        while level:
            self.depth += 1
            self.parts += level
            level = [child for part in level for child in ast.iter_child_nodes(part) if not isinstance(child, _SIGNS)]
        for part in self.parts:
            if isinstance(part, IMPORTS):
                for name, dotted in imported(part).items():
                    self.imports.setdefault(name, set()).add(dotted)

    def _read_running(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign) or (isinstance(node, ast.AnnAssign) and node.value is not None):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                self.gives |= {part.id for part in parts if isinstance(part, ast.Name)}
        waiting: list[ast.AST] = [node]
        while waiting:
            part = waiting.pop()
            if isinstance(part, _DEFINITIONS):
                self.may_give.add(part.name)
                continue
            if isinstance(part, ast.Lambda):
                continue
            if isinstance(part, IMPORTS):
                self.may_give |= imported(part).keys()
            elif isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
                self.may_give.add(part.id)
            elif isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store):
                self.alters.add(root(part))  # `SelfAttention.forward = helper` is part of SelfAttention
            elif isinstance(part, ast.Call):
                if isinstance(part.func, ast.Attribute):
                    self.touches.add(root(part.func))
                elif isinstance(part.func, ast.Name) and part.func.id == "setattr" and part.args:
                    self.alters.add(root(part.args[0]))
            waiting.extend(ast.iter_child_nodes(part))

    def line(self, node: ast.AST) -> str:
        at = getattr(node, "lineno", 0)
        return self._lines[at - 1].strip() if 0 < at <= len(self._lines) else ""

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All that may name something in order to use it; what only asks, describes or annotates is left out."""
        return list(_used(self.node))

    @cached_property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        """Global names that are read while the statement runs, and those that its functions read when they are called."""
        used = {node.id for node in self.nodes if isinstance(node, ast.Name)}
        now, later = self._globals
        return now & used, later & used

    @cached_property
    def outside(self) -> frozenset[str]:
        """Names that are no local variables here."""
        now, later = self._globals
        return now | later | self.imports.keys()

    @cached_property
    def _globals(self) -> tuple[frozenset[str], frozenset[str]]:
        code = compiled(self.node)
        if code is None:
            return frozenset(), frozenset()
        everything = frozenset(globals_named(code))
        later = frozenset(name for inner in _functions(code) for name in globals_named(inner))
        if not later:
            return everything, later
        return frozenset(_running(code)), later


@dataclass(frozen=True)
class Binding:
    """A statement that a name leads to. name: by which of its names; first: False where it was met before by another."""

    statement: Statement
    name: str
    first: bool


class TooMuch(Exception):
    """The cells' names lead to each other in more ways than are followed."""


class Reached:
    """All statements of a notebook, and which of them a name leads to."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self.statements = list(statements)
        own = {name for one in self.statements for name in (one.gives | one.may_give) - one.imports.keys()}
        self._lives: dict[str, list[list[Statement]]] = {}
        for statement in self.statements:
            for name in statement.gives:
                self._lives.setdefault(name, []).append([statement])
            for name in (statement.may_give | statement.alters | (statement.touches & own)) - statement.gives:
                self._lives.setdefault(name, [[]])[-1].append(statement)

    def last(self, name: str) -> list[Statement]:
        """What made the name's last value: its definition, and what changed that."""
        return self._lives.get(name, [[]])[-1]

    def live(self, name: str, at: int, later: bool = False) -> list[Statement]:
        """What made the value that the name has before the statement number `at`; later: and those that it gets afterwards."""
        lives = self._lives.get(name, [[]])
        first = max(0, bisect_left(lives, at, key=lambda life: life[0].at if life else -1) - 1)
        return [statement for life in (lives[first:] if later else lives[first : first + 1]) for statement in life]

    def walk(self, *names: str, at: int | None = None) -> Iterator[Binding]:
        """Every statement that the names' values are made of, at whatever remove.

        at: the number of the statement that reads the names; by default the last values count.
        """
        yield from self._walk([(name, len(self.statements) if at is None else at, True) for name in names])

    def _walk(self, waiting: list[tuple[str, int, bool]]) -> Iterator[Binding]:
        done: set[tuple[str, int, bool]] = set()
        seen: set[int | tuple[int, str]] = set()
        steps = 0
        while waiting:
            asked = waiting.pop()
            if asked in done:
                continue
            done.add(asked)
            name, at, later = asked
            live = self.live(name, at, later)
            steps += len(live) + 1
            if steps > _MOST:
                raise TooMuch
            for statement in live:
                if (statement.at, name) not in seen:
                    yield Binding(statement, name, statement.at not in seen)
                    seen |= {(statement.at, name), statement.at}
                now, when_called = statement.reads
                waiting += [(read, statement.at, False) for read in now]
                # A function that the answer calls is called at the end, one that ran in a cell there or at any time after it.
                waiting += [(read, max(at, statement.at + 1), True) for read in when_called]


def imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Each name that an import binds, with what it stands for."""
    found = {}
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            found[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
        else:
            top = alias.name.partition(".")[0]
            found[alias.asname or top] = alias.name if alias.asname else top
    return found


def text_of(node: ast.AST | None) -> str | None:
    """The text that an expression of constants makes, None where only running it tells."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None or right is None else left + right
    return None


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The functions inside code, outermost ones; a class's body runs where it stands and is none."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED and constant.co_name not in _COMPREHENSIONS:
                yield constant
            else:
                yield from _functions(constant)


def _running(code: CodeType) -> Iterator[str]:
    """The global names that are read while code runs, those of functions that it only makes left out."""
    bare = code.replace(co_consts=tuple(None if isinstance(c, CodeType) else c for c in code.co_consts))
    yield from globals_named(bare)
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and not (
            constant.co_flags & inspect.CO_OPTIMIZED and constant.co_name not in _COMPREHENSIONS
        ):
            yield from _running(constant)


def _used(statement: ast.AST) -> Iterator[ast.AST]:
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and not _only_asks(node, name, child):
                    waiting.append(child)


def _only_asks(parent: ast.AST, field: str, child: ast.AST) -> bool:
    """True for a name that is compared or asked about and not handed on: isinstance(x, nn.Linear), f.__doc__, a docstring."""
    if isinstance(parent, ast.Expr):
        return isinstance(child, ast.Constant)
    if isinstance(parent, ast.MatchClass):
        return field == "cls"
    plain = child.elts if isinstance(child, ast.Tuple) else [child]
    if not all(isinstance(part, ast.Attribute) and root(part) for part in plain):
        return False
    if isinstance(parent, ast.Compare):
        return all(isinstance(operator, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) for operator in parent.ops)
    if isinstance(parent, ast.Call) and field == "args" and isinstance(parent.func, ast.Name):
        return parent.func.id in ("isinstance", "issubclass") and child is parent.args[-1]
    return isinstance(parent, ast.Attribute) and parent.attr in ("__doc__", "__name__", "generate_square_subsequent_mask")

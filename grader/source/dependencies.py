"""What a name of a learner's reaches: the statements of all cells that made it, and what was put into them since.

Cells run in the order of the notebook, so the last definition of a name counts, and what is read while a cell
runs is what the name meant there.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, NamedTuple

from grader.source.definitions import root
from grader.source.scopes import DEFINITIONS, IMPORTS, INNER, imported, names_of, nodes_outside

_BINDING = (
    *DEFINITIONS,
    *IMPORTS,
    ast.Assign,
    ast.AnnAssign,
)  # whenever they run to their end; an annotation alone does not
_ASKING = (ast.Expr, ast.MatchClass, ast.Compare, ast.Call, ast.Attribute)  # what _only_asks knows
_MOST = 200_000  # steps from statement to statement, of one walk; some tenths of a second
_WALKS = 10  # so many walks of that length in one notebook


class Effects:
    """What a top-level statement does to names and takes from them; the tree is not kept.

    gives: names that it binds for certain; may_give: those that it may bind, in a branch, a
    loop or a function that it defines; alters: names whose attributes or items it sets or deletes; touches: names on which it
    calls a method; imports: what each name that it imports, at whatever depth, stands for; reads: global names that are
    read while it runs, and those that its functions read when they are called; outside: names that are no local
    variables here.
    """

    def __init__(self, node: ast.stmt) -> None:
        names = names_of(node)
        parts = list(_evaluated_nodes(node))
        used = {part.id for part in parts if isinstance(part, ast.Name)}
        self.reads = names.now & used, names.later & used
        certain = isinstance(node, _BINDING) and getattr(node, "value", node) is not None
        walrus = {part.target.id for part in parts if isinstance(part, ast.NamedExpr)}
        self.gives = set(names.binds - walrus) if certain else set()
        self.may_give = set(names.binds | names.deletes | names.sets) - self.gives
        self.alters: set[str] = set()
        self.touches: set[str] = set()
        self.imports: dict[str, set[str]] = {}
        for part in parts:
            if isinstance(part, IMPORTS):
                for name, dotted in imported(part).items():
                    self.imports.setdefault(name, set()).add(dotted)
        if not isinstance(node, (*DEFINITIONS, *IMPORTS)):
            self._read_running(node)
        self.outside = names.now | names.later | self.imports.keys()

    def _read_running(self, node: ast.stmt) -> None:
        for part in nodes_outside([node], *INNER):
            if isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, (ast.Store, ast.Del)):
                self.alters.add(root(part))  # `SelfAttention.forward = helper` is part of SelfAttention
            elif isinstance(part, ast.Call):
                if isinstance(part.func, ast.Attribute):
                    self.touches.add(root(part.func))
                elif isinstance(part.func, ast.Name) and part.func.id in ("setattr", "delattr") and part.args:
                    self.alters.add(root(part.args[0]))


class Statement(Effects):
    """A statement at the top level of a cell. parts: all its nodes; depth: of their nesting."""

    def __init__(self, node: ast.stmt, lines: list[str]) -> None:
        super().__init__(node)
        self.node, self._lines = node, lines
        self.parts: list[ast.AST] = []
        self.depth = 0
        level: list[ast.AST] = [node]
        while level:
            self.depth += 1
            self.parts += level
            level = [child for part in level for child in ast.iter_child_nodes(part)]

    def line(self, node: ast.AST) -> str:
        at = getattr(node, "lineno", 0)
        return self._lines[at - 1].strip() if 0 < at <= len(self._lines) else ""

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All that may name something in order to use it; what only asks, describes or annotates is left out."""
        return list(_evaluated_nodes(self.node))


class Binding(NamedTuple):
    """A statement that a name leads to. at: its place; name: by which of its names; first: False where it was met before by another."""

    at: int
    statement: Any  # a Statement, or what else the Dependencies was made of
    name: str
    first: bool


class TooMuch(Exception):
    """The cells' names lead to each other in more ways than are followed."""


class Dependencies:
    """All statements of a notebook, and which of them a name leads to; each is known by its place among them.

    lives: of each value of a name the places of what made it: its definition, and what may have changed it before the next.
    Raises: TooMuch from its walks, where one of them, or all together, take more steps than are followed.
    """

    def __init__(self, statements: Iterable[Effects]) -> None:
        self.statements: list[Any] = list(statements)
        self.left = _WALKS * _MOST
        own = {name for one in self.statements for name in (one.gives | one.may_give) - one.imports.keys()}
        self.lives: dict[str, list[list[int]]] = {}
        for at, statement in enumerate(self.statements):
            for name in statement.gives:
                self.lives.setdefault(name, []).append([])
            changed = statement.may_give | statement.alters | (statement.touches & own)
            for name in statement.gives | changed:
                self.lives.setdefault(name, [[]])[-1].append(at)
        self._begin = {name: [life[0] for life in lives] for name, lives in self.lives.items()}

    def last(self, name: str) -> list[Any]:
        """What made the name's last value: its definition, and what changed that."""
        return [self.statements[at] for at in self.lives.get(name, [[]])[-1]]

    def walk(self, name: str) -> Iterator[Binding]:
        """Every statement that the name's last value is made of, at whatever remove."""
        return _Walk(self, name).bindings()

    def alive(self, name: str, at: int) -> int:
        """Which of a name's values it has before the statement number `at`; the first where it has none yet."""
        return max(0, bisect_left(self._begin[name], at) - 1)


class _Walk:
    """One walk from a name to all that it is made of.

    A name that is read while a statement runs means what it meant there. What a function reads it reads when it is
    called: at the end where the answer calls it, and in a cell or at any time after it where the cell did. The earliest
    time counts, since it includes the later ones; to meet it first, what ran in cells goes before what is called.
    """

    def __init__(self, dependencies: Dependencies, name: str) -> None:
        self.dependencies = dependencies
        self.left = _MOST
        self.read: list[tuple[str, int]] = []  # names that a statement read while it ran, and its number
        self.called = [(len(dependencies.statements), name)]  # a heap: from when on a function may read which name
        self.seen: set[int] = set()
        self.visited: dict[tuple[str, int], int] = {}  # a name's value, and from when on its functions were called
        self.from_on: dict[str, int] = {}  # since when all values of a name have been visited
        self.calls: dict[int, int] = {}  # a statement's functions, and since when they are called

    def bindings(self) -> Iterator[Binding]:
        while self.read or self.called:
            self._spend(1)
            if self.read:
                name, at = self.read.pop()
                if name in self.dependencies.lives:
                    yield from self._visit(name, self.dependencies.alive(name, at), at)
                continue
            at, name = heappop(self.called)
            if name not in self.dependencies.lives or self.from_on.get(name, at + 1) <= at:
                continue
            self.from_on[name] = at
            for number in range(self.dependencies.alive(name, at), len(self.dependencies.lives[name])):
                yield from self._visit(name, number, at)

    def _spend(self, steps: int) -> None:
        self.left -= steps
        self.dependencies.left -= steps
        if min(self.left, self.dependencies.left) < 0:
            raise TooMuch

    def _visit(self, name: str, number: int, at: int) -> Iterator[Binding]:
        """One value of a name, whose functions are called at that time or later."""
        life, before = self.dependencies.lives[name][number], self.visited.get((name, number))
        self._spend(1)
        if before is not None and before <= at:
            return
        self.visited[name, number] = at
        self._spend(len(life))
        for here in life:
            statement = self.dependencies.statements[here]
            if before is None:
                first = here not in self.seen
                self.seen.add(here)
                yield Binding(here, statement, name, first)
                if first:
                    self.read += [(read, here) for read in sorted(statement.reads[0])]
            when = max(at, here + 1)
            if statement.reads[1] and when < self.calls.get(here, when + 1):
                self.calls[here] = when
                for read in statement.reads[1]:
                    heappush(self.called, (when, read))


def text_of(node: ast.AST | None) -> str | None:
    """The text that an expression of constants makes, None where only running it tells."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        right = text_of(node.right)
        left = None if right is None else text_of(node.left)  # of a sum the left part is the long one
        return None if left is None or right is None else left + right
    return None


def _evaluated_nodes(statement: ast.AST) -> Iterator[ast.AST]:
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            nodes = (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.AST))
            waiting += [part for part in nodes if not (isinstance(node, _ASKING) and _only_asks(node, name, part))]


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
    names = ("__doc__", "__name__", "generate_square_subsequent_mask")
    return isinstance(parent, ast.Attribute) and parent.attr in names

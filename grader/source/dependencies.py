"""What a name of a learner's reaches: the statements of all cells that made it, and what was put into them since.

Cells run in the order of the notebook, so the last definition of a name counts, and what is read while a cell
runs is what the name meant there.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from grader.source.definitions import root
from grader.source.scopes import DEFINITIONS, IMPORTS, INNER, imports_of, names_of, nodes_outside

# These bind whenever they run to their end; an annotation alone does not.
_BINDERS = (*DEFINITIONS, *IMPORTS, ast.Assign, ast.AnnAssign)
_INSPECTIONS = (ast.Expr, ast.MatchClass, ast.Compare, ast.Call, ast.Attribute)  # what _inspects knows


class Effects:
    """What a top-level statement does to names and takes from them; the tree is not kept.

    gives: names that it binds for certain; may_give: those that it may bind, in a branch, a
    loop or a function that it defines; alters: names whose attributes or items it sets or deletes; touches: names on which it
    calls a method; imports: what each name that it imports, at whatever depth, stands for; reads: global names that are
    read while it runs, and those that its functions read when they are called; globals: names that are no local
    variables here.
    """

    def __init__(self, node: ast.stmt) -> None:
        names = names_of(node)
        parts = list(_evaluated_nodes(node))
        evaluated_names = {part.id for part in parts if isinstance(part, ast.Name)}
        self.reads = names.now & evaluated_names, names.later & evaluated_names
        is_certain = isinstance(node, _BINDERS) and getattr(node, "value", node) is not None
        walrus = {part.target.id for part in parts if isinstance(part, ast.NamedExpr)}
        self.gives = set(names.binds - walrus) if is_certain else set()
        self.may_give = set(names.binds | names.deletes | names.sets) - self.gives
        self.alters: set[str] = set()
        self.touches: set[str] = set()
        self.imports: dict[str, set[str]] = {}
        for part in parts:
            if isinstance(part, IMPORTS):
                for name, dotted in imports_of(part).items():
                    self.imports.setdefault(name, set()).add(dotted)
        if not isinstance(node, (*DEFINITIONS, *IMPORTS)):
            self._read_changes(node)
        self.globals = names.now | names.later | self.imports.keys()

    def _read_changes(self, node: ast.stmt) -> None:
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
        number = getattr(node, "lineno", 0)
        return self._lines[number - 1].strip() if 0 < number <= len(self._lines) else ""

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All that may name something in order to use it; what only asks, describes or annotates is left out."""
        return list(_evaluated_nodes(self.node))


class Binding(NamedTuple):
    """A statement that a name leads to. position: its place; name: by which of its names; first: False where another led there before."""

    position: int
    statement: Any  # a Statement, or what else the Dependencies was made of
    name: str
    first: bool


class Dependencies:
    """All statements of a notebook, and which of them a name leads to; each is known by its place among them.

    lives: of each value of a name the places of what made it: its definition, and what may have changed it before the next.
    """

    def __init__(self, statements: Iterable[Effects]) -> None:
        self.statements: list[Any] = list(statements)
        own = {name for effect in self.statements for name in (effect.gives | effect.may_give) - effect.imports.keys()}
        self.lives: dict[str, list[list[int]]] = {}
        for position, statement in enumerate(self.statements):
            for name in statement.gives:
                self.lives.setdefault(name, []).append([])
            changes = statement.may_give | statement.alters | (statement.touches & own)
            for name in statement.gives | changes:
                self.lives.setdefault(name, [[]])[-1].append(position)

    def last_statements(self, name: str) -> list[Any]:
        """What made the name's last value: its definition, and what changed that."""
        return [self.statements[position] for position in self.lives.get(name, [[]])[-1]]

    def walk(self, name: str) -> Iterator[Binding]:
        """Every statement that the name's last value is made of, at whatever remove.

        What is read while a statement runs means what it meant there; what a function reads when it is called, what it means at
        the end. What it meant at calls before that shows while it runs.
        """
        stack, visited_lives, visited = [(name, len(self.statements))], set[tuple[str, int]](), set[int]()
        while stack:
            name, end = stack.pop()
            lives = self.lives.get(name, [[]])
            index = max(0, bisect_left(lives, [end]) - 1)  # the first where it has none yet
            if (name, index) in visited_lives:
                continue
            visited_lives.add((name, index))
            for position in lives[index]:
                statement = self.statements[position]
                yield Binding(position, statement, name, position not in visited)
                if position not in visited:
                    visited.add(position)
                    now, later = map(sorted, statement.reads)
                    stack += [(name, len(self.statements)) for name in later] + [(name, position) for name in now]


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
    stack = [statement]
    while stack:
        node = stack.pop()
        yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            nodes = (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.AST))
            stack += [part for part in nodes if not (isinstance(node, _INSPECTIONS) and _inspects(node, name, part))]


def _inspects(parent: ast.AST, field: str, child: ast.AST) -> bool:
    """True for a name that is compared or asked about and not handed on: isinstance(x, nn.Linear), f.__doc__, a docstring."""
    if isinstance(parent, ast.Expr):
        return isinstance(child, ast.Constant)
    if isinstance(parent, ast.MatchClass):
        return field == "cls"
    operands = child.elts if isinstance(child, ast.Tuple) else [child]
    if not all(isinstance(part, ast.Attribute) and root(part) for part in operands):
        return False
    if isinstance(parent, ast.Compare):
        return all(isinstance(operator, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) for operator in parent.ops)
    if isinstance(parent, ast.Call) and field == "args" and isinstance(parent.func, ast.Name):
        return parent.func.id in ("isinstance", "issubclass") and child is parent.args[-1]
    names = ("__doc__", "__name__", "generate_square_subsequent_mask")
    return isinstance(parent, ast.Attribute) and parent.attr in names

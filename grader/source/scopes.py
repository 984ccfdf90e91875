"""Which names a statement binds and reads in its notebook, by Python's rules of scope, from the syntax tree alone.

Nothing is compiled: the compiler copies `finally` blocks, and with them nested ones, so that a short cell can take all
memory. One walk over the tree, without recursion, in a time in proportion to its size.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
INNER = (*DEFINITIONS, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Names:
    """Global names of one statement at the top level of a cell.

    binds: those that it binds while it runs, in a branch or a loop, too. deletes: those that it deletes. sets: those
    that its functions bind when they are called. now: those that are read while it runs. later: those that its functions
    read when they are called.
    """

    binds: frozenset[str]
    deletes: frozenset[str]
    sets: frozenset[str]
    now: frozenset[str]
    later: frozenset[str]


@dataclass(slots=True, eq=False)
class _Scope:
    """kind: 'module', 'class', 'function', 'comprehension' or 'types' (of type parameters).

    later: whether what it reads is read when a function is called. reads: (name, whether later), of what is inside it, too;
    own_reads: those that it reads itself, of a class.
    """

    kind: str
    outer: _Scope | None
    later: bool
    binds: set[str] = field(default_factory=set)
    reads: set[tuple[str, bool]] = field(default_factory=set)
    own_reads: set[tuple[str, bool]] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)  # declared as such
    nonlocals: set[str] = field(default_factory=set)


def nodes_outside(roots: Iterable[ast.AST], *kinds: type[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of trees, the last first, without those inside a node of these kinds, which itself is among them."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, kinds):
            stack += ast.iter_child_nodes(node)


def names_of(statement: ast.AST) -> Names:
    """The names of one top-level statement."""
    return _ScopeVisitor(statement).names()


def bound_in_class(node: ast.ClassDef) -> set[str]:
    """Names that a class's own body binds: its methods, attributes and fields."""
    names: set[str] = set()
    for part in nodes_outside(node.body, *INNER, *_COMPREHENSIONS):
        if isinstance(part, DEFINITIONS):
            names.add(part.name)
        elif isinstance(part, IMPORTS):
            names |= imports_of(part).keys()
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
    return names


def imports_of(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Each name that an import binds, with what it stands for."""
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name: f"{node.module or ''}.{alias.name}" for alias in node.names}
    tops = ((alias, alias.name.partition(".")[0]) for alias in node.names)
    return {alias.asname or top: alias.name if alias.asname else top for alias, top in tops}


class _ScopeVisitor:
    def __init__(self, statement: ast.AST) -> None:
        self.module = _Scope("module", None, False)
        self.deletes: set[str] = set()
        self.scopes = [self.module]  # an outer one before those inside it
        self.stack: list[tuple[ast.AST, _Scope]] = [(statement, self.module)]
        while self.stack:
            node, scope = self.stack.pop()
            getattr(self, f"visit_{type(node).__name__}", self._push_children)(node, scope)

    def names(self) -> Names:
        reads, sets = self.module.reads, set[str]()
        for scope in reversed(self.scopes[1:]):
            for name in scope.globals & scope.binds:
                (sets if scope.later else self.module.binds).add(name)
            # A name that a class has not bound yet is looked for in the notebook alone.
            reads |= {read for read in scope.own_reads if read[0] in scope.binds}
            for read in scope.reads:
                outer = self._next_scope(scope, read[0])
                if outer is not None:
                    outer.reads.add(read)
        now = frozenset(name for name, is_later in reads if not is_later)
        later = frozenset(name for name, is_later in reads if is_later)
        return Names(frozenset(self.module.binds), frozenset(self.deletes), frozenset(sets), now, later)

    def _next_scope(self, scope: _Scope, name: str) -> _Scope | None:
        """Where a name that is read in a scope is looked for next; None where it is the scope's own."""
        if name in scope.globals:
            return self.module
        is_own = name in scope.binds and name not in scope.nonlocals
        # Functions inside a class do not see its names.
        return None if is_own and scope.kind != "class" else scope.outer

    def _new(self, kind: str, outer: _Scope) -> _Scope:
        self.scopes.append(_Scope(kind, outer, kind == "function" or outer.later))
        return self.scopes[-1]

    def _push_children(self, node: ast.AST, scope: _Scope) -> None:
        self._push(ast.iter_child_nodes(node), scope)

    def _push(self, nodes: Iterable[ast.AST | None], scope: _Scope) -> None:
        self.stack += [(node, scope) for node in nodes if node is not None]

    def _read(self, name: str, scope: _Scope) -> None:
        scope.reads.add((name, scope.later))
        if scope.kind == "class":
            scope.own_reads.add((name, scope.later))

    def visit_Name(self, node: ast.Name, scope: _Scope) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(node.id, scope)
        elif isinstance(node.ctx, ast.Del) and scope is self.module:
            self.deletes.add(node.id)
        else:
            scope.binds.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign, scope: _Scope) -> None:
        if isinstance(node.target, ast.Name):
            self._read(node.target.id, scope)
        self._push_children(node, scope)

    def visit_NamedExpr(self, node: ast.NamedExpr, scope: _Scope) -> None:
        owner = scope
        while owner.kind == "comprehension":
            owner = owner.outer  # type: ignore[assignment]
        owner.binds.add(node.target.id)
        self._push([node.value], scope)

    def visit_Import(self, node: ast.Import | ast.ImportFrom, scope: _Scope) -> None:
        scope.binds |= imports_of(node).keys()

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: Any, scope: _Scope) -> None:
        """`except … as name`, and what a pattern captures."""
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            scope.binds.add(name)
        self._push_children(node, scope)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = visit_ExceptHandler

    def visit_Global(self, node: ast.Global, scope: _Scope) -> None:
        scope.globals |= set(node.names) if scope is not self.module else set()

    def visit_Nonlocal(self, node: ast.Nonlocal, scope: _Scope) -> None:
        scope.nonlocals |= set(node.names)

    def _type_scope(self, node: Any, scope: _Scope) -> _Scope:
        """The scope of type parameters, where a definition has some (Python 3.12)."""
        parameters = getattr(node, "type_params", ())
        if not parameters:
            return scope
        types = self._new("types", scope)
        types.binds |= {parameter.name for parameter in parameters}
        self._push(parameters, types)
        return types

    def visit_FunctionDef(self, node: Any, scope: _Scope) -> None:
        outer = scope
        if not isinstance(node, ast.Lambda):
            scope.binds.add(node.name)
            self._push(node.decorator_list, scope)
            outer = self._type_scope(node, scope)
            self._push([node.returns], outer)
        self._push([node.args], outer)
        inner = self._new("function", outer)
        inner.binds |= {part.arg for part in nodes_outside([node.args], ast.Lambda) if isinstance(part, ast.arg)}
        self._push(node.body if isinstance(node.body, list) else [node.body], inner)

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef, scope: _Scope) -> None:
        scope.binds.add(node.name)
        self._push(node.decorator_list, scope)
        outer = self._type_scope(node, scope)
        self._push([*node.bases, *node.keywords], outer)
        self._push(node.body, self._new("class", outer))

    def visit_TypeAlias(self, node: Any, scope: _Scope) -> None:
        self._push([node.name], scope)
        self._push([node.value], self._type_scope(node, scope))

    def visit_ListComp(self, node: Any, scope: _Scope) -> None:
        inner = self._new("comprehension", scope)
        first = node.generators[0]
        self._push([first.iter], scope)
        self._push([first.target, *first.ifs, *node.generators[1:]], inner)
        self._push([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], inner)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

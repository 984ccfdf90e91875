"""What a text in a learner's code can be, as far as reading tells: `f"w_{x}"` begins with `w_`, whatever x is.

A text is told as a pattern in which GAP stands for any characters. A name is looked up in its function, then around it,
and every value that it gets there counts; a parameter has what the notebook's calls of its function hand over.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

GAP = "\0"
UNKNOWN = frozenset({GAP})
_MOST = 64  # patterns of one text
_DEEPEST = 12  # names that lead to names
_TAKEN = -2  # in a path: an item by its key or number
_STEPS = 100_000  # of all readings of a notebook
_SAME_ITEMS = frozenset({"sorted", "list", "tuple", "set", "reversed", "iter"})
_PARAMETER_NAMES = frozenset({"named_parameters", "named_buffers", "named_modules", "named_children", "state_dict"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_PLACEHOLDER = re.compile(r"\{[^{}]*\}|%[-#0 +]*[\d.*]*[a-zA-Z]")


@dataclass
class _Scope:
    around: _Scope | None
    bound: dict[str, list[_Value]] = field(default_factory=dict)

    def find(self, name: str) -> list[_Value] | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.bound:
                return scope.bound[name]
            scope = scope.around
        return None


@dataclass(frozen=True)
class _Value:
    """What a name is bound to: node in its scope, at `path` inside it; item: to each of node's items in turn."""

    node: ast.AST | None
    scope: _Scope
    path: tuple[int, ...] = ()
    item: bool = False
    parameter: tuple[str, int, str] | None = None  # of a function, by its name, place and own name


class Spelled:
    """Reads the texts of a notebook's statements."""

    def __init__(self, statements: Iterable[ast.stmt]) -> None:
        self._top = _Scope(None)
        self._scopes: dict[int, _Scope] = {}
        self._calls: dict[str, list[ast.Call]] = {}
        self._steps = 0
        waiting: list[tuple[ast.AST, _Scope]] = [(statement, self._top) for statement in statements]
        while waiting:
            node, scope = waiting.pop()
            if isinstance(node, _FUNCTIONS):
                scope = self._function(node, scope)
            elif isinstance(node, ast.Call):
                self._scopes[id(node)] = scope
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                self._calls.setdefault(name, []).append(node)
            elif isinstance(node, ast.Subscript):
                self._scopes[id(node)] = scope
            self._bind(node, scope)
            waiting.extend((child, scope) for child in ast.iter_child_nodes(node))

    def texts(self, node: ast.AST, at: ast.AST) -> frozenset[str]:
        """The patterns that an expression's text fits. at: the call or subscript in which it stands."""
        return self._texts(node, self._scopes.get(id(at), self._top), _DEEPEST)

    def _function(self, node: ast.AST, around: _Scope) -> _Scope:
        scope, name, args = _Scope(around), getattr(node, "name", ""), node.args
        for i, arg in enumerate([*args.posonlyargs, *args.args, *args.kwonlyargs]):
            scope.bound[arg.arg] = [_Value(None, around, parameter=(name, i, arg.arg))]
        for default in (*args.defaults, *(one for one in args.kw_defaults if one is not None)):
            if isinstance(default, ast.Constant) and not isinstance(default.value, str):
                continue
            for values in scope.bound.values():  # of whichever: too much rather than too little
                values.append(_Value(default, around))
        for arg in (args.vararg, args.kwarg):
            if arg is not None:
                scope.bound[arg.arg] = [_Value(None, around)]
        return scope

    def _bind(self, node: ast.AST, scope: _Scope) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._target(target, node.value, scope, False)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            self._target(node.target, node.value, scope, False)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self._target(node.target, node.iter, scope, True)
        elif isinstance(node, ast.AugAssign):
            self._target(node.target, None, scope, False)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._target(node.optional_vars, None, scope, False)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            for name in node.names:
                self._top.bound.setdefault(name, []).append(_Value(None, scope))

    def _target(self, target: ast.AST, value: ast.AST | None, scope: _Scope, item: bool) -> None:
        waiting: list[tuple[ast.AST, tuple[int, ...]]] = [(target, ())]
        while waiting:
            part, path = waiting.pop()
            if isinstance(part, (ast.Tuple, ast.List)):
                waiting += [(inner, (*path, i)) for i, inner in enumerate(part.elts)]
            elif isinstance(part, ast.Name):
                scope.bound.setdefault(part.id, []).append(_Value(value, scope, path, item))
            elif isinstance(part, ast.Starred):
                waiting.append((part.value, (*path, -1)))

    def _texts(self, node: ast.AST | None, scope: _Scope, room: int) -> frozenset[str]:
        self._steps += 1
        if room <= 0 or self._steps > _STEPS:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            return frozenset({node.value if isinstance(node.value, str) else GAP})
        if isinstance(node, ast.JoinedStr):
            return self._joined(node.values, scope, room)
        if isinstance(node, ast.FormattedValue):
            return (
                self._texts(node.value, scope, room - 1)
                if node.format_spec is None and node.conversion == -1
                else UNKNOWN
            )
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._joined([node.left, node.right], scope, room)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return _gapped(self._texts(node.left, scope, room - 1))
        if isinstance(node, ast.IfExp):
            return _some(self._texts(node.body, scope, room - 1) | self._texts(node.orelse, scope, room - 1))
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
            return self._items(node.value, (_TAKEN,), scope, room - 1)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            return _gapped(self._texts(node.func.value, scope, room - 1))
        if isinstance(node, ast.Name):
            return self._named(node.id, scope, room - 1)
        return UNKNOWN

    def _joined(self, parts: Sequence[ast.AST], scope: _Scope, room: int) -> frozenset[str]:
        made = frozenset({""})
        for part in parts:
            made = _some(frozenset(a + b for a in made for b in self._texts(part, scope, room - 1) or UNKNOWN))
        return made

    def _named(self, name: str, scope: _Scope, room: int) -> frozenset[str]:
        found: set[str] = set()
        for value in scope.find(name) or [_Value(None, scope)]:
            if value.parameter is not None:
                found |= self._handed(value.parameter, room)
            elif value.node is None:
                found.add(GAP)
            elif value.item or value.path:
                inner = self._items if value.item else self._at
                found |= inner(value.node, value.path, value.scope, room)
            else:
                found |= self._texts(value.node, value.scope, room)
        return _some(frozenset(found))

    def _handed(self, parameter: tuple[str, int, str], room: int) -> frozenset[str]:
        """What the notebook's calls of a function hand over for a parameter."""
        function, place, name = parameter
        calls = self._calls.get(function, []) if function else []
        found: set[str] = set() if calls and room else {GAP}
        for call in calls[:_MOST] if room else ():
            given = [keyword.value for keyword in call.keywords if keyword.arg == name]
            at = place - isinstance(call.func, ast.Attribute)  # a method gets `self` unasked
            if not given and 0 <= at < len(call.args) and not any(isinstance(arg, ast.Starred) for arg in call.args):
                given = [call.args[at]]
            elif not given and (len(call.args) > at or any(keyword.arg is None for keyword in call.keywords)):
                found.add(GAP)
            for one in given:
                found |= self._texts(one, self._scopes[id(call)], room - 1)
        return _some(frozenset(found)) if len(calls) <= _MOST else UNKNOWN

    def _items(self, node: ast.AST, path: tuple[int, ...], scope: _Scope, room: int) -> frozenset[str]:
        """What the items of an expression are, or what lies in each of them at `path`."""
        self._steps += 1
        if room <= 0 or self._steps > _STEPS:
            return UNKNOWN
        if isinstance(node, ast.Dict):
            parts = node.values if path in ((1,), (_TAKEN,)) else node.keys
            return (
                _some(frozenset().union(*(self._texts(part, scope, room - 1) for part in parts)))
                if len(path) < 2
                else UNKNOWN
            )
        path = path[1:] if path[:1] == (_TAKEN,) and not isinstance(node, ast.Name) else path
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return _some(frozenset().union(*(self._at(inner, path, scope, room - 1) for inner in node.elts)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not path:
            return _some(frozenset(node.value))
        if isinstance(node, ast.Name):
            values = scope.find(node.id) or []
            if not values or any(value.node is None or value.item or value.path for value in values):
                return UNKNOWN
            return _some(frozenset().union(*(self._items(value.node, path, value.scope, room - 1) for value in values)))
        return self._items_of_call(node, path, scope, room) if isinstance(node, ast.Call) else UNKNOWN

    def _items_of_call(self, node: ast.Call, path: tuple[int, ...], scope: _Scope, room: int) -> frozenset[str]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name == "zip" and path and 0 <= path[0] < len(node.args):
            return self._items(node.args[path[0]], path[1:], scope, room - 1)
        if name == "enumerate" and path[:1] == (1,) and node.args:
            return self._items(node.args[0], path[1:], scope, room - 1)
        if name in _SAME_ITEMS and len(node.args) == 1:
            return self._items(node.args[0], path, scope, room - 1)
        if method in _PARAMETER_NAMES and path in ((), (0,)):
            return frozenset()  # names of parameters and of layers
        if (method == "items" and path in ((0,), (1,))) or (method in ("keys", "values") and not path):
            return self._items(node.func.value, (1,) if method == "values" else path or (0,), scope, room - 1)
        if (
            method == "split"
            and not path
            and isinstance(node.func.value, ast.Constant)
            and isinstance(node.func.value.value, str)
        ):
            splitting = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            whole = not node.args or isinstance(splitting, str)
            return _some(frozenset(node.func.value.value.split(splitting or None))) if whole else UNKNOWN
        return UNKNOWN

    def _at(self, node: ast.AST, path: tuple[int, ...], scope: _Scope, room: int) -> frozenset[str]:
        for step in path:
            if not isinstance(node, (ast.Tuple, ast.List)) or not 0 <= step < len(node.elts):
                return UNKNOWN
            node = node.elts[step]
        return self._texts(node, scope, room - 1)


def fits(pattern: str, names: Iterable[str]) -> str:
    """The first of the names that a text of this pattern may be, '' for none."""
    if GAP not in pattern:
        return pattern if pattern in names else ""
    first, *_, last = parts = pattern.split(GAP)
    for name in names:
        if name.startswith(first) and name.endswith(last) and len(name) >= len(first) + len(last):
            at = len(first)
            for part in parts[1:-1]:
                at = name.find(part, at) + len(part) if name.find(part, at) >= 0 else len(name) + 1
            if at <= len(name) - len(last):
                return name
    return ""


def _some(found: frozenset[str]) -> frozenset[str]:
    return found if len(found) <= _MOST else UNKNOWN


def _gapped(texts: frozenset[str]) -> frozenset[str]:
    """Texts whose placeholders are filled in later."""
    return frozenset(_PLACEHOLDER.sub(GAP, text) for text in texts)

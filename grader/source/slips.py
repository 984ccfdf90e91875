"""Reads the code of one exercise for what beginners most often let slip: facts of the source, each with its line.

A fact is no verdict: judging/rules.py says which of them explains what was observed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from grader.source.definitions import called_name, code_lines, dotted_name, parse
from grader.source.scopes import DEFINITIONS, INNER, imports_of, names_of, nodes_outside

MAX_SLIPS = 40  # of one exercise
_SHARED_NAMES = {"abs", "all", "any", "bool", "max", "min", "pow", "round", "sum"}
STARS = {  # which of Python's own names `from … import *` gives another meaning
    "math": {"pow"},
    "numpy": _SHARED_NAMES | {"divmod"},
    "torch": _SHARED_NAMES | {"complex", "float", "int", "range"},
}
_CONTAINERS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
_INTROSPECTION = {"locals", "vars", "eval", "exec"}  # these may read a parameter without its name
_REDUCTIONS = {"sum", "max", "min", "amax", "amin", "mean", "logsumexp", "norm"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Slip(NamedTuple):
    """A fact about a learner's code.

    kind: 'no return', 'print' (no return, and what is worked out is printed), 'return in loop' (the loop ends in its first round),
          'unused' (a parameter is read nowhere), 'caret' (`^` between values), 'assert', 'input' (`input()` is called),
          'numpy' (a NumPy function is called), 'layer in forward' (a layer is made in each call), 'loose layers' (layers in a plain
          list, tuple or dict), 'reduced' (a sum, maximum or mean along an axis that is not kept; name: what it is bound to, ''
          where it is calculated with at once), 'overwrites' (something is changed in place), 'in place' (a parameter is, by `+=` or
          its like), 'left raise' (the stub's `raise` among other statements; name: of what, as in 'Class.method'),
          'calls' (another exercise; name: which), 'rebound' (one of Python's own names that a cell has given another meaning;
          name: which, other: the first line of what did).
    line, number: the learner's line and its number in the cell. name: the parameter, the function or the layer.
    """

    kind: str
    line: str = ""
    number: int = 0
    name: str = ""
    other: str = ""


def slips(name: str, cells: Sequence[str], exercises: Collection[str] = ()) -> tuple[Slip, ...]:
    """The facts about the last definition of that name, a function's or a class's; () where there is none that can be read.

    exercises: names of which it is told that they are called.
    """
    for cell in reversed(cells):
        for node in reversed(_statements(cell, name)):
            if isinstance(node, DEFINITIONS) and node.name == name:
                reader = _SlipReader(code_lines(cell), cells, frozenset(exercises) - {name})
                return tuple(reader.slips_of(node))[:MAX_SLIPS]
    return ()


class _SlipReader:
    """One definition, beside the text of its cell."""

    def __init__(self, lines: Sequence[str], cells: Sequence[str], exercises: frozenset[str]) -> None:
        self._lines, self._cells = lines, cells
        self._rebinding = cache(self._last_rebinding)
        self._exercises = exercises
        self._numpy = {"np", "numpy"} | {
            name
            for cell in cells
            for node in _statements(cell, "numpy")
            if isinstance(node, ast.Import)
            for name, dotted in imports_of(node).items()
            if dotted == "numpy"
        }

    def slips_of(self, node: _Function | ast.ClassDef) -> Iterator[Slip]:
        is_class = isinstance(node, ast.ClassDef)
        for function in (part for part in (node.body if is_class else [node]) if isinstance(part, _Function)):
            yield from self._leftover_raise(function, f"{node.name}.{function.name}" if is_class else node.name)
            if is_class and function.name == "__init__":
                yield from self._loose_layers(function)
            else:
                yield from self._function_slips(function, is_class)

    def _leftover_raise(self, function: _Function, name: str) -> Iterator[Slip]:
        body = [
            part for part in function.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        ]
        for part in body if len(body) > 1 else ():
            if isinstance(part, ast.Raise) and part.exc is not None and "NotImplementedError" in ast.unparse(part.exc):
                yield self._slip("left raise", part, name)

    def _function_slips(self, function: _Function, is_method: bool) -> Iterator[Slip]:
        own_nodes = list(nodes_outside(ast.iter_child_nodes(function), *INNER))
        yields = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own_nodes)
        returns = any(isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and node.value for node in own_nodes)
        last_statement = function.body[-1]
        raises = len(function.body) <= 2 and isinstance(last_statement, ast.Raise)
        if not returns and not raises and (not is_method or function.name == "forward"):
            prints = isinstance(last_statement, ast.Expr) and called_name(last_statement.value) == "print"
            yield self._slip("print" if prints else "no return", last_statement)
        for loop in (node for node in own_nodes if isinstance(node, (ast.For, ast.While))):
            for statement in loop.body:
                if isinstance(statement, ast.Return) and not yields:
                    yield self._slip("return in loop", statement)
        if not raises:
            yield from self._unused_parameters(function, is_method)
        parameters = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
        for node in own_nodes:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in parameters:
                yield self._slip("in place", node, node.target.id)
        for node in ast.walk(function):
            yield from self._node_slips(node, is_method and function.name == "forward")

    def _loose_layers(self, init: _Function) -> Iterator[Slip]:
        for node in ast.walk(init):
            if isinstance(node, ast.Assign) and isinstance(node.value, _CONTAINERS):
                target = node.targets[0]
                if isinstance(target, ast.Attribute) and any(map(_is_layer, ast.walk(node.value))):
                    yield self._slip("loose layers", node, target.attr)

    def _unused_parameters(self, function: _Function, is_method: bool) -> Iterator[Slip]:
        nodes = list(ast.walk(function))
        if _INTROSPECTION & {called_name(node) for node in nodes}:
            return
        targets = {node.target for node in nodes if isinstance(node, ast.AugAssign)}  # which are read as well
        names = (node for node in nodes if isinstance(node, ast.Name))
        reads = {name.id for name in names if isinstance(name.ctx, ast.Load) or name in targets}
        for parameter in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)[is_method:]:
            if parameter.arg not in reads and not parameter.arg.startswith("_"):
                yield self._slip("unused", function, parameter.arg)

    def _node_slips(self, node: ast.AST, in_forward: bool) -> Iterator[Slip]:
        if isinstance(node, ast.Name) and hasattr(builtins, node.id) and (other := self._rebinding(node.id)):
            yield self._slip("rebound", node, node.id)._replace(other=other)
        for kind in _kinds(node):
            yield self._slip(kind, node)
        if isinstance(node, ast.Assign) and _is_reduced(node.value) and isinstance(node.targets[0], ast.Name):
            yield self._slip("reduced", node, node.targets[0].id)
        elif isinstance(node, ast.Call):
            yield from self._call_slips(node, in_forward)

    def _call_slips(self, node: ast.Call, in_forward: bool) -> Iterator[Slip]:
        name = called_name(node)
        owner, _, function = name.rpartition(".")
        if name in self._exercises:
            yield self._slip("calls", node, name)
        if name == "input":
            yield self._slip("input", node)
        if owner.partition(".")[0] in self._numpy:
            yield self._slip("numpy", node, name)
        if in_forward and _is_layer(node) and function != "Parameter":
            yield self._slip("layer in forward", node, name)

    def _last_rebinding(self, name: str) -> str:
        """The first line of the last statement that gives one of Python's own names another meaning; '' where none does."""
        statements = [node for cell in self._cells for node in _statements(cell, name) or _statements(cell, "import *")]
        lines = [ast.unparse(node).partition("\n")[0] for node in statements if _rebinds(node, name)]
        return lines[-1][:100] if lines else ""

    def _slip(self, kind: str, node: ast.AST, name: str = "") -> Slip:
        number = getattr(node, "lineno", 1)
        line = self._lines[number - 1].strip() if number <= len(self._lines) else ""
        return Slip(kind, line[:300], number, name[:100])


def _rebinds(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
        return name in STARS.get(statement.module or "", ())
    return name in names_of(statement).binds


def _is_layer(node: ast.AST) -> bool:
    """Whether it makes one of torch's layers: `nn.Linear(…)`."""
    owner, _, function = called_name(node).rpartition(".")
    return owner in ("nn", "torch.nn") and function[:1].isupper()


def _is_reduced(node: ast.AST) -> bool:
    """Whether it is a sum, a maximum or a mean along an axis, which is not kept."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _REDUCTIONS:
        return False
    keywords = {keyword.arg for keyword in node.keywords}
    of_module = dotted_name(node.func.value) in ("np", "numpy", "torch")
    has_axis = bool(keywords & {"axis", "dim"}) or len(node.args) > of_module
    return has_axis and not keywords & {"keepdims", "keepdim"} and len(node.args) <= 1 + of_module


def _holds_reduced(node: ast.AST) -> bool:
    """Whether it is such a sum, or is made of one entry by entry: `x.max(1)`, `x.max(1).values`, `np.sqrt(x.sum(1))`."""
    if _is_reduced(node):
        return True
    match node:
        case ast.Attribute(value=inner, attr=name):
            return name not in ("T", "mT") and _holds_reduced(inner)
        case ast.Subscript(value=inner) | ast.UnaryOp(operand=inner):
            return _holds_reduced(inner)
        case ast.Call(args=[inner]):
            return called_name(node).rpartition(".")[2] in ("sqrt", "exp", "log") and _holds_reduced(inner)
    return False


def _kinds(node: ast.AST) -> Iterator[str]:
    """The kinds of slips that a node shows by itself."""
    match node:
        case ast.BinOp(op=ast.BitXor()) | ast.AugAssign(op=ast.BitXor()):
            yield "caret"
        case ast.Assert():
            yield "assert"
    match node:
        case ast.BinOp(left=left, right=right) if _holds_reduced(left) or _holds_reduced(right):
            yield "reduced"
        case ast.AugAssign(value=value) if _holds_reduced(value):
            yield "reduced"
    # What changes an array in place: `x += y`, `x[0] = y`, `x.add_(y)`; a counter, `i += 1`, does not count.
    match node:
        case ast.AugAssign(value=value) if not isinstance(value, ast.Constant):
            yield "overwrites"
        case ast.Assign(targets=[ast.Subscript(), *_]):
            yield "overwrites"
    method = _method(node)
    if method.endswith("_") and not method.startswith(("_", "requires_grad")) and not method.endswith("__"):
        yield "overwrites"


def _method(node: ast.AST) -> str:
    """'max' of a call `x.max(1)`, '' of any other node."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _statements(cell: str, name: str) -> list[ast.stmt]:
    """The statements of a cell that mentions a name; a large one takes long to parse."""
    tree = parse(cell) if name in cell else None
    return tree.body if tree is not None else []

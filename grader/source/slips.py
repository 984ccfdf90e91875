"""Reads the code of one exercise for what beginners most often let slip: facts of the source, each with its line.

A fact is no verdict: judging/beginner.py says which of them explains what was observed.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from grader.source.definitions import parse

MOST = 40  # of one exercise
_LOOPS = (ast.For, ast.While)
_PLAIN = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
_LOOK_AROUND = {"locals", "vars", "eval", "exec"}  # these may read a parameter without its name
_REDUCING = {"sum", "max", "min", "amax", "amin", "mean", "logsumexp", "norm"}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Slip(NamedTuple):
    """A fact about a learner's code.

    kind: 'no return', 'print' (no return, and what is worked out is printed), 'return in loop' (the loop ends in its first round),
          'unused' (a parameter is read nowhere), 'caret' (`^` between values), 'assert',
          'raise' (name: of the exception), 'input' (`input()` is called), 'numpy' (a NumPy function is called),
          'layer in forward' (a layer is made in each call), 'star' (two names are multiplied by `*`), 'max' (`.max` or `.min` along
          an axis, without `.values`), 'reduced' (a sum, maximum or mean along an axis that is not kept; name: what it is bound to, ''
          where it is calculated with at once), 'summed' (two names are multiplied by `*` and the products added up),
          'overwrites' (something is changed in place),
          'condition' (a truth value is asked for), 'loose layers' (layers in a plain list, tuple or dict), 'compares' (Python's
          own max, min or sorted), 'left raise' (the stub's `raise` among other statements; name: of what, as in 'Class.method'),
          'calls' (another exercise; name: which), 'in place' (a parameter is changed by `+=` or its like).
    line, number: the learner's line and its number in the cell. name: the parameter, the function, the layer or the left factor.
    other: the right factor; turned: whether it is transposed there.
    """

    kind: str
    line: str = ""
    number: int = 0
    name: str = ""
    other: str = ""
    turned: bool = False


def slips(name: str, cells: Sequence[str], exercises: Collection[str] = ()) -> tuple[Slip, ...]:
    """The facts about the last definition of that name, a function's or a class's; () where there is none that can be read.

    exercises: names of which it is told that they are called.
    """
    for cell in reversed(cells):
        for node in reversed(_top(cell, name)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
                return tuple(_Reading(cell.splitlines(), cells, frozenset(exercises) - {name}).of(node))[:MOST]
    return ()


class _Reading:
    """One definition, beside the text of its cell."""

    def __init__(self, lines: Sequence[str], cells: Sequence[str], exercises: frozenset[str]) -> None:
        self._lines = lines
        self._exercises = exercises
        self._numpy = {"np", "numpy"} | {
            alias.asname or alias.name
            for cell in cells
            for node in _top(cell, "numpy")
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name == "numpy"
        }

    def of(self, node: ast.AST) -> Iterator[Slip]:
        methods = (
            [each for each in node.body if isinstance(each, ast.FunctionDef)]
            if isinstance(node, ast.ClassDef)
            else [node]
        )
        for method in methods:
            yield from self._left_raise(
                method, f"{node.name}.{method.name}" if isinstance(node, ast.ClassDef) else method.name
            )
            if method.name != "__init__":
                yield from self._of_function(method, isinstance(node, ast.ClassDef))
            else:
                yield from self._loose_layers(method)
                yield from (self._raise(each) for each in ast.walk(method) if isinstance(each, ast.Raise))

    def _left_raise(self, function: ast.AST, name: str) -> Iterator[Slip]:
        written = [
            each for each in function.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        ]
        for each in written if len(written) > 1 else ():
            if isinstance(each, ast.Raise) and each.exc is not None and "NotImplementedError" in ast.unparse(each.exc):
                yield self._slip("left raise", each, name)

    def _of_function(self, function: ast.FunctionDef, is_method: bool) -> Iterator[Slip]:
        own = list(_own(function))
        returns = [
            each for each in own if isinstance(each, (ast.Return, ast.Yield, ast.YieldFrom)) and each.value is not None
        ]
        yields = any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in own)
        raises = len(function.body) <= 2 and isinstance(function.body[-1], ast.Raise)
        if not returns and not raises and (not is_method or function.name == "forward"):
            last = function.body[-1]
            printed = (
                isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and _dotted(last.value.func) == "print"
            )
            yield self._slip("print" if printed else "no return", last)
        for loop in (each for each in own if isinstance(each, _LOOPS)):
            for statement in loop.body:
                if isinstance(statement, ast.Return) and not yields:
                    yield self._slip("return in loop", statement)
        if not raises:
            yield from self._unused(function, is_method)
        parameters = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
        for each in own:
            if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and each.target.id in parameters:
                yield self._slip("in place", each, each.target.id)
        for each in ast.walk(function):
            yield from self._of_expression(each, is_method and function.name == "forward")

    def _loose_layers(self, init: ast.FunctionDef) -> Iterator[Slip]:
        for each in ast.walk(init):
            kept = (
                isinstance(each, ast.Assign)
                and isinstance(each.targets[0], ast.Attribute)
                and isinstance(each.value, _PLAIN)
            )
            if kept and any(_is_layer(inner) for inner in ast.walk(each.value)):
                yield self._slip("loose layers", each, each.targets[0].attr)

    def _unused(self, function: ast.FunctionDef, is_method: bool) -> Iterator[Slip]:
        read = {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
        read |= {
            each.target.id
            for each in ast.walk(function)
            if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)
        }
        calls = {_dotted(each.func) for each in ast.walk(function) if isinstance(each, ast.Call)}
        for parameter in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)[is_method:]:
            if parameter.arg not in read and not calls & _LOOK_AROUND and not parameter.arg.startswith("_"):
                yield self._slip("unused", function, parameter.arg)

    def _of_expression(self, node: ast.AST, in_forward: bool) -> Iterator[Slip]:
        if isinstance(node, ast.Assert):
            yield self._slip("assert", node)
        if isinstance(node, ast.Raise):
            yield self._raise(node)
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.BitXor):
            yield self._slip("caret", node)
        if (
            isinstance(node, (ast.If, ast.While, ast.IfExp, ast.BoolOp))
            or isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.Not)
        ):
            yield self._slip("condition", node)
        if isinstance(node, ast.Assign) and _is_reduced(node.value) and isinstance(node.targets[0], ast.Name):
            yield self._slip("reduced", node, node.targets[0].id)
        if isinstance(node, ast.BinOp):
            reduced = any(_holds_reduced(side) for side in (node.left, node.right))
        else:
            reduced = isinstance(node, ast.AugAssign) and _holds_reduced(node.value)
        if reduced:
            yield self._slip("reduced", node)
        if _overwrites(node):
            yield self._slip("overwrites", node)
        if _is_summed_product(node):
            yield self._slip("summed", node)
        if isinstance(node, ast.Call):
            called = _dotted(node.func)
            owner, _, function = called.rpartition(".")
            if called in self._exercises:
                yield self._slip("calls", node, called)
            if called == "input":
                yield self._slip("input", node)
            if called in ("max", "min", "sorted") and not any(keyword.arg == "key" for keyword in node.keywords):
                yield self._slip("compares", node)
            if owner.partition(".")[0] in self._numpy:
                yield self._slip("numpy", node, called)
            if in_forward and owner in ("nn", "torch.nn") and function[:1].isupper() and function != "Parameter":
                yield self._slip("layer in forward", node, called)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Name):
            right, turned = _unturned(node.right)
            if right:
                yield self._slip("star", node, node.left.id)._replace(other=right, turned=turned)
        if isinstance(node, ast.BinOp) and any(_is_pair(side) for side in (node.left, node.right)):
            yield self._slip("max", node, next(side.func.attr for side in (node.left, node.right) if _is_pair(side)))

    def _raise(self, node: ast.Raise) -> Slip:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return self._slip("raise", node, _dotted(raised) if raised is not None else "")

    def _slip(self, kind: str, node: ast.AST, name: str = "") -> Slip:
        number = node.lineno
        line = self._lines[number - 1].strip() if number <= len(self._lines) else ""
        return Slip(kind, line[:300], number, name[:100])


def _is_layer(node: ast.AST) -> bool:
    """Whether it makes one of torch's layers: `nn.Linear(…)`."""
    owner, _, function = _dotted(node.func).rpartition(".") if isinstance(node, ast.Call) else ("", "", "")
    return owner in ("nn", "torch.nn") and function[:1].isupper()


def _is_pair(node: ast.AST) -> bool:
    """Whether it is `x.max(dim)` or `x.min(dim, keepdim=True)`, for which torch gives values and indices."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("max", "min")
        and (len(node.args) == 1 or any(keyword.arg == "dim" for keyword in node.keywords))
    )


def _is_reduced(node: ast.AST) -> bool:
    """Whether it is a sum, a maximum or a mean along an axis, which is not kept."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _REDUCING:
        return False
    given = {keyword.arg for keyword in node.keywords}
    of_module = _dotted(node.func.value) in ("np", "numpy", "torch")
    along = given & {"axis", "dim"} or len(node.args) > of_module
    return bool(along) and not given & {"keepdims", "keepdim"} and len(node.args) <= 1 + of_module


def _holds_reduced(node: ast.AST) -> bool:
    """Whether it is such a sum, or is made of one entry by entry: `x.max(1)`, `x.max(1).values`, `np.sqrt(x.sum(1))`."""
    if _is_reduced(node):
        return True
    if isinstance(node, ast.Attribute):
        return node.attr not in ("T", "mT") and _holds_reduced(node.value)
    if isinstance(node, ast.Subscript):
        return _holds_reduced(node.value)
    if isinstance(node, ast.UnaryOp):
        return _holds_reduced(node.operand)
    is_call = isinstance(node, ast.Call) and len(node.args) == 1
    return is_call and _dotted(node.func).rpartition(".")[2] in ("sqrt", "exp", "log") and _holds_reduced(node.args[0])


def _is_summed_product(node: ast.AST) -> bool:
    """Whether it is `(x * y).sum(…)`."""
    added = (
        node.func.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sum"
        else None
    )
    return isinstance(added, ast.BinOp) and isinstance(added.op, ast.Mult)


def _overwrites(node: ast.AST) -> bool:
    """Whether it changes an array in place: `x += y`, `x[0] = y`, `x.add_(y)`; a counter, `i += 1`, does not count."""
    if isinstance(node, ast.AugAssign):
        return not isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Subscript)
    method = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    return method.endswith("_") and not method.startswith(("_", "requires_grad")) and not method.endswith("__")


def _unturned(node: ast.AST) -> tuple[str, bool]:
    """('k', True) of `k.T`, `k.mT`, `k.swapaxes(-1, -2)`; ('k', False) of `k`; ('', False) of anything else."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("transpose", "swapaxes")
    ):
        return (node.func.value.id, True) if isinstance(node.func.value, ast.Name) else ("", False)
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return (node.value.id, True) if isinstance(node.value, ast.Name) else ("", False)
    return (node.id, False) if isinstance(node, ast.Name) else ("", False)


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of the functions inside it."""
    left = list(ast.iter_child_nodes(function))
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, _DEFINITIONS):
            left += ast.iter_child_nodes(node)


def _top(cell: str, mentioned: str) -> list[ast.stmt]:
    """The statements of a cell that mentions a name; a large one takes long to parse."""
    tree = parse(cell) if mentioned in cell else None
    return tree.body if tree is not None else []


def _dotted(node: ast.AST) -> str:
    """'np.linalg.norm' of such an expression, '' of any other."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""

"""What no cell of a notebook may do where one of its exercises forbids or requires something: reach or change what watches it.

The rule is against shortcuts, not against a determined cheat, and it is read without running anything; docs/instructors.md lists
what remains open to such a cheat. What is changed all the same is noticed by worker/integrity.py. The rule has three parts.
Refused wherever it stands is what serves only to change or to reach the watch: the names in NAMES, torch's modules in PARTS,
`sys` as anything but `sys.name`, text that is run, and a look-up by a name that cannot be computed on something unknown.
What finds any object of the process (FINDING) may be looked at: it is refused where the exercise is made of what was found,
and where the same statement changes something. Everything else, frames and the list of modules included, only looks.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

from grader.source.computed_names import GAP, Spelled, fits
from grader.source.definitions import parse, root
from grader.source.dependencies import IMPORTS, Dependencies, Statement, text_of
from grader.worker.operations import LIBRARIES

# Switches of the watching, and ways into functions and threads.
_THREADS = frozenset(
    {"_bootstrap", "_bootstrap_inner"}
)  # a learner's own function may be called so, a class's method not
NAMES = _THREADS | {
    "setprofile",
    "settrace",
    "setprofile_all_threads",
    "settrace_all_threads",
    "_profile_hook",
    "_trace_hook",
    "_setprofile",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "_DisableTorchDispatch",
    "_disable_current_modes",
    "pythonapi",
    "_pop_mode",
    "_pop_mode_temporarily",
    "_pop_torch_function_stack",
    "_pop_torch_dispatch_stack",
    "start_new_thread",
    "_start_new_thread",
    "start_joinable_thread",
    "_start_joinable_thread",
    "__globals__",
    "__closure__",
    "__code__",
    "__builtins__",
}
MODULES = frozenset({"ctypes", "_ctypes", "cffi", "_thread", "inside"})  # an array's attribute may be called ctypes
PARTS = frozenset({"_C", "jit", "fx", "export", "library", "_dynamo"})  # of torch: code that runs past its modes
# What finds objects of the process past every name.
FINDING = frozenset(
    {
        "f_locals",
        "f_globals",
        "f_builtins",
        "get_objects",
        "get_referrers",
        "get_referents",
        "__subclasses__",
        "getmembers",
        "getclosurevars",
        "getargvalues",
    }
)
# What could change an object that was found so.
_CHANGING = frozenset(
    {
        "setattr",
        "delattr",
        "__setattr__",
        "__delattr__",
        "__setitem__",
        "__dict__",
        "vars",
        "setitem",
        "update",
        "setdefault",
        "clear",
        "pop",
        "patch",
        "exec",
        "eval",
    }
)
_OF_SYS = frozenset({"modules", "_getframe", "_current_frames", "*"})  # to be written as sys.name
TEXT_RUN = frozenset({"eval", "exec", "compile", "__import__"})
_LOOK_UPS = {
    "getattr": 1,
    "getattr_static": 1,
    "setattr": 1,
    "delattr": 1,
    "attrgetter": 0,
    "methodcaller": 0,
    "__getattr__": -1,
    "__getattribute__": -1,
    "__setattr__": -2,
}  # where the name stands
_HANDED = TEXT_RUN | {"getattr"}
# Modules of which something may be asked by a name that is not known: what runs then is seen.
_OPEN = frozenset(
    {"numpy", "numpy.linalg", "torch", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.special", "math"}
)
_NAMES_ONLY = frozenset(
    {"len", "list", "sorted", "set", "tuple", "iter", "frozenset", "enumerate"}
)  # of sys.modules: texts


class Reading(Protocol):
    """What is known of the names of a notebook."""

    dependencies: Dependencies

    def resolve(self, statement: Statement, node: ast.AST) -> tuple[str, str]: ...
    def plain(self, statement: Statement, name: str) -> tuple[str, str]: ...


class Closed:
    """What a notebook's cells do that is refused, found once for all its exercises."""

    def __init__(self, reading: Reading) -> None:
        self._reading, self._statements = reading, reading.dependencies.statements
        self._finding: dict[int, tuple[str, ast.AST]] = {}  # statements that find objects, and by what

    @cached_property
    def refused(self) -> dict[int, tuple[str, str]]:
        """What is refused wherever it stands: positions of statements, and what it is, with its line."""
        # Every statement is read to its end, since what finds objects is noted on the way.
        found = {statement.at: [*self._refused(statement)] for statement in self._statements}
        return {at: (ways[0][0], self._statements[at].line(ways[0][1])) for at, ways in found.items() if ways}

    @cached_property
    def everywhere(self) -> tuple[str, str]:
        """The first that is refused wherever it stands, and its line; two empty texts for nothing."""
        return next(iter(self.refused.values()), ("", ""))

    def reaching(self, name: str) -> tuple[str, str]:
        """By what the exercise `name`, or a statement that changes something, finds objects of the process; with its line."""
        if self.everywhere[0] or not self._finding:
            return self.everywhere
        used = {binding.statement.at for binding in self._reading.dependencies.walk(name)}
        for at, (way, line) in sorted(self._handed_on.items()):
            if at in used or _changes(self._statements[at]):
                return way, line
        return "", ""

    @cached_property
    def _handed_on(self) -> dict[int, tuple[str, str]]:
        """Statements that find objects or use what was found so, at whatever remove; by what, and its line."""
        readers: dict[str, list[int]] = {}
        for statement in self._statements:
            now, later = statement.reads
            for name in now | later:
                readers.setdefault(name, []).append(statement.at)
        found = {at: (way, self._statements[at].line(node)) for at, (way, node) in self._finding.items()}
        waiting = list(found)
        while waiting:
            at = waiting.pop()
            made = self._statements[at]
            for name in made.gives | made.may_give | made.alters:
                for reader in readers.pop(name, ()):
                    if reader not in found:
                        found[reader] = found[at]
                        waiting.append(reader)
        return found

    @cached_property
    def _spelled(self) -> Spelled:
        return Spelled(statement.node for statement in self._statements)

    def _refused(self, statement: Statement) -> Iterator[tuple[str, ast.AST]]:
        harmless: set[int] = set()  # mentions of sys, of sys.modules and of functions that are called
        for node in statement.parts:
            harmless.update(map(id, _asked_or_called(node)))
        for node in statement.parts:
            for name in _names(node):
                if name in NAMES:
                    yield name, node
                elif name in FINDING:
                    self._finding.setdefault(statement.at, (name, node))
            if isinstance(node, IMPORTS):
                yield from ((way, node) for way in _imported(node))
            elif isinstance(node, ast.Attribute):
                yield from ((way, node) for way in self._attribute(statement, node, harmless))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield from ((way, node) for way in self._name(statement, node, harmless))
            elif isinstance(node, ast.Call):
                yield from ((way, node) for way in self._call(statement, node))
            elif isinstance(node, ast.Subscript):
                yield from ((way, node) for way in self._subscript(statement, node))

    def _attribute(self, statement: Statement, node: ast.Attribute, harmless: set[int]) -> Iterator[str]:
        if node.attr in PARTS:
            dotted, whose = self._reading.resolve(statement, node)
            if dotted.partition(".")[0] == "torch" or (node.attr == "_C" and whose == "value"):
                yield dotted.lstrip("?.")
        elif node.attr in ("sys", "_sys"):
            yield f"….{node.attr}"
        elif node.attr == "__dict__" and self._is_sys(statement, node.value):
            yield "sys.__dict__"
        elif node.attr == "modules" and id(node) not in harmless and self._is_sys(statement, node.value):
            self._finding.setdefault(statement.at, ("sys.modules", node))
        elif (
            node.attr in _HANDED
            and id(node) not in harmless
            and self._reading.resolve(statement, node)[0] == f"builtins.{node.attr}"
        ):
            yield node.attr

    def _name(self, statement: Statement, node: ast.Name, harmless: set[int]) -> Iterator[str]:
        if id(node) in harmless:
            return
        if self._is_sys(statement, node):
            yield "sys, handed on under another name"
        elif node.id in _HANDED and self._builtin(statement, node.id):
            yield f"{node.id}, handed on under another name"
        elif node.id in PARTS and self._reading.plain(statement, node.id)[0].partition(".")[0] == "torch":
            yield f"torch.{node.id}"

    def _call(self, statement: Statement, node: ast.Call) -> Iterator[str]:
        function = self._reading.resolve(statement, node.func)[0].rpartition(".")[2]
        if function == "vars" and node.args and self._is_sys(statement, node.args[0]):
            yield "vars(sys)"
        if function == "pop" and node.args and _drops(node.func):
            yield from self._module(statement, node, node.args[0], dropped=True)
        if function in ("import_module", "__import__") and node.args:
            for text in self._spelled.texts(node.args[0], node):
                yield from ["a second name for sys"] if text == "sys" else _closed_module(text)
        elif function in TEXT_RUN and node.args and self._builtin_call(statement, node):
            yield from self._text(function, node)
        elif function in _LOOK_UPS and node.args:
            at, base = _LOOK_UPS[function], None
            if at == 1 or len(node.args) > max(1, -at):
                base = node.args[0] if at else None
            elif at < 0 and isinstance(node.func, ast.Attribute):
                base = node.func.value
            for name in node.args if function == "attrgetter" else node.args[at:][:1]:
                yield from self._look_up(statement, node, base, name, function)

    def _subscript(self, statement: Statement, node: ast.Subscript) -> Iterator[str]:
        held = node.value
        if isinstance(held, ast.Attribute) and held.attr == "__dict__":
            yield from self._look_up(statement, node, held.value, node.slice, "__dict__")
        elif isinstance(held, ast.Call) and isinstance(held.func, ast.Name) and held.func.id == "vars" and held.args:
            yield from self._look_up(statement, node, held.args[0], node.slice, "vars")
        elif isinstance(held, ast.Attribute) and held.attr == "modules" and self._is_sys(statement, held.value):
            yield from self._module(statement, node, node.slice, dropped=isinstance(node.ctx, ast.Del))

    def _module(
        self, statement: Statement, node: ast.Call | ast.Subscript, name: ast.AST, dropped: bool
    ) -> Iterator[str]:
        """A module by its name in sys.modules: read, it is an import; dropped or replaced, it is to be the learner's own.

        A dropped one whose name cannot be known is passed over: the watch holds on to the modules that it needs.
        """
        replaced = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        own_name = isinstance(name, ast.Name) and name.id == "__name__"
        for text in {"__main__"} if own_name else self._spelled.texts(name, node):
            if GAP in text:
                if not dropped:
                    self._finding.setdefault(statement.at, ("sys.modules", node))
                continue
            yield from _closed_module(text)
            top = text.partition(".")[0]
            if text == "sys" or (
                (dropped or replaced) and (top in (*LIBRARIES, "numpy") or top in sys.stdlib_module_names)
            ):
                yield f"sys.modules[{text!r}]"

    def _look_up(
        self, statement: Statement, at: ast.AST, base: ast.AST | None, name: ast.AST, how: str
    ) -> Iterator[str]:
        dotted, whose = self._reading.resolve(statement, base) if base is not None else ("?", "value")
        for text in self._spelled.texts(name, at):
            if GAP not in text:
                for part in text.split("."):
                    if part in NAMES:
                        yield part
                    elif part in FINDING:
                        self._finding.setdefault(statement.at, (part, at))
                    elif part in PARTS and (
                        dotted.partition(".")[0] == "torch" or how in ("attrgetter", "methodcaller")
                    ):
                        yield f"torch.{part}"
            elif base is not None and self._is_sys(statement, base):
                yield f"{how}(sys, …)"
            elif not (whose == "own" or dotted in _OPEN or _is_super(base)) and fits(text, NAMES | FINDING):
                yield f"{how} by a name that is put together at run time"
        if how == "setattr" and dotted == "sys":
            yield "setattr(sys, …)"

    def _text(self, function: str, node: ast.Call) -> Iterator[str]:
        """Code that is run from text: read where the text is known."""
        for text in self._spelled.texts(node.args[0], node):
            tree = parse(text.strip()) if GAP not in text else None
            if tree is None:
                yield function
                return
            for part in ast.walk(tree):
                if isinstance(part, IMPORTS):
                    yield from _imported(part)
                for name in (*_names(part), part.attr if isinstance(part, ast.Attribute) else ""):
                    if name in NAMES | FINDING | PARTS | TEXT_RUN | {"getattr", "modules"}:
                        yield f"{function} of `{name}`"

    def _is_sys(self, statement: Statement, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and self._reading.resolve(statement, node) == ("sys", "library")

    def _builtin(self, statement: Statement, name: str) -> bool:
        return name in statement.outside and not self._reading.dependencies.last(name)

    def _builtin_call(self, statement: Statement, node: ast.Call) -> bool:
        if isinstance(node.func, ast.Name):
            return self._builtin(statement, node.func.id)
        return self._reading.resolve(statement, node.func)[0].partition(".")[0] == "builtins"


def _names(node: ast.AST) -> Iterator[str]:
    """What a node names: attributes, imports, methods, keywords, and texts."""
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Name):
        if node.id not in _THREADS:
            yield node.id
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and len(node.value) < 200:
            yield from node.value.split(".")
    elif isinstance(node, ast.BinOp):
        yield text_of(node) or ""
    elif isinstance(node, IMPORTS):
        for alias in node.names:
            yield from alias.name.split(".")
    elif isinstance(node, ast.keyword):
        yield node.arg or ""
    elif isinstance(node, ast.MatchClass):
        yield from node.kwd_attrs
    elif isinstance(node, ast.ClassDef):
        for part in node.body:
            inside = Statement(part, 0, [])
            yield from inside.gives | inside.may_give


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """What an import brings that is refused."""
    for alias in node.names:
        dotted = f"{node.module or ''}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        yield from _closed_module(dotted)
        if dotted == "sys" and alias.asname not in (None, "sys"):
            yield f"import sys as {alias.asname}"
        elif isinstance(node, ast.ImportFrom) and (
            alias.name in ("sys", "_sys") or node.module == "sys" and alias.name in _OF_SYS
        ):
            yield f"from {node.module} import {alias.name}"


def _closed_module(dotted: str) -> Iterator[str]:
    """dotted: a module's name; where it is a pattern, whatever fits it."""
    top, *parts = dotted.split(".")
    if GAP in dotted:
        yield "a module whose name is put together at run time"
    elif (
        top in MODULES
        or (top == "grader" and parts[:1] == ["worker"])
        or (top == "torch" and PARTS.intersection(parts))
    ):
        yield dotted


def _asked_or_called(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of a node that are used where they stand: what is called, sys before a dot, and sys.modules asked for names."""
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name):
            yield node.value
    elif isinstance(node, ast.Call):
        yield node.func
        function = node.func.id if isinstance(node.func, ast.Name) else ""
        if node.args and (
            function in ("getattr", "hasattr") or (function in _NAMES_ONLY and isinstance(node.args[0], ast.Attribute))
        ):
            yield node.args[0]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
            yield node.func.value
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        yield from node.comparators  # `"google.colab" in sys.modules` fetches nothing
    elif isinstance(node, ast.Subscript):
        if isinstance(node.value, ast.Attribute):
            yield node.value
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield node.iter


def _changes(statement: Statement) -> bool:
    """Whether a statement may change an object that it found; what it stores on `self` is its own, and modules may be dropped."""
    dropped = {id(node) for node in statement.parts if _drops(node)}
    for node in statement.parts:
        if id(node) in dropped:
            continue
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            if isinstance(node, ast.Subscript) or not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                return True
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in _CHANGING:
            return True
    return False


def _drops(node: ast.AST) -> bool:
    """True for `sys.modules[name]` in a del, and for `sys.modules.pop`."""
    dropping = (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Del)
        or isinstance(node, ast.Attribute)
        and node.attr == "pop"
    )
    return (
        dropping
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "modules"
        and root(node.value) == "sys"
    )


def _is_super(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"

"""What no cell of a notebook may mention where one of its exercises forbids or requires something: what reaches what watches it.

The rule is against shortcuts, not against a determined cheat; docs/instructors.md lists what remains open to such a cheat. What is
changed all the same, or reached by a name that is put together, is noticed while it runs (worker/watch.py, worker/integrity.py).
"""

from __future__ import annotations

import ast
import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import cached_property

from grader.source.dependencies import Statement, text_of
from grader.source.mentions import HIDDEN, TEXT_RUN, Reading
from grader.source.scopes import IMPORTS, bound_in_class
from grader.worker.operations import LIBRARIES

# A learner's own function may be called so, a class's method not.
_THREADS = frozenset({"_bootstrap", "_bootstrap_inner"})
# Switches of the watching, and ways into functions and threads.
CLOSED_NAMES = _THREADS | frozenset(
    """
    setprofile settrace setprofile_all_threads settrace_all_threads _profile_hook _trace_hook _setprofile
    DisableTorchFunction DisableTorchFunctionSubclass _DisableTorchDispatch _disable_current_modes pythonapi
    _pop_mode _pop_mode_temporarily _pop_torch_function_stack _pop_torch_dispatch_stack
    start_new_thread _start_new_thread start_joinable_thread _start_joinable_thread
    __globals__ __closure__ __code__ __builtins__
    """.split()
)
CLOSED_MODULES = frozenset({"ctypes", "_ctypes", "cffi", "_thread"})  # by import; `array.ctypes` may be asked
CLOSED_TORCH = frozenset({"_C", "jit", "fx", "export", "library", "_dynamo"})  # of torch: code that runs past its modes
# What finds objects of the process past every name.
OBJECT_FINDERS = frozenset(
    """
    f_locals f_globals f_builtins get_objects get_referrers get_referents __subclasses__ getmembers getclosurevars
    getargvalues tb_frame
    """.split()
)
_SUSPECT_NAMES = CLOSED_NAMES | OBJECT_FINDERS
# No text that is run has these words.
_TEXT_WORDS = CLOSED_NAMES | CLOSED_MODULES | CLOSED_TORCH | OBJECT_FINDERS | TEXT_RUN | {"getattr", "modules", "sys"}
_READ_ONLY = (*IMPORTS, ast.Expr, ast.For, ast.If, ast.Try, ast.With)  # may find objects, if they change none


class Tampering:
    """What a notebook's cells mention that is closed. reading: of these cells."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def find(self, name: str) -> tuple[str, str]:
        """By what a cell, or what the exercise `name` is made of, reaches what watches it; with its line."""
        bindings = self.reading.dependencies.walk(name) if self._ways else ()
        positions = self.offences or {binding.position for binding in bindings}
        return next(((way, line) for position, way, line in self._ways if position in positions), ("", ""))

    @cached_property
    def offences(self) -> set[int]:
        """Positions of the statements that are refused wherever they stand; `print(len(gc.get_objects()))` only looks."""
        statements = self.reading.dependencies.statements
        return {
            position
            for position, way, _ in self._ways
            if way not in OBJECT_FINDERS
            or not isinstance(statements[position].node, _READ_ONLY)
            or statements[position].alters
        }

    @cached_property
    def _ways(self) -> list[tuple[int, str, str]]:
        """Of each closed thing that is mentioned the statement's position, what it is, and its line."""
        return [
            (position, way, statement.line(node))
            for position, statement in enumerate(self.reading.dependencies.statements)
            for node in statement.parts
            if (way := self._closed_name(statement, node))
        ]

    def _closed_name(self, statement: Statement, node: ast.AST) -> str:
        """What a node mentions that is closed, '' for nothing."""
        if name := next((name for name in _names(node) if name in _SUSPECT_NAMES), ""):
            return name
        if isinstance(node, IMPORTS):
            return _closed_import(node)
        dotted, origin = self.reading.mentioned_name(statement, node)
        if dotted == f"sys.{HIDDEN}":
            return f"something of sys by {HIDDEN}"
        module = _closed_module(dotted) if origin == "library" or dotted.startswith("torch.") else ""
        if isinstance(node, ast.Attribute) and node.attr not in CLOSED_TORCH:
            module = ""  # of torch.jit.trace it is torch.jit that is told
        return module or self._closed_text(statement, node)

    def _closed_text(self, statement: Statement, node: ast.AST) -> str:
        """What is closed of a text: one that is run, that names parts of torch to get, or a module to replace."""
        reading = self.reading
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return _replaced_module(node.slice) if reading.resolve(statement, node.value)[0] == "sys.modules" else ""
        if not isinstance(node, ast.Call) or not node.args:
            return ""
        dotted, text = reading.resolve(statement, node.func)[0], text_of(node.args[0]) or ""
        if dotted == "sys.modules.pop":
            return _replaced_module(node.args[0])
        if dotted.endswith("attrgetter") and CLOSED_TORCH & set(text.split(".")):
            return f"torch.{text}"
        function = reading.mentioned_name(statement, node.func)[0].removeprefix("builtins.")
        if function in TEXT_RUN - {"__import__"}:
            words = re.findall(r"\w+", unicodedata.normalize("NFKC", text))
            return next((f"{function} of `{word}`" for word in words if word in _TEXT_WORDS), "" if text else function)
        return ""


def _names(node: ast.AST) -> Iterator[str]:
    """What a node names: attributes, imports, methods, keywords, and texts."""
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Name):
        yield "" if node.id in _THREADS else node.id
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
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
        yield from bound_in_class(node)


def _closed_import(node: ast.Import | ast.ImportFrom) -> str:
    """What an import brings that is refused."""
    start = f"{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
    return next(filter(None, (_closed_module(start + alias.name) for alias in node.names)), "")


def _closed_module(dotted: str) -> str:
    top, *parts = dotted.split(".")
    is_closed = top in CLOSED_MODULES or (top == "grader" and parts[:1] == ["worker"])
    return dotted if is_closed or (top == "torch" and CLOSED_TORCH.intersection(parts)) else ""


def _replaced_module(module: ast.AST) -> str:
    """A library that is taken out of sys.modules by its name; the watch holds on to those that it needs, whatever the name."""
    text = text_of(module) or ""
    top = text.partition(".")[0]
    return f"sys.modules[{text!r}]" if top in (*LIBRARIES, "numpy") or top in sys.stdlib_module_names else ""

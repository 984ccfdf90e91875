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

from grader.source.definitions import dotted_name
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
FINDING = frozenset(
    """
    f_locals f_globals f_builtins get_objects get_referrers get_referents __subclasses__ getmembers getclosurevars
    getargvalues
    """.split()
)
_WATCHED = CLOSED_NAMES | FINDING
# No text that is run has these words.
_IN_TEXT = CLOSED_NAMES | CLOSED_MODULES | CLOSED_TORCH | FINDING | TEXT_RUN | {"getattr", "modules", "sys"}
_CALLED_ONLY = TEXT_RUN | {"getattr"}
_OF_SYS = frozenset({"modules", "_getframe", "_current_frames", "*"})  # to be written as sys.name
_SYS_ITSELF = {  # looked up by a text
    "sys": "a second name for sys",
    "sys.__dict__": "sys.__dict__",
    f"sys.{HIDDEN}": "something of sys by a name put together at run time",
}
_FIRST_IN_PLACE = frozenset("getattr hasattr len list sorted set tuple iter frozenset enumerate".split())
_LOOKING = (*IMPORTS, ast.Expr, ast.For, ast.If, ast.Try, ast.With)  # may find objects, if they change none


class NotebookReading(Reading):
    """A notebook's cells, and what they mention that is closed."""

    def tampering(self, name: str) -> tuple[str, str]:
        """By what a cell, or what the exercise `name` is made of, reaches what watches it; with its line."""
        refused, looks = self._reaching
        if not refused and looks:
            used = {binding.at for binding in self.dependencies.walk(name)}
            refused = {at: way for at, way in looks.items() if at in used}
        return next(iter(refused.values()), ("", ""))

    @property
    def offences(self) -> dict[int, tuple[str, str]]:
        """What is refused wherever it stands: positions of statements, and what it is, with its line."""
        return self._reaching[0]

    @cached_property
    def _reaching(self) -> tuple[dict[int, tuple[str, str]], dict[int, tuple[str, str]]]:
        """(what is refused, what only looks at objects of the process: `print(len(gc.get_objects()))`)."""
        refused: dict[int, tuple[str, str]] = {}
        looks: dict[int, tuple[str, str]] = {}
        for at, statement in enumerate(self.dependencies.statements):
            in_place = {id(part) for node in statement.parts for part in _in_place(node)}
            keeps = not isinstance(statement.node, _LOOKING) or statement.alters
            for node in statement.parts:
                way = self._closed(statement, node, in_place)
                if (way in FINDING or way == "sys.modules") and not keeps:
                    looks.setdefault(at, (way, statement.line(node)))
                elif way:
                    refused[at] = way, statement.line(node)
                    break
        return refused, looks

    def _closed(self, statement: Statement, node: ast.AST, in_place: set[int]) -> str:
        """What a node mentions that is closed, '' for nothing. in_place: nodes that are used where they stand."""
        if name := next((name for name in _names(node) if name in _WATCHED), ""):
            return name
        if isinstance(node, IMPORTS):
            return _closed_import(node)
        if isinstance(node, (ast.Attribute, ast.Name)) and id(node) not in in_place:
            handed_on, origin = self.resolve(statement, node)
            if (handed_on, origin) == ("sys.modules", "library"):
                return handed_on
            if (handed_on, origin) == ("sys", "library") or self._is_builtin(statement, node, _CALLED_ONLY):
                return f"{handed_on}, handed on under another name"
        if isinstance(node, ast.Attribute) and node.attr in ("sys", "_sys"):
            return f"….{node.attr}"
        called, origin = self.named(statement, node)
        closed = _closed_module(called) if origin == "library" or called.startswith("torch.") else ""
        if isinstance(node, ast.Attribute) and node.attr not in CLOSED_TORCH:
            closed = ""  # of torch.jit.trace it is torch.jit that is told
        return closed or _SYS_ITSELF.get(called) or self._closed_text(statement, node)

    def _closed_text(self, statement: Statement, node: ast.AST) -> str:
        """What is closed of a text: one that is run, that names parts of torch to get, or a module to replace."""
        if isinstance(node, ast.Subscript) and dotted_name(node.value) == "sys.modules":
            return _replaced(node.slice) if not isinstance(node.ctx, ast.Load) else ""
        if not isinstance(node, ast.Call) or not node.args:
            return ""
        if dotted_name(node.func) == "sys.modules.pop":
            return _replaced(node.args[0])
        text, function = text_of(node.args[0]) or "", self.function(statement, node)
        if function == "attrgetter" and CLOSED_TORCH & set(text.split(".")):
            return f"torch.{text}"
        if self._is_builtin(statement, node.func, TEXT_RUN - {"__import__"}):
            words = re.findall(r"\w+", unicodedata.normalize("NFKC", text))
            return next((f"{function} of `{word}`" for word in words if word in _IN_TEXT), "" if text else function)
        return ""

    def _is_builtin(self, statement: Statement, node: ast.AST, functions: frozenset[str]) -> bool:
        if isinstance(node, ast.Name):
            return node.id in functions and node.id in statement.outside and not self.dependencies.last(node.id)
        owner, _, name = self.resolve(statement, node)[0].rpartition(".")
        return owner == "builtins" and name in functions


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
    for alias in node.names:
        if closed := _closed_module(start + alias.name):
            return closed
        if start and (alias.name in ("sys", "_sys") or (start == "sys." and alias.name in _OF_SYS)):
            return f"from {start[:-1]} import {alias.name}"
        if not start and alias.name == "sys" and alias.asname not in (None, "sys"):
            return f"import sys as {alias.asname}"
    return ""


def _closed_module(dotted: str) -> str:
    top, *parts = dotted.split(".")
    closed = top in CLOSED_MODULES or (top == "grader" and parts[:1] == ["worker"])
    return dotted if closed or (top == "torch" and CLOSED_TORCH.intersection(parts)) else ""


def _replaced(module: ast.AST) -> str:
    """A library that is taken out of sys.modules by its name; the watch holds on to those that it needs, whatever the name."""
    text = text_of(module) or ""
    top = text.partition(".")[0]
    return f"sys.modules[{text!r}]" if top in (*LIBRARIES, "numpy") or top in sys.stdlib_module_names else ""


def _in_place(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of a node that are used where they stand, and handed to nobody: what is called, asked for a name, or gone through."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        yield node.value
    elif isinstance(node, ast.Call):
        yield node.func
        if node.args and isinstance(node.func, ast.Name) and node.func.id in _FIRST_IN_PLACE:
            yield node.args[0]
    elif isinstance(node, ast.Compare):
        yield from node.comparators  # `"google.colab" in sys.modules` fetches nothing
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield node.iter
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node

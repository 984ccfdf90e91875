"""What a learner's code mentions, and what no cell may mention where an exercise forbids or requires something.

A plain reading of names: what imports and assignments call a module is followed, a name that is looked up by a text is read
(`getattr(F, "softmax")`), and nothing is computed. The rule is against shortcuts, not against a determined cheat: what a name
that is put together at run time comes to is seen while it runs (worker/watch.py, worker/integrity.py).
"""

from __future__ import annotations

import ast
import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from grader.course import registry
from grader.source.definitions import parse, too_deep
from grader.source.dependencies import IMPORTS, Binding, Dependencies, Statement, text_of
from grader.source.scopes import bound_in_class
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
CLOSED_MODULES = frozenset(
    {"ctypes", "_ctypes", "cffi", "_thread", "inside"}
)  # an array's attribute may be called ctypes
CLOSED_TORCH = frozenset({"_C", "jit", "fx", "export", "library", "_dynamo"})  # of torch: code that runs past its modes
# What finds objects of the process past every name.
FINDING = frozenset(
    """
    f_locals f_globals f_builtins get_objects get_referrers get_referents __subclasses__ getmembers getclosurevars
    getargvalues
    """.split()
)
TEXT_RUN = frozenset({"eval", "exec", "compile", "__import__"})
_IN_TEXT = (
    CLOSED_NAMES | CLOSED_MODULES | CLOSED_TORCH | FINDING | TEXT_RUN | {"getattr", "modules", "sys"}
)  # nothing that text runs has these
_CALLED_ONLY = TEXT_RUN | {"getattr"}
_OF_SYS = frozenset({"modules", "_getframe", "_current_frames", "*"})  # to be written as sys.name
_FIRST_IN_PLACE = frozenset(
    {"getattr", "hasattr", "len", "list", "sorted", "set", "tuple", "iter", "frozenset", "enumerate"}
)

HIDDEN = "a name put together at run time"  # stands for what only running the code tells
_OF_OBJECT = frozenset({"getattr", "getattr_static"})
_LOOK_UPS = _OF_OBJECT | {"attrgetter", "methodcaller", "__getattr__", "__getattribute__"}
_ALL_NAMES = frozenset({"__dict__", "__getattr__", "__getattribute__"})  # asked of a library, they fetch anything
_MAKERS = frozenset(  # of classes and fields
    {"namedtuple", "NamedTuple", "SimpleNamespace", "make_dataclass", "Enum", "type", "setattr", "__setattr__"}
)
_LOOKING = (ast.Expr, ast.For, ast.If, ast.Try, ast.With)  # statements that may find objects, if they change none
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ALIASES = 20  # names that stand for each other
_DEPTH = 200  # of nested syntax that is read; nobody's attention needs more


@dataclass(frozen=True)
class Mention:
    """A node of the learner's code. called: the dotted name that it mentions.

    whose: 'library', 'own' for what the learner made, 'value' where reading does not tell.
    """

    statement: Statement
    node: ast.AST
    called: str
    whose: str


class Reading:
    """A notebook's cells: what each name is made of, and what imports call things."""

    def __init__(self, cells: tuple[str, ...]) -> None:
        self.unread = False  # whether a cell is larger than what is read
        self.members: set[str] = set()  # names of the learner's own methods, attributes and fields
        self._imports_inside: dict[str, str] = {}  # what imports inside functions and branches call things
        self._stars: list[str] = []
        self._aliases: dict[tuple[int, str], list[ast.AST]] = {}  # what a statement's own variables stand for
        self._meanings: dict[str, tuple[str, str]] = {}
        self._mentions: dict[int, list[Mention]] = {}
        statements: list[Statement] = []
        for cell in cells:
            tree = parse(cell)
            body, lines = (tree.body, cell.splitlines()) if tree is not None else ([], [])
            read = [Statement(node, len(statements) + i, lines) for i, node in enumerate(body)]
            if (tree is None and too_deep(cell)) or any(statement.depth >= _DEPTH for statement in read):
                self.unread = True
            else:
                statements += read
        self.dependencies = Dependencies(statements)
        for statement in statements:
            self._note_imports(statement)
            for node in statement.parts:
                self._note(statement, node)

    def _note_imports(self, statement: Statement) -> None:
        for name, dotted in statement.imports.items():
            if name == "*":
                self._stars += [one[:-2] for one in dotted if one.partition(".")[0] in (*LIBRARIES, "numpy")]
            elif name not in statement.gives and name not in statement.may_give:
                self._imports_inside[name] = _one_of(dotted)

    def _note(self, statement: Statement, node: ast.AST) -> None:
        """What is asked of the notebook as a whole."""
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            self.members.add(node.attr)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            self.members.add(text_of(node.slice) or "")
        elif isinstance(node, ast.ClassDef):
            self.members |= bound_in_class(node)
        elif isinstance(node, ast.Dict):  # of such a table an object may be made: SimpleNamespace(**table)
            self.members |= {text_of(key) or "" for key in node.keys}
        elif isinstance(node, ast.Call):
            self.members |= {keyword.arg for keyword in node.keywords if keyword.arg}
            if _function_name(node) in _MAKERS:
                texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
                self.members |= {word for text in texts if isinstance(text, str) for word in re.split(r"[,\s]+", text)}
        elif isinstance(node, ast.Assign) and node is not statement.node:
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(node.value, (ast.Name, ast.Attribute)):
                    self._aliases.setdefault((statement.at, target.id), []).append(node.value)

    # --- What an exercise mentions -------------------------------------------------------------------

    def mentions(self, name: str) -> list[Mention]:
        """Everything that `name` is made of."""
        return [mention for binding in self.dependencies.walk(name) for mention in self._of(binding)]

    def line_of_use(self, name: str, mention: Mention) -> str:
        """For something that an import mentions: the line in which `name` uses it; '' for any other mention."""
        if not isinstance(mention.node, IMPORTS):
            return ""
        called = {alias for alias, dotted in mention.statement.imports.items() if mention.called in dotted}
        for binding in self.dependencies.walk(name):
            for node in binding.statement.nodes:
                if isinstance(node, ast.Name) and node.id in called:
                    return binding.statement.line(node)
        return ""

    def _of(self, binding: Binding) -> list[Mention]:
        statement, mentions = binding.statement, []
        if binding.first:
            if statement.at not in self._mentions:
                listed = (self._mention(statement, node) for node in statement.nodes)
                self._mentions[statement.at] = [mention for mention in listed if mention is not None]
            mentions = self._mentions[statement.at]
        if binding.name in statement.imports and binding.name in statement.gives | statement.may_give:
            dotted = _one_of(statement.imports[binding.name])
            return [*mentions, Mention(statement, statement.node, dotted, "library")]
        return mentions

    def _mention(self, statement: Statement, node: ast.AST) -> Mention | None:
        called, whose = "", "library"
        if isinstance(node, ast.Attribute):
            called, whose = self._resolve(statement, node)
            if node.attr in _ALL_NAMES and whose == "library":
                called = f"{called.rpartition('.')[0]}.{HIDDEN}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            called, whose = self._plain_name(statement, node.id)
        elif isinstance(node, ast.Call):
            called, whose = self._look_up(statement, node)
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
            called = "@"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            called = "solutions/" if "solutions/" in node.value.replace("\\", "/") else ""
        return Mention(statement, node, called, whose) if called else None

    def _plain_name(self, statement: Statement, name: str) -> tuple[str, str]:
        """What a name by itself mentions, where the statements that bind it do not say so."""
        if name not in statement.outside:
            return "", ""
        if name in statement.imports and name not in statement.gives | statement.may_give:
            return _one_of(statement.imports[name]), "library"
        life = self.dependencies.last(name)
        if life and name in life[0].gives:
            return "", ""
        if name in TEXT_RUN:
            return name, "library"
        return (f"{self._stars[0]}.{name}", "library") if self._stars else ("", "")

    def _look_up(self, statement: Statement, node: ast.Call | ast.Subscript) -> tuple[str, str]:
        """The name that is looked up by a text: getattr(F, 'softmax'), vars(F)['softmax'], sys.modules['torch']."""
        if isinstance(node, ast.Subscript):
            table = node.value
            if isinstance(table, ast.Attribute) and table.attr == "__dict__":
                base, whose = self._resolve(statement, table.value)
            elif isinstance(table, ast.Call) and _function_name(table) == "vars" and table.args:
                base, whose = self._resolve(statement, table.args[0])
            else:
                return (text_of(node.slice) or HIDDEN, "library") if _is_modules(table) else ("", "")
            return f"{base}.{text_of(node.slice) or HIDDEN}", whose
        function, args = self._function(statement, node), node.args
        if function in ("import_module", "__import__") and args:
            return text_of(args[0]) or HIDDEN, "library"
        if function == "vars" and args:
            base, whose = self._resolve(statement, args[0])
            return (f"{base}.{HIDDEN}", whose) if whose == "library" else ("", "")
        at = 1 if function in _OF_OBJECT else 0
        if function not in _LOOK_UPS or len(args) <= at:
            return "", ""
        base, whose = self._resolve(statement, args[0]) if at else ("?", "value")
        name = text_of(args[at])
        return (f"{base}.{name or HIDDEN}", whose) if name is not None or whose == "library" else ("", "")

    def _function(self, statement: Statement, node: ast.Call) -> str:
        """The last part of what a call's function is called where it comes from."""
        return self._resolve(statement, node.func)[0].rpartition(".")[2]

    def _resolve(self, statement: Statement, node: ast.AST) -> tuple[str, str]:
        """(the dotted name of an expression with import aliases replaced, whose it is)."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            outside = node.id in statement.outside
            first, whose = self._meaning(node.id) if outside else self._local(statement, node.id, _ALIASES)
        elif isinstance(node, ast.Subscript) and _is_modules(node.value) and (module := text_of(node.slice)):
            first, whose = module, "library"
        else:
            first, whose = "?", "value"
        return ".".join([first, *reversed(parts)]), whose

    def _local(self, statement: Statement, name: str, room: int) -> tuple[str, str]:
        """What a local variable stands for: `t = torch` makes it a library's. room: how many others may lead there."""
        for held in self._aliases.get((statement.at, name), ())[:1] if room else ():
            first, _, rest = ast.unparse(held).partition(".")
            outside = first in statement.outside
            called, whose = self._meaning(first) if outside else self._local(statement, first, room - 1)
            if whose == "library":
                return ".".join(filter(None, (called, rest))), whose
        return name, "own" if name in ("self", "cls") else "value"

    def _meaning(self, name: str, room: int = _ALIASES) -> tuple[str, str]:
        """What a name of the notebook stands for. room: how many other names may lead there."""
        if name in self._meanings:
            return self._meanings[name]
        given = self._imports_inside.get(name) or registry.GIVEN.get(name) or (name if name == "sys" else "")
        by_itself = (given, "library") if given else (name, "value")
        self._meanings[name] = by_itself  # for those that lead back here
        binding = [one for one in self.dependencies.last(name) if name in one.gives or name in one.may_give]
        dotted = {dotted for one in binding for dotted in one.imports.get(name, ())}
        first = binding[0] if binding else None
        held = _alias(first.node, name) if first is not None and len(binding) == 1 else None
        if given and not dotted and (first is None or name not in first.gives):
            meaning = by_itself  # what stands in a branch may never run and hides nothing
        elif held is not None and room:
            root, _, rest = ast.unparse(held).partition(".")
            called, whose = self._meaning(root, room - 1)
            meaning = (".".join(filter(None, (called, rest))), whose) if whose == "library" else (name, "value")
        elif dotted and (module := _one_of(dotted)):
            meaning = module, "library"
        else:
            made = binding and not dotted and all(isinstance(one.node, _DEFINITIONS) for one in binding)
            meaning = name, "own" if made else "value"
        self._meanings[name] = meaning
        return meaning

    # --- What no cell may mention --------------------------------------------------------------------

    def reaching(self, name: str) -> tuple[str, str]:
        """By what a cell, or what the exercise `name` is made of, reaches what watches it; with its line."""
        refused, looks = self._reaching
        if not refused and looks:
            used = {binding.statement.at for binding in self.dependencies.walk(name)}
            refused = {at: way for at, way in looks.items() if at in used}
        return next(iter(refused.values()), ("", ""))

    @property
    def refused(self) -> dict[int, tuple[str, str]]:
        """What is refused wherever it stands: positions of statements, and what it is, with its line."""
        return self._reaching[0]

    @cached_property
    def _reaching(self) -> tuple[dict[int, tuple[str, str]], dict[int, tuple[str, str]]]:
        """(what is refused, what only looks at objects of the process: `print(len(gc.get_objects()))`)."""
        refused: dict[int, tuple[str, str]] = {}
        looks: dict[int, tuple[str, str]] = {}
        for statement in self.dependencies.statements:
            in_place = {id(part) for node in statement.parts for part in _in_place(node)}
            keeps = not isinstance(statement.node, _LOOKING) or statement.alters
            for node in statement.parts:
                way = self._closed(statement, node, in_place)
                if (way in FINDING or way == "sys.modules") and not keeps:
                    looks.setdefault(statement.at, (way, statement.line(node)))
                elif way:
                    refused[statement.at] = way, statement.line(node)
                    break
        return refused, looks

    def _closed(self, statement: Statement, node: ast.AST, in_place: set[int]) -> str:
        """What a node mentions that is closed, '' for nothing. in_place: nodes that are used where they stand."""
        for name in _names(node):
            if name in CLOSED_NAMES | FINDING:
                return name
        if isinstance(node, IMPORTS):
            return _closed_import(node)
        if isinstance(node, ast.Attribute):
            called, whose = self._resolve(statement, node)
            of_torch = called.partition(".")[0] == "torch" or (node.attr == "_C" and whose == "value")
            if (node.attr in CLOSED_TORCH and of_torch) or called == "sys.__dict__":
                return called.lstrip("?.")
            if node.attr in ("sys", "_sys"):
                return f"….{node.attr}"
            if id(node) not in in_place and called in ("sys.modules", *(f"builtins.{one}" for one in _CALLED_ONLY)):
                return called
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in in_place:
            if self._resolve(statement, node) == ("sys", "library"):
                return "sys, handed on under another name"
            if node.id in _CALLED_ONLY and self._is_builtin(statement, node):
                return f"{node.id}, handed on under another name"
            if node.id in CLOSED_TORCH and self._plain_name(statement, node.id)[0].startswith("torch."):
                return f"torch.{node.id}"
        elif isinstance(node, (ast.Call, ast.Subscript)):
            return self._closed_look_up(statement, node)
        return ""

    def _closed_look_up(self, statement: Statement, node: ast.Call | ast.Subscript) -> str:
        called, whose = self._look_up(statement, node)
        if called == "sys":
            return "a second name for sys"
        if called == f"sys.{HIDDEN}":
            return "something of sys by a name put together at run time"
        if whose == "library" and (closed := _closed_module(called)):
            return closed
        if isinstance(node, ast.Subscript):
            return _replaced(node.slice) if _is_modules(node.value) and not isinstance(node.ctx, ast.Load) else ""
        function = self._function(statement, node)
        text = text_of(node.args[0]) if node.args else None
        if function == "pop" and isinstance(node.func, ast.Attribute) and _is_modules(node.func.value) and node.args:
            return _replaced(node.args[0])
        if function == "attrgetter" and CLOSED_TORCH & set((text or "").split(".")):
            return f"torch.{text}"
        if function in TEXT_RUN - {"__import__"} and self._is_builtin(statement, node.func) and node.args:
            words = re.findall(r"\w+", unicodedata.normalize("NFKC", text or ""))
            return next((f"{function} of `{word}`" for word in words if word in _IN_TEXT), "" if text else function)
        return ""

    def _is_builtin(self, statement: Statement, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in statement.outside and not self.dependencies.last(node.id)
        return self._resolve(statement, node)[0].startswith("builtins.")


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
    for alias in node.names:
        module = node.module or "" if isinstance(node, ast.ImportFrom) else None
        if closed := _closed_module(alias.name if module is None else f"{module}.{alias.name}"):
            return closed
        if module is None and alias.name == "sys" and alias.asname not in (None, "sys"):
            return f"import sys as {alias.asname}"
        if module is not None and (alias.name in ("sys", "_sys") or (module == "sys" and alias.name in _OF_SYS)):
            return f"from {module} import {alias.name}"
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


def _one_of(dotted: set[str]) -> str:
    """What an import stands for; '' where different libraries are tried in turn: which it is shows while it runs."""
    return min(dotted) if len({one.partition(".")[0] for one in dotted}) == 1 else ""


def _alias(node: ast.AST, name: str) -> ast.AST | None:
    """The dotted name that a statement gives another name to; None for every other statement."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(node.value, (ast.Name, ast.Attribute)):
        return None
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return node.value if any(isinstance(target, ast.Name) and target.id == name for target in targets) else None


def _is_modules(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.modules"


def _function_name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")

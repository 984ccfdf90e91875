"""What a learner's code mentions, and whose it is: a library's, the learner's own, or a value of which reading does not tell.

Names that imports give to things, other names for these, and what calls such as getattr(F, "softmax") look up are followed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grader.source.definitions import parse, too_deep
from grader.source.dependencies import IMPORTS, Binding, Dependencies, Statement, TooMuch, text_of
from grader.source.scopes import bound_in_class
from grader.source.tampering import TEXT_RUN, Closed
from grader.worker.operations import LIBRARIES

HIDDEN = "a name put together at run time"  # stands for what only running the code tells
_LOOK_UPS = frozenset({"getattr", "getattr_static", "attrgetter", "methodcaller", "__getattr__", "__getattribute__"})
_ALL_NAMES = frozenset({"__dict__", "__getattr__", "__getattribute__"})  # asked of a library, they fetch anything
_MAKERS = frozenset(
    {"namedtuple", "NamedTuple", "SimpleNamespace", "make_dataclass", "Enum", "type"}
)  # of classes and fields
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ALIASES = 20  # names that stand for each other
_DEPTH = 200  # of nested syntax that is read; nobody's attention needs more


@dataclass(frozen=True)
class Mention:
    """A node of the learner's code. called: the dotted name that it mentions, '' for none.

    whose: 'library', 'own' for what the learner made, 'value' where reading does not tell.
    """

    statement: Statement
    node: ast.AST
    called: str
    whose: str


class Reading:
    """A notebook's cells: what each name is made of, and what imports call things."""

    def __init__(self, cells: tuple[str, ...], given: tuple[tuple[str, str], ...] = ()) -> None:
        self._given = dict(given)
        self.unread = False  # whether a cell is larger than what is read
        self.members: set[str] = set()  # names of the learner's own methods, attributes and fields
        self._made: set[int] = set()  # calls inside one whose texts have been read
        self._putting: list[tuple[Statement, ast.AST, ast.AST]] = []  # what is put where: target and value
        self._mentions: dict[int, list[Mention]] = {}
        self._locals: dict[tuple[int, str], list[ast.AST]] = {}  # dotted names that a statement's variables stand for
        self._local_meanings: dict[tuple[int, str], tuple[str, str]] = {}
        self._meanings: dict[str, tuple[str, str]] = {}
        statements: list[Statement] = []
        for cell in cells:
            tree = parse(cell)
            lines = cell.splitlines() if tree is not None else []
            read = (
                [Statement(node, len(statements) + i, lines) for i, node in enumerate(tree.body)]
                if tree is not None
                else []
            )
            if (tree is None and too_deep(cell)) or any(statement.depth >= _DEPTH for statement in read):
                self.unread = True
            else:
                statements += read
        self.dependencies = Dependencies(statements)
        self.closed = Closed(self)
        self._inner: dict[str, str] = {}  # what imports inside functions call things
        self._stars: list[str] = []
        for statement in statements:
            for name, dotted in statement.imports.items():
                if name == "*":
                    self._stars += [
                        one.removesuffix(".*") for one in dotted if one.partition(".")[0] in (*LIBRARIES, "numpy")
                    ]
                elif name not in statement.gives and name not in statement.may_give:
                    self._inner[name] = _one_of(dotted)
            for node in statement.parts:
                self._note(statement, node)
        self._handed: list[tuple[str, Mention]] = []
        try:
            for put in self._putting:
                self._handed += self._handed_on(*put)
        except TooMuch:
            self.unread = True

    def _note(self, statement: Statement, node: ast.AST) -> None:
        """What is asked of the notebook as a whole."""
        if isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                self.members.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            self.members |= bound_in_class(node)
        elif isinstance(node, ast.Dict):  # of such a table an object may be made: SimpleNamespace(**table)
            self.members |= {text_of(key) or "" for key in node.keys}
        elif isinstance(node, ast.Call):
            self._note_call(statement, node)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            if node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if isinstance(node.value, (ast.Name, ast.Attribute)) and node is not statement.node:
                    for one in targets:
                        self._locals.setdefault((statement.at, one.id if isinstance(one, ast.Name) else ""), []).append(
                            node.value
                        )
                self._putting += [
                    (statement, one, node.value) for one in targets if isinstance(one, (ast.Attribute, ast.Subscript))
                ]
                self.members |= {
                    text_of(one.slice) or ""
                    for one in targets
                    if isinstance(one, ast.Subscript) and _is_members(one.value)
                }
        elif isinstance(node, ast.For) and isinstance(node.target, (ast.Attribute, ast.Subscript)):
            self._putting.append((statement, node.target, node.iter))

    def _note_call(self, statement: Statement, node: ast.Call) -> None:
        function = _called_as(node)
        self.members |= {
            keyword.arg for keyword in node.keywords if keyword.arg
        }  # whatever it makes may have them as its fields
        if function == "__setattr__" and len(node.args) > 1:
            self.members.add(text_of(node.args[-2]) or "")
        if function == "setattr" and len(node.args) == 3:
            self._putting.append((statement, node.args[0], node.args[2]))
            self.members.add(text_of(node.args[1]) or "")
        elif function in _MAKERS or (
            function == "update" and isinstance(node.func, ast.Attribute) and _is_members(node.func.value)
        ):
            if id(node) not in self._made:
                parts = list(ast.walk(node))
                self._made.update(id(part) for part in parts if isinstance(part, ast.Call))
                texts = (part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))
                self.members |= {name for text in texts for name in text.replace(",", " ").split()}

    def _handed_on(self, statement: Statement, target: ast.AST, value: ast.AST) -> Iterator[tuple[str, Mention]]:
        """What is put into a library's module or class: whoever uses the library may find it there."""
        library, whose = self.resolve(statement, target)
        if whose == "library":
            names = [node.id for node in ast.walk(value) if isinstance(node, ast.Name)]
            for node in ast.walk(value):
                mention = self._mention(statement, node)
                if mention is not None:
                    yield library, mention
            for binding in self.dependencies.walk(*names, at=statement.at):
                yield from ((library, mention) for mention in self._of(binding))

    def mentions(self, name: str) -> list[tuple[str, Mention]]:
        """Everything that `name` is made of; with the library into which it was put where it came that way."""
        return [
            ("", mention) for binding in self.dependencies.walk(name) for mention in self._of(binding)
        ] + self._handed

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
        statement, found = binding.statement, []
        if binding.first:
            if statement.at not in self._mentions:
                listed = (self._mention(statement, node) for node in statement.nodes)
                self._mentions[statement.at] = [mention for mention in listed if mention is not None]
            found = self._mentions[statement.at]
        if binding.name in statement.imports and (
            binding.name in statement.gives or binding.name in statement.may_give
        ):
            dotted = _one_of(statement.imports[binding.name])
            return [*found, Mention(statement, statement.node, dotted, "library")]
        return found

    def _mention(self, statement: Statement, node: ast.AST) -> Mention | None:
        if isinstance(node, ast.Attribute):
            called, whose = self.resolve(statement, node)
            if node.attr in _ALL_NAMES and whose == "library":
                called = f"{called.rpartition('.')[0]}.{HIDDEN}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            called, whose = self.plain(statement, node.id)
        elif isinstance(node, ast.Call):
            called, whose = self._looked_up(statement, node)
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
            called, whose = "@", "library"
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "solutions/" in node.value.replace("\\", "/")
        ):
            called, whose = "solutions/", "library"
        else:
            return None
        return Mention(statement, node, called, whose) if called else None

    def plain(self, statement: Statement, name: str) -> tuple[str, str]:
        """What a name by itself mentions, where the statements that bind it do not say so."""
        if name not in statement.outside:
            return "", ""
        if name in statement.imports and name not in statement.gives and name not in statement.may_give:
            return _one_of(statement.imports[name]), "library"
        life = self.dependencies.last(name)
        if life and name in life[0].gives:
            return "", ""
        if name in TEXT_RUN:
            return name, "library"
        return (f"{self._stars[0]}.{name}", "library") if self._stars else ("", "")

    def _looked_up(self, statement: Statement, node: ast.Call) -> tuple[str, str]:
        """The name that a call such as getattr(F, 'softmax') looks up."""
        function, args = _called_as(node), node.args
        if function == "vars" and args:
            base, whose = self.resolve(statement, args[0])
            return (f"{base}.{HIDDEN}", whose) if whose == "library" else ("", "")
        if function == "import_module" and args:
            return text_of(args[0]) or HIDDEN, "library"
        if function not in _LOOK_UPS:
            return "", ""
        of_object = function in ("getattr", "getattr_static")
        at = 1 if of_object else 0
        if len(args) <= at:
            return "", ""
        base, whose = self.resolve(statement, args[0]) if of_object else ("?", "value")
        name = text_of(args[at])
        if name is None and whose != "library":
            return "", ""
        return f"{base}.{name or HIDDEN}", whose

    def resolve(
        self, statement: Statement, node: ast.AST, meaning: Callable[[str], tuple[str, str]] | None = None
    ) -> tuple[str, str]:
        """(the dotted name of an expression with import aliases replaced, whose it is). meaning: of a name, by default its last."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            module = text_of(node.slice) if isinstance(node, ast.Subscript) and _is_modules(node.value) else None
            return ".".join([module or "?", *reversed(parts)]), "library" if module else "value"
        if node.id in statement.outside:
            first, whose = (meaning or self._meaning)(node.id)
        else:
            first, whose = self._local(statement, node.id)
        return ".".join([first, *reversed(parts)]), whose

    def _local(self, statement: Statement, name: str, room: int = 4) -> tuple[str, str]:
        """What a local variable stands for: `t = torch` makes it a library's. room: how many others may lead there."""
        key = statement.at, name
        if key not in self._local_meanings:
            self._local_meanings[key] = (
                name,
                "own" if name in ("self", "cls") else "value",
            )  # for those that lead back here, too
            for held in self._locals.get(key, ())[: _ALIASES if room else 0]:
                first, *rest = ast.unparse(held).split(".")
                called, whose = (
                    self._meaning(first) if first in statement.outside else self._local(statement, first, room - 1)
                )
                if whose == "library":
                    self._local_meanings[key] = ".".join([called, *rest]), "library"
                    break
        return self._local_meanings[key]

    def _meaning(self, name: str) -> tuple[str, str]:
        if name not in self._meanings:
            self._meanings[name] = self._bound_to(name, self.dependencies.last(name), _ALIASES)
        return self._meanings[name]

    def _bound_to(self, name: str, life: list[Statement], room: int) -> tuple[str, str]:
        """What a name stands for, where these statements made its value. room: how many other names may lead there."""
        binding = [one for one in life if name in one.gives or name in one.may_give]
        dotted = {dotted for one in binding for dotted in one.imports.get(name, ())}
        given = self._inner.get(name) or self._given.get(name) or (name if name == "sys" else "")
        if given and not dotted and not (binding and name in binding[0].gives):
            return given, "library"  # what stands in a branch may never run and hides nothing
        if len(binding) == 1 and (held := _alias(binding[0].node, name)) is not None and room:
            at = binding[0].at
            called, whose = self.resolve(
                binding[0], held, lambda other: self._bound_to(other, self.dependencies.live(other, at), room - 1)
            )
            return (called, whose) if whose == "library" else (name, "value")
        if dotted:
            found = _one_of(dotted)
            return (found, "library") if found else (name, "value")
        made = all(isinstance(one.node, _DEFINITIONS) for one in binding)
        return name, "own" if binding and made else "value"


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
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "modules"
        and isinstance(node.value, ast.Name)
        and node.value.id == "sys"
    )


def _is_members(node: ast.AST) -> bool:
    """True for `vars(x)` and `x.__dict__`, where x is no module of a library: what is put there is a name of the learner's."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "__dict__"
        or isinstance(node, ast.Call)
        and _called_as(node) == "vars"
    )


def _called_as(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")

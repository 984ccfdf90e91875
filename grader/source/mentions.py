"""What a learner's code mentions, and whose it is: a library's, the learner's own, or a value of which reading does not tell.

A plain reading of names: what imports and assignments call a module is followed, a name that is looked up by a text is read
(`getattr(F, "softmax")`), and nothing is computed: what a name that is put together comes to is seen while it runs.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from grader.source.definitions import code_lines, function_name, is_too_deep, parse
from grader.source.dependencies import Dependencies, Statement, text_of
from grader.source.scopes import DEFINITIONS, IMPORTS, bound_in_class
from grader.worker.operations import LIBRARIES

TEXT_RUN = frozenset({"eval", "exec", "compile", "__import__"})
HIDDEN = "a name put together at run time"  # stands for what only running the code tells
_OF_OBJECT = frozenset({"getattr", "getattr_static"})
_LOOK_UPS = _OF_OBJECT | {"attrgetter", "methodcaller", "__getattr__", "__getattribute__"}
_ALL_NAMES = frozenset({"__dict__", "__getattr__", "__getattribute__"})  # asked of a library, they fetch anything
_MAKERS = frozenset(  # of classes and fields
    {"namedtuple", "NamedTuple", "SimpleNamespace", "make_dataclass", "Enum", "type", "setattr", "__setattr__"}
)
_MAX_ALIASES = 20  # names that stand for each other
_MAX_DEPTH = 200  # of nested syntax that is read; nobody's attention needs more


@dataclass(frozen=True)
class Mention:
    """A node of the learner's code. name: the dotted name that it mentions.

    origin: 'library', 'own' for what the learner made, 'value' where reading does not tell.
    """

    statement: Statement
    node: ast.AST
    name: str
    origin: str

    @property
    def last_part(self) -> str:
        return self.name.rpartition(".")[2]


class Reading:
    """A notebook's cells: what each name is made of, and what imports call things."""

    def __init__(self, cells: tuple[str, ...], given_names: tuple[tuple[str, str], ...] = ()) -> None:
        self._given_names = dict(given_names)
        self.has_unread_cells = False  # whether a cell is larger than what is read
        self.members: set[str] = set()  # names of the learner's own methods, attributes and fields
        self._in_makers: set[ast.AST] = set()  # parts of calls that make a class, which may lie in each other
        self._imports_inside: dict[str, str] = {}  # what imports inside functions and branches call things
        self._stars: list[str] = []
        self._aliases: dict[tuple[Statement, str], ast.expr] = {}  # names that a statement gives to what has one
        self._meanings: dict[str, tuple[str, str]] = {}
        self._mentions: dict[Statement, list[Mention]] = {}
        statements: list[Statement] = []
        for cell in cells:
            tree = parse(cell)
            body, lines = (tree.body, code_lines(cell)) if tree is not None else ([], [])
            cell_statements = [Statement(node, lines) for node in body]
            if is_too_deep(cell) or any(statement.depth >= _MAX_DEPTH for statement in cell_statements):
                self.has_unread_cells = True
            else:
                statements += cell_statements
        self.dependencies = Dependencies(statements)
        for statement in statements:
            for name, targets in statement.imports.items():
                if name == "*":
                    self._stars += [star[:-2] for star in targets if star.partition(".")[0] in (*LIBRARIES, "numpy")]
                elif name not in statement.gives and name not in statement.may_give:
                    self._imports_inside[name] = _import_target(targets)
            for node in statement.parts:
                self._note(statement, node)

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
            if function_name(node) in _MAKERS and node not in self._in_makers:
                self._in_makers |= set(ast.walk(node))
                texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
                self.members |= {word for text in texts if isinstance(text, str) for word in re.split(r"[,\s]+", text)}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, (ast.Name, ast.Attribute)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    self._aliases.setdefault((statement, target.id), node.value)

    def mentions(self, name: str) -> list[Mention]:
        """Everything that `name` is made of."""
        mentions: list[Mention] = []
        for _, statement, alias, first in self.dependencies.walk(name):
            if first and statement not in self._mentions:
                optional_mentions = (self._mention(statement, node) for node in statement.nodes)
                self._mentions[statement] = [mention for mention in optional_mentions if mention is not None]
            mentions += self._mentions[statement] if first else []
            if alias in statement.imports and alias in statement.gives | statement.may_give:
                mentions.append(Mention(statement, statement.node, _import_target(statement.imports[alias]), "library"))
        return mentions

    def line_of_use(self, name: str, mention: Mention) -> str:
        """For something that an import mentions: the line in which `name` uses it; '' for any other mention."""
        if not isinstance(mention.node, IMPORTS):
            return ""
        aliases = {alias for alias, targets in mention.statement.imports.items() if mention.name in targets}
        for binding in self.dependencies.walk(name):
            for node in binding.statement.nodes:
                if isinstance(node, ast.Name) and node.id in aliases:
                    return binding.statement.line(node)
        return ""

    def _mention(self, statement: Statement, node: ast.AST) -> Mention | None:
        name, origin = self.mentioned_name(statement, node) if not isinstance(node, ast.Subscript) else ("", "library")
        if isinstance(node, ast.Attribute) and node.attr in _ALL_NAMES and origin == "library":
            name = f"{name.rpartition('.')[0]}.{HIDDEN}"
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
            name = "@"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = "solutions/" if "solutions/" in node.value.replace("\\", "/") else ""
        return Mention(statement, node, name, origin) if name else None

    def mentioned_name(self, statement: Statement, node: ast.AST) -> tuple[str, str]:
        """(the dotted name that a node mentions, '' for none; whose it is)."""
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            return self.resolve(statement, node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return self._plain_name(statement, node.id)
        return self._look_up(statement, node) if isinstance(node, ast.Call) else ("", "library")

    def _plain_name(self, statement: Statement, name: str) -> tuple[str, str]:
        """What a name by itself mentions, where the statements that bind it do not say so."""
        if name not in statement.globals:
            return "", ""
        if name in statement.imports and name not in statement.gives | statement.may_give:
            return _import_target(statement.imports[name]), "library"
        statements = self.dependencies.last_statements(name)
        if statements and name in statements[0].gives:
            return "", ""
        if name in TEXT_RUN:
            return name, "library"
        return (f"{self._stars[0]}.{name}", "library") if self._stars else ("", "")

    def _look_up(self, statement: Statement, node: ast.Call) -> tuple[str, str]:
        """The name that a call looks up by a text: getattr(F, 'softmax')."""
        function, args = self.function(statement, node), node.args
        if function in ("import_module", "__import__") and args:
            return text_of(args[0]) or HIDDEN, "library"
        if function == "vars" and args:
            base, origin = self.resolve(statement, args[0])
            return (f"{base}.{HIDDEN}", origin) if origin == "library" else ("", "")
        index = 1 if function in _OF_OBJECT else 0
        if function not in _LOOK_UPS or len(args) <= index:
            return "", ""
        base, origin = self.resolve(statement, args[0]) if index else ("?", "value")
        name = text_of(args[index])
        return (f"{base}.{name or HIDDEN}", origin) if name is not None or origin == "library" else ("", "")

    def function(self, statement: Statement, node: ast.Call) -> str:
        """The last part of what a call's function is called where it comes from."""
        return self.resolve(statement, node.func)[0].rpartition(".")[2]

    def resolve(self, statement: Statement, node: ast.AST) -> tuple[str, str]:
        """(the dotted name of an expression with import aliases replaced, whose it is); of F.softmax and of vars(F)['softmax']."""
        parts: list[str] = []
        while part := _part(node):
            node, name = part
            parts.append(name)
        if isinstance(node, ast.Name):
            first, origin = self._name(statement, node.id)
        elif (
            isinstance(node, ast.Subscript)
            and (module := text_of(node.slice))
            and self.resolve(statement, node.value)[0] == "sys.modules"
        ):
            first, origin = module, "library"
        else:
            first, origin = "?", "value"
        return ".".join([first, *reversed(parts)]), origin

    def _name(self, statement: Statement, name: str, budget: int = _MAX_ALIASES) -> tuple[str, str]:
        """What a name in a statement stands for. budget: how many other names may lead there."""
        if name in statement.globals:
            return self._meaning(name, budget)
        return self._alias(statement, name, budget) or (name, "own" if name in ("self", "cls") else "value")

    def _alias(self, statement: Statement, name: str, budget: int) -> tuple[str, str] | None:
        """What of a library's a statement calls by another name, as in `t = torch`; None for any other name."""
        value = self._aliases.get((statement, name))
        if value is None or not budget:
            return None
        first, *rest = ast.unparse(value).split(".")
        name, origin = self._name(statement, first, budget - 1)
        return (".".join([name, *rest]), origin) if origin == "library" else None

    def _meaning(self, name: str, budget: int) -> tuple[str, str]:
        """What a name of the notebook stands for."""
        if name in self._meanings:
            return self._meanings[name]
        library = self._imports_inside.get(name) or self._given_names.get(name) or (name if name == "sys" else "")
        default = (library, "library") if library else (name, "value")
        self._meanings[name] = default  # for those that lead back here
        statements = self.dependencies.last_statements(name)
        bindings = [statement for statement in statements if name in statement.gives or name in statement.may_give]
        targets = {dotted for statement in bindings for dotted in statement.imports.get(name, ())}
        is_plain = len(bindings) == 1 and isinstance(bindings[0].node, (ast.Assign, ast.AnnAssign))
        alias = self._alias(bindings[0], name, budget) if is_plain else None
        meaning = name, "value"
        if library and not targets and not (bindings and name in bindings[0].gives):
            meaning = default  # what stands in a branch may never run and hides nothing
        elif alias:
            meaning = alias
        elif targets and (module := _import_target(targets)):
            meaning = module, "library"
        elif bindings and not targets and all(isinstance(statement.node, DEFINITIONS) for statement in bindings):
            meaning = name, "own"
        self._meanings[name] = meaning
        return meaning


def _import_target(targets: set[str]) -> str:
    """What an import stands for; '' where different libraries are tried in turn: which it is shows while it runs."""
    return min(targets) if len({dotted.partition(".")[0] for dotted in targets}) == 1 else ""


def _part(node: ast.AST) -> tuple[ast.AST, str] | None:
    """(x, 'name') of x.name, x.__dict__['name'] and vars(x)['name']; None of any other node."""
    match node:
        case ast.Attribute(value=owner, attr=name):
            return owner, name
        case ast.Subscript(value=ast.Attribute(value=owner, attr="__dict__"), slice=key):
            return owner, text_of(key) or HIDDEN
        case ast.Subscript(value=ast.Call(func=ast.Name(id="vars"), args=[owner, *_]), slice=key):
            return owner, text_of(key) or HIDDEN
    return None

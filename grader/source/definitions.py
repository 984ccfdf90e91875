"""Which names a cell's code defines and uses, read without running it."""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from functools import lru_cache

from grader.source.scopes import names_of

MAX_CODE = 200_000  # characters of one cell that are parsed
MAX_CACHED = 4_000  # of one whose tree is kept among others: a tree takes a hundred times the memory of its text
_DEFINITION = re.compile(
    r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+([^\W\d]\w*)|^([^\W\d]\w*)[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE
)


def parse(text: str) -> ast.Module | None:
    """The syntax tree of a stranger's code, not to be changed; None where it is no Python, too long or nested too deeply."""
    return _parse_cached(text)[0]


def is_too_deep(text: str) -> bool:
    """Whether code that `parse` gives up is too long or too deep for it: where more stack is allowed, it may still be Python."""
    return _parse_cached(text)[1]


def _parse_cached(text: str) -> tuple[ast.Module | None, bool]:
    return _parse_short(text) if len(text) <= MAX_CACHED else _parse_long(text)


def _parse(text: str) -> tuple[ast.Module | None, bool]:
    """(the tree or None, whether the code is too long or too deep)."""
    if len(text) > MAX_CODE:
        return None, True
    try:
        with warnings.catch_warnings():  # of invalid escapes, which are the learner's affair
            warnings.simplefilter("ignore")
            return ast.parse(text), False
    except (RecursionError, MemoryError):
        return None, True
    except (SyntaxError, ValueError):
        return None, False


_parse_short = lru_cache(maxsize=128)(_parse)  # one cell is asked for its names again and again
_parse_long = lru_cache(maxsize=1)(_parse)  # a long one, too, mostly in a row


def code_lines(text: str) -> list[str]:
    """The lines of code as Python counts them: neither a form feed nor what Unicode separates lines by, in a comment, ends one."""
    return re.split(r"\r\n?|\n", text)


def first_line(statement: ast.stmt) -> int:
    """The number of a statement's first line, decorators included, from 0."""
    return min([statement.lineno, *(decorator.lineno for decorator in getattr(statement, "decorator_list", ()))]) - 1


def normalize(text: str) -> str:
    """A cell's text as it is compared with the course's: without space at the ends of its lines."""
    return "\n".join(map(str.rstrip, text.strip().split("\n")))


def defined_names(text: str) -> frozenset[str]:
    """Names that a cell binds in the notebook: by def, class, assignment or import, nested blocks included.

    Of code that does not parse, what looks like a definition counts.
    """
    tree = parse(text)
    if tree is None:
        names = (definition or target for definition, target in _DEFINITION.findall(text[:MAX_CODE]))
        return frozenset(unicodedata.normalize("NFKC", name) for name in names)
    return frozenset(name for statement in tree.body for name in names_of(statement).binds)


def root(node: ast.AST) -> str:
    """The name at the beginning of `name.a[0].b`, '' where something else stands there."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def dotted_name(node: ast.AST | None) -> str:
    """'np.linalg.norm' of such an expression, '' of any other."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def called_name(node: ast.AST) -> str:
    """'np.linalg.norm' of a call of it, '' of any other node."""
    return dotted_name(node.func) if isinstance(node, ast.Call) else ""


def function_name(node: ast.Call) -> str:
    """'norm' of a call of 'np.linalg.norm', and of whatever is called by that name: `layers[0].norm()`."""
    return str(getattr(node.func, "attr", None) or getattr(node.func, "id", ""))


def used_names(text: str) -> frozenset[str]:
    """Names that a cell reads, anywhere in it."""
    tree = parse(text)
    if tree is None:
        return frozenset(re.findall(r"[^\W\d]\w*", text[:MAX_CODE]))
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return frozenset(name.id for name in names if isinstance(name.ctx, ast.Load))


def changed_definitions(text: str, original: str) -> list[str]:
    """The functions and classes of a cell's original text that its text defines in another way."""
    definitions, originals = (
        {
            node.name: ast.dump(node)
            for node in (tree.body if tree else ())
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }
        for tree in map(parse, (text, original))
    )
    return [name for name, dump in originals.items() if definitions.get(name, dump) != dump]

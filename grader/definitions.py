"""Which names a cell's code defines and uses, read without running it."""

from __future__ import annotations

import ast
import dis
import re
import unicodedata
import warnings
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

MAX_CODE = 200_000  # characters of one cell that are parsed
MAX_KEPT = 4_000  # of one whose tree is kept: a tree takes a hundred times the memory of its text
_GLOBAL, _NAME = dis.opmap["LOAD_GLOBAL"], dis.opmap["LOAD_NAME"]
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITION = re.compile(
    r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+([^\W\d]\w*)|^([^\W\d]\w*)[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE
)


def parse(text: str) -> ast.Module | None:
    """The syntax tree of a stranger's code, not to be changed; None where it is no Python, too long or nested too deeply."""
    if len(text) > MAX_CODE:
        return None
    return _kept(text) if len(text) <= MAX_KEPT else _parse(text)


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():  # of invalid escapes, which are the learner's affair
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _parse(text: str) -> ast.Module | None:
    try:
        return _tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def too_deep(text: str) -> bool:
    """Whether code that `parse` gives up is too long or too deep for it: where more stack is allowed, it may still be Python."""
    if len(text) > MAX_CODE:
        return True
    try:
        _tree(text)
    except (RecursionError, MemoryError):
        return True
    except (SyntaxError, ValueError):
        pass
    return False


_kept = lru_cache(maxsize=128)(_parse)  # one cell is asked for its names again and again


def defined_names(text: str) -> frozenset[str]:
    """Names that a cell binds in the notebook: by def, class, assignment or import, nested blocks included.

    Of code that does not parse, what looks like a definition counts.
    """
    tree = parse(text)
    if tree is None:
        found = (first or second for first, second in _DEFINITION.findall(text[:MAX_CODE]))
        return frozenset(unicodedata.normalize("NFKC", name) for name in found)
    return frozenset(name for statement in tree.body for name in bound_names(statement))


def bound_names(statement: ast.AST) -> set[str]:
    """Names that a statement at the top level binds there."""
    names: set[str] = set()
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                names.add(node.id)
        elif not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
    return names


def changed_names(statement: ast.AST) -> set[str]:
    """Names of what a top-level statement changes without binding a name: by its attributes, its items or a method's call."""
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete)):
        changed = [node for node in ast.walk(statement) if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        sets = isinstance(called, ast.Name) and called.id in ("setattr", "delattr")
        changed = statement.value.args[:1] if sets else [called] if isinstance(called, ast.Attribute) else []
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return set()
    else:
        blocks = (getattr(statement, part, ()) for part in ("body", "orelse", "handlers", "finalbody"))
        return {name for block in blocks for inner in block for name in changed_names(inner)}
    return {name for node in changed if (name := root(node))}


def root(node: ast.AST) -> str:
    """The name at the beginning of `name.a[0].b`, '' where something else stands there."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def used_names(text: str) -> frozenset[str]:
    """Names that a cell reads, anywhere in it."""
    tree = parse(text)
    if tree is None:
        return frozenset(re.findall(r"[^\W\d]\w*", text[:MAX_CODE]))
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


def globals_read(statement: ast.stmt) -> tuple[str, ...]:
    """The global names that a top-level statement reads; local variables of its functions are not among them."""
    code = compiled(statement)
    return () if code is None else tuple(dict.fromkeys(globals_named(code)))


def compiled(statement: ast.stmt) -> CodeType | None:
    """The code of a top-level statement; None where Python refuses it."""
    try:
        return compile(ast.Module([statement], []), "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def globals_named(code: CodeType) -> Iterator[str]:
    """The global names that code and the functions inside it read, each function's once, in the order of reading."""
    waiting = [code]
    while waiting:
        code = waiting.pop()
        yield from dict.fromkeys(_loaded(code))
        waiting += [constant for constant in reversed(code.co_consts) if isinstance(constant, CodeType)]


def _loaded(code: CodeType) -> Iterator[str]:
    """What dis.get_instructions() tells of names, whose time grows with the square of the number of branches."""
    names, extended = code.co_names, 0
    for step, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        if step == dis.EXTENDED_ARG:  # the next step's argument is longer than a byte
            extended = (extended | argument) << 8
            continue
        if step == _GLOBAL:
            yield names[(extended | argument) >> 1]  # its last bit says whether a call follows
        elif step == _NAME:
            yield names[extended | argument]
        extended = 0

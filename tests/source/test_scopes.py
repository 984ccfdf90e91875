"""Which names statements bind and read: the walk over the tree against Python's own compiler."""

from __future__ import annotations

import ast
import inspect
import symtable
import time
from itertools import combinations_with_replacement, product
from pathlib import Path
from types import CodeType

import pytest

import grader
from grader.notebook.reach import names_in
from grader.source.scopes import names_of
from tests.conftest import WHOLE_GRID

SOURCES = [path for path in sorted(Path(grader.__file__).parent.rglob("*.py")) if "_course" not in path.parts]
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_OF_CLASSES = {
    "__name__",
    "__module__",
    "__qualname__",
    "__annotations__",
    "__class__",
    "super",
    "AssertionError",
}  # said by no name

# Where a name may stand, and around what.
PLACES = (
    "n",
    "f(n)",
    "[n for x in y]",
    "[x for n in n]",
    "[x for x in y if n]",
    "[n for n in y]",
    "{n: n for n in y for z in n}",
    "[z for x in y for z in n]",
    "(n for x in y)",
    "[(n := x) for x in y]",
    "lambda n: n",
    "lambda x=n: x",
    "lambda: n",
    "lambda: [n for n in y]",
    "(n := 1)",
    "f'{n!r:{n}}'",
    "[lambda: n for n in y]",
    "lambda x: (n := x, n)",
    "n.a[n]",
    "n @ n",
)
STATEMENTS = (
    "n = {}",
    "n += {}",
    "n: t = {}",
    "n: t",
    "n.a = {}",
    "n[0] = {}",
    "n, (m, *o) = {}",
    "del n",
    "for n in {}: m",
    "while {}: n = 1",
    "if {}: n = 1\nelse: m = n",
    "with {} as n: m",
    "try: {}\nexcept E as n: n\nelse: m\nfinally: o",
    "import n.m",
    "from n import m as o",
    "from n import *",
    "match {}:\n    case {'a': n, **m}: n\n    case [o, *p]: o\n    case K(n) as q: q",
    "class A(B, k=n): n = {}",
    "class A:\n    n = 1\n    m = {}\n    def f(self): return n, {}",
    "class A:\n    def n(self): return {}",
    "def f(n): return {}",
    "def f(x=n): return {}",
    "def f():\n    n = 1\n    return {}",
    "def f():\n    global n\n    n = {}",
    "def f():\n    n = 1\n    def g():\n        nonlocal n\n        n = {}\n    return g",
    "@n\ndef f(*n, m=o, **p): return {}",
    "async def f():\n    async for n in {}: await n",
    "def f():\n    class n:\n        m = {}\n    return n",
    "def f():\n    import n\n    return {}",
    "def f():\n    for n in {}: pass",
    "{}",
    "def f():\n    def n(): return {}\n    return n",
    "def f():\n    global n\n    class A:\n        m = {}",
    "def f():\n    with a as n: yield {}",
    "def f():\n    try: m\n    except E as n: return {}",
    "def f():\n    match m:\n        case n: return {}",
    "global n\nn = {}",
)


# Each place beside each, and itself; WHOLE_GRID=1 has each first once.
PAIRS = [*product(PLACES, PLACES)] if WHOLE_GRID else [*combinations_with_replacement(PLACES, 2)]


def _compiled(node: ast.stmt) -> CodeType:
    return compile(ast.Module([node], []), "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _told_by_the_compiler(code: CodeType) -> tuple[set[str], set[str]]:
    """Global names that are read while the code runs, and those that its functions read."""
    bare = code.replace(co_consts=tuple(None if isinstance(one, CodeType) else one for one in code.co_consts))
    now, later = set(names_in(bare)), set()
    for one in code.co_consts:
        if isinstance(one, CodeType) and one.co_flags & inspect.CO_OPTIMIZED and one.co_name not in _COMPREHENSIONS:
            later |= set(names_in(one))
        elif isinstance(one, CodeType):
            inner = _told_by_the_compiler(one)
            now, later = now | inner[0], later | inner[1]
    return now, later


def _agrees(node: ast.stmt, text: str) -> None:
    """text: the statement's own."""
    names, told = names_of(node), _told_by_the_compiler(_compiled(node))
    assert told[0] - _OF_CLASSES <= names.now and told[1] - _OF_CLASSES <= names.later, text
    # What annotates local variables is read by nobody, and what can never run is left out by the compiler.
    table = symtable.symtable(text, "<cell>", "exec")
    inside = [table]
    for each in inside:
        inside += each.get_children()
    everywhere = {
        symbol.get_name()
        for each in inside
        for symbol in each.get_symbols()
        if symbol.is_global() or each is table or each.get_type() == "class"
    }
    assert names.now | names.later <= everywhere, text
    parts = [*ast.walk(node)]
    deleted = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Del)}
    assigned = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    assert assigned - deleted <= names.binds | names.sets | {"*"}, text
    walrus = {
        part.target.id for part in parts if isinstance(part, ast.NamedExpr)
    }  # symtable keeps quiet about one inside [ … for … ]
    assert names.binds - {"*"} <= assigned | walrus, text


def test_names_of_real_code_are_those_that_the_compiler_finds():
    wrong = []
    for path in SOURCES:
        text = path.read_text("utf-8")
        lines = text.splitlines(keepends=True)
        for node in ast.parse(text).body:
            if not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                try:
                    first = min([node, *getattr(node, "decorator_list", ())], key=lambda part: part.lineno)
                    _agrees(node, "".join(lines[first.lineno - 1 : node.end_lineno]))
                except AssertionError as error:
                    wrong.append(f"{path}:{node.lineno}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_names_of_every_form_are_those_that_the_compiler_finds(statement):
    tried = 0
    for first, second in PAIRS:
        text = statement.replace("{}", f"(({first}), ({second}))")
        try:
            compile(text, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except SyntaxError:
            continue
        tried += 1
        for node in ast.parse(text).body:
            _agrees(node, ast.unparse(node))
    assert tried > len(PAIRS) / 2


@pytest.mark.parametrize(
    "text, now, later",
    [
        ("print([product for product in (1, 2)])", {"print"}, set()),
        ("[y for x in x for y in z]", {"x", "z"}, set()),
        ("def f(a, b=c): return a + d, [e for e in g]", {"c"}, {"d", "g"}),
        ("class A(B):\n    h = i\n    def f(self): return h", {"B", "i"}, {"h"}),
    ],
)
def test_what_is_read_at_once_and_what_later(text, now, later):
    names = names_of(ast.parse(text).body[0])
    assert (names.now, names.later) == (now, later)


def test_a_time_in_proportion_to_the_size():
    def seconds(n: int) -> float:
        nested = "".join(f"{' ' * i}def f{i}(a{i}):\n" for i in range(90))
        node = ast.parse(nested + "".join(f"{' ' * 90}x{i} = y{i}, [z{i} for a in b{i}]\n" for i in range(n))).body[0]
        started = time.process_time()
        assert len(names_of(node).later) == 3 * n
        return time.process_time() - started

    assert seconds(6400) < 20 * max(seconds(1600), 0.02)


def test_finally_within_finally_costs_nothing():
    """The compiler writes each `finally` twice: thirteen of them, a stranger's 1.3 kB, took 9 GB."""
    text = "def f():\n" + "".join(f"{'  ' * i} try: a{i}\n{'  ' * i} finally:\n" for i in range(40)) + " " * 90 + "b\n"
    started = time.process_time()
    names = names_of(ast.parse(text).body[0])
    assert names.later == {"b", *(f"a{i}" for i in range(40))} and time.process_time() - started < 1

"""The course's solution, once it is open; after a pass the learner's code beside it, and one line on what to notice."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.course import references
from grader.notebook import verdicts
from grader.notebook.hints import HINTS
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record
from grader.notebook.showing import Shown, colored, sentence
from grader.notebook.target import Target
from grader.reports import html, text
from grader.reports.html import render
from grader.source.definitions import parse
from grader.util.words import counted

ATTEMPTS = 3  # different states of the code, after which the solution opens
_LOOPS = (ast.For, ast.While, ast.comprehension)
_SIGNS = {ast.MatMult: "@", ast.Pow: "**", ast.Div: "/", ast.FloorDiv: "//", ast.BitAnd: "&", ast.Invert: "~"}


def solution(target: Target, record: Record) -> Shown:
    """The course's solution, after a pass beside the learner's own; while it is closed, what opens it."""
    name, entry = target.name, record.entry(target.name)
    if not (entry.passed or entry.hints >= HINTS or entry.attempts >= ATTEMPTS):
        so_far = f"{counted(entry.hints, 'hint')} and {counted(entry.attempts, 'different attempt')}"
        closed = (
            f"The solution of {name} opens after a pass, after hint {HINTS}, or after {ATTEMPTS} different "
            f"attempts. So far: {so_far}. hint({target.argument}) gives the next hint."
        )
        return sentence(closed, more=record.take_notes())
    course, verdict = references.solution_text(kernel_course(), name), verdicts.last(target)
    own = own_code(target) if entry.passed and verdict is not None and verdict.passed else ""
    if own:
        return _comparison(name, own, course, record.take_notes())
    return sentence(course, f"The course's solution of {name}", code=True, more=record.take_notes())


def own_code(target: Target) -> str:
    """The statements that made the learner's object, imports aside; '' where no text of them is known."""
    cells = target.sources.cells if target.sources is not None and callable(target.obj) else ()
    return "\n\n".join(cell.strip("\n") for cell in cells if not _is_import(cell))


def _is_import(cell: str) -> bool:
    tree = parse(cell)
    return tree is not None and all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body)


def _comparison(name: str, own: str, course: str, notes: Sequence[str]) -> Shown:
    """The two solutions, side by side where there is room."""
    title, difference, course = f"Two ways to write {name}", _difference(own, course), _without_docstrings(course)
    plain = [title, difference, f"Yours\n\n{_indented(own)}", f"The course's\n\n{_indented(course)}", *notes]
    columns = (("Yours", colored(own)), ("The course's", colored(course)))
    body = render("beside.html", title=title, noticed=difference, columns=columns, notes=notes)
    return Shown("\n\n".join(part for part in plain if part), html.STYLE + body)


def _difference(own: str, course: str) -> str:
    """One sentence on what tells the two apart."""
    trees = [tree for code in (own, course) if (tree := parse(code)) is not None]
    if len(trees) < 2:
        return ""
    if _bare(trees[0]) == _bare(trees[1]):
        return "Notice: the two differ only in names, layout and comments."
    loops, others = (sum(isinstance(node, _LOOPS) for node in ast.walk(tree)) for tree in trees)
    if loops and not others:
        return f"Notice: yours has {_loops(loops)}; the course's has none and works on whole arrays instead."
    if others and not loops:
        return f"Notice: the course's has {_loops(others)}; yours has none."
    mine, theirs = _operations(trees[0]), _operations(trees[1])
    if mine - theirs and theirs - mine:
        return f"Notice: where the course's code uses {_listed(theirs - mine)}, yours uses {_listed(mine - theirs)}."
    if theirs - mine:
        return f"Notice: the course's also uses {_listed(theirs - mine)}; yours does not."
    if mine - theirs:
        return f"Notice: yours also uses {_listed(mine - theirs)}; the course's does not."
    sizes = [sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) for tree in trees]
    if sizes[0] != sizes[1]:
        return f"Notice: both use the same operations, yours in {sizes[0]} statements and the course's in {sizes[1]}."
    return "Notice: both use the same operations, combined in different ways."


def _loops(number: int) -> str:
    return "a loop" if number == 1 else f"{number} loops"


def _listed(operations: set[str]) -> str:
    return text.listed([f"`{one}`" for one in sorted(operations)], 3)


def _operations(tree: ast.AST) -> set[str]:
    """The functions and methods that are called, and the operators that matter."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            names.add(str(getattr(node.func, "attr", None) or getattr(node.func, "id", "")))
        elif isinstance(node, (ast.BinOp, ast.UnaryOp)):
            names.add(_SIGNS.get(type(node.op), ""))
    return names - {"", "range", "len", "super", "__init__"}


def _bare(tree: ast.Module) -> str:
    """The code without docstrings and annotations, every name called by its place."""
    names: dict[str, str] = {}
    bare = ast.parse(ast.unparse(tree))
    for node in ast.walk(bare):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
            if isinstance(node, ast.FunctionDef):
                node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation, node.arg = None, names.setdefault(node.arg, f"name{len(names)}")
    for node in ast.walk(bare):  # in a second walk, when all parameters are known
        if isinstance(node, ast.Name):
            node.id = names.setdefault(node.id, f"name{len(names)}")
    return ast.unparse(bare)


def _without_docstrings(code: str) -> str:
    """The lines of code without what the task has said already."""
    tree, lines = parse(code), code.splitlines()
    docstrings: set[int] = set()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) and len(node.body) > 1:
            first = node.body[0]
            docstrings.update(range(first.lineno - 1, first.end_lineno or first.lineno))
    return "\n".join(line for at, line in enumerate(lines) if at not in docstrings)


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.clean(code).splitlines())

"""The course's solution, once it is open; after a pass the learner's code beside it, and one line on what to notice."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from grader.course import references
from grader.notebook import judged
from grader.notebook.highlight import colored
from grader.notebook.hints import HINTS
from grader.notebook.kernel_course import kernel_course
from grader.notebook.live import sources
from grader.notebook.record import Record
from grader.notebook.showing import Shown, sentence
from grader.notebook.target import Target
from grader.reports import html, text
from grader.reports.templating import render
from grader.source.definitions import parse
from grader.util.words import counted

ATTEMPTS = 3  # different states of the code, after which the solution opens
_LOOPS = (ast.For, ast.While, ast.comprehension)


def solution(wanted: Target, namespace: Mapping[str, Any], record: Record) -> Shown:
    """The course's solution, after a pass beside the learner's own; while it is closed, what opens it."""
    name, entry = wanted.name, record.entry(wanted.name)
    if not (entry.passed or entry.hints >= HINTS or entry.attempts >= ATTEMPTS):
        so_far = f"{counted(entry.hints, 'hint')} and {counted(entry.attempts, 'different attempt')}"
        closed = (
            f"The solution of {name} opens after a pass, after hint {HINTS}, or after {ATTEMPTS} different "
            f"attempts. So far: {so_far}. hint({wanted.argument}) gives the next hint."
        )
        return sentence(closed, more=record.take_notes())
    theirs = own_code(wanted, namespace) if entry.passed and judged.last_passed(wanted) else ""
    ours = references.solution_text(kernel_course(), name)
    if theirs:
        return shown(name, theirs, ours, record.take_notes())
    return sentence(ours, f"The course's solution of {name}", code=True, more=record.take_notes())


def own_code(wanted: Target, namespace: Mapping[str, Any]) -> str:
    """The statements that made the learner's object, imports aside; '' where no text of them is known."""
    found = sources(wanted.name, wanted.obj, namespace) if wanted.found and callable(wanted.obj) else None
    kept = [cell for cell in (found.cells if found else ()) if not _is_import(cell)]
    return "\n\n".join(cell.strip("\n") for cell in kept)


def shown(name: str, theirs: str, ours: str, notes: Sequence[str] = ()) -> Shown:
    """The two, side by side where there is room."""
    noticed, ours = notice(theirs, ours), _without_docstrings(ours)
    plain = [
        f"Two ways to write {name}",
        noticed,
        f"Yours\n\n{_indented(theirs)}",
        f"The course's\n\n{_indented(ours)}",
        *notes,
    ]
    columns = (("Yours", colored(theirs)), ("The course's", colored(ours)))
    made = render("beside.html", title=f"Two ways to write {name}", noticed=noticed, columns=columns, notes=notes)
    return Shown("\n\n".join(part for part in plain if part), html.STYLE + made)


def notice(theirs: str, ours: str) -> str:
    """One sentence on what tells the two apart."""
    mine, course = parse(theirs), parse(ours)
    if mine is None or course is None:
        return ""
    if _bare(mine) == _bare(course):
        return "Notice: the two differ only in names, layout and comments."
    my_loops, its_loops = (sum(isinstance(node, _LOOPS) for node in ast.walk(tree)) for tree in (mine, course))
    if my_loops and not its_loops:
        return f"Notice: yours has {_loops(my_loops)}; the course's has none and works on whole arrays instead."
    if its_loops and not my_loops:
        return f"Notice: the course's has {_loops(its_loops)}; yours has none."
    only_mine, only_its = _operations(mine) - _operations(course), _operations(course) - _operations(mine)
    if only_mine and only_its:
        return f"Notice: where the course's code uses {_listed(only_its)}, yours uses {_listed(only_mine)}."
    if only_its or only_mine:
        whose, other, which = ("the course's", "yours", only_its) if only_its else ("yours", "the course's", only_mine)
        return f"Notice: {whose} also uses {_listed(which)}; {other} does not."
    sizes = [sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) for tree in (mine, course)]
    if sizes[0] != sizes[1]:
        return f"Notice: both use the same operations, yours in {sizes[0]} statements and the course's in {sizes[1]}."
    return "Notice: both use the same operations, combined in different ways."


def _loops(number: int) -> str:
    return "a loop" if number == 1 else f"{number} loops"


def _listed(operations: Counter[str]) -> str:
    return text.listed([f"`{one}`" for one in sorted(operations)], 3)


_SIGNS = {ast.MatMult: "@", ast.Pow: "**", ast.Div: "/", ast.FloorDiv: "//", ast.BitAnd: "&", ast.Invert: "~"}


def _operations(tree: ast.AST) -> Counter[str]:
    """The functions and methods that are called, and the operators that matter; each once."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found.add(getattr(node.func, "attr", None) or getattr(node.func, "id", ""))
        elif isinstance(node, (ast.BinOp, ast.UnaryOp)):
            found.add(_SIGNS.get(type(node.op), ""))
    return Counter(found - {"", "range", "len", "super", "__init__"})


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
    said: set[int] = set()
    for node in ast.walk(tree) if tree is not None else ():
        if (
            isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and ast.get_docstring(node) is not None
            and len(node.body) > 1
        ):
            told = node.body[0]
            said.update(range(told.lineno - 1, told.end_lineno or told.lineno))
    return "\n".join(line for at, line in enumerate(lines) if at not in said)


def _is_import(cell: str) -> bool:
    tree = parse(cell)
    return tree is not None and all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body)


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.clean(code).splitlines())

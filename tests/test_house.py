"""The house as CONTRIBUTING shows it: rooms that data passes, one above the other, and imports that point down.

The engine knows of no lesson and no exercise: what is one lesson's own lies in the lesson's folder.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from grader.course.course import open_course
from tests.conftest import ENGINE, ROOT

PACKAGE = ROOT / "grader"


def floors() -> list[list[str]]:
    """The rooms as CONTRIBUTING draws them, the top floor first."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawing = re.search(r"<!-- floors -->\n```text\n(.*?)```", text, re.DOTALL)[1]
    return [line.split() for line in drawing.splitlines()]


FLOOR = {room: -number for number, rooms in enumerate(floors()) for room in rooms}


def files() -> dict[str, Path]:
    """Each module's file, by its name without 'grader.'."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "_course" not in path.parts:
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            if name != "grader":
                found[name.removeprefix("grader.")] = path
    return found


FILES = files()


@cache
def modules() -> dict[str, set[str]]:
    """What each module imports of the package, in function bodies too."""
    return {name: {module for module, _ in _imports(path, f"grader.{name}")} for name, path in FILES.items()}


def _imports(path: Path, name: str):
    """Each module of the package that a file imports, and in which line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (
                (alias.name.removeprefix("grader."), node.lineno)
                for alias in node.names
                if alias.name.startswith("grader.")
            )
        elif isinstance(node, ast.ImportFrom):
            package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "grader" or module.startswith("grader."):
                for alias in node.names:
                    inner = f"{module}.{alias.name}"
                    yield (inner if _is_module(inner) else module).removeprefix("grader").lstrip("."), node.lineno


def _is_module(dotted: str) -> bool:
    path = ROOT.joinpath(*dotted.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def _room(name: str) -> str:
    return name.split(".")[0]


def test_the_drawing_shows_every_room_and_no_other():
    there = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").is_file()}
    assert sorted(FLOOR) == sorted(there)
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}, "a module has a room"


def test_contributing_says_of_every_room_what_the_room_says_of_itself():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for room in FLOOR:
        said = importlib.import_module(f"grader.{room}").__doc__.splitlines()[0]
        line = re.search(rf"^  {room}/ +(.+)$", text, re.MULTILINE)
        assert line and line[1] == said.rstrip("."), f"CONTRIBUTING's line for {room}/ is {said!r}"


def test_imports_point_down():
    wrong = [
        f"{FILES[name].relative_to(ROOT)}:{line} imports from {_room(module)}/, which is no floor below {_room(name)}/"
        for name in FILES
        if _room(name) != "__main__"
        for module, line in _imports(FILES[name], f"grader.{name}")
        if module and _room(module) != _room(name) and not FLOOR[_room(module)] < FLOOR[_room(name)]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_itself_by_a_detour():
    graph, done = modules(), set()

    def walk(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join((*path, name))
        if name not in done:
            for other in graph.get(name, ()):
                walk(other, (*path, name))
            done.add(name)

    for name in graph:
        walk(name, ())


MOST_LINES = 350  # what is longer is two things


def test_no_module_is_too_long_to_be_read_at_once():
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES}


# They say that something was done, and not what came of it; or they point to something that has no name.
NO_NOUNS = frozenset(
    """
    asked brought built called came chosen counted done drawn ended found given gone held hidden joined kept known listed lost made
    marked met named needed packed quoted refused said searched seen shown squeezed started taken told tried used wanted written
    at each here one ours theirs there these those what which whose
    """.split()
)
STORED = "room.message", "at"  # a field of what notebooks send


def _bound(node: ast.AST) -> str:
    """The name that a node binds, '' for none."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        return (node.id if isinstance(node, ast.Name) else node.attr) if isinstance(node.ctx, ast.Store) else ""
    return getattr(node, "arg" if isinstance(node, ast.arg) else "name", None) or ""


def test_every_name_is_a_noun_or_a_verb():
    wrong = [
        f"{name}:{node.lineno}: {_bound(node)}"
        for name, path in FILES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _bound(node).strip("_") in NO_NOUNS and (name, _bound(node)) != STORED
    ]
    assert not wrong, f"{len(wrong)} names\n" + "\n".join(wrong)


def test_what_runs_beside_a_learner_s_code_knows_nothing_else():
    assert {
        _room(module) for name, imported in modules().items() if _room(name) == "worker" for module in imported
    } == {"worker"}


# Where the engine may say the name of a lesson, and why.
LESSONS_NAMED = {
    ("cli/options.py", "01_three_tokens"): "an example in the help of an argument that takes lessons",
    ("submission/submission.py", "01_three_tokens"): "an example of how to name a file that fits no lesson",
    ("worker/operations.py", "scaled_dot_product_attention"): "torch's function, which a lesson is named after",
}


# Names that are other things in the engine's tests: torch's function and layer.
TESTS_OTHER_THINGS = {"scaled_dot_product_attention", "Softmax"}

# Exercises whose names are other things in the engine, too.
OTHER_THINGS = {
    "leaks": "the module that searches a hand-out for solutions",
    **dict.fromkeys(
        ("softmax", "log_softmax", "cross_entropy", "layer_norm", "rms_norm"),
        "torch's function, forbidden or told by name",
    ),
}


def test_the_engine_names_no_lesson():
    """Neither by number, title or folder nor by an exercise; docstrings and comments may, and so may what is listed above."""
    assert _named_in(FILES.values(), PACKAGE) == set(LESSONS_NAMED)


def test_the_engine_s_tests_name_no_lesson_either():
    """They judge a course of their own; what is about the attention course stands in tests/attention."""
    tests = ROOT / "tests"
    named = _named_in((path for room in ENGINE for path in (tests / room).rglob("*.py")), tests)
    assert {(path, name) for path, name in named if name not in TESTS_OTHER_THINGS} == set()


def _named_in(paths: Iterable[Path], root: Path) -> set[tuple[str, str]]:
    """Each file, seen from `root`, with each lesson or exercise that its code names."""
    return {
        (path.relative_to(root).as_posix(), name)
        for path in paths
        for text, imported in _words(ast.parse(path.read_text(encoding="utf-8")))
        for name in _lessons_in(text, imported)
    }


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("lesson_05 = 1", {"lesson_05"}),
        ("run(lesson_05=1)", {"lesson_05"}),
        ("def lesson_12(): pass", {"lesson_12"}),
        ("if name == '06_masks': pass", {"06_masks"}),
        ("f'solutions/06_masks/{name}'", {"06_masks"}),
        ("help = 'such as softmax_rows,3'", {"softmax_rows"}),
        ("help = 'no softmax_rows_3, softmax or leaks'", set()),
        ("figures.three_tokens.draw()", {"three_tokens"}),
        ("title = 'Reading heads'", {"Reading heads"}),
        ("from solutions.shared import masks", {"masks"}),
        ("import figures.gpu", {"gpu"}),
        ("def f():\n    'As in 06_masks.'  # lesson_06", set()),
        ("masks = 'positions'", set()),
    ],
)
def test_what_counts_as_naming_a_lesson(code, names):
    assert {name for word in _words(ast.parse(code)) for name in _lessons_in(*word)} == names


def _words(tree: ast.Module):
    """Each name and text in the code, docstrings left out, and whether an import says it."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if id(node) not in docstrings:
            imported = isinstance(node, ast.alias | ast.ImportFrom)
            yield from ((value, imported) for _, value in ast.iter_fields(node) if isinstance(value, str))


def _lessons_in(text: str, imported: bool) -> set[str]:
    """The lessons that a text names."""
    return {named[0] for named in _lesson_names(imported).finditer(text)}


@cache
def _lesson_names(imported: bool) -> re.Pattern[str]:
    """A folder's name of a single word, such as `masks`, says a lesson in an import alone."""
    course = open_course()
    names = ["lesson_[0-9]{2}", *(name for name in course.exercise_names() if name not in OTHER_THINGS)]
    for folder in course.lessons():
        short = folder[3:]
        names += map(re.escape, [folder, course.lesson(folder).title, *([short] if "_" in short or imported else [])])
    return re.compile(rf"(?<!\w)({'|'.join(names)})(?!\w)")

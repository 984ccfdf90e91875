"""What the engine's docstrings and comments name exists: files by their path, and what a module defines."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

FILES = [path for path in sorted((ROOT / "grader").rglob("*.py")) if "_course" not in path.parts]
HIDDEN = re.compile(r"^(\..*|__pycache__|build|dist)$")
PATHS = [
    f"/{path.relative_to(ROOT).as_posix()}"
    for top in ("grader", "solutions", "tests", "docs", ".ci")
    for path in (ROOT / top).rglob("*.py")
    if not any(HIDDEN.match(part) for part in path.relative_to(ROOT / top).parts)
]
# Not ours: a learner's file, and files of the platforms that reports are for.
ELSEWHERE = {"helpers.py", "autograder.py", "nbgrader/plugins/export.py"}
LIBRARIES = {"nn", "np", "torch", "ast", "json", "concurrent", "futures"}
ENDINGS = "py md json jsonl csv txt ipynb toml html xml yml yaml css log so pth".split()


def names_in(path: Path) -> set[str]:
    """All that a module defines, at whatever depth, and what it imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return names


@cache
def modules() -> dict[str, set[str]]:
    """By a module's last name, what the modules of that name define; a package has its modules, too."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in FILES:
        found[path.parent.name if path.stem == "__init__" else path.stem] |= names_in(path)
        found[path.parent.name].add(path.stem)
        found[path.parent.parent.name].add(path.parent.name)
    # `figures` finds the lessons' own.
    found["figures"] |= {path.parent.name[3:] for path in (ROOT / "solutions").glob("[0-9][0-9]_*/figures.py")}
    return found


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Each docstring and each comment, with the line in which it, or what it documents, begins."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
    yield from (
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    )


def dead(text: str) -> list[str]:
    """What a text names of the course's that does not exist. A capital word in a path, and NAME, stand for any name."""
    paths = [path for path in re.findall(r"[\w./-]*\w\.py\b", text) if not re.search(r"(?<![a-z])[A-Z]{2}", path)]
    missing = [
        path for path in paths if path not in ELSEWHERE and not any(known.endswith(f"/{path}") for known in PATHS)
    ]
    for module, name in re.findall(r"(?<![\w./])([a-z]\w+)\.([A-Za-z]\w*)", text):
        if module in LIBRARIES or name == "NAME":
            continue
        if module in modules() and name not in ENDINGS:
            missing += [f"{module}.{name}"] * (name not in modules()[module])
        elif name[0].isupper():
            missing.append(f"{module}.{name}")
    return missing


@pytest.mark.any_user
def test_what_is_named_exists():
    missing = [
        f"{path.relative_to(ROOT)}:{line} names {name}"
        for path in FILES
        for line, text in prose(path.read_text(encoding="utf-8"))
        for name in dead(text)
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.any_user
@pytest.mark.parametrize(
    "text", ["see worker/probes.py", "calls.py", "as `model.Property` says", "Raises: protocol.Wire"]
)
def test_what_does_not_exist_is_found(text):
    assert len(dead(text)) == 1


@pytest.mark.any_user
@pytest.mark.parametrize(
    "text", ["worker/watch.py", "figures/lesson_NN.py", "protocol.WireError", "an nn.Module", "i.e. k.T"]
)
def test_what_exists_or_is_a_library_s_is_let_be(text):
    assert dead(text) == []

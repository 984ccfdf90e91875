"""What `import grader` gives inside a worker: check() and its kin that do nothing.

The course's own modules (references, specifications) are not importable there.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

HARMLESS = "check hint solution explain progress passed predict replay reset join leave stuck fine".split()
CLOSED = ("grader", "solutions")


class Anything:
    """Takes every call, attribute and item, and draws nothing."""

    def __init__(self, *values: Any, **options: Any) -> None:
        pass

    def __call__(self, *values: Any, **options: Any) -> Anything:
        return self

    def __getattr__(self, name: str) -> Anything:
        if name.startswith("__"):  # protocols (copying, arrays, pickling) look for these
            raise AttributeError(name)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        pass

    def __getitem__(self, key: Any) -> Anything:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __bool__(self) -> bool:
        return False


def nothing(*values: Any, **options: Any) -> bool:
    """Stands for check(), passed() and the others: harmless, and false."""
    return False


def panels(n: int = 1, *values: Any, **options: Any) -> tuple[Anything, list[Anything]]:
    """A figure and its n axes, of which nothing is drawn."""
    return Anything(), [Anything() for _ in range(n if isinstance(n, int) else 1)]


class _Closed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves stand-ins for grader.figures and refuses the rest of the course."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> Any:
        if name.partition(".")[0] not in CLOSED:
            return None
        if name == "grader.figures" or name.startswith("grader.figures."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        raise ModuleNotFoundError(f"{name} is part of the grader and is closed while a notebook is graded", name=name)

    def create_module(self, spec: Any) -> ModuleType:
        return _figures(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Figures(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


def _figures(name: str) -> ModuleType:
    module = _Figures(name)
    module.panels = panels  # type: ignore[attr-defined]
    return module


def install() -> None:
    """Puts the stand-in where `import grader` looks, and closes the way to the real one."""
    for name in [name for name in sys.modules if name.partition(".")[0] in CLOSED]:
        del sys.modules[name]
    grader = ModuleType("grader", "The course's checks, switched off while a notebook is graded.")
    grader.__path__ = []  # type: ignore[attr-defined]
    for name in HARMLESS:
        setattr(grader, name, nothing)
    closed = _Closed()
    grader.figures = importlib.util.module_from_spec(closed.find_spec("grader.figures"))  # type: ignore[attr-defined]
    sys.modules.update({"grader": grader, "grader.figures": grader.figures})
    sys.meta_path.insert(0, closed)

"""Runs a notebook's cells, one after another, in one namespace, with a stand-in for the course's own modules.

References and specifications are not importable there.
"""

from __future__ import annotations
import __future__

import ast
import importlib.abc
import importlib.machinery
import io
import linecache
import sys
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from types import CodeType, ModuleType
from typing import Any

from .observe import failure_from
from .values import Failure

_ABSENT = object()
_FUTURES = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
STAND_INS = "check hint solution explain progress passed predict replay reset join leave stuck fine".split()
CLOSED_PACKAGES = ("grader", "solutions")


class CellRunner:
    """A namespace in which cells run as they do in a kernel, `__name__ == "__main__"` included."""

    def __init__(self) -> None:
        module = ModuleType("__main__")
        sys.modules["__main__"] = module  # what a cell defines says that it lives there
        self.namespace = module.__dict__
        self.namespace.update(display=return_false, get_ipython=NullObject)  # a kernel provides both
        self._futures = 0  # what cells imported from __future__ holds for those that follow, as in a kernel
        self._loop: Any = None  # one for all cells: a task of one may be awaited in another

    def run(self, label: str, text: str, names: Iterable[str]) -> tuple[Failure | None, tuple[str, ...]]:
        """Runs one cell; what it raises is returned, SystemExit and KeyboardInterrupt included.

        label: what the cell is called in tracebacks, 'cell 7'.
        names: those to watch. Returns: the failure or None, and those of the names that the cell bound.
        """
        names = tuple(names)
        previous = {name: self.namespace.get(name, _ABSENT) for name in names}
        filename = f"<{label}>"
        # With None for the time of change, linecache never looks for such a file on disk.
        linecache.cache[filename] = (len(text), None, io.StringIO(text).readlines(), filename)
        failure = None
        try:
            outcome = eval(self._compile(text, filename), self.namespace)
            if outcome is not None:
                self._await(outcome)
        except BaseException as error:
            failure = failure_from(error)
        return failure, tuple(name for name in names if self.namespace.get(name, previous[name]) is not previous[name])

    def _compile(self, text: str, filename: str) -> CodeType:
        """The cell's code; run, it gives None, or a coroutine where the cell awaits something at its top level."""
        code = compile(text, filename, "exec", self._futures | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        self._futures |= sum(flag for flag in _FUTURES if code.co_flags & flag)
        return code

    def _await(self, cell: Coroutine[Any, Any, None]) -> None:
        import asyncio  # a fortieth of a second, for the few that need it

        self._loop = self._loop or asyncio.new_event_loop()
        self._loop.run_until_complete(cell)


class NullObject:
    """Takes every call, attribute and item, and draws nothing."""

    def __init__(self, *values: Any, **options: Any) -> None:
        pass

    def __call__(self, *values: Any, **options: Any) -> NullObject:
        return self

    def __getattr__(self, name: str) -> NullObject:
        if name.startswith("__"):  # protocols (copying, arrays, pickling) look for these
            raise AttributeError(name)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    __getitem__ = __enter__ = __call__

    def __exit__(self, *error: object) -> None:
        pass

    def __bool__(self) -> bool:
        return False


def return_false(*values: Any, **options: Any) -> bool:
    """Stands for check(), passed() and the others, and for the kernel's display(): false."""
    return False


class _Figures(ModuleType):
    """Stands for grader.figures and the modules in it: what they hold draws nothing."""

    def __getattr__(self, name: str) -> Any:
        return NullObject().__getattr__(name)

    @staticmethod
    def panels(n: int = 1, *values: Any, **options: Any) -> tuple[NullObject, list[NullObject]]:
        """A figure and its n axes."""
        return NullObject(), [NullObject() for _ in range(n if isinstance(n, int) else 1)]


class _CourseBlocker(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves stand-ins for grader.figures and refuses the rest of the course."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> Any:
        if name.partition(".")[0] not in CLOSED_PACKAGES:
            return None
        if name == "grader.figures" or name.startswith("grader.figures."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        raise ModuleNotFoundError(f"{name} is part of the grader and is closed while a notebook is graded", name=name)

    def create_module(self, spec: Any) -> ModuleType:
        return _Figures(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def install_stub() -> None:
    """Puts a stand-in where `import grader` looks, check() and its kin that do nothing, and closes the way to the real one.

    This package is taken out of Python's table as well, so that no import finds it: what looks on could be replaced there.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] in CLOSED_PACKAGES]:
        del sys.modules[name]
    grader = ModuleType("grader", "The course's checks, switched off while a notebook is graded.")
    grader.__path__ = []  # type: ignore[attr-defined]
    for name in STAND_INS:
        setattr(grader, name, return_false)
    sys.modules["grader"] = grader
    sys.meta_path.insert(0, _CourseBlocker())
    importlib.import_module("grader.figures")

"""Runs a notebook's cells, one after another, in one namespace."""

from __future__ import annotations
import __future__

import ast
import linecache
import sys
from collections.abc import Coroutine, Iterable
from types import CodeType, ModuleType
from typing import Any

from .observe import failure_from
from .stub_grader import Anything
from .values import Failure

_ABSENT = object()
_FUTURES = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]


class CellRunner:
    """A namespace in which cells run as they do in a kernel, `__name__ == "__main__"` included."""

    def __init__(self) -> None:
        module = ModuleType("__main__")
        sys.modules["__main__"] = module  # what a cell defines says that it lives there
        self.namespace = module.__dict__
        self.namespace.update(display=_ignore, get_ipython=Anything)  # a kernel provides both
        self._futures = 0  # what cells imported from __future__ holds for those that follow, as in a kernel
        self._loop: Any = None  # one for all cells: a task of one may be awaited in another

    def run(self, label: str, text: str, wanted: Iterable[str]) -> tuple[Failure | None, tuple[str, ...]]:
        """Runs one cell; what it raises is returned, SystemExit and KeyboardInterrupt included.

        label: what the cell is called in tracebacks, 'cell 7'.
        wanted: names to watch. Returns: the failure or None, and the wanted names that the cell bound.
        """
        wanted = tuple(wanted)
        before = {name: self.namespace.get(name, _ABSENT) for name in wanted}
        filename = f"<{label}>"
        # With None for the time of change, linecache never looks for such a file on disk.
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        failure = None
        try:
            outcome = eval(self._compiled(text, filename), self.namespace)
            if outcome is not None:
                self._await(outcome)
        except BaseException as error:
            failure = failure_from(error)
        bound = (name for name in wanted if self.namespace.get(name, _ABSENT) is not before[name])
        return failure, tuple(name for name in bound if name in self.namespace)

    def _compiled(self, text: str, filename: str) -> CodeType:
        """The cell's code; run, it gives None, or a coroutine where the cell awaits something at its top level."""
        code = compile(text, filename, "exec", self._futures | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        self._futures |= sum(flag for flag in _FUTURES if code.co_flags & flag)
        return code

    def _await(self, cell: Coroutine[Any, Any, None]) -> None:
        import asyncio  # a fortieth of a second, for the few that need it

        self._loop = self._loop or asyncio.new_event_loop()
        self._loop.run_until_complete(cell)


def _ignore(*values: Any, **options: Any) -> None:
    """Stands where the kernel's `display` stands."""

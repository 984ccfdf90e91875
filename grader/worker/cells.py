"""Runs a notebook's cells, one after another, in one namespace."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from .observe import failure_from
from .standin import Anything
from .values import Failure

_ABSENT = object()


class Notebook:
    """A namespace in which cells run as they do in a kernel, `__name__ == "__main__"` included."""

    def __init__(self) -> None:
        module = ModuleType("__main__")
        sys.modules["__main__"] = module  # what a cell defines says that it lives there
        self.namespace = module.__dict__
        self.namespace.update(display=_ignore, get_ipython=Anything)  # a kernel provides both

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
            exec(compile(text, filename, "exec", dont_inherit=True), self.namespace)
        except BaseException as error:
            failure = failure_from(error)
        bound = (name for name in wanted if self.namespace.get(name, _ABSENT) is not before[name])
        return failure, tuple(name for name in bound if name in self.namespace)


def _ignore(*values: Any, **options: Any) -> None:
    """Stands where the kernel's `display` stands."""

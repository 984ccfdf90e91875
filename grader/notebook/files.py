"""A learner's own files of Python beside the notebook, which this kernel can import and grading has not: it reads the notebook alone."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from grader.notebook.fingerprint import of_library

ABSENT = "Grading reads the notebook alone: copy the code of that file into a cell, in place of the import."


def of_module(name: str) -> str:
    """The file or folder that an import of that module finds in the notebook's folder, such as 'helpers.py'; '' where it finds another."""
    module = sys.modules.get(name)
    if name == "__main__" or name in sys.stdlib_module_names or of_library(name):
        return ""
    places = (
        [getattr(module, "__file__", None)] if module is not None else [f"{name}.py", os.path.join(name, "__init__.py")]
    )
    file = next((each for each in places if isinstance(each, str) and os.path.isfile(each)), "")
    place = os.path.relpath(os.path.realpath(file), os.path.realpath(os.curdir)) if file else os.pardir
    return "" if place.startswith(os.pardir) else place.removesuffix(f"{os.sep}__init__.py")


class _Nowhere:
    """Finds no module of the notebook's folder, as an import in grading."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if path is None and of_module(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """For so long, no import finds such a module."""
    kept = {name: module for name, module in list(sys.modules.items()) if "." not in name and of_module(name)}
    try:
        for name in kept:
            del sys.modules[name]
        sys.meta_path.insert(0, _Nowhere)
        yield
    finally:
        sys.meta_path.remove(_Nowhere)
        sys.modules.update(kept)

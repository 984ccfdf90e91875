"""What a learner's code reaches: the names that it reads, the modules that it imports, and which of these are files of their own.

A learner's own files beside the notebook can be imported in this kernel; grading has not got them: it reads the notebook alone.
"""

from __future__ import annotations

import contextlib
import dis
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

from grader.source.definitions import MAX_CODE, parse
from grader.source.magics import script_name
from grader.source.scopes import IMPORTS, names_of

ABSENT = "Grading reads the notebook alone: copy the code of that file into a cell."
_STAR_IMPORT = re.compile(r"^\s*from\s+(\w+)\s+import\s*\*", re.MULTILINE)
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def functions_of(obj: Any) -> list[FunctionType]:
    """A function itself; the methods of a class."""
    members = vars(obj).values() if issubclass(type(obj), type) else (obj,)
    wrappers = (staticmethod, classmethod, MethodType)
    functions = (member.__func__ if issubclass(type(member), wrappers) else member for member in members)
    return [function for function in functions if type(function) is FunctionType]


def code_files(obj: Any) -> list[str]:
    """The files, or cells, that hold the code of a function or of a class's methods; no library's, such as that of a decorator."""
    files = dict.fromkeys(function.__code__.co_filename for function in functions_of(obj))
    return [file for file in files if not file.startswith(_LIBRARIES)]


def names_in(code: CodeType, *opnames: str) -> Iterator[str]:
    """What these steps of code, and of the functions inside it, name, in the code's order; by default the globals that they read."""
    opnames = opnames or ("LOAD_GLOBAL", "LOAD_NAME")
    yield from dict.fromkeys(step.argval for step in dis.get_instructions(code) if step.opname in opnames)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant, *opnames)


def names_read(obj: Any, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The names of this notebook that an object's code reads, and what they are; those nearest to it come first.

    Functions and classes that were defined here are followed to what they read in their turn.
    """
    names: dict[str, Any] = {}
    pending = [obj]
    while pending:
        for function in functions_of(pending.pop(0)):
            for name in names_in(function.__code__):
                if name in namespace and name not in names and namespace[name] is not obj:
                    names[name] = namespace[name]
                    if not of_library(_module(namespace[name])):
                        pending.append(namespace[name])
    return names


def _module(obj: Any) -> str | None:
    """The module that a function or a class comes from; asks no object that might answer with code of its own."""
    if type(obj) is FunctionType:
        return obj.__module__
    return vars(obj).get("__module__") if issubclass(type(obj), type) else None


def of_library(module_name: Any) -> bool:
    """True for a module of Python, of an installed package or of the course."""
    module = sys.modules.get(module_name) if isinstance(module_name, str) else None
    if module is None or module_name == "__main__":
        return False
    file = getattr(module, "__file__", None)
    return file is None or file.startswith(_LIBRARIES) or module_name.partition(".")[0] == "grader"


def own_file(module_name: str) -> str:
    """The file or folder that an import of a module finds in the notebook's folder, such as 'helpers.py'; '' where it finds another."""
    if module_name == "__main__" or module_name in sys.stdlib_module_names or of_library(module_name):
        return ""
    module = sys.modules.get(module_name)
    places: list[Any] = [f"{module_name}.py", os.path.join(module_name, "__init__.py")]
    if module is not None:
        places = [getattr(module, "__file__", None)]
    file = next((path for path in places if isinstance(path, str) and os.path.isfile(path)), "")
    place = os.path.relpath(os.path.realpath(file), os.path.realpath(os.curdir)) if file else os.pardir
    return "" if place.startswith(os.pardir) else place.removesuffix(f"{os.sep}__init__.py")


def names_in_files(text: str) -> dict[str, str]:
    """The names that a `%run` or a `from … import *` takes from a file of the learner's, without what that imports, and that file."""
    origins: dict[str, str] = {}
    for file in (script_name(text), *map(own_file, _STAR_IMPORT.findall(text))):
        try:
            with open(file, encoding="utf-8") as code:
                tree = parse(code.read(MAX_CODE))
        except (OSError, ValueError):
            continue
        statements = [node for node in tree.body if not isinstance(node, IMPORTS)] if tree is not None else []
        origins |= {name: file for node in statements for name in names_of(node).binds}
    return origins


def imported_files(*objects: Any) -> list[str]:
    """The learner's own files that the code of these functions and classes imports when it runs."""
    codes = (function.__code__ for obj in objects for function in functions_of(obj))
    names = dict.fromkeys(name for code in codes for name in names_in(code, "IMPORT_NAME"))
    return [file for name in names if (file := own_file(name.partition(".")[0]))]


class _NoOwnFiles:
    """A finder for sys.meta_path to which a module of the notebook's folder does not exist, as in grading."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if path is None and own_file(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextlib.contextmanager
def hide_own_files() -> Iterator[None]:
    """For so long, no import finds a module of the notebook's folder."""
    own_modules = {name: module for name, module in list(sys.modules.items()) if "." not in name and own_file(name)}
    try:
        for name in own_modules:
            del sys.modules[name]
        sys.meta_path.insert(0, _NoOwnFiles)  # type: ignore[arg-type]
        yield
    finally:
        sys.meta_path.remove(_NoOwnFiles)  # type: ignore[arg-type]
        sys.modules.update(own_modules)

"""The file that a fresh interpreter runs, by its path: `python -I start.py warm|worker FD …`.

It loads the folder it lies in as a package called `inside`, so that neither the repository nor an
installed `grader` needs to be importable, and takes the repository off the import path.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig

FOLDER = os.path.dirname(os.path.abspath(__file__))


def load(module: str) -> object:
    """A module of the package `inside`, which is this folder."""
    path = os.path.join(FOLDER, "__init__.py")
    spec = importlib.util.spec_from_file_location("inside", path, submodule_search_locations=[FOLDER])
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["inside"] = package
    spec.loader.exec_module(package)
    return importlib.import_module(f"inside.{module}")


def leave_repository() -> None:
    """An editable install puts the repository, solutions included, on the path of every interpreter."""
    repository = os.path.dirname(os.path.dirname(FOLDER))
    libraries = {os.path.realpath(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    if os.path.realpath(repository) not in libraries:
        sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != os.path.realpath(repository)]


if __name__ == "__main__":
    leave_repository()
    role = {"warm": "warm", "worker": "main"}[sys.argv[1]]
    load(role).main(sys.argv[2:])  # type: ignore[attr-defined]

"""The file that a fresh interpreter runs, by its path: `python -I start.py warm|worker FD …`.

It loads the folder it lies in as grader.worker, of a package `grader` that holds nothing else, so that neither the repository nor
an installed `grader` needs to be importable, and takes the repository off the import path.
"""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
from types import ModuleType

FOLDER = os.path.dirname(os.path.abspath(__file__))


def load_worker() -> None:
    grader = ModuleType("grader")
    grader.__path__ = [os.path.dirname(FOLDER)]
    sys.modules["grader"] = grader
    importlib.import_module("grader.worker")
    grader.__path__ = []


def leave_repository() -> None:
    """An editable install puts the repository, solutions included, on the path of every interpreter."""
    repository = os.path.dirname(os.path.dirname(FOLDER))
    libraries = {os.path.realpath(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    if os.path.realpath(repository) not in libraries:
        sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != os.path.realpath(repository)]


if __name__ == "__main__":
    leave_repository()
    load_worker()
    role = {"warm": "warm", "worker": "main"}[sys.argv[1]]
    importlib.import_module(f"grader.worker.{role}").main(sys.argv[2:])

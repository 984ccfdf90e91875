"""How the command `grader` is called where a sentence is read: a terminal may find another one, or none."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def command_name() -> str:
    """'grader' where a shell finds this Python's own; in a notebook '%grader'; else by this Python: '.venv/bin/python -m grader'."""
    if in_notebook():
        return "%grader"
    command, mine = shutil.which("grader"), Path(sys.executable).parent
    if command and os.path.exists(mine) and os.path.samefile(Path(command).parent, mine):
        return "grader"
    try:
        python = min(os.path.relpath(sys.executable), sys.executable, key=len)
    except (ValueError, OSError):  # another drive, or a folder that is there no more
        python = sys.executable
    return f'"{python}" -m grader' if " " in python else f"{python} -m grader"


def in_notebook() -> bool:
    """Whether this runs in a notebook's kernel; never imports IPython."""
    module = sys.modules.get("IPython")
    return module is not None and module.get_ipython() is not None

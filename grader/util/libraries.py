"""Libraries: whether one is installed, the sentence that says how to get it, and how many threads it uses; and how `grader` is called."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# What can be lacking: where the core alone is installed, or less than that, as in a browser's Python. Module -> what brings it.
_EXTRAS = {
    "torch": "attention-course[torch]",
    "distributed": "attention-course[dask]",
    "gguf": "attention-course[model]",
    "tokenizers": "attention-course[model]",
    "hatchling": "attention-course[release]",
    "triton": "attention-course[kernel]",
    **dict.fromkeys(
        ("IPython", "ipykernel", "ipywidgets", "jupyter_client", "jupyterlab", "jupytext", "nbclient", "tornado"),
        "attention-course[lab]",
    ),
    **{name: name for name in ("matplotlib", "nbformat", "psutil", "pygments", "safetensors")},
}
# For the environment: on arrays as small as a case's, several threads mostly wait for one another.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def installed(module: str) -> bool:
    """Whether a library could be imported; imports nothing."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # something stands for it that is no module: it was forbidden
        return False


def how_to_install(module: str) -> str:
    """'torch is not installed in this Python; `python -m pip install 'attention-course[torch]'` installs it.'"""
    pip = "%pip" if in_notebook() else "python -m pip"
    if module == "triton" and sys.platform != "linux":
        return (
            "triton runs on Linux alone, with a GPU or without: Colab, Codespaces and WSL are such places, and "
            f"`pip install '{_EXTRAS[module]}'` installs it there."
        )
    return f"{module} is not installed in this Python; `{pip} install '{_EXTRAS[module]}'` installs it."


def require(*modules: str) -> None:
    """Raises: ModuleNotFoundError for the first of them that is not installed, for which `explain_error` has a sentence."""
    for module in modules:
        if not installed(module):
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


@cache
def import_nbformat() -> Any:
    """nbformat, in a fifth of its time. It imports jsonschema, and that, where it is installed, a library whose import compiles
    38 grammars of web addresses. No format of a notebook's schema names one, and jsonschema does without."""
    grammars = "rfc3987_syntax"
    held_back = grammars not in sys.modules
    if held_back:
        sys.modules[grammars] = None  # type: ignore[assignment]
    try:
        import nbformat
    finally:
        if held_back:
            sys.modules.pop(grammars, None)
    return nbformat


def explain_error(error: BaseException) -> str | None:
    """The sentence for an import that failed for want of one of the course's libraries; None for every other error."""
    module = (getattr(error, "name", None) or "").partition(".")[0] if isinstance(error, ImportError) else ""
    return how_to_install(module) if module in _EXTRAS and not installed(module) else None


def use_one_thread() -> None:
    """For libraries that are not imported yet, and all that this process starts, unless the environment says otherwise."""
    for name, number in ONE_THREAD.items():
        os.environ.setdefault(name, number)


def command_name() -> str:
    """'grader' where a shell finds this Python's own; in a notebook '%grader'; else by this Python: '.venv/bin/python -m grader'."""
    if in_notebook():
        return "%grader"
    command, folder = shutil.which("grader"), Path(sys.executable).parent
    if command and os.path.exists(folder) and os.path.samefile(Path(command).parent, folder):
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

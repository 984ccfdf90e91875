"""reset(): one exercise's cell of the notebook's file is the stub again; the notebook as it was is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grader.course import registry
from grader.notebook import workspace
from grader.notebook.showing import Shown, ipython, said
from grader.notebook.target import Target
from grader.util.errors import InputError


def shown(wanted: Target, names: dict[str, Any]) -> Shown:
    """Does it and says what to do next. names: the notebook's; the old definition goes, so that no check judges it.

    The file is changed, and what the browser shows is read from it anew: where the file is older than this very call,
    what was typed since the last saving would be lost, so that nothing is done until the notebook is saved.
    """
    name, lesson = wanted.name, registry.lesson_of(wanted.name)
    place = Path(".")
    path = place / f"{lesson}.ipynb"
    if not path.is_file():
        return _below(name, lesson)
    shell = ipython()
    if shell is not None and not workspace.holds(path, shell.user_ns.get("In", [""])[-1]):
        return said("Save the notebook first (Ctrl+S, on a Mac ⌘S), then run this cell again: `reset` works on the file, "
                    "and unsaved work would be lost.", f"{name} was not changed")  # fmt: skip
    try:
        change = workspace.reset_exercise(name, place)
    except InputError as error:
        return said(str(error))
    names.pop(name, None)
    return said(
        f"{change} The menu File › Reload Notebook from Disk shows it. The old definition is gone from this kernel, too: "
        f"run the cell once you have written it.", f"{name} is the course's original again"
    )  # fmt: skip


def _below(name: str, lesson: str) -> Shown:
    """Where the notebook's file is not at hand, the stub comes as a new cell."""
    stub = workspace.stub(name)
    shell = ipython()
    if shell is not None:
        shell.set_next_input(stub, replace=False)
    where = "The cell below contains it" if shell is not None else "This is it"
    return said(f"{lesson}.ipynb is not in this folder, so nothing was changed. Replace your cell by the exercise's original "
                f"cell. {where}.\n\n```python\n{stub}\n```", name)  # fmt: skip

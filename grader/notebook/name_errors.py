"""One sentence in place of a traceback, where a call of the course's own names something that this kernel does not know."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Mapping
from traceback import walk_tb
from types import TracebackType
from typing import Any

from grader.notebook import OFFERED, ROOM
from grader.notebook.cell_history import CellHistory, describe_failure
from grader.notebook.kernel_course import kernel_course
from grader.notebook.target import nearest
from grader.source.definitions import parse, root

ABOVE = "the menu Run › Run All Above Selected Cell runs every cell above this one"
_ID = re.compile(r"[A-Za-z]{2,3}\d{1,3}")  # of a mistake


def sentence(error: NameError, trace: TracebackType, namespace: Mapping[str, Any], history: CellHistory) -> str | None:
    """What to do about a name that is not known, in Markdown; None where no call of the course's own is at fault.

    error, trace: what a cell raised; namespace: the notebook's names.
    """
    name, call = error.name, _call(error, trace, namespace)
    if not name or call is None:
        return None
    if name in ROOM:
        return f"`{name}` is for rooms and must be imported first: `from grader import {name}`."
    if name in OFFERED:
        return f"`{name}` is not known in this kernel: run the cell near the top that imports it; {ABOVE}."
    definition = history.stale.get(name)
    if definition is not None and definition.failure is not None:
        failure, message = definition.failure, describe_failure(definition.failure)
        place = f" in its line {failure.line_number}, `{failure.line}`" if failure.line else ""
        return f"`{name}` is not defined: the last run of its cell failed{place} ({message}). Fix that cell and run it."
    if name in kernel_course().exercise_names():
        others = definition.defines if definition is not None else history.defined_by(f"exercise-{name}") - {name}
        if others:
            names = " and ".join(f"`{other}`" for other in sorted(others))
            must = f"The exercise is called {name}; its function must have that name."
            return f"`{name}` is not defined: its cell now defines {names}. {must}"
        restart = "After a restart the kernel knows nothing"
        return f"`{name}` is not defined in this kernel: run the cell that defines it. {restart}; {ABOVE}."
    if call == "explain" and _ID.fullmatch(name):
        return f'explain takes an id in quotes: `explain("{name.upper()}")`.'
    close = nearest(name)
    if call != "figures" and close:
        return f"No exercise is called `{name}`, and nothing of that name is defined. Nearest: {', '.join(close)}."
    return f"`{name}` is not known in this kernel: run the cell that defines it; {ABOVE}."


def _call(error: NameError, trace: TracebackType, namespace: Mapping[str, Any]) -> str | None:
    """The course's own name, such as 'check', in whose call a cell names what is not known; None for all else."""
    *_, (frame, line) = walk_tb(trace)
    if frame.f_globals is not namespace or frame.f_code.co_name != "<module>":
        return None
    if error.name in OFFERED and error.name not in ROOM:
        return error.name
    tree = parse("".join(linecache.getlines(frame.f_code.co_filename)))
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or line):
            parts = [node.func, *node.args, *(keyword.value for keyword in node.keywords)]
            names = [part.id for part in parts if isinstance(part, ast.Name)]
            if root(node.func) in OFFERED and error.name in names:
                return root(node.func)
    return None

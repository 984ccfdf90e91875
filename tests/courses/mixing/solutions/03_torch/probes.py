"""How `twice` is exercised: on an input, and on its own result."""

from __future__ import annotations

from typing import Any

from grader.worker.originals import BUILTINS
from grader.worker.probes import Run, call_function, mark_result

__builtins__ = BUILTINS


def on_result(function: Any, run: Run) -> dict[str, Any]:
    """Calls it on x, and on what came back. Parts: 'result', of the second call, and 'first'."""
    first = call_function(function, run, *run.args)
    return {"first": first, "result": mark_result(call_function(function, run, first))}

"""Runs a solution notebook in a fresh kernel of this interpreter and keeps what it shows."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grader.build import checked_cells, solution_notebook, solution_path
from grader.course import notebook_path
from grader.errors import AuthorError, Slip
from grader.files import write_whole
from grader.stubs import encode, learner_notebook

CELL_TIMEOUT_S = 180
IOPUB_TIMEOUT_S = 60
WIDGET = "application/vnd.jupyter.widget-view+json"
# What differs from one run, or one machine, to the next and tells a reader nothing.
# A path is at most 200 characters: without the bound a picture's 100,000 letters take minutes to search.
_CHANGING = (
    (re.compile(r"(?<!\S)\S{0,200}ipykernel_\d+[/\\]\d+\.py"), "<this cell>"), (re.compile(r"\b0x[0-9a-f]{8,}"), "0x…"),
)


def build(name: str) -> None:
    """Writes both notebooks of a lesson. Raises: AuthorError, with nothing written, where a cell fails."""
    cells, lesson = checked_cells(name)
    learner = encode(learner_notebook(name, cells, lesson))
    solved = solution_notebook(name, cells, lesson)
    outputs = run(solved)
    failed = []
    for cell, (count, shown), source in zip(solved["cells"], outputs, cells, strict=True):
        if cell["cell_type"] != "code":
            continue
        cell["execution_count"], cell["outputs"] = count, shown
        for output in shown:
            if output["output_type"] == "error":
                sentence = f"this cell raises {output['ename']}: {output['evalue'] or 'no message'}"
                failed.append(Slip(f"solutions/{name}.py", source.line, sentence))
    if failed:
        raise AuthorError(failed)
    write_whole(notebook_path(name), learner)
    write_whole(solution_path(name), encode(solved))


def run(notebook: dict[str, Any], timeout_s: float = CELL_TIMEOUT_S) -> list[tuple[int | None, list[dict[str, Any]]]]:
    """Executes a notebook's cells in order, in a scratch folder; stops at the first that raises.

    Returns for each cell (execution count, outputs); (None, []) for Markdown and for what did not run.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    executed = nbformat.reads(encode(notebook), as_version=4)
    with tempfile.TemporaryDirectory(prefix="lesson-", ignore_cleanup_errors=True) as scratch:
        client = NotebookClient(
            executed, km=_kernel_manager(), timeout=timeout_s, record_timing=False,
            iopub_timeout=IOPUB_TIMEOUT_S, raise_on_iopub_timeout=True,  # a late output is not left out
            resources={"metadata": {"path": scratch}},
        )
        try:
            client.execute(cleanup_kc=True, env=_environment(Path(scratch)))
        except CellExecutionError:
            pass  # the error is among the cell's outputs
        except CellTimeoutError as error:
            raise AuthorError([Slip("a cell", 0, f"is still running after {timeout_s:g} s: {error}")]) from None
    return [
        (cell.get("execution_count"), [_steady(output) for output in _joined(cell.get("outputs", ()))])
        for cell in executed.cells
    ]


def _kernel_manager() -> Any:
    """A kernel of this very interpreter, whatever kernelspecs are or are not installed."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    class ThisInterpreter(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
            return KernelSpec(argv=argv, display_name="Python 3", language="python")

    return AsyncKernelManager(kernel_spec_manager=ThisInterpreter())


def _environment(scratch: Path) -> dict[str, str]:
    """The kernel's: this package importable, no start-up files, and a progress record of its own."""
    package_parent = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, (package_parent, os.environ.get("PYTHONPATH", ""))))
    return {
        **os.environ,
        "PYTHONPATH": path,
        "IPYTHONDIR": str(scratch / "ipython"),
        "ATTENTION_COURSE_PROGRESS": str(scratch / "progress.json"),
    }


def _joined(outputs: Iterable[Any]) -> list[Any]:
    """Outputs with neighbouring pieces of one stream put together: where a kernel cuts them is chance."""
    made: list[Any] = []
    for output in outputs:
        before = made[-1] if made else {}
        if output["output_type"] == "stream" and before.get("name") == output["name"]:
            before["text"] += output["text"]
        else:
            made.append(output)
    return made


def _steady(output: Any) -> dict[str, Any]:
    """An output as plain data, without what changes from run to run."""
    plain = {key: value for key, value in output.items() if key != "transient"}
    if "text" in plain:
        plain["text"] = _lines(plain["text"])
    if "data" in plain:
        data = dict(plain["data"])
        if data.pop(WIDGET, None):
            data["text/plain"] = "(A control appears here when this cell is run.)"
        plain["data"] = {mime: _lines(value) if mime.startswith("text/") else value for mime, value in data.items()}
    return plain


def _lines(text: str) -> list[str]:
    for pattern, instead in _CHANGING:
        text = pattern.sub(instead, text)
    return text.splitlines(keepends=True)

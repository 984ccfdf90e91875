"""Runs the code cells of a notebook in a fresh kernel of this interpreter and collects what they show.

jupyter_client's blocking calls alone: nbclient, which puts the messages together, is not let wait for them. With asyncio's sockets a
message that is there may go unnoticed until the time-out (seen with pyzmq 27.3), and a build that takes 10 seconds took 190.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from grader.course import percent
from grader.course.course import Course
from grader.util import libraries

START_TIMEOUT_S = 120
CELL_TIMEOUT_S = 180
WIDGET = "application/vnd.jupyter.widget-view+json"
# What differs from one run, or one machine, to the next and tells a reader nothing: (a sign of it, all of it, instead).
# The sign is looked for first: a picture's base64 is one word of a hundred thousand characters.
_CHANGING = (
    ("ipykernel_", re.compile(r"\S*ipykernel_\d+[/\\]\d+\.py"), "<this cell>"),
    ("0x", re.compile(r"\b0x[0-9a-f]{8,}"), "0x…"),
)

CellOutputs = tuple[int | None, list[dict[str, Any]]]  # of one cell: its execution count and its outputs
Outputs = list[CellOutputs]


class RunError(Exception):
    """The kernel did not start, ended, or took too long; the message says which."""


class NotebookRun:
    """A kernel in a scratch folder that holds the course's solved notebooks, as a learner's lie beside each other: a lesson may read
    another's answers. Use it in `with NotebookRun(course) as kernel`."""

    def __init__(self, course: Course) -> None:
        self._course = course

    def __enter__(self) -> NotebookRun:
        from jupyter_client.kernelspec import KernelSpecManager
        from jupyter_client.manager import KernelManager

        self._scratch = tempfile.TemporaryDirectory(prefix="lesson-", ignore_cleanup_errors=True)
        folder = Path(self._scratch.name)
        for solved in filter(Path.is_file, map(self._course.solution_path, self._course.lessons())):
            shutil.copy(solved, folder)
        # The kernel of this very interpreter, whatever kernelspecs are or are not installed.
        self._manager = KernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
        if os.name == "posix":  # sockets in our own folder: TCP ports may be taken by another kernel that starts now
            self._manager.transport, self._manager.ip = "ipc", str(folder / "kernel")
        environment = _environment(self._course, folder)
        self._manager.start_kernel(cwd=str(folder), env=environment, extra_arguments=["--log-level=ERROR"])
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        try:
            self._client.wait_for_ready(timeout=START_TIMEOUT_S)
        except RuntimeError as error:
            self.__exit__()
            raise RunError(f"the kernel did not start: {error}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._scratch.cleanup()

    def run(self, code: str, timeout_s: float, store_history: bool = True) -> CellOutputs:
        """Runs one cell. Returns: (execution count, outputs in nbformat's form). Raises: RunError."""
        from nbclient.client import NotebookClient
        from nbclient.exceptions import CellExecutionComplete

        v4 = libraries.import_nbformat().v4
        cell = v4.new_code_cell(code)
        reader = NotebookClient(v4.new_notebook(cells=[cell]), record_timing=False)
        reader.kc, reader.clear_before_next_output = self._client, False  # as its own way of running a cell sets them
        request = self._client.execute(code, allow_stdin=False, store_history=store_history)
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                message = self._client.get_iopub_msg(timeout=1)
            except queue.Empty:
                if not self._manager.is_alive():
                    raise RunError("the kernel ended while this cell ran.") from None
                message = {"parent_header": {}}
            if time.monotonic() > deadline:
                raise RunError(f"this cell is still running after {timeout_s:g} s.")
            if message["parent_header"].get("msg_id") == request:
                try:
                    reader.process_message(message, cell, 0)
                except CellExecutionComplete:
                    break
        reply = self._client.get_shell_msg(timeout=START_TIMEOUT_S)
        while reply["parent_header"].get("msg_id") != request:
            reply = self._client.get_shell_msg(timeout=START_TIMEOUT_S)
        outputs, content = _join_streams(cell.outputs), reply["content"]
        # In place of some tracebacks learners see a sentence (notebook/name_errors.py): the cell has failed all the same.
        if content["status"] == "error" and not any(output["output_type"] == "error" for output in outputs):
            outputs.append(v4.new_output("error", **{key: content[key] for key in ("ename", "evalue", "traceback")}))
        return cell.execution_count, outputs

    def quoted_value(self, quote: str, timeout_s: float) -> dict[str, Any]:
        """What prose quotes by {{ quote }}, an output in nbformat's form: the text, or the error. The cells' count stays."""
        _, outputs = self.run(percent.code_of(quote), timeout_s, store_history=False)
        errors = [output for output in outputs if output["output_type"] == "error"]
        text = "".join(output["text"] for output in outputs if output.get("name") == "stdout")
        return errors[0] if errors else {"output_type": "stream", "name": "stdout", "text": text}


def _join_streams(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs, pieces of one stream put together: where a kernel cuts it is chance."""
    pieces: list[dict[str, Any]] = []
    for output in outputs:
        if output["output_type"] == "stream" and pieces and pieces[-1].get("name") == output["name"]:
            pieces[-1]["text"] += output["text"]
        else:
            pieces.append(output)
    return pieces


def run(course: Course, cells: list[dict[str, Any]], timeout_s: float = CELL_TIMEOUT_S) -> Outputs:
    """Runs a notebook's cells in order, each for at most timeout_s; stops after the first that raises.

    A prediction quotes what the cells right below it find: its numbers are asked for before the next Markdown cell.

    Returns: for each cell (execution count, outputs), without what changes from run to run; for Markdown (None, an output for
             each number that it quotes); (None, []) for what did not run.
    Raises:  RunError, with the cell's id in front.
    """
    results: Outputs = [(None, [])] * len(cells)
    with NotebookRun(course) as kernel:
        for number in _running_order(cells):
            cell = cells[number]
            text = "".join(cell["source"])
            try:
                if cell["cell_type"] == "code":
                    count, outputs = kernel.run(text, timeout_s)
                else:
                    count = None
                    outputs = [kernel.quoted_value(quote.text, timeout_s) for quote in percent.quotes(text)]
            except RunError as error:
                raise RunError(f"{cell['id']}: {error}") from None
            results[number] = count, list(map(_stabilize, outputs))
            if any(output["output_type"] == "error" for output in outputs):
                break
    return results


def _running_order(cells: list[dict[str, Any]]) -> list[int]:
    """The positions of cells in the order in which they are run or quote: a prediction after the code below it."""
    prose = [number for number, cell in enumerate(cells) if cell["cell_type"] != "code"]
    ends = {
        number: end
        for number, end in zip(prose, [*prose[1:], len(cells)])
        if percent.is_folded("".join(cells[number]["source"]))
    }
    return sorted(range(len(cells)), key=lambda number: ends.get(number, number + 0.5))


def _stabilize(output: Any) -> dict[str, Any]:
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
    lines = text.splitlines(keepends=True)
    for sign, pattern, replacement in _CHANGING:
        lines = [pattern.sub(replacement, line) if sign in line else line for line in lines]
    return lines


def checkpoints_folder(course: Course) -> Path:
    """Where a lesson's run leaves what it has trained, in a file called like the lesson, for the builds of later lessons."""
    return course.root / "build" / "kept"


def _environment(course: Course, scratch: Path) -> dict[str, str]:
    """The kernel's: this package importable, no start-up files, a progress record of its own; what lessons train is shared."""
    path = (str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", ""))
    return {
        "OMP_WAIT_POLICY": "PASSIVE",
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "IPYTHONDIR": str(scratch / "ipython"),
        "ATTENTION_COURSE_PROGRESS": str(scratch / "progress.json"),
        "ATTENTION_COURSE_KEPT": str(checkpoints_folder(course)),
    }

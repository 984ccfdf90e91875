"""Runs the code cells of a notebook in a fresh kernel of this interpreter and collects what they show.

jupyter_client's blocking calls alone, and so not nbclient: with asyncio's sockets a message that is there may go unnoticed
until the time-out (seen with pyzmq 27.3), and a build that takes 10 seconds took 190.
"""

from __future__ import annotations

import os
import queue
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grader.course import prose
from grader.course.course import Course

START_TIMEOUT_S = 120
SHOWN = ("stream", "display_data", "execute_result", "error")


class KernelError(Exception):
    """The kernel did not start, ended, or took too long; the message says which."""


class Kernel:
    """A kernel in a scratch folder; use it in `with Kernel(course) as kernel`."""

    def __init__(self, course: Course) -> None:
        self._course = course

    def __enter__(self) -> Kernel:
        from jupyter_client.manager import KernelManager

        self._scratch = tempfile.TemporaryDirectory(prefix="lesson-", ignore_cleanup_errors=True)
        folder = Path(self._scratch.name)
        self._manager = KernelManager(kernel_spec_manager=_this_interpreter())
        if os.name == "posix":  # sockets in our own folder: TCP ports may be taken by another kernel that starts now
            self._manager.transport, self._manager.ip = "ipc", str(folder / "kernel")
        self._manager.start_kernel(cwd=str(folder), env=_environment(self._course, folder))
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        try:
            self._client.wait_for_ready(timeout=START_TIMEOUT_S)
        except RuntimeError as error:
            self.__exit__()
            raise KernelError(f"the kernel did not start: {error}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._scratch.cleanup()

    def run(self, code: str, timeout_s: float) -> tuple[int | None, list[dict[str, Any]]]:
        """Runs one cell. Returns: (execution count, outputs in nbformat's form). Raises: KernelError."""
        collected = _Outputs()
        for message in self._messages(code, timeout_s):
            collected.take(message)
        return collected.count, collected.outputs

    def quoted_value(self, asked: str, timeout_s: float) -> dict[str, Any]:
        """What prose quotes by {{ asked }}, an output in nbformat's form: the text, or the error. The cells' count stays."""
        collected = _Outputs()
        for message in self._messages(prose.code_of(asked), timeout_s, store_history=False):
            collected.take(message)
        errors = [output for output in collected.outputs if output["output_type"] == "error"]
        text = "".join(output["text"] for output in collected.outputs if output.get("name") == "stdout")
        return errors[0] if errors else {"output_type": "stream", "name": "stdout", "text": text}

    def _messages(self, code: str, timeout_s: float, store_history: bool = True) -> Iterator[dict[str, Any]]:
        """What the kernel publishes of one request, until it is idle again."""
        request = self._client.execute(code, allow_stdin=False, store_history=store_history)
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                message = self._client.get_iopub_msg(timeout=1)
            except queue.Empty:
                if not self._manager.is_alive():
                    raise KernelError("the kernel ended while this cell ran.") from None
                message = {"parent_header": {}}
            if time.monotonic() > deadline:
                raise KernelError(f"this cell is still running after {timeout_s:g} s.")
            if message["parent_header"].get("msg_id") == request:
                if message["content"].get("execution_state") == "idle":
                    return
                yield message


class _Outputs:
    """Puts messages together as a notebook stores them."""

    def __init__(self) -> None:
        self.count: int | None = None
        self.outputs: list[dict[str, Any]] = []
        self._named: dict[str, list[dict[str, Any]]] = {}  # what a later message may draw over, by display id
        self._clear_next = False
        self._output_widgets: set[str] = set()  # ids of ipywidgets' Output
        self._capturing: set[str] = set()  # those that take what is shown now

    def take(self, message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "execute_input":
            self.count = content["execution_count"]
        elif kind.startswith("comm_"):
            self._take_comm(kind, content)
        elif self._capturing:
            return  # shown by a control, not by the cell
        elif kind == "clear_output":
            self._clear_next = content.get("wait", False)
            if not self._clear_next:
                self.outputs.clear()
        elif kind == "update_display_data":
            for output in self._named.get(_display_id(content), ()):
                output.update(data=content["data"], metadata=content["metadata"])
        elif kind in SHOWN:
            self._add(message)

    def _add(self, message: dict[str, Any]) -> None:
        from nbformat.v4 import output_from_msg

        if self._clear_next:
            self.outputs.clear()
            self._clear_next = False
        output = output_from_msg(message)
        before = self.outputs[-1] if self.outputs else {}
        if output["output_type"] == "stream" and before.get("name") == output["name"]:
            before["text"] += output["text"]  # where a kernel cuts a stream is chance
        else:
            self.outputs.append(output)
            self._named.setdefault(_display_id(message["content"]), []).append(output)

    def _take_comm(self, kind: str, content: dict[str, Any]) -> None:
        comm, state = content["comm_id"], content.get("data", {}).get("state", {})
        if kind == "comm_open" and state.get("_model_name") == "OutputModel":
            self._output_widgets.add(comm)
        if comm in self._output_widgets and "msg_id" in state:
            (self._capturing.add if state["msg_id"] else self._capturing.discard)(comm)


def _display_id(content: dict[str, Any]) -> str:
    """'' for what has none; a message that draws over something always has one."""
    return content.get("transient", {}).get("display_id", "")


def run(course: Course, cells: list[dict[str, Any]], timeout_s: float) -> list[tuple[int | None, list[dict[str, Any]]]]:
    """Runs a notebook's cells in order; stops after the first that raises.

    A prediction quotes what the cells right below it find: its numbers are asked for before the next Markdown cell.

    Returns: for each cell (execution count, outputs); for Markdown (None, an output for each number that it quotes);
             (None, []) for what did not run.
    Raises:  KernelError, with the cell's id in front.
    """
    results: list[tuple[int | None, list[dict[str, Any]]]] = [(None, [])] * len(cells)
    with Kernel(course) as kernel:
        for number in _turns(cells):
            cell = cells[number]
            text = "".join(cell["source"])
            try:
                if cell["cell_type"] == "code":
                    results[number] = kernel.run(text, timeout_s)
                else:
                    results[number] = None, [kernel.quoted_value(one.text, timeout_s) for one in prose.asked_in(text)]
            except KernelError as error:
                raise KernelError(f"{cell['id']}: {error}") from None
            if any(output["output_type"] == "error" for output in results[number][1]):
                break
    return results


def _turns(cells: list[dict[str, Any]]) -> Iterator[int]:
    """The positions of cells in the order in which they are run or asked: a prediction after the code below it."""
    waiting: list[int] = []
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            yield from waiting
            waiting = []
            if prose.is_folded("".join(cell["source"])):
                waiting = [number]
                continue
        yield number
    yield from waiting


def _this_interpreter() -> Any:
    """A kernel of this very interpreter, whatever kernelspecs are or are not installed."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

    class ThisInterpreter(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
            return KernelSpec(argv=argv, display_name="Python 3", language="python")

    return ThisInterpreter()


def checkpoints_folder(course: Course) -> Path:
    """Where a lesson's run leaves what it has trained, in a file called like the lesson, for the builds of later lessons."""
    return course.root / "build" / "kept"


def _environment(course: Course, scratch: Path) -> dict[str, str]:
    """The kernel's: this package importable, no start-up files, a progress record of its own; what lessons train is shared."""
    package_parent = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (package_parent, os.environ.get("PYTHONPATH", ""))))
    return {
        **os.environ,
        "PYTHONPATH": path,
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),
        "IPYTHONDIR": str(scratch / "ipython"),
        "ATTENTION_COURSE_PROGRESS": str(scratch / "progress.json"),
        "ATTENTION_COURSE_KEPT": str(checkpoints_folder(course)),
    }

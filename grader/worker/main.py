"""A worker: runs a learner's cells, then answers what each exercise shows of itself.

It knows no answer. It reads requests from one socket and writes one reply to each; whatever the
learner's code does to this process (patches, exits, floods, forged replies) costs that learner's
own result and nothing else.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import sys
import tempfile
import threading
from multiprocessing.context import BaseContext
from types import SimpleNamespace
from typing import Any

from . import kernel_walls, limits, output, probes, protocol, torch_modes, watch
from .cells import CellRunner, install_stub
from .integrity import ProcessState
from .observe import default_modes, failure_from, observe, seed
from .values import Failure, Observation


def serve(channel: socket.socket) -> None:
    """Answers requests until the channel ends."""
    own_pid = os.getpid()
    notebook: Any = None
    exercise, initial_state = "", None  # the exercise that answers, and the process before the first did
    modes = contextlib.ExitStack()
    watch.follow_threads()
    while True:
        try:
            request, nonce = protocol.receive(channel.recv)
        except (EOFError, ConnectionError):
            return
        if request["do"] == "begin":
            folder = request["folder"]
            _move_into(folder)
            limits.apply(request["memory_bytes"], request["cpu_s"])
            answer: dict[str, Any] = {"lacking": kernel_walls.apply_walls(folder) if request["walls"] else "walls"}
            seed()
            notebook = CellRunner()
        elif request["do"] == "cell":
            answer = run_cell(notebook, request)
        elif initial_state is not None and request["name"] != exercise and initial_state.has_changed():
            answer = {"stale": True}  # what the exercise before has changed must not touch this one
        else:
            if initial_state is None:
                # A cell may have put something else in the place of torch's functions.
                with contextlib.suppress(Exception):
                    modes.enter_context(default_modes())
                initial_state = ProcessState()
            exercise = request["name"]
            for case in request["cases"]:
                answer = answer_of(notebook, request["name"], case)
                _reply(channel, own_pid, answer, nonce)
            continue
        _reply(channel, own_pid, answer, nonce)


def _reply(channel: socket.socket, own_pid: int, reply: dict[str, Any], nonce: bytes) -> None:
    if os.getpid() != own_pid:  # a fork that the learner's code made has come back from it
        os._exit(0)
    if output.written_bytes > output.MUCH_BYTES:
        reply["printed_much"] = True
    channel.sendall(protocol.frame(body_of(reply), nonce))


def _move_into(folder: str) -> None:
    """Makes the notebook's own folder the place for everything that its code writes."""
    os.chdir(folder)
    for name in ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"):
        os.environ[name] = folder
    tempfile.tempdir = None


def run_cell(notebook: CellRunner, request: dict[str, Any]) -> dict[str, Any]:
    failure, names = notebook.run(request["label"], request["text"], request["names"])
    return {"failure": failure, "bound": list(names)}


def answer_of(notebook: CellRunner, name: str, case: dict[str, Any]) -> dict[str, Any]:
    try:
        if name not in notebook.namespace:
            raise NameError(f"{name} is defined no more when all cells have run: one of them deletes it")
        return {"observation": observe(notebook.namespace[name], SimpleNamespace(**case))}
    except BaseException as error:  # KeyboardInterrupt, raised by the learner's code
        return {"observation": Observation(failure=failure_from(error))}


def body_of(reply: dict[str, Any]) -> protocol.Body:
    """A reply, ready to be framed; one that is larger than a message may be says so in its place."""
    try:
        return protocol.body(reply)
    except protocol.WireError as error:
        return protocol.body({"observation": Observation(failure=Failure("invalid", message=str(error)))})


def silence() -> None:
    """Points the standard streams, both Python's and the descriptors, at nothing."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    if null > 2:
        os.close(null)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # for as long as the process lives
    sys.stdout, sys.stderr = output.NullText(1), output.NullText(2)  # type: ignore[assignment]


def share_locks() -> None:
    """Makes locks between processes, which a ThreadPool asks for, too, locks between threads: no worker has processes.

    The system's own are files in /dev/shm, which is closed to a worker.
    """
    for name in ("Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition", "Event", "Barrier"):
        setattr(BaseContext, name, staticmethod(getattr(threading, name)))


def load_libraries(libraries: str, folder: str) -> bool:
    """Makes the course's probes, and imports torch where it is asked for and installed: lessons in NumPy are graded without it.

    folder: where probes.json has the texts of the probes; it is removed.

    Returns: whether there is torch now.
    """
    share_locks()
    with_torch = libraries == "torch" and importlib.util.find_spec("torch") is not None
    if with_torch:
        import torch

        torch.set_num_threads(1)
        torch_modes.mode_classes()
    probes_file = os.path.join(folder, "probes.json")
    with open(probes_file, encoding="utf-8") as file:
        texts = json.load(file)
    os.unlink(probes_file)
    probes.offer(texts)
    probes.load_all(with_torch)
    return with_torch


def main(arguments: list[str]) -> None:
    """A worker that was started as a process of its own: `start.py worker FD PARENT torch|plain FOLDER`."""
    descriptor, parent, libraries, folder = arguments
    channel = protocol.connect(descriptor)
    silence()
    limits.die_with_parent(int(parent))
    load_libraries(libraries, folder)
    install_stub()
    serve(channel)
    os._exit(0)  # whatever threads the learner's code has left behind

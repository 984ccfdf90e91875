"""The zygote: a parent that imports the slow libraries once and forks a worker whenever it is asked (Linux).

It is a fresh process, never one that holds references: a fork would find them in its memory. It
computes nothing itself, because threads that a library starts do not survive a fork.

Messages on its control socket, one datagram each:
  'fork' with a descriptor        → 'forked PARENT WORKER', the numbers of this process and of the worker;
                                  then, once, 'ended STATUS' when that worker is gone
  'end'                           ends the worker, if one is there
  'supervisor' with a descriptor  forks a process that has all libraries and serves there as this one does;
                                  whoever has supervisors forks no workers itself
  (end of stream)                 ends the worker, or all supervisors, and this process
When a worker ends, all that it started ends with it.
"""

from __future__ import annotations

import gc
import os
import select
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from . import kernel_walls, limits, main as worker, protocol
from .cells import CellRunner, install_stub
from .integrity import ProcessState
from .values import Tensor

Work = Callable[[socket.socket], None]
REHEARSALS = 12  # Python specializes what has run eight times

# The operations that solutions are made of, put together to nothing: a learner's code could read this.
CELLS = """
import numpy as np

def rows(x, y):
    z = np.exp(-x * x) + x.max(axis=0, keepdims=True)
    return np.swapaxes(z, -1, -2) @ y / (1 + z.sum(axis=-1, keepdims=True)), [np.einsum('ij,jk->ki', x, y), (x ** 2).mean()]
"""
TORCH_CELLS = """
import math
import torch
from torch import nn
import torch.nn.functional as F

def tensors(x, y):
    z = torch.exp(-x * x) + x.amax(dim=0, keepdim=True)
    filled = (x.transpose(-2, -1) @ y + math.pi).masked_fill(torch.ones(2, 2).bool(), 0.5)
    return z / (1 + z.sum(dim=-1, keepdim=True)), torch.where(filled > 0, filled + x, 0.0).sum(-1)

class Module(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w_q = nn.Linear(width, width, bias=False)
        self.drop = nn.Dropout(0.1)
        self.register_buffer('kept', torch.ones(width))

    def forward(self, x):
        return self.drop(self.w_q(x) * self.kept).view(1, 2, 2).transpose(-2, -1).reshape(2, 2)
"""


def main(arguments: list[str]) -> None:
    """Serves until the control socket ends, then removes the folder: `start.py warm FD PARENT torch|plain FOLDER`."""
    descriptor, _, libraries, folder = arguments
    control = socket.socket(fileno=int(descriptor))
    limits.adopt_orphans()
    limits.hide_memory(True)
    with_torch = worker.load_libraries(libraries, folder)
    install_stub()
    kernel_walls.readable()
    rehearse(with_torch)
    gc.freeze()  # a collection in a worker then leaves these pages shared
    try:
        live(control, _work)
    finally:  # whoever held the other end may have been killed, and this process is the last of all
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)  # taking torch down in order takes a third of a second


def live(control: socket.socket, work: Work) -> None:
    """Serves to the end of the stream; a worker does `work` with its channel."""
    worker_pid = 0
    supervisors: set[int] | None = None
    for message, descriptors in _events(control):
        if message == b"fork":
            worker_pid = _fork(descriptors[0], work)
            control.send(b"forked %d %d" % (os.getpid(), worker_pid))
        elif message == b"end" and worker_pid:
            os.kill(worker_pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
        elif message == b"supervisor":
            supervisors = (supervisors or set()) | {_fork(descriptors[0], partial(_supervise, work))}
        elif not message:
            codes = _reap()
            if worker_pid in codes:
                limits.end_all_children()  # what it left
                control.send(b"ended %d" % os.waitstatus_to_exitcode(codes[worker_pid]))
                worker_pid = 0
            if supervisors is not None:
                supervisors.difference_update(codes)
                for pid in limits.children():
                    if pid not in supervisors:  # left to this process by a supervisor that was itself killed
                        os.kill(pid, signal.SIGKILL)  # a child of this process, so the number is still its own


def _supervise(work: Work, control: socket.socket) -> None:
    limits.adopt_orphans()
    live(control, work)


def _events(control: socket.socket) -> Iterator[tuple[bytes, list[int]]]:
    """Messages with their descriptors; b"" when children have ended. At the end of the stream all children are ended."""
    wake_reader, wake_writer = socket.socketpair()
    for end in (wake_reader, wake_writer):
        end.setblocking(False)
    signal.set_wakeup_fd(wake_writer.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        while True:
            ready, _, _ = select.select([control, wake_reader], [], [])
            if control in ready:
                message, descriptors, _, _ = socket.recv_fds(control, 64, 1)
                if not message:
                    return
                yield message, descriptors
            if wake_reader in ready:
                wake_reader.recv(4096)
                yield b"", []
    finally:
        limits.end_all_children()


def _reap() -> dict[int, int]:
    """Wait statuses, by process id, of the children that have ended."""
    codes = {}
    with suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            codes[child[0]] = child[1]
    return codes


def _fork(descriptor: int, work: Work) -> int:
    """A child that does `work` with this socket alone, and ends with this process. Returns its number."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        os.close(descriptor)
        return pid
    try:
        os.setsid()
        limits.die_with_parent(parent)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.closerange(3, descriptor)
        os.closerange(descriptor + 1, 4096)
        work(socket.socket(fileno=descriptor))
    except BaseException:  # only the code around the learner's can raise here: there is nobody to tell
        os._exit(70)
    finally:
        os._exit(0)
    return 0


def _work(channel: socket.socket) -> None:
    limits.hide_memory(False)
    worker.silence()
    worker.serve(channel)


def rehearse(torch: bool) -> list[str]:
    """Goes through every way of trying an exercise, torch's part only if asked to, so that no worker has to. Returns what failed.

    The first call of everything is dear: NumPy and torch look up their kernels, Python specializes its code and imports what is
    late. Forks inherit what was done here.
    """
    x = np.array([[1.0, 2.0], [3.0, 5.0]])
    cases = {"rows": _case("call", (x, x), watch=("softmax", "attention", "einsum"))}
    if torch:
        tensor = Tensor(x, "float32", requires_grad=True)
        watch = ("softmax", "attention")
        contract: dict[str, Any] = {"init": (2,), "linear": ("w_q",), "no_bias": ("w_q",), "state": {"w_q.weight": x}}
        cases["tensors"] = _case("call", (tensor, tensor), watch=(*watch, "table"))
        cases["Module"] = _case("module", (tensor,), watch=watch, gradients=True, twice=True, **contract)
    notebook, failures = CellRunner(), []
    for _ in range(REHEARSALS):
        state = ProcessState()
        worker.run_cell(notebook, {"label": "rehearsal", "text": CELLS + TORCH_CELLS * torch, "names": ("rows",)})
        for name, case in cases.items():
            observation = protocol.unpack(worker.body_of(worker.answer_of(notebook, name, case)))["observation"]
            failures += [f"{name}: {observation['failure']}"] if observation["failure"] else []
        failures += ["the state of the process"] if state.has_changed() else []
    return failures


def _case(probe: str, args: tuple, **options: Any) -> dict[str, Any]:
    return {"probe": probe, "args": args, "kwargs": {}, "options": options, "names": ("x", "y")[: len(args)]}

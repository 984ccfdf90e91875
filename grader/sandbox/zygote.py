"""The zygote as the trusted side sees it: a process that has the slow libraries imported and forks workers (Linux).

What it does itself is in worker/warm.py.
"""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass

import psutil

from grader.sandbox import usage
from grader.sandbox.isolation import SandboxError
from grader.sandbox.process import START_S, Program, Worker, end_strays, end_tree, last_output, start_interpreter
from grader.sandbox.scratch import new_folder, remove_folder


class ForkedWorker(Worker):
    """Forked by a parent, which ends it with all that it started, and reports its end on `control`."""

    def __init__(self, forker: Forker, channel: socket.socket, pid: int, memory_bytes: int) -> None:
        super().__init__(channel, memory_bytes, pid)
        assert forker.parent is not None and forker.control is not None
        self._forker, self._parent, self._control = forker, forker.parent, forker.control  # it may have others later
        self._is_over = False

    def _has_ended(self) -> bool:
        if not self._is_over:
            self._control.setblocking(False)
            try:
                self._control.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                return False
            except OSError:
                pass  # closed by another thread
            self._receive_end()
        return True

    def _receive_end(self) -> None:
        self._is_over = True
        report = receive(self._control, 10.0)
        if report.startswith("ended "):
            self.status = int(report.split()[1])
        else:  # the parent itself is gone: the learner's code must have ended it
            self._forker.close()

    def _pids(self) -> list[int]:
        # A parent that has ended: its number may be another's by now.
        return usage.descendants(self._parent.pid) if self._parent.is_running() else []

    def _end(self) -> None:
        self._channel.close()
        if not self._is_over:
            with contextlib.suppress(OSError):
                self._control.send(b"end")
            self._receive_end()


@dataclass(frozen=True)
class ZygoteChannel:
    """The channel to a zygote, which several processes may hold: so the libraries are in memory once.

    torch: whether it has torch imported; folder: where its words at a failed start are.
    """

    control: socket.socket
    torch: bool
    folder: str


class Zygote:
    """A fresh interpreter, which imports while the caller goes on.

    folder: its home, by default a new one; removed when it ends, whatever becomes of this process.
    """

    def __init__(self, program: Program, folder: str | None = None) -> None:
        folder = folder or new_folder()
        control, child_control = control_pair()
        self.channel = ZygoteChannel(control, program.torch, folder)
        self.process = start_interpreter("warm", program, child_control, folder)

    def close(self) -> None:
        """Ends it, its workers and all that those started. May be called again."""
        control, folder = self.channel.control, self.channel.folder
        if control.fileno() < 0:
            return
        end_forking(control, self.process)
        if self.process.wait() != 0:
            end_strays(folder)
        remove_folder(folder)


class Forker:
    """Where workers are forked, one at a time: by a zygote of one's own, or by a supervisor that is forked from a shared one.

    What has ended is begun anew; once a shared zygote has ended, one's own takes its place.

    control: the channel to what forks; parent: that process, once it has forked.
    """

    def __init__(self, program: Program, shared: ZygoteChannel | None = None) -> None:
        self._program, self._shared = program, shared
        self.zygote = None if shared else Zygote(program)
        self.control = self.zygote.channel.control if self.zygote else None
        self.parent: psutil.Process | None = None

    def fork(self, memory_bytes: int) -> ForkedWorker:
        """A new worker, once the libraries have been imported. Raises SandboxError where none can be had."""
        if self.parent is not None:
            with contextlib.suppress(SandboxError):  # it has ended since
                return self._fork(memory_bytes)
        return self._fork(memory_bytes)

    def _fork(self, memory_bytes: int) -> ForkedWorker:
        control = self.control or self._begin()
        channel, child_channel = socket.socketpair()
        with child_channel, contextlib.suppress(OSError):
            socket.send_fds(control, [b"fork"], [child_channel.fileno()])
        answer = receive(control, START_S)
        if not answer.startswith("forked "):
            channel.close()
            owner = self.zygote.channel if self.zygote is not None else self._shared
            problem = last_output(owner.folder) if owner is not None else ""  # gone with the folder
            self.close()
            raise SandboxError(f"no worker could be started: {problem}")
        parent, pid = map(int, answer.split()[1:])
        if self.parent is None:
            self.parent = psutil.Process(parent)
        return ForkedWorker(self, channel, pid, memory_bytes)

    def _begin(self) -> socket.socket:
        if self._shared is not None:
            self.control, child_control = control_pair()
            with child_control:
                try:
                    socket.send_fds(self._shared.control, [b"supervisor"], [child_control.fileno()])
                    return self.control
                except OSError:  # that zygote has ended
                    self._shared = None
                    self.control.close()
        self.zygote = Zygote(self._program)
        self.control = self.zygote.channel.control
        return self.control

    def close(self) -> None:
        """Ends the worker and all that this started, then what has forked it. May be called again."""
        if self.zygote is not None:
            self.zygote.close()
        elif self.control is not None:
            end_forking(self.control, self.parent)
        self.zygote = self.control = self.parent = None


def control_pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a channel that keeps messages apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def end_forking(control: socket.socket, process: psutil.Process | None) -> None:
    """Hangs up on what forks workers, which then ends with all that it started; after five seconds all that is killed.

    Closing alone would leave it waiting where another thread or process waits for its answer.
    """
    with contextlib.suppress(OSError):
        control.shutdown(socket.SHUT_RDWR)
    control.close()
    if process is None:
        return
    status = None
    with contextlib.suppress(psutil.Error):
        status = process.wait(5.0)
    if status != 0:
        with contextlib.suppress(psutil.Error):
            end_tree([process, *process.children(recursive=True)], process.pid)


def receive(control: socket.socket, timeout_s: float) -> str:
    """The next message, '' where none comes in time or the other end is gone."""
    try:
        control.settimeout(timeout_s)
        return control.recv(64).decode("ascii", "replace")
    except OSError:
        return ""

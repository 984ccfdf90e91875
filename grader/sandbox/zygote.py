"""Warm parents as the trusted side sees them: processes that have the slow libraries imported and fork workers (Linux).

What they do themselves is in worker/warm.py.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from grader.sandbox import usage
from grader.sandbox.process import (
    START_S,
    SandboxError,
    Worker,
    end_marked,
    end_tree,
    last_words,
    start_interpreter,
    write_probes,
)
from grader.sandbox.scratch import new_folder, remove_folder


class ForkedWorker(Worker):
    """Forked by a warm parent, which ends it and reports its end."""

    def __init__(self, warm: WarmParent, channel: socket.socket, pid: int, memory_bytes: int) -> None:
        super().__init__(channel, memory_bytes)
        self._warm = warm
        self._pid = pid
        self._status: int | None = None
        self._ended = False
        self._awaited.register(warm.control, selectors.EVENT_READ)  # it tells when the worker has ended

    def _has_ended(self, event: bool) -> bool:
        if event and not self._ended:
            self._note(self._warm.receive(1.0))
        return self._ended

    def _note(self, message: str) -> None:
        self._ended = True
        self._awaited.unregister(self._warm.control)
        if message.startswith("ended "):
            self._status = int(message.split()[1])
        else:  # the warm parent itself is gone: the learner's code must have ended it
            self._warm.close()

    def _pids(self) -> list[int]:
        try:
            return usage.below(self._warm.process.pid)
        except psutil.Error:
            return []

    def _processes(self) -> list[psutil.Process]:
        return (
            super()._processes() if self._warm.process.is_running() else []
        )  # else its number may be another's by now

    def _end(self) -> None:
        self._channel.close()
        if not self._ended:
            self._warm.send(b"end")
            self._note(self._warm.receive(10.0))

    @property
    def status(self) -> int | None:
        return self._status


class WarmParent:
    """The channel to one. torch: whether it has torch imported; folder: where its words at a failed start are."""

    def __init__(self, torch: bool, folder: str) -> None:
        self.control, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.torch = torch
        self._folder = folder

    @property
    def process(self) -> psutil.Process:
        """Raises: psutil.NoSuchProcess."""
        raise NotImplementedError

    @property
    def alive(self) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        """Ends it, its worker and all that those started. May be called again."""
        raise NotImplementedError

    def _hang_up(self) -> None:
        """It then ends its worker and itself, even while another thread waits for its answer: closing alone would leave that waiting."""
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        self.control.close()

    def fork(self, memory_bytes: int) -> ForkedWorker:
        """A new worker. Raises SandboxError where the warm parent does not answer."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self.control, [b"fork"], [theirs.fileno()])
            except OSError as error:
                raise SandboxError(f"no worker could be started: {error}") from error
        answer = self.receive(START_S)
        if not answer.startswith("forked "):
            said = last_words(self._folder)  # gone with the folder
            self.close()
            raise SandboxError(f"no worker could be started: {said}")
        return ForkedWorker(self, ours, int(answer.split()[1]), memory_bytes)

    def send(self, message: bytes) -> None:
        with contextlib.suppress(OSError):
            self.control.send(message)

    def receive(self, timeout_s: float) -> str:
        """The next message, '' where none comes in time or the warm parent is gone."""
        try:
            self.control.settimeout(timeout_s)
            return self.control.recv(64).decode("ascii", "replace")
        except OSError:
            return ""


class StartedParent(WarmParent):
    """A fresh interpreter, which imports while the caller goes on.

    folder: its home, by default a new one; removed when it ends, whatever becomes of this process.
    probes: the texts of the course's probes, by module.
    program: what it runs, by default worker/warm.py.
    """

    def __init__(
        self,
        torch: bool,
        folder: str | None = None,
        probes: Mapping[str, str] | None = None,
        program: Path | None = None,
    ) -> None:
        folder = folder or new_folder()
        super().__init__(torch, folder)
        arguments = ["warm", str(self._theirs.fileno()), "torch" if torch else "plain", folder]
        arguments += [] if program else [write_probes(folder, probes or {})]
        with self._theirs:
            self._popen = start_interpreter(arguments, folder, self._theirs, program)
        self._process = psutil.Process(self._popen.pid)

    @property
    def process(self) -> psutil.Process:
        return self._process

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None and self.control.fileno() >= 0

    @property
    def shared(self) -> SharedZygote:
        """For others to have warm parents of their own forked from this one, which then forks no workers itself."""
        return SharedZygote(self.control, self.torch, self._folder)

    def close(self) -> None:
        running = self.control.fileno() >= 0
        self._hang_up()
        if not running:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(5.0)
        if self._popen.returncode != 0:
            with contextlib.suppress(psutil.Error):
                end_tree([self.process, *self.process.children(recursive=True)], self._popen.pid)
            self._popen.wait()
            end_marked(self._folder)
        remove_folder(self._folder)


@dataclass(frozen=True)
class SharedZygote:
    """A warm parent from which further ones are forked, so that all share its memory: the libraries are there once.

    control: its channel, which several processes may hold; it takes requests and gives no answer.
    """

    control: socket.socket
    torch: bool
    folder: str

    def part(self) -> PartedParent:
        """A warm parent of one's own. Raises: OSError where the zygote is gone."""
        return PartedParent(self)


class PartedParent(WarmParent):
    """Forked from a zygote, which ends what it leaves behind."""

    def __init__(self, zygote: SharedZygote) -> None:
        super().__init__(zygote.torch, zygote.folder)
        self._known: psutil.Process | None = None
        with self._theirs:
            socket.send_fds(zygote.control, [b"part"], [self._theirs.fileno()])

    @property
    def process(self) -> psutil.Process:
        if self._known is None:
            self._known = psutil.Process(self._number())
        return self._known

    def _number(self) -> int:
        """Its first message is its number, once the zygote has imported its libraries."""
        message = self.receive(START_S)
        if not message.startswith("parted "):
            raise psutil.NoSuchProcess(0, msg="the zygote is gone")
        return int(message.split()[1])

    @property
    def alive(self) -> bool:
        """Waits until the zygote has imported its libraries."""
        try:
            return (
                self.control.fileno() >= 0
                and self.process.is_running()
                and self.process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.Error:
            return False

    def fork(self, memory_bytes: int) -> ForkedWorker:
        if not self.alive:  # its number comes before any answer
            raise SandboxError(f"no worker could be started: {last_words(self._folder)}")
        return super().fork(memory_bytes)

    def close(self) -> None:
        running = self.control.fileno() >= 0
        self._hang_up()
        if not running or self._known is None:
            return
        with contextlib.suppress(psutil.Error):
            self._known.wait(5.0)
        with contextlib.suppress(psutil.Error):
            end_tree([self._known, *self._known.children(recursive=True)], self._known.pid)

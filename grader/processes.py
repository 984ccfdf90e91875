"""Starts worker processes, talks to them against the clock, and ends them with all they started."""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import selectors
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from grader.worker import wire
from grader.worker.values import Failure

START = Path(__file__).resolve().parent / "worker" / "start.py"
START_S = 120.0  # for an interpreter to come up and import torch on a busy machine
TICK_S = 0.1  # between two looks at a working process's memory
DISK_S = 0.5  # between two looks at its files, while it works
MAX_DISK_BYTES = 256 << 20  # of all files of a worker together; worker/limits.py limits each
MAX_FILES = 20_000


class SandboxError(RuntimeError):
    """The grader could not run a worker: its own fault, never the learner's."""


class WorkerLost(Exception):
    """A worker that gave no valid answer and was ended; `failure` says why."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}{detail and ': '}{detail}")
        self.kind = kind
        self.detail = detail

    def failure(self, subject: str, timeout_s: float, memory_bytes: int) -> Failure:
        """What is said of it; subject: what ran, as a sentence begins, 'Cell 7'."""
        said = {
            "timeout": f"{subject} did not finish within {timeout_s:g} s.",
            "memory": f"{subject} used more than {memory_bytes / 2**30:g} GiB of memory.",
            "disk": f"{subject} filled the notebook's folder: {self.detail}.",
            "died": f"{subject} ended the process{self.detail}.",
        }
        kind = "died" if self.kind == "disk" else self.kind
        return Failure(kind, message=said.get(self.kind, self.detail))


class _Stream(io.RawIOBase):
    """What comes from a worker, to be read through a buffer."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._worker.receive(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class Worker:
    """One worker process and the channel to it. Subclasses know how it was started.

    folder: the only place where it may write, once that is known; how much lies there is watched.
    """

    folder = ""
    _pid = 0

    def __init__(self, channel: socket.socket, memory_bytes: int) -> None:
        self._channel = channel
        self._memory_bytes = memory_bytes
        self._deadline = 0.0  # of the request at hand
        self._come = io.BufferedReader(_Stream(self), 1 << 16)
        self._looked = 0.0  # when its files were last counted
        # Not epoll, which would need a descriptor, and not a new one for each of a hundred replies.
        self._awaited = getattr(selectors, "PollSelector", selectors.SelectSelector)()
        self._awaited.register(channel, selectors.EVENT_READ)

    def request(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Sends one request and returns the reply to it. Raises as `replies` does, and wire.WireError for what cannot travel."""
        body = wire.body(message)
        with self._or_lost():
            return wire.unpack(next(self.replies(body, 1, timeout_s)))

    def replies(self, request: wire.Body, count: int, timeout_s: float) -> Iterator[wire.Body]:
        """Sends one request and yields the replies to it as they come: the worker need not wait for the next question.

        Raises: WorkerLost after the time, beyond the memory or the files, or where what comes is no reply to this
        request; the worker has been ended then. What a reply says is not looked at.
        """
        nonce = secrets.token_bytes(16)  # a reply written before the question cannot know it
        self._deadline = time.monotonic() + timeout_s
        with self._or_lost():
            self._send(wire.frame(request, nonce))
            for left in reversed(range(count)):
                reply, named = wire.receive_body(self._come.read)
                if named != nonce:
                    raise wire.WireError("a reply to another question")
                if not left:
                    self._look_at_files()  # so that what a cell wrote is not held against the next
                yield reply

    @contextlib.contextmanager
    def _or_lost(self) -> Iterator[None]:
        """Ends the worker where what comes of it fails. Raises: WorkerLost, which says how."""
        try:
            yield
        except (EOFError, ConnectionError):
            self.close()
            raise WorkerLost("died", self.ending()) from None
        except wire.WireError as error:
            self.close()
            raise WorkerLost("invalid", str(error)) from None
        except WorkerLost:
            self.close()
            raise

    def _send(self, data: bytes) -> None:
        self._channel.settimeout(max(self._deadline - time.monotonic(), 0.001))
        try:
            self._channel.sendall(data)
        except TimeoutError:
            raise WorkerLost("timeout") from None

    def receive(self, count: int) -> bytes:
        """At most that many bytes of what has come, b"" at its end. Raises: WorkerLost as `replies` does."""
        while True:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise WorkerLost("timeout")
            ready = self._ready(min(left, TICK_S))
            if self._channel in ready:
                return self._channel.recv(count)
            if self._has_ended(bool(ready)) and self._channel not in self._ready(0):
                return b""
            if not ready and self._memory() > self._memory_bytes:
                raise WorkerLost("memory")
            if time.monotonic() - self._looked > DISK_S:
                self._look_at_files()

    def _ready(self, timeout_s: float) -> list[Any]:
        """Which of what is awaited has something to read, after that time at most."""
        return [key.fileobj for key, _ in self._awaited.select(timeout_s)]

    def _memory(self) -> int:
        """Bytes in use by the worker and all that it started."""
        return sum(_resident(process) for process in self._processes())

    def _look_at_files(self) -> None:
        """Raises: WorkerLost where the worker has written more than it may."""
        self._looked = time.monotonic()
        said = too_full(self.folder, self._pid) if self.folder else ""
        if said:
            raise WorkerLost("disk", said)

    def is_alone(self) -> bool:
        """Whether nothing that it started is still there beside it."""
        return len(self._processes()) <= 1

    def close(self) -> None:
        """Ends the worker and all that it started. May be called again."""
        raise NotImplementedError

    def ending(self) -> str:
        """How the process ended, ' (exit status 3)'; '' where that is not known."""
        raise NotImplementedError

    def _has_ended(self, event: bool) -> bool:
        raise NotImplementedError

    def _processes(self) -> list[psutil.Process]:
        raise NotImplementedError


class SpawnedWorker(Worker):
    """A fresh interpreter of its own: slower, and safe on every system."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket, memory_bytes: int, mark: str) -> None:
        super().__init__(channel, memory_bytes)
        self._process = process
        self._pid = process.pid
        self._mark = mark

    def _has_ended(self, event: bool) -> bool:
        return self._process.poll() is not None

    def _processes(self) -> list[psutil.Process]:
        try:
            top = psutil.Process(self._process.pid)
            return [top, *top.children(recursive=True)]
        except psutil.Error:
            return []

    def close(self) -> None:
        self._channel.close()
        if self._process.returncode is None or self._mark:
            end_tree(self._processes(), self._process.pid)
            self._process.wait()
            end_marked(self._mark)
            self._mark = ""

    def ending(self) -> str:
        return ending_of(self._process.returncode)


def spawn(folder: str, torch: bool, memory_bytes: int) -> SpawnedWorker:
    """A worker in a fresh interpreter."""
    ours, theirs = socket.socketpair()
    handed = "share" if sys.platform == "win32" else str(theirs.fileno())
    process = start_interpreter(["worker", handed, str(os.getpid()), "torch" if torch else "plain"], folder, theirs)
    if handed == "share":
        shared = theirs.share(process.pid)  # type: ignore[attr-defined]
        assert process.stdin is not None
        process.stdin.write(len(shared).to_bytes(4, "big") + shared)
        process.stdin.close()
    theirs.close()
    return SpawnedWorker(process, ours, memory_bytes, folder)


def start_interpreter(
    arguments: list[str], folder: str, channel: socket.socket, program: Path = START
) -> subprocess.Popen[bytes]:
    windows = sys.platform == "win32"
    with open(os.path.join(folder, "errors.txt"), "wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-I", "-B", str(program), *arguments],
            env=_environment(folder), cwd=folder, pass_fds=() if windows else (channel.fileno(),),
            stdin=subprocess.PIPE if windows else subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            start_new_session=not windows, close_fds=True,
        )  # fmt: skip


def _environment(folder: str) -> dict[str, str]:
    """What the interpreter needs and nothing else: no tokens, no names, no paths of the grader's user."""
    kept = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "PATHEXT", "VIRTUAL_ENV")
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    places = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), folder)
    rest = {"MPLBACKEND": "Agg", "LANG": "C.UTF-8", "CUDA_VISIBLE_DEVICES": "", "PATH": os.defpath}
    return {name: os.environ[name] for name in kept if name in os.environ} | threads | places | rest


def ending_of(status: int | None) -> str:
    if status is None:
        return ""
    if status >= 0:
        return f" (exit status {status})"
    if -status == getattr(signal, "SIGXCPU", 0):
        return ": its threads together used up the processor time that a notebook gets"
    try:
        return f" (signal {signal.Signals(-status).name})"
    except ValueError:
        return f" (signal {-status})"


def _resident(process: psutil.Process) -> int:
    """Bytes of memory of one process; pages shared by several are divided among them (Linux)."""
    try:
        with open(f"/proc/{process.pid}/smaps_rollup", "rb") as file:
            return 1024 * int(next(line for line in file if line.startswith(b"Pss:")).split()[1])
    except (OSError, StopIteration):
        pass
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def too_full(folder: str, pid: int) -> str:
    """What is too much of the files below a folder and of those without a name that the process holds open; '' where nothing is."""
    count, size, waiting = 0, _held_bytes(pid), [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    with contextlib.suppress(FileNotFoundError):
                        size += _blocks(entry.stat(follow_symlinks=False))
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                    if count > MAX_FILES:
                        return f"it held more than {MAX_FILES} files"
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed meanwhile
        except OSError as error:  # closed, or nested deeper than a path can say
            return f"a folder in it cannot be looked into ({error.strerror})"
    return f"it held more than {MAX_DISK_BYTES >> 20} MiB" if size > MAX_DISK_BYTES else ""


def _held_bytes(pid: int) -> int:
    """Bytes on the disk of a process's open files that have been removed, as temporary files are (Linux)."""
    size = 0
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/{pid}/fd/{name}")
                size += _blocks(status) if stat.S_ISREG(status.st_mode) and not status.st_nlink else 0
    return size


def _blocks(status: os.stat_result) -> int:
    """Bytes that a file takes on the disk, where the system tells; a file with holes takes less than its size."""
    return 512 * status.st_blocks if hasattr(status, "st_blocks") else status.st_size


def end_tree(processes: list[psutil.Process], group: int) -> None:
    """Kills a process group and the given processes, which may have left it."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()


def end_marked(folder: str) -> None:
    """Kills what a worker left behind outside its tree: such processes carry its folder as TMPDIR."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get("TMPDIR") == folder:
                process.kill()


def last_words(folder: str) -> str:
    """The last line that a failed start left."""
    with contextlib.suppress(OSError):
        lines = Path(folder, "errors.txt").read_text("utf-8", "replace").strip().splitlines()
        return json.dumps(lines[-1][:500]) if lines else "it ended without a word"
    return "it ended without a word"

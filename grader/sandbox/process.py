"""Starts worker processes, talks to them against the clock, and ends them with all they started."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from grader.sandbox import usage
from grader.sandbox.isolation import SandboxError
from grader.util.libraries import ONE_THREAD
from grader.worker import protocol
from grader.worker.values import Failure

START = Path(__file__).resolve().parents[1] / "worker" / "start.py"
START_S = 120.0  # for an interpreter to come up and import torch on a busy machine
TICK_S = 0.1  # between two looks at what a worker uses
BRIEF_S = 0.002  # an answer that comes within this has left nothing worth a look of its own
STRETCH = 3  # a time limit is so many times as long at most, however busy the machine is


@dataclass(frozen=True)
class Program:
    """What a fresh interpreter runs.

    torch: whether it imports torch first. probes: the texts of the course's probes, by module.
    path: of its file, by default worker/start.py.
    """

    torch: bool = False
    probes: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None


class WorkerLost(Exception):
    """A worker that gave no valid answer and was ended; `failure` says why."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}{detail and ': '}{detail}")
        self.kind = kind
        self.detail = detail

    def failure(self, subject: str, timeout_s: float, memory_bytes: int) -> Failure:
        """What is said of it; subject: what ran, as a sentence begins, 'Cell 7'."""
        messages = {
            "timeout": f"{subject} did not finish within {timeout_s:g} s.",
            "memory": f"{subject} used more than {memory_bytes / 2**30:g} GiB of memory.",
            "disk": f"{subject} filled the notebook's folder: {self.detail}.",
            "threads": f"{subject} ran {self.detail}.",
            "died": f"{subject} ended the process{self.detail}.",
        }
        kind = "died" if self.kind in ("disk", "threads") else self.kind
        return Failure(kind, message=messages.get(self.kind, self.detail))


class Worker:
    """One worker process and the channel to it. Subclasses know how it was started.

    folder: the only place where it may write, once that is known.
    error:  why it was ended, where it has used too much.
    status: its exit status, or minus the signal that ended it, once it is closed; None where that is not known.
    """

    folder = ""
    error: Exception | None = None
    status: int | None = None

    def __init__(self, channel: socket.socket, memory_bytes: int, pid: int) -> None:
        self._channel = channel
        self._memory_bytes = memory_bytes
        self._pid = pid
        # Of the current request.
        self._start_s = self._limit_s = self._deadline = 0.0
        self._clocks_s = 0.0, 0.0
        self._stop = threading.Event()
        self._guard: threading.Thread | None = None

    def request(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Sends one request and returns the reply to it. Raises as `replies` does, and WireError for what cannot travel."""
        body = protocol.body(message)
        with self._close_on_failure():
            return protocol.unpack(next(self.replies(body, 1, timeout_s)))

    def replies(self, request: protocol.Body, count: int, timeout_s: float) -> Iterator[protocol.Body]:
        """Sends one request and yields the replies to it as they come: the worker need not wait for the next question.

        Raises: WorkerLost after the time, beyond the memory or the files, or where what comes is no reply to this
        request; the worker has been ended then. What a reply says is not looked at.
        """
        nonce = secrets.token_bytes(16)  # a reply written before the question cannot know it
        self._start_s, self._limit_s = time.monotonic(), timeout_s
        self._clocks_s = usage.clocks_s(self._pid)
        self._deadline = self._start_s + timeout_s
        with self._close_on_failure():
            self._send(protocol.frame(request, nonce))
            for remaining in reversed(range(count)):
                reply, reply_nonce = protocol.receive_body(self._receive)
                if reply_nonce != nonce:
                    raise protocol.WireError("a reply to another question")
                if not remaining and time.monotonic() - self._start_s > BRIEF_S:
                    self._check_usage([self._pid])  # so that what a cell has used is not held against the next
                yield reply

    @contextlib.contextmanager
    def _close_on_failure(self) -> Iterator[None]:
        """Ends the worker where what comes of it fails. Raises: WorkerLost, which says how."""
        try:
            yield
        except (EOFError, ConnectionError):
            self.close()
            raise self.error or WorkerLost("died", ending_of(self.status)) from None
        except protocol.WireError as error:
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

    def _receive(self, count: int) -> bytes:
        """At most that many bytes of what has come, b"" at its end. Raises: WorkerLost as `replies` does."""
        has_ended = False  # what it has started may hold the channel open
        while True:
            remaining_s = self._deadline - time.monotonic()
            if remaining_s <= 0:
                remaining_s = self._limit_s - self.spent_s()
                self._deadline = time.monotonic() + remaining_s
            if remaining_s <= 0:
                raise WorkerLost("timeout")
            self._channel.settimeout(min(remaining_s, TICK_S))
            try:
                return self._channel.recv(count)
            except TimeoutError:
                if has_ended:
                    return b""
                has_ended = self._has_ended()

    def spent_s(self) -> float:
        """Seconds since the last request, without those in which other programs left it waiting for a processor.

        While its main thread waits for threads of its own, these run: what they used is no time of other programs.
        """
        elapsed_s = time.monotonic() - self._start_s
        waited_s, threads_s = (new - old for new, old in zip(usage.clocks_s(self._pid), self._clocks_s, strict=True))
        return max(elapsed_s - max(waited_s - max(threads_s, 0.0), 0.0), elapsed_s / STRETCH)

    def guard(self) -> None:
        """From now on what it uses is checked by the clock, whatever comes of it and whether it is asked anything or not."""
        self._guard = threading.Thread(target=self._check_by_clock, daemon=True)
        self._guard.start()

    def _check_by_clock(self) -> None:
        while self.error is None and not self._stop.wait(TICK_S):
            try:
                self._check_usage(self._pids())
            except WorkerLost as error:
                self.error = error
            except Exception as error:  # ours; what nobody looks at must not go on
                self.error = SandboxError(f"what a worker uses could not be looked at: {error!r}")
        if self.error is not None:
            for process in self._processes():
                with contextlib.suppress(psutil.Error):
                    process.kill()  # the thread that asks it something then sees that it is gone

    def _processes(self) -> list[psutil.Process]:
        processes = []
        for pid in self._pids():
            with contextlib.suppress(psutil.Error):
                processes.append(psutil.Process(pid))
        return processes

    def _check_usage(self, pids: list[int]) -> None:
        """Raises: WorkerLost where these processes of its use more than it may."""
        excess = usage.find_excess(pids, self.folder, self._memory_bytes)
        if excess is not None:
            raise WorkerLost(*excess)

    def close(self) -> None:
        """Ends the worker and all that it started. May be called again."""
        self._stop.set()
        if self._guard is not None:
            self._guard.join()
        self._end()

    def _has_ended(self) -> bool:
        raise NotImplementedError

    def _pids(self) -> list[int]:
        """Its own and those of all that it started."""
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError


class SpawnedWorker(Worker):
    """A fresh interpreter of its own: slower, and safe on every system."""

    def __init__(self, program: Program, folder: str, memory_bytes: int) -> None:
        channel, child_channel = socket.socketpair()
        self._process = start_interpreter("worker", program, child_channel, folder)
        super().__init__(channel, memory_bytes, self._process.pid)
        self._mark = folder  # by which to find what it has left behind

    def _has_ended(self) -> bool:
        return self._process.poll() is not None

    def _pids(self) -> list[int]:
        return [self._pid, *usage.descendants(self._pid)] if self._process.returncode is None else []

    def _end(self) -> None:
        self._channel.close()
        if self._process.returncode is None:
            end_tree(self._processes(), self._pid)
            self._process.wait()
        self.status = self._process.returncode
        if self._mark:
            end_strays(self._mark)
            self._mark = ""


def start_interpreter(role: str, program: Program, channel: socket.socket, folder: str) -> psutil.Popen:
    """Starts `PATH ROLE FD PARENT torch|plain FOLDER` with this end of a channel, which is closed here; probes.json in the folder has
    the probes."""
    Path(folder, "probes.json").write_text(json.dumps(dict(program.probes)), "utf-8")
    arguments = [str(os.getpid()), "torch" if program.torch else "plain", folder]
    on_windows = sys.platform == "win32"
    handle = "share" if on_windows else str(channel.fileno())
    with channel, open(os.path.join(folder, "errors.txt"), "wb") as errors:
        process = psutil.Popen(
            [sys.executable, "-I", "-B", str(program.path or START), role, handle, *arguments],
            env=_environment(folder),
            cwd=folder,
            pass_fds=() if on_windows else (channel.fileno(),),
            stdin=subprocess.PIPE if on_windows else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=not on_windows,
        )
        if on_windows:
            shared = channel.share(process.pid)  # type: ignore[attr-defined]
            assert process.stdin is not None
            process.stdin.write(len(shared).to_bytes(4, "big") + shared)
            process.stdin.close()
    return process


def _environment(folder: str) -> dict[str, str]:
    """What the interpreter needs and nothing else: no tokens, no names, no paths of the grader's user."""
    inherited_names = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "PATHEXT", "VIRTUAL_ENV")
    folders = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), folder)
    settings = {
        "MPLBACKEND": "Agg",
        "LANG": "C.UTF-8",
        "CUDA_VISIBLE_DEVICES": "",
        "TRITON_INTERPRET": "1",
        "PATH": os.defpath,
    }
    return {name: os.environ[name] for name in inherited_names if name in os.environ} | ONE_THREAD | folders | settings


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


def end_tree(processes: list[psutil.Process], group: int) -> None:
    """Kills a process group and the given processes, which may have left it."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()


def end_strays(folder: str) -> None:
    """Kills what a worker left behind outside its tree: such processes carry its folder as TMPDIR."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get("TMPDIR") == folder:
                process.kill()


def last_output(folder: str) -> str:
    """The last line that a failed start left."""
    with contextlib.suppress(OSError, IndexError):
        lines = Path(folder, "errors.txt").read_text("utf-8", "replace").strip().splitlines()
        return json.dumps(lines[-1][:500])
    return "it ended and said nothing"

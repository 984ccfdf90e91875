"""A parent that imports the slow libraries once and forks a worker whenever it is asked (Linux).

It is a fresh process, never one that holds references: a fork would find them in its memory. It
computes nothing itself, because threads that a library starts do not survive a fork.

Messages on its control socket, one datagram each:
  'fork' with a descriptor   → 'forked PID'; then, once, 'ended STATUS' when that worker is gone
  'end'                      ends the worker, if one is there
  'part' with a descriptor   forks a further warm parent, which says 'parted PID' there and then serves there; a process
                             of which others have parted forks no workers itself
  (end of stream)            ends the worker, or all that have parted, and this process
When a worker ends, all that it started ends with it.
"""

from __future__ import annotations

import gc
import os
import select
import shutil
import signal
import socket
import sys
from collections.abc import Callable

from . import kernel_walls, limits, main as worker, stub_grader, warm_up


def main(arguments: list[str]) -> None:
    """Serves until the control socket ends, then removes the folder: `start.py warm FD torch|plain FOLDER PROBES`."""
    descriptor, libraries, folder, probes_file = arguments
    control = socket.socket(fileno=int(descriptor))
    limits.adopt_orphans()
    limits.hide_memory(True)
    with_torch = worker.load_libraries(libraries, probes_file)
    stub_grader.install()
    kernel_walls.readable()
    warm_up.rehearse(with_torch)
    worker.hide()  # once, for all forks
    gc.freeze()  # a collection in a worker then leaves these pages shared
    try:
        live(control, _work)
    finally:  # whoever held the other end may have been killed, and this process is the last of all
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)  # taking torch down in order takes a third of a second


def live(control: socket.socket, work: Callable[[socket.socket], None]) -> None:
    """Serves to the end of the stream; a forked process does `work` with its channel."""
    wake, wakes = socket.socketpair()
    for end in (wake, wakes):
        end.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        _serve(control, wake, work)
    finally:
        limits.end_all_children()


def _serve(control: socket.socket, wake: socket.socket, work: Callable[[socket.socket], None]) -> None:
    worker_pid = 0
    parted: set[int] = set()
    while True:
        ready, _, _ = select.select([control, wake], [], [])
        if control in ready:
            message, descriptors, _, _ = socket.recv_fds(control, 64, 1)
            if not message:
                return
            if message == b"part":
                parted.add(_fork(descriptors[0], _part))
            elif message == b"fork":
                worker_pid = _fork(descriptors[0], work)
                control.send(b"forked %d" % worker_pid)
            elif message == b"end" and worker_pid:
                os.kill(worker_pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
        if wake in ready:
            wake.recv(4096)
            if parted:
                _reap_parted(parted)
                continue
            status = _reap(worker_pid)
            if worker_pid and status is not None:
                worker_pid = 0
                control.send(b"ended %d" % status)


def _reap(worker_pid: int) -> int | None:
    """Reaps what has ended; the worker's own status if it has, after ending all that it left."""
    status = None
    while True:
        try:
            pid, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            break
        if pid == worker_pid:
            status = os.waitstatus_to_exitcode(code)
            limits.end_all_children()
    return status


def _reap_parted(parted: set[int]) -> None:
    """Reaps what has ended, and kills what a warm parent that was itself killed has left to this process."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            break
        parted.discard(pid)
    for pid in limits.children():
        if pid not in parted:
            os.kill(pid, signal.SIGKILL)  # a child of this process, so the number is still its own


def _fork(descriptor: int, live: Callable[[socket.socket], None]) -> int:
    """A child that does `live` with this socket alone, and ends with this process. Returns its number."""
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
        live(socket.socket(fileno=descriptor))
    except BaseException:  # only the code around the learner's can raise here: there is nobody to tell
        os._exit(70)
    finally:
        os._exit(0)
    return 0


def _work(channel: socket.socket) -> None:
    limits.hide_memory(False)
    worker.silence()
    worker.serve(channel)


def _part(control: socket.socket) -> None:
    limits.adopt_orphans()
    control.send(b"parted %d" % os.getpid())
    live(control, _work)


if __name__ == "__main__":
    sys.exit("start.py starts this file")

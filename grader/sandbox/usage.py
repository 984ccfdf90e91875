"""What a worker uses of the machine: memory, threads and files; and what of that is too much."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Sequence

import psutil

from grader.worker.limits import MAX_PROCESSES

MAX_DISK_BYTES = 256 << 20  # of all files of a worker together; worker/limits.py limits each
MAX_FILES = 20_000
MAX_THREADS = 2 * MAX_PROCESSES  # where the kernel limits them, too, the learner's code meets that limit first

# psutil looks at every process of the machine for this.
_KERNEL_LISTS = os.path.exists("/proc/thread-self/children")


def descendants(pid: int) -> list[int]:
    """The processes that descend from this one; those of a process with more than MAX_THREADS threads are left out."""
    if not _KERNEL_LISTS:
        with contextlib.suppress(psutil.Error):
            return [process.pid for process in psutil.Process(pid).children(recursive=True)]
        return []
    pids = _children(pid)
    for child in pids:  # grows meanwhile
        pids += _children(child)
    return pids


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):  # it has ended
        threads = os.listdir(f"/proc/{pid}/task")
        for thread in threads if len(threads) <= MAX_THREADS else ():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children += map(int, file.read().split())
    return children


def find_excess(pids: Sequence[int], folder: str, memory_bytes: int) -> tuple[str, str] | None:
    """What is too much of what a worker's processes use: how it is lost and in which words, for WorkerLost. None where nothing is.

    folder: where they may write, '' for nowhere. memory_bytes: how much they may use.
    """
    if _sum(psutil.Process.num_threads, pids) > MAX_THREADS:  # the kernel's own limit does not hold for root
        return "threads", f"more than {MAX_THREADS} threads at once"
    if _memory(pids, memory_bytes) > memory_bytes:
        return "memory", ""
    excess = _disk_excess(folder, pids) if folder else ""
    return ("disk", excess) if excess else None


def clocks_s(pid: int) -> tuple[float, float]:
    """Seconds of a process so far (Linux; elsewhere zeros): in which its main thread could have run and other threads had the processors;
    and of the processor that its threads used beside the main one, those included that have ended."""
    with (
        contextlib.suppress(OSError, ValueError),
        open(f"/proc/{pid}/stat", "rb") as process_file,
        open(f"/proc/{pid}/schedstat", "rb") as thread_file,
    ):
        ticks = sum(map(int, process_file.read().rpartition(b")")[2].split()[11:13]))
        used_s, waited_s = (int(number) / 1e9 for number in thread_file.read().split()[:2])
        return waited_s, max(ticks / os.sysconf("SC_CLK_TCK") - used_s, 0.0)
    return 0.0, 0.0


def _sum(measure: Callable[[psutil.Process], int], pids: Sequence[int]) -> int:
    """Of all these processes that are still there."""
    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            total += measure(psutil.Process(pid))
    return total


def _memory(pids: Sequence[int], limit: int) -> int:
    """Bytes in use by these processes. Where that is more than the limit, pages shared by several are divided among them (Linux)."""
    resident = _sum(lambda process: process.memory_info().rss, pids)
    return resident if resident <= limit else _sum(_share, pids)


def _share(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error, AttributeError):
        return process.memory_full_info().pss
    return process.memory_info().rss


def _disk_excess(folder: str, pids: Sequence[int]) -> str:
    """What is too much of the files below a folder and of those without a name that the processes hold open; '' where nothing is."""
    count, size, pending = 0, sum(map(_deleted_file_bytes, pids)), [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    count += 1
                    with contextlib.suppress(FileNotFoundError):
                        size += _blocks(entry.stat(follow_symlinks=False))
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
                    if count > MAX_FILES:
                        return f"it held more than {MAX_FILES} files"
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed meanwhile
        except OSError as error:  # closed, or nested deeper than a path can say
            return f"a folder in it cannot be looked into ({error.strerror})"
    return f"it held more than {MAX_DISK_BYTES >> 20} MiB" if size > MAX_DISK_BYTES else ""


def _deleted_file_bytes(pid: int) -> int:
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

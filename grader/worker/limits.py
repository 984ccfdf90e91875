"""What a worker may use: memory, files, processes; and how long it may live."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import sys
import time

from .system_calls import c_library

try:
    import resource
except ImportError:  # Windows has none; there the parent's watch on time and memory is all there is
    resource = None  # type: ignore[assignment]

MAX_FILE_BYTES = 64 << 20
MAX_OPEN_FILES = 256
MAX_PROCESSES = 64  # threads and processes beyond those of this user; without effect for root

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

CAP_DAC_READ_SEARCH = 2
MAX_CAPABILITIES = 64


def apply(memory_bytes: int, cpu_s: int) -> None:
    """Limits this process and all that it starts; memory_bytes and cpu_s are beyond what it has used by now.

    cpu_s: of all threads of a process together. The clock on the wall sees no thread that goes on between two requests.
    """
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    drop_capabilities()
    limit_memory(memory_bytes)
    set_limit("RLIMIT_FSIZE", MAX_FILE_BYTES)
    set_limit("RLIMIT_NOFILE", MAX_OPEN_FILES)
    set_limit("RLIMIT_CPU", used_cpu_s() + cpu_s, 1)  # first SIGXCPU, which says what it is
    if sys.platform == "linux":
        set_limit("RLIMIT_NPROC", _count_threads_of_user() + MAX_PROCESSES)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file that grows too large raises OSError


def limit_memory(memory_bytes: int) -> None:
    """Limits this process's memory to so much more than it has by now; none of it is ever written to a file."""
    set_limit("RLIMIT_CORE", 0)
    if sys.platform == "linux":  # elsewhere limits on the address space fail or do nothing
        set_limit("RLIMIT_AS", address_space("VmSize") + memory_bytes)


def address_space(field: str) -> int:
    """Bytes: VmSize of now, VmPeak of the most that there was (Linux)."""
    with open("/proc/self/status", "rb") as file:
        return 1024 * int(next(line for line in file if line.startswith(field.encode() + b":")).split()[1])


def drop_capabilities() -> None:
    """Gives up for good what root may do beyond others: devices, the clock, the limits, files that stay (Linux only).

    Reading is left: root may grade with an interpreter in another user's closed folder, and what can be read is Landlock's to say.
    Holds for the calling thread and all that it starts from now on. What is neither permitted nor inheritable leaves the ambient set, too.
    """
    if sys.platform != "linux":
        return
    for number in range(MAX_CAPABILITIES):  # those that the kernel does not know are refused
        if number != CAP_DAC_READ_SEARCH:
            _prctl(PR_CAPBSET_DROP, number)
    libc = c_library()
    this_process = struct.pack("=Ii", 0x20080522, 0)  # version 3: two words of each set
    sets = ctypes.create_string_buffer(24)
    if libc.capget(this_process, sets) == 0:
        effective, permitted = struct.unpack_from("=II", sets)
        capability = 1 << CAP_DAC_READ_SEARCH
        libc.capset(this_process, struct.pack("=6I", effective & capability, permitted & capability, 0, 0, 0, 0))


def die_with_parent(parent: int) -> None:
    """The kernel kills this process when its parent ends (Linux only).

    Behind the walls it can neither take that back nor start a process, so that nothing outlives it without a namespace of its own.
    """
    _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if sys.platform == "linux" and os.getppid() != parent:  # it ended before the call
        os._exit(1)


def adopt_orphans() -> None:
    """Descendants whose parent ends become children of this process, so that it can end them too."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def hide_memory(is_hidden: bool) -> None:
    """Hides this process's memory and descriptors from others of this user, or shows them (Linux only)."""
    _prctl(PR_SET_DUMPABLE, 0 if is_hidden else 1)


def end_all_children(deadline_s: float = 5.0) -> dict[int, int]:
    """Kills and reaps every descendant; needs `adopt_orphans`. Returns wait statuses by process id.

    A descendant that left its group is found as a child, once its own parent has been killed.
    """
    statuses: dict[int, int] = {}
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        for pid in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            break  # no child is left, hence no descendant
        statuses[pid] = status
    return statuses


def children() -> list[int]:
    """Process ids of this process's children, zombies included (Linux only)."""
    own_pid = os.getpid()
    try:
        with open(f"/proc/self/task/{own_pid}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:  # a kernel without this file
        return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _parent_of(pid) == own_pid]


def _parent_of(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        c_library().prctl(option, value, 0, 0, 0)


def set_limit(name: str, value: int, grace: int | None = 0) -> None:
    """Sets the soft limit to the value and the hard one by `grace` above it, or to what holds already if that is less.

    grace: None leaves the hard one as it is, so that the soft one can be raised again.
    """
    kind = getattr(resource, name, None)
    if kind is None:
        return
    ceiling = resource.getrlimit(kind)[1]
    limits = (value, ceiling if grace is None else value + grace)
    soft, hard = (limit if ceiling == resource.RLIM_INFINITY else min(limit, ceiling) for limit in limits)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (soft, hard))


def used_cpu_s() -> int:
    """Whole seconds of the processor that this process has used; 0 where the system has no limits."""
    usage = resource.getrusage(resource.RUSAGE_SELF) if resource is not None else None
    return int(usage.ru_utime + usage.ru_stime) if usage else 0


def _count_threads_of_user() -> int:
    """Threads of this user at this moment: the limit counts those of other programs too."""
    uid, count = os.getuid(), 0
    for pid in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if pid.isdigit() and os.stat(f"/proc/{pid}").st_uid == uid:
                count += len(os.listdir(f"/proc/{pid}/task"))
    return count

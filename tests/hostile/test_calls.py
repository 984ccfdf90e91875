"""Attacks by system calls: all of them, with arguments of every kind; every way to open; every request to a descriptor.

What is compared is a bystander: a process of the same user, its files and its terminal, before and after.
"""

from __future__ import annotations

import contextlib
import os
import platform
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from grader.course.spec import Case
from grader.sandbox.sandbox import Sandbox
from grader.worker import system_calls
from tests.conftest import ROOT
from tests.hostile import every_call
from tests.sandbox.test_sandbox import observation_of, plan

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")
pty, termios, tty = (
    pytest.importorskip(name, reason="the walls are Linux's") for name in ("pty", "termios", "tty")
)  # Unix's own
CASE = Case("small", "three numbers", (np.arange(3),), names=("x",))
WAITS = """
import signal, sys
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGINT}:
    signal.signal(number, lambda number, frame: print(number, flush=True))
print("ready", flush=True)
sys.stdin.read()
"""
OF_STATUS = (
    "Uid",
    "Gid",
    "Groups",
    "Umask",
    "SigPnd",
    "ShdPnd",
    "SigBlk",
    "SigIgn",
    "TracerPid",
    "CapEff",
    "NoNewPrivs",
    "Seccomp",
    "Cpus_allowed",
    "Mems_allowed",
    "CoreDumping",
    "NSpid",
)


class Bystander:
    """A process that waits, a learner's notebook, and a terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "01_toy.ipynb"
        self.file.write_text("{}")
        self.process = subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None and self.process.stdout.readline() == b"ready\n"
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        self.terminal = os.ttyname(self.slave)

    def seen(self) -> dict[str, Any]:
        """All that another process could have changed of it, and of the machine."""
        pid = self.process.pid
        about, status, known = Path(f"/proc/{pid}"), {}, psutil.Process(pid)
        for line in (about / "status").read_text().splitlines():
            status[line.partition(":")[0]] = line
        with known.oneshot():
            nice, ionice, affinity = known.nice(), known.ionice(), known.cpu_affinity()
        return {
            **{name: status.get(name) for name in OF_STATUS},
            "runs": known.status() in ("running", "sleeping"),
            "limits": (about / "limits").read_text(),
            "nice": nice,
            "io": ionice,
            "affinity": affinity,
            "scheduler": (os.sched_getscheduler(pid), os.sched_getparam(pid).sched_priority),
            "group": (os.getpgid(pid), os.getsid(pid)),
            "cwd": os.readlink(about / "cwd"),
            "root": os.readlink(about / "root"),
            "names": {name: os.readlink(about / "ns" / name) for name in os.listdir(about / "ns")},
            "file": (
                os.stat(self.file)[:7],
                os.stat(self.file).st_mtime_ns,
                self.file.read_text(),
                os.listxattr(self.file),
            ),
            "beside": os.listdir(self.folder),
            "terminal": termios.tcgetattr(self.slave),
            "machine": os.uname(),
            "own": (signal.getitimer(signal.ITIMER_REAL), os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)),
        }

    def is_free(self) -> bool:
        """Whether its file can be opened and its terminal written at once."""
        with open(os.open(self.file, os.O_RDWR | os.O_NONBLOCK), "rb"):  # BlockingIOError where somebody holds a lease
            pass
        os.write(self.slave, b"x")
        return bool(select.select([self.master], [], [], 1.0)[0]) and os.read(self.master, 1) == b"x"

    def end(self) -> bytes:
        """Ends it. Returns the signals that it got."""
        said, _ = self.process.communicate(timeout=10)
        for descriptor in (self.master, self.slave):
            os.close(descriptor)
        return said


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(timeout_s=20.0) as made:
        yield made


@pytest.fixture
def bystander(tmp_path) -> Iterator[Bystander]:
    place = tmp_path / "classmate"
    place.mkdir()
    made = Bystander(place)
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.end()


def test_no_call_changes_anything_of_another_process(tmp_path, bystander):
    """Also: what the walls do not list is refused, whatever its arguments."""
    folder = tmp_path / "own"
    folder.mkdir()
    before = bystander.seen()
    command = [sys.executable, "-m", "tests.hostile.every_call", folder, bystander.process.pid, bystander.file]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    came = {int(number): said for number, said in (line.split(" ", 1) for line in done.stdout.splitlines())}
    which = 0 if os.uname().machine == "x86_64" else 1
    listed = {numbers[which] for numbers in system_calls.ALLOWED.values()}
    unlisted = {number for number in every_call.NUMBERS if number not in listed} - set(every_call.BESIDE_FILTERS)
    assert {number: came.get(number) for number in unlisted} == dict.fromkeys(unlisted, "refused")
    assert bystander.seen() == before and bystander.is_free()
    assert bystander.end() == b""


def test_no_number_stands_twice():
    for which in (0, 1):
        numbers = [pair[which] for pair in system_calls.ALLOWED.values() if pair[which] >= 0]
        assert len(set(numbers)) == len(numbers)


OPEN = """
import ctypes, errno, itertools, os
libc = ctypes.CDLL(None, use_errno=True)
PLACES = {places!r}
def f(x):
    found = []
    for place in PLACES:
        for more in (0, os.O_CREAT, os.O_TRUNC, os.O_APPEND, os.O_NONBLOCK, os.O_DIRECTORY, os.O_NOFOLLOW, os.O_TMPFILE, os.O_PATH):
            for mode in range(4):
                flags, name = mode | more | os.O_NONBLOCK, place.encode()
                how = (ctypes.c_uint64 * 3)(flags, 0o600 if more in (os.O_CREAT, os.O_TMPFILE) else 0, 0)
                high = ctypes.c_ulong(flags | 7 << 32)
                ways = {{"openat": lambda: libc.syscall(257, ctypes.c_long(-100), name, high, 0o600), "open": lambda: libc.syscall(2, name, high, 0o600),
                        "openat2": lambda: libc.syscall(437, ctypes.c_long(-100), name, how, 24), "creat": lambda: libc.syscall(85, name, 0o600),
                        "libc": lambda: libc.open(name, flags, 0o600)}}
                for way, opens in ways.items():
                    fd = opens()
                    if fd < 0:
                        continue
                    uses = (libc.ioctl(fd, 0x540A, 0), libc.fcntl(fd, 1024, 1), libc.fcntl(fd, 1026, 0x80000003), libc.flock(fd, 6), libc.fchmod(fd, 0))
                    if more != os.O_PATH or way == "creat" or mode == 3 or set(uses) != {{-1}}:
                        found.append(f"{{way}} {{place}} {{mode}} {{more:#o}} {{uses}}")
                    os.close(fd)
    return "; ".join(found[:5]) or "nothing"
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers in it are x86-64's")
def test_no_way_of_opening_gives_a_hold_on_what_is_another_s(sandbox, bystander):
    """Every mode, the fourth among them, which is neither reading nor writing and asks Landlock for no right."""
    os.mkfifo(bystander.folder / "pipe")
    (bystander.folder / "link").symlink_to("01_toy.ipynb")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(bystander.folder / "socket"))
        places = [
            bystander.terminal,
            "/dev/tty",
            "/dev/ptmx",
            "/dev/full",
            "/proc/self/mem",
            f"/proc/{bystander.process.pid}/mem",
            "/etc/passwd",
            "/",
            str(bystander.folder),
            *(str(bystander.folder / name) for name in ("01_toy.ipynb", "link", "pipe", "socket", "new")),
        ]
        before = bystander.seen()
        seen = observation_of(sandbox.candidates(plan(OPEN.format(places=places)))["f"], CASE)
        assert sandbox.isolation == "full"
        assert seen.failure is None and seen.parts["result"].text == "nothing", seen
        assert bystander.seen() == before and bystander.is_free()
    assert bystander.end() == b""


HELD = """
import ctypes, fcntl, os, select, socket
libc = ctypes.CDLL(None, use_errno=True)
def f(x):
    os.mkdir("folder")
    held = [os.open("own", os.O_RDWR | os.O_CREAT), os.open("folder", os.O_RDONLY), os.open(os.devnull, os.O_RDWR), *os.pipe(),
            *(end.detach() for end in socket.socketpair()), 0, 1, 2]
    passed = set()
    for fd in held:
        for number in NUMBERS:
            ctypes.set_errno(0)
            if libc.syscall(WHICH, fd, ctypes.c_ulong(number | 5 << 32), ctypes.c_ulong(0)) != -1 or ctypes.get_errno() != 1:
                passed.add(number)
    return str(sorted(passed - ALLOWED)[:20])
"""


@pytest.mark.parametrize(
    ("call", "numbers", "allowed"),
    [
        (
            "ioctl",
            [
                *range(0x5400, 0x5500),
                *range(0x8900, 0x8A00),
                0x40086602,
                0x40046602,
                0x401C5820,
                0x802C542A,
                0x40049409,
                0x40045431,
                0x4004667F,
            ],
            system_calls.IOCTL,
        ),
        ("fcntl", [*range(64), *range(1024, 1060)], system_calls.FCNTL),
        ("prctl", [*range(96), 0x53564D41, 0x59616D61], system_calls.PRCTL),
    ],
)
def test_what_a_descriptor_and_a_process_may_be_asked(sandbox, call, numbers, allowed):
    """FIFREEZE, leases, owners of signals, flags of a file system: all but the few on the list, whatever stands above the lower half."""
    which = system_calls.ALLOWED[call][0 if os.uname().machine == "x86_64" else 1]
    text = f"NUMBERS, ALLOWED, WHICH = {numbers!r}, {set(allowed)!r}, {which}\n" + HELD
    if call == "prctl":
        text = text.replace("WHICH, fd, ", "WHICH, ").replace("ctypes.c_ulong(0))", "ctypes.c_ulong(0), 0, 0, 0)")
    seen = observation_of(sandbox.candidates(plan(text))["f"], CASE)
    assert seen.failure is None and seen.parts["result"].text == "[]", seen


WIDE = """import ctypes
libc, WIDE = ctypes.CDLL(None, use_errno=True), 0x100000000
def refused(came):
    if came == -1: raise PermissionError(ctypes.get_errno()) if ctypes.get_errno() == 1 else OSError(ctypes.get_errno())
    return came
def prlimit(pid, which, new): return refused(libc.prlimit(pid, which, ctypes.c_void_p(new), None))
def send(fd, size): return refused(libc.sendto(fd, b'x', 1, 0, ctypes.c_void_p(WIDE), size))
def f(x):
    libc.mmap.restype, libc.mmap.argtypes = ctypes.c_size_t, [ctypes.c_size_t] * 6
    assert libc.mmap(WIDE, 4096, 3, 0x100022, 2**64 - 1, 0) == WIDE
"""
STATIONS = {
    "the terminal stopped": "import os, fcntl\ndef f(x):\n    return fcntl.ioctl(os.open({terminal!r}, 3), 0x540A, 0)",
    "a classmate's notebook leased": "import os, fcntl\ndef f(x):\n    return fcntl.fcntl(os.open({file!r}, 3), 1024, 1)",
    "no processor time left to another": WIDE + "    return prlimit({pid}, 0, WIDE)",
    "a limit of its own by a wide pointer": WIDE + "    return prlimit(0, 7, WIDE)",
    "a message to a wide address": WIDE
    + "    import socket\n    name = {socket!r}.encode()\n    ctypes.memmove(WIDE, b'\\1\\0' + name, len(name) + 2)\n"
    "    return send(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].fileno(), len(name) + 3)",
    "a message to a socket with a name": "import socket\ndef f(x):\n    return socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', {socket!r})",
    "its own file leased": "import os, fcntl\ndef f(x):\n    return fcntl.fcntl(os.open('own', os.O_CREAT), 1024, 1)",
    "news of a folder": "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\ndef f(x):\n    fd = libc.inotify_init()\n    if libc.inotify_add_watch(fd, os.fsencode({folder!r}), 0xFFF) >= 0: return 'done'\n"
    "    raise PermissionError(ctypes.get_errno())",
}


@pytest.mark.parametrize("attack", STATIONS)
def test_single_doors_that_stood_open(sandbox, bystander, attack):
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as named:
        place = str(bystander.folder / "named")
        named.bind(place)
        before = bystander.seen()
        text = STATIONS[attack].format(
            terminal=bystander.terminal,
            file=str(bystander.file),
            pid=bystander.process.pid,
            socket=place,
            folder=str(bystander.folder),
        )
        seen = observation_of(sandbox.candidates(plan(text))["f"], CASE)
        assert sandbox.isolation == "full"
        assert seen.failure is not None and seen.failure.type == "PermissionError", seen
        assert bystander.seen() == before and bystander.is_free()
        named.setblocking(False)
        with pytest.raises(BlockingIOError):
            named.recv(1)
    assert bystander.end() == b""

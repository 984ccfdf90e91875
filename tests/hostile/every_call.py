"""A program that makes every system call there is behind a worker's walls; test_calls.py runs it.

    python -m tests.hostile.every_call FOLDER PID PATH

PID and PATH are a bystander's. A number is called with arguments of every kind: processes, pointers with nothing in the lower half,
numbers with bits above the lower 32. Those that the walls allow have a process each, since some end it; the others share one.
Printed, a number a line: 'refused' if every one of its calls was, else the first that was not.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import sys
import time

from grader.worker import kernel_walls, limits, system_calls

BESIDE_FILTERS = (
    (335, 336) if platform.machine() == "x86_64" else ()
)  # uretprobe, uprobe: no filter sees them; they act on their caller
NUMBERS = (
    *range(481),
    512,
    547,
    1023,
    0x7FFFFFFF,
    *(0x40000000 + number for number in (*range(513, 548), 62, 101, 302)),
)
WIDE = 0x100000000  # where nothing but zeros lies: as a limit, none is left
HIGH = 0xABCD00000000
PATIENCE_S = 0.5  # for a number that blocks all signals; the others share ten times as much


def arguments(pid: int, path: int) -> list[tuple[int, ...]]:
    """path: the address of a name that ends in zero."""
    whos, here = (pid, pid | HIGH), (1 << 64) - 100
    found = [(who, what, new, old) for who in whos for what in range(16) for new in (WIDE, 0) for old in (0, WIDE)]
    found += [(kind, who, value, WIDE) for who in whos for kind in (0, 1, 2) for value in (0, 9, 19, 0x6007, WIDE)]
    found += [(who, who, number, WIDE) for who in whos for number in (0, 9, 19, 23)]
    found += [(who, number, WIDE, 0) for who in whos for number in (19, 9)]
    found += [
        (path, *rest) for rest in ((0, 0, 0), (0o777, 0o777, 8), (1, 1, 0), (3, 0, 0), (path, path, path), (WIDE,) * 3)
    ]
    found += [(here, path, *rest) for rest in ((0, 0), (0o777, 0), (3, 0), (1025, 0), (WIDE, WIDE), (WIDE, 24))]
    found += [
        (fd, what, value)
        for fd in (0, 3)
        for what in (1024, 1026, 10, 8, 0x540A, 0x5412, 0x8901)
        for value in (1, WIDE)
    ]
    found += [(what, value) for what in (1, 4, 22, 36) for value in (0, 8)]
    return [*found, (WIDE,) * 6, (0,) * 6]


def attack(numbers: tuple[int, ...], report: int, folder: str, pid: int, path: str) -> None:
    """Makes all calls of these numbers in this process, and says what came of each."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype, libc.mmap.restype, libc.mmap.argtypes = ctypes.c_long, ctypes.c_void_p, [ctypes.c_size_t] * 6
    assert libc.mmap(WIDE, 1 << 16, 3, 0x100022, (1 << 64) - 1, 0) == WIDE  # private, anonymous, there and nowhere else
    name = ctypes.create_string_buffer(4096)
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)  # a call that waits goes on
    os.chdir(folder)
    assert kernel_walls.apply_walls(folder) == ""
    given = arguments(pid, ctypes.addressof(name))
    for number in numbers:
        first = "refused"
        for values in given:
            name.value = path.encode()
            came = libc.syscall(ctypes.c_long(number), *map(ctypes.c_ulong, (*values, 0, 0, 0, 0)[:6]))
            if first == "refused" and not (came == -1 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS)):
                first = f"{[hex(value) for value in values]}: {came}, errno {ctypes.get_errno()}"
        os.write(report, f"{number} {first}\n".encode())


def apart(numbers: tuple[int, ...], patience_s: float, *arguments: str | int) -> None:
    """Attacks in a process of its own, of which nothing else is expected than that it ends."""
    child = os.fork()
    if child == 0:
        try:
            null, report = os.open(os.devnull, os.O_RDWR), os.dup2(1, 200)
            for descriptor in (0, 1, 2, 3):
                os.dup2(null, descriptor)
            attack(numbers, report, *arguments)  # type: ignore[arg-type]
        finally:
            os._exit(0)
    end = time.monotonic() + patience_s
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.001)


if __name__ == "__main__":
    folder, pid, path = sys.argv[1:]
    limits.apply(1 << 30, 60)
    which = 0 if platform.machine() == "x86_64" else 1
    listed = {numbers[which] for numbers in system_calls.ALLOWED.values()}
    apart(
        tuple(number for number in NUMBERS if number not in listed and number not in BESIDE_FILTERS),
        10 * PATIENCE_S,
        folder,
        int(pid),
        path,
    )
    for number in listed - {-1}:
        apart((number,), PATIENCE_S, folder, int(pid), path)

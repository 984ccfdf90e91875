"""Which system calls a worker may make: a list of what is allowed, as a seccomp filter. Source: the kernel's seccomp_filter.

What is not listed is refused. A call that Linux has long had answers EPERM: Python tells it as PermissionError, which is what a
learner meets, and nothing is tried in its place. One from FIRST_NEW on, clone3 or openat2, answers ENOSYS, as on a kernel that has no
such call: libraries then fall back on an older one. Measured on x86-64; the numbers for aarch64 are those of the kernel's headers and
have not been run.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from functools import cache

# Number on x86-64 and on aarch64 (-1: there is none).
ALLOWED = {
    # Files: which ones is Landlock's to say.
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "open": (2, -1),
    "openat": (257, 56),
    "creat": (85, -1),
    "stat": (4, -1),
    "fstat": (5, 80),
    "lstat": (6, -1),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "lseek": (8, 62),
    "pread64": (17, 67),
    "pwrite64": (18, 68),
    "readv": (19, 65),
    "writev": (20, 66),
    "preadv": (295, 69),
    "pwritev": (296, 70),
    "preadv2": (327, 286),
    "pwritev2": (328, 287),
    "access": (21, -1),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, -1),
    "readlinkat": (267, 78),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "chdir": (80, 49),
    "fchdir": (81, 50),
    "mkdir": (83, -1),
    "mkdirat": (258, 34),
    "rmdir": (84, -1),
    "unlink": (87, -1),
    "unlinkat": (263, 35),
    "rename": (82, -1),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, -1),
    "linkat": (265, 37),
    "symlink": (88, -1),
    "symlinkat": (266, 36),
    "umask": (95, 166),
    "ftruncate": (77, 46),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "flock": (73, 32),
    "fadvise64": (221, 223),
    "readahead": (187, 213),
    "sendfile": (40, 71),
    "copy_file_range": (326, 285),
    "getxattr": (191, 8),
    "lgetxattr": (192, 9),
    "fgetxattr": (193, 10),
    "listxattr": (194, 11),
    "llistxattr": (195, 12),
    "flistxattr": (196, 13),
    "dup": (32, 23),
    "dup2": (33, -1),
    "dup3": (292, 24),
    "close_range": (436, 436),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    "pipe": (22, -1),
    "pipe2": (293, 59),
    # Waiting.
    "poll": (7, -1),
    "ppoll": (271, 73),
    "select": (23, -1),
    "pselect6": (270, 72),
    "epoll_create": (213, -1),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_wait": (232, -1),
    "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441),
    "eventfd": (284, -1),
    "eventfd2": (290, 19),
    "timerfd_create": (283, 85),
    "timerfd_settime": (286, 86),
    "timerfd_gettime": (287, 87),
    "signalfd": (282, -1),
    "signalfd4": (289, 74),
    # Both ends of a socket without a name, and no other.
    "socketpair": (53, 199),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "recvmsg": (47, 212),
    "shutdown": (48, 210),
    "getsockname": (51, 204),
    "getpeername": (52, 205),
    "getsockopt": (55, 209),
    # Its own memory.
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "msync": (26, 227),
    "mincore": (27, 232),
    "membarrier": (324, 283),
    # Its own threads.
    "clone": (56, 220),
    "futex": (202, 98),
    "futex_waitv": (449, 449),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120),
    "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126),
    "getcpu": (309, 168),
    "gettid": (186, 178),
    "arch_prctl": (158, -1),
    "prctl": (157, 167),
    "exit": (60, 93),
    "exit_group": (231, 94),
    # Its own signals and timers.
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigpending": (127, 136),
    "rt_sigsuspend": (130, 133),
    "rt_sigtimedwait": (128, 137),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "pause": (34, -1),
    "kill": (62, 129),
    "tgkill": (234, 131),
    "alarm": (37, -1),
    "getitimer": (36, 102),
    "setitimer": (38, 103),
    "timer_create": (222, 107),
    "timer_settime": (223, 110),
    "timer_gettime": (224, 108),
    "timer_getoverrun": (225, 109),
    "timer_delete": (226, 111),
    # The time.
    "time": (201, -1),
    "gettimeofday": (96, 169),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "times": (100, 153),
    # What it asks about itself and the machine.
    "getpid": (39, 172),
    "getppid": (110, 173),
    "getpgrp": (111, -1),
    "getpgid": (121, 155),
    "getsid": (124, 156),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getresuid": (118, 148),
    "getresgid": (120, 150),
    "getgroups": (115, 158),
    "getpriority": (140, 141),
    "getrlimit": (97, 163),
    "prlimit64": (302, 261),
    "getrusage": (98, 165),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getrandom": (318, 278),
    "wait4": (61, 260),
    "waitid": (247, 95),
}
FIRST_NEW = 424  # Linux 5.1; from there on a call has the same number on every architecture

IOCTL = (
    *(0x5401, 0x802C542A, 0x5413),  # TCGETS, TCGETS2, TIOCGWINSZ: whether it is a terminal, and how wide
    *(0x541B, 0x5421, 0x5450, 0x5451),  # FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
    0x40049409,  # FICLONE: a copy of one's own file
)
FCNTL = (*range(8), 36, 37, 38, 1030, 1032)  # copies, flags, locks, a pipe's size; no owner, no lease, no notice
PRCTL = (3, 15, 16, 21, 39, 0x53564D41)  # its name, its memory's names (PR_SET_VMA), and what holds for it
AF_UNIX = 1
CLONE_THREAD = 0x10000
CLONE_OF_THREADS = 0x7D0F00  # what C libraries start a thread with: no new process, no namespace, no tracing

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_SECCOMP = (317, 277)
Step = tuple[int, int, int, int]  # of classic BPF: code, jump if true, jump if false, constant
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _UNKNOWN = (
    (_RETURN, 0, 0, value) for value in (0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS)
)


@cache
def c_library() -> ctypes.CDLL:
    """The C library of this process. To open it anew for each of a worker's eighty calls would take milliseconds."""
    return ctypes.CDLL(None, use_errno=True)


def shut() -> bool:
    """Raises the filter around this process, all its threads included. False where it cannot be set."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        return False
    steps = program(machine, os.getpid())
    buffer = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    header = struct.pack("@HP", len(steps), ctypes.addressof(buffer))
    for_all_threads = 1
    return c_library().syscall(_SECCOMP[_ARCHITECTURES[machine][0]], 1, for_all_threads, header) == 0


def program(machine: str, own_pid: int) -> list[Step]:
    """The filter: the architecture, calls whose arguments decide, then every number there is, in ranges. own_pid: this process."""
    column, audit = _ARCHITECTURES[machine]
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, audit), _UNKNOWN, (_LOAD, 0, 0, 0)]
    conditions = _conditions(own_pid)
    for name, condition in conditions.items():
        if ALLOWED[name][column] >= 0:
            steps += [(_EQUAL, 0, len(condition) + 1, ALLOWED[name][column]), *condition, _ALLOW]
    numbers = {row[column] for name, row in ALLOWED.items() if name not in conditions}
    last_action = _REFUSE
    for number in range(max(*numbers, FIRST_NEW) + 2):
        action = _ALLOW if number in numbers else _REFUSE if number < FIRST_NEW else _UNKNOWN
        if action != last_action:
            steps += [(_AT_LEAST, 1, 0, number), last_action]
            last_action = action
    return [*steps, last_action]


def _conditions(own_pid: int) -> dict[str, list[Step]]:
    """What has to hold of a call's arguments.

    The kernel takes numbers of 32 bits from the lower half of an argument, whatever stands above; a pointer is both halves.
    """
    return {
        "open": _no_third_mode(1),
        "openat": _no_third_mode(2),
        "ioctl": _one_of(1, IOCTL),
        "fcntl": _one_of(1, FCNTL),
        "prctl": _one_of(0, PRCTL),
        "kill": _one_of(0, (own_pid,)),
        "tgkill": _one_of(0, (own_pid,)),
        "prlimit64": _one_of(0, (0,)) + _null(2),  # one's own limits, and only to read them
        "socketpair": _one_of(0, (AF_UNIX,)),
        "sendto": _null(4),  # to the other end, never to an address
        "clone": [_load(0), (_ANY_BIT, 1, 0, ~CLONE_OF_THREADS & 0xFFFFFFFF), (_ANY_BIT, 1, 0, CLONE_THREAD), _REFUSE],
    }


def _load(argument: int) -> Step:
    """Its lower half."""
    return _LOAD, 0, 0, 16 + 8 * argument


def _one_of(argument: int, values: tuple[int, ...]) -> list[Step]:
    tests = [(_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [_load(argument), *tests, _REFUSE]


def _null(argument: int) -> list[Step]:
    upper = (_LOAD, 0, 0, 20 + 8 * argument)
    return [_load(argument), (_EQUAL, 0, 2, 0), upper, (_EQUAL, 1, 0, 0), _REFUSE]


def _no_third_mode(argument: int) -> list[Step]:
    """Not opened with access mode 3, 'neither read nor write', for which Landlock asks no right and which ioctl takes."""
    return [_load(argument), (_AND, 0, 0, os.O_ACCMODE), (_EQUAL, 0, 1, 3), _REFUSE]

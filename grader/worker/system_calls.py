"""Which system calls a worker may make: a list of what is allowed, as a seccomp filter. Source: the kernel's seccomp_filter.

What is not listed answers ENOSYS, as on a kernel that has no such call, so that libraries fall back on another. Measured on
x86-64; the numbers for aarch64 are those of the kernel's headers and have not been run.
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
# These answer EPERM: Python tells it as PermissionError, which is what a learner meets, and nothing is tried in their place.
REFUSED = {
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "setsockopt": (54, 208),
    "fork": (57, -1),
    "vfork": (58, -1),
    "execve": (59, 221),
    "execveat": (322, 281),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "tkill": (200, 130),
    "ptrace": (101, 117),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "unshare": (272, 97),
    "setns": (308, 268),
    "chroot": (161, 51),
    "mount": (165, 40),
    "umount2": (166, 39),
    "setrlimit": (160, 164),
    "setpriority": (141, 140),
    "sched_setaffinity": (203, 122),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "fchown": (93, 55),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "truncate": (76, 45),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "sethostname": (170, 161),
    "clock_settime": (227, 112),
    "settimeofday": (164, 170),
    "memfd_create": (319, 279),
    "fallocate": (285, 47),
}

IOCTL = (
    0x5401,
    0x802C542A,
    0x5413,  # TCGETS, TCGETS2, TIOCGWINSZ: whether it is a terminal, and how wide
    0x541B,
    0x5421,
    0x5450,
    0x5451,  # FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
    0x40049409,  # FICLONE: a copy of one's own file
)
FCNTL = (*range(8), 36, 37, 38, 1030, 1032)  # copies, flags, locks, a pipe's size; no owner, no lease, no notice
PRCTL = (3, 15, 16, 21, 39, 0x53564D41)  # its name, its memory's names (PR_SET_VMA), and what holds for it
AF_UNIX = 1
CLONE_THREAD = 0x10000
CLONE_OF_THREADS = 0x7D0F00  # what C libraries start a thread with: no new process, no namespace, no tracing

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_SECCOMP = (317, 277)
_ALLOW, _REFUSE, _UNKNOWN = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS

Step = tuple[int, int, int, int]  # of classic BPF: code, jump if true, jump if false, constant


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
    head = struct.pack("@HP", len(steps), ctypes.addressof(buffer))
    for_all_threads = 1
    return c_library().syscall(_SECCOMP[_ARCHITECTURES[machine][0]], 1, for_all_threads, head) == 0


def program(machine: str, me: int) -> list[Step]:
    """The filter: the architecture, calls whose arguments decide, then every number there is, in ranges. me: this process."""
    which, audit = _ARCHITECTURES[machine]
    steps = [_load(4), _equal(audit, 1, 0), _return(_UNKNOWN), _load(0)]
    conditions = _conditions(me)
    for name, condition in conditions.items():
        if ALLOWED[name][which] >= 0:
            steps += [_equal(ALLOWED[name][which], 0, len(condition) + 1), *condition, _return(_ALLOW)]
    answers = {numbers[which]: _ALLOW for name, numbers in ALLOWED.items() if name not in conditions}
    answers |= {numbers[which]: _REFUSE for numbers in REFUSED.values()}
    answer = _UNKNOWN
    for number in range(max(answers) + 2):
        after = answers.get(number, _UNKNOWN)
        if after != answer:
            steps += [_at_least(number, 1, 0), _return(answer)]
            answer = after
    return [*steps, _return(answer)]


def _conditions(me: int) -> dict[str, list[Step]]:
    """What has to hold of a call's arguments.

    The kernel takes numbers of 32 bits from the lower half of an argument, whatever stands above; a pointer is both halves.
    """
    return {
        "open": _no_third_mode(1),
        "openat": _no_third_mode(2),
        "ioctl": _one_of(1, IOCTL),
        "fcntl": _one_of(1, FCNTL),
        "prctl": _one_of(0, PRCTL),
        "kill": _one_of(0, (me,)),
        "tgkill": _one_of(0, (me,)),
        "prlimit64": _one_of(0, (0,)) + _null(2),  # one's own limits, and only to read them
        "socketpair": _one_of(0, (AF_UNIX,)),
        "sendto": _null(4),  # to the other end, never to an address
        "clone": [
            _load(16),
            _any_bit(~CLONE_OF_THREADS & 0xFFFFFFFF, 1, 0),
            _any_bit(CLONE_THREAD, 1, 0),
            _return(_REFUSE),
        ],
    }


def _one_of(argument: int, values: tuple[int, ...]) -> list[Step]:
    """A number of 32 bits."""
    tests = [_equal(value, len(values) - at, 0) for at, value in enumerate(values)]
    return [_load(16 + 8 * argument), *tests, _return(_REFUSE)]


def _null(argument: int) -> list[Step]:
    low = 16 + 8 * argument
    return [_load(low), _equal(0, 0, 2), _load(low + 4), _equal(0, 1, 0), _return(_REFUSE)]


def _no_third_mode(argument: int) -> list[Step]:
    """Not opened with access mode 3, 'neither read nor write', for which Landlock asks no right and which ioctl takes."""
    return [_load(16 + 8 * argument), (0x54, 0, 0, os.O_ACCMODE), _equal(3, 0, 1), _return(_REFUSE)]


def _load(offset: int) -> Step:
    return 0x20, 0, 0, offset


def _equal(value: int, if_so: int, if_not: int) -> Step:
    return 0x15, if_so, if_not, value


def _at_least(value: int, if_so: int, if_not: int) -> Step:
    return 0x35, if_so, if_not, value


def _any_bit(mask: int, if_so: int, if_not: int) -> Step:
    return 0x45, if_so, if_not, mask


def _return(value: int) -> Step:
    return 0x06, 0, 0, value

"""Linux walls around a worker, through ctypes alone: Landlock for files, seccomp for system calls.

They need no privileges, no namespaces and no other package; they hold for whatever the worker starts and
cannot be taken down again. Source: the kernel's user-space API documentation (landlock, seccomp_filter).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
import sysconfig
from functools import cache

READ_FILE, READ_DIR, WRITE_FILE = 1 << 2, 1 << 3, 1 << 1
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11  # handled, and granted nowhere
_ACCESS_OF_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}  # rights that a kernel's version knows
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/opt/conda/lib", "/etc/ld.so.cache", "/etc/fonts", "/etc/localtime", "/etc/mime.types",
    "/dev/urandom", "/dev/random", "/dev/zero", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu",
)  # fmt: skip

# Number on x86-64 and on aarch64 (0: there is none). Refused with EPERM.
_REFUSED = {
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242), "execve": (59, 221), "execveat": (322, 281), "fork": (57, 0), "vfork": (58, 0),
    "ptrace": (101, 117), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "unshare": (272, 97), "setns": (308, 268),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "bpf": (321, 280),
    "perf_event_open": (298, 241), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "userfaultfd": (323, 282), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "lookup_dcookie": (212, 18), "vhangup": (153, 58), "personality": (135, 92),
    "iopl": (172, 0), "ioperm": (173, 0), "modify_ldt": (154, 0), "uselib": (134, 0), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "setrlimit": (160, 164),
    # The machine's name, its clock and its log; as root they would be the worker's to change.
    "syslog": (103, 116), "sethostname": (170, 161), "setdomainname": (171, 162), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171), "mknod": (133, 0), "mknodat": (259, 33),
    # What lies in the kernel outlives the worker and could tell the next one something.
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
    "sendmsg": (46, 211), "sendmmsg": (307, 269),  # a file on its way in a socket would be counted nowhere
    # Landlock leaves the owner, rights and times of others' files, and the schedule of others' processes, alone.
    "chmod": (90, 0), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, 0),
    "fchown": (93, 55), "lchown": (94, 0), "fchownat": (260, 54), "utime": (132, 0), "utimes": (235, 0),
    "futimesat": (261, 0), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "truncate": (76, 45),
    "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
}  # fmt: skip
_CLONE, _CLONE3, _KILL, _TGKILL, _PRLIMIT = (56, 220), (435, 435), (62, 129), (234, 131), (302, 261)
_SECCOMP, _FCNTL, _IOCTL, _PRCTL = (317, 277), (72, 25), (16, 29), (157, 167)
_REFUSED_VALUES = (  # (call, which of its arguments, values of it that are refused)
    (_FCNTL, 1, (8, 15)),  # F_SETOWN, F_SETOWN_EX: who is sent a descriptor's signals
    (_IOCTL, 1, (
        0x8901, 0x8902,  # FIOSETOWN, SIOCSPGRP: the same of a socket
        0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40806685, 0x800C6613,  # what a file system keeps of a file: 'immutable'
        0x5412, 0x541C,  # TIOCSTI, TIOCLINUX: typing into a terminal
    )),
    (_PRCTL, 0, (1, 4)),  # PR_SET_PDEATHSIG, PR_SET_DUMPABLE: it ends with its parent, which can look at it
)  # fmt: skip
_CLONE_THREAD = 0x10000
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


@cache
def c_library() -> ctypes.CDLL:
    """The C library of this process. To open it anew for each of a worker's eighty calls would take milliseconds."""
    return ctypes.CDLL(None, use_errno=True)


def raise_all(folder: str) -> bool:
    """Raises both walls around this process. True where both stand; never raises.

    folder: where the process may read and write; besides it reads the interpreter and its libraries.
    """
    if sys.platform != "linux":
        return False
    try:
        return landlock(folder) and seccomp()
    except (OSError, ValueError, AttributeError):
        return False


def landlock(folder: str) -> bool:
    """Only `folder` can be written, only it, the interpreter and the libraries read. False: the kernel has none."""
    libc = c_library()
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    handled = _ACCESS_OF_VERSION[min(version, 3)]
    attribute = struct.pack("=Q", handled)
    ruleset = libc.syscall(_CREATE_RULESET, attribute, ctypes.c_size_t(len(attribute)), 0)
    if ruleset < 0:
        return False
    try:
        for path in readable():
            _allow(libc, ruleset, path, READ_FILE | READ_DIR)
        _allow(libc, ruleset, os.devnull, READ_FILE | WRITE_FILE)
        _allow(libc, ruleset, folder, handled & ~(_MAKE_CHAR | _MAKE_SOCK | _MAKE_BLOCK))
        return libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # not on this machine
        return
    try:
        if not os.path.isdir(path):
            access &= READ_FILE | WRITE_FILE
        libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", access, descriptor), 0)
    finally:
        os.close(descriptor)


@cache
def readable() -> tuple[str, ...]:
    """Folders and files that a worker may read: Python, its libraries, this folder; nothing of the course."""
    here = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(here)
    course = os.path.dirname(package)
    # In a checkout everything beside the package is the course's own; in an installation the neighbours are libraries.
    secret = course if os.path.isfile(os.path.join(course, "pyproject.toml")) else package
    libraries = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    added = {entry for entry in sys.path if os.path.isdir(entry)}  # by a .pth file or PYTHONPATH
    secret, own = os.path.realpath(secret), os.path.realpath(sys.prefix)
    added = {
        entry
        for entry in added
        if _inside(os.path.realpath(entry), own) or not _inside(os.path.realpath(entry), secret)
    }
    roots = {os.path.realpath(root) for root in (own, sys.base_prefix, *libraries, *added, *_SYSTEM)}
    found = [path for root in sorted(roots) for path in _without(root, secret, os.path.realpath(package))]
    return (*found, here)


def _without(root: str, secret: str, package: str) -> list[str]:
    """root, or where it contains what is secret, its other members. An environment inside a checkout is no secret."""
    hidden = package if _inside(root, secret) else secret
    if _inside(root, hidden):
        return []
    if not _inside(hidden, root):
        return [root]
    with os.scandir(root) as members:
        return [path for member in members for path in _without(member.path, secret, package)]


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def seccomp() -> bool:
    """No sockets, processes, programs, tracing, signals to others, nothing of the machine's own. False where it cannot be set."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        return False
    which, _ = _ARCHITECTURES[machine]
    program = _program(machine)
    buffer = ctypes.create_string_buffer(program)
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    libc = c_library()
    for_all_threads = 1
    return libc.syscall(_SECCOMP[which], 1, for_all_threads, head) == 0


def _program(machine: str) -> bytes:
    """The filter as classic BPF: architecture, then each refused call, then what depends on an argument."""
    which, audit = _ARCHITECTURES[machine]
    refuse, allow = 0x00050000 | errno.EPERM, 0x7FFF0000
    me = os.getpid()
    steps = [_load(4), _jump(audit, 1, 0), _return(refuse), _load(0)]
    if machine == "x86_64":  # the x32 numbers would be a way around
        steps += [(0x35, 0, 1, 0x40000000), _return(refuse)]
    for numbers in _REFUSED.values():
        if numbers[which]:
            steps += [_jump(numbers[which], 0, 1), _return(refuse)]
    steps += [_jump(_CLONE3[which], 0, 1), _return(0x00050000 | errno.ENOSYS)]  # the C library then takes clone
    thread = (0x45, 1, 0, _CLONE_THREAD)
    for numbers, argument, test in (
        (_CLONE, 0, thread), (_KILL, 0, _jump(me, 1, 0)), (_TGKILL, 0, _jump(me, 1, 0)), (_PRLIMIT, 2, _jump(0, 1, 0)),
    ):  # fmt: skip
        steps += [_jump(numbers[which], 0, 4), _load(16 + 8 * argument), test, _return(refuse), _return(allow)]
    for numbers, argument, values in _REFUSED_VALUES:
        tests = [step for value in values for step in (_jump(value, 0, 1), _return(refuse))]
        steps += [_jump(numbers[which], 0, len(tests) + 2), _load(16 + 8 * argument), *tests, _return(allow)]
    steps += [_return(allow)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _load(offset: int) -> tuple[int, int, int, int]:
    return 0x20, 0, 0, offset


def _jump(value: int, if_equal: int, otherwise: int) -> tuple[int, int, int, int]:
    return 0x15, if_equal, otherwise, value


def _return(value: int) -> tuple[int, int, int, int]:
    return 0x06, 0, 0, value

"""Linux walls around a worker, through ctypes alone: Landlock for files, seccomp (system_calls.py) for system calls.

They need no privileges, no namespaces and no other package; they hold for whatever the worker starts and
cannot be taken down again. Source: the kernel's user-space API documentation (landlock).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import sysconfig
from collections.abc import Callable, Set
from functools import cache
from pathlib import Path

from . import system_calls
from .system_calls import c_library

READ_FILE, READ_DIR, WRITE_FILE = 1 << 2, 1 << 3, 1 << 1
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK, _IOCTL_DEV = 1 << 6, 1 << 9, 1 << 11, 1 << 15  # handled, and granted nowhere
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_LOG_OFF = 1  # since version 7: what is refused is not written into the machine's log
# Of /usr libraries and what they read: a class may lie below it, too.
_SYSTEM = """
    /lib /lib64 /usr/lib /usr/lib64 /usr/share/zoneinfo /usr/share/locale /usr/share/fonts /usr/local/share/fonts
    /usr/share/fontconfig /usr/share/matplotlib /etc/ld.so.cache /etc/fonts /etc/localtime /etc/mime.types
    /dev/urandom /dev/random /dev/zero /proc/cpuinfo /proc/meminfo /sys/devices/system/cpu
""".split()
_PREFIX_FOLDERS = ("lib", "lib64", "share/zoneinfo")  # all else of an environment's folder may be the course itself
_PACKAGES = ("site-packages", "dist-packages")
# Half of the members of site-packages, which are found by listing it: that is not granted then.
_PIP_FILES = (".dist-info", ".egg-info", ".pth")


def apply_walls(folder: str) -> str:
    """Raises both walls around this process. Returns what is lacking, '' where both stand and were tried; never raises.

    folder: the only place where it may write; besides it reads the interpreter and its libraries. Called last, after
        every import: what stands then holds for all that the process starts.
    """
    if sys.platform != "linux":
        return "linux"
    try:
        threads = len(os.listdir("/proc/self/task"))  # Landlock binds the thread that calls it and what that starts
        if not landlock(folder):
            return "landlock"
        if not system_calls.shut():
            return "seccomp"
        return "" if threads == 1 and verify_walls() else "enforcement"
    except (OSError, ValueError, AttributeError):
        return "enforcement"


def verify_walls() -> bool:
    """Whether both walls refuse what they are to refuse, tried from inside: an emulated kernel may take them and enforce neither."""
    return (
        _is_refused(errno.EACCES, lambda: os.open(os.sep, os.O_RDONLY))
        and _is_refused(errno.EPERM, lambda: os.open(os.devnull, os.O_ACCMODE))
        and _is_refused(errno.EPERM, lambda: os.kill(os.getppid(), 0))
    )


def _is_refused(number: int, attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError as error:
        return error.errno == number
    return False


def landlock(folder: str) -> bool:
    """Only `folder` can be written, only it, the interpreter and the libraries read. False: the kernel has none."""
    libc = c_library()
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    rights, attribute = rules(version)
    ruleset = libc.syscall(_CREATE_RULESET, attribute, ctypes.c_size_t(len(attribute)), 0)
    if ruleset < 0:
        return False
    try:
        for path in readable():
            _allow(libc, ruleset, path, READ_FILE | READ_DIR)
        _allow(libc, ruleset, os.devnull, READ_FILE | WRITE_FILE)
        _allow(libc, ruleset, folder, rights & ~(_MAKE_CHAR | _MAKE_SOCK | _MAKE_BLOCK | _IOCTL_DEV))
        return libc.syscall(_RESTRICT_SELF, ruleset, _LOG_OFF if version >= 7 else 0) == 0
    finally:
        os.close(ruleset)


def rules(version: int) -> tuple[int, bytes]:
    """The rights of files that a version of Landlock knows, and the attribute that handles all it knows.

    1: thirteen rights; 2: renaming between folders; 3: truncating; 4: TCP (bind, connect); 5: a device's ioctl;
    6: signals and abstract sockets of processes outside. An attribute longer than the kernel's own is an error.
    """
    rights = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1
    words = [rights, *[0b11] * (version >= 4), *[0b11] * (version >= 6)]
    return rights, struct.pack(f"={len(words)}Q", *words)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # not on this machine
        return
    try:
        for rights in (access, access & (READ_FILE | WRITE_FILE)):  # a file takes no right of a folder
            if libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, descriptor), 0) == 0:
                return
    finally:
        os.close(descriptor)


@cache
def readable() -> tuple[str, ...]:
    """Folders and files that a worker may read: Python, its libraries, this folder; nothing of the course, wherever it lies."""
    worker_folder = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(worker_folder)
    course = os.path.dirname(package)
    packages = {path for path in sys.path if os.path.basename(path) in _PACKAGES}  # a .pth file may add any folder
    packages |= {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    roots = {os.path.join(prefix, name) for prefix in prefixes for name in _PREFIX_FOLDERS}
    roots |= {sysconfig.get_path("stdlib"), sys.executable, *packages, *_links(packages), *_SYSTEM}
    # An editable installation leaves a copy of the course among the libraries.
    copies = {os.path.join(path, os.path.basename(package)) for path in packages}
    course_folders = {os.path.realpath(folder) for folder in (package, *copies) if os.path.isdir(folder)}
    if os.path.isfile(os.path.join(course, "pyproject.toml")):  # a checkout: all beside the package is the course's
        course_folders.add(os.path.realpath(course))
    paths = {path for root in roots for path in _without(os.path.realpath(root), course_folders)}
    return (*sorted(path for path in paths if not any(_inside(path, other) for other in paths - {path})), worker_folder)


def _links(folders: Set[str]) -> list[str]:
    """The links in these folders: some installers link packages from a store."""
    return [str(path) for folder in folders for path in Path(folder).glob("*") if path.is_symlink()]


def _without(root: str, course_folders: Set[str]) -> list[str]:
    """root, or where something hidden lies in it, its other members, links aside: they lead back to what is hidden (lib64 → lib).

    What lies inside a hidden place is not looked for: an environment's libraries may lie inside a checkout.
    """
    if root in course_folders:
        return []
    if not any(_inside(folder, root) for folder in course_folders):
        return [root]
    try:
        with os.scandir(root) as members:
            paths = [member.path for member in members if not (member.is_symlink() or member.name.endswith(_PIP_FILES))]
    except OSError:  # not ours to read
        return []
    return [path for child in paths for path in _without(child, course_folders)]


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)

"""A worker's folder as a file system of its own, in memory: it holds so much and no more, and goes with the worker (Linux).

Root mounts it in a mount namespace; anybody else makes a user namespace for that first. Where the kernel allows neither
(containers and some distributions refuse them), the folder stays an ordinary one, which the trusted side has to look into.
Source: namespaces(7), user_namespaces(7), tmpfs(5).
"""

from __future__ import annotations

import ctypes
import os
import sys

from .system_calls import c_library

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_NOSUID, MS_NODEV, MS_REC, MS_SLAVE = 2, 4, 0x4000, 0x80000


def mount(folder: str, size_bytes: int, files: int) -> bool:
    """Mounts it over the folder, for this process and all that it starts. False where it cannot; the folder is then as it was.

    To be called before capabilities are given up and walls are raised, while this process has one thread.
    """
    if sys.platform != "linux":
        return False
    options = f"size={size_bytes},nr_inodes={files},mode=700".encode()
    return (
        (_call("unshare", CLONE_NEWNS) or _own_user_namespace())
        and _call(
            "mount", None, b"/", None, ctypes.c_ulong(MS_REC | MS_SLAVE), None
        )  # nobody outside is to see what follows
        and _call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(MS_NOSUID | MS_NODEV), options)
    )


def _own_user_namespace() -> bool:
    """Whether this process now has one, with mounts of its own, in which its user and group are who they were."""
    user, group = os.geteuid(), os.getegid()
    if not _call("unshare", CLONE_NEWUSER | CLONE_NEWNS):
        return False
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError:
        return False
    return True


def _call(name: str, *arguments: object) -> bool:
    return getattr(c_library(), name)(*arguments) == 0

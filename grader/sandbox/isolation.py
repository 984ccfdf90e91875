"""Levels of isolation, what this computer lacks for the higher one, and how to get it."""

from __future__ import annotations

LEVELS = ("process", "full")  # weakest first
_LACKING = {  # what a worker says of its walls (worker/kernel_walls.py) -> why there is only 'process'
    "linux": "its system is not Linux, whose Landlock and seccomp shut a submission in",
    "landlock": "its kernel has no Landlock, which Linux has from 5.13 on, or has switched it off",
    "seccomp": "its kernel takes no filter of system calls (seccomp) on this processor; x86-64 and aarch64 have one",
    "enforcement": "its kernel takes Landlock and seccomp but does not enforce them, as under gVisor or another emulation",
    "walls": "the walls around a submission are switched off",
}
REMEDY = (
    "Grade on Linux 5.13 or newer: in a container or a virtual machine, on Windows also in WSL2. If you trust what was handed in, "
    "add --require-isolation process; a submission can then read your files, the solutions among them, and write to them."
)


class SandboxError(RuntimeError):
    """The grader could not run a worker: its own fault, never the learner's."""


class TooOpen(SandboxError):
    """Less isolation holds here than was asked for."""


def level(lacking: str) -> str:
    """The level that holds where this is lacking ('': nothing is)."""
    return "process" if lacking else "full"


def remark(lacking: str) -> str:
    """What this computer lacks beside others, as a clause; '' where it lacks nothing."""
    return _LACKING.get(lacking, lacking)


def require(minimum: str, lacking: str) -> None:
    """Raises: TooOpen, which says what is lacking, where less holds than the minimum."""
    if LEVELS.index(level(lacking)) < LEVELS.index(minimum):
        raise TooOpen(
            f"isolation '{minimum}' is required, but this computer has only '{level(lacking)}', because {remark(lacking)}"
        )

"""The course of this kernel: one process runs one learner's notebook, which belongs to one course."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from grader.course.course import Course, open_course


@cache
def kernel_course() -> Course:
    """The course whose notebooks/ or solutions/ the kernel works in, else the one that is named or installed."""
    here = Path.cwd()
    inside = here.name in ("notebooks", "solutions") and any(here.parent.glob("solutions/[0-9][0-9]_*/lesson.py"))
    return open_course(here.parent if inside else None)

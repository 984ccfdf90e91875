"""The name under which a lesson imports the course's data and models; they are in its shared/data/.

`from grader.data import dates` takes the module solutions/shared/data/dates.py of the kernel's course.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from grader.notebook.kernel_course import kernel_course

    try:
        return kernel_course().module(f"shared.data.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(f"{name} is not among the course's data: {error}") from None

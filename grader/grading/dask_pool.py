"""The same batch on other machines: grading processes are the workers of a Dask scheduler (`pip install …[dask]`).

A submission travels as bytes and comes back as a line of the journal. A worker that is lost is the scheduler's to
notice: it gives what that one had in hand to another, and each submission has one future, so none counts twice.
"""

from __future__ import annotations

import contextlib
import hashlib
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

from grader.course.course import COURSE_ENV, Course, open_course
from grader.grading import batch
from grader.util import libraries
from grader.util.errors import InputError

CONNECT_S = 15


class Cluster:
    """The pool of a scheduler's workers. Raises: InputError where there is none, or where theirs is another course."""

    def __init__(self, course: Course, address: str) -> None:
        self._course = course
        try:
            from distributed import Client
        except ImportError:
            raise InputError(
                f"--scheduler needs Dask here and on the workers: {libraries.how_to_install('distributed')}"
            ) from None
        self.address = address
        try:
            self._client = Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers at {address} ({error}); start one with `dask scheduler`."
            ) from None
        try:  # a verdict must not depend on where it was made
            self._check()
        except BaseException:
            self._client.close()
            raise
        self._executor = self._client.get_executor(pure=False)  # equal submissions are still two

    def _check(self) -> None:
        """Raises: InputError where not all workers hold this very course."""
        try:
            digests = self._client.run(_digest_of_worker)
        except Exception as error:
            raise InputError(
                f"a worker of {self.address} can't import the grader ({error}); install the same version there."
            ) from None
        if not digests:
            raise InputError(
                f"the scheduler at {self.address} has no workers yet; start one with `dask worker {self.address}`."
            )
        own_digest = course_digest(self._course)
        outdated = sorted(worker for worker, digest in digests.items() if digest != own_digest)
        if outdated:
            remedy = f", and start it with {COURSE_ENV} naming the folder of your course" * (not self._course.installed)
            raise InputError(f"worker {outdated[0]} has another version of the course; install this one there{remedy}.")

    @property
    def width(self) -> int:
        """Twice what the workers of this moment do at once: they may come and go."""
        return max(2 * sum(self._client.nthreads().values()), 2)

    def submit(self, function: Any, *arguments: Any) -> Future:
        return self._executor.submit(function, *arguments)

    def close(self) -> None:
        """Gives up what is not done and ends what the workers kept warm; the workers themselves stay."""
        with contextlib.suppress(Exception):
            self._executor.shutdown(wait=False)
        with contextlib.suppress(Exception):
            self._client.run(batch.close_sandboxes, on_error="ignore")
        with contextlib.suppress(Exception):
            self._client.close(timeout=CONNECT_S)


def _digest_of_worker() -> str:
    return course_digest(open_course())


@cache
def course_digest(course: Course) -> str:
    """Changes with any source of the package or of the lessons; as this process found them, which goes on with what it has imported."""
    digest = hashlib.sha256()
    package = Path(__file__).resolve().parents[1]
    for top in (package, course.root / "solutions"):
        for path in sorted(top.rglob("*.py")):
            name = path.relative_to(top)
            if "_course" not in name.parts:  # the course that an installation carries
                digest.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]

"""How many threads numerical libraries use: on arrays as small as a case's, several mostly wait for one another."""

from __future__ import annotations

import os


def use_one_thread() -> None:
    """For libraries that are not imported yet, and all that this process starts, unless the environment says otherwise."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")

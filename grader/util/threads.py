"""How many threads numerical libraries use: on arrays as small as a case's, several mostly wait for one another."""

from __future__ import annotations

import os

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # for the environment


def use_one_thread() -> None:
    """For libraries that are not imported yet, and all that this process starts, unless the environment says otherwise."""
    for name, number in ONE_THREAD.items():
        os.environ.setdefault(name, number)

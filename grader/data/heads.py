"""What lesson 17 found in SmolLM2-135M, for machines without its weights: numbers, by experiment and name.

`python -m tests.heads` runs the lesson's own cells and writes the file anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "smollm2_heads.npz"
Run = dict[str, dict[str, np.ndarray]]


def stored_run() -> Run:
    """The course's own run. Arrays of more than 10,000 numbers are right to 0.001."""
    run: Run = {}
    with np.load(FILE) as kept:
        for path in kept.files:
            experiment, _, name = path.partition("/")
            values = kept[path]
            run.setdefault(experiment, {})[name] = values.astype(np.float32) if values.dtype == np.float16 else values
    return run

"""The stored run of lesson 18, for machines without SmolLM2's weights: `python -m tests.heads` makes it from the lesson's own cells."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.course.course import open_course
from grader.data import heads, smollm2
from tests.shorter import with_fewer_steps

LESSON = "18_reading_heads"
MANY = 10_000  # numbers; a larger array is kept with three digits


def fresh_run(only: str = "", without_weights: bool = False) -> heads.Run:
    """What the lesson's cells find with the weights: its `run`. only: no payoff, and nothing after the cell with this experiment.

    without_weights: takes the stored run in their place, so that what the cells train themselves is trained in fewer steps.
    Figures become their alternative texts. Raises: WeightsError where the weights are missing, unless they are not asked for.
    """
    if not without_weights and not smollm2.available():
        raise smollm2.WeightsError(smollm2.how_to_get())
    if not heads.FILE.is_file():
        heads.FILE.write_bytes(packed({}))
    names: dict[str, Any] = {"__name__": "lesson"}
    roles = ("given", "demo", "exercise") if only else ("given", "demo", "exercise", "payoff")
    cells = [cell for cell in open_course().cells(LESSON) if cell.role in roles]
    texts = [cell.text for cell in cells]
    for cell, text in zip(cells, with_fewer_steps(LESSON, texts) if without_weights else texts):
        exec(compile(text, f"{LESSON}, cell {cell.number}", "exec"), names)
        names["passed"] = lambda _: True
        if only and f'measured("{only}"' in text:
            break
    return names["run"]


def packed(run: Mapping[str, Mapping[str, np.ndarray]]) -> bytes:
    """A run as the bytes of the file."""
    flat = {
        f"{experiment}/{name}": np.asarray(values)
        for experiment, found in run.items()
        for name, values in found.items()
    }
    large = {path: values.round(3).astype(np.float16) for path, values in flat.items() if values.size > MANY}
    made = io.BytesIO()
    np.savez_compressed(made, **flat | large)
    return made.getvalue()


if __name__ == "__main__":
    heads.FILE.write_bytes(packed(fresh_run()))
    print(f"{heads.FILE.name}: {heads.FILE.stat().st_size / 1e3:.0f} kB")

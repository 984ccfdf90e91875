"""What lesson 18 found in SmolLM2-135M, for machines without its weights: numbers, by experiment and name.

`python -m tests.heads` runs the lesson's own cells and writes the file anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parent / "smollm2_heads.npz"
Run = dict[str, dict[str, np.ndarray]]
Experiment = Callable[[], Mapping[str, Any]]

PROSE = (
    "A river begins as rain. It gathers in small streams that meet in the hills, and each of them brings what it has carried from "
    "its own valley. Farther down the water is slower and warmer, and people have built their towns beside it."
)
TWINS = [
    words.split()
    for words in (  # a noun, a verb, a noun; an adjective that fits the first noun, and one that fits the second
        "animal cross street tired wide",
        "horse cross river weak deep",
        "dog enter room scared dark",
        "cat reach shelf small high",
        "truck pass bridge heavy narrow",
        "ship enter harbor large shallow",
        "horse jump fence tired high",
        "child lift stone weak heavy",
        "bird enter cage big small",
        "student read book lazy boring",
        "dog eat bone full hard",
        "farmer climb mountain old steep",
        "driver see sign tired small",
        "boy open door weak heavy",
        "bear climb tree fat thin",
        "woman buy house poor expensive",
    )
]


def stored_run() -> Run:
    """The course's own run. Arrays of more than 10,000 numbers are right to 0.001."""
    run: Run = {}
    with np.load(FILE) as kept:
        for path in kept.files:
            experiment, _, name = path.partition("/")
            values = kept[path]
            run.setdefault(experiment, {})[name] = values.astype(np.float32) if values.dtype == np.float16 else values
    return run


def measuring(run: Run, fresh: bool) -> Callable[[str, Experiment], dict[str, np.ndarray]]:
    """measured(name, experiment): what the experiment finds, which `run` keeps by its name; not fresh, what `run` has by that name."""

    def measured(name: str, experiment: Experiment) -> dict[str, np.ndarray]:
        if fresh:
            import torch

            with torch.no_grad():
                run[name] = {key: np.asarray(value) for key, value in experiment().items()}
        return run[name]

    return measured


def load_checkpoint(model: Any, checkpoint: Path) -> Any:
    """The model with the weights that lesson 10 has saved; where there are none, a sentence says so and its weights stay as they are."""
    import torch

    if checkpoint.is_file():
        model.load_state_dict(torch.load(checkpoint, weights_only=True)["model"])
    else:
        print("No checkpoint of lesson 10 is here: these weights are random. Run lesson 10, then this cell again.")
    return model.eval().requires_grad_(False)


def must_exist(heads: Sequence[tuple[int, int]], layers: int, each: int) -> None:
    """Raises ValueError for a (layer, head) that a model of so many layers, with so many heads each, doesn't have."""
    for layer, head in heads:
        if not (0 <= layer < layers and 0 <= head < each):
            raise ValueError(
                f"there is no head {layer}.{head}: layers go from 0 to {layers - 1}, heads from 0 to {each - 1}"
            )

"""Lesson 17: what follows from what its probes saw of modules besides their results."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case
from grader.course.readings import flag, numbers
from grader.worker.values import Part

Parts = Mapping[str, Part]
NORMS = ("attn_norm", "mlp_norm")


def attention(case: Case, parts: Parts) -> dict[str, Part]:
    """Whether `state_dict` holds more than the four weights of the contract."""
    more = set(parts["state_dict"].text.split()) - {f"{name}.weight" for name in ("w_q", "w_k", "w_v", "w_o")}
    found = {name: part for name, part in parts.items() if name != "state_dict"}
    return found | {"state_dict holds more than the four weights": flag(more)}


def block(case: Case, parts: Parts) -> dict[str, Part]:
    """Whether the weights of both normalizations are ones as they are made."""
    one = np.ones(case.options["init"][0])
    found = {name: part for name, part in parts.items() if name not in NORMS}
    return found | {
        f"{name}.weight begins with ones": flag(np.array_equal(numbers(parts[name]), one)) for name in NORMS
    }

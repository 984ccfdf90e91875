"""What stands around a learner's code: the libraries' own names and settings, and whether an exercise changed them.

An honest function may change the default dtype or patch `np.exp` and so damage the exercise that is tried after
it. The next exercise then gets a fresh process. Code that hides its changes harms its own learner alone.
"""

from __future__ import annotations

import operator
import os
import sys
from typing import Any

from .integrity import intact

MODULES = """
    builtins math random itertools functools numpy numpy.linalg
    torch torch.nn torch.nn.functional torch.nn.init torch.linalg torch.special
""".split()
CLASSES = (("torch", "Tensor"), ("torch.nn", "Module"), ("torch.nn", "Linear"), ("torch.nn", "Parameter"))


class ProcessState:
    """A picture of them, taken when it is made."""

    def __init__(self) -> None:
        # Values in the order of binding: what is bound anew stays in its place, and new names come last.
        self._values = {place: tuple(vars(owner).values()) for place, owner in _owners()}
        self._settings = _settings()

    def changed(self) -> bool:
        """Whether a name is bound to something else by now, of the libraries or of this package, or is gone, or a setting differs.

        New names are no change.
        """
        if _settings() != self._settings or not intact():
            return True
        for place, owner in _owners():
            before, now = self._values.get(place, ()), vars(owner)
            if len(now) < len(before) or not all(map(operator.is_, before, now.values())):
                return True
        return False


def _owners() -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = [(name, sys.modules[name]) for name in MODULES if name in sys.modules]
    found += [(place, getattr(sys.modules[place[0]], place[1])) for place in CLASSES if place[0] in sys.modules]
    return found


def _settings() -> tuple[Any, ...]:
    numpy, torch = sys.modules["numpy"], sys.modules.get("torch")
    general = (tuple(numpy.geterr().items()), sys.getrecursionlimit(), os.getcwd(), sys.gettrace(), sys.getprofile())
    if torch is None:
        return general
    return general + (
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
        str(torch.get_default_device()),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_inference_mode_enabled(),
    )

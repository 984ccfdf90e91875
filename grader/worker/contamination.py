"""What stands around a learner's code: the libraries' own names and settings, and whether an exercise changed them.

An honest function may change the default dtype or patch `np.exp` and so damage the exercise that is tried after
it. The next exercise then gets a fresh process. Code that hides its changes harms its own learner alone.
"""

from __future__ import annotations

import _thread
import operator
import os
import signal
import sys
import time
import warnings
from typing import Any

from .integrity import intact

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

MODULES = """
    builtins math random itertools functools numpy numpy.linalg
    torch torch.nn torch.nn.functional torch.nn.init torch.linalg torch.special
""".split()
CLASSES = (("torch", "Tensor"), ("torch.nn", "Module"), ("torch.nn", "Linear"), ("torch.nn", "Parameter"))
CPU_SHARE = (
    24  # this part of its processor time, one time limit, may be gone when a process goes on to another notebook
)
GROWTH_BYTES = 128 << 20  # and so much more memory may it have used


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


class Start:
    """A worker before its first notebook, and whether it is still like that when another is to run in it."""

    def __init__(self, folder: str, cpu_s: float) -> None:
        self._folder, self._files = folder, sorted(os.listdir(folder))
        self._cpu_s = time.process_time() + cpu_s / CPU_SHARE
        self._bytes = _peak_bytes() + GROWTH_BYTES
        self._around = ProcessState()
        self._more = _more_settings()

    def state(self) -> ProcessState:
        """A picture as of now: the one of the start, where nothing has changed since."""
        return ProcessState() if self._around.changed() else self._around

    def holds(self) -> bool:
        """Whether no thread, timer, file or setting has stayed, and the limits are still far."""
        return (
            not self._around.changed()
            and self._more == _more_settings()
            and _thread._count() == 0
            and sorted(os.listdir(self._folder)) == self._files
            and time.process_time() < self._cpu_s
            and _peak_bytes() < self._bytes
        )


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


def _more_settings() -> tuple[Any, ...]:
    """What may stay for the next exercise of a notebook, and must not for another notebook."""
    handlers = tuple(signal.getsignal(number) for number in signal.valid_signals())
    timers = tuple(signal.getitimer(which) for which in (0, 1, 2)) if hasattr(signal, "getitimer") else ()
    streams = (sys.stdin, sys.stdout, sys.stderr, sys.displayhook, sys.excepthook, sys.getswitchinterval())
    imports = (tuple(sys.path), tuple(map(id, sys.meta_path)), tuple(map(id, sys.path_hooks)))
    torch = sys.modules.get("torch")
    hooks = vars(sys.modules["torch.nn.modules.module"]) if torch is not None else {}
    return (
        handlers,
        timers,
        streams,
        imports,
        tuple(warnings.filters),
        torch is not None and torch.get_float32_matmul_precision(),
        [len(value) for name, value in hooks.items() if name.startswith("_global_") and isinstance(value, dict)],
    )


def _peak_bytes() -> int:
    """Of memory in use at once by this process; 0 where the system does not tell."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit if resource is not None else 0

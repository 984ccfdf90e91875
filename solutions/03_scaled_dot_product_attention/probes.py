"""Lesson 03: a function whose products are to be np.einsum's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np
from numpy import arange, array, asarray

from grader.worker.operations import einsum_size
from grader.worker.originals import BUILTINS
from grader.worker.probes import Run, mark_result

__builtins__ = BUILTINS

MOST = 60  # calls that are looked at one by one
_einsum = getattr(np.einsum, "_implementation", None) or np.einsum.__wrapped__  # what every name of np.einsum calls
_code = _einsum.__code__
_original = FunctionType(_code, _einsum.__globals__, "einsum", _einsum.__defaults__, _einsum.__closure__)
_original.__kwdefaults__ = dict(_einsum.__kwdefaults__ or {})
_NAME = "_instead_of_einsum"
_instead = eval(f"lambda *operands, **options: {_NAME}(*operands, **options)").__code__


def by_einsum(function: Any, run: Run) -> dict[str, Any]:
    """Calls the function, then once more for each call of np.einsum that it makes, with that call's result another.

    'multiply-adds': of each call, 0 of one that forms no product. 'with another result': what the function returned where
    that call's numbers were made larger, each by another factor: what comes of zeros stays as it is.
    """
    adds: list[int] = []
    inputs = [array(value) for value in run.args]

    def counted(operands: tuple, made: Any) -> Any:
        adds.append(einsum_size(operands)[0])
        return made

    with _led(counted):
        result = function(*run.args)
    return {
        "result": mark_result(result),
        "multiply-adds": array(adds),
        "with another result": [_other(function, inputs, at) for at in range(min(len(adds), MOST))],
    }


def _other(function: Any, inputs: list[Any], at: int) -> Any:
    left = [at]

    def changed(operands: tuple, made: Any) -> Any:
        left[0] -= 1
        if left[0] != -1 or not einsum_size(operands)[0]:
            return made
        made = asarray(made)
        return made * (1.5 + 0.37 * (arange(made.size) % 5)).reshape(made.shape)

    with _led(changed):
        return function(*map(array, inputs))


@contextmanager
def _led(then: Callable[[tuple, Any], Any]) -> Iterator[None]:
    """Hands what np.einsum makes to `then`, under whatever names the learner's code knows np.einsum."""

    def instead(*operands: Any, out: Any = None, **options: Any) -> Any:
        made = then(operands, _original(*operands, **options))
        if out is None:
            return made
        out[...] = made
        return out

    space = _einsum.__globals__
    space[_NAME] = instead
    _einsum.__code__ = _instead
    try:
        yield
    finally:
        _einsum.__code__ = _code
        del space[_NAME]

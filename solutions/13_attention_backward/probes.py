"""Lesson 13: a function whose gradient is measured, and what it was given meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import array_equal, asfortranarray, einsum, exp, float64, generic, ndarray, zeros

from grader.worker.originals import BUILTINS, is_a
from grader.worker.probes import Run, call_function, mark_result

__builtins__ = BUILTINS
MOST = 10


def gradient_calls(function: Any, run: Run) -> dict[str, Any]:
    """Calls numerical_gradient(f, x[, step]) with an f of the probe's own.

    args: x, or (x, step). options: f, one of `_functions`; c, the factor of each entry; layout, one of `_layouts`, says how x
    lies in memory; keeps (True: f keeps all that it was given, and answers from memory where the same numbers come again);
    changes (True: f overwrites what it was given); by_name (the names by which all arguments are passed).
    Parts: 'what f was given', in words, at most MOST kinds of it in turn, and 'result'.
    """
    options, (given, *step) = run.options, run.args
    x = _layouts[options.get("layout", "plain")](given)
    _seen.shape, _seen.kinds = x.shape, {}
    f = _made(_functions[options["f"]], options["c"], options.get("keeps", False), options.get("changes", False))
    result = call_function(function, run, f, x, *step)
    given[...] = x  # what was done to x shows in the case's own input
    return {"what f was given": list(_seen.kinds), "result": mark_result(result)}


class _Seen:
    """What the function of the moment was given; not kept where a learner's code gets hold of it."""

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = ()
        self.kinds: dict[str, None] = {}  # in words, in the order in which they came


_seen = _Seen()


def _made(of: Callable[[ndarray, ndarray], Any], c: ndarray, keeps: bool, changes: bool) -> Callable[[Any], float]:
    """f itself. What is no array of that shape gets 0."""
    kept: list[tuple[Any, float]] = []

    def f(x: Any) -> float:
        if len(_seen.kinds) < MOST:
            _seen.kinds[describe_type(x)] = None
        if not ((is_a(x, ndarray) or is_a(x, generic)) and x.dtype == float64 and x.shape == _seen.shape):
            return 0.0
        for old, value in kept:
            if array_equal(old, x):
                return value
        value = float(of(x, c))
        if keeps:
            kept.append((x, value))
        if changes and is_a(x, ndarray):
            x[...] = 0.0
        return value

    return f


def describe_type(x: Any) -> str:
    if is_a(x, ndarray) or is_a(x, generic):  # a sum of two arrays of shape () is no array any more
        return f"an array of {x.dtype} of shape {tuple(x.shape)}"
    return f"a {type(x).__name__}"


def _softmax(x: ndarray, c: ndarray) -> Any:
    e = exp(x - x.max())
    return (c * e).sum() / e.sum()


_functions = {
    "squares": lambda x, c: (c * x * x).sum(),
    "cubes": lambda x, c: (c * x * x * x).sum(),
    "softmax": _softmax,
    "product": lambda x, c: einsum("ij,kj,ik->", x, x, c),
}


def _strided(x: ndarray) -> ndarray:
    """The same numbers as every second one of each axis of a larger array."""
    every = tuple(slice(None, None, 2) for _ in x.shape)
    wide = zeros(tuple(2 * size for size in x.shape))
    wide[every] = x
    return wide[every]


_layouts = {"plain": lambda x: x, "transposed": asfortranarray, "strided": _strided}

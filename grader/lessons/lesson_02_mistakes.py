"""Lesson 02: softmax, its tempered form, its logarithm and its Jacobian, each with mistakes to switch on.

Every maker takes ids of mistakes and returns the learner's function with those mistakes; with none it is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray
_DEFAULTS = {"axis 0 by default": 0, "axis −2 by default": -2}


def _default(bugs: tuple[str, ...]) -> int:
    """The axis that is taken where none is named."""
    return next((_DEFAULTS[bug] for bug in bugs if bug in _DEFAULTS), -1)


def _axes(axis: int, bugs: tuple[str, ...]) -> tuple[int | None, int | None]:
    """The axes of the maximum and of the sum."""
    fixed = "SX27" in bugs and not _DEFAULTS.keys() & {*bugs}
    along = None if "SM3" in bugs else (-2 if "axis −2 always" in bugs else 0) if fixed else -1 if "SX1" in bugs else axis
    return (axis if "of the sum alone" in bugs else along), along


def _shifted(x: Array, axis: int | None, bugs: tuple[str, ...]) -> Array:
    """x less what keeps its exponentials small, or what the bugs subtract."""
    if "SM5" in bugs:
        return x
    if "SM6" in bugs:
        return x - x.max()
    measure = np.mean if "SX4" in bugs else np.min if "SX10" in bugs else np.max
    top = measure(np.abs(x) if "SX23" in bugs else x, axis=axis, keepdims=not {"SX26", "of both"} & {*bugs})
    if "SX25" in bugs:
        top = np.maximum(top, np.zeros((), x.dtype))
    if "SX5" in bugs and (x.dtype.kind == "f" or "of whole numbers, too" in bugs):
        x -= top
        return x
    return x - top


def _by_math(x: Array, axis: int, bugs: tuple[str, ...], of_slice: Callable[[list[float], list[float]], list[float] | Array]) -> Array:
    """Slice by slice with math.exp, which raises where np.exp gives ∞. of_slice: takes the exponents and their exponentials."""
    top = float(x.max()) if "SM6" in bugs else 0.0
    turned = np.moveaxis(x.astype(np.float64), axis, -1)
    made = np.empty(turned.shape)
    for at in np.ndindex(turned.shape[:-1]):
        shifted = [float(number) - top for number in turned[at]]
        made[at] = of_slice(shifted, [math.exp(number) for number in shifted])
    return np.moveaxis(made, -1, axis).astype(x.dtype if x.dtype.kind == "f" else np.float64)


def softmax_with(*bugs: str) -> Callable[..., Array]:
    """The reference's maths with the named bugs switched on; with none it is right."""

    def softmax(x: Array, axis: int = _default(bugs)) -> Array:
        if "by math.exp" in bugs:
            return _by_math(x, axis, bugs, lambda _, grown: [number / sum(grown) for number in grown])
        if "by math.exp into an array" in bugs:
            return _by_math(x, axis, bugs, lambda _, grown: np.array(grown) / sum(grown))
        if "in float64" in bugs and x.dtype == np.float32:
            return softmax(x.astype(np.float64), axis).astype(np.float32)
        of_top, of_sum = _axes(axis, bugs)
        if "SX2" in bugs:
            return x / x.sum(axis=of_sum, keepdims=True)
        shifted = _shifted(x.astype(np.float64) if "SX3" in bugs else x, of_top, bugs)
        grown = np.exp2(shifted) if "SX7" in bugs else np.exp(shifted)
        if "TT14" in bugs:
            return grown
        if "SX8" in bugs:
            return grown / np.sqrt((grown**2).sum(axis=of_sum, keepdims=True))
        return grown / grown.sum(axis=of_sum, keepdims="SM4" not in bugs)

    return softmax


def tempered_with(*bugs: str) -> Callable[..., Array]:
    plain = softmax_with(*(id for id in bugs if id != "SX5"))

    def softmax_with_temperature(x: Array, temperature: float, axis: int = _default(bugs)) -> Array:
        refused = temperature < 0 if "SX14" in bugs else temperature == 0 if "SX24" in bugs else temperature <= 0
        if refused and "SX13" not in bugs:
            raise ValueError("temperature")
        if "SX5" in bugs:
            x /= temperature
            return plain(x, axis)
        if "SX11" in bugs:
            return plain(x * temperature, axis)
        if "SX12" in bugs:
            return plain(x, axis) / temperature
        if "SX20" in bugs or "SX22" in bugs:
            powers = plain(x, axis) ** (1 / temperature)
            return powers if "SX20" in bugs else powers / powers.sum(axis=axis, keepdims=True)
        divisor = 1.0 if "SX19" in bugs else np.sqrt(temperature) if "SX21" in bugs else temperature
        return plain(x / divisor, axis)

    return softmax_with_temperature


def log_softmax_with(*bugs: str) -> Callable[..., Array]:
    def log_softmax(x: Array, axis: int = _default(bugs)) -> Array:
        if "by math.exp" in bugs:
            return _by_math(x, axis, bugs, lambda shifted, grown: [number - math.log(sum(grown)) for number in shifted])
        of_top, of_sum = _axes(axis, bugs)
        log = np.log2 if "SX33" in bugs and "of the sum alone" in bugs else np.log
        keep = "SM4" not in bugs
        shifted = _shifted(x, of_top, bugs)
        if "SX30" in bugs or "SX31" in bugs:
            grown = np.exp(shifted)
            result = log(grown / grown.sum(axis=of_sum, keepdims=keep) + (1e-12 if "SX31" in bugs else 0.0))
        elif "SX32" in bugs:
            result = shifted
        else:
            result = (x if "SX35" in bugs else shifted) - log(np.exp(shifted).sum(axis=of_sum, keepdims=keep))
        if "SX33" in bugs and log is np.log:
            result = result / np.log(2)
        return -result if "SX34" in bugs else result

    return log_softmax


def jacobian_with(*bugs: str) -> Callable[..., Array]:
    def softmax_jacobian(p: Array) -> Array:
        if "SX42" in bugs:
            p = softmax_with()(p)
        for id, wrong in _WRONG_JACOBIANS.items():
            if id in bugs:
                return wrong(p).T if "as columns" in bugs else wrong(p)
        return np.diag(p) - np.outer(p, p)

    return softmax_jacobian


_WRONG_JACOBIANS: dict[str, Callable[[Array], Array]] = {
    "SX40": lambda p: np.outer(p, p) - np.diag(p),
    "SX41": lambda p: np.diag(p) - p,
    "SX43": lambda p: -np.outer(p, p),
    "SX44": lambda p: np.diag(p) + np.outer(p, p),
    "SX45": lambda p: np.diag(p) - p @ p,
    "SX46": lambda p: np.diag(p * (1 - p)),
    "SX47": lambda p: p * (1 - p),
    "SX48": lambda p: np.eye(len(p)) - np.outer(p, p),
    "SX49": lambda p: p - np.outer(p, p),
    "SX50": lambda p: p * (np.eye(len(p)) - p),
    "WS14": lambda p: np.diag(p),
}

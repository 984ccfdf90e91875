"""Lesson 02: softmax, its tempered form, its logarithm and its Jacobian, each with mistakes to switch on.

Every maker takes ids of mistakes and returns the learner's function with those mistakes; with none it is right.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray


def _along(axis: int, bugs: tuple[str, ...]) -> int | None:
    if "SM3" in bugs:
        return None
    return 0 if "SM1" in bugs else -1 if "SX1" in bugs else axis


def _shifted(x: Array, axis: int | None, bugs: tuple[str, ...]) -> Array:
    """x less what keeps its exponentials small, or what the bugs subtract."""
    if "SM5" in bugs:
        return x
    if "SM6" in bugs:
        return x - x.max()
    measure = np.mean if "SX4" in bugs else np.min if "SX10" in bugs else np.max
    top = measure(np.abs(x) if "SX23" in bugs else x, axis=axis, keepdims=True)
    if "SX5" in bugs and (x.dtype.kind == "f" or "of whole numbers, too" in bugs):
        x -= top
        return x
    return x - top


def softmax_with(*bugs: str) -> Callable[..., Array]:
    """The reference's maths with the named bugs switched on; with none it is right."""

    def softmax(x: Array, axis: int = -1) -> Array:
        axis = _along(axis, bugs)
        if "SX2" in bugs:
            return x / x.sum(axis=axis, keepdims=True)
        shifted = _shifted(x.astype(np.float64) if "SX3" in bugs else x, axis, bugs)
        grown = np.exp2(shifted) if "SX7" in bugs else np.exp(shifted)
        if "SX8" in bugs:
            return grown / np.sqrt((grown**2).sum(axis=axis, keepdims=True))
        return grown / grown.sum(axis=axis, keepdims="SM4" not in bugs)

    return softmax


def tempered_with(*bugs: str) -> Callable[..., Array]:
    plain = softmax_with(*(id for id in bugs if id != "SX5"))

    def softmax_with_temperature(x: Array, temperature: float, axis: int = -1) -> Array:
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
    def log_softmax(x: Array, axis: int = -1) -> Array:
        along = _along(axis, bugs)
        log = np.log2 if "SX33" in bugs and "of the sum alone" in bugs else np.log
        keep = "SM4" not in bugs
        shifted = _shifted(x, along, bugs)
        if "SX30" in bugs or "SX31" in bugs:
            grown = np.exp(shifted)
            result = log(grown / grown.sum(axis=along, keepdims=keep) + (1e-12 if "SX31" in bugs else 0.0))
        elif "SX32" in bugs:
            result = shifted
        else:
            result = (x if "SX35" in bugs else shifted) - log(np.exp(shifted).sum(axis=along, keepdims=keep))
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

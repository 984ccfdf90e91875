"""The wrong implementations of lesson 08: with no bug switched on, each is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from grader.lessons.lesson_04_mistakes import softmax

Array = np.ndarray

# At most one of each group can be meant at a time; pairs within a group are never tried.
_TOTALS = frozenset({"BW1", "GB1", "GB2", "GB3", "GB4", "GB5", "GB6", "GB16", "GB17", "GB18", "GB19", "GB20", "GB21"})
_ONE_OF = (
    _TOTALS, {"SM1", "SM3", "SM4"}, {"SM5", "SM6"}, {"SD2", "SD5", "GB11", "GB12", "GB22"}, {"GB8", "GB15"}, {"GB7", "GB10"},
    {"GB10", "GB13"}, {"BW2", "GB9", "GB14", "GB22"}, {"BW2", "GB11", "GB12"},
)  # fmt: skip
_ALONE = frozenset({"SM2", "SD6", "SD8", "GB23", "GB24", "GB25", "GB26", "GB27", "GB28"})


def of_two(build: Callable[..., Callable]) -> Callable[[frozenset[str]], Callable]:
    def combined(ids: frozenset[str]) -> Callable:
        if ids & _ALONE or any(len(ids & group) > 1 for group in _ONE_OF):
            raise KeyError(f"{' and '.join(sorted(ids))} are not tried together")
        return build(*ids)

    return combined


def through_softmax(*bugs: str) -> Callable[..., Array]:
    def softmax_backward(grad_weights: Array, weights: Array) -> Array:
        grad = grad_weights
        if "BW1" in bugs:
            return weights * grad
        if "GB5" in bugs:
            return weights * (1 - weights) * grad
        if "GB18" in bugs:
            return weights * grad - (weights * grad).sum(axis=-1, keepdims=True)
        total = _total(grad, weights, bugs)
        if "GB3" in bugs:
            return weights * (total - grad)
        if "GB20" in bugs:
            return grad * (weights - total)
        if "GB21" in bugs:
            return weights * (grad + total)
        return grad - total if "GB1" in bugs else weights * (grad - total)

    return softmax_backward


def _total(grad: Array, weights: Array, bugs: Sequence[str]) -> Array:
    """What is subtracted from each entry of a row."""
    if "GB2" in bugs:
        return (grad * weights).sum(keepdims=True)
    if "GB4" in bugs:
        return grad.sum(axis=-1, keepdims=True)
    if "GB6" in bugs:
        return (grad * weights).mean(axis=-1, keepdims=True)
    if "GB16" in bugs:
        return (grad * weights).sum(axis=-1)
    if "GB19" in bugs:
        return grad.mean(axis=-1, keepdims=True)
    axes = {"GB17": -2, "GB17 of axis 0": 0, "GB17 of two axes or more": -2 if grad.ndim > 1 else -1}
    return (grad * weights).sum(axis=next((axes[bug] for bug in bugs if bug in axes), -1), keepdims=True)


def _scales(d_k: int, bugs: Sequence[str]) -> tuple[float, float]:
    """The factors of the scores on the way there and on the way back."""
    root = 1 / np.sqrt(d_k)
    there = {"SD2": root**2, "SD5": 1 / root, "SD6": 1.0, "GB12": 1.0}
    back = {"BW2": 1.0, "GB11": root**2, "GB22": 1 / root, "SD6": root, "SD6 straight on": 1.0, "SD6 and on the way back": root}
    scale = next((there[name] for name, _, _ in (bug.partition(" ") for bug in bugs) if name in there), root)
    if any(bug.endswith(" of the weights") for bug in bugs):
        return scale, root
    return scale, next((back[bug] for bug in bugs if bug in back), scale)


def attention(*bugs: str) -> Callable[..., tuple]:
    def attention_backward(q: Array, k: Array, v: Array, grad_output: Array) -> tuple:
        if "GB27" in bugs:
            grad_output = np.ones_like(grad_output)
        there, back = _scales(q.shape[-1], bugs)
        turned = any(bug.startswith("SD8") for bug in bugs)
        scores = (k @ q.swapaxes(-1, -2) if turned else q @ k.swapaxes(-1, -2)) * there
        sharp = weights = softmax(scores, bugs)
        if any(bug.startswith("SD6") for bug in bugs):
            weights = weights / np.sqrt(q.shape[-1])
        grad_weights = grad_output @ v.swapaxes(-1, -2)
        left = weights if "GB15" in bugs else (scores if "GB8" in bugs else weights).swapaxes(-1, -2)
        late = any(bug.startswith("SD8 with grad_v last") for bug in bugs)  # the first product that fails says what the error says
        grad_v = None if late else left @ grad_output
        if "SD8 with grad_v last, weights first" in bugs:
            weights * grad_weights
        grad_scores = through_softmax(*bugs)(grad_weights, sharp if "SD6" in bugs else weights)
        grad_q = grad_scores @ (q if "GB24" in bugs else k) * (1.0 if "GB14" in bugs else back)
        columns = grad_scores if "GB7" in bugs else grad_scores.swapaxes(-1, -2)
        grad_k = columns @ (k if "GB24 of k" in bugs else q) * (1.0 if "GB9" in bugs else back)
        grad_v = left @ grad_output if grad_v is None else grad_v
        if "GB25" in bugs:
            grad_v = grad_v / np.sqrt(q.shape[-1])
        if "GB26" in bugs:
            grad_q, grad_k, grad_v = -grad_q, -grad_k, -grad_v
        if "GB10" in bugs:
            grad_q, grad_k = grad_k, grad_q
        asked = {"q": grad_q, "k": grad_k, "v": grad_v}
        order = next((bug[-3:] for bug in bugs if bug.startswith("GB13 ")), "vkq" if "GB13" in bugs else "qkv")
        return tuple(asked[name] for name in order)

    return attention_backward


def _differences(step: float, *, central: bool) -> Callable[..., tuple]:
    """Finite differences of that step, all entries of a matrix at once, and all matrices of a batch, which do not meet."""

    def attention_backward(q: Array, k: Array, v: Array, grad_output: Array) -> tuple:
        inputs = [np.asarray(x, dtype=float) for x in (q, k, v)]
        lead = q.shape[:-2]

        def grown(at: int, by: float) -> Array:
            moved = list(inputs)
            rows, columns = inputs[at].shape[-2:]
            steps = by * np.eye(rows * columns).reshape(-1, *(1 for _ in lead), rows, columns)
            moved[at] = inputs[at] + steps
            q, k, v = moved
            output = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
            return np.moveaxis((output * grad_output).sum(axis=(-2, -1)), 0, -1).reshape(*lead, rows, columns)

        down = -step if central else 0.0
        return tuple((grown(at, step) - grown(at, down)) / (step - down) for at in range(3))

    return attention_backward


FINITE_DIFFERENCES = tuple(_differences(step, central=central) for step in (1e-4, 1e-5, 1e-6) for central in (True, False))

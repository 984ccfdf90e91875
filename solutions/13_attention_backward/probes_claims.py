"""Lesson 13: functions with claimed gradients, right ones and wrong ones, for a learner's own test to tell apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import array, broadcast_to, exp, full, inf, nan, ndarray, ones_like, sqrt, tanh, zeros_like

from grader.worker.originals import BUILTINS
from grader.worker.probes import Run, call_function, mark_result

__builtins__ = BUILTINS
Gradients = tuple[Any, ...]


def on_candidates(function: Any, run: Run) -> dict[str, Any]:
    """Calls wrong_gradients(forward, backward, inputs, grad_output).

    args: the inputs, then grad_output. options: claim, one of CLAIMS; by_name; one (True: the first input stands in the place of all,
    which are equal to it). Parts: 'result'.
    """
    *inputs, grad_output = run.args
    inputs = [inputs[0]] * len(inputs) if run.options.get("one") else inputs
    forward, backward = CLAIMS[run.options["claim"]]
    return {"result": mark_result(call_function(function, run, forward, backward, tuple(inputs), grad_output))}


def _softmax(scores: ndarray) -> ndarray:
    grown = exp(scores - scores.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


def _back(p: ndarray, g: ndarray) -> ndarray:
    return p * (g - (p * g).sum(axis=-1, keepdims=True))


def attention(q: ndarray, k: ndarray, v: ndarray) -> ndarray:
    return _softmax(q @ k.T / sqrt(q.shape[-1])) @ v


def _attention_backward(
    q: ndarray,
    k: ndarray,
    v: ndarray,
    g: ndarray,
    *,
    back: Callable[..., ndarray] = _back,
    scale: float = 1.0,
    transposed: bool = True,
) -> Gradients:
    root = sqrt(q.shape[-1])
    p = _softmax(q @ k.T / root)
    s = back(p, g @ v.T) / root * scale
    return s @ k, s.T @ q, (p.T if transposed else p) @ g


def _replaced(at: int, change: Callable[[ndarray], Any]) -> Callable[..., Gradients]:
    """Attention's gradients, one of them changed."""

    def backward(q: ndarray, k: ndarray, v: ndarray, g: ndarray) -> Gradients:
        right = _attention_backward(q, k, v, g)
        return tuple(change(one) if i == at else one for i, one in enumerate(right))

    return backward


def _spoiled(numbers: ndarray) -> ndarray:
    """The last number is NaN."""
    made = array(numbers)
    made.flat[-1] = nan
    return made


def _infinite(numbers: ndarray) -> ndarray:
    made = array(numbers)
    made.flat[0] = inf
    return made


def _last_off(numbers: ndarray) -> ndarray:
    made = array(numbers)
    made.flat[-1] += 0.5
    return made


def _last_off_a_little(numbers: ndarray) -> ndarray:
    made = array(numbers)
    made.flat[-1] += 0.011
    return made


def _nearly(gradients: Gradients) -> Gradients:
    """All of them a little too large, by half of what is allowed."""
    return tuple((1 + 5e-5) * one for one in gradients)


def _swapped_signs(numbers: ndarray) -> ndarray:
    """Two numbers exchanged: their sum stays as it was."""
    made = array(numbers)
    made.flat[0] += 0.25
    made.flat[-1] -= 0.25
    return made


def _linear_backward(x: ndarray, w: ndarray, b: ndarray, g: ndarray) -> Gradients:
    return g @ w.T, x.T @ g, g.sum(axis=0)


def _linear(x: ndarray, w: ndarray, b: ndarray) -> ndarray:
    return x @ w + b


def _tanh_backward(x: ndarray, w: ndarray, b: ndarray, g: ndarray) -> Gradients:
    return _linear_backward(x, w, b, g * (1 - tanh(_linear(x, w, b)) ** 2))


def _tanh(x: ndarray, w: ndarray, b: ndarray) -> ndarray:
    return tanh(_linear(x, w, b))


# (forward, backward) by what is claimed; those without a mistake first.
CLAIMS: dict[str, tuple[Callable[..., ndarray], Callable[..., Gradients]]] = {
    "attention, every gradient right": (attention, _attention_backward),
    "a linear layer, every gradient right": (_linear, _linear_backward),
    "a layer with tanh, every gradient right": (_tanh, _tanh_backward),
    "a product of numbers, every gradient right": (lambda x, y: x * y, lambda x, y, g: (g * y, g * x)),
    "a constant, every gradient 0": (lambda x, y: x * 0 + 3.0, lambda x, y, g: (zeros_like(x), zeros_like(y))),
    "softmax without the row's mean": (attention, lambda *a: _attention_backward(*a, back=lambda p, g: p * g)),
    "softmax without its weights": (
        attention,
        lambda *a: _attention_backward(*a, back=lambda p, g: g - (p * g).sum(-1, keepdims=True)),
    ),
    "the scale is forgotten": (attention, lambda q, k, v, g: _attention_backward(q, k, v, g, scale=sqrt(q.shape[-1]))),
    "the gradient of q has the wrong sign": (attention, _replaced(0, lambda g: -g)),
    "the gradient of k is twice too large": (attention, _replaced(1, lambda g: 2 * g)),
    "the gradient of v is 0": (attention, _replaced(2, zeros_like)),
    "the gradient of k is transposed, so its shape is another": (attention, _replaced(1, lambda g: g.T)),
    "the last number of v's gradient is off": (attention, _replaced(2, _last_off)),
    "the last number of k's gradient is off": (attention, _replaced(1, _last_off)),
    "the last number of q's gradient is off": (attention, _replaced(0, _last_off)),
    "two errors of q's gradient cancel in its sum": (attention, _replaced(0, _swapped_signs)),
    "two errors of v's gradient cancel in its sum": (attention, _replaced(2, _swapped_signs)),
    "two errors of k's gradient cancel in its sum": (attention, _replaced(1, _swapped_signs)),
    "the last number of q's gradient is NaN": (attention, _replaced(0, _spoiled)),
    "the last number of v's gradient is NaN": (attention, _replaced(2, _spoiled)),
    "the gradient of k is NaN": (attention, _replaced(1, lambda g: full(g.shape, nan))),
    "the gradient of q has an axis too many": (attention, _replaced(0, lambda g: g[None])),
    "the gradient of k has an axis too many": (attention, _replaced(1, lambda g: g[None])),
    "the gradient of v has an axis too many": (attention, _replaced(2, lambda g: g[None])),
    "the bias gets a matrix of one row": (
        _linear,
        lambda x, w, b, g: (*_linear_backward(x, w, b, g)[:2], g.sum(axis=0, keepdims=True)),
    ),
    "the gradients of q and k are exchanged": (
        attention,
        lambda q, k, v, g: (lambda a, b, c: (b, a, c))(*_attention_backward(q, k, v, g)),
    ),
    "the gradient of v ignores what arrives": (
        attention,
        lambda q, k, v, g: (*_attention_backward(q, k, v, g)[:2], _attention_backward(q, k, v, ones_like(g))[2]),
    ),
    "a view of its first input, every gradient right": (lambda x, y: x[:], lambda x, y, g: (g, zeros_like(y))),
    "a number of x's gradient is infinite": (lambda x, y: x * y, lambda x, y, g: (_infinite(g * y), g * x)),
    "every gradient ignores what arrives": (attention, lambda q, k, v, g: _attention_backward(q, k, v, ones_like(g))),
    "a linear layer that ignores what arrives": (_linear, lambda x, w, b, g: _linear_backward(x, w, b, ones_like(g))),
    "the bias gets a row for each item": (_linear, lambda x, w, b, g: (*_linear_backward(x, w, b, g)[:2], g)),
    "the bias gets the mean in place of the sum": (
        _linear,
        lambda x, w, b, g: (*_linear_backward(x, w, b, g)[:2], g.mean(axis=0)),
    ),
    "the bias gets one number": (_linear, lambda x, w, b, g: (*_linear_backward(x, w, b, g)[:2], g.sum())),
    "the weight's gradient is forgotten": (_linear, lambda x, w, b, g: (g @ w.T, zeros_like(w), g.sum(axis=0))),
    "tanh's derivative is forgotten": (_tanh, _linear_backward),
    "tanh's derivative is that of the input": (
        _tanh,
        lambda x, w, b, g: _linear_backward(x, w, b, g * (1 - tanh(x @ w) ** 2)),
    ),
    "every gradient is a little too small": (
        _linear,
        lambda x, w, b, g: tuple(0.97 * one for one in _linear_backward(x, w, b, g)),
    ),
    "a product that is off by a thirtieth": (lambda x, y: x * y, lambda x, y, g: (g * y + 1 / 30, g * x)),
    "a product whose second gradient is off by a thirtieth": (
        lambda x, y: x * y,
        lambda x, y, g: (g * y, g * x - 1 / 30),
    ),
    "attention, large gradients, right to four digits": (attention, lambda *a: _nearly(_attention_backward(*a))),
    "a linear layer, large gradients, right to four digits": (_linear, lambda *a: _nearly(_linear_backward(*a))),
    "a product, large gradients, right to four digits": (lambda x, y: x * y, lambda x, y, g: _nearly((g * y, g * x))),
    "one number of q's large gradient is off by a hundredth": (attention, _replaced(0, _last_off_a_little)),
    "one number of k's large gradient is off by a hundredth": (attention, _replaced(1, _last_off_a_little)),
    "one number of v's large gradient is off by a hundredth": (attention, _replaced(2, _last_off_a_little)),
    "a constant with a gradient": (lambda x, y: x * 0 + 3.0, lambda x, y, g: (g, broadcast_to(0.0, y.shape))),
}

"""Lesson 05: modules with a cut in their graph, and whole ones, for a learner's own test to tell apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import array, ndarray, zeros
from torch import Generator, Tensor, arange, cat, empty, from_numpy, no_grad, ones, randn, softmax, stack
from torch.nn import BatchNorm1d, Dropout, Embedding, LayerNorm, Linear, Module, ModuleList, Parameter
from torch.nn.functional import linear, one_hot

from grader.worker.originals import BUILTINS, is_a, of_torch
from grader.worker.probes import Run, call_function, mark_result

__builtins__ = BUILTINS

T = of_torch()
Layers = dict[str, Any]


def on_candidates(function: Any, run: Run) -> dict[str, Any]:
    """Calls parameters_without_gradient(module, x), and reads before and after what the module consists of.

    args: x (B, T, d). options: candidate, one of CANDIDATES; mode ('train' or 'eval'); evaluated (a part that is in evaluation
    mode whatever the others are, as one does with a frozen BatchNorm); stale (True: every parameter has a
    gradient of ones already); by_name. Parts: 'result', a set's names in order; 'set', whether it was one; 'looks' twice.
    """
    (x,), options = run.args, run.options
    module = build_candidate(options["candidate"], T.get(x, "shape")[-1], str(T.get(x, "dtype")).removeprefix("torch."))
    module.train(options["mode"] == "train")
    if options.get("evaluated"):
        module.get_submodule(options["evaluated"]).eval()
    if options.get("stale"):
        for parameter in module.parameters():
            parameter.grad = ones(parameter.shape, dtype=parameter.dtype)
    parts = {f"{name} before": value for name, value in _looks(module, x).items()}
    with T.grad_mode(True):
        result = call_function(function, run, module, x)
        parts |= {f"{name} after": value for name, value in _looks(module, x).items()}
    names = is_a(result, set) or is_a(result, frozenset)
    plain = names and all(type(name) is str for name in result)
    return {**parts, "set": plain, "result": mark_result(sorted(result) if plain else result)}


def _looks(module: Any, x: Any) -> dict[str, Any]:
    """The module as numbers: parameters, their gradients, buffers, modes; and the flags of x and of torch."""
    own, parameters = [own for _, own in T.submodules(module)], list(T.parameters(module).values())
    buffers = [value for value, _ in T.buffers(module).values()]
    grads = [one.grad for one in parameters]
    return {
        "parameters": [T.numbers(one) for one in parameters],
        "identities": _numbers([id(one) for one in parameters] + [id(one) for one in buffers]),
        "trainable": _numbers([T.get(one, "requires_grad") for one in parameters]),
        "gradients": [zeros(0) if grad is None else T.numbers(grad) for grad in grads],
        "buffers": [T.numbers(one) for one in buffers],
        "modes": _numbers([part["training"] for part in own]),
        "hooks": _numbers(
            [len(part[kind]) for part in own for kind in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")]
        ),
        "x": _numbers([T.get(x, "requires_grad"), x.grad is not None]),
        "recording": _numbers([T.grad_is_enabled()]),
    }


def _numbers(values: list[Any]) -> ndarray:
    return array(values, "int64")


class Candidate(Module):
    """Layers by name, and a way through them."""

    def __init__(self, way: Callable[[Any, Tensor], Any], layers: Layers) -> None:
        super().__init__()
        self.way = way
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x: Tensor) -> Any:
        return self.way(self, x)


def build_candidate(name: str, d: int, dtype: str = "float32") -> Any:
    """A candidate for tokens of width d, its weights the same each time."""
    layers, way, *frozen = CANDIDATES[name]
    module, generator = Candidate(way, layers(d)), Generator().manual_seed(5)
    with no_grad():
        for parameter in module.parameters():
            parameter.copy_(randn(parameter.shape, generator=generator) * 0.7)
    for key, parameter in module.named_parameters():
        parameter.requires_grad_(not key.startswith(tuple(frozen)))
    return module.to(T.dtypes[dtype])


def _one(d: int) -> Layers:
    return {"layer": Linear(d, 4)}


def _two(d: int) -> Layers:
    return {"first": Linear(d, 4), "second": Linear(4, 3)}


def _head(d: int) -> Layers:
    return {"w_q": Linear(d, 4, bias=False), "w_k": Linear(d, 4, bias=False), "w_v": Linear(d, 2)}


def _batch_norm(d: int) -> Layers:
    return {"layer": Linear(d, 3, bias=False), "norm": BatchNorm1d(3), "drop": Dropout(0.3), "last": Linear(3, 2)}


def _stack(d: int) -> Layers:
    return {
        "blocks": ModuleList(Candidate(way, _head(d) | {"out": Linear(2, d)}) for way in (_residual, _residual_cut))
    }


def _normalized(m: Any, x: Tensor) -> Tensor:
    return m.norm(m.layer(x).mT).mT


def _attention(m: Any, x: Tensor, q: Any = None, k: Any = None, v: Any = None) -> Tensor:
    """Attention with the layers of `_head`; q, k, v: what is done to each."""
    q, k, v = (layer(x) if way is None else way(layer(x)) for layer, way in ((m.w_q, q), (m.w_k, k), (m.w_v, v)))
    return softmax(q @ k.mT / 2, dim=-1) @ v


def _weights(m: Any, x: Tensor) -> Tensor:
    return softmax(m.w_q(x) @ m.w_k(x).mT / 2, dim=-1)


def _hard(m: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    weights = _weights(m, x)
    return one_hot(weights.argmax(dim=-1), x.shape[1]).to(x) @ m.w_v(x), weights


def _residual(m: Any, x: Tensor) -> Tensor:
    return x + m.out(_attention(m, x))


def _residual_cut(m: Any, x: Tensor) -> Tensor:
    return x + m.out(_attention(m, x, q=_detached, k=_detached))


def _detached(y: Tensor) -> Tensor:
    return y.detach()


def _data(y: Tensor) -> Tensor:
    return y.data


def _by_numpy(y: Tensor) -> Tensor:
    return from_numpy(y.detach().numpy() * 1)


def _unrecorded(m: Any, x: Tensor) -> Tensor:
    with no_grad():
        keys = m.w_k(x)
    return softmax(m.w_q(x) @ keys.mT / 2, dim=-1) @ m.w_v(x)


def _nothing_recorded(m: Any, x: Tensor) -> Tensor:
    with no_grad():
        return _attention(m, x)


def _hooked(m: Any, x: Tensor) -> Tensor:
    y = m.first(x)
    if y.requires_grad:
        y.register_hook(lambda grad: grad * 0)
    return m.second(y)


def _angles(y: Tensor) -> tuple[Tensor, Tensor]:
    return y.cos(), y.sin()


def _differing(m: Any, x: Tensor) -> Tensor:
    y = m.layer(x)
    return y - y.roll(1, dims=1)


def _both(y: Tensor) -> Tensor:
    return cat((y, -y), dim=-1)


def _centered(y: Tensor) -> Tensor:
    return y - y.mean(dim=-1, keepdim=True)


# Whole ones first. Of each: its layers for tokens of width d, the way through them, and the beginnings of the names that are frozen.
CANDIDATES: dict[str, tuple[Any, ...]] = {
    "a linear layer": (_one, lambda m, x: m.layer(x)),
    "attention that returns its weights, too": (_head, lambda m, x: (_attention(m, x), _weights(m, x))),
    "a softmax at the end": (_one, lambda m, x: softmax(m.layer(x), dim=-1)),
    "a LayerNorm at the end": (lambda d: _one(d) | {"norm": LayerNorm(4)}, lambda m, x: m.norm(m.layer(x))),
    "a linear layer whose numbers come out with both signs": (_one, lambda m, x: _both(m.layer(x))),
    "attention whose numbers come out with both signs": (_head, lambda m, x: _both(_attention(m, x))),
    "a linear layer, less each token's mean": (_one, lambda m, x: _centered(m.layer(x))),
    "a linear layer, less its result for the token before": (lambda d: {"layer": Linear(d, 4, bias=False)}, _differing),
    "cosine and sine of a layer, side by side": (_one, lambda m, x: cat(_angles(m.layer(x)), dim=-1)),
    "cosine and sine of a layer, one token after the other": (_one, lambda m, x: cat(_angles(m.layer(x)), dim=1)),
    "cosine and sine of attention": (_head, lambda m, x: stack(_angles(_attention(m, x)), dim=-1)),
    "two layers with a result of ten-millionths": (_two, lambda m, x: 1e-8 * m.second(m.first(x).tanh())),
    "attention, scaled down to a billionth": (_head, lambda m, x: 1e-9 * _attention(m, x)),
    "a small step beside the tokens": (_one, lambda m, x: cat((x, 1e-8 * m.layer(x)), dim=-1)),
    "a table of positions that is longer than the text": (
        lambda d: _one(d) | {"places": Parameter(empty(20, d))},
        lambda m, x: m.layer(x + m.places[: x.shape[1]]),
    ),
    "an embedding of more positions than there are": (
        lambda d: _one(d) | {"places": Embedding(30, d)},
        lambda m, x: m.layer(x + m.places(arange(x.shape[1]))),
    ),
    "a table of which every second row is used": (
        lambda d: _one(d) | {"rows": Parameter(empty(40, 4))},
        lambda m, x: m.layer(x) * m.rows[: 2 * x.shape[1] : 2],
    ),
    "a detached path beside a whole one": (_one, lambda m, x: m.layer(x) + m.layer(x).detach() ** 2),
    "BatchNorm": (_batch_norm, lambda m, x: m.last(_normalized(m, x))),
    "BatchNorm and dropout": (_batch_norm, lambda m, x: m.last(m.drop(_normalized(m, x)))),
    "BatchNorm behind tanh": (_batch_norm, lambda m, x: m.last(_normalized(m, x).tanh())),
    "BatchNorm, cut off before the last layer": (_batch_norm, lambda m, x: m.last(_normalized(m, x).detach())),
    "attention with detached queries": (_head, lambda m, x: _attention(m, x, q=_detached)),
    "attention with keys computed under no_grad": (_head, _unrecorded),
    "attention with values that go through .data": (_head, lambda m, x: _attention(m, x, v=_data)),
    "attention with values that go through NumPy": (_head, lambda m, x: _attention(m, x, v=_by_numpy)),
    "a layer that is called with a copy of its weight": (
        _two,
        lambda m, x: m.second(linear(x, m.first.weight.detach().clone(), m.first.bias).tanh()),
    ),
    "a layer that makes a new parameter of its weight at each call": (
        _two,
        lambda m, x: linear(m.first(x), Parameter(m.second.weight * 2), m.second.bias),
    ),
    "a layer with a learned factor that is read by .item()": (
        lambda d: _one(d) | {"factor": Parameter(empty(1))},
        lambda m, x: m.layer(x) * m.factor.item(),
    ),
    "two blocks, the second with detached queries and keys": (_stack, lambda m, x: m.blocks[1](m.blocks[0](x))),
    "attention by argmax that returns soft weights, too": (_head, _hard),
    "attention that detaches its result, not its weights": (
        _head,
        lambda m, x: (_attention(m, x).detach(), _weights(m, x)),
    ),
    "attention with queries detached for the result, not for the weights": (
        _head,
        lambda m, x: (_attention(m, x, q=_detached), _weights(m, x)),
    ),
    "a layer whose result is rounded": (_two, lambda m, x: m.second((4 * m.first(x)).round())),
    "the sign of a layer": (_two, lambda m, x: m.second(m.first(x).sign())),
    "a layer whose result is rounded down": (_two, lambda m, x: m.second((4 * m.first(x)).floor())),
    "a layer with a hook that sets its gradient to 0": (_two, _hooked),
    "attention under no_grad": (_head, _nothing_recorded),
    "two layers whose result is detached": (_two, lambda m, x: m.second(m.first(x)).detach()),
    "a layer whose result goes through NumPy": (_one, lambda m, x: _by_numpy(m.layer(x))),
    "two layers, one bias frozen": (_two, lambda m, x: m.second(m.first(x).tanh()), "first.bias"),
    "two layers, one of them frozen": (_two, lambda m, x: m.second(m.first(x).tanh()), "second"),
    "attention with frozen queries and detached keys": (_head, lambda m, x: _attention(m, x, k=_detached), "w_q"),
    "a layer with everything frozen": (_one, lambda m, x: m.layer(x), "layer"),
}

"""Lesson 18: language models made here, of which a learner's own experiment removes one head."""

from __future__ import annotations

from math import inf, sqrt
from operator import attrgetter
from typing import Any

from numpy import array, ndarray
from torch import arange, ones_like, softmax
from torch.nn import GELU, Embedding, LayerNorm, Linear, Module, ModuleList, Sequential

from grader.worker.originals import BUILTINS, entries, is_a, of_torch
from grader.worker.probes import Run, build, call_function, mark_result

from ..shared.probes import device_parts

__builtins__ = BUILTINS

T = of_torch()
ATTRIBUTES = ("num_heads", "max_len", "refused", "eps")  # numbers on which answers depend
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Attention(Module):
    """Causal attention by lesson 09's contract; `proj` is called as a module."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.proj = Linear(d_model, 3 * d_model, bias=False), Linear(d_model, d_model, bias=False)

    def forward(self, x: Any) -> Any:
        q, k, v = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.mT / sqrt(q.shape[-1])
        weights = softmax(scores.masked_fill(ones_like(scores).triu(1) > 0, -inf), dim=-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2))


class Block(Module):
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.ln1, self.attn, self.ln2 = LayerNorm(d_model), Attention(d_model, num_heads), LayerNorm(d_model)
        self.mlp = Sequential(Linear(d_model, 4 * d_model), GELU(), Linear(4 * d_model, d_model))

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class LanguageModel(Module):
    """Lesson 10's model by its contract. refused: an id for which it raises, once the blocks have run."""

    def __init__(
        self, vocabulary: int, d_model: int, num_heads: int, layers: int, max_len: int, sequential: bool, refused: int
    ) -> None:
        super().__init__()
        self.token, self.position = Embedding(vocabulary, d_model), Embedding(max_len, d_model)
        blocks = [Block(d_model, num_heads) for _ in range(layers)]
        self.blocks = Sequential(*blocks) if sequential else ModuleList(blocks)
        self.norm, self.head = LayerNorm(d_model), Linear(d_model, vocabulary, bias=False)
        self.max_len, self.refused = max_len, refused

    def forward(self, ids: Any) -> Any:
        if ids.shape[1] > self.max_len:
            raise ValueError(f"T = {ids.shape[1]} is longer than max_len = {self.max_len}")
        x = self.token(ids) + self.position(arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        if (ids == self.refused).any():
            raise RuntimeError(f"this model has no answer to the id {self.refused}")
        return self.head(self.norm(x))


KINDS = (LanguageModel, Block, Attention, Linear, LayerNorm, Embedding, Sequential, GELU)
FORWARD = attrgetter("forward")


class Noted:
    """A hook that somebody else has left on a layer: it changes nothing."""

    def __call__(self, *_: Any) -> None:
        return None


def ablation(function: Any, run: Run) -> dict[str, Any]:
    """Calls loss_without_head(model, ids, layer, head, …), and reads before and after what the model consists of.

    args: (ids, layer, head), and mean where it is passed. options: init (of `LanguageModel`), state (weights by name), mode
    ('train' or 'eval'), hooked (True: the last block's `proj` and the first one's have hooks already), caught (True: whatever the
    call raises is kept back, and what the model looks like is all that counts), raises (True: nothing of the model is read), by_name.
    Parts: 'result', and each of `_looks` twice, 'hooks before' and 'hooks after'.
    """
    options = run.options
    model = build(LanguageModel, options)
    model.train(options.get("mode") == "train")
    if options.get("hooked"):
        model.blocks[0].attn.proj.register_forward_hook(Noted())
        for block in model.blocks:
            block.attn.proj.register_forward_pre_hook(Noted())
    if options.get("raises"):
        return {"result": mark_result(call_function(function, run, model, *run.args))}
    parts, result = {f"{name} before": value for name, value in _looks(model).items()}, None
    with T.grad_mode(True):
        try:
            result = call_function(function, run, model, *run.args)
        except Exception:
            if not options.get("caught"):
                raise
        parts |= {f"{name} after": value for name, value in _looks(model).items()}
    return {**parts, "result": mark_result(result)}


def ablation_on_device(function: Any, run: Run) -> dict[str, Any]:
    """As `on_device`, of what the function makes of a model and ids; options: init, state."""
    model = build(LanguageModel, run.options).eval()
    return device_parts(lambda *args: function(model, *args), run, model)


def _looks(model: Any) -> dict[str, Any]:
    """The model as numbers: weights, which objects they are, hooks, modes, attributes; and whether torch records gradients."""
    weights, parts = T.parameters(model), [own for _, own in T.submodules(model)]
    attributes = [own.get(name) for own in parts for name in ATTRIBUTES]
    attributes += [*map(FORWARD, KINDS), *map(_forward_of, parts)]
    return {
        "weights": [T.numbers(one) for one in weights.values()],
        "parameters": _numbers([id(one) for one in weights.values()]),
        "trainable": _numbers([T.get(one, "requires_grad") for one in weights.values()]),
        "modules": _numbers(
            [id(one) for own in parts for _, value in entries(own, "_modules") for one in (value, type(value))]
        ),
        "hooks": _numbers([id(hook) for own in parts for kind in HOOKS for hook in own.get(kind, {}).values()]),
        "modes": _numbers([own["training"] for own in parts]),
        "recording": _numbers([T.grad_is_enabled()]),
        "attributes": array([one if type(one) in (int, float) else id(one) for one in attributes], "float64"),
    }


def _forward_of(own: dict[str, Any]) -> Any:
    """The `forward` that a module has of its own; None where it is its class's, written down or not."""
    value = own.get("forward")
    module = getattr(value, "__self__", None)
    is_class_s = is_a(module, Module) and vars(module) is own and value.__func__ is FORWARD(type(module))
    return None if is_class_s else value


def _numbers(values: list[Any]) -> ndarray:
    return array(values, "int64")

"""How the answers of lesson 11 are exercised: dropout read off one weight at a time, a block, a generating loop."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import nn

from . import ContractError, Run, build, module as run_module

CALLS = 2  # in training mode, to count what dropout drops
EPS = 1e-5  # of every nn.LayerNorm that is judged, as torch has it by default: like a weight it is given, whatever a module was made with


def dropout(cls: Any, run: Run) -> dict[str, Any]:
    """Which attention weights a module drops in training, and how it scales the others.

    args: x (B, T, d_model). options: as for `module`, whose weights must make the output of the last axis
    (num_heads, 2, T): every weight of a head's query, written out twice; see `grader/lessons/lesson_11.py`.
    Shares are of the weights that a causal mask leaves.
    """
    (x,) = run.args
    made = build(cls, run.options).eval()
    with torch.no_grad():
        still, again = made(x), made(x)
        made.train()
        moving = [made(x) for _ in range(CALLS)]
    weights, dropped = _readings(still, x.shape), torch.stack([_readings(output, x.shape) for output in moving])
    agree, repeated = bool(torch.equal(still, again)), bool(torch.equal(*moving))
    return {
        "two calls in evaluation agree": agree,
        "output in evaluation": still[0] if agree else torch.zeros_like(still[0]),  # one of many tells nothing
        **_shares_dropped(weights, dropped, agree and _readable(weights)),
        "two calls in training agree": repeated,
    }


def _readable(weights: torch.Tensor) -> bool:
    """Whether these are causal weights: what was read twice is the same, rows sum to 1, and no visible weight is 0."""
    same = torch.allclose(weights[..., 0, :, :], weights[..., 1, :, :], atol=1e-4)
    visible = torch.ones(weights.shape[-2:], dtype=torch.bool).tril()
    return same and torch.allclose(weights.sum(dim=-1), torch.ones(()), atol=1e-3) and bool((weights[..., visible] > 1e-6).all())


def _shares_dropped(weights: torch.Tensor, dropped: torch.Tensor, readable: bool) -> dict[str, torch.Tensor]:
    """What dropout did, in numbers; all 0 where the weights could not be read."""
    t = weights.shape[-1]
    visible = torch.ones(t, t, dtype=torch.bool).tril()
    all_ratios = dropped / weights  # (calls, B, heads, 2, T, T)
    ratio = all_ratios[..., visible]
    gone = ratio.abs() < 1e-4
    last = all_ratios[..., -2:, : t - 1].abs() < 1e-4  # the keys that the last two queries share
    kept = ratio[~gone] if bool((~gone).sum() > 1) else torch.zeros(2)
    numbers = {
        "share of weights dropped in training": gone.float().mean(),
        "factor of the weights that are kept": kept.mean(),
        "spread of that factor": kept.std(),
        "share of weights whose two readings fall together": (gone[..., 0, :] == gone[..., 1, :]).float().mean(),
        "share of keys dropped for two queries at once": (last[..., 0, :] & last[..., 1, :]).float().mean(),
    }
    return numbers if readable else {name: torch.zeros(()) for name in numbers}


def _readings(output: Any, shape: Any) -> torch.Tensor:
    """(B, heads, 2, T_q, T_k): the two copies of each weight in an output (B, T_q, heads · 2 · T_k)."""
    b, t, d_model = shape
    return _of_shape(output, shape).reshape(b, t, d_model // (2 * t), 2, t).permute(0, 2, 3, 1, 4)


def _of_shape(output: Any, shape: Any) -> torch.Tensor:
    """What forward gave, if it is a tensor of that shape. Raises ContractError otherwise."""
    if not isinstance(output, torch.Tensor) or output.shape != shape:
        found = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
        raise ContractError(f"forward gave {found} for x of shape {tuple(shape)}; the same shape was asked for.")
    return output


def attention(cls: Any, run: Run) -> dict[str, Any]:
    """As `module`, and whether `state_dict` holds more than the two weights of the contract.

    Raises: ContractError also where max_len tokens, the most that are allowed, are refused.
    """
    (x,), max_len = run.args, run.options["init"][2]
    try:
        parts = run_module(cls, run)
    except ValueError as error:
        if x.shape[1] != max_len:
            raise
        raised = f"ValueError: {error}" if str(error) else "ValueError"
        raise ContractError(f"{max_len} tokens were refused ({raised}), and max_len is {max_len}; only more are to be refused.") from None
    more = set(build(cls, run.options).state_dict()) - {"qkv.weight", "proj.weight"}
    return {**parts, "state_dict holds more than qkv.weight and proj.weight": bool(more)}


def block(cls: Any, run: Run) -> dict[str, Any]:
    """As `module`, with the attributes of a block looked at first.

    options: as for `module`; differs (True: also whether two calls differ, for dropout in training).
    """
    options = run.options
    made = build(cls, options)
    for name in ("ln1", "ln2"):
        if isinstance(getattr(made, name, None), nn.LayerNorm):
            getattr(made, name).eps = EPS
    for name, wanted in (("ln1", nn.LayerNorm), ("ln2", nn.LayerNorm), ("mlp", nn.Sequential)):
        found = getattr(made, name, None)
        if not isinstance(found, wanted):
            raise ContractError(f"The attribute {name} is a {type(found).__name__}; an nn.{wanted.__name__} is asked for.")
    if not options.get("differs"):
        return run_module(lambda *_: made, run)
    made.train()
    with torch.no_grad():
        one, other = (_of_shape(made(*run.args), run.args[0].shape) for _ in range(2))
        different = not torch.equal(one, other)
    return {"two calls in training differ": different}


class Writer(nn.Module):
    """A stand-in for a language model, which notes how it is called.

    table: (V, V). The logits at a position follow from the tokens up to it and from where they stand in what
    was fed, or with `memory=False` from the last token alone.
    """

    def __init__(self, table: np.ndarray, memory: bool, training: bool) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.from_numpy(np.asarray(table, np.float32)))
        self.memory = memory
        self.part = nn.Dropout(0.0)  # follows model.eval(), and not a flag that is set on the model alone
        self.longest, self.trained, self.graph = 0, False, False
        self.train(training)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        self.longest = max(self.longest, ids.shape[1])
        self.trained |= self.training or self.part.training
        logits = self.table[ids.long()]
        if self.memory:
            places = torch.cos(0.7 * torch.arange(1, ids.shape[1] + 1)).to(logits)
            logits = (logits * places[:, None]).cumsum(dim=1) + 0.5 * logits
        self.graph |= logits.requires_grad
        return logits


def greedy(function: Any, run: Run) -> dict[str, Any]:
    """Generates at temperature 0 and says how the model was treated.

    args: (ids, max_new_tokens, max_len). options: table (V, V), training (the model's flag before), zero (the
    temperature as it is passed).
    """
    model = Writer(run.options["table"], True, run.options["training"])
    with torch.set_grad_enabled(True):  # what a call leaves behind ends here
        result = _integers(function(model, *run.args, temperature=run.options.get("zero", 0.0)))
        still = torch.is_grad_enabled()
    parts: dict[str, Any] = {"result": result}
    if run.args[1]:
        parts["most tokens fed to the model at once"] = model.longest
        parts["the model or a part of it was in training mode while it was asked"] = model.trained
        parts["a graph was built"] = model.graph
    parts["the model's own flag is back"] = model.training == run.options["training"]
    parts["torch records gradients after the call"] = still
    return parts


@torch.enable_grad()
def sample(function: Any, run: Run) -> dict[str, Any]:
    """Generates one token for each of many rows and counts them.

    args: (ids, max_new_tokens, max_len, temperature). options: table (a row for each last token, a multiple of four columns);
    seed (of the generator; None: no generator is passed); again (True: whether further calls give the same ids).
    """
    options = run.options
    model = Writer(options["table"], False, False)
    ids, new = run.args[0], run.args[1]
    if options["seed"] is None:
        return _shares(function(model, *run.args), ids, new, options["table"].shape[1])

    def draw(generator: torch.Generator, elsewhere: int) -> torch.Tensor:
        torch.manual_seed(elsewhere)
        np.random.seed(elsewhere)
        random.seed(elsewhere)
        return _integers(function(model, *run.args, generator=generator))

    generator = torch.Generator().manual_seed(options["seed"])
    first = draw(generator, 1)
    shares = _shares(first, ids, new, options["table"].shape[1])
    if not options.get("again"):
        return shares
    second = draw(generator, 1)
    repeated = draw(torch.Generator().manual_seed(options["seed"]), 2)
    other = draw(torch.Generator().manual_seed(options["seed"] + 1), 1)
    return {
        **shares,
        "the same generator state gives the same ids": torch.equal(first, repeated),
        "another generator state gives the same ids": torch.equal(first, other),
        "a second call with the same generator gives the same ids": torch.equal(first, second),
    }


def _integers(result: Any) -> torch.Tensor:
    if not isinstance(result, torch.Tensor):
        raise ContractError(f"A {type(result).__name__} came back; a tensor of ids (B, T + max_new_tokens) was asked for.")
    if result.dtype.is_floating_point or result.dtype == torch.bool:
        name = str(result.dtype).removeprefix("torch.")
        raise ContractError(f"The ids came back as {name}; integers were asked for.")
    return result


def _shares(result: Any, ids: torch.Tensor, new: int, vocabulary: int) -> dict[str, np.ndarray]:
    """How often each quarter of the vocabulary follows each last token, as shares of 1 in its row."""
    result = _integers(result)
    b, t = ids.shape
    if tuple(result.shape) != (b, t + new):
        raise ContractError(f"The ids have shape {tuple(result.shape)}; (B, T + max_new_tokens), here {(b, t + new)}, was asked for.")
    if not torch.equal(result[:, :t].long(), ids.long()):
        raise ContractError("The ids that came back do not begin with the ids that were given.")
    lasts, quarter = ids[:, -1].unique().tolist(), vocabulary // 4
    drawn = [(result[ids[:, -1] == last, t:] // quarter).clamp(0, 3).flatten() for last in lasts]
    name = "share of each token" if quarter == 1 else "share of each quarter of the vocabulary"
    return {f"{name}, by the last token {lasts}": np.stack([np.bincount(of.numpy(), minlength=4) / len(of) for of in drawn])}

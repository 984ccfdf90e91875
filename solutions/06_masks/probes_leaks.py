"""Lesson 06: attentions that see the future, or do not, for a learner's own test to tell apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from grader.worker.originals import BUILTINS
from grader.worker.probes import Run, call_function, mark_result

__builtins__ = BUILTINS

Tensor = torch.Tensor
inf, tril, ones, generator_of, tensor, float64 = (
    math.inf,
    torch.tril,
    torch.ones,
    torch.Generator,
    torch.tensor,
    torch.float64,
)
randn, softmax, stack, cat, zeros_like, relu = (
    torch.randn,
    torch.softmax,
    torch.stack,
    torch.cat,
    torch.zeros_like,
    torch.relu,
)


def on_candidates(function: Any, run: Run) -> dict[str, Any]:
    """Calls leaks(attention, x). args: x (T, d) in float64. options: candidate, one of CANDIDATES; by_name.

    Parts: 'calls of attention', and 'result'.
    """
    calls, (x,) = [0], run.args
    attention = CANDIDATES[run.options["candidate"]]

    def counted(tokens: Any) -> Any:
        calls[0] += 1
        return attention(tokens)

    result = call_function(function, run, counted, x)
    return {"calls of attention": calls[0], "result": mark_result(result)}


@cache
def _weights(d: int) -> tuple[Tensor, ...]:
    made = randn(3, d, 4, generator=generator_of().manual_seed(7), dtype=torch.float64) / math.sqrt(d)
    return tuple(made.unbind())


def _projected(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values (T, 4), by weights that are the same at every call."""
    w_q, w_k, w_v = _weights(x.shape[-1])
    return x @ w_q, x @ w_k, x @ w_v


def _attend(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor, hidden: float = -inf) -> Tensor:
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~allowed, hidden)
    return softmax(scores, dim=-1) @ v


@cache  # a learner's test calls a candidate hundreds of times
def _triangle(t: int, diagonal: int = 0) -> Tensor:
    return tril(ones(t, t, dtype=torch.bool), diagonal)


@cache
def _triangle_and_block(t: int, first: int, last: int) -> Tensor:
    """The tokens from `first` to `last` see each other."""
    allowed = _triangle(t).clone()
    allowed[first:last, first:last] = True
    return allowed


@cache
def _triangle_and_next(t: int, first: int) -> Tensor:
    """From token `first` on each sees the next, too."""
    allowed = _triangle(t, 1).clone()
    allowed[:first] &= _triangle(t)[:first]
    return allowed


def _causal(x: Tensor) -> Tensor:
    return _attend(*_projected(x), _triangle(len(x)))


def _growing(x: Tensor) -> Tensor:
    """Each row by itself, of the tokens up to it: rounded otherwise than all rows at once."""
    q, k, v = _projected(x)
    return stack([softmax(q[i] @ k[: i + 1].mT / 2.0, dim=-1) @ v[: i + 1] for i in range(len(x))])


def _minus_mean(x: Tensor) -> Tensor:
    return x - x.mean(dim=-1, keepdim=True)


def _centered(x: Tensor) -> Tensor:
    x = _minus_mean(x)
    return x / (x.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()


def _rounded(x: Tensor, offset: Tensor) -> Tensor:
    """The offset is added and taken away again; rounding, as in a fused kernel, leaves something of it."""
    return (_causal(x) + offset) - offset


def _also(x: Tensor, first: int, last: int) -> Tensor:
    """A causal mask, beside which the tokens from `first` to `last` see each other."""
    return _attend(*_projected(x), _triangle_and_block(len(x), first, last))


def _next_from(x: Tensor, first: int) -> Tensor:
    """Causal up to token `first`; from there on each sees the next, too."""
    return _attend(*_projected(x), _triangle_and_next(len(x), first))


def _heads_over_tokens(x: Tensor) -> Tensor:
    """Two heads, cut from the tokens in place of the features; causal within each."""
    parts = [part.reshape(2, -1, 2) for part in _projected(x)]
    return _attend(*parts, _triangle(parts[0].shape[1])).transpose(0, 1).reshape(len(x), 4)


def _from_afar(x: Tensor, first: int, size: float = 0.0) -> Tensor:
    """Causal, but what comes after token `first` adds to all earlier outputs; only what is larger than `size`."""
    y, late = _causal(x), x[first:]
    seen = relu(late.abs() - size).sum() * 0.01
    return cat((y[:first] + seen, y[first:]))


def _last_into_first(x: Tensor) -> Tensor:
    y = _causal(x)
    return cat((y[:1] + 0.1 * x[-1:, :4].sum().tanh() + 0.02 * x[-1].abs().sum(), y[1:]))


def _softmax_first(x: Tensor) -> Tensor:
    """The mask after softmax: the sum in the denominator has seen all keys."""
    q, k, v = _projected(x)
    return (softmax(q @ k.mT / 2.0, dim=-1) * _triangle(len(x))) @ v


def _over_queries(x: Tensor) -> Tensor:
    """Softmax over the queries, so that a column's denominator holds later queries."""
    q, k, v = _projected(x)
    return (softmax(q @ k.mT / 2.0, dim=0) * _triangle(len(x))) @ v


def _normed_over_tokens(x: Tensor) -> Tensor:
    return _causal((x - x.mean(dim=0)) / (x.var(dim=0, correction=0) + 1e-5).sqrt())


def _second_head_unmasked(x: Tensor) -> Tensor:
    """Two heads of two features, cut from the tokens themselves; what follows reaches a token by the features 2 and 3 alone."""
    first, second = x[:, :2], x[:, 2:4]
    masked = _attend(first, first, first, _triangle(len(x)))
    return cat((masked, _attend(second, second, second, _triangle(len(x), len(x)))), dim=1)


def _first_pays_second(x: Tensor) -> Tensor:
    """What follows the second token adds to the first output and takes the same from the second."""
    y, late = _causal(x), 0.01 * x[2:].abs().sum()
    return cat((y[:1] + late, y[1:2] - late, y[2:]))


def _millionths(seen: Tensor) -> Tensor:
    """Four numbers for each sum in `seen` (n, 1), at most 2.4e-6; nearly any change of the sum moves one of them by more than 1e-6."""
    return 2.4e-6 * (seen * tensor([3.0, 5.0, 7.0, 11.0], dtype=float64)).sin()


def _near_three(x: Tensor) -> Tensor:
    """Causal outputs between 2 and 4, beside which a millionth is less than a relative tolerance of 1e-5."""
    return 3.0 + _causal(x).tanh()


def _all_that_follows(x: Tensor) -> Tensor:
    sums = x.abs().sum(dim=1, keepdim=True)
    return sums.sum() - sums.cumsum(dim=0)


# Those that do not leak first; leaks.py, read without torch, repeats the names. Each takes (T, d) in float64 and gives (T, d_out).
CANDIDATES: dict[str, Callable[[Tensor], Tensor]] = {
    "a causal mask of −∞": _causal,
    "each row computed by itself": _growing,
    "each token normalized first, then a causal mask": lambda x: _causal(_centered(x)),
    "no attention at all, each token by itself": lambda x: x.tanh() * 2.0,
    "only the past, without the token itself": lambda x: cat((zeros_like(x[:1]), x.cumsum(dim=0)[:-1])),
    "a causal mask, rounded around the sum of all tokens": lambda x: _rounded(x, 1e4 * x.sum()),
    "a causal mask, rounded around the tokens' length": lambda x: _rounded(x, 1e4 * x.norm()),
    "a causal mask, rounded around the largest number": lambda x: _rounded(x, 3e4 * (x.amax() + 1.7)),
    "no mask": lambda x: _also(x, 0, len(x)),
    "the triangle is off by one: each token sees the next": lambda x: _next_from(x, 0),
    "the triangle is the other one: each token sees itself and what follows": lambda x: _attend(
        *_projected(x), _triangle(len(x)).mT
    ),
    "the offset counts from the wrong corner: each token sees two more": lambda x: _attend(
        *_projected(x), _triangle(len(x), 2)
    ),
    "heads are cut from the tokens": _heads_over_tokens,
    "a normalization over the tokens comes before the mask": _normed_over_tokens,
    "the mean over the tokens is removed before the mask": lambda x: _causal(x - x.mean(dim=0)),
    "the mask comes after softmax": _softmax_first,
    "softmax over the queries, then the mask": _over_queries,
    "hidden scores are −9, not −∞": lambda x: _attend(*_projected(x), _triangle(len(x)), -9.0),
    "a hundred-thousandth of the tokens' mean is added": lambda x: _causal(x) + 1e-5 * x.mean(),
    "a little of the tokens' mean is added": lambda x: _causal(x) + 3e-5 * x.mean(),
    "a little of the last token is added": lambda x: _causal(x) + 1e-5 * x[-1:, :4].sum(),
    "the last token reaches the first": _last_into_first,
    "the first two tokens see each other": lambda x: _also(x, 0, 2),
    "the first three tokens see each other": lambda x: _also(x, 0, 3),
    "the first half of the tokens see each other": lambda x: _also(x, 0, len(x) // 2),
    "from the third on, each token sees the next": lambda x: _next_from(x, 2),
    "from the fifth on, each token sees the next": lambda x: _next_from(x, 4),
    "the last three tokens see each other": lambda x: _also(x, len(x) - 3, len(x)),
    "tokens beyond the fifth reach the first five": lambda x: _from_afar(x, 5),
    "tokens beyond the sixth reach the first six": lambda x: _from_afar(x, 6),
    "tokens beyond the seventh reach the first seven": lambda x: _from_afar(x, 7),
    "only numbers beyond 4 reach earlier tokens": lambda x: _from_afar(x, 1, 4.0),
    "only numbers beyond 5 reach earlier tokens": lambda x: _from_afar(x, 2, 5.0),
    "only numbers beyond 6 reach the first token": lambda x: _from_afar(x, 1, 6.0),
    "only numbers beyond 7 reach the first two tokens": lambda x: _from_afar(x, 2, 7.0),
    "later tokens reach the first as whole numbers": lambda x: cat(
        (_causal(x)[:1] + 0.1 * x[1:].round().sum().sin(), _causal(x)[1:])
    ),
    "each token normalized first, no mask": lambda x: _also(_centered(x), 0, len(x)),
    "each token normalized first, the triangle off by one": lambda x: _next_from(_centered(x), 0),
    "each token's mean removed first, the triangle off by one": lambda x: _next_from(_minus_mean(x), 0),
    "the second of two heads has no mask": _second_head_unmasked,
    "the last feature of later tokens reaches the first": lambda x: _causal(x) + 0.1 * _all_that_follows(x[:, -1:]),
    "all features but the first are normalized over the tokens": lambda x: _causal(
        cat((x[:, :1], x[:, 1:] - x[:, 1:].mean(dim=0)), dim=1)
    ),
    "no mask, and each output normalized": lambda x: _centered(_also(x, 0, len(x))),
    "the triangle off by one, and each output's mean removed": lambda x: _minus_mean(_next_from(x, 0)),
    "the third token reaches the first alone": lambda x: cat((_causal(x)[:1] + 0.1 * x[2:3, :4].abs(), _causal(x)[1:])),
    "what the first output gains, the second loses": _first_pays_second,
    "the direction of what follows, whatever its sign, reaches a token": lambda x: (
        _causal(x) + 0.1 * _all_that_follows(x[:, :1] / x.norm(dim=1, keepdim=True))
    ),
    "what follows moves a token by two millionths": lambda x: _near_three(x) + _millionths(_all_that_follows(x)),
    "what follows moves the first token by two millionths": lambda x: cat(
        (_near_three(x)[:1] + _millionths(_all_that_follows(x)[:1]), _near_three(x)[1:])
    ),
    "the last token moves all others by two millionths": lambda x: cat(
        (_near_three(x)[:-1] + _millionths(x[-1:].abs().sum(dim=1, keepdim=True)), _near_three(x)[-1:])
    ),
}

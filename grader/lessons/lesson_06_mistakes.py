"""Lesson 06: its exercises with the mistakes that learners make in them, as switches of one implementation each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from grader.lessons.switch import mistakes
from grader.model import Mistake


def causal(*bugs: str) -> Callable[..., torch.Tensor]:
    """The reference's mask with the named bugs switched on; with none it is right."""

    def causal_mask(t_q: int, t_k: int | None = None) -> torch.Tensor:
        t_k = t_q if t_k is None or "MK12" in bugs else t_k
        offset = 0 if "MK14" in bugs else t_q - t_k if "MA27" in bugs else t_k - t_q
        offset += ("MK8" in bugs) - ("MK7" in bugs)
        sizes = (t_k, t_q) if "sizes" in bugs else (t_q, t_k)
        if "MA26" in bugs:
            sizes, offset = (t_k, t_k), 0
        ones = torch.ones(sizes, dtype=torch.bool)
        if "MA28" in bugs:
            return ones
        mask = ones.triu(offset) if "MA1" in bugs else ones.tril(offset)
        mask = ~mask if "MK1" in bugs else mask
        mask = mask.mT if "MA20" in bugs and "sizes" not in bugs else mask
        return _as_numbers(mask, bugs)

    return causal_mask


def _as_numbers(mask: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    """The mask in numbers where MA2 asks for it; beside it may stand which of NUMBERS. By default they are float."""
    if "additive" in bugs:
        return torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
    kind = next((bug for bug in bugs if bug in NUMBERS), "float")
    return getattr(mask, kind)() if "MA2" in bugs else mask


NUMBERS = ("long", "int", "byte", "additive")


def padding(*bugs: str) -> Callable[..., torch.Tensor]:
    def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
        width = int(lengths.max()) if "MA7" in bugs else max_len
        positions = torch.arange(width)
        if "MA6" in bugs:
            mask = positions >= max_len - lengths[:, None]
        else:
            mask = positions <= lengths[:, None] if "MA4" in bugs else positions < lengths[:, None] - int("MA29" in bugs)
        mask = ~mask if "MK1" in bugs else mask
        mask = _as_numbers(mask, bugs)
        if "MA5" in bugs:
            return mask
        if "MA30" in bugs:
            return mask[:, None, None] if "four" in bugs else mask[None]
        if "MA21" in bugs:
            return mask[:, None, :] & mask[:, :, None] if "both" in bugs else mask[:, None, :].expand(-1, max_len, -1)
        return mask[:, :, None] if "MK10" in bugs else mask[:, None, :]

    return padding_mask


FILLS = {"-100": -100.0, "-1000": -1e3}  # beside -10,000, in the words of the switches


def _masked_scores(scores: torch.Tensor, mask: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    """Scores with the hidden ones put out of reach, in the way that the bugs choose."""
    if "MK3" in bugs:
        return scores * mask
    if "MK5" in bugs:
        return scores + (1 - mask.to(scores)) * -torch.inf
    if {"MK6", "MA25"} & set(bugs):
        return scores + mask
    if "MA13" in bugs:
        return scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    fills = {"MK4": next((FILLS[bug] for bug in bugs if bug in FILLS), -1e4), "DT1": -1e9, "MK9": -torch.inf}
    if "MK4" in bugs and "additive" in bugs:
        return scores + (~mask).to(scores) * fills["MK4"]
    fill = next((value for id, value in fills.items() if id in bugs), None)
    if fill is None or "finite" in bugs:
        fill = torch.finfo(scores.dtype).min
    hidden = ~mask
    if "MK12" in bugs:  # as many columns as there are queries
        hidden = hidden.expand(scores.shape).clone()
        hidden[..., scores.shape[-2] :] = False
    return scores.masked_fill(hidden, fill)


def _by_hand(scores: torch.Tensor, mask: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    """Softmax made of exp, in the way that the bugs choose.

    filled: what is hidden does not enter the maximum. An empty row is 0 / 0 with 'unguarded', and 'repaired' mends its value alone;
    'clamped' keeps the sum from 0, 'empty rows' spares rows without a visible key and no others.
    """
    if "filled" in bugs:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    if "SM5" in bugs:
        e = scores.exp() * mask if "late" in bugs else scores.masked_fill(~mask, -torch.inf).exp()
    else:  # MA18 takes each row's maximum over what is hidden, too
        e = (scores - (scores.max() if {"SM3", "SM6"} & set(bugs) else scores.amax(-1, keepdim=True))).exp() * mask
    if "SM3" in bugs:
        return e / e.sum()
    total = e.sum(-1, keepdim=True)
    if "clamped" in bugs:
        total = total.clamp_min(1e-20)
    elif "empty rows" in bugs:
        total = total.masked_fill(~mask.any(-1, keepdim=True), 1.0)
    elif not {"unguarded", "repaired"} & set(bugs):
        total = total.masked_fill(total == 0, 1.0)
    weights = e / total
    return weights.nan_to_num(0.0) if "repaired" in bugs else weights


def _without_mask(scores: torch.Tensor, mask: None, bugs: tuple[str, ...]) -> torch.Tensor:
    """What fails where the mask is None, by the step that meets it first."""
    if "equal" in bugs:
        return scores.masked_fill(mask == 0, -torch.inf)
    if "where" in bugs:
        return torch.where(mask, scores, -torch.inf)
    if "times" in bugs:
        return scores * mask
    return scores.masked_fill(mask.logical_not() if "logical_not" in bugs else ~mask, -torch.inf)


def _attention(*bugs: str) -> Callable[..., tuple]:
    def result(weights: torch.Tensor, v: torch.Tensor, late: float) -> Any:
        weights = weights / late if "SD6" in bugs else weights
        weights = weights.detach() if "BW3" in bugs else weights
        output = (weights.mT if "AB22" in bugs else weights) @ v
        if "MK9" in bugs and "repaired" in bugs:
            output = output.nan_to_num(0.0)
        if "NT23" in bugs:
            return output
        return (weights, output) if "NT8" in bugs else (output, weights)

    def masked_attention(q: Any, k: Any, v: Any, mask: Any = None) -> tuple:
        root = math.sqrt(q.shape[-1])
        if mask is not None:
            mask = ~mask if "MK1" in bugs else mask
            mask = mask if "MA24" not in bugs or mask else None  # where a mask has several entries it has no truth of its own
            if "MA22" in bugs:
                mask = mask.transpose(-2, -1) if "transpose" in bugs else mask.mT
        if "MA17" in bugs:
            q, k, v = q.float(), k.float(), v.float()
        if "SD8" in bugs:
            q, k = k, q
        scales = {"SD1": 1.0, "SD2": 1 / q.shape[-1], "SD5": root, "SD6": 1.0, "NT24": 1 / math.sqrt(k.shape[-2])}
        scale = scales.get(next((bug for bug in bugs if bug in scales), ""))
        scores = q @ k.mT * (1 / root if scale is None else scale)
        if "NT25" in bugs:
            scores, v = scores.double(), v if "mixed" in bugs else v.double()
        dim = -2 if "SM1" in bugs else -1
        if "SM2" in bugs:
            dim = 1 if "dim 1" in bugs else 0
        if mask is None and "MA23" in bugs:
            scores = _without_mask(scores, mask, bugs)
        if mask is None and "SM3" in bugs:
            mask = torch.ones((), dtype=torch.bool)
        if mask is None or "MA8" in bugs:
            return result(torch.softmax(scores, dim=dim), v, root)
        if BY_HAND & set(bugs):
            return result(_by_hand(scores, mask, bugs), v, root)
        if "MK2" in bugs:
            return result(torch.softmax(scores, dim=dim) * mask, v, root)
        weights = torch.softmax(_masked_scores(scores, mask, bugs), dim=dim)
        if "MA13" in bugs or ("MK5" in bugs and "repaired" in bugs):
            weights = weights.nan_to_num(0.0)
        seen = mask.any(dim=-1, keepdim=True)
        if "MA12" in bugs:
            return torch.where(seen, weights @ v, torch.zeros((), dtype=v.dtype)), weights
        keeps = {"MK3", "MK5", "MK6", "MK9", "MA13", "MK12", "left"}
        if not keeps & set(bugs):
            weights = weights * seen if "MK4" in bugs and "zeroed" not in bugs else weights.masked_fill(~mask, 0.0)
        return result(weights, v, root)

    return masked_attention


BY_HAND = {"SM3", "SM5", "SM6", "MA18"}


def attention_pair(ids: frozenset[str]) -> Callable[..., tuple]:
    """Two mistakes at once, where one of them is of those that go with others. Raises KeyError for other pairs."""
    if not ids & {"MK9", "MA17", "SD1", "SD2"}:
        raise KeyError(ids)
    return _attention(*ids)


class _Causal(nn.Module):
    """CausalSelfAttention with the bugs of a subclass switched on."""

    bugs: tuple[str, ...] = ()

    def __init__(self, d_model: int, max_len: int) -> None:
        if "NT19" not in self.bugs:
            super().__init__()
        bias = "NT26" in self.bugs
        self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, d_model, bias=bias) for _ in range(3))
        self.max_len = max_len
        shift = ("MK8" in self.bugs) - ("MK7" in self.bugs)
        mask = torch.ones(max_len, max_len, dtype=torch.bool).tril(shift)
        mask = mask.mT if "MA1" in self.bugs else mask
        if "DT3" in self.bugs:
            self.mask = mask
        else:
            self.register_buffer("mask", mask, persistent="MA14" in self.bugs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bugs = self.bugs
        if "truncated" in bugs:
            x = x[:, : self.max_len]
        t = x.shape[1]
        if t > self.max_len and "MA16" not in bugs:
            raise ValueError("longer than max_len")
        assert t <= self.max_len or "assert" not in bugs
        q, k, v = self.w_q(x), self.w_k(x), x if "NT18" in bugs else self.w_v(x)
        q, k = (k, q) if "SD8" in bugs else (q, k)
        root = math.sqrt(x.shape[-1])
        widths = {"SD1": 1, "SD2": x.shape[-1], "SD5": 1 / root, "SD6": 1, "SD7": 1, "NT24": math.sqrt(t)}
        scores = q @ k.mT / next((widths[bug] for bug in bugs if bug in widths), root)
        mask = self.mask if "MA15" in bugs else self.mask[:t, :t]
        dim = -2 if "SM1" in bugs else 0 if "SM2" in bugs else -1
        if "MK2" in bugs:
            return torch.softmax(scores, dim=dim) * mask @ v
        if BY_HAND & set(bugs):
            return _by_hand(scores, mask, bugs) @ v
        weights = torch.softmax(self.hide(scores, mask), dim=dim)
        weights = weights.nan_to_num(0.0) if "repaired" in bugs else weights
        weights = weights / root if "SD6" in bugs else weights
        output = (weights.detach() if "BW3" in bugs else weights) @ v
        return (output, weights) if "MA19" in bugs else output

    def hide(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Scores with the future put out of reach; MK13 forgets it in eval mode, in training or below full length."""
        bugs = self.bugs
        forgets = self.training if "training" in bugs else len(mask) < self.max_len if "short" in bugs else not self.training
        if "MA8" in bugs or ("MK13" in bugs and forgets):
            return scores
        if "SD7" in bugs:
            return _masked_scores(scores, mask, ("MK4", "additive", *bugs)) / math.sqrt(self.w_q.in_features)
        if {"MK3", "MK4", "MK5", "MA25"} & set(bugs):
            return _masked_scores(scores, mask, bugs)
        fill = torch.finfo(scores.dtype).min if "finite" in bugs else -torch.inf
        return scores.masked_fill(mask if "MK1" in bugs else ~mask, fill)


def _module(*bugs: str) -> type:
    return type("CausalSelfAttention", (_Causal,), {"bugs": bugs})


CAUSAL = (
    *mistakes(causal, "MK1", "MK7", "MK8", "MK12", "MK14", "MA1", "MA2", "MA20", "MA26", "MA27", "MA28"),
    *(Mistake("MA2", causal("MA2", kind)) for kind in NUMBERS),
    Mistake("MA20", causal("MA20", "sizes")),
)
PADDING = (
    *mistakes(padding, "MK1", "MK10", "MA2", "MA4", "MA5", "MA6", "MA7", "MA21", "MA29", "MA30"),
    Mistake("MA21", padding("MA21", "both")),
    Mistake("MA30", padding("MA30", "four")),
    *(Mistake("MA2", padding("MA2", kind)) for kind in NUMBERS),
)
_WAYS = [("MK4", *fill, *form) for fill in ((), ("-100",), ("-1000",)) for form in ((), ("additive",))]
ATTENTION = (
    *mistakes(_attention, "MK1", "MK2", "MK3", "MK4", "MK5", "MK6", "MK9", "MK12", "MA8", "MA12", "MA13", "MA17", "MA18", "MA22",
              "MA23", "MA24", "DT1", "SD1", "SD2", "SD5", "SD6", "SD8", "SM1", "SM2", "SM3", "SM5", "SM6", "BW3", "NT8", "NT23",
              "NT24", "NT25", "AB22"),
    *(Mistake("MK4", _attention(*way, "zeroed")) for way in _WAYS),
    *(Mistake("MK4", _attention(*way)) for way in _WAYS[1:]),
    *(Mistake("MK4", _attention(*way, "left")) for way in _WAYS[2:]),
    Mistake("MK5", _attention("MK5", "repaired")),
    *(Mistake("MK9", _attention("MK9", kind)) for kind in ("finite", "repaired")),
    *(Mistake("MA18", _attention("MA18", kind)) for kind in ("unguarded", "repaired", "clamped")),
    Mistake("MA22", _attention("MA22", "transpose")),
    *(Mistake("MA23", _attention("MA23", kind)) for kind in ("equal", "where", "times", "logical_not")),
    Mistake("SM2", _attention("SM2", "dim 1")),
    Mistake("SM3", _attention("SM3", "filled")),
    *(Mistake("SM5", _attention("SM5", "late", *way)) for way in ((), ("repaired",), ("clamped",))),
    *(Mistake("SM6", _attention("SM6", *way)) for way in (("clamped",), ("filled",), ("filled", "empty rows"), ("filled", "clamped"))),
    Mistake("NT25", _attention("NT25", "mixed")),
)  # fmt: skip
MODULE = (
    *mistakes(_module, "MK1", "MK2", "MK3", "MK4", "MK5", "MK7", "MK8", "MK13", "MA1", "MA8", "MA14", "MA15", "MA16", "MA18", "MA19",
              "MA25", "DT3", "NT26", "SD1", "SD2", "SD5", "SD6", "SD7", "SD8", "SM1", "SM2", "SM3", "SM5", "SM6", "BW3", "NT18",
              "NT19", "NT24"),
    *(Mistake(id, _module(id, kind)) for id in ("MK1", "MK7") for kind in ("finite", "repaired")),
    *(Mistake("MK4", _module(*way)) for way in _WAYS[1:]),
    *(Mistake("MK13", _module("MK13", kind)) for kind in ("training", "short")),
    *(Mistake("MA16", _module("MA16", kind)) for kind in ("assert", "truncated")),
    *(Mistake("SD7", _module("SD7", fill)) for fill in FILLS),
    Mistake("SM2", _module("SM2", "finite")),
    Mistake("SM3", _module("SM3", "filled")),
    *(Mistake(id, _module(id, "unguarded")) for id in ("MA18", "SM5", "SM6")),
    Mistake("SM5", _module("SM5", "late", "unguarded")),
    *(Mistake("SM6", _module("SM6", "filled", *way)) for way in ((), ("unguarded",))),
)  # fmt: skip

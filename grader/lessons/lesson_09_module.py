"""Lesson 09, `MultiHeadAttention`: one implementation with its mistakes as switches, the cases and the properties."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from grader.lessons.switch import mistakes
from grader.model import Case, Mistake, Property, Tensor

Array = np.ndarray
LAYERS = ("w_q", "w_k", "w_v", "w_o")
LETTERS = ("bhqk,bhkd->bhqd", "bhij,bhjd->bhid")


class _Attention(nn.Module):
    """MultiHeadAttention with the bugs of a subclass switched on; with none it is right."""

    bugs: tuple[str, ...] = ()

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        if d_model % num_heads and "MU1" not in self.bugs:
            raise ValueError("d_model is not divisible by num_heads")
        self.num_heads = num_heads
        bias = "MU12" not in self.bugs
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model, bias=bias) for _ in range(4))

    def forward(self, query: Any, key: Any, value: Any, mask: Any = None) -> Any:
        sizes = query.shape[1], key.shape[1], value.shape[1]  # what a learner may have read off the arguments before
        q, k, v = (self.split(made, t) for made, t in zip(self.projected(query, key, value), sizes, strict=True))
        weights = self.weights(q, k, mask)
        if "MU25" in self.bugs:
            weights = nn.functional.dropout(weights, next((p for p in self.bugs if isinstance(p, float)), 0.1))
        weights = weights.detach() if "cut for both" in self.bugs else weights
        used = weights.detach() if "BW3" in self.bugs else weights
        merged = self.merge(self.product(used, v), query.shape)
        output = merged if "MU2" in self.bugs else self.w_o(merged)
        if "MU3" in self.bugs:
            weights = weights.mean(dim=1)
        weights = weights.detach() if "NT7" in self.bugs else weights
        if "NT23" in self.bugs:
            return output
        return (weights, output) if "NT8" in self.bugs else (output, weights)

    def product(self, weights: Any, v: Any) -> Any:
        """Raises in other words as an einsum where the sizes do not fit, and in others again with other letters."""
        letters = next((bug for bug in self.bugs if "->" in str(bug)), None)
        return torch.einsum(letters, weights, v) if letters else (weights.mT if "weights turned" in self.bugs else weights) @ v

    def projected(self, query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
        if "XA1" in self.bugs:
            query, key, value = (key, query, query) if "all exchanged" in self.bugs else (key, key, value)
        if "arguments exchanged" in self.bugs:
            query, key = key, query
        if "MU6" in self.bugs:
            key = value = query
        if "MU5" in self.bugs:
            value = key
        if "MU8" in self.bugs:
            key = value
        w_k = self.w_q if "MU7" in self.bugs else self.w_k
        w_v = (lambda x: x) if "MU9" in self.bugs else self.w_q if "values too" in self.bugs else self.w_v
        made = {"q": self.w_q(query), "k": w_k(key), "v": w_v(value)}
        if "MU24" in self.bugs:
            name = next((bug for bug in self.bugs if bug in made), "q")
            made[name] = made[name].detach()
        if "SD8" in self.bugs and "arguments exchanged" not in self.bugs:
            return made["k"], made["q"], made["v"]
        return tuple(made.values())

    def split(self, x: Any, named: int) -> Any:
        b, t, d = x.shape
        t = named if "sizes named" in self.bugs else t
        h = self.num_heads
        if "MH1" in self.bugs:
            return x.reshape(b, h, t, d // h)
        if "MU4" in self.bugs:
            return x.reshape(b, t, d // h, h).permute(0, 3, 1, 2)
        heads = x.reshape(b, t, h, d // h)
        return heads if "MH3" in self.bugs else heads.transpose(1, 2)

    def weights(self, q: Any, k: Any, mask: Any) -> Any:
        d_head = q.shape[-1]
        divisors = {"SD1": 1.0, "SD2": d_head, "SD3": math.sqrt(self.num_heads * d_head), "SD4": math.sqrt(self.num_heads),
                    "SD5": d_head**-0.5, "SD6": 1.0}  # fmt: skip
        scores = q @ k.mT / next((value for id, value in divisors.items() if id in self.bugs), math.sqrt(d_head))
        dim = next((axis for bug, axis in (("over heads", 1), ("SM2", 0), ("SM1", -2)) if bug in self.bugs), -1)
        weights = self.masked(scores, dim, None if "MA8" in self.bugs else mask)
        return weights / math.sqrt(d_head) if "SD6" in self.bugs else weights

    def masked(self, scores: Any, dim: int, mask: Any) -> Any:
        if mask is None:
            return self.softmax(scores, dim)
        if "MU11" in self.bugs and ("of three axes" not in self.bugs or mask.dim() == 3):
            mask = mask.unsqueeze(1)
        if "MU23" in self.bugs:
            mask = mask.mT
        if "MK12" in self.bugs:
            mask = mask[..., : scores.shape[-2], : scores.shape[-2]]
        if "MK2" in self.bugs:
            return self.softmax(scores, dim) * mask
        if "MU21" in self.bugs:
            kept = self.softmax(scores, dim) * mask
            return kept / kept.sum(dim=dim, keepdim=True)
        if "MK3" in self.bugs:
            return self.softmax(scores * mask, dim)
        if "MK5" in self.bugs:
            return self.softmax(scores + (1 - mask.to(scores)) * -torch.inf, dim)
        if "MK6" in self.bugs:
            return self.softmax(scores + mask, dim)
        hidden = mask if "MK1" in self.bugs else ~mask
        if "added" in self.bugs:
            return self.softmax(scores + hidden * -1e4, dim)
        fills = {"far too high": -1e3, "MK4": -1e4, "a number": 1e9, "MU22": torch.inf, "low enough": -1e9}
        fill = next((value for bug, value in fills.items() if bug in self.bugs), -torch.inf)
        if "in place" in self.bugs:  # raises in other words where the shapes do not fit
            return self.softmax(scores.clone().masked_fill_(hidden, fill), dim)
        return self.softmax(scores.masked_fill(hidden, fill), dim)

    def softmax(self, scores: Any, dim: int) -> Any:
        if not {"SM3", "SM4", "SM5", "SM6"} & set(self.bugs):
            return torch.softmax(scores, dim=dim)
        if "SM5" in self.bugs:
            top = 0
        elif "of a head" in self.bugs:
            top = scores.amax(dim=(-2, -1), keepdim=True)
        else:
            all_at_once = "SM6" in self.bugs or ("SM3" in self.bugs and "row maximum" not in self.bugs)
            top = scores.max() if all_at_once else scores.amax(dim=dim, keepdim=True)
        e = (scores - top).exp()
        return e / (e.sum() if "SM3" in self.bugs else e.sum(dim=dim, keepdim="SM4" not in self.bugs))

    def merge(self, out: Any, shape: Any) -> Any:
        b, t, d = shape
        if "flattened" in self.bugs:
            return out.transpose(1, 2).flatten(2)
        if "MH3" in self.bugs or "MH2" in self.bugs:
            return out.reshape(b, t, d)
        if "MU17" in self.bugs:
            return out.permute(0, 2, 3, 1).reshape(b, t, d)
        if "MH4" in self.bugs:
            return out.transpose(1, 2).view(b, t, d)
        return out.transpose(1, 2).reshape(b, t, d)


# Of two ids in one group the code above heeds the first alone.
APART = (
    {"SD1", "SD2", "SD3", "SD4", "SD5", "SD6"}, {"SM1", "SM2"}, {"SM3", "SM4"}, {"SM3", "SM6"}, {"SM5", "SM6"}, {"MH1", "MU4", "MH3"},
    {"MH2", "MH3", "MH4", "MU17"}, {"MK4", "MU22", "MK2", "MK3", "MK5", "MK6", "MU21", "MA8"}, {"NT8", "NT23"},
    {"MK1", "MK2", "MK3", "MK5", "MK6", "MU21", "MA8"},
)  # fmt: skip


def attention(*bugs: Any) -> type:
    if any(len(group.intersection(bugs)) > 1 for group in APART):
        raise ValueError(bugs)
    return type("MultiHeadAttention", (_Attention,), {"bugs": bugs})


EXCHANGED = (
    ("SD8",), *(("SD8", letters) for letters in LETTERS), ("SD8", "arguments exchanged"), ("SD8", "arguments exchanged", LETTERS[0]),
    ("SD8", "arguments exchanged", "sizes named"), ("XA1",), ("XA1", "flattened"), ("XA1", "sizes named"), ("XA1", "all exchanged"),
    ("XA1", "all exchanged", "flattened"), ("XA1", "all exchanged", "sizes named"),
)  # fmt: skip
MISTAKES = mistakes(
    attention, "SD1", "SD2", "SD3", "SD4", "SD5", "SD6", "SM1", "SM2", "SM3", "SM4", "SM5", "SM6", "MH1", "MH2", "MH3", "MH4",
    "MK1", "MK2", "MK3", "MK4", "MK5", "MK6", "MK12", "MA8", "BW3", "NT7", "NT8", "NT23", "MU1", "MU2", "MU3", "MU4", "MU5",
    "MU6", "MU7", "MU8", "MU9", "MU11", "MU12", "MU17", "MU21", "MU22", "MU23", "MU24", "MU25",
) + (
    Mistake("MK1", attention("MK1", "low enough")),  # rows and columns that see nothing give no NaN then
    Mistake("SM1", attention("SM1", "low enough")),
    Mistake("SM2", attention("SM2", "low enough")),
    Mistake("SM2", attention("SM2", "over heads")),
    Mistake("SM2", attention("SM2", "over heads", "low enough")),
    Mistake("SM3", attention("SM3", "row maximum")),
    Mistake("SM4", attention("SM4", "flattened")),
    *(Mistake(id, attention(id, "in place")) for id in ("MK12", "MU23")),
    *(Mistake(way[0], attention(*way, *fill)) for way in EXCHANGED for fill in ((), ("in place",))),
    Mistake("SD8", attention("weights turned")),
    Mistake("MU7", attention("MU7", "values too")),
    Mistake("MU22", attention("MU22", "a number")),
    *(Mistake("MU24", attention("MU24", name)) for name in "kv"),
    *(Mistake("MU25", attention("MU25", p)) for p in (0.2, 0.5)),
    Mistake("SM6", attention("SM6", "of a head")),
    Mistake("MK4", attention("MK4", "added")),
    Mistake("MK4", attention("MK4", "far too high")),
    Mistake("BW3", attention("BW3", "cut for both")),
    Mistake("MU11", attention("MU11", "of three axes")),
)  # fmt: skip


def state_of(rng: np.random.Generator, d: int) -> dict[str, Array]:
    """Weights and biases of the four projections, by the contract's names."""
    state = {}
    for name in LAYERS:
        state[f"{name}.weight"] = rng.normal(size=(d, d)).astype(np.float32)
        state[f"{name}.bias"] = rng.normal(size=d).astype(np.float32)
    return state


def _options(state: dict[str, Array], d: int, heads: int, **more: Any) -> dict[str, Any]:
    return {"init": (d, heads), "state": state, "linear": LAYERS, **more}


def _some(rng: np.random.Generator, *shape: int) -> Array:
    """A random mask in which every query sees some key, and not all."""
    mask = rng.random(shape) < 0.5
    mask[..., 0] |= ~mask.any(axis=-1)
    mask[..., -1] &= ~mask.all(axis=-1)
    return mask


def cases(rng: np.random.Generator) -> Iterator[Case]:
    """Self and cross attention, masks of every shape that broadcasts, large scores, what is to be refused."""

    def case(key: str, title: str, sizes: tuple[int, ...], mask: Array | None = None, grad: bool = False, **more: Any) -> Case:
        b, t_q, t_k, d, heads = sizes
        inputs = [Tensor(rng.normal(size=(b, t, d)).astype(np.float32), None, grad) for t in (t_q, t_k, t_k)]
        by_name = more.pop("by_name", False)
        given = () if mask is None or by_name else (Tensor(mask),)
        kwargs = {"mask": None if mask is None else Tensor(mask)} if by_name else {}
        state = state_of(rng, d)
        if d > 10:  # sums so long round further off in float32
            state = {name: 0.4 * array for name, array in state.items()}
        options = _options(state, d, heads, gradients=grad, **more)
        probe = "lesson_09.after_others" if "earlier" in more else "module"
        return Case(key, title, (*inputs, *given), kwargs, probe=probe, options=options)

    yield case("small", "two queries, three keys, two heads of two numbers", (1, 2, 3, 4, 2))
    yield case("sizes", "all sizes different, three heads", (2, 4, 5, 6, 3), grad=True)
    yield case("seen-again", "the same sizes, new numbers", (2, 4, 5, 6, 3))
    yield case("square", "as many queries as keys, heads and numbers in a head", (2, 3, 3, 9, 3))
    yield case("one-head", "one head", (2, 3, 4, 5, 1))
    yield case("single", "heads of one number, a mask (num_heads, T_q, T_k)", (2, 3, 4, 2, 2), _some(rng, 2, 3, 4))
    yield case("one-token", "a batch of one, one query and one key", (1, 1, 1, 4, 2))
    yield case("masked", "a mask (T_q, T_k) for all", (2, 3, 4, 6, 2), _some(rng, 3, 4), grad=True)
    padding = _some(rng, 2, 1, 1, 5)
    padding[0] = True
    yield case("padding", "a mask (B, 1, 1, T_k) that hides nothing in the first item", (2, 3, 5, 4, 2), padding)
    yield case("each", "a mask for each head, by name", (2, 4, 3, 6, 3), _some(rng, 2, 3, 4, 3), by_name=True)
    yield case("heads", "a mask (num_heads, T_q, T_k), as many heads as items", (3, 2, 4, 6, 3), _some(rng, 3, 2, 4))
    yield case("none", "mask=None, by name, nine keys, six heads", (5, 4, 9, 12, 6), by_name=True)
    yield case("as-many", "as many queries as keys, with a mask", (2, 3, 3, 4, 2), _some(rng, 3, 3), grad=True)
    earlier = ((*(rng.normal(size=(2, 4, 6)).astype(np.float32) for _ in range(3)), _some(rng, 4, 4)),)
    yield case("training", "in training mode, after a call with other tokens and a mask", (2, 4, 4, 6, 2), mode="train", earlier=earlier)
    yield from _companions(rng)
    yield from _large(rng)
    for d_model, heads in ((6, 4), (8, 3), (5, 2)):
        x = Tensor(rng.normal(size=(1, 3, d_model)).astype(np.float32))
        yield Case(f"uneven-{d_model}", f"{heads} heads do not divide d_model {d_model}", (x, x, x), probe="module",
                   raises="ValueError", options={"init": (d_model, heads)})  # fmt: skip


ORDER = [2, 0, 3, 1]  # in which the keys of 'keys' come in 'keys reordered'


def _companions(rng: np.random.Generator) -> Iterator[Case]:
    options = _options(state_of(rng, 6), 6, 2)
    query, key, value = (rng.normal(size=(2, t, 6)).astype(np.float32) for t in (3, 4, 4))

    def case(name: str, title: str, *arrays: Array) -> Case:
        return Case(name, title, tuple(Tensor(array) for array in arrays), probe="module", options=options)

    yield case("keys", "three queries, four keys", query, key, value)
    yield case("keys reordered", "the same, keys and values in another order", query, key[:, ORDER], value[:, ORDER])
    others = [array.copy() for array in (query, key, value)]
    for array in others:
        array[0] = rng.normal(size=array.shape[1:])
    yield case("item changed", "the same, the first item of the batch replaced", *others)


def _large(rng: np.random.Generator) -> Iterator[Case]:
    """Scores of 0 and ±10,000 in every row, and halves beside them, which float32 holds exactly; heads of four numbers.

    A row that asks for the high scores finds them hidden, where there is a mask, and sees the low ones alone.
    """
    for i, (heads, masked) in enumerate(((3, ""), (2, "each head"), (3, "all"), (2, "each head"))):
        b, t_k, d = 2, 5, 4 * heads
        state = {name: 0.3 * array for name, array in state_of(rng, d).items()}
        for name in ("w_q", "w_k"):
            state[f"{name}.weight"][:], state[f"{name}.bias"][:] = 0, 0
        state["w_q.weight"][0::4, 0], state["w_q.bias"][1::4] = 1, 1
        for h in range(heads):
            state["w_k.weight"][4 * h, 0] = (-1) ** h  # what is high for one head is low for the next
            state["w_k.weight"][4 * h + 1, 1 + h] = 1
        query, key, value = (rng.normal(size=(b, t, d)).astype(np.float32) for t in (3, t_k, t_k))
        asked = rng.permutation([100, -100, 0])
        found = np.array([rng.permutation([-200, -200, 0, 200, 200]) for _ in range(b)])
        query[..., 0], key[..., 0] = asked, found
        key[..., 1 : 1 + heads] = rng.integers(-2, 3, size=(b, t_k, heads))
        mask = asked[:, None] * found[0] < 0  # a (T_q, T_k) mask of the lowest scores
        mask[asked == 0] = _some(rng, 1, t_k)
        if masked == "each head":
            mask = np.stack([mask, _some(rng, 3, t_k)])
        title = f"scores of 0 and ±10,000{f', with a mask for {masked}' if masked else ''}"
        given = (query, key, value, mask) if masked else (query, key, value)
        yield Case(f"large-{i}", title, tuple(map(Tensor, given)), probe="module", stage="extremes",
                   options=_options(state, d, heads), atol=5e-3, rtol=1e-3)  # fmt: skip


def _row_sums(case: Case, parts: dict[str, Array]) -> str | None:
    sums = parts["weights"].sum(axis=-1)
    worst = sums.flat[np.abs(sums - 1).argmax()]
    return None if abs(worst - 1) < 1e-4 else f"a row sums to {worst:.6g}."


def _hidden(case: Case, parts: dict[str, Array]) -> str | None:
    mask = case.args[3] if len(case.args) > 3 else case.kwargs.get("mask")
    if mask is None:
        return None
    hidden = parts["weights"][~np.broadcast_to(mask.array, parts["weights"].shape)]
    return None if np.abs(hidden).max(initial=0) < 1e-6 else f"a hidden key has the weight {np.abs(hidden).max():.3g}."


def _order(_: Case, first: dict[str, Array], __: Case, second: dict[str, Array]) -> str | None:
    moved = np.abs(first["output"] - second["output"]).max()
    return None if moved < 1e-4 else f"keys and values came in another order, and the output moved by {moved:.3g}."


def _items_apart(_: Case, first: dict[str, Array], __: Case, second: dict[str, Array]) -> str | None:
    moved = np.abs(first["output"][1] - second["output"][1]).max()
    return None if moved < 1e-4 else f"item 1 of the batch moved by {moved:.3g} when only item 0 changed."


PROPERTIES = (
    Property("each row of weights sums to 1", _row_sums),
    Property("what is hidden gets no weight", _hidden),
    Property("the order of the keys does not matter", _order, needs=("keys", "keys reordered")),
    Property("items of a batch do not meet", _items_apart, needs=("keys", "item changed")),
)

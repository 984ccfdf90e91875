"""Lesson 11, `TransformerBlock`: one implementation with its mistakes as switches, and the cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from grader.lessons import lesson_11_readings as readings
from grader.lessons.lesson_11_attention import attention, weights_of
from grader.lessons.switch import mistakes
from grader.model import Case, Mistake, Tensor

LAYERS = ("attn.qkv", "attn.proj", "mlp.0", "mlp.2")
IN_ATTENTION = ("SD1", "SD3", "MH2", "MK1", "MK3", "MK8", "MK13", "PJ3", "CM11")  # what CM37 stands for


class _Block(nn.Module):
    """TransformerBlock with the bugs of a subclass switched on; with none it is right."""

    bugs: tuple[str, ...] = ()

    def __init__(self, d_model: int, num_heads: int, max_len: int, dropout: float = 0.0) -> None:
        super().__init__()
        width = (2 if "CM32" in self.bugs else 4) * d_model
        activation = nn.ReLU() if "CM27" in self.bugs else nn.GELU("tanh" if "CM26" in self.bugs else "none")
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        if "one object" in self.bugs:
            self.ln2 = self.ln1
        inner = tuple(bug for bug in self.bugs if bug in IN_ATTENTION) or ("SD1",) * ("CM37" in self.bugs)
        self.attn = attention(*inner)(d_model, num_heads, max_len, 0.0 if "CM30" in self.bugs else dropout)
        self.mlp = nn.Sequential(nn.Linear(d_model, width), activation, nn.Linear(width, d_model))
        self.drop = nn.Dropout(dropout if "CM31" in self.bugs and "of mlp" not in self.bugs else 0.0)
        self.drop_mlp = nn.Dropout(dropout if "CM31" in self.bugs else 0.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bugs, ln2 = self.bugs, self.ln1 if "CM24" in self.bugs else self.ln2
        if "CM21" in bugs:
            x = self.ln1(x + self.attn(x))
            return ln2(x + self.mlp(x))
        if "CM28" in bugs:
            x = x + self.mlp(ln2(x))
            return x + self.attn(self.ln1(x))
        if "CM29" in bugs:
            return x + self.attn(self.ln1(x)) + self.mlp(ln2(x))
        if "CM36" in bugs:
            x = x + self.ln1(self.attn(x))
            return x + ln2(self.mlp(x))
        start, bare = x, ("ln1", "ln2") if "CM33" in bugs else bugs
        attended = self.drop(self.attn(x if "ln1" in bare else self.ln1(x)))
        if "CM35" in bugs:
            x += attended
            x += self.mlp(ln2(x))
            return x
        kept = self.ln1(x) if "CM25" in bugs and "of mlp" not in bugs else x
        x = attended if "CM22" in bugs else kept + attended
        out = self.drop_mlp(self.mlp(x if "ln2" in bare else ln2(x)))
        kept = ln2(x) if "CM25" in bugs and "of attn" not in bugs else start if "CM34" in bugs else x
        return out if "CM23" in bugs else kept + out


def block(*bugs: str) -> type:
    return type("TransformerBlock", (_Block,), {"bugs": bugs})


MISTAKES = mistakes(
    block, "CM21", "CM22", "CM23", "CM24", "CM25", "CM26", "CM27", "CM28", "CM29", "CM30", "CM31", "CM32", "CM33", "CM34",
    "CM35", "CM36", "CM37",
) + (
    Mistake("CM24", block("one object")),
    Mistake("CM25", block("CM25", "of attn")),
    Mistake("CM25", block("CM25", "of mlp")),
    Mistake("CM31", block("CM31", "of mlp")),
    Mistake("CM33", block("ln1")),
    Mistake("CM33", block("ln2")),
    *(Mistake("CM37", block("CM37", inner)) for inner in IN_ATTENTION[1:]),
)  # fmt: skip


def _state(rng: np.random.Generator, d: int) -> dict[str, np.ndarray]:
    """Normalisations that do something, and a network wide enough in range to tell one GELU from another."""
    state = {f"attn.{name}": array for name, array in weights_of(rng, d, 0.6).items()}
    state |= {"mlp.0.weight": rng.normal(size=(4 * d, d)), "mlp.2.weight": rng.normal(size=(d, 4 * d)),
              "mlp.0.bias": rng.normal(size=4 * d), "mlp.2.bias": rng.normal(size=d)}  # fmt: skip
    for name in ("ln1", "ln2"):
        state |= {f"{name}.weight": rng.uniform(0.5, 1.5, size=d), f"{name}.bias": rng.normal(size=d)}
    return {name: array.astype(np.float32) for name, array in state.items()}


def cases(rng: np.random.Generator) -> Iterator[Case]:
    def case(key: str, title: str, shape: tuple[int, ...], *sizes: Any, silent: bool = False, **more: Any) -> Case:
        state = _state(rng, shape[-1])
        if silent:
            state["attn.proj.weight"][:] = 0
        options = {"init": (shape[-1], *sizes), "state": state, "linear": LAYERS, "no_bias": LAYERS[:2], **more}
        x = rng.normal(size=shape).astype("float32")
        x = Tensor(2 * x + 1, None, bool(more.get("gradients")))
        return Case(key, title, (x,), probe="lesson_11.block", options=options, reading=readings.block)

    yield case("small", "three tokens, two heads of two numbers", (1, 3, 4), 2, 5)
    yield case("sizes", "all sizes different, three heads", (2, 4, 6), 3, 7, gradients=True)
    yield case("seen-again", "the same sizes, new numbers", (2, 4, 6), 3, 7, gradients=True)
    yield case("full", "as many tokens as max_len, in training mode, without dropout", (2, 5, 8), 4, 5, mode="train")
    yield case("one", "one token, one head", (3, 1, 4), 1, 6)
    yield case("room", "room for one more token", (2, 3, 4), 2, 4)
    yield case("evaluation", "dropout=0.5, in evaluation", (2, 3, 6), 2, 4, 0.5, twice=True)
    for i, shape in enumerate(((2, 3, 4), (1, 5, 6), (3, 2, 4))):
        yield case(f"silent-{i}", "dropout=0.5, in training, with attention that gives zeros", shape, 2, 6, 0.5,
                   mode="train", silent=True, twice=True)  # fmt: skip
        yield case(f"moving-{i}", "dropout=0.5, in training, twice", shape, 2, 6, 0.5, differs=True)
    for t, max_len in ((6, 5), (4, 2), (9, 3)):
        yield Case(f"long-{t}", f"{t} tokens, max_len {max_len}", (Tensor(rng.normal(size=(2, t, 4)).astype(np.float32)),),
                   probe="module", raises="ValueError", options={"init": (4, 2, max_len)})  # fmt: skip

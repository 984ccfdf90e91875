"""How the answers of lesson 12 are exercised: a generating loop, with a stand-in for a language model."""

from __future__ import annotations

from random import seed as seed_python
from typing import Any

import torch
from numpy import array, ndarray
from numpy.random import seed as seed_numpy
from torch.nn import Dropout, Module, Parameter, Sequential

from ..originals import BUILTINS, is_a, of_torch
from . import ContractError, Run, returned

__builtins__ = BUILTINS

T = of_torch()


class Writer(Module):
    """A stand-in for a language model. What it notes of a call lies in NOTES, out of reach of whoever restores its attributes.

    table: (V, V). The logits at a position follow from the tokens up to it and from where they stand in what was fed, or with
    `memory=False` from the last token alone. Fed more than `most` tokens, asked while any part of it is in training mode or
    while a graph is built, it gives others: such a call shows in the ids, too.
    """

    def __init__(self, table: ndarray, memory: bool, training: bool, most: int) -> None:
        super().__init__()
        self.table = Parameter(T.tensor(table, "float32"))
        self.memory, self.most = memory, most
        self.part = Sequential(Sequential(Dropout(0.0)))  # follow model.eval(), and not a flag that is set on the model alone
        self.train(training)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        fed = T.get(ids, "shape")[1]
        logits = self.table[ids.long()]
        if self.memory:
            places = torch.cos(0.7 * torch.arange(1, fed + 1)).to(logits)
            logits = (logits * places[:, None]).cumsum(dim=1) + 0.5 * logits
        note = fed, any(flags(self)), T.get(logits, "requires_grad")
        NOTES.append(note)
        return -logits if fed > self.most or note[1] or note[2] else logits


NOTES: list[tuple[int, bool, bool]] = []  # of each call: tokens fed, whether a part was in training mode, whether a graph was built


def flags(model: Any) -> list[bool]:
    """Whether each part of a model is in training mode, the model itself first."""
    return [own["training"] is not False for _, own in T.parts(model)]


def greedy(function: Any, run: Run) -> dict[str, Any]:
    """Generates at temperature 0 and says how the model was treated.

    args: (ids, max_new_tokens, max_len). options: table (V, V), training (the model's flag before), zero (the
    temperature as it is passed). 'tokens fed', 'in training', 'graphs': of each call; 'flags': of each part afterwards.
    """
    model = Writer(run.options["table"], True, run.options["training"], run.args[2])
    NOTES.clear()
    with T.recording(True):
        result = _integers(function(model, *run.args, temperature=run.options.get("zero", 0.0)))
        still = T.grad_is_enabled()
    fed, training, graphs = (array([note[i] for note in NOTES]) for i in range(3))
    return {
        "result": returned(result), "tokens fed": fed, "in training": training, "graphs": graphs, "flags": array(flags(model)),
        "torch records gradients after the call": still,
    }  # fmt: skip


def sample(function: Any, run: Run) -> dict[str, Any]:
    """Generates one token for each of many rows.

    args: (ids, max_new_tokens, max_len, temperature). options: table (a row for each last token, a multiple of four columns);
    seed (of the generator; None: no generator is passed); again (True: also three further calls: with the same generator
    as it is then, with one in the state of the first call while the global ones are in another, with another generator).
    """
    options = run.options
    model = Writer(options["table"], False, False, run.args[2])

    def draw(elsewhere: int, **generator: Any) -> Any:
        T.global_generator.manual_seed(elsewhere)
        seed_numpy(elsewhere)
        seed_python(elsewhere)
        with T.recording(True):
            return _integers(function(model, *run.args, **generator))

    def seeded(seed: int) -> Any:
        return T.Generator().manual_seed(seed)

    if options["seed"] is None:
        return {"ids": returned(draw(1))}
    generator = seeded(options["seed"])
    parts = {"ids": returned(draw(1, generator=generator))}
    if options.get("again"):
        parts["ids of a second call"] = draw(1, generator=generator)
        parts["ids of the same state"] = draw(2, generator=seeded(options["seed"]))
        parts["ids of another state"] = draw(1, generator=seeded(options["seed"] + 1))
    return parts


def _integers(result: Any) -> Any:
    if not is_a(result, T.Tensor):
        raise ContractError(f"A {type(result).__name__} came back; a tensor of ids (B, T + max_new_tokens) was asked for.")
    name = str(T.get(result, "dtype")).removeprefix("torch.")
    if T.get(result, "dtype").is_floating_point or name == "bool":
        raise ContractError(f"The ids came back as {name}; integers were asked for.")
    return result

"""How the answers of lesson 10 are exercised: a language model part by part, a step of training, a generating loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from gc import collect, disable, enable, get_stats, isenabled
from random import seed as seed_python
from typing import Any
from weakref import ref

import torch
from numpy import array, int64, ndarray
from numpy.random import seed as seed_numpy
from torch.nn import Dropout, Module, Parameter, Sequential

from grader.worker.originals import BUILTINS, is_a, of_torch
from grader.worker.probes import ContractError, Run, build, gradients, mark_result, parameter as parameter_of

from ..shared.probes import set_eps, trainable

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
        self.part = Sequential(
            Sequential(Dropout(0.0))
        )  # follow model.eval(), and not a flag that is set on the model alone
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


NOTES: list[
    tuple[int, bool, bool]
] = []  # of each call: tokens fed, whether a part was in training mode, whether a graph was built


def flags(model: Any) -> list[bool]:
    """Whether each part of a model is in training mode, the model itself first."""
    return [own["training"] is not False for _, own in T.submodules(model)]


def greedy(function: Any, run: Run) -> dict[str, Any]:
    """Generates at temperature 0 and says how the model was treated.

    args: (ids, max_new_tokens, max_len). options: table (V, V), training (the model's flag before), zero (the
    temperature as it is passed). 'tokens fed', 'in training', 'graphs': of each call; 'flags': of each part afterwards; 'trainable':
    of each parameter.
    """
    model = Writer(run.options["table"], True, run.options["training"], run.args[2])
    NOTES.clear()
    with T.grad_mode(True):
        result = _integers(function(model, *run.args, temperature=run.options.get("zero", 0.0)))
        still = T.grad_is_enabled()
    fed, training, graphs = (array([note[i] for note in NOTES]) for i in range(3))
    trained = trainable(T.parameters(model))
    return {
        "result": mark_result(result),
        "tokens fed": fed,
        "in training": training,
        "graphs": graphs,
        "flags": array(flags(model)),
        "torch records gradients after the call": still,
        "trainable": trained,
    }


FEW = 40  # rows that are drawn again: by chance two draws of so many agree once in 10^15 times


def sample(function: Any, run: Run) -> dict[str, Any]:
    """Generates one token for each of many rows.

    args: (ids, max_new_tokens, max_len, temperature). options: table (a row for each last token, a multiple of four columns);
    seed (of the generator; None: no generator is passed); again (True: also calls for the first FEW rows: two in turn with one
    generator, one with a generator in the state of the first while the global ones are in another, one with another generator;
    without a generator, torch's global one takes its part).
    """
    options = run.options
    model = Writer(options["table"], False, False, run.args[2])
    all_ids, *others = run.args

    def draw(ids: Any, elsewhere: int, **generator: Any) -> Any:
        seed_numpy(elsewhere)
        seed_python(elsewhere)
        with T.grad_mode(True):
            return _integers(function(model, ids, *others, **generator))

    def drawing(seed: int, elsewhere: int) -> Any:
        """Calls that draw from one generator in turn, beginning in the state of that seed."""
        T.global_generator.manual_seed(seed if options["seed"] is None else elsewhere)
        generator = {} if options["seed"] is None else {"generator": T.Generator().manual_seed(seed)}
        return lambda ids: draw(ids, elsewhere, **generator)

    seed = options["seed"] or 0
    few = [T.copy(all_ids[:FEW]) for _ in range(4)]
    parts = {"ids": mark_result(drawing(seed, 1)(all_ids))}
    if options.get("again"):
        one = drawing(seed, 1)
        parts |= {"first": one(few[0]), "ids of a second call": one(few[1])}
        parts |= {
            "ids of the same state": drawing(seed, 2)(few[2]),
            "ids of another state": drawing(seed + 1, 1)(few[3]),
        }
    return parts


def _integers(result: Any) -> Any:
    if not is_a(result, T.Tensor):
        raise ContractError(f"A {type(result).__name__} came back; expected a tensor of ids (B, T + max_new_tokens).")
    name = str(T.get(result, "dtype")).removeprefix("torch.")
    if T.get(result, "dtype").is_floating_point or name == "bool":
        raise ContractError(f"The ids came back as {name}; expected integers.")
    return result


class Bigram(Module):
    """A stand-in whose gradients can be written down: logits = gain · (table[ids] + bias), half of that in evaluation mode."""

    def __init__(self, table: ndarray, bias: ndarray, gain: float, training: bool) -> None:
        super().__init__()
        self.table, self.bias = Parameter(T.tensor(table, "float32")), Parameter(T.tensor(bias, "float32"))
        self.gain = gain
        self.part = Sequential(Dropout(0.0))  # follows model.train() and model.eval()
        self.train(training)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        gain = self.gain if all(flags(self)) else self.gain / 2
        logits = gain * (self.table[ids] + self.bias)
        if logits.grad_fn is not None:
            hook = Passed()
            GRAPHS.append(ref(hook))
            logits.grad_fn.register_prehook(hook)  # the graph holds it, and nothing else does
        return logits


class Passed:
    """Called where backward() comes through a graph; it lives as long as the graph."""

    def __call__(self, grads: Any) -> None:
        BACKWARD.append(len(STEPS))


GRAPHS: list[Any] = []  # of each call of the model: a weak reference, dead once its graph is gone
BACKWARD: list[int] = []  # of each pass backwards: how many steps came before it
STEPS: list[
    list[Any]
] = []  # of each step of the optimizer: a copy of the gradient of each parameter, None where it has none


@contextmanager
def nothing_collected() -> Iterator[list[int]]:
    """What the block makes stays young, so that `graphs_held` need not search all there is, which takes a fifth of a second.

    Gives how often Python had collected before the block.
    """
    on, before = isenabled(), _collections()
    disable()
    try:
        yield before
    finally:
        if on:
            enable()


def _collections() -> list[int]:
    return [one["collections"] for one in get_stats()]


def graphs_held(before: list[int]) -> int:
    """How many graphs are left, also after what refers to itself has been collected. before: as `nothing_collected` gives it."""
    if any(one() is not None for one in GRAPHS):
        collect(0 if _collections() == before else 2)  # the learner's code may have collected, too
    return sum(one() is not None for one in GRAPHS)


class Stepping(torch.optim.Optimizer):
    """Plain gradient descent that notes what it is to step with. torch's own __init__ would import a compiler for a second."""

    def __init__(self, parameters: Any, lr: float) -> None:
        self.defaults, self.state = {"lr": lr}, {}
        self.param_groups = [{"params": list(parameters), "lr": lr}]

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.param_groups[0]["params"]:
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.detach_().zero_()

    def step(self, closure: Any = None) -> Any:
        loss = None
        if closure is not None:
            with T.grad_mode(True):
                loss = closure()
        (group,) = self.param_groups
        STEPS.append([T.copy(parameter.grad) for parameter in group["params"]])
        with T.grad_mode(False):
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter -= group["lr"] * parameter.grad
        return loss


def training_step(function: Any, run: Run) -> dict[str, Any]:
    """What a step of training does to a model and its optimizer, the last of several.

    args: (ids,); kwargs as they are. options: table, bias, gain (of `Bigram`), training (its mode), lr, stale (gradients that
    lie there before, or None), before (ids of steps that go before this one). 'backward': of each pass backwards, how many
    steps came before it; 'graph': whether the loss has one; 'held' (with steps before): how many graphs are left when the call has
    returned; 'own …', where the function reads the name `next_token_loss`: the losses and the gradients that it gives before the step, for
    the ids of each step.
    """
    options = run.options
    model = Bigram(options["table"], options["bias"], options["gain"], options["training"])
    optimizer = Stepping(model.parameters(), options["lr"])
    GRAPHS.clear()
    with nothing_collected() as collections, T.grad_mode(True):
        for ids in options.get("before", ()):
            _step(function, model, optimizer, T.tensor(ids), run)
        if options["stale"] is not None:
            for parameter, numbers in zip((model.table, model.bias), options["stale"], strict=True):
                parameter.grad = T.tensor(numbers, "float32")
        before = [T.copy(parameter) for parameter in (model.table, model.bias)]
        STEPS.clear()
        BACKWARD.clear()
        loss = _step(function, model, optimizer, run.args[0], run)
        still = T.grad_is_enabled()
    graph = is_a(loss, T.Tensor) and T.get(loss, "requires_grad")
    grads = STEPS[-1] if len(STEPS) == 1 else [None, None]
    held = graphs_held(collections) if options.get("before") and not graph else 0
    saw = {
        "backward": array(BACKWARD, int64),
        "held": held,
        "loss": T.copy(loss),
        "graph": bool(graph),
        "steps": len(STEPS),
        "flags": array(flags(model)),
        "recording": still,
        "table before": before[0],
        "bias before": before[1],
        "table at the step": grads[0],
        "bias at the step": grads[1],
        "table after": T.copy(model.table),
        "bias after": T.copy(model.bias),
    }
    return saw | _own_loss(function, run, before)


def _step(function: Any, model: Any, optimizer: Any, ids: Any, run: Run) -> Any:
    try:
        return function(model, optimizer, ids, **run.kwargs)
    except Exception:
        if not _has_no_graph(_loss_read_by(function), ids, run.options):
            raise
        raise ContractError(
            "The `next_token_loss` that train_step calls gives a loss without a graph, so that no gradient can be computed. "
            "Repair it first: beside it the step can't be judged."
        ) from None


def _has_no_graph(loss_of: Any, ids: Any, options: Mapping[str, Any]) -> bool:
    """Whether a loss gives a number that no gradient can come from; False where it gives none."""
    if loss_of is None:
        return False
    try:
        with T.grad_mode(True):
            loss = loss_of(Bigram(options["table"], options["bias"], options["gain"], True)(ids), ids)
    except Exception:
        return False
    return not is_a(loss, T.Tensor) or not T.get(loss, "requires_grad")


def _loss_read_by(function: Any) -> Any:
    """The learner's own `next_token_loss`, where a function reads that name; else None."""
    code = getattr(function, "__code__", None)
    return (
        getattr(function, "__globals__", {}).get("next_token_loss")
        if code and _reads(code, "next_token_loss")
        else None
    )


def _own_loss(function: Any, run: Run, before: list[Any]) -> dict[str, Any]:
    """What the `next_token_loss` that a function reads makes of the model as it was; nothing where it reads none, or that one fails."""
    loss_of = _loss_read_by(function)
    if loss_of is None:
        return {}
    options, own = run.options, []
    model = Bigram(*map(T.numbers, before), options["gain"], options["training"])
    try:
        for ids in (*map(T.tensor, options["before"]), run.args[0]):
            with T.grad_mode(True):
                loss = loss_of(model(ids), ids)
            own.append([T.numbers(each) for each in (loss, *T.gradients(loss, (model.table, model.bias)))])
        return {
            f"own {name}": array(each)
            for name, each in zip(("loss", "table", "bias"), zip(*own, strict=True), strict=True)
        }
    except Exception:  # its own check says what is wrong with it
        return {}


def _reads(code: Any, name: str) -> bool:
    return name in code.co_names or any(_reads(part, name) for part in code.co_consts if hasattr(part, "co_names"))


def language_model(cls: Any, run: Run) -> dict[str, Any]:
    """As `module`, of a language model whose attributes are looked at first, one after the other.

    args: (ids,). options: as for `module`; layers; earlier (the ids of each earlier call). Parts: 'result', 'second call' (of the ids
    backwards), gradients; 'weights', which objects those of head and token are; 'parameters', which all are; and what went from part
    to part, where a part was called as a module: 'into block 0', 'out of the blocks', 'into norm', 'out of norm', 'into head', '… block i'
    for every further block.
    """
    options = run.options
    made = cls(*options["init"], **options.get("init_kwargs", {}))
    if not is_a(made, T.Module):
        raise ContractError(f"LanguageModel(...) gives a {type(made).__name__}, not an nn.Module.")
    wanted = (("token", T.Embedding), ("position", T.Embedding), ("norm", T.LayerNorm), ("head", T.Linear))
    for name, kind in wanted:
        if not is_a(T.submodule(made, name), kind):
            found = type(getattr(made, name, None)).__name__
            raise ContractError(
                f"The attribute {name} is a {found}; an nn.{kind.__name__} is asked for."
                if hasattr(made, name)
                else f"The model has no attribute {name}; an nn.{kind.__name__} is asked for."
            )
    blocks = T.submodule(made, "blocks")
    if not is_a(blocks, T.ModuleList) and not is_a(blocks, T.Sequential):
        found = type(getattr(made, "blocks", None)).__name__
        plain = (
            " A plain list hides its modules from the model: no parameter of theirs is found."
            if found == "list"
            else ""
        )
        raise ContractError(
            f"The attribute blocks is a {found}; an nn.ModuleList or nn.Sequential is asked for.{plain}"
        )
    inside = [own for prefix, own in T.submodules(blocks) if prefix.count(".") == 1]
    if len(inside) != options["layers"]:
        raise ContractError(f"There are {len(inside)} blocks; expected num_layers = {options['layers']}.")
    owned = T.parameters(made)
    identities = {
        "weights": [T.parameter(T.submodule(made, name), "weight") for name in ("head", "token")],
        "parameters": owned.values(),
    }
    identities = {name: array([*map(id, those)], int64) for name, those in identities.items()}
    build(lambda *_, **__: made, options)
    for prefix, own in T.submodules(made):
        if "normalized_shape" in own:
            set_eps(prefix.rstrip("."), own)
    made.train(options.get("mode", "eval") == "train")
    for ids in options.get("earlier", ()):
        made(T.tensor(ids))
    parts = {**identities, **_passed_on(made, blocks, run)}
    if options.get("gradients"):
        weights = {name: parameter_of(made, name) for name in options["gradients"]}
        gradients(parts["result"].value, weights)
        parts |= gradients(made(*run.args), weights)  # of a further call: what an earlier one kept of its graph is gone
    return parts


def _passed_on(made: Any, blocks: Any, run: Run) -> dict[str, Any]:
    """What the model makes of the ids, and what went into and came out of its parts on the way."""
    went: dict[str, Any] = {}

    def noting(name: str) -> Any:
        def note(_: Any, given: tuple, result: Any) -> None:
            if len(given) == 1 and is_a(given[0], T.Tensor) and is_a(result, T.Tensor):
                went[f"into {name}"], went[f"out of {name}"] = T.copy(given[0]), T.copy(result)

        return note

    watched = {**{f"block {i}": block for i, block in enumerate(blocks)}, "norm": made.norm, "head": made.head}
    hooks = [part.register_forward_hook(noting(name)) for name, part in watched.items()]
    result = made(*run.args)
    for hook in hooks:
        hook.remove()
    return {"went " + name: value for name, value in went.items()} | {
        "result": mark_result(result),
        "second call": mark_result(made(run.args[0].flip(1)), "second call"),
    }

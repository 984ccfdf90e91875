"""How the answers of lesson 16 are exercised: a cache over several appends, and a loop that writes with a model that keeps one."""

from __future__ import annotations

import math
from gc import get_referents
from types import CellType, FunctionType, ModuleType
from typing import Any

import torch
from numpy import array, int64, ndarray
from torch.nn import Dropout, Module, Parameter, Sequential
from torch.overrides import TorchFunctionMode

from grader.worker.originals import BUILTINS, is_a, of_torch
from grader.worker.probes import ContractError, Run, mark_result

from ..shared.probes import device_parts, trainable

__builtins__ = BUILTINS

T = of_torch()
MOST = 5000  # objects that are looked through for tensors


class Taking(TorchFunctionMode):
    """Keeps the tensors that are made meanwhile, so that nothing else gets their memory."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.made += [one for one in (result if type(result) in (tuple, list) else [result]) if is_a(one, T.Tensor)]
        return result


def held_by(owner: Any) -> list[Any]:
    """The tensors that an object holds, in whatever it holds; classes, modules and what functions have around them are left out."""
    found, todo, seen = [], [owner], set()
    while todo and len(seen) < MOST:
        one = todo.pop()
        if id(one) in seen or is_a(one, type) or is_a(one, ModuleType):
            continue
        seen.add(id(one))
        if is_a(one, T.Tensor):
            found.append(one)
        elif is_a(one, FunctionType):
            todo += [value for cell in one.__closure__ or () if is_a(cell, CellType) for value in get_referents(cell)]
        else:
            todo += get_referents(one)
    return found


def made_and_held(cls: Any, *sizes: int, **more: Any) -> tuple[Any, list[Any]]:
    """A cache, and every tensor that there is of it before anything is appended."""
    with Taking() as taking:
        cache = cls(*sizes, **more)
    return cache, [*held_by(cache), *taking.made]


def appends(cls: Any, run: Run) -> dict[str, Any]:
    """Appends tokens chunk by chunk; where one is refused with ValueError, goes on with the next.

    args: (batch, num_kv_heads, max_len, d_head, k, v), k and v of all tokens in turn. options: chunks (the tokens of each append);
    dtype (its name, None: left out); by_place (True: it goes by position); named (True: the sizes go by name); beside (True: a second
    cache is used in between); refused (True: a ValueError is no end, nor is another exception where there is no room).
    Parts: 'keys i' and 'values i' of the i-th append that was taken; lengths; refused (how many appends were taken, how many not);
    taken, given, held, kept: the addresses at which the memory begins and ends of what there was before the first append, of what was
    appended, of what came back, and of what the cache holds at last.
    """
    options, (*sizes, k, v) = run.options, run.args
    more = {"dtype": T.dtypes[options["dtype"]]} if options["dtype"] else {}
    if options.get("by_place"):
        sizes, more = [*sizes, *more.values()], {}
    if options.get("named"):
        more, sizes = {**more, **dict(zip(("batch", "num_kv_heads", "max_len", "d_head"), sizes, strict=True))}, []
    cache, tensors = made_and_held(cls, *sizes, **more)
    beside = cls(*sizes, **more) if options.get("beside") else None
    parts, given, held, start, taken, refused, room = {}, [], [], 0, 0, 0, run.args[2]
    lengths = [len(cache)]
    for chunk in options["chunks"]:
        if beside is not None:
            beside.append(
                T.tensor(T.numbers(k[:, :, start : start + 1]) + 9), T.tensor(T.numbers(v[:, :, start : start + 1]) - 9)
            )
        new = k[:, :, start : start + chunk], v[:, :, start : start + chunk]
        try:
            back = _two_tensors(cache.append(*new))
        except ValueError:
            if not options.get("refused"):
                raise
            refused += 1
        except Exception:
            if not options.get("refused") or chunk <= room:
                raise
        else:
            room -= chunk
            parts |= {f"{name} {taken}": T.copy(one) for name, one in zip(("keys", "values"), back, strict=True)}
            given, held, taken = [*given, *new], [*held, *back], taken + 1
        start += chunk
        lengths.append(len(cache))
    return {
        **parts,
        "lengths": array(lengths, int64),
        "refused": array([taken, refused], int64),
        "taken": _addresses(tensors),
        "given": _addresses(given),
        "held": _addresses(held),
        "kept": _addresses(held_by(cache)),
    }


def _two_tensors(back: Any) -> tuple[Any, Any]:
    if not (is_a(back, tuple) or is_a(back, list)) or len(back) != 2 or not all(is_a(one, T.Tensor) for one in back):
        said = f"a {type(back).__name__}" if back is not None else "None"
        raise ContractError(f"append gave {said}; expected two tensors: (keys, values).")
    return tuple(back)


def _addresses(tensors: list[Any]) -> ndarray:
    return array([T.memory(one) for one in tensors], int64).reshape(-1, 2)


def memory_devices(cls: Any, run: Run) -> dict[str, Any]:
    """Where the memory of a cache lies that was made for options['device']: 'device size device size …' of what there is of it.

    args: (batch, num_kv_heads, max_len, d_head). options: device; by_place (True: it goes by position, behind the dtype).
    """
    device = T.device(run.options["device"])
    if run.options.get("by_place"):
        cache, tensors = made_and_held(cls, *run.args, T.float32, device)
    else:
        cache, tensors = made_and_held(cls, *run.args, device=device)
    return {"where": _places(tensors), "held": _places(held_by(cache))}


def _places(tensors: list[Any]) -> str:
    return " ".join(f"{T.get(one, 'device').type} {T.numel(one)}" for one in tensors)


class Kept:
    """What a `Speaker` keeps of a text: the sum of what its tokens have said, for each row."""

    def __init__(self, number: int, batch: int) -> None:
        self.number, self.batch, self.length, self.said = number, batch, 0, None


CALLS: list[
    tuple[int, int, int, bool, ndarray]
] = []  # of each call of a `Speaker`: which cache, rows, tokens, whether a graph was built, the ids
CACHES: list[Kept] = []


class Speaker(Module):
    """A stand-in for a language model with a cache: what comes next follows from every token so far and from its place.

    table: (V, V). What it notes of its calls lies in CALLS, out of reach of whoever restores its attributes.
    """

    def __init__(self, table: ndarray, training: bool) -> None:
        super().__init__()
        self.table = Parameter(T.tensor(table, "float32"))
        self.part = Sequential(
            Sequential(Dropout(0.0))
        )  # follow model.eval(), and not a flag that is set on the model alone
        self.train(training)

    def new_cache(self, batch: int) -> Kept:
        CACHES.append(Kept(len(CACHES), batch))
        return CACHES[-1]

    def forward(self, ids: torch.Tensor, cache: Kept) -> torch.Tensor:
        if not is_a(cache, Kept):
            raise ContractError(
                f"The model was called with a cache of type {type(cache).__name__}; model.new_cache(batch) makes one."
            )
        if not is_a(ids, T.Tensor) or len(T.get(ids, "shape")) != 2:
            raise ContractError("The model was called with ids that are no tensor (B, T).")
        rows, fed = T.get(ids, "shape")
        if rows != cache.batch:
            these = "1 row" if rows == 1 else f"{rows} rows"
            raise ContractError(
                f"The model was called with {these} and a cache that was made for a batch of {cache.batch}."
            )
        said = self.table[ids.long()]
        places = torch.cos(0.7 * torch.arange(cache.length + 1, cache.length + fed + 1)).to(said)
        sums = (said * places[:, None]).cumsum(dim=1)
        sums = sums if cache.said is None else sums + cache.said
        logits = sums + 0.5 * said
        cache.said, cache.length = T.copy(sums[:, -1:]), cache.length + fed
        CALLS.append((cache.number, rows, fed, T.get(logits, "requires_grad"), T.numbers(ids)))
        return logits


class AnySpeaker(Speaker):
    """One that notes nothing of its calls, since of a tensor on another device there are no numbers to be had."""

    def forward(self, ids: torch.Tensor, cache: Kept) -> torch.Tensor:
        said = self.table.index_select(0, ids.flatten()).unflatten(0, ids.shape)
        cache.length += ids.shape[1]
        return said * math.cos(cache.length)


def generation(function: Any, run: Run) -> dict[str, Any]:
    """Lets a stand-in write, and says how it was called.

    args: (ids, max_new_tokens). options: table (V, V), training (the model's mode before), again (True: it has written this once
    already); named (True: all inputs go by name). calls: (cache, rows, tokens) of each; seen: the ids of each;
    trainable: of each parameter; tables: their numbers.
    """
    model = Speaker(run.options["table"], run.options["training"])
    if run.options.get("again"):
        with T.grad_mode(True):
            function(model, *run.args)
    CALLS.clear()
    CACHES.clear()
    with T.grad_mode(True):
        if run.options.get("named"):
            result = function(model=model, **dict(zip(("ids", "max_new_tokens"), run.args, strict=True)))
        else:
            result = function(model, *run.args)
        still = T.grad_is_enabled()
    owned = T.parameters(model)
    modes = [own["training"] is not False for _, own in T.submodules(model)]
    return {
        "result": mark_result(result),
        "calls": array([call[:3] for call in CALLS], int64).reshape(-1, 3),
        "graphs": array([call[3] for call in CALLS], bool),
        "seen": [call[4] for call in CALLS],
        "flags": array(modes),
        "recording": still,
        "trainable": trainable(owned),
        "tables": [T.numbers(one) for one in owned.values()],
    }


def generation_on_device(function: Any, run: Run) -> dict[str, Any]:
    """As `on_device`, of what the function makes of a model of its own and ids; options: table."""
    model = AnySpeaker(run.options["table"], False)
    return device_parts(lambda *args: function(model, *args), run, model)

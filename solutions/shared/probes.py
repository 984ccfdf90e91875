"""What the probes of several lessons do: modules that are called more than once, and what is read of parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import torch  # noqa: F401  # without it these are of no use, and their module is not made
from numpy import array, int64
from torch.overrides import TorchFunctionMode

from grader.worker.originals import BUILTINS, is_a, of_torch
from grader.worker.probes import ContractError, Run, build, gradients, mark_result, module as run_module, parameter

__builtins__ = BUILTINS

T = of_torch()
# Of every nn.LayerNorm that is judged: torch's default, given like a weight where a module has a small one.
EPS, MOST_EPS = 1e-5, 1e-4


def after_earlier_calls(cls: Any, run: Run) -> dict[str, Any]:
    """As `module`, of a module that has been called before: what it keeps of a call is to change no later one.

    options: as for `module`; earlier (the arrays of each earlier call).
    """
    made = build(cls, run.options)
    made.train(run.options.get("mode", "eval") == "train")
    call_before(made, run)
    return run_module(lambda *_, **__: made, run)


def call_before(made: Any, run: Run) -> None:
    """The earlier calls of a module; where gradients are asked for, they are taken of each call at once."""
    options = run.options
    for arrays in options.get("earlier", ()):
        result = made(*(T.tensor(given) for given in arrays))
        if options.get("gradients"):
            gradients(result, {name: parameter(made, name) for name in options["state"]})


def two_calls(cls: Any, run: Run) -> dict[str, Any]:
    """Calls one module on two inputs of the same shape: what it kept of the first call must not come back in the second.

    options: as for `module`; beside, the arguments of a second module, made before the calls: what one module
    keeps must not change the other. args: the two inputs.
    """
    made = build(cls, run.options)
    cls(*run.options["beside"])
    made.train(run.options.get("mode", "eval") == "train")
    first, second = run.args
    return {"result": mark_result(made(first)), "second call": mark_result(made(second), "second call")}


def set_eps(name: str, own: dict[str, Any]) -> None:
    """Gives a normalization torch's default. own: its attributes. Raises ContractError where what it was made with is not small."""
    eps = own.get("eps", EPS)
    if not 0 <= eps <= MOST_EPS:
        raise ContractError(
            f"The nn.LayerNorm {name} was made with eps={eps}; expected a small number, such as torch's default 1e-05."
        )
    own["eps"] = EPS


def identities(owned: dict[str, Any], names: Iterable[str]) -> Any:
    """Which object is there by each name; 0 for none."""
    return array([id(owned[name]) if name in owned else 0 for name in names], int64)


def addresses(owned: dict[str, Any]) -> Any:
    """At which the numbers of each parameter begin and end."""
    return array([T.memory(value) for value in owned.values()], int64).reshape(-1, 2)


def trainable(owned: dict[str, Any]) -> Any:
    return array([T.get(value, "requires_grad") for value in owned.values()], bool)


SEEN = (
    "lost",
    "made",
    "asked",
    "own",
    "strayed",
    "sure",
    "kept",
)  # what `_Own` notes, and in which of its two tables a result is


def open_question(seen: Collection[str]) -> bool:
    """Whether it is unknown on which device a result would be: neither known to stay where it was made, nor surely to follow."""
    stays = ("lost" in seen or "made" in seen) and "asked" not in seen
    return not stays and not (follows(seen) and "sure" in seen)


def follows(seen: Collection[str]) -> bool:
    """Whether a result was computed of the module's own tensors and its input alone, under `_Own` from beginning to end."""
    return "own" in seen and "strayed" not in seen and "lost" not in seen


_CROSSES = frozenset(
    "to type_as copy_ cpu cuda new_tensor tensor as_tensor asarray __getitem__ __setitem__".split()
)  # devices may differ
_TO_SECOND = ("to", "type_as")  # the result is where the second argument is, not the first
_INTO = ("copy_", "__setitem__")  # it stays where the first argument is


class _Own(TorchFunctionMode):
    """Knows a module's own tensors and its input, which are together on any device, and what is computed of these alone.

    To see that of nothing else is computed takes no time; to compute on torch's meta device makes torch import a computer algebra
    in a second. lost: one of them met a tensor that was made here for no device and so stays where it was.
    sure: nothing was made for a device that was named, or moved, which may be the right one or not; their own is the right one.
    strayed: one of them met a tensor that is neither theirs nor made meanwhile. asked: for a tensor's device.
    plain: what the module keeps as plain attributes, which stays where it is, too; kept: there is such a thing.
    """

    def __init__(self, tensors: Iterable[Any], plain: Iterable[Any]) -> None:
        super().__init__()
        self._own = {id(tensor): tensor for tensor in tensors}  # kept, so that no other gets its id
        self._made: dict[int, Any] = {id(tensor): tensor for tensor in plain}  # and here, of numbers alone
        self._strayed, self._asked, self.lost, self.sure, self._kept = False, False, False, True, bool(self._made)
        self._places: dict[int, Any] = {}  # their device, as it was asked for

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        given = [*args, *(kwargs or {}).values()]
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        result = [*result] if name == "__iter__" else result
        used = list(_tensors(given))
        if is_a(result, T.device):  # what is kept may be made anew where it is on another device
            self._asked = True
            self._places |= {id(result): result} if all(id(tensor) in self._own for tensor in used) else {}
        places = [value for value in given if is_a(value, T.device)]
        if name == "cpu" or name == "to" and "cpu" in [value for value in given if is_a(value, str)]:
            result = result.view_as(result)  # moved to where it is, it would be the same object
            self._note(result, self._made)
        elif places or (kwargs or {}).get("device") is not None:
            self.sure &= bool(places) and all(id(place) in self._places for place in places)
            self._note(result, self._own)
        elif all(id(tensor) in self._own for tensor in used):
            self._note(result, self._own if used else self._made)
        elif all(id(tensor) in self._made for tensor in used):
            self._note(result, self._made)
        elif not all(id(tensor) in self._own or id(tensor) in self._made for tensor in used):
            self._strayed = True
        elif name in _CROSSES:
            here = id(given[name in _TO_SECOND]) in self._own
            self.sure &= here
            self._note(result, self._made if name in _INTO and not here else self._own)
        else:  # only a single number may come from elsewhere
            self.lost |= any(T.get(tensor, "shape") for tensor in used if id(tensor) in self._made)
            self._note(result, self._own)
        return iter(result) if name == "__iter__" else result

    def _note(self, result: Any, among: dict[int, Any]) -> None:
        among |= {id(tensor): tensor for tensor in _tensors(result)}

    def seen(self, result: Any) -> set[str]:
        """Which of SEEN hold, for the result of what ran under this mode."""
        results = list(_tensors(result))
        made, own = any(id(one) in self._made for one in results), all(id(one) in self._own for one in results)
        holds = (self.lost, made, self._asked, own and bool(results), self._strayed, self.sure, self._kept)
        return {name for name, one in zip(SEEN, holds, strict=True) if one}


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors in something, however deep in lists and tuples."""
    if is_a(value, T.Tensor):
        yield value
    elif is_a(value, tuple) or is_a(value, list):
        for item in value:
            yield from _tensors(item)


def on_device(candidate: Any, run: Run) -> dict[str, Any]:
    """Of what a result was computed, and on which device that is where this leaves it open; see `device_parts`.

    args: tensors, or lists and tuples of them. options: as for `module`, with init where a module is to be made.
    """
    return device_parts(build(candidate, run.options).eval() if "init" in run.options else candidate, run)


def device_parts(function: Any, run: Run, *modules: Any) -> dict[str, Any]:
    """'seen': what `_Own` says of a result, by name; 'device', where that leaves it open: '' where a tensor stayed behind, 'unknown' where
    the numbers decide what runs, which torch's meta device does not have. modules: what else moves with the inputs."""
    modules = [one for one in (function, *modules) if is_a(one, T.Module)]
    owned = [
        tensor
        for one in modules
        for tensor in (*T.parameters(one).values(), *(each for each, _ in T.buffers(one).values()))
    ]
    own = _Own(
        [*_tensors([*run.args, *run.kwargs.values()]), *owned],
        [tensor for one in modules for tensor in T.plain_tensors(one).values()],
    )
    with own:
        result = function(*run.args, **run.kwargs)
    seen = own.seen(result)
    if "strayed" in seen and any(T.plain_tensors(one) for one in modules):
        seen.add("kept")
    parts = {"seen": " ".join(name for name in SEEN if name in seen)}
    if not open_question(seen) or not any(True for _ in _tensors(result)):
        return parts
    for one in modules:
        T.move(one, "meta")
    return {**parts, "device": _on_meta(function, run)}


def _on_meta(function: Any, run: Run) -> str:
    """The device of what a function gives on torch's meta device; '' where it gives nothing, since a tensor stayed behind."""
    try:
        result = function(*_moved(run.args), **dict(zip(run.kwargs, _moved(run.kwargs.values()), strict=True)))
    except NotImplementedError:  # it is a RuntimeError, too
        return "unknown"
    except RuntimeError as error:
        return "" if "device" in str(error) else "unknown"  # torch's words for it depend on the operation that met it
    devices = {T.get(one, "device").type for one in _tensors(result)}
    return devices.pop() if len(devices) == 1 else ""


def _moved(values: Iterable[Any]) -> list[Any]:
    return [
        T.to_device(one, "meta")
        if is_a(one, T.Tensor)
        else type(one)(_moved(one))
        if type(one) in (tuple, list)
        else one
        for one in values
    ]

"""What the probes of several lessons do: modules that are called more than once, and what is read of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch  # without it these are of no use, and their module is not made
from numpy import array, int64
from torch.utils._python_dispatch import TorchDispatchMode

from grader.worker.originals import BUILTINS, is_a, of_torch
from grader.worker.probes import ContractError, Run, build, gradients, mark_result, module as run_module, parameter

__builtins__ = BUILTINS

T = of_torch()
# Of every nn.LayerNorm that is judged: torch's default, given like a weight where a module has a small one.
EPS, MOST_EPS = 1e-5, 1e-4


def after_earlier_calls(cls: Any, run: Run) -> dict[str, Any]:
    """As `module`, of a module that has been called before: what it keeps of a call, of its weights too, is to change no later one.

    options: as for `module`; earlier (the arrays of each earlier call).
    """
    made = build(cls, {**run.options, "state": {}})  # the weights come later, as from a training step
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


MADE, KEPT = "made", "kept"  # what stays behind where inputs and modules lie on another device; KEPT by a module
_ELSEWHERE = "meta"  # by its name, the one that every computer has
_CROSSES = frozenset(
    "_to_copy copy_ index index_put index_put_ _index_put_impl_".split()
)  # operators whose tensors may be on two devices


class _There(torch.Tensor):
    """A tensor that says that it is on another device; its numbers, `here`, are on this one.

    Of tensors that are on torch's meta device there are no numbers to decide what runs, and many operators make torch import a computer
    algebra there, in a second.
    """

    here: Any
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, here: Any) -> Any:
        shape, strides, offset = here.size(), here.stride(), here.storage_offset()
        made = _wrap(cls, shape, strides=strides, storage_offset=offset, dtype=here.dtype, device=_ELSEWHERE)
        made.here = here
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return _run(func, args, kwargs or {})


_wrap = torch.Tensor._make_wrapper_subclass  # type: ignore[attr-defined]


class _Elsewhere(TorchDispatchMode):
    """Knows, of tensors that are made or moved meanwhile, for which device that is."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would import torch's compiler

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return _run(func, args, kwargs or {})


class _Behind(RuntimeError):
    """What torch raises where an operator gets tensors of two devices. tensors: those that stayed here."""

    def __init__(self, tensors: list[Any]) -> None:
        super().__init__("Expected all tensors to be on the same device, but found at least two devices")
        self.tensors = tensors


def _run(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What an operator gives, on the device on which it would lie. Raises _Behind as torch would; a single number may come from here.

    What torch has made on the other device unseen, in another thread or of numbers, has no numbers: zeros stand for them.
    """
    name, device = func._schema.name.partition("::")[2], kwargs.get("device")
    used = [*_tensors([*args, *kwargs.values()])]
    here = {
        id(one): one.here if type(one) is _There else torch.zeros_like(one, device="cpu")
        for one in used
        if _is_there(one)
    }
    if here and name not in _CROSSES:
        behind = [one for one in used if id(one) not in here and one.dim()]
        if behind:
            raise _Behind(behind)
        if name == "_fused_sdp_choice":
            return 0  # the one way that is made of other operators
    given, named = _each([[*args], [*kwargs.values()]], lambda one: here.get(id(one), one))
    kwargs = dict(zip(kwargs, named, strict=True))
    result = func(*given, **(kwargs if device is None else {**kwargs, "device": "cpu"}))
    if device is not None:
        goes = device.type == _ELSEWHERE
    else:
        goes = id(used[0]) in here if name in _CROSSES else bool(here)
    known = {id(here[id(one)]): one for one in used if id(one) in here}  # what is written into stays the same object
    return _each(result, lambda one: known[id(one)] if id(one) in known else _There(one)) if goes else result


def _is_there(tensor: Any) -> bool:
    return T.get(tensor, "device").type == _ELSEWHERE


def _there(tensor: Any) -> Any:
    return _There(T.copy(tensor))


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Something with each of the tensors in it changed."""
    if is_a(value, T.Tensor):
        return change(value)
    return type(value)(_each(one, change) for one in value) if type(value) in (tuple, list) else value


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors in something, however deep in lists and tuples."""
    if is_a(value, T.Tensor):
        yield value
    elif is_a(value, tuple) or is_a(value, list):
        for item in value:
            yield from _tensors(item)


def on_device(candidate: Any, run: Run) -> dict[str, Any]:
    """What would stay behind if the inputs, and the module, lay on another device; see `device_parts`.

    args: tensors, or lists and tuples of them. options: as for `module`, with init where a module is to be made.
    """
    return device_parts(build(candidate, run.options).eval() if "init" in run.options else candidate, run)


def device_parts(function: Any, run: Run, *modules: Any) -> dict[str, Any]:
    """'behind': '' where all follows the inputs to another device, else MADE or KEPT. modules: what else moves with the inputs.

    The first call is an ordinary one, which may keep something for the next.
    """
    modules = [one for one in (function, *modules) if is_a(one, T.Module)]
    plain = [tensor for one in modules for tensor in T.plain_tensors(one).values()]
    function(*run.args, **run.kwargs)
    kept = [T.storage(tensor).data_ptr() for one in modules for tensor in T.plain_tensors(one).values()]
    try:
        with _Elsewhere():
            for one in modules:
                T.change(one, _there)
            result = function(*_each(run.args, _there), **{key: _each(one, _there) for key, one in run.kwargs.items()})
    except _Behind as error:
        behind = KEPT if any(T.storage(one).data_ptr() in kept for one in error.tensors) else MADE
    except (RuntimeError, TypeError):  # of what no such tensor can do: `tolist`; the ordinary call came to its end
        behind = ""
    else:
        behind = "" if all(_is_there(one) for one in _tensors(result)) else MADE
    return {"behind": KEPT if behind and plain else behind}

"""Lesson 06: attention with a mask, and a module that carries one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from numpy import float32, zeros
from torch.overrides import TorchFunctionMode

from ..originals import BUILTINS, is_a, of_torch
from ..values import Marked
from . import ContractError, Run, build, differentiable, gradients, returned

__builtins__ = BUILTINS


def attend(function: Any, run: Run) -> dict[str, Any]:
    """Calls function(q, k, v[, mask]) and takes its gradients.

    options: output_only (True leaves the weights aside, whose dtype is free in half precision);
    none_is_zero (True: a gradient may be None, as where no row sees a key).
    """
    result = function(*run.args, **run.kwargs)
    wanted = differentiable(run)
    parts: dict[str, Any] = {"result": returned(result)}
    if run.options.get("output_only"):
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise ContractError(f"A {type(result).__name__} was returned; expected two things: (output, weights).")
        parts = {"output": result[0]}
    found = gradients(result, wanted)
    if run.options.get("none_is_zero"):
        found = {name: _or_zeros(run, value) for name, value in found.items()}
    return {**parts, **found}


def _or_zeros(run: Run, gradient: Marked) -> Marked:
    """A gradient, zeros where none arrives."""
    if gradient.value is not None:
        return gradient
    return replace(gradient, value=zeros(tuple(of_torch().get(run.named()[gradient.of], "shape")), float32))


def buffer(cls: Any, run: Run) -> dict[str, Any]:
    """How a module keeps its mask: as a buffer, outside of state_dict, and on the device that the module is on.

    options: as for `module`; max_len. args: (x,).
    """
    torch, made = of_torch(), build(cls, run.options).eval()
    made(*run.args)  # a buffer may be filled by the first call
    buffers = torch.buffers(made).values()
    masks = [kept for buffer, kept in buffers if torch.numel(buffer) >= run.options["max_len"] ** 2]
    own = _Own([run.args[0], *torch.parameters(made).values(), *(buffer for buffer, _ in buffers)], torch.plain(made).values())
    with own:
        result = made(*run.args)
    followed = own.has(result)
    if masks and is_a(result, torch.Tensor) and not own.stays(result) and not (followed and own.sure):
        followed = _on_meta(made, run.args[0])
    return {
        "the mask is a buffer": bool(buffers),
        "a buffer holds the mask for max_len tokens": bool(masks),
        "the mask is saved in state_dict": any(masks),
        "everything follows the module to another device": followed,
    }


_CROSSES = frozenset("to type_as copy_ cpu cuda new_tensor tensor as_tensor asarray __getitem__ __setitem__".split())  # devices may differ


class _Own(TorchFunctionMode):
    """Knows a module's own tensors and its input, which are together on any device, and what is computed of these alone.

    To see that of nothing else is computed takes no time; to compute on torch's meta device makes torch import a computer algebra
    in a second. lost: one of them met a tensor that was made here for no device and so stays where it was.
    sure: nothing was made for a device that was named, or moved, which may be the right one or not.
    plain: what the module keeps as plain attributes, which stays where it is, too.
    """

    def __init__(self, tensors: list[Any], plain: Iterable[Any]) -> None:
        super().__init__()
        self._own = {id(tensor): tensor for tensor in tensors}  # kept, so that no other gets its id
        self._made: dict[int, Any] = {id(tensor): tensor for tensor in plain}  # and here, of numbers alone
        self._strayed, self._asked, self.lost, self.sure = False, False, False, True

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        given = [*args, *(kwargs or {}).values()]
        result = func(*args, **(kwargs or {}))
        used = list(_tensors(given))
        self._asked |= is_a(result, of_torch().device)  # what is kept may be made anew where it is on another device
        if any(is_a(value, of_torch().device) for value in given) or (kwargs or {}).get("device") is not None:
            self.sure = False
            self._note(result, self._own)
        elif all(id(tensor) in self._own for tensor in used):
            self._note(result, self._own if used else self._made)
        elif all(id(tensor) in self._made for tensor in used):
            self._note(result, self._made)
        elif not all(id(tensor) in self._own or id(tensor) in self._made for tensor in used):
            self._strayed = True
        elif getattr(func, "__name__", "") in _CROSSES:
            self.sure = False
            self._note(result, self._own)
        else:  # only a single number may come from elsewhere
            self.lost |= any(of_torch().get(tensor, "shape") for tensor in used if id(tensor) in self._made)
            self._note(result, self._own)
        return result

    def _note(self, result: Any, among: dict[int, Any]) -> None:
        among |= {id(tensor): tensor for tensor in _tensors(result)}

    def stays(self, result: Any) -> bool:
        """Whether it is known to be on the device where it was made, or computed with something that is."""
        return (self.lost or id(result) in self._made) and not self._asked

    def has(self, result: Any) -> bool:
        """Whether it was computed of these alone, under this mode from beginning to end."""
        return id(result) in self._own and not self._strayed and not self.lost


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors in something, however deep in lists and tuples."""
    if is_a(value, of_torch().Tensor):
        yield value
    elif is_a(value, tuple) or is_a(value, list):
        for item in value:
            yield from _tensors(item)


def _on_meta(made: Any, x: Any) -> bool:
    """Whether a module gives a tensor of torch's meta device once it has been moved there with all that is registered."""
    torch = of_torch()
    torch.move(made, "meta")
    try:
        result = made(torch.moved(x, "meta"))
    except RuntimeError as error:
        if "device" not in str(error):
            raise
        return False  # a tensor stayed behind; torch's words for it depend on the operation that met it
    return is_a(result, torch.Tensor) and torch.get(result, "device").type == "meta"

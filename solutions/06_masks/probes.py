"""Lesson 06: a module that carries a mask."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from numpy import array, int64
from torch.overrides import TorchFunctionMode

from grader.worker.originals import BUILTINS, is_a, of_torch
from grader.worker.probes import Run, build

__builtins__ = BUILTINS


def buffer(cls: Any, run: Run) -> dict[str, Any]:
    """What buffers a module has, of what its result was computed, and on which device that is once the module was moved.

    options: as for `module`; max_len. args: (x,). Parts: 'buffers', the numbers of each and whether `state_dict` holds it; 'seen',
    what `_Own` says of the result, by name; 'device', where that leaves it open: '' where a tensor stayed behind.
    """
    torch, made = of_torch(), build(cls, run.options).eval()
    made(*run.args)  # a buffer may be filled by the first call
    buffers = torch.buffers(made).values()
    own = _Own(
        [run.args[0], *torch.parameters(made).values(), *(buffer for buffer, _ in buffers)], torch.plain(made).values()
    )
    with own:
        result = made(*run.args)
    sizes = array([(torch.numel(buffer), kept) for buffer, kept in buffers], int64).reshape(-1, 2)
    seen = own.seen(result)
    parts = {"buffers": sizes, "seen": " ".join(name for name in SEEN if name in seen)}
    if (
        not open_question(seen)
        or not is_a(result, torch.Tensor)
        or not (sizes[:, 0] >= run.options["max_len"] ** 2).any()
    ):
        return parts
    return {**parts, "device": _on_meta(made, run.args[0])}


SEEN = (
    "lost",
    "made",
    "asked",
    "own",
    "strayed",
    "sure",
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


class _Own(TorchFunctionMode):
    """Knows a module's own tensors and its input, which are together on any device, and what is computed of these alone.

    To see that of nothing else is computed takes no time; to compute on torch's meta device makes torch import a computer algebra
    in a second. lost: one of them met a tensor that was made here for no device and so stays where it was.
    sure: nothing was made for a device that was named, or moved, which may be the right one or not.
    strayed: one of them met a tensor that is neither theirs nor made meanwhile. asked: for a tensor's device.
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

    def seen(self, result: Any) -> set[str]:
        """Which of SEEN hold, for the result of what ran under this mode."""
        holds = (self.lost, id(result) in self._made, self._asked, id(result) in self._own, self._strayed, self.sure)
        return {name for name, one in zip(SEEN, holds, strict=True) if one}


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors in something, however deep in lists and tuples."""
    if is_a(value, of_torch().Tensor):
        yield value
    elif is_a(value, tuple) or is_a(value, list):
        for item in value:
            yield from _tensors(item)


def _on_meta(made: Any, x: Any) -> str:
    """The device of what a module gives once it has been moved to torch's meta device with all that is registered.

    '' where it gives nothing, since a tensor stayed behind.
    """
    torch = of_torch()
    torch.move(made, "meta")
    try:
        result = made(torch.moved(x, "meta"))
    except RuntimeError as error:
        if "device" not in str(error):
            raise
        return ""  # torch's words for it depend on the operation that met it
    return torch.get(result, "device").type if is_a(result, torch.Tensor) else ""

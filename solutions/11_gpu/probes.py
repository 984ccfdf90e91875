"""How the answers of lesson 11 are exercised: with pretended devices, and with the operator watched.

Its stopwatch is exercised in probes_clock.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from numpy import array, int64
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from grader.worker.originals import BUILTINS, is_a, of_torch
from grader.worker.probes import ContractError, Run, build, gradients, mark_result, parameter

__builtins__ = BUILTINS

T = of_torch()

ACCELERATOR = getattr(torch, "accelerator", SimpleNamespace())  # since torch 2.6


def pick(function: Any, run: Run) -> dict[str, Any]:
    """Calls pick_device() while torch says what the case pretends.

    options: cuda and mps, each 'no build', 'build' (torch has it, the machine does not) or 'here'; gpus, their number; other, whether there
        is an Intel GPU instead.
    """
    options = run.options
    forget = getattr(
        function, "cache_clear", None
    )  # an answer may be kept for the session: each case is a session of its own
    if callable(forget):
        forget()
    with simulated_devices(options["cuda"], options["mps"], options.get("gpus", 1), options.get("other", False)):
        result = function()
    if not is_a(result, T.device):
        raise ContractError(f"A {type(result).__name__} came back; expected a torch.device.")
    return {"device type": mark_result(result.type)}


@contextlib.contextmanager
def simulated_devices(cuda: str, mps: str, gpus: int = 1, other: bool = False) -> Iterator[None]:
    """torch's answers about devices, as on a machine with those; functions imported by name obey it, too."""
    built = {"cuda": cuda != "no build", "mps": mps != "no build", "xpu": other}
    here = {"cuda": cuda == "here", "mps": mps == "here", "xpu": other}
    count = gpus if here["cuda"] else 0
    first = next((name for name in built if built[name]), None)
    first = next((name for name in here if here[name]), first)

    def current(check_available: bool = False) -> torch.device | None:
        return torch.device(first) if first and (here[first] or not check_available) else None

    answers = [
        (torch.cuda, "is_available", here["cuda"]),
        (torch.cuda, "device_count", count),
        (torch.cuda, "current_device", 0),
        (torch.cuda, "_is_compiled", built["cuda"]),
        (torch.cuda, "_nvml_based_avail", False),
        (torch._C, "_cuda_getDeviceCount", count),
        (torch.backends.cuda, "is_built", built["cuda"]),
        (torch.backends.mps, "is_available", here["mps"]),
        (torch.backends.mps, "is_built", built["mps"]),
        (torch._C, "_mps_is_available", here["mps"]),
        (torch, "has_mps", built["mps"]),
        (ACCELERATOR, "is_available", any(here.values())),
        (ACCELERATOR, "device_count", count or int(here["mps"] or other)),
        (torch.xpu, "is_available", other),
        (torch.xpu, "device_count", int(other)),
        (torch.mps, "device_count", int(here["mps"])),
    ]
    by_name = torch.backends.mps.is_available  # keeps its answer, so it is asked anew here and afterwards
    with contextlib.ExitStack() as stack:
        for owner, name, answer in answers:
            stack.enter_context(mock.patch.object(owner, name, lambda *_, answer=answer: answer, create=True))
        if hasattr(torch.mps, "is_available"):
            stack.enter_context(mock.patch.object(torch.mps, "is_available", lambda: here["mps"]))
        stack.enter_context(mock.patch.object(ACCELERATOR, "current_accelerator", current, create=True))
        forget = getattr(by_name, "cache_clear", lambda: None)
        forget()
        stack.callback(forget)
        yield


class _Seen:
    """What both modes below note. It is not kept on them: a learner's code can reach the modes of the moment."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []  # of the operator, with what it was given
        self.inside = False
        self.shapes: dict[tuple[int, ...], None] = {}  # in which tensors end that were made outside of it


_seen = _Seen()


class _Watched(TorchFunctionMode):
    """Notes each call of the operator: its shapes and what it was told."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "").partition(".")[0] != "scaled_dot_product_attention" or _seen.inside:
            return func(*args, **kwargs)
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        _seen.calls.append({**dict(zip(names, args, strict=False)), **kwargs})
        _seen.inside = True
        try:
            return func(*args, **kwargs)
        finally:
            _seen.inside = False


class _Squares(TorchDispatchMode):
    """Notes in which two sizes the tensors end that operations outside the operator make."""

    @classmethod
    def _should_skip_dynamo(cls):  # True would import torch's compiler: seconds, for code that is not compiled
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not _seen.inside:
            for item in result if isinstance(result, (tuple, list)) else (result,):
                if is_a(item, T.Tensor):
                    _seen.shapes[tuple(T.get(item, "shape"))[-2:]] = None
        return result


def fast(cls: Any, run: Run) -> dict[str, Any]:
    """Builds the module and runs it with F.scaled_dot_product_attention watched.

    args: x (B, T, d_model). options: as for `module` (init, init_kwargs, state, linear, no_bias, dtype, mode, gradients);
    shorter, a length for a third call, after a second one on x backwards; autocast, True for bfloat16; backend, the name of
    the operator's torch.nn.attention.SDPBackend.
    Parts: 'result', 'second call', 'third call', gradients, 'state_dict'; 'calls', how often the operator was called; of its first
    call 'shapes' (of query, key and value, None where one is missing), 'is_causal' and 'attn_mask' (each as text); 'ends', the last
    two sizes of each tensor that was made outside of it.
    """
    options, (x,) = run.options, run.args
    made = build(cls, options)
    made.train(options.get("mode", "eval") == "train")
    _seen.__init__()
    backend = getattr(SDPBackend, options["backend"]) if options.get("backend") else None
    on_backend = sdpa_kernel(backend) if backend is not None else contextlib.nullcontext()
    with on_backend, torch.autocast("cpu", torch.bfloat16, enabled=bool(options.get("autocast"))):
        with _Watched(), _Squares():
            result = made(x)
        parts: dict[str, Any] = {"result": mark_result(result)}
        if options.get("shorter"):
            parts["second call"] = mark_result(made(x.flip(1)), "second call")
            parts["third call"] = mark_result(made(x[:, : options["shorter"]]), "third call")
    if options.get("gradients"):
        parts |= gradients(result, {"x": x} | {name: parameter(made, name) for name in options["state"]})
    parts["state_dict"] = ", ".join(T.state_dict_names(made))
    ends = array([shape for shape in _seen.shapes if len(shape) == 2], int64).reshape(-1, 2)
    return parts | _call(_seen.calls) | {"calls": len(_seen.calls), "ends": ends}


def _call(calls: list[dict[str, Any]]) -> dict[str, Any]:
    """What the operator was given by its first call."""
    if not calls:
        return {}
    given = calls[0]
    tensors = [given.get(name) for name in ("query", "key", "value")]
    return {
        "shapes": [array(T.get(one, "shape"), int64) if is_a(one, T.Tensor) else None for one in tensors],
        "is_causal": str(bool(given.get("is_causal", False))),
        "attn_mask": type(given.get("attn_mask")).__name__,
    }

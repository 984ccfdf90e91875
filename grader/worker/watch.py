"""Which ready-made operations ran while a learner's object was exercised.

The names are public: a worker may know what is forbidden. Three observers, because each alone can be
walked around: a profile hook (Python and C functions, in every thread started meanwhile), torch's function
mode, and torch's dispatch mode (operators reached through `torch.ops` or a captured reference).
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import numpy as np

ATTENTION = frozenset({
    "scaled_dot_product_attention", "multi_head_attention_forward", "_native_multi_head_attention",
    "_scaled_dot_product_attention_math", "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_fused_attention_overrideable", "_scaled_dot_product_attention_math_for_mps",
    "_transformer_encoder_layer_fwd", "_triton_scaled_dot_attention", "_triton_multi_head_attention",
    "_flash_attention_forward", "_efficient_attention_forward", "flex_attention", "varlen_attn",
})  # fmt: skip
SOFTMAX = frozenset({
    "softmax", "log_softmax", "softmin", "gumbel_softmax", "special_softmax", "special_log_softmax",
    "_softmax", "_log_softmax", "_safe_softmax", "_masked_softmax",
})  # fmt: skip
# 'torch' stands for any call into a library that differentiates by itself; one note says that it happened.
GROUPS = {
    "attention": ATTENTION, "softmax": SOFTMAX, "einsum": frozenset({"einsum"}), "torch": frozenset({"torch"}),
}  # fmt: skip
# A learner's own function may be called softmax: only these packages count.
LIBRARIES = ("torch", "scipy", "jax", "tensorflow", "keras", "sklearn", "flax", "mlx", "cupy", "xformers")


def _library(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in LIBRARIES


@contextmanager
def watching(groups: tuple[str, ...]) -> Iterator[list[str]]:
    """Records the watched operations that run inside the block, in order.

    groups: keys of GROUPS; with none, nothing is watched. Yields the list that fills: names, and for
    each einsum 'einsum ADDS LARGEST', its multiply-adds and the elements of its largest operand.
    """
    names = frozenset().union(*(GROUPS[group] for group in groups if group in GROUPS))
    seen: list[str] = []
    if not names:
        yield seen
        return
    with ExitStack() as stack:
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "overrides"):
            for mode in _torch_modes(names, seen):
                stack.enter_context(mode)
        stack.enter_context(_profiled(names, seen))  # last: entering torch's modes is itself a call into torch
        yield seen


@contextmanager
def _profiled(names: frozenset[str], seen: list[str]) -> Iterator[None]:
    all_of_torch = "torch" in names

    def hook(frame: Any, event: str, arg: Any) -> None:  # runs four times for each call of the learner's: see to it that it is short
        if event == "c_call":
            name = getattr(arg, "__name__", None)
            if name in names and (_library(getattr(arg, "__module__", None)) or _of_torch(arg)):
                seen.append(name)
            elif all_of_torch and "torch" not in seen and _of_torch(arg):
                seen.append("torch")
        elif event == "call":
            name = frame.f_code.co_name
            if name in names:
                module = frame.f_globals.get("__name__")
                if name == "einsum" and str(module).startswith("numpy."):
                    seen.append("einsum {} {}".format(*einsum_size(frame.f_locals.get("operands", ()))))
                elif _library(module):
                    seen.append(name)
            elif all_of_torch and "torch" not in seen and _library(frame.f_globals.get("__name__")):
                seen.append("torch")

    before, before_threads = sys.getprofile(), threading.getprofile()
    sys.setprofile(hook)
    threading.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(before_threads)


def einsum_size(operands: tuple) -> tuple[int, int]:
    """(multiply-adds, elements of the largest operand) of an einsum call; (0, 0) where it forms no product.

    operands: as NumPy takes them: 'bqd,bkd->bqk', q, k; or the list form q, [0, 1, 2], k, [0, 3, 2], ...
    Multiply-adds are the product of the sizes of all indices, as in a plain nested loop.
    """
    try:
        if isinstance(operands[0], str):
            arrays = [np.asarray(item) for item in operands[1:]]
            terms: list[Any] = operands[0].replace(" ", "").partition("->")[0].replace("...", "\u2026").split(",")
        else:
            paired = range(len(operands) // 2)
            arrays = [np.asarray(operands[2 * i]) for i in paired]
            terms = [["\u2026" if item is Ellipsis else item for item in operands[2 * i + 1]] for i in paired]
        if len(arrays) < 2:
            return 0, 0
        sizes: dict[Any, int] = {}
        for term, array in zip(terms, arrays, strict=True):
            for label, size in zip(_labels(list(term), array.ndim), array.shape, strict=True):
                sizes[label] = max(size, sizes.get(label, 1))
        return math.prod(sizes.values()), max(array.size for array in arrays)
    except (TypeError, ValueError, IndexError):
        return 0, 0


def _labels(labels: list[Any], ndim: int) -> list[Any]:
    """Gives the axes of an ellipsis names of their own, counted from the right as einsum aligns them."""
    if "\u2026" not in labels:
        return labels
    at = labels.index("\u2026")
    hidden = ndim - (len(labels) - 1)
    return labels[:at] + [("axis", hidden - i) for i in range(hidden)] + labels[at + 1 :]


def _of_torch(function: Any) -> bool:
    """True for a C function bound to one of torch's own types or tensors, such as `Tensor.softmax`."""
    owner = getattr(function, "__self__", None)
    owner_type = owner if isinstance(owner, type) else type(owner)
    return _library(getattr(owner_type, "__module__", None))


def _torch_modes(names: frozenset[str], seen: list[str]) -> list[Any]:
    return [mode(names, seen) for mode in _mode_classes()]


def prepare() -> None:
    """Makes what watching torch needs, so that forks of this process have it."""
    _mode_classes()


@cache
def _mode_classes() -> tuple[type, type]:
    """Made once, when torch is there: a class costs more than the calls that it watches."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Functions(TorchFunctionMode):
        def __init__(self, names: frozenset[str], seen: list[str]) -> None:
            super().__init__()
            self.names, self.seen = names, seen

        def __torch_function__(self, func, types, args=(), kwargs=None):
            name = getattr(func, "__name__", "")
            if name in self.names:
                self.seen.append(name)
            return func(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls):  # True would import torch's compiler: three seconds, for code that is not compiled
            return False

        def __init__(self, names: frozenset[str], seen: list[str]) -> None:
            super().__init__()
            self.names, self.seen = names, seen

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            name = "torch" if "torch" in self.names else func.__name__.partition(".")[0]
            if name in self.names:
                self.seen.append(name)
            return func(*args, **(kwargs or {}))

    return Functions, Operators

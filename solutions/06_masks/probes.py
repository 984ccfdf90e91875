"""Lesson 06: a module that carries a mask."""

from __future__ import annotations

from typing import Any

from numpy import array, int64

from grader.worker.originals import BUILTINS
from grader.worker.probes import Run, build

from ..shared.probes import T, device_parts

__builtins__ = BUILTINS


def buffer(cls: Any, run: Run) -> dict[str, Any]:
    """What buffers a module has, and what stays behind once the module was moved.

    options: as for `module`; max_len. args: (x,). Parts: 'buffers', the numbers of each and whether `state_dict` holds it; those of
    `device_parts`.
    """
    made = build(cls, run.options).eval()
    made(*run.args)  # a buffer may be filled by the first call
    buffers = T.buffers(made).values()
    sizes = array([(T.numel(buffer), kept) for buffer, kept in buffers], int64).reshape(-1, 2)
    return {"buffers": sizes, **device_parts(made, run)}

"""How the answers of lesson 09 are exercised: dropout read off one weight at a time, and a block."""

from __future__ import annotations

from typing import Any

from grader.worker.originals import BUILTINS, is_a, of_torch
from grader.worker.probes import ContractError, Run, build, module as run_module

from ..shared.probes import call_before, set_eps

__builtins__ = BUILTINS

T = of_torch()
CALLS = 2  # in training mode


def dropout(cls: Any, run: Run) -> dict[str, Any]:
    """What a module gives for x twice in evaluation, and CALLS times in training.

    args: x (B, T, d_model). options: as for `module`.
    """
    (x,) = run.args
    made = build(cls, run.options).eval()
    with T.grad_mode(False):
        parts = {"still": made(x), "still again": made(x)}
        made.train()
        return parts | {"moving": [made(x) for _ in range(CALLS)]}


def attention(cls: Any, run: Run) -> dict[str, Any]:
    """As `module`, and the names of what `state_dict` holds and of 'tensors' that are no buffers, which `.to(device)` leaves behind.

    Raises: ContractError also where max_len tokens, the most that are allowed, are refused.
    """
    (x,), max_len = run.args, run.options["init"][2]
    try:
        parts = run_module(cls, run)
    except ValueError as error:
        if x.shape[1] != max_len:
            raise
        raised = f"ValueError: {error}" if str(error) else "ValueError"
        raise ContractError(
            f"{max_len} tokens were refused ({raised}), and max_len is {max_len}; only more should be refused."
        ) from None
    made = build(cls, run.options)
    return {**parts, "state_dict": " ".join(T.state_dict_names(made)), "tensors": " ".join(T.plain_tensors(made))}


def block(cls: Any, run: Run) -> dict[str, Any]:
    """As `module`, with the attributes of a block looked at first.

    options: as for `module`; earlier (the arrays of each earlier call); differs (True: also whether two calls differ, for
    dropout in training).
    """
    options = run.options
    made = build(cls, options)
    for name, wanted in (("ln1", T.LayerNorm), ("ln2", T.LayerNorm), ("mlp", T.Sequential)):
        found = T.submodule(made, name)
        if not is_a(found, wanted):
            found = getattr(made, name, None) if found is None else found
            raise ContractError(
                f"The attribute {name} is a {type(found).__name__}; an nn.{wanted.__name__} is asked for."
            )
        if name != "mlp":
            set_eps(name, next(T.submodules(found))[1])
    call_before(made, run)
    if not options.get("differs"):
        return run_module(lambda *_, **__: made, run)
    made.train()
    with T.grad_mode(False):
        return {"one call": made(*run.args), "another call": made(*run.args)}

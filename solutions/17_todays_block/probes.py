"""How the answers of lesson 17 are exercised: attention with grouped queries, and the block around it."""

from __future__ import annotations

from typing import Any

from grader.worker.originals import BUILTINS, is_a, of_torch
from grader.worker.probes import ContractError, Run, attribute, build, call_watched, mark_result, module as run_module

__builtins__ = BUILTINS

T = of_torch()


def construction(cls: Any, run: Run) -> dict[str, Any]:
    """Builds the module and runs nothing: what must be refused is refused then."""
    build(cls, run.options)
    return {"a module was built, and nothing refused": True}


def attention(cls: Any, run: Run) -> dict[str, Any]:
    """As `module`, and the names of what `state_dict` holds."""
    parts = run_module(cls, run)
    return {**parts, "state_dict": " ".join(T.state_dict_names(build(cls, run.options)))}


def longer_input(cls: Any, run: Run) -> dict[str, Any]:
    """What the module makes of x after it has seen only x's first tokens, and after another module with another base has run."""
    (x,), (*sizes, base) = run.args, run.options["init"]
    made = build(cls, run.options).eval()
    other = build(cls, {**run.options, "init": (*sizes, 10 * base)}).eval()
    made(T.tensor(T.numbers(x)[:, :3]))
    other(x)
    return {"result": mark_result(call_watched(made, run))}


def block(cls: Any, run: Run) -> dict[str, Any]:
    """As `module`, with the two normalizations looked at first: modules with one parameter. 'attn_norm' and 'mlp_norm': its numbers as
    it is made."""
    fresh, begins = build(cls, {**run.options, "state": {}}), {}
    for name in ("attn_norm", "mlp_norm"):
        norm = attribute(fresh, name)
        found = T.parameters(norm) if is_a(norm, T.Module) else {}
        if list(found) != ["weight"]:
            told = f"the parameters {', '.join(found)}" if found else "no parameter"
            raise ContractError(
                f"The attribute {name} is a {type(norm).__name__} with {told}; it should be a module with one, weight."
            )
        begins[name] = T.numbers(found["weight"])
    return {**run_module(cls, run), **begins}

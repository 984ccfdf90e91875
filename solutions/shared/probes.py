"""What the probes of several lessons do: modules that are called more than once, and what is read of parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch  # noqa: F401  # without it these are of no use, and their module is not made
from numpy import array, int64

from grader.worker.originals import BUILTINS, of_torch
from grader.worker.probes import ContractError, Run, build, gradients, module as run_module, parameter, returned

__builtins__ = BUILTINS

T = of_torch()
# Of every nn.LayerNorm that is judged: torch's default, given like a weight where a module has a small one.
EPS, MOST_EPS = 1e-5, 1e-4


def after_others(cls: Any, run: Run) -> dict[str, Any]:
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
    return {"result": returned(made(first)), "second call": returned(made(second), "second call")}


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

"""Lesson 04: a function that draws from a generator cannot be compared number by number."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import ContractError, Run

_BITS = 128  # of a PCG64 state, which a step takes to state * _FACTOR + inc (O'Neill 2014, section 6.3.4)
_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645


def sampled(function: Any, run: Run) -> dict[str, Any]:
    """Calls function(d_k, n_samples, rng); for few numbers under conditions that must or must not matter.

    options: seed (of the generator); count, True for the parts after the first in place of it. Parts: 'standard deviation';
    'repeats', whether the generator in the same state gives the same while NumPy's global generator is in another;
    'varies', whether another generator gives something else; 'numbers drawn' from the generator, as `drawn` counts them.
    """
    d_k, n_samples = run.args
    seed = run.options["seed"]
    rng = np.random.default_rng(seed)
    np.random.seed(1)
    first = function(d_k, n_samples, rng)
    if not run.options.get("count"):
        return {"standard deviation": first}
    np.random.seed(2)
    again = function(d_k, n_samples, np.random.default_rng(seed))
    other = function(d_k, n_samples, np.random.default_rng(seed + 1))
    return {
        "repeats": bool(np.all(first == again)), "varies": bool(np.all(first != other)),
        "numbers drawn": drawn(np.random.default_rng(seed), rng, 2 * d_k * n_samples),
    }  # fmt: skip


def small_samples(function: Any, run: Run) -> dict[str, Any]:
    """The results of many calls with few samples, one generator for all; options: seed, calls, more.

    Parts: their mean, the mean of their squares, and below what a tenth of them lies; how many numbers a call draws, and
    how many one with `more` samples draws.
    """
    d_k, n_samples = run.args
    calls, more = run.options["calls"], run.options["more"]
    rng, start = (np.random.default_rng(run.options["seed"]) for _ in range(2))
    results = [function(d_k, n_samples, rng) for _ in range(calls)]
    try:
        numbers = np.array([float(result) for result in results])
    except (TypeError, ValueError):
        raise ContractError(f"An object of type {type(results[0]).__name__} was returned; one number was asked for.") from None
    few = drawn(start, rng, calls * 2 * d_k * n_samples) / calls
    start.bit_generator.state = rng.bit_generator.state
    for _ in range(20):
        function(d_k, more, rng)
    many = drawn(start, rng, 20 * 2 * d_k * more) / 20
    return {
        "mean result": float(numbers.mean()), "mean square": float((numbers**2).mean()),
        "a tenth below": float(np.quantile(numbers, 0.1)),
        "drawn": few if few >= 0 else -1.0, "drawn for more": many if many >= 0 else -1.0,
    }  # fmt: skip


def drawn(start: np.random.Generator, end: np.random.Generator, wanted: int) -> int:
    """How many numbers of 64 bits lie between two states of a generator; -1 where more than four times `wanted`."""
    count = steps(start.bit_generator.state["state"], end.bit_generator.state["state"])
    return count if count <= 4 * wanted + 20 else -1


def steps(start: dict[str, int], end: dict[str, int]) -> int:
    """How many steps of PCG64 lead from one state to another. Bit i of the state repeats after 2**(i + 1) steps: one bit at a time."""
    factor, plus, at, count = _FACTOR, start["inc"], start["state"], 0
    for bit in (1 << i for i in range(_BITS)):
        if (at ^ end["state"]) & bit:
            at = at * factor + plus
            count |= bit
        factor, plus = factor * factor % (1 << _BITS), (factor + 1) * plus % (1 << _BITS)
    return count

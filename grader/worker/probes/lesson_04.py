"""Lesson 04: a function that draws from a generator cannot be compared number by number."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import ContractError, Run


def sampled(function: Any, run: Run) -> dict[str, Any]:
    """Calls function(d_k, n_samples, rng); for few numbers also under conditions that must or must not matter.

    options: seed (of the generator); count, True for the parts after the first. Parts: 'standard deviation'; 'repeats',
    whether the generator in the same state gives the same while NumPy's global generator is in another; 'varies',
    whether another generator gives something else; 'numbers drawn' from the generator, in steps of its state, -1 where
    there were more than twice what was asked for.
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
        "standard deviation": first, "repeats": bool(np.all(first == again)), "varies": bool(np.all(first != other)),
        "numbers drawn": steps(np.random.default_rng(seed), rng, 4 * d_k * n_samples + 20),
    }  # fmt: skip


def small_samples(function: Any, run: Run) -> dict[str, Any]:
    """The mean result of many calls with few samples, one generator for all; options: seed, calls."""
    d_k, n_samples = run.args
    rng = np.random.default_rng(run.options["seed"])
    results = [function(d_k, n_samples, rng) for _ in range(run.options["calls"])]
    try:
        return {"mean result": float(np.mean([float(result) for result in results]))}
    except (TypeError, ValueError):
        raise ContractError(f"A {type(results[0]).__name__} was returned; one number was asked for.") from None


def steps(start: np.random.Generator, end: np.random.Generator, most: int) -> int:
    """How many 64-bit numbers lie between two states of a generator; -1 where more than `most`."""
    bits, goal = start.bit_generator, end.bit_generator.state["state"]
    for count in range(most + 1):
        if bits.state["state"] == goal:
            return count
        bits.advance(1)
    return -1

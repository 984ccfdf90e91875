"""Lesson 04: a function that draws from a generator cannot be compared number by number."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import array, nan, uint32
from numpy.random import MT19937, Generator, default_rng, seed as seed_global

from ..originals import BUILTINS, is_a
from . import ContractError, Run, called, returned

__builtins__ = BUILTINS

_BITS = 128  # of a PCG64 state, which a step takes to state * _FACTOR + inc (O'Neill 2014, section 6.3.4)
_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645
_WORDS = 624  # of a Mersenne Twister's state, which come out before the first new one


def sampled(function: Any, run: Run) -> dict[str, Any]:
    """Calls function(d_k, n_samples, rng).

    options: seed (of the generator); count, True for what more calls give: the generator in the same state while NumPy's
    global one is in another ('again'), another generator ('other'); and 'numbers drawn' by the first, as `drawn` counts them.
    """
    d_k, n_samples = run.args
    seed = run.options["seed"]
    rng = default_rng(seed)
    seed_global(1)
    first = called(function, run, d_k, n_samples, rng)
    if not run.options.get("count"):
        return {"standard deviation": returned(first)}
    seed_global(2)
    again = function(d_k, n_samples, default_rng(seed))
    other = function(d_k, n_samples, default_rng(seed + 1))
    return {
        "standard deviation": first, "again": again, "other": other,
        "numbers drawn": drawn(default_rng(seed), rng, 2 * d_k * n_samples),
    }  # fmt: skip


def small_samples(function: Any, run: Run) -> dict[str, Any]:
    """The 'results' of many calls with few samples, one generator for all; options: seed, calls; more, a number of samples.

    'drawn', 'drawn for more': how many numbers a call draws, and how many one with `more` samples draws, where that is given.
    """
    d_k, n_samples = run.args
    calls, more = run.options["calls"], run.options.get("more")
    rng, start = (default_rng(run.options["seed"]) for _ in range(2))
    results = [function(d_k, n_samples, rng) for _ in range(calls)]
    try:
        numbers = array([float(result) for result in results])
    except (TypeError, ValueError):
        raise ContractError(f"An object of type {type(results[0]).__name__} was returned; expected one number.") from None
    if more is None:
        return {"results": numbers}
    few = drawn(start, rng, calls * 2 * d_k * n_samples) / calls
    start.bit_generator.state = rng.bit_generator.state
    for _ in range(20):
        function(d_k, more, rng)
    many = drawn(start, rng, 20 * 2 * d_k * more) / 20
    return {"results": numbers, "drawn": few if few >= 0 else -1.0, "drawn for more": many if many >= 0 else -1.0}


def used(function: Any, run: Run) -> dict[str, Any]:
    """What the function makes of numbers that are all the same, and of those of which a third differs.

    options: same, other (words of 32 bits that the generator gives). 'words drawn': of those that are all the same; -1 where it
    were more than `_WORDS`, the most that can be laid down.
    """
    d_k, n_samples = run.args
    same, other = run.options["same"], run.options["other"]
    rng = giving([same] * _WORDS)
    laid = rng.bit_generator.state["state"]
    results = {"all the same": _root(lambda: function(d_k, n_samples, rng))}
    end = rng.bit_generator.state["state"]
    words = end["pos"] if bytes(end["key"]) == bytes(laid["key"]) else -1
    long = min(words, 4 * d_k * n_samples)  # two words make a float64
    for name, first, last in (("first", 0, long // 3), ("second", long // 3, 2 * long // 3), ("last", 2 * long // 3, long)):
        rng = giving([other if first <= i < last else same for i in range(_WORDS)])
        results[f"the {name} third differs"] = function(d_k, n_samples, rng)
    return {**results, "words drawn": words}


def _root(measured: Callable[[], Any]) -> Any:
    """What it gives; NaN for the root of less than 0. A mean of squares less the square of a mean may be that, by rounding."""
    try:
        value = measured()
    except ValueError:  # from math.sqrt
        return nan
    return nan if is_a(value, complex) else value


def giving(words: list[int]) -> Generator:
    """A generator that gives these words of 32 bits first, _WORDS of them: those of a Mersenne Twister's state, tempered."""
    bits = MT19937()
    state = bits.state
    state["state"] = {"key": array([_untempered(word) for word in words], dtype=uint32), "pos": 0}
    bits.state = state
    return Generator(bits)


@cache
def _untempered(word: int) -> int:
    """The word of a Mersenne Twister's state (Matsumoto and Nishimura 1998) that comes out as `word`."""
    word ^= word >> 18
    word ^= (word << 15) & 0xEFC60000
    made = word
    for _ in range(5):
        made = word ^ ((made << 7) & 0x9D2C5680)
    word = made
    for _ in range(3):
        made = word ^ (made >> 11)
    return made & 0xFFFFFFFF


def drawn(start: Generator, end: Generator, wanted: int) -> int:
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

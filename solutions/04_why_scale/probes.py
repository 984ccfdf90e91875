"""Lesson 04: a function that draws from a generator cannot be compared number by number."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import array, nan, uint32
from numpy.random import MT19937, Generator, default_rng, seed as seed_global

from grader.worker.originals import BUILTINS, is_a
from grader.worker.probes import ContractError, Run, call_function, mark_result

__builtins__ = BUILTINS

MORE = 20  # calls with more samples
WORDS = 624  # of a Mersenne Twister's state, which come out before the first new one


def samples(function: Any, run: Run) -> dict[str, Any]:
    """Calls function(d_k, n_samples, rng).

    options: seed (of the generator); count, True for what more calls give: the generator in the same state while NumPy's
    global one is in another ('again'), another generator ('other'); and the 'states' of the generator before and after the first.
    """
    d_k, n_samples = run.args
    seed = run.options["seed"]
    rng = default_rng(seed)
    seed_global(1)
    first = call_function(function, run, d_k, n_samples, rng)
    if not run.options.get("count"):
        return {"standard deviation": mark_result(first)}
    seed_global(2)
    again = function(d_k, n_samples, default_rng(seed))
    other = function(d_k, n_samples, default_rng(seed + 1))
    return {"standard deviation": first, "again": again, "other": other, "states": _states(default_rng(seed), rng)}


def small_samples(function: Any, run: Run) -> dict[str, Any]:
    """The 'results' of many calls with few samples, one generator for all; options: seed, calls; more, a number of samples.

    'states': of the generator before these calls, after them, and after MORE calls with `more` samples, where that is given.
    """
    d_k, n_samples = run.args
    calls, more = run.options["calls"], run.options.get("more")
    rng, start = (default_rng(run.options["seed"]) for _ in range(2))
    results = [function(d_k, n_samples, rng) for _ in range(calls)]
    try:
        numbers = array([float(result) for result in results])
    except (TypeError, ValueError):
        raise ContractError(
            f"An object of type {type(results[0]).__name__} was returned; expected one number."
        ) from None
    if more is None:
        return {"results": numbers}
    states = _states(start, rng)
    for _ in range(MORE):
        function(d_k, more, rng)
    return {"results": numbers, "states": [*states, *_states(rng)]}


def generator_use(function: Any, run: Run) -> dict[str, Any]:
    """What the function makes of numbers that are all the same, and of those of which a third differs.

    options: same, other (words of 32 bits that the generator gives). 'words left': those of the generator's state after the
    first call.
    """
    d_k, n_samples = run.args
    same, other = run.options["same"], run.options["other"]
    rng = generator_of([same] * WORDS)
    laid = bytes(rng.bit_generator.state["state"]["key"])
    results = {"all the same": _root(lambda: function(d_k, n_samples, rng))}
    end = rng.bit_generator.state["state"]
    words = end["pos"] if bytes(end["key"]) == laid else -1
    long = min(words, 4 * d_k * n_samples)  # two words make a float64
    for name, first, last in (
        # A little off the thirds: a query of float32 beside a key of float64 takes just a third of the words, and were all of
        # it changed alike, its numbers would still be all the same.
        ("first", 0, 3 * long // 10),
        ("second", 3 * long // 10, 13 * long // 20),
        ("last", 13 * long // 20, long),
    ):
        rng = generator_of([other if first <= i < last else same for i in range(WORDS)])
        results[f"the {name} third differs"] = function(d_k, n_samples, rng)
    return {**results, "words left": array(end["key"])}


def _root(measured: Callable[[], Any]) -> Any:
    """What it gives; NaN for the root of less than 0. A mean of squares less the square of a mean may be that, by rounding."""
    try:
        value = measured()
    except ValueError:  # from math.sqrt
        return nan
    return nan if is_a(value, complex) else value


def generator_of(words: list[int]) -> Generator:
    """A generator that gives these words of 32 bits first, WORDS of them: those of a Mersenne Twister's state, tempered."""
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


def _states(*generators: Generator) -> list[str]:
    """The number in the state of each PCG64, and what it adds at a step."""
    return ["{state} {inc}".format(**one.bit_generator.state["state"]) for one in generators]

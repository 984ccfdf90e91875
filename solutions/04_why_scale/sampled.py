"""How a figure is judged that was measured on random numbers: by what it must be near, and by what changes it."""

import math
from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case
from grader.course.readings import ContractError, flag, numbers
from grader.worker.values import Observation, Part

from .probes import MORE, WORDS, generator_of

_BITS = 128  # of a PCG64 state, which a step takes to state * _FACTOR + inc (O'Neill 2014, section 6.3.4)
_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645
_THIRDS = ("first", "second", "last")


def read_draws(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """What more calls of the function show of where its numbers come from."""
    first, again, other = (numbers(parts[name]) for name in ("standard deviation", "again", "other"))
    d_k, n_samples = case.args
    return {
        "repeats": flag(np.all(first == again)),
        "varies": flag(np.all(first != other)),
        "numbers drawn": _number(_drawn(parts["states"], 0, 2 * d_k * n_samples)),
    }


def _drawn(states: Part, first: int, wanted: int) -> float:
    """How many numbers of 64 bits lie between that state of a generator and the next; infinite where more than four times `wanted`."""
    try:
        (start, plus), (end, other) = (map(int, part.text.split()) for part in states.items[first : first + 2])
    except ValueError:
        raise ContractError("The states of the generator cannot be read.") from None
    count = steps(start, end, plus) if plus == other else math.inf
    return count if count <= 4 * wanted + 20 else math.inf


def steps(start: int, end: int, plus: int) -> int:
    """How many steps of PCG64 lead from one state to another. Bit i of the state repeats after 2**(i + 1) steps: one bit at a time."""
    factor, at, count = _FACTOR, start, 0
    for bit in (1 << i for i in range(_BITS)):
        if (at ^ end) & bit:
            at = at * factor + plus
            count |= bit
        factor, plus = factor * factor % (1 << _BITS), (factor + 1) * plus % (1 << _BITS)
    return count


def _number(value: float) -> Part:
    made = np.array(value)
    return Part("number", made, made.dtype.name)


def read_results(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The mean of the results, the mean of their squares, and below what a tenth of them lies."""
    results = numbers(parts["results"], (case.options["calls"],)).astype(np.float64)
    found = {
        "mean result": results.mean(),
        "mean square": (results**2).mean(),
        "a tenth below": np.quantile(results, 0.1),
    }
    if "more" in case.options:
        d_k, n_samples = case.args
        samples = ("drawn", n_samples, case.options["calls"]), ("drawn for more", case.options["more"], MORE)
        for i, (name, few, calls) in enumerate(samples):
            found[name] = _drawn(parts["states"], i, calls * 2 * d_k * few) / calls
    return {name: _number(float(value)) for name, value in found.items()}


def read_use(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """Whether the result is made of what was drawn: numbers that are all the same do not spread, others do, wherever they stand.

    A spread of 0 may come out as 1e-4 (the root of float32's rounding) or as NaN (that of less than 0).
    """
    same, *others = (
        float(numbers(parts[name], ())) for name in ("all the same", *(f"the {nth} third differs" for nth in _THIRDS))
    )
    laid = generator_of([case.options["same"]] * WORDS).bit_generator.state["state"]["key"]
    unknown = not np.array_equal(numbers(parts["words left"]), laid)  # more were drawn than can be laid down
    return {
        "every number that is drawn counts": flag(
            unknown or (not abs(same) > 1e-2 and all(abs(value) > 1e-3 for value in others))
        )
    }


def judge(case: Case, expected: Observation, got: Observation) -> str | None:
    """Judges a sampled figure by what it must be near, and by what must and must not change it."""
    d_k, n_samples = case.args
    parts = {name: part.array for name, part in got.parts.items()}
    if "every number that is drawn counts" in parts:
        return (
            None
            if parts["every number that is drawn counts"]
            else (
                "The result does not use all the numbers that are drawn from rng: it should be 0 if all of them are equal, and not 0 "
                "if a third of them is changed."
            )
        )
    if "repeats" in parts:
        return _from_rng(case, parts)
    if "mean result" in parts:
        return _few(case, {name: float(value) for name, value in parts.items()})
    root, value = math.sqrt(d_k), parts.get("standard deviation")
    if value is None or value.dtype.kind == "b":
        return "One number was asked for; something else came back."
    if value.shape != ():
        return f"An array of shape {value.shape} came back; one number was asked for."
    if not np.isfinite(value):
        return "The standard deviation is not a finite number."
    if abs(float(value) / root - 1) > 0.1:
        return f"With {n_samples} pairs of length {d_k} the result is {float(value):.4g}; about √{d_k} = {root:.4g} was expected."
    return None


def _from_rng(case: Case, parts: Mapping[str, np.ndarray]) -> str | None:
    d_k, n_samples = case.args
    if not parts["repeats"]:
        return "Some numbers do not come from rng: the same generator state gave two different results."
    if not parts["varies"]:
        return "The numbers do not come from rng: two different generators gave the same result."
    drawn, wanted = float(parts["numbers drawn"]), 2 * d_k * n_samples
    if (
        0.49 * wanted <= drawn <= 3.5 * wanted
    ):  # float32 takes half a step; a rejecting sampler made of uniform numbers nearly three
        return None
    return f"{_count(drawn)} were drawn from rng; {n_samples} pairs of length {d_k} should take {wanted}."


def _count(drawn: float) -> str:
    return "Far more numbers" if math.isinf(drawn) else f"About {drawn:{'.2g' if drawn < 10 else '.0f'}} numbers"


def _few(case: Case, parts: dict[str, float]) -> str | None:
    """Two dot products: a result is their distance, times 1/2 (ddof 0) or 1/sqrt 2 (ddof 1).

    Of length 1 their difference has Laplace's law, so the results are exponentially distributed: their mean is 1/2 (ddof 0) or
    1/sqrt 2 (ddof 1), their mean square twice its square, and a tenth lies below 0.105 of it. The bounds are five times as wide
    as 1500 results stray.
    """
    d_k, n_samples = case.args
    mean = parts["mean result"]
    if not all(math.isfinite(value) for name, value in parts.items() if not name.startswith("drawn")):
        return f"With {n_samples} pairs the standard deviation is not a finite number."
    if "drawn" in parts:
        drawn, drawn_more, more = parts["drawn"], parts["drawn for more"], case.options["more"]
        # In proportion, whatever the sampler: how many numbers a normal one takes is its own affair.
        # Two infinite numbers would be in proportion, too.
        if math.isinf(drawn) or not 0.75 * drawn_more <= drawn * more / n_samples <= 1.33 * drawn_more:
            return (
                f"How many numbers are drawn does not follow n_samples: {_count(drawn).lower()} for {n_samples} pairs, "
                f"{_count(drawn_more).lower()} for {more} pairs."
            )
    if mean == 0:
        return f"With {n_samples} pairs every result is 0; two independent dot products should differ."
    tenth, square = parts["a tenth below"] / mean, parts["mean square"] / mean**2
    results = f"{case.options['calls']} results for {n_samples} pairs of length {d_k}"
    if d_k > 1:
        return _of_sums(tenth, results)
    if not (0.435 < mean < 0.565 or 0.615 < mean < 0.8):
        return (
            "The results do not fit independent pairs of standard-normal numbers: with "
            f"{n_samples} pairs of length 1 the mean result is {mean:.3g}; 0.5 (ddof 0) or 0.71 (ddof 1) is expected."
        )
    if 0.06 < tenth < 0.147 and 1.75 < square < 2.35:
        return None
    near = "" if 0.06 < tenth < 0.147 else f"too {'few' if tenth > 0.1 else 'many'} are close to 0"
    far = "" if 1.75 < square < 2.35 else f"too {'few' if square < 2 else 'many'} are far above the mean"
    return (
        "A query does not meet a key of its own, or one of them is not standard-normal, or the spread is not measured from the "
        f"mean of the dot products: of {results}, {' and '.join(filter(None, (near, far)))}."
    )


def _of_sums(tenth: float, results: str) -> str | None:
    """What is wrong where not the sums spread: a tenth of the distances lies below 0.15 of their mean (of lengths from 4 on).

    A figure made of the single products strays less: with length 8 a tenth lies below 0.55 of the mean. 300 results stray by 0.03.
    """
    if tenth < 0.38:
        return None
    return (
        "The result is not the spread of the dot products, or it is not measured from their mean: two of them are often nearly "
        f"equal, but of {results} too few are close to 0."
    )

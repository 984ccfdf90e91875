"""Lesson 07: positions, as a table that is added, as a rotation, as a bias on the scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from grader.lessons.lesson_07_texts import TEXTS
from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, Mistake, Property, Tensor

Array = np.ndarray


# PO7 in float32, as learners write it. Its angles reach millions of radians, where each spelling rounds to another sine.
GROWN = {
    "times power": lambda p, i, d, base: p * base ** (i / d),
    "by power": lambda p, i, d, base: p / base ** (-i / d),
    "times exp": lambda p, i, d, base: p * torch.exp(i * (math.log(base) / d)),
    "times exp of a quotient": lambda p, i, d, base: p * torch.exp(math.log(base) * i / d),
    "times exp of a share": lambda p, i, d, base: p * torch.exp(i / d * math.log(base)),
    "by exp": lambda p, i, d, base: p / torch.exp(i * (-math.log(base) / d)),
}


def _angles(positions: torch.Tensor, d: int, base: float, bugs: tuple[str, ...]) -> torch.Tensor:
    """Position times frequency, (T, d/2)."""
    for spelling in bugs:
        if spelling in GROWN:
            return GROWN[spelling](positions[:, None], torch.arange(0, d, 2), d, base)
    return (positions[:, None] + ("PO2" in bugs)) * _frequencies(d, base, bugs)


def _frequencies(d: int, base: float, bugs: tuple[str, ...]) -> torch.Tensor:
    """One frequency for each pair of columns, in float64; for odd d one more than there are pairs."""
    base = 10000.0 if "PO3" in bugs else base
    pair = torch.arange((d + 1) // 2, dtype=torch.float64)
    if "PO18" in bugs:  # a single pair has 0 steps to the last one
        steps = max(d // 2 - 1, 1) if "guarded" in bugs else d // 2 - 1
        return torch.exp(pair * (-math.log(base) / steps)) if "in Python" in bugs else base ** (-pair / steps)
    if "PE3" in bugs:
        step = -math.log(base) / d // 2
        return torch.exp((2 * pair if "column steps" in bugs else pair) * step)
    exponent = 2 * pair / d * (2 if "PE1" in bugs else 1) / (2 if "PO6" in bugs else 1)
    if "PO15" in bugs:
        exponent = 0 * exponent
    if "PO36" in bugs:
        if "in integers" in bugs:  # raises where base is one, too
            return base ** (-torch.arange(0, d, 2) // d)
        exponent = exponent.ceil()
    frequencies = base ** (exponent if "PO7" in bugs else -exponent)
    return frequencies / (180 / math.pi) if "PO5" in bugs else frequencies


def _sinusoidal(*bugs: str) -> Callable[..., torch.Tensor]:
    """The reference's table with the named bugs switched on; with none it is right."""

    def sinusoidal_positions(n_positions: int, d_model: int, base: float = 10000.0) -> torch.Tensor:
        if d_model % 2 and "PO1" not in bugs:
            raise ValueError("d_model is odd")
        angles = _angles(torch.arange(n_positions), d_model, base, bugs)
        later = angles
        if "PE2" in bugs:  # the cosine's exponent is one column further, or one pair
            more = (2 if "pair" in bugs else 1) * (2 if "PE1" in bugs else 1) / d_model
            later = angles * (10000.0 if "PO3" in bugs else base) ** -more
        sine, cosine = angles.sin(), later.sin() if "PO9" in bugs else later.cos()
        if "PO4" in bugs:
            sine, cosine = cosine, sine
        if "PO1" in bugs and "assigned" in bugs:
            table = torch.zeros(n_positions, d_model)
            table[:, 0::2] = sine.float()
            table[:, 1::2] = cosine.float()
        elif "PE4" in bugs:
            table = torch.cat((sine, cosine), dim=-1)
        else:
            table = torch.stack((sine, cosine), dim=-1).flatten(-2)
        if "PO1" in bugs and "cut" in bugs:
            table = table[:, :d_model]
        return table.T if "PO8" in bugs else table

    return sinusoidal_positions


def sinusoidal_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("small", "three positions, d_model 4", (3, 4), atol=2e-5)
    for n_positions, d_model in ((5, 2), (1, 6), (4, 4), (7, 10), (6, 12)):
        yield Case(f"{n_positions}-{d_model}", f"n_positions {n_positions}, d_model {d_model}", (n_positions, d_model), atol=2e-5)
    for base in (100.0, 20.0, 500000.0):
        yield Case(f"base-{base:g}", f"base {base:g}, by name", (5, 6), {"base": base}, atol=2e-5)
    yield Case("integer-base", "base 50, an integer, third in order", (4, 8, 50), atol=2e-5)
    n_positions, pairs = int(rng.integers(8, 20)), int(rng.integers(2, 9))
    base = float(rng.integers(30, 3000))
    yield Case("random", "sizes and base drawn at random", (n_positions, 2 * pairs), {"base": base}, atol=1e-4)
    yield Case("wide", "28 positions, d_model 70", (28, 70), show=False, atol=1e-4)
    for d_model in (3, 1, 5, 7):
        yield Case(f"odd-{d_model}", f"d_model {d_model}", (4, d_model), raises="ValueError")
    # Six columns: a frequency of 0.046, which a logarithm of 10000 cut to 9.2103 turns 0.003 rad too far here; of four none is as far off.
    yield Case("far", "positions up to 5000", (5001, 6), stage="extremes", show=False, atol=2e-3)


def _pairs_on_circle(case: Case, parts: dict[str, Array]) -> str | None:
    table = parts["result"]
    lengths = table[:, 0::2] ** 2 + table[:, 1::2] ** 2
    worst = lengths.flat[np.abs(lengths - 1).argmax()]
    return None if abs(worst - 1) < 1e-3 else f"a pair of neighbouring columns has sin² + cos² = {worst:.4g}."


def _distance_only(case: Case, parts: dict[str, Array]) -> str | None:
    products = parts["result"] @ parts["result"].T
    for distance in range(len(products)):
        along = np.diagonal(products, distance)
        if np.ptp(along) > 2e-3 * case.args[1]:
            return f"at distance {distance} the dot product lies between {along.min():.4g} and {along.max():.4g}."
    return None


def _turn(a: torch.Tensor, b: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, bugs: tuple[str, ...]) -> tuple:
    if "PO4" in bugs:
        cos, sin = sin, cos
    if "PO11" in bugs:
        sin = -sin
    if "PO16" in bugs:
        return a * cos - b * sin, b * cos - a * sin
    if "PO17" in bugs:
        a = a * cos - b * sin
        return a, a * sin + b * cos
    return a * cos + b * sin if "RO3" in bugs else a * cos - b * sin, a * sin + b * cos


def _crossed(x: torch.Tensor, angles: torch.Tensor, bugs: tuple[str, ...]) -> torch.Tensor:
    """RO2: the angles are laid out for one pairing and the numbers turned by the other."""
    if "RO1" in bugs or "halves turned" in bugs:
        repeated = angles.repeat_interleave(2, dim=-1)
        first, second = x.chunk(2, dim=-1)
        turned = torch.cat((-second, first), dim=-1)
    else:
        repeated = torch.cat((angles, angles), dim=-1)
        turned = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    return x * repeated.cos() + turned * repeated.sin()


def _rope(*bugs: str) -> Callable[..., torch.Tensor]:
    """The reference's rotation with the named bugs switched on; with none it is right."""

    def apply_rope(x: torch.Tensor, positions: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
        d = x.shape[-1]
        if d % 2 and "PO1" not in bugs:
            raise ValueError("d is odd")
        given, x = x, x.detach() if "PO14" in bugs else x
        if "PO10" in bugs:
            positions = torch.arange(x.shape[-2])
        angles = _angles(positions, d, base, bugs)
        if "PO13" in bugs:
            angles = angles[:, None, :]
        angles = angles.to(x.dtype)
        if "RO2" in bugs:
            return _crossed(x, angles, bugs)
        if "RO1" in bugs:
            a, b = x.chunk(2, dim=-1)
        elif "reshaped" in bugs:
            a, b = x.reshape(*x.shape[:-1], d // 2, 2).unbind(-1)
        else:
            a, b = x[..., 0::2], x[..., 1::2]
        a, b = _turn(a, b, angles.cos(), angles.sin(), bugs)
        joined = ("RO1" in bugs) != ("PO12" in bugs)
        turned = torch.cat((a, b), dim=-1) if joined else torch.stack((a, b), dim=-1).flatten(-2)
        if "PO32" in bugs:
            given.data.copy_(turned)
            return x.data if "cut off" in bugs else x
        return turned

    return apply_rope


def rope_cases(rng: np.random.Generator) -> Iterator[Case]:
    def case(key: str, title: str, shape: tuple[int, ...], positions: Any, *more: Any, grad: bool = True,
             dtype: str = "float32", **fields: Any) -> Case:  # fmt: skip
        x = rng.normal(size=shape).astype(dtype)
        x = x.swapaxes(-2, -3) if fields.pop("swapped", False) else x
        ids = Tensor(np.asarray(positions, fields.pop("ids", "int64")))
        return Case(key, title, (Tensor(x, None, grad), ids, *more), atol=fields.pop("atol", 5e-5), **fields)

    x = Tensor(np.array([[1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 0, 2]], np.float32))
    yield Case("small", "three tokens of two pairs, small integers", (x, Tensor(np.arange(3))), atol=5e-5)
    yield case("start", "tokens at position 0 only", (2, 6), [0, 0], grad=False)
    yield case("sizes", "a batch, all sizes different", (2, 5, 6), [0, 1, 2, 3, 4])
    yield case("heads", "batch and heads, x not contiguous in memory", (2, 4, 3, 8), [0, 1, 2, 3], swapped=True)
    yield case("later", "four tokens from position 37 on", (3, 4, 6), [37, 38, 39, 40], atol=2e-4)
    yield case("any-order", "positions in any order, one of them twice", (2, 5, 4), [7, 2, 2, 11, 0], dtype="float64")
    yield case("square", "as many items as heads, tokens and numbers", (4, 4, 4, 4), [3, 0, 5, 1])
    yield case("one", "one token at position 9", (2, 1, 4), [9])
    yield case("one-pair", "a single pair, no leading axis", (3, 2), [4, 1, 6])
    yield case("base", "base 100, third in order", (2, 3, 8), [5, 1, 3], 100.0)
    yield case("base-named", "base 20, by name", (3, 6), [1, 8, 3], kwargs={"base": 20.0})
    yield case("seen-again", "a batch again, new numbers, other positions in the middle", (2, 5, 6), [0, 30, 12, 3, 4], atol=2e-4)
    yield case("int32", "positions of int32", (2, 3, 4), [2, 9, 5], ids="int32", grad=False)
    random = rng.integers(0, 60, size=5)
    base = float(rng.integers(30, 3000))
    yield case("random", "positions and base drawn at random", (2, 5, 10), random, base, dtype="float64", atol=2e-4)
    yield from _shifted_pair(rng)
    for d in (3, 1, 5):
        yield case(f"odd-{d}", f"d = {d}", (2, 4, d), [0, 1, 2, 3], raises="ValueError", grad=False)
    # Eighteen numbers: pair 1 turns by 0.36, where a logarithm of 10000 cut to 9.2103 is worst, 0.008 rad at position 5000.
    yield case("far", "positions up to 5000", (2, 3, 18), [4000, 4999, 5000], stage="extremes", atol=4e-3)
    nine = [40, 2, 11, 7, 0, 33, 5, 19, 26]
    yield case("five axes", "five axes, nine tokens of 20 numbers", (5, 1, 2, 9, 20), nine, grad=False, show=False, atol=2e-4)


def _shifted_pair(rng: np.random.Generator) -> Iterator[Case]:
    x, positions = Tensor(rng.normal(size=(5, 6)).astype(np.float32)), np.array([0, 1, 4, 2, 9])
    yield Case("here", "five tokens", (x, Tensor(positions)), atol=1e-4)
    yield Case("shifted", "the same tokens, each 23 positions later", (x, Tensor(positions + 23)), atol=2e-4)


def _norms_kept(case: Case, parts: dict[str, Array]) -> str | None:
    before, after = (np.linalg.norm(array, axis=-1) for array in (case.args[0].array, parts["result"]))
    at = np.abs(after - before).argmax()
    if abs(after.flat[at] - before.flat[at]) < 1e-3:
        return None
    return f"a vector of length {before.flat[at]:.4g} comes back with length {after.flat[at]:.4g}."


def _relative(_: Case, here: dict[str, Array], __: Case, shifted: dict[str, Array]) -> str | None:
    first, second = (parts["result"] @ parts["result"].T for parts in (here, shifted))
    moved = np.abs(first - second).max()
    return None if moved < 5e-3 else f"moving all tokens by 23 positions changed a dot product by {moved:.4g}."


def _start_stays(case: Case, parts: dict[str, Array]) -> str | None:
    moved = np.abs(parts["result"] - case.args[0].array).max()
    return None if moved < 1e-4 else f"at position 0 a number changed by {moved:.4g}."


def _published_slopes(num_heads: int) -> list[float]:
    """The rule of the paper's code for any number of heads."""
    lower = 2 ** int(math.log2(num_heads))
    slopes = [2 ** (-8 * (h + 1) / lower) for h in range(lower)]
    return slopes + [2 ** (-4 * (h + 1) / lower) for h in range(0, 2 * lower, 2)][: num_heads - lower]


def _alibi(*bugs: str) -> Callable[..., torch.Tensor]:
    """The reference's bias with the named bugs switched on; with none it is right."""

    def alibi_bias(num_heads: int, t: int) -> torch.Tensor:
        h = torch.arange(num_heads, dtype=torch.float64) + (0 if "PO21" in bugs else 1)
        eighths = 8 * h / num_heads
        if "PO30" in bugs:
            eighths = eighths.floor() if "towards 0" in bugs else eighths.ceil()
        if "PO31" in bugs:
            eighths = torch.full_like(h, 8.0 if "the last" in bugs else 8 / num_heads)
        slopes = 2.0 ** -(h if "PO26" in bugs else h / num_heads if "PO29" in bugs else eighths)
        if "PO27" in bugs:
            slopes = torch.tensor(_published_slopes(num_heads), dtype=torch.float64)
        slopes = slopes.flip(0) if "PO24" in bugs else slopes
        i = torch.arange(t)
        distance = i[:, None] - i
        future = distance < 0
        if "PO23" in bugs or "PO34" in bugs:
            distance = (-distance if "PO34" in bugs else distance).clamp(min=0)
        elif "PO22" not in bugs:
            distance = distance.abs()
        distance = distance**2 if "PO25" in bugs else distance
        if "PO35" in bugs:
            slopes = 2.0**-8 * h / num_heads
        bias = slopes[:, None, None] * distance * (1 if "PO20" in bugs else -1)
        if "PO33" in bugs:
            bias[1:] = 0
        return bias.masked_fill(future, -torch.inf) if "PO28" in bugs else bias

    return alibi_bias


def alibi_cases(rng: np.random.Generator) -> Iterator[Case]:
    for num_heads, t in ((2, 3), (1, 4), (8, 3), (3, 5), (4, 2), (5, 4), (6, 6), (4, 1), (12, 3)):
        yield Case(f"{num_heads}-{t}", f"num_heads {num_heads}, t {t}", (num_heads, t), rtol=1e-4, atol=1e-6)
    num_heads, t = int(rng.integers(9, 16)), int(rng.integers(4, 9))
    yield Case("random", "sizes drawn at random", (num_heads, t), rtol=1e-4, atol=1e-6)
    yield Case("named", "both by name", (), {"num_heads": 7, "t": 3}, rtol=1e-4, atol=1e-6)
    yield Case("many heads", "num_heads 32, t 14", (32, 14), show=False, rtol=1e-4, atol=1e-6)
    yield Case("far", "150 tokens", (1, 150), stage="extremes", show=False)  # beyond int8, and quick for three loops


def _never_a_reward(case: Case, parts: dict[str, Array]) -> str | None:
    highest = parts["result"].max()
    return None if highest < 1e-6 else f"an entry is {highest:.4g}."


def _both_sides(case: Case, parts: dict[str, Array]) -> str | None:
    bias = parts["result"]
    apart = np.abs(bias - bias.swapaxes(-1, -2)).max()
    return None if apart < 1e-5 else f"key j seen from i and key i seen from j differ by {apart:.4g}."


lesson = Lesson(
    name="07_positions",
    title="Positions",
    question="Attention does not know which token came first: how do we tell it?",
    outcome="tell attention the order of tokens: by sinusoids, by rotation, by a bias",
    texts=TEXTS,
    exercises=(
        Exercise(
            name="sinusoidal_positions", task="Give each position a row of sines and cosines.", points=3, minutes=12,
            cases=sinusoidal_cases, container="tensor",
            mistakes=(
                *mistakes(_sinusoidal, "PE1", "PE2", "PE3", "PE4", "PO1", "PO2", "PO3", "PO4", "PO5", "PO6", "PO7", "PO8", "PO9",
                          "PO15", "PO18", "PO36"),
                Mistake("PE2", _sinusoidal("PE2", "pair")),
                Mistake("PE3", _sinusoidal("PE3", "column steps")),
                Mistake("PO1", _sinusoidal("PO1", "assigned")),
                Mistake("PO1", _sinusoidal("PO1", "cut")),
                Mistake("PO36", _sinusoidal("PO36", "in integers")),
                *(Mistake("PO7", _sinusoidal("PO7", spelling)) for spelling in GROWN),
                *(Mistake("PO18", _sinusoidal("PO18", way)) for way in ("guarded", "in Python")),
            ),
            combine=lambda ids: _sinusoidal(*ids, *(("guarded",) if {"PE4", "PO18"} <= ids else ())),  # as tensor2tensor has them
            properties=(
                Property("each pair of columns is a sine and a cosine of one angle", _pairs_on_circle),
                Property("the dot product of two rows depends on their distance only", _distance_only),
            ),
            hints=(
                "For d_model 4, which columns share a frequency, and what are the two frequencies?",
                "`torch.arange(0, d_model, 2)` already is 2i. Positions as a column times frequencies as a row give all angles; "
                "`torch.stack((a, b), dim=-1).flatten(-2)` lets two tables alternate.",
                "positions = torch.arange(n_positions)[:, None]\nangles = positions * base ** (-torch.arange(____) / ____)\n"
                "return torch.stack((____, ____), dim=-1).flatten(-2)",
            ),
        ),
        Exercise(
            name="apply_rope", task="Rotate each pair of numbers by an angle that grows with the position.", points=4, minutes=18,
            cases=rope_cases, container="tensor",
            mistakes=(
                *mistakes(_rope, "RO1", "RO2", "RO3", "PE1", "PE3", "PO1", "PO2", "PO3", "PO4", "PO5", "PO6", "PO7", "PO10", "PO11",
                          "PO12", "PO13", "PO14", "PO15", "PO16", "PO17", "PO18", "PO32", "PO36"),
                Mistake("PO32", _rope("PO32", "cut off")),
                Mistake("RO2", _rope("RO2", "halves turned")),
                Mistake("PO1", _rope("PO1", "reshaped")),
                *(Mistake("PO7", _rope("PO7", spelling)) for spelling in GROWN),
                *(Mistake("PO18", _rope("PO18", way)) for way in ("guarded", "in Python")),
            ),
            combine=lambda ids: _rope(*ids),
            properties=(
                Property("a rotation keeps lengths", _norms_kept),
                Property("position 0 leaves x as it is", _start_stays, needs=("start",)),
                Property("dot products depend on differences of positions only", _relative, needs=("here", "shifted")),
            ),
            hints=(
                "By which angle does pair i of the token at position p turn, and where do the coordinates of a point (a, b) go when "
                "it turns by θ?",
                "Take the pairs apart with `x[..., 0::2]` and `x[..., 1::2]`; angles of shape (T, d/2) broadcast against them. Put "
                "them back together with `stack` and `flatten(-2)`.",
                "angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)\na, b = x[..., 0::2], x[..., 1::2]\n"
                "return torch.stack((____, ____), dim=-1).flatten(-2)",
            ),
        ),
        Exercise(
            name="alibi_bias", task="Lower each score in proportion to the distance, each head at its own rate.", points=2, minutes=8,
            cases=alibi_cases, container="tensor",
            mistakes=(
                *mistakes(_alibi, "PO20", "PO21", "PO22", "PO23", "PO24", "PO25", "PO26", "PO27", "PO28", "PO29", "PO30", "PO31",
                          "PO33", "PO34", "PO35"),
                Mistake("PO30", _alibi("PO30", "towards 0")),
                Mistake("PO31", _alibi("PO31", "the last")),
            ),
            combine=lambda ids: _alibi(*ids),
            properties=(
                Property("no key is rewarded", _never_a_reward),
                Property("the bias depends on the distance, not on the direction", _both_sides),
            ),
            hints=(
                "Which (t, t) matrix do all heads share, and by which one number does each head multiply it?",
                "`torch.arange(t)` as a column minus itself as a row gives all i − j. Slopes of shape (num_heads, 1, 1) broadcast.",
                "i = torch.arange(t)\ndistance = (i[:, None] - ____).abs()\n"
                "slopes = 2.0 ** (-8 * (torch.arange(num_heads) + ____) / ____)\nreturn -slopes[____] * distance",
            ),
        ),
    ),
)  # fmt: skip

"""Lesson 04: why the scores are divided by √d_k, as an experiment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from grader.lessons.lesson_04_mistakes import entropy, entropy_of_two, norm, norm_of_two, std
from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, Mistake, MistakeText, Observation, Part, Property
from grader.seen import flag, numbers

Array = np.ndarray


def std_cases(rng: np.random.Generator) -> Iterator[Case]:
    # The measured figure strays by 2 % or a little more, a fifth of what is allowed.
    for d_k, n_samples in ((1, 4000), (2, 3000), (3, 2500), (5, 2000), (16, 1500), (64, 1200)):
        seed = int(rng.integers(2**31))
        yield Case(f"d{d_k}", f"{n_samples} pairs of length {d_k}", (d_k, n_samples), probe="lesson_04.sampled",
                   options={"seed": seed}, names=("d_k", "n_samples"), rtol=0.1)  # fmt: skip
    for n_samples in (5, 20, 50):
        yield Case(f"drawn-{n_samples}", f"{n_samples} pairs of length 16, the numbers drawn counted", (16, n_samples),
                   probe="lesson_04.sampled", options={"seed": int(rng.integers(2**31)), "count": True},
                   names=("d_k", "n_samples"), rtol=0.1, reading=read_draws)  # fmt: skip
    yield Case("few", "1500 times two pairs of length 1", (1, 2), probe="lesson_04.small_samples",
               options={"seed": int(rng.integers(2**31)), "calls": 1500, "more": 50}, names=("d_k", "n_samples"), rtol=0.3,
               reading=read_results)  # fmt: skip
    same, other = (int(word) for word in rng.permutation(_WORDS)[:2])
    yield Case("used", "ten pairs of length 2, of numbers that are all the same, and of some of which a third differs", (2, 10),
               probe="lesson_04.used", options={"same": same, "other": other}, names=("d_k", "n_samples"), reading=read_use)  # fmt: skip


# Words of 32 bits of which each way to make a normal number makes one at once, neither 0 nor large; of other size each.
_WORDS = (0x3A5C91E7, 0x9999A0F3, 0xC3D2B1A9)


def read_draws(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """What more calls of the function show of where its numbers come from."""
    first, again, other = (numbers(parts[name]) for name in ("standard deviation", "again", "other"))
    return {
        "repeats": flag(np.all(first == again)), "varies": flag(np.all(first != other)), "numbers drawn": parts["numbers drawn"],
    }  # fmt: skip


def read_results(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The mean of the results, the mean of their squares, and below what a tenth of them lies."""
    results = numbers(parts["results"], (case.options["calls"],)).astype(np.float64)
    found = {"mean result": results.mean(), "mean square": (results**2).mean(), "a tenth below": np.quantile(results, 0.1)}
    return {
        **{name: Part("number", np.array(value), "float64") for name, value in found.items()},
        "drawn": parts["drawn"], "drawn for more": parts["drawn for more"],
    }  # fmt: skip


def read_use(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """Whether the result is made of what was drawn: numbers that are all the same do not spread, others do, wherever they stand."""
    same, *others = (float(numbers(parts[name], ())) for name in ("all the same", *(f"the {nth} third differs" for nth in _THIRDS)))
    unknown = float(numbers(parts["words drawn"], ())) < 0  # more than can be laid down
    return {"every number that is drawn counts": flag(unknown or (abs(same) < 1e-5 and all(abs(value) > 1e-3 for value in others)))}


_THIRDS = ("first", "second", "last")


def compare_std(case: Case, expected: Observation, got: Observation) -> str | None:
    """Judges a sampled figure by what it must be near, and by what must and must not change it."""
    d_k, n_samples = case.args
    parts = {name: part.array for name, part in got.parts.items()}
    if "every number that is drawn counts" in parts:
        return None if parts["every number that is drawn counts"] else (
            "The result is not made of all the numbers that are drawn from rng: of numbers that are all the same the dot products "
            "do not spread, and they do where a third of the numbers is another.")  # fmt: skip
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


def _from_rng(case: Case, parts: dict[str, Array]) -> str | None:
    d_k, n_samples = case.args
    if not parts["repeats"]:
        return "The same generator state gave two different results: some numbers come from another source than rng."
    if not parts["varies"]:
        return "Two different generators gave the same result: it does not come from rng."
    drawn, wanted = float(parts["numbers drawn"]), 2 * d_k * n_samples
    if 0.49 * wanted <= drawn <= 3.5 * wanted:  # float32 takes half a step; a rejecting sampler made of uniform numbers nearly three
        return None
    return f"{_count(drawn)} were drawn from rng; {n_samples} pairs of length {d_k} take {wanted}."


def _count(drawn: float) -> str:
    return "Far more numbers" if drawn < 0 else f"About {drawn:{'.2g' if drawn < 10 else '.0f'}} numbers"


def _few(case: Case, parts: dict[str, float]) -> str | None:
    """Two dot products of length 1: their difference has Laplace's law, so the results are exponentially distributed.

    Their mean is 1/2 (ddof 0) or 1/sqrt 2 (ddof 1), their mean square twice its square, and a tenth lies below 0.105 of it.
    The bounds are five times as wide as 1500 results stray.
    """
    _, n_samples = case.args
    more = case.options["more"]
    drawn, drawn_more, mean = parts["drawn"], parts["drawn for more"], parts["mean result"]
    if not all(math.isfinite(value) for value in parts.values()):
        return f"With {n_samples} pairs the standard deviation is not a finite number."
    # In proportion, whatever the sampler: how many numbers a normal one takes is its own affair.
    if drawn < 0 or drawn_more < 0 or not 0.75 * drawn_more <= drawn * more / n_samples <= 1.33 * drawn_more:
        return (f"{_count(drawn)} were drawn from rng for {n_samples} pairs, {_count(drawn_more).lower()} for {more} pairs: "
                "is n_samples used as it is?")  # fmt: skip
    if mean == 0:
        return f"With {n_samples} pairs every result is 0; two independent dot products differ."
    if not (0.435 < mean < 0.565 or 0.615 < mean < 0.8):
        return (f"With {n_samples} pairs of length 1 the mean result is {mean:.3g}; of {n_samples} independent dot products it is "
                "0.5 (ddof 0) or 0.71 (ddof 1).")  # fmt: skip
    tenth, square = parts["a tenth below"] / mean, parts["mean square"] / mean**2
    if not 0.06 < tenth < 0.147 or not 1.75 < square < 2.35:
        return (f"With {n_samples} pairs of length 1 a tenth of the results lie below {tenth:.3f} of their mean, and their mean square is "
                f"{square:.3f} times the square of their mean; these are 0.105 and 2 where each query meets its own key, both are "
                "standard-normal, and the spread is measured from the mean of the dot products.")  # fmt: skip
    return None


def _rows(rng: np.random.Generator, *shape: int) -> Array:
    e = np.exp(rng.normal(size=shape) * 1.5)
    return e / e.sum(axis=-1, keepdims=True)


def entropy_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("small", "two rows of three weights", (np.array([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]),))
    yield Case("row", "one row alone: one number", (np.array([0.1, 0.2, 0.3, 0.4]),))
    yield Case("zeros", "rows with weights of 0", (np.array([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.2, 0.0, 0.8]]),))
    yield Case("zeros-again", "other rows with weights of 0", (np.array([[0.0, 0.25, 0.75], [0.0, 0.0, 1.0]]),))
    some = np.where(np.eye(4) > 0, 0, _rows(rng, 2, 4, 4))
    yield Case("zeros-batch", "a batch, some weights 0", (some / some.sum(axis=-1, keepdims=True),))
    yield Case("seen-again", "the same shape, new numbers", (_rows(rng, 2, 3),))
    yield Case("square", "as many rows as weights in a row", (_rows(rng, 5, 5),))
    yield Case("batch", "a batch of heads", (_rows(rng, 2, 3, 5, 7),))
    single = _rows(rng, 3, 6).astype(np.float32)
    single[1] = [0.5, 0, 0.25, 0, 0.25, 0]  # a constant that keeps ln 0 away in float64 may be 0 in float32
    yield Case("float32", "float32 weights, some 0", (single,))
    yield Case("whole", "one-hot rows of whole numbers", (np.array([[0, 1, 0], [1, 0, 0]]),))
    yield Case("wide", "equal weights over 512 keys", (np.full((2, 512), 1 / 512),))
    small = np.array([[1.0, 1e-300], [1 - 1e-5, 1e-5], [3e-7, 1 - 3e-7]])
    yield Case("tiny", "weights of 1e-300, 1e-5 and 3e-7", (small,), stage="extremes")


def norm_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("small", "two rows of two scores", (np.array([[0.0, 0.0], [1.0, 0.0]]),))
    yield Case("row", "one row alone: one number", (np.array([1.0, 0.0, 2.0]),))
    yield Case("rows", "random rows", (rng.normal(size=(3, 5)),))
    yield Case("seen-again", "the same shape, new numbers", (rng.normal(size=(3, 5)),))
    yield Case("square", "as many rows as scores in a row", (rng.normal(size=(4, 4)),))
    yield Case("batch", "a batch of heads", (rng.normal(size=(2, 3, 4, 6)),))
    yield Case("shifted", "negative scores", (rng.normal(size=(2, 4)) - 5,))
    yield Case("one-key", "a single key: nothing can move", (rng.normal(size=(3, 1)),))
    yield Case("float32", "float32 scores", (rng.normal(size=(2, 2, 3, 6)).astype(np.float32),))
    yield Case("whole", "scores of whole numbers", (np.array([[1, 0, 2], [0, 3, -1]]),))
    yield Case("long", "rows of nineteen scores", (rng.normal(size=(2, 2, 2, 19)),))
    for i in range(3):
        yield Case(f"large-{i}", "scores of thousands", (rng.normal(size=(2, 5)) * 5000,), stage="extremes")
    for i in range(3):
        rows = np.array([[0.0, 1.0, 0.5], [-2000.0, -2001.0, -2000.5]]) + rng.normal(size=(2, 3))
        yield Case(f"far-{i}", "rows far from one another", (rows,), stage="extremes")
    gaps = np.array([[14.0, -5.0, -5.0], [19.0, -5.0, 0.0], *([0.0, gap, -3.0] for gap in range(10, 26))])
    yield Case("saturated", "one score 10 to 25 above the others", (gaps,), stage="extremes")


def _not_above_uniform(case: Case, parts: dict[str, Array]) -> str | None:
    n = np.shape(case.args[0])[-1]
    over = float((parts["result"] - math.log(n)).max())
    return None if over < 1e-5 else f"an entropy of {over + math.log(n):.4g} came back; ln {n} = {math.log(n):.4g} is the most."


def _not_negative(case: Case, parts: dict[str, Array]) -> str | None:
    low = float(parts["result"].min())
    return None if low > -1e-6 else f"an entropy of {low:.4g} came back."


def _norm_bounded(case: Case, parts: dict[str, Array]) -> str | None:
    high = float(parts["result"].max())
    return None if -1e-6 <= float(parts["result"].min()) and high < 0.708 else f"a norm of {high:.4g} came back."


_TEXTS = (
    MistakeText("WS1", "The vectors are uniform on [0, 1); standard-normal ones were asked for.",
        "Uniform numbers on [0, 1) have mean ½, so every dot product is near d_k/4 and their spread is √(7 d_k)/12, not √d_k. "
        "They also hide the effect: each query then prefers the same key, the longest one.",
        "q = rng.random((n_samples, d_k))", "q = rng.standard_normal((n_samples, d_k))"),
    MistakeText("WS2", "The variance came back; the standard deviation is its square root.",
        "The variances of d_k independent products of variance 1 add up to d_k. A score's typical size is the square root of "
        "that, √d_k: with d_k = 64 it is 8, not 64.",
        "return (q * k).sum(-1).var()", "return (q * k).sum(-1).std()"),
    MistakeText("WS3", "The mean size of the dot products came back; their standard deviation was asked for.",
        "For normal numbers the mean of |x| is √(2/π) ≈ 0.80 of the standard deviation: 6.4 against 8 at d_k = 64.",
        "return np.abs(dots).mean()", "return dots.std()"),
    MistakeText("WS4", "The dot products were scaled before they were measured: the result is 1 for every d_k.",
        "The experiment shows what happens without the scale. Dividing by √d_k first removes what is to be seen.",
        "return (dots / np.sqrt(d_k)).std()", "return dots.std()"),
    MistakeText("WS5", "Each vector was multiplied with itself; a pair is two independent vectors.",
        "q · q is a sum of squares: its mean is d_k and its standard deviation √(2 d_k). For a query and a key the signs "
        "are independent and the mean is 0.",
        "dots = (q * q).sum(-1)", "dots = (q * k).sum(-1)"),
    MistakeText("WS6", "The single products were measured before they were summed over d_k.",
        "One product of two standard-normal numbers has standard deviation 1. Only the sum of d_k of them spreads by √d_k.",
        "return (q * k).std()", "return (q * k).sum(axis=-1).std()"),
    MistakeText("WS7", "The function makes a generator of its own; its numbers are the same for every rng.",
        "A generator that is passed in lets the caller repeat or vary an experiment. A new one inside with a fixed seed "
        "returns the same figure for ever, and the spread of repeated runs looks like 0.",
        "rng = np.random.default_rng(0)", "q = rng.standard_normal((n_samples, d_k))  # the rng that was passed in"),
    MistakeText("WS8", "The numbers come from NumPy's global generator and not from rng.",
        "np.random.standard_normal shares one hidden state with every other cell of the notebook, so that the figure depends on "
        "what ran before. With rng passed in, the same state gives the same figure.",
        "q = np.random.standard_normal((n_samples, d_k))", "q = rng.standard_normal((n_samples, d_k))"),
    MistakeText("WS9", "A weight of 0 gives NaN: 0 · ln 0 is 0 · (−∞) on a computer and 0 in the definition.",
        "x ln x tends to 0 as x does, so a key without weight adds no uncertainty. NumPy computes ln 0 = −∞ first, and "
        "0 · (−∞) is NaN. Masked attention has such weights in every row.",
        "-(weights * np.log(weights)).sum(-1)",
        "logs = np.log(np.where(weights > 0, weights, 1))\n-(weights * logs).sum(-1)"),
    MistakeText("WS10", "The entropy is in bits; nats were asked for: use the natural logarithm.",
        "log₂ x = ln x / ln 2, so every figure is larger by 1/0.693 = 1.44. Two equal weights have 1 bit or 0.693 nats.",
        "np.log2(weights)", "np.log(weights)"),
    MistakeText("WS11", "The minus sign is missing: logarithms of weights are negative, an entropy is not.",
        "Every weight is at most 1, so its logarithm is at most 0 and the sum is negative. For (½, ½) the sum is −0.693 and the "
        "entropy 0.693.",
        "(weights * logs).sum(-1)", "-(weights * logs).sum(-1)"),
    MistakeText("WS12", "The whole array was summed; each row has an entropy of its own.",
        "A row is one query's distribution. Two rows of (½, ½) have 0.693 nats each, and no number describes both.",
        "-(weights * logs).sum()", "-(weights * logs).sum(axis=-1)"),
    MistakeText("WS13", "n_samples is not used: a fixed number of pairs is drawn.",
        "How far a measured figure strays depends on the number of samples. With a fixed 1000 the caller can neither spend "
        "less time nor get a sharper figure.",
        "q = rng.standard_normal((1000, d_k))", "q = rng.standard_normal((n_samples, d_k))"),
    MistakeText("WS14", "Only the diagonal diag(p) was used; the Jacobian is diag(p) − p pᵀ.",
        "Without − p pᵀ every score would move its own weight alone, and the row would no longer sum to 1. For a saturated row "
        "(1, 0) the Jacobian is all zeros, while diag(p) still has a 1.",
        "jacobian = np.diag(p)", "jacobian = np.diag(p) - np.outer(p, p)"),
    MistakeText("WS15", "The squares were summed and no root taken: this is the squared norm.",
        "The Frobenius norm is the root of the sum of squares. For two equal weights the entries are ±¼: the sum of squares is "
        "¼, the norm ½.",
        "return (jacobian**2).sum((-1, -2))", "return np.sqrt((jacobian**2).sum((-1, -2)))"),
    MistakeText("WS16", "Only the diagonal p(1 − p) of the Jacobian was used; the other entries −p_i p_j belong to it.",
        "A score moves its own weight by p(1 − p) and takes −p_i p_j from each other one. For two equal weights all four entries "
        "are ±¼; the diagonal alone gives a norm of 0.354 in place of 0.5.",
        "np.sqrt(((p * (1 - p))**2).sum(-1))", "jacobian = np.diag(p) - np.outer(p, p)"),
    MistakeText("WS17", "The scores were taken for weights: softmax comes first.",
        "The function receives scores; the Jacobian diag(p) − p pᵀ is written in the weights p = softmax(scores). Scores put in "
        "its place give norms of any size.",
        "p = scores", "p = softmax(scores)"),
    MistakeText("WS18", "The terms were averaged over the keys; an entropy is their sum.",
        "Each term already carries its weight. Dividing by the number of keys makes long rows look surer than they are: equal "
        "weights over n keys have ln n nats, the mean gives (ln n)/n.",
        "-(weights * logs).mean(-1)", "-(weights * logs).sum(-1)"),
    MistakeText("WS19", "The sum ran over the queries; a row's entropy sums over its keys, the last axis.",
        "weights[i] is the distribution of query i, so the keys lie along the last axis. Summing over axis 0 mixes what "
        "different queries give to one key.",
        "-(weights * logs).sum(axis=0)", "-(weights * logs).sum(axis=-1)"),
    MistakeText("WS20", "The entropy was divided by ln n; it was asked for in nats.",
        "Divided by ln n it runs from 0 to 1 and rows of different lengths can be compared, a useful measure with another name: "
        "normalised entropy. In nats two equal weights have 0.693.",
        "-(weights * logs).sum(-1) / np.log(n)", "-(weights * logs).sum(-1)"),
    MistakeText("WS21", "The absolute values were summed; the Frobenius norm is the root of the sum of squares.",
        "For two equal weights the four entries are ±¼: their sizes add up to 1, the root of the sum of their squares is ½.",
        "np.abs(jacobian).sum((-1, -2))", "np.sqrt((jacobian**2).sum((-1, -2)))"),
    MistakeText("WS22", "The spectral norm came back (`ord=2`), the largest singular value; the Frobenius norm was asked for.",
        "For a matrix `ord=2` is the largest stretch, while `ord='fro'`, the default, takes all entries. They agree for two keys, "
        "where the Jacobian has a single direction, and differ from three keys on.",
        "np.linalg.norm(jacobian, ord=2, axis=(-2, -1))", "np.linalg.norm(jacobian, axis=(-2, -1))"),
    MistakeText("WS23", "The logarithm has base 10; nats were asked for: use the natural logarithm.",
        "log₁₀ x = ln x / ln 10, so every figure is smaller by the factor 0.434. Two equal weights have 0.301 in base 10 and "
        "0.693 nats.",
        "np.log10(weights)", "np.log(weights)"),
    MistakeText("WS24", "The sum of the squared weights came back, the norm of p pᵀ alone; the Jacobian is diag(p) − p pᵀ.",
        "The entries of p pᵀ are p_i p_j, and their squares sum to (Σ p²)². Without diag(p) the norm grows as a row saturates: for "
        "(1, 0) it is 1, while nothing can move there and the Jacobian's norm is 0.",
        "jacobian = -np.outer(p, p)", "jacobian = np.diag(p) - np.outer(p, p)"),
    MistakeText("WS25", "The rows' maxima lost their axis and were subtracted across the columns: keep it with `keepdims=True`.",
        "`scores.max(axis=-1)` has one number for each row and no axis for the keys. Broadcasting lines it up from the right, so the first "
        "row's maximum is subtracted from the first column. Where a row has another length than there are rows, this is an error; "
        "elsewhere it runs and changes the weights.",
        "e = np.exp(scores - scores.max(axis=-1))", "e = np.exp(scores - scores.max(axis=-1, keepdims=True))"),
    MistakeText("WS26", "p pᵀ was added; the Jacobian is diag(p) − p pᵀ.",
        "A score that rises takes from the other weights of its row: ∂p_i/∂s_j = −p_i p_j. With two equal weights the entries have to be "
        "±¼ and the norm ½; added they are ¾ and ¼, and the norm is 1.12.",
        "jacobian = np.diag(p) + np.outer(p, p)", "jacobian = np.diag(p) - np.outer(p, p)"),
    MistakeText("WS27", "One norm came back for the whole array; each row has a Jacobian and a norm of its own.",
        "Without an axis `np.linalg.norm` and `sum` take all Jacobians together. Two rows with norms of ½ then give one number, 0.707, and "
        "which row lets a gradient through is not to be seen.",
        "np.linalg.norm(jacobian)", "np.linalg.norm(jacobian, axis=(-2, -1))"),
    MistakeText("WS28", "The squares were averaged; the Frobenius norm is the root of their sum.",
        "The mean over the n² entries makes the norm smaller by the factor n. For two equal weights the four entries are ±¼: the root of "
        "the sum of their squares is ½, that of their mean ¼.",
        "np.sqrt((jacobian**2).mean((-1, -2)))", "np.sqrt((jacobian**2).sum((-1, -2)))"),
    MistakeText("WS29", "The products were summed over the pairs; a dot product sums over the d_k features of one pair.",
        "An array (n_samples, d_k) has a pair in each row, so the features lie along its last axis; in an array (d_k, n_samples) they lie "
        "along the first. Summed over the pairs there are d_k sums of n_samples products each, and their spread is near √n_samples. "
        "With d_k = 1 a single sum is left, whose spread is 0.",
        "q = rng.standard_normal((n_samples, d_k))\ndots = (q * k).sum(axis=0)",
        "q = rng.standard_normal((n_samples, d_k))\ndots = (q * k).sum(axis=-1)"),
    MistakeText("WS30", "One query was drawn for all keys; each pair has a query of its own.",
        "With the query fixed, the dot products spread by its length. That is near √d_k only for large d_k: for d_k = 1 it is the size of "
        "one normal number, anything between 0 and 3.",
        "q = rng.standard_normal(d_k)", "q = rng.standard_normal((n_samples, d_k))"),
    MistakeText("WS31", "NaN became 0 after the sum: a row with one weight of 0 gets the entropy 0.",
        "0 · ln 0 is NaN on a computer, and a sum with one NaN in it is NaN. Replaced after the sum, all other terms of the row are lost: "
        "(½, ½, 0) gives 0, where 0.693 is right. It is the single term that is 0.",
        "np.nan_to_num(-(weights * np.log(weights)).sum(-1))",
        "logs = np.log(np.where(weights > 0, weights, 1))\n-(weights * logs).sum(-1)"),
    MistakeText("WS32", "The perplexity came back, the exponential of the entropy; the entropy itself was asked for.",
        "The perplexity says among how many equal weights a row would be as undecided, the entropy is its logarithm. Two equal weights "
        "have a perplexity of 2 and an entropy of 0.693 nats.",
        "np.exp(-(weights * logs).sum(-1))", "-(weights * logs).sum(-1)"),
    MistakeText("WS33", "Softmax was applied to the weights once more; the rows are weights already.",
        "The function receives weights, which sum to 1 in each row. Softmax takes them for scores, and scores between 0 and 1 give nearly "
        "equal weights: (1, 0) becomes (0.73, 0.27), with 0.582 nats in place of 0.",
        "p = softmax(weights)\n-(p * np.log(p)).sum(-1)",
        "logs = np.log(np.where(weights > 0, weights, 1))\n-(weights * logs).sum(-1)"),
    MistakeText("WS34", "The summed axis was kept with length 1; one number for each row was asked for.",
        "`keepdims=True` is for sums that go on to meet the array they came from. The result here is (...), not (..., 1): subtracted from "
        "an array (...) it would be broadcast to every pair of rows.",
        "-(weights * logs).sum(axis=-1, keepdims=True)", "-(weights * logs).sum(axis=-1)"),
)  # fmt: skip

lesson = Lesson(
    name="04_why_scale",
    title="Why √d_k",
    question="What goes wrong without the factor 1/√d_k, and how would we notice?",
    outcome="show by experiment why scores are divided by √d_k",
    texts=_TEXTS,
    exercises=(
        Exercise(
            name="dot_product_std", task="Measure how far the dot products of random vectors spread.", points=2, minutes=8,
            cases=std_cases, compare=compare_std, container="number", parts=("standard deviation",),
            mistakes=(
                *mistakes(std, "WS1", "WS2", "WS3", "WS4", "WS5", "WS6", "WS7", "WS8", "WS13", "WS29", "WS30"),
                Mistake("WS29", std("WS29 of exchanged sizes")), Mistake("WS30", std("WS30 keys first")),
            ),
            hints=(
                "If one product of two standard-normal numbers has variance 1, what variance has a sum of d_k of them?",
                "Draw q and k, each (n_samples, d_k), from rng. One dot product a row: multiply, then sum over the last axis.",
                "q = rng.standard_normal((____, ____))\nk = ____\ndots = (q * k).sum(axis=____)\nreturn dots.____()",
            ),
        ),
        Exercise(
            name="row_entropy", task="Say in nats how undecided each row of weights is.", points=2, minutes=8,
            cases=entropy_cases, rtol=0.0, atol=1e-6,
            mistakes=mistakes(
                entropy, "WS9", "WS10", "WS11", "WS12", "WS18", "WS19", "WS20", "WS23", "WS31", "WS32", "WS33", "WS34",
            ),
            combine=entropy_of_two,
            properties=(
                Property("an entropy is never negative", _not_negative),
                Property("n equal weights are the most undecided, with ln n nats", _not_above_uniform),
            ),
            hints=(
                "What should a row that is sure of one key give? And what does ln 0 give?",
                "Sum −p ln p over the last axis, with the logarithm taken only where p is above 0.",
                "logs = np.log(np.where(weights > 0, weights, ____))\nreturn -(____ * logs).sum(axis=____)",
            ),
        ),
        Exercise(
            name="softmax_gradient_norm", task="Measure how much of a gradient softmax lets through at given scores.",
            points=3, minutes=10, cases=norm_cases, rtol=0.0, atol=1e-6,
            mistakes=(
                *mistakes(
                    norm, "SM1", "SM2", "SM3", "SM4", "SM5", "SM6", "WS14", "WS15", "WS16", "WS17", "WS21", "WS22", "WS24", "WS25",
                    "WS26", "WS27", "WS28",
                ),
                *(Mistake(bug[:3], norm(bug)) for bug in (
                    "SM1 but for one row", "SM1 of the row's maximum", "SM2 of the row's maximum", "SM2 of axis 1",
                    "SM2 of axis 1 but for one row", "SM3 of the row's maximum", "SM4 of both",
                )),
            ),
            combine=norm_of_two,
            properties=(Property("the norm lies between 0 and √½", _norm_bounded),),
            hints=(
                "At which scores of two keys does softmax answer most to a change, and at which not at all?",
                "Softmax first, with the row's maximum subtracted. Then the Jacobian diag(p) − p pᵀ of each row.",
                "p = ____\njacobian = p[..., :, None] * np.eye(____) - p[..., :, None] * ____\n"
                "return np.sqrt((jacobian**2).sum(axis=____))",
            ),
        ),
    ),
)  # fmt: skip

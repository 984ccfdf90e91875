"""A query that finds one key among many; any query that gives it the share asked for."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch
from grader.course.readings import ContractError
from grader.worker.values import Observation, Part

Array = np.ndarray

PART = "weights from your query"
TOLERANCE = 1e-6  # by which a share may fall short
SCALE = "needed * math.sqrt(keys.shape[1]) / lead"


def _keys(rng: np.random.Generator, n: int, d: int, target: int, length: float = 1.0) -> Array:
    """n keys of one length, one of them near the target's: their cosine is between 0.7 and 0.88, and that of no pair above 0.9."""
    while True:
        rows = rng.normal(size=(n, d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        near = (target + 1) % n
        across = rows[near] - (rows[near] @ rows[target]) * rows[target]
        cosine = rng.uniform(0.7, 0.88)
        rows[near] = cosine * rows[target] + np.sqrt(1 - cosine**2) * across / np.linalg.norm(across)
        if (rows @ rows.T - np.eye(n)).max() <= 0.9:
            return length * rows


def _read(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The weights that a query gives, however large its scores are."""
    keys, target, share = case.args
    query = parts["result"]
    wanted = f"a query, a NumPy array of shape {keys.shape[1:]}, was asked for"
    if query.kind != "ndarray" or query.array is None or query.array.dtype.kind not in "iuf":
        raise ContractError(f"What came back is no array of numbers; {wanted}.")
    if query.shape != keys.shape[1:]:
        raise ContractError(f"An array of shape {query.shape} came back; {wanted}.")
    numbers = query.array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ContractError(f"The query {np.array2string(numbers, precision=4)} is not finite; {wanted}.")
    size = max(float(np.abs(numbers).max()), np.finfo(float).tiny)
    scores = keys.astype(np.float64) @ (numbers / size) / np.sqrt(len(numbers))
    with np.errstate(over="ignore"):
        grown = np.exp((scores - scores.max()) * size)
    return {PART: Part("ndarray", grown / grown.sum(), "float64")}


def _judge(case: Case, expected: Observation, got: Observation) -> str | None:
    keys, target, share = case.args
    weights = got.parts[PART].array
    if weights[target] >= share - TOLERANCE:
        return None
    said = np.array2string(weights, precision=4, suppress_small=True, threshold=8, separator=", ")
    largest = int(weights.argmax())
    other = (
        ""
        if weights[largest] - weights[target] < TOLERANCE
        else f" The largest weight, {_said(weights[largest])}, goes to key {largest}."
    )
    own = _said(weights[target])
    return (
        f"Your query gives key {target} the weight {own}; at least {share:g} was asked for.{other} All weights: {said}."
    )


def _said(weight: float) -> str:
    return f"{weight:.4g}" if weight < 0.9 else f"{weight:.6f}".rstrip("0").rstrip(".")


@exercise(
    points=2,
    minutes=18,
    difficulty=3,
    result_names=(PART,),
    forbids=("softmax", "attention"),
    unused_parameters=("share",),
)
class query_for:
    """Design a query that gives one key at least the share of attention that is asked for."""

    compare = _judge

    def cases(rng):
        def case(key: str, title: str, keys: Array, target: int, share: float) -> Case:
            return Case(key, title, (keys, target, share), reading=_read)

        yield case("small", "three keys, 0.9 for key 1", np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), 1, 0.9)
        whole = np.array([[2, 2, 1], [2, 1, 2], [-1, 2, 2], [0, -3, 0]])
        yield case("whole", "keys of whole numbers, 0.95 for key 0", whole, 0, 0.95)
        yield case("whole-again", "keys of whole numbers, 0.8 for key 1", whole, 1, 0.8)
        yield case("one-feature", "keys of one number, 0.999 for key 1", np.array([[2.0], [-2.0]]), 1, 0.999)
        for number, (n, d, target, share, length) in enumerate(
            (
                (5, 7, 2, 0.9, 1.0),
                (7, 4, 0, 0.95, 2.0),
                (3, 8, 1, 0.99, 0.5),
                (4, 20, 3, 0.97, 1.0),
                (12, 5, 10, 0.8, 1.0),
                (7, 4, 5, 0.6, 1.0),
            )
        ):
            yield case(
                f"random-{number}",
                f"{n} keys, arrows of length {length:g}, {share:g} for key {target}",
                _keys(rng, n, d, target, length),
                target,
                share,
            )
        for n, d, target, share in ((6, 3, 4, 0.05), (9, 4, 2, 0.02), (4, 7, 1, 0.1)):
            yield case(
                f"little-{n}",
                f"{n} keys, no more than {share:g} asked for key {target}",
                _keys(rng, n, d, target),
                target,
                share,
            )
        yield case("float32", "float32 keys, 0.9 for key 5", _keys(rng, 6, 9, 5).astype(np.float32), 5, 0.9)
        yield case("short", "arrows of length 0.01, 0.999 for key 4", _keys(rng, 5, 3, 4, 0.01), 4, 0.999)
        yield case("short-again", "arrows of length 0.02, 0.9 for key 0", _keys(rng, 3, 6, 0, 0.02), 0, 0.9)
        yield case("long", "arrows of length 100, 0.99 for key 1", _keys(rng, 4, 6, 1, 100.0), 1, 0.99)
        yield case("many", "forty keys, 0.999 for key 17", _keys(rng, 40, 16, 17), 17, 0.999)
        # Cut to whole numbers, a query that is just long enough falls short of these shares.
        yield case("whole-two", "two keys of whole numbers, 0.6 for key 1", np.array([[0, -1, 0], [1, 0, 0]]), 1, 0.6)
        yield case("whole-three", "three keys of whole numbers, 0.6 for key 2", np.eye(4, dtype=int)[:3], 2, 0.6)
        yield case(
            "whole-sides", "three keys of whole numbers, 0.5 for key 0", np.array([[0, 2], [2, 0], [0, -2]]), 0, 0.5
        )
        for key, degrees, target in (
            ("fan", (0, 26, -26, -52, -78), 0),
            ("fan-again", (130, 104, 78, 52, 26), 1),
            ("fan-once-more", (184, 236, 210, 158, 132), 2),
        ):
            angles = np.radians(degrees)
            yield case(
                key,
                f"five keys in a fan, 0.9 for key {target}",
                np.stack([np.cos(angles), np.sin(angles)], axis=1),
                target,
                0.9,
            )
        cosine = 0.9 - 1e-9
        for key, d, target, length in (
            ("near", 12, 0, 0.01),
            ("near-again", 20, 1, 0.01),
            ("near-wide", 60, 0, 0.02),
            ("long-rows", 1000, 1, 0.01),
        ):
            own, across = np.linalg.qr(rng.normal(size=(d, 2)))[0].T
            yield case(
                key,
                f"two keys of {d} numbers, arrows of length {length:g} with a cosine of 0.9, 0.999 for key {target}",
                length * np.array([own, cosine * own + np.sqrt(1 - cosine**2) * across]),
                target,
                0.999,
            )
        # What is needed here is shorter than 1, of which a type for whole numbers keeps nothing.
        long = np.array([[25, 60], [63, 16], [-33, 56], [52, -39]])
        for target, share in ((0, 0.9), (1, 0.99), (2, 0.95)):
            yield case(
                f"whole-long-{target}",
                f"keys of whole numbers of length 65, {share:g} for key {target}",
                long,
                target,
                share,
            )
        for n, d, target in ((3, 5, 1), (6, 4, 2), (9, 3, 0)):
            share = round(1 / n + 0.01, 2)
            title = f"{n} keys, {share:g} asked for key {target}: a little more than 1/{n}"
            yield case(f"above-{n}", title, _keys(rng, n, d, target), target, share)

    hints = (
        "All keys are equally long. Which direction must a query have so that it fits the target's key better than any other? "
        "And what happens to the weights when that query is made longer?",
        "The target's own key is such a direction. Made c times as long, it puts the target ahead of the next key by c · lead / √d, "
        "where lead is the difference of their dot products with the target's key. If every other key were as near as the nearest, "
        "the target's weight would be 1 / (1 + (n − 1) · e^(−ahead)): solve this for ahead, then for c. Or make the query longer in "
        "a loop until the weight is large enough.",
        "```python\nown = keys[target]\nscores = keys @ own\nlead = scores[target] - np.delete(scores, target).____()\n"
        "needed = math.log(max((len(keys) - 1) * share / (1 - share), 1.0))\nreturn own * (needed * ____ / lead)\n```",
    )

    mistakes = {
        "QF1": (
            patch(f"own * ({SCALE})", "own * 1.0"),
            *(
                patch(f"own * ({SCALE})", f"own * {times}")
                for times in ("1000.0", "100.0", "10.0", "1e4", "1e5", "1e6")
            ),
            *(
                patch(f"own * ({SCALE})", f"own / np.linalg.norm(own) * {times}")
                for times in ("1000.0", "100.0", "10.0", "1.0", "1e4")
            ),
        ),
        "QF2": patch(" * math.sqrt(keys.shape[1])", ""),
        "TT8": patch("keys.shape[1]", "len(keys)"),
        "QF4": (
            patch("(len(keys) - 1) * share", "share"),
            patch("max((len(keys) - 1) * share / (1 - share), 1.0)", "share / (1 - share)"),
        ),
        "QF13": mistake(
            patch(" / lead", " / np.linalg.norm(own)"),
            *(patch(" / lead", f" / scores[target]{more}") for more in ("", " * 1.001", " * 1.01")),
            patch("np.delete(scores, target).max()", "np.delete(scores, target).mean()"),
            says="The target's lead over the nearest other key was not measured; keys that are near it, or short, need a longer query.",
            why="""A query c times the key puts the target ahead by c · (‖key‖² − nearest dot product) / √d. The difference
            to the average of the others is larger than that. Dividing by ‖key‖² alone is right only where the other keys are
            at right angles to it, and by ‖key‖ only where that is 1 as well.""",
        ),
        "TT41": (
            patch("return own * (", "own *= (", f"{SCALE})", f"{SCALE})\n    return own"),
            patch(
                f"return own * ({SCALE})",
                """def weight():
        scaled = keys @ own / math.sqrt(keys.shape[1])
        grown = np.exp(scaled - scaled.max())
        return grown[target] / grown.sum()
    for _ in range(40):
        if weight() >= share:
            break
        own *= 2
    return own""",
            ),
        ),
        "QF10": mistake(
            patch("max((len(keys) - 1) * share / (1 - share), 1.0)", "(len(keys) - 1) * share / (1 - share)"),
            says="For a small share the logarithm was negative, which turns the query away from the key; take 0 then.",
            why="""Where share is at most 1/n, no lead is needed: (n − 1) · share / (1 − share) is below 1 and its logarithm below 0.
            A query of zeros, which shares equally, is then enough.""",
        ),
        "QF12": mistake(
            patch(f"own * ({SCALE})", "np.linalg.pinv(keys)[:, target] * (needed * math.sqrt(keys.shape[1]))"),
            *(
                patch(f"own * ({SCALE})", f"np.linalg.pinv(keys)[:, target] * {times}")
                for times in ("100.0 * math.sqrt(keys.shape[1])", "1000.0")
            ),
            says="""Least squares looked for a query that makes all other scores 0; with more keys than features there usually is none,
            and its best attempt falls short.""",
            why="""In general, n equations for d unknowns have a solution only where n ≤ d. The task does not ask for 0: the other scores
            only have to lie far enough below the target's, and the target's own key is a direction that does that for any n.""",
        ),
    }

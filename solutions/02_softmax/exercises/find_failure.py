"""A test for softmax: an input on which a wrong one shows that it is wrong, and none for a right one."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch
from grader.course.readings import ContractError
from grader.worker.values import Observation, Part

from ..probes import CANDIDATES, RIGHT

MOST_CALLS, MOST_ENTRIES, MOST_SCORE, OFF = 1000, 10_000, 1e4, 1e-6
PART = "what came back"  # FOUND, or one of the others
FOUND, MISSED, BLAMED, NO_FAILURE = (
    "as it should be",
    "None for a wrong candidate",
    "an array for a right one",
    "an array that shows nothing",
)
# For each wrong candidate, what kind of scores shows that it is wrong: in words, for an array could be pasted into the answer.
APART, MANY, NOT_SQUARE = "two rows that lie far apart", "more than one row", "fewer or more rows than columns"
ONE, SHAPES = "a single row", "if the shapes are compared (broadcasting hides the difference)"
RAISES = f"{MANY}, for which the candidate raises, so catch that"
RAISES_NOT_SQUARE = f"{MANY}; with more or fewer columns than rows the candidate raises, so catch that"
COMPARED = "if each weight is compared with the right one (the rows sum to 1 all the same)"
SHOWS = {
    "nothing is subtracted": "a score in the thousands, if NaN counts as different (NaN > … is False)",
    "nothing is subtracted, and NaN becomes 0": "a score in the thousands",
    "scores are cut at ±100": f"two different scores far beyond ±100, {COMPARED}",
    "scores are cut at ±600": f"two different scores far beyond ±600, {COMPARED}",
    "each row's mean is subtracted": "one score far above all others of its row",
    "each row's median is subtracted": "one score far above all others of its row",
    "each row's first score is subtracted": "a score far above the first of its row",
    "half of each row's maximum is subtracted": "a row whose largest score is in the thousands",
    "each row's minimum is subtracted": "one score far above another of its row",
    "each row's maximum is added": "a row whose largest score is in the thousands",
    "the maximum of the whole table is subtracted": APART,
    "the first row's maximum is subtracted everywhere": APART,
    "the mean of the rows' maxima is subtracted": APART,
    "each row's largest absolute value is subtracted": "a row whose scores all lie far below 0",
    "the maximum is subtracted only where it is positive": "a row whose scores all lie far below 0",
    "the maximum is subtracted only where it is above −100": "a row whose scores all lie far below 0",
    "columns sum to 1": "nearly any scores",
    "the whole table sums to 1": MANY,
    "right for one row, columns otherwise": MANY,
    "every row is divided by the first row's sum": "two rows that differ by more than a shift",
    "2 is raised to the scores": f"two different scores in a row, {COMPARED}",
    "absolute values of the scores": f"a positive and a negative score in a row, {COMPARED}",
    "scores rounded to whole numbers": f"scores with fractions, {COMPARED}",
    "weights rounded to three decimals": "nearly any scores, if differences count from 1e-6 on",
    "weights rounded to four decimals": "nearly any scores, if differences count from 1e-6 on",
    "weights kept in float16 for a moment": "nearly any scores, if differences count from 1e-6 on",
    "the last column is left out of the sum": "a last score that is not far below the others of its row",
    "the last row is 0": MANY,
    "right for square tables; columns otherwise": NOT_SQUARE,
    "right for square tables; the whole table otherwise": f"{MANY}, and {NOT_SQUARE}",
    "right for square tables; otherwise without the last column": NOT_SQUARE,
    "the transpose comes back": NOT_SQUARE,
    "keepdims is missing in the sum": RAISES_NOT_SQUARE,
    "keepdims is missing in the maximum": RAISES_NOT_SQUARE,
    ".item() is asked of the rows' maxima": RAISES,
    "`if` is asked of the rows' maxima": RAISES,
    "the only row is unpacked": RAISES,
    "axes of length 1 are squeezed away": f"{ONE}, or a single column, {SHAPES}",
    "a single row comes back flat": f"{ONE}, {SHAPES}",
    "an axis of length 1 comes first": f"any scores, {SHAPES}",
}
LISTED = (
    "[[1.0, 2.0, 4.0]]",
    "[[0.5, -2.0, 1.0], [3.0, 1.0, -1.0]]",
    "[[1.0, 5.0], [2.0, 0.4], [0.0, -3.0]]",
    "[[1000.0, 0.0, 999.0]]",
    "[[-1000.0, -1001.0]]",
    "[[0.0, 1.0], [2000.0, 2001.0]]",
    "[[0.0, 0.0, 0.0, 9000.0]]",
)
TABLE = ", ".join(LISTED)
CALL = "out = np.asarray(candidate(scores.copy()))"
TRY = f"try:\n            {CALL}\n        except Exception:\n            return scores"
BLAME = "if wrong:\n            return scores"
WRONG = "wrong = out.shape != right.shape or not np.all(np.abs(out - right) <= 1e-06)"


class NoTable(ContractError):
    """What came back is no matrix of scores, or too large a one."""


def _softmax(scores: np.ndarray) -> np.ndarray:
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    return grown / grown.sum(axis=1, keepdims=True)


def _fails(name: str, scores: np.ndarray) -> bool:
    """Whether the candidate is wrong for these scores."""
    try:
        with np.errstate(all="ignore"):
            out = np.asarray(CANDIDATES[name](scores.copy()))
    except Exception:
        return True
    right = _softmax(np.asarray(scores, float))
    return out.shape != right.shape or not bool((np.abs(out - right) <= OFF).all())


def _read(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """What the answer is worth for this candidate. Raises: ContractError for an answer that the contract does not allow."""
    name, result = case.options["candidate"], parts["result"]
    calls = int(parts["calls of the candidate"].array)
    if calls > MOST_CALLS:
        raise ContractError(f"The candidate was called {calls} times; at most {MOST_CALLS:,} calls are allowed.")
    if result.kind == "none":
        return {PART: Part("text", text=FOUND if name in RIGHT else MISSED)}
    wanted = "an array of scores (m, n) or None was asked for"
    if result.kind != "ndarray" or result.array is None or result.array.dtype.kind not in "iuf":
        raise ContractError(f"What came back is neither an array of numbers nor None; {wanted}.")
    scores = result.array
    if scores.ndim != 2 or not 0 < scores.size <= MOST_ENTRIES:
        raise NoTable(f"An array of shape {scores.shape} came back; {wanted}, with 1 to {MOST_ENTRIES:,} entries.")
    if not np.isfinite(scores).all() or np.abs(scores.astype(float)).max() > MOST_SCORE:
        raise ContractError(
            "The array holds a number that is not finite or beyond ±10,000; a softmax need not be right for it."
        )
    if name in RIGHT:
        return {PART: Part("text", text=BLAMED)}
    return {PART: Part("text", text=FOUND if _fails(name, scores) else NO_FAILURE)}


def _judge(case: Case, expected: Observation, got: Observation) -> str | None:
    name, what = case.options["candidate"], got.parts[PART].text
    if what == FOUND:
        return None
    if what == BLAMED:
        return f"An array came back for a right softmax ({name}); None was asked for."
    slipped = "None came back for" if what == MISSED else "The array that came back shows nothing wrong with"
    return f"{slipped} a wrong softmax: {name}. What shows it: {SHOWS[name]}."


@exercise(points=3, minutes=15, difficulty=3, result_names=(PART,), result_type="any", forbids=("softmax", "attention"))
class find_failure:
    """Find scores on which a function that should be a softmax of each row is wrong, or None where it is right."""

    compare = _judge

    def cases(rng):
        for number, name in enumerate(CANDIDATES):
            by_name = {"by_name": ("candidate",)} if number == 3 else {}
            kind = "right" if name in RIGHT else "wrong"
            yield Case(
                f"candidate-{number}",
                f"a {kind} softmax: {name}",
                probe="probes.on_candidates",
                reading=_read,
                options={"candidate": name, **by_name},
            )

    hints = (
        "Think of three softmaxes that you have seen fail. On which scores did each of them show it, and on which did it look right?",
        "Try several tables, one after another: a single row, more rows than columns and fewer, rows that differ much in size, large "
        "positive and large negative scores. For each, compute the right answer, catch what the candidate raises, compare shapes first, "
        "and remember that a comparison with NaN is always False.",
        "```python\ntables = [np.array([[0.0, 800.0, 799.0]]), np.array([[0.0, 1.0], [-2000.0, -2001.5]]), ____]\n"
        "for scores in tables:\n    try:\n        out = candidate(scores.copy())\n    except ____:\n        return scores\n"
        "    if out.shape != ____ or not (np.abs(out - right) <= ____).all():\n        return scores\nreturn ____\n```",
    )

    mistakes = {
        "FF1": mistake(
            patch(f"[{TABLE}]", f"[{', '.join(LISTED[:3])}]"),
            patch(f"[{TABLE}]", f"[{', '.join((*LISTED[:3], LISTED[4]))}]"),
            patch(f"[{TABLE}]", f"[{', '.join(LISTED[i] for i in (0, 1, 2, 3, 5, 6))}]"),
            patch(f"[{TABLE}]", f"[{', '.join(LISTED[i] for i in (0, 1, 2, 3, 4, 6))}]"),
            patch(f"[{TABLE}]", f"[{', '.join(LISTED[:6])}]"),
            says="""Not every kind of large scores was tried, so a softmax that overflows or divides 0 by 0 for one of them
            was taken for right.""",
            why="""exp overflows in float64 beyond 709 and is 0 below −746. Four kinds of tables show it: a score in the
            thousands, where nothing is subtracted; a row of large negative scores, where the maximum is subtracted only if
            it is positive; a row 1,000 below another one, where one maximum serves all rows; and one score far above many
            others, where the mean is subtracted.""",
        ),
        "FF3": mistake(
            patch(WRONG, "wrong = out.shape != right.shape or not np.all(np.abs(out.sum(axis=1) - 1) <= 1e-06)"),
            patch(
                WRONG,
                "wrong = out.shape != right.shape or not np.all(np.abs(out.sum(axis=1) - 1) <= 1e-06) or not np.all(out >= 0)",
            ),
            patch(
                WRONG,
                "wrong = out.shape != right.shape or not np.all(np.abs(out.sum(axis=1) - 1) <= 1e-06)",
                f"[{TABLE}]",
                f"[{TABLE}, [[-1.3, -1.5, -1.0, 0.9, 0.4, 1.2]]]",
            ),
            says="""Only what every table of weights has was tested, such as rows that sum to 1; many wrong functions pass that, so
            compare with the right weights.""",
            why="""Powers of 2, absolute values or rounded scores give rows without a negative number that sum to 1, too.
            Write a softmax of your own and compare number by number.""",
        ),
        "FF4": (
            patch(WRONG, "wrong = out.shape != right.shape or np.any(np.abs(out - right) > 1e-06)"),
            patch(WRONG, "wrong = out.shape != right.shape or np.abs(out - right).max() > 1e-06"),
        ),
        "FF7": mistake(
            patch(BLAME, BLAME.replace("scores", "out")),
            patch(BLAME, BLAME.replace("scores", "right")),
            says="The weights came back; the scores for which the candidate is wrong were asked for.",
            why="Somebody who repairs the function needs the input that shows the failure.",
        ),
        "FF8": (
            patch(WRONG, WRONG.replace("1e-06", "0.01")),
            patch(WRONG, WRONG.replace("1e-06", "0.001")),
            patch(WRONG, "wrong = out.shape != right.shape or not np.allclose(out, right, atol=0.001)"),
        ),
        "FF9": (
            patch(WRONG, "wrong = out.shape != right.shape or not np.array_equal(out, right)"),
            patch(
                WRONG,
                "wrong = out.shape != right.shape or not np.array_equal(out, right)",
                f"[{TABLE}]",
                f"[[[-0.3, -0.9, -2.0]], {TABLE}]",
            ),
        ),
        "FF14": mistake(
            patch(TRY, CALL),
            patch(TRY, CALL, f"[{TABLE}]", f"[[[0.0, 2.0]], [[1.0], [2.0]], {TABLE}]"),
            says="What the candidate raised was not caught; a candidate that raises is wrong, and its scores should come back.",
            why="""`e / e.sum(axis=1)` without `keepdims` raises for every table that is not square. Call the candidate inside `try`, and
            return the scores in `except Exception`.""",
        ),
    }

"""The loss of a prediction: minus the logarithm of the weight that the right answer got."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ..shared import FLOAT32_AT_1E4, loss_extremes, loss_inputs
from .log_softmax import LEAST

PICKED = "-picked[..., 0]"
PICK = "np.take_along_axis({}, np.expand_dims(targets, -1), axis=-1)"
MATRIX_ONLY = "This works only for scores with two axes; one row alone has a single target, a number without axes, and there may be more."
FORBIDS = ("softmax", "cross_entropy", "attention")


def log_softmax(*texts: str):
    """A patch of the course's log_softmax, which the course's cross_entropy calls."""
    return patch(*texts, of="log_softmax")


LOGS = "shifted - np.log(total)"
UNSHIFTED, BY_ALL = log_softmax("x - top", "x"), log_softmax("max(axis=axis, keepdims=True)", "max()")


@exercise(points=2, minutes=8, difficulty=2, forbids=FORBIDS)
class cross_entropy:
    """Give the loss of each prediction: minus the logarithm of the weight of the right answer."""

    def cases(rng):
        yield from (Case(key, title, args) for key, title, args in loss_inputs(rng))
        for key, title, args in loss_extremes(rng):
            yield Case(key, title, args, stage="extremes", atol=FLOAT32_AT_1E4)
        scores = rng.normal(size=(2, 300))  # beyond int8 and uint8, and beyond the 64 choices of np.choose
        targets = np.array([0, 299])
        yield Case("classes", "three hundred classes", (scores, targets), stage="extremes", show=False)

    @holds("no loss is negative")
    def not_negative(case, parts):
        least = parts["result"].min()
        return None if least >= -1e-6 else f"one is {least:.4g}."

    hints = (
        "A weight of 1 on the right answer costs nothing, a weight of ½ costs ln 2. What does `log_softmax` already give you of this?",
        "`log_softmax(scores)` has the logarithms of all weights. Pick one of each row: `np.take_along_axis(logs, targets[..., None], "
        "axis=-1)` does it for any number of dimensions and keeps an axis of length 1. Then the sign.",
        "```python\nlogs = log_softmax(scores)\npicked = np.take_along_axis(logs, np.expand_dims(targets, -1), axis=____)\n"
        "return ____\n```",
    )

    mistakes = {
        "SX30": log_softmax(LOGS, "np.log(np.exp(shifted) / total)"),
        "SX31": tuple(log_softmax(LOGS, f"np.log(np.exp(shifted) / total + {least})") for least in LEAST),
        "SX33": (log_softmax("return logs", "return logs / np.log(2)"), log_softmax("np.log(", "np.log2(")),
        "SX35": (log_softmax("shifted - np", "x - np"), log_softmax("shifted - np", "shifted - top - np")),
        "SX58": log_softmax("np.log(total)", "np.log1p(total)"),
        "SM5": (UNSHIFTED, patch(PICKED, f"np.log(np.exp(scores - {PICK.format('scores')}).sum(axis=-1))")),
        "SM6": BY_ALL,
        "SX1": log_softmax("axis: int=-1", "axis: int=0"),
        "CE2": mistake(
            patch(PICKED, "-picked.mean()"),
            patch(PICKED, "-picked.sum()"),
            says="All losses were made into one number, their mean or their sum; one loss for each target is asked for.",
            why="""Frameworks average by default. The losses themselves show which prediction was poor, in the shape of
            targets. Their mean is one more step, which the caller can take, and their sum is what the next exercise
            differentiates.""",
        ),
        "CE4": mistake(
            patch(PICKED, "1 - np.exp(picked[..., 0])"),
            patch(PICKED, "-np.exp(picked[..., 0])"),
            says="The logarithm is missing: the weight itself was used; its logarithm is asked for, or minus that where it is a loss.",
            why="""A weight lies between 0 and 1, so a loss made of it never exceeds 1: a prediction that gives the right
            answer one in a million is charged hardly more than one that gives it one in ten. The logarithm charges 13.8
            against 2.3. For (0, 0) the weights are ½ and their logarithms −0.693.""",
        ),
        "CE5": mistake(
            patch(PICKED, "-logs.max(axis=-1)"),
            says="The loss was computed from the largest weight; it should be computed from the target's weight.",
            why="""The largest weight says how sure the model is, not whether it is right. The loss looks at one weight only, that of the
            right answer.""",
        ),
        "AB20": patch("log_softmax(scores)", "scores"),
        "CE7": mistake(
            *(patch(PICK.format("logs"), f"logs[{rows}, targets]", PICKED, "-picked") for rows in ("...", ":")),
            says="The targets of all rows were used in every row; use in each row its own target.",
            why="""With 2 rows and 2 targets `logs[..., targets]` gives a (2, 2) array, of which only the diagonal was
            meant, and `weights[..., targets] -= 1` takes 1 away at both targets in both rows. `[np.arange(n), targets]`
            pairs row i with target i in two dimensions, `np.take_along_axis` and `np.eye(n)[targets]` in any number.""",
        ),
        "CE8": patch(PICKED, "-picked"),
        "CE9": mistake(
            patch(PICKED, "-(np.exp(logs) * logs).sum(axis=-1)"),
            says="The entropy of the weights came back, −Σ p ln p, in which no target occurs; −ln p[target] is asked for.",
            why="""Entropy measures how spread out the weights are. Cross entropy puts the target in place of the first p: it has 1 at
            the right answer and 0 elsewhere, so one term of the sum remains, −ln p[target].""",
        ),
        "CE10": mistake(
            patch("expand_dims(targets", "expand_dims(targets - 1"),
            says="The entry before the target was used; targets are counted from 0.",
            why="Target 0 is the first entry. With `targets - 1` it becomes −1, which is the last one, and no error is raised.",
        ),
        "CE11": mistake(
            patch(PICKED, "-(np.expand_dims(targets, -1) * logs).sum(axis=-1)"),
            says="The target's position was used as a number to calculate with; a target says *which* entry is meant.",
            why="""In the formula −Σ y ln p, and in its gradient p − y, y is 1 at the target and 0 elsewhere (one-hot). The
            position is not that y: `np.eye(n)[targets]` turns positions into such rows. Or use the position as an index.""",
        ),
        "CE13": mistake(
            patch(PICK.format("logs"), "logs[targets]", PICKED, "-picked"),
            says="The targets chose rows, as `logs[targets]` does; each should choose an entry of its own row.",
            why="""The first index of an array counts its rows. For a single row of scores, (n,), one target as the index is
            right; for more, the index of the row comes first, and the target picks along the last axis.""",
        ),
        "CE12": mistake(
            *(
                patch(
                    PICK.format("logs"),
                    f"np.take_along_axis(logs, targets[:, None], axis={axis})",
                    PICKED,
                    "-picked[:, 0]",
                )
                for axis in (-1, 1)
            ),
            patch("logs = log_softmax(scores)", "_, _ = scores.shape\n    logs = log_softmax(scores)"),
            patch(PICKED, "np.array([-row[target] for row, target in zip(logs, targets)])"),
            *(
                patch(f"picked = {PICK.format('logs')}", f"picked = logs[{rows}, targets]", PICKED, "-picked")
                for rows in ("np.arange(len(targets))", "np.arange(scores.shape[0])", "np.arange(targets.shape[0])")
            ),
            patch(
                "return -picked[..., 0]",
                """losses = np.zeros(len(targets))
    for i in range(len(targets)):
        losses[i] = -logs[i, targets[i]]
    return losses""",
            ),
            says=MATRIX_ONLY,
            why="""Scores (n,) come with a single target, which has no length, and scores (a, b, n) with targets (a, b).
            `np.take_along_axis(logs, np.expand_dims(targets, -1), axis=-1)` picks along the last axis, and
            `np.eye(n)[targets]` makes a row with a 1 for each target, whatever stands before it.""",
        ),
    }

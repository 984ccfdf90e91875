"""A test of a backward pass: which of the claimed gradients are wrong?"""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch
from grader.course.readings import ContractError
from grader.worker.values import Observation, Part

from ..probes_claims import CLAIMS

PART = "positions"
NAMES = {"attention": "qkv", "linear": "xwb", "product": "xy"}
SHAPE, FAR = "given.shape != x.shape", "not (np.abs(given - true) <= 0.0001 * (1 + np.abs(true).max())).all()"
BLAME = "wrong.append(i)"


def _kind(claim: str) -> str:
    inputs = CLAIMS[claim][0]
    return (
        "attention"
        if inputs.__name__ == "attention"
        else "linear"
        if inputs.__name__ in ("_linear", "_tanh")
        else "product"
    )


def _read(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    result, count = parts["result"], len(case.args) - 1
    if result.kind != "sequence" or any(
        item.kind != "number" or item.array is None or item.array.dtype.kind not in "iu" for item in result.items
    ):
        raise ContractError(
            f"What came back is no list of positions; a list of integers from 0 to {count - 1} was asked for, [] where nothing is wrong."
        )
    return {PART: Part("ndarray", np.array([int(item.array) for item in result.items], np.int64), "int64")}


def _judge(case: Case, expected: Observation, got: Observation) -> str | None:
    wanted, said = (list(map(int, one.parts[PART].array)) for one in (expected, got))
    if wanted == said:
        return None
    claim = case.options["claim"]
    names = NAMES[_kind(claim)]
    start = f"{claim[0].upper()}{claim[1:]}: expected {wanted}, got {said}."
    if sorted(set(said)) == wanted:
        return f"{start} Each position stands once, in ascending order."
    missed, blamed = (sorted(set(one) - set(other)) for one, other in ((wanted, said), (said, wanted)))
    at = (*missed, *blamed)[0]
    if not 0 <= at < len(names):
        return start
    if case.options.get("one"):
        return f"{start} Here x and y are one array: a number moved in place moves in both; move it in a copy."
    *inputs, grad_output = case.args
    with np.errstate(all="ignore"):
        claimed, right = np.asarray(CLAIMS[claim][1](*inputs, grad_output)[at]), _true(case, at)
    what = f"wrong: {_shown(claimed, right)}" if missed else f"right: {_near(claimed, right)}"
    return f"{start} The gradient of {names[at]} is {what}."


def _shown(claimed: np.ndarray, right: np.ndarray) -> str:
    if claimed.shape != right.shape:
        return f"its shape is {claimed.shape}, that of the input {right.shape}"
    at = np.unravel_index(int(np.nan_to_num(np.abs(claimed - right), nan=np.inf).argmax()), right.shape)
    place, allowed = tuple(map(int, at)), _allowed(right)
    return f"at {place} it is {claimed[at]:.4g}, and its measured value is {right[at]:.4g}; {allowed:.2g} are allowed between them"


def _near(claimed: np.ndarray, right: np.ndarray) -> str:
    off, allowed = np.abs(claimed - right).max(), _allowed(right)
    return (
        f"it differs from the measured one by at most {off:.1g}, and {allowed:.2g} are allowed, 1e-4 · (1 + max |true|)"
    )


def _allowed(right: np.ndarray) -> float:
    return 1e-4 * (1 + float(np.abs(right).max()))


def _scaled(claim: str, args: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The same arguments; where large gradients are claimed, with a larger grad_output.

    Where one number is off by a hundredth, the largest of its gradient becomes 90, so that 9.1e-3 are allowed.
    """
    *inputs, grad_output = args
    if "large gradients" in claim:
        return (*inputs, 1000 * grad_output)
    if "large gradient " in claim:
        true = CLAIMS["attention, every gradient right"][1](*inputs, grad_output)["qkv".index(claim.split("'")[0][-1])]
        return (*inputs, grad_output * 90 / np.abs(true).max())
    return args


def _true(case: Case, at: int) -> np.ndarray:
    """The gradient by central differences."""
    *inputs, grad_output = case.args
    forward, x = CLAIMS[case.options["claim"]][0], inputs[at]
    right = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        sides = []
        for step in (1e-5, -1e-5):
            moved = x.copy()
            moved[place] += step
            sides.append((forward(*inputs[:at], moved, *inputs[at + 1 :]) * grad_output).sum())
        right[place] = (sides[0] - sides[1]) / 2e-5
    return right


@exercise(
    points=3,
    minutes=15,
    difficulty=3,
    result_names=(PART,),
    result_type="any",
    dtype=("int64",),
    forbids=("torch", "autograd"),
)
class wrong_gradients:
    """Find the wrong ones among the gradients that a backward pass returns."""

    compare = _judge

    def cases(rng):
        for number, claim in enumerate(CLAIMS):
            kind, n = _kind(claim), number % 3
            if kind == "attention":
                shapes = (3, 2), (4 + n % 2, 2), (4 + n % 2, 3), (3, 3)
            elif kind == "linear":
                shapes = (4, 3), (3, 2), (2,), (4, 2)
            else:
                shapes = (2, 3), (2, 3), (2, 3)
            args = _scaled(claim, tuple(rng.normal(size=shape) + 0.1 for shape in shapes))
            names = (*NAMES[kind], "grad_output")
            by_name = {"by_name": ("forward", "backward", "inputs", "grad_output")} if number == 1 else {}
            yield Case(
                f"claim-{number}",
                claim,
                args,
                probe="probes_claims.on_candidates",
                options={"claim": claim, **by_name},
                names=names,
                stage="extremes" if "infinite" in claim else "values",
                reading=_read,
                show=False,
            )
        q, k, v = (rng.normal(size=shape) for shape in ((3, 2), (4, 2), (4, 3)))
        for key, claim in (("ones", "attention, every gradient right"), ("ones-wrong", "the scale is forgotten")):
            yield Case(
                key,
                f"{claim}; ones arrive",
                (q, k, v, np.ones((3, 3))),
                probe="probes_claims.on_candidates",
                options={"claim": claim},
                names=("q", "k", "v", "grad_output"),
                reading=_read,
                show=False,
            )
        x, grad_output = rng.normal(size=(2, 2, 3))
        claim = "a product of numbers, every gradient right"
        yield Case(
            "one-array",
            f"{claim}; one array stands at both positions",
            (x, x, grad_output),
            probe="probes_claims.on_candidates",
            options={"claim": claim, "one": True},
            names=("x", "y", "grad_output"),
            stage="extremes",
            reading=_read,
            show=False,
        )

    hints = (
        "Whose gradient is claimed: that of the output, or that of a number? Which function of one input alone could you measure?",
        "For position i hold all other inputs and measure the gradient of sum(forward(…) · grad_output) with respect to inputs[i], by "
        "your own `numerical_gradient`. Compare shapes first, then every entry; a comparison with NaN is always False.",
        "```python\nclaimed = backward(*inputs, grad_output)\nwrong = []\nfor i, x in enumerate(inputs):\n    def loss(moved):\n"
        "        return (forward(*inputs[:i], ____, *inputs[i + 1:]) * ____).sum()\n    true = numerical_gradient(loss, ____)\n"
        "    if ____ or not (np.abs(claimed[i] - true) <= ____).all():\n        wrong.append(i)\nreturn wrong\n```",
    )

    mistakes = {
        "WG1": mistake(
            patch(" * grad_output).sum()", ").sum()"),
            patch("claimed = backward(*inputs, grad_output)", "claimed = backward(*inputs, np.ones_like(grad_output))"),
            says="""grad_output was left out, of what is measured or of what backward is given; the claimed gradients are those of
            sum(output · grad_output).""",
            why="""What arrives from behind weights each output. A backward pass that ignores its last argument looks right for a gradient
            of ones, and for ones alone: the plain sum of the output.""",
        ),
        "FF4": (
            patch(FAR, "(np.abs(given - true) > 0.0001 * (1 + np.abs(true).max())).any()"),
            patch(FAR, "np.abs(given - true).max() > 0.0001 * (1 + np.abs(true).max())"),
        ),
        "WG3": mistake(
            patch(f"{SHAPE} or {FAR}", FAR),
            patch(
                f"{SHAPE} or {FAR}",
                "given.size != x.size or not (np.abs(given.reshape(x.shape) - true) <= 0.0001 * (1 + np.abs(true).max())).all()",
            ),
            says="The shapes were not compared; a gradient has the shape of its input.",
            why="Broadcasting makes shapes fit that are different, and what does not broadcast raises an error in place of an answer.",
        ),
        "WG13": mistake(
            patch("0.0001 * (1 + np.abs(true).max())", "0.0001"),
            patch("0.0001 * (1 + np.abs(true).max())", "0.001"),
            patch("0.0001 * (1 + np.abs(true).max())", "1e-06"),
            patch("0.0001 * (1 + np.abs(true).max())", "0.1 * (1 + np.abs(true).max())"),
            patch("0.0001 * (1 + np.abs(true).max())", "0.05 * (1 + np.abs(true).max())"),
            patch(FAR, "not np.array_equal(given, true)"),
            patch(FAR, "not (np.abs(given - true) <= 1e-13).all()"),
            says="The tolerance is not the one asked for: an entry is wrong if it is off by more than 1e-4 · (1 + the largest true one).",
            why="""A measured gradient is never exact: central differences have an error of about step² and rounding of about 1e-16 /
            step, here some 1e-9. Exact agreement calls every gradient wrong, and a tolerance of a tenth hides errors of three percent. A
            fixed one of 1e-4 asks for four digits where the gradient is 1, and for seven where it is 1,000.""",
        ),
        "WG14": mistake(
            patch(FAR, "not np.linalg.norm(given - true) <= 0.001 * np.linalg.norm(true)"),
            patch(FAR, "not abs(np.linalg.norm(given) - np.linalg.norm(true)) <= 0.0001 * (1 + np.abs(true).max())"),
            patch(FAR, "not np.abs(given - true).mean() <= 0.0001 * (1 + np.abs(true).max())"),
            patch(
                FAR,
                "not abs(np.vdot(given - true, u := np.cos(np.arange(x.size) + 1.0).reshape(x.shape)) / np.linalg.norm(u)) "
                "<= 0.0001 * (1 + np.abs(true).max())",
            ),
            patch(FAR, "not abs(given.sum() - true.sum()) <= 0.0001 * (1 + np.abs(true).max())"),
            patch(FAR, "not abs(given.mean() - true.mean()) <= 0.0001 * (1 + np.abs(true).max())"),
            patch(FAR, "not abs(given.flat[0] - true.flat[0]) <= 0.0001 * (1 + np.abs(true).max())"),
            says="""One number of the whole array was compared, such as its sum, its norm, its first entry or one direction; compare every
            entry.""",
            why="""In a sum an entry that is too large and one that is too small cancel, and a single wrong entry drowns in a norm or a
            mean. A single direction hardly feels an entry in which it is small. And a gradient may be wrong in a single place, such as
            the last row.""",
        ),
        "WG8": mistake(
            patch(BLAME, "return [i]"),
            patch("enumerate(inputs)", "enumerate(inputs[:1])"),
            patch("enumerate(inputs)", "enumerate(inputs[:2])"),
            says="""Some gradient was not looked at, since the search stopped at the first wrong one or left inputs out; all wrong
            positions are asked for.""",
            why="""backward returns one gradient for each input, in their order, and any of them may be wrong: a forgotten factor spoils
            the gradients of q and of k.""",
        ),
        "WG9": mistake(
            patch(BLAME, "wrong.append(i + 1)"),
            says="Positions were counted from 1; they count from 0.",
            why="inputs[0] is the first input.",
        ),
    }

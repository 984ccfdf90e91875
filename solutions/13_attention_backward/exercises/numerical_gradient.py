"""A gradient measured: each entry moved a little, both ways."""

from __future__ import annotations

import numpy as np

from grader.course.declare import exercise, mistake, patch
from grader.course.spec import Case
from grader.worker.values import Part

from ..probes import describe_type

COPIES, UP, DOWN = "up, down = (x.copy(), x.copy())", "up[at] += step", "down[at] -= step"
SLOPE = "(f(up) - f(down)) / (2 * step)"
MOVED, UP_OF_MOVED, SLOPE_OF_MOVED = (
    "moved = x.copy()",
    "moved[at] += step",
    "grad[at] = (above - f(moved)) / (2 * step)",
)
LOOP, BODY = (
    "for at in np.ndindex(x.shape):",
    f"""{COPIES}
        {UP}
        {DOWN}
        grad[at] = {SLOPE}""",
)


def reused(array: str, inside: str):
    """One array is moved up, then down, then put back."""
    lines = (
        f"old = {array}[at]",
        f"{array}[at] = old + step",
        f"above = f({array})",
        f"{array}[at] = old - step",
        f"below = f({array})",
        f"{array}[at] = old",
        "grad[at] = (above - below) / (2 * step)",
    )
    return patch(f"{LOOP}\n        {BODY}", f"{inside}{LOOP}\n        " + "\n        ".join(lines))


def shifted(array: str, inside: str):
    """The same by adding and subtracting."""
    lines = (
        f"{array}[at] += step",
        f"above = f({array})",
        f"{array}[at] -= 2 * step",
        f"below = f({array})",
        f"{array}[at] += step",
        "grad[at] = (above - below) / (2 * step)",
    )
    return patch(f"{LOOP}\n        {BODY}", f"{inside}{LOOP}\n        " + "\n        ".join(lines))


def again(copies: str, *lines: str):
    """Arrays that are copied once, before the loop, and given to f again and again."""
    return patch(f"{LOOP}\n        {BODY}", f"{copies}\n    {LOOP}\n        " + "\n        ".join(lines))


def _given(case, parts):
    """What came back, and the first that f was given and was not to be given."""
    x = case.args[0]
    right = describe_type(np.zeros(x.shape))
    kinds = [part.text for part in parts["what f was given"].items]
    other = next((kind for kind in kinds if kind != right), right)
    return {"what f was given": Part("text", text=other), "result": parts["result"]}


@exercise(points=3, minutes=10, difficulty=2, dtype=("float64",), forbids=("torch",))
class numerical_gradient:
    """Measure a gradient: move each number of x up and down by a step, and see how much f changes."""

    def cases(rng):
        def case(key, title, x, *step, f="cubes", c=None, rtol=None, **options):
            c = np.ones(x.shape) if c is None else c
            options = {"f": f, "c": c, **options}
            return Case(
                key,
                title,
                (x, *step),
                probe="probes.gradient_calls",
                options=options,
                names=("x", "step")[: 1 + len(step)],
                rtol=rtol,
                reading=_given,
            )

        def weighted(key, title, *shape_and_step, shape, **more):
            return case(key, title, rng.normal(size=shape), *shape_and_step, c=rng.uniform(1, 2, size=shape), **more)

        x = np.array([1.0, 2.0, 3.0])
        yield case("squares", "f(x) = x₀² + x₁² + x₂²", x, f="squares")
        yield case("half", "f(x) = x₀³ + x₁³ + x₂³, step ½: 3x² + ¼ in each place", x, 0.5)
        yield weighted("matrix", "a sum of cubes, each with a factor of its own", 0.1, shape=(2, 3))
        yield weighted("seen-again", "the same shape and f, new numbers", 0.1, shape=(2, 3))
        yield weighted("small-step", "a sum of cubes, step 1e-3, all by name", 1e-3, shape=(3, 2), by_name=True)
        yield weighted("softmax", "f = c · softmax(x) over all twenty numbers", 0.5, shape=(20,), f="softmax")
        product = rng.normal(size=(4, 3)), rng.normal(size=(4, 4))
        yield case("product", "f = Σ c ⊙ (x xᵀ), the step left to its default", product[0], f="product", c=product[1])
        thousandths = "f(x) = 10⁶ · (x₀³ + x₁³), the step left to its default of 1e-5"
        yield case("default", thousandths, np.array([0.001, 0.002]), c=np.full(2, 1e6), rtol=1e-6)
        yield weighted("three-axes", "three axes", 0.25, shape=(2, 3, 4))
        yield case("0-d", "a single number, an array of shape ()", np.array(2.0), 0.5)
        yield weighted("one", "one number, an array of shape (1, 1)", 0.5, shape=(1, 1))
        # Three and more of a kind: fewer would not tell which mistake is behind it.
        for n, shape in enumerate(((3, 4), (2, 5), (2, 3, 2))):
            yield weighted(
                f"transposed-{n}", "x lies in memory column by column", 0.1, shape=shape, layout="transposed"
            )
        yield weighted(
            "strided", "x is every second row and column of a larger array", 0.1, shape=(3, 4), layout="strided"
        )
        keeps = "an f that keeps the arrays it was given, and answers from memory where the same numbers come again"
        for n, shape in enumerate(((2, 3), (4,), (3, 2))):
            overwrites = "an f (that of softmax) that overwrites the array it was given"
            yield weighted(f"changes-{n}", overwrites, 0.5, shape=shape, f="softmax", changes=True)
            yield weighted(f"keeps-{n}", keeps, 0.5, shape=shape, keeps=True)

    hints = (
        "If only entry (0, 2) of x moves up by `step`, and then down by it, what do two calls of f tell you? What must be true of "
        "all other entries meanwhile?",
        "`np.ndindex(x.shape)` gives the index of every entry, whatever the number of axes. Give f a fresh copy of x at each call: f "
        "may keep or change what it gets.",
        "grad = np.zeros(x.shape)\nfor at in np.ndindex(x.shape):\n    up, down = x.copy(), ____\n    up[at] += ____\n"
        "    down[at] -= ____\n    grad[at] = (f(up) - f(down)) / ____\nreturn grad",
    )

    mistakes = {
        "ND1": mistake(
            patch(f"\n        {DOWN}", "", "(2 * step)", "step"),
            patch(f"{UP}\n        ", "", "(2 * step)", "step"),
            patch(
                "grad = ", "here = f(x.copy())\n    grad = ", f"\n        {DOWN}", "", SLOPE, "(f(up) - here) / step"
            ),
            patch(f"\n        {DOWN}", ""),
            patch(f"{UP}\n        ", ""),
            says="One of the two points is x itself; move up for one, down for the other, and divide by their distance, 2 · step.",
            why="""A one-sided difference is off by half a step times the curvature, (f(x + h) − f(x)) / h = f′ + ½ f″ h + …; in the
            central one that term cancels, and the error shrinks with h². For x³ at 1 with h = ½ the one-sided slope is 4.75, the central
            one 3.25, the derivative 3. Divided by 2h, a one-sided slope is half as large besides. An array that was moved up is back at x
            once `step` is subtracted: a whole step down takes 2 · step, or a second copy.""",
        ),
        "ND2": mistake(
            patch("2 * step", "step"),
            patch(" / (2 * step)", ""),
            patch("/ (2 * step)", "/ 2 * step"),
            says="The difference was divided by one step, by nothing, or by 2 and then multiplied by the step; divide it by the distance "
            "of the two points, `(2 * step)`.",
            why="""A gradient is a slope, the rise between two points divided by the whole way between them, and from x − h to x + h it is
            2h. For x² at 1 the right slope is 2; divided by h it is 4. The rise alone goes to 0 with the step; the slope does not.
            Python reads `a / 2 * step` from left to right: with a step of 1e-5 that looks like a gradient of 0.""",
        ),
        "ND6": mistake(
            patch(COPIES, "up = down = x.copy()"),
            patch(COPIES, "up, down = (x, x)"),
            patch(COPIES, "up = down = x"),
            patch(f"{LOOP}\n        {COPIES}\n        ", f"{COPIES}\n    {LOOP}\n        "),
            again(
                MOVED,
                "moved[at] += step",
                "above = f(moved.copy())",
                "moved[at] -= 2 * step",
                "grad[at] = (above - f(moved.copy())) / (2 * step)",
            ),
            says="The two points are one array, or entries that were moved earlier stay moved; copy x for each point, anew for each entry.",
            why="""Assignment gives an array a second name and makes no second array: what is added is subtracted again, and every
            difference is 0. Where x was copied before the loop, the first entry is still a step away at the second one, and the
            difference holds the slopes of both. Copy inside the loop, `x.copy()`, so that each entry starts from the unmoved x.""",
        ),
        "ND8": mistake(
            reused("moved", "moved = x.copy()\n    "),
            shifted("moved", "moved = x.copy()\n    "),
            again(
                COPIES,
                "up[at] = x[at] + step",
                "down[at] = x[at] - step",
                f"grad[at] = {SLOPE}",
                "up[at] = down[at] = x[at]",
            ),
            again(
                MOVED,
                "moved[at] = x[at] + step",
                "above = f(moved)",
                "moved[at] = x[at] - step",
                SLOPE_OF_MOVED,
                "moved[at] = x[at]",
            ),
            again(
                MOVED,
                "moved[...] = x",
                UP_OF_MOVED,
                "above = f(moved)",
                "moved[...] = x",
                "moved[at] -= step",
                SLOPE_OF_MOVED,
            ),
            reused("x", ""),
            shifted("x", ""),
            patch(COPIES, "up, down = (x, x.copy())"),
            says="f was given x itself, or an array that it had had before, with other numbers in it; give it a fresh copy at each call.",
            why="""f may keep or change what it gets. A function that remembers its inputs (a cache) finds an old input equal to the new
            one, since both are one array, and returns the old value. A function that works in place leaves its changes for the next call,
            and for the caller where the array is x itself. Besides, x + h − 2h + h is not always x in floating point.""",
        ),
        "ND11": mistake(
            patch("grad = ", "step = 1e-05\n    grad = "),
            patch(UP, "up[at] += step / 2", DOWN, "down[at] -= step / 2", "(2 * step)", "step"),
            *(
                patch(
                    COPIES,
                    f"{COPIES}\n        h = {size}",
                    UP,
                    "up[at] += h",
                    DOWN,
                    "down[at] -= h",
                    "(2 * step)",
                    "(2 * h)",
                )
                for size in ("step * np.abs(x[at])", "step * np.abs(x[at]) + 1e-12", "step * max(1.0, np.abs(x[at]))")
            ),
            says="""Entries were moved by another distance than `step`: a fixed one, half of it, or one that grows with the entry; move
            each by `step` itself.""",
            why="""The caller chooses the step, for example to see how the error depends on it. For x³ at 1 and a step of ½ the central
            difference, (f(x + h) − f(x − h)) / 2h, is 3.25; with a fixed 1e-5 it stays 3, and with half a step each way it is 3.0625. A
            step relative to the entry is common in libraries, where the caller gives none; at an entry of 0 it is 0, and 0 / 0 is NaN.""",
        ),
        "ND14": mistake(
            patch("np.ndindex(x.shape)", "range(len(x))"),
            patch("for at in np.ndindex(x.shape)", "for at, _ in enumerate(x)"),
            patch(UP, "up += step", DOWN, "down -= step"),
            patch(f"{COPIES}\n        {UP}\n        {DOWN}", "up, down = (x + step, x - step)"),
            says="Several entries were moved at once, a whole row or all of them; move one at a time, and reach every entry.",
            why="""Moving several measures the sum of their slopes. A gradient says for each entry how f changes when that entry alone
            moves. With one index `x[i]` is a row of a matrix; `np.ndindex(x.shape)` gives a full index for every entry, whatever the
            number of axes, none included.""",
        ),
        "ND15": mistake(
            patch(
                COPIES,
                "up, down = (np.copy(x), np.copy(x))",
                LOOP,
                "for n, at in enumerate(np.ndindex(x.shape)):",
                UP,
                "up.ravel()[n] += step",
                DOWN,
                "down.ravel()[n] -= step",
            ),
            patch(
                COPIES,
                "up, down = (np.copy(x), np.copy(x))",
                LOOP,
                "for n, at in enumerate(np.ndindex(x.shape)):",
                UP,
                "up.reshape(-1)[n] += step",
                DOWN,
                "down.reshape(-1)[n] -= step",
            ),
            says="`ravel()` or `reshape(-1)` made a copy where x is not row by row in memory, and what went into it, the step or the "
            "result, is lost; use a full index, as in `up[at]`.",
            why="""`np.copy` keeps the order in memory, so the copy of a transposed array is not contiguous either. Writing to
            `up.ravel()[n]` then changes an array that is never used, and the gradient is 0. `up[at]` with a full index, or
            `up.flat[n]`, always writes into `up`.""",
        ),
    }

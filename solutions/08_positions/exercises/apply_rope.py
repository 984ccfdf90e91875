"""Pairs of numbers turned by an angle that grows with the position."""

from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

from ..shared import wrong_angles

REFUSE = """if d % 2:
        raise ValueError(f'numbers are rotated in pairs, so d must be even; got {d}')"""
PAIRS = "(x[..., 0::2], x[..., 1::2])"
NEW_A, NEW_B = "new_a = a * cos - b * sin", "new_b = a * sin + b * cos"
ROTATED = "torch.stack((new_a, new_b), dim=-1).flatten(-2)"
ROUNDED_ANGLES = patch("cos().to(x.dtype)", "to(x.dtype).cos()", "sin().to(x.dtype)", "to(x.dtype).sin()")
ANGLES = wrong_angles("d", "dtype=torch.float64, device=x.device")


@exercise(points=4, minutes=15, difficulty=2, result_type="tensor")
class apply_rope:
    """Rotate each pair of numbers by an angle that grows with the position."""

    def cases(rng):
        def case(
            key: str,
            title: str,
            shape: tuple[int, ...],
            positions: Any,
            *more: Any,
            grad: bool = True,
            dtype: str = "float32",
            swapped: bool = False,
            ids: str = "int64",
            atol: float = 5e-5,
            **fields: Any,
        ) -> Case:
            x = rng.normal(size=shape).astype(dtype)
            x = x.swapaxes(-2, -3) if swapped else x
            return Case(
                key, title, (Tensor(x, None, grad), Tensor(np.asarray(positions, ids)), *more), atol=atol, **fields
            )

        x = Tensor(np.array([[1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 0, 2]], np.float32))
        yield Case("small", "three tokens of two pairs, small integers", (x, Tensor(np.arange(3))), atol=5e-5)
        yield case("start", "a token at position 0, behind one at position 5", (2, 6), [5, 0], grad=False)
        yield case("sizes", "a batch, all sizes different", (2, 5, 6), [0, 1, 2, 3, 4])
        yield case("heads", "batch and heads, x not contiguous in memory", (2, 4, 3, 8), [0, 1, 2, 3], swapped=True)
        yield case("later", "four tokens from position 37 on", (3, 4, 6), [37, 38, 39, 40], atol=2e-4)
        yield case(
            "any-order", "positions in any order, one of them twice", (2, 5, 4), [7, 2, 2, 11, 0], dtype="float64"
        )
        yield case("square", "as many items as heads, tokens and numbers", (4, 4, 4, 4), [3, 0, 5, 1])
        yield case("one", "one token at position 9", (2, 1, 4), [9])
        yield case("one-pair", "a single pair, no leading axis", (3, 2), [4, 1, 6])
        yield case("base", "base 100, third in order", (2, 3, 8), [5, 1, 3], 100.0)
        yield case("base-named", "base 20, by name", (3, 6), [1, 8, 3], kwargs={"base": 20.0})
        yield case(
            "seen-again",
            "a batch again, new numbers, other positions in the middle",
            (2, 5, 6),
            [0, 30, 12, 3, 4],
            atol=2e-4,
        )
        yield case("int32", "positions of int32", (2, 3, 4), [2, 9, 5], ids="int32", grad=False)
        random = rng.integers(0, 60, size=5)
        base = float(rng.integers(30, 3000))
        yield case("random", "positions and base drawn at random", (2, 5, 10), random, base, dtype="float64", atol=2e-4)
        x, positions = Tensor(rng.normal(size=(5, 6)).astype(np.float32)), np.array([0, 1, 4, 2, 9])
        yield Case("here", "five tokens", (x, Tensor(positions)), atol=1e-4)
        yield Case("shifted", "the same tokens, each 23 positions later", (x, Tensor(positions + 23)), atol=2e-4)
        for d in (3, 1, 5):
            yield case(f"odd-{d}", f"with d = {d}", (2, 4, d), [0, 1, 2, 3], raises="ValueError", grad=False)
        # Eighteen numbers: pair 1 turns by 0.36, where a logarithm of 10000 cut to 9.2103 is worst, 0.008 rad at position 5000.
        yield case("far", "positions up to 5000", (2, 3, 18), [4000, 4999, 5000], stage="extremes", atol=4e-3)
        nine = [40, 2, 11, 7, 0, 33, 5, 19, 26]
        yield case(
            "five axes",
            "five axes, nine tokens of 20 numbers",
            (5, 1, 2, 9, 20),
            nine,
            grad=False,
            show=False,
            atol=2e-4,
        )

    @holds("a rotation keeps lengths")
    def norms(case, parts):
        before, after = (np.linalg.norm(array, axis=-1) for array in (case.args[0].array, parts["result"]))
        at = np.abs(after - before).argmax()
        if abs(after.flat[at] - before.flat[at]) < 1e-3:
            return None
        return f"a vector of length {before.flat[at]:.4g} comes back with length {after.flat[at]:.4g}."

    @holds("position 0 leaves x as it is", cases=("start",))
    def start_stays(case, parts):
        moved = np.abs(parts["result"] - case.args[0].array)[1].max()
        return None if moved < 1e-4 else f"at position 0 a number changed by {moved:.4g}."

    @holds("dot products depend on differences of positions only", cases=("here", "shifted"))
    def relative(_, here, __, shifted):
        first, second = (parts["result"] @ parts["result"].T for parts in (here, shifted))
        moved = np.abs(first - second).max()
        return None if moved < 5e-3 else f"moving all tokens by 23 positions changed a dot product by {moved:.4g}."

    hints = (
        "By which angle does pair i of the token at position p turn, and where do the coordinates of a point (a, b) go when it turns by θ?",
        "Take the pairs apart with `x[..., 0::2]` and `x[..., 1::2]`; angles of shape (T, d/2) broadcast against them. Put them back "
        "together with `stack` and `flatten(-2)`.",
        "angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)\na, b = x[..., 0::2], x[..., 1::2]\n"
        "return torch.stack((____, ____), dim=-1).flatten(-2)",
    )

    mistakes = {
        "RO1": patch(PAIRS, "x.chunk(2, dim=-1)", ROTATED, "torch.cat((new_a, new_b), dim=-1)"),
        "RO2": (
            patch(
                f"return {ROTATED}",
                """turned = torch.stack((-b, a), dim=-1).flatten(-2)
    return x * torch.cat((cos, cos), dim=-1) + turned * torch.cat((sin, sin), dim=-1)""",
            ),
            patch(
                f"return {ROTATED}",
                """first, second = x.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return x * cos.repeat_interleave(2, dim=-1) + turned * sin.repeat_interleave(2, dim=-1)""",
            ),
        ),
        "RO3": (
            patch("a * cos - b", "a * cos + b"),
            patch(NEW_B, "new_b = b * cos - a * sin"),
            patch(NEW_B, "new_b = a * sin - b * cos"),
        ),
        "PE1": ANGLES["PE1"],
        "PE3": ANGLES["PE3"],
        "PO1": (patch(REFUSE, ""), patch(REFUSE, "", PAIRS, "x.reshape(*x.shape[:-1], d // 2, 2).unbind(-1)")),
        "PO2": patch("positions[:, None]", "(positions[:, None] + 1)"),
        "PO3": ANGLES["PO3"],
        "PO4": patch("cos, sin =", "sin, cos ="),
        "PO6": ANGLES["PO6"],
        "PO7": (*ANGLES["PO7"].ways, patch("-two_i", "two_i") + ROUNDED_ANGLES),
        "PO10": mistake(
            patch("positions[:, None]", "torch.arange(x.shape[-2])[:, None]"),
            patch("positions[:, None]", "(positions - positions[0])[:, None]"),
            patch("positions[:, None]", "(positions[0] + torch.arange(x.shape[-2]))[:, None]"),
            says="The tokens were counted, or their positions moved to begin at 0; use the positions that are passed in as they come.",
            why="""The tokens of x need not be the first of their sequence, nor in order, nor side by side. A text that goes on from
            a cache begins at position 37, say, and its first token has to be turned by 37 steps. Of a batch with padding, or of a
            cache that forgets, each token keeps its own position.""",
        ),
        "PO11": mistake(
            patch(NEW_A, NEW_A.replace("-", "+"), NEW_B, "new_b = b * cos - a * sin"),
            says="The minus sign was put at the wrong sine, so the rotation turns clockwise; put it at the first one.",
            why="""(a cos θ − b sin θ, a sin θ + b cos θ) turns counter-clockwise by θ. With the minus in the second line it turns by
            −θ. Lengths and relative angles stay right: a model trained this way works, but other weights do not.""",
        ),
        "PO12": mistake(
            patch(ROTATED, "torch.cat((new_a, new_b), dim=-1)"),
            says="The pairs were rotated correctly but put back in another order; neighbors should be neighbors again.",
            why="""Neighbors 2i and 2i + 1 were taken apart, so they must become neighbors again. Joined by `cat`, all first
            members come before all second ones.""",
        ),
        "PO15": ANGLES["PO15"],
        "PO17": mistake(
            patch(NEW_A, "a = a * cos - b * sin", NEW_B, "b = a * sin + b * cos", "(new_a, new_b)", "(a, b)"),
            says="The second number of a pair was computed from the new value of the first; use the old one.",
            why="""`y[..., 0::2] = …` overwrites a, and slices such as `a = y[..., 0::2]` are views that change with it. The next
            line then reads the rotated a. Compute both new numbers before either is stored, or read from x and write into y.""",
        ),
        "PO18": ANGLES["PO18"],
        "PO24": patch("-two_i / d", "-two_i.flip(0) / d"),
        "AB8": patch("d = x.shape[-1]", "batch, tokens, d = x.shape"),
    }

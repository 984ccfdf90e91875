"""One matrix that moves every row of the sinusoidal table by the same number of positions; any such matrix."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch
from grader.course.readings import ContractError
from grader.worker.values import Part

from ..shared import wrong_angles

PART = "M @ PE(p)"  # a row for each position that is tried
FAR = (0, 1, 2, 7, 100, 4321, 5000)
REFUSE = """if d_model % 2:
        raise ValueError(f'sine and cosine come in pairs, so d_model must be even; got {d_model}')"""
ANGLES = wrong_angles("d_model", "dtype=torch.float64")
OF_FREQUENCIES = ("PE1", "PO3", "PO6", "PO15", "PO18")
SINE, OTHER = "shift[even, even + 1] = angles.sin()", "shift[even + 1, even] = -angles.sin()"
TURNS = "shift[even, even] = shift[even + 1, even + 1] = angles.cos()"


def _table(positions: np.ndarray, d_model: int, base: float) -> np.ndarray:
    """The rows PE(p) of these positions."""
    angles = positions[:, None] * float(base) ** (-np.arange(0, d_model, 2) / d_model)
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(len(positions), d_model)


def _read(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """What the matrix makes of rows, near and far; only positions whose shifted row exists, too."""
    d_model, offset, base = case.args[0], case.args[1], case.kwargs.get("base", 10000.0)
    part, wanted = parts["result"], f"a float tensor M of shape {(d_model, d_model)} was asked for"
    if part.kind != "tensor" or part.array is None or part.dtype not in ("float32", "float64"):
        raise ContractError(f"What came back is no float tensor; {wanted}.")
    if part.shape != (d_model, d_model):
        raise ContractError(f"A tensor of shape {part.shape} came back; {wanted}.")
    positions = max(0, -offset) + np.array(FAR[:3] if case.show else FAR)
    positions = positions[positions <= 5000]
    return {PART: Part("tensor", _table(positions, d_model, base) @ part.array.astype(np.float64).T, "float64")}


@exercise(points=3, minutes=18, difficulty=2, result_type="tensor", result_names=(PART,), dtype=("float64",))
class shift_matrix:
    """Build the matrix that takes each sinusoidal encoding PE(p) to PE(p + offset), the same matrix for every p."""

    def cases(rng):
        def case(key: str, title: str, d_model: int, offset: int, show: bool = False, **base: float) -> Case:
            return Case(key, title, (d_model, offset), base, reading=_read, show=show, atol=1e-3)

        yield case("small", "with d_model 4, one position on; encodings of p = 0, 1, 2", 4, 1, show=True)
        yield case("back", "with d_model 4, two positions back; encodings of p = 2, 3, 4", 4, -2, show=True)
        yield case("stay", "offset 0: nothing moves", 6, 0, show=True)
        yield case("pair", "a single pair", 2, 3, show=True)
        for d_model, offset in ((8, 5), (6, -7), (10, 12), (16, 1), (12, -1)):
            at = max(0, -offset)
            shown = f"encodings of p = {at}, {at + 1}, {at + 2}, {at + 7} and {at + 100}, and of two far away"
            yield case(f"{d_model}-{offset}", f"with d_model {d_model}, offset {offset}; {shown}", d_model, offset)
        for base in (100.0, 20.0, 500000.0):
            yield case(f"base-{base:g}", f"base {base:g}, by name", 6, 4, base=base)
        yield case(
            "random",
            "sizes drawn at random",
            2 * int(rng.integers(2, 9)),
            int(rng.integers(6, 60)),
            base=float(rng.integers(30, 3000)),
        )
        yield case("wide", "with d_model 64", 64, -33)
        # With d_model 64 few frequencies are short decimals, and what is left out of the others counts 5000 times.
        yield case("far", "with d_model 64, offset 5000", 64, 5000)
        yield case("far-back", "offset −4000", 8, -4000)
        for d_model in (3, 1, 7):
            yield Case(f"odd-{d_model}", f"with d_model {d_model}", (d_model, 2), raises="ValueError")

    hints = (
        "Take d_model 2. PE(p) is (sin p, cos p), a point on a circle. Which matrix takes it to (sin(p + 1), cos(p + 1)), whatever p is?",
        "sin(a + b) = sin a cos b + cos a sin b, and cos(a + b) = cos a cos b − sin a sin b, with a = pω and b = offset · ω. Each pair of "
        "columns has its own ω, so M has a block of 2 × 2 for each pair on its diagonal, and zeros elsewhere.",
        "```python\nangles = offset * base ** (-torch.arange(0, d_model, 2) / d_model)\nM = torch.zeros(d_model, d_model)\n"
        "for i, angle in enumerate(angles):\n    M[2 * i, 2 * i] = M[2 * i + 1, 2 * i + 1] = ____\n    M[2 * i, 2 * i + 1] = ____\n"
        "    M[2 * i + 1, 2 * i] = ____\nreturn M\n```",
    )

    mistakes = {
        "SH1": mistake(
            patch(SINE, "shift[even, even + 1] = -angles.sin()", OTHER, "shift[even + 1, even] = angles.sin()"),
            patch("offset *", "-offset *"),
            patch("return shift", "return shift.T"),
            says="The encodings moved to p − offset, not p + offset: the usual rotation is for pairs (cos, sin), these are (sin, cos).",
            why="""A turn by +b and a turn by −b differ in the sign of the sine, and so in which of the two sines has the minus. For pairs
            in the order (sin, cos) the minus stands in the other place. Write sin(a + b) and cos(a + b) out to see where.""",
        ),
        "SH2": mistake(
            patch(OTHER, "shift[even + 1, even] = angles.sin()"),
            patch(SINE, "shift[even, even + 1] = -angles.sin()"),
            says="Both sines of a block were given the same sign; one of them should be negative.",
            why="""With equal signs the block is no rotation: it changes lengths. sin(a + b) has a plus, cos(a + b) a minus.""",
        ),
        "PO4": patch(
            TURNS,
            "shift[even, even] = shift[even + 1, even + 1] = angles.sin()",
            SINE,
            "shift[even, even + 1] = angles.cos()",
            OTHER,
            "shift[even + 1, even] = -angles.cos()",
        ),
        "SH4": mistake(
            patch("offset * ", "(offset > 0) * "),
            patch("offset * ", "1 * "),
            patch("offset * ", "abs(offset) * "),
            patch("offset * frequencies", "frequencies", "return shift", "return offset * shift"),
            says="The offset did not enter the angle as it is; the angle of a pair should be offset · ω.",
            why="""Moving by 5 positions turns each hand five times as far as moving by one, and moving back turns it the other way.
            To go k positions on is to turn k times: the matrix of one step to the power k. k times that matrix also makes everything
            k times as long.""",
        ),
        "RO1": patch(
            "even, even + 1",
            "half, half + len(half)",
            "even + 1, even]",
            "half + len(half), half]",
            TURNS,
            "half = torch.arange(d_model // 2)\n    shift[half, half] = shift[half + len(half), half + len(half)] = angles.cos()",
        ),
        "PO1": (
            patch(REFUSE, ""),
            patch(REFUSE, "d_model -= d_model % 2"),
            patch(
                REFUSE,
                "",
                "offset * frequencies",
                "offset * frequencies[:d_model // 2]",
                "(torch.arange(0, d_model, 2)",
                "(torch.arange(0, d_model - 1, 2)",
            ),
        ),
        **{id: ANGLES[id] for id in OF_FREQUENCIES},
        "PO7": patch("-two_i", "two_i"),
    }

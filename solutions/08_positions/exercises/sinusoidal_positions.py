"""The sinusoidal positional encoding: a table of sines and cosines, a row for each position."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ..shared import wrong_angles

REFUSE = """if d_model % 2:
        raise ValueError(f'sine and cosine come in pairs, so d_model must be even; got {d_model}')"""
TABLE = "torch.stack((sine, cosine), dim=-1).flatten(-2)"
ANGLES = wrong_angles("d_model", "dtype=torch.float64")


@exercise(points=3, minutes=12, difficulty=1, result_type="tensor", pair_runs=100)
class sinusoidal_positions:
    """Compute the sinusoidal encoding of each position."""

    def cases(rng):
        yield Case("small", "three positions, d_model 4", (3, 4), atol=2e-5)
        for n_positions, d_model in ((5, 2), (1, 6), (4, 4), (7, 10), (6, 12)):
            yield Case(
                f"{n_positions}-{d_model}",
                f"with n_positions {n_positions}, d_model {d_model}",
                (n_positions, d_model),
                atol=2e-5,
            )
        for base in (100.0, 20.0, 500000.0):
            yield Case(f"base-{base:g}", f"base {base:g}, by name", (5, 6), {"base": base}, atol=2e-5)
        yield Case("integer-base", "base 50, an integer, third in order", (4, 8, 50), atol=2e-5)
        n_positions, pairs = int(rng.integers(8, 20)), int(rng.integers(2, 9))
        base = float(rng.integers(30, 3000))
        yield Case("random", "sizes and base drawn at random", (n_positions, 2 * pairs), {"base": base}, atol=1e-4)
        yield Case("wide", "28 positions, d_model 70", (28, 70), show=False, atol=1e-4)
        for d_model in (3, 1, 5, 7):
            yield Case(f"odd-{d_model}", f"with d_model {d_model}", (4, d_model), raises="ValueError")
        # Six columns: a frequency of 0.046, which a logarithm of 10000 cut to 9.2103 turns 0.003 rad too far here;
        # of four none is as far off.
        yield Case("far", "positions up to 5000", (5001, 6), stage="extremes", show=False, atol=2e-3)

    @holds("each pair of columns is a sine and a cosine of one angle")
    def on_circle(case, parts):
        table = parts["result"]
        lengths = table[:, 0::2] ** 2 + table[:, 1::2] ** 2
        worst = lengths.flat[np.abs(lengths - 1).argmax()]
        return None if abs(worst - 1) < 1e-3 else f"a pair of neighboring columns has sin² + cos² = {worst:.4g}."

    @holds("the dot product of two encodings depends on their distance only")
    def distance_only(case, parts):
        table = parts["result"]
        for distance in range(min(len(table), 50)):  # of thousands, the first ones show it as well
            along = (table[: len(table) - distance] * table[distance:]).sum(axis=1)
            if np.ptp(along) > 2e-3 * case.args[1]:
                return f"at distance {distance} the dot product lies between {along.min():.4g} and {along.max():.4g}."
        return None

    hints = (
        "For d_model 4, which columns share a frequency, and what are the two frequencies?",
        "`torch.arange(0, d_model, 2)` already is 2i. Positions as a column times frequencies as a row give all angles; "
        "`torch.stack((a, b), dim=-1).flatten(-2)` lets two tables alternate.",
        "positions = torch.arange(n_positions)[:, None]\nangles = positions * base ** (-torch.arange(____) / ____)\n"
        "return torch.stack((____, ____), dim=-1).flatten(-2)",
    )

    mistakes = {
        "PE1": ANGLES["PE1"],
        "PE2": tuple(patch("angles.cos()", f"(angles * base ** (-{columns} / d_model)).cos()") for columns in (1, 2)),
        "PE3": ANGLES["PE3"],
        "PE4": patch(TABLE, "torch.cat((sine, cosine), dim=-1)"),
        "PO1": mistake(
            patch(REFUSE, ""),
            patch(
                REFUSE,
                "",
                f"return {TABLE}.float()",
                """table = torch.zeros(n_positions, d_model)
    table[:, 0::2] = sine.float()
    table[:, 1::2] = cosine.float()
    return table""",
            ),
            patch(REFUSE, "", ".flatten(-2)", ".flatten(-2)[:, :d_model]"),
            says="An odd width was not refused; it should raise a ValueError.",
            why="""Sines and cosines come in pairs, and so do the numbers that a rotation turns. An odd width leaves one of them
            alone. Without a check the failure comes later, as a message about shapes, or not at all where something broadcasts.""",
        ),
        "PO2": patch("arange(n_positions)", "arange(1, n_positions + 1)"),
        "PO3": ANGLES["PO3"],
        "PO4": mistake(
            patch("sine, cosine =", "cosine, sine ="),
            says="Sine and cosine were exchanged; of the angle 0 the sine is 0 and the cosine 1.",
            why="""At position 0 every angle is 0. The encoding's first row is therefore 0, 1, 0, 1, …; and a rotation by 0, or a
            shift by no position, must leave each number as it is.""",
        ),
        "PO6": ANGLES["PO6"],
        "PO7": ANGLES["PO7"],
        "PO15": ANGLES["PO15"],
        "PO18": ANGLES["PO18"],
    }

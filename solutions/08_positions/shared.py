"""Mistakes in angles, which sinusoidal_positions and apply_rope compute in the same lines."""

from collections.abc import Iterator

from grader.course.declare import mistake, patch
from grader.course.patches import Patch


def _grown(d: str, made: str) -> Iterator[Patch]:
    """PO7 in float32, as learners write it. Its angles reach millions of radians, where each spelling rounds to another sine."""
    in_float32, divided = patch(f", {made}", ""), patch("] * frequencies", "] / frequencies")
    yield in_float32 + divided
    yield in_float32 + divided + patch(f"base ** (-two_i / {d})", f"torch.exp(two_i * (-math.log(base) / {d}))")
    for power in (
        f"base ** (two_i / {d})",
        f"torch.exp(two_i * (math.log(base) / {d}))",
        f"torch.exp(math.log(base) * two_i / {d})",
        f"torch.exp(two_i / {d} * math.log(base))",
    ):
        yield in_float32 + patch(f"base ** (-two_i / {d})", power)


def wrong_angles(d: str, made: str) -> dict[str, tuple[Patch, ...]]:
    """Mistakes by id. d: what the solution calls the width; made: how it makes `two_i`."""
    exponent = f"-two_i / {d}"
    frequencies = f"base ** ({exponent})"
    return {
        "PE1": (patch("-two_i", "-2 * two_i"),),
        "PE3": tuple(
            patch(frequencies, f"torch.exp({i} * (-math.log(base) / {d} // 2))") for i in ("two_i / 2", "two_i")
        ),
        "PO3": patch("= base", "= 10000.0"),
        "PO6": mistake(
            patch(exponent, f"-(two_i / 2) / {d}"),
            says="The factor 2 is missing from the exponent: with i counting pairs, it should be 2i/d.",
            why="""With i = 0, 1, …, d/2 − 1 the exponent 2i/d runs from 0 to nearly 1, and the slowest frequency is nearly 1/base.
            With i/d it ends below one half: the slowest pair turns up to √base times as fast as it should.""",
        ),
        "PO7": mistake(
            patch("-two_i", "two_i"),
            *_grown(d, made),
            says="The exponent was given the wrong sign, so the angles grow from pair to pair; they should fall.",
            why="""Position times base^(2i/d) turns faster from pair to pair, up to thousands of turns a step. Neighboring positions
            then look unrelated. The position is divided by that power.""",
        ),
        "PO15": mistake(
            patch(frequencies, "torch.ones_like(two_i)"),
            says="All pairs were given the same frequency, or all heads the same slope; each should have its own, by its index.",
            why="""Pair i turns by base^(−2i/d) per position. With one frequency the angle comes round again after 2π positions, so
            near and far positions look alike; the slow pairs tell far positions apart. Head h of ALiBi has the slope 2^(−8(h +
            1)/num_heads): a steep one reads the neighbors, a flat one the whole text. With one slope all heads look equally far.""",
        ),
        "PO18": mistake(
            patch(exponent, f"-two_i / ({d} - 2)"),
            patch(exponent, f"-two_i / max({d} - 2, 1)"),
            patch(frequencies, f"torch.exp(two_i * (-math.log(base) / ({d} - 2)))"),
            says="The exponent was divided by d/2 − 1; with i counting pairs from 0 it should be i / (d/2).",
            why="""Divided by d/2 − 1, the exponents reach 1 and the slowest pair turns by exactly 1/base a step. Some libraries do
            so, and such a model trains as well. The paper's exponent 2i/d stops one step short of 1, and with a single pair
            nothing divides by 0.""",
        ),
    }

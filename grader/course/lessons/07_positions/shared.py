"""Mistakes in angles, which sinusoidal_positions and apply_rope compute in the same lines."""

from collections.abc import Iterator

from grader.course.declare import patch
from grader.course.patches import Patch

ANGLES = "positions[:, None] * frequencies"


def _grown(d: str, made: str) -> Iterator[Patch]:
    """PO7 in float32, as learners write it. Its angles reach millions of radians, where each spelling rounds to another sine."""
    in_float32, divided = patch(f", {made}", ""), patch("] * frequencies", "] / frequencies")
    yield in_float32 + divided
    yield in_float32 + divided + patch(f"base ** (-two_i / {d})", f"torch.exp(two_i * (-math.log(base) / {d}))")
    for power in (f"base ** (two_i / {d})", f"torch.exp(two_i * (math.log(base) / {d}))", f"torch.exp(math.log(base) * two_i / {d})",
                  f"torch.exp(two_i / {d} * math.log(base))"):  # fmt: skip
        yield in_float32 + patch(f"base ** (-two_i / {d})", power)


def wrong_angles(d: str, made: str) -> dict[str, tuple[Patch, ...]]:
    """Mistakes by id. d: what the solution calls the width; made: how it makes `two_i`, after the numbers."""
    exponent = f"-two_i / {d}"
    frequencies = f"base ** ({exponent})"
    return {
        "PE1": (patch("-two_i", "-2 * two_i"),),
        "PE3": tuple(patch(frequencies, f"torch.exp({i} * (-math.log(base) / {d} // 2))") for i in ("two_i / 2", "two_i")),
        "PO3": (patch("= base", "= 10000.0"),),
        "PO5": (patch(ANGLES, f"torch.deg2rad({ANGLES})"),),
        "PO6": (patch(exponent, f"-(two_i / 2) / {d}"),),
        "PO7": (patch("-two_i", "two_i"), *_grown(d, made)),
        "PO15": (patch(frequencies, "torch.ones_like(two_i)"),),
        "PO18": (
            patch(exponent, f"-two_i / ({d} - 2)"),
            patch(exponent, f"-two_i / max({d} - 2, 1)"),
            patch(frequencies, f"torch.exp(two_i * (-math.log(base) / ({d} - 2)))"),
        ),
        "PO36": (
            patch(exponent, f"-two_i // {d}"),
            patch(f", {made}", "", exponent, f"-two_i // {d}"),
        ),
    }

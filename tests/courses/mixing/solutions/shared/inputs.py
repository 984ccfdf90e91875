"""Inputs and properties that several exercises need."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case, Property


def normal32(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Standard-normal numbers in float32."""
    return rng.normal(size=shape).astype(np.float32)


def rows_sum_to_1(part: str) -> Property:
    """Each row of that part of a result sums to 1."""

    def check(case: Case, parts: Mapping[str, np.ndarray]) -> str | None:
        sums = parts[part].sum(axis=-1)
        worst = int(np.abs(sums - 1).argmax())
        return None if abs(sums.flat[worst] - 1) < 1e-4 else f"row {worst} sums to {sums.flat[worst]:.4g}."

    return Property("each row of weights sums to 1", check)

"""Judges by the operations that ran, as worker/watch.py saw them: whether a forbidden one did, an asked-for one did not, or one
made a tensor that is larger than the exercise allows.

What the source says is judged in source/policy.py.
"""

from __future__ import annotations

import math
import re

import numpy as np

from grader.course.spec import Case
from grader.source.policy import WORDS, Offence
from grader.worker.integrity import REBOUND
from grader.worker.operations import GROUPS, OPERATIONS
from grader.worker.values import Observation
from grader.worker.watch import UNWATCHED

PER_TILE = 3  # operations at the least: two products and a sum; right answers need four times as many
_OPERATIONS = re.compile(rf"{OPERATIONS} (\d{{1,12}})")
_EINSUM = re.compile(r"einsum (\d{1,12}) (\d{1,12})")


def forbidden_operation(forbids: tuple[str, ...], case: Case, observation: Observation) -> Offence | None:
    """The first forbidden operation that ran, whatever the source looked like; then a table, where there may be none."""
    violation = ""
    if REBOUND in observation.calls:
        violation = "the grader's own functions were replaced by others"
    elif forbids and UNWATCHED in observation.calls:
        violation = "it switched off the watch for forbidden operators"
    if violation:
        return Offence(f"While it ran, {violation}; your own answer has no need to do that.")
    for group in forbids:
        for call in observation.calls:
            if call in GROUPS.get(group, ()):
                name = "a library's operator" if call == "torch" else f"`{call}`"
                return Offence(f"While it ran, {name} was called: {WORDS[group]}.")
    return _table(case, observation) if "table" in forbids else None


def _table(case: Case, observation: Observation) -> Offence | None:
    """A tensor with as many numbers as the table of all scores has. The case's option `table` is that one's shape (B, H, T_q, T_k)."""
    largest, table = observation.largest, case.options.get("table")
    if largest is None or table is None or largest.elements < math.prod(table):
        return None
    t_q, t_k = table[-2:]
    tensor = f"a tensor of shape {largest.shape}"
    if math.prod(largest.shape) < largest.elements:
        tensor += f", part of a block of {largest.elements:,} numbers,"
    return Offence(
        f"The T × T table stands in memory: with {t_q:,} queries and {t_k:,} keys, {tensor} was made, and {t_q} · {t_k} = {t_q * t_k:,} "
        "numbers for each item and head are the whole table. Every tensor has to stay smaller than that.",
        largest.line,
    )


def missing_keys(case: Case, observation: Observation) -> Offence | None:
    """Fewer operations than tiles of keys need. The case's option `tiles` is (keys, block_size), with queries for a single tile. That
    the operations work on so many keys, and on no more, is not seen."""
    keys, block = case.options.get("tiles", (0, 1))
    count = next((int(match[1]) for match in map(_OPERATIONS.fullmatch, observation.calls) if match), 0)
    tiles = -(-keys // block)
    if observation.failure is not None or count >= PER_TILE * tiles:
        return None
    return Offence(
        f"The keys were not taken tile by tile: {keys} keys and a block_size of {block} make {tiles} tiles of keys for each tile of "
        f"queries, too many for the {count} operations of PyTorch that ran. Let block_size keys at a time meet the queries, in a loop over "
        "the tiles."
    )


def missing_einsum(case: Case, observation: Observation) -> Offence | None:
    """For an ordinary case with q, k, v of three dimensions: an offence where einsum did not form both products.

    Counted in multiply-adds: together the einsum calls must do at least the work of q kᵀ and weights v.
    A call whose work is no more than one operand's size only weights that operand: what is larger than the
    inputs and the scores was multiplied out before. The work of q kᵀ counts once: computed again, it is no second product.
    """
    if case.stage != "values" or observation.failure is not None:
        return None
    q, k, v = (np.shape(getattr(value, "array", value)) for value in case.args[:3])
    pairs = q[0] * q[1] * k[1]
    if q[1] == 1:  # a single query's product is as large as the keys: nothing tells one that was multiplied out before
        return None
    minimum, scores = pairs * (q[2] + v[2]), pairs * q[2]
    largest = max(pairs, *(int(np.prod(shape)) for shape in (q, k, v)))
    work, calls = 0, set()
    for call in observation.calls:
        if match := _EINSUM.fullmatch(call):  # a worker's word: anything else in it is no einsum
            adds, operand = int(match[1]), int(match[2])
            repeated = call in calls and adds == scores and q[2] != v[2]
            calls.add(call)
            work += adds if (operand <= largest or operand < adds) and not repeated else 0
    if work >= minimum:
        return None
    share = "only a part" if work else "neither"
    return Offence(f"`np.einsum` formed {share} of the two products; both were asked for.")

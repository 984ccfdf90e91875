"""Judges by the operations that ran, as worker/watch.py saw them: whether a forbidden one did, and an asked-for one did not.

What the source says is judged in source/policy.py.
"""

from __future__ import annotations

import re

import numpy as np

from grader.course.spec import Case
from grader.source.policy import WORDS, Offence
from grader.worker.operations import GROUPS
from grader.worker.values import Observation
from grader.worker.watch import UNWATCHED

_EINSUM = re.compile(r"einsum (\d{1,12}) (\d{1,12})")


def forbidden(forbids: tuple[str, ...], observation: Observation) -> Offence | None:
    """The first forbidden operation that ran, whatever the source looked like."""
    if forbids and UNWATCHED in observation.calls:
        return Offence("While it ran, it switched off what looks at which operators run; an answer of one's own has no need to.")
    for group in forbids:
        for call in observation.calls:
            if call in GROUPS.get(group, ()):
                name = "a library's operator" if call == "torch" else f"`{call}`"
                return Offence(f"While it ran, {name} was called: {WORDS[group]}.", name=call)
    return None


def einsum_missing(case: Case, observation: Observation) -> Offence | None:
    """For a case with q, k, v of three dimensions: an offence where einsum did not form both products.

    Counted in multiply-adds: together the einsum calls must do at least the work of q kᵀ and weights v.
    A call whose work is no more than one operand's size only weights that operand: what is larger than the
    inputs and the scores was multiplied out before. The work of q kᵀ counts once: computed again, it is no second product.
    """
    q, k, v = (np.shape(getattr(value, "array", value)) for value in case.args[:3])
    pairs = q[0] * q[1] * k[1]
    if q[1] == 1:
        return None  # a single query's product is as large as the keys: nothing tells one that was multiplied out before
    needed, scores = pairs * (q[2] + v[2]), pairs * q[2]
    largest = max(pairs, *(int(np.prod(shape)) for shape in (q, k, v)))
    done, seen = 0, set()
    for call in observation.calls:
        counted = _EINSUM.fullmatch(call)  # a worker's word: anything else in it is no einsum
        if counted:
            adds, operand = int(counted[1]), int(counted[2])
            again = call in seen and adds == scores and q[2] != v[2]
            seen.add(call)
            done += adds if (operand <= largest or operand < adds) and not again else 0
    if done >= needed:
        return None
    if done == 0:
        return Offence("`np.einsum` formed neither of the two products; both were asked for.")
    return Offence("`np.einsum` formed only a part of the two products; both were asked for.")

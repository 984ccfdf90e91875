"""Which two mistakes may be behind a wrong answer together: their members are chosen by what each shows alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from grader.course.patches import Patch
from grader.judging.compare import numbers
from grader.judging.mistake_runs import Key, MistakeRuns, breaks_contract, same_failure
from grader.worker.values import Observation, Part

UNASKED = Part("unasked")  # the reference's side of what it does not return, equal to nothing


def candidate_pairs(runs: MistakeRuns, failing: Mapping[int, Observation]) -> list[Key]:
    """Pairs that may be behind it, the likeliest first: those of which one member alone shows most of what is wrong.

    failing: what was observed in the cases by which members are chosen.
    """
    patches = [n for n, one in enumerate(runs.exercise.mistakes) if isinstance(one.wrong, Patch) and "+" not in one.id]
    members, pools = patches, []
    for i, actual in failing.items():
        members = [n for n in members if _may_take_part(runs, (n,), i, actual)]
        pools += _pools(runs, members, i, actual)
        if not all(pools):
            return []
    shows = {
        n: {(i, what) for i, actual in failing.items() for what in _explained(runs, (n,), i, actual)} for n in members
    }
    changes = {n for n in members if any(runs.show((n,), i).wrong for i in failing)}
    pairs = [pair for pair in combinations(members, 2) if all(not pool.isdisjoint(pair) for pool in (changes, *pools))]
    return sorted(pairs, key=lambda pair: -len(shows[pair[0]] | shows[pair[1]]))


def _pools(runs: MistakeRuns, members: list[int], i: int, actual: Observation) -> list[set[int]]:
    """Of each of these sets of mistakes, one has to be in a pair. Two together do not break a contract that neither breaks alone, nor
    fail a claim that holds for either, nor return something else than numbers where both return numbers."""
    if breaks_contract(actual):
        return [{n for n in members if breaks_contract(runs.show((n,), i).actual)}]
    pairs = {name: (right, actual.parts.get(name)) for name, right in runs.expected[i].parts.items()}
    plain = [
        name
        for name, (right, theirs) in pairs.items()
        if theirs is not None
        and (right.role == "flag" or (theirs.kind == "none" and right.array is not None))
        and not runs.same_part(i, right, theirs)
    ]
    explained = {n: _explained(runs, (n,), i, actual) for n in members} if plain else {}
    return [{n for n in members if name in explained[n]} for name in plain]


def _explained(runs: MistakeRuns, key: Key, i: int, actual: Observation) -> set[str]:
    """The names of the wrong parts that a mistake alone shows in the same way; '' for a failure."""
    alone = runs.show(key, i).actual
    if alone.failure or actual.failure:
        return {""} if same_failure(alone, actual) else set()
    return {
        name
        for name, (right, mine, theirs) in _parts(runs, i, alone, actual).items()
        if runs.same_part(i, mine, theirs) and not runs.same_part(i, right, theirs)
    }


def _may_take_part(runs: MistakeRuns, key: Key, i: int, actual: Observation) -> bool:
    """Whether a mistake can be one of two behind what was observed: alone, it breaks no correct part."""
    alone = runs.show(key, i).actual
    if not runs.show(key, i).wrong:
        return True
    if alone.failure or actual.failure:
        return bool(actual.failure)  # in other words too: a second mistake may change the shapes that they tell
    for right, mine, theirs in _parts(runs, i, alone, actual).values():
        if runs.same_part(i, right, theirs) and not runs.same_part(i, right, mine):
            return False
        if numbers(mine).shape not in (numbers(right).shape, numbers(theirs).shape):
            return False
    return True


def _parts(runs: MistakeRuns, i: int, alone: Observation, actual: Observation) -> dict[str, tuple[Part, Part, Part]]:
    """The parts that a mistake and the learner have of a case, by name, and those of the reference."""
    right, mine, theirs = (one.parts for one in (runs.expected[i], alone, actual))
    return {name: (right.get(name, UNASKED), mine[name], theirs[name]) for name in mine if name in theirs}

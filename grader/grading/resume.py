"""What a run that goes on keeps of the journal, and what it grades: added, changed, asked for again, or not graded in whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from grader.grading.journal import JournalEntry
from grader.grading.roster import RosterEntry, pack
from grader.util.errors import InputError
from grader.util.names import printable
from grader.util.words import abridged, nearest


@dataclass(frozen=True)
class ResumePlan:
    """results: by key, of what is as it was. left: what is graded now. sentences: why, where something was graded before."""

    results: dict[str, JournalEntry]
    left: tuple[RosterEntry, ...]
    sentences: tuple[str, ...]


def plan_resume(
    found: Sequence[RosterEntry], graded: Mapping[str, JournalEntry], again: Collection[str] = ()
) -> ResumePlan:
    """found: who is in the class's folder now. graded: the journal's results. again: keys of those to grade whatever was found."""
    results: dict[str, JournalEntry] = {}
    why: dict[str, list[str]] = {"added": [], "changed": [], "again": [], "not graded completely": []}
    left = []
    for one in found:
        result = graded.get(one.key)
        if result is None:
            reason = "added"
        elif result.digest != pack(one).digest:
            reason = "changed"
        elif result.report.ungraded:
            reason = "not graded completely"
        elif one.key in again:
            reason = "again"
        else:
            results[one.key] = result
            continue
        left.append(one)
        why[reason].append(one.name)
    gone = [result.report.name for key, result in graded.items() if key not in {one.key for one in found}]
    return ResumePlan(results, tuple(left), tuple(_sentences(why, gone)) if graded else ())


def _sentences(why: Mapping[str, Sequence[str]], gone: Sequence[str]) -> list[str]:
    """Nothing of a first run: all of it is new there."""
    reasons = {
        "added": "Not in the journal yet, graded now",
        "changed": "Changed since they were graded, graded again",
        "again": "Graded again as asked",
        "not graded completely": "Could not be graded completely, tried again",
    }
    sentences = [f"{reasons[reason]}: {abridged(names)}." for reason, names in why.items() if names]
    return [*sentences, f"No longer in the folder, and in no report: {abridged(gone)}."] if gone else sentences


def keys_of(asked: Sequence[str], found: Sequence[RosterEntry]) -> frozenset[str]:
    """The keys of learners who are named as in the folder or as in the reports.

    Raises: InputError, with the nearest name, for one who isn't there.
    """
    keys = set()
    for name in asked:
        theirs = {one.key for one in found if name in (one.key, one.name)}
        if not theirs:
            near = nearest(name, [one.name for one in found])
            raise InputError(f"there is no learner {printable(name)!r} in the folder{near}")
        keys |= theirs
    return frozenset(keys)

"""An exercise that fails only because another one of the same learner does: judged again, with the course's answer in the other's place.

What passes so earns the share of its points that the instructor sets; the verdict stays what it was, and the report says why there are
points. The learner's code then runs beside answers of the course, which are public; what it prints there is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from grader.course import references
from grader.course.course import Course
from grader.judging.judge import FAILING
from grader.judging.verdict import Verdict
from grader.submission.plan import Plan, RunCell


def followed(
    course: Course,
    plan: Plan,
    verdicts: Sequence[Verdict],
    sources: Mapping[str, Any],
    passes: Callable[[Plan, str], bool],
) -> dict[str, str]:
    """By exercise, whose answers were in its way. sources: of each exercise; passes: whether an exercise does with this plan."""
    failing = {verdict.exercise for verdict in verdicts if not verdict.passed and verdict.exercise in plan.owners}
    found = {}
    for verdict in verdicts:
        name = verdict.exercise
        callees = _called(name, failing, sources) if verdict.status in FAILING and name in plan.owners else set()
        places = {callee: plan.owners[callee] for callee in callees}
        if not places or plan.owners[name] in places.values():
            continue
        cells = list(plan.cells)
        for callee, at in places.items():
            cells[at] = RunCell(cells[at].label, references.solution_text(course, callee), own=False)
        if passes(replace(plan, cells=tuple(cells)), name):
            found[name] = " and ".join(sorted(places))
    return found


def _called(name: str, failing: set[str], sources: Mapping[str, Any]) -> set[str]:
    """The failing exercises that one calls, and those that these call."""
    found: set[str] = set()
    left = [name]
    while left:
        own = sources[one := left.pop()]
        calls = {slip.name for slip in own.slips(one) if slip.kind == "calls"} if own is not None else set()
        new = calls & failing - found - {name}
        found |= new
        left += new
    return found

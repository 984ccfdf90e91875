"""What a class gets wrong: its mistakes by how many made them, its exercises by how many passed, and whom to ask."""

from __future__ import annotations

from collections.abc import Iterable

from grader.reports.items import FEWEST, items, remark
from grader.reports.room import ATTEMPTED, ClassSummary, told
from grader.reports.templating import render

MOST = 8  # mistakes told at once, the rest folded


def mistakes(room: ClassSummary) -> str:
    """Each mistake: how many made it, the sentence, why, and who."""
    return render("mistakes.html", room=room, told=[(met, told(met)) for met in room.mistakes], most=MOST)


def others(room: ClassSummary) -> str:
    """Who needs something that no mistake names."""
    return render("others.html", room=room, groups=[(title, who) for title, who in _groups(room) if who])


def _groups(room: ClassSummary) -> Iterable[tuple[str, list[int]]]:
    def having(*statuses: str) -> list[int]:
        return [who for who, mine in enumerate(room.verdicts) if any(v.status in statuses for v in mine.values())]

    yield (
        "a note on their submission: a lesson is missing, or something could not be read",
        [who for who, one in enumerate(room.report.submissions) if one.message],
    )
    yield (
        "a name that differs from another's only in case, spaces, or invisible characters: whose work is it?",
        room.alike,
    )
    yield (
        "nothing attempted",
        [
            who
            for who, mine in enumerate(room.verdicts)
            if not any(v.status in (*ATTEMPTED, "could_not_grade") for v in mine.values())
        ],
    )
    yield "used what an exercise does not allow", having("forbidden")
    yield "code that does not end, or takes too much memory", having("timeout", "memory")
    yield (
        "a wrong result that no known mistake explains",
        [
            who
            for who, mine in enumerate(room.verdicts)
            if any(v.status == "failed" and not v.mistakes for v in mine.values())
        ],
    )
    yield "could not be graded because the grader failed; grade these again", having("could_not_grade")


def exercises(room: ClassSummary) -> str:
    """The exercises, those that fewest passed first, with what each tells of the class."""
    return render("exercises.html", items=items(room), remark=remark(room), tells=len(room.shares) >= FEWEST)

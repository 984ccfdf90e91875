"""What a class gets wrong: its mistakes by how many made them, its exercises by how many passed, and whom to ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from grader.reports import text
from grader.reports.room import ATTEMPTED, ClassSummary, Column, likeliest, told
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
        "a notebook can't be read, or another note stands",
        [who for who, one in enumerate(room.report.submissions) if one.message],
    )
    yield "a name that differs from another's in case, spaces, or what is not seen, at most: whose work is it?", room.alike
    yield (
        "nothing attempted",
        [who for who, mine in enumerate(room.verdicts) if not any(v.status in (*ATTEMPTED, "could_not_grade") for v in mine.values())],
    )
    yield "used what an exercise does not allow", having("forbidden")
    yield "code that does not end, or takes too much memory", having("timeout", "memory")
    yield "a wrong result that no known mistake explains", [
        who for who, mine in enumerate(room.verdicts)
        if any(v.status == "failed" and not v.mistakes for v in mine.values())
    ]  # fmt: skip
    yield "could not be graded: the grader's failure, grade these again", having("could_not_grade")


def exercises(room: ClassSummary) -> str:
    """The exercises, those that fewest passed first."""
    counted = [(column, Counter(judged.status for _, judged in room.of(column))) for column in room.columns]
    counted.sort(key=lambda pair: pair[1]["passed"] / max(_graded(pair[1]), 1))
    return render("exercises.html", rows=[_exercise(room, column, met) for column, met in counted])


def _graded(met: Counter[str]) -> int:
    return met.total() - met["could_not_grade"]


def _exercise(room: ClassSummary, column: Column, met: Counter[str]) -> tuple[Column, int, int, str, str]:
    """The exercise, how many passed of how many, what became of the others, and its most frequent mistakes."""
    otherwise = ", ".join(f"{count} {text.WORDS[status]}" for status, count in met.most_common() if status != "passed")
    found = Counter(id for _, judged in room.of(column) for id, _ in likeliest(judged))
    worst = ", ".join(f"{id} ({count})" for id, count in found.most_common(2))
    return column, met["passed"], _graded(met), otherwise, worst

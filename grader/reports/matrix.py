"""Learners × exercises as a table: a sign for the eye, the word for a screen reader, no meaning by colour alone."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from grader.judging.verdict import SubmissionReport, Verdict
from grader.reports import text
from grader.reports.html import escape
from grader.reports.room import ClassSummary

# One sign a status, no two alike, each drawn by common fonts.
SIGNS = {
    "passed": "✓", "failed": "✗", "error": "!", "timeout": "T", "memory": "M", "forbidden": "⊘", "not_started": "·",
    "missing": "–", "could_not_grade": "?",
}  # fmt: skip


def table(room: ClassSummary) -> str:
    """The legend and the table; it scrolls in its own box, names and headings stay."""
    if not room.columns:
        return "<p>No exercise was graded.</p>"
    rows = "".join(
        _row(room, who, label, one, mine)
        for who, (label, one, mine) in enumerate(zip(room.labels, room.report.submissions, room.verdicts, strict=True))
    )
    return (
        f'{_key(room)}<div class="scroll" tabindex="0" role="region" aria-label="Learners and exercises">'
        f'<table class="grid{" few" if _fits(room) else ""}"><caption class="unseen">The status of each exercise, a row a learner</caption>'
        f"<thead>{_head(room)}</thead><tbody>{rows}</tbody></table></div>"
    )


def _fits(room: ClassSummary) -> bool:
    """Whether there is room for every lesson's whole name above its columns, in characters of a page's width."""
    counts = Counter(column.lesson for column in room.columns)
    return sum(max(len(name), 4 * count) for name, count in counts.items()) <= 90


def _key(room: ClassSummary) -> str:
    """What the signs mean; those that occur."""
    met = {judged.status for mine in room.verdicts for judged in mine.values()}
    said = "".join(f"<li><b>{sign}</b> {text.WORDS[status]}</li>" for status, sign in SIGNS.items() if status in met)
    return f'<ul class="key">{said}</ul>'


def _head(room: ClassSummary) -> str:
    lessons = "".join(
        f'<th class="lesson" scope="colgroup" colspan="{len(list(columns))}" title="{escape(name)}">{escape(name)}</th>'
        for name, columns in groupby(room.columns, key=lambda column: column.lesson)
    )
    names = "".join(
        f'<th scope="col"{_first(room, at)}><div class="name">{escape(column.exercise)}</div></th>'
        for at, column in enumerate(room.columns)
    )
    return (
        '<tr><th class="corner" scope="col" rowspan="2">learner</th><th scope="col" rowspan="2">points</th>'
        f"{lessons}</tr><tr>{names}</tr>"
    )


def _row(room: ClassSummary, who: int, label: str, one: SubmissionReport, mine) -> str:  # type: ignore[no-untyped-def]
    cells = "".join(
        _cell(mine.get((column.lesson, column.exercise)), at == 0 or room.columns[at - 1].lesson != column.lesson)
        for at, column in enumerate(room.columns)
    )
    name = f'<a href="#learner-{who}" title="{escape(label)}">{escape(label)}</a>'
    return f'<tr><th scope="row">{name}</th><td class="total">{text.had(one.score)}/{one.max_score}</td>{cells}</tr>\n'


def _cell(judged: Verdict | None, first: bool) -> str:
    also = " first" if first else ""
    if judged is None:
        return f'<td class="absent{also}"><span class="unseen">not asked for</span></td>'
    status = judged.status
    return (
        f'<td class="{status}{also}"><span aria-hidden="true">{SIGNS[status]}</span>'
        f'<span class="unseen">{text.WORDS[status]}</span></td>'
    )


def _first(room: ClassSummary, at: int) -> str:
    return ' class="first"' if at == 0 or room.columns[at - 1].lesson != room.columns[at].lesson else ""

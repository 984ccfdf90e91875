"""What a class gets wrong: its mistakes by how many made them, its exercises by how many passed, and whom to ask."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from grader.reports import text
from grader.reports.html import code, escape, paragraphs, prose
from grader.reports.room import ATTEMPTED, ClassSummary, Column, Frequent, likeliest, told

MOST = 8  # mistakes told at once, the rest folded
NAMES = 24  # names in a row, the rest folded


def mistakes(room: ClassSummary) -> str:
    """Each mistake: how many made it, the sentence, why, and who."""
    if not room.mistakes:
        return "<p>No known mistake was met.</p>"
    shown = [_mistake(room, met) for met in room.mistakes]
    made = f'<ol class="mistakes">{"".join(shown[:MOST])}</ol>'
    if shown[MOST:]:
        made += (
            f"<details><summary>{len(shown) - MOST} more, each met less often</summary>"
            f'<ol class="mistakes" start="{MOST + 1}">{"".join(shown[MOST:])}</ol></details>'
        )
    return made


def _mistake(room: ClassSummary, met: Frequent) -> str:
    about = told(met)
    why = [paragraphs(about.why)] if about.why else []
    why += [
        f"<p>{name}</p>{code(textwrap.dedent(said).strip(chr(10)))}"
        for name, said in (("Wrong", about.wrong), ("Right", about.right)) if said
    ]  # fmt: skip
    folded = f'<details class="attn-why"><summary>Why</summary>{"".join(why)}</details>' if why else ""
    where = ", ".join(f"<code>{escape(name)}</code>" for name in met.exercises)
    return (
        f'<li><div class="how"><b>{len(met.learners)}</b> of {len(room.labels)}<br>'
        f"{_bar(len(met.learners), len(room.labels))}</div>"
        f'<div><p class="sentence">{escape(met.id)}: {prose(about.sentence)}</p>'
        f'<p class="who"><span class="label">In</span> {where}</p>'
        f'<div class="who"><span class="label">Talk to</span> {names(room, met.learners)}</div>{folded}</div></li>'
    )


def _bar(part: int, whole: int) -> str:
    """A share as a bar; the number beside it says the same."""
    return f'<span class="bar" aria-hidden="true"><i style="width: {100 * part / max(whole, 1):.0f}%"></i></span>'


def names(room: ClassSummary, learners: Sequence[int]) -> str:
    """Learners' names, each a link to what is said of them."""
    linked = [f'<a href="#learner-{who}">{escape(room.labels[who])}</a>' for who in learners]
    said = ", ".join(linked[:NAMES])
    if linked[NAMES:]:
        said += (
            f"<details><summary>and {len(linked) - NAMES} more</summary>{', '.join(linked[NAMES:])}</details>"
        )  # fmt: skip
    return said


def others(room: ClassSummary) -> str:
    """Who needs something that no mistake names."""
    said = "".join(
        f'<tr><th scope="row">{title}</th><td class="number">{len(who)}</td><td>{names(room, who)}</td></tr>'
        for title, who in _groups(room)
        if who
    )
    if not said:
        return ""
    return (
        '<h3>Who else to talk to</h3><table class="list"><caption class="unseen">Learners in need of something that no '
        'mistake names</caption><thead><tr><th scope="col">what</th><th scope="col">learners</th>'
        f'<th scope="col">who</th></tr></thead><tbody>{said}</tbody></table>'
    )


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
    rows = "".join(_exercise(room, column, met) for column, met in counted)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Exercises" style="border: 0; max-height: none">'
        '<table class="list"><caption class="unseen">Exercises by the share of learners who passed</caption>'
        '<thead><tr><th scope="col">exercise</th><th scope="col">passed</th><th scope="col">otherwise</th>'
        f'<th scope="col">most frequent mistake</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _graded(met: Counter[str]) -> int:
    return met.total() - met["could_not_grade"]


def _exercise(room: ClassSummary, column: Column, met: Counter[str]) -> str:
    otherwise = ", ".join(
        f"{count} {text.WORDS[status]}" for status, count in met.most_common() if status != "passed"
    )  # fmt: skip
    found = Counter(id for _, judged in room.of(column) for id, _ in likeliest(judged))
    worst = ", ".join(f"{escape(id)} ({count})" for id, count in found.most_common(2))
    return (
        f'<tr><th scope="row"><code>{escape(column.exercise)}</code><br><span class="fine">{escape(column.lesson)}'
        f'</span></th><td class="number">{_bar(met["passed"], _graded(met))}{met["passed"]} of {_graded(met)}</td>'
        f"<td>{otherwise}</td><td>{worst}</td></tr>"
    )

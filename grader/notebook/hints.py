"""What hint() and explain() say: a hint to an exercise, a mistake at length, the known mistakes lesson by lesson."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from grader.course import references
from grader.course.spec import Exercise
from grader.notebook import verdicts
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record
from grader.notebook.showing import Shown, sentence
from grader.notebook.target import Target
from grader.reports import html, text

HINTS = 3


def hint(target: Target, level: int, record: Record, more: tuple[str, ...] = ()) -> Shown:
    """A hint, which the record notes: about the mistake that the last check proved, else the exercise's own. more: what to do next."""
    record.hinted(target.name, level)
    words = _hint_text(target, level)
    is_code = level == HINTS and "```" not in words  # the third may be bare code, or prose with a fenced block
    title = f"Hint {level} of {HINTS} for {target.name}"
    return sentence(words, title, code=is_code, more=(*more, *record.take_notes()))


def next_level(name: str, record: Record) -> int:
    """The level of the hint that comes next."""
    return min(record.entry(name).hints + 1, HINTS)


def _hint_text(target: Target, level: int) -> str:
    """The text of a hint, Markdown; level: 1, 2 or 3."""
    verdict = verdicts.last(target)
    if verdict is not None and verdict.mistakes and level < HINTS:
        id = verdict.mistakes[0].partition("+")[0]
        mistake, lines = (
            kernel_course().mistake_text(id),
            references.wrong_lines(kernel_course().exercise(target.name), id).strip("\n"),
        )
        if level == 1:
            return f"The check proved {id}: {mistake.sentence}\n\n{mistake.why}\n\nWhich of your lines does that?"
        if lines:
            return f"{id}: {mistake.sentence}\n\nWritten like this, it gives your result:\n\n```python\n{lines}\n```"
    return kernel_course().exercise(target.name).hints[level - 1].strip("\n")


def explain(query: str | None, current: str | None = None) -> Shown:
    """What explain() answers.

    query: an id, two with a plus, an exercise, a lesson's number or name, None for everything. current: the lesson that is unfolded.
    """
    if query in kernel_course().exercise_names():
        return _list([(query, _ids([kernel_course().exercise(query)]))], query)
    lessons = kernel_course().lessons()
    if query is not None:
        lessons = tuple(name for name in lessons if str(query) in (name, name[:2], name[:2].lstrip("0")))[:1]
    if not lessons:
        return _at_length([id.strip() for id in str(query).split("+")])
    groups = [
        (f"{name[:2]} · {kernel_course().lesson(name).title}", _ids(kernel_course().lesson(name).exercises))
        for name in lessons
    ]
    unfolded = lessons[0] if query is not None else current
    return _list(groups, next((group[0] for group, name in zip(groups, lessons) if name == unfolded), ""))


def _ids(exercises: Sequence[Exercise]) -> tuple[str, ...]:
    """The ids of the exercises' mistakes, in the order of the exercises; of a pair both."""
    ids = (id for exercise in exercises for mistake in exercise.mistakes for id in mistake.id.split("+"))
    return tuple(dict.fromkeys(ids))


def _list(groups: Sequence[tuple[str, Sequence[str]]], unfolded: str) -> Shown:
    """Mistakes in a line each, under the titles of their groups."""
    mistakes = [(title, [kernel_course().mistake_text(id) for id in ids]) for title, ids in groups]
    lines = ['Known mistakes; explain("SM1") explains one at length.']
    for title, members in mistakes:
        lines += ["", title, *(f"  {one.id:<5} {one.sentence}" for one in members)]
    return Shown("\n".join(lines), html.explanations(mistakes, unfolded))


def _at_length(ids: Sequence[str]) -> Shown:
    known = {id.upper(): id for id in _known_ids(ids)}
    unknown = next((id for id in ids if id.upper() not in known), None)
    if unknown is not None:
        family = [id for id in known if id.rstrip("0123456789") == unknown.upper().rstrip("0123456789")]  # such as SM
        near = difflib.get_close_matches(unknown.upper(), family or known, n=3, cutoff=0.3)
        nearest = f" Near it: {', '.join(near)}." if near else ""
        return sentence(f"No mistake has the id {unknown[:60]!r}.{nearest} explain() lists all of them.")
    mistakes = [references.explained(kernel_course(), known[id.upper()]) for id in ids]
    return Shown("\n\n".join(map(text.explanation, mistakes)), "".join(map(html.explanation, mistakes)))


def _known_ids(ids: Sequence[str]) -> Sequence[str]:
    """The known ids; every lesson is imported only where the catalogue alone does not know those asked for."""
    catalogue = {id.upper() for id in kernel_course().shared_texts()}
    return (
        tuple(kernel_course().shared_texts())
        if all(id.upper() in catalogue for id in ids)
        else kernel_course().mistake_ids()
    )

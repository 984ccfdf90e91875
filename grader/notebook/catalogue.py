"""explain(): a mistake at length, or the known mistakes, lesson by lesson."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from grader.course import references
from grader.course.spec import Exercise
from grader.notebook.kernel_course import kernel_course
from grader.notebook.showing import Shown, sentence
from grader.reports import html, text


def shown(asked: str | None, current: str | None = None) -> Shown:
    """asked: an id, two with a plus, an exercise, a lesson's number or name, None for everything. current: the lesson that is unfolded."""
    if asked is None:
        return _all(by_lesson(kernel_course().lessons()), current)
    if asked in kernel_course().exercise_names():
        return _of_exercise(asked)
    lesson = next(
        (name for name in kernel_course().lessons() if str(asked) in (name, name[:2], name[:2].lstrip("0"))), None
    )
    if lesson:
        return _all(by_lesson((lesson,)), lesson)
    ids = [id.strip() for id in str(asked).split("+")]
    known = {id.upper(): id for id in _mistake_ids(ids)}
    unknown = [id for id in ids if id.upper() not in known]
    if unknown:
        near = _near_ids(unknown[0].upper(), known)
        nearest = f" Near it: {', '.join(near)}." if near else ""
        return sentence(f"No mistake has the id {unknown[0][:60]!r}.{nearest} explain() lists all of them.")
    told = [references.explained(kernel_course(), known[id.upper()]) for id in ids]
    return Shown("\n\n".join(text.explanation(one) for one in told), "".join(html.explanation(one) for one in told))


def by_lesson(names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The ids of the mistakes of each lesson's exercises, in the order of the exercises; of a pair both."""
    return {
        name: tuple(dict.fromkeys(id for one in kernel_course().lesson(name).exercises for id in _ids(one)))
        for name in names
    }


def _ids(exercise: Exercise) -> tuple[str, ...]:
    """The ids of an exercise's mistakes; of a pair both."""
    return tuple(dict.fromkeys(id for mistake in exercise.mistakes for id in mistake.id.split("+")))


def _of_exercise(name: str) -> Shown:
    """The mistakes that a check of an exercise can name, in the course's order: which of them applies, the check says."""
    return _listed([(name, _ids(kernel_course().exercise(name)))], name)


def _all(ids: Mapping[str, tuple[str, ...]], current: str | None) -> Shown:
    titles = {name: f"{name[:2]} · {kernel_course().lesson(name).title}" for name in ids}
    return _listed([(titles[name], each) for name, each in ids.items()], titles.get(current or "", ""))


def _listed(groups: Sequence[tuple[str, tuple[str, ...]]], opened: str) -> Shown:
    """Mistakes in a line each, under the titles of their groups."""
    told = [(title, [kernel_course().mistake_text(id) for id in ids]) for title, ids in groups]
    plain = ['Known mistakes; explain("SM1") explains one at length.']
    for title, mistakes in told:
        plain += ["", title, *(f"  {one.id:<5} {one.sentence}" for one in mistakes)]
    return Shown("\n".join(plain), html.explanations(told, opened))


def _near_ids(asked: str, known: Mapping[str, str]) -> list[str]:
    """At most three ids like the one asked for; those of its family, such as SM, first."""
    family = [id for id in known if id.rstrip("0123456789") == asked.rstrip("0123456789")]
    return difflib.get_close_matches(asked, family or known, n=3, cutoff=0.3)


def _mistake_ids(asked: list[str]) -> tuple[str, ...]:
    """The known ids; every lesson is imported only where the catalogue alone does not know those asked for."""
    known = tuple(kernel_course().shared_texts())
    return (
        known if all(id.upper() in {each.upper() for each in known} for id in asked) else kernel_course().mistake_ids()
    )

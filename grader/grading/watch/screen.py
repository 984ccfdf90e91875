"""Shows a watched room: in place on a terminal (rich), line by line where the output is piped.

It decides nothing. Signs and words carry what colours carry; learner text is without control characters.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.course.course import Course
from grader.grading.watch.room import LearnerState, News, WatchedRoom, next_step, wrongs
from grader.judging import wording
from grader.judging.verdict import LessonReport, SubmissionReport, Verdict
from grader.reports import text
from grader.reports.html import LOOKS
from grader.reports.terminal import STYLES
from grader.room.board import Wrong
from grader.util.words import abridged, counted

NAMES = 4  # learners that are named beside a mistake
MISTAKES = 8  # of the room that are shown


# --- words, for both -------------------------------------------------------------------------


def next_lines(course: Course, learner: LearnerState) -> list[str]:
    """What to do next: the exercise, what failed, the likely mistake, where to look."""
    step = next_step(learner)
    if step is None:
        return ["Every exercise passed."] if learner.lessons and not learner.notes else []
    lesson, verdict = step
    lines = [f"Next: {verdict.exercise}, in lesson {lesson}."]
    if verdict.status == "not_started":
        task = _task(course, lesson, verdict.exercise)
        return [*lines, *([task] if task else []), text.one_line(verdict.look)]
    lines.append(text.one_line(verdict.headline, 600))
    if verdict.line:
        lines.append(f"{wording.line_label(verdict.line)}: {text.one_line(verdict.line.text)}")
    lines += [text.one_line(detail) for detail in verdict.details[: 1 if verdict.line else 2]]
    lines += [text.one_line(verdict.slip, 600)] if verdict.slip else []
    lines += [f"{id}: {text.one_line(said, 600)}" for id, said in zip(verdict.mistakes[:2], verdict.sentences)]
    return [*lines, *([text.one_line(verdict.look)] if verdict.look else [])]


def _task(course: Course, lesson: str, exercise: str) -> str:
    return next((found.task for found in course.lesson(lesson).exercises if found.name == exercise), "")


def wrong_line(wrong: Wrong) -> str:
    """'5 × softmax_rows, failed. SM1: … (ada, grace, linus, mary and 1 more)'."""
    names = abridged([text.one_line(name, 40) for name in wrong.learners], NAMES)
    head = f"{len(wrong.learners)} × {wrong.exercise}, {text.WORDS[wrong.status]}."
    said = ": ".join(part for part in (wrong.mistake, wrong.sentence) if part)
    return f"{head} {text.one_line(said)} ({names})"


def nothing_wrong(room: WatchedRoom) -> str:
    unreadable = sum(bool(learner.notes) for learner in room.learners)
    if not unreadable:
        return "Nobody in the room has anything wrong now."
    return f"The notebooks of {counted(unreadable, 'learner')} cannot be read; nobody else has anything wrong now."


def points(one: LessonReport | SubmissionReport) -> str:
    return f"{text.had(one.score)}/{one.max_score}"


# --- line by line ----------------------------------------------------------------------------


def lines(course: Course, room: WatchedRoom, last: WatchedRoom | None) -> Iterator[str]:
    """What is new in a room since the last one, as lines of text."""
    clock = time.strftime("%H:%M:%S")
    for news in room.news:
        who = "" if room.alone else f"{text.one_line(news.learner, 60)}: "
        yield f"{clock}  {who}{news.lesson.name}: {points(news.lesson)} points, graded in {news.seconds:.1f} s"
        yield from (f"  {_changed(verdict)}" for verdict in _changes(news))
    told = {note for learner in last.learners for note in learner.notes} if last else set()
    for learner in room.learners:
        who = "" if room.alone else f"{text.one_line(learner.name, 60)}: "
        yield from (f"{clock}  {who}{text.one_line(note, 600)}" for note in learner.notes if note not in told)
    if room.note and room.note != (last.note if last else ""):
        yield f"{clock}  {room.note}"
    if not room.learners and (last is None or last.learners):
        yield f"{clock}  There is no notebook in {room.folder} yet; the first one that is saved is graded."
    if room.waiting or not room.news:
        return
    if room.alone:
        yield from (f"  {line}" for learner in room.learners for line in next_lines(course, learner))
    else:
        found = wrongs(room.learners)[:MISTAKES]
        yield "  The room now:" if found else f"  {nothing_wrong(room)}"
        yield from (f"  {wrong_line(wrong)}" for wrong in found)


def _changes(news: News) -> list[Verdict]:
    before = {verdict.exercise: verdict.status for verdict in news.before.verdicts} if news.before else {}
    return [v for v in news.lesson.verdicts if v.status != before.get(v.exercise, "not_started")]


def _changed(verdict: Verdict) -> str:
    return f"{text.WORDS[verdict.status]:<13}  {verdict.exercise}  {text.summary(verdict)}".rstrip()


# --- in place --------------------------------------------------------------------------------


class Screen:
    """A context manager that draws rooms one over the other on a terminal."""

    def __init__(self, course: Course, console: Any = None) -> None:
        self._course = course

        self._console = console or Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Screen:
        self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._live.__exit__(*error)

    def show(self, room: WatchedRoom) -> None:
        """Draws the room in place of the last one, within the terminal's height."""
        self._live.update(draw(self._course, room, self._console.height - 1), refresh=True)


def draw(course: Course, room: WatchedRoom, height: int) -> Any:
    """The room as something that rich prints in at most so many lines."""
    foot = Text(f"\n{_foot(room)}", style="dim")
    if not room.learners:
        return Group(Text(f"There is no notebook in {room.folder} yet; the first one that is saved is graded."), foot)
    return Group(*(_alone(course, room.learners[0]) if room.alone else _everyone(course, room, height - 3)), foot)


def _foot(room: WatchedRoom) -> str:
    work = f"{room.waiting} to grade. " if room.waiting else ""
    took = f"Graded {time.strftime('%H:%M:%S')} in {room.news[-1].seconds:.1f} s. " if room.news else ""
    return f"{room.note} {work}{took}Watching {room.folder}; Ctrl-C ends.".strip()


def _alone(course: Course, learner: LearnerState) -> Iterator[Any]:
    step = next_step(learner)
    name = learner.latest or (step[0] if step else min(learner.lessons, default=""))
    if name in learner.lessons:
        lesson = learner.lessons[name]
        yield Text(f"{name}: {text.had(lesson.score)} of {lesson.max_score} points\n", style="bold")
        yield _exercises(lesson)
        yield from (Text(f"Note: {text.one_line(note)}", style="dim") for note in lesson.notes[:3])
    said = next_lines(course, learner)
    if said:
        yield Text(f"\n{said[0]}", style="bold")
        yield from (Padding(Text(line), (0, 0, 0, 2)) for line in said[1:])
    yield from (Text(f"\n{text.one_line(note, 600)}", style="yellow") for note in learner.notes)
    others = [f"{other[:2]} {points(report)}" for other, report in learner.lessons.items() if other != name]
    if others:
        yield Text(f"\nOther lessons: {', '.join(others)}", style="dim")


def _exercises(lesson: LessonReport) -> Any:
    table = Table.grid(padding=(0, 2))
    for verdict in lesson.verdicts:
        result = Text(f"  {LOOKS[verdict.status][0]} {text.WORDS[verdict.status]}", style=STYLES[verdict.status])
        table.add_row(result, Text(verdict.exercise), Text(text.part(lesson, verdict), style="dim"))
    return table


def _everyone(course: Course, room: WatchedRoom, height: int) -> Iterator[Any]:
    """Learners × exercises where all work at one lesson, else × lessons; below, what the room gets wrong."""
    found = wrongs(room.learners)[:MISTAKES]
    names = _at_work(room.learners)
    below = len(found) + 3 + (2 if len(names) == 1 else 0)
    learners = _fitting(room.learners, max(height - below - 4, 3))
    yield Text(f"{len(room.learners)} learners · {', '.join(names)}", style="bold")
    yield _table(course, learners, names)
    if len(learners) < len(room.learners):
        yield Text(f"and {len(room.learners) - len(learners)} more; those with something wrong come first", style="dim")
    if len(names) == 1:
        yield Text("; ".join(f"{at} {name}" for at, name in enumerate(course.exercises[names[0]], 1)), style="dim")
        yield Text(
            "  ".join(dict.fromkeys(f"{LOOKS[key][0]} {text.WORDS[key]}" for key in _statuses(learners))), style="dim"
        )
    yield Text("\nWhat the room has wrong now" if found else f"\n{nothing_wrong(room)}", style="bold")
    yield from (Text(wrong_line(wrong), no_wrap=True, overflow="ellipsis") for wrong in found)
    for learner in learners:
        for note in learner.notes[:1]:
            yield Text(f"{text.one_line(learner.name, 40)}: {text.one_line(note)}", style="yellow", no_wrap=True)


def _statuses(learners: Sequence[LearnerState]) -> list[str]:
    there = {
        verdict.status for learner in learners for lesson in learner.lessons.values() for verdict in lesson.verdicts
    }
    return [status for status in text.WORDS if status in there]


def _at_work(learners: Sequence[LearnerState]) -> list[str]:
    """The lessons that somebody has begun; where nobody has begun one, the first that is there."""
    there = sorted({name for learner in learners for name in learner.lessons})
    idle = ("not_started", "missing")
    begun = {
        name
        for learner in learners
        for name, lesson in learner.lessons.items()
        if any(verdict.status not in idle for verdict in lesson.verdicts)
    }
    return [name for name in there if name in begun] or there[:1]


def _fitting(learners: Sequence[LearnerState], most: int) -> list[LearnerState]:
    """Those with something wrong or unreadable first, where not all can be shown; in their own order."""
    wrong = {name for found in wrongs(learners) for name in found.learners} | {
        one.name for one in learners if one.notes
    }
    chosen = {id(learner) for learner in sorted(learners, key=lambda learner: learner.name not in wrong)[:most]}
    return [learner for learner in learners if id(learner) in chosen]


def _table(course: Course, learners: Sequence[LearnerState], names: Sequence[str]) -> Any:
    one = names[0] if len(names) == 1 else None
    heads = [str(at) for at in range(1, len(course.exercises[one]) + 1)] if one else [name[:2] for name in names]
    table = Table("learner", *heads, "points", box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for learner in learners:
        if one:
            status = {v.exercise: v.status for v in learner.lessons[one].verdicts} if one in learner.lessons else {}
            cells = [_sign(status.get(name)) for name in course.exercises[one]]
        else:
            cells = [Text(points(learner.lessons[name]) if name in learner.lessons else "") for name in names]
        shown = [learner.lessons[name] for name in names if name in learner.lessons]
        total = (
            points(SubmissionReport(learner.name, "", tuple(shown))) if shown or not learner.notes else "cannot be read"
        )
        table.add_row(Text(text.one_line(learner.name, 30)), *cells, Text(total))
    return table


def _sign(status: str | None) -> Any:
    return Text(LOOKS[status][0], style=STYLES[status]) if status else Text("")

"""Shows a watched room: in place on a terminal, line by line where the output is piped.

It decides nothing. Signs and words carry what colors carry; learner text is without control characters.
"""

from __future__ import annotations

import shutil
import textwrap
import time
from collections.abc import Iterator

from grader.course.course import Course
from grader.grading.watch.watcher import LearnerState, WatchedRoom, board_of, next_step
from grader.judging import wording
from grader.judging.verdict import LessonReport, SubmissionReport
from grader.reports import text
from grader.reports.html import STATUS_STYLES
from grader.reports.terminal import paint
from grader.room.board import CommonFailure, common_failures, lessons_at_work, tiles
from grader.util.words import join_names, pluralize

NAMES = 4  # learners that are named beside a mistake
MISTAKES = 8  # of the room that are shown
SIGNS = [STATUS_STYLES[status][0] for status in ("passed", "failed", "not_started")]


# --- words, for both -------------------------------------------------------------------------


def next_lines(course: Course, learner: LearnerState) -> list[str]:
    """What to do next: the exercise, what failed, the likely mistake, where to look."""
    step = next_step(learner)
    if step is None:
        return ["Every exercise passed."] if learner.lessons and not learner.notes else []
    lesson, verdict = step
    lines = [f"Next: {verdict.exercise}, in lesson {lesson}."]
    if verdict.status == "not_started":
        task = course.exercise(verdict.exercise).task
        return [*lines, *([task] if task else []), text.one_line(verdict.next_step)]
    lines.append(text.one_line(verdict.headline, 600))
    if verdict.line:
        lines.append(f"{wording.line_label(verdict.line)}: {text.one_line(verdict.line.text)}")
    lines += [text.one_line(detail) for detail in verdict.details[: 1 if verdict.line else 2]]
    lines += [text.one_line(verdict.slip, 600)] if verdict.slip else []
    lines += [f"{id}: {text.one_line(sentence, 600)}" for id, sentence in zip(verdict.mistakes[:2], verdict.sentences)]
    return [*lines, *([text.one_line(verdict.next_step)] if verdict.next_step else [])]


def wrong_line(wrong: CommonFailure) -> str:
    """'5 × softmax_rows, failed. SM1: … (ada, grace, linus, mary and 1 more)'."""
    names = join_names([text.one_line(name, 40) for name in wrong.learners], NAMES)
    head = f"{len(wrong.learners)} × {wrong.exercise}, {text.STATUS_WORDS[wrong.state.status]}."
    mistake = ": ".join(filter(None, (wrong.state.mistake, wrong.state.sentence)))
    return f"{head} {text.one_line(mistake)} ({names})"


def nothing_wrong(room: WatchedRoom) -> str:
    unreadable = sum(bool(learner.notes) for learner in room.learners)
    if not unreadable:
        return "Nobody in the room has anything wrong now."
    return f"The notebooks of {pluralize(unreadable, 'learner')} cannot be read; nobody else has anything wrong now."


def points(one: LessonReport | SubmissionReport) -> str:
    return f"{text.score_text(one.score)}/{one.max_score}"


# --- line by line ----------------------------------------------------------------------------


def lines(course: Course, room: WatchedRoom, last: WatchedRoom | None) -> Iterator[str]:
    """What is new in a room since the last one, as lines of text."""
    clock = time.strftime("%H:%M:%S")
    for news in room.news:
        who = "" if room.alone else f"{text.one_line(news.learner, 60)}: "
        yield f"{clock}  {who}{news.lesson.name}: {points(news.lesson)} points, graded in {news.seconds:.1f} s"
        before = {verdict.exercise: verdict.status for verdict in news.before.verdicts} if news.before else {}
        for verdict in news.lesson.verdicts:
            if verdict.status != before.get(verdict.exercise, "not_started"):
                what = f"{text.STATUS_WORDS[verdict.status]:<13}  {verdict.exercise}  {text.summary(verdict)}"
                yield f"  {what}".rstrip()
    old_notes = {note for learner in last.learners for note in learner.notes} if last else set()
    for learner in room.learners:
        who = "" if room.alone else f"{text.one_line(learner.name, 60)}: "
        yield from (f"{clock}  {who}{text.one_line(note, 600)}" for note in learner.notes if note not in old_notes)
    if room.note and room.note != (last.note if last else ""):
        yield f"{clock}  {room.note}"
    if not room.learners and (last is None or last.learners):
        yield f"{clock}  There is no notebook in {room.folder} yet; the first one that is saved is graded."
    if room.waiting or not room.news:
        return
    if room.alone:
        yield from (f"  {line}" for learner in room.learners for line in next_lines(course, learner))
    else:
        frequent = common_failures(board_of(room).learners)[:MISTAKES]
        yield "  The room now:" if frequent else f"  {nothing_wrong(room)}"
        yield from (f"  {wrong_line(wrong)}" for wrong in frequent)


# --- in place --------------------------------------------------------------------------------

Styled = tuple[str, str]  # a line, and its style


def show(course: Course, room: WatchedRoom) -> None:
    """Draws the room in place of what is on the terminal."""
    size = shutil.get_terminal_size((100, 24))
    print(f"\x1b[H\x1b[J{draw(course, room, size.columns, size.lines - 1)}", end="", flush=True)


def draw(course: Course, room: WatchedRoom, width: int, height: int) -> str:
    """The room in at most so many lines of at most so many characters."""
    if not room.learners:
        rows = [(f"There is no notebook in {room.folder} yet; the first one that is saved is graded.", "")]
    else:
        rows = [*(_alone(course, room.learners[0]) if room.alone else _everyone(course, room, height - 3))]
    work = f"{room.waiting} to grade. " if room.waiting else ""
    took = f"Graded {time.strftime('%H:%M:%S')} in {room.news[-1].seconds:.1f} s. " if room.news else ""
    foot = f"{room.note} {work}{took}Watching {room.folder}; Ctrl-C ends.".strip()
    return "\n".join(paint(line[:width], style) for line, style in [*rows[: height - 2], ("", ""), (foot, "dim")])


def _alone(course: Course, learner: LearnerState) -> Iterator[Styled]:
    step = next_step(learner)
    name = learner.latest or (step[0] if step else min(learner.lessons, default=""))
    if name in learner.lessons:
        lesson = learner.lessons[name]
        yield f"{name}: {text.score_text(lesson.score)} of {lesson.max_score} points", "bold"
        for verdict in lesson.verdicts:
            result = f"{STATUS_STYLES[verdict.status][0]} {text.STATUS_WORDS[verdict.status]}"
            yield f"  {result:<22}{verdict.exercise}  {text.points_fraction(lesson, verdict)}", verdict.status
        yield from ((f"Note: {text.one_line(note)}", "dim") for note in lesson.notes[:3])
    for at, line in enumerate(next_lines(course, learner)):
        yield from [("", "")] * (not at)
        for part in textwrap.wrap(line, text.WIDTH, initial_indent="  " * bool(at)):
            yield part, "" if at else "bold"
    yield from ((text.one_line(note, 600), "yellow") for note in learner.notes)
    others = [f"{other[:2]} {points(report)}" for other, report in learner.lessons.items() if other != name]
    if others:
        yield f"Other lessons: {', '.join(others)}", "dim"


def _everyone(course: Course, room: WatchedRoom, height: int) -> Iterator[Styled]:
    """The exercises as on the page for a projector, with who is at each; below, what the room gets wrong."""
    learners = board_of(room).learners
    at_work = lessons_at_work(course, learners) or sorted({name for one in room.learners for name in one.lessons})
    frequent = common_failures(learners)[:MISTAKES]
    yield f"{len(learners)} learners · {', '.join(sorted(at_work))}", "bold"
    most = max(height - len(frequent) - 3, 3)
    rows = [tile for lesson in at_work for tile in tiles(course, learners, lesson)][:most]
    wide = max((len(tile.exercise) for tile in rows), default=0)
    for tile in rows:
        counts = f"{SIGNS[0]} {tile.passed:>3}  {SIGNS[1]} {tile.wrong:>3}  {SIGNS[2]} {tile.open:>3}"
        here = join_names([text.one_line(one.name, 30) for one in tile.here], NAMES)
        yield f"{tile.exercise:<{wide}}  {counts}  {here}".rstrip(), ""
    yield "What the room has wrong now" if frequent else nothing_wrong(room), "bold"
    yield from ((wrong_line(wrong), "") for wrong in frequent)
    for learner in room.learners:
        for note in learner.notes[:1]:
            yield f"{text.one_line(learner.name, 40)}: {text.one_line(note)}", "yellow"

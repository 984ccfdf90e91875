"""What learners call in a notebook: check, passed, hint, solution, explain, progress, replay, predict and reset.

None of them raises for anything a learner passes; each answers with an object that displays itself.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from grader.course import own, references
from grader.notebook.showing import Shown, printed, said, verdict_shown
from grader.notebook.target import MISSING, Refusal, find, names_at
from grader.util.words import counted

own.enter_beside(Path.cwd())

HINTS = 3
ATTEMPTS = 3  # different states of the code, after which the solution opens


def check(target: Any = MISSING, answer: Any = MISSING) -> Shown:
    """Judges an exercise: check(softmax_rows), check("softmax_rows") or check("corrected_first_row", answer).

    Returns: an object that displays the verdict and is true when the exercise passed. A loop in the
    code that never ends is stopped by interrupting the kernel (the square in the toolbar).
    """
    from grader.notebook import judged

    namespace = names_at(sys._getframe(1))
    try:
        wanted = find(target, answer, namespace)
    except Refusal as refusal:
        return said(str(refusal))
    verdict = judged.judged(wanted, namespace)
    record = _record()
    if judged.is_attempt(verdict):
        record.attempted(wanted.name, judged.attempt_key(wanted, namespace), verdict.status)
    room = _room()
    return verdict_shown(verdict, (*record.take_notes(), *(room.told(verdict) if room else ())))


def passed(target: Any = MISSING, answer: Any = MISSING) -> bool:
    """True where check would pass; else prints one sentence and returns False. Never raises.

    After True, what the learner's own code prints in the rest of the cell is left out (muting.py).
    """
    from grader.notebook import judged, muting

    call = "its check"
    try:
        namespace = names_at(sys._getframe(1))
        wanted = find(target, answer, namespace, "passed")
        call = wanted.call
        if judged.judged(wanted, namespace, again=False).passed:
            muting.begin(namespace)
            return True
    except Refusal as refusal:
        print(refusal)
        return False
    except (Exception, KeyboardInterrupt):  # a payoff must never stop a notebook's Run All
        pass
    print(f"This opens once {call} passes.")
    return False


def hint(target: Any = MISSING, level: int | None = None) -> Shown:
    """A hint: first a question, then where to look, then code with a blank; each call goes one further.

    Where the last check of this code proved a mistake, the first two are about that mistake.
    """
    from grader.notebook import hints

    try:
        wanted = find(target, MISSING, names_at(sys._getframe(1)), "hint")
    except Refusal as refusal:
        return said(str(refusal))
    if level is not None and (not isinstance(level, int) or not 1 <= level <= HINTS):
        return said(f"Hints have the levels 1 to {HINTS}; {level!r} is none of them.")
    record = _record()
    level = level or min(record.entry(wanted.name).hints + 1, HINTS)
    record.hinted(wanted.name, level)
    argument = wanted.argument
    more = f"hint({argument}) gives the next hint." if level < HINTS else f"solution({argument}) is open now."
    told = hints.told(wanted, level)
    is_code = level == HINTS and "```" not in told  # the third may be bare code, or prose with a fenced block
    title = f"Hint {level} of {HINTS} for {wanted.name}"
    return said(told, title, code=is_code, more=(more, *record.take_notes()))


def solution(target: Any = MISSING) -> Shown:
    """The course's solution: after a pass, after hint 3, or after three different attempts. After a pass, beside the learner's own."""
    from grader.notebook import beside, judged

    namespace = names_at(sys._getframe(1))
    try:
        wanted = find(target, MISSING, namespace, "solution")
    except Refusal as refusal:
        return said(str(refusal))
    record = _record()
    entry = record.entry(wanted.name)
    if not (entry.passed or entry.hints >= HINTS or entry.attempts >= ATTEMPTS):
        so_far = f"{counted(entry.hints, 'hint')} and {counted(entry.attempts, 'different attempt')}"
        closed = (
            f"The solution of {wanted.name} opens after a pass, after hint {HINTS}, or after {ATTEMPTS} different "
            f"attempts. So far: {so_far}. hint({wanted.argument}) gives the next hint."
        )
        return said(closed, more=record.take_notes())
    theirs = beside.own_code(wanted, namespace) if entry.passed and judged.last_passed(wanted) else ""
    ours = references.solution_text(wanted.name)
    if not theirs:
        return said(ours, f"The course's solution of {wanted.name}", code=True, more=record.take_notes())
    return printed(beside.shown(wanted.name, theirs, ours, record.take_notes()))


def explain(mistake: str | None = None) -> Shown:
    """A mistake at length, by its id: explain("SM1"). Without an id, all of them, lesson by lesson; of one lesson: explain("02")."""
    from grader.notebook import catalogue, judged

    return printed(catalogue.shown(mistake, current=judged.current_lesson()))


def progress() -> Shown:
    """The lesson at hand with each exercise's state, points and attempts; the other lessons in a line each."""
    from grader.notebook import judged, overview

    record = _record()
    table = overview.table(record)
    room = _room()
    notes = (*record.take_notes(), *(room.told_of() if room else ()))
    return printed(Shown(*overview.shown(table, notes, judged.current_lesson())))


def replay(target: Any = MISSING) -> Shown:
    """Puts the inputs on which the last check failed into variables, and a cell that runs the code on them below this one."""
    from grader.notebook import judged, replaying

    frame = sys._getframe(1)
    namespace = names_at(frame)
    try:
        wanted = find(target, MISSING, namespace, "replay")
    except Refusal as refusal:
        return said(str(refusal))
    return replaying.shown(wanted, judged.judged(wanted, namespace), frame.f_globals)


def predict(number: Any = "", options: Any = "", choice: Any = "") -> Shown:
    """Buttons for a prediction's options: predict("01.1", "ABC"); with a choice, predict("01.1", "ABC", "B"), the answer."""
    from grader.notebook import predictions

    return printed(predictions.shown(number, options, choice, _record()))


def reset(target: Any = MISSING) -> Shown:
    """Puts one exercise's cell in the notebook's file back as the course has it; the notebook as it was is kept as a backup."""
    from grader.notebook import resetting

    frame = sys._getframe(1)
    try:
        wanted = find(target, MISSING, names_at(frame), "reset")
    except Refusal as refusal:
        return said(str(refusal))
    return resetting.shown(wanted, frame.f_globals)


def _room() -> Any:
    """The module of rooms where the learner may be in one; else None, and nothing of it is loaded."""
    from grader.notebook import membership

    known = "grader.notebook.room" in sys.modules or os.path.exists(membership.path())
    return importlib.import_module("grader.notebook.room") if known else None


_records: dict[Any, Any] = {}


def _record() -> Any:
    """The record of the current folder, the same object as long as its path stays."""
    from grader.notebook.record import Record, default_path

    path = default_path()
    if path not in _records:
        _records[path] = Record(path)
    return _records[path]

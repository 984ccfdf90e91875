"""What learners call in a notebook: check, passed, hint, solution, explain, progress, replay, predict and reset.

None of them raises for anything a learner passes; each answers with an object that displays itself.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from grader.notebook.showing import Shown, printed, said, verdict_shown
from grader.notebook.target import MISSING, Refusal, find, names_at


def check(target: Any = MISSING, answer: Any = MISSING) -> Shown:
    """Judges an exercise: check(softmax_rows), check("softmax_rows") or check("corrected_first_row", answer).

    Returns: an object that displays the verdict and is true when the exercise passed. A loop in the
    code that never ends is stopped by interrupting the kernel (the square in the toolbar).
    """
    from grader.notebook import judged, toolbar

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
    notes = (*record.take_notes(), *(room.send(verdict) if room else ()))
    return toolbar.shown(wanted, verdict, notes, record) if toolbar.possible() else verdict_shown(verdict, notes)


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
    if level is not None and (not isinstance(level, int) or not 1 <= level <= hints.HINTS):
        return said(f"Hints have the levels 1 to {hints.HINTS}; {level!r} is none of them.")
    record = _record()
    level = level or hints.following(wanted.name, record)
    argument = wanted.argument
    more = f"hint({argument}) gives the next hint." if level < hints.HINTS else f"solution({argument}) is open now."
    return printed(hints.shown(wanted, level, record, (more,)))


def solution(target: Any = MISSING) -> Shown:
    """The course's solution: after a pass, after hint 3, or after three different attempts. After a pass, beside the learner's own."""
    from grader.notebook import beside

    namespace = names_at(sys._getframe(1))
    try:
        wanted = find(target, MISSING, namespace, "solution")
    except Refusal as refusal:
        return said(str(refusal))
    return printed(beside.solution(wanted, namespace, _record()))


def explain(mistake: Any = None) -> Shown:
    """A mistake at length, by its id: explain("SM1"). Those of an exercise: explain(softmax_rows); of a lesson: explain("02"); of all."""
    from grader.notebook import catalogue, judged

    if callable(mistake):
        try:
            mistake = find(mistake, MISSING, names_at(sys._getframe(1)), "explain").name
        except Refusal as refusal:
            return said(str(refusal))
    return printed(catalogue.shown(mistake, current=judged.current_lesson()))


def progress() -> Shown:
    """The lesson at hand with each exercise's state, points and attempts; the other lessons in a line each."""
    from grader.notebook import judged, overview

    record = _record()
    table = overview.table(record)
    room = _room()
    notes = (*record.take_notes(), *(room.status(room.current()) if room else ()))
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


def reset(target: Any = MISSING, code: str | None = None) -> Shown:
    """Asks, then puts one exercise's cell back as the course has it; the learner's code is kept as a copy.

    code: what the question gave; it counts once, so that Run All never resets anything.
    """
    from grader.notebook import resetting, toolbar

    frame = sys._getframe(1)
    try:
        wanted = find(target, MISSING, names_at(frame), "reset")
    except Refusal as refusal:
        return said(str(refusal))
    if code is None and toolbar.possible():
        return toolbar.reset_question(wanted, _record())
    return resetting.shown(wanted, code, frame.f_globals)


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

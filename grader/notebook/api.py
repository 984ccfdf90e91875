"""What learners call in a notebook: check, passed, hint, solution, explain, progress, replay, predict and reset.

None of them raises for anything a learner passes; each answers with an object that displays itself, `passed` with True or False.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

from grader.notebook import cell_output, hints, overview, predictions, replaying, resetting, toolbar, verdicts
from grader.notebook.display import Display, learner_call, sentence
from grader.notebook.record import ROOM_FILE, Record, default_path
from grader.notebook.target import MISSING, find, learner_frame
from grader.util.errors import InputError

_record_at = functools.cache(Record)  # the same object as long as the path stays, for what it has said already


@learner_call
def check(target: Any = MISSING, answer: Any = MISSING) -> Display:
    """Judges an exercise: check(softmax_rows), check("softmax_rows") or check("corrected_first_row", answer).

    Returns: an object that displays the verdict and is true when the exercise passed. A loop in the
    code that never ends is stopped by interrupting the kernel (the square in the toolbar).
    """
    exercise = find(target, answer)
    verdict = verdicts.judge(exercise)
    record = _record()
    if verdicts.is_attempt(verdict):
        record.add_attempt(exercise.name, exercise.digest or "unknown", verdict.status)
    room = _room()
    notes = (*record.take_notes(), *(room.send(verdict) if room else ()))
    return toolbar.verdict_with_buttons(exercise, verdict, notes, record)


def passed(target: Any = MISSING, answer: Any = MISSING) -> bool:
    """True where the last check of this code passed, or a check would; else prints one sentence and returns False. Never raises.

    After True, what the learner's own code prints in the rest of the cell is left out (cell_output.py).
    """
    call = "its check"
    try:
        exercise = find(target, answer, "passed")
        call = exercise.call
        if verdicts.judge(exercise, fresh=False).passed:
            cell_output.mute_exercises(exercise.namespace)
            return True
    except InputError as error:
        print(error)
        return False
    except (Exception, KeyboardInterrupt):  # a payoff must never stop a notebook's Run All
        pass
    print(f"This opens once {call} passes.")
    return False


@learner_call
def hint(target: Any = MISSING, level: int | None = None) -> Display:
    """A hint: first a question, then where to look, then code with a blank; each call goes one further.

    Where the last check of this code proved a mistake, the first two are about that mistake.
    """
    exercise = find(target, caller="hint")
    if level is not None and (not isinstance(level, int) or not 1 <= level <= hints.HINTS):
        return sentence(f"Hints have the levels 1 to {hints.HINTS}; {level!r} is none of them.")
    record = _record()
    level = level or hints.next_level(exercise.name, record)
    argument = exercise.argument
    more = f"hint({argument}) gives the next hint." if level < hints.HINTS else f"solution({argument}) is open now."
    return hints.hint(exercise, level, record, (more,))


@learner_call
def solution(target: Any = MISSING) -> Display:
    """The course's solution: after a pass, after hint 3, or after three different attempts. After a pass, beside the learner's own."""
    return hints.solution(find(target, caller="solution"), _record())


@learner_call
def explain(mistake: Any = None) -> Display:
    """A mistake at length, by its id: explain("SM1"). Those of an exercise: explain(softmax_rows); of a lesson: explain("02"); of all."""
    if callable(mistake):
        mistake = find(mistake, caller="explain").name
    return hints.explain(mistake, verdicts.current_lesson())


@learner_call
def progress() -> Display:
    """The lesson at hand with each exercise's state, points and attempts; the other lessons in a line each."""
    record = _record()
    table = overview.table(record)
    room = _room()
    notes = (*record.take_notes(), *(room.status() if room else ()))
    return overview.display(table, notes, verdicts.current_lesson())


@learner_call
def replay(target: Any = MISSING) -> Display:
    """Puts the inputs on which the last check failed into variables, and a cell that runs the code on them below this one."""
    exercise = find(target, caller="replay")
    return replaying.replay(exercise, verdicts.judge(exercise, fresh=False), learner_frame().f_globals)


@learner_call
def predict(number: Any = "", options: Any = "", choice: Any = "") -> Display:
    """Buttons for a prediction's options: predict("01.1", "ABC"); with a choice, predict("01.1", "ABC", "B"), the answer."""
    return predictions.display(number, options, choice, _record())


@learner_call
def reset(target: Any = MISSING) -> Display:
    """Asks by two buttons, then puts one exercise's cell back as the course has it; the learner's code is kept as a copy."""
    exercise = find(target, caller="reset")
    if toolbar.can_show_buttons():
        return toolbar.reset_question(exercise, _record())
    return resetting.original(exercise.name)


def _room() -> Any:
    """The module of rooms where the learner may be in one; else None, and nothing of it is loaded."""
    in_a_room = "grader.notebook.room_client" in sys.modules or default_path().with_name(ROOM_FILE).exists()
    return importlib.import_module("grader.notebook.room_client") if in_a_room else None


def _record() -> Record:
    """The record of the current folder."""
    return _record_at(default_path())

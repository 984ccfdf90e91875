"""The verdict on what a learner means, as their notebook stands: the code that runs, and the cells that made it."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from grader.course import references
from grader.course.spec import Exercise
from grader.judging import wording
from grader.judging.candidate import Candidate, LiveObject
from grader.judging.verdict import FAILING, Line, Verdict
from grader.notebook import reach
from grader.notebook.cell_history import CellHistory, describe_failure
from grader.notebook.cell_output import running_sign
from grader.notebook.kernel_course import kernel_course
from grader.notebook.target import MISSING, Target
from grader.util.libraries import explain_error, require
from grader.worker.observe import default_modes, failure_from, same_random_state
from grader.worker.values import Failure

verdicts: dict[str, tuple[object, Verdict]] = {}  # exercise -> the key of the code and the verdict of its last check
history = CellHistory()  # is told of every cell by shell.py, where there are cells
_last_checked: list[str] = []  # the exercise that was checked last


def judge(target: Target, fresh: bool = True) -> Verdict:
    """The verdict. fresh: judge anew; without it, the verdict of the last check counts where the code is the same."""
    _last_checked[:] = [target.name]
    for earlier in (_stale, _without_cell, *([] if fresh else [last])):
        verdict = earlier(target)
        if verdict:
            return verdict
    verdict = _name_cause(_judge(target), target)
    if target.digest and verdict.status != "missing":
        verdicts[target.name] = (_key(target), verdict)
    return verdict


def last(target: Target) -> Verdict | None:
    """The verdict of the last check where it was of this very code, else None."""
    key, verdict = verdicts.get(target.name, (None, None))
    return verdict if target.digest and key == _key(target) else None


def _key(target: Target) -> object:
    """What a verdict depends on: the text of the code, and which of the names that it reads grading has not."""
    return target.digest, [name for name in target.names_read if name in history.absences]


def current_lesson() -> str | None:
    """The lesson of the exercise that was checked last in this process; None where none was."""
    return kernel_course().lesson_of(_last_checked[0]) if _last_checked else None


def is_attempt(verdict: Verdict) -> bool:
    """Whether a verdict is about the learner's code as it stands."""
    return verdict.status not in ("missing", "could_not_grade") and verdict.stage != "stale"


# --- what is not judged: code that is older than its cell, or that no cell defines in grading ---------------------


def _stale(target: Target) -> Verdict | None:
    """The verdict where the exercise, or something that it calls, is older than what its cell now says; else None."""
    if target.obj is MISSING or not history.stale:
        return None
    objects = ((target.name, target.obj), *target.names_read.items())
    stale = (name for name, obj in objects if name in history.stale and history.stale[name].earlier_value is obj)
    name = next(stale, "")
    if not name:
        return None
    definition, line = history.stale[name], None
    if definition.failure is None:
        now = ", ".join(f"`{other}`" for other in sorted(definition.defines)) or "nothing"
        headline = f"The cell that defined `{name}` no longer does: it now defines {now}."
    else:
        failure, message = definition.failure, describe_failure(definition.failure)
        line = Line(failure.line, failure.line_number) if failure.line else None
        stop = "" if message[-1:] in "?!" else "."
        headline = f"The last run of the cell that defines `{name}` failed: {message.rstrip('.')}{stop}"
    if name != target.name:
        headline = f"{target.name} calls `{name}`. {headline}"
    earlier = f"The earlier `{name}` is still in the kernel, but it was not judged."
    next_step = f"Fix that cell and run it, then {target.call} judges what it says."
    return Verdict(target.name, "error", headline, "stale", line=line, details=(earlier,), next_step=next_step)


def _without_cell(target: Target) -> Verdict | None:
    """The verdict where no cell defines an exercise in grading, or one that ends there before it does; else None."""
    name = target.name
    if target.obj is MISSING or not history.is_absent(name) or target.namespace.get(name, MISSING) is not target.obj:
        return None
    absence = history.absences[name]
    headline = f"`{name}` {absence.why}"
    if absence.deleted:
        return Verdict(name, "missing", headline, "attempted", next_step=_run_its_cell(target))
    return Verdict(name, "error", headline, "runs", next_step=f"Then run {target.call} again.")


def _run_its_cell(target: Target) -> str:
    return f'The menu Run › Run All Above Selected Cell runs it; reset("{target.name}") restores its cell.'


# --- judging ----------------------------------------------------------------------------------------------------


def _judge(target: Target) -> Verdict:
    from grader.judging.judge import judge

    name = target.name
    try:
        exercise = kernel_course().exercise(name)
        require(*exercise.libraries)
        with (
            running_sign(target.call),
            _restore_state(),
            _replace_globals(target.obj, {name: absence.graded for name, absence in history.absences.items()}),
            reach.hide_own_files(),
            _candidate(target, exercise) as candidate,
        ):
            return judge(exercise, candidate)
    except KeyboardInterrupt as stop:
        return _interrupted(target, stop)
    except Exception as error:  # ours, never the learner's: the judge lets none of theirs out
        headline = f"The check itself failed, which says nothing about {name}."
        details: tuple[str, ...] = (f"{type(error).__name__}: {str(error)[:300]}",)
        next_step = "Restart the kernel and run the notebook again; if that does not help, report it with these lines."
        if lacks := explain_error(error):
            headline, details = f"{name} cannot be judged here. {lacks}", ()
            next_step = "Once that is done, restart the kernel and run the notebook again."
        return Verdict(name, "could_not_grade", headline, details=details, next_step=next_step)


def _candidate(target: Target, exercise: Exercise) -> contextlib.AbstractContextManager[Candidate]:
    name, problem = target.name, None
    if target.obj is MISSING:
        advice = f"{name} is not defined in this notebook yet: run the cell that defines it."
        problem = Failure("missing", message=advice)
    elif target.is_answer and target.obj is None:
        problem = Failure("not_started")
    elif exercise.process == "own":
        if target.sources is not None:
            from grader.notebook import own_process

            return own_process.candidate(name, target.sources)
        advice = f"The text of {name} is not known here: write it into a cell, and run that."
        problem = Failure("missing", message=advice)
    return contextlib.nullcontext(LiveObject(target.obj, problem, target.sources))


def _interrupted(target: Target, stop: KeyboardInterrupt) -> Verdict:
    """The verdict on a check that the learner stopped: in which line it was."""
    line = wording.line(target.name, failure_from(stop))
    advice = "Your code was not running at that moment."
    if kernel_course().exercise(target.name).process == "own":
        advice = "It ran in a process of its own, which has been ended."
    elif line and re.search(r"\binput\(", line.text):
        advice = "`input()` waits for somebody to type: take what the exercise needs from its parameters."
    elif line:
        advice = (
            "That line was running when it was stopped: look for a loop or a recursion around it that never ends, or for "
            "work that grows with every call."
        )
    headline, next_step = f"The check of {target.name} was interrupted.", f"To try again, run {target.call}."
    return Verdict(target.name, "timeout", headline, "interrupted", line=line, details=(advice,), next_step=next_step)


# --- causes outside of the exercise itself ------------------------------------------------------------------------


def _name_cause(verdict: Verdict, target: Target) -> Verdict:
    """A failing verdict says first what the code uses that grading has not, else which other exercise it calls whose own check fails."""
    if verdict.status == "missing":
        return replace(verdict, next_step=_run_its_cell(target))
    if verdict.status not in FAILING:
        return verdict
    names = target.names_read
    why = {name: f"`{name}` {history.absences[name].why}" for name in names if name in history.absences}
    absent = [why[name] for name in why if history.is_absent(name) and f"`{name}` " not in verdict.headline]
    if not absent:
        files = reach.imported_files(target.obj, *names.values())
        absent = [f"{target.name} imports `{file}`. {reach.ABSENT}" for file in files]
    edited = [why[name] for name in why if history.absences[name].edited]
    verdict = replace(verdict, details=(*verdict.details, *edited))
    if absent and verdict.status == "error":
        return replace(verdict, headline=" ".join((*absent, verdict.headline)))
    if absent:  # it came to an end without that
        return replace(verdict, details=(*verdict.details, *absent))
    others = set(kernel_course().exercises[kernel_course().lesson_of(target.name)]) - {target.name}
    callees = [Target(name, obj, target.namespace) for name, obj in names.items() if name in others]
    failing = [callee.name for callee in callees if (last(callee) or _judge(callee)).status in FAILING]
    if failing and _passes_with_references(target, failing):
        first = wording.blame_callee(target.name, failing[0], f"check({failing[0]})")
        return replace(verdict, headline=f"{first} {verdict.headline}")
    return verdict


def _passes_with_references(target: Target, names: Sequence[str]) -> bool:
    """Whether an exercise would pass if what it calls under these names was the course's own."""
    with _replace_globals(target.obj, {name: references.reference(kernel_course().exercise(name)) for name in names}):
        return _judge(target).passed


# --- for the time of a check --------------------------------------------------------------------------------------


@contextlib.contextmanager
def _replace_globals(obj: Any, others: Mapping[str, Any]) -> Iterator[None]:
    """For so long, the globals of an object's code have these values in place of their own, MISSING for none."""
    names = next((function.__globals__ for function in reach.functions_of(obj)), {}) if others else {}
    own = {name: names[name] for name in others if name in names and names[name] is not obj}
    try:
        for name in own:
            names[name] = others[name]
            if others[name] is MISSING:
                del names[name]
        yield
    finally:
        names.update(own)


@contextlib.contextmanager
def _restore_state() -> Iterator[None]:
    """Judges in torch's default modes, as grading does, and leaves them, random states and thread settings as the learner had them."""
    torch = sys.modules.get("torch")
    with same_random_state(), default_modes(), contextlib.ExitStack() as state:
        if torch is not None and torch.cuda.is_initialized():
            state.callback(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
        yield

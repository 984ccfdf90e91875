"""The verdict on what a learner means, as their notebook stands: the code that runs, and the cells that made it."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from grader.notebook import files
from grader.notebook.fingerprint import fingerprint
from grader.notebook.kernel_course import kernel_course
from grader.notebook.live import Live, functions_of, imported_files, reached, sources
from grader.notebook.runs import NOTHING, Absence, Broken, Runs, ended_by
from grader.notebook.target import Target
from grader.notebook.waiting import waiting
from grader.util.lacking import why
from grader.worker.observe import failure_from, same_random_state
from grader.worker.values import Failure

verdicts: dict[str, tuple[str, Any]] = {}  # exercise -> fingerprint and verdict of the last check
_checked: list[str] = []  # the exercises that were asked for, the last one last
runs = Runs()  # told of every cell by shell.py, where there are cells


def judged(wanted: Target, namespace: Mapping[str, Any], again: bool = True) -> Any:
    """The verdict; of the last check where the code is the same.

    again: judge an interrupted check once more; without it, an interrupted one stays as it was.
    """
    _checked[:] = [wanted.name]
    old = _older_than_its_cell(wanted, namespace)
    if old is not None:
        return old
    if wanted.found and runs.is_absent(wanted.name) and namespace.get(wanted.name, NOTHING) is wanted.obj:
        return _without_cell(wanted, runs.absences[wanted.name])
    key = _fingerprint(wanted)
    kept, verdict = verdicts.get(wanted.name, ("", None))
    if key is not None and kept == key and not (again and verdict.stage == "interrupted"):
        return _with_causes(verdict, wanted, namespace)
    verdict = _judge(wanted, namespace)
    if verdict.status == "missing":
        return replace(verdict, look=_run_its_cell(wanted))
    if key is not None and _fingerprint(wanted) == key:  # code that changes its own globals is judged anew
        verdicts[wanted.name] = (key, verdict)
    return _with_causes(verdict, wanted, namespace)


def _run_its_cell(wanted: Target) -> str:
    return f'The menu Run › Run All Above Selected Cell runs it; reset("{wanted.name}") restores its cell.'


def _without_cell(wanted: Target, absence: Absence) -> Any:
    """The verdict where no cell defines an exercise in grading, or one that ends there before it does."""
    from grader.judging.verdict import Verdict

    if absence.deleted:
        return Verdict(
            wanted.name, "missing", f"`{wanted.name}` {absence.why}", "attempted", look=_run_its_cell(wanted)
        )
    return Verdict(
        wanted.name, "error", f"`{wanted.name}` {absence.why}", "runs", look=f"Then run {wanted.call} again."
    )


def last(wanted: Target) -> Any:
    """The verdict of the last check where it was of this very code, else None."""
    key, verdict = verdicts.get(wanted.name, ("", None))
    return verdict if wanted.found and key == _fingerprint(wanted) else None


def last_passed(wanted: Target) -> bool:
    """Whether what the name now stands for is known to pass."""
    verdict = last(wanted)
    return verdict is not None and verdict.passed


def current_lesson() -> str | None:
    """The lesson of the exercise that was checked last in this process; None where none was."""
    return kernel_course().lesson_of(_checked[-1]) if _checked else None


def is_attempt(verdict: Any) -> bool:
    """Whether a verdict is about the learner's code as it stands."""
    return verdict.status not in ("missing", "could_not_grade") and verdict.stage != "stale"


def attempt_key(wanted: Target, namespace: Mapping[str, Any]) -> str:
    """What tells one attempt from another: the object's fingerprint, else its source."""
    found = None if _fingerprint(wanted) or not wanted.found else sources(wanted.name, wanted.obj, namespace)
    return _fingerprint(wanted) or (f"text {fingerprint(found.cells)}" if found else "unknown")


def _fingerprint(wanted: Target) -> str | None:
    with _as_graded(wanted.obj):
        return fingerprint(wanted.obj) if wanted.found else None


# --- cells that failed, and exercises that are called -----------------------------------------------------------


def _older_than_its_cell(wanted: Target, namespace: Mapping[str, Any]) -> Any:
    """The verdict where the exercise, or something that it calls, is older than what its cell now says; else None."""
    if not wanted.found:
        return None
    broken = runs.stale(wanted.name, wanted.obj)
    if broken is not None:
        return _stale(wanted, wanted.name, broken)
    for name, obj in reached(wanted.obj, namespace).items() if runs.broken else ():
        broken = runs.stale(name, obj)
        if broken is not None:
            return _stale(wanted, name, broken)
    return None


def _stale(wanted: Target, name: str, broken: Broken) -> Any:
    from grader.judging.verdict import Line, Verdict

    calls = "" if name == wanted.name else f"{wanted.name} calls `{name}`. "
    kept = f"The earlier `{name}` is still in the kernel, but it was not judged."
    look = f"Fix that cell and run it, then {wanted.call} judges what it says."
    if broken.failure is None:
        now = ", ".join(f"`{each}`" for each in sorted(broken.defines)) or "nothing"
        return Verdict(
            wanted.name,
            "error",
            f"{calls}The cell that defined `{name}` no longer does: it now defines {now}.",
            "stale",
            details=(kept,),
            look=look,
        )
    message, text = ended_by(broken.failure)
    line = Line(text, broken.failure.line_number) if text else None
    headline = f"{calls}The last run of the cell that defines `{name}` failed: {message.rstrip('.')}{'' if message[-1:] in '?!' else '.'}"
    return Verdict(wanted.name, "error", headline, "stale", line=line, details=(kept,), look=look)


def _with_causes(verdict: Any, wanted: Target, namespace: Mapping[str, Any]) -> Any:
    """A failing verdict says first what the code uses that grading has not, else which other exercise it calls whose own check fails."""
    if verdict.status not in ("failed", "error", "timeout") or not wanted.found:
        return verdict
    read = reached(wanted.obj, namespace)
    absent = [
        f"`{name}` {runs.absences[name].why}"
        for name in read
        if runs.is_absent(name) and f"`{name}` " not in verdict.headline
    ]
    absent = absent or [
        f"{wanted.name} imports `{file}`. {files.ABSENT}" for file in imported_files(wanted.obj, *read.values())
    ]
    if absent and verdict.status == "error":
        return replace(verdict, headline=" ".join((*absent, verdict.headline)))
    if absent:  # it came to an end without that
        return replace(verdict, details=(*verdict.details, *absent))
    names = set(kernel_course().exercises[kernel_course().lesson_of(wanted.name)]) - {wanted.name}
    failing = [name for name, obj in read.items() if name in names and _fails(name, obj, namespace)]
    if failing and _passes_with_references(wanted, failing, namespace):
        first = f"{wanted.name} calls `{failing[0]}`, whose check fails: start there, with check({failing[0]})."
        return replace(verdict, headline=f"{first} {verdict.headline}")
    return verdict


def _passes_with_references(wanted: Target, names: Sequence[str], namespace: Mapping[str, Any]) -> bool:
    """Whether an exercise would pass if what it calls under these names was the course's own."""
    from grader.course import references

    with _swapped(wanted.obj, {name: references.reference(kernel_course().exercise(name)) for name in names}):
        return bool(_judge(wanted, namespace).passed)


def _fails(name: str, obj: Any, namespace: Mapping[str, Any]) -> bool:
    other = Target(name, obj)
    key = _fingerprint(other)
    kept, verdict = verdicts.get(name, ("", None))
    if key is None or kept != key:
        verdict = _judge(other, namespace)
        if key is not None:
            verdicts[name] = (key, verdict)
    return verdict.status in ("failed", "error", "timeout")


# --- judging ----------------------------------------------------------------------------------------------------


def _judge(wanted: Target, namespace: Mapping[str, Any]) -> Any:
    from grader.judging.judge import judge
    from grader.judging.verdict import Verdict

    try:
        with waiting(wanted.call), _as_found(), _as_graded(wanted.obj), files.hidden():
            return judge(kernel_course().exercise(wanted.name), _candidate(wanted, namespace))
    except KeyboardInterrupt as stop:
        return _interrupted(wanted, stop)
    except Exception as error:  # ours, never the learner's: the judge lets none of theirs out
        lacks = why(error)
        if lacks:
            return Verdict(
                wanted.name,
                "could_not_grade",
                f"{wanted.name} cannot be judged here. {lacks}",
                look="Once that is done, restart the kernel and run the notebook again.",
            )
        return Verdict(
            wanted.name,
            "could_not_grade",
            f"The check itself failed, which says nothing about {wanted.name}.",
            details=(f"{type(error).__name__}: {str(error)[:300]}",),
            look="Restart the kernel and run the notebook again; if that does not help, report it with these lines.",
        )


def _interrupted(wanted: Target, stop: KeyboardInterrupt) -> Any:
    """The verdict on a check that the learner stopped: in which line it was."""
    from grader.judging import wording
    from grader.judging.verdict import Verdict

    line = wording.line(wanted.name, failure_from(stop))
    advice = "Your code was not running at that moment."
    if line and re.search(r"\binput\(", line.text):
        advice = "`input()` waits for somebody to type: take what the exercise needs from its parameters."
    elif line:
        advice = (
            "That line was running when it was stopped: look for a loop or a recursion around it that never ends, or for "
            "work that grows with every call."
        )
    return Verdict(
        wanted.name,
        "timeout",
        f"The check of {wanted.name} was interrupted.",
        "interrupted",
        line=line,
        details=(advice,),
        look=f"To try again, run {wanted.call}.",
    )


def _candidate(wanted: Target, namespace: Mapping[str, Any]) -> Any:
    name = wanted.name
    if not wanted.found:
        message = f"{name} is not defined in this notebook yet: run the cell that defines it."
        return Live(name, None, Failure("missing", message=message))
    answer = kernel_course().exercise(name).kind == "answer"
    if answer and wanted.obj is None:
        return Live(name, None, Failure("not_started"))
    return Live(name, wanted.obj, None, None if answer else sources(name, wanted.obj, namespace))


@contextlib.contextmanager
def _as_graded(obj: Any) -> Iterator[None]:
    """For so long, what grading has not is not among the globals of an object's code, or is what grading has."""
    with _swapped(obj, {name: absence.graded for name, absence in runs.absences.items()}):
        yield


@contextlib.contextmanager
def _swapped(obj: Any, others: Mapping[str, Any]) -> Iterator[None]:
    """For so long, the globals of an object's code have these values in place of their own, NOTHING for none."""
    names = next((function.__globals__ for function in functions_of(obj)), {}) if others else {}
    kept = {name: names[name] for name in others if name in names and names[name] is not obj}
    try:
        for name in kept:
            names[name] = others[name]
            if others[name] is NOTHING:
                del names[name]
        yield
    finally:
        names.update(kept)


@contextlib.contextmanager
def _as_found() -> Iterator[None]:
    """Leaves random states, thread settings and torch's modes as the learner had them."""
    torch = sys.modules.get("torch")
    if torch is not None:
        dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
        gpu_states = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else []
        torch.set_grad_enabled(True)
    try:
        with same_random_state():
            yield
    finally:
        if torch is not None:
            if gpu_states:
                torch.cuda.set_rng_state_all(gpu_states)
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(grad)

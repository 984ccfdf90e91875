"""What learners call in a notebook: check, passed, hint, solution, explain and progress.

None of them raises for anything a learner passes; each answers with an object that displays itself.
"""

from __future__ import annotations

import contextlib
import difflib
import random
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from grader.course import references, registry
from grader.notebook.fingerprint import fingerprint
from grader.notebook.target import MISSING, Refusal, Target, find, names_at

HINTS = 3
ATTEMPTS = 3  # different states of the code, after which the solution opens


class Shown:
    """An answer that displays itself: HTML in a notebook, text elsewhere. True where it is a pass."""

    def __init__(self, text: str, html: str, verdict: Any = None) -> None:
        self.text, self.html, self.verdict = text, html, verdict

    def __bool__(self) -> bool:
        return self.verdict is not None and self.verdict.passed

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": self.html}


def check(target: Any, answer: Any = MISSING) -> Shown:
    """Judges an exercise: check(softmax_rows), check("softmax_rows") or check("corrected_first_row", answer).

    Returns: an object that displays the verdict and is true when the exercise passed. A loop in the
    code that never ends is stopped by interrupting the kernel (the square in the toolbar).
    """
    namespace = names_at(sys._getframe(1))
    try:
        wanted = find(target, answer, namespace)
    except Refusal as refusal:
        return _shown(str(refusal))
    key = _fingerprint(wanted)
    verdict = _judged(wanted, key, namespace)
    record = _record()
    if verdict.status not in ("missing", "could_not_grade"):
        record.attempted(wanted.name, key or _text_key(wanted, namespace), verdict.status)
    return _printed(_verdict_shown(verdict, record.take_notes()))


def passed(target: Any, answer: Any = MISSING) -> bool:
    """True where check would pass; else prints one sentence and returns False. Never raises."""
    call = "its check"
    try:
        namespace = names_at(sys._getframe(1))
        wanted = find(target, answer, namespace, "passed")
        call = wanted.call
        if _judged(wanted, _fingerprint(wanted), namespace, again=False).passed:
            return True
    except Refusal as refusal:
        print(refusal)
        return False
    except (Exception, KeyboardInterrupt):  # a payoff must never stop a notebook's Run All
        pass
    print(f"This opens once {call} passes.")
    return False


def hint(target: Any, level: int | None = None) -> Shown:
    """A hint: first a question, then where to look, then code with a blank; each call goes one further."""
    try:
        wanted = find(target, MISSING, names_at(sys._getframe(1)), "hint")
    except Refusal as refusal:
        return _shown(str(refusal))
    if level is not None and (not isinstance(level, int) or not 1 <= level <= HINTS):
        return _shown(f"Hints have the levels 1 to {HINTS}; {level!r} is none of them.")
    exercise, record = registry.exercise(wanted.name), _record()
    level = level or min(record.entry(wanted.name).hints + 1, HINTS)
    record.hinted(wanted.name, level)
    argument = wanted.argument
    more = f"hint({argument}) goes one further." if level < HINTS else f"solution({argument}) is open now."
    said = exercise.hints[level - 1].strip("\n")
    is_code = level == HINTS and "```" not in said  # the third may be bare code, or prose with a fenced block
    title = f"Hint {level} of {HINTS} for {wanted.name}"
    return _shown(said, title, code=is_code, more=(more, *record.take_notes()))


def solution(target: Any) -> Shown:
    """The course's solution: after a pass, after hint 3, or after three different attempts."""
    try:
        wanted = find(target, MISSING, names_at(sys._getframe(1)), "solution")
    except Refusal as refusal:
        return _shown(str(refusal))
    record = _record()
    entry = record.entry(wanted.name)
    if not (entry.passed or entry.hints >= HINTS or entry.attempts >= ATTEMPTS):
        so_far = f"{_count(entry.hints, 'hint')} and {_count(entry.attempts, 'different attempt')}"
        said = (
            f"The solution of {wanted.name} opens after a pass, after hint {HINTS}, or after {ATTEMPTS} different "
            f"attempts. So far: {so_far}. hint({wanted.argument}) goes one further."
        )
        return _shown(said, more=record.take_notes())
    return _shown(references.solution_text(wanted.name), f"The course's solution of {wanted.name}", code=True,
                  more=record.take_notes())  # fmt: skip


def explain(mistake: str | None = None) -> Shown:
    """A mistake at length, by its id: explain("SM1"). Without an id, all of them in one line each."""
    from grader.reports import html, text

    if mistake is None:
        told = [registry.mistake_text(id) for id in registry.mistake_ids()]
        return _printed(Shown("\n".join(f"{one.id:<5} {one.sentence}" for one in told), html.explanations(told)))
    ids = [id.strip() for id in str(mistake).split("+")]
    known = {id.upper(): id for id in _mistake_ids(ids)}
    unknown = [id for id in ids if id.upper() not in known]
    if unknown:
        near = _near_ids(unknown[0].upper(), known)
        nearest = f" Near it: {', '.join(near)}." if near else ""
        return _shown(f"No mistake has the id {unknown[0][:60]!r}.{nearest} explain() lists all of them.")
    told = [references.explained(known[id.upper()]) for id in ids]
    said = "\n\n".join(text.explanation(one) for one in told)
    return _printed(Shown(said, "".join(html.explanation(one) for one in told)))


def progress() -> Shown:
    """The whole course: each exercise with its state, its points and the attempts at it."""
    from grader.notebook import overview

    record = _record()
    table = overview.table(record)
    return _printed(Shown(*overview.shown(table, record.take_notes())))


# --- judging ----------------------------------------------------------------------------------------------------

_verdicts: dict[str, tuple[str, Any]] = {}  # exercise -> fingerprint and verdict of the last check


def _judged(wanted: Target, key: str | None, namespace: Mapping[str, Any], again: bool = True) -> Any:
    """The verdict; of the last check where the code is the same.

    again: judge an interrupted check once more; without it, an interrupted one stays as it was.
    """
    kept, verdict = _verdicts.get(wanted.name, ("", None))
    if key is not None and kept == key and not (again and verdict.stage == "interrupted"):
        return verdict
    verdict = _judge(wanted, namespace)
    if key is not None and _fingerprint(wanted) == key:  # code that changes its own globals is judged anew
        _verdicts[wanted.name] = (key, verdict)
    return verdict


def _judge(wanted: Target, namespace: Mapping[str, Any]) -> Any:
    from grader.judging.judge import judge
    from grader.judging.verdict import Verdict

    try:
        with _as_found():
            return judge(registry.exercise(wanted.name), _candidate(wanted, namespace))
    except KeyboardInterrupt:
        return Verdict(
            wanted.name, "timeout", f"The check of {wanted.name} was interrupted.", "interrupted",
            details=("Where it seemed not to end: look for a loop whose condition never becomes false, or for work "
                     "that grows with every call.",),
            look=f"check({wanted.argument}) tries again.",
        )  # fmt: skip
    except Exception as error:  # ours, never the learner's: the judge lets none of theirs out
        return Verdict(
            wanted.name, "could_not_grade", f"The check itself failed, which says nothing about {wanted.name}.",
            details=(f"{type(error).__name__}: {str(error)[:300]}",),
            look="Restart the kernel and run the notebook again; if it stays, report it with these lines.",
        )  # fmt: skip


def _candidate(wanted: Target, namespace: Mapping[str, Any]) -> Any:
    from grader.notebook.live import Live, sources
    from grader.worker.values import Failure

    name = wanted.name
    if not wanted.found:
        message = f"{name} is not defined in this notebook yet: run the cell that defines it."
        return Live(name, None, Failure("missing", message=message))
    answer = registry.exercise(name).kind == "answer"
    if answer and wanted.obj is None:
        return Live(name, None, Failure("not_started"))
    return Live(name, wanted.obj, None, None if answer else sources(name, wanted.obj, namespace))


def _fingerprint(wanted: Target) -> str | None:
    return fingerprint(wanted.obj) if wanted.found else None


def _text_key(wanted: Target, namespace: Mapping[str, Any]) -> str:
    """What tells one attempt from another where the object itself has no fingerprint: its source."""
    from grader.notebook.live import sources

    found = sources(wanted.name, wanted.obj, namespace) if wanted.found else None
    return f"text {fingerprint(found.cells)}" if found else "unknown"


@contextlib.contextmanager
def _as_found() -> Iterator[None]:
    """Leaves random states, thread settings and torch's modes as the learner had them."""
    numpy = sys.modules.get("numpy") or __import__("numpy")
    python, legacy, torch = random.getstate(), numpy.random.get_state(), sys.modules.get("torch")
    if torch is not None:
        state, threads, dtype = torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()
        grad, on_gpu = torch.is_grad_enabled(), torch.cuda.is_available() and torch.cuda.is_initialized()
        gpu_states = torch.cuda.get_rng_state_all() if on_gpu else []
        torch.set_grad_enabled(True)
    try:
        yield
    finally:
        random.setstate(python)
        numpy.random.set_state(legacy)
        if torch is not None:
            torch.set_rng_state(state)
            if gpu_states:
                torch.cuda.set_rng_state_all(gpu_states)
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(grad)
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)


# --- showing ----------------------------------------------------------------------------------------------------

_records: dict[Any, Any] = {}


def _record() -> Any:
    """The record of the current folder, the same object as long as its path stays."""
    from grader.notebook.record import Record, default_path

    path = default_path()
    if path not in _records:
        _records[path] = Record(path)
    return _records[path]


def _verdict_shown(verdict: Any, notes: tuple[str, ...]) -> Shown:
    from grader.reports import html, text

    return Shown(text.verdict(verdict, notes), html.verdict(verdict, notes), verdict)


def _shown(said: str, title: str = "", code: bool = False, more: tuple[str, ...] = ()) -> Shown:
    from grader.reports import html, text

    plain = "\n\n".join(part for part in (title, text.clean(said) if code else text.plain(said), *more) if part)
    body = [html.code(said) if code else html.paragraphs(said), *(f"<p>{html.prose(each)}</p>" for each in more)]
    return _printed(Shown(plain, html.block("said", f'<span class="attn-name">{html.escape(title)}</span>', body)))


def _printed(shown: Shown) -> Shown:
    """Prints the text where nothing else would show it: in a script, which displays no results."""
    from grader.notebook.live import _ipython

    if _ipython() is None and not hasattr(sys, "ps1"):
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # a console may lack the minus sign or the root
        print(shown.text.encode(encoding, "replace").decode(encoding))
    return shown


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _near_ids(asked: str, known: Mapping[str, str]) -> list[str]:
    """At most three ids like the one asked for; those of its family, such as SM, first."""
    family = [id for id in known if id.rstrip("0123456789") == asked.rstrip("0123456789")]
    return difflib.get_close_matches(asked, family or known, n=3, cutoff=0.3)


def _mistake_ids(asked: list[str]) -> tuple[str, ...]:
    """The known ids; every lesson is imported only where the catalogue alone does not know those asked for."""
    from grader.course.mistakes import TEXTS

    known = tuple(TEXTS)
    return known if all(id.upper() in {each.upper() for each in known} for id in asked) else registry.mistake_ids()

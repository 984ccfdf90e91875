"""Which exercise a learner means by what they pass to check, hint or solution."""

from __future__ import annotations

import difflib
import sys
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import FrameType
from typing import Any

from grader.notebook.kernel_course import kernel_course
from grader.notebook.live_object import own_name, sources
from grader.notebook.reach import names_read
from grader.source.definitions import normalize
from grader.source.policy import Sources
from grader.util.digest import digest
from grader.util.errors import InputError

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "(looked up by name)"})()  # no object


@dataclass(frozen=True, eq=False)
class Target:
    """The exercise's name, the object, MISSING where there is none, and the names that the calling code sees."""

    name: str
    obj: Any = MISSING
    namespace: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_answer(self) -> bool:
        return kernel_course().exercise(self.name).kind == "answer"

    @property
    def argument(self) -> str:
        """How the exercise is passed: an object by its name, else the name in quotes."""
        return self.name if callable(self.obj) else f'"{self.name}"'

    @property
    def call(self) -> str:
        """The call that checks it."""
        return f'check("{self.name}", {self.name})' if self.is_answer else f"check({self.argument})"

    @cached_property
    def sources(self) -> Sources | None:
        """The statements that made the object; None for an answer, and where no text is known."""
        return None if self.is_answer or self.obj is MISSING else sources(self.name, self.obj, self.namespace)

    @cached_property
    def names_read(self) -> dict[str, Any]:
        """The names of this notebook that the object's code reads, and what they are; those nearest to it come first."""
        return names_read(self.obj, self.namespace)

    @cached_property
    def digest(self) -> str:
        """A digest of the text of these statements, or of an answer's value; '' where neither is known."""
        try:
            if self.is_answer:
                text = _value(self.obj) if self.obj is not MISSING else ""
            else:
                text = "\n".join(normalize(cell) for cell in self.sources.cells) if self.sources else ""
            return digest(text) if text else ""
        except Exception:  # objects of a learner's may raise from anything
            return ""


def _value(answer: Any) -> str:
    value = answer.tolist() if hasattr(answer, "tolist") else answer  # an array's own text leaves digits out
    return f"{type(answer).__name__} {getattr(answer, 'dtype', '')} {value!r}"


def learner_frame() -> FrameType:
    """Of the learner's code that called us: the nearest that is not of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("grader."):
        frame = frame.f_back
    return frame


def find(target: Any, answer: Any = MISSING, caller: str = "check") -> Target:
    """The exercise that `target` names, and the object to judge.

    target: an exercise's name, looked up in the names of the learner's code unless `answer` is given; or the object itself,
    known by its own name, else by the name that it is bound to there. caller: what the learner called.
    Raises: InputError.
    """
    if target is MISSING:
        raise InputError(f"{caller} needs an exercise, as in {caller}({kernel_course().exercise_names()[0]}).")
    names, main, frame = kernel_course().exercise_names(), sys.modules.get("__main__"), learner_frame()
    namespace = ChainMap(frame.f_locals, frame.f_globals, vars(main) if main else {})
    if isinstance(target, str):
        if target not in names:
            _refuse_other_handout(target)
            raise InputError(f"No exercise is called {target[:80]!r}. {_nearest(target)}")
        return Target(target, namespace.get(target, MISSING) if answer is MISSING else answer, namespace)
    try:
        name = _name_of(target, names, namespace, caller)
    except InputError:
        raise
    except Exception as error:  # an object may raise from anything that it is asked
        raise InputError(f"This {type(target).__name__} cannot be read: it raises {type(error).__name__}.") from None
    return Target(name, target if answer is MISSING else answer, namespace)


def _name_of(obj: Any, names: tuple[str, ...], namespace: Mapping[str, Any], caller: str) -> str:
    own = own_name(obj)
    if own in names and callable(obj):
        return own
    if obj is not None and not isinstance(obj, (bool, int, float)):
        for name in names:
            if namespace.get(name, MISSING) is obj:
                return name
    if own and callable(obj):
        _refuse_other_handout(own)
    raise InputError(_why_not(obj, own, names, caller))


def _refuse_other_handout(name: str) -> None:
    """Raises: InputError where the exercise is of a lesson that this installation lacks."""
    for lesson, exercises in kernel_course().exercises.items():
        if name in exercises and (reason := kernel_course().other_handout(lesson)):
            raise InputError(reason)


def _why_not(obj: Any, own: str | None, names: tuple[str, ...], caller: str) -> str:
    kind = type(obj).__name__
    if kind in names:
        return f"{caller} takes the class {kind} itself, not an object made from it: {caller}({kind})."
    takes_answer = caller in ("check", "passed")
    if not callable(obj):
        other = f'an exercise can also be given by its name, as in {caller}("{names[0]}")'
        if takes_answer:
            other = f'an answer needs its name, as in {caller}("{names[0]}", answer)'
        return (
            f"{caller} takes a function, a class or an exercise's name; this is of type {kind}. A function is passed "
            f"without being called, as in {caller}({names[0]}); {other}."
        )
    if own == "<lambda>":
        unknown = f"A lambda has no name, so its exercise is unknown. {_nearest('')}"
        advice = f'Give the name of the exercise first: {caller}("{names[0]}", the_lambda).'
    else:
        inner = getattr(getattr(obj, "func", None), "__name__", None) or own or ""  # of a functools.partial
        name = repr(own) if own else f"An object of type {kind}"
        unknown = f"{name} is not the name of an exercise. {_nearest(inner)}"
        example = next(iter(nearest(inner)), names[0])
        advice = (
            f'For code under another name, give the name of the exercise first: {caller}("{example}", {own or "it"}).'
        )
    return f"{unknown} {advice}" if takes_answer else unknown


def nearest(name: str) -> list[str]:
    """At most three exercises of similar names."""
    lower = {exercise.lower(): exercise for exercise in kernel_course().exercise_names()}
    return [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.5)]


def _nearest(name: str) -> str:
    near = nearest(name)
    if near:
        return f"Nearest: {', '.join(near)}."
    return f"The exercises are: {', '.join(kernel_course().exercise_names())}."

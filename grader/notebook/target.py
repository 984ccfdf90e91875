"""Which exercise a learner means by what they pass to check, hint or solution."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from grader.notebook.kernel_course import kernel_course

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "(looked up by name)"})()


@dataclass(frozen=True)
class Target:
    """The exercise's name, the object, and whether there is one."""

    name: str
    obj: Any = None
    found: bool = True

    @property
    def argument(self) -> str:
        """How the exercise is passed: an object by its name, else the name in quotes."""
        return self.name if self.found and callable(self.obj) else f'"{self.name}"'

    @property
    def call(self) -> str:
        """The call that checks it."""
        answer = kernel_course().exercise(self.name).kind == "answer"
        return f'check("{self.name}", {self.name})' if answer else f"check({self.argument})"


class Refusal(Exception):
    """An argument that names no exercise; the message is for the learner."""


def find(target: Any, answer: Any, namespace: Mapping[str, Any], caller: str = "check") -> Target:
    """The exercise that `target` names, and the object to judge.

    target: an exercise's name, looked up in `namespace` unless `answer` is given; or the object itself, known
    by its own name, else by the name that it is bound to in `namespace`. caller: what the learner called.
    Raises: Refusal.
    """
    if target is MISSING:
        raise Refusal(f"{caller} needs an exercise, as in {caller}({kernel_course().exercise_names()[1]}).")
    if isinstance(target, str):
        name = _known(target)
        if answer is not MISSING:
            return Target(name, answer)
        return Target(name, namespace.get(name), name in namespace)
    try:
        name = _name_of(target, namespace, caller)
    except Refusal:
        raise
    except Exception as error:  # an object may raise from anything that it is asked
        raise Refusal(f"This {type(target).__name__} cannot be read: it raises {type(error).__name__}.") from None
    return Target(name, target if answer is MISSING else answer)


def names_at(frame: FrameType) -> dict[str, Any]:
    """The names that code in this frame sees; `__main__` below them."""
    main = sys.modules.get("__main__")
    return {**(vars(main) if main else {}), **frame.f_globals, **frame.f_locals}


def _known(name: str) -> str:
    if name in kernel_course().exercise_names():
        return name
    _refuse_other_handout(name)
    raise Refusal(f"No exercise is called {name[:80]!r}. {_nearest(name)}")


def _name_of(obj: Any, namespace: Mapping[str, Any], caller: str) -> str:
    names = kernel_course().exercise_names()
    own = getattr(obj, "__name__", None)
    own = own if isinstance(own, str) else None
    if own in names and callable(obj):
        return own
    if obj is not None and not isinstance(obj, (bool, int, float)):
        for name in names:
            if namespace.get(name, MISSING) is obj:
                return name
    if own and callable(obj):
        _refuse_other_handout(own)
    raise Refusal(_why_not(obj, own, names, caller))


def _refuse_other_handout(name: str) -> None:
    """Raises: Refusal where the exercise is of a lesson that this installation lacks."""
    said = next(
        (
            kernel_course().other_handout(lesson)
            for lesson, exercises in kernel_course().exercises.items()
            if name in exercises
        ),
        "",
    )
    if said:
        raise Refusal(said)


def _why_not(obj: Any, own: str | None, names: tuple[str, ...], caller: str) -> str:
    kind = type(obj).__name__
    if kind in names:
        return f"{caller} takes the class {kind} itself, not an object made from it: {caller}({kind})."
    takes_answer = caller in ("check", "passed")
    if callable(obj):
        inner = getattr(getattr(obj, "func", None), "__name__", None)  # of a functools.partial
        if own == "<lambda>":
            said = f"A lambda has no name, so its exercise is unknown. {_nearest('')}"
            goes = f'Give the name of the exercise first: {caller}("{names[0]}", the_lambda).'
        else:
            name = repr(own) if own else f"An object of type {kind}"
            said = f"{name} is not the name of an exercise. {_nearest(inner or own or '')}"
            goes = f'For code under another name, give the name of the exercise first: {caller}("{_example(inner or own)}", {own or "it"}).'
        return f"{said} {goes}" if takes_answer else said
    answers = (
        f'an answer needs its name, as in {caller}("{names[0]}", answer)'
        if takes_answer
        else f'an exercise can also be given by its name, as in {caller}("{names[0]}")'
    )
    return (
        f"{caller} takes a function, a class or an exercise's name; this is of type {kind}. A function is passed "
        f"without being called, as in {caller}({names[0]}); {answers}."
    )


def nearest(name: str) -> list[str]:
    """At most three exercises of similar names."""
    lower = {each.lower(): each for each in kernel_course().exercise_names()}
    return [lower[one] for one in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.5)]


def _example(name: str | None) -> str:
    return next(iter(nearest(name or "")), kernel_course().exercise_names()[0])


def _nearest(name: str) -> str:
    near = nearest(name)
    if near:
        return f"Nearest: {', '.join(near)}."
    return f"The exercises are: {', '.join(kernel_course().exercise_names())}."

"""How a lesson's folder declares its exercises: one file each, a class whose body is the specification, as CONTRIBUTING shows.

The functions of the body are plain ones: nothing is ever made of the class, which becomes an `Exercise`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from inspect import cleandoc
from typing import Any

from grader.course.patches import patch
from grader.course.spec import UNTRIED, Case, Exercise, Mistake, MistakeText, Property
from grader.util.errors import AuthorError, author_slip
from grader.worker.values import Tensor

__all__ = ["UNTRIED", "Case", "MistakeText", "Property", "Tensor", "exercise", "holds", "mistake", "patch"]


@dataclass(frozen=True)
class Declaration:
    """A mistake as it stands in an exercise's file. ways: patches, or objects of their own, that all show it; text: without its id."""

    ways: tuple[Any, ...]
    text: MistakeText | None = None


def mistake(*ways: Any, says: str = "", why: str = "", issue: str = "") -> Declaration:
    """A mistake with its text; without `says`, the text stands at another exercise of the lesson, or in solutions/shared/mistakes/.

    ways: patches of the reference (or, where the algorithm differs, functions, classes or values), each the same mistake.
    says: what the learner reads first. why: the mistake at length, in Markdown. issue: a public 'owner/repo#number'.
    """
    return Declaration(ways, MistakeText("", " ".join(says.split()), _paragraphs(why), issue=issue) if says else None)


def holds(title: str, cases: tuple[str, ...] = ()) -> Callable[[Callable[..., str | None]], Property]:
    """Makes a property of a function (see `spec.Property`)."""

    def declare(check: Callable[..., str | None]) -> Property:
        @wraps(check)
        def call(*arguments: Any) -> str | None:
            with _as_author_slip(check.__module__):
                return check(*arguments)

        return Property(title, call, cases)

    return declare


def exercise(**fields: Any) -> Callable[[type], Exercise]:
    """Makes an Exercise of a class: its name, its docstring as the task, and what its body holds. fields: the others of Exercise."""

    def specify(body: type) -> Exercise:
        members = {name: value for name, value in vars(body).items() if not name.startswith("__")}
        mistakes = {id: _declaration(value) for id, value in members.pop("mistakes").items()}
        # Every mistake's first way, then the other ways: where several fit, the plainest are named first.
        ways = [(id, declaration.ways[0]) for id, declaration in mistakes.items()]
        ways += [(id, way) for id, declaration in mistakes.items() for way in declaration.ways[1:]]
        properties = tuple(value for value in members.values() if isinstance(value, Property))
        own = {name: value for name, value in members.items() if name in Exercise.__dataclass_fields__}
        own["cases"] = _with_probes_of(body.__module__, own["cases"])
        return Exercise(
            name=body.__name__,
            task=" ".join(cleandoc(body.__doc__ or "").split()),
            mistakes=tuple(Mistake(id, way) for id, way in ways),
            texts=tuple(replace(declaration.text, id=id) for id, declaration in mistakes.items() if declaration.text),
            properties=(*members.get("more_properties", ()), *properties),
            **{**fields, **own},
        )

    return specify


def _with_probes_of(module: str, cases: Callable) -> Callable:
    """The cases, with the name of the lesson's folder before the names of its own probes.

    module: the specification's, 'course_0.05_numpy_to_pytorch.exercises.SelfAttention'.
    """
    lesson = module.split(".")[1] if module.count(".") > 1 else ""

    def qualify(rng: Any) -> Iterator[Case]:
        with _as_author_slip(module):
            for case in cases(rng):
                own = case.probe.count(".") == 1
                yield replace(case, probe=f"{lesson}.{case.probe}") if own else case

    return qualify


@contextmanager
def _as_author_slip(module: str) -> Iterator[None]:
    """What the code of a specification raises is its author's slip, told with file and line; a missing library is none."""
    try:
        yield
    except (AuthorError, ImportError):
        raise
    except Exception as error:
        otherwise = f"solutions/{'/'.join(module.split('.')[1:])}.py"
        raise AuthorError([author_slip(error, otherwise)]) from error


def _paragraphs(text: str) -> str:
    """Text without the line breaks inside its paragraphs; indented code keeps its lines."""
    parts = cleandoc(text).split("\n\n")
    return "\n\n".join(part if part.startswith("    ") else " ".join(part.split()) for part in parts)


def _declaration(value: Any) -> Declaration:
    return value if isinstance(value, Declaration) else Declaration(value if isinstance(value, tuple) else (value,))

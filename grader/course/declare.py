"""How a lesson's folder declares its exercises: one file each, a class whose body is the specification.

    @exercise(points=2, minutes=8, difficulty=2, container="tensor", dtype=("bool",))
    class causal_mask:
        \"\"\"Mark for each query the keys that lie in its past, its own position included.\"\"\"

        def cases(rng):
            yield Case("small", "three queries", (3,))

        @holds("the last query sees every key")
        def last(case, parts):
            return None if parts["result"][-1].all() else "the last query does not."

        mistakes = {
            "MK1": patch("torch.ones", "~torch.ones"),                          # its text is in the catalogue
            "MA28": mistake(patch(".tril(diagonal=t_k - t_q)", ""), says="…", why="…"),   # the text is here
        }
        hints = ("a question?", "where to look.", "code with a ____")

The functions of the body are plain ones: nothing is ever made of the class, which becomes an `Exercise`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import cleandoc
from typing import Any

from grader.course.patches import patch
from grader.course.spec import Case, Exercise, Lesson, Mistake, MistakeText, Property
from grader.worker.values import Tensor

__all__ = ["Case", "MistakeText", "Property", "Tensor", "collected", "exercise", "holds", "mistake", "patch"]


@dataclass(frozen=True)
class Declared:
    """A mistake as it stands in an exercise's file. ways: patches, or objects of their own, that all show it."""

    ways: tuple[Any, ...]
    says: str = ""
    why: str = ""
    evidence: str = ""


def mistake(*ways: Any, says: str = "", why: str = "", evidence: str = "") -> Declared:
    """A mistake with its text; without `says`, the text stands at another exercise of the lesson, or in course/mistakes/.

    ways: patches of the reference (or, where the algorithm differs, functions, classes or values), each the same mistake.
    says: what the learner reads first. why: the mistake at length, in Markdown. evidence: a public 'owner/repo#number'.
    """
    return Declared(ways, says, why, evidence)


def holds(title: str, needs: tuple[str, ...] = ()) -> Callable[[Callable[..., str | None]], Property]:
    """Makes a property of a function (see spec.Property)."""
    return lambda check: Property(title, check, needs)


def exercise(**fields: Any) -> Callable[[type], Exercise]:
    """Makes an Exercise of a class: its name, its docstring as the task, and what its body holds. fields: the others of Exercise."""

    def made(body: type) -> Exercise:
        given = {name: value for name, value in vars(body).items() if not name.startswith("__")}
        declared = {id: _declared(value) for id, value in given.pop("mistakes").items()}
        properties = tuple(value for value in given.values() if isinstance(value, Property))
        said = {name: value for name, value in given.items() if name in Exercise.__dataclass_fields__}
        return Exercise(
            name=body.__name__,
            task=" ".join(cleandoc(body.__doc__ or "").split()),
            mistakes=_in_turn(declared),
            texts=tuple(
                MistakeText(id, one.says, _paragraphs(one.why), evidence=one.evidence)
                for id, one in declared.items()
                if one.says
            ),
            properties=(*given.get("more_properties", ()), *properties),
            **{**fields, **said},
        )

    return made


def collected(package: str, exercises: Sequence[str], **about: Any) -> Lesson:
    """The lesson of a folder: `package` is its __name__, `exercises` its files in order. about: title, question, outcome, needs."""
    made = tuple(getattr(importlib.import_module(f"{package}.{name}"), name) for name in exercises)
    texts = tuple(
        dict.fromkeys(text for one in made for text in one.texts)
    )  # exercises may share a mistake and its text
    return Lesson(package.rpartition(".")[2], exercises=made, texts=texts, **about)


def _in_turn(declared: Mapping[str, Declared]) -> tuple[Mistake, ...]:
    """Every mistake's first way, then the other ways: where several fit, the plainest are named first."""
    first = tuple(Mistake(id, one.ways[0]) for id, one in declared.items())
    return first + tuple(Mistake(id, way) for id, one in declared.items() for way in one.ways[1:])


def _paragraphs(text: str) -> str:
    """Text without the line breaks inside its paragraphs; indented code keeps its lines."""
    parts = cleandoc(text).split("\n\n")
    return "\n\n".join(part if part.startswith("    ") else " ".join(part.split()) for part in parts)


def _declared(value: Any) -> Declared:
    if isinstance(value, Declared):
        return replace(value, says=" ".join(value.says.split()))
    return Declared(value if isinstance(value, tuple) else (value,))

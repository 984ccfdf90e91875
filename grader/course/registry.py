"""Finds the lessons, and knows every exercise and every mistake by name.

Where they are is said once: `root` holds solutions/ and notebooks/, `specified` a folder of specifications for each lesson. Both
are the package's, or those of a folder of one's own (own.py).
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from grader.course import percent, prose
from grader.course.spec import Exercise, Lesson, MistakeText
from grader.util.errors import AuthorError, InputError, LintError

# Lessons import torch, references and mistakes seed the process's generators, and stray output is caught by replacing
# sys.stdout: where several threads grade, one at a time may do so. Waiting for a worker needs no lock.
ALONE = threading.RLock()

GLOSSARY = "glossary.md"  # beside the learner's notebooks

SEED = 7  # of the inputs; the notebook and `grader grade` share it, so that their verdicts agree


# What `grader build` gathers from specifications and sources, so that one exercise is found without importing every lesson.
CONTRACT: dict[str, tuple[str, ...]] = {}  # the exercises of each lesson, in order

GIVEN: dict[str, str] = {}  # names that the lessons' own cells import, and what each of them stands for

_WITH_TORCH: set[str] = set()

_title = ""


def know(index: str) -> None:
    """Takes over what an index says, lessons/index.json as text."""
    global _title
    said = json.loads(index)
    _title = said.get("course", "attention")
    for known, new in (
        (CONTRACT, {name: tuple(about["exercises"]) for name, about in said["lessons"].items()}),
        (_WITH_TORCH, {name for name, about in said["lessons"].items() if about["torch"]}),
    ):
        known.clear()
        known.update(new)
    know_given(said["given"])


def know_given(names: Mapping[str, str]) -> None:
    """Takes over what an index says of given cells; a process that reads for another one is told this and no more."""
    if GIVEN != names:
        GIVEN.clear()
        GIVEN.update(names)


def needs_torch(lesson: str) -> bool:
    """Whether a lesson's own cells import torch."""
    return lesson in _WITH_TORCH


VARIABLE = "ATTENTION_COURSE"  # of the environment: the folder of a course of one's own, see own.py
OF_PACKAGE = Path(__file__).resolve().parent / "lessons"  # the package's own specifications
_own: Path | None = None
_REMEMBERED: list[Callable[[], None]] = []


def remembered(function: Callable) -> Any:
    """`cache` for what is read of the lessons: forgotten where others take their place."""
    made = cache(function)
    _REMEMBERED.append(made.cache_clear)
    return made


def settle(own: Path | None, index: str) -> None:
    """From now on the lessons are those of this folder, None for the package's, and the index says what they hold."""
    global _own
    _own = own
    for forget in _REMEMBERED:
        forget()
    know(index)


def package_index() -> str:
    """What the index of the package's own lessons says. Raises: InputError where the installation lacks it."""
    place = OF_PACKAGE / "index.json"
    try:
        return place.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{place} can't be read ({error.strerror}), so no lesson is known; install the course again, or in a checkout "
            "bring it back with `git checkout -- grader/course/lessons/index.json`."
        ) from None


know(package_index())


def home() -> Path:
    """Where the package keeps what it comes with, such as constraints.txt: the checkout, or the wheel's own copy."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent
    if (checkout / "solutions").is_dir() and (checkout / "pyproject.toml").is_file():
        return checkout
    return package / "_course"


def own() -> Path | None:
    """The folder of a course of one's own, None where the lessons are the package's."""
    return _own


def root() -> Path:
    """The folder that holds notebooks/ and solutions/."""
    return _own or home()


def title() -> str:
    """What the course is called in reports: 'attention', or the name of the folder of one's own."""
    return _title


def specified() -> Path:
    """The folder that holds the specifications, a folder each lesson."""
    return _own / "lessons" if _own else OF_PACKAGE


@remembered
def lessons() -> tuple[str, ...]:
    """The names of the lessons that exist, in order. A lesson exists when its source and its specification do."""
    return tuple(name for name in CONTRACT if source_path(name).is_file() and (specified() / name).is_dir())


def edition() -> str:
    """The installed version and the lessons that it knows: '0.1.0+c4f1a90b2, lessons 00, 01'."""
    from importlib.metadata import version

    return f"{version('attention-course')}, lessons {', '.join(name[:2] for name in lessons()) or 'none'}"


def exercise_names() -> tuple[str, ...]:
    """Every exercise of the lessons that exist, in the course's order."""
    return tuple(exercise_name for name in lessons() for exercise_name in CONTRACT[name])


def lesson_of(exercise_name: str) -> str:
    """The lesson of an exercise. Raises KeyError where no lesson that exists has one of that name."""
    for name in lessons():
        if exercise_name in CONTRACT[name]:
            return name
    raise KeyError(exercise_name)


def other_handout(lesson: str) -> str:
    """A sentence for what belongs to a lesson of the course that this installation lacks; '' for every other lesson."""
    if lesson in lessons() or lesson not in CONTRACT:
        return ""
    known = ", ".join(name[:2] for name in lessons())
    return (
        f"This notebook belongs to another hand-out: it is of lesson {lesson}, and the grader installed here knows {known} alone. "
        "Use the environment of that hand-out, or ask for one that has both."
    )


def known_exercise(name: str) -> str:
    """The name itself. Raises: InputError, naming the nearest, where no lesson that exists has one of that name."""
    names = exercise_names()
    if name in names:
        return name
    near = get_close_matches(name, names, 1, 0.5)
    advice = f"did you mean {near[0]}?" if near else "the notebooks and every report name them."
    raise InputError(f"there is no exercise {name[:200]!r}; {advice}")


def lesson(name: str) -> Lesson:
    """The specification of a lesson, imported on demand."""
    with ALONE:
        return importlib.import_module(f"grader.course.lessons.{name}").lesson


def exercise(exercise_name: str) -> Exercise:
    """The specification of an exercise. Raises KeyError for an unknown name."""
    for found in lesson(lesson_of(exercise_name)).exercises:
        if found.name == exercise_name:
            return found
    raise KeyError(exercise_name)


def next_exercise(exercise_name: str) -> str | None:
    """The exercise after this one in the course, None after the last."""
    names = exercise_names()
    at = names.index(exercise_name) + 1
    return names[at] if at < len(names) else None


def mistake_text(id: str) -> MistakeText:
    """What is said of a mistake; lessons' own texts are found too. Raises KeyError for an unknown id."""
    from grader.course.mistakes import TEXTS

    if id in TEXTS:
        return TEXTS[id]
    for name in sorted(lessons(), key=lambda name: f"grader.course.lessons.{name}" not in sys.modules):
        for text in lesson(name).texts:
            if text.id == id:
                return text
    raise KeyError(id)


def mistake_ids() -> tuple[str, ...]:
    """Every id that has a text; imports all lessons."""
    from grader.course.mistakes import TEXTS

    return tuple(dict.fromkeys([*TEXTS, *(text.id for name in lessons() for text in lesson(name).texts)]))


def source_path(name: str) -> Path:
    return root() / "solutions" / f"{name}.py"


def notebook_path(name: str) -> Path:
    return root() / "notebooks" / f"{name}.ipynb"


def source(name: str) -> str:
    """The text of a lesson's source, solutions/NN_lesson.py."""
    return source_path(name).read_text(encoding="utf-8")


def solution_path(name: str) -> Path:
    """The solved notebook, whose metadata store the numbers that the lesson's prose quotes."""
    return root() / "solutions" / f"{name}.ipynb"


def pristine(name: str) -> dict[str, Any]:
    """The learner's notebook of a lesson as the course means it: from the source, whatever was done to the file.

    Numbers that prose quotes from a run stand in it as the source has them: grading reads code alone.
    """
    from grader.course.stubs import learner_notebook

    return learner_notebook(name, cells(name), lesson(name), opening=opening(name))


def handed_out(name: str, among: Sequence[str] | None = None) -> dict[str, Any]:
    """`pristine` as a learner reads it: quoted numbers filled in from the last build, links below it.

    among:  the lessons that lie beside it, by default all that exist.
    Raises: AuthorError where the lesson was not built since its prose quotes what it does.
    """
    from grader.course.stubs import learner_notebook

    try:
        return learner_notebook(name, cells(name), lesson(name), quoted(name), way(name, among), opening(name))
    except prose.Unsaid as error:
        sentence = f"it has no value for {{{{ {error} }}}}; run `grader build {name[:2]}`."
        raise AuthorError([LintError(f"solutions/{name}.ipynb", 0, sentence)]) from None


def opening(name: str) -> list[dict[str, Any]]:
    """The cells that say how to get the grader; none for lessons that are not the package's own."""
    from grader.course import opening

    return [] if own() else opening.cells(name, needs_torch(name), opening.address(home()))


def quoted(name: str) -> prose.Said:
    """The numbers that a lesson's prose quotes, as the last build stored them: (expression, value), in order."""
    if not any(prose.asked_in(cell.text) for cell in cells(name) if cell.role == "prose"):
        return ()
    try:
        about = json.loads(solution_path(name).read_text(encoding="utf-8"))["metadata"]["grader"]
        return [(str(expression), str(value)) for expression, value in about.get("quoted", ())]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def way(name: str, among: Sequence[str] | None = None) -> str:
    """Markdown that leads to the lessons before and after, and to the glossary where there is one."""
    names = list(among or lessons())
    at = names.index(name) if name in names else 0
    before, after = names[max(at - 1, 0) : at], names[at + 1 : at + 2]
    links = [f"← [{heading(one)}]({one}.ipynb)" for one in before] + [
        f"[Glossary]({GLOSSARY})"
    ] * glossary_path().is_file()
    return " | ".join(links + [f"[{heading(one)}]({one}.ipynb) →" for one in after])


def heading(name: str) -> str:
    """The title of a lesson, as '01 · Three tokens: attention by hand', from its source's first line of prose."""
    title = next((cell.text.split("\n", 1)[0] for cell in cells(name) if cell.role == "prose"), "")
    return re.sub(r"^#+\s*(?:\d+\s*·\s*)?", f"{name[:2]} · ", title)


def glossary_path() -> Path:
    return root() / "notebooks" / GLOSSARY


def glossary(among: Sequence[str] | None = None) -> str:
    """The glossary of the course, with links to these lessons alone, by default to all that exist; '' where it has none."""
    if not glossary_path().is_file():
        return ""
    names = set(among or lessons())
    page = glossary_path().read_text(encoding="utf-8")
    return re.sub(r"\[([^]]*)\]\((\w+)\.ipynb\)", lambda link: link[0] if link[2] in names else link[1], page)


@remembered
def cells(name: str) -> tuple[percent.Cell, ...]:
    """The cells of a lesson's source, solution regions included."""
    return percent.read_percent(source(name))

"""A course: the folder that the engine builds, judges, grades and hands out. Of any one course the engine knows nothing else.

ROOT/solutions/NN_name/       a lesson: lesson.py (its source), lesson.toml (its title, question and outcome),
                              exercises/NAME.py (specifications), probes*.py, figures.py, zoo/ (answers for the tests)
ROOT/solutions/shared/        what several lessons share: mistakes/, figures/, data/ and any module
ROOT/solutions/course.toml    the course's title, and the former names of lessons and mistakes; may be missing
ROOT/solutions/index.json     what the lessons hold, written by `grader build`; may be missing
ROOT/notebooks/               what learners open, written by `grader build`, and glossary.md
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
import sys
import threading
import tomllib
import types
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from grader.course import course_folder, index, outcome_texts, percent, stubs
from grader.course.course_folder import GLOSSARY, text_of
from grader.course.spec import Exercise, Lesson, MistakeText
from grader.util.errors import AuthorError, InputError, LintError, author_slip
from grader.util.words import did_you_mean

# Lessons import torch, references and mistakes seed the process's generators, and stray output is caught by replacing
# sys.stdout: where several threads grade, one at a time may do so. Waiting for a worker needs no lock.
IMPORT_LOCK = threading.RLock()

COURSE_ENV = "ATTENTION_COURSE"  # of the environment: the folder of another course than the one that is installed
_numbers = itertools.count()
_courses: dict[Path, Course] = {}


def open_course(folder: Path | str | None = None) -> Course:
    """The course in this folder; by default the one that the environment names, else the one that is installed.

    Raises: InputError, one sentence for each thing that is wrong with the folder.
    """
    location = folder or os.environ.get(COURSE_ENV)
    root = Path(location).expanduser().resolve() if location else course_folder.installed_folder()
    if root not in _courses:
        _courses[root] = Course(root)
    return _courses[root]


class Course:
    """What a course's folder holds. Made once in a process and handed down; what was read of its files is kept.

    root:        the folder that holds solutions/ and notebooks/.
    installed:   whether it is the course that came with the engine, and not a folder that `--course` named.
    title:       what it is called in reports.
    exercises:   the names of each lesson's exercises, in order.
    own_package: whether pip installs it with the grader.
    given_names: (name, what it stands for) of what the lessons' own cells import.
    package:     the name under which its modules are imported, another one for each course.
    Raises: InputError, one sentence for each thing that is wrong with the folder.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.solutions = root, root / "solutions"
        self.index_path, self.glossary_path = self.solutions / "index.json", root / "notebooks" / GLOSSARY
        self.installed = root == course_folder.installed_folder()
        self.package = f"course_{next(_numbers)}"
        package = types.ModuleType(self.package)
        package.__path__ = [str(self.solutions)]
        sys.modules[self.package] = package
        if problems := list(course_folder.folder_problems(root)):
            raise InputError("\n".join(problems))
        try:
            self.about = about = tomllib.loads(text_of(self.solutions / "course.toml"))
            self.title: str = about.get("title", root.name)
            self.renamed: dict[str, str] = about.get("renamed", {})
            self.former_ids: dict[str, str] = about.get("former_ids", {})
            self.own_package: bool = about.get("package", False)
            self.read_index()
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{self.solutions / 'course.toml'}: {error}.") from error
        except AuthorError as error:
            raise InputError(str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self.index_path}: {error}; write it anew with `grader build`.") from error

    def __reduce__(self) -> Any:
        return open_course, (str(self.root),)  # another process opens the folder itself

    # --- files -------------------------------------------------------------------------------

    def folder(self, lesson: str) -> Path:
        return self.solutions / lesson

    def source_path(self, lesson: str) -> Path:
        return self.folder(lesson) / "lesson.py"

    def notebook_path(self, lesson: str) -> Path:
        """The learner's notebook."""
        return self.root / "notebooks" / f"{lesson}.ipynb"

    def solution_path(self, lesson: str) -> Path:
        """The solved notebook, whose metadata store the numbers that the lesson's prose quotes."""
        return self.solutions / f"{lesson}.ipynb"

    def relative(self, path: Path) -> str:
        """A path as messages name it, from the course's folder."""
        return path.relative_to(self.root).as_posix()

    def source(self, lesson: str) -> str:
        """The text of a lesson's source."""
        return self.source_path(lesson).read_text(encoding="utf-8")

    @cache
    def cells(self, lesson: str) -> tuple[percent.Cell, ...]:
        """The cells of a lesson's source, solution regions included."""
        return percent.read_percent(self.source(lesson))

    def heading(self, lesson: str) -> str:
        """The title of a lesson, as '01 · Three tokens: attention by hand', from its source's first line of prose."""
        title = next((cell.text.split("\n", 1)[0] for cell in self.cells(lesson) if cell.role == "prose"), "")
        return re.sub(r"^#+\s*(?:\d+\s*·\s*)?", f"{lesson[:2]} · ", title)

    # --- lessons, exercises, mistakes --------------------------------------------------------

    def read_index(self) -> None:
        """Takes over what the index says."""
        content = json.loads(index.text(self))
        lessons = content["lessons"].items()
        self.exercises: dict[str, tuple[str, ...]] = {name: tuple(about["exercises"]) for name, about in lessons}
        self._lessons = tuple(name for name in self.exercises if self.source_path(name).is_file())
        self._with_torch = {name for name, about in lessons if about["torch"]}
        self.given_names: tuple[tuple[str, str], ...] = tuple(content["given"].items())

    @property
    def judges(self) -> bool:
        """Whether it has a lesson's source: a hand-out without solutions has notebooks and figures, and judges nothing."""
        return bool(self.lessons())

    def needs_torch(self, lesson: str) -> bool:
        """Whether a lesson's own cells import torch."""
        return lesson in self._with_torch

    def lessons(self) -> tuple[str, ...]:
        """The names of the lessons that are here, in order; the index may know more, of which this hand-out has none."""
        return self._lessons

    def exercise_names(self) -> tuple[str, ...]:
        """Every exercise of the lessons that are here, in the course's order."""
        return tuple(exercise for name in self.lessons() for exercise in self.exercises[name])

    @cache
    def further(self, lesson: str) -> frozenset[str]:
        """The exercises of a lesson that are under a heading '## Further: …'; the others are its core."""
        return frozenset(_exercises_in([cell for cell in self.cells(lesson) if cell.further]))

    def core_exercises(self) -> tuple[str, ...]:
        """Every exercise that is of some lesson's core, in the course's order."""
        return tuple(name for name in self.exercise_names() if name not in self.further(self.lesson_of(name)))

    def lesson_of(self, exercise: str) -> str:
        """The lesson of an exercise. Raises: KeyError where no lesson that is here has one of that name."""
        for name in self.lessons():
            if exercise in self.exercises[name]:
                return name
        raise KeyError(exercise)

    def known_exercise(self, name: str) -> str:
        """The name itself. Raises: InputError, naming the nearest, where no lesson that is here has one of that name."""
        names = self.exercise_names()
        if name in names:
            return name
        near = did_you_mean(name, names, "the notebooks and every report name them.")
        raise InputError(f"there is no exercise {name[:200]!r}{near}")

    def next_exercise(self, exercise: str) -> str | None:
        """The exercise after this one in the course, None after the last. After one of the core, the next of the core."""
        names = self.exercise_names() if exercise in self.further(self.lesson_of(exercise)) else self.core_exercises()
        return next(iter(names[names.index(exercise) + 1 :]), None)

    @cache
    def lesson(self, name: str) -> Lesson:
        """The specification of a lesson, imported on demand. Raises: AuthorError for an author's slip, with file and line."""
        folder = self.folder(name)
        with IMPORT_LOCK:
            try:
                about = tomllib.loads((folder / "lesson.toml").read_text(encoding="utf-8"))
                exercises = tuple(self._specification(name, exercise) for exercise in _exercises_in(self.cells(name)))
                texts = tuple(dict.fromkeys(text for exercise in exercises for text in exercise.texts))
                return Lesson(name, exercises=exercises, texts=texts, course=self, **about)
            except AuthorError:
                raise
            except Exception as error:  # whatever an author's file may do
                raise AuthorError([author_slip(error, f"solutions/{name}/lesson.toml")]) from error

    def _specification(self, lesson: str, exercise: str) -> Exercise:
        path = self.folder(lesson) / "exercises" / f"{exercise}.py"
        if not path.is_file():
            sentence = f"the lesson has an exercise {exercise}, and no exercises/{exercise}.py specifies it."
            raise AuthorError([LintError(self.relative(self.source_path(lesson)), 0, sentence)])
        specification = getattr(self.module(f"{lesson}.exercises.{exercise}"), exercise, None)
        if not isinstance(specification, Exercise):
            sentence = f"`{exercise}` is a class under @exercise(…), as CONTRIBUTING shows."
            raise AuthorError([LintError(self.relative(path), 0, sentence)])
        return replace(specification, course=self, lesson=lesson, further=exercise in self.further(lesson))

    def exercise(self, name: str) -> Exercise:
        """The specification of an exercise. Raises: KeyError for an unknown name."""
        return next(exercise for exercise in self.lesson(self.lesson_of(name)).exercises if exercise.name == name)

    @cache
    def shared_texts(self) -> dict[str, MistakeText]:
        """The mistakes that several lessons share, by id: solutions/shared/mistakes/, and those that any exercise may hold."""
        has_own = (self.solutions / "shared" / "mistakes").is_dir()
        own = self.module("shared.mistakes").TEXTS if has_own else {}
        return {**own, **{text.id: text for text in outcome_texts.TEXTS if text.id not in own}}

    def mistake_text(self, id: str) -> MistakeText:
        """What is said of a mistake, also by a former id of it; lessons' own texts are found too. Raises: KeyError for an unknown id."""
        id = self.former_ids.get(id, id)
        if id not in self.shared_texts():
            own = (text for name in self.nearest_lessons() for text in self.lesson(name).texts if text.id == id)
            if text := next(own, None):
                return text
        return self.shared_texts()[id]

    def nearest_lessons(self) -> list[str]:
        """All lessons, those whose specifications have been imported first."""
        return sorted(self.lessons(), key=lambda name: f"{self.package}.{name}" not in sys.modules)

    def mistake_ids(self) -> tuple[str, ...]:
        """Every id that has a text, without former ones; imports all lessons. Raises: AuthorError for one that is used twice."""
        return tuple(index.mistake_texts(self, self.lessons()))

    # --- modules of the course ---------------------------------------------------------------

    def module(self, name: str) -> Any:
        """A module of solutions/, as `shared.figures.machine` or `05_numpy_to_pytorch.figures`."""
        return importlib.import_module(f"{self.package}.{name}")

    def figures(self, name: str) -> Any:
        """The figures of the lesson whose folder is called NN_name, or the module of shared/figures/ of that name.

        Raises: AttributeError where there are none.
        """
        for lesson in self.exercises:
            if lesson[3:] == name and (self.folder(lesson) / "figures.py").is_file():
                return self.module(f"{lesson}.figures")
        if (self.solutions / "shared" / "figures" / f"{name}.py").is_file():
            return self.module(f"shared.figures.{name}")
        raise AttributeError(
            f"{name} is not in this installation: this notebook belongs to another hand-out, or the name is mistyped."
        )

    @cache
    def probe_texts(self) -> dict[str, str]:
        """The text of every module of probes, by its dotted name: what a worker is given before any learner's code runs."""
        files = [path for name in ("shared", *self.lessons()) for path in sorted(self.folder(name).glob("probes*.py"))]
        return {f"{path.parent.name}.{path.stem}": path.read_text(encoding="utf-8") for path in files}

    # --- sources and notebooks ---------------------------------------------------------------

    def pristine(self, lesson: str) -> dict[str, Any]:
        """The learner's notebook of a lesson as the course means it: from the source, whatever was done to the file.

        Numbers that prose quotes from a run stand in it as the source has them: grading reads code alone.
        """
        return stubs.learner_notebook(self.cells(lesson), self.lesson(lesson), opening=self.opening(lesson))

    def handout_notebook(self, lesson: str, among: Sequence[str] | None = None) -> dict[str, Any]:
        """`pristine` as a learner reads it: quoted numbers filled in from the last build, links below it.

        among:  the lessons that lie beside it, by default all that are here.
        Raises: AuthorError where the lesson was not built since its prose quotes what it does.
        """
        values, links = self.quoted_values(lesson), self.nav_links(lesson, among)
        try:
            return stubs.learner_notebook(self.cells(lesson), self.lesson(lesson), values, links, self.opening(lesson))
        except percent.MissingValue as error:
            sentence = f"it has no value for {{{{ {error} }}}}; run `grader build {lesson[:2]}`."
            raise AuthorError([LintError(f"solutions/{lesson}.ipynb", 0, sentence)]) from None

    def opening(self, lesson: str) -> list[dict[str, Any]]:
        """The cells that say how to get the grader; none for a course that pip does not install with it."""
        if not self.own_package:
            return []
        return stubs.opening_cells(lesson, self.needs_torch(lesson), course_folder.address(self.root))

    def quoted_values(self, lesson: str) -> percent.QuotedValues:
        """The numbers that a lesson's prose quotes, as the last build stored them: (expression, value), in order."""
        if not any(percent.quotes(cell.text) for cell in self.cells(lesson) if cell.role == "prose"):
            return ()
        try:
            about = json.loads(self.solution_path(lesson).read_text(encoding="utf-8"))["metadata"]["grader"]
            return [(str(expression), str(value)) for expression, value in about.get("quoted", ())]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return ()

    def nav_links(self, lesson: str, among: Sequence[str] | None = None) -> str:
        """Markdown that leads to the lessons before and after, and to the glossary where there is one."""
        names = list(among or self.lessons())
        position = names.index(lesson) if lesson in names else 0
        before, after = names[max(position - 1, 0) : position], names[position + 1 : position + 2]
        links = [f"← [{self.heading(name)}]({name}.ipynb)" for name in before]
        links += [f"[Glossary]({GLOSSARY})"] * self.glossary_path.is_file()
        return " | ".join(links + [f"[{self.heading(name)}]({name}.ipynb) →" for name in after])

    def glossary(self, among: Sequence[str] | None = None) -> str:
        """The glossary with links to these lessons alone, by default to all that are here; '' where there is none."""
        names = set(among or self.lessons())
        page = text_of(self.glossary_path)
        return re.sub(r"\[([^]]*)\]\((\w+)\.ipynb\)", lambda link: link[0] if link[2] in names else link[1], page)

    # --- hand-outs and earlier versions ------------------------------------------------------

    def edition(self) -> str:
        """The installed version and the lessons that are here: '0.1.0+c4f1a90b2, lessons 00, 01'."""
        numbers = ", ".join(name[:2] for name in self.lessons()) or "none"
        return f"{metadata.version(course_folder.DISTRIBUTION)}, lessons {numbers}"

    def other_handout(self, lesson: str) -> str:
        """A sentence for what belongs to a lesson that this hand-out lacks; '' for every other lesson."""
        if lesson in self.lessons() or lesson not in self.exercises:
            return ""
        numbers = ", ".join(name[:2] for name in self.lessons())
        return (
            f"This notebook belongs to another hand-out: it is of lesson {lesson}, and the grader installed here knows "
            f"{numbers} alone. Use the environment of that hand-out, or ask for one that has both."
        )

    def current_name(self, lesson: str) -> str:
        """The name of a lesson as it is now, where a notebook may be of an earlier version."""
        return self.renamed.get(lesson, lesson)

    def former_names(self, lesson: str) -> tuple[str, ...]:
        """The names that a lesson had."""
        return tuple(old for old, new in self.renamed.items() if new == lesson)


def _exercises_in(cells: Sequence[percent.Cell]) -> list[str]:
    """The exercises of a source, in its order."""
    return [cell.exercise for cell in cells if cell.role == "exercise" and cell.exercise]

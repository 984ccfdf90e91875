"""A lesson of one exercise, as an author writes it, for testing what is built from a source."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

import jupytext

from grader.course import course
from grader.course.course import COURSE_ENV, Course
from grader.course.percent import FURTHER, Cell
from grader.course.spec import Case, Exercise, Lesson
from grader.notebook.kernel_course import kernel_course
from tests.mistakes import built

NAME = "01_small"
FILE = f"solutions/{NAME}/lesson.py"
BODY = '''# %% [markdown]
# # A small lesson
#
# **Before this lesson:** addition,
# and arrays.

# %% role="given"
import numpy as np

# %% role="demo" tags=["nbval-check-output"]
print(np.arange(3).sum())

# %% [markdown]
# @exercise double
#
# `x` (n,) → (n,)

# %% role="exercise" exercise="double"
def double(x):
    """Twice x. x: (n,)."""
    # region solution
    total = x + x
    return total
    # endregion

# %% role="check" exercise="double"
check(double)

# %% role="payoff" exercise="double"
if passed(double):
    print(double(np.ones(2)))
'''
END = """
# %% [markdown]
# ## What we keep
#
# One line.

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# To double.
#
# ## Cut for 60 minutes
#
# Nothing.
#
# ## Cut for 90 minutes
#
# Nothing either.
#
# ## Mistakes to expect
#
# - double TY1: What is 3 times 3,
#   and what twice 3?
# - double TY2: What is twice 0?
#
# ## To discuss
#
# Is one number an array?
#
# ## On paper
#
# Double 21. Solution: 42.
"""
SOURCE = BODY + END  # what a test adds stands between the two
# In the place of `import numpy as np`, where a notebook runs that has no grader.
PASSING = """import numpy as np
class Passes(str):
    __repr__ = str.__str__
check = passed = lambda answer: Passes("PASSED: double")"""


def build_double(*bugs: str):
    return lambda x: {"TY1": x * x, "TY2": x + 2, "TY3": 3 * x}[bugs[0]] if bugs else 2 * x


def cases(rng):
    yield Case("small", "two numbers", (rng.normal(size=2),), names=("x",))
    yield Case("again", "two others", (rng.normal(size=2),), names=("x",))
    for size in (3, 4, 5):
        yield Case(f"of {size}", "more", (rng.normal(size=size),), names=("x",))


EXERCISE = Exercise(
    "double",
    "Double each number.",
    1,
    3,
    cases,
    built(build_double, "TY1", "TY2", "TY3"),
    ("What is twice 1?", "Look at +.", "return ____ * x"),
    difficulty=1,
)
LESSON = Lesson(NAME, "A small lesson", "?", (EXERCISE,), outcome="double an array")


@cache
def cells(text: str = SOURCE) -> tuple[Cell, ...]:
    """The cells of a source, as course.cells gives them for a file."""
    heads = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith("# %%")]
    made, further = [], False
    for number, cell in enumerate(jupytext.reads(text, fmt="py:percent").cells):
        about = cell.metadata
        role = "prose" if cell.cell_type == "markdown" else about.get("role", "")
        if role == "prose" and cell.source.startswith("## "):
            further = cell.source.startswith(FURTHER)
        tags = tuple(about.get("tags", ()))
        made.append(Cell(role, cell.source, about.get("exercise", ""), tags, number, heads[number], further))
    return tuple(made)


def write(folder: Path, text: str = SOURCE) -> None:
    """The small lesson as a course of its own."""
    (folder / "notebooks").mkdir(exist_ok=True)
    lesson = folder / "solutions" / NAME
    (lesson / "exercises").mkdir(parents=True, exist_ok=True)
    (lesson / "lesson.py").write_text(text, encoding="utf-8")
    (lesson / "lesson.toml").write_text(f'title = "{LESSON.title}"\nquestion = "?"\noutcome = "{LESSON.outcome}"\n')
    (lesson / "exercises" / "double.py").write_text("from tests.small_lesson import EXERCISE as double\n")
    texts = "".join(
        f'    "{id}": MistakeText("{id}", "{id}", "{id}"),\n' for id in (f"TY{number}" for number in range(1, 10))
    )
    shared = folder / "solutions" / "shared" / "mistakes"
    shared.mkdir(parents=True, exist_ok=True)
    (shared / "__init__.py").write_text(f"from grader.course.spec import MistakeText\n\nTEXTS = {{\n{texts}}}\n")


def install(monkeypatch, folder: Path, text: str = SOURCE) -> Course:
    """Makes the small lesson the whole course, its files in `folder`, for the time of one test."""
    write(folder, text)
    monkeypatch.setenv(COURSE_ENV, str(folder))
    return reopened(folder)  # it may have been another text a moment ago


def reopened(folder: Path) -> Course:
    """The course of a folder whose files have changed."""
    importlib.invalidate_caches()
    kernel_course.cache_clear()
    course._courses.pop(folder.resolve(), None)
    return course.open_course(folder)

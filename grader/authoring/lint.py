"""Reads a lesson's source as an author wrote it and says what is wrong with it, by file and line."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from grader.authoring.lint_prose import proofread_prose
from grader.course.percent import HIDE_INPUT, Cell
from grader.course.spec import Lesson
from grader.course.stubs import BEGIN, END, TASK, task_name
from grader.util.errors import LintError

ROLES = ("prose", "given", "demo", "exercise", "check", "payoff")
WITH_EXERCISE = ("exercise", "check", "payoff")
MOST_FOLDED = 70  # letters of the first line of a folded cell, which Jupyter shows and does not wrap


def proofread(file: str, cells: Sequence[Cell], lesson: Lesson) -> list[LintError]:
    """Everything wrong with a lesson's source, in the order of the file."""
    names = [exercise.name for exercise in lesson.exercises]
    problems = [problem for cell in cells for problem in _of_one(file, cell, names)]
    problems += [*_of_all(file, cells, names), *proofread_prose(file, cells, lesson)]
    return sorted(problems, key=lambda problem: problem.line)


def _of_one(file: str, cell: Cell, names: Sequence[str]) -> Iterator[LintError]:
    def problem(sentence: str, line: int = 0) -> LintError:
        return LintError(file, cell.line + line, sentence)

    if cell.role == "prose":
        head = cell.text.split("\n", 1)[0]
        if head.startswith(TASK) and task_name(cell.text) not in names:
            yield problem(
                f"'{head}' is not an exercise of this lesson{_nearest(head.removeprefix(TASK).strip(), names)}."
            )
        return
    if not cell.role:
        yield problem(f'a code cell needs a role: # %% role="…" with one of {", ".join(ROLES[1:])}.')
    elif cell.role not in ROLES:
        yield problem(f"there is no role {cell.role!r}{_nearest(cell.role, ROLES[1:])}.")
    elif cell.role in WITH_EXERCISE and not cell.exercise:
        yield problem(f'a cell of role {cell.role!r} needs exercise="…", the name of its exercise.')
    elif cell.exercise and cell.exercise not in names:
        yield problem(f"{cell.exercise!r} is not an exercise of this lesson{_nearest(cell.exercise, names)}.")
    else:
        yield from _of_code(problem, cell)


def _of_code(problem, cell: Cell) -> Iterator[LintError]:
    try:
        ast.parse(cell.text)
    except SyntaxError as error:
        yield problem(f"this cell is not Python: {error.msg}.", error.lineno or 0)
        return
    yield from _of_regions(problem, cell)
    for number, line in enumerate(cell.text.splitlines(), 1):
        if "# fmt:" in line or "# noqa" in line:
            yield problem("this mark is for a formatter, but learners would see it: remove it.", number)
    first = cell.text.split("\n", 1)[0]
    if HIDE_INPUT in cell.tags and len(first) > MOST_FOLDED:
        yield problem(
            f"the first line of a folded cell has {len(first)} letters, and {MOST_FOLDED} are the most: a narrow window "
            "would scroll sideways. Split it, or put a comment that says what the cell does in front.",
            1,
        )
    name, text = cell.exercise, cell.text.strip()
    if cell.role == "check" and text not in (f"check({name})", f'check("{name}", {name})'):
        yield problem(
            f'a check cell contains check({name}), or check("{name}", {name}) for an answer, and nothing else.', 1
        )
    begins = next((line for line in text.splitlines() if not line.startswith("#")), "")  # a comment may stand in front
    if cell.role == "payoff" and "if passed(" not in begins:
        yield problem(
            f"a payoff cell begins with 'if passed({name}):', so that an unsolved lesson still runs to the end.", 1
        )


def _of_regions(problem, cell: Cell) -> Iterator[LintError]:
    opened, regions = 0, 0
    for number, line in enumerate(map(str.strip, cell.text.splitlines()), 1):
        if line.startswith(BEGIN):
            if opened:
                yield problem(
                    "a solution region begins inside another one; close the first with '# endregion'.", number
                )
            opened, regions = number, regions + 1
        elif line == END:
            if not opened:
                yield problem("'# endregion' closes no region.", number)
            opened = 0
        elif line.startswith(("# region", END)):
            yield problem(f"regions are marked '{BEGIN}' and '{END}'; this line says {line!r}.", number)
    if opened:
        yield problem("this solution region is never closed with '# endregion'.", opened)
    if cell.role == "exercise" and not regions:
        yield problem(f"the exercise cell of {cell.exercise} has no '{BEGIN}': learners would see its solution.")
    if cell.role != "exercise" and regions:
        yield problem(f"only an exercise cell has a solution region; this one's role is {cell.role!r}.")


def _of_all(file: str, cells: Sequence[Cell], names: Sequence[str]) -> Iterator[LintError]:
    for name in names:
        own = [cell for cell in cells if cell.exercise == name and cell.role == "exercise"]
        tasks = [cell for cell in cells if cell.role == "prose" and task_name(cell.text) == name]
        checks = [cell for cell in cells if cell.exercise == name and cell.role == "check"]
        for found, what in ((own, "exercise cell"), (tasks, f"task ('{TASK} {name}')"), (checks, "check cell")):
            if not found:
                yield LintError(file, 0, f"the specification has {name}, but the source has no {what} for it.")
            for extra in found[1:]:
                yield LintError(file, extra.line, f"a second {what} for {name}; the first is in line {found[0].line}.")
        if own and tasks and not tasks[0].number < own[0].number:
            yield LintError(file, tasks[0].line, f"the task of {name} comes after its exercise cell.")
        if own and checks and not own[0].number < checks[0].number:
            yield LintError(file, checks[0].line, f"the check of {name} comes before its exercise cell.")


def _nearest(name: str, names: Sequence[str]) -> str:
    found = get_close_matches(name, names, 1)
    return f"; did you mean {found[0]!r}" if found else f" (there are {', '.join(names)})"

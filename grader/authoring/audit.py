"""Proves that lessons keep the course's rules: what a maintainer would otherwise have to believe.

For every exercise: its solution passes, its untouched stub is 'not started', each mistake is rejected and named;
its cases differ in size and repeat a shape with new numbers; it has points, minutes, three hints and three
mistakes; and no solution is left in the learner's notebook.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from grader.authoring.build import check_source
from grader.course import percent, references
from grader.course.course import Course
from grader.course.patches import Patch, apply_edits
from grader.course.spec import SEED, Case, Exercise, Lesson, Mistake
from grader.course.stubs import BEGIN, SOLUTION, learner_notebook, stub_text
from grader.judging.baseline import baseline_of
from grader.judging.candidate import LiveObject
from grader.judging.compare import PROOF
from grader.judging.evidence import arrays
from grader.judging.judge import judge
from grader.judging.wording import named_inputs
from grader.util.errors import AuthorError
from grader.util.libraries import explain_error, require
from grader.util.words import pluralize
from grader.worker.observe import failure_from, observe, same_random_state
from grader.worker.values import Failure, Observation, Tensor

MIN_MISTAKES, MEAN_MISTAKES = 3, 6  # of one exercise; on average over the course, as advice
MIN_GIVEAWAY = 12  # characters from which a solution's text, met elsewhere, gives it away


class Row(NamedTuple):
    """What was counted of one exercise. diagnoses: mistakes that were rejected and named."""

    exercise: Exercise
    cases: int
    mistakes: int
    diagnoses: int


@dataclass
class Findings:
    """problems: broken rules, one sentence each, beginning with where; left_out: what was not examined, and why, likewise."""

    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.problems


def audit(course: Course, names: Sequence[str]) -> Findings:
    """Examines the lessons of those names, one after the other."""
    findings = Findings()
    for name in names:
        try:
            check_source(course, name)
        except AuthorError as error:
            findings.problems += map(str, error.problems)
            continue
        lesson = course.lesson(name)
        stubs = _stubs(course.cells(name), lesson)
        if not lesson.outcome:
            findings.problems.append(f"{name}: its outcome is missing: what learners can do after the lesson.")
        findings.problems += _solution_leaks(course, name)
        for exercise in lesson.exercises:
            try:
                require(*exercise.libraries)
                _examine(findings, exercise, stubs[exercise.name])
            except AuthorError as error:
                findings.problems += map(str, error.problems)
            except ModuleNotFoundError as error:
                findings.left_out.append(f"{name}, {exercise.name}: {explain_error(error)}")
    return findings


def render(findings: Findings) -> str:
    """A table with a line for each exercise, then every broken rule."""
    table: list[tuple[object, ...]] = [("exercise", "points", "minutes", "cases", "mistakes", "named")]
    for lesson, rows in groupby(findings.rows, lambda row: row.exercise.lesson):
        table.append((lesson,))
        table += [(f"  {exercise.name}", exercise.points, exercise.minutes, *counts) for exercise, *counts in rows]
    width = max(len(str(first)) for first, *_ in table)
    lines = [f"{first:<{width}}" + "".join(f"{number:>10}" for number in numbers) for first, *numbers in table]
    mistakes = sum(row.mistakes for row in findings.rows)
    mean = mistakes / max(len(findings.rows), 1)
    advice = f"; {MEAN_MISTAKES} on average are advised." if mean < MEAN_MISTAKES else "."
    lines += ["", f"{pluralize(len(findings.rows), 'exercise')}, {mistakes} mistakes, {mean:.1f} per exercise{advice}"]
    lines += [f"left out: {sentence}" for sentence in findings.left_out]
    lines += [f"broken: {problem}" for problem in findings.problems] or ["Every rule is kept."]
    return "\n".join(line.rstrip() for line in lines)


def _examine(findings: Findings, exercise: Exercise, stub: LiveObject) -> None:
    def report(sentence: str) -> None:
        findings.problems.append(f"{exercise.lesson}, {exercise.name}: {sentence}")

    verdict = judge(exercise, LiveObject(references.reference(exercise)))
    if not verdict.passed:
        report(f"its solution does not pass. {verdict.headline} {verdict.experiment}")
    verdict = judge(exercise, stub)
    if verdict.status != "not_started":
        report(f"its untouched stub is {verdict.status!r}, not 'not_started'. {verdict.headline}")
    cases = tuple(exercise.cases(np.random.default_rng(SEED)))
    for sentence in (*_patches(exercise), *_rules(exercise, cases)):
        report(sentence)
    catalogue, named_ids = set(exercise.course.mistake_ids()), set()
    for number, mistake, observations in _observe_mistakes(exercise):
        without_text = [id for id in mistake.id.split("+") if id not in catalogue]
        for id in without_text:
            report(f"mistake {id} has no text.")
        if without_text:
            continue
        candidate: Any = SimpleNamespace(problem=None, sources=None, observe_all=lambda _, result=observations: result)
        verdict = judge(exercise, candidate)
        if verdict.passed:
            report(f"mistake {mistake.id} passes.")
        elif mistake.id not in verdict.mistakes:
            proofs = baseline_of(exercise, SEED).runs.proofs(number)
            shortage = f" Only {pluralize(proofs, 'case')} of {PROOF} that prove it." if proofs < PROOF else ""
            others = f" Named: {', '.join(verdict.mistakes)}." if verdict.mistakes else ""
            report(f"mistake {mistake.id} is rejected but not named: {verdict.headline}{others}{shortage}")
        else:
            named_ids.add(mistake.id)
            expected = {id for pair in exercise.indistinguishable if mistake.id in pair for id in pair}
            single = {id for id in verdict.mistakes if "+" not in id} if "+" not in mistake.id else set()
            for other in sorted(single - {mistake.id} - expected):
                report(f"mistake {mistake.id} gives the same results as {other}; add a case that tells them apart.")
    ids = {mistake.id for mistake in exercise.mistakes}
    findings.rows.append(Row(exercise, len(cases), len(ids), len(named_ids & ids)))


def _observe_mistakes(exercise: Exercise) -> list[tuple[int, Mistake, Sequence[Observation]]]:
    """(place in the list, mistake, what it shows on every case) of each; it is kept for the diagnosis, which runs none of them again."""
    baseline = baseline_of(exercise, SEED)
    # Whether a mistake runs something forbidden, one case tells. Operations are counted, and sizes looked at, in some case or in each.
    cases = [
        watched if index == 0 or exercise.requires or {"table", "tiles"} & watched.options.keys() else plain
        for index, (watched, plain) in enumerate(zip(baseline.cases, baseline.runs.cases, strict=True))
    ]
    results: list[tuple[int, Mistake, Sequence[Observation]]] = []
    for number, mistake in enumerate(exercise.mistakes):
        try:
            wrong = references.wrong(exercise, mistake)
        except AuthorError:
            continue  # among what _patches says
        with same_random_state():
            observations = tuple(observe(wrong, case, trusted=True) for case in cases)
        baseline.runs.keep(number, observations)
        results.append((number, mistake, observations))
    return results


def _patches(exercise: Exercise) -> Iterator[str]:
    """What is wrong with the patches: one that does not apply, one that changes nothing, and one that equals another."""
    origins = {_code(references.normal_forms(exercise)[exercise.name]): "the solution itself"}
    for mistake in exercise.mistakes:
        if not isinstance(mistake.wrong, Patch):
            continue
        try:
            texts = apply_edits(references.edits_of(exercise, mistake.wrong), references.normal_forms(exercise))
        except AuthorError as error:
            yield f"{mistake.id}: {error}"
            continue
        text = "\n".join(map(_code, texts.values()))
        if text in origins:
            yield f"the patch of mistake {mistake.id} produces the same code as {origins[text]}."
        origins[text] = f"the patch of mistake {mistake.id}"


def _code(text: str) -> str:
    return ast.dump(ast.parse(text))


def _rules(exercise: Exercise, cases: Sequence[Case]) -> Iterator[str]:
    if exercise.points < 1 or exercise.minutes < 1:
        yield f"it has {exercise.points} points and {exercise.minutes} minutes; both must be at least 1."
    if exercise.difficulty not in (1, 2, 3):
        yield f"its difficulty is {exercise.difficulty}; it must be 1, 2 or 3."
    if len(exercise.hints) != 3 or not all(hint.strip() for hint in exercise.hints):
        yield "it needs three hints: a question, where to look, code with a blank."
    elif "____" not in exercise.hints[2]:
        yield "its third hint has no blank '____' to fill in."
    if not exercise.forbids and any("." in case.probe for case in cases):
        yield 'it has a probe and forbids nothing; with forbids=("tampering",) no answer replaces what looks at it.'
    if len({mistake.id for mistake in exercise.mistakes}) < MIN_MISTAKES:
        yield f"it has fewer than {MIN_MISTAKES} mistakes."
    if not exercise.task.strip().endswith("."):
        yield "its task must be one sentence that ends with a period."
    keys = [case.key for case in cases]
    for key in sorted({key for key in keys if keys.count(key) > 1}):
        yield f"two of its cases are called {key!r}."
    if exercise.kind != "answer":
        named_cases = baseline_of(exercise, SEED).cases  # with the parameters' names
        if not any(_sizes_differ(exercise, case) for case in named_cases if case.stage == "values"):
            yield "in each of its cases two sizes are equal, so code that confuses them could pass."
        if not _repeats_a_shape(cases):
            yield "no two of its cases have the same shapes but different numbers, so a cached result could pass."


def _sizes_differ(exercise: Exercise, case: Case) -> bool:
    """Whether all sizes that the reference's docstring names differ in this case.

    Where it names none, the sizes of each input array are to differ among themselves; where there is no array,
    the whole numbers.
    """
    shapes = {name: array.shape for name, array in arrays(named_inputs(case)) if array.ndim}
    reference = references.reference(exercise)
    places = (reference, getattr(reference, "forward", None), getattr(reference, "__init__", None))
    docstrings = " ".join(getattr(place, "__doc__", None) or "" for place in places)
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        sizes |= _named_sizes(docstrings, name, shape)
    if sizes:
        return len(set(sizes.values())) == len(sizes)
    if not shapes:
        numbers = [value for value in (*case.args, *case.kwargs.values()) if type(value) is int]
        return len(set(numbers)) == len(numbers)
    return all(len(set(shape)) == len(shape) for shape in shapes.values())


def _named_sizes(docstrings: str, parameter: str, shape: tuple[int, ...]) -> dict[str, int]:
    """The sizes of an array by the names that a docstring gives them, as in 'q: (B, T_q, d_k)'; '...' and plain numbers bind nothing.

    {} where it gives none, or where the shape does not fit.
    """
    match = re.search(rf"\b{re.escape(parameter)}\b[^().]{{0,30}}\(([^()]*)\)", docstrings)
    symbols = [part.strip() for part in match[1].split(",") if part.strip()] if match else []
    names = [symbol for symbol in symbols if symbol != "..."]
    if len(names) > len(shape) or (len(names) < len(shape) and "..." not in symbols):
        return {}
    tail = shape[len(shape) - len(names) :]
    return {symbol: size for symbol, size in zip(names, tail, strict=True) if symbol.isidentifier()}


def _repeats_a_shape(cases: Sequence[Case]) -> bool:
    numbers_of: dict[str, set[str]] = {}
    for case in cases:
        if not case.raises:
            inputs = (case.probe, case.args, case.kwargs, case.options)
            numbers_of.setdefault(_form(inputs), set()).add(json.dumps(inputs, sort_keys=True, default=_numbers))
    return any(len(numbers) > 1 for numbers in numbers_of.values())


def _form(value: Any) -> str:
    """The shapes and types of inputs, without their numbers."""
    if isinstance(value, Tensor):
        return f"{value.dtype} {_form(value.array)}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}"
    if isinstance(value, Mapping):
        return str([(key, _form(item)) for key, item in sorted(value.items())])
    if isinstance(value, (tuple, list)):
        return str(list(map(_form, value)))
    return type(value).__name__


def _numbers(value: Any) -> Any:
    """What JSON has for an array; a callable or a generator tells nothing."""
    if isinstance(value, Tensor):
        return value.array
    return value.tobytes().hex() if isinstance(value, np.ndarray) else None


def _stubs(cells: Sequence[percent.Cell], lesson: Lesson) -> dict[str, LiveObject]:
    """What an untouched notebook defines for each exercise, by running its given cells and its stubs."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    problems: dict[str, Failure] = {}
    for cell in cells:
        if cell.role in ("given", "exercise"):
            text = stub_text(cell.text, cell.exercise)
            try:
                exec(compile(text, f"<stub {lesson.name} cell {cell.number}>", "exec"), namespace)
            except Exception as error:
                problems[cell.exercise] = failure_from(error)
    names = [exercise.name for exercise in lesson.exercises]
    return {name: LiveObject(namespace.get(name), problems.get(name)) for name in names}


def _solution_leaks(course: Course, name: str) -> Iterator[str]:
    """Where the learner's notebook, as built and as it lies on disk, still holds a solution."""
    notebooks = [learner_notebook(course.cells(name), course.lesson(name))]
    if course.notebook_path(name).is_file():
        notebooks.append(json.loads(course.notebook_path(name).read_text(encoding="utf-8")))
    texts = {"".join(cell["source"]) for notebook in notebooks for cell in notebook["cells"]}
    for text in sorted(texts):
        if BEGIN in text:
            yield f"{name}: a marker of a solution region is left in the learner's notebook: {text[:60]!r}."
    for cell in (cell for cell in course.cells(name) if cell.role == "exercise"):
        for region in SOLUTION.finditer(cell.text):
            solution = _stripped_lines(region["solution"])
            if len(solution.strip()) >= MIN_GIVEAWAY and any(solution in _stripped_lines(text) for text in texts):
                first = solution.split("\n")[1]
                yield f"{name}, {cell.exercise}: the learner's notebook holds its solution: {first!r}."


def _stripped_lines(text: str) -> str:
    """The text's lines without their indents, between line breaks: whole lines are compared."""
    return "\n" + "".join(f"{line.strip()}\n" for line in text.strip().splitlines())

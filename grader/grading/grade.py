"""Grades submissions: plans what to run, runs it in a sandbox, has it judged, and reports."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.course.course import IMPORT_LOCK, Course
from grader.course.spec import SEED, Exercise
from grader.grading.deadline import Deadline
from grader.grading.follow_through import followed
from grader.judging.verdict import LessonReport, Report, SubmissionReport, Verdict
from grader.sandbox.reader import Reader, SourcesApart
from grader.sandbox.sandbox import TIMEOUT_S, Sandbox, SandboxError
from grader.source import requirements
from grader.submission.submission import Plan, Submission, lesson_of_name, nothing_handed_in, read_submission
from grader.util import lacking
from grader.util.names import of_learner
from grader.worker.values import Failure, Observation

ENVIRONMENT = "environment"  # the stage of what could not be graded because this machine lacks something
MAX_TEXT = 20_000  # characters of one verdict: a learner's messages are part of it

__all__ = ["grade", "grade_submission", "ours"]


def grade_submission(
    course: Course,
    path: str | Path | Submission,
    *,
    name: str | None = None,
    lessons: Sequence[str] | None = None,
    exercises: Sequence[str] | None = None,
    seed: int | None = None,
    timeout_s: float = TIMEOUT_S,
    sandbox: Sandbox | None = None,
    deadline: Deadline | None = None,
    done: Callable[[SubmissionReport], None] = lambda report: None,
    follow_through: float = 0,
) -> SubmissionReport:
    """The report on one learner's notebook or folder of notebooks, or on what was read of it.

    name:    the learner's; by default the path's.
    lessons: names or numbers ('01'); by default those that the notebooks belong to.
    exercises: only these of the lessons' count; by default all.
    seed:    of the inputs; by default the course's, which check() uses too.
    sandbox: one to use again; by default one with `timeout_s` is made for this submission.
    deadline: of the whole run; by default there is none. done: called after each lesson but the last, with the lessons so far.
    follow_through: the share of its points that an exercise earns which only another failing one was in the way of.
    Raises:  SubmissionError where the path or a lesson's name is wrong, and for nothing else that a
             submission holds. What the grader itself could not do is a verdict 'could_not_grade'.
    """
    with ExitStack() as stack:
        reader = sandbox.reader if sandbox is not None else stack.enter_context(Reader())
        if isinstance(path, Submission):
            submission = path
        else:
            try:
                submission = read_submission(course, path, name, lessons, reader)
            except SandboxError as error:
                lessons = lessons or lesson_of_name(course, Path(path)).split() or None
                unread = nothing_handed_in(course, name or of_learner(Path(path).stem), str(path), lessons)
                return all_ours(course, unread.name, unread.path, unread.lessons, exercises, _words(error))
        torch = _needs_torch(course, submission)
        if sandbox is None:
            sandbox = stack.enter_context(Sandbox(timeout_s, torch=torch, reader=reader, probes=course.probe_texts()))
        elif torch:
            sandbox.need_torch()
        if any(map(course.needs_torch, submission.lessons)) and lacking.installed("torch"):
            # While the sandbox's processes do: judging would begin when both had. An import that fails is told where torch is used.
            with IMPORT_LOCK, suppress(Exception):
                importlib.import_module("torch")
        stack.callback(sandbox.end_submission)
        stack.callback(reader.end)
        seed = SEED if seed is None else seed
        sandbox.begin_submission(
            sum(len(exercises_that_count(course, lesson, exercises)) for lesson in submission.lessons)
        )
        reports: list[LessonReport] = []
        for lesson in submission.lessons:
            if reports:
                done(_so_far(submission, reports))
            names = exercises_that_count(course, lesson, exercises)
            reports.append(
                _grade_lesson(course, submission, lesson, names, sandbox, seed, deadline or Deadline(), follow_through)
            )
    return SubmissionReport(
        submission.name, submission.path, tuple(reports), submission.message, tuple(submission.attention)
    )


def _so_far(submission: Submission, reports: Sequence[LessonReport]) -> SubmissionReport:
    left = ", ".join(name[:2] for name in submission.lessons[len(reports) :])
    told = f"{submission.message} Lessons that are not graded yet: {left}.".strip()
    return SubmissionReport(submission.name, submission.path, tuple(reports), told)


def grade(
    course: Course,
    paths: Iterable[str | Path],
    *,
    lessons: Sequence[str] | None = None,
    exercises: Sequence[str] | None = None,
    seed: int | None = None,
    timeout_s: float = TIMEOUT_S,
    begun: Callable[[str], None] = lambda path: None,
    require: str = "process",
    deadline_s: float | None = None,
    done: Callable[[Report], None] = lambda report: None,
) -> Report:
    """The report on several submissions, one after another.

    begun:   called with each path before it is graded.
    require: the least isolation to grade with, 'process' or 'full'.
    deadline_s: seconds for all of it; an exercise that is not reached by then is not tried, see deadline.py.
    done:    called after each lesson but the last, with all that is graded so far.
    Raises:  SubmissionError, and TooOpen where less isolation holds, before it grades any.
    """
    paths, deadline = list(paths), Deadline(deadline_s)
    with ExitStack() as stack:
        reader = stack.enter_context(Reader())
        torch = any(_read_needs_torch(course, path, lessons, reader) for path in paths)
        sandbox = stack.enter_context(
            Sandbox(timeout_s, torch=torch, require=require, reader=reader, probes=course.probe_texts())
        )
        if require != "process":
            sandbox.verify()
        reports: list[SubmissionReport] = []

        def report(*more: SubmissionReport) -> Report:
            submissions, drawn = (*reports, *more), SEED if seed is None else seed
            return Report(submissions, drawn, isolation=sandbox.isolation, course=course.title)

        for path in paths:
            begun(str(path))
            reports.append(
                grade_submission(
                    course,
                    path,
                    lessons=lessons,
                    exercises=exercises,
                    seed=seed,
                    sandbox=sandbox,
                    deadline=deadline,
                    done=lambda one: done(report(one)),
                )
            )
        return report()


def _needs_torch(course: Course, submission: Submission) -> bool:
    return submission.mentions_torch or any(map(course.needs_torch, submission.lessons))


def _read_needs_torch(course: Course, path: str | Path, lessons: Sequence[str] | None, reader: Reader) -> bool:
    try:
        return _needs_torch(course, read_submission(course, path, None, lessons, reader))
    except SandboxError:  # its report tells
        return False


@dataclass(frozen=True)
class _Absent:
    """A candidate for which nothing was handed in, so that no process is needed."""

    name: str
    problem: Failure
    sources: None = None

    def observe_all(self, cases: Sequence[object]) -> list[Observation]:
        return [Observation(failure=self.problem)]


def exercises_that_count(course: Course, lesson: str, exercises: Sequence[str] | None) -> tuple[str, ...]:
    """The exercises of a lesson that count: all, or those named."""
    return tuple(name for name in course.exercises[lesson] if exercises is None or name in exercises)


def _grade_lesson(
    course: Course,
    submission: Submission,
    lesson: str,
    names: Sequence[str],
    sandbox: Sandbox,
    seed: int,
    deadline: Deadline,
    follow_through: float,
) -> LessonReport:
    try:
        exercises = {exercise.name: exercise for exercise in course.lesson(lesson).exercises}
        points = {name: exercises[name].points for name in names}
        needed = {"torch"} if course.needs_torch(lesson) else set()
        needed |= {module for name in names for module in exercises[name].needs}
        for module in sorted(needed):
            if not lacking.installed(module):
                return LessonReport(lesson, tuple(ours(name, lacking.sentence(module)) for name in names), points)
        if deadline.over:
            return LessonReport(lesson, tuple(map(deadline.verdict, names)), points)
        plan = submission.plan(lesson)
        code = {name: plan.cells[at].text for name, at in plan.owners.items() if name in names}
        candidates = _candidates(course, plan, sandbox, exercises)
    except Exception as error:
        return LessonReport(lesson, tuple(ours(name, _words(error)) for name in names), dict.fromkeys(names, 0))
    verdicts = _with_causes([_verdict(exercises[name], candidates[name], seed, deadline) for name in names], candidates)
    verdicts = tuple(_unless_it_lacks(verdict, plan) for verdict in verdicts)
    notes = plan.notes + (sandbox.notes if plan.own_texts else ())
    through = {}
    if follow_through:

        def passes(other: Plan, name: str) -> bool:
            again = _candidates(course, other, sandbox, exercises)
            return _verdict(exercises[name], again[name], seed, deadline).passed

        sources = {name: candidate.sources for name, candidate in candidates.items()}
        others = followed(course, plan, verdicts, sources, passes)
        through = {name: (theirs, follow_through) for name, theirs in others.items()}
    code = {name: text[:MAX_TEXT] for name, text in code.items()}
    return LessonReport(lesson, verdicts, points, notes, code=code, through=through)


def _candidates(course: Course, plan: Plan, sandbox: Sandbox, exercises: Mapping[str, Exercise]) -> Mapping[str, Any]:
    if plan.own_texts:
        rules = {name: (exercises[name].forbids, exercises[name].requires) for name in plan.exercises}
        return sandbox.candidates(plan, SourcesApart(sandbox.reader, plan.own_texts, rules, course.given_names))
    return {name: _Absent(name, plan.missing(name)) for name in plan.exercises}


def _with_causes(verdicts: Sequence[Verdict], candidates: Mapping[str, Any]) -> tuple[Verdict, ...]:
    """Each begins with another exercise that it calls, where that one's failure explains it."""
    from grader.judging.judge import blame_callee

    others = {verdict.exercise: verdict for verdict in verdicts}
    return tuple(blame_callee(verdict, candidates[verdict.exercise].sources, others) for verdict in verdicts)


def _verdict(exercise: Exercise, candidate: Any, seed: int, deadline: Deadline) -> Verdict:
    from grader.judging.judge import judge

    if deadline.over:
        return deadline.verdict(exercise.name)
    try:
        return limited(deadline.timed(lambda: judge(exercise, candidate, seed)))
    except Exception as error:  # ours, never the learner's: the other exercises go on
        return ours(exercise.name, _words(error))


def _unless_it_lacks(verdict: Verdict, plan: Plan) -> Verdict:
    """An error in code that needs what this machine lacks is not the learner's."""
    owner = plan.owners.get(verdict.exercise)
    cell = plan.cells[owner] if owner is not None else None
    if verdict.status != "error" or cell is None or not cell.requires:
        return verdict
    headline = f"{verdict.exercise} could not be graded here: {cell.label} {requirements.reason(cell.requires)}."
    return Verdict(
        verdict.exercise, "could_not_grade", headline, stage=ENVIRONMENT, details=(requirements.advice(cell.requires),)
    )


def ours(name: str, why: str) -> Verdict:
    """The verdict on an exercise where the grader itself failed."""
    headline = f"{name} could not be graded; this is the grader's failure, not the notebook's."
    return Verdict(name, "could_not_grade", headline, details=(why[:2000],))


def all_ours(
    course: Course,
    name: str,
    path: str,
    lessons: Sequence[str],
    exercises: Sequence[str] | None,
    why: str,
    notes: tuple[str, ...] = (),
) -> SubmissionReport:
    """The report on a submission of which the grader could do nothing."""
    reports: list[LessonReport] = []
    for lesson in lessons:
        judged = tuple(ours(exercise, why) for exercise in exercises_that_count(course, lesson, exercises))
        points = {verdict.exercise: course.exercise(verdict.exercise).points for verdict in judged}
        reports.append(LessonReport(lesson, judged, points, notes if not reports else ()))
    return SubmissionReport(name, path, tuple(reports))


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def limited(verdict: Verdict, most: int = MAX_TEXT) -> Verdict:
    """The verdict with at most that many characters of text; what is cut ends in '…'."""
    left = most

    def cut(text: str) -> str:
        nonlocal left
        kept = text if len(text) <= left else text[: max(left - 1, 0)] + "…" * (left > 0)
        left -= len(kept)
        return kept

    line = verdict.line and replace(verdict.line, text=cut(verdict.line.text), function=cut(verdict.line.function))
    single: dict[str, Any] = {
        key: cut(getattr(verdict, key)) for key in ("headline", "slip", "experiment", "look", "printed")
    }
    several: dict[str, Any] = {
        key: tuple(cut(text) for text in getattr(verdict, key))
        for key in ("sentences", "verified", "details", "warned")
    }
    return replace(verdict, **single, **several, line=line)

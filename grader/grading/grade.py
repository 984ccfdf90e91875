"""Grades submissions: plans what to run, runs it in a sandbox, has it judged, and reports."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from grader.course import references
from grader.course.course import IMPORT_LOCK, Course
from grader.course.spec import SEED, Exercise
from grader.judging.judge import blame_callee, judge
from grader.judging.verdict import FAILING, Verdict
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.sandbox.isolation import SandboxError
from grader.sandbox.reader import Reader, RemoteSources
from grader.sandbox.sandbox import TIMEOUT_S, Sandbox
from grader.source import requirements
from grader.submission.lesson_recognition import lesson_of_name
from grader.submission.plan import Plan, RunCell
from grader.submission.submission import Submission, check_path, empty_submission, read_submission
from grader.util import libraries
from grader.util.names import learner_name

ENVIRONMENT = "environment"  # the stage of what could not be graded because this machine lacks something
MAX_TEXT = 20_000  # characters of one verdict: a learner's messages are part of it


@dataclass(frozen=True)
class Settings:
    """What submissions are graded with.

    lessons: names or numbers ('01'); None for those of each one's notebooks. exercises: only these of them; None for all. seed: of the
    inputs; by default the course's, which check() uses too. timeout_s: of each exercise and each cell. require: the least isolation to
    grade with, 'process' or 'full'. follow_through: the share of its points that an exercise earns which only another failing one was in
    the way of.
    """

    course: Course
    lessons: tuple[str, ...] | None = None
    exercises: tuple[str, ...] | None = None
    seed: int = SEED
    timeout_s: float = TIMEOUT_S
    require: str = "process"
    follow_through: float | None = None
    seed_per_learner: bool = False

    def seed_of(self, key: str) -> int:
        """Of a learner's inputs: the same for everybody, or each one's own, which nobody knows who knows not the seed."""
        digest = sha256(f"{self.seed} {key}".encode()).digest()[:4]
        return int.from_bytes(digest) if self.seed_per_learner else self.seed

    @property
    def torch(self) -> bool:
        return any(map(self.course.needs_torch, self.lessons or ()))

    def sandbox(self, **options: Any) -> Sandbox:
        """One to grade with. options: as Sandbox takes them."""
        return Sandbox(self.timeout_s, require=self.require, probes=self.course.probe_texts(), **options)

    def exercises_of(self, lesson: str) -> tuple[str, ...]:
        """The exercises of a lesson that count."""
        return tuple(name for name in self.course.exercises[lesson] if self.exercises is None or name in self.exercises)


class Deadline:
    """The end of a whole run: a service that stops a run at its limit is never met with nothing to show.

    seconds: of the run, from now; None: without end. Asked before each exercise; one that has begun is not cut short. An exercise that
    the run does not reach is the learner's result only where exercises that do not end used up the time. Where the machine was slow it
    could not be graded.
    """

    def __init__(self, seconds: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._seconds = seconds
        self._endless = 0.0

    @property
    def is_over(self) -> bool:
        return self._seconds is not None and self._clock() - self._start >= self._seconds

    def note(self, verdict: Verdict) -> Verdict:
        """The verdict; how long one took that did not end is kept."""
        self._endless += verdict.seconds * (verdict.status == "timeout")
        return verdict

    def verdict(self, name: str) -> Verdict:
        """On an exercise that was not reached."""
        spent, endless = self._clock() - self._start, self._endless
        if endless >= spent / 2:
            headline = f"{name} was not reached: exercises that do not end used {endless:.0f} of the {spent:.0f} s of this run."
            next_step = "First fix the exercises that ran out of time; then this one can be tried."
            return Verdict(name, "timeout", headline, "runs", next_step=next_step)
        cause = f"This run may take {self._seconds:g} s. It took {spent:.0f} s so far, {endless:.0f} s of it for exercises that do not end."
        headline = f"{name} could not be graded; the machine was too slow for the time limit of this run."
        return Verdict(name, "could_not_grade", headline, details=(cause,))


def grade_submission(
    settings: Settings,
    path: str | Path | Submission,
    *,
    name: str | None = None,
    sandbox: Sandbox | None = None,
    deadline: Deadline | None = None,
    on_progress: Callable[[SubmissionReport], None] = lambda report: None,
) -> SubmissionReport:
    """The report on one learner's notebook or folder of notebooks, or on what was read of it.

    name:    the learner's; by default the path's.
    sandbox: one to use again; by default one is made for this submission.
    deadline: of the whole run; by default there is none.
    on_progress: called after each lesson but the last, with the lessons so far.
    Raises:  InputError where the path or a lesson's name is wrong, and for nothing else that a
             submission holds. What the grader itself could not do is a verdict 'could_not_grade'.
    """
    course, lessons = settings.course, settings.lessons
    with ExitStack() as stack:
        if sandbox is None:
            sandbox = stack.enter_context(settings.sandbox())
        if isinstance(path, Submission):
            submission = path
        else:
            try:
                submission = read_submission(course, path, name, lessons, sandbox.reader)
            except SandboxError as error:
                lessons = lessons or tuple(lesson_of_name(course, Path(path)).split()) or None
                submission = empty_submission(course, name or learner_name(Path(path).stem), str(path), lessons)
                return could_not_grade_all(settings, submission, _describe(error))
        if submission.needs_torch:
            sandbox.need_torch()
        if any(map(course.needs_torch, submission.lessons)) and libraries.installed("torch"):
            # While the sandbox's processes do: judging would begin when both had. An import that fails is told where torch is used.
            with IMPORT_LOCK, suppress(Exception):
                importlib.import_module("torch")
        stack.callback(sandbox.end_submission)
        stack.callback(sandbox.reader.end)
        names = {lesson: settings.exercises_of(lesson) for lesson in submission.lessons}
        sandbox.begin_submission(sum(map(len, names.values())))
        reports: list[LessonReport] = []
        for lesson in submission.lessons:
            if reports:
                pending = ", ".join(name[:2] for name in submission.lessons[len(reports) :])
                message = f"{submission.message} Lessons that are not graded yet: {pending}.".strip()
                on_progress(SubmissionReport(submission.name, submission.path, tuple(reports), message))
            reports.append(_grade_lesson(submission, lesson, names[lesson], sandbox, settings, deadline or Deadline()))
    return SubmissionReport(submission.name, submission.path, tuple(reports), submission.message, submission.attention)


def grade(
    settings: Settings,
    paths: Iterable[str | Path],
    *,
    on_start: Callable[[str], None] = lambda path: None,
    deadline_s: float | None = None,
    on_progress: Callable[[Report], None] = lambda report: None,
) -> Report:
    """The report on several submissions, one after another.

    on_start: called with each path before it is graded.
    deadline_s: seconds for all of it; an exercise that is not reached by then is not tried, see Deadline.
    on_progress: called after each lesson but the last, with all that is graded so far.
    Raises:  InputError, and TooOpen where less isolation holds, before it grades any.
    """
    paths, deadline = list(paths), Deadline(deadline_s)
    with ExitStack() as stack:
        for path in paths:
            check_path(settings.course, path, settings.lessons)
        reader, first = stack.enter_context(Reader()), list[Submission]()
        with suppress(SandboxError):  # its report tells
            first = [read_submission(settings.course, path, None, settings.lessons, reader) for path in paths[:1]]
        # Made when it is known what the first one needs, it starts its processes once, unless a later one needs torch.
        sandbox = stack.enter_context(settings.sandbox(torch=any(work.needs_torch for work in first), reader=reader))
        if settings.require != "process":
            sandbox.verify()
        reports: list[SubmissionReport] = []

        def report(*last: SubmissionReport) -> Report:
            return Report((*reports, *last), settings.seed, isolation=sandbox.isolation, course=settings.course.title)

        for path, submission in zip(paths, [*first, *paths[len(first) :]], strict=True):
            on_start(str(path))
            tell = lambda last: on_progress(report(last))
            reports.append(grade_submission(settings, submission, sandbox=sandbox, deadline=deadline, on_progress=tell))
        return report()


def _grade_lesson(
    submission: Submission, lesson: str, names: Sequence[str], sandbox: Sandbox, settings: Settings, deadline: Deadline
) -> LessonReport:
    course, seed, follow_through = settings.course, settings.seed, settings.follow_through
    try:
        exercises = {exercise.name: exercise for exercise in course.lesson(lesson).exercises}
        points = {name: exercises[name].points for name in names}
        modules = {module for name in names for module in exercises[name].libraries}
        for module in sorted({*modules, "torch"} if course.needs_torch(lesson) else modules):
            if not libraries.installed(module):
                return LessonReport(lesson, _ungraded(names, libraries.how_to_install(module)), points)
        if deadline.is_over:
            return LessonReport(lesson, tuple(map(deadline.verdict, names)), points)
        plan = submission.plan(lesson)
        candidates = _candidates(course, plan, sandbox, exercises)
    except Exception as error:
        return LessonReport(lesson, _ungraded(names, _describe(error)), dict.fromkeys(names, 0))
    sources = {name: candidate.sources for name, candidate in candidates.items()}
    judgements = {name: _verdict(exercises[name], candidates[name], seed, deadline) for name in names}
    # Each begins with another exercise that it calls, where that one's failure explains it.
    blamed = [blame_callee(verdict, sources[name], judgements) for name, verdict in judgements.items()]
    verdicts = tuple(_excuse_missing_library(verdict, plan) for verdict in blamed)
    notes = plan.notes + (sandbox.notes if plan.own_texts else ())
    shares = {}
    if follow_through:
        for name, (callees, assisted_plan) in _plans_with_solutions(course, plan, verdicts, sources).items():
            candidate = _candidates(course, assisted_plan, sandbox, exercises)[name]
            if _verdict(exercises[name], candidate, seed, deadline).passed:
                shares[name] = (callees, follow_through)
    code = {name: plan.cells[index].text[:MAX_TEXT] for name, index in plan.owners.items() if name in names}
    return LessonReport(lesson, verdicts, points, notes, code=code, follow_through=shares)


def _candidates(course: Course, plan: Plan, sandbox: Sandbox, exercises: Mapping[str, Exercise]) -> Mapping[str, Any]:
    if not plan.own_texts:  # nothing was handed in, and no process is needed to say so
        return {name: SimpleNamespace(problem=plan.missing(name), sources=None) for name in plan.exercises}
    rules = {name: (exercises[name].forbids, exercises[name].requires) for name in plan.exercises}
    sources = RemoteSources(sandbox.reader, plan.own_texts, rules, course.given_names)
    return sandbox.candidates(plan, sources)


def _plans_with_solutions(
    course: Course, plan: Plan, verdicts: Sequence[Verdict], sources: Mapping[str, Any]
) -> dict[str, tuple[str, Plan]]:
    """For each exercise that may fail only because others of the learner's do: which, and the plan with the course's answers for them.

    What passes so earns the share of its points that the instructor sets; the verdict stays what it was, and the report says why there
    are points. The learner's code then runs beside answers of the course, which are public; what it prints there is not kept.
    """
    failing = {verdict.exercise for verdict in verdicts if not verdict.passed and verdict.exercise in plan.owners}
    plans = {}
    for verdict in verdicts:
        name = verdict.exercise
        if verdict.status not in FAILING or name not in plan.owners:
            continue
        places = {callee: plan.owners[callee] for callee in _failing_callees(name, failing, sources)}
        if places and plan.owners[name] not in places.values():
            cells = list(plan.cells)
            for callee, index in places.items():
                cells[index] = RunCell(cells[index].label, references.solution_text(course, callee), own=False)
            plans[name] = " and ".join(sorted(places)), replace(plan, cells=tuple(cells))
    return plans


def _failing_callees(name: str, failing: set[str], sources: Mapping[str, Any]) -> set[str]:
    """The failing exercises that one calls, and those that these call."""
    callees: set[str] = set()
    queue = [name]
    while queue:
        caller = queue.pop()
        slips = sources[caller].slips(caller) if sources[caller] is not None else ()
        new = {slip.name for slip in slips if slip.kind == "calls"} & failing - callees - {name}
        callees |= new
        queue += new
    return callees


def _verdict(exercise: Exercise, candidate: Any, seed: int, deadline: Deadline) -> Verdict:
    if deadline.is_over:
        return deadline.verdict(exercise.name)
    try:
        return limit_text(deadline.note(judge(exercise, candidate, seed)))
    except Exception as error:  # ours, never the learner's: the other exercises go on
        return could_not_grade(exercise.name, _describe(error))


def _excuse_missing_library(verdict: Verdict, plan: Plan) -> Verdict:
    """An error in code that needs what this machine lacks is not the learner's."""
    owner = plan.owners.get(verdict.exercise)
    cell = plan.cells[owner] if owner is not None else None
    if verdict.status != "error" or cell is None or not cell.requires:
        return verdict
    headline = f"{verdict.exercise} could not be graded here: {cell.origin} {requirements.reason(cell.requires)}."
    details = (requirements.advice(cell.requires),)
    return Verdict(verdict.exercise, "could_not_grade", headline, stage=ENVIRONMENT, details=details)


def could_not_grade(name: str, reason: str) -> Verdict:
    """The verdict on an exercise where the grader itself failed."""
    headline = f"{name} could not be graded; this is the grader's failure, not the notebook's."
    return Verdict(name, "could_not_grade", headline, details=(reason[:2000],))


def _ungraded(names: Iterable[str], reason: str) -> tuple[Verdict, ...]:
    return tuple(could_not_grade(name, reason) for name in names)


def could_not_grade_all(settings: Settings, submission: Submission, reason: str) -> SubmissionReport:
    """The report on a submission of which the grader could do nothing."""
    reports = []
    for lesson in submission.lessons:
        names = settings.exercises_of(lesson)
        points = {name: submission.course.exercise(name).points for name in names}
        reports.append(LessonReport(lesson, _ungraded(names, reason), points))
    return SubmissionReport(submission.name, submission.path, tuple(reports))


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def limit_text(verdict: Verdict) -> Verdict:
    """The verdict with at most MAX_TEXT characters of text; what is cut ends in '…'."""
    room = MAX_TEXT

    def cut(text: str) -> str:
        nonlocal room
        if len(text) > room:
            text = text[: max(room - 1, 0)] + "…" * (room > 0)
        room -= len(text)
        return text

    line = verdict.line and verdict.line._replace(text=cut(verdict.line.text), function=cut(verdict.line.function))
    keys = ("headline", "slip", "experiment", "next_step", "printed")
    texts: dict[str, Any] = {key: cut(getattr(verdict, key)) for key in keys}
    for key in ("sentences", "verified", "details", "warned"):
        texts[key] = tuple(map(cut, getattr(verdict, key)))
    return replace(verdict, **texts, line=line)

"""`grader class` without a process, for what a run says, keeps and writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.cli import classroom, main
from grader.grading import batch
from grader.grading.class_folder import pack
from grader.grading.grade import could_not_grade
from grader.grading.journal import JournalEntry, to_line
from grader.judging.verdict import Verdict
from grader.reports.report import LessonReport, SubmissionReport


def without_processes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`grader class` without a process: graded(folder, out, *options, fails=names) -> exit code. Whoever handed a lesson in has passed.

    made: other verdicts, by (learner, exercise). codes: learners' cells, by exercise. ran: the keys of those that the last run graded.
    """
    failing: list[str] = []
    ran: list[str] = []
    made: dict[tuple[str, str], Verdict] = {}
    codes: dict[str, dict[str, str]] = {}

    def line(entry, settings):
        packed = pack(entry)
        ran.append(entry.key)
        have = {file.place[-1][:-6] for file in packed.files}
        lessons = []
        for lesson in settings.lessons:
            status = "passed" if lesson in have else "missing"
            verdicts = [
                made.get((entry.key, name), Verdict(name, status, f"{name} {status}."))
                for name in settings.exercises_of(lesson)
            ]
            if entry.key in failing:
                verdicts[0] = could_not_grade(verdicts[0].exercise, "out of memory")
            points, code = {verdict.exercise: 2 for verdict in verdicts}, codes.get(entry.key, {})
            lessons.append(LessonReport(lesson, tuple(verdicts), points, code=code))
        return to_line(
            JournalEntry(
                entry.key,
                packed.digest,
                "process",
                SubmissionReport(entry.name, entry.key, tuple(lessons), attention=packed.attention),
            )
        )

    monkeypatch.setattr(classroom, "_pool", lambda options, settings: type("Pool", (), {"close": lambda self: None})())
    monkeypatch.setattr(batch, "isolation_of", lambda pool, settings: "process")
    monkeypatch.setattr(batch, "grade_all", lambda left, settings, pool: (line(entry, settings) for entry in left))

    def run(folder: Path, out: Path, *more: str, fails: tuple[str, ...] = ()) -> int:
        failing[:] = fails
        ran.clear()
        return main(["class", str(folder), "--out", str(out), *more])

    run.ran, run.made, run.codes = ran, made, codes
    return run

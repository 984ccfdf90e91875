"""results.json as Gradescope's autograder reads it: a score, and a test for each exercise.

All text is sent as plain text (`output_format: "text"`), so that nothing of it is taken for HTML or Markdown.
Learners see everything (`visible`), for it is what check() told them, unless the instructor says when. `extra_data` is kept with the
submission, and nobody is shown it: the seed, and which mistakes each exercise has.

Where something could not be graded there is no file: Gradescope takes any results.json for a grade, and a run without
one for its own failure, which it tells the instructor.

Source: Gradescope's Autograder Specifications, "Output format" (gradescope-autograders.readthedocs.io).
"""

from __future__ import annotations

from typing import Any

from grader.judging.verdict import Verdict
from grader.reports import text
from grader.reports.report import LessonReport, Report, plain
from grader.reports.report_json import document


def render(report: Report, max_points: float | None = None, visibility: str = "visible") -> str:
    """One learner's results.json; several submissions (notebooks named one by one) count together.

    ASCII throughout; nothing in it can be a CI log's command. '' where something could not be graded.
    max_points: what full marks give in Gradescope; score and tests are scaled in proportion, rounded to 4 decimals.
    visibility: when learners see it, as Gradescope names it: 'visible', 'hidden', 'after_due_date', 'after_published'.
    """
    submissions = report.submissions
    if any(submission.ungraded for submission in submissions):
        return ""
    score = sum(submission.score or 0 for submission in submissions)
    most = sum(submission.max_score for submission in submissions)
    factor = 1.0 if max_points is None or not most else max_points / most
    lessons = [lesson for submission in submissions for lesson in submission.lessons]
    lines = [f"{score} of {most} points."]
    lines += [text.clean(submission.message) for submission in submissions if submission.message]
    lines += [f"{lesson.name}: {text.clean(note)}" for lesson in lessons for note in text.notes(lesson)]
    lines.append(f"Isolation while grading: {text.one_line(report.isolation)}.")
    pairs = [(lesson, verdict) for lesson in lessons for verdict in lesson.verdicts]
    results = {
        "score": _points(score, factor),
        "execution_time": round(float(sum(verdict.seconds for _, verdict in pairs)), 3),
        "output": text.clean("\n".join(lines)),
        "output_format": "text",
        "visibility": visibility,
        "stdout_visibility": "hidden",
        "extra_data": {
            "seed": report.seed,
            "mistakes": {verdict.exercise: list(verdict.mistakes) for _, verdict in pairs if verdict.mistakes},
        },
        "tests": [_test(lesson, verdict, factor, visibility) for lesson, verdict in pairs],
    }
    return document(results, indent=1)


def _test(lesson: LessonReport, verdict: Verdict, factor: float, visibility: str) -> dict[str, Any]:
    """status: Gradescope knows 'passed' and 'failed' alone; the output's first line has the word."""
    points = lesson.points[verdict.exercise]
    return {
        "name": text.one_line(f"{lesson.name}: {verdict.exercise}"),
        "name_format": "text",
        "score": _points(lesson.points_of(verdict) or 0, factor),
        "max_score": _points(points, factor),
        "status": "passed" if verdict.passed else "failed",
        "output": text.render_verdict(verdict),
        "output_format": "text",
        "visibility": visibility,
    }


def _points(points: float, factor: float) -> float:
    return plain(round(points * factor, 4))

"""results.json as Gradescope's autograder reads it: a score, and a test for each exercise.

All text is sent as plain text (`output_format: "text"`), so that nothing of it is taken for HTML or Markdown.
Learners see everything (`visible`): it is what check() told them.

Where something could not be graded there is no file: Gradescope takes any results.json for a grade, and a run without
one for its own failure, which it tells the instructor.
"""

from __future__ import annotations

import json
from typing import Any

from grader.judging.verdict import LessonReport, Report, SubmissionReport, Verdict
from grader.reports import text
from grader.reports.room import plain


def render(report: Report, max_points: float | None = None) -> str:
    """One learner's results.json; several submissions (notebooks named one by one) count together.

    '' where something could not be graded.
    """
    return as_text(report.submissions, max_points, report.isolation)


def as_text(
    submissions: tuple[SubmissionReport, ...], max_points: float | None = None, isolation: str = "process"
) -> str:
    """The file's text, ASCII throughout; nothing in it can be a CI log's command. '' where something could not be graded.

    max_points: what full marks give in Gradescope; score and tests are scaled in proportion, rounded to 4 decimals.
    isolation:  the level that held while grading.
    """
    if any(one.ungraded for one in submissions):
        return ""
    made = json.dumps(as_data(submissions, max_points, isolation), indent=1, ensure_ascii=True, allow_nan=False)
    return made.replace("::", ":\\u003a").replace("##", "#\\u0023") + "\n"


def as_data(
    submissions: tuple[SubmissionReport, ...], max_points: float | None = None, isolation: str = "process"
) -> dict[str, Any]:
    """The results in plain dicts and lists."""
    score, most = sum(one.score for one in submissions), sum(one.max_score for one in submissions)
    factor = 1.0 if max_points is None or not most else max_points / most
    lessons = [lesson for one in submissions for lesson in one.lessons]
    said = [f"{score} of {most} points."]
    said += [text.clean(one.message) for one in submissions if one.message]
    said += [f"{lesson.name}: {text.clean(note)}" for lesson in lessons for note in lesson.notes]
    said.append(f"Isolation while grading: {text.one_line(isolation)}.")
    seconds = sum(judged.seconds for lesson in lessons for judged in lesson.verdicts)
    return {
        "score": _points(score, factor), "execution_time": round(float(seconds), 3),
        "output": text.clean("\n".join(said)), "output_format": "text", "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [_test(lesson, judged, factor) for lesson in lessons for judged in lesson.verdicts],
    }  # fmt: skip


def _test(lesson: LessonReport, judged: Verdict, factor: float) -> dict[str, Any]:
    """status: Gradescope knows 'passed' and 'failed' alone; the output's first line has the word."""
    points = lesson.points[judged.exercise]
    return {
        "name": text.one_line(f"{lesson.name}: {judged.exercise}"), "name_format": "text",
        "score": _points(lesson.earned(judged), factor), "max_score": _points(points, factor),
        "status": "passed" if judged.passed else "failed", "output": text.verdict(judged), "output_format": "text",
        "visibility": "visible",
    }  # fmt: skip


def _points(points: int, factor: float) -> float:
    return plain(round(points * factor, 4))

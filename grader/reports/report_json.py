"""A report as JSON, format 1. Readers find keys by name: keys may be added, none changes its meaning.

A score is null where something could not be graded: of that exercise, of its lesson and of the learner.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from grader.judging.verdict import Verdict
from grader.reports import text
from grader.reports.report import LessonReport, Report, SubmissionReport

FORMAT = 1


def render(report: Report) -> str:
    """The report as one JSON document, ASCII throughout; nothing in it can be a CI log's command."""
    content = {
        "format": FORMAT,
        "course": text.clean(report.course),
        "seed": report.seed,
        "isolation": report.isolation,
        "notes": [text.clean(note) for note in report.notes],
        "submissions": [_submission(submission) for submission in report.submissions],
    }
    return document(content, indent=2)


def document(data: Mapping[str, Any], indent: int) -> str:
    """JSON in ASCII. Colons and hashes in a row stand in texts alone, where an escape is the same character."""
    text = json.dumps(data, indent=indent, ensure_ascii=True, allow_nan=False)
    return text.replace("::", ":\\u003a").replace("##", "#\\u0023") + "\n"


def _submission(submission: SubmissionReport) -> dict[str, Any]:
    """One learner's result. message: what to fix where a notebook could not be read, else ''."""
    return {
        "name": text.clean(submission.name),
        "path": text.clean(submission.path),
        "score": submission.score,
        "max_score": submission.max_score,
        "penalty": submission.penalty,
        "late": text.clean(submission.late),
        "message": text.clean(submission.message),
        "lessons": [_lesson(lesson) for lesson in submission.lessons],
    }


def _lesson(lesson: LessonReport) -> dict[str, Any]:
    return {
        "name": lesson.name,
        "score": lesson.score,
        "max_score": lesson.max_score,
        "notes": [text.clean(note) for note in lesson.notes],
        "exercises": [_exercise(lesson, verdict) for verdict in lesson.verdicts],
    }


def _exercise(lesson: LessonReport, verdict: Verdict) -> dict[str, Any]:
    """headline: what failed; message: the whole verdict as text; cases: how many agreed, and of how many, [0, 0] where none ran."""
    return {
        "name": verdict.exercise,
        "status": verdict.status,
        "score": lesson.points_of(verdict),
        "automatic_score": lesson.automatic_points(verdict),
        "by_hand": text.mark_reason(lesson, verdict) if verdict.exercise in lesson.hand_marks else "",
        "max_score": lesson.points[verdict.exercise],
        "cases": list(verdict.cases),
        "mistakes": list(verdict.mistakes),
        "headline": text.clean(verdict.headline, 2_000),
        "stage": verdict.stage,
        "message": text.clean(text.render_verdict(verdict), text.MAX_TEXT - 2_000),
        "seconds": round(float(verdict.seconds), 4),
    }

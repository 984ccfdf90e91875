"""result.json of Classroom 50, which took GitHub Classroom's place: what its autograder.py leaves in the repository that it grades.

The runner says in the environment what it grades (CLASSROOM, ASSIGNMENT, SUBMISSION_TAG, COMMIT_URL, RELEASE_URL, and others), and stamps
owner, assignment_type and datetime itself. Scores are whole numbers. An autograder that ends otherwise than with 0 and leaves no
result.json is an error of the infrastructure there; so nothing is written where something could not be graded.

Source: foundation50/classroom50, schemas/result-v1.schema.json and wiki/Advanced-Autograding.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from grader.judging.verdict import LessonReport, Report, Verdict
from grader.reports import text
from grader.util.errors import InputError

SCHEMA = "classroom50/result/v1"
NEEDED = {
    "classroom": "CLASSROOM",
    "assignment": "ASSIGNMENT",
    "submission": "SUBMISSION_TAG",
    "commit": "COMMIT_URL",
    "release": "RELEASE_URL",
}
TOLD = {"assignment_type": "ASSIGNMENT_TYPE", "owner": "OWNER", "review": "REVIEW_URL"}  # where the runner says so
OUTPUT = 4_000  # characters of one test; collectors take 10 MB in all


def check(environ: Mapping[str, str] | None = None) -> None:
    """Raises: InputError where the runner's variables are not there, before anything is graded."""
    around = os.environ if environ is None else environ
    missing = [name for name in NEEDED.values() if not around.get(name)]
    if missing:
        raise InputError(
            f"--classroom50 is for Classroom 50's runner, which sets {', '.join(NEEDED.values())}; {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not set."
        )


def render(report: Report, environ: Mapping[str, str] | None = None) -> str:
    """One learner's result.json, ASCII throughout; several submissions (notebooks named one by one) count together.

    '' where something could not be graded. environ: by default the environment.
    """
    if any(one.ungraded for one in report.submissions):
        return ""
    made = json.dumps(as_data(report, environ), indent=1, ensure_ascii=True, allow_nan=False)
    return (
        made.replace("::", ":\\u003a").replace("##", "#\\u0023") + "\n"
    )  # no command for the CI service whose log shows it


def as_data(report: Report, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The result in plain dicts and lists."""
    around = os.environ if environ is None else environ
    check(around)
    tests = [
        _test(lesson, judged) for one in report.submissions for lesson in one.lessons for judged in lesson.verdicts
    ]
    about = {key: around[name] for key, name in NEEDED.items()}
    about |= {key: around[name] for key, name in TOLD.items() if around.get(name)}
    return {
        "schema": SCHEMA,
        **about,
        "review": about.get("review", about["commit"]),
        "datetime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "score": sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }


def _test(lesson: LessonReport, judged: Verdict) -> dict[str, Any]:
    """Beside what the schema asks for, the verdict as text and its mistakes, which the collector keeps."""
    return {
        "test-name": f"{lesson.name}: {judged.exercise}",
        "passed": judged.passed,
        "score": int(lesson.earned(judged) or 0),
        "max-score": int(lesson.points[judged.exercise]),
        "output": text.clean(text.verdict(judged), OUTPUT),
        "mistakes": list(judged.mistakes),
    }

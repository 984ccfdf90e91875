"""The folder of reports of a class: every format from the same report, each file written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from grader.course.course import Course
from grader.reports import (
    attention,
    canvas,
    class_page,
    feedback,
    grades_csv,
    gradescope,
    junit,
    markdown,
    moodle,
    report_json,
    returns,
    similarity,
)
from grader.reports.class_summary import ClassSummary
from grader.reports.gradebook import Gradebook
from grader.reports.report import Report
from grader.util.errors import InputError
from grader.util.files import write_atomically

GRADEBOOK_FILES = ("canvas.csv", "moodle.csv", "canvas/*", "moodle/*")  # what a grade book reads learners' names in


def write_all(
    course: Course,
    report: Report,
    folder: Path,
    *,
    gradebook: Gradebook = Gradebook(),
    before_change: Callable[[], None] | None = None,
) -> list[Path]:
    """Writes what files() yields. Files of these names are replaced, each in one step; those that it does not yield any more, as of
    learners that the report doesn't have, or has no score of, are removed.

    before_change: called once, before a file that is there is replaced by another content or removed.
    Returns: the files, in the order above. Raises: InputError where the folder can't be written to.
    """
    folder = Path(folder)
    paths = []
    warn = cache(before_change or (lambda: None))
    for name, content in files(course, report, gradebook):
        try:
            data = content.encode("utf-8") if isinstance(content, str) else content
            if (folder / name).is_file() and (folder / name).read_bytes() != data:
                warn()
            write_atomically(folder / name, data)
        except OSError as error:
            raise InputError(
                f"{folder / name} can't be written: {error.strerror or error}. What was graded is kept; "
                "fix that, and run the same command with --resume."
            ) from None
        paths.append(folder / name)
    for kind in ("feedback/*.html", "junit/*.xml", "gradescope/*.json", *GRADEBOOK_FILES):
        for stale in set(folder.glob(kind)) - set(paths):  # of who is no longer in the class, or has no score now
            warn()
            stale.unlink(missing_ok=True)
    return paths


def files(course: Course, report: Report, gradebook: Gradebook = Gradebook()) -> Iterator[tuple[str, str | bytes]]:
    """Each file's name within the folder, and its content: the class's own, then for each learner feedback/NAME.html, junit/NAME.xml and,
    where everything could be graded, gradescope/NAME.json.

    JUnit is a file a learner: readers of one that holds a whole class give up at its size (GitLab at 250,000 objects).
    """
    summary = ClassSummary(report, gradebook.roster)
    yield "report.html", class_page.render(course, report, gradebook.roster, similarity=True)
    yield "similarity.html", similarity.render(course, summary)
    yield "grades.csv", grades_csv.render(report, gradebook.roster)
    yield "attention.csv", attention.render(course, report)
    if not gradebook.anonymous:
        if table := canvas.render(report, gradebook):
            yield "canvas.csv", table
        yield "moodle.csv", moodle.render(report, gradebook)
        yield from returns.files(course, summary, gradebook)
    yield "report.json", report_json.render(report)
    yield "summary.md", markdown.render(course, report)
    for stem, (label, submission) in zip(summary.stems, summary.learners, strict=True):
        learner_report = replace(report, submissions=(submission,))
        yield f"feedback/{stem}.html", feedback.page(submission, label, report.course)
        yield f"junit/{stem}.xml", junit.render(learner_report, label)
        if results := gradescope.render(learner_report, gradebook.max_points):
            yield f"gradescope/{stem}.json", results

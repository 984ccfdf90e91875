"""moodle.csv: what Moodle imports (Grades → Import → CSV file), one grade item and its feedback, a row a learner.

In Moodle choose "Map from" the column that says who it is, and map both of the last two: the grade to the item, the feedback to "Feedback
for" that item. If the feedback alone is mapped, the grades there are lost.

Who it is stands in columns that every row fills. A cell left empty would be worse than a missing column: the import then takes the
learner of the row before. One user whom the site doesn't know ends the whole import, so with a roster only those on it have a
row. A grade above 100 ends it, too, unless the site allows more. Moodle matches addresses letter by letter.

A learner with an exercise that could not be graded has no row. An empty cell would not do: Moodle takes it for "no grade"
and overwrites what is there.

Source: moodle, grade/import/csv/classes/load_data.php (map_user_data_with_value, prepare_import_grade_data, insert_grade_record).
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from grader.reports import sheet, text
from grader.reports.class_summary import ClassSummary
from grader.reports.gradebook import Entry, Gradebook
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.submission.platforms import MOODLE

LARGEST = 100  # what a site takes where it does not allow more


def render(report: Report, gradebook: Gradebook = Gradebook()) -> str:
    """The CSV: the heading and a row a learner who has a score."""
    summary = ClassSummary(report)
    entries = list(gradebook.entries(summary))
    columns = _identities(entries)
    rows = [
        [*cells, entry.points, feedback(entry.submission)]
        for entry, cells in zip(entries, zip(*columns.values(), strict=True), strict=True)
    ]
    return sheet.write([[*columns, gradebook.title(summary), "Feedback"], *rows])


def _identities(entries: Sequence[Entry]) -> dict[str, list[sheet.Cell]]:
    """The columns of which no cell is empty; without a roster the folders' names as the one that they look like."""
    columns = {title: [entry.cell(field) for entry in entries] for title, field in MOODLE.gradebook.items()}
    filled = {title: cells for title, cells in columns.items() if entries and all(cells)}
    title = "Email address" if entries and all("@" in entry.label for entry in entries) else "Username"
    return filled or {title: [entry.label for entry in entries]}


def remark(summary: ClassSummary, gradebook: Gradebook) -> str:
    """A sentence where Moodle would refuse the grades; '' where it would not."""
    most = max((entry.points for entry in gradebook.entries(summary)), default=0)
    if most <= LARGEST:
        return ""
    return f"moodle.csv has a grade of {most}, and Moodle ends an import at one above {LARGEST}; --max-points {LARGEST} scales them."


def feedback(submission: SubmissionReport) -> str:
    """What passed and what did not, in one line. Moodle shows it as HTML, so signs that mean something there are written out."""
    reasons = [text.mark_reason(lesson, verdict) for lesson in submission.lessons for verdict in lesson.verdicts]
    parts = [text.points(submission), *map(_lesson, submission.lessons), *reasons, text.one_line(submission.message)]
    return html.escape(text.one_line(". ".join(part.removesuffix(".") for part in parts if part), 2_000), quote=False)


def _lesson(lesson: LessonReport) -> str:
    failed = [
        f"{verdict.exercise}: {(text.summary(verdict) or text.STATUS_WORDS[verdict.status]).removesuffix('.')}"
        for verdict in lesson.verdicts
        if not verdict.passed
    ]
    return f"{lesson.name} {text.score_text(lesson.score)} of {lesson.max_score}{': ' if failed else ''}{'; '.join(failed)}"

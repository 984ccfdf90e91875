"""canvas.csv: what Canvas' gradebook imports (Grades → Import), one assignment, a row a learner.

Canvas finds a student by `ID`, else `SIS User ID`, else `SIS Login ID`, else by the name; whom it does not find it offers to add. With
its own gradebook export as the roster, all of these stand as Canvas wrote them. Without one the name of a learner's folder is
taken for the login. An assignment is found by the number in 'Title (1234)', else by its whole title, else Canvas asks whether to make one.
Points possible should be those of the assignment; --max-points sets them.

With Moodle's grading worksheet as the roster there is no such file: it has no id that Canvas knows, and who has it uses Moodle.

Without an id Canvas takes the first who has the name. So learners of the roster who have no id there, and no name of their own, have
no row.

A learner with an exercise that could not be graded has no row. An empty cell would not do: Canvas takes it for a change
and clears the grade that is there.

Source: canvas-lms, lib/gradebook_importer.rb (process_student, parse_assignments, row_has_student_headers?) and Assignment.title_and_id.
"""

from __future__ import annotations

from difflib import get_close_matches

from grader.reports import sheet
from grader.reports.class_summary import ClassSummary
from grader.reports.gradebook import Gradebook
from grader.reports.report import Report
from grader.submission.platforms import CANVAS, WORKSHEET, titles
from grader.submission.roster import Person, Roster
from grader.util.words import join_names

IDS = ("canvas", "number", "login")
POSSIBLE = "    Points Possible"  # with these four spaces, as Canvas exports it


def render(report: Report, gradebook: Gradebook = Gradebook()) -> str:
    """The CSV: the heading, the row of points possible, and a row a learner who has a score; '' where Canvas is not used."""
    if not _is_used(gradebook):
        return ""
    summary = ClassSummary(report)
    rows: list[list[sheet.Cell]] = [[*CANVAS.gradebook, gradebook.title(summary)]]
    rows.append([sheet.Verbatim(POSSIBLE), "", "", "", "", gradebook.possible(summary)])
    for entry in gradebook.entries(summary):
        if entry.person is None:
            rows.append([entry.label, "", "", entry.label, "", entry.points])
        elif _is_known(entry.person, gradebook.roster):
            rows.append([*map(entry.cell, CANVAS.gradebook.values()), entry.points])
    return sheet.write(rows)


def remark(summary: ClassSummary, gradebook: Gradebook) -> str:
    """Sentences on who has no row, and on an assignment that is another in Canvas' own export, where that is the roster; '' for none."""
    if not _is_used(gradebook):
        return ""
    labels = [entry.label for entry in gradebook.entries(summary) if not _is_known(entry.person, gradebook.roster)]
    sentence = _assignment_remark(summary, gradebook)
    if not labels:
        return sentence
    reason = "the roster has no id of theirs that Canvas knows (ID, SIS User ID or SIS Login ID), and no name that is theirs alone"
    return f"canvas.csv has no row for {join_names(labels, 20)}: {reason}. Use Canvas' own export as the roster. {sentence}".strip()


def _is_used(gradebook: Gradebook) -> bool:
    return gradebook.roster is None or WORKSHEET not in titles(gradebook.roster.heading)


def _is_known(person: Person | None, roster: Roster | None) -> bool:
    """Whether Canvas takes them for nobody else: by an id, or by a name that is theirs alone."""
    if person is None or roster is None or any(person[field] for field in IDS):
        return True
    return bool(person.names) and all(roster.person("name", name) is person for name in person.names)


def _assignment_remark(summary: ClassSummary, gradebook: Gradebook) -> str:
    possible, title = gradebook.roster.possible if gradebook.roster else {}, gradebook.assignment
    if not possible or not title:
        return ""
    if title not in possible:
        matches = get_close_matches(title, possible, 1, 0.4) or list(possible)[:1]
        return f"Canvas' export has no column {title!r}, such as {matches[0]!r}; Canvas would offer to create a new assignment."
    most, points = gradebook.possible(summary), possible[title]
    try:
        if not points or float(points) == most:
            return ""
    except ValueError:  # '(read only)'
        return f"{title} says {points} in Canvas' export instead of points; Canvas may accept no grades for it."
    return f"{title} has {points} points in Canvas, and canvas.csv is out of {most}; --max-points {points} scales it."

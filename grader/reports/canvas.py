"""canvas.csv: what Canvas' gradebook imports (Grades → Import), one assignment, a row a learner.

Canvas finds a student by `ID`, else `SIS User ID`, else `SIS Login ID`, else by the name; whom it does not find it offers to add. With
its own gradebook export as the roster, all of these stand as Canvas wrote them. Without one the name of a learner's folder is
taken for the login. An assignment is found by the number in 'Title (1234)', else by its whole title, else Canvas asks whether to make one.
Points possible are to be those of the assignment; --max-points sets them.

Without an id Canvas takes the first who has the name. So learners of the roster who have no id there, and no name of their own, have
no row.

A learner with an exercise that could not be graded has no row. An empty cell would not do: Canvas takes it for a change
and clears the grade that is there.

Source: canvas-lms, lib/gradebook_importer.rb (process_student, parse_assignments, row_has_student_headers?) and Assignment.title_and_id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches

from grader.judging.verdict import Report
from grader.reports import sheet, text
from grader.reports.books import Books, identifier
from grader.reports.room import ClassSummary, plain
from grader.submission.enrolled import Enrolled
from grader.util.names import folded

COLUMNS = {"Student": "name", "ID": "canvas", "SIS User ID": "number", "SIS Login ID": "login", "Section": "section"}
IDS = ("canvas", "number", "login")
POSSIBLE = "    Points Possible"  # with these four spaces, as Canvas exports it
ALONE = Books()


def render(report: Report, books: Books = ALONE) -> str:
    """The CSV."""
    return sheet.write(rows(ClassSummary(report), books))


def remark(room: ClassSummary, books: Books) -> str:
    """Sentences on who has no row, and on an assignment that is another in Canvas' own export, where that is the roster; '' for none."""
    unclear = _unclear(books.enrolled)
    left = [entry.label for entry in books.entered(room) if entry.person and entry.person.key in unclear]
    why = "the roster has no id of theirs that Canvas knows (ID, SIS User ID or SIS Login ID), and no name that is theirs alone"
    told = (
        [f"canvas.csv has no row for {text.listed(left, 20)}: {why}. Use Canvas' own export as the roster."]
        if left
        else []
    )
    return " ".join(filter(None, [*told, _assignment_remark(room, books)]))


def _unclear(enrolled: Enrolled | None) -> frozenset[str]:
    """The keys of those whom Canvas could take for another: without an id, and of no name or of another's."""
    people = enrolled.people if enrolled else ()
    names = Counter(name for one in people for name in {folded(each) for each in one.names})
    return frozenset(
        one.key
        for one in people
        if not any(one[field] for field in IDS)
        and (not one.names or any(names[folded(name)] > 1 for name in one.names))
    )


def _assignment_remark(room: ClassSummary, books: Books) -> str:
    possible = books.enrolled.possible if books.enrolled else {}
    if not possible or not books.assignment:
        return ""
    if books.assignment not in possible:
        near = get_close_matches(books.assignment, possible, 1, 0.4) or list(possible)[:1]
        return f"Canvas' export has no column {books.assignment!r}, such as {near[0]!r}; Canvas would offer to create a new assignment."
    most, theirs = _possible(room, books), possible[books.assignment]
    try:
        fits = not theirs or float(theirs) == most
    except ValueError:  # '(read only)'
        return (
            f"{books.assignment} says {theirs} in Canvas' export instead of points; Canvas may accept no grades for it."
        )
    told = f"{books.assignment} has {theirs} points in Canvas, and canvas.csv is out of {most}; --max-points {theirs} scales it."
    return "" if fits else told


def _possible(room: ClassSummary, books: Books) -> float:
    most = max((one.max_score for one in room.report.submissions), default=0)
    return plain(books.max_points) if books.max_points is not None else most


def rows(room: ClassSummary, books: Books) -> Iterator[list[sheet.Cell]]:
    """The heading, the row of points possible, and a row a learner who has a score."""
    yield [*COLUMNS, sheet.Verbatim(books.title(room))]
    yield [sheet.Verbatim(POSSIBLE), "", "", "", "", _possible(room, books)]
    unclear = _unclear(books.enrolled)
    for entry in books.entered(room):
        if entry.person and entry.person.key in unclear:
            continue
        if entry.person:
            name = next(iter(entry.person.names), "")
            yield [
                identifier(name),
                *(entry.cell(field) for field in COLUMNS.values() if field != "name"),
                entry.points,
            ]
        else:
            yield [entry.label, "", "", entry.label, "", entry.points]

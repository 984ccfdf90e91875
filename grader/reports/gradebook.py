"""Who enters a grade book and as whom. A learner without a score never does: no number stands for a failure of the grader's.

With a roster only those on it enter: one unknown user ends a whole import into Moodle, and Canvas offers to enroll a stranger.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.reports import sheet, text
from grader.reports.class_summary import ClassSummary, share
from grader.reports.report import SubmissionReport, hundredths, plain
from grader.submission.roster import Person, Roster
from grader.util.words import join_names

_IDENTIFIER = re.compile(r"[\w.+@-]+", re.ASCII)  # nothing that a spreadsheet could compute with


@dataclass(frozen=True)
class Gradebook:
    """What grade books are told.

    max_points: each total is scaled to it in proportion, rounded to 2 decimals; None: the course's points.
    assignment: its name there; by default the course's. roster: who is on the roster; None: every learner is taken.
    handed_in: of each learner of the report, the paths in the platform's download. anonymous: whether the learners have other names than
    grade books know; then no table of theirs is written.
    """

    max_points: float | None = None
    assignment: str = ""
    roster: Roster | None = None
    handed_in: Sequence[tuple[str, ...]] = ()
    anonymous: bool = False

    def entries(self, summary: ClassSummary) -> Iterator[Entry]:
        """A learner each who has a score and, where there is a roster, is on it."""
        for label, submission in summary.learners:
            person = self.roster.person("key", label) if self.roster else None
            if not submission.ungraded and (person or not self.roster):
                points = submission.score or 0
                if self.max_points is not None:
                    points = hundredths(share(submission) * self.max_points)
                yield Entry(label, submission, person, points)

    def possible(self, summary: ClassSummary) -> float:
        """The points of full marks."""
        most = max((submission.max_score for submission in summary.report.submissions), default=0)
        return most if self.max_points is None else plain(self.max_points)

    def title(self, summary: ClassSummary) -> sheet.Verbatim:
        return sheet.Verbatim(text.one_line(self.assignment or summary.report.course))

    def remarks(self, summary: ClassSummary) -> tuple[str, ...]:
        """Sentences on who is in the folder or on the roster alone."""
        if self.roster is None:
            return ()
        keys = {label: person.key for label in summary.labels if (person := self.roster.person("key", label))}
        groups = {
            "In the folder but not on the roster": [label for label in summary.labels if label not in keys],
            "On the roster but not in the folder": [
                person.key for person in self.roster.people if person.key not in keys.values()
            ],
        }
        return tuple(
            f"{place}, so without a row in the grade book: {join_names(names, 20)}."
            for place, names in groups.items()
            if names
        )


@dataclass(frozen=True)
class Entry:
    """A row of a grade book. label: of the reports; person: of the roster; points: as the book should have them."""

    label: str
    submission: SubmissionReport
    person: Person | None
    points: float

    def cell(self, field: str) -> sheet.Cell:
        """What the roster has, as it is: an apostrophe before '-ada' would make another user of it. Other text is guarded.

        field: of the roster; 'name' is the first of its spellings.
        """
        person = self.person
        value = "" if person is None else person[field] if field != "name" else next(iter(person.names), "")
        return sheet.Verbatim(value) if _IDENTIFIER.fullmatch(value) else value

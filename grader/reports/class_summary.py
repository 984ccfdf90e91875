"""What a whole class shows: scores, exercises by how many passed, the mistakes that turn up, and whose they are.

Counted from the report, nothing is judged again. Every table and page of a class starts from here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from statistics import mean, median
from typing import NamedTuple

from grader.course import references
from grader.course.course import Course
from grader.course.spec import MistakeText
from grader.judging.verdict import FAILING, Verdict
from grader.reports import text
from grader.reports.report import Report, SubmissionReport
from grader.submission.roster import Roster
from grader.util.names import labels, learner_name, same_name_groups
from grader.util.words import join_names

NAME_BYTES = 80  # of a learner's file name: with ending and scratch prefix far below the 255 that file systems take
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
ATTEMPTED = ("passed", *FAILING, "forbidden")


class Column(NamedTuple):
    """One exercise of the class."""

    lesson: str
    exercise: str


@dataclass(frozen=True)
class FrequentMistake:
    """A mistake that was met. learners: their numbers in the report, from 0; exercises: where, in order."""

    id: str
    sentence: str
    learners: tuple[int, ...]
    exercises: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ClassSummary:
    """The class as counts; a learner is known by a number, the place in the report, and by a label."""

    report: Report
    roster: Roster | None = None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Each learner's name on one line, no two alike; see names.labels()."""
        names = (learner_name(submission.name) for submission in self.report.submissions)
        return labels([text.one_line(name, 120) or "(no name)" for name in names])

    @cached_property
    def learners(self) -> tuple[tuple[str, SubmissionReport], ...]:
        """Each learner's label, and what came of the work."""
        return tuple(zip(self.labels, self.report.submissions, strict=True))

    @cached_property
    def people(self) -> tuple[str, ...]:
        """Each learner's name on the roster, as 'Ada Lovelace'; '' where that is not known, or the label itself."""
        people = [self.roster.person("key", label) if self.roster else None for label in self.labels]
        names = (" ".join(person.first_last).strip() or person["name"] if person else "" for person in people)
        lines = [text.one_line(name, 120) for name in names]
        return tuple("" if name == label else name for name, label in zip(lines, self.labels, strict=True))

    @cached_property
    def stems(self) -> list[str]:
        return stems(self.labels)

    @cached_property
    def same_names(self) -> list[int]:
        """Learners, by number, whose names are one but for case, spaces, or what is not seen."""
        groups = same_name_groups([learner_name(submission.name) for submission in self.report.submissions])
        return sorted(chain(*groups))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The exercises that anybody was asked for, by lesson, in the lesson's order."""
        columns = dict.fromkeys(column for verdicts in self.verdicts for column in verdicts)
        return tuple(sorted(columns, key=lambda column: column.lesson))

    @cached_property
    def lessons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column.lesson for column in self.columns))

    @cached_property
    def verdicts(self) -> tuple[Mapping[Column, Verdict], ...]:
        """For each learner the verdict of an exercise, where that was asked for."""
        return tuple(
            {Column(lesson.name, verdict.exercise): verdict for lesson in lessons for verdict in lesson.verdicts}
            for lessons in (submission.lessons for submission in self.report.submissions)
        )

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The score of each learner who has one, as a share of what that learner could reach, 0 to 1."""
        return tuple(share(submission) for submission in self.report.submissions if not submission.ungraded)

    @cached_property
    def ungraded(self) -> tuple[int, ...]:
        """The learners with an exercise that could not be graded: they have no score, and no row in a grade book."""
        return tuple(learner for learner, submission in enumerate(self.report.submissions) if submission.ungraded)

    @property
    def mean(self) -> float | None:
        """None where nobody has a score; so of the median."""
        return mean(self.shares) if self.shares else None

    @property
    def median(self) -> float | None:
        return median(self.shares) if self.shares else None

    def verdicts_on(self, column: Column) -> list[tuple[int, Verdict]]:
        """Who was asked for the exercise, by number, and what came of it."""
        return [(learner, verdicts[column]) for learner, verdicts in enumerate(self.verdicts) if column in verdicts]

    @cached_property
    def mistakes(self) -> tuple[FrequentMistake, ...]:
        """The mistakes met, by how many learners made them. Of several that fit alike the likeliest counts, of a
        pair that only together fits both halves."""
        occurrences: dict[str, tuple[str, dict[int, None], dict[str, None]]] = {}
        for column in self.columns:
            for learner, verdict in self.verdicts_on(column):
                for id, sentence in likeliest(verdict):
                    _, learners, exercises = occurrences.setdefault(id, (sentence, {}, {}))
                    learners[learner] = exercises[column.exercise] = None
        mistakes = (
            FrequentMistake(id, sentence, tuple(sorted(learners)), tuple(exercises))
            for id, (sentence, learners, exercises) in occurrences.items()
        )
        return tuple(sorted(mistakes, key=lambda mistake: (-len(mistake.learners), mistake.id)))


def stems(names: Sequence[str]) -> list[str]:
    """A file name without ending for each learner: letters, digits, '.', '_' and '-', no two alike on any system.

    Systems differ in whether 'Ada' and 'ada', or two ways to write 'é', are one file: here they never are.
    """
    by_casefold: dict[str, str] = {}
    for name in names:
        base = stem = _safe(name)
        number = 2
        while stem.casefold() in by_casefold:
            stem, number = f"{base}-{number}", number + 1
        by_casefold[stem.casefold()] = stem
    return list(by_casefold.values())


def _safe(name: str) -> str:
    """The name with everything else replaced by '-', neither hidden, nor a device of Windows, nor too long."""
    stem = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFKC", name)).strip(".-")
    stem = stem.encode("utf-8")[:NAME_BYTES].decode("utf-8", "ignore").rstrip(".-")
    if not stem or stem.split(".")[0].casefold() in RESERVED:
        stem = f"learner-{stem}".rstrip("-")
    return stem


def remarks(summary: ClassSummary) -> tuple[str, ...]:
    """What whoever reads the marks is to know first: which lessons were taken, and who has no score."""
    return (*summary.report.notes, *filter(None, [ungraded(summary)]))


def ungraded(summary: ClassSummary) -> str:
    """A sentence that names who has no score; '' where everybody has one."""
    if not summary.ungraded:
        return ""
    names = [
        f"{name} ({join_names(submission.ungraded)})" for name, submission in summary.learners if submission.ungraded
    ]
    return (
        f"Not graded in whole, which is the grader's failure and no learner's: {join_names(names, 20)}. "
        "Without a score they have no number for a grade book; grade them again."
    )


def likeliest(verdict: Verdict) -> list[tuple[str, str]]:
    """(id, sentence) of the mistakes that a verdict counts for."""
    if not verdict.mistakes:
        return []
    ids = verdict.mistakes[0].split("+")
    sentence = verdict.sentences[0] if verdict.sentences and len(ids) == 1 else ""
    return [(id, sentence) for id in ids]


def explain(course: Course, mistake: FrequentMistake) -> MistakeText:
    """What the course says of the mistake; where it knows none of that id, what the verdict said."""
    try:
        return references.explain(course, mistake.id)
    except KeyError:
        return MistakeText(mistake.id, mistake.sentence, "")


def share(submission: SubmissionReport) -> float:
    """The score, of one that has one, as a share of the maximum, 0 to 1; 0 where nothing could be reached."""
    return (submission.score or 0) / submission.max_score if submission.max_score else 0.0

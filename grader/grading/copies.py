"""Notebooks of several learners that are one file, byte for byte: no matter of style, and no chance.

Left out is what nobody worked in, which is alike by itself, and what a group handed in together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from grader.grading.class_folder import InventoryEntry
from grader.grading.lateness import CollectedWork
from grader.reports.report import SubmissionReport
from grader.util.names import printable
from grader.util.words import join_names

NOTHING = sha256().digest()  # the content of a file that is empty, or that could not be read


def add_copies(
    learners: Sequence[InventoryEntry],
    collected: Sequence[CollectedWork],
    reports: Sequence[SubmissionReport],
    aliases: Mapping[str, str],
) -> tuple[SubmissionReport, ...]:
    """The reports with a sentence for each learner whose files others have, too. aliases: the names in it, where there are others."""
    owners: dict[bytes, dict[int, str]] = {}  # of each content the learners, by position, with the file's place
    for position, (learner, report) in enumerate(zip(learners, reports, strict=True)):
        attempted_lessons = {
            lesson.name
            for lesson in report.lessons
            if any(verdict.status not in ("not_started", "missing") for verdict in lesson.verdicts)
        }
        for file in learner.files:
            if file.content != NOTHING and file.lesson in attempted_lessons:
                owners.setdefault(file.content, {}).setdefault(position, file.place)
    copies: list[dict[str, list[str]]] = [{} for _ in reports]  # of each learner, by who has the same files: these
    names = [aliases.get(report.name, report.name) for report in reports]
    for places in owners.values():
        originals = {collected[i].paths.get(place, "") or str(i) for i, place in places.items()}
        for position, place in places.items() if len(originals) > 1 else ():
            others = join_names([names[other] for other in places if other != position])
            copies[position].setdefault(others, []).append(printable(place))
    submissions = []
    for report, files in zip(reports, copies, strict=True):
        sentence = "The same file, byte for byte, as {} handed in: {}."
        sentences = [sentence.format(others, join_names(places)) for others, places in files.items()]
        submissions.append(replace(report, attention=(*sentences, *report.attention)))
    return tuple(submissions)

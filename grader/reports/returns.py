"""The way back: what a learning platform takes so that each learner gets the feedback where they handed in.

canvas/comments.zip  for "Upload Submissions" beside an assignment's download: a notebook with the feedback in it, called as the one that
                     was handed in. By that name Canvas knows whose it is, and it shows the file under the name of the learner's own.
moodle/feedback.zip  for "Upload multiple feedback files in a zip": a folder 'Ada Lovelace_4711_assignfeedback_file' each.
moodle/worksheet.csv for "Upload grading worksheet": the worksheet that is the roster, with grades and comments. All else stays as it was,
                     since Moodle takes no grade where its 'Last modified (grade)' is another.

Sources: canvas-lms, Assignment#infer_comment_context_from_filename; moodle, mod/assign/feedback/file/importziplib.php
(is_valid_filename_for_import) and mod/assign/feedback/offline/importgradeslib.php.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from grader.course.course import Course
from grader.reports import feedback, markdown, moodle, sheet
from grader.reports.class_summary import ClassSummary
from grader.reports.gradebook import Gradebook
from grader.reports.report import plain
from grader.submission.platforms import CANVAS, MOODLE, titles

FEEDBACK = "feedback comments"
GRADED = "last modified (grade)"


def files(course: Course, summary: ClassSummary, gradebook: Gradebook) -> Iterator[tuple[str, str | bytes]]:
    """Each file's name and content; only those for which the platform has told who is who."""
    comments, pages = {}, {}
    for (label, submission), handed_in in zip(summary.learners, gradebook.handed_in, strict=False):
        learner_report = replace(summary.report, submissions=(submission,), notes=())
        if name := _canvas_name(handed_in):
            comments[name] = _notebook(markdown.render(course, learner_report))
        if folder := _moodle_folder(label, handed_in, gradebook):
            pages[f"{folder}/feedback.html"] = feedback.page(submission, label, summary.report.course)
    if comments:
        yield "canvas/comments.zip", _zip(comments)
    if pages:
        yield "moodle/feedback.zip", _zip(pages)
    heading = titles(gradebook.roster.heading) if gradebook.roster else []
    if {"identifier", "grade", GRADED} <= set(heading) and not remark(summary, gradebook):
        yield "moodle/worksheet.csv", _worksheet(summary, gradebook, heading)


def _canvas_name(handed_in: tuple[str, ...]) -> str:
    """Of a file with Canvas' number, which a text entry has not; a notebook's name, also for what was in an archive."""
    parts = [part for path in handed_in for part in path.partition(": ")[0].split("/")]
    numbered = [part for part in parts if (match := CANVAS.match(part)) and match.groupdict().get("order")]
    return f"{PurePosixPath(numbered[0]).stem.rstrip('.')}.ipynb" if numbered else ""


def _moodle_folder(label: str, handed_in: tuple[str, ...], gradebook: Gradebook) -> str:
    person = gradebook.roster.person("key", label) if gradebook.roster else None
    parts = (part for path in handed_in for part in path.split("/"))
    match = next(filter(None, map(MOODLE.match, parts)), None)
    number = re.search(r"\d+$", person["participant"]) if person else None
    if not (match or number):
        return ""
    name = match["name"] if match else re.sub(r"[_/\\]", " ", (person.names if person else ("",))[0])
    return f"{name}_{match['id'] if match else number[0]}_assignfeedback_file"  # type: ignore[index]


def _notebook(source: str) -> str:
    cell = {"cell_type": "markdown", "id": "feedback", "metadata": {}, "source": source}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def _zip(contents: dict[str, str]) -> bytes:
    """Of the same contents always the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(contents.items()):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _worksheet(summary: ClassSummary, gradebook: Gradebook, heading: list[str]) -> str:
    assert gradebook.roster is not None
    graded = {entry.person.key: entry for entry in gradebook.entries(summary) if entry.person}
    rows: list[list[sheet.Cell]] = [[sheet.Verbatim(title) for title in gradebook.roster.heading]]
    for person in gradebook.roster.people:
        entry = graded.get(person.key)
        new: dict[str, sheet.Cell] = (
            {"grade": entry.points, FEEDBACK: moodle.feedback(entry.submission)} if entry else {}
        )
        cells = zip(heading, person.cells, strict=False)
        rows.append([new.get(title, cell if "name" in title else sheet.Verbatim(cell)) for title, cell in cells])
    return sheet.write(rows)


def remark(summary: ClassSummary, gradebook: Gradebook) -> str:
    """A sentence where Moodle's worksheet is out of other points, for which grades are none; '' where it is not."""
    roster = gradebook.roster
    cells = dict(zip(titles(roster.heading), roster.people[0].cells, strict=False)) if roster else {}
    maximum = cells.get("maximum grade", "").replace(",", ".")
    most = gradebook.possible(summary)
    if not re.fullmatch(r"\d+(\.\d+)?", maximum) or float(maximum) == most:
        return ""
    points = plain(float(maximum))
    return (
        f"moodle/worksheet.csv is not written: Moodle's worksheet is out of {points} points, and these grades are out of {most}; "
        f"--max-points {points} scales them."
    )

"""What `grader class` makes of its results, and the folder that it writes to: nothing in it is overwritten without a copy."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.cli.exits import say
from grader.course.course import open_course
from grader.grading import lateness, pseudonyms
from grader.grading.copies import add_copies
from grader.grading.journal import JournalContents
from grader.grading.marks import apply_overrides, apply_weights, read_overrides
from grader.reports import attention, canvas, moodle, report_files, returns, sheet, text
from grader.reports.class_summary import ClassSummary, explain, remarks, ungraded
from grader.reports.gradebook import Gradebook
from grader.submission.discover import COLLECTED
from grader.util.errors import InputError
from grader.util.files import free_backup_path
from grader.util.words import join_names, pluralize

JOURNAL = "journal.jsonl"
OVERRIDES = "overrides.csv"  # marks by hand
GRADES = "grades.csv"


def prepare_folder(out: Path, folder: Path, resume: bool, earlier: JournalContents | None) -> list[str]:
    """Makes the folder ready for a run. earlier: the journal in it. Returns: sentences on what was done with an earlier run.

    Raises: InputError where it holds something else, an unfinished run without --resume, or lies in the class's folder.
    """
    if out.resolve().is_relative_to(folder.resolve()) or folder.resolve().is_relative_to(out.resolve()):
        raise InputError(
            f"one of {out} and {folder} is inside the other; --out needs a folder outside the learners' folder."
        )
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out needs a folder.")
    if not out.exists() or not any(out.iterdir()):
        return [f"{out} has no earlier run, so everything is graded."] if resume else []
    if earlier is None:
        raise InputError(f"{out} contains something other than a run of `grader class`; name an empty or a new folder.")
    if resume:
        return []
    if not earlier.finished:
        raise InputError(
            f"{out} holds a run that was not finished, with {len(earlier.results)} results: add --resume to "
            "continue it, or name another folder."
        )
    backup = free_backup_path(out)
    out.rename(backup)
    by_hand = f" So are its marks by hand; to keep them, copy {OVERRIDES} to {out} and give --resume."
    return [_backup_note(backup) + by_hand * (backup / OVERRIDES).is_file()]


def copy_folder(out: Path) -> str:
    """Copies the folder beside itself, before a run that goes on replaces reports in it. Returns: a sentence that says so."""
    backup = free_backup_path(out)
    shutil.copytree(out, backup)
    return _backup_note(backup)


def _backup_note(backup: Path) -> str:
    return f"the earlier run is kept in {backup}."


def write_reports(report: Any, scheme: Any, out: Path, folder_of_class: Path, learners: list) -> Any:
    """Puts the points on, writes every report, and returns the one that they show. learners: the class's inventory."""
    report = apply_weights(report, scheme.weights, scheme.partial)
    names = [(learner.key, learner.name, sheet.guard(learner.key), sheet.guard(learner.name)) for learner in learners]
    report = apply_overrides(report, read_overrides(open_course(), out / OVERRIDES), names)
    lessons = {lesson.name for submission in report.submissions for lesson in submission.lessons}
    notes = lateness.read(open_course(), folder_of_class, lessons)
    works = [(notes or {}).get(sheet.guard(learner.key), lateness.CollectedWork()) for learner in learners]
    submissions, sentences = lateness.add_lateness(works, learners, report.submissions, scheme)
    if notes is None:
        table = folder_of_class / COLLECTED
        sentences.append(f"{table} is not a table that `grader collect` wrote, so it is not known who was late.")
    aliases = pseudonyms.choose(out, [submission.name for submission in report.submissions]) if scheme.anonymous else {}
    report = replace(report, submissions=add_copies(learners, works, submissions, aliases))
    gradebook = Gradebook(scheme.max_points, scheme.assignment, anonymous=scheme.anonymous)
    if not gradebook.anonymous:
        gradebook = replace(gradebook, roster=scheme.roster, handed_in=[tuple(work.paths.values()) for work in works])
    summary = ClassSummary(report)
    books = () if gradebook.anonymous else (canvas, moodle, returns)
    remarks_on_books = [*gradebook.remarks(summary), *filter(None, (book.remark(summary, gradebook) for book in books))]
    changes = "" if scheme.anonymous else _total_changes(out / GRADES, summary)
    sentences += [*remarks_on_books, ungraded(summary), changes]
    say(*filter(None, sentences))
    report = replace(report, notes=(*report.notes, *remarks_on_books))
    if scheme.anonymous:
        report = pseudonyms.pseudonymize(report, aliases)
    report_files.write_all(open_course(), report, out, gradebook=gradebook, before_change=lambda: say(copy_folder(out)))
    return report


def _total_changes(path: Path, summary: ClassSummary) -> str:
    """A sentence on whose total is another than in the reports that are there; '' where there are none."""
    rows = csv.DictReader(path.read_text(encoding="utf-8", errors="replace").splitlines()) if path.is_file() else ()
    old_totals = {row["learner"]: row["total"] for row in rows if row.get("learner") and row.get("total")}
    pairs = zip(summary.labels, summary.report.submissions, strict=True)
    totals = ((label, old_totals.get(sheet.guard(label)), submission.score) for label, submission in pairs)
    changes = [f"{label} {old} → {new}" for label, old, new in totals if old and new is not None and old != str(new)]
    return f"Totals that changed: {join_names(changes, 40)}." if changes else ""


def summary(report: Any, out: Path) -> str:
    """What the terminal shows at the end: how many, how well, and what the room gets wrong."""
    summary = ClassSummary(report)
    scores = "nobody has a score"
    if summary.mean is not None and summary.median is not None:
        scores = f"mean {100 * summary.mean:.0f} %, median {100 * summary.median:.0f} %"
    count = pluralize(len(report.submissions), "learner")
    lines = [*remarks(summary), f"{count}, {scores}; isolation: {report.isolation}."]
    if summary.mistakes:
        lines += ["", "The most frequent mistakes:"]
    for mistake in summary.mistakes[:5]:
        exercises, sentence = ", ".join(mistake.exercises), text.one_line(explain(open_course(), mistake).sentence)
        lines.append(f"  {len(mistake.learners):>4} × {mistake.id} ({exercises}): {sentence}".rstrip(": "))
    lines += ["", *attention.lines(open_course(), report)]
    location = (
        f"The reports are in {text.one_line(str(out))}: open report.html, and similarity.html for code that is alike."
    )
    return text.defuse("\n".join([*lines, "", location]))

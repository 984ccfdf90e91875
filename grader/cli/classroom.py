"""`grader class`: grades a folder of learners, keeps each result at once, writes every report."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.cli import class_reports, class_settings
from grader.cli.class_reports import JOURNAL, OVERRIDES
from grader.cli.exits import NOT_GRADED, STOPPED, complain, say
from grader.cli.grade import outcome
from grader.course.course import open_course
from grader.grading import batch, class_folder, scheme
from grader.grading.dask_pool import Cluster
from grader.grading.grade import Settings
from grader.grading.journal import Journal, accept_settings, from_line, load
from grader.grading.marks import check_weights, read_overrides
from grader.reports import text
from grader.sandbox.isolation import REMEDY, SandboxError, TooOpen
from grader.util import libraries
from grader.util.errors import InputError
from grader.util.words import join_names


def run(options: argparse.Namespace) -> int:
    course, resume = open_course(), bool(options.resume or options.rescore or options.regrade)
    entries, strays = class_folder.entries(options.folder)
    regrade_keys = class_folder.keys_of(options.regrade, entries)
    journal = options.out / JOURNAL
    earlier = load(journal) if journal.is_file() else None
    base = earlier.settings if earlier and resume else None
    run_options = class_settings.named_options(options)
    option_files = {value.name for value, _ in run_options.values() if isinstance(value, Path)}
    strays = [name for name in strays if name not in option_files]
    run_settings = class_settings.read_settings(run_options, options.folder, [entry.name for entry in entries], base)
    learners = class_folder.take_inventory(course, entries)
    notes: list[str] = []
    if run_settings.set_by["lessons"] == class_settings.HALF:
        lessons, notes = class_folder.choose_lessons(course, learners, run_settings.lessons)
        run_settings = replace(run_settings, lessons=lessons)
    if strays:
        say(f"not graded, because they are neither a learner's folder nor a notebook: {join_names(strays)}.")
    say(*class_folder.same_name_warnings(learners))
    settings = class_settings.grading_settings(run_settings)
    exercises = {lesson: settings.exercises_of(lesson) for lesson in run_settings.lessons}
    if empty := [lesson for lesson, names in exercises.items() if not names]:
        raise InputError(f"no exercise of lesson {empty[0][:2]} counts: --core and --exercises leave none of it.")
    check_weights(run_settings.weights, [name for names in exercises.values() for name in names])
    if base:
        if changes := accept_settings(journal, base, run_settings, options.rescore):
            say(f"the marking scheme of this run changes: {', '.join(changes.values())}.")
        if summary := scheme.summary(run_settings):
            say(f"the run continues with {summary}.")
    if resume:  # what is wrong with them is said before anything is graded
        marks = read_overrides(course, options.out / OVERRIDES)
        old_weights, new_weights = (base or run_settings).weights or {}, run_settings.weights or {}
        by_hand = {name for (_, name), (_, mark) in marks.items() if mark.points is not None}
        if stale := sorted(name for name in by_hand if old_weights.get(name) != new_weights.get(name)):
            say(f"the points of {join_names(stale)} change; marks by hand stay as they are.")
    _require_torch(run_settings.lessons)
    say(*class_reports.prepare_folder(options.out, options.folder, resume, earlier), *notes)
    reason = "Not graded, because it is neither a learner's folder nor a notebook."
    remarks = {
        "notes": tuple(filter(None, [*notes, scheme.describe_choices(run_settings)])),
        "not_graded": tuple((name, reason) for name in strays),
    }
    try:
        with closing(_pool(options, settings)) as pool:
            return _grade(options, learners, regrade_keys, run_settings, settings, pool, remarks)
    except TooOpen as error:
        return complain(f"{error}; nothing was graded below it. {REMEDY}", NOT_GRADED)
    except SandboxError as error:
        return complain(f"{error}.", NOT_GRADED)
    except KeyboardInterrupt:
        return complain(f"stopped. {_resume_note(options.out)}", STOPPED)
    except OSError as error:
        path, note = error.filename or options.out, _resume_note(options.out)
        raise InputError(f"{path}: {error.strerror or error}. {note}") from None


def _resume_note(out: Path) -> str:
    """What a run that was cut short leaves behind."""
    if not (out / JOURNAL).is_file():
        return "Nothing was graded."
    return f"What was graded is kept in {out}; to continue, run the same command with --resume."


def _require_torch(lessons: Sequence[str]) -> None:
    """Raises: InputError where a lesson needs torch and there is none: it would be said of every learner."""
    numbers = [lesson[:2] for lesson in lessons if open_course().needs_torch(lesson)]
    if numbers and not libraries.installed("torch"):
        subject = f"lesson {numbers[0]} needs" if len(numbers) == 1 else f"lessons {', '.join(numbers)} need"
        raise InputError(f"{subject} torch, and nothing was graded: {libraries.how_to_install('torch')}")


def _pool(options: argparse.Namespace, settings: Settings) -> Any:
    if options.scheduler:
        return Cluster(settings.course, options.scheduler)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return batch.LocalPool(options.jobs or cores, settings.torch, settings.course.probe_texts())


def _grade(
    options: argparse.Namespace,
    learners: list[class_folder.InventoryEntry],
    regrade_keys: Collection[str],
    run_settings: scheme.RunSettings,
    settings: Settings,
    pool: Any,
    remarks: dict[str, Any],
) -> int:
    """Grades what the journal doesn't have, then writes all reports from it. remarks: fields of the report."""
    run_settings = replace(run_settings, isolation=batch.isolation_of(pool, settings))
    with Journal(options.out / JOURNAL, run_settings, options.rescore) as journal:
        if journal.dropped:
            say(f"{journal.dropped} lines of {journal.path} can't be read; those submissions are graded again.")
        results, rest, sentences = class_folder.plan_resume(learners, journal.results, regrade_keys)
        say(*sentences)
        if results:
            _show(f"{len(results)} results are already in the journal; {len(rest)} to grade.\n")
        with _progress(len(rest)) as tell:
            for line in batch.grade_all(rest, settings, pool):
                journal.add(line)
                result = from_line(line)
                results[result.key] = result
                tell(result.report)
        pool.close()  # before the reports, for which this process imports the lessons
        report = batch.report_of([results[learner.key] for learner in learners], settings)
        report = replace(report, **remarks)
        report = class_reports.write_reports(report, run_settings, options.out, options.folder, learners)
        journal.finish(learner.key for learner in learners)
    print(class_reports.summary(report, options.out))
    code = outcome(report, options.min_score, everything=False)
    return complain("to grade these again, run the same command with --resume.", code) if code == NOT_GRADED else code


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Any], None]]:
    """A function that tells of each report: in a terminal on one line that is written over, else a line each.

    What it is worth is not known yet: weights, marks by hand and penalties come on top.
    """
    start_s, in_place, count = time.monotonic(), sys.stderr.isatty(), 0

    def tell(report: Any) -> None:
        nonlocal count
        count += 1
        rate = 60 * count / max(time.monotonic() - start_s, 0.001)
        name, passed = text.defuse(text.one_line(report.name, 60)), sum(verdict.passed for verdict in report.verdicts)
        line = f"{count} of {total}, {rate:.0f} a minute, {(total - count) * 60 / rate:.0f} s left"
        line += f" · {name}: {passed} of {len(report.verdicts)} passed"
        width = shutil.get_terminal_size((100, 24)).columns - 1
        _show(f"\r{line[:width]:<{width}}" if in_place else f"{line}\n")

    try:
        yield tell
    finally:
        if in_place and count:
            _show("\n")


def _show(line: str) -> None:
    print(line, end="", file=sys.stderr, flush=True)

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
    listed, passed_over = class_folder.entries(options.folder)
    again = class_folder.keys_of(options.regrade, listed)
    journal = options.out / JOURNAL
    earlier = load(journal) if journal.is_file() else None
    begun = earlier.settings if earlier and resume else None
    named = class_settings.named_options(options)
    own = {value.name for value, _ in named.values() if isinstance(value, Path)}
    passed_over = [name for name in passed_over if name not in own]
    run_settings = class_settings.read_settings(named, options.folder, [one.name for one in listed], begun)
    learners = class_folder.take_inventory(course, listed)
    notes: list[str] = []
    if run_settings.set_by["lessons"] == class_settings.HALF:
        lessons, notes = class_folder.choose_lessons(course, learners, run_settings.lessons)
        run_settings = replace(run_settings, lessons=lessons)
    if passed_over:
        say(f"not graded, because they are neither a learner's folder nor a notebook: {join_names(passed_over)}.")
    say(*class_folder.same_name_warnings(learners))
    settings = class_settings.grading_settings(run_settings)
    counting = {lesson: settings.exercises_of(lesson) for lesson in run_settings.lessons}
    if empty := [lesson for lesson, names in counting.items() if not names]:
        raise InputError(f"no exercise of lesson {empty[0][:2]} counts: --core and --exercises leave none of it.")
    check_weights(run_settings.weights, [name for names in counting.values() for name in names])
    if begun:
        if changed := accept_settings(journal, begun, run_settings, options.rescore):
            say(f"the marking scheme of this run changes: {', '.join(changed.values())}.")
        if kept := scheme.summary(run_settings):
            say(f"the run continues with {kept}.")
    if resume:  # what is wrong with them is said before anything is graded
        marks = read_overrides(course, options.out / OVERRIDES)
        was, now = (each.weights or {} for each in (begun or run_settings, run_settings))
        given = {name for (_, name), (_, mark) in marks.items() if mark.points is not None}
        if stale := sorted(name for name in given if was.get(name) != now.get(name)):
            say(f"the points of {join_names(stale)} change; marks by hand stay as they are.")
    _with_torch(run_settings.lessons)
    say(*class_reports.prepare_folder(options.out, options.folder, resume, earlier), *notes)
    why = "Not graded, because it is neither a learner's folder nor a notebook."
    remarks = {
        "notes": tuple(filter(None, [*notes, scheme.describe_choices(run_settings)])),
        "not_graded": tuple((name, why) for name in passed_over),
    }
    try:
        with closing(_pool(options, settings)) as pool:
            return _grade(options, learners, again, run_settings, settings, pool, remarks)
    except TooOpen as error:
        return complain(f"{error}; nothing was graded below it. {REMEDY}", NOT_GRADED)
    except SandboxError as error:
        return complain(f"{error}.", NOT_GRADED)
    except KeyboardInterrupt:
        return complain(f"stopped. {_kept(options.out)}", STOPPED)
    except OSError as error:
        raise InputError(f"{error.filename or options.out}: {error.strerror or error}. {_kept(options.out)}") from None


def _kept(out: Path) -> str:
    """What a run that was cut short leaves behind."""
    if not (out / JOURNAL).is_file():
        return "Nothing was graded."
    return f"What was graded is kept in {out}; to continue, run the same command with --resume."


def _with_torch(lessons: Sequence[str]) -> None:
    """Raises: InputError where a lesson needs torch and there is none: it would be said of every learner."""
    needed = [lesson[:2] for lesson in lessons if open_course().needs_torch(lesson)]
    if needed and not libraries.installed("torch"):
        few = f"lesson {needed[0]} needs" if len(needed) == 1 else f"lessons {', '.join(needed)} need"
        raise InputError(f"{few} torch, and nothing was graded: {libraries.how_to_install('torch')}")


def _pool(options: argparse.Namespace, settings: Settings) -> Any:
    if options.scheduler:
        return Cluster(settings.course, options.scheduler)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return batch.LocalPool(options.jobs or cores, settings.torch, settings.course.probe_texts())


def _grade(
    options: argparse.Namespace,
    learners: list[class_folder.InventoryEntry],
    again: Collection[str],
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
        results, left, sentences = class_folder.plan_resume(learners, journal.results, again)
        say(*sentences)
        if results:
            _show(f"{len(results)} results are already in the journal; {len(left)} to grade.\n")
        with _progress(len(left)) as tell:
            for line in batch.grade_all(left, settings, pool):
                journal.add(line)
                result = from_line(line)
                results[result.key] = result
                tell(result.report)
        pool.close()  # before the reports, for which this process imports the lessons
        report = batch.report_of([results[one.key] for one in learners], settings)
        report = replace(report, **remarks)
        report = class_reports.write_reports(report, run_settings, options.out, options.folder, learners)
        journal.finish(one.key for one in learners)
    print(class_reports.summary(report, options.out))
    code = outcome(report, options.min_score, everything=False)
    return complain("to grade these again, run the same command with --resume.", code) if code == NOT_GRADED else code


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Any], None]]:
    """A function that tells of each report: in a terminal on one line that is written over, else a line each.

    What it is worth is not known yet: weights, marks by hand and penalties come on top.
    """
    started, over, done = time.monotonic(), sys.stderr.isatty(), 0

    def tell(report: Any) -> None:
        nonlocal done
        done += 1
        rate = 60 * done / max(time.monotonic() - started, 0.001)
        name, passed = text.defuse(text.one_line(report.name, 60)), sum(verdict.passed for verdict in report.verdicts)
        line = f"{done} of {total}, {rate:.0f} a minute, {(total - done) * 60 / rate:.0f} s left"
        line += f" · {name}: {passed} of {len(report.verdicts)} passed"
        width = shutil.get_terminal_size((100, 24)).columns - 1
        _show(f"\r{line[:width]:<{width}}" if over else f"{line}\n")

    try:
        yield tell
    finally:
        if over and done:
            _show("\n")


def _show(shown: str) -> None:
    print(shown, end="", file=sys.stderr, flush=True)

"""`grader class`: grades a folder of learners, keeps each result at once, writes every report."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.cli import class_reports, class_settings
from grader.cli.class_reports import JOURNAL, OVERRIDES
from grader.cli.exits import NOT_GRADED, STOPPED, complain, say
from grader.cli.grade import outcome
from grader.course.course import open_course
from grader.grading import batch, scheme
from grader.grading.class_folder import entries, keys_of, plan_resume, same_name_warnings
from grader.grading.dask_pool import Cluster
from grader.grading.journal import Journal, accept_settings, from_line, load
from grader.grading.marks import check_weights, read_overrides
from grader.reports import text
from grader.sandbox.isolation import REMEDY, SandboxError, TooOpen
from grader.util import libraries
from grader.util.errors import InputError
from grader.util.words import join_names


def run(options: argparse.Namespace) -> int:
    options.resume = options.resume or options.rescore or bool(options.regrade)
    learners, passed_over = entries(options.folder)
    options.regrade = keys_of(options.regrade, learners)
    journal = options.out / JOURNAL
    earlier = load(journal) if journal.is_file() else None
    begun = (earlier.settings or {}) if earlier and options.resume else {}
    about, chosen = class_settings.resolve_settings(options, learners, begun)
    own = {path.name for path in (options.roster, options.weights) if isinstance(path, Path)}
    passed_over = [name for name in passed_over if name not in own]
    if passed_over:
        say(f"not graded, because they are neither a learner's folder nor a notebook: {join_names(passed_over)}.")
    say(*same_name_warnings(learners))
    settings = class_settings.settings_of(about, options.require_isolation or "full")
    counting = {lesson: settings.counted(lesson) for lesson in about["lessons"]}
    if empty := [lesson for lesson, names in counting.items() if not names]:
        raise InputError(f"no exercise of lesson {empty[0][:2]} counts: --core and --exercises leave none of it.")
    check_weights(about["weights"], [name for names in counting.values() for name in names])
    if begun:
        if changed := accept_settings(journal, begun, about, options.rescore):
            say(f"the marking scheme of this run changes: {', '.join(changed.values())}.")
        if kept := scheme.summary(about):
            say(f"the run continues with {kept}.")
    if options.resume:  # what is wrong with them is said before anything is graded
        marks = read_overrides(open_course(), options.out / OVERRIDES)
        was, now = (each.get("weights") or {} for each in (begun, about))
        given = {name for (_, name), (_, mark) in marks.items() if mark.points is not None}
        if stale := sorted(name for name in given if was.get(name) != now.get(name)):
            say(f"the points of {join_names(stale)} change; marks by hand stay as they are.")
    _with_torch(about["lessons"])
    say(*class_reports.prepare_folder(options.out, options.folder, options.resume, earlier), *chosen)
    try:
        with closing(_pool(options, settings)) as pool:
            return _grade(options, learners, settings, pool, chosen, about, passed_over)
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


def _with_torch(lessons: list[str]) -> None:
    """Raises: InputError where a lesson needs torch and there is none: it would be said of every learner."""
    needed = [lesson[:2] for lesson in lessons if open_course().needs_torch(lesson)]
    if needed and not libraries.installed("torch"):
        few = f"lesson {needed[0]} needs" if len(needed) == 1 else f"lessons {', '.join(needed)} need"
        raise InputError(f"{few} torch, and nothing was graded: {libraries.how_to_install('torch')}")


def _pool(options: argparse.Namespace, settings: Any) -> Any:
    if options.scheduler:
        return Cluster(settings.course, options.scheduler)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return batch.LocalPool(options.jobs or cores, settings.torch, settings.course.probe_texts())


def _grade(
    options: argparse.Namespace,
    learners: list,
    settings: Any,
    pool: Any,
    chosen: list[str],
    about: dict,
    beside: list[str],
) -> int:
    """Grades what the journal doesn't have, then writes all reports from it."""
    about["isolation"] = batch.isolation_of(pool, settings)
    with Journal(options.out / JOURNAL, about, options.rescore) as journal:
        if journal.dropped:
            say(f"{journal.dropped} lines of {journal.path} can't be read; those submissions are graded again.")
        results, left, sentences = plan_resume(learners, journal.results, options.regrade)
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
        notes = filter(None, [*chosen, scheme.describe_choices(about)])
        why = "Not graded, because it is neither a learner's folder nor a notebook."
        report = replace(report, notes=tuple(notes), not_graded=tuple((name, why) for name in beside))
        marking = scheme.MarkingScheme.from_settings(about)
        report = class_reports.write_reports(report, marking, options.out, options.folder, learners)
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

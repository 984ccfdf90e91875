"""`grader class`: grades a folder of learners, keeps each result at once, writes every report."""

from __future__ import annotations

import argparse
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.cli.arguments import (
    command,
    exercise_list,
    lesson_list,
    name_list,
    natural,
    positive,
    seconds,
    threshold,
    whole,
)
from grader.cli.exits import NOT_GRADED, STOPPED, complain, say
from grader.cli.grade import outcome
from grader.course import registry
from grader.util.errors import InputError

HALF = "half of the learners"  # who chose the lessons, in the journal's head


def add(commands: Any) -> None:
    made = command(commands, "class", _class, "grade a folder of learners and write every report")
    made.add_argument("folder", type=Path, metavar="FOLDER", help="one subfolder or one notebook per learner")
    made.add_argument("--out", type=Path, required=True, metavar="REPORTS", help="the folder for the reports and the journal")
    made.add_argument("--jobs", type=whole, default=None, metavar="N", help="submissions graded at once (default: one per core)")
    made.add_argument("--resume", action="store_true", help="continue the run in REPORTS; what has been graded is kept")
    made.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler, such as tcp://10.0.0.1:8786, instead of --jobs")
    made.add_argument("--timeout", type=seconds, default=None, metavar="S",
                      help="wall-clock seconds for each exercise and each cell")  # fmt: skip
    made.add_argument("--seed", type=natural, default=registry.SEED, help="seed of the inputs, one for everybody (default: %(default)s)")
    made.add_argument(
        "--lessons", type=lesson_list, metavar="A,B",
        help="grade these; a lesson not handed in counts as missing (default: those that at least half of the learners handed in)",
    )
    made.add_argument("--exercises", type=exercise_list, metavar="A,B", help="only these exercises count; their lessons are graded")
    made.add_argument("--weights", type=Path, metavar="FILE",
                      help="your own points: lines such as 'softmax_rows,3'; other exercises keep the course's")  # fmt: skip
    made.add_argument("--partial", action="store_true",
                      help="a failed exercise earns the share of its cases that agree (default: nothing)")  # fmt: skip
    made.add_argument("--anonymous", action="store_true",
                      help="use pseudonyms in every report and write no grade book; REPORTS/names.csv says who is who")  # fmt: skip
    made.add_argument("--regrade", type=name_list, metavar="A,B", default=(),
                      help="grade these learners again and keep all other results; implies --resume")  # fmt: skip
    made.add_argument("--roster", type=Path, metavar="FILE", help="CSV of the enrolled learners, exported from the grade book")
    made.add_argument("--by", default="", metavar="COLUMN", help="the roster's column that names the folders")
    made.add_argument("--assignment", default="", metavar="TITLE", help="the assignment's name in the grade book; in Canvas 'Title (1234)'")
    made.add_argument(
        "--max-points", type=positive, default=None, metavar="N", help="points for full marks in grade books"
    )
    made.add_argument("--min-score", type=threshold, metavar="N",
                      help="succeed if every learner has at least N points, or N%% of them")  # fmt: skip
    made.add_argument("--require-isolation", choices=("process", "full"), default="full", metavar="LEVEL",
                      help="refuse to grade below this level (default: full); process, where you trust what was handed in")  # fmt: skip


def _class(options: argparse.Namespace) -> int:
    from grader.cli.out import prepared
    from grader.grading import batch
    from grader.grading.grade import asked
    from grader.grading.kept import keys_of
    from grader.grading.marks import checked, read_weights
    from grader.grading.roster import entries, same_names, shown
    from grader.sandbox.isolation import REMEDY, SandboxError

    options.resume = options.resume or bool(options.regrade)
    found, passed_over = entries(options.folder)
    options.regrade = keys_of(options.regrade, found)
    options.weights = read_weights(options.weights) if options.weights else None
    options.roster = _roster(options)
    options.lessons = _lessons(options.lessons, options.exercises)
    if passed_over:
        say(f"not graded, because they are neither a learner's folder nor a notebook: {shown(passed_over)}.")
    for sentence in same_names(found):
        say(sentence)
    chosen = None if options.lessons else _chosen(options, found)
    settings = _settings(options, chosen)
    checked(options.weights, [name for lesson in settings.lessons for name in asked(lesson, settings.exercises)])
    for sentence in prepared(options.out, options.folder, options.resume):
        say(sentence)
    for sentence in chosen.sentences() if chosen else ():
        say(sentence)
    try:
        with closing(_pool(options, settings)) as pool:
            return _graded(options, found, settings, pool, chosen)
    except (batch.TooOpen, SandboxError) as error:
        return complain(f"{error}; nothing was graded below it. {REMEDY}" if isinstance(error, batch.TooOpen) else f"{error}.", NOT_GRADED)
    except KeyboardInterrupt:
        return complain(
            f"stopped. What was graded is kept in {options.out}; to continue, run the same command with --resume.", STOPPED
        )
    except OSError as error:
        raise InputError(f"{error.filename or options.out}: {error.strerror or error}. What was graded is kept in "
                         f"{options.out}; fix that, then run the same command with --resume.") from None  # fmt: skip


def _roster(options: argparse.Namespace) -> Any:
    from grader.submission import enrolled

    if options.anonymous and (options.roster or options.assignment):
        raise InputError("--anonymous writes no grade book, so --roster and --assignment have no use; leave one of them out.")
    if options.by and not options.roster:
        raise InputError("--by names a column of the roster, so it needs --roster FILE.")
    roster = enrolled.read(options.roster, options.by) if options.roster else None
    for sentence in roster.notes if roster else ():
        say(sentence)
    return roster


def _lessons(lessons: tuple[str, ...] | None, exercises: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The lessons to grade: those named, else those of the exercises named. Raises: InputError where these are in none of those."""
    theirs = {name: registry.lesson_of(name) for name in exercises or ()}
    outside = [name for name, lesson in theirs.items() if lessons and lesson not in lessons]
    if outside:
        raise InputError(f"{outside[0]} belongs to lesson {theirs[outside[0]][:2]}, which --lessons leaves out; name it there, too, "
                         "or leave --lessons out.")  # fmt: skip
    # A lesson without an exercise that counts would be an empty column.
    return tuple(sorted(set(theirs.values()))) if theirs else lessons


def _chosen(options: argparse.Namespace, found: list) -> Any:
    """The lessons that at least half of the learners handed in; those of the run that goes on where one does."""
    from grader.cli.out import JOURNAL
    from grader.grading.handed_in import choice
    from grader.grading.journal import begun_with

    journal = options.out / JOURNAL
    begun = begun_with(journal) if options.resume and journal.is_file() else {}
    return choice(found, begun["lessons"] if begun.get("lessons_chosen_by") == HALF else None)


def _settings(options: argparse.Namespace, chosen: Any) -> Any:
    from grader.grading.batch import Settings

    limits = {} if options.timeout is None else {"timeout_s": options.timeout}
    lessons = chosen.lessons if chosen else options.lessons
    return Settings(lessons, options.exercises, options.seed, require=options.require_isolation, **limits)


def _pool(options: argparse.Namespace, settings: Any) -> Any:
    if options.scheduler:
        from grader.grading.dask_pool import Cluster

        return Cluster(options.scheduler)
    from grader.grading.batch import Local

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Local(options.jobs or cores, settings.torch)


def _graded(options: argparse.Namespace, found: list, settings: Any, pool: Any, chosen: Any) -> int:
    """Grades what the journal doesn't have, then writes all reports from it."""
    from grader.cli import class_reports
    from grader.cli.out import JOURNAL
    from grader.cli.progress import Progress
    from grader.grading import batch
    from grader.grading.dask_pool import course_digest
    from grader.grading.journal import Journal
    from grader.grading.kept import kept

    held = batch.isolation_of(pool, settings)
    about = {
        "course": course_digest(), "seed": settings.seed, "timeout_s": settings.timeout_s, "isolation": held,
        "lessons": list(settings.lessons), "lessons_chosen_by": HALF if chosen else "--exercises" if settings.exercises else "--lessons",
        "exercises": sorted(settings.exercises or ()) or None,
    }  # fmt: skip
    with Journal(options.out / JOURNAL, about) as journal:
        if journal.dropped:
            say(f"{journal.dropped} lines of {journal.path} can't be read; those submissions are graded again.")
        before = kept(found, journal.results, options.regrade)
        for sentence in before.sentences:
            say(sentence)
        results = dict(before.results)
        with Progress(len(before.left), len(results)) as progress:
            for line in batch.graded(before.left, settings, pool):
                journal.add(line)
                result = batch.read(line)
                results[result.key] = result
                progress.tell(result.report)
        pool.close()  # before the reports, for which this process imports the lessons
        report = batch.report_of([results[one.key] for one in found], settings)
        report = class_reports.written(replace(report, notes=chosen.sentences() if chosen else ()), options)
        journal.finish()
    print(class_reports.summary(report, options.out))
    code = outcome(report, options.min_score, everything=False)
    return complain("to grade these again, run the same command with --resume.", code) if code == NOT_GRADED else code

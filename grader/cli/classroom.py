"""`grader class`: grades a folder of learners, keeps each result at once, writes every report."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from grader.cli.arguments import (
    NONE,
    command,
    exercise_list,
    lesson_list,
    name_list,
    natural,
    or_none,
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
# Each option changes marks or files, and the journal keeps it under this name, or it is about this call alone, for this reason.
OF_THE_RUN = {
    "course": "course", "seed": "seed", "timeout": "timeout_s", "lessons": "lessons", "exercises": "exercises", "weights": "weights",
    "partial": "partial", "max_points": "max_points", "assignment": "assignment", "roster": "roster", "by": "roster",
    "anonymous": "anonymous", "require_isolation": "isolation",
}  # fmt: skip
OF_THE_CALL = {
    "folder": "each result has the digest of what was handed in, and what changed is graded again", "out": "the journal is in it",
    "jobs": "verdicts are the same on any number of processes", "scheduler": "verdicts are the same on any machine",
    "resume": "continues", "regrade": "continues", "rescore": "continues", "min_score": "decides the exit code and what the terminal shows",
}  # fmt: skip


def add(commands: Any) -> None:
    made = command(commands, "class", _class, "grade a folder of learners and write every report")
    made.add_argument("folder", type=Path, metavar="FOLDER", help="one subfolder or one notebook per learner")
    made.add_argument("--out", type=Path, required=True, metavar="REPORTS", help="the folder for the reports and the journal")
    made.add_argument("--jobs", type=whole, default=None, metavar="N", help="submissions graded at once (default: one per core)")
    made.add_argument("--resume", action="store_true", help="continue the run in REPORTS; what has been graded is kept")
    made.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler, such as tcp://10.0.0.1:8786, instead of --jobs")
    made.add_argument("--timeout", type=seconds, default=None, metavar="S",
                      help="wall-clock seconds for each exercise and each cell")  # fmt: skip
    made.add_argument("--seed", type=natural, help=f"seed of the inputs, one for everybody (default: {registry.SEED})")
    made.add_argument(
        "--lessons", type=lesson_list, metavar="A,B",
        help="grade these; a lesson not handed in counts as missing (default: those that at least half of the learners handed in)",
    )
    made.add_argument("--exercises", type=exercise_list, metavar="A,B", help="only these exercises count; their lessons are graded")
    made.add_argument("--weights", type=or_none(Path), metavar="FILE",
                      help="your own points: lines such as 'softmax_rows,3'; other exercises keep the course's")  # fmt: skip
    made.add_argument("--partial", action=argparse.BooleanOptionalAction,
                      help="a failed exercise earns the share of its cases that agree (default: nothing)")  # fmt: skip
    made.add_argument("--anonymous", action=argparse.BooleanOptionalAction,
                      help="use pseudonyms in every report and write no grade book; REPORTS/names.csv says who is who")  # fmt: skip
    made.add_argument("--regrade", type=name_list, metavar="A,B", default=(),
                      help="grade these learners again and keep all other results; implies --resume")  # fmt: skip
    made.add_argument("--rescore", action="store_true",
                      help="change the marking scheme of the run in REPORTS to what is given here (--weights, --partial, --anonymous, "
                      "--roster, --assignment, --max-points; 'none' takes one back), without grading again; implies --resume")  # fmt: skip
    made.add_argument("--roster", type=or_none(Path), metavar="FILE", help="CSV of the enrolled learners, exported from the grade book")
    made.add_argument("--by", default="", metavar="COLUMN", help="the roster's column that names the folders")
    made.add_argument("--assignment", metavar="TITLE", help="the assignment's name in the grade book; in Canvas 'Title (1234)'")
    made.add_argument("--max-points", type=or_none(positive), metavar="N", help="points for full marks in grade books")
    made.add_argument("--min-score", type=threshold, metavar="N",
                      help="succeed if every learner has at least N points, or N%% of them")  # fmt: skip
    made.add_argument("--require-isolation", choices=("process", "full"), default="process", metavar="LEVEL",
                      help="full or process: refuse to grade below this level")  # fmt: skip


def _class(options: argparse.Namespace) -> int:
    from grader.cli.out import JOURNAL, prepared
    from grader.grading import batch
    from grader.grading.grade import asked
    from grader.grading.journal import begun_with
    from grader.grading.kept import keys_of
    from grader.grading.marks import checked
    from grader.grading.roster import entries, same_names, shown
    from grader.sandbox.sandbox import SandboxError

    options.resume = options.resume or options.rescore or bool(options.regrade)
    found, passed_over = entries(options.folder)
    options.regrade = keys_of(options.regrade, found)
    journal = options.out / JOURNAL
    begun = begun_with(journal) if options.resume and journal.is_file() else {}
    about, chosen = _settings(options, found, begun)
    if passed_over:
        say(f"not graded, because they are neither a learner's folder nor a notebook: {shown(passed_over)}.")
    for sentence in same_names(found):
        say(sentence)
    checked(about["weights"], [name for lesson in about["lessons"] for name in asked(lesson, about["exercises"])])
    for sentence in _continued(options, begun, about) if begun else ():
        say(sentence)
    for sentence in prepared(options.out, options.folder, options.resume):
        say(sentence)
    for sentence in chosen.sentences() if chosen else ():
        say(sentence)
    lessons, exercises = (about[key] and tuple(about[key]) for key in ("lessons", "exercises"))
    settings = batch.Settings(lessons, exercises, about["seed"], about["timeout_s"], options.require_isolation)
    try:
        with closing(_pool(options, settings)) as pool:
            return _graded(options, found, settings, pool, chosen, about, passed_over)
    except (batch.TooOpen, SandboxError) as error:
        return complain(
            f"{error}; nothing was graded below it." if isinstance(error, batch.TooOpen) else f"{error}.", NOT_GRADED
        )
    except KeyboardInterrupt:
        return complain(
            f"stopped. What was graded is kept in {options.out}; to continue, run the same command with --resume.", STOPPED
        )
    except OSError as error:
        raise InputError(f"{error.filename or options.out}: {error.strerror or error}. What was graded is kept in "
                         f"{options.out}; fix that, then run the same command with --resume.") from None  # fmt: skip


def _settings(options: argparse.Namespace, found: list, begun: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """What the run is graded and marked with, as its journal keeps it: what this call names, else what the run was begun with,
    else the defaults. Also the choice of lessons, None where somebody made it. Raises: InputError."""
    from grader.grading.dask_pool import course_digest
    from grader.grading.handed_in import choice
    from grader.grading.scheme import MarkingScheme
    from grader.sandbox.sandbox import TIMEOUT_S

    named = _named(options)
    if named.get("anonymous") and (named.get("roster") or named.get("assignment")):
        raise InputError("--anonymous writes no grade book, so --roster and --assignment have no use; leave one of them out.")
    about = {"seed": registry.SEED, "timeout_s": TIMEOUT_S, "exercises": None, **MarkingScheme().settings(), **begun, **named}
    about["course"] = course_digest()
    by = "--exercises" if "exercises" in named else "--lessons" if "lessons" in named else HALF
    by = about["lessons_chosen_by"] = begun.get("lessons_chosen_by", by)
    chosen = choice(found, begun.get("lessons")) if by == HALF else None
    about.setdefault("lessons", list(chosen.lessons) if chosen else [])
    return about, chosen


def _named(options: argparse.Namespace) -> dict[str, Any]:
    """Those of the journal's settings that this call names."""
    from grader.grading.marks import read_weights
    from grader.grading.scheme import MarkingScheme

    roster, lessons = _roster(options), _lessons(options.lessons, options.exercises)
    named = {
        "seed": options.seed, "timeout_s": options.timeout, "partial": options.partial, "anonymous": options.anonymous,
        "lessons": lessons and sorted(lessons), "exercises": options.exercises and sorted(options.exercises),
        "weights": options.weights if options.weights in (None, NONE) else read_weights(options.weights),
        "max_points": options.max_points, "assignment": options.assignment, "roster": roster,
    }  # fmt: skip
    plain = MarkingScheme().settings()
    return {key: plain[key] if value == NONE else value for key, value in named.items() if value is not None}


def _roster(options: argparse.Namespace) -> Any:
    from grader.submission import enrolled

    if options.by and not options.roster:
        raise InputError("--by names a column of the roster, so it needs --roster FILE.")
    if options.roster in (None, NONE):
        return options.roster
    roster = enrolled.read(options.roster, options.by)
    for sentence in roster.notes:
        say(sentence)
    return json.loads(json.dumps(asdict(roster)))  # as the journal gives it back


def _continued(options: argparse.Namespace, begun: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[str]:
    """What holds where a run continues. Raises: InputError where this call names other settings."""
    from grader.cli.out import JOURNAL
    from grader.grading import scheme
    from grader.grading.journal import compatible

    changed = compatible(options.out / JOURNAL, begun, about, options.rescore)
    if changed:
        yield f"the marking scheme of this run changes: {', '.join(changed.values())}."
    kept = scheme.summary(about)
    if kept:
        yield f"the run continues with {kept}."


def _lessons(lessons: tuple[str, ...] | None, exercises: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The lessons to grade: those named, else those of the exercises named. Raises: InputError where these are in none of those."""
    theirs = {name: registry.lesson_of(name) for name in exercises or ()}
    outside = [name for name, lesson in theirs.items() if lessons and lesson not in lessons]
    if outside:
        raise InputError(f"{outside[0]} belongs to lesson {theirs[outside[0]][:2]}, which --lessons leaves out; name it there, too, "
                         "or leave --lessons out.")  # fmt: skip
    # A lesson without an exercise that counts would be an empty column.
    return tuple(sorted(set(theirs.values()))) if theirs else lessons


def _pool(options: argparse.Namespace, settings: Any) -> Any:
    if options.scheduler:
        from grader.grading.dask_pool import Cluster

        return Cluster(options.scheduler)
    from grader.grading.batch import Local

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Local(options.jobs or cores, settings.torch)


def _graded(options: argparse.Namespace, found: list, settings: Any, pool: Any, chosen: Any, about: dict, beside: list[str]) -> int:
    """Grades what the journal doesn't have, then writes all reports from it."""
    from grader.cli import class_reports
    from grader.cli.out import JOURNAL
    from grader.cli.progress import Progress
    from grader.grading import batch
    from grader.grading.journal import Journal
    from grader.grading.kept import kept
    from grader.grading.scheme import MarkingScheme

    about["isolation"] = batch.isolation_of(pool, settings)
    with Journal(options.out / JOURNAL, about, options.rescore) as journal:
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
        report = replace(
            report, submissions=_collected(options.folder, found, report.submissions), notes=chosen.sentences() if chosen else (),
            not_graded=tuple((name, "Not graded, because it is neither a learner's folder nor a notebook.") for name in beside),
        )  # fmt: skip
        report = class_reports.written(report, MarkingScheme.of(about), options.out)
        journal.finish()
    print(class_reports.summary(report, options.out))
    code = outcome(report, options.min_score, everything=False)
    return complain("to grade these again, run the same command with --resume.", code) if code == NOT_GRADED else code


def _collected(folder: Path, found: list, reports: Sequence[Any]) -> tuple[Any, ...]:
    """The reports with what `grader collect` noted: what was late, and whose earlier attempts are kept aside."""
    from grader.grading import collected

    noted = collected.read(folder)
    made = []
    for one, report in zip(found, reports, strict=True):
        notes = noted.get(collected.cell(one.key), collected.CollectedNotes())
        older = "Earlier attempts are kept among the backups of `grader collect`." if notes.older else ""
        late = f"Handed in late, as the platform says: {', '.join(notes.late)}." if notes.late else ""
        made.append(replace(report, late=late, attention=(*report.attention, *filter(None, [older]))))
    return tuple(made)

"""The options of every command: the parser is made from them, and so are the settings that a journal keeps.

An option of `grader class` changes marks or files, and the journal keeps it (OF_THE_RUN), unless OF_THE_CALL says why it is about one call
alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from grader.cli.arguments import (
    duration,
    exercise_list,
    extensions,
    lesson_list,
    moment,
    name_list,
    natural,
    or_none,
    points,
    port,
    positive,
    requirement,
    seconds,
    share,
    threshold,
    web_address,
    whole,
)
from grader.course.spec import SEED
from grader.room import PORT

BUILDS_AT_ONCE = 2
SWITCH = {"action": "store_true"}
YES_OR_NO: dict[str, Any] = {"action": argparse.BooleanOptionalAction}


class Option(NamedTuple):
    """An option or, without dashes, an argument by position.

    details: what argparse is told of it. table: what reads it where class.toml has a table of it; None: it has none.
    """

    flags: list[str]
    details: dict[str, Any]
    table: Callable[[Any], Any] | None = None

    @property
    def attribute(self) -> str:
        """Its name among the options that a command is run with."""
        return self.flags[-1].lstrip("-").replace("-", "_")


def option(flags: str, help: str, metavar: str = "", type: Any = None, *, table: Any = None, **details: Any) -> Option:
    """flags: with a space between '-j' and '--jobs'."""
    details |= {"help": help} | ({"metavar": metavar} if metavar else {}) | ({"type": type} if type else {})
    return Option(flags.split(), details, table)


def lessons_option(help: str, **more: Any) -> Option:
    return option("--lessons", help, "A,B", lesson_list, **more)


def isolation_option(help: str, default: str | None = None) -> Option:
    return option("--require-isolation", help, "LEVEL", choices=("process", "full"), default=default)


SEED_OPTION = option("--seed", "seed of the inputs (default: %(default)s)", type=natural, default=SEED)
TIMEOUT = option("--timeout", "wall-clock seconds for each exercise and each cell", "S", seconds)
BY = option("--by", "the roster's column that names the folders", "COLUMN")
CORE = option("--core", "only the core's exercises count, not the further ones", **YES_OR_NO)
FOLDER = option("--folder", "where the notebooks are (default: notebooks/, or else the current folder)", type=Path)

GRADE = [
    option(
        "paths",
        "a notebook, or one learner's folder of notebooks (default, in a session of `make lab`: its folder)",
        "PATH",
        nargs="*",
    ),
    option("--json", "write the results as JSON; '-' for standard output", "FILE"),
    option("--junit", "write JUnit XML, for a CI's test view", "FILE"),
    option("--markdown", "write a Markdown summary", "FILE"),
    option("--html", "write a self-contained page", "FILE"),
    option("--csv", "write a table, one row per submission", "FILE"),
    option("--gradescope", "write the results.json of a Gradescope autograder", "FILE"),
    option(
        "--visibility",
        "when learners see what --gradescope writes (default: visible)",
        choices=("visible", "hidden", "after_due_date", "after_published"),
        default="visible",
    ),
    option("--min-score", "succeed if every submission has at least N points, or N%% of them", "N", threshold),
    lessons_option("grade these lessons only, such as 01,05"),
    CORE,
    SEED_OPTION,
    TIMEOUT,
    option("--deadline", "seconds for the whole run; --gradescope's file is written after each lesson", "S", seconds),
    isolation_option("refuse to grade below this level, with exit code 3 (default: process)", "process"),
]
COLLECT = [
    option("sources", "an archive or a folder from Canvas, Moodle, Gradescope or GitHub", "SOURCE", Path, nargs="+"),
    option("--to", "one subfolder per learner; older attempts go to backups/", "FOLDER", Path, required=True),
    option("--roster", "CSV of the enrolled learners: folders get the grade book's names", "FILE", Path),
    BY,
]
CLASS = [
    option(
        "folder",
        "one subfolder or notebook per learner, and class.toml, which sets what is not named here",
        "FOLDER",
        Path,
    ),
    option("--out", "the folder for the reports and the journal", "REPORTS", Path, required=True),
    option("--jobs", "submissions graded at once (default: one per core)", "N", whole),
    option("--resume", "continue the run in REPORTS; what has been graded is kept", **SWITCH),
    option("--scheduler", "a Dask scheduler, such as tcp://10.0.0.1:8786, instead of --jobs", "ADDRESS"),
    TIMEOUT,
    option("--seed", f"seed of the inputs, one for everybody (default: {SEED})", type=natural),
    lessons_option(
        "grade these; a lesson not handed in counts as missing (default: those that at least half of the learners handed in)"
    ),
    option("--exercises", "only these exercises count; their lessons are graded", "A,B", exercise_list),
    CORE,
    option(
        "--weights",
        "your own points: lines such as 'softmax_rows,3'; other exercises keep the course's",
        "FILE",
        or_none(Path),
        table=points,
    ),
    option("--partial", "a failed exercise earns the share of its cases that agree (default: nothing)", **YES_OR_NO),
    option(
        "--follow-through",
        "an exercise that passes with the course's answer to another one earns N%% of its points (default: it is not tried)",
        "N%",
        or_none(share),
    ),
    option("--seed-per-learner", "draw other inputs for each learner (default: the same ones)", **YES_OR_NO),
    option(
        "--anonymous",
        "use pseudonyms in every report and write no grade book; REPORTS/names.csv says who is who",
        **YES_OR_NO,
    ),
    option("--regrade", "grade these learners again, keep all others; implies --resume", "A,B", name_list, default=()),
    option(
        "--rescore",
        "change the marking scheme of the run in REPORTS to what is given here or in class.toml ('none' takes one back), "
        "without grading again; implies --resume",
        **SWITCH,
    ),
    option("--roster", "CSV of the enrolled learners, exported from the grade book", "FILE", or_none(Path)),
    BY,
    option("--assignment", "the assignment's name in the grade book; in Canvas 'Title (1234)'", "TITLE"),
    option("--max-points", "points for full marks in grade books", "N", or_none(positive)),
    option("--due", "when the work was due, such as '2026-11-20 23:59 Europe/Berlin'", "TIME", or_none(moment)),
    option("--grace", "how much later is still in time, such as '15 min'", "DURATION", or_none(duration)),
    option("--penalty", "points, or N%% of the full ones, that each day begun after it costs", "N", or_none(threshold)),
    option("--extensions", "who has longer, such as 'ada=2 days'", "A=TIME,…", or_none(extensions), table=extensions),
    option("--min-score", "succeed if every learner has at least N points, or N%% of them", "N", threshold),
    isolation_option("refuse to grade below this level (default: full); process, where you trust what was handed in"),
]
MARK = [
    option("results", "the folder that `grader class` wrote to", "RESULTS", Path),
    option("--port", "the port of the pages (default: a free one)", type=port, default=0),
]
OF_THE_CALL = {  # options of `grader class` that no journal keeps, and why not
    "folder": "each result has the digest of what was handed in, and what changed is graded again",
    "out": "the journal is in it",
    "jobs": "verdicts are the same on any number of processes",
    "scheduler": "verdicts are the same on any machine",
    "resume": "continues",
    "regrade": "continues",
    "rescore": "continues",
    "min_score": "decides the exit code and what the terminal shows",
}
SETTINGS = {"timeout": "timeout_s", "by": "roster", "require_isolation": "isolation"}  # what a journal calls otherwise
OF_THE_RUN = {"course": "course"} | {
    one.attribute: SETTINGS.get(one.attribute, one.attribute) for one in CLASS if one.attribute not in OF_THE_CALL
}
WATCH = [
    option(
        "folder",
        "one learner's notebooks, or a folder of learners' folders (default: notebooks/, else here)",
        "FOLDER",
        Path,
        nargs="?",
    ),
    lessons_option("only these, such as 01,05", default=()),
    SEED_OPTION,
    option("--page", "also write a page of the room for a projector, such as room.html", "FILE", Path),
    option("--names", "show learners' names on the page (default: only a mark for each learner)", **SWITCH),
    TIMEOUT,
]
ROOM = [
    option("--port", "the port of the room's server (default: %(default)s)", type=port, default=PORT),
    option("--host", "listen only at this address of the computer (default: all of them)", "ADDRESS", default=""),
    option("--address", "the address for learners, if it is that of a proxy or a tunnel", "URL", web_address),
    option("--journal", "the file that keeps the room (default: room-DATE.jsonl, here)", "FILE", Path),
]
RELEASE = [
    option("place", "a new or an empty folder", "DIR", Path),
    lessons_option("these, such as 05, and all lessons before them (default: all)"),
    option("--only", "leave out the lessons before those that --lessons names", **SWITCH),
    option(
        "--without-solutions",
        "leave the solutions out of the hand-out; check() then judges nothing on the learners' computers",
        **SWITCH,
    ),
    option("--gradescope", "also write DIR-gradescope.zip, an autograder", **SWITCH),
    option(
        "--grader", "what the workflow gives to pip install: a trusted address of the wheel", "REQUIREMENT", requirement
    ),
]
BUILD = [
    option("lessons", "such as 01 or 01_three_tokens (default: all)", "LESSON", nargs="*"),
    option(
        "-j --jobs",
        f"lessons at once (default: {BUILDS_AT_ONCE}); a lesson that measures times is always built alone",
        "N",
        whole,
        default=BUILDS_AT_ONCE,
    ),
    option("--check", "build nothing; fail if a file is stale", **SWITCH),
    option("--anew", "run the cells also where the stored run is of the same code", **SWITCH),
]
AUDIT = [option("lessons", "default: all", "LESSON", nargs="*")]
EXPLAIN = [option("id", "the id of a mistake, as a verdict shows it, such as SM1, or an exercise", "ID")]
RESET = [
    option("what", "a lesson, such as 01, or an exercise, such as softmax_rows", "WHAT"),
    option("--confirm", "the code that the command gave when it asked; it counts once", "CODE"),
    FOLDER,
]
UPDATE = [option("lessons", "which lessons (default: all that are in the folder)", "LESSON", nargs="*"), FOLDER]
DOCTOR = [option("--isolation", "print only the level of isolation that submissions have here", **SWITCH)]

"""The options of every command: the parser is made from them, and so are the settings that a journal keeps.

An option of `grader class` changes marks or files, and the journal keeps it (OF_THE_RUN), unless OF_THE_CALL says why it is about one call
alone.
"""

from __future__ import annotations

import argparse
from typing import Any

from grader.cli.arguments import (
    duration,
    exercise_list,
    extensions,
    lesson_list,
    moment,
    name_list,
    natural,
    or_none,
    path,
    place,
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


class Option:
    """An option or, without dashes, an argument by position. details: what argparse is told of it.

    flags: with a space between '-j' and '--jobs'. table: what reads it where class.toml has a table of it; None: it has none.
    """

    def __init__(
        self, flags: str, help: str, metavar: str = "", type: Any = None, *, table: Any = None, **details: Any
    ) -> None:
        self.flags, self.table = flags.split(), table
        self.attribute = self.flags[-1].lstrip("-").replace("-", "_")
        self.details = details | {"help": help}
        self.details |= ({"metavar": metavar} if metavar else {}) | ({"type": type} if type else {})


def lessons_option(help: str) -> Option:
    return Option("--lessons", help, "A,B", lesson_list)


def isolation_option(help: str, default: str | None = None) -> Option:
    return Option("--require-isolation", help, "LEVEL", choices=("process", "full"), default=default)


TIMEOUT = Option("--timeout", "wall-clock seconds for each exercise and each cell", "S", seconds)
BY = Option("--by", "the roster's column that names the folders", "COLUMN")
CORE = Option("--core", "only the core's exercises count, not the further ones", **YES_OR_NO)
FOLDER = Option("--folder", "where the notebooks are (default: notebooks/, or else the current folder)", type=path)

GRADE = [
    Option(
        "paths",
        "a notebook, or one learner's folder of notebooks (default, in a session of `make lab`: its folder)",
        "PATH",
        place,
        nargs="*",
    ),
    Option("--json", "write the results as JSON; '-' for standard output", "FILE", place),
    Option("--junit", "write JUnit XML, for a CI's test view", "FILE", place),
    Option("--markdown", "write a Markdown summary", "FILE", place),
    Option("--html", "write a self-contained page", "FILE", place),
    Option("--csv", "write a table, one row per submission", "FILE", place),
    Option("--gradescope", "write the results.json of a Gradescope autograder", "FILE", place),
    Option(
        "--visibility",
        "when learners see what --gradescope writes (default: visible)",
        choices=("visible", "hidden", "after_due_date", "after_published"),
        default="visible",
    ),
    Option("--min-score", "succeed if every submission has at least N points, or N%% of them", "N", threshold),
    lessons_option("grade these lessons only, such as 01,05"),
    CORE,
    Option("--seed", "seed of the inputs (default: %(default)s)", type=natural, default=SEED),
    TIMEOUT,
    Option("--deadline", "seconds for the whole run; --gradescope's file is written after each lesson", "S", seconds),
    isolation_option("refuse to grade below this level, with exit code 3 (default: process)", "process"),
]
COLLECT = [
    Option("sources", "an archive or a folder from Canvas, Moodle, Gradescope or GitHub", "SOURCE", path, nargs="+"),
    Option("--to", "one subfolder per learner; older attempts go to backups/", "FOLDER", path, required=True),
    Option("--roster", "CSV of the enrolled learners: folders get the grade book's names", "FILE", path),
    BY,
]
CLASS = [
    Option(
        "folder",
        "one subfolder or notebook per learner, and class.toml, which sets what is not named here",
        "FOLDER",
        path,
    ),
    Option("--out", "the folder for the reports and the journal", "REPORTS", path, required=True),
    Option("--jobs", "submissions graded at once (default: one per core)", "N", whole),
    Option("--resume", "continue the run in REPORTS; what has been graded is kept", **SWITCH),
    Option("--scheduler", "a Dask scheduler, such as tcp://10.0.0.1:8786, instead of --jobs", "ADDRESS"),
    TIMEOUT,
    Option("--seed", f"seed of the inputs, one for everybody (default: {SEED})", type=natural),
    lessons_option(
        "grade these; a lesson not handed in counts as missing (default: those that at least half of the learners handed in)"
    ),
    Option("--exercises", "only these exercises count; their lessons are graded", "A,B", exercise_list),
    CORE,
    Option(
        "--weights",
        "your own points: lines such as 'NAME,3'; other exercises keep the course's",
        "FILE",
        or_none(path),
        table=points,
    ),
    Option("--partial", "a failed exercise earns the share of its cases that agree (default: nothing)", **YES_OR_NO),
    Option(
        "--follow-through",
        "an exercise that passes with the course's answer to another one earns N%% of its points (default: it is not tried)",
        "N%",
        or_none(share),
    ),
    Option("--seed-per-learner", "draw other inputs for each learner (default: the same ones)", **YES_OR_NO),
    Option(
        "--anonymous",
        "use pseudonyms in every report and write no grade book; REPORTS/names.csv says who is who",
        **YES_OR_NO,
    ),
    Option("--regrade", "grade these learners again, keep all others; implies --resume", "A,B", name_list, default=()),
    Option(
        "--rescore",
        "change the marking scheme of the run in REPORTS to what is given here or in class.toml ('none' takes one back), "
        "without grading again; implies --resume",
        **SWITCH,
    ),
    Option("--roster", "CSV of the enrolled learners, exported from the grade book", "FILE", or_none(path)),
    BY,
    Option("--assignment", "the assignment's name in the grade book; in Canvas 'Title (1234)'", "TITLE"),
    Option("--max-points", "points for full marks in grade books", "N", or_none(positive)),
    Option("--due", "when the work was due, such as '2026-11-20 23:59 Europe/Berlin'", "TIME", or_none(moment)),
    Option("--grace", "how much later is still in time, such as '15 min'", "DURATION", or_none(duration)),
    Option("--penalty", "points, or N%% of the full ones, that each day begun after it costs", "N", or_none(threshold)),
    Option("--extensions", "who has longer, such as 'ada=2 days'", "A=TIME,…", or_none(extensions), table=extensions),
    Option("--min-score", "succeed if every learner has at least N points, or N%% of them", "N", threshold),
    isolation_option("refuse to grade below this level (default: full); process, where you trust what was handed in"),
]
MARK = [
    Option("results", "the folder that `grader class` wrote to", "RESULTS", path),
    Option("--port", "the port of the pages (default: a free one)", type=port, default=0),
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
_RUN_OPTIONS = [option.attribute for option in CLASS if option.attribute not in OF_THE_CALL]
OF_THE_RUN = {"course": "course"} | {name: SETTINGS.get(name, name) for name in _RUN_OPTIONS}
ROOM = [
    Option("--port", "the port of the room's server (default: %(default)s)", type=port, default=PORT),
    Option("--host", "listen only at this address of the computer (default: all of them)", "ADDRESS", default=""),
    Option("--address", "the address for learners, if it is that of a proxy or a tunnel", "URL", web_address),
    Option("--journal", "the file that keeps the room (default: room-DATE.jsonl, here)", "FILE", path),
]
RELEASE = [
    Option("place", "a new or an empty folder", "DIR", path),
    lessons_option("these, such as 05, and all lessons before them (default: all)"),
    Option("--only", "leave out the lessons before those that --lessons names", **SWITCH),
    Option(
        "--without-solutions",
        "leave the solutions out of the hand-out; check() then judges nothing on the learners' computers",
        **SWITCH,
    ),
    Option("--gradescope", "also write DIR-gradescope.zip, an autograder", **SWITCH),
    Option(
        "--grader", "what the workflow gives to pip install: a trusted address of the wheel", "REQUIREMENT", requirement
    ),
]
BUILD = [
    Option("lessons", "such as 01 or 01_three_tokens (default: all)", "LESSON", nargs="*"),
    Option(
        "-j --jobs",
        f"lessons at once (default: {BUILDS_AT_ONCE}); a lesson that measures times is always built alone",
        "N",
        whole,
        default=BUILDS_AT_ONCE,
    ),
    Option("--check", "build nothing; fail if a file is stale", **SWITCH),
    Option("--anew", "run the cells also where the stored run is of the same code", **SWITCH),
]
AUDIT = [Option("lessons", "default: all", "LESSON", nargs="*")]
EXPLAIN = [Option("id", "a mistake's id, such as SM1, an exercise or a lesson (default: everything)", "ID", nargs="?")]
RESET = [
    Option("what", "a lesson, such as 01, or an exercise by its name", "WHAT"),
    Option("--confirm", "the code that the command gave when it asked; it counts once", "CODE"),
    FOLDER,
]
UPDATE = [Option("lessons", "which lessons (default: all that are in the folder)", "LESSON", nargs="*"), FOLDER]
DOCTOR = [Option("--isolation", "print only the level of isolation that submissions have here", **SWITCH)]

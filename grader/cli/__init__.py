"""The commands: their arguments, what they print, their exit codes; `grader doctor`.

Exit codes: 0 everything asked for passed (of a class: was graded), 1 it did not, 2 the call or the input was wrong,
3 something could not be graded. Heavy imports wait until a command needs them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from grader.cli import options as takes
from grader.cli.exits import BAD_INPUT, NOT_GRADED, PASSED, STOPPED, complain
from grader.course import index
from grader.course.course import COURSE_ENV, open_course
from grader.notebook.unjudged import NO_SOLUTIONS
from grader.util.errors import AuthorError, InputError
from grader.util.libraries import explain_error, use_one_thread

# As `grader --help` lists them, each with the function that runs it; JUDGES: those of which this process judges, or starts what does.
COMMANDS = (
    ("grade", "grade.run", takes.GRADE, "grade notebooks in a process of their own"),
    ("collect", "collect.run", takes.COLLECT, "sort a learning platform's download into one folder per learner"),
    ("class", "classroom.run", takes.CLASS, "grade a folder of learners and write every report"),
    ("mark", "servers.run_mark", takes.MARK, "mark by hand in a browser, beside the automatic verdicts"),
    (
        "room",
        "servers.run_room",
        takes.ROOM,
        "open a room that learners join from their notebooks, and show it live on a page",
    ),
    ("release", "author.run_release", takes.RELEASE, "write a folder to hand out to learners, checked for solutions"),
    ("build", "author.run_build", takes.BUILD, "make notebooks and teaching notes from solutions/NN_lesson/"),
    ("audit", "author.run_audit", takes.AUDIT, "prove that lessons and their specifications keep the rules"),
    ("explain", "learner.run_explain", takes.EXPLAIN, "explain a mistake at length, or list those of an exercise"),
    ("progress", "learner.run_progress", [takes.FOLDER], "show what has passed, and what comes next"),
    (
        "reset",
        "learner.run_reset",
        takes.RESET,
        "restore a lesson, or the cell of one exercise; the old notebook is kept",
    ),
    ("update", "learner.run_update", takes.UPDATE, "put your cells into this version of the lessons"),
    ("doctor", "doctor.run", takes.DOCTOR, "say what this computer lacks for the course, and how to fix it"),
)
JUDGES = ("grade", "class", "audit")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns: the exit code; never raises for bad input."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a console that lacks a sign shows '?' and does not stop us
            stream.reconfigure(errors="replace")
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        _take_course(arguments)
        options = parser().parse_args(arguments or ["--help"])
        if options.judges:
            use_one_thread()
            index.gather(open_course())  # an id that is used twice, wherever that is
        module, _, function = options.run.partition(".")
        return getattr(import_module(f"grader.cli.{module}"), function)(options)
    except SystemExit as ending:  # argparse: --help, --version, or a wrong call
        return ending.code if isinstance(ending.code, int) else BAD_INPUT
    except InputError as error:
        return complain(str(error), BAD_INPUT)
    except AuthorError as error:
        return complain("\n".join(map(str, error.problems)), BAD_INPUT)
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASSED
    except KeyboardInterrupt:
        return complain("stopped.", STOPPED)
    except OSError as error:
        sentence = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return complain(f"{sentence}.", BAD_INPUT)
    except Exception as error:
        if os.environ.get("GRADER_DEBUG"):
            raise
        if advice := explain_error(error):
            return complain(advice, NOT_GRADED)
        return complain(
            f"a mistake in the grader itself, {type(error).__name__}: {error}. "
            "Nothing was changed; GRADER_DEBUG=1 shows where it happened.",
            NOT_GRADED,
        )


def _take_course(arguments: Sequence[str]) -> None:
    """Names the course of --course in the environment, for this process and all that it starts.

    Raises: InputError, also for a command that needs the solutions where the course is here without them.
    """
    reader = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    reader.add_argument("--course", type=Path)
    course = os.environ.get(COURSE_ENV)  # before the other arguments, which may name its lessons
    with suppress(argparse.ArgumentError):  # without a folder, which the command's own parser says
        course = reader.parse_known_args(arguments)[0].course or course
    if course:
        os.environ[COURSE_ENV] = str(Path(course).expanduser().resolve())
    if not open_course().judges and arguments and arguments[0] != "doctor" and not arguments[0].startswith("-"):
        raise InputError(f"nothing is judged on this computer: {NO_SOLUTIONS}")


@cache
def parser() -> argparse.ArgumentParser:
    """The arguments of every command."""
    parser = argparse.ArgumentParser(prog="grader", description="Builds, checks and grades the attention course.")
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="show the version and the lessons that it knows, and exit"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, run, options, summary in COMMANDS:
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        command.add_argument("--course", type=Path, metavar="FOLDER", help="a course of your own, instead of this one")
        for option in options:
            command.add_argument(*option.flags, **option.details)
        command.set_defaults(run=run, judges=name in JUDGES)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"grader {open_course().edition()}")
        parser.exit()

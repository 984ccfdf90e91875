"""The commands: their arguments, what they print, their exit codes; `grader doctor`.

Exit codes: 0 everything asked for passed (of a class: was graded), 1 it did not, 2 the call or the input was wrong,
3 something could not be graded. Heavy imports wait until a command needs them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.cli.arguments import course, lesson_name
from grader.cli.author import add as add_author
from grader.cli.classroom import add as add_class
from grader.cli.collect import add as add_collect
from grader.cli.exits import BAD_INPUT, NOT_GRADED, NOT_PASSED, PASSED, STOPPED, complain
from grader.cli.grade import add as add_grade
from grader.cli.learner import add as add_learner
from grader.cli.release import add as add_release
from grader.cli.room import add as add_room
from grader.cli.watch import add as add_watch
from grader.course.course import COURSE_ENV, open_course
from grader.notebook.unjudged import ELSEWHERE
from grader.util.errors import AuthorError, InputError
from grader.util.lacking import why

# as `grader --help` lists their commands
GROUPS = (add_grade, add_collect, add_class, add_watch, add_room, add_release, add_author, add_learner)

__all__ = ["lesson_name", "main", "parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns: the exit code; never raises for bad input."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a console that lacks a sign shows '?' and does not stop us
            stream.reconfigure(errors="replace")
    try:
        _take_course(sys.argv[1:] if arguments is None else arguments)
        options = parser().parse_args(arguments)
        return options.run(options)
    except SystemExit as ending:  # argparse: --help, --version, or a wrong call
        return ending.code if isinstance(ending.code, int) else BAD_INPUT
    except InputError as error:
        return complain(str(error), BAD_INPUT)
    except AuthorError as error:
        return complain("\n".join(map(str, error.problems)), NOT_PASSED)
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASSED
    except KeyboardInterrupt:
        return complain("stopped.", STOPPED)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return complain(f"{what}.", BAD_INPUT)
    except Exception as error:
        if os.environ.get("GRADER_DEBUG"):
            raise
        lacks = why(error)
        if lacks:
            return complain(lacks, NOT_GRADED)
        return complain(
            f"a mistake in the grader itself, {type(error).__name__}: {error}. "
            "Nothing was changed; GRADER_DEBUG=1 shows where it happened.",
            NOT_GRADED,
        )


def _take_course(arguments: Sequence[str]) -> None:
    """Names the course of --course in the environment, for this process and all that it starts.

    Raises: InputError, also for a command that needs the solutions where the course is here without them.
    """
    named = course(arguments) or os.environ.get(COURSE_ENV)
    if named:
        os.environ[COURSE_ENV] = str(Path(named).expanduser().resolve())
    if not open_course().judges and arguments and arguments[0] != "doctor" and not arguments[0].startswith("-"):
        raise InputError(f"nothing is judged on this computer: {ELSEWHERE}")


def parser() -> argparse.ArgumentParser:
    """The arguments of every command."""
    made = argparse.ArgumentParser(prog="grader", description="Builds, checks and grades the attention course.")
    made.add_argument(
        "--version", action=_Version, nargs=0, help="show the version and the lessons that it knows, and exit"
    )
    made.set_defaults(run=lambda options: made.print_help() or PASSED)  # `grader` alone
    commands = made.add_subparsers(metavar="COMMAND")
    for add in GROUPS:
        add(commands)
    return made


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"grader {open_course().edition()}")
        parser.exit()

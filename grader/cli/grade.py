"""`grader grade`: reports on the notebooks that are named."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from grader import collected, course
from grader.cli.arguments import command, lesson_list, natural, seconds, threshold
from grader.cli.exits import BAD_INPUT, NOT_GRADED, NOT_PASSED, PASSED, complain, harmless
from grader.errors import InputError

RENDERERS = {  # an option of `grader grade` -> the module of grader/reports that renders it
    "json": "json", "junit": "junit", "markdown": "markdown", "html": "page", "csv": "csv", "gradescope": "gradescope",
}  # fmt: skip


def add(commands: Any) -> None:
    grade = command(commands, "grade", _grade, "grade notebooks in a process of their own")
    grade.add_argument("paths", nargs="+", metavar="PATH", help="a notebook, or one learner's folder of notebooks")
    grade.add_argument("--json", metavar="FILE", help="write the results as JSON; '-' for standard output")
    grade.add_argument("--junit", metavar="FILE", help="write JUnit XML, for a CI's test view")
    grade.add_argument("--markdown", metavar="FILE", help="write a Markdown summary")
    grade.add_argument("--html", metavar="FILE", help="write a page that stands alone")
    grade.add_argument("--csv", metavar="FILE", help="write a table, a row a submission")
    grade.add_argument("--gradescope", metavar="FILE", help="write the results.json of a Gradescope autograder")
    grade.add_argument(
        "--min-score",
        type=threshold,
        metavar="N",
        help="succeed where every submission has at least N points, or N%% of them",
    )
    grade.add_argument("--lessons", type=lesson_list, metavar="A,B", help="grade these lessons only, such as 01,05")
    grade.add_argument("--seed", type=natural, default=course.SEED, help="of the inputs (default: %(default)s)")
    grade.add_argument(
        "--timeout",
        type=seconds,
        default=None,
        metavar="S",
        help="wall-clock seconds for one exercise, and for one cell",
    )
    grade.add_argument(
        "--require-isolation",
        choices=("process", "full"),
        default="process",
        metavar="LEVEL",
        help="grade only where the walls of level 'full' stand, else exit with 3 (default: process)",
    )


def _grade(options: argparse.Namespace) -> int:
    from grader.grading import grade
    from grader.sandbox import TooOpen
    from grader.submission import SubmissionError

    for path in filter(os.path.isdir, options.paths):
        refused = collected.refusal(os.listdir(path), least=2)
        if refused:
            raise InputError(f"{path} {refused}")
    files = {form: getattr(options, form) for form in RENDERERS if getattr(options, form)}
    for file in files.values():
        writable(file)
    chosen = {} if options.timeout is None else {"timeout_s": options.timeout}
    chosen["require"] = options.require_isolation
    try:
        report = grade(options.paths, lessons=options.lessons, seed=options.seed, told=_told, **chosen)
    except SubmissionError as error:
        raise InputError(str(error)) from None
    except TooOpen as error:
        return complain(f"nothing was graded: {error}.", NOT_GRADED)
    if "-" not in files.values():
        _print_card(report)
    written = [write_report(form, file, report) for form, file in files.items()]  # each, whatever became of another
    return outcome(report, options.min_score) if all(written) else BAD_INPUT


def _told(path: str) -> None:
    from grader.reports import text

    print(f"grading {harmless(text.one_line(path))} …", file=sys.stderr, flush=True)


def _print_card(report: Any) -> None:
    from grader.reports import terminal

    print(terminal.render(report))


def writable(file: str) -> None:
    """Fails before anything is graded, not after. Raises: InputError."""
    folder = Path(file).parent
    if file != "-" and not folder.is_dir():
        raise InputError(f"{file} can't be written: there is no folder {folder}.")
    if file != "-" and (Path(file).is_dir() or not os.access(folder, os.W_OK)):
        raise InputError(f"{file} can't be written: it is a folder, or its folder is read-only.")


def write_report(form: str, file: str, report: Any) -> bool:
    """Writes one report; where that fails says so and returns False, so that the others are still written."""
    from importlib import import_module

    from grader.files import write_whole

    text = import_module(f"grader.reports.{RENDERERS[form]}").render(report).rstrip("\n") + "\n"
    if file == "-":
        sys.stdout.write(text)
        return True
    try:
        write_whole(Path(file), text)
    except OSError as error:
        complain(f"the {form} report was not written to {file}: {error.strerror}.", BAD_INPUT)
        return False
    return True


def outcome(report: Any, threshold: tuple[float, bool] | None) -> int:
    """The exit code: what could not be graded comes first, then --min-score or 'everything passed'."""
    verdicts = [verdict for one in report.submissions for verdict in one.verdicts]
    if any(verdict.status == "could_not_grade" for verdict in verdicts):
        return NOT_GRADED
    if threshold is None:
        return PASSED if verdicts and all(verdict.passed for verdict in verdicts) else NOT_PASSED
    number, percent = threshold
    for one in report.submissions:
        needed = number * one.max_score / 100 if percent else number
        if one.score < needed - 1e-9:
            return NOT_PASSED
    return PASSED

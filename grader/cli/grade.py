"""`grader grade`: reports on the notebooks that are named."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from grader.cli.exits import BAD_INPUT, NOT_GRADED, NOT_PASSED, PASSED, complain, harmless, say
from grader.course.course import open_course
from grader.grading.grade import Settings, grade
from grader.notebook.workspace import session_folder
from grader.reports import terminal, text
from grader.reports.class_summary import ClassSummary, ungraded
from grader.sandbox.isolation import TooOpen
from grader.sandbox.sandbox import TIMEOUT_S
from grader.submission import platforms
from grader.util.errors import InputError
from grader.util.files import write_atomically
from grader.util.words import join_names

# Options, each with its module of grader/reports.
FORMS = {
    "json": "report_json",
    "junit": "junit",
    "markdown": "markdown",
    "html": "class_page",
    "csv": "grades_csv",
    "gradescope": "gradescope",
}


def run(options: argparse.Namespace) -> int:
    if not options.paths:
        folder = session_folder()
        if folder is None:
            raise InputError("grade needs a PATH: a notebook, or one learner's folder of notebooks.")
        options.paths = [str(folder)]
    for path in filter(os.path.isdir, options.paths):
        if refusal := platforms.refusal(os.listdir(path), least=2):
            raise InputError(f"{path} {refusal}")
    files = {form: getattr(options, form) for form in FORMS if getattr(options, form)}
    _check_files(files)
    exercises = open_course().core_exercises() if options.core else None
    timeout_s, require = options.timeout or TIMEOUT_S, options.require_isolation
    hooks: dict[str, Any] = {"deadline_s": options.deadline}
    if files.get("gradescope", "-") != "-":  # a container that is stopped at its limit leaves what was done
        file, visibility = options.gradescope, options.visibility
        hooks["on_progress"] = lambda report: write_report("gradescope", file, report, visibility)
    try:
        settings = Settings(open_course(), options.lessons, exercises, options.seed, timeout_s, require)
        report = grade(settings, options.paths, on_start=_tell, **hooks)
    except TooOpen as error:
        return complain(f"nothing was graded: {error}.", NOT_GRADED)
    if "-" not in files.values():
        print(terminal.render(report))
    # each, whatever became of another
    if not all([write_report(form, file, report, options.visibility) for form, file in files.items()]):
        return BAD_INPUT
    code = outcome(report, options.min_score, everything=True)
    return complain(ungraded(ClassSummary(report)), code) if code == NOT_GRADED else code


def _tell(path: str) -> None:
    print(f"grading {harmless(text.one_line(path))} …", file=sys.stderr, flush=True)


def _check_files(files: dict[str, str]) -> None:
    """Raises: InputError, before anything is graded, for what can't be written or is a notebook, and for two reports in one place."""
    reports: dict[object, tuple[str, str]] = {}  # by where a file leads, the same for every way to write it
    for form, file in files.items():
        folder = Path(file).parent
        if file != "-" and not folder.is_dir():
            raise InputError(f"{file} can't be written: there is no folder {folder}.")
        if file.lower().endswith(".ipynb"):
            raise InputError(
                f"{file} is called like a notebook, whose place a report must not take; name --{form} another file."
            )
        if file != "-" and (Path(file).is_dir() or not os.access(folder, os.W_OK)):
            raise InputError(f"{file} can't be written: it is a folder, or its folder is read-only.")
        place: object = file if file == "-" else os.path.normcase(Path(file).resolve())
        with contextlib.suppress(OSError, ValueError, AttributeError):  # no such file yet, or no real standard output
            status = os.fstat(sys.stdout.fileno()) if file == "-" else os.stat(file)
            place = status.st_dev, status.st_ino
        other, first = reports.setdefault(place, (form, file))
        if other != form:
            target = "standard output" if "-" in (file, first) else file
            raise InputError(f"--{other} and --{form} both write to {target}; give each a file of its own.")


def write_report(form: str, file: str, report: Any, visibility: str = "visible") -> bool:
    """Writes one report; where that fails says so and returns False, so that the others are still written.

    One that has nothing to say of a submission that could not be graded is not written, and an older one goes: it would
    be taken for this run's.
    """
    arguments = {"visibility": visibility} if form == "gradescope" else {}
    course = [open_course()] * (form in ("markdown", "html"))  # what its mistakes are called
    module = import_module(f"grader.reports.{FORMS[form]}")
    content = module.render(*course, report, **arguments).rstrip("\n")
    if file == "-":
        sys.stdout.write(f"{content}\n" if content else "")
        return True
    try:
        if content:
            write_atomically(Path(file), f"{content}\n")
        elif Path(file).is_file():
            Path(file).unlink()
    except OSError as error:
        complain(f"the {form} report was not written to {file}: {error.strerror}.", BAD_INPUT)
        return False
    return True


def outcome(report: Any, threshold: tuple[float, bool] | None, *, everything: bool) -> int:
    """Says who does not reach --min-score, and returns the exit code: what could not be graded comes first.

    everything: whether without --min-score everything is to pass, as for one's own work; of a class nobody asks that.
    """
    below = []
    if threshold is not None:
        number, percent = threshold
        for submission in report.submissions:
            least = number * submission.max_score / 100 if percent else number
            if not submission.ungraded and submission.score < least - 1e-9:
                below.append(submission)
        if below:
            names = [f"{text.one_line(submission.name, 60)} ({text.points(submission)})" for submission in below]
            say(f"below --min-score {number:g}{'%' if percent else ''}: {join_names(names, 20)}.")
    if any(submission.ungraded for submission in report.submissions):
        return NOT_GRADED
    verdicts = [verdict for submission in report.submissions for verdict in submission.verdicts]
    failed = everything and threshold is None and not (verdicts and all(verdict.passed for verdict in verdicts))
    return NOT_PASSED if below or failed else PASSED

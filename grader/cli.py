"""The command `grader`: reads arguments, calls the part that does the work, sets the exit code.

Exit codes: 0 everything asked for passed, 1 it did not, 2 the call or the input was wrong,
3 something could not be graded. Heavy imports wait until a command needs them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from grader import course
from grader.errors import AuthorError, InputError

PASSED, NOT_PASSED, BAD_INPUT, NOT_GRADED = 0, 1, 2, 3
BUILDS_AT_ONCE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns: the exit code; never raises for bad input."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a console that lacks a sign shows '?' and does not stop us
            stream.reconfigure(errors="replace")
    try:
        options = parser().parse_args(arguments)
        return options.run(options)
    except SystemExit as ending:  # argparse: --help, --version, or a wrong call
        return ending.code if isinstance(ending.code, int) else BAD_INPUT
    except InputError as error:
        return _complain(str(error), BAD_INPUT)
    except AuthorError as error:
        return _complain("\n".join(map(str, error.slips)), NOT_PASSED)
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASSED
    except KeyboardInterrupt:
        return _complain("stopped.", 130)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _complain(f"{what}.", BAD_INPUT)
    except Exception as error:
        if os.environ.get("GRADER_DEBUG"):
            raise
        return _complain(f"a mistake in the grader itself, {type(error).__name__}: {error}. "
                         "Nothing was changed; GRADER_DEBUG=1 shows where it happened.", NOT_GRADED)


def parser() -> argparse.ArgumentParser:
    """The arguments of every command."""
    made = argparse.ArgumentParser(prog="grader", description="Builds, checks and grades the attention course.")
    made.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = made.add_subparsers(required=True, metavar="COMMAND")

    grade = _command(commands, "grade", _grade, "grade notebooks in a process of their own")
    grade.add_argument("paths", nargs="+", metavar="PATH", help="a notebook, or one learner's folder of notebooks")
    grade.add_argument("--json", metavar="FILE", help="write the results as JSON; '-' for standard output")
    grade.add_argument("--junit", metavar="FILE", help="write JUnit XML, for a CI's test view")
    grade.add_argument("--markdown", metavar="FILE", help="write a Markdown summary")
    grade.add_argument("--min-score", type=_threshold, metavar="N",
                       help="succeed where every submission has at least N points, or N%% of them")
    grade.add_argument("--lessons", type=_lesson_list, metavar="A,B", help="grade these lessons only, such as 01,05")
    grade.add_argument("--seed", type=_natural, default=course.SEED, help="of the inputs (default: %(default)s)")
    grade.add_argument("--timeout", type=_seconds, default=None, metavar="S",
                       help="wall-clock seconds for one exercise, and for one cell")

    build = _command(commands, "build", _build, "make the notebooks from solutions/NN_lesson.py")
    build.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 01 or 01_three_tokens; none: all")
    build.add_argument("--check", action="store_true", help="build nothing; fail where a notebook is stale")

    audit = _command(commands, "audit", _audit, "prove that lessons and their specifications keep the rules")
    audit.add_argument("lessons", nargs="*", metavar="LESSON", help="none: all")

    explain = _command(commands, "explain", _explain, "tell a mistake at length")
    explain.add_argument("id", metavar="ID", help="as a verdict shows it, such as SM1")

    reset = _command(commands, "reset", _reset, "put a lesson back as it was; the old one is kept")
    reset.add_argument("lesson", metavar="LESSON")
    update = _command(commands, "update", _update, "lay your cells over this version of the lessons")
    update.add_argument("lessons", nargs="*", metavar="LESSON", help="none: all that are in the folder")
    for command in (reset, update):
        command.add_argument("--folder", type=Path, help="where the notebooks are (default: notebooks/, else here)")

    _command(commands, "doctor", _doctor, "say what this computer lacks for the course, and the repair")
    return made


def _command(commands: Any, name: str, run: Callable, what: str) -> argparse.ArgumentParser:
    made = commands.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")
    made.set_defaults(run=run)
    return made


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"grader {version('attention-course')}")
        parser.exit()


# --- what arguments may be -------------------------------------------------------------------

def lesson_name(text: str, among: Iterable[str] | None = None) -> str:
    """The full name of a lesson called '1', '01', '01_three_tokens' or 'notebooks/01_three_tokens.ipynb'.

    Raises: InputError, naming the nearest lesson, where there is none.
    """
    names = tuple(course.lessons() if among is None else among)
    bare = Path(text).stem if text.endswith((".py", ".ipynb")) else text
    for name in names:
        if bare == name or (bare.isdigit() and bare.zfill(2) == name[:2]):
            return name
    near = get_close_matches(bare, names, 1, 0.5) or [name for name in names if bare and bare.lower() in name]
    advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(names) or 'none yet'}."
    raise InputError(f"there is no lesson {text!r}; {advice}")


def _lesson_list(text: str) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(lesson_name(part.strip()) for part in text.split(",") if part.strip()))
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _threshold(text: str) -> tuple[float, bool]:
    """(number, whether it is a percentage)."""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    percent = text.endswith("%")
    if not 0 <= number <= (100 if percent else float("inf")):
        raise argparse.ArgumentTypeError(f"{text!r} is neither points, such as 12, nor a share, such as 80%")
    return number, percent


def _natural(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return number


# --- commands --------------------------------------------------------------------------------

def _build(options: argparse.Namespace) -> int:
    names = _chosen(options.lessons)
    if options.check:
        return _check_builds(names)
    from grader.execute import build

    return _each(names, build, "built")


def _check_builds(names: Sequence[str]) -> int:
    from grader.build import stale
    problems: list[str] = []
    for name in names:
        try:
            problems += stale(name)
        except AuthorError as error:
            problems += map(str, error.slips)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return _complain("run `grader build` with the lessons named above.", NOT_PASSED)
    print(f"{len(names)} lessons: each notebook is what its source builds.")
    return PASSED


def _each(names: Sequence[str], work: Callable[[str], None], done: str) -> int:
    """Does the work for each lesson, two at a time, and tells of each as it ends."""
    import time

    def one(name: str) -> bool:
        started = time.perf_counter()
        try:
            work(name)
        except AuthorError as error:
            print(f"{name}: not {done}.\n  " + "\n  ".join(map(str, error.slips)), file=sys.stderr, flush=True)
            return False
        print(f"{name}: {done} in {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
        return True

    with ThreadPoolExecutor(BUILDS_AT_ONCE) as pool:
        return PASSED if all(list(pool.map(one, names))) else NOT_PASSED


def _chosen(texts: Sequence[str]) -> tuple[str, ...]:
    if not texts:
        return course.lessons()
    try:
        return tuple(dict.fromkeys(lesson_name(text) for text in texts))
    except InputError:
        planned = [lesson_name(text, course.CONTRACT) for text in texts]
    missing = [name for name in planned if name not in course.lessons()]
    raise InputError(f"lesson {missing[0]} is not written: it needs solutions/{missing[0]}.py and "
                     f"grader/lessons/lesson_{missing[0][:2]}.py.")


def _audit(options: argparse.Namespace) -> int:
    from grader.audit import audit, render

    findings = audit(_chosen(options.lessons))
    print(render(findings))
    return PASSED if findings.kept else NOT_PASSED


def _grade(options: argparse.Namespace) -> int:
    from grader.grading import grade
    from grader.submission import SubmissionError

    files = {form: getattr(options, form) for form in ("json", "junit", "markdown") if getattr(options, form)}
    for file in files.values():
        _writable(file)
    chosen = {} if options.timeout is None else {"timeout_s": options.timeout}
    try:
        report = grade(options.paths, lessons=options.lessons, seed=options.seed, told=_told, **chosen)
    except SubmissionError as error:
        raise InputError(str(error)) from None
    if "-" not in files.values():
        _print_card(report)
    written = [_write_report(form, file, report) for form, file in files.items()]  # each, whatever became of another
    return _outcome(report, options.min_score) if all(written) else BAD_INPUT


def _told(path: str) -> None:
    print(f"grading {path} …", file=sys.stderr, flush=True)


def _print_card(report: Any) -> None:
    from grader.reports import terminal

    print(terminal.render(report))


def _writable(file: str) -> None:
    """Fails before anything is graded, not after. Raises: InputError."""
    folder = Path(file).parent
    if file != "-" and not folder.is_dir():
        raise InputError(f"{file} can't be written: there is no folder {folder}.")
    if file != "-" and (Path(file).is_dir() or not os.access(folder, os.W_OK)):
        raise InputError(f"{file} can't be written: it is a folder, or its folder is read-only.")


def _write_report(form: str, file: str, report: Any) -> bool:
    """Writes one report; where that fails says so and returns False, so that the others are still written."""
    from importlib import import_module

    from grader.files import write_whole

    text = import_module(f"grader.reports.{form}").render(report).rstrip("\n") + "\n"
    if file == "-":
        sys.stdout.write(text)
        return True
    try:
        write_whole(Path(file), text)
    except OSError as error:
        _complain(f"the {form} report was not written to {file}: {error.strerror}.", BAD_INPUT)
        return False
    return True


def _outcome(report: Any, threshold: tuple[float, bool] | None) -> int:
    """The exit code: what could not be graded comes first, then --min-score or 'everything passed'."""
    verdicts = [v for one in report.submissions for lesson in one.lessons for v in lesson.verdicts]
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


def _explain(options: argparse.Namespace) -> int:
    from grader.reports.text import explanation

    ids = course.mistake_ids()
    id = next((known for known in ids if known.lower() == options.id.lower()), None)
    if id is None:
        near = get_close_matches(options.id.upper(), ids, 1, 0.5)
        advice = f"did you mean {near[0]}?" if near else "a verdict shows the ids that it found."
        raise InputError(f"no mistake is called {options.id!r}; {advice}")
    print(explanation(course.mistake_text(id)))
    return PASSED


def _reset(options: argparse.Namespace) -> int:
    return _change("reset", [lesson_name(options.lesson)], options.folder)


def _update(options: argparse.Namespace) -> int:
    from grader.workspace import folder

    names = _chosen(options.lessons)
    if not options.lessons:
        place = folder(options.folder)
        names = tuple(name for name in names if (place / f"{name}.ipynb").exists())
        if not names:
            raise InputError(f"{place.resolve()} holds no notebook of the course; --folder names the one that does.")
    return _change("update", names, options.folder)


def _change(what: str, names: Sequence[str], asked: Path | None) -> int:
    from grader import workspace

    failed = False
    for name in names:  # one notebook that can't be read keeps none of the others back
        try:
            print(getattr(workspace, what)(name, workspace.folder(asked)))
        except InputError as error:
            failed = bool(_complain(str(error), BAD_INPUT))
    return BAD_INPUT if failed else PASSED


def _doctor(options: argparse.Namespace) -> int:
    from grader.doctor import examine, render
    from grader.workspace import folder

    signs = list(examine(folder(None)))
    print(render(signs))
    return PASSED if all(sign.well for sign in signs) else NOT_PASSED


def _complain(sentence: str, code: int) -> int:
    print(f"grader: {sentence}", file=sys.stderr)
    return code

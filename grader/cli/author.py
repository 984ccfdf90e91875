"""What authors and instructors call: `grader build`, `grader audit` and `grader release`."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from grader.authoring import teaching
from grader.authoring.audit import audit, render
from grader.authoring.build import build, stale
from grader.authoring.release import release
from grader.cli.arguments import chosen_lessons
from grader.cli.exits import NOT_PASSED, PASSED, complain, harmless
from grader.course import index
from grader.course.course import Course, open_course
from grader.util.errors import AuthorError, InputError
from grader.util.words import pluralize

_CLOCK = re.compile(r"\b(?:perf_counter|timeit)\b")


def run_build(options: argparse.Namespace) -> int:
    if options.check:
        return _check_builds(chosen_lessons(options.lessons))
    index.write(open_course())  # first: the lesson to build may be new
    names = chosen_lessons(options.lessons)
    timed = [name for name in names if _CLOCK.search(open_course().source(name))]
    others = [name for name in names if name not in timed]
    start_s = time.perf_counter()
    write = partial(build, anew=options.anew)
    successes = [_build_all(others, write, options.jobs), _build_all(timed, write, 1)]
    teaching.write_overview(open_course())
    if len(names) > 1:
        print(f"{len(names)} lessons in {time.perf_counter() - start_s:.0f} s", file=sys.stderr)
    return PASSED if all(successes) else NOT_PASSED


def _check_builds(names: Sequence[str]) -> int:
    problems = ["solutions/index.json is older than the specifications."] * index.is_stale(open_course())
    problems += ["docs/teaching/README.md is older than the lessons."] * teaching.overview_is_stale(open_course())
    for name in names:
        try:
            problems += stale(open_course(), name)
        except AuthorError as error:
            problems += map(str, error.problems)
    if problems:
        print(*problems, sep="\n", file=sys.stderr)
        return complain("run `grader build` with the lessons named above.", NOT_PASSED)
    print(f"{pluralize(len(names), 'lesson')}: each notebook is what its source builds.")
    return PASSED


def _build_all(names: Sequence[str], write: Callable[[Course, str], None], jobs: int) -> bool:
    """Builds lessons, so many at a time, and tells of each as it ends. Returns: whether all went well."""

    def build_one(name: str) -> bool:
        start_s = time.perf_counter()
        try:
            write(open_course(), name)
        except AuthorError as error:
            print(f"{name}: not built.\n  " + "\n  ".join(map(str, error.problems)), file=sys.stderr, flush=True)
            return False
        print(f"{name}: built in {time.perf_counter() - start_s:.1f} s", file=sys.stderr, flush=True)
        return True

    with ThreadPoolExecutor(jobs) as pool:
        return all(list(pool.map(build_one, names)))


def run_audit(options: argparse.Namespace) -> int:
    findings = audit(open_course(), chosen_lessons(options.lessons))
    print(render(findings))
    return PASSED if findings.passed else NOT_PASSED


def run_release(options: argparse.Namespace) -> int:
    if options.only and not options.lessons:
        raise InputError("--only leaves out the lessons before those that --lessons names, so it needs --lessons.")
    index.gather(open_course())  # an id that is used twice, wherever that is
    all_lessons = open_course().lessons()
    lessons = tuple(name for name in all_lessons if name in (options.lessons or all_lessons))
    notes = release(
        open_course(),
        options.place,
        lessons,
        earlier=tuple(name for name in all_lessons if name < lessons[-1] and name not in lessons and not options.only),
        without_solutions=options.without_solutions,
        gradescope_bundle=options.gradescope,
        grader=options.grader or "",
    )
    print(harmless(notes))
    return PASSED

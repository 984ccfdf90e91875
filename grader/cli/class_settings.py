"""What a run of `grader class` is graded and marked with: what the call names, class.toml, what the run was begun with, the defaults.

class.toml has the options that hold for a whole class, in a file beside the learners' work. Each is declared once, in options.py, and read
here by the same reader as on the command line.
"""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grader.cli.arguments import NONE
from grader.cli.exits import say
from grader.cli.options import CLASS, OF_THE_CALL, OF_THE_RUN, Option
from grader.course.course import open_course
from grader.course.spec import SEED
from grader.grading.class_folder import choose_lessons
from grader.grading.dask_pool import course_digest
from grader.grading.grade import Settings
from grader.grading.marks import read_weights
from grader.grading.scheme import DEFAULTS
from grader.sandbox.sandbox import TIMEOUT_S
from grader.submission.discover import POLICY
from grader.submission.roster import read_roster
from grader.util.errors import InputError
from grader.util.words import did_you_mean, join_names

MOST_BYTES = 1 << 20  # of class.toml
OPTIONS = {one.attribute: one for one in CLASS}
HALF = "half of the learners"  # who chose the lessons


def resolve_settings(
    options: argparse.Namespace, learners: list, earlier: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """What the run is graded and marked with, as its journal keeps it: what this call or class.toml names, else what the run was begun
    with, else the defaults. set_by says of each setting where it was set.

    Also sentences on the choice of lessons, where nobody made it. Raises: InputError."""
    where = _fill(options)
    named = _named_settings(options, [one.name for one in learners])
    before = earlier.get("set_by", {})
    if (options.folder / POLICY).is_file():  # what no longer stands there no longer holds
        gone = {key for key, place in before.items() if place.startswith(POLICY)} - set(named)
        earlier = {key: value for key, value in earlier.items() if key not in gone}
        before = {key: place for key, place in before.items() if key not in gone}
    if named.get("anonymous") and (named.get("roster") or named.get("assignment")):
        raise InputError(
            "--anonymous writes no grade book, so --roster and --assignment have no use; leave one of them out."
        )
    defaults = dict(
        seed=SEED, timeout_s=TIMEOUT_S, exercises=None, core=None, follow_through=None, seed_per_learner=False
    )
    about = {**defaults, **DEFAULTS, **earlier, **named}
    about["course"] = course_digest(open_course())
    set_by: dict[str, str] = {}
    for name, setting in OF_THE_RUN.items():
        if name in where and setting in named:
            set_by.setdefault(setting, where[name])  # --roster comes before --by
    by = before.get("lessons", where.get("exercises") or where.get("lessons") or HALF)
    about["set_by"] = {**before, **set_by, "lessons": by}
    lessons, sentences = choose_lessons(open_course(), learners, earlier.get("lessons")) if by == HALF else ([], [])
    about.setdefault("lessons", lessons)
    return about, sentences


def settings_of(about: Mapping[str, Any], require: str) -> Settings:
    """What each submission of a run with these settings is graded with. require: the least isolation."""
    course, only, share = open_course(), about["exercises"], about["follow_through"] or 0
    counted = only and tuple(only)
    if about.get("core"):
        counted = tuple(name for name in course.core_exercises() if not only or name in only)
    own = about["seed"], about["timeout_s"], require, share, about["seed_per_learner"]
    return Settings(course, tuple(about["lessons"]), counted, *own)


def _named_settings(options: argparse.Namespace, learners: Sequence[str]) -> dict[str, Any]:
    """Those of the journal's settings that this call names."""
    roster, lessons = _roster(options, learners), _lessons(options.lessons, options.exercises)
    named = {setting: getattr(options, attribute) for attribute, setting in OF_THE_RUN.items()}
    named |= {
        "lessons": lessons and sorted(lessons),
        "exercises": options.exercises and sorted(options.exercises),
        "weights": read_weights(open_course(), options.weights)
        if isinstance(options.weights, Path)
        else options.weights,
        "roster": roster,
    }
    del named["course"], named["isolation"]  # of which the run itself says what they are
    named = {key: DEFAULTS.get(key) if value == NONE else value for key, value in named.items() if value is not None}
    return json.loads(json.dumps(named))  # as the journal gives it back


def _roster(options: argparse.Namespace, learners: Sequence[str]) -> Any:
    if options.by and not options.roster:
        raise InputError("--by names a column of the roster, so it needs --roster FILE.")
    if options.roster in (None, NONE):
        return options.roster
    roster = read_roster(options.roster, options.by or "")
    if not any(roster.person("key", one) for one in learners):  # every grade book would be empty
        raise InputError(
            f"{options.folder} has no learner whose name stands in the column {roster.column!r} of {options.roster}. The column has "
            f"{join_names([one.key for one in roster.people])}; the folder has {join_names(learners)}. Name another column with "
            "--by, or sort the work anew with `grader collect` and this roster."
        )
    say(*roster.notes)
    return asdict(roster)


def _lessons(lessons: tuple[str, ...] | None, exercises: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The lessons to grade: those named, else those of the exercises named. Raises: InputError where these are in none of those."""
    theirs = {name: open_course().lesson_of(name) for name in exercises or ()}
    outside = [name for name, lesson in theirs.items() if lessons and lesson not in lessons]
    if outside:
        raise InputError(
            f"{outside[0]} belongs to lesson {theirs[outside[0]][:2]}, which --lessons leaves out; name it there, too, "
            "or leave --lessons out."
        )
    # A lesson without an exercise that counts would be an empty column.
    return tuple(sorted(set(theirs.values()))) if theirs else lessons


def _fill(options: argparse.Namespace) -> dict[str, str]:
    """Sets the options that the call does not name. Returns: of each that is set, where: '--due', or 'class.toml, line 3'.

    Raises: InputError with the line for what is no setting, or none of the right kind.
    """
    kept = [name for name in OPTIONS if name not in OF_THE_CALL]
    where = {name: OPTIONS[name].flags[-1] for name in kept if getattr(options, name) is not None}
    path = options.folder / POLICY
    if path.is_file():
        for name, value, place in _settings(path):
            if name not in where:
                setattr(options, name, value)
                where[name] = place
    return where


def _settings(path: Path) -> Iterator[tuple[str, Any, str]]:
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} is too large for a class's settings.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        table = tomllib.loads(text)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8; save it so.") from None
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, or too many brackets
        raise InputError(f"{path} is not TOML: {error}.") from None
    lines = text.splitlines()
    names: set[str] = set()
    for key, value in table.items():
        try:
            name = _known(key)
            if name in names:
                raise InputError(f"{key} is set twice, with dashes and with underscores; keep one of them")
            names.add(name)
            setting = _read(OPTIONS[name], value)
        except (InputError, argparse.ArgumentTypeError) as error:
            quoted = re.findall(r"'[^']*'", str(error))
            inner = value.items() if isinstance(value, dict) else ()
            within = [each for each, mine in inner if repr(each) in quoted or repr(str(mine)) in quoted]
            line = _line(lines, key, *within[:1])
            stop = "" if str(error)[-1:] in ".?" else "."  # argparse's kinds of argument end in none
            raise InputError(f"{path}, line {line}: {error}{stop}") from None
        place = f"{POLICY}, line {_line(lines, key)}"
        yield name, path.parent / setting if isinstance(setting, Path) else setting, place


def _known(key: str) -> str:
    """The option of a key, with dashes or underscores. Raises: InputError with the nearest one."""
    name = key.replace("-", "_")
    if name in OF_THE_CALL:
        raise InputError(f"{key} is about one call, not about the class; give --{key.replace('_', '-')} to the command")
    if name not in OPTIONS:
        kept = [each.replace("_", "-") for each in OPTIONS if each not in OF_THE_CALL]
        near = did_you_mean(key.replace("_", "-"), kept, f"there are {', '.join(kept)}.")
        raise InputError(f"there is no setting {key!r}{near}")
    return name


def _read(one: Option, value: Any) -> Any:
    """The value as the command line would have it. Raises: InputError, ArgumentTypeError."""
    name, switch = one.attribute.replace("_", "-"), one.details.get("action") is argparse.BooleanOptionalAction
    if switch or isinstance(value, bool):
        if switch and isinstance(value, bool):
            return value
        raise InputError(f"{name} is {'true or false' if switch else 'neither true nor false'}, not {value!r}")
    if isinstance(value, dict):
        if one.table is None:
            raise InputError(f"{name} is one value, not a table")
        return one.table(value)
    if isinstance(value, list):
        value = ",".join(map(str, value))
    text = str(value)  # of a time as '2026-11-20 23:59:00+01:00'
    choices = one.details.get("choices")
    if choices and text not in choices:
        raise InputError(f"{name} is {' or '.join(choices)}, not {text!r}")
    return one.details.get("type", str)(text)


def _line(lines: Sequence[str], key: str, within: str = "") -> int:
    """The line of a key, or of a key within its table, which tomllib does not tell; where none is seen, of its table."""

    def numbers(start: str) -> list[int]:
        pattern = re.compile(rf"\s*(\[\s*)?([\"']?){start}\2\s*[=.\]]")
        return [number for number, line in enumerate(lines, 1) if pattern.match(line)]

    first = next(iter(numbers(re.escape(key))), 1)
    below = [number for number in numbers(rf"({re.escape(key)}\.)?{re.escape(within)}") if number >= first]
    return min(below, default=first) if within else first

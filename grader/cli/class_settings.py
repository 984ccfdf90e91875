"""What a run of `grader class` is graded and marked with: what the call names, class.toml, what the run was begun with, the defaults.

class.toml has the options that hold for a whole class, in a file beside the learners' work. Each is declared once, in options.py, and read
here by the same reader as on the command line.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from grader.cli.arguments import NONE
from grader.cli.exits import say
from grader.cli.options import CLASS, OF_THE_CALL, OF_THE_RUN, Option
from grader.course.course import open_course
from grader.grading.dask_pool import course_digest
from grader.grading.grade import Settings
from grader.grading.marks import read_weights
from grader.grading.scheme import COURSE_DEFAULTS, RunSettings
from grader.submission.discover import CLASS_FILE
from grader.submission.roster import Roster, read_roster
from grader.util.errors import InputError
from grader.util.words import did_you_mean, join_names

MOST_BYTES = 1 << 20  # of class.toml
OPTIONS = {option.attribute: option for option in CLASS}
HALF = "half of the learners"  # in set_by: who chose the lessons, where nobody named them


def named_options(options: argparse.Namespace) -> dict[str, tuple[Any, str]]:
    """The options about the run that the call names, or else class.toml: value, and where it was set.

    Raises: InputError with the line for what is no setting, or none of the right kind.
    """
    path = options.folder / CLASS_FILE
    settings = {name: (value, place) for name, value, place in (_settings(path) if path.is_file() else ())}
    for name in OF_THE_RUN.keys() - {"course"}:
        if (value := getattr(options, name)) is not None:
            settings[name] = value, OPTIONS[name].flags[-1]
    return {name: settings[name] for name in OF_THE_RUN if name in settings}


def read_settings(
    options: Mapping[str, tuple[Any, str]], folder: Path, learners: Sequence[str], earlier: RunSettings | None
) -> RunSettings:
    """What the run is graded and marked with: the options, else what it was begun with, else the defaults.

    options: as named_options() has them. learners: their names in the folder. Where nobody has named lessons, set_by
    says HALF, and they are the earlier run's. Raises: InputError.
    """
    values = _named_settings({name: value for name, (value, _) in options.items()}, folder, learners)
    if values.get("anonymous") and (values.get("roster") or values.get("assignment")):
        raise InputError(
            "--anonymous writes no grade book, so --roster and --assignment have no use; leave one of them out."
        )
    base = earlier or COURSE_DEFAULTS
    if (folder / CLASS_FILE).is_file():  # what no longer stands there no longer holds
        stale_keys = {key for key, place in base.set_by.items() if place.startswith(CLASS_FILE)} - set(values)
        set_by = {key: place for key, place in base.set_by.items() if key not in stale_keys}
        base = replace(base, set_by=set_by, **{key: getattr(COURSE_DEFAULTS, key) for key in stale_keys})
    places = {
        OF_THE_RUN[name]: place for name, (_, place) in options.items() if name not in ("by", "require_isolation")
    }
    lessons_place = places.get("exercises") or places.get("lessons") or base.set_by.get("lessons", HALF)
    set_by = {**base.set_by, **places, "lessons": lessons_place}
    return replace(base, **values, course=course_digest(open_course()), set_by=set_by)


def grading_settings(run: RunSettings) -> Settings:
    """What each submission of the run is graded with."""
    course, exercises = open_course(), run.exercises
    if run.core:
        exercises = tuple(name for name in course.core_exercises() if exercises is None or name in exercises)
    values = {field.name: getattr(run, field.name) for field in fields(Settings)}
    return Settings(**values | {"course": course, "exercises": exercises})


def _named_settings(values: Mapping[str, Any], folder: Path, learners: Sequence[str]) -> dict[str, Any]:
    """Those of the run's settings that this call or class.toml names. values: by option."""
    settings = {setting: values[name] for name, setting in OF_THE_RUN.items() if name in values and name != "by"}
    if "isolation" in settings:  # the run itself says which one it has
        settings["require"] = settings.pop("isolation")
    if lessons := _lessons(values.get("lessons"), values.get("exercises")):
        settings["lessons"] = tuple(sorted(lessons))
    if "exercises" in settings:
        settings["exercises"] = tuple(sorted(settings["exercises"]))
    if isinstance(settings.get("weights"), Path):
        settings["weights"] = read_weights(open_course(), settings["weights"])
    if roster := _roster(values.get("roster"), values.get("by", ""), folder, learners):
        settings["roster"] = roster
    return {key: getattr(COURSE_DEFAULTS, key) if value == NONE else value for key, value in settings.items()}


def _roster(path: Any, by: str, folder: Path, learners: Sequence[str]) -> Roster | None:
    if by and not path:
        raise InputError("--by names a column of the roster, so it needs --roster FILE.")
    if path in (None, NONE):
        return None
    roster = read_roster(path, by)
    if not any(roster.person("key", learner) for learner in learners):  # every grade book would be empty
        raise InputError(
            f"{folder} has no learner whose name stands in the column {roster.column!r} of {path}. The column has "
            f"{join_names([person.key for person in roster.people])}; the folder has {join_names(learners)}. Name another column with "
            "--by, or sort the work anew with `grader collect` and this roster."
        )
    say(*roster.notes)
    return roster


def _lessons(lessons: tuple[str, ...] | None, exercises: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The lessons to grade: those named, else those of the exercises named. Raises: InputError where these are in none of those."""
    lesson_of = {name: open_course().lesson_of(name) for name in exercises or ()}
    if outside := [name for name, lesson in lesson_of.items() if lessons and lesson not in lessons]:
        raise InputError(
            f"{outside[0]} belongs to lesson {lesson_of[outside[0]][:2]}, which --lessons leaves out; name it there, too, "
            "or leave --lessons out."
        )
    # A lesson without an exercise that counts would be an empty column.
    return tuple(sorted(set(lesson_of.values()))) if lesson_of else lessons


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
            name = _option_name(key)
            if name in names:
                raise InputError(f"{key} is set twice, with dashes and with underscores; keep one of them")
            names.add(name)
            setting = _read(OPTIONS[name], value)
        except (InputError, argparse.ArgumentTypeError) as error:
            quotes = re.findall(r"'[^']*'", str(error))
            pairs = value.items() if isinstance(value, dict) else ()
            subkeys = [subkey for subkey, item in pairs if repr(subkey) in quotes or repr(str(item)) in quotes]
            line = _line(lines, key, *subkeys[:1])
            period = "" if str(error)[-1:] in ".?" else "."  # argparse's kinds of argument end in none
            raise InputError(f"{path}, line {line}: {error}{period}") from None
        place = f"{CLASS_FILE}, line {_line(lines, key)}"
        yield name, path.parent / setting if isinstance(setting, Path) else setting, place


def _option_name(key: str) -> str:
    """The option of a key, with dashes or underscores. Raises: InputError with the nearest one."""
    name = key.replace("-", "_")
    if name in OF_THE_CALL:
        raise InputError(f"{key} is about one call, not about the class; give --{key.replace('_', '-')} to the command")
    if name not in OPTIONS:
        names = [name.replace("_", "-") for name in OPTIONS if name not in OF_THE_CALL]
        advice = did_you_mean(key.replace("_", "-"), names, f"there are {', '.join(names)}.")
        raise InputError(f"there is no setting {key!r}{advice}")
    return name


def _read(option: Option, value: Any) -> Any:
    """The value as the command line would have it. Raises: InputError, ArgumentTypeError."""
    name, switch = option.attribute.replace("_", "-"), option.details.get("action") is argparse.BooleanOptionalAction
    if switch or isinstance(value, bool):
        if switch and isinstance(value, bool):
            return value
        raise InputError(f"{name} is {'true or false' if switch else 'neither true nor false'}, not {value!r}")
    if isinstance(value, dict):
        if option.table is None:
            raise InputError(f"{name} is one value, not a table")
        return option.table(value)
    if isinstance(value, list):
        value = ",".join(map(str, value))
    text = str(value)  # of a time as '2026-11-20 23:59:00+01:00'
    choices = option.details.get("choices")
    if choices and text not in choices:
        raise InputError(f"{name} is {' or '.join(choices)}, not {text!r}")
    return option.details.get("type", str)(text)


def _line(lines: Sequence[str], key: str, subkey: str = "") -> int:
    """The line of a key, or of a key within its table, which tomllib does not tell; where none is seen, of its table."""

    def line_numbers(start: str) -> list[int]:
        pattern = re.compile(rf"\s*(\[\s*)?([\"']?){start}\2\s*[=.\]]")
        return [number for number, line in enumerate(lines, 1) if pattern.match(line)]

    first = next(iter(line_numbers(re.escape(key))), 1)
    matches = [number for number in line_numbers(rf"({re.escape(key)}\.)?{re.escape(subkey)}") if number >= first]
    return min(matches, default=first) if subkey else first

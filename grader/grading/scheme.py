"""What a class is graded and marked with, as a run keeps it in its journal, contents of files included.

No submission is graded again where the marking scheme changes. So it may change on purpose, with `--rescore`, and never
by oversight: a run that continues takes every setting from the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grader.course.spec import SEED
from grader.sandbox.sandbox import TIMEOUT_S
from grader.submission.roster import Roster
from grader.util.records import NOT_STORED, encoded
from grader.util.words import format_duration, join_names, pluralize


@dataclass(frozen=True)
class MarkingScheme:
    """What verdicts are worth in a class, and what grade books are told.

    weights: points by exercise that replace the course's. partial: whether cases that agree earn their share.

    max_points, assignment, roster: as in Gradebook. anonymous: whether reports have pseudonyms and no grade book is written.
    due: a time in UTC, '' where nobody said. grace: seconds that are in time, too. penalty: (number, whether it is a percentage of the
    full points) for each day begun. extensions: by learner, seconds or a time.
    """

    weights: Mapping[str, float] | None = None
    partial: bool = False
    max_points: float | None = None
    assignment: str = ""
    roster: Roster | None = None
    anonymous: bool = False
    due: str = ""
    grace: float = 0
    penalty: tuple[float, bool] | None = None
    extensions: Mapping[str, int | str] | None = None


@dataclass(frozen=True)
class RunSettings(MarkingScheme):
    """All settings of a run of `grader class`: the marking scheme, and what each submission is graded with.

    course: its digest. exercises: those that count, None for all of the lessons'. core: whether the core's alone count.
    timeout_s, seed, follow_through, seed_per_learner: as in grade.Settings. isolation: the level that held, '' before
    it is known. require: the least one to grade with; each call says it anew. set_by: where each that somebody set was
    set: '--due', or 'class.toml, line 3'.
    """

    course: str = ""
    lessons: tuple[str, ...] = ()
    exercises: tuple[str, ...] | None = None
    core: bool | None = None
    seed: int = SEED
    timeout_s: float = TIMEOUT_S
    follow_through: float | None = None
    seed_per_learner: bool = False
    isolation: str = ""
    require: str = field(default="full", metadata=NOT_STORED)
    set_by: Mapping[str, str] = field(default_factory=dict)


COURSE_DEFAULTS = RunSettings()
MARKS = tuple(encoded(MarkingScheme()))  # the settings that may change without grading again


def differences(earlier: RunSettings, now: RunSettings) -> dict[str, str]:
    """For each setting that changed, in words: what it was and what it is now."""
    old, new = encoded(earlier), encoded(now)
    keys = [key for key in new if key != "set_by" and _content(key, old[key]) != _content(key, new[key])]
    return {key: _describe_change(key, old[key], new[key]) for key in keys}


def summary(settings: RunSettings) -> str:
    """The marking scheme in words; '' where it is the course's own."""
    values, defaults = encoded(settings), encoded(COURSE_DEFAULTS)
    return ", ".join(_setting(key, values[key]) for key in MARKS if values[key] != defaults[key])


def describe_choices(settings: RunSettings) -> str:
    """What counted that somebody set, and where: by an option of the command or by a line of class.toml."""
    values = encoded(settings)
    choices = [
        f"{_setting(key, values[key]).removeprefix('--')} ({place})"
        for key, place in settings.set_by.items()
        if place.startswith(("--", "class.toml"))
    ]
    return f"What counted, and where it was set: {'; '.join(choices)}. All else is the course's." if choices else ""


def _flag(key: str) -> str:
    return key if key == "isolation" else f"--{key.removesuffix('_s').replace('_', '-')}"


def _content(key: str, value: Any) -> Any:
    """What of a setting can change a mark or a file: the roster's learners by key and, at '', its points, wherever its file lies."""
    if key == "roster" and value:
        return {"": value["possible"]} | {person["key"]: person["values"] for person in value["people"]}
    return value


def _describe_change(key: str, old: Any, new: Any) -> str:
    if key == "course":
        return "another course, or another version of this one"
    if key in ("weights", "roster", "extensions") and old and new:
        old, new = (_content(key, value) for value in (old, new))
        names = sorted(name for name in old.keys() | new.keys() if name and old.get(name) != new.get(name))
        return f"{_flag(key)} ({f'differs for {join_names(names)}' if names else 'another column'})"
    return f"{_flag(key)} {_format(key, old)} (now {_format(key, new)})"


def _setting(key: str, value: Any) -> str:
    if value is False:
        return f"--no-{_flag(key).removeprefix('--')}"
    return _flag(key) if value is True else f"{_flag(key)} {_format(key, value)}"


_FORMATS: dict[str, Callable[[Any], str]] = {
    "due": lambda time: f"{time[:16].replace('T', ' ')} UTC",
    "follow_through": lambda share: f"{100 * share:g} %",
    "grace": format_duration,
    "penalty": lambda penalty: f"{penalty[0]:g}{' %' if penalty[1] else ' points'} a day",
    "extensions": lambda learners: f"for {pluralize(len(learners), 'learner')}",  # pseudonyms are to say nothing
    "weights": lambda points: f"for {pluralize(len(points), 'exercise')}",
    "roster": lambda roster: f"with {pluralize(len(roster['people']), 'learner')}",
}


def _format(key: str, value: Any) -> str:
    if value in (None, "", False):
        return "all" if key == "exercises" else "none"
    if value is True:
        return "given"
    if key in _FORMATS:
        return _FORMATS[key](value)
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

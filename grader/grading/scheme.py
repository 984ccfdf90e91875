"""What verdicts are worth in a class, and what grade books are told: settings that a run keeps in its journal, contents of files included.

No submission is graded again where one of them changes. So they may change on purpose, with `--rescore`, and never by oversight: a run
that continues takes them from the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from grader.submission.roster import Roster
from grader.util.records import decoded
from grader.util.words import format_duration, join_names, pluralize


@dataclass(frozen=True)
class MarkingScheme:
    """weights: points by exercise that replace the course's. partial: whether cases that agree earn their share.

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
    extensions: Mapping[str, float | str] | None = None

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> MarkingScheme:
        own = {name: settings[name] for name in KEYS if name in settings}
        if roster := own.get("roster"):
            own["roster"] = decoded(Roster, {"column": "", "possible": {}} | roster)
        return cls(**own)


DEFAULTS = asdict(MarkingScheme())
KEYS = tuple(DEFAULTS)


def differences(earlier: Mapping[str, Any], now: Mapping[str, Any], keys: Collection[str]) -> dict[str, str]:
    """For each of these settings that changed, in words: what it was and what it is now."""
    pairs = {key: (earlier.get(key), now.get(key)) for key in keys}
    changed = {key: pair for key, pair in pairs.items() if _content(key, pair[0]) != _content(key, pair[1])}
    return {key: _changed(key, *pair) for key, pair in changed.items()}


def summary(settings: Mapping[str, Any]) -> str:
    """The marking scheme in words; '' where it is the course's own."""
    return ", ".join(_setting(key, settings[key]) for key in KEYS if settings.get(key, DEFAULTS[key]) != DEFAULTS[key])


def describe_choices(settings: Mapping[str, Any]) -> str:
    """What counted that somebody set, and where: by an option of the command or by a line of class.toml."""
    choices = [
        f"{_setting(key, settings[key]).removeprefix('--')} ({place})"
        for key, place in settings["set_by"].items()
        if place.startswith(("--", "class.toml"))
    ]
    return f"What counted, and where it was set: {'; '.join(choices)}. All else is the course's." if choices else ""


def _flag(key: str) -> str:
    return key if key == "isolation" else f"--{key.removesuffix('_s').replace('_', '-')}"


def _content(key: str, value: Any) -> Any:
    """What of a setting can change a mark or a file: the roster's learners by key and, at '', its points, wherever its file lies."""
    if key == "roster" and value:
        return {"": value["possible"]} | {one["key"]: one["values"] for one in value["people"]}
    return value


def _changed(key: str, was: Any, now: Any) -> str:
    if key == "course":
        return "another course, or another version of this one"
    if key in ("weights", "roster", "extensions") and was and now:
        theirs, mine = (_content(key, value) for value in (was, now))
        others = sorted(name for name in theirs.keys() | mine.keys() if name and theirs.get(name) != mine.get(name))
        return f"{_flag(key)} ({f'differs for {join_names(others)}' if others else 'another column'})"
    return f"{_flag(key)} {_shown(key, was)} (now {_shown(key, now)})"


def _setting(key: str, value: Any) -> str:
    if value is False:
        return f"--no-{_flag(key).removeprefix('--')}"
    return _flag(key) if value is True else f"{_flag(key)} {_shown(key, value)}"


_IN_WORDS: dict[str, Callable[[Any], str]] = {
    "due": lambda time: f"{time[:16].replace('T', ' ')} UTC",
    "follow_through": lambda share: f"{100 * share:g} %",
    "grace": format_duration,
    "penalty": lambda each: f"{each[0]:g}{' %' if each[1] else ' points'} a day",
    "extensions": lambda learners: f"for {pluralize(len(learners), 'learner')}",  # pseudonyms are to say nothing
    "weights": lambda points: f"for {pluralize(len(points), 'exercise')}",
    "roster": lambda roster: f"with {pluralize(len(roster['people']), 'learner')}",
}


def _shown(key: str, value: Any) -> str:
    if value in (None, "", False):
        return "all" if key in ("lessons", "exercises") else "none"
    if value is True:
        return "given"
    if key in _IN_WORDS:
        return _IN_WORDS[key](value)
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

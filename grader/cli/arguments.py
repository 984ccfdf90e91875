"""What arguments may be: each kind is read here, and a wrong one is a sentence."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from grader.course.course import open_course
from grader.course.course_folder import NEEDED
from grader.util.errors import InputError

NONE = "none"
UNITS = {"m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}  # in seconds


def lesson_name(text: str, among: Iterable[str] | None = None) -> str:
    """The full name of a lesson called '1', '01', '01_three_tokens' or 'notebooks/01_three_tokens.ipynb'.

    Raises: InputError, naming the nearest lesson, where there is none.
    """
    names = tuple(open_course().lessons() if among is None else among)
    stem = open_course().current_name(Path(text).stem if text.endswith((".py", ".ipynb")) else text)
    for name in names:
        if stem == name or (stem.isdigit() and stem.zfill(2) == name[:2]):
            return name
    matches = get_close_matches(stem, names, 1, 0.5) or [name for name in names if stem and stem.lower() in name]
    advice = f"did you mean {matches[0]}?" if matches else f"there are {', '.join(names) or 'none yet'}."
    note = f" A lesson of your own needs {NEEDED}." if not open_course().installed and not matches else ""
    raise InputError(f"there is no lesson {text!r}; {advice}{note}")


def _require(text: str, valid: object, fault: str) -> str:
    if not valid:
        raise argparse.ArgumentTypeError(f"{text!r} is {fault}")
    return text


def _float(text: str) -> float:
    """NaN, for which no comparison holds, where it is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def kind(read: Callable[[str], Any], valid: Callable[[str], object], fault: str) -> Callable[[str], Any]:
    """The kind of argument that `read` reads where it is valid. fault: what a wrong one is."""
    return lambda text: read(_require(text, valid(text), fault))


# An unset variable of a shell is no place: Python would take it for the current folder.
place = kind(str, str.strip, "no file or folder; leave it out, or name one")
path = kind(Path, str.strip, "no file or folder; leave it out, or name one")
natural = kind(int, str.isdecimal, "not a whole number of 0 or more")
whole = kind(int, lambda text: text.isdecimal() and int(text) > 0, "not a whole number of 1 or more")
port = kind(
    int, lambda text: text.isdecimal() and 0 < int(text) < 65_536, "not a port; a port is a number from 1 to 65535"
)
positive = kind(float, lambda text: 0 < _float(text) < 1e9, "not a number above 0")
seconds = kind(float, lambda text: 0 < _float(text) < 86_400, "not a number of seconds above 0 and below one day")
web_address = kind(
    lambda text: text.rstrip("/"),
    re.compile(r"https?://[A-Za-z0-9._\-\[\]:]+(/[\w./-]*)?").fullmatch,
    "not an address such as https://room.example.org",
)
requirement = kind(  # what pip takes on one line
    str.strip,
    lambda text: text.strip() and text.isprintable() and not text.lstrip().startswith("-") and "${{" not in text,
    "not a single requirement on one line",
)


def list_of(read: Callable[[str], str], fault: str) -> Callable[[str], tuple[str, ...]]:
    """The kind of argument that has several, with commas between them. None is refused: an unset variable of a shell is no choice."""

    def read_list(text: str) -> tuple[str, ...]:
        try:
            names = tuple(dict.fromkeys(read(part.strip()) for part in text.split(",") if part.strip()))
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if not names:
            raise argparse.ArgumentTypeError(f"{text!r} {fault}")
        return names

    return read_list


lesson_list = list_of(lesson_name, "names no lesson; leave the option out for all of them")
exercise_list = list_of(
    lambda name: open_course().known_exercise(name), "names no exercise; leave the option out for all of them"
)
name_list = list_of(str, "is not a name or a list of names separated by commas")


def threshold(text: str) -> tuple[float, bool]:
    """(number, whether it is a percentage)."""
    percent = text.endswith("%")
    number = _float(text.removesuffix("%"))
    _require(
        text, 0 <= number <= (100 if percent else 1e6), "neither points, such as 12, nor a percentage, such as 80%"
    )
    return number, percent


def share(text: str) -> float:
    """From 0 to 1, of '50%'."""
    number, percent = threshold(text)
    _require(text, percent, "not a percentage, such as 80%")
    return number / 100


def or_none(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """The kind of argument that `read` reads, or the word 'none', which takes back an earlier one."""
    return lambda text: text if text == NONE else read(text)


def points(table: Mapping[str, object]) -> dict[str, float]:
    """By exercise."""
    from grader.grading.marks import parse_points

    return {open_course().known_exercise(name): parse_points(str(number)) for name, number in table.items()}


def moment(text: str) -> str:
    """A time in UTC, as '2026-11-20T22:59:00+00:00'. Its zone is '+01:00', or the name of one after a space, else this machine's."""
    local_time, _, zone = text.strip().rpartition(" ")
    zone_has_name = "/" in zone or zone in ("UTC", "GMT")
    try:
        time = datetime.fromisoformat(local_time if zone_has_name else text.strip())
        if zone_has_name and time.tzinfo is None:
            time = time.replace(tzinfo=ZoneInfo(zone))
        if ":" in text:  # a day alone would be due at its beginning, which nobody means
            return time.astimezone(UTC).isoformat()
    except (ValueError, OverflowError, KeyError, OSError):  # KeyError: no such zone
        pass
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a time such as '2026-11-20 23:59', '2026-11-20 23:59+01:00' or '2026-11-20 23:59 Europe/Berlin'"
    )


def duration(text: str) -> int:
    """Seconds, of '15 min', '2 hours' or '1 day'."""
    match = re.fullmatch(r"(\d{1,6}) ?([a-z]+?)s?", text.strip())
    _require(text, bool(match and match[2] in UNITS), "not a duration such as '15 min', '2 hours' or '1 day'")
    return int(match[1]) * UNITS[match[2]]  # type: ignore[index]


def extension(text: str) -> int | str:
    """Seconds after it was due, or a time."""
    try:
        return duration(text)
    except argparse.ArgumentTypeError:
        return moment(text)


def extensions(setting: str | Mapping[str, object]) -> dict[str, int | str]:
    """By learner, of 'ada=2 days,bob=2026-11-27 23:59' or of a table."""
    if isinstance(setting, str):
        pairs = [part.partition("=") for part in setting.split(",") if part.strip()]
        _require(
            setting, bool(pairs) and all(sign for _, sign, _ in pairs), "not a list such as 'ada=2 days,bob=1 day'"
        )
        setting = {learner.strip(): time for learner, _, time in pairs}
    return {learner: extension(str(time)) for learner, time in setting.items()}


def chosen_lessons(texts: Sequence[str]) -> tuple[str, ...]:
    if not texts:
        return open_course().lessons()
    try:
        return tuple(dict.fromkeys(lesson_name(text) for text in texts))
    except InputError:
        planned = [lesson_name(text, open_course().exercises) for text in texts]
    missing = [name for name in planned if name not in open_course().lessons()]
    raise InputError(f"lesson {missing[0]} is not written yet: it needs solutions/{missing[0]}/lesson.py.")

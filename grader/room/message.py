"""What a learner's notebook tells a room, and all that it tells: one class for both sides; and the code by which one joins.

    {"at": 1795363200.25, "exercise": "softmax_rows", "status": "failed", "mistake": "SM1"}
    {"at": 1795363260.5, "note": "stuck"}
    {"at": 1795363290.0, "prediction": "01_three_tokens.2", "option": "B"}

The name was given when the learner joined. There is no field that could hold code.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import asdict, dataclass
from typing import Any

from grader.course.course import Course
from grader.judging.verdict import Statuses
from grader.reports import text
from grader.util.names import SPACE, UNSEEN, learner_name

FORMAT = 1
NOTES = ("stuck", "fine", "left")
MAX_EVENTS = 32  # in one message
MAX_NAME = 40  # characters
# A room's code is three of these, to be read aloud across a room: short, known to everybody, and hardly two that sound alike.
WORDS = tuple(
    """acorn amber anchor apple arrow aspen autumn badger banjo basil basket beacon beaver birch bishop bridge
    bronze buffalo butter bamboo cactus camel candle canoe canyon carpet castle cedar cherry circus clover cobalt
    comet copper coral cotton cricket crater dancer desert dolphin dragon eagle ember engine falcon feather fennel
    fiddle flint forest galaxy garden ginger glacier granite guitar hammer harbor hazel helmet hermit hotel igloo
    indigo island ivory jacket jaguar jasmine jungle kettle kitten ladder lagoon lantern lemon lilac linen lizard
    magnet mango maple marble meadow melon mirror monkey mosaic nectar needle nickel nutmeg oasis olive opal orbit
    orchid otter oyster parsley panda parrot peanut piano pepper pigeon planet poplar pollen prairie puppet pumpkin
    quartz rabbit raven ribbon river robin rocket salmon sandal
    spider tiger tulip velvet walnut window""".split()
)  # 128³ codes, which are 21 bits
_MISTAKE = re.compile(r"[A-Z]{2,3}\d{1,3}(\+[A-Z]{2,3}\d{1,3})?")  # one id, or two that only together fit
_LAST_TIME = 1e11  # in seconds since 1970: the year 5138


class MessageError(ValueError):
    """A message that is none, or a name that can't be shown; the text says which, in one sentence."""


@dataclass(frozen=True)
class Event:
    """One check, one note, or the option that was chosen of a prediction. at: when, in seconds since 1970 by the learner's clock."""

    at: float
    exercise: str = ""
    status: str = ""
    mistake: str = ""
    note: str = ""
    prediction: str = ""
    option: str = ""


FIELDS = set(Event.__dataclass_fields__)


def event_of(verdict: Any, time_s: float) -> Event:
    """What a room is told of a verdict; of several mistakes that fit alike, the likeliest."""
    mistake = verdict.mistakes[0] if verdict.mistakes else ""
    return Event(time_s, verdict.exercise, verdict.status, mistake if _MISTAKE.fullmatch(mistake) else "")


def to_json(event: Event) -> dict[str, Any]:
    return {key: value for key, value in asdict(event).items() if value != ""}


def read(course: Course, data: Any) -> Event:
    """The event in parsed JSON. Raises: MessageError."""
    fields = set(data) - {"at"} if isinstance(data, dict) else {""}
    if not fields <= FIELDS or not all(isinstance(data[name], str) for name in fields):
        raise MessageError("This is not a message of the course: it has other fields.")
    if type(data.get("at")) not in (int, float) or not 0 < data["at"] < _LAST_TIME:
        raise MessageError("This message has no time.")
    event = Event(**data | {"at": float(data["at"])})
    if fields == {"note"} and event.note in NOTES:
        return event
    if fields == {"prediction", "option"}:
        lesson, _, number = event.prediction.rpartition(".")
        if lesson not in course.exercises or not re.fullmatch("[1-9] [A-H]", f"{number} {event.option}"):
            raise MessageError("This prediction is not in the version of the course that the room runs.")
        return event
    if event.status not in Statuses:
        raise MessageError("This message has no status that the course knows.")
    if event.exercise not in course.exercise_names():
        raise MessageError("This exercise is not in the version of the course that the room runs.")
    if not fields <= {"exercise", "status", "mistake"} or event.mistake and not _MISTAKE.fullmatch(event.mistake):
        raise MessageError("This message names no mistake of the course.")
    return event


def read_all(course: Course, data: Any) -> tuple[Event, ...]:
    """The events of one message. Raises: MessageError; then none of them counts."""
    if not isinstance(data, list) or not 1 <= len(data) <= MAX_EVENTS:
        raise MessageError(f"A message holds 1 to {MAX_EVENTS} events.")
    return tuple(read(course, event) for event in data)


def validate_name(name: Any) -> str:
    """A name as the page can show it, at most MAX_NAME characters on one line. Raises: MessageError."""
    label = learner_name(text.one_line(name, MAX_NAME)) if isinstance(name, str) else ""
    if not label.strip(f" {UNSEEN}{SPACE}"):
        raise MessageError('A room needs a name to show, such as "ada".')
    return label


def new_code() -> str:
    return "-".join(secrets.choice(WORDS) for _ in range(3))


def is_code(typed: str, code: str) -> bool:
    """Whether a code is the right one, also typed as 'Amber falcon  RIVER'; takes the same time however much of it is right."""
    plain = re.sub(r"[^a-z]+", "-", typed[:200].lower()).strip("-")
    return hmac.compare_digest(plain.encode(), code.encode())

"""Who is in a room, what each of them did last, and the journal by whose lines alone that changes: a restart sees the same room.

The journal is JSON lines, each on its way to the disk before its sender is told that it was taken. The first holds the code and the pages'
keys; so a server that starts again opens the same room. The file is its owner's alone to read: it holds names.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import os
import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.course.course import Course
from grader.room.message import Event, new_code, read, to_json
from grader.util.errors import InputError
from grader.util.files import json_object, lock_file

FORMAT = 1  # of a journal
START = b'{"room": '
KEYS = ("code", "key", "key_with_names")
REMEMBERED = 512  # events of one learner by which a second copy of one is known


@dataclass(frozen=True)
class State:
    """What became of one exercise. mistake: its id, or ''; sentence: the mistake's, or ''."""

    status: str
    mistake: str = ""
    sentence: str = ""

    @property
    def wrong(self) -> bool:
        """What nobody has attempted is not wrong."""
        return self.status not in ("passed", "not_started", "missing")


@dataclass
class Member:
    """One learner. digest: of the token that their notebooks send; times: when each exercise was checked last, by their clock.

    exercise: the one that they are at; '': they have checked none, or passed all. note: 'stuck', 'fine' or ''.
    left: until they come back; removed: by the instructor, for good. predictions: of each the option that they chose first, and when.
    """

    name: str
    digest: str = ""
    states: dict[str, State] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    last: str = ""
    exercise: str = ""
    note: str = ""
    note_time: float = 0.0
    left: bool = False
    removed: bool = False
    events: dict[Event, None] = field(default_factory=dict)
    predictions: dict[str, tuple[str, float]] = field(default_factory=dict)

    def take(self, event: Event, course: Course, sentences: Mapping[str, str]) -> None:
        """sentences: what each mistake is, by its id."""
        self.events[event] = None
        if len(self.events) > REMEMBERED:
            del self.events[next(iter(self.events))]
        if event.prediction:
            self.predictions.setdefault(event.prediction, (event.option, event.at))
        elif event.note and event.at >= self.note_time:
            self.note_time, self.left = event.at, event.note == "left"
            self.note = "" if self.left else event.note
        elif event.exercise and event.at >= self.times.get(event.exercise, 0.0):
            if event.at >= max(self.times.values(), default=0.0):
                self.last = event.exercise
            self.times[event.exercise] = event.at
            texts = [sentences.get(id, "") for id in event.mistake.split("+")]
            # An id that the course does not know is not shown: it may be anybody's idea of a joke.
            explanation = (event.mistake, " ".join(texts)) if all(texts) else ()
            self.states[event.exercise] = State(event.status, *explanation)
            self.exercise = next_exercise(course, self.states, self.last)
            if event.status == "passed" and event.at >= self.note_time:
                self.note = ""


def next_exercise(course: Course, states: Mapping[str, State], last: str) -> str:
    """Where a learner is who checked `last` last: there until it passes, then at the next one that has not; '': all passed."""
    names = course.exercise_names()
    index = names.index(last) if last in names else 0
    order = (*names[index:], *names[:index])
    return next((name for name in order if name not in states or states[name].status != "passed"), "")


class RoomJournal:
    """A journal that is open for writing.

    code: of the room; key, key_with_names: of its pages' addresses; dropped: lines that could not be read.
    Raises: InputError where the file is no room's, or another process has it open; OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.dropped = path, 0
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a buffer: what could not be written must not follow later.
        self._file = open(path, "a+b", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600))
        try:
            if not lock_file(self._file):
                raise InputError(f"another room already uses {path}; name another file with --journal.")
            self.lines = self._read()
            if not self.lines:
                keys = {"key": secrets.token_urlsafe(12), "key_with_names": secrets.token_urlsafe(12)}
                self.lines = [{"room": FORMAT, "begun": time.time(), "code": new_code(), **keys}]
                self.add(self.lines[0])
                self.sync()
            first = self.lines.pop(0)
            if first.get("room") != FORMAT or not all(isinstance(first.get(key), str) for key in KEYS):
                raise self._foreign()
        except BaseException:
            self._file.close()
            raise
        self.code, self.key, self.key_with_names = first["code"], first["key"], first["key_with_names"]

    def add(self, line: dict[str, Any]) -> None:
        """Appends a line. Raises: OSError; then nothing of it is in the journal."""
        raw = json.dumps(line).encode() + b"\n"
        end = os.fstat(self._file.fileno()).st_size
        try:
            if self._file.write(raw) != len(raw):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        except OSError:
            self._file.truncate(end)
            raise

    def sync(self) -> None:
        """Has the system write all to the disk itself, for a power cut."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def _read(self) -> list[dict[str, Any]]:
        """Its whole lines; what a kill tore off at the end is cut away."""
        self._file.seek(0)
        content = self._file.read()
        *whole, torn = content.split(b"\n")
        lines = [json_object(line) for line in whole]
        if content and not content.startswith(START) or lines[:1] == [None]:
            raise self._foreign()
        self.dropped = lines.count(None)
        self._file.truncate(len(content) - len(torn))
        return [line for line in lines if line is not None]

    def _foreign(self) -> InputError:
        return InputError(f"{self.path} is not the journal of a room; name another file with --journal.")


class Room:
    """sentences: what each mistake is, by its id. members: by their places, those who were removed too."""

    def __init__(self, course: Course, journal: RoomJournal, sentences: Mapping[str, str]) -> None:
        self.course, self.journal, self._sentences = course, journal, sentences
        self.members: list[Member] = []
        self.code = journal.code
        for line in journal.lines:
            try:
                self._apply(line)
            except (LookupError, TypeError, ValueError, AttributeError):
                journal.dropped += 1
        journal.lines.clear()

    def join(self, name: str, token: str = "") -> str:
        """Gives a learner a place; who was here before, and shows the token of then, takes the same one.

        Returns: the token that belongs to the place. Raises: OSError.
        """
        place = self.place(token)
        if place is None:
            place = len(self.members)
            token = f"{place}.{secrets.token_urlsafe(18)}"
        self._write({"learner": place, "name": name, "digest": _digest(token), "got": time.time()})
        return token

    def place(self, token: str) -> int | None:
        """The place that a token belongs to; None: none of this room's, or its learner was removed."""
        place = self.issued(token)
        return None if place is None or self.members[place].removed else place

    def issued(self, token: str) -> int | None:
        """The place that a token was made for, also where its learner was removed."""
        number = token.partition(".")[0]
        if not (number.isascii() and number.isdigit() and len(number) < 9 and int(number) < len(self.members)):
            return None
        return int(number) if hmac.compare_digest(_digest(token), self.members[int(number)].digest) else None

    def take(self, place: int, events: Sequence[Event]) -> list[Event]:
        """Keeps events; one that came before, since its sender missed the answer, counts once.

        Returns: the new ones. Raises: OSError; a sender who sends all of them again loses none.
        """
        new = [event for event in dict.fromkeys(events) if event not in self.members[place].events]
        for event in new:
            self._write({"learner": place, "got": round(time.time(), 3), **to_json(event)})
        return new

    def remove(self, places: Sequence[int]) -> None:
        """Takes learners out of the room for good; their places are free. Raises: OSError."""
        for place in places:
            self._write({"learner": place, "removed": True})

    def change_code(self) -> None:
        """Gives the room another code, without which nobody new joins. Raises: OSError."""
        self._write({"code": new_code()})

    def present(self) -> dict[int, Member]:
        """The learners who were not removed, by place."""
        return {place: member for place, member in enumerate(self.members) if not member.removed}

    @property
    def learners(self) -> list[Member]:
        """Those whom the page shows: who has not left and was not removed."""
        return [member for member in self.members if not (member.left or member.removed)]

    @property
    def prediction(self) -> str:
        """The one that somebody answered last, '' for none."""
        answers = ((time_s, name) for member in self.learners for name, (_, time_s) in member.predictions.items())
        return max(answers, default=(0.0, ""))[1]

    @property
    def options(self) -> list[tuple[str, int]]:
        """How many chose each option of that prediction."""
        latest = self.prediction
        count = Counter(member.predictions[latest][0] for member in self.learners if latest in member.predictions)
        return sorted(count.items())

    def _write(self, line: dict[str, Any]) -> None:
        self.journal.add(line)
        self._apply(line)

    def _apply(self, line: Mapping[str, Any]) -> None:
        if "code" in line:
            self.code = str(line["code"])
            return
        number = line["learner"]
        if "removed" in line:
            self.members[number].removed = True
        elif "name" in line:
            if number == len(self.members):
                self.members.append(Member(str(line["name"]), str(line["digest"])))
            member = self.members[number]
            member.name, member.left = str(line["name"]), False
        else:
            event = read(self.course, {key: value for key, value in line.items() if key not in ("learner", "got")})
            self.members[number].take(event, self.course, self._sentences)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()

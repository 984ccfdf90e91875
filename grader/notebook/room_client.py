"""A learner in a room: join, leave, stuck and fine; and what each check tells while they are in one.

Nothing here raises for anything a learner passes, and no check waits for a room.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from grader.notebook.display import Display, learner_call, sentence
from grader.notebook.event_sender import RoomError, Sender, now, post
from grader.notebook.record import ROOM_FILE, default_path, make_folder
from grader.reports import text
from grader.room import message
from grader.room.message import Event, MessageError
from grader.util.files import json_object, write_atomically
from grader.util.records import decoded

DURATION_S = 12 * 3600.0  # a workshop's day: a learner who forgets to leave is out by next week
JOIN_TIMEOUT_S = 6.0
LEAVE_S = 2.0  # that leave() waits for the room to hear of it
EXAMPLE = 'join("http://192.168.1.20:8765", "amber-falcon-river", "ada")'
SENT = "your name, the exercise, its status, the mistake's id and the time, never your code; a prediction sends the option's letter"


@dataclass(frozen=True)
class Membership:
    """That a learner is in a room; a file beside the record of progress, so that it holds in every notebook and after a restart.

    token: by which the room knows this learner, again too. until: in seconds since 1970; 0: the learner has left.
    """

    address: str
    name: str
    token: str
    until: float

    @property
    def active(self) -> bool:
        return time.time() < self.until


@dataclass
class _RoomState:
    """What this process keeps of its room. announcements: what was said once. unsaved: memberships whose file can't be written."""

    sender: Sender = field(default_factory=lambda: Sender("", ""))  # of no room, until something is sent
    announcements: set[str] = field(default_factory=set)
    unsaved: dict[Path, Membership] = field(default_factory=dict)


_state = _RoomState()


@learner_call
def join(address: Any = "", code: Any = "", name: Any = "") -> Display:
    """Joins a room: from now on each check tells it the name, the exercise, its status, the mistake's id and the time.

    address, code: as the instructor's page shows them; name: what the room is to call you.
    """
    where = _address(address)
    try:
        label = message.validate_name(name)
    except MessageError:
        label = ""
    if where is None or not label or not isinstance(code, str) or not code.strip():
        return sentence(f"join takes the room's address, its code of three words and your name, as in `{EXAMPLE}`.")
    before = current()
    token = before.token if before is not None and before.address == where else ""
    foreign = f"The server at {where} is not a room of this course."
    try:
        answer = post(where, "/join", {"code": code[:200], "name": label, "token": token}, JOIN_TIMEOUT_S)
    except RoomError as error:
        refusal = error.sentence if error.status in (400, 403, 413, 429, 503) else ""
        return sentence(f"The room did not let you in: {text.one_line(refusal)}" if refusal else foreign)
    except OSError as error:
        why = text.one_line(error.strerror or type(error).__name__, 80)
        return sentence(
            f"No room answers at {where} ({'it took too long' if isinstance(error, TimeoutError) else why}). Is the address "
            "the one on the instructor's page, and is this computer in the same network?"
        )
    if not isinstance(answer.get("token"), str):
        return sentence(foreign)
    membership = Membership(where, label, answer["token"], time.time() + DURATION_S)
    note = _save(membership)
    return sentence(
        f"You are in the room as {label}. Each check now sends {SENT}. `stuck()` asks for help, `fine()` says that all is well, "
        f"and `leave()` ends it; it ends at {time.strftime('%H:%M', time.localtime(membership.until))} at the latest.",
        more=("Import them with `from grader import leave, stuck, fine`.", *note),
    )


@learner_call
def leave() -> Display:
    """Leaves the room: nothing more is sent."""
    membership = active()
    if membership is None:
        return sentence("You are not in a room; nothing is sent.")
    heard = _put(membership, Event(now(), note="left")) and _state.sender.drain(LEAVE_S)
    note = _save(replace(membership, until=0.0))
    _state.sender.close()
    unheard = () if heard else ("The room did not answer, so its page may still show you.",)
    return sentence("You have left the room; nothing more is sent.", more=(*unheard, *note))


@learner_call
def stuck(*words: object) -> Display:
    """The red note on the laptop: asks for help. words: are not sent, and the answer says so."""
    shows = "The room's page shows that somebody is stuck where you are."
    return _send_note("stuck", f"{shows} `fine()` takes this back, and so does a check that passes.", words)


@learner_call
def fine(*words: object) -> Display:
    """The green note on the laptop: all is well. words: as of stuck()."""
    return _send_note("fine", "The room's page shows that you are fine.", words)


def send(verdict: Any) -> tuple[str, ...]:
    """Sends a verdict to the room where the learner is in one. Returns: sentences that belong beside the verdict, each once."""
    try:
        membership = current()
        if membership is None:
            return ()
        if not membership.active:
            over = "Your time in the room is over; nothing more is sent."
            return _once(f"ended {membership.token}", over) if membership.until else ()
        problems = _problems(membership)
        of_this_code = verdict.status != "missing" and verdict.stage != "stale"
        if of_this_code and not _state.sender.refusal:
            _put(membership, message.event_of(verdict, now()))
        return problems or _once(f"on {membership.token}", *status())
    except Exception:  # a room must never stand between a learner and their check
        return ()


def send_prediction(prediction: str, option: str) -> None:
    """Sends what was chosen of a prediction, such as '01_three_tokens.2', to the room where the learner is in one."""
    with suppress(Exception):  # as in send
        membership = active()
        if membership is not None and not _state.sender.refusal:
            _put(membership, Event(now(), prediction=prediction, option=option))


def status(file: Path | None = None) -> tuple[str, ...]:
    """The sentence that says that the learner is in a room; none where they are in none. file: as in current()."""
    membership = active(file)
    if membership is None:
        return ()
    place = f"{membership.address} as {membership.name}"
    return (f"You are in the room at {place}: each check sends {SENT}. leave() ends it.",)


def current(file: Path | None = None) -> Membership | None:
    """The learner's membership, also one that has ended; None where the file holds none. file: by default the one of this folder."""
    file = file or membership_file()
    if file in _state.unsaved:
        return _state.unsaved[file]
    try:
        membership: Membership = decoded(Membership, json_object(file.read_bytes()) or {})
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return membership if membership.address.startswith(("http://", "https://")) else None


def active(file: Path | None = None) -> Membership | None:
    """The learner's membership where they are in a room now. file: as in current()."""
    membership = current(file)
    return membership if membership is not None and membership.active else None


def membership_file() -> Path:
    return default_path().with_name(ROOM_FILE)


def _send_note(note: str, confirmation: str, words: tuple[object, ...]) -> Display:
    membership = active()
    if membership is None:
        return sentence(f"{note}() needs a room, and you are not in one; join it like this: `{EXAMPLE}`.")
    problems = _problems(membership)
    if _state.sender.refusal:
        return sentence(" ".join(problems))
    if not _put(membership, Event(now(), note=note)):
        return sentence("This Python cannot start threads, so nothing can be sent to the room.")
    unsent = ("Your words were not sent: a note carries none. Ask whoever leads the room.",) if words else ()
    return sentence(confirmation, more=(*unsent, *problems))


def _put(membership: Membership, event: Event) -> bool:
    """Queues an event. Returns: whether it can be sent at all."""
    sender = _state.sender
    if sender.closed or (sender.address, sender.token) != (membership.address, membership.token):
        sender.close()
        file = membership_file()
        is_member = lambda: getattr(active(file), "token", "") == membership.token  # until they leave elsewhere
        sender = _state.sender = Sender(membership.address, membership.token, is_member)
    try:
        sender.put(event)
    except RuntimeError:
        return False
    return True


def _problems(membership: Membership) -> tuple[str, ...]:
    """What a learner is to know of the room, once."""
    sender = _state.sender
    if sender.refusal:
        _save(replace(membership, until=0.0))
        why = text.one_line(sender.refusal)
        over = f"The room accepts nothing more from this notebook: {why} join() joins it again."
        return _once(f"refused {membership.token}", over)
    if sender.failing:
        consequence = "Your checks work as before, and their results are sent once it answers."
        return _once("failing", f"The room does not answer at the moment. {consequence}")
    return ()


def _once(about: str, *sentences: str) -> tuple[str, ...]:
    if about in _state.announcements:
        return ()
    _state.announcements.add(about)
    return sentences


def _save(membership: Membership) -> tuple[str, ...]:
    """Writes the membership; where that fails it holds in this kernel. Returns: a sentence on that."""
    file = membership_file()
    if membership.active:
        _state.announcements.add(f"on {membership.token}")  # what join says at length need not be said again
        if _state.sender.refusal:
            _state.sender = Sender("", "")
    try:
        make_folder(file.parent)
        write_atomically(file, json.dumps(asdict(membership)), private=True)  # the token is the learner's own
    except OSError as error:
        _state.unsaved[file] = membership
        limit = "it applies to this notebook only, until its kernel ends."
        return (f"This can't be saved in {file} ({error.strerror}); {limit}",)
    _state.unsaved.pop(file, None)
    return ()


def _address(typed: Any) -> str | None:
    """'http://HOST:PORT' as typed, without what may stand around it; None where it is no address."""
    if not isinstance(typed, str):
        return None
    bare = typed.strip()
    bare = (bare if "://" in bare else f"http://{bare}").rstrip("/")
    try:
        url = urlsplit(bare)
        right = url.scheme in ("http", "https") and url.hostname and (url.port is None or url.port > 0)
    except ValueError:
        return None
    plain = bare.isascii() and bare.isprintable() and " " not in bare
    return bare if right and plain and not url.query and not url.fragment and not url.username else None

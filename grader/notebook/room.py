"""A learner in a room: join, leave, stuck and fine; and what each check tells while they are in one.

Nothing here raises for anything a learner passes, and no check waits for a room.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from grader.notebook import membership
from grader.notebook.membership import LASTS_S, Membership
from grader.notebook.sending import Line, NoRoom, Sender, now
from grader.notebook.showing import Shown, said
from grader.reports import text
from grader.room import message
from grader.room.message import Event, Refused

JOIN_TIMEOUT_S = 6.0
LEAVE_S = 2.0  # that leave() waits for the room to hear of it
EXAMPLE = 'join("http://192.168.1.20:8765", "amber-falcon-river", "ada")'
TOLD = "your name, the exercise, its status, the mistake's id and the time, never your code"


class _Kernel:
    """What this process keeps of its room. said: sentences that were shown, which come once."""

    def __init__(self) -> None:
        self.pid, self.sender, self.of, self.said = os.getpid(), None, ("", ""), set()  # a fork has no sender's thread
        self.memory: dict[Path, Membership] = {}  # where the file can't be written


_kernel = _Kernel()


def join(address: Any = "", code: Any = "", name: Any = "") -> Shown:
    """Joins a room: from now on each check tells it the name, the exercise, its status, the mistake's id and the time.

    address, code: as the instructor's page shows them; name: what the room is to call you.
    """
    where = _address(address)
    if where is None:
        return said(f"join takes the room's address, its code and your name, as in `{EXAMPLE}`.")
    if not isinstance(code, str) or not code.strip():
        return said(
            f"join takes the room's code, three words such as `amber-falcon-river`, after its address: `{EXAMPLE}`."
        )
    try:
        shown = message.learner_name(name)
    except Refused:
        return said(f"join takes the name that the room should show for you, after its code: `{EXAMPLE}`.")
    before = _read()
    token = before.token if before is not None and before.address == where else ""
    line = Line(where, JOIN_TIMEOUT_S)
    try:
        answer = line.post("/join", {"code": code[:200], "name": shown, "token": token})
    except NoRoom as no:
        return said(_no_room(where, no))
    except OSError as error:
        return said(
            f"No room answers at {where} ({_reason(error)}). Is the address the one on the instructor's page, and is this "
            "computer in the same network?"
        )
    finally:
        line.close()
    if not isinstance(answer.get("token"), str):
        return said(f"The server at {where} is not a room of this course.")
    joined = Membership(where, shown, answer["token"], time.time() + LASTS_S)
    note = _keep(joined)
    return said(
        f"You are in the room as {shown}. Each check now sends {TOLD}. `stuck()` asks for help, `fine()` says that all is well, "
        f"and `leave()` ends it; it ends at {_clock(joined.until)} at the latest.",
        more=("Import them with `from grader import leave, stuck, fine`.", *note),
    )


def leave() -> Shown:
    """Leaves the room: nothing more is sent."""
    mine = _read()
    if mine is None or not mine.on:
        return said("You are not in a room; nothing is sent.")
    heard = _put(mine, Event(now(), note="left")) and _kernel.sender is not None and _kernel.sender.drain(LEAVE_S)
    note = _keep(replace(mine, until=0.0))
    if _kernel.sender is not None:
        _kernel.sender.close()
    unheard = () if heard else ("The room did not answer, so its page may still show you.",)
    return said("You have left the room; nothing more is sent.", more=(*unheard, *note))


def stuck(*words: object) -> Shown:
    """The red note on the laptop: asks for help. words: are not sent, and the answer says so."""
    shows = "The room's page shows that somebody is stuck where you are."
    return _noted("stuck", f"{shows} `fine()` takes this back, and so does a check that passes.", words)


def fine(*words: object) -> Shown:
    """The green note on the laptop: all is well. words: as of stuck()."""
    return _noted("fine", "The room's page shows that you are fine.", words)


def told(verdict: Any) -> tuple[str, ...]:
    """Tells the room of a verdict where the learner is in one. Returns: sentences that belong beside the verdict, each once."""
    try:
        mine = _read()
        if mine is None:
            return ()
        if not mine.on:
            return (
                _once(f"ended {mine.token}", "Your time in the room is over; nothing more is sent.")
                if mine.until
                else ()
            )
        trouble = _trouble(mine)
        if (
            not _refused() and verdict.status != "missing" and verdict.stage != "stale"
        ):  # which say nothing of the code as it stands
            _put(mine, message.of_verdict(verdict, now()))
        return trouble or _once(f"on {mine.token}", on(mine))
    except Exception:  # a room must never stand between a learner and their check
        return ()


def on(mine: Membership | None) -> str:
    """The sentence that says that the learner is in a room; '' where they are in none."""
    if mine is None or not mine.on:
        return ""
    return f"You are in the room at {mine.address} as {mine.name}: each check sends {TOLD}. leave() ends it."


def told_of() -> tuple[str, ...]:
    """What progress() says of it."""
    said_ = on(_read())
    return (said_,) if said_ else ()


# --- in parts -----------------------------------------------------------------------------------


def _noted(note: str, done: str, words: tuple[object, ...]) -> Shown:
    mine = _read()
    if mine is None or not mine.on:
        return said(f"{note}() needs a room, and you are not in one; join it like this: `{EXAMPLE}`.")
    trouble = _trouble(mine)
    if _refused():
        return said(" ".join(trouble))
    if not _put(mine, Event(now(), note=note)):
        return said("This Python cannot start threads, so nothing can be sent to the room.")
    return said(
        done,
        more=(*["Your words were not sent: a note carries none. Ask whoever leads the room."] * bool(words), *trouble),
    )


def _put(mine: Membership, event: Event) -> bool:
    """Queues an event. Returns: whether it can be sent at all."""
    global _kernel
    if _kernel.pid != os.getpid():
        _kernel = _Kernel()
    if _kernel.of != (mine.address, mine.token) or _kernel.sender.closed:
        if _kernel.sender is not None:
            _kernel.sender.close()
        file = membership.path()
        _kernel.sender = Sender(mine.address, mine.token, lambda: _is_on(file, mine.token))
        _kernel.of = (mine.address, mine.token)
    try:
        _kernel.sender.put(event)
    except RuntimeError:
        return False
    return True


def _is_on(file: Path, token: str) -> bool:
    """Whether the learner is still in: they may have left in another notebook."""
    mine = _read(file)
    return mine is not None and mine.on and mine.token == token


def _trouble(mine: Membership) -> tuple[str, ...]:
    """What a learner is to know of the room, once."""
    sender = _kernel.sender
    if sender is None:
        return ()
    if sender.refused:
        _keep(replace(mine, until=0.0))
        why = text.one_line(sender.refused)
        return _once(
            f"refused {mine.token}", f"The room accepts nothing more from this notebook: {why} join() joins it again."
        )
    if sender.failing:
        kept = "Your checks work as before, and their results are sent once it answers."
        return _once("failing", f"The room does not answer at the moment. {kept}")
    return ()


def _refused() -> bool:
    return _kernel.sender is not None and bool(_kernel.sender.refused)


def _once(about: str, sentence: str) -> tuple[str, ...]:
    if about in _kernel.said:
        return ()
    _kernel.said.add(about)
    return (sentence,)


def _read(file: Path | None = None) -> Membership | None:
    file = file or membership.path()
    return _kernel.memory.get(file) or membership.read(file)


def _keep(mine: Membership) -> tuple[str, ...]:
    """Writes the membership; where that fails it holds in this kernel. Returns: a sentence on that."""
    file = membership.path()
    if mine.on:
        _kernel.said.add(f"on {mine.token}")  # what join says at length need not be said again
        if _refused():
            _kernel.sender, _kernel.of = None, ("", "")
    try:
        membership.write(mine, file)
    except OSError as error:
        _kernel.memory[file] = mine
        return (
            f"This can't be saved in {file} ({error.strerror}); it applies to this notebook only, until its kernel ends.",
        )
    _kernel.memory.pop(file, None)
    return ()


def _address(said_: Any) -> str | None:
    """'http://HOST:PORT' as typed, without what may stand around it; None where it is no address."""
    if not isinstance(said_, str):
        return None
    bare = said_.strip()
    bare = (bare if "://" in bare else f"http://{bare}").rstrip("/")
    try:
        where = urlsplit(bare)
        right = where.scheme in ("http", "https") and where.hostname and (where.port is None or where.port > 0)
    except ValueError:
        return None
    plain = bare.isascii() and bare.isprintable() and " " not in bare
    return bare if right and plain and not where.query and not where.fragment and not where.username else None


def _no_room(where: str, no: NoRoom) -> str:
    if no.status in (400, 403, 413, 429, 503) and no.said:
        return f"The room did not let you in: {text.one_line(no.said)}"
    return f"The server at {where} is not a room of this course."


def _reason(error: OSError) -> str:
    return (
        "it took too long"
        if isinstance(error, TimeoutError)
        else text.one_line(error.strerror or type(error).__name__, 80)
    )


def _clock(at: float) -> str:
    return time.strftime("%H:%M", time.localtime(at))

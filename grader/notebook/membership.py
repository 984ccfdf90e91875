"""That a learner is in a room: a small file beside the record of progress, so that it holds in every notebook and after a restart."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from grader.notebook.record import default_path, make_folder
from grader.util.files import write_whole

NAME = "room.json"
DURATION_S = 12 * 3600.0  # a workshop's day; nobody is to be in a room next week who forgot to leave
MAX_BYTES = 10_000


@dataclass(frozen=True)
class Membership:
    """until: in seconds since 1970; 0: the learner has left. token: by which the room knows this learner, again too."""

    address: str
    name: str
    token: str
    until: float

    @property
    def active(self) -> bool:
        return time.time() < self.until


def path() -> Path:
    return default_path().with_name(NAME)


def read(file: Path | None = None) -> Membership | None:
    """The membership that the file holds, also one that has ended; None: there is none that can be read."""
    try:
        with (file or path()).open("rb") as stream:
            data = json.loads(stream.read(MAX_BYTES))
        membership = Membership(data["address"], data["name"], data["token"], float(data["until"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    texts = all(isinstance(text, str) for text in (membership.address, membership.name, membership.token))
    return membership if texts and membership.address.startswith(("http://", "https://")) else None


def write(membership: Membership, file: Path | None = None) -> None:
    """Raises: OSError."""
    file = file or path()
    make_folder(file.parent)
    write_whole(file, json.dumps(asdict(membership)))
    with contextlib.suppress(OSError):
        os.chmod(file, 0o600)  # the token is the learner's own

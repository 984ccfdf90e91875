"""The learner's own record of progress: one small JSON file, never sent anywhere.

    {"format": 1, "exercises": {"softmax_rows": {
        "status": "failed", "passed": null, "hints": 1, "attempts": {"9f2c…": "failed"}}},
     "predictions": {"01_three_tokens.1": {"choice": "B"}}}

An attempt is one state of the learner's code, known by a digest of its text. Keys that this version does not
know are kept as they are. Where the file cannot be written, the record lives in memory and says so once.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from grader.notebook.kernel_course import kernel_course
from grader.util.files import json_object, lock_file, write_atomically

FORMAT = 1
FOLDER = ".attention-course"
ROOM_FILE = "room.json"  # beside the record, where the learner is in a room
PROGRESS_ENV = "ATTENTION_COURSE_PROGRESS"
# Where Colab keeps notebooks, once Drive is mounted; its own disk is lost.
COLAB_FOLDER = Path("/content/drive/MyDrive/Colab Notebooks")
MAX_ATTEMPTS = 100  # of one exercise that are kept; the oldest go first
MAX_BYTES = 5_000_000  # a larger file is not this record


@dataclass(frozen=True)
class ExerciseRecord:
    """What is known of one exercise. attempts: how many different states of the code were checked."""

    status: str = "not_started"
    passed: bool = False
    hints: int = 0
    attempts: int = 0


def default_path(folder: Path | None = None) -> Path:
    """Where the record lies: beside the learner's notebooks, so that it moves with them.

    folder: by default the current one, which for a notebook is its own. The environment variable
    ATTENTION_COURSE_PROGRESS names a file instead. Where a parent with notebooks already has a record, or the folder holds a folder
    `notebooks` of the course, that one is used, so that one learner has one record; in Colab it is the Drive's, once that is mounted.
    """
    location = os.environ.get(PROGRESS_ENV)
    if location:
        return Path(location).expanduser()
    with contextlib.suppress(FileNotFoundError):  # the notebook's folder was removed: then nothing can be written there
        folder = folder or Path.cwd()
    folder = folder or Path()
    if not has_lessons(folder):
        if has_lessons(folder / "notebooks"):
            folder = folder / "notebooks"
        elif COLAB_FOLDER.is_dir():
            folder = COLAB_FOLDER
        else:
            parents = (parent for parent in folder.parents if (parent / FOLDER).is_dir() and has_lessons(parent))
            folder = next(parents, folder)
    return folder / FOLDER / "progress.json"


def has_lessons(folder: Path) -> bool:
    """Whether a notebook of the course lies in a folder, also renamed: 'Copy of 01_three_tokens.ipynb', '01_three_tokens (1).ipynb'."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.name.endswith(".ipynb") and entry.is_file()]
    except OSError:
        return False
    return any(lesson in name for name in names for lesson in kernel_course().exercises)


def make_folder(folder: Path) -> None:
    """Makes the folder of a learner's own files, which have no place in anybody's repository. Raises: OSError."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)  # another kernel may make it at this moment
    if folder.name == FOLDER:
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")


class Record:
    """Reads and changes the file at `path`; every change reads it anew, so that kernels may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._memory: dict[str, Any] | None = None  # holds the record where the file cannot
        self._notes: list[str] = []

    def entry(self, exercise: str) -> ExerciseRecord:
        """What is known of an exercise."""
        return _entry(_dict_at(self._read()["exercises"], exercise))

    def add_attempt(self, exercise: str, digest: str, status: str) -> None:
        """Notes a verdict on one state of the code, known by its digest."""
        with self._edit("exercises", exercise) as entry:
            attempts = _dict_at(entry, "attempts")
            if status != "not_started":
                attempts.pop(digest, None)
                attempts[digest] = status
            entry["attempts"] = dict(list(attempts.items())[-MAX_ATTEMPTS:])
            entry["status"] = status
            now = datetime.now(UTC).isoformat(timespec="seconds")
            entry["passed"] = entry.get("passed") or (now if status == "passed" else None)

    def add_hint(self, exercise: str, level: int) -> None:
        """Notes that the hints up to `level` were seen."""
        with self._edit("exercises", exercise) as entry:
            entry["hints"] = max(_entry(entry).hints, level)

    def add_prediction(self, number: str, choice: str) -> None:
        """Notes what a learner chose in a prediction; the first choice counts."""
        with self._edit("predictions", number) as entry:
            entry.setdefault("choice", choice)

    def prediction(self, number: str) -> str:
        """The letter that a learner chose; '' for none."""
        choice = _dict_at(_dict_at(self._read(), "predictions"), number).get("choice")
        return choice if isinstance(choice, str) else ""

    def take_notes(self) -> tuple[str, ...]:
        """Sentences on the file itself that were not yet said; each is given once."""
        notes, self._notes = tuple(self._notes), []
        return notes

    @contextlib.contextmanager
    def _edit(self, section: str, name: str) -> Iterator[dict[str, Any]]:
        """An entry to change; the record is written at the end, and lives in memory from then on where it cannot be.

        Other kernels are kept out meanwhile; a file system without locks does without.
        """
        with contextlib.ExitStack() as lock:
            if self._memory is None:
                with contextlib.suppress(OSError):
                    make_folder(self.path.parent)
                    lock_file(lock.enter_context((self.path.parent / "progress.lock").open("ab")), wait=True)
            data = self._read()
            data[section] = _dict_at(data, section)
            data[section][name] = _dict_at(data[section], name)
            yield data[section][name]
            if self._memory is not None:
                return
            try:
                make_folder(self.path.parent)
                write_atomically(self.path, json.dumps(data, indent=1, ensure_ascii=True))
            except OSError as error:
                self._keep_in_memory(data, f"Progress cannot be written to {self.path} ({error.strerror or error})")

    def _read(self) -> dict[str, Any]:
        """The record; a file that cannot be read as one is set aside and a new record begins."""
        if self._memory is not None:
            return self._memory
        empty = {"format": FORMAT, "exercises": {}}
        try:
            with self.path.open("rb") as file:
                data = _parsed(file.read(MAX_BYTES + 1))
        except FileNotFoundError:
            return empty
        except OSError as error:
            return self._keep_in_memory(empty, f"Progress cannot be read from {self.path} ({error.strerror or error})")
        if data is not None:
            newer = f"{self.path} was written by a newer version of the course and is left as it is"
            return self._keep_in_memory(data, newer) if data["format"] > FORMAT else data
        if not self.path.is_file():  # /dev/null, to keep none: not ours to put elsewhere
            odd = f"{self.path} is not a regular file, so it cannot contain a record of progress"
            return self._keep_in_memory(empty, odd)
        backup = self.path.with_name(f"{self.path.name}.bak-{datetime.now():%Y%m%d-%H%M%S}")
        try:
            os.replace(self.path, backup)
        except OSError:
            return self._keep_in_memory(empty, f"The record of progress {self.path} cannot be read")
        successor = f"It is kept as {backup.name}, and a new one is started."
        self._notes.append(f"The record of progress could not be read. {successor}")
        return empty

    def _keep_in_memory(self, data: dict[str, Any], why: str) -> dict[str, Any]:
        self._memory = data
        self._notes.append(f"{why}; it is kept only until this kernel ends.")
        return data


def _parsed(raw: bytes) -> dict[str, Any] | None:
    """The record in a file's bytes, None where they hold none."""
    data = json_object(raw) if len(raw) <= MAX_BYTES else None
    if data is None or not isinstance(data.get("exercises"), dict) or type(data.get("format")) is not int:
        return None
    return data if all(isinstance(entry, dict) for entry in data["exercises"].values()) else None


def _dict_at(data: dict[str, Any], key: str) -> dict[str, Any]:
    """The dict under a key; an empty one in place of anything else, which a file may well hold."""
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _entry(entry: dict[str, Any]) -> ExerciseRecord:
    hints, status = entry.get("hints"), entry.get("status")
    return ExerciseRecord(
        status if isinstance(status, str) else "not_started",
        bool(entry.get("passed")),
        min(max(hints, 0), 3) if type(hints) is int else 0,
        len(_dict_at(entry, "attempts")),
    )

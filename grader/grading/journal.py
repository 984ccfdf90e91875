"""The journal of a batch: every result is on the disk before the next one counts, so that a killed batch loses none.

A text file of JSON lines in UTF-8. The first has every setting that changes a mark or a file of the run, contents of files (weights,
roster) included; 'rescored' has those of the marking scheme that were changed on purpose since. Each further line is a whole
SubmissionReport with the digest of what was graded; 'finished' ends a run whose reports were written, and says who is in them. A line
that a kill tore has no end and is dropped: that submission is graded again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from grader.grading import scheme
from grader.grading.scheme import RunSettings
from grader.reports.report import SubmissionReport
from grader.util.errors import InputError
from grader.util.files import lock_file
from grader.util.records import decoded, encoded

FORMAT = 6
FINISHED, RESCORED = b'{"finished"', b'{"rescored"'  # how these lines begin


@dataclass(frozen=True)
class JournalEntry:
    """One submission, graded. key: its entry's name; digest: of its files; isolation: the level that held."""

    key: str
    digest: str
    isolation: str
    report: SubmissionReport


def to_line(result: JournalEntry) -> bytes:
    """One line, with its end. Exact: what from_line() makes of it equals the result in every bit."""
    return _line(encoded(result))


def from_line(line: bytes) -> JournalEntry:
    """Raises: ValueError where the line is none that to_line() wrote."""
    try:
        result = decoded(JournalEntry, _read(line))
        for lesson in result.report.lessons:
            for verdict in lesson.verdicts:
                lesson.points[verdict.exercise]  # or the line isn't whole: KeyError
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"not a result: {error!r}") from None
    return result


@dataclass
class JournalContents:
    """What a journal's file holds.

    settings: None where not even its first line is whole. results: the last of each key. finished: whether that run's reports were
    written. absent: keys of the results that are in no report, of learners who left the class. dropped: how many lines could not be read;
    what they told is graded again. length: of its whole lines.
    """

    settings: RunSettings | None = None
    results: dict[str, JournalEntry] = field(default_factory=dict)
    finished: bool = False
    absent: set[str] = field(default_factory=set)
    dropped: int = 0
    length: int = 0


class Journal(ExitStack):
    """A journal that is open for writing; a context manager. Only one process at a time has it open.

    rescore: whether the marking scheme of `settings` replaces the journal's. results, dropped: what it held when it was opened, see
    JournalContents. Raises: InputError where it belongs to other settings, to no journal at all, or to another process at this
    moment; OSError where the file can't be written.
    """

    def __init__(self, path: Path, settings: RunSettings, rescore: bool = False) -> None:
        super().__init__()
        self.path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # grades are for those who grade
        with ExitStack() as stack:
            self._file: BinaryIO = stack.enter_context(open(path, "a+b"))
            if not lock_file(self._file):  # two runs in one folder would lose each other's results
                raise InputError(
                    f"another run is writing to {path.parent}; wait until it ends, or name another folder."
                )
            contents = load(path)
            self.results, self.dropped = contents.results, contents.dropped
            if contents.settings is None:  # new, or killed within its first line
                self._file.truncate(0)
                self.add(_line({"grader_journal": FORMAT, "settings": encoded(settings)}))
                _sync_folder(path.parent)
            else:
                changes = accept_settings(path, contents.settings, settings, rescore)
                self._file.truncate(contents.length)
                if changes:
                    values = encoded(settings)
                    self.add(_line({"rescored": {key: values[key] for key in (*changes, "set_by")}}))
            self.push(stack.pop_all())

    def add(self, line: bytes) -> None:
        """Appends a result's line; it is on the disk when this returns. Raises: OSError, for a full disk too."""
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self, keys: Iterable[str]) -> None:
        """Notes that the reports were written, of these results."""
        self.add(_line({"finished": list(keys)}))


def accept_settings(path: Path, old: RunSettings, settings: RunSettings, rescore: bool) -> dict[str, str]:
    """What changes of the marking scheme, in words, where a run continues. Raises: InputError where it may not continue so."""
    changes = scheme.differences(old, settings)
    conflicts = {key: sentence for key, sentence in changes.items() if not (rescore and key in scheme.MARKS)}
    if conflicts:
        options = set(conflicts) - {"course", "isolation"}
        advice = "Set these as they were to continue" if options else "Continue it as it was begun"
        advice += ", or name another folder to start a new run."
        if not rescore and set(conflicts) <= set(scheme.MARKS):
            advice += (
                " To change the marking scheme of this run on purpose, add --rescore: nothing is graded again for it."
            )
        raise InputError(f"{path} was begun with other settings: {', '.join(conflicts.values())}. {advice}")
    return changes


def load(path: Path) -> JournalContents:
    """Reads a journal. Raises: InputError for a file that is no journal, OSError where it can't be read."""
    contents = JournalContents()
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):  # torn by a kill: the next result takes its place
                break
            contents.length += len(line)
            if contents.settings is None:
                contents.settings = _settings(line, path)
                continue
            contents.finished = line.startswith(FINISHED)
            try:
                if line.startswith(RESCORED):
                    contents.settings = decoded(RunSettings, encoded(contents.settings) | _read(line)["rescored"])
                elif contents.finished:
                    contents.absent = contents.results.keys() - _read(line)["finished"]
                else:
                    result = from_line(line)
                    contents.results[result.key] = result
                    contents.absent.discard(result.key)
            except (ValueError, TypeError, LookupError):
                contents.dropped += 1
    if contents.settings is None and not b'{"grader_journal"'.startswith(path.read_bytes()[:17]):
        raise InputError(f"{path} is not a journal of this grader; name another folder.")
    return contents


def _settings(line: bytes, path: Path) -> RunSettings:
    try:
        data = _read(line)
        version, settings = data["grader_journal"], dict(data["settings"])
    except (ValueError, TypeError, LookupError):
        raise InputError(f"{path} is not a journal of this grader; name another folder.") from None
    with suppress(ValueError, TypeError, LookupError):
        if version == FORMAT:  # a journal from before there was a setting has its default
            return decoded(RunSettings, encoded(scheme.COURSE_DEFAULTS) | settings)
    raise InputError(f"{path} was written by another version of the grader; name another folder to start a new run.")


def _sync_folder(folder: Path) -> None:
    """Makes a new file's name as lasting as its content."""
    with suppress(OSError):  # Windows opens no folders
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _line(data: Mapping[str, Any]) -> bytes:
    # Lone surrogates (a file's name that is no UTF-8) are kept one by one; JSON's own escapes would join them.
    return json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass") + b"\n"


def _read(line: bytes) -> Any:
    return json.loads(line.decode("utf-8", "surrogatepass"))

"""The journal of a batch: every result is on the disk before the next one counts, so that a killed batch loses none.

A text file of JSON lines in UTF-8. The first has every setting that changes a mark or a file of the run, contents of files (weights,
roster) included; 'rescored' has those of the marking scheme that were changed on purpose since. Each further line is a whole
SubmissionReport with the digest of what was graded; 'finished' ends a run whose reports were written. A line that a kill tore has no
end and is dropped: that submission is graded again.
"""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from grader.grading import scheme
from grader.judging.verdict import Cut, LessonReport, Line, Statuses, SubmissionReport, Table, Verdict
from grader.util.errors import InputError
from grader.util.files import only_writer

FORMAT = 3
FINISHED, RESCORED = b'{"finished"', b'{"rescored"'  # how these lines begin
_TEXTS = ("exercise", "status", "headline", "stage", "experiment", "look", "following", "case", "slip", "printed")
_LISTS = ("details", "mistakes", "sentences", "verified", "warned")


@dataclass(frozen=True)
class JournalEntry:
    """One submission, graded. key: its entry's name; digest: of its files; isolation: the level that held."""

    key: str
    digest: str
    isolation: str
    report: SubmissionReport


def to_line(result: JournalEntry) -> bytes:
    """One line, with its end. Exact: what from_line() makes of it equals the result in every bit."""
    data = {
        "key": result.key,
        "digest": result.digest,
        "isolation": result.isolation,
        "report": _from_report(result.report),
    }
    return _line(data)


def from_line(line: bytes) -> JournalEntry:
    """Raises: ValueError where the line is none that to_line() wrote."""
    try:
        data = _read(line)
        for key in ("key", "digest", "isolation"):
            _text(data[key])
        return JournalEntry(data["key"], data["digest"], data["isolation"], _to_report(data["report"]))
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"not a result: {error!r}") from None


class Journal:
    """A journal that is open for writing; a context manager. Only one process at a time has it open.

    results: what it held when it was opened, the last of each key. finished: whether that run's reports were written.
    dropped: how many lines could not be read; what they told is graded again.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], rescore: bool = False) -> None:
        """Opens or begins it. rescore: whether the marking scheme of `settings` replaces the journal's.

        Raises: InputError where it belongs to other settings, to no journal at all, or to another process at this moment;
        OSError where the file can't be written."""
        self.path = path
        self.results: dict[str, JournalEntry] = {}
        self.finished = False
        self.dropped = 0
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # grades are for those who grade
        self._file: BinaryIO = open(path, "a+b")
        try:
            if not only_writer(self._file):  # two runs in one folder would lose each other's results
                raise InputError(
                    f"another run is writing to {path.parent}; wait until it ends, or name another folder."
                )
            self._open(dict(settings), rescore)
        except BaseException:
            self._file.close()
            raise

    def _open(self, settings: dict[str, Any], rescore: bool) -> None:
        found = load(self.path)
        if found.settings is None:  # new, or killed within its first line
            self._file.truncate(0)
            self._write(_line({"grader_journal": FORMAT, "settings": settings}))
            _sync_folder(self.path.parent)
            return
        changed = compatible(self.path, found.settings, settings, rescore)
        self._file.truncate(found.length)
        self.results, self.finished, self.dropped = found.results, found.finished, found.dropped
        if changed:
            self._write(_line({"rescored": {key: settings[key] for key in changed}}))

    def add(self, line: bytes) -> None:
        """Appends a result's line; it is on the disk when this returns. Raises: OSError, for a full disk too."""
        self._write(line)

    def finish(self) -> None:
        """Notes that the reports of all results were written."""
        self._write(_line({"finished": True}))

    def _write(self, line: bytes) -> None:
        self._file.seek(0, os.SEEK_END)
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()


@dataclass
class Found:
    """What a journal's file holds. settings: None where not even its first line is whole; length: of its whole lines."""

    settings: dict[str, Any] | None = None
    results: dict[str, JournalEntry] = field(default_factory=dict)
    finished: bool = False
    dropped: int = 0
    length: int = 0


def begun_with(path: Path) -> dict[str, Any]:
    """The settings of a journal, rescored or not; none where its first line is not whole. Raises: as load()."""
    with open(path, "rb") as file:
        line = file.readline()
        settings = _settings(line, path) if line.endswith(b"\n") else {}
        for line in file if settings else ():
            if line.startswith(RESCORED) and line.endswith(b"\n"):
                settings |= _read(line)["rescored"]
    return settings


def compatible(path: Path, begun: Mapping[str, Any], settings: Mapping[str, Any], rescore: bool) -> dict[str, str]:
    """What changes of the marking scheme, in words, where a run continues. Raises: InputError where it may not continue so."""
    found = scheme.differences(begun, settings, settings)
    refused = {key: said for key, said in found.items() if not (rescore and key in scheme.KEYS)}
    if refused:
        advice = ["Leave these options out to continue with the journal's, or name another folder to start a new run."]
        if not set(refused) - {"course", "isolation"}:  # no options
            advice = ["Continue it as it was begun, or name another folder to start a new run."]
        elif not rescore and set(refused) <= set(scheme.KEYS):
            advice.append(
                "To change the marking scheme of this run on purpose, add --rescore: nothing is graded again for it."
            )
        raise InputError(f"{path} was begun with other settings: {', '.join(refused.values())}. {' '.join(advice)}")
    return found


def load(path: Path) -> Found:
    """Reads a journal. Raises: InputError for a file that is no journal, OSError where it can't be read."""
    found = Found()
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):  # torn by a kill: the next result takes its place
                break
            found.length += len(line)
            if found.settings is None:
                found.settings = _settings(line, path)
            else:
                _take(found, line)
    if found.settings is None and path.stat().st_size and not _begins_as_ours(path):
        raise InputError(f"{path} is not a journal of this grader; name another folder.")
    return found


def _take(found: Found, line: bytes) -> None:
    try:
        if line.startswith(FINISHED):
            found.finished = True
            return
        if line.startswith(RESCORED):
            assert found.settings is not None
            found.settings |= _read(line)["rescored"]
            found.finished = False
            return
        result = from_line(line)
    except ValueError:
        found.dropped += 1
        return
    found.finished = False
    found.results[result.key] = result


def _settings(line: bytes, path: Path) -> dict[str, Any]:
    try:
        data = _read(line)
        version, settings = data["grader_journal"], dict(data["settings"])
    except (ValueError, TypeError, LookupError):
        raise InputError(f"{path} is not a journal of this grader; name another folder.") from None
    if version != FORMAT:
        raise InputError(
            f"{path} was written by another version of the grader; name another folder to start a new run."
        )
    return settings


def _begins_as_ours(path: Path) -> bool:
    return b'{"grader_journal"'.startswith(path.read_bytes()[:17])


def _sync_folder(folder: Path) -> None:
    """Makes a new file's name as lasting as its content."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


# --- a report as JSON ------------------------------------------------------------------------


def _line(data: Mapping[str, Any]) -> bytes:
    # Lone surrogates (a file's name that is no UTF-8) are kept one by one; JSON's own escapes would join them.
    return json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass") + b"\n"


def _read(line: bytes) -> Any:
    return json.loads(line.decode("utf-8", "surrogatepass"))


def _from_report(report: SubmissionReport) -> dict[str, Any]:
    lessons = [
        {
            "name": lesson.name,
            "points": dict(lesson.points),
            "notes": list(lesson.notes),
            "verdicts": [_from_verdict(verdict) for verdict in lesson.verdicts],
        }
        for lesson in report.lessons
    ]
    return {
        "name": report.name,
        "path": report.path,
        "message": report.message,
        "lessons": lessons,
        "attention": list(report.attention),
    }


def _to_report(data: Mapping[str, Any]) -> SubmissionReport:
    lessons = tuple(
        LessonReport(
            _text(lesson["name"]),
            tuple(_to_verdict(each) for each in lesson["verdicts"]),
            {_text(name): int(points) for name, points in lesson["points"].items()},
            tuple(map(_text, lesson["notes"])),
        )
        for lesson in data["lessons"]
    )
    for lesson in lessons:
        for verdict in lesson.verdicts:
            lesson.points[verdict.exercise]  # or the line isn't whole: KeyError
    return SubmissionReport(
        _text(data["name"]), _text(data["path"]), lessons, _text(data["message"]), tuple(map(_text, data["attention"]))
    )


def _from_verdict(verdict: Verdict) -> dict[str, Any]:
    data: dict[str, Any] = {key: getattr(verdict, key) for key in _TEXTS}
    data |= {key: list(getattr(verdict, key)) for key in _LISTS}
    data["tables"] = [
        {
            "name": table.name,
            "role": table.role,
            "dtype": table.dtype,
            "array": _from_array(table.array),
            "cut": None if table.cut is None else _from_cut(table.cut),
            "mark": list(table.mark),
        }
        for table in verdict.tables
    ]
    data["cases"] = list(verdict.cases)
    data["line"] = None if verdict.line is None else [verdict.line.text, verdict.line.number, verdict.line.function]
    largest = verdict.max_difference
    return data | {
        "max_difference": None if largest is None else _from_float(largest),
        "seconds": _from_float(verdict.seconds),
    }


def _to_verdict(data: Mapping[str, Any]) -> Verdict:
    if data["status"] not in Statuses:
        raise ValueError(f"no status: {data['status']!r}")
    texts = {key: _text(data[key]) for key in _TEXTS}
    lists = {key: tuple(map(_text, data[key])) for key in _LISTS}
    tables = tuple(
        Table(
            _text(table["name"]),
            _to_array(table["array"]),
            _text(table["role"]),
            _text(table["dtype"]),
            None if table["cut"] is None else _to_cut(table["cut"]),
            tuple(map(int, table["mark"])),
        )
        for table in data["tables"]
    )
    largest = data["max_difference"]
    largest = None if largest is None else _to_float(largest)
    line = data["line"]
    agreed, cases = map(int, data["cases"])
    return Verdict(
        **texts,
        **lists,
        tables=tables,
        max_difference=largest,
        seconds=_to_float(data["seconds"]),
        cases=(agreed, cases),
        line=None if line is None else Line(_text(line[0]), int(line[1]), _text(line[2])),
    )


def _from_cut(cut: Cut) -> list[Any]:
    return [list(cut.shape), list(cut.index), list(cut.first), _from_float(cut.largest)]


def _to_cut(data: Any) -> Cut:
    shape, index, (row, column), largest = data
    return Cut(tuple(map(int, shape)), tuple(map(int, index)), (int(row), int(column)), _to_float(largest))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"no text: {value!r}")
    return value


def _from_float(value: float) -> float | str:
    value = float(value)
    return value if math.isfinite(value) else repr(value)  # JSON has no NaN


def _to_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) and value not in ("nan", "inf", "-inf"):
        raise TypeError(f"no number: {value!r}")
    return float(value)


def _from_array(array: np.ndarray) -> dict[str, Any]:
    array = np.asarray(array)
    if array.dtype.kind not in "biufcSU":
        raise ValueError(f"an array of {array.dtype} is no table")
    data = base64.b64encode(array.tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def _to_array(data: Mapping[str, Any]) -> np.ndarray:
    dtype = np.dtype(_text(data["dtype"]))
    if dtype.kind not in "biufcSU":
        raise ValueError(f"an array of {dtype} is no table")
    raw = base64.b64decode(data["data"], validate=True)
    return np.frombuffer(bytearray(raw), dtype).reshape([int(size) for size in data["shape"]])

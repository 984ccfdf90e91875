"""Reads a stranger's notebook file, whatever it holds, into cells of code."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from grader.source.requirements import missing_requirement
from grader.util import links
from grader.util.names import printable

MAX_BYTES = 32 << 20  # without outputs, which are left out where it has more
MAX_FILE_BYTES = 128 << 20  # with them
MAX_MARKS = 2_000_000  # commas, brackets and braces: each may take a hundred times its byte once it is read
MAX_CELLS = 20_000
MAX_CODE = 300_000  # characters of all code cells together; the longest solved lesson has about 10,000
MAX_NAME = 64  # characters of an id, as the format has it, and of an exercise's name
ROLES = ("given", "demo", "exercise", "check", "payoff")
CLEAR = "Clear its outputs (Edit, Clear Outputs of All Cells) and save it."
DEFAULT_ADVICE = (
    "A notebook as JupyterLab saves it is expected (.ipynb: JSON in UTF-8). Where JupyterLab cannot open it either, "
    "`grader reset` restores the lesson and keeps a backup; the cells can then be pasted into it."
)
# What no grader reads and what makes notebooks large; in a cell's text the quotation marks stand behind a backslash.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_LARGE_FIELD = re.compile(rb'(?P<key>"outputs"|"attachments"|"widgets")\s*+:\s*+[\[{]|' + _STRING, re.DOTALL)
_BRACKET = re.compile(rb"[\[{]|[\]}]|" + _STRING, re.DOTALL)


class Unreadable(Exception):
    """A notebook that cannot be read. summary: why, in one sentence; str(): also what to fix."""

    def __init__(self, summary: str, advice: str = DEFAULT_ADVICE) -> None:
        super().__init__(f"{summary} {advice}")
        self.summary = summary


class NotebookCell(NamedTuple):
    """A code cell. number: its position among all cells of the notebook, from 1.

    requires: what it needs and this machine lacks, as source/requirements.py has it; '' for nothing.
    """

    number: int
    text: str
    id: str = ""
    role: str = ""
    exercise: str = ""
    requires: str = ""


@dataclass(frozen=True)
class Notebook:
    """The code cells of a file. lesson: what its metadata says, '' where they say nothing; defines: names that they bind."""

    file: str
    cells: tuple[NotebookCell, ...]
    lesson: str = ""
    notes: tuple[str, ...] = ()
    defines: frozenset[str] = frozenset()


def read_notebook(path: Path, base: Path | None = None) -> Notebook:
    """The notebook of a file; below `base`, by default its folder, no link is followed.

    Raises: Unreadable for everything that is none.
    """
    file = printable(path.name)
    data, notes = _bytes(path, base or path.parent, file)
    text = _text(data, file, notes)
    try:
        content = json.loads(text)
    except RecursionError:
        raise Unreadable(f"{file} is nested too deeply to be a notebook.") from None
    except ValueError as error:
        reason = str(error)[:200]
        if isinstance(error, json.JSONDecodeError):
            reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise Unreadable(f"{file} is not JSON ({reason}).") from None
    cells = code_cells(content)
    if cells is None:
        raise Unreadable(f"{file} is JSON but not a notebook: it has no list called cells.")
    if len(cells) > MAX_CELLS:
        raise Unreadable(
            f"{file} has {len(cells)} cells; at most {MAX_CELLS} are read.", "Delete cells that you do not need."
        )
    cells, excess = limit_code(cells, MAX_CODE)
    if excess:
        numbers = ", ".join(str(cell.number) for cell in excess[:20]) + (", …" if len(excess) > 20 else "")
        reason = f"{file} has more code than the {MAX_CODE:,} characters that are read; not read and not run: cell {numbers}."
        notes = [*notes, f"{reason} Keep data in files, and delete cells that you do not need."]
    notes += _exercises_without_code(content)
    version = _version(content)
    cells = [cell._replace(requires=missing_requirement(cell.text, version)) for cell in cells]
    lesson = course_metadata(content).get("lesson")
    return Notebook(file, tuple(cells), lesson if isinstance(lesson, str) else "", tuple(notes))


def code_cells(content: Any) -> list[NotebookCell] | None:
    """The code cells of parsed JSON, of notebook format 3 too; None where it has no list of cells."""
    cells = _cells(content)
    return None if cells is None else [_cell(number, cell) for number, cell in cells if cell.get("cell_type") == "code"]


def _cells(content: Any) -> list[tuple[int, dict[str, Any]]] | None:
    """The cells of every type, with their numbers."""
    if not isinstance(content, dict):
        return None
    cells = content.get("cells")
    if not isinstance(cells, list):  # before format 4 the cells lay in worksheets
        sheets = content.get("worksheets")
        if not isinstance(sheets, list):
            return None
        groups = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
        cells = [cell for group in groups if isinstance(group, list) for cell in group]
    return [(number, cell) for number, cell in enumerate(cells, 1) if isinstance(cell, dict)]


def _exercises_without_code(content: Any) -> list[str]:
    """A sentence for each exercise's cell that has become Markdown or plain text, as a key pressed by mistake makes it."""
    other_cells = [_cell(number, cell) for number, cell in _cells(content) or () if cell.get("cell_type") != "code"]
    return [
        f"Cell {cell.number}, that of {cell.exercise}, is no code cell any more and is not run: make it one again (Esc, then Y)."
        for cell in other_cells
        if cell.role == "exercise" and cell.exercise.isidentifier()
    ]


def limit_code(cells: Sequence[NotebookCell], budget: int) -> tuple[list[NotebookCell], list[NotebookCell]]:
    """The cells that go into so many characters, and those left aside: the longest, such as pasted data, which are no answers."""
    numbers = set()
    for cell in sorted(cells, key=lambda cell: len(cell.text)):
        budget -= len(cell.text)
        if budget < 0:
            break
        numbers.add(cell.number)
    return [cell for cell in cells if cell.number in numbers], [cell for cell in cells if cell.number not in numbers]


def _bytes(path: Path, base: Path, file: str) -> tuple[bytes, list[str]]:
    try:
        content = links.read(path, base, MAX_FILE_BYTES)
    except links.LinkError as error:
        raise Unreadable(str(error), "Hand in the notebook itself.") from None
    except OSError as error:
        raise Unreadable(f"{file} cannot be opened ({error.strerror}).") from None
    if not stat.S_ISREG(content.status.st_mode):
        raise Unreadable(f"{file} is not a regular file.")
    if content.data is None:
        raise Unreadable(
            f"{file} has {_mb(content.status.st_size)}, more than the {_mb(MAX_FILE_BYTES)} that are read.", CLEAR
        )
    if not content.data.strip():
        raise Unreadable(f"{file} is empty.")
    return content.data, links.hard_link_note(file, content.status)


def _text(data: bytes, file: str, notes: list[str]) -> str:
    """What is parsed. Of a file that is too large with its outputs, it has none."""
    encoding, excess = json.detect_encoding(data), ""  # by the byte-order mark, or by where the zeros are
    if encoding.startswith("utf-8") and (len(data) > MAX_BYTES or _count_marks(data) > MAX_MARKS):
        size, data = _mb(len(data)), without_outputs(data)
        notes.append(
            f"{file} has {size}, most of it in outputs; it was read without them. Clear them (Edit, Clear Outputs of All Cells) "
            "before handing it in."
        )
    if len(data) > MAX_BYTES:
        excess = f"has {_mb(len(data))} without its outputs, more than the {_mb(MAX_BYTES)} that are read."
    elif (marks := _count_marks(data)) > MAX_MARKS:
        excess = f"holds {marks:,} separate values without its outputs; at most {MAX_MARKS:,} are read."
    if excess:
        raise Unreadable(f"{file} {excess}", "Keep data in files, and delete cells that you do not need.")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        notes.append(f"{file} is not UTF-8 and was read as Latin-1; save it as UTF-8.")
        return data.decode("latin-1")


def without_outputs(data: bytes) -> bytes:
    """The same notebook with empty outputs, without pasted images and the state of widgets. Bytes that are no JSON stay none.

    Nothing is parsed: one pass over strings and brackets, in little more memory than the bytes themselves.
    """
    chunks, begin = [], 0
    while key := next((match for match in _LARGE_FIELD.finditer(data, begin) if match["key"]), None):
        end = _closing_bracket(data, key.end())
        if end is None:  # it is cut off: no reader takes it either way
            break
        chunks.append(data[begin : key.end()])
        begin = end
    return b"".join([*chunks, data[begin:]])


def _closing_bracket(data: bytes, begin: int) -> int | None:
    """Where the bracket stands that closes what opened before `begin`."""
    depth = 1
    for match in _BRACKET.finditer(data, begin):
        bracket = data[match.start()]
        depth += (bracket in b"[{") - (bracket in b"]}")
        if not depth:
            return match.start()
    return None


def _count_marks(data: bytes) -> int:
    return sum(map(data.count, (b",", b"[", b"{")))


def _mb(size: int) -> str:
    return f"{size / 2**20:.0f} MB"


def _cell(number: int, cell: dict[str, Any]) -> NotebookCell:
    source = cell.get("source", cell.get("input", ""))  # 'input' before format 4
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    text = source if isinstance(source, str) else ""
    text = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode()
    metadata = course_metadata(cell)
    role, exercise, id = metadata.get("role"), metadata.get("exercise"), cell.get("id")
    return NotebookCell(
        number,
        text,
        id if isinstance(id, str) and len(id) <= MAX_NAME else "",
        role if role in ROLES else "",
        exercise if isinstance(exercise, str) and len(exercise) <= MAX_NAME else "",
    )


def _version(content: dict[str, Any]) -> tuple[int, ...] | None:
    field: Any = content
    for key in ("metadata", "language_info", "version"):
        field = field.get(key) if isinstance(field, dict) else None
    version = re.match(r"(\d{1,3})\.(\d{1,3})", field) if isinstance(field, str) else None
    return (int(version[1]), int(version[2])) if version else None


def course_metadata(holder: dict[str, Any]) -> dict[str, Any]:
    """What the course says of a notebook or a cell; whoever writes notebooks may put anything there."""
    metadata = holder.get("metadata")
    section = metadata.get("grader") if isinstance(metadata, dict) else None
    return section if isinstance(section, dict) else {}

"""A CSV file that people or platforms wrote, as rows of text: a roster, points of one's own, marks by hand."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from grader.util.errors import InputError

MOST_BYTES = 16 << 20
ENCODINGS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def rows(path: Path, kind: str) -> list[tuple[int, list[str]]]:
    """Each row with the number of its last line, its cells without spaces at either end. kind, Raises: as of read()."""
    text, _, delimiter = read(path, kind)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; save it as CSV again.") from None


def format_csv(rows: Iterable[Sequence[str]], sample: str, delimiter: str) -> str:
    """The rows as CSV, with the ends of lines of a text."""
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator="\r\n" if "\r\n" in sample else "\n").writerows(rows)
    return file.getvalue()


def read(path: Path, kind: str) -> tuple[str, str, str]:
    """A file's text, its encoding, and what parts its columns. kind: what it is, such as 'a roster'.

    Commas, semicolons or tabs part the columns; the text is UTF-8, or UTF-16 with its mark. Raises: InputError, which says what to do.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; {kind} is a CSV file.")
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} has more than {MOST_BYTES >> 20} MB; that is too large for {kind}.")
    data = path.read_bytes()
    if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise InputError(f"{path} is a spreadsheet or an archive; save it as CSV (in Excel: 'CSV UTF-8').")
    encoding = next((name for mark, name in ENCODINGS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path} is not UTF-8 (line {line}); save it as 'CSV UTF-8', or convert it: guessing would alter names."
        ) from None
    if "\0" in text:
        raise InputError(f"{path} is not text; {kind} is a CSV file.")
    return text, encoding, max(",;\t", key=next((line for line in text.splitlines() if line.strip()), "").count)


@contextmanager
def locate_errors(path: Path, line: int) -> Iterator[None]:
    """What is wrong within is said with the file and the line. Raises: InputError."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}, line {line}: {error}") from None

"""A roster: who is enrolled, as the CSV that a grade book or a classroom lets one download; its headings stand in platforms.py."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from grader.submission import table
from grader.submission.discover import NOT_LEARNERS
from grader.submission.platforms import FIELDS, titles
from grader.util.errors import InputError
from grader.util.names import fold_name, printable

KEYS = ("login", "email", "github", "number", "participant", "canvas")  # what tells learners apart, the best first
POSSIBLE = "points possible"
NOT_ENROLLED = (POSSIBLE, "student, test")  # names in rows of Canvas' export
_PARTICIPANT = re.compile(r"\D+(\d+)")  # 'Participant 4711', in the language of whoever downloads the worksheet
_ASSIGNMENT = re.compile(r".*\s\(\d+\)", re.DOTALL)


@dataclass(frozen=True)
class Person:
    """One learner. key: what names the folder and stands in reports; values: what the roster has, by FIELDS; cells: all of it."""

    key: str
    values: Mapping[str, str]
    cells: tuple[str, ...] = ()

    def __getitem__(self, field: str) -> str:
        return self.values.get(field, "")

    @property
    def first_last(self) -> tuple[str, str]:
        """First and last name, '' where the roster doesn't tell them apart."""
        name = self["name"]
        if "," in name and not (self["first"] or self["last"]):  # Canvas: 'Lovelace, Ada'
            last, first = (part.strip() for part in name.split(",", 1))
            return first, last
        return self["first"], self["last"]

    @property
    def names(self) -> tuple[str, ...]:
        """The ways in which the name may be written: as the roster has it, 'Last, First' and 'First Last'."""
        (first, last), name = self.first_last, self["name"]
        spellings = (name, f"{first} {last}".strip(), f"{last}, {first}".strip(", "))
        return tuple(dict.fromkeys(filter(None, spellings)))


@dataclass(frozen=True)
class Roster:
    """The learners of a roster. column: the heading of the key's; notes: sentences on rows without one.

    heading: of all columns. possible: of Canvas' export the points of each assignment, by its heading; '' where it doesn't tell them.
    """

    path: str
    people: tuple[Person, ...]
    column: str = ""
    notes: tuple[str, ...] = ()
    possible: Mapping[str, str] = dataclasses.field(default_factory=dict)
    heading: tuple[str, ...] = ()

    def person(self, field: str, value: str) -> Person | None:
        """The only learner who has this; None where none or several have.

        field: one of FIELDS, of which 'name' is in any order of its parts; 'key': the folder's name, but for case and spaces;
        'joined': the name without spaces and signs, as Canvas writes it ('lovelaceada').
        """
        value = fold_name(_bare(value) if field == "joined" else value)
        people = self._index.get((field, value), ())
        return people[0] if value and len(people) == 1 else None

    @cached_property
    def filled_columns(self) -> frozenset[str]:
        """The fields of which it has a column, and something in it."""
        return frozenset(field for field, value in self._index if value)

    @cached_property
    def _index(self) -> Mapping[tuple[str, str], list[Person]]:
        """The people by all that they are looked up by, so that a class of thousands is quick."""
        index: dict[tuple[str, str], list[Person]] = {}
        for person in self.people:
            pairs = [("key", person.key), *person.values.items()]
            pairs += [pair for name in person.names for pair in (("name", name), ("joined", _bare(name)))]
            for pair in {(field, fold_name(value)) for field, value in pairs}:
                index.setdefault(pair, []).append(person)
        return index


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name)


def read_roster(path: Path, key_heading: str = "") -> Roster:
    """Reads a roster. key_heading: of the column that names the folders; by default the first of KEYS that it has.

    Raises: InputError, which says what to do.
    """
    (_, heading), *rows = [row for row in table.rows(path, "a roster") if any(row[1])] or [(1, [])]
    columns = _columns(heading)
    key_column = _key_column(path, heading, columns, key_heading)
    lines: dict[str, int] = {}  # of the keys
    people, blank_lines, possible = [], [], {}
    if "canvas" in columns:
        possible = {title: "" for title in heading if _ASSIGNMENT.fullmatch(title)}
    for line, cells in rows:
        values = {name: cells[column] for name, column in columns.items() if column < len(cells)}
        key = cells[key_column] if key_column < len(cells) else ""
        if values.get("name", "").lower() == POSSIBLE:
            possible = {title: cell for title, cell in zip(heading, cells, strict=False) if title in possible}
        known_cells = values.values() if "canvas" in columns else cells  # Canvas has a row on its assignments alone
        if not any(known_cells) or values.get("name", "").lower().strip() in NOT_ENROLLED:
            continue
        if number := _PARTICIPANT.fullmatch(values.get("participant", "")):
            values["participant"] = number[1]
        if not key:
            blank_lines.append(line)
            continue
        if (first_line := lines.setdefault(fold_name(_check_key(key, path, line)), line)) != line:
            raise InputError(
                f"{path}: lines {first_line} and {line} both have {key!r} as {heading[key_column]}; "
                "keep only one of them, or name another column with --by."
            )
        people.append(Person(key, values, tuple(cells)))
    if blank_lines and not people:
        raise InputError(
            f"{path} has nothing in its column {heading[key_column]!r}; name another column with --by: {_titles(heading)}."
        )
    if not people:
        raise InputError(f"{path} has no learner below its header row.")
    note = f"{path}: no {heading[key_column]} in line{'s' * (len(blank_lines) > 1)} {', '.join(map(str, blank_lines[:8]))}; left out."
    return Roster(str(path), tuple(people), heading[key_column], (note,) * bool(blank_lines), possible, tuple(heading))


def _columns(heading: Sequence[str]) -> dict[str, int]:
    """The place of each known column; 'ID' is Canvas' number only beside its 'Student'."""
    lower = titles(heading)
    columns = {field: lower.index(name) for field, names in FIELDS.items() for name in reversed(names) if name in lower}
    if "canvas" in columns and "student" not in lower:
        columns.setdefault("number", columns.pop("canvas"))
    return columns


def _key_column(path: Path, heading: Sequence[str], columns: Mapping[str, int], key_heading: str) -> int:
    contents = f"it has {_titles(heading)}"
    if key_heading:
        headings = [cell.lower() for cell in heading]
        if key_heading.lower().strip() not in headings:
            raise InputError(f"{path} has no column {key_heading!r}; {contents}.")
        return headings.index(key_heading.lower().strip())
    key_columns = [columns[field] for field in KEYS if field in columns]
    if not key_columns:
        raise InputError(
            f"{path} has no column that identifies learners, such as SIS Login ID, Username or Email; {contents}. "
            "Name one with --by, or download the roster anew."
        )
    return key_columns[0]


def _titles(heading: Sequence[str]) -> str:
    return ", ".join(printable(cell) for cell in heading if cell) or "none"


def _check_key(key: str, path: Path, line: int) -> str:
    """The key, where a folder can be called so on every system and shows as it is."""
    is_odd = key != printable(key) or key.startswith(".") or key.endswith(".") or set(key) & set('/\\:*?"<>|')
    if is_odd or fold_name(key) in NOT_LEARNERS:
        raise InputError(
            f"{path}, line {line}: {printable(key)!r} can't be a folder's name; name another column with --by."
        )
    return key

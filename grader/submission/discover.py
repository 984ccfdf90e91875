"""Finds the notebooks that a learner handed in, in whatever folder an archive or a habit has put them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from grader.util import links
from grader.util.names import BACKUPS, RESERVED_FOLDERS, printable
from grader.util.words import join_names, pluralize

MAX_FILES = 200  # notebooks of one learner that are read
MAX_FOLDERS = 1000  # that are looked into
MAX_NOTES = 20
SAME_TIME_NS = 2_000_000_000  # zip and FAT count in steps of two seconds
DEPTH = 4  # folders below the learner's own
TOOL_FOLDERS = ("__pycache__", "__macosx", "site-packages", "node_modules")  # in lower case; no learner writes there
CLASS_FILE = "class.toml"  # in a class's folder: what holds for the class
COLLECTED = "collected.csv"  # in a class's folder: where `grader collect` took each file from
NOT_LEARNERS = (*TOOL_FOLDERS, *RESERVED_FOLDERS, CLASS_FILE, COLLECTED)  # in lower case, directly in a class's folder
# No answers.
HANDOUT_FILES = tuple("readme.md agents.md glossary.md constraints.txt requirements.txt environment.yml .whl".split())
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")
_DATED_COPY = re.compile(r".+-\d{4}-\d\d-\d\d-\d{6}(-\d+)?\.ipynb")  # as `grader reset` and `update` name their copies
_MOST_BYTES, _END = 64 << 20, 1 << 16  # of a solution's notebook, and at its end, where its metadata stand


class FolderSearch:
    """Every notebook in a folder, so many folders deep; hidden files and folders are nobody's work.

    Below `base`, by default the folder that `top` is in, no link is followed. Raises: OSError where the folder itself
    cannot be read.
    files: those nearest to the top first; notes: sentences on what was passed over;
    expected: those on the course's own notebooks, which are nobody's answers. others: files that are none, which somebody may have handed
    in for one. closed: those of the notes that name a folder which this computer does not open.
    """

    def __init__(self, top: Path, base: Path | None = None) -> None:
        self._top, self._base = top, base or top.parent
        self.files: list[Path] = []
        self.notes: list[str] = []
        self._links: list[str] = []
        self.expected: list[str] = []
        self.others: list[str] = []
        self.closed: list[str] = []
        self.folders = 0
        os.listdir(top)
        queue = [top]
        while queue:
            folder = queue.pop(0)
            depth = level_of(folder / "x", top)
            if depth > DEPTH or self.folders >= MAX_FOLDERS:
                limit = f"{DEPTH} folders deep" if depth > DEPTH else f"{MAX_FOLDERS} folders"
                self.notes.append(f"{self._name(folder)} was not searched: the limit is {limit}.")
                continue
            self.folders += 1
            for path in self._entries(folder):
                if os.path.isdir(path):
                    is_as_near = level_of(path / "x", top) == depth
                    queue.insert(0 if is_as_near else len(queue), path)
                elif _is_notebook(path):
                    self.files.append(path)
                elif not path.name.lower().endswith(HANDOUT_FILES) and len(self.others) < MAX_FILES:
                    self.others.append(self._name(path))
        for path in self.files[MAX_FILES:]:
            self.notes.append(f"{self._name(path)} was not read: at most {MAX_FILES} notebooks are read.")
        del self.files[MAX_FILES:]
        self.notes = _limit_notes(self._links + self.notes + self.expected)

    def _name(self, path: Path) -> str:
        return printable(path.relative_to(self._top).as_posix())

    def _entries(self, folder: Path) -> Iterator[Path]:
        """The folders and files of a folder that may be looked at, sorted."""
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            self.closed.append(f"{self._name(folder)} cannot be opened ({error.strerror}); it was not searched.")
            self.notes.append(self.closed[-1])
            return
        course_files = 0
        for path in (folder / name for name in names if not is_from_tool(name)):
            name = self._name(path)
            if links.is_link(path):
                if _is_notebook(path) or not os.path.isfile(path):
                    link = links.sentence(path, name)
                    self._links.append(f"{link}; links are not followed, so it was not read.")
            elif path.name.lower().endswith(ARCHIVES) and not os.path.isdir(path):
                self.notes.append(f"{name} is an archive; it was not opened. Unpack {printable(path.name)} first.")
            elif ".ipynb." in path.name.lower() and not _is_notebook(path) and not os.path.isdir(path):
                new_name = printable(path.name[: path.name.lower().index(".ipynb.") + len(".ipynb")])
                self.notes.append(f"{name} does not end in .ipynb; it was not read. Rename it to {new_name}.")
            elif self._is_course_file(path):
                course_files += 1
            else:
                yield path
        if course_files:
            origins = {"solutions": "of the course's own solutions", BACKUPS: "dated by `grader reset` or `update`"}
            count = f"{pluralize(course_files, 'notebook')} {origins[folder.name.lower()]}"
            self.expected.append(f"Not read in {self._name(folder)}/: {count}; they are not a learner's answers.")

    def _is_course_file(self, path: Path) -> bool:
        """Whether a notebook is one of the course's solutions, by what their metadata alone say, or a dated backup."""
        place = path.parent.name.lower()
        if place not in RESERVED_FOLDERS or not _is_notebook(path) or os.path.isdir(path):
            return False
        if place == BACKUPS:
            return _DATED_COPY.fullmatch(path.name) is not None
        try:
            return b'"built_from"' in (links.read(path, self._base, _MOST_BYTES, end=_END).data or b"")
        except OSError:
            return False


def is_from_tool(name: str) -> bool:
    """Whether a file or folder is a program's own: hidden, or one of those that no learner writes."""
    return name.startswith(".") or name.lower() in TOOL_FOLDERS


def level_of(file: Path, top: Path) -> int:
    """How many folders lie between; a notebooks/ is as near as the folder that it is in, which adds nothing of its own."""
    parts = file.relative_to(top).parts[:-1]
    pairs = zip(("", *parts), parts)
    return len(parts) - sum(part == "notebooks" and previous != "notebooks" for previous, part in pairs)


def save_order(times_ns: Iterable[int]) -> dict[int, int]:
    """The rank of each time, the earliest 0. Those less than two seconds apart agree: unpacking or copying a folder makes such times."""
    ranks: dict[int, int] = {}
    previous, rank = None, 0
    for time in sorted(set(times_ns)):
        rank += previous is not None and time - previous > SAME_TIME_NS
        ranks[time], previous = rank, time
    return ranks


def describe_contents(top: Path) -> str:
    """A sentence on what a folder without notebooks does hold; '' for an empty one. Never raises."""
    try:
        names = sorted(name for name in os.listdir(top) if not is_from_tool(name))
    except OSError:
        return ""
    return f"It contains: {join_names([printable(name) for name in names])}." if names else ""


def _limit_notes(notes: list[str]) -> list[str]:
    """As many sentences on what was passed over as anybody reads."""
    excess = len(notes) - MAX_NOTES
    return notes[:MAX_NOTES] + ([f"{excess} more were not read for the same reason."] if excess > 0 else [])


def _is_notebook(path: Path) -> bool:
    return path.suffix.lower() == ".ipynb"

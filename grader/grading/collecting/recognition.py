"""Whose a file is, by the names in a learning platform's download.

Canvas      'lovelaceada_LATE_4711_81500_01.ipynb': the name without spaces and signs, the user's number, the file's.
Moodle      'Ada Lovelace_4711_assignsubmission_file/01.ipynb', or the same in one name: 4711 is the participant's number.
Gradescope  'submission_81500/01.ipynb', whose submitters submission_metadata.yml names.
GitHub      a checkout a learner, 'assignment-login', in 'assignment-submissions'. gh-classroom, cmd/gh-classroom/clone/student-repos.
folders     one a learner, or one notebook a learner, as `grader class` takes them.

The patterns of Canvas' and Moodle's names are in submission/platforms.py. Of a checkout none of its settings or hooks is looked at.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from grader.grading.collecting.sources import Contents, Member
from grader.submission.platforms import CANVAS, MOODLE, Platform
from grader.submission.roster import Person, Roster
from grader.util import links
from grader.util.names import printable

METADATA = "submission_metadata.yml"
MOST_METADATA = 64 << 20
# Gradescope's metadata are YAML of one shape; those of earlier attempts stand deeper in it.
_FOLDER = re.compile(r"^(?![ -])(.+)$", re.MULTILINE)
_SUBMITTERS = re.compile(r"^  :submitters:\n(?=( *)- )((?:\1[- ] .*\n)+)", re.MULTILINE)
_CREATED = re.compile(
    r"^  :created_at: '?(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.\d+)? ?(Z|UTC|[+-]\d\d:?\d\d)", re.MULTILINE
)

GIT_TIMEOUT_S = 10
MOST_GIT_BYTES = 1 << 20  # of a file that names commits
_COMMIT = re.compile(r"[0-9a-f]{40}")
_COMMITTER = re.compile(rb"^committer .*> (\d{1,11}) [+-]\d{4}$", re.MULTILINE)


@dataclass(frozen=True)
class LearnerId:
    """A learner as a platform knows one. name: of the folder where there is no roster.

    ids: (column, value) of what the platform tells learners apart by; hints: (column, value) of what else may say who it is.
    """

    name: str
    ids: tuple[tuple[str, str], ...] = ()
    hints: tuple[tuple[str, str], ...] = ()

    def person_on(self, roster: Roster) -> Person | None:
        """The person on the roster; None where it has none, or several who could be meant.

        A name is a guess that another can make come true. So where the roster has a column of an id, the ids alone decide.
        """
        ids = [(field, value) for field, value in self.ids if field in roster.filled_columns]
        people = {person.key: person for field, value in ids if (person := roster.person(field, value))}
        if ids:
            return next(iter(people.values())) if len(people) == 1 else None
        return next(filter(None, (roster.person(*pair) for pair in (*self.ids, *self.hints))), None)

    def __str__(self) -> str:
        values = dict.fromkeys(printable(value) for _, value in (*self.ids, *self.hints))
        return ", ".join(values) or printable(self.name)


@dataclass(frozen=True)
class SubmittedFile:
    """A file that was handed in. parts: its path in the learner's folder; order: of several attempts, the later the larger.

    submitted: when, as the platform says, '' where it does not: '2026-10-01 09:00:00+00:00'.
    archive_changed: when the archive that holds it was, in seconds since 1970, where the learner handed in one.
    """

    member: Member
    learners: tuple[LearnerId, ...]
    parts: tuple[str, ...]
    late: bool = False
    order: float = 0
    submitted: str = ""
    archive_changed: float = 0

    @property
    def changed(self) -> float:
        """When it was handed in, as far as that is known; 0 where it is not."""
        return self.archive_changed or self.member.changed


@dataclass(frozen=True)
class Download:
    """form: the platform. files: those whose learner is known; others: (path, reason) of the rest."""

    form: str
    files: tuple[SubmittedFile, ...]
    others: tuple[tuple[str, str], ...]


def recognize(contents: Contents, roster: Roster | None = None) -> Download:
    """Looks at the names, below at most two folders that hold everything."""
    for level in range(3):
        if len({member.parts[:level] for member in contents.members if len(member.parts) > level}) != 1:
            break  # several folders, or none
        for platform, recognizer in (
            ("Canvas", partial(_by_name, CANVAS)),
            ("Moodle", partial(_by_name, MOODLE)),
            ("Gradescope", _gradescope),
            ("GitHub", partial(_github, roster)),
        ):
            if files := recognizer(contents, level):
                reason = f"its name is not one that {platform} gives to a learner's file"
                return Download(platform, tuple(files), _others(contents, files, reason))
    files = list(_folders(contents, roster))
    return Download("folders", tuple(files), _others(contents, files, "its name is not that of a learner's file"))


def _others(contents: Contents, files: Sequence[SubmittedFile], reason: str) -> tuple[tuple[str, str], ...]:
    ids = {id(file.member) for file in files}
    others = [member for member in contents.members if id(member) not in ids and member.parts[-1] != METADATA]
    return (*contents.refusals, *((member.name, reason) for member in others))


def _by_name(platform: Platform, contents: Contents, level: int) -> list[SubmittedFile]:
    files = []
    deepest = level + 1 if platform.files_only else math.inf
    members = [member for member in contents.members if level < len(member.parts) <= deepest]
    for member in members:
        if match := platform.match(member.parts[level]):
            groups, name, id = match.groupdict(), match["name"], match["id"]
            learner = LearnerId(f"{name}_{id}", ((platform.id_field, id),), ((platform.name_field, name),))
            parts = member.parts[level + 1 :] or (match["rest"] or match[0],)
            order = float(groups.get("order") or member.changed)
            files.append(SubmittedFile(member, (learner,), parts, bool(groups.get("late")), order))
    if platform.files_only and 2 * len(files) < len(members):
        return []  # a learner's own name may happen to look so
    return files


def _gradescope(contents: Contents, level: int) -> list[SubmittedFile]:
    table = next((member for member in contents.members if member.parts[level:] == (METADATA,)), None)
    submissions = metadata(table) if table and table.size <= MOST_METADATA else {}
    files = []
    for member in contents.members:
        if len(member.parts) > level + 1 and re.fullmatch(r"submission_\d+", folder := member.parts[level]):
            learners, submitted = submissions.get(folder, ((), ""))
            learners = learners or (LearnerId(folder, hints=(("key", folder),)),)
            parts = member.parts[level + 1 :]
            files.append(SubmittedFile(member, learners, parts, order=member.changed, submitted=submitted))
    return files


def metadata(member: Member) -> dict[str, tuple[tuple[LearnerId, ...], str]]:
    """Who handed in each folder of Gradescope's, and when, from submission_metadata.yml."""
    try:
        text = member.data().decode("utf-8", "replace") + "\n"
    except OSError:
        return {}
    _, *parts = _FOLDER.split(text.replace("\r\n", "\n"))
    return {
        name.strip().removesuffix(":").strip("'\""): (_submitters(block), _submission_time(block))
        for name, block in zip(parts[::2], parts[1::2], strict=True)
    }


def _submitters(block: str) -> tuple[LearnerId, ...]:
    match = _SUBMITTERS.search(block)
    if not match:
        return ()
    learners = []
    for person in re.split(rf"^{match[1]}-", match[2], flags=re.MULTILINE)[1:]:
        lines = re.findall(rf"^(?: |{match[1]}  ):(name|sid|email): ?(.*)$", person, re.MULTILINE)
        values = {key: _scalar(text.strip()) for key, text in lines}
        email, sid, name = (values.get(key, "") for key in ("email", "sid", "name"))
        fields = (("email", email), ("number", sid)), (("key", email), ("key", sid), ("name", name))
        ids, hints = (tuple(pair for pair in pairs if pair[1]) for pairs in fields)
        learners.append(LearnerId(email or sid or name, ids, hints))
    return tuple(learners)


def _submission_time(block: str) -> str:
    """When it was handed in, in UTC; '' where it isn't told."""
    if created := _CREATED.search(block):
        zone = "+00:00" if created[3] in ("Z", "UTC") else created[3]
        with contextlib.suppress(ValueError):  # no such day
            return datetime.fromisoformat(f"{created[1]} {created[2]}{zone}").astimezone(UTC).isoformat(" ")
    return ""


def _scalar(text: str) -> str:
    """A value of YAML that stands on one line."""
    if text[:1] == text[-1:] == "'" and len(text) > 1:
        return text[1:-1].replace("''", "'")
    if text[:1] == text[-1:] == '"' and len(text) > 1:
        try:
            return str(json.loads(re.sub(r"\\x([0-9A-Fa-f]{2})", r"\\u00\1", text)))
        except ValueError:
            return text[1:-1]
    return "" if text in ("~", "null") else text


def _github(roster: Roster | None, contents: Contents, level: int) -> list[SubmittedFile]:
    inside = [member for member in contents.members if len(member.parts) > level + 1]
    if not inside:
        return []
    folder, names = inside[0].parts[:level], {member.parts[level] for member in inside}
    title = folder[-1] if folder else contents.source
    assignment = f"{title.removesuffix('-submissions')}-" if title.endswith("-submissions") else ""
    checkouts = {name for name in names if (*folder, name) in contents.checkouts}
    if not all(name in checkouts or (assignment and name.startswith(assignment)) for name in names):
        return []
    prefix, top, files = _prefix(names, assignment, roster), contents.folder, []
    times = {name: commit_time(top.joinpath(*folder, name), top) for name in checkouts} if top else {}
    for member in inside:
        name, *parts = member.parts[level:]
        learner, submitted = _login(name.removeprefix(prefix)), times.get(name, "")
        files.append(SubmittedFile(member, (learner,), tuple(parts), order=member.changed, submitted=submitted))
    return files


def _prefix(names: set[str], assignment: str, roster: Roster | None) -> str:
    """What stands before the login in all of an assignment's repositories.

    One prefix for all of them: were each searched for an end that somebody has, evil-ada's work would be ada's. assignment: the
    prefix as the folder above tells it, '' where it doesn't; a classroom's name may stand before it. Where it is not known, it
    is the one after which the roster knows the most logins, of several the shortest; without a roster what all begin with.
    """
    common = os.path.commonprefix(sorted(names)) if len(names) > 1 or roster else ""
    prefixes = [common[: hyphen.end()] for hyphen in re.finditer("-", common)]
    if assignment:
        matches = [prefix for prefix in prefixes if f"-{prefix}".endswith(f"-{assignment}")]
        if matches or any(name.startswith(assignment) for name in names):
            return matches[0] if matches else assignment
    if roster is None:
        return prefixes[-1] if prefixes else ""

    def enrolled_logins(prefix: str) -> int:
        return sum(_login(name[len(prefix) :]).person_on(roster) is not None for name in names)

    return max(["", *prefixes], key=enrolled_logins)


def _login(login: str) -> LearnerId:
    """A login is the roster's GitHub column, else what it calls logins, else the folders' names."""
    return LearnerId(login, (("github", login),), (("login", login), ("key", login)))


def _folders(contents: Contents, roster: Roster | None) -> Iterator[SubmittedFile]:
    """A folder a learner, or a notebook a learner; the archive's own folder is nobody."""
    tops = {member.parts[0] for member in contents.members}
    are_learners = roster is not None and any(roster.person(field, top) for top in tops for field in ("key", "name"))
    inside = {member.parts[1] for member in contents.members if len(member.parts) > 2}
    only_folders = all(len(member.parts) > 1 for member in contents.members)
    level = int(len(tops) == 1 and len(inside) > 1 and only_folders and not are_learners)
    for member in contents.members:
        name, *parts = member.parts[level:]
        if not parts:
            if not name.lower().endswith(".ipynb"):
                continue
            name, parts = name[:-6], [name]
        hints = tuple((field, name) for field in ("key", "email", "github", "number", "name"))
        yield SubmittedFile(member, (LearnerId(name, hints=hints),), tuple(parts), order=member.changed)


def commit_time(checkout: Path, top: Path) -> str:
    """When the last commit of a checkout was made, in UTC, by the committer's own clock; '' where it isn't known.

    top: the folder below which no link is followed.
    """
    try:
        commit, folder = _head(checkout / ".git", top), checkout / ".git" / "objects"
        if not _COMMIT.fullmatch(commit) or links.first_link(folder, top) is not None:
            return ""
        with tempfile.TemporaryDirectory() as repository:  # a repository of ours, with the objects of theirs
            for name in ("objects", "refs"):
                Path(repository, name).mkdir()
            Path(repository, "HEAD").write_text("ref: refs/heads/none\n")
            environment = {
                "PATH": os.environ.get("PATH", ""),
                "GIT_DIR": repository,
                "GIT_OBJECT_DIRECTORY": str(folder.resolve()),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
            }
            command = ["git", "cat-file", "commit", commit]
            content = subprocess.run(
                command, env=environment, capture_output=True, timeout=GIT_TIMEOUT_S, check=True
            ).stdout
        time = _COMMITTER.search(content.partition(b"\n\n")[0])
        return datetime.fromtimestamp(int(time[1]), UTC).isoformat(" ") if time else ""
    except (OSError, subprocess.SubprocessError, ValueError, OverflowError):
        return ""


def _head(git: Path, top: Path) -> str:
    """The digest of the commit that is checked out."""
    head = _text(git / "HEAD", top)
    name = head.removeprefix("ref: ")
    if name == head or not re.fullmatch(r"refs/[\w./-]+", name) or ".." in name:
        return head
    with contextlib.suppress(OSError):
        return _text(git.joinpath(*name.split("/")), top)
    match = re.search(rf"^([0-9a-f]{{40}}) {re.escape(name)}$", _text(git / "packed-refs", top), re.MULTILINE)
    return match[1] if match else ""


def _text(path: Path, top: Path) -> str:
    return (links.read(path, top, MOST_GIT_BYTES).data or b"").decode("ascii", "replace").strip()

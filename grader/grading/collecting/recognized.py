"""Whose a file is, as learning platforms name what they let one download.

Canvas      'lovelaceada_LATE_4711_81500_01.ipynb': the name without spaces and signs, the user's number, the file's. Canvas-lms,
            lib/content_zipper.rb (get_filename, add_upload_submission, sanitize_user_name).
Moodle      'Ada Lovelace_4711_assignsubmission_file/01.ipynb', or the same in one name: 4711 is the participant's number within the
            assignment, not the user's. Moodle, mod/assign/classes/downloader.php (get_student_prefix, load_submissionplugin_filelist).
Gradescope  'submission_81500/01.ipynb', whose submitters submission_metadata.yml names.
GitHub      a checkout a learner, 'assignment-login', in 'assignment-submissions'. gh-classroom, cmd/gh-classroom/clone/student-repos.
folders     one a learner, or one notebook a learner, as `grader class` takes them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from grader.grading.collecting.sources import Contents, Member
from grader.submission.enrolled import Enrolled, Person
from grader.util.names import printable

CANVAS = re.compile(r"(?P<name>.+?)(?:_(?P<late>LATE|late))?_(?P<id>\d+)_(?P<order>\d{3,})_(?P<rest>.+)", re.DOTALL)
CANVAS_TEXT = re.compile(r"(?P<name>.+?)(?:_(?P<late>LATE|late))?_(?P<id>\d+)_(?P<rest>(?:text|link)\.html)", re.DOTALL)
CANVAS_ANONYMOUS = re.compile(
    r"(?:(?P<late>LATE)_)?(?P<name>anon)_(?P<id>\w{5})_(?P<order>\d+)_(?P<rest>.+)", re.DOTALL
)
MOODLE = re.compile(r"(?P<name>[^_]*)_(?P<id>\d+)_assignsubmission_(?P<kind>[a-z0-9]+)(?:_(?P<rest>.*))?", re.DOTALL)
GRADESCOPE = re.compile(r"submission_(\d+)")
METADATA = "submission_metadata.yml"
_CREATED = re.compile(r"  :created_at: '?(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.\d+)? ?(Z|UTC|[+-]\d\d:?\d\d)")
MOST_METADATA = 64 << 20


@dataclass(frozen=True)
class Whose:
    """A learner as a platform knows one. name: of the folder where there is no roster.

    ids: (column, value) of what the platform tells learners apart by; given: (column, value) of what else may say who it is.
    """

    name: str
    ids: tuple[tuple[str, str], ...] = ()
    given: tuple[tuple[str, str], ...] = ()

    def of(self, roster: Enrolled) -> Person | None:
        """The person on the roster; None where it has none, or several who could be meant.

        A name is a guess that another can make come true. So where the roster has a column of an id, the ids alone decide.
        """
        ids = [(field, value) for field, value in self.ids if roster.has(field)]
        people = {one.key: one for field, value in ids if (one := roster.with_value(field, value))}
        if ids:
            return next(iter(people.values())) if len(people) == 1 else None
        guesses = (_person(roster, field, value) for field, value in (*self.ids, *self.given))
        return next(filter(None, guesses), None)

    def __str__(self) -> str:
        return ", ".join(dict.fromkeys(printable(value) for _, value in (*self.ids, *self.given))) or printable(
            self.name
        )


def _person(roster: Enrolled, field: str, value: str) -> Person | None:
    if field == "joined":
        return _joined(roster, value)
    return {"key": roster.of, "name": roster.named}.get(field, lambda text: roster.with_value(field, text))(value)


@dataclass(frozen=True)
class Handed:
    """A file that was handed in. rest: its path in the learner's folder; order: of several attempts, the later the larger.

    submitted: when, as the platform says, '' where it does not: '2026-10-01 09:00:00+00:00'.
    packed: when the archive that holds it was changed, in seconds since 1970, where the learner handed in one.
    """

    member: Member
    whose: tuple[Whose, ...]
    rest: tuple[str, ...]
    late: bool = False
    order: float = 0
    submitted: str = ""
    packed: float = 0

    @property
    def changed(self) -> float:
        """When it was handed in, as far as that is known; 0 where it is not."""
        return self.packed or self.member.changed


@dataclass(frozen=True)
class Recognized:
    """form: the platform. handed: whose is known; others: (path, why) of the rest."""

    form: str
    handed: tuple[Handed, ...]
    others: tuple[tuple[str, str], ...]


def recognized(found: Contents, roster: Enrolled | None = None) -> Recognized:
    """Looks at the names, below at most two folders that hold everything."""
    ways = {"Canvas": _canvas, "Moodle": _moodle, "Gradescope": _gradescope, "GitHub": _github}
    for level in range(3):
        if len({member.parts[:level] for member in found.members if len(member.parts) > level}) != 1:
            break  # several folders, or none
        for form, read in ways.items():
            handed = read(found, level, roster)
            if handed:
                return _with_the_rest(form, found, handed)
    return _with_the_rest("folders", found, _folders(found, roster))


def _with_the_rest(form: str, found: Contents, handed: Sequence[Handed]) -> Recognized:
    known = {id(one.member) for one in handed}
    why = (
        "its name is not that of a learner's file"
        if form == "folders"
        else f"its name is not one that {form} gives to a learner's file"
    )
    others = [
        (member.name, why) for member in found.members if id(member) not in known and member.parts[-1] != METADATA
    ]
    return Recognized(form, tuple(handed), (*found.refused, *others))


def _canvas(found: Contents, level: int, roster: Enrolled | None) -> list[Handed]:
    handed = []
    here = [member for member in found.members if len(member.parts) == level + 1]
    for member in here:
        name = member.parts[level]
        met = CANVAS_ANONYMOUS.fullmatch(name) or CANVAS.fullmatch(name) or CANVAS_TEXT.fullmatch(name)
        if met:
            whose = Whose(f"{met['name']}_{met['id']}", (("canvas", met["id"]),), (("joined", met["name"]),))
            order = float(met.groupdict().get("order") or 0)
            handed.append(Handed(member, (whose,), (met["rest"],), bool(met["late"]), order))
    return handed if 2 * len(handed) >= len(here) else []  # a learner's own name may happen to look so


def _moodle(found: Contents, level: int, roster: Enrolled | None) -> list[Handed]:
    handed = []
    for member in found.members:
        met = MOODLE.fullmatch(member.parts[level]) if len(member.parts) > level else None
        if not met:
            continue
        below = member.parts[level + 1 :] or (met["rest"] or met["kind"],)
        number = (("participant", f"Participant {met['id']}"), ("participant", met["id"]))
        whose = Whose(f"{met['name']}_{met['id']}", number, (("name", met["name"]),))
        handed.append(Handed(member, (whose,), below, order=member.changed))
    return handed


def _gradescope(found: Contents, level: int, roster: Enrolled | None) -> list[Handed]:
    about = next((member for member in found.members if member.parts[level:] == (METADATA,)), None)
    about = about if about and about.size <= MOST_METADATA else None
    who, when = (submitters(about), submission_times(about)) if about else ({}, {})
    handed = []
    for member in found.members:
        if len(member.parts) > level + 1 and GRADESCOPE.fullmatch(member.parts[level]):
            folder = member.parts[level]
            whose = who.get(folder) or (Whose(folder, given=(("key", folder),)),)
            handed.append(
                Handed(member, whose, member.parts[level + 1 :], order=member.changed, submitted=when.get(folder, ""))
            )
    return handed


def submission_times(about: Member) -> dict[str, str]:
    """When each folder was handed in, from submission_metadata.yml; those of earlier attempts stand deeper in it."""
    try:
        text = about.data().decode("utf-8", "replace")
    except OSError:
        return {}
    found: dict[str, str] = {}
    folder = ""
    for line in text.splitlines():
        if line[:1] not in (" ", "-"):
            folder = line.strip().removesuffix(":").strip("'\"")
        met = _CREATED.match(line)
        if met:
            zone = "+00:00" if met[3] in ("Z", "UTC") else met[3]
            with contextlib.suppress(ValueError):  # no such day
                found.setdefault(
                    folder, datetime.fromisoformat(f"{met[1]} {met[2]}{zone}").astimezone(UTC).isoformat(" ")
                )
    return found


def submitters(about: Member) -> dict[str, tuple[Whose, ...]]:
    """Who handed in each folder, from submission_metadata.yml. It is YAML of one shape, of which three kinds of line are read."""
    try:
        lines = about.data().decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    found: dict[str, list[dict[str, str]]] = {}
    folder, depth = "", -1  # depth: of the ':submitters:' that is being read
    for line in lines:
        indent, said = len(line) - len(line.lstrip(" ")), line.strip()
        if indent == 0 and not said.startswith("-"):
            folder, depth = said.removesuffix(":").strip("'\""), -1
        elif said == ":submitters:" and folder not in found:  # those of earlier attempts follow below
            depth = indent
        elif depth >= 0 and (indent < depth or indent == depth and not said.startswith("-")):
            depth = -1
        elif depth >= 0:
            if said.startswith("- "):
                found.setdefault(folder, []).append({})
                said = said[2:].strip()
            met = re.fullmatch(r":(name|sid|email): ?(.*)", said)
            if met and found.get(folder):
                found[folder][-1][met[1]] = _scalar(met[2])
    return {name: tuple(map(_submitter, people)) for name, people in found.items()}


def _scalar(said: str) -> str:
    if said[:1] == said[-1:] == "'" and len(said) > 1:
        return said[1:-1].replace("''", "'")
    if said[:1] == said[-1:] == '"' and len(said) > 1:
        try:
            return str(json.loads(re.sub(r"\\x([0-9A-Fa-f]{2})", r"\\u00\1", said)))
        except ValueError:
            return said[1:-1]
    return "" if said in ("~", "null") else said


def _submitter(person: Mapping[str, str]) -> Whose:
    email, sid, name = (person.get(key, "") for key in ("email", "sid", "name"))
    ids, given = (("email", email), ("number", sid)), (("key", email), ("key", sid), ("name", name))
    return Whose(
        email or sid or name, *(tuple((field, value) for field, value in each if value) for each in (ids, given))
    )


def _github(found: Contents, level: int, roster: Enrolled | None) -> list[Handed]:
    tops = {member.parts[level] for member in found.members if len(member.parts) > level + 1}
    above = (
        next((member.parts[level - 1] for member in found.members if len(member.parts) > level), "")
        if level
        else found.source
    )
    begins = f"{above.removesuffix('-submissions')}-" if above.endswith("-submissions") else ""
    checkouts = {way[level] for way in found.checkouts if len(way) == level + 1}
    ours = {name for name in tops if name in checkouts or (begins and name.startswith(begins))}
    if not ours or ours != tops:
        return []
    begins = _prefix(ours, begins, roster)
    return [
        Handed(
            member, (_login(member.parts[level].removeprefix(begins)),), member.parts[level + 1 :], order=member.changed
        )
        for member in found.members
        if len(member.parts) > level + 1 and member.parts[level] in ours
    ]


def _prefix(names: set[str], assignment: str, roster: Enrolled | None) -> str:
    """What stands before the login in all of an assignment's repositories.

    One prefix for all of them: were each searched for an end that somebody has, evil-ada's work would be ada's. assignment: the
    prefix as the folder above tells it, '' where it doesn't; a classroom's name may stand before it. Where it is not known, it
    is the one after which the roster knows the most logins, of several the shortest; without a roster what all begin with.
    """
    alike = os.path.commonprefix(sorted(names)) if len(names) > 1 or roster else ""
    hyphens = [at for at, sign in enumerate(alike) if sign == "-"]
    if assignment:
        known = [alike[: at + 1] for at in hyphens if f"-{alike[: at + 1]}".endswith(f"-{assignment}")]
        if known or any(name.startswith(assignment) for name in names):
            return known[0] if known else assignment
    if roster is None:
        return alike[: hyphens[-1] + 1] if hyphens else ""
    logins: Callable[[str], int] = lambda begins: sum(
        _login(name[len(begins) :]).of(roster) is not None for name in names
    )
    return max(["", *(alike[: at + 1] for at in hyphens)], key=logins)


def _login(login: str) -> Whose:
    """A login is the roster's GitHub column, else what it calls logins, else the folders' names."""
    return Whose(login, (("github", login),), (("login", login), ("key", login)))


def _folders(found: Contents, roster: Enrolled | None) -> list[Handed]:
    """A folder a learner, or a notebook a learner; the archive's own folder is nobody."""
    tops = {member.parts[0] for member in found.members}
    known = roster is not None and any(roster.of(top) or roster.named(top) for top in tops)
    inside = {member.parts[1] for member in found.members if len(member.parts) > 2}
    level = int(
        len(tops) == 1 and len(inside) > 1 and all(len(member.parts) > 1 for member in found.members) and not known
    )
    handed = []
    for member in found.members:
        parts = member.parts[level:]
        alone = len(parts) == 1
        if alone and not parts[0].lower().endswith(".ipynb"):
            continue
        name = parts[0][:-6] if alone else parts[0]
        handed.append(
            Handed(
                member,
                (Whose(name, given=tuple((field, name) for field in ("key", "email", "github", "number", "name"))),),
                parts if alone else parts[1:],
                order=member.changed,
            )
        )
    return handed


def _joined(roster: Enrolled, name: str) -> Person | None:
    """The only one whose name is this without spaces and signs, as Canvas writes it: 'lovelaceada'."""
    bare: Callable[[str], str] = lambda said: re.sub(r"[\W_]", "", said).casefold()
    people = [one for one in roster.people if any(bare(each) == bare(name) for each in one.names)]
    return people[0] if len(people) == 1 and bare(name) else None

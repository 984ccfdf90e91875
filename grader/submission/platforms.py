"""The learning platforms: the names in their downloads, the columns of their rosters and of their grade books.

Sources: canvas-lms, lib/content_zipper.rb (get_filename, add_upload_submission,
sanitize_user_name) and lib/gradebook_importer.rb; Moodle, mod/assign/classes/downloader.php (get_student_prefix,
load_submissionplugin_filelist) and grade/import/csv/classes/load_data.php.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.submission.discover import ARCHIVES
from grader.util.names import printable
from grader.util.words import pluralize

REPEAT_ADVICE = "then give the same command again. Nothing was graded."


@dataclass(frozen=True)
class Platform:
    """What one platform calls things. Fields of a roster are named as in FIELDS.

    gradebook: the headings of the table that it imports, with their fields.
    names: patterns of a name in its download, with the groups `name` and `id`, where there are such `late`, `order` (of several
    attempts the later has the larger) and `rest` (the file as the learner called it). files_only: whether no folder is called so.
    id_field: what `id` is in the roster. name_field: what `name` is; 'joined': without spaces and signs.
    reason: why what is called so is not graded as it is.
    """

    name: str
    gradebook: Mapping[str, str]
    names: Sequence[re.Pattern[str]]
    id_field: str
    reason: str
    name_field: str = "name"
    files_only: bool = False

    def match(self, name: str) -> re.Match[str] | None:
        """The parts of a name in a download; None where it is not one of this platform's."""
        return next((match for pattern in self.names if (match := pattern.fullmatch(name))), None)


CANVAS = Platform(
    "Canvas",
    gradebook={
        "Student": "name",
        "ID": "canvas",
        "SIS User ID": "number",
        "SIS Login ID": "login",
        "Section": "section",
    },
    names=[
        re.compile(r"(?:(?P<late>LATE)_)?(?P<name>anon)_(?P<id>\w{5})_(?P<order>\d+)_(?P<rest>.+)", re.DOTALL),
        re.compile(r"(?P<name>.+?)(?:_(?P<late>LATE|late))?_(?P<id>\d+)_(?P<order>\d{3,})_(?P<rest>.+)", re.DOTALL),
        re.compile(r"(?P<name>.+?)(?:_(?P<late>LATE|late))?_(?P<id>\d+)_(?P<rest>(?:text|link)\.html)", re.DOTALL),
    ],
    files_only=True,
    id_field="canvas",
    name_field="joined",
    reason="Each file is one notebook, not one learner",
)
MOODLE = Platform(
    "Moodle",
    gradebook={"Username": "login", "Email address": "email", "ID number": "number"},
    names=[re.compile(r"(?P<name>[^_]*)_(?P<id>\d+)_assignsubmission_[a-z0-9]+(?:_(?P<rest>.*))?", re.DOTALL)],
    id_field="participant",  # within the assignment, not the user's
    reason="The number belongs to the submission, not to the learner",
)
WORKSHEET = "grade can be changed"  # a heading of Moodle's grading worksheet alone
_GERMAN = {  # Moodle writes headings in the language of whoever downloads
    "anmeldename": "username",
    "e-mail-adresse": "email address",
    "id-nummer": "id number",
    "vollständiger name": "full name",
    "vorname": "first name",
    "nachname": "last name",
    "bewertung": "grade",
    "bestwertung": "maximum grade",
    "bewertung kann geändert werden": WORKSHEET,
    "zuletzt geändert (bewertung)": "last modified (grade)",
    "feedback als kommentar": "feedback comments",
}
FIELDS = {  # what a column of a roster holds -> its headings in lower case, of several that are there the first counts
    "login": ("sis login id", "username", "user name", "login id", "login"),
    "email": ("email address", "email", "e-mail"),
    "github": ("github_username", "github username"),
    "number": ("sis user id", "id number", "sid", "student id", "student_id"),
    "participant": ("identifier",),
    "canvas": ("id",),
    "name": ("student", "full name", "name"),
    "first": ("first name", "first_name", "firstname"),
    "last": ("last name", "last_name", "surname", "lastname"),
    "section": ("section", "sections", "section name"),
}


def titles(heading: Sequence[str]) -> list[str]:
    """The headings of a roster in lower case, those of a German Moodle in English, where a grading worksheet begins with 'ID'."""
    english = [_GERMAN.get(cell.lower(), cell.lower()) for cell in heading]
    return ["identifier", *english[1:]] if WORKSHEET in english else english


def refusal(names: Sequence[str], least: int = 1) -> str:
    """What to do with a folder's entries before they can be graded, as a sentence after the folder's name; '': nothing.

    least: of how many submissions there must be some; one learner's own folder may well hold one.
    """
    for platform in (MOODLE, CANVAS):
        submissions = {
            name: (match["name"].lower(), match["id"].lower())
            for name in sorted(names)
            if (match := platform.match(name)) and (name.lower().endswith(".ipynb") or not platform.files_only)
        }
        if len(set(submissions.values())) >= least:
            count, example = pluralize(len(submissions), "name"), printable(next(iter(submissions)))
            return (
                f"holds {count} as {platform.name} gives them, such as {example}. {platform.reason}: `grader collect FOLDER "
                f"--to collected --roster ROSTER` sorts them into a folder for each learner; name that one, {REPEAT_ADVICE}"
            )
    return ""


def archive_refusal(names: Sequence[str]) -> str:
    """The same for archives: what is in one is nobody's until it is unpacked."""
    archives = sorted(name for name in names if name.lower().endswith(ARCHIVES) and not name.startswith("."))
    if not archives:
        return ""
    others = f" and {len(archives) - 1} more" if len(archives) > 1 else ""
    return (
        f"contains archives, which are not opened: {printable(archives[0])}{others}. `grader collect ARCHIVE --to collected` sorts what "
        f"a learning platform packed into a folder for each learner; unpack others yourself, and {REPEAT_ADVICE}"
    )

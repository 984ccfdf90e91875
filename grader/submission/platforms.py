"""Knows the names in which learning platforms hand out what they collected: none of them is a learner's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.submission.discover import ARCHIVES
from grader.util.names import printable
from grader.util.words import counted

MOODLE = re.compile(
    r"(.*_\d+)_assignsubmission_.*", re.DOTALL
)  # 'Ada Lovelace_4711_assignsubmission_file_', a folder or file
CANVAS = re.compile(
    r"(.+?(?:_late)?_\d+)_\d{3,}_.+\.ipynb", re.IGNORECASE | re.DOTALL
)  # 'lovelaceada_LATE_4711_81500_01.ipynb'
AGAIN = "then give the same command again. Nothing was graded."


def refusal(names: Sequence[str], least: int = 1) -> str:
    """What to do with a folder's entries before they can be graded, as a sentence after the folder's name; '': nothing.

    least: of how many submissions there must be some; one learner's own folder may well hold one.
    """
    for form, found in (("Moodle", MOODLE), ("Canvas", CANVAS)):
        whose = {name: met[1].lower().replace("_late", "") for name in sorted(names) if (met := found.fullmatch(name))}
        theirs = list(whose)
        if len(set(whose.values())) >= least:
            count = counted(len(theirs), "name")
            return f"holds {count} as {form} gives them, such as {printable(theirs[0])}. {_DO[form]}, {AGAIN}"
    return ""


_DO = {  # whose they are, `grader collect` finds out, with a roster under the names that the grade book knows
    "Moodle": "The number belongs to the submission, not to the learner: `grader collect FOLDER --to collected --roster ROSTER` sorts "
    "them into a folder for each learner; name that one",
    "Canvas": "Each file is one notebook, not one learner: `grader collect FOLDER --to collected --roster ROSTER` sorts them into "
    "a folder for each learner; name that one",
}


def packed(names: Sequence[str]) -> str:
    """The same for archives: what is in one is nobody's until it is unpacked."""
    theirs = sorted(name for name in names if name.lower().endswith(ARCHIVES) and not name.startswith("."))
    if not theirs:
        return ""
    more = f" and {len(theirs) - 1} more" if len(theirs) > 1 else ""
    return (
        f"contains archives, which are not opened: {printable(theirs[0])}{more}. `grader collect ARCHIVE --to collected` sorts what "
        f"a learning platform packed into a folder for each learner; unpack others yourself, and {AGAIN}"
    )

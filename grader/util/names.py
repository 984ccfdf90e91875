"""Names that strangers chose, as they can be shown: nothing in them is invisible, and no two learners read alike."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence

BACKUPS = "backups"  # of notebooks that `grader reset` replaced, of attempts that `grader collect` found later ones of
RESERVED_FOLDERS = (BACKUPS, "solutions")  # of no learner, in lower case

SPACE, UNSEEN = "\N{OPEN BOX}", "\N{REPLACEMENT CHARACTER}"
# What Unicode lets a reader ignore though Python calls it printable, and letters that are drawn as nothing.
IGNORED = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
_IGNORED = re.compile(f"[{IGNORED}]")


def printable(name: str) -> str:
    """A name as it can stand in a sentence: whatever is not seen or reorders text is replaced, and it isn't endless."""
    return "".join(c if c.isprintable() else UNSEEN for c in _IGNORED.sub(UNSEEN, name))[:200]


def learner_name(name: str) -> str:
    """A learner's name, printable, its spaces at either end and those in a row seen: ' ada' is not 'ada'."""
    return re.sub(r"^ +| +$| {2,}", lambda match: SPACE * len(match[0]), printable(name))


def fold_name(name: str) -> str:
    """What a grade book or a reader may take a name for: without regard to case, spaces, unseen and composed characters."""
    bare = unicodedata.normalize("NFKC", name.replace(UNSEEN, "").replace(SPACE, " "))
    return unicodedata.normalize("NFKC", " ".join(bare.split()).casefold())


def same_name_groups(names: Sequence[str]) -> list[list[int]]:
    """Groups of names, by their places, that are the same when folded; only those of two or more."""
    groups: dict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(names):
        groups[fold_name(name)].append(index)
    return [group for group in groups.values() if len(group) > 1]


def labels(names: Sequence[str]) -> tuple[str, ...]:
    """The names, no two alike: of several that are the same when folded only the one exact name stays as it is.

    The others get a number, and all of them where none or more than one is exact: whose it is must not be guessed.
    """
    duplicates: set[int] = set()
    for group in same_name_groups(names):
        exact = {index for index in group if _is_exact(names[index])}
        duplicates |= set(group) - (exact if len(exact) == 1 else set())
    counts = Counter(fold_name(name) for index, name in enumerate(names) if index not in duplicates)
    labels = list(names)
    for index in sorted(duplicates):
        number = 1 if not counts[fold_name(names[index])] else 2
        while counts[fold_name(f"{names[index]} ({number})")]:
            number += 1
        labels[index] = f"{names[index]} ({number})"
        counts[fold_name(labels[index])] += 1
    return tuple(labels)


def _is_exact(name: str) -> bool:
    """Whether a name is written in no odd way."""
    return name == unicodedata.normalize("NFKC", " ".join(name.split())) and UNSEEN not in name and SPACE not in name

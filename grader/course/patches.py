"""A mistake as a patch of the reference's own source: text replaced by text, in a normal form that no re-wrapping of a line disturbs.

The normal form is what `ast.unparse` makes of the parsed solution, docstrings left out. Each old text stands in it exactly once.
Two patches combine where they neither overlap nor touch: patches that touch each other would make something that neither means.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from os.path import commonprefix
from textwrap import dedent

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_BEGIN, _END = "\x02", "\x03"  # around what an edit puts in; no source holds them
_MARKED = re.compile(f"^(?:.*{_BEGIN}[^{_END}]*{_END})+.*$", re.MULTILINE)


class PatchError(ValueError):
    """A patch that does not fit the reference; the message is for authors and says why."""


@dataclass(frozen=True)
class Hunk:
    """One replacement. of: the exercise of the same lesson whose solution is patched, '' for the mistake's own."""

    old: str
    new: str
    of: str = ""


@dataclass(frozen=True)
class Patch:
    """Replacements that are made together; `a + b` is a patch with those of both.

    like: another patch, which shows the same on every case that is not costly, so that only one of the two need be run there.
    """

    hunks: tuple[Hunk, ...]
    like: Patch | None = None

    def __add__(self, other: Patch) -> Patch:
        return Patch(self.hunks + other.hunks)


@dataclass(frozen=True, order=True)
class Edit:
    """A hunk at its place: text[start:end] of the solution of `of` becomes `new`."""

    of: str
    start: int
    end: int
    new: str


def patch(*texts: str, of: str = "") -> Patch:
    """Each old text becomes the new one after it, in the reference's normal form: patch(old, new, old, new). Without any, nothing changes.

    of: the exercise of the same lesson whose solution the pairs are in; '' for the mistake's own exercise.
    """
    if len(texts) % 2:
        raise PatchError(f"a patch is made of pairs, and {texts[-1]!r} has none")
    return Patch(tuple(Hunk(*pair, of) for pair in zip(texts[::2], texts[1::2], strict=True)))


@cache
def normal_form(text: str) -> str:
    """The normal form of a solution: as ast.unparse writes it, without docstrings and comments."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        definitions = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
        if isinstance(node, definitions) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree) + "\n"


def edits(patch: Patch, texts: Mapping[str, str], own: str) -> tuple[Edit, ...]:
    """Where a patch's hunks lie, in order, without what their old and new text share at either end.

    texts: normal forms by exercise; own: the exercise that hunks without one mean.
    Raises: PatchError where an old text is not there exactly once, where a hunk changes nothing, or where hunks meet.
    """
    changes = join_edits(tuple(_edit(hunk, texts, hunk.of or own) for hunk in patch.hunks), ())
    if changes is None:
        raise PatchError(f"two of its hunks overlap or touch: {[hunk.old for hunk in patch.hunks]}")
    return changes


def join_edits(left: tuple[Edit, ...], right: tuple[Edit, ...]) -> tuple[Edit, ...] | None:
    """Two patches' edits as one patch's; None where they overlap or touch."""
    both = tuple(sorted(left + right))
    return None if any(a.of == b.of and b.start <= a.end for a, b in pairwise(both)) else both


def apply_edits(changes: tuple[Edit, ...], texts: Mapping[str, str]) -> dict[str, str]:
    """The texts that the edits concern, changed."""
    changed = {change.of: texts[change.of] for change in changes}
    for change in sorted(changes, reverse=True):  # from behind, so that places stay what they were
        text = changed[change.of]
        changed[change.of] = text[: change.start] + change.new + text[change.end :]
    return changed


def hunk_lines(changes: tuple[Edit, ...], texts: Mapping[str, str]) -> tuple[str, str]:
    """(right, wrong): the whole lines that the edits concern, as they are and as they become."""
    unchanged = tuple(replace(change, new=texts[change.of][change.start : change.end]) for change in changes)
    right, wrong = (_marked_lines(apply_edits(tuple(map(_mark, side)), texts), texts) for side in (unchanged, changes))
    return right, wrong or "# nothing stands here"


def _mark(change: Edit) -> Edit:
    return replace(change, new=f"{_BEGIN}{change.new}{_END}")


def _marked_lines(changed: Mapping[str, str], order: Iterable[str]) -> str:
    """The lines of the texts in which something is marked, without the marks."""
    blocks = [match[0] for of in order for match in _MARKED.finditer(changed.get(of, ""))]
    lines = re.sub(f"[{_BEGIN}{_END}]", "", "\n".join(blocks)).split("\n")
    return dedent("\n".join(line for line in lines if line.strip() not in ("", "pass")))


def _edit(hunk: Hunk, texts: Mapping[str, str], of: str) -> Edit:
    if of not in texts:
        raise PatchError(f"the lesson has no exercise {of!r} before this one")
    text = texts[of]
    times = text.count(hunk.old)
    if times != 1:
        raise PatchError(f"{hunk.old!r} occurs {times} times in the solution of {of}, which reads\n{text}")
    old, new = _TOKEN.findall(hunk.old), _TOKEN.findall(hunk.new)
    if old == new:
        raise PatchError(f"{hunk.old!r} is replaced by itself")
    head = len(commonprefix([old, new]))
    tail = len(commonprefix([old[head:][::-1], new[head:][::-1]]))
    start = text.index(hunk.old) + sum(map(len, old[:head]))
    end = start + sum(map(len, old[head : len(old) - tail]))
    return Edit(of, start, end, "".join(new[head : len(new) - tail]))

"""Finds solution text in what is about to be handed out, whatever the file: notebook, archive, page, code.

What a lesson's own prose or given code shows is no secret. All the rest of a solution region is: a line of it that is
long enough to be told from chance, or the whole region where its lines are short. A line that names nothing of the
exercise, such as `start = time.perf_counter()`, is one that anybody writes: alone it gives nothing away, and two of
one solution in the same file do.
"""

from __future__ import annotations

import ast
import builtins
import io
import json
import keyword
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from grader.course.course import Course
from grader.course.prose import TEACHING
from grader.course.stubs import BEGIN, END
from grader.source.definitions import defined_names

LINE = 20  # characters, without space and comments, from which one line gives a solution away
REGION = 8  # the same for a whole region
MAX_DEPTH = 4  # of archives in archives


@dataclass(frozen=True)
class Leak:
    """A released file and the line of a lesson's source that it gives away."""

    file: str
    lesson: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file} holds line {self.line} of the solution of {self.lesson}: {self.text}"


@dataclass(frozen=True)
class Secret:
    """Text of a solution as it is searched for, and where it stands in its source.

    region: of the source, from 0. common: whether anybody might write it, so that it takes another of its region.
    """

    needle: str
    lesson: str
    line: int
    text: str
    region: int = 0
    common: bool = False


def leaks(course: Course, files: Mapping[str, bytes], secrets: tuple[Secret, ...] | None = None) -> list[Leak]:
    """Every secret that one of the files holds; at most one a file and solution line."""
    secrets = all_secrets(course) if secrets is None else secrets
    found = []
    for name, data in files.items():
        for inner, text in _texts(name, data):
            squeezed = _searched(text)
            seen = [secret for secret in secrets if secret.needle in squeezed]
            of_region = Counter((secret.lesson, secret.region) for secret in seen)
            found += [
                Leak(inner, secret.lesson, secret.line, secret.text)
                for secret in seen
                if not secret.common or of_region[secret.lesson, secret.region] > 1
            ]
    return list(dict.fromkeys(found))


def earlier_answers(course: Course, lessons: Sequence[str]) -> dict[str, list[str]]:
    """The exercises that a later one of these lessons defines in its own cells, as those read who have not done them: by exercise."""
    of = {exercise: lesson for lesson in lessons for exercise in course.exercises[lesson]}
    found: dict[str, list[str]] = {}
    for later in lessons:
        own = [cell.text for cell in course.cells(later) if cell.role in ("given", "demo", "payoff")]
        for name in sorted(frozenset().union(*map(defined_names, own))):
            if of.get(name, later) < later:
                found.setdefault(name, []).append(later)
    return found


def all_secrets(course: Course) -> tuple[Secret, ...]:
    """The solutions of every lesson that has a source, chosen for the hand-out or not."""
    sources = {name: course.source(name) for name in course.exercises if course.source_path(name).is_file()}
    return _secrets_of(tuple(sources.items()))


@lru_cache(maxsize=1)  # a release asks several times, of the same sources, and each time takes half a second
def _secrets_of(sources: tuple[tuple[str, str], ...]) -> tuple[Secret, ...]:
    return secrets_of(dict(sources))


def secrets_of(sources: Mapping[str, str]) -> tuple[Secret, ...]:
    """What the solution regions of these sources hold and no part outside of them shows."""
    regions, shown = [], []
    for name, source in sources.items():
        outside, inside = _parts(source)
        shown.append(_searched(outside))
        regions += [(name, at, region) for at, region in enumerate(inside)]
    visible = "\n".join(shown)
    known = {*keyword.kwlist, *dir(builtins), *(word for source in sources.values() for word in _imported(source))}
    found: dict[str, Secret] = {}
    for name, at, region in regions:
        whole = squeeze("\n".join(text for _, text in region))
        number, text = next(((n, t.strip()) for n, t in region if squeeze(t)), (0, ""))
        if len(whole) >= REGION and whole not in visible:
            found.setdefault(whole, Secret(whole, name, number, text, at))
        for number, text in region:
            line = squeeze(text)
            if len(line) >= LINE and line not in visible:
                found.setdefault(line, Secret(line, name, number, text.strip(), at, not _words(text) - known))
    return tuple(found.values())


def _imported(source: str) -> Iterator[str]:
    """The names under which a source imports libraries."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)


def _words(line: str) -> set[str]:
    """The names that a line of code reads: neither what it binds, nor attributes, keywords of a call and strings."""
    code = re.sub(r"""("[^"]*"|'[^']*')|(?:^|(?<=\s))#.*""", "", line)
    return set(re.findall(r"(?<![\w.])[^\W\d]\w*(?!\s*=(?!=))(?!\w)", code))


def squeeze(text: str) -> str:
    """Text as it is compared: without comments, space and line breaks, escapes of strings undone."""
    plain = text.replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'")
    return re.sub(r"\s+", "", re.sub(r"(?:^|(?<=\s))#.*", "", plain))


@lru_cache(maxsize=4096)  # a release looks several times through the same files
def _searched(text: str) -> str:
    """Text in which secrets are looked for: squeezed, and once more with what comments hold."""
    return squeeze(text) + "\n" + squeeze(text.replace("#", ""))


def _parts(source: str) -> tuple[str, list[list[tuple[int, str]]]]:
    """The text outside of solution regions (prose without its '# '), and each region's numbered lines.

    Notes for instructors, the last cell, are neither: no notebook shows them.
    """
    outside: list[str] = []
    regions: list[list[tuple[int, str]]] = []
    inside = False
    for number, line in enumerate(source.splitlines(), 1):
        bare = line.strip()
        if bare == f"# {TEACHING}":
            break
        if bare.startswith(BEGIN):
            regions.append([])
            inside = True
        elif bare == END:
            inside = False
        elif inside:
            regions[-1].append((number, line))
        else:
            outside.append(line.removeprefix("# "))
    return "\n".join(outside), regions


def _texts(name: str, data: bytes, depth: int = 0) -> Iterator[tuple[str, str]]:
    """(name, text) of a file, of the strings in it where it is JSON, and of an archive's members."""
    if data[:4] == b"PK\x03\x04" and depth < MAX_DEPTH:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                yield from _texts(f"{name}:{member}", archive.read(member), depth + 1)
        return
    text = data.decode("utf-8", "replace")
    yield name, text
    if name.endswith((".ipynb", ".json")):
        try:
            yield name, "\n".join(_strings(json.loads(text)))
        except (ValueError, RecursionError):
            return


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        whole = all(isinstance(item, str) for item in value)  # a cell's lines belong together
        yield from ["".join(value)] if whole else (text for item in value for text in _strings(item))
    elif isinstance(value, dict):
        yield from (text for item in value.values() for text in _strings(item))

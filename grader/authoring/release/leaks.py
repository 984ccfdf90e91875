"""Finds solution text in what is about to be handed out, whatever the file: notebook, archive, page, code.

What a lesson's own prose or given code shows is no secret. All the rest of a solution region is: a line of it that is
long enough to be told from chance, or the whole region where its lines are short. A line that names nothing of the
exercise, such as `start = time.perf_counter()`, is one that anybody writes: alone it gives nothing away, and two of
one solution in the same file do.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import json
import keyword
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from grader.course.course import Course
from grader.course.percent import TEACHING
from grader.course.stubs import SOLUTION
from grader.source.definitions import defined_names
from grader.source.scopes import IMPORTS, imports_of

LINE = 20  # characters, without space and comments, from which one line gives a solution away
REGION = 8  # the same for a whole region
MAX_DEPTH = 4  # of archives in archives


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


def leaks(course: Course, files: Mapping[str, bytes]) -> list[tuple[str, Secret]]:
    """(file, secret) for every secret that one of the files holds; at most one a file and solution line."""
    matches: dict[tuple[str, str, int], Secret] = {}
    for name, data in files.items():
        for inner, text in _texts(name, data):
            secrets = _secrets_in(course, text)
            of_region = Counter((secret.lesson, secret.region) for secret in secrets)
            for secret in secrets:
                if not secret.common or of_region[secret.lesson, secret.region] > 1:
                    matches.setdefault((inner, secret.lesson, secret.line), secret)
    return [(file, secret) for (file, *_), secret in matches.items()]


def earlier_answers(course: Course, lessons: Sequence[str]) -> dict[str, list[str]]:
    """The exercises that a later one of these lessons defines in its own cells, as those read who have not done them: by exercise."""
    lesson_of = {exercise: lesson for lesson in lessons for exercise in course.exercises[lesson]}
    answers: dict[str, list[str]] = {}
    for later in lessons:
        for name in sorted(_own_names(course, later)):
            if lesson_of.get(name, later) < later:
                answers.setdefault(name, []).append(later)
    return answers


@cache
def _own_names(course: Course, lesson: str) -> frozenset[str]:
    """What a lesson's cells define that are no exercises."""
    texts = [cell.text for cell in course.cells(lesson) if cell.role in ("given", "demo", "payoff")]
    return frozenset().union(*map(defined_names, texts))


@cache  # a search for each file, and each time it takes half a second
def all_secrets(course: Course) -> tuple[Secret, ...]:
    """The solutions of every lesson that has a source, chosen for the hand-out or not."""
    return secrets_of({name: course.source(name) for name in course.lessons()})


def secrets_of(sources: Mapping[str, str]) -> tuple[Secret, ...]:
    """What the solution regions of these sources hold and no part outside of them shows; prose without its '# '.

    Notes for instructors, the last cell, are neither: no notebook shows them.
    """
    regions, texts = [], []
    for name, source in sources.items():
        text = re.split(rf"^# {TEACHING}$", source, flags=re.MULTILINE)[0]
        texts.append(_haystack(re.sub("^# ", "", SOLUTION.sub("", text), flags=re.MULTILINE)))
        for index, match in enumerate(SOLUTION.finditer(text)):
            first = text.count("\n", 0, match.start("solution")) + 1
            regions.append((name, index, list(enumerate(match["solution"].splitlines(), first))))
    visible = "\n".join(texts)
    nodes = (node for source in sources.values() for node in ast.walk(ast.parse(source)))
    names = {*keyword.kwlist, *dir(builtins)}.union(*(imports_of(node) for node in nodes if isinstance(node, IMPORTS)))
    secrets: dict[str, Secret] = {}
    for name, index, region in regions:
        whole = squeeze("\n".join(text for _, text in region))
        number, text = next(((number, line.strip()) for number, line in region if squeeze(line)), (0, ""))
        if len(whole) >= REGION and whole not in visible:
            secrets.setdefault(whole, Secret(whole, name, number, text, index))
        for number, text in region:
            line = squeeze(text)
            if len(line) >= LINE and line not in visible:
                secrets.setdefault(line, Secret(line, name, number, text.strip(), index, not _words(text) - names))
    return tuple(secrets.values())


def _words(line: str) -> set[str]:
    """The names that a line of code reads: neither what it binds, nor attributes, keywords of a call and strings."""
    code = re.sub(r"""("[^"]*"|'[^']*')|(?:^|(?<=\s))#.*""", "", line)
    return set(re.findall(r"(?<![\w.])[^\W\d]\w*(?!\s*=(?!=))(?!\w)", code))


def squeeze(text: str) -> str:
    """Text as it is compared: without comments, space and line breaks, escapes of strings undone."""
    plain = text.replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'")
    # The pattern begins with "#", so that text without any is passed over at once.
    return "".join(re.sub(r"#(?<!\S#).*", "", plain).split())


@lru_cache(maxsize=4096)  # a release looks several times through the same files
def _secrets_in(course: Course, text: str) -> tuple[Secret, ...]:
    """The secrets that a text holds."""
    haystack = _haystack(text)
    return tuple(secret for secret in all_secrets(course) if secret.needle in haystack)


def _haystack(text: str) -> str:
    """Text in which secrets are looked for: squeezed, and once more with what comments hold."""
    return squeeze(text) + "\n" + squeeze(text.replace("#", ""))


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
        with contextlib.suppress(ValueError, RecursionError):
            yield name, "\n".join(_strings(json.loads(text)))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        whole = all(isinstance(item, str) for item in value)  # a cell's lines belong together
        yield from ["".join(value)] if whole else (text for item in value for text in _strings(item))
    elif isinstance(value, dict):
        yield from (text for item in value.values() for text in _strings(item))

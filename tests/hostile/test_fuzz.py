"""Whatever a stranger's bytes are, each parser of them raises what it declares and nothing else, in bounds, and reads the next learner's as before.

In the suite a few inputs of each kind; `make fuzz SECONDS=600` goes on for so long, from other numbers each day. An input follows from
its number alone: FUZZ_FROM=NUMBER tries it again.
"""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import json
import lzma
import os
import random
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator

import psutil
import pytest

from grader.grading.collecting.sources import Member, Sources
from grader.sandbox.reader import CPU_S, MEMORY_BYTES, Reader
from grader.util.errors import InputError
from grader.worker import protocol
from tests import toy_course as toy
from tests.hostile.test_bombs import AROUND, BLOCKS, around, nested, told
from tests.worker.test_wire import good, packed, read_all

SECONDS = float(os.environ.get("FUZZ_SECONDS", 0))
FROM = int(os.environ.get("FUZZ_FROM", 0))
AGAIN = 20  # inputs, after which another learner's work is read
ODD_BYTES = (
    b"\0",
    b"\xff",
    b"\x80",
    b"\r\n",
    b"[",
    b"{",
    b'"',
    b"\\ud800",
    b"\xef\xbb\xbf",
    b"9" * 400,
    b"1e999",
    b"-1",
    b"NaN",
    b"\x7f\xff\xff\xff",
    b"\xff" * 8,
)
ODD_VALUES = (
    None,
    True,
    -1,
    1e308,
    10**400,
    "",
    "\0",
    "\ud800",
    "x" * 5_000,
    [],
    {},
    [[]] * 50,
    {"cells": []},
    "exercise",
    "code",
)
ODD_CODE = (
    "\f",
    "\t",
    "\0",
    "\\\n",
    "'''",
    "# coding: utf-7\n",
    "%%time\n",
    "!ls {x}\n",
    "f'{x!r:{y}}'",
    "lambda: (yield)",
    "global x\n",
    "ﬁ = 1\n",
    "\u2028",
    "*",
    ":=",
    "@",
)

pytestmark = [pytest.mark.any_user, pytest.mark.timeout(SECONDS * 2 + 120)]


def numbers(count: int) -> Iterator[int]:
    """The numbers of the inputs to try: so many, or those for which there is time."""
    end = time.monotonic() + SECONDS
    yield from itertools.takewhile(
        lambda number: number < FROM + count or time.monotonic() < end, itertools.count(FROM)
    )


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes with a few of them changed, left out, repeated or put elsewhere."""
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(data) + 1)
        to = min(at + chance.choice((1, 2, 4, 12, 100, 600)), len(data))
        part = data[at:to]
        middle = chance.choice(
            (
                b"",
                part * chance.choice((2, 3, 40)),
                chance.choice(ODD_BYTES),
                part + chance.choice(ODD_BYTES),
                part[::-1],
                bytes(byte ^ 1 << chance.randrange(8) for byte in part),
                chance.randbytes(len(part)),
            )
        )
        data = data[:at] + middle + data[to:]
    return data[: chance.randrange(len(data) + 1)] if chance.random() < 0.1 else data


def altered(tree: object, chance: random.Random) -> object:
    """A notebook of which one value, or a few, are something else."""
    if chance.random() < 0.15:
        return chance.choice(ODD_VALUES)
    if isinstance(tree, dict) and tree:
        key = chance.choice(list(tree))
        return (
            {**tree, key: altered(tree[key], chance)}
            if chance.random() < 0.9
            else {name: tree[name] for name in tree if name != key}
        )
    if isinstance(tree, list) and tree:
        at = chance.randrange(len(tree))
        return [*tree[:at], altered(tree[at], chance), *tree[at + chance.randrange(2) :]]
    return chance.choice(ODD_VALUES)


def rewritten(text: str, chance: random.Random) -> str:
    """Code with parts that are odd, deep or elsewhere."""
    deep = (
        nested(chance.choice(list(BLOCKS.values())), 5),
        around(chance.choice(list(AROUND.values())), chance.choice((3, 60, 150))),
    )
    for _ in range(chance.randrange(1, 6)):
        at, to = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        text = text[:at] + chance.choice((*ODD_CODE, *deep, text[at:to] * 2, "")) + text[chance.choice((at, to)) :]
    return text


def notebook_bytes(chance: random.Random) -> bytes:
    solved = toy.solved()
    if chance.random() < 0.5:
        return mutated(json.dumps(solved).encode(), chance)
    return json.dumps(altered(solved, chance)).encode()


def notebook_code(chance: random.Random) -> bytes:
    name = chance.choice(toy.EXERCISES)
    made = toy.solved(**{name: rewritten(toy.RIGHT[name], chance)})
    made["cells"].insert(
        3, toy.code(rewritten("import sys\nfor x in range(3):\n    y = [x for x in sys.argv if x]\n", chance))
    )
    return json.dumps(made).encode()


@pytest.fixture
def lost(monkeypatch) -> list[str]:
    """Why a process that read gave no answer, each time."""
    why: list[str] = []
    monkeypatch.setattr(Reader, "_reason", lambda self, lost: why.append(lost) or lost)
    return why


@pytest.mark.parametrize("make", [notebook_bytes, notebook_code])
def test_a_notebook_is_read_or_told(monkeypatch, tmp_path, lost, make: Callable[[random.Random], bytes]):
    toy.install(monkeypatch)
    fine = toy.write(tmp_path / "fine 01_toy.ipynb", toy.solved())
    with Reader() as reader:
        before = told(reader, fine)
        for number in numbers(80):
            path = toy.write(tmp_path / "01_toy.ipynb", make(random.Random(f"{make.__name__} {number}")))
            told(reader, path)
            assert set(lost) <= {"deep"}, f"{number}: {lost}"
            process = psutil.Process(reader._process._pid)
            assert sum(process.cpu_times()[:2]) < CPU_S / 2 and process.memory_info().rss < MEMORY_BYTES / 2, number
            if number % AGAIN == 0:
                assert told(reader, fine) == before, number
        assert told(reader, fine) == before


def tarred(form: int) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as archive:
        for name, data in (("w/a.ipynb", b"{}"), ("w/" + "b" * 120 + "é.ipynb", b"x" * 700)):
            about = tarfile.TarInfo(name)
            about.size, about.mtime = len(data), 1_790_000_000.5
            archive.addfile(about, io.BytesIO(data))
    return made.getvalue()


def zipped(method: int) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in (("w/a.ipynb", "{}"), ("w/é.ipynb", "x" * 700)):
            archive.writestr(zipfile.ZipInfo(name, (2026, 10, 1, 9, 0, 0)), data, method)
    return made.getvalue()


TARS = [tarred(form) for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)]
ARCHIVES = [*TARS, *map(zipped, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))]
ARCHIVES += [pack(TARS[0]) for pack in (gzip.compress, bz2.compress, lzma.compress)]


def archive_bytes(chance: random.Random) -> bytes:
    if chance.random() < 0.3:
        return chance.choice((gzip.compress, bz2.compress, lzma.compress))(mutated(chance.choice(TARS), chance))
    return mutated(chance.choice(ARCHIVES), chance)


def unpacked(sources: Sources, data: bytes) -> dict[str, bytes | None]:
    """What an archive holds; None for a file that cannot be read."""
    held: dict[str, bytes | None] = {}
    sources.begin()
    try:
        members = sources.inner(Member(("w.zip",), len(data), 0, lambda: data)).members
    except InputError:
        return held
    for member in members:
        try:
            held[member.name] = member.data()
        except OSError:
            held[member.name] = None
    return held


def test_an_archive_is_unpacked_or_told(lost):
    with Sources() as sources:
        before = [unpacked(sources, data) for data in ARCHIVES]
        assert all(len(held) == 2 and None not in held.values() for held in before)
        for number in numbers(150):
            unpacked(sources, archive_bytes(random.Random(f"archive {number}")))
            assert lost == [], f"{number}: {lost}"
            if number % AGAIN == 0:
                assert (
                    unpacked(sources, ARCHIVES[number // AGAIN % len(ARCHIVES)])
                    == before[number // AGAIN % len(ARCHIVES)]
                ), number


def test_an_observation_is_decoded_or_refused():
    data = packed({"observation": good(), "list": [1, (2.5, "x")]})
    for number in numbers(1_000):
        changed = mutated(data, random.Random(f"observation {number}"))
        started = time.process_time()
        try:
            protocol.observation_from_message(read_all(changed).get("observation"))
        except (protocol.WireError, EOFError):
            pass
        assert time.process_time() - started < 1.0, number

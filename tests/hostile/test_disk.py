"""Attacks on the disk: however fast a submission writes, the disk keeps its room and the others their points."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from grader.sandbox import usage
from grader.sandbox.sandbox import Sandbox
from tests import small_class
from tests.hostile.attack import earns, verdicts

WRITE = "    with open(f'flood{i}', 'wb') as file:\n        for _ in range(60): file.write(bytes(1 << 20))"
FLOODS = {  # each of them asks for 10 GB, and goes on where something is refused
    "allocated": "    with open(f'flood{i}', 'wb') as file: os.posix_fallocate(file.fileno(), 0, 60 << 20)",
    "written": WRITE,
    "written by eight threads": "    if i > 20: return\n    threads = [threading.Thread(target=flood_one, args=(10 * i + n,)) for n in range(8)]\n"
    "    for one in threads: one.start()\n    for one in threads: one.join()",
    "copied": "    if i == 0: flood_one('')\n    with open('flood', 'rb') as a, open(f'flood{i}', 'wb') as b: os.sendfile(b.fileno(), a.fileno(), 0, 60 << 20)",
    "without a name": "    held.append(tempfile.TemporaryFile()); held[-1].write(bytes(60 << 20))",
    "mapped": "    with open(f'flood{i}', 'w+b') as file:\n        file.truncate(60 << 20); held.append(mmap.mmap(file.fileno(), 0)); held[-1][::4096] = bytes(60 << 8)",
}

SLACK = 4  # a disk writes on until somebody looks
ANY_USER = [way for way in FLOODS if way not in ("written", "mapped")]


def flood(name: str) -> str:
    """A cell that defines flood(), which tries to fill the disk in this way."""
    return (
        f"import mmap, os, tempfile, threading\nheld = []\ndef flood_one(i):\n{WRITE}\ndef attempt(i):\n{FLOODS[name]}\n"
        "def flood():\n    for i in range(170):\n        try: attempt(i)\n        except OSError: pass\n"
    )


class Fullest(threading.Thread):
    """How many bytes a folder held at most, looked at again and again while it is entered."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.most_bytes, self.over = folder, 0, threading.Event()

    def __enter__(self) -> Fullest:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.join()

    def run(self) -> None:
        while not self.over.wait(0.005):
            self.most_bytes = max(self.most_bytes, sum(self._sizes()))

    def _sizes(self):
        for top, _, names in os.walk(self.folder):
            for name in names:
                try:
                    yield 512 * os.lstat(os.path.join(top, name)).st_blocks
                except OSError:  # gone meanwhile
                    continue


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(timeout_s=20) as made:
        assert made.verify() == "full"
        yield made


# What a worker's folder holds is looked at as its owner, whoever that is; two ways are tried as root and as another.
@pytest.mark.parametrize(
    "way", ["written", "mapped", *(pytest.param(way, marks=pytest.mark.any_user) for way in ANY_USER)]
)
def test_a_flood_of_ten_gigabytes_is_stopped_near_the_promised_size(monkeypatch, tmp_path, sandbox, way):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with Fullest(scratch) as fullest:
        found = verdicts(monkeypatch, tmp_path, sandbox, flood(way) + "def double(x):\n    flood()\n    return 2 * x")
    earns(found, "passed" if way == "allocated" else "error")  # to allocate without writing is refused each time
    assert way == "allocated" or "filled the notebook's folder" in found["double"].headline
    assert fullest.most_bytes <= SLACK * usage.MAX_DISK_BYTES


def test_nothing_is_allocated_without_being_written(monkeypatch, tmp_path, sandbox):
    """What is looked at by the clock is used up no faster than the disk writes."""
    text = "import os\ndef double(x): os.posix_fallocate(os.open('a', os.O_CREAT | os.O_RDWR), 0, 1 << 20)"
    found = verdicts(monkeypatch, tmp_path, sandbox, text)
    earns(found, "error")
    assert "PermissionError" in found["double"].headline


@pytest.mark.any_user  # the same sandbox as above
@pytest.mark.parametrize("way", ["allocated", "written by eight threads"])
def test_one_who_floods_the_disk_costs_the_other_nine_nothing(tmp_path, way):
    """A class as it is run: the disk is never fuller by more than one worker may have, nor does anything stay."""
    names = [f"learner{number}" for number in range(9)]
    eve = f"{flood(way)}flood()\n{small_class.RIGHT}"
    folder = small_class.hand_in(tmp_path / "class", eve=eve, **dict.fromkeys(names, small_class.RIGHT))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with Fullest(scratch) as fullest:
        done = small_class.run(folder, tmp_path / "out", scratch, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    found = small_class.scores(tmp_path / "out")
    assert {name: found[name] for name in names} == dict.fromkeys(names, (2, "passed"))
    assert found["eve"] in ((2, "passed"), (0, "error"), (0, "timeout"))
    assert fullest.most_bytes <= SLACK * usage.MAX_DISK_BYTES and small_class.left_behind(scratch) == []

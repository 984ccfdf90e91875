"""Attacks by what goes on after the answer: a worker ends with its submission, and until then it is looked at by the clock."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from grader.course.course import open_course
from grader.grading import batch, class_folder, grade
from grader.grading.journal import from_line
from grader.sandbox import usage
from grader.sandbox.sandbox import Sandbox
from tests import toy_course as toy
from tests.conftest import children
from tests.hostile.attack import earns, files, verdicts

LATER = "import os, threading, time\ndef later():\n{}\nthreading.Thread(target=later, daemon=True).start()\ndef double(x): return 2 * x"
GO_ON = {
    "writes": "    for i in range(10**6):\n        with open(f'flood{i}', 'wb') as f: f.write(bytes(10**6))\n        time.sleep(0.01)",
    "computes": "    while True: pass",
    "sleeps": "    time.sleep(60)",
    "catches all": "    while True:\n        try: time.sleep(60)\n        except BaseException: pass",
}


def by_grade(folder: Path) -> list[str]:
    report = grade.grade_submission(grade.Settings(open_course()), folder, sandbox=by_grade.sandbox)
    return [verdict.status for verdict in report.verdicts]


def by_class(folder: Path) -> list[str]:
    """As `grader class` and Dask's workers do it, in the sandbox of this thread, which stays warm for the next submission."""
    found, _ = class_folder.entries(folder.parent)
    line, _ = batch.grade_packed(class_folder.pack(found[0]), batch.Settings(open_course(), timeout_s=3.0))
    return [verdict.status for verdict in from_line(line).report.verdicts]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Both, kept warm as between two submissions. Yields: the folder for their files."""
    place, before = tmp_path_factory.mktemp("warm"), children()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(place))
        with Sandbox(timeout_s=3.0) as by_grade.sandbox:
            yield place
            batch.close_sandboxes()
    assert not set(children()) - set(before)


@pytest.fixture
def warm(both, monkeypatch):
    toy.install(monkeypatch)
    return both


def workers() -> list[psutil.Process]:
    """Of the processes that this one started, those that another of them forked."""
    started = children()
    return [one for one in started if one.ppid() in {other.pid for other in started}]


@pytest.mark.parametrize("way", [by_grade, by_class], ids=lambda way: way.__name__)
@pytest.mark.parametrize("what", GO_ON)
def test_nothing_goes_on_after_its_submission(tmp_path, warm, way, what):
    folder = tmp_path / "class" / "eve"
    folder.mkdir(parents=True)
    toy.write(folder / "01_toy.ipynb", toy.solved(double=LATER.format(GO_ON[what])))
    assert way(folder) == ["passed"] * 3
    end = time.monotonic() + 60
    while workers() and time.monotonic() < end:
        time.sleep(0.01)
    assert workers() == []
    assert not [name for name in files(warm) if "flood" in name]


USES = {  # more than sandbox/usage.py allows in the tests below; what is held stays
    "files": "for i in range(300): open(str(i), 'w').write('x')",
    "bytes": "open('big', 'wb').write(bytes(30 << 20))",
    "removed files": "import tempfile; held.append(tempfile.TemporaryFile()); held[-1].write(bytes(30 << 20)); held[-1].flush()",
    "threads": "threading.stack_size(1 << 16); [threading.Thread(target=time.sleep, args=(60,), daemon=True).start() for _ in range(40)]",
}
# A frame that begins as it should and never ends: one byte at a time keeps whoever waits for it busy.
DRIP = """
    import stat, struct
    channel = [n for n in range(3, 60) if os.path.exists(f'/proc/self/fd/{n}') and stat.S_ISSOCK(os.fstat(n).st_mode)][0]
    os.write(channel, struct.pack('>4s16sIQ', b'atn2', bytes(16), 10**6, 0))
    while True: os.write(channel, b' '); time.sleep(0.01)
"""


@pytest.fixture
def narrow(monkeypatch):
    """Limits that an attack reaches fast on a busy machine, too; the kernel's own limit on files would be the first."""
    monkeypatch.setattr(usage, "MAX_FILES", 200)
    monkeypatch.setattr(usage, "MAX_DISK_BYTES", 20 << 20)
    monkeypatch.setattr(usage, "MAX_THREADS", 30)


@pytest.fixture(scope="module")
def patient():
    before = children()
    with Sandbox(timeout_s=30) as made:  # with room for the address space of many threads
        yield made
    assert not set(children()) - set(before)


@pytest.mark.parametrize("what", USES)
def test_bytes_that_drip_postpone_no_limit(monkeypatch, tmp_path, patient, narrow, what):
    text = f"import os, threading, time\nheld = []\ndef double(x):\n    {USES[what]}{DRIP}"
    found = verdicts(monkeypatch, tmp_path, patient, text)
    earns(found, "error")
    said = "more than 30 threads" if what == "threads" else "filled the notebook's folder"
    assert said in found["double"].headline and found["double"].seconds < 20


@pytest.mark.parametrize("what", USES)
def test_what_is_used_between_two_questions_is_ended_and_told(monkeypatch, tmp_path, patient, narrow, what):
    """Nothing is asked meanwhile. Whoever is asked next has done nothing, and keeps the points."""
    late = f"    time.sleep(0.3)\n    {USES[what]}\n    time.sleep(60)"
    started = "import os, threading, time\nheld = []\ndef later():\n" + late + "\n"
    started += "def double(x):\n    if len(held) == 0: held.append(threading.Thread(target=later, daemon=True)); held[0].start()\n    return 2 * x"
    judge = grade._verdict

    def slow(exercise, candidate, *more):
        verdict = judge(exercise, candidate, *more)
        if exercise.name == "double":
            at_first, until = workers(), time.monotonic() + 20
            while not psutil.wait_procs(at_first, 0.05)[0] and time.monotonic() < until:
                pass  # until one of them is ended; the spare worker beside it stays
        return verdict

    monkeypatch.setattr(grade, "_verdict", slow)
    toy.install(monkeypatch)
    path = toy.write(tmp_path / "01_toy.ipynb", toy.solved(double=started))
    (lesson,) = grade.grade_submission(grade.Settings(open_course()), path, sandbox=patient).lessons
    assert [verdict.status for verdict in lesson.verdicts] == ["passed"] * 3
    said = "ran more than 30 threads at once" if what == "threads" else "filled the notebook's folder"
    assert any("kept running while no exercise was tried" in note and said in note for note in lesson.notes), (
        lesson.notes
    )


def test_five_hundred_threads_are_too_many_for_root_too(monkeypatch, tmp_path, patient):
    """An ordinary user's kernel refuses them; root's does not, and they are counted."""
    text = (
        "import threading, time\nthreading.stack_size(1 << 16)\ndef double(x):\n"
        "    for _ in range(500 - threading.active_count()): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "    time.sleep(0.3)  # longer than what is over before anybody looks\n    return 2 * x"
    )
    found = verdicts(monkeypatch, tmp_path, patient, text)
    earns(found, "error")
    assert ("more than 128 threads at once" if os.geteuid() == 0 else "can't start new thread") in found[
        "double"
    ].headline

"""Attacks on the promise that time, memory, files and output end: the batch goes on, the neighbours keep their points."""

from __future__ import annotations

import pytest

from tests.hostile.attack import RETURN_X, earns, verdicts

ENDLESS = {
    "endless loop": ("def double(x):\n    while True: pass", "timeout"),
    "endless loop that catches all": (
        "def double(x):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass",
        "timeout",
    ),
    "endless loop in NumPy": (
        "def double(x):\n    a = np.ones((200, 200))\n    while True: a = np.tanh(a @ a)",
        "timeout",
    ),
    "endless loop in C": ("def double(x): return 9 ** 9 ** 9 ** 9", "timeout"),
    "endless loop in a regular expression": (
        "import re\ndef double(x): return re.match('(a+)+b', 'a' * 60)",
        "timeout",
    ),
    "endless loop in del": (
        "class D:\n    def __del__(self):\n        while True: pass\ndef double(x):\n    D(); return 2 * x",
        "timeout",
    ),
    "endless loop in a cell": ("while True: pass" + RETURN_X, "timeout"),
    "endless sleep": ("import time\ndef double(x): time.sleep(10**6)", "timeout"),
    "endless generator": ("def double(x): return sum(iter(int, 1))", "timeout"),
    "endless shape": (
        "class A(np.ndarray):\n    @property\n    def size(self):\n        while True: pass\ndef double(x): return x.view(A)",
        None,
    ),
}
ATTACKS = {
    "endless input": ("import sys\ndef double(x): return sys.stdin.read() or input()", "error"),
    "memory by lists": ("def double(x): return [0] * 10**9", None),
    "memory by a string": ("def double(x): return 'x' * 10**10", None),
    "memory by NumPy": ("def double(x): return np.ones(10**9)", None),
    "memory by an array of zeros": ("def double(x): return np.broadcast_to(np.zeros(1), (10**6, 10**6))", "failed"),
    "memory by mmap": ("import mmap\ndef double(x):\n    m = mmap.mmap(-1, 10**10); m[:] = b'x' * 10**10", None),
    "memory by shared memory": (
        "from multiprocessing import shared_memory as s\ndef double(x):\n    m = s.SharedMemory(create=True, size=10**9)\n    m.buf[:] = bytes(10**9)",
        None,
    ),
    "memory by /dev/shm": (
        "def double(x):\n    with open('/dev/shm/attention-attack', 'wb') as f:\n        while True: f.write(bytes(10**6))",
        "error",
    ),
    "memory by memfd": (
        "import os\ndef double(x):\n    fd = os.memfd_create('x')\n    while True: os.write(fd, bytes(10**6))",
        "error",
    ),
    "disk": ("def double(x):\n    with open('big', 'wb') as f:\n        while True: f.write(bytes(10**6))", "error"),
    "disk by many large files": (
        "def double(x):\n    for i in range(20):\n        with open(f'big{i}', 'wb') as f: f.write(bytes(50 << 20))\n    return 2 * x",
        None,
    ),
    "disk by files without a name": (
        "import tempfile\nheld = []\ndef double(x):\n    for i in range(20): held.append(tempfile.TemporaryFile()); held[-1].write(bytes(50 << 20))\n    return 2 * x",
        None,
    ),
    "disk by many small files": (
        "def double(x):\n    for i in range(25_000): open(str(i), 'w').close()\n    return 2 * x",
        None,
    ),
    "disk in a cell": (
        "for i in range(20):\n    with open(f'big{i}', 'wb') as f: f.write(bytes(50 << 20))\ndef double(x): return 2 * x",
        None,
    ),
    "open files": ("held = []\ndef double(x):\n    while True: held.append(open('f', 'w'))", "error"),
    "deep folders": (
        "import os\ndef double(x):\n    for _ in range(300): os.mkdir('d'); os.chdir('d')\n    return x",
        "failed",
    ),
    "output by print": ("def double(x):\n    for _ in range(100): print('x' * 10**6)\n    return 2 * x", "passed"),
    "output by streams that are closed": (
        "import sys\ndef double(x):\n    sys.stdout.buffer.write(b'x' * 10**7); sys.stderr.close(); sys.stdout.close()\n    return 2 * x",
        "passed",
    ),
    "output by descriptors": (
        "import os\ndef double(x):\n    for n in (1, 2): os.write(n, b'x' * 10**7)\n    return 2 * x",
        "passed",
    ),
    "output by warnings": (
        "import warnings\ndef double(x):\n    for i in range(10**4): warnings.warn(str(i) * 100)\n    return 2 * x",
        "passed",
    ),
    "output by an exception": ("def double(x): raise ValueError('x' * 10**7)", "error"),
    "a reply of many items": ("def double(x): return [1] * 10**6", "failed"),
    "a reply of many numbers": ("def double(x): return np.zeros(5_000_000)", "failed"),
    "a reply nested deeply": ("def double(x):\n    a = []\n    for _ in range(10**4): a = [a]\n    return a", "failed"),
    "a reply that holds itself": ("def double(x):\n    a = []; a.append(a); return a", "failed"),
}
# As both, test_disk.py fills the disk and test_sessions.py counts small files; how much is printed is counted in the pipe.
ANY_USER = {name for name in ATTACKS if name.startswith(("disk by", "disk in", "output by"))}


@pytest.mark.any_user  # the clock; test_processes.py ends as both what ignores every signal and what stops itself
@pytest.mark.parametrize("promise", ENDLESS)
def test_what_never_ends_costs_that_exercise(monkeypatch, tmp_path, shared, promise):
    monkeypatch.setattr(shared, "timeout_s", 0.75)
    text, status = ENDLESS[promise]
    _costs_that_exercise(verdicts(monkeypatch, tmp_path, shared, text), status)


@pytest.mark.parametrize(
    "promise", [pytest.param(name, marks=pytest.mark.any_user) if name in ANY_USER else name for name in ATTACKS]
)
def test_what_one_exercise_uses_costs_that_exercise(monkeypatch, tmp_path, shared, promise):
    monkeypatch.setattr(shared, "timeout_s", 30.0)  # another limit is what ends these, on a busy machine, too
    text, status = ATTACKS[promise]
    _costs_that_exercise(verdicts(monkeypatch, tmp_path, shared, text), status)


@pytest.mark.any_user  # the clock
def test_who_uses_up_the_time_of_a_submission_is_told_so_and_nobody_else(monkeypatch, tmp_path, shared):
    monkeypatch.setattr(shared, "timeout_s", 0.75)
    monkeypatch.setattr("grader.sandbox.sandbox.MORE_EXERCISES", -2)  # of three exercises: the time of one
    found = verdicts(monkeypatch, tmp_path, shared, "def double(x):\n    while True: pass")
    assert [one.status for one in found.values()] == ["timeout"] * 3
    others = [one.headline for name, one in found.items() if name != "double"]
    assert all("was not tried, because what ran before it used up the 0.75 s" in said for said in others), others
    earns(verdicts(monkeypatch, tmp_path, shared, "def double(x): return 2 * x"), "passed")


def _costs_that_exercise(found, status):
    earns(found, status)
    assert sum(map(len, (found["double"].headline, *found["double"].details))) < 20_000

"""Attacks as real submissions: each earns what its honest part earns, and nothing stays behind.

Each attacks one promise, named by its key. The cell defines `double`; `row_sums` and `the_answer` are
solved honestly, after it, and must keep their four points. HONEST attacks also return right arrays.
"""

from __future__ import annotations

import pytest

from grader.course.course import open_course
from grader.grading import grade
from grader.sandbox.sandbox import Sandbox
from tests import toy_course as toy
from tests.conftest import children

pytestmark = (
    pytest.mark.any_user
)  # what a value can feign; test_processes.py and test_secrets.py start and read as both
RETURN_X = "\ndef double(x): return x"
ATTACKS = {
    "patched allclose": ("np.allclose = np.array_equal = lambda *a, **k: True" + RETURN_X, "failed"),
    "printed verdict": ('def double(x):\n    print(\'{"status": "passed"}\')\n    return x', "failed"),
    "exit with success": ("import os\ndef double(x): os._exit(0)", "error"),
    "SystemExit": ("def double(x): raise SystemExit(0)", "error"),
    "equal to everything": (
        "class Same:\n    def __eq__(self, other): return True\n    __hash__ = None\n    def __array__(self, *a): return np.zeros((2, 3))\n"
        "def double(x): return Same()",
        "failed",
    ),
    "array function": (
        "class Sly(np.ndarray):\n    def __array_function__(self, *a): return True\n    def __array_ufunc__(self, *a, **k): return True\n"
        "    def __eq__(self, other): return True\n    def __array__(self, *a, **k): raise SystemExit\n"
        "def double(x): return x.view(Sly)",
        "failed",
    ),
    "number that lies": ("class N(float):\n    def __eq__(self, o): return True\ndef double(x): return N(2)", "failed"),
    "raising in del": (
        "class D:\n    def __del__(self): raise ValueError\ndef double(x):\n    D(); return x",
        "failed",
    ),
    "raising in str": (
        "class E(Exception):\n    def __str__(self): raise SystemExit\n    __repr__ = __str__\ndef double(x): raise E()",
        "error",
    ),
    "endless str": (
        "class E(Exception):\n    def __str__(self):\n        while True: pass\ndef double(x): raise E()",
        "timeout",
    ),
    "changed inputs": ("def double(x):\n    x *= 2\n    return x", "failed"),
    "remembered result": ("seen = {}\ndef double(x):\n    return seen.setdefault(x.shape, 2 * x)", "failed"),
    "changed result later": (
        "held = np.zeros((4, 3))\ndef double(x):\n    held[:] = 0; return held[:x.shape[0], :x.shape[1]]",
        "failed",
    ),
    "a daemon": (
        "import os, time\ndef double(x):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0: time.sleep(100)\n"
        "        os._exit(0)\n    return x",
        None,
    ),
    "a thread that goes on": (
        "import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin).start()" + RETURN_X,
        "failed",
    ),
    "references in memory": (
        "import gc\ndef double(x):\n    for o in gc.get_objects():\n        if getattr(o, '__name__', '') in ('references', 'reference'): return o\n    return x",
        "failed",
    ),
    "frames": (
        "import sys\ndef double(x):\n    frame = sys._getframe()\n    while frame:\n        for value in list(frame.f_locals.values()):\n"
        "            if isinstance(value, dict) and 'expected' in value: return value['expected']\n        frame = frame.f_back\n    return x",
        "failed",
    ),
    "import the course": (
        "def double(x):\n    from grader.course import course, references\n    return references.reference(course.open_course().exercise('double'))(x)",
        None,
    ),
    "import without the hook": (
        "import sys\ndef double(x):\n    sys.meta_path[:] = sys.meta_path[1:]; sys.modules.pop('grader')\n"
        f"    from grader.course import course, references\n    toy = course.open_course({str(toy.FOLDER)!r})\n    return references.reference(toy.exercise('double'))(x)",
        None,
    ),
    "warnings and errors": (
        "import sys, warnings\nwarnings.warn('x'); print('x', file=sys.stderr)\ndef double(x):\n    warnings.warn('y'); return 2 * x",
        "passed",
    ),
    "closed streams": ("import sys\nsys.stdout = sys.stderr = None\ndef double(x): return 2 * x", "passed"),
    "errors raised by NumPy": ("np.seterr(all='raise')\ndef double(x): return 2 * x", "passed"),
    "changed directory": ("import os, tempfile\nos.chdir('/')\ndef double(x): return 2 * x", "passed"),
    "recursion limit": ("import sys\nsys.setrecursionlimit(10**6)\ndef double(x): return double(x)", None),
    "huge integer": ("def double(x): return 10 ** 100_000", "failed"),
    "deep list": ("def double(x):\n    a = []\n    for _ in range(10**5): a = [a]\n    return a", "failed"),
    "endless list": (
        "class L(list):\n    def __len__(self): return 2\n    def __iter__(self):\n        while True: yield 1\ndef double(x): return L()",
        "timeout",
    ),
    "names of types": ("def double(x):\n    return type('<script>\\x1b[31m' + 'x' * 100_000, (), {})()", "failed"),
}


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(timeout_s=2.0, memory_bytes=300 << 20) as made:
        yield made
        left = [process for process in children() if "warm" not in process.cmdline()]
        assert len(left) <= 1  # the last notebook's worker
    assert not children()


@pytest.mark.parametrize("promise", ATTACKS)
def test_an_attack_earns_its_honest_part(monkeypatch, tmp_path, sandbox, promise):
    toy.install(monkeypatch)
    text, status = ATTACKS[promise]
    if status == "timeout":
        monkeypatch.setattr(sandbox, "timeout_s", 0.75)
    path = toy.write(tmp_path / "01_toy.ipynb", toy.solved(double=text))
    verdicts = grade.grade_submission(grade.Settings(open_course()), path, sandbox=sandbox).lessons[0].verdicts
    seen = {verdict.exercise: verdict.status for verdict in verdicts}
    assert seen["double"] == status if status else seen["double"] not in ("passed", "could_not_grade"), verdicts[0]
    assert (seen["row_sums"], seen["the_answer"]) == ("passed", "passed"), verdicts
    assert sum(len(text) for text in (verdicts[0].headline, *verdicts[0].details)) < 20_000


def test_breaking_one_s_own_process_raises_no_score(monkeypatch, tmp_path, sandbox):
    """What breaks Python itself for the whole notebook costs the notebook, as it would in a kernel."""
    toy.install(monkeypatch)
    text = "import builtins\nbuiltins.abs = builtins.max = builtins.float = lambda *a, **k: 0" + RETURN_X
    path = toy.write(tmp_path / "01_toy.ipynb", toy.solved(double=text))
    verdicts = grade.grade_submission(grade.Settings(open_course()), path, sandbox=sandbox).lessons[0].verdicts
    assert verdicts[0].status == "failed" and "could_not_grade" not in {verdict.status for verdict in verdicts}

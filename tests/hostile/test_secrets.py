"""Attacks on the promise that a submission reads no answer, no test, no other submission and nothing of the grader's."""

from __future__ import annotations

import json

import pytest

from grader.course.course import open_course
from grader.grading import grade
from tests import toy_course as toy
from tests.conftest import ROOT
from tests.hostile.attack import RETURN_X, earns, verdicts
from tests.mixing_course import COURSE

SOLUTION, LESSON = (
    str(course.source_path(lesson)) for course, lesson in ((COURSE, "01_mixing"), (open_course(toy.FOLDER), toy.NAME))
)
SPECIFICATION = str(toy.FOLDER / "solutions" / toy.NAME / "exercises" / "double.py")
CTYPES = "import ctypes, os\n"
ATTACKS = {
    "solutions on disk": f"def double(x): return open({SOLUTION!r}).read()",
    "solutions found by walking": f"import os\ndef double(x): return os.listdir({str(ROOT)!r})",
    "the course's own source": f"exec('OFFSET = 0\\n' + open({LESSON!r}).read().split('# %%')[5].partition('\\n')[2])",
    "the course's specification": "import importlib.util as u\n"
    f"def double(x):\n    s = u.spec_from_file_location('t', {SPECIFICATION!r}); s.loader.get_data(s.origin)\n    return 2 * x",
    "the course that the environment names": "import os, pathlib\ndef double(x):\n"
    "    assert list(pathlib.Path(os.environ['ATTENTION_COURSE']).iterdir())\n    return 2 * x",
    "the specification by path": f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nsys.modules.pop('grader', 0); sys.meta_path[:] = sys.meta_path[1:]\n"
    "def double(x):\n    from grader.course import references\n    return references.reference('double')(x)",
    "memory of the parent": "import os\ndef double(x): return open(f'/proc/{os.getppid()}/mem', 'rb').read(1)",
    "maps of the parent": "import os\ndef double(x): return open(f'/proc/{os.getppid()}/maps').read()",
    "arguments of the parent": "import os\ndef double(x): return open(f'/proc/{os.getppid()}/cmdline').read()",
    "process_vm_readv": CTYPES
    + "def double(x):\n    assert ctypes.CDLL(None).process_vm_readv(os.getppid(), 0, 0, 0, 0, 0) == 0\n    return x",
    "garbage collector": "import gc\ndef double(x):\n    for o in gc.get_objects():\n"
    "        if isinstance(o, dict) and ('expected' in o or 'REFERENCES' in o): return o.get('expected', x)\n    return x",
    "frames": "import sys\ndef double(x):\n    f = sys._getframe()\n    while f:\n        for v in f.f_locals.values():\n"
    "            if hasattr(v, 'expected'): return v.expected\n        f = f.f_back\n    return x",
    "the case itself": "import sys\ndef double(x):\n    f = sys._getframe(1)\n    while f:\n        run = f.f_locals.get('run') or f.f_locals.get('case')\n"
    "        for name in ('expected', 'answer', 'result', 'reference'):\n            if hasattr(run, name): return getattr(run, name)\n        f = f.f_back\n    return x",
    "environment": "import os\ndef double(x): return {'double': 2 * x}[os.environ['GRADER_ANSWER']]",
    "accounts": "def double(x): return open('/etc/passwd').read()",
    "a symbolic link out": "import os\ndef double(x):\n    os.symlink('/etc/passwd', 'link'); return open('link').read()",
    "a hard link out": "import os\ndef double(x):\n    os.link('/etc/passwd', 'link'); return open('link').read()",
    "dot dot": "def double(x): return open('../' * 20 + 'etc/passwd').read()",
    "other temporary folders": "import os\ndef double(x): return os.listdir('..')",
    "a pickle": "import pickle\nclass P:\n    def __reduce__(self): return (eval, ('2 * x',))\ndef double(x): return P()",
    "pickled bytes": "import pickle\ndef double(x): return pickle.dumps(2 * x)",
    "an object array": "def double(x): return np.array([2 * x, None], dtype=object)",
    "forged on the pipe": "import os, sys\ndef double(x):\n    w, v = sys.modules['grader.worker.protocol'], sys.modules['grader.worker.values']\n"
    "    seen = w.to_message(v.Observation({'result': v.describe(2 * x)}))\n"
    "    for n in range(3, 60):\n        try: os.write(n, w.frame(w.body({'observation': seen})))\n        except OSError: pass\n    return x",
    "half a message on the pipe": "import os\ndef double(x):\n    for n in range(3, 60):\n        try: os.write(n, b'atn1\\x00')\n        except OSError: pass\n    return x",
    "a message of 2**63 bytes": "import os\ndef double(x):\n    for n in range(3, 60):\n        try: os.write(n, b'atn1' + b'\\xff' * 12)\n        except OSError: pass\n    return x",
}


@pytest.mark.parametrize("promise", ATTACKS)
def test_nothing_of_worth_is_read(monkeypatch, tmp_path, shared, promise):
    earns(verdicts(monkeypatch, tmp_path, shared, ATTACKS[promise]), None)


def test_patching_the_worker_raises_no_score(monkeypatch, tmp_path, shared):
    """What breaks the process that answers costs the notebook that did it."""
    text = "import sys\nsys.modules['grader.worker.observe'].describe = lambda value, depth=0: True" + RETURN_X
    found = verdicts(monkeypatch, tmp_path, shared, text)
    assert not found["double"].passed and "could_not_grade" not in {verdict.status for verdict in found.values()}


def test_another_submission_and_the_journal_cannot_be_read_or_deleted(monkeypatch, tmp_path, shared):
    """Both lie beside the attacker's own notebook, which cannot be deleted either."""
    toy.install(monkeypatch)
    honest = toy.write(tmp_path / "honest.ipynb", toy.solved())
    journal = toy.write(tmp_path / "journal.jsonl", '{"score": 6}\n')
    here = tmp_path / "01_toy.ipynb"
    text = (
        f"import os\ngot = []\nfor path in {[str(honest), str(journal), str(here)]!r}:\n"
        "    for use in (lambda: open(path).read(), lambda: open(path, 'w'), lambda: os.remove(path), lambda: os.chmod(path, 0)):\n"
        "        try: got.append(use())\n        except PermissionError: pass\n"
        "def double(x): return 2 * x if got else x"
    )
    toy.write(here, toy.solved(double=text))
    before = {path: (path.read_bytes(), path.stat().st_size) for path in (honest, journal, here)}
    found = grade.grade_submission(grade.Settings(open_course()), here, sandbox=shared).lessons[0].verdicts
    assert [verdict.status for verdict in found] == ["failed", "passed", "passed"]
    assert {path: (path.read_bytes(), path.stat().st_size) for path in before} == before


def test_neighbours_have_the_score_that_they_have_alone(monkeypatch, tmp_path, shared):
    toy.install(monkeypatch)
    honest = toy.write(tmp_path / "honest.ipynb", toy.solved(row_sums="def row_sums(x): return x.sum(0)"))
    alone = grade.grade_submission(grade.Settings(open_course()), honest, sandbox=shared)
    for promise in ("forged on the pipe", "the specification by path", "garbage collector"):
        verdicts(monkeypatch, tmp_path, shared, ATTACKS[promise])
        again = grade.grade_submission(grade.Settings(open_course()), honest, sandbox=shared)
        assert json.dumps([vars(v)["headline"] for v in again.lessons[0].verdicts]) == json.dumps(
            [vars(v)["headline"] for v in alone.lessons[0].verdicts]
        )
        assert again.score == alone.score == 3

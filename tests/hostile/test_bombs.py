"""Small notebooks that take all time or memory of whoever reads them: each costs its own learner alone, and is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from grader.course.course import open_course
from grader.grading import grade
from grader.sandbox import reader as reader_module
from grader.sandbox.isolation import SandboxError
from grader.sandbox.reader import MEMORY_BYTES, Reader
from grader.sandbox.sandbox import Sandbox
from grader.submission.ipynb import MAX_BYTES, MAX_CODE, MAX_MARKS
from grader.submission.plan import LocalReader
from grader.submission.submission import read_submission
from tests import small_class, toy_course as toy
from tests.conftest import WHOLE_GRID

UTF16 = json.dumps(toy.solved()).encode("utf-16")
GIVEN = open_course(toy.FOLDER).given_names
RULES = {name: (("attention", "softmax"), ("einsum_products",)) for name in toy.EXERCISES}
DEPTHS = (13, 95, 5_000) if WHOLE_GRID else (95, 5_000)
# Each statement and expression that holds others: what stands before and after what it holds.
BLOCKS = {
    "if": ("if a:", ""),
    "else": ("if a: pass\nelse:", ""),
    "elif": ("if a: pass\nelif b:", ""),
    "for": ("for a in b:", ""),
    "while": ("while a:", ""),
    "for else": ("for a in b: pass\nelse:", ""),
    "try": ("try:", "finally: pass"),
    "finally": ("try: a()\nfinally:", ""),
    "except": ("try: a()\nexcept E as e:", ""),
    "group": ("try: a()\nexcept* E as e:", ""),
    "try else": ("try: a()\nexcept E: pass\nelse:", ""),
    "finally twice": ("try: a()\nexcept E: b()\nelse: c()\nfinally:", ""),
    "with": ("with a as b:", ""),
    "match": ("match a:\n case b:", ""),
    "def": ("def f(a=b):", ""),
    "async def": ("async def f(a: b) -> c:", ""),
    "decorated": ("@a\n@b\ndef f():", ""),
    "class": ("class A(B, k=c):", ""),
    "method": ("class A:\n def f(self):", ""),
    "nonlocal": ("def f():\n a = 1\n def g():\n  nonlocal a\n  a = 2", ""),
    "loop with finally": ("while a:\n try:\n  continue\n finally:", ""),
}
AROUND = {
    "parentheses": ("(", ")"),
    "list": ("[", "]"),
    "set": ("{", "}"),
    "dict": ("{a: ", "}"),
    "tuple": ("(a, ", ")"),
    "call": ("f(", ")"),
    "keyword": ("f(a=", ")"),
    "starred": ("f(*", ")"),
    "doubly starred": ("f(**", ")"),
    "index": ("a[", "]"),
    "slice": ("a[b:", "]"),
    "type": ("type(", ")"),
    "getattr": ("getattr(a, ", ")"),
    "lambda": ("lambda a: ", ""),
    "default": ("lambda a=", ": a"),
    "condition": ("a if b else ", ""),
    "tested": ("(a if ", " else b)"),
    "not": ("not ", ""),
    "minus": ("-", ""),
    "power": ("a ** ", ""),
    "walrus": ("(a := ", ")"),
    "and": ("(a and ", ")"),
    "comparison": ("(a < ", ")"),
    "listed": ("[a for a in ", "]"),
    "listing": ("[", " for a in b]"),
    "conditions": ("[a for a in b if ", "]"),
    "set of": ("{", " for a in b}"),
    "dict of": ("{a: ", " for a in b}"),
    "generated": ("(", " for a in b)"),
    "twice": ("[a for a in b for b in ", "]"),
    "await": ("await ", ""),
    "yield": ("(yield ", ")"),
    "format": ("f'{a!r:{", "}}'"),
    "formatted": ("f'''{", "}'''"),
    "texts": ("'a' + (", ")"),
    "attribute": ("(", ").a"),
    "called": ("(", ")()"),
    "called attribute": ("a.b(", ")"),
    "subscripted": ("(", ")[a]"),
    "product": ("(a @ ", ")"),
    "sum": ("a + ", ""),
    "opened": ("(", ""),
    "opened and wrong": ("f(a b ", ""),
}


def nested(block: tuple[str, str], depth: int) -> str:
    """A statement in itself, as deep as that."""
    lines, ends, indent = [], [], 0
    for _ in range(depth):
        before, after = block
        lines += [" " * indent + line for line in before.split("\n")]
        ends.append(" " * indent + after)
        indent += len(lines[-1]) - len(lines[-1].lstrip()) - indent + 1
    return "\n".join([*lines, " " * indent + "a()", *(end for end in reversed(ends) if end.strip())])


def around(pair: tuple[str, str], depth: int) -> str:
    return "x = " + pair[0] * depth + "a" + pair[1] * depth


def filled(text: str) -> str:
    """The same again and again, as much as is read of a cell and of a notebook."""
    return "\n".join([text] * max(1, min(4_000, (MAX_CODE // 3 - 1) // (len(text) + 1))))


BOMBS = {
    **{f"{name}, {depth} deep": nested(block, depth) for name, block in BLOCKS.items() for depth in (13, 95)},
    **{f"{name}, {depth} deep": around(pair, depth) for name, pair in AROUND.items() for depth in DEPTHS},
    "a long line": "x = " + " + ".join(["a"] * 40_000),
    "many attributes": "x = a" + ".b" * 60_000,
    "many calls": "x = a" + "()" * 60_000,
    "many indices": "x = a" + "[0]" * 60_000,
    "many comparisons": "x = " + " < ".join(["a"] * 40_000),
    "many targets": "x = " * 40_000 + "a",
    "many decorators": "@a\n" * 40_000 + "def f(): pass",
    "many branches": "if a: b\n" + "elif a: b\n" * 15_000,
    "many parameters": f"def f({', '.join(f'a{i}=b' for i in range(15_000))}): return a",
    "many globals": "def f():\n" + "".join(f" global a{i}\n a{i} = b\n" for i in range(6_000)),
    "a huge number": "x = " + "9" * 150_000,
    "a huge power": "x = 9 ** 9 ** 9 ** 9",
    "a huge text": "x = 'a' * 10 ** 10",
    "a huge hexadecimal": "x = 0x" + "f" * 150_000,
    "texts in a row": "x = " + "'a' " * 40_000,
    "a text that does not end": "x = '''" + "a" * 150_000,
    "backslashes": "x = \\\n" * 40_000,
    "tabs and spaces": "".join(f"{' ' * i}if a:\n{' ' * i}\tb\n" for i in range(90)),
    "zeros": "x = 1\0" * 10_000,
    "a name of many letters": "x" * 150_000 + " = 1",
    "letters that are written otherwise": "ﷺ = 1\n" * 10_000,
    "questions": "a?\n" * 40_000,
    "magics": "%" * 150_000,
    "shell": "!a \\\n" * 30_000,
    "many statements in a line": "a = b; " * 20_000,
    "many semicolons": ";" * 100_000,
    "star imports": "from a import *\n" * 8_000,
    "imports": "\n".join(f"import a{i}.b as c{i}" for i in range(6_000)),
    "put into modules": "\n".join(f"sys.modules['a{i}'].f = g{i}" for i in range(4_000)),
    "makers": "x = " + "type(" * 190 + "a, b='c d e', " * 2_000 + ")" * 190,
    "fields": "\n".join(f"class A{i}:\n a = 1\n b: c = 2" for i in range(4_000)),
}


MUCH = (
    "finally, 95 deep",
    "class, 95 deep",
    "type, 95 deep",
    "lambda, 95 deep",
    "sum, 95 deep",
    "called attribute, 95 deep",
)


@pytest.fixture(scope="module")
def one_reader():
    with Reader() as made:
        yield made


@pytest.fixture
def reader(one_reader, tmp_path):
    """A reader that has a process and the whole time: what one test used up is not another's."""
    one_reader.begin()
    one_reader.notebook(toy.write(tmp_path / "empty.ipynb", toy.notebook([])), tmp_path)
    return one_reader


def notebook(*bombs: str):
    """A solved notebook with these cells after the given ones."""
    content = toy.solved()
    content["cells"][4:4] = [toy.code(bomb) for bomb in bombs]
    return content


def told(reader, path: Path) -> str:
    """What a learner hears of a notebook that is read with rules, '' where it is read to its end."""
    submission = read_submission(open_course(), path, reader=reader)
    if submission.message:
        return submission.message
    plan = submission.plan(toy.NAME)
    found = reader.sources(plan.own_texts, RULES, GIVEN)
    return next(
        (one.sentence for one, _ in found.values() if one is not None),
        "".join(plan.absent.values()) if not plan.owners else "",
    )


@pytest.mark.any_user  # what it costs to read a text
@pytest.mark.parametrize("name, much", [*((name, False) for name in BOMBS), *((name, True) for name in MUCH)])
def test_every_bomb_is_read_in_bounds(monkeypatch, tmp_path, reader, name, much):
    """Within the limits, with which it may be given up; those that are known are read to their end in a part of them."""
    toy.install(monkeypatch)
    path = toy.write(tmp_path / "01_toy.ipynb", notebook(filled(BOMBS[name]) if much else BOMBS[name]))
    said = told(reader, path)
    process = psutil.Process(reader._process._pid)  # of this learner alone
    assert sum(process.cpu_times()[:2]) < reader_module.CPU_S and process.memory_info().rss < MEMORY_BYTES / 2
    assert "cannot be read" not in said


JSON_BOMBS: dict[str, Callable[[], bytes]] = {  # made where they are needed: 300 MB
    "objects": lambda: b'{"cells": [' + b"{}," * (MAX_BYTES // 3 - 10) + b"{}]}",
    "lists": lambda: b'{"cells": [' + b"[]," * (MAX_BYTES // 3 - 10) + b"[]]}",
    "as many as are read": lambda: b'{"cells": [' + b"{}," * (MAX_MARKS // 2 - 10) + b"{}]}",
    "keys": lambda: b'{"cells": [], "a": {' + b",".join(b'"%d":0' % i for i in range(MAX_MARKS - 20)) + b"}}",
    "numbers": lambda: b'{"cells": [' + b"1e9," * (MAX_MARKS - 20) + b"1]}",
    "one wide letter": lambda: b'{"cells": [], "a": "' + b"a" * (MAX_BYTES - 100) + '\U0001f600"}'.encode(),
    "escapes": lambda: b'{"cells": [], "a": "' + b"\\u0041" * (MAX_BYTES // 6 - 10) + b'"}',
    "spaces": lambda: b" " * (MAX_BYTES - 20) + b'{"cells": []}',
    "deep": lambda: b"[" * (MAX_MARKS - 10),
    "too large": lambda: b" " * MAX_BYTES + b'{"cells": []}',
}


@pytest.mark.any_user
@pytest.mark.parametrize("name", JSON_BOMBS)
def test_a_file_of_many_values_is_told_or_read_in_bounds(monkeypatch, tmp_path, reader, name):
    toy.install(monkeypatch)
    path = toy.write(tmp_path / "01_toy.ipynb", JSON_BOMBS[name]())
    submission = read_submission(open_course(), path, reader=reader)
    assert sum(psutil.Process(reader._process._pid).cpu_times()[:2]) < 5
    assert all(word not in submission.message for word in ("memory", "takes longer"))
    assert submission.plan(toy.NAME).own_texts == ()


LOST = {  # what is said, by which limit, of what
    "takes longer than": ("WALL_S", 0.05, notebook(*[filled(BOMBS["list, 95 deep"])] * 2)),
    "64 MB of memory": (
        "MEMORY_BYTES",
        64 << 20,
        b'{"cells": [], "a": "' + b"a" * (30 << 20) + '\U0001f600"}'.encode(),
    ),
}


@pytest.mark.any_user  # a clock, and a limit that is set for oneself
@pytest.mark.parametrize("sentence", LOST)
def test_what_passes_a_limit_costs_its_learner_alone(monkeypatch, tmp_path, sentence):
    toy.install(monkeypatch)
    limit, most, bomb = LOST[sentence]
    with Sandbox(timeout_s=3.0) as sandbox:
        if limit == "WALL_S":  # its start takes longer than that
            sandbox.reader.notebook(toy.write(tmp_path / "02_second.ipynb", toy.notebook([])), tmp_path)
        monkeypatch.setattr(reader_module, limit, most)
        for name, content in (("eve", bomb), ("ada", toy.solved())):
            (tmp_path / name).mkdir()
            report = grade.grade_submission(
                grade.Settings(open_course()), toy.write(tmp_path / name / "01_toy.ipynb", content), sandbox=sandbox
            )
            monkeypatch.undo()
            toy.install(monkeypatch)
            if name == "ada":
                assert (report.score, report.message) == (6, "")
                continue
            assert sentence in report.message and "01_toy.ipynb" in report.message
            assert all(
                verdict.status == "missing" and sentence in verdict.headline for verdict in report.lessons[0].verdicts
            )


@pytest.mark.any_user  # a limit that is set for oneself
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_the_system_ends_a_reading_that_goes_on_when_nobody_waits_for_it():
    program = "from grader.submission.reading_process import allow, limits\nlimits.limit_memory(1 << 30)\nallow(0)\nwhile True: pass"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == -signal.SIGXCPU


def test_all_files_of_a_learner_share_their_time(monkeypatch, tmp_path, reader):
    toy.install(monkeypatch)
    monkeypatch.setattr(reader_module, "LEARNER_S", 0.001)  # no machine reads the first of them in that
    (tmp_path / "eve").mkdir()
    for i in range(20):
        toy.write(tmp_path / "eve" / f"01_toy {i}.ipynb", notebook(filled("x = 1")))
    submission = read_submission(open_course(), tmp_path / "eve", reader=reader)
    assert "took too long" in submission.message or "takes longer" in submission.message, submission.message
    monkeypatch.undo()
    toy.install(monkeypatch)
    assert (
        read_submission(open_course(), toy.write(tmp_path / "01_toy.ipynb", toy.solved()), reader=reader).message == ""
    )


def test_a_reader_that_somebody_ends_is_replaced(monkeypatch, tmp_path, reader):
    toy.install(monkeypatch)
    path = toy.write(tmp_path / "01_toy.ipynb", toy.solved())
    submission = read_submission(open_course(), path, reader=reader)
    psutil.Process(reader._process._pid).kill()
    assert submission.message == "" and submission.plan(toy.NAME).own_texts


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")
def test_a_reader_whose_parent_somebody_ends_is_replaced(monkeypatch, tmp_path, reader):
    toy.install(monkeypatch)
    reader._forker.zygote.process.kill()
    reader._forker.zygote.process.wait()
    assert (
        read_submission(open_course(), toy.write(tmp_path / "01_toy.ipynb", toy.solved()), reader=reader).message == ""
    )


@pytest.mark.any_user
def test_nothing_of_a_learner_is_left_for_the_next(monkeypatch, tmp_path):
    """Cells whose trees take a hundred times their text, in lesson after lesson; then a file that needs most of what one learner may take."""
    toy.install(monkeypatch)
    monkeypatch.setattr(reader_module, "MEMORY_BYTES", 180 << 20)
    large = toy.solved()
    large["cells"][0]["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": "\U0001f600" + "a" * (15 << 20)}
    ]
    eve, mal = (notebook(*(f"{name}{i} = 1\n" + "a.b.c.d.e.f\n" * 320 for i in range(60))) for name in ("eve", "mal"))
    with Reader() as made:
        for name, content in (("eve", eve), ("mal", mal), ("ada", json.dumps(large, ensure_ascii=False).encode())):
            (tmp_path / name).mkdir()
            submission = read_submission(
                open_course(), toy.write(tmp_path / name / "01_toy.ipynb", content), reader=made
            )
            assert submission.message == "" and submission.plan(toy.NAME).own_texts, name


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is of Linux's address space")
def test_where_the_machine_lacks_memory_no_learner_is_blamed(monkeypatch, tmp_path, reader):
    """Also of the machine's limits: what was refused while half of a learner's memory was left is not his file's doing."""
    import resource

    toy.install(monkeypatch)
    path = toy.write(tmp_path / "01_toy.ipynb", b'{"cells": [], "a": "' + b"a" * (30 << 20) + b'"}')
    with Reader() as short:
        assert short.notebook(path, tmp_path).cells == ()
        size = psutil.Process(short._process._pid).memory_info().vms
        resource.prlimit(short._forker.zygote.process.pid, resource.RLIMIT_AS, (size, size))
        short.begin()
        with pytest.raises(SandboxError, match="lacks the memory"):
            short.notebook(path, tmp_path)


@pytest.mark.any_user  # what is made of an error
def test_what_the_machine_lacks_is_could_not_grade_and_the_next_is_graded(monkeypatch, tmp_path):
    toy.install(monkeypatch)
    paths = [toy.write(tmp_path / f"01_toy {name}.ipynb", toy.solved()) for name in ("eve", "ada")]
    ask = Reader._ask

    def lacking(self, message):
        if "eve" in message.get("path", ""):
            raise SandboxError("this computer lacks the memory to read the files")
        return ask(self, message)

    monkeypatch.setattr(Reader, "_ask", lacking)
    eve, ada = grade.grade(grade.Settings(open_course()), paths).submissions
    assert {(verdict.status, verdict.details) for lesson in eve.lessons for verdict in lesson.verdicts} == {
        ("could_not_grade", ("SandboxError: this computer lacks the memory to read the files",))
    }
    assert [lesson.name for lesson in eve.lessons] == [toy.NAME] and ada.score == 6


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each learner has a fresh process")
def test_a_process_of_one_s_own_costs_a_learner_a_few_milliseconds(tmp_path, reader):
    path = toy.write(tmp_path / "01_toy.ipynb", toy.notebook([]))

    def reading_s(fresh: bool) -> float:
        started = time.perf_counter()
        if fresh:
            reader.begin()
        reader.notebook(path, tmp_path)
        return time.perf_counter() - started

    fresh, same = (min(reading_s(one) for _ in range(20)) for one in (True, False))
    assert fresh - same < 0.05, "an interpreter of its own takes four times that"


@pytest.mark.any_user  # nobody needs a right to start a process
@pytest.mark.parametrize("forks", [True, False] if reader_module.FORKS else [False])
def test_where_nothing_is_forked_a_learner_has_a_fresh_process(monkeypatch, tmp_path, forks):
    toy.install(monkeypatch)
    monkeypatch.setattr(reader_module, "FORKS", forks)
    with Reader() as made:
        pids = []
        for _ in range(2):
            assert (
                read_submission(open_course(), toy.write(tmp_path / "01_toy.ipynb", toy.solved()), reader=made)
                .plan(toy.NAME)
                .own_texts
            )
            pids.append(made._process._pid)
    assert len(set(pids)) == 2 and not any(map(psutil.pid_exists, pids))


def test_a_reader_reads_what_is_read_here(monkeypatch, tmp_path, reader):
    toy.install(monkeypatch)
    odd = toy.code("# é \U0001f600 \\ '\" \u2028 \x01\ny = 2", id="\ud800")
    for number, content in enumerate((toy.solved(), toy.notebook([odd, *toy.solved()["cells"]]), UTF16)):
        path = toy.write(tmp_path / f"01_toy {number}.ipynb", content)
        there, here = reader.notebook(path, path.parent), LocalReader().notebook(path, path.parent)
        assert there == here
        plans = [read_submission(open_course(), path, reader=each).plan(toy.NAME) for each in (reader, LocalReader())]
        assert plans[0] == plans[1] and plans[0].own_texts
        assert reader.sources(plans[0].own_texts, RULES, GIVEN) == LocalReader().sources(
            plans[0].own_texts, RULES, GIVEN
        )


@pytest.mark.any_user  # test_links.py has a whole class graded by both
def test_in_a_class_the_others_have_their_points(tmp_path, scratch):
    """The attack that took nine gigabytes of the grading process, and one of each other kind."""
    codes = {name: small_class.RIGHT for name in ("ada", "zoe")}
    bombs = {"eve": "finally, 13 deep", "fay": "type, 95 deep", "kim": "a huge power"}
    folder = small_class.hand_in(
        tmp_path / "class", **codes, **{name: f"{BOMBS[bomb]}\n{small_class.RIGHT}" for name, bomb in bombs.items()}
    )
    (folder / "mal").mkdir()
    (folder / "mal" / f"{small_class.LESSON}.ipynb").write_bytes(JSON_BOMBS["objects"]())
    done = small_class.run(folder, tmp_path / "out", scratch)
    assert done.returncode in (0, 1), done.stderr
    found = small_class.scores(tmp_path / "out")
    assert found["ada"] == found["zoe"] == (2, "passed")
    assert found["mal"] == (0, "missing") and all(status != "could_not_grade" for _, status in found.values())
    assert small_class.left_behind(scratch) == []

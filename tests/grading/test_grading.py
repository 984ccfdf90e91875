"""From a learner's file to a report: scores, statuses, and what is said."""

from __future__ import annotations

import importlib
import re
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from grader.course import references
from grader.course.course import open_course
from grader.grading import grade as grading
from grader.judging.judge import blame_callee
from grader.judging.verdict import Verdict
from grader.sandbox import session
from grader.sandbox.reader import Reader
from grader.sandbox.sandbox import Sandbox
from grader.source.requirements import LIBRARIES
from grader.source.slips import Slip
from grader.util.errors import InputError
from tests import toy_course as toy


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(timeout_s=3.0, memory_bytes=300 << 20) as made:
        yield made


@pytest.fixture
def graded(monkeypatch, tmp_path, sandbox):
    """Grades a notebook of the toy course."""
    toy.install(monkeypatch)

    def grade(content, file: str = "01_toy.ipynb", **settings):
        path = toy.write(tmp_path / file, content)
        return grading.grade_submission(grading.Settings(open_course(), **settings), path, sandbox=sandbox)

    return grade


def statuses(report) -> dict[str, str]:
    return {verdict.exercise: verdict.status for lesson in report.lessons for verdict in lesson.verdicts}


def test_a_solved_notebook_has_every_point(graded):
    report = graded(toy.solved())
    assert (report.score, report.max_score, report.message, report.name) == (6, 6, "", "01_toy")
    assert report.lessons[0].points == {"double": 2, "row_sums": 3, "the_answer": 1}


def test_an_untouched_notebook_is_not_started(graded):
    report = graded(toy.pristine())
    assert report.score == 0 and set(statuses(report).values()) == {"not_started"}


def test_mistakes_are_named(graded):
    report = graded(toy.solved(double="def double(x): return x + 2", row_sums="def row_sums(x): return x.sum(axis=0)"))
    assert [verdict.mistakes for verdict in report.lessons[0].verdicts] == [("TY2",), ("TY1",), ()]
    assert report.score == 1


@pytest.mark.parametrize("name", toy.EXERCISES)
def test_sabotage_of_one_cell_lowers_the_score_by_that_exercise(graded, name):
    wrong = {
        "double": "def double(x): return x * 3",
        "row_sums": "def row_sums(x): return x",
        "the_answer": "the_answer = [4, 3]",
    }
    report = graded(toy.solved(**{name: wrong[name]}))
    points = report.lessons[0].points
    assert report.score == 6 - points[name]
    assert [key for key, status in statuses(report).items() if status != "passed"] == [name]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("def double(x: return", "error"),
        ("import no_such_library\ndef double(x): return 2 * x", "error"),
        ("def double(x):\n    raise ValueError('no')", "error"),
        ("import os\ndef double(x): os._exit(0)", "error"),
        ("import os; os._exit(0)\ndef double(x): return 2 * x", "error"),
        ("import sys; sys.exit()\ndef double(x): return 2 * x", "error"),
        ("def double(x):\n    while True: pass", "timeout"),
        ("def double(x): return np.ones(10**11)", "memory"),
        ("def double(x): return None", "failed"),
        ("def double(x): return [2 * float(v) for v in x.ravel()]", "failed"),
        ("def double(x): return input()", "error"),
        ("x = 3", "missing"),
        ("double = 3", "error"),
    ],
)
def test_statuses(graded, sandbox, monkeypatch, text, status):
    if status == "timeout":
        monkeypatch.setattr(sandbox, "timeout_s", 0.75)
    report = graded(toy.solved(double=text))
    assert statuses(report) == {"double": status, "row_sums": "passed", "the_answer": "passed"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[" * 200_000, b"\x00\xff\xfe"])
def test_an_unreadable_notebook_is_missing_everywhere(graded, content):
    report = graded(content)
    assert set(statuses(report).values()) == {"missing"}
    assert (report.score, report.max_score) == (0, 6) and "01_toy.ipynb" in report.message


NEWER = "try:\n    pass\nexcept ValueError, TypeError:\n    pass\n"  # since Python 3.14
ABSENT = next(name for name in LIBRARIES if find_spec(name) is None)


def of_python(version: str, content: dict) -> dict:
    content["metadata"]["language_info"] = {"name": "python", "version": version}
    return content


@pytest.mark.parametrize("version", ["3.14.1", "3.11.2"])
def test_newer_syntax_is_no_zero(graded, version):
    report = graded(of_python(version, toy.solved(double=NEWER + toy.RIGHT["double"])))
    judged = report.lessons[0].verdicts[0]
    status = "passed" if sys.version_info >= (3, 14) else "could_not_grade" if version == "3.14.1" else "error"
    assert statuses(report) == {"double": status, "row_sums": "passed", "the_answer": "passed"}
    if status == "could_not_grade":
        here = ".".join(map(str, sys.version_info[:2]))
        assert (
            judged.headline
            == f"double could not be graded here: cell 5 needs Python 3.14 or newer, and Python {here} is running here."
        )
        assert judged.details == (
            "Install Python 3.14 or newer with the grader, and grade this notebook again with it.",
        )
        assert report.score is None


@pytest.mark.parametrize(
    "texts",
    [
        {"double": f"import {ABSENT}\ndef double(x): return OFFSET + 2 * x"},
        {"double": f"def double(x):\n    import {ABSENT}.linalg as l\n    return OFFSET + 2 * x"},
        {"the_answer": f"import {ABSENT} as lib\nthe_answer = [4, 2]", "double": "def double(x): return lib.f(x)"},
        {
            "the_answer": f"from {ABSENT} import f\nthe_answer = [4, 2]",
            "row_sums": "def row_sums(x): return f(x)",
            "double": "def double(x): return row_sums(x)",
        },
    ],
)
def test_a_library_that_is_not_installed_is_no_zero(graded, texts):
    report = graded(toy.solved(**texts))
    assert statuses(report) == dict.fromkeys(toy.EXERCISES, "passed") | dict.fromkeys(texts, "could_not_grade")
    judged = report.lessons[0].verdicts[0]
    assert "not installed here" in judged.headline and re.match(
        r"Install ([\w-]+) with `python -m pip install \1`, and grade", judged.details[0]
    )


def test_an_answer_that_is_wrong_anyway_is_not_excused_by_a_library(graded):
    text = f"try:\n    import {ABSENT}\nexcept ImportError:\n    pass\ndef double(x): return 3 * x"
    assert statuses(graded(toy.solved(double=text)))["double"] == "failed"
    assert statuses(graded(of_python("3.14.1", toy.solved(double="def double(x: return"))))["double"] == "error"


def test_notes_reach_the_report(graded):
    content = toy.solved()
    content["cells"].append(toy.code("def double(x): return x"))
    (lesson,) = graded(content).lessons
    assert lesson.notes == ("double is defined in cells 5 and 10; the last of them, cell 10, counts.",)
    assert lesson.verdicts[0].mistakes == ("TY4",)


LOUD = "def double(x):\n    print('x' * 10**6)\n    return 2 * x"


@pytest.mark.parametrize(
    ("texts", "noted"),
    [
        ({"double": LOUD}, True),  # every case prints a megabyte
        ({"the_answer": "print('x' * 2 * 10**6)\nthe_answer = [4, 2]"}, True),
        (
            {
                "double": "import sys\ndef double(x):\n    sys.stderr.buffer.write(bytes(2 * 10**6)); sys.stdout.close()\n    return 2 * x"
            },
            True,
        ),
        ({"double": "def double(x):\n    print(x, flush=True)\n    return 2 * x"}, False),
    ],
)
def test_much_output_costs_nothing_and_is_noted(graded, texts, noted):
    report = graded(toy.solved(**texts))
    assert (
        report.score == 6
        and [note[:28] for note in report.lessons[0].notes] == ["It printed more than 1 MB wh"] * noted
    )
    assert graded(toy.pristine()).lessons[0].notes == () and graded(b"{").lessons[0].notes == ()


def test_lessons_asked_for_and_absent_count(graded):
    report = graded(toy.solved(), lessons=["01", "02"])
    assert (report.score, report.max_score) == (6, 10) and statuses(report)["nobody"] == "missing"


def test_what_the_grader_cannot_do_is_not_the_learner_s_zero(graded, monkeypatch):
    real = references.reference

    def broken(exercise):
        if exercise.name == "double":
            raise RuntimeError("no reference")
        return real(exercise)

    from grader.judging import judge

    judge.baseline_of.cache_clear()
    monkeypatch.setattr(references, "reference", broken)
    report = graded(toy.solved())
    judge.baseline_of.cache_clear()
    assert statuses(report) == {"double": "could_not_grade", "row_sums": "passed", "the_answer": "passed"}
    assert report.lessons[0].verdicts[0].details == ("RuntimeError: no reference",)


def test_a_lesson_that_cannot_be_loaded_could_not_be_graded(graded, monkeypatch):
    monkeypatch.setattr(open_course(), "lesson", lambda name: 1 / 0)
    report = graded(toy.solved())
    assert set(statuses(report).values()) == {"could_not_grade"}


def test_a_torch_that_cannot_be_imported_ends_no_grading(graded, monkeypatch):
    """It is imported ahead of its use; here nothing uses it."""
    real, asked = importlib.import_module, []

    def broken(name, *package):
        if name == "torch":
            asked.append(name)
            raise OSError("libtorch_cpu.so: cannot open shared object file")
        return real(name, *package)

    monkeypatch.setattr(open_course(), "needs_torch", lambda lesson: True)
    monkeypatch.setattr(importlib, "import_module", broken)
    assert set(statuses(graded(toy.solved())).values()) == {"passed"} and asked


def test_several_submissions_become_one_report(monkeypatch, tmp_path):
    toy.install(monkeypatch)
    for name, content in (("ada", toy.solved()), ("bob", b"{"), ("eve", toy.pristine())):
        (tmp_path / name).mkdir()
        toy.write(tmp_path / name / "01_toy.ipynb", content)
    real, reads = Reader.notebook, []
    monkeypatch.setattr(Reader, "notebook", lambda *about: reads.append(about[1].parent.name) or real(*about))
    report = grading.grade(grading.Settings(open_course(), seed=3, timeout_s=3), sorted(tmp_path.iterdir()))
    assert reads == ["ada", "bob", "eve"], "each is read once"
    assert [(submission.name, submission.score) for submission in report.submissions] == [
        ("ada", 6),
        ("bob", 0),
        ("eve", 0),
    ]
    assert report.seed == 3 and report.isolation in ("full", "process")


@pytest.mark.parametrize("lessons, wrong", [(None, "none there"), (("77",), "There is no lesson '77'")])
def test_nothing_is_graded_where_a_path_or_a_lesson_is_wrong(monkeypatch, tmp_path, lessons, wrong):
    toy.install(monkeypatch)
    paths = [tmp_path / "01_toy.ipynb", *[tmp_path / "none there.ipynb"] * (lessons is None)]
    toy.write(paths[0], toy.solved())
    begun = []
    with pytest.raises(InputError, match=wrong):
        grading.grade(grading.Settings(open_course(), lessons), paths, on_start=begun.append)
    assert not begun


def test_text_of_a_verdict_is_limited():
    verdict = Verdict("double", "error", "x" * 30_000, details=("y" * 30_000, "z"), next_step="look")
    cut = grading.limit_text(verdict)
    assert len(cut.headline) <= 20_000 and cut.headline.endswith("…")
    assert sum(map(len, (cut.headline, cut.experiment, cut.next_step, *cut.details))) <= 20_000
    assert grading.limit_text(Verdict("double", "error", "short")).headline == "short"


def test_an_exercise_that_ends_in_one_which_fails_says_so(graded):
    report = graded(
        toy.solved(
            double="def double(x):\n    return x.twice()",
            row_sums="def row_sums(x):\n    return double(x).sum(axis=1) / 2",
        )
    )
    double, row_sums, _ = report.lessons[0].verdicts
    assert double.status == row_sums.status == "error"
    assert row_sums.details[0] == "row_sums calls `double`, whose check fails: start there."
    assert not any("whose check fails" in detail for detail in double.details)


def test_slow_cells_of_ones_own_cost_no_answer(graded, monkeypatch):
    monkeypatch.setattr(session, "CELLS_TIMES", 0)  # no time is left from the first of them on
    content = toy.solved()
    content["cells"].insert(0, toy.code("x = 1"))
    report = graded(content)
    assert report.score == 6 and report.lessons[0].notes == (session.SLOW_NOTE.format("cell 1"),)


def test_an_answer_that_a_later_cell_deletes_is_missing(graded):
    content = toy.solved()
    content["cells"].append(toy.code("del double"))
    verdict = graded(content).lessons[0].verdicts[0]
    assert verdict.status == "error" and "one of them deletes it" in verdict.headline


def test_a_statement_that_stands_outside_a_function_is_shown(graded):
    verdict = graded(toy.solved(double="def double(x):\n    return 2 * x\nreturn 3")).lessons[0].verdicts[0]
    assert "'return' outside function" in verdict.headline and verdict.line.text == "return 3"


def test_an_exercise_that_needs_one_whose_cell_failed_says_so(graded):
    report = graded(
        toy.solved(
            double="from absent_module import double", row_sums="def row_sums(x):\n    return double(x).sum(axis=1) / 2"
        )
    )
    double, row_sums, _ = report.lessons[0].verdicts
    assert double.headline.endswith("No module named 'absent_module'")
    assert row_sums.details[0] == "row_sums calls `double`, whose check fails: start there."


def test_an_exercise_with_a_mistake_of_its_own_is_not_led_to_another(graded):
    report = graded(
        toy.solved(
            double="def double(x): return x + 2",
            row_sums="def row_sums(x): return x.sum(axis=1) + 0 * double(x).sum() + 1",
        )
    )
    double, row_sums, _ = report.lessons[0].verdicts
    assert double.status == row_sums.status == "failed"
    assert not any("whose check fails" in detail for detail in row_sums.details)


@pytest.mark.parametrize("ids, told", [(("MX7",), True), (("MX16+MX7", "MX9"), True), (("MX16",), False), ((), False)])
def test_a_mistake_that_both_show_is_the_callees(ids, told):
    caller = Verdict("mix", "failed", "wrong", mistakes=ids)
    others = {"shares": Verdict("shares", "failed", "wrong", mistakes=("MX7",)), caller.exercise: caller}
    sources = SimpleNamespace(slips=lambda name: (Slip("calls", name="absent"), Slip("calls", name="shares")))
    said = blame_callee(caller, sources, others).details
    assert said == (("mix calls `shares`, whose check fails: start there.",) if told else ())


def test_what_is_merely_true_of_both_results_is_no_cause_of_both():
    caller = Verdict("mix", "failed", "wrong", mistakes=("RS19",))
    sources = SimpleNamespace(slips=lambda name: (Slip("calls", name="shares"),))
    callee = Verdict("shares", "failed", "wrong", mistakes=("RS18+RS19",))
    assert blame_callee(caller, sources, {"shares": callee}) is caller

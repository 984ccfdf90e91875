"""A course of one's own: found wherever it lies, judged as the package's lessons are, hidden from what is judged; bad ones are a sentence."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from grader import check, hint, replay, reset, solution
from grader.authoring.audit import audit, render
from grader.authoring.build import build
from grader.cli import main
from grader.course import index, references
from grader.course.course import COURSE_ENV, Course, open_course
from grader.grading import grade
from grader.judging.candidate import LiveObject
from grader.judging.judge import judge
from grader.notebook.kernel_course import kernel_course
from grader.sandbox.reader import Reader
from grader.sandbox.sandbox import Sandbox
from grader.util.errors import AuthorError
from tests import own_course
from tests.conftest import ROOT
from tests.small_class import LEVEL

NAME = own_course.NAME


@pytest.fixture(autouse=True)
def read_anew(monkeypatch):
    """Bytecode of a file that a test changes within the same second, to the same length, would be taken for the new one's."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.fixture
def mine(tmp_path) -> Path:
    """The course of CONTRIBUTING; its learner's notebook is there as `grader build` would leave it."""
    folder = own_course.written(tmp_path)
    course = Course(folder)
    (folder / "notebooks").mkdir()
    course.notebook_path(NAME).write_text(json.dumps(course.handout_notebook(NAME)), encoding="utf-8")
    return folder


def test_the_probe_that_contributing_shows_tells_an_answer_that_keeps_something(mine):
    own_course.with_probe(mine)
    course = Course(mine)
    exercise = course.exercise("center_rows")
    assert judge(exercise, LiveObject(references.reference(exercise))).passed
    calls = []

    def counting(x):
        calls.append(x)
        return x - x.mean(axis=1, keepdims=True) + len(calls) * 1e-9

    verdict = judge(exercise, LiveObject(counting))
    assert (verdict.status, verdict.headline) == ("failed", "Expected: two calls give the same. This is not so.")


def test_the_figure_that_contributing_shows_is_drawn_where_the_cell_knows_what_it_calls(mine, monkeypatch):
    monkeypatch.setenv(COURSE_ENV, str(mine))
    own_course.with_payoff(mine)
    build(Course(mine), NAME)
    solved = json.loads(Course(mine).solution_path(NAME).read_text(encoding="utf-8"))
    (payoff,) = (cell for cell in solved["cells"] if "before_and_after" in "".join(cell["source"]))
    assert "its rows without their means" in json.dumps(payoff["outputs"])
    path = Course(mine).source_path(NAME)
    path.write_text(path.read_text(encoding="utf-8").replace(", passed", ""), encoding="utf-8")
    # A learner sees a sentence in place of this error.
    with pytest.raises(AuthorError, match="this cell raises NameError: name 'passed' is not defined"):
        build(Course(mine), NAME)


@pytest.mark.parametrize(
    "old, new, sentence",
    [
        ("probes.twice", "probes.two", "case 't0': there is no `two` in solutions/90_center/probes.py."),
        ('parts["again"]', 'parts["agian"]', "exercises/center_rows.py:10: KeyError: 'agian'."),
        ("forbids=('tampering',), ", "", "it has a probe and forbids nothing"),
    ],
)
def test_a_slip_beside_a_probe_is_told_where_it_is(mine, old, new, sentence):
    own_course.with_probe(mine)
    assert audit(Course(mine), [NAME]).passed
    _spec(mine, old, new)
    assert sentence in render(audit(Course(mine), [NAME]))


def test_it_is_a_course_as_the_installed_one_is(mine):
    course, installed = Course(mine), open_course()
    assert course.lessons() == (NAME,) and course.exercise_names() == ("center_rows",)
    assert course.lesson(NAME).title == "Centered rows" and course.title == "mine"
    assert course.given_names == (("np", "numpy"),) and not course.needs_torch(NAME)
    assert references.explain(course, "CR1").wrong == "return x - x.mean(axis=0, keepdims=True)"
    assert "glossary" not in course.nav_links(NAME).lower(), "this course has none"
    assert installed.title == "mixing" and "center_rows" not in installed.exercise_names()
    with pytest.raises(KeyError):
        course.lesson_of("shares")


@pytest.mark.parametrize("call", [check, hint, solution, replay, reset])
def test_a_call_without_an_exercise_shows_how_where_the_course_has_one_exercise(mine, monkeypatch, call):
    monkeypatch.setenv(COURSE_ENV, str(mine))
    kernel_course.cache_clear()
    assert f"as in {call.__name__}(center_rows)" in str(call())


def test_a_mistake_that_replaces_nothing_is_told(mine):
    _spec(mine, '"CR1": ', '"CR0": patch(), "CR1": ')
    assert "a mistake's patch does not apply: it has no text to replace" in render(audit(Course(mine), [NAME]))


def test_a_changed_specification_is_read_anew(mine):
    assert Course(mine).exercise("center_rows").points == 2
    _spec(mine, "points=2", "points=31")
    assert Course(mine).exercise("center_rows").points == 31


def test_it_may_have_figures_probes_and_data(mine, monkeypatch, capsys):
    """As the attention course has: each by the name of its file, in the lesson's folder or in shared/."""
    lesson, shared = mine / "solutions" / NAME, mine / "solutions" / "shared"
    (shared / "data").mkdir(parents=True)
    (shared / "data" / "rows.py").write_text("ROWS = [[1.0, 2.0, 6.0]]\n")
    (lesson / "figures.py").write_text("def bars(x):\n    return len(x)\n")
    (lesson / "probes.py").write_text(
        "from grader.worker.probes import call_function, mark_result\n\n\n"
        "def twice(function, run):\n"
        "    return {'result': mark_result(call_function(function, run, call_function(function, run, *run.args)))}\n"
    )
    _spec(
        mine,
        'yield Case(f"random',
        'yield Case("twice", "twice", (rng.normal(size=(3, 5)),), probe="probes.twice")\n            yield Case(f"random',
    )
    course = Course(mine)
    assert course.figures("center").bars([1, 2]) == 2 and course.module("shared.data.rows").ROWS
    with pytest.raises(AttributeError, match="is not in this installation"):
        course.figures("nothing")
    for code, passes in ((own_course.RIGHT, True), (own_course.WRONG, False)):
        place = own_course.hand_in(mine, mine.parent / "learner", code)
        with Sandbox(timeout_s=5, probes=course.probe_texts()) as sandbox:
            report = grade.grade_submission(grade.Settings(course), place, sandbox=sandbox)
        assert (report.verdicts[0].status == "passed") is passes, report.verdicts[0].headline


# --- what is wrong with a folder is one sentence ----------------------------------------------


def _path(mine: Path) -> Path:
    return mine / "solutions" / NAME / "exercises" / "center_rows.py"


def _spec(mine: Path, old: str, new: str) -> None:
    text = _path(mine).read_text(encoding="utf-8")
    assert old in text
    _path(mine).write_text(text.replace(old, new), encoding="utf-8")


def _copied(mine: Path, name: str) -> None:
    shutil.copytree(mine / "solutions" / NAME, mine / "solutions" / name, ignore=shutil.ignore_patterns("__pycache__"))


def _copied_under_another_exercise(mine: Path, name: str) -> None:
    _copied(mine, name)
    folder = mine / "solutions" / name
    for path in (folder / "lesson.py", folder / "exercises" / "center_rows.py"):
        path.write_text(path.read_text().replace("center_rows", "center_again").replace("columns were", "columns are"))
    (folder / "exercises" / "center_rows.py").rename(folder / "exercises" / "center_again.py")
    path = folder / "exercises" / "center_again.py"
    path.write_text(path.read_text().replace("Each column was centered", "Every column was centered"))


def _with_former_ids(mine, **former):
    lines = (f'{old} = "{now}"' for old, now in former.items())
    (mine / "solutions" / "course.toml").write_text("\n".join(["[former_ids]", *lines]))


BAD = {
    "no folder": (lambda mine: mine.rename(mine.with_name("other")), "there is no such folder."),
    "no lesson": (
        lambda mine: (mine / "solutions" / NAME / "lesson.py").unlink(),
        "it contains no lesson; solutions/90_center has no lesson.py; "
        "a lesson needs solutions/NN_name/ with lesson.py, lesson.toml and exercises/, as in 90_mine.",
    ),
    "a syntax error": (
        lambda mine: _spec(mine, "def cases(rng):", "def cases(rng)"),
        "solutions/90_center/exercises/center_rows.py:10: this is not Python: ",
    ),
    "a name that is none": (
        lambda mine: _spec(mine, '"What is the mean of one row?"', "nothing_there"),
        "solutions/90_center/exercises/center_rows.py:23: NameError: name 'nothing_there' is not defined.",
    ),
    "an import that fails": (
        lambda mine: _spec(mine, "import numpy as np", "import numpyy as np"),
        "solutions/90_center/exercises/center_rows.py:1: ModuleNotFoundError: No module named 'numpyy'.",
    ),
    "no file of an exercise": (
        lambda mine: _path(mine).unlink(),
        "solutions/90_center/lesson.py: the lesson has an exercise center_rows, and no exercises/center_rows.py specifies it.",
    ),
    "no specification in it": (
        lambda mine: _path(mine).write_text("center_rows = None\n"),
        "solutions/90_center/exercises/center_rows.py: `center_rows` is a class under @exercise(…)",
    ),
    "no lesson.toml": (
        lambda mine: (mine / "solutions" / NAME / "lesson.toml").unlink(),
        "solutions/90_center/lesson.toml: FileNotFoundError",
    ),
    "a source that is no Python": (
        lambda mine: (mine / "solutions" / NAME / "lesson.py").write_text('# %% role="given"\nimport\n'),
        "solutions/90_center/lesson.py:2: this cell is not Python: ",
    ),
    "an exercise twice": (
        lambda mine: _copied(mine, "91_again"),
        "solutions/91_again/exercises/center_rows.py: solutions/90_center/exercises/center_rows.py is an exercise center_rows, too;",
    ),
    "a mistake's id twice": (
        lambda mine: _copied_under_another_exercise(mine, "91_again"),
        "solutions/91_again/exercises/center_again.py: CR1 is a mistake of solutions/90_center/exercises/center_rows.py, too;",
    ),
    "a former id that is a mistake's": (
        lambda mine: _with_former_ids(mine, CR1="CR2"),
        "solutions/course.toml: CR1 is a mistake of solutions/90_center/exercises/center_rows.py, and so no former id.",
    ),
    "a number twice": (
        lambda mine: _copied(mine, "90_again"),
        "90_again and 90_center have the same number; each lesson needs its own.",
    ),
}


def test_a_mistake_is_known_by_its_former_id(mine, capsys):
    _with_former_ids(mine, CR8="CR1")
    assert main(["explain", "cr8", "--course", str(mine)]) == 0
    assert capsys.readouterr().out.startswith("CR1: ")
    assert main(["explain", "CR7", "--course", str(mine)]) == 2


def test_a_former_id_of_a_lesson_that_is_not_here_is_unknown(mine):
    _with_former_ids(mine, CR8="CR9")  # as in a hand-out
    assert main(["explain", "cr8", "--course", str(mine)]) == 2


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_folder_is_one_sentence_and_exit_code_2(mine, tmp_path, capsys, kind):
    spoil, sentence = BAD[kind]
    spoil(mine)
    for command in (["audit"], ["grade", str(tmp_path)]):
        assert main([*command, "--course", str(mine)]) == 2
        told = capsys.readouterr().err
        assert sentence in told and told.count("\n") == 1 and "Traceback" not in told, told


@pytest.mark.parametrize(
    "command",
    [
        "audit",
        "build",
        "build --check",
        "class X --out O",
        "explain CR1",
        "grade X",
        "grade X --lessons 90",
        "release R",
    ],
)
def test_a_mistake_s_id_twice_is_told_by_every_command_that_names_mistakes(mine, capsys, monkeypatch, command):
    """Also beside an index."""
    course, empty = Course(mine), mine.parent / "empty"
    index.write(course)
    _copied_under_another_exercise(mine, "91_again")
    known = json.loads(course.index_path.read_text())
    known["lessons"]["91_again"] = {"exercises": ["center_again"], "torch": False}
    course.index_path.write_text(json.dumps(known))
    empty.mkdir()
    monkeypatch.chdir(empty)
    (empty / "X").mkdir()
    assert main([*command.split(), "--course", str(mine)]) == 2
    assert BAD["a mistake's id twice"][1] in capsys.readouterr().err
    assert [path.name for path in empty.iterdir()] == ["X"] and not any((empty / "X").iterdir())


def test_a_folder_that_the_environment_names_from_here_is_found_by_what_runs_elsewhere(
    mine, tmp_path, monkeypatch, capsys
):
    """A lesson is built in a folder of its kernel's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(COURSE_ENV, "mine")
    assert main(["build"]) == 0, capsys.readouterr().err
    assert "PASSED: center_rows" in (mine / "solutions" / f"{NAME}.ipynb").read_text(encoding="utf-8")


def test_a_lesson_that_is_half_there_is_none_yet_and_keeps_no_other_back(mine, capsys):
    (mine / "solutions" / "91_next").mkdir()
    assert main(["audit", "--course", str(mine)]) == 0
    assert main(["build", "91", "--course", str(mine)]) == 2
    assert (
        "there is no lesson '91'; there are 90_center. A lesson of your own needs solutions/NN_name/ with lesson.py"
        in capsys.readouterr().err
    )


def test_an_option_without_its_folder_is_a_wrong_call(capsys):
    assert main(["audit", "--course"]) == 2
    assert "expected one argument" in capsys.readouterr().err


def test_a_folder_that_a_submission_could_read_is_refused(mine):
    if sys.platform != "linux":
        pytest.skip("only Linux has the walls that leave libraries open")
    place = Path(np.__file__).parent / f"course-of-a-test-{os.getpid()}"  # what no package brought is hidden
    mine.rename(place)
    try:
        with pytest.raises(Exception, match="is inside Python's libraries, which a submission may read"):
            Course(place)
    finally:
        place.rename(mine)


# --- what is judged never sees it -------------------------------------------------------------


def _attacks(mine: Path) -> dict[str, str]:
    source, spec = str(mine / "solutions" / NAME / "lesson.py"), str(_path(mine))
    cheat = "def center_rows(x):\n    {} = x - x.mean(axis=1, keepdims=True)\n    {}\n    return {}"
    return {
        "the source": cheat.format("y", f"assert open({source!r}).read()", "y"),
        "the source by a path put together": cheat.format(
            "y",
            f"import os; assert open(os.path.join({str(mine)!r}, 'sol' + 'utions', {NAME!r}, 'lesson.py')).read()",
            "y",
        ),
        "the specification": cheat.format("y", f"import runpy; runpy.run_path({spec!r})", "y"),
        "the folder": cheat.format("y", f"import os; os.listdir({str(mine)!r})", "y"),
        "its name in the environment": cheat.format("y", "import os; os.environ['ATTENTION_COURSE']", "y"),
        "its name among the arguments": cheat.format(
            "y", "import os; assert b'mine' in open(f'/proc/{os.getppid()}/cmdline', 'rb').read()", "y"
        ),
        "its modules": cheat.format("y", "import sys; sys.modules['course_0.90_center.exercises.center_rows']", "y"),
    }


def test_a_submission_can_read_nothing_of_the_folder(mine, monkeypatch):
    """Each attack would pass where it found what it looks for; the honest answer beside it passes."""
    monkeypatch.setenv(COURSE_ENV, str(mine))
    with Sandbox(timeout_s=5) as sandbox:
        honest = grade.grade_submission(
            grade.Settings(open_course()),
            own_course.hand_in(mine, mine.parent / "honest", own_course.RIGHT),
            sandbox=sandbox,
        )
        assert sandbox.isolation == "full" and [one.status for one in honest.verdicts] == ["passed"]
        for what, code in _attacks(mine).items():
            found = grade.grade_submission(
                grade.Settings(open_course()), own_course.hand_in(mine, mine.parent / "eve", code), sandbox=sandbox
            )
            assert [one.status for one in found.verdicts][0] in ("error", "forbidden", "failed"), (what, found.verdicts)


def test_what_its_given_cells_import_is_known_to_the_process_that_reads(mine):
    """That process knows no lesson; what a name stands for it is told with the question."""
    source = mine / "solutions" / NAME / "lesson.py"
    source.write_text(source.read_text().replace("import numpy as np\n", "import torch as gentle\n", 1))
    asked = ("def center_rows(x):\n    return gentle.exp(x)",), {"center_rows": (("torch",), ())}
    offences = []
    for course in (Course(mine), open_course()):
        with Reader() as reader:
            offences.append(reader.sources(*asked, course.given_names)["center_rows"][0])
    assert "torch" in offences[0].sentence and offences[1] is None


def test_grading_processes_of_a_class_have_it(mine, tmp_path):
    own_course.hand_in(mine, tmp_path / "class" / "ada", own_course.RIGHT)
    own_course.hand_in(mine, tmp_path / "class" / "eve", own_course.WRONG)
    command = [
        sys.executable,
        "-m",
        "grader",
        "class",
        "class",
        "--out",
        "out",
        "--course",
        "mine",
        "--jobs",
        "1",
        *LEVEL,
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["course"] == "mine" and {one["name"]: one["score"] for one in report["submissions"]} == {
        "ada": 2,
        "eve": 0,
    }
    assert "CR1" in done.stdout


# --- in a notebook, and handed out ------------------------------------------------------------


@pytest.mark.parametrize(
    "place, found", [("notebooks", "PASSED: center_rows"), ("solutions", "PASSED: center_rows"), (".", "")]
)
def test_a_check_in_the_folder_s_notebooks_finds_it(mine, place, found):
    program = "from grader import check; print(check('center_rows', lambda x: x - x.mean(1)[:, None]))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=mine / place,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert (found in done.stdout) if found else ("PASSED" not in done.stdout), done.stdout


# --- a slip of the author's is the author's ---------------------------------------------------

SLIPS = {
    "in a case": ("rng.normal(size=(4, 5))", "rng.norml(size=(4, 5))", "exercises/center_rows.py:13: AttributeError: "),
    "in a patch": ('patch("x - ", "")', 'patch("y - ", "")', "'y - ' occurs 0 times in the solution of center_rows"),
}


@pytest.mark.parametrize("kind", SLIPS)
def test_an_author_s_slip_is_told_with_its_file_and_line(mine, capsys, kind):
    old, new, sentence = SLIPS[kind]
    _spec(mine, old, new)
    assert main(["audit", "--course", str(mine)]) == 1
    told = capsys.readouterr()
    assert sentence in told.out + told.err and "a mistake in the grader itself" not in told.err


def test_a_property_that_fails_is_told_with_its_file_and_line(mine, capsys):
    _spec(
        mine,
        "    mistakes = {",
        '    @holds("a row sums to 0")\n    def sums(case, parts):\n        return parts["nothing"]\n\n    mistakes = {',
    )
    _spec(mine, "import Case, exercise, mistake, patch", "import Case, exercise, holds, mistake, patch")
    assert main(["audit", "--course", str(mine)]) == 1
    told = capsys.readouterr()
    assert "exercises/center_rows.py:17: KeyError: 'nothing'." in told.out + told.err

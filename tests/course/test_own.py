"""A course of one's own: found wherever it lies, judged as the package's lessons are, hidden from what is judged; bad ones are a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from grader.cli import main
from grader.course import own, references, registry
from grader.sandbox.reader import Reader
from grader.sandbox.sandbox import Sandbox
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
    own.use(folder)
    (folder / "notebooks").mkdir()
    registry.notebook_path(NAME).write_text(json.dumps(registry.handed_out(NAME)), encoding="utf-8")
    own.use(None)
    return folder


def test_it_stands_in_the_place_of_the_package_s_lessons_and_goes_again(mine):
    before = dict(registry.CONTRACT), dict(registry.GIVEN), registry.lessons()
    own.use(mine)
    assert registry.lessons() == (NAME,) and registry.exercise_names() == ("center_rows",)
    assert registry.lesson(NAME).title == "Centered rows" and registry.title() == "mine"
    assert registry.GIVEN == {"np": "numpy"} and not registry.needs_torch(NAME)
    assert references.explained("CR1").wrong == "return x - x.mean(axis=0, keepdims=True)"
    assert "glossary" not in registry.way(NAME).lower(), "this course has none"
    own.use(None)
    assert (registry.CONTRACT, registry.GIVEN, registry.lessons()) == before
    with pytest.raises(KeyError):
        registry.lesson_of("center_rows")


def test_a_changed_specification_is_read_anew(mine):
    own.use(mine)
    path = mine / "lessons" / NAME / "center_rows.py"
    path.write_text(path.read_text().replace("points=2", "points=31"))
    own.use(mine)
    assert registry.exercise("center_rows").points == 31


# --- what is wrong with a folder is one sentence ----------------------------------------------


def _spec(mine: Path, old: str, new: str) -> None:
    path = mine / "lessons" / NAME / "center_rows.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def _init(mine: Path, text: str) -> None:
    (mine / "lessons" / NAME / "__init__.py").write_text(text, encoding="utf-8")


def _renamed(mine: Path, name: str) -> None:
    (mine / "lessons" / NAME).rename(mine / "lessons" / name)
    (mine / "solutions" / f"{NAME}.py").rename(mine / "solutions" / f"{name}.py")


def _copied(mine: Path, name: str) -> None:
    (mine / "lessons" / name).mkdir()
    for path in (mine / "lessons" / NAME).glob("*.py"):
        (mine / "lessons" / name / path.name).write_bytes(path.read_bytes())
    (mine / "solutions" / f"{name}.py").write_bytes((mine / "solutions" / f"{NAME}.py").read_bytes())


def _exercise_called(mine: Path, name: str) -> None:
    _spec(mine, "class center_rows", f"class {name}")
    (mine / "lessons" / NAME / "center_rows.py").rename(mine / "lessons" / NAME / f"{name}.py")
    _init(mine, (mine / "lessons" / NAME / "__init__.py").read_text().replace("center_rows", name))


BAD = {
    "no folder": (lambda mine: mine.rename(mine.with_name("other")), "there is no such folder."),
    "no lessons": (
        lambda mine: (mine / "lessons").rename(mine / "specs"),
        "it contains no lesson; 90_center has only the source; "
        "a lesson needs lessons/NN_name/__init__.py and solutions/NN_name.py, as in 90_mine.",
    ),
    "no source": (lambda mine: (mine / "solutions" / f"{NAME}.py").unlink(), "90_center has only the specification;"),
    "a syntax error": (
        lambda mine: _spec(mine, "def cases(rng):", "def cases(rng)"),
        "lessons/90_center/center_rows.py:10: this is not Python: ",
    ),
    "a name that is none": (
        lambda mine: _spec(mine, '"What is the mean of one row?"', "nothing_there"),
        "lessons/90_center/center_rows.py:23: NameError: name 'nothing_there' is not defined.",
    ),
    "an import that fails": (
        lambda mine: _spec(mine, "import numpy as np", "import numpyy as np"),
        "lessons/90_center/center_rows.py:1: ModuleNotFoundError: No module named 'numpyy'.",
    ),
    "no file of an exercise": (
        lambda mine: (mine / "lessons" / NAME / "center_rows.py").unlink(),
        "lessons/90_center/__init__.py:3: ModuleNotFoundError: No module named ",
    ),
    "no lesson made": (
        lambda mine: _init(mine, "lesson = None\n"),
        "lessons/90_center/__init__.py: `lesson` is made by collected(…)",
    ),
    "a source that is no Python": (
        lambda mine: (mine / "solutions" / f"{NAME}.py").write_text('# %% role="given"\nimport\n'),
        "solutions/90_center.py:2: this cell is not Python: ",
    ),
    "a lesson's name of ours": (
        lambda mine: _renamed(mine, "02_softmax"),
        "a lesson of the attention course is called 02_softmax, too;",
    ),
    "an exercise's name of ours": (
        lambda mine: _exercise_called(mine, "causal_mask"),
        "lessons/90_center: lesson 06_masks of the attention course has an exercise causal_mask, too;",
    ),
    "an exercise twice": (
        lambda mine: _copied(mine, "91_again"),
        "lessons/91_again: lessons/90_center has an exercise center_rows, too;",
    ),
    "a mistake's id of ours": (
        lambda mine: _spec(mine, '"CR1"', '"SM1"'),
        "lessons/90_center: SM1 is a mistake of the attention course;",
    ),
    "a number twice": (
        lambda mine: _copied(mine, "90_again"),
        "90_again and 90_center have the same number; each lesson needs its own.",
    ),
    "a file of ours": (
        lambda mine: (mine / "lessons" / "library.py").write_text(""),
        "lessons/library.py has the name of a file of the grader's own;",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_folder_is_one_sentence_and_exit_code_2(mine, tmp_path, capsys, kind):
    spoil, said = BAD[kind]
    spoil(mine)
    for command in (["audit"], ["grade", str(tmp_path)]):
        assert main([*command, "--course", str(mine)]) == 2
        told = capsys.readouterr().err
        assert said in told and told.count("\n") == 1 and "Traceback" not in told, told
        assert registry.own() is None, "the package's lessons are the course again"


def test_a_folder_that_the_environment_names_from_here_is_found_by_what_runs_elsewhere(
    mine, tmp_path, monkeypatch, capsys
):
    """A lesson is built in a folder of its kernel's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(registry.VARIABLE, "mine")
    assert main(["build"]) == 0, capsys.readouterr().err
    assert "PASSED: center_rows" in (mine / "solutions" / f"{NAME}.ipynb").read_text(encoding="utf-8")


def test_a_lesson_that_is_half_there_is_none_yet_and_keeps_no_other_back(mine, capsys):
    (mine / "solutions" / "91_next.py").write_text("# %% [markdown]\n# # Next\n")
    assert main(["audit", "--course", str(mine)]) == 0
    assert main(["build", "91", "--course", str(mine)]) == 2
    assert (
        "there is no lesson '91'; there are 90_center. A lesson of your own needs lessons/NN_name/__init__.py and"
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
            own.use(place)
    finally:
        place.rename(mine)


# --- what is judged never sees it -------------------------------------------------------------


def _attacks(mine: Path) -> dict[str, str]:
    source, spec = str(mine / "solutions" / f"{NAME}.py"), str(mine / "lessons" / NAME / "center_rows.py")
    cheat = "def center_rows(x):\n    {} = x - x.mean(axis=1, keepdims=True)\n    {}\n    return {}"
    return {
        "the source": cheat.format("y", f"assert open({source!r}).read()", "y"),
        "the source by a path put together": cheat.format(
            "y", f"import os; assert open(os.path.join({str(mine)!r}, 'sol' + 'utions', {NAME + '.py'!r})).read()", "y"
        ),
        "the specification": cheat.format("y", f"import runpy; runpy.run_path({spec!r})", "y"),
        "the folder": cheat.format("y", f"import os; os.listdir({str(mine)!r})", "y"),
        "its name in the environment": cheat.format("y", "import os; os.environ['ATTENTION_COURSE']", "y"),
        "its name among the arguments": cheat.format(
            "y", "import os; assert b'mine' in open(f'/proc/{os.getppid()}/cmdline', 'rb').read()", "y"
        ),
        "its modules": cheat.format("y", "import sys; sys.modules['grader.course.lessons.90_center']", "y"),
    }


def test_a_submission_can_read_nothing_of_the_folder(mine, monkeypatch):
    """Each attack would pass where it found what it looks for; the honest answer beside it passes."""
    from grader.grading import grade

    monkeypatch.setenv(registry.VARIABLE, str(mine))
    own.enter()
    with Sandbox(timeout_s=5) as sandbox:
        honest = grade.grade_submission(
            own_course.hand_in(mine, mine.parent / "honest", own_course.RIGHT), sandbox=sandbox
        )
        assert sandbox.isolation == "full" and [one.status for one in honest.verdicts] == ["passed"]
        for what, code in _attacks(mine).items():
            found = grade.grade_submission(own_course.hand_in(mine, mine.parent / "eve", code), sandbox=sandbox)
            assert [one.status for one in found.verdicts][0] in ("error", "forbidden", "failed"), (what, found.verdicts)


def test_what_its_given_cells_import_is_known_to_the_process_that_reads(mine):
    """That process knows no lesson; what a name stands for it is told with the question."""
    source = mine / "solutions" / f"{NAME}.py"
    source.write_text(source.read_text().replace("import numpy as np\n", "import torch as gentle\n", 1))
    asked = ("def center_rows(x):\n    return gentle.exp(x)",), {"center_rows": (("torch",), ())}
    found = []
    for folder in (mine, None):
        own.use(folder)
        with Reader() as reader:
            found.append(reader.sources(*asked)["center_rows"][0])
    assert "torch" in found[0].sentence and found[1] is None


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
    "place, found", [("notebooks", "PASSED: center_rows"), ("solutions", "PASSED: center_rows"), ("lessons", "")]
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

"""From a source to two notebooks; what an author forgot is said by file and line."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from grader.authoring import build, notebook_run, teaching
from grader.authoring.lint import proofread
from grader.cli import author, main
from grader.course import index, stubs
from grader.course.course import open_course
from grader.util import libraries
from grader.util.errors import AuthorError, LintError
from tests import small_lesson as small

nbformat = libraries.import_nbformat()


def learner(text: str = small.SOURCE) -> dict:
    return stubs.learner_notebook(small.cells(text), small.LESSON)


def source_of(notebook: dict, id: str) -> str:
    return "".join(next(cell["source"] for cell in notebook["cells"] if cell["id"] == id))


def test_a_region_becomes_a_stub_and_the_docstring_stays():
    assert source_of(learner(), "exercise-double") == (
        'def double(x):\n    """Twice x. x: (n,)."""\n    raise NotImplementedError("double is not written yet")'
    )


def test_a_region_with_a_text_becomes_that_text():
    text = "# region solution: pair = None  # two numbers\npair = [4, 2]\n# endregion"
    assert stubs.stub_text(text, "pair") == "pair = None  # two numbers"


def test_every_region_of_a_class_becomes_a_stub_at_its_own_depth():
    text = (
        "class Twice:\n    def __init__(self):\n        # region solution\n        self.n = 2\n"
        "        # endregion\n\n    def forward(self, x):\n        # region solution\n"
        "        return self.n * x\n        # endregion"
    )
    stub = stubs.stub_text(text, "Twice")
    assert stub.count('        raise NotImplementedError("Twice is not written yet")') == 2
    assert "self.n" not in stub
    compile(stub, "stub", "exec")


def test_the_task_line_becomes_heading_minutes_points_and_task():
    assert source_of(learner(), "task-double") == (
        "### Exercise: `double`\n\n*●○○ difficulty 1 of 3 · 3 minutes · 1 point* — Double each number.\n\n`x` (n,) → (n,)"
    )


def test_the_learners_notebook_is_valid_and_holds_no_outputs_and_no_answer():
    notebook = learner()
    nbformat.validate(notebook)
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
    assert "total = x + x" not in stubs.encode(notebook)
    assert "region" not in stubs.encode(notebook)
    assert "nbval" not in stubs.encode(notebook)  # an empty stored output would fail where outputs are compared


def test_cells_say_their_role_and_their_exercise():
    about = [cell["metadata"]["grader"] for cell in learner()["cells"]]
    assert [each["role"] for each in about] == [
        "prose",
        "given",
        "demo",
        "prose",
        "exercise",
        "check",
        "payoff",
        "prose",
    ]
    assert {each.get("exercise") for each in about if each["role"] in ("exercise", "check", "payoff")} == {"double"}


def test_ids_survive_an_edit_elsewhere():
    edited = small.SOURCE.replace("# # A small lesson", "# # A small lesson, retold\n\n# %% [markdown]\n# More.")
    before, after = ({cell["id"] for cell in learner(text)["cells"]} for text in (small.SOURCE, edited))
    assert len(before - after) == 1  # the title's own id, which follows its words
    assert len(after - before) == 2


def test_the_version_changes_with_a_cell_and_not_without():
    assert learner()["metadata"] == learner()["metadata"]
    changed = learner(small.SOURCE.replace("arange(3)", "arange(4)"))
    assert changed["metadata"]["grader"]["version"] != learner()["metadata"]["grader"]["version"]


def test_a_solution_keeps_its_code_without_the_markers(monkeypatch, tmp_path):
    small.install(monkeypatch, tmp_path)
    notebook = build.solution_notebook(open_course(), small.NAME)
    text = source_of(notebook, "exercise-double")
    assert "total = x + x" in text
    assert "region" not in text
    assert notebook["cells"][2]["metadata"]["tags"] == ["nbval-check-output"]


REGION = "    # region solution\n    total = x + x\n    return total\n    # endregion\n"
ERROR = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}


@pytest.mark.parametrize(
    "find, put, line, said",
    [
        ("    # endregion\n", "", 21, "never closed"),
        ("    # region solution\n", "", 23, "closes no region"),
        (REGION, "    return x + x\n", 18, "learners would see its solution"),
        ("    total = x + x\n", "    # region solution\n", 22, "begins inside another"),
        ("    # endregion", "    # endregion here", 24, "this line says"),
        ("    total = x + x\n", "    total = x + x  # fmt: skip\n", 22, "is for a formatter"),
        ('# %% role="demo" tags=["nbval-check-output"]', "# %%", 10, "needs a role"),
        ('# %% role="demo" tags=["nbval-check-output"]', '# %% role="dmeo"', 10, "did you mean demo?"),
        ("# @exercise double\n", "# @exercise dobule\n", 13, "did you mean double?"),
        (
            '# %% role="check" exercise="double"',
            '# %% role="check" exercise="dobule"',
            26,
            "not an exercise of this lesson",
        ),
        ('# %% role="check" exercise="double"', '# %% role="check"', 26, "the name of its exercise"),
        ("check(double)", "check(double, 1)", 27, "and nothing else"),
        ("check(double)", "# a note\ncheck(double)", 27, "and nothing else"),
        (
            '# %% role="given"\n',
            f'# %% role="given" tags=["hide-input"]\n# {"a" * 70}\n',
            8,
            "folded cell has 72 letters",
        ),
        ("if passed(double):", "if True:", 30, "begins with 'if passed(double):'"),
        ("print(np.arange(3).sum())", "print(np.arange(3).sum()", 11, "not Python"),
        ('# %% role="check" exercise="double"\ncheck(double)\n', "", 0, "no check cell"),
        ("# @exercise double\n", "# Exercise\n", 0, "no task"),
        ('role="exercise" exercise="double"', 'role="demo"', 0, "no exercise cell"),
    ],
)
def test_a_slip_of_the_author_is_said_with_its_line(find, put, line, said):
    assert find in small.SOURCE
    problems = proofread(small.FILE, small.cells(small.SOURCE.replace(find, put, 1)), small.LESSON)
    told = [problem for problem in problems if said in problem.sentence]
    assert told, list(map(str, problems))
    assert told[0].line == line
    assert str(told[0]).startswith(f"{small.FILE}:{line}: " if line else f"{small.FILE}: ")


def test_a_second_cell_for_an_exercise_is_a_slip():
    again = small.BODY + '\n# %% role="check" exercise="double"\ncheck(double)\n' + small.END
    (problem,) = proofread(small.FILE, small.cells(again), small.LESSON)
    assert "a second check cell" in problem.sentence and problem.line == 33 and "line 26" in problem.sentence


def test_a_right_source_has_no_slips():
    assert proofread(small.FILE, small.cells(), small.LESSON) == []


def executed(notebook: dict) -> dict:
    """The notebook as `grader build` would leave it, without a kernel."""
    for number, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] == "code":
            cell["execution_count"] = number
            cell["outputs"] = [{"output_type": "execute_result", "data": {"text/plain": ["PASSED: double\n"]}}]
    return notebook


def files(monkeypatch, tmp_path) -> None:
    """A course of the small lesson whose notebooks and notes are fresh."""
    small.install(monkeypatch, tmp_path)
    open_course().notebook_path(small.NAME).write_text(
        stubs.encode(open_course().handout_notebook(small.NAME)), encoding="utf-8"
    )
    solved = executed(build.solution_notebook(open_course(), small.NAME, ()))
    open_course().solution_path(small.NAME).write_text(stubs.encode(solved), encoding="utf-8")
    teaching.path(open_course(), small.NAME).parent.mkdir(parents=True)
    teaching.path(open_course(), small.NAME).write_text(teaching.page(open_course(), small.NAME, ()), encoding="utf-8")


def test_fresh_notebooks_are_not_stale(monkeypatch, tmp_path):
    files(monkeypatch, tmp_path)
    assert build.stale(open_course(), small.NAME) == []


def test_missing_files_are_stale(monkeypatch, tmp_path):
    small.install(monkeypatch, tmp_path)
    assert [text.split(":")[0] for text in build.stale(open_course(), small.NAME)] == [
        "notebooks/01_small.ipynb",
        "solutions/01_small.ipynb",
        "docs/teaching/01_small.md",
    ]


def test_an_edited_source_makes_both_stale(monkeypatch, tmp_path):
    files(monkeypatch, tmp_path)
    path = open_course().source_path(small.NAME)
    path.write_text(path.read_text().replace("arange(3)", "arange(4)"))
    small.reopened(tmp_path)
    assert len(build.stale(open_course(), small.NAME)) == 2


def test_an_edited_solution_region_makes_the_solution_stale_alone(monkeypatch, tmp_path):
    files(monkeypatch, tmp_path)
    path = open_course().source_path(small.NAME)
    path.write_text(path.read_text().replace("total = x + x", "total = 2 * x"))
    small.reopened(tmp_path)
    assert [text.split(":")[0] for text in build.stale(open_course(), small.NAME)] == ["solutions/01_small.ipynb"]


@pytest.mark.parametrize(
    "spoil, said",
    [
        (lambda cell: cell.update(execution_count=None), "not run"),
        (lambda cell: cell.update(outputs=[ERROR]), "error"),
        (lambda cell: cell.update(outputs=[]), "a check that does not pass"),
    ],
)
def test_a_solution_without_what_it_showed_is_stale(monkeypatch, tmp_path, spoil, said):
    files(monkeypatch, tmp_path)
    path = open_course().solution_path(small.NAME)
    notebook = json.loads(path.read_text())
    spoil(next(cell for cell in notebook["cells"] if cell["id"] == "check-double"))
    path.write_text(stubs.encode(notebook))
    (problem,) = build.stale(open_course(), small.NAME)
    assert said in problem


def test_a_lesson_whose_own_check_fails_is_not_built(monkeypatch, tmp_path):
    small.install(monkeypatch, tmp_path)
    shown = [(1, [{"output_type": "execute_result", "data": {"text/plain": ["FAILED: double\n"]}}])] * 20
    monkeypatch.setattr(build.notebook_run, "run", lambda course, cells: shown[: len(cells)])
    with pytest.raises(AuthorError, match=r"lesson\.py:\d+: the solution does not pass check\(double\)"):
        build.build(open_course(), small.NAME)
    assert not open_course().solution_path(small.NAME).exists()


def test_what_is_no_notebook_is_stale(monkeypatch, tmp_path):
    files(monkeypatch, tmp_path)
    open_course().solution_path(small.NAME).write_text("[]")
    open_course().notebook_path(small.NAME).write_text("")
    assert len(build.stale(open_course(), small.NAME)) == 2


def test_a_build_writes_both_notebooks_and_the_notes_and_leaves_nothing_else(monkeypatch, tmp_path):
    small.install(monkeypatch, tmp_path, small.SOURCE.replace("import numpy as np", small.PASSING))
    build.build(open_course(), small.NAME)
    assert build.stale(open_course(), small.NAME) == []
    written = [path for path in tmp_path.rglob("*.*") if path.suffix in (".ipynb", ".md")]
    assert sorted(path.relative_to(tmp_path).as_posix() for path in written) == [
        "docs/teaching/01_small.md",
        "notebooks/01_small.ipynb",
        "solutions/01_small.ipynb",
    ]


def test_a_new_sentence_keeps_the_stored_run_and_new_code_does_not(monkeypatch, tmp_path):
    source = small.SOURCE.replace("import numpy as np", small.PASSING)
    small.install(monkeypatch, tmp_path, source)
    build.build(open_course(), small.NAME)
    runs = []
    monkeypatch.setattr(notebook_run, "run", lambda *args, real=notebook_run.run: runs.append(args) or real(*args))

    def build_again(changed: str, **how) -> int:
        open_course().source_path(small.NAME).write_text(changed)
        small.reopened(tmp_path)
        build.build(open_course(), small.NAME, **how)
        assert build.stale(open_course(), small.NAME) == []
        return len(runs)

    assert build_again(source.replace("# One line.", "# Another line.")) == 0
    assert "Another line." in open_course().solution_path(small.NAME).read_text()
    assert build_again(source.replace("arange(3)", "arange(4)")) == 1
    shown = [
        cell["outputs"]
        for cell in json.loads(open_course().solution_path(small.NAME).read_text())["cells"]
        if cell.get("outputs")
    ]
    assert shown[0][0]["text"] == ["6\n"]
    assert build_again(source.replace("arange(3)", "arange(4)"), anew=True) == 2


def test_a_cell_that_raises_is_the_author_s_slip_and_nothing_is_written(monkeypatch, tmp_path):
    small.install(monkeypatch, tmp_path, small.SOURCE.replace("print(np.arange(3).sum())", "1 / 0"))
    with pytest.raises(AuthorError, match=r"solutions/01_small/lesson.py:10: this cell raises ZeroDivisionError"):
        build.build(open_course(), small.NAME)
    assert not list(tmp_path.rglob("*.ipynb")) and not list(tmp_path.rglob("*.md"))


def test_a_lesson_whose_run_needs_what_is_missing_keeps_its_stored_run(monkeypatch, tmp_path):
    """A machine without the real model must not put an empty run in the place of a stored one."""
    files(monkeypatch, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    open_course().source_path(small.NAME).write_text(before.pop(open_course().source_path(small.NAME)).decode() + "\n")
    lesson = replace(open_course().lesson(small.NAME), extra_data="model")
    monkeypatch.setattr(open_course(), "lesson", lambda name: lesson)
    extra = SimpleNamespace(available=lambda: False, how_to_get=lambda: "`make model` brings it.")
    monkeypatch.setattr(open_course(), "module", lambda name: extra)
    with pytest.raises(AuthorError) as raised:
        build.build(open_course(), small.NAME)
    (problem,) = raised.value.problems
    assert (
        "nothing was written and the stored run stays" in problem.sentence
        and "`make model` brings it." in problem.sentence
    )
    assert all(path.read_bytes() == data for path, data in before.items())


# --- `grader build` ----------------------------------------------------------------------------


@pytest.fixture
def course_is_read() -> None:
    """The command asks for it first, and these tests replace what it would read."""
    index.gather(open_course())


@pytest.mark.usefixtures("course_is_read")
@pytest.mark.parametrize("flags, most", [((), 2), (("-j", "1"), 1), (("--jobs", "3"), 3)])
def test_lessons_are_built_together_and_those_that_measure_times_alone(monkeypatch, capsys, flags, most):
    """A lesson beside another one has half a machine, and its times would be the machine's, not the code's."""
    names = [f"0{number}_some" for number in range(6)]
    texts = {name: "import timeit" if name[1] in "14" else "x = 1" for name in names}
    monkeypatch.setattr(author, "chosen_lessons", lambda asked: names)
    monkeypatch.setattr(open_course(), "source", texts.__getitem__)
    monkeypatch.setattr(index, "write", lambda course: None)
    monkeypatch.setattr(teaching, "write_overview", lambda course: None)
    running, beside, lock = set(), {}, threading.Lock()

    def build_one(course, name, anew):
        with lock:
            running.add(name)
            for one in running:
                beside[one] = max(beside.get(one, 0), len(running))
        time.sleep(0.2)
        with lock:
            running.discard(name)

    monkeypatch.setattr(author, "build", build_one)
    assert main(["build", *flags]) == 0
    assert max(beside.values()) == most
    assert {name: beside[name] for name in names if "timeit" in texts[name]} == {"01_some": 1, "04_some": 1}
    said = capsys.readouterr().err
    assert all(f"{name}: built in 0." in said for name in names) and "6 lessons in " in said


@pytest.mark.usefixtures("course_is_read")
def test_a_lesson_that_is_not_built_fails_the_build_and_keeps_no_other_back(monkeypatch, capsys):
    names = ["01_some", "02_some"]
    monkeypatch.setattr(author, "chosen_lessons", lambda asked: names)
    monkeypatch.setattr(open_course(), "source", lambda name: "")
    monkeypatch.setattr(index, "write", lambda course: None)
    monkeypatch.setattr(teaching, "write_overview", lambda course: None)

    def build_one(course, name, anew):
        if name == "01_some":
            raise AuthorError([LintError("solutions/01_some.py", 3, "no.")])

    monkeypatch.setattr(author, "build", build_one)
    assert main(["build"]) == 1
    said = capsys.readouterr().err
    assert "01_some: not built.\n  solutions/01_some.py:3: no." in said and "02_some: built in" in said

"""The audit finds what breaks the course's rules, and nothing where they are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.authoring.audit import Findings, audit, render
from grader.course import references
from grader.course.course import open_course
from grader.course.spec import Case, Exercise, Mistake
from tests import small_lesson as small
from tests.mistakes import built


def reference(x):
    """Twice x. x: (n,)."""
    return x + x


@pytest.fixture
def audited(monkeypatch, tmp_path):
    """audited(exercise, source) -> Findings, for the small lesson with that exercise and that source."""

    def of(exercise: Exercise = small.EXERCISE, source: str = small.SOURCE) -> Findings:
        course = small.install(monkeypatch, tmp_path, source)
        lesson = replace(small.LESSON, exercises=(replace(exercise, course=course, lesson=small.NAME),), course=course)
        monkeypatch.setattr(references, "reference", lambda exercise: reference)
        monkeypatch.setattr(course, "lesson", lambda name: lesson)
        return audit(course, [small.NAME])

    return of


SOURCE = small.SOURCE.replace("import numpy as np\n", "import numpy as np\nfrom grader import check, passed\n")


def test_a_lesson_that_keeps_the_rules_has_no_findings(audited):
    findings = audited(source=SOURCE)
    assert findings.problems == []
    (row,) = findings.rows
    assert (row.mistakes, row.diagnoses, row.exercise.points, row.cases) == (3, 3, 1, 5)
    assert "\n1 exercise, 3 mistakes, 3.0 per exercise; 6 on average are advised." in render(findings)
    assert "Every rule is kept." in render(findings)


def equal_sizes(rng):
    for key in ("one", "two", "three", "four"):
        yield Case(key, key, (rng.normal(size=(3, 3)),), names=("x",))


def one_of_each(rng):
    for size in range(2, 7):
        yield Case(f"of {size}", "some", (rng.normal(size=(size, size + 1)),), names=("x",))


def repeated(rng):
    numbers = rng.normal(size=(2, 3))
    for key in ("one", "two", "three", "four"):
        yield Case(key, key, (numbers,), names=("x",))


@pytest.mark.parametrize(
    "change, said",
    [
        ({"mistakes": (*small.EXERCISE.mistakes, Mistake("TY9", lambda x: 2 * x))}, "mistake TY9 passes"),
        (
            {"mistakes": (*small.EXERCISE.mistakes, Mistake("TY9", lambda x: x[:1]), Mistake("TY8", lambda x: None))},
            None,
        ),
        ({"mistakes": built(small.build_double, "TY1", "TY2")}, "fewer than 3 mistakes"),
        ({"hints": ("?", "", "____")}, "needs three hints"),
        ({"hints": ("?", "here", "return 2 * x")}, "no blank"),
        ({"mistakes": (*small.EXERCISE.mistakes, Mistake("TZ1", lambda x: x))}, "mistake TZ1 has no text"),
        ({"points": 0}, "0 points"),
        ({"task": "Double each number"}, "ends with a period"),
        ({"cases": equal_sizes}, "two sizes are equal"),
        ({"cases": one_of_each}, "cached result"),
        ({"cases": repeated}, "cached result"),
    ],
)
def test_a_broken_rule_is_named(audited, change, said):
    findings = audited(replace(small.EXERCISE, **change), SOURCE)
    if said is None:
        assert findings.passed
    else:
        assert any(said in problem and problem.startswith("01_small, double: ") for problem in findings.problems), (
            findings.problems
        )
        assert "broken: 01_small, double: " in render(findings)


def test_a_mistake_that_is_rejected_but_not_named_is_a_finding(audited):
    """It differs from the reference on two cases alone; three are needed as proof."""
    rare = Mistake("TY9", lambda x: 2 * x + (len(x) > 3))
    findings = audited(replace(small.EXERCISE, mistakes=(*small.EXERCISE.mistakes, rare)), SOURCE)
    (problem,) = findings.problems
    assert "TY9 is rejected but not named" in problem and problem.endswith("Only 2 cases of 3 that prove it."), problem
    assert findings.rows[0].diagnoses == 3


def test_two_mistakes_that_no_case_tells_apart_are_a_finding_unless_they_are_declared_alike(audited):
    first = small.EXERCISE.mistakes[0]
    both = replace(small.EXERCISE, mistakes=(*small.EXERCISE.mistakes, Mistake("TY8", first.wrong)))
    said = f"mistake {first.id} gives the same results as TY8"
    assert any(said in problem for problem in audited(both, SOURCE).problems)
    assert not any(
        said in problem for problem in audited(replace(both, indistinguishable=((first.id, "TY8"),)), SOURCE).problems
    )


def test_a_solution_that_does_not_pass_is_a_finding(audited, monkeypatch):
    findings = audited(replace(small.EXERCISE, dtype=("int64",)), SOURCE)
    assert any("its solution does not pass" in problem for problem in findings.problems)


def test_a_stub_that_does_something_is_a_finding(audited):
    started = SOURCE.replace("# region solution\n", "# region solution: return x\n")
    findings = audited(source=started)
    assert any("untouched stub is 'failed', not 'not_started'" in problem for problem in findings.problems)


def test_a_solution_that_stands_elsewhere_in_the_lesson_is_a_finding(audited):
    told = SOURCE.replace(
        "\n# %% [markdown]\n# ## What we keep",
        "\n# %% [markdown]\n# ```python\n# total = x + x\n# return total\n# ```\n\n# %% [markdown]\n# ## What we keep",
    )
    findings = audited(source=told)
    assert any("the learner's notebook holds its solution" in problem for problem in findings.problems)


def test_a_solution_in_the_file_on_disk_is_a_finding(audited, tmp_path):
    from grader.course.stubs import encode, learner_notebook

    findings = audited(source=SOURCE)
    assert findings.passed
    notebook = learner_notebook(small.cells(SOURCE), small.LESSON)
    next(cell for cell in notebook["cells"] if cell["id"] == "exercise-double")["source"] = [
        "def double(x):\n",
        "    total = x + x\n",
        "    return total",
    ]
    open_course().notebook_path(small.NAME).write_text(encode(notebook))
    assert not audit(open_course(), [small.NAME]).passed


def test_an_author_s_slip_ends_that_lesson_and_not_the_audit(audited):
    findings = audited(source=SOURCE.replace("    # endregion\n", ""))
    assert any("never closed" in problem for problem in findings.problems)
    assert findings.rows == []


def test_an_exercise_that_lacks_a_library_is_left_out_and_told(audited, monkeypatch):
    monkeypatch.setattr("grader.util.libraries.find_spec", lambda module: None)
    findings = audited(replace(small.EXERCISE, libraries=("triton",), points=0), SOURCE)
    (left_out,) = [line for line in render(findings).splitlines() if line.startswith("left out: 01_small, double: ")]
    assert findings.passed and findings.rows == [] and "triton is not installed" in left_out

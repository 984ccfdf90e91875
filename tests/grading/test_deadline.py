"""The end of a whole run: what is not reached is told, whose fault it is too, and results are there after each lesson."""

from __future__ import annotations

import json

import pytest

from grader.cli import grade as grade_command, main
from grader.course.course import open_course
from grader.grading.grade import Deadline
from grader.judging.verdict import Verdict
from tests.grading.test_handed_in import FIRST, hand_in
from tests.small_class import ENDLESS, LESSON, RIGHT, notebook


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def spend(deadline: Deadline, clock: Clock, seconds: float, status: str) -> None:
    clock.now += seconds
    deadline.note(Verdict("x", status, "x", seconds=seconds))


@pytest.mark.parametrize(
    "endless, other, status",
    [(60, 0, "timeout"), (30, 30, "timeout"), (29, 31, "could_not_grade"), (0, 60, "could_not_grade")],
)
def test_whose_fault_it_is_that_an_exercise_was_not_reached(endless, other, status):
    clock = Clock()
    deadline = Deadline(60, clock)
    spend(deadline, clock, endless, "timeout")
    spend(deadline, clock, other, "passed")
    assert deadline.is_over and deadline.verdict("shares").status == status


def test_without_a_deadline_nothing_ends():
    clock = Clock()
    deadline = Deadline(None, clock)
    clock.now += 1e9
    assert not deadline.is_over


@pytest.mark.timeout(120)
def test_endless_answers_use_up_the_run_and_the_results_are_there(tmp_path, capsys):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / f"{LESSON}.ipynb").write_text(notebook(ENDLESS))
    (tmp_path / "ada" / f"{FIRST}.ipynb").write_text(json.dumps(open_course().pristine(FIRST)))
    results = tmp_path / "results.json"
    assert (
        main(["grade", str(tmp_path / "ada"), "--timeout", "3", "--deadline", "3", "--gradescope", str(results)]) == 1
    )
    data = json.loads(results.read_text())
    told = {test["name"].split(": ")[1]: test["output"] for test in data["tests"]}
    assert set(told) == {*open_course().exercises[LESSON], *open_course().exercises[FIRST]} and data["score"] == 0
    assert all(
        "was not reached: exercises that do not end used" in told[name] for name in open_course().exercises[FIRST]
    )


def test_a_slow_machine_is_nobody_s_zero(tmp_path, capsys):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / f"{LESSON}.ipynb").write_text(notebook(RIGHT))
    results = tmp_path / "results.json"
    results.write_text("of an earlier run")
    assert main(["grade", str(tmp_path / "ada"), "--deadline", "0.001", "--gradescope", str(results)]) == 3
    assert not results.exists() and "nearest" in capsys.readouterr().err


def test_results_are_written_after_each_lesson(tmp_path, monkeypatch):
    hand_in(tmp_path, ada=(LESSON, FIRST))
    written, results = [], tmp_path / "results.json"
    write = grade_command.write_report

    def noted(form, file, report, visibility):
        done = write(form, file, report, visibility)
        data = json.loads(results.read_text())
        written.append((len(data["tests"]), data["output"]))
        return done

    monkeypatch.setattr(grade_command, "write_report", noted)
    assert main(["grade", str(tmp_path / "ada"), "--gradescope", str(results), "--visibility", "hidden"]) == 1
    first, last = written
    assert (
        first[0] == len(open_course().exercises[LESSON])
        and f"Lessons that are not graded yet: {FIRST[:2]}." in first[1]
    )
    assert last[0] == first[0] + len(open_course().exercises[FIRST]) and "not graded yet" not in last[1]
    assert json.loads(results.read_text())["visibility"] == "hidden"

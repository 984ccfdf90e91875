"""Marks by hand: kept whatever is graded again, and never without the automatic mark beside them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from grader.course.course import open_course
from grader.judging.verdict import Verdict
from tests.grading.test_handed_in import FIRST, SECOND, hand_in
from tests.mixing_course import COURSE

ONE, TWO, *_ = COURSE.exercises[FIRST]
FULL = 2 * len(COURSE.exercises[FIRST])
HEAD = "learner,exercise,points,comment\n"
EVERYWHERE = (
    "report.html",
    "feedback/ada.html",
    "grades.csv",
    "attention.csv",
    "moodle.csv",
    "report.json",
    "summary.md",
)


@pytest.fixture
def place(graded, tmp_path):
    """A class of two that is graded: ada has the first exercise wrong."""
    folder = hand_in(tmp_path / "class", ada=(FIRST,), bob=(FIRST,))
    graded.made["ada", ONE] = Verdict(ONE, "failed", "x")
    assert graded(folder, tmp_path / "out") == 0
    return folder


def totals(out: Path) -> list[str]:
    return [one["total"] for one in csv.DictReader((out / "grades.csv").open(newline=""))]


def test_a_mark_by_hand_counts_and_stands_everywhere_beside_the_automatic_one(graded, place):
    out = place.parent / "out"
    (out / "overrides.csv").write_text(HEAD + f"ada,{ONE},1.5,A good idea <b>\nbob,{TWO},,Neat.\n")
    assert graded(place, out, "--resume") == 0 and graded.ran == []
    assert totals(out) == [str(FULL - 0.5), str(FULL)]
    said = f"{ONE}: marked by hand with 1.5 of 2 points; automatically 0. A good idea"
    for name in (*EVERYWHERE, "junit/ada.xml", "gradescope/ada.json"):
        assert said in (out / name).read_text().replace("\\_", "_"), name
    assert f"{TWO}: Neat." in (out / "feedback" / "bob.html").read_text(), "a comment alone changes no mark"
    page = (out / "report.html").read_text()
    assert "1 exercise marked by hand, by overrides.csv; the automatic marks stand beside." in page
    assert page.count(", marked by hand</span>") == 2 and "<b>" not in page.partition("A good idea")[2][:9]
    exercise = json.loads((out / "report.json").read_text())["submissions"][0]["lessons"][0]["exercises"][0]
    assert (exercise["status"], exercise["score"], exercise["automatic_score"]) == ("failed", 1.5, 0)


def test_marks_by_hand_stay_through_all_that_is_graded_again(graded, place):
    out = place.parent / "out"
    (out / "overrides.csv").write_text(HEAD + f"ada,{ONE},1,\n")
    for more in (("--resume",), ("--regrade", "ada"), ("--rescore", "--partial"), ("--rescore", "--no-partial")):
        assert graded(place, out, *more) == 0 and totals(out) == [str(FULL - 1), str(FULL)]
    (out / "overrides.csv").unlink()
    assert graded(place, out, "--resume") == 0 and totals(out) == [str(FULL - 2), str(FULL)]


def test_a_new_run_keeps_them_beside_and_says_how_to_take_them_along(graded, place, capsys):
    out = place.parent / "out"
    (out / "overrides.csv").write_text(HEAD + f"ada,{ONE},1,\n")
    assert graded(place, out) == 0 and totals(out) == [str(FULL - 2), str(FULL)]
    assert "So are its marks by hand; to keep them, copy overrides.csv to" in capsys.readouterr().err
    (out.parent / "out.backup-1" / "overrides.csv").rename(out / "overrides.csv")
    assert graded(place, out, "--resume") == 0 and totals(out) == [str(FULL - 1), str(FULL)]


def test_what_could_not_be_graded_can_be_marked_and_is_tried_again_all_the_same(graded, place):
    out = place.parent / "out"
    assert graded(place, out, "--regrade", "bob", fails=("bob",)) == 3 and totals(out)[1] == ""
    (out / "overrides.csv").write_text(HEAD + f"bob,{ONE},1,\n")
    assert graded(place, out, "--resume", fails=("bob",)) == 0 and graded.ran == ["bob"]
    assert totals(out)[1] == str(FULL - 1) and (out / "gradescope" / "bob.json").is_file()


def test_a_penalty_is_taken_from_what_a_person_gave(graded, place):
    out = place.parent / "out"
    (out / "overrides.csv").write_text(HEAD + f"ada,{ONE},2,\n")
    (place / "collected.csv").write_text(
        f"learner,file,state,late,submitted\nada,{FIRST}.ipynb,placed,,2026-10-01 09:30:00+00:00\n"
    )
    assert graded(place, out, "--rescore", "--due", "2026-10-01T09:00Z", "--penalty", "1") == 0
    assert totals(out) == [str(FULL - 1), str(FULL)]


def test_no_name_leaves_an_anonymous_run_with_a_mark(graded, place):
    out = place.parent / "out"
    (out / "overrides.csv").write_text(HEAD + f'ada,{ONE},2,"Well done, Ada"\n')
    assert graded(place, out, "--rescore", "--anonymous") == 0
    page = (out / "report.html").read_text()
    assert "automatically 0. Well done, learner " in page and "ada" not in page.lower()
    (out / "overrides.csv").write_text(HEAD + f"adalbert,{ONE},2,\n")
    (place / "class.toml").write_text("due = '2026-10-01 09:00 UTC'\n[extensions]\nada = '1 day'\n")
    assert graded(place, out, "--rescore") == 0
    page = (out / "report.html").read_text()
    assert "extensions for 1 learner (class.toml, line 2)" in page and "in line 2" in page and "ada" not in page


def test_marks_by_hand_out_of_other_points_are_told(graded, place, capsys):
    out, points = place.parent / "out", place.parent / "points.csv"
    (out / "overrides.csv").write_text(HEAD + f"ada,{ONE},1,\nada,{TWO},,Neat.\n")
    points.write_text(f"{ONE},6\n{TWO},6\n")
    assert graded(place, out, "--rescore", "--weights", str(points)) == 0
    told = capsys.readouterr().err
    assert f"the points of {ONE} change; marks by hand stay as they are." in told and f"{TWO} change" not in told
    assert graded(place, out, "--resume") == 0 and "stay as they are" not in capsys.readouterr().err


def test_a_line_without_effect_is_told(graded, place, capsys):
    out = place.parent / "out"
    (out / "overrides.csv").write_text(
        HEAD + f"\nadda,{ONE},2,\nbob,{open_course().exercises[SECOND][0]},1,\nbob,{TWO},0,\n"
    )
    assert graded(place, out, "--resume") == 0 and totals(out) == [str(FULL - 2), str(FULL - 2)]
    shown, page = capsys.readouterr().out, (out / "report.html").read_text()
    for told in (
        f"overrides.csv has no effect in line 3 ({ONE}): there is no such learner here.",
        f"overrides.csv has no effect in line 4 ({open_course().exercises[SECOND][0]}): the exercise is not graded here.",
    ):
        assert told in shown and told in page


@pytest.mark.parametrize(
    "said, told",
    [
        ("who,what\nada,x\n", "overrides.csv needs the columns learner, exercise, points, comment in its first line"),
        (HEAD + "ada,share,1,\n", "overrides.csv, line 2: there is no exercise 'share'; did you mean"),
        (HEAD + f"ada,{ONE},1,\nada,{ONE},2,\n", f"overrides.csv, line 3: line 2 already marks {ONE} of ada."),
        (HEAD + f"ada,{ONE},much,\n", "overrides.csv, line 2: 'much' is not a number of points"),
        (HEAD + f"ada,{ONE},,\n", "overrides.csv, line 2: there are neither points nor a comment."),
    ],
)
def test_wrong_marks_are_a_sentence_before_anything_is_graded(graded, place, capsys, said, told):
    (place.parent / "out" / "overrides.csv").write_text(said)
    assert graded(place, place.parent / "out", "--regrade", "ada") == 2 and graded.ran == []
    assert told in capsys.readouterr().err


def test_semicolons_and_a_mark_of_a_spreadsheet_are_read(graded, place):
    out = place.parent / "out"
    (out / "overrides.csv").write_bytes(
        "\ufeffLearner;Exercise;Points;Comment\r\n".encode() + f"ada;{ONE};1;x\r\n".encode()
    )
    assert graded(place, out, "--resume") == 0 and totals(out)[0] == str(FULL - 1)


def test_a_name_that_two_have_reaches_the_folder_of_that_name_or_nobody(graded, tmp_path):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,)), tmp_path / "out"
    for name in ("ada.ipynb", "bob.ipynb", "bob.IPYNB"):
        (folder / name).write_bytes((folder / "ada" / f"{FIRST}.ipynb").read_bytes())
    out.mkdir()
    assert graded(folder, out) == 0
    (out / "overrides.csv").write_text(HEAD + f"ada,{ONE},0,\nada.ipynb,{ONE},1,\nbob,{ONE},1,\n")
    assert graded(folder, out, "--resume") == 0
    assert totals(out) == [str(FULL - 2), "1", "0", "0"]
    assert f"overrides.csv has no effect in line 4 ({ONE})" in (out / "report.html").read_text()

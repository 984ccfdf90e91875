"""What leaves for grade gradebook: read again by each importer's own rules, and never a number where the grader failed."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from grader.course.course import open_course
from grader.reports import canvas, grades_csv, gradescope, junit, moodle, report_files, report_json
from grader.reports.class_summary import ClassSummary
from grader.reports.gradebook import Gradebook
from grader.reports.report import Report, SubmissionReport
from grader.submission.roster import read_roster
from tests.grading.test_handed_in import FIRST, hand_in
from tests.reports.samples import OURS, PASSED, PROVEN, lesson
from tests.submission.test_roster import CANVAS


def learner(name: str, *judged) -> SubmissionReport:
    return SubmissionReport(name, name, (lesson("01_mixing", *judged), lesson("02_x", PASSED)))


TWO = Report(
    (learner("ada.lovelace", PASSED, PROVEN), learner("g.hopper", PASSED, replace(PASSED, exercise="shares"))), 7
)
FAILED = Report(
    (learner("ada.lovelace", PASSED, PROVEN), learner("g.hopper", PASSED, replace(OURS, exercise="shares"))), 7
)
STRANGER = replace(TWO, submissions=(*TWO.submissions, learner("eve", PASSED, PROVEN)))


def rows(said: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(said), strict=True))


@pytest.fixture
def gradebook(tmp_path):
    (tmp_path / "roster.csv").write_text(CANVAS)
    return Gradebook(10, "Homework (815)", read_roster(tmp_path / "roster.csv"))


# --- Canvas ----------------------------------------------------------------------------------


def canvas_import(said: str) -> dict[str, str]:
    """The grades by user id, as gradebook_importer.rb finds them: header, points possible, then students by ID."""
    heading, possible, *students = rows(said)
    assert "Student" in heading[0] and "ID" in heading[1] and "Points Possible" in possible[0]
    assert (
        re.search(r"SIS\s+User\s+ID", heading[2])
        and re.search(r"SIS\s+Login\s+ID", heading[3])
        and "Section" in heading[4]
    )
    (assignment,) = heading[5:]
    assert re.fullmatch(r"(.*)\s\((\d+)\)", assignment)[2] == "815" and float(possible[5]) == 10
    return {row[1]: row[5] for row in students}


def test_canvas_finds_its_students_and_its_assignment(gradebook):
    said = canvas.render(TWO, gradebook)
    assert canvas_import(said) == {"4711": "6.67", "4712": "10"}
    assert rows(said)[2][:5] == ["Lovelace, Ada", "4711", "1815-12-10", "ada.lovelace", "Sec A"]


def test_a_login_is_no_formula_and_other_text_may_be_one(tmp_path):
    (tmp_path / "r.csv").write_text('Student,ID,SIS User ID,SIS Login ID,Section\n"=cmd|x",1,-7,-ada,@home\n')
    made = canvas.render(Report((learner("-ada", PASSED),), 7), Gradebook(roster=read_roster(tmp_path / "r.csv")))
    assert rows(made)[2][:5] == ["'=cmd|x", "1", "-7", "-ada", "@home"]


@pytest.mark.parametrize(
    "title, points, told",
    [
        ("Homework (815)", 20, ""),
        ("Homework (815)", None, "has 20 points in Canvas, and canvas.csv is out of 6; --max-points 20 scales it"),
        ("Homework (816)", 20, "no column 'Homework (816)', such as 'Homework (815)'"),
        ("", 20, ""),
    ],
)
def test_an_assignment_that_canvas_s_export_has_otherwise_is_told(tmp_path, title, points, told):
    (tmp_path / "roster.csv").write_text(CANVAS)
    said = canvas.remark(ClassSummary(TWO), Gradebook(points, title, read_roster(tmp_path / "roster.csv")))
    assert told in said and bool(told) == bool(said)


# --- Moodle ----------------------------------------------------------------------------------


def moodle_import(said: str, column: str, users: set[str]) -> dict[str, tuple[str, str]]:
    """As load_data.php: an empty cell keeps the user of the row before, one unknown user ends it all."""
    heading, *lines = rows(said)
    got, user = {}, ""
    for line in lines:
        value = line[heading.index(column)].strip()
        user = value or user
        if user not in users:
            return {}
        got[user] = (line[-2], line[-1])
    return got


def test_moodle_gets_users_of_the_roster_alone_and_their_feedback(gradebook):
    known = {"ada.lovelace", "g.hopper"}
    assert moodle_import(moodle.render(STRANGER), "Username", known) == {}, "one stranger ends the import"
    got = moodle_import(moodle.render(STRANGER, gradebook), "Username", known)
    assert {user: points for user, (points, _) in got.items()} == {"ada.lovelace": "6.67", "g.hopper": "10"}
    told = got["ada.lovelace"][1]
    assert told.startswith("4 of 6 points. 01_mixing 2 of 4: shares: MX7: The columns sum to 1; each row is to.")
    assert rows(moodle.render(STRANGER, gradebook))[0] == ["Username", "ID number", "Homework (815)", "Feedback"]


def test_no_row_of_moodle_s_goes_to_the_learner_before():
    mixed = Report((learner("ada@x.org", PASSED), learner("bob", PROVEN), learner("eve@x.org", PASSED)), 7)
    heading, *lines = rows(moodle.render(mixed))
    assert heading[0] == "Username" and len(heading) == 3 and all(all(line[:1]) for line in lines)
    assert rows(moodle.render(Report(mixed.submissions[::2], 7)))[0][0] == "Email address"


def test_feedback_is_shown_as_it_is_where_it_is_taken_for_html():
    odd = replace(learner("ada", PASSED), message="a<b & c")
    assert moodle.feedback(odd).endswith("a&lt;b &amp; c")


def test_a_grade_that_moodle_would_refuse_is_told():
    many = Report((learner("ada", *(replace(PASSED, exercise=f"e{n}") for n in range(60))),), 7)
    assert "a grade of 122, and Moodle ends an import at one above 100; --max-points 100" in moodle.remark(
        ClassSummary(many), Gradebook()
    )
    assert moodle.remark(ClassSummary(many), Gradebook(100)) == ""


# --- Gradescope and JUnit --------------------------------------------------------------------


@pytest.mark.parametrize("visibility", ("visible", "hidden", "after_due_date", "after_published"))
def test_gradescope_keeps_seed_and_mistakes_where_nobody_sees_them_and_shows_the_rest_when_asked(visibility):
    data = json.loads(gradescope.render(Report(TWO.submissions[:1], 8), visibility=visibility))
    assert data["extra_data"] == {"seed": 8, "mistakes": {"shares": ["MX7"]}}
    assert {data["visibility"], *(test["visibility"] for test in data["tests"])} == {visibility}


def test_junit_files_of_a_class_are_told_apart_where_they_are_read_together(tmp_path):
    report_files.write_all(open_course(), TWO, tmp_path)
    names = [
        re.findall(r'testsuite name="([^"]+)"', path.read_text()) for path in sorted((tmp_path / "junit").iterdir())
    ]
    assert names == [["ada.lovelace.01_mixing", "ada.lovelace.02_x"], ["g.hopper.01_mixing", "g.hopper.02_x"]]


# --- a failure of the grader's ----------------------------------------------------------------


def exported(report: Report, gradebook: Gradebook) -> dict[str, str]:
    """Everything that leaves, by what reads it."""
    files = dict(report_files.files(open_course(), report, gradebook))
    files["canvas without a roster"], files["moodle without a roster"] = canvas.render(report), moodle.render(report)
    files["gradescope"] = gradescope.render(report)
    files["grade --csv"], files["grade --json"], files["grade --junit"] = (
        grades_csv.render(report),
        report_json.render(report),
        junit.render(report),
    )
    return files


def test_what_could_not_be_graded_leaves_through_no_exporter(gradebook):
    whole, made = exported(TWO, gradebook), exported(FAILED, gradebook)
    assert "gradescope/g.hopper.json" in whole and "gradescope/g.hopper.json" not in made
    assert made["gradescope"] == "" and whole["gradescope"]
    for name in ("canvas.csv", "moodle.csv", "canvas without a roster", "moodle without a roster"):
        assert "g.hopper" in whole[name] and "g.hopper" not in made[name] and "ada.lovelace" in made[name], name
    for name in ("grades.csv", "grade --csv"):
        heading, _, mine = rows(made[name])
        row = dict(zip(heading, mine, strict=True))
        assert (
            row["total"] == row["01_mixing"] == "" and row["shares"] == "could_not_grade" and "shares" in row["message"]
        )
    assert rows(made["attention.csv"]) == [
        ["learner", "why"],
        ["g.hopper", f"Could not be graded: shares. {OURS.details[0]}"],
    ]
    assert rows(whole["attention.csv"]) == [["learner", "why"]]
    for name in ("report.json", "grade --json"):
        assert json.loads(made[name])["submissions"][1]["score"] is None
    for name in ("junit/g.hopper.xml", "grade --junit"):
        assert '<error type="could_not_grade"' in made[name] and "<failure" not in made["junit/g.hopper.xml"]
    known = {
        "report.html",
        "similarity.html",
        "feedback/ada.lovelace.html",
        "feedback/g.hopper.html",
        "summary.md",
        "junit/ada.lovelace.xml",
        "gradescope/ada.lovelace.json",
    }
    tested = {
        "attention.csv",
        "canvas.csv",
        "moodle.csv",
        "grades.csv",
        "report.json",
        "junit/g.hopper.xml",
        "gradescope/g.hopper.json",
    }
    assert {name for name in whole if "." in name} == known | tested, "a new exporter belongs in this test"


NAMELESS = {  # rosters without an id that Canvas knows; who then has no row
    "one name": (
        "Email,Full name\nli1@x.org,Li Na\nli2@x.org,li  na\nada@x.org,Ada Lovelace\n",
        ["li1@x.org", "li2@x.org"],
    ),
    "one name in another order": (
        'Email,Student\nli1@x.org,"Na, Li"\nli2@x.org,Li Na\nada@x.org,Ada Lovelace\n',
        ["li1@x.org", "li2@x.org"],
    ),
    "first and last name": (
        "Email,First name,Last name\nli1@x.org,Li,Na\nli2@x.org,Li,Na\nada@x.org,Ada,Lovelace\n",
        ["li1@x.org", "li2@x.org"],
    ),
    "one of them without an id": (
        "Email,Student,ID\nli1@x.org,Li Na,1\nli2@x.org,Li Na,\nada@x.org,Ada,\n",
        ["li2@x.org"],
    ),
    "no name at all": ("Email,Student\nli1@x.org,\nli2@x.org,Li Na\nada@x.org,Ada\n", ["li1@x.org"]),
    "ids": ("Email,Student,ID\nli1@x.org,Li Na,1\nli2@x.org,Li Na,2\nada@x.org,,3\n", []),
}


@pytest.mark.parametrize("roster, left", NAMELESS.values(), ids=NAMELESS)
def test_whom_canvas_could_take_for_another_has_no_row_there_and_is_named(tmp_path, roster, left):
    (tmp_path / "roster.csv").write_text(roster)
    about, everyone = Gradebook(10, "", read_roster(tmp_path / "roster.csv")), ["li1@x.org", "li2@x.org", "ada@x.org"]
    report = Report(tuple(learner(name, PASSED) for name in everyone), 7)
    _, _, *students = rows(canvas.render(report, about))
    assert len(students) == 3 - len(left) and all(row[0] or row[1] for row in students), "each row says who it is"
    said = canvas.remark(ClassSummary(report), about)
    assert said.startswith(f"canvas.csv has no row for {' and '.join(left)}" if left else "") and bool(said) is bool(
        left
    )
    assert not left or said.endswith("no name that is theirs alone. Use Canvas' own export as the roster.")


# --- a class with a roster --------------------------------------------------------------------


def test_a_run_with_a_roster_names_who_is_left_out(graded, tmp_path, capsys):
    (tmp_path / "roster.csv").write_text(CANVAS)
    made, out = hand_in(tmp_path / "class", **{"ada.lovelace": (FIRST,), "eve": (FIRST,)}), tmp_path / "out"
    options = ("--roster", str(tmp_path / "roster.csv"), "--assignment", "Homework (815)", "--max-points", "10")
    assert graded(made, out, *options) == 0
    told = capsys.readouterr()
    for said in (
        "In the folder but not on the roster, so without a row in the grade book: eve.",
        "On the roster but not in the folder, so without a row in the grade book: g.hopper.",
    ):
        assert (
            said in told.err
            and said in told.out
            and said in (out / "report.html").read_text()
            and said in (out / "summary.md").read_text()
        )
    assert canvas_import((out / "canvas.csv").read_text()) == {"4711": "10"}
    assert graded(made, out, "--resume", *options, "--regrade", "ada.lovelace", fails=("ada.lovelace",)) == 3
    assert "no learner's: ada.lovelace (" in capsys.readouterr().err, "named on standard error"
    assert canvas_import((out / "canvas.csv").read_text()) == {}


@pytest.mark.parametrize(
    "options, told",
    [
        (("--by", "Username"), "needs --roster FILE"),
        (("--anonymous", "--assignment", "x (1)"), "--anonymous writes no grade book"),
        (("--roster", "{there}", "--by", "Username"), "has no column 'Username'; it has Student, ID"),
        (("--roster", "{nowhere}"), "No such file"),
        (("--roster", "{there}", "--by", "Student"), "has no learner whose name stands in the column 'Student' of"),
        (
            ("--roster", "{there}", "--by", "ID"),
            "The column has 4711 and 4712; the folder has ada. Name another column with --by, or sort the work anew",
        ),
        (("--roster", "{there}"), "The column has ada.lovelace and g.hopper; the folder has ada."),
        (
            ("--roster", "{there}", "--by", "Homework (815)"),
            "has nothing in its column 'Homework (815)'; name another column with --by: Student, ID",
        ),
    ],
)
def test_a_wrong_roster_is_a_sentence_and_nothing_is_graded(graded, tmp_path, capsys, options, told):
    (tmp_path / "roster.csv").write_text(CANVAS)
    filled = [option.format(there=tmp_path / "roster.csv", nowhere=tmp_path / "none.csv") for option in options]
    assert graded(hand_in(tmp_path / "class", ada=(FIRST,)), tmp_path / "out", *filled) == 2
    assert told in capsys.readouterr().err and graded.ran == [] and not (tmp_path / "out").exists()

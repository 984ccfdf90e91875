"""What an instructor decides of a class: points of one's own, part of them, which exercises, no names, whom to grade again."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from grader.course.course import open_course
from grader.grading.journal import load
from grader.grading.marks import apply_weights, read_weights
from grader.judging.verdict import Verdict
from grader.reports import feedback
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.util.errors import InputError
from tests.grading.test_handed_in import FIRST, SECOND, hand_in
from tests.mixing_course import COURSE

ONE, TWO, *_ = COURSE.exercises[FIRST]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def report(out: Path) -> dict:
    return json.loads((out / "report.json").read_text())


# --- weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "{one},3\n{two},0.5\n",
        "exercise,points\n{one},3\n\n# why\n{two},0.5",
        "\ufeff{one};3\r\n{two};0.5\r\n",
        "{one}\t3\n{two}\t0.5\n",
        "{one} 3\n{two}   0.5\n",
        '"{one}","3"\n{two},0.5,\n',
    ],
)
def test_weights_are_read_as_people_write_them(tmp_path, said):
    (tmp_path / "w").write_text(said.format(one=ONE, two=TWO), encoding="utf-8")
    assert read_weights(open_course(), tmp_path / "w") == {ONE: 3, TWO: 0.5}


@pytest.mark.parametrize(
    "said, told",
    [
        (b"share,3", "line 1: there is no exercise 'share'; did you mean shares?"),
        (b"qqqq,3", "there is no exercise 'qqqq'; the notebooks and every report name them."),
        (b"blend,1\nshares,3\nblend,2", "line 3: blend has points already"),
        (b"shares", "such as 'NAME,3'"),
        (b"shares,3,4", "such as 'NAME,3'"),
        (b"shares,-1", "'-1' is not a number of points"),
        (b"shares,nan", "is not a number"),
        (b"shares,three", "is not a number"),
        (b"", "gives no exercise points"),
        (b"exercise,points\n", "gives no exercise points"),
        (b"shares,\xe9", "weights.csv is not UTF-8 (line 1)"),
    ],
)
def test_wrong_weights_are_a_sentence_and_nothing_is_graded(graded, tmp_path, capsys, said, told):
    (tmp_path / "weights.csv").write_bytes(said)
    folder = hand_in(tmp_path / "class", ada=(FIRST,))
    assert graded(folder, tmp_path / "out", "--weights", str(tmp_path / "weights.csv")) == 2
    assert told in capsys.readouterr().err and not (tmp_path / "out").exists() and graded.ran == []


def test_weights_that_are_nowhere_are_a_sentence(graded, tmp_path, capsys):
    assert (
        graded(hand_in(tmp_path / "class", ada=(FIRST,)), tmp_path / "out", "--weights", str(tmp_path / "none.csv"))
        == 2
    )
    assert "none.csv: No such file" in capsys.readouterr().err


def test_weights_that_leave_nothing_to_earn_are_a_sentence(graded, tmp_path, capsys):
    (tmp_path / "w").write_text("".join(f"{name},0\n" for name in open_course().exercises[FIRST]))
    assert graded(hand_in(tmp_path / "class", ada=(FIRST,)), tmp_path / "out", "--weights", str(tmp_path / "w")) == 2
    assert "no graded exercise has points" in capsys.readouterr().err and graded.ran == []


def test_points_of_one_s_own_stand_in_every_report_and_nothing_is_graded_again_for_them(graded, tmp_path, capsys):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,), bob=()), tmp_path / "out"
    assert graded(folder, out) == 0
    (tmp_path / "w").write_text(f"{ONE},7\n{TWO},0.25\n{open_course().exercises[SECOND][0]},5\n")
    assert graded(folder, out, "--rescore", "--weights", str(tmp_path / "w")) == 0 and graded.ran == []
    most = 2 * (len(open_course().exercises[FIRST]) - 2) + 7.25
    assert [one["max_score"] for one in report(out)["submissions"]] == [most, most]
    assert [row["total"] for row in table(out / "grades.csv")] == [str(most), "0"]
    assert list(csv.reader((out / "canvas.csv").open()))[1][-1] == str(most)
    told = capsys.readouterr().out
    assert (
        f"2 of {len(open_course().exercises[FIRST])} exercises have the instructor's points, the others the course's."
        in told
    )
    assert (
        f"so the weights have no effect: {open_course().exercises[SECOND][0]}." in told
        and "exercises have the instructor" in (out / "report.html").read_text()
    )


# --- part of the points ----------------------------------------------------------------------


def part(agreed: int, of: int, **points: float) -> SubmissionReport:
    judged = (
        Verdict("a", "failed", "a", cases=(agreed, of)),
        Verdict("b", "passed", "b", cases=(4, 4)),
        Verdict("c", "error", "c"),
    )
    return SubmissionReport("ada", "ada", (LessonReport("01_x", judged, {"a": 2, "b": 3, "c": 1} | points),))


@pytest.mark.parametrize("agreed, of, earned", [(0, 3, 3), (1, 3, 3.67), (2, 4, 4), (3, 4, 4.5), (0, 0, 3)])
def test_part_of_the_cases_is_part_of_the_points_only_where_asked_for(agreed, of, earned):
    whole = Report((part(agreed, of),), 7)
    assert whole.submissions[0].score == 3
    shared = apply_weights(whole, partial=True)
    assert shared.submissions[0].score == earned and shared.submissions[0].max_score == 6
    assert "share of its cases" in shared.notes[0]


def test_sums_of_parts_have_two_decimals_and_whole_numbers_none():
    one = apply_weights(Report((part(1, 3),), 7), {"a": 0.1, "b": 0.2, "c": 0.7}, partial=True).submissions[0]
    assert (one.score, one.max_score, str(one.max_score)) == (0.23, 1, "1")


def test_a_weight_is_shown_as_it_was_written_and_a_learner_reads_what_the_part_was_for():
    made = apply_weights(Report((part(1, 3),), 7), {"a": 5.0, "b": 2.5}, partial=True)
    assert json.dumps(dict(made.submissions[0].lessons[0].points)) == '{"a": 5, "b": 2.5, "c": 1}'
    said = feedback.section(made.submissions[0], "ada")
    assert "a: 1.67 of 5 points, because 1 of 3 cases agree." in said and "b: " not in said and "c: " not in said
    assert "cases agree" not in feedback.section(apply_weights(Report((part(1, 3),), 7)).submissions[0], "ada")


def test_the_option_reaches_the_reports(graded, tmp_path):
    graded.made["ada", ONE] = Verdict(ONE, "failed", "x", cases=(1, 2))
    folder = hand_in(tmp_path / "class", ada=(FIRST,))
    full = 2 * len(open_course().exercises[FIRST])
    for option, score in ((), full - 2), (("--partial",), full - 1):
        out = tmp_path / f"out{len(option)}"
        assert graded(folder, out, *option) == 0
        assert [one["score"] for one in report(out)["submissions"]] == [score]


# --- which exercises -------------------------------------------------------------------------


def test_only_these_exercises_count(graded, tmp_path):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,), bob=()), tmp_path / "out"
    assert graded(folder, out, "--exercises", f"{TWO},{open_course().exercises[SECOND][0]}") == 0
    assert [
        [e["name"] for lesson in one["lessons"] for e in lesson["exercises"]] for one in report(out)["submissions"]
    ] == [[TWO, open_course().exercises[SECOND][0]]] * 2
    assert [one["max_score"] for one in report(out)["submissions"]] == [4, 4]
    assert load(out / "journal.jsonl").settings.exercises == tuple(sorted([TWO, open_course().exercises[SECOND][0]]))
    assert graded(folder, out, "--resume") == 0 and [one["max_score"] for one in report(out)["submissions"]] == [4, 4]
    assert graded(folder, out, "--resume", "--exercises", TWO) == 2, "another choice is another run"


@pytest.mark.parametrize(
    "options, told",
    [
        (("--exercises", "share"), "did you mean shares?"),
        (("--exercises", " , "), "names no exercise"),
        (("--exercises", TWO, "--lessons", "02"), f"{TWO} belongs to lesson 01, which --lessons leaves out"),
    ],
)
def test_a_wrong_choice_of_exercises_is_a_sentence(graded, tmp_path, capsys, options, told):
    assert graded(hand_in(tmp_path / "class", ada=(FIRST,)), tmp_path / "out", *options) == 2
    assert told in capsys.readouterr().err and not (tmp_path / "out").exists()


# --- what goes on ----------------------------------------------------------------------------


def test_resume_says_what_it_grades_and_why(graded, tmp_path, capsys):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,), bob=(FIRST,), cyd=(FIRST,), dan=(FIRST,)), tmp_path / "out"
    assert graded(folder, out, fails=("cyd",)) == 3
    (folder / "ada" / f"{FIRST}.ipynb").write_text("{}")
    hand_in(folder, eve=(FIRST,))
    (folder / "dan").rename(tmp_path / "dan")
    capsys.readouterr()
    assert graded(folder, out, "--resume") == 0 and graded.ran == ["ada", "cyd", "eve"]
    told = capsys.readouterr().err
    assert (
        "Changed since they were graded, graded again: ada." in told
        and "Not in the journal yet, graded now: eve." in told
    )
    assert (
        "tried again: cyd." in told and "No longer in the folder, and in no report: dan." in told and "bob" not in told
    )
    assert graded(folder, out, "--resume") == 0 and graded.ran == []


def test_one_learner_is_graded_again(graded, tmp_path, capsys):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,), bob=(FIRST,)), tmp_path / "out"
    assert graded(folder, out) == 0
    graded.made["bob", ONE] = Verdict(ONE, "failed", "x")
    capsys.readouterr()
    assert graded(folder, out, "--regrade", "bob") == 0 and graded.ran == ["bob"]
    told = capsys.readouterr().err
    assert "Graded again as asked: bob." in told and "the earlier run is kept in" in told
    assert [row[ONE] for row in table(out / "grades.csv")] == ["passed", "failed"]
    assert [row[ONE] for row in table(tmp_path / "out.backup-1" / "grades.csv")] == ["passed", "passed"]


def test_a_learner_who_is_not_there_is_not_graded_again(graded, tmp_path, capsys):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,)), tmp_path / "out"
    assert graded(folder, out, "--regrade", "adda") == 2
    assert "there is no learner 'adda' in the folder; did you mean ada?" in capsys.readouterr().err and graded.ran == []


# --- no names --------------------------------------------------------------------------------


def test_no_report_of_an_anonymous_run_names_anybody(graded, tmp_path, capsys):
    folder, out = hand_in(tmp_path / "class", **{"lovelace": (FIRST,), "hopper": (FIRST, SECOND)}), tmp_path / "out"
    (folder / "lovelace" / "lovelace.zip").write_bytes(b"PK")
    (folder / "lovelace.ipynb.txt").write_text("{}")
    assert graded(folder, out) == 0 and (out / "moodle.csv").is_file()
    assert "lovelace: lovelace.zip is an archive" in capsys.readouterr().out
    assert graded(folder, out, "--rescore", "--anonymous", fails=("hopper",)) == 0
    files = {path.relative_to(out).as_posix(): path.read_text() for path in out.rglob("*") if path.is_file()}
    assert (
        not {"canvas.csv", "moodle.csv"} & set(files)
        and len([name for name in files if name.startswith("feedback/learner-")]) == 2
    )
    naming = {name for name, said in files.items() if "lovelace" in said or "hopper" in said}
    assert naming == {"journal.jsonl", "names.csv"} and ".zip is an archive" in files["attention.csv"]
    assert "lovelace" not in capsys.readouterr().out
    before = table(out / "names.csv")
    assert {row["learner"] for row in before} == {"hopper", "lovelace"} and [row["pseudonym"] for row in before] == [
        one["name"] for one in report(out)["submissions"]
    ]
    hand_in(folder, eve=(FIRST,))
    assert graded(folder, out, "--resume") == 0
    assert [row for row in table(out / "names.csv") if row["learner"] != "eve"] == before, (
        "who had a pseudonym keeps it"
    )


def test_what_the_grader_says_of_a_learner_loses_the_name_and_other_words_stay(tmp_path):
    from grader.grading.pseudonyms import choose, pseudonymize

    lesson = LessonReport("01_x", (), {}, ("ana/x.ipynb was passed over in the analysis.",))
    made = Report(
        (
            SubmissionReport("ana", "class/ana", (lesson,), "Ana cannot be opened."),
            SubmissionReport("=cmd", "=cmd", ()),
        ),
        7,
    )
    aliases = choose(tmp_path, ["ana", "=cmd"])
    one = next(one for one in pseudonymize(made, aliases).submissions if one.name == aliases["ana"])
    assert (
        one.lessons[0].notes == (f"{aliases['ana']}/x.ipynb was passed over in the analysis.",)
        and one.message == f"{aliases['ana']} cannot be opened."
    )
    assert '"\'=cmd"' in (tmp_path / "names.csv").read_text() and choose(tmp_path, ["=cmd"])["=cmd"] == aliases["=cmd"]
    (tmp_path / "names.csv").write_text("something,else\n")
    with pytest.raises(InputError, match="is not a list of pseudonyms"):
        choose(tmp_path, ["ana"])

"""class.toml: what holds for a class, read as the command line is; and what is late, by the platform's word, to the second."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import subprocess
from pathlib import Path

import pytest

from grader.cli import main, options
from grader.course.course import open_course
from grader.grading import lateness, scheme
from grader.grading.collecting.recognition import commit_time
from grader.grading.journal import load
from grader.grading.lateness import CollectedWork
from grader.grading.scheme import MarkingScheme
from grader.judging.verdict import Verdict
from tests.grading.test_handed_in import FIRST, SECOND, hand_in
from tests.mixing_course import COURSE
from tests.submission.test_roster import CANVAS

ONE, TWO, *_ = COURSE.exercises[FIRST]
FULL = 2 * len(COURSE.exercises[FIRST])
WHOLE = f"""# the class of autumn
lessons = ["{FIRST[:2]}", 2]
core = false
partial = true
max-points = 10
due = 2026-10-01T11:00:00+02:00
grace = "15 min"
penalty = "10%"
roster = "roster.csv"
assignment = "Week 1 (815)"
seed = 8

[weights]
{ONE} = 3
"{TWO}" = 0.5

[extensions]
"ada.lovelace" = "2 days"
"""


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def place(tmp_path):
    """A class of two, who handed in at half past nine."""
    folder = hand_in(tmp_path / "class", **{"ada.lovelace": (FIRST,), "g.hopper": (FIRST,)})
    (folder / "roster.csv").write_text(CANVAS.replace("1906-12-09", "g.hopper"))
    (folder / "collected.csv").write_text(
        "learner,file,state,late,submitted\n"
        + "".join(f"{one},{FIRST}.ipynb,placed,,2026-10-01 09:30:00+00:00\n" for one in ("ada.lovelace", "g.hopper"))
    )
    return folder


def test_the_file_is_read_as_the_options_are(graded, place, tmp_path):
    given = (
        f"--lessons 01,02 --no-core --partial --max-points 10 --due 2026-10-01T09:00Z --grace 15m --penalty 10% --seed 8 \
--roster {place}/roster.csv --assignment".split()
        + ["Week 1 (815)", "--extensions", "ada.lovelace=2 d"]
    )
    (tmp_path / "w").write_text(f"{ONE},3\n{TWO},0.5\n")
    assert graded(place, tmp_path / "a", *given, "--weights", str(tmp_path / "w")) == 0
    (place / "class.toml").write_text(WHOLE)
    assert graded(place, tmp_path / "b") == 0
    one, other = (load(tmp_path / name / "journal.jsonl").settings for name in "ab")
    assert dataclasses.replace(one, set_by=other.set_by) == other and set(one.set_by) == set(other.set_by)
    for name in ("canvas.csv", "grades.csv", "attention.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_report_says_what_counted_and_where_it_was_set(graded, place, tmp_path, capsys):
    (place / "class.toml").write_text(WHOLE)
    assert graded(place, tmp_path / "out", "--penalty", "2") == 0
    seen = capsys.readouterr()
    assert "not graded" not in seen.err, "the file that class.toml names as the roster is nobody's work"
    told = seen.out.splitlines()[0]
    heading, _, counted = told.removesuffix(". All else is the course's.").partition(": ")
    assert heading == "What counted, and where it was set" and sorted(counted.split("; ")) == sorted(
        [
            f"lessons {FIRST}, {SECOND} (class.toml, line 2)",
            "no-core (class.toml, line 3)",
            "partial (class.toml, line 4)",
            "max-points 10 (class.toml, line 5)",
            "due 2026-10-01 09:00 UTC (class.toml, line 6)",
            "grace 15 minutes (class.toml, line 7)",
            "penalty 2 points a day (--penalty)",
            "roster with 2 learners (class.toml, line 9)",
            "assignment Week 1 (815) (class.toml, line 10)",
            "seed 8 (class.toml, line 11)",
            "weights for 2 exercises (class.toml, line 13)",
            "extensions for 1 learner (class.toml, line 17)",
        ]
    )
    assert "penalty 2 points a day (--penalty)" in (tmp_path / "out" / "report.html").read_text()
    others = scheme.RunSettings(set_by={"seed_per_learner": "class.toml, line 1"})
    assert ": no-seed-per-learner (class.toml" in scheme.describe_choices(others)
    assert json.loads((tmp_path / "out" / "report.json").read_text())["notes"][0] == told


def test_what_is_changed_in_the_file_is_a_change_of_the_run_and_so_is_what_no_longer_stands_there(
    graded, place, capsys
):
    out = place.parent / "out"
    (place / "class.toml").write_text("due = 2026-10-01T09:00:00Z\npenalty = 2\n")
    assert graded(place, out) == 0
    assert [one["total"] for one in table(out / "grades.csv")] == [str(FULL - 2)] * 2
    assert graded(place, out, "--resume") == 0 and not list(place.parent.glob("out.backup*")), "nothing changed"
    (place / "class.toml").write_text("due = 2026-10-01T09:00:00Z\n")
    assert graded(place, out, "--resume") == 2
    assert "--penalty 2 points a day (now none)" in capsys.readouterr().err
    assert graded(place, out, "--rescore") == 0 and graded.ran == []
    assert [one["total"] for one in table(out / "grades.csv")] == [str(FULL)] * 2
    (place / "class.toml").unlink()
    assert graded(place, out, "--resume") == 0, "without the file the journal's settings go on"
    assert load(out / "journal.jsonl").settings.due == "2026-10-01T09:00:00+00:00"


@pytest.mark.parametrize(
    "said, told",
    [
        ("lessons = '01'\npennalty = 2\n", "class.toml, line 2: there is no setting 'pennalty'; did you mean penalty?"),
        ("qqqq = 1", "line 1: there is no setting 'qqqq'; there are timeout, seed, lessons"),
        ("jobs = 4", "line 1: jobs is about one call, not about the class; give --jobs to the command."),
        ("\n\nseed = 'seven'", "line 3: 'seven' is not a whole number of 0 or more."),
        ("seed = true", "line 1: seed is neither true nor false, not True."),
        ("partial = 'yes'", "line 1: partial is true or false, not 'yes'."),
        ("seed = {a = 1}", "line 1: seed is one value, not a table."),
        ("require-isolation = 'some'", "line 1: require-isolation is process or full, not 'some'."),
        ("due = 2026-10-01", "line 1: '2026-10-01' is not a time such as '2026-11-20 23:59'"),
        (
            "due = '2026-10-01 09:00 Europe/Atlantis'",
            "line 1: '2026-10-01 09:00 Europe/Atlantis' is not a time such as",
        ),
        ("grace = 15", "line 1: '15' is not a duration such as '15 min'"),
        ("penalty = '120%'", "line 1: '120%' is neither points, such as 12, nor a percentage"),
        ("penalty = inf", "line 1: 'inf' is neither points"),
        ("lessons = ['33']", "line 1: there is no lesson '33'"),
        ("exercises = ['share']", "line 1: there is no exercise 'share'; did you mean shares?"),
        ("[weights]\nshares = 1\nshare = 2", "line 3: there is no exercise 'share'"),
        ("weights = {shares = -1}", "line 1: '-1' is not a number of points"),
        ("weights.share = 1", "line 1: there is no exercise 'share'"),
        ("[extensions]\nada = 'soon'", "line 2: 'soon' is not a time"),
        ("seed = \n", "class.toml is not TOML: Invalid value (at line 1"),
        ("seed = 1\nseed = 2\n", "class.toml is not TOML: Cannot overwrite a value (at line 2"),
        (f"seed = {'9' * 5_000}\n", "class.toml is not TOML: "),
        (f"seed = {'[' * 5_000}\n", "class.toml is not TOML: "),
        ("follow-through = '50%'\nfollow_through = '20%'\n", "class.toml, line 2: follow_through is set twice"),
        ("roster = 'nowhere.csv'", "nowhere.csv: No such file"),
    ],
)
def test_what_is_no_setting_or_none_of_the_right_kind_is_a_sentence(graded, place, capsys, said, told):
    (place / "class.toml").write_text(said)
    assert graded(place, place.parent / "out") == 2 and graded.ran == []
    assert told in capsys.readouterr().err


def test_every_setting_of_a_class_can_stand_in_the_file():
    from grader.cli.class_settings import _option_name

    for name in {one.attribute for one in options.CLASS} - set(options.OF_THE_CALL):
        assert _option_name(name) == _option_name(name.replace("_", "-")) == name


# --- what is late, and what that costs -------------------------------------------------------


def late(when: str, *, full: float = 10, marked: bool = False, who: str = "ada", **scheme) -> tuple[str, float]:
    notes = CollectedWork({"a.ipynb": (marked, when)})
    return notes.late(
        MarkingScheme(**{"due": "2026-10-01T09:00:00+00:00", "penalty": (10, True)} | scheme), (who,), full
    )


@pytest.mark.parametrize(
    "when, grace, off",
    [
        ("2026-10-01 09:00:00+00:00", 0, 0),
        ("2026-10-01 09:00:01+00:00", 0, 1),
        ("2026-10-01 09:15:00+00:00", 900, 0),
        ("2026-10-01 09:15:01+00:00", 900, 1),
        ("2026-10-02 09:00:00+00:00", 0, 1),
        ("2026-10-02 09:00:01+00:00", 0, 2),
        ("2026-10-02 11:00:01+02:00", 0, 2),
        ("2026-10-21 09:00:00+00:00", 0, 20),
    ],
)
def test_each_day_begun_costs_the_same_and_the_grace_is_in_time(when, grace, off):
    assert late(when, grace=grace)[1] == off
    assert late(when, grace=grace, penalty=(1, False), full=70)[1] == off
    assert late(when, grace=grace, penalty=None)[1] == 0 and bool(late(when, grace=grace, penalty=None)[0]) == bool(off)


@pytest.mark.parametrize(
    "longer, who, off",
    [
        ({"ada": 7200}, "ada", 0),
        ({"ada": 7199}, "ada", 1),
        ({"ada": "2026-10-01T11:00:00+00:00"}, "ada", 0),
        ({"ada": 7200}, "bob", 1),
        ({"ada": "2026-09-30T11:00:00+00:00"}, "ada", 1),
    ],
)
def test_an_extension_is_of_one_learner(longer, who, off):
    assert late("2026-10-01 11:00:00+00:00", extensions=longer, who=who)[1] == off


def test_what_the_platform_marks_late_without_a_time_costs_nothing_and_says_so():
    said, off = late("", marked=True)
    assert off == 0 and said == (
        "Handed in late, as the platform says: a.ipynb. By how much it does not say, so nothing is taken off."
    )
    assert late("", marked=True, penalty=None) == ("Handed in late, as the platform says: a.ipynb.", 0)


def test_points_are_shown_before_and_after_and_never_below_nothing(graded, place, tmp_path, capsys):
    said = "due = '2026-10-01 08:00 UTC'\npenalty = '15%'\n[extensions]\n'ada.lovelase' = '2 days'\n"
    (place / "class.toml").write_text(said)
    graded.made["g.hopper", ONE] = Verdict(ONE, "failed", "x")
    assert graded(place, tmp_path / "out") == 0
    off = round(0.15 * FULL, 2)
    rows = table(tmp_path / "out" / "grades.csv")
    assert [(float(one["before"]), float(one["penalty"]), float(one["total"])) for one in rows] == [
        (FULL, off, round(FULL - off, 2)),
        (FULL - 2, off, round(FULL - 2 - off, 2)),
    ]
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"{FULL - off:g} of {FULL} points ({FULL} before {off:g} were taken off for being late)" in page
    assert (
        "an extension is for ada.lovelase, who is not in the folder; did you mean ada.lovelace?"
        in capsys.readouterr().err
    )
    assert f"({FULL} before {off:g}" in (tmp_path / "out" / "feedback" / "ada.lovelace.html").read_text()
    (place / "class.toml").write_text("due = '2026-10-01 08:00 UTC'\npenalty = 500\n")
    assert graded(place, tmp_path / "out", "--rescore") == 0
    assert [one["total"] for one in table(tmp_path / "out" / "grades.csv")] == ["0", "0"]
    assert f"0 of {FULL} points ({FULL} before {FULL} were taken off" in (tmp_path / "out" / "report.html").read_text()


def test_a_file_of_another_lesson_makes_nobody_late(graded, place, tmp_path):
    with (place / "collected.csv").open("a") as file:
        file.write(f"ada.lovelace,{SECOND}.ipynb,placed,,2026-11-01 09:30:00+00:00\n")
    assert graded(place, tmp_path / "out", "--due", "2026-10-01T09:30Z", "--penalty", "1") == 0
    assert [one["late"] for one in table(tmp_path / "out" / "grades.csv")] == ["", ""]


def test_an_attempt_that_was_replaced_makes_nobody_late(place):
    backup = "backups/ada.lovelace/2026-10-01-080000"
    rows = [("old", "placed", "late"), ("old", f"{backup}/old.ipynb", "late"), ("new", "placed", "")]
    rows += [
        ("'-a b", "placed", "late"),
        ("'-a b", f"{backup}-2/-a  b.ipynb", ""),
    ]  # an older download, collected later
    (place / "collected.csv").write_text(
        "learner,file,state,late,original\n"
        + "".join(f"ada.lovelace,{name}.ipynb,{state},{late},{name}\n" for name, state, late in rows)
    )
    (place / "ada.lovelace" / "-a  b.ipynb").touch()
    notes = lateness.read(open_course(), place, [FIRST])["ada.lovelace"]
    assert notes.files == {"new.ipynb": (False, ""), "'-a b.ipynb": (True, "")} and notes.older
    assert notes.paths == {"new.ipynb": "new", "'-a b.ipynb": "'-a b"}


# --- a commit's date -------------------------------------------------------------------------


def commit(folder: Path, when: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{FIRST}.ipynb").write_text(json.dumps(open_course().pristine(FIRST)))
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for call in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run(["git", *call], cwd=folder, check=True, env={**os.environ, **names, "GIT_COMMITTER_DATE": when})
    return folder


def test_a_checkout_was_handed_in_when_its_last_commit_was_made(tmp_path):
    top = tmp_path / "hw-submissions"
    commit(top / "hw-ada", "2026-10-01T11:00:00+02:00")
    git = commit(top / "hw-bob", "2026-10-02T11:00:00+02:00")
    subprocess.run(["git", "gc", "-q"], cwd=git, check=True)  # the branch and its objects are packed now
    (tmp_path / "roster.csv").write_text("github_username,name\nada,Ada\nbob,Bob\n")
    to = tmp_path / "to"
    assert main(["collect", str(top), "--to", str(to), "--roster", str(tmp_path / "roster.csv")]) == 0
    assert {row["learner"]: row["submitted"] for row in table(to / "collected.csv")} == {
        "ada": "2026-10-01 09:00:00+00:00",
        "bob": "2026-10-02 09:00:00+00:00",
    }


def test_nothing_that_a_checkout_says_is_run(tmp_path):
    git = commit(tmp_path / "a", "2026-10-01T11:00:00+02:00")
    (git / ".git" / "config").write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {tmp_path}/ran\n\tsshCommand = touch {tmp_path}/ran\n"
        f"[log]\n\tshowSignature = true\n[gpg]\n\tprogram = touch {tmp_path}/ran\n"
    )
    assert commit_time(git, tmp_path) == "2026-10-01 09:00:00+00:00" and not (tmp_path / "ran").exists()
    for said in ("", "ref: ../../../x", "ref: refs/../../x", "0" * 40, "--help", "ref: refs/heads/none"):
        (git / ".git" / "HEAD").write_text(said)
        assert commit_time(git, tmp_path) == ""
    assert commit_time(tmp_path / "none", tmp_path) == ""

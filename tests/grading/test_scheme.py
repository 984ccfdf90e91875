"""A run that continues forgets nothing of what it was begun with, and is changed on purpose only."""

from __future__ import annotations

import argparse
import csv
import json

import pytest

from grader.cli import class_settings, options, parser
from grader.grading import batch
from grader.grading.journal import load
from grader.grading.scheme import RunSettings
from grader.judging.verdict import Verdict
from tests.grading.test_handed_in import FIRST, hand_in
from tests.mixing_course import COURSE
from tests.submission.test_roster import CANVAS

ONE, TWO, *_ = COURSE.exercises[FIRST]
CHOICES = {  # of each option a value, and another one
    "seed": (("--seed", "8"), ("--seed", "9")),
    "timeout": (("--timeout", "3"), ("--timeout", "4")),
    "lessons": (("--lessons", "01,02"), ("--lessons", "01")),
    "exercises": (("--exercises", ONE), ("--exercises", TWO)),
    "core": (("--core",), ("--no-core",)),
    "weights": (("--weights", "{here}/seven"), ("--weights", "{here}/nine")),
    "partial": (("--partial",), ("--no-partial",)),
    "max_points": (("--max-points", "10"), ("--max-points", "20")),
    "assignment": (("--assignment", "A (1)"), ("--assignment", "B (2)")),
    "roster": (("--roster", "{here}/all"), ("--roster", "{here}/fewer")),
    "by": (("--roster", "{here}/all", "--by", "SIS Login ID"), ("--roster", "{here}/all", "--by", "SIS User ID")),
    "follow_through": (("--follow-through", "50%"), ("--follow-through", "100%")),
    "seed_per_learner": (("--seed-per-learner",), ("--no-seed-per-learner",)),
    "anonymous": (("--anonymous",), ("--no-anonymous",)),
    "due": (("--due", "2026-10-01T08:00Z"), ("--due", "2026-10-01T09:00Z")),
    "grace": (("--due", "2026-10-01T08:00Z", "--grace", "10 min"), ("--due", "2026-10-01T08:00Z", "--grace", "1 hour")),
    "penalty": (("--due", "2026-10-01T08:00Z", "--penalty", "10%"), ("--due", "2026-10-01T08:00Z", "--penalty", "1")),
    "extensions": (
        ("--due", "2026-10-01T08:00Z", "--extensions", "ada.lovelace=10 min"),
        ("--due", "2026-10-01T08:00Z", "--extensions", "ada.lovelace=2026-10-01T08:29Z"),
    ),
}
MARKS = sorted(set(CHOICES) - {"seed", "timeout", "lessons", "exercises", "core", "follow_through", "seed_per_learner"})


@pytest.fixture
def run(graded, tmp_path, monkeypatch):
    """run(*options) -> exit code, over a class of two; run.files(): the reports as they are now; run.settings: of the last run."""
    folder, out = hand_in(tmp_path / "class", **{"ada.lovelace": (FIRST,), "g.hopper": (FIRST,)}), tmp_path / "out"
    for name, text in {
        "seven": f"{ONE},7\n",
        "nine": f"{ONE},9\n",
        "all": CANVAS.replace("1906-12-09", "g.hopper"),
        "fewer": CANVAS.partition('"Hopper')[0],
    }.items():
        (tmp_path / name).write_text(text)
    (folder / "collected.csv").write_text(
        "learner,file,state,late,submitted\nada.lovelace,x.ipynb,placed,,2026-10-01 08:30:00+00:00\n"
    )
    graded.made["g.hopper", ONE] = Verdict(ONE, "failed", "x", cases=(1, 3))
    real = batch.grade_all
    monkeypatch.setattr(
        batch,
        "grade_all",
        lambda left, settings, pool: setattr(made, "settings", settings) or real(left, settings, pool),
    )

    def made(*options: str) -> int:
        return graded(folder, out, *(option.format(here=tmp_path) for option in options))

    made.files = lambda: {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.name not in ("journal.jsonl", "names.csv")
    }
    made.out, made.graded = out, graded
    return made


def options_of_class() -> set[str]:
    (commands,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return {action.dest for action in commands.choices["class"]._actions} - {"help"}


def test_every_option_is_kept_in_the_journal_or_has_a_reason_why_not():
    kept, alone = set(options.OF_THE_RUN), set(options.OF_THE_CALL)
    assert kept | alone == options_of_class() and not kept & alone
    assert set(CHOICES) == kept - {"course", "require_isolation"}, "an option that is kept belongs in these tests"


def test_the_journal_s_first_line_has_all_that_is_kept(run):
    assert run() == 0
    first = json.loads((run.out / "journal.jsonl").read_text().splitlines()[0])["settings"]
    assert set(first) == {*options.OF_THE_RUN.values(), "set_by"}


@pytest.mark.parametrize("option", CHOICES)
@pytest.mark.parametrize("continues", [("--resume",), ("--regrade", "g.hopper")])
def test_a_run_that_continues_keeps_every_setting(run, option, continues):
    given, _ = CHOICES[option]
    assert run(*given) == 0
    settings, about, files = run.settings, load(run.out / "journal.jsonl").settings, run.files()
    assert run(*continues) == 0
    assert (run.settings, load(run.out / "journal.jsonl").settings, run.files()) == (settings, about, files)
    assert run(*continues, *given) == 0 and run.files() == files, "the same setting, named again, is no other"


@pytest.mark.parametrize("option", CHOICES)
@pytest.mark.parametrize("first", [0, 1])
def test_another_setting_is_refused_by_name(run, capsys, option, first):
    given, other = CHOICES[option][first], CHOICES[option][1 - first]
    assert run(*given) == 0
    files = run.files()
    capsys.readouterr()
    assert run("--resume", *other) == 2
    told = capsys.readouterr().err
    name = "--" + options.OF_THE_RUN[option].removesuffix("_s").replace("_", "-")
    assert (
        "was begun with other settings" in told
        and f" {name} " in told
        and "name another folder to start a new run." in told
    )
    assert ("--rescore" in told) == (option in MARKS), "what would have to be graded again cannot be rescored"
    assert run.files() == files and not list(run.out.parent.glob("out.backup*"))


@pytest.mark.parametrize("option", MARKS)
def test_the_scheme_is_changed_on_purpose_and_stays_so(run, tmp_path, capsys, option):
    before, after = CHOICES[option]
    assert run(*after) == 0
    files = run.files()
    run.out.rename(tmp_path / "other")
    assert run(*before) == 0
    capsys.readouterr()
    assert run("--rescore", *after) == 0 and run.graded.ran == []
    assert "the marking scheme of this run changes: --" in capsys.readouterr().err
    assert run.files() == files and len(list(tmp_path.glob("out.backup*"))) == 1, "the earlier reports are kept"
    assert run("--resume") == 0 and run.files() == files


@pytest.mark.parametrize(
    "core, exercises, counted", [(True, None, (ONE, TWO)), (True, (TWO, "x"), (TWO,)), (False, (TWO,), (TWO,))]
)
def test_of_the_exercises_that_are_named_the_core_s_alone_count_where_that_is_asked(
    monkeypatch, core, exercises, counted
):
    monkeypatch.setattr(type(COURSE), "core_exercises", lambda course: (ONE, TWO))
    chosen = RunSettings(lessons=(FIRST,), exercises=exercises, core=core)
    assert class_settings.grading_settings(chosen).exercises == counted


def test_what_rescore_does_not_name_stays(run):
    assert (
        run("--roster", "{here}/all", "--assignment", "A (1)", "--max-points", "10", "--weights", "{here}/seven") == 0
    )
    assert run("--rescore", "--partial") == 0
    about = load(run.out / "journal.jsonl").settings
    assert (about.partial, about.max_points, about.assignment, about.weights) == (True, 10, "A (1)", {ONE: 7})
    assert "4711" in (run.out / "canvas.csv").read_text()
    assert (
        run("--rescore", "--weights", "none", "--roster", "none", "--max-points", "none", "--assignment", "none") == 0
    )
    about = load(run.out / "journal.jsonl").settings
    assert [getattr(about, key) for key in ("weights", "roster", "max_points", "assignment", "partial")] == [
        None,
        None,
        None,
        "",
        True,
    ]
    assert "4711" not in (run.out / "canvas.csv").read_text()


def test_what_differs_in_a_file_is_named(run, capsys):
    assert run("--roster", "{here}/all", "--weights", "{here}/seven") == 0
    capsys.readouterr()
    assert run("--resume", "--roster", "{here}/fewer", "--weights", "{here}/nine") == 2
    told = capsys.readouterr().err
    assert f"--weights (differs for {ONE})" in told and "--roster (differs for g.hopper)" in told


def test_whose_extension_differs_and_whose_total_moved_is_named(run, capsys):
    due = ("--due", "2026-10-01T08:00Z", "--penalty", "1")
    assert run(*due, "--extensions", "ada.lovelace=1 min") == 0
    capsys.readouterr()
    assert run("--resume", "--extensions", "ada.lovelace=2 days") == 2
    told = capsys.readouterr().err
    assert "--extensions (differs for ada.lovelace). Set these as they were to continue" in told
    assert run("--rescore", "--extensions", "ada.lovelace=2 days") == 0
    total = next(csv.DictReader((run.out / "grades.csv").open()))["total"]
    assert f"Totals that changed: ada.lovelace {float(total) - 1:g} → {total}." in capsys.readouterr().err
    assert run("--resume") == 0 and "Totals that changed" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, told",
    [
        (
            ("--penalty", "10%", "--grace", "5 min"),
            "Without --due nobody is late, so --grace and --penalty change nothing.",
        ),
        (("--extensions", "ada.lovelace=2 d"), "Without --due nobody is late, so --extensions change nothing."),
        (
            ("--due", "2026-10-02 08:00Z", "--extensions", "ada.lovelace=2026-10-01 08:00Z"),
            "The extension of ada.lovelace ends before the work was due.",
        ),
    ],
)
def test_what_can_make_nobody_late_is_told(run, capsys, options, told):
    assert run(*options) == 0 and told in capsys.readouterr().err


def test_a_time_of_one_s_own_needs_no_other(run, capsys):
    assert run("--penalty", "1", "--extensions", "ada.lovelace=2026-10-01 08:00Z") == 0
    assert "change nothing" not in capsys.readouterr().err


def test_a_continued_run_says_what_it_keeps(run, capsys):
    assert run("--weights", "{here}/seven", "--roster", "{here}/all", "--max-points", "10", "--partial") == 0
    capsys.readouterr()
    assert run("--resume") == 0
    assert (
        "the run continues with --weights for 1 exercise, --partial, --max-points 10, --roster with 2 learners."
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("options", [("--resume",), ("--rescore", "--partial")])
def test_another_course_or_less_isolation_is_refused(run, capsys, monkeypatch, options):
    assert run() == 0
    with monkeypatch.context() as patch:
        patch.setattr(class_settings, "course_digest", lambda course: "another")
        assert run(*options) == 2 and "another course, or another version of this one" in capsys.readouterr().err
    monkeypatch.setattr(batch, "isolation_of", lambda pool, settings: "full")
    assert run(*options) == 2
    told = capsys.readouterr().err
    assert (
        "isolation process (now full). Continue it as it was begun, or name another folder" in told
        and "Leave these" not in told
    )


def test_a_rescored_run_is_not_finished_until_its_reports_are_written(run, monkeypatch):
    from grader.cli import class_reports

    assert run() == 0
    with monkeypatch.context() as patch:
        patch.setattr(class_reports, "write_reports", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run("--rescore", "--partial") == 130
    assert run() == 2, "as with every run that was stopped, --resume is to continue it"
    assert run("--resume") == 0 and load(run.out / "journal.jsonl").settings.partial is True

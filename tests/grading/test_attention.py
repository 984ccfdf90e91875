"""Whom to look at before grades are imported, and why: in the terminal, on the page and in attention.csv, from what was handed in."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from grader.authoring.build import solution_notebook
from grader.course import references
from grader.course.course import open_course
from grader.grading import batch, grade as grading
from grader.grading.class_folder import ClassEntry, pack
from grader.grading.journal import from_line
from grader.judging.verdict import Verdict
from grader.reports import similarity
from grader.reports.report import LessonReport, SubmissionReport
from grader.submission.submission import read_submission
from grader.util import libraries, links
from tests import toy_course as toy
from tests.grading.test_handed_in import FIRST, SECOND, THIRD, hand_in
from tests.mixing_course import COURSE

NAMES = COURSE.exercises[FIRST]


def rows(out: Path) -> dict[str, list[str]]:
    """The reasons by learner."""
    found: dict[str, list[str]] = {}
    with (out / "attention.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["learner"], []).append(row["why"])
    return found


def test_the_list_ends_a_run_and_stands_on_the_page_and_in_a_file(graded, tmp_path, capsys):
    folder, out = (
        hand_in(tmp_path / "class", ada=(FIRST,), bob=(FIRST,), cyd=(FIRST,), dan=(FIRST,), eve=(FIRST,), fay=()),
        tmp_path / "out",
    )
    (folder / "bob" / "more.zip").write_bytes(b"PK")
    (folder / "fay" / f"{FIRST}.ipynb.txt").write_text("{}")
    (folder / "gil.ipynb.txt").write_text("{}")
    (folder / "collected.csv").write_text(
        "learner,file,state,late,source,original,collected\n"
        f"cyd,{FIRST}.ipynb,backups/cyd/{FIRST}.1.ipynb,late,a.zip,x,now\ncyd,{FIRST}.ipynb,placed,late,a.zip,x,now\n"
        f"dan,{FIRST}.ipynb,placed,late,a.zip,x,now\ndan,{FIRST}.ipynb,placed,,b.zip,x,later\n"
    )
    graded.made["eve", NAMES[1]] = Verdict(
        NAMES[1], "could_not_grade", "x", stage=grading.ENVIRONMENT, details=("Install it with pip.",)
    )
    assert graded(folder, out) == 3
    assert rows(out) == {
        "bob": ["more.zip is an archive; it was not opened. Unpack more.zip first."],
        "cyd": [
            f"Handed in late, as the platform says: {FIRST}.ipynb.",
            "Earlier attempts are kept among the backups of `grader collect`.",
        ],
        "eve": [f"Could not be graded: {NAMES[1]}. Install it with pip."],
        "fay": [f"{FIRST}.ipynb.txt does not end in .ipynb; it was not read. Rename it to {FIRST}.ipynb."],
        "gil.ipynb.txt": ["Not graded, because it is neither a learner's folder nor a notebook."],
    }, "and of dan the latest file was in time"
    told = capsys.readouterr().out.splitlines()
    at = told.index("Before you import the grades, look at (all of it in attention.csv):")
    assert [line.partition(":")[0].strip() for line in told[at + 1 : at + 6]] == list(rows(out))
    assert told[at + 2].endswith(f"{FIRST}.ipynb. (and 1 more)") and told[-1].startswith("The reports are in")
    page = (out / "report.html").read_text()
    assert page.index("Before you import the grades") < page.index(">Scores<") and all(
        why in page for why in rows(out)["cyd"]
    )
    with (out / "grades.csv").open(newline="") as file:
        assert [row["late"] for row in csv.DictReader(file)] == ["", "", "late", "", "", ""]


def test_those_with_the_same_reasons_are_one_row_and_what_proves_nothing_comes_last(graded, tmp_path, capsys):
    folder, out = (
        hand_in(tmp_path / "class", **dict.fromkeys(("ada", "bob", "cyd", "dan"), (FIRST, SECOND))),
        tmp_path / "out",
    )
    graded.codes.update(dict.fromkeys(("ada", "bob", "dan"), answers()))
    for name in ("cyd", "dan"):
        (folder / name / "more.zip").write_bytes(b"PK")
    assert graded(folder, out) == 0
    unpack = "more.zip is an archive; it was not opened. Unpack more.zip first."
    assert rows(out) == {
        "ada": [similarity.REMARK],
        "bob": [similarity.REMARK],
        "cyd": [unpack],
        "dan": [unpack, similarity.REMARK],
    }
    told = capsys.readouterr().out.splitlines()
    at = told.index("Before you import the grades, look at (all of it in attention.csv):")
    assert [line.strip() for line in told[at + 1 : at + 4]] == [
        f"cyd: {unpack}",
        f"dan: {unpack} (and 1 more)",
        f"ada and bob: {similarity.REMARK}",
    ]
    page = (out / "report.html").read_text()
    assert '<a href="#learner-0">ada</a>, <a href="#learner-1">bob</a></th>' in page
    assert 'href="similarity.html"' in page and "and similarity.html for code that is alike." in told[-1]


def test_one_file_of_two_learners_is_told_of_both_and_only_where_somebody_worked_in_it(graded, tmp_path):
    work, one, out = (FIRST, SECOND), (FIRST,), tmp_path / "out"
    folder = hand_in(tmp_path / "class", ada=work, bob=work, cyd=one, dan=one, eve=one)
    for source, target, lesson in (
        ("ada", "bob", FIRST),
        ("ada", "bob", SECOND),
        ("ada", "dan", FIRST),
        ("cyd", "eve", FIRST),
    ):
        shutil.copyfile(folder / source / f"{lesson}.ipynb", folder / target / f"{lesson}.ipynb")
    for name in ("ada", "bob"):
        (folder / name / f"{FIRST} (2).ipynb").touch()  # empty files are alike by themselves
    for name in ("cyd", "eve"):
        graded.made |= {(name, exercise): Verdict(exercise, "not_started", "x") for exercise in NAMES}
    assert graded(folder, out, "--lessons", "01,02") == 0
    same = "The same file, byte for byte, as {} handed in: {}.ipynb."
    assert rows(out) == {
        "ada": [same.format("bob and dan", FIRST), same.format("bob", SECOND)],
        "bob": [same.format("ada and dan", FIRST), same.format("ada", SECOND)],
        "dan": [same.format("ada and bob", FIRST)],
    }
    assert graded(folder, out, "--rescore", "--anonymous") == 0
    told = (out / "attention.csv").read_text()
    assert "byte for byte" in told and not any(name in told for name in ("ada", "bob", "dan"))
    collected = "learner,file,state,late,source,original,collected\n"
    group = "".join(
        f"{name},{FIRST}.ipynb,placed,,a.zip,submission_1/{FIRST}.ipynb,now\n" for name in ("ada", "bob", "dan")
    )
    (folder / "collected.csv").write_text(collected + group)
    assert graded(folder, out, "--rescore", "--no-anonymous") == 0
    assert rows(out) == {"ada": [same.format("bob", SECOND)], "bob": [same.format("ada", SECOND)]}, "a group's is one"


def test_a_class_with_nothing_to_look_at_says_so(graded, tmp_path, capsys):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,), bob=(FIRST,)), tmp_path / "out"
    assert graded(folder, out) == 0 and rows(out) == {}
    assert "Nothing needs a look before you import the grades." in capsys.readouterr().out
    assert "Before you import the grades" not in (out / "report.html").read_text()


TIMES = "learner,file,state,late,source,original,collected,submitted\n" + "".join(
    f"{name},{FIRST}.ipynb,placed,,a.zip,x,now,{when}\n"
    for name, when in {
        "ada": "2026-10-01 09:00:00+00:00",
        "bob": "2026-10-01 09:00:01+00:00",
        "cyd": "2026-10-01 12:30:00+00:00",
        "dan": "2026-10-05 09:00:00+00:00",
        "eve": "soon",
    }.items()
)


def test_what_was_handed_in_after_it_was_due_is_late(graded, tmp_path, capsys):
    folder, out = (
        hand_in(tmp_path / "class", **dict.fromkeys(("ada", "bob", "cyd", "dan", "eve"), (FIRST,))),
        tmp_path / "out",
    )
    (folder / "collected.csv").write_text(TIMES)
    assert graded(folder, out) == 0 and rows(out) == {}
    assert "--due '2026-11-20 23:59' names who was late." in capsys.readouterr().err
    assert graded(folder, out, "--rescore", "--due", "2026-10-01T11:00+02:00") == 0
    assert rows(out) == {
        "bob": ["Handed in at 2026-10-01 09:00 UTC, 1 second after it was due."],
        "cyd": ["Handed in at 2026-10-01 12:30 UTC, 3 hours 30 minutes after it was due."],
        "dan": ["Handed in at 2026-10-05 09:00 UTC, 4 days after it was due."],
    }
    assert "--due '" not in capsys.readouterr().err
    assert graded(folder, out, "--rescore", "--due", "none") == 0 and rows(out) == {}
    assert (
        graded(folder, out, "--due", "tomorrow") == 2 and "'tomorrow' is not a time such as" in capsys.readouterr().err
    )


def test_where_nothing_says_when_it_was_handed_in_nobody_is_late_and_that_is_told(graded, tmp_path, capsys):
    folder = hand_in(tmp_path / "class", ada=(FIRST,))
    assert graded(folder, tmp_path / "out", "--due", "2026-10-01 09:00Z") == 0
    assert "Nothing says when the work was handed in, so --due makes nobody late." in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "\0", "a,b\n1,2\n", TIMES + "x" * 200_000, '"learner","file\n'])
def test_a_table_that_is_not_collect_s_is_named(graded, tmp_path, capsys, content):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,)), tmp_path / "out"
    (folder / "collected.csv").write_text(content)
    assert graded(folder, out) == 0 and rows(out) == {}
    assert (
        "collected.csv is not a table that `grader collect` wrote, so it is not known who was late."
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "threshold, said",
    [
        ("100%", "below --min-score 100%: bob (0 of {most} points) and cyd (0 of {most} points)."),
        ("3", "below --min-score 3: bob (0 of {most} points) and cyd"),
        ("0", None),
    ],
)
def test_who_is_below_the_score_that_was_asked_for_is_named(graded, tmp_path, capsys, threshold, said):
    folder = hand_in(tmp_path / "class", ada=(FIRST,), bob=(), cyd=(), dan=(FIRST,))
    assert graded(folder, tmp_path / "out", "--min-score", threshold, fails=("dan",)) == 3
    told = capsys.readouterr().err
    assert said.format(most=2 * len(NAMES)) in told if said else "below" not in told


def test_without_torch_nothing_is_graded(graded, tmp_path, capsys, monkeypatch):
    folder = hand_in(tmp_path / "class", ada=(FIRST, THIRD), bob=(FIRST, THIRD))
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    assert graded(folder, tmp_path / "out") == 2 and graded.ran == [] and not (tmp_path / "out").exists()
    told = capsys.readouterr().err
    assert (
        "lesson 03 needs torch, and nothing was graded: torch is not installed in this Python;" in told
        and "pip install" in told
    )
    assert graded(folder, tmp_path / "out", "--lessons", "01") == 0, "lesson 01 needs none"


@pytest.mark.parametrize(
    "files, why",
    [
        ({"01_toy.ipynb": b"{"}, "01_toy.ipynb is not JSON"),
        ({"01_toy.ipynb": b""}, "01_toy.ipynb is empty"),
        ({"01_toy.ipynb": None, "01_toy-Copy1.ipynb": None}, "01_toy-Copy1.ipynb"),
        ({"notes.ipynb": {}}, "belongs to no lesson"),
    ],
)
def test_what_is_read_with_a_doubt_is_on_the_list(monkeypatch, tmp_path, files, why):
    toy.install(monkeypatch)
    for name, content in files.items():
        toy.write(
            tmp_path / name, toy.pristine() if content is None else toy.notebook([], "") if content == {} else content
        )
    assert any(why in said for said in grading.grade_submission(grading.Settings(open_course()), tmp_path).attention)


@pytest.mark.parametrize(
    "files, told",
    [
        (("03.py",), "No answers to lesson 01, but files that are no notebooks, which are not read: 03.py."),
        (
            ("deep/essay.pdf", "README.md", "x.whl"),
            "lesson 01, but files that are no notebooks, which are not read: deep/essay.pdf.",
        ),
        ((), "No answers to lesson 01."),
        (("README.md", "more.zip"), None),
        (("01_toy.ipynb", "notes.txt"), None),
    ],
)
def test_where_a_lesson_is_missing_what_else_was_handed_in_is_on_the_list(monkeypatch, tmp_path, files, told):
    toy.install(monkeypatch)
    (tmp_path / "ada").mkdir()
    for name in files:
        (tmp_path / "ada" / name).parent.mkdir(exist_ok=True)
        toy.write(tmp_path / "ada" / name, toy.solved())
    packed = pack(ClassEntry("ada", "ada", tmp_path / "ada"))
    try:
        report = from_line(batch.grade_packed(packed, batch.Settings(open_course(), (toy.NAME,)))[0]).report
    finally:
        batch.close_sandboxes()
    found = [sentence for sentence in (*report.attention, *report.lessons[0].notes) if "No answers" in sentence]
    assert len(found) == 2 * bool(told) and all(sentence.endswith(told) for sentence in found)


@pytest.mark.parametrize("place", ["ada", f"ada/{FIRST}.ipynb", "ada/work"])
def test_what_this_computer_does_not_open_costs_no_learner_marks(tmp_path, monkeypatch, place):
    folder, real = hand_in(tmp_path, ada=(FIRST,)), (os.listdir, links.read)
    (folder / "ada" / "work").mkdir()

    def refuse(call):
        def opened(path, *more, **others):
            if Path(path) == folder / place:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return call(path, *more, **others)

        return opened

    monkeypatch.setattr(os, "listdir", refuse(real[0]))
    monkeypatch.setattr(links, "read", refuse(real[1]))
    packed = pack(ClassEntry("ada", "ada", folder / "ada"))
    line, sound = batch.grade_packed(packed, batch.Settings(open_course(), (FIRST,)))
    report = from_line(line).report
    assert sound, "it would be tried again"
    assert report.ungraded == NAMES and report.score is None
    assert any("cannot be opened (Permission denied)" in sentence for sentence in report.attention)
    assert "cannot be opened (Permission denied)" in report.verdicts[0].details[0]


def test_who_handed_in_another_lesson_alone_is_on_the_list(tmp_path):
    folder = hand_in(tmp_path, ada=(FIRST,), bob=(FIRST, SECOND))
    told = "Of the lessons that count here (02 and 03) none was handed in, but 01_mixing."
    assert read_submission(open_course(), folder / "ada", lessons=("02", "03")).attention == (told,)
    assert read_submission(open_course(), folder / "bob", lessons=("02", "03")).attention == ()


def test_what_was_to_be_expected_is_not_on_the_list(monkeypatch, tmp_path):
    toy.install(monkeypatch)
    assert (
        grading.grade_submission(
            grading.Settings(open_course()), toy.write(tmp_path / "01_toy.ipynb", toy.solved())
        ).attention
        == ()
    )
    (tmp_path / "ada" / "backups").mkdir(parents=True)
    toy.write(tmp_path / "ada" / "backups" / "01_toy-2026-01-01-120000.ipynb", toy.solved())
    packed = pack(ClassEntry("ada", "ada", tmp_path / "ada"))
    assert packed.notes[0].startswith("Not read in backups/") and packed.attention == packed.notes[1:]


def test_what_was_not_read_reaches_the_list_and_what_this_machine_lacks_is_not_tried_twice(tmp_path, monkeypatch):
    folder = hand_in(tmp_path / "class", ada=(FIRST,))
    (folder / "ada" / "more.zip").write_bytes(b"PK")
    packed = pack(ClassEntry("ada", "ada", folder / "ada"))
    absent = Verdict(NAMES[0], "could_not_grade", "x", stage=grading.ENVIRONMENT)
    monkeypatch.setattr(
        grading, "_excuse_missing_library", lambda verdict, plan: absent if verdict.exercise == NAMES[0] else verdict
    )
    try:
        line, sound = batch.grade_packed(packed, batch.Settings(open_course(), (FIRST,)))
        assert sound and batch._sandboxes, "nothing is begun afresh"
    finally:
        batch.close_sandboxes()
    report = from_line(line).report
    assert (
        report.attention == ("more.zip is an archive; it was not opened. Unpack more.zip first.",)
        and report.ungraded == NAMES[:1]
    )


def test_what_the_grader_itself_could_not_do_is_tried_again_with_all_things_fresh(tmp_path, monkeypatch):
    packed = pack(ClassEntry("ada", "ada", hand_in(tmp_path / "class", ada=(FIRST,)) / "ada"))
    monkeypatch.setattr(
        grading, "_excuse_missing_library", lambda verdict, plan: grading.could_not_grade(verdict.exercise, "x")
    )
    try:
        line, sound = batch.grade_packed(packed, batch.Settings(open_course(), (FIRST,)))
        assert not sound and not batch._sandboxes and from_line(line).report.ungraded == NAMES
    finally:
        batch.close_sandboxes()


# --- the course's own answers ----------------------------------------------------------------


def answers() -> dict[str, str]:
    return {name: references.solution_text(COURSE, name) for name in (*NAMES, *COURSE.exercises[SECOND])}


def sentence(texts: dict[str, str]) -> str:
    verdicts = tuple(Verdict(name, "passed", "x") for name in texts)
    return similarity.solution_remark(
        open_course(), SubmissionReport("ada", "ada", (LessonReport(FIRST, verdicts, {}, code=texts),))
    )


def test_the_course_s_answers_are_recognized_whatever_their_comments_and_spaces():
    said = sentence(answers())
    assert (
        said.startswith("75 % or more of the longer answers are those of the course's solved notebooks")
        and "proves nothing" in said
    )
    assert (
        sentence({name: "# mine\n" + text.replace(" = ", "  =  ") + "  # done\n" for name, text in answers().items()})
        == said
    )


def test_answers_of_one_s_own_are_not_the_course_s():
    stubs = [
        cell
        for lesson in (FIRST, SECOND)
        for cell in open_course().pristine(lesson)["cells"]
        if cell["metadata"].get("grader", {}).get("role") == "exercise"
    ]
    assert sentence({cell["metadata"]["grader"]["exercise"]: "".join(cell["source"]) for cell in stubs}) == ""
    assert (
        sentence({name: text.replace("return ", "result = 1\n    return ") for name, text in answers().items()}) == ""
    )
    assert not any(sentence({name: text}) for name, text in answers().items()), "one answer may be the same by chance"


def test_the_course_s_answers_reach_the_report(tmp_path):
    for lesson in (FIRST, SECOND):
        (tmp_path / f"{lesson}.ipynb").write_text(json.dumps(solution_notebook(open_course(), lesson)))
    report = grading.grade_submission(grading.Settings(open_course()), tmp_path)
    assert report.score == report.max_score and "course's solved notebooks" in similarity.solution_remark(
        open_course(), report
    )

"""Which lessons a class is graded on where nobody says, who is told of it, and what a class's exit code means."""

from __future__ import annotations

import csv
import json
import os
import time
from pathlib import Path

import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.grading import class_folder
from grader.grading.class_folder import choose_lessons, entries, take_inventory
from grader.grading.journal import load
from grader.submission.submission import read_submission
from grader.util.errors import InputError
from tests.mixing_course import COURSE

_, FIRST, SECOND, THIRD, *_ = COURSE.lessons()


def hand_in(folder: Path, **learners: tuple[str, ...]) -> Path:
    """A folder a learner, with notebooks of these lessons, no two of them the same bytes; none: an empty folder."""
    for at, (name, lessons) in enumerate(learners.items()):
        (folder / name).mkdir(parents=True)
        for lesson in lessons:
            (folder / name / f"{lesson}.ipynb").write_text(json.dumps(open_course().pristine(lesson)) + " " * at)
    return folder


def chosen(folder: Path, kept=()):
    lessons, sentences = choose_lessons(open_course(), take_inventory(open_course(), entries(folder)[0]), kept)
    return list(lessons), sentences


# --- which lessons ---------------------------------------------------------------------------


# Lesson 05 defines what lesson 01 asks for, and no more of its own: its cells alone do not tell which of the two it is.
@pytest.mark.parametrize("lesson", COURSE.lessons()[:4])
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("how", ["metadata", "name", "cells", "empty", "another's metadata"])
def test_a_notebook_is_taken_for_the_lesson_that_it_is_graded_as(tmp_path, lesson, how, cut):
    notebook = open_course().pristine(lesson)
    names = {"name": f"hw {lesson} (2).ipynb", "empty": f"{lesson[:2]}.ipynb", "another's metadata": f"{FIRST}.ipynb"}
    if how in ("name", "cells", "empty"):
        notebook["metadata"].pop("grader")
    if how == "empty":
        notebook = ""
    (tmp_path / "ada").mkdir()
    text = json.dumps(notebook) if notebook else ""
    (tmp_path / "ada" / names.get(how, "mine.ipynb")).write_text(
        text[:-1] if cut else text
    )  # without its end none can be parsed
    assert chosen(tmp_path)[0] == list(read_submission(open_course(), tmp_path / "ada").lessons) == [lesson]


@pytest.mark.parametrize("file", [f"{FIRST}.ipynb", "mine.ipynb"])
def test_a_notebook_of_a_lesson_that_this_hand_out_lacks_is_counted_for_no_lesson(tmp_path, monkeypatch, file):
    folder = hand_in(tmp_path / "class", ada=(SECOND,), bob=(SECOND,), eve=(SECOND,))
    for name in ("cyd", "dan", "zoe"):
        (folder / name).mkdir()
        notebook = open_course().pristine(FIRST)
        notebook["metadata"]["grader"]["lesson"] = THIRD  # whatever its name and its cells resemble
        (folder / name / file).write_text(json.dumps(notebook))
    here = tuple(lesson for lesson in COURSE.lessons() if lesson != THIRD)
    monkeypatch.setattr(type(open_course()), "lessons", lambda course: here)
    assert not read_submission(open_course(), folder / "cyd").lesson_files
    lessons, sentences = chosen(folder)
    assert lessons == [SECOND] and len(sentences) == 1, "nothing else was handed in"


@pytest.mark.parametrize(
    "having, of, taken", [(1, 1, True), (1, 2, True), (2, 4, True), (3, 7, False), (4, 7, True), (2, 5, False)]
)
def test_a_lesson_that_half_of_the_learners_handed_in_is_taken(tmp_path, having, of, taken):
    lessons, sentences = chosen(
        hand_in(tmp_path, **{f"l{at}": (FIRST, SECOND) if at < having else (FIRST,) for at in range(of)})
    )
    assert lessons == ([FIRST, SECOND] if taken else [FIRST])
    assert ("Lessons 01 and 02 are graded" in sentences[0]) == taken
    more = f"--lessons 01,02 would add lesson 02, which {having} of {of} handed in."
    assert sentences[1:] == ([] if taken else [more])


def test_who_handed_in_nothing_or_what_cannot_be_read_changes_no_lesson(tmp_path):
    folder = hand_in(tmp_path / "class", ada=(FIRST,), bob=(FIRST,), cyd=(FIRST,), eve=(), zoe=())
    (folder / "eve" / "essay.ipynb").write_text("{}")
    os.mkfifo(folder / "zoe" / f"{THIRD}.ipynb")
    (folder / "out").symlink_to("/etc")
    lessons, sentences = chosen(folder)
    assert lessons == [FIRST] and "lesson 03, which 1 of 6 handed in." in sentences[1]


def test_where_no_lesson_is_half_of_the_class_s_nothing_is_guessed(tmp_path):
    folder = hand_in(tmp_path / "class", ada=(FIRST,), bob=(SECOND,), eve=(THIRD,))
    with pytest.raises(InputError, match="lesson 01 by 1, lesson 02 by 1, lesson 03 by 1.*--lessons 01,02,03;"):
        chosen(folder)
    with pytest.raises(InputError, match="there is no notebook.*--lessons 00;"):
        chosen(hand_in(tmp_path / "other", ada=(), bob=()))
    assert main(["class", str(folder), "--out", str(tmp_path / "out")]) == 2 and not (tmp_path / "out").exists()


def test_a_run_that_goes_on_keeps_its_lessons(tmp_path):
    folder = hand_in(tmp_path, ada=(FIRST, THIRD), bob=(FIRST, THIRD), eve=(FIRST,))
    lessons, sentences = chosen(folder, (FIRST, SECOND))
    assert lessons == [FIRST, SECOND]
    assert sentences[1:] == ["--lessons 01,02,03 would add lesson 03, which 2 of 3 handed in."]


@pytest.mark.parametrize(
    "piece",
    [
        b'"grader"',
        b'"grader": {',
        b'"grader": {"lesson"',
        b'"grader": {"lesson" : ',
        b"def ",
        b'"x',
        b"{",
        b'"lesson": "',
        b"class A",
        b" ",
    ],
)
def test_the_look_at_a_stranger_s_bytes_grows_with_their_number_alone(tmp_path, piece):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "mine.ipynb").write_bytes(piece * (4_000_000 // len(piece)))
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / f"{FIRST}.ipynb").write_bytes(b'"grader": {' + piece * (4_000_000 // len(piece)))
    started = time.process_time()
    assert chosen(tmp_path)[0] == [FIRST]
    assert time.process_time() - started < 20  # a tenth of a second here; hours, where it were quadratic


def test_a_run_reads_each_submission_once_beside_its_grading(graded, tmp_path, monkeypatch):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,), bob=(FIRST, SECOND)), tmp_path / "out"
    real, reads = class_folder.pack, []
    monkeypatch.setattr(class_folder, "pack", lambda entry: reads.append(entry.key) or real(entry))
    for more in ((), ("--resume",)):
        reads.clear()
        assert graded(folder, out, *more) == 0 and reads == ["ada", "bob"]


# --- what a run says and ends with -----------------------------------------------------------


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_the_lessons_taken_are_told_first_and_everywhere(graded, tmp_path, capsys):
    folder = hand_in(tmp_path / "class", ada=(FIRST, SECOND), bob=(FIRST,), cyd=(FIRST, SECOND, THIRD), eve=())
    out = tmp_path / "out"
    assert graded(folder, out) == 0
    seen = capsys.readouterr()
    first = "Lessons 01 and 02 are graded: at least half of the learners had handed them in when this run began."
    others = "--lessons 01,02,03 would add lesson 03, which 1 of 4 handed in."
    assert seen.out.splitlines()[0].startswith(first) and seen.out.splitlines()[1] == others
    assert seen.err.splitlines()[0].startswith(f"grader: {first}") and others in seen.err
    notes = json.loads((out / "report.json").read_text())["notes"]
    assert notes[0].startswith(first) and notes[1] == others
    for file in ("report.html", "summary.md"):
        assert first in (out / file).read_text() and "lesson 03, which 1 of 4 handed in" in (out / file).read_text()
    most = 2 * (len(open_course().exercises[FIRST]) + len(open_course().exercises[SECOND]))
    assert [row[-1] for row in rows(out / "canvas.csv")[1:]] == [
        str(most),
        str(most),
        str(2 * len(open_course().exercises[FIRST])),
        str(most),
        "0",
    ]
    assert {row[rows(out / "grades.csv")[0].index("max")] for row in rows(out / "grades.csv")[1:]} == {str(most)}


def test_a_class_of_one_is_told_too(graded, tmp_path):
    assert graded(hand_in(tmp_path / "class", ada=(FIRST,)), tmp_path / "out") == 0
    for file in ("report.html", "summary.md"):
        assert "Lesson 01 is graded" in (tmp_path / "out" / file).read_text()


def test_lessons_that_are_named_are_taken_without_a_word(graded, tmp_path, capsys):
    folder = hand_in(tmp_path / "class", ada=(FIRST,), bob=(SECOND,), cyd=())
    assert graded(folder, tmp_path / "out", "--lessons", "03") == 0
    seen = capsys.readouterr()
    counted = f"What counted, and where it was set: lessons {THIRD} (--lessons). All else is the course's."
    assert seen.out.startswith(f"{counted}\n3 learners") and "handed" not in seen.out + seen.err
    assert json.loads((tmp_path / "out" / "report.json").read_text())["notes"] == [counted]


def test_a_resumed_run_keeps_the_lessons_it_began_with(graded, tmp_path, capsys):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,)), tmp_path / "out"
    assert graded(folder, out) == 0
    hand_in(folder, bob=(SECOND,), cyd=(SECOND,), dan=(SECOND,))
    assert graded(folder, out, "--resume") == 0
    assert load(out / "journal.jsonl").settings.lessons == (FIRST,)
    said = capsys.readouterr().out
    assert "Lesson 01 is graded" in said and "--lessons 01,02 would add lesson 02, which 3 of 4 handed in." in said
    report = json.loads((out / "report.json").read_text())
    assert [[lesson["name"] for lesson in one["lessons"]] for one in report["submissions"]] == [[FIRST]] * 4
    assert graded(folder, out, "--resume", "--lessons", "01,02") == 2
    assert f"--lessons {FIRST} (now {FIRST}, {SECOND})" in capsys.readouterr().err
    assert graded(folder, out) == 0 and load(out / "journal.jsonl").settings.lessons == (SECOND,), (
        "a new run chooses anew"
    )


def test_a_journal_torn_in_its_first_line_is_begun_anew(graded, tmp_path):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,)), tmp_path / "out"
    out.mkdir()
    (out / "journal.jsonl").write_bytes(b'{"grader_journal": 1, "settings": {"lessons"')
    assert graded(folder, out, "--resume") == 0 and load(out / "journal.jsonl").settings.lessons == (FIRST,)


@pytest.mark.parametrize(
    "options, fails, code",
    [
        ((), (), 0),
        (("--min-score", "0"), (), 0),
        (("--min-score", "50%"), (), 1),
        (("--min-score", "12"), (), 1),
        ((), ("ada",), 3),
        (("--min-score", "0"), ("bob",), 3),
        (("--min-score", "100%"), ("bob",), 3),
        (("--min-score", "most"), (), 2),
        (("--lessons", "99"), (), 2),
    ],
)
def test_the_exit_code_says_whether_the_class_was_graded(graded, tmp_path, options, fails, code):
    folder = hand_in(tmp_path / "class", ada=(FIRST,), bob=())
    assert graded(folder, tmp_path / "out", *options, fails=fails) == code


def test_whom_the_grader_failed_is_named_and_graded_again(graded, tmp_path, capsys):
    folder, out = hand_in(tmp_path / "class", ada=(FIRST,), bob=(FIRST,)), tmp_path / "out"
    assert graded(folder, out, fails=("bob",)) == 3
    name = open_course().exercises[FIRST][0]
    seen = capsys.readouterr()
    assert f"no learner's: bob ({name})." in seen.out and "run the same command with --resume" in seen.err
    assert (
        [row[0] for row in rows(out / "canvas.csv")[2:]] == [row[0] for row in rows(out / "moodle.csv")[1:]] == ["ada"]
    )
    assert [path.name for path in (out / "gradescope").iterdir()] == ["ada.json"]
    assert graded(folder, out, "--resume") == 0
    assert [row[0] for row in rows(out / "moodle.csv")[1:]] == ["ada", "bob"]
    assert sorted(path.name for path in (out / "gradescope").iterdir()) == ["ada.json", "bob.json"]

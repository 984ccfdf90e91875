"""What learning platforms hand out as they collected it is recognized, and refused with what to do."""

from __future__ import annotations

import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.grading.class_folder import entries, pack, unpack
from grader.submission.ipynb import code_cells, read_notebook
from grader.submission.plan import Pristine
from grader.submission.platforms import archive_refusal, refusal
from grader.submission.submission import read_submission
from tests import mixing_course, toy_course as toy
from tests.mixing_course import COURSE
from tests.small_class import LESSON, RIGHT, WRONG, hand_in, notebook

MOODLE = [
    "Ada Lovelace_4711_assignsubmission_file_",
    "Ada Lovelace_4711_assignsubmission_file",
    "Bob_1_assignsubmission_onlinetext_",
    "Zoé O'Neil_99_assignsubmission_file_01_mixing.ipynb",
    "Participant_12_assignsubmission_file_",
]
CANVAS = [
    "lovelaceada_4711_81500_01_mixing.ipynb",
    "lovelaceada_LATE_4711_81500_01_mixing-1.ipynb",
    "anon_7_123_hw.ipynb",
    "li_na_12_34567_Untitled.ipynb",
]
OURS = [
    "ada",
    "ada.lovelace",
    "ada_lovelace",
    "ada_01_mixing.ipynb",
    "01_mixing.ipynb",
    "ada_2026.ipynb",
    "s1234_5678",
    "g_12_hopper",
    "ada_LATE.ipynb",
    "file_",
    "notes_4711_815.txt",
    "assignsubmission_file_",
]


@pytest.mark.parametrize("name", MOODLE + CANVAS)
def test_their_names_are_recognized(name):
    said = refusal(["ada", name])
    assert name in said and ("Moodle" if name in MOODLE else "Canvas") in said and said.endswith("Nothing was graded.")


@pytest.mark.parametrize("name", OURS)
def test_a_learners_name_is_not_taken_for_one(name):
    assert refusal([name]) == archive_refusal([name]) == ""


@pytest.mark.parametrize(
    "name, said",
    [
        *((name, "`grader collect FOLDER --to collected --roster ROSTER` sorts them") for name in MOODLE[:1]),
        *((name, "`grader collect FOLDER --to collected --roster ROSTER` sorts them") for name in CANVAS[:2]),
        ("submissions.zip", "`grader collect ARCHIVE --to collected` sorts what"),
        ("ada.TAR.GZ", "which are not opened"),
    ],
)
def test_a_class_of_them_is_refused_and_nothing_is_graded(tmp_path, capsys, name, said):
    folder = hand_in(tmp_path / "class", ada=WRONG)
    if name in MOODLE:
        hand_in(folder, **{name: RIGHT})
    else:
        (folder / name).write_text(notebook(RIGHT))
    assert main(["class", str(folder), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert name in told and said in told and "Nothing was graded." in told and not (tmp_path / "out").exists()


@pytest.mark.parametrize("names", [MOODLE[:3], CANVAS[1:3]])
def test_grade_does_not_take_them_for_one_learners_folder(tmp_path, capsys, names):
    for name in names:
        hand_in(tmp_path, **{name: RIGHT}) if name in MOODLE else (tmp_path / name).write_text(notebook(RIGHT))
    assert main(["grade", str(tmp_path)]) == 2
    assert "Nothing was graded." in capsys.readouterr().err


def test_an_archive_in_a_folders_place_is_to_be_unpacked(tmp_path, capsys):
    (tmp_path / "class.zip").write_bytes(b"PK")
    assert main(["class", str(tmp_path / "class.zip"), "--out", str(tmp_path / "out")]) == 2
    assert (
        "class.zip is an archive, which is not opened: `grader collect ARCHIVE --to collected` sorts"
        in capsys.readouterr().err
    )
    assert main(["grade", str(tmp_path / "class.zip")]) == 2
    assert "Unpack it first." in capsys.readouterr().err


def test_what_was_sorted_into_folders_keeps_its_names(tmp_path, capsys):
    """As the sentence advises; and a folder may be called like an archive."""
    folder = hand_in(tmp_path / "class", ada=RIGHT, **{"bob.zip": RIGHT})
    for at, name in enumerate(CANVAS[:2]):
        (folder / "ada" / name).write_text(notebook((RIGHT, WRONG)[at]))
    (folder / "ada" / f"{LESSON}.ipynb").unlink()
    assert main(["grade", str(folder / "ada"), "--lessons", "00"]) in (0, 1)
    found, _ = entries(folder)
    assert [one.name for one in found] == ["ada", "bob.zip"]
    laid = unpack(pack(found[0]), tmp_path / "laid")
    assert "There is more than one notebook of lesson" in read_submission(open_course(), laid).message


def test_no_stub_is_an_attempt_and_every_solution_is(tmp_path):
    for lesson, exercises in COURSE.exercises.items():
        pristine = Pristine(lesson, exercises, tuple(code_cells(COURSE.pristine(lesson))))
        for content, attempts in ((COURSE.pristine(lesson), 0), (mixing_course.solved(lesson), len(exercises))):
            assert pristine.attempts(read_notebook(toy.write(tmp_path / "x.ipynb", content))) == attempts, lesson

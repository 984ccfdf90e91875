"""The way back: each platform's importer, written down from its source, finds every learner's feedback and nobody else's."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import zipfile
from pathlib import Path

import pytest

from grader.cli import main
from grader.course.course import open_course
from tests.grading.test_handed_in import FIRST
from tests.mixing_course import COURSE

FULL = 2 * len(COURSE.exercises[FIRST])
CANVAS = "Student,ID,SIS User ID,SIS Login ID,Section,Week 1 (815)\n    Points Possible,,,,,12\n" + "".join(
    f'"{last}, {first}",{number},,{first.lower()},1,\n'
    for first, last, number in (("Ada", "Lovelace", 4711), ("Grace", "Hopper", 4712), ("Eve", "Nil", 4713))
)
WORKSHEET = (
    "\ufeffIdentifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (submission),"
    "Last modified (grade),Feedback comments\n"
    'Participant 31,Ada Lovelace,ada@x.org,Submitted for grading,,12.00,Yes,"Thursday, 1 October 2026, 9:30 AM",-,\n'
    'Participant 32,Grace Hopper,grace@x.org,Submitted for grading,3.00,12.00,Yes,"Thursday, 1 October 2026, 9:31 AM",'
    '"Friday, 2 October 2026, 10:00 AM",old\n'
    "Participant 33,=Eve Nil,eve@x.org,No submission,5.00,12.00,Yes,-,-,kept\n"
)
CANVAS_FILES = (f"lovelaceada_4711_81500_{FIRST}.ipynb", f"hoppergrace_LATE_4712_81501_{FIRST}-2.ipynb")
MOODLE_FILES = (
    f"Ada Lovelace_31_assignsubmission_file/{FIRST}.ipynb",
    f"Grace Hopper_32_assignsubmission_file/{FIRST}.ipynb",
)


@pytest.fixture
def back(graded, tmp_path):
    """back(files, roster, *options) -> the folder of reports, of a download with these names."""

    def made(names: tuple[str, ...], roster: str, *options: str, more: dict[str, bytes] | None = None) -> Path:
        with zipfile.ZipFile(tmp_path / "download.zip", "w") as archive:
            for name, data in (more or {}).items():
                archive.writestr(name, data)
            for name in names:
                archive.writestr(name, json.dumps(open_course().pristine(FIRST)))
        (tmp_path / "roster.csv").write_text(roster, encoding="utf-8")
        which = ("--roster", str(tmp_path / "roster.csv"))
        assert main(["collect", str(tmp_path / "download.zip"), "--to", str(tmp_path / "class"), *which]) == 0
        assert (
            graded(tmp_path / "class", tmp_path / "out", *(which if "--anonymous" not in options else ()), *options)
            == 0
        )
        return tmp_path / "out"

    return made


def unpacked(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def canvas_comments(path: Path) -> dict[tuple[str, str], str]:
    """By the ids of user and attachment, as Assignment#infer_comment_context_from_filename finds them: the first two numbers."""
    found = {}
    for name, content in unpacked(path).items():
        parts = name.split("_")
        at = next(at for at, part in enumerate(parts) if at and part.isdigit())
        assert parts[at + 1].isdigit()
        found[parts[at], parts[at + 1]] = content
    return found


def moodle_feedback(path: Path) -> dict[int, tuple[str, str]]:
    """By participant (file, content), as assignfeedback_file_zip_importer finds them."""
    found = {}
    for name, content in unpacked(path).items():
        folder, *rest = name.split("/")
        who, number, kind, plugin = folder.split("_", 4)
        assert who and (kind, plugin) == ("assignfeedback", "file")
        found[int(number)] = "/".join(rest), content
    return found


def moodle_grades(path: Path, was: str) -> dict[str, tuple[str, str]]:
    """By participant (grade, comment), as assignfeedback_offline_grade_importer takes them where nothing else has changed."""
    old, new = (list(csv.reader(io.StringIO(said.removeprefix("\ufeff")))) for said in (was, path.read_text()))
    heading = new[0]
    assert heading == old[0] and len(new) == len(old)
    changed = [heading.index(title) for title in ("Grade", "Feedback comments")]
    for before, after in zip(old[1:], new[1:], strict=True):
        kept = [cell for at, cell in enumerate(after) if at not in changed]
        assert [cell.removeprefix("'") for cell in kept] == [
            cell for at, cell in enumerate(before) if at not in changed
        ]
        assert after[heading.index("Last modified (grade)")] == before[heading.index("Last modified (grade)")]
    return {row[0]: (row[changed[0]], row[changed[1]]) for row in new[1:]}


def test_canvas_takes_each_learner_s_feedback_for_theirs(back):
    out = back(CANVAS_FILES, CANVAS)
    comments = canvas_comments(out / "canvas" / "comments.zip")
    assert set(comments) == {("4711", "81500"), ("4712", "81501")}
    for who, ids in (("ada", ("4711", "81500")), ("grace", ("4712", "81501"))):
        (cell,) = json.loads(comments[ids])["cells"]
        assert (
            cell["cell_type"] == "markdown" and who in "".join(cell["source"]) and f"{FULL} of {FULL}" in cell["source"]
        )
    assert "grace" not in comments["4711", "81500"] and not (out / "moodle").exists()


def test_canvas_gets_notebooks_alone_called_as_such(back, tmp_path):
    """A text entry has no number by which Canvas could take anything back; an archive's notebook is called as the archive."""
    with zipfile.ZipFile(tmp_path / "w.zip", "w") as archive:
        archive.writestr(f"{FIRST}.ipynb", json.dumps(open_course().pristine(FIRST)))
    out = back(
        ("lovelaceada_4711_text.html",),
        CANVAS,
        more={"hoppergrace_4712_81501_w.zip": (tmp_path / "w.zip").read_bytes()},
    )
    assert set(unpacked(out / "canvas" / "comments.zip")) == {"hoppergrace_4712_81501_w.ipynb"}


def test_moodle_takes_grades_comments_and_each_learner_s_page(back, capsys):
    out = back(MOODLE_FILES, WORKSHEET)
    grades = moodle_grades(out / "moodle" / "worksheet.csv", WORKSHEET)
    assert grades["Participant 31"][0] == str(FULL) and f"{FULL} of {FULL} points" in grades["Participant 32"][1]
    assert grades["Participant 33"] == ("5.00", "kept"), "of whom nothing is known nothing changes"
    pages = moodle_feedback(out / "moodle" / "feedback.zip")
    assert {number: name for number, (name, _) in pages.items()} == {31: "feedback.html", 32: "feedback.html"}
    assert "ada@x.org" in pages[31][1] and "grace" not in pages[31][1] and not (out / "canvas").exists()
    told = capsys.readouterr().err
    assert "scales them" not in told and "canvas" not in told and not (out / "canvas.csv").exists()


def test_a_german_worksheet_goes_back_under_its_own_headings(back, capsys):
    heading = "ID,Vollständiger Name,E-Mail-Adresse,Status,Bewertung,Bestwertung,Bewertung kann geändert werden,Zuletzt geändert (Abgabe),"
    rows = (
        WORKSHEET.replace("Participant ", "Teilnehmer/in")
        .replace("12.00", f'"{FULL},00"')
        .splitlines(keepends=True)[1:]
    )
    out = back(MOODLE_FILES, "".join([heading, "Zuletzt geändert (Bewertung),Feedback als Kommentar\n", *rows]))
    assert "Moodle's worksheet is out of" not in capsys.readouterr().err
    written = list(csv.DictReader((out / "moodle" / "worksheet.csv").open()))
    assert [row["Bewertung"] for row in written] == [str(FULL), str(FULL), "5.00"] and "Teilnehmer/in32" in written[1][
        "ID"
    ]
    assert f"{FULL} of {FULL} points" in written[0]["Feedback als Kommentar"]
    assert set(moodle_feedback(out / "moodle" / "feedback.zip")) == {31, 32}


def test_a_worksheet_of_other_points_is_told(back, capsys):
    out = back(MOODLE_FILES, WORKSHEET, "--max-points", "20")
    told = "worksheet.csv is not written: Moodle's worksheet is out of 12 points, and these grades are out of 20; --max-points 12 scales"
    assert told in capsys.readouterr().err and not (out / "moodle" / "worksheet.csv").exists()
    assert told in html.unescape((out / "report.html").read_text())


def test_who_could_not_be_graded_keeps_the_grade_that_is_there(back, graded, tmp_path):
    out = back(MOODLE_FILES, WORKSHEET)
    assert graded(tmp_path / "class", out, "--regrade", "grace@x.org", fails=("grace@x.org",)) == 3
    assert moodle_grades(out / "moodle" / "worksheet.csv", WORKSHEET)["Participant 32"] == ("3.00", "old")


def test_the_same_reports_have_the_same_bytes_and_pseudonyms_go_nowhere(back, graded, tmp_path):
    out = back(MOODLE_FILES, WORKSHEET)
    before = {path: path.read_bytes() for path in out.rglob("*.zip")}
    assert before and graded(tmp_path / "class", out, "--resume") == 0
    assert before == {path: path.read_bytes() for path in out.rglob("*.zip")} and not list(tmp_path.glob("out.backup*"))
    assert graded(tmp_path / "class", out, "--rescore", "--anonymous", "--roster", "none") == 0
    assert not list(out.rglob("*.zip")) and not list(out.glob("moodle/*"))


def test_without_the_platform_s_names_there_is_no_way_back(graded, tmp_path):
    from tests.grading.test_handed_in import hand_in

    assert graded(hand_in(tmp_path / "class", ada=(FIRST,)), tmp_path / "out") == 0
    assert not (tmp_path / "out" / "canvas").exists() and not (tmp_path / "out" / "moodle").exists()


@pytest.mark.parametrize("name", ["_/x", "Grace_B", "a/b\\c"])
def test_a_name_with_signs_of_moodle_s_own_parts_nothing(back, graded, tmp_path, name):
    out = back(MOODLE_FILES[1:], WORKSHEET.replace("Grace Hopper", name))
    (tmp_path / "class" / "collected.csv").unlink()  # the roster alone says who is who
    assert graded(tmp_path / "class", out, "--resume") == 0
    assert set(moodle_feedback(out / "moodle" / "feedback.zip")) == {32}


def test_moodle_s_names_are_those_of_the_download(back):
    out = back(MOODLE_FILES[1:], WORKSHEET.replace("Grace Hopper", "Grace B. Hopper"))
    assert re.fullmatch(
        r"Grace Hopper_32_assignfeedback_file/feedback\.html", *unpacked(out / "moodle" / "feedback.zip")
    )

"""`grader collect`: each platform's download becomes a folder a learner; nothing is lost, overwritten, or written elsewhere."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import os
import stat
import tarfile
import time
import zipfile
from pathlib import Path

import psutil
import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.grading import lateness
from grader.grading.class_folder import entries
from grader.grading.collecting import attempts, collection, sources
from grader.grading.collecting.recognition import metadata
from grader.grading.collecting.sources import Member, Sources
from grader.sandbox.reader import Reader
from tests.submission.test_roster import CANVAS, MOODLE

LESSON = "01_mixing"
GITHUB = "identifier,github_username,github_id,name\nA,adal,1,Ada Lovelace\nG,g-hop,2,Grace Hopper\n"
SCOPE = "First Name,Last Name,SID,Email\nAda,Lovelace,1,ada@x.org\nGrace,Hopper,2,gh@x.org\n"
NAMES = 'Student,SIS Login ID\n"Lovelace, Ada",ada.lovelace\n"Hopper, Grace",g.hopper\n'  # without Canvas' numbers
FIRST = "backups/ada.lovelace/2026-10-01-090000"  # an attempt that packed() made
METADATA = """---
submission_81500:
  :submitters:
  - :name: Ada Lovelace
    :sid: '1'
    :email: ada@x.org
  :created_at: 2026-10-01 09:00:00.000000000 Z
  :history:
  - :id: 5
    :submitters:
    - :name: Somebody Else
submission_81501:
  :submitters:
  - :name: "Gr\\xE4ce O'Hopper"
    :sid: ''
    :email: gh@x.org
  - :name: Ada Lovelace
    :email: ada@x.org
"""


def packed(path: Path, files: dict[str, bytes | str], kind: str = "zip") -> Path:
    """An archive with these files in this order."""
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(name, (2026, 10, 1, 9, 0, 0)), data, zipfile.ZIP_DEFLATED)
        return path
    with tarfile.open(path, f"w:{kind}") as archive:
        for name, data in files.items():
            about = tarfile.TarInfo(name)
            about.size, about.mtime = len(data), 1_790_000_000
            archive.addfile(about, io.BytesIO(data.encode() if isinstance(data, str) else data))
    return path


def laid(folder: Path, files: dict[str, bytes | str]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "collected.csv"
    }


def collect(tmp_path: Path, source: Path, roster: str = "", *more: str) -> int:
    if roster:
        (tmp_path / "roster.csv").write_text(roster, encoding="utf-8")
        more = ("--roster", str(tmp_path / "roster.csv"), *more)
    return main(["collect", str(source), "--to", str(tmp_path / "collected"), *more])


# --- what platforms give ---------------------------------------------------------------------

BOTH = {"ada.lovelace/a.ipynb": "A", "g.hopper/a.ipynb": "G"}
EMAILS = {"ada@example.org/a.ipynb": "A", "grace@example.org/a.ipynb": "G"}
DOWNLOADS = {
    "canvas": ({"lovelaceada_4711_81500_a.ipynb": "A", "hoppergrace_LATE_4712_81501_a.ipynb": "G"}, CANVAS, BOTH),
    "canvas by name": ({"lovelaceada_9_81500_a.ipynb": "A", "hoppergrace_8_81501_a.ipynb": "G"}, NAMES, BOTH),
    "canvas in a folder": (
        {"submissions/lovelaceada_4711_81500_a.ipynb": "A", "submissions/hoppergrace_4712_81501_a.ipynb": "G"},
        CANVAS,
        BOTH,
    ),
    "moodle": (
        {"Ada Lovelace_31_assignsubmission_file/a.ipynb": "A", "Grace Hopper_32_assignsubmission_file/a.ipynb": "G"},
        MOODLE,
        EMAILS,
    ),
    "moodle, older": (
        {"Ada Lovelace_31_assignsubmission_file_/a.ipynb": "A", "Grace Hopper_32_assignsubmission_file_/a.ipynb": "G"},
        MOODLE,
        EMAILS,
    ),
    "moodle without folders": (
        {"Ada Lovelace_31_assignsubmission_file_a.ipynb": "A", "Grace Hopper_32_assignsubmission_file_a.ipynb": "G"},
        MOODLE,
        EMAILS,
    ),
    "moodle, blind": (
        {"Participant_31_assignsubmission_file/a.ipynb": "A", "Participant_32_assignsubmission_file/a.ipynb": "G"},
        MOODLE,
        EMAILS,
    ),
    "gradescope": (
        {
            "assignment_1_export/submission_metadata.yml": METADATA,
            "assignment_1_export/submission_81500/a.ipynb": "A",
            "assignment_1_export/submission_81501/b.ipynb": "G",
        },
        SCOPE,
        {"ada@x.org/a.ipynb": "A", "gh@x.org/b.ipynb": "G", "ada@x.org/b.ipynb": "G"},
    ),
    "github": (
        {
            "hw-submissions/hw-adal/.git/config": "x",
            "hw-submissions/hw-adal/a.ipynb": "A",
            "hw-submissions/hw-g-hop/.git/HEAD": "x",
            "hw-submissions/hw-g-hop/notebooks/a.ipynb": "G",
        },
        GITHUB,
        {"adal/a.ipynb": "A", "g-hop/notebooks/a.ipynb": "G"},
    ),
    "folders": ({"ada.lovelace/a.ipynb": "A", "G.Hopper/a.ipynb": "G"}, CANVAS, BOTH),
    "notebooks": (
        {"ada.lovelace.ipynb": "A", "g.hopper.ipynb": "G"},
        CANVAS,
        {"ada.lovelace/ada.lovelace.ipynb": "A", "g.hopper/g.hopper.ipynb": "G"},
    ),
}


@pytest.fixture(scope="module")
def readers():
    """What forks a process for each download, and one for what its learners packed: begun once, and not for each command."""
    with Reader(sources.PATIENCE) as of_a_class, Reader() as of_a_learner:
        yield {sources.PATIENCE: of_a_class, 1: of_a_learner}


@pytest.fixture(autouse=True)
def forked(readers, monkeypatch):
    """Each command has its own processes to read in, forked from one parent; test_hostile_archives.py begins a parent for each, as users do."""

    @contextlib.contextmanager
    def reader(patience: int = 1):
        readers[patience].begin()
        yield readers[patience]
        readers[patience].end()

    monkeypatch.setattr(sources, "Reader", reader)


@pytest.mark.parametrize("files, roster, want", DOWNLOADS.values(), ids=DOWNLOADS)
@pytest.mark.parametrize("kind", ["folder", "zip", "gz", "xz", ""])
def test_a_download_becomes_a_folder_a_learner(tmp_path, capsys, files, roster, want, kind):
    source = (
        laid(tmp_path / "source", files)
        if kind == "folder"
        else packed(tmp_path / f"source.{kind or 'tar'}", files, kind)
    )
    assert collect(tmp_path, source, roster) == 0, capsys.readouterr()
    assert tree(tmp_path / "collected") == want
    assert f"{len({name.split('/')[0] for name in want})} learners in" in capsys.readouterr().out


def test_the_class_that_was_collected_is_one_that_can_be_graded(tmp_path, capsys):
    files, roster, _ = DOWNLOADS["canvas"]
    assert collect(tmp_path, packed(tmp_path / "s.zip", files), roster) == 0
    found, passed_over = entries(tmp_path / "collected")
    assert [one.name for one in found] == ["ada.lovelace", "g.hopper"] and passed_over == []
    assert "g.hopper      1 new file, late" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "collected" / "collected.csv").open()))
    assert [(row["learner"], row["late"], row["source"], row["original"]) for row in rows] == [
        ("ada.lovelace", "", "s.zip", "lovelaceada_4711_81500_a.ipynb"),
        ("g.hopper", "late", "s.zip", "hoppergrace_LATE_4712_81501_a.ipynb"),
    ]


@pytest.mark.parametrize(
    "form, names",
    [
        ("canvas", {"lovelaceada_4711", "hoppergrace_4712"}),
        ("moodle", {"Ada Lovelace_31", "Grace Hopper_32"}),
        ("github", {"adal", "g-hop"}),
        ("gradescope", {"ada@x.org", "gh@x.org"}),
        ("folders", {"ada.lovelace", "G.Hopper"}),
    ],
)
def test_without_a_roster_the_platform_s_own_names_stand(tmp_path, capsys, form, names):
    assert collect(tmp_path, laid(tmp_path / "source", DOWNLOADS[form][0])) == 0
    assert {path.name for path in (tmp_path / "collected").iterdir() if path.is_dir()} == names
    assert ("Without --roster" in capsys.readouterr().out) is (form != "folders")


def test_names_in_utf_8_of_which_the_archive_says_nothing_are_read(tmp_path):
    path = packed(tmp_path / "s.zip", {"LovelaceAda_4711_81500_Übung.ipynb".replace("Ü", "UE"): "A"})
    path.write_bytes(path.read_bytes().replace(b"UEbung", "Übung".encode()))
    assert collect(tmp_path, path, CANVAS) == 0 and tree(tmp_path / "collected") == {"ada.lovelace/Übung.ipynb": "A"}


def test_an_anonymous_canvas_download_has_numbers_for_names(tmp_path):
    assert (
        collect(tmp_path, laid(tmp_path / "s", {"anon_aB3x9_81500_a.ipynb": "A", "LATE_anon_Zz000_81501_a.ipynb": "G"}))
        == 0
    )
    assert set(tree(tmp_path / "collected")) == {"anon_aB3x9/a.ipynb", "anon_Zz000/a.ipynb"}


def test_gradescope_s_submitters_are_read_and_nobody_else():
    data = METADATA.encode()
    submissions = metadata(Member(("submission_metadata.yml",), len(data), 0, lambda: data))
    assert {name: [str(each) for each in people] for name, (people, _) in submissions.items()} == {
        "submission_81500": ["ada@x.org, 1, Ada Lovelace"],
        "submission_81501": ["gh@x.org, Gräce O'Hopper", "ada@x.org, Ada Lovelace"],
    }


def test_when_a_submission_was_handed_in_is_kept(tmp_path, capsys):
    files, roster, _ = DOWNLOADS["gradescope"]
    later = (
        METADATA.replace("  - :id: 5", "  - :created_at: 2026-09-09 09:00:00 Z\n    :id: 5")
        + "  :created_at: 2026-10-02 01:30:00.5 -07:00\n"
    )
    assert (
        collect(
            tmp_path, packed(tmp_path / "s.zip", files | {"assignment_1_export/submission_metadata.yml": later}), roster
        )
        == 0
    )
    rows = list(csv.DictReader((tmp_path / "collected" / "collected.csv").open()))
    assert {(row["learner"], row["file"]): row["submitted"] for row in rows} == {
        ("ada@x.org", "a.ipynb"): "2026-10-01 09:00:00+00:00",
        ("ada@x.org", "b.ipynb"): "2026-10-02 08:30:00+00:00",
        ("gh@x.org", "b.ipynb"): "2026-10-02 08:30:00+00:00",
    }


def test_a_table_of_an_earlier_version_is_continued(tmp_path, capsys):
    files, roster, _ = DOWNLOADS["canvas"]
    (tmp_path / "collected").mkdir()
    (tmp_path / "collected" / "collected.csv").write_text(
        "learner,file,state,late,source,original,collected\nada.lovelace,b.ipynb,placed,,x,y,z\n"
    )
    assert collect(tmp_path, packed(tmp_path / "s.zip", files), roster) == 0
    rows = list(csv.reader((tmp_path / "collected" / "collected.csv").open()))
    assert len(rows) == 4 and {len(row) for row in rows} == {8} and rows[1][:2] == ["ada.lovelace", "b.ipynb"]


# --- what can't be placed --------------------------------------------------------------------


def test_what_has_no_place_is_told_and_the_rest_is_placed(tmp_path, capsys):
    files = {"lovelaceada_4711_81500_a.ipynb": "A", "strangereve_4799_81501_a.ipynb": "E", "readme.txt": "?"}
    assert collect(tmp_path, packed(tmp_path / "s.zip", files), CANVAS) == 1
    told = capsys.readouterr()
    assert tree(tmp_path / "collected") == {"ada.lovelace/a.ipynb": "A"}
    assert "strangereve_4799_81501_a.ipynb  belongs to 4799, strangereve, who is not on the roster" in told.out
    assert "readme.txt" in told.out and "its name is not one that Canvas gives" in told.out
    assert "On the roster, but nothing was handed in here: g.hopper." in told.out
    assert "2 files not placed or not opened, see above" in told.err


def test_two_of_one_name_are_not_guessed(tmp_path, capsys):
    roster = "Username,Full name\nli1,Li Na\nli2,Li Na\nbo,Bo Ek\n"
    files = {"Li Na_7_assignsubmission_file/a.ipynb": "?", "Bo Ek_8_assignsubmission_file/a.ipynb": "B"}
    assert collect(tmp_path, laid(tmp_path / "s", files), roster) == 1
    assert (
        tree(tmp_path / "collected") == {"bo/a.ipynb": "B"}
        and "Li Na, who is not on the roster, or not with certainty" in capsys.readouterr().out
    )


CHECKOUTS = "hw-submissions/hw-"
LOGINS = "github_username,name\nada,Ada Lovelace\nsmith,Sam Smith\nbo,Bo Ek\n"
NAMESAKES = "Username,Full name\nada,Ada Lovelace\nbo,Bo Ek\n"
ANOTHERS = {  # another's work that only looks like a learner's: the files, the roster, where they go, and whose is named
    "github, a login that ends so": (
        {f"{CHECKOUTS}evil-ada/a.ipynb": "E", f"{CHECKOUTS}bo/a.ipynb": "B"},
        LOGINS,
        {"bo/a.ipynb": "B"},
        ["evil-ada"],
    ),
    "github, beside the real one": (
        {f"{CHECKOUTS}{name}/a.ipynb": name for name in ("ada", "evil-ada", "john-smith", "smith")},
        LOGINS,
        {"ada/a.ipynb": "ada", "smith/a.ipynb": "smith"},
        ["evil-ada", "john-smith"],
    ),
    "github, the classroom before": (
        {
            f"hw-submissions/cs-hw-{name}/{file}": "x"
            for name in ("bo", "evil-ada")
            for file in (".git/HEAD", "a.ipynb")
        },
        LOGINS,
        {"bo/a.ipynb": "x"},
        ["evil-ada"],
    ),
    "github, checkouts elsewhere": (
        {f"all/hw-{name}/{file}": "x" for name in ("bo", "ada", "evil-ada") for file in (".git/HEAD", "a.ipynb")},
        LOGINS,
        {"bo/a.ipynb": "x", "ada/a.ipynb": "x"},
        ["evil-ada"],
    ),
    "moodle, the number says another": (
        {"Ada Lovelace_77_assignsubmission_file/a.ipynb": "E", "Grace Hopper_32_assignsubmission_file/a.ipynb": "G"},
        MOODLE,
        {"grace@example.org/a.ipynb": "G"},
        ["Ada Lovelace_77"],
    ),
    "moodle, a namesake": (
        {
            "Ada Lovelace_31_assignsubmission_file/a.ipynb": "A",
            "Ada Lovelace_77_assignsubmission_file/a.ipynb": "E",
            "Bo Ek_9_assignsubmission_file/a.ipynb": "B",
        },
        NAMESAKES,
        {"bo/a.ipynb": "B"},
        ["Ada Lovelace_31", "Ada Lovelace_77"],
    ),
    "canvas, an unknown number": (
        {"lovelaceada_9_81500_a.ipynb": "E", "hoppergrace_4712_81501_a.ipynb": "G"},
        CANVAS,
        {"g.hopper/a.ipynb": "G"},
        ["lovelaceada"],
    ),
    "canvas, two by name": (
        {"lovelaceada_9_81500_a.ipynb": "E", "lovelaceada_8_81501_a.ipynb": "A", "hoppergrace_4712_81502_a.ipynb": "G"},
        NAMES,
        {"g.hopper/a.ipynb": "G"},
        ["lovelaceada_9", "lovelaceada_8"],
    ),
    "gradescope, another address": (
        {
            "e/submission_metadata.yml": METADATA.replace("ada@x.org", "evil@x.org").replace(":sid: '1'", ":sid: '9'"),
            "e/submission_81500/a.ipynb": "E",
            "e/submission_81501/b.ipynb": "G",
        },
        SCOPE,
        {"gh@x.org/b.ipynb": "G"},
        ["evil@x.org"],
    ),
    "gradescope, one's address and another's number": (
        {"e/submission_metadata.yml": METADATA.replace(":sid: '1'", ":sid: '2'"), "e/submission_81500/a.ipynb": "?"},
        SCOPE,
        {},
        ["ada@x.org, 2"],
    ),
}


@pytest.mark.parametrize("files, roster, want, named", ANOTHERS.values(), ids=ANOTHERS)
def test_another_s_work_takes_nobody_s_place(tmp_path, capsys, files, roster, want, named):
    assert collect(tmp_path, laid(tmp_path / "source", files), roster) == 1
    told = capsys.readouterr().out.partition("Not placed, or not opened:")[2].partition("On the roster")[0]
    assert tree(tmp_path / "collected") == want and all(name in told for name in named)
    assert not any(f"{name}/" in told for name in ("hw-ada", "hw-smith", "hw-bo"))


def test_of_two_identities_for_one_person_each_file_names_both(tmp_path, capsys):
    files, roster, *_ = ANOTHERS["moodle, a namesake"]
    assert collect(tmp_path, laid(tmp_path / "source", files), roster) == 1
    told = capsys.readouterr().out
    assert (
        told.count(
            "could be ada's by the roster, and so could each of Ada Lovelace_31, Ada Lovelace_77: none of them was placed; find out"
        )
        == 2
    )
    assert "On the roster, but nothing was handed in here: ada." in told


def test_folders_that_differ_in_case_alone_are_two_learners_and_one_is_told(tmp_path, capsys):
    assert collect(tmp_path, packed(tmp_path / "s.zip", {"ada/a.ipynb": "A", "Ada/a.ipynb": "B"})) == 1
    assert (
        tree(tmp_path / "collected") == {"ada/a.ipynb": "A"}
        and "whose folder would have the same name as that of ada" in capsys.readouterr().out
    )


def test_two_learners_with_long_names_have_a_folder_each_without_a_roster(tmp_path):
    ends = {"1_assignsubmission_file_/a.ipynb": "A", "2_assignsubmission_file_/b.ipynb": "B"}  # Moodle's number is last
    files = {f"Anna {'Bartholomäus' * 12}_{end}": data for end, data in ends.items()}
    assert collect(tmp_path, packed(tmp_path / "s.zip", files)) == 0
    assert [name.partition("/")[2] for name in tree(tmp_path / "collected")] in (
        ["a.ipynb", "b.ipynb"],
        ["b.ipynb", "a.ipynb"],
    )


def test_two_learners_whose_folders_no_system_could_tell_apart_are_not_one(tmp_path, capsys):
    assert collect(tmp_path, packed(tmp_path / "s.zip", {"ada:b/a.ipynb": "A", "ada?b/b.ipynb": "B"})) == 1
    assert tree(tmp_path / "collected") == {"ada-b/a.ipynb": "A"}
    assert "is of ada?b, whose folder would have the same name as that of ada:b" in capsys.readouterr().out


@pytest.mark.parametrize("stem", ["x" * 116, "A" * 180, "щ" * 118, "王" * 90])
def test_a_name_that_is_too_long_keeps_its_ending_and_stays_a_name_of_its_own(tmp_path, capsys, stem):
    files = {f"ada/{stem}1.ipynb": "A", f"ada/{stem}2.ipynb": "B", "ada/a.ipynb": "C"}
    assert collect(tmp_path, packed(tmp_path / "s.zip", files)) == 0
    made = tree(tmp_path / "collected")
    assert sorted(made.values()) == ["A", "B", "C"] and all(name.endswith(".ipynb") for name in made)
    assert all(len(name.encode()) <= len("ada/") + collection.LONGEST for name in made)
    assert "ada  3 new files, 2 under a shorter name, as collected.csv tells" in capsys.readouterr().out
    rows = csv.DictReader((tmp_path / "collected" / "collected.csv").open())
    assert {row["original"]: made[f"ada/{row['file']}"] for row in rows} == files


# --- again -----------------------------------------------------------------------------------


def test_what_is_there_is_recognized_and_what_changed_is_kept_beside(tmp_path, capsys):
    files = {"lovelaceada_4711_81500_a.ipynb": "A1", "hoppergrace_4712_81501_a.ipynb": "G"}
    collected = tmp_path / "collected"
    assert collect(tmp_path, packed(tmp_path / "one.zip", files), CANVAS) == 0
    before, told = tree(collected), (collected / "collected.csv").read_text()
    assert collect(tmp_path, tmp_path / "one.zip", CANVAS) == 0
    assert (
        tree(collected) == before
        and (collected / "collected.csv").read_text() == told
        and "1 unchanged" in capsys.readouterr().out
    )
    later = packed(
        tmp_path / "two.zip", {"lovelaceada_4711_81999_a.ipynb": "A2", "hoppergrace_4712_81501_a.ipynb": "G"}
    )
    assert collect(tmp_path, later, CANVAS) == 0
    assert tree(collected) == before | {"ada.lovelace/a.ipynb": "A2", f"{FIRST}/a.ipynb": "A1"}
    assert (
        f"ada.lovelace  1 new file, in place of an older attempt, which is kept in {FIRST}/" in capsys.readouterr().out
    )
    assert collect(tmp_path, later, CANVAS) == 0 and len(tree(collected)) == 3, "nothing grows"
    assert entries(collected)[1] == []


def test_what_is_no_longer_late_is_told_so(tmp_path):
    """The platform's time limit was moved: the same file has another name. The attempt before it stays what it was."""
    first, second = (f"_4711_81500_{LESSON}.ipynb", "first"), (f"_4711_81501_{LESSON}.ipynb", "second")
    for at, (mark, (name, said)) in enumerate((("_LATE", first), ("_LATE", second), ("", second), ("_LATE", first))):
        assert collect(tmp_path, packed(tmp_path / f"{at}.zip", {f"lovelaceada{mark}{name}": said}), CANVAS) == 0
    rows = [(row["state"], row["late"]) for row in lateness.rows(tmp_path / "collected")]
    assert rows == [("placed", "late"), (f"{FIRST}/{LESSON}.ipynb", "late"), ("placed", "late"), ("placed", "")]
    notes = lateness.read(open_course(), tmp_path / "collected", [LESSON])["ada.lovelace"]
    assert notes.files == {f"{LESSON}.ipynb": (False, "")} and "LATE" not in notes.paths[f"{LESSON}.ipynb"]


def test_an_older_download_does_not_take_the_place_of_a_later_one(tmp_path):
    new = laid(tmp_path / "new", {"ada/a.ipynb": "new"})
    old = laid(tmp_path / "old", {"ada/a.ipynb": "old"})
    os.utime(old / "ada" / "a.ipynb", (time.time() - 9_000,) * 2)
    assert collect(tmp_path, new) == 0 and collect(tmp_path, old) == 0 and collect(tmp_path, old) == 0
    date = time.strftime("%Y-%m-%d-%H%M%S", time.localtime((old / "ada" / "a.ipynb").stat().st_mtime))
    assert tree(tmp_path / "collected") == {"ada/a.ipynb": "new", f"backups/ada/{date}/a.ipynb": "old"}


def test_an_attempt_that_was_handed_in_again_is_kept_once(tmp_path):
    for at, said in enumerate(("A", "B", "A", "C")):
        file = laid(tmp_path / str(at), {"ada/a.ipynb": said}) / "ada" / "a.ipynb"
        os.utime(file, (1e9 + at * 1e4,) * 2)
        assert collect(tmp_path, tmp_path / str(at)) == 0
    got = tree(tmp_path / "collected")
    assert got["ada/a.ipynb"] == "C" and sorted(got.values()) == ["A", "B", "C"]


def lesson(number: str, said: str) -> str:
    """A notebook that says of which lesson it is."""
    name = {"01": LESSON, "02": "02_logs"}[number]
    return json.dumps(
        {
            "cells": [{"cell_type": "code", "metadata": {}, "source": said}],
            "metadata": {"grader": {"lesson": name}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def inside(tmp_path: Path, files: dict[str, bytes | str]) -> bytes:
    return packed(tmp_path / "inner.zip", files).read_bytes()


CANVAS_ADA = "lovelaceada_4711_8150"
RESUBMITTED = {  # the first attempt, the second, and where both are then; of each file its name on Canvas, or what a zip holds
    "under another name": ({f"{LESSON}.ipynb": lesson("01", "old")}, {f"{LESSON}_final.ipynb": lesson("01", "new")}),
    "under a name that says nothing": ({f"{LESSON}.ipynb": lesson("01", "old")}, {"final.ipynb": lesson("01", "new")}),
    "with what goes with it": (
        {f"{LESSON}.ipynb": lesson("01", "old"), "helpers.py": "old"},
        {f"{LESSON}.ipynb": lesson("01", "new")},
    ),
    "files, then a zip": (
        {f"{LESSON}.ipynb": lesson("01", "old")},
        {"work.zip": {f"deep/{LESSON}.ipynb": lesson("01", "new")}},
    ),
    "a zip, then files": (
        {"work.zip": {f"{LESSON}.ipynb": lesson("01", "old"), "data.csv": "1"}},
        {"mine.ipynb": lesson("01", "new")},
    ),
    "a file where a folder was": (
        {"work.zip": {f"{LESSON}.ipynb": lesson("01", "old")}},
        {"work": "x", f"{LESSON}.ipynb": lesson("01", "new")},
    ),
}


def handed_in(tmp_path: Path, name: str, files: dict, at: int) -> tuple[Path, dict[str, str]]:
    """A download of Canvas', and what it should become."""
    named = {
        f"{CANVAS_ADA}{at}_{file}": inside(tmp_path, said) if isinstance(said, dict) else said
        for file, said in files.items()
    }
    want = {
        f"{file[:-4]}/{each}": what
        for file, said in files.items()
        if isinstance(said, dict)
        for each, what in said.items()
    }
    return packed(tmp_path / name, named), want | {file: said for file, said in files.items() if isinstance(said, str)}


def test_who_corrects_one_of_two_notebooks_has_still_handed_in_both(tmp_path):
    first = {"a.ipynb": lesson("01", "old"), "b.ipynb": lesson("02", "old"), "notes.txt": "old"}
    one, _ = handed_in(tmp_path, "one.zip", first, 1)
    two, _ = handed_in(tmp_path, "two.zip", {"mine.ipynb": lesson("01", "new")}, 2)
    assert collect(tmp_path, one, CANVAS) == 0
    for download in (two, two, one, two):  # in any order
        assert collect(tmp_path, download, CANVAS) == 0
        made = tree(tmp_path / "collected")
        mine = {name.partition("/")[2]: content for name, content in made.items() if not name.startswith("backups/")}
        assert mine == {"mine.ipynb": lesson("01", "new"), "b.ipynb": lesson("02", "old")}
        assert {f"{FIRST}/{name}" for name in ("a.ipynb", "notes.txt")} <= set(made)
    before = tree(tmp_path / "collected")
    assert collect(tmp_path, one, CANVAS) == 0 and tree(tmp_path / "collected") == before, "kept once"


@pytest.mark.parametrize("first, second", RESUBMITTED.values(), ids=RESUBMITTED)
def test_the_latest_attempt_takes_the_older_one_s_place_as_a_whole(tmp_path, capsys, first, second):
    (one, old), (two, new) = handed_in(tmp_path, "one.zip", first, 1), handed_in(tmp_path, "two.zip", second, 2)
    want = {f"ada.lovelace/{file}": said for file, said in new.items()} | {
        f"{FIRST}/{file}": said for file, said in old.items()
    }
    assert collect(tmp_path, one, CANVAS) == 0 and collect(tmp_path, two, CANVAS) == 0
    assert tree(tmp_path / "collected") == want
    assert f"in place of an older attempt, which is kept in {FIRST}/" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "collected" / "collected.csv").open()))
    assert {(row["state"], row["source"]) for row in rows} == {
        (state, "one.zip") for file in old for state in ("placed", f"{FIRST}/{file}")
    } | {("placed", "two.zip")}
    assert [one.name for one in entries(tmp_path / "collected")[0]] == ["ada.lovelace"], "no older attempt is a learner"
    for again in (two, one, two):  # what has been replaced does not come back
        assert collect(tmp_path, again, CANVAS) == 0
        assert tree(tmp_path / "collected") == want


def test_both_attempts_in_one_command_are_an_older_and_a_later_one(tmp_path):
    first, second = RESUBMITTED["under another name"]
    (one, _), (two, new) = handed_in(tmp_path, "one.zip", first, 1), handed_in(tmp_path, "two.zip", second, 2)
    assert collect(tmp_path, one, CANVAS, "--to", str(tmp_path / "collected")) == 0
    assert (
        main(["collect", str(one), str(two), "--to", str(tmp_path / "both"), "--roster", str(tmp_path / "roster.csv")])
        == 0
    )
    assert {file for file in tree(tmp_path / "both") if file.startswith("ada")} == {
        f"ada.lovelace/{file}" for file in new
    }


def test_another_assignment_s_lessons_stay(tmp_path, capsys):
    """A folder may collect week after week: a later week replaces nothing, and a resubmission only its own week."""
    weeks = [
        {"a.ipynb": lesson("01", "old")},
        {"b.ipynb": lesson("02", "week 2"), "helpers.py": "2"},
        {"c.ipynb": lesson("01", "new")},
        {"notes.pdf": "?"},
    ]
    for at, files in enumerate(weeks):
        assert collect(tmp_path, handed_in(tmp_path, f"{at}.zip", files, at)[0], CANVAS) == 0
    assert tree(tmp_path / "collected") == {
        "ada.lovelace/b.ipynb": lesson("02", "week 2"),
        "ada.lovelace/helpers.py": "2",
        "ada.lovelace/c.ipynb": lesson("01", "new"),
        "ada.lovelace/notes.pdf": "?",
        f"{FIRST}/a.ipynb": lesson("01", "old"),
    }


@pytest.mark.parametrize("one, two", [("-one.ipynb", "=two.ipynb"), ("one  a.ipynb", "two  a.ipynb")])
def test_a_name_that_the_table_has_otherwise_belongs_to_its_download_too(tmp_path, one, two):
    """A formula's sign and spaces in a row: a spreadsheet may open the table."""
    downloads = [{one: lesson("01", "old")}, {two: lesson("02", "old")}, {"new.ipynb": lesson("01", "new")}]
    for at, files in enumerate(downloads):
        assert collect(tmp_path, handed_in(tmp_path, f"{at}.zip", files, at)[0], CANVAS) == 0
    there = {"new.ipynb": lesson("01", "new"), two.replace("=", "-"): lesson("02", "old")}
    got = {name.partition("/")[2]: text for name, text in tree(tmp_path / "collected").items() if name[0] == "a"}
    assert {name.replace("=", "-"): text for name, text in got.items()} == there


def test_a_resubmission_that_cannot_be_written_leaves_the_older_one(tmp_path, capsys, monkeypatch):
    (one, old), (two, _) = (
        handed_in(tmp_path, f"{at}.zip", {f"{LESSON}.ipynb": lesson("01", f"{at}")}, at) for at in (1, 2)
    )
    assert collect(tmp_path, one, CANVAS) == 0

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(attempts.links, "write", full)
    assert collect(tmp_path, two, CANVAS) == 2  # collected.csv has no room either
    assert "No space left on device. All files copied so far are complete and stay" in capsys.readouterr().err
    assert {file: said for file, said in tree(tmp_path / "collected").items() if "ada" in file} == {
        f"ada.lovelace/{file}": said for file, said in old.items()
    }


def test_a_link_among_the_backups_is_not_written_through(tmp_path, capsys):
    (one, old), (two, _) = (
        handed_in(tmp_path, f"{at}.zip", {f"{LESSON}.ipynb": lesson("01", f"{at}")}, at) for at in (1, 2)
    )
    assert collect(tmp_path, one, CANVAS) == 0
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "collected" / "backups").symlink_to(tmp_path / "elsewhere")
    assert collect(tmp_path, two, CANVAS) == 1 and list((tmp_path / "elsewhere").iterdir()) == []
    assert "backups is a link to" in capsys.readouterr().out and (
        tmp_path / "collected/ada.lovelace" / f"{LESSON}.ipynb"
    ).read_text() == lesson("01", "1")


def test_a_table_that_is_not_ours_is_left_alone(tmp_path, capsys):
    laid(tmp_path, {"collected/collected.csv": "a,b\n", "s/ada/a.ipynb": "A"})
    assert collect(tmp_path, tmp_path / "s") == 2 and tree(tmp_path / "collected") == {}
    assert (
        "is not a table that `grader collect` wrote; move it elsewhere. Nothing was collected."
        in capsys.readouterr().err
    )


def test_of_several_attempts_at_a_lesson_the_latest_counts_and_other_numbers_stay(tmp_path, capsys):
    files = {
        f"lovelaceada_4711_81502_{LESSON}-2.ipynb": "third",
        f"lovelaceada_4711_81500_{LESSON}.ipynb": "first",
        f"lovelaceada_4711_81501_{LESSON}-1.ipynb": "second",
        "lovelaceada_4711_81503_homework-1.ipynb": "h1",
        "lovelaceada_4711_81504_homework-2.ipynb": "h2",
    }
    for _ in range(2):
        assert collect(tmp_path, packed(tmp_path / "s.zip", files), CANVAS) == 0
        assert tree(tmp_path / "collected") == {
            f"ada.lovelace/{LESSON}.ipynb": "third",
            "ada.lovelace/homework-1.ipynb": "h1",
            "ada.lovelace/homework-2.ipynb": "h2",
            f"{FIRST}/{LESSON}.ipynb": "first",
            f"{FIRST}-2/{LESSON}.ipynb": "second",
        }
    assert (
        f"3 new files, 2 older than what counts, kept as {FIRST}-2/{LESSON}.ipynb, {FIRST}/{LESSON}.ipynb"
        in capsys.readouterr().out
    )


def test_a_learner_s_own_archive_is_what_it_holds(tmp_path):
    inner = packed(tmp_path / "work.zip", {"work/a.ipynb": "A", "work/deep/b.ipynb": "B", "__MACOSX/._a.ipynb": "x"})
    assert collect(tmp_path, laid(tmp_path / "s", {"lovelaceada_4711_81500_work.zip": inner.read_bytes()}), CANVAS) == 0
    assert tree(tmp_path / "collected") == {"ada.lovelace/work/a.ipynb": "A", "ada.lovelace/work/deep/b.ipynb": "B"}


def test_a_learner_s_archive_that_can_t_be_opened_is_kept_as_it_is_and_told(tmp_path, capsys):
    assert collect(tmp_path, laid(tmp_path / "s", {"lovelaceada_4711_81500_work.zip": b"PK\x03\x04 torn"}), CANVAS) == 1
    assert (tmp_path / "collected/ada.lovelace/work.zip").read_bytes() == b"PK\x03\x04 torn"
    assert "is an archive that was not unpacked" in capsys.readouterr().out


# --- archives that are none, or more than that ------------------------------------------------


@pytest.mark.parametrize(
    "name, data, told",
    [
        ("s.zip", b"hello", "is not an archive that can be read"),
        ("s.zip", b"", "is not an archive"),
        ("s.tar.gz", b"\x1f\x8b broken", "is not an archive"),
        ("s.zip", b"PK\x03\x04" + b"\0" * 40, "is not an archive"),
        ("s.ipynb", b"{}", "is not an archive"),
    ],
)
def test_an_archive_that_is_none_is_a_sentence(tmp_path, capsys, name, data, told):
    (tmp_path / name).write_bytes(data)
    assert collect(tmp_path, tmp_path / name) == 2
    assert told in capsys.readouterr().err and not (tmp_path / "collected").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.timeout(30)
def test_a_pipe_is_not_waited_for(tmp_path, capsys):
    os.mkfifo(tmp_path / "s.zip")
    assert collect(tmp_path, tmp_path / "s.zip") == 2 and "is neither a folder nor a file" in capsys.readouterr().err


def test_a_torn_download_is_a_sentence(tmp_path, capsys):
    packed(tmp_path / "s.tar.gz", {f"ada/{n}.ipynb": os.urandom(20_000) for n in range(9)}, "gz")
    (tmp_path / "t.tar.gz").write_bytes((tmp_path / "s.tar.gz").read_bytes()[:60_000])
    assert collect(tmp_path, tmp_path / "t.tar.gz") == 2
    assert "is damaged" in capsys.readouterr().err and not (tmp_path / "collected").exists()


def test_a_locked_archive_is_a_sentence(tmp_path, capsys):
    path = packed(tmp_path / "s.zip", {"ada/a.ipynb": "A"})
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    assert collect(tmp_path, path) == 2 and "is locked with a password" in capsys.readouterr().err


@pytest.mark.parametrize(
    "way",
    [
        "../evil.ipynb",
        "ada/../../evil.ipynb",
        "/tmp/evil.ipynb",
        "..\\evil.ipynb",
        "C:\\evil.ipynb",
        "C:evil.ipynb",
        "//host/evil.ipynb",
    ],
)
@pytest.mark.parametrize("kind", ["zip", "gz"])
def test_a_path_that_leads_out_is_refused_and_the_rest_is_placed(tmp_path, capsys, way, kind):
    place = tmp_path / "inside"
    place.mkdir()
    assert collect(place, packed(place / f"s.{kind}", {"ada/a.ipynb": "A", way: "EVIL"}, kind)) == 1
    assert "has a path that leads out of the archive" in capsys.readouterr().out
    assert (
        tree(place / "collected") == {"ada/a.ipynb": "A"}
        and not list(tmp_path.rglob("evil*"))
        and not Path("/tmp/evil.ipynb").exists()
    )


@pytest.mark.parametrize("kind", ["zip", "tar", "folder"])
def test_no_link_is_followed(tmp_path, capsys, kind):
    (tmp_path / "secret.ipynb").write_text("SECRET")
    source = tmp_path / f"s.{kind}"
    if kind == "zip":
        packed(source, {"ada/a.ipynb": "A"})
        with zipfile.ZipFile(source, "a") as archive:
            about = zipfile.ZipInfo("ada/b.ipynb")
            about.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(about, str(tmp_path / "secret.ipynb"))
    elif kind == "tar":
        packed(source, {"ada/a.ipynb": "A"}, "")
        with tarfile.open(source, "a") as archive:
            for name, form in (
                ("ada/b.ipynb", tarfile.SYMTYPE),
                ("ada/c.ipynb", tarfile.LNKTYPE),
                ("ada/d.ipynb", tarfile.FIFOTYPE),
            ):
                about = tarfile.TarInfo(name)
                about.type, about.linkname = form, str(tmp_path / "secret.ipynb")
                archive.addfile(about)
    else:
        laid(source, {"ada/a.ipynb": "A"})
        (source / "ada" / "b.ipynb").symlink_to(tmp_path / "secret.ipynb")
        (source / "bob").symlink_to(tmp_path)
    assert collect(tmp_path, source) == 1
    assert (
        tree(tmp_path / "collected") == {"ada/a.ipynb": "A"}
        and "is a link; links are not followed" in capsys.readouterr().out
    )


def test_a_link_in_the_collected_folder_is_not_written_through(tmp_path, capsys):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "collected").mkdir()
    (tmp_path / "collected" / "ada").symlink_to(tmp_path / "elsewhere")
    assert collect(tmp_path, packed(tmp_path / "s.zip", {"ada/a.ipynb": "A", "bob/a.ipynb": "B"})) == 1
    assert list((tmp_path / "elsewhere").iterdir()) == [] and (tmp_path / "collected/bob/a.ipynb").read_text() == "B"
    assert "ada is a link to" in capsys.readouterr().out


@pytest.mark.parametrize(
    "limit, value, told", [("MOST_BYTES", 100_000, "more than 0 GB"), ("MOST_FILES", 3, "more than 3 files")]
)
@pytest.mark.parametrize("kind", ["zip", "gz"])
def test_a_bomb_is_refused_before_anything_is_written(tmp_path, capsys, monkeypatch, limit, value, told, kind):
    monkeypatch.setattr(sources, limit, value)
    assert (
        collect(tmp_path, packed(tmp_path / f"s.{kind}", {f"ada/{n}.ipynb": "\0" * 50_000 for n in range(5)}, kind))
        == 2
    )
    said = capsys.readouterr().err
    assert told in said and "nothing was collected" in said and not (tmp_path / "collected").exists()


def test_a_file_too_large_costs_that_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sources, "ONE_FILE", 1 << 20)
    assert collect(tmp_path, packed(tmp_path / "s.zip", {"ada/a.ipynb": "A", "ada/b.ipynb": "\0" * (1 << 21)})) == 1
    assert "ada/b.ipynb  is larger than 1 MB" in capsys.readouterr().out and tree(tmp_path / "collected") == {
        "ada/a.ipynb": "A"
    }


def test_where_every_file_is_refused_the_reason_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sources, "ONE_FILE", 1 << 20)
    assert collect(tmp_path, packed(tmp_path / "s.zip", {"ada_1_5001_a.ipynb": "\0" * (1 << 21)})) == 2
    said = capsys.readouterr().err
    assert (
        "ada_1_5001_a.ipynb is larger than 1 MB. Nothing was collected." in said
        and not (tmp_path / "collected").exists()
    )


def test_a_member_that_says_less_than_it_holds_is_damaged(tmp_path, capsys):
    path = packed(tmp_path / "s.zip", {"ada/a.ipynb": "A" * 5_000, "bob/a.ipynb": "B"})
    data = path.read_bytes()
    size = (5_000).to_bytes(4, "little")
    at = data.index(b"PK\x01\x02") + 24
    assert data[at : at + 4] == size
    path.write_bytes(data[:at] + (50).to_bytes(4, "little") + data[at + 4 :])
    assert collect(tmp_path, path) == 1
    assert "could not be copied (damaged" in capsys.readouterr().out and tree(tmp_path / "collected") == {
        "bob/a.ipynb": "B"
    }


def test_a_header_of_gigabytes_is_not_read_into_memory(tmp_path, capsys):
    about = tarfile.TarInfo("x")
    about.type, about.size = tarfile.XHDTYPE, 6 << 30
    (tmp_path / "s.tar").write_bytes(about.tobuf(tarfile.GNU_FORMAT) + b"\0" * 4096)
    assert collect(tmp_path, tmp_path / "s.tar") == 2 and "more than 256 MB" in capsys.readouterr().err


def test_a_bomb_in_a_learner_s_archive_costs_that_archive_its_opening(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sources, "LEARNER_BYTES", 200_000)
    inner = packed(tmp_path / "i.zip", {f"{n}.ipynb": "\0" * 90_000 for n in range(5)})
    assert collect(tmp_path, packed(tmp_path / "s.zip", {"ada/work.zip": inner.read_bytes(), "bob/a.ipynb": "B"})) == 1
    assert (
        set(tree(tmp_path / "collected")) == {"ada/work.zip", "bob/a.ipynb"}
        and "was not unpacked: it holds more than" in capsys.readouterr().out
    )


def test_a_folder_with_other_work_in_it_takes_no_class(tmp_path, capsys):
    laid(tmp_path / "collected", {"class.toml": "", "roster.csv": ""})
    source = packed(tmp_path / "s.zip", {"ada/a.ipynb": "A"})
    assert collect(tmp_path, source) == 0 and collect(tmp_path, source) == 0, (
        "what is the class's own may be there first"
    )
    for name in ("01.ipynb", "bob/01.ipynb"):
        other = laid(tmp_path / name.replace("/", "-"), {name: "x"})
        assert main(["collect", str(source), "--to", str(other)]) == 2 and not (other / "ada").exists()
        assert f"holds {name.split('/')[0]}, which `grader collect` has not put there" in capsys.readouterr().err


def test_a_full_disk_is_said_before_anything_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(collection.shutil, "disk_usage", lambda place: type("Usage", (), {"free": 1 << 20})())
    assert collect(tmp_path, packed(tmp_path / "s.zip", {"ada/a.ipynb": "A"})) == 2
    assert (
        "1 MB left, and 64 MB are needed: the files have 0, and 64 should stay free. Make room. Nothing was collected."
        in capsys.readouterr().err
        and not (tmp_path / "collected").exists()
    )


@pytest.mark.parametrize("name", ["con", "a:b", "a|b", "x" * 300, "backups", "..x", "tab\tin", "solutions"])
def test_names_that_no_folder_may_have_are_changed(tmp_path, name):
    assert collect(tmp_path, packed(tmp_path / "s.zip", {f"{name}/a.ipynb": "A", "bob/a.ipynb": "B"})) in (0, 1)
    for path in (tmp_path / "collected").iterdir():
        assert (
            path.name == "collected.csv"
            or not set(path.name) & set('<>:"|?*\\\t')
            and len(path.name) < 150
            and path.name.lower() not in ("con", "backups", "solutions")
        )


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["{nowhere}", "--to", "{to}"], "there is no"),
        (["{source}", "--to", "{file}"], "is a file; --to needs a folder"),
        (["{source}", "--to", "{source}/in"], "is inside the other"),
        (["{source}", "--to", "{to}", "--by", "x"], "needs --roster FILE"),
        (["{empty}", "--to", "{to}"], "is a learner's file"),
        (["{source}", "--to", "{to}", "--roster", "{file}"], "no column that identifies learners"),
    ],
)
def test_a_wrong_call_is_a_sentence(tmp_path, capsys, arguments, told):
    laid(tmp_path, {"source/ada/a.ipynb": "A", "file": "x"})
    (tmp_path / "empty").mkdir()
    places = {name: tmp_path / name for name in ("nowhere", "to", "source", "file", "empty")}
    assert main(["collect", *(text.format(**places) for text in arguments)]) == 2
    assert told in capsys.readouterr().err and not (tmp_path / "to").exists()


def test_reading_an_archive_takes_time_in_proportion(tmp_path):
    """Here and in the process that reads it: were it unpacked anew for each file, each would take longer, the more there are."""

    def seconds(count: int) -> float:
        place = tmp_path / str(count)
        place.mkdir()
        path = packed(place / "s.tar.gz", {f"u{n}/a.ipynb": "A" for n in range(count)}, "gz")
        started = time.process_time()
        with Sources() as opened:
            assert [member.data() for member in opened.contents(path).members] == [b"A"] * count
            there_s = sum(psutil.Process(opened._class._process._pid).cpu_times()[:2])
        assert collect(place, path) == 0
        return time.process_time() - started + there_s

    few = seconds(60)
    assert seconds(300) < 1.5 * 5 * few

"""Links in every place of a class's folder: none is followed, whoever reads or writes there, and each is told.

Ada's notebook is the only one that holds work; whoever has a cell of hers, or any cell at all, followed a link.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.grading import class_folder
from grader.grading.batch import Settings
from grader.grading.grade import grade, grade_submission
from grader.notebook import workspace
from grader.submission.ipynb import Unreadable, read_notebook
from grader.submission.submission import read_submission
from grader.util import links
from grader.util.errors import InputError
from tests import small_class, toy_course as toy
from tests.conftest import WHOLE_GRID
from tests.mixing_course import COURSE
from tests.small_class import LESSON, RIGHT, WRONG, hand_in, scores

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a link needs a right there")

FILE = f"{toy.NAME}.ipynb"
HERS = "ADA = 'this is hers'"

# Where in eve's hand-in the link lies, and whether a file is expected there.
PLACES = {
    "eve": False,
    "eve/notebooks": False,
    "eve/week1": False,
    "eve/a/b/notebooks": False,
    "eve/solutions": False,
    "eve/backups": False,
    "eve.ipynb": True,
    f"eve/{FILE}": True,
    f"eve/notebooks/{FILE}": True,
    f"eve/a/b/{FILE}": True,
    "eve/mine (1).ipynb": True,
}


def targets(folder: Path, link: Path, file: bool) -> dict[str, str]:
    """What the link at a place may lead to: a classmate by a relative and an absolute way, twice, the course, the system."""
    hers = folder / "ada" / "notebooks" / FILE if file else folder / "ada" / "notebooks"
    theirs = COURSE.source_path(LESSON) if file else COURSE.solutions
    return {
        "a classmate": os.path.relpath(hers, link.parent),
        "a classmate, absolute": str(hers),
        "the course": str(theirs),
        "nothing": "gone",
        "itself": link.name,
        "the system": "/etc/passwd" if file else "/etc",
        "upwards": "..",
        "a link": os.path.relpath(folder.parent / ("link.ipynb" if file else "link"), link.parent),
    }


CASES = [(place, aim) for place, file in PLACES.items() for aim in targets(Path("/c"), Path("/c/x"), file)]

# The reader tries each; of what stands on it, each place once, and so each aim: WHOLE_GRID=1 tries each there, too.
AIMED = list(targets(Path("/c"), Path("/c/x"), True))
SAMPLE = CASES if WHOLE_GRID else [(place, AIMED[number % len(AIMED)]) for number, place in enumerate(PLACES)]


def class_with(folder: Path, place: str, aim: str) -> Path:
    """Ada's work, and eve's link. Returns: the link."""
    work = folder / "ada" / "notebooks"
    work.mkdir(parents=True)
    toy.write(work / FILE, toy.solved(double=HERS + chr(10) + toy.RIGHT["double"]))
    (folder.parent / "link").symlink_to(work)
    (folder.parent / "link.ipynb").symlink_to(work / FILE)
    link = folder / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(targets(folder, link, PLACES.get(place, True))[aim])
    return link


@pytest.fixture
def small(monkeypatch):
    toy.install(monkeypatch)


@pytest.fixture(params=[True, False], ids=["step by step", "compared"])
def reading(request, monkeypatch):
    """With what this system has, and as where no folder can be opened."""
    toy.install(monkeypatch)
    if request.param and not links.WALKS:
        pytest.skip("this system opens no folders")
    monkeypatch.setattr(links, "WALKS", request.param)


def code_of(submission) -> str:
    return chr(10).join(text for lesson in submission.lessons for text in submission.plan(lesson).own_texts)


def told_in(submission) -> str:
    return " ".join(note for lesson in submission.lessons for note in submission.plan(lesson).notes)


@pytest.mark.any_user  # every file in it is the reader's own: a link decides, no right
@pytest.mark.parametrize("place, aim", SAMPLE)
def test_a_class_follows_none_and_tells_each(small, tmp_path, place, aim):
    link = class_with(tmp_path / "class", place, aim)
    found, _ = class_folder.entries(tmp_path / "class")
    assert {one.name for one in found} == {"ada", "eve"}
    packed = {one.name: class_folder.pack(one) for one in found}
    assert HERS.encode() in b"".join(file.data for file in packed["ada"].files)
    assert packed["eve"].files == ()
    name = place.partition("/")[2] or place
    assert any(f"{name} is a link to {os.readlink(link)}" in note for note in packed["eve"].notes), packed["eve"].notes
    laid = class_folder.unpack(packed["ada"], tmp_path / "laid")
    assert HERS in code_of(read_submission(open_course(), laid)) and not any(
        path.is_symlink() for path in (tmp_path / "laid").rglob("*")
    )


@pytest.mark.any_user
@pytest.mark.parametrize("place, aim", CASES)
def test_grade_follows_none_and_tells_each(small, tmp_path, monkeypatch, place, aim):
    link = class_with(tmp_path / "class", place, aim)
    monkeypatch.chdir(tmp_path)
    ways = {Path("class", *Path(place).parts[: at + 1]) for at in range(len(Path(place).parts))}
    ways |= {tmp_path / way for way in ways} | {Path("class", place, *more) for more in ((FILE,), ("ada", "notebooks"))}
    for way in ways:
        try:
            submission = read_submission(open_course(), way)
        except InputError as error:
            assert f"is a link to {os.readlink(link)}" in str(error) or "Permission" in str(error), error
        else:
            raise AssertionError(f"{way} was read: {code_of(submission)}")


def test_own_work_beside_a_link_counts_and_the_link_is_told(reading, tmp_path):
    class_with(tmp_path / "class", "eve/notebooks", "a classmate")
    toy.write(
        tmp_path / "class" / "eve" / "02_second.ipynb", toy.notebook([toy.code("def nobody(x): return x")], "02_second")
    )
    submission = read_submission(open_course(), tmp_path / "class" / "eve")
    assert submission.lessons == ("02_second",) and HERS not in code_of(submission)
    assert "notebooks is a link to ../ada/notebooks; links are not followed" in told_in(submission)


def test_who_types_a_path_answers_for_what_is_above_it(reading, tmp_path, monkeypatch):
    """A home, a temporary folder or a class's folder may be reached by a link; a submission may be none."""
    class_with(tmp_path / "class", "eve", "a classmate")
    (tmp_path / "mine").symlink_to("class")
    assert HERS in code_of(read_submission(open_course(), tmp_path / "mine" / "ada"))
    assert {one.name for one in class_folder.entries(tmp_path / "mine")[0]} == {"ada", "eve"}
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="mine is a link to class. Links are not followed"):
        read_submission(open_course(), "mine/ada")
    monkeypatch.chdir(tmp_path / "class" / "ada")
    assert HERS in code_of(read_submission(open_course(), "."))
    assert HERS in code_of(read_submission(open_course(), "../ada"))
    with pytest.raises(InputError, match="../eve is a link"):
        read_submission(open_course(), "../eve")


# --- put there meanwhile ----------------------------------------------------------------------


@pytest.mark.parametrize("place", ["eve", "eve/notebooks", f"eve/notebooks/{FILE}"])
def test_a_link_put_there_between_finding_and_reading_is_not_followed(reading, tmp_path, monkeypatch, place):
    folder = tmp_path / "class"
    class_with(folder, "other.ipynb", "nothing")
    own = folder / "eve" / "notebooks"
    own.mkdir(parents=True)
    toy.write(own / FILE, toy.pristine())
    (one,) = [each for each in class_folder.entries(folder)[0] if each.name == "eve"]
    search = class_folder.FolderSearch(folder / "eve")
    (folder / place).rename(tmp_path / "away")
    (folder / place).symlink_to(folder / Path("ada", *Path(place).parts[1:]))
    assert (own / FILE).read_bytes() == (folder / "ada" / "notebooks" / FILE).read_bytes()
    with pytest.raises(Unreadable):
        read_notebook(own / FILE, folder)
    monkeypatch.setattr(class_folder, "FolderSearch", lambda path: search)
    packed = class_folder.pack(one)
    assert packed.files == () and "not read" in packed.notes[0] and packed.closed == (), (
        "it is no trouble of this computer"
    )


@pytest.mark.skipif(
    not links.WALKS, reason="where the way is only compared, a link that comes and goes in between can defeat it"
)
def test_a_link_that_comes_and_goes_gives_nothing_of_hers(tmp_path):
    folder = tmp_path / "class"
    class_with(folder, "other.ipynb", "nothing")
    own = folder / "eve" / "notebooks"
    own.mkdir(parents=True)
    toy.write(own / FILE, b"{}")
    (folder / "eve" / "link").symlink_to("../ada/notebooks")
    ended = threading.Event()

    def swap() -> None:
        one, other, away = own, folder / "eve" / "link", folder / "eve" / "away"
        while not ended.is_set():
            one.rename(away)
            other.rename(one)
            one.rename(other)
            away.rename(one)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(1500):
            try:
                assert links.read(own / FILE, folder, 1 << 20).data == b"{}"
            except OSError:
                continue
    finally:
        ended.set()
        thread.join()


def test_a_hard_link_is_told(reading, tmp_path):
    """The system says nothing of where its other name lies."""
    folder = tmp_path / "class"
    class_with(folder, "other.ipynb", "nothing")
    (folder / "eve").mkdir()
    os.link(folder / "ada" / "notebooks" / FILE, folder / "eve" / FILE)
    note = "has 2 names on the disk (hard links); the same file may also be in another learner's folder."
    for one in class_folder.entries(folder)[0]:
        if one.name in ("ada", "eve"):
            assert any(note in said for said in class_folder.pack(one).notes)
            assert note in told_in(read_submission(open_course(), one.path))


# --- what writes ------------------------------------------------------------------------------

WRITTEN = {FILE: True, "backups": False}
AIMS = (
    "a classmate",
    "a classmate, absolute",
    "nothing",
    "itself",
    "upwards",
    "a link",
)  # a test that fails writes there
COMMANDS: dict[str, Callable] = {"reset": workspace.reset, "update": workspace.update}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place, aim", [(place, aim) for place in WRITTEN for aim in AIMS])
def test_reset_and_update_write_nothing_behind_a_link(reading, tmp_path, command, place, aim):
    folder = tmp_path / "class"
    class_with(folder, "other.ipynb", "nothing")
    mine = folder / "eve"
    mine.mkdir()
    if place != FILE:
        toy.write(mine / FILE, {**toy.solved(), "cells": toy.solved()["cells"][3:]})
    (mine / place).symlink_to(targets(folder, mine / place, WRITTEN[place])[aim])
    before = snapshot(tmp_path)
    with pytest.raises(InputError, match="is a link to .* Nothing was changed"):
        COMMANDS[command](toy.NAME, mine)
    assert snapshot(tmp_path) == before


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else b"" for path in folder.rglob("*")
    }


@pytest.mark.parametrize("arguments", [["reset", "00"], ["update"], ["update", "00"]])
def test_a_notebooks_folder_that_is_a_link_is_not_taken_for_ones_own(tmp_path, monkeypatch, capsys, arguments):
    hand_in(tmp_path, ada=RIGHT, eve=WRONG)
    (tmp_path / "eve" / "notebooks").symlink_to("../ada")
    monkeypatch.chdir(tmp_path / "eve")
    before = snapshot(tmp_path)
    assert main(arguments) == 2
    assert "notebooks is a link to ../ada; links are not followed: name the folder itself" in capsys.readouterr().err
    assert snapshot(tmp_path) == before


# --- from end to end --------------------------------------------------------------------------


def test_no_point_of_hers_reaches_anybody_else(monkeypatch, tmp_path, shared):
    folder = tmp_path / "class"
    class_with(folder, f"eve/{FILE}", "a classmate")
    toy.install(monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert grade_submission(Settings(open_course()), "class/ada", sandbox=shared).score == 6
    with pytest.raises(InputError, match="is a link to"):
        grade(Settings(open_course()), ["class/ada", f"class/eve/{FILE}"])
    toy.write(folder / "eve" / "02_second.ipynb", toy.notebook([], "02_second"))
    report = grade_submission(Settings(open_course(), lessons=["01", "02"]), "class/eve", sandbox=shared)
    assert report.score == 0 and any("is a link to" in note for note in report.lessons[0].notes)


def test_a_whole_class_of_links_has_her_points_once(tmp_path, scratch):
    folder = hand_in(tmp_path / "class", ada=RIGHT)
    (folder / "eve").symlink_to("ada")
    (folder / "mallory.ipynb").symlink_to(f"ada/{LESSON}.ipynb")
    for name, place, target in (
        ("bob", "notebooks", "../ada"),
        ("cyd", f"{LESSON}.ipynb", f"../ada/{LESSON}.ipynb"),
        ("dan", "deep", str(COURSE.solutions)),
        ("flo", "here", ".."),
    ):
        (folder / name).mkdir()
        (folder / name / place).symlink_to(target)
    done = small_class.run(folder, tmp_path / "out", scratch, "--jobs", "1")
    assert "Traceback" not in done.stderr, done.stderr
    got = scores(tmp_path / "out")
    assert {name: score for name, (score, _) in got.items() if score} == {"ada": 2} and len(got) == 7
    for one in json.loads((tmp_path / "out" / "report.json").read_text())["submissions"]:
        assert one["name"] == "ada" or any("is a link to" in note for note in one["lessons"][0]["notes"]), one["name"]


def test_a_class_folder_of_links_alone_is_told(tmp_path):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "list.txt").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="contains no learner"):
        class_folder.entries(tmp_path / "class")

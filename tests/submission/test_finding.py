"""Where learners' notebooks lie: in archives' folders, one folder a lesson, beside what is no answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.authoring.build import solution_notebook
from grader.submission import discover
from grader.submission.discover import FolderSearch, describe_contents
from tests import toy_course as toy
from tests.mixing_course import COURSE


def lay(top: Path, *places: str) -> Path:
    for place in places:
        (top / place).parent.mkdir(parents=True, exist_ok=True)
        (top / place).write_text("x")
    return top


@pytest.mark.parametrize(
    ("places", "found"),
    [
        (["01.ipynb", "essay.txt"], ["01.ipynb"]),
        (["notebooks/01.ipynb", "05.ipynb"], ["05.ipynb", "notebooks/01.ipynb"]),
        (["ada/notebooks/01.ipynb", "__MACOSX/ada/notebooks/._01.ipynb"], ["ada/notebooks/01.ipynb"]),
        (["lesson01/01.ipynb", "lesson05/05.ipynb"], ["lesson01/01.ipynb", "lesson05/05.ipynb"]),
        (["a/b/c/d/01.ipynb"], ["a/b/c/d/01.ipynb"]),
        (["a/b/c/d/e/f/01.ipynb"], []),
        (["01.ipynb", "week2/05.ipynb", "week2/a/06.ipynb"], ["01.ipynb", "week2/05.ipynb", "week2/a/06.ipynb"]),
        (
            ["b/notebooks/01.ipynb", "b/a/05.ipynb", "a/06.ipynb"],
            ["a/06.ipynb", "b/notebooks/01.ipynb", "b/a/05.ipynb"],
        ),
        (
            ["solutions/05.ipynb", "a/.ipynb_checkpoints/05.ipynb", "backups/06.ipynb"],
            ["backups/06.ipynb", "solutions/05.ipynb"],
        ),
        (["05.ipynb/inner.txt", "05.ipynb/01.IPYNB"], ["05.ipynb/01.IPYNB"]),
    ],
)
def test_the_nearest_notebooks_are_found(tmp_path, places, found):
    assert [path.relative_to(tmp_path).as_posix() for path in FolderSearch(lay(tmp_path, *places)).files] == found


def test_what_the_grader_made_is_told_from_a_learner_s_own_folder_of_that_name(tmp_path):
    """By what is in it: the course's solutions and its dated copies are nobody's answer, whoever calls a folder so."""
    lay(
        tmp_path,
        "clone/notebooks/01.ipynb",
        "clone/solutions/06.ipynb",
        "clone/notebooks/backups/05-2026-11-22-101500.ipynb",
    )
    lay(tmp_path, "clone/notebooks/backups/05-2026-11-22-101500-2.ipynb", "clone/notebooks/backups/07.ipynb")
    for name in ("00_lookup", "03_torch"):
        toy.write(tmp_path / "clone" / "solutions" / f"{name}.ipynb", solution_notebook(COURSE, name))
    found = FolderSearch(tmp_path)
    places = [path.relative_to(tmp_path).as_posix() for path in found.files]
    assert places == ["clone/notebooks/01.ipynb", "clone/solutions/06.ipynb", "clone/notebooks/backups/07.ipynb"]
    assert sorted(found.notes) == [
        "Not read in clone/notebooks/backups/: 2 notebooks dated by `grader reset` or `update`; they are not a learner's answers.",
        "Not read in clone/solutions/: 2 notebooks of the course's own solutions; they are not a learner's answers.",
    ]


def test_whatever_is_passed_over_is_told_with_its_path(tmp_path, monkeypatch):
    lay(tmp_path, "a/b/c/d/e/01.ipynb", "a/work.zip", "01.ipynb", "02.ipynb")
    monkeypatch.setattr(discover, "MAX_FILES", 1)
    assert FolderSearch(tmp_path).notes == [
        "a/work.zip is an archive; it was not opened. Unpack work.zip first.",
        "a/b/c/d/e was not searched: the limit is 4 folders deep.",
        "02.ipynb was not read: at most 1 notebooks are read.",
    ]


def test_links_are_named_with_their_targets_and_left(tmp_path):
    lay(tmp_path, "secret/01.ipynb", "ada/essay.txt", "ada/deep/02.ipynb")
    (tmp_path / "ada" / "01.ipynb").symlink_to(tmp_path / "secret" / "01.ipynb")
    (tmp_path / "ada" / "more").symlink_to(tmp_path / "secret")
    (tmp_path / "ada" / "deep" / "round").symlink_to("..")
    (tmp_path / "ada" / "notebooks").symlink_to("deep")
    found = FolderSearch(tmp_path / "ada")
    assert [path.relative_to(tmp_path).as_posix() for path in found.files] == ["ada/deep/02.ipynb"]
    places = {
        "01.ipynb": f"{tmp_path}/secret/01.ipynb",
        "more": f"{tmp_path}/secret",
        "notebooks": "deep",
        "deep/round": "..",
    }
    assert found.notes == [
        f"{place} is a link to {target}; links are not followed, so it was not read."
        for place, target in places.items()
    ]


def test_an_endless_folder_is_not_walked_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(discover, "MAX_FOLDERS", 20)
    lay(tmp_path, *(f"{i:03}/{j}/{k}/x.txt" for i in range(9) for j in range(3) for k in range(3)))
    assert FolderSearch(tmp_path).folders < 60
    monkeypatch.setattr(discover, "MAX_FILES", 3)
    assert len(FolderSearch(lay(tmp_path, *(f"{i}.ipynb" for i in range(9)))).files) == 3


def test_what_lies_there_in_place_of_notebooks(tmp_path):
    assert describe_contents(tmp_path) == describe_contents(tmp_path / "gone") == ""
    assert describe_contents(lay(tmp_path / "a", "b.txt", ".hidden", "__MACOSX/x")) == "It contains: b.txt."
    assert describe_contents(lay(tmp_path / "z", "work.zip")) == "It contains: work.zip."
    many = describe_contents(lay(tmp_path / "m", *(f"{i}\n.txt" for i in range(8))))
    assert many.endswith("and 3 more.") and "\n" not in many


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(OSError):
        FolderSearch(tmp_path / "gone")
